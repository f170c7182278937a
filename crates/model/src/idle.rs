//! Idle time of each GPU over the whole run, with its causes and its longest gaps, counted as work passes.
//!
//! Each gap between kernels is counted once, when no later kernel can change it. The cause of a short gap follows from the
//! submission of the kernel that ended it. A long one is explained while the slices around it are still kept. What is
//! kept per GPU is bounded, whatever the length of the run.

use std::rc::Rc;

use roctop_ring::record::engine;

use super::analysis::usage::{self, MAX_GAPS, Usage, has_kernels};
use super::analysis::verdict::{self, Cause, Events, Readings, Verdict};
use super::analysis::{Gap, MAX_SLICES};
use super::snapshot::{Mode, Snapshot, ThreadRow, Values};
use super::union::{Stretch, Union};
use super::{FastMap, LaneKey, Store};
use roctop_trace::item::{AgentId, Copy, Nanos, Span, ThreadId};

/// Length to which the cause of a gap follows from the kernel that ended it, ns.
const LONG: u64 = verdict::MAX_LATENCY;
/// Age at which everything about a gap has arrived, ns: rings are read one after another.
const GRACE: u64 = 250_000_000;
/// Maximum number of gaps that are explained at once: the longest. Others are judged like short ones.
const MAX_EXPLAINED: usize = 2048;
/// Number of copies that are kept one by one: gaps of kernels are counted when that many copies may have followed.
const MAX_COPIES: usize = 60_000;
/// Number of arrived copies at which they are merged.
const MAX_ARRIVED: usize = 4096;
/// Number of waiting gaps at which they are explained.
const MAX_WAITING: usize = 1024;

/// Length from which a gap is explained by what the host and other streams did, ns: each that is listed is.
const fn long(least: u64) -> u64 {
    match least {
        0 => 1,
        LONG.. => LONG,
        _ => least,
    }
}

/// Idle time of a GPU.
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// Copies from or to it, since its first kernel.
    copies: Union,
    /// Copies that are not among them yet.
    arrived: Vec<Span>,
    /// Gaps that no later kernel can change.
    sums: Sums,
    /// Long ones of them that are not explained yet.
    waiting: Vec<Stretch>,
    /// Explanations of long gaps that are not in the sums yet, by begin and end.
    known: FastMap<(Nanos, Nanos), Explained>,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            copies: Union::with_more(MAX_COPIES),
            arrived: Vec::new(),
            sums: Sums::default(),
            waiting: Vec::new(),
            known: FastMap::default(),
        }
    }
}

/// Sums over gaps between kernels.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// Time without kernels, ns.
    nanos: u64,
    /// Time with neither kernel nor copy, ns.
    idle: u64,
    longest: u64,
    gap_count: u64,
    /// The longest gaps beyond the threshold.
    gaps: Vec<Gap>,
    verdict: Verdict,
    /// Whether copies in some gaps are not known any more.
    is_estimated: bool,
}

/// A long gap between kernels.
#[derive(Clone, Debug, Default)]
struct Explained {
    gaps: Vec<Gap>,
    verdict: Verdict,
}

impl Sums {
    /// Counts the parts of a gap between kernels in which nothing was copied.
    fn count(&mut self, gap: Span, copies: &Union) {
        self.nanos += gap.duration();
        self.is_estimated |= gap.begin < copies.folded_until();
        copies.outside(gap, |part| {
            self.idle += part.duration();
            self.longest = self.longest.max(part.duration());
        });
    }

    /// Adds a gap whose cause follows from the kernel that ended it.
    fn short(&mut self, gap: Stretch, copies: &Union) {
        self.count(gap.span, copies);
        let nanos = gap.span.duration();
        let cause = match gap.submit {
            0 => Cause::Unknown,
            submit if submit > gap.span.begin => Cause::Host,
            _ if nanos <= LONG => Cause::BetweenKernels,
            _ => Cause::Unknown,
        };
        self.verdict.add(cause, nanos, nanos > LONG);
    }

