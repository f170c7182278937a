use super::tree::{MI250X, Tree};
use super::*;

#[test]
fn a_node_with_four_numa_nodes_is_read() {
    let tree = Tree::of(&MI250X, "read");
    tree.put("proc/sys/kernel/numa_balancing", "1\n");
    tree.put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    tree.put("proc/cmdline", "root=/dev/sda iommu=pt quiet\n");
    for (_, bus, _) in MI250X.gpus {
        let group = format!("sys/bus/pci/devices/0000:{bus:02x}:00.0/iommu_group/type");
        tree.put(&group, "identity\n");
    }
    tree.put("sys/bus/pci/devices/0000:de:00.0/iommu_group/type", "DMA-FQ\n");
    let node = node(&tree.0);
    assert_eq!((node.online.count(), node.cores.len(), node.numa.len()), (128, 64, 4));
    assert_eq!(node.numa[1].cpus.to_string(), "16-31,80-95");
    let numas: Vec<_> = node.gpus.iter().map(|gpu| gpu.numa.unwrap()).collect();
    assert_eq!(numas, [3, 3, 1, 1, 0, 0, 2, 2]);
    assert_eq!(node.gpus[4].name, "0000:d1:00.0");
    assert_eq!(node.gpus[4].root.as_deref(), Some("pci0000:d0"));
    let cards: Vec<_> = node
        .gpus
        .iter()
        .map(|gpu| &*node.nearest_card(gpu).unwrap().name)
        .collect();
    assert_eq!(cards, ["cxi0", "cxi0", "cxi1", "cxi1", "cxi2", "cxi2", "cxi3", "cxi3"]);
    let settings: Vec<String> = node
        .settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(
        settings,
        [
            "numa_balancing=1",
            "transparent_hugepage=madvise",
            "iommu=pt",
            "GPUs' iommu=DMA-FQ/identity"
        ]
    );
}

#[test]
fn what_contradicts_itself_or_is_missing_is_not_known() {
    let tree = Tree::of(&MI250X, "contradiction");
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
    tree.gpu(2, (0, 0x10, 0), 7, None);
    tree.gpu(3, (0, 0x20, 0), -1, None);
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
    // A process of another PID namespace has other threads here.
    assert_eq!(process(&tree.0, 9, &[11], 5), None);
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
    let read = process(&tree.0, 9, &[], 5).unwrap();
    assert_eq!((read.available.to_string(), read.is_contained), ("2,4".into(), false));
    // Apptainer makes no control group.
    tree.put("proc/9/root/.singularity.d/runscript", "");
    assert!(process(&tree.0, 9, &[], 5).unwrap().is_contained);
}

#[test]
fn memory_is_summed_by_numa_node_and_for_buffers() {
    let tree = Tree::new("maps");
    let maps = "1000 default file=/bin/app mapped=3 N0=3 kernelpagesize_kB=4\n\
                7f00 prefer:1 anon=10 dirty=10 N0=4 N1=6 kernelpagesize_kB=4\n\
                8f00 bind:3 huge anon=2 N3=2 kernelpagesize_kB=2048\n\
                9f00 default file=/dev/dri/renderD128\n\
                xf00 default N0=9 kernelpagesize_kB=4\n";
    tree.put("proc/9/numa_maps", maps);
    tree.put("proc/9/statm", "90 20 5 1 0 2 0\n");
    let read = |buffers: &[u64], is_explicit| match memory(&tree.0, 9, buffers, is_explicit) {
        MemoryMap::Read {
            all, buffers, policies, ..
        } => {
            // Those of mappings with pages, the one with most bytes first.
            assert_eq!(policies, ["bind:3", "prefer:1", "default"]);
            Ok((all, buffers))
        }
        other => Err(other),
    };
    let all = vec![(0, 7 * 4096), (1, 6 * 4096), (3, 4 << 20)];
    // Within the second mapping and at the begin of the third one; and before, between and after them.
    assert_eq!(
        read(&[0x8000, 0x8f00], false).unwrap(),
        (
            all.clone(),
            all.clone()
                .into_iter()
                .map(|(numa, bytes)| (numa, if numa == 0 { 4 * 4096 } else { bytes }))
                .collect()
        )
    );
    assert_eq!(read(&[0x800, 0x9f01], false).unwrap(), (all.clone(), Vec::new()));
    // More than 16 GiB, by pages of this machine.
    let pages = (16 << 30) / rustix::param::page_size() as u64 + 1;
    tree.put("proc/9/statm", &format!("99999999 {pages} 5 1 0 2 0\n"));
    assert_eq!(
        read(&[], false),
        Err(MemoryMap::TooLarge(pages * rustix::param::page_size() as u64))
    );
    assert_eq!(read(&[], true).unwrap().0, all);
    assert_eq!(memory(&tree.0, 8, &[], true), MemoryMap::Absent);
}

#[test]
fn memory_of_a_real_process_is_what_is_resident() {
    let own = std::process::id();
    let filled = vec![1u8; 64 << 20];
    let address = filled.as_ptr() as u64;
    let MemoryMap::Read { all, buffers, .. } = memory(Path::new("/"), own, &[address], false) else {
        println!("skipped: this system has no numa_maps");
        return;
    };
    let sum = |sums: &[(u32, u64)]| sums.iter().map(|sum| sum.1).sum::<u64>();
    assert!(
        sum(&buffers) >= filled.len() as u64 && sum(&buffers) < sum(&all),
        "{all:?} {buffers:?}"
    );
}
