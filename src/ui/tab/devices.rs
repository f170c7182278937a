//! Devices: what each GPU does, as roctop saw it and as the driver says it.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::why_empty;
use crate::filter::{Field, Subject, Value};
use crate::format;
use crate::gauge::{Device, Reading};
use crate::item::{AgentId, AgentKind};
use crate::model::Snapshot;
use crate::model::gauges::DeviceRow;
use crate::model::snapshot::AgentRow;
use crate::ui::Size;
use crate::ui::part::canvas::{Canvas, top};
use crate::ui::part::chart;
use crate::ui::part::table::{self, Column, Look, Scene, Table, Worth};
use crate::ui::theme::Role;

/// A GPU: as the program's agent, as the machine's device, or both.
pub(crate) struct Row {
    pub(crate) agent: Option<AgentId>,
    node: u32,
    number: u32,
}

pub(crate) struct DeviceTable;

/// What the driver says of it.
fn gauges<'a>(row: &Row, scene: &Scene<'a>) -> Option<&'a DeviceRow> {
    let devices = &scene.snap.values.gauges.devices;
    devices.iter().find(|device| device.now.node == row.node)
}

/// A reading of it; when the driver was not asked at all, that is the reason.
fn reading<T: Clone>(row: &Row, scene: &Scene<'_>, get: impl Fn(&Device) -> &Reading<T>) -> Reading<T> {
    match gauges(row, scene) {
        Some(device) => get(&device.now).clone(),
        None => Err("the driver's files were not read".into()),
    }
}

/// What roctop saw on it.
pub(crate) fn seen<'a>(row: &Row, scene: &Scene<'a>) -> Option<&'a AgentRow> {
    let id = row.agent?;
    scene.snap.values.agents.iter().find(|agent| agent.id == id)
}

fn label(row: &Row, snap: &Snapshot) -> String {
    row.agent
        .map_or_else(|| format!("GPU{}", row.number), |agent| snap.names.agent_label(agent))
}

/// Product and instruction set.
fn product(row: &Row, scene: &Scene<'_>) -> String {
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
        .map_or_else(|_| format::MISSING.into(), |value| format!("{value:.decimals$}"))
}

fn worth(value: &Reading<f64>) -> Worth {
    value.as_ref().map_or(Worth::None, |value| Worth::Number(*value))
}

/// `151/192`, in GiB.
fn memory(row: &Row, scene: &Scene<'_>) -> String {
    let gib = |value: Reading<u64>| {
        value.map_or_else(
            |_| format::MISSING.into(),
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
            text: |row, scene, _| number(&reading(row, scene, |device| &device.$field), $decimals),
        }
    };
}

impl Table for DeviceTable {
    type Row = Row;
    const SORT: usize = 0;
    const COLUMNS: &'static [Column<Row>] = &[
        Column {
            title: "GPU",
            name: "Device",
            width: 5,
            rank: 0,
            // Downwards by name is upwards by number.
            worth: |row, _| Worth::Number(-f64::from(row.number)),
            text: |row, scene, width| format::fit(&label(row, scene.snap), width),
        },
        Column {
            title: "",
            name: "Busy_Bar",
            width: 12,
            rank: 5,
            worth: |_, _| Worth::None,
            text: |row, scene, width| {
                let bar = chart::bar(seen(row, scene).map_or(0.0, |agent| agent.share), width);
                format::fit(&bar, width)
            },
        },
        Column {
            title: "BUSY%",
            name: "Busy_Share",
            width: 5,
            rank: 0,
            worth: |row, scene| seen(row, scene).map_or(Worth::None, |agent| Worth::Number(agent.share)),
            text: |row, scene, _| {
                seen(row, scene).map_or_else(|| format::MISSING.into(), |agent| format::percent(agent.share))
            },
        },
        Column {
            title: "DRIVER%",
            name: "Driver_Busy_Share",
            width: 7,
            rank: 4,
            worth: |row, scene| worth(&reading(row, scene, |device| &device.busy)),
            text: |row, scene, _| {
                reading(row, scene, |device| &device.busy).map_or_else(|_| format::MISSING.into(), format::percent)
            },
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
            text: |row, scene, _| memory(row, scene),
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
            text: |row, scene, _| {
                seen(row, scene).map_or_else(|| format::MISSING.into(), |agent| format::count(agent.dispatches))
            },
        },
        Column {
            title: "PRODUCT",
            name: "Product",
            width: 0,
            rank: 3,
            worth: |row, scene| Worth::Text(product(row, scene)),
            text: |row, scene, _| product(row, scene),
        },
    ];

    fn rows(scene: &Scene<'_>) -> Vec<Row> {
        let snap = scene.snap;
        let gpus = snap
            .names
            .agents()
            .iter()
            .filter(|agent| agent.kind == AgentKind::Gpu && !agent.name.is_empty());
        let mut rows: Vec<Row> = gpus
            .map(|agent| Row {
                agent: Some(agent.id),
                node: agent.node,
                number: agent.number,
            })
            .collect();
        for device in &snap.values.gauges.devices {
            if rows.iter().all(|row| row.node != device.now.node) {
                rows.push(Row {
                    agent: None,
                    node: device.now.node,
                    number: device.now.number,
                });
            }
        }
        rows.retain(|row| scene.ui.filter.accepts(&DeviceSubject { row, scene }));
        rows
    }

    fn least(_: u16) -> u16 {
        14
    }

    fn key(row: &Row) -> u64 {
        row.agent
            .map_or(1 << 32 | u64::from(row.node), |agent| u64::from(agent.0))
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
    scene: &'a Scene<'a>,
}

