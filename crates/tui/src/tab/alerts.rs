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
use roctop_model::analysis::{Alert, Evidence};
use roctop_trace::units;

/// An alert: its place in the analysis, the worst first, and what stays when that changes.
#[derive(Clone)]
pub(crate) struct Row(usize, u64);

/// By rule and subject: each second the analysis and the order are computed again.
fn identity(alert: &Alert) -> u64 {
    (alert.rule as u64) << 32 | u64::from(alert.about)
}

pub(crate) struct AlertTable;

fn source<'a>(row: &Row, scene: &Scene<'a>) -> &'a Alert {
    &scene.snap.analysis().alerts[row.0]
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
            rank: 4,
            // Downwards: the worst first.
            worth: |row, _| Worth::Number(-(row.0 as f64)),
            text: Shown::Own(|row, scene, width| units::fit(source(row, scene).rule.word(), width)),
        },
        Column {
            title: "WHAT",
            name: "What",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(source(row, scene).text.clone()),
            text: Shown::Own(|row, scene, width| units::cut(&format!("▲ {}", source(row, scene).text), width)),
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
        let alerts = scene.snap.analysis().alerts.iter().enumerate();
        alerts.map(|(at, alert)| Row(at, identity(alert))).collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.analysis().alerts.len()
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
        if source(row, scene).rule.is_bad() {
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
        alert_detail::draw(canvas, detail, scene, source(&row, scene));
    }
}
