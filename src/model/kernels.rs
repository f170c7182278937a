//! Numbers by kernel. Dispatches wait until there are many of them and are then counted in kernel by kernel, so that a
//! kernel's numbers come into the processor's cache once for all of them.

use std::sync::Arc;

use super::stat::{HISTOGRAMS, Stat, Sum, Trend};
use super::table::{MOST_IDS, Shape, dense};
use crate::item::Nanos;

const MOST_CELLS: usize = 64;

/// A kernel's numbers in one place.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Index of the place; beyond the last, places that share a cell.
    pub place: u32,
    /// The numbers.
    pub sum: Sum,
}

/// A kernel's numbers.
#[derive(Clone, Debug, Default)]
pub struct KernelStat {
    /// Durations.
    pub stat: Stat,
    /// The same by place, as of the last [`Kernels::refresh`].
    pub cells: Arc<Vec<Cell>>,
    /// Nanoseconds by second.
    pub trend: Trend,
    /// Sum of the times from submit to begin.
    pub delay: u64,
    /// How many of them are known.
    pub delayed: u64,
    /// Geometry of the latest.
    pub shape: Shape,
    /// Whether all had that geometry.
    pub shapes: u32,
    /// Index of the latest geometry in [`super::table::Tables::shapes`].
    shape_id: u32,
}

/// A dispatch that is not in its kernel's numbers yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) kernel: u32,
    pub(super) place: u32,
    pub(super) shape: u32,
    /// Whether `nanos` and `end` are known.
    pub(super) is_timed: bool,
    pub(super) nanos: u64,
    pub(super) end: Nanos,
    /// From submit to begin; `u64::MAX` unknown.
    pub(super) delay: u64,
}

/// So many dispatches wait at most.
const PENDING: usize = 8192;

impl KernelStat {
    fn add(&mut self, piece: &Pending) {
        if self.shapes == 0 || self.shape_id != piece.shape {
            self.shapes = self.shapes.saturating_add(1);
            self.shape_id = piece.shape;
        }
        if !piece.is_timed {
            return self.stat.add_untimed();
        }
        self.stat.add(piece.nanos);
        self.trend.add(piece.end, piece.nanos);
        if piece.delay != u64::MAX {
            self.delay = self.delay.saturating_add(piece.delay);
            self.delayed += 1;
        }
    }
}

/// A kernel's cells while they are counted in.
#[derive(Debug)]
struct Cells {
    all: Vec<Cell>,
    /// By the place's low bits: where its cell was when it was last looked for.
    hints: [u8; MOST_CELLS],
    /// Whether they differ from those of the last snapshot.
    is_changed: bool,
}

impl Default for Cells {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            hints: [0; MOST_CELLS],
            is_changed: false,
        }
    }
}

impl Cells {
    fn of(&mut self, place: u32) -> &mut Cell {
        self.is_changed = true;
        let hint = &mut self.hints[place as usize % MOST_CELLS];
        let cells = &mut self.all;
        if cells.get(*hint as usize).is_none_or(|cell| cell.place != place) {
            let known = cells.iter().position(|cell| cell.place == place);
            let at = known.unwrap_or_else(|| {
                let place = match cells.len() {
                    MOST_CELLS => return MOST_CELLS - 1,
                    // The last cell is for all places beyond the bound.
                    count if count + 1 == MOST_CELLS => u32::MAX,
                    _ => place,
                };
                let sum = Sum::default();
                cells.push(Cell { place, sum });
                cells.len() - 1
            });
            *hint = at as u8;
        }
        &mut cells[*hint as usize]
    }
}

/// All kernels.
#[derive(Debug, Default)]
pub struct Kernels {
    rows: Vec<KernelStat>,
    /// By kernel, too.
    cells: Vec<Cells>,
    pending: Vec<Pending>,
    /// Room for sorting what is pending.
    order: Vec<u32>,
    starts: Vec<u32>,
}

impl Kernels {
    /// By kernel, as of the last refresh.
    pub fn rows(&self) -> &[KernelStat] {
        &self.rows
    }

    pub(super) fn add(&mut self, piece: Pending) {
        self.pending.push(piece);
        if self.pending.len() >= PENDING {
            self.settle();
        }
    }

    /// Brings everything up to date: numbers, percentiles, cells.
    pub(super) fn refresh(&mut self, shapes: &[Shape]) {
        self.settle();
        for (kernel, cells) in self.rows.iter_mut().zip(&mut self.cells) {
            kernel.stat.refresh();
            kernel.shape = shapes.get(kernel.shape_id as usize).copied().unwrap_or_default();
            if std::mem::take(&mut cells.is_changed) {
                kernel.cells = Arc::new(cells.all.clone());
            }
        }
    }

    /// Counts in what is pending, kernel by kernel.
    fn settle(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        // Sorted by counting: where each kernel's dispatches begin, then each to its place. Stable.
        let most = pending.iter().map(|piece| piece.kernel).max().unwrap_or(0) as usize;
        if most >= MOST_IDS {
            pending.retain(|piece| (piece.kernel as usize) < MOST_IDS);
        }
        let kernels = (most + 1).min(MOST_IDS);
        self.starts.clear();
        self.starts.resize(kernels + 1, 0);
        for piece in &pending {
            self.starts[piece.kernel as usize + 1] += 1;
        }
        for kernel in 0..kernels {
            self.starts[kernel + 1] += self.starts[kernel];
        }
        self.order.clear();
        self.order.resize(pending.len(), 0);
        for (at, piece) in (0..).zip(&pending) {
            let start = &mut self.starts[piece.kernel as usize];
            self.order[*start as usize] = at;
            *start += 1;
        }
        let make = |n| KernelStat {
            stat: Stat::new(n < HISTOGRAMS),
            ..KernelStat::default()
        };
        for &at in &self.order {
            let piece = &pending[at as usize];
            if let Some(kernel) = dense(&mut self.rows, piece.kernel, make) {
                kernel.add(piece);
            }
            if let Some(cells) = dense(&mut self.cells, piece.kernel, |_| Cells::default()) {
                cells.of(piece.place).sum.add(piece.is_timed.then_some(piece.nanos));
            }
        }
        pending.clear();
        self.pending = pending;
    }
}
