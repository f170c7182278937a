//! Reads where processes may run, every few seconds: the first time with what their node has.

use super::thread_times::MAX_THREADS;
use crate::clocks::boottime;
use crate::item::ProcessId;
use roctop_source::sysfs::binding;
use roctop_trace::binding::Binding;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where processes may run, and when each was read.
pub(super) struct Bindings {
    /// Root of the driver's and the Linux kernel's files about the node.
    root: PathBuf,
    launcher: Option<String>,
    allotted: Option<u64>,
    /// By process, for itself and each thread.
    read: BTreeMap<u32, (Instant, BTreeMap<u32, Instant>)>,
}

impl Bindings {
    /// Time from one reading of a thread to the next.
    const INTERVAL: Duration = Duration::from_secs(5);

    pub(super) fn new(root: PathBuf) -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        let launcher = roctop_job::launcher::placement(&variable, "").launcher;
        Self {
            root,
            launcher: launcher.map(str::to_owned),
            allotted: variable("SLURM_CPUS_ON_NODE").and_then(|count| count.trim().parse().ok()),
            read: BTreeMap::new(),
        }
    }

    /// Reads a process and those of its threads that are due; `None` if nothing is.
    pub(super) fn read(&mut self, process: ProcessId, pid: u32, tids: &[u32]) -> Option<Binding> {
        let now = Instant::now();
        let is_first = !self.read.contains_key(&process.0);
        let (last, threads) = self.read.entry(process.0).or_insert_with(|| (now, BTreeMap::new()));
        let is_due = |at: &Instant| now.duration_since(*at) >= Self::INTERVAL;
        let due = tids.iter().filter(|tid| threads.get(tid).is_none_or(is_due));
        let due: Vec<u32> = due.take(MAX_THREADS).copied().collect();
        if due.is_empty() && !is_first && !is_due(last) {
            return None;
        }
        *last = now;
        threads.extend(due.iter().map(|tid| (*tid, now)));
        let Some(mut binding) = binding::process(Path::new("/"), pid, &due, boottime()) else {
            // The next reading is the first one.
            if is_first {
                self.read.remove(&process.0);
            }
            return None;
        };
        binding.launcher.clone_from(&self.launcher);
        binding.allotted = self.allotted;
        binding.node = is_first.then(|| Box::new(binding::node(&self.root)));
        Some(binding)
    }
}
