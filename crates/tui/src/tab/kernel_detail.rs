//! A kernel in detail: its name whole, geometry and registers, histogram, what it took over time, where it ran and who launched it.

use std::collections::HashMap;

use ratatui::layout::Rect;

use super::kernel_rows::{self, Row, What, delay, members};
use super::kernels::{is_partial, name, source, whole};
use crate::NameForm;
use crate::launches::{self, Passing};
use crate::relation::Kind;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::history::{self, Amount, Scale};
use crate::widgets::panes::tiles;
use crate::widgets::table::Scene;
use crate::widgets::{activity, histogram};
use roctop_model::analysis::usage;
use roctop_model::snapshot::KernelRow;
use roctop_model::subject::SliceSubject;
use roctop_model::table::Placement;
use roctop_model::{LaneKey, Slice, Snapshot};
use roctop_trace::item::{KernelId, Nanos, ThreadId};
use roctop_trace::units;

/// Slices of each lane that are looked through.
const LOOKED_AT: usize = 20_000;
/// The same of all lanes together.
const LOOKED_AT_IN_ALL: usize = 160_000;
/// Launches that are drawn one by one, of all lanes.
const MAX_POINTS: usize = 20_000;
/// Rows and columns that a tile takes at least.
const TILE: (u16, u16) = (6, 44);

/// The launches of a kernel that are kept, as far as they are looked through.
#[derive(Default)]
pub(super) struct Launches {
    /// End and duration of each of the youngest.
    pub(super) each: Vec<(Nanos, u64)>,
    /// Duration and begin of the slowest three.
    slowest: Vec<(u64, Nanos)>,
    /// Launches and their time by the thread that launched them.
    threads: Vec<(ThreadId, u64, u64)>,
    /// All launches are in `each`.
    is_complete: bool,
}

impl Launches {
    /// All of them.
    pub(super) fn all(snap: &Snapshot, id: KernelId) -> Self {
        Self::which(snap, id, &|_, _| true)
    }

    /// Those that pass the filter; all if it names other things.
    fn passing(scene: &Scene<'_>, id: KernelId) -> Self {
        let (snap, filter) = (scene.snap, &scene.ui.filter);
        if launches::relation(scene, Kind::Kernels).is_some() {
            return Self::all(snap, id);
        }
        Self::which(snap, id, &|key, slice| {
            filter.accepts(&SliceSubject { snap, key, slice })
        })
    }

    fn which(snap: &Snapshot, id: KernelId, passes: &dyn Fn(LaneKey, &Slice) -> bool) -> Self {
        let lanes = || snap.lanes.iter().filter(|lane| usage::has_kernels(lane.key));
        let count = lanes().count().max(1);
        let each = MAX_POINTS / count;
        let looked_at = LOOKED_AT.min(LOOKED_AT_IN_ALL / count);
        let mut out = Self::default();
        let mut threads: HashMap<u32, (u64, u64)> = HashMap::new();
        for lane in lanes() {
            let own = lane.recent(looked_at).filter(|slice| slice.what == id.0);
            let own = own.filter(|slice| passes(lane.key, slice));
            for (at, slice) in own.enumerate() {
                let nanos = slice.span.duration();
                let key = (nanos, slice.span.begin);
                let place = out.slowest.partition_point(|known| *known > key);
                if place < 3 {
                    out.slowest.insert(place, key);
                    out.slowest.truncate(3);
                }
                if at < each {
                    out.each.push((slice.span.end, nanos));
                    let sum = threads.entry(slice.thread).or_default();
                    *sum = (sum.0 + 1, sum.1.saturating_add(nanos));
                }
            }
        }
        let known = threads.into_iter().filter(|known| known.0 != u32::MAX);
        out.threads = known.map(|(id, (count, nanos))| (ThreadId(id), count, nanos)).collect();
        out.threads.sort_by_key(|known| (std::cmp::Reverse(known.2), known.0));
        let row = snap.values.kernels.iter().find(|row| row.id == id);
        out.is_complete = row.is_some_and(|row| row.numbers.stat.calls == out.each.len() as u64);
        out
    }

