//! What commands do.

use std::sync::Arc;

use super::setting::set;
use super::{COMMANDS, FORMATS, NAME_FORMS, SIGNALS, hint};
use crate::keymap::KEYMAP;
use crate::menu::{self, MenuKind};
use crate::track::Layout;
use crate::{Effect, Grouping, Pane, Since, SiteGrouping, Tab, Ui, actions, compare, jump, keymap, list};
use roctop_model::query::Filter;
use roctop_model::table::pattern;
use roctop_model::{LaneKey, Snapshot};
use roctop_trace::item::{Nanos, TextId};
use roctop_trace::units;

/// What is to be done outside, or what was expected in place of what was typed.
type Done = Result<Effect, String>;

/// Does what a line says; an error says what was expected.
pub(crate) fn run(ui: &mut Ui, latest: &Arc<Snapshot>, line: &str) -> Done {
    let line = line.trim();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let snap = ui.standing(latest);
    match word {
        "" => Ok(Effect::None),
        // A sentence that begins with the word is no command.
        "rerun" | "detach" | "q!" | "q" | "quit" | "interrupt" if !rest.is_empty() => {
            Err(format!("{word} takes no word"))
        }
        "view" => view(ui, latest, rest),
        "goto" => go_to(ui, &snap, rest),
        "filter" => filter(ui, rest),
        "group" => group(ui, rest),
        "lanes" => lanes(ui, rest),
        "sort" => sort(ui, rest),
        "names" => names(ui, rest),
        "zoom" => zoom(ui, &snap, rest),
        "set" => set(ui, rest),
        "export" if !rest.is_empty() => export(ui, &snap, rest),
        "theme" if rest.is_empty() => Err("theme NAME".into()),
        "theme" => Ok(Effect::Theme(rest.into())),
        "diff" if !rest.is_empty() => Ok(Effect::Compare(rest.into())),
        "compare" => compare::command(ui, &snap, rest).map(|()| Effect::None),
        "whole" => Ok(whole(ui)),
        "rerun" => Ok(rerun(ui, latest, Effect::Rerun)),
        "pmc" if rest.is_empty() => Err("pmc COUNTERS, as SQ_WAVES GRBM_COUNT".into()),
        "pmc" => Ok(rerun(ui, latest, Effect::Count(rest.into()))),
        "save" => save(ui, rest),
        "signal" if latest.is_running() => signal(rest),
        "signal" => Err("the program does not run".into()),
        "detach" => Ok(Effect::Detach),
        "q!" if latest.is_running() => Ok(Effect::StopApp),
        "q!" => Ok(Effect::Quit),
        "q" => Ok(actions::act(ui, latest, keymap::Action::Quit)),
        // `export` and `diff` without a word are actions.
        name => {
            let action = keymap::named(ui.tab, name).ok_or_else(|| {
                let commands = COMMANDS.iter().map(|command| command.0);
                let names: Vec<&str> = commands.chain(KEYMAP.iter().map(|binding| binding.name)).collect();
                format!("no command {name}{}", hint(name, &names))
            })?;
            Ok(actions::act(ui, latest, action))
        }
    }
}

fn view(ui: &mut Ui, latest: &Snapshot, name: &str) -> Done {
    let there = || Tab::ALL.into_iter().filter(|tab| tab.is_there(latest));
    let known = there().find(|tab| tab.row().word.eq_ignore_ascii_case(name));
    let names: Vec<&str> = there().map(|tab| tab.row().word).collect();
    ui.show(known.ok_or_else(|| format!("no view {name}{}", hint(name, &names)))?);
    Ok(Effect::None)
}

fn filter(ui: &mut Ui, source: &str) -> Done {
    ui.filter = Filter::parse(source).map_err(|error| error.message)?;
    Ok(Effect::None)
}

fn group(ui: &mut Ui, word: &str) -> Done {
    if let Some(known) = SiteGrouping::ALL.iter().find(|known| known.1 == word) {
        ui.prefs.sites_by = known.0;
        ui.show(Tab::Sites);
        ui.tables[Pane::Sites as usize].selected = None;
        return Ok(Effect::None);
    }
    let known = Grouping::ALL.iter().find(|known| known.1 == word);
    ui.prefs.grouping = known
        .ok_or_else(|| {
            let names = Grouping::ALL.map(|known| known.1);
            format!("kernels are not grouped by {word}{}", hint(word, &names))
        })?
        .0;
    ui.show(Tab::Kernels);
    ui.tables[Pane::Kernels as usize].selected = None;
    Ok(Effect::None)
}

