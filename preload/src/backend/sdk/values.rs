//! Records of a counted dispatch: sums over a counter's instances, and the instances if requested.

use super::abi::{SUCCESS, Sdk};
use super::count_unknown;
use super::counters::{Chosen, OnAgent};
use roctop_ring::record::{CounterInstances, CounterValue, counter_source};

/// Maximum number of inspected records per dispatch.
const MAX_RECORDS: usize = 1 << 20;

/// A counted dispatch.
pub(super) struct Counted<'a> {
    pub(super) sdk: &'a Sdk,
    pub(super) agent: &'a OnAgent,
    pub(super) dispatch: u64,
    /// Pass or group that was counted.
    pub(super) pass: u16,
    pub(super) correlation: u64,
}

impl Counted<'_> {
    /// Records the values.
    ///
    /// # Safety
    /// `records` has `count` records.
    pub(super) unsafe fn record(&self, records: *const u8, count: usize) {
        if records.is_null() || count == 0 {
            return;
        }
        // SAFETY: as the caller says.
        let Some(stride) = (unsafe { stride(records, count, self.dispatch) }) else {
            return count_unknown("counter records", 0);
        };
        let mut sums: Vec<(&Chosen, f64)> = Vec::new();
        let mut parts: Vec<(u32, u16, f64)> = Vec::new();
        for at in 0..count.min(MAX_RECORDS) {
            // SAFETY: inside the records.
            let word = |offset: usize| unsafe { records.add(at * stride + offset).cast::<u64>().read_unaligned() };
            let (id, value) = (word(0), f64::from_bits(word(8)));
            let handle = counter_of(self.sdk, id);
            let chosen = self.agent.chosen.iter();
            let chosen = chosen.filter(|one| one.handle == handle && one.pass == self.pass);
            for chosen in chosen.filter(|one| is_instance(self.sdk, id, one.instance)) {
                match sums.iter_mut().find(|one| one.0.number == chosen.number) {
                    Some(sum) => sum.1 += value,
                    None => sums.push((chosen, value)),
                }
                let part = instance_of(self.sdk, id, &chosen.dimensions);
                parts.extend(part.map(|part| (chosen.number, part, value)));
            }
        }
        for (chosen, value) in sums {
            self.sum(chosen, value);
        }
        parts.sort_by_key(|one| (one.0, one.1));
        self.instances(&parts);
    }

    fn sum(&self, chosen: &Chosen, value: f64) {
        crate::collector::counter_value(&CounterValue {
            dispatch_id: self.dispatch,
            value: value.to_bits(),
            time: 0,
            counter: chosen.number,
            agent: self.agent.index,
            source: counter_source::DISPATCH,
            pass: chosen.pass,
            reserved: 0,
            correlation: self.correlation,
        });
    }

    /// (counter, instance, value), sorted: emits a record per run of instances.
    fn instances(&self, parts: &[(u32, u16, f64)]) {
        let follows = |a: &(u32, u16, f64), b: &(u32, u16, f64)| a.0 == b.0 && a.1.checked_add(1) == Some(b.1);
        for part in parts.chunk_by(follows).flat_map(|run| run.chunks(4)) {
            let Some((counter, first, _)) = part.first().copied() else {
                continue;
            };
            let value = |at: usize| part.get(at).map_or(0, |one| one.2.to_bits());
            crate::collector::counter_instances(&CounterInstances {
                dispatch_id: self.dispatch,
                counter,
                first,
                count: part.len() as u16,
                value: value(0),
                second: value(1),
                third: value(2),
                fourth: value(3),
            });
        }
    }
}

/// Distance between records: 32 bytes in the oldest releases, 40 since they contain the agent. It is not documented in
/// the data, but each record has its dispatch at byte 16. The alternative there is a value, which has such bits only if
/// it is close to 0.
///
/// # Safety
/// `records` has `count` records.
unsafe fn stride(records: *const u8, count: usize, dispatch: u64) -> Option<usize> {
    // SAFETY: the shortest record has 32 bytes.
    let at = |offset: usize| unsafe { records.add(offset).cast::<u64>().read_unaligned() };
    if at(16) != dispatch {
        return None;
    }
    match count {
        1 => Some(32),
        _ if at(32 + 16) == dispatch => Some(32),
        _ if at(40 + 16) == dispatch => Some(40),
        _ => None,
    }
}

/// Counter of a record.
pub(super) fn counter_of(sdk: &Sdk, id: u64) -> u64 {
    let mut handle = 0u64;
    // SAFETY: room for the answer.
    let answer = sdk.counter_of_record.map(|query| unsafe { query(id, &raw mut handle) });
    if answer == Some(SUCCESS) { handle } else { id >> 48 }
}

/// Whether this record belongs to the requested instance.
pub(super) fn is_instance(sdk: &Sdk, id: u64, wanted: Option<(u64, usize)>) -> bool {
    let (Some((dimension, instance)), Some(query)) = (wanted, sdk.position_of_record) else {
        return true;
    };
    let mut position = 0usize;
    // SAFETY: room for the answer.
    (unsafe { query(id, dimension, &raw mut position) }) == SUCCESS && position == instance
}

/// Number of the instance through all dimensions, the first fastest; `None` if a position is out of range.
fn instance_of(sdk: &Sdk, id: u64, dimensions: &[(u64, usize)]) -> Option<u16> {
    let query = sdk.position_of_record.filter(|_| !dimensions.is_empty())?;
    let (mut number, mut step) = (0usize, 1usize);
    for (dimension, size) in dimensions {
        let mut position = 0usize;
        // SAFETY: room for the answer.
        if (unsafe { query(id, *dimension, &raw mut position) }) != SUCCESS || position >= *size {
            return None;
        }
        number += position * step;
        step *= size;
    }
    u16::try_from(number).ok()
}
