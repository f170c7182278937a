//! Threads, children, kills and full file systems: the program never notices, and the account is exact to the record.
//!
//! `ROCTOP_KILLS` lengthens the kills, `ROCTOP_STORM` the threads and forks (times the short run).

use crate::place::{TestDir, out, shipped};
use crate::ring::Ring;
use roctop_ring::layout::counter;
use roctop_ring::record::Body;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Calls and marks of one thread or child.
const CALLS: u64 = 40;
const MARKS: u64 = 10;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

struct Storm {
    place: TestDir,
    program: PathBuf,
}

impl Storm {
    fn new() -> Option<Self> {
        let place = TestDir::new()?;
        let link = place.fake_hip();
        let link: Vec<&str> = link.iter().map(String::as_str).collect();
        let program = place.compile("storm", "storm", &[&link[..], &["-pthread", "-ldl"]].concat());
        Some(Self { place, program })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.place.traced(&self.program);
        command.env("LD_PRELOAD", shipped()).args(words);
        command
    }
}

/// What the files of a session hold together.
#[derive(Default, Debug)]
struct Sum {
    processes: BTreeSet<u32>,
    calls: u64,
    marks: u64,
    starts: u64,
    seen: u64,
    lost: u64,
    no_ring: u64,
    reentrant: u64,
}

impl Sum {
    /// Threads by what is known of their records: each wrote its start, its calls and its marks, or had no ring for any of
    /// them. A ring that is used again overwrites its oldest records, and says so.
    fn threads(&self) -> u64 {
        let (with, without) = (CALLS + MARKS + 1, CALLS + MARKS);
        let written = self.seen + self.lost;
        assert!(
            written.is_multiple_of(with) && self.no_ring.is_multiple_of(without),
            "{self:?}"
        );
        written / with + self.no_ring / without
    }

