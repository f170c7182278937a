//! HIP calls through the gate, and what the library exports.

use crate::place::{TestDir, library, out};
use roctop_ring::record::Body;
use roctop_ring::session;
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn calls_of_every_shape_pass_whole_and_are_recorded_once() {
    let Some(place) = TestDir::new() else { return };
    let link = place.fake_hip();
    let link: Vec<&str> = link.iter().map(String::as_str).collect();
    let program = place.compile("calls", "calls", &link);
    let plain = Command::new(&program).output().unwrap();
    let traced = place.traced(&program).output().unwrap();
    assert_eq!(out(&plain), out(&traced));
    assert_eq!(out(&traced).lines().next(), Some("0 7 errno 77"));
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    let calls = ring.calls();
    let calls: Vec<_> = calls.iter().map(|(name, status)| (name.as_str(), *status)).collect();
    assert_eq!(
        calls,
        [
            ("hipGetDevice", Some(0)),
            ("hipMemcpy", Some(0)),
            ("hipMemset3D", Some(0)),
            ("hipTexRefSetMipmapLevelClamp", Some(0)),
            ("hipIpcOpenMemHandle", Some(0)),
            ("hipLaunchKernel", Some(0)),
            ("hipExtModuleLaunchKernel", Some(0)),
            ("hipCreateChannelDesc", None),
            ("hipGetErrorString", None),
            ("hipMalloc", Some(2)),
            ("hipStreamCreate", Some(0)),
            ("hipStreamDestroy", Some(0)),
        ]
    );
    let streams: Vec<_> = ring
        .facts
        .iter()
        .filter_map(|f| {
            if let Body::Stream(s) = f {
                Some((s.handle, s.state))
            } else {
                None
            }
        })
        .collect();
    assert!(streams.contains(&(0x1230, 1)) && streams.contains(&(0x1230, 2)));
}

#[test]
fn error_texts_of_an_unknown_function_are_no_program_calls() {
    let Some(place) = TestDir::new() else { return };
    let link = place.fake_hip();
    let link: Vec<&str> = link.iter().map(String::as_str).collect();
    let program = place.compile("newer", "newer", &link);
    let plain = Command::new(&program).output().unwrap();
    let traced = place.traced(&program).output().unwrap();
    assert_eq!(out(&traced), "2\n2\n2\nout of memory\n");
    assert_eq!(out(&plain), out(&traced));
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.calls(), [("hipGetErrorString".to_owned(), None)]);
}

#[test]
fn calls_are_recorded_while_viewer_and_program_want_them() {
    let Some(place) = TestDir::new() else { return };
    place.want(session::wanted::USUAL);
    let link = place.fake_hip();
    let link: Vec<&str> = link.iter().map(String::as_str).collect();
    let program = place.compile("switch", "switch", &link);
    let result = place.traced(&program).output().unwrap();
    assert!(result.status.success(), "{}", result.status);
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    let calls = ring.calls();
    let count = |name: &str| calls.iter().filter(|(known, _)| known == name).count();
    // The one that switches on is not recorded: it is off until then.
    let counts = ["hipGetDevice", "hipProfilerStop", "hipProfilerStart"].map(count);
    assert_eq!(counts, [5 + 11 + 17, 1, 0]);
}

#[test]
fn without_a_run_time_there_is_no_device() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("absent", "absent", &["-ldl"]);
    let plain = Command::new(&program).output().unwrap();
    let traced = place.traced(&program).output().unwrap();
    assert_eq!(out(&plain), out(&traced));
}

#[test]
fn exactly_the_intended_symbols_are_exported() {
    let Ok(listing) = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library())
        .output()
    else {
        eprintln!("skipped: needs nm");
        return;
    };
    let listing = out(&listing);
    let found: BTreeSet<&str> = listing
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    let mut wanted: BTreeSet<&str> = hip_sys::function::FUNCTIONS
        .iter()
        .map(|function| function.symbol.trim_end_matches('\0'))
        .collect();
    wanted.extend(include_str!("../exports.txt").lines());
    let differing: Vec<_> = wanted.symmetric_difference(&found).collect();
    assert!(differing.is_empty(), "{differing:?}");
}
