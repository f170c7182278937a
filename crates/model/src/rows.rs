//! Values of a snapshot: rows made from the tables, shares of the window, timeline letters.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use super::Store;
use super::analysis::Cached;
use super::lane::LaneKey;
use super::snapshot::{AgentRow, ApiRow, KernelRow, Mode, StatusReport, ThreadRow, Values};
use super::table::MarkerStat;
use roctop_ring::record::status;
use roctop_trace::item::{AgentId, AgentKind, KernelId, Nanos, OperationId, ThreadId};

/// Minimum time between two analyses, ns.
const ANALYSIS_INTERVAL: u64 = 1_000_000_000;
/// Minimum time between two analyses while nothing arrives and nothing is open, ns.
const ANALYSIS_INTERVAL_IDLE: u64 = 5 * ANALYSIS_INTERVAL;
/// Number of kernels with a letter.
const LETTERS: usize = 26;

impl Store {
    pub(super) fn make_values(&mut self) -> Values {
        self.is_new |= self.settle_transfers();
        self.settle_collectives();
        let is_same = !self.is_new && !self.tables.is_behind();
        let known = self.values.clone().filter(|_| is_same);
        let tables = known.map_or_else(|| self.table_values(), |known| (*known).clone());
        self.is_new = false;
        let analysis = self.analysis();
        let before = self
            .values
            .as_ref()
            .filter(|values| !Arc::ptr_eq(&values.analysis, &analysis));
        if let Some(log) = before.and_then(|values| values.analysis.log()) {
            self.alert_log = log.clone();
        }
        Values {
            counted_from: self.counted_from(),
            at: self.now,
            window: self.window(),
            agents: self.agent_rows(),
            shared: self.shared_rows(),
            processes: self.processes.clone(),
            said: self.said.iter().cloned().chain(self.early_notes()).collect(),
            gauges: self.gauges.clone(),
            memory: self.memory.values(),
            event_calls: self.event_calls.values(),
            thread_times: self.thread_times.values(),
            bindings: self.bindings.clone(),
            collectives: Arc::new(self.collectives.values(self.now)),
            totals: self.totals,
            rate: self.rate(),
            alert_log: self.alert_log.clone(),
            analysis,
            ..tables
        }
    }

    /// A note for each process whose kernels begin before their launch.
    fn early_notes(&self) -> impl Iterator<Item = StatusReport> {
        self.processes.iter().filter_map(|row| {
            let text = row.early.note()?;
            Some(StatusReport {
                process: row.process.id,
                code: status::NOTE,
                text: text.into(),
            })
        })
    }

    /// Counts the collectives that get no kernel. In a recording that is known at its end, whatever the order of records.
    fn settle_collectives(&mut self) {
        let is_whole = match self.options.mode {
            Mode::Replay => self.loading.percent().is_none(),
            Mode::Live => self.ended().is_some(),
        };
        if is_whole {
            self.collectives.finish();
        } else if self.options.mode == Mode::Live {
            self.collectives.settle(self.now);
        }
        self.collective_slices();
    }

    /// Values that only records change.
    fn table_values(&mut self) -> Values {
        let goes_on = self.options.mode == Mode::Live && self.ended().is_none();
        self.tables.refresh(!(goes_on && self.is_new));
        self.assign_letters();
        let letters = self.letters.clone();
        let kernels = self
            .tables
            .kernels
            .rows()
            .iter()
            .enumerate()
            .filter(|(_, numbers)| numbers.stat.calls > 0);
        let kernels = kernels.map(|(id, numbers)| {
            let id = KernelId(id as u32);
            let letter = letters.iter().position(|&lettered| lettered == id);
            let letter = letter.and_then(|at| char::from_u32('a' as u32 + at as u32));
            KernelRow {
                id,
                letter,
                numbers: numbers.clone(),
            }
        });
        let api = self
            .tables
            .calls
            .operations
            .iter()
            .enumerate()
            .filter(|(_, row)| row.stat.calls > 0);
        let api = api.map(|(id, row)| ApiRow {
            id: OperationId(id as u32),
            stat: row.stat.clone(),
            errors: row.errors,
            last_error: row.last_error,
            bytes: row.bytes,
            sized: row.sized,
            by_process: row.by_process.clone(),
        });
        let threads = self
            .tables
            .calls
            .threads
            .iter()
            .enumerate()
            .filter(|(_, numbers)| numbers.calls > 0);
        let threads = threads.map(|(id, &numbers)| ThreadRow {
            id: ThreadId(id as u32),
            numbers,
        });
        Values {
            kernels: Arc::new(kernels.collect()),
            copies: Arc::new(self.tables.copies.clone()),
            copy_sums: Arc::new(self.tables.copy_sums.clone()),
            api: Arc::new(api.collect()),
            threads: threads.collect(),
            markers: Arc::new(self.marker_rows()),
            seconds: self.tables.kernels.seconds().clone(),
            samples: self.sampled.count(),
            sampled: self.sampled.shared(),
            sites: Arc::new(self.tables.sites.rows().to_vec()),
            main_sites: Arc::new(self.tables.sites.by_work(&self.sites)),
            sites_left_out: self.tables.sites.left_out(),
            shapes: Arc::new(self.tables.shapes.all().to_vec()),
            places: Arc::new(self.tables.places.all().to_vec()),
            ..Values::default()
        }
    }

