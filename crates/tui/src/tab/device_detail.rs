//! A device in detail: how it was used, and what the driver says of it.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::devices::{Row, gauges, label, product, seen};
use super::gaps;
use crate::NameForm;
use crate::theme::Role;
use crate::track::Track;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::history::{self, Amount, Scale};
use crate::widgets::panes::across;
use crate::widgets::table::Scene;
use crate::widgets::{activity, chart, plot};
use roctop_model::gauges::GaugeKind;
use roctop_model::snapshot::KernelRow;
use roctop_trace::gauge::{Device, Reading};
use roctop_trace::item::AgentId;
use roctop_trace::units;

/// Rows of a pane that has room for several causes, and how many.
const HIGH: u16 = 14;
const MAX_CAUSES: usize = 4;

/// Shares of the stretch that was looked at: compute, copies, both at once, neither.
pub(crate) fn breakdown(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>) {
    let analysis = scene.snap.analysis();
    let longest = analysis.whole.iter().max_by_key(|row| row.stretch.duration());
    let of = longest.map_or_else(String::new, |row| {
        let of = units::duration(row.stretch.duration());
        match row.start_up {
            0 => format!("of {of}"),
            start_up => format!("of {of} after {} of start-up", units::duration(start_up)),
        }
    });
    let inner = canvas.frame(area, "Busy and idle", &of);
    let wide = inner.width >= 100;
    let head = [
        "COMPUTE",
        "COPY",
        "BOTH",
        "IDLE  ",
        "GAPS",
        "LONGEST  ",
        "CONCURRENCY",
        "STARVED",
    ];
    // The sign stands behind the value that is beyond its threshold.
    let marked = |value: String, is_beyond: bool| format!("{value} {}", if is_beyond { '▲' } else { ' ' });
    let words = |words: [&str; 8]| {
        let [compute, copy, both, idle, gaps, longest, at_once, starved] = words;
        let first = format!("{compute:>8} {copy:>7} {both:>7} {idle:>9} {gaps:>6} {longest:>11}");
        if wide {
            format!("{first} {at_once:>11} {starved:>8}  ")
        } else {
            first
        }
    };
    if inner.height == 0 {
        return;
    }
    if analysis.whole.is_empty() {
        return canvas.empty(inner, &super::why_empty(scene, "kernel on any GPU", 0));
    }
    let title = if wide { "NO KERNEL BECAUSE" } else { "" };
    let text = format!("{:<6} {}{title}", "GPU", words(head));
    canvas.say(inner.x + 1, inner.y, &text, inner.width.saturating_sub(1), Role::Head);
    for (i, row) in analysis.whole.iter().take(inner.height as usize - 1).enumerate() {
        let sign = if row.is_estimated { "≈" } else { "" };
        let share = |nanos: u64| format!("{sign}{} %", units::percent(row.share(nanos)));
        let is_idle = row.share(row.idle) > scene.snap.thresholds.idle;
        let is_long = row.longest > scene.snap.thresholds.long_gap;
        let text = format!(
            "{:<6} {}",
            scene.snap.names.agent_label(row.agent),
            words([
                &share(row.compute),
                &share(row.copy),
                &share(row.overlap),
                &marked(share(row.idle), is_idle),
                &units::count(row.gap_count),
                &marked(units::duration(row.longest), is_long),
                &row.concurrency()
                    .map_or_else(|| units::MISSING.into(), |many| format!("{many:.2}")),
                &format!("{} %", units::percent(row.starving_share())),
            ])
        );
        let role = if is_idle || is_long { Role::Warn } else { Role::Text };
        let y = inner.y + 1 + i as u16;
        let x = canvas.say(inner.x + 1, y, &text, inner.width.saturating_sub(1), role);
        if wide {
            let room = inner.right().saturating_sub(x + 1);
            let causes = gaps::causes(scene, &row.verdict, usize::from(room));
            canvas.say(x, y, &causes, room, Role::Text);
        }
    }
}

/// Why a GPU ran no kernel, and which streams wait for each other in one hardware queue.
fn causes(scene: &Scene<'_>, agent: AgentId, area: Rect) -> Vec<(String, Role)> {
    let snap = scene.snap;
    let mut usage = snap.analysis().usage.iter();
    let Some(usage) = usage.find(|usage| usage.agent == agent || usage.agents.contains(&agent)) else {
        return Vec::new();
    };
    let verdict = &usage.verdict;
    let most = if area.height > HIGH { MAX_CAUSES } else { 1 };
    let stretch = units::duration(usage.stretch.duration());
    let head = format!(
        "no kernel {} % of the last {stretch}: ",
        units::percent(usage.share(verdict.nanos))
    );
    let room = usize::from(area.width.saturating_sub(2)).saturating_sub(units::width(&head));
    let mut lines = vec![(format!("{head}{}", gaps::causes(scene, verdict, room)), Role::Text)];
    let parts = verdict.parts.iter().filter(|part| verdict.share(part) >= 0.01);
    let parts: Vec<_> = parts.take(most).collect();
    if most > 1 || parts.len() == 1 {
        lines.extend(parts.iter().map(|part| {
            let sign = if part.is_estimated { "≈" } else { "" };
            let share = format!("{sign}{}", units::percent(verdict.share(part)));
            (format!("{share:>7} %  {}", part.cause.explanation(snap)), Role::Muted)
        }));
    }
    let waits = usage.sharing.iter().take(most);
    lines.extend(waits.map(|wait| (wait.words(snap), Role::Text)));
    lines
}

