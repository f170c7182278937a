//! Charts that fill their pane: a scale to the left, an axis below, and values between them, filled from below or as dots.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::marks::Marks;
use crate::theme::Role;
use roctop_model::Snapshot;
use roctop_model::stats::Trend;
use roctop_trace::item::Nanos;
use roctop_trace::units;

/// Columns that the scale takes.
pub(crate) const SCALE: u16 = 11;
/// Rows from which on one is the axis.
const MIN_ROWS: u16 = 3;
/// Rows from which on the scale has a value in the middle.
const MIN_ROWS_OF_MIDDLE: u16 = 7;
/// Columns between the labels of the axis at least.
const LABEL_COLUMNS: f64 = 14.0;

/// Points are bars where no more than this many share a column on the average.
const MAX_BARS: usize = 8;

/// A value beyond this multiple of the scale is marked.
const CLIPPED: f64 = 1.000_001;

/// A value of a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amount {
    pub(crate) value: f64,
    /// Nothing is known but the average of a longer time.
    pub(crate) is_average: bool,
}

impl From<f64> for Amount {
    fn from(value: f64) -> Self {
        Self {
            value,
            is_average: false,
        }
    }
}

impl From<u64> for Amount {
    fn from(value: u64) -> Self {
        (value as f64).into()
    }
}

/// The scale of a chart: what its top stands for, and values as text.
pub(crate) struct Scale<'a> {
    pub(crate) most: f64,
    pub(crate) text: &'a dyn Fn(f64) -> String,
}

/// The axis of a chart: its ends, and positions as text.
pub(crate) struct Axis<'a> {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Labels stand at multiples of it; 0: anywhere.
    pub(crate) grain: f64,
    pub(crate) text: &'a dyn Fn(f64) -> String,
}

/// Seconds before now: `-40 s`, `now`.
pub(crate) fn ago(at: f64) -> String {
    match -at {
        ..0.0005 => "now".into(),
        back if back < 1.0 => format!("-{:.0} ms", back * 1e3),
        back if back < 10.0 && (back - back.round()).abs() > 1e-6 => format!("-{back:.1} s"),
        back => format!("-{back:.0} s"),
    }
}

/// The axis of the last `seconds`, up to now.
pub(crate) fn last(seconds: f64) -> Axis<'static> {
    Axis {
        from: -seconds,
        to: 0.0,
        grain: 0.0,
        text: &ago,
    }
}

/// Seconds that a trend has values of: those of the run, a minute at most.
pub(crate) fn seconds(snap: &Snapshot, columns: usize) -> usize {
    let run = (snap.elapsed() / 1_000_000_000) as usize;
    run.clamp(2, Trend::SECONDS - 1).min(columns.max(2))
}

/// A duration on a scale.
pub(crate) fn nanos(value: f64) -> String {
    units::duration(value as Nanos)
}

/// The area of the values: right of the scale, above the axis.
fn inside(area: Rect) -> Rect {
    Rect {
        x: area.x + SCALE.min(area.width),
        width: area.width.saturating_sub(SCALE),
        height: area.height - u16::from(area.height >= MIN_ROWS),
        ..area
    }
}

/// Values that a chart of this width can show side by side.
pub(crate) fn columns(area: Rect, marks: Marks) -> usize {
    usize::from(inside(area).width) * marks.columns()
}

