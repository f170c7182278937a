//! D5: a queue with the collector's handler: barriers and kernels over several laps of the ring, by one or more
//! threads.
//!
//! The viewer runs it twice: without the collector and with it, and compares its records with the numbers printed here.

use super::{plural, started};
use crate::Options;
use crate::cpu_wait::{self, CpuWait};
use crate::hsa::{Hsa, Lane};
use crate::outcome::{Outcome, Status};
use crate::spin::Spin;
use hsa_sys::abi::SignalHandle;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Size of the queue, packets.
const SIZE: u32 = 4096;
/// Number of packets: five laps.
const PACKETS: usize = 20_000;
/// One packet in this many is a kernel, if there is one.
const KERNEL_INTERVAL: usize = 8;
/// One packet in this many completes a separate signal.
const MARK_INTERVAL: usize = 500;
/// Wait for space that counts as long: roctop's wait without progress.
const LONG_WAIT: Duration = Duration::from_millis(100);
/// Number of long waits that a busy host may cause; waits caused by roctop repeat.
const MAX_LONG_WAITS: u64 = 4;
const LIMIT: Duration = Duration::from_secs(3);

/// Shared state of the submitting threads.
struct Work<'a> {
    lane: &'a Lane,
    spin: Option<&'a Spin>,
    /// Counting signal: decremented by each packet without a separate signal.
    all: SignalHandle,
    next: AtomicU64,
    longest: AtomicU64,
    long: AtomicU64,
    /// Sum of long waits, ns.
    delay: AtomicU64,
    /// Time that the threads waited for a CPU, ns.
    cpu_wait: AtomicU64,
    kernels: AtomicU64,
    has_failed: AtomicBool,
    pause: Duration,
}

pub(super) fn check(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let lane = Lane::create(hsa, gpu, SIZE)?;
    let spin = Spin::load(hsa, gpu, PACKETS);
    let marks = (0..PACKETS / MARK_INTERVAL)
        .map(|_| hsa.signal(1))
        .collect::<Result<Vec<_>, _>>()?;
    let work = Work {
        lane: &lane,
        spin: spin.as_ref().ok(),
        all: hsa.signal((PACKETS - marks.len()) as i64)?,
        next: AtomicU64::new(0),
        longest: AtomicU64::new(0),
        long: AtomicU64::new(0),
        delay: AtomicU64::new(0),
        cpu_wait: AtomicU64::new(0),
        kernels: AtomicU64::new(0),
        has_failed: AtomicBool::new(false),
        pause: options.pause,
    };
    let before = lane.indices();
    let (start, cpu_wait) = (Instant::now(), CpuWait::begin());
    let order = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..options.threads.max(1))
            .map(|_| scope.spawn(|| make(&work, &marks)))
            .collect();
        let order = watch(hsa, &work, &marks);
        for maker in makers {
            maker.join().map_err(|_| "a thread of the check failed".to_owned())??;
        }
        order
    })?;
    hsa.wait(work.all, LIMIT)
        .map_err(|error| format!("of {PACKETS} packets through one queue not all complete: {error}"))?;
    let taken = start.elapsed().as_secs_f64() * 1e3;
    let value = hsa.value(work.all);
    let [read, write] = lane.indices();
    let longest = Duration::from_nanos(work.longest.load(Ordering::Relaxed));
    let long = work.long.load(Ordering::Relaxed);
    let made = write - before[1];
    let threads = options.threads;
    let cpu_wait = cpu_wait.so_far() + Duration::from_nanos(work.cpu_wait.load(Ordering::Relaxed));
    let delay = Duration::from_nanos(work.delay.load(Ordering::Relaxed));
    let outcome = if order > 0 {
        Outcome::new(
            Status::Bad,
            format!("{order} packets completed before those in front of them"),
        )
    } else if value != 0 || made != PACKETS as u64 || read > write {
        let text = format!(
            "{PACKETS} packets: the counting signal ends at {value}, the write index at {made}, the read index at {read}"
        );
        Outcome::new(Status::Bad, text)
    } else if long > 0 {
        let text = format!(
            "threads waited {long} times for more than 100 ms for room in the queue, at most {} ms",
            longest.as_millis()
        );
        if long <= MAX_LONG_WAITS {
            Outcome::new(Status::Note, text)
        } else if cpu_wait::explains(cpu_wait, delay) {
            Outcome::busy(&text, cpu_wait)
        } else {
            Outcome::new(Status::Bad, text)
        }
    } else {
        let kernels = work.kernels.load(Ordering::Relaxed);
        let text = format!(
            "{PACKETS} packets ({kernels} kernels) by {threads} thread{} in {taken:.0} ms, in order",
            plural(threads)
        );
        Outcome::new(Status::Ok, text)
    };
    Ok(outcome
        .number("packets", PACKETS as f64)
        .number("kernels", work.kernels.load(Ordering::Relaxed) as f64)
        .number("threads", threads as f64)
        .number("milliseconds", taken)
        .number("longest_wait_ms", longest.as_secs_f64() * 1e3)
        .number("long_waits", long as f64)
        .number("disorder", order as f64))
}

/// Submits packets until all are submitted.
fn make(work: &Work<'_>, marks: &[SignalHandle]) -> Result<(), String> {
    let made = (|| {
        loop {
            let number = work.next.fetch_add(1, Ordering::Relaxed) as usize;
            if number >= PACKETS || work.has_failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let signal = if number.is_multiple_of(MARK_INTERVAL) {
                marks.get(number / MARK_INTERVAL).copied().unwrap_or(work.all)
            } else {
                work.all
            };
            let start = Instant::now();
            match work.spin.filter(|_| number % KERNEL_INTERVAL == 1) {
                Some(spin) => {
                    spin.launch(work.lane, number, Duration::ZERO, signal, LIMIT)?;
                    work.kernels.fetch_add(1, Ordering::Relaxed);
                }
                None if number == 0 => drop(work.lane.late_barrier(signal, LIMIT, work.pause)?),
                None => drop(work.lane.barrier(signal, LIMIT)?),
            }
            let taken = start.elapsed();
            work.longest.fetch_max(taken.as_nanos() as u64, Ordering::Relaxed);
            if taken > LONG_WAIT {
                work.long.fetch_add(1, Ordering::Relaxed);
                work.delay.fetch_add(taken.as_nanos() as u64, Ordering::Relaxed);
            }
        }
    })();
    let cpu_wait = cpu_wait::of_thread().as_nanos() as u64;
    work.cpu_wait.fetch_add(cpu_wait, Ordering::Relaxed);
    if made.is_err() {
        work.has_failed.store(true, Ordering::Relaxed);
    }
    made
}

/// Watches the marks complete; returns how many completed before an earlier one of the same thread. With several
/// threads, a later number may be the earlier packet, by less than their number of packets; marks are farther apart.
fn watch(hsa: &Hsa, work: &Work<'_>, marks: &[SignalHandle]) -> Result<usize, String> {
    let start = Instant::now();
    let mut disorder = 0;
    for (index, mark) in marks.iter().enumerate() {
        loop {
            // The later mark is read first: if it had completed before this one, both would be seen complete.
            let later = marks.get(index + 1).map_or(1, |later| hsa.value(*later));
            if hsa.value(*mark) == 0 {
                break;
            }
            if later == 0 {
                disorder += 1;
                break;
            }
            if start.elapsed() > 2 * LIMIT || work.has_failed.load(Ordering::Relaxed) {
                return Err(format!(
                    "of {} marks in a queue of {PACKETS} packets {index} complete",
                    marks.len()
                ));
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    Ok(disorder)
}
