//! Signals reach the program as without roctop, once, and what it inherits is the same.

use super::{roctop, text, word};
use crate::kit::directory::place;
use crate::kit::terminal::Terminal;
use crate::terminal::signal::send;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The program of `sigs.c`; none without a C compiler.
pub(crate) fn sigs() -> Option<&'static str> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/launch/sigs.c");
        let program = place("sigs").join("sigs");
        let built = Command::new("cc").arg("-o").args([&program, &source]).status();
        if !built.is_ok_and(|status| status.success()) {
            println!("skipped: needs a C compiler");
            return None;
        }
        Some(program)
    };
    PROGRAM.get_or_init(build).as_deref().map(word)
}

/// Ends the program that notes signals.
pub(crate) const LAST: i32 = 64;
/// The first real-time signal of programs.
const FIRST_QUEUED: i32 = 34;
/// One of each kind. Those that end a screen are the last.
const SIX: [i32; 6] = [2, 10, 24, 37, 1, 15];

/// All that can be caught, but those that stop and continue, and those that are not passed on: CHLD and WINCH.
fn all() -> Vec<i32> {
    let kept = [9, 17, 18, 19, 20, 21, 22, 28, 32, 33];
    let others = (2..LAST).filter(|signal| *signal != 15 && !kept.contains(signal));
    others.chain([1, 15]).collect()
}

/// Waits until something is there: a minute is a watchdog.
pub(super) fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "never seen: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| !['Z', 'X'].contains(&state))
}

/// The processes that roctop started.
fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let all: Vec<String> = tasks.flatten().map(of).collect();
    all.iter()
        .flat_map(|pids| pids.split_whitespace())
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// A roctop, or a program alone, in a terminal or without one.
enum Started {
    Seen(Box<Terminal>),
    Unseen(Child),
}

impl Started {
    fn start(place: &Path, words: &[&str], has_terminal: bool) -> Self {
        if has_terminal {
            let terminal =
                Terminal::start_program(place, 100, 30, words[0], &words[1..], &[("ROCTOP_CONFIG", "/dev/null")]);
            return Self::Seen(Box::new(terminal));
        }
        // In a session without a terminal.
        let mut command = roctop();
        command
            .args(["__launch", "pipe", words[0], "0"])
            .args(words)
            .current_dir(place);
        command.env("ROCTOP_CONFIG", "/dev/null");
        Self::Unseen(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        match self {
            Self::Seen(terminal) => terminal.pid(),
            Self::Unseen(child) => child.id(),
        }
    }

    fn end(&mut self) -> ExitStatus {
        match self {
            Self::Seen(terminal) => terminal.end(),
            Self::Unseen(child) => wait("the end", || child.try_wait().unwrap()),
        }
    }
}

/// What the program has noted: its process id, and its signals.
pub(crate) fn noted(report: &Path) -> Option<(u32, Vec<i32>)> {
    let text = std::fs::read_to_string(report).ok()?;
    let mut lines = text.split_terminator('\n');
    let pid: u32 = lines.next()?.parse().ok()?;
    Some((pid, lines.filter_map(|line| line.parse().ok()).collect()))
}

/// The target of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// What was started.
    Pid,
    /// Its process group.
    Group,
    /// The process, then its group: timeout(1).
    Both,
    /// Every process by itself, as Slurm and systemd do.
    Each,
    /// The same, by a sender that another process interrupts for long.
    Interrupted,
}

