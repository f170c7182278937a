//! How much memory the held records may take.

use roctop_source::memory::group_limit;
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
