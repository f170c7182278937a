//! Iterations: time per step, how busy the GPUs were in it, which took much longer.

use ratatui::layout::Rect;

use crate::Pane;
use crate::Size;
use crate::jump::Target;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::chart;
use crate::widgets::column::{Column, ColumnId, FILES_ONLY, Shown, Worth};
use crate::widgets::history::{self, Amount, Axis, Scale};
use crate::widgets::rows::lane_label;
use crate::widgets::table::{self, Scene, Table};
use roctop_model::analysis::Busy;
use roctop_model::analysis::steps::{Source, Step, Steps};
use roctop_model::query::{Field, Subject, Value};
use roctop_model::table::last_integer;
use roctop_model::{LaneKey, Snapshot};
use roctop_trace::units;

/// A step, whether its absolute number is an estimate, and the median of all.
#[derive(Clone)]
pub(crate) struct Row {
    step: Step,
    busy: Busy,
    is_estimate: bool,
    median: u64,
    lane: LaneKey,
}

pub(crate) struct StepTable;

/// The steps that are shown.
fn shown<'a>(scene: &Scene<'a>) -> Option<&'a Steps> {
    scene.snap.steps(scene.ui.prefs.stepped)
}

const fn lane(source: &Source) -> LaneKey {
    match source {
        Source::Ranges(key, _) | Source::Period(key, ..) => *key,
    }
}

fn name(snap: &Snapshot, source: &Source) -> String {
    match source {
        Source::Ranges(LaneKey::Markers(thread, _) | LaneKey::Ranges(thread), text) => {
            format!("range {text}, thread {}", snap.names.thread_label(*thread))
        }
        Source::Ranges(_, text) => format!("range {text}"),
        Source::Period(key, period) => format!(
            "{} of {}, {} % of steps as long",
            units::counted(period.length as u64, "kernel", "kernels"),
            lane_label(snap, *key).trim(),
            units::percent(period.same)
        ),
    }
}

/// The difference to the median as a share.
fn difference(row: &Row) -> f64 {
    (row.step.span.duration() as f64 - row.median as f64) / row.median.max(1) as f64
}

impl Table for StepTable {
    type Row = Row;
    const PANE: Pane = Pane::Steps;
    const TITLE: &'static str = "Steps";
    const WHAT: &'static str = "step";
    const SORT: ColumnId = ColumnId("Begin_ns");
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "STEP",
            name: "Step",
            width: 0,
            rank: 0,
            worth: |row, _| Worth::whole(row.step.number),
            text: Shown::Own(|row, _, _| match &*row.step.text {
                "" if row.is_estimate => format!("≈#{}", row.step.absolute),
                "" => format!("#{}", row.step.absolute),
                text => text.into(),
            }),
        },
        Column {
            title: "NAME",
            name: "Name",
            width: FILES_ONLY,
            rank: 2,
            worth: |row, _| Worth::text(Some(&*row.step.text).filter(|text| !text.is_empty())),
            text: Shown::Left,
        },
        Column {
            title: "#",
            name: "Absolute",
            width: FILES_ONLY,
            rank: 10,
            worth: |row, _| Worth::whole(row.step.absolute),
            text: Shown::Plain,
        },
        Column {
            title: "BEGIN",
            name: "Begin_ns",
            width: 13,
            rank: 0,
            worth: |row, _| Worth::whole(row.step.span.begin),
            text: Shown::Moment,
        },
        Column {
            title: "TIME",
            name: "Duration_ns",
            width: 8,
            rank: 0,
            worth: |row, _| Worth::whole(row.step.span.duration()),
            text: Shown::Duration,
        },
        Column {
            title: "±MEDIAN",
            name: "Difference_to_median",
            width: 9,
            rank: 1,
            worth: |row, _| Worth::Number(difference(row)),
            text: Shown::Own(|row, _, _| {
                let sign = if row.step.is_outlier { " ▲" } else { "" };
                format!("{:+.1}%{sign}", difference(row) * 100.0)
            }),
        },
        Column {
            title: "GPU BUSY%",
            name: "Busy_Share",
            width: 9,
            rank: 0,
            worth: |row, _| Worth::Number(row.busy.share(row.step.span)),
            text: Shown::Own(|row, _, _| {
                let sign = if row.busy.is_estimate { "≈" } else { "" };
                format!("{sign}{}", units::percent(row.busy.share(row.step.span)))
            }),
        },
        Column {
            title: "",
            name: "Bar",
            width: 30,
            rank: 3,
            worth: |_, _| Worth::None,
            text: Shown::Own(|row, _, width| {
                // Twice the median fills it.
                let part = row.step.span.duration() as f64 / (2 * row.median).max(1) as f64;
                units::fit(&chart::bar(part, width), width)
            }),
        },
        Column {
            title: "BUSY",
            name: "Busy_ns",
            width: FILES_ONLY,
            rank: 2,
            worth: |row, _| Worth::whole(row.busy.nanos),
            text: Shown::Duration,
        },
        Column {
            title: "≈",
            name: "Is_estimate",
            width: FILES_ONLY,
            rank: 10,
            worth: |row, _| Worth::whole(u64::from(row.busy.is_estimate)),
            text: Shown::Plain,
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let Some(found) = shown(scene) else {
            return Vec::new();
        };
        let (median, lane) = (found.median, lane(&found.source));
        let passing = found
            .steps
            .iter()
            .zip(scene.snap.busy_in_steps(scene.ui.prefs.stepped))
            .filter(|(step, _)| scene.ui.filter.accepts(&StepSubject { step }));
        passing
            .map(|(step, busy)| Row {
                step: step.clone(),
                busy: *busy,
                is_estimate: found.is_estimate,
                median,
                lane,
            })
            .collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        shown(scene).map_or(0, |found| found.steps.len())
    }

    fn hint(_: &Scene<'_>) -> Option<&'static str> {
        Some("a step is a ROC-TX range that comes again, or a sequence of kernels that repeats")
    }

    fn least(_: u16) -> u16 {
        14
    }

    fn key(row: &Row) -> u64 {
        row.step.span.begin
    }

    fn role(row: &Row, _: &Scene<'_>) -> Role {
        if row.step.is_outlier { Role::Warn } else { Role::Text }
    }

    fn target(row: &Row, _: &Scene<'_>) -> Target {
        Target::Stretch(Some(row.lane), row.step.span)
    }
}

