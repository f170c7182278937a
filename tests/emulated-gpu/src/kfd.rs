//! The ioctls of `/dev/kfd`.
//!
//! They are identified by number alone, because the argument structures grow at their ends between releases. Calls
//! without use in the emulation return success; the debugger's interface is refused.

use std::time::Duration;

use crate::engine::Creation;
use crate::event::{Awaited, Kind, Need, Outcome};
use crate::memory::{Buffer, flag};
use crate::model::model;
use crate::process::Process;
use crate::{clock, dmabuf, guest, topology};

type Answer = Result<(), libc::c_int>;

/// Argument structure of an ioctl, accessed by offset.
#[derive(Clone, Copy)]
pub(crate) struct Args(pub(crate) u64);

impl Args {
    pub(crate) fn word(self, offset: u64) -> u32 {
        guest::read(self.0 + offset)
    }

    pub(crate) fn long(self, offset: u64) -> u64 {
        guest::read(self.0 + offset)
    }

    pub(crate) fn set_word(self, offset: u64, value: u32) {
        guest::write(self.0 + offset, value);
    }

    pub(crate) fn set_long(self, offset: u64, value: u64) {
        guest::write(self.0 + offset, value);
    }

    /// GPU whose id is at an offset.
    pub(crate) fn gpu(self, offset: u64) -> Result<u32, libc::c_int> {
        let gpu = topology::gpu_of(self.word(offset)).filter(|gpu| *gpu < model().gpus);
        gpu.ok_or(libc::EINVAL)
    }
}

/// Answers an ioctl of `/dev/kfd`.
pub(crate) fn ioctl(process: &'static Process, number: u32, args: Args) -> Answer {
    match number {
        0x01 => {
            args.set_word(0, 1);
            args.set_word(4, model().kfd_minor);
        }
        0x02 => create_queue(process, args)?,
        0x03 => return process.engines.destroy(args.word(0)).then_some(()).ok_or(libc::EINVAL),
        0x05 => clock_counters(args),
        0x08 => create_event(process, args)?,
        0x09 => return process.events.destroy(args.word(0)).then_some(()).ok_or(libc::EINVAL),
        0x0a => return process.events.set(args.word(0)).then_some(()).ok_or(libc::EINVAL),
        0x0b => return process.events.reset(args.word(0)).then_some(()).ok_or(libc::EINVAL),
        0x0c => wait_events(process, args)?,
        0x12 => {
            args.set_word(16, 0);
            args.set_word(20, 0);
            args.set_word(28, 0x2a11_4042);
            args.set_word(32, 0);
            args.set_word(36, 0);
        }
        0x14 => apertures(args),
        0x16 => allocate(process, args)?,
        0x17 => return process.memory.free(args.long(0)).then_some(()).ok_or(libc::EINVAL),
        0x18 | 0x19 => args.set_word(20, args.word(16)),
        0x1c => dmabuf::describe(process, args)?,
        0x1d => dmabuf::import(process, args)?,
        0x1e => args.set_word(8, 0),
        // Retry faults: off, and they stay off.
        0x21 if args.word(0) as i32 > 0 => return Err(libc::EPERM),
        0x21 => args.set_word(0, 0),
        0x23 => args.set_long(0, process.memory.available(args.gpu(8)?)),
        0x24 => dmabuf::export(process, args)?,
        0x20 => svm_attributes(args),
        // Memory policy, update of a queue, scratch, trap handler, virtual memory of a process, masks, run-time state.
        0x04 | 0x07 | 0x11 | 0x13 | 0x15 | 0x1a | 0x25 => {}
        _ => return Err(libc::EINVAL),
    }
    Ok(())
}

/// Shared virtual memory: attributes are not stored, so a query returns none and leaves the caller's value unchanged.
fn svm_attributes(args: Args) {
    const GET: u32 = 1;
    const PREFERRED: u32 = 0;
    const PREFETCH: u32 = 1;
    const UNDEFINED: u32 = u32::MAX;
    if args.word(16) != GET {
        return;
    }
    for at in (0..u64::from(args.word(20))).map(|index| 24 + 8 * index) {
        if matches!(args.word(at), PREFERRED | PREFETCH) {
            args.set_word(at + 4, UNDEFINED);
        }
    }
}

