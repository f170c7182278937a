//! The palette: words typed after `:`. Every action of the keymap has one; some commands take a word more.

use std::sync::Arc;

use super::keymap::{self, KEYMAP, is_valid};
use super::pane::Pane;
use super::theme::BUILT_IN;
use super::track::Layout;
use super::{Effect, Grouping, NameForm, Tab, Ui, act, jump, list, tab};
use crate::filter::Filter;
use crate::format::Unit;
use crate::item::Nanos;
use crate::model::{LaneKey, Snapshot};

/// Commands that take a word: name, what the word is, help.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    ("view", "NAME", "show a view"),
    (
        "goto",
        "TIME | MARKER",
        "go to a time since the begin (1.5s, 250ms) or to a marker",
    ),
    ("filter", "EXPR", "filter, as after /"),
    ("group", "name|stream|agent|process|marker", "group kernels"),
    ("lanes", "stream|queue|agent|thread|marker", "lay out the timeline"),
    ("sort", "COLUMN", "sort by a column"),
    ("names", "short|full|mangled", "form of names"),
    ("zoom", "TIME", "time per column"),
    ("theme", "NAME", "show in another theme"),
    ("set", "glyphs|units|hints|fps VALUE", "change how the screen looks"),
    (
        "export",
        "csv|json|pftrace|rocpd|parquet [DIR]",
        "write whole records: those that pass the filter, in the range",
    ),
    ("diff", "RECORDING", "compare with a recording"),
    ("rerun", "", "run the program again and compare with this run"),
    (
        "pmc",
        "COUNTERS",
        "run the program again and count these hardware counters",
    ),
    ("whole", "", "count from the beginning again"),
    ("save", "NAME", "keep the filter in the settings under a name: @NAME"),
    ("signal", "INT|TERM|KILL|STOP|CONT", "send a signal to the program"),
    ("detach", "", "leave the program running, quit roctop"),
    ("q!", "", "stop the program, quit roctop"),
];