/// Draws `values` in all of an area, each as wide as there is room for, filled from below; of more values than columns the
/// youngest.
pub(crate) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    marks: Marks,
    values: &[Option<Amount>],
    scale: &Scale<'_>,
    axis: &Axis<'_>,
    role: Role,
) {
    let inner = inside(area);
    let room = usize::from(inner.width) * marks.columns();
    let left_out = values.len().saturating_sub(room);
    let from = axis.from + (axis.to - axis.from) * left_out as f64 / values.len().max(1) as f64;
    frame(canvas, area, scale, &Axis { from, ..*axis });
    let values = &values[left_out..];
    if values.is_empty() || scale.most <= 0.0 {
        return;
    }
    let rows = usize::from(inner.height);
    for x in 0..inner.width {
        let at = |column: usize| values[(usize::from(x) * marks.columns() + column) * values.len() / room];
        let here = [at(0), at(marks.columns() - 1)];
        let shares = here.map(|value| value.map_or(0.0, |value| value.value / scale.most));
        let is_average = here.iter().flatten().any(|value| value.is_average);
        let is_clipped = shares.iter().any(|share| *share > CLIPPED);
        if is_clipped {
            canvas.say(inner.x + x, inner.y, "▲", 1, Role::Warn);
        }
        for row in usize::from(is_clipped)..rows {
            let mark = match marks.filled(&shares, rows, rows - 1 - row) {
                // The texture of averages on the timeline.
                mark if is_average && mark != marks.sign(0) => '▚',
                mark => mark,
            };
            if mark != marks.sign(0) {
                let (x, y) = (inner.x + x, inner.y + row as u16);
                canvas.say(x, y, mark.encode_utf8(&mut [0; 4]), 1, role);
            }
        }
    }
}

/// Draws points by their places on axis and scale: a mark each, or a bar where they are few.
pub(crate) fn points(
    canvas: &mut Canvas<'_>,
    area: Rect,
    marks: Marks,
    points: &[(f64, f64)],
    scale: &Scale<'_>,
    axis: &Axis<'_>,
    role: Role,
) {
    frame(canvas, area, scale, axis);
    let inner = inside(area);
    let (columns, rows) = (
        usize::from(inner.width) * marks.columns(),
        usize::from(inner.height) * marks.rows(),
    );
    if columns == 0 || rows == 0 || scale.most <= 0.0 || axis.to <= axis.from {
        return;
    }
    let are_bars = points.len() <= columns * MAX_BARS;
    let mut cells = vec![0u8; usize::from(inner.width) * usize::from(inner.height)];
    for &(x, y) in points {
        let across = (x - axis.from) / (axis.to - axis.from);
        if !(0.0..=1.0).contains(&across) {
            continue;
        }
        let column = ((across * columns as f64) as usize).min(columns - 1);
        let up = ((y / scale.most).clamp(0.0, 1.0) * (rows - 1) as f64).round() as usize;
        let top = rows - 1 - up;
        for row in top..if are_bars { rows } else { top + 1 } {
            let cell = (row / marks.rows()) * usize::from(inner.width) + column / marks.columns();
            cells[cell] |= marks.bit(row % marks.rows(), column % marks.columns());
        }
    }
    for (at, bits) in cells.into_iter().enumerate().filter(|cell| cell.1 != 0) {
        let (x, y) = (at % usize::from(inner.width), at / usize::from(inner.width));
        let mark = marks.sign(bits);
        let (x, y) = (inner.x + x as u16, inner.y + y as u16);
        canvas.say(x, y, mark.encode_utf8(&mut [0; 4]), 1, role);
    }
}

/// Draws scale and axis.
fn frame(canvas: &mut Canvas<'_>, area: Rect, scale: &Scale<'_>, axis: &Axis<'_>) {
    let inner = inside(area);
    let middle = inner.height / 2;
    for row in 0..inner.height {
        let above = f64::from(inner.height - row) / f64::from(inner.height);
        let mark = match row {
            0 => (scale.text)(scale.most),
            _ if row + 1 == inner.height => "0".into(),
            _ if row == middle && inner.height >= MIN_ROWS_OF_MIDDLE => (scale.text)(scale.most * above),
            _ => String::new(),
        };
        let y = inner.y + row;
        canvas.right(inner.x.saturating_sub(2), y, &mark, Role::Muted);
        canvas.say(inner.x.saturating_sub(1), y, "┤", 1, Role::Border);
    }
    if inner.height == area.height || inner.width < 8 {
        return;
    }
    let y = inner.bottom();
    let span = axis.to - axis.from;
    let last = (axis.text)(axis.to);
    let last_width = units::width(&last) as u16;
    canvas.right(inner.right(), y, &last, Role::Muted);
    if span <= 0.0 {
        return;
    }
    let step = nice(span * LABEL_COLUMNS / f64::from(inner.width));
    let step = match axis.grain {
        0.0 => step,
        grain => (step / grain).ceil() * grain,
    };
    let mut number = (axis.from / step).ceil();
    while number * step < axis.to {
        let at = number * step;
        let x = inner.x + ((at - axis.from) / span * f64::from(inner.width)) as u16;
        let text = format!("╷{}", (axis.text)(at));
        if x + units::width(&text) as u16 + 1 + last_width <= inner.right() {
            canvas.say(x, y, &text, inner.right() - x, Role::Muted);
        }
        number += 1.0;
    }
}

