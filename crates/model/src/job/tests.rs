use super::report::LeftOut;
use super::sums::{MAX_COMMUNICATORS, MAX_KERNELS, MAX_NAME, MAX_TEXT};
use super::*;
use crate::analysis::placement::{Place, verdicts};
use crate::analysis::{Rule, steps, usage};
use crate::collectives::MACHINE_ERROR;
use crate::{Fresh, Options, Snapshot, Store};
use roctop_trace::binding::{CpuSet, Device, Node, Numa};
use roctop_trace::item::{
    Agent, AgentId, AgentKind, ApiCall, CollectiveOperation, Communication, Communicator, Copy, Dispatch, Exit, Item,
    Kernel, KernelId, LossReason, Marker, Operation, OperationId, Process, ProcessId, Span, StreamId, TextId, Thread,
    ThreadId, ThreadTime,
};
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const NOW: u64 = 5_000 * SECOND;

/// Sums that take as many bytes as any may.
fn longest(rank: u32) -> RankSums {
    let text = "x".repeat(MAX_TEXT);
    let kernel = |at: u64| KernelSums {
        name: u64::MAX - at,
        count: u32::MAX,
        total: u64::MAX,
    };
    let arrivals = |from: u32| {
        (from..from + (MAX_ARRIVALS / MAX_COMMUNICATORS) as u32).map(|sequence| ArrivalSums {
            sequence: 1 << 30 | sequence,
            at: SECOND as i64,
            took: SECOND,
            by_kernel: true,
            ..ArrivalSums::default()
        })
    };
    let communicator = |at: u32| CommunicatorPart {
        identity: u64::MAX - u64::from(at),
        rank,
        size: 8000,
        reached: u32::MAX,
        pending: Some(PendingPart {
            sequence: u32::MAX,
            operation: CollectiveOperation::Withdrawn,
            since: NOW,
        }),
        arrivals: arrivals(at * 8).collect(),
    };
    RankSums {
        rank,
        size: 8000,
        pid: u32::MAX,
        gpu: Some(7),
        begin: NOW,
        length: SECOND,
        steps: Some(StepSums {
            count: u32::MAX,
            total: u64::MAX,
            longest: u64::MAX,
        }),
        kernel_time: u64::MAX,
        kernels: (0..MAX_KERNELS as u64).map(kernel).collect(),
        communicators: (0..MAX_COMMUNICATORS as u32).map(communicator).collect(),
        gauges: Some(Readings {
            throttle: text.clone(),
            ..Readings::default()
        }),
        alerts: vec![
            AlertSums {
                rule: Rule::Straggler,
                text: text.clone(),
            };
            2
        ],
        lost: vec![(LossReason::Damaged, u64::MAX); 7],
        doing: text,
        ..RankSums::default()
    }
}

/// Sums of a rank in a second of its clock, with a step of 100 ms.
fn plain(rank: u32, second: u64) -> RankSums {
    RankSums {
        rank,
        size: 8,
        begin: second * SECOND,
        length: SECOND,
        busy: SECOND / 2,
        kernel_time: SECOND / 2,
        steps: Some(StepSums {
            count: 10,
            total: SECOND,
            longest: SECOND / 10,
        }),
        ..RankSums::default()
    }
}

/// A rank at a separate core on a node with two NUMA nodes, each with a GPU. Odd ranks are far from theirs.
fn placed(rank: u32) -> Place {
    let cpus = |numa: u32| CpuSet::of(numa * 64..(numa + 1) * 64);
    let numa = rank / 2 % 2;
    let gpu = if rank.is_multiple_of(2) { numa } else { 1 - numa };
    let node = Node {
        online: cpus(0).or(&cpus(1)),
        numa: [0, 1].map(|id| Numa { id, cpus: cpus(id) }).to_vec(),
        cores: (0..128).map(|core| CpuSet::of([core])).collect(),
        gpus: [0, 1]
            .map(|at| Device {
                node: at,
                number: at,
                numa: Some(at),
                ..Device::default()
            })
            .to_vec(),
        ..Node::default()
    };
    Place {
        rank: None,
        delay: Some(if rank.is_multiple_of(2) { 9_000 } else { 31_000 }),
        ..Place::of_rank(rank, &CpuSet::of([64 * numa + rank % 64]), &[gpu], &node)
    }
}

