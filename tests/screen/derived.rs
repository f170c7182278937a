//! Numbers that roctop computes from records: they are of all records, and rows go to the last of them.

use crate::driven::Driven;
use roctop::item::{
    Agent, AgentId, AgentKind, Allocation, ApiCall, Dispatch, Item, Kernel, KernelId, Operation, OperationId, Process,
    Span, StreamId, Thread, ThreadId,
};
use roctop::model::{Fresh, Mode, Options, Snapshot, Store};
use roctop::ui::key::Key;
use std::sync::Arc;

const BEGIN: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// A process with a GPU and a thread.
fn store() -> Store {
    let mut store = Store::new(Options {
        mode: Mode::Replay,
        ..Options::default()
    });
    store.apply(&Item::Process(Process {
        pid: 77,
        command: "./app".into(),
        ..Process::default()
    }));
    store.apply(&Item::Agent(Agent {
        id: AgentId(1),
        kind: AgentKind::Gpu,
        node: 2,
        name: "gfx942".into(),
        ..Agent::default()
    }));
    store.apply(&Item::Thread(Thread {
        id: ThreadId(0),
        tid: 77,
        ..Thread::default()
    }));
    for (id, name) in [
        (1, "hipMalloc"),
        (2, "hipStreamSynchronize"),
        (3, "hipDeviceSynchronize"),
    ] {
        store.apply(&Item::Operation(Operation {
            id: OperationId(id),
            domain: 1,
            name: name.into(),
        }));
    }
    store
}

fn call(operation: u32, correlation: u64, begin: u64, end: u64) -> Item {
    Item::Api(ApiCall {
        operation: OperationId(operation),
        correlation,
        span: Span { begin, end },
        status: Some(0),
        ..ApiCall::default()
    })
}

fn dispatch(number: u64, begin: u64) -> Item {
    Item::Dispatch(Dispatch {
        kernel: KernelId(4),
        agent: AgentId(1),
        stream: Some(StreamId(0)),
        dispatch_id: number,
        span: Span {
            begin,
            end: begin + 1000,
        },
        ..Dispatch::default()
    })
}

fn finished(mut store: Store) -> Arc<Snapshot> {
    store.snapshot(Fresh::All)
}

#[test]
fn held_memory_by_call_is_of_all_allocations() {
    let mut store = store();
    let count = 1_510;
    for number in 0..count {
        let begin = BEGIN + number * 14 * MILLISECOND;
        store.apply(&Item::Allocation(Allocation {
            agent: Some(AgentId(1)),
            operation: 1,
            correlation: number + 1,
            address: (number + 1) << 20,
            bytes: 1 << 20,
            total: (number + 1) << 20,
            span: Span {
                begin: begin + 10,
                end: begin + 90,
            },
            ..Allocation::default()
        }));
        store.apply(&call(1, number + 1, begin, begin + 100));
    }
    let mut driven = Driven::new(finished(store), (120, 36));
    let text = driven.typed("M").text();
    let of = |word: &str| {
        text.lines()
            .find(|line| line.contains(word))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(text.contains("1,510×"), "{text}");
    assert!(text.contains("size of 1,510 allocations"), "{text}");
    let more = of(" more ");
    let below: u64 = more
        .split('↓')
        .nth(1)
        .and_then(|rest| rest.split(' ').next()?.replace(',', "").parse().ok())
        .unwrap_or_else(|| panic!("{text}"));
    assert!((count - 30..count).contains(&below), "{more}");
}

#[test]
fn last_dispatch_is_the_one_that_began_last_in_any_reading_order() {
    let mut store = store();
    store.apply(&Item::Kernel(Kernel {
        id: KernelId(4),
        name: "gemm".into(),
        ..Kernel::default()
    }));
    // The ring of one queue is read before that of another.
    let late = (0..10).map(|number| (100 + number, BEGIN + MILLISECOND + number * 5000));
    let early = (0..10).map(|number| (200 + number, BEGIN + number * 5000));
    for (number, begin) in late.chain(early) {
        store.apply(&dispatch(number, begin));
    }
    let mut driven = Driven::new(finished(store), (120, 36));
    driven.typed("3");
    driven.key(Key::Enter);
    let text = driven.text();
    assert!(text.contains("dispatch 109"), "{text}");
}

#[test]
fn thread_goes_to_the_function_in_which_it_waits_most() {
    let mut store = store();
    for number in 0..20u64 {
        let begin = BEGIN + number * MILLISECOND;
        store.apply(&call(2, number + 1, begin, begin + 900_000));
    }
    let end = BEGIN + 30 * MILLISECOND;
    store.apply(&call(3, 99, end, end + 6_100));
    let mut driven = Driven::new(finished(store), (120, 36));
    driven.typed("5");
    driven.key(Key::Tab);
    driven.key(Key::Enter);
    let text = driven.text();
    assert!(
        text.contains("hipStreamSynchronize") && !text.contains("6.10 µs"),
        "{text}"
    );
}
