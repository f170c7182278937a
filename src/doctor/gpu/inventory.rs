//! The machine as files of the system describe it: what a verdict is kept under, and what an issue needs to say.

use crate::process::library;
use crate::topology;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// GPUs that share memory and reset with the host's display: their MES has failed on a busy queue's eviction.
const MES_APUS: [&str; 5] = ["gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"];

/// A machine.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Machine {
    /// Instruction sets of its GPUs, by node.
    pub(super) gpus: Vec<String>,
    /// The kernel's release.
    pub(super) kernel: String,
    /// What else was found, by name.
    pub(super) facts: BTreeMap<String, String>,
}

impl Machine {
    /// Is the first GPU an APU whose queues the MES schedules?
    pub(super) fn is_mes_apu(&self) -> bool {
        self.gpus.first().is_some_and(|gfx| MES_APUS.contains(&gfx.as_str()))
    }

    /// What a verdict depends on: GPUs, kernel, driver, firmware and the run-time's build. The version of the driver's
    /// interface follows from kernel and driver.
    pub(super) fn key(&self) -> String {
        let fact = |name: &str| self.facts.get(name).cloned().unwrap_or_default();
        let mut gpus = self.gpus.clone();
        gpus.dedup();
        let rest = ["amdgpu", "firmware", "hsa_build_id"].map(fact);
        format!("{} {} {}", gpus.join(","), self.kernel, rest.join(" "))
    }
}

/// Reads what the key needs: quick enough for every start of a program.
pub(super) fn key_facts(root: &Path) -> Machine {
    let nodes = topology::read(root);
    let gpus: Vec<&topology::Node> = nodes.iter().filter(|node| node.is_gpu()).collect();
    let mut machine = Machine {
        gpus: gpus.iter().map(|node| node.name()).collect(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        facts: BTreeMap::new(),
    };
    if let Some(node) = gpus.first() {
        let firmware = format!("{}/{}", node.property("fw_version"), node.property("sdma_fw_version"));
        machine.facts.insert("firmware".into(), firmware);
    }
    let module = ["sys/module/amdgpu/version", "sys/module/amdgpu/srcversion"];
    if let Some(version) = module.iter().find_map(|file| line(root, file)) {
        machine.facts.insert("amdgpu".into(), version);
    }
    if let Some(id) =
        library::find_exact("libhsa-runtime64.so.1", &[]).and_then(|path| crate::process::elf::build_id(&path))
    {
        machine.facts.insert("hsa_build_id".into(), id);
    }
    machine
}

/// Reads all that an issue needs.
pub(super) fn read(root: &Path) -> Machine {
    let mut machine = key_facts(root);
    let facts = &mut machine.facts;
    for (name, file) in [
        ("numa_balancing", "proc/sys/kernel/numa_balancing"),
        ("transparent_hugepage", "sys/kernel/mm/transparent_hugepage/enabled"),
        ("cgroup_memory_max", "sys/fs/cgroup/memory.max"),
        (
            "compute_partition",
            "sys/class/drm/card0/device/current_compute_partition",
        ),
        (
            "memory_partition",
            "sys/class/drm/card0/device/current_memory_partition",
        ),
    ] {
        if let Some(text) = line(root, file) {
            facts.insert(name.into(), text);
        }
    }
    let is_there = |file: &str| root.join(file).exists();
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    facts.insert(
        "container".into(),
        yes(is_there(".dockerenv") || is_there("run/.containerenv")),
    );
    let groups = fs::read_dir(root.join("sys/kernel/iommu_groups"));
    facts.insert(
        "iommu".into(),
        yes(groups.is_ok_and(|mut groups| groups.next().is_some())),
    );
    facts.insert("wsl".into(), yes(is_there("dev/dxg")));
    if let Ok(shm) = rustix::fs::statvfs(root.join("dev/shm")) {
        let mib = |blocks: u64| blocks.saturating_mul(shm.f_frsize) >> 20;
        facts.insert(
            "shm_mib".into(),
            format!("{} of {}", mib(shm.f_bavail), mib(shm.f_blocks)),
        );
    }
    firmware(root, facts);
    for (index, node) in topology::read(root).iter().filter(|node| node.is_gpu()).enumerate() {
        // A bank of kind 1 is memory that the host can access.
        let is_large = node.banks.iter().any(|bank| bank.get("heap_type") == Some(&1));
        let text = format!(
            "{} device {:#x}, {} XCC, {} MiB, large BAR {}",
            node.name(),
            node.property("device_id"),
            node.property("num_xcc").max(1),
            node.memory >> 20,
            yes(is_large)
        );
        facts.insert(format!("gpu_{index}"), text);
    }
    machine
}

/// Versions of the firmware of the first card that publishes them.
fn firmware(root: &Path, facts: &mut BTreeMap<String, String>) {
    for card in 0..16 {
        let folder = root.join(format!("sys/class/drm/card{card}/device/fw_version"));
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let wanted = ["mec", "mes", "sdma", "rlc", "smc"]
                .iter()
                .any(|part| name.starts_with(part));
            if let Some(text) = line(&folder, &name).filter(|_| wanted) {
                facts.insert(name, text);
            }
        }
        return;
    }
}

/// The first line of a file.
fn line(root: &Path, file: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(file)).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_changes_with_what_the_verdict_depends_on() {
        let machine = |kernel: &str, firmware: &str| Machine {
            gpus: vec!["gfx942".into(); 8],
            kernel: kernel.into(),
            facts: [
                ("firmware".to_owned(), firmware.to_owned()),
                ("shm_mib".to_owned(), kernel.to_owned()),
            ]
            .into(),
        };
        assert_eq!(machine("6.8", "1").key(), "gfx942 6.8  1 ");
        assert_ne!(machine("6.8", "1").key(), machine("6.9", "1").key());
        assert_ne!(machine("6.8", "1").key(), machine("6.8", "2").key());
    }

    #[test]
    fn an_apu_is_one_by_its_name() {
        let of = |gfx: &str| Machine {
            gpus: vec![gfx.to_owned()],
            ..Machine::default()
        };
        assert!(of("gfx1151").is_mes_apu());
        assert!(!of("gfx1100").is_mes_apu() && !of("gfx942").is_mes_apu());
    }
}
