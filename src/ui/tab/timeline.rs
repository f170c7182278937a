//! The timeline: a lane a row, and the selected slice below.

use ratatui::layout::Rect;

use crate::format;
use crate::item::{KernelId, OperationId, QueueId, TextId};
use crate::model::{LaneKey, Slice};
use crate::ui::part::canvas::{Canvas, left, top};
use crate::ui::part::lanes::{self, Stretch};
use crate::ui::part::table::Scene;
use crate::ui::theme::Role;
use crate::ui::{NameForm, Size};

/// The stretch of time on screen for lanes of so many columns.
pub(crate) fn stretch(scene: &Scene<'_>, columns: usize) -> Stretch {
    Stretch {
        from: scene.ui.time.from(scene.snap, columns),
        width: scene.ui.time.width(scene.snap, columns),
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let detail = match size {
        Size::Large => 7,
        Size::Medium => 6,
        _ => 0,
    };
    let (upper, lower) = top(area, area.height.saturating_sub(detail));
    let columns = scene.ui.lane_columns();
    let stretch = stretch(scene, columns);
    let inner = canvas.frame(upper, "Timeline", &format!("{}/col", format::duration(stretch.width)));
    panel(canvas, inner, scene, stretch, size, &lanes::order(scene.snap));
    if detail > 0 {
        let inner = canvas.frame(lower, "Selected", "[ ] slice   enter call ⇄ work   esc clear");
        for (i, (text, role)) in selected(scene).iter().take(inner.height as usize).enumerate() {
            canvas.say(
                inner.x + 1,
                inner.y + i as u16,
                text,
                inner.width.saturating_sub(1),
                *role,
            );
        }
    }
}

/// Draws the axis and as many lanes as there is room for.
pub(crate) fn panel(
    canvas: &mut Canvas<'_>,
    area: Rect,
    scene: &Scene<'_>,
    stretch: Stretch,
    size: Size,
    keys: &[LaneKey],
) {
    if area.height == 0 {
        return;
    }
    if keys.is_empty() {
        return canvas.empty(area, &super::why_empty(scene, "kernel, copy, call or marker", 0));
    }
    let label = super::label_columns(size);
    let (head, body) = top(area, 1);
    let (_, axis) = left(head, label);
    lanes::axis(canvas, axis, scene, stretch);
    let rows = body.height as usize;
    let at = scene
        .ui
        .lane
        .and_then(|lane| keys.iter().position(|&key| key == lane))
        .unwrap_or(0);
    let mut first = scene.ui.lane_offset.get().min(keys.len().saturating_sub(rows));
    if at < first {
        first = at;
    } else if at >= first + rows {
        first = at + 1 - rows;
    }
    scene.ui.lane_offset.set(first);
    let open = lanes::open_work(scene.snap);
    for (i, &key) in keys.iter().skip(first).take(rows).enumerate() {
        let row = Rect {
            y: body.y + i as u16,
            height: 1,
            ..body
        };
        let (name, lane) = left(row, label);
        let is_selected = scene.ui.lane == Some(key);
        let role = match key {
            LaneKey::Agent(_) => Role::Title,
            _ => Role::Muted,
        };
        let text = lanes::label(scene.snap, key);
        let role = if is_selected { Role::Selected } else { role };
        canvas.say(name.x, name.y, &format::fit(&text, label as usize - 1), label - 1, role);
        lanes::draw(canvas, lane, scene, key, stretch, &open);
    }
    let hidden = keys.len().saturating_sub(first + rows);
    if hidden > 0 && rows > 0 {
        canvas.say(area.x, area.y, &format!("↓{hidden} more"), label - 1, Role::Warn);
    }
}

/// What is known of the selected slice.
fn selected(scene: &Scene<'_>) -> Vec<(String, Role)> {
    let snap = scene.snap;
    let Some((key, slice)) = scene
        .ui
        .slice
        .and_then(|(key, begin)| Some((key, *snap.lane(key)?.at(begin)?)))
    else {
        let hint = "nothing selected: j k choose a lane, [ ] step from slice to slice";
        return vec![(hint.into(), Role::Muted)];
    };
    let names = &snap.names;
    let from = slice.span.begin.saturating_sub(snap.origin);
    let to = slice.span.end.saturating_sub(snap.origin);
    let place = lanes::label(snap, key).trim().to_string();
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
        LaneKey::Copies(_) => {
            let route = snap
                .values
                .copies
                .get(slice.what as usize)
                .map(|copies| copies.route)
                .unwrap_or_default();
            let speed = slice.value as f64 * 1e9 / slice.span.duration().max(1) as f64;
            let route = names.route_label(route.source, route.destination);
            out.push((
                format!("{route}  {}  {}", format::bytes(slice.value), format::bandwidth(speed)),
                Role::Text,
            ));
        }
        LaneKey::Api(..) if slice.shape != 0 => {
            out.push((format!("returned error {}", slice.value as u32 as i32), Role::Bad));
        }
        _ => {}
    }
    if let Some((other, slice)) = crate::ui::act::related(snap, key, slice.span.begin) {
        let at = format::timestamp_short(slice.span.begin.saturating_sub(snap.origin));
        out.push((format!("enter → {} at {at}", what(scene, other, &slice)), Role::Key));
    }
    out
}

fn what(scene: &Scene<'_>, key: LaneKey, slice: &Slice) -> String {
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

/// The slices on screen that pass the filter, one a line.
pub(crate) fn csv(scene: &Scene<'_>) -> String {
    let columns = scene.ui.lane_columns();
    let stretch = stretch(scene, columns);
    let to = scene.ui.time.to(scene.snap, columns);
    let mut out = String::from("Lane,Name,Begin_ns,End_ns,Correlation_Id,Value\n");
    for key in lanes::order(scene.snap) {
        let Some(slices) = scene
            .snap
            .lane(key)
            .and_then(|lane| lane.slices(stretch.from, to, 1_000_000))
        else {
            continue;
        };
        let lane = lanes::label(scene.snap, key);
        for slice in &slices {
            let subject = crate::ui::subject::SliceSubject {
                snap: scene.snap,
                key,
                slice,
            };
            if scene.ui.filter.accepts(&subject) {
                let name = what(scene, key, slice).replace('"', "\"\"");
                let (lane, span) = (lane.trim(), slice.span);
                let numbers = [span.begin, span.end, slice.correlation, slice.value].map(|n| n.to_string());
                out += &[format!("\"{lane}\",\"{name}\","), numbers.join(","), "\n".into()].concat();
            }
        }
    }
    out
}
