//! Programs with known causes of the time without kernels: the model finds each with its share.

use roctop_model::analysis::{Cause, Verdict};
use roctop_model::{Fresh, LaneKey, Options, Snapshot, Store};
use roctop_ring::record::Domain;
use roctop_scenario::Scenario;
use roctop_trace::item::{
    Act, ApiCall, CollectiveOperation, Communication, Communicator, Item, Message, Process, ProcessId, Span, ThreadId,
};
use std::sync::Arc;

/// A program that repeats `steps` of 10 ms for 2 s.
fn program(work: &str) -> Arc<Snapshot> {
    program_of("10ms", 200, work)
}

fn program_of(step: &str, steps: u32, work: &str) -> Arc<Snapshot> {
    let text = format!(
        r#"
        title = "./causes"
        steps = {steps}
        step = "{step}"
        gpu = [
            {{ name = "gfx942", product = "", units = 304, memory = 192 }},
            {{ name = "gfx942", product = "", units = 304, memory = 192 }},
        ]
        process = [{{ pid = 7, command = "./causes" }}]
        thread = [{{ name = "main", tid = 7 }}, {{ name = "other", tid = 8 }}]
        kernel = [{{ key = "k", name = "k", grid = [64, 1, 1], workgroup = [64, 1, 1] }}]
        {work}
        "#
    );
    let scenario = Scenario::parse(&text).expect("it is a scenario");
    let length = scenario.length();
    scenario.store(Options::default(), length).snapshot(Fresh::All)
}

/// What the first rank received in a call, and the second one sent.
fn message(call: &ApiCall, other: ProcessId, late: u64) -> [Message; 2] {
    let taken = Message {
        act: Act::Receives,
        process: call.process,
        thread: call.thread,
        correlation: call.correlation,
        span: call.span,
        operation: CollectiveOperation::MpiRecv,
        communicator: 1,
        peer: 1,
        ..Message::default()
    };
    let sent = Message {
        act: Act::Sends,
        process: other,
        thread: ThreadId(99),
        span: Span {
            begin: call.span.begin + late,
            end: call.span.end,
        },
        operation: CollectiveOperation::MpiSend,
        peer: 0,
        ..taken
    };
    [taken, sent]
}

/// Two ranks of MPI: the first one is the program of a scenario, the second one calls `MPI_Allreduce` `late` after it, ns, or sends
/// what the first one receives.
fn with_late_rank(work: &str, late: u64, is_message: bool) -> Arc<Snapshot> {
    let text = format!(
        r#"
        title = "./rank"
        steps = 200
        step = "10ms"
        gpu = [{{ name = "gfx942", product = "", units = 304, memory = 192 }}]
        process = [{{ pid = 7, command = "./rank" }}]
        thread = [{{ name = "main", tid = 7 }}]
        kernel = [{{ key = "k", name = "k", grid = [64, 1, 1], workgroup = [64, 1, 1] }}]
        {work}
        "#
    );
    let scenario = Scenario::parse(&text).expect("it is a scenario");
    let items = scenario.items();
    let is_mpi = |item: &Item| match item {
        Item::Operation(operation) if operation.domain == Domain::MPI.0 => Some(operation.id),
        _ => None,
    };
    let reduce = items.iter().find_map(|(_, item)| is_mpi(item)).expect("it calls MPI");
    let other = ProcessId(1);
    let mut store = Store::new(Options::default());
    // Ranks of the job have other numbers than those of the communicator.
    let process = |id: u32| Process {
        id: ProcessId(id),
        pid: 7 + id,
        rank: Some(4 + id),
        ..Process::default()
    };
    let mut sequence = 0;
    for (_, item) in &items {
        match item {
            Item::Process(_) => {
                for rank in 0..2 {
                    store.apply(&Item::Process(process(rank)));
                    store.apply(&Item::Communicator(Communicator {
                        process: ProcessId(rank),
                        number: 1,
                        is_mpi: true,
                        identity: Some(1),
                        rank: Some(rank),
                        size: Some(2),
                        ..Communicator::default()
                    }));
                    store.apply(&Item::Message(Message {
                        act: Act::Begins,
                        process: ProcessId(rank),
                        ..Message::default()
                    }));
                }
                continue;
            }
            Item::Api(call) if call.operation == reduce && is_message => {
                for call in message(call, other, late) {
                    store.apply(&Item::Message(call));
                }
            }
            Item::Api(call) if call.operation == reduce => {
                sequence += 1;
                let own = Communication {
                    process: call.process,
                    thread: call.thread,
                    correlation: call.correlation,
                    start: call.span.begin,
                    communicator: 1,
                    operation: CollectiveOperation::MpiAllreduce,
                    sequence,
                    ..Communication::default()
                };
                let theirs = Communication {
                    process: other,
                    thread: ThreadId(99),
                    start: own.start + late,
                    ..own
                };
                for call in [own, theirs] {
                    store.apply(&Item::Communication(call));
                }
                store.apply(&Item::Api(ApiCall {
                    process: other,
                    thread: theirs.thread,
                    span: Span {
                        begin: theirs.start,
                        end: call.span.end,
                    },
                    ..*call
                }));
            }
            _ => {}
        }
        store.apply(item);
    }
    store.snapshot(Fresh::All)
}

