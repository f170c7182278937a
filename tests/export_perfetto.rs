//! `results.pftrace`, read back by a decoder of its own: one slice a record, tracks that belong to the process, slices
//! that nest, arrows from calls to work.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "export/demo.rs"]
mod demo;
#[path = "export/table.rs"]
mod table;

use demo::export;
use std::collections::{BTreeMap, BTreeSet};
use table::Table;

/// A field of a message.
#[derive(Clone, Debug)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number of more than ten bytes")
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (word, rest) = bytes.split_first_chunk::<8>().unwrap();
                bytes = rest;
                Field::Number(u64::from_le_bytes(*word))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(inner.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn number(fields: &[(u64, Field)], wanted: u64) -> Option<u64> {
    fields.iter().find_map(|(field, value)| match value {
        Field::Number(number) if *field == wanted => Some(*number),
        _ => None,
    })
}

fn all(fields: &[(u64, Field)], wanted: u64) -> Vec<Vec<u8>> {
    let found = fields.iter().filter_map(|(field, value)| match value {
        Field::Bytes(bytes) if *field == wanted => Some(bytes.clone()),
        _ => None,
    });
    found.collect()
}

fn text(fields: &[(u64, Field)], wanted: u64) -> Option<String> {
    all(fields, wanted).pop().map(|bytes| String::from_utf8(bytes).unwrap())
}

#[derive(Debug, Default)]
struct Slice {
    category: String,
    name: String,
    begin: u64,
    end: u64,
    track: u64,
    flow: Option<u64>,
    arguments: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct Trace {
    process: u64,
    pid: u64,
    /// Name and parent by id.
    tracks: BTreeMap<u64, (String, Option<u64>)>,
    counters: BTreeMap<u64, Vec<u64>>,
    slices: Vec<Slice>,
}

impl Trace {
    fn read(bytes: &[u8]) -> Self {
        let mut trace = Self::default();
        let mut interned: BTreeMap<(u64, u64), String> = BTreeMap::new();
        let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for (at, packet) in all(&fields(bytes), 1).iter().enumerate() {
            let packet = fields(packet);
            let flags = number(&packet, 13).unwrap();
            assert_eq!(flags & 1 == 1, at == 0, "the first packet clears what was interned");
            for data in all(&packet, 12) {
                for (table, entry) in fields(&data) {
                    let Field::Bytes(entry) = entry else { panic!() };
                    let entry = fields(&entry);
                    interned.insert((table, number(&entry, 1).unwrap()), text(&entry, 2).unwrap());
                }
            }
            for track in all(&packet, 60) {
                trace.describe(&fields(&track));
            }
            for event in all(&packet, 11) {
                let event = fields(&event);
                let (time, track) = (number(&packet, 8).unwrap(), number(&event, 11).unwrap());
                assert!(
                    trace.tracks.contains_key(&track),
                    "a track is described before it is used"
                );
                assert!(last.insert(track, time).is_none_or(|before| before <= time));
                match number(&event, 9).unwrap() {
                    1 => {
                        let word = |table, field| interned[&(table, number(&event, field).unwrap())].clone();
                        let arguments = all(&event, 4).into_iter().filter_map(|argument| {
                            let argument = fields(&argument);
                            let key = interned[&(3, number(&argument, 1).unwrap())].clone();
                            Some((key, number(&argument, 3)?))
                        });
                        trace.slices.push(Slice {
                            category: word(1, 3),
                            name: word(2, 10),
                            begin: time,
                            end: 0,
                            track,
                            flow: number(&event, 47),
                            arguments: arguments.collect(),
                        });
                        open.entry(track).or_default().push(trace.slices.len() - 1);
                    }
                    2 => {
                        let slice = open.get_mut(&track).and_then(Vec::pop).unwrap();
                        trace.slices[slice].end = time;
                    }
                    4 => trace
                        .counters
                        .entry(track)
                        .or_default()
                        .push(number(&event, 30).unwrap()),
                    other => panic!("event of type {other}"),
                }
            }
        }
        assert!(open.values().all(Vec::is_empty), "every slice ends");
        trace
    }

    fn describe(&mut self, track: &[(u64, Field)]) {
        let (id, parent) = (number(track, 1).unwrap(), number(track, 5));
        if let Some(process) = all(track, 3).first() {
            assert!(self.tracks.is_empty(), "the process comes first");
            self.process = id;
            self.pid = number(&fields(process), 1).unwrap();
        } else {
            assert_eq!(parent, Some(self.process), "tracks belong to the process");
        }
        let thread = all(track, 4)
            .first()
            .map(|thread| format!("main {}", number(&fields(thread), 2).unwrap()));
        let name = text(track, 2).or(thread).unwrap_or_default();
        assert!(self.tracks.insert(id, (name, parent)).is_none(), "ids are unique");
    }
}

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
