//! D8: copies by copy engines, or by kernels with `HSA_ENABLE_SDMA=0`: bytes, times, bandwidth.

#![expect(unsafe_code, reason = "copies of memory by the run-time")]

use super::started;
use crate::Options;
use crate::hsa::{Gpu, Hsa, Kind, done, pitched};
use crate::outcome::{Outcome, Status};
use hsa_sys::abi::{Agent, Dim3};
use std::time::Duration;

/// Sizes of the copies, bytes.
const SIZES: [usize; 4] = [4 << 10, 64 << 10, 1 << 20, 64 << 20];
const LARGEST: usize = SIZES[SIZES.len() - 1];
/// Maximum deviation of times from the host's bracket, ns.
const ALLOWED: u64 = 20_000;
/// Bandwidth that no link or memory exceeds, GB/s.
const FASTEST: f64 = 20_000.0;
const LIMIT: Duration = Duration::from_secs(3);
/// Width, pitch and rows of the rectangular copy.
const BOX: [u32; 3] = [192, 256, 100];

/// Observations of the copies.
#[derive(Default)]
struct Seen {
    copies: usize,
    untimed: usize,
    outside: u64,
    rates: Vec<(String, f64)>,
}

/// Source or target of a copy.
#[derive(Clone, Copy)]
struct Buffer {
    memory: *mut u8,
    agent: Agent,
}

fn copy(hsa: &Hsa, seen: &mut Seen, way: &str, to: Buffer, from: Buffer, bytes: usize) -> Result<(), String> {
    let signal = hsa.signal(1)?;
    let before = hsa.now();
    // SAFETY: both places have this many bytes, and their agents have access.
    let status = unsafe {
        (hsa.call.async_copy)(
            to.memory.cast(),
            to.agent,
            from.memory.cast(),
            from.agent,
            bytes,
            0,
            std::ptr::null(),
            signal,
        )
    };
    done("hsa_amd_memory_async_copy", status)?;
    hsa.wait(signal, LIMIT)
        .map_err(|error| format!("a copy {way} of {bytes} bytes does not end: {error}"))?;
    let after = hsa.now();
    judge(
        seen,
        &format!("{way}_{bytes}"),
        hsa.copy_span(signal)?,
        [before, after],
        bytes,
    );
    Ok(())
}

fn judge(seen: &mut Seen, name: &str, span: [u64; 2], bracket: [u64; 2], bytes: usize) {
    seen.copies += 1;
    if span.contains(&0) || span[1] < span[0] {
        seen.untimed += 1;
        return;
    }
    let outside = bracket[0]
        .saturating_sub(span[0])
        .max(span[1].saturating_sub(bracket[1]));
    seen.outside = seen.outside.max(outside);
    seen.rates
        .push((name.to_owned(), bytes as f64 / (span[1] - span[0]).max(1) as f64));
}

/// Copies a box of rows.
fn rect(hsa: &Hsa, seen: &mut Seen, gpu: Gpu, to: *mut u8, from: *mut u8) -> Result<(), String> {
    let [width, pitch, rows] = BOX;
    let zero = Dim3 { x: 0, y: 0, z: 0 };
    let range = Dim3 {
        x: width,
        y: rows,
        z: 1,
    };
    let (target, source) = (pitched(to, pitch.into()), pitched(from, pitch.into()));
    let signal = hsa.signal(1)?;
    let before = hsa.now();
    // SAFETY: both places have all rows; 1 is host to device.
    let status = unsafe {
        (hsa.call.async_copy_rect)(
            &raw const target,
            &raw const zero,
            &raw const source,
            &raw const zero,
            &raw const range,
            gpu.handle,
            1,
            0,
            std::ptr::null(),
            signal,
        )
    };
    done("hsa_amd_memory_async_copy_rect", status)?;
    hsa.wait(signal, LIMIT)
        .map_err(|error| format!("a rectangular copy does not end: {error}"))?;
    judge(
        seen,
        "rect",
        hsa.copy_span(signal)?,
        [before, hsa.now()],
        (width * rows) as usize,
    );
    Ok(())
}

/// Copies a box of the pattern to the GPU, and all of its rows back; true if the bytes are equal.
fn boxes(hsa: &Hsa, seen: &mut Seen, gpu: Gpu, [near, up, down]: [Buffer; 3]) -> Result<bool, String> {
    let [width, pitch, rows] = BOX.map(|size| size as usize);
    rect(hsa, seen, gpu, near.memory, up.memory)?;
    copy(hsa, seen, "d2h", down, near, pitch * rows)?;
    // SAFETY: the copies are over, and both places have this many bytes.
    let [came, pattern] = [down, up].map(|place| unsafe { std::slice::from_raw_parts(place.memory, pitch * rows) });
    let row = |row: usize| row * pitch..row * pitch + width;
    Ok((0..rows).all(|index| came[row(index)] == pattern[row(index)]))
}

