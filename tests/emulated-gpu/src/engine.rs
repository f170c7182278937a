//! Threads that act as the packet processors, and the queues that they serve.
//!
//! Each GPU has one thread for compute queues and one for copy queues, started with its first queue. Doorbells are
//! plain stores, so a thread polls: it sleeps 20 µs after work, longer when idle, and is woken when the host is about
//! to sleep in the driver. Not modelled: preemption, priorities, and a limit of concurrent kernels.
#![expect(
    unsafe_code,
    reason = "sets the signal mask and the timer slack of the engine threads"
)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use crate::aql::AqlQueue;
use crate::fault::Eviction;
use crate::model::{Habit, model};
use crate::outbox::Outbox;
use crate::process::Process;
use crate::sdma::SdmaQueue;
use crate::symbol::Symbols;
use crate::{clock, guest};

const SHORT_NAP_NS: u64 = 20_000;
const LONG_NAP_NS: u64 = 1_000_000;
const SLOW_NAP: Duration = Duration::from_millis(5);
const SLOTS: usize = 1024;
/// Time for which queues stop when their memory is evicted, ns (`AMDGPU_USERPTR_RESTORE_DELAY_MS` of Linux).
const EVICTION_NS: u64 = 1_000_000;

/// Parameters of a queue's creation.
#[derive(Clone, Copy)]
pub(crate) struct Creation {
    /// Address of the ring.
    pub(crate) ring: u64,
    /// Address of the write index.
    pub(crate) write: u64,
    /// Address of the read index.
    pub(crate) read: u64,
    /// Size of the ring.
    pub(crate) bytes: u64,
    /// The driver's number of the queue type: 0 is PM4, 1 and 3 are copy engines, 2 is AQL.
    pub(crate) kind: u32,
    /// Index of the GPU.
    pub(crate) gpu: u32,
}

/// Identity of a queue: driver number, creation parameters, doorbell.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    /// The driver's number.
    pub(crate) id: u32,
    /// Creation parameters.
    pub(crate) creation: Creation,
    /// Host address of the doorbell.
    pub(crate) doorbell: u64,
}

impl Address {
    /// Whether the doorbell was rung since the queue was created.
    pub(crate) fn is_rung(&self) -> bool {
        guest::atomic_u64(self.doorbell).load(Ordering::Acquire) != u64::MAX
    }

    /// Index after the packet that the doorbell names.
    pub(crate) fn rung(&self) -> u64 {
        guest::atomic_u64(self.doorbell).load(Ordering::Acquire).wrapping_add(1)
    }

    /// The host's write index.
    pub(crate) fn written(&self) -> u64 {
        // Acquire: pairs with the host's release of the packets before it.
        guest::atomic_u64(self.creation.write).load(Ordering::Acquire)
    }

    /// Publishes the read index.
    pub(crate) fn set_read(&self, index: u64) {
        // Release: the packet was read before its slot is returned.
        guest::atomic_u64(self.creation.read).store(index, Ordering::Release);
    }
}

/// State that an engine thread carries from queue to queue.
pub(crate) struct Context {
    /// Process whose work it does.
    pub(crate) process: &'static Process,
    /// Finished work that is not published yet.
    pub(crate) outbox: Outbox,
    /// Kernel names.
    pub(crate) symbols: Symbols,
}

impl Context {
    /// A context without work and names.
    pub(crate) fn new(process: &'static Process) -> Self {
        Self {
            process,
            outbox: Outbox::new(process),
            symbols: Symbols::default(),
        }
    }
}

/// Result of polling a queue.
pub(crate) struct Step {
    /// Whether something was started or finished.
    pub(crate) progress: bool,
    /// Raw time when the next event is due.
    pub(crate) wake: u64,
}

impl Step {
    /// Nothing done, nothing due.
    pub(crate) const IDLE: Self = Self {
        progress: false,
        wake: u64::MAX,
    };
}

enum Work {
    Aql(Box<AqlQueue>),
    Sdma(Box<SdmaQueue>),
}

impl Work {
    fn is_busy(&mut self) -> bool {
        match self {
            Self::Aql(queue) => queue.is_busy(),
            Self::Sdma(queue) => queue.is_busy(),
        }
    }

    fn stop(&mut self, from: u64, until: u64) {
        match self {
            Self::Aql(queue) => queue.stop(from, until),
            Self::Sdma(queue) => queue.stop(from, until),
        }
    }
}

/// A stop of all queues.
pub(crate) struct Stop {
    /// Whether one of them had work.
    pub(crate) is_busy: bool,
    /// Begin, raw time.
    pub(crate) begin: u64,
    /// End, raw time; never if the eviction failed.
    pub(crate) end: u64,
}

struct Slot {
    address: Address,
    place: usize,
    /// `None` once the queue is destroyed.
    work: Mutex<Option<Work>>,
}