/// Sends signals to a program that notes them, and returns how many of each it got.
fn count(tool: &[&str], has_terminal: bool, target: Target, signals: &[i32]) -> Vec<(i32, usize)> {
    let sigs = sigs().unwrap();
    let place = place("count");
    let (report, fifo) = (place.join("report"), place.join("fifo"));
    let mut words = Vec::new();
    if target == Target::Both {
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        words.extend([sigs, "timeout", word(&fifo)]);
    }
    words.extend(tool);
    words.extend([sigs, "note", word(&report)]);
    let mut started = Started::start(&place, &words, has_terminal);
    let (program, _) = wait("the program", || noted(&report));
    let outer = started.pid();
    let mut into = (target == Target::Both).then(|| File::options().write(true).open(&fifo).unwrap());
    let roctop = match target {
        Target::Both => children(outer)[0],
        _ => outer,
    };
    for signal in signals {
        let name = signal.to_string();
        match target {
            Target::Pid => send(&name, roctop),
            Target::Group => kill(&name, &[&format!("-{roctop}")]),
            Target::Both => into.as_mut().unwrap().write_all(&[*signal as u8]).unwrap(),
            Target::Each | Target::Interrupted => {
                let all: Vec<String> = [vec![roctop], children(roctop)]
                    .concat()
                    .iter()
                    .map(u32::to_string)
                    .collect();
                if target == Target::Interrupted {
                    let sender = Command::new(sigs).args(["slow", &name]).args(&all).status();
                    assert!(sender.unwrap().success());
                } else {
                    kill(&name, &all.iter().map(String::as_str).collect::<Vec<_>>());
                }
            }
        }
        let what = format!("signal {signal} to {target:?} of {words:?}");
        wait(&what, || noted(&report).filter(|(_, noted)| noted.contains(signal)));
    }
    // Signals are passed on in order, so after this one none of them can come any more.
    send(&LAST.to_string(), roctop);
    wait("the program's end", || (!is_alive(program)).then_some(()));
    drop(into);
    let ended = started.end();
    assert_eq!(ended.code(), Some(5), "{target:?} of {words:?}");
    let (_, noted) = noted(&report).unwrap();
    let of = |signal: &i32| (*signal, noted.iter().filter(|noted| *noted == signal).count());
    signals.iter().map(of).collect()
}

/// One process signals all of these.
fn kill(signal: &str, targets: &[&str]) {
    let line = format!("kill -{signal} {}", targets.join(" "));
    assert!(
        Command::new("sh").args(["-c", &line]).status().unwrap().success(),
        "{line}"
    );
}

/// The ways in which roctop starts a program, each with whether it has a terminal.
fn tools() -> Vec<(Vec<&'static str>, bool)> {
    let roctop = env!("CARGO_BIN_EXE_roctop");
    let record = vec![roctop, "record", "-o", "recording", "--"];
    let run = vec![roctop, "run", "--no-ui", "--"];
    let rocprofv3 = vec![roctop, "rocprofv3", "--kernel-trace", "-d", "out", "--"];
    let screen = vec![roctop, "run", "--on-exit", "quit", "--kill-timeout", "10m", "--"];
    vec![
        (record.clone(), true),
        (record, false),
        (run.clone(), true),
        (run, false),
        (rocprofv3.clone(), true),
        (rocprofv3, false),
        (screen, true),
    ]
}

fn every_signal_reaches_the_program_once(signals: &[i32]) {
    if sigs().is_none() {
        return;
    }
    for target in [Target::Pid, Target::Group, Target::Both, Target::Each] {
        let alone = if target == Target::Each {
            signals.iter().map(|signal| (*signal, 1)).collect()
        } else {
            count(&[], false, target, signals)
        };
        for (tool, has_terminal) in tools() {
            let under = count(&tool, has_terminal, target, signals);
            for ((signal, alone), (_, under)) in alone.iter().zip(under) {
                // The screen ends a program that it loses by TERM.
                if tool.contains(&"--on-exit") && *signal == 15 {
                    continue;
                }
                // Standard signals coalesce, or not, as the system likes.
                let is_right = match target {
                    Target::Both if *signal < FIRST_QUEUED => (1..=2).contains(&under),
                    _ => under == *alone,
                };
                assert!(
                    is_right,
                    "signal {signal} to {target:?}, terminal {has_terminal}, {tool:?}: {under}, alone {alone}"
                );
            }
        }
    }
}

#[test]
fn six_signals_reach_the_program_once() {
    every_signal_reaches_the_program_once(&SIX);
}

#[test]
#[ignore = "54 signals, each in 28 ways: .ci/matrix"]
fn all_signals_reach_the_program_once() {
    every_signal_reaches_the_program_once(&all());
}

