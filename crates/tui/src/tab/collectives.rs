//! Collectives: skew, wait, bandwidth and who comes last, by communicator and operation; below, what ranks wait for and
//! the last collectives.

use std::sync::Arc;

use ratatui::layout::Rect;

use crate::jump::Target;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::column::{Column, ColumnId, FILES_ONLY, Shown, Worth};
use crate::widgets::table::{self, Scene, Table};
use crate::{Pane, Size};
use roctop_model::LaneKey;
use roctop_model::analysis::collectives as words;
use roctop_model::collectives::{Absence, Collective, OperationRow, Problem, Times, Waiting};
use roctop_trace::item::{CollectiveOperation as Operation, Span};
use roctop_trace::units;

/// Collectives shown.
const MAX_COLLECTIVES: usize = 500;

pub(crate) struct CollectiveTable;

/// `1: 8 ranks`; with what is recorded of them if that is less.
fn ranks(row: &OperationRow, scene: &Scene<'_>) -> String {
    let found = scene
        .snap
        .values
        .collectives
        .communicators
        .get(row.communicator as usize);
    found.map_or_else(String::new, |found| match found.ranks.len() {
        all if all == found.size as usize => found.size.to_string(),
        some => format!("{some} of {}", found.size),
    })
}

impl Table for CollectiveTable {
    type Row = OperationRow;
    const PANE: Pane = Pane::Collectives;
    const TITLE: &'static str = "Collectives";
    const WHAT: &'static str = "collective";
    const SORT: ColumnId = ColumnId("Skew_ns");
    const NAMES: &'static [&'static str] = &["Communicator"];
    const COLUMNS: &'static [Column<OperationRow>] = &[
        Column {
            title: "OPERATION ",
            name: "Operation",
            width: 0,
            rank: 0,
            worth: |row, _| Worth::text(Some(row.operation.name())),
            text: Shown::Left,
        },
        Column {
            title: "COMM",
            name: "Communicator",
            width: 5,
            rank: 0,
            worth: |row, _| Worth::whole(row.communicator.into()),
            text: Shown::Plain,
        },
        Column {
            title: "RANKS",
            name: "Ranks",
            width: 9,
            rank: 4,
            worth: |row, scene| Worth::Text(ranks(row, scene)),
            text: Shown::Plain,
        },
        Column {
            title: "COUNT",
            name: "Count",
            width: 7,
            rank: 1,
            worth: |row, _| Worth::whole(row.count),
            text: Shown::Count,
        },
        Column::times("SKEW", "Skew_ns", 0, |row, _| Worth::whole(row.mean_skew())),
        Column::times("MAX", "Max_Skew_ns", 1, |row, _| Worth::whole(row.max_skew)),
        Column {
            title: "±CLOCK",
            name: "Clock_Error_ns",
            width: 8,
            rank: 1,
            worth: |row, _| Worth::maybe((row.error != u64::MAX).then_some(row.error)),
            text: Shown::Own(|row, _, _| words::error(row.error)),
        },
        Column {
            title: "LAST RANK",
            name: "Last_Rank",
            width: 12,
            rank: 0,
            worth: |row, _| Worth::maybe(row.latest().map(|latest| latest.0.into())),
            text: Shown::Own(|row, _, _| words::last(row).unwrap_or_else(|| units::MISSING.into())),
        },
        Column::times("WAIT", "Wait_ns", 2, |row, _| Worth::whole(row.wait)),
        Column::times("TRANSFER", "Transfer_ns", 2, |row, _| Worth::whole(row.transfer)),
        Column {
            title: "BYTES",
            name: "Bytes",
            width: 9,
            rank: 5,
            worth: |row, _| Worth::maybe((row.timed > 0).then_some(row.bytes)),
            text: Shown::Bytes,
        },
        Column {
            title: "ALGBW",
            name: "Algorithm_Bandwidth",
            width: 10,
            rank: 4,
            worth: |row, _| Worth::number(row.algorithm_bandwidth()),
            text: Shown::Speed,
        },
        Column {
            title: "BUSBW",
            name: "Bus_Bandwidth",
            width: 10,
            rank: 3,
            worth: |row, _| Worth::number(row.bus_bandwidth()),
            text: Shown::Speed,
        },
        Column {
            title: "",
            name: "Worst",
            width: FILES_ONLY,
            rank: 9,
            worth: |row, _| Worth::whole(row.worst.into()),
            text: Shown::Plain,
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<OperationRow> {
        let rows = scene.snap.values.collectives.operations.iter();
        rows.filter(|row| scene.ui.filter.accepts_text(row.operation.name()))
            .cloned()
            .collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.values.collectives.operations.len()
    }

    fn hint(_: &Scene<'_>) -> Option<&'static str> {
        Some("calls of RCCL and MPI are matched when all ranks are recorded")
    }

    fn least(_: u16) -> u16 {
        14
    }

    fn key(row: &OperationRow) -> u64 {
        u64::from(row.communicator) << 8 | row.operation as u64
    }
}

/// What is in the lower list.
#[derive(Clone)]
pub(crate) enum Row {
    /// Ranks wait.
    Waiting(Waiting),
    /// Something is wrong; its number.
    Problem(usize, Problem),
    /// A complete one.
    Complete(Arc<Collective>, Times),
}

pub(crate) struct CollectiveEventTable;

fn operation(row: &Row) -> Option<Operation> {
    match row {
        Row::Waiting(waiting) => Some(waiting.operation),
        Row::Problem(..) => None,
        Row::Complete(collective, _) => collective.parts.first().map(|part| part.call.operation),
    }
}

fn times(row: &Row) -> Option<&Times> {
    match row {
        Row::Complete(_, times) => Some(times),
        _ => None,
    }
}

fn text(row: &Row, scene: &Scene<'_>) -> String {
    match row {
        Row::Waiting(waiting) => words::missing(scene.snap, waiting),
        Row::Problem(_, problem) => words::problem(scene.snap, problem),
        Row::Complete(collective, _) => words::label(collective.key, operation(row).unwrap_or_default()),
    }
}

/// The text that fits: what is wrong keeps its numbers in few columns.
fn fitting(row: &Row, scene: &Scene<'_>, width: usize) -> String {
    let text = text(row, scene);
    let shorter = match row {
        Row::Waiting(waiting) => words::missing_short(waiting),
        Row::Problem(_, problem) => words::problem_short(problem),
        Row::Complete(..) => return units::cut(&text, width),
    };
    let signed = [Some(text), shorter]
        .into_iter()
        .flatten()
        .map(|text| format!("▲ {text}"));
    let mut last = String::new();
    for text in signed {
        if units::width(&text) <= width {
            return text;
        }
        last = text;
    }
    units::cut(&last, width)
}

/// What the last rank, or the missing one, did instead.
fn instead(row: &Row, scene: &Scene<'_>) -> String {
    match row {
        Row::Waiting(waiting) => {
            let absent = waiting.missing.iter().find(|missing| missing.2 == Absence::Absent);
            let process = absent.and_then(|missing| missing.1);
            process.map_or_else(String::new, |process| words::doing_now(scene.snap, process))
        }
        Row::Problem(..) => String::new(),
        Row::Complete(collective, times) => words::instead(scene.snap, collective, times),
    }
}

impl Table for CollectiveEventTable {
    type Row = Row;
    const PANE: Pane = Pane::CollectiveEvents;
    const TITLE: &'static str = "Waits, mismatches and the last collectives";
    const WHAT: &'static str = "collective";
    const SORT: ColumnId = ColumnId("Begin_ns");
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "WHEN",
            name: "Begin_ns",
            width: 13,
            rank: 1,
            worth: |row, _| match row {
                Row::Waiting(waiting) => Worth::whole(waiting.since),
                Row::Problem(..) => Worth::None,
                Row::Complete(_, times) => Worth::whole(times.first),
            },
            text: Shown::Moment,
        },
        Column {
            title: "WHAT",
            name: "What",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(text(row, scene)),
            text: Shown::Own(fitting),
        },
        Column::times("SKEW", "Skew_ns", 0, |row, scene| match row {
            Row::Waiting(waiting) => Worth::whole(scene.snap.now.saturating_sub(waiting.since)),
            Row::Problem(..) => Worth::None,
            Row::Complete(_, times) => Worth::whole(times.skew()),
        }),
        Column {
            title: "±CLOCK",
            name: "Clock_Error_ns",
            width: 8,
            rank: 2,
            worth: |row, _| Worth::maybe(times(row).map(|times| times.error).filter(|error| *error != u64::MAX)),
            text: Shown::Own(|row, _, _| {
                times(row).map_or_else(|| units::MISSING.into(), |times| words::error(times.error))
            }),
        },
        Column::times("TRANSFER", "Transfer_ns", 3, |row, _| {
            Worth::maybe(times(row).map(Times::transfer))
        }),
        Column {
            title: "BUSBW",
            name: "Bus_Bandwidth",
            width: 10,
            rank: 4,
            worth: |row, _| Worth::number(times(row).and_then(Times::bus_bandwidth)),
            text: Shown::Speed,
        },
        Column {
            title: "LAST",
            name: "Last_Rank",
            width: 5,
            rank: 1,
            worth: |row, _| match row {
                Row::Complete(collective, times) => Worth::maybe(collective.latest(times).map(|part| part.rank.into())),
                _ => Worth::None,
            },
            text: Shown::Plain,
        },
        Column {
            title: "WHICH WAS ",
            name: "Instead",
            width: 44,
            rank: 2,
            worth: |row, scene| Worth::Text(instead(row, scene)),
            text: Shown::Own(|row, scene, width| units::fit(&units::cut(&instead(row, scene), width), width)),
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let found = &scene.snap.values.collectives;
        let waiting = found.waiting.iter().cloned().map(Row::Waiting);
        let problems = found.problems.iter().cloned().enumerate();
        let problems = problems.map(|(at, problem)| Row::Problem(at, problem));
        let complete = found.recent.iter().rev().take(MAX_COLLECTIVES);
        let complete = complete.map(|(collective, times)| Row::Complete(collective.clone(), *times));
        let all = waiting.chain(problems).chain(complete);
        all.filter(|row| operation(row).is_none_or(|operation| scene.ui.filter.accepts_text(operation.name())))
            .collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        let found = &scene.snap.values.collectives;
        found.waiting.len() + found.problems.len() + found.recent.len().min(MAX_COLLECTIVES)
    }

    /// What is wrong stays above.
    fn arrange(mut rows: Vec<Row>, _: &Scene<'_>) -> Vec<Row> {
        rows.sort_by_key(|row| match row {
            Row::Waiting(_) => 0,
            Row::Problem(..) => 1,
            Row::Complete(..) => 2,
        });
        rows
    }

    fn least(width: u16) -> u16 {
        (width / 3).clamp(36, 60)
    }

    fn runs_on(row: &Row) -> bool {
        matches!(row, Row::Problem(..))
    }

    fn key(row: &Row) -> u64 {
        let of = |key: roctop_model::collectives::Key| {
            let pair = key
                .pair
                .map_or(0, |(from, to)| u64::from(from) << 20 | u64::from(to) | 1 << 40);
            u64::from(key.communicator) << 44 ^ u64::from(key.sequence) << 1 ^ pair.rotate_left(13)
        };
        match row {
            Row::Waiting(waiting) => of(waiting.key),
            Row::Problem(at, _) => 1 << 63 | *at as u64,
            Row::Complete(collective, _) => of(collective.key),
        }
    }

    fn role(row: &Row, _: &Scene<'_>) -> Role {
        match row {
            Row::Waiting(_) | Row::Problem(..) => Role::Bad,
            Row::Complete(..) => Role::Text,
        }
    }

    fn target(row: &Row, _: &Scene<'_>) -> Target {
        match row {
            Row::Complete(collective, times) => {
                let part = collective.parts.get(times.latest);
                let lane = part.map(|part| LaneKey::Api(part.call.thread, 0));
                let span = Span {
                    begin: times.first,
                    end: times.end,
                };
                Target::Stretch(lane, span)
            }
            _ => Target::Nowhere("it has not ended"),
        }
    }
}

