//! Each rule on a program written for it.

use super::*;
use crate::analysis::LoggedAlert;
use crate::{Fresh, Options, Store};
use roctop_ring::record::memory;
use roctop_trace::item::{
    Agent, AgentId, Allocation, ApiCall, Copy, Dispatch, Item, Kernel, Open, Operation, Process, QueueId, StreamId,
};

const SECOND: u64 = 1_000_000_000;

fn store() -> Store {
    let mut store = Store::new(Options::default());
    let operation = |id, name: &str| {
        Item::Operation(Operation {
            id: OperationId(id),
            domain: Domain::HIP.0,
            name: name.into(),
        })
    };
    store.apply_all(&[
        Item::Process(Process {
            pid: 7,
            since: SECOND,
            ..Process::default()
        }),
        Item::Agent(Agent {
            id: AgentId(1),
            name: "gfx942".into(),
            ..Agent::default()
        }),
        Item::Kernel(Kernel {
            id: KernelId(0),
            name: "gemm".into(),
            ..Kernel::default()
        }),
        operation(0, "hipDeviceSynchronize"),
        operation(1, "hipMalloc"),
    ]);
    store
}

fn dispatch(begin: Nanos, nanos: u64, submit: Nanos) -> Item {
    Item::Dispatch(Dispatch {
        agent: AgentId(1),
        queue: QueueId(0),
        stream: Some(StreamId(0)),
        thread: Some(ThreadId(0)),
        span: Span {
            begin,
            end: begin + nanos,
        },
        submit,
        ..Dispatch::default()
    })
}

fn rules(store: &mut Store) -> Vec<(Rule, Evidence)> {
    let snap = store.snapshot(Fresh::All);
    snap.analysis()
        .alerts
        .iter()
        .map(|alert| (alert.rule, alert.evidence))
        .collect()
}

fn has(found: &[(Rule, Evidence)], rule: Rule) -> bool {
    found.iter().any(|known| known.0 == rule)
}

#[test]
fn only_a_gpu_that_waits_for_launches_is_reported() {
    let (mut waits, mut full) = (store(), store());
    for i in 0..1000 {
        let begin = SECOND + i * 30_000;
        waits.apply(&dispatch(begin, 5_000, begin - 4_000));
        full.apply(&dispatch(begin, 29_900, SECOND - 1));
    }
    for store in [&mut waits, &mut full] {
        store.apply(&Item::Now(SECOND + 30_000_000));
    }
    let found = rules(&mut waits);
    assert!(has(&found, Rule::Launch) && has(&found, Rule::Short));
    assert_eq!(rules(&mut full), []);
}

#[test]
fn a_gap_leads_to_its_stretch_and_names_the_call_of_the_host() {
    let mut store = store();
    store.apply(&dispatch(SECOND, 10_000_000, SECOND));
    let gap = Span {
        begin: SECOND + 10_000_000,
        end: SECOND + 70_000_000,
    };
    store.apply(&Item::Api(ApiCall {
        operation: OperationId(1),
        span: Span {
            begin: gap.begin + 1_000_000,
            end: gap.end - 1_000_000,
        },
        correlation: 1,
        ..ApiCall::default()
    }));
    store.apply(&dispatch(gap.end, 10_000_000, gap.end - 5_000));
    store.apply(&Item::Now(gap.end + 10_000_000));
    let snap = store.snapshot(Fresh::All);
    let alerts = &snap.analysis().alerts;
    let found = alerts
        .iter()
        .find(|alert| alert.rule == Rule::Gap)
        .expect("there is a gap");
    assert_eq!(found.evidence, Evidence::Stretch(LaneKey::Agent(AgentId(1)), gap));
    assert!(found.text.contains("hipMalloc"), "{}", found.text);
}

#[test]
fn an_outlier_leads_to_itself() {
    let mut store = store();
    for i in 0..200 {
        let nanos = if i == 77 { 3_000_000 } else { 100_000 };
        store.apply(&dispatch(SECOND + i * 5_000_000, nanos, SECOND));
    }
    let found = rules(&mut store);
    let outlier = found
        .iter()
        .find(|known| known.0 == Rule::Outlier)
        .expect("it is reported");
    let lane = LaneKey::Stream(AgentId(1), StreamId(0));
    assert_eq!(outlier.1, Evidence::Slice(lane, SECOND + 77 * 5_000_000));
}