/// A viewer of a program that another roctop started.
fn attach_passes_nothing_on(signals: &[i32]) {
    let Some(sigs) = sigs() else { return };
    let place = place("attached");
    let report = place.join("report");
    let words = [
        env!("CARGO_BIN_EXE_roctop"),
        "record",
        "-o",
        "recording",
        "--",
        sigs,
        "note",
        word(&report),
    ];
    let mut recorded = Started::start(&place, &words, false);
    let (program, _) = wait("the program", || noted(&report));
    let session = recorded.pid().to_string();
    for signal in signals {
        let mut viewer = Terminal::start(&place, 100, 30, &["attach", &session], &[]);
        viewer.wait("the screen", |_| viewer.is_full_screen());
        send(&signal.to_string(), viewer.pid());
        viewer.end();
        assert!(!viewer.is_full_screen(), "signal {signal}: the terminal is given back");
    }
    send(&LAST.to_string(), program);
    assert_eq!(recorded.end().code(), Some(5));
    assert_eq!(noted(&report).unwrap().1, [LAST]);
}

#[test]
fn six_signals_to_a_viewer_end_it_and_nothing_else() {
    attach_passes_nothing_on(&SIX);
}

#[test]
#[ignore = "54 signals, each with a screen: .ci/matrix"]
fn all_signals_to_a_viewer_end_it_and_nothing_else() {
    attach_passes_nothing_on(&all());
}

/// Signals wait while roctop is stopped, and all come when it goes on.
#[test]
fn signals_that_come_at_once_all_reach_the_program() {
    let Some(sigs) = sigs() else { return };
    let place = place("at-once");
    let report = place.join("report");
    let tool = &tools()[1].0;
    let words: Vec<&str> = tool.iter().copied().chain([sigs, "note", word(&report)]).collect();
    let mut started = Started::start(&place, &words, false);
    wait("the program", || noted(&report));
    let roctop = started.pid();
    let sent: Vec<i32> = SIX.into_iter().chain(40..60).collect();
    send("STOP", roctop);
    for signal in &sent {
        send(&signal.to_string(), roctop);
    }
    send("CONT", roctop);
    let all_of = |noted: &[i32]| sent.iter().all(|signal| noted.contains(signal));
    wait("all signals", || noted(&report).filter(|(_, noted)| all_of(noted)));
    send(&LAST.to_string(), roctop);
    assert_eq!(started.end().code(), Some(5));
    let (_, noted) = noted(&report).unwrap();
    for signal in &sent {
        assert_eq!(noted.iter().filter(|noted| *noted == signal).count(), 1, "{signal}");
    }
}

/// On a busy machine, a sender may wait for a CPU between two processes.
#[test]
fn a_sender_that_is_interrupted_has_sent_one_signal() {
    if sigs().is_none() {
        return;
    }
    for (tool, has_terminal) in [&tools()[1], &tools()[2]] {
        let under = count(tool, *has_terminal, Target::Interrupted, &[10, 15]);
        assert_eq!(under, [(10, 1), (15, 1)], "{tool:?}");
    }
}

#[test]
fn real_time_signals_are_counted() {
    if sigs().is_none() {
        return;
    }
    let many = [40; 50];
    let under = count(&tools()[1].0, false, Target::Pid, &many);
    assert_eq!(under[0], (40, 50));
}

#[test]
fn a_keyboard_interrupt_reaches_the_program_once() {
    let Some(sigs) = sigs() else { return };
    let place = place("keyboard");
    let report = place.join("report");
    let words = ["record", "-o", "recording", "--", sigs, "note", word(&report)];
    let mut terminal = Terminal::start(&place, 80, 24, &words, &[]);
    wait("the program", || noted(&report));
    terminal.keys("\u{3}");
    wait("an interrupt", || {
        noted(&report).filter(|(_, noted)| noted.contains(&2))
    });
    send(&LAST.to_string(), terminal.pid());
    assert_eq!(terminal.end().code(), Some(5));
    assert_eq!(noted(&report).unwrap().1, [2, LAST]);
}

