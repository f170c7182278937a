//! Ioctls of the render nodes, as far as libdrm's amdgpu part uses them.
//!
//! libdrm requires a driver called amdgpu, a device description from which its address manager can start, and the few
//! calls that map buffers for virtual memory management. Not supported: command submission, which the run-times do not
//! use.

use std::os::fd::RawFd;

use crate::kfd::Args;
use crate::model::model;
use crate::path::Device;
use crate::process::Process;
use crate::{dmabuf, guest, sys};

type Answer = Result<(), libc::c_int>;

/// Answers an ioctl of a render node.
pub(crate) fn ioctl(process: &Process, device: Device, number: u32, args: Args) -> Answer {
    match number {
        0x00 => version(args),
        // Client and authentication: any answer is accepted. End of a timeline of mappings, and a wait for a point of
        // it: a mapping is complete when its call returns.
        0x05 | 0xc0 | 0xca => {}
        0x09 => process.memory.let_go(process.shares.buffer(args.word(0))?),
        0x0c => args.set_long(8, 0),
        0x2d => dmabuf::export_gem(process, args)?,
        0x2e => {
            let gem = process.shares.gem(args.word(8) as RawFd)?;
            process.memory.hold(process.shares.buffer(gem)?);
            args.set_word(0, gem);
        }
        0x41 => {
            let buffer = process.shares.buffer(args.word(0))?;
            args.set_long(0, buffer.offset.ok_or(libc::EINVAL)?);
        }
        0x45 => info(process, device, args)?,
        0x48 => map_address(process, args)?,
        // A timeline of mappings.
        0xbf => args.set_word(0, 1),
        _ => return Err(libc::EINVAL),
    }
    Ok(())
}

/// Sizes first, strings when the caller has allocated them.
fn version(args: Args) {
    args.set_word(0, 3);
    args.set_word(4, 57);
    args.set_word(8, 0);
    for (offset, text) in [(16, "amdgpu"), (32, "20150101"), (48, "AMD GPU")] {
        let (room, place) = (args.long(offset), args.long(offset + 8));
        if place != 0 {
            for (index, byte) in (0..room).zip(text.bytes()) {
                guest::write(place + index, byte);
            }
        }
        args.set_long(offset, text.len() as u64);
    }
}

fn info(process: &Process, device: Device, args: Args) -> Answer {
    let (place, room, query) = (args.long(0), u64::from(args.word(8)), args.word(12));
    let gpu = if let Device::Render { gpu, .. } = device {
        gpu
    } else {
        0
    };
    let mut answer = vec![0_u8; room as usize];
    match query {
        0x00 => put(&mut answer, 0, 1_u32.to_le_bytes()),
        // Hardware blocks, registers: zeros.
        0x02 | 0x03 | 0x0e | 0x15 => {}
        0x14 => {
            put(&mut answer, 0, model().vram.to_le_bytes());
            put(&mut answer, 8, model().vram.to_le_bytes());
            put(&mut answer, 16, (8_u64 << 30).to_le_bytes());
        }
        0x16 => device_info(&mut answer),
        0x19 => {
            let used = model().vram - process.memory.available(gpu);
            for (offset, value) in [(0, model().vram), (8, model().vram), (16, used), (24, model().vram)] {
                put(&mut answer, offset, value.to_le_bytes());
            }
        }
        _ => return Err(libc::EINVAL),
    }
    for (index, byte) in (0..).zip(&answer) {
        guest::write(place + index, *byte);
    }
    Ok(())
}

fn put<const N: usize>(answer: &mut [u8], offset: usize, value: [u8; N]) {
    if let Some(place) = answer.get_mut(offset..offset + N) {
        place.copy_from_slice(&value);
    }
}

/// `drm_amdgpu_info_device`: the fields that are read.
fn device_info(answer: &mut [u8]) {
    let target = model().target;
    let engines = target.arrays / target.arrays_per_engine;
    let words = [
        (0, target.device_id),
        (8, 1),
        (16, target.family),
        (20, engines),
        (24, target.arrays_per_engine),
        (28, model().faults.declared_khz.unwrap_or(model().counter.kilohertz())),
        (48, target.simd_count / target.simd_per_cu),
        (120, 0xff),
        (124, 8),
        (128, 8),
        (132, 3),
        (160, 4096),
        (164, 0x20_0000),
        (168, 4096),
        (176, 6),
        (180, 4096),
        (240, target.wave),
        (248, target.cu_per_array),
        (252, 16),
    ];
    for (offset, value) in words {
        put(answer, offset, value.to_le_bytes());
    }
    let longs: [(usize, u64); 6] = [
        (32, 1_700_000),
        (40, 1_000_000),
        (144, 0x20_0000),
        (152, 0x8000_0000_0000),
        (336, 0xffff_8000_0000_0000),
        (344, 0xffff_ffff_ffe0_0000),
    ];
    for (offset, value) in longs {
        put(answer, offset, value.to_le_bytes());
    }
}

/// Maps a buffer at a GPU address, which is a host address here; unmapping keeps the range reserved.
fn map_address(process: &Process, args: Args) -> Answer {
    const MAP: u32 = 1;
    const UNMAP: u32 = 2;
    let buffer = process.shares.buffer(args.word(0))?;
    let (address, start, size) = (args.long(16), args.long(24), args.long(32) as usize);
    match args.word(8) {
        MAP => {
            let offset = buffer.offset.ok_or(libc::EINVAL)? + start;
            let place = process
                .memory
                .map_store(address as usize, size, libc::MAP_FIXED, offset);
            if place == usize::MAX { Err(libc::ENOMEM) } else { Ok(()) }
        }
        UNMAP => {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
            sys::map(address as usize, size, libc::PROT_NONE, flags, -1, 0);
            Ok(())
        }
        _ => Err(libc::EINVAL),
    }
}
