use super::*;
use roctop_trace::item::{ApiCall, Communication, Communicator, CommunicatorState, Datatype, Dispatch, OperationId};

mod messages;
mod of_mpi;

const MS: u64 = 1_000_000;

/// A session of ranks, one process each, with one communicator.
struct Job {
    collectives: Collectives,
    ranks: u32,
    next: Vec<u32>,
    correlation: u64,
}

impl Job {
    /// Ranks whose collectives are known to have no kernels.
    fn of(ranks: u32) -> Self {
        let mut job = Self::with_kernels(ranks);
        job.collectives.without_kernels.extend(0..ranks);
        job
    }

    fn with_kernels(ranks: u32) -> Self {
        let mut job = Self {
            collectives: Collectives::keeping_all(),
            ranks,
            next: vec![0; ranks as usize],
            correlation: 0,
        };
        for rank in 0..ranks {
            job.join(rank, rank, 77);
        }
        job
    }

    fn join(&mut self, process: u32, rank: u32, identity: u64) {
        self.collectives.communicator(&Communicator {
            process: ProcessId(process),
            number: 1,
            identity: Some(identity),
            rank: Some(rank),
            size: Some(self.ranks),
            ..Communicator::default()
        });
    }

    fn call(&mut self, rank: u32, at: u64) -> Communication {
        self.next[rank as usize] += 1;
        self.correlation += 1;
        Communication {
            process: ProcessId(rank),
            correlation: self.correlation,
            communicator: 1,
            sequence: self.next[rank as usize],
            start: at,
            count: 1 << 20,
            datatype: Datatype(7),
            ..Communication::default()
        }
    }

    fn returned(&mut self, call: &Communication, at: u64) {
        self.collectives.returned(&ApiCall {
            process: call.process,
            correlation: call.correlation,
            operation: OperationId(0),
            span: Span {
                begin: call.start,
                end: at,
            },
            ..ApiCall::default()
        });
    }

    /// An all-reduce with these arrivals, which ends for all at `end`.
    fn reduce(&mut self, arrivals: &[u64], end: u64) {
        for (rank, at) in (0..).zip(arrivals) {
            let call = self.call(rank, *at);
            self.collectives.communication(&call);
            self.returned(&call, end);
        }
    }

    fn kernel(&mut self, call: &Communication, begin: u64, end: u64) {
        self.collectives.dispatch(&Dispatch {
            process: call.process,
            correlation: call.correlation,
            span: Span { begin, end },
            ..Dispatch::default()
        });
    }

    fn values(&mut self, now: u64) -> CollectiveValues {
        self.collectives.values(now)
    }
}

#[test]
fn the_last_rank_skew_wait_and_transfer_are_found() {
    let mut job = Job::of(4);
    job.reduce(&[10 * MS, 11 * MS, 10 * MS, 14 * MS], 16 * MS);
    job.reduce(&[20 * MS, 20 * MS, 20 * MS, 22 * MS], 23 * MS);
    let done = job.collectives.take_done();
    let times = done[0].1;
    assert_eq!((times.skew(), times.transfer(), times.latest), (4 * MS, 2 * MS, 3));
    let values = job.values(30 * MS);
    let [row] = &values.operations[..] else {
        panic!("one row")
    };
    assert_eq!((row.count, row.max_skew, row.worst), (2, 4 * MS, 1));
    assert_eq!(row.latest(), Some((3, 2)));
    assert_eq!(row.wait, (4 + 3 + 4 + 2 + 2 + 2) * MS);
    // 4 MiB in 2 ms and in 1 ms; the bus factor of four ranks is 1.5.
    let rate = row.algorithm_bandwidth().unwrap();
    assert!((rate - 2.0 * f64::from(4 << 20) * 1e9 / 3e6).abs() < 1.0, "{rate}");
    assert!((row.bus_bandwidth().unwrap() / rate - 1.5).abs() < 1e-9);
    assert!(values.waiting.is_empty() && values.problems.is_empty());
}

