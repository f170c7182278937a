//! How often frames are sent, by what the terminal and the line to it take. Pure: the clock comes from outside.
//!
//! Frames are left out, never queued: what waits in a queue is old when it is seen, and so is the answer to a key.

use std::collections::VecDeque;
use std::time::Duration;

/// A terminal that takes longer for a frame gets fewer frames.
const SLOW_FRAME: Duration = Duration::from_millis(30);
/// After this time without a slow frame, frames are sent more often again.
const SPEED_UP_AFTER: Duration = Duration::from_secs(3);
/// Divisors of the frame rate: 10, 5, 2, 1 a second.
const RATE_DIVISORS: [u32; 4] = [1, 2, 5, 10];
/// The screen shows its lag beyond this.
const MAX_LAG: Duration = Duration::from_millis(500);
/// The byte rate is an average over this time.
const RATE_WINDOW: Duration = Duration::from_secs(4);
/// Bytes of a first frame, about: the limit always admits as many.
const FIRST_FRAME_BYTES: f64 = 16_384.0;

/// Watches what is sent.
#[derive(Debug)]
pub struct FramePacing {
    /// Bytes a second at most.
    most: Option<f64>,
    /// Bytes that may be sent now.
    credit: f64,
    credited: Duration,
    step: usize,
    /// When the last slow frame was.
    slow: Duration,
    /// Since when a frame has been wanted that was not sent.
    wanted: Option<Duration>,
    /// How long the last frame took from being wanted to being taken.
    took: Duration,
    sent: VecDeque<(Duration, usize)>,
}

impl FramePacing {
    /// At most `most` bytes a second; none: no limit.
    pub fn new(most: Option<u64>) -> Self {
        let most = most.map(|most| most as f64);
        Self {
            most,
            credit: most.map_or(0.0, |most| most.max(FIRST_FRAME_BYTES)),
            credited: Duration::ZERO,
            step: 0,
            slow: Duration::ZERO,
            wanted: None,
            took: Duration::ZERO,
            sent: VecDeque::new(),
        }
    }

    /// Whether the frame that is wanted may be sent now. `has_room` says that the terminal takes bytes; `is_answer` that the
    /// frame answers a key: for those a debt of two seconds is made.
    pub fn may_send(&mut self, now: Duration, has_room: bool, is_answer: bool) -> bool {
        self.wanted.get_or_insert(now);
        if !has_room {
            self.slower(now);
            return false;
        }
        let Some(most) = self.most else { return true };
        let passed = now.saturating_sub(self.credited).as_secs_f64();
        self.credit = (self.credit + passed * most).min(most.max(FIRST_FRAME_BYTES));
        self.credited = now;
        self.credit > if is_answer { -2.0 * most } else { 0.0 }
    }

    /// A frame was sent.
    pub fn sent(&mut self, began: Duration, ended: Duration, bytes: usize) {
        self.credit -= bytes as f64;
        if ended.saturating_sub(began) > SLOW_FRAME {
            self.slower(ended);
        } else if ended.saturating_sub(self.slow) > SPEED_UP_AFTER {
            self.step = self.step.saturating_sub(1);
            self.slow = ended;
        }
        self.took = ended.saturating_sub(self.wanted.take().unwrap_or(began));
        self.sent.push_back((ended, bytes));
    }

    /// The divisor of the frame rate.
    pub fn slowed(&self) -> u32 {
        RATE_DIVISORS[self.step]
    }

    /// How old what is on screen is, when that is worth a word; `behind` is how old the newest of it was when it was drawn.
    pub fn lag(&self, now: Duration, behind: Duration) -> Option<Duration> {
        let waits = self.wanted.map_or(Duration::ZERO, |wanted| now.saturating_sub(wanted));
        let late = self.took.max(waits) + behind;
        (late > MAX_LAG).then_some(late)
    }

    /// Bytes a second of late.
    pub fn rate(&mut self, now: Duration) -> f64 {
        let from = now.saturating_sub(RATE_WINDOW);
        while self.sent.front().is_some_and(|sent| sent.0 < from) {
            self.sent.pop_front();
        }
        let bytes: usize = self.sent.iter().map(|sent| sent.1).sum();
        bytes as f64 / RATE_WINDOW.min(now).as_secs_f64().max(1.0)
    }

    fn slower(&mut self, now: Duration) {
        // One slow frame is one step, however often it is asked meanwhile.
        if now.saturating_sub(self.slow) > Duration::from_millis(500) || self.step == 0 {
            self.step = (self.step + 1).min(RATE_DIVISORS.len() - 1);
            self.slow = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_slow_terminal_gets_fewer_frames_and_a_fast_one_all() {
        let mut pacing = FramePacing::new(None);
        let mut rates = Vec::new();
        for second in 1..=4 {
            assert!(pacing.may_send(at(second * 1000), true, false));
            pacing.sent(at(second * 1000), at(second * 1000 + 80), 5000);
            rates.push(pacing.slowed());
        }
        assert_eq!(rates, [2, 5, 10, 10]);
        for tenth in 50..200 {
            pacing.may_send(at(tenth * 100), true, false);
            pacing.sent(at(tenth * 100), at(tenth * 100 + 1), 500);
        }
        assert_eq!(pacing.slowed(), 1, "three seconds a step");
        assert_eq!(pacing.lag(at(20_000), Duration::ZERO), None);
    }

    #[test]
    fn what_is_old_is_said_to_be() {
        let mut pacing = FramePacing::new(None);
        assert!(!pacing.may_send(at(1000), false, false), "the terminal takes nothing");
        assert_eq!(pacing.lag(at(1400), Duration::ZERO), None);
        assert_eq!(pacing.lag(at(2200), Duration::ZERO), Some(at(1200)));
        assert!(pacing.may_send(at(2200), true, false));
        pacing.sent(at(2200), at(2300), 4000);
        assert_eq!(
            pacing.lag(at(2300), Duration::ZERO),
            Some(at(1300)),
            "the frame itself came so late"
        );
        assert!(pacing.may_send(at(2400), true, false));
        pacing.sent(at(2400), at(2401), 40);
        assert_eq!(pacing.lag(at(2401), Duration::ZERO), None);
        assert_eq!(
            pacing.lag(at(2401), at(700)),
            Some(at(701)),
            "the records themselves are old"
        );
    }

    #[test]
    fn no_more_bytes_are_sent_than_were_allowed() {
        let mut pacing = FramePacing::new(Some(8000));
        let (mut bytes, mut frames) = (0, 0);
        for tenth in 0..600 {
            if pacing.may_send(at(tenth * 100), true, false) {
                pacing.sent(at(tenth * 100), at(tenth * 100), 3000);
                (bytes, frames) = (bytes + 3000, frames + 1);
            }
        }
        let most = 60 * 8000 + FIRST_FRAME_BYTES as usize + 3000;
        assert!(
            bytes <= most && bytes > 60 * 7000,
            "{bytes} bytes in a minute, {frames} frames"
        );
        assert!((7000.0..9000.0).contains(&pacing.rate(at(60_000))));
    }

    #[test]
    fn a_key_is_answered_though_nothing_is_left() {
        let mut pacing = FramePacing::new(Some(1000));
        assert!(pacing.may_send(at(0), true, false));
        pacing.sent(at(0), at(0), 17_000);
        assert!(!pacing.may_send(at(100), true, false));
        assert!(pacing.may_send(at(100), true, true));
    }
}
