//! The launches of the kernel that is selected in the list of kernels, one by one: their histogram, a stretch of which can be
//! selected, and below it those that took as long.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::kernels;
use crate::hit_map::Hit;
use crate::jump::Target;
use crate::launches;
use crate::relation::Kind;
use crate::stretch::Stretch;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::column::{Column, ColumnId, Shown, Worth};
use crate::widgets::history::{self, Amount, Axis};
use crate::widgets::row_cache::Basis;
use crate::widgets::table::{self, Scene, Table};
use crate::{NameForm, Pane, Size, Sort};
use roctop_model::analysis::usage::has_kernels;
use roctop_model::stats::Quantiles;
use roctop_model::{LaneKey, Slice, Snapshot};
use roctop_trace::item::{KernelId, QueueId, ThreadId};
use roctop_trace::units;

/// Launches that are listed at most: the youngest.
pub(crate) const MAX_LISTED: usize = 20_000;
/// Slices that are looked through for them, of all lanes together.
const LOOKED_AT: usize = 1 << 18;

/// A launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    pub(crate) key: LaneKey,
    pub(crate) slice: Slice,
}

impl Launch {
    pub(crate) fn nanos(&self) -> u64 {
        self.slice.span.duration()
    }

    /// From the launch to the begin on the GPU.
    fn delay(&self) -> Option<u64> {
        (self.slice.submit > 0).then(|| self.slice.span.begin.saturating_sub(self.slice.submit))
    }
}

/// Identity of a launch in its list.
pub(crate) fn identity(slice: &Slice) -> u64 {
    slice.value ^ u64::from(slice.process) << 48
}

/// The launches of a kernel that are kept and pass the filter, youngest first.
#[derive(Debug, Default)]
pub(crate) struct Instances {
    pub(crate) kernel: Option<KernelId>,
    pub(crate) launches: Vec<Launch>,
    /// Nothing of the kernel is missing.
    is_complete: bool,
    quantiles: Quantiles,
}

/// What was found, and of what.
pub(crate) type Found = (Basis, Option<KernelId>, Arc<Instances>);

/// Durations along an axis of even steps or of even ratios.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DurationScale {
    from: f64,
    to: f64,
    is_logarithmic: bool,
}

impl DurationScale {
    /// Where a duration stands, from 0 to 1.
    pub(crate) fn share(self, nanos: u64) -> f64 {
        (self.place(nanos) - self.from) / (self.to - self.from)
    }

    /// The duration at a share.
    pub(crate) fn at(self, share: f64) -> u64 {
        let place = self.from + (self.to - self.from) * share;
        if self.is_logarithmic {
            place.exp().round() as u64
        } else {
            place.round() as u64
        }
    }

    fn place(self, nanos: u64) -> f64 {
        let nanos = nanos.max(1) as f64;
        if self.is_logarithmic { nanos.ln() } else { nanos }
    }
}

impl Instances {
    fn find(scene: &Scene<'_>, kernel: KernelId) -> Self {
        let snap = scene.snap;
        let lanes = || snap.lanes.iter().filter(|lane| has_kernels(lane.key));
        let part = LOOKED_AT / lanes().count().max(1);
        let related = launches::known(scene, Kind::Kernels);
        let mut found: Vec<Launch> = Vec::new();
        for lane in lanes() {
            let of_kernel = lane.recent(part).filter(|slice| slice.what == kernel.0);
            let own = of_kernel.filter(|slice| launches::is_listed(scene, related.as_deref(), (lane.key, slice)));
            found.extend(own.take(MAX_LISTED).map(|slice| Launch {
                key: lane.key,
                slice: *slice,
            }));
        }
        found.sort_by_key(|launch| std::cmp::Reverse((launch.slice.span.end, launch.slice.value)));
        found.truncate(MAX_LISTED);
        let row = kernels::row_of(snap, kernel);
        Self {
            kernel: Some(kernel),
            is_complete: row.is_some_and(|row| row.numbers.stat.timed == found.len() as u64),
            quantiles: Quantiles::of(&mut found.iter().map(Launch::nanos).collect::<Vec<_>>()),
            launches: found,
        }
    }

