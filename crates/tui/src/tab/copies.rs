//! Copies: by route, by size, the last ones.

use std::sync::Arc;

use ratatui::layout::Rect;
use roctop_ring::record::{direction, engine};

use super::sites::{self, HasSite};
use super::transfers::TransferTable;
use crate::Pane;
use crate::Size;
use crate::jump::Target;
use crate::launches::{self, Passing};
use crate::relation::Kind;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, left, top};
use crate::widgets::column::{Column, ColumnId, FILES_ONLY, Heading, Shown, Worth};
use crate::widgets::history::{self, Amount, Scale};
use crate::widgets::table::{self, Scene, Table};
use crate::widgets::{chart, look};
use roctop_model::LaneKey;
use roctop_model::analysis::Overlap;
use roctop_model::query::{Field, Filter, Launches};
use roctop_model::sites::{SiteRow, SiteWork};
use roctop_model::stats::Sum;
use roctop_model::subject::{OfSite, PlaceSubject, RouteSubject};
use roctop_model::table::{CLASSES, Cell, Certainty, CopyStat};
use roctop_trace::item::{AgentId, AgentKind};
use roctop_trace::units;

/// A route: its place in the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Alone(usize),
    /// Routes of the processes that share a GPU, added up.
    Sum(usize),
    /// One of them: the place of the sum, and its own.
    Part(usize, usize),
}

/// A route of which copies pass the filter.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) which: Which,
    /// The numbers of those that pass; `None` if all do.
    pub(crate) passing: Option<Arc<CopyStat>>,
}

pub(crate) struct CopyTable;

impl Which {
    /// All copies.
    fn whole<'a>(self, scene: &Scene<'a>) -> &'a CopyStat {
        let values = &scene.snap.values;
        match self {
            Self::Alone(at) | Self::Part(_, at) => &values.copies[at],
            Self::Sum(at) => &values.copy_sums[at].sum,
        }
    }

    /// The routes that a row consists of.
    fn parts(self, scene: &Scene<'_>) -> Vec<u32> {
        match self {
            Self::Alone(at) | Self::Part(_, at) => vec![at as u32],
            Self::Sum(at) => scene.snap.values.copy_sums[at].parts.clone(),
        }
    }
}

/// The copies that pass the filter.
fn source<'a>(row: &'a Row, scene: &Scene<'a>) -> &'a CopyStat {
    match &row.passing {
        Some(passing) => passing,
        None => row.which.whole(scene),
    }
}

/// Of some routes, the copies that pass the filter; none when none does.
fn passing(scene: &Scene<'_>, which: Which) -> Option<Row> {
    let (filter, names) = (&scene.ui.filter, &scene.snap.names);
    let whole = which.whole(scene);
    let passing = match filter.launches(&RouteSubject(names, whole)) {
        Launches::None => return None,
        Launches::All => None,
        Launches::Some(rest) if whole.cells.is_empty() => Some(copies(scene, which, &rest)?),
        Launches::Some(rest) => Some(by_kernels(scene, whole, &rest)?),
    };
    let is_all = |found: &CopyStat| found.certainty == Certainty::Exact && found.stat.calls == whole.stat.calls;
    Some(Row {
        which,
        passing: passing.filter(|found| !is_all(found)).map(Arc::new),
    })
}

/// Copies that are known one by one.
fn copies(scene: &Scene<'_>, which: Which, rest: &Filter) -> Option<CopyStat> {
    let (whole, parts) = (which.whole(scene), which.parts(scene));
    let counted = launches::of(scene, Kind::Copies);
    // Those belong to what other rows name.
    if counted.related.is_some() {
        return None;
    }
    let found = counted.copies(&parts, whole);
    let is_exact = |found: &CopyStat| found.certainty == Certainty::Exact;
    if counted.is_whole() || found.as_ref().is_some_and(is_exact) {
        return found;
    }
    if rest.asks_only(|field| matches!(field, Field::Site | Field::File)) {
        return of_sites(scene, whole, &parts, rest);
    }
    if rest.asks_only(|field| field == Field::Dur) {
        return match launches::by_duration(&whole.stat, rest) {
            Some(timed) => Some(with_times(found, whole, &timed)),
            None => found,
        };
    }
    found
}

