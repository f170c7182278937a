//! Steps of a program without ranges: repetitions of a sequence of kernels.

use crate::analysis::period::{self, Kernel};
use roctop_trace::item::{Dispatch, Nanos, QueueId, Span};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of kernels of a queue that are searched.
const MAX_KERNELS: usize = 1 << 14;
/// Maximum number of queues that are searched; the busiest one counts.
const MAX_QUEUES: usize = 16;
/// Time between two searches.
const SEARCH_INTERVAL: Nanos = 1_000_000_000;
/// Kernels of a queue may arrive this long after their end.
const SETTLE_TIME: Nanos = 250_000_000;

#[derive(Debug, Default)]
struct Queue {
    kernels: VecDeque<Kernel>,
    total: u64,
}

/// The latest kernels of the queues, and how far their steps are known.
#[derive(Debug, Default)]
pub(super) struct Repetitions {
    queues: BTreeMap<QueueId, Queue>,
    searched: Nanos,
    /// End of the last step.
    last: Nanos,
}

impl Repetitions {
    /// A kernel of the program ran.
    pub(super) fn add(&mut self, dispatch: &Dispatch) {
        if self.queues.len() >= MAX_QUEUES && !self.queues.contains_key(&dispatch.queue) {
            return;
        }
        let queue = self.queues.entry(dispatch.queue).or_default();
        queue.total += 1;
        queue.kernels.push_back(Kernel {
            what: dispatch.kernel.0,
            begin: dispatch.span.begin,
            end: dispatch.span.end,
        });
        if queue.kernels.len() > MAX_KERNELS {
            queue.kernels.pop_front();
        }
    }

    /// Steps that ended since the last search; at most one search a second.
    pub(super) fn steps(&mut self, now: Nanos) -> Vec<Span> {
        if now < self.searched.saturating_add(SEARCH_INTERVAL) {
            return Vec::new();
        }
        self.searched = now;
        let Some(queue) = self.queues.values_mut().max_by_key(|queue| queue.total) else {
            return Vec::new();
        };
        queue.kernels.make_contiguous().sort_by_key(|kernel| kernel.begin);
        let (kernels, _) = queue.kernels.as_slices();
        let Some(found) = period::find(kernels) else {
            return Vec::new();
        };
        let words = period::words(kernels);
        let begins: Vec<usize> = (0..words.len()).filter(|&at| words[at] == found.anchor).collect();
        let settled = now.saturating_sub(SETTLE_TIME);
        let steps = begins.windows(2).filter_map(|pair| {
            let (begin, end) = (kernels[pair[0]].begin, kernels[pair[1]].begin);
            let is_new = begin >= self.last && end <= settled && period::is_like(pair[1] - pair[0], found.length);
            is_new.then_some(Span { begin, end })
        });
        let steps: Vec<Span> = steps.collect();
        self.last = steps.last().map_or(self.last, |step| step.end);
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_trace::item::KernelId;

    #[test]
    fn each_repetition_is_a_step_once() {
        const MS: u64 = 1_000_000;
        let mut repetitions = Repetitions::default();
        let mut steps = Vec::new();
        let mut begin = 1_000 * MS;
        for number in 0..60 {
            for kernel in 0..20 {
                repetitions.add(&Dispatch {
                    kernel: KernelId(kernel),
                    span: Span { begin, end: begin + MS },
                    ..Dispatch::default()
                });
                begin += if number == 30 && kernel == 7 { 300 * MS } else { 5 * MS };
            }
            steps.extend(repetitions.steps(begin));
        }
        assert!(steps.len() > 45, "{} steps", steps.len());
        assert!(steps.windows(2).all(|pair| pair[0].end <= pair[1].begin));
        let long: Vec<u64> = steps
            .iter()
            .map(|step| step.duration() / MS)
            .filter(|ms| *ms != 100)
            .collect();
        assert_eq!(long, [395]);
    }
}
