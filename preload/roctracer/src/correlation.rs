//! Ids that join a call with its work, and the program's own ids; both are stacks of a thread.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static CALLS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    static EXTERNAL: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// A new id, that of the calls and the work that this thread starts until [`leave`].
pub(crate) fn enter() -> u64 {
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    // A thread that is ending has no stack any more; its calls still have ids.
    let _ = CALLS.try_with(|calls| calls.borrow_mut().push(id));
    id
}

/// The innermost call returns.
pub(crate) fn leave() {
    let _ = CALLS.try_with(|calls| calls.borrow_mut().pop());
}

/// The innermost call's id; 0 outside of calls.
pub(crate) fn current() -> u64 {
    CALLS
        .try_with(|calls| calls.borrow().last().copied())
        .ok()
        .flatten()
        .unwrap_or(0)
}

/// The program's own id for what comes now.
pub(crate) fn push_external(id: u64) {
    let _ = EXTERNAL.try_with(|ids| ids.borrow_mut().push(id));
}

/// The last one, taken back.
pub(crate) fn pop_external() -> Option<u64> {
    EXTERNAL.try_with(|ids| ids.borrow_mut().pop()).ok().flatten()
}

/// The one that counts.
pub(crate) fn external() -> Option<u64> {
    EXTERNAL.try_with(|ids| ids.borrow().last().copied()).ok().flatten()
}
