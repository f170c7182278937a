//! What a thread knows of sites: for each known call, words of the stack that are equal if the call path is.
//!
//! A call is looked up by its return address and stack pointer. Calls that have these in common, as those through one
//! wrapper from two lines of a function, differ in other words of the stack; [`Split`] has the offsets of some that
//! differ, so that each call is found at once.

#![expect(unsafe_code, reason = "loads of the calling thread's own stack")]

use super::learn::Scratch;
use super::python::{Frames, Interpreter};
use super::{memory, mix};
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{Ordering, compiler_fence};

/// Maximum number of words that are compared.
pub(super) const WORDS: usize = 24;
/// Number of sets of calls; a set has two. A call is in one of two sets: with one set, three calls in turn that meet there would
/// forget each other, and each would be learned again each time.
const SETS: usize = 2048;
/// Number of places for splits.
const SPLITS: usize = 2048;
/// Factor by which known calls are checked sooner once stacks were overwritten.
pub(super) const SOONER: u64 = 32;
/// Maximum number of words by which calls are distinguished before they are compared.
const OFFSETS: usize = 4;

/// A word of the stack: its offset from the stack pointer in words, and its value.
pub(super) type StackWord = (u16, u64);

/// A call that the thread made. Four cache lines.
#[repr(C, align(64))]
struct KnownCall {
    /// Made of return address, stack pointer and the memory's owner; 0 for no call.
    tag: Cell<u64>,
    /// 1 if it was found since its sets were last full.
    used: Cell<u32>,
    site: Cell<u16>,
    /// Number of words, and of the first ones that can be read without a system call.
    count: Cell<u8>,
    near: Cell<u8>,
    offsets: [Cell<u16>; WORDS],
    words: [Cell<u64>; WORDS],
}

/// Words that are compared at once; the near ones are filled up with the first one.
const GROUP: usize = 4;
const _: () = assert!(WORDS.is_multiple_of(GROUP));

const _: () = assert!(size_of::<KnownCall>() == 256);

/// Offsets of words in which calls with the same return address and stack pointer differ.
#[repr(C)]
struct Split {
    /// As that of a call.
    tag: Cell<u64>,
    count: Cell<u16>,
    next: Cell<u16>,
    offsets: [Cell<u16>; OFFSETS],
    /// Of their Python frames only the innermost one counts.
    is_coarse: Cell<bool>,
}

/// All zero: nothing is known.
#[repr(C)]
pub(crate) struct Known {
    /// A number of the thread that uses this memory; what earlier ones knew does not count.
    owner: Cell<u64>,
    /// Known calls until the next stack is copied for comparison.
    countdown: Cell<u32>,
    /// Number of calls that were overwritten by others.
    evictions: Cell<u64>,
    /// Whether the thread learns a site, so that the caller is a signal handler.
    pub(super) is_learning: Cell<bool>,
    /// Lower and upper end of the thread's own stack, as far as it is known.
    pub(super) stack: Cell<[u64; 2]>,
    /// The interpreter whose frames are part of a call.
    pub(super) python: Cell<Option<&'static Interpreter>>,
    /// The thread's state of that interpreter, as it was last checked, and whether its frames may be read.
    pub(super) python_state: Cell<u64>,
    pub(super) has_frames: Cell<bool>,
    sets: [[KnownCall; 2]; SETS],
    splits: [Split; SPLITS],
    pub(super) scratch: UnsafeCell<Scratch>,
}

/// The word of the stack at this offset.
///
/// # Safety
/// The calling thread can read it.
#[inline(always)]
unsafe fn load(sp: u64, offset: u16) -> u64 {
    let address = sp.wrapping_add(8 * u64::from(offset)) as *const u64;
    // SAFETY: the caller's. Volatile, because the program's frames are no objects of this library.
    unsafe { address.read_volatile() }
}

impl KnownCall {
    /// Whether all words are equal.
    ///
    /// # Safety
    /// The entry is of this stack pointer and of the calling thread, which is in a call with that stack pointer.
    #[inline(always)]
    unsafe fn matches(&self, sp: u64) -> bool {
        let near = usize::from(self.near.get());
        let mut difference = 0;
        let (offsets, words) = (self.offsets.as_chunks::<GROUP>().0, self.words.as_chunks::<GROUP>().0);
        for (offsets, words) in offsets.iter().zip(words).take(near / GROUP) {
            for (offset, word) in offsets.iter().zip(words) {
                // SAFETY: near words are on the thread's own stack, which stays, or on the page of the stack pointer.
                difference |= unsafe { load(sp, offset.get()) } ^ word.get();
            }
        }
        difference == 0 && (near == usize::from(self.count.get()) || self.matches_far(sp))
    }

