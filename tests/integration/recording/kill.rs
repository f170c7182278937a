//! Programs, ranks and viewers that are killed or die: what their recordings hold.

use super::{load, told};
use crate::kit::directory::place;
use crate::kit::work::wait_for_bytes;
use roctop::clocks::boottime;
use roctop::item::ProcessId;
use roctop::raw::{Raw, RawSink};
use roctop::recording::Recording;
use roctop::session::{self, Live};
use roctop_ring::record::Head;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Records of each ring: the number after the last one, how many were delivered, how many were lost.
#[derive(Default, Debug, PartialEq, Eq)]
struct Tally(BTreeMap<(u32, u32), (u32, u64, u64)>);

impl Tally {
    /// Records of all rings.
    fn written(&self) -> u64 {
        self.0.values().map(|(next, ..)| u64::from(*next)).sum()
    }
}

impl RawSink for Tally {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        match raw {
            Raw::Record(thread, slots) => {
                let known = self.0.entry((process.0, thread.index)).or_default();
                known.0 = Head(slots[0][0]).ordinal() + 1;
                known.1 += 1;
            }
            Raw::Lost(thread, _, records) => self.0.entry((process.0, thread.index)).or_default().2 += records,
            _ => {}
        }
    }
}

fn kill(pid: u32) {
    let status = Command::new("sh").args(["-c", &format!("kill -9 {pid}")]).status();
    assert!(status.unwrap().success(), "{pid}");
}

/// The program that a roctop has started.
fn child_of(pid: u32) -> Option<u32> {
    crate::kit::demo::program_of(pid)
}

/// Waits until `is_done`, for a minute at most.
fn wait_until(what: &str, mut is_done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_done() {
        assert!(started.elapsed() < Duration::from_mins(1), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
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
        // The kill comes after a different number of bytes in each round.
        wait_for_bytes(&path, (1 + round) * 40_000);
        let session = session::find(&pid.to_string()).unwrap();
        let app = child_of(pid).unwrap();
        kill(pid);
        roctop_itself.wait().unwrap();
        let (code, _, errors) = told(&["recover", &pid.to_string()]);
        assert!(code == Some(1) && errors.contains("still in use"), "{errors}");
        // What it goes on to do is in the rings alone.
        let mut seen = Tally::default();
        let mut live = Live::new(&session);
        live.poll(boottime(), &mut seen).unwrap();
        let before = seen.written();
        wait_until("records after roctop's end", || {
            live.poll(boottime(), &mut seen).unwrap();
            seen.written() > before + 100
        });
        kill(app);
        wait_until("the session's end", || !session::is_in_use(&session));
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
    // A path is told the same place to look in.
    let place = errors.rsplit(' ').next().unwrap();
    let (_, _, errors) = told(&["recover", "/no/such-session"]);
    assert!(place.starts_with('/') && errors.ends_with(place), "{errors}");
}
