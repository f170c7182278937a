//! Rows of the timeline that show a number over time: gauges of devices, and counters.

use ratatui::layout::Rect;

use super::axis::Stretch;
use super::canvas::Canvas;
use super::chart::LEVELS;
use super::lanes::Line;
use super::table::Scene;
use crate::tab::counters;
use crate::theme::Role;
use crate::track::Track;
use roctop_model::Snapshot;
use roctop_model::gauges::{CounterRow, DeviceRow, GaugeKind};
use roctop_model::series::Series;
use roctop_trace::item::{AgentId, AgentKind, NodeId};
use roctop_trace::units;

/// A value beyond this multiple of the scale is marked.
const CLIPPED: f64 = 1.05;
/// Counters that have rows; the others are in their own view.
const MAX_COUNTERS: usize = 32;

/// The rows that there are, for devices of the program's own GPUs and for counters.
pub(crate) fn tracks(snap: &Snapshot) -> Vec<Track> {
    let gauges = &snap.values.gauges;
    let mut tracks = Vec::new();
    for row in &gauges.devices {
        let kinds = GaugeKind::ALL.into_iter();
        let read = kinds.filter(|kind| !row.series[*kind as usize].is_empty());
        tracks.extend(read.map(|kind| Track::Gauge(row.now.node, kind)));
    }
    let read = gauges.counters.iter().filter(|row| !row.series.is_empty());
    tracks.extend(read.take(MAX_COUNTERS).map(|row| Track::Counter(row.counter.id)));
    tracks
}

fn counter(snap: &Snapshot, id: u32) -> Option<&CounterRow> {
    snap.values.gauges.counters.iter().find(|row| row.counter.id == id)
}

/// The GPU at a node.
pub(crate) fn agent_of(snap: &Snapshot, node: NodeId) -> Option<AgentId> {
    let mut agents = snap.names.agents().iter();
    let found = agents.find(|agent| agent.kind == AgentKind::Gpu && snap.names.node_of(agent) == node);
    found.map(|agent| agent.id)
}

fn gpu(snap: &Snapshot, node: NodeId) -> String {
    match agent_of(snap, node) {
        Some(agent) => snap.names.agent_label(agent),
        None => snap
            .device_at(node)
            .map_or_else(|| "GPU ?".into(), |row| format!("GPU{}", row.now.number)),
    }
}

/// The values of a row, and what fills it to the top.
pub(crate) fn series(snap: &Snapshot, track: Track) -> Option<(&Series, f64)> {
    match track {
        Track::Gauge(node, kind) => Some(of_device(snap.device_at(node)?, kind)),
        Track::Counter(id) => {
            let series = &counter(snap, id)?.series;
            // One value beyond all others would flatten them.
            Some((series, series.quantile(0.99)))
        }
        _ => None,
    }
}

/// The values of a device's gauge, and what fills its row to the top.
pub(crate) fn of_device(row: &DeviceRow, kind: GaugeKind) -> (&Series, f64) {
    let series = &row.series[kind as usize];
    let whole = match kind {
        GaugeKind::Busy => Some(1.0),
        GaugeKind::Memory => row.now.memory_total.as_ref().ok().map(|total| *total as f64),
        GaugeKind::Power => row.now.power_cap.as_ref().ok().copied(),
        GaugeKind::Clock => None,
    };
    let whole = whole.filter(|whole| *whole > 0.0);
    (series, whole.unwrap_or_else(|| series.most()))
}

/// A value of a gauge with its unit.
pub(crate) fn reading(kind: GaugeKind, value: f64) -> String {
    match kind {
        GaugeKind::Busy => format!("{} %", units::percent(value)),
        GaugeKind::Memory => units::bytes(value.max(0.0) as u64),
        GaugeKind::Power => format!("{value:.0} W"),
        GaugeKind::Clock => format!("{value:.0} MHz"),
    }
}

/// Whether a row is one of these.
pub(crate) const fn is_plot(track: Track) -> bool {
    matches!(track, Track::Gauge(..) | Track::Counter(_))
}