#[test]
fn what_is_wrong_with_places_comes_to_the_root() {
    let mut reducer = Reducer::new("node");
    let ranks: Vec<u32> = (4..8).collect();
    for &rank in &ranks {
        let bytes = encode_rank(&RankReport {
            sums: plain(rank, 1),
            // The last one does not know.
            place: (rank != 7).then(|| Box::new(placed(rank).shortened())),
            ..RankReport::default()
        });
        reducer.take(decode_rank(&bytes).expect("a report"));
    }
    let mut job = Job::new("job");
    for sequence in 0..2 {
        // The second report has no places: what was said stays.
        reducer.take(RankReport {
            sums: plain(4, 2 + sequence),
            ..RankReport::default()
        });
        let report = decode_node(&reducer.report((2 + sequence) * SECOND, 0)).expect("a report");
        job.report(0, report, (2 + sequence) * SECOND);
    }
    let values = job.values(4 * SECOND);
    // As the places themselves are judged.
    let places: Vec<Place> = ranks[..3]
        .iter()
        .map(|rank| Place {
            rank: Some(*rank),
            ..placed(*rank)
        })
        .collect();
    let wanted = verdicts(&places);
    assert_eq!(wanted.len(), 1);
    let (mut found, mut known) = (Vec::new(), Vec::new());
    for (at, row) in (0..).zip(values.ranks.iter()) {
        known.extend(values.is_placed(at).then_some(row.rank));
        found.extend(
            values
                .findings(at)
                .map(|(finding, line)| (row.rank, finding.text.clone(), line.map(str::to_owned))),
        );
    }
    known.sort_unstable();
    assert_eq!(known, [4, 5, 6]);
    assert_eq!(found, [(5, wanted[0].text.clone(), wanted[0].remedy.clone())]);
    assert!(
        found[0].1.contains("launch delay p50 ≈ 31.0 µs against ≈ 9.00 µs"),
        "{found:?}"
    );
    assert_eq!(values.totals.misplaced, [0, 1, 0]);
}

#[test]
fn ports_of_a_gpu_count_once() {
    let of = |rank: u32, gpu: u32, network: Option<f32>, errors: u64| RankSums {
        gpu: Some(gpu),
        gauges: Some(Readings {
            network,
            network_errors: Some(errors),
            xgmi: network.map(|rate| 2.0 * rate),
            xgmi_errors: Some(errors + 1),
            ..Readings::default()
        }),
        ..plain(rank, 1)
    };
    let mut job = Job::new("job");
    // Ranks 0 and 1 share a GPU; no port is counted at GPU 1 of the second node.
    let nodes = [
        vec![of(0, 0, Some(1e9), 2), of(1, 0, Some(1e9), 2), of(2, 1, Some(5e8), 0)],
        vec![of(3, 0, Some(2e9), 1), of(4, 1, None, 0), plain(5, 1)],
    ];
    for (number, ranks) in (0..).zip(nodes) {
        job.node(number, "a");
        job.report(number, report(1, 2 * SECOND, ranks), 2 * SECOND);
    }
    let values = job.values(3 * SECOND);
    assert_eq!((values.totals.network, values.totals.network_errors), (Some(3.5e9), 3));
    assert_eq!((values.totals.xgmi, values.totals.xgmi_errors), (Some(7e9), 7));
    let network = |ranks: &[u32]| values.traffic(ranks.iter().copied(), Readings::of_network);
    assert_eq!(network(&[0, 1, 2]), (Some(1.5e9), 2));
    assert_eq!(network(&[4, 5]), (None, 0));
}

#[test]
fn a_place_that_does_not_fit_is_left_out() {
    let mut place = placed(0);
    place.node.cores = (0..8192).map(|core| CpuSet::of([core])).collect();
    let bytes = encode_rank(&RankReport {
        sums: plain(3, 1),
        place: Some(Box::new(place)),
        ..RankReport::default()
    });
    let report = decode_rank(&bytes).expect("a report");
    assert_eq!((report.sums, report.place), (plain(3, 1), None));
}

fn report(sequence: u64, at: u64, ranks: Vec<RankSums>) -> NodeReport {
    NodeReport {
        sequence,
        host: "node".into(),
        at,
        ranks,
        ..NodeReport::default()
    }
}

const fn clock(offset: i64, error: u64) -> NodeClock {
    NodeClock { offset, error }
}

#[test]
fn clocks_of_machines_that_booted_apart_are_compared() {
    // The node booted 50 s after the root, and its CLOCK_REALTIME is 3 s ahead: 13 s up and 63 s up at the same moment.
    let (root, node) = ((63 * SECOND, 1_000 * SECOND), (13 * SECOND, 1_003 * SECOND));
    let ahead = [node, root].map(|(boot, real)| (real - boot) as i64);
    let found = NodeClock::of_realtime(3 * SECOND as i64, 9, ahead);
    assert_eq!(found, clock(node.0 as i64 - root.0 as i64, 9));
}

