//! One table: keys, what they do, where, and the words for it. Dispatch, hints and the help screen are made from it.

use super::Tab;
use super::key::Key;

/// Something that can be done by a key.
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
    /// Pan to earlier.
    Left,
    /// Pan to later.
    Right,
    /// More detail in time.
    ZoomIn,
    /// Less detail in time.
    ZoomOut,
    /// The whole run.
    Fit,
    /// Previous slice.
    Previous,
    /// Next slice.
    Next,
    /// Open, or go to what belongs to it.
    Enter,
    /// Close what is open.
    Close,
    /// Stop the screen, not the recording.
    Pause,
    /// Back to live.
    Follow,
    /// Type a filter.
    Filter,
    /// Sort by the next column.
    SortNext,
    /// Turn the order round.
    Reverse,
    /// Sort by the column to the left.
    SortLeft,
    /// Sort by the column to the right.
    SortRight,
    /// Form of the names.
    NameForm,
    /// Histogram linear or logarithmic.
    Logarithmic,
    /// Write what is on screen to a file.
    Export,
    /// Show all keys.
    Help,
    /// Draw anew.
    Redraw,
    /// Interrupt the program.
    Interrupt,
    /// Signals for the program.
    Signals,
    /// Stop roctop's screen.
    Suspend,
    /// Leave.
    Quit,
}

/// Where a key is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everywhere.
    All,
    /// In the timeline and the overview.
    Time,
    /// In the timeline.
    Lane,
    /// In tables.
    Table,
    /// Where something can be opened.
    Open,
}

