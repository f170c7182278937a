//! Busy time of GPUs in many spans: the union of their kernels, clipped to each span.

use super::usage::{self, clip, has_kernels, total, union};
use crate::{Lane, LaneKey, Snapshot};
use roctop_trace::item::{AgentId, Nanos, Span};
use std::sync::Arc;

/// Busy time of the GPUs with work in a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Sum over the GPUs of the time with at least one kernel, ns.
    pub nanos: u64,
    /// Number of GPUs.
    pub gpus: u64,
    /// Whether memory no longer has all kernels of the span: the time is estimated from sums over time.
    pub is_estimate: bool,
}

impl Busy {
    /// Mean over the GPUs, as a share of the span.
    pub fn share(&self, span: Span) -> f64 {
        self.nanos as f64 / (span.duration().max(1) as f64 * self.gpus.max(1) as f64)
    }
}

/// Disjoint spans sorted by begin, each with the covered time before it.
struct Covered(Vec<(Span, u64)>);

impl Covered {
    fn new(spans: Vec<Span>) -> Self {
        let mut before = 0;
        let spans = spans.into_iter().map(|span| {
            let own = (span, before);
            before += span.duration();
            own
        });
        Self(spans.collect())
    }

    /// Covered time before a moment.
    fn until(&self, at: Nanos) -> u64 {
        let place = self.0.partition_point(|(span, _)| span.begin < at);
        let last = place.checked_sub(1).map(|last| self.0[last]);
        last.map_or(0, |(span, before)| before + (at.min(span.end) - span.begin))
    }
}

/// The times with kernels of these lanes in a span, in order.
fn covered(kernels: impl Iterator<Item = Span>, within: Span) -> Vec<Span> {
    let mut spans: Vec<Span> = kernels.filter_map(|kernel| clip(kernel, within)).collect();
    // This stable sort detects sorted runs, one per lane, and merges them.
    spans.sort_by_key(|span| span.begin);
    union(spans.into_iter())
}

/// Busy time of the GPUs with work in each of the spans.
pub fn of_spans(snap: &Snapshot, spans: &[Span]) -> Vec<Busy> {
    let mut out = vec![Busy::default(); spans.len()];
    for gpu in snap.gpus().iter().filter(|gpu| gpu.row.dispatches > 0) {
        add(snap, gpu.row.id, spans, &mut out);
    }
    out
}

/// Adds the busy time of a GPU.
fn add(snap: &Snapshot, gpu: AgentId, spans: &[Span], out: &mut [Busy]) {
    let members = snap.names.members(gpu);
    let is_own = |lane: &&Arc<Lane>| match lane.key {
        LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _) if has_kernels(lane.key) => {
            agent == gpu || members.contains(&agent)
        }
        _ => false,
    };
    let lanes: Vec<&Arc<Lane>> = snap.lanes.iter().filter(is_own).collect();
    let kept_from = lanes.iter().map(|lane| lane.kept_from()).max().unwrap_or(0);
    let kept = || spans.iter().filter(|span| span.begin >= kept_from);
    let all = Span {
        begin: kept().map(|span| span.begin).min().unwrap_or(0),
        end: kept().map(|span| span.end).max().unwrap_or(0),
    };
    let slices = lanes.iter().flat_map(|lane| lane.inside(all.begin, all.end));
    let exact = Covered::new(covered(slices.map(|slice| slice.span), all));
    for (busy, &span) in out.iter_mut().zip(spans) {
        busy.gpus += 1;
        busy.nanos += if span.begin >= kept_from {
            exact.until(span.end) - exact.until(span.begin)
        } else if let Some(nanos) = read_back(&lanes, span) {
            nanos
        } else {
            busy.is_estimate = true;
            usage::busy(snap, gpu, span.begin, span.end)
        };
    }
}

/// Busy time by slices that were read back from a recording; `None` without all of them.
fn read_back(lanes: &[&Arc<Lane>], span: Span) -> Option<u64> {
    let slices = |lane: &&Arc<Lane>| lane.slices(span.begin, span.end, usize::MAX / 2);
    let slices = lanes.iter().map(slices).collect::<Option<Vec<_>>>()?;
    let kernels = slices.iter().flatten().map(|slice| slice.span);
    Some(total(covered(kernels, span).into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fresh, Options, Store};
    use roctop_trace::item::{Agent, AgentKind, Dispatch, Item, ProcessId, StreamId};

    /// Kernels of two GPUs on three streams each, at random, and spans whose borders are anywhere.
    fn random(options: Options) -> (Arc<Snapshot>, Vec<(u32, Span)>, Vec<Span>) {
        let mut seed = 5u64;
        let mut next = move |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        let mut store = Store::new(options);
        for agent in 0..2 {
            store.apply(&Item::Agent(Agent {
                id: AgentId(agent),
                process: ProcessId(0),
                kind: AgentKind::Gpu,
                node: agent + 2,
                name: "gfx942".into(),
                ..Agent::default()
            }));
        }
        let (mut kernels, mut at) = (Vec::new(), 1_000_000);
        for number in 0..30_000u64 {
            at += next(40_000);
            let span = Span {
                begin: at,
                end: at + next(90_000),
            };
            let agent = next(2) as u32;
            store.apply(&Item::Dispatch(Dispatch {
                agent: AgentId(agent),
                stream: Some(StreamId(next(3) as u32)),
                dispatch_id: number + 1,
                span,
                ..Dispatch::default()
            }));
            kernels.push((agent, span));
        }
        let (mut spans, mut begin) = (Vec::new(), 900_000);
        while begin < at {
            let end = begin + 1 + next(1_500_000);
            spans.push(Span { begin, end });
            begin = end.saturating_sub(next(9_000)) + next(30_000);
        }
        (store.snapshot(Fresh::All), kernels, spans)
    }

    /// By the definition: for each GPU, each kernel clipped, without what an earlier one covered.
    fn truth(kernels: &[(u32, Span)], within: Span) -> u64 {
        let of_gpu = |gpu: u32| {
            let (mut sum, mut until) = (0, within.begin);
            for (_, kernel) in kernels.iter().filter(|kernel| kernel.0 == gpu) {
                let end = kernel.end.min(within.end);
                sum += end.saturating_sub(kernel.begin.max(until));
                until = until.max(end);
            }
            sum
        };
        of_gpu(0) + of_gpu(1)
    }

    #[test]
    fn busy_time_of_a_span_is_the_union_of_kernels_clipped_to_it() {
        let (snap, kernels, spans) = random(Options::default());
        let found = of_spans(&snap, &spans);
        assert!(found.len() > 500);
        for (busy, &span) in found.iter().zip(&spans) {
            assert_eq!((busy.nanos, busy.gpus), (truth(&kernels, span), 2), "{span:?}");
            assert!(!busy.is_estimate && busy.share(span) <= 1.0);
        }
    }

    #[test]
    fn spans_whose_kernels_memory_has_dropped_are_estimates() {
        let (snap, kernels, spans) = random(Options {
            slices: 8_000,
            keep: 0,
            ..Options::default()
        });
        let found = of_spans(&snap, &spans);
        let estimates = found.iter().filter(|busy| busy.is_estimate).count();
        assert!((100..found.len() - 100).contains(&estimates), "{estimates}");
        for (busy, &span) in found.iter().zip(&spans).filter(|(busy, _)| !busy.is_estimate) {
            assert_eq!(busy.nanos, truth(&kernels, span), "{span:?}");
        }
    }
}
