//! Performance counters of a GPU: what its blocks count for the kernels that ran.
//!
//! Exact are clocks (GRBM_COUNT, GRBM_GUI_ACTIVE, at 1 GHz) and waves (SQ_WAVES, by engine). Everything else is a
//! constant per wave derived from the event's number: deterministic, and without meaning.

use std::sync::{Mutex, OnceLock};

use crate::model::model;

/// A block that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Block {
    Grbm,
    Cpc,
    Cpf,
    Spi,
    Sq,
    Ta,
    Td,
    Tcp,
    Tcc,
    Tca,
}

const BLOCKS: usize = 10;
const COUNTERS: usize = 8;
/// Number of instances over which sums are spread.
const INSTANCES: u64 = 16;

mod event {
    pub(super) const GRBM_COUNT: u32 = 0;
    pub(super) const SQ_WAVES: u32 = 4;
}

/// Selected engine and instance; `None` for all.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Where {
    /// Instance of a block.
    pub(crate) instance: Option<u32>,
    /// Shader engine.
    pub(crate) engine: Option<u32>,
}

/// Counted values.
#[derive(Clone, Default)]
struct Sums {
    clocks: u64,
    active: u64,
    /// Waves by engine.
    waves: Vec<u64>,
    workgroups: u64,
    items: u64,
}

/// Counters of a GPU.
pub(crate) struct Perf {
    /// Target of selects and reads.
    pub(crate) place: Where,
    selects: [[u32; COUNTERS]; BLOCKS],
    sums: Sums,
    sampled: Sums,
    running_since: Option<u64>,
    busy_until: u64,
}

impl Perf {
    /// Counters of a GPU with this many shader engines.
    pub(crate) fn new(engines: usize) -> Self {
        let sums = Sums {
            waves: vec![0; engines.max(1)],
            ..Sums::default()
        };
        Self {
            place: Where::default(),
            selects: [[0; COUNTERS]; BLOCKS],
            sampled: sums.clone(),
            sums,
            running_since: None,
            busy_until: 0,
        }
    }

    /// Resets and stops all counters.
    pub(crate) fn reset(&mut self, _now: u64) {
        let engines = self.sums.waves.len();
        self.sums = Sums {
            waves: vec![0; engines],
            ..Sums::default()
        };
        self.running_since = None;
    }

    /// Starts counting.
    pub(crate) fn start(&mut self, now: u64) {
        if self.running_since.is_none() {
            self.running_since = Some(now);
            self.busy_until = self.busy_until.max(now);
        }
    }

    /// Stops counting.
    pub(crate) fn stop(&mut self, now: u64) {
        if let Some(since) = self.running_since.take() {
            self.sums.clocks += now.saturating_sub(since);
        }
    }

    /// Latches the current values for reading.
    pub(crate) fn sample(&mut self, now: u64) {
        self.sampled = self.sums.clone();
        if let Some(since) = self.running_since {
            self.sampled.clocks += now.saturating_sub(since);
        }
    }

    /// Makes a counter of a block count this event.
    pub(crate) fn select(&mut self, block: Block, counter: usize, value: u32) {
        let mask = match block {
            Block::Sq => 0x1ff,
            Block::Grbm => 0x3f,
            _ => 0x3ff,
        };
        if let Some(select) = self.selects[block as usize].get_mut(counter) {
            *select = value & mask;
        }
    }

    /// Counts a kernel that ran in a counted queue.
    pub(crate) fn kernel(&mut self, begin: u64, end: u64, workgroups: u64, waves_each: u64, items: u64) {
        let Some(since) = self.running_since else { return };
        let from = begin.max(self.busy_until).max(since);
        self.sums.active += end.saturating_sub(from);
        self.busy_until = self.busy_until.max(end);
        let engines = self.sums.waves.len() as u64;
        // Work-groups are distributed over the engines in turn.
        for (engine, waves) in (0..).zip(&mut self.sums.waves) {
            let share = workgroups / engines + u64::from(engine < workgroups % engines);
            *waves += share * waves_each;
        }
        self.sums.workgroups += workgroups;
        self.sums.items += items;
    }

    /// Latched value of a counter at the selected place.
    pub(crate) fn value(&self, block: Block, counter: usize) -> u64 {
        let event = self.selects[block as usize].get(counter).copied().unwrap_or(0);
        let sums = &self.sampled;
        let waves = match self.place.engine {
            Some(engine) => sums.waves.get(engine as usize).copied().unwrap_or(0),
            None => sums.waves.iter().sum(),
        };
        let constant = waves * (1 + u64::from(event % 8));
        match (block, event) {
            (Block::Grbm, event::GRBM_COUNT) => sums.clocks,
            // GRBM_GUI_ACTIVE is exact; other events of these blocks have its value.
            (Block::Grbm | Block::Cpc | Block::Cpf, _) => sums.active,
            (Block::Sq, event::SQ_WAVES) => waves,
            (Block::Sq | Block::Spi, _) => constant,
            _ => match self.place.instance {
                // The first instances get the remainder.
                Some(instance) => {
                    let instance = u64::from(instance);
                    constant / INSTANCES + u64::from(instance < constant % INSTANCES)
                }
                None => constant,
            },
        }
    }
}

/// Counters of a GPU of this process.
pub(crate) fn perf(gpu: u32) -> Option<&'static Mutex<Perf>> {
    static ALL: OnceLock<Vec<Mutex<Perf>>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let target = model().target;
        let engines = target.arrays / target.arrays_per_engine.max(1);
        (0..model().gpus)
            .map(|_| Mutex::new(Perf::new(engines as usize)))
            .collect()
    });
    all.get(gpu as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_kernels_are_active_once() {
        let mut perf = Perf::new(2);
        perf.start(0);
        perf.kernel(100, 300, 1, 1, 64);
        perf.kernel(200, 400, 1, 1, 64);
        perf.kernel(500, 600, 3, 1, 192);
        perf.sample(1000);
        assert_eq!(perf.value(Block::Grbm, 0), 1000);
        perf.select(Block::Grbm, 1, 2);
        assert_eq!(perf.value(Block::Grbm, 1), 400);
        perf.select(Block::Sq, 0, 4);
        assert_eq!(perf.value(Block::Sq, 0), 5);
        perf.place.engine = Some(1);
        assert_eq!(perf.value(Block::Sq, 0), 1);
    }

    #[test]
    fn instances_add_up_to_the_whole() {
        let mut perf = Perf::new(1);
        perf.start(0);
        perf.kernel(0, 10, 37, 1, 64);
        perf.sample(10);
        perf.select(Block::Tcc, 0, 20);
        let whole = perf.value(Block::Tcc, 0);
        let parts: u64 = (0..16)
            .map(|instance| {
                perf.place.instance = Some(instance);
                perf.value(Block::Tcc, 0)
            })
            .sum();
        assert_eq!((whole, parts), (185, 185));
    }

    #[test]
    fn nothing_is_counted_while_they_stand() {
        let mut perf = Perf::new(1);
        perf.kernel(0, 10, 1, 1, 64);
        perf.start(20);
        perf.stop(30);
        perf.kernel(30, 40, 1, 1, 64);
        perf.sample(50);
        assert_eq!((perf.value(Block::Grbm, 0), perf.sampled.waves[0]), (10, 0));
    }
}