    /// Adds a gap that is explained.
    fn long(&mut self, gap: Span, explained: &Explained, copies: &Union) {
        self.count(gap, copies);
        self.verdict.join(&explained.verdict);
        self.gap_count += explained.gaps.len() as u64;
        self.gaps.extend(explained.gaps.iter().cloned());
        if self.gaps.len() >= 2 * MAX_GAPS {
            usage::keep_longest(&mut self.gaps);
        }
    }
}

impl Account {
    /// Merges the copies that arrived. What was copied before the first kernel belongs to the start.
    fn merge_copies(&mut self, first: Option<Nanos>) {
        let Some(first) = first else {
            // The latest of them may go on when the first kernel begins.
            if self.arrived.len() >= 2 * MAX_COPIES {
                self.arrived.drain(..MAX_COPIES);
            }
            return;
        };
        self.arrived.sort_by_key(|span| span.begin);
        for span in self.arrived.drain(..) {
            let begin = span.begin.max(first);
            self.copies.add(
                Span {
                    begin,
                    end: span.end.max(begin),
                },
                |_| {},
            );
        }
    }

    /// Counts gaps that no later kernel can change, in order.
    fn settle(&mut self, gaps: Vec<Stretch>, first: Option<Nanos>, least: u64) {
        self.merge_copies(first);
        for gap in gaps {
            if gap.span.duration() < long(least) {
                self.sums.short(gap, &self.copies);
            } else {
                self.waiting.push(gap);
            }
        }
    }

    /// Counts the long gaps that are explained by now.
    fn settle_explained(&mut self, until: Nanos, folded_until: Nanos) {
        let (sums, known, copies) = (&mut self.sums, &mut self.known, &self.copies);
        self.waiting.retain(|gap| {
            match known.remove(&(gap.span.begin, gap.span.end)) {
                Some(explained) => sums.long(gap.span, &explained, copies),
                None if gap.span.end <= until => sums.short(*gap, copies),
                None => return true,
            }
            false
        });
        // A kernel that came late has divided the others.
        let waiting = &self.waiting;
        let is_waiting = |key: &(Nanos, Nanos)| waiting.iter().any(|gap| gap.span.begin == key.0);
        known.retain(|key, _| key.1 > folded_until || is_waiting(key));
    }
}

/// When long gaps are explained.
#[derive(Debug, Default)]
pub(super) struct Explaining {
    /// Whether the store has a stretch of time only: nobody asks it for the idle time of the run.
    pub(super) is_part: bool,
    /// Slices that came since the last time, and when that was.
    pub(super) slices: usize,
    at: Nanos,
}

/// What the causes of gaps are found by: slices, events, and readings of threads around the gaps.
struct Sight {
    snap: Snapshot,
    beside: (Rc<Events>, Rc<Readings>),
}

/// A GPU: the agents of its processes, and the agent that stands for it.
struct Gpu {
    id: AgentId,
    agents: Vec<AgentId>,
    /// Index of its state among the shared GPUs, else among the agents.
    shared: Option<usize>,
}

impl Store {
    /// GPUs on which kernels have run.
    fn working_gpus(&self) -> Vec<Gpu> {
        let own = self
            .agents
            .iter()
            .enumerate()
            .filter(|(_, state)| state.shared.is_none());
        let own = own.map(|(at, _)| Gpu {
            id: AgentId(at as u32),
            agents: vec![AgentId(at as u32)],
            shared: None,
        });
        let shared = self.shared_gpus.iter().enumerate().map(|(at, state)| Gpu {
            id: state.agent,
            agents: self.names.members(state.agent),
            shared: Some(at),
        });
        own.chain(shared)
            .filter(|gpu| self.idle_of(gpu).0.first().is_some())
            .collect()
    }

