//! The stretch of a kernel's histogram that is selected: the launches that took as long are listed, and marked on the ruler of
//! the timeline.

use super::direction::Direction;
use super::tab::instances::{self, Instances};
use super::widgets::table::Scene;
use super::{Pane, Tab, Ui};
use roctop_model::Snapshot;
use roctop_trace::item::KernelId;

/// A stretch of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Of this kernel.
    pub kernel: KernelId,
    /// Its shortest and its longest duration, ns.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// Keys move the end, not the begin.
    pub moves_end: bool,
}

impl Stretch {
    /// Whether a launch of the kernel took as long.
    pub const fn has_nanos(&self, nanos: u64) -> bool {
        nanos >= self.from && nanos <= self.to
    }
}

/// The share of launches that a new stretch has: the slowest.
const SLOWEST: f64 = 0.05;
/// Steps in which an end moves over the whole histogram.
const STEPS: f64 = 60.0;

/// Selects the slowest launches of the kernel, or moves the other end of what is selected.
pub(super) fn select(ui: &mut Ui, snap: &Snapshot) {
    let all = instances::of_selected(&Scene { ui, snap });
    let Some(kernel) = all.kernel.filter(|_| !all.launches.is_empty()) else {
        return ui.say(snap, "no launch of a kernel is kept in full");
    };
    ui.show(Tab::Launches);
    ui.tables[Pane::Kernels as usize].selected = Some(u64::from(kernel.0));
    match ui.stretch.as_mut().filter(|stretch| stretch.kernel == kernel) {
        Some(stretch) => stretch.moves_end ^= true,
        None => ui.stretch = Some(slowest(&all, kernel)),
    }
}

fn slowest(all: &Instances, kernel: KernelId) -> Stretch {
    let mut nanos: Vec<u64> = all.launches.iter().map(instances::Launch::nanos).collect();
    nanos.sort_unstable();
    let at = (nanos.len() as f64 * (1.0 - SLOWEST)) as usize;
    Stretch {
        kernel,
        from: nanos[at.min(nanos.len() - 1)],
        to: nanos[nanos.len() - 1],
        moves_end: false,
    }
}

/// Moves an end of the stretch to shorter or longer durations.
pub(super) fn shift(ui: &mut Ui, snap: &Snapshot, way: Direction) {
    let all = instances::of_selected(&Scene { ui, snap });
    let Some(mut stretch) = ui.stretch.filter(|stretch| Some(stretch.kernel) == all.kernel) else {
        return select(ui, snap);
    };
    let scale = all.scale(ui.prefs.logarithmic);
    let end = if stretch.moves_end {
        &mut stretch.to
    } else {
        &mut stretch.from
    };
    let step = match way {
        Direction::On => 1.0 / STEPS,
        Direction::Back => -1.0 / STEPS,
    };
    *end = scale.at((scale.share(*end) + step).clamp(0.0, 1.0));
    if stretch.from > stretch.to {
        // The ends have passed each other.
        std::mem::swap(&mut stretch.from, &mut stretch.to);
        stretch.moves_end ^= true;
    }
    ui.stretch = Some(stretch);
}

/// Selects the durations between two, of the selected kernel.
pub(super) fn drag(ui: &mut Ui, snap: &Snapshot, from: u64, to: u64) {
    let Some(kernel) = instances::of_selected(&Scene { ui, snap }).kernel else {
        return;
    };
    ui.show(Tab::Launches);
    ui.tables[Pane::Kernels as usize].selected = Some(u64::from(kernel.0));
    ui.stretch = Some(Stretch {
        kernel,
        from,
        to,
        moves_end: true,
    });
}
