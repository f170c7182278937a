//! Arrivals of all ranks, put together to collectives.

use super::grid::SECOND;
use super::sums::PendingPart;
use crate::collectives::MACHINE_ERROR;
use crate::fx_hash::FastMap;
use roctop_trace::item::{CollectiveOperation, Nanos};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of communicators.
const MAX_COMMUNICATORS: usize = 4096;
/// Maximum number of arrivals at collectives to which not all have come.
const MAX_OPEN: usize = 1 << 19;
/// Time after which such a collective is dropped, ns.
const MAX_AGE: u64 = 10 * SECOND;
/// Number of the latest collectives of a communicator by which its last rank is found.
const MAX_RECENT: usize = 256;
/// Members from which on their ranks are looked up in bits.
const MANY: usize = 64;
/// If the skew is below the error, a wait of about 0 is known only where the error is below this part of the time.
const SMALL_ERROR: u64 = 10;

/// An arrival, on the root's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Member {
    /// Index of the rank.
    pub(super) rank: u32,
    /// Index of the node.
    pub(super) node: u32,
    pub(super) operation: CollectiveOperation,
    pub(super) at: Nanos,
    pub(super) took: u64,
    /// Error of the node's clock; `None` if it is unknown.
    pub(super) error: Option<u64>,
    pub(super) by_kernel: bool,
}

#[derive(Clone, Debug, Default)]
struct Meeting {
    since: Nanos,
    members: Vec<Member>,
    /// Bits of the members' ranks, once they are many.
    seen: Vec<u64>,
}

impl Meeting {
    /// Whether a rank has not come yet; it has then.
    fn is_new(&mut self, rank: u32) -> bool {
        let bit = |rank: u32| (rank as usize / 64, 1u64 << (rank % 64));
        if self.members.len() < MANY {
            return !self.members.iter().any(|known| known.rank == rank);
        }
        if self.members.len() == MANY && self.seen.is_empty() {
            for known in &self.members {
                set(&mut self.seen, bit(known.rank));
            }
        }
        set(&mut self.seen, bit(rank))
    }
}

/// Sets a bit; false if it was set.
fn set(bits: &mut Vec<u64>, (word, mask): (usize, u64)) -> bool {
    if bits.len() <= word {
        bits.resize(word + 1, 0);
    }
    let is_new = bits[word] & mask == 0;
    bits[word] |= mask;
    is_new
}

/// Who came last how often, and what that cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Late {
    /// Index of the rank.
    pub rank: u32,
    /// The operation of most of these collectives.
    pub operation: CollectiveOperation,
    /// Share of the latest collectives to which it came last.
    pub share: f64,
    /// Mean skew of these, ns.
    pub skew: u64,
}

/// A collective that ranks wait for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WaitingSums {
    /// Number of the collective.
    pub sequence: u32,
    /// The operation.
    pub operation: CollectiveOperation,
    /// Since when the first rank waits, on the root's clock.
    pub since: Nanos,
    /// Number of ranks that have come.
    pub came: u32,
    /// Indexes of ranks that have not.
    pub missing: Vec<u32>,
    /// Number of ranks that no report is known of.
    pub unknown: u32,
}

/// A communicator over all ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommunicatorSums {
    /// Identity.
    pub identity: u64,
    /// Number on screen, from 0 in order of appearance.
    pub number: u32,
    /// Number of its ranks.
    pub size: u32,
    /// Number of ranks of which reports are known.
    pub known: u32,
    /// Number of collectives that were matched.
    pub count: u64,
    /// Mean skew of the latest, ns.
    pub skew: u64,
    /// Maximum skew, ns.
    pub max_skew: u64,
    /// Error of the comparison, the largest of the latest, ns; `None` if a clock is unknown.
    pub error: Option<u64>,
    /// The rank that came last most often, beyond the error.
    pub late: Option<Late>,
    /// What its ranks wait for.
    pub waiting: Option<WaitingSums>,
}

/// A matched collective.
#[derive(Clone, Copy, Debug)]
struct Recent {
    /// The last rank, if that is beyond the error.
    last: Option<u32>,
    operation: CollectiveOperation,
    skew: u64,
    error: Option<u64>,
}

/// The latest matched collectives of a communicator.
#[derive(Clone, Debug, Default)]
struct Communicator {
    number: u32,
    size: u32,
    count: u64,
    max_skew: u64,
    recent: VecDeque<Recent>,
}

