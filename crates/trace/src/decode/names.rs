//! Dense ids of a session: a name keeps its id.

use crate::item::{
    AgentId, Code, CounterId, Kernel, KernelId, NodeId, Operation, OperationId, QueueId, Registers, TextId,
};
use crate::kernel_name;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of distinct texts that get an id each.
const MAX_TEXTS: u32 = 1 << 18;
/// Shared name of all texts beyond the limit.
pub const OVERFLOW_TEXT: &str = "(one of many more texts)";
/// Part of [`MAX_TEXTS`] that argument texts may use; the rest is for markers.
const MAX_ARGUMENTS: u32 = MAX_TEXTS - (1 << 16);

/// Number of texts beyond the limit that are still recognized: each of two generations holds this many.
const MAX_RECENT_TEXTS: usize = 1 << 15;

/// Ids assigned so far.
#[derive(Clone, Default)]
pub(super) struct Names {
    kernels: HashMap<(Arc<str>, u32, Option<Registers>), KernelId>,
    /// The same by id.
    known_kernels: Vec<Kernel>,
    operations: HashMap<(u8, Arc<str>), OperationId>,
    texts: HashMap<Arc<str>, TextId>,
    /// Whether every text gets an id, without a limit.
    pub(super) is_unlimited: bool,
    /// Number of texts beyond the limit, and the most recent of them.
    further: u32,
    late: HashMap<Arc<str>, TextId>,
    before: HashMap<Arc<str>, TextId>,
    counters: HashMap<(Arc<str>, NodeId), CounterId>,
    agents: u32,
    queues: u32,
    streams: u32,
    threads: u32,
    queue_agents: HashMap<QueueId, AgentId>,
}

impl std::hash::Hash for Registers {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.vgpr, self.agpr, self.sgpr).hash(state);
    }
}

impl Names {
    /// Id of a kernel, and the kernel if it is new. Kernels with equal name, LDS size and registers are one kernel, in
    /// any process.
    pub(super) fn kernel(
        &mut self,
        mangled: &Arc<str>,
        symbol: u32,
        group_size: u32,
        registers: Option<Registers>,
    ) -> (KernelId, Option<Kernel>) {
        let key = (mangled.clone(), group_size, registers);
        if let Some(known) = self.kernels.get(&key) {
            return (*known, None);
        }
        let id = KernelId(self.kernels.len() as u32);
        self.kernels.insert(key, id);
        let name = kernel_name::demangle(mangled).into();
        let internal = mangled.starts_with("__amd_rocclr_") || mangled.starts_with("(unnamed kernel");
        let kernel = Kernel {
            id,
            mangled: mangled.clone(),
            name,
            symbol,
            group_size,
            registers,
            code: None,
            internal,
        };
        self.known_kernels.push(kernel.clone());
        (id, Some(kernel))
    }

    /// Adds what a code object says of a kernel; the kernel if that is new.
    pub(super) fn code(&mut self, id: KernelId, code: &Code) -> Option<Kernel> {
        let kernel = self.known_kernels.get_mut(id.0 as usize)?;
        let agreed = Some(kernel.code.map_or(*code, |known| known.agreed(code)));
        if kernel.code == agreed {
            return None;
        }
        kernel.code = agreed;
        Some(kernel.clone())
    }

    /// Id of an operation, and the operation if it is new.
    pub(super) fn operation(&mut self, domain: u8, name: &Arc<str>) -> (OperationId, Option<Operation>) {
        let key = (domain, name.clone());
        if let Some(known) = self.operations.get(&key) {
            return (*known, None);
        }
        let id = OperationId(self.operations.len() as u32);
        self.operations.insert(key, id);
        (
            id,
            Some(Operation {
                id,
                domain,
                name: name.clone(),
            }),
        )
    }

    /// Id of a counter of a topology node, and whether it is new.
    pub(super) fn counter(&mut self, name: &Arc<str>, node: NodeId) -> (CounterId, bool) {
        let next = CounterId(self.counters.len() as u32);
        let id = *self.counters.entry((name.clone(), node)).or_insert(next);
        (id, id == next)
    }

    /// Id of an argument text, as [`Names::text`]; `None` beyond the limit.
    pub(super) fn arguments(&mut self, text: &str) -> Option<(TextId, Option<Arc<str>>)> {
        let has_room = self.is_unlimited || self.texts.len() < MAX_ARGUMENTS as usize || self.texts.contains_key(text);
        has_room.then(|| self.text(text))
    }

