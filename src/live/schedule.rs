//! When the rings are drained, and how long the reading thread sleeps until then. Pure: the clocks come from outside.
//!
//! A drain copies records and costs the most. A check of the fill levels reads one cache line per ring. The thread checks
//! often, drains a ring before the program can overwrite it, and leaves nearly empty rings alone for a while.

use roctop_ring::reader::Progress;
use std::time::Duration;

/// Pause while a ring fills.
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(1);
/// Pause while the program works: a thread that starts to call without a pause fills its ring in twice this time.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// The longest such pause, for sessions of many processes, where a check costs more.
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(4);
/// The same two for an idle program, which may resume at any time.
const CHECK_INTERVAL_IDLE: Duration = Duration::from_millis(3);
const CHECK_INTERVAL_IDLE_MAX: Duration = Duration::from_millis(32);
/// The pause is this multiple of the processor time that a check takes with its sleep and wake-up.
const CHECK_COST_FACTOR: u32 = 200;
const CHECK_COST_FACTOR_IDLE: u32 = 500;
/// Nearly empty rings are drained this rarely: a drain costs more than a check, and per-kernel state is loaded into cache
/// once for more records. Screens move ten times a second.
const DRAIN_INTERVAL: Duration = Duration::from_millis(50);
const DRAIN_INTERVAL_IDLE: Duration = Duration::from_millis(200);
/// Fill level of the fullest ring, in 1/1000, below which rings are nearly empty.
const NEARLY_EMPTY_FILL: u32 = 60;
/// New ring files cause a drain only after this multiple of the last drain's duration: programs that fork without end
/// create files without end.
const NEW_FILES_DRAIN_FACTOR: u32 = 20;
/// The program is idle after this time without a record.
const IDLE_AFTER: Duration = Duration::from_secs(2);
/// How often the health of processes is read.
const HEALTH_INTERVAL: Duration = Duration::from_millis(500);
const HEALTH_INTERVAL_IDLE: Duration = Duration::from_secs(1);
/// Bytes that may wait for the decoding thread before rings are left unread. The last drain's bytes come on top, 32 MiB of a
/// file at most. A burst of many threads fills their rings faster than it is compressed.
const MAX_BACKLOG: usize = 256 << 20;
/// Further drains when the reading stops, while rings are not empty: one drain takes 32 MiB of a file.
const MAX_FINAL_DRAINS: usize = 64;

/// What the thread does when it wakes up without a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It drains the rings.
    Drain,
    /// It checks the fill levels and, with `files`, looks for new files; it drains if either asks for it.
    Check { files: bool },
}

/// How busy the program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// Nothing is known yet, or rings fill: each wake-up drains.
    Filling,
    /// Rings are nearly empty.
    Light,
    /// No record came for [`IDLE_AFTER`].
    Idle,
}

/// Times are those on a clock that starts at 0; processor times are those of the reading thread.
#[derive(Debug)]
pub(super) struct Schedule {
    /// A recording needs every record: its rings are checked as usual while the program is idle.
    is_recorded: bool,
    load: Load,
    pause: Duration,
    /// When the last drain began, and how long it took.
    drained_at: Duration,
    drain_took: Duration,
    /// When records came last.
    busy_at: Duration,
    health_at: Option<Duration>,
    /// Checks since the last drain, and the processor time then.
    checks: u32,
    processor: Duration,
    /// Processor time of one check with its sleep and wake-up.
    check_cost: Duration,
}

impl Schedule {
    /// Starts with a drain.
    pub(super) fn new(is_recorded: bool, processor: Duration) -> Self {
        Self {
            is_recorded,
            load: Load::Filling,
            pause: CHECK_INTERVAL,
            drained_at: Duration::ZERO,
            drain_took: Duration::ZERO,
            busy_at: Duration::ZERO,
            health_at: None,
            checks: 0,
            processor,
            check_cost: Duration::ZERO,
        }
    }