    /// As `matches`, for words of a stack that may have been replaced by a shorter one.
    #[cold]
    fn matches_far(&self, sp: u64) -> bool {
        let range = usize::from(self.near.get())..usize::from(self.count.get());
        let (Some(offsets), Some(words)) = (self.offsets.get(range.clone()), self.words.get(range)) else {
            return false;
        };
        let mut addresses = [0; WORDS];
        for (address, offset) in addresses.iter_mut().zip(offsets) {
            *address = sp.wrapping_add(8 * u64::from(offset.get()));
        }
        let mut is_equal = true;
        memory::gather(addresses.get(..offsets.len()).unwrap_or_default(), |at, bytes| {
            let word = words.get(at).map(Cell::get);
            is_equal &= bytes.is_some() && bytes.map(u64::from_le_bytes) == word;
        });
        is_equal
    }

    fn set(&self, tag: u64, site: u16, words: &[StackWord], near: usize) {
        // A signal handler in between finds no call here.
        self.tag.set(0);
        compiler_fence(Ordering::SeqCst);
        self.site.set(site);
        self.used.set(1);
        let (near_words, far_words) = words.split_at_checked(near).unwrap_or((words, &[]));
        let filled = near_words.len().next_multiple_of(GROUP) - near_words.len();
        let filling = near_words.iter().take(1).cycle().take(filled);
        let all = near_words.iter().chain(filling).chain(far_words);
        let mut kept = 0;
        for ((offset, word), (to_offset, to_word)) in all.zip(self.offsets.iter().zip(&self.words)) {
            to_offset.set(*offset);
            to_word.set(*word);
            kept += 1;
        }
        self.near.set((near_words.len() + filled).min(kept) as u8);
        self.count.set(kept as u8);
        compiler_fence(Ordering::SeqCst);
        self.tag.set(tag);
    }
}

/// A call whose site is not known to the thread, where it will be looked up.
#[derive(Clone, Copy)]
pub(super) struct Unknown {
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) python: Frames,
    /// Of its Python frames only the innermost one counts.
    pub(super) is_coarse: bool,
}

/// An odd number with bits everywhere.
const FACTOR: u64 = 0x9fb2_1c65_1e98_df25;

/// A number for a return address and a stack pointer: no two calls of a thread share it, unless their stack pointers
/// are a multiple of 16 MiB apart, and then their words differ.
#[inline(always)]
const fn key(ip: u64, sp: u64) -> u64 {
    (ip ^ sp.rotate_left(24)).wrapping_mul(FACTOR)
}

