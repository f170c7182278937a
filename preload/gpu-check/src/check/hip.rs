//! D9: a small HIP program. The viewer runs it with and without the collector, and compares both reports.

#![expect(unsafe_code, reason = "calls of HIP")]

use crate::Options;
use crate::hip::{Handle, Hip, Memset, Spin, hash};
use crate::hsa::Hsa;
use crate::outcome::{Outcome, Status};
use std::ffi::c_void;
use std::time::Instant;

const BYTES: usize = 1 << 20;
/// Number of nodes of the graph.
const NODES: usize = 100;
/// Number of launches that are each between two events.
const TIMED: usize = 20;
/// Duration of each of those, µs.
const LENGTH: f64 = 200.0;
/// Number of launches on the second stream.
const OTHERS: usize = 50;

pub(super) fn check(options: &Options) -> Result<Outcome, String> {
    let hip = match Hip::load() {
        Ok(hip) => hip,
        Err(error) => return Ok(Outcome::new(Status::Skipped, error)),
    };
    let mut count = 0;
    // SAFETY: there is room for the answer.
    let code = unsafe { (hip.call.get_device_count)(&raw mut count) };
    if code != 0 || count == 0 {
        return Ok(Outcome::new(Status::Skipped, "HIP finds no GPU"));
    }
    // SAFETY: HIP has such a GPU.
    hip.keep("hipSetDevice", unsafe { (hip.call.set_device)(options.gpu as i32) });
    let start = Instant::now();
    let streams = [hip.stream(), hip.stream()];
    let bytes = moves(&hip, streams)?;
    let spin = spin(&hip, options);
    let (is_cooperative, timed) = match &spin {
        Ok(spin) => launches(&hip, spin, streams),
        Err(_) => (false, Vec::new()),
    };
    // SAFETY: a plain call.
    hip.keep("hipDeviceSynchronize", unsafe { (hip.call.device_synchronize)() });
    let wall = start.elapsed().as_secs_f64() * 1e3;
    let (calls, codes, failed) = hip.codes();
    let has_run = spin.as_ref().is_ok_and(Spin::has_run);
    let (status, text) = match (&spin, failed) {
        (_, Some((name, code))) => (Status::Bad, format!("{name} returns {code}")),
        (Err(error), _) => (Status::Note, error.clone()),
        (Ok(_), None) => (Status::Ok, format!("{calls} HIP calls in {wall:.0} ms, all well")),
    };
    let outcome = Outcome::new(status, text)
        .number("calls", calls as f64)
        .number("codes", f64::from(codes))
        .number("bytes", f64::from(bytes))
        .number("wall_ms", wall)
        .number("launches", if spin.is_ok() { (TIMED + OTHERS) as f64 } else { 0.0 })
        .number("cooperative", f64::from(u8::from(is_cooperative)))
        .number("witnessed", f64::from(u8::from(has_run)));
    Ok(timed.into_iter().enumerate().fold(outcome, |outcome, (index, time)| {
        outcome.number(format!("elapsed_us_{index:02}"), time)
    }))
}

/// The spin kernel for the GPU that HSA names.
fn spin<'a>(hip: &'a Hip, options: &Options) -> Result<Spin<'a>, String> {
    let hsa = Hsa::start()?;
    let gpu = hsa.gpus.get(options.gpu).copied().ok_or("HSA has no such GPU")?;
    Spin::load(hip, &hsa.gfx(gpu), gpu.frequency)
}

