//! Memory of agents that is held now, by the program's own allocations; its peak; what was never freed.

use std::collections::VecDeque;
use std::sync::Arc;

use roctop_ring::record::memory;

use super::fx_hash::FastMap;
use roctop_trace::item::{AgentId, Allocation, Nanos, ProcessId, Span, ThreadId};

/// Allocations kept one by one; beyond, only sums are.
const MOST: usize = 1 << 20;
const MOST_PLACES: usize = 4096;
/// Frees that wait for their allocations: threads are delivered one after another, so the later may come first.
const MOST_FREED: usize = 1 << 16;
/// Allocations of a snapshot: the largest.
const SHOWN: usize = 200;

/// An allocation that is not freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Whose.
    pub process: ProcessId,
    /// Thread that asked for it.
    pub thread: ThreadId,
    /// Whose memory; none when unknown.
    pub agent: Option<AgentId>,
    /// When.
    pub at: Nanos,
    /// Bytes.
    pub bytes: u64,
    /// Address, or the handle of virtual memory.
    pub address: u64,
    /// The call around it, 0 unknown.
    pub correlation: u64,
}

/// Memory of one agent that one process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Whose.
    pub process: ProcessId,
    /// Of which agent; none when unknown.
    pub agent: Option<AgentId>,
    /// Bytes held, as the collector counted them.
    pub held: u64,
    /// When that was.
    pub held_at: Nanos,
    /// The most that was held.
    pub peak: u64,
    /// When that was.
    pub peak_at: Nanos,
    /// Allocations.
    pub allocations: u64,
    /// Frees.
    pub frees: u64,
}

/// What a snapshot has of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryValues {
    /// By process and agent.
    pub pools: Vec<Pool>,
    /// The largest allocations that are not freed, the largest first.
    pub held: Vec<Held>,
    /// How many are not freed.
    pub count: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// A process and an address in it.
type Place = (u32, u64);

/// Frees of what is not known to be allocated, by when they began; bounded.
#[derive(Debug, Default)]
struct Freed {
    by_place: FastMap<Place, Vec<Nanos>>,
    order: VecDeque<Place>,
}

impl Freed {
    fn put(&mut self, place: Place, begin: Nanos) {
        self.by_place.entry(place).or_default().push(begin);
        self.order.push_back(place);
        if self.order.len() > MOST_FREED
            && let Some(oldest) = self.order.pop_front()
        {
            self.take(oldest, 0);
        }
    }

    /// Takes the first free that began at `end` or later.
    fn take(&mut self, place: Place, end: Nanos) -> bool {
        let Some(begins) = self.by_place.get_mut(&place) else {
            return false;
        };
        let later = begins.iter().enumerate().filter(|(_, begin)| **begin >= end);
        let Some((at, _)) = later.min_by_key(|(_, begin)| **begin) else {
            return false;
        };
        begins.swap_remove(at);
        if begins.is_empty() {
            self.by_place.remove(&place);
        }
        true
    }
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    held: FastMap<Place, Held>,
    freed: Freed,
    pools: Vec<Pool>,
    values: Option<Arc<MemoryValues>>,
}

impl Memory {
    /// Memory was allocated or freed; mapping it is neither.
    pub(crate) fn add(&mut self, allocation: &Allocation) {
        let is_new = matches!(allocation.operation, memory::ALLOCATE | memory::VMEM_ALLOCATE);
        if !is_new && !matches!(allocation.operation, memory::FREE | memory::VMEM_FREE) {
            return;
        }
        self.values = None;
        let key = (allocation.process.0, allocation.address);
        let Span { begin, end } = allocation.span;
        let known = self.held.get(&key).map(|held| held.at);
        if !is_new {
            // What was allocated after it is not what it freed.
            if known.is_some_and(|at| at <= begin || begin == 0) {
                self.held.remove(&key);
            } else {
                self.freed.put(key, begin);
            }
        } else if !self.freed.take(key, end) && known.is_none_or(|at| at <= end) && self.held.len() < MOST {
            let held = Held {
                process: allocation.process,
                thread: allocation.thread,
                agent: allocation.agent,
                at: end,
                bytes: allocation.bytes,
                address: allocation.address,
                correlation: allocation.correlation,
            };
            self.held.insert(key, held);
        }
        let Allocation { process, agent, .. } = *allocation;
        let known = self
            .pools
            .iter()
            .position(|pool| (pool.process, pool.agent) == (process, agent));
        let at = match known {
            Some(at) => at,
            None if self.pools.len() < MOST_PLACES => {
                self.pools.push(Pool {
                    process,
                    agent,
                    ..Pool::default()
                });
                self.pools.len() - 1
            }
            None => return,
        };
        let pool = &mut self.pools[at];
        if end >= pool.held_at {
            (pool.held, pool.held_at) = (allocation.total, end);
        }
        if is_new {
            pool.allocations += 1;
        } else {
            pool.frees += 1;
        }
        if allocation.total > pool.peak {
            (pool.peak, pool.peak_at) = (allocation.total, end);
        }
    }

