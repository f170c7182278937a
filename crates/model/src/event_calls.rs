//! Recent calls that record events or wait for them, shared with snapshots.

use std::collections::VecDeque;
use std::sync::Arc;

use roctop_trace::item::EventCall;

const CHUNK: usize = 1024;
/// Maximum number of full chunks: the oldest are dropped.
const MAX_CHUNKS: usize = 64;

/// The calls, in order of arrival: in each thread, in order of time.
#[derive(Clone, Debug, Default)]
pub struct EventCalls {
    chunks: VecDeque<Arc<Vec<EventCall>>>,
    latest: Vec<EventCall>,
}

impl EventCalls {
    pub(super) fn add(&mut self, call: &EventCall) {
        self.latest.push(*call);
        if self.latest.len() == CHUNK {
            self.chunks.push_back(Arc::new(std::mem::take(&mut self.latest)));
            if self.chunks.len() > MAX_CHUNKS {
                self.chunks.pop_front();
            }
        }
    }

    /// A copy that shares the full chunks.
    pub(super) fn values(&self) -> Self {
        self.clone()
    }

    /// All calls that are kept.
    pub fn iter(&self) -> impl Iterator<Item = &EventCall> {
        let full = self.chunks.iter().flat_map(|chunk| chunk.iter());
        full.chain(&self.latest)
    }
}
