//! Where a process may run on its node, and what the node has: CPUs, NUMA nodes, GPUs, network cards.

use crate::item::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// CPUs by number: disjoint ranges in order, each with its first and last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u32, u32)>")]
pub struct CpuSet(Vec<(u32, u32)>);

impl TryFrom<Vec<(u32, u32)>> for CpuSet {
    type Error = &'static str;

    /// Errors: a range that is none, or too many of them.
    fn try_from(ranges: Vec<(u32, u32)>) -> Result<Self, Self::Error> {
        let is_range = |(first, last): &(u32, u32)| first <= last && *last < Self::MAX;
        if ranges.len() > Self::MAX_RANGES || !ranges.iter().all(is_range) {
            return Err("no set of CPUs");
        }
        Ok(Self::joined(ranges))
    }
}

impl CpuSet {
    /// Greatest number of a CPU plus one: more than the Linux kernel can be built for.
    const MAX: u32 = 1 << 16;
    /// Maximum number of ranges; real machines have few.
    const MAX_RANGES: usize = 1 << 13;

    /// Reads the kernel's list format, `0-3,8`. `None` if it is another text.
    pub fn parse(list: &str) -> Option<Self> {
        let parts = list.trim().split(',').map(str::trim).filter(|part| !part.is_empty());
        let ranges = parts.map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.parse().ok()?, last.parse().ok()?))
        });
        Self::try_from(ranges.collect::<Option<Vec<_>>>()?).ok()
    }

    /// The set of these, some of which may be the same. Greater numbers than a CPU can have are left out.
    pub fn of(cpus: impl IntoIterator<Item = u32>) -> Self {
        let cpus = cpus.into_iter().filter(|cpu| *cpu < Self::MAX);
        Self::joined(cpus.map(|cpu| (cpu, cpu)).collect())
    }

    fn joined(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }

    /// Those of either.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self::joined(self.0.iter().chain(&other.0).copied().collect())
    }

    /// Whether it has none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of CPUs.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    /// Whether it has this one.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&cpu))
    }

    /// Whether both have one.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().any(|(first, last)| {
            let next = other.0.partition_point(|known| known.1 < *first);
            other.0.get(next).is_some_and(|known| known.0 <= *last)
        })
    }

    /// The CPUs, in order.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// Those of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = Vec::new();
        for a in &self.0 {
            let met = other.0.iter().map(|b| (a.0.max(b.0), a.1.min(b.1)));
            both.extend(met.filter(|(first, last)| first <= last));
        }
        Self::joined(both)
    }

    /// As a mask in hexadecimal, without a prefix.
    pub fn mask(&self) -> String {
        let digits = self.0.last().map_or(0, |last| last.1 / 4 + 1);
        let digit = |at: u32| (0..4).fold(0u32, |sum, bit| sum | u32::from(self.contains(at * 4 + bit)) << bit);
        (0..digits)
            .rev()
            .map(|at| char::from_digit(digit(at), 16).unwrap_or('0'))
            .collect()
    }
}

impl fmt::Display for CpuSet {
    /// The kernel's list format.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            if first == last {
                write!(out, "{comma}{first}")?;
            } else {
                write!(out, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numa {
    /// Its number.
    pub id: u32,
    /// Its CPUs.
    pub cpus: CpuSet,
}

/// A PCI device: a GPU, or a network card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Name of a card (`mlx5_0`); of a GPU its PCI address.
    pub name: String,
    /// Number of the GPU's node in the driver's topology; of a card 0.
    pub node: u32,
    /// Number of the GPU among the GPUs; of a card 0.
    pub number: u32,
    /// The NUMA node that it is attached to, if the driver names one that exists.
    pub numa: Option<u32>,
    /// Its PCI root (`pci0000:c0`), if known.
    pub root: Option<String>,
    /// Compute and memory partition of a GPU (`CPX/NPS4`), if the driver names them.
    pub partition: Option<String>,
    /// The GPUs that it has direct links to, by number.
    pub links: Vec<u32>,
}

/// What a node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// CPUs that are online.
    pub online: CpuSet,
    /// NUMA nodes; none if their CPUs are not known, or contradict each other.
    pub numa: Vec<Numa>,
    /// Hardware threads of each core; none if not known.
    pub cores: Vec<CpuSet>,
    /// GPUs, by number.
    pub gpus: Vec<Device>,
    /// Network cards of InfiniBand, RoCE and Slingshot.
    pub cards: Vec<Device>,
    /// Settings of the Linux kernel and the driver: name and value, as read.
    pub settings: Vec<(String, String)>,
}

