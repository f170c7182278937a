//! The second ruler of the timeline: when the launches began whose durations are selected.

use ratatui::layout::Rect;

use super::axis::Stretch;
use super::canvas::Canvas;
use super::table::Scene;
use crate::tab::instances::{self, Instances};
use crate::theme::Role;
use roctop_trace::units;
use std::sync::Arc;

/// The launches that are marked, if any durations are selected.
pub(crate) fn marked(scene: &Scene<'_>) -> Option<Arc<Instances>> {
    let stretch = scene.ui.stretch?;
    Some(instances::of(scene, Some(stretch.kernel)))
}

/// How many they are, and of which kernel: `a 37 launches`.
pub(crate) fn name(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, all: &Instances) {
    let letter = all.kernel.and_then(|id| scene.snap.letter(id)).unwrap_or('~');
    let count = all.within(scene.ui.stretch).count() as u64;
    let text = format!("{letter} {}", units::counted(count, "launch", "launches"));
    let room = area.width.saturating_sub(1);
    canvas.say(area.x, area.y, &units::fit(&text, room as usize), room, Role::Accent);
}

/// Marks them: one in a column, or several.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, stretch: Stretch, all: &Instances) {
    let mut counts = vec![0u32; usize::from(area.width)];
    for launch in all.within(scene.ui.stretch) {
        let begin = launch.slice.span.begin;
        if begin >= stretch.from && begin < stretch.to(area.width) {
            counts[usize::from(stretch.column(begin, area.width))] += 1;
        }
    }
    for (x, count) in (area.x..).zip(counts).filter(|column| column.1 > 0) {
        canvas.say(x, area.y, if count > 1 { "╫" } else { "▾" }, 1, Role::Accent);
    }
}
