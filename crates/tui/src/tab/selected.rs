//! The selected slice, gap or range in words.

use std::sync::Arc;

use roctop_ring::record::{engine, flag};

use crate::NameForm;
use crate::direction::Direction;
use crate::jump;
use crate::tab::sites;
use crate::theme::Role;
use crate::track::Track;
use crate::widgets::plot;
use crate::widgets::rows::{self, lane_label};
use crate::widgets::table::Scene;
use roctop_model::analysis::collectives as words;
use roctop_model::analysis::{Gap, Verdict, host, usage, verdict};
use roctop_model::collectives::{Collective, CollectiveSlice, Times};
use roctop_model::sites::PathId;
use roctop_model::{LaneKey, Slice, Snapshot};
use roctop_trace::item::{AgentId, KernelId, Nanos, OperationId, ProcessId, QueueId, Span, TextId};
use roctop_trace::units;

/// A line and how it looks.
type Line = (String, Role);

/// What is known of the selected slice, gap or plot.
pub(crate) fn lines(scene: &Scene<'_>) -> Vec<Line> {
    let snap = scene.snap;
    if let Some(gap) = scene.ui.gap {
        return idle(scene, gap);
    }
    if let Some(track) = scene.ui.track.filter(|track| plot::is_plot(*track)) {
        return plot::lines(snap, track);
    }
    let selected = scene.ui.slice;
    if let Some((key, slice)) = selected.and_then(|(key, begin)| Some((key, *snap.lane(key)?.at(begin)?))) {
        return of_slice(scene, key, &slice);
    }
    let hint = "Nothing selected.   j k row   [ ] slice   { } gap";
    vec![(hint.into(), Role::Muted)]
}

/// What it is, when and where, what is known of its kind, and what belongs to it.
fn of_slice(scene: &Scene<'_>, key: LaneKey, slice: &Slice) -> Vec<Line> {
    let snap = scene.snap;
    let since = |at: Nanos| units::timestamp(at.saturating_sub(snap.origin));
    let when = format!(
        "{} s → {} s   {}   {}",
        since(slice.span.begin),
        since(slice.span.end),
        units::duration(slice.span.duration()),
        lane_label(snap, key).trim()
    );
    let mut out = vec![(what(scene, key, slice), Role::Accent), (when, Role::Text)];
    match key {
        LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _) => out.extend(dispatched(snap, agent, slice)),
        LaneKey::Copies(_) => out.push((copied(snap, slice), Role::Text)),
        LaneKey::Collectives(number) => out.extend(collective(snap, number, slice)),
        LaneKey::Api(..) => out.extend(called(snap, slice)),
        _ => {}
    }
    if slice.flags & flag::SUSPECT_TIME != 0 {
        out.push(("its begin and end came exchanged".into(), Role::Warn));
    }
    if slice.is_along() {
        let text = "began before the recorded time: it is here because of what it caused, and not counted";
        out.push((text.into(), Role::Muted));
    }
    out.extend(related(scene));
    if slice.site.is_known() {
        let path = snap.sites.path_of(ProcessId(slice.process), slice.site);
        out.push((format!("from {}", sites::label(snap, path)), Role::Accent));
        out.extend(of_graph(scene, slice));
    }
    out
}

/// Where the graph was launched that a dispatch belongs to.
fn of_graph(scene: &Scene<'_>, slice: &Slice) -> Option<Line> {
    let snap = scene.snap;
    let launches = jump::of_selected(scene.ui, snap).into_iter();
    let is_launch = |slice: &Slice| {
        let operation = snap.names.operation(OperationId(slice.what));
        operation.is_some_and(|known| known.operation.name.starts_with("hipGraphLaunch"))
    };
    let mut launches = launches.filter(|(key, slice)| matches!(key, LaneKey::Api(..)) && is_launch(slice));
    let (_, launch) = launches.next()?;
    if launch.site == slice.site {
        let text = "in a graph: which node it is of is not known, this is the launch";
        return Some((text.into(), Role::Muted));
    }
    let path = snap.sites.path_of(ProcessId(launch.process), launch.site);
    let text = format!("in a graph launched from {}", sites::label(snap, path));
    launch.site.is_known().then_some((text, Role::Text))
}