impl Subject for DeviceSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(&label(self.row, self.scene.snap)) || test(&product(self.row, self.scene))
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
    let state = scene.ui.table();
    let mut rows = table::sorted::<DeviceTable>(scene, state);
    let detail_rows = if size < Size::Medium {
        0
    } else {
        (area.height / 2).min(14)
    };
    let (upper, lower) = top(area, area.height - detail_rows);
    let window = format::duration(scene.snap.values.window);
    let inner = canvas.frame(upper, "Devices", &format!("BUSY%: a kernel ran, of the last {window}"));
    if rows.is_empty() {
        return canvas.empty(inner, &why_empty(scene, "GPU", scene.snap.names.agents().len()));
    }
    let look = Look {
        sort: state.sort,
        selected: state.selected,
        offset: Some(&state.offset),
        rank: u8::MAX,
    };
    table::draw::<DeviceTable>(canvas, inner, scene, &rows, &look);
    if detail_rows > 0 {
        let at = rows
            .iter()
            .position(|row| state.selected == Some(DeviceTable::key(row)));
        let row = rows.swap_remove(at.unwrap_or(0));
        detail(canvas, lower, scene, &row);
    }
}

/// A reading with its unit; its absence with the reason.
fn told(word: &str, value: &Reading<f64>, decimals: usize, unit: &str) -> String {
    match value {
        Ok(value) => format!("{word} {value:.decimals$}{unit}"),
        Err(_) => format!("{word} {}", format::MISSING),
    }
}

fn detail(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &Row) {
    let place = gauges(row, scene).map_or("", |device| &device.now.location);
    let title = format!("{} {} {place}", label(row, scene.snap), product(row, scene));
    let inner = canvas.frame(area, title.trim(), &format!("node {}", row.node));
    let mut lines: Vec<(String, Role)> = Vec::new();
    if let Some(agent) = seen(row, scene) {
        let text = format!(
            "busy {} % of the last {}   {} kernels   {} streams   {} queues   busy so far {}",
            format::percent(agent.share),
            format::duration(scene.snap.values.window),
            format::grouped(agent.dispatches),
            agent.streams,
            agent.queues,
            format::duration(agent.busy),
        );
        lines.push((text, Role::Text));
        lines.push((format!("30 s {}", chart::sparkline(&agent.trend)), Role::GaugeMid));
    } else {
        lines.push(("the program does not use this GPU".into(), Role::Muted));
    }
    match gauges(row, scene) {
        Some(device) => lines.extend(driver(&device.now)),
        None => lines.push((
            "power, temperatures, clocks, memory: – (the driver's files were not read)".into(),
            Role::Muted,
        )),
    }
    for (i, (text, role)) in lines.iter().take(inner.height as usize).enumerate() {
        let y = inner.y + i as u16;
        canvas.say(inner.x + 1, y, text, inner.width.saturating_sub(2), *role);
    }
}

/// What the driver says, and why some of it is missing.
fn driver(device: &Device) -> Vec<(String, Role)> {
    let share = |value: &Reading<f64>| value.clone().map(|share| share * 100.0);
    let words = [
        [
            told("driver's busy", &share(&device.busy), 1, " %"),
            told("memory busy", &share(&device.memory_busy), 1, " %"),
            told("power", &device.power, 0, " W"),
            told("of", &device.power_cap, 0, " W"),
        ],
        [
            told("edge", &device.edge, 0, " °C"),
            told("junction", &device.junction, 0, " °C"),
            told("memory", &device.memory_temperature, 0, " °C"),
            format!(
                "throttle {}",
                device.throttle.as_ref().map_or(format::MISSING, |why| why)
            ),
        ],
        [
            told("SCLK", &device.shader_clock, 0, ""),
            told("MCLK", &device.memory_clock, 0, ""),
            told("FCLK", &device.fabric_clock, 0, " MHz"),
            format!(
                "link {} {}",
                device.link.as_ref().map_or(format::MISSING, |link| link),
                device
                    .link_peak
                    .as_ref()
                    .map_or_else(|_| String::new(), |peak| format::bandwidth(*peak))
            ),
        ],
    ];
    let mut lines: Vec<(String, Role)> = words.iter().map(|words| (words.join("   "), Role::Text)).collect();
    for holder in device.holders.iter().take(4) {
        let held = holder
            .memory
            .as_ref()
            .map_or_else(|_| format::MISSING.into(), |&held| format::bytes(held));
        lines.push((
            format!("pid {:<8} holds {held:>9}  {}", holder.pid, holder.name),
            Role::Text,
        ));
    }
    let readings = [
        ("busy", device.busy.as_ref().err()),
        ("memory", device.memory_used.as_ref().err()),
        ("power", device.power.as_ref().err()),
        ("temperature", device.junction.as_ref().err()),
        ("clock", device.shader_clock.as_ref().err()),
        ("throttle", device.throttle.as_ref().err()),
        ("link", device.link.as_ref().err()),
    ];
    let mut reasons: Vec<(&Arc<str>, Vec<&str>)> = Vec::new();
    for (word, why) in readings {
        let Some(why) = why else { continue };
        match reasons.iter_mut().find(|known| known.0 == why) {
            Some(known) => known.1.push(word),
            None => reasons.push((why, vec![word])),
        }
    }
    lines.extend(reasons.iter().map(|(why, words)| {
        let text = format!("{} {}: {why}", words.join(", "), format::MISSING);
        (text, Role::Muted)
    }));
    lines
}