struct StepSubject<'a> {
    step: &'a Step,
}

impl Subject for StepSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(&self.step.text)
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Dur => Value::whole(self.step.span.duration()),
            _ => Value::None,
        }
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let kinds = scene.snap.step_sources().len();
    let Some(found) = shown(scene).filter(|_| size >= Size::Medium) else {
        table::panel::<StepTable>(canvas, area, scene, None, u8::MAX);
        return;
    };
    let (upper, lower) = top(area, (area.height / 3).clamp(5, 14));
    let right = format!(
        "median {}   p99 {}   {}",
        units::duration(found.median),
        units::duration(found.p99),
        units::counted(found.outliers as u64, "outlier ▲", "outliers ▲")
    );
    let each = match each(upper, scene, found) {
        1 => String::new(),
        each => format!(", longest of {each} per column"),
    };
    let title = format!("step time, {}{each}", name(scene.snap, &found.source));
    let inner = canvas.frame(upper, &title, &right);
    chart(canvas, inner, scene, found);
    let since = found.since.map_or_else(
        || "of the whole run".into(),
        |at| {
            format!(
                "since {} s",
                units::timestamp_short(at.saturating_sub(scene.snap.origin))
            )
        },
    );
    let right = format!(
        "{} {since}   o other kind ({kinds})   enter → timeline",
        units::counted(found.steps.len() as u64, "step", "steps")
    );
    table::panel::<StepTable>(canvas, lower, scene, Some(right), u8::MAX);
}

/// Steps that a column of the chart stands for.
fn each(area: Rect, scene: &Scene<'_>, found: &Steps) -> usize {
    let columns = history::columns(area, scene.ui.prefs.marks);
    found.steps.len().div_ceil(columns.max(1)).max(1)
}

/// A column a step, the youngest to the right; several steps to a column when there are many, the longest of them shown.
fn chart(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, found: &Steps) {
    if area.width < 24 || area.height == 0 {
        return;
    }
    let each = each(area, scene, found);
    let nanos: Vec<u64> = found
        .steps
        .chunks(each)
        .map(|steps| steps.iter().map(|step| step.span.duration()).max().unwrap_or(0))
        .collect();
    // One outlier would flatten all others.
    let most = nanos
        .iter()
        .copied()
        .max()
        .unwrap_or(0)
        .min(found.median.saturating_mul(3));
    let values: Vec<Option<Amount>> = nanos.into_iter().map(|nanos| Some(nanos.into())).collect();
    let scale = Scale {
        most: most as f64,
        text: &history::nanos,
    };
    let axis = Axis {
        from: 1.0,
        to: found.steps.len() as f64,
        grain: 1.0,
        text: &|at| {
            let step = found.steps.get((at as usize).saturating_sub(1));
            step.map_or_else(String::new, |step| match &*step.text {
                text if last_integer(text).is_some() => step.number.to_string(),
                _ => format!("#{}", step.absolute),
            })
        },
    };
    let marks = scene.ui.prefs.marks;
    history::draw(canvas, area, marks, &values, &scale, &axis, Role::GaugeMid);
}
