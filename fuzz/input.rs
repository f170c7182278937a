//! Inputs of the fuzzer: an intact recording and changes to its blocks. The replay of the kept inputs uses this too.
//!
//! Each group of eight bytes changes one block: two select the block, two the position in its payload, one the
//! operation, three give the value. Checksums are corrected afterwards; otherwise no input would get past them.
//! `crates/source/src/recording/block.rs` defines the layout of blocks.

use roctop::export::collect::collect;
use roctop::export::facts::Facts;
use roctop::export::hosts::Hosts;
use roctop::export::options::{Choice, KernelNames};
use roctop::export::workspace::Workspace;
use roctop::export::{self, Format};
use roctop::item::{Exit, LossReason, ProcessId};
use roctop::model::sites::PathId;
use roctop::model::{Fresh, Options, Store};
use roctop::progress::Progress;
use roctop::raw::{Raw, RawSink};
use roctop::recording::{FACTS, MANIFEST, Merged, Recorder, Recording, SEGMENT};
use roctop::sysfs::{self, Absent, Metric};
use roctop_ring::layout::{Header, clock, counter};
use roctop_ring::reader::{InFlight, OpenCall, OpenRange, OpenWork, QueueWork, Thread};
use roctop_ring::record::{
    Agent, Allocation, ApiCall, CodeObject, Copy, Counter, CounterInstances, CounterValue, Dispatch, Domain, Head,
    KernelSymbol, Marker, OperationName, PAYLOAD_WORDS, PcSample, Queue, Scratch, Slot, Stream, counter_source,
};
use roctop_trace::site::{Frame, Line, MissingSites, Module, NO_MODULE, PathEnd, SiteFact, SiteNumber};
use std::num::NonZeroUsize;
use std::path::Path;

const HEADER: usize = 48;
const MAGIC: &[u8] = b"RBK1";

/// A recording's files: name and blocks.
pub(crate) struct Honest(Vec<(String, Vec<Block>)>);

#[derive(Clone)]
struct Block {
    header: [u8; HEADER],
    payload: Vec<u8>,
}

impl Block {
    fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.header[at..at + 4]);
        u32::from_le_bytes(word)
    }

    fn put(&mut self, at: usize, word: u32) {
        self.header[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }

    /// Its bytes, uncompressed, with correct lengths and checksums.
    fn seal(&self, into: &mut Vec<u8>) {
        let mut sealed = self.clone();
        sealed.put(4, self.word(4) & !0x100);
        sealed.put(20, self.payload.len() as u32);
        sealed.put(24, self.payload.len() as u32);
        sealed.put(28, crc32fast::hash(&self.payload));
        let sum = crc32fast::hash(&sealed.header[..HEADER - 4]);
        sealed.put(HEADER - 4, sum);
        into.extend_from_slice(&sealed.header);
        into.extend_from_slice(&self.payload);
    }
}

fn blocks(mut bytes: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    while let Some(header) = bytes.first_chunk::<HEADER>() {
        let mut block = Block {
            header: *header,
            payload: Vec::new(),
        };
        assert_eq!(&header[..4], MAGIC, "the layout of blocks has changed: change this too");
        let stored = &bytes[HEADER..][..block.word(24) as usize];
        block.payload = match block.word(4) & 0x100 {
            0 => stored.to_vec(),
            _ => lz4_flex::block::decompress(stored, block.word(20) as usize).unwrap(),
        };
        bytes = &bytes[HEADER + stored.len()..];
        blocks.push(block);
    }
    blocks
}

fn slots<const S: usize>(head: Head, payload: [[u64; PAYLOAD_WORDS]; S]) -> Vec<Slot> {
    let slot = |(at, [a, b, c, d, e, f]): (usize, [u64; PAYLOAD_WORDS])| {
        let head = if at == 0 {
            head
        } else {
            Head::new(roctop_ring::record::CONTINUATION, 0, at as u8, 0)
        };
        [head.0, a, b, c, d, e, f, at as u64 + 1]
    };
    payload.into_iter().enumerate().map(slot).collect()
}

