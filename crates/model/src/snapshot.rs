//! What a screen or a summary is made from: an immutable copy that costs a few reference counts.

use std::sync::Arc;

use super::analysis::{Cached, Thresholds};
use super::gauges::{DeviceRow, Gauges, History};
use super::lane::{Lane, LaneKey};
use super::memory::MemoryValues;
use super::names::Names;
use super::sampled::SampledPlace;
use super::stats::{Stat, Sum};
use super::table::{Cell, CopyStat, CopySum, KernelStat, MarkerStat, Place, Shape, ThreadStat};
use roctop_ring::level::Level;
use roctop_trace::item::{
    Agent, AgentId, Exit, Health, KernelId, LossReason, Nanos, NodeId, Open, OperationId, Process, ProcessId, ThreadId,
};

/// Where the items come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A running program.
    #[default]
    Live,
    /// A recording.
    Replay,
}

/// A row by kernel.
#[derive(Clone, Debug, Default)]
pub struct KernelRow {
    /// Which.
    pub id: KernelId,
    /// Letter on the timeline.
    pub letter: Option<char>,
    /// Numbers.
    pub numbers: KernelStat,
}

/// A row by operation.
#[derive(Clone, Debug, Default)]
pub struct ApiRow {
    /// Which.
    pub id: OperationId,
    /// Durations.
    pub stat: Stat,
    /// Errors returned.
    pub errors: u64,
    /// The last error code.
    pub last_error: i32,
}

/// A row by thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadRow {
    /// Which.
    pub id: ThreadId,
    /// Numbers.
    pub numbers: ThreadStat,
}

/// A row by agent.
#[derive(Clone, Debug, Default)]
pub struct AgentRow {
    /// Which.
    pub id: AgentId,
    /// Dispatches seen.
    pub dispatches: u64,
    /// Nanoseconds in which at least one kernel ran, so far.
    pub busy: u64,
    /// Share of the window in which at least one kernel ran.
    pub share: f64,
    /// The same by second, per mille.
    pub trend: Vec<u64>,
    /// Streams that had work.
    pub streams: usize,
    /// Queues that had work.
    pub queues: usize,
}

/// A row by process.
#[derive(Clone, Debug, Default)]
pub struct ProcessRow {
    /// The process.
    pub process: Process,
    /// How and when it ended.
    pub exit: Option<(Exit, Nanos)>,
    /// Records seen.
    pub records: u64,
    /// Records lost, by reason.
    pub lost: Vec<(LossReason, u64)>,
    /// What is open, or was at the end.
    pub open: Arc<Open>,
    /// What was open when it was last looked at, and when that was; what has ended since is still in it.
    pub looked: (Arc<Open>, Nanos),
    /// Whether recording is on.
    pub recording: bool,
    /// Whether its counters count now, where they can be told to rest.
    pub counting: Option<bool>,
    /// Its level of timing, with the collector's sentence; none while it is where it starts by itself.
    pub level: Option<(Level, Arc<str>)>,
    /// What the collector says is not recorded of it, or may not be.
    pub incomplete: Vec<Arc<str>>,
    /// What a reading of the clock takes in it, ps, where its collector measured that.
    pub reading: Option<u64>,
    /// How it did when it was last asked, and when that was; none of recordings.
    pub health: Option<(Health, Nanos)>,
    /// Records a second between the last two times.
    pub rate: f64,
    /// The same by second.
    pub rates: History,
    /// Bytes of memory that it had resident, by second.
    pub resident: History,
    /// Its records then.
    pub(super) counted: u64,
}

/// Sentences of a process on what is not recorded that are kept: each is about another kind of work.
const MAX_INCOMPLETE: usize = 16;

impl ProcessRow {
    /// The collector says that something is not recorded.
    pub(super) fn misses(&mut self, text: &Arc<str>) {
        if self.incomplete.len() < MAX_INCOMPLETE && !self.incomplete.contains(text) {
            self.incomplete.push(text.clone());
        }
    }

    /// Records lost for all reasons.
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().fold(0, |sum: u64, loss| sum.saturating_add(loss.1))
    }
}

