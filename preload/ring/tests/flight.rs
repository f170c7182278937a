//! Work in flight of an ended process is found with its times; foreign files give wrong numbers at worst.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(unsafe_code, reason = "a flight file is put over memory")]

use memmap2::MmapMut;
use proptest::prelude::*;
use roctop_ring::flight::{
    self, Left, MAGIC, PAGE, Reserved, SIGNAL_WORDS, SLOT_WORDS, SlotWriter, State, header, keep_point, keep_reckoned,
};
use roctop_ring::layout::Header;
use roctop_ring::record::{Dispatch, Head, flag};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::fs::File;
use std::path::PathBuf;

const SLOTS: usize = 64;
/// Agent ticks of 10 ns, with a separate origin.
const ORIGIN: u64 = 5_000_000;

/// A flight file in memory.
struct Kept {
    header: Vec<AtomicU64>,
    records: Vec<AtomicU64>,
    signals: Vec<[u64; SIGNAL_WORDS]>,
}

impl Kept {
    fn new() -> Self {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let made = Self {
            header: zeros(PAGE / 8),
            records: zeros(SLOTS * SLOT_WORDS),
            signals: vec![[0; SIGNAL_WORDS]; SLOTS],
        };
        made.header[header::MAGIC].store(MAGIC, Ordering::Relaxed);
        made.header[header::SLOTS].store(SLOTS as u64, Ordering::Relaxed);
        made
    }

    fn submit(&mut self, sequence: u64, state: State) -> SlotWriter<'_> {
        let at = sequence as usize % SLOTS;
        self.signals[at] = [1, 1, 0, 0, 0, 0, 0, 0];
        let slot = SlotWriter::new(&self.records, at).unwrap();
        slot.keep(&Dispatch {
            dispatch_id: sequence + 1,
            correlation: 7 * sequence,
            kernel_object: 0x1000,
            grid_x: 256,
            ..Dispatch::default()
        });
        slot.publish(sequence, state);
        slot
    }

    /// Completes a dispatch as the packet processor does.
    fn complete(&mut self, sequence: u64, begin: u64, end: u64) {
        let signal = &mut self.signals[sequence as usize % SLOTS];
        (signal[1], signal[4], signal[5]) = (0, begin, end);
    }

    fn read(&self) -> Vec<Left> {
        let words = self
            .header
            .iter()
            .chain(&self.records)
            .map(|word| word.load(Ordering::Relaxed));
        let bytes: Vec<u8> = words
            .chain(self.signals.as_flattened().iter().copied())
            .flat_map(u64::to_le_bytes)
            .collect();
        flight::read(&bytes).unwrap()
    }
}

#[test]
fn completed_dispatch_has_times_and_running_is_in_flight() {
    let mut kept = Kept::new();
    keep_point(&kept.header, ORIGIN, 1_000_000);
    keep_point(&kept.header, ORIGIN + 100_000, 2_000_000);
    kept.submit(5, State::Own);
    kept.submit(4, State::Own);
    kept.submit(6, State::Foreign);
    kept.complete(4, ORIGIN + 100_010, ORIGIN + 100_030);
    let left = kept.read();
    let order: Vec<(u64, bool)> = left.iter().map(|left| (left.sequence, left.is_complete)).collect();
    assert_eq!(order, [(4, true), (5, false), (6, false)]);
    let record = &left[0].record;
    assert_eq!((record.begin, record.end), (2_000_100, 2_000_300));
    assert_eq!((record.dispatch_id, record.correlation, record.grid_x), (5, 28, 256));
    assert_eq!(Dispatch::decode(&left[0].slots()), *record);
}

#[test]
fn site_of_a_dispatch_is_flagged_and_no_name() {
    let mut kept = Kept::new();
    for (sequence, kernel_object, name) in [(0, 0x1000, 77), (1, 0x1000, 0), (2, 0, 5)] {
        let slot = kept.submit(sequence, State::Own);
        slot.keep(&Dispatch {
            kernel_object,
            name,
            ..Dispatch::default()
        });
    }
    let read = |left: &Left| {
        let slots = left.slots();
        let (record, flags) = (Dispatch::decode(&slots), Head(slots[0][0]).flags());
        (record.site(flags), record.name_id(flags))
    };
    let all: Vec<_> = kept.read().iter().map(read).collect();
    assert_eq!(all, [(77, 0), (0, 0), (0, 5)]);
}

#[test]
fn completed_dispatch_without_clock_is_untimed() {
    let mut kept = Kept::new();
    kept.submit(0, State::Own);
    kept.complete(0, ORIGIN, ORIGIN + 1);
    let left = kept.read();
    assert_eq!((left[0].record.begin, left[0].record.end), (0, 0));
    assert_ne!(Head(left[0].slots()[0][0]).flags() & flag::UNTIMED, 0);
}