/// The process and call path of the selected slice; none if nothing with a site is selected.
pub(crate) fn call_path(scene: &Scene<'_>) -> Option<(ProcessId, Option<PathId>)> {
    if scene.ui.gap.is_some() || scene.ui.track.is_some_and(plot::is_plot) {
        return None;
    }
    let (key, begin) = scene.ui.slice?;
    let slice = scene.snap.lane(key)?.at(begin)?;
    let process = ProcessId(slice.process);
    let is_known = slice.site.is_known();
    is_known.then(|| (process, scene.snap.sites.path_of(process, slice.site)))
}

/// With which geometry, and on what queue after how long.
fn dispatched(snap: &Snapshot, agent: AgentId, slice: &Slice) -> [Line; 2] {
    let shape = snap.values.shapes.get(slice.shape as usize).copied();
    let shape = shape.unwrap_or_default();
    let ([gx, gy, gz], [wx, wy, wz]) = (shape.grid, shape.workgroup);
    let geometry = format!(
        "grid {gx}×{gy}×{gz}  wg {wx}×{wy}×{wz}  LDS {}  scratch {}",
        units::bytes(u64::from(shape.group_size)),
        units::bytes(u64::from(shape.private_size)),
    );
    let queue = format!(
        "{} {}  dispatch {}  queue delay {}",
        snap.names.agent_label(agent),
        snap.names.queue_label(QueueId(slice.queue)),
        units::grouped(slice.value),
        units::duration_or_missing(delay(slice)),
    );
    [(geometry, Role::Text), (queue, Role::Text)]
}

/// The skew of a collective with its error, who came last, and what that rank did instead.
fn collective(snap: &Snapshot, communicator: u32, slice: &Slice) -> Vec<Line> {
    let shown = CollectiveSlice::of(slice);
    let mut recent = snap.values.collectives.recent.iter().rev();
    let is_it = |(collective, _): &&(Arc<Collective>, Times)| {
        let key = collective.key;
        (key.communicator, u64::from(key.sequence), key.pair) == (communicator, shown.sequence, shown.pair)
    };
    let Some((collective, times)) = recent.find(is_it) else {
        return Vec::new();
    };
    let rate = times
        .bus_bandwidth()
        .map(|rate| format!("   bus {}", units::bandwidth(rate)));
    let numbers = format!(
        "skew {} ±{}   transfer {}{}",
        units::duration(times.skew()),
        words::error(times.error),
        units::duration(times.transfer()),
        rate.unwrap_or_default()
    );
    let mut lines = vec![(numbers, Role::Text)];
    if let Some(part) = collective.latest(times) {
        let instead = words::instead(snap, collective, times);
        lines.push((format!("rank {} came last: {instead}", part.rank), Role::Text));
    }
    lines
}

/// From submit to begin, where the submit is known.
fn delay(slice: &Slice) -> Option<u64> {
    (slice.submit > 0).then(|| slice.span.begin.saturating_sub(slice.submit))
}

/// What a call returned when that is an error, and what it was called with.
fn called(snap: &Snapshot, slice: &Slice) -> impl Iterator<Item = Line> {
    let names = &snap.names;
    let error = (slice.shape != 0).then(|| {
        let error = names.error_label(OperationId(slice.what), slice.value as u32 as i32);
        (format!("returned {error}"), Role::Bad)
    });
    // A call that is still open has no arguments yet.
    let has_arguments = slice.queue != u32::MAX && slice.span.end <= snap.now;
    let arguments = has_arguments.then(|| (names.text(TextId(slice.queue)).to_owned(), Role::Text));
    error.into_iter().chain(arguments)
}

/// What belongs to the selected slice: where enter leads first.
fn related(scene: &Scene<'_>) -> impl Iterator<Item = Line> {
    let snap = scene.snap;
    let all = jump::of_selected(scene.ui, snap);
    let next = jump::onward(scene.ui, &all);
    let selected = scene.ui.slice.map_or(0, |(_, begin)| begin);
    // Before or after the selected slice.
    let since = move |at: Nanos| match at.checked_sub(selected) {
        Some(after) => format!("(+{})", units::duration(after)),
        None => format!("(-{})", units::duration(selected - at)),
    };
    all.into_iter().map(move |(key, slice)| {
        let when = units::timestamp_short(slice.span.begin.saturating_sub(snap.origin));
        let what = what(scene, key, &slice);
        match key {
            _ if next == Some((key, slice)) => (format!("enter → {what} at {when}"), Role::Key),
            LaneKey::Markers(..) | LaneKey::Ranges(_) => (format!("under {what}"), Role::Muted),
            _ => (
                format!("{} {what} {}", relation(key), since(slice.span.begin)),
                Role::Muted,
            ),
        }
    })
}

