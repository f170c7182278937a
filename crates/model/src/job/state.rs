//! The state of a job: what its nodes have reported so far, in bounded memory.

use super::grid::{Cell, Grid, SECOND, SECONDS};
use super::matching::{Matching, Member};
use super::placed::NodePlacement;
use super::report::{LeftOut, NodeReport};
use super::sums::RankSums;
use crate::fx_hash::FastMap;
use roctop_trace::item::Nanos;
use std::sync::Arc;

/// Age of the latest report from which on a node or a rank is stale, ns.
pub const STALE: u64 = 3 * SECOND;
/// Maximum number of ranks and of nodes.
const MAX_RANKS: usize = 1 << 16;
const MAX_NODES: usize = 1 << 14;
/// Maximum number of names of kernels.
const MAX_NAMES: usize = 1 << 16;
/// Windows that end later than this after the root's clock come from a wrong clock, ns.
const MAX_AHEAD: u64 = 10 * SECOND;
/// Number of seconds that one window fills at most.
const MAX_FILLED: u64 = SECONDS as u64;

/// A node's clock relative to the root's; both are CLOCK_BOOTTIME.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeClock {
    /// How far the node's clock is ahead, ns.
    pub offset: i64,
    /// Error of this, ns: half the least round trip.
    pub error: u64,
}

impl NodeClock {
    /// The clock of a node whose CLOCK_REALTIME is `offset` ns ahead of the root's, with `error` ns. `ahead`: how far
    /// CLOCK_REALTIME is ahead of CLOCK_BOOTTIME, ns, on the node and on the root.
    pub const fn of_realtime(offset: i64, error: u64, ahead: [i64; 2]) -> Self {
        let [node, root] = ahead;
        Self {
            offset: offset.saturating_sub(node).saturating_add(root),
            error,
        }
    }
}

/// Whether a node is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeState {
    /// It is.
    #[default]
    Known,
    /// Its connection ended at this time of the root's clock.
    Gone(Nanos),
    /// It said goodbye: its ranks have ended.
    Left,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeRow {
    /// Its number in the job.
    pub number: u32,
    /// Name of its host.
    pub host: Arc<str>,
    /// Whether it is connected.
    pub state: NodeState,
    /// Its clock; `None` until it is known.
    pub clock: Option<NodeClock>,
    /// When its latest report came, on the root's clock; 0 if none did.
    pub heard: Nanos,
    /// Where its ranks run.
    pub placement: Arc<NodePlacement>,
    /// What its latest report left out.
    pub left_out: LeftOut,
    /// Number of the latest report, and when that was made by the node's clock.
    sequence: u64,
    made: Nanos,
    /// Offset that makes its first report come at once, until the clock is known.
    provisional: Option<i64>,
}

impl NodeRow {
    /// Whether no report has come for a while.
    pub const fn is_stale(&self, now: Nanos) -> bool {
        now.saturating_sub(self.heard) > STALE
    }

    const fn offset(&self) -> i64 {
        match (self.clock, self.provisional) {
            (Some(clock), _) => clock.offset,
            (None, Some(offset)) => offset,
            (None, None) => 0,
        }
    }

    /// A time of the node on the root's clock.
    pub(super) const fn aligned(&self, at: Nanos) -> Nanos {
        at.saturating_add_signed(self.offset().saturating_neg())
    }
}

/// A rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankRow {
    /// Rank in the job.
    pub rank: u32,
    /// Index of its node.
    pub node: u32,
    /// Its latest sums, without arrivals.
    pub sums: Arc<RankSums>,
    /// End of their window on the root's clock.
    pub until: Nanos,
}

/// The state of a job.
#[derive(Clone, Debug, Default)]
pub struct Job {
    pub(super) name: Arc<str>,
    pub(super) nodes: Vec<NodeRow>,
    by_number: FastMap<u32, u32>,
    pub(super) ranks: Vec<RankRow>,
    by_rank: FastMap<u32, u32>,
    pub(super) grid: Grid,
    pub(super) matching: Matching,
    pub(super) names: FastMap<u64, Arc<str>>,
    /// Reports of ranks that are another node's, or beyond the limits.
    pub(super) refused: u64,
}

