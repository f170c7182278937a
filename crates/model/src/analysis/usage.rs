//! Use of GPUs: compute, copies, both, neither, and gaps.

use std::rc::Rc;

use roctop_ring::record::engine;

use super::host::{self, Host};
use super::overlap;
use super::verdict::{self, Sharing, Verdict};
use crate::{FastMap, LaneKey, Slice, Snapshot};
use roctop_trace::item::{AgentId, AgentKind, Dispatch, Nanos, QueueId, Span, StreamId};

/// Maximum number of gaps per GPU: the longest are kept.
pub(crate) const MAX_GAPS: usize = 200;
/// Maximum wait for the next launch; a longer one is a gap, ns.
const MAX_LAUNCH_WAIT: u64 = 1_000_000;

/// A span in which a GPU neither ran a kernel nor copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The GPU.
    pub agent: AgentId,
    /// Its time.
    pub span: Span,
    /// Lane and slice of the kernel that ended it; `None` if a copy ended it or it still lasts.
    pub next: Option<(LaneKey, Slice)>,
    /// Its causes.
    pub verdict: Verdict,
    /// What the host did, if slices of that time may be gone.
    host: Option<Host>,
}

impl Gap {
    /// A gap whose causes are not known.
    pub fn new(agent: AgentId, span: Span, next: Option<(LaneKey, Slice)>) -> Self {
        Self {
            agent,
            span,
            next,
            ..Self::default()
        }
    }

    /// A gap with what is found out about it now.
    pub(crate) fn explained(
        snap: &Snapshot,
        agent: AgentId,
        span: Span,
        next: Option<(LaneKey, Slice)>,
        verdict: Verdict,
    ) -> Self {
        let new = Self {
            verdict,
            ..Self::new(agent, span, next)
        };
        Self {
            host: Some(host::during(snap, &new)),
            ..new
        }
    }

    /// What the host did in it.
    pub fn host(&self, snap: &Snapshot) -> Host {
        self.host.unwrap_or_else(|| host::during(snap, self))
    }
}

/// Keeps the longest gaps, longest first.
pub(crate) fn keep_longest(gaps: &mut Vec<Gap>) {
    gaps.sort_by_key(|gap| (std::cmp::Reverse(gap.span.duration()), gap.span.begin));
    gaps.truncate(MAX_GAPS);
}

/// Use of one GPU during a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// The GPU: an agent of the process that used it, or the shared GPU of several.
    pub agent: AgentId,
    /// Its agents in the processes that used it.
    pub agents: Vec<AgentId>,
    /// Analysed span.
    pub stretch: Span,
    /// Time with at least one kernel, also incomplete ones, ns.
    pub compute: u64,
    /// Time with at least one copy from or to it, ns.
    pub copy: u64,
    /// Time with both, ns.
    pub overlap: u64,
    /// Time with neither, ns.
    pub idle: u64,
    /// Spans with at least one kernel.
    pub(crate) computing: Vec<Span>,
    /// Sum of kernel durations, ns; exceeds `compute` if kernels ran concurrently.
    pub kernel_time: u64,
    /// Number of kernels that began in the span.
    pub kernels: u64,
    /// Number of these shorter than the threshold.
    pub short: u64,
    /// Number of kernels that were submitted after their stream had become idle, after a short wait.
    pub starved: u64,
    /// Time in which at least one stream waited for a launch and no kernel ran, ns.
    pub starving: u64,
    /// Span in which kernels and waits of streams were counted: all of it, or its end.
    pub counted: Span,
    /// Whether work came too late to be counted exactly.
    pub is_estimated: bool,
    /// Time before the first kernel, ns; it is not part of the span.
    pub start_up: u64,
    /// Gaps beyond the threshold, longest first.
    pub gaps: Vec<Gap>,
    /// Number of all gaps.
    pub gap_count: u64,
    /// Longest idle time, ns.
    pub longest: u64,
    /// Causes of the time without kernels.
    pub verdict: Verdict,
    /// Waits of streams for others in the same hardware queue, longest first.
    pub sharing: Vec<Sharing>,
}

