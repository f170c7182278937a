//! Events: how the engines wake host threads that sleep in the driver.
//!
//! The rules are the driver's. At entry a pending set is taken, and reset if the event resets itself; after that a set
//! wakes **every** waiter and is kept only when nobody waited. Each event counts its sets as an age, and a waiter compares
//! with the age at its entry. Absent: exceptions of memory, which never happen here.
//!
//! One rule is kinder than the driver's. ROCr before event ages (5.2.3 for one) destroys a queue by a wait for a signal whose
//! event its own handler thread waits for too. Preempted between its look at the signal and the driver, the destroyer comes
//! after the handler has taken the set, and waits for ever: on a busy machine one of a thousand destroys, with no tool at all.
//! So whoever tells no age is taken to have seen what there was when its thread last came back, and is let go once if more
//! has come since.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::model::model;

/// A wait for ever looks again this often.
const A_WHILE: Duration = Duration::from_secs(30);

/// Events of a process: the page of mailboxes has no more.
const MOST: u32 = 4095;

/// Of an event that was never set.
const FIRST_AGE: u64 = 1;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Signals, and what is never told here.
    Usual,
    /// The GPU was reset.
    HardwareException,
}

struct Event {
    kind: Kind,
    auto_reset: bool,
    pending: bool,
    age: u64,
    /// Who waits. Each waiter sleeps apart: a set wakes no other event's, as in the driver.
    waiters: Vec<Arc<Condvar>>,
    /// By thread, the age when it last came back from a wait.
    seen: HashMap<ThreadId, u64>,
}

#[derive(Default)]
struct Table {
    last_id: u32,
    events: HashMap<u32, Event>,
}

/// One event of a wait: its id, the age that the caller saw last, and whether it is satisfied.
pub(crate) struct Awaited {
    /// Which event.
    pub(crate) id: u32,
    /// The age that the caller has seen, zero when it does not tell; updated for the caller.
    pub(crate) seen_age: u64,
    entry_age: u64,
    /// Whether it was set.
    pub(crate) done: bool,
}

impl Awaited {
    /// An event that is to be waited for.
    pub(crate) fn new(id: u32, seen_age: u64) -> Self {
        Self {
            id,
            seen_age,
            entry_age: 0,
            done: false,
        }
    }
}

/// How a wait ended.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Enough events were set.
    Complete,
    /// The time was over.
    Timeout,
    /// An id is unknown.
    Unknown,
}

/// Which events a wait needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// One is enough.
    Any,
    /// Every one.
    All,
}

/// The events of a process.
#[derive(Default)]
pub(crate) struct Events {
    table: Mutex<Table>,
}

impl Events {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an event, none when there are too many: the run-time then does with a signal that is polled. Ids start at
    /// one and are used again.
    pub(crate) fn create(&self, kind: Kind, auto_reset: bool) -> Option<u32> {
        let mut table = self.table();
        if table.events.len() >= model().events as usize {
            return None;
        }
        let mut id = table.last_id % MOST + 1;
        while table.events.contains_key(&id) {
            id = id % MOST + 1;
        }
        table.last_id = id;
        let event = Event {
            kind,
            auto_reset,
            pending: false,
            age: FIRST_AGE,
            waiters: Vec::new(),
            seen: HashMap::new(),
        };
        table.events.insert(id, event);
        Some(id)
    }

    /// Ends an event; whoever waits for it comes back.
    pub(crate) fn destroy(&self, id: u32) -> bool {
        let Some(event) = self.table().events.remove(&id) else {
            return false;
        };
        event.wake();
        true
    }

    /// Sets an event.
    pub(crate) fn set(&self, id: u32) -> bool {
        self.table().events.get_mut(&id).map(Event::set).is_some()
    }

    /// Sets all events of a kind.
    pub(crate) fn set_all(&self, kind: Kind) {
        let mut table = self.table();
        let meant = table.events.values_mut().filter(|event| event.kind == kind);
        meant.for_each(Event::set);
    }

