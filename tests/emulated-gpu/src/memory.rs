//! Buffers of the emulated GPU: one sparse store for all, mapped where the run-time wants them.
//!
//! A buffer is a range of the store; its `mmap` offset is its position there. GPU memory is always mapped readable and
//! writable, so that engines use GPU addresses as pointers. User memory registered at another address goes through a
//! table of aliases. Not modelled: page tables, hence page faults; a size limit.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use crate::holding;
use crate::model::Model;
use crate::path::Device;
use crate::sys;

const PAGE: u64 = 4096;
const STORE_BYTES: u64 = 1 << 42;
/// Offset of the first buffer: zero would look like no offset.
const STORE_START: u64 = 1 << 21;
/// Size of a doorbell page: 1024 doorbells of eight bytes.
pub(crate) const DOORBELL_BYTES: u64 = 8192;

/// Allocation flags.
pub(crate) mod flag {
    /// Memory of the GPU.
    pub(crate) const VRAM: u32 = 1;
    /// User memory at another address.
    pub(crate) const USERPTR: u32 = 4;
    /// The page of doorbells.
    pub(crate) const DOORBELL: u32 = 8;
    /// Memory that the GPU does not cache.
    pub(crate) const UNCACHED: u32 = 1 << 25;
}

/// An allocation.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    /// GPU address, zero if it is mapped later.
    pub(crate) address: u64,
    /// Size in bytes, whole pages.
    pub(crate) size: u64,
    /// Offset in the store; `None` for user memory and doorbells.
    pub(crate) offset: Option<u64>,
    /// Address of user memory in the program, else zero.
    pub(crate) host: u64,
    /// Requested flags.
    pub(crate) flags: u32,
    /// Index of its GPU.
    pub(crate) gpu: u32,
}

#[derive(Default)]
struct Table {
    next_handle: u64,
    buffers: BTreeMap<u64, Buffer>,
    /// Handle by address, to find the code object of a kernel.
    by_address: BTreeMap<u64, u64>,
}

/// The memory of a process.
pub(crate) struct Memory {
    store: RawFd,
    next_offset: AtomicU64,
    table: Mutex<Table>,
    /// GPU address to size and host address.
    aliases: RwLock<BTreeMap<u64, (u64, u64)>>,
    has_aliases: AtomicBool,
    doorbells: Vec<(u64, usize)>,
    /// Offsets of buffers to which a render node has a handle, and what was freed there.
    held: Mutex<BTreeMap<u64, Option<Buffer>>>,
    /// File pages mapped over user memory: end by start.
    files: RwLock<BTreeMap<u64, u64>>,
    has_files: AtomicBool,
    has_shared_pools: bool,
    capacity: u64,
    used: Vec<AtomicU64>,
    frees: AtomicU64,
}

