//! What changed: two windows of the run by kernel, or a baseline and since, with a verdict whether it is more than noise.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use ratatui::layout::Rect;

use crate::Pane;
use crate::compare;
use crate::jump::Target;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::column::{Column, ColumnId, Heading, Shown, Worth};
use crate::widgets::histogram;
use crate::widgets::panes::{list_and_detail, tiles};
use crate::widgets::table::{self, Scene, Table};
use crate::{NameForm, Size, Tab};
use roctop_model::Snapshot;
use roctop_model::analysis::change::{MIN_CHANGE, SIGNIFICANT_ERRORS, Sample, Scope, Verdict};
use roctop_model::analysis::usage::has_kernels;
use roctop_model::query::{Field, Subject, Value};
use roctop_model::report::comparison::{self, Changed, changes};
use roctop_model::seconds::{KernelSamples, MAX_SECONDS};
use roctop_model::snapshot::KernelRow;
use roctop_model::stats::Stat;
use roctop_trace::item::{KernelId, Nanos, Span};
use roctop_trace::units;

/// A kernel before and after.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    key: u64,
    changed: Changed,
}

/// All kernels before and after, and what they were counted in.
#[derive(Debug)]
pub(crate) struct Compared {
    rows: Vec<Row>,
    windows: Option<[KernelSamples; 2]>,
}

/// What is compared; a snapshot must not stay in memory for this.
#[derive(Clone, Debug)]
pub(crate) enum Basis {
    Baseline(Weak<Snapshot>, Weak<Vec<KernelRow>>),
    /// Two windows, and the second in which they were counted while records of them may still arrive.
    Windows([Span; 2], Nanos),
}

impl PartialEq for Basis {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Baseline(a, b), Self::Baseline(c, d)) => a.ptr_eq(c) && b.ptr_eq(d),
            (Self::Windows(a, b), Self::Windows(c, d)) => (a, b) == (c, d),
            _ => false,
        }
    }
}

/// Records of a window may arrive for this time after its end, ns.
const LATE: u64 = 5_000_000_000;

/// What is compared; computed once for the same.
fn compared(scene: &Scene<'_>) -> Option<Arc<Compared>> {
    let (ui, snap) = (scene.ui, scene.snap);
    let windows = compare::windows(ui, snap);
    let basis = match windows {
        Some(windows) => {
            let is_new = windows.iter().any(|window| window.end.saturating_add(LATE) > snap.now);
            Basis::Windows(windows, if is_new { snap.values.at / 1_000_000_000 } else { 0 })
        }
        None => Basis::Baseline(
            Arc::downgrade(ui.baseline.as_ref()?),
            Arc::downgrade(&snap.values.kernels),
        ),
    };
    if let Some((known, found)) = &*ui.compared.borrow()
        && *known == basis
    {
        return Some(found.clone());
    }
    let windows = windows.map(|windows| windows.map(|window| snap.kernels_within(window)));
    let found = match (&windows, &ui.baseline) {
        (Some([before, after]), _) => changes(&comparison::within(snap, before), &comparison::within(snap, after)),
        (None, Some(baseline)) if is_same_run(baseline, snap) => {
            changes(&comparison::whole(baseline), &comparison::since(baseline, snap))
        }
        (None, Some(baseline)) => changes(&comparison::whole(baseline), &comparison::whole(snap)),
        (None, None) => Vec::new(),
    };
    let rows = found.into_iter().map(|changed| {
        let mut hasher = DefaultHasher::new();
        changed.name.hash(&mut hasher);
        let key = hasher.finish();
        Row { key, changed }
    });
    let found = Arc::new(Compared {
        rows: rows.collect(),
        windows,
    });
    ui.compared.replace(Some((basis, found.clone())));
    Some(found)
}

/// Whether the launches of both windows were counted one by one, and the windows that they are of.
pub(crate) fn counted(scene: &Scene<'_>) -> Option<(bool, [Span; 2])> {
    let compared = compared(scene)?;
    let windows = compared.windows.as_ref()?;
    let [before, after] = windows;
    Some((before.is_exact && after.is_exact, [before.span, after.span]))
}

fn is_same_run(baseline: &Snapshot, snap: &Snapshot) -> bool {
    baseline.origin == snap.origin && baseline.title == snap.title
}

