//! State of the driver for one process: devices, memory, events, queues and the log.
//!
//! It is created by the first open of a fake device and never freed. A forked child finds the parent's state with
//! another pid and creates its own: the parent's locks and engine threads do not exist there. Not supported: sharing
//! between processes, which only inter-process memory handles would need.
#![expect(
    unsafe_code,
    reason = "the state lives behind a leaked pointer that a fork can replace"
)]

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::dmabuf::Shares;
use crate::engine::Engines;
use crate::event::{Events, Kind};
use crate::fault::Eviction;
use crate::memory::Memory;
use crate::model::model;
use crate::path::Device;
use crate::truth_log::{Line, TruthLog};
use crate::{clock, sys, trace};

/// State of the emulated driver for a process.
pub(crate) struct Process {
    /// Pid of the process.
    pub(crate) pid: i32,
    /// Buffers, aliases and the store behind them.
    pub(crate) memory: Memory,
    /// Events that the host waits for.
    pub(crate) events: Events,
    /// Buffers that have descriptors.
    pub(crate) shares: Shares,
    /// Queues and the threads that serve them.
    pub(crate) engines: Engines,
    /// The truth log, if requested.
    pub(crate) log: Option<TruthLog>,
    /// Raw time when other processes release the GPU's compute units.
    pub(crate) free: u64,
    evictions: AtomicU64,
    devices: Vec<Node>,
}

/// Duration in the log of a stop without an end: one hour, ns.
const LONGEST_STOP_NS: u64 = 3_600_000_000_000;

struct Node {
    device: Device,
    fd: RawFd,
    identity: (u64, u64),
}

static CURRENT: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

fn stored() -> Option<&'static Process> {
    // Acquire: pairs with the exchange in `open`, which publishes the complete state.
    let pointer = CURRENT.load(Ordering::Acquire);
    // SAFETY: the pointer is null or a leaked box that is only ever read through shared references.
    unsafe { pointer.as_ref() }
}

/// State of this process, if a device was opened in it.
pub(crate) fn current() -> Option<&'static Process> {
    stored().filter(|process| process.pid == sys::process_id())
}

/// State of this process, created if needed.
pub(crate) fn open() -> &'static Process {
    loop {
        if let Some(process) = current() {
            return process;
        }
        let old = CURRENT.load(Ordering::Acquire);
        let new = Box::into_raw(Box::new(Process::new()));
        let exchange = CURRENT.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire);
        // The parent's state in a forked child, or our own if another thread's was first: nobody uses its files.
        let unused = if exchange.is_ok() { old } else { new };
        // SAFETY: both are null or leaked boxes, never freed.
        if let Some(process) = unsafe { unused.as_ref() } {
            process.close_descriptors();
        }
    }
}

impl Process {
    fn new() -> Self {
        let pid = sys::process_id();
        crate::twin::library();
        let mut devices = vec![Node::new(Device::Kfd)];
        for gpu in 0..model().gpus {
            let minor = crate::sysfs::FIRST_RENDER + gpu;
            devices.push(Node::new(Device::Render { gpu, minor }));
            devices.push(Node::new(Device::Render { gpu, minor: gpu }));
        }
        Self {
            pid,
            memory: Memory::new(model()),
            events: Events::default(),
            shares: Shares::default(),
            engines: Engines::new(model().gpus),
            log: model().log.as_ref().and_then(|path| TruthLog::open(path, pid)),
            free: clock::now() + model().faults.busy.as_nanos() as u64,
            evictions: AtomicU64::new(0),
            devices,
        }
    }

    /// Called before pages of the program are unmapped. If a GPU knows them as user memory, queues stop. Returns
    /// whether it does.
    pub(crate) fn unmap(&self, how: &'static str, address: u64, len: u64) -> bool {
        let Some(buffer) = self.memory.user_pages(address, len) else {
            return false;
        };
        let eviction = model().faults.eviction;
        let stop = self.engines.evict(eviction);
        let line = Line {
            kind: "eviction",
            index: self.evictions.fetch_add(1, Ordering::Relaxed),
            begin: stop.begin,
            end: stop.end.min(stop.begin + LONGEST_STOP_NS),
            bytes: len,
            source: address,
            target: buffer.address,
            name: if stop.is_busy { "busy" } else { "idle" },
            gpu: buffer.gpu,
            ..Line::default()
        };
        if let Some(log) = &self.log {
            clock::refresh(stop.begin);
            let mut text = Vec::new();
            log.format(&line, &mut text);
            log.write(&text);
        }
        trace::note(|| format!("{} {how} {address:#x} {len:#x}\n", self.pid));
        if eviction == Eviction::Reset && stop.end == u64::MAX {
            self.events.set_all(Kind::HardwareException);
        }
        true
    }

    /// A new descriptor of a device, as returned by `open`.
    pub(crate) fn open_device(&self, device: Device, flags: libc::c_int) -> RawFd {
        let Some(node) = self.devices.iter().find(|node| node.device == device) else {
            return sys::fail(libc::ENOENT);
        };
        sys::duplicate(node.fd, 0, flags & libc::O_CLOEXEC != 0)
    }

    /// The device of a descriptor, also of a duplicate.
    pub(crate) fn device_of(&self, fd: RawFd) -> Option<Device> {
        let identity = sys::identity(fd)?;
        self.device_of_identity(identity)
    }

    /// The device with this file system device and inode.
    pub(crate) fn device_of_identity(&self, identity: (u64, u64)) -> Option<Device> {
        self.devices
            .iter()
            .find(|node| node.identity == identity)
            .map(|node| node.device)
    }

    fn close_descriptors(&self) {
        for node in &self.devices {
            sys::close(node.fd);
        }
        self.memory.close_descriptors();
        if let Some(log) = &self.log {
            sys::close(log.descriptor());
        }
    }
}

impl Node {
    fn new(device: Device) -> Self {
        let fd = sys::memory_file(c"emulated-gpu-device", 0);
        Self {
            device,
            fd,
            identity: sys::identity(fd).unwrap_or_default(),
        }
    }
}
