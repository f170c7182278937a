//! The demo's counters: of whole GPUs, added up from what the model's kernels would count, and read ten times a second. Only
//! where counters are asked for, which roctop does for its screen.

use super::workload::{GPUS, KERNELS};
use roctop_collector::process::Process;
use roctop_collector::{clock, collector, control};
use roctop_ring::record::{self, CounterValue, Dispatch, Domain, counter_flag, counter_source, status};
use roctop_ring::session::ENV_COUNTERS;

/// Between two readings, ns.
const INTERVAL: u64 = 100_000_000;
/// Clocks of the model in a microsecond.
const MEGAHERTZ: u64 = 2100;
/// Bytes that a hit or a miss of the L2 cache is.
const LINE: u64 = 128;

const COUNTERS: [(&str, &str, &str); 4] = [
    ("GRBM_GUI_ACTIVE", "GRBM", "Clocks in which the GPU had work"),
    ("SQ_WAVES", "SQ", "Waves sent to the sequencers"),
    ("TCC_HIT", "TCC", "Hits of the L2 cache"),
    ("TCC_MISS", "TCC", "Misses of the L2 cache"),
];

/// What was counted since the beginning.
pub(super) struct Counters {
    sums: [[u64; COUNTERS.len()]; GPUS],
    /// The end of the last kernel of each GPU.
    ended: [u64; GPUS],
    read: u64,
    rests: bool,
}

impl Counters {
    /// None where nobody asked for counters.
    pub(super) fn begin(process: &Process, now: u64) -> Option<Self> {
        std::env::var_os(ENV_COUNTERS)?;
        for gpu in 0..GPUS as u32 {
            for (at, (name, block, description)) in (0..).zip(COUNTERS) {
                let text = |text: &str| process.intern(text.as_bytes());
                let fact = record::Counter {
                    instances: 1,
                    id: gpu * COUNTERS.len() as u32 + at,
                    agent: gpu + 1,
                    name: text(name),
                    description: text(description),
                    block: text(block),
                    flags: counter_flag::DEVICE,
                    pass: 1,
                    ..record::Counter::default()
                };
                process.fact(record::Counter::head(0, Domain::NONE), &fact.payload());
            }
        }
        say(process, status::COUNTING, "count");
        Some(Self {
            sums: [[0; COUNTERS.len()]; GPUS],
            ended: [0; GPUS],
            read: now,
            rests: false,
        })
    }

    /// A kernel has ended. They end in order.
    pub(super) fn count(&mut self, dispatch: &Dispatch, kernel: usize) {
        let gpu = dispatch.agent as usize - 1;
        let (Some(sums), Some(ended)) = (self.sums.get_mut(gpu), self.ended.get_mut(gpu)) else {
            return;
        };
        let busy = dispatch.end.saturating_sub(dispatch.begin.max(*ended));
        *ended = dispatch.end;
        let waves = u64::from(dispatch.grid_x) * u64::from(dispatch.grid_y) / 64;
        // The more of it stays in LDS, the less is asked of the cache, and the more of that is new.
        let lds = KERNELS.get(kernel).map_or(0, |kernel| u64::from(kernel.group_size));
        let lines = waves * 64 * 4 / LINE * 16;
        let misses = lines * (8 + lds / 4096) / 40;
        for (sum, more) in sums
            .iter_mut()
            .zip([busy * MEGAHERTZ / 1000, waves, lines - misses.min(lines), misses])
        {
            *sum += more;
        }
    }

    /// Reads them, when it is time.
    pub(super) fn read_when_due(&mut self, process: &Process, now: u64) {
        if now - self.read < INTERVAL {
            return;
        }
        self.read = now;
        let rests = control::counters_rest();
        if rests != self.rests {
            self.rests = rests;
            if rests {
                say(process, status::RESTING, "rest");
            } else {
                say(process, status::COUNTING, "count");
            }
        }
        if rests {
            return;
        }
        for (counter, (gpu, sum)) in (0..).zip(
            (0..)
                .zip(&self.sums)
                .flat_map(|(gpu, sums)| sums.iter().map(move |sum| (gpu, sum))),
        ) {
            collector::counter_value(&CounterValue {
                value: (*sum as f64).to_bits(),
                time: clock::now(),
                counter,
                agent: gpu + 1,
                source: counter_source::DEVICE,
                pass: 1,
                ..CounterValue::default()
            });
        }
    }
}

/// Says what the counters do.
fn say(process: &Process, code: u32, what: &str) {
    process.say(code, 0, &format!("counters of the synthetic GPUs {what}"));
}
