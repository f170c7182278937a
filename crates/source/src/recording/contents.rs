//! What the calls, dispatches and copies of a block are, in few words: enough to know that none of them passes a filter.

use super::payload;
use roctop_ring::arguments::Arguments;
use roctop_ring::record::{ApiCall, CallCopy, Copy, Dispatch, Domain, Head, Slot, flag};
use roctop_trace::raw::each;
use serde::{Deserialize, Serialize};

/// The shortest and the longest of some durations; empty if the first exceeds the second.
pub(super) type Durations = (u64, u64);

const NO_DURATION: Durations = (u64::MAX, 0);

/// What the calls, dispatches and copies of a block are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Kernel objects, each as the distance to the one before, ascending.
    distances: Vec<u64>,
    /// Durations of the dispatches, HSA ns.
    dispatches: Durations,
    /// Domain and number of each operation.
    operations: Vec<(u8, u16)>,
    /// Durations of the calls, ticks.
    calls: Durations,
    /// Durations of the copies, HSA ns.
    copies: Durations,
    /// Durations of the copies that calls made, ticks.
    call_copies: Durations,
}

impl Contents {
    /// Of the records in `slots`.
    pub(super) fn of(slots: &[Slot]) -> Self {
        let (mut objects, mut operations) = (Vec::new(), Vec::new());
        let [mut dispatches, mut calls, mut copies, mut call_copies] = [NO_DURATION; 4];
        let widen = |known: &mut Durations, (begin, end): (u64, u64)| {
            // Begin and end may be swapped.
            let duration = end.abs_diff(begin);
            *known = (known.0.min(duration), known.1.max(duration));
        };
        for record in each(slots) {
            let head = Head(record[0][0]);
            match head.kind() {
                Dispatch::KIND => {
                    let object = record[0][Dispatch::KERNEL_OBJECT];
                    if objects.last() != Some(&object) {
                        objects.push(object);
                    }
                    widen(&mut dispatches, gpu_span(head, &record[0]));
                }
                Copy::KIND => widen(&mut copies, gpu_span(head, &record[0])),
                CallCopy::KIND => widen(&mut call_copies, (record[0][1], record[0][2])),
                ApiCall::KIND | Arguments::KIND => {
                    let call = ApiCall::decode(record);
                    let operation = (head.domain().0, call.op);
                    if operations.last() != Some(&operation) {
                        operations.push(operation);
                    }
                    widen(&mut calls, (call.start, call.end));
                }
                _ => {}
            }
        }
        objects.sort_unstable();
        objects.dedup();
        operations.sort_unstable();
        operations.dedup();
        let mut before = 0;
        for object in &mut objects {
            *object -= std::mem::replace(&mut before, *object);
        }
        Self {
            distances: objects,
            dispatches,
            operations,
            calls,
            copies,
            call_copies,
        }
    }

    /// Kernel objects of the dispatches.
    pub fn objects(&self) -> impl Iterator<Item = u64> {
        self.distances.iter().scan(0u64, |sum, distance| {
            *sum = sum.wrapping_add(*distance);
            Some(*sum)
        })
    }

    /// Durations of the dispatches, HSA ns; those of untimed ones are 0.
    pub const fn dispatch_durations(&self) -> Durations {
        self.dispatches
    }

    /// Operations of the calls.
    pub fn operations(&self) -> impl Iterator<Item = (Domain, u16)> {
        self.operations.iter().map(|(domain, op)| (Domain(*domain), *op))
    }

    /// Durations of the calls, ticks.
    pub const fn call_durations(&self) -> Durations {
        self.calls
    }

    /// Durations of the copies, HSA ns; those of untimed ones are 0. `None` without a copy.
    pub fn copy_durations(&self) -> Option<Durations> {
        known(self.copies)
    }

    /// Durations of the copies that calls made, ticks; `None` without one.
    pub fn call_copy_durations(&self) -> Option<Durations> {
        known(self.call_copies)
    }
}

fn known(durations: Durations) -> Option<Durations> {
    (durations.0 <= durations.1).then_some(durations)
}

