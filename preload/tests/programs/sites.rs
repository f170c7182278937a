//! Sites of calls: one per call path, none where none is wanted, and a stack file for each process and image.

use crate::place::TestDir;
use crate::ring::Ring;
use roctop_ring::record::{ApiCall, Body};
use roctop_ring::session::wanted;
use roctop_ring::sites::{Counter, Entry, Reader, SITES};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Runs the program with these kinds of records.
fn run(place: &TestDir, wanted: u64, arguments: &[&str]) {
    let linked = place.fake_hip();
    let program = place.compile("sites", "sites", &linked.each_ref().map(String::as_str));
    place.want(wanted);
    let output = place.traced(&program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn stack_files(place: &TestDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.session()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == SITES))
        .collect();
    found.sort();
    found
}

/// The calls of a process with the name of each.
fn calls(ring: &Ring) -> Vec<(String, ApiCall)> {
    let name = |call: &ApiCall| {
        let found = ring.facts.iter().find_map(|fact| match fact {
            Body::OperationName(name) if name.domain == 1 && name.op == u32::from(call.op) => Some(name.name),
            _ => None,
        });
        found.and_then(|id| ring.strings.get(&id)).cloned().unwrap_or_default()
    };
    let records = ring.records.iter();
    records
        .filter_map(|(_, _, body)| match body {
            Body::ApiCall(call) => Some((name(call), *call)),
            _ => None,
        })
        .collect()
}

#[test]
fn each_call_path_has_one_site_in_each_process() {
    let Some(place) = TestDir::new() else { return };
    run(&place, wanted::USUAL | wanted::SITES, &[]);
    let rings = place.rings();
    assert_eq!(rings.len(), 3, "the program, its child, and what it became");
    let files = stack_files(&place);
    assert_eq!(files.len(), 3);
    for path in &files {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(path.with_extension("ring").exists(), "beside its ring");
    }
    for ring in &rings {
        let calls = calls(ring);
        assert!(calls.iter().all(|(_, call)| call.knows_status() && call.status == 0));
        let sites: Vec<u16> = calls
            .iter()
            .filter(|(name, _)| name == "hipMalloc")
            .map(|(_, call)| call.site())
            .collect();
        let others = calls.iter().filter(|(name, _)| name != "hipMalloc");
        assert!(others.clone().all(|(_, call)| call.site() == 0));
        // The program calls `three` from two lines, as its child does.
        let times = sites.len() / 102;
        assert!(times == 1 || times == 2, "{} calls", sites.len());
        assert!(!sites.contains(&0));
        let distinct: BTreeSet<u16> = sites.iter().copied().collect();
        assert_eq!(distinct.len(), 3 * times, "{distinct:?}");
        for round in sites.chunks(102) {
            let [one, two] = [round[100], round[101]];
            assert!(round[..100].iter().all(|site| *site == round[0]));
            assert!(round[0] != one && round[0] != two && one != two);
        }
    }
}

#[test]
fn a_new_site_leaves_its_stack_and_the_mappings() {
    let Some(place) = TestDir::new() else { return };
    run(&place, wanted::USUAL | wanted::SITES, &[]);
    for path in stack_files(&place) {
        let mut reader = Reader::open(&path).unwrap();
        let (mut mappings, mut sites) = (Vec::new(), BTreeSet::new());
        for entry in reader.by_ref() {
            match entry {
                Entry::Mapping(mapping) => mappings.push(mapping),
                Entry::Stack(stack) => {
                    assert!(!stack.call.is_check && stack.bytes.len() > 64);
                    assert!(stack.call.sp.is_multiple_of(8) && stack.call.tid != 0 && stack.call.time != 0);
                    let has_code = |one: &&roctop_ring::sites::Mapping| {
                        (one.start..one.end).contains(&stack.call.ip) && one.path.ends_with(b"/sites")
                    };
                    assert!(mappings.iter().any(|one| has_code(&one)), "before the stack");
                    assert!(sites.insert(stack.call.site), "once");
                }
                other => panic!("no program in Python: {other:?}"),
            }
        }
        assert_eq!(reader.lost().bytes, 0);
        assert_eq!(reader.counters().get(Counter::Sites), sites.len() as u64);
        assert!(mappings.iter().any(|one| one.path == b"[vdso]"));
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let pid = name.split(['x', '-']).next().unwrap();
        assert_eq!(reader.process().0.to_string(), pid);
    }
}

#[test]
fn remains_of_earlier_calls_give_a_bounded_number_of_sites() {
    let Some(place) = TestDir::new() else { return };
    run(&place, wanted::USUAL | wanted::SITES, &["remains"]);
    let [path] = &stack_files(&place)[..] else {
        panic!("one file")
    };
    let counters = Reader::open(path).unwrap().counters();
    let (sites, coarse) = (counters.get(Counter::Sites), counters.get(Counter::Coarse));
    println!("{sites} sites of 12000 calls with one path, {coarse} of them by fewer words");
    assert!(coarse > 0 && sites <= 2100, "{sites} sites, {coarse} coarse");
    let rings = place.rings();
    let calls = calls(&rings[0]);
    let last = calls.iter().rev().take(1000).map(|(_, call)| call.site());
    let last: BTreeSet<u16> = last.collect();
    assert_eq!(last.len(), 1, "in the end it is one site");
}

#[test]
fn without_the_request_there_are_no_sites() {
    let Some(place) = TestDir::new() else { return };
    run(&place, wanted::USUAL, &[]);
    assert_eq!(stack_files(&place), Vec::<PathBuf>::new());
    for ring in place.rings() {
        let calls = calls(&ring);
        assert!(!calls.is_empty() && calls.iter().all(|(_, call)| call.has_status == 1));
    }
}