#[test]
fn a_report_fits_and_says_what_it_left_out() {
    let mut reducer = Reducer::new(&"host".repeat(99));
    let mut lengths = Vec::new();
    for round in 0..3 {
        for rank in 0..MAX_RANKS as u32 {
            let names = (0..MAX_KERNELS as u64).map(|at| (u64::MAX - at, "k".repeat(MAX_NAME)));
            reducer.take(RankReport {
                sums: longest(rank),
                names: names.collect(),
                place: Some(Box::new(placed(rank))),
            });
        }
        let bytes = reducer.report(NOW + round, 7);
        assert!(bytes.len() <= MAX_REPORT, "{} bytes", bytes.len());
        lengths.push(bytes.len());
        let known = decode_node(&bytes).expect("a report");
        assert_eq!((known.ranks.len(), known.sequence), (MAX_RANKS, round + 1));
        assert_eq!((known.at, known.realtime_ahead), (NOW + round, 7));
        assert!(known.left_out.arrivals > 0, "{:?}", known.left_out);
        let arrivals = known
            .ranks
            .iter()
            .flat_map(|sums| &sums.communicators)
            .flat_map(|part| &part.arrivals);
        let least = arrivals.map(|arrival| arrival.sequence.trailing_zeros()).min();
        assert!(least.is_none_or(|least| least > 0), "multiples of a power of two");
    }
    // Eight ranks of a usual length lose nothing.
    for rank in 0..8 {
        reducer.take(RankReport {
            sums: RankSums {
                alerts: Vec::new(),
                doing: String::new(),
                ..longest(rank)
            },
            ..RankReport::default()
        });
    }
    let known = decode_node(&reducer.report(NOW, 7)).expect("a report");
    assert_eq!(known.left_out, LeftOut::default());
    println!("bytes of 16 ranks: {lengths:?}");
}

#[test]
fn names_take_turns_until_all_are_known() {
    let mut reducer = Reducer::new("node");
    let name = |at: u64| format!("{at:0>100}");
    for at in 0..400 {
        reducer.take(RankReport {
            sums: plain(0, 1),
            names: vec![(name_id(&name(at)), name(at))],
            ..RankReport::default()
        });
    }
    let mut job = Job::new("job");
    for second in 0..6 {
        let known = decode_node(&reducer.report(second * SECOND, 0)).expect("a report");
        job.report(0, known, second * SECOND);
    }
    assert_eq!(job.names.len(), 400);
    assert_eq!(job.names[&name_id(&name(7))], name(7).into());
}

#[test]
fn foreign_bytes_are_an_error_or_a_report_within_the_limits() {
    let honest = encode_rank(&RankReport {
        sums: longest(3),
        names: vec![(1, "k".into())],
        place: Some(Box::new(placed(3))),
    });
    assert!(decode_rank(&honest).is_ok());
    let node = {
        let mut reducer = Reducer::new("node");
        (0..8).for_each(|rank| {
            reducer.take(RankReport {
                sums: longest(rank),
                place: Some(Box::new(placed(rank))),
                ..RankReport::default()
            });
        });
        reducer.report(NOW, 0)
    };
    let mut seed = 9u64;
    let mut dice = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let mut job = Job::new("job");
    let mut accepted = 0;
    for round in 0..20_000 {
        let mut bytes = if round % 2 == 0 { node.clone() } else { honest.clone() };
        for _ in 0..=dice(6) {
            let at = dice(bytes.len());
            match dice(3) {
                0 => bytes[at] = dice(256) as u8,
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, dice(256) as u8),
            }
        }
        let _ = decode_rank(&bytes);
        if let Ok(report) = decode_node(&bytes) {
            accepted += 1;
            job.report(dice(5) as u32, report, NOW + round * SECOND / 64);
        }
    }
    let values = job.values(NOW + 400 * SECOND);
    assert!(accepted > 100, "{accepted} accepted");
    assert!(values.ranks.len() <= 5 * MAX_RANKS * 400, "{}", values.ranks.len());
    let mut text = String::new();
    values.slow.iter().for_each(|slow| text += &slow.text(&values));
    let errors = [
        decode_node(&[]),
        decode_node(&[77, 1]),
        decode_node(&vec![1; MAX_REPORT + 1]),
        decode_node(&[1, 0xff, 0xff, 0xff, 0xff, 0xff]),
    ];
    assert!(errors.iter().all(Result::is_err), "{errors:?}");
    let text = errors[1].as_ref().expect_err("another version").to_string();
    assert!(text.contains("version 77"), "{text}");
}

