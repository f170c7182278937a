//! Recordings: what is damaged, cut, merged, limited or old opens as far as it is whole, and what is missing is counted.

mod answer;
mod damage;
mod kill;
mod past;
mod shared;
mod tally;

use crate::kit::demo::roctop;
use crate::kit::directory::place;
use crate::kit::made;
use crate::kit::made::{Counts, Made, make};
use crate::kit::metrics::Metrics;
use crate::kit::work::Work;
use roctop::export::run::Run;
use roctop::item::ProcessId;
use roctop::raw::{Raw, RawSink};
use roctop::recording::{Recorder, Recording, Replay};
use roctop_ring::layout::Header;
use roctop_ring::reader::OpenWork;
use roctop_ring::record::{CONTINUATION, Domain, Head, KernelSymbol, Slot};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
        errors.contains(&format!("oldest {} records were removed", replay.dropped)),
        "{errors}"
    );
}

/// A recording of two processes with two kernels each, whose facts a reader found in this order.
fn recorded_in_order(path: &Path, order: &[(u32, u32)]) -> Vec<String> {
    let mut recorder = Recorder::create(path, &[], &[]).unwrap();
    for process in 0..2 {
        let header = Header {
            major: roctop_ring::layout::MAJOR,
            pid: 100 + process,
            ..Header::default()
        };
        recorder.take(ProcessId(process), &Raw::Header(&header));
    }
    for (process, number) in order {
        let process = ProcessId(*process);
        recorder.take(
            process,
            &Raw::Text(*number, format!("kernel_{}_{number}", process.0).as_bytes()),
        );
        let symbol = KernelSymbol {
            name: *number,
            kernel_object: u64::from(0x1000 * number),
            ..KernelSymbol::default()
        };
        let payload = symbol.payload();
        let heads = (0..payload.len() as u8).map(|at| match at {
            0 => KernelSymbol::head(0, Domain::NONE),
            _ => Head::new(CONTINUATION, 0, at, 0),
        });
        let slots: Vec<Slot> = heads
            .zip(payload)
            .map(|(head, [a, b, c, d, e, f])| [head.0, a, b, c, d, e, f, 0])
            .collect();
        recorder.take(process, &Raw::Fact(&slots));
        // Writes them.
        recorder.take(process, &Raw::Open(&OpenWork::default()));
    }
    recorder.finish().unwrap();
    let (run, _) = load(path);
    run.kernels.iter().map(|kernel| kernel.mangled.to_string()).collect()
}

#[test]
fn kernel_numbers_follow_processes_whatever_the_reader_found_first() {
    let place = place("order");
    let found = recorded_in_order(&place.join("one"), &[(0, 1), (1, 1), (0, 2), (1, 2)]);
    assert_eq!(found, ["kernel_0_1", "kernel_0_2", "kernel_1_1", "kernel_1_2"]);
    let other = recorded_in_order(&place.join("other"), &[(1, 1), (1, 2), (0, 1), (0, 2)]);
    assert_eq!(found, other);
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
    let place = place("metrics");
    let (output, work) = (place.join("rec"), Work::begin(&place));
    let mut program = demo_record(&output, &work.until(), &["--metrics", "127.0.0.1:0"])
        .spawn()
        .unwrap();
    let metrics = Metrics::of(program.id());
    let answer = metrics.wait("/metrics", |answer| {
        answer.contains("roctop_dispatches_total{") && answer.contains("roctop_copy_bytes_total{")
    });
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
    metrics.wait("/other", |answer| answer.starts_with("HTTP/1.1 404"));
    // Counters grow.
    let later = metrics.wait("/metrics", |later| value(later) > value(&answer));
    work.done();
    assert!(program.wait().unwrap().success());
    assert!(value(&later) <= load(&output).0.dispatches.len() as f64);
}
