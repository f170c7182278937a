//! Shared descriptors of buffers, for virtual memory management and imports.
//!
//! A shared descriptor is an empty memory file of the buffer's size, identified by its inode; the bytes stay in the
//! store. A buffer always has the same GEM handle, because libdrm counts references by it, and lives as long as the
//! handle. Not supported: passing a descriptor to another process, and buffers kept only by a descriptor.

use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kfd::Args;
use crate::memory::Buffer;
use crate::process::Process;
use crate::{sys, topology};

type Answer = Result<(), libc::c_int>;

#[derive(Clone, Copy)]
struct Share {
    identity: (u64, u64),
    buffer: Buffer,
}

/// Shared buffers of a process; a GEM handle is an index in the list, from one.
#[derive(Default)]
pub(crate) struct Shares {
    list: Mutex<Vec<Share>>,
}

impl Shares {
    fn list(&self) -> MutexGuard<'_, Vec<Share>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn by_descriptor(&self, fd: RawFd) -> Result<(u32, Buffer), libc::c_int> {
        let identity = sys::identity(fd).ok_or(libc::EBADF)?;
        let list = self.list();
        // The latest first: the inode of a closed descriptor may be reused.
        let index = list
            .iter()
            .rposition(|share| share.identity == identity)
            .ok_or(libc::EINVAL)?;
        let buffer = list[index].buffer;
        let first = list
            .iter()
            .position(|share| share.buffer.offset == buffer.offset)
            .unwrap_or(index);
        Ok((first as u32 + 1, buffer))
    }

    /// GEM handle of a shared descriptor.
    pub(crate) fn gem(&self, fd: RawFd) -> Result<u32, libc::c_int> {
        self.by_descriptor(fd).map(|(gem, _)| gem)
    }

    /// Buffer of a GEM handle.
    pub(crate) fn buffer(&self, gem: u32) -> Result<Buffer, libc::c_int> {
        let index = (gem as usize).checked_sub(1).ok_or(libc::EINVAL)?;
        self.list().get(index).map(|share| share.buffer).ok_or(libc::EINVAL)
    }
}

/// Exports a buffer as a descriptor.
pub(crate) fn export(process: &Process, args: Args) -> Answer {
    let buffer = process.memory.buffer(args.long(0)).ok_or(libc::EINVAL)?;
    let fd = descriptor(process, buffer, args.word(8))?;
    args.set_word(12, fd as u32);
    Ok(())
}

/// Exports the buffer of a GEM handle as a descriptor, as ROCr 1.21 does to allow access to virtual memory.
pub(crate) fn export_gem(process: &Process, args: Args) -> Answer {
    let buffer = process.shares.buffer(args.word(0))?;
    let fd = descriptor(process, buffer, args.word(4))?;
    args.set_word(8, fd as u32);
    Ok(())
}

/// A further descriptor of a buffer.
fn descriptor(process: &Process, buffer: Buffer, flags: u32) -> Result<RawFd, libc::c_int> {
    let high = sys::memory_file(c"emulated-gpu-buffer", buffer.size);
    let fd = sys::duplicate(high, 0, flags as i32 & libc::O_CLOEXEC != 0);
    sys::close(high);
    let identity = sys::identity(fd).ok_or(libc::EMFILE)?;
    process.shares.list().push(Share { identity, buffer });
    Ok(fd)
}

/// Returns size and GPU of a shared descriptor.
pub(crate) fn describe(process: &Process, args: Args) -> Answer {
    let (_, buffer) = process.shares.by_descriptor(args.word(28) as RawFd)?;
    args.set_long(0, buffer.size);
    args.set_word(16, 0);
    args.set_word(20, topology::gpu_id(buffer.gpu));
    args.set_word(24, buffer.flags);
    Ok(())
}

/// Imports a shared descriptor as a buffer, mapped where the caller says.
pub(crate) fn import(process: &Process, args: Args) -> Answer {
    let (_, shared) = process.shares.by_descriptor(args.word(20) as RawFd)?;
    let address = args.long(0);
    let offset = shared.offset.ok_or(libc::EINVAL)?;
    if address != 0 {
        process
            .memory
            .map_store(address as usize, shared.size as usize, libc::MAP_FIXED, offset);
    }
    // Without an offset, freeing the import leaves the bytes to the owning buffer.
    let import = Buffer {
        address,
        offset: None,
        flags: crate::memory::flag::DOORBELL,
        ..shared
    };
    let (handle, _) = process.memory.allocate(import).ok_or(libc::ENOMEM)?;
    args.set_long(8, handle);
    Ok(())
}
