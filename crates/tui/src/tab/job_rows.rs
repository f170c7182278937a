//! Ranks × time: a row for each node or rank, a column for each second.
//!
//! Height is the value, and colour is the distance from the median of all ranks. A row of several ranks shows their mean in
//! shades instead of bars, because a mean hides the one that differs; that one is named beside it.

use ratatui::layout::Rect;

use crate::Pane;
use crate::jump::Target;
use crate::theme::Role;
use crate::widgets::canvas::Canvas;
use crate::widgets::chart::LEVELS;
use crate::widgets::column::{Column, ColumnId, FILES_ONLY, Heading, Shown, Worth};
use crate::widgets::row_cache::Basis;
use crate::widgets::table::{Scene, Table};
use roctop_model::analysis::placement::Kind;
use roctop_model::job::{JobValues, Quantity, RankState, Readings, Row, RowKind};
use roctop_model::query::{Field, Subject, Value};
use roctop_trace::units;

/// Distance from the median from which on a value is unusual, and from which on it is bad.
const UNUSUAL: f64 = 0.1;
const BAD: f64 = 0.25;
/// A cell of which nothing was reported.
const MISSING: char = '·';
/// A second in which records were lost.
const LOST: char = '▾';
/// Means of several ranks, from low to high.
const SHADES: [char; 3] = ['░', '▒', '▓'];

pub(crate) struct JobRowTable;

fn job<'a>(scene: &Scene<'a>) -> Option<&'a JobValues> {
    scene.snap.job.as_deref()
}

/// By what ranks are put in rows.
pub(crate) fn kind(scene: &Scene<'_>) -> RowKind {
    let usual = || job(scene).map_or(RowKind::Node, JobValues::usual_rows);
    scene.ui.prefs.job_rows.unwrap_or_else(usual)
}