/// The kernels that took most time on a GPU.
fn top_kernels(scene: &Scene<'_>, agent: AgentId) -> String {
    let snap = scene.snap;
    let here = |row: &KernelRow| {
        let cells = row.numbers.cells.iter().filter(|cell| {
            let place = snap.values.placement(cell);
            place.is_some_and(|place| place.agent == agent || snap.names.gpu_of(place.agent) == agent)
        });
        cells.fold(0u64, |sum, cell| sum.saturating_add(cell.sum.total))
    };
    let mut rows: Vec<(u64, &KernelRow)> = snap.values.kernels.iter().map(|row| (here(row), row)).collect();
    rows.retain(|row| row.0 > 0);
    rows.sort_by_key(|row| std::cmp::Reverse(row.0));
    let all = rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.0));
    let listed = rows.iter().take(3).map(|(nanos, row)| {
        let name = super::kernels::name(snap, row.id, NameForm::Short);
        let share = units::percent(*nanos as f64 / all.max(1) as f64);
        format!("{} {share} %", units::elide(&name, 24))
    });
    listed.collect::<Vec<_>>().join("   ")
}

/// A reading with its unit; its absence with the reason.
fn reading(word: &str, value: &Reading<f64>, decimals: usize, unit: &str) -> String {
    match value {
        Ok(value) => format!("{word} {value:.decimals$}{unit}"),
        Err(_) => format!("{word} {}", units::MISSING),
    }
}

/// Draws it.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    let place = gauges(row, scene).map_or("", |device| &device.now.location);
    let title = format!("{} {} {place}", label(row, scene.snap), product(row, scene));
    let inner = canvas.frame(area, title.trim(), &format!("node {}", row.node.node));
    let mut lines: Vec<(String, Role)> = Vec::new();
    if let Some(agent) = seen(row, scene) {
        let text = format!(
            "busy {} % of the last {}   {}   {}   {}   busy so far {}",
            units::percent(agent.share),
            units::duration(scene.snap.values.window),
            units::counted(agent.dispatches, "kernel", "kernels"),
            units::counted(agent.streams as u64, "stream", "streams"),
            units::counted(agent.queues as u64, "queue", "queues"),
            units::duration(agent.busy),
        );
        lines.push((text, Role::Text));
        lines.extend(causes(scene, agent.id, inner));
        let trend = chart::sparkline(&agent.trend);
        lines.push((
            format!("30 s {trend}   top: {}", top_kernels(scene, agent.id)),
            Role::GaugeMid,
        ));
    } else {
        lines.push(("the program does not use this GPU".into(), Role::Muted));
    }
    match gauges(row, scene) {
        Some(device) => lines.extend(driver(&device.now)),
        None => lines.push((
            "power, temperatures, clocks, memory: – (no sensors were read)".into(),
            Role::Muted,
        )),
    }
    for (i, (text, role)) in lines.iter().take(inner.height as usize).enumerate() {
        let y = inner.y + i as u16;
        let room = inner.width.saturating_sub(2);
        canvas.say(inner.x + 1, y, &units::items(text, room as usize), room, *role);
    }
    let (_, rest) = top(inner, lines.len() as u16);
    if rest.height >= MIN_CHART {
        charts(canvas, rest, scene, row);
    }
}

/// Rows of a chart with its heading at least, and columns of one of several.
const MIN_CHART: u16 = 5;
const CHART_COLUMNS: u16 = 48;