fn verdict(snap: &Snapshot, gpu: u32) -> Verdict {
    let usage = &snap.analysis().usage;
    let row = usage.iter().find(|row| row.agent.0 == gpu + 1).expect("it had work");
    assert_eq!(
        row.verdict.nanos,
        row.stretch.duration() - row.compute,
        "each moment without a kernel has one cause"
    );
    row.verdict.clone()
}

/// Asserts that the causes that `is` accepts have a share, in per cent, within 5 points.
fn assert_share(verdict: &Verdict, share: f64, is: impl Fn(Cause) -> bool) {
    let found = 100.0 * verdict.share_of(is);
    assert!(
        (found - share).abs() <= 5.0,
        "{found:.1} % instead of {share} %: {verdict:?}"
    );
}

fn is_dependency(cause: Cause, on: LaneKey) -> bool {
    matches!(cause, Cause::Dependency { on: found, .. } if found == on)
}

fn stream(gpu: u32, stream: u32) -> LaneKey {
    LaneKey::Stream(
        roctop_trace::item::AgentId(gpu + 1),
        roctop_trace::item::StreamId(stream),
    )
}

#[test]
fn host_that_comes_late_is_host_bound() {
    let snap = program(
        r#"work = [{ gpu = 0, stream = 1, thread = "main", do = ["kernel k 4ms", "sync 0", "late 3ms", "kernel k 2ms"] }]"#,
    );
    assert_share(&verdict(&snap, 0), 100.0, |cause| cause == Cause::Host);
}

#[test]
fn kernels_that_are_queued_are_not_host_bound() {
    let snap = program_of(
        "2s",
        1,
        r#"work = [{ gpu = 0, stream = 1, thread = "main", do = ["kernel k 50us *39050"] }]"#,
    );
    let verdict = verdict(&snap, 0);
    assert_share(&verdict, 100.0, |cause| cause == Cause::BetweenKernels);
}

#[test]
fn kernel_that_waits_for_an_event_names_stream_and_event() {
    let snap = program(
        r#"work = [
            { gpu = 1, stream = 2, thread = "main", do = ["kernel k 6ms"] },
            { gpu = 0, stream = 1, thread = "main", do = ["kernel k 1ms", "wait 0", "kernel k 1ms"] },
        ]"#,
    );
    let verdict = verdict(&snap, 0);
    // 5 ms of wait, and 3 ms until the next step.
    assert_share(&verdict, 62.5, |cause| is_dependency(cause, stream(1, 0)));
    assert_share(&verdict, 37.5, |cause| cause == Cause::Host);
    let event = verdict.parts.iter().find_map(|part| match part.cause {
        Cause::Dependency { event, .. } => Some(event),
        _ => None,
    });
    assert_eq!(event, Some(0xe0_0000));
}

