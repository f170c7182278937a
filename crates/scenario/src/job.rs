//! Synthetic jobs: ranks that compute, copy and meet in a collective at the end of each step, second by second. Their
//! reports go the way of real ones: through the daemon's reduction, as bytes, to the root.

use roctop_model::analysis::Rule;
use roctop_model::analysis::placement::Place;
use roctop_model::job::{
    AlertSums, ArrivalSums, CommunicatorPart, HostSums, Job, KernelSums, NodeClock, PendingPart, RankReport, RankSums,
    Readings, Reducer, StepSums, decode_node, name_id,
};
use roctop_trace::binding::{CpuSet, Device, Node, Numa};
use roctop_trace::item::{LossReason, Nanos, Span};

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// Usual parts of a step, ns.
const HOST: u64 = 12 * MS;
const COPY: u64 = 8 * MS;
const COMPUTE: u64 = 300 * MS;
const TRANSFER: u64 = 30 * MS;
/// Kernels with their shares of the computing time, per cent.
const KERNELS: [(&str, u64); 4] = [
    ("Cijk_Ailk_Bljk_BBS_BH_MT256x128x32", 46),
    ("flash_attn_bwd", 31),
    ("layer_norm_bwd", 14),
    ("adam_step", 9),
];
const COLLECTIVE: &str = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL";
/// The NUMA node of each GPU of a node, as with four MI250X.
const NUMA: [u32; 8] = [3, 3, 1, 1, 0, 0, 2, 2];
/// Cores of a NUMA node.
const CORES: u32 = 16;
/// How much a node's clock is ahead of that of the one before.
const BOOTED: u64 = 977 * SECOND;

/// What is wrong with a synthetic job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Nothing.
    Healthy,
    /// One rank's kernels take a quarter longer.
    Compute,
    /// One rank's GPU has a low clock, because it is hot.
    Clock,
    /// One rank's host is late, because its thread waits for a CPU.
    Host,
    /// One rank does not come to a collective.
    Hang,
    /// One node is gone.
    DeadNode,
    /// The ranks of one node are bound in the order of its cores, which is not that of its GPUs.
    Placement,
}

/// A synthetic job.
#[derive(Clone, Copy, Debug)]
pub struct JobPlan {
    /// What is wrong.
    pub kind: JobKind,
    /// Number of nodes.
    pub nodes: u32,
    /// Ranks on each.
    pub ranks_per_node: u32,
    /// Second in which a rank hangs or a node is gone.
    pub fails: u64,
    /// Error of each node's clock, ns; `None`: the clocks are not known.
    pub clock_error: Option<u64>,
}

impl JobPlan {
    /// A job of this kind on four nodes with eight ranks each.
    pub const fn of(kind: JobKind) -> Self {
        Self {
            kind,
            nodes: 4,
            ranks_per_node: 8,
            fails: 28,
            clock_error: Some(12_000),
        }
    }

    /// The rank that is slow or hangs; the first of the node that is gone.
    pub const fn culprit(&self) -> u32 {
        let rank = 2 * self.ranks_per_node + if matches!(self.kind, JobKind::DeadNode) { 0 } else { 3 };
        rank % (self.nodes * self.ranks_per_node)
    }
}

/// A step of a rank: what it does when.
#[derive(Clone, Copy, Debug, Default)]
struct StepTimes {
    number: u32,
    begin: Nanos,
    copy: Nanos,
    compute: Nanos,
    /// When its collective begins, and when that ends.
    arrival: Nanos,
    end: Nanos,
    /// It never comes to the collective, or waits there for ever.
    is_stuck: bool,
    /// It has not come.
    is_absent: bool,
}

/// A synthetic job as far as it has come.
#[derive(Debug)]
pub struct SyntheticJob {
    plan: JobPlan,
    /// The root's state.
    pub job: Job,
    second: u64,
    /// Steps by rank, the latest last.
    steps: Vec<Vec<StepTimes>>,
    reducers: Vec<Reducer>,
    /// Bytes of the longest report so far.
    pub longest_report: usize,
    seed: u64,
}

