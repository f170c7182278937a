//! Steps of a process: ranges that repeat, with the GPU time and the collectives of each.
//!
//! As on the screen, the steps are the outermost ranges whose texts differ in numbers at most and that occur at least three
//! times; of several, those with the most time.

use crate::error::Result;
use crate::records::Mark;
use crate::sort::{Entry, Sorter};
use crate::view::View;
use roctop_model::table::pattern;
use roctop_trace::item::{Span, ThreadId};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Number of ranges of one text pattern from which on they are steps.
const MIN_OCCURRENCES: u64 = 3;
/// Maximum number of text patterns that are counted.
const MAX_PATTERNS: usize = 1 << 14;
/// Memory for kernels while they are sorted, bytes.
const SORT_BUFFER_BYTES: usize = 16 << 20;

/// A step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// Text of its range.
    pub(crate) text: String,
    /// Thread of its range.
    pub(crate) thread: ThreadId,
    /// Its time.
    pub(crate) span: Span,
    /// Time in which at least one kernel of the process ran, ns.
    pub(crate) busy: u64,
    /// Kernels that began in it.
    pub(crate) kernels: u64,
    /// Collectives that this rank joined in it, and its waits for others, ns.
    pub(crate) collectives: u64,
    pub(crate) wait: u64,
}

/// A kernel's time.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ran(Span);

impl Entry for Ran {
    type Key = (u64, u64);

    fn key(&self) -> Self::Key {
        (self.0.begin, self.0.end)
    }
}

/// What makes ranges steps of one series: thread, nesting level, and text without its numbers.
type Series = (ThreadId, u16, String);

/// Whether it is a range with a begin and an end.
fn is_range(mark: &Mark) -> bool {
    mark.call.is_none() && mark.marker.span.end > mark.marker.span.begin
}

fn level(mark: &Mark) -> u16 {
    if mark.marker.range_id == 0 {
        mark.marker.level
    } else {
        0
    }
}

/// The series whose ranges are steps.
fn series(view: &View<'_>) -> Result<Option<Series>> {
    let mut known: HashMap<Series, (u64, u64)> = HashMap::new();
    for row in view.rows.markers.iter() {
        let mark = row?.record;
        if !is_range(&mark) {
            continue;
        }
        let key = (mark.marker.thread, level(&mark), pattern(&view.message(&mark)));
        if known.len() >= MAX_PATTERNS && !known.contains_key(&key) {
            continue;
        }
        let (count, nanos) = known.entry(key).or_default();
        *count += 1;
        *nanos = nanos.saturating_add(mark.marker.span.duration());
    }
    let often = known.into_iter().filter(|(_, (count, _))| *count >= MIN_OCCURRENCES);
    let first =
        often.min_by_key(|((thread, level, text), (_, nanos))| (*level, Reverse(*nanos), *thread, text.clone()));
    Ok(first.map(|(series, _)| series))
}

/// Steps of a process in order of their ends; none if no range repeats.
pub(crate) fn steps(view: &View<'_>) -> Result<Vec<Step>> {
    let Some((thread, wanted, text)) = series(view)? else {
        return Ok(Vec::new());
    };
    let mut steps = Vec::new();
    for row in view.rows.markers.iter() {
        let mark = row?.record;
        let is_own = is_range(&mark) && mark.marker.thread == thread && level(&mark) == wanted;
        let message = view.message(&mark);
        if is_own && pattern(&message) == text {
            steps.push(Step {
                text: message.into_owned(),
                thread,
                span: mark.marker.span,
                ..Step::default()
            });
        }
    }
    steps.sort_by_key(|step| (step.span.end, step.span.begin));
    work(view, &mut steps)?;
    for row in view.parts.iter() {
        let row = row?;
        if let Some(step) = around(&mut steps, row.call) {
            step.collectives += 1;
            // Within the clocks' error nobody is known to have waited.
            step.wait = step.wait.saturating_add(if row.last == 0 { 0 } else { row.wait });
        }
    }
    Ok(steps)
}

/// The step at this time. Steps follow one another.
fn around(steps: &mut [Step], at: u64) -> Option<&mut Step> {
    let place = steps.partition_point(|step| step.span.end <= at);
    steps.get_mut(place).filter(|step| step.span.begin <= at)
}

/// Adds the kernels and the time with kernels to the steps.
fn work(view: &View<'_>, steps: &mut [Step]) -> Result<()> {
    let mut sorter = Sorter::new(view.place, SORT_BUFFER_BYTES);
    for row in view.rows.dispatches.iter() {
        let span = row?.record.span;
        if let Some(step) = around(steps, span.begin) {
            step.kernels += 1;
        }
        sorter.put(Ran(span))?;
    }
    let mut until = 0;
    for ran in sorter.finish()?.iter() {
        let Ran(span) = ran?;
        let begin = span.begin.max(until);
        until = until.max(span.end);
        let first = steps.partition_point(|step| step.span.end <= begin);
        for step in steps[first..].iter_mut().take_while(|step| step.span.begin < span.end) {
            let within = span.end.min(step.span.end).saturating_sub(begin.max(step.span.begin));
            step.busy = step.busy.saturating_add(within);
        }
    }
    Ok(())
}
