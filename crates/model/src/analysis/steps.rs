//! Iterations: a ROC-TX range that comes again and again, or a sequence of kernels that repeats.

use std::sync::Arc;

use super::usage::has_kernels;
use crate::table::pattern;
use crate::{Lane, LaneKey, Slice, Snapshot};
use roctop_trace::item::{AgentId, Span, TextId};

/// Steps that are looked at: the youngest.
const MOST: usize = 1000;
/// A range that came less often is no step.
const FEWEST: usize = 3;
/// Kernels in which a period is looked for.
const SEQUENCE: usize = 4096;
/// The longest period, kernels.
const LONGEST: usize = 1024;
/// A period is one when so many of its kernels are the same in the next.
const SAME: f64 = 0.9;

/// What is taken as a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Ranges of one pattern of texts, in one lane.
    Ranges(LaneKey, Arc<str>),
    /// So many kernels of a lane, of which this share is the same from one to the next.
    Period(LaneKey, usize, f64),
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// From when to when.
    pub span: Span,
    /// Its text; empty for a period.
    pub text: Arc<str>,
    /// Share of it in which a GPU ran a kernel, the mean over the GPUs that work.
    pub busy: f64,
    /// Whether it took much longer than most.
    pub is_outlier: bool,
}

/// Steps of one kind, in order of begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// What is taken as a step.
    pub source: Source,
    /// The steps.
    pub steps: Vec<Step>,
    /// Median of their durations, ns.
    pub median: u64,
    /// 99 of 100 are shorter, ns; the longest when there are fewer than 100.
    pub p99: u64,
    /// How many took much longer than most.
    pub outliers: usize,
}

/// All that can be taken as a step, the likeliest first.
pub fn sources(snap: &Snapshot) -> Vec<Source> {
    let mut found: Vec<(u16, u64, Source)> = Vec::new();
    for lane in snap.lanes.iter() {
        let level = match lane.key {
            LaneKey::Markers(_, level) => level,
            LaneKey::Ranges(_) => 0,
            _ => continue,
        };
        let mut patterns: Vec<(Arc<str>, usize, u64)> = Vec::new();
        let mut last: Option<(u32, usize)> = None;
        for slice in lane.recent(MOST).filter(|slice| slice.shape == 0) {
            // The same text again: the same pattern.
            let at = last.filter(|known| known.0 == slice.what).map(|known| known.1);
            let at = at.unwrap_or_else(|| {
                let text = pattern(snap.names.text(TextId(slice.what)));
                let known = patterns.iter().position(|known| *known.0 == *text);
                known.unwrap_or_else(|| {
                    patterns.push((text.into(), 0, 0));
                    patterns.len() - 1
                })
            });
            last = Some((slice.what, at));
            patterns[at].1 += 1;
            patterns[at].2 = patterns[at].2.saturating_add(slice.span.duration());
        }
        let often = patterns.into_iter().filter(|known| known.1 >= FEWEST);
        found.extend(often.map(|(text, _, total)| (level, total, Source::Ranges(lane.key, text))));
    }
    found.sort_by_key(|(level, total, _)| (*level, std::cmp::Reverse(*total)));
    let mut out: Vec<Source> = found.into_iter().map(|known| known.2).collect();
    out.extend(period(snap));
    out
}

/// The last kernels of a lane in order of begin.
fn sequence(lane: &Lane) -> Vec<Slice> {
    let mut slices: Vec<Slice> = lane.recent(SEQUENCE).copied().collect();
    slices.sort_by_key(|slice| slice.span.begin);
    slices
}

/// The shortest period of the lane with most kernels.
fn period(snap: &Snapshot) -> Option<Source> {
    let lane = snap
        .lanes
        .iter()
        .filter(|lane| has_kernels(lane.key))
        .max_by_key(|lane| lane.total)?;
    let kernels: Vec<u32> = sequence(lane).iter().map(|slice| slice.what).collect();
    let (lag, same) = repeats(&kernels)?;
    Some(Source::Period(lane.key, lag, same))
}

/// The shortest distance at which a sequence is the same as itself, and how much of it is; a sequence of one thing has
/// none that would say anything.
fn repeats(sequence: &[u32]) -> Option<(usize, f64)> {
    let first = sequence.first()?;
    if sequence.iter().all(|what| what == first) {
        return None;
    }
    let longest = LONGEST.min(sequence.len() / FEWEST);
    for lag in 2..=longest {
        let pairs = sequence.len() - lag;
        let most_misses = (pairs as f64 * (1.0 - SAME)) as usize;
        let mut misses = 0;
        for (a, b) in sequence.iter().zip(&sequence[lag..]) {
            misses += usize::from(a != b);
            if misses > most_misses {
                break;
            }
        }
        // A run of one thing repeats at any distance: what is not that thing must repeat too.
        if misses <= most_misses && tells(&sequence[..lag]) {
            return Some((lag, 1.0 - misses as f64 / pairs as f64));
        }
    }
    None
}

