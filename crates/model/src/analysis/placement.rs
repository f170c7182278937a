//! How processes are placed on their nodes: three verdicts, each with what it costs where that is measured.
//!
//! Ranks share a GPU; a thread that launches runs at another NUMA node than its GPU; ranks are crowded on cores while others are
//! free. Whatever these need and is not known gives no verdict. All other facts are shown, and not judged.

mod answer;
mod cost;

pub use self::answer::answer;
pub use self::cost::Copies;
use self::cost::{FROM_GPU, Measured, TO_GPU, cost};
use crate::bindings::Seen;
use crate::snapshot::Snapshot;
use roctop_trace::binding::{CpuSet, Device, MemoryMap, Node};
use roctop_trace::item::{AgentKind, ProcessId, ThreadId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Readings from which on it counts where a thread ran, if it may also run elsewhere.
const MIN_READINGS: u32 = 3;
/// Ranks of a node that are matched with its cores at most.
const MAX_RANKS: usize = 512;
/// Ranks and GPUs that a sentence names at most.
const MAX_NAMED: usize = 8;

/// A process and where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Rank, if any.
    pub rank: Option<u32>,
    /// Process id.
    pub pid: u32,
    /// Name of the node.
    pub host: String,
    /// Its machine: containers of one machine may have different names.
    pub machine: u32,
    /// Its threads that launch work; if none is known, those that call HIP or HSA.
    pub threads: Vec<Seen>,
    /// CPUs of the process's main thread.
    pub allowed: CpuSet,
    /// NUMA nodes that it may take memory from.
    pub memory: CpuSet,
    /// CPUs that its control group may use; none if that is not known.
    pub available: CpuSet,
    /// Number of CPUs of the node that the scheduler gave to the job, if it says so.
    pub allotted: Option<u64>,
    /// Cores that its control group lets it use, if limited.
    pub quota: Option<f64>,
    /// Whether it is in a container.
    pub is_contained: bool,
    /// Variables that limit the visible GPUs.
    pub visible: Vec<(String, String)>,
    /// Who started it as one of several.
    pub launcher: Option<String>,
    /// Whether it has ended.
    pub has_ended: bool,
    /// GPUs that its run-time shows to it.
    pub seen: Vec<SeenGpu>,
    /// GPUs that it ran kernels on: their nodes in the driver's topology.
    pub gpus: Vec<u32>,
    /// Median time from a launch to its kernel, ns: of the latest launches.
    pub delay: Option<u64>,
    /// Its latest large copies, to the GPU and from it.
    #[serde(default)]
    pub copies: [Option<Copies>; 2],
    /// Addresses of its buffers in host memory, in order: for a question that asks for them.
    #[serde(default)]
    pub buffers: Vec<u64>,
    /// Where its memory is, if that was asked.
    #[serde(default)]
    pub memory_map: Option<MemoryMap>,
    /// What the node has.
    pub node: Node,
}

/// A GPU that a run-time shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenGpu {
    /// Its node in the driver's topology.
    pub node: u32,
    /// Instruction set.
    pub name: String,
    /// Compute units.
    pub units: u32,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Ranks share a GPU while others have none.
    SharedGpu,
    /// A thread that launches runs at another NUMA node than its GPU.
    FarFromGpu,
    /// More ranks than cores, while other cores are free.
    CrowdedCores,
}

impl Kind {
    /// All.
    pub const ALL: [Self; 3] = [Self::SharedGpu, Self::FarFromGpu, Self::CrowdedCores];

    /// Its word in a column.
    pub const fn short(self) -> &'static str {
        match self {
            Self::SharedGpu => "shared",
            Self::FarFromGpu => "far",
            Self::CrowdedCores => "crowded",
        }
    }

    /// Its words, of several ranks.
    pub const fn of_many(self) -> &'static str {
        match self {
            Self::SharedGpu => "share a GPU",
            Self::FarFromGpu => "far from GPU",
            Self::CrowdedCores => "crowded",
        }
    }

    /// Its words, of a process.
    pub const fn word(self) -> &'static str {
        match self {
            Self::SharedGpu => "shares its GPU",
            Self::FarFromGpu => "far from its GPU",
            Self::CrowdedCores => "crowded on its cores",
        }
    }
}

/// A verdict about processes of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What is wrong.
    pub kind: Kind,
    /// Indexes of the places that it is about.
    pub of: Vec<usize>,
    /// What is wrong, with what it costs where that is measured.
    pub text: String,
    /// What mends it, if that can be said.
    pub remedy: Option<String>,
}

impl Place {
    /// A rank of a node whose only thread may use these CPUs, and that ran kernels on these GPUs, by number: for scenarios and tests.
    pub fn of_rank(rank: u32, cpus: &CpuSet, gpus: &[u32], node: &Node) -> Self {
        let known = node.gpus.iter();
        let own = known.clone().filter(|gpu| gpus.contains(&gpu.number));
        Self {
            rank: Some(rank),
            pid: 100 + rank,
            host: "n1".into(),
            machine: 1,
            threads: vec![Seen {
                allowed: cpus.clone(),
                used: cpus.clone(),
                readings: 1,
            }],
            allowed: cpus.clone(),
            memory: CpuSet::of(node.numa.iter().map(|numa| numa.id)),
            available: node.online.clone(),
            launcher: Some("Slurm".into()),
            seen: known
                .map(|gpu| SeenGpu {
                    node: gpu.node,
                    name: "gfx90a".into(),
                    units: 110,
                })
                .collect(),
            gpus: own.map(|gpu| gpu.node).collect(),
            node: node.clone(),
            ..Self::default()
        }
    }

