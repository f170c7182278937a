//! Launches, copies and calls that pass the filter, counted one by one from what the lanes still hold: what is known of whole
//! rows alone cannot say how many of a kernel's launches on one stream took more than 1 ms.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::relation::{Anchors, Kind};
use crate::tally::asks_more;
use crate::widgets::row_cache::Basis;
use crate::widgets::table::Scene;
use roctop_model::query::{Field, Filter, Subject, Value};
use roctop_model::sites::{PathId, SiteRow, SiteWork};
use roctop_model::snapshot::ApiRow;
use roctop_model::stats::Stat;
use roctop_model::subject::{OfSite, SliceSubject};
use roctop_model::table::{Certainty, Copied, CopyStat, Placement};
use roctop_model::tally::{Counting, State};
use roctop_model::{LaneKey, Slice, Snapshot};
use roctop_trace::item::{KernelId, OperationId, ProcessId, QueueId};
use roctop_trace::site::SiteNumber;
use roctop_trace::units;

/// Slices of each kind that are counted, of all lanes together.
pub(crate) const MAX_COUNTED: usize = 1 << 17;

/// What a slice counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    /// Kernel or operation.
    what: u32,
    /// Where a kernel ran.
    place: Option<Placement>,
}

/// Slices of one key.
#[derive(Clone, Debug, Default)]
struct Counted {
    kept: u64,
    /// Durations of those that pass, ns.
    passing: Vec<u64>,
}

/// Time of what passes by its work and its call site.
#[derive(Debug, Default)]
struct Sites {
    times: HashMap<SiteWork, HashMap<(ProcessId, SiteNumber), u64>>,
    /// Of all that pass.
    is_whole: bool,
}

impl Sites {
    fn add(&mut self, work: SiteWork, site: (ProcessId, SiteNumber), nanos: u64) {
        let time = self.times.entry(work).or_default().entry(site).or_default();
        *time = time.saturating_add(nanos);
    }

    /// From what is known of each site: the filter compares nothing that differs within one.
    fn of_known(scene: &Scene<'_>) -> Self {
        let (snap, filter) = (scene.snap, &scene.ui.filter);
        let mut sites = Self {
            is_whole: true,
            ..Self::default()
        };
        let passes = |row: &&SiteRow| filter.accepts(&OfSite { snap, site: Some(row) });
        for row in snap.values.sites.iter().filter(passes) {
            sites.add(row.work, (row.process, row.site), row.sum.total);
        }
        sites
    }
}

/// Copies of a route.
#[derive(Clone, Debug, Default)]
struct Copies {
    kept: u64,
    passing: Vec<Copied>,
}

/// What was counted of one kind, for one filter.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    by_key: HashMap<Key, Counted>,
    /// By route.
    copies: HashMap<u32, Copies>,
    sites: Sites,
    /// All that pass, if they were counted in the recording.
    whole: Option<(Kind, Arc<Counting>)>,
    /// The filter's names are those of other things, to which these belong.
    pub(crate) related: Option<Anchors>,
}

/// Numbers of those that pass.
#[derive(Clone, Debug)]
pub(crate) struct Passing {
    pub(crate) stat: Stat,
    /// They are not counted one by one.
    pub(crate) is_estimate: bool,
}

impl Passing {
    pub(crate) const fn exact(stat: Stat) -> Self {
        Self {
            stat,
            is_estimate: false,
        }
    }
}

impl Launches {
    /// Of the slices of `what` in places that a test takes, those that pass; `of` is what is known of all of them. None if
    /// none passes.
    pub(crate) fn passing(&self, what: u32, of: &Stat, takes: impl Fn(Placement) -> bool) -> Option<Passing> {
        if let Some((kind, counting)) = &self.whole
            && let State::Done(tally) = &counting.state
        {
            return match kind {
                Kind::Kernels => tally.of_kernel(what, takes),
                _ => tally.of_operation(what),
            }
            .map(Passing::exact);
        }
        let own = self.by_key.iter().filter(|(key, _)| key.what == what);
        let own = own.filter(|(key, _)| key.place.is_none_or(&takes));
        let (mut kept, mut nanos) = (0, Vec::new());
        for (_, counted) in own {
            kept += counted.kept;
            nanos.extend(&counted.passing);
        }
        if nanos.is_empty() {
            return None;
        }
        let stat = Stat::of(&nanos);
        let is_whole = kept >= of.calls;
        Some(Passing {
            stat: if is_whole { stat } else { stat.scaled(kept, of.timed) },
            is_estimate: !is_whole,
        })
    }

