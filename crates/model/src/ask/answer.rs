//! An answer: typed columns and rows, the time that they are about, and what limits them.

use super::id::Id;
use crate::Mode;
use crate::analysis::placement::{self, Place};
use crate::snapshot::Snapshot;
use roctop_trace::item::{LossReason, Lost, Nanos, Span};
use serde::{Deserialize, Serialize};

/// Version of the answers' schema, docs/ask.schema.json.
pub const SCHEMA: u32 = 2;

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Texts, some of the traced program.
    Text,
    /// Numbers without unit.
    Number,
    /// How many.
    Count,
    /// Durations, ns.
    Nanos,
    /// Times of CLOCK_BOOTTIME, ns.
    Moment,
    /// Shares of 1.
    Share,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// A number a second.
    PerSecond,
}

impl Unit {
    /// All.
    pub const ALL: [Self; 9] = [
        Self::Text,
        Self::Number,
        Self::Count,
        Self::Nanos,
        Self::Moment,
        Self::Share,
        Self::Bytes,
        Self::BytesPerSecond,
        Self::PerSecond,
    ];

    /// Its word in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Count => "count",
            Self::Nanos => "ns",
            Self::Moment => "boottime_ns",
            Self::Share => "share",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes_per_second",
            Self::PerSecond => "per_second",
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name in files.
    pub name: String,
    /// What it has.
    pub unit: Unit,
    /// The lower, the longer it stays in a narrow table.
    pub rank: u8,
    /// It takes the room that others leave.
    pub is_wide: bool,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Cell {
    /// Not known.
    None,
    /// A number in base units.
    Number(f64),
    /// A text.
    Text(String),
}

impl Cell {
    /// As in files: base units, empty if it is not known.
    pub fn raw(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Number(value) if value.fract() == 0.0 && value.abs() < 9e15 => format!("{}", *value as i64),
            Self::Number(value) => format!("{value:.6}"),
            Self::Text(text) => text.clone(),
        }
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What the screen opens.
    pub id: Option<Id>,
    /// A value for each column.
    pub cells: Vec<Cell>,
}

/// The time that an answer is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Begin and end, CLOCK_BOOTTIME ns.
    pub span: Span,
    /// The time that was asked for, if not all of it is known.
    pub asked: Option<Span>,
    /// Begin of the session.
    pub origin: Nanos,
}

/// What an answer's numbers rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Basis {
    /// All records.
    #[default]
    Records,
    /// The records that are still kept: the others are estimated, or missing.
    Kept,
    /// Sums by second: the window has whole seconds.
    Seconds,
}

impl Basis {
    /// Its word in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Kept => "kept records",
            Self::Seconds => "sums by second",
        }
    }

    /// That of an answer which rests on both.
    #[must_use]
    pub const fn weaker(self, other: Self) -> Self {
        match (self, other) {
            (Self::Records, other) => other,
            (Self::Kept, _) | (_, Self::Kept) => Self::Kept,
            _ => Self::Seconds,
        }
    }
}

/// Records that a process lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Its process id; 0 for what is about a recording as a whole.
    pub pid: u32,
    /// Why.
    pub reason: LossReason,
    /// How many.
    pub records: u64,
}

/// The column that sorts the rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its name.
    pub column: String,
    /// Smallest first.
    pub is_ascending: bool,
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The question, as typed.
    pub question: String,
    /// Title of the session: the command line.
    pub title: String,
    /// Where the records come from.
    pub mode: Mode,
    /// Whether it is put together of the ranks of a job.
    pub is_of_job: bool,
    /// Whether the program goes on.
    pub is_running: bool,
    /// The time that it is about.
    pub window: Window,
    /// What the numbers rest on.
    pub basis: Basis,
    /// Greatest error between the clocks of two machines, ns; `None` if it is not known.
    pub clock_error: Option<u64>,
    /// What was lost in the whole session.
    pub lost: Vec<Loss>,
    /// The columns.
    pub columns: Vec<Column>,
    /// What sorts the rows, if a column does.
    pub order: Option<Order>,
    /// The rows, cut to the limit.
    pub rows: Vec<Row>,
    /// Number of rows without the limit.
    pub count: usize,
    /// What else is to be known, as sentences.
    pub notes: Vec<String>,
    /// What the rows about placement are made of: those of several ranks are judged together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

impl Answer {
    /// An answer about a snapshot as a whole, without rows.
    pub fn about(snap: &Snapshot, question: &str) -> Self {
        let lost = snap.values.processes.iter().flat_map(|row| {
            row.losses().map(|(reason, lost)| Loss {
                pid: if reason.is_of_recording() { 0 } else { row.process.pid },
                reason,
                records: lost.records,
            })
        });
        let clocks = &snap.values.collectives.clocks;
        let errors: Option<Vec<u64>> = clocks.iter().map(|clock| clock.error).collect();
        Self {
            question: question.to_owned(),
            title: snap.title.to_string(),
            mode: snap.mode,
            is_of_job: false,
            is_running: snap.is_running(),
            window: Window {
                span: Span {
                    begin: snap.origin.max(snap.values.counted_from),
                    end: snap.now.max(snap.origin),
                },
                asked: None,
                origin: snap.origin,
            },
            basis: Basis::Records,
            clock_error: errors.map(|mut errors| {
                errors.sort_unstable_by(|a, b| b.cmp(a));
                errors
                    .iter()
                    .take(2)
                    .fold(0, |sum: u64, error| sum.saturating_add(*error))
            }),
            lost: lost.collect(),
            columns: Vec::new(),
            order: None,
            rows: Vec::new(),
            count: 0,
            notes: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Makes the rows about placement, and the notes on them.
    pub fn place(&mut self, limit: usize) {
        self.places.sort_by_key(|place| (place.rank, place.pid));
        let (columns, mut rows, notes) = placement::answer(&self.places);
        self.count = rows.len();
        rows.truncate(limit);
        (self.columns, self.rows, self.notes) = (columns, rows, notes);
        if self.places.is_empty() {
            self.notes
                .push("no process was read: its placement is not known".into());
        }
    }

    /// Number of records lost.
    pub fn lost_records(&self) -> Lost {
        Lost::of(self.lost.iter().map(|loss| (loss.reason, loss.records)))
    }
}