    /// From the shortest to the longest.
    pub(crate) fn scale(&self, is_logarithmic: bool) -> DurationScale {
        let nanos = || self.launches.iter().map(Launch::nanos);
        let (least, most) = (nanos().min().unwrap_or(1).max(1), nanos().max().unwrap_or(1).max(1));
        // Durations that are all alike stand in the middle.
        let (least, most) = if least == most {
            (least * 9 / 10, most + most / 10 + 1)
        } else {
            (least, most)
        };
        let scale = DurationScale {
            from: 0.0,
            to: 0.0,
            is_logarithmic,
        };
        DurationScale {
            from: scale.place(least),
            to: scale.place(most),
            ..scale
        }
    }

    /// The launches that a stretch has; all if none is selected.
    pub(crate) fn within(&self, stretch: Option<Stretch>) -> impl Iterator<Item = &Launch> {
        let stretch = stretch.filter(|stretch| Some(stretch.kernel) == self.kernel);
        let is_in = move |launch: &&Launch| stretch.is_none_or(|stretch| stretch.has_nanos(launch.nanos()));
        self.launches.iter().filter(is_in)
    }
}

/// The launches of the selected kernel; looked for once for the numbers that are on screen.
pub(crate) fn of_selected(scene: &Scene<'_>) -> Arc<Instances> {
    of(scene, kernels::selected(scene))
}

/// The launches of a kernel.
pub(crate) fn of(scene: &Scene<'_>, kernel: Option<KernelId>) -> Arc<Instances> {
    let basis = Basis::of_kernels(scene, Sort::default());
    if let Some((known, of, found)) = &*scene.ui.instances.borrow()
        && *known == basis
        && *of == kernel
    {
        return found.clone();
    }
    let found = Arc::new(kernel.map_or_else(Instances::default, |kernel| Instances::find(scene, kernel)));
    scene.ui.instances.replace(Some((basis, kernel, found.clone())));
    found
}

pub(crate) struct LaunchTable;

fn thread(row: &Launch, snap: &Snapshot) -> Option<String> {
    (row.slice.thread != u32::MAX).then(|| snap.names.thread_label(ThreadId(row.slice.thread)))
}

fn stream(row: &Launch, snap: &Snapshot) -> Option<String> {
    match row.key {
        LaneKey::Stream(_, stream) => Some(snap.names.stream_label(stream)),
        _ => None,
    }
}

fn gpu(row: &Launch, snap: &Snapshot) -> Option<String> {
    match row.key {
        LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _) => Some(snap.names.agent_label(agent)),
        _ => None,
    }
}

fn geometry(row: &Launch, snap: &Snapshot) -> Option<String> {
    let shape = snap.values.shapes.get(row.slice.shape as usize)?;
    let [x, y, z] = shape.grid;
    Some(format!("{x}×{y}×{z}"))
}