/// Copies with the times that a histogram knows better.
fn with_times(found: Option<CopyStat>, whole: &CopyStat, timed: &Passing) -> CopyStat {
    let sums = || CopyStat::of_sums(whole.route, timed.stat.sum(), None);
    CopyStat {
        certainty: if timed.is_estimate {
            Certainty::Estimate
        } else {
            Certainty::Exact
        },
        stat: timed.stat.clone(),
        ..found.unwrap_or_else(sums)
    }
}

/// Copies of the call sites that pass, from the sums of each.
fn of_sites(scene: &Scene<'_>, whole: &CopyStat, parts: &[u32], rest: &Filter) -> Option<CopyStat> {
    let snap = scene.snap;
    let is_own = |row: &&SiteRow| matches!(row.work, SiteWork::Copy(route) if parts.contains(&route));
    let accepts = |site: Option<&SiteRow>| rest.accepts(&OfSite { snap, site });
    let (mut known, mut passing, mut bytes) = (Sum::default(), Sum::default(), [0u64; 2]);
    for row in snap.values.sites.iter().filter(is_own) {
        known.merge(&row.sum);
        bytes[0] = bytes[0].saturating_add(row.bytes);
        if accepts(Some(row)) {
            passing.merge(&row.sum);
            bytes[1] = bytes[1].saturating_add(row.bytes);
        }
    }
    if accepts(None) {
        passing.merge(&whole.stat.sum().since(&known));
        bytes[1] = bytes[1].saturating_add(whole.sizes.total.saturating_sub(bytes[0]));
    }
    (passing.calls > 0).then(|| CopyStat::of_sums(whole.route, passing, Some(bytes[1])))
}

/// Copies by kernels of the run-time: what is known of each is on the timeline of kernels, without its route.
fn by_kernels(scene: &Scene<'_>, whole: &CopyStat, rest: &Filter) -> Option<CopyStat> {
    let (names, values) = (&scene.snap.names, &scene.snap.values);
    if rest.asks_only(Field::is_of_place) {
        // Those in places without a cell may pass.
        let passes = |cell: &&Cell| {
            let place = values.placement(cell).filter(|place| !place.is_of_others());
            place.is_none_or(|place| rest.accepts(&PlaceSubject(names, place)))
        };
        let mut sum = Sum::default();
        for cell in whole.cells.iter().filter(passes) {
            sum.merge(&cell.sum);
        }
        let certainty = if whole.cells.iter().any(Cell::is_of_others) {
            Certainty::AtMost
        } else {
            Certainty::Exact
        };
        return (sum.calls > 0).then(|| CopyStat {
            certainty,
            ..CopyStat::of_sums(whole.route, sum, None)
        });
    }
    if rest.asks_only(|field| field == Field::Dur) {
        let timed = launches::by_duration(&whole.stat, rest)?;
        return Some(with_times(None, whole, &timed));
    }
    let durations = (whole.stat.min as f64, whole.stat.max as f64);
    let may_pass = rest.may_pass(&|field| (field == Field::Dur).then_some(durations));
    may_pass.then(|| CopyStat {
        certainty: Certainty::AtMost,
        ..whole.clone()
    })
}

/// `host→GPU0`; below the sum of a shared GPU the process.
fn route_text(row: &Row, scene: &Scene<'_>) -> String {
    let (route, names) = (source(row, scene).route, &scene.snap.names);
    let member = [route.destination, route.source].into_iter().flatten();
    let member = member
        .filter(|_| matches!(row.which, Which::Part(..)))
        .find(|&end| names.gpu_of(end) != end);
    member.map_or_else(
        || names.route_label(route.source, route.destination),
        |member| format!(" └ {}", names.agent_process(member)),
    )
}

