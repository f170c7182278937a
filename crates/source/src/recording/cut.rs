//! Copies a time range of a recording into a new one.

use super::once::Once;
use super::reader::Repeats;
use super::{Merged, Recorder, Replay};
use crate::error::Result;
use roctop_trace::item::{Nanos, ProcessId, Span};
use roctop_trace::raw::{Raw, RawSink};

/// Writes the records of `span` (CLOCK_BOOTTIME ns), or all, and all facts to `recorder`, each once. What damage has cost counts in
/// the copy, too: nobody knows at which time those records were. `read` receives the number
/// of bytes read so far, in steps.
pub fn cut(
    whole: &Merged<'_>,
    span: Option<Span>,
    read: &mut dyn FnMut(u64),
    mut recorder: Recorder,
) -> Result<Replay> {
    recorder.note_stretch(whole.stretch(span))?;
    let mut once = Once::new(whole, &mut recorder);
    let mut within = SpanFilter {
        span: span.unwrap_or(Span {
            begin: 0,
            end: Nanos::MAX,
        }),
        is_inside: span.is_none_or(|span| span.begin == 0),
        sink: &mut once,
    };
    let mut replay = whole.deliver(span, read, &mut within)?;
    once.finish();
    replay.repeats = (once.uncertain > 0).then_some(Repeats::Uncertain(once.uncertain));
    recorder.note_damage(replay.lost_by_damage())?;
    recorder.finish()?;
    Ok(replay)
}

/// Filter that passes on the readings and outputs of the span. The records are of it.
struct SpanFilter<'a> {
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
