//! Inputs of the fuzzer: an intact file and changes to it. The replay of the kept inputs uses this too.
//!
//! An input that begins with 0 is a file as is. Otherwise each group of eight bytes changes the intact file: three
//! bytes select the word, one the operation, four give the value. The header's checksum is corrected afterwards;
//! otherwise no input would get past it.

use roctop_ring::directory;
use roctop_ring::flight;
use roctop_ring::layout::{Header, MAJOR, PAGE, Region, Spec, clock, counter, entry, seal};
use roctop_ring::record::{ApiCall, Dispatch, Domain, ThreadStart};
use roctop_ring::sites;
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::{FactWriter, RingWriter, StringWriter};

const SLOTS: u64 = 64;

fn spec() -> Spec {
    Spec {
        ordinal: 0,
        rings: vec![SLOTS; 2],
        facts: 16,
        strings: 8,
        string_bytes: 512,
    }
}

fn put(file: &mut [u8], at: u64, words: &[AtomicU64]) {
    for (i, word) in words.iter().enumerate() {
        let at = at as usize + i * 8;
        file[at..at + 8].copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
}

fn fresh(count: u64) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// An intact file, made by the real writers.
pub(crate) fn intact() -> Vec<u8> {
    let (regions, size) = spec().regions();
    let header = Header {
        major: MAJOR,
        size,
        regions,
        pid: 7,
        exe: "app".into(),
        ..Header::default()
    };
    let mut file = vec![0; size as usize];
    file[..PAGE].copy_from_slice(&header.encode());
    let rings = header.region(Region::Rings);
    for index in 0..2 {
        let words = fresh(entry::WORDS as u64);
        let slots = fresh(SLOTS * 8);
        let at = rings.offset + index * SLOTS * 64;
        words[entry::RING_OFFSET].store(at, Ordering::Relaxed);
        words[entry::RING_SLOTS].store(SLOTS, Ordering::Relaxed);
        let generation = directory::claim(&words, 100, 1, [0; 2]).unwrap();
        let ring = RingWriter::new(&slots, &words[entry::HEAD], &words[entry::RECORDS]).unwrap();
        let start = ThreadStart {
            tid: 100,
            generation,
            ..ThreadStart::default()
        };
        ring.push(ThreadStart::head(0, Domain::NONE), &start.payload());
        for n in 0..20 + 30 * index {
            ring.push(
                ApiCall::head(0, Domain::HIP),
                &ApiCall {
                    start: n,
                    ..ApiCall::default()
                }
                .payload(),
            );
            ring.push(
                Dispatch::head(0, Domain::NONE),
                &Dispatch {
                    begin: n,
                    ..Dispatch::default()
                }
                .payload(),
            );
        }
        words[entry::CALL_DEPTH].store(2, Ordering::Relaxed);
        words[entry::RANGE_DEPTH].store(1, Ordering::Relaxed);
        put(
            &mut file,
            header.region(Region::Directory).offset + index * entry::WORDS as u64 * 8,
            &words,
        );
        put(&mut file, at, &slots);
    }
    let counts = fresh(counter::WORDS as u64);
    let (facts, index, bytes) = (fresh(16 * 8), fresh(8), fresh(64));
    let writer = FactWriter::new(&facts, &counts[counter::FACTS_USED], &counts[counter::FACTS_FULL]);
    for _ in 0..5 {
        assert!(writer.append(Dispatch::head(0, Domain::NONE), &Dispatch::default().payload()));
    }
    let [ids, used, full] = [counter::STRINGS, counter::STRING_WORDS, counter::STRINGS_FULL].map(|at| &counts[at]);
    for text in ["one", "a longer one", ""] {
        StringWriter::new(&index, &bytes, ids, used, full).add(text.as_bytes());
    }
    let sample = fresh(clock::WORDS as u64);
    directory::write_sample(&sample, 0, &[5; clock::WORDS]);
    for (kind, words) in [
        (Region::Counters, &counts),
        (Region::Facts, &facts),
        (Region::StringIndex, &index),
        (Region::StringBytes, &bytes),
        (Region::Clock, &sample),
    ] {
        put(&mut file, header.region(kind).offset, words);
    }
    file
}

/// A ring file from an input.
pub(crate) fn ring(input: &[u8]) -> Vec<u8> {
    match input {
        [0, rest @ ..] => rest.to_vec(),
        changes => {
            let mut file = changed(intact(), changes);
            seal(&mut file);
            file
        }
    }
}

/// A flight file from an input.
pub(crate) fn flying(input: &[u8]) -> Vec<u8> {
    match input {
        [0, rest @ ..] => rest.to_vec(),
        changes => changed(intact_flight(), changes),
    }
}

/// A flight file with dispatches in every state.
fn intact_flight() -> Vec<u8> {
    const SLOTS: usize = 8;
    let head = fresh(PAGE as u64 / 8);
    head[flight::header::MAGIC].store(flight::MAGIC, Ordering::Relaxed);
    head[flight::header::SLOTS].store(SLOTS as u64, Ordering::Relaxed);
    flight::keep_point(&head, 1_000_000, 10_000_000);
    flight::keep_point(&head, 2_000_000, 20_000_000);
    let records = fresh((SLOTS * flight::SLOT_WORDS) as u64);
    let signals = fresh((SLOTS * flight::SIGNAL_WORDS) as u64);
    for (at, state) in [flight::State::Own, flight::State::Foreign, flight::State::Own]
        .into_iter()
        .enumerate()
    {
        let slot = flight::SlotWriter::new(&records, at).unwrap();
        slot.keep(&Dispatch {
            dispatch_id: at as u64 + 1,
            ..Dispatch::default()
        });
        slot.publish(at as u64, state);
        signals[at * flight::SIGNAL_WORDS + 4].store(1_500_000, Ordering::Relaxed);
        signals[at * flight::SIGNAL_WORDS + 5].store(1_500_010, Ordering::Relaxed);
    }
    flight::SlotWriter::new(&records, 2).unwrap().take();
    let words = head.iter().chain(&records).chain(&signals);
    words
        .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes())
        .collect()
}

