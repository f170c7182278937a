//! Programs that go on in a session when the one that it was made for has ended: services that went to the background.

use roctop_ring::session::ENV_SESSION;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Libraries whose calls a collector records; a process that has none of them loaded leaves nothing to wait for.
const RUN_TIMES: [&str; 3] = ["libamdhip64.so", "libhsa-runtime64.so", "libroctx64.so"];

/// Process ids of the programs that belong to the session at `session` and have a run-time of ROCm loaded. Found in the
/// process table, because a forked process makes its ring at its first record only. What may not be looked at is not ours.
pub fn going_on(session: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| belongs(*pid, session)).collect()
}

/// Whether one of these libraries is in a map of a process's memory.
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
