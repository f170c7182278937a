//! Steps of a process: ranges that repeat, with the GPU time and the collectives of each.
//!
//! As on the screen, the steps are the outermost ranges whose texts differ in numbers at most and that occur at least three
//! times; of several, those with the most time.

use crate::error::Result;
use crate::records::{Mark, Row};
use crate::sort::{Entry, Iter, PART_ENTRIES, Sorter};
use crate::view::View;
use roctop_model::table::pattern;
use roctop_trace::item::{Dispatch, Span, ThreadId};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;

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

/// Number and time of ranges.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    count: u64,
    nanos: u64,
}

/// Series in order of their first ranges.
#[derive(Debug, Default)]
struct Known {
    all: Vec<(Series, Found)>,
    places: HashMap<Series, usize>,
}

impl Known {
    /// Adds ranges of a series. If there are too many series, those of a new one are left out.
    fn add(&mut self, series: Series, found: Found) {
        let place = match self.places.get(&series) {
            Some(place) => *place,
            None if self.all.len() < MAX_PATTERNS => {
                let place = self.all.len();
                self.places.insert(series.clone(), place);
                self.all.push((series, Found::default()));
                place
            }
            None => return,
        };
        if let Some((_, known)) = self.all.get_mut(place) {
            known.count += found.count;
            known.nanos = known.nanos.saturating_add(found.nanos);
        }
    }
}

/// The series whose ranges are steps.
fn series(view: &View<'_>) -> Result<Option<Series>> {
    let of_part = |part: Iter<'_, Row<Mark>>| {
        let mut known = Known::default();
        for row in part {
            let mark = row?.record;
            if is_range(&mark) {
                let series = (mark.marker.thread, level(&mark), pattern(&view.message(&mark)));
                let nanos = mark.marker.span.duration();
                known.add(series, Found { count: 1, nanos });
            }
        }
        Ok(known.all)
    };
    let mut known = Known::default();
    view.rows.markers.each_part(PART_ENTRIES, of_part, |part| {
        for (series, found) in part {
            known.add(series, found);
        }
        io::Result::Ok(())
    })?;
    let often = known
        .all
        .into_iter()
        .filter(|(_, found)| found.count >= MIN_OCCURRENCES);
    let first =
        often.min_by_key(|((thread, level, text), found)| (*level, Reverse(found.nanos), *thread, text.clone()));
    Ok(first.map(|(series, _)| series))
}

/// Steps of a process in order of their ends; none if no range repeats.
pub(crate) fn steps(view: &View<'_>) -> Result<Vec<Step>> {
    let Some((thread, wanted, text)) = series(view)? else {
        return Ok(Vec::new());
    };
    let of_part = |part: Iter<'_, Row<Mark>>| {
        let mut steps = Vec::new();
        for row in part {
            let mark = row?.record;
            if !(is_range(&mark) && mark.marker.thread == thread && level(&mark) == wanted) {
                continue;
            }
            let message = view.message(&mark);
            if pattern(&message) == text {
                steps.push(Step {
                    text: message.into_owned(),
                    thread,
                    span: mark.marker.span,
                    ..Step::default()
                });
            }
        }
        Ok(steps)
    };
    let mut steps = Vec::new();
    view.rows.markers.each_part(PART_ENTRIES, of_part, |part| {
        steps.extend(part);
        io::Result::Ok(())
    })?;
    steps.sort_by_key(|step: &Step| (step.span.end, step.span.begin));
    work(view, &mut steps)?;
    for row in view.parts.iter() {
        let row = row?;
        if let Some(step) = around(&steps, row.call).and_then(|at| steps.get_mut(at)) {
            step.collectives += 1;
            // Within the clocks' error nobody is known to have waited.
            step.wait = step.wait.saturating_add(if row.last == 0 { 0 } else { row.wait });
        }
    }
    Ok(steps)
}

/// Index of the step at this time. Steps follow one another.
fn around(steps: &[Step], at: u64) -> Option<usize> {
    let place = steps.partition_point(|step| step.span.end <= at);
    let step = steps.get(place)?;
    (step.span.begin <= at).then_some(place)
}

