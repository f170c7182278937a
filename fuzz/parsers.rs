//! All readers of foreign text and bytes, except rings and recordings: valid inputs, and the properties that must hold
//! for any input. The test that changes them and replays the kept inputs uses this too.

use roctop::ask::protocol::{self, Form, Response, written};
use roctop::counters::request;
use roctop::export::options::parse_range;
use roctop::item::{Item, Marker, Open};
use roctop::kernel_descriptor::{self, Descriptor};
use roctop::kernel_name::{demangle, truncate};
use roctop::model::ask::tool::{self, Call};
use roctop::model::ask::{Id, Question};
use roctop::model::job::{
    ArrivalSums, CommunicatorPart, Job, KernelSums, NodeClock, RankReport, RankSums, Reducer, decode_node, decode_rank,
    encode_rank, name_id,
};
use roctop::model::trigger::{Condition, Watch};
use roctop::model::{Fresh, Options, Snapshot};
use roctop::pc_sampling::SamplingRequest;
use roctop::process::elf::kind;
use roctop::query::{self, Field, Filter};
use roctop::recording::{MANIFEST, Recording};
use roctop::report::threshold::Threshold;
use roctop::rocprofv3::jobs_of;
use roctop::settings::Config;
use roctop::sysfs::gpu_metrics::{REVISIONS, Table, layout};
use roctop::sysfs::{Metric, Sample, fdinfo, store, text};
use roctop::ui::ask::{Source, answer};
use roctop::ui::key::{Decoder, Key};
use roctop::ui::theme::{BUILT_IN, Depth, Theme};
use roctop::ui::{Msg, Ui, export, update};
use roctop_scenario::Scenario;
use roctop_unwind::{Files, Mapping, Names, NoName, Process, Stack, line_of_python};
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A reader.
pub(crate) struct Parser {
    pub(crate) name: &'static str,
    /// Reads an input; an assertion fails if a property does not hold.
    pub(crate) read: fn(&[u8]),
    /// Valid inputs.
    pub(crate) honest: fn() -> Vec<Vec<u8>>,
}

macro_rules! parsers {
    ($($name:ident: $honest:expr;)*) => {
        /// All readers; the first byte of the fuzzer's input selects one, so new ones are appended.
        pub(crate) const PARSERS: &[Parser] = &[$(Parser {
            name: stringify!($name),
            read: $name,
            honest: || $honest.into_iter().map(|one| Vec::from(one)).collect(),
        },)*];
    };
}

