//! Copies and fills that complete within an HSA call: `hsa_memory_copy` and `hsa_amd_memory_fill`.
//!
//! They have no signal, and nothing shows which part of the call was the transfer, or what performed it: the CPU if it
//! can access both ends, else an engine or a kernel of the run-time. They are therefore recorded with the call's time,
//! separately from copies with exact times.
//!
//! Deliberately not recorded: images (`hsa_ext_image_*`), files (`hsa_amd_ais_file_*`) and migration of shared virtual
//! memory, whose calls show no route.

#![expect(unsafe_code, reason = "hooks with the run-time's signatures")]

use super::agent::{self, UNKNOWN};
use super::copy::direction_of;
use super::{Hsa, hook, hsa};
use crate::guard::{Errno, wall};
use crate::state::{self, word};
use crate::{clock, collector, control, thread};
use hsa_sys::abi::{PointerInfo, SUCCESS, Status, pointer};
use hsa_sys::table::{AmdLayout, MemoryCopy, MemoryFill, PointerInfoOf, Table, amd_entry, core_entry};
use roctop_ring::record::{CallCopy, direction};
use roctop_ring::session::wanted;
use std::ffi::c_void;

/// The functions behind the hooks.
pub(crate) struct Originals {
    copy: MemoryCopy,
    fill: MemoryFill,
    pointer_info: PointerInfoOf,
}

impl Originals {
    pub(crate) fn load(core: Table, amd: Table, layout: AmdLayout) -> Option<Self> {
        // SAFETY: the tables are the run-time's; the entry of each number has its field's type in every release.
        unsafe {
            Some(Self {
                copy: core.typed(core_entry::MEMORY_COPY)?,
                fill: amd.typed(layout.entry(amd_entry::MEMORY_FILL)?)?,
                pointer_info: amd.typed(layout.entry(amd_entry::POINTER_INFO)?)?,
            })
        }
    }
}

/// Begin of a call; 0 if it is not recorded.
fn began() -> u64 {
    if state::is_on(word::HSA) && control::is_wanted(wanted::COPY) {
        clock::now()
    } else {
        0
    }
}

/// Agent that owns an address; memory unknown to HSA belongs to the host.
fn owner(hsa: &Hsa, address: *const c_void) -> u32 {
    let mut info = PointerInfo {
        size: size_of::<PointerInfo>() as u32,
        ..PointerInfo::default()
    };
    let (none, ask) = (std::ptr::null_mut(), hsa.blocking.pointer_info);
    // SAFETY: `info` says its size; no list is asked for.
    let known = unsafe { ask(address, &raw mut info, none, none.cast(), none.cast()) };
    if known != SUCCESS {
        return UNKNOWN;
    }
    if info.kind == pointer::UNKNOWN || info.kind == pointer::LOCKED {
        let mut all = hsa.agents.all().iter();
        return all
            .find(|agent| agent.kind == agent::CPU)
            .map_or(UNKNOWN, |agent| agent.index);
    }
    hsa.agents.index(info.owner)
}

/// Records a successful call. Queries about its memory follow it, so that its time is not affected.
fn done(start: u64, record: impl FnOnce(CallCopy) -> CallCopy) {
    let end = clock::now();
    wall((), || {
        let _errno = Errno::keep();
        let Some(thread) = thread::current() else { return };
        let correlation = thread.current.get();
        let record = thread::aside(|| {
            record(CallCopy {
                start,
                end,
                correlation,
                ..CallCopy::default()
            })
        });
        if record.bytes != 0 {
            collector::call_copy(&record);
        }
    });
}

unsafe extern "C" fn copy(dst: *mut c_void, src: *const c_void, bytes: usize) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let start = began();
    // SAFETY: the caller's own arguments.
    let status = unsafe { (hsa.blocking.copy)(dst, src, bytes) };
    if start != 0 && status == SUCCESS {
        done(start, |record| {
            let (to, from) = (owner(hsa, dst), owner(hsa, src));
            CallCopy {
                bytes: bytes as u64,
                dst: dst as u64,
                src: src as u64,
                src_agent: from,
                dst_agent: to,
                direction: direction_of(hsa, to, from),
                ..record
            }
        });
    }
    status
}

unsafe extern "C" fn fill(dst: *mut c_void, value: u32, count: usize) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let start = began();
    // SAFETY: the caller's own arguments.
    let status = unsafe { (hsa.blocking.fill)(dst, value, count) };
    if start != 0 && status == SUCCESS {
        done(start, |record| CallCopy {
            bytes: (count as u64).saturating_mul(size_of::<u32>() as u64),
            dst: dst as u64,
            src: u64::from(value),
            src_agent: UNKNOWN,
            dst_agent: owner(hsa, dst),
            direction: direction::FILL,
            ..record
        });
    }
    status
}

pub(crate) fn patch(core: Table, amd: Table, layout: AmdLayout) {
    hook(core, core_entry::MEMORY_COPY, copy as MemoryCopy as *mut c_void);
    if let Some(entry) = layout.entry(amd_entry::MEMORY_FILL) {
        hook(amd, entry, fill as MemoryFill as *mut c_void);
    }
}
