//! Where files cannot go: found before the program starts where it can be, and never anything half-written.

use crate::kit::demo::roctop;
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use crate::kit::work::Work;
use roctop::export::run::Run;
use roctop::item::LossReason;
use roctop::recording::Recording;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file system of its own, so small that it fills up; removed in the end.
struct Small(PathBuf);

impl Small {
    /// Needs root.
    fn mount(name: &str, size: &str) -> Option<Self> {
        let path = place(name);
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(&path)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(path));
        }
        println!("SKIPPED: only root may mount a small file system");
        None
    }

    fn files(&self) -> Vec<PathBuf> {
        files(&self.0)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn files(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_full_disk_is_one_line_and_leaves_nothing_half_written() {
    let make_recording = |name: &str, records| {
        let recording = place(name).join("rec");
        let made = Made {
            records,
            ..Made::default()
        };
        make(&recording, &made);
        recording
    };
    let small = make_recording("full-recording", 60_000);
    // Too large to be sorted without temporary files.
    let large = make_recording("full-sorting", 300_000);
    let cases = [
        (&small, "csv", "256k", "cannot write"),
        (&small, "json", "256k", "cannot write"),
        (&small, "pftrace", "256k", "cannot write"),
        (&small, "rocpd", "256k", "cannot write"),
        (&small, "parquet", "16k", "cannot write"),
        (&small, "kineto", "256k", "cannot write"),
        (&large, "csv", "256k", "sorting needs room in"),
        (&large, "parquet", "256k", "sorting needs room in"),
    ];
    for (recording, format, size, problem) in cases {
        let Some(small) = Small::mount(&format!("full-{format}"), size) else {
            return;
        };
        let words = [
            "export",
            recording.to_str().unwrap(),
            "--format",
            format,
            "--memory",
            "1K",
            "-d",
            small.0.to_str().unwrap(),
        ];
        let output = roctop(&words);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{format}: {told}");
        assert_eq!(told.lines().count(), 1, "{format}: {told}");
        assert!(
            told.contains(problem) && told.contains(small.0.to_str().unwrap()),
            "{format}: {told}"
        );
        let left: Vec<PathBuf> = small.files().into_iter().filter(|path| path.is_file()).collect();
        assert!(left.is_empty(), "{format}: {left:?}");
    }
}

#[test]
fn a_completion_script_that_cannot_be_written_is_one_line_and_nothing_when_nobody_reads_on() {
    let run = |out: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
        command.args(["completions", "bash"]).stdout(out).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, told) = run(std::fs::File::create("/dev/full").unwrap().into());
    assert_eq!((code, told.lines().count()), (Some(1), 1), "{told}");
    assert!(told.contains("No space left"), "{told}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(run(writer.into()), (Some(0), String::new()));
}

#[test]
fn a_recording_on_a_full_disk_keeps_what_was_written_and_counts_the_rest() {
    let Some(small) = Small::mount("full-record", "1120k") else {
        return;
    };
    let path = small.0.join("rec");
    let own = env!("CARGO_BIN_EXE_roctop");
    let record = |end: &str| {
        let work = Work::begin(&place("full-record-work"));
        let script = format!("'{own}' __demo; exit {end}");
        let mut command = Command::new(own);
        command.args(["record", "-o", path.to_str().unwrap(), "--", "sh", "-c", &script]);
        command.env("ROCTOP_DEMO_WORKER", work.until());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // roctop reports the full disk.
        let full = lines.next().unwrap().unwrap();
        work.done();
        let rest = lines.map(Result::unwrap);
        let told: Vec<String> = std::iter::once(full).chain(rest).collect();
        (child.wait().unwrap().code(), told.join("\n"))
    };
    // The program ended well, the recording did not; it is told when it happens, and in the end.
    let (code, told) = record("0");
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("records are counted, not kept"), "{told}");
    let (_, missing) = told.split_once("is incomplete, ").expect(&told);
    assert!(
        missing.contains("records could not be written") && missing.contains("No space left"),
        "{told}"
    );
    let missing: u64 = missing.split(' ').next().unwrap().parse().unwrap();
    assert!(missing > 0);
    let recording = Recording::open(&path).unwrap();
    let mut run = Run::default();
    let replay = recording
        .items(&mut |items| items.into_iter().for_each(|item| run.add(item)))
        .unwrap();
    assert!(replay.finished && replay.damaged == 0, "{replay:?}");
    assert!(run.dispatches.len() > 10 && !run.exits.is_empty());
    let lost = run.lost.iter().filter(|(key, _)| key.1 == LossReason::NotWritten);
    assert_eq!(lost.map(|(_, records)| records).sum::<u64>(), missing);
    // What the program says goes first.
    std::fs::remove_dir_all(&path).unwrap();
    assert_eq!(record("7").0, Some(7));
}

#[test]
fn a_recording_goes_on_when_there_is_room_again() {
    let Some(small) = Small::mount("room", "1120k") else {
        return;
    };
    let (path, own) = (small.0.join("rec"), env!("CARGO_BIN_EXE_roctop"));
    let work = Work::begin(&place("room-work"));
    let mut child = Command::new(own)
        .args(["record", "-o", path.to_str().unwrap(), "--", own, "__demo"])
        .env("ROCTOP_DEMO_WORKER", work.until())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let full = lines.next().unwrap().unwrap();
    assert!(full.contains("No space left"), "{full}");
    let grown = Command::new("mount")
        .args(["-o", "remount,size=64m"])
        .arg(&small.0)
        .status();
    assert!(grown.unwrap().success());
    let again = lines.next().unwrap().unwrap();
    assert!(again.contains("there is room again"), "{again}");
    work.done();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    // What could wait has waited; if it was too much, that is told.
    let is_incomplete = rest.iter().any(|line| line.contains("is incomplete"));
    assert_eq!(child.wait().unwrap().code(), Some(is_incomplete.into()), "{rest:?}");
    let replay = Recording::open(&path).unwrap().items(&mut |_| ()).unwrap();
    assert!(replay.finished && replay.damaged == 0, "{replay:?}");
}

#[test]
fn a_flight_recorder_goes_on_when_the_disk_is_full() {
    let Some(small) = Small::mount("full-keep", "100k") else {
        return;
    };
    let (runs, own) = (small.0.join("runs"), env!("CARGO_BIN_EXE_roctop"));
    let work = Work::begin(&place("full-keep-work"));
    let options = [
        "--keep",
        "2s",
        "--after",
        "1s",
        "--keep-interval",
        "0s",
        "--on",
        "dur(hipMemcpyAsync) > 1ns",
    ];
    let mut child = Command::new(own)
        .args(["record", "-o", runs.to_str().unwrap()])
        .args(options)
        .args(["--", own, "__demo"])
        .env("ROCTOP_DEMO_WORKER", work.until())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut next = |part: &str| {
        let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(part)));
        found.unwrap_or_else(|| panic!("no line with {part}")).unwrap()
    };
    let full = next("No space left");
    assert!(
        full.contains("nothing is left of") && full.contains("roctop goes on"),
        "{full}"
    );
    let grown = Command::new("mount")
        .args(["-o", "remount,size=64m"])
        .arg(&small.0)
        .status();
    assert!(grown.unwrap().success());
    let written = next(" records");
    work.done();
    drop(next("could not be written, for the reasons above"));
    // The program ended well, a recording did not.
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let left = files(&runs);
    assert!(!left.is_empty(), "{written}");
    for path in left {
        let replay = Recording::open(&path).unwrap().items(&mut |_| ()).unwrap();
        assert!(replay.finished && replay.damaged == 0, "{}: {replay:?}", path.display());
    }
}