/// The kernel's name; one that is gone has it in the baseline's run.
fn name(row: &Row, scene: &Scene<'_>, form: NameForm) -> String {
    let [before, after] = row.changed.kernel;
    let earlier = scene
        .ui
        .baseline
        .as_deref()
        .filter(|_| compare::windows(scene.ui, scene.snap).is_none());
    match (after, before) {
        (Some(id), _) => super::kernels::name(scene.snap, id, form),
        (None, Some(id)) => super::kernels::name(earlier.unwrap_or(scene.snap), id, form),
        (None, None) => row.changed.name.to_string(),
    }
}

/// What the code says about a time that changed; both windows of one run have the same.
fn code_change(row: &Row, scene: &Scene<'_>) -> Option<String> {
    if !matches!(row.changed.change.verdict, Verdict::Worse | Verdict::Better) {
        return None;
    }
    let of_windows = compare::windows(scene.ui, scene.snap).is_some();
    let before = scene
        .ui
        .baseline
        .as_deref()
        .filter(|_| !of_windows)
        .unwrap_or(scene.snap);
    comparison::code_change(before, scene.snap, &row.changed)
}

fn mean(sample: Sample) -> Option<u64> {
    (sample.count > 0).then_some(sample.mean.round() as u64)
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| units::MISSING.into(), |share| format!("{:+.1}%", share * 100.0))
}

pub(crate) struct ChangeTable;

impl Table for ChangeTable {
    type Row = Row;
    const PANE: Pane = Pane::Changes;
    const TITLE: &'static str = "Change of kernels";
    const WHAT: &'static str = "kernel on either side";
    const SORT: ColumnId = ColumnId("Cost_ns");
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "KERNEL",
            name: "Kernel_Name",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(name(row, scene, NameForm::Full)),
            text: Shown::Own(|row, scene, _| name(row, scene, scene.ui.prefs.names)),
        },
        Column {
            title: "CALLS WAS",
            name: "Calls_Before",
            width: 9,
            rank: 3,
            worth: |row, _| Worth::whole(row.changed.before.count),
            text: Shown::Count,
        },
        Column {
            title: "CALLS NOW",
            name: "Calls_After",
            width: 9,
            rank: 3,
            worth: |row, _| Worth::whole(row.changed.after.count),
            text: Shown::Count,
        },
        Column {
            title: "AVG WAS",
            name: "Average_Before_ns",
            width: 8,
            rank: 1,
            worth: |row, _| Worth::maybe(mean(row.changed.before)),
            text: Shown::Duration,
        },
        Column {
            title: "AVG NOW",
            name: "Average_After_ns",
            width: 8,
            rank: 1,
            worth: |row, _| Worth::maybe(mean(row.changed.after)),
            text: Shown::Duration,
        },
        Column {
            title: "CHANGE",
            name: "Change",
            width: 8,
            rank: 0,
            worth: |row, _| Worth::number(row.changed.change.share),
            text: Shown::Own(|row, _, _| share(row.changed.change.share)),
        },
        Column {
            title: "±NOISE",
            name: "Noise",
            width: 8,
            rank: 2,
            worth: |row, _| Worth::number(row.changed.change.noise),
            text: Shown::Own(|row, _, _| {
                let noise = row.changed.change.noise.map(|noise| format!("{:.1}%", noise * 100.0));
                noise.unwrap_or_else(|| units::MISSING.into())
            }),
        },
        Column {
            title: "COST",
            name: "Cost_ns",
            width: 9,
            rank: 2,
            worth: |row, _| Worth::number(row.changed.cost().map(f64::abs)),
            text: Shown::Own(|row, _, _| {
                row.changed.cost().map_or_else(
                    || units::MISSING.into(),
                    |cost| {
                        let sign = if cost < 0.0 { "-" } else { "+" };
                        format!("{sign}{}", units::duration(cost.abs() as u64))
                    },
                )
            }),
        },
        Column {
            title: "VERDICT ",
            name: "Verdict",
            width: 8,
            rank: 0,
            worth: |row, _| Worth::Text(row.changed.change.verdict.word().into()),
            text: Shown::Left,
        },
        Column {
            title: "CODE",
            name: "Code_Change",
            width: 44,
            rank: 8,
            worth: |row, scene| Worth::text(code_change(row, scene)),
            text: Shown::Left,
        },
    ];

    fn heading(scene: &Scene<'_>, column: ColumnId) -> Heading {
        let is_absent = column == ColumnId("Code_Change") && !scene.snap.names.has_code();
        if is_absent { Heading::Absent } else { Heading::Usual }
    }

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let Some(compared) = compared(scene) else {
            return Vec::new();
        };
        let rows = compared.rows.iter();
        rows.filter(|row| scene.ui.filter.accepts(&ChangeSubject { row, scene }))
            .cloned()
            .collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        compared(scene).map_or(0, |compared| compared.rows.len())
    }

    fn least(width: u16) -> u16 {
        (width / 3).clamp(16, 60)
    }

    fn key(row: &Row) -> u64 {
        row.key
    }

    fn role(row: &Row, _: &Scene<'_>) -> Role {
        match row.changed.change.verdict {
            Verdict::Worse => Role::Bad,
            Verdict::Better => Role::Good,
            Verdict::New | Verdict::Gone => Role::Text,
            Verdict::Same | Verdict::Unclear => Role::Muted,
        }
    }

    fn target(row: &Row, scene: &Scene<'_>) -> Target {
        let is_here = |id: &KernelId| super::kernels::row_of(scene.snap, *id).is_some();
        let [before, after] = row.changed.kernel;
        let own = after.or(before.filter(|_| compare::windows(scene.ui, scene.snap).is_some()));
        match own.filter(is_here) {
            Some(id) => Target::Row(Tab::Kernels, Pane::Kernels, u64::from(id.0)),
            None => Target::Nowhere("this run has no launch of it"),
        }
    }
}

