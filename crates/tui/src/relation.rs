//! What belongs to what the filter names: calls that launched a kernel, ranges over it, copies beside it, and the other way
//! round.

use std::collections::{HashMap, HashSet};

use crate::launches;
use crate::widgets::table::Scene;
use roctop_model::query::Field;
use roctop_model::subject::{SliceSubject, thread_of};
use roctop_model::{LaneKey, Slice};
use roctop_trace::item::{Nanos, ThreadId};

/// A kind of thing on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Kernels,
    Calls,
    Ranges,
    Copies,
}

impl Kind {
    /// In the order in which the filter's names are looked for.
    const ALL: [Self; 4] = [Self::Kernels, Self::Calls, Self::Ranges, Self::Copies];

    pub(crate) const fn of(key: LaneKey) -> Option<Self> {
        match key {
            LaneKey::Stream(..) | LaneKey::Queue(..) => Some(Self::Kernels),
            LaneKey::Api(..) => Some(Self::Calls),
            LaneKey::Markers(..) | LaneKey::Ranges(_) => Some(Self::Ranges),
            LaneKey::Copies(_) => Some(Self::Copies),
            LaneKey::Agent(_) | LaneKey::Collectives(_) => None,
        }
    }

    /// Whether the rows of this kind count by a field for good: it is of whole rows, or of the places that they count by.
    pub(crate) fn is_counted_by(self, field: Field) -> bool {
        let is_of_rows = match self {
            Self::Copies => field == Field::Dev,
            // No call runs on a GPU; of which processes the calls of an operation are is not counted.
            Self::Calls => matches!(field, Field::Dev | Field::Stream | Field::Queue),
            Self::Kernels | Self::Ranges => field.is_of_place(),
        };
        is_of_rows || !field.is_of_each()
    }

    const fn is_gpu_work(self) -> bool {
        matches!(self, Self::Kernels | Self::Copies)
    }

    /// How things of this kind belong to others, in words.
    pub(crate) const fn relation(self, anchor: Self) -> &'static str {
        match (self, anchor) {
            (Self::Kernels, Self::Calls) => "launched by these calls",
            (Self::Kernels, Self::Copies) => "beside these copies",
            (Self::Calls, Self::Kernels) => "calls that launched them",
            (Self::Calls, Self::Copies) => "calls that made them",
            (Self::Ranges, _) => "ranges over them",
            (_, Self::Ranges) => "in these ranges",
            (Self::Copies, Self::Kernels) => "copies beside them",
            (Self::Copies, _) => "copies by these calls",
            (Self::Kernels | Self::Calls, _) => "",
        }
    }
}

/// Everything that the filter names, of one kind.
#[derive(Debug)]
pub(crate) struct Anchors {
    pub(crate) kind: Kind,
    /// Process and correlation id.
    correlations: HashSet<(u32, u64)>,
    /// By thread: when it was launched or called, in order.
    moments: HashMap<ThreadId, Vec<Nanos>>,
    /// By thread: ranges.
    ranges: HashMap<ThreadId, Stretches>,
    /// When the GPU worked at it.
    work: Stretches,
}

/// Stretches of time without overlap, in order.
#[derive(Debug, Default)]
struct Stretches(Vec<(Nanos, Nanos)>);

impl Stretches {
    fn of(mut spans: Vec<(Nanos, Nanos)>) -> Self {
        spans.sort_unstable();
        let mut merged: Vec<(Nanos, Nanos)> = Vec::new();
        for (begin, end) in spans {
            match merged.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((begin, end)),
            }
        }
        Self(merged)
    }

    fn touches(&self, begin: Nanos, end: Nanos) -> bool {
        let at = self.0.partition_point(|stretch| stretch.1 < begin);
        self.0.get(at).is_some_and(|stretch| stretch.0 <= end)
    }
}

/// The thread that asked for it, and when.
fn moment(key: LaneKey, slice: &Slice) -> Option<(ThreadId, Nanos)> {
    match thread_of(key) {
        Some(thread) => Some((thread, slice.span.begin)),
        None if slice.thread == u32::MAX || slice.submit == 0 => None,
        None => Some((ThreadId(slice.thread), slice.submit)),
    }
}

impl Anchors {
    /// What the filter names of another kind than `own`.
    pub(crate) fn of(scene: &Scene<'_>, own: Kind) -> Option<Self> {
        let (snap, filter) = (scene.snap, &scene.ui.filter);
        let others = Kind::ALL.into_iter().filter(|kind| *kind != own);
        others.into_iter().find_map(|kind| {
            let all = launches::slices(scene, kind);
            let named: Vec<_> = all
                .filter(|&(key, slice)| filter.accepts(&SliceSubject { snap, key, slice }))
                .collect();
            (!named.is_empty()).then(|| Self::new(kind, &named))
        })
    }

    fn new(kind: Kind, named: &[(LaneKey, &Slice)]) -> Self {
        let (mut moments, mut ranges) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        let (mut correlations, mut work) = (HashSet::new(), Vec::new());
        for &(key, slice) in named {
            let span = (slice.span.begin, slice.span.end);
            if kind == Kind::Ranges {
                let thread = thread_of(key).unwrap_or_default();
                ranges.entry(thread).or_default().push(span);
                continue;
            }
            if slice.correlation != 0 {
                correlations.insert((slice.process, slice.correlation));
            }
            if let Some((thread, at)) = moment(key, slice) {
                moments.entry(thread).or_default().push(at);
            }
            if kind.is_gpu_work() {
                work.push(span);
            }
        }
        for moments in moments.values_mut() {
            moments.sort_unstable();
        }
        let ranges = ranges.into_iter();
        Self {
            kind,
            correlations,
            moments,
            ranges: ranges.map(|(thread, spans)| (thread, Stretches::of(spans))).collect(),
            work: Stretches::of(work),
        }
    }

    /// Whether a slice of another kind belongs to any of it.
    pub(crate) fn belongs(&self, kind: Kind, key: LaneKey, slice: &Slice) -> bool {
        if kind == Kind::Ranges {
            let moments = thread_of(key).and_then(|thread| self.moments.get(&thread));
            return moments.is_some_and(|moments| {
                let at = moments.partition_point(|&at| at < slice.span.begin);
                moments.get(at).is_some_and(|&at| at <= slice.span.end)
            });
        }
        if self.kind == Kind::Ranges {
            let within = |(thread, at)| Some(self.ranges.get(&thread)?.touches(at, at));
            return moment(key, slice).and_then(within).unwrap_or(false);
        }
        if self.kind.is_gpu_work() && kind.is_gpu_work() {
            return self.work.touches(slice.span.begin, slice.span.end);
        }
        slice.correlation != 0 && self.correlations.contains(&(slice.process, slice.correlation))
    }
}