#[test]
fn a_disk_without_room_for_a_first_word_is_left_as_it_was() {
    let Some(small) = Small::mount("no-room", "64k") else {
        return;
    };
    // As much of it as there is room for.
    drop(std::fs::write(small.0.join("filled"), vec![1; 64 << 10]));
    let path = small.0.join("rec");
    let output = roctop(&["record", "-o", path.to_str().unwrap(), "--", "true"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("No space left"), "{told}");
    assert!(!path.exists(), "nothing is left of it");
}

#[test]
fn a_disk_that_is_full_already_is_found_before_the_program_starts() {
    let Some(small) = Small::mount("full-already", "500k") else {
        return;
    };
    let (path, started) = (small.0.join("rec"), place("full-started").join("started"));
    let output = roctop(&[
        "record",
        "-o",
        path.to_str().unwrap(),
        "--",
        "touch",
        started.to_str().unwrap(),
    ]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        told.contains("no room for a recording") && told.lines().count() == 1,
        "{told}"
    );
    assert!(!started.exists() && !path.exists());
}

#[test]
fn a_place_that_cannot_be_written_to_is_found_before_the_program_starts() {
    let place = place("unwritable");
    let started = place.join("started");
    let touch = ["touch", started.to_str().unwrap()];
    for words in [
        ["record", "-o", "/proc/nowhere/rec", "--"],
        ["rocprofv3", "--kernel-trace", "-d/proc/nowhere", "--"],
    ] {
        let output = roctop(&[&words[..], &touch[..]].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("/proc/nowhere") && told.lines().count() == 1, "{told}");
        assert!(!started.exists(), "{words:?} started the program");
    }
    std::fs::write(place.join("file"), "x").unwrap();
    let occupied = place.to_str().unwrap();
    let output = roctop(&[&["record", "-o", occupied, "--"][..], &touch[..]].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("not empty") && told.contains("-o"), "{told}");
    assert!(!started.exists());
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_not_the_end() {
    let place = place("limited");
    let (path, started) = (place.join("rec"), place.join("started"));
    let limited = |words: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -f 16; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_roctop")]);
        let output = command.args(words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("File too large") && said.contains("'ulimit -f'"),
            "{said}"
        );
    };
    let words = [
        "record",
        "-o",
        path.to_str().unwrap(),
        "--",
        "touch",
        started.to_str().unwrap(),
    ];
    limited(&words);
    assert!(!started.exists() && !path.exists());
    make(&path, &Made::default());
    let out = place.join("out");
    limited(&[
        "export",
        path.to_str().unwrap(),
        "-d",
        out.to_str().unwrap(),
        "--format",
        "json",
    ]);
    assert!(files(&out).is_empty(), "{:?}", files(&out));
    // A program that roctop starts has the default.
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    let output = command
        .args(["run", "--no-ui", "sh", "-c", "kill -XFSZ $$"])
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(25), "{output:?}");
}

#[test]
fn an_address_that_is_taken_is_found_before_the_program_starts() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let place = place("taken");
    let (rec, started) = (place.join("rec"), place.join("started"));
    let words = [
        "record",
        "--metrics",
        &address,
        "-o",
        rec.to_str().unwrap(),
        "--",
        "touch",
        started.to_str().unwrap(),
    ];
    let output = roctop(&words);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        told.contains("--metrics") && told.contains(&address) && told.lines().count() == 1,
        "{told}"
    );
    assert!(!started.exists());
}
