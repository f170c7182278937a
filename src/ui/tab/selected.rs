//! The selected slice, gap or range in words.

use roctop_ring::record::{engine, flag};

use crate::format;
use crate::item::{KernelId, OperationId, QueueId, Span, TextId};
use crate::model::analysis::{Gap, host, usage};
use crate::model::{LaneKey, Slice, Snapshot};
use crate::ui::NameForm;
use crate::ui::jump;
use crate::ui::part::plot;
use crate::ui::part::rows::{self, lane_label};
use crate::ui::part::table::Scene;
use crate::ui::theme::Role;
use crate::ui::track::Track;
use crate::ui::way::Way;

/// What is known of the selected slice.
pub(crate) fn lines(scene: &Scene<'_>) -> Vec<(String, Role)> {
    let snap = scene.snap;
    if let Some(gap) = scene.ui.gap {
        return idle(scene, gap);
    }
    if let Some(track) = scene.ui.track.filter(|track| plot::is_plot(*track)) {
        return plot::lines(snap, track);
    }
    let Some((key, slice)) = scene
        .ui
        .slice
        .and_then(|(key, begin)| Some((key, *snap.lane(key)?.at(begin)?)))
    else {
        let hint = "nothing selected: j k go from row to row, [ ] slice to slice, { } gap to gap";
        return vec![(hint.into(), Role::Muted)];
    };
    let names = &snap.names;
    let from = slice.span.begin.saturating_sub(snap.origin);
    let to = slice.span.end.saturating_sub(snap.origin);
    let place = lane_label(snap, key).trim().to_string();
    let mut out = vec![(what(scene, key, &slice), Role::Accent)];
    let when = format!(
        "{} s → {} s   {}   {place}",
        format::timestamp(from),
        format::timestamp(to),
        format::duration(slice.span.duration())
    );
    out.push((when, Role::Text));
    match key {
        LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _) => {
            let shape = snap
                .values
                .shapes
                .get(slice.shape as usize)
                .copied()
                .unwrap_or_default();
            let (grid, wg) = (shape.grid, shape.workgroup);
            let delay = (slice.submit > 0).then(|| slice.span.begin.saturating_sub(slice.submit));
            out.push((
                format!(
                    "grid {}×{}×{}  wg {}×{}×{}  LDS {}  scratch {}",
                    grid[0],
                    grid[1],
                    grid[2],
                    wg[0],
                    wg[1],
                    wg[2],
                    format::bytes(u64::from(shape.group_size)),
                    format::bytes(u64::from(shape.private_size)),
                ),
                Role::Text,
            ));
            out.push((
                format!(
                    "{} {}  dispatch {}  queue delay {}",
                    names.agent_label(agent),
                    names.queue_label(QueueId(slice.queue)),
                    format::grouped(slice.value),
                    format::maybe(delay),
                ),
                Role::Text,
            ));
        }
        LaneKey::Copies(_) => out.push((copied(snap, &slice), Role::Text)),
        LaneKey::Api(..) => {
            if slice.shape != 0 {
                let error = names.error_label(OperationId(slice.what), slice.value as u32 as i32);
                out.push((format!("returned {error}"), Role::Bad));
            }
            // A call that is still open has none.
            if slice.queue != u32::MAX && slice.span.end <= snap.now {
                out.push((names.text(TextId(slice.queue)).to_owned(), Role::Text));
            }
        }
        _ => {}
    }
    if slice.flags & flag::SUSPECT_TIME != 0 {
        out.push(("its begin and end came exchanged".into(), Role::Warn));
    }
    let all = jump::of_selected(scene.ui, snap);
    let next = jump::onward(scene.ui, &all);
    for (other, slice) in &all {
        let when = format::timestamp_short(slice.span.begin.saturating_sub(snap.origin));
        let what = what(scene, *other, slice);
        match other {
            _ if next == Some((*other, *slice)) => out.push((format!("enter → {what} at {when}"), Role::Key)),
            LaneKey::Markers(..) | LaneKey::Ranges(_) => out.push((format!("under {what}"), Role::Muted)),
            _ => out.push((format!("also {what} at {when}"), Role::Muted)),
        }
    }
    out
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
    let (bytes, speed) = (format::bytes(slice.value), format::bandwidth(speed));
    format!("{ends}  {bytes}  {speed}{by}")
}