/// Begin and end of GPU work; 0 if it is untimed.
const fn gpu_span(head: Head, slot: &Slot) -> (u64, u64) {
    if head.flags() & flag::UNTIMED == 0 {
        (slot[1], slot[2])
    } else {
        (0, 0)
    }
}

/// Encodes the payload of a block: offsets of blocks in their segment, with what is in each.
pub(super) fn encode(all: &[(u64, Contents)]) -> Vec<u8> {
    // Writing to memory does not fail.
    postcard::to_stdvec(all).unwrap_or_default()
}

/// Decodes the payload of a block; nothing if it is not valid.
pub(super) fn decode(payload: &[u8]) -> Vec<(u64, Contents)> {
    postcard::from_bytes(payload).unwrap_or_default()
}

/// What the payload of a block of records has.
pub(super) fn of_payload(payload: &[u8]) -> Contents {
    Contents::of(payload::slots(&payload::words(payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots<const N: usize>(head: Head, payload: [[u64; 6]; N]) -> Vec<Slot> {
        let words = payload.iter().enumerate();
        words
            .map(|(at, p)| [if at == 0 { head.0 } else { 1 }, p[0], p[1], p[2], p[3], p[4], p[5], 0])
            .collect()
    }

    fn dispatch(kernel_object: u64, begin: u64, end: u64, flags: u8) -> Vec<Slot> {
        let dispatch = Dispatch {
            kernel_object,
            begin,
            end,
            ..Dispatch::default()
        };
        slots(Dispatch::head(flags, Domain::NONE), dispatch.payload())
    }

    fn call(op: u16, start: u64, end: u64) -> Vec<Slot> {
        let call = ApiCall {
            op,
            start,
            end,
            ..ApiCall::default()
        };
        slots(ApiCall::head(0, Domain::HIP), call.payload())
    }

    fn copy(begin: u64, end: u64) -> Vec<Slot> {
        let copy = Copy {
            begin,
            end,
            ..Copy::default()
        };
        slots(Copy::head(0, Domain::NONE), copy.payload())
    }

    fn call_copy(start: u64, end: u64) -> Vec<Slot> {
        let copy = CallCopy {
            start,
            end,
            ..CallCopy::default()
        };
        slots(CallCopy::head(0, Domain::NONE), copy.payload())
    }

    #[test]
    fn contents_are_those_of_the_records_and_round_trip() {
        let records = [
            dispatch(u64::MAX, 100, 130, 0),
            dispatch(64, 100, 105, 0),
            dispatch(64, 190, 150, 0),
            call(7, 10, 12),
            call(3, 20, 29),
            call(7, 30, 31),
            copy(40, 47),
            copy(50, 52),
            call_copy(60, 63),
        ];
        let found = Contents::of(&records.concat());
        assert_eq!(found.objects().collect::<Vec<_>>(), [64, u64::MAX]);
        assert_eq!(found.dispatch_durations(), (5, 40));
        let operations: Vec<_> = found.operations().collect();
        assert_eq!(operations, [(Domain::HIP, 3), (Domain::HIP, 7)]);
        assert_eq!(found.call_durations(), (1, 9));
        assert_eq!(found.copy_durations(), Some((2, 7)));
        assert_eq!(found.call_copy_durations(), Some((3, 3)));
        let untimed = Contents::of(&dispatch(0, 7, 1 << 60, flag::UNTIMED));
        assert_eq!(untimed.dispatch_durations(), (0, 0));
        let none = Contents::of(&[]);
        assert!(none.objects().next().is_none() && none.dispatch_durations() == NO_DURATION);
        assert_eq!((none.copy_durations(), none.call_copy_durations()), (None, None));
        let all = [(0, found), (1 << 40, untimed), (7, none)];
        let encoded = encode(&all);
        assert_eq!(decode(&encoded), all);
        for length in 0..encoded.len() {
            assert!(decode(&encoded[..length]).is_empty(), "{length}");
        }
    }
}
