//! D3: tmpfs pages mapped over the signals' memory, as flight files do. D4: the same while a kernel runs.

#![expect(unsafe_code, reason = "mappings")]

use super::beat::{Beat, beat};
use super::signals::{ROUNDS, SIGNALS};
use super::started;
use crate::Options;
use crate::hsa::{Hsa, Kind, Lane, Signals, until};
use crate::outcome::{Outcome, Status};
use crate::spin::{NO_WITNESS, Spin};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Size of the replaced memory, bytes.
const BYTES: usize = 64 << 10;
const LIMIT: Duration = Duration::from_secs(2);
/// Duration of D4's kernel.
const KERNEL: Duration = Duration::from_millis(50);

/// An unnamed file of [`BYTES`].
pub(super) fn nameless(dir: &Path) -> Result<File, String> {
    let path = dir.join(format!(".gpu-check-{}", std::process::id()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(|error| format!("no file can be made on tmpfs: {error}"))?;
    let _ = std::fs::remove_file(&path);
    // SAFETY: the descriptor is the file's.
    let status = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, BYTES as libc::off_t) };
    if status == 0 {
        Ok(file)
    } else {
        let error = std::io::Error::from_raw_os_error(status);
        Err(format!("no room for a file on tmpfs: {error}"))
    }
}

/// Maps a file at any address, or over the memory at an address.
///
/// # Safety
/// `place` is null, or begins [`BYTES`] of memory that the caller owns.
pub(super) unsafe fn map(file: &File, place: *mut u8) -> Result<*mut u8, String> {
    let fixed = if place.is_null() { 0 } else { libc::MAP_FIXED };
    // SAFETY: by the contract.
    let mapped = unsafe {
        libc::mmap(
            place.cast(),
            BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_POPULATE | fixed,
            file.as_raw_fd(),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(format!("a file cannot be mapped: {}", std::io::Error::last_os_error()));
    }
    Ok(mapped.cast())
}

/// Kind of the memory at an address, by `/proc/self/maps`: private, shared, or a mapping of the driver.
fn mapping(maps: &str, address: usize) -> &'static str {
    let line = maps.lines().find(|line| {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let ends = range.map(|(from, to)| [from, to].map(|end| usize::from_str_radix(end, 16).unwrap_or(0)));
        ends.is_some_and(|[from, to]| (from..to).contains(&address))
    });
    let words: Vec<&str> = line.unwrap_or_default().split_ascii_whitespace().collect();
    match words.as_slice() {
        [_, "rw-p", _, _, "0", ..] => "private",
        [_, "rw-s", _, _, _, "/dev/zero", ..] => "shared",
        _ => "device",
    }
}

/// Signals in memory of the run-time, and a second mapping of the file that replaced it.
struct Replaced {
    signals: Signals,
    second: Signals,
    /// Duration of the replacement.
    taken: Duration,
    kind: &'static str,
}

fn replace(hsa: &Hsa, options: &Options) -> Result<Replaced, String> {
    let memory = hsa.host_memory(Kind::Kernarg, BYTES)?;
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|error| format!("/proc/self/maps: {error}"))?;
    let kind = mapping(&maps, memory as usize);
    if kind == "device" {
        return Err("the run-time's memory is a mapping of the driver's own: its pages cannot be replaced".to_owned());
    }
    let file = nameless(&options.dir)?;
    // SAFETY: any place.
    let second = unsafe { map(&file, std::ptr::null_mut()) }?;
    let start = Instant::now();
    // SAFETY: the memory was allocated above, of this size, and nothing uses it.
    unsafe { map(&file, memory) }?;
    let taken = start.elapsed();
    // SAFETY: both are mappings of this size.
    let (signals, second) = unsafe {
        (
            Signals::make(memory, SIGNALS),
            Signals {
                first: second.cast(),
                count: SIGNALS,
            },
        )
    };
    Ok(Replaced {
        signals,
        second,
        taken,
        kind,
    })
}

pub(super) fn check(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let lane = Lane::create(hsa, gpu, 1024)?;
    let replaced = replace(hsa, options)?;
    let found = watch(hsa, &lane, &replaced, options)?;
    Ok(with_details(
        found.outcome("tmpfs pages under kernarg memory"),
        &replaced,
    ))
}

fn watch(hsa: &Hsa, lane: &Lane, replaced: &Replaced, options: &Options) -> Result<Beat, String> {
    beat(hsa, lane, replaced.signals, Some(replaced.second), ROUNDS, options.time)
}

fn with_details(outcome: Outcome, replaced: &Replaced) -> Outcome {
    outcome
        .number("replaced_us", replaced.taken.as_secs_f64() * 1e6)
        .fact("memory", replaced.kind)
}

pub(super) fn while_busy(options: &Options) -> Result<Outcome, String> {
    let (hsa, gpu) = started!(options);
    let (busy, lane) = (Lane::create(hsa, gpu, 1024)?, Lane::create(hsa, gpu, 1024)?);
    let spin = match Spin::load(hsa, gpu, 1) {
        Ok(spin) => spin,
        Err(error) => return Ok(Outcome::new(Status::Skipped, error)),
    };
    let end = hsa.signal(1)?;
    spin.launch(&busy, 0, KERNEL, end, LIMIT)?;
    until(KERNEL / 2, || spin.has_begun(0));
    let was_running = spin.has_begun(0) && hsa.value(end) > 0;
    let replaced = replace(hsa, options)?;
    let was_running = was_running && hsa.value(end) > 0;
    let found = watch(hsa, &lane, &replaced, options)?;
    hsa.wait(end, LIMIT)
        .map_err(|error| format!("the kernel that ran while pages were replaced does not end: {error}"))?;
    let Some([begin, end]) = spin.witness(0) else {
        return Ok(with_details(Outcome::new(Status::Note, NO_WITNESS), &replaced));
    };
    let length = spin.nanoseconds(end.saturating_sub(begin)) / 1e6;
    let outcome = found
        .outcome("pages replaced while a kernel runs")
        .number("kernel_ms", length);
    if !was_running {
        return Ok(with_details(
            Outcome::new(Status::Note, "the kernel was over before pages were replaced"),
            &replaced,
        ));
    }
    Ok(with_details(outcome, &replaced))
}

#[cfg(test)]
mod tests {
    use super::mapping;

    #[test]
    fn pool_memory_is_known_by_its_mapping() {
        let maps = "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n\
                    7f0000010000-7f0000020000 rw-s 00000000 00:01 4711                       /dev/zero (deleted)\n\
                    7f0000020000-7f0000030000 rw-s 100000000 00:05 99                        /dev/dri/renderD128\n";
        let kind = |address| mapping(maps, address);
        assert_eq!(kind(0x7f00_0000_1000), "private");
        assert_eq!(kind(0x7f00_0001_0000), "shared");
        assert_eq!(kind(0x7f00_0002_0000), "device");
        assert_eq!(kind(0x1000), "device");
    }
}
