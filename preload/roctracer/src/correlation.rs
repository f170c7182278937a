//! Correlation ids of calls and their work, and the program's external ids; both are per-thread stacks.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static CALLS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    static EXTERNAL: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Pushes a new id, used for this thread's calls and work until [`leave`].
pub(crate) fn enter() -> u64 {
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    // An ending thread has no stack any more; its calls still get ids.
    let _ = CALLS.try_with(|calls| calls.borrow_mut().push(id));
    id
}

/// Pops the innermost call.
pub(crate) fn leave() {
    let _ = CALLS.try_with(|calls| calls.borrow_mut().pop());
}

/// The innermost call's id; 0 outside calls.
pub(crate) fn current() -> u64 {
    CALLS
        .try_with(|calls| calls.borrow().last().copied())
        .ok()
        .flatten()
        .unwrap_or(0)
}

/// Pushes the program's external id.
pub(crate) fn push_external(id: u64) {
    let _ = EXTERNAL.try_with(|ids| ids.borrow_mut().push(id));
}

/// Pops the last external id.
pub(crate) fn pop_external() -> Option<u64> {
    EXTERNAL.try_with(|ids| ids.borrow_mut().pop()).ok().flatten()
}

/// The current external id.
pub(crate) fn external() -> Option<u64> {
    EXTERNAL.try_with(|ids| ids.borrow().last().copied()).ok().flatten()
}