/// Fills, copies, an event between two streams, and a graph of fills; returns a hash of the resulting bytes.
fn moves(hip: &Hip, [first, second]: [Handle; 2]) -> Result<u32, String> {
    let (near, far) = (hip.device_memory(BYTES)?, hip.device_memory(BYTES)?);
    let (up, down) = (hip.host_memory(BYTES)?, hip.host_memory(BYTES)?);
    // SAFETY: memory of this size, which no copy uses yet.
    let pattern = unsafe { std::slice::from_raw_parts_mut(up, BYTES) };
    for (index, byte) in pattern.iter_mut().enumerate() {
        *byte = (index ^ (index >> 8)) as u8;
    }
    let half = BYTES / 2;
    let event = hip.event();
    let call = &hip.call;
    // SAFETY: both ranges are inside their memory, which stays; streams and event are HIP's.
    unsafe {
        hip.keep("hipMemcpyHtoDAsync", (call.copy_up)(near, up.cast(), BYTES, first));
        hip.keep("hipMemsetAsync", (call.memset_async)(near, 0x3c, half, first));
        hip.keep("hipEventRecord", (call.event_record)(event, first));
        hip.keep("hipStreamWaitEvent", (call.stream_wait_event)(second, event, 0));
        hip.keep("hipMemcpyDtoDAsync", (call.copy_across)(far, near, BYTES, second));
        hip.keep("hipMemcpyDtoHAsync", (call.copy_down)(down.cast(), far, BYTES, second));
    }
    hip.wait(second);
    let sum = hash_of(down);
    graph(hip, first, far);
    // SAFETY: as above.
    hip.keep("hipMemcpyDtoHAsync", unsafe {
        (call.copy_down)(down.cast(), far, BYTES, first)
    });
    hip.wait(first);
    Ok(sum ^ hash_of(down).rotate_left(1))
}

fn hash_of(memory: *const u8) -> u32 {
    // SAFETY: memory of this size, whose copy is over.
    hash(unsafe { std::slice::from_raw_parts(memory, BYTES) }.iter().copied())
}

/// A chain of fills of one page each, launched twice.
fn graph(hip: &Hip, stream: Handle, memory: *mut c_void) {
    let call = &hip.call;
    let (mut graph, mut executable) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: there is room for the answers; the nodes' memory is inside what was allocated.
    unsafe {
        hip.keep("hipGraphCreate", (call.graph_create)(&raw mut graph, 0));
        let mut before: Handle = std::ptr::null_mut();
        for node in 0..NODES {
            let fill = Memset {
                target: memory.byte_add(node * 4096),
                element: 1,
                height: 1,
                pitch: 4096,
                value: node as u32,
                width: 4096,
            };
            let mut made = std::ptr::null_mut();
            let needs = usize::from(node > 0);
            let code = (call.graph_add_memset)(&raw mut made, graph, &raw const before, needs, &raw const fill);
            hip.keep("hipGraphAddMemsetNode", code);
            before = made;
        }
        let nothing = std::ptr::null_mut();
        let code = (call.graph_instantiate)(&raw mut executable, graph, nothing, std::ptr::null_mut(), 0);
        hip.keep("hipGraphInstantiate", code);
        hip.keep("hipGraphLaunch", (call.graph_launch)(executable, stream));
        hip.keep("hipGraphLaunch", (call.graph_launch)(executable, stream));
    }
}

/// Launches on both streams, a cooperative launch, and finally timed launches; returns the times between their events,
/// µs.
fn launches(hip: &Hip, spin: &Spin<'_>, [first, second]: [Handle; 2]) -> (bool, Vec<f64>) {
    for _ in 0..OTHERS {
        spin.launch(second, 5.0);
    }
    hip.wait(second);
    let is_cooperative = spin.launch_cooperative(first);
    hip.wait(first);
    let events: Vec<[Handle; 2]> = (0..TIMED).map(|_| [hip.event(), hip.event()]).collect();
    for [begin, end] in &events {
        // SAFETY: event and stream are HIP's.
        hip.keep("hipEventRecord", unsafe { (hip.call.event_record)(*begin, first) });
        spin.launch(first, LENGTH);
        // SAFETY: as above.
        hip.keep("hipEventRecord", unsafe { (hip.call.event_record)(*end, first) });
        hip.wait(first);
    }
    let elapsed = |[begin, end]: &[Handle; 2]| {
        let mut time = 0f32;
        // SAFETY: both events are complete, and there is room for the answer.
        hip.keep("hipEventElapsedTime", unsafe {
            (hip.call.event_elapsed)(&raw mut time, *begin, *end)
        });
        f64::from(time) * 1e3
    };
    (is_cooperative, events.iter().map(elapsed).collect())
}
