//! The columns of rows that stand for many calls: one definition for every list of calls, kernels and ranges.

use super::column::{Column, Worth};
use super::table::Scene;
use roctop_model::stats::Stat;

/// A row with the statistics of durations.
pub(crate) trait HasStat {
    /// Its statistics.
    fn stat<'a>(&'a self, scene: &Scene<'a>) -> &'a Stat;
}

/// The longest or shortest duration, where durations are known.
fn extreme(stat: &Stat, nanos: u64) -> Worth {
    Worth::maybe((stat.timed > 0 && stat.max > 0).then_some(nanos))
}

/// Each is given its rank: the lower, the longer it stays when room is short.
impl<R: HasStat> Column<R> {
    pub(crate) const fn average(rank: u8) -> Self {
        Self::times("AVG", "Average_ns", rank, |row, scene| {
            Worth::maybe(row.stat(scene).average())
        })
    }

    pub(crate) const fn minimum(rank: u8) -> Self {
        Self::times("MIN", "Min_ns", rank, |row, scene| {
            let stat = row.stat(scene);
            extreme(stat, stat.min)
        })
    }

    pub(crate) const fn p50(rank: u8) -> Self {
        Self::times("P50", "P50_ns", rank, |row, scene| {
            Worth::maybe(row.stat(scene).quantiles.p50)
        })
    }

    pub(crate) const fn p95(rank: u8) -> Self {
        Self::times("P95", "P95_ns", rank, |row, scene| {
            Worth::maybe(row.stat(scene).quantiles.p95)
        })
    }

    pub(crate) const fn p99(rank: u8) -> Self {
        Self::times("P99", "P99_ns", rank, |row, scene| {
            Worth::maybe(row.stat(scene).quantiles.p99)
        })
    }

    pub(crate) const fn maximum(rank: u8) -> Self {
        Self::times("MAX", "Max_ns", rank, |row, scene| {
            let stat = row.stat(scene);
            extreme(stat, stat.max)
        })
    }

    pub(crate) const fn deviation(rank: u8) -> Self {
        Self::times("STDDEV", "StdDev_ns", rank, |row, scene| {
            Worth::maybe(row.stat(scene).deviation())
        })
    }
}
