//! Where processes may run and have run, by readings of /proc.

use super::fx_hash::FastMap;
use roctop_trace::binding::{Binding, CpuSet, Node};
use roctop_trace::item::ProcessId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of processes, and of threads of one.
const MAX: usize = 4096;

/// What was seen of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// CPUs that it may run on, as read last.
    pub allowed: CpuSet,
    /// CPUs that it ran on at the times of the readings.
    pub used: CpuSet,
    /// Number of readings.
    pub readings: u32,
}

/// What was read of a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bound {
    /// The last reading.
    pub last: Binding,
    /// What its node has.
    pub node: Option<Arc<Node>>,
    /// Its threads that call HIP or HSA, by thread id.
    pub threads: BTreeMap<u32, Seen>,
}

/// Whether it may be a machine; a recording may say anything.
fn is_credible(node: &Node) -> bool {
    const MAX_CORES: usize = 1 << 13;
    node.cores.len() <= MAX_CORES && node.numa.len() <= MAX && node.gpus.len() <= MAX && node.cards.len() <= MAX
}

/// By process.
#[derive(Clone, Debug, Default)]
pub struct Bindings(FastMap<u32, Arc<Bound>>);

impl Bindings {
    pub(super) fn add(&mut self, process: ProcessId, binding: &Binding) {
        if self.0.len() >= MAX && !self.0.contains_key(&process.0) {
            return;
        }
        let bound = Arc::make_mut(self.0.entry(process.0).or_default());
        for thread in &binding.threads {
            if bound.threads.len() >= MAX && !bound.threads.contains_key(&thread.tid) {
                continue;
            }
            let seen = bound.threads.entry(thread.tid).or_default();
            seen.allowed.clone_from(&thread.allowed);
            seen.readings = seen.readings.saturating_add(1);
            if let Some(cpu) = thread.cpu {
                seen.used = seen.used.or(&CpuSet::of([cpu]));
            }
        }
        if let Some(node) = binding.node.as_ref().filter(|node| is_credible(node)) {
            bound.node = Some(Arc::new((**node).clone()));
        }
        if binding.at >= bound.last.at {
            bound.last = Binding {
                threads: Vec::new(),
                node: None,
                ..binding.clone()
            };
        }
    }

    /// What was read of a process.
    pub fn of(&self, process: ProcessId) -> Option<&Bound> {
        self.0.get(&process.0).map(|bound| &**bound)
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_trace::binding::{Numa, Thread};

    fn reading(at: u64, tid: u32, cpu: Option<u32>) -> Binding {
        let allowed = CpuSet::of(0..8);
        Binding {
            at,
            allowed: allowed.clone(),
            threads: vec![Thread { tid, allowed, cpu }],
            ..Binding::default()
        }
    }

    #[test]
    fn readings_of_a_thread_come_together() {
        let (mut bindings, process) = (Bindings::default(), ProcessId(3));
        let mut first = reading(10, 7, Some(2));
        first.node = Some(Box::default());
        bindings.add(process, &first);
        bindings.add(process, &reading(30, 7, Some(5)));
        // An earlier one of another thread, as two recordings that are merged have it.
        let mut late = reading(20, 8, None);
        late.allowed = CpuSet::default();
        bindings.add(process, &late);
        let bound = bindings.of(process).expect("it was read");
        assert_eq!(
            (bound.threads[&7].used.to_string(), bound.threads[&7].readings),
            ("2,5".into(), 2)
        );
        assert_eq!(
            (bound.threads[&8].used.is_empty(), bound.threads[&8].readings),
            (true, 1)
        );
        assert_eq!((bound.last.at, bound.last.allowed.count()), (30, 8));
        assert!(bound.node.is_some() && bindings.of(ProcessId(4)).is_none());
    }

    #[test]
    fn what_is_no_machine_is_not_kept() {
        let (mut bindings, process) = (Bindings::default(), ProcessId(0));
        let mut hostile = reading(1, 1, Some(u32::MAX));
        hostile.node = Some(Box::new(Node {
            numa: vec![Numa::default(); MAX + 1],
            ..Node::default()
        }));
        bindings.add(process, &hostile);
        let bound = bindings.of(process).expect("it was read");
        assert!(bound.node.is_none());
        for tid in 0..2 * MAX as u32 {
            bindings.add(process, &reading(2, tid, None));
        }
        assert_eq!(bindings.of(process).map(|bound| bound.threads.len()), Some(MAX));
    }
}
