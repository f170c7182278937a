//! Memory that the run-time and the packets refer to by address.
//!
//! The emulated GPU shares the program's address space, so a GPU address is a pointer once `memory::Memory::host` has
//! resolved aliases. A wrong address faults, as on hardware. There are no bounds checks, because a driver does not know
//! the bounds of memory that it did not allocate.
#![expect(
    unsafe_code,
    reason = "dereferences the addresses that packets carry, which is what a GPU does"
)]

use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64};

/// Reads a plain value at an address, aligned or not.
pub(crate) fn read<T: Copy>(address: u64) -> T {
    // SAFETY: the writer of the packet or the ioctl argument keeps the memory alive until it is answered.
    unsafe { std::ptr::read_unaligned(address as *const T) }
}

/// Stores a plain value, aligned or not.
pub(crate) fn write<T: Copy>(address: u64, value: T) {
    // SAFETY: as for `read`; the protocol of the packet makes the place ours to write.
    unsafe { std::ptr::write_unaligned(address as *mut T, value) }
}

/// Copies bytes; the ranges may overlap.
pub(crate) fn copy(source: u64, target: u64, bytes: u64) {
    // SAFETY: as for `read` and `write`.
    unsafe { std::ptr::copy(source as *const u8, target as *mut u8, bytes as usize) }
}

/// Sets bytes.
pub(crate) fn fill(target: u64, value: u8, bytes: u64) {
    // SAFETY: as for `write`.
    unsafe { std::ptr::write_bytes(target as *mut u8, value, bytes as usize) }
}

/// Bytes at an address, valid as long as the allocation.
pub(crate) fn bytes(address: u64, len: usize) -> &'static [u8] {
    // SAFETY: callers pass ranges that lie inside one live allocation and use the slice at once.
    unsafe { std::slice::from_raw_parts(address as *const u8, len) }
}

macro_rules! atomic {
    ($name:ident, $type:ty) => {
        /// The atomic at an aligned address, shared by the host and the engines.
        pub(crate) fn $name(address: u64) -> &'static $type {
            // SAFETY: queue pointers, doorbells and signals are aligned by their formats and outlive their use.
            unsafe { &*(address as *const $type) }
        }
    };
}

atomic!(atomic_u16, AtomicU16);
atomic!(atomic_u32, AtomicU32);
atomic!(atomic_u64, AtomicU64);
atomic!(atomic_i64, AtomicI64);
