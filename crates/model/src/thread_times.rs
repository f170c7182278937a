//! How long threads had run, read a few times a second.

use std::sync::Arc;

use super::fx_hash::FastMap;
use roctop_trace::item::{ThreadId, ThreadTime};

/// Number of readings per thread of which none is dropped: two and a half minutes at twenty a second. Of older ones every
/// second is, again and again.
const MAX_READINGS: usize = 3000;
/// Maximum number of threads.
const MAX_THREADS: usize = 256;

/// Readings by thread, in order of time.
#[derive(Clone, Debug, Default)]
pub struct ThreadTimes(FastMap<u32, Arc<Vec<ThreadTime>>>);

impl ThreadTimes {
    pub(super) fn add(&mut self, time: &ThreadTime) {
        if self.0.len() >= MAX_THREADS && !self.0.contains_key(&time.thread.0) {
            return;
        }
        let readings = Arc::make_mut(self.0.entry(time.thread.0).or_default());
        if readings.last().is_some_and(|last| last.at >= time.at) {
            return;
        }
        if readings.len() == 2 * MAX_READINGS {
            thin(readings, MAX_READINGS);
        }
        readings.push(*time);
    }

    /// A copy that shares the readings.
    pub(super) fn values(&self) -> Self {
        self.clone()
    }

    /// Readings of a thread.
    pub fn of(&self, thread: ThreadId) -> &[ThreadTime] {
        self.0.get(&thread.0).map_or(&[], |readings| readings)
    }
}

/// Drops every second of the first `count` readings. The times that they count are sums since the thread's start, so what
/// stays says how long it ran in between.
fn thin(readings: &mut Vec<ThreadTime>, count: usize) {
    let mut at = 0;
    readings.retain(|_| {
        at += 1;
        at > count || at % 2 == 1
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_a_long_run_reach_its_begin() {
        let mut times = ThreadTimes::default();
        for at in 1..=20 * MAX_READINGS as u64 {
            times.add(&ThreadTime {
                at,
                running: at / 2,
                ..ThreadTime::default()
            });
        }
        let kept = times.of(ThreadId(0));
        assert!(kept.len() <= 2 * MAX_READINGS, "{}", kept.len());
        assert_eq!(kept.first().map(|time| time.at), Some(1));
        let recent = &kept[kept.len() - MAX_READINGS..];
        assert!(recent.windows(2).all(|pair| pair[1].at == pair[0].at + 1));
        assert!(
            kept.windows(2)
                .all(|pair| pair[1].at > pair[0].at && pair[1].running >= pair[0].running)
        );
    }
}
