//! Encodes and decodes block payloads. Words are little-endian.
//!
//! Decoding is total: incomplete elements are dropped, and a corrupt length never reads beyond the payload.

use super::block::{Head, Kind};
use crate::sysfs;
use roctop_ring::layout::{Header, clock};
use roctop_ring::reader::{InFlight, OpenCall, OpenRange, OpenWork, QueueWork, Thread};
use roctop_ring::record::{Domain, SLOT_WORDS, Slot};
use roctop_trace::binding::Binding;
use roctop_trace::item::{Exit, LossReason, Nanos, ProcessId};
use roctop_trace::raw::{Raw, RawSink, each};
use roctop_trace::site::SiteFact;
use roctop_trace::thread_reading::ThreadReading;

/// Appends slots, for blocks of records and of facts.
pub(super) fn put_slots(bytes: &mut Vec<u8>, slots: &[Slot]) {
    for slot in slots {
        let words = slot.map(u64::to_le_bytes);
        bytes.extend_from_slice(words.as_flattened());
    }
}

/// Appends a string, for a block of strings: id, length in bytes, bytes.
pub(super) fn put_text(bytes: &mut Vec<u8>, id: u32, text: &[u8]) {
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text);
}

/// Encodes words as bytes.
pub(super) fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Complete words of a payload.
pub(super) fn words(payload: &[u8]) -> Vec<u64> {
    let words = payload.as_chunks::<8>().0.iter();
    words.map(|word| u64::from_le_bytes(*word)).collect()
}

/// Complete slots of a payload.
pub(super) fn slots(words: &[u64]) -> &[Slot] {
    words.as_chunks::<SLOT_WORDS>().0
}

/// Reasons of losses by their number in blocks. Earlier releases read the count alone, and take all for overwritten.
const LOSSES: [LossReason; 3] = [LossReason::Overwritten, LossReason::NotWritten, LossReason::Removed];

/// Encodes records that were lost, and why.
pub(super) fn lost(reason: LossReason, records: u64) -> Vec<u8> {
    let number = LOSSES.iter().position(|known| *known == reason).unwrap_or(0);
    bytes(&[records, number as u64])
}

/// The reason with this number; a later release's is the first.
fn loss_reason(number: u64) -> LossReason {
    let known = usize::try_from(number).ok().and_then(|number| LOSSES.get(number));
    known.copied().unwrap_or(LossReason::Overwritten)
}

/// Encodes the exit of a process and its time.
pub(super) fn ended(exit: Exit, at: Nanos) -> Vec<u8> {
    let (kind, number) = match exit {
        Exit::Code(code) => (1u64, i64::from(code)),
        Exit::Signal(signal) => (2, i64::from(signal)),
        Exit::Unknown => (0, 0),
    };
    bytes(&[kind, number as u64, at])
}

/// Encodes readings of how long threads had run, four words each.
pub(super) fn thread_times(readings: &[ThreadReading]) -> Vec<u8> {
    let words = readings.iter().flat_map(|reading| {
        let state = match reading.is_running {
            None => 0u64,
            Some(false) => 1,
            Some(true) => 2,
        };
        let thread = u64::from(reading.tid) | state << 32;
        [thread, reading.at, reading.running, reading.ready]
    });
    let words: Vec<u64> = words.collect();
    bytes(&words)
}

fn read_thread_times(words: &[u64]) -> Vec<ThreadReading> {
    let readings = words.as_chunks::<4>().0.iter();
    let readings = readings.map(|&[thread, at, running, ready]| ThreadReading {
        tid: thread as u32,
        is_running: match thread >> 32 {
            1 => Some(false),
            2 => Some(true),
            _ => None,
        },
        at,
        running,
        ready,
    });
    readings.collect()
}

/// Encodes where a process may run.
pub(super) fn binding(binding: &Binding) -> Vec<u8> {
    postcard::to_allocvec(binding).unwrap_or_default()
}

fn read_binding(payload: &[u8]) -> Option<Binding> {
    postcard::from_bytes(payload).ok()
}

/// Encodes facts about call sites, without gaps.
pub(super) fn sites(facts: &[SiteFact]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for fact in facts {
        // Writing to memory does not fail.
        if let Ok(more) = postcard::to_extend(fact, std::mem::take(&mut bytes)) {
            bytes = more;
        }
    }
    bytes
}

/// The facts up to the first one that is not valid.
fn read_sites(mut payload: &[u8]) -> Vec<SiteFact> {
    let mut facts = Vec::new();
    while !payload.is_empty()
        && let Ok((fact, rest)) = postcard::take_from_bytes(payload)
    {
        facts.push(fact);
        payload = rest;
    }
    facts
}

