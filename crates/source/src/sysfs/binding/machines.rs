//! What is said of ranks on machines as they are: each machine with ranks bound rightly and wrongly.

use super::tree::{EPYC_NPS1, EPYC_NPS4, MI250X, MI300A, MI300X_CPX, MI300X_SPX, Machine, Tree, WORKSTATION};
use super::*;
use roctop_model::analysis::placement::{Kind, Place, verdicts};

/// Ranks of a node, each with its CPUs and the number of its GPU; what is to be said of them, and the lines that mend it.
struct Case {
    launcher: &'static str,
    ranks: &'static [(&'static str, u32)],
    said: &'static [&'static str],
    lines: &'static [&'static str],
}

impl Case {
    const fn well(launcher: &'static str, ranks: &'static [(&'static str, u32)]) -> Self {
        Self {
            launcher,
            ranks,
            said: &[],
            lines: &[],
        }
    }
}

/// Number of the GPU of a rank that runs no kernels.
const NO_GPU: u32 = u32::MAX;

fn set(list: &str) -> CpuSet {
    CpuSet::parse(list).expect("a list")
}

fn places(node: &Node, launcher: &str, ranks: &[(&str, u32)]) -> Vec<Place> {
    let place = |(rank, (cpus, gpu)): (u32, &(&str, u32))| Place {
        launcher: Some(launcher.into()),
        ..Place::of_rank(rank, &set(cpus), &[*gpu], node)
    };
    (0..).zip(ranks).map(place).collect()
}

/// What is said, and the lines that mend it, each once.
fn judged(places: &[Place]) -> (Vec<String>, Vec<String>) {
    let (mut said, mut lines) = (Vec::new(), Vec::new());
    for verdict in verdicts(places) {
        said.push(verdict.text);
        lines.extend(verdict.remedy.filter(|line| !lines.contains(line)));
    }
    (said, lines)
}

/// The CPUs that a line gives to each rank, read as srun and taskset read them.
fn of_line(line: &str) -> Option<Vec<CpuSet>> {
    if let Some(masks) = line.strip_prefix("srun --cpu-bind=mask_cpu:") {
        let cpus = |mask: &str| {
            let digits = mask.strip_prefix("0x").expect("a mask").chars().rev();
            let values = (0u32..).zip(digits.map(|digit| digit.to_digit(16).expect("a digit")));
            CpuSet::of(values.flat_map(|(at, digit)| {
                let bits = (0..4).filter(move |bit| digit >> bit & 1 == 1);
                bits.map(move |bit| at * 4 + bit)
            }))
        };
        return Some(masks.split(',').map(cpus).collect());
    }
    let (_, lists) = line.split_once("for the node's ranks: ")?;
    Some(lists.split(' ').map(set).collect())
}

const OF_MI250X: [Case; 2] = [
    // In the order of the GPUs, as the centres' documents have it; and in the order of the cores.
    Case::well(
        "Slurm",
        &[
            ("49", 0),
            ("57", 1),
            ("17", 2),
            ("25", 3),
            ("1", 4),
            ("9", 5),
            ("33", 6),
            ("41", 7),
        ],
    ),
    Case {
        launcher: "Slurm",
        ranks: &[("1", 0), ("9", 1), ("17", 2), ("25", 3)],
        said: &[
            "rank 0 launches at NUMA node 0, and its GPU 0 is at node 3",
            "rank 1 launches at NUMA node 0, and its GPU 1 is at node 3",
        ],
        lines: &[
            "srun --cpu-bind=mask_cpu:0xffff000000000000ffff000000000000,0xffff000000000000ffff000000000000,\
             0xffff000000000000ffff0000,0xffff000000000000ffff0000",
        ],
    },
];

const OF_MI300A: [Case; 3] = [
    Case::well(
        "Slurm",
        &[("0-23,96-119", 0), ("24-47", 1), ("48-71", 2), ("72-95,168-191", 3)],
    ),
    Case {
        launcher: "PALS",
        ranks: &[("0-23", 0), ("48-71", 1), ("24-47", 2), ("72-95", 3)],
        said: &[
            "rank 1 launches at NUMA node 2, and its GPU 1 is at node 1",
            "rank 2 launches at NUMA node 1, and its GPU 2 is at node 2",
        ],
        lines: &["taskset -c LIST before the program, with these for the node's ranks: \
                  0-23,96-119 24-47,120-143 48-71,144-167 72-95,168-191"],
    },
    Case {
        launcher: "Flux",
        ranks: &[("0-11", 0), ("12-23", 0)],
        said: &["ranks 0-1 share GPU 0, and 3 GPUs have no kernels"],
        lines: &["flux run --gpus-per-task=1 -o gpu-affinity=per-task"],
    },
];

const OF_SPX: [Case; 2] = [
    Case::well(
        "Open MPI",
        &[("0-47", 0), ("48-95", 3), ("96-143", 4), ("144-191,336-383", 7)],
    ),
    Case {
        launcher: "Open MPI",
        ranks: &[("0-47", 0), ("48-95", 4)],
        said: &["rank 1 launches at NUMA node 0, and its GPU 4 is at node 1"],
        lines: &[
            "a wrapper behind mpirun --bind-to none: taskset -c LIST, with these for the node's ranks: \
                  0-95,192-287 96-191,288-383",
        ],
    },
];

const OF_CPX: [Case; 2] = [
    Case::well("Slurm", &[("0", 0), ("1", 31), ("96", 32), ("97", 63)]),
    Case {
        launcher: "Flux",
        ranks: &[("0", 7), ("1", 32)],
        said: &["rank 1 launches at NUMA node 0, and its GPU 32 is at node 1"],
        lines: &["taskset -c LIST before the program, with these for the node's ranks: \
                  0-95,192-287 96-191,288-383"],
    },
];

const OF_NPS4: [Case; 2] = [
    Case::well("MPICH", &[("6-11", 0), ("12-17", 1), ("30-35", 2), ("42-47", 3)]),
    // All in the first NUMA node, which has six cores and no GPU.
    Case {
        launcher: "MPICH",
        ranks: &[("0-1", 0), ("0-1", 1), ("0-1", 2), ("2-5", 3)],
        said: &[
            "rank 0 launches at NUMA node 0, and its GPU 0 is at node 1",
            "rank 1 launches at NUMA node 0, and its GPU 1 is at node 2",
            "rank 2 launches at NUMA node 0, and its GPU 2 is at node 5",
            "rank 3 launches at NUMA node 0, and its GPU 3 is at node 7",
            "ranks 0-2 may use 2 cores together, and 42 cores are free",
        ],
        lines: &[
            "taskset -c LIST before the program, with these for the node's ranks: \
             6-11,54-59 12-17,60-65 30-35,78-83 42-47,90-95",
            "mpiexec -bind-to core:12",
        ],
    },
];

const OF_NPS1: [Case; 2] = [
    Case::well("Slurm", &[("0-23", 0), ("0-23", 1), ("24-47", 4), ("24-47", 7)]),
    Case {
        launcher: "Slurm",
        ranks: &[("0-23", 3), ("24-47", 3), ("24-47", 4)],
        said: &[
            "ranks 0-1 share GPU 3, and 6 GPUs have no kernels",
            "rank 1 launches at NUMA node 1, and its GPU 3 is at node 0",
        ],
        lines: &[
            "srun --gpus-per-task=1 --gpu-bind=closest",
            "srun --cpu-bind=mask_cpu:0xffffff000000ffffff,0xffffff000000ffffff,0xffffff000000ffffff000000",
        ],
    },
];

// The NUMA node of the GPU is not known: only cores are judged.
const OF_WORKSTATION: [Case; 2] = [
    Case::well("Open MPI", &[("0-15", 0), ("1,17", 0)]),
    Case {
        launcher: "Open MPI",
        ranks: &[("0", 0), ("0,16", 0)],
        said: &["ranks 0-1 may use 1 core together, and 15 cores are free"],
        lines: &["mpirun --map-by slot:PE=8 --bind-to core"],
    },
];

/// Machines with the last GPU's address, partition and nearest card, and cases.
const CASES: [(&Machine, [&str; 3], &[Case]); 7] = [
    (&MI250X, ["0000:de:00.0", "", "cxi3"], &OF_MI250X),
    (&MI300A, ["0003:01:00.0", "SPX/NPS1", ""], &OF_MI300A),
    (&MI300X_SPX, ["0000:e5:00.0", "SPX/NPS1", "mlx5_7"], &OF_SPX),
    (&MI300X_CPX, ["0000:e5:00.0", "CPX/NPS4", "mlx5_7"], &OF_CPX),
    (&EPYC_NPS4, ["0000:73:00.0", "", ""], &OF_NPS4),
    (&EPYC_NPS1, ["0000:a3:00.0", "", "mlx5_0"], &OF_NPS1),
    (&WORKSTATION, ["0000:03:00.0", "", ""], &OF_WORKSTATION),
];

#[test]
fn ranks_on_real_machines_are_judged() {
    for (machine, [address, partition, card], cases) in CASES {
        let tree = Tree::of(machine, "judged");
        let node = node(&tree.0);
        assert_eq!(node.gpus.len(), machine.gpus.len() * machine.parts as usize);
        let gpu = node.gpus.last().expect("a GPU");
        let nearest = node.nearest_card(gpu).map_or("", |nearest| &nearest.name);
        let facts = (&*gpu.name, gpu.partition.as_deref().unwrap_or(""), nearest);
        assert_eq!(facts, (address, partition, card), "{}", machine.name);
        for case in cases {
            let mut places = places(&node, case.launcher, case.ranks);
            let (said, lines) = judged(&places);
            assert_eq!(
                (said, lines.clone()),
                (owned(case.said), owned(case.lines)),
                "{}",
                machine.name
            );
            // Who follows the line for the GPUs is well near them.
            for bound in lines.iter().filter_map(|line| of_line(line)) {
                for (place, cpus) in places.iter_mut().zip(bound) {
                    place.threads[0].allowed = cpus;
                }
                let mut far = verdicts(&places).into_iter().filter(|one| one.kind == Kind::FarFromGpu);
                assert_eq!(far.next(), None, "{}", machine.name);
            }
        }
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Four ranks of which three are far from their GPU, and three crowded; what is left of that when a tree is broken.
fn of_broken(tree: &Tree) -> Vec<Kind> {
    let node = node(&tree.0);
    let mut kinds: Vec<Kind> = verdicts(&places(&node, "Slurm", &[("0", 0), ("0", 1), ("0,64", 2), ("2", 4)]))
        .into_iter()
        .map(|verdict| verdict.kind)
        .collect();
    kinds.dedup();
    kinds
}

/// A file, and what it contains instead; `None` without it.
type Broken = (String, Option<&'static str>);

#[test]
fn broken_trees_give_no_wrong_verdict() {
    use Kind::{CrowdedCores, FarFromGpu};
    let devices = "sys/devices/pci0000";
    let nodes = "sys/devices/system/node";
    let numa = |root: &str, bus: &str| format!("{devices}:{root}/0000:{bus}:00.0/numa_node");
    let far = ["c0/c1", "c0/c6", "c8/c9"].map(|path| path.split_once('/').expect("two"));
    let all = |text: Option<&'static str>| far.map(|(root, bus)| (numa(root, bus), text)).to_vec();
    let one = |path: &str, text: Option<&'static str>| vec![(path.to_owned(), text)];
    // Files with other contents, or without; what may still be said.
    let breaks: Vec<(Vec<Broken>, &[Kind])> = vec![
        (Vec::new(), &[FarFromGpu, CrowdedCores]),
        (all(Some("-1\n")), &[CrowdedCores]),
        (all(Some("9\n")), &[CrowdedCores]),
        (all(Some("many\n")), &[CrowdedCores]),
        (all(None), &[CrowdedCores]),
        // One CPU in two NUMA nodes; one that is offline; a list that is none.
        (one(&format!("{nodes}/node1/cpulist"), Some("15-31\n")), &[CrowdedCores]),
        (
            one(&format!("{nodes}/node1/cpulist"), Some("16-31,900\n")),
            &[CrowdedCores],
        ),
        (one(&format!("{nodes}/node1/cpulist"), Some("16-\n")), &[CrowdedCores]),
        (one(&format!("{nodes}/node1/cpulist"), None), &[CrowdedCores]),
        // CPUs without a core, and a core of another one's.
        (
            one("sys/devices/system/cpu/cpu7/topology/core_cpus_list", None),
            &[FarFromGpu],
        ),
        (
            one("sys/devices/system/cpu/cpu7/topology/core_cpus_list", Some("0,7\n")),
            &[FarFromGpu],
        ),
        (one("sys/devices/system/cpu/online", Some("0-200\n")), &[FarFromGpu]),
        // No node of the driver's topology has the GPUs any more.
        (
            (1..9)
                .map(|node| (format!("sys/class/kfd/kfd/topology/nodes/{node}/properties"), None))
                .collect(),
            &[CrowdedCores],
        ),
    ];
    let tree = Tree::of(&MI250X, "broken");
    for (files, kinds) in breaks {
        let paths = || files.iter().map(|(path, _)| tree.0.join(path));
        let before: Vec<String> = paths()
            .map(|path| std::fs::read_to_string(path).expect("it is there"))
            .collect();
        for (path, text) in &files {
            match text {
                Some(text) => tree.put(path, text),
                None => std::fs::remove_file(tree.0.join(path)).expect("it is there"),
            }
        }
        assert_eq!(of_broken(&tree), kinds, "{files:?}");
        for ((path, _), text) in files.iter().zip(before) {
            tree.put(path, &text);
        }
    }
    // Nothing at all.
    assert_eq!(of_broken(&Tree::new("empty")), []);
}

#[test]
fn offline_cpus_are_no_place_to_send_ranks_to() {
    let tree = Tree::of(&MI250X, "gone");
    // All CPUs of the GPU's NUMA node are offline, and half of another's.
    tree.put("sys/devices/system/cpu/online", "0-31,40-47,64-95,104-111\n");
    tree.put("sys/devices/system/node/node2/cpulist", "40-47,104-111\n");
    tree.put("sys/devices/system/node/node3/cpulist", "\n");
    let node = node(&tree.0);
    assert_eq!((node.numa.len(), node.cores.len()), (4, 40));
    assert_eq!(judged(&places(&node, "Slurm", &[("0", 0)])).0, owned(&[]));
    let (said, lines) = judged(&places(&node, "PALS", &[("0", 6), ("1", 4)]));
    assert_eq!(said, ["rank 0 launches at NUMA node 0, and its GPU 6 is at node 2"]);
    assert_eq!(
        lines,
        ["taskset -c LIST before the program, with these for the node's ranks: 40-47,104-111 0-15,64-79"]
    );
}

#[test]
fn the_cpuset_of_a_container_bounds_what_is_said() {
    let tree = Tree::of(&MI250X, "container");
    let node = node(&tree.0);
    let crowd = |available: &str| {
        let mut places = places(&node, "Slurm", &[("0-1", 4), ("0-1", 5), ("0-1", NO_GPU)]);
        for place in &mut places {
            place.available = set(available);
        }
        judged(&places)
    };
    assert_eq!(crowd("0-1,64-65").0, owned(&[]));
    assert_eq!(
        crowd("0-3").0,
        ["ranks 0-2 may use 2 cores together, and 2 cores are free"]
    );
    // Far it is, and nothing inside mends it.
    let mut far = places(&node, "Slurm", &[("0", 0), ("1", 4)]);
    for place in &mut far {
        place.available = set("0-7");
    }
    let (said, lines) = judged(&far);
    assert_eq!((said.len(), lines), (1, Vec::new()));
    // A part of the GPU's node mends it.
    for place in &mut far {
        place.available = set("0-7,50-51");
    }
    assert_eq!(judged(&far).1, ["srun --cpu-bind=mask_cpu:0xc000000000000,0xff"]);
}

#[test]
fn eight_thousand_cpus_are_judged() {
    let tree = Tree::of(&WORKSTATION, "many");
    tree.put("sys/devices/system/cpu/online", "0-8191\n");
    for numa in 0..32 {
        let list = format!("{}-{}\n", numa * 256, numa * 256 + 255);
        tree.put(&format!("sys/devices/system/node/node{numa}/cpulist"), &list);
    }
    tree.put("sys/devices/pci0000:00/0000:03:00.0/numa_node", "31\n");
    let node = node(&tree.0);
    assert_eq!((node.online.count(), node.cores.len(), node.numa.len()), (8192, 0, 32));
    let (said, lines) = judged(&places(&node, "Slurm", &[("0", 0), ("8191", 0)]));
    assert_eq!(said, ["rank 0 launches at NUMA node 0, and its GPU 0 is at node 31"]);
    assert_eq!(of_line(&lines[0]).expect("masks"), [set("7936-8191"), set("7936-8191")]);
}

/// Asks hwloc, which reads the tree itself.
fn of_hwloc(tree: &Tree, words: &[&str]) -> String {
    let mut command = std::process::Command::new("hwloc-calc");
    command.args(words).env("HWLOC_FSROOT", &tree.0);
    command
        .env("HWLOC_COMPONENTS", "linux,stop")
        .env("HWLOC_THISSYSTEM", "0");
    let output = command.output().expect("hwloc-calc runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// What hwloc also wants: masks, packages, memory.
fn complete(tree: &Tree, machine: &Machine, read: &Node) {
    let mask = |cpus: &CpuSet| {
        let words = read.online.count().div_ceil(32) as usize;
        let digits = format!("{:0>width$}", cpus.mask(), width = words * 8);
        let words: Vec<&str> = (0..words).map(|at| &digits[at * 8..at * 8 + 8]).collect();
        format!("{}\n", words.join(","))
    };
    let each = machine.cores / machine.sockets;
    for core in &read.cores {
        let first = core.cpus().next().expect("a CPU");
        let socket = first / each;
        let from = socket * each;
        let package = CpuSet::of((from..from + each).chain(from + machine.cores..from + each + machine.cores));
        for cpu in core.cpus() {
            let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            tree.put(&format!("{topology}/core_cpus"), &mask(core));
            tree.put(&format!("{topology}/package_cpus"), &mask(&package));
            tree.put(&format!("{topology}/core_id"), &format!("{first}\n"));
            tree.put(&format!("{topology}/physical_package_id"), &format!("{socket}\n"));
        }
    }
    for list in ["cpu/possible", "cpu/present"] {
        tree.put(&format!("sys/devices/system/{list}"), &format!("{}\n", read.online));
    }
    tree.put("sys/devices/system/node/online", &format!("0-{}\n", machine.numa - 1));
    for numa in &read.numa {
        let own = format!("sys/devices/system/node/node{}", numa.id);
        tree.put(&format!("{own}/cpumap"), &mask(&numa.cpus));
        let memory = format!("Node {} MemTotal: 1000000 kB\n", numa.id);
        tree.put(&format!("{own}/meminfo"), &memory);
    }
    tree.put("proc/cpuinfo", "");
}

#[test]
#[ignore = "hwloc-calc: .ci/matrix runs it"]
fn numa_nodes_cores_and_lines_are_those_of_hwloc() {
    for (machine, _, cases) in CASES {
        let tree = Tree::of(machine, "hwloc");
        let read = node(&tree.0);
        complete(&tree, machine, &read);
        let cpus = |object: String| set(&of_hwloc(&tree, &["--physical", "--intersect", "pu", &object]));
        assert_eq!(
            (read.cores.len(), read.numa.len()),
            (machine.cores as usize, machine.numa as usize)
        );
        for numa in &read.numa {
            assert_eq!(cpus(format!("numa:{}", numa.id)), numa.cpus, "{}", machine.name);
        }
        for core in [0, 1, machine.cores / 2, machine.cores - 1] {
            assert_eq!(
                cpus(format!("core:{core}")),
                read.cores[core as usize],
                "{}",
                machine.name
            );
        }
        // The masks for srun: hwloc's of the NUMA nodes of the ranks' GPUs.
        for case in cases {
            let lines = case.lines.iter().filter(|line| line.contains("mask_cpu:"));
            for line in lines {
                let masks = case.ranks.iter().map(|(_, gpu)| {
                    let (_, _, numa) = machine.gpus[(gpu / machine.parts) as usize];
                    of_hwloc(&tree, &["--physical", "--taskset", &format!("numa:{numa}")])
                });
                let masks: Vec<String> = masks.collect();
                assert_eq!(*line, format!("srun --cpu-bind=mask_cpu:{}", masks.join(",")));
            }
        }
    }
}
