//! Creation and destruction of queues.

use super::{Decoder, MAX_WAITING};
use crate::item::{Item, ProcessId};
use roctop_ring::record;

impl Decoder {
    /// Decodes a queue fact; its times wait until the clock is ready.
    pub(super) fn queue(&mut self, process: ProcessId, fact: &record::Queue) {
        let agent = self.agent_id(process, fact.agent);
        self.queue_id(process, fact.id, agent);
        let state = &mut self.processes[process.0 as usize];
        if !state.clock.is_ready() {
            if state.queue_facts.len() < MAX_WAITING {
                state.queue_facts.push(*fact);
            }
            return;
        }
        let at = state.clock.ticks(fact.time);
        let Some(queue) = state.queues.get_mut(&fact.id) else {
            return;
        };
        queue.size = fact.size;
        queue.intercepted = fact.intercepted == 1;
        match fact.state {
            1 => queue.created = at,
            2 => queue.destroyed = at,
            _ => return,
        }
        self.items.push(Item::Queue(*queue));
    }

    /// Decodes the facts that waited for the clock.
    pub(super) fn queue_times(&mut self, process: ProcessId) {
        for fact in std::mem::take(&mut self.processes[process.0 as usize].queue_facts) {
            self.queue(process, &fact);
        }
    }
}