impl Usage {
    /// `nanos` as a share of the span.
    pub fn share(&self, nanos: u64) -> f64 {
        nanos as f64 / self.stretch.duration().max(1) as f64
    }

    /// Causes of one of its gaps.
    pub fn verdict_of(&self, gap: Span) -> Option<&Verdict> {
        let known = self.gaps.iter().find(|known| known.span == gap)?;
        Some(&known.verdict)
    }

    /// Share of the time in which streams waited for launches.
    pub fn starving_share(&self) -> f64 {
        self.starving as f64 / self.counted.duration().max(1) as f64
    }

    /// The use over a longer time, with what only its end shows.
    fn with_end(self, end: &Self) -> Self {
        Self {
            kernels: end.kernels,
            short: end.short,
            starved: end.starved,
            starving: end.starving,
            counted: end.counted,
            sharing: end.sharing.clone(),
            ..self
        }
    }

    /// Mean number of concurrent kernels while any ran.
    pub fn concurrency(&self) -> Option<f64> {
        (self.compute > 0).then(|| self.kernel_time as f64 / self.compute as f64)
    }
}

/// Whether a lane contains kernels.
pub const fn has_kernels(key: LaneKey) -> bool {
    matches!(key, LaneKey::Stream(..) | LaneKey::Queue(..))
}

/// Latest part of a span of which all GPU slices are kept, at most `max_slices` per lane.
pub fn kept(snap: &Snapshot, wanted: Span, most: usize) -> Span {
    let mut stretch = wanted;
    let lanes = || {
        snap.lanes
            .iter()
            .filter(|lane| has_kernels(lane.key) || matches!(lane.key, LaneKey::Copies(_)))
    };
    let each = (most / lanes().count().max(1)).max(1000);
    for lane in lanes() {
        for _ in 0..24 {
            if lane.has_slices(stretch.begin, stretch.end, each) {
                break;
            }
            stretch.begin += stretch.duration().div_ceil(2);
        }
    }
    stretch
}

/// Merges touching spans, which are sorted by begin.
pub(super) fn union(spans: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    for span in spans {
        match out.last_mut() {
            Some(last) if span.begin <= last.end => last.end = last.end.max(span.end),
            _ => out.push(span),
        }
    }
    out
}

pub(super) fn total(spans: impl Iterator<Item = Span>) -> u64 {
    spans.fold(0, |sum, span| sum.saturating_add(span.duration()))
}

/// Intersection of two spans.
pub(crate) fn clip(span: Span, within: Span) -> Option<Span> {
    let (begin, end) = (span.begin.max(within.begin), span.end.min(within.end));
    (begin < end).then_some(Span { begin, end })
}

/// Use of each GPU that had work during a span.
pub fn usage(snap: &Snapshot, stretch: Span, least_gap: u64) -> Vec<Usage> {
    let is_gpu = |id: AgentId| snap.names.agent(id).is_none_or(|agent| agent.kind != AgentKind::Cpu);
    // Processes that share a GPU have different agents for it.
    let place = |id: AgentId| {
        let agent = snap.names.agent(id).filter(|agent| !agent.name.is_empty())?;
        Some(snap.names.node_of(agent))
    };
    let process = |id: AgentId| snap.names.agent(id).map(|agent| agent.process);
    let mut gpus: Vec<Vec<AgentId>> = Vec::new();
    let rows = snap.values.agents.iter();
    for row in rows.filter(|row| row.dispatches > 0 && is_gpu(row.id)) {
        let here = place(row.id);
        let is_same = |gpu: &&mut Vec<AgentId>| {
            here.is_some()
                && gpu
                    .iter()
                    .all(|&id| place(id) == here && process(id) != process(row.id))
        };
        match gpus.iter_mut().find(is_same) {
            Some(gpu) => gpu.push(row.id),
            None => gpus.push(vec![row.id]),
        }
    }
    let events = Rc::new(verdict::Events::new(snap, stretch));
    gpus.into_iter()
        .map(|gpu| of_gpu(snap, gpu, stretch, least_gap, &events))
        .collect()
}