    /// When a GPU ran kernels, and its account.
    fn idle_of(&self, gpu: &Gpu) -> (&Union, &Account) {
        if let Some(at) = gpu.shared {
            return (&self.shared_gpus[at].busy, &self.shared_gpus[at].idle);
        }
        let state = &self.agents[gpu.id.0 as usize];
        (state.busy.union(), &state.idle)
    }

    fn account_of(&mut self, gpu: &Gpu) -> &mut Account {
        match gpu.shared {
            Some(at) => &mut self.shared_gpus[at].idle,
            None => &mut self.agents[gpu.id.0 as usize].idle,
        }
    }

    /// Counts the gaps of an agent, or of the GPU that it shares, that no later kernel can change.
    pub(super) fn settle_gaps(&mut self, agent: usize) {
        if self.take_gaps(agent) >= MAX_WAITING {
            self.explain_gaps(self.grace(), false);
        }
    }

    /// As [`Store::settle_gaps`], without explanations; returns the number of gaps that wait for one.
    fn take_gaps(&mut self, agent: usize) -> usize {
        let least = self.options.thresholds.gap;
        let Some(state) = self.agents.get_mut(agent) else {
            return 0;
        };
        let gaps = state.busy.take_gaps();
        if let Some(shared) = state.shared.and_then(|at| self.shared_gpus.get_mut(at as usize)) {
            let gaps = shared.busy.take_gaps();
            let first = shared.busy.first();
            shared.idle.settle(gaps, first, least);
            return shared.idle.waiting.len();
        }
        let first = state.busy.union().first();
        state.idle.settle(gaps, first, least);
        state.idle.waiting.len()
    }

    /// Counts a copy for the GPUs that it is from and to.
    pub(super) fn copied(&mut self, copy: &Copy) {
        // The CPU may have made a copy of a call itself; it does not show that the device copied.
        if copy.engine == engine::CALL || !self.options.timeline {
            return;
        }
        let ends = [copy.source, copy.destination];
        let mut counted = None;
        for agent in ends.into_iter().flatten() {
            let Some(state) = self.agents.get_mut(agent.0 as usize) else {
                continue;
            };
            let shared = state.shared.and_then(|at| self.shared_gpus.get_mut(at as usize));
            let (id, first, account) = match shared {
                Some(shared) => (shared.agent, shared.busy.first(), &mut shared.idle),
                None => (agent, state.busy.union().first(), &mut state.idle),
            };
            if counted.replace(id) == Some(id) {
                continue;
            }
            account.arrived.push(copy.span);
            if account.arrived.len() >= MAX_ARRIVED {
                account.merge_copies(first);
            }
        }
    }

    /// Explains long gaps before slices around them are forgotten.
    pub(super) fn explain_in_time(&mut self) {
        let age = self.now.saturating_sub(self.explaining.at);
        let is_due = self.explaining.slices >= self.options.slices / 4 || age > (self.options.keep / 2).max(GRACE);
        if is_due && self.reach.is_none() {
            self.explain_gaps(self.grace(), false);
        }
    }

    /// Age at which gaps are explained while records come: blocks of a recording may have seconds of one thread. The slices
    /// of several such times are kept.
    fn grace(&self) -> u64 {
        let since = self.explaining.at.max(self.origin.unwrap_or(0));
        GRACE.max(self.now.saturating_sub(since) / 2)
    }

