//! The screen: state ([`Ui`]), what can happen ([`Msg`]), what is to be done ([`Effect`]), [`update()`] and [`view`].
//!
//! `update` and `view` are pure: they know a snapshot and no clock, file or terminal. [`run()`] is the only part that acts.
#![forbid(unsafe_code)]

mod actions;
pub mod ask;
mod choice;
pub mod columns;
pub mod compare;
pub mod direction;
mod escalation;
pub mod export;
pub mod frame_pacing;
mod hit_map;
mod jump;
pub mod key;
pub mod keymap;
mod launches;
mod list;
pub mod menu;
mod message;
mod mouse;
mod navigation;
pub mod palette;
pub mod picture;
pub mod prompt;
mod question;
mod relation;
pub mod run;
pub mod screen;
mod size;
pub mod source_text;
pub mod start;
pub mod stretch;
mod tab;
pub mod tally;
pub mod theme;
pub mod throttle;
pub mod time;
mod timeline_nav;
pub mod track;
mod update;
mod views;
pub mod waker;
mod widgets;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub use self::message::{Effect, Msg, Since};
pub use self::run::{Detached, LoopControl, PreviousRun, run};
pub use self::size::Size;
pub use self::tab::{Pane, Tab};
pub use self::update::update;
pub use self::views::View;
pub use self::widgets::column::ColumnId;
pub use self::widgets::marks::Marks;

use self::choice::choices;
use self::compare::Compare;
use self::escalation::Escalation;
use self::hit_map::HitMap;
use self::keymap::Keys;
use self::launches::Launches;
use self::menu::Menu;
use self::navigation::NavigationHistory;
use self::prompt::{Asks, Prompt};
use self::question::Question;
use self::relation::Kind;
use self::source_text::SourceText;
use self::stretch::Stretch;
use self::theme::{Role, Theme};
use self::time::{Range, Time};
use self::track::{Layout, Track};
use self::widgets::canvas::{Canvas, top};
use self::widgets::row_cache::{Basis, RowCache};
use self::widgets::table::Scene;
use self::widgets::{footer, header, popup};
use roctop_model::ask::Id;
use roctop_model::job::{Quantity, RowKind};
use roctop_model::query::Filter;
use roctop_model::recall::Window;
use roctop_model::{LaneKey, Mode, Slice, Snapshot};
use roctop_trace::item::{AgentId, Nanos, Span};
use roctop_trace::units::{self, Unit};

/// How long a program that was interrupted, or asked to stop, may take to end, ns.
pub const DEFAULT_GRACE: u64 = 10_000_000_000;

/// Which column sorts, and which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort {
    /// None: the view's own.
    pub column: Option<ColumnId>,
    /// Smallest first.
    pub ascending: bool,
    /// The column that sorted before, and which way: it decides between equals.
    pub then: Option<(ColumnId, bool)>,
}

/// Form of kernel names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameForm {
    /// Without return type, arguments, namespaces.
    #[default]
    Short,
    /// Demangled, whole.
    Full,
    /// As in the code object.
    Mangled,
}

impl NameForm {
    /// The one after it.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Short => Self::Full,
            Self::Full => Self::Mangled,
            Self::Mangled => Self::Short,
        }
    }
}

/// Something in front of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Popup {
    /// All keys; first line shown.
    Help(u16),
    /// Which columns the list has.
    Columns,
    /// Choices that act on the program.
    Menu(Menu),
}

/// When the terminal was read last.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    at: Nanos,
    /// Several keys came at once.
    is_burst: bool,
}

/// What is looked for in the help.
#[derive(Clone, Debug, Default)]
pub struct HelpSearch {
    /// A part of what it has.
    pub text: String,
    /// Keys go to the text.
    pub is_typed: bool,
}

/// By what kernels are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// By name: a row for each kernel.
    #[default]
    Name,
    /// By stream.
    Stream,
    /// By GPU.
    Agent,
    /// By process.
    Process,
    /// By the ROC-TX range in which they were launched.
    Marker,
}

choices!(Grouping: Name "name" Stream "stream" Agent "agent" Process "process" Marker "marker");

impl Grouping {
    /// Its word on screen.
    pub(crate) fn heading(self) -> &'static str {
        if self == Self::Agent { "GPU" } else { self.word() }
    }
}

/// How call sites are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SiteGrouping {
    /// By the whole call path.
    #[default]
    Path,
    /// By file and line of the innermost function that was written by hand.
    Line,
    /// By that function.
    Function,
    /// By its source file.
    File,
    /// By the program or library that has it.
    Library,
    /// By PyTorch's operator.
    Operator,
    /// By the classes of PyTorch's modules around the call.
    Module,
}