/// Everything that a recording can contain.
fn deliver(sink: &mut dyn RawSink) {
    let process = ProcessId(0);
    let header = Header {
        major: roctop_ring::layout::MAJOR,
        pid: 7,
        exe: "app".into(),
        command: "app".into(),
        ..Header::default()
    };
    sink.take(process, &Raw::Header(&header));
    for (id, text) in [(1, "hipLaunchKernel"), (2, "_Z4axpyPf"), (3, "a text")] {
        sink.take(process, &Raw::Text(id, text.as_bytes()));
    }
    let name = OperationName {
        domain: 1,
        op: 3,
        name: 1,
        reserved: 0,
    };
    sink.take(
        process,
        &Raw::Fact(&slots(OperationName::head(0, Domain::NONE), name.payload())),
    );
    let symbol = KernelSymbol {
        kernel_object: 0x1000,
        name: 2,
        ..KernelSymbol::default()
    };
    sink.take(
        process,
        &Raw::Fact(&slots(KernelSymbol::head(0, Domain::NONE), symbol.payload())),
    );
    for at in [1_000_000, 2_000_000] {
        let mut sample = [at; clock::WORDS];
        sample[clock::WIDTH] = 20;
        sink.take(process, &Raw::Calibration(&sample));
    }
    let thread = Thread { index: 1, tid: 9 };
    for number in 0..20 {
        let time = 1_000_000 + number * 1000;
        let call = ApiCall {
            start: time,
            end: time + 10,
            correlation: number + 1,
            op: 3,
            has_status: ApiCall::status_word(true, number as u16 % 3),
            ..ApiCall::default()
        };
        sink.take(
            process,
            &Raw::Record(thread, &slots(ApiCall::head(0, Domain::HIP), call.payload())),
        );
        let ran = Dispatch {
            begin: time + 5,
            end: time + 50,
            correlation: number + 1,
            kernel_object: 0x1000,
            dispatch_id: number + 1,
            ..Dispatch::default()
        };
        sink.take(
            process,
            &Raw::Record(thread, &slots(Dispatch::head(0, Domain::NONE), ran.payload())),
        );
        let mark = Marker::payload([time, time], number, 0, 3 * (number as u32 % 2), 0, b"text");
        let head = Head::new(Marker::MARK, 0, 2, Domain::MARKER.0);
        sink.take(process, &Raw::Record(thread, &slots(head, [mark[0], mark[1]])));
    }
    deliver_facts(process, sink);
    deliver_records(process, thread, sink);
    deliver_sites(process, sink);
    deliver_end(process, thread, sink);
}

/// Call paths of C++ and Python, with PyTorch in them.
fn deliver_sites(process: ProcessId, sink: &mut dyn RawSink) {
    let frame = |module, offset| Frame { module, offset };
    let line = |function: &str, line| Line {
        function: function.into(),
        file: "model.py".into(),
        line,
        distance: 0,
    };
    let module = |number, is_python| {
        SiteFact::Module(Module {
            number,
            path: "/lib/libtorch.so".into(),
            build_id: vec![7; 20],
            problem: String::new(),
            is_python,
        })
    };
    let path = |site, frames| SiteFact::Path {
        site: SiteNumber(site),
        frames,
        end: PathEnd::Cut,
        is_guessed: false,
    };
    let names = |frame, lines| SiteFact::Names { frame, lines };
    let both = vec![frame(1, 16), frame(9, 32), frame(9, 48)];
    sink.take(
        process,
        &Raw::Sites(&[
            module(1, false),
            module(9, true),
            path(1, both),
            path(2, vec![frame(1, 16), frame(NO_MODULE, 4096)]),
            names(
                frame(1, 16),
                vec![line("inlined", 3), line("at::_ops::add_Tensor::call(int)", 4)],
            ),
            names(frame(9, 32), vec![line("Linear.forward", 70)]),
            names(frame(9, 48), vec![line("Module._call_impl", 80)]),
            SiteFact::Checked {
                site: SiteNumber(1),
                copies: 5,
                different: 1,
            },
            SiteFact::Missing(MissingSites {
                unreadable: 2,
                ..MissingSites::default()
            }),
        ]),
    );
}

/// The slots of a record by its fields.
macro_rules! slots_of {
    ($Kind:ident { $($field:ident: $value:expr),* }) => {{
        let record = $Kind { $($field: $value,)* ..$Kind::default() };
        slots($Kind::head(0, Domain::NONE), record.payload())
    }};
}

/// Facts that these records refer to.
fn deliver_facts(process: ProcessId, sink: &mut dyn RawSink) {
    macro_rules! fact {
        ($($record:tt)*) => { sink.take(process, &Raw::Fact(&slots_of!($($record)*))) };
    }
    for index in 0..2 {
        fact!(Agent {
            handle: 9,
            index: index,
            node: index,
            kind: index,
            name: 1
        });
    }
    fact!(Queue {
        handle: 0x7000,
        id: 1,
        agent: 1,
        state: 1
    });
    fact!(Stream {
        handle: 0x80,
        id: 1,
        state: 1
    });
    fact!(CodeObject {
        id: 1,
        agent: 1,
        uri: 3,
        base: 0x4000,
        size: 64
    });
    for id in 0..2 {
        fact!(Counter {
            handle: 70,
            id: id,
            agent: 1,
            name: 1 + id,
            dimensions: 3,
            pass: 1
        });
    }
}

