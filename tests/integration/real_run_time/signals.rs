//! Programs that end by a signal: what was complete is in the files, and what was not is listed as in flight.

use crate::kit::rig::{Rig, TOLERANCE, Truth, read_truth, rig};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process that ends before any of its GPU work was recorded knows the GPU's clock only about: by this much, ns.
const FIRST_MOMENT: u64 = 100_000;

/// The emulated GPU writes its log for so many completions at once, before it shows them to the host: the host cannot know of
/// these when the program ends in between.
const LOG_BATCH: usize = 64;

/// A row of a CSV file by column. No name in these programs has a comma.
type Line = BTreeMap<String, String>;

/// The rows of the file whose name ends so, none when it is not there.
fn rows(files: &Path, ending: &str) -> Vec<Line> {
    let found = fs::read_dir(files).unwrap().map(|entry| entry.unwrap().path());
    let mut found = found.filter(|path| path.to_string_lossy().ends_with(ending));
    let text = found
        .next()
        .map_or_else(String::new, |path| fs::read_to_string(path).unwrap());
    let cells = |line: &str| -> Vec<String> { line.split(',').map(|cell| cell.trim_matches('"').to_owned()).collect() };
    let mut lines = text.lines();
    let header = lines.next().map(cells).unwrap_or_default();
    lines
        .map(|line| header.iter().cloned().zip(cells(line)).collect())
        .collect()
}

fn logged(place: &Path) -> Vec<Truth> {
    let all = read_truth(place).into_iter();
    let mut kernels: Vec<Truth> = all
        .filter(|row| row.kind == "dispatch" && !row.name.is_empty())
        .collect();
    kernels.sort_by_key(|row| row.index);
    kernels
}

/// Every launch is in the kernels or in flight, once; every kernel is in the log with its times; what the log has beyond is
/// of the moment between the log and the host. Returns how many are complete and how many in flight.
fn check_files(place: &Path, files: &Path, tolerance: u64) -> (usize, usize) {
    let (kernels, in_flight) = (rows(files, "kernel_trace.csv"), rows(files, "kernel_in_flight.csv"));
    let calls = rows(files, "hip_api_trace.csv");
    let launches = calls.iter().filter(|call| call["Function"] == "hipLaunchKernel");
    let launches: BTreeSet<&str> = launches.map(|call| call["Correlation_Id"].as_str()).collect();
    let log = logged(place);
    let mut made = BTreeSet::new();
    for row in kernels.iter().chain(&in_flight) {
        assert!(
            matches!(row["Kernel_Name"].as_str(), "first(int*)" | "second(int*)"),
            "{row:?}"
        );
        assert_eq!(row["Agent_Id"], "Agent 1", "{row:?}");
        assert!(made.insert(row["Correlation_Id"].as_str()), "twice: {row:?}");
    }
    // The last call may have submitted its kernel and never have returned.
    assert!(made.difference(&launches).count() <= 1, "kernels without a launch");
    // The last launch may have been cut off before it submitted anything.
    assert!(
        made.len() + 1 >= launches.len(),
        "{} of {} launches",
        made.len(),
        launches.len()
    );
    for kernel in &kernels {
        let number = |name: &str| kernel[name].parse::<u64>().unwrap();
        // All are of one queue: the n-th dispatch is the n-th kernel of the log.
        let is_logged = log.get(number("Dispatch_Id") as usize - 1).is_some_and(|row| {
            row.begin.abs_diff(number("Start_Timestamp")) <= tolerance
                && row.end.abs_diff(number("End_Timestamp")) <= tolerance
        });
        assert!(is_logged, "{kernel:?}");
    }
    // What the log has beyond the files is in flight there, and no more than one batch.
    let beyond = log
        .len()
        .checked_sub(kernels.len())
        .expect("kernels that are not in the log");
    println!(
        "{} kernels, {} in flight, {beyond} logged beyond",
        kernels.len(),
        in_flight.len()
    );
    assert!(
        beyond <= in_flight.len().min(LOG_BATCH),
        "{beyond} complete kernels are not in the files"
    );
    (kernels.len(), in_flight.len())
}