/// Bytes per second of late; none when bytes are not known, or nothing goes on any more.
fn now(copies: &CopyStat, scene: &Scene<'_>) -> Option<f64> {
    let last = copies.trend.last(scene.snap.values.at, 2);
    (copies.has_bytes && scene.snap.is_running()).then(|| last.iter().sum::<u64>() as f64 / last.len().max(1) as f64)
}

/// Bytes per second while copying.
fn average(copies: &CopyStat) -> Option<f64> {
    (copies.has_bytes && copies.union.total > 0).then(|| copies.sizes.total as f64 * 1e9 / copies.union.total as f64)
}

fn speed(value: Option<f64>) -> String {
    value.map_or_else(|| units::MISSING.into(), units::bandwidth)
}

/// Slower on the average than the threshold.
fn is_slow(row: &Row, scene: &Scene<'_>) -> bool {
    average(source(row, scene)).is_some_and(|speed| speed < scene.snap.thresholds.slow_copy)
}

/// The average as a share of what the link to the host carries; none when that is not known, or the host has no part.
fn of_link(copies: &CopyStat, scene: &Scene<'_>) -> Option<f64> {
    let ends = [copies.route.source, copies.route.destination];
    let agents = || ends.iter().flatten().filter_map(|&id| scene.snap.names.agent(id));
    if !agents().any(|agent| agent.kind == AgentKind::Cpu) {
        return None;
    }
    let gpu = agents().find(|agent| agent.kind == AgentKind::Gpu)?;
    let device = scene.snap.device_of(gpu)?;
    let peak = *device.now.link_peak.as_ref().ok()?;
    average(copies).filter(|_| peak > 0.0).map(|speed| speed / peak)
}

/// The share of the wall with at least one of the copies; none if only sums of them are known.
fn busy(copies: &CopyStat, scene: &Scene<'_>) -> Option<f64> {
    let is_known = copies.union.total > 0 || copies.stat.total == 0;
    is_known.then(|| copies.union.total as f64 / super::wall(scene.snap) as f64)
}

/// The share of the route's time, of late, in which a kernel ran on one of its GPUs.
fn hidden(row: &Row, scene: &Scene<'_>) -> Option<f64> {
    // It is known of whole routes alone.
    if row.passing.is_some() {
        return None;
    }
    let overlaps = &scene.snap.analysis().overlaps;
    let own = row
        .which
        .parts(scene)
        .into_iter()
        .filter_map(|at| overlaps.get(at as usize));
    let sum = own.fold(Overlap::default(), |sum, one| Overlap {
        copied: sum.copied.saturating_add(one.copied),
        under: sum.under.saturating_add(one.under),
    });
    sum.share()
}

fn way(copies: &CopyStat) -> String {
    let name = match copies.route.direction {
        direction::UNKNOWN => "copy",
        known => direction::name(known),
    };
    let own = match copies.route.engine {
        engine::BLIT => "~",
        engine::CALL => "^",
        _ => "",
    };
    format!("{own}{name}")
}

impl HasSite for Row {
    fn site(&self, scene: &Scene<'_>) -> Option<String> {
        let copies = &scene.snap.values.copies;
        let time = |at: &u32| copies.get(*at as usize).map_or(0, |copies| copies.stat.total);
        if self.passing.is_some() {
            let parts = self.which.parts(scene).into_iter().map(SiteWork::Copy);
            let calls = self.which.whole(scene).stat.calls;
            return sites::main_of_passing(scene, Kind::Copies, &parts.collect::<Vec<_>>(), calls);
        }
        let most = self.which.parts(scene).into_iter().max_by_key(time)?;
        sites::main_of(scene.snap, SiteWork::Copy(most))
    }
}

