//! The rows of the kernels' table: by name, or put together by stream, GPU, process or marker.

use crate::Grouping;
use crate::launches::{self, Passing};
use crate::relation::Kind;
use crate::tally::is_known_by_place;
use crate::widgets::table::Scene;
use roctop_model::analysis::usage::has_kernels;
use roctop_model::query::{Field, Launches};
use roctop_model::snapshot::KernelRow;
use roctop_model::stats::{Quantiles, Stat, Sum};
use roctop_model::subject::{KernelSubject, PlaceSubject, SliceSubject};
use roctop_model::table::{Cell, MarkerStat, Placement};
use roctop_model::{LaneKey, Slice, Snapshot};
use roctop_trace::item::{AgentId, KernelId, ProcessId, StreamId};
use std::collections::HashSet;

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A kernel: its place in the snapshot.
    Kernel(usize),
    /// A stream, when known.
    Stream(Option<StreamId>),
    /// A GPU.
    Agent(AgentId),
    /// A process.
    Process(ProcessId),
    /// A marker: its place in the snapshot; none for all that no range was around.
    Marker(Option<usize>),
}

/// Kernels that pass the filter, put together as wanted, and the numbers of the places that pass.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) what: What,
    pub(crate) key: u64,
    pub(crate) stat: Stat,
    /// The numbers are not counted one by one.
    pub(crate) is_estimate: bool,
    pub(crate) internal: bool,
}

/// Mean time from submit to begin.
pub(crate) fn delay(row: &KernelRow) -> Option<u64> {
    row.numbers.delay.checked_div(row.numbers.delayed)
}

/// Of a kernel, the launches in some places that pass the filter; none when none does.
fn passing(scene: &Scene<'_>, row: &KernelRow, also: impl Fn(Option<Placement>) -> bool) -> Option<Passing> {
    let (snap, stat) = (scene.snap, &row.numbers.stat);
    let place = |cell: &Cell| snap.values.placement(cell);
    let in_places = |takes: &dyn Fn(Option<Placement>) -> bool| Snapshot::within(row, |cell| takes(place(cell)));
    match scene.ui.filter.launches(&KernelSubject(snap, row)) {
        Launches::None => None,
        Launches::All => in_places(&also).map(Passing::exact),
        Launches::Some(rest) if is_known_by_place(row, &rest) => {
            let passes = |place: Option<Placement>| {
                also(place) && place.is_some_and(|place| rest.accepts(&PlaceSubject(&snap.names, place)))
            };
            in_places(&passes).map(Passing::exact)
        }
        Launches::Some(rest) => {
            let here = in_places(&also)?;
            let places = || row.numbers.cells.iter().filter_map(place);
            let known: HashSet<Placement> = places().collect();
            let takes = |place: Placement| {
                let others = || Some(place.among_others()).filter(|others| known.contains(others));
                also(Some(place).filter(|place| known.contains(place)).or_else(others))
            };
            let counted = launches::of(scene, Kind::Kernels).passing(row.id.0, &here, takes);
            let is_whole = here.calls == stat.calls;
            if is_whole
                && rest.asks_only(|field| field == Field::Dur)
                && counted.as_ref().is_none_or(|counted| counted.is_estimate)
            {
                return launches::by_duration(stat, &rest).or(counted);
            }
            counted
        }
    }
}

/// The same of all kernels. If the filter names none, those that belong to what it names.
fn all_passing(scene: &Scene<'_>, also: impl Fn(Option<Placement>) -> bool + Copy) -> Vec<(usize, Passing)> {
    let kernels = scene.snap.values.kernels.iter().enumerate();
    let own: Vec<_> = kernels
        .clone()
        .filter_map(|(at, row)| Some((at, passing(scene, row, also)?)))
        .collect();
    if !own.is_empty() || !scene.ui.filter.has_names() {
        return own;
    }
    let related = launches::of(scene, Kind::Kernels);
    if related.related.is_none() {
        return own;
    }
    let of = |row: &KernelRow| related.passing(row.id.0, &row.numbers.stat, |place| also(Some(place)));
    kernels.filter_map(|(at, row)| Some((at, of(row)?))).collect()
}

/// Of a kernel, the launches in one place that pass the filter, or belong to what it names.
pub(crate) fn in_place(scene: &Scene<'_>, row: &KernelRow, place: Option<Placement>) -> Option<Passing> {
    if launches::relation(scene, Kind::Kernels).is_none() {
        return passing(scene, row, |known| known == place);
    }
    let here = Snapshot::within(row, |cell| scene.snap.values.placement(cell) == place)?;
    launches::of(scene, Kind::Kernels).passing(row.id.0, &here, |known| Some(known) == place)
}

