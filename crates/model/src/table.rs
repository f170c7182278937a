//! Statistics by kernel, copy route, operation and marker over the whole run, in bounded tables.

use std::sync::Arc;

use roctop_ring::record::flag;

use super::calls::Calls;
pub use super::calls::{ApiStat, ThreadStat};
use super::fx_hash::FastMap;
pub use super::kernels::{Cell, KernelStat};
use super::kernels::{Kernels, find as find_cell};
pub use super::launch_config::Shape;
use super::launch_config::Shapes;
pub use super::markers::MarkerStat;
use super::markers::Markers;
use super::names::Names;
pub use super::placement::Placement;
use super::placement::Places;
use super::sites::SiteTable;
use super::stats::{HISTOGRAMS, Stat, Sum, Trend};
use super::union::Union;
use roctop_trace::item::{AgentId, ApiCall, Copy, Dispatch, KernelId, OperationId, Span, ThreadId};

/// Pattern of a marker text: each run of digits becomes `#`.
pub fn pattern(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        match (c.is_ascii_digit(), pattern.ends_with('#')) {
            (true, true) => {}
            (true, false) => pattern.push('#'),
            (false, _) => pattern.push(c),
        }
    }
    pattern
}

/// The last integer in a text: the number of a step.
pub fn last_integer(text: &str) -> Option<u64> {
    let mut runs = text.split(|c: char| !c.is_ascii_digit());
    runs.rfind(|run| !run.is_empty())?.parse().ok()
}

/// Whether GPU work is untimed.
pub fn is_untimed(flags: u8, end: u64) -> bool {
    flags & flag::UNTIMED != 0 || end == 0
}

/// Copy route: direction, ends and engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// One of [`roctop_ring::record::direction`].
    pub direction: u16,
    /// Source agent.
    pub source: Option<AgentId>,
    /// Destination agent.
    pub destination: Option<AgentId>,
    /// One of [`roctop_ring::record::engine`].
    pub engine: u16,
}

impl Route {
    /// The route of a copy.
    pub const fn of(copy: &Copy) -> Self {
        Self {
            direction: copy.direction,
            source: copy.source,
            destination: copy.destination,
            engine: copy.engine,
        }
    }
}

/// A copy: when it ran, and how much it moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Begin and end.
    pub span: Span,
    /// Bytes.
    pub bytes: u64,
}

/// What the numbers of a row that a filter restricts rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Certainty {
    /// Each was counted.
    #[default]
    Exact,
    /// In proportion to those that are kept, or by a histogram.
    Estimate,
    /// Nothing says which of them pass: all are counted.
    AtMost,
}

impl Certainty {
    /// Its sign in front of a count.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::Estimate => "≈",
            Self::AtMost => "≤",
        }
    }
}

/// Statistics of a copy route.
#[derive(Clone, Debug, Default)]
pub struct CopyStat {
    /// The route.
    pub route: Route,
    /// Durations.
    pub stat: Stat,
    /// Sizes, bytes.
    pub sizes: Stat,
    /// (number, bytes, ns) by size class, see [`CLASSES`].
    pub classes: [(u64, u64, u64); CLASSES.len()],
    /// Highest bandwidth of one copy, bytes/s.
    pub peak: f64,
    /// Bytes by second.
    pub trend: Arc<Trend>,
    /// Time in which at least one copy of this route ran.
    pub union: Union,
    /// Whether the bytes are known; those of copy kernels come from the launching call.
    pub has_bytes: bool,
    /// Of copy kernels, the number by place; no other copies have any.
    pub cells: Arc<Vec<Cell>>,
    /// Not exact if a filter restricts the numbers.
    pub certainty: Certainty,
}

/// Copies of the processes that share a GPU, for one direction and engine.
#[derive(Clone, Debug, Default)]
pub struct CopySum {
    /// Their sum; its route has the shared GPU.
    pub sum: CopyStat,
    /// Indexes of their routes.
    pub parts: Vec<u32>,
}

/// Upper limits of the size classes, bytes.
pub const CLASSES: [u64; 5] = [4 << 10, 64 << 10, 1 << 20, 16 << 20, u64::MAX];

impl CopyStat {
    /// Statistics of some copies of a route.
    pub fn of(route: Route, mut copies: Vec<Copied>) -> Self {
        let mut row = Self {
            route,
            stat: Stat::new(true),
            sizes: Stat::new(true),
            ..Self::default()
        };
        copies.sort_unstable_by_key(|copy| copy.span.end);
        for copy in copies {
            row.add_timed(copy);
        }
        row.stat.refresh();
        row.sizes.refresh();
        row
    }

    /// Sums of copies that are not known one by one.
    pub fn of_sums(route: Route, times: Sum, bytes: Option<u64>) -> Self {
        let sizes = Sum {
            calls: times.calls,
            timed: times.calls,
            total: bytes.unwrap_or(0),
            ..Sum::default()
        };
        Self {
            route,
            stat: times.into(),
            sizes: bytes.map_or_else(Stat::default, |_| sizes.into()),
            has_bytes: bytes.is_some(),
            ..Self::default()
        }
    }

