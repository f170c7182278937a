//! Driver topology of the machines of a run.

use super::run::Run;
use roctop_source::recording::Recording;
use roctop_trace::topology::Node;
use std::collections::BTreeMap;

/// Topology nodes, by host name.
#[derive(Debug, Default)]
pub struct Hosts {
    known: BTreeMap<String, Vec<Node>>,
    none: Vec<Node>,
}

impl Hosts {
    /// Adds a machine's nodes, unless it is already known.
    pub fn add(&mut self, host: &str, nodes: Vec<Node>) {
        self.known.entry(host.to_owned()).or_insert(nodes);
    }

    /// Topology of all machines of a run, and the faults of the recordings' topology files.
    pub fn of_recordings(recordings: &[Recording], run: &Run) -> (Self, Vec<String>) {
        let mut hosts = Self::default();
        for recording in recordings {
            for (host, nodes) in recording.topologies() {
                hosts.add(&host, nodes);
            }
        }
        hosts.complete(run);
        let faults = recordings.iter().flat_map(Recording::topology_faults).collect();
        (hosts, faults)
    }

    /// Adds agents of a run that the topology lacks.
    pub fn complete(&mut self, run: &Run) {
        for process in &run.processes {
            let only = self.known.len() == 1 && self.known.contains_key("");
            let host = if only { "" } else { &process.host };
            let nodes = self.known.entry(host.to_owned()).or_default();
            for agent in run.agents.iter().filter(|agent| agent.process == process.id) {
                if !nodes.iter().any(|node| node.id == agent.node) {
                    nodes.push(Node::of_agent(agent));
                }
            }
            nodes.sort_by_key(|node| node.id);
        }
    }

    /// Nodes of a machine.
    pub fn of(&self, host: &str) -> &[Node] {
        // Recordings of layout 1 may lack their host name.
        let found = self.known.get(host).or_else(|| self.known.get(""));
        found.unwrap_or(&self.none)
    }
}
