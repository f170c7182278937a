//! Programs that continue in a session after the started program has ended: background services.

use roctop_ring::session::ENV_SESSION;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Libraries whose calls the collector records; a process with none of them mapped need not be waited for.
const RUN_TIMES: [&str; 3] = ["libamdhip64.so", "libhsa-runtime64.so", "libroctx64.so"];

/// Pids of the programs that belong to the session at `session` and have a ROCm run-time mapped. They are found in the
/// process table, because a forked process creates its ring only at its first record. Processes that may not be
/// inspected belong to other users.
pub fn going_on(session: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| belongs(*pid, session)).collect()
}

/// Whether a process's memory map has one of these libraries.
pub(super) fn uses_rocm(maps: &str) -> bool {
    RUN_TIMES.iter().any(|name| maps.contains(name))
}

fn belongs(pid: u32, session: &Path) -> bool {
    let Ok(maps) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else {
        return false;
    };
    if !uses_rocm(&maps) {
        return false;
    }
    let mut wanted = format!("{ENV_SESSION}=").into_bytes();
    wanted.extend_from_slice(session.as_os_str().as_bytes());
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
}
