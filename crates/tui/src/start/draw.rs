//! How the screen of `roctop` alone looks.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{Click, KEYS, Line, SessionRow, Start};
use crate::Size;
use crate::key::Key;
use crate::theme::{Role, Theme};
use crate::too_small;
use crate::widgets::canvas::{Canvas, top};
use crate::widgets::history::{self, Amount, Scale};
use crate::widgets::panes::across;
use crate::widgets::plot;
use roctop_model::gauges::{DeviceRow, GaugeKind, SECONDS};
use roctop_trace::gauge::Reading;
use roctop_trace::units;

/// Columns of a chart and rows of one with its heading, at least.
const CHART_COLUMNS: u16 = 38;
const CHART_ROWS: u16 = 5;
/// Rows of the list of sessions with its frame and heading: at least, and at most while GPUs need room.
const MIN_SESSIONS: u16 = 5;
const MAX_SESSIONS: u16 = 12;
/// ns in a second.
const SECOND: u64 = 1_000_000_000;

/// Draws everything into a buffer of the terminal's size.
pub fn view(start: &Start, theme: &Theme, buffer: &mut Buffer) {
    let area = buffer.area;
    start.clicks.borrow_mut().clear();
    let mut canvas = Canvas { buffer, theme };
    if Size::of(area.width, area.height) == Size::Tiny {
        too_small(&mut canvas, area, "roctop");
        return;
    }
    let (head, rest) = top(area, 1);
    let feet = if start.line.is_some() { 2 } else { 1 };
    let (body, foot) = top(rest, rest.height.saturating_sub(feet));
    title(&mut canvas, head, start);
    let wanted = (start.sessions.len() as u16).saturating_add(3);
    let listed = if start.gauges.devices.is_empty() {
        body.height.saturating_sub(NO_GPU_ROWS)
    } else {
        wanted.clamp(MIN_SESSIONS, MAX_SESSIONS).min(body.height / 2)
    };
    let (upper, lower) = top(body, body.height - listed);
    gpus(&mut canvas, upper, start);
    sessions(&mut canvas, lower, start);
    footer(&mut canvas, foot, start);
    if start.is_help {
        help(&mut canvas, body);
    }
}

fn title(canvas: &mut Canvas<'_>, area: Rect, start: &Start) {
    let x = canvas.say(area.x + 1, area.y, "roctop", 6, Role::Title) + 2;
    let text = format!(
        "{}   {}",
        units::counted(start.gauges.devices.len() as u64, "GPU", "GPUs"),
        units::counted(start.sessions.len() as u64, "session", "sessions"),
    );
    canvas.say(x, area.y, &text, area.right().saturating_sub(x), Role::Accent);
    canvas.right(area.right().saturating_sub(1), area.y, "● LIVE", Role::Live);
}

/// Rows of the pane without a GPU.
const NO_GPU_ROWS: u16 = 5;

fn gpus(canvas: &mut Canvas<'_>, area: Rect, start: &Start) {
    let devices = &start.gauges.devices;
    let inner = canvas.frame(area, "GPUs", "as the driver reports them");
    if devices.is_empty() {
        let lines = if start.is_read {
            [
                "No AMD GPU found: the driver's topology is not there or lists none.",
                "'roctop doctor' says what is missing. d shows the demo, which needs no GPU.",
            ]
        } else {
            ["Reading the driver's files …", ""]
        };
        return canvas.empty(inner, &lines.map(str::to_owned));
    }
    if inner.height < 2 {
        return;
    }
    // All in a row each; those that have no room are some keys away.
    let room = usize::from(inner.height - 1);
    let last = devices.len().saturating_sub(room);
    start.last_first_gpu.set(last);
    let first = start.first_gpu.min(last);
    let shown = &devices[first..devices.len().min(first + room)];
    let rest = usize::from(inner.height - 1) - shown.len();
    let per_gpu = (rest / shown.len().max(1)) as u16;
    let has_charts = per_gpu >= CHART_ROWS;
    let name = name_columns(inner.width, has_charts);
    canvas.say(
        inner.x + 1,
        inner.y,
        &heads(name, has_charts),
        inner.width.saturating_sub(2),
        Role::Head,
    );
    for (y, row) in (inner.y + 1..).zip(shown) {
        let end = canvas.say(
            inner.x + 1,
            y,
            &cells(row, name),
            inner.width.saturating_sub(2),
            Role::Text,
        );
        if !has_charts {
            spark(
                canvas,
                Rect {
                    x: end + 2,
                    y,
                    width: inner.right().saturating_sub(end + 3),
                    height: 1,
                },
                start,
                row,
            );
        }
    }
    let cut = devices.len() - shown.len();
    if cut > 0 {
        let text = format!(" {cut} more: h l ");
        canvas.right(area.right().saturating_sub(2), area.bottom() - 1, &text, Role::Muted);
    }
    if has_charts {
        for (at, row) in (0u16..).zip(shown) {
            let y = inner.y + 1 + shown.len() as u16 + at * per_gpu;
            charts(
                canvas,
                Rect {
                    y,
                    height: per_gpu,
                    ..inner
                },
                start,
                row,
            );
        }
    }
}