#[test]
fn thread_that_waits_for_another_gpu_is_no_late_host() {
    let snap = program(
        r#"work = [
            { gpu = 1, stream = 2, thread = "main", do = ["kernel k 8ms"] },
            { gpu = 0, stream = 1, thread = "main", do = ["sync 0", "kernel k 1ms"] },
        ]"#,
    );
    let verdict = verdict(&snap, 0);
    assert_share(&verdict, 89.0, |cause| is_dependency(cause, stream(1, 0)));
}

#[test]
fn kernel_behind_a_copy_waits_for_it() {
    let snap =
        program(r#"work = [{ gpu = 0, stream = 1, thread = "main", do = ["copy h2d 64MiB 5ms", "kernel k 3ms"] }]"#);
    let verdict = verdict(&snap, 0);
    let h2d = roctop_ring::record::direction::H2D;
    assert_share(&verdict, 71.0, |cause| cause == Cause::Copy(h2d));
    assert_share(&verdict, 29.0, |cause| cause == Cause::Host);
}

#[test]
fn copy_that_the_thread_makes_itself_is_a_copy() {
    let snap =
        program(r#"work = [{ gpu = 0, stream = 1, thread = "main", do = ["memcpy d2h 64MiB 5ms", "kernel k 4ms"] }]"#);
    let d2h = roctop_ring::record::direction::D2H;
    assert_share(&verdict(&snap, 0), 83.0, |cause| cause == Cause::Copy(d2h));
}

#[test]
fn copy_that_nothing_waits_for_is_not_the_cause() {
    let snap = program(
        r#"work = [
            { gpu = 0, stream = 1, thread = "main", do = ["kernel k 2ms"] },
            { gpu = 0, stream = 2, thread = "other", at = "2ms", do = ["copy h2d 64MiB 6ms"] },
        ]"#,
    );
    assert_share(&verdict(&snap, 0), 100.0, |cause| cause == Cause::Host);
}

#[test]
fn start_up_is_no_idle_gpu() {
    let snap = program_of(
        "2s",
        1,
        r#"work = [{ gpu = 0, stream = 1, thread = "main", do = ["late 1200ms", "kernel k 200ms", "sync 0", "late 300ms", "kernel k 250ms"] }]"#,
    );
    assert_share(&verdict(&snap, 0), 100.0, |cause| cause == Cause::Host);
    let row = &snap.analysis().whole[0];
    let first = row.stretch.begin - snap.origin;
    assert_eq!(row.start_up, first);
    assert!(first.abs_diff(1_200_000_000) < 10_000_000, "{first}");
}

#[test]
fn kernel_behind_a_waiting_one_in_the_same_queue() {
    let snap = program(
        r#"work = [
            { gpu = 1, stream = 2, thread = "main", do = ["kernel k 7ms"] },
            { gpu = 0, stream = 1, queue = 5, thread = "main", do = ["wait 0", "kernel k 1ms"] },
            { gpu = 0, stream = 3, queue = 5, thread = "main", do = ["kernel k 1ms"] },
        ]"#,
    );
    let verdict = verdict(&snap, 0);
    assert_share(
        &verdict,
        87.5,
        |cause| matches!(cause, Cause::SharedQueue { behind, .. } if behind == stream(0, 1)),
    );
}

#[test]
fn streams_that_wait_for_each_other_in_one_queue_are_named() {
    let snap = program(
        r#"work = [
            { gpu = 0, stream = 1, queue = 5, thread = "main", do = ["kernel k 4ms"] },
            { gpu = 0, stream = 2, queue = 5, thread = "main", do = ["kernel k 2ms"] },
        ]"#,
    );
    let row = &snap.analysis().usage[0];
    let longest = row.sharing.first().expect("they share a queue");
    assert_eq!((longest.waited, longest.behind), (stream(0, 1), stream(0, 0)));
    let waited = longest.nanos as f64 / 200.0;
    assert!((waited - 4e6).abs() < 1e5, "{waited}");
}

