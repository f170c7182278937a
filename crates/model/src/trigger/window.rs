//! Statistics of the values of the last while.

use crate::stats::{MAX_DURATION, Quantiles, Stat, Sum};
use hdrhistogram::Histogram;
use roctop_trace::item::Nanos;
use std::collections::VecDeque;

/// Number of parts in which a window moves on.
const PARTS: u64 = 8;

/// Values of one part of the window.
#[derive(Debug)]
struct Part {
    from: Nanos,
    sum: Sum,
    /// Bytes, or failed calls.
    extra: u64,
    histogram: Option<Histogram<u32>>,
}

/// A window that moves on by an eighth of its length: it has the values of between seven eighths of its length and the
/// whole.
#[derive(Debug)]
pub(super) struct Window {
    length: Nanos,
    parts: VecDeque<Part>,
    all: Option<Histogram<u32>>,
    /// Whether values came or went since the last look.
    pub(super) is_changed: bool,
}

fn histogram(is_wanted: bool) -> Option<Histogram<u32>> {
    is_wanted.then(|| Histogram::new(2).ok()).flatten()
}

impl Window {
    /// An empty window of this length; with percentiles if `full`.
    pub(super) fn new(length: Nanos, full: bool) -> Self {
        Self {
            length,
            parts: VecDeque::new(),
            all: histogram(full),
            is_changed: false,
        }
    }

    /// Adds an event that was seen at `now`, with its duration if known, and with its bytes or whether it failed.
    pub(super) fn add(&mut self, now: Nanos, value: Option<u64>, extra: u64) {
        self.expire(now);
        let step = self.length / PARTS;
        if self
            .parts
            .back()
            .is_none_or(|part| now >= part.from.saturating_add(step))
        {
            self.parts.push_back(Part {
                from: now,
                sum: Sum::default(),
                extra: 0,
                histogram: histogram(self.all.is_some()),
            });
        }
        let Some(part) = self.parts.back_mut() else { return };
        part.sum.add(value);
        part.extra = part.extra.saturating_add(extra);
        if let (Some(value), Some(all), Some(own)) = (value, &mut self.all, &mut part.histogram) {
            let value = value.clamp(1, MAX_DURATION);
            // In range and self-sizing, so that neither can fail.
            let _ = all.record(value);
            let _ = own.record(value);
        }
        self.is_changed = true;
    }

    /// Drops what is older than the window.
    pub(super) fn expire(&mut self, now: Nanos) {
        while self
            .parts
            .front()
            .is_some_and(|part| part.from.saturating_add(self.length) <= now)
        {
            let Some(gone) = self.parts.pop_front() else { return };
            if let (Some(all), Some(own)) = (&mut self.all, &gone.histogram) {
                let _ = all.subtract(own);
            }
            self.is_changed = true;
        }
    }

    /// Statistics of the durations.
    pub(super) fn stat(&self) -> Stat {
        let mut sum = Sum::default();
        self.parts.iter().for_each(|part| sum.merge(&part.sum));
        let mut stat = Stat::from(sum);
        if let Some(all) = &self.all {
            let at = |q, least| (sum.timed >= least).then(|| all.value_at_quantile(q).clamp(sum.min, sum.max));
            stat.quantiles = Quantiles {
                p50: at(0.5, 20),
                p95: at(0.95, 20),
                p99: at(0.99, 100),
            };
        }
        stat
    }

    /// Bytes, or failed calls.
    pub(super) fn extra(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.extra))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_leave_the_window_after_its_length() {
        let mut window = Window::new(8_000, true);
        for at in 0..100 {
            window.add(at * 10, Some(100 + at), 1);
        }
        let stat = window.stat();
        assert_eq!((stat.calls, stat.min, stat.max, window.extra()), (100, 100, 199, 100));
        assert_eq!(stat.quantiles.p50, Some(149));
        window.add(7_999, Some(1_000_000), 1);
        assert_eq!(window.stat().calls, 101);
        // The first part began at 0.
        window.add(8_100, Some(5), 1);
        assert_eq!(window.stat().calls, 2);
        window.expire(8_000 + 8_100 + 1_000);
        assert_eq!((window.stat().calls, window.stat().quantiles.p50), (0, None));
    }
}