#[test]
fn arrivals_are_kernels_where_all_ranks_have_them() {
    let mut job = Job::with_kernels(2);
    for rank in 0..2 {
        let call = job.call(rank, 10 * MS);
        job.collectives.communication(&call);
        // The launch is a call of HIP inside; for rank 1 the kernel is read first.
        let inner = ApiCall {
            process: call.process,
            correlation: 1000 + u64::from(rank),
            parent: call.correlation,
            span: Span {
                begin: 10 * MS,
                end: 11 * MS,
            },
            ..ApiCall::default()
        };
        let kernel = Dispatch {
            process: call.process,
            correlation: inner.correlation,
            span: Span {
                begin: (20 + 5 * u64::from(rank)) * MS,
                end: 27 * MS,
            },
            ..Dispatch::default()
        };
        if rank == 1 {
            job.collectives.dispatch(&kernel);
        }
        job.collectives.returned(&inner);
        job.returned(&call, 11 * MS);
        if rank == 0 {
            job.collectives.dispatch(&kernel);
        }
    }
    let done = job.collectives.take_done();
    let times = done[0].1;
    assert!(times.by_kernel);
    assert_eq!((times.skew(), times.transfer(), times.latest), (5 * MS, 2 * MS, 1));
}

/// Rank 1's all-reduce begins 5 ms after rank 0's. What is read first does not matter: each order of the calls' ends and
/// kernels of three collectives gives the same times, also of the first one.
#[test]
fn the_first_collectives_are_timed_by_kernels_in_any_order() {
    // Ends and kernels of two ranks and three collectives; a part's kernel may come before its call's end.
    const EVENTS: usize = 12;
    for first in 0..EVENTS {
        for step in [1, 5, 7, 11] {
            let mut job = Job::with_kernels(2);
            let mut calls = Vec::new();
            for turn in 0..3u64 {
                for rank in 0..2 {
                    let call = job.call(rank, (1 + turn) * MS);
                    job.collectives.communication(&call);
                    calls.push((turn, u64::from(rank), call));
                }
            }
            for event in (0..EVENTS).map(|index| (first + index * step) % EVENTS) {
                let (turn, rank, call) = calls[event / 2];
                let begin = (100 + 100 * turn + 5 * rank) * MS;
                if event % 2 == 0 {
                    job.returned(&call, call.start + 10);
                } else {
                    job.kernel(&call, begin, (185 + 100 * turn) * MS);
                }
            }
            let done = job.collectives.take_done();
            assert_eq!(done.len(), 3, "{first} {step}");
            for (_, times) in done {
                assert!(times.by_kernel, "{first} {step}");
                assert_eq!((times.skew(), times.transfer(), times.latest), (5 * MS, 80 * MS, 1));
            }
        }
    }
}

#[test]
fn a_process_waits_for_its_first_kernel() {
    let in_flight = |call: &Communication| Dispatch {
        process: call.process,
        correlation: call.correlation,
        ..Dispatch::default()
    };
    let mut job = Job::with_kernels(2);
    let calls = [job.call(0, MS), job.call(1, MS)];
    for call in &calls {
        job.collectives.communication(call);
        job.returned(call, 2 * MS);
        job.collectives.in_flight(call.process, &[in_flight(call)]);
    }
    job.collectives.settle(60_000 * MS);
    assert!(job.collectives.take_done().is_empty(), "their kernels run");
    // A mismatch is named although its kernels never end.
    for rank in 0..2 {
        let mut call = job.call(rank, 3 * MS);
        call.count += u64::from(rank);
        job.collectives.communication(&call);
        job.returned(&call, 4 * MS);
    }
    assert_eq!(job.values(60_000 * MS).problems.len(), 1);
    for call in &calls {
        job.kernel(call, 50_000 * MS, 60_001 * MS);
    }
    assert!(job.collectives.take_done()[0].1.by_kernel);

    let mut job = Job::with_kernels(2);
    job.reduce(&[MS, MS], 2 * MS);
    job.collectives.settle(1001 * MS);
    assert!(job.collectives.take_done().is_empty());
    job.collectives.settle(1003 * MS);
    assert!(!job.collectives.take_done()[0].1.by_kernel);
    // From then on nothing is awaited, until a kernel comes.
    job.reduce(&[1010 * MS, 1011 * MS], 1012 * MS);
    assert_eq!(job.collectives.take_done().len(), 1);
    for rank in 0..2 {
        let call = job.call(rank, 1020 * MS);
        job.collectives.communication(&call);
        job.kernel(&call, 1030 * MS, 1040 * MS);
        job.returned(&call, 1021 * MS);
    }
    assert!(job.collectives.take_done()[0].1.by_kernel);
    job.reduce(&[1050 * MS, 1050 * MS], 1051 * MS);
    job.collectives.settle(9000 * MS);
    assert!(job.collectives.take_done().is_empty());
    // Kernels are not recorded any more: the collector stepped down.
    for process in [0, 1] {
        job.collectives.unrecorded(ProcessId(process));
    }
    job.collectives.settle(9000 * MS);
    assert_eq!(job.collectives.take_done().len(), 1);
}