#[test]
fn late_reports_fill_their_seconds_and_change_nothing_newer() {
    let mut job = Job::new("job");
    job.node(7, "a");
    job.clock(7, clock(-(40 * SECOND as i64), 5));
    // The node's clock is 40 s behind.
    let at = |second: u64| report(second, second * SECOND, vec![plain(0, second)]);
    for (second, now) in [(60, 101), (62, 103), (61, 104), (59, 104)] {
        job.report(7, at(second), now * SECOND);
    }
    let values = job.values(104 * SECOND);
    assert_eq!(values.ranks[0].until, 103 * SECOND);
    let known: Vec<u64> = (90..110)
        .filter(|second| values.grid.cell(*second, 0).is_some())
        .collect();
    assert_eq!(known, [99, 100, 101, 102]);
    assert_eq!(values.mean(0, Quantity::Step), Some(100.0 * MS as f64));
    assert_eq!(values.state(0), RankState::Live);
    assert_eq!(job.values(107 * SECOND).state(0), RankState::Stale);
    job.gone(7, 107 * SECOND);
    assert_eq!(job.values(108 * SECOND).state(0), RankState::Gone);
    let values = job.values(108 * SECOND);
    assert!(matches!(values.slow[0].reason, Reason::Dead(_)), "{:?}", values.slow);
    assert_eq!(values.totals.nodes, [0, 0, 1]);
    // It comes again.
    job.node(7, "a");
    job.report(7, report(1, 68 * SECOND, vec![plain(0, 67)]), 108 * SECOND);
    assert_eq!(job.values(108 * SECOND).state(0), RankState::Live);
}

#[test]
fn a_rank_belongs_to_one_node() {
    let mut job = Job::new("job");
    job.node(0, "a");
    job.node(1, "b");
    job.report(0, report(1, 5 * SECOND, vec![plain(3, 4)]), 5 * SECOND);
    job.report(1, report(1, 5 * SECOND, vec![plain(3, 4)]), 5 * SECOND);
    assert_eq!(job.values(5 * SECOND).totals.refused, 1);
    // When the node is gone, the rank may run elsewhere.
    job.gone(0, 6 * SECOND);
    job.report(1, report(2, 7 * SECOND, vec![plain(3, 6)]), 7 * SECOND);
    let values = job.values(7 * SECOND);
    assert_eq!((values.ranks.len(), values.state(0)), (1, RankState::Live));
    assert_eq!(values.node_of(0).map(|node| &*node.host), Some("b"));
}

/// Two nodes with a rank each meet in collectives; rank 1 comes `skew` later.
fn meeting(skew: u64, clock_error: Option<u64>) -> JobValues {
    let mut job = Job::new("job");
    for node in 0..2 {
        job.node(node, "n");
        if let Some(error) = clock_error {
            job.clock(node, clock(0, error));
        }
    }
    for second in 100..104 {
        for rank in 0..2u32 {
            let late = u64::from(rank) * skew;
            let arrivals = (1..=10).map(|at| ArrivalSums {
                sequence: (second * 10 + at) as u32,
                at: (at * 90 * MS + late) as i64,
                took: 50 * MS - late,
                by_kernel: true,
                ..ArrivalSums::default()
            });
            let sums = RankSums {
                inside: 500 * MS,
                inside_kernels: 500 * MS,
                communicators: vec![CommunicatorPart {
                    identity: 5,
                    rank,
                    size: 2,
                    reached: 1,
                    pending: None,
                    arrivals: arrivals.collect(),
                }],
                ..plain(rank, second)
            };
            job.report(
                rank,
                report(second, (second + 1) * SECOND, vec![sums]),
                (second + 1) * SECOND,
            );
        }
    }
    job.values(105 * SECOND)
}