/// Maps shared pages under new pool memory, as some releases' thunk does. Memory that has pages already belongs to a
/// program and is left alone.
fn share(buffer: Buffer) {
    let (address, len) = (buffer.address as usize, buffer.size as usize);
    let mut pages = vec![0_u8; (buffer.size / PAGE) as usize];
    let known = sys::call(libc::SYS_mincore, [address, len, pages.as_mut_ptr() as usize, 0, 0, 0]);
    if known == 0 && pages.iter().all(|page| page & 1 == 0) {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        sys::map(address, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
    }
}

fn whole_pages(size: u64) -> u64 {
    size.max(1).next_multiple_of(PAGE)
}

impl Memory {
    /// An empty store with a doorbell page for each GPU.
    pub(crate) fn new(model: &Model) -> Self {
        let mut memory = Self {
            store: sys::memory_file(c"emulated-gpu-store", STORE_BYTES),
            next_offset: AtomicU64::new(STORE_START),
            table: Mutex::default(),
            aliases: RwLock::default(),
            has_aliases: AtomicBool::new(false),
            doorbells: Vec::new(),
            held: Mutex::default(),
            files: RwLock::default(),
            has_files: AtomicBool::new(false),
            has_shared_pools: model.faults.has_shared_pools,
            capacity: model.vram,
            used: (0..model.gpus).map(|_| AtomicU64::new(0)).collect(),
            frees: AtomicU64::new(0),
        };
        for _ in 0..model.gpus {
            let offset = memory.reserve(DOORBELL_BYTES);
            let view = memory.map_store(0, DOORBELL_BYTES as usize, 0, offset);
            memory.doorbells.push((offset, view));
        }
        memory
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve(&self, size: u64) -> u64 {
        self.next_offset.fetch_add(whole_pages(size), Ordering::Relaxed)
    }

    /// Maps a part of the store, readable and writable, not inherited by a forked child.
    pub(crate) fn map_store(&self, address: usize, len: usize, flags: libc::c_int, offset: u64) -> usize {
        let flags = (flags & !(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)) | libc::MAP_SHARED;
        let place = sys::map(
            address,
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            self.store,
            offset,
        );
        if place != usize::MAX {
            sys::advise(place, len, libc::MADV_DONTFORK);
        }
        place
    }

    /// Handles `mmap` of a device file.
    pub(crate) fn map_device(&self, device: Device, address: usize, len: usize, flags: i32, offset: u64) -> usize {
        let kind = offset >> 62;
        if device == Device::Kfd && kind == 3 {
            let id = (offset >> 46) as u32 & 0xffff;
            let Some((page, _)) = crate::topology::gpu_of(id).and_then(|gpu| self.doorbells.get(gpu as usize)) else {
                sys::fail(libc::EINVAL);
                return usize::MAX;
            };
            return self.map_store(address, len, flags, *page);
        }
        self.map_store(address, len, flags, offset)
    }

    /// The library's own mapping of a doorbell.
    pub(crate) fn doorbell(&self, gpu: u32, slot: u64) -> u64 {
        self.doorbells[gpu as usize].1 as u64 + slot * 8
    }

    /// Allocates a buffer; returns its handle and `mmap` offset.
    pub(crate) fn allocate(&self, mut buffer: Buffer) -> Option<(u64, u64)> {
        buffer.size = whole_pages(buffer.size);
        let mut map_offset = buffer.host;
        if buffer.flags & flag::USERPTR != 0 {
            if buffer.host == buffer.address && self.has_shared_pools {
                share(buffer);
            }
            if buffer.host != 0 && buffer.host != buffer.address {
                self.add_alias(buffer, buffer.host);
            }
        } else if buffer.flags & flag::DOORBELL == 0 {
            if buffer.flags & flag::VRAM != 0 && !self.take(buffer) {
                return None;
            }
            map_offset = self.reserve(buffer.size);
            buffer.offset = Some(map_offset);
        }
        let mut table = self.table();
        table.next_handle += 1;
        let handle = (u64::from(crate::topology::gpu_id(buffer.gpu)) << 32) | table.next_handle;
        table.buffers.insert(handle, buffer);
        if buffer.address != 0 {
            table.by_address.insert(buffer.address, handle);
        }
        Some((handle, map_offset))
    }

    fn take(&self, buffer: Buffer) -> bool {
        let used = &self.used[buffer.gpu as usize];
        // Relaxed: a statistic that orders nothing else.
        let now = used.fetch_add(buffer.size, Ordering::Relaxed) + buffer.size;
        if now <= self.capacity {
            holding::publish(buffer.gpu, now);
            return true;
        }
        used.fetch_sub(buffer.size, Ordering::Relaxed);
        false
    }

    fn add_alias(&self, buffer: Buffer, host: u64) {
        let mut aliases = self.aliases.write().unwrap_or_else(PoisonError::into_inner);
        aliases.insert(buffer.address, (buffer.size, host));
        // Release: pairs with the Acquire in `host`; the entry is protected by the lock anyway.
        self.has_aliases.store(true, Ordering::Release);
    }

    /// Frees a buffer and its pages, unless a render node has a handle to it.
    pub(crate) fn free(&self, handle: u64) -> bool {
        let mut table = self.table();
        let Some(buffer) = table.buffers.remove(&handle) else {
            return false;
        };
        if table.by_address.get(&buffer.address) == Some(&handle) {
            table.by_address.remove(&buffer.address);
        }
        drop(table);
        if buffer.flags & flag::USERPTR != 0 {
            self.aliases
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&buffer.address);
        }
        if let Some(offset) = buffer.offset {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            match held.get_mut(&offset) {
                Some(freed) => *freed = Some(buffer),
                None => self.release(buffer, offset),
            }
        }
        self.frees.fetch_add(1, Ordering::Release);
        true
    }

    fn release(&self, buffer: Buffer, offset: u64) {
        let mode = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as usize;
        let args = [self.store as usize, mode, offset as usize, buffer.size as usize, 0, 0];
        sys::call(libc::SYS_fallocate, args);
        if buffer.flags & flag::VRAM != 0 {
            let before = self.used[buffer.gpu as usize].fetch_sub(buffer.size, Ordering::Relaxed);
            holding::publish(buffer.gpu, before.saturating_sub(buffer.size));
        }
    }

    /// A render node has a handle to a buffer: its pages outlive the buffer.
    pub(crate) fn hold(&self, buffer: Buffer) {
        if let Some(offset) = buffer.offset {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.entry(offset).or_insert(None);
        }
    }

    /// The render node's handle is closed: the pages of a freed buffer are freed.
    pub(crate) fn let_go(&self, buffer: Buffer) {
        let Some(offset) = buffer.offset else { return };
        let freed = self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&offset);
        if let Some(Some(buffer)) = freed {
            self.release(buffer, offset);
        }
    }

    /// Number of frees, so that data derived from buffers can be dropped.
    pub(crate) fn generation(&self) -> u64 {
        self.frees.load(Ordering::Acquire)
    }

    /// The buffer of a handle.
    pub(crate) fn buffer(&self, handle: u64) -> Option<Buffer> {
        self.table().buffers.get(&handle).copied()
    }

    /// Buffer that contains a GPU address.
    pub(crate) fn around(&self, address: u64) -> Option<Buffer> {
        let table = self.table();
        let (_, handle) = table.by_address.range(..=address).next_back()?;
        let buffer = *table.buffers.get(handle)?;
        (address - buffer.address < buffer.size).then_some(buffer)
    }

    /// Allocation that contains an address in host memory that the GPU may cache: one without UNCACHED.
    pub(crate) fn cacheable(&self, address: u64) -> Option<Buffer> {
        self.around(address)
            .filter(|buffer| buffer.flags & (flag::VRAM | flag::DOORBELL | flag::UNCACHED) == 0)
    }

    /// Buffer of user memory with pages in a range of the program's addresses.
    pub(crate) fn user_pages(&self, address: u64, len: u64) -> Option<Buffer> {
        let table = self.table();
        let mut users = table
            .buffers
            .values()
            .filter(|buffer| buffer.flags & flag::USERPTR != 0);
        let end = address.saturating_add(len);
        let found = users.find(|buffer| buffer.host < end && address < buffer.host + buffer.size);
        found.copied()
    }

    /// Records whether a range of the program's addresses has file pages from now on.
    pub(crate) fn set_file(&self, address: u64, len: u64, is_file: bool) {
        if !is_file && !self.has_files.load(Ordering::Acquire) {
            return;
        }
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        let end = address.saturating_add(len);
        files.retain(|start, other| *other <= address || end <= *start);
        if is_file {
            files.insert(address, end);
            self.has_files.store(true, Ordering::Release);
        }
    }

    /// Whether file pages were mapped over the user memory at an address.
    pub(crate) fn is_file(&self, address: u64) -> bool {
        if !self.has_files.load(Ordering::Acquire) {
            return false;
        }
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files
            .range(..=address)
            .next_back()
            .is_some_and(|(_, end)| address < *end)
    }

    /// Host address of a GPU address.
    pub(crate) fn host(&self, address: u64) -> u64 {
        if !self.has_aliases.load(Ordering::Acquire) {
            return address;
        }
        let aliases = self.aliases.read().unwrap_or_else(PoisonError::into_inner);
        match aliases.range(..=address).next_back() {
            Some((start, (size, host))) if address - start < *size => host + (address - start),
            _ => address,
        }
    }

    /// Bytes of a GPU that are not allocated.
    pub(crate) fn available(&self, gpu: u32) -> u64 {
        let used = self
            .used
            .get(gpu as usize)
            .map_or(0, |used| used.load(Ordering::Relaxed));
        self.capacity.saturating_sub(used)
    }

    /// Closes the store in a forked child.
    pub(crate) fn close_descriptors(&self) {
        sys::close(self.store);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest;
    use crate::model::model;

    fn user(host: u64, size: u64) -> Buffer {
        Buffer {
            address: host,
            size,
            offset: None,
            host,
            flags: flag::USERPTR,
            gpu: 0,
        }
    }

    #[test]
    fn user_memory_is_found_by_any_page_until_it_is_freed() {
        let memory = Memory::new(model());
        let (handle, _) = memory.allocate(user(0x10_000, 0x2000)).unwrap();
        let is_user = |address, len| memory.user_pages(address, len).is_some();
        assert!(is_user(0x11_000, 0x1000) && is_user(0xf000, 0x1001) && is_user(0, u64::MAX));
        assert!(!is_user(0xf000, 0x1000) && !is_user(0x12_000, 0x1000));
        memory.free(handle);
        assert!(!is_user(0x11_000, 0x1000));
    }

    #[test]
    fn pages_are_a_files_until_they_go() {
        let memory = Memory::new(model());
        memory.set_file(0x10_000, 0x2000, true);
        assert!(memory.is_file(0x10_000) && memory.is_file(0x11_fff) && !memory.is_file(0x12_000));
        memory.set_file(0x11_000, 0x1000, false);
        assert!(!memory.is_file(0x10_000));
    }

    #[test]
    fn a_buffer_lives_until_its_render_handle_is_closed() {
        let memory = Memory::new(model());
        let before = memory.available(0);
        let buffer = Buffer {
            address: 0,
            size: PAGE,
            offset: None,
            host: 0,
            flags: flag::VRAM,
            gpu: 0,
        };
        let (handle, offset) = memory.allocate(buffer).unwrap();
        let buffer = memory.buffer(handle).unwrap();
        let place = memory.map_store(0, PAGE as usize, 0, offset) as u64;
        memory.hold(buffer);
        guest::write(place, 7_u64);
        assert!(memory.free(handle));
        assert_eq!((guest::read::<u64>(place), memory.available(0)), (7, before - PAGE));
        memory.let_go(buffer);
        assert_eq!((guest::read::<u64>(place), memory.available(0)), (0, before));
        memory.let_go(buffer);
        assert_eq!(memory.available(0), before);
    }

    /// Permissions and file of the mapping at an address.
    fn mapping(address: u64) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let start = format!("{address:x}-");
        maps.lines().find(|line| line.starts_with(&start)).unwrap().to_owned()
    }

    #[test]
    fn only_fresh_pool_memory_is_mapped_shared() {
        let (prot, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        let place = sys::map(0, 3 * PAGE as usize, prot, flags, -1, 0) as u64;
        guest::write(place + 2 * PAGE, 7_u64);
        share(user(place + PAGE, 2 * PAGE));
        assert_eq!(guest::read::<u64>(place + 2 * PAGE), 7);
        share(user(place, PAGE));
        let line = mapping(place);
        assert!(
            line.contains(" rw-s ") && line.ends_with("/dev/zero (deleted)"),
            "{line}"
        );
    }
}