    /// Explains the long gaps that ended before `grace`, and returns by what; always, and up to now, if `to_now`.
    fn explain_gaps(&mut self, grace: u64, to_now: bool) -> Option<Sight> {
        (self.explaining.slices, self.explaining.at) = (0, self.now);
        for agent in 0..self.agents.len() {
            self.settle(agent);
            self.take_gaps(agent);
        }
        let until = self.now.saturating_sub(grace);
        let least = self.options.thresholds.gap;
        let is_due = |account: &Account, gap: &Stretch| {
            let span = gap.span;
            span.duration() >= long(least) && span.end <= until && !account.known.contains_key(&(span.begin, span.end))
        };
        let gpus = self.working_gpus();
        let mut due: Vec<(usize, Span)> = Vec::new();
        for (at, gpu) in gpus.iter().enumerate() {
            let (busy, account) = self.idle_of(gpu);
            let gaps = account.waiting.iter().copied().chain(busy.recent_gaps());
            due.extend(gaps.filter(|gap| is_due(account, gap)).map(|gap| (at, gap.span)));
        }
        if due.len() > MAX_EXPLAINED {
            due.sort_by_key(|(_, gap)| std::cmp::Reverse(gap.duration()));
            due.truncate(MAX_EXPLAINED);
        }
        let sight = (!due.is_empty() || to_now).then(|| {
            let mut gaps: Vec<Span> = due.iter().map(|(_, gap)| *gap).collect();
            let lasts = gpus.iter().map(|gpu| self.idle_of(gpu).0.last());
            let since_last = lasts.flatten().map(|last| Span {
                begin: last.min(self.now),
                end: self.now,
            });
            gaps.extend(since_last.filter(|_| to_now));
            self.sight(gaps)
        });
        if let Some(sight) = &sight {
            due.sort_by_key(|(at, gap)| (*at, gap.begin));
            for due in due.chunk_by(|one, next| one.0 == next.0) {
                let gpu = &gpus[due[0].0];
                let gaps: Vec<Span> = due.iter().map(|(_, gap)| *gap).collect();
                let explained = sight.explain(gpu, &self.idle_of(gpu).1.copies, &gaps);
                let known = gaps.iter().map(|gap| (gap.begin, gap.end)).zip(explained);
                self.account_of(gpu).known.extend(known);
            }
        }
        for gpu in &gpus {
            let folded_until = self.idle_of(gpu).0.folded_until();
            self.account_of(gpu).settle_explained(until, folded_until);
        }
        sight
    }

    /// What the causes of gaps are found by; `gaps` need not be in order.
    fn sight(&mut self, gaps: Vec<Span>) -> Sight {
        let hull = |all: Span, gap: Span| Span {
            begin: all.begin.min(gap.begin),
            end: all.end.max(gap.end),
        };
        let span = gaps.into_iter().reduce(hull).unwrap_or_default();
        let snap = self.in_sight();
        let beside = (Rc::new(Events::new(&snap, span)), Rc::new(Readings::around(span)));
        Sight { snap, beside }
    }

    /// A snapshot that has what causes are found by.
    fn in_sight(&mut self) -> Snapshot {
        let threads = self.tables.calls.threads.iter().enumerate();
        let threads = threads.filter(|(_, numbers)| numbers.calls > 0);
        let values = Values {
            counted_from: self.counted_from(),
            threads: threads
                .map(|(id, &numbers)| ThreadRow {
                    id: ThreadId(id as u32),
                    numbers,
                })
                .collect(),
            copies: std::sync::Arc::new(self.tables.copies.clone()),
            processes: self.processes.clone(),
            collectives: std::sync::Arc::new(self.collectives.latest_of_mpi()),
            event_calls: self.event_calls.values(),
            thread_times: self.thread_times.values(),
            places: std::sync::Arc::new(self.tables.places.all().to_vec()),
            ..Values::default()
        };
        Snapshot {
            mode: self.options.mode,
            now: self.now,
            origin: self.origin.unwrap_or(self.now),
            names: self.names.clone(),
            values: std::sync::Arc::new(values),
            lanes: std::sync::Arc::new(self.lanes.iter_mut().map(super::lanes::Drawn::show).collect()),
            open: self.open_now(),
            ended: self.ended(),
            thresholds: self.options.thresholds,
            ..Snapshot::default()
        }
    }