#[test]
fn who_waits_in_mpi_for_a_slow_rank_is_said() {
    let mut job = Job::new("job");
    job.node(0, "n");
    for second in 100..104 {
        // Ten steps of 100 ms: rank 1 calls 60 ms after rank 0.
        let ranks = (0..2u32).map(|rank| {
            let late = u64::from(rank) * 60 * MS;
            let arrivals = (0..10).map(|at| ArrivalSums {
                sequence: (second * 10 + at) as u32 + 1,
                operation: CollectiveOperation::MpiAllreduce,
                at: (at * 100 * MS + late) as i64,
                took: 70 * MS - late,
                by_kernel: false,
            });
            RankSums {
                steps: Some(StepSums {
                    count: 10,
                    total: SECOND,
                    longest: 100 * MS,
                }),
                inside: 10 * (70 * MS - late),
                busy: SECOND / 10,
                kernel_time: SECOND / 10,
                before: "not in a call, range halo".into(),
                communicators: vec![CommunicatorPart {
                    identity: 5,
                    rank,
                    size: 2,
                    reached: 1,
                    pending: None,
                    arrivals: arrivals.collect(),
                }],
                ..plain(rank, second)
            }
        });
        let now = (second + 1) * SECOND;
        job.report(0, report(second, now, ranks.collect()), now);
    }
    let values = job.values(105 * SECOND);
    let [slow] = &values.slow[..] else {
        panic!("{:?}", values.slow)
    };
    let text = slow.text(&values);
    assert_eq!(slow.rank, 1, "{text}");
    let expected =
        "; 1 rank waits for it in MPI_Allreduce, 60.0 ms of 100 ms a step; meanwhile it was not in a call, range halo";
    assert!(text.ends_with(expected), "{text}");
    // The same function alone is compared.
    let late = values.communicators[0].late.expect("rank 1 is late");
    assert_eq!((late.rank, late.operation), (1, CollectiveOperation::MpiAllreduce));
}

#[test]
fn skew_below_the_clock_error_is_no_claim() {
    let values = meeting(10 * MS, Some(20_000));
    let communicator = &values.communicators[0];
    assert_eq!(
        (communicator.count, communicator.skew, communicator.size),
        (40, 10 * MS, 2)
    );
    assert_eq!(communicator.error, Some(40_000 + MACHINE_ERROR));
    let late = communicator.late.expect("rank 1 is late");
    assert_eq!((late.rank, late.share, late.skew), (1, 1.0, 10 * MS));
    // 10 of 50 ms are wait: a fifth of the half second inside.
    let wait = values.mean(0, Quantity::Wait).expect("known");
    assert!((wait - 0.1).abs() < 1e-3, "{wait}");
    assert_eq!(values.mean(1, Quantity::Wait), Some(0.0));
    // The same skew, but the clocks are worse than that, or unknown.
    for error in [Some(6 * MS), None] {
        let values = meeting(10 * MS, error);
        assert_eq!(values.communicators[0].late, None, "{error:?}");
        assert_eq!(values.mean(0, Quantity::Wait), None, "{error:?}");
        assert!(values.slow.is_empty(), "{:?}", values.slow);
    }
    // A small skew with good clocks is a wait of nothing.
    let values = meeting(30_000, Some(20_000));
    assert_eq!(
        (values.communicators[0].late, values.mean(0, Quantity::Wait)),
        (None, Some(0.0))
    );
}

#[test]
fn eight_thousand_ranks_take_less_than_300_mb() {
    const NODES: u32 = 1000;
    const RANKS: u32 = 8000;
    let mut job = Job::new("job");
    for node in 0..NODES {
        job.node(node, "node");
        job.clock(node, clock(0, 10_000));
    }
    let sums = |rank: u32, second: u64| RankSums {
        rank,
        begin: second * SECOND,
        communicators: longest(rank)
            .communicators
            .into_iter()
            .map(|part| CommunicatorPart { size: RANKS, ..part })
            .collect(),
        ..longest(rank)
    };
    // All that ranks keep, then the seconds alone.
    for node in 0..NODES {
        let ranks = (node * 8..node * 8 + 8).map(|rank| sums(rank, 1000));
        job.report(node, report(1, 1001 * SECOND, ranks.collect()), 1001 * SECOND);
    }
    for second in 1001..1001 + SECONDS as u64 + 5 {
        for rank in 0..RANKS {
            job.grid
                .cell_mut(second, rank as usize)
                .expect("it is new")
                .add_wait(1, 1);
        }
    }
    let rank_bytes = |row: &RankRow| {
        let sums = &row.sums;
        let texts: usize = sums.alerts.iter().map(|alert| alert.text.capacity()).sum();
        let arrivals = sums.communicators.iter().map(|part| part.arrivals.capacity());
        size_of::<RankRow>()
            + size_of::<RankSums>()
            + texts
            + sums.doing.capacity()
            + sums.kernels.capacity() * size_of::<KernelSums>()
            + sums.communicators.capacity() * size_of::<CommunicatorPart>()
            + arrivals.sum::<usize>() * size_of::<ArrivalSums>()
            + sums.lost.capacity() * 16
    };
    let ranks: usize = job.ranks.iter().map(rank_bytes).sum();
    let (grid, matching) = (job.grid.bytes(), job.matching.bytes());
    println!("ranks {ranks} B, grid {grid} B, matching {matching} B");
    assert!(ranks + grid + matching < 300 << 20, "{ranks} + {grid} + {matching}");
    assert_eq!(job.grid.first(), Some(1001 + 5));
}

