//! Snapshot: the immutable input of a screen or a summary. Copying it costs a few reference counts.

use std::sync::Arc;

use super::analysis::{Cached, LoggedAlert, Thresholds};
use super::bindings::Bindings;
use super::collectives::CollectiveValues;
use super::event_calls::EventCalls;
use super::fx_hash::FastMap;
use super::gauges::{DeviceRow, Gauges, History};
use super::job::JobValues;
use super::lane::{Lane, LaneKey};
use super::memory::MemoryValues;
use super::names::Names;
use super::occupancy::Occupancy;
use super::recall::Recall;
use super::sampled::SampledPlace;
use super::seconds::Seconds;
use super::sites::{SiteRow, SiteWork, Sites};
use super::stats::{Stat, Sum};
use super::table::{Cell, CopyStat, CopySum, KernelStat, MarkerStat, Placement, Shape, ThreadStat};
use super::tally::Counting;
use super::thread_times::ThreadTimes;
use roctop_ring::level::Level;
use roctop_trace::early::Early;
use roctop_trace::item::{
    Agent, AgentId, Code, Exit, Health, KernelId, LossReason, Lost, Nanos, NodeId, Open, OperationId, Process,
    ProcessId, ThreadId,
};
use roctop_trace::units;

/// Source of the items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Mode {
    /// A running program.
    #[default]
    Live,
    /// A recording.
    Replay,
}

/// How far a recording has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loading {
    /// Everything was read.
    #[default]
    Done,
    /// It is being read.
    Reading {
        /// Bytes that were read.
        done: u64,
        /// Bytes in all; 0 if unknown.
        total: u64,
    },
    /// An error ended the reading.
    Failed,
}

impl Loading {
    /// Per cent that were read, while it is being read.
    pub fn percent(self) -> Option<u64> {
        match self {
            Self::Reading { done, total } => Some((done.saturating_mul(100)).checked_div(total).unwrap_or(0).min(99)),
            Self::Done | Self::Failed => None,
        }
    }
}

/// What is wrong with a recording as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// In a word, for the first line; empty if that says it already.
    pub word: &'static str,
    /// In a sentence.
    pub text: Arc<str>,
}

/// Values of a kernel.
#[derive(Clone, Debug, Default)]
pub struct KernelRow {
    /// The kernel.
    pub id: KernelId,
    /// Its letter on the timeline.
    pub letter: Option<char>,
    /// Its statistics.
    pub numbers: KernelStat,
}

impl KernelRow {
    /// What its latest launch configuration can have on the first GPU that it ran on.
    pub fn occupancy(&self, snap: &Snapshot) -> Option<Occupancy> {
        let cell = self.numbers.cells.first()?;
        let place = snap.values.placement(cell)?;
        Occupancy::known(&snap.names, self.id, place.agent, &self.numbers.shape)
    }

    /// What its code object says.
    pub fn code(&self, snap: &Snapshot) -> Option<Code> {
        snap.names.kernel(self.id)?.kernel.code
    }
}

/// Values of an API operation.
#[derive(Clone, Debug, Default)]
pub struct ApiRow {
    /// The operation.
    pub id: OperationId,
    /// Durations.
    pub stat: Stat,
    /// Number of calls that returned an error.
    pub errors: u64,
    /// The last error code.
    pub last_error: i32,
    /// Bytes of calls of MPI.
    pub bytes: u64,
    /// Number of calls whose bytes are known.
    pub sized: u64,
    /// Time in calls of MPI by process, ns; in order of the processes.
    pub by_process: Vec<(ProcessId, u64)>,
}

/// Values of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadRow {
    /// The thread.
    pub id: ThreadId,
    /// Its statistics.
    pub numbers: ThreadStat,
}

/// Values of an agent.
#[derive(Clone, Debug, Default)]
pub struct AgentRow {
    /// The agent.
    pub id: AgentId,
    /// Number of dispatches.
    pub dispatches: u64,
    /// Total time with at least one kernel, ns.
    pub busy: u64,
    /// Share of the window with at least one kernel, 0 to 1.
    pub share: f64,
    /// Busy time by second, per mille.
    pub trend: Vec<u64>,
    /// Number of streams with work.
    pub streams: usize,
    /// Number of queues with work.
    pub queues: usize,
}