fn lanes(ui: &mut Ui, word: &str) -> Done {
    let known = Layout::ALL.iter().find(|known| known.1 == word);
    ui.prefs.layout = known.ok_or_else(|| format!("no lanes by {word}"))?.0;
    ui.show(Tab::Timeline);
    Ok(Effect::None)
}

fn sort(ui: &mut Ui, column: &str) -> Done {
    let pane = ui.pane().ok_or("nothing to sort here")?;
    let columns = pane.list().columns();
    let found = columns.iter().find(|known| known.1.eq_ignore_ascii_case(column));
    list::sort_by(ui, pane, found.ok_or_else(|| format!("no column {column}"))?.0);
    Ok(Effect::None)
}

fn names(ui: &mut Ui, word: &str) -> Done {
    let known = NAME_FORMS.iter().find(|known| known.0 == word);
    ui.prefs.names = known.ok_or("names short, full or mangled")?.1;
    Ok(Effect::None)
}

fn zoom(ui: &mut Ui, snap: &Snapshot, width: &str) -> Done {
    let width = units::time(width).ok_or("zoom TIME, as 10us")?;
    let columns = ui.lane_columns();
    ui.time.stand(snap, columns);
    ui.time.width = width.clamp(10, 1 << 50);
    Ok(Effect::None)
}

/// Runs the program again. If it still runs, a menu asks first, because this stops it.
fn rerun(ui: &mut Ui, latest: &Snapshot, effect: Effect) -> Effect {
    if !latest.is_running() || ui.prefs.detached.attached {
        return effect;
    }
    menu::open(ui, MenuKind::Rerun(effect));
    Effect::None
}

/// Counts from the beginning again; a baseline counted from another.
fn whole(ui: &mut Ui) -> Effect {
    ui.baseline = None;
    Effect::Reset(Since::Beginning)
}

/// Keeps the filter under a name, here and in the settings.
fn save(ui: &mut Ui, name: &str) -> Done {
    if name.is_empty() || name.contains(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')) {
        return Err("save NAME, of letters and digits".into());
    }
    let filter = ui.filter.source.clone();
    ui.prefs.presets.retain(|preset| preset.0 != name);
    ui.prefs.presets.push((name.into(), filter.clone()));
    Ok(Effect::Keep {
        name: name.into(),
        filter,
    })
}

fn signal(name: &str) -> Done {
    let bare = name.trim_start_matches("SIG");
    let known = SIGNALS.iter().find(|signal| signal.0.eq_ignore_ascii_case(bare));
    match known.ok_or_else(|| format!("no signal {name}"))?.1 {
        2 => Ok(Effect::Interrupt),
        number => Ok(Effect::Signal(number)),
    }
}

/// Whole records: those that pass the filter, and of the range that is measured.
fn export(ui: &Ui, snap: &Snapshot, rest: &str) -> Done {
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
fn go_to(ui: &mut Ui, snap: &Snapshot, rest: &str) -> Done {
    let rest = rest.strip_prefix("marker ").unwrap_or(rest);
    if let Some(nanos) = units::time(rest.trim_start_matches('+')) {
        let at = snap.origin.saturating_add(nanos);
        if at > snap.now {
            return Err(format!("it has run for {} only", units::duration(snap.elapsed())));
        }
        ui.show(Tab::Timeline);
        let columns = ui.lane_columns();
        ui.time.stand(snap, columns);
        ui.time.from = at.saturating_sub(ui.time.width.saturating_mul(columns as u64 / 2));
        ui.slice = None;
        ui.gap = None;
        return Ok(Effect::None);
    }
    let wanted = rest.to_lowercase();
    let lanes = snap
        .lanes
        .iter()
        .filter(|lane| matches!(lane.key, LaneKey::Markers(..) | LaneKey::Ranges(_)));
    let named = |what: u32| snap.names.text(TextId(what)).to_lowercase();
    let found = lanes.filter_map(|lane| {
        let slice = lane.recent(100_000).find(|slice| {
            let text = named(slice.what);
            text == wanted || pattern(&text) == wanted
        })?;
        Some((lane.key, *slice))
    });
    let (key, slice) = found
        .max_by_key(|found| found.1.span.begin)
        .ok_or_else(|| format!("not a time or marker: {rest}"))?;
    let target = jump::Target::Slice(key, slice.span.begin);
    jump::go(ui, snap, &target);
    Ok(Effect::None)
}
