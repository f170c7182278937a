//! The properties of a pool (`roctracer_properties_t`), and its memory.

use crate::record::SIZE;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

/// `roctracer_allocator_t`.
pub type Allocator = unsafe extern "C" fn(pointer: *mut *mut c_char, size: usize, argument: *mut c_void);
/// `roctracer_buffer_callback_t`.
pub type BufferCallback = unsafe extern "C" fn(begin: *const c_char, end: *const c_char, argument: *mut c_void);

/// `roctracer_properties_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// Not used.
    pub mode: u32,
    /// Bytes of each buffer.
    pub buffer_size: usize,
    /// Allocates and frees memory; `None` for the C library's allocator.
    pub allocate: Option<Allocator>,
    /// For the allocator.
    pub allocator_argument: *mut c_void,
    /// Receives full buffers.
    pub callback: Option<BufferCallback>,
    /// For the callback.
    pub callback_argument: *mut c_void,
}

const _: () = assert!(size_of::<Properties>() == 48 && std::mem::offset_of!(Properties, callback) == 32);

impl Properties {
    /// Bytes of a buffer: at least space for a record and its external id.
    pub(super) fn size(&self) -> usize {
        self.buffer_size.max(2 * SIZE)
    }

    /// Resizes the memory at `before`: from nothing, to nothing, or both.
    pub(super) fn memory(&self, before: *mut c_char, size: usize) -> *mut c_char {
        let mut pointer = before;
        match self.allocate {
            // SAFETY: the program's allocator, called as the interface says.
            Some(allocate) => unsafe { allocate(&raw mut pointer, size, self.allocator_argument) },
            None if size == 0 => {
                // SAFETY: from `malloc`, below.
                unsafe { libc::free(pointer.cast()) };
                pointer = null_mut();
            }
            // SAFETY: takes any size.
            None => pointer = unsafe { libc::malloc(size) }.cast(),
        }
        pointer
    }
}