/// A lost kernel is not awaited when kernels are much further; that calls are, as at the begin of a training, says nothing.
#[test]
fn lost_kernels_hold_up_no_collective() {
    let mut job = Job::with_kernels(2);
    let mut calls = Vec::new();
    for turn in 0..u64::from(4 * MAX_BEHIND) {
        for rank in 0..2 {
            let call = job.call(rank, (1 + turn) * MS);
            job.collectives.communication(&call);
            job.returned(&call, (1 + turn) * MS + 10);
            calls.push((rank, turn, call));
        }
    }
    assert!(job.collectives.take_done().is_empty());
    for (rank, turn, call) in &calls {
        // A stretch of one rank's kernels is lost.
        if *rank == 0 || !(20..120).contains(turn) {
            let begin = (1000 + turn + u64::from(*rank)) * MS;
            job.kernel(call, begin, begin + MS);
        }
    }
    let done = job.collectives.take_done();
    assert_eq!(done.len(), calls.len() / 2);
    let by_kernel = done.iter().filter(|(_, times)| times.by_kernel).count();
    assert_eq!(by_kernel, calls.len() / 2 - 100);
    // Without a kernel ever, calls decide.
    let mut job = Job::with_kernels(1);
    for turn in 0..u64::from(MAX_AHEAD) + 5 {
        job.reduce(&[turn * MS], turn * MS + 10);
    }
    assert_eq!(job.collectives.take_done().len(), 5);
    job.collectives.finish();
    assert_eq!(job.collectives.take_done().len(), MAX_AHEAD as usize);
}

/// An AllToAll ends a group, and the end of the group launches the kernel.
#[test]
fn kernels_of_calls_two_levels_down_are_joined() {
    let mut job = Job::with_kernels(2);
    for rank in 0..2 {
        let call = job.call(rank, 10 * MS);
        job.collectives.communication(&call);
        let inner = |number: u64, parent: u64| ApiCall {
            process: call.process,
            correlation: number + u64::from(rank),
            parent,
            ..ApiCall::default()
        };
        let group_end = inner(1000, call.correlation);
        let launch = inner(2000, group_end.correlation);
        let kernel = Dispatch {
            process: call.process,
            correlation: launch.correlation,
            span: Span {
                begin: (20 + u64::from(rank)) * MS,
                end: 27 * MS,
            },
            ..Dispatch::default()
        };
        // Calls arrive as they return; for rank 1 the kernel is read first.
        if rank == 1 {
            job.collectives.dispatch(&kernel);
        }
        job.collectives.returned(&launch);
        job.collectives.returned(&group_end);
        job.returned(&call, 11 * MS);
        if rank == 0 {
            job.collectives.dispatch(&kernel);
        }
    }
    let done = job.collectives.take_done();
    assert!(done[0].1.by_kernel);
    assert_eq!(done[0].1.skew(), MS);
}

#[test]
fn calls_below_a_call_that_does_not_return_are_bounded() {
    let mut job = Job::of(1);
    for correlation in 0..3 * MAX_NESTED as u64 {
        job.collectives.returned(&ApiCall {
            correlation: 1_000_000 + correlation,
            parent: 7,
            ..ApiCall::default()
        });
    }
    let held: usize = job.collectives.nested.values().map(Vec::len).sum();
    assert!(held <= MAX_NESTED && held == job.collectives.nested_calls, "{held}");
}

#[test]
fn a_missing_rank_is_named_and_a_late_one_is_not_for_long() {
    let mut job = Job::of(3);
    job.reduce(&[MS, MS, MS], 2 * MS);
    for rank in [0, 2] {
        let call = job.call(rank, 5 * MS);
        job.collectives.communication(&call);
    }
    let values = job.values(2000 * MS);
    let [waiting] = &values.waiting[..] else { panic!("one") };
    assert_eq!((waiting.key.sequence, waiting.since), (2, 5 * MS));
    assert_eq!(waiting.came, [0, 2]);
    assert_eq!(waiting.missing, [(1, Some(ProcessId(1)), Absence::Absent)]);
    let call = job.call(1, 2000 * MS);
    job.collectives.communication(&call);
    assert!(job.values(2001 * MS).waiting.is_empty());
}