parsers! {
    filter: [
        "gemm & dur>1ms & stream=3 !~memset", "dev=0,2 | (copy & dir=h2d,fill)", "SQ_WAVES>=1k & /Cijk.*/i",
        "bw<5GB/s !grid=1..64 thread~main", "?fma & \"a \\\" b\" share>10%", "@big scratch != 0",
    ];
    config: [
        roctop::settings::printed().as_str(),
        "theme = \"dark\"\n[keys]\npause = [\"p\", \"ctrl-p\"]\n[columns]\nkernels = [\"KERNEL\", \"P99\"]\n\
         [thresholds]\nidle = 40.0\ngap = \"1ms\"\n[[alias]]\nkernel = \"^_Z5\"\nname = \"five\"\n[presets]\na = \"dur>1ms\"\n",
    ];
    theme: BUILT_IN.map(|theme| theme.1);
    scenario: [
        include_str!("../tests/scenarios/training.toml"),
    ];
    threshold: ["p99(gemm<float, (int)4>) > 2ms", "errors(hipMalloc) >= 0", "lost > 0", "avg(x) <= 1.5us"];
    range: ["1.5s..2s", "200ms..", "..3h", "..", "1µs..2min"];
    words: [
        "SQ_WAVES, TCC_HIT[1]:device=3", "[1, 3, [8-12]]", "stochastic,cycles,1024", "ctrl-p", "dur 1.5ms", "127.0.0.1:9400",
    ];
    definitions: [
        "rocprofiler-sdk:\n  counters-schema-version: 1\n  counters:\n  - name: A\n    description: &d 'two'\n\
         \x20   definitions: [{architectures: [gfx90a, gfx942], expression: \"reduce(B,sum)\"}]\n  - {name: B, description: *d}\n",
    ];
    input_text: ["# two\npmc: SQ_WAVES TCC_HIT[1]\n\npmc: GRBM_COUNT # clocks\ngpu: 0\n"];
    input_yaml: [
        "jobs:\n  - kernel_trace: true\n    output_format: [csv, json]\n    output_file: out\n  - &a hip_trace: yes\n  - *a\n",
        "metrics:\n  - pmc: [SQ_WAVES, GRBM_COUNT]\n",
    ];
    input_json: [
        r#"{"jobs":[{"kernel_trace":true,"output_format":["csv","json"],"pmc":["A","B"]},{"hip_trace":"yes","pc_sampling_interval":1}]}"#,
    ];
    name: [
        "_Z5scaleIfEvPT_S0_i", "_Z1f1AIiiES_IS0_S0_E", "_ZN4math5tiledILi16EfEEvPT0_PKS1_",
        "_ZN12_GLOBAL__N_11kEi", "_ZZ4mainENKUlvE_clEv", "_ZNSt3mapISsSt6vectorIiSaIiEESt4lessISsEEixERKSs.kd",
        "void math::tiled<16, float>(float*, float const*)",
    ];
    registers: [[7u8; 16]];
    program: [first_page(), b"#!/bin/sh".to_vec()];
    metrics: REVISIONS.map(honest_table);
    attributes: [
        [&[40u8, 0, 1, 9, 2, 0, 0, 0][..], &(2u64 << 20 | 2).to_le_bytes(), &[1, 0, 2, 0], &(4u64 << 20 | 38 << 10 | 1).to_le_bytes(),
         &[8, 0, 0, 0], &[0; 8]].concat(),
    ];
    gauges: [store::encode(&[
        Sample { at: 7, node: 1, pid: Some(9), readings: vec![(Metric::BUSY, Ok(12.5))], ..Sample::default() },
        Sample { readings: vec![(Metric::FAN, Ok(1.0)), (Metric::POWER, Ok(2.0))], ..Sample::default() },
    ])];
    descriptor: [
        "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t1024 KiB\n\
         drm-engine-compute:\t5000 ns\n",
    ];
    driver_text: ["0: 300Mhz\n1: 1725Mhz *\n", "0x10", "10 20 256\n", "16.0 GT/s PCIe\n"];
    keys: ["a\u{1b}[A\u{1b}[<0;5;3M\u{1b}]11;rgb:ffff/ffff/dddd\u{7}é\u{1b}[5~\u{1b}"];
    manifest: [r#"{"format":1,"command":["./app","-x"],"host":"node","boot":"b"}"#];
    question: [
        "top kernels where dev=0 & dur>1ms in last 10s by p99 limit 5", "top kernels by stream", "slowest calls in \"step 1\"",
        "top ranges where \"by limit\" step 1..2", "compare 10ms..20ms with 30ms..40ms", "compare last 10ms with 60ms ago",
        "compare step 1 with 2", "gaps in 10ms..", "errors by err", "status", "hang where pid=4242", "top copies where @big by bw",
    ];
    ask_request: [r#"{"question":"steps where dur>1ms limit 3","form":"json","follow":true}"#, r#"{"question":"status"}"#];
    answer_id: ["kernels:3fa9c2d17b", "launch:1000012345678", "span:1000012345678-1000012999999"];
    condition: [
        "step > 1.3*p50(step)", "step(train*) > 50ms", "dur(gemm & dev=0) > 3*p50(gemm)", "p99(gemm) > 2ms in last 10s",
        "idle(gpu0) > 500ms", "error(hip*)", "hang(/x(y|z)/) > 5s", "marker ~ \"NaN\"", "lost > 100 in last 10s", "exit(SEGV)",
        "temperature_edge(gpu1) > 90", "SQ_WAVES(gemm) > 1M", "range(epoch) > 2s",
    ];
    tool_call: [
        r#"{"name":"top","arguments":{"source":"run","of":"kernels","where":"dev=0","in":"last 10s","by":"p99","limit":5}}"#,
        r#"{"name":"compare","arguments":{"times":"step 1 with 2","where":null,"limit":""}}"#,
        r#"{"name":"ask","arguments":{"question":"slowest copies limit 3"}}"#, r#"{"name":"list"}"#,
    ];
    job_report: job_reports();
    program_file: [&include_bytes!("programs/dwarf-4")[..], include_bytes!("programs/dwarf-5")];
    stack: stacks();
    lines_of_python: [
        // The version, the first line and tables of two functions with a loop and an expression of several lines.
        [&[9, 10][..], &[0, 1, 8, 1, 6, 255, 2, 3, 254, 127, 10, 1]].concat(),
        [&[10, 10][..], &[8, 1, 6, 255, 2, 128, 254, 127, 10, 1]].concat(),
        [&[11, 10][..], &[0x80, 0, 0xd8, 4, 8, 0x88, 4, 0x80, 6, 0xf0, 3, 1, 5, 6, 0xe8, 2, 0xf8]].concat(),
        [&[14, 10][..], &[0x80, 0, 0xe0, 0xd8, 8, 16, 0xf2, 0xff, 0x7f, 1, 5, 6]].concat(),
    ];
}

/// The headers of a program.
fn first_page() -> Vec<u8> {
    let mut page = Vec::new();
    let own = std::fs::File::open("/proc/self/exe").expect("the program that runs");
    own.take(4096).read_to_end(&mut page).expect("its first page");
    page
}

fn honest_table(revision: (u8, u8)) -> Vec<u8> {
    let size = layout(revision).map_or(0, |(_, size)| size);
    let mut bytes = vec![1; size];
    bytes[..2].copy_from_slice(&(size as u16).to_le_bytes());
    (bytes[2], bytes[3]) = revision;
    bytes
}

fn utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn filter(bytes: &[u8]) {
    let source = utf8(bytes);
    let presets = [("big".to_owned(), "dur>1ms".to_owned())];
    let written = query::with_presets(&source, &presets);
    for text in [&source, &written] {
        match Filter::parse(text) {
            Ok(filter) => {
                let _ = (filter.accepts_text("void gemm<float>(int)"), filter.names_only());
                let again = Filter::parse(&filter.source).expect("what was understood is understood again");
                assert_eq!(again.is_empty(), filter.is_empty());
            }
            Err(error) => assert!(error.column <= text.chars().count() && !error.message.is_empty()),
        }
    }
    for cursor in 0..=source.chars().count().min(64) {
        if let Some((line, at)) = query::complete::complete(&source, cursor, &presets) {
            assert!(at <= line.chars().count());
        }
    }
}

fn config(bytes: &[u8]) {
    let text = utf8(bytes);
    if let Err(error) = Config::parse(&text) {
        assert!(error.line >= 1 && error.line <= text.lines().count() + 1 && !error.message.is_empty());
    }
}

fn theme(bytes: &[u8]) {
    for depth in [Depth::True, Depth::C256, Depth::C16, Depth::None] {
        let _ = Theme::parse(&utf8(bytes), depth).map(|theme| theme.filled(77));
    }
}

fn scenario(bytes: &[u8]) {
    let _ = Scenario::parse(&utf8(bytes));
}

fn threshold(bytes: &[u8]) {
    let _ = Threshold::parse(&utf8(bytes));
}

fn range(bytes: &[u8]) {
    if let Ok((from, to)) = parse_range(&utf8(bytes)) {
        assert!(from <= to);
    }
}

fn words(bytes: &[u8]) {
    let text = utf8(bytes);
    let one = [text.clone()];
    let _ = (
        request::names(&one),
        request::kernels(&one),
        request::iterations(&one),
        SamplingRequest::parse(&text),
    );
    if let Some(key) = Key::named(&text) {
        assert_eq!(Key::named(&key.word()), Some(key));
    }
    for (field, word, _) in Field::ALL {
        if let Some(rest) = text.strip_prefix(word) {
            let _ = query::amount(*field, rest);
        }
    }
    let _ = roctop::prometheus::address(&text);
}

fn definitions(bytes: &[u8]) {
    let _ = request::check(&utf8(bytes));
}

fn input_text(bytes: &[u8]) {
    let _ = jobs_of(&utf8(bytes), "txt");
}

fn input_yaml(bytes: &[u8]) {
    let _ = jobs_of(&utf8(bytes), "yml");
}

fn input_json(bytes: &[u8]) {
    let _ = jobs_of(&utf8(bytes), "json");
}

fn name(bytes: &[u8]) {
    let mangled = utf8(bytes);
    let name = demangle(&mangled);
    assert!(name.len() <= mangled.len().max(64 << 10));
    assert!(truncate(&name).len() <= name.len());
}

fn registers(bytes: &[u8]) {
    let word = |at: usize| {
        bytes
            .get(at..at + 4)
            .map_or(0, |raw| u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]))
    };
    let descriptor = Descriptor {
        rsrc1: word(0),
        rsrc3: word(4),
        properties: word(8) as u16,
    };
    let target = utf8(bytes.get(12..).unwrap_or_default());
    for target in [&target, &format!("gfx{target}"), "gfx90a", "gfx1100"] {
        assert!(kernel_descriptor::decode(descriptor, target).vgpr <= 1024);
    }
}

