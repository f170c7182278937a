//! Processes that lost their parent: the first process of a container has to wait for them.

use rustix::process::{Pid, WaitOptions, waitpid};
use std::fs;

/// Waits for orphans.
pub(super) struct Orphans {
    /// Processes that roctop has started: others wait for these.
    own: Vec<i32>,
    /// roctop's name; those that it starts later have it, too.
    name: String,
}

impl Default for Orphans {
    fn default() -> Self {
        Self {
            own: children(),
            name: name("self"),
        }
    }
}

impl Orphans {
    /// Leaves a process to another that waits for it.
    pub(super) fn leave(&mut self, pid: u32) {
        self.own.extend(i32::try_from(pid));
    }

    /// Waits for those that have ended.
    pub(super) fn reap(&self) {
        for pid in children() {
            if self.own.contains(&pid) || name(&pid.to_string()) == self.name {
                continue;
            }
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
    }
}

fn name(process: &str) -> String {
    fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default()
}

fn children() -> Vec<i32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let all = tasks.map(of).collect::<String>();
    all.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
