//! How long threads had run, read a few times a second.

use std::sync::Arc;

use super::fx_hash::FastMap;
use roctop_trace::item::{ThreadId, ThreadTime};

/// Maximum number of readings kept per thread: ten minutes at five a second.
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
        // In halves, because dropping the first of many moves all others.
        if readings.len() == 2 * MAX_READINGS {
            readings.drain(..MAX_READINGS);
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
