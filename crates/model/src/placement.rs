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

/// Queue of the places of a process and an agent that have no number each.
const OTHER_QUEUES: QueueId = QueueId(u32::MAX);
/// Lower half of the number of such places, in place of an index.
const OTHERS: u32 = 0xffff;
/// Each index is smaller than `OTHERS`.
const MAX_PLACES: usize = OTHERS as usize;

impl Placement {
    /// Whether it stands for further queues and streams of its process and agent.
    pub fn is_of_others(&self) -> bool {
        self.queue == OTHER_QUEUES
    }

    /// Its substitute where it has no number.
    #[must_use]
    pub const fn among_others(self) -> Self {
        Self {
            queue: OTHER_QUEUES,
            stream: None,
            ..self
        }
    }

    /// The place with this number. `None` for those that were too many.
    pub fn of(places: &[Self], number: u32) -> Option<Self> {
        if is_of_others(number) {
            let first = places.get((number >> 16) as usize)?;
            return Some(first.among_others());
        }
        places.get((number & OTHERS) as usize).copied()
    }
}

/// Number of the places that share the process and the agent of this one.
pub(super) const fn others_of(number: u32) -> u32 {
    number | OTHERS
}

/// Whether it is such a number.
pub(super) const fn is_of_others(number: u32) -> bool {
    number & OTHERS == OTHERS
}

/// Distinct places. The number of one is its index, and in the upper half the index of the first place of the same process
/// and agent.
#[derive(Debug, Default)]
pub struct Places {
    all: Vec<Placement>,
    /// Index of the first place of a process and an agent.
    first: FastMap<(ProcessId, AgentId), u32>,
    ids: FastMap<Placement, u32>,
    /// Latest place of each queue.
    latest: Vec<u32>,
}

impl Places {
    /// All places.
    pub fn all(&self) -> &[Placement] {
        &self.all
    }

    /// Number of a dispatch's place; `u32::MAX` if there are too many.
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
        if !is_of_others(latest) && self.all.get((latest & OTHERS) as usize) == Some(&place) {
            return latest;
        }
        self.find(place)
    }

    /// Number of a place that may stand for further ones.
    pub(super) fn renumbered(&mut self, place: Placement) -> u32 {
        let first = self.first.get(&(place.process, place.agent));
        match first.filter(|_| place.is_of_others()) {
            Some(first) => others_of(first << 16),
            None if place.is_of_others() => u32::MAX,
            None => self.find(place),
        }
    }

    /// Number of a place; `u32::MAX` if there are too many.
    pub(super) fn find(&mut self, place: Placement) -> u32 {
        let id = match self.ids.get(&place) {
            Some(&id) => id,
            None if self.all.len() >= MAX_PLACES => return u32::MAX,
            None => {
                let index = self.all.len() as u32;
                self.all.push(place);
                let first = *self.first.entry((place.process, place.agent)).or_insert(index);
                let id = first << 16 | index;
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