    /// Id of a marker text, and the text if it is new. Beyond the limit all texts share one id; without a limit, a
    /// repeated text may get several.
    pub(super) fn text(&mut self, text: &str) -> (TextId, Option<Arc<str>>) {
        if let Some(known) = self.texts.get(text) {
            return (*known, None);
        }
        let count = self.texts.len() as u32;
        if count >= MAX_TEXTS && self.is_unlimited {
            return self.text_beyond_limit(text);
        }
        let (id, kept): (_, Arc<str>) = if count < MAX_TEXTS {
            (TextId(count), text.into())
        } else {
            (TextId(MAX_TEXTS), OVERFLOW_TEXT.into())
        };
        if count <= MAX_TEXTS {
            self.texts.insert(kept.clone(), id);
            return (id, Some(kept));
        }
        (id, None)
    }

    fn text_beyond_limit(&mut self, text: &str) -> (TextId, Option<Arc<str>>) {
        if let Some(known) = self.late.get(text).or_else(|| self.before.get(text)) {
            return (*known, None);
        }
        let id = TextId(MAX_TEXTS.saturating_add(self.further));
        self.further = self.further.saturating_add(1);
        if self.late.len() >= MAX_RECENT_TEXTS {
            self.before = std::mem::take(&mut self.late);
        }
        let text: Arc<str> = text.into();
        self.late.insert(text.clone(), id);
        (id, Some(text))
    }

    /// Drops all texts; their ids could be given a second time.
    pub(super) fn forget_texts(&mut self) {
        self.texts = HashMap::new();
        self.late = HashMap::new();
        self.before = HashMap::new();
    }

    /// Number of ids that a run of calls and dispatches may refer to.
    pub(super) fn count(&self) -> u64 {
        let named = self.kernels.len() + self.operations.len();
        [self.agents, self.queues, self.streams, self.threads]
            .into_iter()
            .fold(named as u64, |sum, count| sum + u64::from(count))
    }

    pub(super) fn next_agent(&mut self) -> u32 {
        next(&mut self.agents)
    }

    pub(super) fn next_queue(&mut self) -> u32 {
        next(&mut self.queues)
    }

    pub(super) fn next_stream(&mut self) -> u32 {
        next(&mut self.streams)
    }

    pub(super) fn next_thread(&mut self) -> u32 {
        next(&mut self.threads)
    }

    pub(super) fn set_agent_of_queue(&mut self, queue: QueueId, agent: AgentId) {
        self.queue_agents.insert(queue, agent);
    }

    pub(super) fn forget_queue(&mut self, queue: QueueId) {
        self.queue_agents.remove(&queue);
    }

    pub(super) fn agent_of_queue(&self, queue: QueueId) -> Option<AgentId> {
        self.queue_agents.get(&queue).copied()
    }
}

fn next(counter: &mut u32) -> u32 {
    let number = *counter;
    *counter += 1;
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_every_text_has_an_id() {
        let texts_of = |is_unlimited| {
            let mut names = Names {
                is_unlimited,
                ..Names::default()
            };
            for number in 0..MAX_TEXTS {
                assert_eq!(names.text(&number.to_string()).0, TextId(number));
            }
            let found = ["a", "b", "a", "7"].map(|text| {
                let (id, new) = names.text(text);
                (id.0, new.as_deref().map(str::to_owned))
            });
            assert_eq!(names.arguments("c").is_some(), is_unlimited);
            found
        };
        let new = |text: &str| Some(text.to_owned());
        let many = (MAX_TEXTS, None);
        assert_eq!(
            texts_of(false),
            [(MAX_TEXTS, new(OVERFLOW_TEXT)), many.clone(), many, (7, None)]
        );
        let first = (MAX_TEXTS, new("a"));
        assert_eq!(
            texts_of(true),
            [first, (MAX_TEXTS + 1, new("b")), (MAX_TEXTS, None), (7, None)]
        );
    }

    #[test]
    fn repeated_texts_are_recognized_within_bounds() {
        let mut names = Names {
            is_unlimited: true,
            ..Names::default()
        };
        for number in 0..MAX_TEXTS + 200_000 {
            let (id, new) = names.text(&number.to_string());
            assert_eq!((id.0, new.is_some()), (number, true));
        }
        assert!(names.late.len() + names.before.len() <= 2 * MAX_RECENT_TEXTS);
    }
}
