//! A whole run in memory, as the file formats need it: every record, and the tables that its ids point into.

use crate::item::{
    Agent, ApiCall, Copy, Dispatch, Exit, Item, Kernel, LossReason, Marker, Operation, Process, ProcessId, Queue,
    Stream, Thread,
};
use roctop_ring::record::Domain;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Everything that was recorded.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Processes by dense id.
    pub processes: Vec<Process>,
    /// How processes ended.
    pub exits: BTreeMap<ProcessId, Exit>,
    /// Agents by dense id.
    pub agents: Vec<Agent>,
    /// Queues by dense id.
    pub queues: Vec<Queue>,
    /// Streams by dense id.
    pub streams: Vec<Stream>,
    /// Threads by dense id.
    pub threads: Vec<Thread>,
    /// Kernels by dense id.
    pub kernels: Vec<Kernel>,
    /// Operations by dense id.
    pub operations: Vec<Operation>,
    /// Marker texts by dense id.
    pub texts: Vec<Arc<str>>,
    /// API calls.
    pub calls: Vec<ApiCall>,
    /// Dispatches.
    pub dispatches: Vec<Dispatch>,
    /// Copies.
    pub copies: Vec<Copy>,
    /// Marks and closed ranges.
    pub markers: Vec<Marker>,
    /// Records lost, by process and reason.
    pub lost: BTreeMap<(ProcessId, LossReason), u64>,
}

impl Run {
    /// Adds an item.
    pub fn add(&mut self, item: Item) {
        match item {
            Item::Process(process) => put(&mut self.processes, process.id.0, process),
            Item::Ended { process, exit, .. } => {
                let known = self.exits.entry(process).or_insert(exit);
                if *known == Exit::Unknown {
                    *known = exit;
                }
            }
            Item::Agent(agent) => put(&mut self.agents, agent.id.0, agent),
            Item::Kernel(kernel) => put(&mut self.kernels, kernel.id.0, kernel),
            Item::Queue(queue) => put(&mut self.queues, queue.id.0, queue),
            Item::Stream(stream) => put(&mut self.streams, stream.id.0, stream),
            Item::Thread(thread) => put(&mut self.threads, thread.id.0, thread),
            Item::Operation(operation) => put(&mut self.operations, operation.id.0, operation),
            Item::Text(id, text) => put(&mut self.texts, id.0, text),
            Item::Api(call) => self.calls.push(call),
            Item::Dispatch(dispatch) => self.dispatches.push(dispatch),
            Item::Copy(copy) => self.copies.push(copy),
            Item::Mark(marker) | Item::Range(marker) => self.markers.push(marker),
            Item::Lost {
                process,
                reason,
                records,
            } => {
                self.lost.insert((process, reason), records);
            }
            Item::Open(_) | Item::Status { .. } | Item::Switched { .. } | Item::Output(_) | Item::Now(_) => {}
        }
    }

    /// Calls that the program made: those which a run-time makes of itself inside a HIP call are left out, as rocprofv3
    /// leaves them out.
    pub fn own_calls(&self, process: ProcessId) -> impl Iterator<Item = &ApiCall> {
        let own = self.calls.iter().filter(move |call| call.process == process);
        own.filter(|call| call.parent == 0 || !self.is_hip(call))
    }

    fn is_hip(&self, call: &ApiCall) -> bool {
        let operation = self.operations.get(call.operation.0 as usize);
        operation.is_some_and(|known| [Domain::HIP, Domain::HIP_COMPILER].contains(&Domain(known.domain)))
    }

    /// Dense correlation ids of a process, from 1 by start time over all its own calls and markers. A call that the
    /// run-time made inside another has the other's id.
    pub fn correlations(&self, process: ProcessId) -> HashMap<u64, u64> {
        let calls = self.own_calls(process);
        let markers = self.markers.iter().filter(|marker| marker.process == process);
        let mut starts: Vec<(u64, u64)> = calls
            .map(|call| (call.span.begin, call.correlation))
            .chain(markers.map(|marker| (marker.span.begin, marker.correlation)))
            .filter(|(_, correlation)| *correlation != 0)
            .collect();
        starts.sort_unstable();
        let mut dense = HashMap::with_capacity(starts.len());
        for (_, correlation) in starts {
            let next = dense.len() as u64 + 1;
            dense.entry(correlation).or_insert(next);
        }
        let all = self.calls.iter();
        let nested = all.filter(|call| call.process == process && call.parent != 0 && self.is_hip(call));
        // Outer calls return later than inner ones: from the outside in, each finds the id of the one around it.
        for call in nested.rev() {
            if let Some(outer) = dense.get(&call.parent).copied() {
                dense.insert(call.correlation, outer);
            }
        }
        dense
    }
}

fn put<T: Default + Clone>(table: &mut Vec<T>, index: u32, value: T) {
    let index = index as usize;
    if table.len() <= index {
        table.resize(index + 1, T::default());
    }
    table[index] = value;
}
