//! Communicators of RCCL: numbers each one's operations, so that the viewer can match them across processes.
//!
//! All ranks of a communicator call its collectives in the same order, so a collective is identified by the communicator
//! and its number. What one rank sends to another is received in the same order. The numbers are counted here and not by
//! the viewer, because records may be lost, and while recording is off there are none.
//!
//! A communicator is identified by a hash: of its unique id, or of its parent's identity and what distinguishes a split
//! from its siblings. The program's unique id itself is a secret of the job and is not recorded here.

#![expect(
    unsafe_code,
    reason = "reads what a call stored, and asks RCCL for the rank of a new communicator"
)]

use super::gate;
use crate::clock;
use crate::collector::{self, Call};
use crate::guard::Errno;
use crate::process::{self, Process};
use crate::thread::{self, Thread};
use hip_sys::function::{ArgumentLocation, Communication, Role};
use roctop_ring::record::{self, Communicator, Domain, communicator};
use roctop_ring::sync::{AtomicU64, Ordering};

/// Maximum number of communicators in use at the same time.
const PLACES: usize = 1024;
/// Maximum number of directions of a communicator to or from a peer, for the whole process.
const DIRECTIONS: usize = 8192;
/// Maximum number of communicators that are being created in groups.
const PENDING: usize = 64;
/// Places that a search looks at.
const PROBES: usize = 32;
/// A place whose communicator was released: a search goes on behind it, and another communicator may take it.
const GONE: u64 = u64::MAX;
/// `ncclInProgress`: the call continues in the background.
const IN_PROGRESS: i32 = 7;
/// RCCL's number of `ncclGroupEnd`.
const GROUP_END: u16 = 14;
/// Words of a unique id.
const ID_WORDS: u8 = 16;
/// Maximum number of excluded ranks that identify a shrunk communicator, and of communicators created by one call.
const MAX_LIST: usize = 4096;

/// A communicator in use.
struct Slot {
    handle: AtomicU64,
    number: AtomicU64,
    identity: AtomicU64,
    /// Collectives called.
    collectives: AtomicU64,
    /// Communicators split from it.
    children: AtomicU64,
}

static SLOTS: [Slot; PLACES] = [const {
    Slot {
        handle: AtomicU64::new(0),
        number: AtomicU64::new(0),
        identity: AtomicU64::new(0),
        collectives: AtomicU64::new(0),
        children: AtomicU64::new(0),
    }
}; PLACES];

/// A direction of messages: communicator, peer and way as the key, and the number of messages.
type Direction = [AtomicU64; 2];

/// The directions of all communicators.
static MESSAGES: [Direction; DIRECTIONS] = [const { [const { AtomicU64::new(0) }; 2] }; DIRECTIONS];

/// Creations in groups, which store the communicator at the end of the group: thread, where it is stored, identity,
/// state, and correlation id.
static CREATIONS: [[AtomicU64; 5]; PENDING] = [const { [const { AtomicU64::new(0) }; 5] }; PENDING];

/// Number of the last communicator.
static LAST: AtomicU64 = AtomicU64::new(0);
/// Number of calls that created communicators for all ranks.
static ALL: AtomicU64 = AtomicU64::new(0);

const fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 29
}

fn start(key: u64) -> usize {
    mix(0, key) as usize >> 20
}

fn find(handle: u64) -> Option<&'static Slot> {
    for step in 0..PROBES {
        let slot = SLOTS.get(start(handle).wrapping_add(step) % PLACES)?;
        match slot.handle.load(Ordering::Acquire) {
            0 => return None,
            seen if seen == handle => return Some(slot),
            _ => {}
        }
    }
    None
}

/// A communicator as it is recorded; fields that are the table's are 0.
fn add(process: &Process, mut fact: Communicator) -> Option<&'static Slot> {
    let Communicator { handle, identity, .. } = fact;
    if handle == 0 || handle == GONE {
        return None;
    }
    // The handle of a communicator whose release was not seen.
    if let Some(old) = find(handle) {
        old.handle.store(GONE, Ordering::Release);
    }
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    fact.number = number as u32;
    fact.time = clock::now();
    process.minor_fact(Communicator::head(0, Domain::RCCL), &fact.payload());
    for step in 0..PROBES {
        let slot = SLOTS.get(start(handle).wrapping_add(step) % PLACES)?;
        let seen = slot.handle.load(Ordering::Acquire);
        // No other thread adds this handle now: RCCL has just given it to this one.
        let is_free = seen == 0 || seen == GONE;
        let claimed = GONE - 1;
        let claim = |slot: &Slot| {
            let result = slot
                .handle
                .compare_exchange(seen, claimed, Ordering::AcqRel, Ordering::Relaxed);
            result.is_ok()
        };
        if is_free && claim(slot) {
            slot.number.store(number, Ordering::Relaxed);
            slot.identity.store(identity, Ordering::Relaxed);
            slot.collectives.store(0, Ordering::Relaxed);
            slot.children.store(0, Ordering::Relaxed);
            slot.handle.store(handle, Ordering::Release);
            return Some(slot);
        }
    }
    None
}