fn program(bytes: &[u8]) {
    let _ = kind(bytes);
}

fn metrics(bytes: &[u8]) {
    let Ok(table) = Table::read(bytes) else { return };
    let mut sample = Sample::default();
    table.put_into(&mut sample);
    let _ = table.running();
    let _ = table.sum("xcp_stats");
}

fn attributes(bytes: &[u8]) {
    // Regardless of its stated size, it is read as a table of attributes of exactly this size.
    let mut table = bytes.to_vec();
    if let Some(head) = table.first_chunk_mut() {
        let [low, high] = (bytes.len() as u16).to_le_bytes();
        *head = [low, high, 1, 9];
    }
    metrics(&table);
}

fn gauges(bytes: &[u8]) {
    let samples = store::decode(bytes);
    assert!(
        samples
            .iter()
            .map(|sample| 32 + 16 * sample.readings.len())
            .sum::<usize>()
            <= bytes.len()
    );
}

fn descriptor(bytes: &[u8]) {
    if let Some(client) = fdinfo::parse(&utf8(bytes)) {
        let device = client.device.clone();
        let twice = fdinfo::Client {
            id: !client.id,
            ..client.clone()
        };
        assert!(fdinfo::of_device(&[client, twice], &device).is_some());
    }
}

fn driver_text(bytes: &[u8]) {
    let all = utf8(bytes);
    let _ = (
        text::number(&all),
        text::current_level(&all),
        text::pcie_rate(&all),
        text::link_speed(&all),
    );
}