#[test]
fn nobody_waits_before_the_previous_kernel_ends() {
    let mut job = Job::with_kernels(2);
    // Both have kernels; those of the second collective have not run, and rank 0 has called the third.
    for turn in 0..2 {
        for rank in 0..2 {
            let call = job.call(rank, (1 + turn) * MS);
            job.collectives.communication(&call);
            job.returned(&call, (1 + turn) * MS + 1);
            if turn == 0 {
                job.collectives.dispatch(&Dispatch {
                    process: call.process,
                    correlation: call.correlation,
                    span: Span {
                        begin: 2 * MS,
                        end: 3 * MS,
                    },
                    ..Dispatch::default()
                });
            }
        }
    }
    let call = job.call(0, 4 * MS);
    job.collectives.communication(&call);
    assert!(job.values(5000 * MS).waiting.is_empty());
}

#[test]
fn mismatches_are_named() {
    let mut job = Job::of(3);
    for rank in 0..3 {
        let mut call = job.call(rank, MS);
        if rank == 1 {
            call.count = 7;
        }
        job.collectives.communication(&call);
        job.returned(&call, 2 * MS);
    }
    for rank in 0..3 {
        let mut call = job.call(rank, 3 * MS);
        if rank == 2 {
            call.operation = Operation::AllGather;
        }
        job.collectives.communication(&call);
        job.returned(&call, 4 * MS);
    }
    for rank in 0..3 {
        let mut call = job.call(rank, 5 * MS);
        call.datatype = Datatype(if rank == 0 { 8 } else { 7 });
        job.collectives.communication(&call);
        job.returned(&call, 6 * MS);
    }
    let problems = job.values(9 * MS).problems;
    assert_eq!(problems.len(), 3);
    assert!(matches!(problems[0], Problem::Count { rank: 1, count: 7, .. }));
    assert!(matches!(
        problems[1],
        Problem::Operation {
            rank: 2,
            called: Operation::AllGather,
            others: Operation::AllReduce,
            ..
        }
    ));
    assert!(matches!(problems[2], Problem::Type { rank: 0, .. }));
}

#[test]
fn groups_start_at_their_end_and_messages_are_paired() {
    let mut job = Job::of(2);
    for rank in 0..2u32 {
        let mut ops = Vec::new();
        for operation in [Operation::Send, Operation::Receive] {
            let mut call = job.call(rank, MS);
            call.operation = operation;
            call.sequence = 1;
            call.peer = Some(1 - rank);
            call.group = 9;
            job.collectives.communication(&call);
            job.returned(&call, MS + 10);
            ops.push(call);
        }
        assert!(
            rank == 1 || job.values(5000 * MS).waiting.is_empty(),
            "the group has not ended"
        );
        let mut end = job.call(rank, (5 + 2 * u64::from(rank)) * MS);
        end.operation = Operation::GroupEnd;
        end.group = 9;
        job.collectives.communication(&end);
        job.returned(&end, 9 * MS);
    }
    let done = job.collectives.take_done();
    assert_eq!(done.len(), 2);
    for (collective, times) in &done {
        assert_eq!(collective.parts[0].call.operation, Operation::Send);
        assert_eq!((times.skew(), times.end), (2 * MS, 9 * MS));
    }
    // Both end with the same call, in either order.
    let mut pairs: Vec<_> = done.iter().map(|(collective, _)| collective.key.pair).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [Some((0, 1)), Some((1, 0))]);
}

#[test]
fn a_failed_call_takes_no_part() {
    let mut job = Job::of(2);
    let bad = job.call(0, MS);
    job.collectives.communication(&bad);
    job.collectives.communication(&Communication {
        operation: Operation::Withdrawn,
        ..bad
    });
    job.next[0] = 0;
    job.reduce(&[2 * MS, 3 * MS], 4 * MS);
    let values = job.values(5 * MS);
    assert_eq!(values.operations[0].count, 1);
    assert_eq!(values.operations[0].max_skew, MS);
}

#[test]
fn a_failed_call_that_is_withdrawn_late_takes_no_part() {
    let mut job = Job::of(2);
    // The other rank has withdrawn its call and called what came next.
    let mut next = job.call(0, 2 * MS);
    next.operation = Operation::AllToAll;
    job.collectives.communication(&next);
    job.returned(&next, 4 * MS);
    let bad = job.call(1, MS);
    job.collectives.communication(&bad);
    job.collectives.returned(&ApiCall {
        process: bad.process,
        correlation: bad.correlation,
        status: Some(4),
        span: Span {
            begin: MS,
            end: MS + 10,
        },
        ..ApiCall::default()
    });
    job.collectives.communication(&Communication {
        operation: Operation::Withdrawn,
        ..bad
    });
    job.next[1] = 0;
    let mut last = job.call(1, 3 * MS);
    last.operation = Operation::AllToAll;
    job.collectives.communication(&last);
    job.returned(&last, 4 * MS);
    let values = job.values(5 * MS);
    assert_eq!(values.problems, []);
    assert_eq!((values.operations[0].count, values.operations[0].max_skew), (1, MS));
}

