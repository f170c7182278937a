//! What runs now, or what hangs: kernels in flight, calls that have not returned, ranges that are open, and per queue
//! what came last. Most work takes less time than there is between two frames, so what was open when it was last looked at
//! is shown, also when it has ended since.

use std::collections::{HashMap, HashSet};

use ratatui::layout::Rect;

use crate::Pane;
use crate::jump::Target;
use crate::theme::Role;
use crate::widgets::activity;
use crate::widgets::canvas::Canvas;
use crate::widgets::column::{Column, ColumnId, Shown, Worth};
use crate::widgets::panes::{list_and_detail, tiles};
use crate::widgets::table::{self, Scene, Table};
use crate::{NameForm, Size};
use roctop_model::query::{Field, Subject, Value};
use roctop_model::{LaneKey, Snapshot};
use roctop_trace::item::{ApiCall, Dispatch, KernelId, Nanos, Open, ProcessId, QueueId, ThreadId};
use roctop_trace::units;

/// Dispatches in flight that are listed, per process.
const MAX_DISPATCHES: usize = 500;

/// What kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The oldest kernel in flight of its queue.
    Oldest,
    /// A kernel in flight behind it.
    Kernel,
    /// A call that has not returned.
    Call,
    /// A range that is open.
    Range,
    /// The last kernel that was completed in a queue.
    Done,
}

/// A piece of work.
#[derive(Clone)]
pub(crate) struct Row {
    kind: Kind,
    /// When it began; a kernel: when it was submitted; completed: when it ended.
    since: Nanos,
    /// When it was looked at.
    seen: Nanos,
    /// It has ended after it was looked at.
    has_ended: bool,
    process: ProcessId,
    /// Where: queue or thread.
    place: String,
    what: String,
    note: String,
    lane: LaneKey,
    key: u64,
}

pub(crate) struct RunningTable;

fn age(row: &Row) -> u64 {
    row.seen.saturating_sub(row.since)
}

/// What was open in a process when it was last looked at.
struct Look<'a> {
    open: &'a Open,
    /// What of it is open still.
    still: &'a Open,
    at: Nanos,
}

impl<'a> Look<'a> {
    fn of(snap: &'a Snapshot) -> impl Iterator<Item = Self> {
        let is_live = snap.is_running();
        snap.values.processes.iter().map(move |row| match row.exit {
            None if is_live => Self {
                open: &row.looked.0,
                still: &row.open,
                at: row.looked.1,
            },
            _ => Self {
                open: &row.open,
                still: &row.open,
                at: snap.now,
            },
        })
    }

    fn has_returned(&self, call: &ApiCall) -> bool {
        !self.still.calls.iter().any(|one| one.correlation == call.correlation)
    }
}

/// Further facts; for work that is no longer open, that comes first.
fn note(row: &Row) -> String {
    match (row.kind, row.has_ended) {
        (Kind::Call, true) => "returned since".into(),
        (Kind::Oldest | Kind::Kernel, true) if row.note.is_empty() => "ended since".into(),
        (Kind::Oldest | Kind::Kernel, true) => format!("ended since; {}", row.note),
        _ => row.note.clone(),
    }
}

const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Oldest => "oldest",
        Kind::Kernel => "kernel",
        Kind::Call => "call",
        Kind::Range => "range",
        Kind::Done => "last done",
    }
}

fn queue(snap: &Snapshot, agent: roctop_trace::item::AgentId, queue: QueueId) -> String {
    format!("{} {}", snap.names.agent_label(agent), snap.names.queue_label(queue))
}

fn kernels(snap: &Snapshot, rows: &mut Vec<Row>) {
    for look in Look::of(snap) {
        let open = look.open;
        let mut dispatches: Vec<_> = open.dispatches.iter().collect();
        let still: HashSet<u64> = look.still.dispatches.iter().map(|one| one.dispatch_id).collect();
        let has_ended = |id: u64| !still.contains(&id);
        // What has ended stands at the end of its queue: the first is what runs, if anything does.
        dispatches.sort_by_key(|one| (has_ended(one.dispatch_id), one.submit, one.dispatch_id));
        let mut in_flight: HashMap<QueueId, usize> = HashMap::new();
        for dispatch in &dispatches {
            *in_flight.entry(dispatch.queue).or_default() += usize::from(!has_ended(dispatch.dispatch_id));
        }
        let mut seen: HashMap<QueueId, bool> = HashMap::new();
        for dispatch in dispatches.into_iter().take(MAX_DISPATCHES) {
            let is_first = !seen.contains_key(&dispatch.queue);
            let waited = look.at.saturating_sub(dispatch.submit);
            let may_hang = seen
                .entry(dispatch.queue)
                .or_insert(waited > snap.thresholds.hang && !has_ended(dispatch.dispatch_id));
            // A queue that moves on is one row: what waits in it has changed many times before it is read.
            if !is_first && snap.is_running() && !*may_hang {
                continue;
            }
            let behind = in_flight
                .get(&dispatch.queue)
                .map_or(0, |count| count.saturating_sub(1));
            let counts = open.queues.iter().find(|known| known.0 == dispatch.queue);
            let note = match (is_first, counts) {
                (false, _) => format!("dispatch {}", units::grouped(dispatch.dispatch_id)),
                (true, Some((_, submitted, completed))) => format!(
                    "{behind} behind; {} of {} done",
                    units::count(*completed),
                    units::count(*submitted)
                ),
                (true, None) => format!("{behind} behind"),
            };
            rows.push(Row {
                seen: look.at,
                has_ended: has_ended(dispatch.dispatch_id),
                kind: if is_first { Kind::Oldest } else { Kind::Kernel },
                since: dispatch.submit,
                process: dispatch.process,
                place: queue(snap, dispatch.agent, dispatch.queue),
                what: super::kernels::name(snap, dispatch.kernel, NameForm::Short),
                note,
                lane: lane_of(snap, dispatch),
                key: 1 << 60 | dispatch.dispatch_id << 8 | u64::from(dispatch.process.0 & 0xff),
            });
        }
    }
}