/// A record of each kind that the loop does not write.
fn deliver_records(process: ProcessId, thread: Thread, sink: &mut dyn RawSink) {
    macro_rules! record {
        ($($record:tt)*) => { sink.take(process, &Raw::Record(thread, &slots_of!($($record)*))) };
    }
    let value = 4.0f64.to_bits();
    for dispatch_id in 1..5 {
        record!(CounterValue {
            dispatch_id: dispatch_id,
            value: value,
            counter: 0,
            agent: 1
        });
        record!(CounterInstances {
            dispatch_id: dispatch_id,
            counter: 0,
            count: 3,
            value: value
        });
        record!(PcSample {
            time: 1_000_500,
            dispatch_id: dispatch_id,
            code_object: 1,
            offset: 8,
            method: 1
        });
        let time = 1_000_000 + dispatch_id * 1000;
        let source = counter_source::DEVICE;
        record!(CounterValue {
            value: value,
            time: time,
            counter: 1,
            agent: 1,
            source: source
        });
        let stream = dispatch_id as u32 % 2;
        record!(Copy {
            begin: time,
            end: time + 5,
            correlation: dispatch_id,
            bytes: 64,
            stream: stream
        });
        record!(Allocation {
            start: time,
            end: time + 5,
            correlation: dispatch_id,
            bytes: 64,
            address: 4096
        });
        record!(Scratch {
            start: time,
            end: time + 5,
            correlation: dispatch_id,
            bytes: 64
        });
    }
    let gauge = |pid, value| sysfs::Sample {
        at: 1_000_700,
        node: 1,
        pid,
        readings: vec![(Metric::POWER, Ok(value)), (Metric::FAN, Err(Absent::Denied))],
        ..sysfs::Sample::default()
    };
    sink.take(process, &Raw::Gauges(&[gauge(None, 7.5), gauge(Some(7), 1.5)]));
}

/// Losses, open work, and the exit.
fn deliver_end(process: ProcessId, thread: Thread, sink: &mut dyn RawSink) {
    sink.take(process, &Raw::Lost(thread, LossReason::NotWritten, 5));
    sink.take(process, &Raw::Counters(&[3; counter::WORDS]));
    let work = OpenWork {
        calls: vec![OpenCall {
            thread,
            start: 1_500_000,
            domain: Domain::HIP,
            op: 3,
            correlation: 70,
            level: 0,
        }],
        ranges: vec![OpenRange {
            thread,
            start: 1_500_000,
            correlation: 71,
            range_id: 0,
            text_id: 0,
            level: 0,
            text: b"open".to_vec(),
        }],
        queues: vec![QueueWork {
            id: 1,
            submitted: 3,
            completed: 2,
            in_flight: vec![InFlight {
                submit: 1_500_000,
                kernel_object: 0x1000,
                correlation: 70,
                dispatch_id: 99,
            }],
            ..QueueWork::default()
        }],
    };
    sink.take(process, &Raw::Open(&work));
    sink.take(process, &Raw::Output(b"hello\n"));
    sink.take(process, &Raw::Now(3_000_000));
    sink.take(process, &Raw::Ended(Exit::Code(0), 3_000_000));
}

impl Honest {
    /// Creates it at `path`, with the real writer.
    pub(crate) fn make(path: &Path) -> Self {
        let mut recorder = Recorder::create(path, &["app".to_owned()], &[]).unwrap();
        deliver(&mut recorder);
        recorder.finish().unwrap();
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).unwrap() {
            let file = entry.unwrap().path();
            if file.extension().is_some_and(|ending| ending == SEGMENT) {
                let name = file.file_name().unwrap().to_string_lossy().into_owned();
                files.push((name, blocks(&std::fs::read(&file).unwrap())));
            }
        }
        files.sort_by(|one, other| one.0.cmp(&other.0));
        assert!(files.iter().any(|(name, _)| name.starts_with(FACTS)) && path.join(MANIFEST).exists());
        Self(files)
    }

    /// Writes the changed recording over the one at `path`.
    pub(crate) fn write(&self, path: &Path, changes: &[u8]) {
        let mut files: Vec<Vec<Block>> = self.0.iter().map(|(_, blocks)| blocks.clone()).collect();
        for change in changes.as_chunks::<8>().0 {
            let [file, block, low, high, how, value @ ..] = *change;
            let count = files.len();
            let blocks = &mut files[usize::from(file) % count];
            if blocks.is_empty() {
                continue;
            }
            let at = usize::from(block) % blocks.len();
            let place = usize::from(u16::from_le_bytes([low, high]));
            let value = u32::from_le_bytes([value[0], value[1], value[2], 0]);
            apply(blocks, at, place, how, value);
        }
        for ((name, _), blocks) in self.0.iter().zip(files) {
            let mut bytes = Vec::new();
            for block in &blocks {
                block.seal(&mut bytes);
            }
            std::fs::write(path.join(name), bytes).unwrap();
        }
    }
}

