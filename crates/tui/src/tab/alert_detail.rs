//! An alert in detail: what it means, what to try, and what it is about over time.

use ratatui::layout::Rect;

use super::kernel_detail::Launches;
use crate::theme::Role;
use crate::widgets::activity;
use crate::widgets::canvas::{Canvas, words};
use crate::widgets::history::{self, Amount, Scale};
use crate::widgets::panes::tiles;
use crate::widgets::table::Scene;
use roctop_model::analysis::{Alert, Evidence, LoggedAlert, Rule};
use roctop_model::snapshot::ProcessRow;
use roctop_model::{LaneKey, Snapshot};
use roctop_trace::item::{AgentId, KernelId, LossReason, Nanos, OperationId};
use roctop_trace::units;

/// Calls of each lane that are looked through.
const LOOKED_AT: usize = 20_000;
/// Columns that a chart takes at least.
const TILE_COLUMNS: u16 = 60;

/// What a rule finds means, and what to try. For lost records, the reason of most of them says it.
const fn meaning(rule: Rule, reason: LossReason) -> (&'static str, &'static str) {
    match rule {
        Rule::Lost => loss(reason),
        Rule::Failed => (
            "The call did not do what it was asked for. Some programs probe on purpose; most do not.",
            "Look at the arguments and at the calls around it (enter).",
        ),
        Rule::Hang => (
            "A call or a kernel has not ended for long. It may wait for work that never comes.",
            "W lists all that is open, the oldest first, and what was last completed.",
        ),
        Rule::Idle => (
            "The GPU had nothing to do for most of the time.",
            "See what the host did in the gaps (7, tab): a wait for another GPU, input, or launches that come late.",
        ),
        Rule::Gap => (
            "The GPU stood still once for long.",
            "Enter shows the gap on the timeline, with the call that the host was in and the kernel that ended it.",
        ),
        Rule::Sync => (
            "The thread spends much of its time in calls that return only when the GPU is done. It launches nothing meanwhile.",
            "Wait later or on an event, or launch from another thread, so that the next kernels are queued already.",
        ),
        Rule::Launch => (
            "Kernels end before the next one is submitted: the GPU waits for the host.",
            "Launch further ahead, merge kernels, or launch them as a graph.",
        ),
        Rule::Short => (
            "Most kernels take less time than their launch.",
            "Merge kernels, give each more work, or launch them as a graph.",
        ),
        Rule::Outlier => (
            "Some launches of the kernel took many times as long as most.",
            "See when (below): at the start it is warming up; at intervals another process or a clock change may be the cause.",
        ),
        Rule::Growth => (
            "The program allocates more than it frees. When the memory is full, an allocation fails.",
            "M lists what is not freed, the largest first, with the calls that allocated it.",
        ),
        Rule::SlowCopy => (
            "Large copies were slower than the link allows.",
            "Copy from pinned memory (hipHostMalloc), in larger pieces, and not while other copies run.",
        ),
        Rule::Absent => (
            "All ranks must call a collective, and one has not. The others wait, and time out or hang.",
            "See what that rank does instead (K): an error before the call, another branch, or a wait for other work.",
        ),
        Rule::Mismatch => (
            "The ranks do not call the same collectives in the same order, or a recording does not belong to the others.",
            "K names the rank and what the others called. Results are wrong or the job hangs even if this call returned.",
        ),
        Rule::Recording => (
            "Its roctop was killed, or files of it were removed, changed or cut off afterwards.",
            "roctop recover adds what the session's rings still hold. Else look for another copy of the recording.",
        ),
        Rule::Placement => (
            "Threads that launch run far from their GPU, ranks share one, or they are crowded on cores while others are free.",
            "roctop doctor --job has a table of the whole job; the line above starts it better.",
        ),
        Rule::Straggler => (
            "The same rank comes last again and again; the others spend the time in the collective.",
            "See what it does in that time (K, lower pane): its share of the work, its input, its clock, or its CPU.",
        ),
    }
}

