//! Where kernels ran: few places differ, so each is kept once.

use super::fx_hash::FastMap;
use super::table::dense;
use roctop_trace::item::{AgentId, Dispatch, ProcessId, QueueId, StreamId};

/// Where a kernel ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Whose.
    pub process: ProcessId,
    /// On which agent.
    pub agent: AgentId,
    /// In which queue.
    pub queue: QueueId,
    /// In which stream.
    pub stream: Option<StreamId>,
}

const MOST: usize = 1 << 16;

/// Distinct places by number.
#[derive(Debug, Default)]
pub struct Places {
    all: Vec<Place>,
    ids: FastMap<Place, u32>,
    /// By queue: its latest place.
    latest: Vec<u32>,
}

impl Places {
    /// All of them.
    pub fn all(&self) -> &[Place] {
        &self.all
    }

    /// The number of a dispatch's place; `u32::MAX` when there are too many.
    #[inline]
    pub(super) fn id(&mut self, dispatch: &Dispatch) -> u32 {
        let place = Place {
            process: dispatch.process,
            agent: dispatch.agent,
            queue: dispatch.queue,
            stream: dispatch.stream,
        };
        // A queue seldom has more than one place.
        let latest = self.latest.get(place.queue.0 as usize).copied().unwrap_or(u32::MAX);
        if self.all.get(latest as usize) == Some(&place) {
            return latest;
        }
        self.find(place)
    }

    fn find(&mut self, place: Place) -> u32 {
        let id = match self.ids.get(&place) {
            Some(&id) => id,
            None if self.all.len() >= MOST => return u32::MAX,
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
