//! Copies and fills by kernels of the run-time. Such a kernel does not show what it moves, but the launching call does.
//!
//! A call may launch several kernels and also use DMA engines. Each kernel counts with its own time. The bytes count
//! once for the call, without those that engines copied, when no more of its work is expected.

use std::collections::VecDeque;

use roctop_ring::record::{direction, engine};

use super::table::{Route, is_untimed};
use super::{FastMap, Mode, Store};
use roctop_trace::item::{AgentKind, Dispatch, Nanos, ProcessId, Transfer};

/// Number of recent calls that are kept; work of older ones is not joined.
const MAX_CALLS: usize = 1 << 16;
/// Maximum number of kernels that wait for their call.
const MAX_WAITING: usize = 1 << 14;
/// Work of a call comes from several rings, which are read one after another: it is complete after this many snapshots.
const SETTLE_SNAPSHOTS: u64 = 2;

type Key = (ProcessId, u64);

/// State of a call.
#[derive(Clone, Copy, Debug)]
struct Call {
    transfer: Transfer,
    /// Bytes that engines copied for it.
    by_engines: u64,
    /// Number of its kernels, and the row in which they count.
    kernels: u64,
    row: u32,
    /// Duration and end of its last kernel.
    took: u64,
    end: Nanos,
    /// Snapshot in which the last kernel arrived.
    round: u64,
    /// Whether its bytes are counted.
    is_settled: bool,
}

/// Recent calls, and kernels of unknown calls.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    calls: FastMap<Key, Call>,
    order: VecDeque<Key>,
    unsettled: Vec<Key>,
    waiting: VecDeque<(u64, Dispatch, bool)>,
    round: u64,
}

impl Store {
    /// Adds a requested copy or fill.
    pub(super) fn transfer(&mut self, transfer: &Transfer) {
        let key = (transfer.process, transfer.correlation);
        let call = Call {
            transfer: *transfer,
            by_engines: 0,
            kernels: 0,
            row: 0,
            took: 0,
            end: 0,
            round: 0,
            is_settled: false,
        };
        if self.transfers.calls.insert(key, call).is_none() {
            self.transfers.order.push_back(key);
        }
        if self.transfers.order.len() > MAX_CALLS
            && let Some(oldest) = self.transfers.order.pop_front()
        {
            self.settle_call(oldest);
            self.transfers.calls.remove(&oldest);
        }
    }

    /// Adds bytes that an engine copied for a call.
    pub(super) fn by_engine(&mut self, process: ProcessId, correlation: u64, bytes: u64) {
        if let Some(call) = self.transfers.calls.get_mut(&(process, correlation)) {
            call.by_engines = call.by_engines.saturating_add(bytes);
        }
    }

    /// Adds a copy or fill kernel of the run-time.
    pub(super) fn moved(&mut self, dispatch: &Dispatch, is_fill: bool) {
        if dispatch.correlation == 0 {
            return self.moved_for_nobody(dispatch, is_fill);
        }
        if !self.moved_for_call(dispatch, is_fill) {
            let round = self.transfers.round;
            self.transfers.waiting.push_back((round, *dispatch, is_fill));
        }
        if self.transfers.waiting.len() > MAX_WAITING
            && let Some((_, oldest, is_fill)) = self.transfers.waiting.pop_front()
            && !self.moved_for_call(&oldest, is_fill)
        {
            self.moved_for_nobody(&oldest, is_fill);
        }
    }