impl Table for CopyTable {
    type Row = Row;
    const PANE: Pane = Pane::Routes;
    const TITLE: &'static str = "Copies";
    const WHAT: &'static str = "copy";
    const SORT: ColumnId = ColumnId("Bytes");
    const NAMES: &'static [&'static str] = &["Direction"];
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "DIR  ",
            name: "Direction",
            width: 5,
            rank: 0,
            worth: |row, scene| Worth::Text(way(source(row, scene))),
            text: Shown::Own(|row, scene, width| format!("{:<width$}", way(source(row, scene)))),
        },
        Column {
            title: "ROUTE",
            name: "Route",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(route_text(row, scene)),
            text: Shown::Plain,
        },
        Column {
            title: "COUNT",
            name: "Count",
            width: 8,
            rank: 2,
            worth: |row, scene| Worth::whole(source(row, scene).stat.calls),
            text: Shown::Own(|row, scene, _| {
                let copies = source(row, scene);
                format!("{}{}", copies.certainty.sign(), units::count(copies.stat.calls))
            }),
        },
        Column {
            title: "BYTES",
            name: "Bytes",
            width: 9,
            rank: 0,
            worth: |row, scene| Worth::maybe(source(row, scene).has_bytes.then(|| source(row, scene).sizes.total)),
            text: Shown::Bytes,
        },
        Column {
            title: "NOW",
            name: "Now_Bps",
            width: 9,
            rank: 1,
            worth: |row, scene| Worth::number(now(source(row, scene), scene)),
            text: Shown::Speed,
        },
        Column {
            title: "AVG",
            name: "Average_Bps",
            width: 9,
            rank: 2,
            worth: |row, scene| Worth::number(average(source(row, scene))),
            text: Shown::Speed,
        },
        Column {
            title: "PEAK",
            name: "Peak_Bps",
            width: 9,
            rank: 3,
            worth: |row, scene| Worth::number(Some(source(row, scene).peak).filter(|&peak| peak > 0.0)),
            text: Shown::Speed,
        },
        Column {
            title: "",
            name: "Is_Slow",
            width: 1,
            rank: 1,
            worth: |row, scene| Worth::whole(u64::from(is_slow(row, scene))),
            text: Shown::Own(|row, scene, _| {
                if is_slow(row, scene) {
                    "▲".into()
                } else {
                    String::new()
                }
            }),
        },
        Column {
            title: "%LINK",
            name: "Share_of_link",
            width: 5,
            rank: 5,
            worth: |row, scene| Worth::number(of_link(source(row, scene), scene)),
            text: Shown::Share,
        },
        Column {
            title: "P50 SIZE",
            name: "P50_Bytes",
            width: 9,
            rank: 5,
            worth: |row, scene| Worth::maybe(source(row, scene).sizes.quantiles.p50),
            text: Shown::Bytes,
        },
        Column::times("TOTAL", "Total_ns", 8, |row, scene| {
            Worth::whole(source(row, scene).stat.total)
        }),
        Column {
            title: "AVG TIME",
            name: "Average_ns",
            width: 8,
            rank: 7,
            worth: |row, scene| Worth::maybe(source(row, scene).stat.average()),
            text: Shown::Duration,
        },
        Column {
            title: "BUSY%",
            name: "Busy_Share_of_wall",
            width: 5,
            rank: 4,
            worth: |row, scene| Worth::number(busy(source(row, scene), scene)),
            text: Shown::Share,
        },
        Column {
            title: "HIDDEN%",
            name: "Share_under_kernels",
            width: 7,
            rank: 4,
            worth: |row, scene| Worth::number(hidden(row, scene)),
            text: Shown::Share,
        },
        Column {
            title: "BYTES, 30 s",
            name: "Bytes_last_second",
            width: 12,
            rank: 6,
            worth: |row, scene| {
                Worth::whole(
                    source(row, scene)
                        .trend
                        .last(scene.snap.values.at, 1)
                        .first()
                        .copied()
                        .unwrap_or(0),
                )
            },
            text: Shown::Own(|row, scene, width| {
                chart::trailing(&source(row, scene).trend.last(scene.snap.values.at, 30), width)
            }),
        },
        sites::column(6),
        Column {
            title: "≈",
            name: "Is_estimate",
            width: FILES_ONLY,
            rank: 10,
            worth: |row, scene| Worth::whole(u64::from(source(row, scene).certainty != Certainty::Exact)),
            text: Shown::Plain,
        },
    ];

    fn heading(scene: &Scene<'_>, column: ColumnId) -> Heading {
        if column == ColumnId("Is_estimate") && !launches::may_estimate(scene, Kind::Copies) {
            return Heading::Absent;
        }
        sites::heading(scene, column)
    }

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let values = &scene.snap.values;
        let sums = values.copy_sums.iter().enumerate().flat_map(|(at, sum)| {
            let parts = sum.parts.iter().map(move |&part| Which::Part(at, part as usize));
            std::iter::once(Which::Sum(at)).chain(parts)
        });
        let is_alone = |at: &usize| values.copy_sums.iter().all(|sum| !sum.parts.contains(&(*at as u32)));
        let alone = (0..values.copies.len()).filter(is_alone).map(Which::Alone);
        let all = alone.chain(sums).filter(|which| which.whole(scene).stat.calls > 0);
        let all: Vec<Which> = all.collect();
        let own: Vec<Row> = all.iter().filter_map(|which| passing(scene, *which)).collect();
        let related = if own.is_empty() {
            launches::related(scene, Kind::Copies)
        } else {
            None
        };
        let Some(related) = related else { return own };
        let of = |which: Which| {
            let passing = related.copies(&which.parts(scene), which.whole(scene))?;
            Some(Row {
                which,
                passing: Some(Arc::new(passing)),
            })
        };
        all.into_iter().filter_map(of).collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        let values = &scene.snap.values;
        values.copies.len() + values.copy_sums.len()
    }

    /// Processes stand below the sum of their GPU, whatever sorts.
    fn arrange(rows: Vec<Row>, scene: &Scene<'_>) -> Vec<Row> {
        let order = |row: &Row| {
            let route = source(row, scene).route;
            let ends = [route.destination, route.source].into_iter().flatten();
            let members = ends.flat_map(|end| scene.snap.names.members(scene.snap.names.gpu_of(end)));
            let is_own = |member: &AgentId| [route.destination, route.source].contains(&Some(*member));
            members.into_iter().position(|member| is_own(&member))
        };
        let mut out = Vec::with_capacity(rows.len());
        let is_summed = |sum: usize| rows.iter().any(|row| row.which == Which::Sum(sum));
        for row in &rows {
            match row.which {
                Which::Part(sum, _) if is_summed(sum) => {}
                Which::Sum(sum) => {
                    out.push(row.clone());
                    let own = rows
                        .iter()
                        .filter(|row| matches!(row.which, Which::Part(of, _) if of == sum));
                    let mut own: Vec<Row> = own.cloned().collect();
                    own.sort_by_cached_key(order);
                    out.extend(own);
                }
                _ => out.push(row.clone()),
            }
        }
        out
    }

    /// To the last copy of the route.
    fn target(row: &Row, scene: &Scene<'_>) -> Target {
        let way = source(row, scene).route.direction;
        let lane = scene.snap.lane(LaneKey::Copies(way));
        let own = row.which.parts(scene);
        let last = lane.and_then(|lane| lane.recent(100_000).find(|slice| own.contains(&slice.what)));
        last.map_or(Target::Nowhere("no copy of it is kept in full any more"), |slice| {
            Target::Slice(LaneKey::Copies(way), slice.span.begin)
        })
    }

    fn term(row: &Row, scene: &Scene<'_>) -> Option<String> {
        let route = source(row, scene).route;
        let device = [route.destination, route.source].into_iter().flatten();
        let gpu = device
            .filter_map(|id| scene.snap.names.agent(id))
            .find(|agent| agent.kind == AgentKind::Gpu);
        let place = gpu.map(|agent| format!(" dev={}", agent.number));
        Some(format!(
            "dir={}{}",
            direction::name(route.direction),
            place.unwrap_or_default()
        ))
    }

    fn least(_: u16) -> u16 {
        11
    }

    fn key(row: &Row) -> u64 {
        match row.which {
            Which::Alone(at) | Which::Part(_, at) => at as u64,
            Which::Sum(at) => 1 << 32 | at as u64,
        }
    }

    fn role(row: &Row, scene: &Scene<'_>) -> Role {
        if source(row, scene).route.engine == engine::BLIT {
            Role::Internal
        } else if is_slow(row, scene) {
            Role::Warn
        } else {
            Role::Text
        }
    }
}