    /// What a snapshot has of it.
    pub(crate) fn values(&mut self) -> Arc<MemoryValues> {
        if let Some(values) = &self.values {
            return values.clone();
        }
        let mut held: Vec<Held> = self.held.values().copied().collect();
        let bytes = held.iter().fold(0u64, |sum, held| sum.saturating_add(held.bytes));
        let count = held.len() as u64;
        let order = |held: &Held| (std::cmp::Reverse(held.bytes), held.at, held.address);
        if held.len() > SHOWN {
            held.select_nth_unstable_by_key(SHOWN, order);
            held.truncate(SHOWN);
        }
        held.sort_by_key(order);
        let values = Arc::new(MemoryValues {
            pools: self.pools.clone(),
            held,
            count,
            bytes,
        });
        self.values = Some(values.clone());
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(operation: u16, address: u64, total: u64, at: Nanos) -> Allocation {
        Allocation {
            operation,
            address,
            bytes: 100,
            total,
            agent: Some(AgentId(1)),
            span: Span { begin: at, end: at + 1 },
            ..Allocation::default()
        }
    }

    #[test]
    fn in_whatever_order_threads_are_delivered_the_same_is_held() {
        // Allocated, freed and allocated again at one address; freed by another thread.
        let all = [
            told(memory::ALLOCATE, 0x1000, 100, 10),
            told(memory::FREE, 0x1000, 0, 20),
            told(memory::ALLOCATE, 0x1000, 100, 30),
            told(memory::FREE, 0x1000, 0, 40),
            told(memory::ALLOCATE, 0x1000, 100, 50),
        ];
        let orders = [[0, 1, 2, 3, 4], [1, 3, 0, 2, 4], [0, 2, 4, 1, 3], [1, 0, 2, 4, 3]];
        for (order, at) in orders.iter().flat_map(|order| (1..=5).map(move |count| (order, count))) {
            let mut store = Memory::default();
            order.iter().filter(|&&i| i < at).for_each(|&i| store.add(&all[i]));
            let (values, is_held) = (store.values(), at % 2 == 1);
            assert_eq!(values.count, u64::from(is_held), "{order:?} of {at}");
            assert!(values.held.iter().all(|held| held.at == all[at - 1].span.end));
            assert_eq!(values.pools[0].held, all[at - 1].total, "{order:?} of {at}");
        }
    }

    #[test]
    fn frees_of_what_was_never_seen_are_bounded() {
        let mut store = Memory::default();
        for address in 0..2 * MOST_FREED as u64 {
            store.add(&told(memory::FREE, address, 0, 20 + address));
        }
        assert_eq!(store.freed.by_place.len(), MOST_FREED);
    }

    #[test]
    fn what_was_not_freed_is_held_and_the_peak_stays() {
        let mut store = Memory::default();
        let mut total = 0u64;
        let mut tell = |operation, address, bytes: u64, at| {
            total = if operation == memory::ALLOCATE {
                total + bytes
            } else {
                total - bytes
            };
            store.add(&Allocation {
                operation,
                address,
                bytes,
                total,
                agent: Some(AgentId(1)),
                span: Span { begin: at, end: at },
                ..Allocation::default()
            });
        };
        tell(memory::ALLOCATE, 0x1000, 100, 10);
        tell(memory::ALLOCATE, 0x2000, 300, 20);
        tell(memory::FREE, 0x1000, 100, 30);
        tell(memory::ALLOCATE, 0x3000, 50, 40);
        let values = store.values();
        assert_eq!((values.count, values.bytes), (2, 350));
        assert_eq!(values.held[0].address, 0x2000);
        let pool = values.pools[0];
        assert_eq!((pool.held, pool.peak, pool.peak_at), (350, 400, 20));
        assert_eq!((pool.allocations, pool.frees), (3, 1));
    }
}