/// Columns of the GPUs' names: curves in the rows have some of the width.
fn name_columns(width: u16, has_charts: bool) -> usize {
    const VALUES: usize = 51;
    const CURVE: usize = 14;
    let room = usize::from(width).saturating_sub(VALUES + if has_charts { 0 } else { CURVE });
    room.clamp(11, 26)
}

fn heads(name: usize, has_charts: bool) -> String {
    let last = if has_charts { "" } else { "LAST MINUTE" };
    let heads = format!(
        "{:<name$} {:>6} {:>13} {:>9} {:>6} {:>8}  {last}",
        "GPU", "LOAD", "MEMORY", "POWER", "TEMP", "CLOCK"
    );
    heads.trim_end().to_owned()
}

/// A reading, or that there is none.
fn shown<T>(reading: &Reading<T>, text: impl Fn(&T) -> String) -> String {
    reading.as_ref().map_or_else(|_| units::MISSING.into(), text)
}

/// What is known of a GPU in a row.
fn cells(row: &DeviceRow, columns: usize) -> String {
    let device = &row.now;
    let whole = format!("GPU{} {}  {}", device.number, device.name, device.product);
    let name = units::items(whole.trim_end(), columns).replace("  ", " ");
    let memory = shown(&device.memory_used, |used| {
        let total = shown(&device.memory_total, |total| units::bytes(*total));
        format!("{}/{total}", units::bytes(*used))
    });
    let power = shown(&device.power, |power| match &device.power_cap {
        Ok(cap) => format!("{power:.0}/{cap:.0} W"),
        Err(_) => format!("{power:.0} W"),
    });
    let hottest = device.junction.as_ref().or(device.edge.as_ref());
    let line = format!(
        "{} {:>6} {:>13} {:>9} {:>6} {:>8}",
        units::fit(name.trim_end(), columns),
        shown(&device.busy, |busy| format!("{} %", units::percent(*busy))),
        memory.replace(" GiB/", "/"),
        power,
        hottest.map_or_else(|_| units::MISSING.into(), |heat| format!("{heat:.0} °C")),
        shown(&device.shader_clock, |clock| format!("{clock:.0} MHz")),
    );
    let throttled = device.throttle.as_ref().ok().filter(|why| why.as_ref() != "none");
    match throttled {
        Some(why) => format!("{line}  ▲ throttled: {why}"),
        None => line,
    }
}

/// Values of the last minute, oldest first: moved by whole columns, so that few cells change.
fn minute(row: &DeviceRow, kind: GaugeKind, columns: usize) -> (Vec<Option<Amount>>, f64) {
    let (series, whole) = plot::of_device(row, kind);
    let step = (SECONDS as u64 * SECOND).div_ceil(columns.max(1) as u64).max(1);
    let end = row.now.at.next_multiple_of(step);
    let from = end.saturating_sub(step * columns as u64);
    let values = series.columns(from, step, columns).into_iter();
    (values.map(|value| value.map(Amount::from)).collect(), whole)
}

/// The load of the last minute in the rest of a row.
fn spark(canvas: &mut Canvas<'_>, area: Rect, start: &Start, row: &DeviceRow) {
    if area.width < 8 {
        return;
    }
    let marks = start.marks;
    let columns = usize::from(area.width) * marks.columns();
    let (values, whole) = minute(row, GaugeKind::Busy, columns);
    for x in 0..area.width {
        let share = |at: usize| values[usize::from(x) * marks.columns() + at].map_or(0.0, |value| value.value / whole);
        let mark = marks.filled(&[share(0), share(marks.columns() - 1)], 1, 0);
        canvas.say(area.x + x, area.y, mark.encode_utf8(&mut [0; 4]), 1, Role::GaugeMid);
    }
}

/// The curves of a GPU's sensors.
fn charts(canvas: &mut Canvas<'_>, area: Rect, start: &Start, row: &DeviceRow) {
    let read = GaugeKind::ALL.into_iter();
    let read = read.filter(|kind| !row.series[*kind as usize].is_empty());
    let most = usize::from(area.width / CHART_COLUMNS).max(1);
    let read: Vec<GaugeKind> = read.take(most).collect();
    if read.is_empty() {
        let why = row.now.busy.as_ref().err().map_or("", |why| why);
        let text = format!("GPU{}: no curves, no sensor was read: {why}", row.now.number);
        return canvas.empty(area, &[text]);
    }
    for (kind, part) in read.iter().zip(across(area, read.len() as u16)) {
        let heading = format!("GPU{} {}", row.now.number, plot::word(*kind));
        let below = canvas.headed(part, &heading);
        let columns = history::columns(below, start.marks).max(1);
        let (values, whole) = minute(row, *kind, columns);
        let text = |value: f64| plot::reading(*kind, value);
        let scale = Scale {
            most: whole,
            text: &text,
        };
        let axis = history::last(SECONDS as f64);
        history::draw(canvas, below, start.marks, &values, &scale, &axis, Role::GaugeMid);
    }
}

