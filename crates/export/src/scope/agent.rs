//! What agents are called: by node, by place, or by place among those of their kind.

use super::Scope;
use crate::options::AgentIndex;
use roctop_trace::item::AgentId;
use roctop_trace::topology::Node;

impl Scope<'_> {
    /// The driver's node of an agent; the first when it is not known.
    pub fn node(&self, agent: Option<AgentId>) -> u32 {
        let known = agent.and_then(|id| self.run.agents.get(id.0 as usize));
        known.map_or(0, |agent| agent.node)
    }

    /// Place of a node among those that are there.
    pub fn logical(&self, node: u32) -> usize {
        let place = self.nodes.iter().position(|known| known.id == node);
        place.unwrap_or(node as usize)
    }

    /// Place of a node among those of its kind, and whether it is a GPU.
    pub fn type_index(&self, node: u32) -> (usize, bool) {
        let gpu = self
            .nodes
            .iter()
            .find(|known| known.id == node)
            .map_or(node > 0, Node::is_gpu);
        let before = self.nodes.iter().take_while(|known| known.id != node);
        (before.filter(|known| known.is_gpu() == gpu).count(), gpu)
    }

    /// The word for an agent, as `Agent 1`.
    pub fn agent(&self, agent: Option<AgentId>) -> String {
        self.node_label(self.node(agent))
    }

    /// The word for a node, as `Agent 1`.
    pub fn node_label(&self, node: u32) -> String {
        let (label, index) = self.indexed(node);
        format!("{label} {index}")
    }

    /// A node's word and number as they were chosen.
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

    /// The word for the agent at a place, in the name of a track: `Agent [1]`.
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
