//! The files that the driver would publish: topology, module state, render nodes in `/sys`.
//!
//! They are written as real files into one directory per kind of machine, named by the hash of their content. Any
//! number of processes share it, and a changed model makes a new one. Reading then needs no emulation. Sensors are
//! constant, with plausible values of a busy GPU.

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::model::{Model, model};
use crate::{sensors, topology};

/// A file with its content, or a link with its target.
#[derive(Hash)]
pub(crate) enum Entry {
    /// A regular file.
    File(String, String),
    /// A binary file.
    Bytes(String, Vec<u8>),
    /// A symbolic link.
    Link(String, String),
}

/// Minor number of the first render node.
pub(crate) const FIRST_RENDER: u32 = 128;

/// PCI address of a GPU, as in `/sys/bus/pci`.
pub(crate) fn pci_address(gpu: u32) -> String {
    format!("0000:{:02x}:00.0", gpu + 3)
}

/// Directory that contains the redirected paths; created on first use.
pub(crate) fn root() -> Option<&'static str> {
    static ROOT: OnceLock<Option<String>> = OnceLock::new();
    ROOT.get_or_init(|| generate(model()).and_then(|path| path.into_os_string().into_string().ok()))
        .as_deref()
}

fn generate(model: &Model) -> Option<PathBuf> {
    let entries = entries(model);
    let mut hasher = DefaultHasher::new();
    entries.hash(&mut hasher);
    let base = base_directory()?;
    let place = base.join(format!("{:016x}", hasher.finish()));
    if place.is_dir() {
        return Some(place);
    }
    let draft = base.join(format!("draft-{}-{:p}", std::process::id(), &raw const place));
    for entry in &entries {
        write(&draft, entry).ok()?;
    }
    // Losing the race against another process has the same result.
    if fs::rename(&draft, &place).is_err() {
        fs::remove_dir_all(&draft).ok();
    }
    place.is_dir().then_some(place)
}

/// A private directory of this user, in the first writable temporary directory.
fn base_directory() -> Option<PathBuf> {
    let own = fs::metadata("/proc/self").map_or(0, |metadata| metadata.uid());
    let asked = std::env::var_os("TMPDIR").map(PathBuf::from);
    let places = asked
        .into_iter()
        .chain(["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from));
    places
        .map(|place| place.join(format!("emulated-gpu-{own}")))
        .find(|base| {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(base).ok();
            fs::symlink_metadata(base).is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == own)
        })
}

fn write(root: &Path, entry: &Entry) -> std::io::Result<()> {
    let (Entry::File(path, _) | Entry::Bytes(path, _) | Entry::Link(path, _)) = entry;
    let place = root.join(path.trim_start_matches('/'));
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    match entry {
        Entry::File(_, content) => fs::write(place, content),
        Entry::Bytes(_, content) => fs::write(place, content),
        Entry::Link(_, target) => symlink(target, place),
    }
}

fn entries(model: &Model) -> Vec<Entry> {
    let mut list = topology::entries(model);
    list.push(file("/proc/modules", "amdgpu 9945088 0 - Live 0x0000000000000000\n"));
    list.push(file("/sys/module/amdgpu/initstate", "live\n"));
    list.push(file("/sys/module/amdgpu/version", "6.2.4\n"));
    list.push(file("/sys/module/amdgpu/refcnt", "0\n"));
    list.push(file("/sys/module/amdgpu/coresize", "9945088\n"));
    list.push(file("/sys/module/amdgpu/holders/.keep", ""));
    list.push(file("/sys/module/amdgpu/parameters/.keep", ""));
    list.push(file("/dev/kfd", ""));
    list.push(file("/dev/dri/.keep", ""));
    for gpu in 0..model.gpus {
        render_node(model, gpu, &mut list);
    }
    list
}

fn render_node(model: &Model, gpu: u32, list: &mut Vec<Entry>) {
    let address = pci_address(gpu);
    let device = format!("/sys/devices/pci0000:00/{address}");
    let minor = FIRST_RENDER + gpu;
    for (node, number) in [(format!("card{gpu}"), gpu), (format!("renderD{minor}"), minor)] {
        let mut uevent = String::new();
        _ = writeln!(
            uevent,
            "MAJOR=226\nMINOR={number}\nDEVNAME=dri/{node}\nDEVTYPE=drm_minor"
        );
        list.push(file(format!("{device}/drm/{node}/uevent"), uevent));
        list.push(file(format!("{device}/drm/{node}/dev"), format!("226:{number}\n")));
        list.push(link(
            format!("{device}/drm/{node}/device"),
            format!("../../../{address}"),
        ));
        let inside = format!("devices/pci0000:00/{address}/drm/{node}");
        list.push(link(format!("/sys/dev/char/226:{number}"), format!("../../{inside}")));
        list.push(link(format!("/sys/class/drm/{node}"), format!("../../{inside}")));
        list.push(file(format!("/dev/dri/{node}"), ""));
    }
    let mut uevent = String::new();
    _ = writeln!(
        uevent,
        "DRIVER=amdgpu\nPCI_ID=1002:{:04X}\nPCI_SLOT_NAME={address}",
        model.target.device_id
    );
    list.push(file(format!("{device}/uevent"), uevent));
    let words = [
        ("vendor", 0x1002),
        ("device", model.target.device_id),
        ("subsystem_vendor", 0x1002),
    ];
    for (name, value) in words
        .into_iter()
        .chain([("subsystem_device", 0x0834), ("revision", 1), ("class", 0x03_8000)])
    {
        list.push(file(format!("{device}/{name}"), format!("0x{value:04x}\n")));
    }
    if model.sensors {
        sensors::entries(model, &device, list);
    }
    list.push(link(format!("{device}/subsystem"), "../../../bus/pci"));
    list.push(link(format!("{device}/driver"), "../../../bus/pci/drivers/amdgpu"));
    list.push(file(
        format!("{device}/unique_id"),
        format!("{:016x}\n", topology::unique_id(gpu)),
    ));
}

/// A file entry.
pub(crate) fn file(path: impl Into<String>, content: impl Into<String>) -> Entry {
    Entry::File(path.into(), content.into())
}

fn link(path: impl Into<String>, target: impl Into<String>) -> Entry {
    Entry::Link(path.into(), target.into())
}
