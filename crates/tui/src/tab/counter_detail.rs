//! A counter in detail: a minute of a device's, or the kernels that one of dispatches counted.

use ratatui::layout::Rect;

use super::counters::{amount, device, state};
use crate::NameForm;
use crate::theme::Role;
use crate::widgets::canvas::Canvas;
use crate::widgets::chart;
use crate::widgets::history::{self, Amount, Scale};
use crate::widgets::table::Scene;
use roctop_model::gauges::CounterRow;
use roctop_trace::units;

fn title(row: &CounterRow, scene: &Scene<'_>) -> String {
    format!("{} {} {}", row.counter.name, row.counter.unit, device(row, scene))
}

/// A minute of a device's counter.
pub(super) fn last_minute(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, row: &CounterRow) {
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
    let marks = scene.ui.prefs.marks;
    let seconds = history::seconds(scene.snap, history::columns(inner, marks));
    let values = row.history.last(scene.snap.now, seconds);
    if row.range.count == 0 {
        return canvas.empty(inner, &[format!("no value yet; {}", state(row, scene.snap))]);
    }
    let most = values.iter().flatten().copied().fold(0.0f64, f64::max);
    let scale = Scale {
        most: most.max(f64::MIN_POSITIVE),
        text: &|value| amount(Some(value)),
    };
    let values: Vec<Option<Amount>> = values.into_iter().map(|value| value.map(Amount::from)).collect();
    let axis = history::last(values.len() as f64);
    history::draw(canvas, inner, marks, &values, &scale, &axis, Role::GaugeMid);
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
