//! One table: keys, what they do, where, and the words for it. Dispatch, hints, the palette and the help screen are made
//! from it.

use std::sync::Arc;

use super::Tab;
use super::key::Key;

/// Something that can be done by a key, a click or a word of the palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Show a view.
    Show(Tab),
    /// Selection up.
    Up,
    /// Selection down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the first.
    First,
    /// To the last.
    Last,
    /// The next list of the view.
    NextPane,
    /// The list before.
    PreviousPane,
    /// Pan to earlier.
    Left,
    /// Pan to later.
    Right,
    /// More detail in time.
    ZoomIn,
    /// Less detail in time.
    ZoomOut,
    /// The whole run, or the range.
    Fit,
    /// The selection, or with it what belongs to it.
    ZoomTo,
    /// Previous slice.
    Previous,
    /// Next slice.
    Next,
    /// Previous gap.
    PreviousGap,
    /// Next gap.
    NextGap,
    /// Next thing that passes the filter, or is the same as the selected.
    NextMatch,
    /// Previous such thing.
    PreviousMatch,
    /// Measure a range.
    Range,
    /// Select durations in a histogram.
    Stretch,
    /// Compare something else.
    Compare,
    /// Change the other one of two windows.
    OtherWindow,
    /// Put a mark.
    Mark,
    /// Go to the next mark.
    Marks,
    /// Go to a time.
    GoTo,
    /// Fold or unfold a lane.
    Fold,
    /// Open, or go to what belongs to it.
    Enter,
    /// To where it was before.
    Back,
    /// To where it was before going back.
    Forward,
    /// Close what is open.
    Close,
    /// Stop the screen, not the recording.
    Pause,
    /// Back to live.
    Follow,
    /// Type a filter.
    Filter,
    /// Filter to the selected row.
    FilterTo,
    /// Leave the selected row out.
    FilterOut,
    /// Type a command.
    Command,
    /// Sort by the next column.
    SortNext,
    /// Reverse the order.
    Reverse,
    /// Sort by the column to the left.
    SortLeft,
    /// Sort by the column to the right.
    SortRight,
    /// Choose columns.
    Columns,
    /// Group by something else.
    Group,
    /// Unit of times.
    Unit,
    /// Form of the names.
    NameForm,
    /// Histogram linear or logarithmic.
    Logarithmic,
    /// Reset statistics.
    Reset,
    /// Remember these numbers to compare with.
    Baseline,
    /// Count other counters: the program is run again.
    Pick,
    /// Let the counters rest, or count again.
    Rest,
    /// Show another quantity.
    Quantity,
    /// Mute the selected alert, or show it again.
    Mute,
    /// Write what is on screen to a file.
    Export,
    /// Write all lists to files.
    ExportAll,
    /// Begin or end a recording.
    Record,
    /// Write the screen as a picture.
    Picture,
    /// Copy the selected row to the clipboard.
    Copy,
    /// Copy the name in the selected row to the clipboard.
    CopyName,
    /// Show all keys.
    Help,
    /// Show or hide the hint bar.
    Hints,
    /// Redraw everything.
    Redraw,
    /// Interrupt the program.
    Interrupt,
    /// Signals for the program.
    Signals,
    /// Type to the program.
    Type,
    /// Stop roctop's screen.
    Suspend,
    /// Leave.
    Quit,
}

impl Action {
    /// Whether it acts outside of the screen: on the program, on files. It then waits for enter, and its key does nothing
    /// when it comes together with others. Ctrl-c is the exception: it interrupts at once.
    pub const fn is_act(self) -> bool {
        matches!(
            self,
            Self::Export
                | Self::ExportAll
                | Self::Picture
                | Self::Record
                | Self::Pick
                | Self::Rest
                | Self::Signals
                | Self::Type
                | Self::Quit
        )
    }
}

/// Where a key is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everywhere.
    All,
    /// In the timeline and the overview.
    Time,
    /// Where a stretch of time can be made shorter and longer: the timeline, the overview, the changes.
    Length,
    /// In the changes.
    Changes,
    /// Where something moves to the left and to the right: the timeline, the overview, the log, a selected stretch, a
    /// window.
    Across,
    /// In the timeline.
    Lane,
    /// Where something can be looked for: the timeline, the log.
    Found,
    /// In tables.
    Table,
    /// Where a filter can name what is selected: tables, the timeline.
    Named,
    /// Where rows can be grouped.
    Grouped,
    /// In the kernels.
    Kernels,
    /// Where a kernel's histogram can be selected in.
    Histogram,
    /// In the counters.
    Counters,
    /// In the alerts.
    Alerts,
    /// In the job.
    Job,
}

