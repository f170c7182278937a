//! Records of the interface (`activity_record_t`).

use crate::domain::Domain;
use crate::{correlation, thread};
use std::ffi::c_char;

/// A record: 64 bytes, the layout of the interface.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub(crate) domain: u32,
    pub(crate) kind: u32,
    pub(crate) op: u32,
    pub(crate) reserved: u32,
    pub(crate) correlation: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Device and queue of GPU work, process and thread of a call, or the external id.
    pub(crate) place: [u32; 4],
    /// Bytes, or the address of the kernel's name.
    pub(crate) detail: u64,
}

pub(crate) const SIZE: usize = size_of::<Record>();
const _: () = assert!(SIZE == 64 && std::mem::offset_of!(Record, place) == 40);
const _: () = assert!(std::mem::offset_of!(Record, correlation) == 16 && std::mem::offset_of!(Record, detail) == 56);

/// `ACTIVITY_EXT_OP_EXTERN_ID`.
const EXTERNAL_ID: u32 = 1;

impl Record {
    /// A call of this thread.
    pub(crate) fn call(domain: Domain, op: u32, correlation: u64, begin: u64, end: u64) -> Self {
        Self {
            domain: domain as u32,
            kind: 0,
            op,
            reserved: 0,
            correlation,
            begin,
            end,
            place: [thread::process(), thread::id(), 0, 0],
            detail: 0,
        }
    }

    /// The record before a call's, if the program has given this thread an external id.
    pub(crate) fn external(correlation: u64) -> Option<Self> {
        let id = correlation::external()?;
        Some(Self {
            domain: Domain::External as u32,
            kind: 0,
            op: EXTERNAL_ID,
            reserved: 0,
            correlation,
            begin: 0,
            end: 0,
            place: [id as u32, (id >> 32) as u32, 0, 0],
            detail: 0,
        })
    }

    /// The kernel's name, or null.
    pub(crate) fn name(&self) -> *const c_char {
        self.detail as *const c_char
    }
}
