//! A kernel in detail: its name whole, geometry and registers, histogram, trend, where it ran.

use ratatui::layout::Rect;

use super::kernel_rows::{Row, What, delay, members};
use super::kernels::{name, source};
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, left};
use crate::widgets::chart;
use crate::widgets::history;
use crate::widgets::table::Scene;
use crate::{NameForm, Size};
use roctop_model::analysis::usage;
use roctop_trace::item::KernelId;
use roctop_trace::units;

/// Slices of each lane that are looked through.
const LOOKED_AT: usize = 20_000;
/// The same of all streams together.
const LOOKED_AT_IN_ALL: usize = 160_000;

fn facts(scene: &Scene<'_>, row: &Row) -> Vec<String> {
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
    vec![first, counts(scene, row), slowest(scene, kernel.id)]
}

/// The slowest calls that are kept, and when.
fn slowest(scene: &Scene<'_>, id: KernelId) -> String {
    let lanes = scene.snap.lanes.iter().filter(|lane| usage::has_kernels(lane.key));
    // Each frame looks through them: with many streams at fewer of each.
    let each = LOOKED_AT_IN_ALL / lanes.clone().count().max(LOOKED_AT_IN_ALL / LOOKED_AT);
    let own = lanes
        .flat_map(|lane| lane.recent(each))
        .filter(|slice| slice.what == id.0);
    let mut worst: Vec<(u64, u64)> = Vec::with_capacity(4);
    for slice in own {
        let key = (slice.span.duration(), slice.span.begin);
        let at = worst.partition_point(|known| *known > key);
        if at < 3 {
            worst.insert(at, key);
            worst.truncate(3);
        }
    }
    let listed = worst.iter().map(|(nanos, begin)| {
        let at = units::timestamp_short(begin.saturating_sub(scene.snap.origin));
        format!("{} at {at}", units::duration(*nanos))
    });
    format!("slowest {}", listed.collect::<Vec<_>>().join("   "))
}

fn counts(scene: &Scene<'_>, row: &Row) -> String {
    format!(
        "calls {}  avg {} ± {}  min {}  max {}  queue delay {}{}",
        units::grouped(row.stat.calls),
        units::maybe(row.stat.average()),
        units::maybe(row.stat.deviation()),
        units::maybe((row.stat.max > 0).then_some(row.stat.min)),
        units::maybe((row.stat.max > 0).then_some(row.stat.max)),
        units::maybe(source(row, scene).and_then(delay)),
        if row.internal {
            "   one of the run-time's own kernels"
        } else {
            ""
        },
    )
}

/// Draws it.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row, size: Size) {
    let title = super::kernels::title(row, scene);
    let inner = canvas.frame(area, &title, "t name form   enter last dispatch   H histogram");
    let room = inner.width.saturating_sub(2) as usize;
    let mut y = inner.y;
    if let What::Kernel(at) = row.what
        && size == Size::Large
    {
        let full = name(
            scene.snap,
            scene.snap.values.kernels[at].id,
            if scene.ui.prefs.names == NameForm::Short {
                NameForm::Full
            } else {
                scene.ui.prefs.names
            },
        );
        for part in wrap(&full, room).iter().take(2) {
            canvas.say(inner.x + 1, y, part, inner.width - 2, Role::Muted);
            y += 1;
        }
    }
    for text in facts(scene, row) {
        canvas.say(inner.x + 1, y, &units::items(&text, room), inner.width - 2, Role::Text);
        y += 1;
    }
    if size == Size::Large {
        y += 1;
    }
    let rest = Rect {
        y,
        height: inner.bottom().saturating_sub(y),
        ..inner
    };
    if !matches!(row.what, What::Kernel(_)) {
        within(canvas, rest, scene, row);
    } else if size == Size::Large {
        let (one, rest) = left(rest, rest.width * 2 / 5);
        let (two, three) = left(rest, rest.width / 2);
        histogram(canvas, one, scene, row);
        trend(canvas, two, scene, row);
        places(canvas, three, scene, row);
    } else {
        let (one, two) = left(rest, rest.width * 3 / 5);
        histogram(canvas, one, scene, row);
        places(canvas, two, scene, row);
    }
}