/// Use over the whole run: `whole` if that is known, else that of `end`, which has all slices then.
pub(super) fn whole(whole: &[Usage], end: &[Usage]) -> Vec<Usage> {
    if whole.is_empty() {
        return end.to_vec();
    }
    let rows = whole
        .iter()
        .map(|row| match end.iter().find(|end| end.agent == row.agent) {
            Some(end) => row.clone().with_end(end),
            None => row.clone(),
        });
    rows.collect()
}

/// Time before the first kernel, ns. It is not known if records before were not counted.
pub(crate) fn start_up(snap: &Snapshot, first: Nanos) -> u64 {
    if snap.values.counted_from > 0 {
        0
    } else {
        first.saturating_sub(snap.origin)
    }
}

/// Begin of the first kernel of a GPU.
fn first_kernel(snap: &Snapshot, agents: &[AgentId]) -> Option<Nanos> {
    let own = snap.lanes.iter().filter(|lane| is_kernel_lane(lane.key, agents));
    own.map(|lane| lane.first).min()
}

/// Whether a lane has kernels of a GPU.
fn is_kernel_lane(key: LaneKey, agents: &[AgentId]) -> bool {
    matches!(key, LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _) if agents.contains(&agent))
}

/// The kernel of a GPU that begins at a moment.
pub(crate) fn kernel_at(snap: &Snapshot, agents: &[AgentId], at: Nanos) -> Option<(LaneKey, Slice)> {
    let mut lanes = snap.lanes.iter().filter(|lane| is_kernel_lane(lane.key, agents));
    lanes.find_map(|lane| {
        let next = lane.neighbour(at.saturating_sub(1), true)?;
        (next.span.begin == at).then_some((lane.key, next))
    })
}

fn of_gpu(snap: &Snapshot, agents: Vec<AgentId>, window: Span, least_gap: u64, events: &Rc<verdict::Events>) -> Usage {
    // What was before the first kernel belongs to the start.
    let first = first_kernel(snap, &agents).unwrap_or(window.begin);
    let stretch = Span {
        begin: first.clamp(window.begin, window.end),
        end: window.end,
    };
    let mut usage = Usage {
        counted: stretch,
        start_up: start_up(snap, first),
        agent: agents
            .first()
            .map(|&agent| snap.names.gpu_of(agent))
            .unwrap_or_default(),
        stretch,
        ..Usage::default()
    };
    let mut kernels: Vec<(LaneKey, Slice)> = Vec::new();
    let mut lanes: Vec<(LaneKey, Vec<Slice>)> = Vec::new();
    let mut waits: Vec<Span> = Vec::new();
    for lane in snap.lanes.iter() {
        if !is_kernel_lane(lane.key, &agents) {
            continue;
        }
        let slices = lane
            .slices(stretch.begin, stretch.end, usize::MAX / 2)
            .unwrap_or_default();
        starve(&mut usage, &slices, &mut waits);
        kernels.extend(slices.iter().map(|slice| (lane.key, *slice)));
        lanes.push((lane.key, slices));
    }
    kernels.sort_by_key(|(_, slice)| slice.span.begin);
    for (_, slice) in &kernels {
        if slice.span.begin >= stretch.begin {
            usage.kernels += 1;
            usage.short += u64::from(slice.span.duration() < snap.thresholds.short);
        }
    }
    let ended = kernels.iter().filter_map(|(_, slice)| clip(slice.span, stretch));
    let mut spans: Vec<Span> = ended.chain(running(snap, &agents, stretch)).collect();
    spans.sort_by_key(|span| span.begin);
    usage.kernel_time = total(spans.iter().copied());
    let compute = union(spans.into_iter());
    waits.sort_by_key(|span| span.begin);
    let waits = union(waits.into_iter().filter_map(|span| clip(span, stretch)));
    usage.starving = total(waits.iter().copied()).saturating_sub(overlap::common(&waits, &compute));
    let mut own: Vec<Slice> = Vec::new();
    for lane in snap.lanes.iter().filter(|lane| matches!(lane.key, LaneKey::Copies(_))) {
        let slices = lane
            .slices(stretch.begin, stretch.end, usize::MAX / 2)
            .unwrap_or_default();
        own.extend(slices.into_iter().filter(|slice| is_copy_of(snap, &agents, slice)));
    }
    own.sort_by_key(|slice| slice.span.begin);
    let copies = union(own.iter().filter_map(|slice| clip(slice.span, stretch)));
    let mut both: Vec<Span> = compute.iter().chain(&copies).copied().collect();
    both.sort_by_key(|span| span.begin);
    let both = union(both.into_iter());
    (usage.compute, usage.copy) = (total(compute.iter().copied()), total(copies.iter().copied()));
    let busy = total(both.iter().copied());
    usage.overlap = usage.compute.saturating_add(usage.copy).saturating_sub(busy);
    usage.idle = stretch.duration().saturating_sub(busy);
    usage.sharing = verdict::sharing(&kernels);
    let mut work = verdict::Work::new(snap, &agents, stretch, lanes, own, events.clone());
    usage.verdict = work.of_stretch(stretch, &compute);
    gaps(&mut usage, &both, &kernels, least_gap);
    work.explain_gaps(&mut usage.gaps);
    usage.computing = compute;
    usage.agents = agents;
    usage
}