/// Values of a process.
#[derive(Clone, Debug, Default)]
pub struct ProcessRow {
    /// The process.
    pub process: Process,
    /// Exit and its time.
    pub exit: Option<(Exit, Nanos)>,
    /// Number of records.
    pub records: u64,
    /// Records lost, by reason.
    pub lost: Vec<(LossReason, u64)>,
    /// Open work, now or at the end.
    pub open: Arc<Open>,
    /// Open work at the last reading, and the time of that reading; work that has ended since is still in it.
    pub looked: (Arc<Open>, Nanos),
    /// Whether recording is on.
    pub recording: bool,
    /// Whether hardware counting is on, if it can be paused.
    pub counting: Option<bool>,
    /// Level of timing and the collector's sentence; `None` at the initial level.
    pub level: Option<(Level, Arc<str>)>,
    /// The collector's reports about unrecorded work.
    pub incomplete: Vec<Arc<str>>,
    /// Its kernels that begin before their launch.
    pub early: Early,
    /// Cost of a clock reading, ps, if the collector measured it.
    pub reading: Option<u64>,
    /// Latest health and its time; `None` in recordings.
    pub health: Option<(Health, Nanos)>,
    /// Records per second between the last two readings.
    pub rate: f64,
    /// The same by second.
    pub rates: History,
    /// Bytes of memory that it had resident, by second.
    pub resident: History,
    /// Its records then.
    pub(super) counted: u64,
}

/// Maximum number of reports about unrecorded work; each is about another kind.
const MAX_INCOMPLETE: usize = 16;

impl ProcessRow {
    /// Adds a report about unrecorded work.
    pub(super) fn misses(&mut self, text: &Arc<str>) {
        if self.incomplete.len() < MAX_INCOMPLETE && !self.incomplete.contains(text) {
            self.incomplete.push(text.clone());
        }
    }

    /// Number of records lost for any reason.
    pub fn lost_total(&self) -> Lost {
        Lost::of(self.lost.iter().copied())
    }

    /// Number of records that the process lost, without what its recording has lost.
    pub fn lost_of_it(&self) -> u64 {
        let own = self.losses().filter(|loss| !loss.0.is_of_recording());
        own.fold(0, |sum: u64, loss| sum.saturating_add(loss.1.records))
    }

    /// The losses that there are, with their reasons.
    pub fn losses(&self) -> impl Iterator<Item = (LossReason, Lost)> {
        let each = self.lost.iter().map(|loss| (loss.0, Lost::of([*loss])));
        each.filter(|loss| loss.1.is_any())
    }
}

/// Highest level number of all processes; `None` if all are at the initial level.
pub fn level(rows: &[ProcessRow]) -> Option<Level> {
    rows.iter()
        .filter_map(|row| row.level.as_ref())
        .map(|(level, _)| *level)
        .max()
}

/// Exit of the program and its time: only the exit of the started process is known.
pub fn ending(rows: &[ProcessRow]) -> Option<(Exit, Nanos)> {
    let known = rows.iter().filter_map(|row| row.exit);
    known
        .clone()
        .find(|exit| exit.0 != Exit::Unknown)
        .or(known.clone().next())
}

/// Numbers of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// API calls.
    pub calls: u64,
    /// Dispatches, including the run-time's own.
    pub dispatches: u64,
    /// Dispatches of the run-time's own kernels.
    pub internal: u64,
    /// Copies and fills.
    pub copies: u64,
    /// Marks and ranges.
    pub markers: u64,
    /// Kernels and copies with swapped or invalid times.
    pub suspect: u64,
    /// Records lost.
    pub lost: Lost,
    /// Sum of kernel durations, ns.
    pub kernel_time: u64,
}

impl Totals {
    /// Number of records of all kinds.
    pub fn records(&self) -> u64 {
        self.calls + self.dispatches + self.copies + self.markers
    }
}