    fn cpus(&self) -> CpuSet {
        let all = self
            .threads
            .iter()
            .fold(CpuSet::default(), |all, seen| all.or(&seen.allowed));
        if all.is_empty() { self.allowed.clone() } else { all }
    }

    /// CPUs that its threads were seen on.
    fn used(&self) -> CpuSet {
        let used = self.threads.iter().map(|seen| &seen.used);
        used.fold(CpuSet::default(), |all, used| all.or(used))
    }

    fn name(&self) -> String {
        match self.rank {
            Some(rank) => format!("rank {rank}"),
            None => format!("process {}", self.pid),
        }
    }

    fn devices(&self) -> impl Iterator<Item = &Device> {
        self.node.gpus.iter().filter(|gpu| self.gpus.contains(&gpu.node))
    }

    /// NUMA nodes at which its threads run: those of the CPUs that they may use, else of those that they were seen on.
    fn numas(&self) -> Option<Vec<u32>> {
        let mut all = BTreeSet::new();
        for seen in &self.threads {
            let may = self.node.numas_of(&seen.allowed);
            let are = match may.as_slice() {
                [] => return None,
                [_] => may,
                _ if seen.readings >= MIN_READINGS => self.node.numas_of(&seen.used),
                _ => return None,
            };
            all.extend(are);
        }
        (!all.is_empty()).then(|| all.into_iter().collect())
    }
}

/// The processes of a snapshot, by rank. None whose node was not read.
pub fn places(snap: &Snapshot) -> Vec<Place> {
    let measured = Measured::of(snap);
    let tids = |process: ProcessId| -> BTreeSet<u32> {
        let known = measured
            .launching
            .iter()
            .filter_map(|thread| snap.names.thread(ThreadId(*thread)));
        known
            .filter(|thread| thread.process == process)
            .map(|thread| thread.tid)
            .collect()
    };
    let place = |row: &crate::snapshot::ProcessRow| {
        let process = &row.process;
        let bound = snap.values.bindings.of(process.id)?;
        let launch = tids(process.id);
        let is_one = |tid: &u32| launch.is_empty() || launch.contains(tid);
        let threads = bound
            .threads
            .iter()
            .filter(|(tid, _)| is_one(tid))
            .map(|(_, seen)| seen.clone());
        let agents = snap.values.agents.iter().filter(|agent| agent.dispatches > 0);
        let agents = agents.filter_map(|row| snap.names.agent(row.id));
        let shown = snap.names.agents().iter();
        let shown = shown.filter(|agent| agent.process == process.id && agent.kind == AgentKind::Gpu);
        Some(Place {
            rank: process.rank,
            pid: process.pid,
            host: process.host.to_string(),
            machine: process.machine,
            threads: threads.collect(),
            allowed: bound.last.allowed.clone(),
            memory: bound.last.memory.clone(),
            available: bound.last.available.clone(),
            allotted: bound.last.allotted,
            quota: bound.last.quota,
            is_contained: bound.last.is_contained,
            visible: bound.last.visible.clone(),
            launcher: bound.last.launcher.clone(),
            has_ended: row.exit.is_some(),
            seen: shown
                .map(|agent| SeenGpu {
                    node: agent.node,
                    name: agent.name.to_string(),
                    units: agent.compute_units,
                })
                .collect(),
            gpus: agents
                .filter(|agent| agent.process == process.id)
                .map(|agent| agent.node)
                .collect(),
            delay: measured.delay(process.id.0),
            copies: measured.copies(process.id.0),
            buffers: Vec::new(),
            memory_map: None,
            node: bound.node.as_deref().cloned()?,
        })
    };
    let mut places: Vec<Place> = snap.values.processes.iter().filter_map(place).collect();
    places.sort_by_key(|place| (place.rank, place.pid));
    places
}

/// What is wrong, by node; the order of the places does not matter.
pub fn verdicts(places: &[Place]) -> Vec<Verdict> {
    let mut nodes: BTreeMap<(&str, u32), Vec<usize>> = BTreeMap::new();
    for (at, place) in places.iter().enumerate() {
        nodes.entry((&place.host, place.machine)).or_default().push(at);
    }
    let mut verdicts = Vec::new();
    for of in nodes.into_values() {
        verdicts.extend(shared_gpus(places, &of));
        verdicts.extend(far_from_gpu(places, &of));
        verdicts.extend(crowded(places, &of));
    }
    verdicts
}

