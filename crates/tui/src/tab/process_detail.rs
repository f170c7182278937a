//! A process in detail: its GPUs, threads, memory and records over time.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::widgets::activity;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::chart;
use crate::widgets::history::{self, Amount, Scale};
use crate::widgets::panes::tiles;
use crate::widgets::table::Scene;
use roctop_model::analysis::overhead::Overhead;
use roctop_model::analysis::{Evidence, Rule};
use roctop_model::gauges::{History, SECONDS};
use roctop_model::snapshot::ProcessRow;
use roctop_model::{Lane, LaneKey};
use roctop_trace::binding::CpuSet;
use roctop_trace::item::ProcessId;
use roctop_trace::units;

/// Columns that a tile takes at least.
const TILE_COLUMNS: u16 = 38;
/// Rows of a chart with its heading at least.
const MIN_ROWS: u16 = 8;

/// Draws it.
pub(super) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    row: &ProcessRow,
    overhead: Option<Overhead>,
) {
    let title = format!("pid {} {}", row.process.pid, row.process.command);
    let inner = canvas.frame(area, &title, &activity::words(scene.snap));
    let inner = misplaced(canvas, inner, scene, row.process.id);
    let lines = (inner.height / MIN_ROWS).clamp(1, 2);
    let count = match lines * (inner.width / TILE_COLUMNS) {
        0 | 1 => 1,
        2 | 3 => 2,
        _ => 4,
    };
    let abreast = if count == 4 { 4 / lines } else { count };
    let parts = tiles(inner, count, inner.width / abreast);
    let id = row.process.id;
    gpus(canvas, parts[0], scene, id);
    if count > 1 {
        threads(canvas, parts[1], scene, id);
    }
    if count == 4 {
        memory(canvas, parts[2], scene, row);
        records(canvas, parts[3], scene, row, overhead);
    }
}

/// What is wrong with where it runs, and what mends it; what is left of the area. Nothing is said where that leaves no chart.
fn misplaced(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, process: ProcessId) -> Rect {
    let mut alerts = scene.snap.analysis().alerts.iter();
    let found = alerts.find(|alert| alert.rule == Rule::Placement && alert.evidence == Evidence::Process(process));
    let Some(alert) = found.filter(|_| area.height >= MIN_ROWS) else {
        return area;
    };
    let (head, rest) = top(area, 2);
    let room = head.width.saturating_sub(1);
    for (y, (text, role)) in (head.y..).zip([(&alert.text, Role::Warn), (&alert.why, Role::Text)]) {
        canvas.say(head.x + 1, y, &units::elide(text, room.into()), room, role);
    }
    rest
}

/// How many of its GPUs were busy.
fn gpus(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, process: ProcessId) {
    let names = &scene.snap.names;
    let is_own = |lane: &&Lane| match lane.key {
        LaneKey::Agent(id) => names.agent(id).is_some_and(|agent| agent.process == process),
        _ => false,
    };
    let lanes = || scene.snap.lanes.iter().map(|lane| &**lane).filter(is_own);
    let many = lanes().count();
    let mut numas: Vec<u32> = Vec::new();
    if let Some(node) = scene
        .snap
        .values
        .bindings
        .of(process)
        .and_then(|bound| bound.node.as_ref())
    {
        let own = lanes().filter_map(|lane| match lane.key {
            LaneKey::Agent(id) => names.agent(id).map(|agent| agent.node),
            _ => None,
        });
        let devices = own.filter_map(|own| node.gpus.iter().find(|gpu| gpu.node == own));
        numas.extend(devices.filter_map(|gpu| gpu.numa));
    }
    let at = at_numas(numas);
    let below = canvas.headed(area, &format!("busy GPUs of {many}{at}"));
    if many > 0 {
        activity::draw(canvas, below, scene, lanes(), &activity::number, Role::GaugeHigh);
    }
}

/// ` at NUMA node 0-1`; nothing if none is known.
fn at_numas(numas: Vec<u32>) -> String {
    if numas.is_empty() {
        return String::new();
    }
    format!(" at NUMA node {}", CpuSet::of(numas))
}

