//! What stands in a row of the timeline: a lane, or slices of several lanes that belong together.

use super::direction::Direction;
use crate::choice::choices;
use roctop_model::gauges::GaugeKind;
use roctop_model::{Column, LaneKey, Origin, Slice, Snapshot};
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

impl Layout {
    /// Its word on screen.
    pub(crate) fn heading(self) -> &'static str {
        if self == Self::Agent { "GPU" } else { self.word() }
    }
}

/// A row of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Track {
    /// A lane of the store.
    Lane(LaneKey),
    /// Kernels of a queue, of whatever stream.
    InQueue(AgentId, QueueId),
    /// Kernels of a GPU.
    OnAgent(AgentId),
    /// How many kernels ran at once on a GPU, of many streams.
    AtOnce(AgentId),
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
            (
                Self::InQueue(agent, _) | Self::OnAgent(agent) | Self::AtOnce(agent),
                LaneKey::Stream(of, _) | LaneKey::Queue(of, _),
            ) => agent == of,
            (Self::By(_), LaneKey::Stream(..) | LaneKey::Queue(..)) => true,
            _ => false,
        }
    }

    /// Whether a slice stands in it.
    fn takes(self, slice: &Slice) -> bool {
        match self {
            Self::Lane(_) | Self::OnAgent(_) | Self::AtOnce(_) | Self::Gauge(..) | Self::Counter(_) => true,
            Self::InQueue(_, queue) => slice.queue == queue.0,
            Self::By(thread) => slice.thread == thread.0,
        }
    }

    /// Whether work from somewhere stands in it.
    const fn takes_from(self, origin: Origin) -> bool {
        match self {
            Self::Lane(_) | Self::OnAgent(_) | Self::AtOnce(_) | Self::Gauge(..) | Self::Counter(_) => true,
            Self::InQueue(_, queue) => origin.queue == queue.0,
            Self::By(thread) => origin.thread == thread.0,
        }
    }

    /// Whether any work of a lane is known to stand in it.
    pub fn is_from(self, snap: &Snapshot) -> bool {
        let mut origins = self.sources(snap).flat_map(roctop_model::Lane::origins);
        origins.any(|origin| origin.is_some_and(|origin| self.takes_from(origin)))
    }

    /// The GPU that it belongs to.
    pub fn agent(self) -> Option<AgentId> {
        match self {
            Self::Lane(LaneKey::Agent(agent) | LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _))
            | Self::InQueue(agent, _)
            | Self::OnAgent(agent)
            | Self::AtOnce(agent) => Some(agent),
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
            Self::AtOnce(agent) => LaneKey::Agent(agent),
            Self::By(_) | Self::Gauge(..) | Self::Counter(_) => LaneKey::Queue(AgentId(u32::MAX), QueueId(u32::MAX)),
        }
    }

    /// The lanes whose work may stand in it.
    pub(crate) fn sources(self, snap: &Snapshot) -> impl Iterator<Item = &roctop_model::Lane> {
        let members = match self {
            Self::OnAgent(agent) | Self::AtOnce(agent) => snap.names.members(agent),
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

    /// Sums by column of its work in all its lanes.
    pub fn columns(self, snap: &Snapshot, from: Nanos, width: u64, columns: usize) -> Vec<Column> {
        let mut out = vec![Column::default(); columns];
        for lane in self.sources(snap) {
            let here = lane.columns(from, width, columns, |origin| self.takes_from(origin));
            out.iter_mut().zip(&here).for_each(|(sum, column)| sum.add(column));
        }
        out
    }

    /// The first slice that begins after `at`, or the last that begins before it.
    pub fn neighbour(self, snap: &Snapshot, at: Nanos, way: Direction) -> Option<(LaneKey, Slice)> {
        self.search(snap, at, way, |_, _| true)
    }

    /// The nearest slice that begins after (or before) `at` and passes a test.
    pub fn search(
        self,
        snap: &Snapshot,
        at: Nanos,
        way: Direction,
        mut test: impl FnMut(LaneKey, &Slice) -> bool,
    ) -> Option<(LaneKey, Slice)> {
        let found = self.sources(snap).filter_map(|lane| {
            let own = |slice: &Slice| self.takes(slice) && test(lane.key, slice);
            Some((lane.key, lane.search(at, way == Direction::On, own)?))
        });
        match way {
            Direction::On => found.min_by_key(|(_, slice)| slice.span.begin),
            Direction::Back => found.max_by_key(|(_, slice)| slice.span.begin),
        }
    }

    /// Whether it has slices in full.
    pub fn has_slices(self, snap: &Snapshot) -> bool {
        !matches!(self, Self::Lane(LaneKey::Agent(_))) && self.sources(snap).any(|lane| lane.kept() > 0)
    }

    /// The first stretch that ends after `at` (or the last that begins before it) of at least `least` ns without work, as
    /// far as slices are kept.
    pub fn gap(self, snap: &Snapshot, at: Nanos, least: u64, way: Direction) -> Option<roctop_trace::item::Span> {
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
                    Direction::On if gap.end > at => return Some(gap),
                    Direction::Back if gap.begin < at => before = Some(gap),
                    _ => (),
                }
            }
            end = end.max(span.end);
        }
        before
    }
}