choices!(
    SiteGrouping: Path "path" Line "line" Function "function" File "file" Library "library" Operator "operator"
    Module "module"
);

/// What a table remembers.
#[derive(Clone, Debug, Default)]
pub struct TableState {
    /// Order.
    pub sort: Sort,
    /// Identity of the selected row.
    pub selected: Option<u64>,
    /// Rows stay in this order until then, since the user moves about in them.
    pub held: Option<(Nanos, Arc<[u64]>)>,
    /// The columns that were chosen, in their order; none: all that there is room for.
    pub columns: Option<Vec<ColumnId>>,
    /// Its rows as they were sorted last.
    kept: RowCache,
    /// The columns that were drawn last.
    shown: RefCell<Vec<ColumnId>>,
    offset: Cell<usize>,
}

impl TableState {
    /// The first row that was drawn last.
    pub(crate) fn first_row(&self) -> usize {
        self.offset.get()
    }
}

/// What the user chose for the screen, by settings, keys or commands. It stays when the program is run again.
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the user")]
#[derive(Clone, Debug)]
pub struct Prefs {
    /// Form of names.
    pub names: NameForm,
    /// Histogram with equal ratios.
    pub logarithmic: bool,
    /// How the work of GPUs is laid out in rows.
    pub layout: Layout,
    /// By what kernels are put together.
    pub grouping: Grouping,
    /// How call sites are grouped.
    pub sites_by: SiteGrouping,
    /// How many functions of the selected call path the flame graph is zoomed in by.
    pub flame_zoom: usize,
    /// By what ranks of a job are put in rows; none: by rank if they are few, else by node.
    pub job_rows: Option<RowKind>,
    /// What of the ranks of a job is shown over time.
    pub quantity: Quantity,
    /// Markers as a list, not as a tree.
    pub flat: bool,
    /// Which of the possible steps are shown.
    pub stepped: usize,
    /// The hint bar is hidden.
    pub bare: bool,
    /// One list of each view, however large the terminal is.
    pub is_compact: bool,
    /// The unit of times in lists; none: what fits each.
    pub unit: Option<Unit>,
    /// What charts are drawn with.
    pub marks: Marks,
    /// Frames a second at most; none: as many as are usual.
    pub rate: Option<u32>,
    /// Keys in force.
    pub keys: Keys,
    /// Filters by name: name, filter.
    pub presets: Vec<(String, String)>,
    /// Filters typed before, youngest last.
    pub history: Vec<String>,
    /// Commands typed before, youngest last.
    pub commands: Vec<String>,
    /// How long the program may take to end when it was asked to, ns.
    pub grace: u64,
    /// What of the program is not here.
    pub detached: Detached,
}

impl Default for Prefs {
    fn default() -> Self {
        Self {
            names: NameForm::default(),
            logarithmic: true,
            layout: Layout::default(),
            grouping: Grouping::default(),
            sites_by: SiteGrouping::default(),
            flame_zoom: 0,
            job_rows: None,
            quantity: Quantity::default(),
            flat: false,
            stepped: 0,
            bare: false,
            is_compact: false,
            unit: None,
            marks: Marks::default(),
            rate: None,
            keys: Keys::default(),
            presets: Vec::new(),
            history: Vec::new(),
            commands: Vec::new(),
            grace: DEFAULT_GRACE,
            detached: Detached::default(),
        }
    }
}

/// The view of the program's output.
#[derive(Clone, Debug, Default)]
pub struct LogView {
    /// How many lines it is scrolled back.
    pub scrolled: usize,
    /// Columns of its lines that are left out on the left.
    pub shifted: usize,
    /// What is looked for in it, in the language of filters.
    pub search: Filter,
    /// The line that was found: the very line, so that it stays when others come.
    found: Option<Arc<str>>,
}

/// The program that is shown, as far as the user acts on it.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Who ended it, in words.
    pub fate: Option<String>,
    /// When it was last interrupted from here.
    pub interrupted: Option<Nanos>,
    /// What is sent to it if it goes on after it was interrupted.
    pub escalation: Option<Escalation>,
    /// What is typed goes to it.
    pub typing: bool,
}

