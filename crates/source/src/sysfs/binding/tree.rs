//! Trees of files as real machines have them, made from public facts: tables of LUMI's and LLNL's documents, the topologies in the
//! repository of mpibind (GPU, NUMA node and card by PCI address), and AMD's guide to system acceptance.

use std::fs;
use std::path::PathBuf;

/// A machine. Cores, and GPUs, are numbered through; hardware threads follow after all cores, as AMD numbers them.
pub(crate) struct Machine {
    pub(crate) name: &'static str,
    pub(crate) sockets: u32,
    /// Of the machine.
    pub(crate) cores: u32,
    /// NUMA nodes of the machine; they have equally many cores, in order.
    pub(crate) numa: u32,
    /// PCI domain and bus of each GPU, and the NUMA node that the Linux kernel names; -1 if it names none.
    pub(crate) gpus: &'static [(u32, u32, i32)],
    /// GPUs of the driver's topology in each PCI device.
    pub(crate) parts: u32,
    /// Compute and memory partition, where the driver names them.
    pub(crate) partition: Option<(&'static str, &'static str)>,
    /// Class, bus in domain 0 and NUMA node of each network card.
    pub(crate) cards: &'static [(&'static str, u32, i32)],
}

/// Four MI250X in a node of LUMI, Frontier or Tioga: the numbers of GPUs and NUMA nodes differ.
pub(crate) const MI250X: Machine = Machine {
    name: "mi250x",
    sockets: 1,
    cores: 64,
    numa: 4,
    gpus: &[
        (0, 0xc1, 3),
        (0, 0xc6, 3),
        (0, 0xc9, 1),
        (0, 0xce, 1),
        (0, 0xd1, 0),
        (0, 0xd6, 0),
        (0, 0xd9, 2),
        (0, 0xde, 2),
    ],
    parts: 1,
    partition: None,
    cards: &[("cxi", 0xc5, 3), ("cxi", 0xcd, 1), ("cxi", 0xd5, 0), ("cxi", 0xdd, 2)],
};

/// Four MI300A, as in El Capitan: a socket is GPU, 24 cores and one NUMA node, and a PCI domain.
pub(crate) const MI300A: Machine = Machine {
    name: "mi300a",
    sockets: 4,
    cores: 96,
    numa: 4,
    gpus: &[(0, 1, 0), (1, 1, 1), (2, 1, 2), (3, 1, 3)],
    parts: 1,
    partition: Some(("SPX", "NPS1")),
    cards: &[],
};

const OAM: [(u32, u32, i32); 8] = [
    (0, 0x05, 0),
    (0, 0x26, 0),
    (0, 0x46, 0),
    (0, 0x65, 0),
    (0, 0x85, 1),
    (0, 0xa6, 1),
    (0, 0xc6, 1),
    (0, 0xe5, 1),
];

/// Eight MI300X on two sockets, each with a network card below its PCI root.
pub(crate) const MI300X_SPX: Machine = Machine {
    name: "mi300x-spx",
    sockets: 2,
    cores: 192,
    numa: 2,
    gpus: &OAM,
    parts: 1,
    partition: Some(("SPX", "NPS1")),
    cards: &[
        ("infiniband", 0x07, 0),
        ("infiniband", 0x24, 0),
        ("infiniband", 0x44, 0),
        ("infiniband", 0x67, 0),
        ("infiniband", 0x87, 1),
        ("infiniband", 0xa4, 1),
        ("infiniband", 0xc4, 1),
        ("infiniband", 0xe7, 1),
    ],
};

/// The same, each in eight partitions: 64 GPUs.
pub(crate) const MI300X_CPX: Machine = Machine {
    name: "mi300x-cpx",
    parts: 8,
    partition: Some(("CPX", "NPS4")),
    ..MI300X_SPX
};

/// Two EPYC 7401 with four NUMA nodes each (NPS4) and four MI60: Corona's first nodes.
pub(crate) const EPYC_NPS4: Machine = Machine {
    name: "epyc-nps4",
    sockets: 2,
    cores: 48,
    numa: 8,
    gpus: &[(0, 0x13, 1), (0, 0x23, 2), (0, 0x53, 5), (0, 0x73, 7)],
    parts: 1,
    partition: None,
    cards: &[("infiniband", 0x33, 3)],
};

