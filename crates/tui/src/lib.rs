//! The screen: state ([`Ui`]), what can happen ([`Msg`]), what is to be done ([`Effect`]), [`update()`] and [`view`].
//!
//! `update` and `view` are pure: they know a snapshot and no clock, file or terminal. [`run()`] is the only part that acts.
#![forbid(unsafe_code)]

mod actions;
mod choice;
pub mod columns;
pub mod direction;
mod escalation;
pub mod export;
mod filterable;
pub mod frame_pacing;
mod hit_map;
mod jump;
pub mod key;
pub mod keymap;
mod list;
pub mod list_id;
mod message;
mod mouse;
pub mod palette;
pub mod picture;
pub mod prompt;
pub mod run;
pub mod screen;
mod tab;
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
pub use self::run::{Away, Flow, Left, run};
pub use self::update::update;
pub use self::views::{Size, Tab};

use self::choice::choices;
use self::escalation::Escalation;
use self::hit_map::Hits;
use self::jump::Jumps;
use self::keymap::Keys;
use self::list_id::Pane;
use self::prompt::Prompt;
use self::theme::{Role, Theme};
use self::time::{Range, Time};
use self::track::{Layout, Track};
use self::widgets::canvas::{Canvas, top};
use self::widgets::kept::Kept;
use self::widgets::table::Scene;
use self::widgets::{footer, header, popup};
use roctop_model::query::Filter;
use roctop_model::{LaneKey, Mode, Slice, Snapshot};
use roctop_trace::item::{AgentId, Nanos, Span};
use roctop_trace::units::{self, Unit};

/// How long a program that was interrupted, or asked to stop, may take to end, ns.
pub const GRACE: u64 = 10_000_000_000;

/// Which column sorts, and which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort {
    /// None: the view's own.
    pub column: Option<usize>,
    /// Smallest first.
    pub ascending: bool,
    /// The column that sorted before, and which way: it decides between equals.
    pub then: Option<(usize, bool)>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popup {
    /// All keys; first line shown.
    Help(u16),
    /// What to do with the program.
    Quit,
    /// A signal for the program.
    Signals,
    /// Which columns the list has.
    Columns,
    /// The program was interrupted twice: what comes next, and when.
    Interrupted,
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
    pub columns: Option<Vec<usize>>,
    /// Its rows as they were sorted last.
    kept: Kept,
    /// The columns that were drawn last.
    shown: RefCell<Vec<usize>>,
    offset: Cell<usize>,
}

/// State of the screen.
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the user")]
#[derive(Clone, Debug, Default)]
pub struct Ui {
    /// View shown.
    pub tab: Tab,
    /// Columns and rows.
    pub size: (u16, u16),
    /// The snapshot that stands while paused.
    pub frozen: Option<Arc<Snapshot>>,
    /// By list.
    pub tables: [TableState; Pane::COUNT],
    /// Which list of the view the keys go to.
    pub focus: usize,
    /// The filter in force.
    pub filter: Filter,
    /// The filter or command being typed.
    pub prompt: Option<Prompt>,
    /// Filters typed before, youngest last.
    pub history: Vec<String>,
    /// Commands typed before, youngest last.
    pub commands: Vec<String>,
    /// In front.
    pub popup: Option<Popup>,
    /// Form of names.
    pub names: NameForm,
    /// Histogram with equal ratios.
    pub logarithmic: bool,
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
    /// How the work of GPUs is laid out in rows.
    pub layout: Layout,
    /// GPUs whose rows are folded into one.
    pub folded: Vec<AgentId>,
    /// By what kernels are put together.
    pub grouping: Grouping,
    /// Markers as a tree.
    pub flat: bool,
    /// Which of the possible steps are shown.
    pub stepped: usize,
    /// The numbers to compare with.
    pub baseline: Option<Arc<Snapshot>>,
    /// The hint bar is hidden.
    pub bare: bool,
    /// One list of each view, however large the terminal is.
    pub is_compact: bool,
    /// The unit of times in lists; none: what fits each.
    pub unit: Option<Unit>,
    /// Frames a second at most; none: as many as are usual.
    pub rate: Option<u32>,
    /// A recording is made there.
    pub recording: Option<String>,
    /// Keys in force.
    pub keys: Keys,
    /// Filters by name: name, filter.
    pub presets: Vec<(String, String)>,
    /// All counters, once that was asked.
    pub counters: Arc<[String]>,
    /// What roctop itself takes, when that is known.
    pub own: Option<Own>,
    /// How old what is on screen is, when that is worth a word, ns.
    pub lag: Option<Nanos>,
    jumps: Jumps,
    related: RefCell<Option<Related>>,
    hits: Hits,
    pressed: Option<(u16, u16)>,
    leads: bool,
    /// How many lines the log is scrolled back.
    pub scrolled: usize,
    /// Columns of the log's lines that are left out on the left.
    pub shifted: usize,
    /// Who ended the program, in words.
    pub fate: Option<String>,
    /// What is looked for in the log, in the language of filters.
    pub search: Filter,
    /// The line that was found: the very line, so that it stays when others come.
    found: Option<Arc<str>>,
    /// A word to the user, and when it was said.
    pub toast: Option<(String, Nanos)>,
    /// When the program was last interrupted from here.
    pub interrupted: Option<Nanos>,
    /// What is sent to a program that goes on after it was interrupted.
    pub escalation: Option<Escalation>,
    /// How long it may take to end, ns.
    pub grace: u64,
    /// What is typed goes to the program.
    pub typing: bool,
    /// What of the program is not here.
    pub away: Away,
}