impl SyntheticJob {
    /// At its begin.
    pub fn new(plan: JobPlan) -> Self {
        let mut job = Job::new("train-7b");
        for node in 0..plan.nodes {
            job.node(node, &format!("node{node:03}"));
            if let Some(error) = plan.clock_error {
                let offset = (u64::from(node) * BOOTED) as i64;
                job.clock(node, NodeClock { offset, error });
            }
        }
        let ranks = (plan.nodes * plan.ranks_per_node) as usize;
        let hosts = (0..plan.nodes).map(|node| Reducer::new(&format!("node{node:03}")));
        Self {
            plan,
            job,
            second: 0,
            steps: vec![Vec::new(); ranks],
            reducers: hosts.collect(),
            longest_report: 0,
            seed: 7,
        }
    }

    /// The state after some seconds.
    pub fn after(plan: JobPlan, seconds: u64) -> Self {
        let mut job = Self::new(plan);
        (0..seconds).for_each(|_| job.advance());
        job
    }

    /// The root's clock.
    pub const fn now(&self) -> Nanos {
        crate::BEGIN + self.second * SECOND + SECOND / 2
    }

    /// A number below `below`.
    const fn dice(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.seed >> 33) % below
    }

    /// Varies a duration by a few per mille.
    const fn vary(&mut self, nanos: u64) -> u64 {
        nanos + nanos / 1000 * self.dice(9) / 2
    }

    /// Whether a rank is on the node that is gone by a second.
    fn is_dead(&self, rank: u32, second: u64) -> bool {
        self.plan.kind == JobKind::DeadNode
            && second >= self.plan.fails
            && rank / self.plan.ranks_per_node == self.plan.culprit() / self.plan.ranks_per_node
    }

    /// One more step of all ranks.
    fn step(&mut self) {
        let (kind, culprit) = (self.plan.kind, self.plan.culprit());
        let mut new = Vec::with_capacity(self.steps.len());
        let mut last = 0;
        let mut is_stuck = false;
        for rank in 0..self.steps.len() as u32 {
            let before = self.steps[rank as usize].last().copied().unwrap_or_default();
            let begin = before.end.max(crate::BEGIN);
            let is_it = rank == culprit;
            let host = self.vary(HOST) + if is_it && kind == JobKind::Host { 90 * MS } else { 0 };
            let slower = match kind {
                JobKind::Compute if is_it => COMPUTE / 4,
                JobKind::Clock if is_it => COMPUTE / 3,
                _ => 0,
            };
            let compute = self.vary(COMPUTE + slower);
            let copy = begin + host;
            let step = StepTimes {
                number: before.number + 1,
                begin,
                copy,
                compute: copy + self.vary(COPY),
                ..StepTimes::default()
            };
            let arrival = step.compute + compute;
            let seconds = (arrival - crate::BEGIN) / SECOND;
            let is_absent = match kind {
                JobKind::Hang => is_it && seconds >= self.plan.fails,
                JobKind::DeadNode => self.is_dead(rank, seconds),
                _ => false,
            };
            is_stuck |= is_absent;
            last = last.max(arrival);
            new.push(StepTimes {
                arrival,
                is_absent,
                ..step
            });
        }
        let end = last + self.vary(TRANSFER);
        for (steps, step) in self.steps.iter_mut().zip(new) {
            let end = if is_stuck { u64::MAX } else { end };
            steps.push(StepTimes { end, is_stuck, ..step });
            let old = steps.len().saturating_sub(16);
            steps.drain(..old);
        }
    }

    /// One more second: every node that lives reports.
    pub fn advance(&mut self) {
        let begin = crate::BEGIN + self.second * SECOND;
        let end = begin + SECOND;
        let is_behind = |steps: &Vec<StepTimes>| steps.last().is_none_or(|step| step.end < end);
        while self.steps.iter().any(is_behind) {
            self.step();
        }
        self.second += 1;
        let window = Span { begin, end };
        for node in 0..self.plan.nodes {
            let first = node * self.plan.ranks_per_node;
            if self.is_dead(first, self.second) {
                if self.second == self.plan.fails {
                    self.job.gone(node, end);
                }
                continue;
            }
            for rank in first..first + self.plan.ranks_per_node {
                let report = self.report(rank, window);
                self.reducers[node as usize].take(report);
            }
            let made = end + u64::from(node) * BOOTED + 100 * MS;
            let bytes = self.reducers[node as usize].report(made, 0);
            self.longest_report = self.longest_report.max(bytes.len());
            if let Ok(report) = decode_node(&bytes) {
                self.job.report(node, report, end + 200 * MS);
            }
        }
    }

    fn report(&mut self, rank: u32, window: Span) -> RankReport {
        // The node's clock.
        let ahead = u64::from(rank / self.plan.ranks_per_node) * BOOTED;
        let steps = std::mem::take(&mut self.steps[rank as usize]);
        let work = Work::within(&steps, window);
        let is_culprit = rank == self.plan.culprit();
        let ready = if is_culprit && self.plan.kind == JobKind::Host {
            240 * MS
        } else {
            6 * MS
        };
        let is_hot = is_culprit && self.plan.kind == JobKind::Clock;
        let (doing, alerts) = stuck(&steps, window);
        let (kernels, names) = kernels(&work);
        let lost = (rank == 1 && self.second > 12).then_some((LossReason::Overwritten, 1200));
        let size = self.plan.nodes * self.plan.ranks_per_node;
        let communicator = communicator(&steps, window, ahead);
        let sums = RankSums {
            rank,
            size,
            local: rank % self.plan.ranks_per_node,
            pid: 4000 + rank,
            gpu: Some(rank % self.plan.ranks_per_node),
            begin: window.begin + ahead,
            length: SECOND,
            steps: Some(work.steps),
            busy: work.compute + work.inside,
            kernel_time: work.compute + work.inside,
            copying: work.copying,
            collectives: communicator.arrivals.len() as u32,
            inside: work.inside,
            inside_kernels: work.inside,
            mpi: 0,
            kernels,
            communicators: vec![CommunicatorPart {
                rank,
                size,
                ..communicator
            }],
            gauges: Some(self.readings(&work, is_hot)),
            host: Some(HostSums {
                length: SECOND,
                running: 300 * MS,
                ready,
                blocked: 600 * MS,
            }),
            alerts,
            lost: lost.into_iter().collect(),
            doing,
            before: String::new(),
            exit: None,
        };
        self.steps[rank as usize] = steps;
        RankReport {
            sums,
            names,
            place: self.place(rank),
        }
    }

    fn place(&self, rank: u32) -> Option<Box<Place>> {
        if self.plan.kind != JobKind::Placement {
            return None;
        }
        let gpu = rank % self.plan.ranks_per_node;
        let numa = *NUMA.get(gpu as usize)?;
        let is_wrong = rank / self.plan.ranks_per_node == self.plan.culprit() / self.plan.ranks_per_node;
        // A right one has a core of its GPU's NUMA node, a wrong one the first cores in order.
        let core = if is_wrong {
            8 * gpu
        } else {
            CORES * numa + 8 * (gpu % 2)
        };
        let cores = |numa: u32| CpuSet::of(numa * CORES..(numa + 1) * CORES);
        let numas = 0..4;
        let gpus = (0..).zip(NUMA).map(|(number, numa)| Device {
            node: 4 + number,
            number,
            numa: Some(numa),
            ..Device::default()
        });
        let node = Node {
            online: CpuSet::of(0..4 * CORES),
            numa: numas.map(|id| Numa { id, cpus: cores(id) }).collect(),
            cores: (0..4 * CORES).map(|core| CpuSet::of([core])).collect(),
            gpus: gpus.collect(),
            ..Node::default()
        };
        Some(Box::new(Place {
            pid: 4000 + rank,
            delay: Some(if is_wrong { 31_000 } else { 9_000 }),
            ..Place::of_rank(rank, &CpuSet::of(core..core + 8), &[gpu], &node)
        }))
    }

    fn readings(&mut self, work: &Work, is_hot: bool) -> Readings {
        let busy = (work.compute + work.inside) as f64 / SECOND as f64;
        let watts = 180.0 + 470.0 * busy + self.dice(9) as f64;
        let clock = 2070.0 + self.dice(30) as f32;
        Readings {
            power: Some(if is_hot { 430.0 } else { watts as f32 }),
            clock: Some(if is_hot { 1480.0 } else { clock }),
            temperature: Some(if is_hot { 104.0 } else { 78.0 }),
            memory: Some(142 << 30),
            network: None,
            network_errors: None,
            xgmi: None,
            xgmi_errors: None,
            throttle: if is_hot { "thermal".into() } else { String::new() },
        }
    }
}

