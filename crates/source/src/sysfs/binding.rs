//! Reads where processes may run and what their node has, from /proc and /sys below a root: `/` on a real machine, a saved tree
//! in tests. What is missing, or contradicts itself, is not known.

use super::reader::content;
use roctop_trace::binding::{Binding, CpuSet, Device, MemoryMap, Node, Numa, Thread};
use roctop_trace::gauge::device::location as location_of;
use roctop_trace::item::Nanos;
use roctop_trace::topology;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Variables that limit the visible GPUs: nothing else is kept of a program's environment (docs/security.md).
pub const VISIBLE: [&str; 4] = [
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "CUDA_VISIBLE_DEVICES",
];
/// Maximum length of the value of one.
const MAX_VALUE: usize = 256;
/// Maximum size of an environment, bytes.
const MAX_ENVIRONMENT: u64 = 4 << 20;
/// Maximum number of entries of a directory.
const MAX_ENTRIES: usize = 1024;
/// Classes of network cards that GPUs send through: InfiniBand and RoCE, Slingshot.
const CARDS: [&str; 2] = ["sys/class/infiniband", "sys/class/cxi"];
/// Parts of the path of a container's control group.
const CONTAINERS: [&str; 6] = ["docker", "podman", "libpod", "kubepods", "lxc", "containerd"];
/// Files in the root directory of a container: Docker's, Podman's, Apptainer's.
const CONTAINER_FILES: [&str; 3] = [".dockerenv", "run/.containerenv", ".singularity.d"];
/// Maximum number and length of the policies of a process's memory.
const MAX_POLICIES: usize = 4;
const MAX_POLICY: usize = 64;

fn text(path: &Path) -> Option<String> {
    let text = content(path).ok()?;
    Some(text.trim().to_owned())
}

pub(super) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().take(MAX_ENTRIES);
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Reads what the node has below `root`.
pub fn node(root: &Path) -> Node {
    let system = root.join("sys/devices/system");
    let online = online(&system);
    let numa = numa(&system, &online);
    let cores = cores(&system, &online);
    let (gpus, cards) = devices(root, &numa);
    let mut settings = settings(root, &online);
    settings.extend(iommu(root, &gpus));
    Node {
        settings,
        online,
        cores,
        gpus,
        cards: cards.into_iter().map(|(card, _)| card).collect(),
        numa,
    }
}

/// A network card and the GPU that it is counted at.
pub(super) struct Link {
    /// Number of the GPU.
    pub(super) gpu: u32,
    /// Directory of the card in its class.
    pub(super) class: PathBuf,
}

/// The cards below `root`, each with the first GPU that it is nearest to; with the first GPU if it is near to none.
pub(super) fn cards(root: &Path) -> Vec<Link> {
    let system = root.join("sys/devices/system");
    let numa = numa(&system, &online(&system));
    let (gpus, cards) = devices(root, &numa);
    let link = |(card, class): (Device, PathBuf)| {
        let by_root = || gpus.iter().find(|gpu| gpu.root.is_some() && gpu.root == card.root);
        let by_numa = || gpus.iter().find(|gpu| gpu.numa.is_some() && gpu.numa == card.numa);
        Link {
            gpu: by_root().or_else(by_numa).map_or(0, |gpu| gpu.number),
            class,
        }
    };
    cards.into_iter().map(link).collect()
}

fn online(system: &Path) -> CpuSet {
    let list = text(&system.join("cpu/online"));
    list.and_then(|list| CpuSet::parse(&list)).unwrap_or_default()
}

