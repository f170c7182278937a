//! A ROC-TX range in detail: how long it took each time, and what ran in the last one.

use std::collections::HashMap;

use ratatui::layout::Rect;

use crate::NameForm;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::panes::tiles;
use crate::widgets::table::Scene;
use crate::widgets::{activity, chart, histogram};
use roctop_model::analysis::usage::has_kernels;
use roctop_model::table::{MarkerStat, pattern};
use roctop_model::{LaneKey, Slice, Snapshot};
use roctop_trace::item::{KernelId, OperationId, TextId};
use roctop_trace::units;

/// Ranges, kernels and calls of each lane that are looked through.
const LOOKED_AT: usize = 20_000;
/// Rows and columns that a tile takes at least.
const TILE: (u16, u16) = (6, 60);

/// Its ranges that are kept, the youngest of each lane first.
fn ranges(snap: &Snapshot, row: &MarkerStat) -> Vec<(LaneKey, Slice)> {
    let mut known: HashMap<u32, bool> = HashMap::new();
    let lanes = snap.lanes.iter();
    let lanes = lanes.filter(|lane| matches!(lane.key, LaneKey::Markers(..) | LaneKey::Ranges(_)));
    let mut out = Vec::new();
    for lane in lanes {
        // Marks have no duration.
        let own = lane.recent(LOOKED_AT).filter(|slice| slice.shape == 0).filter(|slice| {
            let is_same = || *pattern(snap.names.text(TextId(slice.what))) == *row.pattern;
            *known.entry(slice.what).or_insert_with(is_same)
        });
        out.extend(own.map(|slice| (lane.key, *slice)));
    }
    out
}

/// What ran in a range: name, how often and how long, the longest first.
struct Inside {
    kernels: Vec<(u32, u64, u64)>,
    calls: Vec<(u32, u64, u64)>,
}

impl Inside {
    fn of(snap: &Snapshot, key: LaneKey, range: &Slice) -> Self {
        let (LaneKey::Markers(thread, _) | LaneKey::Ranges(thread)) = key else {
            return Self {
                kernels: Vec::new(),
                calls: Vec::new(),
            };
        };
        let span = range.span;
        let lanes = snap.lanes.iter().filter(|lane| has_kernels(lane.key));
        let launched = lanes.flat_map(|lane| {
            let young = lane.recent(LOOKED_AT).take_while(|slice| slice.span.end >= span.begin);
            young.filter(|slice| slice.thread == thread.0 && (span.begin..=span.end).contains(&slice.submit))
        });
        let calls = snap.lane(LaneKey::Api(thread, 0));
        let calls = calls.and_then(|lane| lane.slices(span.begin, span.end, LOOKED_AT));
        Self {
            kernels: sums(launched),
            calls: sums(calls.iter().flatten()),
        }
    }
}

fn sums<'a>(slices: impl Iterator<Item = &'a Slice>) -> Vec<(u32, u64, u64)> {
    let mut sums: HashMap<u32, (u64, u64)> = HashMap::new();
    for slice in slices {
        let sum = sums.entry(slice.what).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(slice.span.duration()));
    }
    let mut listed: Vec<(u32, u64, u64)> = sums.into_iter().map(|(what, sum)| (what, sum.0, sum.1)).collect();
    listed.sort_by_key(|known| (std::cmp::Reverse(known.2), known.0));
    listed
}

