//! When a GPU had nothing to do, and what the host did meanwhile.

use crate::Pane;
use crate::jump::Target;
use crate::widgets::column::{Column, ColumnId, Shown, Worth};
use crate::widgets::table::{Scene, Table};
use roctop_model::LaneKey;
use roctop_model::analysis::{Gap, Verdict, host};
use roctop_model::query::{Field, Subject, Value};
use roctop_trace::item::AgentKind;
use roctop_trace::units;

/// Gaps shown: the longest of all GPUs.
const MAX_GAPS: usize = 100;

/// A gap and what the host did.
#[derive(Clone)]
pub(crate) struct Row {
    gap: Gap,
    host: host::Host,
}

pub(crate) struct GapTable;

/// What is beyond the threshold, in words.
pub(crate) fn title(scene: &Scene<'_>) -> String {
    let least = units::duration(scene.snap.thresholds.gap);
    let kept = passing(scene).len();
    if kept > MAX_GAPS && scene.ui.filter.is_empty() {
        let all: u64 = scene.snap.analysis().whole.iter().map(|usage| usage.gap_count).sum();
        return format!("longest {MAX_GAPS} of {all}, {least} or more");
    }
    if kept > MAX_GAPS {
        return format!("longest {MAX_GAPS}, {least} or more");
    }
    format!("neither kernel nor copy for {least} or more")
}

/// The call that took most of a gap, or that there was none.
pub(crate) fn longest_call(scene: &Scene<'_>, host: &host::Host) -> String {
    let name = host.operation().map(|id| super::api::name(scene, id).to_string());
    name.unwrap_or_else(|| "outside of calls".into())
}

/// Gaps that pass the filter.
fn passing<'a>(scene: &Scene<'a>) -> Vec<&'a Gap> {
    let gaps = scene.snap.analysis().whole.iter().flat_map(|usage| &usage.gaps);
    gaps.filter(|gap| scene.ui.filter.accepts(&GapSubject { gap, scene }))
        .collect()
}

/// As many causes as go into `columns`.
pub(crate) fn causes(scene: &Scene<'_>, verdict: &Verdict, columns: usize) -> String {
    units::list(&verdict.words(scene.snap), columns)
}

fn kernel(row: &Row, scene: &Scene<'_>) -> String {
    let next = row.gap.next.map(|(_, next)| roctop_trace::item::KernelId(next.what));
    next.map_or_else(
        || units::MISSING.into(),
        |id| super::kernels::name(scene.snap, id, crate::NameForm::Short),
    )
}

impl Table for GapTable {
    type Row = Row;
    const PANE: Pane = Pane::Gaps;
    const TITLE: &'static str = "Idle gaps";
    const WHAT: &'static str = "gap";
    const SORT: ColumnId = ColumnId("Duration_ns");
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "WHEN",
            name: "Begin_ns",
            width: 13,
            rank: 0,
            worth: |row, _| Worth::whole(row.gap.span.begin),
            text: Shown::Moment,
        },
        Column {
            title: "GPU ",
            name: "Device",
            width: 6,
            rank: 0,
            worth: |row, scene| Worth::Text(scene.snap.names.agent_label(row.gap.agent)),
            text: Shown::Left,
        },
        Column {
            title: "IDLE",
            name: "Duration_ns",
            width: 8,
            rank: 0,
            worth: |row, _| Worth::whole(row.gap.span.duration()),
            text: Shown::Duration,
        },
        Column {
            title: "CAUSE ",
            name: "Cause",
            width: 24,
            rank: 0,
            worth: |row, scene| Worth::Text(row.gap.verdict.words(scene.snap).join(", ")),
            text: Shown::Own(|row, scene, width| units::fit(&causes(scene, &row.gap.verdict, width), width)),
        },
        Column {
            title: "HOST WAS",
            name: "Host_Function",
            width: 0,
            rank: 0,
            worth: |row, scene| Worth::Text(longest_call(scene, &row.host)),
            text: Shown::Own(|row, scene, width| units::cut(&host::doing(scene.snap, &row.host, row.gap.span), width)),
        },
        Column {
            title: "FOR",
            name: "Host_ns",
            width: 8,
            rank: 1,
            worth: |row, _| Worth::maybe(row.host.call.map(|call| call.2)),
            text: Shown::Duration,
        },
        Column {
            title: "THREAD ",
            name: "Thread",
            width: 14,
            rank: 2,
            worth: |row, scene| Worth::text(row.host.thread.map(|thread| scene.snap.names.thread_label(thread))),
            text: Shown::Own(|row, scene, width| {
                let thread = row.host.thread.map(|thread| scene.snap.names.thread_label(thread));
                units::fit(&thread.unwrap_or_else(|| units::MISSING.into()), width)
            }),
        },
        Column {
            title: "ENDED BY ",
            name: "Next_Kernel",
            width: 24,
            rank: 3,
            worth: |row, scene| Worth::Text(kernel(row, scene)),
            text: Shown::Own(|row, scene, width| units::fit(&units::elide(&kernel(row, scene), width), width)),
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let snap = scene.snap;
        let mut gaps = passing(scene);
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.span.duration()));
        let with_host = gaps.into_iter().take(MAX_GAPS).map(|gap| Row {
            host: gap.host(snap),
            gap: gap.clone(),
        });
        with_host.collect()
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.analysis().whole.iter().map(|usage| usage.gaps.len()).sum()
    }

    fn hint(_: &Scene<'_>) -> Option<&'static str> {
        Some("or no slices of the last while are kept")
    }

    fn least(_: u16) -> u16 {
        16
    }

    fn key(row: &Row) -> u64 {
        row.gap.span.begin ^ u64::from(row.gap.agent.0) << 52
    }

    fn target(row: &Row, _: &Scene<'_>) -> Target {
        Target::Stretch(Some(LaneKey::Agent(row.gap.agent)), row.gap.span)
    }
}

struct GapSubject<'a> {
    gap: &'a Gap,
    scene: &'a Scene<'a>,
}

impl Subject for GapSubject<'_> {
    fn any_name(&self, _: &dyn Fn(&str) -> bool) -> bool {
        false
    }
    /// Words hide no gap.
    fn is_named(&self) -> bool {
        false
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Dur => Value::whole(self.gap.span.duration()),
            Field::Dev => {
                let agent = self.scene.snap.names.agent(self.gap.agent);
                let gpu = agent.filter(|agent| agent.kind == AgentKind::Gpu);
                gpu.map_or(Value::None, |agent| Value::Number(f64::from(agent.number)))
            }
            _ => Value::None,
        }
    }
}
