//! Rows of one process with the names of everything in them. All formats use it, so they contain the same records.

mod stream;

pub use super::scope::{Scope, Source, with_kd};

use super::collect::{Collected, Event};
use super::collectives::{Matched, PartRow};
use super::counted::{self, Counted};
use super::gauges::Gauges;
use super::nesting;
use super::numbers::Numbers;
use super::options::{Choice, Kind, Layout};
use super::pc_samples::Samples;
use super::records::{RowFilter, Rows};
use super::sample_streams::{Point, Walk};
use super::sort::{Chunks, Iter, Sorted, Sorter};
use super::workspace::Workspace;
use crate::error::Result;
use roctop_model::subject::{Context, Record};
use roctop_trace::item::{Process, ProcessId, Span};
use std::collections::HashSet;
use std::io;
use std::iter::Peekable;
use std::ops::Deref;
use std::sync::OnceLock;

/// Rows of one process. It dereferences to its [`Scope`], which has the names.
pub struct View<'a> {
    scope: Scope<'a>,
    /// Its rows.
    pub rows: Rows,
    /// Counter values.
    pub(super) counted: Counted<'a>,
    /// PC samples.
    pub(super) samples: Samples,
    /// Driver readings, and device-wide counters.
    pub(super) gauges: Gauges<'a>,
    /// Its parts in collectives, in order of their calls.
    pub(super) parts: Sorted<PartRow>,
    /// Its calls of MPI that were matched.
    pub(super) matched: Matched,
    /// Stream numbers, by correlation id of the call that submitted work to them; found for the formats that have them.
    streams: OnceLock<Numbers>,
}

impl<'a> Deref for View<'a> {
    type Target = Scope<'a>;

    fn deref(&self) -> &Scope<'a> {
        &self.scope
    }
}

impl<'a> View<'a> {
    /// The view of a process. `events` are its records; `whole` has the gauges of whole GPUs, if its files contain
    /// them.
    fn new(
        source: &Source<'a>,
        choice: &'a Choice,
        process: &'a Process,
        events: &mut nesting::Next<'_>,
        walk: &mut Walk<'_>,
        whole: Option<&Sorted<Point>>,
        parts: &mut Peekable<Iter<'_, PartRow>>,
    ) -> io::Result<Self> {
        let scope = Scope::new(source, choice, process);
        let within = |span: Span| scope.is_wanted(span);
        // Of calls and ranges nothing was read that does not belong to the time range or to its work.
        let in_periods = |span: Span| scope.is_in_periods(span);
        let filter = &choice.filter;
        let context = Context {
            names: source.names,
            sites: Some(&source.collected.run.sites),
            rows: source.collected.rows.as_deref(),
        };
        let passes = |record: Record<'_>| filter.is_empty() || filter.accepts(&record.with(context));
        let tests = RowFilter {
            call: &|row| in_periods(row.record.span) && passes(Record::Call(&row.record)),
            marker: &|row| {
                let mark = &row.record;
                let passes = || match mark.made_by() {
                    Some(call) => passes(Record::Call(&call)),
                    None => passes(Record::Marker(&mark.marker, &scope.message(mark))),
                };
                in_periods(mark.span) && passes()
            },
            dispatch: &|row| within(row.record.span) && passes(Record::Kernel(&row.record)),
            copy: &|row| within(row.record.span) && passes(Record::Copy(&row.record)),
            allocation: &|row| within(row.record.span) && passes(Record::Allocation(&row.record, row.site)),
            scratch: &|row| within(row.record.span) && passes(Record::Scratch(&row.record, row.site)),
        };
        let mut kinds = choice.kinds;
        // Files of that release have no calls of MPI.
        kinds.set(Kind::Mpi, kinds.has(Kind::Mpi) && choice.layout == Layout::New);
        let wanted = nesting::Wanted {
            process: process.id,
            kinds,
            orphans: choice.layout == Layout::New,
            rename: choice.rename,
        };
        let rows = nesting::rows(source.collected, events, wanted, &tests, source.place)?;
        let has_mpi = kinds.has(Kind::Mpi);
        let (parts, matched) = parts_of(process.id, parts, source.place, |row| {
            (has_mpi || !row.operation.is_mpi()) && filter.accepts_text(row.operation.name())
        })?;
        let mut view = Self {
            parts,
            matched,
            scope,
            rows,
            counted: Counted::default(),
            samples: Samples::default(),
            gauges: Gauges::default(),
            streams: OnceLock::new(),
        };
        if !view.is_empty() {
            view.measure(walk, whole)?;
        }
        Ok(view)
    }

