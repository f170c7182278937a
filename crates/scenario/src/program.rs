//! What a stream does, a word at a time: `kernel gemm 5.4ms *4`, `copy h2d 8MiB 690us`, `fill 1MiB 9us`, `idle 1ms`.
//! What its thread does: `late 2ms` (on the CPU), `asleep 2ms` (off it), `memcpy h2d 8MiB 2ms` (itself), `sync 0` (waits for
//! the first work), `wait 0` (lets the stream wait for an event of the first work).

use roctop_ring::record::{direction, engine, flag};
use serde::Deserialize;

use super::WorkText;
use super::maker::Maker;
use roctop_trace::item::{
    AgentId, Copy, Dispatch, EventCall, Item, KernelId, Nanos, ProcessId, QueueId, Span, StreamId, ThreadId,
};
use roctop_trace::units;

/// One thing that a stream does.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub(super) enum Work {
    /// Kernel by the hash of its key, duration, how often.
    Kernel(u64, u64, u32),
    /// Direction, bytes, duration.
    Copy(u16, u64, u64),
    /// Nothing for so long.
    Idle(u64),
    /// The thread makes no call for so long; whether it is off the CPU.
    Late(u64, bool),
    /// The thread copies: direction, bytes, duration.
    Memcpy(u16, u64, u64),
    /// The thread waits for the stream of a work.
    Sync(usize),
    /// The stream waits for an event that the stream of a work records.
    Wait(usize),
    /// The thread is in `MPI_Allreduce`.
    Mpi(u64),
}

fn way(word: &str) -> Result<u16, String> {
    match word {
        "h2d" => Ok(direction::H2D),
        "d2h" => Ok(direction::D2H),
        "d2d" => Ok(direction::D2D),
        "h2h" => Ok(direction::H2H),
        _ => Err(format!("{word:?} is no direction")),
    }
}

fn number(word: &str) -> Result<usize, String> {
    word.parse().map_err(|_| format!("{word:?} is no work's number"))
}

/// A length of time.
pub(super) fn time(text: &str) -> Result<u64, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let value: f64 = text[..digits].parse().map_err(|_| format!("{text:?} is no time"))?;
    let factor = units::Quantity::TIME
        .factor(&text[digits..])
        .ok_or_else(|| format!("{text:?}: write ns, us, ms or s"))?;
    Ok((value * factor) as u64)
}

fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let value: u64 = text[..digits].parse().map_err(|_| format!("{text:?} is no size"))?;
    let shift = match &text[digits..] {
        "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return Err(format!("{text:?}: write B, KiB, MiB or GiB")),
    };
    Ok(value << shift)
}

fn hash(key: &str) -> u64 {
    key.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

impl TryFrom<String> for Work {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["kernel", key, dur] => Ok(Self::Kernel(hash(key), time(dur)?, 1)),
            ["kernel", key, dur, times] => {
                let times = times.strip_prefix('*').and_then(|n| n.parse().ok());
                Ok(Self::Kernel(
                    hash(key),
                    time(dur)?,
                    times.ok_or(format!("{text:?}: write *4"))?,
                ))
            }
            ["copy", to, size, dur] => Ok(Self::Copy(way(to)?, bytes(size)?, time(dur)?)),
            ["memcpy", to, size, dur] => Ok(Self::Memcpy(way(to)?, bytes(size)?, time(dur)?)),
            ["late", dur] => Ok(Self::Late(time(dur)?, false)),
            ["asleep", dur] => Ok(Self::Late(time(dur)?, true)),
            ["sync", work] => Ok(Self::Sync(number(work)?)),
            ["wait", work] => Ok(Self::Wait(number(work)?)),
            ["mpi", dur] => Ok(Self::Mpi(time(dur)?)),
            ["fill", size, dur] => Ok(Self::Copy(direction::FILL, bytes(size)?, time(dur)?)),
            ["idle", dur] => Ok(Self::Idle(time(dur)?)),
            _ => Err(format!(
                "{text:?}: write kernel, copy, fill, idle, late, asleep, memcpy, mpi, sync or wait"
            )),
        }
    }
}

