//! Facts by id. Snapshots share the table; it is copied only if a fact arrives while a snapshot holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use roctop_ring::record::Domain;

use roctop_trace::item::{
    Agent, AgentId, AgentKind, Kernel, KernelId, NodeId, Operation, OperationId, Process, ProcessId, Queue, QueueId,
    Stream, StreamId, TextId, Thread, ThreadId,
};
use roctop_trace::units;

/// Maximum id. Ids are dense; a higher one comes from a corrupt record.
const MAX_ID: u32 = 1 << 22;

/// Class of an API call, for drawing and counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Waits for the GPU.
    Sync,
    /// Launches a kernel.
    Launch,
    /// Copies, fills, or allocates.
    Memory,
    /// Anything else.
    #[default]
    Other,
}

impl Class {
    /// Class of the operation with this name.
    pub fn of(name: &str) -> Self {
        let any = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if any(&["Synchronize", "signal_wait", "hipStreamWaitValue"]) {
            Self::Sync
        } else if any(&["Launch", "launch"]) {
            Self::Launch
        } else if any(&["Memcpy", "Memset", "Malloc", "Free", "memory", "HostRegister", "memcpy"]) {
            Self::Memory
        } else {
            Self::Other
        }
    }

    /// Whether a call of this name blocks its thread until the GPU is done.
    pub fn blocks(name: &str) -> bool {
        let copy = name.starts_with("hipMemcpy") || name.starts_with("hipMemset");
        Self::of(name) == Self::Sync || (copy && !name.contains("Async"))
    }
}

/// What a kernel of the run-time itself does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Internal {
    /// It is one of the program.
    #[default]
    No,
    /// It fills memory.
    Fill,
    /// It copies.
    Copy,
    /// Neither.
    Other,
}

impl Internal {
    fn of(kernel: &Kernel) -> Self {
        if !kernel.internal {
            Self::No
        } else if kernel.mangled.contains("fill") {
            Self::Fill
        } else if kernel.mangled.contains("copy") {
            Self::Copy
        } else {
            Self::Other
        }
    }
}

/// A kernel with its short name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelName {
    /// The fact.
    pub kernel: Kernel,
    /// Name without return type, arguments and nested template arguments.
    pub short: Arc<str>,
    /// Number of leading characters shared with the most similar other name; what follows distinguishes it.
    pub common: u32,
}

/// An operation with its class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationName {
    /// The fact.
    pub operation: Operation,
    /// Class by its name.
    pub class: Class,
}

/// A GPU that several processes use: their agents, and an additional agent for the whole.
#[derive(Clone, Debug)]
struct SharedGpu {
    agent: Arc<Agent>,
    members: Vec<AgentId>,
}

/// First id of shared GPUs; no process's agent has such an id.
const FIRST_SHARED: u32 = 1 << 31;

/// All facts, by id.
#[derive(Clone, Debug, Default)]
pub struct Names {
    processes: Vec<Arc<Process>>,
    agents: Vec<Arc<Agent>>,
    shared: Vec<SharedGpu>,
    /// Numbers of the machine's GPUs, by node.
    gpus: BTreeMap<NodeId, u32>,
    kernels: Vec<Arc<KernelName>>,
    /// What a code object says is known of a kernel.
    has_code: bool,
    internal: Vec<Internal>,
    /// Whether an operation waits for the GPU, by operation; compact, because every call looks it up.
    blocking: Vec<bool>,
    /// Short names in order, with their kernels.
    sorted: BTreeSet<(Arc<str>, u32)>,
    queues: Vec<Queue>,
    streams: Vec<Arc<Stream>>,
    threads: Vec<Arc<Thread>>,
    operations: Vec<Arc<OperationName>>,
    texts: Vec<Arc<str>>,
}

/// Stores a fact. Ids in between get a default until their facts arrive.
fn put<T: Clone>(list: &mut Vec<T>, id: u32, filler: impl FnOnce() -> T, value: T) {
    if id > MAX_ID {
        return;
    }
    if list.len() <= id as usize {
        list.resize(id as usize + 1, filler());
    }
    list[id as usize] = value;
}