/// The CPUs that its threads may use, and their NUMA nodes; nothing if they were not read.
fn cpus(scene: &Scene<'_>, process: ProcessId) -> String {
    let Some(bound) = scene.snap.values.bindings.of(process) else {
        return String::new();
    };
    let threads = bound.threads.values();
    let cpus = threads.fold(CpuSet::default(), |all, seen| all.or(&seen.allowed));
    let numas = bound.node.as_ref().map_or_else(Vec::new, |node| node.numas_of(&cpus));
    if cpus.is_empty() {
        return String::new();
    }
    format!(", on CPUs {cpus}{}", at_numas(numas))
}

/// Its threads by their time in calls, each with its last minute.
fn threads(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, process: ProcessId) {
    let snap = scene.snap;
    let mut rows: Vec<_> = snap.values.threads.iter().collect();
    rows.retain(|row| {
        snap.names
            .thread(row.id)
            .is_some_and(|thread| thread.process == process)
    });
    rows.sort_by_key(|row| (std::cmp::Reverse(row.numbers.total), row.id));
    let text = format!(
        "{} in API calls, share of time{}",
        units::counted(rows.len() as u64, "thread", "threads"),
        cpus(scene, process)
    );
    let below = canvas.headed(area, &text);
    let span = activity::stretch(snap);
    let each = (below.height / (rows.len() as u16).max(1)).clamp(1, MIN_ROWS);
    let listed = (below.height / each) as usize;
    for (at, row) in (0..).zip(rows.iter().take(listed)) {
        let place = Rect {
            y: below.y + at * each,
            height: each,
            ..below
        };
        let lanes = || {
            let lanes = snap.lanes.iter().map(|lane| &**lane);
            lanes.filter(|lane| lane.key == LaneKey::Api(row.id, 0))
        };
        let label = snap.names.thread_label(row.id);
        if each >= 4 {
            let below = canvas.headed(place, &label);
            activity::draw(canvas, below, scene, lanes(), &activity::share, Role::ApiOther);
            continue;
        }
        // One line: a column for each part of the stretch.
        let x = canvas.say(place.x + 1, place.y, &units::fit(&label, 17), 17, Role::Text) + 1;
        let columns = place.right().saturating_sub(x + 1);
        let width = span.duration().div_ceil(u64::from(columns.max(1))).max(1);
        for lane in lanes() {
            let sums = lane.columns(span.begin, width, usize::from(columns), |_| true);
            let text: String = sums
                .iter()
                .map(|column| chart::level(column.sums.busy, width))
                .collect();
            canvas.say(x, place.y, &text, columns, Role::ApiOther);
        }
    }
}

fn by_second(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    known: &History,
    text: &dyn Fn(f64) -> String,
    role: Role,
) {
    let marks = scene.ui.prefs.marks;
    let seconds = history::seconds(scene.snap, history::columns(area, marks)).min(SECONDS);
    let values = known.last(scene.snap.now, seconds);
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let values: Vec<Option<Amount>> = values.into_iter().map(|value| value.map(Amount::from)).collect();
    let axis = history::last(seconds as f64);
    history::draw(canvas, area, marks, &values, &Scale { most, text }, &axis, role);
}

/// Its memory on the host.
fn memory(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &ProcessRow) {
    let now = row.health.and_then(|(health, _)| health.resident);
    let now = now.map_or_else(|| units::MISSING.into(), units::bytes);
    let below = canvas.headed(area, &format!("resident memory, now {now}"));
    if row.resident.is_empty() {
        let why = "no reading: it is read of running processes of this machine";
        canvas.say(below.x + 1, below.y, why, below.width.saturating_sub(1), Role::Muted);
        return;
    }
    let text = |value: f64| units::bytes(value as u64);
    by_second(canvas, below, scene, &row.resident, &text, Role::GaugeMid);
}

/// What is recorded of it, and what that costs it.
fn records(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &ProcessRow, overhead: Option<Overhead>) {
    let cost = overhead.map_or_else(String::new, |known| {
        let launch = known
            .launch
            .map_or_else(String::new, |launch| format!(" and {launch:.0} ns per launch"));
        format!(
            ", cost ~{:.2} % of a core: ~{:.0} ns per call{launch}",
            100.0 * known.share,
            known.call
        )
    });
    let below = canvas.headed(area, &format!("records per second{cost}"));
    if row.rates.is_empty() {
        let text = format!("{} in all", units::counted(row.records, "record", "records"));
        canvas.say(below.x + 1, below.y, &text, below.width.saturating_sub(1), Role::Muted);
        return;
    }
    by_second(canvas, below, scene, &row.rates, &units::rate, Role::GaugeLow);
}
