//! Named entities and totals of a run. The record lists are filled in tests only.

use roctop_model::Names;
use roctop_model::collectives::CommunicatorRow;
use roctop_model::sites::Sites;
use roctop_ring::level::Step;
use roctop_ring::record::status;
use roctop_source::sysfs::Sample;
use roctop_trace::item::{
    Agent, Allocation, ApiCall, Copy, CounterInfo, CounterInstances, CounterValue, Dispatch, Exit, Item, Kernel,
    LossReason, Lost, Marker, Nanos, NodeId, Operation, Process, ProcessId, Queue, Scratch, Stream, Thread,
};
use roctop_trace::kernel_name::Aliases;
use roctop_trace::pc_sampling;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Processes, by dense id.
    pub processes: Vec<Process>,
    /// Exits of processes.
    pub exits: BTreeMap<ProcessId, Exit>,
    /// Agents, by dense id.
    pub agents: Vec<Agent>,
    /// Queues, by dense id.
    pub queues: Vec<Queue>,
    /// Streams, by dense id.
    pub streams: Vec<Stream>,
    /// Threads, by dense id.
    pub threads: Vec<Thread>,
    /// Kernels, by dense id.
    pub kernels: Vec<Kernel>,
    /// Operations, by dense id.
    pub operations: Vec<Operation>,
    /// Numbers of the machines' GPUs, by node.
    pub gpus: BTreeMap<NodeId, u32>,
    /// Marker texts, by dense id.
    pub texts: Vec<Arc<str>>,
    /// Communicators of all processes, by index.
    pub communicators: Vec<CommunicatorRow>,
    /// API calls.
    pub calls: Vec<ApiCall>,
    /// Dispatches.
    pub dispatches: Vec<Dispatch>,
    /// Copies.
    pub copies: Vec<Copy>,
    /// Allocations and frees.
    pub allocations: Vec<Allocation>,
    /// Scratch memory events.
    pub scratches: Vec<Scratch>,
    /// Marks and closed ranges.
    pub markers: Vec<Marker>,
    /// Driver readings of the GPUs.
    pub gauges: Vec<Sample>,
    /// Hardware counters of each agent.
    pub counters: Vec<CounterInfo>,
    /// Values of hardware counters.
    pub counter_values: Vec<CounterValue>,
    /// Values of counter instances.
    pub counter_instances: Vec<CounterInstances>,
    /// PC samples.
    pub pc_samples: Vec<pc_sampling::Sample>,
    /// Call sites.
    pub sites: Sites,
    /// Records lost, by process and reason.
    pub lost: BTreeMap<(ProcessId, LossReason), u64>,
    /// Collectors' reports about unrecorded work.
    pub incomplete: Vec<(ProcessId, Arc<str>)>,
    /// Steps between levels of timing, by process.
    pub levels: BTreeMap<ProcessId, Vec<(Step, Arc<str>)>>,
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
            Item::Api(call) | Item::CallAlong(call) => self.calls.push(call),
            Item::Dispatch(dispatch) => self.dispatches.push(dispatch),
            Item::Copy(copy) => self.copies.push(copy),
            Item::Allocation(allocation) => self.allocations.push(allocation),
            Item::Scratch(scratch) => self.scratches.push(scratch),
            Item::Mark(marker) | Item::Range(marker) | Item::RangeAlong(marker) => self.markers.push(marker),
            Item::Lost {
                process,
                reason,
                records,
            } => {
                self.lost.insert((process, reason), records);
            }
            Item::Level { process, step, text } => self.levels.entry(process).or_default().push((step, text)),
            Item::Gauges(sample) => self.gauges.push(sample),
            Item::CounterInfo(counter) => self.counters.push(counter),
            Item::CounterValue(value) => self.counter_values.push(value),
            Item::CounterInstances(values) => self.counter_instances.push(values),
            Item::PcSample(sample) => self.pc_samples.push(sample),
            Item::Site(process, fact) => self.sites.add(process, &fact),
            Item::Status { process, code, text } if code == status::INCOMPLETE => self.incomplete.push((process, text)),
            Item::Device(device) => _ = self.gpus.insert(device.node, device.number),
            Item::Open(_)
            | Item::Transfer(_)
            | Item::EventCall(_)
            | Item::ThreadTime(_)
            | Item::Binding(..)
            | Item::Communicator(_)
            | Item::Communication(_)
            | Item::Message(_)
            | Item::Status { .. }
            | Item::ClockCost { .. }
            | Item::Switched { .. }
            | Item::Counter(_)
            | Item::Sampling(_)
            | Item::Count(_)
            | Item::Output(_)
            | Item::Now(_) => {}
        }
    }

    /// The names of all of it, as the screen has them; without texts of markers.
    pub fn names(&self, aliases: &Aliases) -> Names {
        let mut names = Names::default();
        self.processes.iter().cloned().for_each(|one| names.put_process(one));
        self.gpus
            .iter()
            .for_each(|(node, number)| names.put_gpu(*node, *number));
        self.agents.iter().cloned().for_each(|one| names.put_agent(one));
        self.queues.iter().for_each(|one| names.put_queue(*one));
        self.streams.iter().cloned().for_each(|one| names.put_stream(one));
        self.threads.iter().cloned().for_each(|one| names.put_thread(one));
        self.operations.iter().cloned().for_each(|one| names.put_operation(one));
        for kernel in &self.kernels {
            names.put_kernel(kernel.clone(), aliases.of(&kernel.name, &kernel.mangled));
        }
        names
    }

    /// What is missing of a process: its collector's reports, its losses, and those of the recording as a whole.
    pub fn missing_of(&self, process: ProcessId) -> Vec<Arc<str>> {
        let own = self.incomplete.iter().filter(|(of, _)| *of == process);
        let lost = self.lost.iter().filter_map(|((of, reason), records)| {
            let lost = Lost::of([(*reason, *records)]);
            let is_own = *of == process || reason.is_of_recording();
            let count = lost.text(|records| records.to_string());
            (is_own && lost.is_any()).then(|| format!("records lost: {count} ({})", reason.phrase()).into())
        });
        own.map(|(_, text)| text.clone()).chain(lost).collect()
    }

    /// Begin of the first record.
    pub fn first_time(&self) -> Nanos {
        let calls = self.calls.iter().map(|call| call.span.begin);
        let markers = self.markers.iter().map(|marker| marker.span.begin);
        let dispatches = self.dispatches.iter().map(|dispatch| dispatch.span.begin);
        let copies = self.copies.iter().map(|copy| copy.span.begin);
        let all = calls.chain(markers).chain(dispatches).chain(copies);
        all.filter(|time| *time > 0).min().unwrap_or(0)
    }
}

fn put<T: Default + Clone>(table: &mut Vec<T>, index: u32, value: T) {
    let index = index as usize;
    if table.len() <= index {
        table.resize(index + 1, T::default());
    }
    table[index] = value;
}