/// The level of timing that asks least of the hardware, of all processes; none while all are where they start.
pub fn level(rows: &[ProcessRow]) -> Option<Level> {
    rows.iter()
        .filter_map(|row| row.level.as_ref())
        .map(|(level, _)| *level)
        .max()
}

/// How and when the program ended: the process whose end is known is the one that was started, in whatever row it is.
pub fn ending(rows: &[ProcessRow]) -> Option<(Exit, Nanos)> {
    let known = rows.iter().filter_map(|row| row.exit);
    known
        .clone()
        .find(|exit| exit.0 != Exit::Unknown)
        .or(known.clone().next())
}

/// Counts of all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// API calls.
    pub calls: u64,
    /// Dispatches, the run-time's own among them.
    pub dispatches: u64,
    /// Dispatches of the run-time's own kernels.
    pub internal: u64,
    /// Copies and fills.
    pub copies: u64,
    /// Marks and ranges.
    pub markers: u64,
    /// Kernels and copies whose times came exchanged, or cannot be.
    pub suspect: u64,
    /// Records lost.
    pub lost: u64,
    /// Time in kernels, ns (a sum, not a union).
    pub kernel_time: u64,
}

impl Totals {
    /// Records of all kinds seen.
    pub fn records(&self) -> u64 {
        self.calls + self.dispatches + self.copies + self.markers
    }
}

/// What a collector said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whose collector.
    pub process: ProcessId,
    /// One of [`roctop_ring::record::status`].
    pub code: u32,
    /// The sentence.
    pub text: Arc<str>,
}

/// The values: refreshed a few times a second. Tables that did not change are those of the values before.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// When they were made.
    pub at: Nanos,
    /// Numbers count from then on; 0: from the beginning.
    pub counted_from: Nanos,
    /// Length of the window that shares are of.
    pub window: u64,
    /// By kernel, unsorted.
    pub kernels: Arc<Vec<KernelRow>>,
    /// By route, unsorted.
    pub copies: Arc<Vec<CopyStat>>,
    /// Of routes to a GPU that processes share: all of theirs.
    pub copy_sums: Arc<Vec<CopySum>>,
    /// By operation, unsorted.
    pub api: Arc<Vec<ApiRow>>,
    /// By thread, unsorted.
    pub threads: Vec<ThreadRow>,
    /// By pattern of the markers' texts, unsorted.
    pub markers: Arc<Vec<MarkerStat>>,
    /// By GPU and process.
    pub agents: Vec<AgentRow>,
    /// By GPU that several processes use: the sum of them.
    pub shared: Vec<AgentRow>,
    /// By process.
    pub processes: Vec<ProcessRow>,
    /// What collectors said.
    pub said: Vec<Said>,
    /// Devices and counters.
    pub gauges: Gauges,
    /// Memory that the program holds.
    pub memory: Arc<MemoryValues>,
    /// Where waves were, by place; places keep their numbers.
    pub sampled: Arc<Vec<SampledPlace>>,
    /// All samples of program counters.
    pub samples: u64,
    /// Geometries.
    pub shapes: Arc<Vec<Shape>>,
    /// Where kernels ran.
    pub places: Arc<Vec<Place>>,
    /// Counts.
    pub totals: Totals,
    /// Records per second of late.
    pub rate: f64,
    /// What is worth knowing of them, once it was asked for.
    pub analysis: Arc<Cached>,
}

impl Values {
    /// The row of an agent, or of a GPU that processes share.
    pub fn agent(&self, id: AgentId) -> Option<&AgentRow> {
        self.agents.iter().chain(&self.shared).find(|row| row.id == id)
    }
}

/// A GPU of the machine, of however many processes.
#[derive(Clone, Debug)]
pub struct Gpu<'a> {
    /// The GPU as a whole.
    pub row: &'a AgentRow,
    /// Its processes by rank and pid, where several use it.
    pub parts: Vec<&'a AgentRow>,
}

