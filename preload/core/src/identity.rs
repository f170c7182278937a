//! Identity of this process: the constant part of its ring files' headers.

#![expect(unsafe_code, reason = "getpid and its relatives")]

use roctop_ring::layout::Header;
use roctop_ring::session::rank_variables;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

/// The header of this process's ring files, without sizes and regions.
pub(crate) fn header(clock_kind: u32) -> Header {
    let (rank, ranks) = rank();
    let exe = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let command: Vec<u8> = command
        .iter()
        .map(|byte| if *byte == 0 { b' ' } else { *byte })
        .collect();
    Header {
        pid: pid(),
        // SAFETY: cannot fail, touches no memory.
        ppid: unsafe { libc::getppid() } as u32,
        // SAFETY: cannot fail, touches no memory.
        uid: unsafe { libc::getuid() },
        start_ticks: start_ticks(),
        pid_namespace: std::fs::metadata("/proc/self/ns/pid").map_or(0, |facts| facts.ino()),
        boot_id: boot_id(),
        rank,
        ranks,
        clock_kind,
        created: std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64),
        host: std::fs::read_to_string("/proc/sys/kernel/hostname")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        exe: String::from_utf8_lossy(exe.file_name().map(OsStrExt::as_bytes).unwrap_or_default()).into_owned(),
        command: String::from_utf8_lossy(&command).trim_end().to_owned(),
        ..Header::default()
    }
}

/// This process's id.
pub(crate) fn pid() -> u32 {
    // SAFETY: cannot fail, touches no memory.
    unsafe { libc::getpid() as u32 }
}

/// Start of this process, clock ticks since boot.
pub(crate) fn start_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may contain any byte, so the fields are counted from the last one. Field 22; the state is
    // field 3.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_ascii_whitespace()
        .nth(19)
        .and_then(|field| field.parse().ok())
        .unwrap_or(0)
}

fn boot_id() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0).swap_bytes()
}

fn rank() -> (i32, i32) {
    let variable = |name: &str| std::env::var(name).ok();
    let number = |name: &str| variable(name).and_then(|text| text.trim().parse::<i32>().ok());
    let Some((rank, ranks)) = rank_variables(&variable) else {
        return (-1, -1);
    };
    (number(rank).unwrap_or(-1), number(ranks).unwrap_or(-1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_start_time_and_a_name() {
        let header = header(1);
        assert!(header.start_ticks > 0);
        assert!(!header.exe.is_empty());
        assert_eq!(header.pid, std::process::id());
    }
}
