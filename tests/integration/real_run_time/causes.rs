//! Why a GPU ran no kernel, of real programs: the causes and their shares are those of the emulated GPU's log and of what
//! the program says its thread did.

use crate::kit::rig::{Recorded, rig};
use crate::kit::truth::Truth;
use roctop::model::analysis::{Cause, Usage};
use roctop::model::{Fresh, Options, Store};
use roctop::recording::Recording;
use roctop_ring::record::direction;

/// Largest difference of a share, in points.
const TOLERANCE: f64 = 5.0;

type Spans = Vec<(u64, u64)>;

/// The parts of `spans` in which all of `other` are absent or, if `is_in`, any is present. Spans may overlap.
fn cut(spans: &Spans, other: &Spans, is_in: bool) -> Spans {
    let mut marks: Vec<u64> = spans.iter().chain(other).flat_map(|span| [span.0, span.1]).collect();
    marks.sort_unstable();
    marks.dedup();
    let within = |spans: &Spans, at: u64| spans.iter().any(|span| span.0 <= at && at < span.1);
    let pieces = marks.windows(2).map(|pair| (pair[0], pair[1]));
    pieces
        .filter(|piece| within(spans, piece.0) && within(other, piece.0) == is_in)
        .collect()
}

fn sum(spans: &Spans) -> u64 {
    spans.iter().map(|span| span.1 - span.0).sum()
}

/// A run: what was recorded of GPU 0, and what is true of it.
struct Run {
    usage: Usage,
    /// Time without kernels.
    idle: Spans,
    recorded: Recorded,
}

impl Run {
    fn of(mode: &str, rounds: &str, machine: &[(&'static str, &'static str)]) -> Option<Self> {
        let mut set = vec![
            ("EMULATED_GPU_COUNT", "2"),
            ("EMULATED_GPU_BY_NAME", "brief=2000000,lengthy=12000000"),
            ("EMULATED_GPU_COPY_GBPS", "4"),
        ];
        set.extend(machine);
        let name = format!("causes-{mode}");
        let recorded = rig()?.on(&set).record(&name, &["causes", mode, rounds]);
        assert_eq!(recorded.output.status.code(), Some(0), "{:?}", recorded.output);
        let mut store = Store::new(Options::default());
        Recording::open(&recorded.place.join("rec"))
            .unwrap()
            .items(&mut |items| items.iter().for_each(|item| store.apply(item)))
            .unwrap();
        let snap = store.snapshot(Fresh::All);
        let mut usage = snap.analysis().usage.iter();
        let usage = usage.find(|row| snap.names.agent_label(row.agent) == "GPU0");
        let usage = usage.expect("GPU 0 ran kernels").clone();
        let stretch = vec![(usage.stretch.begin, usage.stretch.end)];
        let idle = cut(&stretch, &kernels(&recorded, 0), false);
        assert_eq!(usage.verdict.nanos, usage.stretch.duration() - usage.compute);
        println!("{mode}: {:?}", usage.verdict.words(&snap));
        Some(Self { usage, idle, recorded })
    }

    /// Spans in which the thread did this.
    fn phases(&self, name: &str) -> Spans {
        let text = String::from_utf8_lossy(&self.recorded.output.stdout).into_owned();
        let phases = text.lines().filter_map(|line| {
            let mut words = line.strip_prefix("phase ")?.split(' ');
            let is_it = words.next() == Some(name);
            let mut number = || words.next()?.parse().ok();
            let span = (number()?, number()?);
            is_it.then_some(span)
        });
        phases.collect()
    }

    /// Copies of the log from the host to a GPU.
    fn copies(&self) -> Spans {
        let rows = self.recorded.truth.iter();
        rows.filter(|row| row.kind == "sdma_copy" && row.bytes > 1 << 20)
            .map(|row| (row.begin, row.end))
            .collect()
    }

    /// Time in which nothing was queued: all but that from a launch to the begin of its kernel.
    fn unqueued(&self) -> Spans {
        let mut begins: Vec<u64> = kernels(&self.recorded, 0).iter().map(|span| span.0).collect();
        begins.sort_unstable();
        let queued = self.phases("queued").into_iter().filter_map(|(launched, until)| {
            let next = begins[begins.partition_point(|begin| *begin < launched)..].first()?;
            (*next <= until).then_some((launched, *next))
        });
        cut(&self.idle, &queued.collect(), false)
    }

    /// Time in which a kernel of GPU 1 ran and one of GPU 0 was queued behind it. A busy machine may launch that one late.
    fn behind_other(&self) -> Spans {
        cut(&kernels(&self.recorded, 1), &self.unqueued(), false)
    }

    /// Time before the first kernel.
    fn before(&self) -> Spans {
        let first = kernels(&self.recorded, 0).iter().map(|span| span.0).min();
        vec![(0, first.unwrap_or(0))]
    }

