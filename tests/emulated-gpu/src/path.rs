//! Paths that belong to the emulation.
//!
//! It distinguishes fake devices and generated files, and leaves everything else alone at the cost of a few byte
//! comparisons. Not supported: relative paths and paths through other mounts; no run-time uses them.

use std::ffi::{CStr, CString};

use crate::model::model;
use crate::sysfs::{self, FIRST_RENDER};

/// A device of the emulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Device {
    /// `/dev/kfd`.
    Kfd,
    /// The render node of a GPU, or the card node next to it.
    Render {
        /// Index of the GPU.
        gpu: u32,
        /// Minor number of the node.
        minor: u32,
    },
}

impl Device {
    /// Major and minor number.
    pub(crate) fn number(self) -> (u32, u32) {
        match self {
            Self::Kfd => (235, 0),
            Self::Render { minor, .. } => (226, minor),
        }
    }
}

/// Meaning of an absolute path.
pub(crate) enum Meaning {
    /// A device file.
    Device(Device),
    /// A generated file or directory replaces it.
    File(CString),
}

const TREES: [&str; 8] = [
    "/sys/devices/virtual/kfd",
    "/sys/class/kfd",
    "/sys/class/drm",
    "/sys/dev/char/226:",
    "/sys/module/amdgpu",
    "/sys/devices/pci0000:00/0000:",
    "/proc/modules",
    "/dev/dri",
];

/// Meaning of a path; `None` if it does not belong to the emulation.
pub(crate) fn meaning(path: &CStr) -> Option<Meaning> {
    let bytes = path.to_bytes();
    if !(bytes.starts_with(b"/sys/") || bytes.starts_with(b"/dev/") || bytes.starts_with(b"/proc/m")) {
        return None;
    }
    let path = path.to_str().ok()?;
    if let Some(device) = device(path) {
        return Some(Meaning::Device(device));
    }
    let is_numa = path.starts_with(sysfs::NUMA) && !model().numa.is_empty();
    if !(is_numa || TREES.iter().any(|tree| path.starts_with(tree))) || is_real_pci(path) {
        return None;
    }
    CString::new(format!("{}{path}", sysfs::root()?))
        .ok()
        .map(Meaning::File)
}

fn device(path: &str) -> Option<Device> {
    if path == "/dev/kfd" {
        return Some(Device::Kfd);
    }
    let name = path.strip_prefix("/dev/dri/")?;
    let (first, number) = match name.strip_prefix("renderD") {
        None => (0, name.strip_prefix("card")?),
        Some(number) => (FIRST_RENDER, number),
    };
    let minor: u32 = number.parse().ok()?;
    let gpu = minor.checked_sub(first)?;
    (gpu < model().gpus).then_some(Device::Render { gpu, minor })
}

/// Whether a PCI path belongs to none of the emulated GPUs.
fn is_real_pci(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/sys/devices/pci0000:00/") else {
        return false;
    };
    !(0..model().gpus).any(|gpu| rest.starts_with(&sysfs::pci_address(gpu)))
}
