//! Sums of each kernel by second, for the last ten minutes: any two windows of that time can be compared afterwards.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::analysis::change::Sample;
use super::analysis::usage::has_kernels;
use super::{FastMap, Snapshot};
use roctop_trace::item::{KernelId, Nanos, Span};

const SECOND: Nanos = 1_000_000_000;
/// Number of seconds that are kept.
pub const MAX_SECONDS: usize = 600;
/// Number of kernels with separate sums in a second: those with the most time.
pub const MAX_KERNELS: usize = 1024;
/// Number of latest seconds that are not cut to [`MAX_KERNELS`] yet, because records arrive late …
const UNCUT_SECONDS: usize = 4;
/// … and maximum number of sums in each of them.
const MAX_UNCUT: usize = 8 * MAX_KERNELS;

/// Sums of a kernel in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) kernel: u32,
    pub(super) count: u32,
    /// Sum of the durations, ns.
    pub(super) total: u64,
    /// Sum of their squares.
    pub(super) squares: f64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.squares += other.squares;
    }
}

/// A second, by the end of its launches.
#[derive(Clone, Debug, Default)]
struct Second {
    number: u32,
    /// The first `merged` have one entry per kernel, in order; the others follow in order of arrival.
    sums: Vec<Sums>,
    merged: usize,
    rest: Sums,
}

impl Second {
    /// Adds up the sums of each kernel; those with the least time beyond `most` kernels are added to the rest.
    fn merge(&mut self, most: usize) {
        self.sums.sort_by_key(|sums| sums.kernel);
        self.sums.dedup_by(|later, earlier| {
            let is_same = later.kernel == earlier.kernel;
            if is_same {
                earlier.add(later);
            }
            is_same
        });
        if self.sums.len() > most {
            self.sums.select_nth_unstable_by_key(most, |sums| Reverse(sums.total));
            self.sums[most..].iter().for_each(|sums| self.rest.add(sums));
            self.sums.truncate(most);
            self.sums.sort_by_key(|sums| sums.kernel);
        }
        self.sums.shrink_to_fit();
        self.merged = self.sums.len();
    }
}

/// Durations of each kernel's launches in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelSamples {
    /// By kernel.
    pub kernels: BTreeMap<KernelId, Sample>,
    /// All kernels without separate sums.
    pub rest: Sample,
    /// The window that they are of.
    pub span: Span,
    /// Whether they were counted one by one; else they are sums by second, and the window has whole seconds.
    pub is_exact: bool,
}

/// Sums by second. A copy is shared.
#[derive(Clone, Debug, Default)]
pub struct Seconds(Arc<VecDeque<Arc<Second>>>);

impl Seconds {
    /// Adds to a second, unless that is older than all that are kept. [`Seconds::cut`] follows.
    pub(super) fn add(&mut self, number: u32, sums: Sums) {
        let all = &self.0;
        let at = match all.back() {
            Some(last) if last.number == number => all.len() - 1,
            Some(last) if last.number > number => all.partition_point(|known| known.number < number),
            _ => all.len(),
        };
        let is_known = all.get(at).is_some_and(|known| known.number == number);
        if !is_known && at == 0 && all.len() >= MAX_SECONDS {
            return;
        }
        let all = Arc::make_mut(&mut self.0);
        if !is_known {
            let second = Second {
                number,
                ..Second::default()
            };
            all.insert(at, Arc::new(second));
        }
        Arc::make_mut(&mut all[at]).sums.push(sums);
    }

    /// Keeps within the limits.
    pub(super) fn cut(&mut self) {
        let len = self.0.len();
        let most = |at: usize| {
            if at + UNCUT_SECONDS < len {
                MAX_KERNELS
            } else {
                MAX_UNCUT
            }
        };
        let is_long = |(at, second): (usize, &Arc<Second>)| {
            let most = most(at);
            second.sums.len()
                > if most == MAX_KERNELS {
                    second.merged
                } else {
                    2 * MAX_UNCUT
                }
                || second.merged > most
        };
        if len <= MAX_SECONDS && !self.0.iter().enumerate().any(is_long) {
            return;
        }
        let all = Arc::make_mut(&mut self.0);
        for (at, second) in all.iter_mut().enumerate() {
            if is_long((at, second)) {
                Arc::make_mut(second).merge(most(at));
            }
        }
        all.drain(..len.saturating_sub(MAX_SECONDS));
    }