impl Names {
    /// Adds a process.
    pub fn put_process(&mut self, value: Process) {
        put(&mut self.processes, value.id.0, Default::default, Arc::new(value));
    }
    /// Adds an agent. A GPU gets its machine-wide number if known: a process numbers only those visible to it.
    pub fn put_agent(&mut self, mut value: Agent) {
        let number = self.gpu_number(self.node_of(&value));
        if let Some(number) = number.filter(|_| value.kind == AgentKind::Gpu) {
            value.number = number;
        }
        put(&mut self.agents, value.id.0, Default::default, Arc::new(value));
    }
    /// Sets the machine-wide number of the GPU at a node.
    pub fn put_gpu(&mut self, node: NodeId, number: u32) {
        self.gpus.insert(node, number);
        for at in 0..self.agents.len() {
            let agent = &self.agents[at];
            if agent.kind == AgentKind::Gpu && self.node_of(agent) == node {
                Arc::make_mut(&mut self.agents[at]).number = number;
            }
        }
        for at in 0..self.shared.len() {
            let first = self.shared[at].members.first();
            if let Some(number) = first.and_then(|&id| Some(self.agent(id)?.number)) {
                Arc::make_mut(&mut self.shared[at].agent).number = number;
            }
        }
    }
    /// Makes an agent for a GPU that two processes use; it stands for both.
    pub(super) fn share(&mut self, members: [AgentId; 2]) -> AgentId {
        let id = AgentId(FIRST_SHARED + self.shared.len() as u32);
        let agent = Agent {
            id,
            process: ProcessId(u32::MAX),
            ..self.agent(members[0]).cloned().unwrap_or_default()
        };
        self.shared.push(SharedGpu {
            agent: Arc::new(agent),
            members: members.to_vec(),
        });
        id
    }
    /// Adds a process's agent to a shared GPU.
    pub(super) fn share_with(&mut self, shared: AgentId, member: AgentId) {
        if let Some(gpu) = shared.0.checked_sub(FIRST_SHARED) {
            self.shared[gpu as usize].members.push(member);
        }
    }
    /// GPU of an agent: the shared one if several processes use it, else the agent itself.
    pub fn gpu_of(&self, id: AgentId) -> AgentId {
        let mut shared = self.shared.iter();
        let found = shared.find(|gpu| gpu.members.contains(&id));
        found.map_or(id, |gpu| gpu.agent.id)
    }
    /// Agents that share a GPU, sorted by rank and pid; empty for other agents.
    pub fn members(&self, id: AgentId) -> Vec<AgentId> {
        let gpu = id.0.checked_sub(FIRST_SHARED);
        let gpu = gpu.and_then(|at| self.shared.get(at as usize));
        let mut members = gpu.map_or_else(Vec::new, |gpu| gpu.members.clone());
        members.sort_by_cached_key(|&id| {
            let process = self.agent(id).and_then(|agent| self.process(agent.process));
            process.map(|process| (process.rank.unwrap_or(u32::MAX), process.pid))
        });
        members
    }
    /// Topology node of an agent, equal in all processes that share the GPU.
    pub fn node_of(&self, agent: &Agent) -> NodeId {
        NodeId {
            machine: self.process(agent.process).map_or(0, |process| process.machine),
            node: agent.node,
        }
    }
    /// Machine-wide number of the GPU at a node, if the driver was read.
    pub fn gpu_number(&self, node: NodeId) -> Option<u32> {
        self.gpus.get(&node).copied()
    }
    /// Adds a kernel; `alias` replaces its short name.
    pub fn put_kernel(&mut self, kernel: Kernel, alias: Option<&str>) {
        let id = kernel.id.0;
        if id > MAX_ID {
            return;
        }
        let short: Arc<str> = alias.map_or_else(|| units::short_name(&kernel.name).into(), Into::into);
        put(&mut self.internal, id, Internal::default, Internal::of(&kernel));
        self.has_code |= kernel.code.is_some();
        let name = KernelName {
            kernel,
            short: short.clone(),
            common: 0,
        };
        if let Some(old) = self.kernels.get(id as usize) {
            self.sorted.remove(&(old.short.clone(), id));
        }
        put(&mut self.kernels, id, Default::default, Arc::new(name));
        let key = (short, id);
        let before = self.sorted.range(..&key).next_back().map(|near| near.1);
        let after = self
            .sorted
            .range((Bound::Excluded(&key), Bound::Unbounded))
            .next()
            .map(|near| near.1);
        for near in [before, after].into_iter().flatten() {
            self.tell_apart(id, near);
        }
        self.sorted.insert(key);
    }

    /// Whether the code object of a kernel was read.
    pub const fn has_code(&self) -> bool {
        self.has_code
    }