struct ChangeSubject<'a> {
    row: &'a Row,
    scene: &'a Scene<'a>,
}

impl Subject for ChangeSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let name = |form| name(self.row, self.scene, form);
        test(&name(NameForm::Short)) || test(&name(NameForm::Full)) || test(self.row.changed.change.verdict.word())
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Calls => Value::whole(self.row.changed.after.count),
            Field::Avg => Value::maybe(mean(self.row.changed.after)),
            _ => Value::None,
        }
    }
}

/// Rows that say which windows are compared: a ruler, and a line for each.
const WINDOW_ROWS: u16 = 3;

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let found = compared(scene);
    let windows = found.as_ref().and_then(|found| found.windows.as_ref());
    let (head, area) = top(area, if windows.is_some() { WINDOW_ROWS } else { 0 });
    if let Some(windows) = windows {
        draw_windows(canvas, head, scene, windows);
    }
    let what = match &scene.ui.baseline {
        Some(baseline) if windows.is_none() => format!("until {} against since then", units::clock(baseline.elapsed())),
        _ => compare::words(scene.ui, scene.snap),
    };
    let right = format!(
        "{what}; beyond {SIGNIFICANT_ERRORS} standard errors and {} % {}",
        MIN_CHANGE * 100.0,
        Scope::WithinRuns.words()
    );
    let rows = table::sorted::<ChangeTable>(scene);
    let (list, detail) = match rows.len() {
        0 => (area, None),
        _ if size < Size::Medium => (area, None),
        rows => list_and_detail(area, rows, 8.max(area.height / 3)),
    };
    if rows.is_empty() && windows.is_some() && scene.ui.filter.is_empty() {
        let inner = canvas.frame(list, ChangeTable::TITLE, &right);
        let kept = format!("launches are kept by second for {} minutes", MAX_SECONDS / 60);
        let keys = "o compares something else, h l move a window, + - change its length, v the other one";
        return canvas.empty(inner, &["no kernel ended in either window".into(), kept, keys.into()]);
    }
    let row = table::panel::<ChangeTable>(canvas, list, scene, Some(right), u8::MAX);
    if let Some((detail, row)) = detail.zip(row) {
        durations(canvas, detail, scene, &row);
    }
}