#[test]
fn the_end_of_the_group_is_the_programs_that_of_roctop_is_not() {
    let Some(sigs) = sigs() else { return };
    for (target, is_left) in [("group", false), ("pid", true)] {
        let place = place("killed");
        let report = place.join("report");
        let words = [
            env!("CARGO_BIN_EXE_roctop"),
            "record",
            "-o",
            "recording",
            "--",
            sigs,
            "note",
            word(&report),
        ];
        let mut started = Started::start(&place, &words, false);
        let (program, _) = wait("the program", || noted(&report));
        let helpers: Vec<u32> = children(started.pid())
            .into_iter()
            .filter(|pid| *pid != program)
            .collect();
        match target {
            "group" => kill("KILL", &[&format!("-{}", started.pid())]),
            _ => send("KILL", started.pid()),
        }
        assert_eq!(started.end().signal(), Some(9));
        for helper in helpers {
            wait("the end of roctop's helpers", || (!is_alive(helper)).then_some(()));
        }
        if is_left {
            send(&LAST.to_string(), program);
        }
        wait("the program's end", || (!is_alive(program)).then_some(()));
        assert_eq!(noted(&report).unwrap().1 == [LAST], is_left, "{target}");
    }
}

/// What a program inherits, alone and under roctop.
fn inherited(ignored: &str, blocked: &str, closed: &str, tool: &[&str]) -> String {
    let place = place("inherited");
    let report = place.join("report");
    let mut command = Command::new(sigs().unwrap());
    command.args(["as", ignored, blocked, closed]).args(tool);
    command
        .args([sigs().unwrap(), "show", word(&report)])
        .current_dir(&place);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.env("ROCTOP_CONFIG", "/dev/null").status().unwrap();
    assert_eq!(status.code(), Some(0), "{ignored} {blocked} {closed} {tool:?}");
    std::fs::read_to_string(&report).unwrap()
}

#[test]
fn what_is_ignored_blocked_and_closed_is_inherited() {
    if sigs().is_none() {
        return;
    }
    let cases = [
        ("", "", ""),
        ("1", "", ""),
        ("2,3", "", ""),
        ("13", "", ""),
        ("17", "", ""),
        ("1,2,3,10,12,13,15,17,20,22,24,25,40", "", ""),
        ("", "1,2,15,17,40", ""),
        ("13,17", "13,17", "0"),
        ("", "", "1"),
        ("", "", "2"),
        ("", "", "0,1,2"),
    ];
    for (ignored, blocked, closed) in cases {
        let alone = inherited(ignored, blocked, closed, &[]);
        assert!(
            closed.is_empty() || !alone.contains(&format!("open {}", &closed[..1])),
            "{alone}"
        );
        for (tool, has_terminal) in tools() {
            if !has_terminal {
                assert_eq!(
                    inherited(ignored, blocked, closed, &tool),
                    alone,
                    "{tool:?} {ignored} {blocked} {closed}"
                );
            }
        }
    }
}

