//! Agent memory held by the program's own allocations: current, peak, and never freed.

use std::collections::VecDeque;
use std::sync::Arc;

use roctop_ring::record::memory;

use super::fx_hash::FastMap;
use super::gauges::History;
use roctop_trace::item::{AgentId, Allocation, ApiCall, Nanos, OperationId, ProcessId, Span, ThreadId};
use roctop_trace::site::SiteNumber;

/// Maximum number of individually kept allocations; beyond it, only sums are kept.
const MAX_ALLOCATIONS: usize = 1 << 20;
const MAX_PLACES: usize = 4096;
/// Maximum number of frees that wait for their allocation: threads are read one after another, so the later event may
/// arrive first.
const MAX_FREED: usize = 1 << 16;
/// Maximum number of allocations in a snapshot: the largest.
const SNAPSHOT_ALLOCATIONS: usize = 1 << 16;
/// Maximum number of allocations that wait for the call that made them, and number of calls for which they wait: records of
/// calls come soon after those of the allocations in them.
const MAX_WAITING: usize = 1 << 16;
const MAX_CALLS: u64 = 1 << 16;

/// An allocation that has not been freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveAllocation {
    /// Process.
    pub process: ProcessId,
    /// Thread that requested it.
    pub thread: ThreadId,
    /// Agent that owns it; `None` if unknown.
    pub agent: Option<AgentId>,
    /// Time of the allocation.
    pub at: Nanos,
    /// Size, bytes.
    pub bytes: u64,
    /// Address, or handle of virtual memory.
    pub address: u64,
    /// Correlation id of the enclosing call, 0 if unknown.
    pub correlation: u64,
    /// Function of that call, if it was recorded.
    pub operation: Option<OperationId>,
    /// Where in the program that call is.
    pub site: SiteNumber,
}

/// Allocations that have not been freed of one call site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBySite {
    /// Process.
    pub process: ProcessId,
    /// Function that allocated, if it is known.
    pub operation: Option<OperationId>,
    /// Where in the program it was called.
    pub site: SiteNumber,
    /// Number of allocations.
    pub count: u64,
    /// Their size, bytes.
    pub bytes: u64,
}

/// Sums by call site, largest first.
pub fn by_site<'a>(held: impl Iterator<Item = &'a LiveAllocation>) -> Vec<HeldBySite> {
    let mut sums: FastMap<(u32, u32, u16), HeldBySite> = FastMap::default();
    for held in held {
        let operation = held.operation.map_or(u32::MAX, |operation| operation.0);
        let sum = sums
            .entry((held.process.0, operation, held.site.0))
            .or_insert(HeldBySite {
                process: held.process,
                operation: held.operation,
                site: held.site,
                ..HeldBySite::default()
            });
        sum.count += 1;
        sum.bytes = sum.bytes.saturating_add(held.bytes);
    }
    let mut sums: Vec<HeldBySite> = sums.into_values().collect();
    sums.sort_by_key(|sum| {
        let operation = sum.operation.map(|operation| operation.0);
        (std::cmp::Reverse(sum.bytes), sum.process.0, operation, sum.site.0)
    });
    sums
}

/// Memory of one agent that one process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Process.
    pub process: ProcessId,
    /// Agent; `None` if unknown.
    pub agent: Option<AgentId>,
    /// Bytes held, as the collector counted them.
    pub held: u64,
    /// Time of that count.
    pub held_at: Nanos,
    /// Peak of bytes held.
    pub peak: u64,
    /// Time of the peak.
    pub peak_at: Nanos,
    /// Number of allocations.
    pub allocations: u64,
    /// Number of frees.
    pub frees: u64,
}

/// Memory part of a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryValues {
    /// By process and agent.
    pub pools: Vec<Pool>,
    /// Bytes held of each of them, by second.
    pub trends: Vec<History>,
    /// The largest allocations that have not been freed, largest first.
    pub held: Vec<LiveAllocation>,
    /// All of them by call site, largest first.
    pub sites: Vec<HeldBySite>,
    /// Number of allocations not freed.
    pub count: u64,
    /// Size of these, bytes.
    pub bytes: u64,
}

/// A process and an address in it.
type AddressKey = (u32, u64);

