//! Programs under a limit of memory, which the Linux kernel enforces.

use std::path::{Path, PathBuf};
use std::process::Command;

/// How memory is limited.
pub(crate) enum Limit {
    /// By a control group that the tests created; removed in the end.
    Group(PathBuf),
    /// By a scope of the user's service manager, with this many bytes.
    Scope(u64),
}

impl Limit {
    /// A limit of `bytes` bytes, without swap; `None` where none can be set. A limit of the address space (`ulimit -v`) is none: it
    /// counts what is reserved and not used.
    pub(crate) fn new(name: &str, bytes: u64) -> Option<Self> {
        let group = format!("roctop-{name}-{}", std::process::id());
        // Version 1 has a tree for memory, version 2 has one for all.
        let trees = [
            (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.memsw.limit_in_bytes",
            ),
            ("/sys/fs/cgroup", "memory.max", "memory.swap.max"),
        ];
        for (tree, limit, swap) in trees {
            let path = Path::new(tree).join(&group);
            if std::fs::create_dir(&path).is_err() {
                continue;
            }
            let limited = Self::Group(path.clone());
            if std::fs::write(path.join(limit), bytes.to_string()).is_ok() {
                // Without swap there is no such file. Version 1 limits the sum.
                let most = if limit == "memory.max" { 0 } else { bytes };
                let _ = std::fs::write(path.join(swap), most.to_string());
                return Some(limited);
            }
        }
        let scope = Self::Scope(bytes);
        if scope
            .command("true")
            .output()
            .is_ok_and(|output| output.status.success())
        {
            return Some(scope);
        }
        println!(
            "SKIPPED: no control group can limit memory here (root, or a service manager of the user, can set one)"
        );
        None
    }

    /// A command under the limit.
    pub(crate) fn command(&self, program: &str) -> Command {
        match self {
            Self::Group(path) => {
                let mut command = Command::new("sh");
                let enter = format!("echo $$ >'{}/cgroup.procs' && exec \"$@\"", path.display());
                command.args(["-c", &enter, "sh", program]);
                command
            }
            Self::Scope(bytes) => {
                let mut command = Command::new("systemd-run");
                command.args(["--user", "--scope", "--quiet", "-p", "MemorySwapMax=0", "-p"]);
                command.arg(format!("MemoryMax={bytes}")).args(["--", program]);
                command
            }
        }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        if let Self::Group(path) = self {
            let _ = std::fs::remove_dir(path);
        }
    }
}
