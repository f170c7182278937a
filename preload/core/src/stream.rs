//! Streams by handle: each gets a dense number, and a new one when its handle is reused.

use crate::clock;
use crate::process::Process;
use roctop_ring::record::{Domain, Stream};
use roctop_ring::sync::{AtomicU64, Ordering};

const PLACES: usize = 4096;
const PROBES: usize = 64;
/// An entry whose stream was destroyed.
const GONE: u64 = u64::MAX;

/// `hipStreamLegacy`: another name of the null stream.
pub const LEGACY: u64 = 1;
/// `hipStreamPerThread`.
pub const PER_THREAD: u64 = 2;

/// Event of a stream, as in the record's `state`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Created or first seen.
    Seen = 1,
    /// Destroyed.
    Destroyed = 2,
    /// Named.
    Named = 3,
}

/// The table: handle and number side by side.
pub(crate) struct Streams {
    places: Vec<[AtomicU64; 2]>,
    next: AtomicU64,
}

impl Streams {
    pub(crate) fn new() -> Self {
        let mut places = Vec::new();
        places.resize_with(PLACES, || [const { AtomicU64::new(0) }; 2]);
        Self {
            places,
            next: AtomicU64::new(1),
        }
    }

    fn find(&self, key: u64) -> Option<&[AtomicU64; 2]> {
        for step in 0..PROBES {
            let place = self.places.get(start(key).wrapping_add(step) % PLACES)?;
            match place[0].load(Ordering::Acquire) {
                0 => return None,
                seen if seen == key => return Some(place),
                _ => {}
            }
        }
        None
    }
}

fn start(key: u64) -> usize {
    (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 40
}

/// A stream's key: its handle. The per-thread stream has one key per thread.
fn key(handle: u64, tid: u32) -> u64 {
    if handle == PER_THREAD {
        PER_THREAD | u64::from(tid) << 32
    } else {
        handle
    }
}

impl Process {
    /// The dense number of a stream plus one, for records; a new stream becomes a fact. The null stream is
    /// number 0.
    #[inline]
    pub fn stream(&self, handle: u64, tid: u32) -> u32 {
        if handle <= LEGACY {
            return 1;
        }
        let key = key(handle, tid);
        if let Some(place) = self.streams.find(key) {
            let number = place[1].load(Ordering::Acquire);
            if number != 0 {
                return number as u32 + 1;
            }
        }
        self.stream_seen(key, handle)
    }

    #[cold]
    fn stream_seen(&self, key: u64, handle: u64) -> u32 {
        for step in 0..PROBES {
            let Some(place) = self.streams.places.get(start(key).wrapping_add(step) % PLACES) else {
                break;
            };
            let seen = place[0].load(Ordering::Acquire);
            if seen == key {
                // Another thread is adding it: it stores the number at once, or has removed the entry, and then the key
                // is tested again.
                loop {
                    let number = place[1].load(Ordering::Acquire);
                    if number != 0 {
                        return number as u32 + 1;
                    }
                    if place[0].load(Ordering::Acquire) != key {
                        return self.stream_seen(key, handle);
                    }
                    std::hint::spin_loop();
                }
            }
            if seen != 0 && seen != GONE {
                continue;
            }
            if place[0]
                .compare_exchange(seen, key, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                let number = self.streams.next.fetch_add(1, Ordering::Relaxed);
                place[1].store(number, Ordering::Release);
                self.stream_fact(handle, number as u32, 0, Event::Seen);
                return number as u32 + 1;
            }
        }
        0
    }

    /// A stream was destroyed: its handle may be reused.
    pub fn stream_destroyed(&self, handle: u64, tid: u32) {
        if let Some(place) = self.streams.find(key(handle, tid)) {
            let number = place[1].swap(0, Ordering::AcqRel);
            place[0].store(GONE, Ordering::Release);
            self.stream_fact(handle, number as u32, 0, Event::Destroyed);
        }
    }

    /// A stream was named.
    pub fn stream_named(&self, handle: u64, tid: u32, name: &[u8]) {
        let number = self.stream(handle, tid);
        if number > 0 {
            self.stream_fact(handle, number - 1, self.intern(name), Event::Named);
        }
    }

    fn stream_fact(&self, handle: u64, id: u32, name: u32, event: Event) {
        let fact = Stream {
            handle,
            time: clock::now(),
            id,
            device: -1,
            name,
            state: event as u32,
        };
        let (head, payload) = (Stream::head(0, Domain::NONE), fact.payload());
        if event == Event::Named {
            self.fact(head, &payload);
        } else {
            self.minor_fact(head, &payload);
        }
    }
}