/// A status report of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// Its process.
    pub process: ProcessId,
    /// One of [`roctop_ring::record::status`].
    pub code: u32,
    /// The report as a sentence.
    pub text: Arc<str>,
}

/// Values, refreshed a few times per second. Unchanged tables are shared with the previous values.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// Time of the values.
    pub at: Nanos,
    /// Time from which numbers count; 0 for the begin.
    pub counted_from: Nanos,
    /// Length of the window for shares, ns.
    pub window: u64,
    /// Sums of each kernel by second.
    pub seconds: Seconds,
    /// Kernels, by id.
    pub kernels: Arc<Vec<KernelRow>>,
    /// Copy routes, unsorted.
    pub copies: Arc<Vec<CopyStat>>,
    /// Sums of the routes to GPUs that processes share.
    pub copy_sums: Arc<Vec<CopySum>>,
    /// API operations, by id.
    pub api: Arc<Vec<ApiRow>>,
    /// Threads, unsorted.
    pub threads: Vec<ThreadRow>,
    /// Marker text patterns, unsorted.
    pub markers: Arc<Vec<MarkerStat>>,
    /// Agents: one row per GPU and process.
    pub agents: Vec<AgentRow>,
    /// GPUs that several processes use: their sums.
    pub shared: Vec<AgentRow>,
    /// Processes.
    pub processes: Vec<ProcessRow>,
    /// Status reports of the collectors.
    pub said: Vec<StatusReport>,
    /// Devices and counters.
    pub gauges: Gauges,
    /// Memory that the program holds.
    pub memory: Arc<MemoryValues>,
    /// Alerts of earlier analyses.
    pub alert_log: Arc<Vec<LoggedAlert>>,
    /// Recent calls that record events or wait for them.
    pub event_calls: EventCalls,
    /// How long threads had run, by thread.
    pub thread_times: ThreadTimes,
    /// Where processes may run.
    pub bindings: Bindings,
    /// Collectives of RCCL, matched across the processes.
    pub collectives: Arc<CollectiveValues>,
    /// PC samples by code location; locations keep their indexes.
    pub sampled: Arc<Vec<SampledPlace>>,
    /// Number of all PC samples.
    pub samples: u64,
    /// Work by call site, unsorted.
    pub sites: Arc<Vec<SiteRow>>,
    /// By work: index of a row in `sites` of the call path with most time, and number of call paths.
    pub main_sites: Arc<FastMap<SiteWork, (u32, u32)>>,
    /// Number of launches, copies and calls that are in no row of `sites`, because it is full.
    pub sites_left_out: u64,
    /// Launch configurations, by index.
    pub shapes: Arc<Vec<Shape>>,
    /// Places, see [`Placement::of`].
    pub places: Arc<Vec<Placement>>,
    /// Numbers of records.
    pub totals: Totals,
    /// Recent records per second.
    pub rate: f64,
    /// Analysis, computed on demand.
    pub analysis: Arc<Cached>,
}

impl Values {
    /// Where the launches of a cell ran: if it is shared by several places, without queue and stream.
    pub fn placement(&self, cell: &Cell) -> Option<Placement> {
        Placement::of(&self.places, cell.place)
    }

    /// The row of a kernel.
    pub fn kernel(&self, id: KernelId) -> Option<&KernelRow> {
        let at = self.kernels.binary_search_by_key(&id, |row| row.id).ok()?;
        self.kernels.get(at)
    }

    /// The row of an operation.
    pub fn operation(&self, id: OperationId) -> Option<&ApiRow> {
        let at = self.api.binary_search_by_key(&id, |row| row.id).ok()?;
        self.api.get(at)
    }

    /// The row of an agent, or of a GPU that processes share.
    pub fn agent(&self, id: AgentId) -> Option<&AgentRow> {
        self.agents.iter().chain(&self.shared).find(|row| row.id == id)
    }
}

/// A GPU of the machine, used by one or more processes.
#[derive(Clone, Debug)]
pub struct Gpu<'a> {
    /// The GPU as a whole.
    pub row: &'a AgentRow,
    /// Rows of its processes, sorted by rank and pid, if several use it.
    pub parts: Vec<&'a AgentRow>,
}

