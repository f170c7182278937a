//! Statistics of a few runs a side: median and its interval, two modes, and whether two sides differ.

/// Seed of everything drawn at random: the same runs give the same report.
const SEED: u64 = 0x726f_6374_6f70_6369;
/// Number of samples that an interval is drawn from.
const RESAMPLES: usize = 1000;
/// Number of ways to divide the runs up to which all of them are tried …
const MAX_DIVISIONS: u64 = 20_000;
/// … and how many are drawn if there are more.
const DRAWN_DIVISIONS: usize = 9_999;
/// Part of a value below which a difference is not trusted, however equal the runs are.
const FLOOR: f64 = 0.0025;
/// Distance from the median, in median absolute deviations, from which on a value counts as an outlier.
const OUTLIER: f64 = 1.5;
/// Distance of two modes, as a share of the median.
const MODE_DISTANCE: f64 = 0.05;

/// Numbers at random by splitmix64.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(super) const fn below(&mut self, limit: usize) -> usize {
        ((self.next() as u128 * limit as u128) >> 64) as usize
    }
}

/// Median; 0 without values.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    median_of(&mut sorted)
}

fn median_of(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.len() % 2, values.get(middle)) {
        (0, Some(high)) => f64::midpoint(values[middle - 1], *high),
        (_, Some(value)) => *value,
        (_, None) => 0.0,
    }
}

/// The 95 % interval of a function of the medians of several sets, by the bootstrap.
pub(super) fn interval<const SETS: usize>(
    sets: [&[f64]; SETS],
    function: impl Fn([f64; SETS]) -> Option<f64>,
) -> Option<[f64; 2]> {
    let mut random = Random::new(SEED);
    let mut room = Vec::new();
    let mut found = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let medians = sets.map(|set| {
            room.clear();
            room.extend((0..set.len()).map(|_| set[random.below(set.len())]));
            median_of(&mut room)
        });
        found.extend(function(medians));
    }
    if found.len() < RESAMPLES {
        return None;
    }
    found.sort_unstable_by(f64::total_cmp);
    Some([RESAMPLES / 40, RESAMPLES - 1 - RESAMPLES / 40].map(|at| found[at]))
}

/// Runs that took about the same, of runs that took one of two times.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Mode {
    /// Their median.
    pub median: f64,
    /// Number of runs.
    pub runs: usize,
}

/// Two modes: sorted, the values have a gap of more than 5 % of the median and of three times the width of either part, and
/// each part has two runs or more.
pub(super) fn modes(values: &[f64]) -> Option<[Mode; 2]> {
    let mut sorted = values.to_vec();
    let middle = median_of(&mut sorted);
    let gap = |at: usize| sorted[at] - sorted[at - 1];
    let at = (2..sorted.len().saturating_sub(1)).max_by(|&a, &b| gap(a).total_cmp(&gap(b)))?;
    let (low, high) = sorted.split_at(at);
    let width = |part: &[f64]| part[part.len() - 1] - part[0];
    let is_apart = gap(at) > MODE_DISTANCE * middle && gap(at) > 3.0 * width(low).max(width(high));
    is_apart.then(|| {
        [low, high].map(|part| Mode {
            median: median(part),
            runs: part.len(),
        })
    })
}

/// A row of both sides: its values, the earlier runs first, without outliers and around zero.
struct Pooled {
    values: Vec<f64>,
    sum: f64,
    squares: f64,
    floor: f64,
}

impl Pooled {
    fn new([before, after]: &[Vec<f64>; 2]) -> Self {
        let mut values: Vec<f64> = before.iter().chain(after).copied().collect();
        let middle = median(&values);
        let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
        // Which side a value is of plays no part, so this changes nothing in the probabilities.
        let limit = match median(&deviations) * OUTLIER {
            limit if limit > 0.0 => limit,
            _ => f64::INFINITY,
        };
        for value in &mut values {
            *value = (*value - middle).clamp(-limit, limit);
        }
        Self {
            sum: values.iter().sum(),
            squares: values.iter().map(|value| value * value).sum(),
            floor: FLOOR * middle.abs() + f64::MIN_POSITIVE,
            values,
        }
    }

    /// Distance of the means of the runs in `first` and of the others, in standard errors.
    fn distance(&self, first: &[usize]) -> f64 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for &at in first {
            let value = self.values[at];
            sum += value;
            squares += value * value;
        }
        let n = first.len() as f64;
        let m = self.values.len() as f64 - n;
        let (others, other_squares) = (self.sum - sum, self.squares - squares);
        let error = |squares: f64, sum: f64, n: f64| (squares - sum * sum / n).max(0.0) / ((n - 1.0).max(1.0) * n);
        let error = (error(squares, sum, n) + error(other_squares, others, m)).sqrt();
        (others / m - sum / n).abs() / (error + self.floor)
    }
}

