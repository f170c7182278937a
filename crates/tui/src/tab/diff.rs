//! What changed since the baseline: by kernel, with a verdict whether it is more than noise.

use std::collections::HashMap;

use ratatui::layout::Rect;

use crate::Pane;
use crate::jump::Target;
use crate::theme::Role;
use crate::widgets::canvas::Canvas;
use crate::widgets::column::{Column, ColumnId, Shown, Worth};
use crate::widgets::histogram;
use crate::widgets::panes::{list_and_detail, tiles};
use crate::widgets::table::{self, Scene, Table};
use crate::{NameForm, Size, Tab};
use roctop_model::Snapshot;
use roctop_model::analysis::change::{Change, MIN_CHANGE, SIGNIFICANT_ERRORS, Sample, Verdict, compare};
use roctop_model::query::{Field, Subject, Value};
use roctop_model::stats::Stat;
use roctop_trace::item::KernelId;
use roctop_trace::units;

/// A kernel before and after.
#[derive(Clone)]
pub(crate) struct Row {
    id: KernelId,
    before: Stat,
    after: Stat,
    change: Change,
}

pub(crate) struct ChangeTable;

/// Kernels of both sides. Within one run what came since the baseline is compared with what was before it.
fn rows(scene: &Scene<'_>, baseline: &Snapshot) -> Vec<Row> {
    let snap = scene.snap;
    let is_same_run = baseline.origin == snap.origin && baseline.title == snap.title;
    let name = |snap: &Snapshot, id| super::kernels::name(snap, id, NameForm::Mangled);
    let all_old = baseline.values.kernels.iter().rev();
    // Of one name the first counts.
    let (by_id, by_name): (HashMap<_, _>, HashMap<_, _>) = if is_same_run {
        (all_old.map(|old| (old.id, old)).collect(), HashMap::new())
    } else {
        (
            HashMap::new(),
            all_old.map(|old| (name(baseline, old.id), old)).collect(),
        )
    };
    let mut rows = Vec::new();
    for row in snap.values.kernels.iter().filter(|row| !snap.names.is_internal(row.id)) {
        let old = if is_same_run {
            by_id.get(&row.id)
        } else {
            by_name.get(&name(snap, row.id))
        };
        let before = old.map_or_else(Stat::default, |old| old.numbers.stat.clone());
        let after = if is_same_run {
            row.numbers.stat.since(&before)
        } else {
            row.numbers.stat.clone()
        };
        rows.push(Row {
            id: row.id,
            change: compare(Sample::of(&before), Sample::of(&after)),
            before,
            after,
        });
    }
    rows
}

