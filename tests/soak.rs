//! Mixed HIP programs under roctop for `ROCTOP_SOAK_SECONDS` (ten without it): they fork, crash and are killed, roctop is
//! killed too, and a viewer comes, goes and changes its size. Each recording is compared with the emulated GPU's log, and
//! at the end nothing is left over: no process, no session, no memory.
//!
//! It takes all of a small machine, so it is a separate program, which cargo runs while no other test runs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "integration/kit"]
#[expect(dead_code, unused_imports, reason = "the kit serves other tests too")]
mod kit {
    pub(crate) mod directory;
    pub(crate) mod patience;
    pub(crate) mod recorded;
    pub(crate) mod rig;
    pub(crate) mod terminal;
    pub(crate) mod truth;
}

use kit::rig::{Recorded, Rig, rig};
use kit::terminal::Terminal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Every process of the soak has this variable.
const MARK: &str = "ROCTOP_SOAK_MARK";
/// What a viewer may hold, MiB.
const MOST_MIB: u64 = 256;
/// A watchdog, not a measure.
const PATIENCE: Duration = Duration::from_mins(2);

const PROGRAMS: [&[&str]; 9] = [
    &["matrix_transpose", "3"],
    &["many_streams", "2", "8", "2000"],
    &["memcpy_storm", "2", "1"],
    &["fork_exec"],
    &["features", "1"],
    &["crash_mid", "abort", "2000"],
    &["crash_mid", "segv", "2000"],
    &["crash_mid", "exit", "2000"],
    &["crash_mid", "_exit", "2000"],
];

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Recorded,
    SummedUp,
    OnScreen,
    ProgramKilled,
    RoctopKilled,
}

const WAYS: [Mode; 6] = [
    Mode::Recorded,
    Mode::Recorded,
    Mode::SummedUp,
    Mode::OnScreen,
    Mode::ProgramKilled,
    Mode::RoctopKilled,
];

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Names of the sessions of roctops that the soak started: their process ids.
static STARTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn started(pid: u32) {
    STARTED.lock().unwrap().insert(pid.to_string());
}

fn mark() -> String {
    std::process::id().to_string()
}

/// Processes of the soak that live, but for this one.
fn alive() -> Vec<u32> {
    let wanted = format!("{MARK}={}", mark());
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|word| word == wanted.as_bytes())
    })
    .collect()
}

fn resident_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill(pid: u32, signal: &str) {
    let line = format!("kill -{signal} {pid}");
    let _ = Command::new("sh").args(["-c", &line]).env_remove("LD_PRELOAD").status();
}

/// The pid of the program that keeps the log in `place`, once there is something in it.
fn program(place: &Path) -> Option<u32> {
    let names = std::fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    names
        .filter_map(|name| {
            name.to_str()?
                .strip_prefix("truth.")?
                .strip_suffix(".csv")?
                .parse()
                .ok()
        })
        .find(|pid| std::fs::metadata(place.join(format!("truth.{pid}.csv"))).is_ok_and(|file| file.len() > 20_000))
}

/// One run, its records compared where there are any.
fn run(rig: &Rig, place: &Path, words: &[&str], way: Mode, dice: &mut Dice, plain: ExitStatus) {
    let recording = place.join("rec");
    let recording = recording.to_str().unwrap();
    let start = |options: &[&str], words: &[&str]| -> Child {
        let mut command = rig.command(place, options, words);
        command.env(MARK, mark()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        started(child.id());
        child
    };
    let forever = ["crash_mid", "forever"];
    match way {
        Mode::Recorded => {
            let output = start(&["record", "-o", recording], words).wait_with_output().unwrap();
            assert_eq!(output.status, plain, "{words:?}");
            compare(&Recorded::load(place, output));
        }
        Mode::SummedUp => {
            let output = start(&["run", "--no-ui"], words).wait_with_output().unwrap();
            assert_eq!(output.status, plain, "{words:?}");
            assert!(
                String::from_utf8_lossy(&output.stderr).contains("dispatches"),
                "{words:?}"
            );
        }
        Mode::OnScreen => look(rig, place, words, dice),
        Mode::ProgramKilled => {
            let child = start(&["record", "-o", recording], &forever);
            wait_until("a program at work", || program(place).is_some());
            kill(program(place).unwrap(), "9");
            let recorded = Recorded::load(place, child.wait_with_output().unwrap());
            recorded.check_lost();
            assert!(!recorded.run.dispatches.is_empty());
        }
        Mode::RoctopKilled => {
            let mut child = start(&["record", "-o", recording], &["many_streams", "2", "8", "4000"]);
            wait_until("a program at work", || program(place).is_some());
            let app = program(place).unwrap();
            kill(child.id(), "9");
            let session = child.id().to_string();
            let status = child.wait().unwrap();
            // It did not notice, and what the rings hold is put to the recording.
            wait_until("the end of the program", || {
                !Path::new(&format!("/proc/{app}")).exists()
            });
            let roctop = env!("CARGO_BIN_EXE_roctop");
            let mut recover = Command::new(roctop);
            let mut output = recover.args(["recover", &session]).output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(0),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            output.status = status;
            compare(&Recorded::load(place, output));
        }
    }
}

fn compare(recorded: &Recorded) {
    recorded.check_lost();
    // A program that ends by a signal leaves its last work in flight; roctop says how much.
    if recorded.output.status.code().is_some_and(|code| code < 128) {
        recorded.check_dispatches();
        recorded.check_copies();
    } else {
        // The emulated GPU writes its log before it completes signals, so a queue's last rows may be dispatches that never
        // completed; these are recorded as in flight.
        recorded.check_queues_after_a_crash(|rows, dispatches| {
            for (row, dispatch) in rows.iter().zip(dispatches) {
                recorded.check_dispatch(row, dispatch);
            }
        });
        recorded.check_copies_after_a_crash();
    }
}

/// A person starts the program, looks around, changes the window, and leaves.
fn look(rig: &Rig, place: &Path, words: &[&str], dice: &mut Dice) {
    let command = rig.command(place, &[], words);
    let mut arguments = vec![command.get_program().to_str().unwrap().to_owned()];
    arguments.extend(command.get_args().map(|argument| argument.to_str().unwrap().to_owned()));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mark = mark();
    let mut variables: Vec<(&str, &str)> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)))
        .collect();
    variables.push((MARK, &mark));
    let mut terminal = Terminal::start(place, 120, 36, &arguments, &variables);
    started(terminal.pid());
    wander(&mut terminal, dice, 5);
    leave(terminal, "s");
}