/// Two EPYC 7402 with one NUMA node each (NPS1) and eight MI60: Corona's second nodes.
pub(crate) const EPYC_NPS1: Machine = Machine {
    name: "epyc-nps1",
    sockets: 2,
    cores: 48,
    numa: 2,
    gpus: &[
        (0, 0x63, 0),
        (0, 0x43, 0),
        (0, 0x03, 0),
        (0, 0x27, 0),
        (0, 0xe3, 1),
        (0, 0xc3, 1),
        (0, 0x83, 1),
        (0, 0xa3, 1),
    ],
    parts: 1,
    partition: None,
    cards: &[("infiniband", 0xe1, 1)],
};

/// A workstation: one NUMA node, and the Linux kernel names none for PCI devices.
pub(crate) const WORKSTATION: Machine = Machine {
    name: "workstation",
    sockets: 1,
    cores: 16,
    numa: 1,
    gpus: &[(0, 0x03, -1)],
    parts: 1,
    partition: None,
    cards: &[],
};

/// A tree of files in a separate directory.
pub(crate) struct Tree(pub(crate) PathBuf);

impl Tree {
    pub(crate) fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("roctop-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        Self(root)
    }

    /// A machine's tree; `name` is a test's.
    pub(crate) fn of(machine: &Machine, name: &str) -> Self {
        let tree = Self::new(&format!("{name}-{}", machine.name));
        tree.cpus(machine.cores, machine.numa);
        let mut node = machine.sockets;
        for &(domain, bus, numa) in machine.gpus {
            for part in 0..machine.parts {
                tree.gpu(node, (domain, bus, part), numa, machine.partition);
                node += 1;
            }
        }
        for (number, (class, bus, numa)) in machine.cards.iter().enumerate() {
            let name = if *class == "cxi" { "cxi" } else { "mlx5_" };
            tree.card(class, &format!("{name}{number}"), *bus, *numa);
        }
        tree
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("written");
        fs::write(path, text).expect("written");
    }

    /// CPUs in cores of two hardware threads.
    pub(crate) fn cpus(&self, cores: u32, numa: u32) {
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

    /// A GPU as a node of the driver's topology, and its PCI device below a root. `at` is domain, bus and number of the partition.
    pub(crate) fn gpu(&self, node: u32, at: (u32, u32, u32), numa: i32, partition: Option<(&str, &str)>) {
        let (domain, bus, part) = at;
        let location = part << 28 | bus << 8;
        let properties = format!(
            "cpu_cores_count 0\nsimd_count 440\nlocation_id {location}\ndomain {domain}\ndrm_render_minor {}\n",
            128 + node
        );
        let topology = format!("sys/class/kfd/kfd/topology/nodes/{node}");
        self.put(&format!("{topology}/properties"), &properties);
        self.put(&format!("{topology}/gpu_id"), &format!("{}\n", 1000 + node));
        self.put(&format!("{topology}/name"), "aldebaran\n");
        let inside = inside(domain, bus);
        self.put(&format!("sys/{inside}/numa_node"), &format!("{numa}\n"));
        if let Some((compute, memory)) = partition {
            self.put(
                &format!("sys/{inside}/current_compute_partition"),
                &format!("{compute}\n"),
            );
            self.put(
                &format!("sys/{inside}/current_memory_partition"),
                &format!("{memory}\n"),
            );
        }
        if part == 0 {
            let link = format!("sys/bus/pci/devices/{domain:04x}:{bus:02x}:00.0");
            self.link(&link, &format!("../../../{inside}"));
        }
    }

    /// A network card and its PCI device.
    pub(crate) fn card(&self, class: &str, name: &str, bus: u32, numa: i32) {
        let inside = inside(0, bus);
        self.put(&format!("sys/{inside}/numa_node"), &format!("{numa}\n"));
        fs::create_dir_all(self.0.join(format!("sys/class/{class}/{name}"))).expect("written");
        self.link(
            &format!("sys/class/{class}/{name}/device"),
            &format!("../../../{inside}"),
        );
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("written");
        std::os::unix::fs::symlink(target, path).expect("written");
    }
}

/// A PCI device below `sys`; eight buses share a root.
fn inside(domain: u32, bus: u32) -> String {
    format!("devices/pci{domain:04x}:{:02x}/{domain:04x}:{bus:02x}:00.0", bus & 0xf8)
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
