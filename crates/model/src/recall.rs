//! The past that the store has dropped, read back from a recording for the window that is on screen.
//!
//! A second store takes the records of the window and gives them the numbers that they have in the first; then the lanes
//! of the first show the slices of the second where they have none themselves.

use std::sync::Arc;

use super::lane::{Lane, Recalled};
use super::pyramid::Reach;
use super::shared_gpu::SharedState;
use super::snapshot::Snapshot;
use super::{AgentState, Mode, Options, Store};
use roctop_trace::decode::Decoded;
use roctop_trace::item::{ApiCall, Dispatch, Item, Nanos, Span};

/// The part of the memory for slices that the recalled past may take.
const PART: usize = 8;

/// A stretch of time on screen, and how much of it a column has, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its begin and end.
    pub span: Span,
    /// Nanoseconds per column.
    pub width: u64,
}

/// How far reading the past back has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Recall {
    /// There is no recording to read.
    #[default]
    None,
    /// Nothing was asked for yet.
    Ready,
    /// This stretch is being read.
    Reading(Span),
    /// This stretch is in the lanes.
    Done(Span),
    /// This stretch could not be read, and why.
    Failed(Span, Arc<str>),
}

impl Recall {
    /// Why a stretch cannot be had; `None` if it may be.
    pub fn refuses(&self, span: Span) -> Option<&str> {
        match self {
            Self::Failed(failed, reason) if span.begin >= failed.begin && span.end <= failed.end => Some(reason),
            _ => None,
        }
    }

    /// Whether the past can be read back at all.
    pub fn is_possible(&self) -> bool {
        *self != Self::None
    }
}

/// A part of the past while it is read.
#[derive(Debug)]
pub struct Past {
    store: Store,
    span: Span,
    width: u64,
    until: Nanos,
    calls: Vec<ApiCall>,
    dispatches: Vec<Dispatch>,
}

impl Past {
    /// Whether columns of the window may be averages: its slices found no room, and sums are wider than a column.
    pub fn is_coarse(&self) -> bool {
        self.width < Reach::FINEST_WIDTH && self.store.forgotten() > 0
    }

    /// Takes what belongs to it.
    pub fn take(&mut self, decoded: &Decoded<'_>) {
        let (here, until) = (self.span, self.until);
        let is_here = |span: Span| span.end >= here.begin && span.begin <= here.end && span.end <= until;
        self.calls.clear();
        self.calls
            .extend(decoded.calls.iter().filter(|call| is_here(call.span)).copied());
        self.dispatches.clear();
        self.dispatches
            .extend(decoded.dispatches.iter().filter(|one| is_here(one.span)).copied());
        for item in decoded.items {
            let is_wanted = match item {
                Item::Copy(copy) => is_here(copy.span),
                Item::CallAlong(call) => is_here(call.span),
                Item::Mark(marker) | Item::Range(marker) | Item::RangeAlong(marker) => is_here(marker.span),
                _ => false,
            };
            if is_wanted {
                self.store.apply(item);
            }
        }
        self.store.calls(&self.calls);
        self.store.dispatches(&self.dispatches);
    }
}

impl Store {
    /// The past can be read back from now on: a part of the memory for slices is for that.
    pub fn enable_recall(&mut self) {
        if self.recall == Recall::None {
            // One that is shown, and one that is being read.
            self.options.slices -= 2 * (self.options.slices / PART);
            self.recall = Recall::Ready;
        }
    }

    /// Sets how far the reading has come.
    pub fn set_recall(&mut self, recall: Recall) {
        self.recall = recall;
        self.is_new = true;
    }

    /// How far reading has come.
    pub const fn recalled(&self) -> &Recall {
        &self.recall
    }

    /// Until when any lane has dropped slices; 0 if none has.
    pub fn forgotten(&self) -> Nanos {
        let forgotten = self.lanes.iter().filter_map(|drawn| drawn.lane.forgotten());
        forgotten.max().unwrap_or(0)
    }

    /// An empty part of the past, for work that touches `window.span` and ended by `until`.
    pub fn past(&self, window: Window, until: Nanos) -> Past {
        let agents = self.agents.iter().map(|agent| AgentState {
            is_used: agent.is_used,
            shared: agent.shared,
            lane: u32::MAX,
            ..AgentState::default()
        });
        let shared = self.shared_gpus.iter().map(SharedState::idle);
        Past {
            store: Self {
                options: Options {
                    mode: Mode::Replay,
                    slices: (self.options.slices / (PART - 2)).max(1),
                    keep: u64::MAX,
                    ..self.options.clone()
                },
                names: self.names.clone(),
                tables: self.tables.numbered_alike(),
                agents: agents.collect(),
                shared_gpus: shared.collect(),
                copies_with_blits: true,
                reach: Some(Reach::of(window.span, window.width)),
                ..Self::default()
            },
            span: window.span,
            width: window.width,
            until,
            calls: Vec::new(),
            dispatches: Vec::new(),
        }
    }