/// Whether a copy is from or to a GPU, and made by it.
pub(super) fn is_copy_of(snap: &Snapshot, agents: &[AgentId], copy: &Slice) -> bool {
    let route = snap.values.copies.get(copy.what as usize).map(|copies| copies.route);
    // The CPU may have made a copy of a call itself; it does not show that the device copied.
    let route = route.filter(|route| route.engine != engine::CALL);
    let ends = route.map_or([None, None], |route| [route.source, route.destination]);
    ends.into_iter().flatten().any(|end| agents.contains(&end))
}

/// Incomplete work of a GPU: a span by lane, from its submission or the end of the work before it.
pub(crate) fn running(snap: &Snapshot, agents: &[AgentId], stretch: Span) -> Vec<Span> {
    if !snap.is_running() {
        return Vec::new();
    }
    // The stream is known once a dispatch of the same queue has ended.
    let places = snap.values.places.iter();
    let streams: FastMap<QueueId, StreamId> = places.filter_map(|place| Some((place.queue, place.stream?))).collect();
    let mut first: FastMap<LaneKey, Nanos> = FastMap::default();
    for dispatch in snap.open.iter().flat_map(|open| &open.dispatches) {
        if agents.contains(&dispatch.agent) && dispatch.submit > 0 {
            let stream = dispatch.stream.or_else(|| streams.get(&dispatch.queue).copied());
            let key = LaneKey::of(&Dispatch { stream, ..*dispatch });
            let since = first.entry(key).or_insert(dispatch.submit);
            *since = dispatch.submit.min(*since);
        }
    }
    let spans = first.into_iter().filter_map(|(key, submit)| {
        let last = snap.lane(key).map_or(0, |lane| lane.last);
        let span = Span {
            begin: submit.max(last),
            end: stretch.end,
        };
        clip(span, stretch)
    });
    spans.collect()
}

/// Waits of a stream for the next launch: kernels submitted after it had become idle.
fn starve(usage: &mut Usage, slices: &[Slice], waits: &mut Vec<Span>) {
    let mut end = 0;
    for slice in slices {
        let wait = slice.span.begin.saturating_sub(end);
        if end > 0 && slice.submit >= end && wait < MAX_LAUNCH_WAIT && slice.span.begin >= usage.stretch.begin {
            usage.starved += 1;
            waits.push(Span {
                begin: end,
                end: slice.span.begin,
            });
        }
        end = end.max(slice.span.end);
    }
}

fn gaps(usage: &mut Usage, busy: &[Span], kernels: &[(LaneKey, Slice)], least: u64) {
    let stretch = usage.stretch;
    let mut from = stretch.begin;
    let ends = busy.iter().copied().chain([Span {
        begin: stretch.end,
        end: stretch.end,
    }]);
    for span in ends {
        let gap = Span {
            begin: from,
            end: span.begin.max(from),
        };
        from = span.end.max(from);
        usage.longest = usage.longest.max(gap.duration());
        if gap.duration() < least.max(1) {
            continue;
        }
        usage.gap_count += 1;
        let at = kernels.partition_point(|(_, slice)| slice.span.begin < gap.end);
        let next = kernels
            .get(at)
            .filter(|(_, slice)| slice.span.begin == gap.end)
            .copied();
        usage.gaps.push(Gap::new(usage.agent, gap, next));
    }
    keep_longest(&mut usage.gaps);
}

