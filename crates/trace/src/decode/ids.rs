//! Looks up what records refer to by number, and creates an entity for an unknown number.

use super::Decoder;
use crate::item::{
    AgentId, Item, KernelId, OperationId, ProcessId, Queue, QueueId, Stream, StreamId, Thread, ThreadId,
};
use roctop_ring::record::{self, Domain};
use std::sync::Arc;

/// Where a dispatch ran. Few distinct ones occur, so they are cached.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Placement {
    pub(super) agent: AgentId,
    pub(super) queue: QueueId,
    pub(super) stream: Option<StreamId>,
    pub(super) thread: Option<ThreadId>,
}

impl Decoder {
    pub(super) fn place(&mut self, process: ProcessId, found: &record::Dispatch) -> Placement {
        let key = (process.0, found.agent, found.queue, found.stream, found.tid);
        let number = u64::from(found.queue) << 32 ^ u64::from(found.stream) << 16 ^ u64::from(found.tid);
        if let Some(known) = self.recent.places.get(number, key) {
            return known;
        }
        let agent = self.agent_id(process, found.agent);
        let place = Placement {
            agent,
            queue: self.queue_id(process, found.queue, agent),
            stream: found
                .stream
                .checked_sub(1)
                .map(|number| self.stream_id(process, number)),
            thread: (found.tid != 0).then(|| self.thread_id(process, found.tid, "")),
        };
        self.recent.places.keep(number, key, place)
    }

    pub(super) fn kernel_of(&mut self, process: ProcessId, object: u64, name: u32, submit: u64) -> KernelId {
        if let Some(known) = self.recent.kernels.get(process, object) {
            return known;
        }
        let state = &self.processes[process.0 as usize];
        if let Some(symbols) = state.symbols.get(&object) {
            if let [only] = symbols.as_slice() {
                return self.recent.kernels.keep(process, object, only.kernel);
            }
            // An address may be reused after an unload: the last symbol loaded before the submission counts.
            let fits = symbols
                .iter()
                .rev()
                .find(|symbol| submit == 0 || symbol.since <= submit);
            if let Some(symbol) = fits.or(symbols.last()) {
                return symbol.kernel;
            }
        }
        let named = state.strings.get(&name).cloned();
        let text = named.unwrap_or_else(|| format!("(unnamed kernel {object:#x})").into());
        self.kernel(&text, 0, 0, None)
    }

    /// The kernels that an object is, one after the other; `None` if its dispatches have to say.
    pub fn kernels_of(&self, process: ProcessId, object: u64) -> Option<impl Iterator<Item = KernelId>> {
        let symbols = self.processes.get(process.0 as usize)?.symbols.get(&object)?;
        (!symbols.is_empty()).then(|| symbols.iter().map(|symbol| symbol.kernel))
    }

    /// The operation of this number, if it has a name.
    pub fn operation_of(&self, process: ProcessId, domain: Domain, op: u16) -> Option<OperationId> {
        let known = &self.processes.get(process.0 as usize)?.operations;
        known.get(&(domain.0, op)).copied()
    }

    pub(super) fn queue_id(&mut self, process: ProcessId, number: u32, agent: AgentId) -> QueueId {
        let key = (process.0, number);
        if let Some(known) = self.recent.queues.get(u64::from(number), key) {
            return known;
        }
        if let Some(known) = self.processes[process.0 as usize].queues.get(&number) {
            return self.recent.queues.keep(u64::from(number), key, known.id);
        }
        let id = QueueId(self.names.next_queue());
        let queue = Queue {
            id,
            process,
            number,
            agent,
            ..Queue::default()
        };
        self.processes[process.0 as usize].queues.insert(number, queue);
        self.names.set_agent_of_queue(id, agent);
        self.items.push(Item::Queue(queue));
        id
    }

    pub(super) fn stream(&mut self, process: ProcessId, fact: &record::Stream) {
        let name = self.processes[process.0 as usize]
            .strings
            .get(&fact.name)
            .cloned()
            .unwrap_or_default();
        let id = self.stream_id(process, fact.id);
        if !name.is_empty() {
            self.items.push(Item::Stream(Stream {
                id,
                process,
                number: fact.id,
                name,
            }));
        }
    }

    pub(super) fn stream_id(&mut self, process: ProcessId, number: u32) -> StreamId {
        let key = (process.0, number);
        if let Some(known) = self.recent.streams.get(u64::from(number), key) {
            return known;
        }
        if let Some(known) = self.processes[process.0 as usize].streams.get(&number) {
            return self.recent.streams.keep(u64::from(number), key, *known);
        }
        let id = StreamId(self.names.next_stream());
        self.processes[process.0 as usize].streams.insert(number, id);
        self.items.push(Item::Stream(Stream {
            id,
            process,
            number,
            name: Arc::default(),
        }));
        id
    }

