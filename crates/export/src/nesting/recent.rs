//! The calls that began last, by correlation id: a table in which each one has one place, and takes it from the call
//! before.

use crate::records::RecordIds;
use roctop_ring::near;

/// Places at first and at most.
const MIN_PLACES: usize = 1 << 10;
const MAX_PLACES: usize = 1 << 18;
/// A thread's part of a correlation id; below it, a thread counts its calls.
const THREAD_SHIFT: u32 = 40;

/// Recent calls and what work inherits from them.
pub(super) struct Recent {
    /// Correlation id, 0 for none, and cause; a power of two.
    places: Vec<(u64, RecordIds)>,
    count: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            places: vec![(0, RecordIds::default()); MIN_PLACES],
            count: 0,
        }
    }
}

/// Consecutive calls of a thread have consecutive places.
const fn place(correlation: u64, places: usize) -> usize {
    let thread = (correlation >> THREAD_SHIFT).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    correlation.wrapping_add(thread) as usize & (places - 1)
}

impl Recent {
    /// What work inherits from a call; `None` if later calls have taken its place.
    pub(super) fn get(&self, correlation: u64) -> Option<&RecordIds> {
        let (known, cause) = self.places.get(place(correlation, self.places.len()))?;
        (*known == correlation).then_some(cause)
    }

    /// Prefetches the place of a call.
    #[inline]
    pub(super) fn fetch(&self, correlation: u64) {
        if let Some(place) = self.places.get(place(correlation, self.places.len())) {
            near::fetch(place);
        }
    }

    /// Adds a call.
    pub(super) fn put(&mut self, correlation: u64, cause: RecordIds) {
        if self.count >= self.places.len() && self.places.len() < MAX_PLACES {
            self.grow();
        }
        self.count += 1;
        let at = place(correlation, self.places.len());
        if let Some(taken) = self.places.get_mut(at) {
            *taken = (correlation, cause);
        }
    }

    fn grow(&mut self) {
        let larger = vec![(0, RecordIds::default()); 4 * self.places.len()];
        let known = std::mem::replace(&mut self.places, larger);
        for (correlation, cause) in known.into_iter().filter(|(correlation, _)| *correlation != 0) {
            let at = place(correlation, self.places.len());
            self.places[at] = (correlation, cause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_calls_of_each_thread_are_found() {
        let mut recent = Recent::default();
        let id = |thread: u64, number: u64| thread << THREAD_SHIFT | number;
        for number in 1..=100_000 {
            (1..=4).for_each(|thread| recent.put(id(thread, number), RecordIds::default()));
        }
        assert_eq!(recent.places.len(), MAX_PLACES);
        let found = |numbers: std::ops::RangeInclusive<u64>| {
            let ids = (1..=4).flat_map(|thread| numbers.clone().map(move |number| id(thread, number)));
            ids.filter(|id| recent.get(*id).is_some()).count()
        };
        assert_eq!(found(99_001..=100_000), 4000);
        assert!(found(1..=100_000) <= MAX_PLACES);
        assert!(recent.get(id(5, 1)).is_none());
    }
}
