//! The slow path: gives a call its site, and copies the stack of a new one.
//!
//! The stack is copied by a system call that fails instead of faulting. Words in it that point behind a call instruction
//! may be return addresses; together with the call's own return address and its height on the stack they identify the
//! call path. Some are left over from earlier calls, so a call path may have several sites; a viewer that unwinds joins
//! them. A call with too many different sites gets further ones by fewer words.

#![expect(unsafe_code, reason = "the thread's scratch memory")]

use super::code::{BEFORE_BYTES, Before, Jump, TARGET_BYTES, before, jump};
use super::known::{Known, SOONER, StackWord, Unknown, WORDS};
use super::mappings::{Mappings, TEXT_BYTES, Table};
use super::python::{self, Frames, Python};
use super::{CallPlace, memory, mix};
use crate::clock;
use crate::thread::Thread;
use roctop_ring::record::MAX_SITE;
use roctop_ring::sites::{Call, Counter, MAX_STACK, SitesFile, SitesWriter};
use roctop_ring::sync::{AtomicU64, Ordering};

/// Maximum number of words of a stack that are taken for return addresses.
const CANDIDATES: usize = 256;
/// Attempts to find the return addresses of a stack while other threads replace the tables of mappings.
const ATTEMPTS: usize = 8;
/// Of more words than a thread compares, this number of the nearest ones is used; the others are the farthest.
const NEAREST: usize = 14;
/// Of a call from Python all are the nearest ones: its frames distinguish the outer part, and the interpreter takes many near
/// words. This number of them is used whether or not they can be return addresses: a function may have left by a jump.
const NEAREST_KEPT: usize = 4;
/// Number of sites with the same return address and height from which on words are left out that need not be return
/// addresses.
const MANY: u64 = 128;
/// As [`MANY`], from which on only the nearest [`FEW_WORDS`] words are used.
const VERY_MANY: u64 = 1024;
const FEW_WORDS: usize = 3;
/// As [`MANY`], from which on no words are used: return address and height are the site.
const TOO_MANY: u64 = 2048;
/// Distance behind the start of a function within which its code is assumed.
const FUNCTION_BYTES: u64 = 64 << 10;
/// Number of places in the table of sites, more than there are sites.
const PLACES: usize = 64 * 1024;
/// Number of places that are tried for a key.
const PROBES: usize = 64;
/// Number of groups of calls with the same return address and height; they may share one.
const GROUPS: usize = 4096;
/// Stacks for comparison are copied at most every this number of ticks, about a millisecond.
const CHECK_TICKS: u64 = 1 << 21;

/// Buffers of a thread.
pub(super) struct Scratch {
    text: [u8; TEXT_BYTES],
    path: PathScratch,
    python: python::Scratch,
}

/// Buffers for a path.
struct PathScratch {
    stack: [u8; MAX_STACK],
    words: [StackWord; CANDIDATES],
    kinds: [[u64; 2]; CANDIDATES],
    addresses: [u64; CANDIDATES],
}

/// What a process knows of its sites. All zero: nothing.
pub(super) struct Shared {
    /// Keys of sites (bits 15 to 63) and their numbers; 0 free.
    places: [AtomicU64; PLACES],
    /// Number of sites that were given out.
    count: AtomicU64,
    /// Number of sites of a group.
    groups: [AtomicU64; GROUPS],
    /// When a stack was last copied for comparison, ticks.
    checked: AtomicU64,
    /// Bytes of the stack file after each site's last copy.
    copied: [AtomicU64; MAX_SITE as usize + 1],
    mappings: Mappings,
    /// Python code in the stack file.
    codes: python::Written,
}

/// Where a call is on its stack.
struct Extent {
    /// Address after the last byte that may be copied.
    end: u64,
    /// It is the thread's own stack, which stays as long as the thread.
    is_own: bool,
}

/// The calling thread's stack as copied, and its return addresses.
struct Path<'s> {
    bytes: &'s [u8],
    is_cut: bool,
    words: [StackWord; WORDS],
    count: usize,
    /// Number of the words that can be read without a system call.
    near: usize,
    key: u64,
    /// Number of sites of its group.
    level: u64,
    python: Frames,
}