fn names(places: &[Place], of: &[usize]) -> String {
    let mut ranks: Vec<u32> = of.iter().filter_map(|at| places[*at].rank).collect();
    ranks.sort_unstable();
    if ranks.len() < of.len() {
        let names: Vec<String> = of
            .iter()
            .take(MAX_NAMED)
            .map(|at| places[*at].pid.to_string())
            .collect();
        let more = if of.len() > MAX_NAMED { ", …" } else { "" };
        let s = if of.len() == 1 { "" } else { "es" };
        return format!("process{s} {}{more}", names.join(", "));
    }
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, list(&ranks))
}

/// The ranks of a node, one place each: of several processes of a rank one that lives and ran kernels.
fn ranks(places: &[Place], of: &[usize]) -> Vec<usize> {
    let mut best: BTreeMap<u32, usize> = BTreeMap::new();
    let worth = |at: usize| (!places[at].has_ended, !places[at].gpus.is_empty(), places[at].pid);
    for &at in of {
        let Some(rank) = places[at].rank else { continue };
        let known = best.entry(rank).or_insert(at);
        if worth(at) > worth(*known) {
            *known = at;
        }
    }
    best.into_values().collect()
}

/// Variables by which HIP shows fewer GPUs than the run-time below it.
const HIP_VISIBLE: [&str; 3] = ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"];

/// Number of GPUs that HIP's variables show to each of these ranks, if they show the same to all.
fn shown_by_hip(places: &[Place], ranks: &[usize]) -> Option<usize> {
    let shown = |at: usize| -> Option<BTreeSet<String>> {
        let mut own = places[at].visible.iter();
        let (_, value) = own.find(|(name, _)| HIP_VISIBLE.contains(&name.as_str()))?;
        Some(value.split(',').map(|word| word.trim().to_owned()).collect())
    };
    let first = shown(*ranks.first()?)?;
    let is_same = ranks.iter().all(|at| shown(*at).as_ref() == Some(&first));
    is_same.then_some(first.len())
}

/// Of ranks: a GPU that several run kernels on, while one of the same kind that a rank sees has none. More ranks than GPUs are
/// asked for.
fn shared_gpus(places: &[Place], of: &[usize]) -> Vec<Verdict> {
    let ranks = ranks(places, of);
    let mut by_gpu: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for at in &ranks {
        for gpu in &places[*at].gpus {
            by_gpu.entry(*gpu).or_default().push(*at);
        }
    }
    let working = ranks.iter().filter(|at| !places[**at].gpus.is_empty()).count();
    let shown = shown_by_hip(places, &ranks).unwrap_or(usize::MAX);
    let seen = ranks.iter().flat_map(|at| &places[*at].seen);
    let seen: BTreeMap<u32, &SeenGpu> = seen.map(|gpu| (gpu.node, gpu)).collect();
    let shared = by_gpu.iter().filter(|(_, of)| of.len() > 1);
    let verdict = |(gpu, of): (&u32, &Vec<usize>)| {
        let own = seen.get(gpu)?;
        let is_alike = |other: &&&SeenGpu| (&other.name, other.units) == (&own.name, own.units);
        let count = seen.values().filter(is_alike).count().min(shown);
        let used = seen
            .values()
            .filter(is_alike)
            .filter(|other| by_gpu.contains_key(&other.node));
        let free = count.saturating_sub(used.count());
        if working > count || free == 0 {
            return None;
        }
        let device = places[of[0]].node.gpus.iter().find(|device| device.node == *gpu)?;
        let were = if free == 1 {
            "GPU has no kernels"
        } else {
            "GPUs have no kernels"
        };
        let is_alone = |at: &usize| {
            let gpus = &places[*at].gpus;
            !gpus.is_empty() && gpus.iter().all(|gpu| by_gpu[gpu].len() == 1)
        };
        let alone: Vec<usize> = ranks.iter().copied().filter(is_alone).collect();
        let cost = cost(places, of, &alone, "ranks with their own GPU");
        Some(Verdict {
            kind: Kind::SharedGpu,
            text: format!(
                "{} share GPU {}, and {free} {were}{cost}",
                names(places, of),
                device.number
            ),
            remedy: Some(one_gpu_each(&places[of[0]])),
            of: of.clone(),
        })
    };
    shared.filter_map(verdict).collect()
}

fn one_gpu_each(place: &Place) -> String {
    match place.launcher.as_deref() {
        Some("Slurm") => "srun --gpus-per-task=1 --gpu-bind=closest".into(),
        Some("Flux") => "flux run --gpus-per-task=1 -o gpu-affinity=per-task".into(),
        _ => "one value of ROCR_VISIBLE_DEVICES for each rank of a node, by its local rank".into(),
    }
}

