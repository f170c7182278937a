//! Causes of the time in which a GPU ran no kernel, with shares.
//!
//! Every piece of that time has one cause. If a kernel was queued, the cause is what it waited for: an event, a copy, or
//! a stream on the same hardware queue. If none was queued, the cause is what the thread that launches the next one did.
//! All of it is exact, except how long that thread was off the CPU, which is estimated from readings.

mod dependency;
mod launcher;

use roctop_ring::record::direction;

use std::rc::Rc;

use self::dependency::Dependencies;
pub(crate) use self::dependency::Events;
pub(crate) use self::launcher::Readings;
use self::launcher::{Doing, Launchers};
use super::usage::{Gap, clip, has_kernels};
use crate::{FastMap, LaneKey, Slice, Snapshot};
use roctop_trace::item::{AgentId, Nanos, OperationId, QueueId, Span, ThreadId};
use roctop_trace::units;

/// Maximum time between the cause's end and the kernel's begin that still belongs to the cause, ns.
pub(crate) const MAX_LATENCY: u64 = 100_000;

/// Length of the time of several gaps whose kernels and calls are looked up at once, ns.
const MAX_AROUND: u64 = 200_000_000;

/// Maximum number of causes of a time; further ones count as unknown.
const MAX_PARTS: usize = 256;

/// Why a GPU ran no kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing was queued: the host came late.
    Host,
    /// Nothing was queued, and the launching thread did not run.
    HostAsleep,
    /// Nothing was queued, and the launching thread was in this function of MPI.
    Mpi(OperationId),
    /// The same, until this rank called it, too.
    Rank(OperationId, u32),
    /// The GPU had not run its first kernel yet.
    StartUp,
    /// A kernel, or the launching thread, waited for work of another stream.
    Dependency {
        /// Lane of that work.
        on: LaneKey,
        /// Handle of the event; 0 if the thread waited.
        event: u64,
    },
    /// The next work waited for a copy in this direction.
    Copy(u16),
    /// A kernel could have run, but its stream shares a hardware queue with a stream that waited.
    SharedQueue {
        /// The queue.
        queue: QueueId,
        /// Lane of the stream that waited.
        behind: LaneKey,
    },
    /// Short time between kernels that were queued already.
    BetweenKernels,
    /// What a queued kernel waited for is not recorded, or when it was submitted.
    Unknown,
}

impl Cause {
    /// Whether shares of both are added.
    fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Dependency { on, .. }, Self::Dependency { on: known, .. }) => on == known,
            _ => self == other,
        }
    }

    /// The cause in a few words.
    pub fn words(self, snap: &Snapshot) -> String {
        let stream = |lane| stream_label(snap, lane);
        match self {
            Self::Host => "host-bound".into(),
            Self::HostAsleep => "host thread not running".into(),
            Self::Mpi(id) => format!("waits in {}", function(snap, id)),
            Self::Rank(id, rank) => format!("waits for rank {rank} in {}", function(snap, id)),
            Self::StartUp => "start-up".into(),
            Self::Dependency { on, event: 0 } => format!("host waits for {}", stream(on)),
            Self::Dependency { on, .. } => format!("waits for {}", stream(on)),
            Self::Copy(way) => format!("copy {}", direction::name(way)),
            Self::SharedQueue { queue, behind } => {
                format!("shares {} with {}", snap.names.queue_label(queue), stream(behind))
            }
            Self::BetweenKernels => "between kernels".into(),
            Self::Unknown => "unknown".into(),
        }
    }

    /// The cause in a sentence.
    pub fn explanation(self, snap: &Snapshot) -> String {
        let stream = |lane| stream_label(snap, lane);
        match self {
            Self::Host => "nothing was queued: the launching thread came late".into(),
            Self::HostAsleep => "nothing was queued: the launching thread was not on a CPU".into(),
            Self::Mpi(id) => format!("nothing was queued: the launching thread was in {}", function(snap, id)),
            Self::Rank(id, rank) => format!(
                "nothing was queued: the launching thread was in {}, and rank {rank} had not called it",
                function(snap, id)
            ),
            Self::StartUp => "no kernel had run yet".into(),
            Self::Dependency { on, event: 0 } => format!("nothing was queued: the host waited for {}", stream(on)),
            Self::Dependency { on, event } => format!("a kernel waited for event {event:#x} of {}", stream(on)),
            Self::Copy(way) => format!("the next work waited for a copy {}", direction::name(way)),
            Self::SharedQueue { queue, behind } => format!(
                "a kernel stood in {} behind {}, which waited",
                snap.names.queue_label(queue),
                stream(behind)
            ),
            Self::BetweenKernels => "short times between kernels that were queued".into(),
            Self::Unknown => "not recorded: what a queued kernel waited for, or when it was submitted".into(),
        }
    }
}