/// Lines that may be meant by what was typed: the line, and what it does.
pub(crate) fn candidates(ui: &Ui, snap: &Snapshot, typed: &str) -> Vec<(String, String)> {
    let typed = typed.trim_start();
    if let Some(rest) = typed.strip_prefix("pmc ") {
        // The last of several is completed.
        let at = rest.rfind([' ', ',']).map_or(0, |at| at + 1);
        let (before, last) = (&rest[..at], rest[at..].to_lowercase());
        let fits = ui.counters.iter().filter(|name| name.to_lowercase().contains(&last));
        return fits
            .map(|name| (format!("pmc {before}{name}"), String::new()))
            .collect();
    }
    if let Some((word, rest)) = typed.split_once(' ') {
        let words: Vec<String> = match word {
            "view" => Tab::ALL.iter().map(|tab| tab.title().1.to_lowercase()).collect(),
            "group" => Grouping::ALL.iter().map(|known| known.1.into()).collect(),
            "lanes" => Layout::ALL.iter().map(|known| known.1.into()).collect(),
            "names" => ["short", "full", "mangled"].map(Into::into).into(),
            "signal" => SIGNALS.iter().map(|signal| signal.0.into()).collect(),
            "theme" => BUILT_IN.iter().map(|theme| theme.0.into()).collect(),
            "set" => SETTINGS.iter().map(|&setting| setting.into()).collect(),
            "export" => FORMATS.iter().map(|&format| format.into()).collect(),
            "sort" => ui.pane().map(tab::titles).unwrap_or_default(),
            "goto" => snap
                .values
                .markers
                .iter()
                .take(200)
                .map(|row| row.pattern.to_string())
                .collect(),
            _ => Vec::new(),
        };
        let rest = rest.trim().to_lowercase();
        let fits = |known: &&String| known.to_lowercase().starts_with(&rest);
        return words
            .iter()
            .filter(fits)
            .map(|known| (format!("{word} {known}"), String::new()))
            .collect();
    }
    let commands = COMMANDS.iter().map(|(name, word, help)| (*name, *word, *help));
    let actions = KEYMAP
        .iter()
        .filter(|binding| is_valid(binding.scope, ui.tab))
        .map(|binding| (binding.name, "", binding.help));
    let mut found: Vec<(String, String)> = commands
        .chain(actions)
        .filter(|(name, ..)| name.starts_with(typed))
        .map(|(name, word, help)| (name.to_string(), format!("{word} {help}").trim().to_string()))
        .collect();
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

/// What a command that was begun expects, where nothing can be proposed.
pub(crate) fn expected(typed: &str) -> Option<String> {
    let (name, _) = typed.trim_start().split_once(' ')?;
    let (_, word, help) = COMMANDS.iter().find(|known| known.0 == name)?;
    (!word.is_empty()).then(|| format!("{word}: {help}"))
}

/// Formats of whole records, as the command line names them.
const FORMATS: [&str; 5] = ["csv", "json", "pftrace", "rocpd", "parquet"];

/// What can be set, with all values that have words.
const SETTINGS: [&str; 13] = [
    "glyphs unicode",
    "glyphs ascii",
    "units auto",
    "units ns",
    "units us",
    "units ms",
    "units s",
    "hints on",
    "hints off",
    "fps 10",
    "fps 5",
    "fps 2",
    "fps 1",
];

const SIGNALS: [(&str, i32); 5] = [("INT", 2), ("TERM", 15), ("KILL", 9), ("STOP", 19), ("CONT", 18)];

/// Does what a line says; an error says what was expected.
pub(crate) fn run(ui: &mut Ui, latest: &Arc<Snapshot>, line: &str) -> Result<Effect, String> {
    let line = line.trim();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let snap = ui.standing(latest);
    match word {
        "" => {}
        "view" => {
            let known = Tab::ALL.iter().find(|tab| tab.title().1.eq_ignore_ascii_case(rest));
            let tab = *known.ok_or_else(|| format!("no such view: {rest}"))?;
            ui.show(tab);
        }
        "goto" => go_to(ui, &snap, rest)?,
        "filter" => ui.filter = Filter::parse(rest).map_err(|error| error.message)?,
        "group" => {
            let known = Grouping::ALL.iter().find(|known| known.1 == rest);
            ui.grouping = known.ok_or_else(|| format!("kernels cannot be grouped by {rest}"))?.0;
            ui.show(Tab::Kernels);
            ui.tables[Pane::Kernels as usize].selected = None;
        }
        "lanes" => {
            let known = Layout::ALL.iter().find(|known| known.1 == rest);
            ui.layout = known.ok_or_else(|| format!("no lanes by {rest}"))?.0;
            ui.show(Tab::Timeline);
        }
        "sort" => {
            let pane = ui.pane().ok_or("nothing to sort here")?;
            let at = tab::titles(pane)
                .iter()
                .position(|title| title.eq_ignore_ascii_case(rest));
            list::sort_by(ui, pane, at.ok_or_else(|| format!("no column {rest}"))?);
        }
        "names" => {
            ui.names = match rest {
                "short" => NameForm::Short,
                "full" => NameForm::Full,
                "mangled" => NameForm::Mangled,
                _ => return Err("names short, full or mangled".into()),
            }
        }
        "zoom" => {
            let width = time(rest).ok_or("zoom TIME, as 10us")?;
            let columns = ui.lane_columns();
            ui.time.stand(&snap, columns);
            ui.time.width = width.clamp(10, 1 << 50);
        }
        "theme" if rest.is_empty() => return Err("theme NAME".into()),
        "theme" => return Ok(Effect::Theme(rest.into())),
        "set" => return set(ui, rest),
        "export" if !rest.is_empty() => return export(ui, &snap, rest),
        "diff" if !rest.is_empty() => return Ok(Effect::Compare(rest.into())),
        "whole" => {
            ui.baseline = None;
            return Ok(Effect::Reset(false));
        }
        "rerun" => return Ok(Effect::Rerun),
        "pmc" if rest.is_empty() => return Err("pmc COUNTERS, as SQ_WAVES GRBM_COUNT".into()),
        "pmc" => return Ok(Effect::Count(rest.into())),
        "save" => {
            if rest.is_empty() || rest.contains(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')) {
                return Err("save NAME, of letters and digits".into());
            }
            ui.presets.retain(|preset| preset.0 != rest);
            ui.presets.push((rest.into(), ui.filter.source.clone()));
            return Ok(Effect::Keep {
                name: rest.into(),
                filter: ui.filter.source.clone(),
            });
        }
        "signal" if latest.is_running() => {
            let known = SIGNALS
                .iter()
                .find(|signal| signal.0.eq_ignore_ascii_case(rest.trim_start_matches("SIG")));
            let number = known.ok_or_else(|| format!("no signal {rest}"))?.1;
            return Ok(if number == 2 {
                Effect::Interrupt
            } else {
                Effect::Signal(number)
            });
        }
        "signal" => return Err("the program does not run".into()),
        "detach" => return Ok(Effect::Detach),
        "q!" if latest.is_running() => return Ok(Effect::StopApp),
        "q!" => return Ok(Effect::Quit),
        "q" => return Ok(act::act(ui, latest, keymap::Action::Quit)),
        name => {
            let action = keymap::named(ui.tab, name).ok_or_else(|| format!("no command {name}; tab shows them"))?;
            return Ok(act::act(ui, latest, action));
        }
    }
    Ok(Effect::None)
}

fn set(ui: &mut Ui, rest: &str) -> Result<Effect, String> {
    let (what, value) = rest.split_once(' ').unwrap_or((rest, ""));
    match (what, value.trim()) {
        ("glyphs", "ascii") => return Ok(Effect::Ascii(true)),
        ("glyphs", "unicode" | "block") => return Ok(Effect::Ascii(false)),
        ("units", "auto") => ui.unit = None,
        ("units", value) => {
            let known = Unit::ALL.iter().find(|known| known.1 == value);
            ui.unit = Some(known.ok_or("set units auto, ns, us, ms or s")?.0);
        }
        ("hints", "on") => ui.bare = false,
        ("hints", "off") => ui.bare = true,
        ("fps", value) => {
            let rate = value.parse().ok().filter(|rate| (1..=10).contains(rate));
            ui.rate = Some(rate.ok_or("set fps 1 to 10")?);
        }
        _ => return Err(format!("set {}", SETTINGS.join(", set "))),
    }
    Ok(Effect::None)
}

/// Whole records: those that pass the filter, and of the range that is measured.
fn export(ui: &Ui, snap: &Snapshot, rest: &str) -> Result<Effect, String> {
    let (format, place) = rest.split_once(' ').unwrap_or((rest, "."));
    let format = if format == "perfetto" { "pftrace" } else { format };
    let known = FORMATS.iter().find(|known| **known == format);
    let range = ui.range.map(|range| {
        let span = range.span();
        let since = |at: Nanos| at.saturating_sub(snap.origin);
        (since(span.begin), since(span.end))
    });
    Ok(Effect::ExportRecords {
        format: known.ok_or_else(|| format!("export {} [DIR]", FORMATS.join(", ")))?,
        place: place.trim().into(),
        filter: ui.filter.source.clone(),
        range,
    })
}

/// To a time since the begin, or to the next marker of a text.
fn go_to(ui: &mut Ui, snap: &Snapshot, rest: &str) -> Result<(), String> {
    let rest = rest.strip_prefix("marker ").unwrap_or(rest);
    if let Some(nanos) = time(rest.trim_start_matches('+')) {
        let at = snap.origin.saturating_add(nanos);
        if at > snap.now {
            return Err(format!(
                "it has run for {} only",
                crate::format::duration(snap.elapsed())
            ));
        }
        jump::leave(ui);
        ui.show(Tab::Timeline);
        let columns = ui.lane_columns();
        ui.time.stand(snap, columns);
        ui.time.from = at.saturating_sub(ui.time.width.saturating_mul(columns as u64 / 2));
        ui.slice = None;
        ui.gap = None;
        return Ok(());
    }
    let wanted = rest.to_lowercase();
    let lanes = snap
        .lanes
        .iter()
        .filter(|lane| matches!(lane.key, LaneKey::Markers(..) | LaneKey::Ranges(_)));
    let named = |what: u32| snap.names.text(crate::item::TextId(what)).to_lowercase();
    let found = lanes.filter_map(|lane| {
        let slice = lane.recent(100_000).find(|slice| {
            let text = named(slice.what);
            text == wanted || crate::model::table::pattern(&text) == wanted
        })?;
        Some((lane.key, *slice))
    });
    let (key, slice) = found
        .max_by_key(|found| found.1.span.begin)
        .ok_or_else(|| format!("neither a time nor a marker: {rest}"))?;
    let target = jump::Target::Slice(key, slice.span.begin);
    jump::go(ui, snap, &target);
    Ok(())
}

/// Nanoseconds: `1.5s`, `250ms`, `82.139`.
pub(crate) fn time(text: &str) -> Option<Nanos> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = match text[end..].trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "" | "s" => 1e9,
        "m" | "min" => 60e9,
        _ => return None,
    };
    Some((number * unit) as Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_seconds_need_none() {
        assert_eq!(time("1.5s"), Some(1_500_000_000));
        assert_eq!(time("82.139"), Some(82_139_000_000));
        assert_eq!(time("250 ms"), Some(250_000_000));
        assert_eq!(time("4 parsecs"), None);
        assert_eq!(time(""), None);
    }

    #[test]
    fn every_view_can_be_named_and_nonsense_says_so() {
        let latest = Arc::new(Snapshot::default());
        let mut ui = Ui::default();
        for tab in Tab::ALL {
            let line = format!("view {}", tab.title().1);
            assert_eq!(run(&mut ui, &latest, &line), Ok(Effect::None));
            assert_eq!(ui.tab, tab);
        }
        assert!(run(&mut ui, &latest, "view nothing").is_err());
        assert!(run(&mut ui, &latest, "xyzzy").is_err());
        for setting in SETTINGS {
            assert!(run(&mut ui, &latest, &format!("set {setting}")).is_ok(), "{setting}");
        }
        assert_eq!((ui.unit, ui.bare, ui.rate), (Some(Unit::Seconds), true, Some(1)));
        for wrong in [
            "set",
            "set glyphs runes",
            "set fps 11",
            "set fps many",
            "set units parsec",
            "theme",
            "save a b",
        ] {
            assert!(run(&mut ui, &latest, wrong).is_err(), "{wrong}");
        }
        assert_eq!(run(&mut ui, &latest, "theme light"), Ok(Effect::Theme("light".into())));
        assert_eq!(run(&mut ui, &latest, "rerun"), Ok(Effect::Rerun));
        assert_eq!(run(&mut ui, &latest, "pmc A B"), Ok(Effect::Count("A B".into())));
        assert!(run(&mut ui, &latest, "pmc").is_err());
        ui.counters = ["SQ_WAVES".to_string(), "TCC_HIT".into()].into();
        assert_eq!(candidates(&ui, &latest, "pmc tcc")[0].0, "pmc TCC_HIT");
        assert_eq!(candidates(&ui, &latest, "pmc TCC_HIT,wav")[0].0, "pmc TCC_HIT,SQ_WAVES");
        assert!(matches!(
            run(&mut ui, &latest, "export perfetto out"),
            Ok(Effect::ExportRecords { format: "pftrace", .. })
        ));
        assert!(run(&mut ui, &latest, "export tarot").is_err());
        assert!(matches!(run(&mut ui, &latest, "save mine"), Ok(Effect::Keep { .. })));
        assert!(!candidates(&ui, &latest, "").is_empty());
        assert!(candidates(&ui, &latest, "goto 3").is_empty() && expected("goto 3").is_some());
        assert_eq!((expected("nonsense 3"), expected("whole ")), (None, None));
        assert!(
            candidates(&ui, &latest, "group m")
                .iter()
                .any(|line| line.0 == "group marker")
        );
    }
}
