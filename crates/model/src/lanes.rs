//! All lanes: found by key, shared with snapshots, limited in their number of slices.

use std::sync::Arc;

use super::Store;
use super::collectives;
use super::lane::{Lane, LaneKey, Rooms, Slice};
use super::pyramid::Reach;
use roctop_trace::item::{Nanos, TextId};

/// A lane and its last snapshot.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) lane: Lane,
    shown: Arc<Lane>,
    pub(super) is_changed: bool,
}

impl Drawn {
    fn new(key: LaneKey, reach: Reach) -> Self {
        Self {
            lane: Lane::reaching(key, reach),
            shown: Arc::new(Lane::new(key)),
            is_changed: false,
        }
    }

    /// Forgets the oldest slices, see [`Lane::forget`]; returns their number.
    pub(super) fn forget(&mut self, before: Option<Nanos>, rooms: &mut Rooms) -> usize {
        let gone = self.lane.forget_in(before, rooms);
        self.is_changed |= gone > 0;
        gone
    }

    /// Adds slices; returns their number.
    pub(super) fn add(&mut self, slices: impl Iterator<Item = Slice>, rooms: &mut Rooms) -> usize {
        self.is_changed = true;
        let before = self.lane.total;
        self.lane.add_in(slices, rooms);
        (self.lane.total - before) as usize
    }

    /// A shared copy of the lane. Unchanged parts stay shared.
    pub(super) fn show(&mut self) -> Arc<Lane> {
        if std::mem::take(&mut self.is_changed) {
            self.lane.sum();
            self.shown = Arc::new(self.lane.clone());
        }
        self.shown.clone()
    }
}

/// Maximum id with an entry in the lookup caches.
const MAX_CACHED_ID: usize = 1 << 16;

pub(super) fn known_at(places: &[u32], id: u32) -> u32 {
    places.get(id as usize).copied().unwrap_or(u32::MAX)
}

pub(super) fn keep_at(places: &mut Vec<u32>, id: u32, value: u32) {
    let id = id as usize;
    if id < MAX_CACHED_ID {
        if places.len() <= id {
            places.resize(id + 1, u32::MAX);
        }
        places[id] = value;
    }
}

impl Store {
    pub(super) fn lane_id(&mut self, key: LaneKey) -> u32 {
        if let Some(&at) = self.lane_ids.get(&key) {
            return at;
        }
        if key.is_of_thread() && key != key.of_others() && self.reach.is_none() {
            self.make_room_for_thread();
        }
        self.lanes.push(Drawn::new(key, self.reach.unwrap_or_default()));
        let at = self.lanes.len() as u32 - 1;
        self.lane_ids.insert(key, at);
        at
    }

    /// Index of the lane with this key; `last` is the cached index.
    pub(super) fn lane_near(&mut self, key: LaneKey, last: u32) -> u32 {
        match self.lanes.get(last as usize) {
            Some(drawn) if drawn.lane.key == key => last,
            _ => self.lane_id(key),
        }
    }

    pub(super) fn slice(&mut self, key: LaneKey, slice: Slice) {
        if slice.span.end > 0 && self.options.timeline {
            let at = self.lane_id(key);
            let added = self.lanes[at as usize].add(std::iter::once(slice), &mut self.rooms);
            self.added(added);
        }
    }

    /// Counts a range of a lane by the row of its pattern.
    pub(super) fn count_range(&mut self, key: LaneKey, row: u32, text: TextId) {
        if let Some(&at) = self.lane_ids.get(&key) {
            self.lanes[at as usize].lane.count_range(row, text.0);
        }
    }

    /// Adds the collectives that are complete now to the lanes of their communicators.
    pub(super) fn collective_slices(&mut self) {
        if !self.collectives.has_done() {
            return;
        }
        for (collective, times) in self.collectives.take_done() {
            // They would hide the collectives; the threads have their calls.
            if collective.is_message_of_mpi() {
                continue;
            }
            let (key, slices) = collectives::slices(&collective, &times);
            slices.for_each(|slice| self.slice(key, slice));
        }
    }

    /// Counts slices that were added, and makes room for them.
    pub(super) fn added(&mut self, count: usize) {
        self.slices += count;
        self.explaining.slices += count;
        self.make_room();
    }

    /// Forgets slices if there are too many: those beyond the minimum age, and if there are none, the oldest of the
    /// fuller lanes.
    pub(super) fn make_room(&mut self) {
        if self.slices > self.options.slices {
            self.explain_in_time();
        }
        while self.slices > self.options.slices {
            let before = self.now.saturating_sub(self.options.keep);
            let mut gone = 0;
            for drawn in &mut self.lanes {
                gone += drawn.forget(Some(before), &mut self.rooms);
            }
            if gone == 0 {
                let kept = |drawn: &Drawn| drawn.lane.kept();
                let most = self.lanes.iter().map(kept).max().unwrap_or(0);
                for drawn in self.lanes.iter_mut().filter(|drawn| kept(drawn) > most / 8 * 7) {
                    gone += drawn.forget(None, &mut self.rooms);
                }
            }
            if gone == 0 {
                return;
            }
            self.slices -= gone.min(self.slices);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fresh, Options};
    use roctop_trace::item::{ApiCall, Item, Span, ThreadId};

    #[test]
    fn other_data_leave_less_memory_for_slices() {
        const MEMORY: u64 = 64 << 20;
        let slice = size_of::<Slice>() as u64;
        let mut store = Store::new(Options {
            slices: Options::slices_in(1 << 30),
            memory: Some(MEMORY),
            ..Options::default()
        });
        let calls = |store: &mut Store, numbers: std::ops::Range<u64>| {
            for begin in numbers {
                let span = Span { begin, end: begin + 1 };
                let thread = ThreadId(0);
                store.apply(&Item::Api(ApiCall {
                    thread,
                    span,
                    ..ApiCall::default()
                }));
            }
        };
        let kept = |store: &mut Store| store.snapshot(Fresh::All).lanes[0].kept() as u64;
        calls(&mut store, 1..200_001);
        store.uses(200_000 * slice + MEMORY / 4);
        assert_eq!(kept(&mut store), 200_000, "all fit");
        // What other data take is not available; what slices took is.
        let most = (MEMORY - MEMORY * 3 / 4) / slice;
        store.uses(200_000 * slice + MEMORY * 3 / 4);
        calls(&mut store, 200_001..300_001);
        let now = kept(&mut store);
        assert!(now <= most && now > most * 3 / 4, "{now} of {most}");
        store.uses(200_000 * slice + MEMORY * 3 / 4);
        calls(&mut store, 300_001..400_001);
        assert!(kept(&mut store) > most * 3 / 4, "memory that is reused counts once");
        store.uses(10 * MEMORY);
        assert!(kept(&mut store) > MEMORY / 8 / slice * 3 / 4, "an eighth at least");
    }
}