/// What is found in a part of the kernels.
struct Part {
    /// Numbers of kernels that began in a step, by the step's index.
    kernels: Vec<(usize, u64)>,
    /// Times in which a kernel ran, sorted and apart from each other.
    ran: Vec<Ran>,
}

/// Adds the kernels and the time with kernels to the steps.
fn work(view: &View<'_>, steps: &mut [Step]) -> Result<()> {
    let of_part = |part: Iter<'_, Row<Dispatch>>| {
        let mut spans = Vec::new();
        for row in part {
            spans.push(row?.record.span);
        }
        io::Result::Ok(Part {
            kernels: counted(steps, &spans),
            ran: united(spans),
        })
    };
    let mut sorter = Sorter::new(view.place, SORT_BUFFER_BYTES);
    let mut kernels = vec![0; steps.len()];
    view.rows.dispatches.each_part(PART_ENTRIES, of_part, |mut part| {
        for (step, count) in part.kernels {
            kernels[step] += count;
        }
        sorter.append(part.ran.len(), move |all| all.append(&mut part.ran))
    })?;
    for (step, count) in steps.iter_mut().zip(kernels) {
        step.kernels = count;
    }
    let (mut until, mut first) = (0, 0);
    for ran in sorter.finish()?.iter() {
        let Ran(span) = ran?;
        let begin = span.begin.max(until);
        until = until.max(span.end);
        while steps.get(first).is_some_and(|step| step.span.end <= begin) {
            first += 1;
        }
        for step in steps[first..].iter_mut().take_while(|step| step.span.begin < span.end) {
            let within = span.end.min(step.span.end).saturating_sub(begin.max(step.span.begin));
            step.busy = step.busy.saturating_add(within);
        }
    }
    Ok(())
}

/// Numbers of kernels that began in a step, for consecutive ones with the same step.
fn counted(steps: &[Step], spans: &[Span]) -> Vec<(usize, u64)> {
    let mut counted: Vec<(usize, u64)> = Vec::new();
    for step in spans.iter().filter_map(|span| around(steps, span.begin)) {
        match counted.last_mut().filter(|last| last.0 == step) {
            Some(last) => last.1 += 1,
            None => counted.push((step, 1)),
        }
    }
    counted
}

/// The times that are in at least one span, sorted.
fn united(mut spans: Vec<Span>) -> Vec<Ran> {
    spans.sort_unstable_by_key(|span| span.begin);
    let mut united: Vec<Ran> = Vec::new();
    for span in spans {
        match united.last_mut().filter(|last| span.begin <= last.0.end) {
            Some(Ran(last)) => last.end = last.end.max(span.end),
            None => united.push(Ran(span)),
        }
    }
    united
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(times: &[(u64, u64)]) -> Vec<Span> {
        times.iter().map(|&(begin, end)| Span { begin, end }).collect()
    }

    #[test]
    fn overlapping_times_are_united() {
        let all = united(spans(&[(50, 60), (10, 30), (20, 25), (30, 40), (41, 41), (9, 10)]));
        let all: Vec<(u64, u64)> = all.iter().map(|ran| (ran.0.begin, ran.0.end)).collect();
        assert_eq!(all, [(9, 40), (41, 41), (50, 60)]);
    }

    #[test]
    fn kernels_count_for_the_step_in_which_they_began() {
        let step = |span| Step {
            span,
            ..Step::default()
        };
        let steps: Vec<Step> = spans(&[(10, 20), (30, 40)]).into_iter().map(step).collect();
        let began = spans(&[(5, 12), (10, 50), (19, 50), (20, 50), (35, 36), (40, 41), (10, 11)]);
        assert_eq!(counted(&steps, &began), [(0, 2), (1, 1), (0, 1)]);
    }

    #[test]
    fn a_series_beyond_the_limit_is_left_out_wherever_parts_end() {
        let series = |number: usize| (ThreadId(0), 0, number.to_string());
        let found = Found { count: 1, nanos: 5 };
        let mut known = Known::default();
        (0..MAX_PATTERNS + 9).for_each(|number| known.add(series(number), found));
        known.add(series(3), found);
        known.add(series(MAX_PATTERNS + 3), found);
        assert_eq!(known.all.len(), MAX_PATTERNS);
        assert_eq!((known.all[3].1.count, known.all[3].1.nanos), (2, 10));
    }
}