/// The least of 1, 2, 5 × 10ⁿ that is not below.
fn nice(value: f64) -> f64 {
    let power = 10f64.powf(value.max(f64::MIN_POSITIVE).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let fits = steps.iter().find(|step| **step * power >= value * 0.999_999);
    fits.unwrap_or(&10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Depth, Theme};
    use ratatui::buffer::Buffer;

    fn drawn(marks: Marks, draw: impl Fn(&mut Canvas<'_>, Rect, Marks)) -> Vec<String> {
        let area = Rect::new(0, 0, 51, 5);
        let mut buffer = Buffer::empty(area);
        let theme = Theme::named("dark", Depth::C256).expect("a theme of this name is there");
        let mut canvas = Canvas {
            buffer: &mut buffer,
            theme: &theme,
        };
        draw(&mut canvas, area, marks);
        let rows = buffer.content().chunks(51);
        rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect())
            .collect()
    }

    #[test]
    fn a_chart_fills_its_pane_and_has_both_axes() {
        let values: Vec<Option<Amount>> = (0..20).map(|at| Some(Amount::from(at * 100))).collect();
        let lines = drawn(Marks::Blocks, |canvas, area, marks| {
            let scale = Scale {
                most: 1900.0,
                text: &nanos,
            };
            draw(canvas, area, marks, &values, &scale, &last(20.0), Role::GaugeMid);
        });
        assert!(
            lines[0].starts_with("  1.90 µs ┤") && lines[0].ends_with("▇▇██"),
            "{lines:#?}"
        );
        assert!(lines[3].starts_with("        0 ┤  ▂▂"), "{lines:#?}");
        assert_eq!(lines[4], "           ╷-20 s              ╷-10 s           now");
    }

    #[test]
    fn averages_have_a_texture() {
        let mut values = vec![Some(Amount::from(8)); 40];
        values[39] = Some(Amount {
            value: 8.0,
            is_average: true,
        });
        for marks in [Marks::Ascii, Marks::Blocks, Marks::Braille, Marks::Octants] {
            let lines = drawn(marks, |canvas, area, marks| {
                let scale = Scale {
                    most: 8.0,
                    text: &nanos,
                };
                draw(canvas, area, marks, &values, &scale, &last(40.0), Role::GaugeMid);
            });
            assert!(lines[0].ends_with('▚'), "{marks:?} {lines:#?}");
        }
    }

    #[test]
    fn dots_stand_at_their_places() {
        let lines = drawn(Marks::Braille, |canvas, area, marks| {
            let scale = Scale {
                most: 10.0,
                text: &nanos,
            };
            let mut all = vec![(-20.0, 0.0); 800];
            all.push((0.0, 10.0));
            points(canvas, area, marks, &all, &scale, &last(20.0), Role::GaugeMid);
        });
        assert!(lines[0].ends_with('⠈') && lines[3].contains("┤⡀"), "{lines:#?}");
        assert!(lines[1].ends_with(' '), "{lines:#?}");
    }

    #[test]
    fn few_points_are_bars() {
        let lines = drawn(Marks::Ascii, |canvas, area, marks| {
            let scale = Scale {
                most: 10.0,
                text: &nanos,
            };
            let all = [(-20.0, 5.0), (0.0, 10.0)];
            points(canvas, area, marks, &all, &scale, &last(20.0), Role::GaugeMid);
        });
        assert!(lines[..4].iter().all(|line| line.ends_with('*')), "{lines:#?}");
        assert!(lines[0].contains("┤ ") && lines[3].contains("┤*"), "{lines:#?}");
    }
}
