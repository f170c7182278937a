//! Assigns correlation ids as rocprofv3 does: dense from 1 by start time over the selected API calls and markers of a
//! process, with the enclosing one as ancestor. Work belongs to the innermost selected one that enqueued it.
//!
//! One sweep over the records by begin finds the nesting. The cause of work is looked up among recent calls; the few
//! that are older get a second sweep.

mod recent;
mod sweep;

use super::collect::{Collected, Event};
use super::options::Kinds;
use super::records::{ByKind, Numbered, RecordIds, Region, RowFilter, Rows, SORT_BUFFER_BYTES, Sink};
use super::sort::{Sorted, Sorter};
use super::workspace::Workspace;
use roctop_model::FastMap;
use roctop_ring::near;
use roctop_trace::item::ProcessId;
use std::io;
use sweep::Sweep;

/// Maximum number of work records whose call is searched in a second sweep.
const MAX_LATE: usize = 1 << 19;

/// Prefetch distances, in events. The table of recent calls exceeds the processor's cache, and the events were written by another
/// core.
const PREFETCH_CALL: usize = 12;
const PREFETCH_EVENT: usize = 32;

/// Selection and numbering options of a process.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) process: ProcessId,
    pub(crate) kinds: Kinds,
    /// Whether work without a selected call gets a new id (as in rocprofiler-sdk 1.0.0) or 0.
    pub(crate) orphans: bool,
    /// Whether kernels are named by marks and push/pop ranges: then these have numbers even if not selected.
    pub(crate) rename: bool,
}

/// The next records of a process, sorted by begin; `None` at their end.
pub(crate) type Next<'a> = dyn FnMut() -> io::Result<Option<Vec<Event>>> + 'a;

/// Numbers the selected records of a process; `next` passes over all of them.
pub(crate) fn rows(
    collected: &Collected,
    next: &mut Next<'_>,
    wanted: Wanted,
    tests: &RowFilter<'_>,
    place: &Workspace,
) -> io::Result<Rows> {
    let mut sink = Sink::new(place);
    let mut sweep = Sweep::new(&collected.run, wanted);
    let mut late = Sorter::new(place, SORT_BUFFER_BYTES);
    let numbered = std::iter::from_fn(|| number(next, &mut sweep, &mut late).transpose());
    let sort_out = |chunk: io::Result<Numbered>| io::Result::Ok(ByKind::new(chunk?, &collected.run, tests));
    place.in_order(numbered, sort_out, |rows| sink.put(rows))?;
    let mut regions: Vec<Region> = sweep
        .texts
        .iter()
        .map(|(text, id)| Region { text: *text, id: *id })
        .collect();
    regions.sort_unstable_by_key(|region| region.id);
    let (next, stacks) = (sweep.next, sweep.stacks);
    number_late(collected, wanted, &late.finish()?, next, &mut |rows| {
        sink.put(ByKind::new(rows, &collected.run, tests))
    })?;
    Ok(Rows {
        regions,
        stacks,
        ..sink.finish()?
    })
}

/// Numbers the next records; puts work whose call is not recent in `late`.
fn number(next: &mut Next<'_>, sweep: &mut Sweep, late: &mut Sorter<Event>) -> io::Result<Option<Numbered>> {
    let Some(events) = next()? else { return Ok(None) };
    let mut ids = vec![RecordIds::default(); events.len()];
    for (at, (event, own)) in events.iter().zip(&mut ids).enumerate() {
        if let Some(later) = events.get(at + PREFETCH_EVENT) {
            near::fetch_all(later);
        }
        if let Some(later) = events.get(at + PREFETCH_CALL) {
            sweep.fetch(later);
        }
        sweep.take(event, own);
        if sweep.is_late {
            late.put(*event)?;
        }
    }
    Ok(Some(Numbered { events, ids }))
}

/// Numbers work whose call is not recent; `next` is the next id.
fn number_late(
    collected: &Collected,
    wanted: Wanted,
    late: &Sorted<Event>,
    mut next: u64,
    put: &mut dyn FnMut(Numbered) -> io::Result<()>,
) -> io::Result<()> {
    let mut work = late.iter();
    loop {
        let these: Vec<Event> = work.by_ref().take(MAX_LATE).collect::<io::Result<_>>()?;
        if these.is_empty() {
            return Ok(());
        }
        let causes = causes(collected, wanted, &these)?;
        let ids = these.iter().map(|event| {
            let cause = correlation(event)
                .and_then(|id| causes.get(&id).copied())
                .unwrap_or_default();
            let is_orphan = cause.id == 0 && wanted.orphans;
            let id = if is_orphan { next } else { cause.id };
            next += u64::from(is_orphan);
            RecordIds {
                id,
                is_selected: true,
                ..cause
            }
        });
        let ids = ids.collect();
        put(Numbered { events: these, ids })?;
    }
}

/// Causes of work whose call is not recent: a sweep for these alone.
fn causes(collected: &Collected, wanted: Wanted, work: &[Event]) -> io::Result<FastMap<u64, RecordIds>> {
    let mut causes: FastMap<u64, Option<RecordIds>> =
        work.iter().filter_map(correlation).map(|id| (id, None)).collect();
    let mut sweep = Sweep::new(&collected.run, wanted);
    for event in collected.events.iter() {
        let event = event?;
        if event.process() != wanted.process {
            continue;
        }
        sweep.take(&event, &mut RecordIds::default());
        let id = match &event {
            Event::Call(call) => call.correlation,
            Event::Marker(marker) => marker.correlation,
            _ => continue,
        };
        if let Some(found) = causes.get_mut(&id) {
            *found = sweep.recent.get(id).copied();
        }
    }
    Ok(causes
        .into_iter()
        .filter_map(|(id, cause)| Some((id, cause?)))
        .collect())
}

fn correlation(work: &Event) -> Option<u64> {
    let id = match work {
        Event::Dispatch(dispatch) => dispatch.correlation,
        Event::Copy(copy) => copy.correlation,
        Event::Allocation(allocation) => allocation.correlation,
        Event::Scratch(scratch) => scratch.correlation,
        Event::Call(_) | Event::Marker(_) => 0,
    };
    (id != 0).then_some(id)
}
