//! Overview: GPUs, the last moments, kernels, copies, calls, and what is worth a look.

use ratatui::layout::Rect;

use super::alerts::{self, AlertTable};
use super::{api, copies, gaps, kernels, log, timeline};
use crate::hit_map::Hit;
use crate::keymap::Action;
use crate::theme::Role;
use crate::track::Track;
use crate::widgets::canvas::{Canvas, left, top};
use crate::widgets::plot;
use crate::widgets::table::{self, Scene, Table};
use crate::widgets::{chart, header, rows};
use crate::{Size, Tab};
use roctop_model::LaneKey;
use roctop_model::snapshot::AgentRow;
use roctop_trace::units;

/// A pane at least this wide gives its room to a timeline before rows of kernels, however few rows there are.
const WIDE: u16 = 120;
/// At this width and height there is room for all panes.
const HIGH: u16 = 40;
const NARROW: u16 = 96;
/// Share of time without kernels from which its causes are shown.
const WORTH_A_CAUSE: f64 = 0.05;
/// Below this height panes stand side by side.
const LOW: u16 = 21;

/// GPUs worth a row: those that work; all, when none does. Below one that processes share each of them has a row.
fn gpus<'a>(scene: &Scene<'a>) -> Vec<&'a AgentRow> {
    let mut all = scene.snap.gpus();
    if all.iter().any(|gpu| gpu.row.dispatches > 0) {
        all.retain(|gpu| gpu.row.dispatches > 0);
    }
    all.sort_by_key(|gpu| scene.snap.names.agent(gpu.row.id).map(|agent| agent.number));
    let rows = all
        .into_iter()
        .flat_map(|gpu| std::iter::once(gpu.row).chain(gpu.parts));
    rows.collect()
}

