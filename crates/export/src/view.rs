//! The rows of one process with everything that the formats call by a name. All formats read this, so that they hold the
//! same records.

mod agent;
mod name;
mod stream;

pub use name::with_kd;

use super::collect::{Collected, Event};
use super::counted::{self, Counted};
use super::facts::{Facts, ProcessFacts};
use super::gauges::Gauges;
use super::hosts::Hosts;
use super::nesting;
use super::numbers::Numbers;
use super::options::{Choice, Layout};
use super::pc_samples::Samples;
use super::records::{Rows, Tests};
use super::run::Run;
use super::sample_streams::{Point, Walk};
use super::sort::Sorted;
use super::subject::{AllocationSubject, CallSubject, CopySubject, DispatchSubject, MarkerSubject, ScratchSubject};
use super::texts::Texts;
use crate::error::Result;
use roctop_trace::item::{Process, QueueId, Span, StreamId, ThreadId};
use roctop_trace::topology::Node;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::path::Path;

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

impl<'a> View<'a> {
    /// What the collector says is not recorded of the process, or may not be.
    pub(super) fn incomplete(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let (run, process) = (self.run, self.process.id);
        let own = run.incomplete.iter().filter(move |(of, _)| *of == process);
        own.map(|(_, text)| &**text)
    }

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
}

/// Shows `act` the views of all processes that have anything to write, one after the other.
pub fn each(source: &Source<'_>, choice: &Choice, act: &mut dyn FnMut(&View<'_>) -> Result<()>) -> Result<()> {
    let mut events = source.collected.events.iter().peekable();
    let mut walk = Walk::new(&source.collected.measured);
    // What is of no process goes with the first of its machine.
    let whole = &source.collected.measured.whole;
    let mut told = HashSet::new();
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
        let wanted = (!told.contains(&known.machine)).then_some(whole);
        let view = View::new(source, choice, known, &mut own, &mut walk, wanted)?;
        if !view.is_empty() {
            act(&view)?;
            told.insert(known.machine);
        }
    }
}