impl Table for LaunchTable {
    type Row = Launch;
    const PANE: Pane = Pane::Launches;
    const TITLE: &'static str = "Launches";
    const WHAT: &'static str = "launch";
    const SORT: ColumnId = ColumnId("Begin_ns");
    const COLUMNS: &'static [Column<Launch>] = &[
        Column {
            title: "WHEN",
            name: "Begin_ns",
            width: 13,
            rank: 0,
            worth: |row, _| Worth::whole(row.slice.span.begin),
            text: Shown::Moment,
        },
        Column {
            title: "TIME",
            name: "Duration_ns",
            width: 8,
            rank: 0,
            worth: |row, _| Worth::whole(row.nanos()),
            text: Shown::Duration,
        },
        Column {
            title: "QDLY",
            name: "Queue_Delay_ns",
            width: 8,
            rank: 0,
            worth: |row, _| Worth::maybe(row.delay()),
            text: Shown::Duration,
        },
        Column {
            title: "STREAM",
            name: "Stream",
            width: 12,
            rank: 0,
            worth: |row, scene| Worth::text(stream(row, scene.snap)),
            text: Shown::Plain,
        },
        Column {
            title: "GPU",
            name: "GPU",
            width: 6,
            rank: 1,
            worth: |row, scene| Worth::text(gpu(row, scene.snap)),
            text: Shown::Plain,
        },
        Column {
            title: "QUEUE",
            name: "Queue",
            width: 6,
            rank: 3,
            worth: |row, scene| Worth::Text(scene.snap.names.queue_label(QueueId(row.slice.queue))),
            text: Shown::Plain,
        },
        Column {
            title: "GRID",
            name: "Grid_Size",
            width: 16,
            rank: 4,
            worth: |row, scene| Worth::text(geometry(row, scene.snap)),
            text: Shown::Plain,
        },
        Column {
            title: "LAUNCHED BY",
            name: "Thread",
            width: 0,
            rank: 2,
            worth: |row, scene| Worth::text(thread(row, scene.snap)),
            text: Shown::Plain,
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Launch> {
        of_selected(scene).within(scene.ui.stretch).copied().collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        let row = kernels::selected(scene).and_then(|kernel| kernels::row_of(scene.snap, kernel));
        row.map_or(0, |row| row.numbers.stat.timed as usize)
    }

    fn matches(scene: &Scene<'_>) -> String {
        let (rows, all) = (table::sorted::<Self>(scene).len(), Self::all(scene));
        format!("{rows} of {}", units::counted(all as u64, "launch", "launches"))
    }

    fn basis(scene: &Scene<'_>) -> Option<Basis> {
        let basis = Basis::of_kernels(scene, scene.ui.tables[Self::PANE as usize].sort);
        Some(basis.also(&format!("{:?} {:?}", kernels::selected(scene), scene.ui.stretch)))
    }

    fn least(_: u16) -> u16 {
        12
    }

    fn key(row: &Launch) -> u64 {
        identity(&row.slice)
    }

    fn target(row: &Launch, _: &Scene<'_>) -> Target {
        Target::Slice(row.key, row.slice.span.begin)
    }

    fn term(row: &Launch, scene: &Scene<'_>) -> Option<String> {
        match row.key {
            LaneKey::Stream(_, stream) => Some(format!("stream={}", scene.snap.names.stream(stream)?.number)),
            _ => Some(format!(
                "queue={}",
                scene.snap.names.queue(QueueId(row.slice.queue))?.number
            )),
        }
    }
}

/// Rows of the histogram with its frame.
const fn rows_of_histogram(size: Size) -> u16 {
    match size {
        Size::Large => 16,
        Size::Medium => 12,
        _ => 9,
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let all = of_selected(scene);
    if all.launches.is_empty() && all.kernel.is_some() && scene.ui.filter.is_empty() {
        let inner = canvas.frame(area, LaunchTable::TITLE, "");
        return canvas.empty(inner, &["no launch of this kernel is kept in full any more".into()]);
    }
    if all.launches.is_empty() {
        table::panel::<LaunchTable>(canvas, area, scene, None, u8::MAX);
        return;
    }
    let (upper, lower) = top(area, rows_of_histogram(size).min(area.height / 2));
    let name = all
        .kernel
        .map_or_else(String::new, |id| kernels::name(scene.snap, id, NameForm::Short));
    let letter = all.kernel.and_then(|id| scene.snap.letter(id)).unwrap_or('~');
    let title = format!("{letter} {name}");
    // On a small screen a frame would take rows from the list.
    let inner = if size < Size::Medium {
        canvas.headed(upper, &title)
    } else {
        canvas.frame(upper, &title, "v selects durations, h l move an end, H log")
    };
    histogram(canvas, inner, scene, &all);
    let listed = all.within(scene.ui.stretch).count();
    let right = format!("{}   enter timeline", counted(scene, &all, listed));
    if listed == 0 {
        let inner = canvas.frame(lower, LaunchTable::TITLE, &right);
        canvas.empty(
            inner,
            &[
                "no launch took as long".into(),
                "h l move an end of the stretch, esc clears it".into(),
            ],
        );
        return;
    }
    table::panel::<LaunchTable>(canvas, lower, scene, Some(right), u8::MAX);
}

/// `37 of the last 20,000 launches`.
fn counted(scene: &Scene<'_>, all: &Instances, listed: usize) -> String {
    let count = units::counted(all.launches.len() as u64, "launch", "launches");
    let is_filtered = !scene.ui.filter.is_empty();
    let of = match (all.is_complete, is_filtered) {
        (true, _) => count,
        (false, true) => format!("{count} that match"),
        (false, false) => format!("the last {count}"),
    };
    if listed == all.launches.len() {
        of
    } else {
        format!("{} of {of}", units::grouped(listed as u64))
    }
}

/// Draws how many launches took how long, and what of that is selected.
fn histogram(canvas: &mut Canvas<'_>, inner: Rect, scene: &Scene<'_>, all: &Instances) {
    let (chart, ruler) = top(inner, inner.height.saturating_sub(1));
    let columns = chart.width.saturating_sub(history::SCALE);
    if columns < 8 || chart.height == 0 {
        return;
    }
    let scale = all.scale(scene.ui.prefs.logarithmic);
    let column = |nanos: u64| ((scale.share(nanos) * f64::from(columns)) as u16).min(columns - 1);
    let mut counts = vec![0u64; usize::from(columns)];
    for launch in &all.launches {
        counts[usize::from(column(launch.nanos()))] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let values: Vec<Option<Amount>> = counts.into_iter().map(|count| Some(count.into())).collect();
    let amount = history::Scale {
        most: most as f64,
        text: &|value| units::count(value as u64),
    };
    let axis = Axis {
        from: 0.0,
        to: 1.0,
        grain: 0.0,
        text: &|share| units::duration(scale.at(share)),
    };
    history::draw(
        canvas,
        chart,
        scene.ui.prefs.marks,
        &values,
        &amount,
        &axis,
        Role::GaugeMid,
    );
    let left = chart.x + history::SCALE;
    for at in 0..columns {
        let edge = |at: u16| scale.at(f64::from(at) / f64::from(columns));
        let place = Rect {
            x: left + at,
            width: 1,
            ..inner
        };
        scene.ui.hits.add(place, Hit::Durations(edge(at), edge(at + 1)));
    }
    let selected = scene.ui.stretch.filter(|stretch| Some(stretch.kernel) == all.kernel);
    let Some(stretch) = selected else {
        let quantiles = [
            ("p50", all.quantiles.p50),
            ("p95", all.quantiles.p95),
            ("p99", all.quantiles.p99),
        ];
        let mut free = left;
        for (word, nanos) in quantiles.into_iter().filter_map(|(word, nanos)| Some((word, nanos?))) {
            let x = left + column(nanos);
            if x >= free {
                free = canvas.say(
                    x,
                    ruler.y,
                    &format!("╵{word}"),
                    ruler.right().saturating_sub(x),
                    Role::Muted,
                ) + 1;
            }
        }
        return;
    };
    let (first, last) = (column(stretch.from), column(stretch.to));
    let range = format!(" {} – {} ", units::duration(stretch.from), units::duration(stretch.to));
    let (wide, room) = (units::width(&range) as u16, last + 1 - first);
    // The end that keys move is the bold one.
    let ends = if stretch.moves_end {
        ("[", "]◂")
    } else {
        ("▸[", "]")
    };
    let rule = "─".repeat(usize::from(room.saturating_sub(2)));
    let begin = if stretch.moves_end {
        left + first
    } else {
        (left + first).saturating_sub(1)
    };
    canvas.say(
        begin,
        ruler.y,
        &format!("{}{rule}{}", ends.0, ends.1),
        room.max(2) + 1,
        Role::Accent,
    );
    let x = if room > wide + 2 {
        left + first + (room - wide) / 2
    } else if u32::from(left + last + 3 + wide) < u32::from(ruler.right()) {
        left + last + 3
    } else {
        (left + first).saturating_sub(wide + 2)
    };
    canvas.say(x, ruler.y, &range, wide, Role::Accent);
}
