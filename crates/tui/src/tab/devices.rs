//! Devices: what each GPU does, as roctop saw it and as the driver says it.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::device_detail;
use super::gaps::{self, GapTable};

use crate::Pane;
use crate::Size;
use crate::jump::Target;
use crate::theme::Role;
use crate::widgets::canvas::{Canvas, left, top};
use crate::widgets::chart;
use crate::widgets::column::{Column, ColumnId, Heading, Shown, Worth};
use crate::widgets::table::{self, Scene, Table};
use roctop_model::gauges::DeviceRow;
use roctop_model::query::{Field, Subject, Value};
use roctop_model::snapshot::AgentRow;
use roctop_model::{LaneKey, Snapshot};
use roctop_trace::gauge::{Device, Reading};
use roctop_trace::item::{AgentId, NodeId};
use roctop_trace::units;

/// A GPU: as the program's agent, as the machine's device, or both.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) agent: Option<AgentId>,
    pub(crate) node: NodeId,
    number: u32,
    /// One of the processes on the GPU, counted from 1; 0: the GPU.
    part: u32,
}

pub(crate) struct DeviceTable;

/// What the driver says of it.
pub(crate) fn gauges<'a>(row: &Row, scene: &Scene<'a>) -> Option<&'a DeviceRow> {
    scene.snap.device_at(row.node)
}

/// A reading of it; when the driver was not asked at all, that is the reason.
fn reading<T: Clone>(row: &Row, scene: &Scene<'_>, get: impl Fn(&Device) -> &Reading<T>) -> Reading<T> {
    match gauges(row, scene) {
        Some(_) if row.part > 0 => Err("it is read of the GPU as a whole".into()),
        Some(device) => get(&device.now).clone(),
        None => Err("no sensors were read".into()),
    }
}

/// What roctop saw on it.
pub(crate) fn seen<'a>(row: &Row, scene: &Scene<'a>) -> Option<&'a AgentRow> {
    let id = row.agent?;
    scene.snap.values.agent(id)
}

/// Whose it is, where processes have GPUs of one number.
fn user(row: &Row, scene: &Scene<'_>) -> Option<String> {
    let (id, names) = (row.agent?, &scene.snap.names);
    match names.members(id).len() {
        _ if row.part > 0 => Some(names.agent_process(id)),
        0 => names.agent_user(id),
        processes => Some(format!("{processes} processes")),
    }
}

pub(crate) fn label(row: &Row, snap: &Snapshot) -> String {
    row.agent
        .map_or_else(|| format!("GPU{}", row.number), |agent| snap.names.agent_label(agent))
}

/// Product and instruction set.
pub(crate) fn product(row: &Row, scene: &Scene<'_>) -> String {
    let agent = row.agent.and_then(|id| scene.snap.names.agent(id));
    let device = gauges(row, scene).map(|device| &device.now);
    let pick = |of_agent: Option<&Arc<str>>, of_device: Option<&Arc<str>>| {
        let known = [of_agent, of_device]
            .into_iter()
            .flatten()
            .find(|text| !text.is_empty());
        known.map_or_else(String::new, ToString::to_string)
    };
    let product = pick(agent.map(|a| &a.product), device.map(|d| &d.product));
    let name = pick(agent.map(|a| &a.name), device.map(|d| &d.name));
    format!("{product} {name}").trim().to_string()
}

fn number(value: &Reading<f64>, decimals: usize) -> String {
    value
        .as_ref()
        .map_or_else(|_| units::MISSING.into(), |value| format!("{value:.decimals$}"))
}

fn worth(value: &Reading<f64>) -> Worth {
    value.as_ref().map_or(Worth::None, |value| Worth::Number(*value))
}

/// `151/192`, in GiB.
fn memory(row: &Row, scene: &Scene<'_>) -> String {
    let gib = |value: Reading<u64>| {
        value.map_or_else(
            |_| units::MISSING.into(),
            |bytes| format!("{:.0}", bytes as f64 / (1u64 << 30) as f64),
        )
    };
    let used = gib(reading(row, scene, |device| &device.memory_used));
    let total = reading(row, scene, |device| &device.memory_total);
    let agent = row.agent.and_then(|id| scene.snap.names.agent(id));
    let total = total.or_else(|why| agent.map(|agent| agent.memory).filter(|&bytes| bytes > 0).ok_or(why));
    format!("{used}/{}", gib(total))
}