/// A stack file from an input.
pub(crate) fn stacks(input: &[u8]) -> Vec<u8> {
    match input {
        [0, rest @ ..] => rest.to_vec(),
        changes => changed(intact_stacks(), changes),
    }
}

/// A stack file whose ring was filled more than once.
fn intact_stacks() -> Vec<u8> {
    let words = fresh(sites::MIN_FILE as u64 / 8);
    let (head, ring) = words.split_at(PAGE / 8);
    let writer = sites::SitesWriter::new(head, ring).unwrap();
    writer.begin(1, 2);
    for number in 0..90u64 {
        writer.mapping(&sites::MappingWords {
            start: number << 12,
            end: (number + 1) << 12,
            path: b"/usr/lib/libm.so.6",
            ..sites::MappingWords::default()
        });
        let call = sites::Call {
            site: number as u16 + 1,
            ip: number << 12,
            ..sites::Call::default()
        };
        let text = |bytes| sites::Text { width: 1, bytes };
        writer.code(&sites::CodeWords {
            id: number,
            minor: 11,
            first_line: number as u32,
            file: text(8),
            name: text(7),
            bytes: b"model.pyforward\x80\x11\xdb\x05\x06",
        });
        let frame = sites::PythonFrame {
            code: number,
            instruction: 2 * number,
            entry: number % 3,
        };
        writer.python(&call, [0; 2], &vec![frame; number as usize], false);
        writer.stack(&call, &vec![number as u8; 20 * number as usize]);
    }
    let words = words.iter();
    words
        .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes())
        .collect()
}

fn changed(mut file: Vec<u8>, changes: &[u8]) -> Vec<u8> {
    for change in changes.as_chunks::<8>().0 {
        let [a, b, c, how, value @ ..] = *change;
        let value = u64::from(u32::from_le_bytes(value));
        let words = file.len() / 8;
        if words == 0 {
            break;
        }
        let at = u32::from_le_bytes([a, b, c, 0]) as usize % words;
        let Some(place) = file[at * 8..].first_chunk_mut::<8>() else {
            continue;
        };
        let old = u64::from_le_bytes(*place);
        let new = match how % 8 {
            0 => old & !0xffff_ffff | value,
            1 => old & 0xffff_ffff | value << 32,
            2 => old.wrapping_add(value),
            3 => old.wrapping_sub(value),
            4 => old ^ 1 << (value % 64),
            5 => value,
            6 => u64::MAX - value,
            _ => {
                file.truncate(at * 8);
                continue;
            }
        };
        *place = new.to_le_bytes();
    }
    file
}
