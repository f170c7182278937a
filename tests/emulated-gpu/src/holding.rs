//! Publishes the GPU memory that a process holds, as the compute driver does: `/sys/class/kfd/kfd/proc/PID`.
//!
//! A process does not remove its files at its end; the next process that creates files removes those of dead ones.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::{sys, sysfs, topology};

const PLACE: &str = "sys/class/kfd/kfd/proc";

/// Publishes the number of bytes that this process holds on a GPU.
pub(crate) fn publish(gpu: u32, bytes: u64) {
    static PREPARED: OnceLock<()> = OnceLock::new();
    let Some(root) = sysfs::root() else { return };
    let all = Path::new(root).join(PLACE);
    PREPARED.get_or_init(|| prune(&all));
    let own = all.join(sys::process_id().to_string());
    // Errors are ignored: a missing file is a valid state.
    if fs::create_dir_all(&own).is_ok() {
        fs::write(
            own.join(format!("vram_{}", topology::gpu_id(gpu))),
            format!("{bytes}\n"),
        )
        .ok();
    }
}

fn prune(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        if !Path::new("/proc").join(entry.file_name()).exists() {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}
