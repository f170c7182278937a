//! When triggers begin a recording, when it ends, and which ones are only counted.

use roctop_trace::item::Nanos;

/// Limits of the recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a recording goes on after its trigger, ns.
    pub after: Nanos,
    /// Minimum time between the triggers of two recordings, ns.
    pub interval: Nanos,
}

/// What happens on a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A recording begins.
    Begins,
    /// The recording that is being written has it.
    Joins,
    /// It is too soon after the last recording, or that one is still being written.
    Suppressed,
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Triggers.
    pub triggers: u64,
    /// Recordings that began.
    pub recordings: u64,
    /// Triggers that another recording has.
    pub joined: u64,
    /// Triggers without a recording.
    pub suppressed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Armed,
    /// A recording goes on until then.
    Recording(Nanos),
    /// It is being written to its end.
    Writing,
}

/// The state of recordings: at most one at a time, and not too many.
#[derive(Clone, Debug)]
pub struct Schedule {
    limits: Limits,
    phase: Phase,
    last: Option<Nanos>,
    counts: Counts,
}

impl Schedule {
    /// No recording yet.
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            phase: Phase::Armed,
            last: None,
            counts: Counts {
                triggers: 0,
                recordings: 0,
                joined: 0,
                suppressed: 0,
            },
        }
    }

    /// Takes a trigger. One by hand may come any time after the last recording.
    pub fn trigger(&mut self, now: Nanos, by_hand: bool) -> Answer {
        self.counts.triggers += 1;
        let is_early = self
            .last
            .is_some_and(|last| now < last.saturating_add(self.limits.interval));
        match self.phase {
            Phase::Recording(_) => {
                self.counts.joined += 1;
                Answer::Joins
            }
            Phase::Armed if by_hand || !is_early => {
                self.counts.recordings += 1;
                self.phase = Phase::Recording(now.saturating_add(self.limits.after));
                self.last = Some(now);
                Answer::Begins
            }
            Phase::Armed | Phase::Writing => {
                self.counts.suppressed += 1;
                Answer::Suppressed
            }
        }
    }

    /// Counts triggers that are not taken one by one, as the last one was answered.
    pub const fn more(&mut self, triggers: u64) {
        self.counts.triggers += triggers;
        match self.phase {
            Phase::Recording(_) => self.counts.joined += triggers,
            Phase::Armed | Phase::Writing => self.counts.suppressed += triggers,
        }
    }

    /// Whether a recording has had its time after the trigger. It is then written to its end.
    pub fn is_over(&mut self, now: Nanos) -> bool {
        let is_over = matches!(self.phase, Phase::Recording(until) if now >= until);
        if is_over {
            self.phase = Phase::Writing;
        }
        is_over
    }

    /// The recording ends now, wherever it is.
    pub fn ends(&mut self) -> bool {
        let is_recording = matches!(self.phase, Phase::Recording(_));
        if is_recording {
            self.phase = Phase::Writing;
        }
        is_recording
    }

    /// The recording was written, or failed.
    pub fn written(&mut self) {
        self.phase = Phase::Armed;
    }

    /// How often what happened.
    pub const fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_recording_at_a_time_and_not_too_often() {
        let mut schedule = Schedule::new(Limits {
            after: 10,
            interval: 60,
        });
        assert_eq!(schedule.trigger(100, false), Answer::Begins);
        assert_eq!(schedule.trigger(109, false), Answer::Joins);
        assert!(!schedule.is_over(109) && schedule.is_over(110));
        assert_eq!(schedule.trigger(111, true), Answer::Suppressed);
        schedule.written();
        assert_eq!(schedule.trigger(159, false), Answer::Suppressed);
        assert_eq!(schedule.trigger(160, false), Answer::Begins);
        schedule.more(5);
        assert!(schedule.ends() && !schedule.ends());
        schedule.written();
        assert_eq!(schedule.trigger(161, true), Answer::Begins);
        let counts = schedule.counts();
        assert_eq!(
            (counts.triggers, counts.recordings, counts.joined, counts.suppressed),
            (11, 3, 6, 2)
        );
    }
}