/// One of two ranks in a separate session: 3 s of steps of 100 ms with a kernel of 60 ms, a copy of 10 ms and a
/// collective of 20 ms.
fn session() -> (Store, u64) {
    let mut store = Store::new(Options::default());
    let begin = 100 * SECOND;
    let process = ProcessId(0);
    store.apply(&Item::Process(Process {
        id: process,
        pid: 77,
        rank: Some(1),
        exe: "train".into(),
        since: begin,
        ..Process::default()
    }));
    store.apply(&Item::Thread(Thread {
        id: ThreadId(0),
        process,
        tid: 77,
        name: "main".into(),
    }));
    for (id, kind) in [(0, AgentKind::Cpu), (1, AgentKind::Gpu)] {
        store.apply(&Item::Agent(Agent {
            id: AgentId(id),
            process,
            kind,
            node: id,
            number: 0,
            name: "gfx942".into(),
            ..Agent::default()
        }));
    }
    for (id, name) in [(0, "gemm"), (1, "ncclDevKernel")] {
        store.apply(&Item::Kernel(Kernel {
            id: KernelId(id),
            name: name.into(),
            ..Kernel::default()
        }));
    }
    store.apply(&Item::Operation(Operation {
        id: OperationId(0),
        domain: 8,
        name: "ncclAllReduce".into(),
    }));
    store.apply(&Item::Communicator(Communicator {
        process,
        number: 1,
        identity: Some(42),
        rank: Some(1),
        size: Some(2),
        at: begin,
        ..Communicator::default()
    }));
    (store, begin)
}

fn one_step(store: &mut Store, number: u64, at: u64) {
    let process = ProcessId(0);
    store.apply(&Item::Text(TextId(number as u32), format!("step {number}").into()));
    let dispatch = |kernel: u32, id: u64, correlation: u64, begin: u64, end: u64| {
        Item::Dispatch(Dispatch {
            process,
            agent: AgentId(1),
            kernel: KernelId(kernel),
            stream: Some(StreamId(0)),
            dispatch_id: id,
            correlation,
            span: Span { begin, end },
            ..Dispatch::default()
        })
    };
    store.apply(&dispatch(0, 2 * number, 0, at, at + 60 * MS));
    store.apply(&Item::Copy(Copy {
        process,
        source: Some(AgentId(0)),
        destination: Some(AgentId(1)),
        engine: roctop_ring::record::engine::SDMA,
        bytes: 1 << 20,
        span: Span {
            begin: at,
            end: at + 10 * MS,
        },
        ..Copy::default()
    }));
    store.apply(&Item::Communication(Communication {
        process,
        correlation: 1000 + number,
        start: at + 60 * MS,
        communicator: 1,
        sequence: number as u32,
        count: 1 << 20,
        ..Communication::default()
    }));
    store.apply(&Item::Api(ApiCall {
        process,
        correlation: 1000 + number,
        span: Span {
            begin: at + 60 * MS,
            end: at + 61 * MS,
        },
        ..ApiCall::default()
    }));
    store.apply(&dispatch(1, 2 * number + 1, 1000 + number, at + 62 * MS, at + 82 * MS));
    store.apply(&Item::Range(Marker {
        process,
        text: TextId(number as u32),
        span: Span {
            begin: at,
            end: at + 100 * MS,
        },
        correlation: 5000 + number,
        ..Marker::default()
    }));
}

/// The session after some steps, 0.2 s after the last.
fn steps_until(store: &mut Store, begin: u64, numbers: std::ops::Range<u64>) -> Arc<Snapshot> {
    for number in numbers.clone() {
        one_step(store, number, begin + (number - 1) * 100 * MS);
    }
    let now = begin + (numbers.end - 1) * 100 * MS;
    for back in (0..6).rev() {
        let at = now - back * 200 * MS;
        store.apply(&Item::ThreadTime(ThreadTime {
            process: ProcessId(0),
            thread: ThreadId(0),
            at,
            running: (at - begin) / 4,
            ready: (at - begin) / 10,
            is_running: Some(false),
        }));
    }
    store.apply(&Item::Now(now + 100 * MS));
    store.snapshot(Fresh::All)
}

