//! Memory that is allocated, mapped and freed through HSA, including HIP's allocations.
//!
//! A ledger stores what each address or handle holds, so that a free shows its size, and the total of each agent is
//! known. Virtual memory is held until its handle is released and nothing maps it any more.
//!
//! Deliberately not recorded: the run-time's own allocations (queues, code objects, scratch), host memory that is
//! locked or registered, and memory of other processes.

#![expect(unsafe_code, reason = "hooks with the run-time's signatures")]

use super::agent::UNKNOWN;
use super::{Hsa, hook, hsa};
use crate::guard::{Errno, wall};
use crate::state::{self, word};
use crate::{clock, collector, control, process, thread};
use hsa_sys::abi::{Pool, SUCCESS, Status, VmemHandle};
use hsa_sys::table::{
    AmdLayout, MemoryAllocate, MemoryFree, PoolAllocate, Table, VmemCreate, VmemMap, VmemRelease, VmemRetain,
    VmemUnmap, amd_entry, core_entry,
};
use roctop_ring::record::{Allocation, memory};
use roctop_ring::session::wanted;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Memory held at an address or by a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TrackedMemory {
    bytes: u64,
    agent: u32,
    /// References: the handle's, and one per mapping.
    users: u64,
}

/// Memory that the process holds.
#[derive(Default)]
struct Book {
    memory: BTreeMap<u64, TrackedMemory>,
    handles: BTreeMap<u64, TrackedMemory>,
    /// Handles of mapped addresses, and the mapped sizes.
    mapped: BTreeMap<u64, (u64, u64)>,
    /// Bytes by agent.
    totals: BTreeMap<u32, u64>,
}

/// Result of a ledger operation, for the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    address: u64,
    bytes: u64,
    agent: u32,
    total: u64,
}

impl Book {
    fn add(&mut self, agent: u32, bytes: u64) -> u64 {
        let total = self.totals.entry(agent).or_default();
        *total = total.saturating_add(bytes);
        *total
    }

    fn drop(&mut self, held: TrackedMemory) -> u64 {
        let total = self.totals.entry(held.agent).or_default();
        *total = total.saturating_sub(held.bytes);
        *total
    }

    fn total(&self, agent: u32) -> u64 {
        self.totals.get(&agent).copied().unwrap_or(0)
    }

    fn allocate(&mut self, address: u64, bytes: u64, agent: u32) -> Row {
        self.memory.insert(address, TrackedMemory { bytes, agent, users: 1 });
        Row {
            address,
            bytes,
            agent,
            total: self.add(agent, bytes),
        }
    }

    fn free(&mut self, address: u64) -> Row {
        let Some(held) = self.memory.remove(&address) else {
            return unknown(address);
        };
        Row {
            address,
            bytes: held.bytes,
            agent: held.agent,
            total: self.drop(held),
        }
    }

    /// Agent whose memory contains this address, or [`UNKNOWN`].
    fn owner(&self, address: u64) -> u32 {
        let holds = |first: u64, bytes: u64| address - first < bytes;
        if let Some((&first, held)) = self.memory.range(..=address).next_back()
            && holds(first, held.bytes)
        {
            return held.agent;
        }
        let mapped = self.mapped.range(..=address).next_back();
        let mapped = mapped.filter(|(first, (_, bytes))| holds(**first, *bytes));
        let handle = mapped.and_then(|(_, (handle, _))| self.handles.get(handle));
        handle.map_or(UNKNOWN, |held| held.agent)
    }

    fn create(&mut self, handle: u64, bytes: u64, agent: u32) -> Row {
        self.handles.insert(handle, TrackedMemory { bytes, agent, users: 1 });
        Row {
            address: handle,
            bytes,
            agent,
            total: self.add(agent, bytes),
        }
    }

    fn retain(&mut self, handle: u64) {
        if let Some(held) = self.handles.get_mut(&handle) {
            held.users += 1;
        }
    }

    /// Removes a reference to a handle; the last one frees its memory.
    fn release(&mut self, handle: u64) -> Row {
        let Some(held) = self.handles.get_mut(&handle) else {
            return unknown(handle);
        };
        held.users = held.users.saturating_sub(1);
        let held = *held;
        let total = if held.users == 0 {
            self.handles.remove(&handle);
            self.drop(held)
        } else {
            self.total(held.agent)
        };
        Row {
            address: handle,
            bytes: held.bytes,
            agent: held.agent,
            total,
        }
    }

