//! Checks completions while the program runs: do the collector's signals complete, and are their times possible?
//!
//! A signal that has not completed [`GRACE_TIME`] after a witness proved its dispatch complete never will. The times of
//! a GPU's first dispatches and of some later ones are checked: zero, those of the slot's previous dispatch, and times
//! before earlier completions make the process step down. A skew between the GPU's and the host's clock does not
//! matter.

use super::super::queue::Queue;
use crate::clock;
use crate::level::{self, Level, Reason};
use hsa_sys::abi::SignalHandle;
use roctop_ring::sync::{AtomicU64, Ordering};

/// Maximum delay of a signal after a witness proved its dispatch complete, ns.
const GRACE_TIME: u64 = 20_000_000;
/// Time without a completion after which the next packets get a witness, ns.
const DOUBT_TIME: u64 = 10_000_000;

/// Dispatches before this sequence number will not be seen to complete. Under the harvester's lock.
pub(super) fn overdue(queue: &Queue, tail: u64, head: u64) -> Option<u64> {
    if tail == head {
        return None;
    }
    let proved = queue.witnesses.proved(tail, clock::boottime, GRACE_TIME)?;
    Some(proved.min(head))
}

/// A signal of the collector's did not complete.
pub(super) fn never_came(queue: &Queue, signal: SignalHandle) {
    down(Reason::NeverCame, queue, signal);
}

/// Tracks how long a queue has had no completion with work in flight.
pub(super) fn wait(queue: &Queue, tail: u64) {
    let now = clock::boottime();
    let [seen, since] = &*queue.still;
    if seen.load(Ordering::Relaxed) != tail + 1 {
        seen.store(tail + 1, Ordering::Relaxed);
        since.store(now, Ordering::Relaxed);
    } else if now.saturating_sub(since.load(Ordering::Relaxed)) > DOUBT_TIME {
        // The next check is after the same time again.
        since.store(now, Ordering::Relaxed);
        queue.witnesses.doubt();
    }
}

/// Steps down from the collector's signals to those of the run-time, and from these to the program's, if this signal of
/// a queue belongs to the current level.
fn down(reason: Reason, queue: &Queue, signal: SignalHandle) {
    let level = level::current();
    let next = match level {
        Level::Files | Level::Memory => Level::RunTime,
        Level::RunTime => Level::Program,
        _ => return,
    };
    let is_of_level = queue.known_level() == level && queue.slots.has(signal);
    if is_of_level
        && level::step_down(next, reason, queue.id)
        && let Some(known) = known(queue)
    {
        // The next level's first dispatches are checked, too.
        known.completed.store(0, Ordering::Relaxed);
    }
}

/// Number of first dispatches of a GPU that are checked, and interval of later checks.
const FIRST_CHECKS: u64 = 64;
const CHECK_INTERVAL: u64 = 4096;
/// Number of agents that are distinguished.
const AGENTS: usize = 64;

/// Known times of a GPU. Under the harvester's lock.
struct Known {
    /// Number of completed dispatches.
    completed: AtomicU64,
    /// Last valid times: when they were seen, host ticks, and the latest end, agent ticks.
    seen: AtomicU64,
    end: AtomicU64,
}

static KNOWN: [Known; AGENTS] = [const {
    Known {
        completed: AtomicU64::new(0),
        seen: AtomicU64::new(0),
        end: AtomicU64::new(0),
    }
}; AGENTS];

fn known(queue: &Queue) -> Option<&'static Known> {
    KNOWN.get(queue.agent.index as usize % AGENTS)
}

/// Whether the next dispatch of a queue's GPU is checked.
#[inline]
pub(super) fn is_due(queue: &Queue) -> bool {
    let Some(known) = known(queue) else { return false };
    let completed = known.completed.load(Ordering::Relaxed);
    known.completed.store(completed + 1, Ordering::Relaxed);
    completed < FIRST_CHECKS || completed.is_multiple_of(CHECK_INTERVAL)
}

/// Checks the times of a dispatch on a collector's signal: agent ticks, `None` if they equal those of the previous
/// dispatch; its submission; and whether they are valid times.
/// was submitted; and whether they are times at all.
#[cold]
pub(super) fn look(queue: &Queue, signal: SignalHandle, ticks: Option<[u64; 2]>, submit: u64, is_time: bool) {
    match ticks {
        None => down(Reason::StaleTimes, queue, signal),
        Some([0, 0]) => down(Reason::NoTimes, queue, signal),
        Some(ticks) if is_time => {
            let is_possible = known(queue).is_none_or(|known| known.is_possible(ticks, submit, clock::now()));
            if !is_possible {
                down(Reason::WrongTimes, queue, signal);
            }
        }
        Some(_) => {}
    }
}

impl Known {
    /// A dispatch that was submitted after others were seen complete begins after them. The comparison is in GPU ticks,
    /// so a skew between the clocks does not matter.
    fn is_possible(&self, ticks: [u64; 2], submit: u64, now: u64) -> bool {
        let [begin, end] = [ticks[0].min(ticks[1]), ticks[0].max(ticks[1])];
        let (seen, last) = (self.seen.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        let is_possible = submit <= seen || begin >= last;
        self.seen.store(now, Ordering::Relaxed);
        // It is unknown which of the two times was wrong: the next is compared with this one only.
        self.end
            .store(if is_possible { end.max(last) } else { end }, Ordering::Relaxed);
        is_possible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_submitted_after_completions_begins_after_them() {
        let known = Known {
            completed: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            end: AtomicU64::new(0),
        };
        assert!(known.is_possible([100, 110], 1, 5));
        // Concurrent on the GPU: any order, swapped, or equal.
        assert!(known.is_possible([90, 105], 2, 6));
        assert!(known.is_possible([110, 100], 3, 7));
        assert!(known.is_possible([110, 120], 8, 9));
        // Times of an earlier dispatch.
        assert!(!known.is_possible([100, 110], 10, 11));
        assert!(known.is_possible([130, 140], 12, 13));
    }
}
