//! Threads by their time in calls, and the last calls one by one.

use std::collections::HashMap;

use super::api::{name, without_hip};
use super::sites::{self, HasSite};
use super::wall;
use crate::Pane;
use crate::jump::Target;
use crate::launches;
use crate::relation::Kind;
use crate::theme::Role;
use crate::widgets::column::{Column, ColumnId, Heading, Shown, Worth};
use crate::widgets::table::{Scene, Table};
use roctop_model::snapshot::ThreadRow;
use roctop_model::subject::thread_of;
use roctop_model::{LaneKey, Slice};
use roctop_trace::item::{OperationId, TextId};
use roctop_trace::units;

/// Calls looked at, and shown, of each thread.
const SEARCHED_CALLS: usize = 2000;
const MAX_CALLS: usize = 100;

pub(crate) struct ThreadTable;

fn of_wall(nanos: u64, scene: &Scene<'_>) -> f64 {
    nanos as f64 / wall(scene.snap) as f64
}

impl Table for ThreadTable {
    type Row = ThreadRow;
    const PANE: Pane = Pane::Threads;
    const TITLE: &'static str = "Threads";
    const WHAT: &'static str = "thread with API calls";
    const SORT: ColumnId = ColumnId("In_API_Share_of_wall");
    const COLUMNS: &'static [Column<ThreadRow>] = &[
        Column {
            title: "THREAD",
            name: "Thread",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(scene.snap.names.thread_label(row.id)),
            text: Shown::Plain,
        },
        Column {
            title: "IN API",
            name: "In_API_Share_of_wall",
            width: 7,
            rank: 0,
            worth: |row, scene| Worth::Number(of_wall(row.numbers.total, scene)),
            text: Shown::Share,
        },
        Column {
            title: "WAITS",
            name: "Waiting_Share_of_wall",
            width: 7,
            rank: 0,
            worth: |row, scene| Worth::Number(of_wall(row.numbers.blocked, scene)),
            text: Shown::Share,
        },
        Column {
            title: "CALLS",
            name: "Calls",
            width: 8,
            rank: 1,
            worth: |row, _| Worth::whole(row.numbers.calls),
            text: Shown::Count,
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<ThreadRow> {
        scene.snap.values.threads.clone()
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.values.threads.len()
    }

    fn hint(scene: &Scene<'_>) -> Option<&'static str> {
        without_hip(scene)
    }

    fn least(_: u16) -> u16 {
        12
    }

    fn key(row: &ThreadRow) -> u64 {
        u64::from(row.id.0)
    }

    /// To the last call of the function in which it waited most, of the calls that memory holds; else to its last call.
    fn target(row: &ThreadRow, scene: &Scene<'_>) -> Target {
        let key = LaneKey::Api(row.id, 0);
        let Some(lane) = scene.snap.lane(key) else {
            return Target::Nowhere("none of its calls is kept in full any more");
        };
        let mut waits: HashMap<u32, u64> = HashMap::new();
        for slice in lane.recent(usize::MAX) {
            if scene.snap.names.blocks(OperationId(slice.what)) {
                *waits.entry(slice.what).or_default() += slice.span.duration();
            }
        }
        let most = waits.into_iter().max_by_key(|(what, nanos)| (*nanos, *what));
        let is_of = |slice: &&Slice| most.is_none_or(|(what, _)| slice.what == what);
        let last = lane.recent(usize::MAX).find(is_of);
        last.map_or(Target::Nowhere("none of its calls is kept in full any more"), |slice| {
            Target::Slice(key, slice.span.begin)
        })
    }

    fn term(row: &ThreadRow, scene: &Scene<'_>) -> Option<String> {
        Some(format!("tid={}", scene.snap.names.thread(row.id)?.tid))
    }
}

/// A call; one that is open has no end.
#[derive(Clone)]
pub(crate) struct CallRow {
    key: LaneKey,
    slice: Slice,
    is_open: bool,
}

pub(crate) struct CallTable;

impl CallRow {
    /// Of a call that has returned.
    pub(crate) const fn returned(key: LaneKey, slice: Slice) -> Self {
        Self {
            key,
            slice,
            is_open: false,
        }
    }
}

fn nanos(row: &CallRow, scene: &Scene<'_>) -> u64 {
    if row.is_open {
        scene.snap.now.saturating_sub(row.slice.span.begin)
    } else {
        row.slice.span.duration()
    }
}

fn thread(row: &CallRow, scene: &Scene<'_>) -> String {
    thread_of(row.key)
        .map(|thread| scene.snap.names.thread_label(thread))
        .unwrap_or_default()
}

fn result(row: &CallRow, scene: &Scene<'_>) -> String {
    match (row.is_open, row.slice.shape) {
        (true, _) => "open".into(),
        (false, 0) => "ok".into(),
        (false, _) => {
            let operation = OperationId(row.slice.what);
            let error = scene.snap.names.error_label(operation, row.slice.value as u32 as i32);
            format!("▲ {}", error.trim_start_matches("hipError"))
        }
    }
}

/// What it was called with, when that was recorded.
fn arguments<'a>(row: &CallRow, scene: &Scene<'a>) -> &'a str {
    if row.is_open || row.slice.queue == u32::MAX {
        return "";
    }
    scene.snap.names.text(TextId(row.slice.queue))
}