fn sessions(canvas: &mut Canvas<'_>, area: Rect, start: &Start) {
    let inner = canvas.frame(area, "Sessions", "programs under roctop");
    if start.sessions.is_empty() {
        let lines = [
            "No session is running.",
            "n runs a program here; 'roctop ./app' starts one in another terminal.",
        ];
        return canvas.empty(inner, &lines.map(str::to_owned));
    }
    let head = format!("{:<10} {:<12} {:>9}  COMMAND", "SESSION", "PID", "RUNNING");
    canvas.say(inner.x + 2, inner.y, &head, inner.width.saturating_sub(2), Role::Head);
    let room = usize::from(inner.height.saturating_sub(1)).max(1);
    let chosen = start.selected_at().unwrap_or(0);
    let first = (chosen + 1).saturating_sub(room);
    for (line, (at, row)) in start.sessions.iter().enumerate().skip(first).take(room).enumerate() {
        let place = Rect {
            y: inner.y + 1 + line as u16,
            height: 1,
            ..inner
        };
        if place.y >= inner.bottom() {
            break;
        }
        let text = units::fit(&session(row, start.now), usize::from(inner.width.saturating_sub(2)));
        if at == chosen {
            canvas.say(place.x, place.y, "▸ ", 2, Role::Selected);
            canvas.say(place.x + 2, place.y, &text, inner.width - 2, Role::Selected);
        } else {
            canvas.say(place.x + 2, place.y, &text, inner.width.saturating_sub(2), Role::Text);
        }
        start.clicks.borrow_mut().push((place, Click::Session(at)));
    }
}

fn session(row: &SessionRow, now: u64) -> String {
    let pids = match &row.pids[..] {
        [] => units::MISSING.to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} +{}", rest.len()),
    };
    let running = row.began.map_or_else(
        || units::MISSING.into(),
        |began| units::clock(now.saturating_sub(began)),
    );
    let recording = row.recording.as_ref().map(|place| format!("   ● REC {place}"));
    format!(
        "{:<10} {pids:<12} {running:>9}  {}{}",
        row.name,
        row.command,
        recording.unwrap_or_default()
    )
}

fn footer(canvas: &mut Canvas<'_>, area: Rect, start: &Start) {
    if let Some(line) = &start.line {
        return prompt(canvas, area, line);
    }
    let room = area.width.saturating_sub(2);
    if let Some(said) = &start.said {
        canvas.say(area.x + 1, area.y, &units::elide(said, room as usize), room, Role::Warn);
        return;
    }
    let mut x = area.x + 1;
    for (keys, hint, _) in KEYS.iter().filter(|key| !key.1.is_empty()) {
        let key = keys[0];
        let from = x;
        x = canvas.say(x, area.y, &key.to_string(), 10, Role::Key);
        x = canvas.say(x + 1, area.y, hint, area.right().saturating_sub(x + 1), Role::Muted);
        let place = Rect {
            x: from,
            width: x - from,
            height: 1,
            ..area
        };
        start.clicks.borrow_mut().push((place, Click::Key(key)));
        x += 3;
    }
}

fn prompt(canvas: &mut Canvas<'_>, area: Rect, line: &Line) {
    let (row, below) = top(area, 1);
    let label = line.wanted.label();
    let from = canvas.say(row.x + 1, row.y, label, row.width, Role::Key);
    let room = usize::from(row.right().saturating_sub(from + 1)).max(1);
    // The cursor is always seen.
    let skipped = (line.prompt.cursor + 1).saturating_sub(room);
    let text = line.prompt.text() + " ";
    for (at, c) in text.chars().enumerate().skip(skipped).take(room) {
        let x = from + (at - skipped) as u16;
        canvas.say(x, row.y, c.encode_utf8(&mut [0; 4]), 1, Role::Prompt);
        if at == line.prompt.cursor {
            let cell = Rect { x, width: 1, ..row };
            canvas.paint(cell, Role::Selected);
        }
    }
    let (text, role) = match &line.prompt.error {
        Some(error) => (error.message.clone(), Role::Bad),
        None => (
            format!("{}   enter do it   esc cancel", line.wanted.help()),
            Role::Muted,
        ),
    };
    let room = below.width.saturating_sub(2);
    canvas.say(below.x + 1, below.y, &units::elide(&text, room as usize), room, role);
}

fn help(canvas: &mut Canvas<'_>, area: Rect) {
    let (width, height) = (66.min(area.width), (KEYS.len() as u16 + 4).min(area.height));
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 3,
        width,
        height,
    };
    canvas.clear(place);
    let inner = canvas.frame(place, "Keys", "any key closes");
    for (y, (keys, _, does)) in (inner.y + 1..inner.bottom()).zip(KEYS) {
        let keys: Vec<String> = keys.iter().map(Key::to_string).collect();
        canvas.say(inner.x + 2, y, &keys.join(" "), 12, Role::Key);
        canvas.say(inner.x + 15, y, does, inner.width.saturating_sub(16), Role::Text);
    }
}
