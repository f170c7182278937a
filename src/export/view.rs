//! The rows of one process with everything that the formats call by a name. All formats read this, so that they hold the
//! same records.

use super::arguments::{self, Argument};
use super::choice::{AgentIndex, Choice, KernelNames, Kind, Layout, library};
use super::collect::{Collected, Event};
use super::counted::{self, Counted};
use super::facts::{Facts, ProcessFacts};
use super::gauges::Gauges;
use super::hosts::Hosts;
use super::measured::{Point, Walk};
use super::nesting;
use super::numbers::Numbers;
use super::rows::{Mark, Region, Row, Rows, Tests};
use super::run::Run;
use super::sampled::Samples;
use super::sort::{Entry, Sorted, Sorter};
use super::subject::{AllocationSubject, CallSubject, CopySubject, DispatchSubject, MarkerSubject, ScratchSubject};
use super::texts::Texts;
use crate::item::{
    AgentId, ApiCall, Copy, Dispatch, Kernel, KernelId, OperationId, Process, QueueId, Span, StreamId, TextId, ThreadId,
};
use crate::kernel_name;
use crate::topology::Node;
use anyhow::Result;
use roctop_ring::record::{Domain, direction, marker_call, memory};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Where records come from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The whole run.
    pub collected: &'a Collected,
    /// The driver's topology of each host.
    pub nodes: &'a Hosts,
    /// Facts that only files tell.
    pub facts: &'a Facts,
    /// Directory for what does not fit in memory.
    pub place: &'a Path,
}

/// One process of a run, as chosen.
pub struct View<'a> {
    /// What names things in the whole run.
    pub run: &'a Run,
    /// The driver's topology.
    pub nodes: &'a [Node],
    /// What was chosen.
    pub choice: &'a Choice,
    /// Facts of the process.
    pub facts: &'a ProcessFacts,
    /// The process.
    pub process: &'a Process,
    /// Directory for what does not fit in memory.
    pub(crate) place: &'a Path,
    /// When the first record of the recording began.
    first: u64,
    /// The stretch of time that is wanted.
    range: Option<(u64, u64)>,
    /// Names of kernels by their ids.
    names: Vec<Cow<'a, str>>,
    /// Its rows.
    pub rows: Rows,
    /// Values of counters.
    pub(super) counted: Counted<'a>,
    /// Samples of program counters.
    pub(super) samples: Samples,
    /// What the driver told, and counters of whole GPUs.
    pub(super) gauges: Gauges<'a>,
    texts: &'a Texts,
    /// Numbers of streams by the correlation ids of the calls that put work into them.
    streams: Numbers,
}

/// A stream by the correlation id of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Caused {
    id: u64,
    stream: u32,
}

impl Entry for Caused {
    type Key = (u64, u32);

    fn key(&self) -> Self::Key {
        (self.id, self.stream)
    }
}

/// Bytes of these that are held while they are sorted.
const HELD: usize = 16 << 20;

