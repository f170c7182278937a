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

/// The machine's NUMA nodes.
pub(crate) const NUMA: &str = "/sys/devices/system/node";

/// Nodes of the machine, with equal parts of its CPUs.
fn numa(model: &Model, list: &mut Vec<Entry>) {
    let Some(last) = model.numa.iter().max() else { return };
    let nodes = last + 1;
    let cpus = std::thread::available_parallelism()
        .map_or(1, |count| count.get() as u32)
        .max(configured());
    let all = if nodes == 1 {
        "0\n".to_owned()
    } else {
        format!("0-{last}\n")
    };
    for name in ["online", "possible", "has_cpu", "has_memory", "has_normal_memory"] {
        list.push(file(format!("{NUMA}/{name}"), all.clone()));
    }
    for node in 0..nodes {
        let (from, until) = (cpus * node / nodes, cpus * (node + 1) / nodes);
        let range = match until - from {
            0 => "\n".to_owned(),
            1 => format!("{from}\n"),
            _ => format!("{from}-{}\n", until - 1),
        };
        for cpu in from..until {
            list.push(link(
                format!("{NUMA}/node{node}/cpu{cpu}"),
                format!("/sys/devices/system/cpu/cpu{cpu}"),
            ));
        }
        let words = (0..cpus.div_ceil(32)).rev().map(|word| {
            let bits = (from..until).filter(|cpu| cpu / 32 == word);
            format!("{:08x}", bits.fold(0u32, |sum, cpu| sum | 1 << (cpu % 32)))
        });
        let mask: Vec<String> = words.collect();
        let distances: Vec<&str> = (0..nodes)
            .map(|other| if other == node { "10" } else { "32" })
            .collect();
        let memory = format!("Node {node} MemTotal:       33554432 kB\nNode {node} MemFree:        16777216 kB\n");
        for (name, text) in [
            ("cpulist", range),
            ("cpumap", format!("{}\n", mask.join(","))),
            ("distance", format!("{}\n", distances.join(" "))),
            ("meminfo", memory),
        ] {
            list.push(file(format!("{NUMA}/node{node}/{name}"), text));
        }
    }
}

/// CPUs that are online, of the first range.
fn configured() -> u32 {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let last = online
        .trim()
        .rsplit([',', '-'])
        .next()
        .and_then(|last| last.parse::<u32>().ok());
    last.map_or(1, |last| last + 1)
}

fn entries(model: &Model) -> Vec<Entry> {
    let mut list = topology::entries(model);
    numa(model, &mut list);
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
    if let Some(node) = model.numa.get(gpu as usize) {
        list.push(file(format!("{device}/numa_node"), format!("{node}\n")));
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
