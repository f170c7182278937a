//! What a store makes of items that come in whatever order threads and processes are delivered in.

use super::*;
use crate::item::ApiCall;

fn ended(process: u32, exit: Exit, at: Nanos) -> Item {
    Item::Ended {
        process: ProcessId(process),
        exit,
        at,
    }
}

fn call(begin: Nanos, end: Nanos) -> Item {
    Item::Api(ApiCall {
        span: Span { begin, end },
        ..ApiCall::default()
    })
}

#[test]
fn the_program_ended_as_the_process_did_that_was_started() {
    let mut store = Store::new(Options::default());
    store.apply(&ended(0, Exit::Unknown, 50));
    assert_eq!(store.snapshot(Fresh::All).ended, Some(Exit::Unknown));
    // A script has no ring: its row comes last.
    store.apply(&ended(1, Exit::Code(0), 70));
    let snap = store.snapshot(Fresh::All);
    assert_eq!(snap.ended, Some(Exit::Code(0)));
    assert_eq!(ending(&snap.values.processes), Some((Exit::Code(0), 70)));
}

#[test]
fn the_session_begins_with_its_earliest_record_though_another_thread_is_delivered_first() {
    let mut store = Store::new(Options::default());
    let second = 1_000_000_000;
    store.apply(&call(102 * second, 103 * second));
    store.apply(&call(100 * second, 101 * second));
    assert_eq!(store.snapshot(Fresh::All).origin, 100 * second);
    store.apply(&call(second, 2 * second));
    assert_eq!(
        store.snapshot(Fresh::All).origin,
        100 * second,
        "that is no time of this run"
    );
}
