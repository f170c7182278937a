//! Decodes work: calls, dispatches, copies, markers, complete or open.

use super::Decoder;
use crate::arguments::{self, Results};
use crate::item::{AgentId, ApiCall, Copy, Dispatch, Item, Marker, Nanos, Open, ProcessId, Span, TextId};
use crate::site::SiteNumber;
use roctop_ring::arguments::Arguments;
use roctop_ring::reader::OpenWork;
use roctop_ring::record::{self, Domain, MAX_SITE, flag};

/// Validates the span of GPU work. Untimed work has none; a reversed span is swapped and flagged, because a processor
/// wrote both times, in the wrong order.
#[inline]
fn validated_span(span: Span, flags: u8) -> (Span, u8) {
    if flags & flag::UNTIMED != 0 {
        return (Span::default(), flags);
    }
    if span.end >= span.begin {
        return (span, flags);
    }
    let Span { begin, end } = span;
    (Span { begin: end, end: begin }, flags | flag::SUSPECT_TIME)
}

/// Maximum offset that is corrected as an APU's clock offset, ns. A larger one has another cause.
const MAX_SKEW: u64 = 1_000_000;

/// Moves work that begins before its submission to the submission, as rocprofiler-sdk does. `None` if the work needs no
/// correction.
#[inline]
fn moved_to_submission(span: Span, submit: Nanos) -> Option<Span> {
    let by = submit.checked_sub(span.begin).filter(|by| *by > 0 && *by <= MAX_SKEW)?;
    (span.begin != 0).then_some(Span {
        begin: submit,
        end: span.end.saturating_add(by),
    })
}

impl Decoder {
    pub(super) fn api_call(&mut self, process: ProcessId, tid: u32, domain: Domain, call: &record::ApiCall) -> ApiCall {
        let clock = &self.processes[process.0 as usize].clock;
        let span = Span {
            begin: clock.ticks(call.start),
            end: clock.ticks(call.end),
        };
        ApiCall {
            process,
            thread: self.thread_id(process, tid, ""),
            operation: self.operation(process, domain, call.op),
            span,
            correlation: call.correlation,
            parent: call.parent,
            status: call.knows_status().then_some(call.status),
            arguments: None,
            site: SiteNumber(call.site()),
        }
    }

    pub(super) fn arguments(
        &mut self,
        process: ProcessId,
        domain: Domain,
        op: u16,
        found: &Arguments,
    ) -> Option<TextId> {
        if domain == Domain::MPI {
            let text = arguments::of_mpi(found)?;
            return self.text_of_arguments(&text);
        }
        let name = self.processes[process.0 as usize]
            .operation_names
            .get(&(domain.0, op))?;
        // Files contain arguments as passed; the screen shows results.
        let results = if self.names.is_unlimited {
            Results::Both
        } else {
            Results::Alone
        };
        let text = arguments::text(name, found, results)?;
        self.text_of_arguments(&text)
    }

    fn text_of_arguments(&mut self, text: &str) -> Option<TextId> {
        let (id, new) = self.names.arguments(text)?;
        if let Some(text) = new {
            self.items.push(Item::Text(id, text));
        }
        Some(id)
    }

    fn dispatch(&mut self, process: ProcessId, flags: u8, found: &record::Dispatch) -> Dispatch {
        let clock = &self.processes[process.0 as usize].clock;
        let submit = clock.ticks(found.submit);
        let span = Span {
            begin: clock.hsa(found.begin),
            end: clock.hsa(found.end),
        };
        self.dispatch_at(process, flags, found, span, submit)
    }

    /// Decodes a dispatch whose times are already converted.
    #[inline]
    pub(super) fn dispatch_at(
        &mut self,
        process: ProcessId,
        flags: u8,
        found: &record::Dispatch,
        span: Span,
        submit: Nanos,
    ) -> Dispatch {
        let (span, flags) = validated_span(span, flags);
        let place = self.place(process, found);
        let span = self.after_submission(process, place.agent, span, submit);
        Dispatch {
            process,
            kernel: self.kernel_of(process, found.kernel_object, found.name_id(flags), found.submit),
            agent: place.agent,
            queue: place.queue,
            stream: place.stream,
            thread: place.thread,
            span,
            submit,
            correlation: found.correlation,
            dispatch_id: found.dispatch_id,
            grid: [found.grid_x, found.grid_y, found.grid_z],
            workgroup: [found.workgroup_x, found.workgroup_y, found.workgroup_z],
            group_size: found.group_size,
            private_size: found.private_size,
            flags: flags & !flag::SITE,
            site: SiteNumber(found.site(flags)),
        }
    }

