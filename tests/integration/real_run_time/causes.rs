//! Why a GPU ran no kernel, of real programs: the causes and their shares are those of the emulated GPU's log and of what
//! the program says its thread did. Both hold for the run as it was: a busy machine changes log and shares alike.

use crate::kit::rig::{Recorded, rig};
use crate::kit::truth::Truth;
use roctop::model::analysis::{Cause, Usage};
use roctop::model::{Fresh, Options, Store};
use roctop::recording::Recording;
use roctop_ring::record::direction;

/// Largest difference of a share, in points.
const TOLERANCE: f64 = 5.0;

/// Difference of two clock readings of one moment, ns.
const CLOCKS: u64 = 2_000;

/// Some rounds show what they are for even if the machine held up the others, ns.
const LEAST: u64 = 10_000_000;

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
    /// When the program began.
    origin: u64,
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
        recorded.check_lost();
        recorded.check_dispatches();
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
        Some(Self {
            usage,
            idle,
            origin: snap.origin,
            recorded,
        })
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

    /// Kernels of GPU 0 in order of their begin: submission and begin. Both are the records', whose begins are the log's; each
    /// launch that ends a round has a submission inside it.
    fn submissions(&self) -> Spans {
        let run = &self.recorded.run;
        let on_gpu = run.dispatches.iter();
        let on_gpu = on_gpu.filter(|dispatch| run.agents[dispatch.agent.0 as usize].number == 0);
        let mut all: Spans = on_gpu.map(|dispatch| (dispatch.submit, dispatch.span.begin)).collect();
        all.sort_by_key(|(_, begin)| *begin);
        for (before, after) in self.phases("launch") {
            let is_inside = |submit: u64| before <= submit + CLOCKS && submit <= after + CLOCKS;
            let is_known = all.iter().any(|(submit, _)| is_inside(*submit));
            assert!(is_known, "no kernel submitted from {before} to {after}: {all:?}");
        }
        all
    }

    /// Time in which nothing was queued: all but that from a kernel's submission to its begin.
    fn unqueued(&self) -> Spans {
        cut(&self.idle, &self.submissions(), false)
    }

    /// Time in which a kernel of GPU 0 was queued behind one of GPU 1: from its submission to the end of the other, which
    /// may begin later on a busy machine. It is the kernel that begins after the other's end, or the one `further` behind.
    fn behind_other(&self, further: usize) -> Spans {
        let kernels = self.submissions();
        let rows = self.recorded.truth.iter();
        let lengthy = rows.filter(|row| row.gpu == 1 && row.name.contains("lengthy"));
        let waits = lengthy.filter_map(|row| {
            let next = kernels.partition_point(|(_, begin)| begin + CLOCKS < row.end);
            let (submit, _) = *kernels.get(next + further)?;
            (submit < row.end).then_some((submit, row.end))
        });
        waits.collect()
    }

    /// Time in which a kernel of GPU 0 was queued and a copy of the log ran. Before the copy begins, what the kernel waits for is
    /// not recorded.
    fn behind_copies(&self) -> Spans {
        let rows = self.recorded.truth.iter();
        let copies = rows.filter(|row| row.kind == "sdma_copy" && row.bytes > 1 << 20);
        let copies: Spans = copies.map(|row| (row.begin, row.end)).collect();
        cut(&copies, &self.submissions(), true)
    }

    /// Asserts that the time before the first kernel of the log is start-up, and nothing else is. Those without a name are of
    /// queues that the run-time hides from tools.
    fn check_start(&self) {
        let rows = self.recorded.truth.iter();
        let named = rows.filter(|row| row.kind == "dispatch" && row.gpu == 0 && !row.name.is_empty());
        let first = named.map(|row| row.begin).min().expect("GPU 0 ran kernels");
        let begin = self.usage.stretch.begin;
        assert!(begin.abs_diff(first) <= CLOCKS, "{begin} {first}");
        assert_eq!(self.usage.start_up, self.usage.stretch.begin - self.origin);
        let found = self.usage.verdict.share_of(|cause| cause == Cause::StartUp);
        assert!(found == 0.0, "{:?}", self.usage.verdict);
    }

    /// Asserts that the causes that `is` accepts have the share that `spans` have of the time without kernels. Some of the time
    /// has this cause.
    fn check(&self, spans: &Spans, is: impl Fn(Cause) -> bool) {
        let time = sum(&cut(&self.idle, spans, true));
        assert!(time >= LEAST, "the program had this cause for {time} ns only");
        self.compare(
            100.0 * self.usage.verdict.share_of(is),
            100.0 * time as f64 / sum(&self.idle) as f64,
        );
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

/// A thread that wants a CPU and gets none is off the CPU, so a busy machine makes of one of these the other.
fn is_host(cause: Cause) -> bool {
    matches!(cause, Cause::Host | Cause::HostAsleep)
}

fn is_event(cause: Cause) -> bool {
    matches!(cause, Cause::Dependency { event, .. } if event != 0)
}

#[test]
fn host_that_computes_is_host_bound() {
    let Some(run) = Run::of("host", "40", &[]) else { return };
    run.check(&run.unqueued(), is_host);
}

/// How long a thread was asleep is estimated from some readings a second of how long it ran, and holds for a thread that gets a
/// CPU when it wants one. `crates/scenario/tests/verdicts.rs` has the same under a virtual clock.
#[test]
#[ignore = "time: .ci/matrix"]
fn timed_host_that_sleeps_does_not_run() {
    let is_asleep = |cause| cause == Cause::HostAsleep;
    for (mode, rounds) in [("asleep", "120"), ("mixture", "60")] {
        let Some(run) = Run::of(mode, rounds, &[]) else { return };
        run.check(&run.phases("asleep"), is_asleep);
    }
}

#[test]
fn kernel_behind_an_event_of_another_gpu_waits_for_it() {
    let Some(run) = Run::of("event", "40", &[]) else { return };
    run.check(&run.behind_other(0), is_event);
}

#[test]
fn kernel_behind_a_copy_has_the_copy_as_cause() {
    let Some(run) = Run::of("copy", "40", &[]) else { return };
    run.check(&run.behind_copies(), |cause| cause == Cause::Copy(direction::H2D));
}

#[test]
fn time_before_the_first_kernel_is_start_up() {
    let Some(run) = Run::of("start-up", "30", &[]) else {
        return;
    };
    run.check_start();
    run.check(&run.unqueued(), is_host);
}

#[test]
fn kernel_in_the_same_queue_as_a_waiting_one_is_behind_it() {
    let Some(run) = Run::of("shared", "40", &[("GPU_MAX_HW_QUEUES", "1")]) else {
        return;
    };
    // The stream that waits has a kernel, too; the one behind it is the other stream's.
    let behind = run.behind_other(1);
    run.check(&behind, |cause| matches!(cause, Cause::SharedQueue { .. }));
}

#[test]
fn mixture_of_causes_has_each_with_its_share() {
    let Some(run) = Run::of("mixture", "60", &[]) else {
        return;
    };
    run.check(&run.behind_other(0), is_event);
    run.check(&run.behind_copies(), |cause| cause == Cause::Copy(direction::H2D));
    run.check(&run.unqueued(), is_host);
    run.check_start();
    let shared = run
        .usage
        .verdict
        .share_of(|cause| matches!(cause, Cause::SharedQueue { .. }));
    assert!(shared < 0.05, "{:?}", run.usage.verdict);
}
