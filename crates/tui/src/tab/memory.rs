//! Memory: what each agent's is held by whom, its peak, and the largest allocations that are not freed.

use ratatui::layout::Rect;

use super::sites::{self, HasSite};
use super::wall;
use crate::Pane;
use crate::Size;
use crate::jump::Target;
use crate::theme::Role;
use crate::widgets::activity;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::chart;
use crate::widgets::column::{Column, ColumnId, Heading, Shown, Worth};
use crate::widgets::history::{self, Scale};
use crate::widgets::panes::{list_and_detail, tiles};
use crate::widgets::table::{self, Scene, Table};
use roctop_model::memory::{LiveAllocation, Pool, by_site};
use roctop_model::query::{Field, Subject, Value};
use roctop_model::subject::{Context, Record};
use roctop_model::{LaneKey, Slice};
use roctop_trace::item::{Allocation, OperationId};
use roctop_trace::site::SiteNumber;
use roctop_trace::units;

/// An allocation.
#[derive(Clone)]
pub(crate) struct Row(LiveAllocation);

pub(crate) struct MemoryTable;

fn place(held: &LiveAllocation, scene: &Scene<'_>) -> String {
    held.agent
        .map_or_else(|| units::MISSING.into(), |agent| scene.snap.names.agent_label(agent))
}

/// The recorded call that allocated it, found by its time.
fn call(held: &LiveAllocation, scene: &Scene<'_>) -> Option<(LaneKey, Slice)> {
    let key = LaneKey::Api(held.thread, 0);
    let calls = scene.snap.lane(key)?.slices(held.at, held.at, 256)?;
    let own = calls.into_iter().filter(|call| call.correlation == held.correlation);
    own.map(|call| (key, call)).next()
}

fn called(operation: Option<OperationId>, scene: &Scene<'_>) -> String {
    operation.map_or_else(
        || units::MISSING.into(),
        |operation| super::api::name(scene, operation).into(),
    )
}

impl HasSite for Row {
    fn site(&self, scene: &Scene<'_>) -> Option<String> {
        sites::label_of(scene.snap, self.0.process, self.0.site)
    }
}

impl Table for MemoryTable {
    type Row = Row;
    const PANE: Pane = Pane::Memory;
    const TITLE: &'static str = "Not freed";
    const WHAT: &'static str = "memory held";
    const SORT: ColumnId = ColumnId("Bytes");
    const NAMES: &'static [&'static str] = &["Begin_ns", "Address"];
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "BYTES",
            name: "Bytes",
            width: 10,
            rank: 0,
            worth: |row, _| Worth::whole(row.0.bytes),
            text: Shown::Bytes,
        },
        Column {
            title: "OF ",
            name: "Device",
            width: 6,
            rank: 0,
            worth: |row, scene| Worth::Text(place(&row.0, scene)),
            text: Shown::Left,
        },
        Column {
            title: "SINCE",
            name: "Begin_ns",
            width: 13,
            rank: 0,
            worth: |row, _| Worth::whole(row.0.at),
            text: Shown::Moment,
        },
        Column {
            title: "AGE",
            name: "Age_ns",
            width: 8,
            rank: 2,
            worth: |row, scene| Worth::whole(scene.snap.now.saturating_sub(row.0.at)),
            text: Shown::Duration,
        },
        Column {
            title: "THREAD ",
            name: "Thread",
            width: 14,
            rank: 3,
            worth: |row, scene| Worth::Text(scene.snap.names.thread_label(row.0.thread)),
            text: Shown::Left,
        },
        Column {
            title: "CALL",
            name: "Function",
            width: 0,
            rank: 1,
            worth: |row, scene| Worth::Text(called(row.0.operation, scene)),
            text: Shown::Plain,
        },
        Column {
            title: "ADDRESS",
            name: "Address",
            width: 18,
            rank: 4,
            worth: |row, _| Worth::Text(format!("{:#x}", row.0.address)),
            text: Shown::Plain,
        },
        sites::column(2),
    ];

    fn heading(scene: &Scene<'_>, column: ColumnId) -> Heading {
        sites::heading(scene, column)
    }

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let held = scene.snap.values.memory.held.iter().copied();
        held.filter(|held| scene.ui.filter.accepts(&HeldSubject { held, scene }))
            .map(Row)
            .collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.values.memory.count as usize
    }

    fn matches(scene: &Scene<'_>) -> String {
        let all = units::counted(Self::all(scene) as u64, "allocation", "allocations");
        format!("{} of {all}", Self::rows(scene).len())
    }

    fn hint(_: &Scene<'_>) -> Option<&'static str> {
        Some("allocations through HSA are recorded from the run-time's start on")
    }

    fn least(_: u16) -> u16 {
        12
    }

    fn key(row: &Row) -> u64 {
        row.0.address ^ u64::from(row.0.process.0) << 56
    }

    fn target(row: &Row, scene: &Scene<'_>) -> Target {
        call(&row.0, scene).map_or(
            Target::Nowhere("the call that allocated it is not kept any more"),
            |(key, call)| Target::Slice(key, call.span.begin),
        )
    }
}

struct HeldSubject<'a> {
    held: &'a LiveAllocation,
    scene: &'a Scene<'a>,
}

