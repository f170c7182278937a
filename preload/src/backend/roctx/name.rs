//! Names that the program gives to threads, agents, devices and streams.

use super::real::{NAME_AGENT, NAME_DEVICE, NAME_STREAM, NAME_THREAD, typed};
use super::table::{Entry, pass};
use super::{NameDevice, NameThing, Push, enter, exit, is_on, text};
use crate::backend::hsa::agent::{self, Agent};
use crate::backend::hsa::hsa;
use crate::guard::{Errno, wall};
use crate::{process, thread};
use roctop_ring::record::{marker_call, status};
use std::ffi::{c_char, c_int, c_void};

/// Names the calling thread.
///
/// # Safety
/// `name` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxNameOsThread(name: *const c_char) -> c_int {
    let real = typed!(NAME_THREAD as Push);
    // SAFETY: as the caller says.
    unsafe { name_thread(name, real) }
}

pub(super) unsafe fn name_thread(name: *const c_char, real: Option<Push>) -> c_int {
    wall((), || {
        if is_on()
            && let (Some(process), Some(thread)) = (process::get(), thread::current())
        {
            process.name(status::THREAD_NAME, u64::from(thread.tid()), text(name));
        }
    });
    let call = enter(marker_call::NAME_THREAD);
    // SAFETY: the caller's own argument.
    let result = real.map_or(0, |real| pass(Entry::NameThread, || unsafe { real(name) }));
    exit(call, result);
    result
}

/// Names an HSA agent; the call is recorded too.
///
/// # Safety
/// `name` is null or a terminated string, `agent` null or an agent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxNameHsaAgent(name: *const c_char, agent: *const c_void) -> c_int {
    let real = typed!(NAME_AGENT as NameThing);
    // SAFETY: as the caller says.
    unsafe { name_hsa_agent(name, agent, real) }
}

pub(super) unsafe fn name_hsa_agent(name: *const c_char, agent: *const c_void, real: Option<NameThing>) -> c_int {
    // SAFETY: an agent is one handle.
    let handle = (!agent.is_null()).then(|| unsafe { agent.cast::<u64>().read_unaligned() });
    name_agent(text(name), || hsa()?.agents.by_handle(handle?));
    let call = enter(marker_call::NAME_AGENT);
    // SAFETY: the caller's own arguments.
    let result = real.map_or(0, |real| pass(Entry::NameAgent, || unsafe { real(name, agent) }));
    exit(call, result);
    result
}

/// Stores the name of an agent, if it is known.
fn name_agent(name: &[u8], agent: impl FnOnce() -> Option<&'static Agent>) {
    wall((), || {
        let _errno = Errno::keep();
        if is_on()
            && thread::current().is_some()
            && let (Some(process), Some(agent)) = (process::get(), agent())
        {
            process.name(status::AGENT_NAME, u64::from(agent.index), name);
        }
    });
}

/// Variables with which HIP's device order may differ from HSA's GPU order.
const DEVICES: [&str; 3] = ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"];

/// Names a HIP device; recorded only if no variable changes HIP's device order.
///
/// # Safety
/// `name` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxNameHipDevice(name: *const c_char, device: c_int) -> c_int {
    let real = typed!(NAME_DEVICE as NameDevice);
    // SAFETY: as the caller says.
    unsafe { name_device(name, device, real) }
}

pub(super) unsafe fn name_device(name: *const c_char, device: c_int, real: Option<NameDevice>) -> c_int {
    name_agent(text(name), || {
        if DEVICES.iter().any(|name| std::env::var_os(name).is_some()) {
            return None;
        }
        let agents = hsa()?.agents.all();
        let mut gpus = agents.iter().filter(|agent| agent.kind == agent::GPU);
        gpus.nth(usize::try_from(device).ok()?)
    });
    let call = enter(marker_call::NAME_DEVICE);
    // SAFETY: the caller's own arguments.
    let result = real.map_or(0, |real| pass(Entry::NameDevice, || unsafe { real(name, device) }));
    exit(call, result);
    result
}

/// Names a HIP stream.
///
/// # Safety
/// `name` is null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxNameHipStream(name: *const c_char, stream: *const c_void) -> c_int {
    let real = typed!(NAME_STREAM as NameThing);
    // SAFETY: as the caller says.
    unsafe { name_stream(name, stream, real) }
}

pub(super) unsafe fn name_stream(name: *const c_char, stream: *const c_void, real: Option<NameThing>) -> c_int {
    wall((), || {
        if is_on()
            && let (Some(process), Some(thread)) = (process::get(), thread::current())
        {
            process.stream_named(stream as u64, thread.tid(), text(name));
        }
    });
    let call = enter(marker_call::NAME_STREAM);
    // SAFETY: the caller's own arguments.
    let result = real.map_or(0, |real| pass(Entry::NameStream, || unsafe { real(name, stream) }));
    exit(call, result);
    result
}