/// Of processes: threads that launch run at no NUMA node of the GPUs that they launch on.
fn far_from_gpu(places: &[Place], of: &[usize]) -> Vec<Verdict> {
    let mut far: Vec<(usize, Vec<u32>, Vec<u32>)> = Vec::new();
    let mut near: Vec<usize> = Vec::new();
    let lives = of.iter().any(|at| !places[*at].has_ended);
    for &at in of.iter().filter(|at| !lives || !places[**at].has_ended) {
        let place = &places[at];
        let wanted: Option<BTreeSet<u32>> = place.devices().map(|gpu| gpu.numa).collect();
        let wanted: Vec<u32> = wanted.unwrap_or_default().into_iter().collect();
        let has_cpus = wanted.iter().all(|numa| place.node.cpus_of(*numa).is_some());
        let (Some(numas), false, true) = (place.numas(), wanted.is_empty(), has_cpus) else {
            continue;
        };
        if numas.iter().any(|numa| wanted.contains(numa)) {
            near.push(at);
        } else {
            far.push((at, numas, wanted));
        }
    }
    let mut verdicts: Vec<Verdict> = Vec::new();
    for (at, numas, wanted) in far {
        let place = &places[at];
        let gpus: Vec<String> = place
            .devices()
            .map(|gpu| gpu.number.to_string())
            .take(MAX_NAMED)
            .collect();
        let s = if gpus.len() == 1 { "" } else { "s" };
        let cost = cost(places, &[at], &near, "ranks near their GPU");
        verdicts.push(Verdict {
            kind: Kind::FarFromGpu,
            of: vec![at],
            text: format!(
                "{} launches at NUMA node {}, and its GPU{s} {} at node {}{cost}",
                place.name(),
                list(&numas),
                if gpus.len() == 1 {
                    format!("{} is", gpus[0])
                } else {
                    format!("{} are", gpus.join(", "))
                },
                list(&wanted),
            ),
            remedy: near_gpu(places, of, at),
        });
    }
    verdicts
}

fn list(numbers: &[u32]) -> String {
    CpuSet::of(numbers.iter().copied()).to_string()
}

/// The line that starts a process, or all ranks of its node, near its GPU.
fn near_gpu(places: &[Place], of: &[usize], at: usize) -> Option<String> {
    let place = &places[at];
    let cpus = |place: &Place| {
        let mut numas = place.devices().map(|gpu| gpu.numa);
        let numa = numas.next()??;
        numas.all(|other| other == Some(numa)).then_some(())?;
        let all = place.node.cpus_of(numa)?;
        let own = if place.available.is_empty() {
            all.clone()
        } else {
            all.and(&place.available)
        };
        (!own.is_empty()).then_some((numa, own))
    };
    let (numa, own) = cpus(place)?;
    let ranks = ranks(places, of);
    let masks: Option<Vec<CpuSet>> = ranks.iter().map(|at| Some(cpus(&places[*at])?.1)).collect();
    let masks = masks.filter(|masks| masks.len() > 1);
    Some(match (place.launcher.as_deref(), masks) {
        (Some("Slurm"), Some(masks)) => {
            let masks: Vec<String> = masks.iter().map(|mask| format!("0x{}", mask.mask())).collect();
            format!("srun --cpu-bind=mask_cpu:{}", masks.join(","))
        }
        (Some("Open MPI"), Some(masks)) => {
            let lists: Vec<String> = masks.iter().map(CpuSet::to_string).collect();
            format!(
                "a wrapper behind mpirun --bind-to none: taskset -c LIST, with these for the node's ranks: {}",
                lists.join(" ")
            )
        }
        (Some(_), Some(masks)) => {
            let lists: Vec<String> = masks.iter().map(CpuSet::to_string).collect();
            format!(
                "taskset -c LIST before the program, with these for the node's ranks: {}",
                lists.join(" ")
            )
        }
        _ if place.memory.contains(numa) => format!("numactl --cpunodebind={numa} --membind={numa}"),
        _ => format!("taskset -c {own}"),
    })
}

/// Of ranks: there are more than the cores that their threads may use, and cores that no rank may use.
fn crowded(places: &[Place], of: &[usize]) -> Option<Verdict> {
    let ranks = ranks(places, of);
    let node = &places[*ranks.first()?].node;
    if node.cores.is_empty() || ranks.len() > MAX_RANKS {
        return None;
    }
    // By core: the ranks that may use it.
    let cores: Vec<Vec<usize>> = ranks
        .iter()
        .map(|at| {
            let cpus = places[*at].cpus();
            let met = node.cores.iter().enumerate().filter(|(_, core)| core.meets(&cpus));
            met.map(|(number, _)| number).collect()
        })
        .collect();
    if cores.iter().any(Vec::is_empty) {
        return None;
    }
    let used: BTreeSet<usize> = cores.iter().flatten().copied().collect();
    let free = free_cores(places, &ranks, &used);
    let without = unmatched(&cores, node.cores.len());
    if without.is_empty() || free == 0 {
        return None;
    }
    // Those that share cores with a rank that has none.
    let mut group: BTreeSet<usize> = without.iter().copied().collect();
    let mut shared: BTreeSet<usize> = without.iter().flat_map(|rank| cores[*rank].iter().copied()).collect();
    loop {
        let more: Vec<usize> = (0..ranks.len())
            .filter(|rank| !group.contains(rank) && cores[*rank].iter().all(|core| shared.contains(core)))
            .collect();
        if more.is_empty() {
            break;
        }
        shared.extend(more.iter().flat_map(|rank| cores[*rank].iter().copied()));
        group.extend(more);
    }
    let group: Vec<usize> = group.into_iter().map(|rank| ranks[rank]).collect();
    let s = if shared.len() == 1 { "" } else { "s" };
    let others: Vec<usize> = ranks.iter().copied().filter(|at| !group.contains(at)).collect();
    let cost = cost(places, &group, &others, "the other ranks");
    Some(Verdict {
        kind: Kind::CrowdedCores,
        text: format!(
            "{} may use {} core{s} together, and {free} core{} free{cost}",
            names(places, &group),
            shared.len(),
            if free == 1 { " is" } else { "s are" }
        ),
        remedy: Some(own_cores(&places[group[0]], (used.len() + free) / ranks.len().max(1))),
        of: group,
    })
}