#[test]
fn sums_are_the_numbers_of_the_screen() {
    let (mut store, begin) = session();
    let mut measure = Measure::new(Placement { size: 2, local: 1 });
    let first = steps_until(&mut store, begin, 1..21);
    let one = measure.reports(&first).remove(0).sums;
    assert_eq!(
        (one.rank, one.size, one.local, one.pid, one.gpu),
        (1, 2, 1, 77, Some(0))
    );
    assert_eq!(
        one.window(),
        Span {
            begin,
            end: begin + 2 * SECOND
        }
    );
    // The first report is of the whole run: the screen's totals.
    let values = &first.values;
    assert_eq!(one.kernel_time, values.totals.kernel_time);
    assert_eq!(one.copying, values.copies[0].union.total);
    let use_of_gpu = &usage::usage(&first, one.window(), 1)[0];
    // Parts of the lane's sums by time are shared out evenly.
    let is_near = |busy: u64, exact: u64| busy.abs_diff(exact) <= exact / 500;
    assert!(
        is_near(one.busy, use_of_gpu.compute),
        "{} {}",
        one.busy,
        use_of_gpu.compute
    );
    assert_eq!(use_of_gpu.compute, 20 * 80 * MS);
    let steps = first.steps(0).expect("ranges");
    let sums = one.steps.expect("steps");
    assert_eq!((sums.count as usize, sums.longest), (steps.steps.len(), steps.median));
    assert_eq!(sums.total, 2 * SECOND);
    let kernels: Vec<(u64, u32, u64)> = one
        .kernels
        .iter()
        .map(|kernel| (kernel.name, kernel.count, kernel.total))
        .collect();
    let gemm = &values.kernels[0].numbers.stat;
    assert_eq!(kernels[0], (name_id("gemm"), gemm.calls as u32, gemm.total));
    // Also the first one is timed by its kernel, whose record comes after the call's.
    assert_eq!(
        (one.collectives, one.inside, one.inside_kernels),
        (20, 400 * MS, 400 * MS)
    );

    // The second is of what came since.
    let second = steps_until(&mut store, begin, 21..31);
    assert!(measure.reports(&first).is_empty(), "nothing is new");
    let two = measure.reports(&second).remove(0).sums;
    assert_eq!(
        two.window(),
        Span {
            begin: begin + 2 * SECOND,
            end: begin + 3 * SECOND
        }
    );
    assert_eq!((two.kernel_time, two.copying), (800 * MS, 100 * MS));
    assert!(is_near(two.busy, 800 * MS), "{}", two.busy);
    assert_eq!(two.steps.map(|steps| (steps.count, steps.total)), Some((10, SECOND)));
    let part = &two.communicators[0];
    assert_eq!(
        (part.identity, part.rank, part.size, part.reached, part.pending),
        (42, 1, 2, 30, None)
    );
    let arrivals: Vec<u32> = part.arrivals.iter().map(|arrival| arrival.sequence).collect();
    assert_eq!(arrivals, (21..31).collect::<Vec<_>>());
    assert_eq!((part.arrivals[0].at, part.arrivals[0].took), (62 * MS as i64, 20 * MS));
    let host = two.host.expect("it was read");
    assert_eq!((host.running, host.ready), (host.length / 4, host.length / 10));
    // Arrivals beyond the limit leave multiples of a power of two.
    let third = steps_until(&mut store, begin, 31..131);
    let three = measure.reports(&third).remove(0).sums;
    let arrivals: Vec<u32> = three.communicators[0]
        .arrivals
        .iter()
        .map(|arrival| arrival.sequence)
        .collect();
    assert_eq!(arrivals, (32..131).step_by(8).collect::<Vec<_>>());
    assert_eq!(three.collectives, 100);
}

