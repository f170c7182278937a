//! Whether the other end is heard, and how its clock differs.

use crate::transport::Clock;
use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Between two pings.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(1);
/// A connection that is not heard for so long is given up.
const SILENCE: Duration = Duration::from_millis(3500);
/// One that ends after this time without a word has been silent; one that ends earlier has been closed.
const DOUBT: Duration = Duration::from_secs(2);
/// If this process itself was late by this, it may have been stopped: it listens first.
const OWN_STALL: Duration = Duration::from_secs(2);
/// Exchanges of pings whose best counts.
const EXCHANGES: usize = 32;

/// CLOCK_REALTIME, ns.
pub(crate) fn realtime() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as u64)
}

/// When the other end was heard last.
#[derive(Debug)]
pub(crate) struct Pulse {
    heard: Instant,
    ticked: Instant,
}

impl Pulse {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            heard: now,
            ticked: now,
        }
    }

    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Whether the end of the connection, which has come now, follows a silence.
    pub(crate) fn was_silent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) > DOUBT
    }

    /// Called once in [`PING_INTERVAL`]. True if the other end is silent.
    pub(crate) fn is_silent(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.ticked) > OWN_STALL {
            self.heard = now;
        }
        self.ticked = now;
        now.saturating_duration_since(self.heard) > SILENCE
    }
}

/// Exchanges of pings with one other end.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    /// The last ping: when it was sent, by both clocks.
    sent: Option<(u64, Instant)>,
    /// Round trip and offset, ns; the newest at the end.
    last: VecDeque<(u64, i64)>,
}

impl Exchanges {
    /// A new ping. An earlier one without answer counts no more.
    pub(crate) fn ping(&mut self, now: Instant) -> u64 {
        let sent = realtime();
        self.sent = Some((sent, now));
        sent
    }

    /// The answer: the ping's time and the other's. `None` if it answers no ping of ours.
    pub(crate) fn pong(&mut self, sent: u64, received: u64, now: Instant) -> Option<Clock> {
        let (_, began) = self.sent.take_if(|(own, _)| *own == sent)?;
        let round_trip = now.saturating_duration_since(began).as_nanos() as u64;
        let offset = i128::from(received) - i128::from(sent) - i128::from(round_trip / 2);
        let offset = offset.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        if self.last.len() == EXCHANGES {
            self.last.pop_front();
        }
        self.last.push_back((round_trip, offset));
        let (round_trip, offset_ns) = *self.last.iter().min()?;
        Some(Clock {
            offset_ns,
            error_ns: round_trip.div_ceil(2),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_only_while_this_end_listened() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut pulse = Pulse::new(begin);
        let silent: Vec<u64> = (1000..=5000)
            .step_by(1000)
            .filter(|ms| pulse.is_silent(at(*ms)))
            .collect();
        assert_eq!(silent, [4000, 5000]);
        // After ten seconds in which this end was stopped, the other has its time again.
        assert!(!pulse.is_silent(at(14_500)) && !pulse.is_silent(at(15_500)));
        pulse.heard(at(16_000));
        assert!(!pulse.was_silent(at(17_900)) && pulse.was_silent(at(18_100)));
    }

    #[test]
    fn the_shortest_exchange_gives_the_clock() {
        let mut exchanges = Exchanges::default();
        let begin = Instant::now();
        let mut exchange = |round_trip: u64, ahead: u64| {
            let sent = exchanges.ping(begin);
            let now = begin + Duration::from_nanos(round_trip);
            exchanges.pong(sent, sent + ahead, now)
        };
        let clock = |offset_ns, error_ns| Some(Clock { offset_ns, error_ns });
        assert_eq!(exchange(1000, 7000), clock(6500, 500));
        assert_eq!(exchange(5000, 9900), clock(6500, 500));
        assert_eq!(exchange(200, 6600), clock(6500, 100));
        // Another's time can be anything; an answer to no ping says nothing.
        let sent = exchanges.ping(begin);
        assert_eq!(exchanges.pong(sent + 1, 0, begin), None);
        assert!(exchanges.pong(sent, u64::MAX, begin).is_some());
        assert_eq!(exchanges.pong(sent, 0, begin), None);
    }
}
