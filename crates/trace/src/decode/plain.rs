//! Decodes runs of records on several threads: those in which nothing is new to a fork of the decoder.
//!
//! Ids are dense in order of appearance, so only one decoder may give new ones. A fork of it decodes the calls and
//! dispatches of a run, which are nearly all records. If one of them refers to something that the fork does not know,
//! the run counts for nothing and the original decodes it.

use super::Decoder;
use crate::item::{ApiCall, Dispatch, Item, ProcessId};
use roctop_ring::arguments::Arguments;
use roctop_ring::reader::Thread as RingThread;
use roctop_ring::record::{Head, Slot};

/// Calls and dispatches of a run, decoded, and its records of other kinds.
#[derive(Debug, Default)]
pub struct Plain {
    /// Calls, ordered by end.
    pub calls: Vec<ApiCall>,
    /// Dispatches.
    pub dispatches: Vec<Dispatch>,
    /// What calls did with events.
    pub events: Vec<Item>,
    /// Slots of the other records, in their order.
    pub others: Vec<Slot>,
}

impl Decoder {
    /// A fork for [`Decoder::plain`].
    #[must_use]
    pub fn fork_plain(&self) -> Self {
        let mut fork = self.fork();
        // Markers are not decoded.
        fork.names.forget_texts();
        fork.apart = Some(Vec::new());
        fork
    }

    /// Decodes calls and dispatches of a run of one thread's records; `None` if something in it is new to this fork, or
    /// may be. A fork to which something was new is of no further use.
    pub fn plain(&mut self, process: ProcessId, thread: RingThread, slots: &[Slot]) -> Option<Plain> {
        // Texts of arguments get ids.
        let is_explained = |slot: &Slot| Head(slot[0]).kind() == Arguments::KIND;
        if self.is_forgotten(process) || !self.is_ready(process) || slots.iter().any(is_explained) {
            return None;
        }
        self.clear();
        self.run(process, thread, slots);
        let others = self.apart.as_mut().map(std::mem::take).unwrap_or_default();
        (!self.is_spoilt()).then(|| Plain {
            calls: std::mem::take(&mut self.calls),
            dispatches: std::mem::take(&mut self.dispatches),
            events: std::mem::take(&mut self.items),
            others,
        })
    }

    /// Whether something in the last run was new to this fork.
    pub fn is_spoilt(&self) -> bool {
        !self.items.iter().all(|item| matches!(item, Item::EventCall(_)))
    }

    /// Continues after a run that a fork has decoded, with its records of other kinds.
    pub fn take_plain(&mut self, process: ProcessId, thread: RingThread, plain: &Plain) {
        if !plain.others.is_empty() {
            self.record_run(process, thread, &plain.others);
        }
        for dispatch in &plain.dispatches {
            self.join_dispatch(dispatch);
        }
    }