    /// Stores the length of the common prefix of two adjacent names; equal names are ignored.
    fn tell_apart(&mut self, one: u32, other: u32) {
        let short = |id: u32| self.kernels.get(id as usize).map(|name| name.short.clone());
        let (Some(a), Some(b)) = (short(one), short(other)) else {
            return;
        };
        if a == b {
            return;
        }
        let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count() as u32;
        for id in [one, other] {
            let name = Arc::make_mut(&mut self.kernels[id as usize]);
            name.common = name.common.max(common);
        }
    }
    /// Adds a queue.
    pub fn put_queue(&mut self, value: Queue) {
        put(&mut self.queues, value.id.0, Default::default, value);
    }
    /// Adds a stream.
    pub fn put_stream(&mut self, value: Stream) {
        put(&mut self.streams, value.id.0, Default::default, Arc::new(value));
    }
    /// Adds a thread.
    pub fn put_thread(&mut self, value: Thread) {
        put(&mut self.threads, value.id.0, Default::default, Arc::new(value));
    }
    /// Adds an operation.
    pub fn put_operation(&mut self, operation: Operation) {
        let (class, blocks) = (Class::of(&operation.name), Class::blocks(&operation.name));
        let value = Arc::new(OperationName { operation, class });
        put(&mut self.blocking, value.operation.id.0, || false, blocks);
        put(&mut self.operations, value.operation.id.0, Default::default, value);
    }
    /// Adds a marker text.
    pub fn put_text(&mut self, id: TextId, text: Arc<str>) {
        put(&mut self.texts, id.0, || "".into(), text);
    }

    /// Drops the names of a process, its agents, queues, streams and threads. Numbers are never given again: each keeps an
    /// empty place.
    pub fn forget(&mut self, process: ProcessId) {
        fn clear<T: Default>(list: &mut [Arc<T>], is_of: impl Fn(&T) -> bool) {
            let empty = Arc::new(T::default());
            list.iter_mut()
                .filter(|one| is_of(one))
                .for_each(|one| *one = empty.clone());
        }
        clear(&mut self.agents, |agent| agent.process == process);
        clear(&mut self.streams, |stream| stream.process == process);
        clear(&mut self.threads, |thread| thread.process == process);
        if let Some(known) = self.processes.get_mut(process.0 as usize) {
            *known = Arc::default();
        }
    }

