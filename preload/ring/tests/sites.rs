//! Stack files: what was written is read, in order; what was overwritten is counted; foreign files give wrong stacks at
//! worst.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use roctop_ring::layout::Header;
use roctop_ring::sites::{
    CODE_BYTES, Call, Code, CodeText, CodeWords, Counter, Entry, MAX_FILE, MAX_PYTHON_FRAMES, MAX_STACK, MIN_FILE,
    Mapping, MappingWords, PAGE, PythonFrame, PythonStack, Reader, SITES, SitesFile, SitesWriter, Stack, Text, UNIT,
};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A stack file in memory.
struct Kept(Vec<AtomicU64>);

impl Kept {
    fn new(size: usize) -> Self {
        let made = Self((0..size / 8).map(|_| AtomicU64::new(0)).collect());
        made.writer().begin(7, 99);
        made
    }

    fn writer(&self) -> SitesWriter<'_> {
        let (head, ring) = self.0.split_at(PAGE / 8);
        SitesWriter::new(head, ring).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        let words = self.0.iter();
        words
            .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes())
            .collect()
    }

    fn reader(&self) -> Reader<&Self> {
        Reader::of(self).unwrap()
    }
}

impl roctop_ring::bytes::Bytes for &Kept {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let (first, count) = (offset as usize / 8, into.len() / 8);
        let Some(words) = self.0.get(first..first + count) else {
            return Ok(0);
        };
        for (to, word) in into.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *to = word.load(Ordering::Acquire).to_le_bytes();
        }
        Ok(into.len())
    }
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.0.len() as u64 * 8)
    }
}

/// A stack whose bytes follow from its number and its length.
fn stack(number: u64, length: usize) -> Stack {
    let call = Call {
        site: (number % 0x7fff) as u16 + 1,
        is_check: number.is_multiple_of(3),
        cut: number.is_multiple_of(2),
        tid: number as u32,
        time: number << 20,
        ip: !number,
        sp: number ^ 0x7fff_0000_0000,
        bp: number.wrapping_mul(5),
    };
    let bytes = (0..length as u64)
        .map(|at| (number.wrapping_mul(31) + at) as u8)
        .collect();
    Stack { call, bytes }
}

fn write(writer: SitesWriter<'_>, stack: &Stack) {
    writer.stack(&stack.call, &stack.bytes);
}

fn mapping(number: u64) -> Mapping {
    Mapping {
        start: number << 12,
        end: (number + 5) << 12,
        offset: number,
        device: 8 << 32 | 1,
        inode: 12 + number,
        path: format!("/opt/lib{number}.so").into_bytes(),
    }
}

fn map(writer: SitesWriter<'_>, mapping: &Mapping) {
    writer.mapping(&MappingWords {
        start: mapping.start,
        end: mapping.end,
        offset: mapping.offset,
        device: mapping.device,
        inode: mapping.inode,
        path: &mapping.path,
    });
}

#[test]
fn stacks_and_mappings_are_read_in_order() {
    let kept = Kept::new(MIN_FILE);
    let mut reader = kept.reader();
    assert_eq!(reader.process(), (7, 99));
    assert_eq!(reader.next(), None);
    let vdso = Mapping {
        path: b"[vdso]".to_vec(),
        ..mapping(3)
    };
    let nameless = Mapping {
        path: Vec::new(),
        ..mapping(4)
    };
    let mut expected = Vec::new();
    for one in [mapping(1), vdso, nameless] {
        map(kept.writer(), &one);
        expected.push(Entry::Mapping(one));
    }
    for length in [0, 1, 7, 8, 9, 800, MAX_STACK] {
        let one = stack(length as u64, length);
        write(kept.writer(), &one);
        expected.push(Entry::Stack(one));
    }
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), expected);
    assert_eq!(reader.next(), None);
    assert_eq!(reader.lost().bytes, 0);
    kept.writer().count(Counter::Sites);
    kept.writer().count(Counter::Coarse);
    kept.writer().set(Counter::Sites, 5);
    let counters = reader.counters();
    assert_eq!((counters.get(Counter::Sites), counters.get(Counter::Coarse)), (5, 1));
    assert_eq!(counters.get(Counter::TableFull), 0);
}