    /// The statistics of `whole` copies, in proportion to those of a `part`. The trend stays: it is of the last minute.
    #[must_use]
    pub fn scaled(mut self, part: u64, whole: u64) -> Self {
        let scale = |value: u64| (value as f64 * whole as f64 / part.max(1) as f64).round() as u64;
        self.stat = self.stat.scaled(part, whole);
        self.sizes = self.sizes.scaled(part, whole);
        self.union.total = scale(self.union.total);
        for (calls, bytes, nanos) in &mut self.classes {
            (*calls, *bytes, *nanos) = (scale(*calls), scale(*bytes), scale(*nanos));
        }
        self.certainty = Certainty::Estimate;
        self
    }

    fn add(&mut self, copy: &Copy) {
        if is_untimed(copy.flags, copy.span.end) {
            self.add_bytes(copy.bytes, 0);
            return self.stat.add_untimed();
        }
        self.add_timed(Copied {
            span: copy.span,
            bytes: copy.bytes,
        });
    }

    fn add_timed(&mut self, Copied { span, bytes }: Copied) {
        let nanos = span.duration();
        self.add_bytes(bytes, nanos);
        self.stat.add(nanos);
        self.union.add(span, |_| {});
        Arc::make_mut(&mut self.trend).add(span.end, bytes);
    }

    /// Adds bytes and their duration in ns, 0 if unknown.
    fn add_bytes(&mut self, bytes: u64, nanos: u64) {
        self.has_bytes = true;
        self.sizes.add(bytes);
        let class = CLASSES.iter().position(|&end| bytes <= end).unwrap_or(0);
        let (calls, all, time) = &mut self.classes[class];
        *calls += 1;
        *all = all.saturating_add(bytes);
        *time = time.saturating_add(nanos);
        if nanos > 0 {
            self.peak = self.peak.max(bytes as f64 * 1e9 / nanos as f64);
        }
    }
}

/// All tables.
#[derive(Debug, Default)]
pub struct Tables {
    /// Kernels.
    pub kernels: Kernels,
    /// Copy routes.
    pub copies: Vec<CopyStat>,
    routes: FastMap<Route, u32>,
    /// The latest routes with their numbers, by direction.
    near_routes: [Option<(Route, u32)>; NEAR_ROUTES],
    /// Sums of routes of several processes to one GPU.
    pub copy_sums: Vec<CopySum>,
    /// Index of the sum of a route.
    sum_of: FastMap<u32, u32>,
    /// API operations and threads.
    pub calls: Calls,
    /// Markers by text pattern.
    pub markers: Markers,
    /// Distinct places.
    pub places: Places,
    /// Reused buffer for the places of a batch of dispatches.
    room: Vec<u32>,
    /// Distinct launch configurations.
    pub shapes: Shapes,
    /// Work by call site.
    pub(super) sites: SiteTable,
}

/// Number of routes that are found without a hash table.
const NEAR_ROUTES: usize = 8;
pub(super) const MAX_IDS: usize = 1 << 22;

/// Entry of a dense id; missing ones are created. `None` beyond [`MAX_IDS`].
pub(super) fn dense<T>(list: &mut Vec<T>, id: u32, make: impl Fn(usize) -> T) -> Option<&mut T> {
    let id = id as usize;
    if id >= MAX_IDS {
        return None;
    }
    while list.len() <= id {
        list.push(make(list.len()));
    }
    list.get_mut(id)
}

impl Tables {
    /// Counts dispatches. The index of each launch configuration in [`Tables::shapes`] is appended to `shapes`.
    pub fn dispatches(&mut self, dispatches: &[Dispatch], shapes: &mut Vec<u32>) {
        let mut places = std::mem::take(&mut self.room);
        places.clear();
        places.extend(dispatches.iter().map(|dispatch| self.places.id(dispatch)));
        self.kernels.add(dispatches, &places, &mut self.shapes, shapes);
        self.sites.dispatches(dispatches);
        self.room = places;
    }

    /// Takes the numbers by kernel, operation and thread from where they were counted; places get the numbers that they have
    /// there.
    pub(super) fn join(&mut self, kernels: Kernels, mut places: Places, shapes: Shapes, calls: Calls) {
        for copies in &mut self.copies {
            for cell in Arc::make_mut(&mut copies.cells) {
                if let Some(place) = Placement::of(self.places.all(), cell.place) {
                    cell.place = places.renumbered(place);
                }
            }
        }
        (self.kernels, self.places, self.shapes, self.calls) = (kernels, places, shapes, calls);
    }