/// What a loss means, and what to try.
const fn loss(reason: LossReason) -> (&'static str, &'static str) {
    match reason {
        LossReason::Overwritten => (
            "The program wrote records faster than roctop read them, and the oldest were overwritten.",
            "Give each thread a larger ring (--ring 8M), or record without a screen (roctop record).",
        ),
        LossReason::NoRing => (
            "More threads made calls than there was room for in shared memory.",
            "Make the rings smaller (--ring 256K), or /dev/shm larger.",
        ),
        LossReason::Reentrant => (
            "A Unix signal came while its thread wrote a record, and the handler called HIP or ROC-TX.",
            "Only the handler's own calls are missing.",
        ),
        LossReason::RangeTable => (
            "More ROC-TX ranges were open in a thread than the collector keeps.",
            "Look for ranges that are pushed or started and never ended.",
        ),
        LossReason::FactsFull => (
            "The program used more kernels, names or texts than there was room for in shared memory.",
            "Texts with a number in each fill it; /dev/shm may also be too small.",
        ),
        LossReason::Untimed => (
            "Kernels or copies ran, and the run-time gave them no valid times.",
            "The lower pane of Processes (9) says what the collector saw; roctop doctor --gpu looks for the cause.",
        ),
        LossReason::Damaged => (
            "Files of the recording were changed or cut off after they were written.",
            "Look for another copy of the recording.",
        ),
        LossReason::NotWritten => (
            "The disk of the recording was full, too slow, or failed while the program ran.",
            "Record to another disk, or limit the size (--max-size).",
        ),
        LossReason::Removed => (
            "The recording reached the size limit (--max-size), and its oldest records were removed.",
            "Record with a greater limit.",
        ),
        LossReason::Uncounted => (
            "The end of the recording is missing: its roctop was killed, or files were cut off or changed afterwards.",
            "roctop recover adds what the session's rings still hold, until /dev/shm is cleared.",
        ),
    }
}

/// The reason of most lost records of a process.
fn main_reason(snap: &Snapshot, alert: &Alert) -> LossReason {
    let of = |row: &&ProcessRow| matches!(alert.evidence, Evidence::Process(id) if row.process.id == id);
    let row = snap.values.processes.iter().find(of);
    let losses = row.map_or(&[][..], |row| &row.lost);
    let most = losses.iter().max_by_key(|loss| loss.1);
    most.map_or(LossReason::Overwritten, |loss| loss.0)
}

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, logged: &LoggedAlert) {
    let alert = &logged.alert;
    let inner = canvas.frame(area, alert.rule.word(), "enter → evidence");
    let room = inner.width.saturating_sub(2);
    let (means, try_this) = meaning(alert.rule, main_reason(scene.snap, alert));
    let texts = [
        (alert.text.clone(), Role::Accent),
        (occurrences(scene, logged), Role::Text),
        (alert.why.clone(), Role::Text),
        (means.into(), Role::Text),
        (try_this.into(), Role::Muted),
    ];
    let mut y = inner.y;
    for (text, role) in &texts {
        for line in words(text, usize::from(room)) {
            if y < inner.bottom() {
                canvas.say(inner.x + 1, y, &units::elide(&line, usize::from(room)), room, *role);
                y += 1;
            }
        }
    }
    let rest = Rect {
        y,
        height: inner.bottom().saturating_sub(y),
        ..inner
    };
    if rest.height >= 4 {
        about(canvas, rest, scene, alert);
    }
}

/// When it was found, how often, and what it costs.
fn occurrences(scene: &Scene<'_>, logged: &LoggedAlert) -> String {
    let when = |at: Nanos| units::timestamp_short(at.saturating_sub(scene.snap.origin));
    let times = units::counted(logged.count, "time", "times");
    let last = if logged.is_active {
        "now".into()
    } else {
        when(logged.last)
    };
    let cost = logged.alert.cost;
    let cost = cost.map_or_else(String::new, |cost| format!(", costs {cost:.0} ms per second"));
    format!("first {}, last {last}, {times}{cost}", when(logged.first))
}

