//! `results.pftrace`, read back by a decoder of its own: one slice a record, tracks that belong to the process, slices
//! that nest, arrows from calls to work.

use crate::kit::demo::export;
use crate::kit::table::Table;
use crate::kit::trace::{Slice, Trace};
use std::collections::{BTreeMap, BTreeSet};

fn trace(place: &str, options: &[&str]) -> (Trace, BTreeMap<String, std::path::PathBuf>) {
    let files = export(place, &[&["--format", "pftrace,csv"], options].concat());
    (Trace::read(&std::fs::read(&files["results.pftrace"]).unwrap()), files)
}

#[test]
fn every_record_is_one_slice_of_its_category() {
    let (trace, files) = trace("pftrace", &[]);
    for (category, file, column) in [
        ("kernel_dispatch", "kernel_trace.csv", "Kernel_Name"),
        ("hip_api", "hip_api_trace.csv", "Function"),
        ("memory_copy", "memory_copy_trace.csv", "Direction"),
        ("marker_api", "marker_api_trace.csv", "Function"),
    ] {
        let table = Table::read(&files[file]);
        let begin = table
            .numbers("Start_Timestamp")
            .into_iter()
            .zip(table.numbers("End_Timestamp"));
        let ids = table.numbers("Correlation_Id").into_iter().zip(table.column(column));
        let mut expected: Vec<_> = begin
            .zip(ids)
            .map(|(span, (id, name))| (span, id, name.to_owned()))
            .collect();
        let slices = trace.slices.iter().filter(|slice| slice.category == category);
        let mut found: Vec<_> = slices
            .map(|slice| {
                let of = |key: &str| slice.arguments[key];
                ((of("begin_ns"), of("end_ns")), of("corr_id"), slice.name.clone())
            })
            .collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{category}");
    }
    let known = ["kernel_dispatch", "hip_api", "memory_copy", "marker_api"];
    assert!(
        trace
            .slices
            .iter()
            .all(|slice| known.contains(&slice.category.as_str()))
    );
    assert!(trace.instants.is_empty(), "nothing is missing");
}

#[test]
fn calls_are_joined_to_their_work() {
    let (trace, _) = trace("pftrace-flows", &[]);
    let mut flows: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for slice in &trace.slices {
        flows
            .entry(slice.flow.unwrap())
            .or_default()
            .insert(slice.arguments["corr_id"]);
    }
    assert!(flows.values().all(|ids| ids.len() == 1), "a flow for each id");
    let calls = trace.slices.iter().filter(|slice| slice.category == "hip_api");
    let calls: BTreeSet<u64> = calls.map(|slice| slice.flow.unwrap()).collect();
    let kernels = trace.slices.iter().filter(|slice| slice.category == "kernel_dispatch");
    assert!(kernels.clone().all(|slice| calls.contains(&slice.flow.unwrap())));
    assert!(
        kernels
            .clone()
            .all(|slice| slice.arguments["grid_size"] >= slice.arguments["workgroup_size"])
    );
}

#[test]
fn tracks_are_those_of_threads_streams_and_sizes() {
    let (streams, _) = trace("pftrace-streams", &[]);
    let names = |trace: &Trace, category: &str| {
        let slices = trace.slices.iter().filter(|slice| slice.category == category);
        slices
            .map(|slice| trace.tracks[&slice.track].0.clone())
            .collect::<BTreeSet<String>>()
    };
    assert!(
        names(&streams, "kernel_dispatch")
            .iter()
            .all(|name| name.starts_with("STREAM [\" "))
    );
    let threads = names(&streams, "hip_api");
    let main = format!("main {}", streams.pid);
    assert!(
        threads.iter().all(|name| name.starts_with("THREAD ") || *name == main),
        "{threads:?}"
    );
    for (track, values) in &streams.counters {
        let name = &streams.tracks[track].0;
        // Copies end; the weights of the model are held to the end.
        let is_held = name.starts_with("ALLOCATE BYTES on Agent [");
        assert!(is_held || name.starts_with("COPY BYTES to Agent ["), "{name}");
        assert!(values.iter().any(|value| *value > 0), "{name}");
        assert_eq!(values.last() != Some(&0), is_held, "{name}");
    }
    assert!(!streams.counters.is_empty());
    let overlong = streams.slices.iter().filter(|slice| slice.end < slice.begin).count();
    assert_eq!(overlong, 0);
    let within = |slice: &&Slice| slice.begin >= slice.arguments["begin_ns"] && slice.end <= slice.arguments["end_ns"];
    assert_eq!(streams.slices.iter().filter(within).count(), streams.slices.len());
}

#[test]
fn a_call_names_the_stream_of_its_work() {
    let (trace, _) = trace("pftrace-calls", &[]);
    let of = |category: &str| -> Vec<(u64, u64)> {
        let slices = trace.slices.iter().filter(|slice| slice.category == category);
        let numbers = slices.map(|slice| (slice.arguments["corr_id"], slice.arguments["stream_ID"]));
        numbers.filter(|(_, stream)| *stream != 0).collect()
    };
    let calls: BTreeMap<u64, u64> = of("hip_api").into_iter().collect();
    let kernels = of("kernel_dispatch");
    assert!(!kernels.is_empty() && kernels.iter().all(|(id, stream)| calls.get(id) == Some(stream)));
}

/// A trace in small files: each is complete by itself, and together they have the events of the whole.
#[test]
fn large_traces_are_divided_into_files() {
    let (whole, _) = trace("pftrace-whole", &[]);
    let files = export("pftrace-divided", &["--format", "pftrace", "--split", "64K"]);
    assert!(files.len() >= 3, "{files:?}");
    let mut seen: BTreeMap<(String, String, u64), BTreeSet<u64>> = BTreeMap::new();
    let (mut counters, mut sizes) = (0, Vec::new());
    for path in files.values() {
        let bytes = std::fs::read(path).unwrap();
        sizes.push(bytes.len());
        let part = Trace::read(&bytes);
        assert_eq!((part.process, part.pid), (whole.process, whole.pid));
        counters += part.counters.values().map(Vec::len).sum::<usize>();
        for slice in part.slices {
            let key = (slice.category, slice.name, slice.arguments["begin_ns"]);
            seen.entry(key).or_default().insert(slice.track);
        }
    }
    let descriptions = 40_000;
    assert!(sizes.iter().all(|size| *size < 64_000 + descriptions), "{sizes:?}");
    let expected = whole.slices.iter().map(|slice| {
        let begin = slice.arguments["begin_ns"];
        (slice.category.clone(), slice.name.clone(), begin)
    });
    assert_eq!(
        seen.into_keys().collect::<BTreeSet<_>>(),
        expected.collect::<BTreeSet<_>>()
    );
    assert_eq!(counters, whole.counters.values().map(Vec::len).sum::<usize>());
}
