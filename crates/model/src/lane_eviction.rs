//! Merges the lanes of idle threads into one: a program may start threads without end.

use super::Store;
use super::lane::Lane;
use super::lanes::Drawn;

/// Number of thread lanes that are always kept.
const MIN_THREAD_LANES: usize = 1024;
/// Number of thread lanes beyond which the longest idle ones are merged, however short that is.
const MAX_THREAD_LANES: usize = 8 * MIN_THREAD_LANES;
/// Idle time after which a lane may be merged, ns: most such threads have ended.
const IDLE_NANOS: u64 = 60_000_000_000;

/// Number of thread lanes, and the number at which they are next examined.
#[derive(Debug, Default)]
pub(super) struct ThreadLanes {
    count: usize,
    next: usize,
}

impl Store {
    /// Makes room for a new thread lane by merging others. Indexes of lanes change.
    pub(super) fn make_room_for_thread(&mut self) {
        self.of_threads.count += 1;
        if self.of_threads.count <= self.of_threads.next.max(MIN_THREAD_LANES) {
            return;
        }
        let is_one = |lane: &Lane| lane.key.is_of_thread() && lane.key != lane.key.of_others();
        let lanes = self.lanes.iter().map(|drawn| &drawn.lane);
        let mut ends: Vec<_> = lanes.filter(|lane| is_one(lane)).map(|lane| lane.last).collect();
        ends.sort_unstable();
        let surplus = match ends.len() {
            count if count > MAX_THREAD_LANES => count - MAX_THREAD_LANES / 2,
            _ => 0,
        };
        let quiet = self.now.saturating_sub(IDLE_NANOS);
        let before = ends.get(surplus).map_or(quiet, |&end| quiet.max(end));
        let (gone, left): (Vec<Drawn>, Vec<Drawn>) = std::mem::take(&mut self.lanes)
            .into_iter()
            .partition(|drawn| is_one(&drawn.lane) && drawn.lane.last < before);
        self.lanes = left;
        let numbered = self.lanes.iter().enumerate();
        self.lane_ids = numbered.map(|(at, drawn)| (drawn.lane.key, at as u32)).collect();
        let merged = gone.len();
        for mut drawn in gone {
            let others = self.lane_id(drawn.lane.key.of_others()) as usize;
            self.lanes[others].lane.absorb(&mut drawn.lane);
            self.lanes[others].is_changed = true;
            self.slices = self.slices.saturating_sub(drawn.lane.kept());
        }
        self.of_threads.count = ends.len() - merged;
        self.of_threads.next = self.of_threads.count + self.of_threads.count / 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fresh, LaneKey, Options};
    use roctop_trace::item::{ApiCall, Item, Span, ThreadId};

    #[test]
    fn thread_lanes_are_bounded() {
        let mut store = Store::new(Options::default());
        let (second, threads) = (1_000_000_000, 3000);
        let call = |thread, begin| {
            Item::Api(ApiCall {
                thread: ThreadId(thread),
                span: Span {
                    begin,
                    end: begin + second / 4,
                },
                ..ApiCall::default()
            })
        };
        for number in 0..threads {
            let begin = (10 + u64::from(number)) * second;
            store.apply(&call(number + 1, begin));
            store.apply(&call(0, begin));
        }
        let snap = store.snapshot(Fresh::All);
        assert!(snap.lanes.len() <= MIN_THREAD_LANES + 2, "{}", snap.lanes.len());
        let lane = |thread| snap.lane(LaneKey::Api(thread, 0));
        assert_eq!(lane(ThreadId(0)).map(|lane| lane.total), Some(u64::from(threads)));
        assert!(lane(ThreadId(threads)).is_some() && lane(ThreadId(1)).is_none());
        // The merged lane keeps the whole past.
        let others = lane(LaneKey::OTHERS).expect("the others");
        let all: u64 = snap.lanes.iter().map(|lane| lane.total).sum();
        assert_eq!(all, 2 * u64::from(threads));
        let past = others.columns(0, 100_000 * second, 1, |_| true)[0].sums;
        assert_eq!(u64::from(past.count), others.total);
        assert!(past.busy.abs_diff(others.total * second / 4) < second, "{past:?}");
    }

    #[test]
    fn busy_threads_keep_their_lanes_up_to_a_limit() {
        let mut store = Store::new(Options::default());
        let call = |thread: u32| {
            Item::Api(ApiCall {
                thread: ThreadId(thread),
                span: Span {
                    begin: 1_000 + u64::from(thread),
                    end: 2_000 + u64::from(thread),
                },
                ..ApiCall::default()
            })
        };
        (0..2 * MIN_THREAD_LANES as u32).for_each(|thread| store.apply(&call(thread)));
        assert_eq!(store.snapshot(Fresh::All).lanes.len(), 2 * MIN_THREAD_LANES);
        (0..4 * MAX_THREAD_LANES as u32).for_each(|thread| store.apply(&call(thread)));
        assert!(store.snapshot(Fresh::All).lanes.len() <= 2 * MAX_THREAD_LANES);
    }
}
