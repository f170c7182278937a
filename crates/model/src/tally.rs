//! Launches, copies and calls of a whole recording that pass a filter, counted one by one.

use super::fx_hash::FastMap;
use super::sites::SiteWork;
use super::stats::{Stat, Sum};
use super::table::{Copied, CopyStat, Placement, Route};
use roctop_trace::item::ProcessId;
use roctop_trace::site::SiteNumber;
use std::sync::Arc;

/// Durations that are kept for percentiles, of all rows of one tally.
const MAX_DURATIONS: usize = 1 << 22;
/// Copies that are kept for percentiles, bandwidth and charts.
const MAX_COPIES: usize = 1 << 20;

/// What was counted for a filter, or the progress of counting.
#[derive(Clone, Debug)]
pub struct Counting {
    /// The filter's text.
    pub filter: String,
    /// Its progress.
    pub state: State,
}

/// Progress of counting, or its result.
#[derive(Clone, Debug)]
pub enum State {
    /// Per cent that were looked through.
    Running(u8),
    /// All were.
    Done(Tally),
    /// Why they could not be.
    Failed(Arc<str>),
}

impl Counting {
    /// What was counted for a filter, if all was.
    pub fn done(&self, filter: &str) -> Option<&Tally> {
        match &self.state {
            State::Done(tally) if self.filter == filter => Some(tally),
            _ => None,
        }
    }
}

/// Launches of a kernel in one place, or calls of an operation.
#[derive(Clone, Debug, Default)]
struct Row {
    sum: Sum,
    /// The durations, unless there are too many.
    nanos: Vec<u64>,
}

impl Row {
    fn merge(&mut self, other: Self) {
        self.sum.merge(&other.sum);
        self.nanos.extend(other.nanos);
    }
}

/// Copies of a route.
#[derive(Clone, Debug, Default)]
struct Copies {
    sum: Sum,
    bytes: u64,
    /// Each, unless there are too many.
    each: Vec<Copied>,
}

impl Copies {
    fn merge(&mut self, other: &Self) {
        self.sum.merge(&other.sum);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.each.extend(&other.each);
    }
}

/// Launches, copies and calls that pass.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    kernels: FastMap<(u32, Placement), Row>,
    calls: FastMap<u32, Row>,
    copies: FastMap<u32, Copies>,
    /// Time by call site, ns.
    sites: FastMap<(SiteWork, ProcessId, SiteNumber), u64>,
    /// Number of launches and calls.
    count: usize,
    /// Number of copies.
    copied: usize,
}

impl Tally {
    /// Counts a launch of a kernel.
    pub fn kernel(&mut self, kernel: u32, place: Placement, nanos: u64) {
        let row = self.kernels.entry((kernel, place)).or_default();
        self.count += 1;
        add(row, nanos, self.count);
    }

    /// Counts a call of an operation.
    pub fn call(&mut self, operation: u32, nanos: u64) {
        let row = self.calls.entry(operation).or_default();
        self.count += 1;
        add(row, nanos, self.count);
    }

    /// Counts a copy of a route.
    pub fn copy(&mut self, route: u32, copy: Copied) {
        let row = self.copies.entry(route).or_default();
        self.copied += 1;
        row.sum.add(Some(copy.span.duration()));
        row.bytes = row.bytes.saturating_add(copy.bytes);
        if self.copied <= MAX_COPIES {
            row.each.push(copy);
        }
    }

    /// Adds time of work to its call site, if that is known.
    pub fn site(&mut self, work: SiteWork, process: ProcessId, site: SiteNumber, nanos: u64) {
        if site.is_known() {
            let time = self.sites.entry((work, process, site)).or_default();
            *time = time.saturating_add(nanos);
        }
    }

    /// Adds what another thread has counted.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.copied += other.copied;
        for ((work, process, site), nanos) in other.sites {
            self.site(work, process, site, nanos);
        }
        for (route, row) in other.copies {
            self.copies.entry(route).or_default().merge(&row);
        }
        for (key, row) in other.kernels {
            self.kernels.entry(key).or_default().merge(row);
        }
        for (key, row) in other.calls {
            self.calls.entry(key).or_default().merge(row);
        }
    }

    /// Of a kernel's launches in places that a test takes; `None` without any.
    pub fn of_kernel(&self, kernel: u32, takes: impl Fn(Placement) -> bool) -> Option<Stat> {
        let rows = self.kernels.iter();
        stat(
            rows.filter(|((known, place), _)| *known == kernel && takes(*place))
                .map(|(_, row)| row),
        )
    }

    /// Of the copies of some routes, as those of one; `None` without any.
    pub fn of_routes(&self, routes: &[u32], route: Route) -> Option<CopyStat> {
        let mut all = Copies::default();
        for row in routes.iter().filter_map(|route| self.copies.get(route)) {
            all.merge(row);
        }
        match all.sum.calls {
            0 => None,
            copies if copies == all.each.len() as u64 => Some(CopyStat::of(route, all.each)),
            _ => Some(CopyStat::of_sums(route, all.sum, Some(all.bytes))),
        }
    }

    /// Time by call site, ns.
    pub fn sites(&self) -> impl Iterator<Item = (SiteWork, ProcessId, SiteNumber, u64)> {
        let all = self.sites.iter();
        all.map(|((work, process, site), nanos)| (*work, *process, *site, *nanos))
    }

    /// Of an operation's calls; `None` without any.
    pub fn of_operation(&self, operation: u32) -> Option<Stat> {
        stat(self.calls.get(&operation).into_iter())
    }
}

fn add(row: &mut Row, nanos: u64, count: usize) {
    row.sum.add(Some(nanos));
    if count <= MAX_DURATIONS {
        row.nanos.push(nanos);
    }
}

/// Without percentiles, if not all durations were kept.
fn stat<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<Stat> {
    let (mut sum, mut nanos) = (Sum::default(), Vec::new());
    for row in rows {
        sum.merge(&row.sum);
        nanos.extend(&row.nanos);
    }
    match sum.calls {
        0 => None,
        calls if calls == nanos.len() as u64 => Some(Stat::of(&nanos)),
        _ => Some(sum.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_trace::item::{AgentId, QueueId};

    fn place(queue: u32) -> Placement {
        Placement {
            process: ProcessId(0),
            agent: AgentId(0),
            queue: QueueId(queue),
            stream: None,
        }
    }

    #[test]
    fn rows_of_all_threads_are_put_together() {
        let (mut one, mut other) = (Tally::default(), Tally::default());
        for nanos in 1..=50 {
            one.kernel(7, place(1), nanos);
            other.kernel(7, place(2), nanos + 50);
            other.call(7, 3);
        }
        one.merge(other);
        let all = one.of_kernel(7, |_| true).unwrap();
        assert_eq!((all.calls, all.min, all.max, all.total), (100, 1, 100, 5050));
        assert!(all.quantiles.p99.is_some());
        let there = one.of_kernel(7, |place| place.queue == QueueId(2)).unwrap();
        assert_eq!((there.calls, there.min), (50, 51));
        assert!(one.of_kernel(8, |_| true).is_none() && one.of_operation(8).is_none());
        assert_eq!(one.of_operation(7).unwrap().total, 150);
    }

    #[test]
    fn with_too_many_durations_there_are_no_percentiles() {
        let mut tally = Tally::default();
        for _ in 0..=MAX_DURATIONS {
            tally.call(1, 2);
        }
        let stat = tally.of_operation(1).unwrap();
        assert_eq!(stat.calls, MAX_DURATIONS as u64 + 1);
        assert!(stat.is_of_sums());
    }
}