    /// Call paths of some work with their times; whether those are of all that pass. `calls` is the number of all.
    pub(crate) fn paths(&self, snap: &Snapshot, work: &[SiteWork], calls: u64) -> (HashMap<Option<PathId>, u64>, bool) {
        let mut paths: HashMap<Option<PathId>, u64> = HashMap::new();
        let times = work.iter().filter_map(|work| self.sites.times.get(work)).flatten();
        for ((process, site), nanos) in times {
            let time = paths.entry(snap.sites.path_of(*process, *site)).or_default();
            *time = time.saturating_add(*nanos);
        }
        let is_whole = self.sites.is_whole || self.kept(work) >= calls;
        (paths, is_whole)
    }

    /// Number of slices that are kept of some work.
    fn kept(&self, work: &[SiteWork]) -> u64 {
        let of = |work: &SiteWork| match *work {
            SiteWork::Copy(route) => self.copies.get(&route).map_or(0, |found| found.kept),
            SiteWork::Kernel(KernelId(what)) | SiteWork::Call(OperationId(what)) => {
                let own = self.by_key.iter().filter(|(key, _)| key.what == what);
                own.map(|(_, counted)| counted.kept).sum()
            }
        };
        work.iter().map(of).sum()
    }

    /// Whether they were counted in the recording.
    pub(crate) const fn is_whole(&self) -> bool {
        self.whole.is_some()
    }

    /// Of the copies of some routes, those that pass; `of` is what is known of all of them. None if none passes.
    pub(crate) fn copies(&self, routes: &[u32], of: &CopyStat) -> Option<CopyStat> {
        if let Some((_, counting)) = &self.whole
            && let State::Done(tally) = &counting.state
        {
            return tally.of_routes(routes, of.route);
        }
        let (mut kept, mut passing) = (0, Vec::new());
        for found in routes.iter().filter_map(|route| self.copies.get(route)) {
            kept += found.kept;
            passing.extend(&found.passing);
        }
        if passing.is_empty() {
            return None;
        }
        let found = CopyStat::of(of.route, passing);
        Some(if kept >= of.stat.calls {
            found
        } else {
            found.scaled(kept, of.stat.timed)
        })
    }

    /// Kernels, operations, texts or routes of which any passes.
    pub(crate) fn ids(&self) -> HashSet<u32> {
        let passing = self.by_key.iter().filter(|(_, counted)| !counted.passing.is_empty());
        let copied = self.copies.iter().filter(|(_, copies)| !copies.passing.is_empty());
        let passing = passing.map(|(key, _)| key.what);
        passing.chain(copied.map(|(route, _)| *route)).collect()
    }
}

/// What belongs to the things that the filter names, if they are of another kind.
pub(crate) fn related(scene: &Scene<'_>, kind: Kind) -> Option<Arc<Launches>> {
    if !scene.ui.filter.has_names() {
        return None;
    }
    Some(of(scene, kind)).filter(|found| found.related.is_some())
}

/// Whether a slice is among what a list of its kind shows: it passes the filter, or belongs to what the filter names.
pub(crate) fn is_listed(scene: &Scene<'_>, related: Option<&Launches>, (key, slice): (LaneKey, &Slice)) -> bool {
    let snap = scene.snap;
    match (related.and_then(|found| found.related.as_ref()), Kind::of(key)) {
        (Some(anchors), Some(kind)) => anchors.belongs(kind, key, slice),
        _ => scene.ui.filter.accepts(&SliceSubject { snap, key, slice }),
    }
}

/// The same, if it was counted for the rows on screen.
pub(crate) fn known(scene: &Scene<'_>, kind: Kind) -> Option<Arc<Launches>> {
    let basis = basis(scene);
    let cache = scene.ui.launches.borrow();
    let known = cache.iter().find(|(known, at, _)| *known == kind && *at == basis);
    known
        .map(|(_, _, found)| found.clone())
        .filter(|found| found.related.is_some())
}