    /// Whether an analysis of all slices does not show the whole run.
    fn needs_accounts(&self) -> bool {
        let elapsed = self.now.saturating_sub(self.origin.unwrap_or(self.now));
        if self.options.mode == Mode::Live && elapsed > self.options.window {
            return true;
        }
        let lanes = || {
            let lanes = self.lanes.iter().map(|drawn| &drawn.lane);
            lanes.filter(|lane| has_kernels(lane.key) || matches!(lane.key, LaneKey::Copies(_)))
        };
        let each = (MAX_SLICES / lanes().count().max(1)).max(1000) as u64;
        lanes().any(|lane| lane.total > each || lane.forgotten().is_some())
    }

    /// Use of each GPU over the whole run, from its first kernel on, if an analysis of all slices does not show it.
    pub(super) fn idle_rows(&mut self) -> Vec<Usage> {
        if !self.options.timeline || self.explaining.is_part || self.reach.is_some() || !self.needs_accounts() {
            return Vec::new();
        }
        let goes_on = match self.options.mode {
            Mode::Live => self.ended().is_none(),
            Mode::Replay => self.loading.percent().is_some(),
        };
        let Some(sight) = self.explain_gaps(if goes_on { GRACE } else { 0 }, true) else {
            return Vec::new();
        };
        let gpus = self.working_gpus();
        gpus.iter().map(|gpu| self.idle_row(gpu, &sight)).collect()
    }

    fn idle_row(&self, gpu: &Gpu, sight: &Sight) -> Usage {
        let (busy, account) = self.idle_of(gpu);
        let (first, last) = (busy.first().unwrap_or(self.now), busy.last().unwrap_or(self.now));
        let stretch = Span {
            begin: first,
            end: self.now.max(last),
        };
        let mut sums = account.sums.clone();
        let least = self.options.thresholds.gap;
        for gap in account.waiting.iter().copied().chain(busy.recent_gaps()) {
            let explained = account.known.get(&(gap.span.begin, gap.span.end));
            match explained.filter(|_| gap.span.duration() >= long(least)) {
                Some(explained) => sums.long(gap.span, explained, &account.copies),
                None => sums.short(gap, &account.copies),
            }
        }
        // What runs now, and the time since the last kernel.
        let mut runs = Union::default();
        let end = Span {
            begin: last,
            end: stretch.end,
        };
        for span in usage::running(&sight.snap, &gpu.agents, end) {
            runs.add(span, |_| {});
        }
        let mut gaps = Vec::new();
        runs.outside(end, |gap| gaps.push(gap));
        for (gap, explained) in gaps.iter().zip(sight.explain(gpu, &account.copies, &gaps)) {
            sums.long(*gap, &explained, &account.copies);
        }
        usage::keep_longest(&mut sums.gaps);
        sums.verdict.sort();
        let states = gpu.agents.iter().filter_map(|id| self.agents.get(id.0 as usize));
        let compute = busy.total + runs.total;
        Usage {
            agent: gpu.id,
            agents: gpu.agents.clone(),
            stretch,
            compute,
            copy: account.copies.total,
            overlap: account.copies.total.saturating_sub(sums.nanos - sums.idle),
            idle: sums.idle,
            kernel_time: states.map(|state| state.kernel_time).sum::<u64>() + runs.total,
            gaps: sums.gaps,
            gap_count: sums.gap_count,
            longest: sums.longest,
            verdict: sums.verdict,
            start_up: usage::start_up(&sight.snap, first),
            is_estimated: sums.is_estimated || busy.late > 0 || account.copies.late > 0,
            ..Usage::default()
        }
    }
}