/// A collective of which all is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Settled {
    /// Its members with their waits, ns; `None` where the clocks are too bad.
    pub(super) waits: Vec<(Member, Option<u64>)>,
}

/// Collectives by communicator and number.
#[derive(Clone, Debug, Default)]
pub(super) struct Matching {
    open: FastMap<(u64, u32), Meeting>,
    order: VecDeque<(u64, u32)>,
    /// Number of members of all of these.
    members: usize,
    communicators: BTreeMap<u64, Communicator>,
    /// Arrivals that met nobody in time.
    pub(super) unmatched: u64,
}

impl Matching {
    /// Adds an arrival; the collective, if it was the last one.
    pub(super) fn add(&mut self, key: (u64, u32), size: u32, member: Member, now: Nanos) -> Option<Settled> {
        let count = self.communicators.len();
        if count >= MAX_COMMUNICATORS && !self.communicators.contains_key(&key.0) {
            self.unmatched += 1;
            return None;
        }
        let communicator = self.communicators.entry(key.0).or_insert_with(|| Communicator {
            number: count as u32,
            size,
            ..Communicator::default()
        });
        let size = communicator.size;
        let order = &mut self.order;
        let meeting = self.open.entry(key).or_insert_with(|| {
            order.push_back(key);
            Meeting {
                since: now,
                ..Meeting::default()
            }
        });
        if !meeting.is_new(member.rank) {
            return None;
        }
        meeting.members.push(member);
        self.members += 1;
        if meeting.members.len() >= size as usize {
            let meeting = self.open.remove(&key)?;
            self.members -= meeting.members.len();
            return Some(self.settle(key.0, meeting));
        }
        self.drop_old(now);
        None
    }

    fn drop_old(&mut self, now: Nanos) {
        while let Some(key) = self.order.front() {
            let since = self.open.get(key).map(|meeting| meeting.since);
            let is_old = since.is_none_or(|since| now.saturating_sub(since) > MAX_AGE);
            if !is_old && self.members <= MAX_OPEN {
                return;
            }
            if let Some(meeting) = self.open.remove(key) {
                self.members -= meeting.members.len();
                self.unmatched += meeting.members.len() as u64;
            }
            self.order.pop_front();
        }
    }

    fn settle(&mut self, identity: u64, meeting: Meeting) -> Settled {
        let members = meeting.members;
        // Times of kernels and of calls cannot be compared; calls of different functions do not meet.
        let kind = |member: &Member| (member.by_kernel, member.operation);
        let is_alike = members.windows(2).all(|pair| kind(&pair[0]) == kind(&pair[1]));
        let first = members.iter().map(|member| member.at).min().unwrap_or(0);
        let latest = members
            .iter()
            .max_by_key(|member| member.at)
            .copied()
            .unwrap_or_default();
        let skew = latest.at - first;
        let error = error(&members);
        let is_beyond = is_alike && error.is_some_and(|error| skew > error);
        let is_exact = is_alike && error.is_some_and(|error| error <= longest(&members) / SMALL_ERROR);
        let wait = |member: &Member| {
            let wait = (latest.at - member.at).min(member.took);
            (is_beyond || is_exact).then_some(if is_beyond { wait } else { 0 })
        };
        let waits = members.iter().map(|member| (*member, wait(member))).collect();
        if let Some(known) = self.communicators.get_mut(&identity).filter(|_| is_alike) {
            known.count += 1;
            known.max_skew = known.max_skew.max(skew);
            known.recent.push_back(Recent {
                last: is_beyond.then_some(latest.rank),
                operation: latest.operation,
                skew,
                error,
            });
            if known.recent.len() > MAX_RECENT {
                known.recent.pop_front();
            }
        }
        Settled { waits }
    }

    /// The communicators, in order of appearance.
    pub(super) fn communicators(&self) -> Vec<CommunicatorSums> {
        let mut all: Vec<CommunicatorSums> = self
            .communicators
            .iter()
            .map(|(identity, known)| {
                let count = known.recent.len().max(1) as u64;
                let skews = known.recent.iter().map(|recent| recent.skew);
                let errors = known.recent.iter().map(|recent| recent.error);
                CommunicatorSums {
                    identity: *identity,
                    number: known.number,
                    size: known.size,
                    count: known.count,
                    skew: skews.sum::<u64>() / count,
                    max_skew: known.max_skew,
                    error: errors.max_by_key(|error| error.unwrap_or(u64::MAX)).flatten(),
                    late: late(known),
                    ..CommunicatorSums::default()
                }
            })
            .collect();
        all.sort_by_key(|communicator| communicator.number);
        all
    }