/// The value of a row: of its ranks, the mean of the latest seconds.
fn value(row: Row, scene: &Scene<'_>, quantity: Quantity) -> Option<f64> {
    let job = job(scene)?;
    let known = job.members(row).iter().filter_map(|rank| job.mean(*rank, quantity));
    let (sum, count) = known.fold((0.0, 0u32), |sum, value| (sum.0 + value, sum.1 + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// How far a value is from the median: as a share of it, or for shares of time as their difference.
fn distance(value: f64, median: f64, quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Step | Quantity::Power => (value - median) / median.max(f64::MIN_POSITIVE),
        Quantity::Busy | Quantity::Wait | Quantity::Mpi => value - median,
    }
}

/// The rank of a row that is furthest from the median, and how far.
fn worst(row: Row, scene: &Scene<'_>) -> Option<(u32, f64)> {
    let job = job(scene)?;
    let quantity = scene.ui.prefs.quantity;
    let median = job.median(quantity)?;
    let known = job.members(row).iter();
    let far = known.filter_map(|rank| Some((*rank, distance(job.mean(*rank, quantity)?, median, quantity))));
    far.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

/// A value as text.
pub(crate) fn text(value: f64, quantity: Quantity, scene: &Scene<'_>) -> String {
    match quantity {
        Quantity::Step => scene.ui.duration(value as u64),
        Quantity::Busy | Quantity::Wait | Quantity::Mpi => format!("{} %", units::percent(value)),
        Quantity::Power => format!("{value:.0} W"),
    }
}

fn ranks(row: Row, scene: &Scene<'_>) -> String {
    let Some(job) = job(scene) else { return String::new() };
    let members = job.members(row).iter();
    let numbers = members.filter_map(|rank| Some(job.ranks.get(*rank as usize)?.rank));
    match (numbers.clone().min(), numbers.max()) {
        (Some(first), Some(last)) if first == last => first.to_string(),
        (Some(first), Some(last)) => format!("{first}–{last}"),
        _ => String::new(),
    }
}

fn host(row: Row, scene: &Scene<'_>) -> String {
    let rank = job(scene).and_then(|job| job.members(row).first().copied());
    let node = job(scene).zip(rank).and_then(|(job, rank)| job.node_of(rank));
    node.map_or_else(String::new, |node| node.host.to_string())
}

/// The worst state of the ranks of a row, and how many have it.
fn state(row: Row, scene: &Scene<'_>) -> (RankState, usize) {
    let Some(job) = job(scene) else {
        return (RankState::Gone, 0);
    };
    let states = || job.members(row).iter().map(|rank| job.state(*rank));
    let severity = |state: &RankState| match state {
        RankState::Live => 0,
        RankState::Ended => 1,
        RankState::Stale => 2,
        RankState::Gone => 3,
    };
    let worst = states().max_by_key(severity).unwrap_or_default();
    (worst, states().filter(|state| *state == worst).count())
}

/// A state as a word.
fn word(state: RankState) -> &'static str {
    match state {
        RankState::Live => "live",
        RankState::Stale => "silent",
        RankState::Gone => "gone",
        RankState::Ended => "ended",
    }
}

/// What is wrong with where the ranks of a row run: its kinds, and how many ranks have one.
fn misplaced(row: Row, scene: &Scene<'_>) -> (Vec<Kind>, usize) {
    let Some(job) = job(scene) else {
        return (Vec::new(), 0);
    };
    let mut kinds = Vec::new();
    let has_one = |rank: &&u32| {
        let before = kinds.len();
        kinds.extend(job.findings(**rank).map(|(finding, _)| finding.kind));
        kinds.len() > before
    };
    let count = job.members(row).iter().filter(has_one).count();
    kinds.sort_unstable();
    kinds.dedup();
    (kinds, count)
}

/// A row's placement as text of its column.
fn placement(row: Row, scene: &Scene<'_>) -> String {
    let is_known = job(scene).is_some_and(|job| job.members(row).iter().any(|rank| job.is_placed(*rank)));
    let (kinds, count) = misplaced(row, scene);
    match (&kinds[..], row.count) {
        ([], _) if is_known => String::new(),
        ([], _) => units::MISSING.into(),
        ([kind], 1) => kind.short().into(),
        ([kind, ..], 1) => format!("{} +", kind.short()),
        ([kind, ..], _) => format!("{count} {}", kind.short()),
    }
}

/// Traffic and errors of links of a row's GPUs.
type Traffic = (Option<f64>, u64);

fn network(row: Row, scene: &Scene<'_>) -> Traffic {
    traffic(row, scene, Readings::of_network)
}

fn xgmi(row: Row, scene: &Scene<'_>) -> Traffic {
    traffic(row, scene, Readings::of_xgmi)
}

fn traffic(row: Row, scene: &Scene<'_>, of: fn(&Readings) -> (Option<f32>, Option<u64>)) -> Traffic {
    job(scene).map_or((None, 0), |job| job.traffic(job.members(row).iter().copied(), of))
}

fn traffic_text(traffic: Traffic) -> String {
    match traffic {
        (Some(rate), errors) => format!("{}{}", if errors > 0 { "!" } else { "" }, units::bandwidth(rate)),
        (None, _) => units::MISSING.into(),
    }
}

/// What a cell shows.
#[derive(Clone, Copy)]
enum Mark {
    /// Before the first report.
    Blank,
    Missing,
    /// Level from 0 to 1, distance from the median, records were lost.
    Value(f64, f64, bool),
    /// Reported, without this quantity.
    Unknown,
}

/// The cells of a row, a second each, the latest last.
fn marks(row: Row, scene: &Scene<'_>, width: usize) -> Vec<Mark> {
    let Some(job) = job(scene) else { return Vec::new() };
    let quantity = scene.ui.prefs.quantity;
    let median = job.median(quantity).unwrap_or(1.0);
    let highest = job.highest(quantity).unwrap_or(1.0).max(f64::MIN_POSITIVE);
    let level = |value: f64| match quantity {
        // From half of the median to one and a half; the median itself is in the middle of a level.
        Quantity::Step => value / median.max(f64::MIN_POSITIVE) - 0.5 + 1.0 / 16.0,
        Quantity::Busy | Quantity::Wait | Quantity::Mpi => value,
        Quantity::Power => value / highest,
    };
    let (end, first) = (job.end(), job.grid.first().unwrap_or(0));
    let members = job.members(row);
    let mark = |second: u64| {
        let cells = || members.iter().filter_map(|rank| job.grid.cell(second, *rank as usize));
        if second < first {
            return Mark::Blank;
        }
        if cells().next().is_none() {
            return Mark::Missing;
        }
        let known = cells().filter_map(|cell| cell.value(quantity));
        let (sum, count) = known.fold((0.0, 0u32), |sum, value| (sum.0 + value, sum.1 + 1));
        if count == 0 {
            return Mark::Unknown;
        }
        let value = sum / f64::from(count);
        let has_lost = cells().any(roctop_model::job::Cell::has_lost);
        Mark::Value(
            level(value).clamp(0.0, 1.0),
            distance(value, median, quantity),
            has_lost,
        )
    };
    let first_column = end.saturating_sub(width as u64);
    (first_column..end).map(mark).collect()
}

fn glyph(mark: Mark, is_mean: bool) -> char {
    match mark {
        Mark::Blank | Mark::Unknown => ' ',
        Mark::Missing => MISSING,
        Mark::Value(_, _, true) => LOST,
        Mark::Value(level, ..) if is_mean => SHADES[((level * 3.0) as usize).min(2)],
        Mark::Value(level, ..) => LEVELS[1 + ((level * 8.0) as usize).min(7)],
    }
}

/// Unusually long steps are bad, shorter ones are not.
fn role_of(mark: Mark, quantity: Quantity) -> Option<Role> {
    match mark {
        Mark::Value(_, _, true) => Some(Role::Bad),
        Mark::Value(_, distance, _) => {
            let distance = if quantity == Quantity::Step {
                distance
            } else {
                distance.abs()
            };
            match distance {
                far if far > BAD => Some(Role::Bad),
                far if far > UNUSUAL => Some(Role::Warn),
                _ => None,
            }
        }
        Mark::Missing => Some(Role::Muted),
        Mark::Blank | Mark::Unknown => None,
    }
}

struct Named {
    host: String,
    ranks: Vec<u32>,
}

impl Subject for Named {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(&self.host)
    }
    fn value(&self, field: Field) -> Value<'_> {
        match (field, self.ranks.first()) {
            (Field::Rank, Some(rank)) => Value::Number(f64::from(*rank)),
            _ => Value::None,
        }
    }
}