/// How other work belongs to the selected slice.
const fn relation(key: LaneKey) -> &'static str {
    match key {
        LaneKey::Api(..) => "launched by",
        _ => "launched",
    }
}

/// From where to where, how much and how fast.
fn copied(snap: &Snapshot, slice: &Slice) -> String {
    let copies = snap.values.copies.get(slice.what as usize);
    let route = copies.map(|copies| copies.route).unwrap_or_default();
    let speed = slice.value as f64 * 1e9 / slice.span.duration().max(1) as f64;
    let by = if route.engine == engine::CALL {
        "  by the call: its time"
    } else {
        ""
    };
    let ends = snap.names.route_label(route.source, route.destination);
    let (bytes, speed) = (units::bytes(slice.value), units::bandwidth(speed));
    format!("{ends}  {bytes}  {speed}{by}")
}

/// What is known of a stretch without work: who was idle, and what the host did.
fn idle(scene: &Scene<'_>, gap: Span) -> Vec<Line> {
    let snap = scene.snap;
    let since = |at: Nanos| units::timestamp(at.saturating_sub(snap.origin));
    let agent = scene.ui.track.and_then(Track::agent);
    let title = format!("{}: idle {}", idle_place(scene, agent), units::duration(gap.duration()));
    let when = format!("{} s → {} s", since(gap.begin), since(gap.end));
    let mut out = vec![(title, Role::Accent), (when, Role::Text)];
    let Some(agent) = agent else {
        return out;
    };
    // The kernel that ended it says which thread it waited for.
    let next = Track::OnAgent(agent).neighbour(snap, gap.end.saturating_sub(1), Direction::On);
    let host = host::during(snap, &Gap::new(agent, gap, next));
    let thread = host.thread.map(|thread| snap.names.thread_label(thread));
    let thread = thread.unwrap_or_default();
    let did = match host.call {
        Some((.., nanos)) => format!(
            "host {thread} was in {} for {} of it",
            super::gaps::longest_call(scene, &host),
            units::duration(nanos)
        ),
        None => format!("host {thread} was outside of calls"),
    };
    let usage = snap.analysis().whole.iter();
    let known = usage
        .filter(|usage| usage.agent == agent)
        .find_map(|usage| usage.verdict_of(gap));
    // A stream's gap is none of the GPU's while others run.
    let is_of_gpu = matches!(scene.ui.track, Some(Track::Lane(LaneKey::Agent(_))));
    let verdict = match known {
        Some(verdict) => verdict.clone(),
        None if is_of_gpu => verdict::of_gap(snap, agent, gap),
        None => Verdict::default(),
    };
    for part in &verdict.parts {
        let sign = if part.is_estimated { "≈" } else { "" };
        let share = units::percent(verdict.share(part));
        out.push((
            format!("{sign}{share} %: {}", part.cause.explanation(snap)),
            Role::Accent,
        ));
    }
    out.push((did, Role::Warn));
    out.extend(next.map(|(key, slice)| {
        let (what, delay) = (what(scene, key, &slice), units::duration_or_missing(delay(&slice)));
        (format!("ended by {what}, queue delay {delay}"), Role::Text)
    }));
    out
}

/// The GPU that was idle, or its row of the timeline.
fn idle_place(scene: &Scene<'_>, agent: Option<AgentId>) -> String {
    let row = scene.ui.track.map(|track| rows::label(scene, track).trim().to_string());
    let row = row.unwrap_or_default();
    match agent.map(|agent| scene.snap.names.agent_label(agent)) {
        Some(agent) if row.starts_with(&agent) => agent,
        Some(agent) => format!("{agent} {row}"),
        None => row,
    }
}