fn function(snap: &Snapshot, id: OperationId) -> &str {
    let known = snap.names.operation(id);
    known.map_or("MPI", |known| &known.operation.name)
}

/// A stream with its GPU if there are several, or the direction of copies.
fn stream_label(snap: &Snapshot, lane: LaneKey) -> String {
    let (agent, label) = match lane {
        LaneKey::Stream(agent, stream) => (agent, snap.names.stream_label(stream)),
        LaneKey::Queue(agent, queue) => (agent, snap.names.queue_label(queue)),
        LaneKey::Copies(way) => return format!("copy {}", direction::name(way)),
        _ => return units::MISSING.into(),
    };
    let gpus = snap.values.agents.iter().filter(|row| row.dispatches > 0).count();
    if gpus > 1 {
        format!("{} {label}", snap.names.agent_label(agent))
    } else {
        label
    }
}

/// A cause and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The cause.
    pub cause: Cause,
    /// Its time, ns.
    pub nanos: u64,
    /// Whether the time is an estimate.
    pub is_estimated: bool,
    /// Length of the longest piece: the event of a dependency is that piece's.
    longest: u64,
}

/// Causes of a time without kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Time without kernels, ns: the sum of all parts.
    pub nanos: u64,
    /// Causes, the one with most time first.
    pub parts: Vec<Part>,
}

impl Verdict {
    pub(crate) fn add(&mut self, cause: Cause, nanos: u64, is_estimated: bool) {
        if nanos == 0 {
            return;
        }
        self.nanos += nanos;
        let part = Part {
            cause,
            nanos,
            is_estimated,
            longest: nanos,
        };
        self.merge(part);
    }

    fn merge(&mut self, part: Part) {
        match self.parts.iter().position(|known| known.cause.is_same(part.cause)) {
            Some(at) => {
                let known = &mut self.parts[at];
                known.nanos += part.nanos;
                known.is_estimated |= part.is_estimated;
                if part.longest > known.longest {
                    (known.cause, known.longest) = (part.cause, part.longest);
                }
            }
            // Streams may come without end.
            None if self.parts.len() >= MAX_PARTS && part.cause != Cause::Unknown => self.merge(Part {
                cause: Cause::Unknown,
                ..part
            }),
            None => self.parts.push(part),
        }
    }

    /// Adds the causes of another time.
    pub(crate) fn join(&mut self, other: &Self) {
        self.nanos += other.nanos;
        other.parts.iter().for_each(|part| self.merge(*part));
    }

    pub(crate) fn sort(&mut self) {
        self.parts.sort_by_key(|part| std::cmp::Reverse(part.nanos));
    }

    /// Share of a part, 0 to 1.
    pub fn share(&self, part: &Part) -> f64 {
        part.nanos as f64 / self.nanos.max(1) as f64
    }

    /// Share of the causes that `is` accepts, 0 to 1.
    pub fn share_of(&self, is: impl Fn(Cause) -> bool) -> f64 {
        let parts = self.parts.iter().filter(|part| is(part.cause));
        parts.map(|part| self.share(part)).sum()
    }

    /// The causes with at least one per cent, most first: `71 % host-bound`, `≈20 % host thread not running`. One cause
    /// alone has no share.
    pub fn words(&self, snap: &Snapshot) -> Vec<String> {
        let listed = self.parts.iter().filter(|part| self.share(part) >= 0.01);
        let listed: Vec<&Part> = listed.collect();
        if let [only] = listed[..]
            && self.share(only) >= 0.995
            && !only.is_estimated
        {
            return vec![only.cause.words(snap)];
        }
        let words = listed.iter().map(|part| {
            let sign = if part.is_estimated { "≈" } else { "" };
            let share = (self.share(part) * 100.0).round();
            format!("{sign}{share:.0} % {}", part.cause.words(snap))
        });
        words.collect()
    }
}

