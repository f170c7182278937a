//! Reads the clocks of this machine.

use crate::item::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CLOCK_BOOTTIME now, ns.
pub fn boottime() -> Nanos {
    read(ClockId::Boottime).as_nanos() as Nanos
}

/// CLOCK_REALTIME now, ns.
pub fn realtime() -> Nanos {
    read(ClockId::Realtime).as_nanos() as Nanos
}

/// CPU time of the calling thread.
pub fn of_thread() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// CPU time of this process, all threads.
pub fn of_process() -> Duration {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