    /// How long the thread sleeps.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    /// What to do after that sleep.
    pub(super) fn step(&mut self, now: Duration) -> Step {
        let interval = match self.load {
            Load::Filling => return Step::Drain,
            Load::Light => DRAIN_INTERVAL,
            Load::Idle => DRAIN_INTERVAL_IDLE,
        };
        let age = now.saturating_sub(self.drained_at);
        if age >= interval {
            return Step::Drain;
        }
        // On a processor that slept the system call costs more than its work: every second check of an idle program does
        // without.
        let is_skipped = self.load == Load::Idle && self.checks % 2 == 1;
        self.checks += 1;
        Step::Check {
            files: !is_skipped && age >= self.drain_took * NEW_FILES_DRAIN_FACTOR,
        }
    }

    /// Whether rings of this fill level, in 1/1000 of the fullest, need no drain yet.
    pub(super) const fn may_wait(fill: u32) -> bool {
        fill < NEARLY_EMPTY_FILL
    }

    /// A drain begins.
    pub(super) fn drain_begins(&mut self, now: Duration, processor: Duration) {
        if self.checks > 0 {
            let mean = processor.saturating_sub(self.processor) / self.checks;
            self.check_cost = (self.check_cost + mean) / 2;
        }
        self.drained_at = now;
    }

    /// Whether the rings are left unread, since the decoding thread is too far behind: they overwrite, and the losses are
    /// counted. The last drain reads them in any case.
    pub(super) const fn leaves_rings(backlog: usize, is_last: bool) -> bool {
        backlog > MAX_BACKLOG && !is_last
    }

    /// Whether the last drain reads the rings once more, after `drains` times. A program that goes on is not followed for
    /// ever.
    pub(super) const fn drains_again(drains: usize, progress: &Progress) -> bool {
        progress.more && drains <= MAX_FINAL_DRAINS
    }

    /// Whether the health of processes is due; it is then taken as read.
    pub(super) fn takes_health(&mut self) -> bool {
        let interval = if self.load == Load::Idle {
            HEALTH_INTERVAL_IDLE
        } else {
            HEALTH_INTERVAL
        };
        let now = self.drained_at;
        let is_due = self.health_at.is_none_or(|at| now.saturating_sub(at) >= interval);
        if is_due {
            self.health_at = Some(now);
        }
        is_due
    }