/// Why a call has no site.
type Failure = Counter;

/// A learner: the calling thread, which is in a call.
pub(super) struct Learner<'s> {
    pub(super) thread: &'static Thread,
    pub(super) known: &'static Known,
    pub(super) shared: &'static Shared,
    pub(super) python: &'static Python,
    pub(super) file: &'s SitesFile,
    pub(super) place: CallPlace,
}

impl Learner<'_> {
    /// The site of a call that the thread does not know.
    pub(super) fn learn(&self) -> u16 {
        let Some(writer) = self.file.writer() else { return 0 };
        // SAFETY: the thread's own, and `is_learning` keeps signal handlers away.
        let scratch = unsafe { &mut *self.known.scratch.get() };
        match self.identify(scratch, writer) {
            Ok(site) => site,
            Err(failure) => {
                writer.count(failure);
                0
            }
        }
    }

    /// Whether a stack may be copied again now.
    fn is_due(&self) -> bool {
        let now = clock::now();
        let checked = &self.shared.checked;
        let (last, order) = (checked.load(Ordering::Relaxed), Ordering::Relaxed);
        now.wrapping_sub(last) >= CHECK_TICKS && checked.compare_exchange(last, now, order, order).is_ok()
    }

    /// Known calls of this thread until the next check. Once stacks are overwritten in the file, whose reader may have been late,
    /// sites are looked at much sooner; few of these checks compare.
    pub(super) fn restart_countdown(&self) {
        let has_lost = self.file.writer().is_some_and(|writer| {
            let (written, capacity) = writer.written();
            written > capacity
        });
        self.known.restart_countdown(self.place.sp ^ clock::now(), has_lost);
    }

    /// Copies the stack of a known site: for comparison, or because its copy is not in the file any more.
    pub(super) fn check(&self, site: u16) {
        let Some(writer) = self.file.writer() else { return };
        let (written, capacity) = writer.written();
        let is_for_comparison = written <= capacity || mix(clock::now(), 5).is_multiple_of(SOONER);
        if !(is_for_comparison || self.shared.is_overwritten(site, written, capacity)) || !self.is_due() {
            return;
        }
        // SAFETY: as in `learn`.
        let scratch = unsafe { &mut *self.known.scratch.get() };
        if self.shared.mappings.is_overwritten(writer) {
            self.shared.mappings.refresh(&mut scratch.text, writer, false);
        }
        if let Ok(extent) = self.extent(&mut scratch.text, writer) {
            let (bytes, is_cut) = self.copy(&mut scratch.path.stack, &extent);
            if !bytes.is_empty() {
                let call = self.call(site, true, is_cut);
                self.write_stack(&call, bytes, &mut scratch.python, writer);
            }
        }
    }

    fn call(&self, site: u16, is_check: bool, cut: bool) -> Call {
        Call {
            site,
            is_check,
            cut,
            tid: self.thread.tid(),
            time: clock::now(),
            ip: self.place.ip,
            sp: self.place.sp,
            bp: self.place.bp,
        }
    }

    fn identify(&self, scratch: &mut Scratch, writer: SitesWriter<'_>) -> Result<u16, Failure> {
        let mappings = &self.shared.mappings;
        let is_code = || mappings.newest().0.is_executable(self.place.ip);
        let has_unloaded = mappings.has_unloaded();
        if has_unloaded || !is_code() {
            mappings.refresh(&mut scratch.text, writer, has_unloaded);
        }
        if !is_code() {
            return Err(Counter::Unreadable);
        }
        let extent = self.extent(&mut scratch.text, writer)?;
        if mappings.is_due() {
            mappings.refresh(&mut scratch.text, writer, false);
        }
        let python = self.check_python(&mut scratch.python);
        let mut path = self.path(&mut scratch.path, &extent, python)?;
        let mut found = self.shared.find(path.key);
        let is_due = || mappings.is_old() || mappings.is_overwritten(writer) || mappings.is_outdated(path.bytes);
        if found.is_none() && is_due() {
            let is_new = mappings.refresh(&mut scratch.text, writer, false);
            if is_new {
                path = self.path(&mut scratch.path, &extent, python)?;
                found = self.shared.find(path.key);
            }
        }
        let site = match found {
            Some(site) => {
                if path.level >= VERY_MANY {
                    // A thread cannot keep all of them; this way the time spent here is bounded too.
                    self.group(&extent, python).fetch_add(1, Ordering::Relaxed);
                }
                let (written, capacity) = writer.written();
                if self.shared.is_overwritten(site, written, capacity) && self.is_due() {
                    let call = self.call(site, true, path.is_cut);
                    self.write_stack(&call, path.bytes, &mut scratch.python, writer);
                }
                site
            }
            None => self.new_site(&path, &extent, &mut scratch.python, writer)?,
        };
        // While code is unknown that a word may point to, or Python frames are about to be read, nothing is kept.
        if !mappings.is_due() && !self.python.is_awaited() {
            let call = Unknown {
                ip: self.place.ip,
                sp: self.place.sp,
                python,
                is_coarse: path.level >= VERY_MANY,
            };
            let words = path.words.get(..path.count).unwrap_or_default();
            // SAFETY: the calling thread is in that call; `near` words are on its own stack or on the stack pointer's page.
            unsafe { self.known.keep(call, site, words, path.near) };
        }
        Ok(site)
    }

    /// A number for the path; the first thread that has it copies the stack.
    fn new_site(
        &self,
        path: &Path<'_>,
        extent: &Extent,
        scratch: &mut python::Scratch,
        writer: SitesWriter<'_>,
    ) -> Result<u16, Failure> {
        let number = self.shared.number().ok_or(Counter::TableFull)?;
        let site = self.shared.enter(path.key, number).ok_or(Counter::TableFull)?;
        if site == number {
            let call = self.call(site, false, path.is_cut);
            self.write_stack(&call, path.bytes, scratch, writer);
            writer.count(Counter::Sites);
            if path.level >= MANY {
                writer.count(Counter::Coarse);
            }
            self.group(extent, path.python).fetch_add(1, Ordering::Relaxed);
        }
        Ok(site)
    }

    /// The Python frames of the call. Checks the thread's state of the interpreter where that was not done.
    fn check_python(&self, scratch: &mut python::Scratch) -> Frames {
        self.python.look(self.shared.mappings.interpreters());
        let found = self.python.interpreter();
        self.known.python.set(found);
        if let Some(frames) = self.known.python_frames() {
            return frames;
        }
        let Some(interpreter) = found else {
            return Frames::default();
        };
        let state = interpreter.state();
        let is_own = state != 0 && interpreter.is_own(state);
        if is_own && let Err(problem) = interpreter.check(state, scratch) {
            self.python.switch_off(interpreter.minor(), problem);
            self.known.python.set(None);
        }
        self.known.has_frames.set(is_own);
        self.known.python_state.set(state);
        self.known.python_frames().unwrap_or_default()
    }

    /// Writes a copy of a call's stack, after the Python frames in it.
    fn write_stack(&self, call: &Call, bytes: &[u8], scratch: &mut python::Scratch, writer: SitesWriter<'_>) {
        self.write_python(call, scratch, writer);
        writer.stack(call, bytes);
        self.shared.note_copy(call.site, writer.written().0);
    }

    /// Writes the Python frames of a call.
    fn write_python(&self, call: &Call, scratch: &mut python::Scratch, writer: SitesWriter<'_>) {
        if let Some(interpreter) = self.known.python.get()
            && self.known.has_frames.get()
        {
            let state = interpreter.state();
            if state != 0 && state == self.known.python_state.get() {
                interpreter.write(state, call, &self.shared.codes, scratch, writer);
            }
        }
    }

    /// The stack that the call is on.
    fn extent(&self, text: &mut [u8; TEXT_BYTES], writer: SitesWriter<'_>) -> Result<Extent, Failure> {
        let sp = self.place.sp;
        if !sp.is_multiple_of(8) {
            return Err(Counter::Unreadable);
        }
        let own = |end| Extent { end, is_own: true };
        let [lower, upper] = self.known.stack.get();
        if (lower..upper).contains(&sp) {
            return Ok(own(upper));
        }
        let mappings = &self.shared.mappings;
        if let Some(end) = mappings.main_stack_end(sp) {
            return Ok(own(end));
        }
        let mut found = mappings.newest().0.extent(sp);
        // A thread's own stack must be found once.
        let is_first = lower == upper;
        if found.is_none() && mappings.refresh(text, writer, is_first) {
            if let Some(end) = mappings.main_stack_end(sp) {
                return Ok(own(end));
            }
            found = mappings.newest().0.extent(sp);
        }
        let Some([start, end]) = found else {
            // Another thread reads the list, or that was done a moment ago: what can be copied is copied.
            return Ok(Extent {
                end: sp.saturating_add(MAX_STACK as u64 + 8),
                is_own: false,
            });
        };
        // The C library places a thread's control block at the upper end of its stack.
        let block = memory::control_block();
        if (sp..end).contains(&block) {
            self.known.stack.set([start, block]);
            return Ok(own(block));
        }
        Ok(Extent { end, is_own: false })
    }

    /// Height of the call on its stack, by which depths of a recursion differ. 0 on other stacks than the thread's own:
    /// their addresses would give each one of them other sites.
    fn height(&self, extent: &Extent) -> u64 {
        if extent.is_own {
            extent.end.wrapping_sub(self.place.sp)
        } else {
            0
        }
    }

    /// Number of sites with the call's return address, height and innermost Python frame.
    fn group(&self, extent: &Extent, python: Frames) -> &AtomicU64 {
        self.shared.group(self.place.ip ^ python.inner, self.height(extent))
    }

    fn copy<'b>(&self, into: &'b mut [u8; MAX_STACK], extent: &Extent) -> (&'b [u8], bool) {
        let all = extent.end.saturating_sub(self.place.sp) as usize / 8 * 8;
        let wanted = all.min(MAX_STACK);
        let got = into
            .get_mut(..wanted)
            .map_or(0, |into| memory::copy(self.place.sp, into));
        (into.get(..got / 8 * 8).unwrap_or_default(), got < all)
    }

    fn path<'s>(&self, scratch: &'s mut PathScratch, extent: &Extent, python: Frames) -> Result<Path<'s>, Failure> {
        let CallPlace { ip, sp, .. } = self.place;
        let height = self.height(extent);
        let level = self.group(extent, python).load(Ordering::Relaxed);
        let (bytes, is_cut) = self.copy(&mut scratch.stack, extent);
        if bytes.is_empty() {
            return Err(Counter::Unreadable);
        }
        let mappings = &self.shared.mappings;
        let is_python = python != Frames::default();
        let mut all = Candidates {
            words: &mut scratch.words,
            kinds: &mut scratch.kinds,
            addresses: &mut scratch.addresses,
            count: 0,
        };
        // A thread that is interrupted here for some milliseconds may find both tables replaced.
        let collected = (0..ATTEMPTS).any(|_| {
            let (table, generation) = mappings.newest();
            all.collect(bytes, table);
            // Python frames say the same, and more.
            let interpreter = self.known.python.get().filter(|_| is_python);
            if let Some(range) = interpreter.and_then(|interpreter| table.extent(interpreter.evaluator())) {
                all.leave_out(range);
            }
            all.keep_calls(table);
            mappings.is_whole(generation)
        });
        if !collected {
            return Err(Counter::Unreadable);
        }
        if level >= MANY {
            all.keep_plausible(ip, 0);
        } else if is_python && all.count > WORDS {
            // Words that are left over from earlier calls should not displace those of callers.
            all.keep_plausible(ip, NEAREST_KEPT);
        }
        let mut path = Path {
            bytes,
            is_cut,
            words: [(0, 0); WORDS],
            count: 0,
            near: 0,
            key: 0,
            level,
            python,
        };
        let most = match level {
            0..VERY_MANY => WORDS,
            VERY_MANY..TOO_MANY => FEW_WORDS,
            _ => 0,
        };
        let nearest = if is_python { WORDS } else { NEAREST };
        path.count = all.select(&mut path.words, most, nearest);
        let words = path.words.get(..path.count).unwrap_or_default();
        let on_page = |&&(offset, _): &&StackWord| sp.wrapping_add(8 * u64::from(offset)) >> 12 == sp >> 12;
        path.near = if extent.is_own {
            words.len()
        } else {
            words.iter().take_while(on_page).count()
        };
        let outer = if level >= VERY_MANY { 0 } else { python.outer };
        // Addresses of one library are those of another once it is unloaded.
        let (table, _) = mappings.newest();
        let code = |key, address| mix(mix(key, address), table.identity(address));
        let key = mix(mix(code(2, ip), height), python.inner ^ outer);
        let add = |key, &(offset, word): &StackWord| code(mix(key, u64::from(offset)), word);
        path.key = words.iter().fold(key, add);
        Ok(path)
    }
}