/// A group of the help screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Views.
    View,
    /// Moving about.
    Move,
    /// Time.
    Time,
    /// Tables.
    Table,
    /// The program and roctop.
    App,
}

impl Group {
    /// All groups with their titles.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::View, "VIEWS"),
        (Self::Move, "MOVE"),
        (Self::Time, "TIME"),
        (Self::Table, "TABLES"),
        (Self::App, "APP"),
    ];
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Keys, the first is the one shown in hints.
    pub keys: &'static [Key],
    /// Its name in the palette.
    pub name: &'static str,
    /// What they do.
    pub action: Action,
    /// Where.
    pub scope: Scope,
    /// Group of the help screen.
    pub group: Group,
    /// Help in a few words.
    pub help: &'static str,
    /// Word in the hint bar; empty: not there.
    pub hint: &'static str,
}

use Action as A;
use Key::{Char, Ctrl};

macro_rules! keymap {
    ($($keys:expr, $name:literal, $action:expr, $scope:ident, $group:ident, $help:literal, $hint:literal;)*) => {
        /// The keys that are no view's.
        const ACTIONS: &[Binding] = &[$(Binding {
            keys: &$keys,
            name: $name,
            action: $action,
            scope: Scope::$scope,
            group: Group::$group,
            help: $help,
            hint: $hint,
        }),*];
    };
}