fn keys(bytes: &[u8]) {
    for asked in [false, true] {
        let mut decoder = Decoder::default();
        if asked {
            decoder.expect_answer();
        }
        for piece in bytes.chunks(3) {
            decoder.feed(piece);
            while decoder.next(false).is_some() {}
        }
        // The decoder waits for the end of an answer, but not for keys.
        while decoder.next(true).is_some() {}
        assert!(decoder.rest().len() <= 64);
    }
}

thread_local!(static PLACE: Place = Place::new());

fn manifest(bytes: &[u8]) {
    PLACE.with(|place| {
        std::fs::write(place.0.join(MANIFEST), bytes).expect("a new file");
        if let Ok(recording) = Recording::open(&place.0) {
            let _ = (recording.command().len(), recording.host().len(), recording.nodes());
        }
    });
}

/// A fifth of a second of the training loop.
fn training() -> Arc<Snapshot> {
    thread_local!(static TRAINING: Arc<Snapshot> = {
        let scenario = Scenario::parse(include_str!("../tests/scenarios/training.toml")).expect("a scenario");
        scenario.store(Options::default(), 200_000_000).snapshot(Fresh::All)
    });
    TRAINING.with(Arc::clone)
}

fn question(bytes: &[u8]) {
    let source = utf8(bytes);
    let presets = [("big".to_owned(), "bytes>1KiB".to_owned())];
    let (snap, length) = (training(), source.chars().count());
    let asked = match Question::parse(&source, &presets) {
        Ok(asked) => asked,
        Err(error) => return assert!(error.column <= length && !error.message.is_empty()),
    };
    for most in [usize::MAX / 2, 10] {
        let mut from = Source {
            snap: &snap,
            most,
            reread: None,
        };
        match answer(&asked, &mut from) {
            Ok(found) => {
                assert!(found.rows.len() <= asked.limit && found.rows.len() <= found.count);
                assert!(found.rows.iter().all(|row| row.cells.len() == found.columns.len()));
                for form in [Form::Table, Form::Csv, Form::Json] {
                    assert!(!written(&found, form).is_empty());
                }
            }
            Err(error) => assert!(error.column <= length.max(8) && !error.message.is_empty()),
        }
    }
}