    /// Counts bytes of calls without further work, and kernels whose call is unknown. True if a table changed.
    pub(super) fn settle_transfers(&mut self) -> bool {
        let is_last = self.options.mode == Mode::Replay || self.ended().is_some();
        self.transfers.round += 1;
        let now = self.transfers.round;
        let is_over = |round: u64| is_last || now.saturating_sub(round) >= SETTLE_SNAPSHOTS;
        let mut is_changed = false;
        for (round, dispatch, is_fill) in std::mem::take(&mut self.transfers.waiting) {
            if self.moved_for_call(&dispatch, is_fill) {
                is_changed = true;
            } else if is_over(round) {
                self.moved_for_nobody(&dispatch, is_fill);
                is_changed = true;
            } else {
                self.transfers.waiting.push_back((round, dispatch, is_fill));
            }
        }
        for key in std::mem::take(&mut self.transfers.unsettled) {
            let call = self.transfers.calls.get(&key);
            if call.is_some_and(|call| !is_over(call.round)) {
                self.transfers.unsettled.push(key);
            } else {
                self.settle_call(key);
                is_changed = true;
            }
        }
        is_changed
    }

    /// False if the call is unknown.
    fn moved_for_call(&mut self, dispatch: &Dispatch, is_fill: bool) -> bool {
        let key = (dispatch.process, dispatch.correlation);
        let Some(&call) = self.transfers.calls.get(&key) else {
            return false;
        };
        if is_fill != (call.transfer.direction == direction::FILL) {
            self.moved_for_nobody(dispatch, is_fill);
            return true;
        }
        let row = self.copy_row(self.route_of(&call.transfer, dispatch));
        self.tables.blit(row, dispatch);
        let round = self.transfers.round;
        if call.kernels == 0 {
            self.transfers.unsettled.push(key);
        }
        if let Some(call) = self.transfers.calls.get_mut(&key) {
            call.kernels += 1;
            call.row = row;
            call.round = round;
            if !is_untimed(dispatch.flags, dispatch.span.end) {
                (call.took, call.end) = (dispatch.span.duration(), dispatch.span.end);
            }
        }
        true
    }

    fn moved_for_nobody(&mut self, dispatch: &Dispatch, is_fill: bool) {
        let route = Route {
            direction: if is_fill { direction::FILL } else { direction::UNKNOWN },
            source: None,
            destination: Some(dispatch.agent),
            engine: engine::BLIT,
        };
        let row = self.copy_row(route);
        self.tables.blit(row, dispatch);
    }

    /// Route of a kernel's work for a call. Memory that HSA did not allocate belongs to the host, if the call or the
    /// other end shows it.
    fn route_of(&self, transfer: &Transfer, dispatch: &Dispatch) -> Route {
        let Transfer {
            source,
            destination,
            host,
            ..
        } = *transfer;
        let here = Some(dispatch.agent);
        let is_gpu = |agent| {
            let known = self.names.agent(agent);
            known.is_some_and(|agent| agent.kind == AgentKind::Gpu)
        };
        let way = match (transfer.direction, source, destination) {
            (direction::UNKNOWN, None, Some(to)) if is_gpu(to) => direction::H2D,
            (direction::UNKNOWN, Some(from), None) if is_gpu(from) => direction::D2H,
            (known, ..) => known,
        };
        let (source, destination) = match way {
            direction::H2H => (source.or(host), destination.or(host)),
            direction::H2D => (source.or(host), destination.or(here)),
            direction::D2H => (source.or(here), destination.or(host)),
            direction::FILL => (None, destination.or(here)),
            _ if source.is_none() => (None, destination.or(here)),
            _ => (source, destination),
        };
        Route {
            direction: way,
            source,
            destination,
            engine: engine::BLIT,
        }
    }

    /// Counts the bytes that kernels moved for a call.
    fn settle_call(&mut self, key: Key) {
        let Some(call) = self.transfers.calls.get_mut(&key) else {
            return;
        };
        if call.kernels == 0 || std::mem::replace(&mut call.is_settled, true) {
            return;
        }
        let call = *call;
        let bytes = call.transfer.bytes.saturating_sub(call.by_engines);
        // With several kernels, each one's share of the bytes is unknown.
        let took = if call.kernels == 1 { call.took } else { 0 };
        self.tables.blit_bytes(call.row, bytes, took, call.end);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fresh, Options};
    use super::*;
    use roctop_trace::item::{Agent, AgentId, Copy, Item, Kernel, KernelId, Span};
    use std::sync::Arc;