/// The communicator with this handle. One that is unknown was created unseen, or is garbage.
#[inline]
fn known(handle: u64) -> Option<&'static Slot> {
    find(handle).or_else(|| seen(handle))
}

#[cold]
fn seen(handle: u64) -> Option<&'static Slot> {
    let _errno = Errno::keep();
    let fact = Communicator {
        handle,
        rank: u32::MAX,
        state: communicator::SEEN,
        ..Communicator::default()
    };
    add(process::get()?, fact)
}

/// The counter of messages between a communicator and a peer.
fn messages(number: u64, peer: i32, role: Role) -> Option<&'static AtomicU64> {
    let direction = u64::from(role == Role::Send);
    let key = number << 33 | u64::from(peer.cast_unsigned()) << 1 | direction | 1 << 63;
    count_of(&MESSAGES, key)
}

/// The count with this key, which gets a place at its first use. Threads that share a communicator take turns, as RCCL
/// requires; so a key is entered by one thread at a time.
fn count_of(directions: &[Direction], key: u64) -> Option<&AtomicU64> {
    let place = |step: usize| directions.get(start(key).wrapping_add(step) % directions.len());
    let mut free = None;
    for step in 0..PROBES {
        let [held, count] = place(step)?;
        match held.load(Ordering::Acquire) {
            seen if seen == key => return Some(count),
            0 => {
                free = free.or(Some(step));
                break;
            }
            GONE => free = free.or(Some(step)),
            _ => {}
        }
    }
    // Other communicators may take the places behind meanwhile.
    for step in free?..PROBES {
        let [held, count] = place(step)?;
        let seen = held.load(Ordering::Acquire);
        if matches!(seen, 0 | GONE) {
            match held.compare_exchange(seen, key, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(count),
                Err(seen) if seen == key => return Some(count),
                Err(_) => {}
            }
        }
    }
    None
}

/// Frees the directions of a communicator that is released.
fn free_directions(directions: &[Direction], number: u64) {
    for [key, count] in directions {
        let held = key.load(Ordering::Relaxed);
        if held != 0 && held != GONE && (held & !(1 << 63)) >> 33 == number {
            // The next owner of the place sees zero.
            count.store(0, Ordering::Relaxed);
            key.store(GONE, Ordering::Release);
        }
    }
}

