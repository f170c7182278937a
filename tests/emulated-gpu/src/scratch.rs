//! Scratch memory: a queue with less than a kernel needs stops, requests it, and continues when the host has answered.
//!
//! This is what the command processor does, by `amd_hsa_queue.h` (5.2 to 7.2): it sets bit 0 of the queue's inactive
//! signal and its event; the host assigns memory to the queue and stores zero. Not modelled: single-use scratch that is
//! reclaimed afterwards, and asynchronous reclaim, which the emulated firmware does not offer.

use std::sync::atomic::Ordering;

use crate::outbox::{notify, signal};
use crate::process::Process;
use crate::{clock, guest};

/// Offset from the read index in `amd_queue_t`: scratch bytes per lane.
const LANE_BYTES: u64 = 48;
/// The queue's inactive signal.
const INACTIVE: u64 = 64;
const INSUFFICIENT: i64 = 1;

/// Outstanding request of a queue to the host.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Time of the request.
    since: Option<u64>,
}

/// Result for a kernel.
pub(crate) enum Found {
    /// Sufficient, or none needed.
    Enough,
    /// The kernel must wait.
    Wait,
    /// The host has just answered a request made at this time.
    Answered(u64),
}

impl Scratch {
    /// Checks whether the queue whose read index is at `read` has `bytes` of scratch per lane.
    pub(crate) fn look(&mut self, process: &Process, read: u64, bytes: u32) -> Found {
        let inactive: u64 = guest::read(read + INACTIVE);
        if bytes == 0 || inactive == 0 {
            return Found::Enough;
        }
        let value = guest::atomic_i64(inactive + signal::VALUE);
        match self.since {
            Some(since) if value.load(Ordering::Acquire) == 0 => {
                self.since = None;
                Found::Answered(since)
            }
            Some(_) => Found::Wait,
            None if guest::atomic_u32(read + LANE_BYTES).load(Ordering::Acquire) >= bytes => Found::Enough,
            None => {
                self.since = Some(clock::now());
                value.fetch_or(INSUFFICIENT, Ordering::Release);
                let (mailbox, event) = (
                    guest::read(inactive + signal::MAILBOX),
                    guest::read(inactive + signal::EVENT),
                );
                notify(process, mailbox, event);
                Found::Wait
            }
        }
    }
}