/// A slice and what belongs to it.
type Related = ((LaneKey, Nanos), Vec<(LaneKey, Slice)>);

/// What roctop itself takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Own {
    /// Of one core, in per cent.
    pub share: f64,
    /// Frames are drawn so many times less often than usual, since it was too much.
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
            logarithmic: true,
            grace: GRACE,
            ..Self::default()
        }
    }

    /// For another run of the same program, which is compared with the numbers of the last one.
    #[must_use]
    pub fn again(self, last: Arc<Snapshot>) -> Self {
        let tables = self.tables.map(|table| TableState {
            selected: None,
            held: None,
            ..table
        });
        Self {
            tables,
            baseline: Some(last),
            frozen: None,
            time: Time {
                width: self.time.width,
                motion: self.time.motion,
                usual: self.time.usual,
                ..Time::default()
            },
            slice: None,
            track: None,
            gap: None,
            range: None,
            marks: Vec::new(),
            folded: Vec::new(),
            jumps: Jumps::default(),
            related: RefCell::default(),
            scrolled: 0,
            shifted: 0,
            found: None,
            fate: None,
            toast: None,
            popup: None,
            interrupted: None,
            escalation: None,
            typing: false,
            recording: None,
            ..self
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
        match self.unit {
            None => units::duration(nanos),
            Some(unit) => units::duration_in(nanos, unit),
        }
    }

    /// How much room views take.
    pub fn room(&self) -> Size {
        let size = Size::of(self.size.0, self.size.1);
        if self.is_compact { size.min(Size::Small) } else { size }
    }

    /// The list that has the focus.
    pub fn pane(&self) -> Option<Pane> {
        let panes = Pane::of(self.tab, self.room());
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
        let panes = Pane::of(self.tab, self.room());
        if let Some(at) = panes.iter().position(|&known| known == pane) {
            self.focus = at;
        }
    }

    /// Columns that a lane has on screen.
    pub fn lane_columns(&self) -> usize {
        usize::from(self.size.0.saturating_sub(2 + tab::label_columns(self.room()))).max(1)
    }
}

/// Draws everything into a buffer of the terminal's size.
pub fn view(ui: &Ui, latest: &Snapshot, theme: &Theme, buffer: &mut Buffer) {
    let area = buffer.area;
    let snap = ui.shown(latest);
    let scene = Scene { ui, snap };
    ui.hits.clear();
    let mut canvas = Canvas { buffer, theme };
    let size = ui.room();
    if size == Size::Tiny {
        let (_, word, _) = header::state(ui, latest);
        let text = match area.width {
            34.. => format!("roctop: {word}, {}x{} is too small", area.width, area.height),
            _ => format!("{word}: too small"),
        };
        canvas.say(area.x, area.y, &text, area.width, Role::Text);
        return;
    }
    let heading = if size == Size::Large { 3 } else { 2 };
    let (head, rest) = top(area, heading);
    header::draw(&mut canvas, head, &scene, latest, size);
    let feet = footer::height(&scene, size).min(rest.height);
    let (body, foot) = top(rest, rest.height - feet);
    tab::draw(&mut canvas, body, &scene, size);
    footer::draw(&mut canvas, foot, &scene, size);
    ui.tables.iter().for_each(|table| table.kept.drawn());
    if let Some(shown) = ui.popup {
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