/// Draws where both windows are in the time that is kept, and what they have.
fn draw_windows(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, windows: &[KernelSamples; 2]) {
    let (ui, snap) = (scene.ui, scene.snap);
    let kept = MAX_SECONDS as u64 * 1_000_000_000;
    let first = snap
        .now
        .saturating_sub(kept)
        .max(snap.origin)
        .min(windows[0].span.begin);
    let (begin, end) = (
        format!("{} ", units::timestamp_short(first.saturating_sub(snap.origin))),
        format!(" {}", units::timestamp_short(snap.now.saturating_sub(snap.origin))),
    );
    let x = canvas.say(area.x + 1, area.y, &begin, 20, Role::Muted);
    let columns = area.right().saturating_sub(x + 1 + units::width(&end) as u16);
    let whole = snap.now.saturating_sub(first).max(1);
    let column = |at: Nanos| {
        let share = at.saturating_sub(first).min(whole) as f64 / whole as f64;
        ((share * f64::from(columns)) as u16).min(columns.saturating_sub(1))
    };
    let after = canvas.say(x, area.y, &"─".repeat(usize::from(columns)), columns, Role::Muted);
    canvas.say(after, area.y, &end, 20, Role::Muted);
    for (letter, window) in ["A", "B"].into_iter().zip(windows) {
        let (from, to) = (column(window.span.begin), column(window.span.end.saturating_sub(1)));
        for at in from..=to.max(from) {
            let other = canvas
                .buffer
                .cell((x + at, area.y))
                .is_some_and(|cell| cell.symbol() == "A");
            canvas.say(x + at, area.y, if other { "╫" } else { letter }, 1, Role::Accent);
        }
    }
    let since = |at: Nanos| units::timestamp_short(at.saturating_sub(snap.origin));
    let sides = [
        ("A before", &windows[0], ui.compare.moves_before),
        ("B after ", &windows[1], !ui.compare.moves_before),
    ];
    let reach = snap.values.seconds.span();
    for (y, (word, window, is_moved)) in (area.y + 1..area.bottom()).zip(sides) {
        let launches = window.kernels.values().map(|sample| sample.count).sum::<u64>() + window.rest.count;
        let is_kept = window.is_exact || reach.is_some_and(|reach| reach.begin <= window.span.begin);
        let how = match (window.is_exact, is_kept, window.rest.count) {
            (true, ..) => "exact".into(),
            (false, false, _) => "partly before the time that is kept".into(),
            (false, true, 0) => "whole seconds".into(),
            (false, true, rest) => format!("whole seconds; {} of small kernels not listed", units::count(rest)),
        };
        let mark = if is_moved { "▸" } else { " " };
        let text = format!(
            "{mark} {word}  {} – {}  {:>8}  {}  {how}",
            since(window.span.begin),
            since(window.span.end),
            units::duration(window.span.duration()),
            units::counted(launches, "launch", "launches"),
        );
        let role = if is_moved { Role::Accent } else { Role::Text };
        canvas.say(area.x, y, &text, area.width, role);
    }
}

/// Durations of a kernel's launches in a window, if they are counted one by one.
fn within(snap: &Snapshot, window: &KernelSamples, kernel: Option<KernelId>) -> Option<Stat> {
    let (span, kernel) = (window.span, kernel?);
    let most = usize::try_from(window.kernels.values().map(|sample| sample.count).sum::<u64>()).ok()?;
    let mut nanos = Vec::new();
    for lane in snap
        .lanes
        .iter()
        .filter(|lane| window.is_exact && has_kernels(lane.key))
    {
        let slices = lane.slices(span.begin, span.end, most.saturating_add(64))?;
        let own = slices
            .iter()
            .filter(|slice| slice.what == kernel.0 && slice.span.end > span.begin && slice.span.end <= span.end);
        nanos.extend(own.map(|slice| slice.span.duration()));
    }
    (!nanos.is_empty()).then(|| Stat::of(&nanos))
}

/// The durations of a kernel on both sides.
fn durations(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    let snap = scene.snap;
    let [before, after] = row.changed.kernel;
    let inner = canvas.frame(area, &name(row, scene, NameForm::Short), "H histogram   enter kernel");
    let parts = tiles(inner, 2, inner.width / 2);
    let sides = if let Some([first, second]) = compared(scene).as_ref().and_then(|found| found.windows.as_ref()) {
        if !(first.is_exact && second.is_exact) {
            let why = "sums by second have no histogram: a window whose launches are all in memory has one";
            return canvas.empty(inner, &[why.into()]);
        }
        [within(snap, first, before), within(snap, second, after)]
    } else {
        let Some(baseline) = &scene.ui.baseline else { return };
        let stat =
            |snap: &Snapshot, id: Option<KernelId>| Some(super::kernels::row_of(snap, id?)?.numbers.stat.clone());
        let old = stat(baseline, before);
        let now = stat(snap, after).map(|now| match &old {
            Some(old) if is_same_run(baseline, snap) => now.rest(old),
            _ => now,
        });
        [old, now]
    };
    for ((part, stat), word) in parts
        .into_iter()
        .zip(sides)
        .zip(["before: duration", "after: duration"])
    {
        if let Some(stat) = stat {
            histogram::draw(canvas, part, scene, &stat, word);
        }
    }
}