    const HOST: AgentId = AgentId(0);
    const GPU: AgentId = AgentId(1);

    fn store(mode: Mode) -> Store {
        let mut store = Store::new(Options {
            mode,
            ..Options::default()
        });
        for (id, kind) in [(HOST, AgentKind::Cpu), (GPU, AgentKind::Gpu)] {
            store.apply(&Item::Agent(Agent {
                id,
                kind,
                ..Agent::default()
            }));
        }
        for (id, mangled) in [(0, "__amd_rocclr_copyBuffer"), (1, "__amd_rocclr_fillBufferAligned")] {
            store.apply(&Item::Kernel(Kernel {
                id: KernelId(id),
                mangled: mangled.into(),
                name: mangled.into(),
                internal: true,
                ..Kernel::default()
            }));
        }
        store
    }

    fn kernel(correlation: u64, begin: u64) -> Item {
        Item::Dispatch(Dispatch {
            agent: GPU,
            correlation,
            span: Span { begin, end: begin + 10 },
            ..Dispatch::default()
        })
    }

    fn call(correlation: u64, bytes: u64, direction: u16) -> Item {
        Item::Transfer(Transfer {
            correlation,
            bytes,
            direction,
            host: Some(HOST),
            ..Transfer::default()
        })
    }

    /// Direction, source, destination, kernels, bytes.
    type Row = (u16, Option<AgentId>, Option<AgentId>, u64, Option<u64>);

    fn rows(store: &mut Store) -> Vec<Row> {
        let copies = Arc::clone(&store.snapshot(Fresh::All).values.copies);
        let by_kernels = copies.iter().filter(|row| row.route.engine == engine::BLIT);
        by_kernels
            .map(|row| {
                let bytes = row.has_bytes.then_some(row.sizes.total);
                let Route {
                    direction,
                    source,
                    destination,
                    ..
                } = row.route;
                (direction, source, destination, row.stat.calls, bytes)
            })
            .collect()
    }

    #[test]
    fn bytes_of_a_call_count_once() {
        let mut store = store(Mode::Replay);
        store.apply_all(&[call(1, 100, direction::D2H), kernel(1, 1000), kernel(1, 2000)]);
        let expected = (direction::D2H, Some(GPU), Some(HOST), 2, Some(100));
        assert_eq!(rows(&mut store), [expected]);
        assert_eq!(rows(&mut store), [expected], "a second look adds nothing");
    }

    #[test]
    fn bytes_of_engines_are_not_those_of_kernels() {
        let mut store = store(Mode::Replay);
        let by_engine = Item::Copy(Copy {
            correlation: 1,
            bytes: 60,
            engine: engine::SDMA,
            direction: direction::H2D,
            span: Span { begin: 1, end: 2 },
            ..Copy::default()
        });
        store.apply_all(&[kernel(1, 1000), call(1, 100, direction::H2D), by_engine]);
        assert_eq!(rows(&mut store), [(direction::H2D, Some(HOST), Some(GPU), 1, Some(40))]);
    }

    #[test]
    fn a_kernel_waits_for_its_call() {
        let mut store = store(Mode::Live);
        store.apply(&kernel(1, 1000));
        assert_eq!(rows(&mut store), []);
        store.apply(&call(1, 100, direction::H2D));
        for _ in 0..=SETTLE_SNAPSHOTS {
            rows(&mut store);
        }
        assert_eq!(
            rows(&mut store),
            [(direction::H2D, Some(HOST), Some(GPU), 1, Some(100))]
        );
    }

    #[test]
    fn a_kernel_without_a_call_has_no_bytes() {
        let mut store = store(Mode::Live);
        store.apply(&kernel(7, 1000));
        for _ in 0..=SETTLE_SNAPSHOTS {
            rows(&mut store);
        }
        assert_eq!(rows(&mut store), [(direction::UNKNOWN, None, Some(GPU), 1, None)]);
    }
}