/// What ran in a range.
pub(crate) fn measured(scene: &Scene<'_>, range: Span) -> Vec<Line> {
    let snap = scene.snap;
    let measure = usage::measure(snap, range);
    let bound = if snap.values.totals.lost.is_any() { "≥" } else { "" };
    if !measure.is_whole {
        return estimated(snap, range, bound);
    }
    let usage = measure.usage.iter().map(|row| {
        let share = |nanos: u64| units::percent(row.share(nanos));
        let text = format!(
            "{} busy {bound}{} %  idle {} %  copy {} %",
            snap.names.agent_label(row.agent),
            share(row.compute),
            share(row.idle),
            share(row.copy),
        );
        let is_idle = row.share(row.idle) > 0.5;
        (text, if is_idle { Role::Warn } else { Role::Text })
    });
    let kernels = &measure.kernels;
    let all = kernels.iter().fold(0u64, |sum, known| sum.saturating_add(known.2));
    let kernels = kernels.iter().take(3).map(|(id, count, nanos)| {
        let name = super::kernels::name(snap, *id, scene.ui.prefs.names);
        let text = format!(
            "{} {} {:>8} {:>5} %  {}×",
            snap.letter(*id).unwrap_or('*'),
            units::fit(&units::elide(&name, 20), 20),
            units::duration(*nanos),
            units::percent(*nanos as f64 / all.max(1) as f64),
            units::count(*count),
        );
        (text, Role::Text)
    });
    let copies = measure.copies.iter().map(|(way, count, bytes, nanos)| {
        let speed = *bytes as f64 * 1e9 / (*nanos).max(1) as f64;
        let text = format!(
            "copy {} {}×  {}  {}",
            roctop_ring::record::direction::name(*way),
            units::count(*count),
            units::bytes(*bytes),
            units::bandwidth(speed)
        );
        (text, Role::Text)
    });
    usage.chain(kernels).chain(copies).collect()
}

/// What sums say of a range whose slices are not all kept.
fn estimated(snap: &Snapshot, range: Span, bound: &str) -> Vec<Line> {
    let gpus = snap.gpus().into_iter().map(|gpu| gpu.row);
    let rows = gpus.filter(|row| row.dispatches > 0);
    let busy = rows.map(|row| {
        let busy = usage::busy(snap, row.id, range.begin, range.end);
        let share = units::percent(busy as f64 / range.duration().max(1) as f64);
        let agent = snap.names.agent_label(row.id);
        (format!("{agent} busy {bound}~{share} %"), Role::Text)
    });
    let note = ("its slices are not all kept in full".into(), Role::Muted);
    busy.chain([note]).collect()
}

/// What is known of the selected slice, as a text.
pub(crate) fn text(scene: &Scene<'_>) -> String {
    let mut lines: Vec<String> = lines(scene).into_iter().map(|line| line.0).collect();
    if let Some((process, path)) = call_path(scene) {
        lines.extend(sites::frames(scene, process, path).map(|frame| frame.text()));
    }
    lines.join("\n")
}

/// What a slice is called.
pub(crate) fn what(scene: &Scene<'_>, key: LaneKey, slice: &Slice) -> String {
    let names = &scene.snap.names;
    match key {
        LaneKey::Stream(..) | LaneKey::Queue(..) => {
            let id = KernelId(slice.what);
            let letter = scene
                .snap
                .letter(id)
                .unwrap_or(if names.is_internal(id) { '~' } else { '*' });
            let form = if scene.ui.prefs.names == NameForm::Short {
                NameForm::Full
            } else {
                scene.ui.prefs.names
            };
            format!("{letter} {}", super::kernels::name(scene.snap, id, form))
        }
        LaneKey::Copies(way) => format!("copy {}", roctop_ring::record::direction::name(way)),
        LaneKey::Collectives(_) => CollectiveSlice::of(slice).words(),
        LaneKey::Api(..) => names
            .operation(OperationId(slice.what))
            .map_or("?", |name| &name.operation.name)
            .into(),
        LaneKey::Markers(..) | LaneKey::Ranges(_) => format!("range {}", names.text(TextId(slice.what))),
        LaneKey::Agent(_) => "busy".into(),
    }
}
