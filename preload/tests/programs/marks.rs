//! ROC-TX, threads, forks, signal handlers, the control file.

use crate::place::{TestDir, library, out};
use crate::ring::Ring;
use roctop_ring::layout::counter;
use roctop_ring::record::Body;
use roctop_ring::session;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::path::Path;

#[test]
fn without_a_session_nothing_happens() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let mut command = place.traced(&program);
    let result = command
        .env_remove("ROCTOP_SESSION")
        .args(["default", "mark", "levels", "threads"])
        .output()
        .unwrap();
    assert!(result.status.success());
    assert!(place.rings().is_empty());
}

#[test]
fn a_program_that_uses_no_gpu_leaves_no_file() {
    let Some(place) = TestDir::new() else { return };
    let result = place
        .traced(Path::new("/bin/sh"))
        .args(["-c", "echo $((1 + 1)); cat /dev/null"])
        .output()
        .unwrap();
    assert_eq!(out(&result), "2\n");
    assert!(place.rings().is_empty());
}

#[test]
fn a_file_size_limit_prevents_recording_with_a_reason() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let script = format!("ulimit -f 1; exec {} default mark levels", program.display());
    let mut command = place.traced(Path::new("/bin/sh"));
    let result = command.args(["-c", &script]).output().unwrap();
    assert!(result.status.success(), "{}", result.status);
    assert!(place.rings().is_empty());
    let entries = std::fs::read_dir(place.session()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let refused: Vec<_> = names.filter_map(|name| session::refused(&name)).collect();
    assert!(matches!(refused[..], [(_, libc::EFBIG)]), "{refused:?}");
}

#[test]
fn marks_and_ranges_are_recorded_with_their_levels() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let result = place
        .traced(&program)
        .args(["default", "mark", "levels", "start", "long", "deep", "many"])
        .output()
        .unwrap();
    assert_eq!(out(&result), "0 1 1 0 -1\n");
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.marks(), ["a mark".to_owned(), "x".repeat(999)]);
    let ranges = ring.ranges();
    let found: Vec<_> = ranges
        .iter()
        .map(|(_, m)| (ring.text(m), m.level, m.range_id))
        .collect();
    assert_eq!(found[0], ("inner".into(), 1, 0));
    assert_eq!(found[1], ("outer".into(), 0, 0));
    assert_eq!(found[2], ("started".into(), 0, 1));
    // 24 levels are in the file and 4096 in memory of the thread; deeper ranges are counted, never guessed.
    let deep = found.iter().filter(|(text, ..)| text == "deep");
    assert!(deep.map(|(_, level, _)| *level).eq((0..24 + 4096).rev()));
    assert_eq!(ring.counter(counter::RANGES_LOST), 4200 - 24 - 4096);
    let later = found
        .iter()
        .filter(|(text, level, _)| text == if level % 2 == 0 { "even" } else { "odd" });
    assert!(later.map(|(_, level, _)| *level).eq((0..40).rev()));
    // 256 started ranges are in the file, with the one that stays open; the others are in memory of the process.
    let many = found.iter().filter(|(text, ..)| text == "one of many");
    assert!(many.map(|(.., id)| *id).eq((3..1003).rev()));
    assert!(ranges.iter().all(|(_, m)| m.start <= m.end && m.correlation != 0));
    assert_eq!(ring.open.ranges.len(), 1);
    assert_eq!(ring.open.ranges[0].text, b"left open");
    assert_eq!((ring.counter(counter::STATE), ring.lost), (3, 0));
    assert!(ring.calibrations >= 2);
}

#[test]
fn a_stop_without_a_started_range_records_nothing() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let result = place.traced(&program).args(["default", "misuse"]).output().unwrap();
    assert!(result.status.success());
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    let ranges = ring.ranges();
    let found: Vec<_> = ranges.iter().map(|(_, m)| (ring.text(m), m.range_id)).collect();
    assert_eq!(found, [("stopped once".to_owned(), 1)]);
    assert!(ranges.iter().all(|(_, m)| m.start != 0));
    assert!(ring.open.ranges.is_empty());
}

#[test]
fn a_library_opened_by_name_is_this_one_when_a_link_says_so() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let links = place.dir.join("links");
    std::fs::create_dir(&links).unwrap();
    for name in ["libroctx64.so.4", "librocprofiler-sdk-roctx.so.1"] {
        symlink(library(), links.join(name)).unwrap();
        let mut command = place.traced(&program);
        let result = command
            .env("LD_LIBRARY_PATH", &links)
            .args([name, "levels"])
            .output()
            .unwrap();
        assert_eq!(out(&result), "0 1 1 0 -1\n");
    }
    let rings = place.rings();
    assert_eq!(rings.len(), 2);
    assert!(rings.iter().all(|ring| ring.ranges().len() == 2));
}

#[test]
fn every_thread_has_its_ring_and_ended_threads_give_theirs_back() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    assert!(
        place
            .traced(&program)
            .env("ROCTOP_RING_SLOTS", "131072")
            .args(["default", "threads"])
            .status()
            .unwrap()
            .success()
    );
    let rings = place.rings();
    assert!(rings.len() <= 2, "36 threads, 12 at a time, need 19 rings at most");
    assert!(rings.iter().all(|ring| ring.pid == rings[0].pid && ring.lost == 0));
    let mut by_thread = BTreeMap::new();
    for (tid, _) in rings.iter().flat_map(Ring::ranges) {
        *by_thread.entry(tid).or_insert(0) += 1;
    }
    assert_eq!(by_thread.len(), 36);
    assert!(by_thread.values().all(|count| *count == 1000));
    for (_, account) in rings.iter().flat_map(|ring| &ring.accounts) {
        assert_eq!(account.seen + account.lost, account.written);
    }
    let correlations: BTreeSet<u64> = rings
        .iter()
        .flat_map(Ring::ranges)
        .map(|(_, m)| m.correlation)
        .collect();
    assert_eq!(correlations.len(), 36_000);
}