fn create_queue(process: &'static Process, args: Args) -> Answer {
    let gpu = args.gpu(36)?;
    if model().copy_engines == 0 && matches!(args.word(40), 1 | 3) {
        return Err(libc::ENOMEM);
    }
    let creation = Creation {
        ring: args.long(0),
        write: args.long(8),
        read: args.long(16),
        bytes: args.word(32).into(),
        kind: args.word(40),
        gpu,
    };
    let (id, slot) = process.engines.create(process, creation).ok_or(libc::EINVAL)?;
    args.set_long(24, (3 << 62) | (u64::from(topology::gpu_id(gpu)) << 46) | (slot * 8));
    args.set_word(52, id);
    Ok(())
}

fn clock_counters(args: Args) {
    let (raw, boot) = clock::pair();
    args.set_long(0, clock::ticks(raw));
    args.set_long(8, raw);
    args.set_long(16, boot);
    args.set_long(24, 1_000_000_000);
}

fn create_event(process: &Process, args: Args) -> Answer {
    const HARDWARE_EXCEPTION: u32 = 3;
    let kind = match args.word(12) {
        HARDWARE_EXCEPTION => Kind::HardwareException,
        _ => Kind::Usual,
    };
    let id = process.events.create(kind, args.word(16) != 0).ok_or(libc::ENOSPC)?;
    args.set_long(0, 2 << 62);
    args.set_word(8, id);
    args.set_word(24, id);
    args.set_word(28, id);
    Ok(())
}

/// Size of a `kfd_event_data`, and the offset of its id.
const EVENT_DATA: u64 = 48;
const EVENT_DATA_ID: u64 = 40;

fn wait_events(process: &Process, args: Args) -> Answer {
    let (list, count) = (args.long(0), args.word(8));
    let place = |index: u32| list + u64::from(index) * EVENT_DATA;
    let mut awaited: Vec<Awaited> = (0..count)
        .map(|index| Awaited::new(guest::read(place(index) + EVENT_DATA_ID), guest::read(place(index))))
        .collect();
    let need = if args.word(12) != 0 { Need::All } else { Need::Any };
    let timeout = (args.word(16) != u32::MAX).then(|| Duration::from_millis(args.word(16).into()));
    // The host is about to sleep, so it has probably submitted work.
    process.engines.kick();
    let outcome = process.events.wait(&mut awaited, need, timeout);
    for (index, one) in (0..).zip(&awaited) {
        if one.done && process.events.kind(one.id) == Some(Kind::HardwareException) {
            tell_reset(Args(place(index)));
        } else if one.seen_age != 0 {
            guest::write(place(index), one.seen_age);
        }
    }
    match outcome {
        Outcome::Complete => args.set_word(20, 0),
        Outcome::Timeout => args.set_word(20, 1),
        Outcome::Unknown => return Err(libc::EINVAL),
    }
    Ok(())
}

/// The whole GPU hung and was reset; its memory is lost.
fn tell_reset(data: Args) {
    for (offset, value) in [(0, 0), (4, 0), (8, 1), (12, topology::gpu_id(0))] {
        data.set_word(offset, value);
    }
}

/// An aperture entry: local and private memory in the unused half of the address space, the rest as the host sees it.
fn apertures(args: Args) {
    const ENTRY: u64 = 56;
    const FOUR_GIB: u64 = 1 << 32;
    let (list, room) = (args.long(0), args.word(8));
    for gpu in 0..room.min(model().gpus) {
        let entry = Args(list + u64::from(gpu) * ENTRY);
        let bounds = [
            (0x1_0000_0000_0000, 0x1_0000_0000_0000 + FOUR_GIB - 1),
            (0x2_0000_0000_0000, 0x2_0000_0000_0000 + FOUR_GIB - 1),
            (0x4000, 0x7fff_ffff_ffff),
        ];
        for (index, (base, limit)) in (0..).zip(bounds) {
            entry.set_long(index * 16, base);
            entry.set_long(index * 16 + 8, limit);
        }
        entry.set_word(48, topology::gpu_id(gpu));
        entry.set_word(52, 0);
    }
    args.set_word(8, model().gpus);
}

fn allocate(process: &Process, args: Args) -> Answer {
    let flags = args.word(36);
    let buffer = Buffer {
        address: args.long(0),
        size: args.long(8),
        offset: None,
        host: if flags & (flag::USERPTR | flag::DOORBELL) == 0 {
            0
        } else {
            args.long(24)
        },
        flags,
        gpu: args.gpu(32)?,
    };
    let (handle, offset) = process.memory.allocate(buffer).ok_or(libc::ENOMEM)?;
    args.set_long(16, handle);
    args.set_long(24, offset);
    Ok(())
}