fn roctop(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_roctop")).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The CSV files of the recording in `place`.
fn exported(place: &Path) -> PathBuf {
    let (recording, files) = (place.join("rec"), place.join("files"));
    let words = [
        "export",
        recording.to_str().unwrap(),
        "--format",
        "csv,json",
        "-d",
        files.to_str().unwrap(),
    ];
    roctop(&[&words[..], &["-o", "run"]].concat());
    files
}

/// What the closing line says of kernels in flight.
fn closing(in_flight: usize) -> String {
    let plural = if in_flight == 1 { "kernel was" } else { "kernels were" };
    format!("roctop: {in_flight} {plural} in flight when the program ended")
}

#[test]
fn a_raised_signal_leaves_every_launch_in_the_files() {
    let Some(rig) = rig() else { return };
    for (signal, launches) in [("2", "2"), ("15", "2"), ("6", "300"), ("11", "3000")] {
        let place = Rig::place(&format!("raised-{signal}"));
        let recording = place.join("rec");
        let options = ["record", "-o", recording.to_str().unwrap()];
        let output = Rig::ended(&mut rig.command(&place, &options, &["raise_signal", signal, launches]));
        assert_eq!(output.status.signal(), signal.parse::<i32>().ok(), "{output:?}");
        let files = exported(&place);
        let (complete, in_flight) = check_files(&place, &files, FIRST_MOMENT);
        println!("signal {signal}: {launches} launches, {complete} complete, {in_flight} in flight");
        assert_eq!(complete + in_flight, launches.parse::<usize>().unwrap());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(in_flight == 0 || said.contains(&closing(in_flight)), "{said}");
        let summary = roctop(&["summary", recording.to_str().unwrap()]);
        assert_eq!(summary.contains("open in process"), in_flight > 0, "{summary}");
        let json = fs::read_to_string(files.join("run_results.json")).unwrap();
        assert_eq!(json.matches("\"submit_timestamp\"").count(), in_flight);
    }
}

#[test]
fn rocprofv3_lists_what_a_signal_left_in_flight() {
    let Some(rig) = rig() else { return };
    for round in 0..4 {
        let place = Rig::place(&format!("raised-rocprofv3-{round}"));
        let options = "rocprofv3 --hip-runtime-trace --kernel-trace --output-format csv json -d out -o run";
        let options: Vec<&str> = options.split(' ').collect();
        let output = Rig::ended(&mut rig.command(&place, &options, &["raise_signal", "2"]));
        assert_eq!(output.status.signal(), Some(2), "{output:?}");
        let (complete, in_flight) = check_files(&place, &place.join("out"), FIRST_MOMENT);
        assert_eq!(complete + in_flight, 2, "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(in_flight == 0 || said.contains(&closing(in_flight)), "{said}");
    }
}

#[test]
fn ranges_that_a_program_ends_in_are_named() {
    const OPEN: [&str; 3] = ["training", "step 2 of a program that ends here", "loading"];
    let Some(rig) = rig() else { return };
    for (how, exit) in [
        ("return", Some(0)),
        ("exit", Some(3)),
        ("_exit", Some(4)),
        ("kill", None),
    ] {
        let place = Rig::place(&format!("ranges-{how}"));
        let recording = place.join("rec");
        let options = ["record", "-o", recording.to_str().unwrap()];
        let output = Rig::ended(&mut rig.command(&place, &options, &["open_ranges", how]));
        assert_eq!(output.status.code(), exit, "{output:?}");
        let mut names = OPEN.map(|name| format!("{name:?}"));
        names.sort();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_named = |said: &str| {
            let line = said.lines().find(|line| line.contains("ROC-TX ranges were open when"));
            let line = line.unwrap_or_else(|| panic!("{how}: {said}"));
            line.contains("3 ROC-TX ranges") && names.iter().all(|name| line.contains(name))
        };
        assert!(
            exit == Some(0) && !said.contains("ranges were") || is_named(&said),
            "{said}"
        );
        let files = place.join("files");
        let words = [
            "export",
            recording.to_str().unwrap(),
            "-d",
            files.to_str().unwrap(),
            "-o",
            "run",
        ];
        let exported = Command::new(env!("CARGO_BIN_EXE_roctop")).args(words).output().unwrap();
        assert!(is_named(&String::from_utf8_lossy(&exported.stderr)), "{exported:?}");
        // As upstream: a row for each range that was closed.
        let rows = fs::read_to_string(files.join("run_marker_api_trace.csv")).unwrap();
        assert!(rows.lines().count() == 2 && rows.contains("step 1"), "{rows}");
        let summary = roctop(&["summary", recording.to_str().unwrap()]);
        let open: Vec<&str> = summary.lines().filter(|line| line.starts_with("  range ")).collect();
        assert!(
            open.len() == 3 && names.iter().all(|name| open.iter().any(|line| line.contains(name))),
            "{summary}"
        );
        let json = roctop(&["summary", recording.to_str().unwrap(), "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let mut open: Vec<&str> = json["processes"][0]["open_ranges"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|name| name.as_str())
            .collect();
        open.sort_unstable();
        assert_eq!(open, ["loading", "step 2 of a program that ends here", "training"]);
    }
}

/// A program that launches on and on, and roctop before it; both in a process group of their own.
struct Running {
    place: PathBuf,
    roctop: Child,
    program: u32,
}

impl Running {
    fn start(rig: &Rig, name: &str) -> Self {
        let place = Rig::place(name);
        let recording = place.join("rec");
        let options = ["record", "-o", recording.to_str().unwrap()];
        let mut command = rig.command(&place, &options, &["raise_signal", "2", "2", "outside"]);
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
        let roctop = command.spawn().unwrap();
        let program = super::wait_for_log(&place);
        Self { place, roctop, program }
    }

    /// Sends the signal; how long roctop took after the program's end.
    fn end(mut self, signal: &str, to: &str) -> (PathBuf, Duration) {
        let sent = Command::new("kill").args(["-s", signal, "--", to]).status().unwrap();
        assert!(sent.success());
        while is_running(self.program) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let ended = Instant::now();
        let status = self.roctop.wait().unwrap();
        assert!(status.signal().is_some(), "{status:?}");
        (self.place, ended.elapsed())
    }
}

fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

#[test]
fn a_batch_systems_signal_flushes_everything() {
    batch_signals(1);
}

/// Other work on the machine delays one round, not all.
#[test]
#[ignore = "time: .ci/matrix"]
fn timed_a_batch_systems_signal_flushes_everything_soon() {
    for (name, least) in batch_signals(3) {
        assert!(least < Duration::from_millis(500), "{name}: {least:?}");
    }
}

/// Sends each signal to some rounds of the program; the least times that roctop took after the program's end.
fn batch_signals(rounds: usize) -> Vec<(&'static str, Duration)> {
    let Some(rig) = rig() else { return Vec::new() };
    let mut all = Vec::new();
    for (name, signal, to_group, to_program) in [
        ("term", "TERM", false, false),
        ("int", "INT", false, false),
        ("term-group", "TERM", true, false),
        ("int-group", "INT", true, false),
        ("term-program", "TERM", false, true),
    ] {
        let mut least = Duration::MAX;
        for round in 0..rounds {
            let running = Running::start(rig, &format!("batch-{name}-{round}"));
            let target = match (to_group, to_program) {
                (true, _) => format!("-{}", running.roctop.id()),
                (_, true) => running.program.to_string(),
                _ => running.roctop.id().to_string(),
            };
            let (place, took) = running.end(signal, &target);
            let (complete, in_flight) = check_files(&place, &exported(&place), TOLERANCE);
            println!("{name}: {complete} complete, {in_flight} in flight, roctop ended {took:?} after the program");
            assert!(complete > 500);
            least = least.min(took);
        }
        all.push((name, least));
    }
    all
}
