//! What a stream does, a word at a time: `kernel gemm 5.4ms *4`, `copy h2d 8MiB 690us`, `fill 1MiB 9us`, `idle 1ms`.

use roctop_ring::record::{direction, engine, flag};
use serde::Deserialize;

use super::WorkText;
use super::maker::Maker;
use roctop_trace::item::{AgentId, Copy, Dispatch, Item, KernelId, Nanos, QueueId, Span, StreamId, ThreadId};
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
}

/// A length of time.
pub(super) fn time(text: &str) -> Result<u64, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let value: f64 = text[..digits].parse().map_err(|_| format!("{text:?} is no time"))?;
    let factor = units::unit_of_time(&text[digits..]).ok_or_else(|| format!("{text:?}: write ns, us, ms or s"))?;
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
            ["copy", way, size, dur] => {
                let way = match way {
                    "h2d" => direction::H2D,
                    "d2h" => direction::D2H,
                    "d2d" => direction::D2D,
                    "h2h" => direction::H2H,
                    _ => return Err(format!("{way:?} is no direction")),
                };
                Ok(Self::Copy(way, bytes(size)?, time(dur)?))
            }
            ["fill", size, dur] => Ok(Self::Copy(direction::FILL, bytes(size)?, time(dur)?)),
            ["idle", dur] => Ok(Self::Idle(time(dur)?)),
            _ => Err(format!("{text:?}: write kernel, copy, fill or idle")),
        }
    }
}

impl Maker<'_> {
    /// Does one thing of a stream; its calls are made from `from` on.
    pub(super) fn work(&mut self, lane: usize, text: &WorkText, work: Work, from: Nanos) {
        match work {
            Work::Idle(nanos) => self.free[lane] += nanos,
            Work::Kernel(key, nanos, times) => {
                for _ in 0..times {
                    self.kernel(lane, text, key, nanos, from);
                }
            }
            Work::Copy(direction, bytes, nanos) => {
                let thread = self.thread(&text.thread);
                let name = if direction == direction::FILL {
                    "hipMemsetAsync"
                } else {
                    "hipMemcpyAsync"
                };
                let call_time = self.vary(9_000);
                let (call, correlation) = self.call(thread, name, from, call_time, 0);
                let span = self.run(lane, nanos, call.end);
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
                let copy = Copy {
                    process: self.process_of(&text.thread),
                    source,
                    destination,
                    stream: Some(StreamId(lane as u32)),
                    thread: Some(ThreadId(thread as u32)),
                    span,
                    submit: call.end,
                    correlation,
                    bytes,
                    direction,
                    engine: engine::SDMA,
                    flags: 0,
                };
                self.timed.push((span.end, Item::Copy(copy)));
            }
        }
    }

    fn kernel(&mut self, lane: usize, text: &WorkText, key: u64, nanos: u64, from: Nanos) {
        let thread = self.thread(&text.thread);
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
        let span = self.run(lane, nanos, call.end);
        self.dispatches += 1;
        let dispatch = Dispatch {
            process: self.process_of(&text.thread),
            kernel: KernelId(id as u32),
            agent: AgentId(text.gpu + 1),
            queue: QueueId(lane as u32),
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