    /// Begin of the first second and end of the last.
    pub fn span(&self) -> Option<Span> {
        let (first, last) = self.0.front().zip(self.0.back())?;
        Some(Span {
            begin: u64::from(first.number) * SECOND,
            end: (u64::from(last.number) + 1) * SECOND,
        })
    }

    /// The kernels of the seconds that a window touches, whole.
    pub fn samples(&self, window: Span) -> KernelSamples {
        let (first, end) = (
            window.begin / SECOND,
            window.end.div_ceil(SECOND).max(window.begin / SECOND + 1),
        );
        let (mut sums, mut rest): (FastMap<u32, Sums>, Sums) = (FastMap::default(), Sums::default());
        let from = self.0.partition_point(|second| u64::from(second.number) < first);
        let within = self
            .0
            .iter()
            .skip(from)
            .take_while(|second| u64::from(second.number) < end);
        for second in within {
            for one in &second.sums {
                sums.entry(one.kernel).or_default().add(one);
            }
            rest.add(&second.rest);
        }
        let sample = |sums: &Sums| Sample::of_sums(u64::from(sums.count), sums.total, sums.squares);
        KernelSamples {
            kernels: sums.iter().map(|(id, sums)| (KernelId(*id), sample(sums))).collect(),
            rest: sample(&rest),
            span: Span {
                begin: first * SECOND,
                end: end * SECOND,
            },
            is_exact: false,
        }
    }

    /// Bytes that all seconds take.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        let each = self
            .0
            .iter()
            .map(|second| size_of::<Second>() + second.sums.capacity() * size_of::<Sums>());
        each.sum()
    }
}

/// Maximum number of launches that are counted one by one.
const MAX_COUNTED: usize = 1 << 18;

impl Snapshot {
    /// The launches that ended in a window, by kernel: counted one by one if all of them are still kept and are not too many,
    /// else from the sums by second.
    pub fn kernels_within(&self, window: Span) -> KernelSamples {
        self.counted(window)
            .unwrap_or_else(|| self.values.seconds.samples(window))
    }

