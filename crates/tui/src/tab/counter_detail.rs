//! A counter in detail: a minute of a device's, or the kernels that one of dispatches counted.

use ratatui::layout::Rect;

use super::counters::{amount, device, state};
use crate::NameForm;
use crate::theme::Role;
use crate::widgets::canvas::Canvas;
use crate::widgets::chart;
use crate::widgets::table::Scene;
use roctop_model::gauges::{CounterRow, SECONDS};
use roctop_trace::units;

fn title(row: &CounterRow, scene: &Scene<'_>) -> String {
    format!("{} {} {}", row.counter.name, row.counter.unit, device(row, scene))
}

/// A minute of a device's counter.
pub(super) fn history(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &CounterRow) {
    let values = row.history.last(scene.snap.now, SECONDS);
    let right = format!(
        "now {}  avg {}  min {}  max {}",
        amount(row.now.map(|now| now.1)),
        amount(row.range.average()),
        amount((row.range.count > 0).then_some(row.range.min)),
        amount((row.range.count > 0).then_some(row.range.max)),
    );
    let inner = canvas.frame(area, &title(row, scene), &right);
    if inner.height == 0 || inner.width < 20 {
        return;
    }
    if row.range.count == 0 {
        return canvas.empty(inner, &[format!("no value yet; {}", state(row, scene.snap))]);
    }
    let most = values
        .iter()
        .flatten()
        .copied()
        .fold(0.0f64, f64::max)
        .max(f64::MIN_POSITIVE);
    let columns = (inner.width - 12) as usize;
    let wide = (columns / values.len()).max(1);
    for line in 0..inner.height {
        let low = f64::from(inner.height - 1 - line) / f64::from(inner.height);
        let text: String = values[values.len().saturating_sub(columns)..]
            .iter()
            .flat_map(|value| {
                let part = value.map_or(0.0, |value| value / most - low) * f64::from(inner.height);
                let mark = match value {
                    None => ' ',
                    Some(_) if part <= 0.0 && line + 1 < inner.height => ' ',
                    Some(_) => chart::level(((part * 8.0).round().clamp(1.0, 8.0)) as u64, 8),
                };
                std::iter::repeat_n(mark, wide)
            })
            .collect();
        let scale = match line {
            0 => amount(Some(most)),
            _ if line + 1 == inner.height => "0".into(),
            _ => String::new(),
        };
        canvas.right(inner.x + 9, inner.y + line, &scale, Role::Muted);
        canvas.say(inner.x + 10, inner.y + line, "┤", 1, Role::Border);
        canvas.say(inner.x + 11, inner.y + line, &text, inner.width - 12, Role::GaugeMid);
    }
}

/// Kernels by what a counter of dispatches counted in them.
pub(super) fn kernels(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &CounterRow) {
    // In a narrow place the mean alone, a wider one has the calls, then the ends.
    let (has_calls, has_ends) = (area.width >= 45, area.width >= 75);
    let right = match (has_calls, has_ends) {
        (_, true) => "mean  calls  min … max",
        (true, _) => "mean  calls",
        _ => "mean",
    };
    let inner = canvas.frame(area, &title(row, scene), right);
    if row.kernels.is_empty() {
        return canvas.empty(inner, &[format!("no value yet; {}", state(row, scene.snap))]);
    }
    let mut ranked: Vec<_> = row.kernels.iter().collect();
    let average = |known: &roctop_model::gauges::Range| known.average().unwrap_or(0.0);
    ranked.sort_by(|a, b| average(&b.1).total_cmp(&average(&a.1)));
    let most = ranked
        .first()
        .map_or(0.0, |known| average(&known.1))
        .max(f64::MIN_POSITIVE);
    let name_room = (inner.width / 3).saturating_sub(6) as usize;
    for (i, (kernel, range)) in ranked.iter().take(inner.height as usize).enumerate() {
        let y = inner.y + i as u16;
        let name = super::kernels::name(scene.snap, *kernel, NameForm::Short);
        // The letter by which the kernel goes in the other views, and in the roofline.
        let mut rows = scene.snap.values.kernels.iter();
        let letter = rows.find(|known| known.id == *kernel).and_then(|known| known.letter);
        canvas.say(
            inner.x + 1,
            y,
            letter.unwrap_or(' ').encode_utf8(&mut [0; 4]),
            1,
            Role::Muted,
        );
        let x = canvas.say(
            inner.x + 3,
            y,
            &units::fit(&name, name_room),
            name_room as u16,
            Role::Text,
        );
        canvas.right(x + 10, y, &amount(range.average()), Role::Text);
        let mut x = x + 10;
        if has_calls {
            x += 9;
            canvas.right(x, y, &format!("{}×", units::count(range.count)), Role::Muted);
        }
        if has_ends {
            x += 22;
            let ends = format!("{} … {}", amount(Some(range.min)), amount(Some(range.max)));
            canvas.right(x, y, &ends, Role::Muted);
        }
        let room = inner.right().saturating_sub(x + 3);
        canvas.say(
            x + 1,
            y,
            &chart::bar(average(range) / most, room as usize),
            room,
            Role::GaugeMid,
        );
    }
}