#[test]
fn waits_failures_slow_copies_and_hangs_are_reported() {
    let mut store = store();
    let mut call = |operation, begin, end, status| {
        store.apply(&Item::Api(ApiCall {
            operation: OperationId(operation),
            span: Span { begin, end },
            status: Some(status),
            correlation: begin,
            ..ApiCall::default()
        }));
    };
    call(0, SECOND, SECOND + 800_000_000, 0);
    call(1, SECOND + 800_000_000, SECOND + 800_001_000, 2);
    for i in 0..10 {
        let begin = SECOND + i * 10_000_000;
        store.apply(&Item::Copy(Copy {
            destination: Some(AgentId(1)),
            span: Span {
                begin,
                end: begin + 2_000_000,
            },
            bytes: 2 << 20,
            direction: direction::H2D,
            ..Copy::default()
        }));
    }
    store.apply(&Item::Open(Open {
        calls: vec![ApiCall {
            operation: OperationId(0),
            span: Span {
                begin: SECOND + 900_000_000,
                end: 0,
            },
            ..ApiCall::default()
        }],
        ..Open::default()
    }));
    store.apply(&Item::Now(2 * SECOND));
    let found = rules(&mut store);
    for rule in [Rule::Sync, Rule::Failed, Rule::SlowCopy] {
        assert!(has(&found, rule), "{rule:?} in {found:?}");
    }
    assert!(!has(&found, Rule::Hang), "open for a tenth of a second only");
    store.apply(&Item::Now(9 * SECOND));
    let found = rules(&mut store);
    assert!(has(&found, Rule::Hang));
    assert_eq!(found[0].0, Rule::Hang, "what went wrong comes first: {found:?}");
}

#[test]
fn a_viewer_that_comes_late_begins_with_its_first_record() {
    let begin = 52 * SECOND;
    let mut store = Store::new(Options {
        origin: Some(SECOND),
        ..Options::default()
    });
    store.apply(&Item::Agent(Agent {
        id: AgentId(1),
        name: "gfx942".into(),
        ..Agent::default()
    }));
    let mut idles = |tenths: std::ops::Range<u64>| {
        for tenth in tenths {
            let at = begin + tenth * SECOND / 10;
            store.apply(&dispatch(at, SECOND / 25, at - 1000));
            store.apply(&Item::Now(at + SECOND / 10));
        }
        let snap = store.snapshot(Fresh::All);
        let found: Vec<Rule> = snap.analysis().alerts.iter().map(|alert| alert.rule).collect();
        (snap, found)
    };
    let (snap, found) = idles(0..30);
    assert_eq!(snap.values.window, 3 * SECOND - SECOND / 25, "since its first record");
    assert_eq!(snap.values.counted_from, begin + SECOND / 25);
    let whole = &snap.analysis().whole[0];
    assert_eq!((whole.stretch.begin, whole.start_up), (begin, 0));
    assert!((whole.share(whole.idle) - 0.6).abs() < 1e-9, "40 of 100 ms are busy");
    assert!(!found.contains(&Rule::Idle) && !found.contains(&Rule::Gap), "{found:?}");
    let (_, found) = idles(30..120);
    assert!(found.contains(&Rule::Idle), "a whole window was seen: {found:?}");
}

#[test]
fn start_up_is_no_alert() {
    let mut store = store();
    // The run-time starts for five seconds, and the program runs for one.
    for i in 0..100 {
        let begin = 6 * SECOND + i * 10_000_000;
        store.apply(&dispatch(begin, 9_000_000, begin - 1000));
    }
    store.apply(&Item::Now(7 * SECOND));
    let found = rules(&mut store);
    assert!(!has(&found, Rule::Idle) && !has(&found, Rule::Gap), "{found:?}");
}

