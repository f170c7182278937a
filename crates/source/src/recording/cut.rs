//! Copies a time range of a recording into a new one.

use super::index::Times;
use super::once::Once;
use super::reader::Clocks;
use super::reader::Repeats;
use super::{Merged, Recorder, Replay};
use crate::error::Result;
use roctop_trace::clock::Clock;
use roctop_trace::item::{ProcessId, Span};
use roctop_trace::raw::{Raw, RawSink};
use std::collections::BTreeMap;

/// Writes the records that overlap `span` (CLOCK_BOOTTIME ns) and all facts to `recorder`, each once. What damage has cost counts in
/// the copy, too: nobody knows at which time those records were. `read` receives the number
/// of bytes read so far, in steps.
pub fn cut(whole: &Merged<'_>, span: Span, read: &mut dyn FnMut(u64), mut recorder: Recorder) -> Result<Replay> {
    let mut clocks = Clocks::default();
    whole.deliver_facts(&mut clocks)?;
    let mut once = Once::new(whole, &mut recorder);
    let mut within = SpanFilter {
        clocks: clocks.0,
        span,
        is_inside: span.begin == 0,
        sink: &mut once,
    };
    let mut replay = whole.deliver(Some(span), read, &mut within)?;
    once.finish();
    replay.repeats = (once.uncertain > 0).then_some(Repeats::Uncertain(once.uncertain));
    recorder.note_damage(replay.lost_by_damage())?;
    recorder.finish()?;
    Ok(replay)
}

/// Filter that passes on what overlaps the span.
struct SpanFilter<'a> {
    clocks: BTreeMap<ProcessId, Clock>,
    span: Span,
    /// Whether the last poll time was inside the span.
    is_inside: bool,
    sink: &'a mut dyn RawSink,
}

impl SpanFilter<'_> {
    fn is_within(&self, at: u64) -> bool {
        (self.span.begin..=self.span.end).contains(&at)
    }
}

impl RawSink for SpanFilter<'_> {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        let passes = match raw {
            Raw::Record(_, slots) => {
                let Times { ticks, hsa } = Times::of(slots).0;
                self.clocks.get(&process).is_none_or(|clock| {
                    let (begin, end) = if ticks.0 <= ticks.1 {
                        (clock.ticks(ticks.0), clock.ticks(ticks.1))
                    } else if hsa.0 <= hsa.1 {
                        (clock.hsa(hsa.0), clock.hsa(hsa.1))
                    } else {
                        // What has no time is kept.
                        return true;
                    };
                    end >= self.span.begin && begin <= self.span.end
                })
            }
            Raw::Now(at) => {
                self.is_inside = self.is_within(*at);
                self.is_inside
            }
            Raw::Gauges(samples) => {
                let inside: Vec<_> = samples
                    .iter()
                    .filter(|sample| self.is_within(sample.at))
                    .cloned()
                    .collect();
                return self.sink.take(process, &Raw::Gauges(&inside));
            }
            Raw::ThreadTimes(readings) => {
                let inside = readings.iter().filter(|reading| self.is_within(reading.at));
                let inside: Vec<_> = inside.copied().collect();
                return self.sink.take(process, &Raw::ThreadTimes(&inside));
            }
            Raw::Output(_) => self.is_inside,
            _ => true,
        };
        if passes {
            self.sink.take(process, raw);
        }
    }
}