    /// What an event is about.
    pub(crate) fn kind(&self, id: u32) -> Option<Kind> {
        self.table().events.get(&id).map(|event| event.kind)
    }

    /// Takes a set back.
    pub(crate) fn reset(&self, id: u32) -> bool {
        self.table()
            .events
            .get_mut(&id)
            .map(|event| event.pending = false)
            .is_some()
    }

    /// Waits; `timeout` none is for ever.
    pub(crate) fn wait(&self, awaited: &mut [Awaited], need: Need, timeout: Option<Duration>) -> Outcome {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut table = self.table();
        if awaited.iter().any(|one| !table.events.contains_key(&one.id)) {
            return Outcome::Unknown;
        }
        let woken = Arc::new(Condvar::new());
        table.enter(awaited, &woken);
        let outcome = loop {
            if satisfied(awaited, need) {
                break Outcome::Complete;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                break Outcome::Timeout;
            }
            let left = left.unwrap_or(A_WHILE);
            table = woken
                .wait_timeout(table, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            table.look(awaited);
        };
        table.leave(awaited, &woken);
        outcome
    }
}

fn satisfied(awaited: &[Awaited], need: Need) -> bool {
    match need {
        Need::Any => awaited.is_empty() || awaited.iter().any(|one| one.done),
        Need::All => awaited.iter().all(|one| one.done),
    }
}

impl Event {
    fn set(&mut self) {
        self.age += 1;
        self.pending = !self.auto_reset || self.waiters.is_empty();
        self.wake();
    }

    fn wake(&self) {
        self.waiters.iter().for_each(|waiter| waiter.notify_one());
    }
}

impl Table {
    fn enter(&mut self, awaited: &mut [Awaited], woken: &Arc<Condvar>) {
        for one in awaited {
            let Some(event) = self.events.get_mut(&one.id) else {
                continue;
            };
            one.entry_age = event.age;
            let seen = match one.seen_age {
                0 => event
                    .seen
                    .get(&std::thread::current().id())
                    .copied()
                    .unwrap_or(FIRST_AGE),
                told => told,
            };
            one.done = event.pending || seen != event.age;
            if event.auto_reset {
                event.pending = false;
            }
            event.waiters.push(Arc::clone(woken));
        }
    }

    fn look(&self, awaited: &mut [Awaited]) {
        for one in awaited {
            one.done |= self.events.get(&one.id).is_none_or(|event| event.age != one.entry_age);
        }
    }

    fn leave(&mut self, awaited: &mut [Awaited], woken: &Arc<Condvar>) {
        for one in awaited {
            let Some(event) = self.events.get_mut(&one.id) else {
                continue;
            };
            event.waiters.retain(|waiter| !Arc::ptr_eq(waiter, woken));
            event.seen.insert(std::thread::current().id(), event.age);
            if one.seen_age != 0 {
                one.seen_age = event.age;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    const SOON: Option<Duration> = Some(Duration::from_millis(1));

    #[test]
    fn a_set_without_waiters_is_kept_for_the_next_one_only() {
        let events = Events::default();
        let id = events.create(Kind::Usual, true).unwrap();
        events.set(id);
        assert_eq!(
            events.wait(&mut [Awaited::new(id, 0)], Need::Any, SOON),
            Outcome::Complete
        );
        assert_eq!(
            events.wait(&mut [Awaited::new(id, 0)], Need::Any, SOON),
            Outcome::Timeout
        );
    }

    #[test]
    fn a_set_wakes_every_waiter_and_is_not_kept() {
        let events = Events::default();
        let id = events.create(Kind::Usual, true).unwrap();
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| events.wait(&mut [Awaited::new(id, 0)], Need::Any, None)))
                .collect();
            while events.table().events[&id].waiters.len() < 4 {
                std::thread::yield_now();
            }
            events.set(id);
            for waiter in waiters {
                assert_eq!(waiter.join().unwrap(), Outcome::Complete);
            }
        });
        assert!(!events.table().events[&id].pending);
    }