impl<'a> View<'a> {
    /// The view of a process; `events` are its records, `whole` the gauges of whole GPUs when they go with it.
    fn new(
        source: &Source<'a>,
        choice: &'a Choice,
        process: &'a Process,
        events: &mut dyn Iterator<Item = io::Result<Event>>,
        walk: &mut Walk<'_>,
        whole: Option<&Sorted<Point>>,
    ) -> io::Result<Self> {
        let Source {
            collected,
            nodes,
            facts,
            place,
        } = *source;
        let mut view = Self {
            run: &collected.run,
            nodes: nodes.of(&process.host),
            choice,
            facts: facts.of(process.id),
            process,
            place,
            first: collected.first,
            range: choice.range.map(|(from, to)| {
                let beginning = collected.beginning;
                (beginning.saturating_add(from), beginning.saturating_add(to))
            }),
            names: Vec::new(),
            rows: Rows::default(),
            counted: Counted::default(),
            samples: Samples::default(),
            gauges: Gauges::default(),
            texts: &collected.texts,
            streams: Numbers::default(),
        };
        view.names = view.run.kernels.iter().map(|kernel| view.symbol_name(kernel)).collect();
        let within = |span: Span| view.is_wanted(span);
        let filter = &choice.filter;
        let tests = Tests {
            call: &|row| within(row.record.span) && filter.accepts(&CallSubject(&view, row)),
            marker: &|row| within(row.record.span) && filter.accepts(&MarkerSubject(&view, row)),
            dispatch: &|row| within(row.record.span) && filter.accepts(&DispatchSubject(&view, row)),
            copy: &|row| within(row.record.span) && filter.accepts(&CopySubject(&view, row)),
            allocation: &|row| within(row.record.span) && filter.accepts(&AllocationSubject(&view, row)),
            scratch: &|row| within(row.record.span) && filter.accepts(&ScratchSubject(&view, row)),
        };
        let wanted = nesting::Wanted {
            process: process.id,
            kinds: choice.kinds,
            orphans: choice.layout == Layout::New,
            rename: choice.rename,
        };
        let rows = nesting::rows(collected, events, wanted, &tests, place)?;
        view.rows = rows;
        if !view.is_empty() {
            view.measure(walk, whole)?;
            view.streams = view.streams_of_work()?;
        }
        Ok(view)
    }

    /// Joins what was measured with the rows.
    fn measure(&mut self, walk: &mut Walk<'_>, whole: Option<&Sorted<Point>>) -> io::Result<()> {
        let own = self.process.id;
        if walk.values.has(own) || walk.samples.has(own) {
            let dispatches = counted::numbered(&self.rows.dispatches, self.place)?;
            self.counted = Counted::new(self, walk, &dispatches)?;
            self.samples = Samples::new(self, walk, &dispatches)?;
        }
        self.gauges = Gauges::new(self, walk, whole)?;
        Ok(())
    }

    /// Whether everything that was asked for could be read.
    ///
    /// Errors: it could not.
    pub(super) fn check(&self) -> io::Result<()> {
        self.texts.check()?;
        self.streams.check()
    }

    /// Whether what was then is wanted.
    pub fn is_wanted(&self, span: Span) -> bool {
        let periods = &self.choice.periods;
        let in_range = self.range.is_none_or(|(from, to)| span.end >= from && span.begin <= to);
        in_range && (periods.is_empty() || periods.has(span.begin.saturating_sub(self.since())))
    }

    /// Whether what was at a moment is wanted.
    pub fn is_wanted_at(&self, at: u64) -> bool {
        self.is_wanted(Span { begin: at, end: at })
    }

    /// When the process's periods begin to count: at its first calibration.
    pub fn since(&self) -> u64 {
        self.facts.since.unwrap_or(self.first)
    }

    /// True when there is nothing to write.
    pub const fn is_empty(&self) -> bool {
        self.rows.times.is_none()
    }

    /// True for the seed's layout.
    pub fn is_seed(&self) -> bool {
        self.choice.layout == Layout::Seed
    }

    /// The driver's node of an agent; the first when it is not known.
    pub fn node(&self, agent: Option<AgentId>) -> u32 {
        let known = agent.and_then(|id| self.run.agents.get(id.0 as usize));
        known.map_or(0, |agent| agent.node)
    }

    /// Place of a node among those that are there.
    pub fn logical(&self, node: u32) -> usize {
        let place = self.nodes.iter().position(|known| known.id == node);
        place.unwrap_or(node as usize)
    }

    /// Place of a node among those of its kind, and whether it is a GPU.
    pub fn type_index(&self, node: u32) -> (usize, bool) {
        let gpu = self
            .nodes
            .iter()
            .find(|known| known.id == node)
            .map_or(node > 0, Node::is_gpu);
        let before = self.nodes.iter().take_while(|known| known.id != node);
        (before.filter(|known| known.is_gpu() == gpu).count(), gpu)
    }

    /// The word for an agent, as `Agent 1`.
    pub fn agent(&self, agent: Option<AgentId>) -> String {
        self.node_label(self.node(agent))
    }

    /// The word for a node, as `Agent 1`.
    pub fn node_label(&self, node: u32) -> String {
        let (label, index) = self.indexed(node);
        format!("{label} {index}")
    }