    /// The heading of their chart.
    fn heading(&self) -> String {
        let count = units::counted(self.each.len() as u64, "launch", "launches");
        let which = if self.is_complete { "all" } else { "each of the last" };
        format!("duration of {which} {count}")
    }

    /// The slowest, and when.
    fn slowest(&self, scene: &Scene<'_>) -> String {
        let listed = self.slowest.iter().map(|(nanos, begin)| {
            let at = units::timestamp_short(begin.saturating_sub(scene.snap.origin));
            format!("{} at {at}", units::duration(*nanos))
        });
        format!("slowest {}", listed.collect::<Vec<_>>().join("   "))
    }
}

fn facts(scene: &Scene<'_>, row: &Row, launches: &Launches) -> Vec<String> {
    let Some(kernel) = source(row, scene) else {
        return vec![counts(scene, row)];
    };
    let numbers = &kernel.numbers;
    let (grid, wg) = (numbers.shape.grid, numbers.shape.workgroup);
    let shapes = if numbers.shapes > 1 { " (not always)" } else { "" };
    let registers = scene
        .snap
        .names
        .kernel(kernel.id)
        .and_then(|name| name.kernel.registers);
    let registers = registers.map_or_else(
        || "VGPR –  SGPR –".to_string(),
        |r| format!("VGPR {}  AGPR {}  SGPR {}", r.vgpr, r.agpr, r.sgpr),
    );
    let first = format!(
        "grid {}×{}×{}  wg {}×{}×{}{shapes}  LDS {}  {registers}  scratch {}",
        grid[0],
        grid[1],
        grid[2],
        wg[0],
        wg[1],
        wg[2],
        units::bytes(u64::from(numbers.shape.group_size)),
        units::bytes(u64::from(numbers.shape.private_size)),
    );
    let mut all = vec![first];
    all.extend(resources(scene, kernel));
    all.extend([counts(scene, row), launches.slowest(scene)]);
    all
}

/// What the code object says, and what it and the latest launch allow.
fn resources(scene: &Scene<'_>, kernel: &KernelRow) -> Vec<String> {
    let Some(code) = kernel.code(scene.snap) else {
        return Vec::new();
    };
    let number = |value: Option<u32>| value.map_or_else(|| units::MISSING.into(), |value| value.to_string());
    let said = format!(
        "spills VGPR {}  SGPR {}  wave{}  max wg {}  code {}",
        number(code.vgpr_spills),
        number(code.sgpr_spills),
        number(code.wave_size),
        number(code.max_workgroup),
        code.bytes.map_or_else(|| units::MISSING.into(), units::bytes),
    );
    let mut all = vec![said];
    if let Some(found) = kernel.occupancy(scene.snap) {
        let shape = &kernel.numbers.shape;
        let fill = found.fill_text().map_or_else(String::new, |text| format!("  {text}"));
        all.push(format!("{}{fill}", found.limit_text(&code, shape)));
    }
    all
}

fn counts(scene: &Scene<'_>, row: &Row) -> String {
    format!(
        "calls {}  avg {} ± {}  min {}  max {}  queue delay {}{}",
        units::grouped(row.stat.calls),
        units::duration_or_missing(row.stat.average()),
        units::duration_or_missing(row.stat.deviation()),
        units::duration_or_missing((row.stat.max > 0).then_some(row.stat.min)),
        units::duration_or_missing((row.stat.max > 0).then_some(row.stat.max)),
        units::duration_or_missing(whole(row, scene).and_then(delay)),
        if row.internal {
            "   one of the run-time's own kernels"
        } else {
            ""
        },
    )
}

