//! Wakes the screen where it waits for a key alone: a program that does nothing costs no turns of the screen's loop.

use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the screen sleeps and has to be woken.
static IS_ARMED: AtomicBool = AtomicBool::new(false);
/// Readable when it was woken. `None` if the eventfd could not be created; the loop then polls.
static EVENT: LazyLock<Option<OwnedFd>> =
    LazyLock::new(|| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok());

/// Something came that the screen shows or acts upon. From any thread, as often as one likes.
pub fn wake() {
    if IS_ARMED.load(Ordering::SeqCst)
        && IS_ARMED.swap(false, Ordering::SeqCst)
        && let Some(event) = &*EVENT
    {
        // A full counter wakes as well.
        let _ = rustix::io::write(event, &1u64.to_ne_bytes());
    }
}

/// From now on [`wake`] wakes the screen; false if the eventfd could not be created. Look for earlier changes after this.
pub fn arm() -> bool {
    if EVENT.is_some() {
        IS_ARMED.store(true, Ordering::SeqCst);
    }
    EVENT.is_some()
}

/// The screen is awake: [`wake`] does nothing.
pub fn disarm() {
    IS_ARMED.store(false, Ordering::SeqCst);
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
