//! Records of HSA calls: each call of the program and of HIP once, inside the call that made it, and work of the GPU
//! with the HIP call that it belongs to.
//!
//! Needs what [`crate::raw_hsa`] needs.

use crate::place::{TestDir, library, out};
use crate::raw_hsa::emulated_gpu;
use crate::ring::Ring;
use roctop_ring::record::{ApiCall, Body, Domain};
use roctop_ring::session::wanted;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// A recorded call with its name and domain.
struct Made<'a> {
    name: String,
    domain: Domain,
    tid: u32,
    call: &'a ApiCall,
}

/// All calls by their correlation ids, each nested in its parent.
fn calls(ring: &Ring) -> HashMap<u64, Made<'_>> {
    assert_eq!(ring.lost, 0);
    let names = ring.operations();
    let mut calls = HashMap::new();
    for (tid, domain, body) in &ring.records {
        let (Body::ApiCall(call) | Body::ExplainedCall(call, _)) = body else {
            continue;
        };
        let name = names[&(u32::from(*domain), u32::from(call.op))].clone();
        let made = Made {
            name,
            domain: Domain(*domain),
            tid: *tid,
            call,
        };
        assert!(calls.insert(call.correlation, made).is_none());
    }
    for call in calls.values().filter(|call| call.call.parent != 0) {
        let parent = &calls[&call.call.parent];
        let is_inside = parent.call.start <= call.call.start && call.call.end <= parent.call.end;
        assert!(is_inside && parent.tid == call.tid, "{} in {}", call.name, parent.name);
    }
    calls
}

fn count(calls: &HashMap<u64, Made<'_>>, name: &str) -> usize {
    calls.values().filter(|call| call.name == name).count()
}

/// Correlation ids of dispatches and of copies.
fn work(ring: &Ring) -> [Vec<u64>; 2] {
    let mut work = [Vec::new(), Vec::new()];
    for (_, _, body) in &ring.records {
        match body {
            Body::Dispatch(dispatch) => work[0].push(dispatch.correlation),
            Body::Copy(copy) => work[1].push(copy.correlation),
            _ => {}
        }
    }
    work
}

fn place() -> Option<TestDir> {
    let place = TestDir::new()?;
    if emulated_gpu().is_some() && Path::new("/usr/include/hsa/hsa_ext_amd.h").exists() {
        return Some(place);
    }
    eprintln!("skipped: needs HSA's headers and the emulated GPU");
    None
}

fn run(place: &TestDir, program: &Path, arguments: &[&str]) -> String {
    let preload = format!("{} {}", emulated_gpu().unwrap().display(), library().display());
    let mut command = place.traced(program);
    let command = command
        .env("LD_PRELOAD", preload)
        .env("HSA_TOOLS_LIB", library())
        .env("ROCTOP_RING_SLOTS", "262144");
    out(&command.args(arguments).output().unwrap())
}

/// Runs raw_hsa.c and gives its ring.
fn raw(place: &TestDir, mode: &str) -> Ring {
    let program = place.compile("raw_hsa", "raw_hsa", &["-w", "-lhsa-runtime64"]);
    assert_eq!(run(place, &program, &[mode]), "wrong times 0\n");
    let mut rings = place.rings();
    assert_eq!(rings.len(), 1);
    rings.remove(0)
}

#[test]
fn without_the_wish_no_hsa_call_is_recorded() {
    let Some(place) = place() else { return };
    place.want(wanted::USUAL);
    let ring = raw(&place, "copies");
    assert!(calls(&ring).is_empty() && ring.operations().is_empty());
    let [dispatches, copies] = work(&ring);
    assert_eq!((dispatches.len(), copies.len()), (0, 500));
}