/// How what is on screen belongs to what the filter names, in words; none if the filter names it.
pub(crate) fn relation(scene: &Scene<'_>, kind: Kind) -> Option<&'static str> {
    let anchor = known(scene, kind)?.related.as_ref()?.kind;
    Some(kind.relation(anchor))
}

/// How many calls, with a sign for an estimate.
pub(crate) fn count_text(stat: &Stat, is_estimate: bool) -> String {
    let certainty = if is_estimate {
        Certainty::Estimate
    } else {
        Certainty::Exact
    };
    format!("{}{}", certainty.sign(), units::count(stat.calls))
}

/// Whether numbers may be estimates: the filter asks for what is not counted for good.
pub(crate) fn may_estimate(scene: &Scene<'_>, kind: Kind) -> bool {
    asks_more(scene.snap, &scene.ui.filter, kind) || relation(scene, kind).is_some()
}

/// Those of a row whose durations pass a filter that asks for durations alone, by the row's histogram.
pub(crate) fn by_duration(stat: &Stat, filter: &Filter) -> Option<Passing> {
    let (stat, is_exact) = stat.within(|nanos| filter.accepts(&Known(Field::Dur, nanos)))?;
    Some(Passing {
        stat,
        is_estimate: !is_exact,
    })
}

/// Those of a function that pass a filter that asks for errors alone: their number is known. Their times are those of the
/// calls in memory.
pub(crate) fn by_failure(row: &ApiRow, filter: &Filter, counted: Option<Passing>) -> Option<Passing> {
    let number = |is_failed: u64, calls: u64| {
        if filter.accepts(&Known(Field::Err, is_failed)) {
            calls
        } else {
            0
        }
    };
    let calls = number(1, row.errors) + number(0, row.stat.calls.saturating_sub(row.errors));
    let mut stat = counted.map_or_else(Stat::default, |counted| counted.stat);
    stat.calls = calls;
    (calls > 0).then_some(Passing {
        stat,
        is_estimate: true,
    })
}

/// One field alone.
struct Known(Field, u64);

impl Subject for Known {
    fn any_name(&self, _: &dyn Fn(&str) -> bool) -> bool {
        false
    }
    fn is_named(&self) -> bool {
        false
    }
    fn value(&self, field: Field) -> Value<'_> {
        if field == self.0 {
            Value::whole(self.1)
        } else {
            Value::None
        }
    }
}

/// What was counted for the filter in the whole recording, if all was.
pub(crate) fn whole<'a>(scene: &Scene<'a>) -> Option<&'a Arc<Counting>> {
    let counting = scene.snap.counting.as_ref();
    let is_done = |counting: &&Arc<Counting>| counting.done(&scene.ui.filter.source).is_some();
    // Numbers since a moment are not those of the whole.
    counting.filter(|_| scene.snap.values.counted_from == 0).filter(is_done)
}

/// How far the counting for the filter is, in words; none if nothing is counted for it.
pub(crate) fn progress(scene: &Scene<'_>) -> Option<String> {
    let counting = scene.snap.counting.as_ref()?;
    match &counting.state {
        _ if counting.filter != scene.ui.filter.source => None,
        State::Running(percent) => Some(format!("counting {percent} %")),
        State::Failed(reason) => Some(format!("not counted: {reason}")),
        State::Done(_) => None,
    }
}

/// Where the kernel of a slice ran.
fn place(key: LaneKey, slice: &Slice) -> Option<Placement> {
    let (agent, stream) = match key {
        LaneKey::Stream(agent, stream) => (agent, Some(stream)),
        LaneKey::Queue(agent, _) => (agent, None),
        _ => return None,
    };
    Some(Placement {
        process: ProcessId(slice.process),
        agent,
        queue: QueueId(slice.queue),
        stream,
    })
}

