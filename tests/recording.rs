//! Recordings: what is damaged, cut, merged, limited or old opens as far as it is whole, and what is missing is counted.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "export/demo.rs"]
#[expect(dead_code, reason = "the demo's own recording is for others")]
mod demo;
#[path = "export/made.rs"]
mod made;
#[path = "export/table.rs"]
mod table;

use demo::{place, roctop};
use made::{Counts, Made, make};
use roctop::export::run::Run;
use roctop::item::{LossReason, ProcessId};
use roctop::raw::{Raw, RawSink};
use roctop::recording::{Merged, Recording, Replay};
use roctop::session::{self, Live, boottime};
use roctop_ring::record::Head;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use table::Table;

fn load(path: &Path) -> (Run, Replay) {
    let mut run = Run::default();
    let recording = Recording::open(path).unwrap();
    let replay = recording
        .items(&mut |items| items.into_iter().for_each(|item| run.add(item)))
        .unwrap();
    (run, replay)
}

fn counts(run: &Run) -> Counts {
    Counts {
        calls: run.calls.len() as u64,
        dispatches: run.dispatches.len() as u64,
        copies: run.copies.len() as u64,
        markers: run.markers.len() as u64,
        values: 0,
    }
}

fn told(words: &[&str]) -> (Option<i32>, String, String) {
    let output = roctop(words);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn segment(recording: &Path) -> PathBuf {
    recording.join("segment-000001.roctop")
}

#[test]
fn what_was_written_comes_back_and_the_index_knows_its_time() {
    let path = place("whole").join("rec");
    let made = make(&path, &Made::default());
    let (run, replay) = load(&path);
    assert_eq!(counts(&run), made);
    assert!(replay.finished && replay.damaged == 0 && replay.missing == 0);
    let span = Recording::open(&path).unwrap().span().unwrap().unwrap();
    let begins = run.calls.iter().map(|call| call.span.begin);
    assert_eq!(span.begin, begins.min().unwrap().min(made::BEGIN + 99 * 2500 - 50_000));
    let ends = run
        .dispatches
        .iter()
        .map(|d| d.span.end)
        .chain(run.copies.iter().map(|c| c.span.end));
    assert_eq!(span.end, ends.max().unwrap());
}

#[test]
fn a_recording_that_is_cut_off_anywhere_opens_as_far_as_it_is_whole() {
    let path = place("cut-off").join("rec");
    let made = make(
        &path,
        &Made {
            records: 40_000,
            ..Made::default()
        },
    );
    let bytes = std::fs::read(segment(&path)).unwrap();
    let mut last = 0;
    for part in 0..=40 {
        let length = bytes.len() * part / 40;
        std::fs::write(segment(&path), &bytes[..length]).unwrap();
        let (run, replay) = load(&path);
        let found = counts(&run).records();
        assert!(
            found >= last && found <= made.records(),
            "{length} bytes: {found} records"
        );
        last = found;
        assert_eq!(replay.finished, part == 40, "{length} bytes");
    }
    assert_eq!(last, made.records());
}

#[test]
fn a_flipped_bit_costs_the_block_it_is_in_and_the_index_counts_its_records() {
    let path = place("flipped").join("rec");
    let made = make(
        &path,
        &Made {
            records: 40_000,
            ..Made::default()
        },
    );
    let files = [segment(&path), path.join("facts.roctop")];
    let mut losses = 0;
    for file in &files {
        let bytes = std::fs::read(file).unwrap();
        for part in 0..60 {
            let at = bytes.len() * part / 60 + part % 7;
            let mut wrong = bytes.clone();
            wrong[at] ^= 1 << (part % 8);
            std::fs::write(file, &wrong).unwrap();
            let (run, replay) = load(&path);
            assert_eq!(replay.damaged, 1, "byte {at}");
            assert!(replay.damaged_bytes > 0);
            let found = counts(&run).records();
            assert!(found <= made.records());
            // The index's own block may be the one that is hit.
            if replay.missing > 0 {
                losses += 1;
                assert_eq!(found + replay.missing, made.records(), "byte {at}");
                assert!(run.lost[&(ProcessId(0), LossReason::Damaged)] == replay.missing);
            }
        }
        std::fs::write(file, &bytes).unwrap();
    }
    assert!(losses > 20, "{losses}");
    let (code, _, errors) = {
        let mut wrong = std::fs::read(segment(&path)).unwrap();
        wrong[5000] ^= 1;
        std::fs::write(segment(&path), &wrong).unwrap();
        told(&["summary", path.to_str().unwrap()])
    };
    assert_eq!(code, Some(0));
    assert!(
        errors.contains("1 damaged stretch (") && errors.lines().count() == 1,
        "{errors}"
    );
}

#[test]
fn what_is_missing_of_a_recording_is_told_in_a_line() {
    let place = place("missing");
    let path = place.join("rec");
    make(
        &path,
        &Made {
            records: 1000,
            ..Made::default()
        },
    );
    let out = place.join("out");
    let export = |place: &Path| {
        let words = ["export", "--format", "csv", "-d", out.to_str().unwrap()];
        told(&[&words[..], &[place.to_str().unwrap()]].concat())
    };
    let one_line = |(code, _, errors): (Option<i32>, String, String), expected: Option<i32>, word: &str| {
        assert_eq!(code, expected, "{errors}");
        assert!(errors.contains(word) && errors.lines().count() == 1, "{word}: {errors}");
    };
    one_line(export(&place.join("none")), Some(1), "there is no recording");
    std::fs::create_dir(place.join("empty")).unwrap();
    one_line(export(&place.join("empty")), Some(1), "no roctop.json in it");
    one_line(export(&path.join("roctop.json")), Some(1), "is a file");
    let topology = path.join("topology.json");
    let whole = std::fs::read(&topology).unwrap();
    std::fs::write(&topology, &whole[..whole.len() / 2]).unwrap();
    one_line(export(&path), Some(0), "topology.json is damaged");
    std::fs::write(&topology, whole).unwrap();
    let facts = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let facts = facts.filter(|file| file.file_name().unwrap().to_string_lossy().starts_with("facts"));
    for file in facts.collect::<Vec<_>>() {
        std::fs::remove_file(file).unwrap();
    }
    let summary = told(&["summary", path.to_str().unwrap()]);
    one_line(summary, Some(0), "the file of facts is missing");
}

#[test]
fn garbage_is_no_recording_and_never_a_fault() {
    let path = place("garbage").join("rec");
    make(
        &path,
        &Made {
            records: 1000,
            ..Made::default()
        },
    );
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(300_000)
    .collect();
    std::fs::write(segment(&path), &noise).unwrap();
    let (run, replay) = load(&path);
    assert_eq!((counts(&run).records(), replay.damaged), (0, 1));
    std::fs::write(path.join("roctop.json"), b"{\"format\": 99}").unwrap();
    let (code, _, errors) = told(&["summary", path.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(
        errors.contains("layout 99") && errors.contains("layouts 1 to 2"),
        "{errors}"
    );
    std::fs::write(path.join("roctop.json"), "{\"format\"").unwrap();
    let (code, _, errors) = told(&["export", path.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("roctop.json is damaged"), "{errors}");
    let (code, _, errors) = told(&["open", "/nowhere"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("there is no recording /nowhere"), "{errors}");
}

#[test]
fn a_limit_drops_the_oldest_segments_and_counts_them() {
    let path = place("limit").join("rec");
    let limit = 2 << 20;
    let made = make(
        &path,
        &Made {
            records: 150_000,
            most: Some(limit),
            ..Made::default()
        },
    );
    let (run, replay) = load(&path);
    let found = counts(&run);
    assert!(replay.finished && replay.damaged == 0);
    assert!(replay.dropped > 0, "nothing had to go");
    assert_eq!(found.records() + replay.dropped, made.records());
    let size: u64 = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(size < limit * 3 / 2, "{size} bytes");
    // What is left is the newest, with its names.
    assert!(run.exits.contains_key(&ProcessId(0)));
    assert!(run.kernels.iter().any(|kernel| kernel.name.contains("gemm")));
    let (_, _, errors) = told(&["summary", path.to_str().unwrap()]);
    assert!(
        errors.contains(&format!("oldest {} records went", replay.dropped)),
        "{errors}"
    );
}

/// As the first releases wrote it: the same blocks, all in one segment, without an index.
fn in_the_first_layout(path: &Path) {
    let facts = path.join("facts.roctop");
    let mut bytes = std::fs::read(&facts).unwrap();
    let records = std::fs::read(segment(path)).unwrap();
    let footer = records.len() - 8;
    let index = u64::from_le_bytes(records[footer..].try_into().unwrap());
    bytes.extend(&records[..index as usize]);
    std::fs::write(segment(path), bytes).unwrap();
    std::fs::remove_file(facts).unwrap();
    std::fs::write(path.join("roctop.json"), b"{\"command\": [\"./train\"], \"format\": 1}").unwrap();
}

#[test]
fn the_first_layout_still_opens() {
    let path = place("layout-1").join("rec");
    let made = make(&path, &Made::default());
    let (before, _) = load(&path);
    in_the_first_layout(&path);
    let (run, replay) = load(&path);
    assert!(replay.finished && replay.damaged == 0);
    assert_eq!(counts(&run), made);
    assert_eq!((run.processes, run.calls), (before.processes, before.calls));
    assert_eq!((run.dispatches, run.kernels), (before.dispatches, before.kernels));
    let rows = told(&["summary", "--format", "csv", path.to_str().unwrap()]).1;
    assert!(rows.lines().any(|row| row.starts_with("kernel,")), "{rows}");
}

#[test]
fn a_cut_holds_what_touches_its_time() {
    let place = place("cut");
    let (whole, part) = (place.join("whole"), place.join("part"));
    make(
        &whole,
        &Made {
            records: 40_000,
            ..Made::default()
        },
    );
    let words = [
        "cut",
        whole.to_str().unwrap(),
        "--range",
        "10ms..20ms",
        "-o",
        part.to_str().unwrap(),
    ];
    let (code, _, errors) = told(&words);
    assert_eq!(code, Some(0), "{errors}");
    let first = Recording::open(&whole).unwrap().span().unwrap().unwrap().begin;
    let (from, to) = (first + 10_000_000, first + 20_000_000);
    let ((all, _), (some, replay)) = (load(&whole), load(&part));
    assert!(replay.finished);
    let expected = all
        .dispatches
        .iter()
        .filter(|d| d.span.end >= from && d.span.begin <= to);
    assert_eq!(some.dispatches.len(), expected.count());
    let expected = all
        .calls
        .iter()
        .filter(|call| call.span.end >= from && call.span.begin <= to);
    assert_eq!(some.calls.len(), expected.count());
    assert!(!some.calls.is_empty() && some.calls.len() < all.calls.len());
    // The same rows as an export of that time has.
    for (recording, name, range) in [(&whole, "a", "10ms..20ms"), (&part, "b", "..")] {
        let words = [
            "export",
            recording.to_str().unwrap(),
            "-d",
            place.to_str().unwrap(),
            "-o",
            name,
            "--range",
            range,
        ];
        let (code, _, errors) = told(&words);
        assert_eq!(code, Some(0), "{errors}");
    }
    let rows = |name: &str| Table::read(&place.join(format!("{name}_kernel_trace.csv")));
    let times = |table: &Table| (table.numbers("Start_Timestamp"), table.numbers("End_Timestamp"));
    assert_eq!(times(&rows("a")), times(&rows("b")));
}

#[test]
fn ranks_of_several_machines_are_brought_to_one_clock() {
    let place = place("ranks");
    let offset = 77_000_000_000_000;
    let (a, b) = (place.join("run/rank-0"), place.join("run/rank-1"));
    std::fs::create_dir_all(place.join("run")).unwrap();
    let first = make(
        &a,
        &Made {
            rank: 0,
            ..Made::default()
        },
    );
    let other = Made {
        rank: 1,
        pid: 5000,
        host: "node8",
        boot_offset: offset,
        ..Made::default()
    };
    let second = make(&b, &other);
    // Both were made on this machine: make the second one say that it was another boot.
    let manifest = b.join("roctop.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let mut facts: serde_json::Value = serde_json::from_str(&text).unwrap();
    facts["boot"] = "another".into();
    facts["host"] = "node8".into();
    std::fs::write(&manifest, facts.to_string()).unwrap();
    let merged = place.join("merged");
    let words = [
        "merge",
        place.join("run").to_str().unwrap(),
        "-o",
        merged.to_str().unwrap(),
    ]
    .map(str::to_owned);
    let (code, _, errors) = told(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        errors.contains("clock of node8 moved by -77000000000000 ns") && errors.contains("give or take"),
        "{errors}"
    );
    let (run, replay) = load(&merged);
    assert!(replay.finished);
    assert_eq!(counts(&run).records(), first.records() + second.records());
    let ranks: Vec<_> = run
        .processes
        .iter()
        .map(|process| (process.pid, process.rank))
        .collect();
    assert_eq!(ranks, [(4242, Some(0)), (5000, Some(1))]);
    let begin = |process| {
        let calls = run.calls.iter().filter(|call| call.process == ProcessId(process));
        calls.map(|call| call.span.begin).min().unwrap()
    };
    assert!(begin(0).abs_diff(begin(1)) < 100, "both began at one time");
    let ends = run
        .dispatches
        .iter()
        .filter(|d| d.process == ProcessId(1))
        .map(|d| d.span.end);
    assert!(ends.max().unwrap() < made::BEGIN + 10_000_000_000);
    // A copy says where its records were made, not where it was copied.
    let part = place.join("part");
    let words = [
        "cut",
        b.to_str().unwrap(),
        "--range",
        "0ms..5ms",
        "-o",
        part.to_str().unwrap(),
    ];
    assert_eq!(told(&words).0, Some(0));
    let copy = Recording::open(&part).unwrap();
    assert_eq!((copy.host(), copy.boot()), ("node8", "another"));
    // An export of both is the same as one of the merged recording.
    let files = |paths: &[&Path], name: &str| {
        let out = place.join(name);
        let mut words = vec!["export"];
        words.extend(paths.iter().map(|path| path.to_str().unwrap()));
        words.extend(["-d", out.to_str().unwrap()]);
        assert_eq!(told(&words).0, Some(0));
        std::fs::read_to_string(out.join("5000_kernel_trace.csv")).unwrap()
    };
    assert_eq!(files(&[&a, &b], "out-both"), files(&[&merged], "out-merged"));
    let recordings = [Recording::open(&a).unwrap(), Recording::open(&b).unwrap()];
    assert_eq!(Merged::new(recordings.iter().collect()).unwrap().alignment().len(), 1);
}

#[test]
fn a_comparison_tells_change_from_noise() {
    let place = place("diff");
    let (a, b, c) = (place.join("a"), place.join("b"), place.join("c"));
    make(&a, &Made::default());
    make(
        &b,
        &Made {
            slowness: 2,
            ..Made::default()
        },
    );
    make(
        &c,
        &Made {
            records: 9000,
            ..Made::default()
        },
    );
    let verdicts = |after: &Path| {
        let (code, out, errors) = told(&["diff", a.to_str().unwrap(), after.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{errors}");
        let rows = out.lines().skip_while(|line| !line.contains("VERDICT")).skip(1);
        let words = rows.filter_map(|row| row.split_whitespace().next().map(str::to_owned));
        words.take(4).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&b), ["slower"; 4]);
    assert_eq!(verdicts(&c), ["noise"; 4]);
}

#[test]
fn thresholds_end_with_code_3() {
    let path = place("threshold").join("rec");
    make(&path, &Made::default());
    let path = path.to_str().unwrap();
    let run = |expressions: &[&str]| {
        let mut words = vec!["summary", path, "--format", "json"];
        words.extend(expressions.iter().flat_map(|text| ["--fail-if", *text]));
        told(&words)
    };
    assert_eq!(
        run(&["p99(gemm) > 2ms", "lost > 0", "errors(hipMemcpy) > 0"]).0,
        Some(0)
    );
    let (code, out, errors) = run(&["p99(GEMM) > 2us"]);
    assert_eq!(code, Some(3));
    assert!(
        errors.contains("failed: p99(GEMM) > 2us: ") && errors.lines().count() == 1,
        "{errors}"
    );
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["schema"], 1);
    for (wrong, word) in [("p99(nothing) > 1s", "'nothing'"), ("p99(gemm) > x", "'x'")] {
        let (code, _, errors) = run(&[wrong]);
        assert_eq!(code, Some(1));
        assert!(errors.contains(word) && errors.lines().count() == 1, "{errors}");
    }
}

/// Records of each ring: the number after the last one, how many were delivered, how many were lost.
#[derive(Default, Debug, PartialEq, Eq)]
struct Tally(BTreeMap<(u32, u32), (u32, u64, u64)>);

impl RawSink for Tally {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        match raw {
            Raw::Record(thread, slots) => {
                let known = self.0.entry((process.0, thread.index)).or_default();
                known.0 = Head(slots[0][0]).ordinal() + 1;
                known.1 += 1;
            }
            Raw::Lost(thread, records) => self.0.entry((process.0, thread.index)).or_default().2 += records,
            _ => {}
        }
    }
}

fn kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.unwrap().success(), "{pid}");
}

fn child_of(pid: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn last_segment(recording: &Path) -> std::fs::File {
    let entries = std::fs::read_dir(recording).unwrap();
    let names = entries.map(|entry| entry.unwrap().path());
    let segments = names.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("segment-"));
    let last = segments.max().unwrap();
    std::fs::File::options().write(true).open(last).unwrap()
}

#[test]
fn a_kill_of_program_and_roctop_loses_nothing_that_the_rings_hold() {
    let place = place("recover");
    let path = place.join("rec");
    let own = env!("CARGO_BIN_EXE_roctop");
    for round in 0..4 {
        let _ = std::fs::remove_dir_all(&path);
        let mut command = Command::new(own);
        command.args(["record", "-o", path.to_str().unwrap(), "--", own, "__demo"]);
        // It goes on until it is killed.
        command
            .env("ROCTOP_DEMO_WORKER", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut roctop_itself = command.spawn().unwrap();
        let pid = roctop_itself.id();
        std::thread::sleep(Duration::from_millis(700 + round * 90));
        let session = session::find(&pid.to_string()).unwrap();
        let app = child_of(pid).unwrap();
        kill(pid);
        roctop_itself.wait().unwrap();
        let (code, _, errors) = told(&["recover", &pid.to_string()]);
        assert!(code == Some(1) && errors.contains("still in use"), "{errors}");
        // What it goes on to do is in the rings alone.
        std::thread::sleep(Duration::from_millis(150));
        kill(app);
        while session::is_in_use(&session) {
            std::thread::sleep(Duration::from_millis(10));
        }
        if round % 2 == 1 {
            // The kill came while a block was written.
            let segment = last_segment(&path);
            let length = segment.metadata().unwrap().len();
            segment.set_len(length - 10).unwrap();
        }
        let mut rings = Tally::default();
        Live::new(&session).poll(boottime(), &mut rings).unwrap();
        let (code, _, errors) = told(&["recover", &pid.to_string()]);
        assert_eq!(code, Some(0), "{errors}");
        assert!(
            errors.contains("records were there") && !errors.contains(" 0 came"),
            "{errors}"
        );
        assert!(!session.exists());
        let mut recorded = Tally::default();
        let replay = Recording::open(&path).unwrap().deliver(&mut recorded).unwrap();
        assert!(replay.finished);
        assert_eq!(replay.damaged, 0, "what was cut off is counted by its records alone");
        assert!(!rings.0.is_empty());
        for (thread, (written, ..)) in &rings.0 {
            let (last, seen, lost) = recorded.0[thread];
            assert_eq!(
                (last, seen + lost),
                (*written, u64::from(*written)),
                "thread {thread:?}"
            );
        }
        let (run, _) = load(&path);
        let numbers: Vec<u64> = run.dispatches.iter().map(|dispatch| dispatch.dispatch_id).collect();
        let mut distinct = numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), numbers.len(), "nothing is there twice");
    }
    let (code, _, errors) = told(&["recover", "no-such-session"]);
    assert!(
        code == Some(1) && errors.contains("no session no-such-session"),
        "{errors}"
    );
}

fn demo_record(output: &Path, seconds: &str, options: &[&str]) -> Command {
    let own = env!("CARGO_BIN_EXE_roctop");
    let mut command = Command::new(own);
    command.args(["record", "-o", output.to_str().unwrap()]).args(options);
    command.args(["--", own, "__demo"]);
    command.env("ROCTOP_DEMO_WORKER", seconds);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

#[test]
fn ranks_write_recordings_that_do_not_meet() {
    let run = place("srun").join("run");
    let mut ranks: Vec<_> = (0..3)
        .map(|rank| {
            let mut command = demo_record(&run, "0.2", &[]);
            command.env("SLURM_PROCID", rank.to_string()).env("SLURM_NTASKS", "3");
            command.spawn().unwrap()
        })
        .collect();
    assert!(ranks.iter_mut().all(|rank| rank.wait().unwrap().success()));
    let (code, out, errors) = told(&["summary", "--format", "json", run.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{errors}");
    // One machine and one boot: nothing had to be moved.
    assert!(!errors.contains("moved"), "{errors}");
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["processes"].as_array().unwrap().len(), 3);
    for rank in 0..3 {
        let (part, _) = load(&run.join(format!("rank-000{rank}")));
        assert_eq!(part.processes[0].rank, Some(rank));
    }
}

#[test]
fn metrics_are_there_while_the_program_runs() {
    let address = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap()
    };
    let output = place("metrics").join("rec");
    let mut program = demo_record(&output, "3", &["--metrics", &address.port().to_string()])
        .spawn()
        .unwrap();
    let ask = |path: &str| {
        let mut client = TcpStream::connect(address).ok()?;
        write!(client, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        let mut answer = String::new();
        client.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    let mut answer = String::new();
    for _ in 0..200 {
        answer = ask("/metrics").unwrap_or_default();
        if answer.contains("roctop_dispatches_total{") && answer.contains("roctop_copy_bytes_total{") {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"),
        "{answer}"
    );
    let value = |answer: &str| {
        let lines = answer
            .lines()
            .filter(|line| line.starts_with("roctop_dispatches_total{"));
        lines
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum::<f64>()
    };
    assert!(ask("/other").unwrap().starts_with("HTTP/1.1 404"));
    std::thread::sleep(Duration::from_millis(300));
    let later = ask("/metrics").unwrap();
    assert!(value(&later) > value(&answer), "counters grow");
    assert!(program.wait().unwrap().success());
    assert!(value(&later) <= load(&output).0.dispatches.len() as f64);
}

#[test]
fn a_pipe_among_the_segments_is_told_and_not_waited_for() {
    let path = place("pipe").join("rec");
    make(&path, &Made::default());
    let pipe = path.join("segment-000002.roctop");
    let status = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(status.success());
    let (code, _, told) = told(&["summary", path.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(told.contains("segment-000002.roctop is not a file"), "{told}");
}