fn ask_request(bytes: &[u8]) {
    match protocol::request(bytes) {
        Ok(asked) => {
            let line = protocol::response(&asked, &training(), &[]).line();
            assert!(line.ends_with(b"\n") && serde_json::from_slice::<Response>(&line).is_ok());
        }
        Err(message) => assert!(!message.is_empty()),
    }
}

fn answer_id(bytes: &[u8]) {
    if let Ok(id) = utf8(bytes).parse::<Id>() {
        assert_eq!(id.to_string().parse(), Ok(id.clone()));
        let snap = training();
        let mut ui = Ui::new(snap.mode);
        update(&mut ui, &snap, Msg::Resize(120, 36));
        ui.at = Some(id);
        update(&mut ui, &snap, Msg::Tick);
    }
}

fn condition(bytes: &[u8]) {
    let source = utf8(bytes);
    match Condition::parse(&source) {
        Ok(condition) => {
            let mut watch = Watch::new(vec![condition], 1_000_000_000);
            for now in [0, 1, 100_000_000, 3_600_000_000_000] {
                watch.apply(&Item::Now(now));
                watch.apply(&Item::Mark(Marker::default()));
                watch.apply(&Item::Range(Marker::default()));
                watch.apply(&Item::Open(Open::default()));
                assert!(watch.take_fired().0.len() <= 16);
            }
        }
        Err(error) => assert!(error.column <= source.chars().count() && !error.message.is_empty()),
    }
}

