//! What the program printed, and how it ended.

use std::sync::Arc;

use ratatui::layout::Rect;

use crate::direction::Direction;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::table::Scene;
use crate::{Size, Ui};
use roctop_model::snapshot::ending as ending_of;
use roctop_model::{Mode, Snapshot};
use roctop_trace::item::Dispatch;
use roctop_trace::units;

/// Whether a line is one that is looked for.
fn is_match(ui: &Ui, line: &str) -> bool {
    !ui.log.search.is_empty() && ui.log.search.accepts_text(line)
}

/// How many lines are looked for, of how many: `3 of 120 lines`.
pub(crate) fn matches(scene: &Scene<'_>) -> String {
    let lines = &scene.snap.output;
    let found = lines.iter().filter(|line| is_match(scene.ui, line)).count();
    format!("{found} of {}", units::counted(lines.len() as u64, "line", "lines"))
}

/// All lines as a text.
pub(crate) fn text(scene: &Scene<'_>) -> String {
    scene
        .snap
        .output
        .iter()
        .fold(String::new(), |out, line| out + line + "\n")
}

/// The line that was found, else the newest.
pub(crate) fn line(scene: &Scene<'_>) -> Option<String> {
    let line = scene.ui.log.found.as_ref().or_else(|| scene.snap.output.last());
    line.map(ToString::to_string)
}

/// Goes to the next line that is looked for: upwards from the newest, as the output grows at its end; or back down.
pub(crate) fn find(ui: &mut Ui, snap: &Snapshot, way: Direction) {
    if ui.log.search.is_empty() {
        return ui.say(snap, "no search yet: press /");
    }
    let lines = &snap.output;
    let now = ui.log.found.as_ref();
    let now = now.and_then(|found| lines.iter().rposition(|line| Arc::ptr_eq(line, found)));
    let wanted = |at: &usize| is_match(ui, &lines[*at]);
    let next = match (now, way) {
        (None, _) => (0..lines.len()).rev().find(wanted),
        (Some(now), Direction::Back) => (0..now).rev().find(wanted),
        (Some(now), Direction::On) => (now + 1..lines.len()).find(wanted),
    };
    let Some(next) = next else {
        let text = match (now, way) {
            (None, _) => "no line of the output matches",
            (_, Direction::Back) => "no match further up",
            (_, Direction::On) => "no match further down",
        };
        return ui.say(snap, text);
    };
    ui.log.found = Some(lines[next].clone());
    // The line found stands in the middle, unless the end is nearer.
    ui.log.scrolled = (lines.len() - next).saturating_sub(usize::from(ui.size.1 / 2));
}

/// Columns that one key moves lines to the side.
const STEP: usize = 20;

/// Moves the lines to the side, as far as the widest one has something there.
pub(crate) fn shift(ui: &mut Ui, snap: &Snapshot, way: Direction) {
    let widest = snap.output.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    ui.log.shifted = match way {
        Direction::Back => ui.log.shifted.saturating_sub(STEP),
        Direction::On if ui.log.shifted + STEP < widest => ui.log.shifted + STEP,
        Direction::On => return ui.say(snap, "no line goes further to the right"),
    };
}

/// The columns of a line from one on; a mark stands where more of it is to the side.
fn part(line: &str, from: usize, columns: usize) -> String {
    let (mut at, mut out) = (0, String::new());
    let (begin, end) = (from + usize::from(from > 0), from + columns);
    let mut cut = false;
    for c in line.chars() {
        let next = at + units::width(c.encode_utf8(&mut [0; 4]));
        if next > end {
            cut = true;
            break;
        }
        if at >= begin {
            out.push(c);
        }
        at = next;
    }
    if from > 0 && at > 0 {
        out.insert(0, '…');
    }
    if cut {
        while units::width(&out) >= columns.max(1) {
            out.pop();
        }
        out.push('…');
    }
    out
}

/// Open calls and kernels that are listed, per process.
const MAX_OPEN: usize = 8;