impl Node {
    /// The NUMA node of a CPU.
    pub fn numa_of(&self, cpu: u32) -> Option<u32> {
        self.numa
            .iter()
            .find(|numa| numa.cpus.contains(cpu))
            .map(|numa| numa.id)
    }

    /// CPUs of a NUMA node, if it has any.
    pub fn cpus_of(&self, numa: u32) -> Option<&CpuSet> {
        let known = self.numa.iter().find(|known| known.id == numa)?;
        (!known.cpus.is_empty()).then_some(&known.cpus)
    }

    /// Numbers of the NUMA nodes that have CPUs of a set.
    pub fn numas_of(&self, cpus: &CpuSet) -> Vec<u32> {
        let met = self.numa.iter().filter(|numa| numa.cpus.meets(cpus));
        met.map(|numa| numa.id).collect()
    }

    /// The card that is nearest to a GPU: below the same PCI root, else at the same NUMA node.
    pub fn nearest_card(&self, gpu: &Device) -> Option<&Device> {
        let by_root = || {
            self.cards
                .iter()
                .find(|card| gpu.root.is_some() && card.root == gpu.root)
        };
        let by_numa = || {
            self.cards
                .iter()
                .find(|card| gpu.numa.is_some() && card.numa == gpu.numa)
        };
        by_root().or_else(by_numa)
    }
}

/// Where a process's memory is, or why that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryMap {
    /// As read.
    Read {
        /// Resident bytes by NUMA node.
        all: Vec<(u32, u64)>,
        /// The same of the mappings that contain buffers.
        buffers: Vec<(u32, u64)>,
        /// Policies of its memory in the Linux kernel's words (`default`, `bind:3`), the one with most bytes first.
        #[serde(default)]
        policies: Vec<String>,
        /// Time that the reading took, ns.
        took: Nanos,
    },
    /// It is read on an explicit question only, because this number of bytes is resident.
    TooLarge(u64),
    /// It cannot be read.
    Absent,
}

/// A thread that calls HIP or HSA.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// CPUs that it may run on.
    pub allowed: CpuSet,
    /// The CPU that it ran on last.
    pub cpu: Option<u32>,
}

/// A reading of a process, and of its node where that was not read before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Binding {
    /// Time of the reading.
    pub at: Nanos,
    /// CPUs that the process's main thread may run on.
    pub allowed: CpuSet,
    /// NUMA nodes that it may take memory from, in the format of CPUs.
    pub memory: CpuSet,
    /// Threads that were read this time.
    pub threads: Vec<Thread>,
    /// CPUs that its control group may use; none if that is not known.
    pub available: CpuSet,
    /// Number of CPUs of the node that the scheduler gave to the job, if it says so.
    pub allotted: Option<u64>,
    /// Cores that its control group lets it use at a time, if limited.
    pub quota: Option<f64>,
    /// Variables that limit the visible GPUs, and their values.
    pub visible: Vec<(String, String)>,
    /// Who started the process as one of several (`Slurm`), if known.
    pub launcher: Option<String>,
    /// Whether its control group is a container's.
    pub is_contained: bool,
    /// What the node has.
    pub node: Option<Box<Node>>,
}

#[cfg(test)]
mod tests {
    use super::CpuSet;

    #[test]
    fn lists_of_cpus_are_read_and_written() {
        for (text, written, count, mask) in [
            ("0-3,8\n", "0-3,8", 5, "10f"),
            ("", "", 0, ""),
            ("3,1,2, 0", "0-3", 4, "f"),
            ("64-127", "64-127", 64, "ffffffffffffffff0000000000000000"),
        ] {
            let set = CpuSet::parse(text).unwrap();
            assert_eq!(
                (set.to_string().as_str(), set.count(), set.mask().as_str()),
                (written, count, mask)
            );
        }
        for wrong in ["a", "3-1", "0-70000", "1--2", "-1", "0-4294967296"] {
            assert_eq!(CpuSet::parse(wrong), None, "{wrong}");
        }
        let set = |list| CpuSet::parse(list).unwrap();
        assert!(set("0-3").meets(&set("3-9")) && !set("0-3").meets(&set("4-9")));
        assert_eq!(set("0-3,8-9").and(&set("2-8")), set("2-3,8"));
    }
}
