//! Iterations: a repeated ROC-TX range, or a repeating sequence of kernels.

use std::fmt;
use std::sync::Arc;

use super::period::{self, Kernel, Period};
use super::usage::has_kernels;
use crate::table::{last_integer, pattern};
use crate::{FastMap, Lane, LaneKey, Mode, Slice, Snapshot};
use roctop_trace::item::{KernelId, Nanos, ProcessId, Span, TextId};
use roctop_trace::units;

/// Maximum number of listed steps: the latest.
const MAX_STEPS: usize = 4096;
/// Maximum number of ranges per lane that are searched for steps.
const MAX_RANGES: usize = 8 * MAX_STEPS;
/// Minimum number of occurrences of a range that is a step.
const MIN_OCCURRENCES: usize = 3;
/// Number of kernels searched for steps in a live session, once per second.
const LIVE_KERNELS: usize = 1 << 18;
/// Kernels from which on a step's begin is recognized.
const MAX_WORD: usize = 16;
/// Number of kernels searched for steps in a recording, once.
const REPLAY_KERNELS: usize = 1 << 20;

/// Source of steps.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Ranges of one text pattern in a lane.
    Ranges(LaneKey, Arc<str>),
    /// A repeating kernel sequence of a lane.
    Period(LaneKey, Period),
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its time.
    pub span: Span,
    /// Text of its range; empty for a period.
    pub text: Arc<str>,
    /// Its number: the last integer in its text, else the absolute one.
    pub number: u64,
    /// Its place among all steps since the start, from 1.
    pub absolute: u64,
    /// Whether it took much longer than most.
    pub is_outlier: bool,
}

/// Steps of one source, sorted by begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// Source.
    pub source: Source,
    /// The steps.
    pub steps: Vec<Step>,
    /// Begin of the searched time; `None` for the whole run.
    pub since: Option<Nanos>,
    /// Whether absolute numbers are estimates, by the kernels before: earlier steps of a period were not counted.
    pub is_estimate: bool,
    /// Median duration, ns.
    pub median: u64,
    /// 99th percentile of the duration, ns; the maximum if there are fewer than 100.
    pub p99: u64,
    /// Number of outliers.
    pub outliers: usize,
}

/// How a question or command names a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `3`: by its number.
    Number(u64),
    /// `#3`: by its place among all steps since the start.
    Absolute(u64),
}

impl Name {
    /// The name of a step as it is typed.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix('#') {
            Some(absolute) => absolute.parse().ok().filter(|at| *at > 0).map(Self::Absolute),
            None => text.parse().ok().map(Self::Number),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Absolute(absolute) => write!(f, "#{absolute}"),
        }
    }
}

/// Maximum number of steps that a refusal lists.
const MAX_NAMESAKES: usize = 8;

impl Steps {
    /// The step of a name.
    ///
    /// Errors: there is none, or several have the number; `origin` is the begin of the session.
    pub fn named(&self, name: Name, origin: Nanos) -> Result<&Step, String> {
        let is_it = |step: &&Step| match name {
            Name::Number(number) => step.number == number,
            Name::Absolute(absolute) => step.absolute == absolute,
        };
        let found: Vec<&Step> = self.steps.iter().filter(is_it).collect();
        match found[..] {
            [one] => Ok(one),
            [] => {
                let known = units::counted(self.steps.len() as u64, "step is", "steps are");
                Err(format!("no step {name}: {known} known"))
            }
            _ => {
                let at = |step: &&Step| {
                    let since = step.span.begin.saturating_sub(origin) as f64 / 1e9;
                    format!("#{} at {since:.3} s", step.absolute)
                };
                let mut list: Vec<String> = found.iter().take(MAX_NAMESAKES).map(at).collect();
                if found.len() > MAX_NAMESAKES {
                    list.push(format!("{} more", found.len() - MAX_NAMESAKES));
                }
                let (count, list) = (found.len(), list.join(", "));
                Err(format!("{count} steps are step {name}: {list}; step #N names one"))
            }
        }
    }

    /// The step with this place among all since the start.
    pub fn at(&self, absolute: u64) -> Option<&Step> {
        self.steps.iter().find(|step| step.absolute == absolute)
    }