/// What a row is called: a GPU, or a process on the GPU above.
fn name_of(scene: &Scene<'_>, row: &AgentRow) -> String {
    let names = &scene.snap.names;
    match names.gpu_of(row.id) {
        gpu if gpu == row.id => names.agent_label_of(row.id),
        _ => format!(" {}", names.agent_process(row.id)),
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let gpus = gpus(scene);
    if size < Size::Medium {
        let (upper, mut lower) = top(area, 1);
        one_line(canvas, upper, &gpus, scene);
        // Few rows but many columns: some of the rows say more as a timeline.
        if area.width >= WIDE && area.height >= 14 && !scene.ui.prefs.is_compact {
            let principal = principal(scene);
            let (middle, rest) = top(lower, (principal.len() as u16 + 3).clamp(4, area.height / 2));
            lanes(canvas, middle, scene, size, principal);
            lower = rest;
        }
        kernels::panel(canvas, lower, scene, 2);
        return;
    }
    if area.height < LOW && area.width >= 2 * NARROW {
        return side_by_side(canvas, area, scene, size, &gpus);
    }
    let is_high = area.height >= HIGH && area.width >= NARROW;
    let large = size == Size::Large || (is_high && !scene.ui.prefs.is_compact);
    let most = if large { 8 } else { 3 };
    let (upper, rest) = top(area, (gpus.len() as u16).clamp(1, most) + 2);
    devices(canvas, upper, scene, &gpus);
    let principal = principal(scene);
    let each = if large && timeline::grows(scene) { 3 } else { 1 };
    let wanted = each * principal.len() as u16 + 3;
    let bottom = if large { (rest.height / 4).clamp(7, 9) } else { 1 };
    // The timeline takes what the kernels leave, at least a third.
    let kernels_want = (scene.snap.values.kernels.len() as u16).clamp(5, 60) + 3;
    let share = if large {
        (rest.height - bottom).saturating_sub(kernels_want).max(rest.height / 3)
    } else {
        7
    };
    let (lanes_area, rest) = top(rest, wanted.clamp(4, share.max(5)));
    lanes(canvas, lanes_area, scene, size, principal);
    let (middle, lower) = top(rest, rest.height.saturating_sub(bottom));
    kernels::panel(canvas, middle, scene, if large { u8::MAX } else { 4 });
    if !large {
        return notes_in_a_line(canvas, lower, scene);
    }
    let (first, rest) = left(lower, (lower.width / 3).max(40));
    let (second, third) = left(rest, (rest.width * 3 / 8).max(30));
    copies::panel(canvas, first, scene);
    api::panel(canvas, second, scene, 2);
    worth_a_look(canvas, third, scene);
}

/// Few rows and many columns: kernels, calls and alerts side by side, below GPUs and timeline.
fn side_by_side(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size, gpus: &[&AgentRow]) {
    let (upper, rest) = top(area, (gpus.len() as u16).clamp(1, 3) + 2);
    devices(canvas, upper, scene, gpus);
    let principal = principal(scene);
    let (middle, lower) = top(rest, (principal.len() as u16 + 3).clamp(4, rest.height / 2));
    lanes(canvas, middle, scene, size, principal);
    let (first, second) = left(lower, lower.width * 3 / 5);
    kernels::panel(canvas, first, scene, u8::MAX);
    worth_a_look(canvas, second, scene);
}

/// Rows of the timeline that say most.
fn principal(scene: &Scene<'_>) -> Vec<Track> {
    let all = rows::order(scene).into_iter();
    all.filter(|&track| !plot::is_plot(track) && rows::is_principal(scene.snap, track.like()))
        .collect()
}

/// The last moments.
fn lanes(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size, mut tracks: Vec<Track>) {
    let stretch = timeline::stretch(scene, scene.ui.lane_columns());
    let inner = timeline::within(area);
    let is_gpu = |track: &Track| matches!(track, Track::Lane(LaneKey::Agent(_)));
    // Many GPUs and few rows: a row for each GPU before any stream.
    if tracks.iter().filter(|key| is_gpu(key)).count() > inner.height as usize / 2 {
        tracks.sort_by_key(|key| !is_gpu(key));
    }
    let exactness = timeline::panel(canvas, inner, scene, (stretch, size, 1), &tracks);
    let words = exactness
        .words(scene)
        .map_or_else(String::new, |words| format!("{words}   "));
    canvas.frame(
        area,
        "Timeline",
        &format!("{words}{}/col", units::duration(stretch.width)),
    );
}

/// As much of the end and the alerts as goes into a line; half a sentence says nothing, but the first one is cut if it must be.
fn notes_in_a_line(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>) {
    let mut x = area.x + 1;
    for (text, role) in notes(scene) {
        let room = area.right().saturating_sub(x + 1);
        if x > area.x + 1 && units::width(&text) > room as usize {
            break;
        }
        x = canvas.say(x, area.y, &units::cut(&text, room as usize), room, role) + 3;
    }
    scene.ui.hits.add(area, Hit::Do(Action::Show(Tab::Alerts)));
}

/// How it ended when it has, else what stands out.
fn worth_a_look(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>) {
    let ending = log::ending(scene.snap);
    if ending.is_empty() && !scene.snap.analysis().log.is_empty() {
        table::panel::<AlertTable>(canvas, area, scene, Some("A all".into()), 3);
        return;
    }
    let inner = canvas.frame(area, AlertTable::TITLE, "A all");
    scene.ui.hits.add(area, Hit::Do(Action::Show(Tab::Alerts)));
    for (i, (text, role)) in notes(scene).iter().take(inner.height as usize).enumerate() {
        let room = inner.width.saturating_sub(1);
        let text = units::cut(text, room as usize);
        canvas.say(inner.x + 1, inner.y + i as u16, &text, room, *role);
    }
}

/// The end and the alerts, a line each.
fn notes(scene: &Scene<'_>) -> Vec<(String, Role)> {
    let mut out = log::ending(scene.snap);
    out.extend(alerts::active(scene).map(|alert| {
        let role = if alert.rule.is_bad() { Role::Bad } else { Role::Warn };
        (format!("▲ {}", alert.text), role)
    }));
    if out.is_empty() {
        out.push(("nothing stands out".into(), Role::Muted));
    }
    out
}

fn one_line(canvas: &mut Canvas<'_>, area: Rect, gpus: &[&AgentRow], scene: &Scene<'_>) {
    let whole = gpus.iter().filter(|row| scene.snap.names.gpu_of(row.id) == row.id);
    let parts: Vec<String> = whole
        .map(|row| format!("{} {}%", name_of(scene, row), units::percent(row.share)))
        .collect();
    canvas.say(
        area.x + 1,
        area.y,
        &parts.join("  "),
        area.width.saturating_sub(1),
        Role::Text,
    );
}

/// What the driver says of a GPU in a few words; nothing when it was not asked.
fn driver(scene: &Scene<'_>, row: &AgentRow) -> String {
    // What the driver says is said of the GPU as a whole.
    let agent = scene.snap.names.agent(row.id);
    let agent = agent.filter(|_| scene.snap.names.gpu_of(row.id) == row.id);
    let Some(device) = agent.and_then(|agent| scene.snap.device_of(agent)) else {
        return String::new();
    };
    let device = &device.now;
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    let memory = device.memory_used.as_ref().ok().zip(device.memory_total.as_ref().ok());
    let mut words = Vec::new();
    words.extend(memory.map(|(used, total)| format!("{:.0}/{:.0} GiB", gib(*used), gib(*total))));
    words.extend(device.power.as_ref().ok().map(|power| format!("{power:.0} W")));
    words.extend(device.junction.as_ref().ok().map(|heat| format!("{heat:.0} °C")));
    words.extend(device.shader_clock.as_ref().ok().map(|clock| format!("{clock:.0} MHz")));
    words.push(String::new());
    words.join("  ")
}

/// Why a GPU ran no kernel for some of the time; nothing for a busy one.
fn causes(scene: &Scene<'_>, row: &AgentRow, columns: usize) -> String {
    let mut usage = scene.snap.analysis().usage.iter();
    let Some(usage) = usage.find(|usage| usage.agent == row.id) else {
        return String::new();
    };
    let share = usage.share(usage.verdict.nanos);
    if share < WORTH_A_CAUSE {
        return String::new();
    }
    let first = usage.verdict.words(scene.snap);
    let first = first.first().map_or(0, |words| units::width(words));
    let heads = heads(
        share,
        usage.stretch.duration() + usage.start_up,
        scene.snap.values.window,
    );
    // The causes matter more than what the bar beside them shows.
    let fits = |head: &&String| units::width(head) + first + 2 <= columns;
    let head = heads.iter().find(fits).unwrap_or(&heads[heads.len() - 1]);
    let room = columns.saturating_sub(units::width(head));
    format!("{head}{}  ", gaps::causes(scene, &usage.verdict, room))
}

/// What stands before the causes, shorter and shorter. They may cover less than the window.
fn heads(share: f64, covered: u64, window: u64) -> [String; 3] {
    let share = units::percent(share);
    if covered < window {
        let of = units::duration(covered);
        return [
            format!("no kernel {share} % of the last {of}: "),
            format!("no kernel, {of}: "),
            format!("{of}: "),
        ];
    }
    [format!("no kernel {share} %: "), "no kernel: ".into(), String::new()]
}

fn gauge(share: f64) -> Role {
    match share {
        share if share >= 0.8 => Role::GaugeHigh,
        share if share >= 0.4 => Role::GaugeMid,
        _ => Role::GaugeLow,
    }
}

/// Columns of the GPUs' names: more where processes have GPUs of one number.
fn label_columns(scene: &Scene<'_>, gpus: &[&AgentRow]) -> u16 {
    let widths = gpus.iter().map(|row| units::width(&name_of(scene, row)) + 1);
    widths.max().unwrap_or(0).clamp(6, 16) as u16
}

/// More GPUs than rows: several to a row, name, bar and share only.
fn many(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, gpus: &[&AgentRow]) {
    let in_row = gpus.len().div_ceil(area.height.max(1) as usize) as u16;
    let label = label_columns(scene, gpus);
    let width = (area.width / in_row.max(1)).max(label + 8);
    for (i, row) in gpus.iter().enumerate() {
        let (x, y) = (area.x + 1 + (i as u16 % in_row) * width, area.y + i as u16 / in_row);
        if x + width > area.right() + 1 {
            continue;
        }
        let name = units::fit(&name_of(scene, row), label as usize);
        let at = canvas.say(x, y, &name, label, Role::Title);
        let room = width.saturating_sub(label + 8);
        canvas.say(at, y, &chart::bar(row.share, room as usize), room, gauge(row.share));
        canvas.right(at + room + 6, y, &format!("{}%", units::percent(row.share)), Role::Text);
    }
}

fn devices(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, gpus: &[&AgentRow]) {
    if gpus.is_empty() {
        let inner = canvas.frame(area, "GPUs", "");
        return canvas.empty(inner, &super::why_empty(scene, "GPU", 0));
    }
    let window = units::duration(scene.snap.values.window);
    let share = format!("share of the last {window} with a kernel running");
    let inner = canvas.frame(area, "GPUs", &share);
    if gpus.len() > inner.height as usize {
        return many(canvas, inner, scene, gpus);
    }
    let label = label_columns(scene, gpus);
    let bar_room = (inner.width / 4).clamp(10, 40);
    let trend_room = (inner.width / 4).min(30) as usize;
    for (i, row) in gpus.iter().take(inner.height as usize).enumerate() {
        let y = inner.y + i as u16;
        let agent = scene.snap.names.agent(row.id);
        let name = units::fit(&name_of(scene, row), label as usize);
        let mut x = canvas.say(inner.x + 1, y, &name, label, Role::Title);
        let role = gauge(row.share);
        let bar = chart::bar(row.share, bar_room as usize);
        canvas.say(x, y, &"─".repeat(bar_room as usize), bar_room, Role::GaugeRest);
        canvas.say(x, y, &bar, bar_room, role);
        x += bar_room + 1;
        canvas.right(x + 5, y, &units::percent(row.share), Role::Text);
        x = canvas.say(x + 5, y, "% ", 2, Role::Text);
        x = canvas.say(x, y, &chart::trailing(&row.trend, trend_room), trend_room as u16, role) + 2;
        let product = agent.and_then(|agent| header::model(&agent.product)).unwrap_or("");
        let arch = agent.map_or("", |agent| &agent.name);
        let room = inner.right().saturating_sub(x + 1);
        let text = format!(
            "{}{}{} {}  {}  {}",
            causes(scene, row, usize::from(room)),
            driver(scene, row),
            format!("{product} {arch} ").trim_start(),
            units::counted(row.dispatches, "kernel", "kernels"),
            units::counted(row.streams as u64, "stream", "streams"),
            units::counted(row.queues as u64, "queue", "queues"),
        );
        canvas.say(x, y, &units::items(&text, room as usize), room, Role::Muted);
    }
}