    /// The previous analysis while it is recent: it costs more than all other values.
    fn analysis(&mut self) -> Arc<Cached> {
        let is_young = |values: &Values| {
            let is_same = values.totals == self.totals;
            let each = if is_same && self.open_now().is_empty() {
                ANALYSIS_INTERVAL_IDLE
            } else {
                ANALYSIS_INTERVAL
            };
            // What a recording has lost is known at its end, when no time passes any more.
            let is_as_whole = values.totals.lost == self.totals.lost;
            values.at / each == self.now / each && is_as_whole && (self.ended().is_none() || is_same)
        };
        let known = self.values.as_ref().filter(|values| is_young(values));
        match known {
            Some(values) => values.analysis.clone(),
            None => Arc::new(Cached::new(self.idle_rows())),
        }
    }

    /// Length of the window for shares; in a recording, the whole run.
    fn window(&self) -> u64 {
        let begin = self.origin.unwrap_or(self.now).max(self.counted_from());
        let elapsed = self.now.saturating_sub(begin);
        if self.options.mode == Mode::Replay {
            elapsed
        } else {
            self.options.window.min(elapsed)
        }
    }

    fn marker_rows(&self) -> Vec<MarkerStat> {
        let used = self.tables.markers.rows().iter().filter(|row| row.stat.calls > 0);
        used.cloned().collect()
    }

    fn agent_rows(&self) -> Vec<AgentRow> {
        let gpus = self
            .names
            .agents()
            .iter()
            .filter(|agent| agent.kind == AgentKind::Gpu && !agent.name.is_empty());
        let rows = gpus.map(|agent| {
            let state = self.agents.get(agent.id.0 as usize);
            AgentRow {
                dispatches: state.map_or(0, |state| state.dispatches),
                busy: state.map_or(0, |state| state.busy.total()),
                ..self.agent_row(agent.id, &[agent.id])
            }
        });
        rows.collect()
    }

    /// GPUs that several processes use: their sums.
    fn shared_rows(&self) -> Vec<AgentRow> {
        let rows = self.shared_gpus.iter().map(|shared| {
            let members = self.names.members(shared.agent);
            let states = members.iter().filter_map(|id| self.agents.get(id.0 as usize));
            AgentRow {
                dispatches: states.map(|state| state.dispatches).sum(),
                busy: shared.busy.total,
                ..self.agent_row(shared.agent, &members)
            }
        });
        rows.collect()
    }

    /// Row of a GPU from its lane; `agents` are those of its processes.
    fn agent_row(&self, id: AgentId, agents: &[AgentId]) -> AgentRow {
        let (now, window) = (self.now, self.window());
        let lane = self.lane_ids.get(&LaneKey::Agent(id));
        let lane = lane.map(|&at| &self.lanes[at as usize].lane);
        let busy = |from, to| lane.map_or(0, |lane| lane.busy(from, to));
        let second = 1_000_000_000;
        let until = now / second * second;
        let part = |back: u64| {
            busy(
                until.saturating_sub((back + 1) * second),
                until.saturating_sub(back * second),
            )
        };
        let from = now.saturating_sub(window);
        let last = lane.map_or(0, |lane| lane.last);
        // Incomplete work has no record yet.
        let since = agents.iter().filter_map(|&agent| self.running_since(agent)).min();
        let still = since.map_or(0, |since| now.saturating_sub(since.max(last).max(from)));
        let is_own = |key: &&LaneKey| matches!(key, LaneKey::Stream(id, _) if agents.contains(id));
        AgentRow {
            id,
            share: busy(from, now).saturating_add(still).min(window) as f64 / window.max(1) as f64,
            trend: (0..30).rev().map(|back| part(back) / 1_000_000).collect(),
            streams: self.lane_ids.keys().filter(is_own).count(),
            queues: agents.iter().map(|&agent| self.agent_queues(agent)).sum(),
            ..AgentRow::default()
        }
    }

    /// Begin of incomplete work on a GPU, while the program runs.
    fn running_since(&self, agent: AgentId) -> Option<Nanos> {
        if self.options.mode == Mode::Replay || self.ended().is_some() {
            return None;
        }
        let open = self.processes.iter().flat_map(|row| &row.open.dispatches);
        let here = open.filter(|dispatch| dispatch.agent == agent && dispatch.submit > 0);
        here.map(|dispatch| dispatch.submit).min()
    }

    fn agent_queues(&self, agent: AgentId) -> usize {
        let here = self.tables.places.all().iter().filter(|place| place.agent == agent);
        here.map(|place| place.queue).collect::<HashSet<_>>().len()
    }

    /// Assigns letters to the kernels with most time. A kernel keeps its letter, unless it has become small and one of
    /// the greatest has none.
    fn assign_letters(&mut self) {
        let rows = self.tables.kernels.rows();
        let total = |id: KernelId| rows.get(id.0 as usize).map_or(0, |row| row.stat.total);
        let numbered = (0..).map(KernelId).zip(rows);
        let worked = numbered.filter(|(id, row)| row.stat.total > 0 && !self.names.is_internal(*id));
        let mut greatest: Vec<(Reverse<u64>, KernelId)> =
            worked.map(|(id, row)| (Reverse(row.stat.total), id)).collect();
        if greatest.len() > LETTERS {
            // Selects the greatest without sorting thousands.
            greatest.select_nth_unstable(LETTERS - 1);
            greatest.truncate(LETTERS);
        }
        greatest.sort_unstable();
        let mut letters = (*self.letters).clone();
        for (rank, &(_, id)) in greatest.iter().enumerate() {
            if letters.contains(&id) {
                continue;
            }
            if letters.len() < LETTERS {
                letters.push(id);
            } else if rank < LETTERS / 2
                && let Some(least) = letters.iter_mut().min_by_key(|held| total(**held))
            {
                *least = id;
            }
        }
        if letters != *self.letters {
            self.letters = Arc::new(letters);
        }
    }
}