impl Job {
    /// A job of this name, of which nothing is known yet.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    fn node_mut(&mut self, number: u32) -> Option<(u32, &mut NodeRow)> {
        let count = self.nodes.len();
        if count >= MAX_NODES && !self.by_number.contains_key(&number) {
            return None;
        }
        let index = *self.by_number.entry(number).or_insert(count as u32);
        if index as usize == count {
            self.nodes.push(NodeRow {
                number,
                ..NodeRow::default()
            });
        }
        Some((index, &mut self.nodes[index as usize]))
    }

    /// A node's daemon connected, for the first time or again.
    pub fn node(&mut self, number: u32, host: &str) {
        if let Some((_, node)) = self.node_mut(number) {
            node.host = host.into();
            node.state = NodeState::Known;
            // Another daemon counts its reports from 1.
            node.sequence = 0;
        }
    }

    /// A node's clock was measured.
    pub fn clock(&mut self, number: u32, clock: NodeClock) {
        if let Some((_, node)) = self.node_mut(number) {
            node.clock = Some(clock);
        }
    }

    /// A node's connection ended at `now`, the root's CLOCK_BOOTTIME.
    pub fn gone(&mut self, number: u32, now: Nanos) {
        if let Some((_, node)) = self.node_mut(number) {
            node.state = NodeState::Gone(now);
        }
    }

    /// A node said goodbye.
    pub fn left(&mut self, number: u32) {
        if let Some((_, node)) = self.node_mut(number) {
            node.state = NodeState::Left;
        }
    }

    /// The job is over: nodes whose connection has ended said no goodbye, because their root went first. True if there were any.
    pub fn over(&mut self) -> bool {
        let gone = self
            .nodes
            .iter_mut()
            .filter(|node| matches!(node.state, NodeState::Gone(_)));
        gone.map(|node| node.state = NodeState::Left).count() > 0
    }

    /// A node's report came at `now`, the root's CLOCK_BOOTTIME. Reports may come late and out of order: what is newer
    /// stays.
    pub fn report(&mut self, number: u32, report: NodeReport, now: Nanos) {
        let Some((index, node)) = self.node_mut(number) else {
            self.refused += 1;
            return;
        };
        if node.host.is_empty() {
            node.host = report.host.as_str().into();
        }
        if node.provisional.is_none() {
            node.provisional = Some(report.at.wrapping_sub(now) as i64);
        }
        if report.sequence > node.sequence || report.at > node.made {
            (node.sequence, node.made) = (report.sequence, report.at);
            node.left_out = report.left_out;
            if *node.placement != report.placement {
                node.placement = Arc::new(report.placement);
            }
        }
        node.heard = node.heard.max(now);
        for (id, name) in report.names {
            if self.names.len() < MAX_NAMES {
                self.names.entry(id).or_insert_with(|| name.into());
            }
        }
        for sums in report.ranks {
            self.rank(index, sums, now);
        }
    }

    /// Index of a rank of a node; `None` if it is another's.
    fn rank_of(&mut self, node: u32, rank: u32) -> Option<usize> {
        let count = self.ranks.len();
        if let Some(index) = self.by_rank.get(&rank) {
            let known = &mut self.ranks[*index as usize];
            let owner = self.nodes.get(known.node as usize);
            let is_free = owner.is_none_or(|owner| owner.state != NodeState::Known);
            if known.node != node && !is_free {
                return None;
            }
            known.node = node;
            return Some(*index as usize);
        }
        if count >= MAX_RANKS {
            return None;
        }
        self.by_rank.insert(rank, count as u32);
        self.ranks.push(RankRow {
            rank,
            node,
            ..RankRow::default()
        });
        Some(count)
    }

    fn rank(&mut self, node: u32, mut sums: RankSums, now: Nanos) {
        let Some(at) = self.rank_of(node, sums.rank) else {
            self.refused += 1;
            return;
        };
        let clock = &self.nodes[node as usize];
        let window = sums.window();
        let (begin, end) = (clock.aligned(window.begin), clock.aligned(window.end));
        if end > now.saturating_add(MAX_AHEAD) {
            self.refused += 1;
            return;
        }
        let known = &self.ranks[at];
        let has_lost = known.until <= end && sums.lost_total() > known.sums.lost_total();
        let cell = Cell::of(&sums, has_lost);
        self.fill(at, (begin, end), cell);
        self.arrived(at, node, &mut sums, now);
        let known = &mut self.ranks[at];
        if known.until <= end {
            known.until = end;
            known.sums = Arc::new(sums);
        }
    }

    /// Fills the seconds of which a window covers at least a half; if there are none, the one in which it ends.
    fn fill(&mut self, rank: usize, (begin, end): (Nanos, Nanos), cell: Cell) {
        let half = SECOND / 2;
        let (first, last) = ((begin + half) / SECOND, (end + half) / SECOND);
        let seconds = if first < last {
            first.max(last.saturating_sub(MAX_FILLED))..last
        } else {
            end / SECOND..end / SECOND + 1
        };
        for second in seconds {
            if let Some(known) = self.grid.cell_mut(second, rank) {
                let mut cell = cell;
                cell.keep_waits(known);
                *known = cell;
            }
        }
    }

    /// Takes the arrivals out of the sums and matches them.
    fn arrived(&mut self, rank: usize, node: u32, sums: &mut RankSums, now: Nanos) {
        let clock = &self.nodes[node as usize];
        let mut settled = Vec::new();
        for part in &mut sums.communicators {
            self.matching.know(part.identity, part.size);
            for arrival in std::mem::take(&mut part.arrivals) {
                let member = Member {
                    rank: rank as u32,
                    node,
                    operation: arrival.operation,
                    at: clock.aligned(sums.begin.saturating_add_signed(arrival.at)),
                    took: arrival.took,
                    error: clock.clock.map(|clock| clock.error),
                    by_kernel: arrival.by_kernel,
                };
                let key = (part.identity, arrival.sequence);
                settled.extend(self.matching.add(key, part.size, member, now));
            }
        }
        for (member, wait) in settled.into_iter().flat_map(|settled| settled.waits) {
            let second = member.at / SECOND;
            let cell = self.grid.known_mut(second, member.rank as usize);
            if let (Some(cell), Some(wait)) = (cell, wait) {
                cell.add_wait(wait, member.took);
            }
        }
    }
}