    fn map(&mut self, address: u64, bytes: u64, handle: u64) -> Row {
        let Some(held) = self.handles.get_mut(&handle) else {
            return Row {
                bytes,
                ..unknown(address)
            };
        };
        held.users += 1;
        let agent = held.agent;
        self.mapped.insert(address, (handle, bytes));
        Row {
            address,
            bytes,
            agent,
            total: self.total(agent),
        }
    }

    fn unmap(&mut self, address: u64) -> Row {
        let Some((handle, bytes)) = self.mapped.remove(&address) else {
            return unknown(address);
        };
        Row {
            address,
            bytes,
            ..self.release(handle)
        }
    }
}

fn unknown(address: u64) -> Row {
    Row {
        address,
        agent: UNKNOWN,
        ..Row::default()
    }
}

/// Original functions and ledger of one start of the run-time.
pub(crate) struct Ledger {
    book: Mutex<Book>,
    allocate: MemoryAllocate,
    free: MemoryFree,
    pool_free: MemoryFree,
    vmem: Option<Vmem>,
}

/// Functions of virtual memory: HSA 6.0 and later.
struct Vmem {
    create: VmemCreate,
    release: VmemRelease,
    map: VmemMap,
    unmap: VmemUnmap,
    retain: VmemRetain,
}