    /// A node's word and number as they were chosen.
    fn indexed(&self, node: u32) -> (&'static str, usize) {
        match self.choice.agents {
            AgentIndex::Relative => ("Agent", self.logical(node)),
            AgentIndex::Absolute => ("Agent", node as usize),
            AgentIndex::TypeRelative => {
                let (index, gpu) = self.type_index(node);
                (if gpu { "GPU" } else { "CPU" }, index)
            }
        }
    }

    /// The word for the agent at a place, in the name of a track: `Agent [1]`.
    pub fn track_label(&self, place: usize) -> String {
        let node = self.nodes.get(place).map_or(place as u32, |node| node.id);
        let (label, index) = self.indexed(node);
        format!("{label} [{index}]")
    }

    /// Product name of a GPU, by its node.
    pub fn product(&self, node: u32) -> String {
        let mut agents = self.run.agents.iter().filter(|agent| agent.process == self.process.id);
        let found = agents.find(|agent| agent.node == node);
        found.map(|agent| agent.product.to_string()).unwrap_or_default()
    }

    /// A thread's kernel id; the process's when it is not known.
    pub fn tid(&self, thread: Option<ThreadId>) -> u32 {
        let known = thread.and_then(|id| self.run.threads.get(id.0 as usize));
        known.map_or(self.process.pid, |thread| thread.tid)
    }

    /// A stream's number, 0 for the default one and for an unknown one.
    pub fn stream(&self, stream: Option<StreamId>) -> u32 {
        let known = stream.and_then(|id| self.run.streams.get(id.0 as usize));
        known.map_or(0, |stream| stream.number)
    }

    /// The stream that a call of HIP works on: that of the work it caused, or the one that its arguments name; 0 for none.
    pub(super) fn stream_of_call(&self, row: &Row<ApiCall>, arguments: &[Argument]) -> u32 {
        let caused = Some(self.streams.get(row.id)).filter(|number| *number != 0);
        let named = || self.facts.stream(arguments::stream(arguments)?);
        caused.or_else(named).unwrap_or(0)
    }

    /// Numbers of streams by the ids of calls; correlation ids are dense.
    fn streams_of_work(&self) -> io::Result<Numbers> {
        let mut caused = Sorter::new(self.place, HELD);
        // The call of HSA that work belongs to lies in one of HIP.
        let mut put = |ids: [u64; 2], stream: Option<StreamId>| {
            let stream = self.stream(stream);
            let ids = ids.into_iter().filter(|id| *id != 0 && stream != 0);
            ids.map(|id| Caused { id, stream }).try_for_each(|one| caused.put(one))
        };
        for row in self.rows.dispatches.iter() {
            let row = row?;
            put([row.id, row.ancestor], row.record.stream)?;
        }
        for row in self.rows.copies.iter() {
            let row = row?;
            put([row.id, row.ancestor], row.record.stream)?;
        }
        let caused = caused.finish()?;
        Numbers::new(self.place, caused.iter().map(|one| one.map(|one| (one.id, one.stream))))
    }

    /// When the first of the process's rows began and the last one ended.
    pub fn times(&self) -> (u64, u64) {
        self.rows.times.unwrap_or_default()
    }

    /// A queue's handle, or its number when there is none.
    pub fn queue_handle(&self, queue: QueueId) -> u64 {
        let number = self.queue(queue);
        let known = self.facts.queues.get(&number).copied();
        known.filter(|handle| *handle != 0).unwrap_or(number.into())
    }

    /// A queue's number, from 1.
    pub fn queue(&self, queue: QueueId) -> u32 {
        let known = self.run.queues.get(queue.0 as usize);
        known.map_or(0, |queue| queue.number)
    }

