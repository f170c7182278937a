//! What the program printed, and how it ended.

use std::sync::Arc;

use ratatui::layout::Rect;

use crate::format;
use crate::item::Dispatch;
use crate::model::Snapshot;
use crate::model::snapshot::ending as ending_of;
use crate::ui::part::canvas::{Canvas, top};
use crate::ui::part::table::Scene;
use crate::ui::theme::Role;

/// The lines that pass the filter.
pub(crate) fn lines<'a>(scene: &Scene<'a>) -> Vec<&'a Arc<str>> {
    let filter = &scene.ui.filter;
    scene
        .snap
        .output
        .iter()
        .filter(|line| filter.is_empty() || filter.accepts_text(line))
        .collect()
}

/// All lines that pass, as a text.
pub(crate) fn text(scene: &Scene<'_>) -> String {
    lines(scene).iter().fold(String::new(), |out, line| out + line + "\n")
}

/// Of each process so many open calls and kernels are told one by one.
const MOST_OPEN: usize = 8;

/// How the program ended, and what was running then; empty while it runs.
pub(crate) fn ending(snap: &Snapshot) -> Vec<(String, Role)> {
    let Some(exit) = snap.ended else { return Vec::new() };
    let bad = exit != crate::item::Exit::Code(0);
    let at = ending_of(&snap.values.processes).map_or(snap.now, |exit| exit.1);
    let after = format::duration(at.saturating_sub(snap.origin));
    let mut lines = vec![(
        format!("■ {} after {after}", format::exit(exit)),
        if bad { Role::Bad } else { Role::Ended },
    )];
    if !bad {
        return lines;
    }
    for open in &snap.open {
        for call in open.calls.iter().take(MOST_OPEN) {
            let name = snap
                .names
                .operation(call.operation)
                .map_or("?", |name| &name.operation.name);
            let age = format::duration(at.saturating_sub(call.span.begin));
            let thread = snap.names.thread_label(call.thread);
            lines.push((format!("▒ {age} in {name} ({thread})"), Role::Open));
        }
        let mut oldest: Vec<&Dispatch> = open.dispatches.iter().collect();
        oldest.sort_by_key(|dispatch| dispatch.submit);
        for dispatch in oldest.iter().take(MOST_OPEN) {
            let name = snap.names.kernel(dispatch.kernel).map_or("?", |name| &name.short);
            let age = format::duration(at.saturating_sub(dispatch.submit));
            let place = snap.names.agent_label(dispatch.agent);
            let queue = snap.names.queue_label(dispatch.queue);
            lines.push((format!("▒ {age} {name} on {place} {queue}"), Role::Open));
        }
        if let Some(more) = oldest.len().checked_sub(MOST_OPEN).filter(|&more| more > 0) {
            lines.push((format!("▒ and {more} kernels more"), Role::Open));
        }
    }
    if lines.len() == 1 {
        lines.push(("  nothing was open: no call, no kernel".into(), Role::Muted));
    }
    lines
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>) {
    let ending = ending(scene.snap);
    let rows = if ending.is_empty() {
        0
    } else {
        (ending.len() as u16 + 2).min(area.height / 2)
    };
    let (upper, lower) = top(area, area.height - rows);
    let lines = lines(scene);
    let right = match scene.ui.scrolled {
        0 => format!("{} lines", lines.len()),
        back => format!("{back} lines back, G to the end"),
    };
    let title = if scene.ui.typing {
        "Output of the program: you type to it"
    } else {
        "Output of the program"
    };
    let inner = canvas.frame(upper, title, &right);
    if lines.is_empty() {
        let why = match (scene.snap.output.is_empty(), scene.snap.mode) {
            (false, _) => "the filter lets no line pass".to_string(),
            (true, crate::model::Mode::Replay) => "the recording has no output".to_string(),
            (true, _) if scene.ui.attached => {
                "attached: what the program prints goes to the roctop that started it".to_string()
            }
            (true, _) => "the program has printed nothing".to_string(),
        };
        canvas.empty(inner, &[why]);
    }
    let end = lines
        .len()
        .saturating_sub(scene.ui.scrolled.min(lines.len().saturating_sub(inner.height as usize)));
    let begin = end.saturating_sub(inner.height as usize);
    for (i, line) in lines[begin..end].iter().enumerate() {
        canvas.say(
            inner.x + 1,
            inner.y + i as u16,
            line,
            inner.width.saturating_sub(1),
            Role::Text,
        );
    }
    if rows > 0 {
        let inner = canvas.frame(lower, "End", "");
        for (i, (text, role)) in ending.iter().take(inner.height as usize).enumerate() {
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
