//! The palette: words typed after `:`. Every action of the keymap has one; some commands take a word more.

mod command;
mod setting;

pub(crate) use self::command::run;

use self::setting::SETTINGS;
use std::sync::Arc;

use super::keymap::{self, Action, Binding, KEYMAP, Scope, is_valid};
use super::theme::BUILT_IN;
use super::track::Layout;
use super::{Effect, Grouping, NameForm, Pane, SiteGrouping, Tab, Ui};
use roctop_model::Snapshot;
use roctop_trace::spelling::did_you_mean;

/// Commands that take a word: name, what the word is, help.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    ("view", "NAME", "show a view"),
    (
        "goto",
        "TIME | MARKER",
        "go to a time since the begin (1.5s, 250ms) or to a marker",
    ),
    ("filter", "EXPR", "filter, as after /"),
    (
        "group",
        "name|stream|agent|process|marker, path|line|function|file|library|operator|module",
        "group kernels, sites",
    ),
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
        "csv|json|pftrace|rocpd|parquet|kineto|pprof|collapsed [DIR]",
        "write whole records: those that pass the filter, in the range",
    ),
    ("diff", "RECORDING", "compare with a recording"),
    (
        "compare",
        "WINDOW WINDOW | ago TIME | mark N | step N N | step #N #N | baseline",
        "compare two windows of the run, as 10s..20s 70s..80s",
    ),
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
    pub(crate) wants: &'static str,
    /// What it does, where that is not plain.
    pub(crate) does: &'static str,
    /// Keys that do it.
    pub(crate) keys: String,
}