impl Table for JobRowTable {
    type Row = Row;
    const PANE: Pane = Pane::JobRows;
    const TITLE: &'static str = "Ranks";
    const WHAT: &'static str = "rank";
    const SORT: ColumnId = ColumnId("Rank");
    const RANKED: Option<ColumnId> = Some(Self::SORT);
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "RANK",
            name: "Rank",
            width: 11,
            rank: 0,
            // The order of the rows, downwards.
            worth: |row, _| Worth::Number(-f64::from(row.first)),
            text: Shown::Own(|row, scene, _| ranks(*row, scene)),
        },
        Column {
            title: "NODE ",
            name: "Node",
            width: 10,
            rank: 1,
            worth: |row, scene| Worth::Text(host(*row, scene)),
            text: Shown::Left,
        },
        Column {
            title: "STATE ",
            name: "State",
            width: 8,
            rank: 3,
            worth: |row, scene| Worth::Text(word(state(*row, scene).0).into()),
            text: Shown::Own(|row, scene, width| {
                let (state, count) = state(*row, scene);
                let text = match (state, count as u32 == row.count) {
                    (RankState::Live, _) => String::new(),
                    (state, true) => word(state).into(),
                    (state, false) => format!("{count} {}", word(state)),
                };
                units::fit(&text, width)
            }),
        },
        Column {
            title: "PLACE ",
            name: "Placement",
            width: 9,
            rank: 1,
            worth: |row, scene| Worth::Text(placement(*row, scene)),
            text: Shown::Left,
        },
        Column {
            title: "VALUE",
            name: "Value",
            width: 9,
            rank: 0,
            worth: |row, scene| Worth::number(value(*row, scene, scene.ui.prefs.quantity)),
            text: Shown::Own(|row, scene, _| {
                let quantity = scene.ui.prefs.quantity;
                let value = value(*row, scene, quantity);
                value.map_or_else(|| units::MISSING.into(), |value| text(value, quantity, scene))
            }),
        },
        Column {
            title: "EACH SECOND, NOW ON THE RIGHT",
            name: "Seconds",
            width: 0,
            rank: 0,
            worth: |_, _| Worth::None,
            text: Shown::Own(|row, scene, width| {
                let marks = marks(*row, scene, width);
                marks.into_iter().map(|mark| glyph(mark, row.count > 1)).collect()
            }),
        },
        Column {
            title: "FURTHEST",
            name: "Furthest_Rank",
            width: 15,
            rank: 2,
            worth: |row, scene| {
                let rank = worst(*row, scene).and_then(|worst| job(scene)?.ranks.get(worst.0 as usize));
                Worth::maybe(rank.map(|rank| rank.rank.into()))
            },
            text: Shown::Own(|row, scene, _| {
                let found = worst(*row, scene).filter(|_| row.count > 1);
                let shown = found.and_then(|(rank, _)| {
                    let (job, quantity) = (job(scene)?, scene.ui.prefs.quantity);
                    let value = text(job.mean(rank, quantity)?, quantity, scene);
                    Some(format!("{}: {value}", job.ranks.get(rank as usize)?.rank))
                });
                shown.unwrap_or_default()
            }),
        },
        Column {
            title: "NETWORK",
            name: "Network_Bps",
            width: 9,
            rank: 3,
            worth: |row, scene| Worth::number(network(*row, scene).0),
            text: Shown::Own(|row, scene, _| traffic_text(network(*row, scene))),
        },
        Column {
            title: "XGMI",
            name: "Xgmi_Bps",
            width: 9,
            rank: 4,
            worth: |row, scene| Worth::number(xgmi(*row, scene).0),
            text: Shown::Own(|row, scene, _| traffic_text(xgmi(*row, scene))),
        },
        file("Network_Errors", |row, scene| Worth::whole(network(*row, scene).1)),
        file("Xgmi_Errors", |row, scene| Worth::whole(xgmi(*row, scene).1)),
        file("Step_ns", |row, scene| {
            Worth::number(value(*row, scene, Quantity::Step))
        }),
        file("Busy_Share", |row, scene| {
            Worth::number(value(*row, scene, Quantity::Busy))
        }),
        file("Wait_Share", |row, scene| {
            Worth::number(value(*row, scene, Quantity::Wait))
        }),
        file("Power_W", |row, scene| {
            Worth::number(value(*row, scene, Quantity::Power))
        }),
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let Some(job) = job(scene) else { return Vec::new() };
        let rows = job.rows(kind(scene)).into_iter();
        let accepts = |row: &Row| {
            scene.ui.filter.is_empty()
                || job.members(*row).iter().any(|rank| {
                    let known = job.ranks.get(*rank as usize);
                    scene.ui.filter.accepts(&Named {
                        host: host(*row, scene),
                        ranks: known.map(|known| known.rank).into_iter().collect(),
                    })
                })
        };
        rows.filter(accepts).collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        job(scene).map_or(0, |job| job.rows(kind(scene)).len())
    }

    fn heading(scene: &Scene<'_>, column: ColumnId) -> Heading {
        match column.name() {
            "Value" => Heading::Text(scene.ui.prefs.quantity.word().to_uppercase()),
            // Only where something is wrong.
            "Placement" if job(scene).is_none_or(|job| job.totals.misplaced.iter().all(|count| *count == 0)) => {
                Heading::Absent
            }
            "Network_Bps" if job(scene).is_none_or(|job| job.totals.network.is_none()) => Heading::Absent,
            "Xgmi_Bps" if job(scene).is_none_or(|job| job.totals.xgmi.is_none()) => Heading::Absent,
            "Furthest_Rank" if kind(scene) != RowKind::Node => Heading::Absent,
            _ => Heading::Usual,
        }
    }

    fn basis(scene: &Scene<'_>) -> Option<Basis> {
        let (prefs, sort) = (&scene.ui.prefs, scene.ui.tables[Self::PANE as usize].sort);
        let what = format!("{} {}", kind(scene).word(), prefs.quantity.word());
        Some(Basis::of_job(scene, sort).also(&what))
    }

    fn arrange(mut rows: Vec<Row>, scene: &Scene<'_>) -> Vec<Row> {
        let is_own = scene.ui.tables[Self::PANE as usize].sort.column.is_none();
        if kind(scene) == RowKind::Outlier && is_own {
            rows.sort_by_cached_key(|row| {
                let far = worst(*row, scene).map_or(0.0, |worst| worst.1.abs());
                (std::cmp::Reverse((far * 1e6) as u64), row.first)
            });
        }
        rows
    }

    fn least(width: u16) -> u16 {
        (width * 2 / 5).max(24)
    }

    fn key(row: &Row) -> u64 {
        u64::from(row.count) << 32 | u64::from(row.first)
    }

    fn role(row: &Row, scene: &Scene<'_>) -> Role {
        match state(*row, scene).0 {
            RankState::Live => Role::Text,
            RankState::Stale => Role::Warn,
            RankState::Gone => Role::Bad,
            RankState::Ended => Role::Muted,
        }
    }

    fn paint(canvas: &mut Canvas<'_>, place: Rect, row: &Row, scene: &Scene<'_>) {
        let quantity = scene.ui.prefs.quantity;
        let marks = marks(*row, scene, place.width as usize);
        for (at, role) in (0u16..).zip(marks.into_iter().map(|mark| role_of(mark, quantity))) {
            let cell = Rect {
                x: place.x + at,
                width: 1,
                ..place
            };
            canvas.paint(cell, role.unwrap_or(Role::GaugeLow));
        }
    }

    /// Of a node, its rank that is furthest from the others.
    fn target(row: &Row, scene: &Scene<'_>) -> Target {
        let first = || job(scene)?.members(*row).first().copied();
        let place = worst(*row, scene).map(|worst| worst.0).or_else(first);
        let rank = job(scene)
            .zip(place)
            .and_then(|(job, place)| job.ranks.get(place as usize));
        rank.map_or(Target::Nowhere("this rank is not known"), |rank| {
            Target::Rank(rank.rank)
        })
    }
}

/// A column that is in files alone.
const fn file(name: &'static str, worth: fn(&Row, &Scene<'_>) -> Worth) -> Column<Row> {
    Column {
        title: "",
        name,
        width: FILES_ONLY,
        rank: 9,
        worth,
        text: Shown::Plain,
    }
}