impl Maker<'_> {
    /// Does one thing of a stream.
    pub(super) fn work(&mut self, lane: usize, text: &WorkText, work: Work) {
        let from = self.from[lane];
        let thread = self.thread(&text.thread);
        match work {
            Work::Late(nanos, is_asleep) => {
                let begin = from.max(self.calling(thread));
                self.from[lane] = begin + nanos;
                if is_asleep {
                    self.sleep(thread, begin, nanos);
                }
            }
            Work::Mpi(nanos) => {
                let (span, _) = self.call(thread, "MPI_Allreduce", from, nanos, 0);
                self.from[lane] = span.end;
            }
            Work::Memcpy(direction, bytes, nanos) => {
                let (span, correlation) = self.call(thread, "hipMemcpy", from, nanos, 0);
                let copy = Copy {
                    stream: None,
                    span,
                    submit: 0,
                    correlation,
                    engine: engine::CALL,
                    ..self.copy(lane, text, direction, bytes)
                };
                self.timed.push((span.end, Item::Copy(copy)));
            }
            Work::Sync(on) => {
                let begin = from.max(self.calling(thread));
                // The thread wakes up a little later.
                let until = self.free.get(on).map_or(0, |&free| free + 3_800);
                let nanos = until.saturating_sub(begin).max(900);
                self.call(thread, "hipStreamSynchronize", begin, nanos, 0);
            }
            Work::Wait(on) => self.wait(lane, thread, on, from),
            Work::Idle(nanos) => self.free[lane] += nanos,
            Work::Kernel(key, nanos, times) => {
                for _ in 0..times {
                    self.kernel(lane, text, key, nanos, from);
                }
            }
            Work::Copy(direction, bytes, nanos) => {
                let name = if direction == direction::FILL {
                    "hipMemsetAsync"
                } else {
                    "hipMemcpyAsync"
                };
                let call_time = self.vary(9_000);
                let (call, correlation) = self.call(thread, name, from, call_time, 0);
                let span = self.run(lane, nanos, call.end);
                let copy = Copy {
                    stream: Some(StreamId(lane as u32)),
                    span,
                    submit: call.end,
                    correlation,
                    ..self.copy(lane, text, direction, bytes)
                };
                self.timed.push((span.end, Item::Copy(copy)));
            }
        }
    }

    /// A copy by the stream of a work, without its times.
    fn copy(&self, lane: usize, text: &WorkText, direction: u16, bytes: u64) -> Copy {
        let (gpu, host) = (Some(AgentId(text.gpu + 1)), Some(AgentId(0)));
        let (source, destination) = match direction {
            direction::H2D => (host, gpu),
            direction::D2H => (gpu, host),
            direction::FILL => (None, gpu),
            direction::D2D if self.text.gpus.len() > 1 => {
                (gpu, Some(AgentId((text.gpu + 1) % self.text.gpus.len() as u32 + 1)))
            }
            _ => (gpu, gpu),
        };
        Copy {
            process: self.process_of(&text.thread),
            source,
            destination,
            stream: Some(StreamId(lane as u32)),
            thread: Some(ThreadId(self.thread(&text.thread) as u32)),
            bytes,
            direction,
            engine: engine::SDMA,
            ..Copy::default()
        }
    }

    /// The stream of a work records an event, and another waits for it.
    fn wait(&mut self, lane: usize, thread: usize, on: usize, from: Nanos) {
        let (record, _) = self.call(thread, "hipEventRecord", from, 700, 0);
        let (wait, _) = self.call(thread, "hipStreamWaitEvent", record.end, 600, 0);
        for (span, stream, waits) in [(record, on, false), (wait, lane, true)] {
            let call = EventCall {
                process: ProcessId(self.text.threads.get(thread).map_or(0, |thread| thread.process)),
                at: span.begin,
                stream: Some(StreamId(stream as u32)),
                event: 0xe0_0000 + on as u64,
                waits,
            };
            self.timed.push((span.end, Item::EventCall(call)));
        }
        let until = self.free.get(on).copied().unwrap_or(0);
        self.free[lane] = self.free[lane].max(until);
    }

    fn kernel(&mut self, lane: usize, text: &WorkText, key: u64, nanos: u64, from: Nanos) {
        let thread = self.thread(&text.thread);
        let queue = text.queue.unwrap_or(lane as u32);
        let id = self
            .text
            .kernels
            .iter()
            .position(|kernel| hash(&kernel.key) == key)
            .unwrap_or(0);
        let Some(kernel) = self.text.kernels.get(id) else {
            return;
        };
        let call_time = self.vary(7_000);
        let (call, correlation) = self.call(thread, "hipLaunchKernel", from, call_time, 0);
        self.dispatches += 1;
        let site = self.site(id);
        if let Some((_, Item::Api(launch))) = self.timed.last_mut() {
            launch.site = site;
        }
        // Kernels of a shared queue run one after another.
        let others = self.queues.get(&queue).copied().unwrap_or(0);
        self.free[lane] = self.free[lane].max(others);
        let span = self.run(lane, nanos, call.end);
        if text.queue.is_some() {
            self.queues.insert(queue, self.free[lane]);
        }
        let dispatch = Dispatch {
            process: self.process_of(&text.thread),
            kernel: KernelId(id as u32),
            agent: AgentId(text.gpu + 1),
            queue: QueueId(queue),
            stream: Some(StreamId(lane as u32)),
            thread: Some(ThreadId(thread as u32)),
            span,
            submit: call.end,
            correlation,
            dispatch_id: self.dispatches,
            grid: kernel.grid,
            workgroup: kernel.workgroup,
            group_size: kernel.lds,
            private_size: 0,
            flags: if kernel.internal { flag::INTERNAL } else { 0 },
            site,
        };
        self.timed.push((span.end, Item::Dispatch(dispatch)));
        self.count(id, &dispatch);
    }

    /// The next free time of a stream, not before what is asked of it was submitted.
    fn run(&mut self, lane: usize, nanos: u64, submitted: Nanos) -> Span {
        let begin = self.free[lane].max(submitted + 4_000);
        let span = Span {
            begin,
            end: begin + self.vary(nanos),
        };
        self.free[lane] = span.end + 1_200;
        span
    }
}
