//! The flight recorder: what it writes, when, and what it leaves when it is killed.

mod soak;
mod triggers;

use crate::kit::demo::roctop;
use crate::kit::directory::place;
use crate::kit::metrics::Metrics;
use crate::kit::running::Running;
use crate::kit::work::Work;
use roctop::export::run::Run;
use roctop::item::Span;
use roctop::recording::{Recording, Replay, Trigger};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// Visible and hidden entries of the directory of recordings.
fn entries(runs: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(runs).into_iter().flatten();
    let mut found: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// A recording that a trigger wrote.
struct Kept {
    path: PathBuf,
    trigger: Trigger,
    stretch: Option<Span>,
    run: Run,
    replay: Replay,
}

impl Kept {
    fn load(path: &Path) -> Self {
        Self::read(path).unwrap()
    }

    /// The same for one that may not be complete yet.
    fn read(path: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let recording = Recording::open(path)?;
        let mut run = Run::default();
        let replay = recording.items(&mut |items| items.into_iter().for_each(|item| run.add(item)))?;
        Ok(Self {
            path: path.to_owned(),
            trigger: recording.trigger().unwrap().clone(),
            stretch: recording.stretch(),
            run,
            replay,
        })
    }

    /// The only one in the directory; otherwise roctop's messages are shown.
    fn only(runs: &Path, told: &dyn std::fmt::Debug) -> Self {
        let all = entries(runs);
        assert_eq!(all.len(), 1, "{all:?}\n{told:?}");
        Self::load(&all[0])
    }

    /// Begins of its dispatches, in order.
    fn begins(&self) -> Vec<u64> {
        let mut begins: Vec<u64> = self.run.dispatches.iter().map(|dispatch| dispatch.span.begin).collect();
        begins.sort_unstable();
        begins
    }

    /// It goes on after the trigger, unless the program has ended.
    fn check_after(&self) {
        let last = self.begins().last().copied();
        assert!(
            last > Some(self.trigger.at) || !self.run.exits.is_empty(),
            "nothing after"
        );
    }

    /// It can be read alone, and has what was before the trigger; how much, `crates/source/src/recording/hold.rs` tests.
    fn check(&self) {
        assert!(self.replay.finished && self.replay.damaged == 0, "{:?}", self.replay);
        let nameless = self
            .run
            .kernels
            .iter()
            .filter(|kernel| kernel.name.starts_with("(unnamed"));
        assert_eq!(nameless.count(), 0, "kernels have names");
        let first = self.begins().first().copied();
        assert!(first.is_some_and(|first| first < self.trigger.at), "nothing before");
        // Nothing of the time before, and no kernel without its launch.
        let calls: HashSet<_> = self
            .run
            .calls
            .iter()
            .map(|call| (call.process, call.correlation))
            .collect();
        for one in &self.run.dispatches {
            let ended = one.span.end.max(one.submit);
            assert!(self.stretch.is_none_or(|stretch| ended > stretch.begin), "{one:?}");
            let is_launched = one.correlation == 0 || one.submit > self.trigger.at;
            assert!(
                is_launched || calls.contains(&(one.process, one.correlation)),
                "{one:?}"
            );
        }
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A flight recorder that runs beside a test, and its lines in JSON by event.
struct Told {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    events: BTreeMap<String, Vec<Value>>,
}

impl Told {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        Self {
            lines: BufReader::new(child.stderr.take().unwrap()).lines(),
            child,
            events: BTreeMap::new(),
        }
    }

    fn read(&mut self) -> bool {
        let line = self.lines.next().map(Result::unwrap);
        let is_there = line.is_some();
        for (event, mut values) in events(&line.unwrap_or_default()) {
            self.events.entry(event).or_default().append(&mut values);
        }
        is_there
    }

    /// Waits until an event has come `times` times.
    fn wait(&mut self, event: &str, times: usize) {
        while self.events.get(event).map_or(0, Vec::len) < times {
            assert!(self.read(), "{event} comes {times} times: {:?}", self.events);
        }
    }

    /// Waits for the end.
    fn end(mut self) -> (ExitStatus, BTreeMap<String, Vec<Value>>) {
        while self.read() {}
        (self.child.wait().unwrap(), self.events)
    }
}

/// The demo under the flight recorder, for some seconds or until its work is done.
fn demo(runs: &Path, seconds: &str, options: &[&str]) -> Command {
    let own = env!("CARGO_BIN_EXE_roctop");
    let mut command = Command::new(own);
    command.args(["record", "-o", runs.to_str().unwrap()]);
    command.args(options).args(["--", own, "__demo"]);
    command
        .env("ROCTOP_DEMO_WORKER", seconds)
        .env("ROCTOP_CONFIG", "/dev/null")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Lines of standard error in JSON, by event.
fn events(text: &str) -> BTreeMap<String, Vec<Value>> {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let event = value["event"].as_str().unwrap().to_owned();
        found.entry(event).or_default().push(value);
    }
    found
}

#[test]
fn without_an_event_nothing_is_written() {
    let runs = place("keep-calm").join("runs");
    let options = [
        "--keep",
        "1s",
        "--on",
        "hang > 10min",
        "--on",
        "exit(error)",
        "--on",
        "error(hip*)",
    ];
    let output = demo(&runs, "2", &options).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "");
    assert_eq!(entries(&runs), [] as [PathBuf; 0]);
}

#[test]
fn a_mark_of_the_demo_writes_what_was_before_it() {
    let place = place("keep-demo");
    let (runs, work) = (place.join("runs"), Work::begin(&place));
    let options = [
        "--keep",
        "1min",
        "--after",
        "1s",
        "--on",
        "marker ~ \"^loss 0\"",
        "--log",
        "json",
    ];
    let mut program = Told::start(demo(&runs, &work.until(), &options));
    program.wait("recording", 1);
    work.done();
    let (status, events) = program.end();
    assert!(status.success(), "{events:?}");
    let kept = Kept::only(&runs, &events);
    kept.check();
    kept.check_after();
    let name = kept.path.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.ends_with("Z-marker-loss-0"), "{name}");
    assert_eq!(kept.trigger.condition, "marker ~ \"^loss 0\"");
    assert!(
        kept.trigger.reason.starts_with("marker \"loss 0."),
        "{}",
        kept.trigger.reason
    );
    let marks = kept.run.markers.iter().filter(|mark| mark.span.begin == mark.span.end);
    // The live clock has fewer calibration samples than the recording's.
    let is_it = |mark: &roctop::item::Marker| mark.span.end.abs_diff(kept.trigger.at) < 1_000_000;
    assert!(marks.clone().any(is_it), "the mark is in it");
    // All later marks of the run are in this recording or were too soon after it.
    assert_eq!(
        (events["trigger"].len(), events["recording"].len()),
        (1, 1),
        "{events:?}"
    );
    assert_eq!(events["recording"][0]["path"], kept.path.to_str().unwrap());
    let (path, summary) = (kept.path.to_str().unwrap(), |text: &str| {
        text.contains("marker \"loss 0.")
    });
    let output = roctop(&["summary", path]);
    assert!(summary(&String::from_utf8_lossy(&output.stdout)), "{output:?}");
}