fn host(snap: &Snapshot, rows: &mut Vec<Row>) {
    let thread = |id: ThreadId| snap.names.thread_label(id);
    for look in Look::of(snap) {
        let open = look.open;
        for call in &open.calls {
            let name = snap.names.operation(call.operation);
            rows.push(Row {
                seen: look.at,
                has_ended: look.has_returned(call),
                kind: Kind::Call,
                since: call.span.begin,
                process: call.process,
                place: thread(call.thread),
                what: name.map_or_else(|| "?".into(), |name| name.operation.name.to_string()),
                note: if snap.names.blocks(call.operation) {
                    "waits for the GPU".into()
                } else {
                    String::new()
                },
                lane: LaneKey::Api(call.thread, u8::from(call.parent != 0)),
                key: 2 << 60 | call.correlation,
            });
        }
        for range in &open.ranges {
            rows.push(Row {
                seen: look.at,
                has_ended: false,
                kind: Kind::Range,
                since: range.span.begin,
                process: range.process,
                place: thread(range.thread),
                what: snap.names.text(range.text).into(),
                note: format!("level {}", range.level),
                lane: match range.range_id {
                    0 => LaneKey::Markers(range.thread, range.level),
                    _ => LaneKey::Ranges(range.thread),
                },
                key: 3 << 60 | range.correlation ^ u64::from(range.text.0) << 32,
            });
        }
    }
}

/// The lane in which a dispatch in flight will be. Its stream is known only when it has ended, so without one it is the
/// lane that its queue served last.
fn lane_of(snap: &Snapshot, dispatch: &Dispatch) -> LaneKey {
    if let Some(stream) = dispatch.stream {
        return LaneKey::Stream(dispatch.agent, stream);
    }
    let served = snap.lanes.iter().filter_map(|lane| {
        let (LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _)) = lane.key else {
            return None;
        };
        let last = lane.latest()?;
        (agent == dispatch.agent && last.queue == dispatch.queue.0).then_some((last.span.end, lane.key))
    });
    let latest = served.max_by_key(|(end, _)| *end);
    latest.map_or(LaneKey::Queue(dispatch.agent, dispatch.queue), |(_, key)| key)
}

/// The last kernel that each lane of kernels completed.
fn done(snap: &Snapshot, rows: &mut Vec<Row>) {
    for (at, lane) in snap.lanes.iter().enumerate() {
        let (LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _)) = lane.key else {
            continue;
        };
        let Some(last) = lane.latest() else {
            continue;
        };
        rows.push(Row {
            seen: snap.values.at.max(last.span.end),
            has_ended: true,
            kind: Kind::Done,
            since: last.span.end,
            process: ProcessId(last.process),
            place: queue(snap, agent, QueueId(last.queue)),
            what: super::kernels::name(snap, KernelId(last.what), NameForm::Short),
            note: format!("took {}", units::duration(last.span.duration())),
            lane: lane.key,
            key: 4 << 60 | at as u64,
        });
    }
}

/// What has been open for longer than the hang threshold, the oldest first, and how much is open; of a program that has ended,
/// all that was open.
pub(crate) fn hanging(scene: &Scene<'_>) -> (Vec<Row>, usize) {
    let snap = scene.snap;
    let mut rows = RunningTable::rows(scene);
    rows.retain(|row| row.kind != Kind::Done && !row.has_ended);
    let open = rows.len();
    rows.retain(|row| !snap.is_running() || age(row) > snap.thresholds.hang);
    rows.sort_by_key(|row| (std::cmp::Reverse(age(row)), row.key));
    (rows, open)
}

fn pid(row: &Row, scene: &Scene<'_>) -> u32 {
    scene.snap.names.process(row.process).map_or(0, |process| process.pid)
}