/// What a rank did in a window, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    steps: StepSums,
    compute: u64,
    inside: u64,
    copying: u64,
}

impl Work {
    fn within(steps: &[StepTimes], window: Span) -> Self {
        let part = |begin: Nanos, end: Nanos| end.min(window.end).saturating_sub(begin.max(window.begin));
        let mut work = Self::default();
        for step in steps {
            work.copying += part(step.copy, step.compute);
            work.compute += part(step.compute, step.arrival);
            if !step.is_absent {
                work.inside += part(step.arrival, step.end);
            }
        }
        for step in ended(steps, window) {
            let nanos = step.end - step.begin;
            work.steps.count += 1;
            work.steps.total += nanos;
            work.steps.longest = work.steps.longest.max(nanos);
        }
        work
    }
}

/// Steps that ended in a window.
fn ended(steps: &[StepTimes], window: Span) -> impl Iterator<Item = &StepTimes> {
    steps
        .iter()
        .filter(move |step| window.begin < step.end && step.end <= window.end)
}

/// The step that a rank is in at the end of a window.
fn current(steps: &[StepTimes], window: Span) -> StepTimes {
    let begun = steps.iter().rev().find(|step| step.begin <= window.end);
    begun.copied().unwrap_or_default()
}

/// What a rank does that is stuck, and its alert.
fn stuck(steps: &[StepTimes], window: Span) -> (String, Vec<AlertSums>) {
    let step = current(steps, window);
    if !step.is_stuck || step.arrival + SECOND >= window.end {
        return (String::new(), Vec::new());
    }
    let since = (window.end - step.arrival) as f64 / SECOND as f64;
    let what = if step.is_absent { "range load batch" } else { COLLECTIVE };
    let alert = AlertSums {
        rule: Rule::Hang,
        text: format!("work open for {since:.1} s"),
    };
    (format!("in hipStreamSynchronize for {since:.1} s, {what}"), vec![alert])
}

