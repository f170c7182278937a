//! Numbers with their units, as users type them: one table for all places, see docs/filter.md.

use crate::id::Nanos;

/// What a typed number measures, and how its place reads a number whose unit says too little.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A time; without a unit it is multiplied by this, in ns, or is an error.
    Time(Option<f64>),
    /// Bytes; K, M, G and T without an `i` are powers of this.
    Bytes(f64),
    /// Bytes per second.
    Bandwidth,
    /// A number of things.
    Count,
}

impl Quantity {
    /// A time that needs its unit.
    pub const TIME: Self = Self::Time(None);
    /// A time that is in seconds without one.
    pub const SECONDS: Self = Self::Time(Some(1e9));
    /// A time that is in nanoseconds without one.
    pub const NANOS: Self = Self::Time(Some(1.0));
    /// A size of records: K is 1000.
    pub const BYTES: Self = Self::Bytes(1000.0);
    /// A size of memory or a file: K is 1024.
    pub const MEMORY: Self = Self::Bytes(1024.0);

    /// Base units in a unit; `None` if the word is none of this quantity.
    pub fn factor(self, unit: &str) -> Option<f64> {
        match self {
            Self::Time(bare) if unit.is_empty() => bare,
            Self::Time(_) => time_factor(unit),
            Self::Bytes(thousand) => size_factor(unit, thousand),
            Self::Bandwidth if unit.is_empty() => Some(1.0),
            Self::Bandwidth => size_factor(unit.strip_suffix("/s")?, 1000.0),
            Self::Count => match unit {
                "" => Some(1.0),
                "k" => Some(1e3),
                "M" => Some(1e6),
                "G" => Some(1e9),
                _ => None,
            },
        }
    }

    /// Parses a number with its unit, which may follow a blank, into base units.
    pub fn parse(self, text: &str) -> Option<f64> {
        let (digits, unit) = split(text.trim());
        Some(digits.parse::<f64>().ok()? * self.factor(unit.trim())?)
    }
}

/// A number, and the unit after it.
pub fn split(text: &str) -> (&str, &str) {
    let is_of_unit = |c: char| !c.is_ascii_digit() && c != '.' && c != '-';
    text.split_at(text.find(is_of_unit).unwrap_or(text.len()))
}

fn time_factor(unit: &str) -> Option<f64> {
    Some(match unit {
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

fn size_factor(unit: &str, thousand: f64) -> Option<f64> {
    let power = match unit.trim_end_matches('B').trim_end_matches('i') {
        "" => return (!unit.contains('i')).then_some(1.0),
        "K" | "k" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    let thousand = if unit.contains('i') { 1024.0 } else { thousand };
    Some(thousand.powi(power))
}

/// Parses a duration: `1.5s`, `250 ms`, `82.139`; without a unit, seconds.
pub fn time(text: &str) -> Option<Nanos> {
    let nanos = Quantity::SECONDS.parse(text)?;
    nanos.is_sign_positive().then_some(nanos.round() as Nanos)
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

    #[test]
    fn each_place_reads_a_unit_by_the_same_table() {
        for (quantity, text, expected) in [
            (Quantity::NANOS, "2", Some(2.0)),
            (Quantity::SECONDS, "2", Some(2e9)),
            (Quantity::TIME, "2", None),
            (Quantity::TIME, "2 ms", Some(2e6)),
            (Quantity::BYTES, "4M", Some(4e6)),
            (Quantity::BYTES, "4MB", Some(4e6)),
            (Quantity::BYTES, "4MiB", Some(4_194_304.0)),
            (Quantity::MEMORY, "4M", Some(4_194_304.0)),
            (Quantity::MEMORY, "4MiB", Some(4_194_304.0)),
            (Quantity::BYTES, "4 parsecs", None),
            (Quantity::Bandwidth, "5GB/s", Some(5e9)),
            (Quantity::Bandwidth, "5GB", None),
            (Quantity::Bandwidth, "5", Some(5.0)),
            (Quantity::Count, "1.5k", Some(1500.0)),
            (Quantity::Count, "1ms", None),
        ] {
            assert_eq!(quantity.parse(text), expected, "{quantity:?} {text}");
        }
    }
}