/// State of the screen.
#[derive(Clone, Debug, Default)]
pub struct Ui {
    /// What the user chose.
    pub prefs: Prefs,
    /// View shown.
    pub tab: Tab,
    /// Columns and rows.
    pub size: (u16, u16),
    /// By list.
    pub tables: [TableState; Pane::ALL.len()],
    /// Which list of the view the keys go to.
    pub focus: usize,
    /// The filter in force.
    pub filter: Filter,
    /// The filter or command being typed.
    pub prompt: Option<Prompt>,
    /// In front.
    pub popup: Option<Popup>,
    /// An act that waits for enter.
    pub question: Option<Question>,
    read: Read,
    /// What is looked for in the help.
    pub help: HelpSearch,
    /// The program's output.
    pub log: LogView,
    /// The program.
    pub program: Program,
    /// The snapshot that stands while paused.
    pub frozen: Option<Arc<Snapshot>>,
    /// The numbers to compare with.
    pub baseline: Option<Arc<Snapshot>>,
    /// What is compared.
    pub compare: Compare,
    compared: RefCell<Option<(tab::diff::Basis, Arc<tab::diff::Compared>)>>,
    /// Window on time.
    pub time: Time,
    /// Selected slice: lane and begin.
    pub slice: Option<(LaneKey, Nanos)>,
    /// Selected row of the timeline.
    pub track: Option<Track>,
    track_offset: Cell<usize>,
    /// Selected stretch without work, in the selected row.
    pub gap: Option<Span>,
    /// The range that is measured.
    pub range: Option<Range>,
    /// Marks in time, in order.
    pub marks: Vec<Nanos>,
    /// GPUs whose rows are folded into one.
    pub folded: Vec<AgentId>,
    /// Alerts that are muted, by identity.
    pub muted: Vec<u64>,
    history: NavigationHistory,
    related: RefCell<Option<Related>>,
    launches: RefCell<Vec<Counted>>,
    instances: RefCell<Option<tab::instances::Found>>,
    /// Selected durations of a kernel.
    pub stretch: Option<Stretch>,
    /// What to go to, as soon as it is known.
    pub at: Option<Id>,
    /// A recording is made there.
    pub recording: Option<String>,
    /// All counters, once that was asked.
    pub counters: Arc<[String]>,
    /// What roctop itself takes, when that is known.
    pub own: Option<Own>,
    /// How old what is on screen is, when that is worth a word, ns.
    pub lag: Option<Nanos>,
    /// A word to the user, and when it was said.
    pub toast: Option<(String, Nanos)>,
    /// The window on screen, if the past in it has to be read back.
    past: Cell<Option<Window>>,
    /// Lines of source files, and those that are wanted.
    pub source: SourceText,
    hits: HitMap,
    pressed: Option<(u16, u16)>,
    leads: bool,
}

/// A slice and what belongs to it.
type Related = ((LaneKey, Nanos), Vec<(LaneKey, Slice)>);

/// What passes the filter of one kind, and of which numbers.
type Counted = (Kind, Basis, Arc<Launches>);

/// What roctop itself takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Own {
    /// Of one core, in per cent.
    pub share: f64,
    /// The divisor of the frame rate: roctop took too much of a core.
    pub slowed: u32,
    /// Bytes a second to the terminal.
    pub wire: f64,
}

impl Ui {
    /// For a source: a recording is looked at as a whole.
    pub fn new(mode: Mode) -> Self {
        let time = match mode {
            Mode::Live => Time::default(),
            Mode::Replay => Time {
                is_work: true,
                follows: false,
                ..Time::default()
            },
        };
        Self {
            time,
            ..Self::default()
        }
    }

    /// For another run of the same program, which is compared with the numbers of the last one: what the user chose stays,
    /// and everything else starts again.
    #[must_use]
    pub fn for_next_run(self, last: Arc<Snapshot>) -> Self {
        let tables = self.tables.map(|table| TableState {
            selected: None,
            held: None,
            ..table
        });
        Self {
            prefs: self.prefs,
            tab: self.tab,
            size: self.size,
            tables,
            focus: self.focus,
            filter: self.filter,
            prompt: self.prompt,
            log: LogView {
                search: self.log.search,
                ..LogView::default()
            },
            baseline: Some(last),
            time: Time {
                width: self.time.width,
                motion: self.time.motion,
                usual: self.time.usual,
                ..Time::default()
            },
            counters: self.counters,
            own: self.own,
            ..Self::default()
        }
    }

    /// The snapshot on screen.
    pub fn shown<'a>(&'a self, latest: &'a Snapshot) -> &'a Snapshot {
        self.frozen.as_deref().unwrap_or(latest)
    }

    /// The same, to be kept while the state changes.
    pub(crate) fn standing(&self, latest: &Arc<Snapshot>) -> Arc<Snapshot> {
        self.frozen.as_ref().unwrap_or(latest).clone()
    }

    /// Says a word to the user.
    pub(crate) fn say(&mut self, snap: &Snapshot, text: &str) {
        self.toast = Some((text.to_string(), snap.now));
    }

    /// A duration in a list, in the unit that was chosen.
    pub(crate) fn duration(&self, nanos: u64) -> String {
        match self.prefs.unit {
            None => units::duration(nanos),
            Some(unit) => units::duration_in(nanos, unit),
        }
    }

