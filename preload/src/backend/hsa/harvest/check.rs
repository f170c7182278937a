//! What is asked of completions while the program runs: do signals of the collector complete, and are their times possible?
//!
//! A signal that stays as it was for [`GRACE_TIME`] after a witness proved its dispatch complete is one that never comes. The
//! times of a GPU's first dispatches and of some later ones are looked at: zero, those of the slot's last dispatch, and times
//! before what was complete already make the process step down. How the GPU's clock and the host's differ does not matter.

use super::super::queue::Queue;
use crate::clock;
use crate::level::{self, Level, Reason};
use hsa_sys::abi::SignalHandle;
use roctop_ring::sync::{AtomicU64, Ordering};

/// How long a signal may stay as it was behind one that proves it, ns.
const GRACE_TIME: u64 = 20_000_000;
/// So long without a completion, and the next packets get a witness, ns.
const DOUBT_TIME: u64 = 10_000_000;

/// Dispatches before this sequence number will not be seen to complete. Under the harvester's lock.
pub(super) fn overdue(queue: &Queue, tail: u64, head: u64) -> Option<u64> {
    if tail == head {
        return None;
    }
    let proved = queue.witnesses.proved(tail, clock::boottime, GRACE_TIME)?;
    Some(proved.min(head))
}

/// A signal of ours did not come.
pub(super) fn never_came(queue: &Queue, signal: SignalHandle) {
    down(Reason::NeverCame, queue, signal);
}

/// Nothing of a queue completed in this pass, and something is in flight: for how long?
pub(super) fn wait(queue: &Queue, tail: u64) {
    let now = clock::boottime();
    let [seen, since] = &queue.still;
    if seen.load(Ordering::Relaxed) != tail + 1 {
        seen.store(tail + 1, Ordering::Relaxed);
        since.store(now, Ordering::Relaxed);
    } else if now.saturating_sub(since.load(Ordering::Relaxed)) > DOUBT_TIME {
        // Asked again only when as much time has passed.
        since.store(now, Ordering::Relaxed);
        queue.witnesses.doubt();
    }
}

/// From signals of ours to those that the run-time makes, and from these to the program's, when this signal of a queue's is of
/// the level that is now.
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
        // The next level's first dispatches are looked at, too.
        known.completed.store(0, Ordering::Relaxed);
    }
}

/// The first dispatches of a GPU that are looked at, and of later ones one in so many.
const FIRST: u64 = 64;
const EVERY: u64 = 4096;
/// Agents that are told apart.
const AGENTS: usize = 64;

/// What is known of a GPU's times. Under the harvester's lock.
struct Known {
    /// Dispatches that completed.
    completed: AtomicU64,
    /// The last good times: when they were seen, host ticks, and the latest end of all, agent ticks.
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

/// Is the next dispatch of a queue's GPU one to look at?
#[inline]
pub(super) fn is_due(queue: &Queue) -> bool {
    let Some(known) = known(queue) else { return false };
    let completed = known.completed.load(Ordering::Relaxed);
    known.completed.store(completed + 1, Ordering::Relaxed);
    completed < FIRST || completed.is_multiple_of(EVERY)
}

/// Looks at the times of a dispatch on a signal of ours: agent ticks, none where they are those of the dispatch before; when it
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
    /// A dispatch that was submitted after others were seen complete began after them. In the GPU's own ticks, so that it
    /// does not matter how its clock and the host's differ.
    fn is_possible(&self, ticks: [u64; 2], submit: u64, now: u64) -> bool {
        let [begin, end] = [ticks[0].min(ticks[1]), ticks[0].max(ticks[1])];
        let (seen, last) = (self.seen.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        let is_possible = submit <= seen || begin >= last;
        self.seen.store(now, Ordering::Relaxed);
        // What was wrong, that time or this one, is not known: the next is compared with this one alone.
        self.end
            .store(if is_possible { end.max(last) } else { end }, Ordering::Relaxed);
        is_possible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_submitted_after_others_were_seen_complete_began_after_them() {
        let known = Known {
            completed: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            end: AtomicU64::new(0),
        };
        assert!(known.is_possible([100, 110], 1, 5));
        // Together on the GPU: in any order, exchanged, at the same time.
        assert!(known.is_possible([90, 105], 2, 6));
        assert!(known.is_possible([110, 100], 3, 7));
        assert!(known.is_possible([110, 120], 8, 9));
        // The times of an earlier one.
        assert!(!known.is_possible([100, 110], 10, 11));
        assert!(known.is_possible([130, 140], 12, 13));
    }
}
