//! Alerts: what was found, why it matters, and where to look.

use ratatui::layout::Rect;

use super::alert_detail;
use crate::Pane;
use crate::jump::{self, Target};
use crate::theme::Role;
use crate::widgets::canvas::Canvas;
use crate::widgets::column::{Column, ColumnId, Shown, Worth};
use crate::widgets::panes::list_and_detail;
use crate::widgets::table::{self, Scene, Table};
use crate::{Size, Tab};
use roctop_model::Snapshot;
use roctop_model::analysis::{Alert, Evidence, LoggedAlert};
use roctop_trace::item::Nanos;
use roctop_trace::units;

/// An alert: its place in the log, the worst first, and its identity, which stays when that changes.
#[derive(Clone)]
pub(crate) struct Row(usize, u64);

/// More than there are alerts.
const MUTED: f64 = 1e6;

pub(crate) struct AlertTable;

fn logged<'a>(row: &Row, scene: &Scene<'a>) -> &'a LoggedAlert {
    &scene.snap.analysis().log[row.0]
}

fn source<'a>(row: &Row, scene: &Scene<'a>) -> &'a Alert {
    &logged(row, scene).alert
}

fn is_muted(scene: &Scene<'_>, alert: &Alert) -> bool {
    scene.ui.muted.contains(&alert.identity())
}

/// Alerts of the last analysis that are not muted.
pub(crate) fn active<'a>(scene: &Scene<'a>) -> impl Iterator<Item = &'a Alert> {
    let ui = scene.ui;
    let alerts = scene.snap.analysis().alerts.iter();
    alerts.filter(move |alert| !ui.muted.contains(&alert.identity()))
}

/// When alerts that are not muted began.
pub(crate) fn moments(scene: &Scene<'_>) -> impl Iterator<Item = Nanos> {
    let ui = scene.ui;
    let log = scene.snap.analysis().log.iter();
    let heard = log.filter(move |logged| !ui.muted.contains(&logged.alert.identity()));
    heard.flat_map(|logged| logged.moments.iter().copied())
}

/// Identity of the selected alert.
pub(crate) fn selected(scene: &Scene<'_>) -> Option<u64> {
    table::selected::<AlertTable>(scene).map(|row| row.1)
}

/// Whether an alert is found now, was found earlier, or is muted.
fn state(row: &Row, scene: &Scene<'_>) -> &'static str {
    let logged = logged(row, scene);
    match logged.is_active {
        _ if is_muted(scene, &logged.alert) => "muted",
        true => "now",
        false => "past",
    }
}

/// Where an alert leads.
pub(crate) fn leads(snap: &Snapshot, evidence: Evidence) -> Target {
    match evidence {
        Evidence::Slice(key, begin) => Target::Slice(key, begin),
        Evidence::Stretch(key, span) => Target::Stretch(Some(key), span),
        Evidence::Kernel(id) => Target::Row(Tab::Kernels, Pane::Kernels, u64::from(id.0)),
        Evidence::Operation(id) => match jump::last_of_operation(snap, id) {
            Some((key, slice)) => Target::Slice(key, slice.span.begin),
            None => Target::View(Tab::Api),
        },
        Evidence::Route(at) => Target::Row(Tab::Copies, Pane::Routes, u64::from(at)),
        Evidence::Process(id) => Target::Row(Tab::Processes, Pane::Processes, u64::from(id.0)),
        Evidence::Open => Target::View(Tab::Running),
        Evidence::Collective(_) | Evidence::Collectives => Target::View(Tab::Collectives),
    }
}

impl Table for AlertTable {
    type Row = Row;
    const PANE: Pane = Pane::Alerts;
    const TITLE: &'static str = "Alerts";
    const WHAT: &'static str = "alert";
    const SORT: ColumnId = ColumnId("Rule");
    const RANKED: Option<ColumnId> = Some(Self::SORT);
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "RULE ",
            name: "Rule",
            width: 13,
            rank: 2,
            // Downwards: the worst first, muted ones last.
            worth: |row, scene| {
                let last = if is_muted(scene, source(row, scene)) {
                    MUTED
                } else {
                    0.0
                };
                Worth::Number(-(row.0 as f64) - last)
            },
            text: Shown::Own(|row, scene, width| units::fit(source(row, scene).rule.word(), width)),
        },
        Column {
            title: "WHAT",
            name: "What",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(source(row, scene).text.clone()),
            text: Shown::Own(|row, scene, width| {
                let sign = if state(row, scene) == "now" { "▲" } else { " " };
                units::cut(&format!("{sign} {}", source(row, scene).text), width)
            }),
        },
        Column {
            title: "STATE ",
            name: "State",
            width: 6,
            rank: 1,
            worth: |row, scene| Worth::Text(state(row, scene).into()),
            text: Shown::Left,
        },
        Column {
            title: "MS/S",
            name: "Cost_ms_per_s",
            width: 5,
            rank: 1,
            worth: |row, scene| Worth::number(source(row, scene).cost),
            text: Shown::Own(|row, scene, _| {
                let cost = source(row, scene).cost;
                cost.map_or_else(|| units::MISSING.into(), |cost| format!("{cost:.0}"))
            }),
        },
        Column {
            title: "COUNT",
            name: "Count",
            width: 5,
            rank: 3,
            worth: |row, scene| Worth::whole(logged(row, scene).count),
            text: Shown::Count,
        },
        Column {
            title: "FIRST",
            name: "First_ns",
            width: 13,
            rank: 4,
            worth: |row, scene| Worth::whole(logged(row, scene).first),
            text: Shown::Moment,
        },
        Column {
            title: "LAST",
            name: "Last_ns",
            width: 13,
            rank: 4,
            worth: |row, scene| Worth::whole(logged(row, scene).last),
            text: Shown::Moment,
        },
        Column {
            title: "WHY ",
            name: "Why",
            width: 44,
            rank: 5,
            worth: |row, scene| Worth::Text(source(row, scene).why.clone()),
            text: Shown::Left,
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        // The filter hides no alert.
        let log = scene.snap.analysis().log.iter().enumerate();
        log.map(|(at, logged)| Row(at, logged.alert.identity())).collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.analysis().log.len()
    }

    fn hint(_: &Scene<'_>) -> Option<&'static str> {
        Some("nothing stands out: no threshold is exceeded")
    }

    fn least(width: u16) -> u16 {
        width.saturating_sub(4).min(76)
    }

    fn key(row: &Row) -> u64 {
        row.1
    }

    fn role(row: &Row, scene: &Scene<'_>) -> Role {
        if state(row, scene) != "now" {
            Role::Muted
        } else if source(row, scene).rule.is_bad() {
            Role::Bad
        } else {
            Role::Warn
        }
    }

    fn target(row: &Row, scene: &Scene<'_>) -> Target {
        leads(scene.snap, source(row, scene).evidence)
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let of = units::duration(scene.snap.analysis().stretch.duration());
    let right = format!("last {of}   enter → evidence");
    let (list, detail) = match table::sorted::<AlertTable>(scene).len() {
        0 => (area, None),
        _ if size < Size::Medium => (area, None),
        rows => list_and_detail(area, rows, 7.max(area.height / 2)),
    };
    let row = table::panel::<AlertTable>(canvas, list, scene, Some(right), u8::MAX);
    if let Some((detail, row)) = detail.zip(row) {
        alert_detail::draw(canvas, detail, scene, logged(&row, scene));
    }
}
