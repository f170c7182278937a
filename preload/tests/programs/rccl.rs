//! RCCL's calls, by its exported functions and by the dispatch table that it hands over.

use crate::place::{TestDir, library, out};
use crate::raw_hsa::emulated_gpu;
use crate::ring::Ring;
use roctop_ring::arguments::Arguments;
use roctop_ring::record::{ApiCall, Body, Domain, communicator};
use std::path::Path;
use std::process::Command;

fn program(place: &TestDir) -> std::path::PathBuf {
    let folder = place.dir.to_string_lossy().into_owned();
    let library = |name: &str| ["-shared".to_owned(), "-fPIC".to_owned(), format!("-Wl,-soname,{name}")];
    let words = |words: &[String]| words.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    for (source, name) in [("fake_hip", "libamdhip64.so.5"), ("fake_rccl", "librccl.so.1")] {
        let arguments = words(&library(name));
        place.compile(source, name, &arguments.split('\n').collect::<Vec<_>>());
    }
    let (search, path) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    place.compile(
        "rccl",
        "rccl",
        &[
            &search,
            "-Wl,--no-as-needed",
            "-l:librccl.so.1",
            "-l:libamdhip64.so.5",
            &path,
            "-ldl",
        ],
    )
}

/// RCCL's calls with their arguments, and the number of calls of HIP inside of them.
fn calls(ring: &Ring) -> (Vec<(String, ApiCall, Arguments)>, usize) {
    let names = ring.operations();
    let mut found = Vec::new();
    for (_, domain, body) in &ring.records {
        if let Body::ExplainedCall(call, arguments) = body {
            assert_eq!(Domain(*domain), Domain::RCCL);
            let name = names[&(u32::from(*domain), u32::from(call.op))].clone();
            found.push((name, *call, *arguments));
        }
    }
    let is_inside = |call: &ApiCall| found.iter().any(|(_, outer, _)| outer.correlation == call.parent);
    let inner = ring.records.iter().filter(
        |(_, domain, body)| matches!(body, Body::ApiCall(call) if Domain(*domain) == Domain::HIP && is_inside(call)),
    );
    let count = inner.count();
    (found, count)
}

fn check(place: &TestDir, table: bool) {
    let program = program(place);
    let words: &[&str] = if table { &["table"] } else { &[] };
    let plain = Command::new(&program).args(words).output().unwrap();
    let traced = place.traced(&program).args(words).output().unwrap();
    let expected = "0 0 0 4 0 0 no error\n";
    assert_eq!(out(&plain).lines().last(), Some(expected.trim_end()));
    assert_eq!(
        out(&traced),
        if table {
            format!("0\n{expected}")
        } else {
            expected.to_owned()
        }
    );
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    let (calls, inner) = calls(ring);
    let names: Vec<_> = calls
        .iter()
        .map(|(name, call, _)| (name.as_str(), call.knows_status(), call.status))
        .collect();
    assert_eq!(
        names,
        [
            ("ncclGetUniqueId", true, 0),
            ("ncclCommInitRank", true, 0),
            ("ncclAllReduce", true, 0),
            ("ncclAllReduce", true, 4),
            ("ncclSend", true, 0),
            ("ncclGetErrorString", false, 0),
            ("ncclCommDestroy", true, 0),
        ]
    );
    // Count and type, and the stream behind the registers.
    let (_, call, arguments) = &calls[2];
    assert_eq!(
        (call.arg, arguments.registers[2], arguments.registers[3] as u32),
        (1 << 20, 1 << 20, 7)
    );
    assert_eq!(arguments.stack[0], 0x50);
    assert_eq!(calls[1].2.given, 0xc0, "the communicator that was given");
    assert_eq!(inner, 2, "HIP's calls inside are separate calls");
    communicates(ring);
}

/// The communicator is known by its unique id, its operations are numbered, and the one that failed is withdrawn.
fn communicates(ring: &Ring) {
    let communicators: Vec<_> = ring
        .facts
        .iter()
        .filter_map(|fact| match fact {
            Body::Communicator(found) => Some((found.state, found.number, found.rank, found.size, found.handle)),
            _ => None,
        })
        .collect();
    assert_eq!(
        communicators,
        [
            (communicator::CREATED, 1, 1, 2, 0xc0),
            (communicator::RELEASED, 1, u32::MAX, 0, 0xc0)
        ]
    );
    let operations: Vec<_> = ring
        .records
        .iter()
        .filter_map(|(_, _, body)| match body {
            Body::Communication(found) => Some((found.op, found.sequence, found.count, found.datatype, found.peer)),
            _ => None,
        })
        .collect();
    let withdrawn = communicator::WITHDRAWN;
    assert_eq!(
        operations,
        [
            (1, 1, 1 << 20, 7, -1),
            (1, 2, 0, 7, -1),
            (withdrawn, 0, 0, 0, -1),
            (9, 1, 9, 3, 1)
        ]
    );
}

#[test]
fn calls_of_rccl_are_recorded_with_count_and_type() {
    let Some(place) = TestDir::new() else { return };
    check(&place, false);
}

#[test]
fn calls_through_a_table_of_rccl_are_recorded_once() {
    let Some(place) = TestDir::new() else { return };
    check(&place, true);
}

#[test]
fn kernels_of_rccls_proxy_thread_are_recorded_without_a_call() {
    let Some(place) = TestDir::new() else { return };
    let (Some(gpu), true) = (emulated_gpu(), Path::new("/usr/include/hsa/hsa_ext_amd.h").exists()) else {
        eprintln!("skipped: needs HSA's headers and the emulated GPU");
        return;
    };
    let folder = place.dir.display().to_string();
    for (source, name) in [("hip_over_hsa", "libamdhip64.so.5"), ("rccl_kernels", "librccl.so.1")] {
        let soname = format!("-Wl,-soname,{name}");
        let words = [
            "-w",
            "-DLIBRARY",
            "-shared",
            "-fPIC",
            "-pthread",
            &soname,
            "-lhsa-runtime64",
        ];
        place.compile(source, name, &words);
    }
    let (search, path) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    let words = [search.as_str(), "-l:librccl.so.1", "-l:libamdhip64.so.5", &path];
    let program = place.compile("rccl_kernels", "rccl_kernels", &words);
    let mut command = place.traced(&program);
    let preload = format!("{} {}", gpu.display(), library().display());
    command.env("LD_PRELOAD", preload).env("HSA_TOOLS_LIB", library());
    assert_eq!(out(&command.output().unwrap()), "wrong 0\n");
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.lost, 0);
    let mut launches = Vec::new();
    let (mut by_hip, mut by_nobody) = (Vec::new(), 0);
    for (_, domain, body) in &ring.records {
        match body {
            Body::ApiCall(call) if Domain(*domain) == Domain::HIP => launches.push(call.correlation),
            Body::Dispatch(kernel) if kernel.correlation == 0 => {
                assert!(kernel.begin != 0 && kernel.begin < kernel.end, "{kernel:?}");
                by_nobody += 1;
            }
            Body::Dispatch(kernel) => by_hip.push(kernel.correlation),
            _ => {}
        }
    }
    assert_eq!(by_nobody, 6, "RCCL's own");
    launches.sort_unstable();
    by_hip.sort_unstable();
    assert_eq!(
        (by_hip.len(), by_hip),
        (6, launches),
        "the program's are those of its launches"
    );
    let (calls, _) = calls(ring);
    assert_eq!(calls.len(), 6);
}