/// The state of the store at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Source of the items.
    pub mode: Mode,
    /// Title: the command line.
    pub title: Arc<str>,
    /// Time of the snapshot.
    pub now: Nanos,
    /// Begin of the session: displayed times are relative to it.
    pub origin: Nanos,
    /// Facts.
    pub names: Arc<Names>,
    /// Call sites.
    pub sites: Arc<Sites>,
    /// Tables.
    pub values: Arc<Values>,
    /// Timeline lanes.
    pub lanes: Arc<Vec<Arc<Lane>>>,
    /// Output of the program.
    pub output: Arc<[Arc<str>]>,
    /// Work open now, or at the end, by process; processes without any are left out.
    pub open: Vec<Arc<Open>>,
    /// Exit of the program, once it has ended.
    pub ended: Option<Exit>,
    /// The report on programs that use ROCm without a collector.
    pub missed: Option<Arc<str>>,
    /// Letters of the timeline, by kernel.
    pub letters: Arc<Vec<KernelId>>,
    /// What is read back of the past.
    pub recall: Recall,
    /// How far the recording has been read.
    pub loading: Loading,
    /// What is wrong with the recording.
    pub faults: Arc<[Fault]>,
    /// What was counted in the whole recording for a filter.
    pub counting: Option<Arc<Counting>>,
    /// When something is worth a look.
    pub thresholds: Thresholds,
    /// The job, if this is a job and not a program.
    pub job: Option<Arc<JobValues>>,
}

impl Snapshot {
    /// Time that shares of the wall refer to: since the beginning, or since the moment from which numbers count.
    pub fn wall(&self) -> Nanos {
        let from = self.origin.max(self.values.counted_from);
        self.now.saturating_sub(from).max(1)
    }

    /// Timeline letter of a kernel.
    pub fn letter(&self, kernel: KernelId) -> Option<char> {
        let at = self.letters.iter().position(|&lettered| lettered == kernel)?;
        char::from_u32('a' as u32 + at as u32)
    }

    /// Driver readings of an agent's GPU; `None` if it was not read.
    pub fn device_of(&self, agent: &Agent) -> Option<&DeviceRow> {
        self.device_at(self.names.node_of(agent))
    }

    /// Driver readings of the GPU at a node.
    pub fn device_at(&self, node: NodeId) -> Option<&DeviceRow> {
        self.values.gauges.devices.iter().find(|row| row.now.node == node)
    }

    /// All GPUs, each once.
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

    /// Time since the session began, ns.
    pub fn elapsed(&self) -> u64 {
        self.now.saturating_sub(self.origin)
    }

    /// Whether nothing arrived recently and nothing is open.
    pub fn is_calm(&self) -> bool {
        self.values.rate == 0.0 && self.open.is_empty()
    }

    /// In a sentence, the launches that have a site whose call path is not known; none while their stacks may still be read.
    pub fn launches_without_path(&self) -> Option<String> {
        let is_kernel = |row: &&SiteRow| matches!(row.work, SiteWork::Kernel(_));
        let (mut all, mut without) = (0, 0);
        for row in self.values.sites.iter().filter(is_kernel) {
            let is_known = self.sites.path_of(row.process, row.site).is_some();
            all += row.sum.calls;
            without += if is_known { 0 } else { row.sum.calls };
        }
        let (_, overwritten) = self.sites.missing();
        if without == 0 || overwritten == 0 && self.is_running() {
            return None;
        }
        let launches = units::counted(without, "launch has", "launches have");
        let why = match overwritten {
            0 => "their stacks were not read".to_owned(),
            _ => format!(
                "{} overwritten before roctop read them",
                units::counted(overwritten, "stack was", "stacks were")
            ),
        };
        Some(format!("{launches} no call path, of {}: {why}", units::grouped(all)))
    }

    /// Whether the program is still running.
    pub fn is_running(&self) -> bool {
        self.mode == Mode::Live && self.ended.is_none()
    }

    /// Sum of the cells that `accept` takes; the row itself if it takes all.
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
