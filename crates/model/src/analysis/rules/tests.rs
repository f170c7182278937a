//! Each rule on a program written for it.

use super::*;
use crate::{Fresh, Options, Store};
use roctop_trace::item::{
    Agent, AgentId, ApiCall, Copy, Dispatch, Item, Kernel, Open, Operation, Process, QueueId, StreamId,
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