    /// The index of each dispatch's geometry alone goes to `shapes`; nothing is counted.
    pub(super) fn shapes_of(&mut self, dispatches: &[Dispatch], shapes: &mut Vec<u32>) {
        shapes.clear();
        shapes.extend(dispatches.iter().map(|dispatch| self.shapes.id(Shape::of(dispatch))));
    }

    /// Tables that give geometries and routes the numbers that they have here, and have counted nothing.
    pub(super) fn numbered_alike(&self) -> Self {
        let route = |copy: &CopyStat| CopyStat {
            route: copy.route,
            ..CopyStat::default()
        };
        Self {
            copies: self.copies.iter().map(route).collect(),
            routes: self.routes.clone(),
            shapes: self.shapes.clone(),
            ..Self::default()
        }
    }

    /// Index of a route in [`Tables::copies`].
    pub fn route(&mut self, route: Route) -> u32 {
        let near = &mut self.near_routes[usize::from(route.direction) % NEAR_ROUTES];
        if let Some((known, id)) = *near
            && known == route
        {
            return id;
        }
        if let Some(&id) = self.routes.get(&route) {
            *near = Some((route, id));
            return id;
        }
        let full = self.copies.len() < HISTOGRAMS;
        self.copies.push(CopyStat {
            route,
            stat: Stat::new(full),
            sizes: Stat::new(full),
            ..CopyStat::default()
        });
        let id = self.copies.len() as u32 - 1;
        self.routes.insert(route, id);
        id
    }

    /// Joins a new route with a known one: routes of several processes to a shared GPU also count in a sum.
    pub(super) fn join_routes(&mut self, known: u32, new: u32, route: Route) {
        let sum = self.sum_of.get(&known).copied().unwrap_or_else(|| {
            self.copy_sums.push(CopySum {
                sum: CopyStat {
                    route,
                    ..self.copies[known as usize].clone()
                },
                parts: vec![known],
            });
            self.copy_sums.len() as u32 - 1
        });
        self.copy_sums[sum as usize].parts.push(new);
        self.sum_of.extend([(known, sum), (new, sum)]);
    }

    /// Updates a route, and its sum.
    fn in_route(&mut self, row: u32, mut count: impl FnMut(&mut CopyStat)) {
        if let Some(copies) = self.copies.get_mut(row as usize) {
            count(copies);
        }
        if !self.copy_sums.is_empty()
            && let Some(&sum) = self.sum_of.get(&row)
        {
            count(&mut self.copy_sums[sum as usize].sum);
        }
    }

    /// Adds a copy to a route.
    pub fn copy(&mut self, row: u32, copy: &Copy) {
        self.in_route(row, |copies| copies.add(copy));
    }

    /// Counts a copy kernel of the run-time as a copy. Bytes may follow.
    pub fn blit(&mut self, row: u32, dispatch: &Dispatch) {
        let place = self.places.id(dispatch);
        self.in_route(row, |copies| {
            let nanos = (!is_untimed(dispatch.flags, dispatch.span.end)).then(|| dispatch.span.duration());
            let cells = Arc::make_mut(&mut copies.cells);
            let at = usize::from(find_cell(cells, place));
            cells[at].sum.add(nanos);
            if let Some(nanos) = nanos {
                copies.stat.add(nanos);
                copies.union.add(dispatch.span, |_| {});
            } else {
                copies.stat.add_untimed();
            }
        });
    }

    /// Adds the bytes that copy kernels moved for one call; the last ended at `end`. `took` is 0 unless one kernel
    /// moved all.
    pub fn blit_bytes(&mut self, row: u32, bytes: u64, took: u64, end: u64) {
        self.in_route(row, |copies| {
            copies.add_bytes(bytes, took);
            if end > 0 {
                Arc::make_mut(&mut copies.trend).add(end, bytes);
            }
        });
    }

    /// Counts calls of a thread.
    pub fn calls(&mut self, thread: ThreadId, calls: &[ApiCall], names: &Names) {
        self.sites.calls(calls);
        self.calls.add(thread, calls, names);
    }

    /// Whether percentiles lag.
    pub fn is_behind(&self) -> bool {
        self.kernels.is_behind()
    }

    /// Updates percentiles and cells. Percentiles of many kernels may lag a little unless `is_exact`.
    pub fn refresh(&mut self, is_exact: bool) {
        self.kernels.refresh(&self.shapes, is_exact);
        self.calls.refresh();
        self.markers.refresh();
        for copies in self
            .copies
            .iter_mut()
            .chain(self.copy_sums.iter_mut().map(|sum| &mut sum.sum))
        {
            copies.stat.refresh();
            copies.sizes.refresh();
        }
    }

    /// Statistics of an operation, if it was called.
    pub fn operation(&self, id: OperationId) -> Option<&ApiStat> {
        self.calls.operations.get(id.0 as usize)
    }

    /// Statistics of a kernel, if it ran.
    pub fn kernel(&self, id: KernelId) -> Option<&KernelStat> {
        self.kernels.rows().get(id.0 as usize)
    }
}