    /// Shows a part of the past that was read whole, in place of the one before.
    pub fn recall(&mut self, mut past: Past) {
        for agent in 0..past.store.agents.len() {
            past.store.settle(agent);
        }
        let (span, until) = (past.span, past.until);
        let mut lanes = std::mem::take(&mut past.store.lane_ids);
        let mut found = past.store.lanes;
        for drawn in &mut self.lanes {
            let key = drawn.lane.key;
            // Lanes that were put together have no slices in the recording.
            let is_single = !key.is_of_thread() || key != key.of_others();
            let mut lane = match lanes.remove(&key) {
                Some(at) => std::mem::replace(&mut found[at as usize].lane, Lane::new(key)),
                None => Lane::new(key),
            };
            lane.sum();
            let recalled = is_single.then(|| Arc::new(Recalled { span, until, lane }));
            drawn.lane.set_recalled(recalled);
            drawn.is_changed = true;
        }
        self.set_recall(Recall::Done(span));
    }
}

impl Snapshot {
    /// The same moment with the past that was read back since.
    #[must_use]
    pub fn recalling(&self, later: &Self) -> Self {
        let with_past = |lane: &Arc<Lane>| match later.lane(lane.key) {
            Some(known) => Arc::new(lane.recalling(known)),
            None => lane.clone(),
        };
        Self {
            lanes: Arc::new(self.lanes.iter().map(with_past).collect()),
            recall: later.recall.clone(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Fresh, LaneKey, Resolution};
    use roctop_trace::item::{AgentId, KernelId, QueueId, StreamId, ThreadId};

    const MILLI: u64 = 1_000_000;

    /// Dispatches of two streams and calls of a thread for ten seconds, some of them long.
    fn work(seed: &mut u64) -> (Vec<Dispatch>, Vec<ApiCall>) {
        let mut next = |most: u64| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (*seed >> 33) % most
        };
        let (mut dispatches, mut calls, mut at) = (Vec::new(), Vec::new(), 1_000 * MILLI);
        for number in 0..40_000u64 {
            at += next(500_000);
            let long = if next(2_000) == 0 { 700 * MILLI } else { 0 };
            let span = Span {
                begin: at,
                end: at + next(400_000) + long,
            };
            let stream = next(2) as u32;
            dispatches.push(Dispatch {
                kernel: KernelId(next(5) as u32 + 1),
                agent: AgentId(1),
                queue: QueueId(stream),
                stream: Some(StreamId(stream)),
                thread: Some(ThreadId(1)),
                span,
                submit: at - 10_000,
                correlation: number + 1,
                dispatch_id: number,
                grid: [64 << next(3), 1, 1],
                ..Dispatch::default()
            });
            calls.push(ApiCall {
                thread: ThreadId(1),
                span: Span {
                    begin: at - 20_000,
                    end: at - 5_000 + long,
                },
                correlation: number + 1,
                ..ApiCall::default()
            });
        }
        // They come in the order in which they end.
        dispatches.sort_by_key(|one| one.span.end);
        calls.sort_by_key(|one| one.span.end);
        (dispatches, calls)
    }

    fn decoded<'a>(dispatches: &'a [Dispatch], calls: &'a [ApiCall]) -> Decoded<'a> {
        Decoded {
            items: &[],
            calls,
            dispatches,
        }
    }

    fn store(slices: usize) -> Store {
        Store::new(Options {
            slices,
            keep: 1,
            ..Options::default()
        })
    }

    fn all_columns(snap: &Snapshot, key: LaneKey, window: Window) -> Vec<Column> {
        let columns = (window.span.duration() / window.width) as usize;
        let lane = snap.lane(key).expect("it has work");
        lane.columns(window.span.begin, window.width, columns, |_| true)
    }

    #[test]
    fn a_recalled_past_equals_one_that_was_never_dropped() {
        let mut seed = 7;
        let (dispatches, calls) = work(&mut seed);
        let (mut unlimited, mut limited) = (store(10_000_000), store(36_000));
        limited.enable_recall();
        // The recording is behind: what ended later is in no block yet.
        let (written, until) = (
            dispatches.len() / 10 * 9,
            dispatches[dispatches.len() / 10 * 9].span.end,
        );
        for (some, same) in dispatches.chunks(500).zip(calls.chunks(500)) {
            unlimited.take(&decoded(some, same));
            limited.take(&decoded(some, same));
        }
        let forgotten = limited.forgotten();
        assert!(
            forgotten <= until && forgotten > dispatches[written / 2].span.end,
            "{forgotten} {until}"
        );
        let streams = [0, 1].map(|stream| LaneKey::Stream(AgentId(1), StreamId(stream)));
        let keys = [streams[0], streams[1], LaneKey::Api(ThreadId(1), 0)];
        let whole = unlimited.snapshot(Fresh::All);
        let mut exact = 0;
        for round in 0..40u64 {
            let width = [50_000, 200_000, 400_000][round as usize % 3];
            let begin = (1_100 + round * 220) * MILLI;
            let window = Window {
                span: Span {
                    begin,
                    end: begin + 150 * width,
                },
                width,
            };
            let before = limited.snapshot(Fresh::Head);
            let mut past = limited.past(window, until);
            let is_written = |span: Span| span.end <= until;
            let some: Vec<Dispatch> = dispatches.iter().filter(|one| is_written(one.span)).copied().collect();
            let same: Vec<ApiCall> = calls.iter().filter(|one| is_written(one.span)).copied().collect();
            past.take(&decoded(&some, &same));
            limited.recall(past);
            let snap = limited.snapshot(Fresh::Head);
            for key in keys {
                let wanted = all_columns(&whole, key, window);
                for (at, (column, wanted)) in all_columns(&snap, key, window).iter().zip(&wanted).enumerate() {
                    assert!(is_same(column, wanted), "{round}, {key:?}, {at}: {column:?} {wanted:?}");
                }
                assert!(wanted.iter().all(|column| column.resolution == Resolution::Exact));
                let was = all_columns(&before, key, window);
                exact += usize::from(!was.iter().zip(&wanted).all(|(was, wanted)| is_same(was, wanted)));
                let slices = |snap: &Snapshot| {
                    let lane = snap.lane(key).expect("it has work");
                    lane.slices(begin, window.span.end, 100_000)
                };
                assert_eq!(
                    slices(&snap).map(sorted),
                    slices(&whole).map(sorted),
                    "round {round}, {key:?}"
                );
                let near = |snap: &Snapshot| snap.lane(key).and_then(|lane| lane.neighbour(begin + width, true));
                assert_eq!(
                    near(&snap).map(|one| one.span.begin),
                    near(&whole).map(|one| one.span.begin)
                );
            }
            assert_eq!(before.recalling(&snap).recall, Recall::Done(window.span));
        }
        assert!(exact > 60, "{exact} lanes were averages before");
        assert!(limited.slices <= 36_000 / 8 * 6);
    }

    /// The same but for the rounding of shares, which depends on the order of slices.
    fn is_same(one: &Column, other: &Column) -> bool {
        let kinds = |column: &Column| {
            let mut kinds: Vec<(u32, u64)> = column.sums.kinds().collect();
            kinds.sort_unstable();
            kinds
        };
        let rounded = one.sums.busy / 10_000 + 1;
        let mut both = kinds(one).into_iter().zip(kinds(other));
        (one.resolution, one.sums.busy, one.sums.count) == (other.resolution, other.sums.busy, other.sums.count)
            && both.all(|(a, b)| a.0 == b.0 && a.1.abs_diff(b.1) <= rounded)
    }

    fn sorted(mut slices: Vec<crate::Slice>) -> Vec<crate::Slice> {
        slices.sort_by_key(|slice| (slice.span.begin, slice.correlation));
        slices
    }

    #[test]
    fn a_past_without_room_for_its_slices_has_sums_by_column() {
        let mut seed = 9;
        let (dispatches, calls) = work(&mut seed);
        let mut limited = store(2_000);
        limited.enable_recall();
        for (some, same) in dispatches.chunks(500).zip(calls.chunks(500)) {
            limited.take(&decoded(some, same));
        }
        let span = Span {
            begin: 1_000 * MILLI,
            end: 5_000 * MILLI,
        };
        let window = Window {
            span,
            width: 20 * MILLI,
        };
        let until = dispatches.last().expect("there are some").span.end;
        let mut past = limited.past(window, until);
        past.take(&decoded(&dispatches, &calls));
        limited.recall(past);
        let snap = limited.snapshot(Fresh::Head);
        let key = LaneKey::Stream(AgentId(1), StreamId(1));
        let columns = all_columns(&snap, key, window);
        let is_fine = |column: &Column| column.is_empty() || column.resolution <= Resolution::Sums(window.width);
        assert!(columns.iter().all(is_fine), "{columns:?}");
        let busy: u64 = columns.iter().map(|column| column.sums.busy).sum();
        let own = dispatches.iter().filter(|one| one.stream == Some(StreamId(1)));
        let truth: u64 = own
            .map(|one| {
                one.span
                    .end
                    .min(span.end)
                    .saturating_sub(one.span.begin.max(span.begin))
            })
            .sum();
        assert!(busy.abs_diff(truth) < truth / 1000, "{busy} {truth}");
    }
}
