//! Collectives of MPI: who waits for whom by what each function needs.

use super::*;

/// A call of each rank: its begin and its end, ms.
type Calls<'a> = &'a [(u64, u64)];

/// Ranks of one communicator of MPI.
struct World(Job);

impl World {
    fn new(ranks: u32) -> Self {
        let mut job = Job {
            collectives: Collectives::keeping_all(),
            ranks,
            next: vec![0; ranks as usize],
            correlation: 0,
        };
        for rank in 0..ranks {
            job.collectives.communicator(&fact(rank, rank, ranks));
        }
        Self(job)
    }

    fn call(&mut self, operation: Operation, rank: u32, root: Option<u32>, at: u64) -> Communication {
        Communication {
            operation,
            peer: root,
            datatype: Datatype(255),
            ..self.0.call(rank, at)
        }
    }

    /// Each rank's wait in ms, and for whom.
    fn waits(&mut self, operation: Operation, root: Option<u32>, calls: Calls<'_>) -> Vec<(u64, Option<u32>)> {
        for (rank, (begin, end)) in (0..).zip(calls) {
            let call = self.call(operation, rank, root, begin * MS);
            self.0.collectives.communication(&call);
            self.0.returned(&call, end * MS);
        }
        let done = self.0.collectives.take_done();
        let [(collective, _)] = &done[..] else {
            panic!("{} are complete", done.len())
        };
        let waits = collective.parts.iter().map(|part| part.wait);
        waits.map(|wait| (wait.nanos / MS, wait.rank)).collect()
    }
}

fn fact(process: u32, rank: u32, ranks: u32) -> Communicator {
    Communicator {
        process: ProcessId(process),
        number: 1,
        is_mpi: true,
        is_ambiguous: true,
        identity: Some(9),
        rank: Some(rank),
        size: Some(ranks),
        ..Communicator::default()
    }
}

#[test]
fn all_wait_for_the_last_one_where_each_needs_each() {
    let mut world = World::new(3);
    let waits = world.waits(Operation::MpiAllreduce, None, &[(10, 31), (30, 31), (12, 32)]);
    assert_eq!(waits, [(20, Some(1)), (0, None), (18, Some(1))]);
    let values = world.0.values(40 * MS);
    let [row] = &values.operations[..] else {
        panic!("{values:?}")
    };
    assert_eq!(
        (row.wait, row.max_wait, row.latest()),
        (38 * MS, (20 * MS, 0), Some((1, 1)))
    );
    assert_eq!((row.bus_bandwidth(), &values.problems[..]), (None, &[][..]));
}

#[test]
fn a_rank_waits_for_those_alone_that_it_needs() {
    // Ranks 1 and 2 need the root, which comes at 20 and needs nobody; rank 3 comes last.
    let calls = [(20, 21), (10, 22), (19, 22), (40, 41)];
    let waits = World::new(4).waits(Operation::MpiBcast, Some(0), &calls);
    assert_eq!(waits, [(0, None), (10, Some(0)), (1, Some(0)), (0, None)]);
    // The root alone needs all.
    let calls = [(10, 41), (10, 11), (20, 21), (40, 41)];
    let waits = World::new(4).waits(Operation::MpiReduce, Some(0), &calls);
    assert_eq!(waits, [(30, Some(3)), (0, None), (0, None), (0, None)]);
    // Each rank needs those before it.
    let calls = [(10, 11), (20, 21), (5, 21), (40, 41)];
    let waits = World::new(4).waits(Operation::MpiScan, None, &calls);
    assert_eq!(waits, [(0, None), (0, None), (15, Some(1)), (0, None)]);
    // A rank that had left when the last one came did not wait for it.
    let waits = World::new(2).waits(Operation::MpiAlltoallv, None, &[(10, 11), (40, 41)]);
    assert_eq!(waits, [(0, None), (0, None)]);
}

#[test]
fn nobody_is_last_within_the_error_of_the_clocks() {
    let mut world = World::new(2);
    for (rank, at) in [(0, 10 * MS), (1, 10 * MS + MACHINE_ERROR)] {
        let call = world.call(Operation::MpiBarrier, rank, None, at);
        world.0.collectives.communication(&call);
        world.0.returned(&call, 11 * MS);
    }
    let values = world.0.values(20 * MS);
    assert_eq!(values.operations[0].latest(), None);
}

#[test]
fn two_jobs_whose_worlds_cannot_be_told_apart_are_not_matched() {
    let mut world = World::new(2);
    world.waits(Operation::MpiBarrier, None, &[(10, 11), (10, 11)]);
    world.0.collectives.communicator(&fact(5, 1, 2));
    let values = world.0.values(20 * MS);
    assert!(
        matches!(values.problems[..], [Problem::Twice { rank: 1, .. }]),
        "{values:?}"
    );
    assert!(values.operations.is_empty() && values.recent.is_empty() && values.progress.is_empty());
    for rank in 0..2 {
        let call = world.call(Operation::MpiBarrier, rank, None, 30 * MS);
        world.0.collectives.communication(&call);
        world.0.returned(&call, 31 * MS);
    }
    assert_eq!(world.0.values(40 * MS).operations, []);
    assert_eq!(world.0.values(40 * MS).unmatched, 2);
}

#[test]
fn calls_of_different_functions_are_no_collective() {
    let mut world = World::new(2);
    for (rank, operation) in [(0, Operation::MpiBarrier), (1, Operation::MpiAllreduce)] {
        let call = world.call(operation, rank, None, 10 * MS);
        world.0.collectives.communication(&call);
        world.0.returned(&call, 11 * MS);
    }
    let values = world.0.values(20 * MS);
    assert!(matches!(values.problems[..], [Problem::Operation { .. }]), "{values:?}");
    assert_eq!((values.operations.len(), values.unmatched), (0, 2));
}

/// An MPI that works on the GPU's memory launches kernels in its calls.
#[test]
fn kernels_inside_of_a_call_are_no_part_of_it() {
    let mut world = World::new(2);
    for rank in 0..2 {
        let call = world.call(Operation::MpiAllreduce, rank, None, (10 + u64::from(rank)) * MS);
        world.0.collectives.communication(&call);
        let inner = ApiCall {
            process: call.process,
            correlation: 1000 + u64::from(rank),
            parent: call.correlation,
            ..ApiCall::default()
        };
        world.0.collectives.returned(&inner);
        let kernel = Communication {
            correlation: inner.correlation,
            ..call
        };
        world.0.kernel(&kernel, 11 * MS, 90 * MS);
        world.0.kernel(&call, 11 * MS, 90 * MS);
        world.0.returned(&call, 12 * MS);
    }
    let done = world.0.collectives.take_done();
    let [(_, times)] = &done[..] else { panic!("{done:?}") };
    assert_eq!((times.by_kernel, times.first, times.end), (false, 10 * MS, 12 * MS));
}
