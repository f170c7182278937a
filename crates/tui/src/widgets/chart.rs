//! Bars and sparklines out of block characters.

/// Eighths of a cell upwards, from nothing to all.
pub(crate) const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar of at most `columns`, filled by `share` to an eighth of a column.
pub(crate) fn bar(share: f64, columns: usize) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * columns as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut out = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        out.push(EIGHTHS[eighths % 8]);
    }
    out
}

/// One level for a part of `most`; anything above nothing shows.
pub(crate) fn level(value: u64, most: u64) -> char {
    if value == 0 || most == 0 {
        return LEVELS[0];
    }
    LEVELS[((u128::from(value) * 8).div_ceil(u128::from(most))).clamp(1, 8) as usize]
}

/// A sparkline against its own maximum; an all-zero one is a base line.
pub(crate) fn sparkline(values: &[u64]) -> String {
    let most = values.iter().copied().max().unwrap_or(0);
    values
        .iter()
        .map(|&value| if value == 0 { '▁' } else { level(value, most) })
        .collect()
}

/// The last `columns` values, padded with nothing on the left.
pub(crate) fn trailing(values: &[u64], columns: usize) -> String {
    let values = &values[values.len().saturating_sub(columns)..];
    format!("{:>columns$}", sparkline(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_lines() {
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(0.001, 4), "▏");
        assert_eq!(bar(f64::NAN, 4), "");
        assert_eq!(bar(9.0, 3), "███");
        assert_eq!(sparkline(&[0, 1, 8, 4]), "▁▁█▄");
        assert_eq!(sparkline(&[u64::MAX, 1]), "█▁");
    }
}