/// Encodes open work.
pub(super) fn open(work: &OpenWork) -> Vec<u8> {
    let mut all = vec![
        work.calls.len() as u64,
        work.ranges.len() as u64,
        work.queues.len() as u64,
    ];
    for call in &work.calls {
        let operation = u64::from(call.domain.0) << 32 | u64::from(call.level) << 16 | u64::from(call.op);
        all.extend([word_of(call.thread), call.start, operation, call.correlation]);
    }
    for queue in &work.queues {
        let in_flight = queue.in_flight.len() as u64;
        all.extend([
            u64::from(queue.id),
            queue.submitted,
            queue.completed,
            queue.untimed,
            in_flight,
        ]);
        for work in &queue.in_flight {
            all.extend([work.submit, work.kernel_object, work.correlation, work.dispatch_id]);
        }
    }
    for range in &work.ranges {
        let sizes = u64::from(range.text_id) << 32 | u64::from(range.level) << 16 | range.text.len() as u64;
        all.extend([
            word_of(range.thread),
            range.start,
            range.correlation,
            range.range_id,
            sizes,
        ]);
        for chunk in range.text.chunks(8) {
            let mut raw = [0u8; 8];
            raw[..chunk.len()].copy_from_slice(chunk);
            all.push(u64::from_le_bytes(raw));
        }
    }
    bytes(&all)
}

fn word_of(thread: Thread) -> u64 {
    u64::from(thread.index) << 32 | u64::from(thread.tid)
}

fn thread_of(word: u64) -> Thread {
    Thread {
        index: (word >> 32) as u32,
        tid: word as u32,
    }
}

/// Process and thread of a block.
pub(super) const fn owner(head: Head) -> (ProcessId, Thread) {
    let thread = Thread {
        index: head.thread,
        tid: head.tid,
    };
    (ProcessId(head.process & 0xffff), thread)
}

/// Delivers the content of a block; ignores kinds of later releases.
pub(super) fn deliver(head: Head, payload: &[u8], sink: &mut dyn RawSink) {
    let (process, thread) = owner(head);
    let words = words(payload);
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    match head.kind {
        Kind::PROCESS => {
            if let Ok(header) = Header::decode(payload, u64::MAX) {
                sink.take(process, &Raw::Header(&header));
            }
        }
        Kind::TEXTS => read_texts(payload, &mut |id, text| sink.take(process, &Raw::Text(id, text))),
        Kind::FACTS => each(slots(&words)).for_each(|fact| sink.take(process, &Raw::Fact(fact))),
        Kind::CALIBRATION => {
            let mut sample = [0; clock::WORDS];
            sample.iter_mut().zip(&words).for_each(|(to, word)| *to = *word);
            sink.take(process, &Raw::Calibration(&sample));
        }
        Kind::RECORDS => sink.records(process, thread, slots(&words)),
        Kind::LOST => sink.take(process, &Raw::Lost(thread, loss_reason(word(1)), word(0))),
        Kind::DROPPED => sink.take(process, &Raw::Lost(thread, LossReason::Removed, word(0))),
        Kind::COUNTERS => sink.take(process, &Raw::Counters(&words)),
        Kind::OPEN => sink.take(process, &Raw::Open(&read_open(&words))),
        Kind::ENDED => {
            let exit = match word(0) {
                1 => Exit::Code(word(1) as i32),
                2 => Exit::Signal(word(1) as i32),
                _ => Exit::Unknown,
            };
            sink.take(process, &Raw::Ended(exit, word(2)));
        }
        Kind::OUTPUT => sink.take(process, &Raw::Output(payload)),
        Kind::GAUGES => sink.take(process, &Raw::Gauges(&sysfs::store::decode(payload))),
        Kind::THREAD_TIMES => sink.take(process, &Raw::ThreadTimes(&read_thread_times(&words))),
        Kind::BINDING => {
            if let Some(binding) = read_binding(payload) {
                sink.take(process, &Raw::Binding(&binding));
            }
        }
        Kind::SITES => sink.take(process, &Raw::Sites(&read_sites(payload))),
        Kind::NOW => sink.take(process, &Raw::Now(word(0))),
        _ => {}
    }
}

fn read_texts(payload: &[u8], take: &mut dyn FnMut(u32, &[u8])) {
    let mut rest = payload;
    while let Some((sizes, after)) = rest.split_first_chunk::<8>() {
        let number = |at: usize| u32::from_le_bytes([sizes[at], sizes[at + 1], sizes[at + 2], sizes[at + 3]]);
        let Some(text) = after.get(..number(4) as usize) else {
            return;
        };
        take(number(0), text);
        rest = &after[text.len()..];
    }
}

fn read_open(words: &[u64]) -> OpenWork {
    let mut work = OpenWork::default();
    let _is_whole = take_open(&mut words.iter().copied(), &mut work);
    work
}

