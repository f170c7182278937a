//! The palette: words typed after `:`. Every action of the keymap has one; some commands take a word more.

mod command;
mod setting;

pub(crate) use self::command::run;

use self::setting::SETTINGS;
use super::keymap::{KEYMAP, is_valid};
use super::theme::BUILT_IN;
use super::track::Layout;
use super::{Grouping, NameForm, Pane, Tab, Ui};
use roctop_model::Snapshot;

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
    (
        "set",
        "glyphs|units|hints|layout|fps VALUE",
        "change how the screen looks",
    ),
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

/// A line that may be meant by what was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The line.
    pub(crate) line: String,
    /// The word that it still wants, if any.
    wants: &'static str,
    /// What it does, where that is not plain.
    does: &'static str,
}

impl Candidate {
    fn plain(line: String) -> Self {
        Self {
            line,
            wants: "",
            does: "",
        }
    }

    /// The line, ready for the word that it wants.
    pub(crate) fn completed(self) -> String {
        if self.wants.is_empty() {
            self.line
        } else {
            self.line + " "
        }
    }

    /// What it wants and what it does.
    pub(crate) fn help(&self) -> String {
        format!("{} {}", self.wants, self.does).trim().to_string()
    }
}

/// Lines that may be meant by what was typed, the likeliest first.
pub(crate) fn candidates(ui: &Ui, snap: &Snapshot, typed: &str) -> Vec<Candidate> {
    let typed = typed.trim_start();
    match typed.split_once(' ') {
        // The last of several is completed.
        Some(("pmc", names)) => {
            let at = names.rfind([' ', ',']).map_or(0, |at| at + 1);
            let (before, last) = (&names[..at], names[at..].to_lowercase());
            let fits = ui.counters.iter().filter(|name| name.to_lowercase().contains(&last));
            fits.map(|name| Candidate::plain(format!("pmc {before}{name}")))
                .collect()
        }
        Some((command, begun)) => {
            let begun = begun.trim().to_lowercase();
            let words = words(ui, snap, command).into_iter();
            words
                .filter(|word| word.to_lowercase().starts_with(&begun))
                .map(|word| Candidate::plain(format!("{command} {word}")))
                .collect()
        }
        None => commands(ui, typed),
    }
}

/// Headings of a list's columns.
fn headings(pane: Pane) -> Vec<String> {
    let columns = pane.list().columns().into_iter();
    columns.map(|(_, heading)| heading.into()).collect()
}

/// Commands and actions whose names begin so.
fn commands(ui: &Ui, begun: &str) -> Vec<Candidate> {
    let commands = COMMANDS.iter().copied();
    let actions = KEYMAP.iter().filter(|binding| is_valid(binding.scope, ui.tab));
    let mut found: Vec<Candidate> = commands
        .chain(actions.map(|binding| (binding.name, "", binding.help)))
        .filter(|(name, ..)| name.starts_with(begun))
        .map(|(name, wants, does)| Candidate {
            line: name.to_string(),
            wants,
            does,
        })
        .collect();
    // Of a command and an action of one name the command stays, which wants a word.
    found.sort_by(|a, b| a.line.cmp(&b.line));
    found.dedup_by(|a, b| a.line == b.line);
    found
}

/// The words that a command takes, as far as they are known.
fn words(ui: &Ui, snap: &Snapshot, command: &str) -> Vec<String> {
    match command {
        "view" => Tab::ALL.iter().map(|tab| tab.row().word.to_string()).collect(),
        "group" => Grouping::ALL.iter().map(|known| known.1.into()).collect(),
        "lanes" => Layout::ALL.iter().map(|known| known.1.into()).collect(),
        "names" => NAME_FORMS.iter().map(|known| known.0.into()).collect(),
        "signal" => SIGNALS.iter().map(|signal| signal.0.into()).collect(),
        "theme" => BUILT_IN.iter().map(|theme| theme.0.into()).collect(),
        "set" => SETTINGS.iter().map(|&setting| setting.into()).collect(),
        "export" => FORMATS.iter().map(|&format| format.into()).collect(),
        "sort" => ui.pane().map_or_else(Vec::new, headings),
        "goto" => {
            let markers = snap.values.markers.iter().take(MAX_MARKERS);
            markers.map(|row| row.pattern.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

/// What a command that was begun expects, where nothing can be proposed.
pub(crate) fn expected(typed: &str) -> Option<String> {
    let (name, _) = typed.trim_start().split_once(' ')?;
    let (_, word, help) = COMMANDS.iter().find(|known| known.0 == name)?;
    (!word.is_empty()).then(|| format!("{word}: {help}"))
}

/// Formats of whole records, as the command line names them.
const FORMATS: [&str; 5] = ["csv", "json", "pftrace", "rocpd", "parquet"];

/// Markers that are proposed.
const MAX_MARKERS: usize = 200;

/// Forms of names, and what they are called.
const NAME_FORMS: [(&str, NameForm); 3] = [
    ("short", NameForm::Short),
    ("full", NameForm::Full),
    ("mangled", NameForm::Mangled),
];

/// Signals, and their numbers on Linux.
const SIGNALS: [(&str, i32); 5] = [("INT", 2), ("TERM", 15), ("KILL", 9), ("STOP", 19), ("CONT", 18)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effect;
    use roctop_trace::units::Unit;
    use std::sync::Arc;

    #[test]
    fn every_view_can_be_named_and_nonsense_says_so() {
        let latest = Arc::new(Snapshot::default());
        let mut ui = Ui::default();
        for tab in Tab::ALL {
            let line = format!("view {}", tab.row().word);
            assert_eq!(run(&mut ui, &latest, &line), Ok(Effect::None));
            assert_eq!(ui.tab, tab);
        }
        assert!(run(&mut ui, &latest, "view nothing").is_err());
        assert!(run(&mut ui, &latest, "xyzzy").is_err());
        for setting in SETTINGS {
            assert!(run(&mut ui, &latest, &format!("set {setting}")).is_ok(), "{setting}");
        }
        assert_eq!(
            (ui.prefs.unit, ui.prefs.bare, ui.prefs.rate),
            (Some(Unit::Seconds), true, Some(1))
        );
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
        assert_eq!(candidates(&ui, &latest, "pmc tcc")[0].line, "pmc TCC_HIT");
        assert_eq!(
            candidates(&ui, &latest, "pmc TCC_HIT,wav")[0].line,
            "pmc TCC_HIT,SQ_WAVES"
        );
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
                .any(|meant| meant.line == "group marker")
        );
    }

    #[test]
    fn what_wants_a_word_is_completed_with_a_blank() {
        let (ui, snap) = (Ui::default(), Snapshot::default());
        let first = |typed| candidates(&ui, &snap, typed).remove(0).completed();
        assert_eq!(first("gro"), "group ");
        assert_eq!(first("vie"), "view ");
        assert_eq!(first("det"), "detach");
        assert_eq!(first("group str"), "group stream");
    }
}