impl Candidate {
    fn plain(line: String) -> Self {
        Self {
            line,
            wants: "",
            does: "",
            keys: String::new(),
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
                .filter(|word| word.to_lowercase().contains(&begun))
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

/// How well a line is meant by what was typed, 0 the best; none: not at all.
fn distance(typed: &str, line: &Candidate) -> Option<u8> {
    let (typed, name) = (typed.to_lowercase(), line.line.as_str());
    let mut letters = name.chars();
    Some(match &*typed {
        typed if name == typed => 0,
        typed if name.starts_with(typed) => 1,
        typed if name.contains(typed) => 2,
        typed if line.does.to_lowercase().contains(typed) => 3,
        typed if typed.chars().all(|letter| letters.any(|c| c == letter)) => 4,
        _ => return None,
    })
}

/// Commands and actions that may be meant by a word: what only this view has first, then commands, then the rest.
fn commands(ui: &Ui, typed: &str) -> Vec<Candidate> {
    let keys = |binding: &Binding| {
        let keys = ui.prefs.keys.of(binding).iter().map(ToString::to_string);
        keys.collect::<Vec<_>>().join(" ")
    };
    let of_command = |name: &str| COMMANDS.iter().find(|command| command.0 == name);
    // Of a command and an action of one name the command stays, which wants a word.
    let action = |binding: &Binding| {
        let (_, wants, does) = of_command(binding.name).copied().unwrap_or(("", "", binding.help));
        Candidate {
            line: binding.name.to_string(),
            wants,
            does,
            keys: keys(binding),
        }
    };
    let command = |&(name, wants, does): &(&str, _, _)| Candidate {
        wants,
        does,
        ..Candidate::plain(name.to_string())
    };
    let here: Vec<&Binding> = KEYMAP
        .iter()
        .filter(|binding| is_valid(binding.scope, ui.tab))
        .collect();
    let is_action = |command: &&(&str, _, _)| here.iter().any(|binding| binding.name == command.0);
    let (common, own): (Vec<&Binding>, Vec<&Binding>) = here.iter().partition(|binding| binding.scope == Scope::All);
    let commands = COMMANDS.iter().filter(|command| !is_action(command)).map(command);
    let all = own
        .into_iter()
        .map(action)
        .chain(commands)
        .chain(common.into_iter().map(action));
    let mut found: Vec<(u8, Candidate)> = all.filter_map(|line| Some((distance(typed, &line)?, line))).collect();
    found.sort_by_key(|(distance, _)| *distance);
    found.into_iter().map(|(_, line)| line).collect()
}

/// What becomes of a line that was accepted.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// It is done.
    Done(Effect),
    /// It wants a word more.
    Wants(String),
    /// It cannot be done, and why.
    Refused(String),
}

/// Does what a line says, or the candidate that was chosen in its place.
pub(crate) fn accept(ui: &mut Ui, latest: &Arc<Snapshot>, typed: &str, chosen: usize) -> Accepted {
    let typed = typed.trim_start();
    let snap = ui.standing(latest);
    let found = candidates(ui, &snap, typed);
    let name = typed.split(' ').next().unwrap_or_default();
    let is_known = is_command(ui, name);
    let has_word = typed.trim_end().len() > name.len();
    let is_listed = found.iter().any(|line| line.line == typed.trim_end());
    // The first word of a command is one of those that it takes, as far as they are all known.
    let is_choice = !is_known || (has_word && CHOICES.contains(&name) && !is_listed);
    let chosen = chosen.min(found.len().saturating_sub(1));
    let candidate = found.get(chosen).filter(|_| !typed.is_empty() || chosen > 0);
    let line = match candidate {
        Some(line) if is_choice || chosen > 0 => {
            // What cannot be taken back is written out first.
            if !line.wants.is_empty() || FINAL.contains(&first(&line.line)) {
                return Accepted::Wants(line.clone().completed());
            }
            line.line.clone()
        }
        _ => typed.trim_end().to_string(),
    };
    let is_act = FINAL.contains(&first(&line)) || keymap::named(ui.tab, first(&line)).is_some_and(Action::is_act);
    if is_act && ui.read.is_burst {
        return Accepted::Refused(format!(
            "enter came together with other keys: press it again to do {line}"
        ));
    }
    run(ui, latest, &line).map_or_else(Accepted::Refused, Accepted::Done)
}

fn first(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

/// Whether a command or an action of this view has this name.
fn is_command(ui: &Ui, name: &str) -> bool {
    COMMANDS.iter().any(|command| command.0 == name) || keymap::named(ui.tab, name).is_some() || name == "q"
}

/// Commands that act outside of the screen without a further question.
const FINAL: [&str; 10] = [
    "q",
    "q!",
    "quit",
    "detach",
    "interrupt",
    "signal",
    "rerun",
    "pmc",
    "save",
    "export",
];

/// Commands that take one of some words.
const CHOICES: [&str; 7] = ["view", "group", "lanes", "names", "signal", "theme", "set"];

/// `; did you mean overview?` of the words that a command takes.
fn hint(word: &str, known: &[&str]) -> String {
    did_you_mean(word, known.iter().copied())
}

/// The words that a command takes, as far as they are known.
fn words(ui: &Ui, snap: &Snapshot, command: &str) -> Vec<String> {
    match command {
        "view" => {
            let views = Tab::ALL.into_iter().filter(|tab| tab.is_there(snap));
            views.map(|tab| tab.row().word.to_string()).collect()
        }
        "group" => {
            let kernels = Grouping::ALL.map(|known| known.1);
            kernels
                .into_iter()
                .chain(SiteGrouping::ALL.map(|known| known.1))
                .map(Into::into)
                .collect()
        }
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
const FORMATS: [&str; 8] = [
    "csv",
    "json",
    "pftrace",
    "rocpd",
    "parquet",
    "kineto",
    "pprof",
    "collapsed",
];

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
    use crate::menu::{self, MenuKind};
    use roctop_trace::item::Exit;
    use roctop_trace::units::Unit;

    #[test]
    fn every_view_can_be_named_and_nonsense_says_so() {
        let latest = Arc::new(Snapshot::default());
        let mut ui = Ui::default();
        for tab in Tab::of_program() {
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
        let ended = Arc::new(Snapshot {
            ended: Some(Exit::Code(0)),
            ..Snapshot::default()
        });
        assert_eq!(run(&mut ui, &ended, "rerun"), Ok(Effect::Rerun));
        assert_eq!(run(&mut ui, &ended, "pmc A B"), Ok(Effect::Count("A B".into())));
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
    fn fuzzy_list_has_this_view_first_with_keys() {
        let (mut ui, snap) = (Ui::default(), Snapshot::default());
        let lines = |ui: &Ui, typed| -> Vec<(String, String)> {
            let found = candidates(ui, &snap, typed).into_iter();
            found.map(|line| (line.line, line.keys)).collect()
        };
        ui.tab = Tab::Timeline;
        assert_eq!(lines(&ui, "")[0].0, "zoom-in");
        ui.tab = Tab::Kernels;
        assert_eq!(lines(&ui, "")[0], ("sort".to_string(), "s".to_string()));
        // By what it does, and by letters in order.
        assert_eq!(lines(&ui, "statistics")[0], ("reset".to_string(), "r".to_string()));
        assert_eq!(lines(&ui, "bsln")[0].0, "baseline");
        assert!(lines(&ui, "qqq").is_empty());
    }

    #[test]
    fn enter_runs_the_first_candidate_and_refuses_with_a_suggestion() {
        let latest = Arc::new(Snapshot::default());
        let mut ui = Ui::default();
        assert!(
            matches!(accept(&mut ui, &latest, "theme li", 0), Accepted::Done(Effect::Theme(name)) if name == "light")
        );
        assert!(matches!(
            accept(&mut ui, &latest, "view kern", 0),
            Accepted::Done(Effect::None)
        ));
        assert_eq!(ui.tab, Tab::Kernels);
        assert!(matches!(accept(&mut ui, &latest, "gro", 0), Accepted::Wants(line) if line == "group "));
        assert!(matches!(
            accept(&mut ui, &latest, "rerun", 0),
            Accepted::Done(Effect::None)
        ));
        assert!(menu::is_open(&ui, &MenuKind::Rerun(Effect::Rerun)));
        // A command that acts is shown in full before it runs.
        for (typed, whole) in [("signal t", "signal INT"), ("det", "detach"), ("exp", "export ")] {
            match accept(&mut ui, &latest, typed, 0) {
                Accepted::Wants(line) => assert_eq!(line, whole, "{typed}"),
                other => panic!("{typed}: {other:?}"),
            }
        }
        for (typed, why) in [
            ("exprot csv", "no command exprot; did you mean export?"),
            ("view nothing", "no view nothing"),
            ("view allerts", "no view allerts; did you mean alerts?"),
            ("group strem", "kernels are not grouped by strem; did you mean stream?"),
        ] {
            match accept(&mut ui, &latest, typed, 0) {
                Accepted::Refused(found) => assert!(found.starts_with(why), "{typed}: {found}"),
                other => panic!("{typed}: {other:?}"),
            }
        }
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