/// A value of a row with its unit.
pub(crate) fn value(snap: &Snapshot, track: Track, value: Option<f64>) -> String {
    let Some(value) = value else {
        return units::MISSING.into();
    };
    match track {
        Track::Gauge(_, kind) => reading(kind, value),
        Track::Counter(id) => {
            let unit = counter(snap, id).map_or("", |row| &row.counter.unit);
            let gap = if unit.starts_with('/') { "" } else { " " };
            format!("{}{gap}{unit}", counters::amount(Some(value)))
                .trim_end()
                .to_string()
        }
        _ => String::new(),
    }
}

/// What stands to the left: whose, and the last value, whose unit says what it is.
pub(crate) fn label(snap: &Snapshot, track: Track) -> String {
    let last = || value(snap, track, series(snap, track).and_then(|found| found.0.last()));
    match track {
        Track::Gauge(node, GaugeKind::Busy) => format!("{} load {}", gpu(snap, node), last().replace(' ', "")),
        Track::Gauge(node, _) => format!("{} {}", gpu(snap, node), last()),
        Track::Counter(id) => counter(snap, id).map_or_else(String::new, |row| {
            // Names are long, and cut: the GPU goes before.
            let place = row.counter.node.map(|node| format!("{} ", gpu(snap, node)));
            format!("{}{}", place.unwrap_or_default(), row.counter.name)
        }),
        _ => String::new(),
    }
}

/// What a counter's row is full at.
pub(crate) fn scale(snap: &Snapshot, track: Track) -> Option<String> {
    let counter = Some(track).filter(|track| matches!(track, Track::Counter(_)));
    let (_, whole) = series(snap, counter?)?;
    Some(format!("≤{}", counters::amount(Some(whole)).replace(' ', "")))
}

/// What is read of a device.
pub(crate) const fn word(kind: GaugeKind) -> &'static str {
    match kind {
        GaugeKind::Busy => "load as the driver reports it",
        GaugeKind::Memory => "memory in use",
        GaugeKind::Power => "power",
        GaugeKind::Clock => "shader clock",
    }
}

/// What is known of a row, for the pane of the selected.
pub(crate) fn lines(snap: &Snapshot, track: Track) -> Vec<(String, Role)> {
    let Some((values, whole)) = series(snap, track) else {
        return Vec::new();
    };
    let what = match track {
        Track::Gauge(node, kind) => {
            format!("{}: {}", gpu(snap, node), word(kind))
        }
        _ => label(snap, track),
    };
    let text = |amount: f64| value(snap, track, Some(amount));
    vec![
        (what, Role::Accent),
        (
            format!(
                "last {}   most {}   the row is full at {}",
                value(snap, track, values.last()),
                text(values.most()),
                text(whole)
            ),
            Role::Text,
        ),
        ("a column shows the mean of what was read in it".into(), Role::Muted),
    ]
}

/// Draws a line of a row: the height of a column is its mean; what is higher than the scale is marked.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, track: Track, stretch: Stretch, line: Line) {
    let Some((values, whole)) = series(scene.snap, track) else {
        return;
    };
    let role = match track {
        Track::Gauge(..) => Role::GaugeMid,
        _ => Role::Accent,
    };
    let now = stretch.column(scene.snap.now, area.width);
    let columns = values.columns(stretch.from, stretch.width, area.width as usize);
    for (x, column) in (0u16..).zip(columns).take(now as usize + 1) {
        let Some(column) = column else { continue };
        let share = if whole > 0.0 {
            (column / whole).clamp(0.0, 1.0)
        } else {
            0.0
        };
        // Nothing is a line at the foot: it was read and is 0.
        let (sign, role) = match line.level(share) {
            _ if line.at == 0 && column > whole * CLIPPED => ('▲', Role::Warn),
            0 if line.at + 1 == line.of => ('_', role),
            level => (LEVELS[level], role),
        };
        canvas.say(area.x + x, area.y, sign.encode_utf8(&mut [0; 4]), 1, role);
    }
}