/// Draws the table in a box.
pub(crate) fn panel(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>) -> Option<Row> {
    table::panel::<CopyTable>(
        canvas,
        area,
        scene,
        Some(format!("▲ below {}", units::bandwidth(scene.snap.thresholds.slow_copy))),
        u8::MAX,
    )
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    if size < Size::Medium {
        panel(canvas, area, scene);
        return;
    }
    let wanted = (CopyTable::all(scene) as u16).saturating_add(3);
    let (upper, rest) = top(area, wanted.min(area.height / 3).max(6));
    let selected = panel(canvas, upper, scene);
    let (middle, lower) = top(rest, 7.min(rest.height));
    let (classes, chart_area) = left(middle, middle.width / 2);
    if let Some(copies) = selected.as_ref().map(|row| source(row, scene)) {
        sizes(canvas, classes, scene, copies);
        last_minute(canvas, chart_area, scene, copies);
    } else {
        canvas.frame(classes, "Sizes", "");
        canvas.frame(chart_area, "Bytes per second", "");
    }
    table::panel::<TransferTable>(canvas, lower, scene, Some("enter → timeline".into()), u8::MAX);
}

fn title(scene: &Scene<'_>, copies: &CopyStat) -> String {
    format!(
        "{} {}",
        way(copies),
        scene
            .snap
            .names
            .route_label(copies.route.source, copies.route.destination)
    )
}