fn apply(blocks: &mut Vec<Block>, at: usize, place: usize, how: u8, value: u32) {
    let other = value as usize % blocks.len();
    let block = &mut blocks[at];
    let length = block.payload.len();
    match how % 10 {
        0 if length > 0 => block.payload[place % length] = value as u8,
        1 | 2 if length >= 8 => {
            let place = place % (length / 8) * 8;
            let new = if how % 10 == 1 {
                u64::from(value)
            } else {
                u64::MAX - u64::from(value)
            };
            block.payload[place..place + 8].copy_from_slice(&new.to_le_bytes());
        }
        3 => block.payload.truncate(place),
        4 => block.payload.resize((length + place).min(1 << 16), value as u8),
        5 => block.put(4, value & 0xff),
        6 => block.put(8 + place % 3 * 4, value),
        7 => blocks.swap(at, other),
        8 => {
            blocks.remove(at);
        }
        _ if blocks.len() < 200 => {
            let copy = blocks[at].clone();
            blocks.insert(other, copy);
        }
        _ => {}
    }
}

/// Does everything that a viewer does with a recording.
pub(crate) fn look(path: &Path) {
    let Ok(recording) = Recording::open(path) else { return };
    let mut count = 0usize;
    let mut store = Store::new(Options::default());
    let _ = recording.items(&mut |items| {
        count += items.len();
        store.apply_all(&items);
    });
    let snapshot = store.snapshot(Fresh::All);
    let sites = &snapshot.sites;
    for path in (0..sites.paths().len() as u32).map(PathId) {
        assert!(!sites.label(path).is_empty());
        let _ = (
            sites.operator(path),
            sites.torch_module(path),
            sites.caller(path),
            sites.is_ambiguous(path),
        );
        assert!(sites.functions(path).count() < 1 << 20);
    }
    let _ = sites.missing();
    drop(snapshot);
    assert!(count < 1 << 20, "{count} items in a small recording");
    let _ = recording.span();
    let _ = recording.clocks();
}

/// Threads of an export: some, so that what several do is read too.
const THREADS: NonZeroUsize = NonZeroUsize::new(2).unwrap();
/// Memory of an export for sorted runs, bytes.
const MEMORY: usize = 1 << 20;

/// Exports it in every format to `out`, which is then removed; returns the number of files.
pub(crate) fn files(path: &Path, out: &Path) -> usize {
    let Ok(recording) = Recording::open(path) else { return 0 };
    let recording = recording.on_threads(THREADS);
    let _ = std::fs::remove_dir_all(out);
    std::fs::create_dir_all(out).unwrap();
    // Unreadable parts are reported; the files of the readable parts are complete.
    let count = written(&recording, out).unwrap_or(0);
    let _ = std::fs::remove_dir_all(out);
    count
}

fn written(recording: &Recording, out: &Path) -> Result<usize, Box<dyn std::error::Error>> {
    let mut count = 0;
    let whole = Merged::new(vec![recording])?;
    let place = Workspace::new(out, THREADS, MEMORY);
    let (collected, _) = collect(&whole, None, &place, &Progress::new())?;
    let facts = Facts::read(&whole)?;
    let mut nodes = Hosts::default();
    nodes.complete(&collected.run);
    for rename in [false, true] {
        let choice = Choice {
            rename,
            stats: true,
            wide_counters: true,
            kernel_names: if rename {
                KernelNames::Truncated
            } else {
                KernelNames::Demangled
            },
            ..Choice::default()
        };
        let job = export::Job {
            collected: &collected,
            place: &place,
            nodes: &nodes,
            facts: &facts,
            command: &[],
            choice: &choice,
            formats: &[
                Format::Csv,
                Format::Json,
                Format::Pftrace,
                Format::Rocpd,
                Format::Parquet,
                Format::Kineto,
                Format::Pprof,
                Format::Collapsed,
            ],
            progress: &Progress::new(),
            sums: true,
            stem: &|_| out.join("t"),
        };
        let made = export::write(&job)?;
        count += made.files.len();
        for file in made
            .files
            .iter()
            .filter(|file| file.extension().is_some_and(|ending| ending == "json"))
        {
            let _: serde_json::Value = serde_json::from_slice(&std::fs::read(file)?).expect("it is JSON");
        }
    }
    Ok(count)
}
