//! Wakes the screen where it waits for a key alone: a program that does nothing costs no turns of the screen's loop.

use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody has to be woken.
static IS_DOWN: AtomicBool = AtomicBool::new(false);
/// Readable when that was done. None where there is no descriptor left: nobody lies down then.
static EVENT: LazyLock<Option<OwnedFd>> =
    LazyLock::new(|| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok());

/// Something came that the screen shows or acts upon. From any thread, as often as one likes.
pub fn wake() {
    if IS_DOWN.load(Ordering::SeqCst)
        && IS_DOWN.swap(false, Ordering::SeqCst)
        && let Some(event) = &*EVENT
    {
        // A full counter wakes as well.
        let _ = rustix::io::write(event, &1u64.to_ne_bytes());
    }
}

/// What comes from now on wakes; false where that cannot be. What came before has to be looked at after this.
pub(crate) fn lie_down() -> bool {
    if EVENT.is_some() {
        IS_DOWN.store(true, Ordering::SeqCst);
    }
    EVENT.is_some()
}

/// Nobody has to be woken any more.
pub(crate) fn get_up() {
    IS_DOWN.store(false, Ordering::SeqCst);
}

/// What to wait for beside the terminal.
pub(crate) fn event() -> Option<BorrowedFd<'static>> {
    EVENT.as_ref().map(AsFd::as_fd)
}

/// The waking was seen.
pub(crate) fn seen() {
    if let Some(event) = &*EVENT {
        let _ = rustix::io::read(event, &mut [0; 8]);
    }
}