/// How the program ended, and what was running then; empty while it runs.
pub(crate) fn ending(snap: &Snapshot) -> Vec<(String, Role)> {
    let Some(exit) = snap.ended else { return Vec::new() };
    let bad = exit != roctop_trace::item::Exit::Code(0);
    let at = ending_of(&snap.values.processes).map_or(snap.now, |exit| exit.1);
    let after = units::duration(at.saturating_sub(snap.origin));
    let mut lines = vec![(
        format!("■ {} after {after}", units::exit(exit)),
        if bad { Role::Bad } else { Role::Ended },
    )];
    if !bad {
        return lines;
    }
    for open in &snap.open {
        for call in open.calls.iter().take(MAX_OPEN) {
            let name = snap
                .names
                .operation(call.operation)
                .map_or("?", |name| &name.operation.name);
            let age = units::duration(at.saturating_sub(call.span.begin));
            let thread = snap.names.thread_label(call.thread);
            lines.push((format!("▒ {age} in {name} ({thread})"), Role::Open));
        }
        let mut oldest: Vec<&Dispatch> = open.dispatches.iter().collect();
        oldest.sort_by_key(|dispatch| dispatch.submit);
        for dispatch in oldest.iter().take(MAX_OPEN) {
            let name = snap.names.kernel(dispatch.kernel).map_or("?", |name| &name.short);
            let age = units::duration(at.saturating_sub(dispatch.submit));
            let place = snap.names.agent_label(dispatch.agent);
            let queue = snap.names.queue_label(dispatch.queue);
            lines.push((format!("▒ {age} {name} on {place} {queue}"), Role::Open));
        }
        if let Some(more) = oldest.len().checked_sub(MAX_OPEN).filter(|&more| more > 0) {
            lines.push((format!("▒ and {more} kernels more"), Role::Open));
        }
    }
    if lines.len() == 1 {
        lines.push(("  nothing was open: no call, no kernel".into(), Role::Muted));
    }
    lines
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, _: Size) {
    let mut ending = ending(scene.snap);
    if let Some(fate) = scene.ui.program.fate.as_ref().filter(|_| !ending.is_empty()) {
        ending.insert(1, (format!("  {fate}"), Role::Text));
    }
    let rows = if ending.is_empty() {
        0
    } else {
        (ending.len() as u16 + 2).min(area.height / 2)
    };
    let (upper, lower) = top(area, area.height - rows);
    let lines = &scene.snap.output;
    let mut right = match scene.ui.log.scrolled {
        0 => units::counted(lines.len() as u64, "line", "lines"),
        back => format!("{back} lines back, G to the end"),
    };
    if scene.ui.log.shifted > 0 {
        right = format!("{right}, from column {}, h back", scene.ui.log.shifted + 1);
    }
    let title = if scene.ui.program.typing {
        "Output of the program: you type to it"
    } else {
        "Output of the program"
    };
    let inner = canvas.frame(upper, title, &right);
    if lines.is_empty() {
        let why = match (scene.snap.mode, &scene.ui.prefs.detached.output) {
            (Mode::Replay, _) if scene.snap.loading.percent().is_some() => "the recording is being read".into(),
            (Mode::Replay, _) => "the recording has no output".into(),
            (Mode::Live, Some(place)) => format!("what the program prints goes to {place}"),
            (Mode::Live, None) => "the program has printed nothing".into(),
        };
        canvas.empty(inner, &[why]);
    }
    let end = lines.len().saturating_sub(
        scene
            .ui
            .log
            .scrolled
            .min(lines.len().saturating_sub(inner.height as usize)),
    );
    let begin = end.saturating_sub(inner.height as usize);
    for (y, line) in (inner.y..).zip(&lines[begin..end]) {
        let is_found = scene
            .ui
            .log
            .found
            .as_ref()
            .is_some_and(|found| Arc::ptr_eq(found, line));
        let is_match = is_found || is_match(scene.ui, line);
        let role = if is_match { Role::Match } else { Role::Text };
        let sign = if is_found { "▸" } else { " " };
        canvas.say(inner.x, y, sign, 1, Role::Accent);
        let room = inner.width.saturating_sub(1);
        let line = part(line, scene.ui.log.shifted, room.into());
        canvas.say(inner.x + 1, y, &line, room, role);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_cut_has_a_mark() {
        assert_eq!(part("0123456789", 0, 10), "0123456789");
        assert_eq!(part("0123456789", 0, 9), "01234567…");
        assert_eq!(part("0123456789", 4, 4), "…56…");
        assert_eq!(part("0123456789", 4, 6), "…56789");
        assert_eq!(part("", 4, 6), "");
        assert_eq!(part("日本語", 0, 5), "日本…");
        assert_eq!(part("0123456789", 0, 0), "…");
    }
}
