//! The run-time's copy functions: determines each request, and wraps the real function.

use super::super::agent::{self, UNKNOWN};
use super::super::{Hsa, hook, hsa, proxy, signal};
use super::{How, Request, begin, end};
use crate::guard::wall;
use crate::state::{self, word};
use hsa_sys::abi::{self, Agent, CopyOperation, Dim3, Pitched, SUCCESS, SignalHandle, Status};
use hsa_sys::table::{AmdLayout, AsyncCopy, AsyncCopyOnEngine, AsyncCopyRect, BatchCopy, Table, amd_entry};
use roctop_ring::record::direction;
use std::ffi::c_void;

/// Direction by the kinds of two agents, which are dense indexes.
pub(in super::super) fn direction_of(hsa: &Hsa, dst: u32, src: u32) -> u16 {
    let all = hsa.agents.all();
    let kind = |index| all.iter().find(|agent| agent.index == index).map(|agent| agent.kind);
    match (kind(src), kind(dst)) {
        (Some(agent::CPU), Some(agent::CPU)) => direction::H2H,
        (Some(agent::CPU), Some(agent::GPU)) => direction::H2D,
        (Some(agent::GPU), Some(agent::CPU)) => direction::D2H,
        (Some(agent::GPU), Some(agent::GPU)) => direction::D2D,
        _ => direction::UNKNOWN,
    }
}

fn linear(hsa: &Hsa, dst: *mut c_void, to: Agent, src: *const c_void, from: Agent, size: usize) -> Request {
    let (dst_agent, src_agent) = (hsa.agents.index(to), hsa.agents.index(from));
    Request {
        dst: dst as u64,
        dst_agent,
        src: src as u64,
        src_agent,
        bytes: Some(size as u64),
        direction: direction_of(hsa, dst_agent, src_agent),
    }
}

/// `route` is that of `hsa_amd_memory_async_copy_rect`: 0 host to host, 1 host to device, 2 device to host, 3 on the
/// device `by`.
fn rectangle(
    hsa: &Hsa,
    to: (&Pitched, &Dim3),
    from: (&Pitched, &Dim3),
    range: &Dim3,
    by: Agent,
    route: i32,
) -> Request {
    let at = |(side, offset): (&Pitched, &Dim3)| {
        let rows = side.pitch.wrapping_mul(u64::from(offset.y));
        let layers = side.slice.wrapping_mul(u64::from(offset.z));
        side.base
            .wrapping_add(u64::from(offset.x))
            .wrapping_add(rows)
            .wrapping_add(layers)
    };
    let gpu = hsa.agents.index(by);
    let all = hsa.agents.all();
    let cpu = all.iter().find(|agent| agent.kind == agent::CPU);
    let cpu = cpu.map_or(UNKNOWN, |agent| agent.index);
    let (direction, src_agent, dst_agent) = match route {
        0 => (direction::H2H, cpu, cpu),
        1 => (direction::H2D, cpu, gpu),
        2 => (direction::D2H, gpu, cpu),
        _ => (direction::D2D, gpu, gpu),
    };
    Request {
        dst: at(to),
        dst_agent,
        src: at(from),
        src_agent,
        bytes: Some(u64::from(range.x) * u64::from(range.y) * u64::from(range.z)),
        direction,
    }
}

unsafe extern "C" fn copy(
    dst: *mut c_void,
    to: Agent,
    src: *const c_void,
    from: Agent,
    size: usize,
    count: u32,
    before: *const SignalHandle,
    signal: SignalHandle,
) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let begun = begin(|| Some(linear(hsa, dst, to, src, from, size)), signal, How::OnAny);
    // SAFETY: the caller's own arguments.
    let status = unsafe { (hsa.amd.async_copy)(dst, to, src, from, size, count, before, begun.signal(signal)) };
    end(&begun, status);
    status
}

unsafe extern "C" fn copy_on_engine(
    dst: *mut c_void,
    to: Agent,
    src: *const c_void,
    from: Agent,
    size: usize,
    count: u32,
    before: *const SignalHandle,
    signal: SignalHandle,
    engine: u32,
    force: bool,
) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let Some(original) = hsa.amd.async_copy_on_engine else {
        return 0x1000;
    };
    let begun = begin(|| Some(linear(hsa, dst, to, src, from, size)), signal, How::OnAny);
    // SAFETY: the caller's own arguments.
    let status = unsafe {
        original(
            dst,
            to,
            src,
            from,
            size,
            count,
            before,
            begun.signal(signal),
            engine,
            force,
        )
    };
    end(&begun, status);
    status
}

unsafe extern "C" fn copy_rect(
    dst: *const Pitched,
    dst_offset: *const Dim3,
    src: *const Pitched,
    src_offset: *const Dim3,
    range: *const Dim3,
    by: Agent,
    route: i32,
    count: u32,
    before: *const SignalHandle,
    signal: SignalHandle,
) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let request = || {
        // SAFETY: the program passes valid structures or null.
        let (to, from, range) = unsafe { (dst.as_ref()?, src.as_ref()?, range.as_ref()?) };
        // SAFETY: as above.
        let (to_offset, from_offset) = unsafe { (dst_offset.as_ref()?, src_offset.as_ref()?) };
        Some(rectangle(hsa, (to, to_offset), (from, from_offset), range, by, route))
    };
    let begun = begin(request, signal, How::OnAny);
    let original = hsa.amd.async_copy_rect;
    // SAFETY: the caller's own arguments.
    let status = unsafe {
        original(
            dst,
            dst_offset,
            src,
            src_offset,
            range,
            by,
            route,
            count,
            before,
            begun.signal(signal),
        )
    };
    end(&begun, status);
    status
}

