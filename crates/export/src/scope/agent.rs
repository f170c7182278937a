//! Labels of agents: by node, by index, or by index within their type.

use super::Scope;
use crate::options::AgentIndex;
use roctop_trace::item::AgentId;
use roctop_trace::topology::Node;

impl Scope<'_> {
    /// Topology node of an agent; the first if unknown.
    pub fn node(&self, agent: Option<AgentId>) -> u32 {
        let known = agent.and_then(|id| self.run.agents.get(id.0 as usize));
        known.map_or(0, |agent| agent.node)
    }

    /// Index of a node among all nodes.
    pub fn logical(&self, node: u32) -> usize {
        let place = self.nodes.iter().position(|known| known.id == node);
        place.unwrap_or(node as usize)
    }

    /// Index of a node within its type, and whether it is a GPU.
    pub fn type_index(&self, node: u32) -> (usize, bool) {
        let gpu = self
            .nodes
            .iter()
            .find(|known| known.id == node)
            .map_or(node > 0, Node::is_gpu);
        let before = self.nodes.iter().take_while(|known| known.id != node);
        (before.filter(|known| known.is_gpu() == gpu).count(), gpu)
    }

    /// Label of an agent: `Agent 1`.
    pub fn agent(&self, agent: Option<AgentId>) -> String {
        self.node_label(self.node(agent))
    }

    /// Label of a node: `Agent 1`.
    pub fn node_label(&self, node: u32) -> String {
        let (label, index) = self.indexed(node);
        format!("{label} {index}")
    }

    /// Word and number of a node, by the selected option.
    fn indexed(&self, node: u32) -> (&'static str, usize) {
        match self.choice.agents {
            AgentIndex::Relative => ("Agent", self.logical(node)),
            AgentIndex::Absolute => ("Agent", node as usize),
            AgentIndex::TypeRelative => {
                let (index, gpu) = self.type_index(node);
                (if gpu { "GPU" } else { "CPU" }, index)
            }
        }
    }

    /// Label of the agent with this index, in a track name: `Agent [1]`.
    pub fn track_label(&self, place: usize) -> String {
        let node = self.nodes.get(place).map_or(place as u32, |node| node.id);
        let (label, index) = self.indexed(node);
        format!("{label} [{index}]")
    }

    /// Product name of a GPU, by its node.
    pub fn product(&self, node: u32) -> String {
        let mut agents = self.run.agents.iter().filter(|agent| agent.process == self.process.id);
        let found = agents.find(|agent| agent.node == node);
        found.map(|agent| agent.product.to_string()).unwrap_or_default()
    }
}
