//! The screen: state ([`Ui`]), what can happen ([`Msg`]), what is to be done ([`Effect`]), [`update`] and [`view`].
//!
//! `update` and `view` are pure: they know a snapshot and no clock, file or terminal. [`run()`] is the only part that acts.

mod act;
pub mod export;
pub mod key;
pub mod keymap;
mod part;
pub mod prompt;
pub mod run;
pub mod screen;
mod subject;
mod tab;
pub mod theme;
pub mod time;

use std::cell::Cell;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub use self::act::update;
pub use self::run::{Flow, run};

use self::key::{Key, Mouse};
use self::part::canvas::{Canvas, top};
use self::part::table::Scene;
use self::part::{footer, header, popup};
use self::prompt::Prompt;
use self::theme::{Role, Theme};
use self::time::Time;
use crate::filter::Filter;
use crate::item::Nanos;
use crate::model::{LaneKey, Mode, Snapshot};

/// A view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tab {
    /// All at a glance.
    #[default]
    Overview,
    /// Lanes of time.
    Timeline,
    /// Kernels.
    Kernels,
    /// Copies.
    Copies,
    /// API calls.
    Api,
    /// Counters.
    Counters,
    /// Devices.
    Devices,
    /// Markers.
    Markers,
    /// Processes.
    Processes,
    /// What the program printed.
    Log,
}

impl Tab {
    /// All views in order.
    pub const ALL: [Self; 10] = [
        Self::Overview,
        Self::Timeline,
        Self::Kernels,
        Self::Copies,
        Self::Api,
        Self::Counters,
        Self::Devices,
        Self::Markers,
        Self::Processes,
        Self::Log,
    ];

    /// Its key and name.
    pub const fn title(self) -> (char, &'static str) {
        match self {
            Self::Overview => ('1', "Overview"),
            Self::Timeline => ('2', "Timeline"),
            Self::Kernels => ('3', "Kernels"),
            Self::Copies => ('4', "Copies"),
            Self::Api => ('5', "API"),
            Self::Counters => ('6', "Counters"),
            Self::Devices => ('7', "Devices"),
            Self::Markers => ('8', "Markers"),
            Self::Processes => ('9', "Processes"),
            Self::Log => ('0', "Log"),
        }
    }
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Less than 40×10: a line.
    Tiny,
    /// Less than 80×24.
    Small,
    /// From 80×24.
    Medium,
    /// From 120×36.
    Large,
}

impl Size {
    /// The class of a terminal.
    pub const fn of(width: u16, height: u16) -> Self {
        if width < 40 || height < 10 {
            Self::Tiny
        } else if width < 80 || height < 24 {
            Self::Small
        } else if width < 120 || height < 36 {
            Self::Medium
        } else {
            Self::Large
        }
    }
}

/// Which column sorts, and which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort {
    /// None: the view's own.
    pub column: Option<usize>,
    /// Smallest first.
    pub ascending: bool,
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

/// Something in front of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popup {
    /// All keys; first line shown.
    Help(u16),
    /// What to do with the program.
    Quit,
    /// A signal for the program.
    Signals,
    /// The program was interrupted twice.
    Interrupted,
}

/// What a table remembers.
#[derive(Clone, Debug, Default)]
pub struct TableState {
    /// Order.
    pub sort: Sort,
    /// Identity of the selected row.
    pub selected: Option<u64>,
    /// Rows stay in this order until then, since the user moves about in them.
    pub held: Option<(Nanos, Arc<[u64]>)>,
    offset: Cell<usize>,
}

/// State of the screen.
#[derive(Clone, Debug, Default)]
pub struct Ui {
    /// View shown.
    pub tab: Tab,
    /// Columns and rows.
    pub size: (u16, u16),
    /// The snapshot that stands while paused.
    pub frozen: Option<Arc<Snapshot>>,
    /// By view.
    pub tables: [TableState; Tab::ALL.len()],
    /// The filter in force.
    pub filter: Filter,
    /// The filter being typed.
    pub prompt: Option<Prompt>,
    /// Filters typed before, youngest last.
    pub history: Vec<String>,
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
    /// Selected lane.
    pub lane: Option<LaneKey>,
    lane_offset: Cell<usize>,
    /// How many lines the log is scrolled back.
    pub scrolled: usize,
    /// A word to the user, and when it was said.
    pub toast: Option<(String, Nanos)>,
    /// When the program was last interrupted from here.
    pub interrupted: Option<Nanos>,
}

/// What can happen.
#[derive(Clone, Debug)]
pub enum Msg {
    /// A key.
    Key(Key),
    /// The mouse.
    Mouse(Mouse),
    /// The terminal has another size now.
    Resize(u16, u16),
    /// A word to the user.
    Say(String),
}

/// What is to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Nothing; said once in each turn of the loop, so that the loop can be stopped.
    Idle,
    /// Interrupt the program (SIGINT to its process group).
    Interrupt,
    /// Send a signal to the program.
    Signal(i32),
    /// Leave the terminal, stop ourselves, come back.
    Suspend,
    /// Write a file.
    Export {
        /// Proposed name.
        name: String,
        /// What is in it.
        bytes: Vec<u8>,
    },
    /// Draw all anew.
    Redraw,
    /// Leave the program alone and quit.
    Detach,
    /// Ask the program to stop (SIGTERM), then quit.
    StopApp,
    /// Quit; the program has ended.
    Quit,
}

impl Ui {
    /// For a source: a recording is looked at as a whole.
    pub fn new(mode: Mode) -> Self {
        let time = match mode {
            Mode::Live => Time::default(),
            Mode::Replay => Time {
                fits: true,
                follows: false,
                ..Time::default()
            },
        };
        Self {
            time,
            logarithmic: true,
            ..Self::default()
        }
    }

    /// The snapshot on screen.
    pub fn shown<'a>(&'a self, latest: &'a Snapshot) -> &'a Snapshot {
        self.frozen.as_deref().unwrap_or(latest)
    }

    /// What the view's table remembers.
    pub fn table(&self) -> &TableState {
        &self.tables[self.tab as usize]
    }

    fn table_mut(&mut self) -> &mut TableState {
        &mut self.tables[self.tab as usize]
    }

    /// Columns that a lane has on screen.
    pub fn lane_columns(&self) -> usize {
        let (width, height) = self.size;
        usize::from(width.saturating_sub(2 + tab::label_columns(Size::of(width, height)))).max(1)
    }
}

/// Draws everything into a buffer of the terminal's size.
pub fn view(ui: &Ui, latest: &Snapshot, theme: &Theme, buffer: &mut Buffer) {
    let area = buffer.area;
    let snap = ui.shown(latest);
    let scene = Scene { ui, snap };
    let mut canvas = Canvas { buffer, theme };
    let size = Size::of(area.width, area.height);
    if size == Size::Tiny {
        let (_, word, _) = header::state(ui, latest);
        let text = format!("roctop: {word}, {}x{} is too small", area.width, area.height);
        canvas.say(area.x, area.y, &text, area.width, Role::Text);
        return;
    }
    let heading = if size == Size::Large { 3 } else { 2 };
    let (head, rest) = top(area, heading);
    header::draw(&mut canvas, head, &scene, latest, size);
    let feet = footer::height(ui, size).min(rest.height);
    let (body, foot) = top(rest, rest.height - feet);
    tab::draw(&mut canvas, body, &scene, size);
    footer::draw(&mut canvas, foot, &scene, size);
    if let Some(shown) = ui.popup {
        popup::draw(
            &mut canvas,
            Rect {
                y: head.bottom(),
                height: rest.height,
                ..area
            },
            &scene,
            shown,
        );
    }
}
