//! Events: how the engines wake host threads that sleep in the driver.
//!
//! The rules are the driver's. At entry a pending set is consumed, and reset if the event is auto-reset. After that, a
//! set wakes all waiters and is kept only if nobody waited. Each event counts its sets as an age, and a waiter compares
//! with the age at its entry. Not modelled: memory exceptions, which never occur here.
//!
//! One rule is more lenient than the driver's. ROCr before event ages (such as 5.2.3) destroys a queue by waiting for a
//! signal whose event its handler thread waits for too. If the destroying thread is preempted between its check of the
//! signal and the driver, the handler takes the set first, and the destroying thread waits forever: one in a thousand
//! destructions on a busy machine, without any tool. A waiter that passes no age is therefore assumed to have seen
//! everything up to its thread's last return, and is released once if more has come since.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::model::model;

/// Interval at which an infinite wait checks again.
const A_WHILE: Duration = Duration::from_secs(30);

/// Maximum number of events per process: the page of mailboxes has no more.
const MAX_EVENTS: u32 = 4095;

/// Age of an event that was never set.
const FIRST_AGE: u64 = 1;

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Signals, and types that never occur here.
    Usual,
    /// The GPU was reset.
    HardwareException,
}

struct Event {
    kind: Kind,
    auto_reset: bool,
    pending: bool,
    age: u64,
    /// Waiters. Each sleeps separately, so a set does not wake waiters of other events, as in the driver.
    waiters: Vec<Arc<Condvar>>,
    /// Age at the last return from a wait, by thread.
    seen: HashMap<ThreadId, u64>,
}

#[derive(Default)]
struct Table {
    last_id: u32,
    events: HashMap<u32, Event>,
}

/// An event of a wait: id, the age that the caller saw last, and whether it is satisfied.
pub(crate) struct Awaited {
    /// The event.
    pub(crate) id: u32,
    /// Age that the caller has seen, zero if it passes none; updated for the caller.
    pub(crate) seen_age: u64,
    entry_age: u64,
    /// Whether it was set.
    pub(crate) done: bool,
}

impl Awaited {
    /// An event to wait for.
    pub(crate) fn new(id: u32, seen_age: u64) -> Self {
        Self {
            id,
            seen_age,
            entry_age: 0,
            done: false,
        }
    }
}

/// Result of a wait.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Enough events were set.
    Complete,
    /// Timeout.
    Timeout,
    /// An id is unknown.
    Unknown,
}

/// Condition of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// One event is sufficient.
    Any,
    /// All events.
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

    /// Creates an event; `None` if there are too many: the run-time then polls the signal. Ids start at one and are
    /// reused.
    pub(crate) fn create(&self, kind: Kind, auto_reset: bool) -> Option<u32> {
        let mut table = self.table();
        if table.events.len() >= model().events as usize {
            return None;
        }
        let mut id = table.last_id % MAX_EVENTS + 1;
        while table.events.contains_key(&id) {
            id = id % MAX_EVENTS + 1;
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

    /// Destroys an event; its waiters return.
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

    /// Sets all events of a type.
    pub(crate) fn set_all(&self, kind: Kind) {
        let mut table = self.table();
        let meant = table.events.values_mut().filter(|event| event.kind == kind);
        meant.for_each(Event::set);
    }

    /// Type of an event.
    pub(crate) fn kind(&self, id: u32) -> Option<Kind> {
        self.table().events.get(&id).map(|event| event.kind)
    }

    /// Resets an event.
    pub(crate) fn reset(&self, id: u32) -> bool {
        self.table()
            .events
            .get_mut(&id)
            .map(|event| event.pending = false)
            .is_some()
    }

    /// Waits; without a timeout, forever.
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
                age => age,
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

    /// Number of times that the calling thread has slept.
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
        // A waiter that is not woken sleeps once, and again each 30 s, however busy the machine is.
        const SETS: u32 = 500;
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
        let ids: Vec<_> = (0..MAX_EVENTS)
            .map(|_| events.create(Kind::Usual, true).unwrap())
            .collect();
        assert_eq!((ids[0], ids[4094], events.create(Kind::Usual, true)), (1, 4095, None));
        events.destroy(77);
        assert_eq!(events.create(Kind::Usual, true), Some(77));
    }
}