    /// Corrects the span of APU work that begins before its submission: the two clocks differ by fractions of a
    /// millisecond.
    #[inline]
    fn after_submission(&mut self, process: ProcessId, agent: AgentId, span: Span, submit: Nanos) -> Span {
        let state = &mut self.processes[process.0 as usize];
        if state.skewed.is_empty() || !state.skewed.contains(&agent) {
            return span;
        }
        let Some(moved_to_submission) = moved_to_submission(span, submit) else {
            return span;
        };
        if !std::mem::replace(&mut state.is_moved, true) {
            let text = "the clock of this APU is behind that of the host: kernels that begin before their launch are moved to it";
            self.items.push(Item::Status {
                process,
                code: record::status::NOTE,
                text: text.into(),
            });
        }
        moved_to_submission
    }

    pub(super) fn copy(&mut self, process: ProcessId, flags: u8, found: &record::Copy) -> Copy {
        let clock = &self.processes[process.0 as usize].clock;
        let span = Span {
            begin: clock.hsa(found.begin),
            end: clock.hsa(found.end),
        };
        let submit = clock.ticks(found.submit);
        let (span, flags) = validated_span(span, flags);
        let source = self.known_agent(process, found.src_agent);
        let destination = self.known_agent(process, found.dst_agent);
        Copy {
            process,
            source,
            destination,
            stream: found
                .stream
                .checked_sub(1)
                .map(|number| self.stream_id(process, number)),
            thread: (found.tid != 0).then(|| self.thread_id(process, found.tid, "")),
            span,
            submit,
            correlation: found.correlation,
            bytes: found.bytes,
            direction: found.direction,
            engine: found.engine,
            flags,
            site: SiteNumber(found.site & MAX_SITE),
        }
    }

    pub(super) fn known_agent(&mut self, process: ProcessId, index: u32) -> Option<AgentId> {
        (index != u32::MAX).then(|| self.agent_id(process, index))
    }

    pub(super) fn marker(&mut self, process: ProcessId, tid: u32, found: &record::Marker) -> Marker {
        let clock = &self.processes[process.0 as usize].clock;
        let span = Span {
            begin: clock.ticks(found.start),
            end: clock.ticks(found.end),
        };
        let text = self.marker_text(process, found.text_id, &found.text);
        Marker {
            process,
            thread: self.thread_id(process, tid, ""),
            text,
            span,
            correlation: found.correlation,
            level: found.level,
            range_id: found.range_id,
        }
    }

    fn marker_text(&mut self, process: ProcessId, id: u32, inline: &[u8]) -> TextId {
        let known = self.processes[process.0 as usize]
            .strings
            .get(&id)
            .filter(|_| id != 0)
            .cloned();
        let text = known.unwrap_or_else(|| String::from_utf8_lossy(inline).into());
        let (id, new) = self.names.text(&text);
        if let Some(text) = new {
            self.items.push(Item::Text(id, text));
        }
        id
    }

    pub(super) fn open(&mut self, process: ProcessId, work: &OpenWork) {
        if !self.state(process).clock.is_ready() {
            return;
        }
        let mut open = Open {
            process,
            ..Open::default()
        };
        for call in &work.calls {
            let found = record::ApiCall {
                start: call.start,
                correlation: call.correlation,
                op: call.op,
                ..record::ApiCall::default()
            };
            open.calls
                .push(self.api_call(process, call.thread.tid, call.domain, &found));
        }
        for range in &work.ranges {
            let found = record::Marker {
                start: range.start,
                correlation: range.correlation,
                range_id: range.range_id,
                text_id: range.text_id,
                level: range.level,
                text: range.text.clone(),
                ..record::Marker::default()
            };
            open.ranges.push(self.marker(process, range.thread.tid, &found));
        }
        for queue in &work.queues {
            let Some(id) = self.processes[process.0 as usize]
                .queues
                .get(&queue.id)
                .map(|known| known.id)
            else {
                continue;
            };
            open.queues.push((id, queue.submitted, queue.completed));
            for flight in &queue.in_flight {
                let found = record::Dispatch {
                    submit: flight.submit,
                    kernel_object: flight.kernel_object,
                    correlation: flight.correlation,
                    dispatch_id: flight.dispatch_id,
                    queue: queue.id,
                    ..record::Dispatch::default()
                };
                let mut dispatch = self.dispatch(process, flag::OPEN, &found);
                dispatch.agent = self.names.agent_of_queue(id).unwrap_or(dispatch.agent);
                open.dispatches.push(dispatch);
            }
        }
        open.copies = self.state(process).copies;
        self.items.push(Item::Open(open));
    }
}

#[cfg(test)]
mod skew_tests {
    use super::{Span, moved_to_submission};

    #[test]
    fn work_before_its_submission_is_moved_whole() {
        let span = Span {
            begin: 1_000,
            end: 1_500,
        };
        assert_eq!(
            moved_to_submission(span, 1_200),
            Some(Span {
                begin: 1_200,
                end: 1_700
            })
        );
        assert_eq!(moved_to_submission(span, 1_000), None);
        assert_eq!(moved_to_submission(span, 900), None);
        assert_eq!(moved_to_submission(span, 5_000_000), None);
        assert_eq!(moved_to_submission(Span { begin: 0, end: 0 }, 900), None);
    }
}
