//! The roofline: kernels by arithmetic intensity and operations a second, both logarithmic, under the roofs of the memory's
//! bandwidth and of the arithmetic units.
//!
//! Points are computed from counters ([`roctop_model::derived`]); a roof that is not known is not drawn. Peak operations
//! are 2 for each lane, of 64 in a compute unit, at the shader clock that the driver last said (single precision).

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::widgets::canvas::Canvas;
use roctop_model::derived::Metric;
use roctop_model::{Snapshot, kernel_counters};
use roctop_trace::item::AgentKind;

/// Lanes of a compute unit.
const LANES: f64 = 64.0;

/// What is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Roofline {
    /// Mark, operations for each byte, operations a second.
    pub(crate) points: Vec<(char, f64, f64)>,
    /// The memory's bandwidth, bytes/s.
    pub(crate) bandwidth: Option<f64>,
    /// The most operations a second.
    pub(crate) compute: Option<f64>,
}

impl Roofline {
    /// What the counters of a snapshot are enough for.
    pub(crate) fn of(snap: &Snapshot) -> Self {
        let metric = |key| Metric::named(key);
        let points = snap.values.kernels.iter().filter_map(|row| {
            let intensity = kernel_counters::metric(snap, row, metric("FLOPS_PER_BYTE")?).ok()?;
            let rate = kernel_counters::metric(snap, row, metric("FLOP_RATE")?).ok()?;
            (intensity > 0.0 && rate > 0.0).then_some((row.letter.unwrap_or('•'), intensity, rate))
        });
        let mut gpus = snap.names.agents().iter();
        let gpu = gpus.find(|agent| agent.kind == AgentKind::Gpu && !agent.name.is_empty());
        let device = gpu.and_then(|gpu| snap.device_of(gpu));
        let clock = device.and_then(|device| device.now.shader_clock.clone().ok());
        Self {
            points: points.collect(),
            bandwidth: device.and_then(|device| device.now.memory_peak.clone().ok()),
            compute: gpu
                .zip(clock)
                .map(|(gpu, clock)| f64::from(gpu.compute_units) * LANES * 2.0 * clock * 1e6)
                .filter(|most| *most > 0.0),
        }
    }

    /// The most operations a second at an intensity.
    fn roof(&self, intensity: f64) -> Option<f64> {
        match (self.bandwidth, self.compute) {
            (Some(bandwidth), Some(compute)) => Some((bandwidth * intensity).min(compute)),
            (Some(bandwidth), None) => Some(bandwidth * intensity),
            (None, compute) => compute,
        }
    }

    /// Powers of ten that hold all points and the knee of the roof: of intensity, of operations a second.
    fn ranges(&self) -> [(f64, f64); 2] {
        let knee = self
            .bandwidth
            .zip(self.compute)
            .map(|(bytes, most)| (most / bytes, most));
        let all = self.points.iter().map(|point| (point.1, point.2)).chain(knee);
        let mut ranges = [(f64::INFINITY, f64::NEG_INFINITY); 2];
        for (x, y) in all {
            for (range, value) in ranges.iter_mut().zip([x, y]) {
                let power = value.log10();
                *range = (range.0.min(power.floor()), range.1.max(power.ceil()));
            }
        }
        for range in &mut ranges {
            if range.1 - range.0 < 1.0 {
                range.1 = range.0 + 1.0;
            }
        }
        ranges
    }

