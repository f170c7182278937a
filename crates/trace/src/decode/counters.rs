//! Hardware counters and their values. A value names its dispatch; this module finds the kernel.

use super::Decoder;
use crate::gauge::device;
use crate::gauge::metric::Sample;
use crate::gauge::{Count, Counter, Scope};
use crate::item::{CounterInfo, CounterInstances, CounterValue, Dispatch, Item, KernelId, Nanos, NodeId, ProcessId};
use crate::pc_sampling;
use roctop_ring::record::{self, counter_source};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum counter number that is accepted from a process.
const MAX_COUNTERS: u32 = 1 << 16;
/// Number of recent dispatches whose kernel is kept for later values.
const MAX_RECENT_DISPATCHES: usize = 1 << 16;
/// Maximum number of values that wait for their dispatch.
const MAX_WAITING_VALUES: usize = 1 << 14;

/// Joins counter values with dispatches, whichever comes first.
#[derive(Default)]
pub(super) struct CounterJoin {
    recent: HashMap<(ProcessId, u64), (KernelId, Nanos)>,
    order: VecDeque<(ProcessId, u64)>,
    waiting: VecDeque<CounterValue>,
    /// Last value of each device-wide counter.
    before: HashMap<u32, (Nanos, f64)>,
    is_used: bool,
}

impl Decoder {
    pub(super) fn counter(&mut self, process: ProcessId, fact: &record::Counter) {
        if fact.id >= MAX_COUNTERS {
            return;
        }
        let agent = self.agent_id(process, fact.agent);
        let node = NodeId {
            machine: self.machine(process),
            node: self.node_of(process, fact.agent),
        };
        let state = &self.processes[process.0 as usize];
        let text = |id: u32| state.strings.get(&id).filter(|_| id != 0).cloned().unwrap_or_default();
        let name: Arc<str> = match text(fact.name) {
            name if name.is_empty() => format!("(unnamed counter {})", fact.id).into(),
            name => name,
        };
        let (id, _) = self.names.counter(&name, node);
        let info = CounterInfo {
            id,
            process,
            agent,
            name: name.clone(),
            description: text(fact.description),
            block: text(fact.block),
            expression: text(fact.expression),
            dimensions: text(fact.dimensions),
            flags: fact.flags,
            pass: fact.pass,
            handle: fact.handle,
        };
        let known = &mut self.processes[process.0 as usize].counters;
        known.insert(fact.id, info.id);
        self.counter_join.is_used = true;
        if fact.pass > 0 {
            let over_time = fact.flags & record::counter_flag::DEVICE != 0;
            self.items.push(Item::Counter(Arc::new(Counter {
                id: id.0,
                name,
                unit: if over_time { "/s" } else { "" }.into(),
                node: Some(node),
                scope: if over_time { Scope::Device } else { Scope::Dispatch },
                source: if over_time { "device" } else { "kernel" }.into(),
                state: Ok(()),
                perturbs: if over_time { "" } else { "SERIALIZED" }.into(),
            })));
        }
        self.items.push(Item::CounterInfo(info));
    }

    /// Decodes one PC sampling configuration of an agent.
    pub(super) fn sampling(&mut self, process: ProcessId, fact: &record::SamplingConfiguration) {
        let agent = self.agent_id(process, fact.agent);
        self.items.push(Item::Sampling(pc_sampling::Configuration {
            process,
            agent,
            method: fact.method,
            unit: fact.unit,
            minimum: fact.minimum,
            maximum: fact.maximum,
            is_power_of_two: fact.flags & 1 != 0,
        }));
    }

    pub(super) fn pc_sample(&mut self, process: ProcessId, found: &record::PcSample) {
        let state = &self.processes[process.0 as usize];
        self.items.push(Item::PcSample(pc_sampling::Sample {
            process,
            at: state.clock.hsa(found.time),
            exec_mask: found.exec_mask,
            dispatch: found.dispatch_id,
            code_object: found.code_object,
            offset: found.offset,
            wave_count: found.wave_count,
            is_issued: found.issued != 0,
            instruction: found.instruction,
            reason: (found.snapshot & 0xf) as u16,
            method: found.method,
            workgroup: [found.workgroup_x, found.workgroup_y, found.workgroup_z],
            wave: found.wave,
            snapshot: found.snapshot,
            hardware: u64::from(found.hardware_high) << 32 | u64::from(found.hardware_low),
        }));
    }