fn tells(period: &[u32]) -> bool {
    period.iter().any(|what| *what != period[0])
}

/// The steps of a kind.
pub fn steps(snap: &Snapshot, source: &Source) -> Steps {
    let mut spans: Vec<(Span, Arc<str>)> = match source {
        Source::Ranges(key, wanted) => {
            let lane = snap.lane(*key);
            let all = lane
                .into_iter()
                .flat_map(|lane| lane.recent(MOST * 8))
                .filter(|slice| slice.shape == 0);
            let text = |slice: &Slice| snap.names.text(TextId(slice.what));
            all.filter(|slice| pattern(text(slice)) == **wanted)
                .take(MOST)
                .map(|slice| (slice.span, text(slice).into()))
                .collect()
        }
        Source::Period(key, length, _) => {
            let lane = snap.lane(*key);
            let kernels = lane.map(|lane| sequence(lane)).unwrap_or_default();
            // Of all that were ever in the lane every so-many-th begins a step, or steps would move with each kernel.
            let before = lane.map_or(0, |lane| lane.total.saturating_sub(kernels.len() as u64));
            let length = (*length).max(1);
            let first = before.next_multiple_of(length as u64) - before;
            let from_first = kernels.iter().skip(first as usize).step_by(length);
            let begins: Vec<u64> = from_first.map(|slice| slice.span.begin).collect();
            let pairs = begins.windows(2).map(|pair| Span {
                begin: pair[0],
                end: pair[1],
            });
            pairs.map(|span| (span, "".into())).collect()
        }
    };
    spans.sort_by_key(|(span, _)| span.begin);
    let mut nanos: Vec<u64> = spans.iter().map(|(span, _)| span.duration()).collect();
    nanos.sort_unstable();
    let at = |share: f64| {
        nanos
            .get((nanos.len() as f64 * share) as usize)
            .or(nanos.last())
            .copied()
            .unwrap_or(0)
    };
    let (median, p99) = (at(0.5), at(0.99));
    // Much longer: a fifth above the median, and beyond what three of four do by twice their spread.
    let limit = (median + median / 5).max(at(0.75) + 2 * at(0.75).saturating_sub(at(0.25)));
    let agents: Vec<AgentId> = snap
        .values
        .agents
        .iter()
        .filter(|row| row.dispatches > 0)
        .map(|row| row.id)
        .collect();
    let steps: Vec<Step> = spans
        .into_iter()
        .map(|(span, text)| {
            let busy = agents.iter().fold(0, |sum: u64, &agent| {
                sum.saturating_add(super::usage::busy(snap, agent, span.begin, span.end))
            });
            let whole = span.duration().max(1) as f64 * agents.len().max(1) as f64;
            Step {
                span,
                text,
                busy: busy as f64 / whole,
                is_outlier: span.duration() > limit,
            }
        })
        .collect();
    Steps {
        source: source.clone(),
        median,
        p99,
        outliers: steps.iter().filter(|step| step.is_outlier).count(),
        steps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fresh, Options, Store};
    use roctop_trace::item::{Dispatch, Item, KernelId};

    #[test]
    fn steps_of_a_period_stay_where_they_are_when_a_kernel_comes() {
        let mut store = Store::new(Options::default());
        let mut begins = Vec::new();
        for number in 0..SEQUENCE as u64 + 20 {
            let begin = 1_000 + number * 100;
            store.apply(&Item::Dispatch(Dispatch {
                kernel: KernelId((number % 5) as u32),
                dispatch_id: number + 1,
                span: Span { begin, end: begin + 50 },
                ..Dispatch::default()
            }));
            if number >= SEQUENCE as u64 {
                let snap = store.snapshot(Fresh::All);
                let source = period(&snap).expect("a period");
                begins.push(steps(&snap, &source).steps[0].span.begin);
            }
        }
        assert!(begins.iter().all(|begin| (begin - 1_000) % 500 == 0), "{begins:?}");
    }

    #[test]
    fn the_shortest_period_is_found_and_none_where_there_is_none() {
        let sequence: Vec<u32> = (0..300).map(|i| [1, 2, 2, 3, 1, 4][i % 6]).collect();
        assert_eq!(repeats(&sequence), Some((6, 1.0)));
        let mut disturbed = sequence.clone();
        disturbed[100] = 9;
        assert_eq!(repeats(&disturbed).map(|found| found.0), Some(6));
        assert_eq!(repeats(&[7; 300]), None);
        let mut seed = 5u64;
        let random: Vec<u32> = (0..300)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 60) as u32
            })
            .collect();
        assert_eq!(repeats(&random), None);
        assert_eq!(repeats(&[]), None);
    }
}