/// Nanoseconds that the change costs (or saves) over the calls after.
fn cost(row: &Row) -> Option<f64> {
    let (before, after) = (row.before.average()?, row.after.average()?);
    Some((after as f64 - before as f64) * row.after.timed as f64)
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| units::MISSING.into(), |share| format!("{:+.1}%", share * 100.0))
}

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
            worth: |row, scene| Worth::Text(super::kernels::name(scene.snap, row.id, NameForm::Full)),
            text: Shown::Own(|row, scene, _| super::kernels::name(scene.snap, row.id, scene.ui.prefs.names)),
        },
        Column {
            title: "CALLS WAS",
            name: "Calls_Before",
            width: 9,
            rank: 3,
            worth: |row, _| Worth::whole(row.before.calls),
            text: Shown::Count,
        },
        Column {
            title: "CALLS NOW",
            name: "Calls_After",
            width: 9,
            rank: 3,
            worth: |row, _| Worth::whole(row.after.calls),
            text: Shown::Count,
        },
        Column {
            title: "AVG WAS",
            name: "Average_Before_ns",
            width: 8,
            rank: 1,
            worth: |row, _| Worth::maybe(row.before.average()),
            text: Shown::Duration,
        },
        Column {
            title: "AVG NOW",
            name: "Average_After_ns",
            width: 8,
            rank: 1,
            worth: |row, _| Worth::maybe(row.after.average()),
            text: Shown::Duration,
        },
        Column {
            title: "CHANGE",
            name: "Change",
            width: 8,
            rank: 0,
            worth: |row, _| Worth::number(row.change.share),
            text: Shown::Own(|row, _, _| share(row.change.share)),
        },
        Column {
            title: "±NOISE",
            name: "Noise",
            width: 8,
            rank: 2,
            worth: |row, _| Worth::number(row.change.noise),
            text: Shown::Own(|row, _, _| {
                let noise = row.change.noise.map(|noise| format!("{:.1}%", noise * 100.0));
                noise.unwrap_or_else(|| units::MISSING.into())
            }),
        },
        Column {
            title: "COST",
            name: "Cost_ns",
            width: 9,
            rank: 2,
            worth: |row, _| Worth::number(cost(row).map(f64::abs)),
            text: Shown::Own(|row, _, _| {
                cost(row).map_or_else(
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
            worth: |row, _| Worth::Text(row.change.verdict.word().into()),
            text: Shown::Left,
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let Some(baseline) = &scene.ui.baseline else {
            return Vec::new();
        };
        let mut rows = rows(scene, baseline);
        rows.retain(|row| scene.ui.filter.accepts(&ChangeSubject { row, scene }));
        rows
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene
            .ui
            .baseline
            .as_ref()
            .map_or(0, |_| scene.snap.values.kernels.len())
    }

    fn least(width: u16) -> u16 {
        (width / 3).clamp(16, 60)
    }

    fn key(row: &Row) -> u64 {
        u64::from(row.id.0)
    }

    fn role(row: &Row, _: &Scene<'_>) -> Role {
        match row.change.verdict {
            Verdict::Worse => Role::Bad,
            Verdict::Better => Role::Good,
            Verdict::Same | Verdict::Unclear => Role::Muted,
        }
    }

    fn target(row: &Row, _: &Scene<'_>) -> Target {
        Target::Row(Tab::Kernels, Pane::Kernels, u64::from(row.id.0))
    }
}

struct ChangeSubject<'a> {
    row: &'a Row,
    scene: &'a Scene<'a>,
}

impl Subject for ChangeSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let name = |form| super::kernels::name(self.scene.snap, self.row.id, form);
        test(&name(NameForm::Short)) || test(&name(NameForm::Full)) || test(self.row.change.verdict.word())
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Calls => Value::whole(self.row.after.calls),
            Field::Avg => Value::maybe(self.row.after.average()),
            _ => Value::None,
        }
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let Some(baseline) = &scene.ui.baseline else {
        let inner = canvas.frame(area, ChangeTable::TITLE, "no baseline");
        let lines = [
            "there is nothing to compare with yet".into(),
            "b remembers the numbers of now; D then shows what changed since".into(),
            ":diff RECORDING compares with a recording, :rerun with the next run".into(),
        ];
        return canvas.empty(inner, &lines);
    };
    let right = format!(
        "until {} against since then; beyond {SIGNIFICANT_ERRORS} standard errors and {} %",
        units::clock(baseline.elapsed()),
        MIN_CHANGE * 100.0
    );
    let (list, detail) = match table::sorted::<ChangeTable>(scene).len() {
        0 => (area, None),
        _ if size < Size::Medium => (area, None),
        rows => list_and_detail(area, rows, 8.max(area.height / 3)),
    };
    let row = table::panel::<ChangeTable>(canvas, list, scene, Some(right), u8::MAX);
    if let Some((detail, row)) = detail.zip(row) {
        durations(canvas, detail, scene, baseline, &row);
    }
}

/// The durations of a kernel before and since.
fn durations(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, baseline: &Snapshot, row: &Row) {
    let name = super::kernels::name(scene.snap, row.id, NameForm::Short);
    let inner = canvas.frame(area, &name, "H histogram   enter kernel");
    let now = scene.snap.values.kernels.iter().find(|known| known.id == row.id);
    let is_same_run = baseline.origin == scene.snap.origin && baseline.title == scene.snap.title;
    let since = now.map(|now| {
        if is_same_run {
            now.numbers.stat.rest(&row.before)
        } else {
            now.numbers.stat.clone()
        }
    });
    let parts = tiles(inner, 2, inner.width / 2);
    histogram::draw(canvas, parts[0], scene, &row.before, "before: duration");
    if let Some(since) = since {
        histogram::draw(canvas, parts[1], scene, &since, "since: duration");
    }
}