#[test]
fn bad_input_is_reported_and_not_matched() {
    let mut job = Job::of(2);
    // The same rank again: a recording that was read twice.
    job.join(5, 1, 77);
    // A communicator of unknown identity.
    job.collectives.communicator(&Communicator {
        process: ProcessId(0),
        number: 3,
        state: CommunicatorState::Seen,
        ..Communicator::default()
    });
    // A rank that its size does not allow.
    job.collectives.communicator(&Communicator {
        process: ProcessId(6),
        number: 1,
        identity: Some(77),
        rank: Some(9),
        size: Some(2),
        ..Communicator::default()
    });
    job.reduce(&[MS, 2 * MS], 3 * MS);
    for (process, communicator) in [(5, 1), (0, 3), (6, 1), (0, 8)] {
        let call = Communication {
            process: ProcessId(process),
            communicator,
            sequence: 1,
            correlation: 900 + u64::from(process),
            ..Communication::default()
        };
        job.collectives.communication(&call);
    }
    let values = job.values(9 * MS);
    assert_eq!(values.unmatched, 4);
    assert_eq!(values.operations[0].count, 1);
    assert!(
        values
            .problems
            .iter()
            .any(|it| matches!(it, Problem::Twice { rank: 1, .. }))
    );
    assert!(values.problems.iter().any(|it| matches!(it, Problem::Unknown { .. })));
    assert!(values.problems.iter().any(|it| matches!(it, Problem::Size { .. })));
    assert!(values.waiting.is_empty());
}

#[test]
fn unrecorded_ranks_are_distinct_from_absent_ones() {
    let mut job = Job::of(4);
    job.collectives = Collectives::default();
    for rank in [0, 1] {
        job.join(rank, rank, 78);
    }
    let call = job.call(0, MS);
    job.collectives.communication(&call);
    let waiting = job.values(3000 * MS).waiting;
    let kinds: Vec<_> = waiting[0].missing.iter().map(|missing| missing.2).collect();
    assert_eq!(kinds, [Absence::Absent, Absence::Unrecorded, Absence::Unrecorded]);
}

/// Two machines whose clocks differ: collectives bound the difference, and the skew is right within the printed error.
#[test]
fn the_ends_of_collectives_align_clocks() {
    const AHEAD: u64 = 70 * MS;
    let mut job = Job::of(2);
    job.collectives.machine(ProcessId(1), 1);
    let mut at = 1000 * MS;
    for turn in 0..20u64 {
        let late = (turn * 7919) % 997 * 1000;
        let (first, second) = if turn % 2 == 0 { (0, late) } else { (late, 0) };
        let transfer = 20_000 + turn * 500;
        let end = at + late + transfer;
        for (rank, offset, shift) in [(0, first, 0), (1, second, AHEAD)] {
            let call = job.call(rank, at + offset + shift);
            job.collectives.communication(&call);
            job.returned(&call, end + shift);
        }
        at += 10 * MS;
    }
    let values = job.values(at);
    let [clock] = &values.clocks[..] else { panic!("one") };
    let error = clock.error.unwrap();
    assert!(error <= 40_000, "{error}");
    assert!(clock.offset.abs_diff(AHEAD as i64) <= error, "{clock:?}");
    let (collective, _) = &values.recent[19];
    let times = job.collectives.times(collective).unwrap();
    let truth = (19 * 7919) % 997 * 1000;
    assert!(times.skew().abs_diff(truth) <= times.error, "{times:?} {truth}");
}

#[test]
fn without_a_bound_nothing_is_claimed_between_machines() {
    let mut job = Job::of(2);
    job.collectives.machine(ProcessId(1), 1);
    for rank in 0..2 {
        let mut call = job.call(rank, MS * (1 + 50 * u64::from(rank)));
        call.operation = Operation::Broadcast;
        job.collectives.communication(&call);
        job.returned(&call, 60 * MS);
    }
    let done = job.collectives.take_done();
    assert!(!done[0].1.is_significant());
    assert!(job.values(70 * MS).operations[0].last.is_empty());
}