#[derive(Default)]
struct Engine {
    queues: Mutex<Vec<Arc<Slot>>>,
    changes: AtomicU64,
    rounds: AtomicU64,
    thread: OnceLock<Thread>,
}

/// All engines of a process.
pub(crate) struct Engines {
    /// Compute and copy engine of each GPU, alternating.
    list: Vec<Engine>,
    next_id: AtomicU32,
    /// Raw time until which all queues stand still.
    stopped: Mutex<u64>,
    slots: Mutex<Vec<[bool; SLOTS]>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engines {
    /// Engines without queues.
    pub(crate) fn new(gpus: u32) -> Self {
        Self {
            list: (0..2 * gpus).map(|_| Engine::default()).collect(),
            next_id: AtomicU32::new(0),
            stopped: Mutex::new(0),
            slots: Mutex::new(vec![[false; SLOTS]; gpus as usize]),
        }
    }

    /// Creates a queue; returns its id and doorbell slot.
    pub(crate) fn create(&'static self, process: &'static Process, creation: Creation) -> Option<(u32, u64)> {
        let is_copy = match creation.kind {
            1 | 3 => true,
            2 => false,
            _ => return None,
        };
        let doorbell_slot = self.take_slot(creation.gpu)?;
        let doorbell = process.memory.doorbell(creation.gpu, doorbell_slot as u64);
        guest::atomic_u64(doorbell).store(u64::MAX, Ordering::Release);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let address = Address { id, creation, doorbell };
        let mut work = if is_copy {
            Work::Sdma(Box::new(SdmaQueue::new(address)))
        } else {
            Work::Aql(Box::new(AqlQueue::new(address)))
        };
        let stopped = lock(&self.stopped);
        let free = if is_copy { 0 } else { process.free };
        work.stop(0, free.max(*stopped));
        let engine = self.list.get(creation.gpu as usize * 2 + usize::from(is_copy))?;
        lock(&engine.queues).push(Arc::new(Slot {
            address,
            place: doorbell_slot,
            work: Mutex::new(Some(work)),
        }));
        drop(stopped);
        engine.changes.fetch_add(1, Ordering::Release);
        engine.start(process, if is_copy { "emulated-copy" } else { "emulated-gpu" });
        engine.kick();
        Some((id, doorbell_slot as u64))
    }

    fn take_slot(&self, gpu: u32) -> Option<usize> {
        let mut slots = lock(&self.slots);
        let slots = slots.get_mut(gpu as usize)?;
        let free = slots.iter().position(|taken| !taken)?;
        slots[free] = true;
        Some(free)
    }

    /// Destroys a queue; no engine touches its memory afterwards.
    pub(crate) fn destroy(&self, id: u32) -> bool {
        for engine in &self.list {
            let mut queues = lock(&engine.queues);
            let Some(index) = queues.iter().position(|slot| slot.address.id == id) else {
                continue;
            };
            let slot = queues.remove(index);
            drop(queues);
            *lock(&slot.work) = None;
            engine.changes.fetch_add(1, Ordering::Release);
            lock(&self.slots)[slot.address.creation.gpu as usize][slot.place] = false;
            return true;
        }
        false
    }

    /// Stops all queues, as the driver does before user memory is unmapped.
    pub(crate) fn evict(&self, eviction: Eviction) -> Stop {
        let mut stopped = lock(&self.stopped);
        let slots: Vec<_> = self
            .list
            .iter()
            .flat_map(|engine| lock(&engine.queues).clone())
            .collect();
        let works = || slots.iter().map(|slot| lock(&slot.work));
        let is_busy = works().any(|mut work| work.as_mut().is_some_and(Work::is_busy));
        let begin = clock::now();
        let end = match eviction {
            Eviction::Free => begin,
            Eviction::Hang | Eviction::Reset if is_busy => u64::MAX,
            _ => begin + EVICTION_NS,
        };
        let from = begin.max(*stopped);
        if end > from {
            works().for_each(|mut work| {
                if let Some(work) = &mut *work {
                    work.stop(from, end);
                }
            });
            *stopped = end;
        }
        Stop { is_busy, begin, end }
    }

    /// Ends every sleep.
    pub(crate) fn kick(&self) {
        self.list.iter().for_each(Engine::kick);
    }

    /// Publishes finished work, because the process is about to end.
    pub(crate) fn settle(&self) {
        let running = || self.list.iter().filter(|engine| engine.thread.get().is_some());
        let goals: Vec<_> = running()
            .map(|engine| (engine, engine.rounds.load(Ordering::Acquire) + 2))
            .collect();
        for _ in 0..200 {
            self.kick();
            if goals
                .iter()
                .all(|(engine, goal)| engine.rounds.load(Ordering::Acquire) >= *goal)
            {
                return;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

impl Engine {
    fn kick(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn start(&'static self, process: &'static Process, name: &str) {
        self.thread.get_or_init(|| {
            let all = block_signals();
            let builder = std::thread::Builder::new().name(name.to_owned());
            let handle = builder.spawn(move || self.serve(process));
            restore_signal_mask(&all);
            handle.map_or_else(|_| std::thread::current(), |handle| handle.thread().clone())
        });
    }

    fn serve(&self, process: &'static Process) {
        // SAFETY: plain system call about the calling thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000_usize) };
        let mut context = Context::new(process);
        let (mut seen, mut queues) = (u64::MAX, Vec::new());
        let mut last_progress = clock::now();
        let habits = model().habits;
        loop {
            let changes = self.changes.load(Ordering::Acquire);
            if changes != seen {
                seen = changes;
                queues.clone_from(&lock(&self.queues));
            }
            let now = clock::now();
            let step = round(&queues, &mut context);
            context.outbox.flush();
            self.rounds.fetch_add(1, Ordering::Release);
            if step.progress {
                last_progress = now;
            }
            let nap = ((now - last_progress) / 16).clamp(SHORT_NAP_NS, LONG_NAP_NS);
            let due = step.wake.saturating_sub(clock::now()).max(1000);
            if habits.has(Habit::Slow) {
                std::thread::sleep(SLOW_NAP);
            } else if habits.has(Habit::Eager) {
                std::thread::yield_now();
            } else {
                std::thread::park_timeout(Duration::from_nanos(nap.min(due)));
            }
        }
    }
}

fn round(queues: &[Arc<Slot>], context: &mut Context) -> Step {
    let mut sum = Step::IDLE;
    for slot in queues {
        let step = match &mut *lock(&slot.work) {
            Some(Work::Aql(queue)) => queue.poll(context),
            Some(Work::Sdma(queue)) => queue.poll(context),
            None => Step::IDLE,
        };
        sum.progress |= step.progress;
        sum.wake = sum.wake.min(step.wake);
    }
    sum
}

/// Blocks all signals on the calling thread, so that the new thread inherits that; returns the old mask.
fn block_signals() -> libc::sigset_t {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    let mut old = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both sets are ours; zeroed memory is a valid set.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr());
        old.assume_init()
    }
}

fn restore_signal_mask(old: &libc::sigset_t) {
    // SAFETY: the set came from `block_signals`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    /// Memory of a compute queue of four packets: indexes, then ring.
    fn queue_memory() -> &'static [AtomicU64; 40] {
        Box::leak(Box::new([const { AtomicU64::new(0) }; 40]))
    }

    fn creation(memory: &[AtomicU64; 40]) -> Creation {
        let place = memory.as_ptr() as u64;
        Creation {
            ring: place + 64,
            write: place,
            read: place + 8,
            bytes: 256,
            kind: 2,
            gpu: 0,
        }
    }

    /// Writes a barrier-AND packet that waits for a signal.
    fn push_waiting(memory: &[AtomicU64; 40], slot: &Slot, signal: u64) {
        memory[9].store(signal, Ordering::Relaxed);
        memory[8].store(3, Ordering::Release);
        memory[0].store(1, Ordering::Release);
        guest::write(slot.address.doorbell, 0_u64);
    }

    #[test]
    fn an_eviction_stops_all_queues_for_a_millisecond() {
        let engines: &'static Engines = Box::leak(Box::new(Engines::new(1)));
        let memory = queue_memory();
        engines.create(process::open(), creation(memory)).unwrap();
        let slot = Arc::clone(&lock(&engines.list[0].queues)[0]);
        let first = engines.evict(Eviction::Stop);
        assert!(!first.is_busy && first.end == first.begin + EVICTION_NS);
        let awaited = Box::leak(Box::new([1_u64; 8])).as_ptr() as u64;
        push_waiting(memory, &slot, awaited);
        let second = engines.evict(Eviction::Stop);
        assert!(second.is_busy);
        guest::atomic_i64(awaited + 8).store(0, Ordering::Release);
        while memory[1].load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        assert!(clock::now() >= second.end);
    }

    #[test]
    fn a_failed_eviction_stops_all_queues_forever() {
        let engines: &'static Engines = Box::leak(Box::new(Engines::new(1)));
        let memory = queue_memory();
        engines.create(process::open(), creation(memory)).unwrap();
        let slot = Arc::clone(&lock(&engines.list[0].queues)[0]);
        assert_ne!(engines.evict(Eviction::Hang).end, u64::MAX);
        let awaited = Box::leak(Box::new([1_u64; 8])).as_ptr() as u64;
        push_waiting(memory, &slot, awaited);
        assert_eq!(engines.evict(Eviction::Hang).end, u64::MAX);
        guest::atomic_i64(awaited + 8).store(0, Ordering::Release);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(memory[1].load(Ordering::Acquire), 0);
    }
}