/// Draws it.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    let title = super::kernels::title(row, scene);
    let inner = canvas.frame(area, &title, "t name form   enter last dispatch   H histogram");
    let room = inner.width.saturating_sub(2) as usize;
    let kernel = source(row, scene).map(|kernel| kernel.id);
    let launches = kernel.map_or_else(Launches::default, |id| Launches::passing(scene, id));
    let mut y = inner.y;
    if let Some(id) = kernel.filter(|_| inner.height >= 9) {
        let form = match scene.ui.prefs.names {
            NameForm::Short => NameForm::Full,
            other => other,
        };
        for part in wrap(&name(scene.snap, id, form), room).iter().take(2) {
            canvas.say(inner.x + 1, y, part, inner.width - 2, Role::Muted);
            y += 1;
        }
    }
    for text in facts(scene, row, &launches) {
        canvas.say(
            inner.x + 1,
            y,
            &units::items(&text, room),
            inner.width.saturating_sub(2),
            Role::Text,
        );
        y += 1;
    }
    let rest = Rect {
        y,
        height: inner.bottom().saturating_sub(y),
        ..inner
    };
    if kernel.is_none() {
        return group(canvas, rest, scene, row);
    }
    let fit = (rest.height / TILE.0).max(1) * (rest.width / TILE.1).max(1);
    match fit {
        0..=2 => {
            let parts = tiles(rest, 2, rest.width / 2);
            histogram::draw(canvas, parts[0], scene, &row.stat, "duration");
            places(canvas, parts[1], scene, row);
        }
        3 => {
            let parts = tiles(rest, 3, TILE.1);
            histogram::draw(canvas, parts[0], scene, &row.stat, "duration");
            trend(canvas, parts[1], scene, row);
            places(canvas, parts[2], scene, row);
        }
        _ => {
            // Two lines of tiles where there are rows for them.
            let abreast = if rest.height >= 2 * TILE.0 { 2 } else { 4 };
            let parts = tiles(rest, 4, rest.width / abreast);
            histogram::draw(canvas, parts[0], scene, &row.stat, "duration");
            trend(canvas, parts[1], scene, row);
            launched(canvas, parts[2], scene, &launches);
            let (upper, lower) = top(parts[3], parts[3].height.div_ceil(2));
            places(canvas, upper, scene, row);
            threads(canvas, lower, scene, &launches);
        }
    }
}

/// Each launch that is kept, by when it ended and how long it took.
pub(super) fn launched(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, launches: &Launches) {
    if area.height < 3 || area.width < 24 {
        return;
    }
    let text = launches.heading();
    let below = canvas.headed(area, &text);
    activity::durations(canvas, below, scene, &launches.each, Role::GaugeMid);
}

/// Who launched it.
fn threads(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, launches: &Launches) {
    if area.height < 2 {
        return;
    }
    let room = area.width.saturating_sub(2);
    canvas.say(area.x + 1, area.y, "launched by thread", room, Role::Head);
    for (y, (thread, count, nanos)) in (area.y + 1..area.bottom()).zip(&launches.threads) {
        let text = format!(
            "{} {:>8} calls {:>8} total",
            units::fit(&scene.snap.names.thread_label(*thread), 17),
            units::count(*count),
            units::duration(*nanos),
        );
        canvas.say(area.x + 1, y, &text, room, Role::Text);
    }
}

/// The kernels of a group, and when its lanes were busy.
fn group(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    let names = &scene.snap.names;
    let is_own = |key: LaneKey| match (row.what, key) {
        (What::Stream(Some(stream)), LaneKey::Stream(_, own)) => own == stream,
        (What::Agent(agent), LaneKey::Agent(own)) => own == agent,
        (What::Process(process), LaneKey::Agent(own)) => {
            let agent = names.agent(own);
            agent.is_some_and(|agent| agent.process == process)
        }
        _ => false,
    };
    let lanes = || {
        scene
            .snap
            .lanes
            .iter()
            .filter(|lane| is_own(lane.key))
            .map(|lane| &**lane)
    };
    let listed = members(scene, row).len() as u16 + 1;
    if area.height < listed + TILE.0 || lanes().next().is_none() {
        return within(canvas, area, scene, row);
    }
    let (upper, lower) = top(area, listed);
    within(canvas, upper, scene, row);
    let below = canvas.headed(lower, &format!("busy with kernels, {}", activity::words(scene.snap)));
    activity::draw(canvas, below, scene, lanes(), &activity::share, Role::GaugeMid);
}

