//! Memory that this process may use.

use std::path::Path;

/// What is available on this machine, or the limit of this process's control group if that is less, bytes, read below `root`;
/// `None` if neither is known.
pub fn available(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let machine = kib.map(|kib| kib.saturating_mul(1024));
    machine.into_iter().chain(group_limit(root)).min()
}

/// Memory of this process that no other shares, bytes, read below `root`; `None` if it is not known.
pub fn private(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/self/statm")).ok()?;
    let mut pages = text.split(' ').skip(1).map_while(|number| number.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}

/// The smallest limit of the process's control group and its parents, bytes, read below `root`; `None` without one.
pub fn group_limit(root: &Path) -> Option<u64> {
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
    fn a_group_or_the_machine_limits_memory() {
        let root = std::env::temp_dir().join(format!("roctop-available-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(available(&root), None);
        write("proc/self/cgroup", "0::/a\n");
        write("sys/fs/cgroup/a/memory.max", "1048576\n");
        assert_eq!(available(&root), Some(1 << 20));
        write("proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:  1000 kB\n");
        assert_eq!(available(&root), Some(1000 << 10));
        write("sys/fs/cgroup/a/memory.max", "max\n");
        assert_eq!(available(&root), Some(1000 << 10));
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn private_memory_grows_by_what_is_written() {
        let used = || private(Path::new("/")).unwrap();
        let before = used();
        let written = vec![1_u8; 64 << 20];
        assert!(used() >= before + (48 << 20), "{} bytes were written", written.len());
    }
}