    /// Decodes a value; drops it if its counter is unknown or it is not finite.
    pub(super) fn counter_value(&mut self, process: ProcessId, found: &record::CounterValue) {
        let agent = self.agent_id(process, found.agent);
        let state = &self.processes[process.0 as usize];
        let value = f64::from_bits(found.value);
        let Some(counter) = state
            .counters
            .get(&found.counter)
            .copied()
            .filter(|_| value.is_finite())
        else {
            return;
        };
        let is_device = found.source == counter_source::DEVICE;
        let value = CounterValue {
            process,
            counter,
            agent,
            dispatch: (!is_device).then_some(found.dispatch_id),
            at: if is_device { state.clock.ticks(found.time) } else { 0 },
            value,
        };
        self.items.push(Item::CounterValue(value));
        self.emit_count(&value);
    }

    /// Decodes instance values; drops them if the counter is unknown or one is not finite.
    pub(super) fn counter_instances(&mut self, process: ProcessId, found: &record::CounterInstances) {
        let state = &self.processes[process.0 as usize];
        let values = [found.value, found.second, found.third, found.fourth].map(f64::from_bits);
        let count = usize::from(found.count).min(values.len());
        if let Some(counter) = state.counters.get(&found.counter).copied()
            && values.iter().take(count).all(|value| value.is_finite())
        {
            self.items.push(Item::CounterInstances(CounterInstances {
                process,
                counter,
                dispatch: found.dispatch_id,
                first: found.first,
                count: count as u8,
                values,
            }));
        }
    }

    /// Emits the value for the screen: by kernel, or as growth per second for a whole agent.
    fn emit_count(&mut self, value: &CounterValue) {
        let (at, amount, kernel) = if let Some(dispatch) = value.dispatch {
            let Some((kernel, end)) = self.counter_join.recent.get(&(value.process, dispatch)).copied() else {
                self.counter_join.waiting.push_back(*value);
                if self.counter_join.waiting.len() > MAX_WAITING_VALUES {
                    self.counter_join.waiting.pop_front();
                }
                return;
            };
            (end, value.value, Some(kernel))
        } else {
            let before = self
                .counter_join
                .before
                .insert(value.counter.0, (value.at, value.value));
            let Some(before) = before.filter(|before| value.at > before.0) else {
                return;
            };
            let growth = (value.value - before.1).max(0.0);
            (value.at, growth * 1e9 / (value.at - before.0) as f64, None)
        };
        self.items.push(Item::Count(Count {
            counter: value.counter.0,
            at,
            value: amount,
            kernel,
        }));
    }

    /// Remembers a decoded dispatch and emits the values that waited for it.
    pub(super) fn join_dispatch(&mut self, dispatch: &Dispatch) {
        if !self.counter_join.is_used {
            return;
        }
        let key = (dispatch.process, dispatch.dispatch_id);
        self.counter_join
            .recent
            .insert(key, (dispatch.kernel, dispatch.span.end));
        self.counter_join.order.push_back(key);
        if self.counter_join.order.len() > MAX_RECENT_DISPATCHES
            && let Some(old) = self.counter_join.order.pop_front()
        {
            self.counter_join.recent.remove(&old);
        }
        let waiting = std::mem::take(&mut self.counter_join.waiting);
        for value in waiting {
            if (value.process, value.dispatch) == (key.0, Some(key.1)) {
                self.emit_count(&value);
            } else {
                self.counter_join.waiting.push_back(value);
            }
        }
    }

    /// Emits one round of gauge samples, and the devices made from it.
    pub(super) fn gauges(&mut self, process: ProcessId, samples: &[Sample]) {
        let machine = self.machine(process);
        let samples: Vec<Sample> = samples.iter().map(|one| Sample { machine, ..one.clone() }).collect();
        let devices = device::devices(&samples).into_iter().map(Arc::new);
        self.items.extend(devices.map(Item::Device));
        self.items.extend(samples.into_iter().map(Item::Gauges));
    }

    fn node_of(&self, process: ProcessId, index: u32) -> u32 {
        let nodes = &self.processes[process.0 as usize].nodes;
        nodes.get(&index).copied().unwrap_or(index)
    }
}
