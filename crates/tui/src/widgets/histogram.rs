//! How often durations came: a bar for each bin, and the percentiles in it.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::chart;
use super::table::Scene;
use crate::hit_map::Hit;
use crate::theme::Role;
use roctop_model::stats::Stat;
use roctop_trace::units;

/// Bins at most: a wider histogram says no more.
const MAX_BINS: usize = 24;

/// Where the last bin ends, if it has the values above all others: `to 15.5 ms `.
fn beyond(edge: u64, count: u64, max: u64) -> Option<String> {
    let end = units::duration(max);
    (count > 0 && max > edge && end != units::duration(edge)).then(|| format!("to {end} "))
}

/// Draws it below its heading.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, scene: &Scene<'_>, stat: &Stat, title: &str) {
    if area.height < 2 {
        return;
    }
    let kind = if scene.ui.prefs.logarithmic { "log" } else { "linear" };
    let room = area.width.saturating_sub(1);
    canvas.say(area.x + 1, area.y, &format!("{title} ({kind})"), room, Role::Head);
    let bins = stat.bins((area.height as usize - 1).min(MAX_BINS), scene.ui.prefs.logarithmic);
    // Durations that are all alike need no bins that differ in nothing.
    let mut distinct: Vec<(u64, u64)> = Vec::with_capacity(bins.len());
    for bin in bins {
        match distinct.last_mut() {
            Some(last) if units::duration(last.0) == units::duration(bin.0) => last.1 += bin.1,
            _ => distinct.push(bin),
        }
    }
    let bins = distinct;
    if bins.is_empty() {
        let why = if stat.is_full() || stat.timed == 0 {
            "no times"
        } else if stat.is_of_sums() {
            "no histogram while filtered by place"
        } else {
            "no histogram: it is kept of the first 1024 kernels that run"
        };
        canvas.say(area.x + 1, area.y + 1, why, room, Role::Muted);
        return;
    }
    let most = bins.iter().map(|bin| bin.1).max().unwrap_or(1).max(1);
    let room = area.width.saturating_sub(30) as usize;
    let quantiles = [
        ("p50", stat.quantiles.p50),
        ("p95", stat.quantiles.p95),
        ("p99", stat.quantiles.p99),
    ];
    for (i, &(edge, count)) in bins.iter().enumerate() {
        let y = area.y + 1 + i as u16;
        let next = bins.get(i + 1).map_or(u64::MAX, |bin| bin.0);
        let outliers = if i + 1 == bins.len() {
            beyond(edge, count, stat.max)
        } else {
            None
        };
        let edge_text = units::duration(edge);
        let (edge_text, role) = match outliers {
            Some(_) => (format!("≥{edge_text}"), Role::GaugeHigh),
            None => (edge_text, Role::GaugeMid),
        };
        canvas.right(area.x + 9, y, &edge_text, Role::Muted);
        let bar = chart::bar(count as f64 / most as f64, room);
        let x = canvas.say(area.x + 10, y, &bar, room as u16, role);
        let here: Vec<&str> = quantiles
            .iter()
            .filter(|q| q.1.is_some_and(|at| at >= edge && at < next))
            .map(|q| q.0)
            .collect();
        let row = Rect { y, height: 1, ..area };
        scene.ui.hits.add(row, Hit::Durations(edge, next.min(stat.max)));
        if count > 0 {
            let share = units::percent(count as f64 / stat.timed.max(1) as f64);
            let end = outliers.unwrap_or_default();
            let text = format!(" {share} % {end}{}", here.join(" "));
            canvas.say(x, y, &text, area.right().saturating_sub(x), Role::Muted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bin_says_how_far_outliers_go() {
        let mut stat = Stat::new(true);
        (0..999).for_each(|i| stat.add(5_000_000 + i * 100));
        stat.add(15_500_000);
        stat.refresh();
        let bins = stat.bins(8, false);
        let (edge, count) = bins[7];
        assert_eq!(count, 1);
        assert_eq!(beyond(edge, count, stat.max).as_deref(), Some("to 15.5 ms "));
        // Without outliers the last edge is the maximum.
        assert_eq!(beyond(15_500_000, 1, 15_500_000), None);
        assert_eq!(beyond(edge, 0, stat.max), None);
    }
}