/// The request of a batch operation. Its entries share one signal, so they count as one copy here: with the sum of
/// their bytes, and the addresses of the first.
fn operation(hsa: &Hsa, operation: &CopyOperation) -> Option<Request> {
    if operation.version != CopyOperation::VERSION || operation.kind > abi::copy::LAST {
        return None;
    }
    let (entries, is_broadcast) = (u64::from(operation.entries), operation.kind == abi::copy::BROADCAST);
    let first = |place: u64, is_list: bool| {
        let list = place as usize as *const u64;
        if is_list && entries > 0 {
            // SAFETY: the program passes lists of as many entries as it says; null is none.
            unsafe { list.as_ref() }.copied()
        } else {
            Some(place)
        }
    };
    let to = first(operation.dst_agent, true)?;
    let (dst_agent, src_agent) = (hsa.agents.index(to), hsa.agents.index(operation.src_agent));
    let bytes = if entries == 0 {
        operation.size
    } else if is_broadcast {
        operation.size.saturating_mul(entries)
    } else {
        let sizes = operation.size as usize as *const u64;
        // SAFETY: as above.
        let sizes = (!sizes.is_null()).then(|| unsafe { std::slice::from_raw_parts(sizes, entries as usize) })?;
        sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size))
    };
    Some(Request {
        dst: first(operation.dst, true)?,
        dst_agent,
        src: first(operation.src, !is_broadcast)?,
        src_agent,
        bytes: Some(bytes),
        direction: direction_of(hsa, dst_agent, src_agent),
    })
}

/// Sizes of a batch operation in published versions of the header.
const DISTANCES: [usize; 2] = [128, 160];

/// The operations of a batch. All have the same signal, which shows their distance.
fn operations(first: *const CopyOperation, count: u32) -> impl Iterator<Item = Option<CopyOperation>> {
    let at = move |number: usize, distance: usize| {
        let place = first.wrapping_byte_add(number * distance);
        // SAFETY: the program passes `count` operations, each as long as the shortest distance at least.
        unsafe { place.read() }
    };
    let is_next = |distance: &usize| {
        let (one, other) = (at(0, *distance), at(1, *distance));
        (one.version, one.completion) == (other.version, other.completion)
    };
    let distance = if count > 1 {
        DISTANCES.into_iter().find(is_next)
    } else {
        DISTANCES.first().copied()
    };
    (0..count as usize).map(move |number| distance.map(|distance| at(number, distance)))
}

/// Batch copies. A single operation is timed on its signal. Several operations decrement one signal together, so none
/// of them has a time.
unsafe extern "C" fn copy_batch(
    first: *const CopyOperation,
    count: u32,
    signals: u32,
    before: *const SignalHandle,
) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let Some(original) = hsa.amd.batch_copy else {
        return 0x1000;
    };
    // SAFETY: the program passes `count` operations or null.
    let Some(only) = (unsafe { first.as_ref() }).filter(|_| count > 0) else {
        // SAFETY: the caller's own arguments.
        return unsafe { original(first, count, signals, before) };
    };
    let request = |found: Option<&CopyOperation>| {
        let known = found.and_then(|found| operation(hsa, found));
        Some(known.unwrap_or_else(unknown))
    };
    if count == 1 {
        let begun = begin(|| request(Some(only)), only.completion, How::OnOwn);
        // SAFETY: the caller's own arguments.
        let status = unsafe { original(first, count, signals, before) };
        end(&begun, status);
        return status;
    }
    if state::is_on(word::HSA) {
        proxy::forget(only.completion);
        wall((), || signal::before_change(only.completion));
    }
    // SAFETY: the caller's own arguments.
    let status = unsafe { original(first, count, signals, before) };
    if status == SUCCESS {
        for found in operations(first, count) {
            end(&begin(|| request(found.as_ref()), only.completion, How::Not), status);
        }
    }
    status
}

/// A copy without known properties.
fn unknown() -> Request {
    Request {
        dst: 0,
        dst_agent: UNKNOWN,
        src: 0,
        src_agent: UNKNOWN,
        bytes: None,
        direction: direction::UNKNOWN,
    }
}

/// The program's own request for copy times: they stay enabled while the collector reads them.
unsafe extern "C" fn enable(on: bool) -> Status {
    let keep = on || state::is_on(word::HSA);
    // SAFETY: a plain call of the original.
    hsa().map_or(SUCCESS, |hsa| unsafe { (hsa.amd.async_copy_enable)(keep) })
}

pub(crate) fn patch(table: Table, layout: AmdLayout) {
    let hook_at = |entry: usize, function: *mut c_void| {
        if let Some(entry) = layout.entry(entry) {
            hook(table, entry, function);
        }
    };
    hook_at(amd_entry::ASYNC_COPY, copy as AsyncCopy as *mut c_void);
    hook_at(
        amd_entry::ASYNC_COPY_ON_ENGINE,
        copy_on_engine as AsyncCopyOnEngine as *mut c_void,
    );
    hook_at(amd_entry::ASYNC_COPY_RECT, copy_rect as AsyncCopyRect as *mut c_void);
    if let Some(entry) = layout.newer(amd_entry::BATCH_COPY) {
        hook(table, entry, copy_batch as BatchCopy as *mut c_void);
    }
    hook_at(
        amd_entry::ASYNC_COPY_ENABLE,
        enable as unsafe extern "C" fn(bool) -> Status as *mut c_void,
    );
}