/// The number of ways to choose `few` of `all`, up to a limit.
fn divisions(all: u64, few: u64) -> u64 {
    (0..few).fold(1, |ways: u64, at| ways.saturating_mul(all - at) / (at + 1))
}

/// The smallest probability that a comparison of `n` runs with `m` can have.
pub(super) fn least_probability(n: usize, m: usize) -> f64 {
    // Sides of the same size can be changed.
    let same = if n == m { 2.0 } else { 1.0 };
    same / divisions((n + m) as u64, n as u64) as f64
}

/// The next choice of as many of `all` in lexicographic order.
fn advance(chosen: &mut [usize], all: usize) -> bool {
    let few = chosen.len();
    let Some(at) = (0..few).rev().find(|&at| chosen[at] < all - few + at) else {
        return false;
    };
    chosen[at] += 1;
    for next in at + 1..few {
        chosen[next] = chosen[next - 1] + 1;
    }
    true
}

/// For each row the probability that a program with itself shows such a distance in any of the rows (Westfall and Young's
/// maximum over rows, over all divisions of the runs into two sides of these sizes). Each row has one value of each run.
pub(super) fn probabilities<'a>(rows: impl Iterator<Item = &'a [Vec<f64>; 2]> + Clone) -> Vec<f64> {
    let Some([n, m]) = rows.clone().next().map(|row| [row[0].len(), row[1].len()]) else {
        return Vec::new();
    };
    let pooled: Vec<Pooled> = rows.map(Pooled::new).collect();
    let mut first: Vec<usize> = (0..n).collect();
    let observed: Vec<f64> = pooled.iter().map(|row| row.distance(&first)).collect();
    let (mut reached, mut tried) = (vec![0u64; pooled.len()], 0u64);
    let mut try_division = |first: &[usize]| {
        let most = pooled.iter().map(|row| row.distance(first)).fold(0.0, f64::max);
        tried += 1;
        for (reached, observed) in reached.iter_mut().zip(&observed) {
            *reached += u64::from(most >= observed * (1.0 - 1e-9));
        }
    };
    try_division(&first);
    if divisions((n + m) as u64, n as u64) <= MAX_DIVISIONS {
        while advance(&mut first, n + m) {
            try_division(&first);
        }
    } else {
        let mut random = Random::new(SEED);
        let mut all: Vec<usize> = (0..n + m).collect();
        for _ in 0..DRAWN_DIVISIONS {
            for at in 0..n {
                let other = at + random.below(n + m - at);
                all.swap(at, other);
            }
            try_division(&all[..n]);
        }
    }
    reached.iter().map(|&reached| reached as f64 / tried as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_intervals_enclose_the_values() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0]) - 2.5).abs() < 1e-9);
        let (a, b) = ([100.0, 101.0, 99.0, 100.5, 99.5], [110.0, 111.0, 109.0, 110.5, 109.5]);
        let [low, high] = interval([&a, &b], |[a, b]| Some(b / a - 1.0)).unwrap();
        assert!(
            (0.08..0.1).contains(&low) && (0.1..0.12).contains(&high),
            "{low} {high}"
        );
        assert_eq!(interval([&a, &b], |[..]| None), None);
    }

    #[test]
    fn two_modes_are_reported_as_two() {
        let found = modes(&[33.0, 26.0, 33.2, 26.1, 33.1, 26.05, 33.05]).unwrap();
        assert_eq!((found[0].runs, found[1].runs), (3, 4));
        assert!((found[0].median - 26.05).abs() < 1e-9 && (found[1].median - 33.075).abs() < 1e-9);
        assert_eq!(
            modes(&[33.0, 33.4, 33.2, 33.9, 33.1, 26.05, 33.05]),
            None,
            "one outlier"
        );
        assert_eq!(modes(&[1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]), None);
        assert_eq!(modes(&[1.0]), None);
    }

    #[test]
    fn all_divisions_are_tried_once() {
        let mut chosen = vec![0, 1];
        let mut count = 1;
        while advance(&mut chosen, 5) {
            count += 1;
        }
        assert_eq!((count, divisions(5, 2), divisions(14, 7)), (10, 10, 3432));
    }

    #[test]
    fn the_fewest_runs_can_show_a_change() {
        let before = vec![100.0, 101.0, 99.0, 100.5, 99.5];
        let after: Vec<f64> = before.iter().map(|value| value * 1.05).collect();
        let same = [before.clone(), before.iter().rev().map(|value| value + 0.1).collect()];
        let found = probabilities([[before, after], same].iter());
        // Two of 252 divisions have this distance: this one, and the same with the sides changed.
        assert!((found[0] - 2.0 / 252.0).abs() < 1e-9, "{found:?}");
        assert!(found[1] > 0.1, "{found:?}");
    }
}