/// GPUs, and network cards with their directories.
fn devices(root: &Path, numa: &[Numa]) -> (Vec<Device>, Vec<(Device, PathBuf)>) {
    let known = |id: i64| {
        u32::try_from(id)
            .ok()
            .filter(|id| numa.iter().any(|numa| numa.id == *id))
    };
    let device = |name: String, directory: &Path| Device {
        name,
        numa: text(&directory.join("numa_node")).and_then(|text| known(text.parse().ok()?)),
        root: pci_root(directory),
        ..Device::default()
    };
    let nodes = topology::read(root);
    let all: Vec<&topology::Node> = nodes.iter().filter(|node| node.is_gpu()).collect();
    let number = |node: u64| {
        (0u32..)
            .zip(&all)
            .find(|(_, gpu)| u64::from(gpu.id) == node)
            .map(|(number, _)| number)
    };
    let gpus = (0..).zip(&all).map(|(at, gpu)| {
        let location = gpu.property("domain") << 32 | gpu.property("location_id");
        let address = location_of(location).to_string();
        // The topology numbers partitions of one PCI device; their own files are those of their render node.
        let minor = gpu.property("drm_render_minor");
        let render = root.join(format!("sys/class/drm/renderD{minor}/device"));
        let pci = root.join(format!("sys/bus/pci/devices/{address}"));
        let part = |name: &str| text(&render.join(name)).or_else(|| text(&pci.join(name)));
        let parts = [part("current_compute_partition"), part("current_memory_partition")];
        let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        let found = device(address, if pci.exists() { &pci } else { &render });
        // Type 11 of a link is xGMI (`HSA_IOLINK_TYPE_XGMI`).
        let links = gpu.links.iter().filter(|link| link.get("type") == Some(&11));
        Device {
            node: gpu.id,
            number: at,
            partition: (!parts.is_empty()).then(|| parts.join("/")),
            links: links.filter_map(|link| number(*link.get("node_to")?)).collect(),
            ..found
        }
    });
    let gpus = gpus.collect();
    let cards = CARDS.iter().flat_map(|class| {
        let class = root.join(class);
        names(&class).into_iter().map(move |name| (class.join(&name), name))
    });
    let cards = cards.map(|(class, name)| (device(name, &class.join("device")), class));
    (gpus, cards.collect())
}

/// NUMA nodes and their CPUs. None if two have one CPU, or one has a CPU that is not online.
fn numa(system: &Path, online: &CpuSet) -> Vec<Numa> {
    let mut all: Vec<Numa> = Vec::new();
    for name in names(&system.join("node")) {
        let Some(id) = name.strip_prefix("node").and_then(|id| id.parse().ok()) else {
            continue;
        };
        let list = text(&system.join("node").join(&name).join("cpulist"));
        let Some(cpus) = list.and_then(|list| CpuSet::parse(&list)) else {
            return Vec::new();
        };
        let is_online = online.is_empty() || cpus.and(online) == cpus;
        if !is_online || all.iter().any(|other| other.cpus.meets(&cpus)) {
            return Vec::new();
        }
        all.push(Numa { id, cpus });
    }
    all.sort_by_key(|numa| numa.id);
    all
}

/// Hardware threads of each core. None if one is not known, or two contradict each other.
fn cores(system: &Path, online: &CpuSet) -> Vec<CpuSet> {
    let mut cores: Vec<CpuSet> = Vec::new();
    let mut of: BTreeMap<u32, usize> = BTreeMap::new();
    for cpu in online.cpus() {
        if of.contains_key(&cpu) {
            continue;
        }
        let topology = system.join(format!("cpu/cpu{cpu}/topology"));
        let list = text(&topology.join("core_cpus_list")).or_else(|| text(&topology.join("thread_siblings_list")));
        let Some(core) = list
            .and_then(|list| CpuSet::parse(&list))
            .filter(|core| core.contains(cpu))
        else {
            return Vec::new();
        };
        if core.cpus().any(|cpu| of.insert(cpu, cores.len()).is_some()) {
            return Vec::new();
        }
        cores.push(core);
    }
    cores
}

/// The first part of a device's path: `pci0000:c0`.
fn pci_root(directory: &Path) -> Option<String> {
    let path = directory.canonicalize().ok()?;
    let mut parts = path.iter().filter_map(|part| part.to_str());
    parts
        .find(|part| part.starts_with("pci") && part.contains(':'))
        .map(str::to_owned)
}

/// How the GPUs' addresses are translated: `identity` (passed through), `DMA`, `DMA-FQ`.
fn iommu(root: &Path, gpus: &[Device]) -> Option<(String, String)> {
    let kind = |gpu: &Device| {
        let device = root.join("sys/bus/pci/devices").join(&gpu.name);
        text(&device.join("iommu_group/type"))
    };
    let kinds: BTreeSet<String> = gpus.iter().filter_map(kind).collect();
    let kinds: Vec<String> = kinds.into_iter().collect();
    (!kinds.is_empty()).then(|| ("GPUs' iommu".into(), kinds.join("/")))
}

