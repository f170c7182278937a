//! The rows of the kernels' table: by name, or put together by stream, GPU, process or marker.

use crate::Grouping;
use crate::filterable::{KernelSubject, MarkerSubject, SliceSubject};
use crate::widgets::table::Scene;
use roctop_model::analysis::usage::has_kernels;
use roctop_model::snapshot::KernelRow;
use roctop_model::stats::{Quantiles, Stat, Sum};
use roctop_model::table::{MarkerStat, Place};
use roctop_model::{LaneKey, Slice, Snapshot, kernel_counters};
use roctop_trace::item::{AgentId, KernelId, ProcessId, StreamId};

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
    pub(crate) internal: bool,
}

/// Mean time from submit to begin.
pub(crate) fn delay(row: &KernelRow) -> Option<u64> {
    row.numbers.delay.checked_div(row.numbers.delayed)
}

/// The durations of a kernel in the places that pass the filter; none when no place does.
fn passing(scene: &Scene<'_>, row: &KernelRow, also: impl Fn(Option<Place>) -> bool) -> Option<Stat> {
    let (snap, filter) = (scene.snap, &scene.ui.filter);
    let whole = snap.values.totals.kernel_time;
    Snapshot::within(row, |cell| {
        let place = snap.values.places.get(cell.place as usize).copied();
        also(place)
            && filter.accepts(&KernelSubject {
                names: &snap.names,
                id: row.id,
                place,
                here: &cell.sum,
                row: &row.numbers.stat,
                shape: &row.numbers.shape,
                delay: delay(row),
                whole,
                counted: &|name| kernel_counters::value(snap, row, name),
            })
    })
}

pub(crate) fn by_name(scene: &Scene<'_>) -> Vec<Row> {
    let snap = scene.snap;
    let rows = snap.values.kernels.iter().enumerate().filter_map(|(at, row)| {
        let stat = if scene.ui.filter.is_empty() {
            row.numbers.stat.clone()
        } else {
            passing(scene, row, |_| true)?
        };
        Some(Row {
            what: What::Kernel(at),
            key: u64::from(row.id.0),
            stat,
            internal: snap.names.is_internal(row.id),
        })
    });
    rows.collect()
}

/// To which row the kernels of a place belong.
fn of(scene: &Scene<'_>, place: Option<Place>) -> What {
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
    let kernels = scene.snap.values.kernels.iter();
    let mut found: Vec<(KernelId, Sum)> = kernels
        .filter_map(|kernel| {
            Some((
                kernel.id,
                passing(scene, kernel, |place| of(scene, place) == row.what)?.sum(),
            ))
        })
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
        let mut sum = Sum::default();
        for row in &*snap.values.kernels {
            let stat = passing(scene, row, |place| of(scene, place) == what);
            if let Some(stat) = stat {
                sum.merge(&stat.sum());
            }
        }
        (sum.calls > 0).then(|| {
            let mut stat = Stat::from(sum);
            stat.quantiles = quantiles(scene, what);
            Row {
                what,
                key: 0,
                stat,
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
    let with_work = markers
        .filter(|(_, marker)| marker.work.kernels > 0 && scene.ui.filter.accepts(&MarkerSubject(&snap.names, marker)));
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
        internal: false,
    });
    rows.collect()
}