/// What is known of a stretch without work: who was idle, and what the host did.
fn idle(scene: &Scene<'_>, gap: Span) -> Vec<(String, Role)> {
    let snap = scene.snap;
    let (from, to) = (
        gap.begin.saturating_sub(snap.origin),
        gap.end.saturating_sub(snap.origin),
    );
    let place = scene.ui.track.map(|track| rows::label(scene, track).trim().to_string());
    let agent = scene
        .ui
        .track
        .and_then(Track::agent)
        .map(|agent| snap.names.agent_label(agent));
    let place = match (agent, place) {
        (Some(agent), Some(place)) if place.starts_with(&agent) => agent,
        (Some(agent), place) => format!("{agent} {}", place.unwrap_or_default()),
        (None, place) => place.unwrap_or_default(),
    };
    let mut out = vec![
        (
            format!("{place}: idle {}", format::duration(gap.duration())),
            Role::Accent,
        ),
        (
            format!("{} s → {} s", format::timestamp(from), format::timestamp(to)),
            Role::Text,
        ),
    ];
    let Some(agent) = scene.ui.track.and_then(Track::agent) else {
        return out;
    };
    // The kernel that ended it says which thread it waited for.
    let next = Track::OnAgent(agent).neighbour(snap, gap.end.saturating_sub(1), Way::On);
    let host = host::during(snap, &Gap { agent, span: gap, next });
    let thread = host.thread.map(|thread| snap.names.thread_label(thread));
    let doing = super::gaps::doing(scene, &host);
    let nanos = host.call.map_or(0, |call| call.2);
    let text = match host.call {
        Some(_) => format!(
            "host {} was in {doing} for {} of it",
            thread.unwrap_or_default(),
            format::duration(nanos)
        ),
        None => format!("host {} was outside of calls", thread.unwrap_or_default()),
    };
    out.push((text, Role::Warn));
    if let Some((key, slice)) = next {
        let delay = (slice.submit > 0).then(|| slice.span.begin.saturating_sub(slice.submit));
        out.push((
            format!(
                "ended by {}, queue delay {}",
                what(scene, key, &slice),
                format::maybe(delay)
            ),
            Role::Text,
        ));
    }
    out
}

/// What ran in a range.
pub(crate) fn measured(scene: &Scene<'_>, range: Span) -> Vec<(String, Role)> {
    let snap = scene.snap;
    let measure = usage::measure(snap, range);
    let bound = if snap.values.totals.lost > 0 { "≥" } else { "" };
    let mut out = Vec::new();
    if !measure.is_whole {
        let rows = snap.values.agents.iter().filter(|row| row.dispatches > 0);
        out.extend(rows.map(|row| {
            let busy = usage::busy(snap, row.id, range.begin, range.end);
            let share = format::percent(busy as f64 / range.duration().max(1) as f64);
            (
                format!("{} busy {bound}~{share} %", snap.names.agent_label(row.id)),
                Role::Text,
            )
        }));
        out.push(("its slices are not all kept in full".into(), Role::Muted));
        return out;
    }
    for row in &measure.usage {
        let share = |nanos: u64| format::percent(row.share(nanos));
        let text = format!(
            "{} busy {bound}{} %  idle {} %  copy {} %",
            snap.names.agent_label(row.agent),
            share(row.compute),
            share(row.idle),
            share(row.copy),
        );
        out.push((
            text,
            if row.share(row.idle) > 0.5 {
                Role::Warn
            } else {
                Role::Text
            },
        ));
    }
    let all = measure
        .kernels
        .iter()
        .fold(0u64, |sum, known| sum.saturating_add(known.2));
    for (id, count, nanos) in measure.kernels.iter().take(3) {
        let name = super::kernels::name(scene.snap, *id, scene.ui.names);
        let text = format!(
            "{} {} {:>8} {:>5} %  {}×",
            scene.snap.letter(*id).unwrap_or('*'),
            format::fit(&format::elide(&name, 20), 20),
            format::duration(*nanos),
            format::percent(*nanos as f64 / all.max(1) as f64),
            format::count(*count),
        );
        out.push((text, Role::Text));
    }
    for (way, count, bytes, nanos) in &measure.copies {
        let speed = *bytes as f64 * 1e9 / (*nanos).max(1) as f64;
        let text = format!(
            "copy {} {}×  {}  {}",
            roctop_ring::record::direction::name(*way),
            format::count(*count),
            format::bytes(*bytes),
            format::bandwidth(speed)
        );
        out.push((text, Role::Text));
    }
    out
}

/// What is known of the selected slice, as a text.
pub(crate) fn text(scene: &Scene<'_>) -> String {
    let lines: Vec<String> = lines(scene).into_iter().map(|line| line.0).collect();
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
            let form = if scene.ui.names == NameForm::Short {
                NameForm::Full
            } else {
                scene.ui.names
            };
            format!("{letter} {}", super::kernels::name(scene.snap, id, form))
        }
        LaneKey::Copies(way) => format!("copy {}", roctop_ring::record::direction::name(way)),
        LaneKey::Api(..) => names
            .operation(OperationId(slice.what))
            .map_or("?", |name| &name.operation.name)
            .into(),
        LaneKey::Markers(..) | LaneKey::Ranges(_) => format!("range {}", names.text(TextId(slice.what))),
        LaneKey::Agent(_) => "busy".into(),
    }
}
