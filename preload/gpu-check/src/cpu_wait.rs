//! How long this process waited for a CPU: it separates a late GPU from a busy machine.

use std::path::Path;
use std::time::Duration;

/// Waits of all threads before a measurement.
#[derive(Debug)]
pub(crate) struct CpuWait(Duration);

impl CpuWait {
    /// Begins a measurement.
    pub(crate) fn begin() -> Self {
        Self(of_all())
    }

    /// Sum of the threads' waits since then.
    pub(crate) fn so_far(&self) -> Duration {
        of_all().saturating_sub(self.0)
    }
}

/// Whether waits for a CPU are at least half of a delay: the delay then says nothing about the GPU.
pub(crate) fn explains(waited: Duration, delay: Duration) -> bool {
    waited * 2 >= delay
}

/// Wait of the calling thread since it began.
pub(crate) fn of_thread() -> Duration {
    of(Path::new("/proc/thread-self"))
}

/// Waits of all threads of this process that have not ended.
fn of_all() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads.map(|thread| of(&thread.path())).sum()
}

/// Zero if the Linux kernel does not count (`CONFIG_SCHED_INFO`).
fn of(thread: &Path) -> Duration {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    waited(&text).unwrap_or_default()
}

/// The second number of `schedstat`: ns in which the thread was ready and did not run.
fn waited(schedstat: &str) -> Option<Duration> {
    schedstat
        .split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
        .map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_is_the_second_number() {
        assert_eq!(waited("121999 3125905 2\n"), Some(Duration::from_nanos(3_125_905)));
        assert_eq!(waited(""), None);
    }

    #[test]
    fn half_of_a_delay_explains_it() {
        let [delay, half, less] = [10, 5, 4].map(Duration::from_millis);
        assert!(explains(half, delay) && !explains(less, delay));
    }
}