    /// All processes, in order of appearance.
    pub fn processes(&self) -> &[Arc<Process>] {
        &self.processes
    }
    /// All agents.
    pub fn agents(&self) -> &[Arc<Agent>] {
        &self.agents
    }
    /// A process, if known.
    pub fn process(&self, id: ProcessId) -> Option<&Process> {
        self.processes.get(id.0 as usize).map(|p| &**p)
    }
    /// An agent, if known.
    pub fn agent(&self, id: AgentId) -> Option<&Agent> {
        match id.0.checked_sub(FIRST_SHARED) {
            Some(shared) => self.shared.get(shared as usize).map(|gpu| &*gpu.agent),
            None => self.agents.get(id.0 as usize).map(|a| &**a),
        }
    }
    /// A kernel, if known.
    pub fn kernel(&self, id: KernelId) -> Option<&KernelName> {
        self.kernels.get(id.0 as usize).map(|k| &**k)
    }
    /// All kernels, launched or not.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelName> {
        self.kernels.iter().map(|k| &**k)
    }
    /// A queue, if known.
    pub fn queue(&self, id: QueueId) -> Option<&Queue> {
        self.queues.get(id.0 as usize)
    }
    /// A stream, if known.
    pub fn stream(&self, id: StreamId) -> Option<&Stream> {
        self.streams.get(id.0 as usize).map(|s| &**s)
    }
    /// A thread, if known.
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(id.0 as usize).map(|t| &**t)
    }
    /// An operation, if known.
    pub fn operation(&self, id: OperationId) -> Option<&OperationName> {
        self.operations.get(id.0 as usize).map(|o| &**o)
    }
    /// Whether an operation waits for the GPU.
    #[inline]
    pub fn blocks(&self, id: OperationId) -> bool {
        self.blocking.get(id.0 as usize).copied().unwrap_or(false)
    }
    /// Whether an operation is one of MPI's.
    pub fn is_mpi(&self, id: OperationId) -> bool {
        let known = self.operation(id);
        known.is_some_and(|known| known.operation.domain == Domain::MPI.0)
    }
    /// A marker's text.
    pub fn text(&self, id: TextId) -> &str {
        self.texts.get(id.0 as usize).map_or("?", |text| text)
    }

    /// Whether a kernel is one of the run-time's own.
    pub fn is_internal(&self, id: KernelId) -> bool {
        self.internal(id) != Internal::No
    }

    /// What a kernel does if it is one of the run-time itself.
    pub fn internal(&self, id: KernelId) -> Internal {
        self.internal.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// `GPU0`, `host`.
    pub fn agent_label(&self, id: AgentId) -> String {
        match self.agent(id) {
            Some(agent) if agent.kind == AgentKind::Cpu => "host".into(),
            Some(agent) if agent.kind == AgentKind::Gpu => format!("GPU{}", agent.number),
            Some(agent) => format!("agent{}", agent.number),
            None => "?".into(),
        }
    }

    /// Process of this GPU, if several processes have one with its number: `r3` by rank, else the pid.
    pub fn agent_user(&self, id: AgentId) -> Option<String> {
        let own = self.agent(id).filter(|agent| agent.kind == AgentKind::Gpu)?;
        let mut all = self.agents.iter();
        let is_shared =
            all.any(|other| (other.kind, other.number) == (own.kind, own.number) && other.process != own.process);
        let process = self.process(own.process).filter(|_| is_shared)?;
        Some(
            process
                .rank
                .map_or_else(|| process.pid.to_string(), |rank| format!("r{rank}")),
        )
    }

    /// `r3 4242`: rank and pid of an agent's process.
    pub fn agent_process(&self, id: AgentId) -> String {
        let process = self.agent(id).and_then(|agent| self.process(agent.process));
        process.map_or_else(String::new, |process| match process.rank {
            Some(rank) => format!("r{rank} {}", process.pid),
            None => process.pid.to_string(),
        })
    }

    /// Label of the GPU, with its process if needed.
    pub fn agent_label_of(&self, id: AgentId) -> String {
        let label = self.agent_label(id);
        self.agent_user(id)
            .map_or(label.clone(), |user| format!("{label} {user}"))
    }

    /// `S1`, or the program's name of the stream.
    pub fn stream_label(&self, id: StreamId) -> String {
        match self.stream(id) {
            Some(stream) if !stream.name.is_empty() => format!("S{} {}", stream.number, stream.name),
            Some(stream) => format!("S{}", stream.number),
            None => "S?".into(),
        }
    }

    /// `Q2`.
    pub fn queue_label(&self, id: QueueId) -> String {
        self.queue(id)
            .map_or_else(|| "Q?".into(), |queue| format!("Q{}", queue.number))
    }

    /// `4242 main`.
    pub fn thread_label(&self, id: ThreadId) -> String {
        match self.thread(id) {
            Some(thread) if !thread.name.is_empty() => format!("{} {}", thread.tid, thread.name),
            Some(thread) => thread.tid.to_string(),
            None => "?".into(),
        }
    }

    /// Whether any HIP operation is known: each HIP call names its operation.
    pub fn uses_hip(&self) -> bool {
        let mut domains = self.operations.iter().map(|name| name.operation.domain);
        domains.any(|domain| domain == Domain::HIP.0)
    }

    /// Name of the error that a call returned: `hipErrorOutOfMemory`; its number if it has no name.
    pub fn error_label(&self, operation: OperationId, code: i32) -> String {
        let is_hip = self
            .operation(operation)
            .is_some_and(|name| name.operation.domain == Domain::HIP.0);
        let name = units::hip_error(code).filter(|_| is_hip);
        name.map_or_else(|| format!("error {code}"), Into::into)
    }

    /// `host→GPU0`; `host→GPU0 r3` if several processes have a GPU with that number.
    pub fn route_label(&self, source: Option<AgentId>, destination: Option<AgentId>) -> String {
        let route = self.plain_route_label(source, destination);
        let mut agents = [destination, source].into_iter().flatten();
        match agents.find_map(|agent| self.agent_user(agent)) {
            Some(user) => format!("{route} {user}"),
            None => route,
        }
    }

    fn plain_route_label(&self, source: Option<AgentId>, destination: Option<AgentId>) -> String {
        match (source, destination) {
            (Some(s), Some(d)) if s == d => self.agent_label(s),
            (Some(s), Some(d)) => format!("{}→{}", self.agent_label(s), self.agent_label(d)),
            (None, Some(d)) => format!("→{}", self.agent_label(d)),
            (Some(s), None) => format!("{}→", self.agent_label(s)),
            (None, None) => "–".into(),
        }
    }
}