macro_rules! gauge {
    ($title:literal, $name:literal, $width:literal, $rank:literal, $field:ident, $decimals:literal) => {
        Column {
            title: $title,
            name: $name,
            width: $width,
            rank: $rank,
            worth: |row, scene| worth(&reading(row, scene, |device| &device.$field)),
            text: Shown::Own(|row, scene, _| number(&reading(row, scene, |device| &device.$field), $decimals)),
        }
    };
}

/// The column that says whose a GPU is.
const OF: ColumnId = ColumnId("Process");

impl Table for DeviceTable {
    type Row = Row;
    const PANE: Pane = Pane::Devices;
    const TITLE: &'static str = "Devices";
    const WHAT: &'static str = "GPU";
    const SORT: ColumnId = ColumnId("Device");
    const NAMES: &'static [&'static str] = &["Device", "Process"];
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "GPU ",
            name: "Device",
            width: 5,
            rank: 0,
            // Downwards by name is upwards by number.
            worth: |row, _| Worth::Number(-f64::from(row.number)),
            text: Shown::Own(|row, scene, width| {
                let label = label(row, scene.snap);
                units::fit(if row.part > 0 { " └" } else { &label }, width)
            }),
        },
        Column {
            title: "OF ",
            name: "Process",
            width: 11,
            rank: 1,
            worth: |row, scene| Worth::text(user(row, scene)),
            text: Shown::Left,
        },
        Column {
            title: "",
            name: "Busy_Bar",
            width: 12,
            rank: 5,
            worth: |_, _| Worth::None,
            text: Shown::Own(|row, scene, width| {
                let bar = chart::bar(seen(row, scene).map_or(0.0, |agent| agent.share), width);
                units::fit(&bar, width)
            }),
        },
        Column {
            title: "BUSY%",
            name: "Busy_Share",
            width: 5,
            rank: 0,
            worth: |row, scene| Worth::number(seen(row, scene).map(|agent| agent.share)),
            text: Shown::Share,
        },
        Column {
            title: "DRIVER%",
            name: "Driver_Busy_Share",
            width: 7,
            rank: 4,
            worth: |row, scene| worth(&reading(row, scene, |device| &device.busy)),
            text: Shown::Share,
        },
        Column {
            title: "VRAM GiB",
            name: "Memory_Used_Bytes",
            width: 8,
            rank: 1,
            worth: |row, scene| {
                let used = reading(row, scene, |device| &device.memory_used);
                used.map_or(Worth::None, Worth::whole)
            },
            text: Shown::Own(|row, scene, _| memory(row, scene)),
        },
        gauge!("W", "Power_W", 5, 1, power, 0),
        gauge!("°C", "Junction_C", 4, 1, junction, 0),
        gauge!("SCLK", "Shader_Clock_MHz", 5, 2, shader_clock, 0),
        gauge!("MCLK", "Memory_Clock_MHz", 5, 6, memory_clock, 0),
        Column {
            title: "KERNELS",
            name: "Dispatches",
            width: 8,
            rank: 3,
            worth: |row, scene| Worth::maybe(seen(row, scene).map(|agent| agent.dispatches)),
            text: Shown::Count,
        },
        Column {
            title: "PRODUCT",
            name: "Product",
            width: 0,
            rank: 3,
            worth: |row, scene| Worth::Text(product(row, scene)),
            text: Shown::Plain,
        },
    ];

    fn heading(scene: &Scene<'_>, column: ColumnId) -> Heading {
        let is_said = || {
            let mut agents = scene.snap.names.agents().iter();
            agents.any(|agent| scene.snap.names.agent_user(agent.id).is_some())
        };
        if column == OF && !is_said() {
            Heading::Absent
        } else {
            Heading::Usual
        }
    }

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let snap = scene.snap;
        let row = |agent: AgentId, part| {
            let known = snap.names.agent(agent)?;
            Some(Row {
                agent: Some(agent),
                node: snap.names.node_of(known),
                number: known.number,
                part,
            })
        };
        let mut rows: Vec<Row> = Vec::new();
        for gpu in snap.gpus() {
            rows.extend(row(gpu.row.id, 0));
            rows.extend(
                gpu.parts
                    .iter()
                    .zip(1..)
                    .filter_map(|(process, part)| row(process.id, part)),
            );
        }
        for device in &snap.values.gauges.devices {
            if rows.iter().all(|row| row.node != device.now.node) {
                rows.push(Row {
                    agent: None,
                    node: device.now.node,
                    number: device.now.number,
                    part: 0,
                });
            }
        }
        rows.retain(|row| scene.ui.filter.accepts(&DeviceSubject { row }));
        rows
    }

    fn all(scene: &Scene<'_>) -> usize {
        scene.snap.gpus().len()
    }

    /// Processes stand below their GPU, whatever sorts.
    fn arrange(rows: Vec<Row>, _: &Scene<'_>) -> Vec<Row> {
        let (gpus, mut parts): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.part == 0);
        parts.sort_by_key(|row| row.part);
        let mut out = Vec::with_capacity(gpus.len() + parts.len());
        for gpu in gpus {
            let node = gpu.node;
            out.push(gpu);
            let (own, rest): (Vec<Row>, Vec<Row>) = parts.into_iter().partition(|row| row.node == node);
            out.extend(own);
            parts = rest;
        }
        // Of a GPU that the filter left out.
        out.extend(parts);
        out
    }

    fn least(_: u16) -> u16 {
        14
    }

    fn key(row: &Row) -> u64 {
        row.agent.map_or(
            1 << 63 | u64::from(row.node.machine) << 32 | u64::from(row.node.node),
            |agent| u64::from(agent.0),
        )
    }

    /// To its longest gap.
    fn target(row: &Row, scene: &Scene<'_>) -> Target {
        let usage = scene.snap.analysis().whole.iter().find(|usage| {
            row.agent
                .is_some_and(|agent| usage.agent == agent || usage.agents.contains(&agent))
        });
        usage
            .and_then(|usage| usage.gaps.first())
            .map_or(Target::Nowhere("it had no long gap"), |gap| {
                Target::Stretch(Some(LaneKey::Agent(gap.agent)), gap.span)
            })
    }

    fn term(row: &Row, _: &Scene<'_>) -> Option<String> {
        Some(format!("dev={}", row.number))
    }

    fn role(row: &Row, scene: &Scene<'_>) -> Role {
        if seen(row, scene).is_none_or(|agent| agent.dispatches == 0) {
            Role::Muted
        } else {
            Role::Text
        }
    }
}