const CLASS_NAMES: [&str; CLASSES.len()] = ["≤ 4 KiB", "≤ 64 KiB", "≤ 1 MiB", "≤ 16 MiB", "> 16 MiB"];

fn sizes(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, copies: &CopyStat) {
    let inner = canvas.frame(area, &format!("Sizes of {}", title(scene, copies)), "");
    if !copies.has_bytes {
        canvas.empty(inner, &["no call says how many bytes these kernels moved".into()]);
        return;
    }
    for (i, name) in CLASS_NAMES.iter().enumerate() {
        let (count, bytes, nanos) = copies.classes[i];
        let mean = (nanos > 0).then(|| bytes as f64 * 1e9 / nanos as f64);
        let text = format!(
            "{name:<9}{:>8} {:>9} {:>9}",
            units::count(count),
            units::bytes(bytes),
            speed(mean)
        );
        let role = if count > 0 { Role::Text } else { Role::Muted };
        canvas.say(
            inner.x + 1,
            inner.y + i as u16,
            &text,
            inner.width.saturating_sub(1),
            role,
        );
    }
}

fn last_minute(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, copies: &CopyStat) {
    let inner = canvas.frame(
        area,
        "Bytes per second",
        &format!("peak of a copy {}", speed(Some(copies.peak))),
    );
    let marks = scene.ui.prefs.marks;
    let seconds = history::seconds(scene.snap, history::columns(inner, marks));
    let values = copies.trend.last(scene.snap.values.at, seconds);
    let scale = Scale {
        most: values.iter().copied().max().unwrap_or(0).max(1) as f64,
        text: &units::bandwidth,
    };
    let values: Vec<Option<Amount>> = values.into_iter().map(|value| Some(value.into())).collect();
    let axis = history::last(seconds as f64);
    let role = look::copy_role(copies.route.direction);
    history::draw(canvas, inner, marks, &values, &scale, &axis, role);
}