impl Ledger {
    pub(crate) fn load(core: Table, amd: Table, layout: AmdLayout) -> Option<Self> {
        let vmem = || {
            // SAFETY: the tables are the run-time's; the entry of each number has its field's type in every release.
            unsafe {
                Some(Vmem {
                    create: amd.typed(layout.entry(amd_entry::VMEM_HANDLE_CREATE)?)?,
                    release: amd.typed(layout.entry(amd_entry::VMEM_HANDLE_RELEASE)?)?,
                    map: amd.typed(layout.entry(amd_entry::VMEM_MAP)?)?,
                    unmap: amd.typed(layout.entry(amd_entry::VMEM_UNMAP)?)?,
                    retain: amd.typed(layout.entry(amd_entry::VMEM_RETAIN)?)?,
                })
            }
        };
        // SAFETY: the tables are the run-time's; the entry of each number has its field's type in every release.
        unsafe {
            Some(Self {
                book: Mutex::default(),
                allocate: core.typed(core_entry::MEMORY_ALLOCATE)?,
                free: core.typed(core_entry::MEMORY_FREE)?,
                pool_free: amd.typed(amd_entry::POOL_FREE)?,
                vmem: vmem(),
            })
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Agents that own these addresses; [`UNKNOWN`] for other memory, or if other threads keep changing the ledger: this
/// does not wait.
pub(crate) fn owners(addresses: [u64; 2]) -> [u32; 2] {
    const TRIES: usize = 64;
    let Some(hsa) = hsa() else { return [UNKNOWN; 2] };
    for _ in 0..TRIES {
        match hsa.memory.book.try_lock() {
            Ok(book) => return addresses.map(|address| book.owner(address)),
            Err(TryLockError::Poisoned(book)) => return addresses.map(|address| book.get_ref().owner(address)),
            Err(TryLockError::WouldBlock) => core::hint::spin_loop(),
        }
    }
    [UNKNOWN; 2]
}

/// Begin of a call; 0 if it is not recorded.
fn began() -> u64 {
    if state::is_on(word::HSA) { clock::now() } else { 0 }
}

/// Enters a successful call into the ledger, and records it if requested.
fn done(hsa: &Hsa, start: u64, operation: u16, enter: impl FnOnce(&mut Book) -> Row) {
    if start == 0 || !state::is_on(word::HSA) {
        return;
    }
    wall((), || {
        let _errno = Errno::keep();
        let end = clock::now();
        let row = enter(&mut hsa.memory.book());
        if !control::is_wanted(wanted::MEMORY) {
            return;
        }
        let Some(thread) = thread::current() else { return };
        let record = Allocation {
            start,
            end,
            correlation: thread.current.get(),
            address: row.address,
            bytes: row.bytes,
            total: row.total,
            agent: row.agent,
            operation,
            reserved: 0,
        };
        collector::allocation(&record);
    });
}

/// Agent of a pool; a region's handle is that of its pool.
fn owner(hsa: &Hsa, pool: Pool) -> u32 {
    wall(UNKNOWN, || {
        if let Some(process) = process::get() {
            hsa.agents.discover(hsa, process);
        }
        hsa.agents.of_pool(hsa, pool)
    })
}

/// Value that a successful call wrote; default for a null pointer.
fn written<T: Copy + Default>(place: *const T) -> T {
    // SAFETY: the call succeeded, so the program's place is valid and was written.
    unsafe { place.as_ref() }.copied().unwrap_or_default()
}

unsafe extern "C" fn allocate(region: Pool, bytes: usize, out: *mut *mut c_void) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let start = began();
    // SAFETY: the caller's own arguments.
    let status = unsafe { (hsa.memory.allocate)(region, bytes, out) };
    if status == SUCCESS && start != 0 {
        let agent = owner(hsa, region);
        done(hsa, start, memory::ALLOCATE, |book| {
            book.allocate(written(out.cast::<u64>()), bytes as u64, agent)
        });
    }
    status
}

unsafe extern "C" fn pool_allocate(pool: Pool, bytes: usize, flags: u32, out: *mut *mut c_void) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let start = began();
    // SAFETY: the caller's own arguments.
    let status = unsafe { (hsa.amd.pool_allocate)(pool, bytes, flags, out) };
    if status == SUCCESS && start != 0 {
        let agent = owner(hsa, pool);
        done(hsa, start, memory::ALLOCATE, |book| {
            book.allocate(written(out.cast::<u64>()), bytes as u64, agent)
        });
    }
    status
}

/// Frees memory with `original`. Another thread may get the address at once, so it is removed from the ledger before
/// the call, and entered again if the call fails.
unsafe fn free_by(original: impl FnOnce(&Hsa) -> MemoryFree, address: *mut c_void) -> Status {
    let Some(hsa) = hsa() else { return 0x1000 };
    let start = began();
    let is_known = start != 0 && !address.is_null();
    let row = is_known
        .then(|| wall(None, || Some(hsa.memory.book().free(address as u64))))
        .flatten();
    // SAFETY: the caller's own argument.
    let status = unsafe { original(hsa)(address) };
    match row {
        Some(row) if status == SUCCESS => done(hsa, start, memory::FREE, |_| row),
        Some(row) if row.agent != UNKNOWN || row.bytes != 0 => wall((), || {
            hsa.memory.book().allocate(row.address, row.bytes, row.agent);
        }),
        _ => {}
    }
    status
}

unsafe extern "C" fn free(address: *mut c_void) -> Status {
    // SAFETY: the caller's own argument.
    unsafe { free_by(|hsa| hsa.memory.free, address) }
}

unsafe extern "C" fn pool_free(address: *mut c_void) -> Status {
    // SAFETY: the caller's own argument.
    unsafe { free_by(|hsa| hsa.memory.pool_free, address) }
}

/// The run-time and its functions of virtual memory; the hooks exist only if both do.
fn vmem() -> Option<(&'static Hsa, &'static Vmem)> {
    let hsa = hsa()?;
    Some((hsa, hsa.memory.vmem.as_ref()?))
}

unsafe extern "C" fn create(pool: Pool, bytes: usize, kind: i32, flags: u64, out: *mut VmemHandle) -> Status {
    let Some((hsa, vmem)) = vmem() else { return 0x1000 };
    let start = began();
    // SAFETY: the caller's own arguments.
    let status = unsafe { (vmem.create)(pool, bytes, kind, flags, out) };
    if status == SUCCESS && start != 0 {
        let agent = owner(hsa, pool);
        done(hsa, start, memory::VMEM_ALLOCATE, |book| {
            book.create(written(out), bytes as u64, agent)
        });
    }
    status
}

unsafe extern "C" fn release(handle: VmemHandle) -> Status {
    let Some((hsa, vmem)) = vmem() else { return 0x1000 };
    let start = began();
    // SAFETY: the caller's own argument.
    let status = unsafe { (vmem.release)(handle) };
    if status == SUCCESS {
        done(hsa, start, memory::VMEM_FREE, |book| book.release(handle));
    }
    status
}

unsafe extern "C" fn map(address: *mut c_void, bytes: usize, offset: usize, handle: VmemHandle, flags: u64) -> Status {
    let Some((hsa, vmem)) = vmem() else { return 0x1000 };
    let start = began();
    // SAFETY: the caller's own arguments.
    let status = unsafe { (vmem.map)(address, bytes, offset, handle, flags) };
    if status == SUCCESS {
        done(hsa, start, memory::VMEM_MAP, |book| {
            book.map(address as u64, bytes as u64, handle)
        });
    }
    status
}

unsafe extern "C" fn unmap(address: *mut c_void, bytes: usize) -> Status {
    let Some((hsa, vmem)) = vmem() else { return 0x1000 };
    let start = began();
    // SAFETY: the caller's own arguments.
    let status = unsafe { (vmem.unmap)(address, bytes) };
    if status == SUCCESS {
        done(hsa, start, memory::VMEM_UNMAP, |book| book.unmap(address as u64));
    }
    status
}

/// Returns the handle of a mapped address to the program once more.
unsafe extern "C" fn retain(out: *mut VmemHandle, address: *mut c_void) -> Status {
    let Some((hsa, vmem)) = vmem() else { return 0x1000 };
    // SAFETY: the caller's own arguments.
    let status = unsafe { (vmem.retain)(out, address) };
    if status == SUCCESS && state::is_on(word::HSA) {
        wall((), || hsa.memory.book().retain(written(out)));
    }
    status
}

pub(crate) fn patch(core: Table, amd: Table, hsa: &Hsa) {
    hook(
        core,
        core_entry::MEMORY_ALLOCATE,
        allocate as MemoryAllocate as *mut c_void,
    );
    hook(core, core_entry::MEMORY_FREE, free as MemoryFree as *mut c_void);
    hook(
        amd,
        amd_entry::POOL_ALLOCATE,
        pool_allocate as PoolAllocate as *mut c_void,
    );
    hook(amd, amd_entry::POOL_FREE, pool_free as MemoryFree as *mut c_void);
    if hsa.memory.vmem.is_none() {
        return;
    }
    let hooks = [
        (amd_entry::VMEM_HANDLE_CREATE, create as VmemCreate as *mut c_void),
        (amd_entry::VMEM_HANDLE_RELEASE, release as VmemRelease as *mut c_void),
        (amd_entry::VMEM_MAP, map as VmemMap as *mut c_void),
        (amd_entry::VMEM_UNMAP, unmap as VmemUnmap as *mut c_void),
        (amd_entry::VMEM_RETAIN, retain as VmemRetain as *mut c_void),
    ];
    for (entry, function) in hooks {
        if let Some(entry) = hsa.layout.entry(entry) {
            hook(amd, entry, function);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_what_holds_it() {
        let mut book = Book::default();
        book.allocate(0x1000, 0x100, 1);
        book.allocate(0x1100, 0x100, 2);
        book.create(7, 0x100, 3);
        book.map(0x9000, 0x100, 7);
        for (address, agent) in [
            (0xfff, UNKNOWN),
            (0x1000, 1),
            (0x10ff, 1),
            (0x1100, 2),
            (0x1200, UNKNOWN),
            (0x90ff, 3),
            (0x9100, UNKNOWN),
        ] {
            assert_eq!(book.owner(address), agent, "{address:#x}");
        }
    }

    #[test]
    fn virtual_memory_is_held_until_it_is_released_and_unmapped() {
        let mut book = Book::default();
        book.allocate(0x1000, 10, 1);
        assert_eq!(book.create(7, 100, 1).total, 110);
        book.map(0x9000, 100, 7);
        book.map(0xa000, 100, 7);
        assert_eq!(book.release(7).total, 110, "still mapped");
        assert_eq!(book.unmap(0x9000).total, 110);
        assert_eq!(book.unmap(0xa000).total, 10);
        assert_eq!(book.unmap(0xa000).agent, UNKNOWN);
        assert_eq!(
            book.free(0x1000),
            Row {
                address: 0x1000,
                bytes: 10,
                agent: 1,
                total: 0
            }
        );
        assert_eq!(book.free(0x1000).bytes, 0, "a second free holds nothing");
    }
}