    /// The kernel of a dispatch by the chosen kind of name.
    pub fn kernel_name(&self, row: &Row<Dispatch>) -> Cow<'_, str> {
        let region = row.region.filter(|_| self.choice.rename);
        let text = region.and_then(|region| self.texts.get(region.text));
        text.map_or_else(
            || self.called(row.record.kernel).unwrap_or("").into(),
            |text| text.to_string().into(),
        )
    }

    /// The text of a range that kernels are called by; empty for none.
    pub(super) fn region_name(&self, region: Option<Region>) -> String {
        let region = region.filter(|_| self.choice.rename);
        let text = region.and_then(|region| self.texts.get(region.text));
        text.map_or_else(String::new, |text| text.to_string())
    }

    /// A text of arguments.
    pub(super) fn text(&self, id: TextId) -> Option<Arc<str>> {
        self.texts.get(id)
    }

    /// A kernel by the chosen kind of name.
    pub fn symbol_name(&self, kernel: &'a Kernel) -> Cow<'a, str> {
        let alias = || self.choice.aliases.of(&kernel.name, &kernel.mangled);
        match self.choice.kernel_names {
            KernelNames::Mangled => Cow::Owned(with_kd(&kernel.mangled)),
            form => match (alias(), form) {
                (Some(alias), _) => Cow::Borrowed(alias),
                (None, KernelNames::Truncated) => Cow::Owned(kernel_name::truncate(&kernel.name)),
                (None, _) => Cow::Borrowed(&kernel.name),
            },
        }
    }

    /// The name of a kernel in the files.
    pub fn called(&self, kernel: KernelId) -> Option<&str> {
        self.names.get(kernel.0 as usize).map(|name| &**name)
    }

    /// What was called.
    pub fn function(&self, call: &ApiCall) -> &'a str {
        self.operation(call.operation)
    }

    /// Kind of a call.
    pub fn kind(&self, call: &ApiCall) -> Kind {
        self.kind_of(call.operation)
    }

    /// Kind of an operation.
    pub fn kind_of(&self, operation: OperationId) -> Kind {
        let known = self.run.operations.get(operation.0 as usize);
        let kind = known.and_then(|operation| Kind::of(Domain(operation.domain)));
        kind.unwrap_or(Kind::HipRuntime)
    }

    /// Domain of a call as the files call it.
    pub fn domain(&self, call: &ApiCall) -> &'static str {
        match (self.kind(call), self.is_seed()) {
            (Kind::HipRuntime, true) => "HIP_RUNTIME_API",
            (Kind::HipRuntime, false) => "HIP_RUNTIME_API_EXT",
            (Kind::HipCompiler, true) => "HIP_COMPILER_API",
            (Kind::HipCompiler, false) => "HIP_COMPILER_API_EXT",
            (Kind::HsaAmd, _) => "HSA_AMD_EXT_API",
            (Kind::HsaImage, _) => "HSA_IMAGE_EXT_API",
            (Kind::HsaFinalizer, _) => "HSA_FINALIZE_EXT_API",
            (kind, _) => library(kind).map_or("HSA_CORE_API", |(_, library)| library.domain),
        }
    }

    /// Domain of a marker as the files call it.
    pub fn marker_domain(&self, mark: &Mark) -> &'static str {
        match (self.is_control(mark), self.choice.layout) {
            (true, _) => "MARKER_CONTROL_API",
            (false, _) if self.is_name(mark) => "MARKER_NAME_API",
            (false, Layout::Seed) => "MARKER_CORE_API",
            (false, Layout::New) => "MARKER_CORE_RANGE_API",
        }
    }

    /// Whether it asks for recording to pause or go on.
    pub fn is_control(&self, mark: &Mark) -> bool {
        self.is_call_of(mark, &[marker_call::PAUSE, marker_call::RESUME])
    }

    /// Whether it gives a name to something.
    pub fn is_name(&self, mark: &Mark) -> bool {
        self.is_call_of(mark, &marker_call::NAMES)
    }

    fn is_call_of(&self, mark: &Mark, operations: &[u16]) -> bool {
        let name = mark.call.map(|call| self.operation(call));
        name.is_some_and(|name| operations.iter().any(|op| marker_call::name(*op) == Some(name)))
    }

    /// A marker's text; a call's name.
    pub fn message(&self, mark: &Mark) -> Cow<'a, str> {
        match mark.call {
            Some(call) => self.operation(call).into(),
            None => self
                .texts
                .get(mark.text)
                .map_or("".into(), |text| text.to_string().into()),
        }
    }

    fn operation(&self, id: OperationId) -> &'a str {
        let known = self.run.operations.get(id.0 as usize);
        known.map_or("", |operation| &operation.name)
    }

    /// Direction of a copy as the files call it.
    pub fn direction(&self, copy: &Copy) -> &'static str {
        let whole = DIRECTIONS[direction_number(copy)];
        if self.is_seed() {
            whole.strip_prefix("MEMORY_COPY_").unwrap_or(whole)
        } else {
            whole
        }
    }
}