/// Activity in a time range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measure {
    /// By GPU; empty if slices are not kept.
    pub usage: Vec<Usage>,
    /// (kernel, number of launches, ns in the range), sorted by ns.
    pub kernels: Vec<(roctop_trace::item::KernelId, u64, u64)>,
    /// (direction, copies, bytes, ns) of copies that ended in the range.
    pub copies: Vec<(u16, u64, u64, u64)>,
    /// Whether all slices of the range were kept; otherwise the values come from the lanes' sums.
    pub is_whole: bool,
}

/// Measures a time range.
pub fn measure(snap: &Snapshot, range: Span) -> Measure {
    let is_whole = kept(snap, range, 4 * super::MAX_SLICES) == range;
    if !is_whole {
        return Measure::default();
    }
    let mut out = Measure {
        usage: usage(snap, range, snap.thresholds.gap),
        is_whole,
        ..Measure::default()
    };
    for lane in snap.lanes.iter() {
        let slices = || lane.slices(range.begin, range.end, usize::MAX / 2).unwrap_or_default();
        if has_kernels(lane.key) {
            for slice in slices() {
                let nanos = clip(slice.span, range).map_or(0, Span::duration);
                match out.kernels.iter_mut().find(|known| known.0.0 == slice.what) {
                    Some(known) => (known.1, known.2) = (known.1 + 1, known.2.saturating_add(nanos)),
                    None => out.kernels.push((roctop_trace::item::KernelId(slice.what), 1, nanos)),
                }
            }
        } else if let LaneKey::Copies(way) = lane.key {
            let ended = slices().into_iter().filter(|slice| slice.span.end <= range.end);
            let sum = ended.fold((way, 0, 0u64, 0u64), |sum, slice| {
                (
                    way,
                    sum.1 + 1,
                    sum.2.saturating_add(slice.value),
                    sum.3.saturating_add(slice.span.duration()),
                )
            });
            if sum.1 > 0 {
                out.copies.push(sum);
            }
        }
    }
    out.kernels.sort_by_key(|known| std::cmp::Reverse(known.2));
    out
}

