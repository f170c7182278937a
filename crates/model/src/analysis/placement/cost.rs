//! What a wrong place costs: launch delays and rates of copies, of processes that have one beside those that have none.

use super::Place;
use crate::lane::LaneKey;
use crate::snapshot::Snapshot;
use roctop_ring::record::direction;
use roctop_trace::units;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Launches of a lane, and copies of a direction, that are measured at most: the latest.
const MAX_RECORDS: usize = 4096;
/// Bytes from which on a copy takes as long as its link needs.
const MIN_BYTES: u64 = 1 << 20;
/// Directions of copies between host and GPU: their indexes in a place.
pub(super) const TO_GPU: usize = 0;
pub(super) const FROM_GPU: usize = 1;
const DIRECTIONS: [(u16, &str); 2] = [
    (direction::H2D, "copies to the GPU"),
    (direction::D2H, "copies from the GPU"),
];

/// The copies of a process in a direction that have a MiB or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copies {
    /// Median size, bytes.
    pub bytes: u64,
    /// Median rate, bytes/s.
    pub rate: u64,
}

type SizesAndRates = (Vec<u64>, Vec<u64>);

/// What is measured of the processes of a snapshot, by process.
#[derive(Default)]
pub(super) struct Measured {
    /// Threads that launched kernels, of all processes.
    pub(super) launching: BTreeSet<u32>,
    delays: BTreeMap<u32, Vec<u64>>,
    copies: [BTreeMap<u32, SizesAndRates>; 2],
}

impl Measured {
    pub(super) fn of(snap: &Snapshot) -> Self {
        let mut all = Self::default();
        for lane in snap.lanes.iter() {
            match lane.key {
                LaneKey::Stream(..) | LaneKey::Queue(..) => {
                    for slice in lane.recent(MAX_RECORDS) {
                        all.launching.insert(slice.thread);
                        if slice.submit > 0 && slice.submit <= slice.span.begin {
                            let delays = all.delays.entry(slice.process).or_default();
                            delays.push(slice.span.begin - slice.submit);
                        }
                    }
                }
                LaneKey::Copies(way) => {
                    let Some(at) = DIRECTIONS.iter().position(|known| known.0 == way) else {
                        continue;
                    };
                    for slice in lane.recent(MAX_RECORDS).filter(|slice| slice.value >= MIN_BYTES) {
                        let Some(rate) = (u128::from(slice.value) * 1_000_000_000)
                            .checked_div(slice.span.duration().into())
                            .and_then(|rate| u64::try_from(rate).ok())
                        else {
                            continue;
                        };
                        let (sizes, rates) = all.copies[at].entry(slice.process).or_default();
                        sizes.push(slice.value);
                        rates.push(rate);
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// Median launch delay of a process, ns.
    pub(super) fn delay(&self, process: u32) -> Option<u64> {
        middle(self.delays.get(&process)?.clone())
    }

    /// Its copies.
    pub(super) fn copies(&self, process: u32) -> [Option<Copies>; 2] {
        [TO_GPU, FROM_GPU].map(|way| {
            let (sizes, rates) = self.copies[way].get(&process)?;
            Some(Copies {
                bytes: middle(sizes.clone())?,
                rate: middle(rates.clone())?,
            })
        })
    }
}

/// The middle one in order; of an even number the greater one.
fn middle(mut values: Vec<u64>) -> Option<u64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
}

/// Median rate of the places' copies of about this size.
fn usual_rate(places: &[Place], of: &[usize], way: usize, bytes: u64) -> Option<u64> {
    let copies = of.iter().filter_map(|at| places[*at].copies[way]);
    let is_alike = |copies: &Copies| copies.bytes / 2 <= bytes && bytes / 2 <= copies.bytes;
    middle(copies.filter(is_alike).map(|copies| copies.rate).collect())
}

/// What it costs to be one of these in place of one of the others, whose words are given: only what is measured of both.
pub(super) fn cost(places: &[Place], of: &[usize], others: &[usize], whose: &str) -> String {
    let delay = |of: &[usize]| middle(of.iter().filter_map(|at| places[*at].delay).collect());
    let mut costs = Vec::new();
    if let (Some(own), Some(usual)) = (delay(of), delay(others))
        && own > usual
    {
        let (own, usual) = (units::duration(own), units::duration(usual));
        costs.push(format!("launch delay p50 ≈ {own} against ≈ {usual}"));
    }
    for (way, (_, word)) in DIRECTIONS.iter().enumerate() {
        let sizes = of.iter().filter_map(|at| Some(places[*at].copies[way]?.bytes));
        let Some(bytes) = middle(sizes.collect()) else { continue };
        let rates = [of, others].map(|of| usual_rate(places, of, way, bytes));
        if let [Some(own), Some(usual)] = rates
            && own < usual
        {
            let [own, usual] = [own, usual].map(|rate| units::bandwidth(rate as f64));
            costs.push(format!("{word} p50 ≈ {own} against ≈ {usual}"));
        }
    }
    match &costs[..] {
        [] => String::new(),
        costs => format!(": {} of {whose}", costs.join(", ")),
    }
}
