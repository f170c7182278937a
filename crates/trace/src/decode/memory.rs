//! Allocations, scratch memory, copies made by calls, and requested transfers.

use super::Decoder;
use crate::item::{AgentId, AgentKind, Allocation, Copy, ProcessId, Scratch, Span, Transfer};
use crate::site::SiteNumber;
use roctop_ring::record::{self, engine};

impl Decoder {
    fn host_span(&self, process: ProcessId, start: u64, end: u64) -> Span {
        let clock = &self.processes[process.0 as usize].clock;
        Span {
            begin: clock.ticks(start),
            end: clock.ticks(end),
        }
    }

    /// A copy or fill made by the call itself: it has the call's span.
    pub(super) fn call_copy(&mut self, process: ProcessId, tid: u32, found: &record::CallCopy) -> Copy {
        let span = self.host_span(process, found.start, found.end);
        Copy {
            process,
            source: self.known_agent(process, found.src_agent),
            destination: self.known_agent(process, found.dst_agent),
            stream: None,
            thread: Some(self.thread_id(process, tid, "")),
            span,
            submit: span.begin,
            correlation: found.correlation,
            bytes: found.bytes,
            direction: found.direction,
            engine: engine::CALL,
            flags: 0,
            site: SiteNumber::UNKNOWN,
        }
    }

    pub(super) fn transfer(&mut self, process: ProcessId, found: &record::Transfer) -> Transfer {
        Transfer {
            process,
            correlation: found.correlation,
            source: self.known_agent(process, found.src_agent),
            destination: self.known_agent(process, found.dst_agent),
            host: self.host(process),
            bytes: found.bytes,
            direction: found.direction,
        }
    }

    /// The process's first CPU, which owns memory that HSA did not allocate.
    fn host(&self, process: ProcessId) -> Option<AgentId> {
        let mut agents = self.processes[process.0 as usize].agents.iter().flatten();
        agents.find(|agent| agent.kind == AgentKind::Cpu).map(|agent| agent.id)
    }

    pub(super) fn allocation(&mut self, process: ProcessId, tid: u32, found: &record::Allocation) -> Allocation {
        Allocation {
            process,
            thread: self.thread_id(process, tid, ""),
            agent: self.known_agent(process, found.agent),
            operation: found.operation,
            span: self.host_span(process, found.start, found.end),
            correlation: found.correlation,
            address: found.address,
            bytes: found.bytes,
            total: found.total,
        }
    }

    pub(super) fn scratch(&mut self, process: ProcessId, tid: u32, found: &record::Scratch) -> Scratch {
        let agent = self.known_agent(process, found.agent);
        let queue = (found.queue != 0).then(|| self.queue_id(process, found.queue, agent.unwrap_or_default()));
        Scratch {
            process,
            thread: self.thread_id(process, tid, ""),
            agent,
            queue,
            operation: found.operation,
            flags: found.flags,
            span: self.host_span(process, found.start, found.end),
            correlation: found.correlation,
            bytes: found.bytes,
        }
    }
}