impl HasSite for CallRow {
    fn site(&self, scene: &Scene<'_>) -> Option<String> {
        sites::of_slice(scene.snap, &self.slice)
    }
}

impl Table for CallTable {
    type Row = CallRow;
    const PANE: Pane = Pane::Calls;
    const TITLE: &'static str = "Recent";
    const WHAT: &'static str = "API call";
    const SORT: ColumnId = ColumnId("Begin_ns");
    const COLUMNS: &'static [Column<CallRow>] = &[
        Column {
            title: "WHEN",
            name: "Begin_ns",
            width: 13,
            rank: 0,
            // What is open is younger than all.
            worth: |row, _| Worth::Number(row.slice.span.begin as f64 + if row.is_open { 1e19 } else { 0.0 }),
            text: Shown::Own(|row, scene, _| {
                units::timestamp_short(row.slice.span.begin.saturating_sub(scene.snap.origin))
            }),
        },
        Column {
            title: "THREAD ",
            name: "Thread",
            width: 14,
            rank: 1,
            worth: |row, scene| Worth::Text(thread(row, scene)),
            text: Shown::Left,
        },
        Column {
            title: "CALL",
            name: "Function",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(name(scene, OperationId(row.slice.what)).into()),
            text: Shown::Plain,
        },
        Column {
            title: "TIME",
            name: "Duration_ns",
            width: 8,
            rank: 0,
            worth: |row, scene| Worth::whole(nanos(row, scene)),
            text: Shown::Duration,
        },
        Column {
            title: "RESULT ",
            name: "Result",
            width: 16,
            rank: 0,
            worth: |row, scene| Worth::Text(result(row, scene)),
            text: Shown::Left,
        },
        Column {
            title: "ARGUMENTS ",
            name: "Arguments",
            width: 60,
            rank: 3,
            worth: |row, scene| Worth::Text(arguments(row, scene).into()),
            text: Shown::Left,
        },
        sites::column(4),
    ];

    fn heading(scene: &Scene<'_>, column: ColumnId) -> Heading {
        sites::heading(scene, column)
    }

    fn rows(scene: &Scene<'_>) -> Vec<CallRow> {
        let snap = scene.snap;
        let related = launches::known(scene, Kind::Calls);
        let passes = |key, slice: &Slice| launches::is_listed(scene, related.as_deref(), (key, slice));
        let mut rows = Vec::new();
        for call in snap.open.iter().flat_map(|open| &open.calls) {
            let slice = Slice {
                span: roctop_trace::item::Span {
                    begin: call.span.begin,
                    end: snap.now,
                },
                what: call.operation.0,
                correlation: call.correlation,
                queue: u32::MAX,
                process: call.process.0,
                thread: call.thread.0,
                ..Slice::default()
            };
            rows.push((LaneKey::Api(call.thread, u8::from(call.parent != 0)), slice, true));
        }
        for lane in snap.lanes.iter().filter(|lane| matches!(lane.key, LaneKey::Api(..))) {
            let passing = lane.recent(SEARCHED_CALLS).filter(|slice| passes(lane.key, slice));
            rows.extend(passing.take(MAX_CALLS).map(|slice| (lane.key, *slice, false)));
        }
        rows.retain(|(key, slice, _)| passes(*key, slice));
        let row = |(key, slice, is_open)| CallRow { key, slice, is_open };
        rows.into_iter().map(row).collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.values.totals.calls as usize
    }

    fn hint(scene: &Scene<'_>) -> Option<&'static str> {
        without_hip(scene)
    }

    fn least(_: u16) -> u16 {
        18
    }

    fn key(row: &CallRow) -> u64 {
        row.slice.span.begin ^ u64::from(row.slice.thread) << 50
    }

    fn role(row: &CallRow, _: &Scene<'_>) -> Role {
        match (row.is_open, row.slice.shape) {
            (true, _) => Role::Open,
            (false, 0) => Role::Text,
            (false, _) => Role::Bad,
        }
    }

    fn target(row: &CallRow, _: &Scene<'_>) -> Target {
        if row.is_open {
            Target::Stretch(Some(row.key), row.slice.span)
        } else {
            Target::Slice(row.key, row.slice.span.begin)
        }
    }
}