#[test]
fn a_forked_child_and_an_exec_have_files_of_their_own() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    assert!(
        place
            .traced(&program)
            .args(["default", "mark", "fork", "mark", "exec"])
            .status()
            .unwrap()
            .success()
    );
    let rings = place.rings();
    assert_eq!(rings.len(), 3);
    assert!(rings.iter().all(|ring| ring.ordinal == 0));
    let child = rings
        .iter()
        .find(|ring| rings.iter().any(|other| ring.ppid == other.pid))
        .expect("a child");
    assert_eq!(child.marks(), ["in the child"]);
    assert_eq!(child.open.ranges.len(), 1);
    let mut others: Vec<usize> = rings
        .iter()
        .filter(|ring| ring.pid != child.pid)
        .map(|ring| ring.marks().len())
        .collect();
    others.sort_unstable();
    assert_eq!(others, [1, 2], "before exec and after it");
}

#[test]
fn a_signal_handler_inside_a_record_loses_only_counted_records() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let mut command = place.traced(&program);
    let result = command
        .env("ROCTOP_RING_SLOTS", "131072")
        .args(["default", "signals"])
        .output()
        .unwrap();
    let handled: u64 = out(&result).trim().parse().unwrap();
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.lost, 0);
    let (marks, ranges) = (ring.marks().len() as u64, ring.ranges().len() as u64);
    let written: u64 = ring.accounts.iter().map(|(_, account)| account.written).sum();
    assert_eq!(written, marks + ranges + 1);
    assert!(
        marks <= handled && handled - marks <= ring.reentrant,
        "{handled} {marks} {}",
        ring.reentrant
    );
    assert!(ranges <= 20_000 && 20_000 - ranges <= ring.reentrant);
    assert!(
        ring.ranges()
            .iter()
            .all(|(_, m)| ring.text(m) == "interrupted" && m.start <= m.end)
    );
}

#[test]
fn a_pause_by_the_program_leaves_the_ranges_around_it_whole() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    assert!(
        place
            .traced(&program)
            .args(["default", "pause", "mark"])
            .status()
            .unwrap()
            .success()
    );
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.marks(), ["a mark"]);
    let ranges: Vec<_> = ring.ranges().iter().map(|(_, m)| ring.text(m)).collect();
    assert_eq!(ranges, ["around"]);
    let switches = ring
        .records
        .iter()
        .filter(|(_, _, body)| matches!(body, Body::Switch(s) if s.by == 2));
    assert_eq!(switches.count(), 2);
}

#[test]
fn the_switches_of_roctracer_are_heeded_and_passed_on() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    place.compile("fake_roctracer", "libroctracer64.so.4", &["-shared", "-fPIC"]);
    let mut command = place.traced(&program);
    let output = command
        .args(["default", "mark", "tracer", "mark"])
        .current_dir(program.parent().unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), "11");
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.marks(), ["a mark", "a mark"]);
}

#[test]
fn the_control_file_says_what_is_written() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let mut words = vec![0u8; session::CONTROL_BYTES];
    words[session::control::WANTED * 8] = session::wanted::MARKER as u8;
    std::fs::write(place.session().join(session::CONTROL), &words).unwrap();
    assert!(
        place
            .traced(&program)
            .args(["default", "mark", "levels"])
            .status()
            .unwrap()
            .success()
    );
    words[session::control::RECORDING * 8] = 1;
    std::fs::write(place.session().join(session::CONTROL), &words).unwrap();
    assert!(
        place
            .traced(&program)
            .args(["default", "mark", "levels"])
            .status()
            .unwrap()
            .success()
    );
    let rings = place.rings();
    let mut found: Vec<_> = rings
        .iter()
        .map(|ring| (ring.marks().len(), ring.ranges().len()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [(0, 0), (1, 2)]);
}

#[test]
fn what_was_open_at_an_abort_is_there() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let result = place
        .traced(&program)
        .args(["default", "mark", "abort"])
        .output()
        .unwrap();
    assert!(
        result.status.code().is_none(),
        "ended by a signal, as without the collector"
    );
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.marks(), ["a mark"]);
    assert_eq!(ring.open.ranges.len(), 1);
    assert_eq!(ring.counter(counter::STATE), 1);
}

#[test]
fn an_end_at_once_goes_on_to_the_next_library_that_has_one() {
    let Some(place) = TestDir::new() else { return };
    let next = place.compile("leave", "libnext.so", &["-shared", "-fPIC", "-DLIBRARY"]);
    let program = place.compile("leave", "leave", &[]);
    for (how, code) in [("_exit", 8), ("_Exit", 9)] {
        let mut traced = place.traced(&program);
        let both = format!("{}:{}", library().display(), next.display());
        let output = traced.arg(how).env("LD_PRELOAD", both).output().unwrap();
        assert_eq!(out(&output), "next _exit\n", "{how}");
        assert_eq!(output.status.code(), Some(code), "{how}");
    }
    // Without such a library the C library's does the work.
    let output = place.traced(&program).arg("_Exit").output().unwrap();
    assert_eq!((out(&output).as_str(), output.status.code()), ("", Some(9)));
    assert_eq!(place.rings().len(), 3);
}