#[test]
fn a_waiting_thread_is_mostly_where_it_waits_most() {
    let mut store = store();
    store.apply(&Item::Operation(Operation {
        id: OperationId(2),
        domain: Domain::HIP.0,
        name: "hipMemcpy".into(),
    }));
    let mut call = |operation, begin, nanos| {
        store.apply(&Item::Api(ApiCall {
            operation: OperationId(operation),
            span: Span {
                begin,
                end: begin + nanos,
            },
            correlation: begin,
            ..ApiCall::default()
        }));
    };
    // One long copy, and many shorter waits that take twice as long together.
    call(2, SECOND, 100_000_000);
    for i in 0..20 {
        call(
            0,
            SECOND + 200_000_000 + i * 20_000_000,
            if i == 7 { 11_000_000 } else { 10_000_000 },
        );
    }
    store.apply(&Item::Now(SECOND + 600_000_000));
    let snap = store.snapshot(Fresh::All);
    let mut alerts = snap.analysis().alerts.iter();
    let found = alerts.find(|alert| alert.rule == Rule::Sync).expect("it waits");
    assert!(found.text.ends_with("mostly in hipDeviceSynchronize"), "{}", found.text);
    assert_eq!(
        found.evidence,
        Evidence::Slice(LaneKey::Api(ThreadId(0), 0), SECOND + 340_000_000),
        "its longest call"
    );
}

/// A program that allocates 8 MiB a second, and frees all but `kept` of them; its alerts of growing memory.
fn growth_of(seconds: u64, kept: impl Fn(u64) -> bool) -> usize {
    let mut store = store();
    let mut total = 0;
    let mut record = |operation, second: u64, total: u64| {
        let at = second * SECOND + if operation == memory::FREE { SECOND / 2 } else { 0 };
        store.apply(&Item::Allocation(Allocation {
            operation,
            address: second << 24,
            bytes: 8 << 20,
            total,
            agent: Some(AgentId(1)),
            span: Span { begin: at, end: at + 1 },
            ..Allocation::default()
        }));
    };
    for second in 1..seconds {
        total += 8 << 20;
        record(memory::ALLOCATE, second, total);
        if !kept(second) {
            total -= 8 << 20;
            record(memory::FREE, second, total);
        }
    }
    store.apply(&Item::Now(seconds * SECOND));
    let found = rules(&mut store);
    found.iter().filter(|found| found.0 == Rule::Growth).count()
}

#[test]
fn only_memory_that_goes_on_growing_is_reported() {
    assert_eq!(growth_of(70, |_| true), 1);
    assert_eq!(growth_of(70, |second| second % 3 == 0), 1, "some of it is freed");
    assert_eq!(growth_of(70, |_| false), 0, "all is freed");
    assert_eq!(growth_of(70, |second| second < 10), 0, "it grew at the start");
    assert_eq!(growth_of(20, |_| true), 0, "too short to judge");
}

#[test]
fn a_reported_error_is_no_failure() {
    let mut store = store();
    store.apply(&Item::Operation(Operation {
        id: OperationId(2),
        domain: Domain::HIP.0,
        name: "hipGetLastError".into(),
    }));
    store.apply(&Item::Api(ApiCall {
        operation: OperationId(2),
        span: Span {
            begin: SECOND,
            end: SECOND + 1000,
        },
        status: Some(2),
        ..ApiCall::default()
    }));
    assert!(!has(&rules(&mut store), Rule::Failed));
}

#[test]
fn an_alert_stays_in_the_log_after_its_end() {
    let mut store = store();
    store.apply(&dispatch(SECOND, 10_000_000, SECOND));
    store.apply(&dispatch(SECOND + 70_000_000, 10_000_000, SECOND + 69_000_000));
    store.apply(&Item::Now(SECOND + 80_000_000));
    let is_gap = |logged: &&LoggedAlert| logged.alert.rule == Rule::Gap;
    let snap = store.snapshot(Fresh::All);
    let log = &snap.analysis().log;
    let gap = log.iter().find(is_gap).expect("there is a gap");
    assert_eq!((gap.first, gap.count, gap.is_active), (SECOND + 10_000_000, 1, true));
    let cost = gap.alert.cost.expect("it costs time");
    assert!((cost - 750.0).abs() < 1.0, "60 of 80 ms: {cost}");
    for i in 0..200 {
        store.apply(&dispatch(2 * SECOND + i * 100_000_000, 99_000_000, SECOND));
    }
    store.apply(&Item::Now(22 * SECOND));
    let snap = store.snapshot(Fresh::All);
    let analysis = snap.analysis();
    assert!(analysis.alerts.iter().all(|alert| alert.rule != Rule::Gap));
    let gap = analysis.log.iter().find(is_gap).expect("it is kept");
    assert_eq!((gap.count, gap.is_active), (1, false));
}