/// Frees without a known allocation, by begin; bounded.
#[derive(Debug, Default)]
struct Freed {
    by_place: FastMap<AddressKey, Vec<Nanos>>,
    order: VecDeque<AddressKey>,
}

impl Freed {
    fn put(&mut self, place: AddressKey, begin: Nanos) {
        self.by_place.entry(place).or_default().push(begin);
        self.order.push_back(place);
        if self.order.len() > MAX_FREED
            && let Some(oldest) = self.order.pop_front()
        {
            self.take(oldest, 0);
        }
    }

    /// Removes the first free that began at `end` or later.
    fn take(&mut self, place: AddressKey, end: Nanos) -> bool {
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

/// Memory of all processes.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    held: FastMap<AddressKey, LiveAllocation>,
    freed: Freed,
    /// Allocations whose call has not been seen, by process and correlation id.
    waiting: FastMap<(u32, u64), Vec<AddressKey>>,
    /// The same in the order in which they came, each with the number of calls before.
    arrived: VecDeque<((u32, u64), u64)>,
    calls: u64,
    pools: Vec<Pool>,
    trends: Vec<History>,
    values: Option<Arc<MemoryValues>>,
}

impl Memory {
    /// Counts an allocation or free; mapping is neither.
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
            // A free cannot release what was allocated after it.
            if known.is_some_and(|at| at <= begin || begin == 0) {
                self.held.remove(&key);
            } else {
                self.freed.put(key, begin);
            }
        } else if !self.freed.take(key, end) && known.is_none_or(|at| at <= end) && self.held.len() < MAX_ALLOCATIONS {
            let held = LiveAllocation {
                process: allocation.process,
                thread: allocation.thread,
                agent: allocation.agent,
                at: end,
                bytes: allocation.bytes,
                address: allocation.address,
                correlation: allocation.correlation,
                ..LiveAllocation::default()
            };
            self.held.insert(key, held);
            if allocation.correlation != 0 {
                self.wait((allocation.process.0, allocation.correlation), key);
            }
        }
        let Allocation { process, agent, .. } = *allocation;
        let known = self
            .pools
            .iter()
            .position(|pool| (pool.process, pool.agent) == (process, agent));
        let at = match known {
            Some(at) => at,
            None if self.pools.len() < MAX_PLACES => {
                self.pools.push(Pool {
                    process,
                    agent,
                    ..Pool::default()
                });
                self.trends.push(History::default());
                self.pools.len() - 1
            }
            None => return,
        };
        let pool = &mut self.pools[at];
        if end >= pool.held_at {
            (pool.held, pool.held_at) = (allocation.total, end);
            self.trends[at].add(end, allocation.total as f64);
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

    fn wait(&mut self, call: (u32, u64), key: AddressKey) {
        self.waiting.entry(call).or_default().push(key);
        self.arrived.push_back((call, self.calls));
        self.give_up();
    }

    /// Whether allocations wait for their calls.
    pub(crate) fn awaits_calls(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Notes the calls that made allocations.
    pub(crate) fn called(&mut self, calls: &[ApiCall]) {
        self.calls += calls.len() as u64;
        for call in calls {
            let made = self.waiting.remove(&(call.process.0, call.correlation));
            for key in made.into_iter().flatten() {
                if let Some(held) = self
                    .held
                    .get_mut(&key)
                    .filter(|held| held.correlation == call.correlation)
                {
                    (held.operation, held.site) = (Some(call.operation), call.site);
                    self.values = None;
                }
            }
        }
        self.give_up();
    }

    /// Forgets those whose call does not come.
    fn give_up(&mut self) {
        let is_old = |first: &(_, u64), calls: u64| calls - first.1 > MAX_CALLS;
        while self
            .arrived
            .front()
            .is_some_and(|first| self.arrived.len() > MAX_WAITING || is_old(first, self.calls))
        {
            if let Some((call, _)) = self.arrived.pop_front() {
                self.waiting.remove(&call);
            }
        }
        if self.waiting.is_empty() {
            self.arrived.clear();
        }
    }

    /// Memory part of a snapshot.
    pub(crate) fn values(&mut self) -> Arc<MemoryValues> {
        if let Some(values) = &self.values {
            return values.clone();
        }
        let mut held: Vec<LiveAllocation> = self.held.values().copied().collect();
        let bytes = held.iter().fold(0u64, |sum, held| sum.saturating_add(held.bytes));
        let count = held.len() as u64;
        let sites = by_site(held.iter());
        let order = |held: &LiveAllocation| (std::cmp::Reverse(held.bytes), held.at, held.address);
        if held.len() > SNAPSHOT_ALLOCATIONS {
            held.select_nth_unstable_by_key(SNAPSHOT_ALLOCATIONS, order);
            held.truncate(SNAPSHOT_ALLOCATIONS);
        }
        held.sort_by_key(order);
        let values = Arc::new(MemoryValues {
            pools: self.pools.clone(),
            trends: self.trends.clone(),
            held,
            sites,
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

    fn record(operation: u16, address: u64, total: u64, at: Nanos) -> Allocation {
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
    fn held_memory_does_not_depend_on_thread_order() {
        // Allocated, freed and allocated again at one address; freed by another thread.
        let all = [
            record(memory::ALLOCATE, 0x1000, 100, 10),
            record(memory::FREE, 0x1000, 0, 20),
            record(memory::ALLOCATE, 0x1000, 100, 30),
            record(memory::FREE, 0x1000, 0, 40),
            record(memory::ALLOCATE, 0x1000, 100, 50),
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
    fn sums_by_site_are_of_all_allocations() {
        let mut store = Memory::default();
        let count = SNAPSHOT_ALLOCATIONS as u64 + 500;
        for number in 0..count {
            let correlation = number / 2 + 1;
            store.add(&Allocation {
                correlation,
                ..record(memory::ALLOCATE, number << 12, 0, number)
            });
            if number % 2 == 1 {
                assert!(store.awaits_calls());
                let call = ApiCall {
                    correlation,
                    operation: OperationId(7),
                    site: SiteNumber(1 + u16::from(number % 10 == 1)),
                    ..ApiCall::default()
                };
                store.called(&[call]);
                assert!(!store.awaits_calls());
            }
        }
        let values = store.values();
        assert_eq!((values.count, values.held.len()), (count, SNAPSHOT_ALLOCATIONS));
        let sites: Vec<(u16, u64, u64)> = values
            .sites
            .iter()
            .map(|sum| (sum.site.0, sum.count, sum.bytes))
            .collect();
        let small = 2 * count.div_ceil(10);
        let large = count - small;
        assert_eq!(sites, [(1, large, large * 100), (2, small, small * 100)]);
        assert!(values.sites.iter().all(|sum| sum.operation == Some(OperationId(7))));
    }

    #[test]
    fn allocations_do_not_wait_forever_for_their_call() {
        let mut store = Memory::default();
        store.add(&Allocation {
            correlation: 1 << 40,
            ..record(memory::ALLOCATE, 0x1000, 100, 10)
        });
        let others = vec![ApiCall::default(); 1000];
        (0..=MAX_CALLS / 1000).for_each(|_| store.called(&others));
        assert!(!store.awaits_calls() && store.arrived.is_empty());
        assert_eq!(store.values().sites[0].operation, None);
    }

    #[test]
    fn frees_of_what_was_never_seen_are_bounded() {
        let mut store = Memory::default();
        for address in 0..2 * MAX_FREED as u64 {
            store.add(&record(memory::FREE, address, 0, 20 + address));
        }
        assert_eq!(store.freed.by_place.len(), MAX_FREED);
    }

    #[test]
    fn unfreed_memory_is_held_and_the_peak_stays() {
        let mut store = Memory::default();
        let mut total = 0u64;
        let mut add = |operation, address, bytes: u64, at| {
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
        add(memory::ALLOCATE, 0x1000, 100, 10);
        add(memory::ALLOCATE, 0x2000, 300, 20);
        add(memory::FREE, 0x1000, 100, 30);
        add(memory::ALLOCATE, 0x3000, 50, 40);
        let values = store.values();
        assert_eq!((values.count, values.bytes), (2, 350));
        assert_eq!(values.held[0].address, 0x2000);
        let pool = values.pools[0];
        assert_eq!((pool.held, pool.peak, pool.peak_at), (350, 400, 20));
        assert_eq!((pool.allocations, pool.frees), (3, 1));
    }
}
