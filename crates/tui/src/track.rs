//! What stands in a row of the timeline: a lane, or slices of several lanes that belong together.

use super::direction::Way;
use crate::choice::choices;
use roctop_model::gauges::GaugeKind;
use roctop_model::{Bucket, LaneKey, Slice, Snapshot};
use roctop_trace::item::{AgentId, Nanos, NodeId, QueueId, ThreadId};

/// By what the work of GPUs is laid out in rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// By stream.
    #[default]
    Stream,
    /// By queue of the hardware.
    Queue,
    /// By GPU.
    Agent,
    /// By thread that launched it.
    Thread,
    /// By stream, markers first.
    Marker,
}

choices!(Layout: Stream "stream" Queue "queue" Agent "agent" Thread "thread" Marker "marker");

/// A row of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Track {
    /// A lane of the store.
    Lane(LaneKey),
    /// Kernels of a queue, of whatever stream.
    InQueue(AgentId, QueueId),
    /// Kernels of a GPU.
    OnAgent(AgentId),
    /// Kernels that a thread launched.
    By(ThreadId),
    /// What was read of the device at a node.
    Gauge(NodeId, GaugeKind),
    /// A counter, by its id.
    Counter(u32),
}

impl Track {
    /// Whether slices of a lane may stand in it.
    pub fn holds(self, key: LaneKey) -> bool {
        match (self, key) {
            (Self::Lane(own), _) => own == key,
            (Self::InQueue(agent, _) | Self::OnAgent(agent), LaneKey::Stream(of, _) | LaneKey::Queue(of, _)) => {
                agent == of
            }
            (Self::By(_), LaneKey::Stream(..) | LaneKey::Queue(..)) => true,
            _ => false,
        }
    }

    /// Whether a slice stands in it.
    fn takes(self, slice: &Slice) -> bool {
        match self {
            Self::Lane(_) | Self::OnAgent(_) | Self::Gauge(..) | Self::Counter(_) => true,
            Self::InQueue(_, queue) => slice.queue == queue.0,
            Self::By(thread) => slice.thread == thread.0,
        }
    }