/// Everything known at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Where the items come from.
    pub mode: Mode,
    /// What is watched: the command line.
    pub title: Arc<str>,
    /// When.
    pub now: Nanos,
    /// When the session began: times on screen are since then.
    pub origin: Nanos,
    /// Facts.
    pub names: Arc<Names>,
    /// Tables.
    pub values: Arc<Values>,
    /// The timeline.
    pub lanes: Arc<Vec<Arc<Lane>>>,
    /// What the program printed.
    pub output: Arc<[Arc<str>]>,
    /// What is open now, or was at the end, by process; those with nothing open are left out.
    pub open: Vec<Arc<Open>>,
    /// How the program ended, once it has.
    pub ended: Option<Exit>,
    /// The report on programs that use ROCm without a collector.
    pub missed: Option<Arc<str>>,
    /// Letters of the timeline, by kernel.
    pub letters: Arc<Vec<KernelId>>,
    /// When something is worth a look.
    pub thresholds: Thresholds,
}

impl Snapshot {
    /// The letter that stands for a kernel.
    pub fn letter(&self, kernel: KernelId) -> Option<char> {
        let at = self.letters.iter().position(|&lettered| lettered == kernel)?;
        char::from_u32('a' as u32 + at as u32)
    }

    /// What the driver says of an agent's GPU; none when it was not asked.
    pub fn device_of(&self, agent: &Agent) -> Option<&DeviceRow> {
        self.device_at(self.names.node_of(agent))
    }

    /// What the driver says of the GPU at a node.
    pub fn device_at(&self, node: NodeId) -> Option<&DeviceRow> {
        self.values.gauges.devices.iter().find(|row| row.now.node == node)
    }

    /// The GPUs, each once.
    pub fn gpus(&self) -> Vec<Gpu<'_>> {
        let (names, values) = (&self.names, &self.values);
        let place = |row: &AgentRow| names.agent(row.id).map(|agent| (names.node_of(agent), agent.process));
        let mut gpus: Vec<Gpu<'_>> = Vec::new();
        for row in &values.agents {
            let here = place(row);
            let is_same = |gpu: &&mut Gpu<'_>| {
                let (known, own) = (place(gpu.row), here);
                known
                    .zip(own)
                    .is_some_and(|(known, own)| known.0 == own.0 && known.1 != own.1)
            };
            match gpus.iter_mut().find(is_same) {
                // A process may see a GPU that it does not use.
                Some(known) if known.row.dispatches == 0 && row.dispatches > 0 => known.row = row,
                Some(_) => {}
                None => gpus.push(Gpu { row, parts: Vec::new() }),
            }
        }
        for gpu in &mut gpus {
            let members = names.members(names.gpu_of(gpu.row.id));
            let shared = values.shared.iter().find(|row| row.id == names.gpu_of(gpu.row.id));
            if let Some(shared) = shared {
                gpu.row = shared;
                gpu.parts = members.into_iter().filter_map(|id| values.agent(id)).collect();
            }
        }
        gpus
    }

    /// A lane by its key.
    pub fn lane(&self, key: LaneKey) -> Option<&Arc<Lane>> {
        self.lanes.iter().find(|lane| lane.key == key)
    }

    /// Time since the session began.
    pub fn elapsed(&self) -> u64 {
        self.now.saturating_sub(self.origin)
    }

    /// Whether nothing has come of late and nothing is open.
    pub fn is_calm(&self) -> bool {
        self.values.rate == 0.0 && self.open.is_empty()
    }

    /// Whether the program still runs.
    pub fn is_running(&self) -> bool {
        self.mode == Mode::Live && self.ended.is_none()
    }

    /// Cells of a row that a test accepts, added up; the row itself when all of them are.
    pub fn within(row: &KernelRow, accept: impl Fn(&Cell) -> bool) -> Option<Stat> {
        let (mut sum, mut taken) = (Sum::default(), 0);
        for cell in row.numbers.cells.iter().filter(|cell| accept(cell)) {
            sum.merge(&cell.sum);
            taken += 1;
        }
        match taken {
            0 => None,
            all if all == row.numbers.cells.len() => Some(row.numbers.stat.clone()),
            _ => Some(sum.into()),
        }
    }
}