keymap! {
    [Char('j'), Key::Down], "down", A::Down, All, Move, "down", "";
    [Char('k'), Key::Up], "up", A::Up, All, Move, "up", "";
    [Key::PageDown, Ctrl('d')], "page-down", A::PageDown, All, Move, "a page down", "";
    [Key::PageUp, Ctrl('u')], "page-up", A::PageUp, All, Move, "a page up", "";
    [Key::Home], "first", A::First, All, Move, "first (also gg)", "";
    [Key::End, Char('G')], "last", A::Last, All, Move, "last", "";
    [Key::Tab], "next-pane", A::NextPane, All, Move, "next list of the view", "";
    [Key::BackTab], "previous-pane", A::PreviousPane, All, Move, "list before", "";
    [Key::Enter], "open", A::Enter, All, Move, "open, to what belongs", "open";
    [Ctrl('o'), Char('(')], "back", A::Back, All, Move, "back to the place before", "";
    [Char(')')], "forward", A::Forward, All, Move, "forward again", "";
    [Key::Esc], "close", A::Close, All, Move, "close, clear", "";
    [Char('/')], "filter", A::Filter, All, Table, "filter, typed live", "filter";
    [Char(' ')], "pause", A::Pause, All, Time, "pause the screen only", "pause";
    [Char('f')], "follow", A::Follow, All, Time, "follow live", "follow";
    [Char('+'), Char('=')], "zoom-in", A::ZoomIn, Length, Time, "zoom in", "zoom";
    [Char('-')], "zoom-out", A::ZoomOut, Length, Time, "zoom out", "zoom";
    [Char('h'), Key::Left], "left", A::Left, Across, Time, "earlier; log: left", "pan";
    [Char('l'), Key::Right], "right", A::Right, Across, Time, "later; log: right", "pan";
    [Char('w')], "fit", A::Fit, Time, Time, "the whole run or range", "fit";
    [Char('Z')], "zoom-to", A::ZoomTo, Lane, Time, "zoom to it; ZZ: and call", "zoom to";
    [Char('[')], "previous", A::Previous, Lane, Time, "previous slice", "slice";
    [Char(']')], "next", A::Next, Lane, Time, "next slice", "slice";
    [Char('{')], "previous-gap", A::PreviousGap, Lane, Time, "previous gap", "gap";
    [Char('}')], "next-gap", A::NextGap, Lane, Time, "next gap", "gap";
    [Char('n')], "next-match", A::NextMatch, Found, Time, "next match or same", "match";
    [Char('N')], "previous-match", A::PreviousMatch, Found, Time, "previous match", "match";
    [Char('v')], "range", A::Range, Lane, Time, "measure a range", "range";
    [Char('v')], "other-window", A::OtherWindow, Changes, Time, "D: the other window", "side";
    [Char('m')], "mark", A::Mark, Time, Time, "put or take a mark", "";
    [Char('\'')], "marks", A::Marks, Time, Time, "to the next mark", "";
    [Char(';')], "goto", A::GoTo, All, Time, "go to a time (also gt)", "";
    [Char('z')], "fold", A::Fold, Lane, Time, "fold, unfold a GPU", "";
    [Char('s')], "sort", A::SortNext, Table, Table, "sort by next column", "sort";
    [Char('S')], "reverse", A::Reverse, Table, Table, "reverse the order", "";
    [Char('<')], "sort-left", A::SortLeft, Table, Table, "sort by column left", "";
    [Char('>')], "sort-right", A::SortRight, Table, Table, "sort by column right", "";
    [Char('F')], "only", A::FilterTo, Named, Table, "filter to this row", "";
    [Char('X')], "without", A::FilterOut, Named, Table, "exclude this row", "";
    [Char('o')], "compare-next", A::Compare, Changes, Table, "D: compare other things", "compare";
    [Char('o')], "group", A::Group, Grouped, Table, "change grouping", "group";
    [Char('c')], "columns", A::Columns, Table, Table, "choose columns", "";
    [Char('u')], "units", A::Unit, Table, Table, "one unit for times", "";
    [Char('t')], "names", A::NameForm, All, Table, "short/full/mangled names", "";
    [Char('v')], "stretch", A::Stretch, Histogram, Time, "select durations", "durations";
    [Char('H')], "histogram", A::Logarithmic, Kernels, Table, "histogram linear, log", "";
    [Char('p')], "pick", A::Pick, Counters, Table, "pick counters, run again", "pick";
    [Char('a')], "rest", A::Rest, Counters, Table, "pause or resume counting", "on/off";
    [Char('v')], "quantity", A::Quantity, Job, Table, "step busy wait power MPI", "quantity";
    [Char('d')], "mute", A::Mute, Alerts, Table, "mute or show an alert", "mute";
    [Char('r')], "reset", A::Reset, All, Table, "reset statistics", "";
    [Char('b')], "baseline", A::Baseline, All, Table, "compare with now (D)", "";
    [Char('y')], "copy", A::Copy, All, Table, "copy the row (OSC 52)", "";
    [Char('Y')], "copy-name", A::CopyName, All, Table, "copy its name", "";
    [Char('e')], "export", A::Export, All, Table, "write this view as CSV", "export";
    [Char('E')], "export-all", A::ExportAll, All, Table, "write all lists", "";
    [Char('R')], "record", A::Record, All, Table, "begin, end a recording", "";
    [Char('P')], "picture", A::Picture, All, Table, "picture: SVG, ANSI, text", "";
    [Char(':')], "command", A::Command, All, App, "command", "command";
    [Ctrl('c')], "interrupt", A::Interrupt, All, App, "interrupt the program", "";
    [Char('x')], "signals", A::Signals, All, App, "signals for the program", "";
    [Char('i')], "type", A::Type, All, App, "type to it; ctrl-] ends", "type";
    [Ctrl('z')], "suspend", A::Suspend, All, App, "suspend roctop's screen", "";
    [Ctrl('l')], "redraw", A::Redraw, All, App, "redraw", "";
    [Key::F(12)], "hints", A::Hints, All, App, "show, hide the hint bar", "";
    [Char('?'), Key::F(1)], "help", A::Help, All, App, "this help", "help";
    [Char('q')], "quit", A::Quit, All, App, "quit", "quit";
}

/// All keys: those of the views first.
pub static KEYMAP: &[Binding] = &{
    let mut all = [ACTIONS[0]; Tab::ALL.len() + ACTIONS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < Tab::ALL.len() {
            show(Tab::ALL[at])
        } else {
            ACTIONS[at - Tab::ALL.len()]
        };
        at += 1;
    }
    all
};

/// The key of a view.
const fn show(tab: Tab) -> Binding {
    let row = tab.row();
    Binding {
        keys: &row.keys,
        name: row.word,
        action: Action::Show(tab),
        // A program's screen has no job.
        scope: if matches!(tab, Tab::Job) {
            Scope::Job
        } else {
            Scope::All
        },
        group: Group::View,
        help: row.help,
        hint: "",
    }
}