/// Settings that decide how memory is placed and how copies go.
fn settings(root: &Path, online: &CpuSet) -> Vec<(String, String)> {
    let chosen = |text: String| {
        let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        word.map_or(text.clone(), |(word, _)| word.to_owned())
    };
    let first = online.cpus().next().unwrap_or(0);
    let files = [
        ("numa_balancing", "proc/sys/kernel/numa_balancing".to_owned()),
        (
            "transparent_hugepage",
            "sys/kernel/mm/transparent_hugepage/enabled".into(),
        ),
        (
            "governor",
            format!("sys/devices/system/cpu/cpu{first}/cpufreq/scaling_governor"),
        ),
        ("amdgpu.noretry", "sys/module/amdgpu/parameters/noretry".into()),
    ];
    let mut settings: Vec<(String, String)> = files
        .into_iter()
        .filter_map(|(name, file)| Some((name.to_owned(), chosen(text(&root.join(file))?))))
        .collect();
    let words = text(&root.join("proc/cmdline")).unwrap_or_default();
    let iommu = words.split_ascii_whitespace().filter(|word| {
        ["iommu=", "amd_iommu=", "intel_iommu="]
            .iter()
            .any(|start| word.starts_with(start))
    });
    settings.extend(
        iommu
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name.into(), value.into())),
    );
    settings
}

/// Reads a process and these of its threads below `root`; `None` if it has ended, or is not visible here.
pub fn process(root: &Path, pid: u32, tids: &[u32], at: Nanos) -> Option<Binding> {
    let process = root.join(format!("proc/{pid}"));
    let status = content(&process.join("status")).ok()?;
    let set = |status: &str, name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        CpuSet::parse(line)
    };
    let thread = |tid: &u32| {
        let task = process.join(format!("task/{tid}"));
        let status = content(&task.join("status")).ok()?;
        Some(Thread {
            tid: *tid,
            allowed: set(&status, "Cpus_allowed_list")?,
            cpu: content(&task.join("stat")).ok().and_then(|stat| last_cpu(&stat)),
        })
    };
    let threads: Vec<Thread> = tids.iter().filter_map(thread).collect();
    // Without any of these it is another process, with this id here: the program's is of another PID namespace.
    if threads.is_empty() && !tids.is_empty() {
        return None;
    }
    let groups = content(&process.join("cgroup")).unwrap_or_default();
    Some(Binding {
        at,
        allowed: set(&status, "Cpus_allowed_list").unwrap_or_default(),
        memory: set(&status, "Mems_allowed_list").unwrap_or_default(),
        threads,
        available: available(root, &groups),
        allotted: None,
        quota: quota(root, &groups),
        visible: visible(&process.join("environ")),
        launcher: None,
        is_contained: CONTAINERS.iter().any(|word| groups.contains(word))
            || CONTAINER_FILES
                .iter()
                .any(|file| process.join("root").join(file).exists()),
        node: None,
    })
}

/// Resident bytes from which on a process's `numa_maps` is read on an explicit question only: reading it walks all pages, and the process
/// cannot map memory meanwhile.
pub const MAX_RESIDENT: u64 = 16 << 30;

/// Reads where the memory of a process is, and that of its buffers: addresses in order. `is_explicit`: however large it is.
pub fn memory(root: &Path, pid: u32, buffers: &[u64], is_explicit: bool) -> MemoryMap {
    let process = root.join(format!("proc/{pid}"));
    let pages = text(&process.join("statm")).and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    let Some(resident) = pages.map(|pages| pages.saturating_mul(rustix::param::page_size() as u64)) else {
        return MemoryMap::Absent;
    };
    if resident > MAX_RESIDENT && !is_explicit {
        return MemoryMap::TooLarge(resident);
    }
    let began = Instant::now();
    let Ok(file) = std::fs::File::open(process.join("numa_maps")) else {
        return MemoryMap::Absent;
    };
    let mut sums: [BTreeMap<u32, u64>; 2] = Default::default();
    let mut policies: BTreeMap<String, u64> = BTreeMap::new();
    // A mapping ends at the next one, at the latest.
    let mut last: Option<Mapping> = None;
    let mut add = |Mapping { begin, policy, pages }: Mapping, end: u64| {
        let first = buffers.partition_point(|address| *address < begin);
        let bytes: u64 = pages.iter().map(|(_, bytes)| bytes).sum();
        if bytes > 0 && (policies.len() < MAX_POLICIES || policies.contains_key(&policy)) {
            *policies.entry(policy).or_default() += bytes;
        }
        let has_buffer = buffers.get(first).is_some_and(|address| *address < end);
        for (numa, bytes) in pages {
            for sums in sums.iter_mut().take(1 + usize::from(has_buffer)) {
                *sums.entry(numa).or_default() += bytes;
            }
        }
    };
    for line in BufReader::new(file).lines() {
        let Ok(line) = line else { return MemoryMap::Absent };
        if let Some(mapping) = mapping(&line) {
            let end = mapping.begin;
            if let Some(before) = last.replace(mapping) {
                add(before, end);
            }
        }
    }
    if let Some(before) = last {
        add(before, u64::MAX);
    }
    let [all, buffers] = sums.map(|sums| sums.into_iter().collect());
    let mut policies: Vec<(String, u64)> = policies.into_iter().collect();
    policies.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    MemoryMap::Read {
        all,
        buffers,
        policies: policies.into_iter().map(|(policy, _)| policy).collect(),
        took: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
    }
}