    /// Adds up; every thread's marks have to be in order, and every account exact.
    fn of(rings: &[Ring]) -> Self {
        let mut sum = Self::default();
        for ring in rings {
            sum.processes.insert(ring.pid);
            sum.no_ring += ring.counter(counter::NO_RING);
            sum.reentrant += ring.reentrant;
            for (thread, account) in &ring.accounts {
                assert_eq!(account.seen + account.lost, account.written, "{thread:?}");
                sum.seen += account.seen;
                sum.lost += account.lost;
            }
            let mut next = BTreeMap::<u32, u64>::new();
            for (tid, _, body) in &ring.records {
                match body {
                    Body::ApiCall(call) => {
                        assert!(call.start <= call.end && call.correlation != 0);
                        sum.calls += 1;
                    }
                    Body::Mark(mark) => {
                        sum.marks += 1;
                        let (who, number) = std::str::from_utf8(&mark.text).unwrap().split_once(':').unwrap();
                        let number: u64 = number.parse().unwrap();
                        // Thread ids come again; so do the numbers then.
                        let next = next.entry(*tid).or_default();
                        if ring.lost == 0 {
                            assert_eq!((who.parse(), number), (Ok(*tid), *next % MARKS));
                        }
                        *next = number + 1;
                    }
                    Body::ThreadStart(_) => sum.starts += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
        sum
    }
}

#[test]
fn a_thousand_threads_and_thousands_of_short_ones_are_recorded() {
    let Some(storm) = Storm::new() else { return };
    let times = 3 * number("ROCTOP_STORM", 1);
    let words = ["threads", "1000", &times.to_string()];
    let result = storm.command(&words).env("ROCTOP_RING_SLOTS", "512").output().unwrap();
    if result.status.code() == Some(78) {
        eprintln!("skipped: this machine gives no thousand threads");
        return;
    }
    assert!(result.status.success(), "{}", result.status);
    let sum = Sum::of(&storm.place.rings());
    let threads = 1000 * times + 1;
    assert_eq!(sum.threads(), threads, "{sum:?}");
    assert_eq!((sum.no_ring, sum.reentrant), (0, 0));
    assert_eq!(sum.lost == 0, sum.starts == threads, "{sum:?}");
}

#[test]
fn threads_without_a_ring_are_counted_to_the_call() {
    let Some(storm) = Storm::new() else { return };
    // There are files for some thousand threads at once.
    let threads = 1500;
    let words = ["threads", &threads.to_string(), "1"];
    let result = storm.command(&words).env("ROCTOP_RING_SLOTS", "512").output().unwrap();
    if result.status.code() == Some(78) {
        eprintln!("skipped: this machine does not allow that number of threads");
        return;
    }
    assert!(result.status.success(), "{}", result.status);
    let sum = Sum::of(&storm.place.rings());
    assert!(sum.no_ring > 0);
    assert_eq!(sum.threads(), threads + 1, "{sum:?}");
}

#[test]
fn children_and_their_detached_children_have_rings_of_their_own() {
    let Some(storm) = Storm::new() else { return };
    let count = 60 * number("ROCTOP_STORM", 1);
    let result = storm
        .command(&["forks", &count.to_string()])
        .env("ROCTOP_RING_SLOTS", "128")
        .output()
        .unwrap();
    assert!(result.status.success(), "{}", result.status);
    let sum = Sum::of(&storm.place.rings());
    // Who works: the parent, every second child, the detached ones, and what one of five becomes by exec.
    let workers = 1 + count / 2 + count.div_ceil(3) + count / 5;
    assert_eq!((sum.calls, sum.marks), (workers * CALLS, workers * MARKS), "{sum:?}");
    assert_eq!((sum.starts, sum.lost, sum.no_ring), (workers, 0, 0), "{sum:?}");
}

#[test]
fn a_long_run_takes_no_more_memory_than_its_first_half() {
    let Some(storm) = Storm::new() else { return };
    let count = 20_000 * number("ROCTOP_STORM", 1);
    let result = storm
        .command(&["memory", &count.to_string()])
        .env("ROCTOP_RING_SLOTS", "1024")
        .output()
        .unwrap();
    assert!(result.status.success(), "{}", result.status);
    let sizes: Vec<u64> = out(&result).lines().map(|line| line.parse().unwrap()).collect();
    let rings = storm.place.rings();
    let files: u64 = std::fs::read_dir(storm.place.session())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    let written: u64 = rings
        .iter()
        .flat_map(|ring| &ring.accounts)
        .map(|(_, account)| account.written)
        .sum();
    println!(
        "{written} records of {count} threads: {sizes:?} KiB, files of {} KiB",
        files >> 10
    );
    assert_eq!(written, (count + 1) * (CALLS + MARKS + 1) + count);
    // One thread at a time: the first file was enough, and was made as large as it is.
    assert_eq!((rings.len(), sizes.len()), (1, 2));
    assert!(sizes[1] <= sizes[0] + 256, "{sizes:?} KiB");
    assert!(files < 16 << 20);
}

/// Ends the endless program after a time by `signal`; what it wrote is whole.
fn endless(storm: &Storm, words: &[&str], after: Duration) -> (Sum, Option<i32>) {
    let mut child = storm
        .command(words)
        .env("ROCTOP_RING_SLOTS", "256")
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut ready = [0u8; 6];
    child.stdout.take().unwrap().read_exact(&mut ready).unwrap();
    std::thread::sleep(after);
    if words[1] == "9" {
        // The whole group: the child that is being forked just now too.
        let line = format!("kill -9 -{}", child.id());
        let killed = Command::new("sh").args(["-c", &line]).status().unwrap();
        assert!(killed.success());
    }
    let status = child.wait().unwrap();
    let sum = Sum::of(&storm.place.rings());
    std::fs::remove_dir_all(storm.place.session()).unwrap();
    std::fs::create_dir(storm.place.session()).unwrap();
    (sum, status.signal())
}

#[test]
fn a_kill_while_threads_start_and_children_fork_tears_nothing() {
    let Some(storm) = Storm::new() else { return };
    let kills = number("ROCTOP_KILLS", 40);
    let mut random = std::process::id() | 1;
    let (mut seen, mut lost, mut processes) = (0, 0, 0);
    for _ in 0..kills {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let (sum, signal) = endless(
            &storm,
            &["endless", "9"],
            Duration::from_micros(u64::from(random % 4000)),
        );
        assert_eq!(signal, Some(libc::SIGKILL));
        (seen, lost, processes) = (seen + sum.seen, lost + sum.lost, processes + sum.processes.len());
    }
    println!("{kills} kills of groups: {processes} processes, {seen} records accepted, {lost} overwritten");
}

#[test]
fn an_abort_and_a_fault_inside_a_signal_handler_tear_nothing() {
    let Some(storm) = Storm::new() else { return };
    for round in 0..number("ROCTOP_KILLS", 40).div_ceil(8) {
        let late = (100 + 300 * round % 5000).to_string();
        let (sum, signal) = endless(&storm, &["endless", "6", &late], Duration::ZERO);
        assert!(signal == Some(libc::SIGABRT) && sum.seen > 0);
        let handled = (1 + 7 * round % 300).to_string();
        let (sum, signal) = endless(&storm, &["endless", "11", &handled], Duration::ZERO);
        assert!(signal == Some(libc::SIGSEGV) && sum.seen > 0);
    }
}

/// Runs the program with the session on a separate tmpfs, in a mount namespace that ends with it. `before` is
/// done there first; `S` is the session. None when that is not allowed here.
fn on_a_tmpfs(
    storm: &Storm,
    size: &str,
    before: &str,
    words: &[&str],
) -> Option<(std::process::ExitStatus, String, Vec<Ring>)> {
    let may = Command::new("unshare").args(["--mount", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this user may not make a mount namespace here");
        return None;
    }
    // The collector is loaded by the program alone; what was written is copied out before the mount goes.
    let script = format!(
        "S={session}; mount -t tmpfs -o size={size} tmpfs \"$S\" || exit 79\n{before}\n\
         LD_PRELOAD=\"$COLLECTOR\" \"$@\"; code=$?; cp \"$S\"/*.ring {copies}/ 2>/dev/null; exit $code",
        session = storm.place.session().display(),
        copies = storm.place.dir.join("copies").display(),
    );
    let copies = storm.place.dir.join("copies");
    std::fs::create_dir_all(&copies).unwrap();
    let output = storm
        .command(&[])
        .env_remove("LD_PRELOAD")
        .get_envs()
        .fold(&mut Command::new("unshare"), |command, (key, value)| match value {
            Some(value) => command.env(key, value),
            None => command,
        })
        .env("COLLECTOR", shipped())
        .env("ROCTOP_RING_SLOTS", "32768")
        .args(["--mount", "sh", "-c", &script, "sh"])
        .arg(&storm.program)
        .args(words)
        .output()
        .unwrap();
    if output.status.code() == Some(79) {
        eprintln!("skipped: a tmpfs cannot be mounted here");
        return None;
    }
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&copies)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let rings = paths.iter().map(|path| Ring::read(path)).collect();
    std::fs::remove_dir_all(&copies).unwrap();
    Some((output.status, out(&output), rings))
}

#[test]
fn a_full_file_system_is_nothing_to_the_program() {
    let Some(storm) = Storm::new() else { return };
    for (size, rest) in [("64k", 0u64), ("8m", 0), ("8m", 5 << 20), ("20m", 0), ("64m", 0)] {
        let fill = format!("head -c {rest} /dev/zero > \"$S/other\"");
        let Some((status, _, rings)) = on_a_tmpfs(&storm, size, &fill, &["threads", "40", "2"]) else {
            return;
        };
        assert!(status.success(), "{size}: {status}");
        let sum = Sum::of(&rings);
        println!("{size}, {rest} bytes taken: {} files, {sum:?}", rings.len());
        // Where not even the smallest file has room there is nobody to count.
        assert_eq!(sum.threads(), if size == "64k" { 0 } else { 81 });
        // What a container has by default is enough for all of them.
        assert!(size != "64m" || (sum.no_ring, sum.lost) == (0, 0));
    }
}