/// Number of cores that the ranks' job may use and no rank does. Cores of the node may be another job's: what the control groups may
/// not use is not free, and nothing is if the ranks have all that the scheduler gave.
fn free_cores(places: &[Place], ranks: &[usize], used: &BTreeSet<usize>) -> usize {
    let of = || ranks.iter().map(|at| &places[*at]);
    let node = &places[ranks[0]].node;
    if of().any(|place| place.available.is_empty()) {
        return 0;
    }
    let available = of().fold(CpuSet::default(), |all, place| all.or(&place.available));
    let cores = node.cores.iter().enumerate();
    let is_free = |(number, core): &(usize, &CpuSet)| !used.contains(number) && core.meets(&available);
    let free = cores.filter(is_free).count();
    let threads = node.cores.iter().map(CpuSet::count).max().unwrap_or(1).max(1);
    let given = of().filter_map(|place| place.allotted).max();
    let given = given.map_or(u64::MAX, |cpus| cpus / threads);
    free.min(usize::try_from(given.saturating_sub(used.len() as u64)).unwrap_or(usize::MAX))
}

fn own_cores(place: &Place, each: usize) -> String {
    let each = each.max(1);
    match place.launcher.as_deref() {
        Some("Slurm") => format!("srun --cpus-per-task={each} --cpu-bind=cores"),
        Some("Open MPI") => format!("mpirun --map-by slot:PE={each} --bind-to core"),
        Some("MPICH") => format!("mpiexec -bind-to core:{each}"),
        Some("Flux") => format!("flux run --cores-per-task={each} -o cpu-affinity=per-task"),
        _ => format!("{each} cores for each rank: taskset -c LIST"),
    }
}

/// Ranks that get no core, however cores are given out.
fn unmatched(cores: &[Vec<usize>], count: usize) -> Vec<usize> {
    fn give(rank: usize, cores: &[Vec<usize>], tried: &mut [bool], owner: &mut [Option<usize>]) -> bool {
        for &core in &cores[rank] {
            if std::mem::replace(&mut tried[core], true) {
                continue;
            }
            if owner[core].is_none_or(|other| give(other, cores, tried, owner)) {
                owner[core] = Some(rank);
                return true;
            }
        }
        false
    }
    let mut owner = vec![None; count];
    (0..cores.len())
        .filter(|rank| !give(*rank, cores, &mut vec![false; count], &mut owner))
        .collect()
}

/// Processes that [`lines`] names at most.
const MAX_LINES: usize = 64;

/// Where each process runs, in words that are the same for each run that is placed alike: without process ids and times.
pub fn lines(places: &[Place]) -> Vec<String> {
    let verdicts = verdicts(places);
    let line = |(at, place): (usize, &Place)| {
        let at_numas = |numas: &[u32]| match numas {
            [] => String::new(),
            numas => format!(" at NUMA node {}", list(numas)),
        };
        let cpus = place.cpus();
        let of_cpus = format!("CPUs {cpus}{}", at_numas(&place.node.numas_of(&cpus)));
        let gpus: Vec<u32> = place.devices().map(|gpu| gpu.number).collect();
        let numas: BTreeSet<u32> = place.devices().filter_map(|gpu| gpu.numa).collect();
        let numas: Vec<u32> = numas.into_iter().collect();
        let of_gpus = match &gpus[..] {
            [] => String::new(),
            gpus => format!(", GPU {}{}", list(gpus), at_numas(&numas)),
        };
        let about = verdicts.iter().filter(|verdict| verdict.of.contains(&at));
        let about: Vec<&str> = about.map(|verdict| verdict.kind.word()).collect();
        let about = match &about[..] {
            [] => String::new(),
            about => format!(" ({})", about.join(", ")),
        };
        let rank = place.rank.map_or_else(String::new, |rank| format!("rank {rank}: "));
        format!("{rank}{of_cpus}{of_gpus}{about}")
    };
    let known = places.iter().enumerate().filter(|(_, place)| !place.cpus().is_empty());
    let mut lines: Vec<String> = known.take(MAX_LINES).map(line).collect();
    lines.dedup();
    lines
}

