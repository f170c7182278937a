//! The mouse does what keys do: whatever was drawn where it was pressed.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::actions::act;
use super::hit_map::Hit;
use super::key::{Mouse, MouseKind};
use super::keymap::Action;
use super::list::{ORDER_HOLD, sort_by};
use super::time::{Range, Zoom};
use super::update::on_key;
use super::widgets::table::Scene;
use super::{Effect, Tab, Ui, stretch, timeline_nav};
use roctop_model::Snapshot;
use roctop_trace::item::{Nanos, Span};

/// Does what the mouse did.
pub(super) fn on_mouse(ui: &mut Ui, latest: &Arc<Snapshot>, mouse: Mouse) -> Effect {
    let in_time = matches!(ui.tab, Tab::Timeline);
    match mouse.kind {
        MouseKind::WheelUp | MouseKind::WheelDown if in_time => wheel(ui, latest, mouse),
        MouseKind::WheelUp => act(ui, latest, Action::Up),
        MouseKind::WheelDown => act(ui, latest, Action::Down),
        MouseKind::Press => press(ui, latest, mouse),
        MouseKind::Release => release(ui, latest, mouse),
    }
}

/// Zooms about the time below the mouse.
fn wheel(ui: &mut Ui, latest: &Arc<Snapshot>, mouse: Mouse) -> Effect {
    let snap = ui.standing(latest);
    let anchor = match ui.hits.at(mouse.x, mouse.y) {
        Some((area, Hit::Time(_, from, width))) => Some(time_at(area, mouse.x, from, width)),
        _ => None,
    };
    let columns = ui.lane_columns();
    let zoom = match mouse.kind {
        MouseKind::WheelUp => Zoom::In,
        _ => Zoom::Out,
    };
    ui.time.zoom(&snap, columns, zoom, anchor);
    Effect::None
}

/// When a column of a stretch begins.
fn time_at(area: Rect, x: u16, from: Nanos, width: u64) -> Nanos {
    from.saturating_add(width.saturating_mul(u64::from(x.saturating_sub(area.x))))
}

/// Whether something stands in front of the view.
fn is_covered(ui: &Ui) -> bool {
    ui.popup.is_some() || ui.question.is_some() || ui.prompt.is_some()
}

fn press(ui: &mut Ui, latest: &Arc<Snapshot>, mouse: Mouse) -> Effect {
    let snap = ui.standing(latest);
    ui.pressed = Some((mouse.x, mouse.y));
    let Some((area, hit)) = ui.hits.at(mouse.x, mouse.y) else {
        return Effect::None;
    };
    // What stands in front takes clicks on itself only.
    if is_covered(ui) && !matches!(hit, Hit::Press(_)) {
        return Effect::None;
    }
    match hit {
        Hit::Do(action) => return act(ui, latest, action),
        Hit::Press(key) => return on_key(ui, latest, key),
        Hit::Head(pane, column) => {
            ui.focus_on(pane);
            sort_by(ui, pane, column);
        }
        Hit::Pane(pane) => ui.focus_on(pane),
        Hit::Term(at) => ui.filter = ui.filter.without(at),
        Hit::Row(pane, key) => {
            ui.focus_on(pane);
            // A click on what is selected opens it.
            if ui.pane() == Some(pane) && ui.tables[pane as usize].selected == Some(key) {
                return act(ui, latest, Action::Enter);
            }
            let keys = pane.list().keys(&Scene { ui, snap: &snap });
            let state = &mut ui.tables[pane as usize];
            state.selected = Some(key);
            state.held = Some((snap.now.saturating_add(ORDER_HOLD), keys.into()));
        }
        Hit::Lane(track) => {
            if ui.track == Some(track) && track.agent().is_some() {
                timeline_nav::fold(ui);
            } else {
                (ui.track, ui.slice, ui.gap) = (Some(track), None, None);
            }
        }
        Hit::Time(Some(track), from, width) => {
            let at = time_at(area, mouse.x, from, width);
            let here = track
                .slices(&snap, at, at.saturating_add(width), 4096)
                .unwrap_or_default();
            ui.show(Tab::Timeline);
            ui.track = Some(track);
            if let Some((key, slice)) = here.into_iter().max_by_key(|(_, slice)| slice.span.duration()) {
                if ui.slice == Some((key, slice.span.begin)) {
                    return act(ui, latest, Action::Enter);
                }
                (ui.slice, ui.gap) = (Some((key, slice.span.begin)), None);
                let columns = ui.lane_columns();
                ui.time.stand(&snap, columns);
            }
        }
        Hit::Time(None, ..) | Hit::Durations(..) => {}
    }
    Effect::None
}

/// Let go elsewhere than it was pressed: a range was dragged.
fn release(ui: &mut Ui, latest: &Arc<Snapshot>, mouse: Mouse) -> Effect {
    let Some((x, y)) = ui.pressed.take() else {
        return Effect::None;
    };
    let (pressed, released) = (ui.hits.at(x, y), ui.hits.at(mouse.x, mouse.y));
    if let (Some((_, Hit::Durations(a, b))), Some((_, Hit::Durations(c, d)))) = (pressed, released) {
        let is_of_kernel = matches!(ui.tab, Tab::Kernels | Tab::Launches);
        if is_of_kernel && !is_covered(ui) {
            let snap = ui.standing(latest);
            stretch::drag(ui, &snap, a.min(c), b.max(d));
        }
        return Effect::None;
    }
    let Some((area, Hit::Time(_, from, width))) = pressed else {
        return Effect::None;
    };
    if is_covered(ui) || x.abs_diff(mouse.x) < 2 {
        return Effect::None;
    }
    let snap = ui.standing(latest);
    let columns = ui.lane_columns();
    let (left, right) = (x.min(mouse.x), x.max(mouse.x).min(area.right()));
    let span = Span {
        begin: time_at(area, left, from, width),
        end: time_at(area, right + 1, from, width),
    };
    ui.show(Tab::Timeline);
    ui.time.stand(&snap, columns);
    ui.range = Some(Range {
        anchor: span.begin,
        head: span.end,
        moves: false,
    });
    Effect::None
}
