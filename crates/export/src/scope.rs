//! Names and selection for the files of one process. Rows, counters and samples are selected with it before a view of
//! them exists.

mod agent;
mod name;

pub use name::with_kd;

use super::collect::Collected;
use super::facts::{Facts, ProcessFacts};
use super::hosts::Hosts;
use super::options::{Choice, Layout};
use super::run::Run;
use super::texts::Texts;
use super::workspace::Workspace;
use roctop_model::Names;
use roctop_model::occupancy::Occupancy;
use roctop_model::table::Shape;
use roctop_trace::item::{Dispatch, Process, ProcessId, QueueId, Span, StreamId, ThreadId};
use roctop_trace::site::SiteNumber;
use roctop_trace::topology::Node;
use std::borrow::Cow;
use std::sync::Arc;

/// Input of an export.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The whole run.
    pub collected: &'a Collected,
    /// Driver topology of each host.
    pub nodes: &'a Hosts,
    /// Names, for the filter.
    pub names: &'a Names,
    /// Facts that only exports contain.
    pub facts: &'a Facts,
    /// Where it sorts, and on how many threads.
    pub place: &'a Workspace,
}

/// One process of a run and its selection.
pub struct Scope<'a> {
    /// Named entities of the whole run.
    pub run: &'a Run,
    /// Topology nodes of the process's host.
    pub nodes: &'a [Node],
    /// Options.
    pub choice: &'a Choice,
    /// Facts of the process.
    pub facts: &'a ProcessFacts,
    /// The process.
    pub process: &'a Process,
    /// Where it sorts, and on how many threads.
    pub(crate) place: &'a Workspace,
    /// Begin of the first record of the recording.
    first: u64,
    /// Selected time range.
    range: Option<Span>,
    /// Names of kernels, by id.
    names: Vec<Cow<'a, str>>,
    pub(super) texts: &'a Texts,
    /// What is missing, in sentences.
    incomplete: Vec<Arc<str>>,
}

impl<'a> Scope<'a> {
    /// The scope of a process.
    pub(super) fn new(source: &Source<'a>, choice: &'a Choice, process: &'a Process) -> Self {
        let Source {
            collected,
            nodes,
            facts,
            place,
            ..
        } = *source;
        let mut scope = Self {
            run: &collected.run,
            nodes: nodes.of(&process.host),
            choice,
            facts: facts.of(process.id),
            process,
            place,
            first: collected.first,
            range: choice.range.map(|(from, to)| Span {
                begin: collected.beginning.saturating_add(from),
                end: collected.beginning.saturating_add(to),
            }),
            names: Vec::new(),
            texts: &collected.texts,
            incomplete: collected.run.missing_of(process.id),
        };
        scope.names = scope
            .run
            .kernels
            .iter()
            .map(|kernel| scope.symbol_name(kernel))
            .collect();
        scope
    }

    /// What is missing: the collector's reports about unrecorded work of the process, and its losses.
    pub(super) fn incomplete(&self) -> impl Iterator<Item = &str> {
        self.incomplete.iter().map(|text| &**text)
    }

    /// Where in the program a call is, as `model.cpp:120 forward(int)`; empty if that is not known.
    pub(crate) fn site(&self, process: ProcessId, number: SiteNumber) -> &'a str {
        let sites = &self.run.sites;
        sites.path_of(process, number).map_or("", |path| sites.label(path))
    }

    /// Whether a span is selected: it ended in the time range.
    pub fn is_wanted(&self, span: Span) -> bool {
        self.range.is_none_or(|range| range.has_end_of(span)) && self.is_in_periods(span)
    }

    /// Whether a span is in the periods.
    pub fn is_in_periods(&self, span: Span) -> bool {
        let periods = &self.choice.periods;
        periods.is_empty() || periods.has(span.begin.saturating_sub(self.since()))
    }

    /// Whether a call or range is outside of the recorded stretch of time, taken along with what it caused. No sum has it.
    pub fn is_along(&self, span: Span) -> bool {
        self.process.stretch.is_some_and(|stretch| !stretch.has_end_of(span))
    }

    /// Whether a time is selected.
    pub fn is_wanted_at(&self, at: u64) -> bool {
        self.is_wanted(Span { begin: at, end: at })
    }

    /// Begin of the first record of the recording.
    pub(crate) const fn origin(&self) -> u64 {
        self.first
    }

    /// Origin of the process's periods: its first calibration.
    pub fn since(&self) -> u64 {
        self.facts.since.unwrap_or(self.first)
    }

    /// Whether the layout is `seed`.
    pub fn is_seed(&self) -> bool {
        self.choice.layout == Layout::Seed
    }

    /// Thread id of the kernel; the pid if unknown.
    pub fn tid(&self, thread: Option<ThreadId>) -> u32 {
        let known = thread.and_then(|id| self.run.threads.get(id.0 as usize));
        known.map_or(self.process.pid, |thread| thread.tid)
    }

    /// Number of a stream; 0 for the default stream and for an unknown one.
    pub fn stream(&self, stream: Option<StreamId>) -> u32 {
        let known = stream.and_then(|id| self.run.streams.get(id.0 as usize));
        known.map_or(0, |stream| stream.number)
    }

    /// Handle of a queue, or its number if unknown.
    pub fn queue_handle(&self, queue: QueueId) -> u64 {
        let number = self.queue(queue);
        let known = self.facts.queues.get(&number).copied();
        known.filter(|handle| *handle != 0).unwrap_or(number.into())
    }

    /// Number of a queue, from 1.
    pub fn queue(&self, queue: QueueId) -> u32 {
        let known = self.run.queues.get(queue.0 as usize);
        known.map_or(0, |queue| queue.number)
    }

    /// What the code of a dispatch's kernel allows on its GPU; `None` if the code or the architecture is not known.
    pub(super) fn occupancy(&self, dispatch: &Dispatch) -> Option<Occupancy> {
        let code = self.run.kernels.get(dispatch.kernel.0 as usize)?.code?;
        let agent = self.run.agents.get(dispatch.agent.0 as usize)?;
        Occupancy::of(agent, &code, &Shape::of(dispatch))
    }

    /// The kernel's static LDS in blocks of 512 bytes: rocprofv3 ignores dynamic LDS.
    pub(super) fn lds_block(&self, dispatch: &Dispatch) -> u64 {
        let kernel = self.run.kernels.get(dispatch.kernel.0 as usize);
        u64::from(kernel.map_or(dispatch.group_size, |kernel| kernel.group_size)).next_multiple_of(512)
    }
}
