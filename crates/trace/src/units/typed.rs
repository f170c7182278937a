//! Parses times that a user types.

use crate::id::Nanos;

/// Nanoseconds in a unit of time; `None` if the word is not one.
pub fn unit_of_time(word: &str) -> Option<f64> {
    Some(match word {
        "ns" => 1.0,
        // Keyboards have a micro sign, a Greek letter, or neither.
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return None,
    })
}

/// Parses a duration: `1.5s`, `250 ms`, `82.139`; without a unit, seconds.
pub fn time(text: &str) -> Option<Nanos> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let factor = match text[end..].trim() {
        "" => 1e9,
        unit => unit_of_time(unit)?,
    };
    Some((number * factor).round() as Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_seconds_need_none() {
        assert_eq!(time("1.5s"), Some(1_500_000_000));
        assert_eq!(time("82.139"), Some(82_139_000_000));
        assert_eq!(time("250 ms"), Some(250_000_000));
        assert_eq!((time("3\u{b5}s"), time("3\u{3bc}s")), (Some(3000), Some(3000)));
        assert_eq!(time("2h"), time("120 min"));
        assert_eq!(time("4 parsecs"), None);
        assert_eq!(time(""), None);
        assert_eq!(time("-1s"), None);
    }
}