    /// Makes a communicator known of which no arrival has come.
    pub(super) fn know(&mut self, identity: u64, size: u32) {
        let number = self.communicators.len();
        if number < MAX_COMMUNICATORS {
            self.communicators.entry(identity).or_insert_with(|| Communicator {
                number: number as u32,
                size,
                ..Communicator::default()
            });
        }
    }
}

fn longest(members: &[Member]) -> u64 {
    members.iter().map(|member| member.took).max().unwrap_or(0)
}

/// Error of the comparison of these times, ns: that of one machine, or of the two worst clocks.
fn error(members: &[Member]) -> Option<u64> {
    let first = members.first()?;
    if members.iter().all(|member| member.node == first.node) {
        return Some(MACHINE_ERROR);
    }
    if members.iter().any(|member| member.error.is_none()) {
        return None;
    }
    let of = |member: &Member| (member.error.unwrap_or(0), member.node);
    let worst = members.iter().map(of).max()?;
    let others = members.iter().map(of).filter(|known| known.1 != worst.1);
    let second = others.max().map_or(0, |known| known.0);
    Some(worst.0.saturating_add(second).saturating_add(MACHINE_ERROR))
}

/// The rank that came last most often.
fn late(known: &Communicator) -> Option<Late> {
    let mut counts: FastMap<u32, (u64, u64)> = FastMap::default();
    for recent in &known.recent {
        if let Some(rank) = recent.last {
            let count = counts.entry(rank).or_default();
            *count = (count.0 + 1, count.1.saturating_add(recent.skew));
        }
    }
    let (rank, (count, skew)) = counts
        .into_iter()
        .max_by_key(|(rank, (count, _))| (*count, std::cmp::Reverse(*rank)))?;
    let own = known.recent.iter().filter(|recent| recent.last == Some(rank));
    let mut operations: BTreeMap<CollectiveOperation, u32> = BTreeMap::new();
    own.for_each(|recent| *operations.entry(recent.operation).or_default() += 1);
    let most = operations.into_iter().max_by_key(|(_, count)| *count);
    Some(Late {
        rank,
        operation: most.map(|(operation, _)| operation).unwrap_or_default(),
        share: count as f64 / known.recent.len() as f64,
        skew: skew / count,
    })
}

/// What is known of a rank in a communicator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Index of the rank.
    pub(super) rank: u32,
    pub(super) reached: u32,
    /// What it is in, since when on the root's clock.
    pub(super) pending: Option<(PendingPart, Nanos)>,
}

/// The first collective of a communicator that ranks have been in for `least` ns and others have not called.
pub(super) fn waiting(size: u32, ranks: &[Standing], now: Nanos, least: u64) -> Option<WaitingSums> {
    let pending = ranks.iter().filter_map(|rank| rank.pending);
    let first = pending.clone().map(|pending| pending.0.sequence).min()?;
    let here = pending.filter(|pending| pending.0.sequence == first);
    let since = here.clone().map(|pending| pending.1).min()?;
    let missing: Vec<u32> = ranks
        .iter()
        .filter(|rank| rank.reached < first)
        .map(|rank| rank.rank)
        .collect();
    let unknown = size.saturating_sub(ranks.len() as u32);
    let is_long = now.saturating_sub(since) >= least;
    (is_long && (!missing.is_empty() || unknown > 0)).then(|| WaitingSums {
        sequence: first,
        operation: here
            .clone()
            .next()
            .map(|pending| pending.0.operation)
            .unwrap_or_default(),
        since,
        came: ranks.iter().filter(|rank| rank.reached >= first).count() as u32,
        missing,
        unknown,
    })
}

#[cfg(test)]
impl Matching {
    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let meetings = self.open.values().map(|meeting| {
            size_of::<Meeting>() + meeting.members.capacity() * size_of::<Member>() + meeting.seen.capacity() * 8
        });
        meetings.sum::<usize>() + self.order.capacity() * 12
    }
}