    /// The shortest name of a step that no other has.
    pub fn name(&self, step: &Step) -> Name {
        match self.steps.iter().filter(|other| other.number == step.number).count() {
            1 if step.number != step.absolute => Name::Number(step.number),
            _ => Name::Absolute(step.absolute),
        }
    }
}

/// Possible sources of steps, most likely first.
pub fn sources(snap: &Snapshot) -> Vec<Source> {
    let mut out = repeated_ranges(snap, &|_| true);
    out.extend(period(snap, &|_| true));
    out
}

/// The most likely source of the steps of a process.
pub fn source_of(snap: &Snapshot, process: ProcessId) -> Option<Source> {
    let names = &snap.names;
    let is_own = |key: LaneKey| match key {
        LaneKey::Markers(thread, _) | LaneKey::Ranges(thread) => {
            names.thread(thread).is_some_and(|thread| thread.process == process)
        }
        LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _) => {
            names.agent(agent).is_some_and(|agent| agent.process == process)
        }
        _ => false,
    };
    let ranges = repeated_ranges(snap, &is_own);
    ranges.into_iter().next().or_else(|| period(snap, &is_own))
}

/// Spans of the steps of a source that ended after a time, in order.
pub fn ended_since(snap: &Snapshot, source: &Source, since: Nanos) -> Vec<Span> {
    let mut spans: Vec<Span> = match source {
        Source::Ranges(key, wanted) => {
            let lane = snap.lane(*key);
            let recent = lane.into_iter().flat_map(|lane| lane.recent(MAX_RANGES));
            let ended = recent.take_while(|slice| slice.span.end > since);
            let is_wanted =
                |slice: &&Slice| slice.shape == 0 && pattern(snap.names.text(TextId(slice.what))) == **wanted;
            ended.filter(is_wanted).map(|slice| slice.span).collect()
        }
        Source::Period(key, period) => {
            let lane = snap.lane(*key);
            // The step that ended first began before, and its begin is recognized by the kernels that follow.
            let recent = || lane.into_iter().flat_map(|lane| lane.recent(LIVE_KERNELS));
            let later = recent().take_while(|slice| slice.span.end > since).count();
            let most = later.saturating_add(2 * period.length.min(LIVE_KERNELS) + MAX_WORD);
            let found = lane.map(|lane| repetitions_of(&sequence(snap, lane, most.min(LIVE_KERNELS)), period));
            found.unwrap_or_default()
        }
    };
    spans.retain(|span| span.end > since);
    spans.sort_by_key(|span| span.begin);
    spans
}

