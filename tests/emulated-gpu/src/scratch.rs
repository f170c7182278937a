//! Scratch memory: a queue that has less of it than a kernel needs stops, says so, and goes on when the host has answered.
//!
//! What the command processor does, by `amd_hsa_queue.h` (5.2 to 7.2): it sets bit 0 of the queue's inactive signal and
//! its event; the host gives the queue memory and stores zero. Absent: scratch for one use that is taken back after it,
//! and asynchronous reclaim, which the emulated firmware does not offer.

use std::sync::atomic::Ordering;

use crate::outbox::{notify, signal};
use crate::process::Process;
use crate::{clock, guest};

/// From the read index on, in `amd_queue_t`: bytes of scratch that a lane has.
const LANE_BYTES: u64 = 48;
/// The queue's inactive signal.
const INACTIVE: u64 = 64;
const INSUFFICIENT: i64 = 1;

/// What a queue has asked of the host.
#[derive(Default)]
pub(crate) struct Scratch {
    /// When it asked.
    since: Option<u64>,
}

/// What a kernel finds.
pub(crate) enum Found {
    /// Enough, or none needed.
    Enough,
    /// It has to wait.
    Wait,
    /// The host has just answered a question asked then.
    Answered(u64),
}

impl Scratch {
    /// Looks whether the queue whose read index lies at `read` has `bytes` of scratch a lane.
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
