//! How much memory the held records may take.

use std::path::Path;

/// The limit where nothing smaller is set, bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Share of the control group's memory, as a divisor.
const GROUP_SHARE: u64 = 10;
/// The least that is of use, bytes.
const MIN_BYTES: u64 = 4 << 20;

/// 256 MiB, or a tenth of the memory limit of this process's control group, read below `root`.
pub fn limit(root: &Path) -> u64 {
    let group = group_limit(root).map_or(u64::MAX, |limit| limit / GROUP_SHARE);
    group.clamp(MIN_BYTES, MAX_BYTES)
}

/// The smallest limit of the process's group and its parents; `None` without one.
fn group_limit(root: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_first = controllers.split(',').any(|name| name == "memory");
        match (is_first, controllers.is_empty()) {
            // Version 1 has a tree for the controller, version 2 has one for all.
            (true, _) => smallest(&root.join("sys/fs/cgroup/memory"), path, "memory.limit_in_bytes"),
            (_, true) => smallest(&root.join("sys/fs/cgroup"), path, "memory.max"),
            _ => None,
        }
    });
    limits.min()
}

/// The smallest number in files of this name from a group up to the tree's root. In a container the path may be one of the host,
/// and the tree begins with the container's own group.
fn smallest(tree: &Path, group: &str, name: &str) -> Option<u64> {
    let group = Path::new(group.trim_start_matches('/'));
    let limits = group.ancestors().filter_map(|group| {
        let text = std::fs::read_to_string(tree.join(group).join(name)).ok()?;
        text.trim().parse::<u64>().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_a_tenth_of_the_smallest_group() {
        let root = std::env::temp_dir().join(format!("roctop-groups-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(limit(&root), MAX_BYTES, "nothing is known");
        write("proc/self/cgroup", "0::/a/b\n");
        write("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(limit(&root), MAX_BYTES);
        write("sys/fs/cgroup/a/memory.max", "1073741824\n");
        assert_eq!(limit(&root), 107_374_182);
        write("sys/fs/cgroup/a/b/memory.max", "1048576\n");
        assert_eq!(limit(&root), MIN_BYTES);
        write("proc/self/cgroup", "9:cpu:/x\n4:memory:/docker/0123\n0::/\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
        assert_eq!(
            limit(&root),
            53_687_091,
            "the container's own group is at the tree's root"
        );
        std::fs::remove_dir_all(&root).unwrap();
    }
}