/// How busy it was, and what its sensors said, over the last minute.
fn charts(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    let snap = scene.snap;
    let device = gauges(row, scene);
    let read: Vec<GaugeKind> = GaugeKind::ALL
        .into_iter()
        .filter(|kind| device.is_some_and(|device| !device.series[*kind as usize].is_empty()))
        .collect();
    let agent = seen(row, scene).map(|agent| agent.id);
    let most = usize::from(area.width / CHART_COLUMNS).max(1);
    let gauges = read.into_iter().take(most.saturating_sub(usize::from(agent.is_some())));
    let gauges: Vec<GaugeKind> = gauges.collect();
    let count = gauges.len() as u16 + u16::from(agent.is_some());
    let mut parts = across(area, count).into_iter();
    if let Some((agent, part)) = agent.and_then(|agent| Some((agent, parts.next()?))) {
        let text = format!("busy with kernels, {}", activity::words(snap));
        let below = canvas.headed(part, &text);
        activity::draw(
            canvas,
            below,
            scene,
            activity::of_gpu(snap, agent),
            &activity::share,
            Role::GaugeHigh,
        );
    }
    for (kind, part) in gauges.into_iter().zip(parts) {
        let track = Track::Gauge(row.node, kind);
        let Some((series, whole)) = plot::series(snap, track) else {
            continue;
        };
        let below = canvas.headed(part, plot::word(kind));
        let (marks, span) = (scene.ui.prefs.marks, activity::stretch(snap));
        let columns = history::columns(below, marks).max(1);
        let width = span.duration().div_ceil(columns as u64).max(1);
        let values = series.columns(span.begin, width, columns).into_iter();
        let values: Vec<Option<Amount>> = values
            .map(|value| {
                value.map(|value| Amount {
                    value,
                    is_average: series.is_coarser(width),
                })
            })
            .collect();
        let text = |value: f64| plot::value(snap, track, Some(value));
        let scale = Scale {
            most: whole,
            text: &text,
        };
        let axis = history::last(span.duration() as f64 / 1e9);
        history::draw(canvas, below, marks, &values, &scale, &axis, Role::GaugeMid);
    }
}

/// What the driver says, and why some of it is missing.
fn driver(device: &Device) -> Vec<(String, Role)> {
    let share = |value: &Reading<f64>| value.clone().map(|share| share * 100.0);
    let words = [
        [
            reading("driver's busy", &share(&device.busy), 1, " %"),
            reading("memory busy", &share(&device.memory_busy), 1, " %"),
            reading("power", &device.power, 0, " W"),
            reading("of", &device.power_cap, 0, " W"),
        ],
        [
            reading("edge", &device.edge, 0, " °C"),
            reading("junction", &device.junction, 0, " °C"),
            reading("memory", &device.memory_temperature, 0, " °C"),
            format!(
                "throttle {}",
                device.throttle.as_ref().map_or(units::MISSING, |why| why)
            ),
        ],
        [
            reading("SCLK", &device.shader_clock, 0, " MHz"),
            reading("MCLK", &device.memory_clock, 0, " MHz"),
            reading("FCLK", &device.fabric_clock, 0, " MHz"),
            format!(
                "link {} {}",
                device.link.as_ref().map_or(units::MISSING, |link| link),
                device
                    .link_peak
                    .as_ref()
                    .map_or_else(|_| String::new(), |peak| units::bandwidth(*peak))
            ),
        ],
    ];
    let mut lines: Vec<(String, Role)> = words.iter().map(|words| (words.join("   "), Role::Text)).collect();
    let rate = |name: &str, rate: &Reading<f64>| {
        let rate = rate
            .as_ref()
            .map_or_else(|_| units::MISSING.into(), |rate| units::bandwidth(*rate));
        format!("{name} {rate}")
    };
    for (name, traffic, errors) in [
        ("xGMI", &device.xgmi, &device.xgmi_errors),
        ("network", &device.network, &device.network_errors),
    ] {
        if traffic.is_err() && errors.is_err() {
            continue;
        }
        let words = [rate(name, traffic), reading(&format!("{name} errors"), errors, 0, "")];
        let role = match errors {
            Ok(errors) if *errors > 0.0 => Role::Warn,
            _ => Role::Text,
        };
        lines.push((words.join("   "), role));
    }
    if device.partitions.len() > 1 {
        let busy = device.partitions.iter().enumerate();
        let busy = busy.map(|(number, busy)| reading(&number.to_string(), &share(busy), 1, " %"));
        let text = format!("partitions busy   {}", busy.collect::<Vec<_>>().join("   "));
        lines.push((text, Role::Text));
    }
    for holder in device.holders.iter().take(4) {
        let held = holder
            .memory
            .as_ref()
            .map_or_else(|_| units::MISSING.into(), |&held| units::bytes(held));
        lines.push((
            format!("pid {:<8} holds {held:>9}  {}", holder.pid, holder.name),
            Role::Text,
        ));
    }
    lines.extend(missing(device));
    lines
}

/// What cannot be read, by the reasons why.
fn missing(device: &Device) -> Vec<(String, Role)> {
    let readings = [
        ("busy", device.busy.as_ref().err()),
        ("memory", device.memory_used.as_ref().err()),
        ("power", device.power.as_ref().err()),
        ("temperature", device.junction.as_ref().err()),
        ("clock", device.shader_clock.as_ref().err()),
        ("throttle", device.throttle.as_ref().err()),
        ("link", device.link.as_ref().err()),
    ];
    let mut reasons: Vec<(&Arc<str>, Vec<&str>)> = Vec::new();
    for (word, why) in readings {
        let Some(why) = why else { continue };
        match reasons.iter_mut().find(|known| known.0 == why) {
            Some(known) => known.1.push(word),
            None => reasons.push((why, vec![word])),
        }
    }
    let listed = reasons.iter().map(|(why, words)| {
        let text = format!("{} {}: {why}", words.join(", "), units::MISSING);
        (text, Role::Muted)
    });
    listed.collect()
}