/// Decodes open work; `None` if the words end too early.
fn take_open(words: &mut dyn Iterator<Item = u64>, work: &mut OpenWork) -> Option<()> {
    let mut next = || words.next();
    let (calls, ranges, queues) = (next()?, next()?, next()?);
    for _ in 0..calls {
        let (thread, start, operation, correlation) = (next()?, next()?, next()?, next()?);
        work.calls.push(OpenCall {
            thread: thread_of(thread),
            start,
            domain: Domain((operation >> 32) as u8),
            op: operation as u16,
            correlation,
            level: (operation >> 16) as u16,
        });
    }
    for _ in 0..queues {
        let mut queue = QueueWork {
            id: next()? as u32,
            submitted: next()?,
            completed: next()?,
            untimed: next()?,
            in_flight: Vec::new(),
        };
        for _ in 0..next()? {
            let (submit, kernel_object, correlation, dispatch_id) = (next()?, next()?, next()?, next()?);
            queue.in_flight.push(InFlight {
                submit,
                kernel_object,
                correlation,
                dispatch_id,
            });
        }
        work.queues.push(queue);
    }
    for _ in 0..ranges {
        let (thread, start, correlation, range_id, sizes) = (next()?, next()?, next()?, next()?, next()?);
        let length = (sizes & 0xffff) as usize;
        let mut text = Vec::new();
        for _ in 0..length.div_ceil(8) {
            text.extend(next()?.to_le_bytes());
        }
        text.truncate(length);
        work.ranges.push(OpenRange {
            thread: thread_of(thread),
            start,
            correlation,
            range_id,
            text_id: (sizes >> 32) as u32,
            level: (sizes >> 16) as u16,
            text,
        });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_trace::site::{Frame, Module, NO_MODULE, PathEnd, SiteNumber};

    fn work() -> OpenWork {
        let thread = Thread { index: 3, tid: 77 };
        let in_flight = |number| InFlight {
            submit: 1,
            kernel_object: 2,
            correlation: 3,
            dispatch_id: number,
        };
        OpenWork {
            calls: vec![OpenCall {
                thread,
                start: 10,
                domain: Domain::HIP,
                op: 500,
                correlation: 9,
                level: 2,
            }],
            ranges: vec![OpenRange {
                thread,
                start: 11,
                correlation: 12,
                range_id: 13,
                text_id: 14,
                level: 15,
                text: b"epoch 12".to_vec(),
            }],
            queues: vec![QueueWork {
                id: 4,
                submitted: 5,
                completed: 3,
                untimed: 1,
                in_flight: vec![in_flight(4), in_flight(5)],
            }],
        }
    }

    #[test]
    fn open_work_round_trips() {
        assert_eq!(read_open(&words(&open(&work()))), work());
        assert_eq!(read_open(&words(&open(&OpenWork::default()))), OpenWork::default());
    }

    #[test]
    fn thread_times_round_trip() {
        let reading = |tid, is_running| ThreadReading {
            tid,
            is_running,
            at: 3,
            running: 2,
            ready: u64::MAX,
        };
        let readings = [reading(7, None), reading(8, Some(true)), reading(u32::MAX, Some(false))];
        let encoded = words(&thread_times(&readings));
        assert_eq!(read_thread_times(&encoded), readings);
        assert_eq!(read_thread_times(&encoded[..7]), readings[..1]);
    }

    #[test]
    fn truncated_open_work_ends_with_its_words() {
        let whole = words(&open(&work()));
        for length in 0..whole.len() {
            let read = read_open(&whole[..length]);
            assert!(read.ranges.is_empty(), "the range is the last thing, and is not whole");
        }
        assert_eq!(read_open(&[u64::MAX, u64::MAX, u64::MAX, 1, 2, 3, 4]).calls.len(), 1);
    }

    #[test]
    fn texts_come_back_until_one_is_not_whole() {
        let mut bytes = Vec::new();
        put_text(&mut bytes, 1, b"one");
        put_text(&mut bytes, 2, b"");
        put_text(&mut bytes, 3, b"three");
        let read = |bytes: &[u8]| {
            let mut read = Vec::new();
            read_texts(bytes, &mut |id, text| read.push((id, text.to_vec())));
            read
        };
        let all = [(1, b"one".to_vec()), (2, Vec::new()), (3, b"three".to_vec())];
        assert_eq!(read(&bytes), all);
        assert_eq!(read(&bytes[..bytes.len() - 1]), all[..2]);
    }

    #[test]
    fn facts_about_sites_come_back_until_one_is_not_whole() {
        let facts = [
            SiteFact::Module(Module {
                number: 3,
                path: "/opt/app".into(),
                build_id: vec![1, 2, 3],
                problem: String::new(),
                is_python: true,
            }),
            SiteFact::Path {
                site: SiteNumber(7),
                frames: vec![
                    Frame {
                        module: 3,
                        offset: 0x1234,
                    },
                    Frame {
                        module: NO_MODULE,
                        offset: u64::MAX,
                    },
                ],
                end: PathEnd::Cut,
                is_guessed: true,
            },
            SiteFact::Checked {
                site: SiteNumber(7),
                copies: 2,
                different: 1,
            },
        ];
        let bytes = sites(&facts);
        assert_eq!(read_sites(&bytes), facts);
        for length in 0..bytes.len() {
            let read = read_sites(&bytes[..length]);
            assert!(read.len() < facts.len() && facts.starts_with(&read), "{length}");
        }
        // A length that no block has.
        assert_eq!(read_sites(&[1, 7, 0xff, 0xff, 0xff, 0xff, 0x0f]), []);
    }
}