#[test]
fn a_collective_without_end_is_pending_until_the_exit() {
    let (mut store, begin) = session();
    let mut measure = Measure::default();
    let _ = steps_until(&mut store, begin, 1..11);
    let at = begin + SECOND;
    store.apply(&Item::Communication(Communication {
        process: ProcessId(0),
        correlation: 9_999,
        start: at,
        communicator: 1,
        sequence: 11,
        ..Communication::default()
    }));
    store.apply(&Item::Now(at + 2 * SECOND));
    let sums = measure.reports(&store.snapshot(Fresh::All)).remove(0).sums;
    let pending = sums.communicators[0].pending.expect("it waits");
    assert_eq!((pending.sequence, pending.since), (11, at));
    assert_eq!(sums.communicators[0].reached, 11);
    store.apply(&Item::Ended {
        process: ProcessId(0),
        exit: Exit::Signal(9),
        at: at + 3 * SECOND,
    });
    store.apply(&Item::Lost {
        process: ProcessId(0),
        reason: LossReason::Overwritten,
        records: 12,
    });
    store.apply(&Item::Now(at + 4 * SECOND));
    let sums = measure.reports(&store.snapshot(Fresh::All)).remove(0).sums;
    assert_eq!((sums.exit, sums.lost_total()), (Some(-9), 12));
}

#[test]
fn steps_of_a_period_are_counted_once() {
    let mut store = Store::new(Options::default());
    store.apply(&Item::Process(Process {
        rank: Some(0),
        since: SECOND,
        ..Process::default()
    }));
    store.apply(&Item::Agent(Agent {
        id: AgentId(1),
        name: "gfx942".into(),
        kind: AgentKind::Gpu,
        ..Agent::default()
    }));
    let mut measure = Measure::default();
    let mut counted = 0;
    let mut number = 0u64;
    for second in 1..9u64 {
        // 40 kernels of 25 ms; 10 are a step.
        for _ in 0..40 {
            let begin = SECOND + number * 25 * MS;
            store.apply(&Item::Dispatch(Dispatch {
                agent: AgentId(1),
                kernel: KernelId((number % 10) as u32),
                dispatch_id: number + 1,
                span: Span {
                    begin,
                    end: begin + 20 * MS,
                },
                ..Dispatch::default()
            }));
            number += 1;
        }
        store.apply(&Item::Now((second + 1) * SECOND));
        let snap = store.snapshot(Fresh::All);
        for report in measure.reports(&snap) {
            counted += report.sums.steps.map_or(0, |steps| steps.count);
        }
    }
    let snap = store.snapshot(Fresh::All);
    let all = steps::steps(&snap, &steps::source_of(&snap, ProcessId(0)).expect("a period"));
    assert!(all.steps.len() >= 29, "{}", all.steps.len());
    // Another kernel of the sequence may be its begin now, and the last step is not over.
    assert!(
        counted.abs_diff(all.steps.len() as u32) <= 1,
        "{counted}, not {}",
        all.steps.len()
    );
}

#[test]
fn a_node_that_is_gone_is_one_row() {
    let mut job = Job::new("train");
    for node in 0..3 {
        job.node(node, "n");
        let sums = (0..4).map(|local| RankSums {
            rank: node * 4 + local,
            begin: NOW - SECOND,
            length: SECOND,
            ..RankSums::default()
        });
        job.report(node, report(1, NOW, sums.collect()), NOW);
    }
    job.gone(0, NOW);
    job.gone(2, NOW);
    let values = job.values(NOW + SECOND);
    let rows: Vec<(u32, usize, String)> = values
        .slow
        .iter()
        .map(|slow| (slow.rank, slow.others.len(), slow.text(&values)))
        .collect();
    let text = |ranks: &str| format!("the node is not connected any more: 4 ranks, {ranks}");
    assert_eq!(rows, [(0, 3, text("0 to 3")), (8, 3, text("8 to 11"))]);
}

#[test]
fn ranks_of_a_node_that_said_goodbye_have_ended() {
    let mut job = Job::new("train");
    for number in 0..2 {
        job.node(number, "n");
        let sums = RankSums {
            rank: number,
            begin: NOW - SECOND,
            length: SECOND,
            ..RankSums::default()
        };
        job.report(number, report(1, NOW, vec![sums]), NOW);
    }
    job.left(0);
    job.gone(1, NOW);
    let values = job.values(NOW + 60 * SECOND);
    assert_eq!([values.state(0), values.state(1)], [RankState::Ended, RankState::Gone]);
    let down: Vec<u32> = values.slow.iter().map(|slow| slow.rank).collect();
    assert_eq!((down, values.totals.nodes), (vec![1], [0, 0, 1]));
    // With the job's end the other one has ended, too; one that is connected stays.
    job.node(2, "n");
    assert_eq!([job.over(), job.over()], [true, false]);
    let values = job.values(NOW + 60 * SECOND);
    assert_eq!((values.state(1), values.totals.nodes), (RankState::Ended, [0, 1, 0]));
}