/// The counter that numbers this operation.
#[inline]
fn counter(slot: &'static Slot, role: Role, peer: i32) -> Option<&'static AtomicU64> {
    match role {
        Role::Send | Role::Receive => messages(slot.number.load(Ordering::Relaxed), peer, role),
        _ => Some(&slot.collectives),
    }
}

fn byte(word: u64) -> u8 {
    u8::try_from(word as u32).unwrap_or(u8::MAX)
}

/// A call begins; its stream is noted with the thread. `fetch` returns an argument word.
#[inline(never)]
pub(super) fn begin(communication: &Communication, op: u16, call: &Call, fetch: impl Fn(ArgumentLocation) -> u64) {
    let thread = call.thread;
    // RCCL calls its own functions, too. They belong to the program's call.
    let outer = thread.communication.get();
    if outer != 0 && call.parent == outer {
        return;
    }
    thread.communication.set(call.correlation);
    let Communication { role, .. } = *communication;
    let [depth, group] = thread.group.get();
    let found = match role {
        Role::GroupStart => {
            let number = if depth == 0 { call.correlation as u32 } else { group };
            thread.group.set([depth + 1, number]);
            return;
        }
        Role::GroupEnd => {
            thread.group.set([depth.saturating_sub(1), group]);
            if depth != 1 {
                return;
            }
            record::Communication {
                op: GROUP_END,
                peer: -1,
                group,
                ..record::Communication::default()
            }
        }
        Role::Collective | Role::Send | Role::Receive => {
            let Some(slot) = known(fetch(communication.communicator)) else {
                return;
            };
            let peer = match communication.peer {
                ArgumentLocation::None => -1,
                place => fetch(place) as i32,
            };
            let reduction = match communication.reduction {
                ArgumentLocation::None => u8::MAX,
                place => byte(fetch(place)),
            };
            let sequence = counter(slot, role, peer).map_or(0, |count| count.fetch_add(1, Ordering::Relaxed) + 1);
            record::Communication {
                op,
                peer,
                reduction,
                stream: thread.origin().stream(),
                sequence: sequence as u32,
                count: fetch(communication.count),
                datatype: byte(fetch(communication.datatype)),
                communicator: slot.number.load(Ordering::Relaxed) as u32,
                group: if depth == 0 { 0 } else { group },
                ..record::Communication::default()
            }
        }
        Role::Release => return released(fetch(communication.communicator), call.correlation),
        Role::Create | Role::CreateFrom | Role::CreateAll | Role::Split | Role::Shrink => return,
    };
    let found = record::Communication {
        start: call.start,
        correlation: call.correlation,
        ..found
    };
    collector::communication(thread, Domain::RCCL, &found);
}

/// A call that is not recorded begins: its operation counts all the same. True if the call must be recorded even now,
/// because no other record names the communicator.
#[cold]
pub(super) fn begin_unrecorded(communication: &Communication, fetch: impl Fn(ArgumentLocation) -> u64) -> bool {
    match communication.role {
        Role::Collective | Role::Send | Role::Receive => {
            let count = known(fetch(communication.communicator))
                .and_then(|slot| counter(slot, communication.role, fetch(communication.peer) as i32));
            if let Some(count) = count {
                count.fetch_add(1, Ordering::Relaxed);
            }
            false
        }
        Role::GroupStart | Role::GroupEnd => {
            let Some(thread) = thread::existing() else { return false };
            let [depth, group] = thread.group.get();
            let depth = match communication.role {
                Role::GroupStart => depth + 1,
                _ => depth.saturating_sub(1),
            };
            thread.group.set([depth, group]);
            // The communicators that the group has created are stored only now.
            depth == 0 && communication.role == Role::GroupEnd && is_creating(thread.tid())
        }
        Role::Release => {
            released(fetch(communication.communicator), 0);
            false
        }
        _ => true,
    }
}

#[cold]
fn released(handle: u64, correlation: u64) {
    let _errno = Errno::keep();
    let (Some(slot), Some(process)) = (find(handle), process::get()) else {
        return;
    };
    let number = slot.number.load(Ordering::Relaxed);
    slot.handle.store(GONE, Ordering::Release);
    free_directions(&MESSAGES, number);
    let fact = Communicator {
        handle,
        correlation,
        number: number as u32,
        identity: slot.identity.load(Ordering::Relaxed),
        time: clock::now(),
        rank: u32::MAX,
        state: communicator::RELEASED,
        ..Communicator::default()
    };
    process.minor_fact(Communicator::head(0, Domain::RCCL), &fact.payload());
}

/// A call returned an error: its operation takes no part, and the next one gets its number.
#[cold]
pub(super) fn failed(communication: &Communication, call: &Call, status: i32, fetch: impl Fn(ArgumentLocation) -> u64) {
    if communication.role == Role::GroupEnd && status != IN_PROGRESS {
        return forget_creations(call.thread.tid());
    }
    let is_operation = matches!(communication.role, Role::Collective | Role::Send | Role::Receive);
    if status == IN_PROGRESS || !is_operation || call.thread.communication.get() != call.correlation {
        return;
    }
    let peer = fetch(communication.peer) as i32;
    let count = find(fetch(communication.communicator)).and_then(|slot| counter(slot, communication.role, peer));
    if let Some(count) = count {
        let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |known| known.checked_sub(1));
    }
    collector::withdraw(call);
}

