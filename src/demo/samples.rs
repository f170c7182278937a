//! The demo's PC samples: where its kernels' waves were, as often as their code takes time. Only where the viewer asks for
//! more than records, as for the counters.

use super::workload::kernel_of;
use roctop_collector::thread;
use roctop_ring::record::{Dispatch, Domain, PcSample, sampling};
use roctop_ring::session::ENV_COUNTERS;

/// Time between two samples of a kernel, ns.
const INTERVAL: u64 = 200_000;
/// rocprofiler-sdk's id of the demo's code object.
const CODE_OBJECT: u64 = 1;
/// Bytes of code that a kernel takes, and of its loop's instructions.
const CODE: u64 = 0x1000;
const INSTRUCTION: u64 = 8;

/// Types of instructions and reasons for waiting, as rocprofiler-sdk numbers them, of the places in a kernel's loop: the
/// more often a place is listed, the more samples it has.
const PLACES: [(u64, u16, u32); 8] = [
    (0, 7, 3),
    (1, 5, 3),
    (2, 2, 0),
    (2, 2, 2),
    (2, 2, 0),
    (3, 1, 2),
    (4, 10, 5),
    (5, 3, 1),
];

/// What is sampled.
pub(super) struct Samples {
    number: u64,
}

impl Samples {
    /// None where nobody asked.
    pub(super) fn begin() -> Option<Self> {
        std::env::var_os(ENV_COUNTERS).map(|_| Self { number: 0 })
    }

    /// A kernel has ended: records what was sampled while it ran.
    pub(super) fn take(&mut self, dispatch: &Dispatch) {
        let Some(thread) = thread::current() else { return };
        let mut time = dispatch.begin.next_multiple_of(INTERVAL);
        while time < dispatch.end {
            self.number += 1;
            let sample = self.sample(dispatch, time);
            thread.push(PcSample::head(0, Domain::NONE), &sample.payload());
            time += INTERVAL;
        }
    }

    fn sample(&self, dispatch: &Dispatch, time: u64) -> PcSample {
        // Neighbouring numbers must not walk through the places in order.
        let mixed = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let at = (mixed % PLACES.len() as u64) as usize;
        let (place, instruction, reason) = PLACES.get(at).copied().unwrap_or_default();
        PcSample {
            time,
            exec_mask: if place == 4 { u64::MAX >> 32 } else { u64::MAX },
            dispatch_id: dispatch.dispatch_id,
            code_object: CODE_OBJECT,
            offset: kernel_of(dispatch.kernel_object) as u64 * CODE + 0x80 + place * INSTRUCTION,
            workgroup_x: (mixed % 64) as u32,
            wave_count: 8,
            snapshot: reason,
            issued: u16::from(reason == 0),
            instruction,
            method: sampling::STOCHASTIC,
            ..PcSample::default()
        }
    }
}