    /// The GPU that it belongs to.
    pub fn agent(self) -> Option<AgentId> {
        match self {
            Self::Lane(LaneKey::Agent(agent) | LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _))
            | Self::InQueue(agent, _)
            | Self::OnAgent(agent) => Some(agent),
            _ => None,
        }
    }

    /// The thread that it belongs to.
    pub fn thread(self) -> Option<ThreadId> {
        match self {
            Self::Lane(LaneKey::Api(thread, _) | LaneKey::Markers(thread, _) | LaneKey::Ranges(thread))
            | Self::By(thread) => Some(thread),
            _ => None,
        }
    }

    /// A lane that looks as this does.
    pub fn like(self) -> LaneKey {
        match self {
            Self::Lane(key) => key,
            Self::InQueue(agent, queue) => LaneKey::Queue(agent, queue),
            Self::OnAgent(agent) => LaneKey::Queue(agent, QueueId(u32::MAX)),
            Self::By(_) | Self::Gauge(..) | Self::Counter(_) => LaneKey::Queue(AgentId(u32::MAX), QueueId(u32::MAX)),
        }
    }

    /// The lanes whose work may stand in it.
    pub(crate) fn sources(self, snap: &Snapshot) -> impl Iterator<Item = &roctop_model::Lane> {
        let members = match self {
            Self::OnAgent(agent) => snap.names.members(agent),
            _ => Vec::new(),
        };
        // A GPU that processes share has what each of them has.
        let holds = move |key| self.holds(key) || members.iter().any(|&member| Self::OnAgent(member).holds(key));
        snap.lanes
            .iter()
            .filter(move |lane| holds(lane.key))
            .map(|lane| &**lane)
    }

    /// Its slices that touch `from`..`to` by begin, each with its lane; none when they are not all kept or are more than
    /// `most`.
    pub fn slices(self, snap: &Snapshot, from: Nanos, to: Nanos, most: usize) -> Option<Vec<(LaneKey, Slice)>> {
        if matches!(self, Self::Lane(LaneKey::Agent(_))) {
            return None;
        }
        let mut out = Vec::new();
        let mut lanes = 0;
        for lane in self.sources(snap) {
            let here = lane.slices(from, to, most)?;
            out.extend(
                here.into_iter()
                    .filter(|slice| self.takes(slice))
                    .map(|slice| (lane.key, slice)),
            );
            lanes += 1;
            if out.len() > most {
                return None;
            }
        }
        if lanes > 1 {
            out.sort_by_key(|(_, slice)| slice.span.begin);
        }
        Some(out)
    }

    /// Sums by column; of all its lanes, also where some of their work belongs to other tracks.
    pub fn columns(self, snap: &Snapshot, from: Nanos, width: u64, columns: usize) -> Vec<Bucket> {
        let mut out = vec![Bucket::default(); columns];
        for lane in self.sources(snap) {
            let here = lane.columns(from, width, columns);
            for (sum, bucket) in out
                .iter_mut()
                .zip(here)
                .filter(|(_, bucket)| bucket.busy > 0 || bucket.count > 0)
            {
                sum.add(bucket.what, bucket.busy, false);
                sum.count += bucket.count;
            }
        }
        out
    }

    /// The first slice that begins after `at`, or the last that begins before it.
    pub fn neighbour(self, snap: &Snapshot, at: Nanos, way: Way) -> Option<(LaneKey, Slice)> {
        self.search(snap, at, way, |_, _| true)
    }

    /// The nearest slice that begins after (or before) `at` and passes a test.
    pub fn search(
        self,
        snap: &Snapshot,
        at: Nanos,
        way: Way,
        mut test: impl FnMut(LaneKey, &Slice) -> bool,
    ) -> Option<(LaneKey, Slice)> {
        let mut best: Option<(LaneKey, Slice)> = None;
        for lane in self.sources(snap) {
            for slice in lane.recent(usize::MAX) {
                let begin = slice.span.begin;
                let is_ahead = match way {
                    Way::On => begin > at,
                    Way::Back => begin < at,
                };
                let is_nearer = best.is_none_or(|(_, best)| match way {
                    Way::On => begin < best.span.begin,
                    Way::Back => begin > best.span.begin,
                });
                if is_ahead && is_nearer && self.takes(slice) && test(lane.key, slice) {
                    best = Some((lane.key, *slice));
                }
            }
        }
        best
    }

    /// Whether it has slices in full.
    pub fn has_slices(self, snap: &Snapshot) -> bool {
        !matches!(self, Self::Lane(LaneKey::Agent(_))) && self.sources(snap).any(|lane| lane.kept() > 0)
    }

    /// The first stretch that ends after `at` (or the last that begins before it) of at least `least` ns without work, as
    /// far as slices are kept.
    pub fn gap(self, snap: &Snapshot, at: Nanos, least: u64, way: Way) -> Option<roctop_trace::item::Span> {
        let track = match self {
            Self::Lane(LaneKey::Agent(agent)) => Self::OnAgent(agent),
            other => other,
        };
        let mut spans: Vec<roctop_trace::item::Span> = track
            .sources(snap)
            .flat_map(|lane| lane.recent(200_000))
            .filter(|slice| track.takes(slice))
            .map(|slice| slice.span)
            .collect();
        spans.sort_by_key(|span| span.begin);
        let mut end = spans.first()?.end;
        let mut before = None;
        for span in &spans {
            if span.begin >= end.saturating_add(least.max(1)) {
                let gap = roctop_trace::item::Span {
                    begin: end,
                    end: span.begin,
                };
                match way {
                    Way::On if gap.end > at => return Some(gap),
                    Way::Back if gap.begin < at => before = Some(gap),
                    _ => (),
                }
            }
            end = end.max(span.end);
        }
        before
    }
}