#[test]
fn sleeping_thread_is_not_a_late_one() {
    for (late, asleep) in [(1, 6), (6, 1), (4, 3), (0, 7)] {
        let work = format!(
            r#"work = [{{ gpu = 0, stream = 1, thread = "main", do = ["kernel k 3ms", "sync 0", "late {late}ms", "asleep {asleep}ms"] }}]"#
        );
        let verdict = verdict(&program(&work), 0);
        let share = 100.0 * f64::from(asleep) / 7.0;
        assert_share(&verdict, share, |cause| cause == Cause::HostAsleep);
        let part = verdict.parts.iter().find(|part| part.cause == Cause::HostAsleep);
        assert!(part.is_some_and(|part| part.is_estimated));
    }
}

#[test]
fn thread_in_mpi_is_no_late_one() {
    let snap = program(
        r#"work = [{ gpu = 0, stream = 1, thread = "main", do = ["kernel k 3ms", "sync 0", "late 1ms", "mpi 6ms"] }]"#,
    );
    let verdict = verdict(&snap, 0);
    let share = 100.0 * 6.0 / 7.0;
    assert_share(&verdict, share, |cause| matches!(cause, Cause::Mpi(_)));
    let words = verdict.words(&snap);
    assert!(words[0].ends_with("% waits in MPI_Allreduce"), "{words:?}");
}

#[test]
fn thread_in_mpi_waits_for_the_rank_that_is_late() {
    for is_message in [false, true] {
        let snap = with_late_rank(
            r#"work = [{ gpu = 0, stream = 1, thread = "main", do = ["kernel k 3ms", "sync 0", "late 1ms", "mpi 6ms"] }]"#,
            5_000_000,
            is_message,
        );
        let verdict = verdict(&snap, 0);
        let is_late = |cause| matches!(cause, Cause::Rank(_, 5));
        assert_share(&verdict, 100.0 * 5.0 / 7.0, is_late);
        assert_share(&verdict, 100.0 / 7.0, |cause| matches!(cause, Cause::Mpi(_)));
        let words = verdict.words(&snap);
        assert!(words[0].ends_with("% waits for rank 5 in MPI_Allreduce"), "{words:?}");
        // Over the whole run, too, which is counted as it passes.
        let whole = &snap.analysis().whole[0].verdict;
        assert_share(whole, 100.0 * 5.0 / 7.0, is_late);
    }
}

#[test]
fn mixture_has_each_cause_with_its_share() {
    let snap = program_of(
        "20ms",
        100,
        r#"work = [
            { gpu = 1, stream = 2, thread = "main", do = ["kernel k 6ms"] },
            { gpu = 0, stream = 1, thread = "main", do = [
                "kernel k 2ms", "wait 0", "kernel k 2ms", "copy h2d 64MiB 3ms", "kernel k 1ms", "sync 1", "memcpy d2h 1MiB 2ms", "late 1ms",
            ] },
        ]"#,
    );
    let verdict = verdict(&snap, 0);
    // Of 15 ms: 4 of the event, 3 and 2 of copies, the rest of the host.
    let h2d = roctop_ring::record::direction::H2D;
    let d2h = roctop_ring::record::direction::D2H;
    assert_share(&verdict, 26.7, |cause| is_dependency(cause, stream(1, 0)));
    assert_share(&verdict, 20.0, |cause| cause == Cause::Copy(h2d));
    assert_share(&verdict, 13.3, |cause| cause == Cause::Copy(d2h));
    assert_share(&verdict, 40.0, |cause| cause == Cause::Host);
}

#[test]
fn training_has_a_cause_for_the_time_without_kernels() {
    let scenario = Scenario::parse(include_str!("../../../tests/scenarios/training.toml")).expect("it is a scenario");
    let snap = scenario.store(Options::default(), 20_050_000_000).snapshot(Fresh::All);
    for gpu in 0..2 {
        let unknown = verdict(&snap, gpu).share_of(|cause| cause == Cause::Unknown);
        assert!(unknown < 0.05, "GPU{gpu}: {unknown}");
    }
    // The worker waits for data for 31 ms of each step's 65 ms without a kernel, and computes for 14 ms of them.
    assert_share(&verdict(&snap, 1), 47.0, |cause| cause == Cause::HostAsleep);
}