/// A group of the help screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
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
    pub const ALL: [(Self, &'static str); 4] = [
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

const fn row(keys: &'static [Key], action: Action, scope: Scope, group: Group, texts: [&'static str; 2]) -> Binding {
    Binding {
        keys,
        action,
        scope,
        group,
        help: texts[0],
        hint: texts[1],
    }
}

use Key::{Char, Ctrl};

/// All keys.
pub const KEYMAP: &[Binding] = &[
    row(
        &[Char('1')],
        Action::Show(Tab::Overview),
        Scope::All,
        Group::Move,
        ["overview", ""],
    ),
    row(
        &[Char('2')],
        Action::Show(Tab::Timeline),
        Scope::All,
        Group::Move,
        ["timeline", ""],
    ),
    row(
        &[Char('3')],
        Action::Show(Tab::Kernels),
        Scope::All,
        Group::Move,
        ["kernels", ""],
    ),
    row(
        &[Char('4')],
        Action::Show(Tab::Copies),
        Scope::All,
        Group::Move,
        ["copies", ""],
    ),
    row(
        &[Char('5')],
        Action::Show(Tab::Api),
        Scope::All,
        Group::Move,
        ["API calls", ""],
    ),
    row(
        &[Char('6')],
        Action::Show(Tab::Counters),
        Scope::All,
        Group::Move,
        ["counters", ""],
    ),
    row(
        &[Char('7')],
        Action::Show(Tab::Devices),
        Scope::All,
        Group::Move,
        ["devices", ""],
    ),
    row(
        &[Char('8')],
        Action::Show(Tab::Markers),
        Scope::All,
        Group::Move,
        ["markers and ranges", ""],
    ),
    row(
        &[Char('9')],
        Action::Show(Tab::Processes),
        Scope::All,
        Group::Move,
        ["processes", ""],
    ),
    row(
        &[Char('0')],
        Action::Show(Tab::Log),
        Scope::All,
        Group::Move,
        ["log: program's output", ""],
    ),
    row(
        &[Char('j'), Key::Down],
        Action::Down,
        Scope::All,
        Group::Move,
        ["down", ""],
    ),
    row(&[Char('k'), Key::Up], Action::Up, Scope::All, Group::Move, ["up", ""]),
    row(
        &[Key::PageDown, Ctrl('d')],
        Action::PageDown,
        Scope::All,
        Group::Move,
        ["a page down", ""],
    ),
    row(
        &[Key::PageUp, Ctrl('u')],
        Action::PageUp,
        Scope::All,
        Group::Move,
        ["a page up", ""],
    ),
    row(
        &[Char('g'), Key::Home],
        Action::First,
        Scope::All,
        Group::Move,
        ["first", ""],
    ),
    row(
        &[Char('G'), Key::End],
        Action::Last,
        Scope::All,
        Group::Move,
        ["last", ""],
    ),
    row(
        &[Char('/')],
        Action::Filter,
        Scope::All,
        Group::Table,
        ["filter, typed live", "filter"],
    ),
    row(
        &[Char(' ')],
        Action::Pause,
        Scope::All,
        Group::Time,
        ["pause the screen only", "pause"],
    ),
    row(
        &[Char('f')],
        Action::Follow,
        Scope::All,
        Group::Time,
        ["follow live", "follow"],
    ),
    row(
        &[Char('+'), Char('=')],
        Action::ZoomIn,
        Scope::Time,
        Group::Time,
        ["zoom in", "zoom"],
    ),
    row(
        &[Char('-')],
        Action::ZoomOut,
        Scope::Time,
        Group::Time,
        ["zoom out", "zoom"],
    ),
    row(
        &[Char('h'), Key::Left],
        Action::Left,
        Scope::Time,
        Group::Time,
        ["earlier", "pan"],
    ),
    row(
        &[Char('l'), Key::Right],
        Action::Right,
        Scope::Time,
        Group::Time,
        ["later", "pan"],
    ),
    row(
        &[Char('w')],
        Action::Fit,
        Scope::Time,
        Group::Time,
        ["the whole run", "fit"],
    ),
    row(
        &[Char('[')],
        Action::Previous,
        Scope::Lane,
        Group::Time,
        ["previous slice", "slice"],
    ),
    row(
        &[Char(']')],
        Action::Next,
        Scope::Lane,
        Group::Time,
        ["next slice", "slice"],
    ),
    row(
        &[Char('s')],
        Action::SortNext,
        Scope::Table,
        Group::Table,
        ["sort by next column", "sort"],
    ),
    row(
        &[Char('S')],
        Action::Reverse,
        Scope::Table,
        Group::Table,
        ["turn the order round", ""],
    ),
    row(
        &[Char('<')],
        Action::SortLeft,
        Scope::Table,
        Group::Table,
        ["sort by the column left", ""],
    ),
    row(
        &[Char('>')],
        Action::SortRight,
        Scope::Table,
        Group::Table,
        ["sort by the column right", ""],
    ),
    row(
        &[Char('t')],
        Action::NameForm,
        Scope::All,
        Group::Table,
        ["names short/full/mangled", ""],
    ),
    row(
        &[Char('H')],
        Action::Logarithmic,
        Scope::Table,
        Group::Table,
        ["histogram linear, log", ""],
    ),
    row(
        &[Key::Enter],
        Action::Enter,
        Scope::Open,
        Group::Move,
        ["open, go to call/kernel", "open"],
    ),
    row(
        &[Key::Esc],
        Action::Close,
        Scope::All,
        Group::Move,
        ["close, clear", ""],
    ),
    row(
        &[Char('e')],
        Action::Export,
        Scope::All,
        Group::Table,
        ["write this view as CSV", "export"],
    ),
    row(
        &[Ctrl('c')],
        Action::Interrupt,
        Scope::All,
        Group::App,
        ["interrupt the program", ""],
    ),
    row(
        &[Char('x')],
        Action::Signals,
        Scope::All,
        Group::App,
        ["signals for the program", ""],
    ),
    row(
        &[Ctrl('z')],
        Action::Suspend,
        Scope::All,
        Group::App,
        ["suspend roctop's screen", ""],
    ),
    row(&[Ctrl('l')], Action::Redraw, Scope::All, Group::App, ["draw anew", ""]),
    row(
        &[Char('?'), Key::F(1)],
        Action::Help,
        Scope::All,
        Group::App,
        ["this help", "help"],
    ),
    row(&[Char('q')], Action::Quit, Scope::All, Group::App, ["quit", "quit"]),
];

/// Whether a scope takes part in a view.
pub fn is_valid(scope: Scope, tab: Tab) -> bool {
    match scope {
        Scope::All => true,
        Scope::Time => matches!(tab, Tab::Timeline | Tab::Overview),
        Scope::Lane => tab == Tab::Timeline,
        Scope::Open => matches!(tab, Tab::Overview | Tab::Timeline | Tab::Kernels),
        Scope::Table => !matches!(tab, Tab::Timeline | Tab::Log),
    }
}

/// What a key does in a view.
pub fn action(tab: Tab, key: Key) -> Option<Action> {
    let mut valid = KEYMAP.iter().filter(|binding| is_valid(binding.scope, tab));
    valid
        .find(|binding| binding.keys.contains(&key))
        .map(|binding| binding.action)
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
}
