//! What a process holds of each GPU's memory, published as the compute driver does: `/sys/class/kfd/kfd/proc/PID`.
//!
//! A process does not take its files away at its end; whoever makes new ones removes those of processes that are gone.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::{sys, sysfs, topology};

const PLACE: &str = "sys/class/kfd/kfd/proc";

/// This process holds so many bytes of a GPU's memory now.
pub(crate) fn publish(gpu: u32, bytes: u64) {
    static PREPARED: OnceLock<()> = OnceLock::new();
    let Some(root) = sysfs::root() else { return };
    let all = Path::new(root).join(PLACE);
    PREPARED.get_or_init(|| prune(&all));
    let own = all.join(sys::process_id().to_string());
    // A stand-in's side line: what cannot be written is not there.
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