/// Busy ns of a GPU from its lane's sums, if slices are not kept.
pub fn busy(snap: &Snapshot, agent: AgentId, from: Nanos, to: Nanos) -> u64 {
    snap.lane(LaneKey::Agent(agent)).map_or(0, |lane| lane.busy(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fresh, Options, Store};
    use roctop_trace::item::{Agent, Copy, Item, ProcessId};

    const BEGIN: Nanos = 1_000_000;
    const LENGTH: usize = 2_000;

    #[test]
    fn a_gpu_that_processes_share_is_one_gpu() {
        let mut store = Store::new(Options::default());
        for (process, node) in [(0, 2), (1, 2), (2, 3)] {
            store.apply(&Item::Agent(Agent {
                id: AgentId(process + 1),
                process: ProcessId(process),
                kind: AgentKind::Gpu,
                node,
                name: "gfx942".into(),
                ..Agent::default()
            }));
            let begin = BEGIN + u64::from(process) * 1000;
            store.apply(&Item::Dispatch(Dispatch {
                process: ProcessId(process),
                agent: AgentId(process + 1),
                span: Span {
                    begin,
                    end: begin + 1000,
                },
                ..Dispatch::default()
            }));
        }
        let snap = store.snapshot(Fresh::All);
        let stretch = Span {
            begin: BEGIN,
            end: BEGIN + 2000,
        };
        let rows = usage(&snap, stretch, 1);
        assert_eq!(rows[0].agents, [AgentId(1), AgentId(2)]);
        assert_eq!((rows[0].compute, rows[0].idle), (2000, 0));
        assert_eq!((rows[1].compute, rows[1].agents.len()), (0, 1));
    }

    #[test]
    fn a_kernel_that_runs_is_no_gap() {
        let ms = |n: u64| n * 1_000_000;
        let mut store = Store::new(Options::default());
        let kernel = |number: u64, begin, end| Dispatch {
            dispatch_id: number,
            agent: AgentId(1),
            submit: ms(1000),
            span: Span { begin, end },
            ..Dispatch::default()
        };
        store.apply(&Item::Agent(Agent {
            id: AgentId(1),
            name: "gfx942".into(),
            ..Agent::default()
        }));
        store.apply(&Item::Dispatch(Dispatch {
            stream: Some(StreamId(3)),
            ..kernel(1, ms(1000), ms(1100))
        }));
        store.apply(&Item::Open(roctop_trace::item::Open {
            dispatches: vec![kernel(2, 0, 0), kernel(3, 0, 0)],
            ..roctop_trace::item::Open::default()
        }));
        store.apply(&Item::Now(ms(1190)));
        let snap = store.snapshot(Fresh::All);
        let rows = usage(
            &snap,
            Span {
                begin: ms(1000),
                end: ms(1190),
            },
            ms(1),
        );
        assert_eq!((rows[0].compute, rows[0].idle), (ms(190), 0));
        assert_eq!(rows[0].kernel_time, ms(190), "it follows what ended in its stream");
        assert_eq!((rows[0].kernels, rows[0].gaps.len()), (1, 0));
        let row = snap.values.agents.iter().find(|row| row.id == AgentId(1));
        assert!(row.expect("a GPU").share > 0.99);
    }

    #[test]
    fn shares_are_those_of_counting_each_nanosecond() {
        let mut seed = 11u64;
        let mut dice = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..20 {
            let mut store = Store::new(Options::default());
            store.apply(&Item::Agent(Agent {
                id: AgentId(1),
                name: "gfx942".into(),
                ..Agent::default()
            }));
            let (mut kernel, mut copy) = ([0u64; LENGTH], [false; LENGTH]);
            for _ in 0..30 {
                let begin = dice(1900) as usize;
                let end = begin + 1 + dice(60) as usize;
                let span = Span {
                    begin: BEGIN + begin as u64,
                    end: BEGIN + end as u64,
                };
                if dice(3) == 0 {
                    copy[begin..end].fill(true);
                    store.apply(&Item::Copy(Copy {
                        span,
                        destination: Some(AgentId(1)),
                        ..Copy::default()
                    }));
                } else {
                    kernel[begin..end].iter_mut().for_each(|count| *count += 1);
                    store.apply(&Item::Dispatch(Dispatch {
                        span,
                        agent: AgentId(1),
                        queue: QueueId(dice(2) as u32),
                        stream: (dice(2) == 0).then_some(StreamId(dice(2) as u32)),
                        ..Dispatch::default()
                    }));
                }
            }
            let stretch = Span {
                begin: BEGIN,
                end: BEGIN + LENGTH as u64,
            };
            let snap = store.snapshot(Fresh::All);
            let rows = usage(&snap, stretch, 1);
            let row = rows.iter().find(|row| row.agent == AgentId(1)).expect("it had work");
            // What is before the first kernel belongs to the start.
            let first = (0..LENGTH).find(|&at| kernel[at] > 0).expect("a kernel");
            let count = |test: &dyn Fn(usize) -> bool| (first..LENGTH).filter(|&at| test(at)).count() as u64;
            assert_eq!(row.stretch.begin, BEGIN + first as u64);
            assert_eq!(row.compute, count(&|at| kernel[at] > 0));
            assert_eq!(row.copy, count(&|at| copy[at]));
            assert_eq!(row.overlap, count(&|at| kernel[at] > 0 && copy[at]));
            assert_eq!(row.idle, count(&|at| kernel[at] == 0 && !copy[at]));
            assert_eq!(row.kernel_time, kernel.iter().sum::<u64>());
            assert_eq!(row.gaps.iter().map(|gap| gap.span.duration()).sum::<u64>(), row.idle);
        }
    }
}