    /// Joins counter values, samples and gauges with the rows.
    fn measure(&mut self, walk: &mut Walk<'_>, whole: Option<&Sorted<Point>>) -> io::Result<()> {
        let scope = &self.scope;
        let own = scope.process.id;
        if walk.values.has(own) || walk.samples.has(own) {
            let dispatches = counted::numbered(&self.rows.dispatches, scope.place)?;
            self.counted = Counted::new(scope, walk, &dispatches)?;
            self.samples = Samples::new(scope, walk, &dispatches)?;
        }
        self.gauges = Gauges::new(scope, walk, whole)?;
        Ok(())
    }

    /// Whether all reads succeeded.
    ///
    /// Errors: one failed.
    pub(super) fn check(&self) -> io::Result<()> {
        self.texts.check()?;
        self.streams.get().map_or(Ok(()), Numbers::check)
    }

    /// Whether there is nothing to write.
    pub const fn is_empty(&self) -> bool {
        self.rows.times.is_none()
    }

    /// Begin of the first row and end of the last one.
    pub fn times(&self) -> (u64, u64) {
        self.rows.times.unwrap_or_default()
    }
}

/// Memory for the parts of a process, bytes.
const PART_BUFFER_BYTES: usize = 16 << 20;

/// The parts of this process that pass, and the calls of MPI that were matched; parts of processes before it are passed over.
fn parts_of(
    process: ProcessId,
    parts: &mut Peekable<Iter<'_, PartRow>>,
    place: &Workspace,
    passes: impl Fn(&PartRow) -> bool,
) -> io::Result<(Sorted<PartRow>, Matched)> {
    let mut own = Sorter::new(place, PART_BUFFER_BYTES);
    let mut matched = Matched::default();
    let is_near = |row: &io::Result<PartRow>| row.as_ref().map_or(true, |row| row.process <= process);
    while let Some(row) = parts.next_if(is_near) {
        let row = row?;
        if row.process == process && passes(&row) {
            matched.add(&row);
            // A message's calls are among those of MPI.
            if !row.operation.is_message() {
                own.put(row)?;
            }
        }
    }
    matched.sort();
    Ok((own.finish()?, matched))
}

/// Passes the view of each non-empty process to `act`.
pub fn each(source: &Source<'_>, choice: &Choice, act: &mut dyn FnMut(&View<'_>) -> Result<()>) -> Result<()> {
    let mut events = ByProcess::new(source.collected);
    let mut walk = Walk::new(&source.collected.measured);
    let mut parts = source.collected.parts.iter().peekable();
    // Readings of whole GPUs go with the first process of the machine.
    let whole = &source.collected.measured.whole;
    let mut written = HashSet::new();
    while let Some(process) = events.process()? {
        let mut own = || events.next_of(process);
        let known = source.collected.run.processes.get(process.0 as usize);
        // An id that was never named is a gap in the table.
        let Some(known) = known.filter(|known| known.id == process && known.pid != 0) else {
            while own()?.is_some() {}
            continue;
        };
        let wanted = (!written.contains(&known.machine)).then_some(whole);
        let view = View::new(source, choice, known, &mut own, &mut walk, wanted, &mut parts)?;
        if !view.is_empty() {
            act(&view)?;
            written.insert(known.machine);
        }
    }
    Ok(())
}

/// Events, a process after the other.
struct ByProcess<'a> {
    chunks: Chunks<'a, Event>,
    /// The rest of the last chunk.
    rest: Vec<Event>,
}

impl<'a> ByProcess<'a> {
    fn new(collected: &'a Collected) -> Self {
        Self {
            chunks: collected.events.chunks(),
            rest: Vec::new(),
        }
    }

    /// The process of the next event; `None` at the end.
    fn process(&mut self) -> io::Result<Option<ProcessId>> {
        while self.rest.is_empty() {
            match self.chunks.next() {
                Some(chunk) => self.rest = chunk?,
                None => return Ok(None),
            }
        }
        Ok(self.rest.first().map(Event::process))
    }

    /// The next events, if they are of this process.
    fn next_of(&mut self, process: ProcessId) -> io::Result<Option<Vec<Event>>> {
        if self.process()? != Some(process) {
            return Ok(None);
        }
        let end = self.rest.partition_point(|event| event.process() == process);
        let later = self.rest.split_off(end);
        Ok(Some(std::mem::replace(&mut self.rest, later)))
    }
}