impl Table for RunningTable {
    type Row = Row;
    const PANE: Pane = Pane::Running;
    const TITLE: &'static str = "What runs now";
    const WHAT: &'static str = "open work";
    const SORT: ColumnId = ColumnId("Kind");
    const NAMES: &'static [&'static str] = &["Where"];
    const RANKED: Option<ColumnId> = Some(Self::SORT);
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "KIND ",
            name: "Kind",
            width: 9,
            rank: 0,
            // Kernels first, then calls, ranges, and what is done; of each the oldest first.
            worth: |row, _| {
                let kind = if row.kind == Kind::Kernel { 1 } else { row.kind as u8 };
                let sign = if row.kind == Kind::Done { -1.0 } else { 1.0 };
                Worth::Number(-f64::from(kind) * 1e15 + sign * (age(row) as f64 / 1e4).min(1e14))
            },
            text: Shown::Own(|row, _, width| units::fit(word(row.kind), width)),
        },
        Column {
            title: "AGE",
            name: "Age_ns",
            width: 8,
            rank: 0,
            worth: |row, _| Worth::whole(age(row)),
            text: Shown::Duration,
        },
        Column {
            title: "WHERE ",
            name: "Where",
            width: 14,
            rank: 1,
            worth: |row, _| Worth::Text(row.place.clone()),
            text: Shown::Left,
        },
        Column {
            title: "WHAT",
            name: "What",
            width: 0,
            rank: 0,
            worth: |row, _| Worth::Text(row.what.clone()),
            text: Shown::Plain,
        },
        Column {
            title: "NOTE ",
            name: "Note",
            width: 46,
            rank: 3,
            worth: |row, _| Worth::Text(note(row)),
            text: Shown::Left,
        },
        Column {
            title: "PID",
            name: "Process_Id",
            width: 8,
            rank: 2,
            worth: |row, scene| Worth::Number(f64::from(pid(row, scene))),
            text: Shown::Plain,
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let mut rows = Vec::new();
        kernels(scene.snap, &mut rows);
        host(scene.snap, &mut rows);
        done(scene.snap, &mut rows);
        rows.retain(|row| scene.ui.filter.accepts(&RunningSubject { row, scene }));
        rows
    }

    fn all(scene: &Scene<'_>) -> usize {
        let open = Look::of(scene.snap).map(|look| look.open);
        open.map(|open| open.calls.len() + open.ranges.len() + open.dispatches.len())
            .sum()
    }

    fn least(_: u16) -> u16 {
        20
    }

    fn key(row: &Row) -> u64 {
        row.key
    }

    fn role(row: &Row, scene: &Scene<'_>) -> Role {
        match row.kind {
            Kind::Done => Role::Muted,
            Kind::Range => Role::Text,
            _ if row.has_ended => Role::Text,
            _ if scene.snap.is_running() && age(row) > scene.snap.thresholds.hang => Role::Bad,
            _ => Role::Open,
        }
    }

    fn target(row: &Row, scene: &Scene<'_>) -> Target {
        let span = roctop_trace::item::Span {
            begin: row.since.min(scene.snap.now),
            end: scene.snap.now,
        };
        Target::Stretch(Some(row.lane), span)
    }
}

struct RunningSubject<'a> {
    row: &'a Row,
    scene: &'a Scene<'a>,
}

impl Subject for RunningSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(&self.row.what) || test(&self.row.place)
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Dur => Value::whole(age(self.row)),
            Field::Pid => Value::Number(f64::from(pid(self.row, self.scene))),
            _ => Value::None,
        }
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let hang = units::duration(scene.snap.thresholds.hang);
    let open = RunningTable::all(scene);
    let title = if scene.snap.is_running() {
        format!("{open} open in the last snapshot   possible hang after {hang}")
    } else {
        format!("{open} open at the end")
    };
    let (list, detail) = match table::sorted::<RunningTable>(scene).len() {
        0 => (area, None),
        _ if size < Size::Medium => (area, None),
        rows => list_and_detail(area, rows, 8.max(area.height / 3)),
    };
    let row = table::panel::<RunningTable>(canvas, list, scene, Some(title), u8::MAX);
    if let Some((detail, row)) = detail.zip(row) {
        lately(canvas, detail, scene, &row);
    }
}

/// Slices of a lane that are looked through.
const LOOKED_AT: usize = 20_000;

/// What the queue or thread of a row did lately.
fn lately(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    let inner = canvas.frame(area, &format!("{} {}", row.place, row.what), "enter → timeline");
    let lanes = || {
        let lanes = scene.snap.lanes.iter().filter(|lane| lane.key == row.lane);
        lanes.map(|lane| &**lane)
    };
    let parts = tiles(inner, 2, 60.max(inner.width / 2));
    let below = canvas.headed(parts[0], &format!("busy, {}", activity::words(scene.snap)));
    activity::draw(canvas, below, scene, lanes(), &activity::share, Role::GaugeMid);
    let recent = lanes().flat_map(|lane| lane.recent(LOOKED_AT));
    let pieces: Vec<(u64, u64)> = recent.map(|slice| (slice.span.end, slice.span.duration())).collect();
    let count = units::counted(pieces.len() as u64, "piece of work", "pieces of work");
    let below = canvas.headed(parts[1], &format!("duration of each of the last {count} there"));
    activity::durations(canvas, below, scene, &pieces, Role::GaugeMid);
}
