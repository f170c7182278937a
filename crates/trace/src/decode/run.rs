//! Decodes a run of one thread's records. What the records share is looked up once.

use super::Decoder;
use super::events::has_stream;
use crate::clock::Line;
use crate::item::{ApiCall, Nanos, ProcessId, Span};
use crate::raw::each;
use crate::site::SiteNumber;
use roctop_ring::near;
use roctop_ring::reader::Thread as RingThread;
use roctop_ring::record::{self, Head, Slot};

/// Prefetch distances: slots before they are decoded, and kernel entries before they are used. Another core copied the
/// slots, and with many kernels the entries are not in the cache either.
const PREFETCH_SLOTS: usize = 32;
const PREFETCH_ENTRIES: usize = 12;

impl Decoder {
    /// Decodes records of a process that has no waiting records.
    pub(super) fn run(&mut self, process: ProcessId, thread: RingThread, slots: &[Slot]) {
        slots.iter().take(PREFETCH_SLOTS).for_each(near::fetch);
        let (mut far, mut ahead) = (slots.iter().skip(PREFETCH_SLOTS), each(slots).skip(PREFETCH_ENTRIES));
        let (mut caller, mut line, mut hsa) = (None, Line::default(), Line::default());
        for record in each(slots) {
            far.by_ref().take(record.len()).for_each(near::fetch);
            if let Some(later) = ahead.next() {
                self.fetch(later);
            }
            let head = Head(record[0][0]);
            // Calls and dispatches are nearly all records.
            match head.kind() {
                record::ApiCall::KIND => {
                    let found = record::ApiCall::decode(record);
                    let caller = match caller {
                        Some(known) => known,
                        None => *caller.insert(self.thread_id(process, thread.tid, "")),
                    };
                    let call = ApiCall {
                        process,
                        thread: caller,
                        operation: self.operation(process, head.domain(), found.op),
                        span: Span {
                            begin: self.nanos(process, &mut line, found.start),
                            end: self.nanos(process, &mut line, found.end),
                        },
                        correlation: found.correlation,
                        parent: found.parent,
                        status: found.knows_status().then_some(found.status),
                        arguments: None,
                        site: SiteNumber(found.site()),
                    };
                    if has_stream(&found) {
                        self.event_call(process, head.domain(), &found, call.span.begin);
                    }
                    self.emit_call(call);
                }
                record::Dispatch::KIND => {
                    let found = record::Dispatch::decode(record);
                    let submit = self.nanos(process, &mut line, found.submit);
                    let span = Span {
                        begin: self.hsa_nanos(process, &mut hsa, found.begin),
                        end: self.hsa_nanos(process, &mut hsa, found.end),
                    };
                    let dispatch = self.dispatch_at(process, head.flags(), &found, span, submit);
                    self.emit_dispatch(dispatch);
                }
                _ => self.convert_other(process, thread, head, record),
            }
        }
    }

    /// Prefetches the kernel entry of a dispatch record.
    #[inline]
    fn fetch(&self, record: &[Slot]) {
        let is_dispatch = Head(record[0][0]).kind() == record::Dispatch::KIND;
        // A product instead of a branch, which the CPU could not predict.
        let object = record[0][record::Dispatch::KERNEL_OBJECT].wrapping_mul(u64::from(is_dispatch));
        self.recent.kernels.fetch(object);
    }

    /// Converts ticks to ns, with the cached line if it covers them.
    #[expect(clippy::inline_always, reason = "a call of it costs a fifth of decoding a record")]
    #[inline(always)]
    fn nanos(&self, process: ProcessId, line: &mut Line, ticks: u64) -> Nanos {
        if !line.holds(ticks) {
            *line = self.line(process, ticks);
        }
        line.nanos(ticks)
    }

    /// As `nanos`, for HSA's clock.
    #[inline]
    fn hsa_nanos(&self, process: ProcessId, line: &mut Line, ns: u64) -> Nanos {
        if !line.holds(ns) {
            *line = self.hsa_line(process, ns);
        }
        line.nanos(ns)
    }

    #[cold]
    fn hsa_line(&self, process: ProcessId, ns: u64) -> Line {
        self.processes[process.0 as usize].clock.hsa_line(ns)
    }

    #[cold]
    fn line(&self, process: ProcessId, ticks: u64) -> Line {
        self.processes[process.0 as usize].clock.line(ticks)
    }
}
