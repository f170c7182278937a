//! Agents in the driver's KFD topology, `/sys/class/kfd/kfd/topology`.
//!
//! Files are read with plain open and read below a root that tests can set, so that an emulated driver (a preloaded
//! library) or a saved tree can replace them. Column meanings: rocprofiler-sdk 1.0.0, `agent_info.csv`.

use crate::item::{Agent, AgentKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Path of the driver's topology, relative to the root.
pub const KFD_TOPOLOGY: &str = "sys/class/kfd/kfd/topology";
/// The same directory, by the path that the thunk library uses.
const KFD_TOPOLOGY_OF_THUNK: &str = "sys/devices/virtual/kfd/kfd/topology";

/// A topology node: a CPU, a GPU, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Number of its directory.
    pub id: u32,
    /// File `properties`: values by name.
    pub properties: BTreeMap<String, u64>,
    /// File `gpu_id`, 0 for a CPU.
    pub gpu_id: u64,
    /// File `name` (`vega20`), empty for a CPU.
    pub model: String,
    /// CPU model from `/proc/cpuinfo`, empty for a GPU.
    pub cpu_model: String,
    /// CPU family from `/proc/cpuinfo`.
    pub cpu_family: u64,
    /// Memory of the GPU, bytes.
    pub memory: u64,
    /// Properties of its memory banks.
    #[serde(default)]
    pub banks: Vec<BTreeMap<String, u64>>,
    /// Properties of its caches.
    #[serde(default)]
    pub caches: Vec<BTreeMap<String, u64>>,
    /// Properties of its links to other nodes.
    #[serde(default)]
    pub links: Vec<BTreeMap<String, u64>>,
}

impl Node {
    /// A node for an agent, if the driver's files are unavailable.
    pub fn of_agent(agent: &Agent) -> Self {
        let mut node = Self {
            id: agent.node,
            memory: agent.memory,
            ..Self::default()
        };
        let units = u64::from(agent.compute_units.max(1));
        let mut put = |name: &str, value: u64| {
            node.properties.insert(name.to_owned(), value);
        };
        if agent.kind == AgentKind::Gpu {
            // `gfx90a`: the last two digits are minor version and stepping, those before them the major version.
            let digits = agent.name.strip_prefix("gfx").filter(|digits| digits.len() > 2);
            let (major, rest) = digits
                .and_then(|digits| digits.split_at_checked(digits.len() - 2))
                .unwrap_or(("0", "00"));
            let rest = u64::from_str_radix(rest, 16).unwrap_or(0);
            put(
                "gfx_target_version",
                major
                    .parse::<u64>()
                    .unwrap_or(0)
                    .saturating_mul(10_000)
                    .saturating_add((rest >> 4) * 100 + (rest & 15)),
            );
            put("simd_per_cu", 4);
            put("simd_count", units * 4);
            put("wave_front_size", agent.wave_size.into());
        } else {
            put("cpu_cores_count", units);
            node.cpu_model = agent.name.to_string();
        }
        node
    }

    /// A property; 0 if the driver does not publish it.
    pub fn property(&self, name: &str) -> u64 {
        self.properties.get(name).copied().unwrap_or(0)
    }

    /// Whether the node has a GPU.
    pub fn is_gpu(&self) -> bool {
        self.property("cpu_cores_count") == 0 && self.property("simd_count") > 0
    }

    /// Name of the instruction set (`gfx90a`), or the CPU model.
    pub fn name(&self) -> String {
        if !self.is_gpu() {
            return self.cpu_model.clone();
        }
        let version = self.property("gfx_target_version");
        format!("gfx{}{}{:x}", version / 10000 % 100, version / 100 % 100, version % 100)
    }
}

/// Reads all nodes below `root` (`/` on a real machine), sorted by number. Unreadable nodes are skipped.
pub fn read(root: &Path) -> Vec<Node> {
    let places = [KFD_TOPOLOGY, KFD_TOPOLOGY_OF_THUNK].map(|place| root.join(place).join("nodes"));
    let Some((nodes, entries)) = places
        .into_iter()
        .find_map(|nodes| std::fs::read_dir(&nodes).ok().map(|entries| (nodes, entries)))
    else {
        return Vec::new();
    };
    let mut numbers: Vec<u32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .take(4096)
        .collect();
    numbers.sort_unstable();
    let cpus = cpu_models(root);
    numbers
        .into_iter()
        .filter_map(|number| read_node(&nodes.join(number.to_string()), number, &cpus))
        .collect()
}

fn read_node(path: &Path, id: u32, cpus: &BTreeMap<u64, (String, u64)>) -> Option<Node> {
    let properties = pairs(&path.join("properties"))?;
    let text = |name: &str| {
        std::fs::read_to_string(path.join(name))
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let mut node = Node {
        id,
        properties,
        gpu_id: text("gpu_id").parse().unwrap_or(0),
        ..Node::default()
    };
    node.model = text("name");
    if node.property("cpu_cores_count") > 0 {
        let core = node.property("cpu_core_id_base");
        let found = cpus
            .get(&core)
            .or_else(|| cpus.values().next())
            .cloned()
            .unwrap_or_default();
        (node.cpu_model, node.cpu_family) = found;
    }
    let parts = |kind: &str, count: u64| {
        let numbers = (0..count.min(1024)).map(|number| path.join(kind).join(number.to_string()));
        numbers
            .map_while(|part| pairs(&part.join("properties")))
            .collect::<Vec<_>>()
    };
    node.banks = parts("mem_banks", node.property("mem_banks_count"));
    node.caches = parts("caches", node.property("caches_count"));
    node.links = parts("io_links", node.property("io_links_count"));
    let sizes = node.banks.iter().filter_map(|bank| bank.get("size_in_bytes"));
    node.memory = sizes.sum();
    Some(node)
}

fn pairs(path: &PathBuf) -> Option<BTreeMap<String, u64>> {
    let text = std::fs::read_to_string(path).ok()?;
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    });
    Some(pairs.collect())
}

/// CPU model and family by apicid.
fn cpu_models(root: &Path) -> BTreeMap<u64, (String, u64)> {
    let text = std::fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let mut models = BTreeMap::new();
    for block in text.split("\n\n") {
        let field = |name: &str| {
            block.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            })
        };
        if let (Some(model), Some(apicid)) = (field("model name"), field("apicid").and_then(|id| id.parse().ok())) {
            models.insert(
                apicid,
                (model, field("cpu family").and_then(|f| f.parse().ok()).unwrap_or(0)),
            );
        }
    }
    models
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_named_by_its_target_version() {
        let mut node = Node::default();
        for (name, value) in [("simd_count", 240), ("gfx_target_version", 90010)] {
            node.properties.insert(name.into(), value);
        }
        assert_eq!(node.name(), "gfx90a");
        node.properties.insert("gfx_target_version".into(), 100_300);
        assert_eq!(node.name(), "gfx1030");
    }
}