    /// The chart in characters, lines from the top; empty when there are no points or no room.
    pub(crate) fn plot(&self, width: usize, height: usize) -> Vec<Vec<char>> {
        if self.points.is_empty() || width < 4 || height < 3 {
            return Vec::new();
        }
        let [(left, right), (low, high)] = self.ranges();
        let mut lines = vec![vec![' '; width]; height];
        let line = |power: f64| {
            let part = (power - low) / (high - low);
            let up = (part * (height - 1) as f64).round();
            (0.0..=(height - 1) as f64)
                .contains(&up)
                .then(|| height - 1 - up as usize)
        };
        let mut put = |at: usize, column: usize, mark: char| lines[at][column] = mark;
        for column in 0..width {
            let power = left + (right - left) * column as f64 / (width - 1) as f64;
            let roof = self.roof(10f64.powf(power));
            if let Some(at) = roof.and_then(|roof| line(roof.log10())) {
                let is_flat = self.compute.is_some_and(|most| roof == Some(most));
                put(at, column, if is_flat { '─' } else { '/' });
            }
        }
        for (mark, x, y) in &self.points {
            let column = (x.log10() - left) / (right - left) * (width - 1) as f64;
            if let Some(at) = line(y.log10()) {
                put(at, (column.round() as usize).min(width - 1), *mark);
            }
        }
        lines
    }
}

/// Draws the chart with its scales.
pub(crate) fn draw(canvas: &mut Canvas<'_>, area: Rect, roofline: &Roofline) {
    let right = match (roofline.bandwidth, roofline.compute) {
        (Some(bytes), Some(most)) => format!("{bytes:.1e} B/s  {most:.1e} FLOP/s"),
        (Some(bytes), None) => format!("{bytes:.1e} B/s; clock not known"),
        (None, _) => "peak bandwidth not known".into(),
    };
    let inner = canvas.frame(area, "Roofline", &right);
    if inner.width < 20 || inner.height < 4 {
        return;
    }
    let [(left, end), (low, high)] = roofline.ranges();
    let lines = roofline.plot(inner.width as usize - 8, inner.height as usize - 1);
    for (i, line) in lines.iter().enumerate() {
        let y = inner.y + i as u16;
        let scale = match i {
            0 => format!("1e{high:.0}"),
            _ if i + 1 == lines.len() => format!("1e{low:.0}"),
            _ => String::new(),
        };
        canvas.right(inner.x + 6, y, &scale, Role::Muted);
        canvas.say(inner.x + 7, y, "┤", 1, Role::Border);
        let text: String = line.iter().collect();
        canvas.say(inner.x + 8, y, &text, inner.width - 8, Role::GaugeMid);
    }
    let y = inner.bottom().saturating_sub(1);
    let text = format!("1e{left:.0} FLOP/B");
    canvas.say(inner.x + 8, y, &text, inner.width - 8, Role::Muted);
    canvas.right(inner.right().saturating_sub(1), y, &format!("1e{end:.0}"), Role::Muted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_at_their_powers_and_the_roof_has_a_knee() {
        let roofline = Roofline {
            points: vec![('a', 0.1, 1e11), ('b', 100.0, 1e13)],
            bandwidth: Some(1e12),
            compute: Some(1e13),
        };
        // Intensities 0.1 to 100, operations 1e11 to 1e13: a decade is 3 columns, or 2 lines.
        let lines: Vec<String> = roofline
            .plot(10, 5)
            .into_iter()
            .map(|line| line.into_iter().collect())
            .collect();
        assert_eq!(
            lines,
            ["      ───b", "    //    ", "   /      ", " //       ", "a         "]
        );
    }

    #[test]
    fn without_points_or_room_there_is_no_chart() {
        assert!(Roofline::default().plot(80, 20).is_empty());
        let one = Roofline {
            points: vec![('a', 1.0, 1.0)],
            ..Roofline::default()
        };
        assert!(one.plot(3, 3).is_empty());
        let lines = one.plot(10, 4);
        assert_eq!(lines.iter().flatten().filter(|c| **c == 'a').count(), 1);
        for extreme in [f64::MIN_POSITIVE, f64::MAX] {
            let odd = Roofline {
                points: vec![('a', extreme, extreme), ('b', 1.0, 1.0)],
                bandwidth: Some(extreme),
                compute: Some(extreme),
            };
            assert_eq!(odd.plot(40, 10).len(), 10);
        }
    }
}