struct DeviceSubject<'a> {
    row: &'a Row,
}

impl Subject for DeviceSubject<'_> {
    fn any_name(&self, _: &dyn Fn(&str) -> bool) -> bool {
        false
    }
    /// Words hide no device.
    fn is_named(&self) -> bool {
        false
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Dev => Value::Number(f64::from(self.row.number)),
            _ => Value::None,
        }
    }
}

/// Draws the view.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, size: Size) {
    let window = units::duration(scene.snap.values.window);
    let right = Some(format!("BUSY%: a kernel ran, of the last {window}"));
    if size < Size::Medium {
        table::panel::<DeviceTable>(canvas, area, scene, right, u8::MAX);
        return;
    }
    let wanted = (DeviceTable::rows(scene).len() as u16).saturating_add(3);
    if area.height < 20 {
        // Few rows and many columns: lists to the left, the selected one to the right.
        let (lists, detail_area) = left(area, area.width / 2);
        let (upper, gaps) = top(lists, wanted.min(lists.height / 2).max(4));
        let selected = table::panel::<DeviceTable>(canvas, upper, scene, right, u8::MAX);
        table::panel::<GapTable>(canvas, gaps, scene, Some(gaps::title(scene)), u8::MAX);
        if let Some(row) = selected {
            device_detail::draw(canvas, detail_area, scene, &row);
        }
        return;
    }
    let (upper, rest) = top(area, wanted.min(area.height / 4).max(4));
    let selected = table::panel::<DeviceTable>(canvas, upper, scene, right, u8::MAX);
    let (middle, rest) = top(rest, wanted.min(rest.height / 3).max(4));
    device_detail::breakdown(canvas, middle, scene);
    // Few gaps leave their rows to the detail.
    let gap_rows = (GapTable::all(scene) as u16).saturating_add(3).max(4);
    let (gaps, detail_area) = top(rest, (rest.height * 2 / 5).min(gap_rows));
    table::panel::<GapTable>(canvas, gaps, scene, Some(gaps::title(scene)), u8::MAX);
    if let Some(row) = selected {
        device_detail::draw(canvas, detail_area, scene, &row);
    }
}