fn tool_call(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    let name = value["name"].as_str().unwrap_or_default();
    let arguments = value["arguments"].as_object().cloned().unwrap_or_default();
    match tool::call(name, &arguments) {
        Ok(Call::Ask { question, .. }) => {
            if let Err(error) = Question::parse(&question, &[]) {
                assert!(error.column <= question.chars().count());
            }
        }
        Ok(Call::List) => assert!(arguments.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let marked = tool::marked(value);
    if let Value::Object(fields) = &marked {
        assert_eq!(fields["untrusted"], tool::UNTRUSTED);
    }
    let texts = tool::marked(json!([marked])).to_string();
    assert!(!texts.chars().any(char::is_control));
}

/// The reports of a rank, and of a node with two of them.
fn job_reports() -> [Vec<u8>; 2] {
    let report = |rank| RankReport {
        sums: RankSums {
            rank,
            size: 2,
            begin: 1_000_000_000,
            length: 1_000_000_000,
            busy: 700_000_000,
            kernels: vec![KernelSums {
                name: name_id("gemm"),
                count: 9,
                total: 600_000_000,
            }],
            communicators: vec![CommunicatorPart {
                identity: 7,
                rank,
                size: 2,
                reached: 5,
                pending: None,
                arrivals: vec![ArrivalSums {
                    sequence: 4,
                    at: -5,
                    took: 90_000,
                    by_kernel: true,
                    ..ArrivalSums::default()
                }],
            }],
            doing: "in hipStreamSynchronize for 3.2 s".into(),
            ..RankSums::default()
        },
        names: vec![(name_id("gemm"), "gemm".into())],
        place: Some(Box::default()),
    };
    let mut reducer = Reducer::new("node");
    (0..2).for_each(|rank| reducer.take(report(rank)));
    [encode_rank(&report(0)), reducer.report(2_000_000_000, 7)]
}

/// What decodes can be added up, compared and shown.
fn job_report(bytes: &[u8]) {
    if let Ok(report) = decode_rank(bytes) {
        let again = decode_rank(&encode_rank(&report)).expect("what was read is written alike");
        // A number that is none equals nothing.
        assert_eq!(encode_rank(&again), encode_rank(&report));
    }
    let Ok(report) = decode_node(bytes) else { return };
    let now = report.at.saturating_add(1_000_000_000);
    let mut job = Job::new("job");
    job.node(0, "a");
    for (node, clock) in [(0, 0), (1, i64::MAX), (2, i64::MIN)] {
        job.clock(
            node,
            NodeClock {
                offset: clock,
                error: 5,
            },
        );
        job.report(node, report.clone(), now);
    }
    job.gone(1, now);
    let snap = Arc::new(job.values(now).snapshot());
    let mut ui = Ui::new(snap.mode);
    update(&mut ui, &snap, Msg::Resize(120, 36));
    let (_, files) = export::all(&ui, &snap);
    assert!(files.iter().all(|file| !file.1.is_empty()));
}

/// The code of the programs in fuzz/programs.
const CODE: std::ops::Range<u64> = 0x40_0144..0x40_0189;

/// The calls that led to a stack of the program in `file`. Its frames are below 256.
fn call_path(file: &Path, bytes: &[u8]) {
    let (mut process, mut files) = (Process::new(None), Files::new());
    process.map(Mapping {
        start: 0x40_0000,
        end: 0x40_1000,
        offset: 0,
        device: 0,
        inode: 0,
        path: file.to_owned(),
    });
    let sp = 0x7ffc_0000_0000;
    for ip in CODE {
        for bp in [0, sp, sp + 16] {
            let path = process.call_path(&Stack { ip, sp, bp, bytes }, &mut files);
            assert!((1..=256).contains(&path.frames.len()));
        }
    }
}

/// A program: its addresses have names, and its stacks call paths.
fn program_file(bytes: &[u8]) {
    PLACE.with(|place| {
        let path = place.0.join("program");
        std::fs::write(&path, bytes).expect("a new file");
        let build_id = match Names::default().name(&path, b"?", 0) {
            Err(NoName::OtherBuild { found }) => found,
            _ => Vec::new(),
        };
        let addresses: Vec<u64> = CODE.collect();
        let named = Names::default().all(&path, &build_id, &addresses);
        assert!(
            named
                .iter()
                .flatten()
                .all(|functions| (1..=64).contains(&functions.len()))
        );
        call_path(&path, &stacks()[0]);
    });
}

/// Stacks with frame pointers and return addresses at every second word.
fn stacks() -> [Vec<u8>; 1] {
    let word = |n: u64| match n % 2 {
        0 => 0x7ffc_0000_0000 + 8 * (n + 2),
        _ => CODE.start + n * 3 % (CODE.end - CODE.start),
    };
    [(0..64).flat_map(|n| word(n).to_le_bytes()).collect()]
}

fn stack(bytes: &[u8]) {
    PLACE.with(|place| {
        let path = place.0.join("dwarf-5");
        if !path.exists() {
            std::fs::write(&path, include_bytes!("programs/dwarf-5")).expect("a new file");
        }
        call_path(&path, bytes);
    });
}

/// Tables of lines: each instruction has a line or none, however long the table says that it is.
fn lines_of_python(bytes: &[u8]) {
    let [minor, first, table @ ..] = bytes else { return };
    for first in [u32::from(*first), u32::MAX] {
        for minor in [*minor, 9, 10, 11, 14] {
            for instruction in [0, 1, 2, 6, 100, 1 << 20, u64::MAX] {
                assert_ne!(line_of_python(minor, first, table, instruction), Some(0));
            }
        }
    }
}

/// A directory that is removed with its thread.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        let thread = std::thread::current().id();
        // On tmpfs, which is fast.
        let shm = PathBuf::from("/dev/shm");
        let base = if shm.is_dir() { shm } else { std::env::temp_dir() };
        let path = base.join(format!("roctop-manifest-{}-{thread:?}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a new directory");
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