impl Sight {
    /// Finds the causes of gaps between kernels, and what the host did in their idle parts. The gaps are in order.
    fn explain(&self, gpu: &Gpu, copies: &Union, gaps: &[Span]) -> Vec<Explained> {
        let snap = &self.snap;
        let least = snap.thresholds.gap.max(1);
        let mut parts: Vec<Span> = Vec::new();
        for gap in gaps {
            copies.outside(*gap, |part| {
                if part.duration() >= least {
                    parts.push(part);
                }
            });
        }
        let (verdicts, of_parts) = verdict::of_gaps(snap, &gpu.agents, gaps, &parts, &self.beside);
        let mut parts = parts.into_iter().zip(of_parts).peekable();
        let explained = gaps.iter().zip(verdicts).map(|(gap, verdict)| {
            let mut listed = Vec::new();
            while let Some((part, verdict)) = parts.next_if(|(part, _)| part.begin < gap.end) {
                let next = usage::kernel_at(snap, &gpu.agents, part.end);
                listed.push(Gap::explained(snap, gpu.id, part, next, verdict));
            }
            Explained { gaps: listed, verdict }
        });
        explained.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fresh, Options};
    use roctop_trace::item::{Agent, AgentKind, ApiCall, Dispatch, Item, Operation, OperationId, QueueId, StreamId};

    const SECOND: u64 = 1_000_000_000;
    const GPU: AgentId = AgentId(1);