#[test]
fn a_thousand_triggers_a_second_are_one_recording() {
    let place = place("keep-storm");
    let (runs, work) = (place.join("runs"), Work::begin(&place));
    let options = [
        "--keep",
        "1s",
        "--after",
        "1s",
        "--keep-interval",
        "1h",
        "--on",
        "dur(hip*) > 1ns",
        "--metrics",
        "127.0.0.1:0",
    ];
    let program = demo(&runs, &work.until(), &options).spawn().unwrap();
    let metrics = Metrics::of(program.id());
    let value = |answer: &str, name: &str| {
        let line = answer
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|line| line.parse::<f64>().ok())
    };
    let last = metrics.wait("/metrics", |answer| {
        value(answer, "roctop_keep_triggers_total") > Some(3000.0)
            && value(answer, "roctop_keep_suppressed_total") > Some(1000.0)
    });
    work.done();
    let kept = Kept::only(&runs, &program.wait_with_output().unwrap());
    assert!(kept.replay.finished && kept.replay.damaged == 0);
    // The recording began with the first call: each call in it was a trigger.
    assert_eq!(kept.trigger.also_count + 1, kept.run.calls.len() as u64);
    assert_eq!(kept.trigger.also.len(), 20, "{:?}", kept.trigger);
    assert_eq!(value(&last, "roctop_keep_recordings_total"), Some(1.0));
    assert_eq!(value(&last, "roctop_keep_asked_seconds"), Some(1.0));
    let bytes = value(&last, "roctop_keep_memory_bytes").unwrap();
    assert!(
        bytes > 0.0 && bytes <= value(&last, "roctop_keep_memory_limit_bytes").unwrap(),
        "{last}"
    );
}