/// Kinds of a word: behind a direct call.
const DIRECT: u64 = 0;
/// Behind a call of what is not known.
const INDIRECT: u64 = 1;
/// Behind a call by a linkage table.
const LINKED: u64 = 2;
/// It fits those below it, or nothing speaks against it.
const SURE: u64 = 3;

/// Words of a stack that may be return addresses, from the nearest on.
struct Candidates<'s> {
    words: &'s mut [StackWord; CANDIDATES],
    /// What each calls: a kind and, of a direct call, its target.
    kinds: &'s mut [[u64; 2]; CANDIDATES],
    addresses: &'s mut [u64; CANDIDATES],
    count: usize,
}

impl Candidates<'_> {
    /// Words that point to code.
    fn collect(&mut self, bytes: &[u8], table: &Table) {
        let [lowest, highest] = table.bounds();
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let code = (0..)
            .zip(words)
            .filter(|(_, word)| *word >= lowest && *word < highest && table.is_executable(*word));
        let places = self.words.iter_mut().zip(code);
        self.count = places.map(|(place, word)| *place = word).count();
    }

    /// Leaves out those in a mapping.
    fn leave_out(&mut self, [start, end]: [u64; 2]) {
        let mut kept = 0;
        for at in 0..self.count {
            if let Some(word) = self.words.get(at).copied()
                && !(start..end).contains(&word.1)
                && let Some(place) = self.words.get_mut(kept)
            {
                *place = word;
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Leaves out those that are not behind a call of code.
    fn keep_calls(&mut self, table: &Table) {
        for (address, (_, word)) in self.addresses.iter_mut().zip(self.words.iter()).take(self.count) {
            *address = word.wrapping_sub(BEFORE_BYTES as u64);
        }
        let Self {
            words,
            kinds,
            addresses,
            count,
        } = self;
        let mut kept = 0;
        memory::gather(addresses.get(..*count).unwrap_or_default(), |at, code| {
            let Some((word, code)) = words.get(at).copied().zip(code) else {
                return;
            };
            let kind = match before(word.1, code) {
                Before::Nothing => return,
                Before::Direct(target) if !table.is_executable(target) => return,
                Before::Direct(target) => [DIRECT, target],
                Before::Indirect => [INDIRECT, 0],
            };
            if let (Some(to_word), Some(to_kind)) = (words.get_mut(kept), kinds.get_mut(kept)) {
                (*to_word, *to_kind) = (word, kind);
                kept += 1;
            }
        });
        *count = kept;
    }

    /// Leaves out direct calls of functions that can contain none of the next two lower return addresses, `ip` at first: one
    /// of these may be left over. The nearest `nearest` words stay. Calls of such functions by a linkage table stay while
    /// there is room, because the function may have left by a jump.
    fn keep_plausible(&mut self, ip: u64, nearest: usize) {
        self.resolve_jumps();
        let mut lower = [ip; 2];
        let mut room = WORDS;
        for at in 0..self.count {
            let (Some((_, word)), Some([kind, target])) = (self.words.get(at), self.kinds.get_mut(at)) else {
                break;
            };
            let function = *target..target.saturating_add(FUNCTION_BYTES);
            let is_sure = at < nearest || *kind == INDIRECT || lower.iter().any(|address| function.contains(address));
            if is_sure {
                *kind = SURE;
                room = room.saturating_sub(1);
            }
            if is_sure || *kind == LINKED {
                lower = [*word, lower[0]];
            }
        }
        let mut kept = 0;
        for at in 0..self.count {
            let (Some(word), Some([kind, _])) = (self.words.get(at).copied(), self.kinds.get(at)) else {
                break;
            };
            let is_kept = match *kind {
                SURE => true,
                LINKED => room > 0,
                _ => false,
            };
            if *kind == LINKED {
                room = room.saturating_sub(1);
            }
            if is_kept && let Some(place) = self.words.get_mut(kept) {
                *place = word;
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Replaces targets that are only jumps: entries of linkage tables by the functions they lead to, others by nothing.
    fn resolve_jumps(&mut self) {
        let Self {
            kinds,
            addresses,
            count,
            ..
        } = self;
        for (address, [_, target]) in addresses.iter_mut().zip(kinds.iter()).take(*count) {
            *address = *target;
        }
        memory::gather(
            addresses.get(..*count).unwrap_or_default(),
            |at, code: Option<[u8; TARGET_BYTES]>| {
                if let (Some(of @ [DIRECT, _]), Some(code)) = (kinds.get_mut(at), code) {
                    *of = match jump(of[1], code) {
                        Jump::None => *of,
                        Jump::Through(place) => [LINKED, place],
                        Jump::Other => [INDIRECT, 0],
                    };
                }
            },
        );
        // Others read a word of this function: a place that is not readable ends a system call.
        let other = 0u64;
        for (address, [kind, place]) in addresses.iter_mut().zip(kinds.iter()).take(*count) {
            *address = if *kind == LINKED {
                *place
            } else {
                (&raw const other).addr() as u64
            };
        }
        memory::gather(addresses.get(..*count).unwrap_or_default(), |at, function| {
            if let (Some([LINKED, target]), Some(function)) = (kinds.get_mut(at), function) {
                *target = u64::from_le_bytes(function);
            }
        });
    }

    /// Chooses at most `most` words, of more than that the `nearest` ones and the farthest; their number.
    fn select(&self, into: &mut [StackWord; WORDS], most: usize, nearest: usize) -> usize {
        let all = self.words.get(..self.count).unwrap_or_default();
        let nearest = if all.len() > most { nearest.min(most) } else { all.len() };
        let farthest = most.saturating_sub(nearest).min(all.len() - nearest);
        let (first, rest) = all.split_at_checked(nearest).unwrap_or((all, &[]));
        let last = rest.get(rest.len() - farthest..).unwrap_or_default();
        let chosen = first.iter().chain(last);
        into.iter_mut().zip(chosen).map(|(to, from)| *to = *from).count()
    }
}

impl Shared {
    pub(super) fn new() -> Option<&'static Self> {
        // SAFETY: atomic words, for which zero is valid. A child that forks has no reference to it.
        unsafe { memory::zeroed::<Self>() }
    }

    /// Notes the bytes of the stack file after a copy of this site's stack.
    fn note_copy(&self, site: u16, written: u64) {
        if let Some(copied) = self.copied.get(usize::from(site)) {
            copied.store(written, Ordering::Relaxed);
        }
    }

    /// Whether the last copy of this site's stack has been overwritten. Nothing says whether it was read before.
    fn is_overwritten(&self, site: u16, written: u64, capacity: u64) -> bool {
        let copied = self.copied.get(usize::from(site));
        copied.is_some_and(|copied| written.saturating_sub(copied.load(Ordering::Relaxed)) >= capacity)
    }

    fn group(&self, ip: u64, height: u64) -> &AtomicU64 {
        #[expect(clippy::indexing_slicing, reason = "a remainder by the length")]
        &self.groups[(mix(mix(3, ip), height) >> 40) as usize % GROUPS]
    }

    /// The words of the table where a key is, or would be.
    fn probes(&self, key: u64) -> impl Iterator<Item = &AtomicU64> {
        let first = (key >> 20) as usize;
        (0..PROBES).filter_map(move |step| self.places.get(first.wrapping_add(step) % PLACES))
    }

    /// The site with this key.
    fn find(&self, key: u64) -> Option<u16> {
        for place in self.probes(key) {
            match place.load(Ordering::Acquire) {
                0 => return None,
                seen if (seen ^ key) >> SITE_BITS == 0 => return Some(seen as u16 & MAX_SITE),
                _ => {}
            }
        }
        None
    }

    /// A number that no site has; `None` if all are given.
    fn number(&self) -> Option<u16> {
        let add = |count| (count < u64::from(MAX_SITE)).then_some(count + 1);
        let before = self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        before.ok().map(|before| before as u16 + 1)
    }

    /// Enters a new key with this number. If another thread was faster, its number; `None` if there is no place.
    fn enter(&self, key: u64, number: u16) -> Option<u16> {
        let word = key >> SITE_BITS << SITE_BITS | u64::from(number);
        for place in self.probes(key) {
            match place.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(number),
                Err(seen) if (seen ^ key) >> SITE_BITS == 0 => return Some(seen as u16 & MAX_SITE),
                Err(_) => {}
            }
        }
        None
    }
}

/// Bits of a key's word that hold the number of its site.
const SITE_BITS: u32 = 15;

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test that panics has failed")]
mod tests {
    use super::*;

    /// Entries of a linkage table: the first leads to 0x20_0000, the second to a function that no return address is in.
    fn linkage_table() -> [u8; 64] {
        let mut table = [0; 64];
        for (at, function) in [(0, 0x20_0000u64), (32, 0x5000_0000)] {
            table[at..at + 6].copy_from_slice(&[0xff, 0x25, 10, 0, 0, 0]);
            table[at + 16..at + 24].copy_from_slice(&function.to_le_bytes());
        }
        table
    }

    /// The offsets of those words that are kept, with `more` calls of what is not known behind them.
    fn kept(words: &[(StackWord, [u64; 2])], more: u16) -> Vec<u16> {
        let (mut all, mut kinds) = ([(0, 0); CANDIDATES], [[INDIRECT, 0]; CANDIDATES]);
        for (at, (word, kind)) in words.iter().enumerate() {
            (all[at], kinds[at]) = (*word, *kind);
        }
        let mut candidates = Candidates {
            words: &mut all,
            kinds: &mut kinds,
            addresses: &mut [0; CANDIDATES],
            count: words.len() + usize::from(more),
        };
        candidates.keep_plausible(0x10_0010, 0);
        let kept = candidates.words[..candidates.count].iter();
        kept.map(|(offset, _)| *offset).filter(|offset| *offset > 0).collect()
    }

    #[test]
    fn a_copy_that_was_overwritten_is_due_again() {
        let Some(shared) = Shared::new() else { return };
        shared.note_copy(7, 5_000);
        for (written, is_gone) in [(5_000, false), (5_999, false), (6_000, true), (90_000, true)] {
            assert_eq!(shared.is_overwritten(7, written, 1_000), is_gone, "{written}");
        }
        shared.note_copy(7, 90_000);
        assert!(!shared.is_overwritten(7, 90_500, 1_000));
    }

    #[test]
    fn words_left_over_displace_no_return_addresses() {
        let table = linkage_table();
        let entry = |at: usize| [DIRECT, table[at..].as_ptr().addr() as u64];
        let words = [
            ((1, 0x20_0010), [DIRECT, 0x10_0000]),
            ((2, 0x90_0000), entry(32)),
            ((3, 0x30_0010), entry(0)),
            ((4, 0x90_0010), [DIRECT, 0x7000_0000]),
            ((5, 0x90_0020), [INDIRECT, 0]),
        ];
        assert_eq!(kept(&words, 0), [1, 2, 3, 5], "a function may have left by a jump");
        assert_eq!(kept(&words, WORDS as u16), [1, 3, 5], "more than are compared");
    }
}
