//! Resource limits with which roctop was started.

use super::signals::wait;
use super::{text, word};
use crate::kit::directory::place;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Options of `prlimit`, the lowest value that is tried, and one above what anything here needs.
const LIMITS: [(&str, u64, u64); 8] = [
    ("fsize", 0, 1 << 30),
    ("as", 1 << 20, 1 << 40),
    ("data", 1 << 16, 1 << 40),
    ("stack", 1 << 14, 8 << 20),
    ("nproc", 0, 1 << 16),
    ("cpu", 1, 3600),
    ("memlock", 0, 8 << 20),
    ("core", 0, 1 << 30),
];
/// What the program prints, and its exit code.
const OUTPUT: &str = "output\n";
const CODE: i32 = 7;

fn limited(option: &str, limit: u64, words: &[&str]) -> Output {
    let mut command = Command::new("prlimit");
    command.arg(format!("--{option}={limit}:{limit}")).args(words);
    command.stdin(Stdio::null()).output().unwrap()
}

fn is_right(output: &Output) -> bool {
    output.status.code() == Some(CODE) && text(&output.stdout) == OUTPUT
}

/// The lowest limit with which the program runs as without it, within a quarter.
fn needed(option: &str, [mut low, mut high]: [u64; 2], program: &[&str]) -> u64 {
    if is_right(&limited(option, low, program)) {
        return low;
    }
    while high > low + low / 4 + 1 {
        let middle = ((low.max(1) as f64) * (high as f64)).sqrt() as u64;
        if is_right(&limited(option, middle, program)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// The program runs as without roctop, or roctop says in a line why it does not start it.
fn check(option: &str, limit: u64, program: &[&str], started: &Path) {
    let recording = place("limited").join("rec");
    let _ = std::fs::remove_file(started);
    let roctop = env!("CARGO_BIN_EXE_roctop");
    let words = [&[roctop, "record", "-o", word(&recording), "--"], program].concat();
    let output = limited(option, limit, &words);
    let said = text(&output.stderr);
    let told = format!("{option} {limit}: {:?} {said}", output.status);
    if is_right(&output) {
        assert!(said.is_empty() || said.starts_with("roctop: "), "{told}");
        return;
    }
    assert!(!started.exists(), "{told}");
    // The Linux kernel or the loader cannot even start roctop with it.
    let is_too_low = output.status.signal().is_some() && said.is_empty() || said.contains("error while loading shared");
    if !is_too_low {
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(said.starts_with("roctop: ") && said.lines().count() == 1, "{told}");
        assert!(said.contains("ulimit"), "{told}");
    }
}

#[test]
fn a_limit_stops_no_program_or_is_named_before_it_starts() {
    let started = place("limits").join("started");
    let script = format!(": >> '{}'; echo output; exit {CODE}", started.display());
    let program = ["sh", "-c", &script];
    for (option, low, high) in LIMITS {
        let needed = needed(option, [low, high], &program);
        let halfway = ((needed.max(1) as f64) * (high as f64)).sqrt() as u64;
        for limit in [needed, halfway, high] {
            check(option, limit, &program, &started);
        }
    }
    // Between what the Linux kernel needs to start roctop, and what roctop needs.
    for (option, low) in [("stack", 1 << 16), ("data", 1 << 21), ("as", 1 << 25)] {
        for step in 0..10 {
            check(option, low << step, &program, &started);
        }
    }
}

/// Once roctop has used its processor time, all but what the program needs of it ends.
#[test]
fn a_limit_of_processor_time_ends_the_reading_and_no_program() {
    let place = place("processor-time");
    let (pid, go, told) = (place.join("pid"), place.join("go"), place.join("told"));
    assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
    let script = format!("trap '' 40; echo $$ > pid; read line < go; echo output; exit {CODE}");
    let mut command = Command::new("prlimit");
    command.args(["--cpu=2:2", env!("CARGO_BIN_EXE_roctop"), "record", "-o", "rec", "--"]);
    command
        .args(["sh", "-c", &script])
        .current_dir(&place)
        .stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(File::create(&told).unwrap());
    let mut roctop = command.spawn().unwrap();
    let said = || std::fs::read_to_string(&told).unwrap();
    wait("the program", || pid.exists().then_some(()));
    // Each of these signals costs roctop processor time, and the program none.
    let send = format!(
        "i=0; while [ $i -lt 500 ]; do kill -40 {} || exit; i=$((i+1)); done",
        roctop.id()
    );
    wait("the limit", || {
        Command::new("sh")
            .args(["-c", &send])
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let has_ended = roctop.try_wait().unwrap().is_some();
        (has_ended || said().contains("ulimit -t")).then_some(())
    });
    assert_eq!(
        roctop.try_wait().unwrap(),
        None,
        "roctop runs as long as its program: {}",
        said()
    );
    std::fs::write(&go, "\n").unwrap();
    let output = roctop.wait_with_output().unwrap();
    assert!(is_right(&output), "{:?} {}", output.status, said());
    let lines: Vec<String> = said().lines().map(str::to_owned).collect();
    let about = |line: &&String| line.contains("processor time is limited to 2");
    assert_eq!(lines.iter().filter(about).count(), 1, "{lines:?}");
    let summary = super::run(&["summary", word(&place.join("rec"))]);
    assert!(summary.status.success(), "{}", text(&summary.stderr));
}