#[test]
fn python_frames_and_their_code_are_read() {
    let kept = Kept::new(MIN_FILE);
    let texts = ["/home/model.py".as_bytes(), b"\x31\x04\x35\x04"];
    let mut bytes = texts.concat();
    bytes.extend([0x80; 300]);
    let text = |width, bytes: &[u8]| Text {
        width,
        bytes: bytes.len(),
    };
    let words = CodeWords {
        id: 77,
        minor: 12,
        first_line: 1200,
        file: text(1, texts[0]),
        name: text(2, texts[1]),
        bytes: &bytes,
    };
    kept.writer().code(&words);
    let frame = |code| PythonFrame {
        code,
        instruction: code << 1,
        entry: code << 40,
    };
    let frames: Vec<PythonFrame> = (0..200).map(frame).collect();
    let call = stack(5, 0).call;
    kept.writer().python(&call, [8, 9], &frames[..3], false);
    kept.writer().python(&call, [8, 9], &frames, false);
    let known = |width, bytes: &[u8]| CodeText {
        width,
        bytes: bytes.to_vec(),
    };
    let code = Code {
        id: 77,
        minor: 12,
        first_line: 1200,
        file: known(1, texts[0]),
        name: known(2, texts[1]),
        lines: vec![0x80; 300],
    };
    let whole = PythonStack {
        site: call.site,
        tid: call.tid,
        time: call.time,
        cut: false,
        evaluator: [8, 9],
        frames: frames[..3].to_vec(),
    };
    let cut = PythonStack {
        cut: true,
        frames: frames[..MAX_PYTHON_FRAMES].to_vec(),
        ..whole.clone()
    };
    let expected = [Entry::Code(code), Entry::Python(whole), Entry::Python(cut)];
    let mut reader = kept.reader();
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), expected);
    // Texts that are longer than what is there, and characters of a width that no text has.
    let wrong = [(text(3, texts[0]), text(1, b"")), (text(1, &[0; 400]), text(1, b""))];
    for (file, name) in wrong {
        kept.writer().code(&CodeWords { file, name, ..words });
        assert_eq!(reader.next(), None);
        reader.give_up_unfinished();
        kept.writer().python(&call, [0; 2], &[], false);
        assert!(reader.by_ref().count() == 1 && reader.lost().entries > 0);
    }
    let long = vec![0; CODE_BYTES + 9];
    kept.writer().code(&CodeWords { bytes: &long, ..words });
    let Some(Entry::Code(read)) = reader.next() else {
        panic!("no code")
    };
    assert_eq!(
        read.file.bytes.len() + read.name.bytes.len() + read.lines.len(),
        CODE_BYTES
    );
}

#[test]
fn too_long_stack_is_cut_and_says_so() {
    let kept = Kept::new(MIN_FILE);
    let long = stack(1, MAX_STACK + 8);
    write(kept.writer(), &long);
    let Some(Entry::Stack(read)) = kept.reader().next() else {
        panic!("no stack")
    };
    assert!(read.call.cut && !long.call.cut);
    assert_eq!(read.bytes, long.bytes[..MAX_STACK]);
}

#[test]
fn slow_reader_gets_the_newest_and_counts_the_rest() {
    let kept = Kept::new(MIN_FILE);
    let mut reader = kept.reader();
    for number in 0..1000 {
        write(kept.writer(), &stack(number, 1000 + number as usize % 77));
    }
    let read: Vec<Entry> = reader.by_ref().collect();
    let first = 1000 - read.len() as u64;
    assert!(read.len() > 40, "{} entries", read.len());
    for (entry, number) in read.iter().zip(first..) {
        assert_eq!(*entry, Entry::Stack(stack(number, 1000 + number as usize % 77)));
    }
    assert_eq!(reader.lost().entries, first);
    let kept_bytes: usize = read.len() * 1112;
    assert!(reader.lost().bytes > 1_000_000 && kept_bytes < MIN_FILE);
}

#[test]
fn unfinished_entry_is_waited_for_and_then_given_up() {
    let kept = Kept::new(MIN_FILE);
    write(kept.writer(), &stack(1, 100));
    // A writer that was interrupted behind its reservation.
    let tail = &kept.0[roctop_ring::sites::header::TAIL];
    tail.fetch_add(20 + (1 << 40), Ordering::Relaxed);
    write(kept.writer(), &stack(2, 100));
    let mut reader = kept.reader();
    assert_eq!(reader.next(), Some(Entry::Stack(stack(1, 100))));
    for _ in 0..10 {
        assert_eq!(reader.next(), None);
    }
    reader.give_up_unfinished();
    assert_eq!(reader.next(), Some(Entry::Stack(stack(2, 100))));
    let lost = reader.lost();
    assert_eq!((lost.entries, lost.bytes), (1, 20 * UNIT as u64));
}

const WRITERS: u64 = 4;
/// Stacks of each writer.
const STACKS: u64 = 3000;