/// The kernels of a group.
fn within(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    if area.height == 0 {
        return;
    }
    canvas.say(area.x + 1, area.y, "kernels within, by total", area.width, Role::Head);
    let members = members(scene, row);
    if members.is_empty() {
        let why = "of ranges sums are kept, and the last 512 durations, not whose they are";
        canvas.say(area.x + 1, area.y + 1, why, area.width.saturating_sub(1), Role::Muted);
    }
    let room = (area.width as usize).saturating_sub(38).min(70);
    for (i, (id, sum)) in members.iter().take(area.height as usize - 1).enumerate() {
        let text = format!(
            "{} {:>8} {:>8}× {:>8} avg",
            units::fit(&units::elide(&name(scene.snap, *id, NameForm::Short), room), room),
            units::duration(sum.total),
            units::count(sum.calls),
            units::maybe(sum.average()),
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

/// Time a second over the last minute, and the mean.
fn trend(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    let Some(kernel) = source(row, scene).filter(|_| area.height > 2 && area.width > 16) else {
        return;
    };
    let columns = (area.width as usize - 12).min(59);
    let values = kernel.numbers.trend.last(scene.snap.values.at, columns);
    let most = values.iter().copied().max().unwrap_or(0);
    canvas.say(
        area.x + 1,
        area.y,
        "GPU time per second, last 60 s",
        area.width,
        Role::Head,
    );
    let below = Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    };
    let ends = (format!("-{} s", values.len()), "now");
    let scale = (most, &*units::duration(most));
    history::draw(canvas, below, &values, scale, (&ends.0, ends.1), Role::GaugeMid);
}

/// A long text in lines of at most `width` columns.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(columns.max(1)).map(|part| part.iter().collect()).collect()
}

fn histogram(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    if area.height < 2 {
        return;
    }
    let stat = &row.stat;
    let kind = if scene.ui.prefs.logarithmic { "log" } else { "linear" };
    canvas.say(
        area.x + 1,
        area.y,
        &format!("duration ({kind})"),
        area.width,
        Role::Head,
    );
    let bins = stat.bins(area.height as usize - 1, scene.ui.prefs.logarithmic);
    if bins.is_empty() {
        let why = if stat.is_full() || stat.timed == 0 {
            "no times"
        } else if stat.is_of_sums() {
            "no histogram while filtered by place"
        } else {
            "no histogram: it is kept of the first 1024 kernels that run"
        };
        canvas.say(area.x + 1, area.y + 1, why, area.width, Role::Muted);
        return;
    }
    let most = bins.iter().map(|bin| bin.1).max().unwrap_or(1).max(1);
    let room = area.width.saturating_sub(30) as usize;
    let quantiles = [
        ("p50", stat.quantiles.p50),
        ("p95", stat.quantiles.p95),
        ("p99", stat.quantiles.p99),
    ];
    for (i, &(edge, count)) in bins.iter().enumerate() {
        let y = area.y + 1 + i as u16;
        let next = bins.get(i + 1).map_or(u64::MAX, |bin| bin.0);
        canvas.right(area.x + 9, y, &units::duration(edge), Role::Muted);
        let bar = chart::bar(count as f64 / most as f64, room);
        let x = canvas.say(area.x + 10, y, &bar, room as u16, Role::GaugeMid);
        let here: Vec<&str> = quantiles
            .iter()
            .filter(|q| q.1.is_some_and(|at| at >= edge && at < next))
            .map(|q| q.0)
            .collect();
        if count > 0 {
            let share = units::percent(count as f64 / stat.timed.max(1) as f64);
            let text = format!(" {share} % {}", here.join(" "));
            canvas.say(x, y, &text, area.right().saturating_sub(x), Role::Muted);
        }
    }
}

fn places(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    if area.height < 2 {
        return;
    }
    let names = &scene.snap.names;
    canvas.say(area.x + 1, area.y, "where, by total", area.width, Role::Head);
    let Some(kernel) = source(row, scene) else { return };
    let mut cells: Vec<_> = kernel.numbers.cells.iter().collect();
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.sum.total));
    for (i, cell) in cells.iter().take(area.height as usize - 1).enumerate() {
        let mut say = |text: &str, role| {
            let (x, y) = (area.x + 1, area.y + 1 + i as u16);
            canvas.say(x, y, text, area.width.saturating_sub(2), role);
        };
        let Some(place) = scene.snap.values.places.get(cell.place as usize) else {
            let text = format!("elsewhere {}×", units::count(cell.sum.calls));
            say(&text, Role::Muted);
            continue;
        };
        let stream = place
            .stream
            .map_or_else(|| units::MISSING.into(), |stream| names.stream_label(stream));
        if area.width < 60 {
            let text = format!(
                "{:<5} {} {:>7}× {:>8}",
                names.agent_label(place.agent),
                units::fit(&stream, 6),
                units::count(cell.sum.calls),
                units::maybe(cell.sum.average()),
            );
            say(&text, Role::Text);
            continue;
        }
        let text = format!(
            "{:<6} {:<5} {:<4} {:>8} calls {:>8} avg {:>8} total",
            names.agent_label(place.agent),
            stream,
            names.queue_label(place.queue),
            units::count(cell.sum.calls),
            units::maybe(cell.sum.average()),
            units::duration(cell.sum.total),
        );
        say(&text, Role::Text);
    }
}
