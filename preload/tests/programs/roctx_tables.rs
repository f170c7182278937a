//! ROC-TX through the dispatch tables that its library hands over.

use crate::place::{TestDir, out};
use roctop_ring::record::{Body, Domain, marker_call, status};
use std::path::PathBuf;
use std::process::Command;

/// The stand-in for the library, whose ids of ranges begin at `first`, and what a user of it is linked with.
fn library(place: &TestDir, name: &str, first: u32) -> [String; 3] {
    let folder = place.dir.display();
    let soname = format!("-Wl,-soname,{name}");
    let first = format!("-DFIRST_ID={first}");
    place.compile(
        "fake_roctx",
        name,
        &["-shared", "-fPIC", "-pthread", &soname, &first, "-ldl"],
    );
    [
        format!("-L{folder}"),
        format!("-l:{name}"),
        format!("-Wl,-rpath,{folder}"),
    ]
}

fn user(place: &TestDir, result: &str, kind: &[&str], libraries: &[String]) -> PathBuf {
    let libraries = libraries.iter().map(String::as_str);
    let words: Vec<&str> = kind
        .iter()
        .copied()
        .chain(libraries)
        .chain(["-pthread", "-ldl"])
        .collect();
    place.compile("roctx_user", result, &words)
}

const PLUGIN: [&str; 3] = ["-DUSER", "-shared", "-fPIC"];
/// Levels, ids, a thread's id, and how many calls reached the library: 400 marks, 5 of levels, 4 of ranges, 6 others.
const GIVEN: &str = "0 1 1 0 -1 71 72 1 415\n";

/// What the program gave without the collector it gave with it, and every call is there once.
fn check(place: &TestDir, program: &PathBuf, words: &[&str]) {
    let plain = Command::new(program).args(words).output().unwrap();
    assert_eq!(out(&plain), GIVEN);
    let traced = place.traced(program).args(words).output().unwrap();
    assert_eq!(out(&traced), GIVEN);
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.marks(), ["at once"; 400]);
    let ranges: Vec<_> = ring
        .ranges()
        .into_iter()
        .map(|(_, range)| (ring.text(&range), range.range_id))
        .collect();
    assert_eq!(
        ranges,
        [
            ("inner".into(), 0),
            ("outer".into(), 0),
            ("second".into(), 72),
            ("first".into(), 71)
        ]
    );
    let calls: Vec<u16> = ring
        .records
        .iter()
        .filter_map(|(_, domain, body)| match body {
            Body::ApiCall(call) if Domain(*domain) == Domain::MARKER => Some(call.op),
            _ => None,
        })
        .collect();
    let switches = [marker_call::PAUSE, marker_call::RESUME, marker_call::THREAD_ID];
    let expected = [&switches[..], &[marker_call::NAME_THREAD, marker_call::NAME_STREAM]].concat();
    assert_eq!(calls, expected);
    let switches = ring
        .records
        .iter()
        .filter(|(_, _, body)| matches!(body, Body::Switch(_)));
    assert_eq!(switches.count(), 2);
    let said = |code: u32, text: &str| ring.said(code).iter().filter(|said| **said == text).count();
    assert_eq!(said(status::THREAD_NAME, "the first"), 1);
    let tables = said(status::BACKEND, "roctx 4.1.0: dispatch tables of 12 functions");
    assert_eq!(tables, 1, "{:?}", ring.said(status::BACKEND));
}

#[test]
fn calls_by_function_and_table_are_recorded_once() {
    let Some(place) = TestDir::new() else { return };
    let link = library(&place, "librocprofiler-sdk-roctx.so.1", 71);
    let program = user(&place, "linked", &["-DUSER", "-DMAIN"], &link);
    check(&place, &program, &[]);
}

#[test]
fn calls_of_a_plugin_are_recorded_once_in_every_binding() {
    for how in [&[][..], &["deep"]] {
        let Some(place) = TestDir::new() else { return };
        let link = library(&place, "librocprofiler-sdk-roctx.so.1", 71);
        let plugin = user(&place, "plugin.so", &PLUGIN, &link);
        let program = user(&place, "opens", &["-DMAIN"], &[]);
        let words: Vec<&str> = [plugin.to_str().unwrap()]
            .into_iter()
            .chain(how.iter().copied())
            .collect();
        check(&place, &program, &words);
    }
}

#[test]
fn calls_of_functions_found_by_dlsym_are_recorded_once() {
    let Some(place) = TestDir::new() else { return };
    let name = "librocprofiler-sdk-roctx.so.1";
    library(&place, name, 71);
    let named = format!("-DLIBRARY=\"{}\"", place.dir.join(name).display());
    let program = user(&place, "looks", &["-DUSER", "-DMAIN", &named], &[]);
    check(&place, &program, &[]);
}

#[test]
fn another_roctx_library_before_the_tables_keeps_its_ids() {
    let Some(place) = TestDir::new() else { return };
    // Linked with the one; the plugin has the other.
    let front = library(&place, "libroctx64.so.4", 5);
    let link = library(&place, "librocprofiler-sdk-roctx.so.1", 71);
    let plugin = user(&place, "plugin.so", &PLUGIN, &link);
    let program = user(&place, "opens", &["-DMAIN", "-Wl,--no-as-needed"], &front);
    check(&place, &program, &[plugin.to_str().unwrap(), "deep"]);
}