pub(super) fn check(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let pool = gpu.local.ok_or("the GPU has no memory pool")?;
    // SAFETY: a plain call.
    done("hsa_amd_profiling_async_copy_enable", unsafe {
        (hsa.call.async_copy_enable)(true)
    })?;
    let (up, down) = (
        hsa.host_memory(Kind::Fine, LARGEST)?,
        hsa.host_memory(Kind::Fine, LARGEST)?,
    );
    let [near, far] = [hsa.allocate(pool, LARGEST)?, hsa.allocate(pool, LARGEST)?];
    // SAFETY: memory of this size, which no copy uses yet.
    let pattern = unsafe { std::slice::from_raw_parts_mut(up, LARGEST) };
    for (index, byte) in pattern.iter_mut().enumerate() {
        *byte = (index ^ (index >> 8) ^ (index >> 16)) as u8;
    }
    let host = |memory| Buffer {
        memory,
        agent: hsa.host(),
    };
    let device = |memory| Buffer {
        memory,
        agent: gpu.handle,
    };
    let mut seen = Seen::default();
    let mut wrong = 0;
    for bytes in SIZES {
        // SAFETY: no copy is running.
        unsafe { down.write_bytes(0, bytes) };
        copy(hsa, &mut seen, "h2d", device(near), host(up), bytes)?;
        copy(hsa, &mut seen, "d2d", device(far), device(near), bytes)?;
        copy(hsa, &mut seen, "d2h", host(down), device(far), bytes)?;
        // SAFETY: the copy is over.
        let came = unsafe { std::slice::from_raw_parts(down, bytes) };
        wrong += usize::from(came != &pattern[..bytes]);
    }
    wrong += usize::from(!filled(hsa, &mut seen, device(near), host(down))?);
    // Only copy engines make rectangular copies.
    if std::env::var("HSA_ENABLE_SDMA").as_deref() != Ok("0") {
        wrong += usize::from(!boxes(hsa, &mut seen, gpu, [device(near), host(up), host(down)])?);
    }
    if let Some(peer) = hsa.gpus.iter().find(|other| other.handle != gpu.handle)
        && let Some(pool) = peer.local
    {
        let there = hsa.allocate(pool, SIZES[2])?;
        // Without a link, access is refused, and there is no peer copy.
        if hsa.allow(&[gpu.handle, peer.handle], there).is_ok() {
            let place = Buffer {
                memory: there,
                agent: peer.handle,
            };
            copy(hsa, &mut seen, "peer", place, device(far), SIZES[2])?;
            copy(hsa, &mut seen, "d2h", host(down), place, SIZES[2])?;
            // SAFETY: the copy is over.
            let came = unsafe { std::slice::from_raw_parts(down, SIZES[2]) };
            wrong += usize::from(came != &pattern[..SIZES[2]]);
        }
    }
    Ok(verdict(seen, wrong))
}

/// Fills GPU memory with the run-time's kernel; true if the bytes are equal.
fn filled(hsa: &Hsa, seen: &mut Seen, there: Buffer, here: Buffer) -> Result<bool, String> {
    const WORDS: usize = 4096;
    const VALUE: u32 = 0x5aa5_c33c;
    // SAFETY: the memory is of the GPU's pool and has this many words.
    done("hsa_amd_memory_fill", unsafe {
        (hsa.call.memory_fill)(there.memory.cast(), VALUE, WORDS)
    })?;
    copy(hsa, seen, "d2h", here, there, 4 * WORDS)?;
    #[expect(clippy::cast_ptr_alignment, reason = "the memory is aligned to a page")]
    // SAFETY: the copy is over; the memory is aligned to a page.
    let words = unsafe { std::slice::from_raw_parts(here.memory.cast::<u32>(), WORDS) };
    Ok(words.iter().all(|word| *word == VALUE))
}

fn verdict(seen: Seen, wrong: usize) -> Outcome {
    let fastest = seen.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let rate = |name: &str| {
        let key = format!("{name}_{LARGEST}");
        seen.rates
            .iter()
            .find(|(known, _)| *known == key)
            .map_or(0.0, |(_, rate)| *rate)
    };
    let copies = seen.copies;
    let (status, text) = if wrong > 0 {
        (Status::Bad, format!("{wrong} copies or fills leave wrong bytes"))
    } else if seen.untimed > 0 {
        (
            Status::Bad,
            format!("{} of {copies} copies have no times", seen.untimed),
        )
    } else if seen.outside > ALLOWED {
        let text = format!(
            "copies are up to {} us outside of the host's brackets",
            seen.outside / 1000
        );
        (Status::Bad, text)
    } else if fastest > FASTEST {
        (Status::Bad, format!("a copy of {fastest:.0} GB/s cannot be"))
    } else {
        let (up, down, across) = (rate("h2d"), rate("d2h"), rate("d2d"));
        let text = format!("{copies} copies: {up:.1} GB/s to the GPU, {down:.1} from it, {across:.1} on it");
        (Status::Ok, text)
    };
    let outcome = Outcome::new(status, text)
        .number("copies", copies as f64)
        .number("wrong", wrong as f64)
        .number("untimed", seen.untimed as f64)
        .number("outside_us", seen.outside as f64 / 1e3);
    seen.rates.into_iter().fold(outcome, |outcome, (name, rate)| {
        outcome.number(format!("gbps_{name}"), rate)
    })
}