impl Subject for HeldSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(&called(self.held.operation, self.scene)) || test(&place(self.held, self.scene))
    }
    fn value(&self, field: Field) -> Value<'_> {
        // How long its call took is not kept.
        if field == Field::Dur {
            return Value::None;
        }
        let is_of_site = matches!(field, Field::Site | Field::File);
        let call = is_of_site.then(|| call(self.held, self.scene)).flatten();
        let site = call.map_or(SiteNumber::UNKNOWN, |(_, call)| call.site);
        let allocation = Allocation {
            process: self.held.process,
            thread: self.held.thread,
            agent: self.held.agent,
            bytes: self.held.bytes,
            ..Allocation::default()
        };
        Record::Allocation(&allocation, site).value(&Context::of(self.scene.snap), field)
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let memory = &scene.snap.values.memory;
    let pools = memory.pools.len() as u16;
    let share = if size < Size::Medium || pools == 0 {
        0
    } else {
        (pools + 3).min(area.height / 2)
    };
    let (upper, lower) = top(area, share);
    if share > 0 {
        let inner = canvas.frame(upper, "Held by the program", "allocations through HSA");
        summary(canvas, inner, scene, &memory.pools);
    }
    let word = if scene.snap.ended.is_some() {
        "never freed"
    } else {
        "held"
    };
    let right = format!(
        "{} {word}, {}",
        units::grouped(memory.count),
        units::bytes(memory.bytes)
    );
    let rows = table::sorted::<MemoryTable>(scene);
    let (list, detail) = match rows.len() {
        0 => (lower, None),
        _ if size < Size::Medium => (lower, None),
        rows => list_and_detail(lower, rows, 8.max(lower.height / 3)),
    };
    table::panel::<MemoryTable>(canvas, list, scene, Some(right), u8::MAX);
    if let Some(detail) = detail {
        allocated(canvas, detail, scene, &rows);
    }
}

/// The allocations of the list by when they were made, and by the call that made them.
fn allocated(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, rows: &[Row]) {
    let snap = scene.snap;
    let memory = &snap.values.memory;
    let is_all = scene.ui.filter.is_empty();
    let right = if is_all { "" } else { "of the list" };
    let inner = canvas.frame(area, "Where it comes from", right);
    let parts = tiles(inner, 2, 60.max(inner.width / 2));
    let mut count = units::counted(rows.len() as u64, "allocation", "allocations");
    if is_all && memory.count > rows.len() as u64 {
        let all = units::counted(memory.count, "allocation", "allocations");
        count = format!("the {} largest of {all}", units::grouped(rows.len() as u64));
    }
    let below = canvas.headed(parts[0], &format!("size of {count} by when it was made"));
    let edge = activity::stretch(snap).end;
    let seconds = |at: u64| (at as f64 - edge as f64) / 1e9;
    let points: Vec<(f64, f64)> = rows.iter().map(|row| (seconds(row.0.at), row.0.bytes as f64)).collect();
    let scale = Scale {
        most: rows.iter().map(|row| row.0.bytes).max().unwrap_or(0) as f64,
        text: &|value| units::bytes(value as u64),
    };
    let axis = history::last((edge - snap.origin) as f64 / 1e9);
    history::points(
        canvas,
        below,
        scene.ui.prefs.marks,
        &points,
        &scale,
        &axis,
        Role::ApiMemory,
    );
    let listed;
    let sums = if is_all {
        &memory.sites
    } else {
        listed = by_site(rows.iter().map(|row| &row.0));
        &listed
    };
    let most = sums.first().map_or(1, |known| known.bytes.max(1));
    let below = canvas.headed(parts[1], "by call and site");
    let wide = (below.width / 2).max(24);
    for (y, sum) in (below.y..below.bottom()).zip(sums) {
        let mut name = called(sum.operation, scene);
        if let Some(site) = sites::label_of(snap, sum.process, sum.site) {
            name = format!("{name} {site}");
        }
        let x = canvas.say(below.x + 1, y, &units::fit(&name, usize::from(wide)), wide, Role::Text);
        canvas.right(x + 8, y, &format!("{}×", units::count(sum.count)), Role::Text);
        canvas.right(x + 19, y, &units::bytes(sum.bytes), Role::Text);
        let room = below.right().saturating_sub(x + 21);
        let bar = chart::bar(sum.bytes as f64 / most as f64, usize::from(room));
        canvas.say(x + 20, y, &bar, room, Role::ApiMemory);
    }
}

fn summary(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, pools: &[Pool]) {
    let names = &scene.snap.names;
    let head = format!(
        "{:<8} {:<6} {:>10} {:>10} {:>12} {:>8} {:>8} {:>7}",
        "PID", "OF", "HELD", "PEAK", "PEAK AT", "ALLOCS", "FREES", "RATE"
    );
    let room = area.width.saturating_sub(2);
    canvas.say(area.x + 1, area.y, &head, room, Role::Head);
    for (i, pool) in pools.iter().take(area.height.saturating_sub(1) as usize).enumerate() {
        let y = area.y + 1 + i as u16;
        let pid = names.process(pool.process).map_or(0, |process| process.pid);
        let of = pool
            .agent
            .map_or_else(|| units::MISSING.into(), |agent| names.agent_label(agent));
        let rate = pool.allocations as f64 * 1e9 / wall(scene.snap) as f64;
        let text = format!(
            "{pid:<8} {of:<6} {:>10} {:>10} {:>12} {:>8} {:>8} {:>7}",
            units::bytes(pool.held),
            units::bytes(pool.peak),
            units::timestamp_short(pool.peak_at.saturating_sub(scene.snap.origin)),
            units::count(pool.allocations),
            units::count(pool.frees),
            units::rate(rate),
        );
        let x = canvas.say(area.x + 1, y, &text, room, Role::Text) + 2;
        let capacity = pool
            .agent
            .and_then(|agent| names.agent(agent))
            .map_or(0, |agent| agent.memory);
        if capacity > 0 && x + 8 < area.right() {
            let wide = (area.right() - x - 1).min(30);
            let bar = chart::bar(pool.held as f64 / capacity as f64, wide as usize);
            canvas.say(x, y, &"─".repeat(wide as usize), wide, Role::GaugeRest);
            canvas.say(x, y, &bar, wide, Role::GaugeMid);
        }
    }
}