/// Whether a scope takes part in a view.
pub fn is_valid(scope: Scope, tab: Tab) -> bool {
    match scope {
        Scope::All => true,
        Scope::Time => matches!(tab, Tab::Timeline | Tab::Overview),
        Scope::Length => matches!(tab, Tab::Timeline | Tab::Overview | Tab::Sites | Tab::Diff),
        Scope::Changes => tab == Tab::Diff,
        Scope::Across => matches!(
            tab,
            Tab::Timeline | Tab::Overview | Tab::Log | Tab::Launches | Tab::Diff
        ),
        Scope::Lane => tab == Tab::Timeline,
        Scope::Found => matches!(tab, Tab::Timeline | Tab::Log),
        Scope::Grouped => matches!(
            tab,
            Tab::Timeline | Tab::Kernels | Tab::Overview | Tab::Markers | Tab::Steps | Tab::Sites | Tab::Job
        ),
        Scope::Kernels => matches!(tab, Tab::Kernels | Tab::Launches | Tab::Overview),
        Scope::Histogram => matches!(tab, Tab::Kernels | Tab::Launches),
        Scope::Counters => tab == Tab::Counters,
        Scope::Alerts => tab == Tab::Alerts,
        Scope::Job => tab == Tab::Job,
        Scope::Table => !tab.row().lists.is_empty(),
        Scope::Named => tab == Tab::Timeline || !tab.row().lists.is_empty(),
    }
}

/// One key was set for two actions of one view.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[keys] {key} is set for {} and for {}", actions[0], actions[1])]
pub struct KeyConflict {
    /// The key.
    pub key: Key,
    /// The names of the actions.
    pub actions: [&'static str; 2],
    /// The later of their places in [`KEYMAP`].
    pub place: usize,
}

/// The keys in force: those of [`KEYMAP`], or what the user has set instead.
#[derive(Clone, Debug, Default)]
pub struct Keys(Option<Arc<[Vec<Key>]>>);

impl Keys {
    /// With other keys for some actions, by their places in [`KEYMAP`]. A key that is set is taken from any other action; an
    /// error names the second of two places for which one key was set.
    pub fn with(set: Vec<(usize, Vec<Key>)>) -> Result<Self, KeyConflict> {
        let meet = |a: usize, b: usize| {
            let both = |tab: &Tab| is_valid(KEYMAP[a].scope, *tab) && is_valid(KEYMAP[b].scope, *tab);
            Tab::ALL.iter().any(both)
        };
        let mut all: Vec<Vec<Key>> = KEYMAP.iter().map(|binding| binding.keys.to_vec()).collect();
        for (place, keys) in &set {
            for (_, others) in all.iter_mut().enumerate().filter(|(other, _)| meet(*place, *other)) {
                others.retain(|key| !keys.contains(key));
            }
        }
        for (at, (place, keys)) in set.iter().enumerate() {
            for (other, others) in set[..at].iter().filter(|(other, _)| meet(*place, *other)) {
                if let Some(key) = keys.iter().find(|key| others.contains(key)) {
                    return Err(KeyConflict {
                        key: *key,
                        actions: [KEYMAP[*other].name, KEYMAP[*place].name],
                        place: *place.max(other),
                    });
                }
            }
        }
        for (place, keys) in set {
            all[place] = keys;
        }
        Ok(Self(Some(all.into())))
    }

    /// The keys of an action.
    pub fn of<'a>(&'a self, binding: &'a Binding) -> &'a [Key] {
        let place = || KEYMAP.iter().position(|known| known.name == binding.name);
        match &self.0 {
            Some(all) => place().map_or(binding.keys, |place| &all[place]),
            None => binding.keys,
        }
    }
}

/// What a key does in a view.
pub fn action(keys: &Keys, tab: Tab, key: Key) -> Option<Action> {
    let mut valid = KEYMAP.iter().filter(|binding| is_valid(binding.scope, tab));
    valid
        .find(|binding| keys.of(binding).contains(&key))
        .map(|binding| binding.action)
}

/// What a name of the palette does in a view.
pub fn named(tab: Tab, name: &str) -> Option<Action> {
    let mut valid = KEYMAP.iter().filter(|binding| is_valid(binding.scope, tab));
    valid.find(|binding| binding.name == name).map(|binding| binding.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_view() {
        for tab in Tab::ALL {
            let mut seen = std::collections::HashSet::new();
            for binding in KEYMAP.iter().filter(|binding| is_valid(binding.scope, tab)) {
                for key in binding.keys {
                    assert!(seen.insert(*key), "{key} twice in {tab:?}");
                }
            }
        }
    }

    #[test]
    fn every_name_is_one_actions() {
        let mut seen = std::collections::HashSet::new();
        for binding in KEYMAP {
            assert!(seen.insert(binding.name), "{} twice", binding.name);
            assert!(
                (1..=24).contains(&binding.help.len()),
                "{} fits no column",
                binding.help
            );
        }
    }
}
