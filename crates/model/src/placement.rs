//! Places (process, agent, queue, stream) of kernels. Few distinct ones occur, so each is stored once.

use super::fx_hash::FastMap;
use super::table::dense;
use roctop_trace::item::{AgentId, Dispatch, ProcessId, QueueId, StreamId};

/// Where a kernel ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Process.
    pub process: ProcessId,
    /// Agent.
    pub agent: AgentId,
    /// Queue.
    pub queue: QueueId,
    /// Stream, if known.
    pub stream: Option<StreamId>,
}

const MAX_PLACES: usize = 1 << 16;

/// Distinct places, by index.
#[derive(Debug, Default)]
pub struct Places {
    all: Vec<Placement>,
    ids: FastMap<Placement, u32>,
    /// Latest place of each queue.
    latest: Vec<u32>,
}

impl Places {
    /// All places.
    pub fn all(&self) -> &[Placement] {
        &self.all
    }

    /// Index of a dispatch's place; `u32::MAX` if there are too many.
    #[inline]
    pub(super) fn id(&mut self, dispatch: &Dispatch) -> u32 {
        let place = Placement {
            process: dispatch.process,
            agent: dispatch.agent,
            queue: dispatch.queue,
            stream: dispatch.stream,
        };
        // Most queues have a single place.
        let latest = self.latest.get(place.queue.0 as usize).copied().unwrap_or(u32::MAX);
        if self.all.get(latest as usize) == Some(&place) {
            return latest;
        }
        self.find(place)
    }

    /// Index of a place; `u32::MAX` if there are too many.
    pub(super) fn find(&mut self, place: Placement) -> u32 {
        let id = match self.ids.get(&place) {
            Some(&id) => id,
            None if self.all.len() >= MAX_PLACES => return u32::MAX,
            None => {
                self.all.push(place);
                let id = self.all.len() as u32 - 1;
                self.ids.insert(place, id);
                id
            }
        };
        if let Some(latest) = dense(&mut self.latest, place.queue.0, |_| u32::MAX) {
            *latest = id;
        }
        id
    }
}