    /// How often the calling thread has slept.
    #[expect(unsafe_code, reason = "the system's count is a foreign function's")]
    fn sleeps() -> i64 {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the structure has room for the answer; zeroed memory is a valid one.
        unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init().ru_nvcsw
        }
    }

    #[test]
    fn a_set_wakes_no_waiter_of_another_event() {
        const SETS: u32 = 2000;
        let events = Events::default();
        let (busy, quiet) = (
            events.create(Kind::Usual, true).unwrap(),
            events.create(Kind::Usual, true).unwrap(),
        );
        let has_waiter = |id| !events.table().events[&id].waiters.is_empty();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let before = sleeps();
                events.wait(&mut [Awaited::new(quiet, 0)], Need::Any, None);
                sleeps() - before
            });
            scope.spawn(|| {
                let mut awaited = [Awaited::new(busy, FIRST_AGE)];
                while !is_over.load(Ordering::Relaxed) {
                    events.wait(&mut awaited, Need::Any, SOON);
                }
            });
            while !has_waiter(quiet) {
                std::thread::yield_now();
            }
            for _ in 0..SETS {
                while !has_waiter(busy) {
                    std::thread::yield_now();
                }
                events.set(busy);
            }
            is_over.store(true, Ordering::Relaxed);
            events.set(quiet);
            let slept = sleeper.join().unwrap();
            assert!(slept < 100, "slept {slept} times through {SETS} sets of another event");
        });
    }

    #[test]
    fn a_set_that_another_took_is_not_missed() {
        let events = Events::default();
        let id = events.create(Kind::Usual, true).unwrap();
        let look = || events.wait(&mut [Awaited::new(id, 0)], Need::Any, SOON);
        assert_eq!(look(), Outcome::Timeout);
        events.set(id);
        std::thread::scope(|scope| assert_eq!(scope.spawn(look).join().unwrap(), Outcome::Complete));
        assert_eq!((look(), look()), (Outcome::Complete, Outcome::Timeout));
    }

    #[test]
    fn an_age_that_the_caller_has_not_seen_counts_as_set() {
        let events = Events::default();
        let id = events.create(Kind::Usual, true).unwrap();
        events.set(id);
        events.reset(id);
        let mut awaited = [Awaited::new(id, 1)];
        assert_eq!(events.wait(&mut awaited, Need::All, SOON), Outcome::Complete);
        assert_eq!(awaited[0].seen_age, 2);
        assert_eq!(events.wait(&mut awaited, Need::All, SOON), Outcome::Timeout);
    }

    #[test]
    fn waiting_for_all_needs_all_and_an_unknown_id_is_told() {
        let events = Events::default();
        let (one, two) = (
            events.create(Kind::Usual, true).unwrap(),
            events.create(Kind::Usual, false).unwrap(),
        );
        events.set(one);
        let mut both = [Awaited::new(one, 0), Awaited::new(two, 0)];
        assert_eq!(events.wait(&mut both, Need::All, SOON), Outcome::Timeout);
        events.set(one);
        events.set(two);
        let mut both = [Awaited::new(one, 0), Awaited::new(two, 0)];
        assert_eq!(events.wait(&mut both, Need::All, SOON), Outcome::Complete);
        assert_eq!(
            events.wait(&mut [Awaited::new(99, 0)], Need::Any, SOON),
            Outcome::Unknown
        );
    }

    #[test]
    fn the_last_event_is_refused_and_a_freed_id_is_used_again() {
        let events = Events::default();
        let ids: Vec<_> = (0..MOST).map(|_| events.create(Kind::Usual, true).unwrap()).collect();
        assert_eq!((ids[0], ids[4094], events.create(Kind::Usual, true)), (1, 4095, None));
        events.destroy(77);
        assert_eq!(events.create(Kind::Usual, true), Some(77));
    }
}
