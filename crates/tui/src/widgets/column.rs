//! A column of a table: what a row is worth in it, how that is written, and which columns fit.

use std::cmp::Ordering;

use super::table::Scene;
use roctop_model::ask::{Cell, Unit};
use roctop_trace::units;

/// Columns of numbers without unit that the screen writes in another way.
const NUMBERS: [&str; 15] = [
    "Pid",
    "Rank",
    "Process_Id",
    "Spills",
    "Step",
    "Absolute",
    "Communicator",
    "Last_Rank",
    "Worst",
    "Is_estimate",
    "Is_Slow",
    "Is_least",
    "Kind",
    "Rule",
    "Device",
];

/// What a row is worth in a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Worth {
    None,
    Number(f64),
    Text(String),
}

impl Worth {
    pub(crate) fn whole(value: u64) -> Self {
        Self::Number(value as f64)
    }
    pub(crate) fn maybe(value: Option<u64>) -> Self {
        value.map_or(Self::None, Self::whole)
    }
    pub(crate) fn number(value: Option<f64>) -> Self {
        value.map_or(Self::None, Self::Number)
    }
    pub(crate) fn text(value: Option<impl Into<String>>) -> Self {
        value.map_or(Self::None, |text| Self::Text(text.into()))
    }

    /// Ascending; what is not known is the least. Of texts A is the greatest, so that lists begin with it as with the
    /// greatest number.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => b.cmp(a),
            (Self::None, Self::None) => Ordering::Equal,
            (Self::None, _) | (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (_, Self::None) | (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }

    pub(crate) fn raw(&self) -> String {
        Cell::from(self.clone()).raw()
    }
}

impl From<Worth> for Cell {
    fn from(worth: Worth) -> Self {
        match worth {
            Worth::None => Self::None,
            Worth::Number(value) => Self::Number(value),
            Worth::Text(text) => Self::Text(text),
        }
    }
}

/// A column of a list, by its name in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnId(pub(crate) &'static str);

impl ColumnId {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// A column.
pub(crate) struct Column<R: 'static> {
    /// Heading.
    pub(crate) title: &'static str,
    /// Heading in files: base units.
    pub(crate) name: &'static str,
    /// Columns on screen; 0 takes what is left.
    pub(crate) width: u16,
    /// The lower, the longer it stays when room is short.
    pub(crate) rank: u8,
    /// For sorting and files.
    pub(crate) worth: fn(&R, &Scene<'_>) -> Worth,
    /// On screen.
    pub(crate) text: Shown<R>,
}

/// The width of a column that is in files alone: no screen has room for it.
pub(crate) const FILES_ONLY: u16 = 4096;

/// How what a row is worth is written on screen. What is not known has a sign, and no text where texts are.
pub(crate) enum Shown<R: 'static> {
    /// As it is: a whole number or a text.
    Plain,
    /// A text to the left of its column.
    Left,
    /// How many there are.
    Count,
    /// Nanoseconds, in the unit that was chosen.
    Duration,
    /// Nanoseconds of CLOCK_BOOTTIME, since the begin.
    Moment,
    /// A share of 1, in per cent.
    Share,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    Speed,
    /// A number a second.
    Rate,
    /// Something else, for the columns of the screen that it has.
    Own(fn(&R, &Scene<'_>, usize) -> String),
}

impl<R: 'static> Column<R> {
    pub(crate) const fn id(&self) -> ColumnId {
        ColumnId(self.name)
    }

    /// A column of times, ns.
    pub(crate) const fn times(
        title: &'static str,
        name: &'static str,
        rank: u8,
        worth: fn(&R, &Scene<'_>) -> Worth,
    ) -> Self {
        Self {
            title,
            name,
            width: 8,
            rank,
            worth,
            text: Shown::Duration,
        }
    }

    /// What it has in answers.
    pub(crate) fn unit(&self) -> Unit {
        match self.text {
            Shown::Count => Unit::Count,
            Shown::Duration => Unit::Nanos,
            Shown::Moment => Unit::Moment,
            Shown::Share => Unit::Share,
            Shown::Bytes => Unit::Bytes,
            Shown::Speed => Unit::BytesPerSecond,
            Shown::Rate => Unit::PerSecond,
            Shown::Left => Unit::Text,
            // Their names say it.
            Shown::Plain | Shown::Own(_) => match self.name {
                "Begin_ns" => Unit::Moment,
                "Calls" | "Copies" | "Errors" | "Kernels" | "Records" | "Waits_for_GPU" => Unit::Count,
                name if name.ends_with("_ns") => Unit::Nanos,
                name if name.ends_with("Bytes") || name.starts_with("Bytes") => Unit::Bytes,
                name if name.ends_with("_Bps") || name.ends_with("Bandwidth") => Unit::BytesPerSecond,
                name if name.contains("Share") || matches!(name, "Change" | "Noise" | "Difference_to_median") => {
                    Unit::Share
                }
                name if NUMBERS.contains(&name) => Unit::Number,
                _ => Unit::Text,
            },
        }
    }

    /// What is on screen for a row, in `width` columns.
    pub(crate) fn shown(&self, row: &R, scene: &Scene<'_>, width: usize) -> String {
        if let Shown::Own(text) = self.text {
            return text(row, scene, width);
        }
        let value = match (self.worth)(row, scene) {
            Worth::Number(value) => value,
            Worth::Text(text) if matches!(self.text, Shown::Left) => return units::fit(&text, width),
            Worth::Text(text) => return text,
            Worth::None if matches!(self.text, Shown::Left) => return units::fit("", width),
            Worth::None => return units::MISSING.into(),
        };
        let whole = value as u64;
        match self.text {
            Shown::Count => units::count(whole),
            Shown::Duration => scene.ui.duration(whole),
            Shown::Moment => units::timestamp_short(whole.saturating_sub(scene.snap.origin)),
            Shown::Share => units::percent(value),
            Shown::Bytes => units::bytes(whole),
            Shown::Speed => units::bandwidth(value),
            Shown::Rate => units::rate(value),
            Shown::Plain | Shown::Left | Shown::Own(_) => whole.to_string(),
        }
    }
}

/// A column's heading, where it depends on what there is.
pub(crate) enum Heading {
    /// As the column says.
    Usual,
    /// This.
    Text(String),
    /// There is no such column now.
    Absent,
}

/// The columns that fit, each with its width (`wide` of those that have one), in their order. The first of those that were chosen stay when room is short;
/// none chosen: those of the lowest ranks, up to `rank`.
pub(super) fn layout<R>(
    columns: &'static [Column<R>],
    here: &dyn Fn(ColumnId) -> bool,
    wide: &dyn Fn(&Column<R>) -> u16,
    chosen: Option<&[ColumnId]>,
    width: u16,
    least: u16,
    rank: u8,
) -> Vec<(&'static Column<R>, u16)> {
    let flexible = |column: &Column<R>| column.width == 0;
    // In the order in which they get room, each with its place in the order of the screen.
    let mut order: Vec<(usize, &Column<R>)> = if let Some(chosen) = chosen {
        let known = |id: &ColumnId| columns.iter().find(|column| column.id() == *id);
        chosen.iter().filter_map(known).enumerate().collect()
    } else {
        let mut ranked: Vec<_> = columns.iter().enumerate().collect();
        ranked.retain(|(_, column)| column.rank <= rank);
        ranked.sort_by_key(|(_, column)| column.rank);
        ranked
    };
    order.retain(|(_, column)| here(column.id()));
    let mut left = width.saturating_sub(3);
    let mut shown = Vec::new();
    for (place, column) in order {
        let takes = if flexible(column) { least } else { wide(column) + 1 };
        if takes <= left {
            left -= takes;
            shown.push((place, column));
        } else if flexible(column) {
            shown.push((place, column));
            left = 0;
        }
    }
    shown.sort_by_key(|(place, _)| *place);
    let grown = (least + left).min(width.saturating_sub(3));
    let width = |column: &Column<R>| if flexible(column) { grown } else { wide(column) };
    shown.into_iter().map(|(_, column)| (column, width(column))).collect()
}
