//! Difference of two snapshots of the same run.

use std::sync::Arc;

use super::kernels::Cell;
use super::sampled::SampledPlace;
use super::snapshot::{ApiRow, KernelRow, Snapshot, ThreadRow, Values};
use super::table::{CopyStat, CopySum, MarkerStat};
use roctop_trace::item::ProcessId;

impl Snapshot {
    /// The same values, counted from an earlier snapshot. The timeline, trends, memory, gauges, processes and losses
    /// are unchanged.
    #[must_use]
    pub fn since(&self, earlier: &Values) -> Values {
        let all = &*self.values;
        let mut totals = all.totals;
        totals.kernel_time = totals.kernel_time.saturating_sub(earlier.totals.kernel_time);
        Values {
            counted_from: earlier.at,
            kernels: Arc::new(all.kernels.iter().map(|row| kernel(row, earlier)).collect()),
            api: Arc::new(all.api.iter().map(|row| call(row, earlier)).collect()),
            copies: Arc::new(copies(all, earlier)),
            copy_sums: Arc::new(copy_sums(all, earlier)),
            threads: all.threads.iter().map(|row| thread(row, earlier)).collect(),
            markers: Arc::new(all.markers.iter().map(|row| marker(row, earlier)).collect()),
            sampled: Arc::new(sampled(all, earlier)),
            samples: all.samples.saturating_sub(earlier.samples),
            totals,
            ..all.clone()
        }
    }
}

fn sampled(all: &Values, earlier: &Values) -> Vec<SampledPlace> {
    let none = SampledPlace::default();
    let before = earlier.sampled.iter().chain(std::iter::repeat(&none));
    all.sampled
        .iter()
        .zip(before)
        .map(|(row, old)| row.since(old))
        .collect()
}

fn kernel(row: &KernelRow, earlier: &Values) -> KernelRow {
    let mut rest = row.clone();
    let Some(old) = earlier.kernels.iter().find(|old| old.id == row.id) else {
        return rest;
    };
    let numbers = &mut rest.numbers;
    numbers.stat = row.numbers.stat.rest(&old.numbers.stat);
    numbers.delay = numbers.delay.saturating_sub(old.numbers.delay);
    numbers.delayed = numbers.delayed.saturating_sub(old.numbers.delayed);
    numbers.cells = cells_since(&row.numbers.cells, &old.numbers.cells);
    rest
}

fn cells_since(cells: &[Cell], old: &[Cell]) -> Arc<Vec<Cell>> {
    let rest = cells.iter().map(|cell| {
        let before = old.iter().find(|known| known.place == cell.place);
        Cell {
            sum: before.map_or(cell.sum, |before| cell.sum.since(&before.sum)),
            ..*cell
        }
    });
    Arc::new(rest.filter(|cell| cell.sum.calls > 0).collect())
}

fn call(row: &ApiRow, earlier: &Values) -> ApiRow {
    let Some(old) = earlier.api.iter().find(|old| old.id == row.id) else {
        return row.clone();
    };
    ApiRow {
        stat: row.stat.rest(&old.stat),
        errors: row.errors.saturating_sub(old.errors),
        bytes: row.bytes.saturating_sub(old.bytes),
        sized: row.sized.saturating_sub(old.sized),
        by_process: by_process(row, old),
        ..row.clone()
    }
}

fn by_process(row: &ApiRow, old: &ApiRow) -> Vec<(ProcessId, u64)> {
    let before = |process: ProcessId| {
        let known = old.by_process.iter().find(|of| of.0 == process);
        known.map_or(0, |of| of.1)
    };
    let rest = row.by_process.iter();
    rest.map(|(process, nanos)| (*process, nanos.saturating_sub(before(*process))))
        .collect()
}

/// Routes keep their indexes, because slices refer to them.
fn copies(all: &Values, earlier: &Values) -> Vec<CopyStat> {
    let rows = all.copies.iter().map(|row| {
        let old = earlier.copies.iter().find(|old| old.route == row.route);
        old.map_or_else(|| row.clone(), |old| copies_since(row, old))
    });
    rows.collect()
}

fn copy_sums(all: &Values, earlier: &Values) -> Vec<CopySum> {
    let sums = all.copy_sums.iter().map(|row| {
        let mut own = earlier.copy_sums.iter().map(|old| &old.sum);
        // Before a route was part of a sum, it was a single route.
        let mut parts = earlier.copies.iter().zip(0..).filter(|(_, at)| row.parts.contains(at));
        let old = own.find(|old| old.route == row.sum.route);
        let old = old.or_else(|| parts.next().map(|(old, _)| old));
        CopySum {
            sum: old.map_or_else(|| row.sum.clone(), |old| copies_since(&row.sum, old)),
            parts: row.parts.clone(),
        }
    });
    sums.collect()
}

fn copies_since(row: &CopyStat, old: &CopyStat) -> CopyStat {
    let mut rest = row.clone();
    rest.stat = row.stat.rest(&old.stat);
    rest.sizes = row.sizes.rest(&old.sizes);
    rest.union.total = rest.union.total.saturating_sub(old.union.total);
    rest.cells = cells_since(&row.cells, &old.cells);
    for (class, before) in rest.classes.iter_mut().zip(&old.classes) {
        class.0 = class.0.saturating_sub(before.0);
        class.1 = class.1.saturating_sub(before.1);
        class.2 = class.2.saturating_sub(before.2);
    }
    rest
}

fn thread(row: &ThreadRow, earlier: &Values) -> ThreadRow {
    let mut rest = *row;
    if let Some(old) = earlier.threads.iter().find(|old| old.id == row.id) {
        rest.numbers.calls = rest.numbers.calls.saturating_sub(old.numbers.calls);
        rest.numbers.total = rest.numbers.total.saturating_sub(old.numbers.total);
        rest.numbers.blocked = rest.numbers.blocked.saturating_sub(old.numbers.blocked);
        rest.numbers.mpi = rest.numbers.mpi.saturating_sub(old.numbers.mpi);
    }
    rest
}

fn marker(row: &MarkerStat, earlier: &Values) -> MarkerStat {
    let mut rest = row.clone();
    if let Some(old) = earlier.markers.iter().find(|old| old.id == row.id) {
        rest.stat = row.stat.rest(&old.stat);
        rest.marks = rest.marks.saturating_sub(old.marks);
        rest.work.copies = rest.work.copies.saturating_sub(old.work.copies);
        rest.work.kernels = rest.work.kernels.saturating_sub(old.work.kernels);
        rest.work.nanos = rest.work.nanos.saturating_sub(old.work.nanos);
        rest.work.copying = rest.work.copying.saturating_sub(old.work.copying);
    }
    rest
}