/// Kernels and copies of one GPU in a span, in which causes are looked for.
pub(super) struct Work<'a> {
    snap: &'a Snapshot,
    agents: &'a [AgentId],
    lanes: Vec<(LaneKey, Vec<Slice>)>,
    /// For each lane the first kernel that the last span did not pass.
    ahead: Vec<usize>,
    /// Copies, by begin.
    copies: Vec<Slice>,
    /// The first copy that had not ended at the begin of the last span.
    copying: usize,
    /// Begin of the first kernel ever.
    first: Nanos,
    dependencies: Dependencies<'a>,
    launchers: Launchers<'a>,
}

/// A kernel that a GPU without kernels is about to run.
#[derive(Clone, Copy)]
struct Next {
    lane: LaneKey,
    slice: Slice,
    /// Submission of the kernel before it in its lane.
    after: Nanos,
}

impl<'a> Work<'a> {
    /// `lanes` has the kernels of the GPU by begin, `copies` its copies by begin.
    pub(super) fn new(
        snap: &'a Snapshot,
        agents: &'a [AgentId],
        stretch: Span,
        lanes: Vec<(LaneKey, Vec<Slice>)>,
        copies: Vec<Slice>,
        events: Rc<Events>,
    ) -> Self {
        let of_gpu = |key: LaneKey| matches!(key, LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _) if agents.contains(&agent));
        let begins = snap.lanes.iter().filter(|lane| of_gpu(lane.key)).map(|lane| lane.first);
        Self {
            snap,
            agents,
            first: begins.min().unwrap_or(0),
            ahead: vec![0; lanes.len()],
            copying: 0,
            dependencies: Dependencies::new(snap, stretch, events),
            launchers: Launchers::new(snap, stretch),
            lanes,
            copies,
        }
    }

    /// As [`Work::new`], for a span alone; `None` if not all kernels and copies in it are kept, or if they are very many,
    /// unless those of a lane `may_lack`.
    fn around(
        snap: &'a Snapshot,
        agents: &'a [AgentId],
        span: Span,
        (events, readings): (Rc<Events>, Rc<Readings>),
        may_lack: bool,
    ) -> Option<Self> {
        let touching = |lane: &crate::Lane| {
            let slices = lane.slices(span.begin, span.end, super::MAX_SLICES);
            slices.or_else(|| may_lack.then(Vec::new))
        };
        let of_gpu = |key: LaneKey| match key {
            LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _) => agents.contains(&agent),
            _ => false,
        };
        let mut kernels = Vec::new();
        for lane in snap.lanes.iter().filter(|lane| of_gpu(lane.key)) {
            let mut slices = touching(lane)?;
            let next = lane.neighbour(span.end, true);
            slices.extend(next.filter(|next| slices.iter().all(|known| known != next)));
            kernels.push((lane.key, slices));
        }
        let mut copies: Vec<Slice> = Vec::new();
        for lane in snap.lanes.iter().filter(|lane| matches!(lane.key, LaneKey::Copies(_))) {
            let own = touching(lane)?;
            copies.extend(
                own.into_iter()
                    .filter(|copy| super::usage::is_copy_of(snap, agents, copy)),
            );
        }
        copies.sort_by_key(|copy| copy.span.begin);
        let mut work = Self::new(snap, agents, span, kernels, copies, events);
        work.launchers.with_readings(readings);
        Some(work)
    }

    /// Adds the causes of a span without kernels. Spans come in order.
    fn explain(&mut self, idle: Span, verdict: &mut Verdict) {
        let next = self.next(idle);
        let copies = self.copies_in(idle);
        // The cause is constant between the moments at which something is queued, released or copied.
        let mut cuts = vec![idle.begin, idle.end];
        let mut cut = |at: Nanos| {
            if idle.begin < at && at < idle.end {
                cuts.push(at);
            }
        };
        cut(self.first);
        for copy in &copies {
            cut(copy.span.begin);
            cut(copy.span.end);
        }
        for kernel in &next {
            cut(kernel.slice.submit);
            if let Some(wait) = self.dependencies.of(kernel.lane, &kernel.slice, kernel.after) {
                cut(wait.until);
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        for pair in cuts.windows(2) {
            let piece = Span {
                begin: pair[0],
                end: pair[1],
            };
            let copy = copies.iter().find(|copy| clip(copy.span, piece).is_some());
            self.explain_piece(idle, piece, &next, copy, verdict);
        }
    }

    /// The first kernel of each lane behind a span without kernels.
    fn next(&mut self, idle: Span) -> Vec<Next> {
        let mut next = Vec::new();
        for (at, (lane, slices)) in self.ahead.iter_mut().zip(&self.lanes) {
            while slices.get(*at).is_some_and(|slice| slice.span.begin < idle.end) {
                *at += 1;
            }
            next.extend(slices.get(*at).map(|slice| Next {
                lane: *lane,
                slice: *slice,
                after: at.checked_sub(1).map_or(0, |before| slices[before].submit),
            }));
        }
        next
    }

    fn copies_in(&mut self, idle: Span) -> Vec<Slice> {
        let is_past = |copy: &Slice| copy.span.end <= idle.begin;
        while self.copies.get(self.copying).is_some_and(is_past) {
            self.copying += 1;
        }
        let near = self.copies.iter().skip(self.copying);
        let near = near.take_while(|copy| copy.span.begin < idle.end);
        near.filter(|copy| clip(copy.span, idle).is_some()).copied().collect()
    }

    fn explain_piece(&mut self, idle: Span, piece: Span, next: &[Next], copy: Option<&Slice>, verdict: &mut Verdict) {
        let is_queued = |kernel: &&Next| kernel.slice.submit > 0 && kernel.slice.submit <= piece.begin;
        let queued = next
            .iter()
            .filter(is_queued)
            .min_by_key(|kernel| kernel.slice.span.begin);
        let Some(kernel) = queued else {
            return self.explain_by_host(piece, next, copy, verdict);
        };
        let wait = self.dependencies.of(kernel.lane, &kernel.slice, kernel.after);
        let waits = wait.filter(|wait| wait.until > piece.begin);
        let way = copy.and_then(|copy| self.direction(copy));
        let cause = match (waits, way) {
            (Some(wait), _) => match (wait.on, way) {
                (LaneKey::Copies(way), _) => Cause::Copy(way),
                (on, _) => self
                    .blocked_behind(kernel, piece, next)
                    .unwrap_or(Cause::Dependency { on, event: wait.event }),
            },
            (None, Some(way)) => Cause::Copy(way),
            // The kernel begins soon: it is the end of what it waited for.
            (None, None) if piece.duration() <= MAX_LATENCY => match wait.filter(|wait| wait.until > idle.begin) {
                Some(wait) => match wait.on {
                    LaneKey::Copies(way) => Cause::Copy(way),
                    on => Cause::Dependency { on, event: wait.event },
                },
                None if kernel.slice.submit > idle.begin => {
                    if kernel.slice.span.begin <= self.first {
                        Cause::StartUp
                    } else {
                        Cause::Host
                    }
                }
                None => Cause::BetweenKernels,
            },
            (None, None) => Cause::Unknown,
        };
        verdict.add(cause, piece.duration(), false);
    }

    /// The queue of a kernel that waits, if another stream's kernel is behind it there and waits for nothing else.
    fn blocked_behind(&mut self, kernel: &Next, piece: Span, next: &[Next]) -> Option<Cause> {
        let behind = next.iter().find(|other| {
            other.lane != kernel.lane
                && other.slice.queue == kernel.slice.queue
                && other.slice.queue != u32::MAX
                && other.slice.submit > kernel.slice.submit
                && other.slice.submit <= piece.begin
                && self
                    .dependencies
                    .of(other.lane, &other.slice, other.after)
                    .is_none_or(|wait| wait.until <= piece.begin)
        });
        behind.map(|other| Cause::SharedQueue {
            queue: QueueId(other.slice.queue),
            behind: kernel.lane,
        })
    }

    /// Direction of a copy.
    fn direction(&self, copy: &Slice) -> Option<u16> {
        let row = self.snap.values.copies.get(copy.what as usize)?;
        Some(row.route.direction)
    }

    /// Nothing is queued: what the thread that launches next does.
    fn explain_by_host(&mut self, piece: Span, next: &[Next], copy: Option<&Slice>, verdict: &mut Verdict) {
        let first = next.iter().min_by_key(|kernel| kernel.slice.span.begin);
        let thread = first
            .map(|kernel| kernel.slice.thread)
            .or_else(|| self.last_launcher(piece));
        let way = copy.and_then(|copy| self.direction(copy));
        let is_before = piece.end <= self.first;
        if is_before && way.is_none() {
            return verdict.add(Cause::StartUp, piece.duration(), false);
        }
        if first.is_some_and(|kernel| kernel.slice.submit == 0) {
            let cause = way.map_or(Cause::Unknown, Cause::Copy);
            return verdict.add(cause, piece.duration(), false);
        }
        let Some(thread) = thread.filter(|&thread| thread != u32::MAX) else {
            let cause = way.map_or(Cause::Host, Cause::Copy);
            return verdict.add(cause, piece.duration(), false);
        };
        let agents = self.agents;
        self.launchers
            .during(ThreadId(thread), agents, piece, |doing, nanos, is_estimated| {
                let cause = match doing {
                    Doing::Copying(own) => way.or(own).map_or(Cause::Host, Cause::Copy),
                    Doing::Waiting => way.map_or(Cause::Host, Cause::Copy),
                    Doing::WaitingFor(on) => way.map_or(Cause::Dependency { on, event: 0 }, Cause::Copy),
                    // A copy that no one waits for is not the cause.
                    _ if is_before => Cause::StartUp,
                    Doing::InMpi(id, None) => Cause::Mpi(id),
                    Doing::InMpi(id, Some(rank)) => Cause::Rank(id, rank),
                    Doing::Asleep => Cause::HostAsleep,
                    Doing::Else => Cause::Host,
                };
                verdict.add(cause, nanos, is_estimated);
            });
    }

    /// Causes of the time without kernels in a span.
    pub(super) fn of_stretch(&mut self, stretch: Span, computing: &[Span]) -> Verdict {
        let mut verdict = Verdict::default();
        let mut from = stretch.begin;
        let end = Span {
            begin: stretch.end,
            end: stretch.end,
        };
        for span in computing.iter().chain([&end]) {
            if from < span.begin {
                let idle = Span {
                    begin: from,
                    end: span.begin,
                };
                self.explain(idle, &mut verdict);
            }
            from = from.max(span.end);
        }
        verdict.sort();
        verdict
    }

    /// Finds the causes of each gap.
    pub(super) fn explain_gaps(&mut self, gaps: &mut [Gap]) {
        let mut order: Vec<usize> = (0..gaps.len()).collect();
        order.sort_by_key(|&at| gaps[at].span.begin);
        let spans: Vec<Span> = order.iter().map(|&at| gaps[at].span).collect();
        for (at, verdict) in order.into_iter().zip(self.of_each(&spans)) {
            gaps[at].verdict = verdict;
        }
    }

    /// Causes of each span without kernels; the spans are in order.
    fn of_each(&mut self, spans: &[Span]) -> Vec<Verdict> {
        self.ahead.fill(0);
        self.copying = 0;
        let verdicts = spans.iter().map(|span| {
            let mut verdict = Verdict::default();
            self.explain(*span, &mut verdict);
            verdict.sort();
            verdict
        });
        verdicts.collect()
    }

    /// The thread that launched the last kernel before a span.
    fn last_launcher(&self, piece: Span) -> Option<u32> {
        let last = self.lanes.iter().filter_map(|(_, slices)| {
            let at = slices.partition_point(|slice| slice.span.begin < piece.begin);
            slices.get(at.checked_sub(1)?)
        });
        last.max_by_key(|slice| slice.span.end).map(|slice| slice.thread)
    }
}

/// Causes of one gap of a GPU.
pub fn of_gap(snap: &Snapshot, agent: AgentId, gap: Span) -> Verdict {
    let members = snap.names.members(agent);
    let agents = if members.is_empty() { vec![agent] } else { members };
    let beside = (Rc::new(Events::new(snap, gap)), Rc::new(Readings::around(gap)));
    of_gaps(snap, &agents, &[gap], &[], &beside).0.remove(0)
}

/// Causes of gaps of the agents of a GPU, and of parts of them, by what is known of the time around them. Both are in order.
pub(crate) fn of_gaps(
    snap: &Snapshot,
    agents: &[AgentId],
    gaps: &[Span],
    parts: &[Span],
    beside: &(Rc<Events>, Rc<Readings>),
) -> (Vec<Verdict>, Vec<Verdict>) {
    let (Some(first), Some(last)) = (gaps.first(), gaps.last()) else {
        return Default::default();
    };
    let around = Span {
        begin: first.begin,
        end: last.end,
    };
    let is_alone = gaps.len() == 1;
    if (is_alone || around.duration() <= MAX_AROUND)
        && let Some(mut work) = Work::around(snap, agents, around, beside.clone(), is_alone)
    {
        return (work.of_each(gaps), work.of_each(parts));
    }
    let (gaps, later) = gaps.split_at(gaps.len() / 2);
    let (parts, later_parts) = parts.split_at(parts.partition_point(|part| part.begin < later[0].begin));
    let (mut found, mut found_parts) = of_gaps(snap, agents, gaps, parts, beside);
    let (rest, rest_parts) = of_gaps(snap, agents, later, later_parts, beside);
    found.extend(rest);
    found_parts.extend(rest_parts);
    (found, found_parts)
}

/// Time that a stream's kernels stood behind those of another stream in one hardware queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The queue.
    pub queue: QueueId,
    /// Lane of the stream that waited.
    pub waited: LaneKey,
    /// Lane of the stream that it waited for.
    pub behind: LaneKey,
    /// Time, ns.
    pub nanos: u64,
}