    fn dice(seed: &mut u64, below: u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*seed >> 33) % below
    }

    /// A program that keeps two streams busy, copies now and then, and stands still in between: what comes of it in the order
    /// in which rings are read, and the spans of its kernels and copies.
    fn program(seed: u64, count: usize) -> (Vec<Item>, Vec<Span>, Vec<Span>) {
        let mut seed = seed;
        let (mut kernels, mut copies, mut items) = (Vec::new(), Vec::new(), Vec::new());
        let mut ends = [SECOND; 2];
        for number in 0..count {
            let stream = dice(&mut seed, 2) as usize;
            let late = match dice(&mut seed, 100) {
                0 => dice(&mut seed, 20_000_000),
                1..10 => dice(&mut seed, 3_000_000),
                _ => dice(&mut seed, 30_000),
            };
            let begin = ends[stream].max(ends[1 - stream].saturating_sub(2_000_000)) + late;
            let span = Span {
                begin,
                end: begin + 1 + dice(&mut seed, 1_500_000),
            };
            ends[stream] = span.end;
            kernels.push(span);
            let submit = begin - dice(&mut seed, late + 20_000);
            let dispatch = Dispatch {
                agent: GPU,
                queue: QueueId(stream as u32),
                stream: Some(StreamId(stream as u32)),
                thread: Some(ThreadId(stream as u32)),
                dispatch_id: number as u64,
                span,
                submit,
                ..Dispatch::default()
            };
            items.push((span.end + dice(&mut seed, 40_000_000), Item::Dispatch(dispatch)));
            if late > 1_000_000 {
                let span = Span {
                    begin: begin - late + 1,
                    end: begin - late / 2,
                };
                let call = ApiCall {
                    thread: ThreadId(stream as u32),
                    operation: OperationId(0),
                    correlation: number as u64 + 1,
                    span,
                    ..ApiCall::default()
                };
                items.push((span.end + dice(&mut seed, 40_000_000), Item::Api(call)));
            }
            if dice(&mut seed, 20) == 0 {
                let begin = begin.saturating_sub(dice(&mut seed, 3_000_000));
                let span = Span {
                    begin,
                    end: begin + dice(&mut seed, 2_000_000),
                };
                copies.push(span);
                let copy = Copy {
                    destination: Some(GPU),
                    engine: engine::SDMA,
                    bytes: 1,
                    span,
                    ..Copy::default()
                };
                items.push((span.end + dice(&mut seed, 40_000_000), Item::Copy(copy)));
            }
        }
        items.sort_by_key(|(at, _)| *at);
        (items.into_iter().map(|(_, item)| item).collect(), kernels, copies)
    }

    fn whole(items: &[Item], options: Options, mode: Mode) -> Usage {
        let mut store = Store::new(Options { mode, ..options });
        store.apply_all(&[
            Item::Agent(Agent {
                id: GPU,
                kind: AgentKind::Gpu,
                name: "gfx942".into(),
                ..Agent::default()
            }),
            Item::Operation(Operation {
                id: OperationId(0),
                domain: roctop_ring::record::Domain::HIP.0,
                name: "hipStreamSynchronize".into(),
            }),
        ]);
        store.apply_all(items);
        let snap = store.snapshot(Fresh::All);
        snap.analysis().whole[0].clone()
    }

    /// Parts of a time that no span covers.
    fn gaps(spans: &[Span], within: Span) -> Vec<Span> {
        let mut sorted = spans.to_vec();
        sorted.sort_by_key(|span| span.begin);
        let (mut out, mut from) = (Vec::new(), within.begin);
        for span in sorted {
            if from < span.begin {
                out.push(Span {
                    begin: from,
                    end: span.begin.min(within.end),
                });
            }
            from = from.max(span.end);
        }
        if from < within.end {
            out.push(Span {
                begin: from,
                end: within.end,
            });
        }
        out
    }

    #[test]
    fn gaps_of_a_run_that_is_not_kept_are_those_of_one_that_is() {
        for seed in 0..3 {
            let (items, kernels, copies) = program(seed, 12_000);
            let all = whole(&items, Options::default(), Mode::Replay);
            let few = Options {
                slices: 6_000,
                keep: 2 * SECOND,
                ..Options::default()
            };
            let counted = whole(&items, few, Mode::Replay);
            let both: Vec<Span> = kernels.iter().chain(&copies).copied().collect();
            let idle = gaps(&both, counted.stretch);
            let first = kernels.iter().map(|span| span.begin).min();
            assert_eq!(Some(counted.stretch.begin), first);
            assert_eq!(counted.stretch, all.stretch);
            let sum = |gaps: &[Span]| gaps.iter().map(|gap| gap.duration()).sum::<u64>();
            assert_eq!((counted.idle, all.idle), (sum(&idle), sum(&idle)));
            assert_eq!(
                counted.compute,
                counted.stretch.duration() - sum(&gaps(&kernels, counted.stretch))
            );
            assert_eq!((counted.copy, counted.overlap), (all.copy, all.overlap));
            assert_eq!(counted.verdict.nanos, counted.stretch.duration() - counted.compute);
            let parts = counted.verdict.parts.iter().map(|part| part.nanos);
            assert_eq!(parts.sum::<u64>(), counted.verdict.nanos);
            let mut long: Vec<Span> = idle.into_iter().filter(|gap| gap.duration() >= 1_000_000).collect();
            assert_eq!(
                (counted.gap_count, all.gap_count),
                (long.len() as u64, long.len() as u64)
            );
            long.sort_by_key(|gap| (std::cmp::Reverse(gap.duration()), gap.begin));
            long.truncate(MAX_GAPS);
            let found: Vec<Span> = counted.gaps.iter().map(|gap| gap.span).collect();
            assert_eq!(found, long);
            assert_eq!(counted.longest, long[0].duration());
            assert!(!counted.is_estimated);
            for (gap, known) in counted.gaps.iter().zip(&all.gaps) {
                assert_eq!((&gap.verdict, gap.next), (&known.verdict, known.next), "{:?}", gap.span);
            }
        }
    }

    #[test]
    fn what_is_kept_of_a_long_run_is_bounded() {
        let (items, ..) = program(7, 30_000);
        let few = Options {
            slices: 6_000,
            keep: 0,
            ..Options::default()
        };
        let mut store = Store::new(few);
        store.apply_all(&items);
        store.explain_gaps(0, false);
        let account = &store.agents[GPU.0 as usize].idle;
        assert!(account.sums.gaps.len() < 2 * MAX_GAPS, "{}", account.sums.gaps.len());
        assert!(account.waiting.is_empty() && account.known.len() <= 4096);
        assert!(account.sums.verdict.parts.len() < 16);
    }
}