fn communicator(steps: &[StepTimes], window: Span, ahead: u64) -> CommunicatorPart {
    let step = current(steps, window);
    let has_come = !step.is_absent && step.arrival <= window.end;
    let arrivals = ended(steps, window).map(|step| ArrivalSums {
        sequence: step.number,
        at: step.arrival as i64 - window.begin as i64,
        took: step.end - step.arrival,
        by_kernel: true,
        ..ArrivalSums::default()
    });
    CommunicatorPart {
        identity: 0xfeed,
        reached: if has_come { step.number } else { step.number - 1 },
        pending: (step.is_stuck && has_come).then_some(PendingPart {
            sequence: step.number,
            since: step.arrival + ahead,
            ..PendingPart::default()
        }),
        arrivals: arrivals.collect(),
        ..CommunicatorPart::default()
    }
}

fn kernels(work: &Work) -> (Vec<KernelSums>, Vec<(u64, String)>) {
    let times = KERNELS.iter().map(|(name, part)| (*name, work.compute * part / 100));
    let times = times.chain([(COLLECTIVE, work.inside)]);
    let sums = times.map(|(name, total)| {
        let sums = KernelSums {
            name: name_id(name),
            count: 1 + (total / (3 * MS)) as u32,
            total,
        };
        (sums, (name_id(name), name.to_owned()))
    });
    sums.unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_model::job::{JobValues, MAX_REPORT, Quantity, Reason};

    fn values(kind: JobKind) -> (JobValues, JobPlan) {
        let plan = JobPlan::of(kind);
        let job = SyntheticJob::after(plan, 40);
        assert!(job.longest_report <= MAX_REPORT);
        (job.job.values(job.now()), plan)
    }

    #[test]
    fn a_healthy_job_has_no_slow_rank() {
        let (values, _) = values(JobKind::Healthy);
        assert!(values.slow.is_empty(), "{:?}", values.slow);
        let totals = &values.totals;
        assert_eq!((totals.ranks, totals.nodes), ([32, 0, 0, 0], [4, 0, 0]));
        let (median, _, _) = totals.step.expect("steps");
        assert!((340e6..360e6).contains(&median), "{median}");
        assert_eq!(values.communicators[0].waiting, None);
        assert!(values.mean(0, Quantity::Wait).is_some_and(|wait| wait < 0.02));
    }

    #[test]
    fn a_straggler_is_found_with_its_reason() {
        for kind in [JobKind::Compute, JobKind::Clock, JobKind::Host] {
            let (values, plan) = values(kind);
            assert_eq!(values.slow.len(), 1, "{kind:?} {:?}", values.slow);
            let slow = &values.slow[0];
            assert_eq!(values.ranks[slow.rank as usize].rank, plan.culprit());
            let is_it = match (kind, &slow.reason) {
                (JobKind::Compute, Reason::Compute) => true,
                (JobKind::Clock, Reason::Clock { throttle, .. }) => throttle == "thermal",
                (JobKind::Host, Reason::Host { ready, .. }) => *ready > 0.2,
                _ => false,
            };
            assert!(is_it, "{kind:?} {:?}", slow.reason);
            // All steps are as long, and yet it costs what was added.
            let added = if kind == JobKind::Host { 90 } else { 75 } * MS;
            assert!(slow.excess.abs_diff(added) < 30 * MS, "{kind:?} {}", slow.excess);
            assert_eq!(slow.error, None, "each rank's own clock shows it");
            assert_eq!(values.communicators[0].error, Some(26_000));
            let late = values.communicators[0].late.expect("one is late");
            assert_eq!((late.rank, late.share), (slow.rank, 1.0));
            println!("{}", slow.text(&values));
        }
    }

    #[test]
    fn without_clocks_waits_are_unknown_and_a_straggler_is_found() {
        let plan = JobPlan {
            clock_error: None,
            ..JobPlan::of(JobKind::Compute)
        };
        let job = SyntheticJob::after(plan, 40);
        let values = job.job.values(job.now());
        assert_eq!(values.communicators[0].late, None);
        assert_eq!(values.mean(0, Quantity::Wait), None);
        let slow = &values.slow[0];
        assert_eq!(
            (values.slow.len(), slow.rank, &slow.reason),
            (1, plan.culprit(), &Reason::Compute)
        );
    }

    #[test]
    fn a_rank_that_does_not_come_is_missing() {
        let (values, plan) = values(JobKind::Hang);
        assert_eq!(values.slow.len(), 1, "{:?}", values.slow);
        let slow = &values.slow[0];
        assert_eq!(values.ranks[slow.rank as usize].rank, plan.culprit());
        let text = slow.text(&values);
        assert!(text.contains("31 ranks wait; in hipStreamSynchronize"), "{text}");
        println!("{text}");
    }

    #[test]
    fn ranks_of_a_node_that_is_gone_are_gone() {
        let (values, plan) = values(JobKind::DeadNode);
        assert_eq!(values.slow.len(), 1, "a node is one row");
        let indexes = values
            .slow
            .iter()
            .flat_map(|slow| std::iter::once(&slow.rank).chain(&slow.others));
        let dead: Vec<u32> = indexes.map(|index| values.ranks[*index as usize].rank).collect();
        let expected: Vec<u32> = (plan.culprit()..plan.culprit() + 8).collect();
        assert_eq!(dead, expected);
        assert!(
            values.slow.iter().all(|slow| matches!(slow.reason, Reason::Dead(_))),
            "{:?}",
            values.slow
        );
        assert_eq!(values.totals.ranks, [24, 0, 8, 0]);
    }

    #[test]
    fn eight_thousand_ranks_are_quick() {
        let plan = JobPlan {
            nodes: 1000,
            ..JobPlan::of(JobKind::Compute)
        };
        let mut job = SyntheticJob::after(plan, 30);
        job.advance();
        let begun = std::time::Instant::now();
        let values = job.job.values(job.now());
        println!("values take {:?}", begun.elapsed());
        assert_eq!(values.slow.len(), 1, "{:?}", values.slow.len());
        assert_eq!(values.communicators[0].known, 8000);
    }
}