/// A call that creates communicators returned, successfully or to continue in the background.
#[cold]
pub(super) fn created(communication: &Communication, call: &Call, fetch: impl Fn(ArgumentLocation) -> u64) {
    let Some(process) = process::get() else { return };
    if call.thread.communication.get() != call.correlation {
        return;
    }
    let place = fetch(communication.created);
    let size = fetch(communication.size);
    let mut fact = Communicator {
        correlation: call.correlation,
        rank: u32::MAX,
        ..Communicator::default()
    };
    match communication.role {
        Role::Create => {
            let ArgumentLocation::Stack(first) = communication.id else {
                return;
            };
            let word = |at: u8| fetch(ArgumentLocation::Stack(first + at));
            fact.identity = (0..ID_WORDS).fold(1, |hash, at| mix(hash, word(at)));
            (fact.rank, fact.size) = (fetch(communication.peer) as u32, size as u32);
            fact.state = communicator::CREATED;
        }
        Role::CreateFrom => {
            let id = fetch(communication.id) as *const u64;
            if id.is_null() {
                return;
            }
            // SAFETY: the call succeeded, so it was given at least one unique id.
            let words = (0..usize::from(ID_WORDS)).map(|at| unsafe { id.add(at).read_unaligned() });
            fact.identity = words.fold(2, mix);
            (fact.rank, fact.size) = (fetch(communication.peer) as u32, size as u32);
            fact.state = communicator::CREATED;
        }
        Role::CreateAll => return all(process, place as *const u64, size as u32, call),
        Role::Split => {
            let color = fetch(communication.peer) as i32;
            let Some(parent) = known(fetch(communication.communicator)) else {
                return;
            };
            let child = parent.children.fetch_add(1, Ordering::Relaxed);
            fact.identity = descendant(parent, child, u64::from(color.cast_unsigned()));
            fact.state = communicator::SPLIT;
            // `NCCL_SPLIT_NOCOLOR`: this rank is in no new communicator.
            if color < 0 {
                return;
            }
        }
        Role::Shrink => {
            let Some(parent) = known(fetch(communication.communicator)) else {
                return;
            };
            let list = fetch(communication.id) as *const i32;
            let child = parent.children.fetch_add(1, Ordering::Relaxed);
            let count = if list.is_null() {
                0
            } else {
                (size as usize).min(MAX_LIST)
            };
            // SAFETY: the call succeeded, so the list has as many ranks as the program says.
            let excluded = (0..count).map(|at| u64::from(unsafe { *list.add(at) }.cast_unsigned()));
            fact.identity = excluded.fold(descendant(parent, child, 1 << 32), mix);
            fact.state = communicator::SHRUNK;
        }
        _ => return,
    }
    put(process, place, fact, call.thread.tid());
}

/// Identity of a communicator made from another one.
fn descendant(parent: &Slot, child: u64, color: u64) -> u64 {
    match parent.identity.load(Ordering::Relaxed) {
        0 => 0,
        identity => mix(mix(mix(3, identity), child), color).max(1),
    }
}

/// Adds the communicator that a call stored at `place`, or waits for the end of the group.
fn put(process: &Process, place: u64, fact: Communicator, tid: u32) {
    if place == 0 {
        return;
    }
    // SAFETY: the call succeeded, so the program's variable for the communicator is there.
    let handle = unsafe { (place as *const u64).read_unaligned() };
    if handle != 0 {
        add(process, asked(Communicator { handle, ..fact }));
        return;
    }
    thread::at_end(forget_creations);
    for [owner, at, identity, state, correlation] in &CREATIONS {
        let taken = owner.compare_exchange(0, u64::from(tid) | 1 << 63, Ordering::AcqRel, Ordering::Relaxed);
        if taken.is_ok() {
            at.store(place, Ordering::Relaxed);
            identity.store(fact.identity, Ordering::Relaxed);
            state.store(u64::from(fact.state), Ordering::Relaxed);
            correlation.store(fact.correlation, Ordering::Relaxed);
            return;
        }
    }
}

/// Whether this thread's group creates communicators.
fn is_creating(tid: u32) -> bool {
    let own = u64::from(tid) | 1 << 63;
    CREATIONS.iter().any(|[owner, ..]| owner.load(Ordering::Relaxed) == own)
}