    /// Asserts that start-up has the share of the time before the first kernel.
    fn check_start(&self) {
        let before = sum(&cut(&self.idle, &self.before(), true));
        let found = self.usage.verdict.share_of(|cause| cause == Cause::StartUp);
        self.compare(100.0 * found, 100.0 * before as f64 / sum(&self.idle) as f64);
    }

    /// Asserts that the causes that `is` accepts have the share that `spans` have of the time without kernels after the
    /// first one: on a busy machine the run-time takes long to start. That share is `least` per cent or more.
    fn check(&self, spans: &Spans, least: f64, is: impl Fn(Cause) -> bool) {
        let idle = cut(&self.idle, &self.before(), false);
        let expected = 100.0 * sum(&cut(&idle, spans, true)) as f64 / sum(&idle) as f64;
        assert!(expected >= least, "the program had this cause for {expected:.1} % only");
        let verdict = &self.usage.verdict;
        let after = 1.0 - verdict.share_of(|cause| cause == Cause::StartUp);
        self.compare(100.0 * verdict.share_of(is) / after, expected);
    }

    /// As `check`, for the time asleep. It is estimated from readings of how long the thread ran, some a second, so it
    /// is only checked where the thread got a CPU when it wanted one.
    fn check_asleep(&self, least: f64) {
        let waited = sum(&self.phases("waited"));
        if waited * 20 > sum(&self.idle) {
            println!("n/a: the thread waited {} ms for a CPU", waited / 1_000_000);
            return;
        }
        self.check(&self.phases("asleep"), least, |cause| cause == Cause::HostAsleep);
    }

    fn compare(&self, found: f64, expected: f64) {
        println!("  {found:.1} %, {expected:.1} % in the log");
        assert!(
            (found - expected).abs() <= TOLERANCE,
            "{found:.1} % instead of {expected:.1} %: {:?}",
            self.usage.verdict
        );
    }
}

fn kernels(recorded: &Recorded, gpu: u32) -> Spans {
    let is_own = |row: &&Truth| row.kind == "dispatch" && row.gpu == gpu;
    let rows = recorded.truth.iter().filter(is_own);
    rows.map(|row| (row.begin, row.end)).collect()
}

#[test]
fn host_that_computes_is_host_bound() {
    let Some(run) = Run::of("host", "40", &[]) else { return };
    run.check(&run.unqueued(), 60.0, |cause| cause == Cause::Host);
}

#[test]
fn host_that_sleeps_does_not_run() {
    let Some(run) = Run::of("asleep", "120", &[]) else {
        return;
    };
    run.check_asleep(40.0);
}

#[test]
fn kernel_behind_an_event_of_another_gpu_waits_for_it() {
    let Some(run) = Run::of("event", "40", &[]) else { return };
    let lengthy = run.behind_other();
    let is_event = |cause| matches!(cause, Cause::Dependency { event, .. } if event != 0);
    run.check(&lengthy, 25.0, is_event);
}

#[test]
fn kernel_behind_a_copy_has_the_copy_as_cause() {
    let Some(run) = Run::of("copy", "40", &[]) else { return };
    run.check(&run.copies(), 25.0, |cause| cause == Cause::Copy(direction::H2D));
}

#[test]
fn time_before_the_first_kernel_is_start_up() {
    let Some(run) = Run::of("start-up", "30", &[]) else {
        return;
    };
    run.check_start();
    // A reading that spans the first kernel averages the sleep before it with the computing after it.
    run.check(&run.unqueued(), 60.0, |cause| {
        matches!(cause, Cause::Host | Cause::HostAsleep)
    });
}

#[test]
fn kernel_in_the_same_queue_as_a_waiting_one_is_behind_it() {
    let Some(run) = Run::of("shared", "40", &[("GPU_MAX_HW_QUEUES", "1")]) else {
        return;
    };
    let lengthy = run.behind_other();
    run.check(&lengthy, 25.0, |cause| matches!(cause, Cause::SharedQueue { .. }));
}

#[test]
fn mixture_of_causes_has_each_with_its_share() {
    let Some(run) = Run::of("mixture", "60", &[]) else {
        return;
    };
    let lengthy = run.behind_other();
    let is_event = |cause| matches!(cause, Cause::Dependency { event, .. } if event != 0);
    run.check(&lengthy, 5.0, is_event);
    run.check(&run.copies(), 4.0, |cause| cause == Cause::Copy(direction::H2D));
    run.check_asleep(8.0);
    run.check_start();
    let shared = run
        .usage
        .verdict
        .share_of(|cause| matches!(cause, Cause::SharedQueue { .. }));
    assert!(shared < 0.05, "{:?}", run.usage.verdict);
}