    /// Handles a thread start record. Earlier records may have used the thread's id already.
    pub(super) fn thread_start(&mut self, process: ProcessId, tid: u32, name: &str) {
        let state = &self.processes[process.0 as usize];
        let known = state.threads.contains_key(&tid);
        let is_named = state.named_threads.contains(&tid);
        let id = self.thread_id(process, tid, name);
        if known && !name.is_empty() && !is_named {
            self.items.push(Item::Thread(Thread {
                id,
                process,
                tid,
                name: name.into(),
            }));
        }
    }

    /// Names a thread as the program wishes. The kernel's name may come before or after and does not replace it.
    pub(super) fn thread_named(&mut self, process: ProcessId, tid: u32, name: &str) {
        if name.is_empty() {
            return;
        }
        let id = self.thread_id(process, tid, name);
        self.processes[process.0 as usize].named_threads.insert(tid);
        self.items.push(Item::Thread(Thread {
            id,
            process,
            tid,
            name: name.into(),
        }));
    }

    pub(super) fn thread_id(&mut self, process: ProcessId, tid: u32, name: &str) -> ThreadId {
        let key = (process.0, tid);
        if let Some(known) = self.recent.threads.get(u64::from(tid), key) {
            return known;
        }
        if let Some(known) = self.processes[process.0 as usize].threads.get(&tid) {
            return self.recent.threads.keep(u64::from(tid), key, *known);
        }
        let id = ThreadId(self.names.next_thread());
        self.processes[process.0 as usize].threads.insert(tid, id);
        self.items.push(Item::Thread(Thread {
            id,
            process,
            tid,
            name: name.into(),
        }));
        id
    }

    #[inline]
    pub(super) fn operation(&mut self, process: ProcessId, domain: Domain, op: u16) -> OperationId {
        let known = self.recent.operations.get(u64::from(op), (process.0, domain.0, op));
        known.unwrap_or_else(|| self.find_operation(process, domain, op))
    }

    #[cold]
    fn find_operation(&mut self, process: ProcessId, domain: Domain, op: u16) -> OperationId {
        let key = (process.0, domain.0, op);
        let state = &self.processes[process.0 as usize];
        if let Some(known) = state.operations.get(&(domain.0, op)) {
            return self.recent.operations.keep(u64::from(op), key, *known);
        }
        let named = state.operation_names.get(&(domain.0, op)).cloned();
        let named = named.or_else(|| {
            let is_marker = domain == Domain::MARKER;
            record::marker_call::name(op).filter(|_| is_marker).map(Arc::from)
        });
        let text = named
            .clone()
            .unwrap_or_else(|| format!("{}#{op}", domain.name().unwrap_or("api")).into());
        let (id, new) = self.names.operation(domain.0, &text);
        if let Some(new) = new {
            self.items.push(Item::Operation(new));
        }
        // A name may still arrive, so only a named operation is cached.
        if named.is_some() {
            self.processes[process.0 as usize].operations.insert((domain.0, op), id);
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numbered_thread_gets_its_name_from_a_later_record() {
        let (mut decoder, process) = (Decoder::default(), ProcessId(0));
        decoder.state(process);
        let id = decoder.thread_id(process, 42, "");
        decoder.thread_start(process, 42, "worker");
        decoder.thread_start(process, 43, "other");
        let names: Vec<(ThreadId, Arc<str>)> = decoder
            .take_items()
            .into_iter()
            .filter_map(|item| match item {
                Item::Thread(thread) => Some((thread.id, thread.name)),
                _ => None,
            })
            .collect();
        assert_eq!(
            names,
            [(id, "".into()), (id, "worker".into()), (ThreadId(1), "other".into())]
        );
    }

    #[test]
    fn names_given_by_the_program_win_over_the_kernels() {
        let (mut decoder, process) = (Decoder::default(), ProcessId(0));
        decoder.state(process);
        decoder.thread_named(process, 42, "loader");
        decoder.thread_start(process, 42, "python3");
        decoder.state(process).strings.insert(1, "left card".into());
        let agent = record::Agent {
            kind: 1,
            ..record::Agent::default()
        };
        let status = record::Status {
            code: record::status::AGENT_NAME,
            text: 1,
            ..record::Status::default()
        };
        let slots = |head: record::Head, payload: &[[u64; 6]]| -> Vec<record::Slot> {
            let heads =
                std::iter::once(head).chain(std::iter::repeat(record::Head::new(record::CONTINUATION, 0, 1, 0)));
            let slot = |(head, words): (record::Head, &[u64; 6])| {
                let [a, b, c, d, e, f] = *words;
                [head.0, a, b, c, d, e, f, 0]
            };
            heads.zip(payload).map(slot).collect()
        };
        let none = Domain::NONE;
        decoder.fact(process, &slots(record::Agent::head(0, none), &agent.payload()));
        decoder.fact(process, &slots(record::Status::head(0, none), &status.payload()));
        let names: Vec<Arc<str>> = decoder
            .take_items()
            .into_iter()
            .filter_map(|item| match item {
                Item::Thread(thread) => Some(thread.name),
                Item::Agent(agent) => Some(agent.product),
                _ => None,
            })
            .collect();
        assert_eq!(names, ["loader".into(), "loader".into(), "".into(), "left card".into()]);
    }
}
