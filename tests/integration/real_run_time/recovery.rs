//! Recordings whose roctop was killed: what `roctop recover` makes of them.
//!
//! A second reader, in the test itself, records the same session without interruption. What it has is the expectation.

use super::wait_for_rows;
use crate::kit::rig::{Recorded, Rig, TOLERANCE, rig};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use roctop::clocks::boottime;
use roctop::item::{AgentId, AgentKind, Item, ProcessId};
use roctop::model::{Fresh, Mode, Options, Store};
use roctop::raw::{Raw, RawSink};
use roctop::recording::{Recorder, Recording, TOPOLOGY};
use roctop::session::{self, Live};
use roctop::ui::key::Key;
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::{Msg, Ui, update, view};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A `roctop record` that the test kills, and what is left of it.
struct Killed {
    place: PathBuf,
    session: PathBuf,
    witness: Witness,
}

/// The test's own reader of the session.
struct Witness {
    stop: Arc<AtomicBool>,
    reader: JoinHandle<()>,
}

impl Witness {
    fn start(session: &Path, recording: &Path, command: &[String]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut recorder = Recorder::create(recording, command, &[]).unwrap();
        let mut live = Live::new(session);
        let told = stop.clone();
        let reader = std::thread::spawn(move || {
            loop {
                // Asked first: what came before the answer is in the rings now.
                let is_over = told.load(Ordering::Acquire);
                let progress = live.poll(boottime(), &mut recorder).unwrap();
                if is_over && !progress.more && live.alive() == 0 {
                    break;
                }
                if !progress.more {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            roctop::live::unwind_stacks(live.take_stack_files(), &mut recorder);
            recorder.finish().unwrap();
        });
        Self { stop, reader }
    }

    fn finish(self) {
        self.stop.store(true, Ordering::Release);
        self.reader.join().unwrap();
    }
}

/// Waits until `is_done`, for a minute at most.
fn wait_until(what: &str, mut is_done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_done() {
        assert!(started.elapsed() < Duration::from_mins(1), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

impl Killed {
    /// Starts a program under `roctop record` with a second reader, and kills roctop when the log has so many rows.
    fn start(rig: &Rig, name: &str, rows: usize, options: &[&str], words: &[&str]) -> Self {
        let place = Rig::place(name);
        let recording = place.join("rec");
        // Gauges are roctop's own samples: nobody takes them when it is dead.
        let mut all = vec!["record", "--gauge-rate", "0", "-o", recording.to_str().unwrap()];
        all.extend(options);
        let mut command = rig.command(&place, &all, words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut session = None;
        wait_until("a session that is recorded", || {
            let mut all = session::sessions().into_iter().map(|found| found.path);
            session = all.rfind(|path| session::recording_of(path).is_some_and(|noted| noted == recording));
            session.is_some()
        });
        let session = session.unwrap();
        let words = Recording::open(&recording).unwrap().command().to_vec();
        let witness = Witness::start(&session, &place.join("whole"), &words);
        wait_for_rows(&place, rows);
        // The session has the process id of its roctop.
        let roctop = session.file_name().unwrap().to_str().unwrap();
        kill(roctop.parse().unwrap());
        child.wait().unwrap();
        Self {
            place,
            session,
            witness,
        }
    }

    /// Waits for the program's end and recovers the recording; what `roctop recover` said.
    fn recover(self) -> (PathBuf, String) {
        wait_until("the program's end", || !session::is_in_use(&self.session));
        self.witness.finish();
        // The test sees no emulated GPU.
        fs::copy(
            self.place.join("rec").join(TOPOLOGY),
            self.place.join("whole").join(TOPOLOGY),
        )
        .unwrap();
        // Records of one session in the recording of another would be lost for both.
        let other = self.place.join("whole");
        let output = roctop(&["recover", self.session.to_str().unwrap(), "-o", other.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("whole is not the recording of the session"), "{said}");
        assert_eq!(output.status.code(), Some(1));
        let output = roctop(&["recover", self.session.to_str().unwrap()]);
        assert!(output.status.success(), "{output:?}");
        (self.place, String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn roctop(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roctop")).args(words).output().unwrap()
}

/// The files of every format, by name, and the summary.
fn exported(place: &Path, recording: &str) -> BTreeMap<String, Vec<u8>> {
    let from = place.join(recording);
    // Files name the folder that they lie in: it has one name for all.
    let beside = place.join(format!("of-{recording}"));
    fs::create_dir_all(&beside).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    command.arg("export").arg(&from).current_dir(&beside);
    command.args(["--format", "csv,json,pftrace,rocpd,parquet", "-d", "files", "-o", "run"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut files = BTreeMap::new();
    read_all(&beside, &beside, &mut files);
    let summary = roctop(&["summary", from.to_str().unwrap(), "--format", "json"]);
    files.insert("summary".into(), summary.stdout);
    files
}

fn read_all(from: &Path, below: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for path in fs::read_dir(below).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            read_all(from, &path, files);
        } else {
            let name = path.strip_prefix(from).unwrap().to_string_lossy().into_owned();
            files.insert(name, fs::read(&path).unwrap());
        }
    }
}

/// The recovered recording says in every format what the one says that was not interrupted.
fn check_equal(place: &Path) {
    let (recovered, whole) = (exported(place, "rec"), exported(place, "whole"));
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&recovered), names(&whole));
    let differ = recovered.iter().filter(|(name, bytes)| whole[*name] != **bytes);
    let differ: Vec<&String> = differ.map(|(name, _)| name).collect();
    assert!(differ.is_empty(), "{differ:?} differ in {}", place.display());
    println!("equal: {:?}", names(&recovered));
    for ending in ["kernel_trace.csv", "json", "pftrace", "db", "parquet", "summary"] {
        assert!(recovered.keys().any(|name| name.ends_with(ending)), "no {ending}");
    }
}

/// Keys of the views, as `roctop open` shows them.
const VIEWS: [char; 16] = [
    '1', '2', '3', '4', '5', '6', '7', '8', '9', '0', 'A', 'W', 'I', 'D', 'M', 'C',
];

/// The text of every view of a recording, as `roctop open` draws it; without the moments at which a reader looked and at
/// which it noticed the program's end, and without where it saw threads run, which differ between readers.
fn screens(recording: &Path) -> BTreeMap<char, String> {
    const SIZE: (u16, u16) = (200, 50);
    let mut store = Store::new(Options {
        mode: Mode::Replay,
        ..Options::default()
    });
    let recording = Recording::open(recording).unwrap();
    let apply = |items: Vec<Item>| {
        store.apply_all(
            items
                .iter()
                .filter(|item| !matches!(item, Item::Ended { .. } | Item::Now(_) | Item::Binding(..))),
        );
    };
    recording.items(&mut { apply }).unwrap();
    let snapshot = store.snapshot(Fresh::All);
    let theme = Theme::named("dark", Depth::C256).unwrap();
    let draw = |key| {
        let mut ui = Ui::new(snapshot.mode);
        update(&mut ui, &snapshot, Msg::Resize(SIZE.0, SIZE.1));
        update(&mut ui, &snapshot, Msg::Key(Key::Char(key)));
        let mut buffer = Buffer::empty(Rect::new(0, 0, SIZE.0, SIZE.1));
        view(&ui, &snapshot, &theme, &mut buffer);
        let rows = buffer.content().chunks(SIZE.0.into());
        let lines = rows.map(|row| row.iter().map(Cell::symbol).collect::<String>());
        // What depends on the order in which a reader comes to threads: the order of their rows, and which geometry is the
        // last one of a kernel that has several.
        let mut lines: Vec<String> = lines.filter(|line| !line.contains("(not always)")).collect();
        lines.sort();
        (key, lines.join("\n"))
    };
    VIEWS.into_iter().map(draw).collect()
}

/// Every view of the recovered recording is that of the one that was not interrupted.
fn check_screens(place: &Path) {
    let (recovered, whole) = (screens(&place.join("rec")), screens(&place.join("whole")));
    for (key, screen) in &recovered {
        assert!(*screen == whole[key], "view {key}:\n{screen}\n\n{}", whole[key]);
    }
    let devices = &recovered[&'7'];
    assert!(
        devices.contains("GPU0") && !devices.contains("no kernel on any GPU"),
        "{devices}"
    );
}

/// What a recording in `place` holds, for comparison with the log.
fn loaded(place: &Path) -> Recorded {
    let output = Output {
        status: ExitStatus::default(),
        stdout: Vec::new(),
        stderr: Vec::new(),
    };
    Recorded::load(place, output)
}

/// All GPU work is on a GPU.
fn check_agents(recorded: &Recorded) {
    let run = &recorded.run;
    let is_gpu = |agent: AgentId| run.agents[agent.0 as usize].kind == AgentKind::Gpu;
    assert!(run.dispatches.iter().all(|dispatch| is_gpu(dispatch.agent)));
    let ends = run.copies.iter().map(|copy| [copy.source, copy.destination]);
    let mut known = ends.map(|ends| ends.into_iter().flatten());
    assert!(known.all(|mut ends| ends.any(is_gpu)));
}

#[test]
fn a_recovered_recording_equals_a_whole_one() {
    let Some(rig) = rig() else { return };
    let words = ["many_streams", "2", "4", "20000"];
    let (place, told) = Killed::start(rig, "recovered", 1000, &["--ring", "16M"], &words).recover();
    assert!(told.trim_end().ends_with("; nothing is missing"), "{told}");
    let recorded = loaded(&place);
    recorded.check_lost();
    assert!(recorded.check_dispatches() >= 20_000);
    recorded.check_correlation();
    check_agents(&recorded);
    check_equal(&place);
    check_screens(&place);
}

#[test]
fn processes_started_after_the_kill_are_recovered() {
    let Some(rig) = rig() else { return };
    let (place, told) = Killed::start(rig, "recovered-processes", 5, &[], &["fork_exec"]).recover();
    assert!(told.trim_end().ends_with("; nothing is missing"), "{told}");
    let recorded = loaded(&place);
    recorded.check_lost();
    recorded.check_dispatches();
    recorded.check_copies();
    recorded.check_correlation();
    check_agents(&recorded);
    let ticks = recorded
        .run
        .dispatches
        .iter()
        .filter(|dispatch| recorded.kernel(dispatch).contains("tick"));
    assert_eq!(ticks.count(), 10 + 20 + 30 + 40);
    check_equal(&place);
}

#[test]
fn recover_names_the_records_that_are_missing() {
    let Some(rig) = rig() else { return };
    let words = ["many_streams", "2", "4", "40000"];
    let (place, told) = Killed::start(rig, "recovered-in-part", 1000, &["--ring", "64K"], &words).recover();
    let recorded = loaded(&place);
    let lost: u64 = recorded.run.lost.values().sum();
    assert!(lost > 1000, "{lost}");
    let missing = format!("; missing: {lost} overwritten before they were read");
    assert!(told.trim_end().ends_with(&missing), "{told}");
    // What is there and what is lost is all that was written, as the reader says that was not interrupted.
    let written = |name: &str| {
        let mut tally = Tally::default();
        Recording::open(&place.join(name)).unwrap().deliver(&mut tally).unwrap();
        tally.0
    };
    assert_eq!(written("rec"), written("whole"));
    check_agents(&recorded);
    for dispatch in &recorded.run.dispatches {
        let is_logged = recorded.truth.iter().any(|row| {
            row.name == recorded.kernel(dispatch)
                && row.begin.abs_diff(dispatch.span.begin) <= TOLERANCE
                && row.end.abs_diff(dispatch.span.end) <= TOLERANCE
        });
        assert!(is_logged, "{dispatch:?}");
    }
}

/// Records of each ring, seen or counted as lost.
#[derive(Default)]
struct Tally(BTreeMap<(ProcessId, u32), u64>);

impl RawSink for Tally {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        match raw {
            Raw::Record(thread, _) => *self.0.entry((process, thread.index)).or_default() += 1,
            Raw::Lost(thread, _, records) => *self.0.entry((process, thread.index)).or_default() += records,
            _ => {}
        }
    }
}
