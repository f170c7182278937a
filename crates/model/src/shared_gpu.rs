//! GPUs that several processes use: time with work of any process, and their copies by route, summed.

use super::idle::Account;
use super::lane::LaneKey;
use super::table::Route;
use super::union::{Stretch, Union};
use super::{AgentState, Store};
use roctop_trace::item::{AgentId, AgentKind};

/// A shared GPU.
#[derive(Debug, Default)]
pub(super) struct SharedState {
    pub(super) agent: AgentId,
    /// Time with a kernel of any process.
    pub(super) busy: Union,
    pub(super) idle: Account,
    /// Lane of the busy time.
    lane: u32,
    /// Reused buffer for new spans of that time.
    pub(super) pieces: Vec<Stretch>,
}

impl SharedState {
    /// A GPU on which nothing has run.
    pub(super) fn of(agent: AgentId) -> Self {
        Self {
            agent,
            busy: Union::with_gaps(),
            lane: u32::MAX,
            ..Self::default()
        }
    }

    /// The same GPU, on which nothing has run.
    pub(super) fn idle(&self) -> Self {
        Self::of(self.agent)
    }
}

/// Agents that may share a GPU.
const MAX_AGENTS: usize = 1 << 12;

impl Store {
    /// State of an agent with work.
    pub(super) fn agent_state(&mut self, id: AgentId) -> Option<&mut AgentState> {
        let at = id.0 as usize;
        if at >= MAX_AGENTS {
            return None;
        }
        if self.agents.len() <= at {
            self.agents.resize_with(at + 1, AgentState::default);
        }
        if !self.agents[at].is_used {
            self.first_work(id);
        }
        self.agents.get_mut(at)
    }

    /// Handles the first work of an agent: the GPU is shared if another process uses it too.
    #[cold]
    fn first_work(&mut self, id: AgentId) {
        let names = &self.names;
        // Work may arrive before the agent's facts.
        let Some(own) = names.agent(id).filter(|agent| !agent.name.is_empty()) else {
            return;
        };
        self.agents[id.0 as usize].is_used = true;
        let is_used = |id: AgentId| self.agents.get(id.0 as usize).is_some_and(|state| state.is_used);
        let is_mate = |agent: &roctop_trace::item::Agent| {
            agent.kind == AgentKind::Gpu
                && agent.process != own.process
                && names.node_of(agent) == names.node_of(own)
                && is_used(agent.id)
        };
        let mut agents = names.agents().iter().filter(|_| own.kind == AgentKind::Gpu);
        let Some(mate) = agents.find(|agent| is_mate(agent)).map(|agent| agent.id) else {
            return;
        };
        let shared = match self.agents[mate.0 as usize].shared {
            Some(shared) => {
                let agent = self.shared_gpus[shared as usize].agent;
                std::sync::Arc::make_mut(&mut self.names).share_with(agent, id);
                shared
            }
            None => self.share(mate, id),
        };
        self.agents[id.0 as usize].shared = Some(shared);
    }

    /// Makes a GPU shared: its busy time so far is that of its only process.
    fn share(&mut self, first: AgentId, second: AgentId) -> u32 {
        let at = first.0 as usize;
        self.settle(at);
        self.settle_gaps(at);
        let agent = std::sync::Arc::make_mut(&mut self.names).share([first, second]);
        let lane = self.lane_id(LaneKey::Agent(agent));
        if let Some(&own) = self.lane_ids.get(&LaneKey::Agent(first)) {
            let mut known = self.lanes[own as usize].lane.clone();
            self.lanes[lane as usize].lane.absorb(&mut known);
            self.lanes[lane as usize].is_changed = true;
        }
        self.shared_gpus.push(SharedState {
            agent,
            busy: self.agents[at].busy.union().clone(),
            idle: self.agents[at].idle.clone(),
            lane,
            pieces: Vec::new(),
        });
        let shared = self.shared_gpus.len() as u32 - 1;
        self.agents[at].shared = Some(shared);
        shared
    }

    /// Adds the spans in [`SharedState::pieces`] to the busy time.
    pub(super) fn settle_shared(&mut self, shared: u32) {
        let Some(state) = self.shared_gpus.get(shared as usize) else {
            return;
        };
        let number = self.lane_near(LaneKey::Agent(state.agent), state.lane);
        let (state, drawn) = (&mut self.shared_gpus[shared as usize], &mut self.lanes[number as usize]);
        state.lane = number;
        drawn.is_changed = true;
        for piece in state.pieces.drain(..) {
            state.busy.add(piece, |fresh| drawn.lane.add_time(fresh.span, 0, true));
        }
    }

    /// Index of a route in the table of copies. A route of a shared GPU also counts in the sum of its processes.
    pub(super) fn copy_row(&mut self, route: Route) -> u32 {
        let known = self.tables.copies.len();
        let row = self.tables.route(route);
        if self.tables.copies.len() > known {
            self.join_route(row, route);
        }
        row
    }