/// Waits of streams for others in the same hardware queue, longest first. `kernels` is sorted by begin.
pub(super) fn sharing(kernels: &[(LaneKey, Slice)]) -> Vec<Sharing> {
    // Lane and end of each queue's last kernel, and end of each lane's last.
    let mut in_queue: FastMap<u32, (LaneKey, Nanos)> = FastMap::default();
    let mut in_lane: FastMap<LaneKey, Nanos> = FastMap::default();
    let mut sums: FastMap<(u32, LaneKey, LaneKey), u64> = FastMap::default();
    for (lane, slice) in kernels.iter().filter(|(_, slice)| slice.queue != u32::MAX) {
        let own_end = in_lane.get(lane).copied().unwrap_or(0);
        if let Some((behind, end)) = in_queue.get(&slice.queue).copied()
            && behind != *lane
            && slice.submit > 0
        {
            let from = slice.submit.max(own_end);
            let waited = end.min(slice.span.begin).saturating_sub(from);
            if waited > 0 {
                *sums.entry((slice.queue, *lane, behind)).or_default() += waited;
            }
        }
        in_queue.insert(slice.queue, (*lane, slice.span.end));
        in_lane.insert(*lane, slice.span.end.max(own_end));
    }
    let rows = sums.into_iter().map(|((queue, waited, behind), nanos)| Sharing {
        queue: QueueId(queue),
        waited,
        behind,
        nanos,
    });
    let mut rows: Vec<Sharing> = rows.collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.nanos), row.waited, row.behind));
    rows
}

impl Sharing {
    /// The wait in words.
    pub fn words(&self, snap: &Snapshot) -> String {
        format!(
            "{} waited {} behind {} in {}",
            stream_label(snap, self.waited),
            units::duration(self.nanos),
            stream_label(snap, self.behind),
            snap.names.queue_label(self.queue)
        )
    }
}

/// Whether a lane has kernels of other GPUs than these.
fn is_elsewhere(key: LaneKey, agents: &[AgentId]) -> bool {
    has_kernels(key) && !matches!(key, LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _) if agents.contains(&agent))
}
