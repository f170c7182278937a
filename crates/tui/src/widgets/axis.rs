//! The axis of time: ticks, marks, the range that is measured.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::table::Scene;
use crate::tab::alerts;
use crate::theme::Role;
use crate::time::nice;
use roctop_trace::item::Nanos;
use roctop_trace::units;

/// The stretch of time of an area.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) from: Nanos,
    /// Nanoseconds per column.
    pub(crate) width: u64,
}

impl Stretch {
    pub(crate) fn to(self, columns: u16) -> Nanos {
        self.from.saturating_add(self.width.saturating_mul(u64::from(columns)))
    }

    pub(crate) fn column(self, at: Nanos, columns: u16) -> u16 {
        (at.saturating_sub(self.from) / self.width.max(1)).min(u64::from(columns)) as u16
    }
}

/// Draws the axis: ticks at round times, each with its label.
pub(crate) fn axis(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, stretch: Stretch) {
    let snap = scene.snap;
    let step = nice(stretch.width.saturating_mul(18));
    let decimals = 9usize.saturating_sub(step.ilog10() as usize);
    let mut tick = stretch
        .from
        .saturating_sub(snap.origin)
        .div_ceil(step)
        .saturating_mul(step);
    let on_screen = |at: Nanos| at >= stretch.from && at < stretch.to(area.width);
    let alerts = alerts::moments(scene).filter(|at| on_screen(*at));
    let alerts: Vec<u16> = alerts.map(|at| area.x + stretch.column(at, area.width)).collect();
    for _ in 0..area.width {
        let at = snap.origin.saturating_add(tick);
        if at >= stretch.to(area.width) {
            break;
        }
        let seconds = tick as f64 / 1e9;
        let text = format!("╷+{seconds:.decimals$}");
        let x = area.x + stretch.column(at, area.width);
        let room = area.right().saturating_sub(x);
        // Half a label would be another time.
        let after = x.saturating_add(units::width(&text) as u16);
        let is_free = alerts.iter().all(|alert| !(x..after).contains(alert));
        let text = if is_free && units::width(&text) <= usize::from(room) {
            &text
        } else {
            "╷"
        };
        canvas.say(x, area.y, text, room, Role::Muted);
        tick = tick.saturating_add(step);
    }
    for &x in &alerts {
        canvas.say(x, area.y, "!", 1, Role::Warn);
    }
    // Where the lanes end: said once, since a mark in each lane would go over the wire ten times a second.
    let now = area.x.saturating_add(stretch.column(snap.now, area.width));
    let cell = canvas.buffer.cell((now, area.y));
    let is_free = cell.is_some_and(|cell| cell.symbol() == " ");
    if snap.is_running() && now < area.right() && is_free {
        canvas.say(now, area.y, "▾", 1, Role::Now);
    }
    if let Some(range) = scene.ui.range {
        let span = range.span();
        let first = stretch.column(span.begin, area.width);
        let last = stretch.column(span.end.saturating_sub(1), area.width.saturating_sub(1));
        if span.end > stretch.from && span.begin < stretch.to(area.width) {
            let cells = (last + 1).saturating_sub(first);
            let text = format!(" {} ", units::duration(span.duration()));
            let text = if cells as usize >= text.len() + 2 {
                text
            } else {
                String::new()
            };
            let rule = "─".repeat((cells as usize).saturating_sub(2 + units::width(&text)));
            let line = format!("[{text}{rule}]");
            canvas.say(area.x + first, area.y, &line, cells.max(1), Role::Accent);
        }
    }
    for (number, &mark) in scene.ui.marks.iter().enumerate().filter(|(_, mark)| on_screen(**mark)) {
        let x = area.x + stretch.column(mark, area.width);
        canvas.say(x, area.y, &format!("▲{}", number + 1), 3, Role::Warn);
    }
    // Where the selected slice begins.
    if let Some((_, begin)) = scene.ui.slice
        && on_screen(begin)
    {
        let x = area.x + stretch.column(begin, area.width);
        canvas.say(x, area.y, "▼", 1, Role::Accent);
    }
}