    #[cold]
    fn join_route(&mut self, row: u32, route: Route) {
        for end in [route.source, route.destination].into_iter().flatten() {
            self.agent_state(end);
        }
        let names = &self.names;
        // Each process also has its own agent for the host.
        let place = |end: Option<AgentId>| {
            let agent = names.agent(end?)?;
            let is_cpu = agent.kind == AgentKind::Cpu;
            Some((
                is_cpu,
                names.node_of(agent).machine,
                if is_cpu { None } else { Some(names.gpu_of(agent.id)) },
            ))
        };
        let process = |route: Route| {
            let ends = [route.destination, route.source].into_iter().flatten();
            ends.filter_map(|end| names.agent(end))
                .map(|agent| agent.process)
                .next()
        };
        let key = |route: Route| {
            let ends = [place(route.source), place(route.destination)];
            let is_shared = ends.iter().flatten().any(|end| end.2.is_some());
            is_shared.then_some((route.direction, route.engine, ends))
        };
        let Some(own) = key(route) else { return };
        let others = self.tables.copies.iter().map(|copies| copies.route);
        let mate = others
            .take(row as usize)
            .position(|other| key(other) == Some(own) && process(other) != process(route));
        if let Some(mate) = mate {
            let shared = |end: Option<AgentId>| end.map(|end| names.gpu_of(end));
            let sum = Route {
                source: shared(route.source),
                destination: shared(route.destination),
                ..route
            };
            self.tables.join_routes(mate as u32, row, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fresh, Options};
    use roctop_ring::record::{direction, engine};
    use roctop_trace::item::{Agent, Copy, Dispatch, Item, Process, ProcessId, Span, StreamId};

    /// Four ranks on one GPU, in order of appearance: 0, 3, 1, 2.
    fn ranks() -> Store {
        let mut store = Store::new(Options::default());
        for (process, rank) in (0..4).zip([0, 3, 1, 2]) {
            store.apply(&Item::Process(Process {
                id: ProcessId(process),
                pid: 100 + process,
                rank: Some(rank),
                ..Process::default()
            }));
            for (id, kind, node) in [(2 * process, AgentKind::Cpu, 0), (2 * process + 1, AgentKind::Gpu, 1)] {
                store.apply(&Item::Agent(Agent {
                    id: AgentId(id),
                    process: ProcessId(process),
                    kind,
                    node,
                    name: "gfx942".into(),
                    ..Agent::default()
                }));
            }
        }
        store
    }

    fn work(process: u32, begin: u64, end: u64) -> [Item; 2] {
        let gpu = AgentId(2 * process + 1);
        let dispatch = Dispatch {
            process: ProcessId(process),
            agent: gpu,
            stream: Some(StreamId(process)),
            span: Span { begin, end },
            ..Dispatch::default()
        };
        let copy = Copy {
            process: ProcessId(process),
            source: Some(AgentId(2 * process)),
            destination: Some(gpu),
            direction: direction::H2D,
            engine: engine::SDMA,
            bytes: 100,
            span: Span { begin, end },
            ..Copy::default()
        };
        [Item::Dispatch(dispatch), Item::Copy(copy)]
    }

    #[test]
    fn a_gpu_that_processes_share_is_one_row_with_their_sum() {
        let mut store = ranks();
        let second = 1_000_000_000;
        // Each rank works for half a second, two at a time.
        for process in 0..4 {
            let begin = second + u64::from(process / 2) * second;
            store.apply_all(&work(process, begin, begin + second / 2));
        }
        store.apply(&Item::Now(3 * second));
        let snap = store.snapshot(Fresh::All);
        let gpus = snap.gpus();
        assert_eq!(gpus.len(), 1, "{gpus:?}");
        let (sum, parts) = (gpus[0].row, &gpus[0].parts);
        assert_eq!((sum.dispatches, sum.busy, sum.streams), (4, second, 4));
        assert_eq!(snap.names.agent_label_of(sum.id), "GPU0");
        let lane = snap.lane(LaneKey::Agent(sum.id)).expect("its lane");
        assert_eq!(lane.busy(0, 3 * second), second, "the first rank's time is in it");
        let labels: Vec<String> = parts.iter().map(|row| snap.names.agent_process(row.id)).collect();
        assert_eq!(labels, ["r0 100", "r1 102", "r2 103", "r3 101"]);
        assert!(parts.iter().all(|row| row.busy == second / 2 && row.dispatches == 1));
    }

    #[test]
    fn copies_of_processes_that_share_a_gpu_are_added_up_by_route() {
        let mut store = ranks();
        for process in [0, 1, 1, 2, 3] {
            store.apply_all(&work(process, 1_000, 2_000));
        }
        let snap = store.snapshot(Fresh::All);
        assert_eq!(snap.values.copies.len(), 4);
        let sums = &snap.values.copy_sums;
        assert_eq!(sums.len(), 1);
        let sum = &sums[0].sum;
        assert_eq!((sum.stat.calls, sum.sizes.total, sum.union.total), (5, 500, 1_000));
        let label = snap.names.route_label(sum.route.source, sum.route.destination);
        assert_eq!(label, "host→GPU0");
        assert_eq!(sums[0].parts, [0, 1, 2, 3]);
    }

    #[test]
    fn a_process_alone_shares_nothing() {
        let mut store = ranks();
        for _ in 0..3 {
            store.apply_all(&work(2, 1_000, 2_000));
        }
        let snap = store.snapshot(Fresh::All);
        assert!(snap.values.shared.is_empty() && snap.values.copy_sums.is_empty());
        let gpus = snap.gpus();
        assert!(
            gpus.len() == 1 && gpus[0].parts.is_empty() && gpus[0].row.dispatches == 3,
            "{gpus:?}"
        );
    }
}