pub(crate) fn by_name(scene: &Scene<'_>) -> Vec<Row> {
    let snap = scene.snap;
    let kernels = &snap.values.kernels;
    let passing = if scene.ui.filter.is_empty() {
        let all = kernels.iter().map(|row| Passing::exact(row.numbers.stat.clone()));
        all.enumerate().collect()
    } else {
        all_passing(scene, |_| true)
    };
    let rows = passing.into_iter().map(|(at, passing)| Row {
        what: What::Kernel(at),
        key: u64::from(kernels[at].id.0),
        stat: passing.stat,
        is_estimate: passing.is_estimate,
        internal: snap.names.is_internal(kernels[at].id),
    });
    rows.collect()
}

/// To which row the kernels of a place belong.
fn of(scene: &Scene<'_>, place: Option<Placement>) -> What {
    match (scene.ui.prefs.grouping, place) {
        (Grouping::Agent, Some(place)) => What::Agent(place.agent),
        (Grouping::Process, Some(place)) => What::Process(place.process),
        (_, place) => What::Stream(place.and_then(|place| place.stream)),
    }
}

/// The kernels of a row that stands for many, the one with most time first.
pub(crate) fn members(scene: &Scene<'_>, row: &Row) -> Vec<(KernelId, Sum)> {
    if matches!(row.what, What::Kernel(_) | What::Marker(_)) {
        return Vec::new();
    }
    let kernels = &scene.snap.values.kernels;
    let passing = all_passing(scene, |place| of(scene, place) == row.what).into_iter();
    let mut found: Vec<(KernelId, Sum)> = passing
        .map(|(at, passing)| (kernels[at].id, passing.stat.sum()))
        .collect();
    found.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.total));
    found
}

/// Kernels of a lane whose durations are looked at for the percentiles of a group.
pub(crate) const LOOKED_AT: usize = 4096;

/// Percentiles of the last kernels of a group that pass the filter: no histogram is kept of groups.
fn quantiles(scene: &Scene<'_>, what: What) -> Quantiles {
    let (snap, filter) = (scene.snap, &scene.ui.filter);
    let is_of = |key: LaneKey, slice: &Slice| match (what, key) {
        (What::Stream(wanted), LaneKey::Stream(_, stream)) => wanted == Some(stream),
        (What::Stream(wanted), LaneKey::Queue(..)) => wanted.is_none(),
        (What::Agent(wanted), LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _)) => wanted == agent,
        (What::Process(wanted), LaneKey::Stream(..) | LaneKey::Queue(..)) => wanted.0 == slice.process,
        _ => false,
    };
    let mut nanos: Vec<u64> = Vec::new();
    for lane in snap.lanes.iter().filter(|lane| has_kernels(lane.key)) {
        let key = lane.key;
        let passing = lane.recent(LOOKED_AT).filter(|slice| {
            is_of(key, slice) && (filter.is_empty() || filter.accepts(&SliceSubject { snap, key, slice }))
        });
        nanos.extend(passing.map(|slice| slice.span.duration()));
    }
    Quantiles::of(&mut nanos)
}

/// All kernels that pass, added up by where they ran.
pub(crate) fn by_place(scene: &Scene<'_>) -> Vec<Row> {
    let snap = scene.snap;
    let mut kinds: Vec<What> = Vec::new();
    for place in &*snap.values.places {
        let what = of(scene, Some(*place));
        if !kinds.contains(&what) {
            kinds.push(what);
        }
    }
    let rows = kinds.into_iter().filter_map(|what| {
        let (mut sum, mut is_estimate) = (Sum::default(), false);
        for (_, passing) in all_passing(scene, |place| of(scene, place) == what) {
            sum.merge(&passing.stat.sum());
            is_estimate |= passing.is_estimate;
        }
        (sum.calls > 0).then(|| {
            let mut stat = Stat::from(sum);
            stat.quantiles = quantiles(scene, what);
            Row {
                what,
                key: 0,
                stat,
                is_estimate,
                internal: false,
            }
        })
    });
    rows.collect()
}

/// Kernels by the range in which they were launched; a range within another counts for both. Percentiles are
/// of the last ones: all are not kept.
pub(crate) fn by_marker(scene: &Scene<'_>) -> Vec<Row> {
    let snap = scene.snap;
    let markers = snap.values.markers.iter().enumerate();
    let passing = super::markers::passing(scene);
    let with_work = markers.filter(|(at, marker)| marker.work.kernels > 0 && passing[*at]);
    let of = |marker: &MarkerStat| {
        let (work, (last, quantiles)) = (marker.work, marker.kernels);
        let mut stat = Stat::from(Sum {
            calls: work.kernels,
            timed: work.kernels,
            total: work.nanos.saturating_sub(work.copying),
            min: last.min,
            max: last.max,
        });
        stat.quantiles = quantiles;
        stat
    };
    let rows = with_work.map(|(at, marker)| Row {
        what: What::Marker(Some(at)),
        key: u64::from(marker.id),
        stat: of(marker),
        is_estimate: marker.is_least,
        internal: false,
    });
    rows.collect()
}
