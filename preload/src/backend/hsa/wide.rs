//! Reservations of more packets than calls can be stored for: HIP 10 reserves all packets of a graph at once.

use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of known large reservations per queue; the oldest is replaced.
const RESERVATIONS: usize = 4;

/// Packets from `first` up to `end`, and their call.
#[derive(Clone, Copy)]
struct Reservation {
    first: u64,
    end: u64,
    note: [u64; 2],
}

/// The large reservations of a queue.
pub(crate) struct Wide {
    /// Index after the last packet of all; 0 while there was none.
    end: AtomicU64,
    latest: Mutex<[Reservation; RESERVATIONS]>,
}

impl Wide {
    pub(crate) const fn new() -> Self {
        const NONE: Reservation = Reservation {
            first: 0,
            end: 0,
            note: [0; 2],
        };
        Self {
            end: AtomicU64::new(0),
            latest: Mutex::new([NONE; RESERVATIONS]),
        }
    }

    /// Stores which call reserved many packets. On the thread that reserved them and has not written them.
    #[cold]
    pub(crate) fn note(&self, first: u64, count: u64, note: [u64; 2]) {
        let end = first.saturating_add(count);
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.rotate_right(1);
        if let Some(place) = latest.first_mut() {
            *place = Reservation { first, end, note };
        }
        self.end.fetch_max(end, Ordering::Release);
    }

    /// Call of a packet of a large reservation.
    #[inline]
    pub(crate) fn noted(&self, index: u64) -> Option<[u64; 2]> {
        (index < self.end.load(Ordering::Acquire))
            .then(|| self.find(index))
            .flatten()
    }

    #[cold]
    fn find(&self, index: u64) -> Option<[u64; 2]> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let found = latest.iter().find(|one| (one.first..one.end).contains(&index));
        found.map(|one| one.note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_of_a_large_reservation_has_its_note() {
        let wide = Wide::new();
        assert_eq!(wide.noted(0), None);
        wide.note(10, 5000, [1, 2]);
        wide.note(6000, 3000, [3, 4]);
        let noted = [9, 10, 5009, 5010, 6000, 8999, 9000].map(|index| wide.noted(index));
        let (one, other) = (Some([1, 2]), Some([3, 4]));
        assert_eq!(noted, [None, one, one, None, other, other, None]);
    }

    #[test]
    fn the_oldest_large_reservation_gives_way() {
        let wide = Wide::new();
        for number in 0..=RESERVATIONS as u64 {
            wide.note(number * 5000, 5000, [number, 0]);
        }
        assert_eq!(wide.noted(0), None);
        assert_eq!(wide.noted(5000), Some([1, 0]));
    }
}
