//! Values over the whole run in bounded memory: when there are too many, neighbours are merged.

use roctop_trace::item::Nanos;

/// Maximum number of points.
const MAX_POINTS: usize = 2048;
/// Values closer than this are merged into a point, ns.
const FINEST_STEP: u64 = 100_000_000;
/// A value is valid until the next one, at most for this time (or three steps), ns.
const MAX_HOLD: u64 = 2_500_000_000;

/// A point: time, sum of its values, number of values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    at: Nanos,
    sum: f64,
    count: u32,
}

impl Point {
    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }
}

/// Values over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// log2 of the minimum distance between points, relative to the finest.
    level: u32,
    points: Vec<Point>,
}

impl Series {
    /// Adds a value. Values arrive in order of time; one that does not is added to the last point.
    pub fn add(&mut self, at: Nanos, value: f64) {
        let step = self.step();
        match self.points.last_mut() {
            Some(last) if at / step <= last.at / step => {
                last.sum += value;
                last.count = last.count.saturating_add(1);
            }
            _ => self.points.push(Point {
                at,
                sum: value,
                count: 1,
            }),
        }
        if self.points.len() > MAX_POINTS {
            self.level += 1;
            let step = self.step();
            let mut halved: Vec<Point> = Vec::with_capacity(MAX_POINTS);
            for point in std::mem::take(&mut self.points) {
                match halved.last_mut() {
                    Some(last) if last.at / step == point.at / step => {
                        last.sum += point.sum;
                        last.count = last.count.saturating_add(point.count);
                    }
                    _ => halved.push(point),
                }
            }
            self.points = halved;
        }
    }

    /// Whether columns of `width` ns show averages of longer times: neighbours were put together.
    pub fn is_coarser(&self, width: u64) -> bool {
        self.level > 0 && self.step() > width
    }

    fn step(&self) -> u64 {
        FINEST_STEP << self.level.min(32)
    }

    /// Whether it has no point.
    pub const fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The maximum.
    pub fn most(&self) -> f64 {
        self.points.iter().map(Point::mean).fold(0.0, f64::max)
    }

    /// The value that this share of the points does not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut values: Vec<f64> = self.points.iter().map(Point::mean).collect();
        values.sort_by(f64::total_cmp);
        let at = (values.len() as f64 * share) as usize;
        values.get(at).or(values.last()).copied().unwrap_or(0.0)
    }

    /// The last point.
    pub fn last(&self) -> Option<f64> {
        self.points.last().map(Point::mean)
    }

    /// For each column of `width` ns from `from` on: the mean of its values, or else the last value before it. `None`
    /// if that is too old or missing.
    pub fn columns(&self, from: Nanos, width: u64, columns: usize) -> Vec<Option<f64>> {
        let mut next = self.points.partition_point(|point| point.at < from);
        let hold = MAX_HOLD.max(self.step().saturating_mul(3));
        let column = |at: usize| {
            let begin = from.saturating_add(width.saturating_mul(at as u64));
            let end = begin.saturating_add(width.max(1));
            let (mut sum, mut count) = (0.0, 0u32);
            while let Some(point) = self.points.get(next).filter(|point| point.at < end) {
                sum += point.mean();
                count += 1;
                next += 1;
            }
            if count > 0 {
                return Some(sum / f64::from(count));
            }
            let before = next.checked_sub(1).and_then(|last| self.points.get(last))?;
            (begin.saturating_sub(before.at) <= hold).then(|| before.mean())
        };
        (0..columns).map(column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_column_has_the_mean_of_its_values_or_what_was_read_last() {
        let mut series = Series::default();
        assert_eq!(series.columns(0, SECOND, 2), [None, None]);
        for (at, value) in [(1, 10.0), (2, 20.0), (3, 40.0), (9, 5.0)] {
            series.add(at * SECOND, value);
        }
        let held = Some(40.0);
        let expected = [
            None,
            Some(10.0),
            Some(20.0),
            held,
            held,
            held,
            None,
            None,
            None,
            Some(5.0),
        ];
        assert_eq!(series.columns(0, SECOND, 10), expected);
        assert_eq!(series.columns(0, 4 * SECOND, 2), [Some(70.0 / 3.0), held]);
        assert_eq!((series.most(), series.last()), (40.0, Some(5.0)));
    }

    #[test]
    fn an_hour_of_values_is_bounded_and_keeps_its_mean() {
        let mut series = Series::default();
        for tenth in 0..36_000u64 {
            series.add(tenth * FINEST_STEP, (tenth % 10) as f64);
        }
        assert!(series.points.len() <= MAX_POINTS, "{}", series.points.len());
        assert!(series.is_coarser(SECOND) && !series.is_coarser(360 * SECOND));
        let columns = series.columns(0, 360 * SECOND, 10);
        assert!(
            columns
                .iter()
                .all(|column| column.is_some_and(|mean| (mean - 4.5).abs() < 0.1)),
            "{columns:?}"
        );
    }

    #[test]
    fn times_that_go_back_change_no_order() {
        let mut series = Series::default();
        for at in [5 * SECOND, 3 * SECOND, u64::MAX, 0] {
            series.add(at, 1.0);
        }
        assert_eq!(series.points.len(), 2);
        assert_eq!(series.columns(u64::MAX - 5, u64::MAX, 3).len(), 3);
    }
}