/// Directions of copies, by rocprofiler-sdk's operation number.
pub const DIRECTIONS: [&str; 5] = [
    "MEMORY_COPY_NONE",
    "MEMORY_COPY_HOST_TO_HOST",
    "MEMORY_COPY_HOST_TO_DEVICE",
    "MEMORY_COPY_DEVICE_TO_HOST",
    "MEMORY_COPY_DEVICE_TO_DEVICE",
];

/// Operations of memory, by rocprofiler-sdk's number.
pub const ALLOCATIONS: [&str; 5] = [
    "MEMORY_ALLOCATION_NONE",
    "MEMORY_ALLOCATION_ALLOCATE",
    "MEMORY_ALLOCATION_VMEM_ALLOCATE",
    "MEMORY_ALLOCATION_FREE",
    "MEMORY_ALLOCATION_VMEM_FREE",
];

/// Operations of scratch memory, by rocprofiler-sdk's number.
pub const SCRATCHES: [&str; 4] = [
    "SCRATCH_MEMORY_NONE",
    "SCRATCH_MEMORY_ALLOC",
    "SCRATCH_MEMORY_FREE",
    "SCRATCH_MEMORY_ASYNC_RECLAIM",
];

/// Whether an operation gives memory back: rocprofv3 tells neither its agent nor its size.
pub const fn is_free(operation: u16) -> bool {
    matches!(operation, memory::FREE | memory::VMEM_FREE)
}

/// A name by its number; the first for an unknown one.
pub fn operation_name<'a>(names: &[&'a str], number: u16) -> &'a str {
    names.get(usize::from(number)).unwrap_or(&names[0])
}

/// Place of a copy's direction in [`DIRECTIONS`].
pub const fn direction_number(copy: &Copy) -> usize {
    match copy.direction {
        direction::H2H => 1,
        direction::H2D => 2,
        direction::D2H => 3,
        direction::D2D | direction::FILL => 4,
        _ => 0,
    }
}

/// A kernel's name as its symbol is called.
pub fn with_kd(mangled: &str) -> String {
    format!("{mangled}.kd")
}

/// Shows `act` the views of all processes that have anything to write, one after the other.
pub fn each(source: &Source<'_>, choice: &Choice, act: &mut dyn FnMut(&View<'_>) -> Result<()>) -> Result<()> {
    let mut events = source.collected.events.iter().peekable();
    let mut walk = Walk::new(&source.collected.measured);
    // What is of no process goes with the first.
    let mut whole = Some(&source.collected.measured.whole);
    loop {
        let process = match events.peek() {
            None => return Ok(()),
            Some(Ok(event)) => event.process(),
            Some(Err(_)) => return events.next().transpose().map(|_| ()).map_err(Into::into),
        };
        let is_own = |event: &io::Result<Event>| event.as_ref().map_or(true, |event| event.process() == process);
        let mut own = std::iter::from_fn(|| events.next_if(is_own));
        let known = source.collected.run.processes.get(process.0 as usize);
        // An id that was never named is a hole in the table.
        let Some(known) = known.filter(|known| known.id == process && known.pid != 0) else {
            own.try_for_each(|event| event.map(|_| ()))?;
            continue;
        };
        let view = View::new(source, choice, known, &mut own, &mut walk, whole)?;
        if !view.is_empty() {
            act(&view)?;
            whole = None;
        }
    }
}