/// Ranges that repeat in the lanes that `takes` takes, outermost first.
fn repeated_ranges(snap: &Snapshot, takes: &dyn Fn(LaneKey) -> bool) -> Vec<Source> {
    let mut found: Vec<(u16, u64, Source)> = Vec::new();
    for lane in snap.lanes.iter().filter(|lane| takes(lane.key)) {
        let level = match lane.key {
            LaneKey::Markers(_, level) => level,
            LaneKey::Ranges(_) => 0,
            _ => continue,
        };
        let mut patterns: Vec<(Arc<str>, usize, u64)> = Vec::new();
        let mut last: Option<(u32, usize)> = None;
        for slice in lane.recent(MAX_STEPS).filter(|slice| slice.shape == 0) {
            // Same text, same pattern.
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
        let often = patterns.into_iter().filter(|known| known.1 >= MIN_OCCURRENCES);
        found.extend(often.map(|(text, _, total)| (level, total, Source::Ranges(lane.key, text))));
    }
    found.sort_by_key(|(level, total, _)| (*level, std::cmp::Reverse(*total)));
    found.into_iter().map(|known| known.2).collect()
}

/// Latest kernels of a lane, sorted by begin, and whether these are all. The run-time's own kernels are left out:
/// whether it copies by a kernel depends on the copy, not on the step.
fn searched(snap: &Snapshot, lane: &Lane) -> (Vec<Kernel>, bool) {
    let most = most_kernels(snap);
    (sequence(snap, lane, most), lane.total <= most.min(lane.kept()) as u64)
}

/// Number of kernels that are searched for steps.
const fn most_kernels(snap: &Snapshot) -> usize {
    match snap.mode {
        Mode::Live => LIVE_KERNELS,
        Mode::Replay => REPLAY_KERNELS,
    }
}

/// The latest kernels of a lane, at most `most`.
fn sequence(snap: &Snapshot, lane: &Lane, most: usize) -> Vec<Kernel> {
    let own = lane
        .recent(most)
        .filter(|slice| !snap.names.is_internal(KernelId(slice.what)));
    let mut kernels: Vec<Kernel> = own
        .map(|slice| Kernel {
            what: slice.what,
            begin: slice.span.begin,
            end: slice.span.end,
        })
        .collect();
    kernels.reverse();
    kernels.sort_by_key(|kernel| kernel.begin);
    kernels
}

/// Begins of the searched kernels of a lane, each with the number of kernels that were added to the lane before.
fn kernels_before(snap: &Snapshot, lane: &Lane) -> Vec<(Nanos, u64)> {
    let most = most_kernels(snap);
    let counted = lane.recent(most).zip((0..lane.total).rev());
    let own = counted.filter(|(slice, _)| !snap.names.is_internal(KernelId(slice.what)));
    let mut begins: Vec<(Nanos, u64)> = own.map(|(slice, before)| (slice.span.begin, before)).collect();
    begins.sort_unstable();
    begins
}

/// Period of the lane with most kernels of those that `takes` takes.
fn period(snap: &Snapshot, takes: &dyn Fn(LaneKey) -> bool) -> Option<Source> {
    let lane = snap
        .lanes
        .iter()
        .filter(|lane| has_kernels(lane.key) && takes(lane.key))
        .max_by_key(|lane| lane.total)?;
    Some(Source::Period(lane.key, period::find(&searched(snap, lane).0)?))
}

/// Steps that were found.
#[derive(Default)]
struct Found {
    /// Their spans, texts and absolute numbers.
    steps: Vec<(Span, Arc<str>, u64)>,
    /// Begin of the searched time; `None` for the whole run.
    since: Option<Nanos>,
    is_estimate: bool,
}

/// Ranges of one text pattern in a lane.
fn ranges(snap: &Snapshot, key: LaneKey, wanted: &str) -> Found {
    let Some(lane) = snap.lane(key) else {
        return Found::default();
    };
    let mut known: FastMap<u32, bool> = FastMap::default();
    let text = |slice: &Slice| snap.names.text(TextId(slice.what));
    let looked_at = lane.recent(MAX_RANGES);
    let since = (lane.total > MAX_RANGES.min(lane.kept()) as u64).then(|| lane.recent(MAX_RANGES).last());
    let mut is_wanted = |slice: &&Slice| {
        let is_same = || pattern(text(slice)) == *wanted;
        slice.shape == 0 && *known.entry(slice.what).or_insert_with(is_same)
    };
    let spans: Vec<&Slice> = looked_at.filter(|slice| is_wanted(slice)).collect();
    let count = lane.ranges_of(|last| pattern(snap.names.text(TextId(last))) == *wanted);
    let count = count.unwrap_or(0).max(spans.len() as u64);
    // The youngest comes first.
    let numbered = spans.iter().zip((0..=count).rev());
    Found {
        steps: numbered
            .map(|(slice, absolute)| (slice.span, text(slice).into(), absolute))
            .collect(),
        since: since.flatten().map(|slice| slice.span.begin),
        is_estimate: false,
    }
}

/// Spans between begins of a sequence.
fn repetitions(snap: &Snapshot, key: LaneKey, period: &Period) -> Found {
    let Some(lane) = snap.lane(key) else {
        return Found::default();
    };
    let (kernels, is_whole) = searched(snap, lane);
    let since = kernels.first().filter(|_| !is_whole).map(|first| first.begin);
    // Earlier steps were not counted: the kernels before give their number.
    let before = if is_whole {
        Vec::new()
    } else {
        kernels_before(snap, lane)
    };
    let absolute = |place: usize, span: Span| {
        let first = before.partition_point(|(begin, _)| *begin < span.begin);
        let fits = before.get(first).map(|(_, count)| count / period.length.max(1) as u64);
        fits.unwrap_or(place as u64) + 1
    };
    let spans = repetitions_of(&kernels, period).into_iter().enumerate();
    Found {
        steps: spans
            .map(|(place, span)| (span, "".into(), absolute(place, span)))
            .collect(),
        since,
        is_estimate: !is_whole,
    }
}

fn repetitions_of(kernels: &[Kernel], period: &Period) -> Vec<Span> {
    let words = period::words(kernels);
    let begins: Vec<usize> = (0..words.len()).filter(|&at| words[at] == period.anchor).collect();
    let pairs = begins.windows(2);
    // Where other kernels interrupt the sequence, there is no step.
    let steps = pairs.filter(|pair| period::is_like(pair[1] - pair[0], period.length));
    let spans = steps.map(|pair| Span {
        begin: kernels[pair[0]].begin,
        end: kernels[pair[1]].begin,
    });
    spans.collect()
}

/// Steps of a source.
pub fn steps(snap: &Snapshot, source: &Source) -> Steps {
    let found = match source {
        Source::Ranges(key, wanted) => ranges(snap, *key, wanted),
        Source::Period(key, period) => repetitions(snap, *key, period),
    };
    let (mut spans, mut since) = (found.steps, found.since);
    spans.sort_by_key(|(span, ..)| span.begin);
    if let Some(surplus) = spans.len().checked_sub(MAX_STEPS).filter(|surplus| *surplus > 0) {
        spans.drain(..surplus);
        since = spans.first().map(|(span, ..)| span.begin);
    }
    let mut nanos: Vec<u64> = spans.iter().map(|(span, ..)| span.duration()).collect();
    nanos.sort_unstable();
    let at = |share: f64| {
        nanos
            .get((nanos.len() as f64 * share) as usize)
            .or(nanos.last())
            .copied()
            .unwrap_or(0)
    };
    let (median, p99) = (at(0.5), at(0.99));
    // An outlier exceeds the median by a fifth, and the third quartile by twice the interquartile range.
    let limit = (median + median / 5).max(at(0.75) + 2 * at(0.75).saturating_sub(at(0.25)));
    let steps: Vec<Step> = spans
        .into_iter()
        .map(|(span, text, absolute)| Step {
            span,
            number: last_integer(&text).unwrap_or(absolute),
            absolute,
            text,
            is_outlier: span.duration() > limit,
        })
        .collect();
    Steps {
        source: source.clone(),
        since,
        is_estimate: found.is_estimate,
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
    use roctop_trace::item::{Dispatch, Item, Kernel as Fact, Marker};

    fn dispatch(number: u64, kernel: u32) -> Item {
        let begin = 1_000 + number * 100;
        Item::Dispatch(Dispatch {
            kernel: KernelId(kernel),
            dispatch_id: number + 1,
            span: Span { begin, end: begin + 50 },
            ..Dispatch::default()
        })
    }

    #[test]
    fn steps_of_a_period_stay_where_they_are_when_a_kernel_comes() {
        let mut store = Store::new(Options {
            slices: 4000,
            ..Options::default()
        });
        let mut begins = Vec::new();
        for number in 0..5000 {
            store.apply(&dispatch(number, (number % 5) as u32));
            if number > 4500 && number % 7 == 0 {
                let snap = store.snapshot(Fresh::All);
                let source = period(&snap, &|_| true).expect("a period");
                begins.push(steps(&snap, &source).steps[0].span.begin % 500);
            }
        }
        assert!(begins.iter().all(|begin| *begin == begins[0]), "{begins:?}");
    }

    /// Ranges of one thread, one after another, with these texts.
    fn ranges_of(texts: impl Iterator<Item = String>) -> Arc<Snapshot> {
        let mut store = Store::new(Options {
            slices: 20_000,
            keep: 0,
            ..Options::default()
        });
        for (id, text) in (0..).zip(texts) {
            store.apply(&Item::Text(TextId(id), text.into()));
            let begin = 1_000_000 + u64::from(id) * 1000;
            store.apply(&Item::Range(Marker {
                text: TextId(id),
                span: Span {
                    begin,
                    end: begin + 900,
                },
                ..Marker::default()
            }));
        }
        store.snapshot(Fresh::All)
    }

    #[test]
    fn number_of_a_step_is_the_last_integer_in_its_text() {
        let texts = |text: &str| last_integer(text);
        assert_eq!(texts("step 637"), Some(637));
        assert_eq!(texts("epoch 3 step 0 (warm-up)"), Some(0));
        assert_eq!(texts("forward"), None);
        assert_eq!(texts("id 99999999999999999999999"), None);
        let snap = ranges_of((0..9).map(|at| format!("step {at}")));
        let found = snap.steps(0).unwrap();
        let step = |name: &str| found.named(Name::parse(name).unwrap(), snap.origin);
        assert_eq!(&*step("0").unwrap().text, "step 0");
        assert_eq!(&*step("#1").unwrap().text, "step 0");
        assert_eq!(step("9").unwrap_err(), "no step 9: 9 steps are known");
        assert_eq!(found.name(step("3").unwrap()).to_string(), "3");
        let snap = ranges_of((0..9).map(|_| "step".into()));
        let found = snap.steps(0).unwrap();
        assert_eq!(found.named(Name::Number(3), snap.origin).unwrap().absolute, 3);
    }

    #[test]
    fn number_that_several_steps_have_is_refused_with_their_times() {
        let snap = ranges_of((0..30).map(|at| format!("epoch {} step {}", at / 10, at % 10)));
        let found = snap.steps(0).unwrap();
        let why = found.named(Name::Number(4), snap.origin).unwrap_err();
        let times = "#5 at 0.000 s, #15 at 0.000 s, #25 at 0.000 s";
        assert_eq!(why, format!("3 steps are step 4: {times}; step #N names one"));
        let step = found.named(Name::Absolute(15), snap.origin).unwrap();
        assert_eq!((&*step.text, found.name(step)), ("epoch 1 step 4", Name::Absolute(15)));
    }

    #[test]
    fn steps_beyond_the_listed_ones_keep_their_numbers() {
        let last = |count: usize| {
            let snap = ranges_of((0..count).map(|_| "iteration".into()));
            let found = snap.steps(0).unwrap();
            let (first, last) = (&found.steps[0], found.steps.last().unwrap());
            let begin = |step: &Step| (step.span.begin - 1_000_000) / 1000 + 1;
            assert_eq!((begin(first), begin(last)), (first.absolute, last.absolute));
            assert_eq!((found.steps.len(), last.number), (MAX_STEPS, count as u64));
        };
        // Memory holds all of the first, a part of the second, which is read to the limit of ranges alone.
        [10_000, 60_000].into_iter().for_each(last);
    }

    /// A model of 32 layers and 452 kernels per token, with copies of the run-time in between.
    fn deep(tokens: u64, options: Options) -> Arc<Snapshot> {
        let mut store = Store::new(options);
        store.apply(&Item::Kernel(Fact {
            id: KernelId(99),
            internal: true,
            ..Fact::default()
        }));
        let mut number = 0;
        let mut put = |kernel: u32| {
            store.apply(&dispatch(number, kernel));
            number += 1;
        };
        for token in 0..tokens {
            (0..2).for_each(|at| put(20 + at));
            // Every second layer has tensors of another kind.
            (0..32 * 14).for_each(|at| put(if at % 14 == 5 { 30 + at / 14 % 2 } else { at % 14 }));
            (2..4).for_each(|at| put(20 + at));
            (0..token % 3).for_each(|_| put(99));
        }
        store.snapshot(Fresh::All)
    }

    #[test]
    fn a_step_of_a_deep_model_is_a_token_over_the_whole_run() {
        for mode in [Mode::Live, Mode::Replay] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let snap = deep(60, options);
            let source = period(&snap, &|_| true).expect("a period");
            assert!(
                matches!(source, Source::Period(_, Period { length: 452, .. })),
                "{source:?}"
            );
            let found = steps(&snap, &source);
            assert!(found.steps.len() >= 58, "{} steps of 60", found.steps.len());
            assert_eq!(found.since, None);
        }
        // The searched time is reported if it is not the whole run.
        let options = Options {
            slices: 10_000,
            ..Options::default()
        };
        let snap = deep(60, options);
        let found = steps(&snap, &period(&snap, &|_| true).expect("a period"));
        assert!(
            found.since.is_some() && (19..24).contains(&found.steps.len()),
            "{found:?}"
        );
    }
}