    /// The drain has ended.
    pub(super) fn drain_ends(&mut self, now: Duration, processor: Duration, progress: &Progress) {
        self.drain_took = now.saturating_sub(self.drained_at);
        (self.processor, self.checks) = (processor, 0);
        if progress.records > 0 {
            self.busy_at = now;
        }
        let is_idle = now.saturating_sub(self.busy_at) > IDLE_AFTER;
        (self.pause, self.load) = match progress.fill {
            _ if progress.more => (Duration::ZERO, Load::Filling),
            0 if is_idle => {
                let longest = if self.is_recorded {
                    CHECK_INTERVAL_MAX
                } else {
                    CHECK_INTERVAL_IDLE_MAX
                };
                let pause = (self.check_cost * CHECK_COST_FACTOR_IDLE).clamp(CHECK_INTERVAL_IDLE, longest);
                (pause, Load::Idle)
            }
            0..NEARLY_EMPTY_FILL => {
                let pause = (self.check_cost * CHECK_COST_FACTOR).clamp(CHECK_INTERVAL, CHECK_INTERVAL_MAX);
                (pause, Load::Light)
            }
            _ => (CHECK_INTERVAL_MIN, Load::Filling),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn progress(records: u64, fill: u32, more: bool) -> Progress {
        Progress {
            records,
            fill,
            more,
            ..Progress::default()
        }
    }

    /// A drain from `now` on that takes `took` ms and finds this.
    fn drain(schedule: &mut Schedule, now: u64, took: u64, found: &Progress) {
        schedule.drain_begins(ms(now), Duration::ZERO);
        schedule.drain_ends(ms(now + took), Duration::ZERO, found);
    }

    #[test]
    fn filling_rings_are_drained_at_each_wake_up() {
        let mut schedule = Schedule::new(false, Duration::ZERO);
        assert_eq!(schedule.step(ms(2)), Step::Drain, "the first");
        drain(&mut schedule, 2, 0, &progress(9, NEARLY_EMPTY_FILL, false));
        assert_eq!((schedule.pause(), schedule.step(ms(3))), (ms(1), Step::Drain));
        drain(&mut schedule, 3, 0, &progress(9, 1000, true));
        assert_eq!((schedule.pause(), schedule.step(ms(3))), (ms(0), Step::Drain));
    }

    #[test]
    fn nearly_empty_rings_wait_until_the_interval_ends() {
        let mut schedule = Schedule::new(false, Duration::ZERO);
        drain(&mut schedule, 0, 1, &progress(9, NEARLY_EMPTY_FILL - 1, false));
        assert_eq!(schedule.pause(), ms(2));
        assert_eq!(
            schedule.step(ms(19)),
            Step::Check { files: false },
            "20 times the drain's 1 ms"
        );
        assert_eq!(schedule.step(ms(20)), Step::Check { files: true });
        assert_eq!(schedule.step(ms(49)), Step::Check { files: true });
        assert_eq!(schedule.step(ms(50)), Step::Drain);
        assert!(Schedule::may_wait(NEARLY_EMPTY_FILL - 1) && !Schedule::may_wait(NEARLY_EMPTY_FILL));
    }

    #[test]
    fn an_idle_program_is_checked_less_often() {
        let mut schedule = Schedule::new(false, Duration::ZERO);
        drain(&mut schedule, 0, 0, &progress(9, 0, false));
        drain(&mut schedule, 2000, 0, &progress(0, 0, false));
        assert_eq!(schedule.step(ms(2049)), Step::Check { files: true }, "not idle yet");
        drain(&mut schedule, 2050, 0, &progress(0, 0, false));
        assert_eq!(schedule.pause(), ms(3));
        let steps = [2053, 2056, 2059].map(|now| schedule.step(ms(now)));
        assert_eq!(steps, [true, false, true].map(|files| Step::Check { files }));
        assert_eq!(schedule.step(ms(2250)), Step::Drain);
        drain(&mut schedule, 2250, 0, &progress(1, 0, false));
        assert_eq!(schedule.pause(), ms(2), "it resumed");
    }

    #[test]
    fn expensive_checks_lengthen_the_pause_up_to_a_limit() {
        let pause = |is_recorded: bool, cost: u64, idle: u64| {
            let mut schedule = Schedule::new(is_recorded, Duration::ZERO);
            drain(&mut schedule, 0, 0, &progress(1, 0, false));
            schedule.step(ms(2));
            schedule.step(ms(4));
            // The mean of two checks; the average with the 0 before is half of it.
            schedule.drain_begins(ms(idle), Duration::from_micros(cost * 4));
            schedule.drain_ends(ms(idle), Duration::ZERO, &progress(0, 0, false));
            schedule.pause()
        };
        assert_eq!([5, 15, 100].map(|cost| pause(false, cost, 50)), [2, 3, 4].map(ms));
        assert_eq!([5, 20, 100].map(|cost| pause(false, cost, 3000)), [3, 10, 32].map(ms));
        assert_eq!([5, 20, 100].map(|cost| pause(true, cost, 3000)), [3, 4, 4].map(ms));
    }

    #[test]
    fn health_is_read_twice_a_second_and_once_when_idle() {
        let mut schedule = Schedule::new(false, Duration::ZERO);
        let mut due = |now: u64, records: u64| {
            schedule.drain_begins(ms(now), Duration::ZERO);
            let is_due = schedule.takes_health();
            schedule.drain_ends(ms(now), Duration::ZERO, &progress(records, 0, false));
            is_due
        };
        assert_eq!([0, 499, 500, 700].map(|now| due(now, 1)), [true, false, true, false]);
        assert_eq!([2800, 3400, 3800].map(|now| due(now, 0)), [true, false, true]);
    }

    #[test]
    fn a_backlog_leaves_rings_unread_except_at_the_end() {
        assert!(!Schedule::leaves_rings(MAX_BACKLOG, false) && Schedule::leaves_rings(MAX_BACKLOG + 1, false));
        assert!(!Schedule::leaves_rings(MAX_BACKLOG + 1, true));
        let (more, none) = (progress(9, 9, true), progress(9, 9, false));
        assert!(Schedule::drains_again(MAX_FINAL_DRAINS, &more) && !Schedule::drains_again(1, &none));
        assert!(!Schedule::drains_again(MAX_FINAL_DRAINS + 1, &more));
    }
}