/// Adds the addresses of buffers in host memory, as far as the collector knows them.
pub fn add_buffers(places: &mut [Place], snap: &Snapshot) {
    let is_host = |agent| {
        snap.names
            .agent(agent)
            .is_some_and(|agent| agent.kind == AgentKind::Cpu)
    };
    for held in snap
        .values
        .memory
        .held
        .iter()
        .filter(|held| held.agent.is_some_and(is_host))
    {
        let mut processes = snap.values.processes.iter().map(|row| &row.process);
        let pid = processes
            .find(|process| process.id == held.process)
            .map(|process| process.pid);
        if let Some(place) = places.iter_mut().find(|place| Some(place.pid) == pid) {
            place.buffers.push(held.address);
        }
    }
    for place in places {
        place.buffers.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_trace::binding::Numa;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse(list).expect("a list")
    }

    /// A node with cores of two hardware threads, NUMA nodes of equal size, and GPUs at these NUMA nodes.
    fn node(cores: u32, numa: u32, gpus: &[u32]) -> Node {
        let each = cores / numa;
        let cpus = |from: u32, until: u32| CpuSet::of((from..until).chain(from + cores..until + cores));
        Node {
            online: set(&format!("0-{}", 2 * cores - 1)),
            numa: (0..numa)
                .map(|id| Numa {
                    id,
                    cpus: cpus(id * each, (id + 1) * each),
                })
                .collect(),
            cores: (0..cores).map(|core| cpus(core, core + 1)).collect(),
            gpus: (0..)
                .zip(gpus)
                .map(|(number, numa)| Device {
                    node: numa * 10 + number + 4,
                    number,
                    numa: Some(*numa),
                    ..Device::default()
                })
                .collect(),
            ..Node::default()
        }
    }

    /// Four MI250X: which NUMA node each GPU is at (LUMI's and Frontier's documents).
    const MI250X: [u32; 8] = [3, 3, 1, 1, 0, 0, 2, 2];

    fn rank(rank: u32, cpus: &str, gpus: &[u32], node: &Node) -> Place {
        Place {
            delay: Some(9_000),
            ..Place::of_rank(rank, &set(cpus), gpus, node)
        }
    }

    fn said(places: &[Place]) -> Vec<(Kind, Vec<usize>)> {
        verdicts(places)
            .into_iter()
            .map(|verdict| (verdict.kind, verdict.of))
            .collect()
    }

    fn sentences(places: &[Place]) -> Vec<String> {
        let words = verdicts(places).into_iter();
        words
            .map(|verdict| format!("{} | {}", verdict.text, verdict.remedy.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn ranks_near_their_gpus_are_well() {
        let node = node(64, 4, &MI250X);
        // As the centre's documents say: the ranks are bound in the order of the GPUs.
        let cores = [49, 57, 17, 25, 1, 9, 33, 41];
        let places: Vec<Place> = (0..8)
            .map(|at| rank(at, &cores[at as usize].to_string(), &[at], &node))
            .collect();
        assert_eq!(said(&places), []);
    }

    #[test]
    fn a_rank_far_from_its_gpu_is_named_with_its_cost() {
        let node = node(64, 4, &MI250X);
        let mut places = vec![rank(0, "48-55", &[0], &node), rank(1, "0-7", &[1], &node)];
        places[1].delay = Some(31_000);
        assert_eq!(
            sentences(&places),
            [
                "rank 1 launches at NUMA node 0, and its GPU 1 is at node 3: launch delay p50 ≈ 31.0 µs against ≈ 9.00 µs of \
                 ranks near their GPU | srun --cpu-bind=mask_cpu:0xffff000000000000ffff000000000000,\
                 0xffff000000000000ffff000000000000"
            ]
        );
        // What is no slower has no cost.
        places[1].delay = Some(8_000);
        assert!(!sentences(&places)[0].contains("delay"));
        // Copies of about one size in one direction, of both.
        let copies = |bytes, rate| Some(Copies { bytes, rate });
        places[0].copies = [copies(4 << 20, 26_000_000_000), copies(64 << 20, 27_000_000_000)];
        places[1].copies = [copies(8 << 20, 12_000_000_000), copies(8 << 20, 11_000_000_000)];
        assert!(
            sentences(&places)[0]
                .contains("node 3: copies to the GPU p50 ≈ 12.0 GB/s against ≈ 26.0 GB/s of ranks near their GPU |")
        );
        places[1].delay = Some(31_000);
        places[0].copies[1] = copies(9 << 20, 27_000_000_000);
        assert!(sentences(&places)[0].contains(
            "node 3: launch delay p50 ≈ 31.0 µs against ≈ 9.00 µs, copies to the GPU p50 ≈ 12.0 GB/s against ≈ 26.0 GB/s, \
             copies from the GPU p50 ≈ 11.0 GB/s against ≈ 27.0 GB/s of ranks near their GPU |"
        ));
        (places[0].copies, places[1].delay) = ([None; 2], None);
        assert!(!sentences(&places)[0].contains('≈'));
        // Alone: numactl, or taskset where memory of that node is not allowed.
        places[1].rank = None;
        places.remove(0);
        assert!(sentences(&places)[0].ends_with("| numactl --cpunodebind=3 --membind=3"));
        places[0].memory = set("0");
        assert!(sentences(&places)[0].ends_with("| taskset -c 48-63,112-127"));
    }

    #[test]
    fn where_a_thread_may_run_everywhere_it_counts_where_it_runs() {
        let node = node(64, 4, &MI250X);
        let mut place = rank(0, "0-127", &[0], &node);
        place.threads[0].used = set("3,5");
        for (readings, is_far) in [(1, false), (2, false), (3, true)] {
            place.threads[0].readings = readings;
            assert_eq!(said(std::slice::from_ref(&place)).len(), usize::from(is_far));
        }
        place.threads[0].used = set("3,50");
        assert_eq!(said(&[place]), []);
    }

    #[test]
    fn what_is_not_known_gives_no_verdict() {
        let mut bare = node(64, 4, &MI250X);
        // The NUMA node of the GPU.
        bare.gpus[0].numa = None;
        assert_eq!(said(&[rank(0, "0", &[0], &bare)]), []);
        // A GPU at a NUMA node without CPUs.
        bare.gpus[0].numa = Some(3);
        bare.numa[3].cpus = CpuSet::default();
        assert_eq!(said(&[rank(0, "0", &[0], &bare)]), []);
        // NUMA nodes and cores.
        (bare.numa, bare.cores) = (Vec::new(), Vec::new());
        assert_eq!(said(&[rank(0, "0", &[0], &bare), rank(1, "0", &[1], &bare)]), []);
        // A process whose GPUs are at several nodes is near one of them.
        let node = node(64, 4, &MI250X);
        assert_eq!(said(&[rank(0, "0", &[0, 4], &node)]), []);
        // One that ran no kernel, and threads that were not read.
        let mut place = rank(0, "0", &[], &node);
        assert_eq!(said(&[place.clone()]), []);
        place = rank(0, "0", &[0], &node);
        place.threads.clear();
        assert_eq!(said(&[place]), []);
    }

    #[test]
    fn ranks_share_a_gpu_while_others_are_free() {
        let node = node(64, 4, &[3, 3, 1, 1]);
        let places = [
            rank(0, "48", &[0], &node),
            rank(1, "49", &[0], &node),
            rank(2, "16", &[2], &node),
        ];
        assert_eq!(
            sentences(&places),
            ["ranks 0-1 share GPU 0, and 2 GPUs have no kernels | srun --gpus-per-task=1 --gpu-bind=closest"]
        );
        // More ranks than GPUs: it is asked for.
        let many: Vec<Place> = (0..5).map(|at| rank(at, &(48 + at).to_string(), &[0], &node)).collect();
        assert_eq!(said(&many), []);
        // Nor where one variable shows this GPU alone to all.
        let mut hidden = places.clone();
        for place in &mut hidden {
            place.visible = vec![("HIP_VISIBLE_DEVICES".into(), "0,2".into())];
        }
        hidden[1].visible[0].1 = "2, 0".into();
        assert_eq!(said(&hidden), []);
        hidden[0].visible.clear();
        assert_eq!(said(&hidden).len(), 1);
        // Nor where no rank sees another, or only one of another kind, as an integrated one.
        let mut hidden = places.clone();
        for place in &mut hidden {
            place
                .seen
                .retain(|gpu| [node.gpus[0].node, node.gpus[2].node].contains(&gpu.node));
        }
        assert_eq!(said(&hidden), []);
        let mut kinds = places.clone();
        for place in &mut kinds {
            place.seen[1].name = "gfx1036".into();
            place.seen[3].units = 2;
        }
        assert_eq!(said(&kinds), []);
        // Two processes of one rank share nothing: a helper, or one after the other.
        let mut one = places.clone();
        one[1].rank = Some(0);
        assert_eq!(said(&one), []);
        // Processes that are no ranks may do as they like.
        let mut processes = places.clone();
        for place in &mut processes {
            place.rank = None;
        }
        assert_eq!(said(&processes), []);
        // Ranks of two nodes share nothing.
        let mut apart = places;
        apart[1].host = "n2".into();
        apart[1].machine = 2;
        assert_eq!(said(&apart), []);
    }

    #[test]
    fn ranks_are_crowded_while_cores_are_free() {
        let node = node(8, 1, &[0, 0, 0, 0]);
        let place = |at: u32, cpus: &str| rank(at, cpus, &[at], &node);
        // Three ranks on both hardware threads of two cores.
        let crowd = [place(0, "0-1,8-9"), place(1, "0-1"), place(2, "8-9"), place(3, "4")];
        assert_eq!(
            sentences(&crowd),
            ["ranks 0-2 may use 2 cores together, and 5 cores are free | srun --cpus-per-task=2 --cpu-bind=cores"]
        );
        let mut slow = crowd.clone();
        slow[..3].iter_mut().for_each(|place| place.delay = Some(40_000));
        assert!(sentences(&slow)[0].contains(": launch delay p50 ≈ 40.0 µs against ≈ 9.00 µs of the other ranks |"));
        // Other cores are not the job's: by the control group, or by what the scheduler gave.
        let mut others = crowd.clone();
        for place in &mut others {
            place.available = set("0-1,4,8-9,12");
        }
        assert_eq!(said(&others), []);
        others[0].available = set("0-7");
        assert!(sentences(&others)[0].contains("and 5 cores are free"));
        let mut others = crowd.clone();
        for place in &mut others {
            place.allotted = Some(7);
        }
        assert_eq!(said(&others), []);
        others[0].allotted = Some(12);
        assert!(sentences(&others)[0].contains("and 3 cores are free"));
        // Nor is a core free where it is not known what the job may use.
        let mut others = crowd.clone();
        others[2].available = CpuSet::default();
        assert_eq!(said(&others), []);
        // Each gets one, though one rank must leave its first choice.
        assert_eq!(said(&[place(0, "0-1"), place(1, "0"), place(2, "0-2")]), []);
        // All cores are allowed to somebody: there is nothing better.
        assert_eq!(said(&[place(0, "0"), place(1, "0"), place(2, "1-7")]), []);
    }

    #[test]
    fn sixty_four_ranks_are_judged() {
        let node = node(64, 4, &MI250X);
        let well: Vec<Place> = (0..64)
            .map(|at| rank(at, &at.to_string(), &[[4, 2, 6, 0][at as usize / 16]], &node))
            .collect();
        assert_eq!(said(&well), []);
        let mut crowd: Vec<Place> = (0..64).map(|at| rank(at, "0-31", &[], &node)).collect();
        crowd.reverse();
        let found = verdicts(&crowd);
        assert_eq!((found.len(), found[0].of.len()), (1, 64));
        assert!(
            found[0]
                .text
                .starts_with("ranks 0-63 may use 32 cores together, and 32 cores are free")
        );
    }

    #[test]
    fn memory_by_numa_node_is_shown_where_it_was_asked() {
        let node = node(64, 4, &MI250X);
        let mut places = vec![rank(0, "48-55", &[0], &node), rank(1, "49", &[1], &node)];
        places[0].memory_map = Some(MemoryMap::Read {
            all: vec![(0, 3 << 30), (3, 1 << 20)],
            buffers: vec![(0, 1 << 30)],
            policies: vec!["bind:0".into()],
            took: 1_200_000,
        });
        places[1].memory_map = Some(MemoryMap::TooLarge(17 << 30));
        let (columns, rows, notes) = answer(&places);
        let at = |name: &str| columns.iter().position(|column| column.name == name).expect("a column");
        assert_eq!(rows[0].cells[at("Memory_By_NUMA")].raw(), "0: 3.00 GiB, 3: 1.00 MiB");
        assert_eq!(rows[0].cells[at("Buffers_By_NUMA")].raw(), "0: 1.00 GiB");
        assert_eq!(
            (rows[1].cells[at("Buffers_By_NUMA")].raw(), at("Verdict")),
            (String::new(), columns.len() - 1)
        );
        assert!(
            notes.contains(&"numa_maps of rank 0 was read in 1.20 ms".into()),
            "{notes:?}"
        );
        assert!(
            notes[2].starts_with("numa_maps of rank 1 was not read, which has 17.0 GiB"),
            "{notes:?}"
        );
    }

    #[test]
    fn lines_say_the_same_of_each_run() {
        let node = node(64, 4, &MI250X);
        let mut places = vec![rank(0, "48-55", &[0], &node), rank(1, "0-7", &[1], &node)];
        let first = lines(&places);
        assert_eq!(
            first,
            [
                "rank 0: CPUs 48-55 at NUMA node 3, GPU 0 at NUMA node 3",
                "rank 1: CPUs 0-7 at NUMA node 0, GPU 1 at NUMA node 3 (far from its GPU)"
            ]
        );
        // Another run: other process ids and times. Processes that are no ranks are alike.
        for place in &mut places {
            (place.pid, place.delay) = (place.pid + 1000, Some(40_000));
        }
        assert_eq!(lines(&places), first);
        places[1] = Place {
            pid: 7,
            ..places[0].clone()
        };
        for place in &mut places {
            place.rank = None;
        }
        assert_eq!(lines(&places), ["CPUs 48-55 at NUMA node 3, GPU 0 at NUMA node 3"]);
    }

    #[test]
    fn the_answer_has_a_row_for_each_place() {
        let mut node = node(64, 4, &MI250X);
        node.settings = vec![("numa_balancing".into(), "1".into())];
        let places = [rank(0, "48", &[0], &node), rank(1, "0", &[1], &node)];
        let (columns, rows, notes) = answer(&places);
        let at = |name: &str| columns.iter().position(|column| column.name == name).expect("a column");
        let cell = |row: usize, name: &str| rows[row].cells[at(name)].raw();
        assert_eq!(
            (cell(0, "Verdict"), cell(1, "Verdict")),
            (String::new(), "far from its GPU".into())
        );
        assert_eq!(
            (cell(1, "CPUs"), cell(1, "GPUs"), cell(1, "GPUs_NUMA")),
            ("0".into(), "1".into(), "3".into())
        );
        assert_eq!(notes.len(), 2);
        assert_eq!(
            notes[1],
            "n1: 128 CPUs, 64 cores, 4 NUMA nodes, 8 GPUs, numa_balancing=1"
        );
    }
}