impl Known {
    /// Memory for a thread; `None` if there is none.
    pub(crate) fn new() -> Option<&'static Self> {
        // SAFETY: zero is valid: numbers and arrays of bytes. A child that forks has no reference to it.
        let known = unsafe { memory::zeroed::<Self>() }?;
        known.change_owner();
        known.restart_countdown(std::ptr::from_ref(known) as u64, false);
        Some(known)
    }

    /// Another thread uses this memory from now on.
    pub(crate) fn change_owner(&self) {
        self.owner.set(mix(self.owner.get(), 1));
        self.is_learning.set(false);
        self.stack.set([0; 2]);
        self.python_state.set(0);
    }

    /// The Python frames of the calling thread; `None` if its state must be checked first.
    #[inline(always)]
    pub(super) fn python_frames(&self) -> Option<Frames> {
        let Some(interpreter) = self.python.get() else {
            return Some(Frames::default());
        };
        let state = interpreter.state();
        if state == 0 {
            return Some(Frames::default());
        }
        if state != self.python_state.get() {
            return None;
        }
        if !self.has_frames.get() {
            return Some(Frames::default());
        }
        // SAFETY: the state is the thread's, and was checked.
        Some(unsafe { interpreter.frames(state) })
    }

    /// The tag of this key, which only this owner of the memory uses, and no call after a library is unloaded. Not a part of
    /// the key, so that the key is there sooner: two reads of the time stamp counter wait for all that is between them.
    #[inline(always)]
    fn tag(&self, key: u64) -> u64 {
        key ^ self.owner.get() ^ super::unloaded()
    }

    #[inline(always)]
    fn split(&self, key: u64) -> Option<&Split> {
        self.splits.get((key >> 42) as usize % SPLITS)
    }

    /// The sets of a key. Different bits choose the second one, so that calls with one set in common seldom share the other.
    #[inline(always)]
    fn sets_of(&self, key: u64) -> Option<[&[KnownCall; 2]; 2]> {
        let set = |bits: u64| self.sets.get(bits as usize % SETS);
        Some([set(key >> 53)?, set(key >> 31)?])
    }

    /// Where the calls with these words at the split's offsets may be, and their tag.
    ///
    /// # Safety
    /// As for [`Self::find`].
    #[inline(always)]
    unsafe fn place(&self, mut key: u64, sp: u64, outer: u64) -> Option<([&[KnownCall; 2]; 2], u64)> {
        let split = self.split(key)?;
        let is_split = split.tag.get() == self.tag(key);
        if !(is_split && split.is_coarse.get()) {
            key ^= outer;
        }
        let tag = self.tag(key);
        if is_split {
            for offset in split.offsets.iter().take(usize::from(split.count.get())) {
                // SAFETY: such offsets are near ones of a call with this stack pointer.
                key = (key ^ unsafe { load(sp, offset.get()) }).wrapping_mul(FACTOR);
            }
        }
        Some((self.sets_of(key)?, tag))
    }

    /// The site of a call that the thread made before.
    ///
    /// # Safety
    /// `sp` is the stack pointer of the call that the calling thread is in, which owns this memory.
    #[inline(always)]
    pub(super) unsafe fn find(&self, ip: u64, sp: u64) -> Option<u16> {
        let python = self.python_frames()?;
        let key = key(ip ^ python.inner, sp);
        // SAFETY: the caller's.
        let (sets, tag) = unsafe { self.place(key, sp, python.outer) }?;
        for call in sets.into_iter().flatten() {
            // SAFETY: as above.
            if call.tag.get() == tag && unsafe { call.matches(sp) } {
                call.used.set(1);
                return Some(call.site.get());
            }
        }
        None
    }

    /// Counts a known call; true if its stack is to be copied for comparison.
    #[inline(always)]
    pub(super) fn is_check_due(&self) -> bool {
        let left = self.countdown.get().wrapping_sub(1);
        self.countdown.set(left);
        left == 0
    }

    /// The next check comes after 512 to 1535 known calls, 1024 on average; or [`SOONER`]. A fixed number would hit the same
    /// call of a loop each time.
    pub(super) fn restart_countdown(&self, random: u64, is_soon: bool) {
        let calls = 512 + (mix(random, 1) >> 54) as u32;
        self.countdown.set(if is_soon { calls / SOONER as u32 } else { calls });
    }

    /// Remembers a call. The first `near` words can be read without a system call.
    ///
    /// # Safety
    /// As for [`Self::find`]; the words are those at `sp` now.
    pub(super) unsafe fn keep(&self, call: Unknown, site: u16, words: &[StackWord], near: usize) {
        let Unknown {
            ip,
            sp,
            python,
            is_coarse,
        } = call;
        let key = key(ip ^ python.inner, sp);
        if is_coarse && python.outer != 0 {
            self.change_split(key, |split| split.is_coarse.set(true));
        }
        if is_coarse && words.is_empty() {
            // All calls with this key have one site from now on, so they share one entry.
            self.change_split(key, |split| split.count.set(0));
            // SAFETY: the caller's.
            if let Some((sets, tag)) = unsafe { self.place(key, sp, python.outer) } {
                sets.into_iter()
                    .flatten()
                    .filter(|one| one.tag.get() == tag)
                    .for_each(|one| one.tag.set(0));
            }
        }
        for _ in 0..2 {
            // SAFETY: the caller's.
            let Some((sets, tag)) = (unsafe { self.place(key, sp, python.outer) }) else {
                return;
            };
            // SAFETY: the caller's.
            let Some(offset) = (unsafe { self.missing_offset(key, tag, sets[0], sp) }) else {
                return self.victim(sets).set(tag, site, words, near);
            };
            self.distinguish(key, offset);
        }
        // SAFETY: the caller's.
        if let Some((sets, tag)) = unsafe { self.place(key, sp, python.outer) } {
            self.victim(sets).set(tag, site, words, near);
        }
    }

    /// The offset of a word by which the call at this stack pointer should be distinguished from the two in its first set.
    /// `None` if it is distinguished already and has the set in common with them by chance: another word would move
    /// all calls with this key, and others would then share a set.
    ///
    /// # Safety
    /// As for [`Self::find`]; `set` and `tag` are those of the call.
    unsafe fn missing_offset(&self, key: u64, tag: u64, set: &[KnownCall; 2], sp: u64) -> Option<u16> {
        if set.iter().any(|one| one.tag.get() != tag) {
            return None;
        }
        let split = self.split(key).filter(|split| split.tag.get() == self.tag(key));
        let is_split_by = |offset: u16| {
            split.is_some_and(|split| {
                let mut offsets = split.offsets.iter().take(usize::from(split.count.get()));
                offsets.any(|one| one.get() == offset)
            })
        };
        let mut missing = None;
        let mut distinguished = 0;
        for one in set {
            let theirs = one.offsets.iter().zip(&one.words).take(usize::from(one.near.get()));
            let mut is_distinguished = false;
            for (offset, word) in theirs {
                // SAFETY: near words, as in `matches`.
                if unsafe { load(sp, offset.get()) } == word.get() {
                    continue;
                }
                if is_split_by(offset.get()) {
                    is_distinguished = true;
                } else {
                    missing = missing.or(Some(offset.get()));
                }
            }
            distinguished += usize::from(is_distinguished);
        }
        missing.filter(|_| distinguished < set.len())
    }

    /// The entry of these sets to overwrite: an empty one, else one that was not found recently, else any.
    fn victim<'a>(&self, sets: [&'a [KnownCall; 2]; 2]) -> &'a KnownCall {
        let [[one, two], [three, four]] = sets;
        let all = [one, two, three, four];
        let free = all.iter().find(|one| one.tag.get() == 0);
        if let Some(free) = free.or_else(|| all.iter().find(|one| one.used.get() == 0)) {
            return free;
        }
        for one in all {
            one.used.set(0);
        }
        // Taken in turn, calls of a loop would overwrite each other each time.
        self.evictions.set(self.evictions.get().wrapping_add(1));
        match mix(self.evictions.get(), 1) >> 62 {
            0 => one,
            1 => two,
            2 => three,
            _ => four,
        }
    }

    /// From now on calls with this key are distinguished by the word at this offset too.
    fn distinguish(&self, key: u64, offset: u16) {
        self.change_split(key, |split| {
            let count = usize::from(split.count.get());
            let at = if count < OFFSETS {
                split.count.set(split.count.get() + 1);
                count
            } else {
                split.next.set(split.next.get().wrapping_add(1));
                usize::from(split.next.get()) % OFFSETS
            };
            if let Some(place) = split.offsets.get(at) {
                place.set(offset);
            }
        });
    }

    /// Changes how calls with this key are distinguished.
    fn change_split(&self, key: u64, change: impl FnOnce(&Split)) {
        let Some(split) = self.split(key) else { return };
        let tag = self.tag(key);
        // A signal handler in between finds no split here.
        let is_new = split.tag.replace(0) != tag;
        compiler_fence(Ordering::SeqCst);
        if is_new {
            split.count.set(0);
            split.next.set(0);
            split.is_coarse.set(false);
        }
        change(split);
        compiler_fence(Ordering::SeqCst);
        split.tag.set(tag);
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test that panics has failed")]
mod tests {
    use super::*;

    /// A stack of which each word can be chosen.
    fn stack(words: &mut [u64], changes: &[(u16, u64)]) -> u64 {
        for (at, word) in words.iter_mut().enumerate() {
            *word = at as u64;
        }
        for (at, word) in changes {
            if let Some(place) = words.get_mut(usize::from(*at)) {
                *place = *word;
            }
        }
        words.as_ptr() as u64
    }

    const IP: u64 = 0x5555_0000_1234;

    fn unknown(ip: u64, sp: u64) -> Unknown {
        Unknown {
            ip,
            sp,
            python: Frames::default(),
            is_coarse: false,
        }
    }

    #[test]
    fn known_calls_are_found_while_their_words_are_equal() {
        let Some(known) = Known::new() else { return };
        let mut words = [0; 64];
        let sp = stack(&mut words, &[(3, 77), (40, 78)]);
        let call = unknown(IP, sp);
        // SAFETY: the words exist.
        unsafe {
            assert_eq!(known.find(IP, sp), None);
            known.keep(call, 9, &[(3, 77), (40, 78)], 2);
            assert_eq!(known.find(IP, sp), Some(9));
            assert_eq!(known.find(IP + 4, sp), None);
        }
        for other in [[(3, 77), (40, 40)], [(3, 3), (40, 78)], [(3, 78), (40, 77)]] {
            let sp = stack(&mut words, &other);
            // SAFETY: as above.
            assert_eq!(unsafe { known.find(IP, sp) }, None);
        }
        let sp = stack(&mut words, &[(3, 77), (40, 78)]);
        // SAFETY: as above.
        assert_eq!(unsafe { known.find(IP, sp) }, Some(9));
        known.change_owner();
        // SAFETY: as above.
        assert_eq!(unsafe { known.find(IP, sp) }, None, "of another thread");
    }

    /// Calls that are not found in the last of 6 rounds, each with one call by every caller.
    fn forgotten(known: &Known, words: &mut [u64], callers: u16) -> usize {
        known.change_owner();
        let changes = |number: u16| [(5, 1000 + u64::from(number / 10)), (30, 2000 + u64::from(number % 10))];
        let mut missing = 0;
        for _ in 0..6 {
            missing = 0;
            for number in 0..callers {
                let sp = stack(words, &changes(number));
                // SAFETY: the words exist.
                unsafe {
                    if let Some(site) = known.find(IP, sp) {
                        assert_eq!(site, number + 1);
                    } else {
                        missing += 1;
                        known.keep(unknown(IP, sp), number + 1, &changes(number), 2);
                    }
                }
            }
        }
        missing
    }

    #[test]
    fn many_callers_of_one_wrapper_are_all_known() {
        let Some(known) = Known::new() else { return };
        // Whether calls share a set depends on the stack pointer.
        let mut memory = vec![0; 1024 + 64];
        for (callers, most, step) in [(100, 5, 1), (400, 20, 1), (1000, 20, 64)] {
            for at in (0..1024).step_by(step) {
                let missing = forgotten(known, &mut memory[at..at + 64], callers);
                assert!(missing < most, "{missing} of {callers} callers at {at}");
            }
        }
    }

    #[test]
    fn a_site_without_words_is_that_of_all_calls_with_its_key() {
        let Some(known) = Known::new() else { return };
        let mut words = [0; 64];
        forgotten(known, &mut words, 100);
        let sp = stack(&mut words, &[]);
        let call = Unknown {
            is_coarse: true,
            ..unknown(IP, sp)
        };
        // SAFETY: the words exist.
        unsafe { known.keep(call, 500, &[], 0) };
        for number in 0..200 {
            stack(&mut words, &[(5, 1000 + number / 10), (30, 2000 + number % 10)]);
            // SAFETY: as above.
            assert_eq!(unsafe { known.find(IP, sp) }, Some(500), "{number}");
        }
    }

    #[test]
    fn calls_of_many_addresses_are_known_at_once() {
        let Some(known) = Known::new() else { return };
        let mut words = [0; 64];
        let sp = stack(&mut words, &[(3, 77)]);
        let mut missing = 0;
        for _ in 0..6 {
            missing = 0;
            for number in 0..400_u16 {
                let ip = IP + (mix(u64::from(number), 1) & 0xff_ffff);
                // SAFETY: the words exist.
                unsafe {
                    if known.find(ip, sp) != Some(number) {
                        missing += 1;
                        known.keep(unknown(ip, sp), number, &[(3, 77)], 1);
                    }
                }
            }
        }
        assert!(missing < 20, "{missing} of 400 were forgotten");
    }

    #[test]
    fn far_words_are_compared_without_a_load() {
        let Some(known) = Known::new() else { return };
        let mut words = [0; 64];
        for near in 0..7 {
            let changes: Vec<(u16, u64)> = (0..7).map(|at| (at * 5, 900 + u64::from(at))).collect();
            let sp = stack(&mut words, &changes);
            known.change_owner();
            // SAFETY: the words exist.
            unsafe {
                known.keep(unknown(IP, sp), 4, &changes, near);
                assert_eq!(known.find(IP, sp), Some(4), "{near} near words");
            }
            for at in [0, 15, 30] {
                stack(&mut words, &changes);
                words[at] = 1;
                // SAFETY: as above.
                let found = unsafe { known.find(IP, sp) };
                assert_eq!(found, None, "{near} near words, word {at} differs");
            }
        }
        // The page after the last word need not exist.
        let page = memory_before_a_hole();
        let sp = page + 4096 - 16;
        // SAFETY: two words are readable from there; the third one is far.
        unsafe {
            known.keep(unknown(IP, sp), 5, &[(0, 0), (2, 0)], 1);
            assert_eq!(known.find(IP, sp), None);
        }
    }

    /// Address of a page before one that cannot be read.
    fn memory_before_a_hole() -> u64 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping, of which the second page becomes unreadable.
        unsafe {
            let both = libc::mmap(std::ptr::null_mut(), 8192, libc::PROT_READ, flags, -1, 0);
            libc::mprotect(both.wrapping_byte_add(4096), 4096, libc::PROT_NONE);
            both as u64
        }
    }

    #[test]
    fn checks_come_about_every_thousandth_call() {
        let Some(known) = Known::new() else { return };
        let mut due = 0u32;
        for call in 0..200_000u64 {
            if known.is_check_due() {
                due += 1;
                known.restart_countdown(call, false);
            }
        }
        assert!((150..260).contains(&due), "{due}");
    }
}