/// This thread's group has failed, or the thread ends inside of one: no communicator is stored, and the program's variables
/// may be gone by the next group.
fn forget_creations(tid: u32) {
    let own = u64::from(tid) | 1 << 63;
    for [owner, ..] in &CREATIONS {
        let _ = owner.compare_exchange(own, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// This thread's outermost group has ended: the communicators created in it are stored now.
#[cold]
pub(super) fn group_ended(thread: &Thread) {
    let ([depth, _], tid) = (thread.group.get(), thread.tid());
    if depth != 0 || !is_creating(tid) {
        return;
    }
    let own = u64::from(tid) | 1 << 63;
    for [owner, at, identity, state, correlation] in &CREATIONS {
        if owner.load(Ordering::Acquire) != own {
            continue;
        }
        let place = at.load(Ordering::Relaxed);
        let fact = Communicator {
            identity: identity.load(Ordering::Relaxed),
            state: state.load(Ordering::Relaxed) as u16,
            correlation: correlation.load(Ordering::Relaxed),
            rank: u32::MAX,
            // SAFETY: the group has just ended, so the program's variable for the communicator is still there.
            handle: unsafe { (place as *const u64).read_unaligned() },
            ..Communicator::default()
        };
        owner.store(0, Ordering::Release);
        if let (Some(process), true) = (process::get(), fact.handle != 0) {
            add(process, asked(fact));
        }
    }
}

/// The communicators of all ranks, in this process. No other process has them, so their identity is a number here.
fn all(process: &Process, list: *const u64, size: u32, call: &Call) {
    if list.is_null() {
        return;
    }
    let (started, _) = process.started_at();
    let number = ALL.fetch_add(1, Ordering::Relaxed);
    let identity = mix(mix(mix(4, started), u64::from(call.thread.tid())), number).max(1);
    for rank in 0..size.min(MAX_LIST as u32) {
        // SAFETY: the call succeeded, so it stored as many communicators.
        let handle = unsafe { list.add(rank as usize).read_unaligned() };
        let fact = Communicator {
            identity,
            handle,
            rank,
            size,
            correlation: call.correlation,
            state: communicator::ALL,
            ..Communicator::default()
        };
        add(process, fact);
    }
}

/// Asks RCCL for rank and size of a communicator that its creation does not contain.
fn asked(fact: Communicator) -> Communicator {
    if fact.rank != u32::MAX {
        return fact;
    }
    let ask = |name| {
        let function = gate::real_of(name)?;
        let mut answer = -1;
        // SAFETY: both functions have this signature; RCCL has just made the communicator.
        let function = unsafe { std::mem::transmute::<u64, unsafe extern "C" fn(u64, *mut i32) -> i32>(function) };
        // SAFETY: as above, and the answer has room.
        let status = thread::aside(|| unsafe { function(fact.handle, &raw mut answer) });
        u32::try_from(answer).ok().filter(|_| status == 0)
    };
    Communicator {
        rank: ask("ncclCommUserRank").unwrap_or(u32::MAX),
        size: ask("ncclCommCount").unwrap_or(0),
        ..fact
    }
}

/// Whether the return code means that the call succeeded or continues in the background.
#[inline]
pub(super) fn is_under_way(status: Option<i32>) -> bool {
    matches!(status, Some(0 | IN_PROGRESS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(places: usize) -> Vec<Direction> {
        (0..places).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect()
    }

    const fn key(number: u64, peer: u64) -> u64 {
        number << 33 | peer << 1 | 1 << 63
    }

    #[test]
    fn directions_of_released_communicators_are_free_again() {
        const PEERS: u64 = 16;
        let directions = table(256);
        for number in 1..1000 {
            for _ in 0..3 {
                for peer in 0..PEERS {
                    let count = count_of(&directions, key(number, peer));
                    assert!(count.map(|count| count.fetch_add(1, Ordering::Relaxed)).is_some());
                }
            }
            for peer in 0..PEERS {
                let count = count_of(&directions, key(number, peer));
                let count = count.map(|count| count.load(Ordering::Relaxed));
                assert_eq!(count, Some(3), "communicator {number}, peer {peer}");
            }
            free_directions(&directions, number);
        }
        let held = |place: &&Direction| !matches!(place[0].load(Ordering::Relaxed), 0 | GONE);
        assert_eq!(directions.iter().filter(held).count(), 0);
    }

    #[test]
    fn a_communicator_keeps_its_counts_when_another_is_released() {
        let directions = table(256);
        for number in 1..9 {
            for peer in 0..16 {
                let count = count_of(&directions, key(number, peer));
                let stored = count.map(|count| count.store(number * 100 + peer, Ordering::Relaxed));
                assert_eq!(stored, Some(()));
            }
        }
        for number in [2, 5, 7] {
            free_directions(&directions, number);
        }
        for number in [1, 3, 4, 6, 8] {
            for peer in 0..16 {
                let count = count_of(&directions, key(number, peer));
                let count = count.map(|count| count.load(Ordering::Relaxed));
                assert_eq!(count, Some(number * 100 + peer));
            }
        }
    }

    #[test]
    fn a_full_table_gives_no_count() {
        let directions = table(PROBES);
        let found = (0..2 * PROBES as u64).filter(|peer| count_of(&directions, key(1, *peer)).is_some());
        assert_eq!(found.count(), PROBES);
    }
}