#[test]
fn estimated_points_serve_until_two_real_points() {
    let mut kept = Kept::new();
    kept.submit(0, State::Own);
    kept.complete(0, ORIGIN + 10, ORIGIN + 20);
    let end = |kept: &Kept| kept.read()[0].record.end;
    let later = ORIGIN + 100_000;
    keep_reckoned(&kept.header, [[ORIGIN, 1_000_000], [later, 2_000_000]]);
    assert_eq!(end(&kept), 1_000_200);
    keep_reckoned(&kept.header, [[ORIGIN, 3_000_000], [later, 4_000_000]]);
    assert_eq!(end(&kept), 3_000_200, "later ones know better");
    kept.header[header::NEWEST].store(0, Ordering::Relaxed);
    assert_eq!(end(&kept), 0, "a point is being written");
    kept.header[header::NEWEST].store(3, Ordering::Relaxed);
    for _ in 0..2 {
        keep_point(&kept.header, ORIGIN, 5_000_000);
        assert_eq!(end(&kept), 3_000_200, "one point makes no line");
    }
    keep_reckoned(&kept.header, [[ORIGIN, 1_000_000], [later, 2_000_000]]);
    assert_eq!(end(&kept), 3_000_200, "estimates come too late now");
    keep_point(&kept.header, later, 6_000_000);
    assert_eq!(end(&kept), 5_000_200, "nothing of them is left");
    keep_reckoned(&kept.header, [[ORIGIN, 1_000_000], [later, 2_000_000]]);
    assert_eq!(end(&kept), 5_000_200, "and they come too late then");
}

#[test]
fn invalid_and_reversed_times_are_flagged() {
    let mut kept = Kept::new();
    keep_point(&kept.header, ORIGIN, 1_000_000);
    keep_point(&kept.header, ORIGIN + 100_000, 2_000_000);
    for sequence in 0..3 {
        kept.submit(sequence, State::Own);
    }
    kept.complete(0, ORIGIN + 1, ORIGIN + (1 << 60));
    kept.complete(1, ORIGIN + 9, ORIGIN + 1);
    kept.complete(2, ORIGIN + 1, ORIGIN + 9);
    let flags: Vec<u8> = kept
        .read()
        .iter()
        .map(|left| Head(left.slots()[0][0]).flags())
        .collect();
    assert_eq!(flags, [flag::UNTIMED | flag::SUSPECT_TIME, flag::SUSPECT_TIME, 0]);
}

#[test]
fn recorded_dispatch_is_skipped_unless_half_recorded() {
    let mut kept = Kept::new();
    keep_point(&kept.header, ORIGIN, 1_000_000);
    keep_point(&kept.header, ORIGIN + 100_000, 2_000_000);
    kept.submit(0, State::Own).free();
    kept.submit(1, State::Own).take();
    kept.complete(1, ORIGIN + 1, ORIGIN + 2);
    let left = kept.read();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].state, left[0].is_complete), (State::Taking, true));
    assert_eq!(left[0].record.end, 1_000_020);
}

#[test]
fn half_written_clock_point_is_ignored() {
    let mut kept = Kept::new();
    keep_point(&kept.header, ORIGIN, 1_000_000);
    keep_point(&kept.header, ORIGIN + 100_000, 2_000_000);
    kept.submit(0, State::Own);
    kept.complete(0, ORIGIN + 100_000, ORIGIN + 100_100);
    // The third point replaces the first of the two; the writer was killed before it announced it.
    kept.header[header::POINTS].store(u64::MAX, Ordering::Relaxed);
    assert_eq!(kept.read()[0].record.end, 2_001_000);
}

/// A directory on tmpfs.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn slots_of_a_full_tmpfs_are_kept_in_memory() {
    const MANY: usize = 16384;
    let dir = Directory(PathBuf::from(format!("/dev/shm/roctop-full-{}", std::process::id())));
    std::fs::create_dir(&dir.0).unwrap();
    let mut pool = MmapMut::map_anon(MANY * SIGNAL_WORDS * 8).unwrap();
    // SAFETY: the mapping is this function's own and nothing points into it yet.
    let reserved = unsafe { Reserved::put(&dir.0, "1-1.0.flight", MANY, pool.as_mut_ptr()) }.unwrap();
    let file = reserved.take(&Header::default()).unwrap();
    if file.ready() == MANY {
        println!("n/a: this kernel makes no pages on request");
        return;
    }
    assert!(file.ready() >= SLOTS);
    assert!(file.make_ready(4096));
    assert_eq!(file.ready(), 4096);
    // No page can be made behind the end of a file, as on a full tmpfs.
    let shorter = File::options().write(true).open(dir.0.join("1-1.0.flight"));
    shorter.unwrap().set_len((PAGE + 5000 * SLOT_WORDS * 8) as u64).unwrap();
    assert!(!file.make_ready(MANY));
    assert_eq!(file.ready(), 4096);
    file.detach_rest().unwrap();
    assert_eq!(file.ready(), MANY);
    for at in [0, 4095, 4096, MANY - 1] {
        let record = Dispatch {
            dispatch_id: at as u64 + 1,
            ..Dispatch::default()
        };
        let slot = SlotWriter::new(file.records(), at).unwrap();
        slot.keep(&record);
        slot.publish(at as u64, State::Foreign);
        assert_eq!(slot.kept(), record);
    }
}

proptest! {
    #[test]
    fn foreign_files_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..20_000), slots in any::<u64>()) {
        for (at, word) in [(header::MAGIC, MAGIC), (header::SLOTS, slots)] {
            if let Some(place) = bytes.get_mut(at * 8..at * 8 + 8) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        }
        if let Ok(left) = flight::read(&bytes) {
            prop_assert!(left.len() <= bytes.len() / (SLOT_WORDS * 8));
        }
    }
}
