//! Decodes calls that record events or wait for them, and how long threads had run.

use super::Decoder;
use crate::item::{EventCall, Item, Nanos, ProcessId, ThreadTime};
use crate::thread_reading::ThreadReading;
use roctop_ring::record::{self, Domain};

/// Whether a call's argument may be an event with its stream.
#[inline]
pub(super) const fn has_stream(call: &record::ApiCall) -> bool {
    call.arg >> record::ApiCall::STREAM_BIT != 0
}

impl Decoder {
    /// Adds the event of a successful call, if the call records one or waits for one.
    #[cold]
    pub(super) fn event_call(&mut self, process: ProcessId, domain: Domain, call: &record::ApiCall, at: Nanos) {
        let names = &self.processes[process.0 as usize].operation_names;
        let name = names.get(&(domain.0, call.op)).map_or("", |name| name);
        let waits = name.starts_with("hipStreamWaitEvent");
        if !(waits || name.starts_with("hipEventRecord")) || call.status != 0 {
            return;
        }
        let (event, stream) = call.event();
        let stream = stream.checked_sub(1).map(|number| self.stream_id(process, number));
        self.items.push(Item::EventCall(EventCall {
            process,
            at,
            stream,
            event,
            waits,
        }));
    }

    /// Adds readings of threads that have records.
    pub(super) fn thread_times(&mut self, process: ProcessId, readings: &[ThreadReading]) {
        let Some(state) = self.processes.get(process.0 as usize) else {
            return;
        };
        let known = readings.iter().filter_map(|reading| {
            let thread = *state.threads.get(&reading.tid)?;
            Some(Item::ThreadTime(ThreadTime {
                process,
                thread,
                at: reading.at,
                running: reading.running,
                ready: reading.ready,
                is_running: reading.is_running,
            }))
        });
        self.items.extend(known);
    }
}