/// A mapping.
struct Mapping {
    begin: u64,
    policy: String,
    /// Bytes by NUMA node.
    pages: Vec<(u32, u64)>,
}

/// A line of `numa_maps`: `7f… default anon=3 N0=1 N1=2 kernelpagesize_kB=4`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let begin = u64::from_str_radix(words.next()?, 16).ok()?;
    let policy = words.next()?.chars().take(MAX_POLICY).collect();
    let values: Vec<(&str, u64)> = words
        .filter_map(|word| word.split_once('='))
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect();
    // Those of devices have no pages.
    let size = values.iter().find(|(name, _)| *name == "kernelpagesize_kB");
    let size = size.map_or(0, |size| size.1);
    let of_numa = |(name, pages): &(&str, u64)| {
        let numa = name.strip_prefix('N')?.parse().ok()?;
        Some((numa, pages.saturating_mul(size).saturating_mul(1024)))
    };
    Some(Mapping {
        begin,
        policy,
        pages: values.iter().filter_map(of_numa).collect(),
    })
}

/// Field 39 of `stat`. The name before the state may contain any character.
fn last_cpu(stat: &str) -> Option<u32> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_ascii_whitespace().nth(36)?.parse().ok()
}

/// The variables that limit the visible GPUs; all else is dropped at once.
fn visible(environ: &Path) -> Vec<(String, String)> {
    let mut bytes = Vec::new();
    let Ok(file) = std::fs::File::open(environ) else {
        return Vec::new();
    };
    if file.take(MAX_ENVIRONMENT).read_to_end(&mut bytes).is_err() {
        return Vec::new();
    }
    let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
        let (name, value) = std::str::from_utf8(variable).ok()?.split_once('=')?;
        let is_plain = value.len() <= MAX_VALUE && !value.chars().any(char::is_control);
        (VISIBLE.contains(&name) && is_plain).then(|| (name.to_owned(), value.to_owned()))
    });
    let mut variables: Vec<_> = variables.collect();
    variables.sort();
    variables
}

/// CPUs that the control group of a process may use: as the nearest group says that is seen here.
fn available(root: &Path, groups: &str) -> CpuSet {
    let hierarchies = group_paths(groups).filter_map(|(controllers, path)| {
        let (hierarchy, file) = match controllers {
            "" => ("", "cpuset.cpus.effective"),
            _ if controllers.split(',').any(|name| name == "cpuset") => ("cpuset", "cpuset.effective_cpus"),
            _ => return None,
        };
        let root = root.join("sys/fs/cgroup").join(hierarchy);
        path.ancestors()
            .find_map(|above| CpuSet::parse(&text(&root.join(above).join(file))?))
    });
    let mut known = hierarchies.filter(|cpus| !cpus.is_empty());
    let first = known.next().unwrap_or_default();
    known.fold(first, |both, next| both.and(&next))
}

/// Controllers and path of each hierarchy of control groups; none for the second version.
fn group_paths(groups: &str) -> impl Iterator<Item = (&str, &Path)> {
    groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let path = Path::new(path.trim_start_matches('/'));
        let is_inside = !path.components().any(|part| part == std::path::Component::ParentDir);
        is_inside.then_some((controllers, path))
    })
}

/// Cores that the control groups of a process, and those above, let it use at a time.
fn quota(root: &Path, groups: &str) -> Option<f64> {
    let mut least: Option<f64> = None;
    let mut limit = |quota: Option<f64>| {
        let quota = quota.filter(|quota| *quota > 0.0);
        least = match (least, quota) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    };
    for (controllers, path) in group_paths(groups) {
        for above in path.ancestors() {
            if controllers.is_empty() {
                limit(text(&root.join("sys/fs/cgroup").join(above).join("cpu.max")).and_then(|text| cpu_max(&text)));
            } else if controllers.split(',').any(|name| name == "cpu") {
                let group = root.join("sys/fs/cgroup/cpu").join(above);
                let number = |name: &str| text(&group.join(name))?.parse::<f64>().ok();
                let period = number("cpu.cfs_period_us").filter(|period| *period > 0.0);
                limit(
                    number("cpu.cfs_quota_us")
                        .zip(period)
                        .map(|(quota, period)| quota / period),
                );
            }
        }
    }
    least
}

/// `cpu.max`: quota and period, `max` without a quota.
fn cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod machines;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) mod tree;