    fn counted(&self, window: Span) -> Option<KernelSamples> {
        let mut sums: FastMap<u32, (u64, u64, f64)> = FastMap::default();
        let mut left = MAX_COUNTED;
        for lane in self.lanes.iter().filter(|lane| has_kernels(lane.key)) {
            let slices = lane.slices(window.begin, window.end, left)?;
            left -= slices.len();
            // What ended at the begin belongs to the window before.
            let ended = slices
                .iter()
                .filter(|slice| slice.span.end > window.begin && slice.span.end <= window.end);
            for slice in ended {
                let (nanos, sums) = (slice.span.duration(), sums.entry(slice.what).or_default());
                *sums = (
                    sums.0 + 1,
                    sums.1.saturating_add(nanos),
                    sums.2 + (nanos as f64).powi(2),
                );
            }
        }
        let sample = |&(count, total, squares): &(u64, u64, f64)| Sample::of_sums(count, total, squares);
        Some(KernelSamples {
            kernels: sums.iter().map(|(id, sums)| (KernelId(*id), sample(sums))).collect(),
            rest: Sample::default(),
            span: window,
            is_exact: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fresh, Options, Store};
    use roctop_trace::item::{Dispatch, Item};

    fn sums(kernel: u32, nanos: u64) -> Sums {
        Sums {
            kernel,
            count: 1,
            total: nanos,
            squares: (nanos as f64).powi(2),
        }
    }

    fn window(begin: u64, end: u64) -> Span {
        Span {
            begin: begin * SECOND,
            end: end * SECOND,
        }
    }

    #[test]
    fn sums_are_bounded_and_keep_the_kernels_with_most_time() {
        let mut seconds = Seconds::default();
        let kernels = 2 * MAX_KERNELS as u32;
        for second in 0..700 {
            // Two parts, as of two snapshots; the later kernels take more time.
            for part in 0..2 {
                (0..kernels).for_each(|kernel| seconds.add(second, sums(kernel, 1000 + u64::from(kernel) + part)));
                seconds.cut();
            }
        }
        assert!(seconds.bytes() <= 32 << 20, "{} bytes", seconds.bytes());
        assert_eq!(seconds.span(), Some(window(100, 700)));
        let one = seconds.samples(window(200, 201));
        assert_eq!(one.kernels.len(), MAX_KERNELS);
        assert_eq!(one.kernels.keys().next(), Some(&KernelId(kernels / 2)));
        assert_eq!((one.rest.count, one.rest.mean), (u64::from(kernels), 1512.0));
        let first = &one.kernels[&KernelId(kernels / 2)];
        assert_eq!((first.count, first.mean, first.deviation), (2, 2024.5, Some(0.5)));
        let all = seconds.samples(window(0, 10_000));
        let counted: u64 = all.kernels.values().map(|sample| sample.count).sum();
        assert_eq!(
            counted + all.rest.count,
            2 * u64::from(kernels) * MAX_SECONDS as u64,
            "nothing is lost"
        );
    }

    #[test]
    fn sums_that_come_late_count_and_older_ones_do_not() {
        let mut seconds = Seconds::default();
        for second in [50, 51, 60, 61, 62, 63, 64] {
            seconds.add(second, sums(3, 100));
        }
        seconds.cut();
        for (second, kernel) in [(50, 3), (50, 1), (55, 2)] {
            seconds.add(second, sums(kernel, 200));
        }
        seconds.cut();
        let one = seconds.samples(window(50, 51));
        let counts: Vec<_> = one
            .kernels
            .iter()
            .map(|(id, sample)| (id.0, sample.count, sample.mean))
            .collect();
        assert_eq!(counts, [(1, 1, 200.0), (3, 2, 150.0)]);
        assert_eq!(one.kernels[&KernelId(3)].deviation, Some(50.0));
        // A part of a second is the whole of it.
        let part = Span {
            begin: 55 * SECOND + 7,
            end: 55 * SECOND + 9,
        };
        assert_eq!(seconds.samples(part).kernels[&KernelId(2)].count, 1);
        assert_eq!(seconds.samples(part).span, window(55, 56));
        (100..100 + MAX_SECONDS as u32).for_each(|second| seconds.add(second, sums(3, 100)));
        seconds.cut();
        seconds.add(70, sums(9, 100));
        seconds.cut();
        assert!(seconds.samples(window(0, 100)).kernels.is_empty());
        assert_eq!(seconds.span(), Some(window(100, 700)));
    }

    #[test]
    fn a_window_is_counted_one_by_one_or_by_second() {
        let run = |end: u64, nanos: u64| {
            Item::Dispatch(Dispatch {
                span: Span {
                    begin: end - nanos,
                    end,
                },
                ..Dispatch::default()
            })
        };
        let begin = 1_000 * SECOND;
        let items: Vec<Item> = (1..=4_000u64)
            .map(|at| run(begin + at * 10_000_000, 1_000 + at))
            .collect();
        let of = |keep: usize| {
            let mut store = Store::new(Options {
                slices: keep,
                keep: 0,
                ..Options::default()
            });
            store.apply_all(&items);
            store.snapshot(Fresh::All)
        };
        let (all, few) = (of(1_000_000), of(512));
        let within = Span {
            begin: begin + 2 * SECOND,
            end: begin + 4 * SECOND,
        };
        let (exact, sums) = (all.kernels_within(within), few.kernels_within(within));
        assert!(exact.is_exact && !sums.is_exact);
        let one = |samples: &KernelSamples| samples.kernels[&KernelId(0)];
        // By their ends: the last of the window counts for the second that it begins.
        assert_eq!((one(&exact).count, one(&sums).count), (200, 200));
        assert_eq!((one(&exact).mean, one(&sums).mean), (1_300.5, 1_299.5));
        let deviation = one(&sums).deviation.expect("it has one");
        assert!((deviation - 57.73).abs() < 0.01, "{deviation}");
    }
}
