//! Reads where processes may run and what their node has, from /proc and /sys below a root: `/` on a real machine, a saved tree
//! in tests. What is missing, or contradicts itself, is not known.

use super::reader::content;
use roctop_trace::binding::{Binding, CpuSet, Device, Node, Numa, Thread};
use roctop_trace::gauge::device::location as location_of;
use roctop_trace::item::Nanos;
use roctop_trace::topology;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

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

fn text(path: &Path) -> Option<String> {
    let text = content(path).ok()?;
    Some(text.trim().to_owned())
}

fn names(directory: &Path) -> Vec<String> {
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
    let list = |path: PathBuf| CpuSet::parse(&text(&path)?);
    let online = list(system.join("cpu/online")).unwrap_or_default();
    let numa = numa(&system, &online);
    let cores = cores(&system, &online);
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
        names(&class)
            .into_iter()
            .map(move |name| (class.join(&name).join("device"), name))
    });
    let cards = cards.map(|(directory, name)| device(name, &directory)).collect();
    Node {
        settings: settings(root, &online),
        online,
        cores,
        gpus,
        cards,
        numa,
    }
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
    let groups = content(&process.join("cgroup")).unwrap_or_default();
    Some(Binding {
        at,
        allowed: set(&status, "Cpus_allowed_list").unwrap_or_default(),
        memory: set(&status, "Mems_allowed_list").unwrap_or_default(),
        threads: tids.iter().filter_map(thread).collect(),
        available: available(root, &groups),
        allotted: None,
        quota: quota(root, &groups),
        visible: visible(&process.join("environ")),
        launcher: None,
        is_contained: CONTAINERS.iter().any(|word| groups.contains(word)),
        node: None,
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
mod tests {
    use super::*;
    use std::fs;

    /// A tree of files in a separate directory.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("roctop-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            Self(root)
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("written");
            fs::write(path, text).expect("written");
        }

        /// CPUs in cores of two hardware threads, as AMD numbers them: the second ones after all first ones.
        fn cpus(&self, cores: u32, numa: u32) {
            self.put("sys/devices/system/cpu/online", &format!("0-{}\n", 2 * cores - 1));
            for cpu in 0..2 * cores {
                let first = cpu % cores;
                let list = format!("{first},{}\n", first + cores);
                self.put(
                    &format!("sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list"),
                    &list,
                );
            }
            let each = cores / numa;
            for node in 0..numa {
                let (from, until) = (node * each, (node + 1) * each - 1);
                let list = format!("{from}-{until},{}-{}\n", from + cores, until + cores);
                self.put(&format!("sys/devices/system/node/node{node}/cpulist"), &list);
            }
        }

        /// A GPU as a node of the driver's topology, and its PCI device below a root.
        fn gpu(&self, node: u32, bus: u32, numa: i32, partition: Option<&str>) {
            let location = bus << 8;
            let properties = format!(
                "cpu_cores_count 0\nsimd_count 440\nlocation_id {location}\ndomain 0\ndrm_render_minor {}\n",
                128 + node
            );
            let topology = format!("sys/class/kfd/kfd/topology/nodes/{node}");
            self.put(&format!("{topology}/properties"), &properties);
            self.put(&format!("{topology}/gpu_id"), &format!("{}\n", 1000 + node));
            self.put(&format!("{topology}/name"), "aldebaran\n");
            let inside = format!("devices/pci0000:{:02x}/0000:{bus:02x}:00.0", bus & 0xf0);
            self.put(&format!("sys/{inside}/numa_node"), &format!("{numa}\n"));
            if let Some(partition) = partition {
                self.put(
                    &format!("sys/{inside}/current_compute_partition"),
                    &format!("{partition}\n"),
                );
            }
            self.link(
                &format!("sys/bus/pci/devices/0000:{bus:02x}:00.0"),
                &format!("../../../{inside}"),
            );
        }

        fn card(&self, class: &str, name: &str, bus: u32, numa: i32) {
            let inside = format!("devices/pci0000:{:02x}/0000:{:02x}:00.0", bus & 0xf0, bus);
            self.put(&format!("sys/{inside}/numa_node"), &format!("{numa}\n"));
            fs::create_dir_all(self.0.join(format!("sys/class/{class}/{name}"))).expect("written");
            self.link(
                &format!("sys/class/{class}/{name}/device"),
                &format!("../../../{inside}"),
            );
        }

        fn link(&self, path: &str, target: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("written");
            std::os::unix::fs::symlink(target, path).expect("written");
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A node with four MI250X: eight GPUs, four NUMA nodes, cards below the roots of GPUs (LUMI's and Frontier's documents).
    fn mi250x(name: &str) -> Tree {
        let tree = Tree::new(name);
        tree.cpus(64, 4);
        for (number, (bus, numa)) in [
            (0xc1, 3),
            (0xc6, 3),
            (0xc9, 1),
            (0xce, 1),
            (0xd1, 0),
            (0xd6, 0),
            (0xd9, 2),
            (0xde, 2),
        ]
        .into_iter()
        .enumerate()
        {
            tree.gpu(4 + number as u32, bus, numa, None);
        }
        tree.card("cxi", "cxi0", 0xd3, 0);
        tree.card("cxi", "cxi1", 0xcd, 3);
        tree
    }

    #[test]
    fn a_node_with_four_numa_nodes_is_read() {
        let tree = mi250x("mi250x");
        tree.put("proc/sys/kernel/numa_balancing", "1\n");
        tree.put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        tree.put("proc/cmdline", "root=/dev/sda iommu=pt quiet\n");
        let node = node(&tree.0);
        assert_eq!((node.online.count(), node.cores.len(), node.numa.len()), (128, 64, 4));
        assert_eq!(node.numa[1].cpus.to_string(), "16-31,80-95");
        let numas: Vec<_> = node.gpus.iter().map(|gpu| gpu.numa.unwrap()).collect();
        assert_eq!(numas, [3, 3, 1, 1, 0, 0, 2, 2]);
        assert_eq!(node.gpus[4].name, "0000:d1:00.0");
        assert_eq!(node.gpus[4].root.as_deref(), Some("pci0000:d0"));
        // By the root for GPU 4, by the NUMA node for GPU 0; GPU 2 has neither.
        assert_eq!(node.nearest_card(&node.gpus[4]).unwrap().name, "cxi0");
        assert_eq!(node.nearest_card(&node.gpus[0]).unwrap().name, "cxi1");
        let settings: Vec<String> = node
            .settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            settings,
            ["numa_balancing=1", "transparent_hugepage=madvise", "iommu=pt"]
        );
    }

    #[test]
    #[ignore = "hwloc-calc: .ci/matrix runs it"]
    fn numa_nodes_and_cores_are_those_of_hwloc() {
        let tree = mi250x("hwloc");
        // What hwloc also wants: masks.
        let mask = |cpus: &CpuSet| {
            let digits = format!("{:0>32}", cpus.mask());
            let words: Vec<&str> = (0..4).map(|at| &digits[at * 8..at * 8 + 8]).collect();
            format!("{}\n", words.join(","))
        };
        let read = node(&tree.0);
        for core in &read.cores {
            for cpu in core.cpus() {
                let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
                tree.put(&format!("{topology}/core_cpus"), &mask(core));
                tree.put(&format!("{topology}/package_cpus"), &mask(&read.online));
                tree.put(&format!("{topology}/core_id"), &format!("{}\n", cpu % 64));
                tree.put(&format!("{topology}/physical_package_id"), "0\n");
            }
        }
        for list in ["cpu/possible", "cpu/present"] {
            tree.put(&format!("sys/devices/system/{list}"), "0-127\n");
        }
        tree.put("sys/devices/system/node/online", "0-3\n");
        for numa in &read.numa {
            let own = format!("sys/devices/system/node/node{}", numa.id);
            tree.put(&format!("{own}/cpumap"), &mask(&numa.cpus));
            tree.put(
                &format!("{own}/meminfo"),
                &format!("Node {} MemTotal: 1000000 kB\n", numa.id),
            );
        }
        tree.put("proc/cpuinfo", "");
        let judged = |object: String| {
            let mut command = std::process::Command::new("hwloc-calc");
            command.args(["--physical", "--intersect", "pu", &object]);
            command
                .env("HWLOC_FSROOT", &tree.0)
                .env("HWLOC_COMPONENTS", "linux,stop");
            let output = command.env("HWLOC_THISSYSTEM", "0").output().expect("hwloc-calc runs");
            CpuSet::parse(&String::from_utf8_lossy(&output.stdout)).unwrap_or_else(|| panic!("{output:?}"))
        };
        for numa in &read.numa {
            assert_eq!(judged(format!("numa:{}", numa.id)), numa.cpus);
        }
        for core in [0, 1, 17, 63] {
            assert_eq!(judged(format!("core:{core}")), read.cores[core]);
        }
    }

    #[test]
    fn partitions_of_one_device_are_gpus_of_their_own() {
        let tree = Tree::new("cpx");
        tree.cpus(96, 2);
        for part in 0..6 {
            tree.gpu(2 + part, 0x0c, 0, Some("CPX"));
            // The driver gives each partition its own node; the PCI device is one.
            let _ = fs::remove_file(tree.0.join("sys/bus/pci/devices/0000:0c:00.0"));
        }
        tree.link(
            "sys/bus/pci/devices/0000:0c:00.0",
            "../../../devices/pci0000:00/0000:0c:00.0",
        );
        let node = node(&tree.0);
        assert_eq!(node.gpus.len(), 6);
        assert!(
            node.gpus
                .iter()
                .all(|gpu| gpu.partition.as_deref() == Some("CPX") && gpu.numa == Some(0))
        );
    }

    #[test]
    fn what_contradicts_itself_or_is_missing_is_not_known() {
        let tree = mi250x("contradiction");
        // One CPU in two nodes.
        tree.put("sys/devices/system/node/node0/cpulist", "0-16\n");
        let read = node(&tree.0);
        assert_eq!((read.numa.len(), read.gpus.len()), (0, 8));
        assert!(read.gpus.iter().all(|gpu| gpu.numa.is_none()));
        // A CPU that is not online.
        tree.put("sys/devices/system/node/node0/cpulist", "0-15,200\n");
        assert_eq!(node(&tree.0).numa, []);
        // A GPU at a node that is not there, or at none.
        let tree = Tree::new("nowhere");
        tree.cpus(8, 2);
        tree.gpu(2, 0x10, 7, None);
        tree.gpu(3, 0x20, -1, None);
        let read = node(&tree.0);
        assert_eq!(read.numa.len(), 2);
        assert!(read.gpus.iter().all(|gpu| gpu.numa.is_none()));
        // Offline CPUs have no topology, and are in no node.
        let tree = Tree::new("offline");
        tree.cpus(8, 2);
        tree.put("sys/devices/system/cpu/online", "0-3,8-11\n");
        tree.put("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
        tree.put("sys/devices/system/node/node1/cpulist", "\n");
        let read = node(&tree.0);
        assert_eq!((read.cores.len(), read.numa.len()), (4, 2));
        // One core of two says otherwise.
        tree.put("sys/devices/system/cpu/cpu1/topology/core_cpus_list", "0-1\n");
        assert_eq!(node(&tree.0).cores, []);
        assert_eq!(node(Path::new("/nowhere")), Node::default());
    }

    #[test]
    fn very_many_cpus_are_read() {
        let tree = Tree::new("many");
        tree.cpus(256, 8);
        let read = node(&tree.0);
        assert_eq!((read.online.count(), read.cores.len(), read.numa.len()), (512, 256, 8));
        // As many as the Linux kernel can be built for, without their topology.
        tree.put("sys/devices/system/cpu/online", "0-8191\n");
        tree.put("sys/devices/system/node/node7/cpulist", "224-255,480-8191\n");
        let read = node(&tree.0);
        assert_eq!((read.online.count(), read.cores.len(), read.numa.len()), (8192, 0, 8));
    }

    #[test]
    fn a_process_and_its_threads_are_read() {
        let tree = Tree::new("process");
        let status = "Name:\tapp\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1\n";
        tree.put("proc/9/status", status);
        tree.put("proc/9/task/10/status", "Cpus_allowed_list:\t4\n");
        let stat = format!("10 (a) R (b) S {} 4 0 0", vec!["0"; 35].join(" "));
        tree.put("proc/9/task/10/stat", &stat);
        tree.put("proc/9/cgroup", "0::/user.slice/docker-1\n");
        tree.put("sys/fs/cgroup/user.slice/docker-1/cpu.max", "max 100000\n");
        tree.put("sys/fs/cgroup/user.slice/cpu.max", "250000 100000\n");
        tree.put("sys/fs/cgroup/user.slice/cpuset.cpus.effective", "0-3\n");
        tree.put("sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
        tree.put(
            "proc/9/environ",
            "SECRET=1\0ROCR_VISIBLE_DEVICES=3\0HIP_VISIBLE_DEVICES=\u{1b}[1m\0X\0",
        );
        let read = process(&tree.0, 9, &[10, 11], 5).unwrap();
        assert_eq!(
            (read.allowed.to_string(), read.memory.to_string()),
            ("0-7".into(), "0-1".into())
        );
        let threads: Vec<_> = read
            .threads
            .iter()
            .map(|one| (one.tid, one.allowed.to_string(), one.cpu))
            .collect();
        assert_eq!(threads, [(10, "4".to_owned(), Some(4))]);
        assert_eq!((read.quota, read.is_contained), (Some(2.5), true));
        assert_eq!(read.available.to_string(), "0-3");
        assert_eq!(read.visible, [("ROCR_VISIBLE_DEVICES".to_owned(), "3".to_owned())]);
        assert_eq!(process(&tree.0, 8, &[], 5), None);
        // Version 1, with a path that leads outside.
        tree.put("proc/9/cgroup", "4:cpu,cpuacct:/a/b\n3:cpu:/../../x\n");
        tree.put("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
        tree.put("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
        tree.put("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n");
        tree.put("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
        let read = process(&tree.0, 9, &[], 5).unwrap();
        assert_eq!((read.quota, read.available.is_empty()), (Some(0.5), true));
        tree.put("proc/9/cgroup", "5:cpuset:/job\n");
        tree.put("sys/fs/cgroup/cpuset/job/cpuset.effective_cpus", "2,4\n");
        assert_eq!(process(&tree.0, 9, &[], 5).unwrap().available.to_string(), "2,4");
    }
}
