//! Parses the driver's text files.

use super::{Absent, Reading};

/// A file with one number, decimal or `0x…`.
pub fn number(text: &str) -> Reading {
    let text = text.trim();
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|value| value as f64),
        None => text.parse::<f64>().ok().filter(|value| value.is_finite()),
    };
    value.ok_or(Absent::Unreadable)
}

/// Errors of all kinds: a line of each, as `ue: 0` (uncorrected) and `ce: 3` (corrected).
pub fn errors(text: &str) -> Reading {
    let counts = text
        .lines()
        .map(|line| line.split_once(": ")?.1.trim().parse::<u64>().ok());
    let counts: Vec<u64> = counts.collect::<Option<_>>().ok_or(Absent::Unreadable)?;
    if counts.is_empty() {
        return Err(Absent::Unreadable);
    }
    Ok(counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count)) as f64)
}

/// Current level of a `pp_dpm_*` file, MHz: the line with a star (`1: 1800Mhz *`).
pub fn current_level(text: &str) -> Reading {
    let line = text.lines().find(|line| line.trim_end().ends_with('*'));
    let line = line.ok_or(Absent::NotReported)?;
    let (_, value) = line.split_once(':').ok_or(Absent::Unreadable)?;
    let digits: String = value
        .trim()
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    digits.parse().map_err(|_| Absent::Unreadable)
}

/// `pcie_bw`, bytes/s: packets received and sent in the last second, times the maximum payload.
pub fn pcie_rate(text: &str) -> Reading {
    let mut words = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    let mut next = || words.next().flatten().ok_or(Absent::Unreadable);
    let (received, sent, size) = (next()?, next()?, next()?);
    Ok((received + sent) * size)
}

/// `current_link_speed` (`16.0 GT/s PCIe`), GT/s.
pub fn link_speed(text: &str) -> Reading {
    number(text.split_whitespace().next().unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_levels_are_read_as_the_driver_writes_them() {
        assert_eq!(number("42\n"), Ok(42.0));
        assert_eq!(number("0x10"), Ok(16.0));
        assert_eq!(number("n/a"), Err(Absent::Unreadable));
        assert_eq!(number("inf"), Err(Absent::Unreadable));
        assert_eq!(current_level("0: 300Mhz\n1: 1725Mhz *\n"), Ok(1725.0));
        assert_eq!(current_level("0: 300Mhz\n"), Err(Absent::NotReported));
        assert_eq!(current_level("*"), Err(Absent::Unreadable));
        assert_eq!(pcie_rate("10 20 256\n"), Ok(7680.0));
        assert_eq!(pcie_rate("10 20"), Err(Absent::Unreadable));
        assert_eq!(link_speed("16.0 GT/s PCIe\n"), Ok(16.0));
        assert_eq!(errors("ue: 2\nce: 3\n"), Ok(5.0));
        assert_eq!(errors("ue: 0\nce: 0\nde: 1\n"), Ok(1.0));
        for text in ["", "ue: \n", "ue: -1\n", "ue: 1\nnonsense\n", "Query failed\n"] {
            assert_eq!(errors(text), Err(Absent::Unreadable), "{text:?}");
        }
    }
}