#[test]
fn the_programs_own_calls_are_each_recorded_once() {
    let Some(place) = place() else { return };
    place.want(u64::MAX);
    let ring = raw(&place, "counting");
    let calls = calls(&ring);
    for (name, times) in [
        ("hsa_init", 1),
        ("hsa_iterate_agents", 1),
        ("hsa_agent_get_info", 2),
        ("hsa_amd_agent_iterate_memory_pools", 2),
        ("hsa_amd_memory_pool_allocate", 2),
        ("hsa_amd_agents_allow_access", 1),
        ("hsa_queue_create", 1),
        ("hsa_amd_profiling_set_profiler_enabled", 1),
        ("hsa_amd_profiling_async_copy_enable", 1),
        ("hsa_signal_create", 1),
        ("hsa_signal_store_relaxed", 100),
        ("hsa_queue_add_write_index_relaxed", 800),
        ("hsa_signal_store_screlease", 800),
        ("hsa_signal_wait_scacquire", 100),
        ("hsa_signal_destroy", 1),
        ("hsa_queue_destroy", 1),
        ("hsa_amd_memory_pool_free", 2),
        ("hsa_shut_down", 1),
        // The collector's and the run-time's own.
        ("hsa_amd_queue_intercept_create", 0),
        ("hsa_amd_signal_create", 0),
        ("hsa_system_get_info", 0),
    ] {
        assert_eq!(count(&calls, name), times, "{name}");
    }
    for call in calls.values() {
        let gives_value = call.name.starts_with("hsa_queue_") && call.name.contains("_index_")
            || ["hsa_signal_store", "hsa_signal_wait"]
                .iter()
                .any(|start| call.name.starts_with(start));
        assert_eq!(!call.call.knows_status(), gives_value, "{}", call.name);
        assert_eq!(call.call.status, 0, "{}", call.name);
        let is_asked_inside = ["hsa_agent_get_info", "hsa_amd_memory_pool_get_info"].contains(&call.name.as_str());
        assert_eq!(call.call.parent != 0, is_asked_inside, "{}", call.name);
    }
    let [dispatches, _] = work(&ring);
    assert_eq!(dispatches.iter().collect::<HashSet<_>>().len(), 800);
    for id in dispatches {
        assert_eq!(calls[&id].name, "hsa_queue_add_write_index_relaxed");
    }
}

#[test]
fn a_run_time_that_is_started_again_is_recorded_again() {
    let Some(place) = place() else { return };
    place.want(u64::MAX);
    let ring = raw(&place, "again");
    let calls = calls(&ring);
    assert_eq!((count(&calls, "hsa_init"), count(&calls, "hsa_shut_down")), (2, 2));
    assert_eq!(count(&calls, "hsa_queue_add_write_index_relaxed"), 400);
    assert_eq!(count(&calls, "hsa_amd_memory_async_copy"), 200);
    let [dispatches, copies] = work(&ring);
    assert_eq!((dispatches.len(), copies.len()), (400, 200));
    for id in copies {
        assert_eq!(calls[&id].name, "hsa_amd_memory_async_copy");
    }
}

#[test]
fn work_inside_a_hip_call_belongs_to_that_call() {
    let Some(place) = place() else { return };
    place.want(u64::MAX);
    let library = [
        "-shared",
        "-fPIC",
        "-w",
        "-DLIBRARY",
        "-Wl,-soname,libamdhip64.so.5",
        "-lhsa-runtime64",
    ];
    place.compile("hip_over_hsa", "libamdhip64.so.5", &library);
    let folder = place.dir.to_string_lossy().into_owned();
    let link = [
        &format!("-L{folder}") as &str,
        "-l:libamdhip64.so.5",
        &format!("-Wl,-rpath,{folder}"),
    ];
    let program = place.compile("hip_over_hsa", "program", &link);
    assert_eq!(run(&place, &program, &[]), "wrong 0\n");
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    let calls = calls(ring);
    assert_eq!((count(&calls, "hipMemcpy"), count(&calls, "hipLaunchKernel")), (3, 5));
    assert_eq!(count(&calls, "hsa_amd_memory_async_copy"), 3);
    assert_eq!(count(&calls, "hsa_queue_add_write_index_relaxed"), 5);
    for call in calls.values().filter(|call| call.domain != Domain::HIP) {
        let parent = &calls[&call.call.parent];
        let is_asked_inside = ["hsa_agent_get_info", "hsa_amd_memory_pool_get_info"].contains(&call.name.as_str());
        assert_eq!(parent.domain == Domain::HIP, !is_asked_inside, "{}", call.name);
    }
    let [dispatches, copies] = work(ring);
    assert_eq!((dispatches.len(), copies.len()), (5, 3));
    assert!(dispatches.iter().all(|id| calls[id].name == "hipLaunchKernel"));
    assert!(copies.iter().all(|id| calls[id].name == "hipMemcpy"));
}