/// Keys and sizes by chance.
fn wander(terminal: &mut Terminal, dice: &mut Dice, steps: usize) {
    const KEYS: [&str; 16] = [
        "1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "A", "W", "I", "M", "/touch\r", "\x1b",
    ];
    for _ in 0..steps {
        match dice.below(4) {
            0 => terminal.resize(40 + dice.below(200) as u16, 10 + dice.below(60) as u16),
            _ => terminal.keys(KEYS[dice.below(KEYS.len())]),
        }
        std::thread::sleep(Duration::from_millis(120));
    }
    terminal.resize(120, 36);
    terminal.keys("\x1b1");
}

/// Leaves the screen; `answer` is what to do with a program that still runs.
fn leave(mut terminal: Terminal, answer: &str) {
    while terminal.asks("q", "still runs") {
        terminal.choose(answer);
        // Keys that come in one read with enter would keep it from acting.
        terminal.wait("the menu gone", |text| !text.contains("still runs"));
    }
    let status = terminal.end();
    let bytes = terminal.bytes();
    let last = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(400)..]).into_owned();
    assert!(!terminal.is_full_screen(), "{status}, the last that it wrote: {last:?}");
}

/// A long-lived program without a screen, and a viewer that comes and goes. Returns the most that roctop held, MiB.
fn watch(rig: &Rig, until: Instant) -> (u64, usize) {
    let place = Rig::place("soak-watched");
    let mut command = rig.command(&place, &["run", "--no-ui"], &["crash_mid", "forever"]);
    // Slow kernels, and no log: it would fill the disk.
    command
        .env("EMULATED_GPU_KERNEL_NS", "500000")
        .env_remove("EMULATED_GPU_LOG");
    command.env(MARK, mark()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    started(child.id());
    let session = child.id().to_string();
    let (mut most, mut visits) = (0, 0);
    let mut dice = Dice(99);
    let mark = mark();
    while Instant::now() < until {
        let arguments = ["attach", session.as_str()];
        let mut terminal = Terminal::start(&place, 120, 36, &arguments, &[(MARK, &mark)]);
        wander(&mut terminal, &mut dice, 20);
        most = most.max(resident_mib(terminal.pid())).max(resident_mib(child.id()));
        leave(terminal, "d");
        visits += 1;
    }
    kill(child.id(), "TERM");
    child.wait().unwrap();
    (most, visits)
}

/// Names of the sessions that are there.
fn sessions() -> BTreeSet<String> {
    let base = format!("/dev/shm/roctop-{}", rustix::process::getuid().as_raw());
    let entries = std::fs::read_dir(base).into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

#[test]
fn after_hours_of_starts_crashes_kills_and_visits_nothing_is_left_over() {
    let Some(rig) = rig() else { return };
    let seconds = std::env::var("ROCTOP_SOAK_SECONDS").map_or(10, |value| value.parse().unwrap());
    let plain: BTreeMap<&[&str], ExitStatus> = PROGRAMS
        .iter()
        .map(|words| (*words, rig.plain(words[0], words).status))
        .collect();
    let until = Instant::now() + Duration::from_secs(seconds);
    let done: Mutex<BTreeMap<Mode, u64>> = Mutex::default();
    let (most, visits) = std::thread::scope(|scope| {
        for worker in 0..2u64 {
            let (done, plain) = (&done, &plain);
            scope.spawn(move || {
                let mut dice = Dice(worker * 7 + 3);
                while Instant::now() < until {
                    let words = PROGRAMS[dice.below(PROGRAMS.len())];
                    let way = WAYS[dice.below(WAYS.len())];
                    let place = Rig::place(&format!("soak-{worker}"));
                    run(rig, &place, words, way, &mut dice, plain[words]);
                    *done.lock().unwrap().entry(way).or_default() += 1;
                }
            });
        }
        scope.spawn(|| watch(rig, until)).join().unwrap()
    });
    let done = done.into_inner().unwrap();
    let runs: u64 = done.values().sum();
    println!("soak: {runs} runs in {seconds} s {done:?}, {visits} visits, {most} MiB at most");
    assert!(runs > 0 && visits > 0);
    assert!(most > 0 && most <= MOST_MIB, "{most} MiB");
    wait_until("no process is left", || alive().is_empty());
    let left: Vec<String> = sessions().intersection(&STARTED.lock().unwrap()).cloned().collect();
    assert!(left.is_empty(), "sessions are left: {left:?}");
}