/// What it is about, over time.
fn about(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, alert: &Alert) {
    let snap = scene.snap;
    match alert.evidence {
        Evidence::Stretch(LaneKey::Agent(agent), _) => gpu(canvas, area, scene, agent),
        Evidence::Slice(key, begin) => {
            let what = snap.lane(key).and_then(|lane| lane.at(begin)).map(|slice| slice.what);
            match (key, what) {
                (LaneKey::Stream(..) | LaneKey::Queue(..), Some(what)) => kernel(canvas, area, scene, KernelId(what)),
                (LaneKey::Api(..), Some(what)) => calls(canvas, area, scene, alert.rule, key, OperationId(what)),
                _ => {}
            }
        }
        Evidence::Kernel(id) => kernel(canvas, area, scene, id),
        Evidence::Operation(id) => calls(canvas, area, scene, alert.rule, LaneKey::Api(LaneKey::OTHERS, 0), id),
        Evidence::Route(at) => {
            let Some(copies) = snap.values.copies.get(at as usize) else {
                return;
            };
            let route = snap.names.route_label(copies.route.source, copies.route.destination);
            let below = canvas.headed(area, &format!("{route}, bytes per second"));
            let marks = scene.ui.prefs.marks;
            let seconds = history::seconds(snap, history::columns(below, marks));
            let values = copies.trend.last(snap.values.at, seconds);
            let most = values.iter().copied().max().unwrap_or(0) as f64;
            let values: Vec<Option<Amount>> = values.into_iter().map(|value| Some(value.into())).collect();
            let scale = Scale {
                most,
                text: &units::bandwidth,
            };
            let axis = history::last(seconds as f64);
            history::draw(canvas, below, marks, &values, &scale, &axis, Role::GaugeMid);
        }
        Evidence::Stretch(..)
        | Evidence::Process(_)
        | Evidence::Open
        | Evidence::Collective(_)
        | Evidence::Collectives => {}
    }
}

/// How busy a GPU was, and its gaps.
fn gpu(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, agent: AgentId) {
    let (snap, name) = (scene.snap, scene.snap.names.agent_label(agent));
    let parts = tiles(area, 2, TILE_COLUMNS.max(area.width / 2));
    let below = canvas.headed(
        parts[0],
        &format!("{name} busy with kernels, {}", activity::words(snap)),
    );
    activity::draw(
        canvas,
        below,
        scene,
        activity::of_gpu(snap, agent),
        &activity::share,
        Role::GaugeHigh,
    );
    let usage = snap.analysis().usage.iter().find(|usage| usage.agent == agent);
    let gaps: Vec<(u64, u64)> = usage.map_or_else(Vec::new, |usage| {
        let gaps = usage.gaps.iter();
        gaps.map(|gap| (gap.span.end, gap.span.duration())).collect()
    });
    let count = units::counted(gaps.len() as u64, "gap", "gaps");
    let below = canvas.headed(parts[1], &format!("{name}: length of the longest {count}"));
    activity::durations(canvas, below, scene, &gaps, Role::Warn);
}

/// The launches of a kernel.
fn kernel(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, id: KernelId) {
    let launches = Launches::all(scene.snap, id);
    super::kernel_detail::launched(canvas, area, scene, &launches);
}

/// The calls of an operation: those of a lane that waits, or those that failed in any.
fn calls(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, rule: Rule, key: LaneKey, id: OperationId) {
    let snap: &Snapshot = scene.snap;
    let has_failed = rule == Rule::Failed;
    let is_own = |other: LaneKey| match (has_failed, other) {
        (true, LaneKey::Api(..)) => true,
        _ => other == key,
    };
    let lanes = || snap.lanes.iter().filter(|lane| is_own(lane.key));
    let found = lanes().flat_map(|lane| lane.recent(LOOKED_AT));
    let found = found.filter(|call| call.what == id.0 && (!has_failed || call.shape != 0));
    let pieces: Vec<(u64, u64)> = found.map(|call| (call.span.end, call.span.duration())).collect();
    let name = super::api::name(scene, id);
    let count = if has_failed {
        units::counted(pieces.len() as u64, "failed call", "failed calls")
    } else {
        units::counted(pieces.len() as u64, "call", "calls")
    };
    let text = format!("{name}: duration of each of the last {count}");
    if has_failed {
        let below = canvas.headed(area, &text);
        return activity::durations(canvas, below, scene, &pieces, Role::Bad);
    }
    let parts = tiles(area, 2, TILE_COLUMNS.max(area.width / 2));
    let title = format!("thread in API calls, {}", activity::words(snap));
    let below = canvas.headed(parts[0], &title);
    let lane = lanes().map(|lane| &**lane);
    activity::draw(canvas, below, scene, lane, &activity::share, Role::ApiOther);
    let below = canvas.headed(parts[1], &text);
    activity::durations(canvas, below, scene, &pieces, Role::ApiSync);
}