fn facts(row: &MarkerStat) -> Vec<String> {
    let (work, stat) = (&row.work, &row.stat);
    let text = format!(
        "{}   {}   average {} ± {}   min {}   max {}",
        units::counted(stat.timed, "range", "ranges"),
        units::counted(row.marks, "mark", "marks"),
        units::duration_or_missing(stat.average()),
        units::duration_or_missing(stat.deviation()),
        units::duration_or_missing((stat.timed > 0).then_some(stat.min)),
        units::duration_or_missing((stat.timed > 0).then_some(stat.max)),
    );
    let launched = format!(
        "GPU time {}{} of {} and {}",
        if row.is_least { "≥" } else { "" },
        units::duration(work.nanos),
        units::counted(work.kernels, "kernel", "kernels"),
        units::counted(work.copies, "copy", "copies"),
    );
    vec![text, launched]
}

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &MarkerStat) {
    let inner = canvas.frame(area, &row.pattern, "enter last range");
    let snap = scene.snap;
    let room = inner.width.saturating_sub(2);
    let facts = facts(row);
    for (y, text) in (inner.y..inner.bottom()).zip(&facts) {
        canvas.say(inner.x + 1, y, &units::items(text, room as usize), room, Role::Text);
    }
    let (_, rest) = top(inner, facts.len() as u16);
    let ranges = ranges(snap, row);
    let last = ranges.iter().max_by_key(|(_, range)| range.span.end);
    let inside = last.map(|(key, range)| Inside::of(snap, *key, range));
    let pieces: Vec<(u64, u64)> = ranges
        .iter()
        .map(|(_, range)| (range.span.end, range.span.duration()))
        .collect();
    let fit = (rest.height / TILE.0) * (rest.width / TILE.1);
    let count = if fit >= 4 { 4 } else { fit.clamp(1, 2) };
    let abreast = match count {
        4 if rest.height >= 2 * TILE.0 => 2,
        count => count,
    };
    let parts = tiles(rest, count, rest.width / abreast);
    let own = |at: usize| parts.get(at).copied();
    if let Some(area) = own(0) {
        over_time(canvas, area, scene, &pieces);
    }
    if let Some(area) = own(if count == 4 { 2 } else { 1 }) {
        let names = |what| super::kernels::name(snap, KernelId(what), NameForm::Short);
        let kernels = inside.as_ref().map_or(&[][..], |inside| &inside.kernels);
        listed(canvas, area, "kernels launched in the last one", kernels, &names);
    }
    if let Some(area) = own(1).filter(|_| count == 4) {
        histogram::draw(canvas, area, scene, &row.stat, "duration");
    }
    if let Some(area) = own(3) {
        let names = |what| super::api::name(scene, OperationId(what)).to_string();
        let calls = inside.as_ref().map_or(&[][..], |inside| &inside.calls);
        listed(canvas, area, "API calls in the last one", calls, &names);
    }
}

fn over_time(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, pieces: &[(u64, u64)]) {
    let text = match pieces.len() {
        0 => "none of its ranges is kept in full".into(),
        count => format!(
            "duration of each of the last {}",
            units::counted(count as u64, "range", "ranges")
        ),
    };
    let below = canvas.headed(area, &text);
    if !pieces.is_empty() {
        activity::durations(canvas, below, scene, pieces, Role::Marker);
    }
}

/// Names with their time as bars.
fn listed(canvas: &mut Canvas<'_>, area: Rect, title: &str, all: &[(u32, u64, u64)], name: &dyn Fn(u32) -> String) {
    if area.height == 0 {
        return;
    }
    let room = area.width.saturating_sub(2);
    let text = if all.is_empty() {
        format!("{title}: none")
    } else {
        title.to_owned()
    };
    canvas.say(area.x + 1, area.y, &text, room, Role::Head);
    let most = all.first().map_or(1, |known| known.2.max(1));
    let wide = usize::from(room / 2).max(12);
    for (y, (what, count, nanos)) in (area.y + 1..area.bottom()).zip(all) {
        let name = units::fit(&units::elide(&name(*what), wide), wide);
        let x = canvas.say(area.x + 1, y, &name, room, Role::Text);
        canvas.right(x + 9, y, &format!("{}×", units::count(*count)), Role::Text);
        canvas.right(x + 18, y, &units::duration(*nanos), Role::Text);
        let bar_room = area.right().saturating_sub(x + 20);
        let bar = chart::bar(*nanos as f64 / most as f64, usize::from(bar_room));
        canvas.say(x + 19, y, &bar, bar_room, Role::GaugeMid);
    }
}
