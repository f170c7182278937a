//! PC samples, summed by code location.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use roctop_trace::item::{KernelId, ProcessId};
use roctop_trace::pc_sampling::Sample;

/// Maximum number of code locations; further samples are counted together.
const MAX_PLACES: usize = 1 << 16;
/// Number of recent dispatches to which samples can still refer.
const MAX_DISPATCHES: usize = 1 << 14;
/// Maximum number of samples that wait for their dispatch.
const MAX_WAITING: usize = 1 << 14;
/// Maximum number of reasons and types; higher numbers count with the last.
const MAX_WORDS: usize = 24;

/// Number of occurrences by number; few numbers occur.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(Vec<u32>);

impl Tally {
    fn add(&mut self, number: u16) {
        let at = usize::from(number).min(MAX_WORDS - 1);
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] = self.0[at].saturating_add(1);
    }

    /// Subtracts an earlier state.
    fn since(&mut self, earlier: &Self) {
        for (count, old) in self.0.iter_mut().zip(&earlier.0) {
            *count = count.saturating_sub(*old);
        }
    }

    /// Numbers with their occurrences, most frequent first.
    pub fn ranked(&self) -> Vec<(u16, u32)> {
        let known = (0..).zip(self.0.iter().copied()).filter(|one| one.1 > 0);
        let mut ranked: Vec<(u16, u32)> = known.collect();
        ranked.sort_by_key(|one| std::cmp::Reverse(one.1));
        ranked
    }
}

/// An instruction of a kernel with its samples.
#[derive(Clone, Debug, Default)]
pub struct SampledPlace {
    /// Process.
    pub process: ProcessId,
    /// Code object id of rocprofiler-sdk; 0 if none.
    pub code_object: u64,
    /// Offset of the instruction in the code object; its address if there is none.
    pub offset: u64,
    /// Kernel of the waves; `None` if no dispatch shows it.
    pub kernel: Option<KernelId>,
    /// Number of samples.
    pub count: u64,
    /// Number of samples with wave state: those taken by the hardware.
    pub with_state: u64,
    /// Number of these with an issued instruction.
    pub issued: u64,
    /// Sum of active lanes.
    pub lanes: u64,
    /// Stall reasons.
    pub reasons: Tally,
    /// Instruction types.
    pub instructions: Tally,
}

impl SampledPlace {
    /// Samples since an earlier state.
    #[must_use]
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let mut rest = self.clone();
        rest.count = rest.count.saturating_sub(earlier.count);
        rest.with_state = rest.with_state.saturating_sub(earlier.with_state);
        rest.issued = rest.issued.saturating_sub(earlier.issued);
        rest.lanes = rest.lanes.saturating_sub(earlier.lanes);
        rest.reasons.since(&earlier.reasons);
        rest.instructions.since(&earlier.instructions);
        rest
    }
}

/// Key of a code location.
type Key = (ProcessId, Option<KernelId>, u64, u64);

/// A dispatch of a process.
type Id = (ProcessId, u64);

/// All code locations.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    rows: Vec<SampledPlace>,
    places: HashMap<Key, u32>,
    /// Kernels of recent dispatches.
    kernels: HashMap<Id, KernelId>,
    order: VecDeque<Id>,
    /// Samples that wait for their dispatch, by dispatch, and their number.
    waiting: HashMap<Id, Vec<Sample>>,
    waiters: u64,
    /// Number of samples beyond the maximum of code locations.
    elsewhere: u64,
}

impl Sampled {
    /// The code locations.
    pub(super) fn shared(&self) -> Arc<Vec<SampledPlace>> {
        Arc::new(self.rows.clone())
    }

    /// Number of all samples, including those without a location and waiting ones.
    pub(super) fn count(&self) -> u64 {
        self.rows.iter().map(|row| row.count).sum::<u64>() + self.elsewhere + self.waiters
    }