#[test]
fn memory_is_bounded_and_what_is_missing_is_reported() {
    let place = place("keep-short");
    let (runs, work) = (place.join("runs"), Work::begin(&place));
    let options = [
        "--keep",
        "30s",
        "--after",
        "1s",
        "--keep-memory",
        "300K",
        "--on",
        "exit",
        "--log",
        "json",
    ];
    let mut program = Told::start(demo(&runs, &work.until(), &options));
    program.wait("short", 1);
    work.done();
    let (_, events) = program.end();
    let kept = Kept::only(&runs, &events);
    assert!(kept.replay.finished && kept.replay.damaged == 0);
    assert!(kept.trigger.held_seconds < 30.0, "{:?}", kept.trigger);
    assert!(kept.trigger.line().contains(" s of 30 s)"), "{}", kept.trigger.line());
    assert_eq!(events["short"].len(), 1, "{events:?}");
    let begins = kept.begins();
    let span = begins.last().unwrap() - begins[0];
    assert!(span < 30_000_000_000, "{span} ns");
    let bytes: u64 = entries(&kept.path)
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum();
    // The index of segments and the facts come in addition.
    assert!(bytes < 600 << 10, "{bytes} bytes");
}

#[test]
fn a_signal_and_a_request_write_recordings() {
    let place = place("keep-hand");
    let (runs, work) = (place.join("runs"), Work::begin(&place));
    let options = [
        "--keep",
        "1min",
        "--after",
        "1s",
        "--keep-signal",
        "SIGUSR2",
        "--metrics",
        "127.0.0.1:0",
    ];
    let program = demo(&runs, &work.until(), &options).spawn().unwrap();
    let pid = program.id().to_string();
    let has_kernels = |answer: &str| answer.contains("roctop_dispatches_total{");
    Metrics::of(program.id()).wait("/metrics", has_kernels);
    let output = roctop(&["keep", &pid]);
    assert!(output.status.success(), "{}", said(&output));
    let path = String::from_utf8(output.stdout).unwrap();
    let kept = Kept::load(Path::new(path.trim()));
    kept.check();
    kept.check_after();
    assert_eq!(kept.trigger.condition, "by hand");
    assert!(Command::new("kill").args(["-USR2", &pid]).status().unwrap().success());
    let second = wait_for(&runs, |name| name.ends_with("Z-signal"));
    work.done();
    let output = program.wait_with_output().unwrap();
    // The demo's worker would have ended by the signal.
    assert!(output.status.success(), "{}", said(&output));
    let all = entries(&runs);
    assert_eq!(all.len(), 2, "{all:?}");
    let kept = Kept::load(&second);
    assert_eq!(kept.trigger.condition, "signal");
    kept.check();
    kept.check_after();
    let output = roctop(&["keep", &pid]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
}

#[test]
fn a_session_that_keeps_nothing_says_so() {
    let recording = place("keep-none").join("rec");
    let running = Running::start(&["record", "-o", recording.to_str().unwrap(), "--", "sleep", "60"]);
    let started = Instant::now();
    let text = loop {
        let text = said(&roctop(&["keep", &running.session()]));
        if !text.contains("there is no session") || started.elapsed() > Duration::from_mins(1) {
            break text;
        }
    };
    assert!(
        text.contains("holds no records") && text.contains("--keep 30s"),
        "{text}"
    );
}

#[test]
fn wrong_conditions_are_usage_errors_with_a_column() {
    let runs = place("keep-usage").join("runs");
    for (text, part) in [
        (
            "stpe > 1ms",
            "did you mean step? (step, dur, range, error, exit, marker, idle, hang, lost, a measure",
        ),
        (
            "p99(gemm) > 2",
            "'2' is not a time with its unit, as 2ms (column 13 of 'p99(gemm) > 2')",
        ),
    ] {
        let output = demo(&runs, "1", &["--keep", "1s", "--on", text]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let text = said(&output);
        assert!(text.starts_with("roctop: --on: ") && text.contains(part), "{text}");
        assert!(!runs.exists());
    }
    let output = demo(&runs, "1", &["--on", "hang > 5s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "--on needs --keep");
}

/// Waits for an entry of the directory of recordings.
fn wait_for(runs: &Path, is_wanted: impl Fn(&str) -> bool) -> PathBuf {
    let started = Instant::now();
    loop {
        let found = entries(runs)
            .into_iter()
            .find(|path| is_wanted(&path.file_name().unwrap().to_string_lossy()));
        if let Some(path) = found {
            return path;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "never: {:?}", entries(runs));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_writer_leaves_what_can_be_read_or_nothing() {
    let runs = place("keep-kill").join("runs");
    let options = ["--keep", "1s", "--after", "1min", "--on", "marker ~ \"^loss\""];
    let mut program = demo(&runs, "0", &options).spawn().unwrap();
    let partial = wait_for(&runs, |name| name.ends_with(".partial"));
    // What was held is on its way to the disk, and new blocks come.
    let has_kernels = || Kept::read(&partial).is_ok_and(|kept| kept.run.dispatches.len() > 10);
    let started = Instant::now();
    while !has_kernels() {
        assert!(started.elapsed() < Duration::from_mins(1), "nothing is written");
        std::thread::sleep(Duration::from_millis(50));
    }
    let session = roctop::session::find(&program.id().to_string()).unwrap();
    let worker = roctop::session::alive(&session)[0];
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(
        Command::new("kill")
            .args(["-9", &worker.to_string()])
            .status()
            .unwrap()
            .success()
    );
    assert!(partial.exists() && entries(&runs).len() == 1, "{:?}", entries(&runs));
    // The next one in this directory gives it its name.
    let output = demo(&runs, "1", &["--keep", "1s"]).output().unwrap();
    assert!(said(&output).contains("its writer was killed"), "{}", said(&output));
    let all = entries(&runs);
    assert_eq!(all.len(), 1, "{all:?}");
    let kept = Kept::load(&all[0]);
    assert!(
        !kept.replay.finished && kept.run.dispatches.len() > 10,
        "{:?}",
        kept.replay
    );
    assert!(
        kept.run
            .kernels
            .iter()
            .all(|kernel| !kernel.name.starts_with("(unnamed"))
    );
    let _ = std::fs::remove_dir_all(session);
}

#[test]
fn a_killed_program_is_in_its_recording_to_the_end() {
    let runs = place("keep-program").join("runs");
    let options = [
        "--keep",
        "1min",
        "--after",
        "1min",
        "--on",
        "marker ~ \"^loss\"",
        "--on",
        "exit(KILL)",
    ];
    let program = demo(&runs, "0", &options).spawn().unwrap();
    wait_for(&runs, |name| name.ends_with(".partial"));
    let session = roctop::session::find(&program.id().to_string()).unwrap();
    let worker = roctop::session::alive(&session)[0];
    assert!(
        Command::new("kill")
            .args(["-9", &worker.to_string()])
            .status()
            .unwrap()
            .success()
    );
    let output = program.wait_with_output().unwrap();
    let kept = Kept::only(&runs, &output);
    assert!(kept.replay.finished && kept.replay.damaged == 0);
    let also = kept.trigger.also.last().unwrap();
    assert!(also.contains("ended: signal 9 SIGKILL"), "{also}");
    assert_eq!(kept.run.exits.len(), 1);
}

#[test]
fn older_recordings_are_removed_but_the_first_of_each_condition() {
    let place = place("keep-most");
    let (runs, work) = (place.join("runs"), Work::begin(&place));
    let options = [
        "--keep",
        "1s",
        "--after",
        "1s",
        "--keep-interval",
        "0s",
        "--keep-recordings",
        "3",
    ];
    let options = [&options[..], &["--on", "dur(hipMemcpyAsync) > 1ns", "--log", "json"]].concat();
    let mut program = Told::start(demo(&runs, &work.until(), &options));
    program.wait("recording", 5);
    work.done();
    let (status, events) = program.end();
    assert!(status.success(), "{events:?}");
    let paths: Vec<&str> = events["recording"]
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect();
    let left: Vec<PathBuf> = entries(&runs);
    let last = &paths[paths.len() - 2..];
    let expected: Vec<PathBuf> = [&paths[..1], last].concat().into_iter().map(PathBuf::from).collect();
    assert_eq!(left, expected);
    assert_eq!(events["removed"].len(), paths.len() - 3);
}