/// Slices of a kind, the youngest of each lane first. If there are too many, each lane has an equal part of those that are
/// looked at.
pub(crate) fn slices<'a>(scene: &Scene<'a>, kind: Kind) -> impl Iterator<Item = (LaneKey, &'a Slice)> {
    let snap = scene.snap;
    let lanes = move || snap.lanes.iter().filter(move |lane| Kind::of(lane.key) == Some(kind));
    let kept: usize = lanes().map(|lane| lane.kept()).sum();
    let part = if kept <= MAX_COUNTED {
        kept
    } else {
        MAX_COUNTED / lanes().count().max(1)
    };
    let from = snap.values.counted_from;
    lanes().flat_map(move |lane| {
        let recent = lane.recent(part).filter(move |slice| slice.span.end >= from);
        recent.map(move |slice| (lane.key, slice))
    })
}

/// What the numbers are made of: kernels, copies, calls and ranges.
fn basis(scene: &Scene<'_>) -> Basis {
    let totals = &scene.snap.values.totals;
    let counts = format!("{} {} {}", totals.copies, totals.calls, totals.markers);
    Basis::of_kernels(scene, crate::Sort::default()).also(&counts)
}

/// Which launches, copies, calls or ranges pass; counted once for the numbers that are on screen.
pub(crate) fn of(scene: &Scene<'_>, kind: Kind) -> Arc<Launches> {
    let basis = basis(scene);
    let mut cache = scene.ui.launches.borrow_mut();
    let known = cache.iter().find(|(known, at, _)| *known == kind && *at == basis);
    if let Some((_, _, found)) = known {
        return found.clone();
    }
    let counted = Arc::new(count(scene, kind));
    cache.retain(|(known, at, _)| *known != kind && *at == basis);
    cache.push((kind, basis, counted.clone()));
    counted
}

fn count(scene: &Scene<'_>, kind: Kind) -> Launches {
    let (snap, filter) = (scene.snap, &scene.ui.filter);
    let compared = |key, slice: &Slice| filter.accepts(&SliceSubject { snap, key, slice });
    let mut found = collect(scene, kind, compared);
    if found.ids().is_empty()
        && filter.has_names()
        && let Some(anchors) = Anchors::of(scene, kind)
    {
        found = collect(scene, kind, |key, slice| anchors.belongs(kind, key, slice));
        found.related = Some(anchors);
    } else if kind != Kind::Ranges && asks_more(snap, filter, kind) {
        found.whole = whole(scene).map(|counting| (kind, counting.clone()));
    }
    let differs = |field: Field| field.is_of_each() && !matches!(field, Field::Site | Field::File);
    if found.related.is_none() && filter.asks_only(|field| !differs(field)) {
        found.sites = Sites::of_known(scene);
    } else if let Some((_, counting)) = &found.whole
        && let State::Done(tally) = &counting.state
    {
        found.sites = Sites {
            is_whole: true,
            ..Sites::default()
        };
        for (work, process, site, nanos) in tally.sites() {
            found.sites.add(work, (process, site), nanos);
        }
    }
    found
}

/// What a slice of a kind is in the sums by call site.
const fn work(kind: Kind, what: u32) -> Option<SiteWork> {
    match kind {
        Kind::Kernels => Some(SiteWork::Kernel(KernelId(what))),
        Kind::Calls => Some(SiteWork::Call(OperationId(what))),
        Kind::Copies => Some(SiteWork::Copy(what)),
        Kind::Ranges => None,
    }
}

fn collect(scene: &Scene<'_>, kind: Kind, mut passes: impl FnMut(LaneKey, &Slice) -> bool) -> Launches {
    let mut found = Launches::default();
    for (key, slice) in slices(scene, kind) {
        let is_passing = passes(key, slice);
        if is_passing
            && slice.site.is_known()
            && let Some(work) = work(kind, slice.what)
        {
            let site = (ProcessId(slice.process), slice.site);
            found.sites.add(work, site, slice.span.duration());
        }
        if kind == Kind::Copies {
            let copies = found.copies.entry(slice.what).or_default();
            copies.kept += 1;
            if is_passing {
                copies.passing.push(Copied {
                    span: slice.span,
                    bytes: slice.value,
                });
            }
            continue;
        }
        let counted = found.by_key.entry(Key {
            what: slice.what,
            place: place(key, slice),
        });
        let counted = counted.or_default();
        counted.kept += 1;
        if is_passing {
            counted.passing.push(slice.span.duration());
        }
    }
    found
}