/// The kernels of a group.
fn within(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    if area.height == 0 {
        return;
    }
    canvas.say(area.x + 1, area.y, "kernels within, by total", area.width, Role::Head);
    let members = members(scene, row);
    if members.is_empty() {
        let why = "Kernels within a range are not kept. See 8 Markers, last range.";
        canvas.say(area.x + 1, area.y + 1, why, area.width.saturating_sub(1), Role::Muted);
    }
    let room = (area.width as usize).saturating_sub(38).min(70);
    for (i, (id, sum)) in members.iter().take(area.height as usize - 1).enumerate() {
        let text = format!(
            "{} {:>8} {:>8}× {:>8} avg",
            units::fit(&units::elide(&name(scene.snap, *id, NameForm::Short), room), room),
            units::duration(sum.total),
            units::count(sum.calls),
            units::duration_or_missing(sum.average()),
        );
        canvas.say(
            area.x + 1,
            area.y + 1 + i as u16,
            &text,
            area.width.saturating_sub(1),
            Role::Text,
        );
    }
}

/// Time a second over the last minute.
fn trend(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    let Some(kernel) = source(row, scene).filter(|_| area.height > 2 && area.width > 16) else {
        return;
    };
    let marks = scene.ui.prefs.marks;
    let seconds = history::seconds(scene.snap, history::columns(area, marks));
    let values = kernel.numbers.trend.last(scene.snap.values.at, seconds);
    let most = values.iter().copied().max().unwrap_or(0);
    let which = if is_partial(row, scene) { " of all launches" } else { "" };
    let below = canvas.headed(area, &format!("GPU time per second{which}, last {seconds} s"));
    let values: Vec<Option<Amount>> = values.into_iter().map(|value| Some(value.into())).collect();
    let scale = Scale {
        most: most as f64,
        text: &history::nanos,
    };
    let axis = history::last(seconds as f64);
    history::draw(canvas, below, marks, &values, &scale, &axis, Role::GaugeMid);
}

/// A long text in lines of at most `width` columns.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(columns.max(1)).map(|part| part.iter().collect()).collect()
}

fn places(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    if area.height < 2 {
        return;
    }
    let names = &scene.snap.names;
    canvas.say(area.x + 1, area.y, "by GPU and stream", area.width, Role::Head);
    let Some(kernel) = source(row, scene) else { return };
    let passing = kernel.numbers.cells.iter().filter_map(|cell| {
        let place = scene.snap.values.placement(cell);
        Some((place, kernel_rows::in_place(scene, kernel, place)?))
    });
    let mut cells: Vec<(Option<Placement>, Passing)> = passing.collect();
    cells.sort_by_key(|(_, passing)| std::cmp::Reverse(passing.stat.total));
    for (i, (place, passing)) in cells.iter().take(area.height as usize - 1).enumerate() {
        let stat = &passing.stat;
        let count = launches::count_text(stat, passing.is_estimate);
        let mut say = |text: &str, role| {
            let (x, y) = (area.x + 1, area.y + 1 + i as u16);
            canvas.say(x, y, text, area.width.saturating_sub(2), role);
        };
        let Some(place) = place else {
            let text = format!("elsewhere {count}×");
            say(&text, Role::Muted);
            continue;
        };
        if place.is_of_others() {
            let text = format!("{:<5} elsewhere {count}×", names.agent_label(place.agent));
            say(&text, Role::Muted);
            continue;
        }
        let stream = place
            .stream
            .map_or_else(|| units::MISSING.into(), |stream| names.stream_label(stream));
        if area.width < 60 {
            let text = format!(
                "{:<5} {} {count:>7}× {:>8}",
                names.agent_label(place.agent),
                units::fit(&stream, 6),
                units::duration_or_missing(stat.average()),
            );
            say(&text, Role::Text);
            continue;
        }
        let text = format!(
            "{:<6} {:<5} {:<4} {count:>8} calls {:>8} avg {:>8} total",
            names.agent_label(place.agent),
            stream,
            names.queue_label(place.queue),
            units::duration_or_missing(stat.average()),
            units::duration(stat.total),
        );
        say(&text, Role::Text);
    }
}
