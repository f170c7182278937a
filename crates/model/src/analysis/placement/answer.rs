//! The answer about placement: a row for each process, and what its node has.

use super::{FROM_GPU, MAX_NAMED, Place, TO_GPU, Verdict, list, names, verdicts};
use crate::ask::{Cell, Column, Row, Unit};
use roctop_trace::binding::{Device, MemoryMap};
use roctop_trace::units;
use std::collections::{BTreeMap, BTreeSet};

/// A column, and what a place has in it.
struct Fact(&'static str, Unit, u8, fn(&Place) -> Cell);

const FACTS: [Fact; 21] = [
    Fact("Rank", Unit::Number, 0, |place| number(place.rank)),
    Fact("Node", Unit::Text, 2, |place| Cell::Text(place.host.clone())),
    Fact("Process_Id", Unit::Number, 3, |place| number(Some(place.pid))),
    Fact("CPUs", Unit::Text, 0, |place| text(place.cpus().to_string())),
    Fact("CPUs_Used", Unit::Text, 5, |place| text(place.used().to_string())),
    Fact("CPUs_Available", Unit::Text, 7, |place| {
        text(place.available.to_string())
    }),
    Fact("Threads_NUMA", Unit::Text, 1, |place| {
        place.numas().map_or(Cell::None, |numas| text(list(&numas)))
    }),
    Fact("GPUs", Unit::Text, 0, |place| {
        of_gpus(place, |gpu| Some(gpu.number.to_string()))
    }),
    Fact("GPUs_NUMA", Unit::Text, 1, |place| {
        of_gpus(place, |gpu| Some(gpu.numa?.to_string()))
    }),
    Fact("GPU_Address", Unit::Text, 5, |place| {
        of_gpus(place, |gpu| Some(gpu.name.clone()))
    }),
    Fact("GPU_Root", Unit::Text, 8, |place| {
        of_gpus(place, |gpu| gpu.root.clone())
    }),
    Fact("GPU_Partition", Unit::Text, 6, |place| {
        of_gpus(place, |gpu| gpu.partition.clone())
    }),
    Fact("GPU_Links", Unit::Text, 8, |place| {
        of_gpus(place, |gpu| Some(list(&gpu.links)))
    }),
    Fact("Network_Card", Unit::Text, 4, |place| {
        of_gpus(place, |gpu| Some(place.node.nearest_card(gpu)?.name.clone()))
    }),
    Fact("Memory_NUMA", Unit::Text, 7, |place| text(place.memory.to_string())),
    Fact("Cores_Limit", Unit::Number, 7, |place| {
        place.quota.map_or(Cell::None, Cell::Number)
    }),
    Fact("Container", Unit::Text, 8, |place| {
        text(if place.is_contained {
            "yes".into()
        } else {
            String::new()
        })
    }),
    Fact("Visible_Devices", Unit::Text, 6, |place| {
        let visible = place.visible.iter();
        joined(visible.map(|(name, value)| format!("{name}={value}")))
    }),
    Fact("Launch_Delay_p50_ns", Unit::Nanos, 4, |place| {
        place.delay.map_or(Cell::None, |delay| Cell::Number(delay as f64))
    }),
    Fact("To_GPU_p50_Bps", Unit::BytesPerSecond, 5, |place| rate(place, TO_GPU)),
    Fact("From_GPU_p50_Bps", Unit::BytesPerSecond, 5, |place| {
        rate(place, FROM_GPU)
    }),
];

/// Where memory maps were read.
const MAPS: [Fact; 3] = [
    Fact("Memory_Policy", Unit::Text, 3, |place| match &place.memory_map {
        Some(MemoryMap::Read { policies, .. }) => joined(policies.iter().cloned()),
        _ => Cell::None,
    }),
    Fact("Memory_By_NUMA", Unit::Text, 2, |place| match &place.memory_map {
        Some(MemoryMap::Read { all, .. }) => text(by_numa(all)),
        _ => Cell::None,
    }),
    Fact("Buffers_By_NUMA", Unit::Text, 2, |place| match &place.memory_map {
        Some(MemoryMap::Read { buffers, .. }) => text(by_numa(buffers)),
        _ => Cell::None,
    }),
];

fn text(text: String) -> Cell {
    if text.is_empty() { Cell::None } else { Cell::Text(text) }
}

fn number(number: Option<u32>) -> Cell {
    number.map_or(Cell::None, |number| Cell::Number(number.into()))
}

fn rate(place: &Place, way: usize) -> Cell {
    place.copies[way].map_or(Cell::None, |copies| Cell::Number(copies.rate as f64))
}

/// Each part once.
fn joined(parts: impl Iterator<Item = String>) -> Cell {
    let mut all: Vec<String> = Vec::new();
    for part in parts {
        if !all.contains(&part) {
            all.push(part);
        }
    }
    text(all.join(" "))
}

fn of_gpus(place: &Place, fact: impl Fn(&Device) -> Option<String>) -> Cell {
    joined(place.devices().filter_map(fact))
}

/// Bytes by NUMA node: `0: 3.10 GiB, 1: 12.0 MiB`.
fn by_numa(sums: &[(u32, u64)]) -> String {
    let parts: Vec<String> = sums
        .iter()
        .map(|(numa, bytes)| format!("{numa}: {}", units::bytes(*bytes)))
        .collect();
    parts.join(", ")
}

/// Columns and rows about places, a row each, and notes: a verdict each, and the settings of each node.
pub fn answer(places: &[Place]) -> (Vec<Column>, Vec<Row>, Vec<String>) {
    let verdicts = verdicts(places);
    let has_maps = places.iter().any(|place| place.memory_map.is_some());
    let facts = || FACTS.iter().chain(MAPS.iter().filter(|_| has_maps));
    let column = |name: &str, unit, rank, is_wide| Column {
        name: name.into(),
        unit,
        rank,
        is_wide,
    };
    let mut columns: Vec<Column> = facts().map(|fact| column(fact.0, fact.1, fact.2, false)).collect();
    columns.push(column("Verdict", Unit::Text, 1, true));
    let row = |(at, place): (usize, &Place)| {
        let about = verdicts.iter().filter(|verdict| verdict.of.contains(&at));
        let words: Vec<&str> = about.map(|verdict| verdict.kind.word()).collect();
        let mut cells: Vec<Cell> = facts().map(|fact| fact.3(place)).collect();
        cells.push(text(words.join(", ")));
        Row { id: None, cells }
    };
    let rows = places.iter().enumerate().map(row).collect();
    (columns, rows, notes(places, &verdicts))
}

fn notes(places: &[Place], verdicts: &[Verdict]) -> Vec<String> {
    let of_verdict = |verdict: &Verdict| {
        let remedy = verdict.remedy.as_ref();
        let remedy = remedy.map_or(String::new(), |line| format!("; try: {line}"));
        format!("{}{remedy}", verdict.text)
    };
    let mut notes: Vec<String> = verdicts.iter().map(of_verdict).collect();
    let mut known: BTreeSet<(&str, u32)> = BTreeSet::new();
    for place in places {
        if known.insert((&place.host, place.machine)) {
            notes.push(facts(place));
            notes.extend(shared(places, place));
        }
    }
    notes.extend(places.iter().filter_map(of_reading));
    notes
}

/// What a node has, in a line.
fn facts(place: &Place) -> String {
    let node = &place.node;
    let count = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let mut parts = vec![count(node.online.count() as usize, "CPU")];
    if !node.cores.is_empty() {
        parts.push(count(node.cores.len(), "core"));
    }
    if !node.numa.is_empty() {
        parts.push(count(node.numa.len(), "NUMA node"));
    }
    parts.push(count(node.gpus.len(), "GPU"));
    parts.extend(node.settings.iter().map(|(name, value)| format!("{name}={value}")));
    format!("{}: {}", place.host, parts.join(", "))
}

/// The GPUs of a place's node on which several processes ran kernels, in a line.
fn shared(places: &[Place], place: &Place) -> Option<String> {
    let mut by_gpu: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let is_here = |other: &&Place| (&other.host, other.machine) == (&place.host, place.machine);
    for (at, other) in places.iter().enumerate().filter(|(_, other)| is_here(other)) {
        for gpu in other.devices() {
            by_gpu.entry(gpu.number).or_default().push(at);
        }
    }
    by_gpu.retain(|_, of| of.len() > 1);
    let parts = by_gpu.iter().take(MAX_NAMED);
    let parts: Vec<String> = parts
        .map(|(gpu, of)| format!("{} on GPU {gpu}", names(places, of)))
        .collect();
    let more = if by_gpu.len() > MAX_NAMED { ", …" } else { "" };
    (!parts.is_empty()).then(|| format!("{}: kernels of {}{more}", place.host, parts.join(", ")))
}

/// How long the reading of a process's memory map took, or why it was not read.
fn of_reading(place: &Place) -> Option<String> {
    let name = place.name();
    Some(match place.memory_map.as_ref()? {
        MemoryMap::Read { took, .. } => format!("numa_maps of {name} was read in {}", units::duration(*took)),
        MemoryMap::TooLarge(bytes) => format!(
            "numa_maps of {name} was not read, which has {} resident and would stop meanwhile: ask 'placement buffers' reads it",
            units::bytes(*bytes)
        ),
        MemoryMap::Absent => format!("numa_maps of {name} cannot be read"),
    })
}