#[test]
fn nohup_is_kept() {
    let Some(sigs) = sigs() else { return };
    let place = place("nohup");
    let done = place.join("done");
    let script = format!(
        "echo > ready; while [ ! -e go ]; do sleep 0.02; done; echo > {}",
        done.display()
    );
    let words = [
        sigs,
        "as",
        "1",
        "",
        "",
        env!("CARGO_BIN_EXE_roctop"),
        "record",
        "-o",
        "rec",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let mut started = Started::start(&place, &words, false);
    wait("the program", || place.join("ready").exists().then_some(()));
    kill("HUP", &[&format!("-{}", started.pid())]);
    send("HUP", started.pid());
    std::fs::write(place.join("go"), "").unwrap();
    assert_eq!(started.end().code(), Some(0));
    assert!(done.exists());
}

#[test]
fn a_parent_that_ignores_children_gets_the_exit_code() {
    let Some(sigs) = sigs() else { return };
    let mut command = Command::new(sigs);
    command.args([
        "as",
        "17",
        "",
        "",
        env!("CARGO_BIN_EXE_roctop"),
        "--no-ui",
        "sh",
        "-c",
        "exit 7",
    ]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
}

#[test]
fn few_descriptors_are_one_line_before_the_program_starts() {
    let mut has_refused = false;
    for limit in 3..40 {
        let place = place("few");
        let (ran, recording) = (place.join("ran"), place.join("rec"));
        // The shell itself needs some.
        let line = format!(
            "ulimit -n {limit} && exec '{}' record -o '{}' -- /bin/sh -c ': > \"{}\"'",
            env!("CARGO_BIN_EXE_roctop"),
            recording.display(),
            ran.display()
        );
        let mut command = Command::new("sh");
        let output = command.args(["-c", &line]).stdin(Stdio::null()).output().unwrap();
        let said = text(&output.stderr);
        assert!(!said.contains("panicked"), "{limit}: {said}");
        if !ran.exists() && said.starts_with("roctop: ") {
            has_refused = true;
            assert_eq!(said.lines().count(), 1, "{limit}: {said}");
        }
    }
    assert!(has_refused, "a limit so low that roctop cannot start a program");
}

#[test]
fn the_first_process_of_a_container_leaves_no_zombies() {
    let script = "for i in 1 2 3; do (setsid true &); done; \
        i=0; while [ $i -lt 200 ]; do cat /proc/[0-9]*/stat 2>/dev/null | grep -q ') Z ' || break; i=$((i+1)); sleep 0.05; done; \
        cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '";
    let mut command = Command::new("unshare");
    command.args([
        "-pf",
        "--mount-proc",
        env!("CARGO_BIN_EXE_roctop"),
        "--no-ui",
        "sh",
        "-c",
        script,
    ]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = text(&output.stderr);
    if said.contains("unshare: ") {
        println!("skipped: {said}");
        return;
    }
    assert_eq!(text(&output.stdout), "0\n", "{said}");
}

#[test]
fn odd_characters_in_home_are_no_reason_to_record_nothing() {
    for odd in ["First Last", "a:b", "a;b", "$ORIGIN", "a\"b", "a\\b", "a\tb", "a\nb"] {
        let home = place("odd").join(odd);
        std::fs::create_dir(&home).unwrap();
        let mut command = roctop();
        command.args(["--no-ui", "sh", "-c", "echo \"$LD_PRELOAD\"; echo \"$HSA_TOOLS_LIB\""]);
        command.env("HOME", &home);
        for unset in ["XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "LD_PRELOAD"] {
            command.env_remove(unset);
        }
        let output = command.output().unwrap();
        let (shown, said) = (text(&output.stdout), text(&output.stderr));
        assert!(!said.contains("ld.so"), "{odd}: {said}");
        assert!(!shown.contains("odd") && shown.contains("collector-"), "{odd}: {shown}");
    }
}

fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

/// roctop in a process group of this session, and its program, a script that shows where it is.
fn job(script: &str) -> (Child, u32, PathBuf) {
    let place = place("job");
    let mut command = roctop();
    command
        .args(["record", "-o", "rec", "--", "sh", "-c", script])
        .current_dir(&place);
    let child = command.process_group(0).stderr(Stdio::null()).spawn().unwrap();
    let pid = || std::fs::read_to_string(place.join("pid")).ok()?.trim().parse().ok();
    let program = wait("the program", pid);
    (child, program, place)
}

#[test]
fn roctop_stops_and_goes_on_with_its_program() {
    let (mut roctop, program, _) = job("echo $$ > pid; while :; do sleep 0.05; done");
    let (alone, group) = (roctop.id().to_string(), format!("-{}", roctop.id()));
    for target in [&alone, &group] {
        for stop in ["TSTP", "TTIN", "TTOU"] {
            kill(stop, &[target]);
            let both = || [roctop.id(), program].map(state);
            wait("both stopped", || (both() == ['T', 'T']).then_some(()));
            kill("CONT", &[target]);
            wait("both go on", || (!both().contains(&'T')).then_some(()));
        }
    }
    kill("TERM", &[&group]);
    assert_eq!(wait("the end", || roctop.try_wait().unwrap()).signal(), Some(15));
}

#[test]
fn a_program_that_does_not_stop_keeps_roctop_running() {
    let (mut roctop, _, place) =
        job("trap '' TSTP; trap 'echo > seen' USR1; echo $$ > pid; while [ ! -e seen ]; do sleep 0.05; done; exit 3");
    kill("TSTP", &[&format!("-{}", roctop.id())]);
    send("USR1", roctop.id());
    // Signals are passed on in order: had the earlier one stopped roctop, this one would not arrive.
    wait("the program's answer", || place.join("seen").exists().then_some(()));
    assert_eq!(wait("the end", || roctop.try_wait().unwrap()).code(), Some(3));
}