/// Clocks of several machines as text.
fn clocks(scene: &Scene<'_>) -> String {
    let clocks = &scene.snap.values.collectives.clocks;
    let texts = clocks.iter().map(|clock| {
        let error = clock.error.map_or_else(|| "unknown".into(), units::duration);
        format!("clock of machine {} ±{error}", clock.machine)
    });
    texts.collect::<Vec<_>>().join("   ")
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let clocks = clocks(scene);
    let right = if clocks.is_empty() {
        "skew: from the first to the last arrival".to_owned()
    } else {
        clocks
    };
    if size < Size::Medium {
        table::panel::<CollectiveTable>(canvas, area, scene, Some(right), u8::MAX);
        return;
    }
    let wanted = (CollectiveTable::all(scene) as u16).saturating_add(3);
    let (upper, lower) = top(area, wanted.clamp(6, (area.height / 2).max(6)));
    table::panel::<CollectiveTable>(canvas, upper, scene, Some(right), u8::MAX);
    let unmatched = scene.snap.values.collectives.unmatched;
    let right = match unmatched {
        0 => "enter → timeline".to_owned(),
        some => format!(
            "{} not matched   enter → timeline",
            units::counted(some, "call", "calls")
        ),
    };
    table::panel::<CollectiveEventTable>(canvas, lower, scene, Some(right), u8::MAX);
}