    /// How much room views take.
    pub fn room(&self) -> Size {
        let size = Size::of(self.size.0, self.size.1);
        if self.prefs.is_compact {
            size.min(Size::Small)
        } else {
            size
        }
    }

    /// The lists of the view that are shown.
    pub fn lists(&self) -> &'static [Pane] {
        self.tab.row().lists(self.room())
    }

    /// The list that has the focus.
    pub fn pane(&self) -> Option<Pane> {
        let panes = self.lists();
        panes.get(self.focus.min(panes.len().saturating_sub(1))).copied()
    }

    /// What the list that has the focus remembers.
    pub fn table(&self) -> Option<&TableState> {
        self.pane().map(|pane| &self.tables[pane as usize])
    }

    fn table_mut(&mut self) -> Option<&mut TableState> {
        self.pane().map(|pane| &mut self.tables[pane as usize])
    }

    /// Shows a view; the first of its lists gets the focus.
    fn show(&mut self, tab: Tab) {
        if self.tab != tab {
            self.tab = tab;
            self.focus = 0;
        }
    }

    /// Gives a list of the view the focus.
    fn focus_on(&mut self, pane: Pane) {
        if let Some(at) = self.lists().iter().position(|&known| known == pane) {
            self.focus = at;
        }
    }

    /// Columns that a lane has on screen.
    pub fn lane_columns(&self) -> usize {
        usize::from(self.size.0.saturating_sub(2 + tab::label_columns(self.room()))).max(1)
    }
}

/// Says that a terminal is too small, and what is needed.
fn too_small(canvas: &mut Canvas<'_>, area: Rect, called: &str) {
    for (y, line) in (area.y..).zip(size::too_small(area.width, area.height, called)) {
        canvas.say(area.x, y, &line, area.width, Role::Text);
    }
}

/// Draws everything into a buffer of the terminal's size.
pub fn view(ui: &Ui, latest: &Snapshot, theme: &Theme, buffer: &mut Buffer) {
    let area = buffer.area;
    let snap = ui.shown(latest);
    let scene = Scene { ui, snap };
    ui.hits.clear();
    ui.past.set(None);
    let mut canvas = Canvas { buffer, theme };
    let size = ui.room();
    if size == Size::Tiny {
        let (_, word, _) = header::state(ui, latest);
        too_small(&mut canvas, area, &format!("roctop: {word}"));
        return;
    }
    let heading = if size == Size::Large { 3 } else { 2 };
    let (head, rest) = top(area, heading);
    let feet = footer::height(&scene, size).min(rest.height);
    let (body, foot) = top(rest, rest.height - feet);
    (ui.tab.row().draw)(&mut canvas, body, &scene, size);
    // The heading says what the filter did in the view.
    header::draw(&mut canvas, head, &scene, latest, size);
    footer::draw(&mut canvas, foot, &scene, size);
    if let Some(prompt) = ui.prompt.as_ref().filter(|prompt| prompt.asks == Asks::Command) {
        footer::prompt::list(&mut canvas, body, &scene, prompt);
    }
    ui.tables.iter().for_each(|table| table.kept.drawn());
    if let Some(shown) = &ui.popup {
        popup::draw(
            &mut canvas,
            Rect {
                y: head.bottom(),
                height: rest.height,
                ..area
            },
            &scene,
            latest,
            shown,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_run_keeps_choices_and_forgets_the_program() {
        let mut ui = Ui::new(Mode::Live);
        ui.prefs.grouping = Grouping::Stream;
        ui.filter = Filter::parse("gemm").expect("it is a filter");
        ui.tables[Pane::Kernels as usize].selected = Some(3);
        ui.tables[Pane::Kernels as usize].sort.ascending = true;
        (ui.tab, ui.size, ui.time.width) = (Tab::Kernels, (80, 24), 77);
        ui.program.typing = true;
        ui.program.fate = Some("SIGINT".into());
        (ui.marks, ui.log.scrolled) = (vec![1], 5);
        let last = Arc::new(Snapshot::default());
        let next = ui.for_next_run(last.clone());
        assert_eq!(next.prefs.grouping, Grouping::Stream);
        assert_eq!(
            (next.filter.source.as_ref(), next.tab, next.size),
            ("gemm", Tab::Kernels, (80, 24))
        );
        let kernels = &next.tables[Pane::Kernels as usize];
        assert_eq!((kernels.selected, kernels.sort.ascending), (None, true));
        assert_eq!((next.time.width, next.time.follows), (77, true));
        assert!(next.baseline.is_some_and(|baseline| Arc::ptr_eq(&baseline, &last)));
        assert!(!next.program.typing && next.program.fate.is_none());
        assert!(next.marks.is_empty() && next.log.scrolled == 0);
    }
}