    /// Whether there was no sample, so that dispatches need not be passed in.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.waiters == 0
    }

    /// Counts a sample, now or when its dispatch is known.
    pub(super) fn add(&mut self, sample: &Sample) {
        let id = (sample.process, sample.dispatch);
        match self.kernels.get(&id) {
            Some(&kernel) => self.count_in(sample, Some(kernel)),
            None if self.waiters < MAX_WAITING as u64 => {
                self.waiting.entry(id).or_default().push(*sample);
                self.waiters += 1;
            }
            None => self.count_in(sample, None),
        }
    }

    /// Adds the kernel of a dispatch.
    pub(super) fn dispatched(&mut self, process: ProcessId, dispatch: u64, kernel: KernelId) {
        let id = (process, dispatch);
        if self.waiters > 0
            && let Some(samples) = self.waiting.remove(&id)
        {
            self.waiters -= samples.len() as u64;
            for sample in &samples {
                self.count_in(sample, Some(kernel));
            }
        }
        if self.order.len() == MAX_DISPATCHES
            && let Some(old) = self.order.pop_front()
        {
            self.kernels.remove(&old);
        }
        if self.kernels.insert(id, kernel).is_none() {
            self.order.push_back(id);
        }
    }

    fn count_in(&mut self, sample: &Sample, kernel: Option<KernelId>) {
        let key = (sample.process, kernel, sample.code_object, sample.offset);
        let at = match self.places.get(&key) {
            Some(&at) => at,
            None if self.rows.len() < MAX_PLACES => {
                let at = self.rows.len() as u32;
                self.rows.push(SampledPlace {
                    process: sample.process,
                    code_object: sample.code_object,
                    offset: sample.offset,
                    kernel,
                    ..SampledPlace::default()
                });
                self.places.insert(key, at);
                at
            }
            None => {
                self.elsewhere += 1;
                return;
            }
        };
        let row = &mut self.rows[at as usize];
        row.count += 1;
        row.lanes += u64::from(sample.exec_mask.count_ones());
        if sample.is_stochastic() {
            row.with_state += 1;
            row.instructions.add(sample.instruction);
            if sample.is_issued {
                row.issued += 1;
            } else {
                row.reasons.add(sample.reason);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::record::sampling;

    fn sample(dispatch: u64, offset: u64, is_issued: bool) -> Sample {
        Sample {
            dispatch,
            code_object: 1,
            offset,
            is_issued,
            exec_mask: 0xff,
            reason: 3,
            instruction: 1,
            method: sampling::STOCHASTIC,
            ..Sample::default()
        }
    }

    fn dispatched(sampled: &mut Sampled, dispatch: u64, kernel: u32) {
        sampled.dispatched(ProcessId::default(), dispatch, KernelId(kernel));
    }

    #[test]
    fn a_sample_finds_a_dispatch_before_or_after_it() {
        let mut sampled = Sampled::default();
        sampled.add(&sample(7, 0x10, true));
        sampled.add(&sample(7, 0x10, false));
        sampled.add(&sample(8, 0x20, false));
        assert!((sampled.count(), sampled.rows.len(), sampled.is_empty()) == (3, 0, false));
        dispatched(&mut sampled, 7, 3);
        dispatched(&mut sampled, 9, 4);
        sampled.add(&sample(9, 0x10, false));
        let rows = sampled.shared();
        let kernels: Vec<_> = rows.iter().map(|row| (row.kernel, row.offset, row.count)).collect();
        // A function that two kernels call is a location in each.
        let expected = [(Some(KernelId(3)), 0x10, 2), (Some(KernelId(4)), 0x10, 1)];
        assert_eq!((kernels, sampled.count()), (expected.to_vec(), 4));
        let first = &rows[0];
        assert_eq!((first.with_state, first.issued, first.lanes), (2, 1, 16));
        assert_eq!(
            (first.reasons.ranked(), first.instructions.ranked()),
            (vec![(3, 1)], vec![(1, 2)])
        );
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_rest_is_counted() {
        let mut sampled = Sampled::default();
        let many = (MAX_PLACES + MAX_WAITING) as u64 + 5;
        for offset in 0..many {
            sampled.add(&sample(offset, offset, false));
        }
        assert_eq!((sampled.waiters, sampled.elsewhere), (MAX_WAITING as u64, 5));
        for id in 0..MAX_DISPATCHES as u64 + 5 {
            dispatched(&mut sampled, id, 1);
        }
        assert_eq!((sampled.rows.len(), sampled.count()), (MAX_PLACES, many));
        assert_eq!((sampled.kernels.len(), sampled.waiters), (MAX_DISPATCHES, 0));
    }
}