#[test]
fn concurrent_writers_never_give_a_wrong_stack() {
    let kept = Kept::new(MIN_FILE);
    let mut reader = kept.reader();
    let (mut read, mut last) = (0u64, [None; WRITERS as usize]);
    let mut check = |entry: Entry| {
        let Entry::Stack(found) = entry else { panic!("no stack") };
        let number = u64::from(found.call.tid);
        assert_eq!(found, stack(number, (number % 4000) as usize));
        let writer = &mut last[(number / STACKS) as usize];
        assert!(writer.is_none_or(|before| before < number), "in order");
        *writer = Some(number);
        read += 1;
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let kept = &kept;
                scope.spawn(move || {
                    for number in writer * STACKS..(writer + 1) * STACKS {
                        write(kept.writer(), &stack(number, (number % 4000) as usize));
                    }
                })
            })
            .collect();
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            reader.by_ref().for_each(&mut check);
        }
    });
    reader.give_up_unfinished();
    reader.by_ref().for_each(&mut check);
    assert_eq!(read + reader.lost().entries, WRITERS * STACKS);
}

#[test]
fn late_writer_damages_entries_and_invents_none() {
    let kept = Kept::new(MIN_FILE);
    for number in 0..20 {
        write(kept.writer(), &stack(number, 1000));
    }
    // Half of an entry of an earlier lap over one of this one.
    for word in &kept.0[PAGE / 8 + 200..PAGE / 8 + 240] {
        word.store(7, Ordering::Relaxed);
    }
    let mut reader = kept.reader();
    let read: Vec<Entry> = reader.by_ref().collect();
    assert_eq!(read.len() as u64 + reader.lost().entries, 20);
    assert!((18..20).contains(&read.len()), "{} entries", read.len());
    for entry in read {
        let Entry::Stack(found) = entry else { panic!("no stack") };
        assert_eq!(found, stack(u64::from(found.call.tid), 1000));
    }
}

fn directory(name: &str) -> PathBuf {
    let place = PathBuf::from("/dev/shm").join(format!("roctop-test-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    place
}

#[test]
fn file_is_private_whole_and_of_its_process() {
    let place = directory("sites");
    let of = Header {
        pid: 7,
        start_ticks: 99,
        ..Header::default()
    };
    let name = format!("7-99.{SITES}");
    let made = SitesFile::create(&place, &name, 64 << 20, &of).unwrap();
    assert_eq!(made.size(), MAX_FILE);
    write(made.writer().unwrap(), &stack(4, 5000));
    let path = place.join(&name);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.process(), (7, 99));
    assert_eq!(reader.next(), Some(Entry::Stack(stack(4, 5000))));
    assert!(
        SitesFile::create(&place, &name, MAX_FILE, &of).is_err(),
        "the name exists"
    );
    assert!(SitesFile::create(&place, "8-1.sites", MIN_FILE - 1, &of).is_err());
    let link = place.join("9-1.sites");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(Reader::open(&link).is_err(), "no link is followed");
    let left = std::fs::read_dir(&place).unwrap().count();
    assert_eq!(left, 2, "no temporary file is left");
    std::fs::remove_dir_all(&place).unwrap();
}

/// Reads all of a file that may contain anything.
fn survive(file: Vec<u8>) {
    let size = file.len();
    let Ok(mut reader) = Reader::of(file) else { return };
    for _ in 0..3 {
        for entry in reader.by_ref() {
            match entry {
                Entry::Mapping(mapping) => assert!(mapping.path.len() <= size),
                Entry::Stack(stack) => assert!(stack.bytes.len() <= MAX_STACK),
                Entry::Code(code) => assert!(code.lines.len() <= CODE_BYTES),
                Entry::Python(stack) => assert!(stack.frames.len() <= MAX_PYTHON_FRAMES),
            }
        }
        reader.give_up_unfinished();
    }
    let _ = (reader.counters(), reader.lost(), reader.process());
}

fn intact() -> Vec<u8> {
    let kept = Kept::new(MIN_FILE);
    for number in 0..90 {
        map(kept.writer(), &mapping(number));
        write(kept.writer(), &stack(number, number as usize * 40));
    }
    kept.bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_files_are_survived(changes in proptest::collection::vec((any::<u32>(), any::<u64>(), 0..4u8), 1..40)) {
        let mut file = intact();
        for (at, value, how) in changes {
            let words = file.len() / 8;
            // Half of the changes are in the header.
            let at = if how & 1 == 0 { at as usize % 24 } else { at as usize % words };
            let value = if how & 2 == 0 { value } else { value % 4096 };
            file[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
        }
        survive(file);
    }

    #[test]
    fn cut_files_are_survived(length in 0..MIN_FILE + 1) {
        let mut file = intact();
        file.truncate(length);
        survive(file);
    }
}

#[test]
fn foreign_files_are_refused() {
    assert!(Reader::of(Vec::new()).is_err());
    assert!(Reader::of(vec![0u8; MIN_FILE]).is_err());
    let mut file = intact();
    file[8..16].copy_from_slice(&(1u64 << 40).to_le_bytes());
    assert!(Reader::of(file).is_err(), "a ring larger than its file");
}