    /// A number that changes when a newer fork knows more.
    pub fn known(&self) -> u64 {
        let ready = self.processes.iter().filter(|state| state.clock.is_ready());
        self.names.count() + ready.count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Sample;
    use crate::raw::{Raw, RawSink};
    use roctop_ring::layout::Header;
    use roctop_ring::record::{self, CONTINUATION, Domain, Marker};

    const PROCESS: ProcessId = ProcessId(0);
    const THREAD: RingThread = RingThread { index: 0, tid: 7 };

    fn slots(head: Head, payload: &[[u64; 6]]) -> Vec<Slot> {
        let heads = (0..payload.len()).map(|at| match at {
            0 => Head::new(head.kind(), head.flags(), payload.len() as u8, head.domain().0),
            at => Head::new(CONTINUATION, 0, at as u8, 0),
        });
        let slot = |(head, words): (Head, &[u64; 6])| {
            let [a, b, c, d, e, f] = *words;
            [head.0, a, b, c, d, e, f, 0]
        };
        heads.zip(payload).map(slot).collect()
    }

    fn call(op: u16, start: u64) -> Vec<Slot> {
        let call = record::ApiCall {
            start,
            end: start + 5,
            correlation: start,
            op,
            ..record::ApiCall::default()
        };
        slots(record::ApiCall::head(0, Domain::HIP), &call.payload())
    }

    fn dispatch(kernel_object: u64, submit: u64) -> Vec<Slot> {
        let dispatch = record::Dispatch {
            begin: submit + 10,
            end: submit + 20,
            submit,
            kernel_object,
            dispatch_id: submit,
            agent: 1,
            queue: 1,
            tid: 7,
            ..record::Dispatch::default()
        };
        slots(record::Dispatch::head(0, Domain::NONE), &dispatch.payload())
    }

    fn mark(at: u64) -> Vec<Slot> {
        let payload = Marker::payload([at, at], 3, 0, 0, 0, b"step");
        let count = Marker::slots(4);
        slots(
            Head::new(Marker::MARK, 0, count as u8, Domain::MARKER.0),
            &payload[..count],
        )
    }

    fn run(from: u64) -> Vec<Slot> {
        let all = (from..from + 70).map(|number| number * 100);
        let records = all.flat_map(|at| [call(1, at), dispatch(0x1000, at + 1), mark(at + 50)]);
        records.flatten().collect()
    }

    fn decoder() -> Decoder {
        let mut decoder = Decoder::by_kind();
        decoder.take(PROCESS, &Raw::Header(&Header::default()));
        let sample = |at| Sample {
            ticks: at,
            boottime: at,
            realtime: at,
            hsa: at,
            width: 1,
        };
        decoder.preload_clock(PROCESS, &[sample(1), sample(1_000_000)]);
        decoder
    }

    #[test]
    fn a_fork_decodes_known_records_as_the_decoder_does() {
        let mut decoder = decoder();
        decoder.records(PROCESS, THREAD, &run(1));
        let mut fork = decoder.fork_plain();
        let mut same = decoder.fork();
        let later = run(100);
        same.records(PROCESS, THREAD, &later);
        let plain = fork.plain(PROCESS, THREAD, &later).expect("all is known");
        assert_eq!((plain.calls.len(), plain.dispatches.len()), (70, 70));
        assert_eq!(plain.calls, same.decoded().calls);
        assert_eq!(plain.dispatches, same.decoded().dispatches);
        assert_eq!(
            plain.others,
            (100..170).flat_map(|at| mark(at * 100 + 50)).collect::<Vec<Slot>>()
        );
        decoder.clear();
        decoder.take_plain(PROCESS, THREAD, &plain);
        assert_eq!(decoder.decoded().items, same.decoded().items);
        // The fork is as before.
        assert!(fork.plain(PROCESS, THREAD, &run(200)).is_some() && !fork.is_spoilt());
    }

    #[test]
    fn what_may_be_new_is_left_to_the_decoder() {
        let mut decoder = decoder();
        decoder.records(PROCESS, THREAD, &[call(1, 100), dispatch(0x1000, 101)].concat());
        let known = decoder.known();
        let mut fork = decoder.fork_plain();
        assert!(
            fork.plain(PROCESS, THREAD, &[call(1, 200), dispatch(0x1000, 200)].concat())
                .is_some()
        );
        decoder.records(PROCESS, THREAD, &run(3));
        assert_eq!(decoder.known(), known);
        for new in [call(2, 9000), dispatch(0x2000, 9000)] {
            let mut fork = decoder.fork_plain();
            assert!(fork.plain(PROCESS, THREAD, &new).is_none() && fork.is_spoilt());
        }
        let mut fork = decoder.fork_plain();
        assert!(fork.plain(ProcessId(5), THREAD, &call(1, 9000)).is_none());
        decoder.records(PROCESS, THREAD, &call(2, 9000));
        assert!(decoder.known() > known);
        let other = RingThread { index: 1, tid: 8 };
        assert!(fork.plain(PROCESS, other, &call(1, 9000)).is_none() && fork.is_spoilt());
    }
}
