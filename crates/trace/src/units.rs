//! Formats numbers and names: the only module that rounds. Every quantity has a fixed maximum width, so that columns do
//! not move.

mod ellipsis;
mod error;
mod name;
mod typed;

pub use self::ellipsis::elide_parts;
pub use self::error::hip_error;
pub use self::name::{cut, elide, elide_around, fit, items, list, qualified_name, short_name, width};
pub use self::typed::{Quantity, split, time};

/// Sign for an unknown value.
pub const MISSING: &str = "–";

/// Three significant digits of a number below 1000.
fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Nanoseconds in at most 7 columns: `541 µs`, `1.56 ms`, `2m03s`, `1h02m`, `3d04h`.
pub fn duration(nanos: u64) -> String {
    let value = nanos as f64;
    if value < 999.5 {
        return format!("{nanos} ns");
    }
    if value < 999.5e3 {
        return format!("{} µs", three_digits(value / 1e3));
    }
    if value < 999.5e6 {
        return format!("{} ms", three_digits(value / 1e6));
    }
    if value < 59.995e9 {
        return format!("{} s", three_digits(value / 1e9));
    }
    let seconds = (nanos + 500_000_000) / 1_000_000_000;
    if seconds < 3600 {
        format!("{}m{:02}s", seconds / 60, seconds % 60)
    } else if seconds < 86_400 {
        format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60)
    } else if seconds < 86_400_000 {
        format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24)
    } else {
        format!("{} d", seconds / 86_400)
    }
}

/// Unit in which durations are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// ns.
    Nanos,
    /// µs.
    Micros,
    /// ms.
    Millis,
    /// s.
    Seconds,
}

impl Unit {
    /// All units with their symbols, smallest first.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Nanos, "ns"),
        (Self::Micros, "us"),
        (Self::Millis, "ms"),
        (Self::Seconds, "s"),
    ];

    /// The next larger unit; `None` after the largest.
    pub fn next(unit: Option<Self>) -> Option<Self> {
        let at = Self::ALL.iter().position(|known| Some(known.0) == unit);
        Self::ALL.get(at.map_or(0, |at| at + 1)).map(|known| known.0)
    }
}

/// Nanoseconds in one unit, with three digits that count and no digit of the whole number left out: `0.570 ms`, `9840 ms`,
/// `0.000723 s`.
pub fn duration_in(nanos: u64, unit: Unit) -> String {
    let (scale, word, least) = match unit {
        Unit::Nanos => (1.0, "ns", 0),
        Unit::Micros => (1e3, "µs", 3),
        Unit::Millis => (1e6, "ms", 6),
        Unit::Seconds => (1e9, "s", 9),
    };
    let value = nanos as f64 / scale;
    // The place of the first digit that counts: 2 of hundreds, -1 of tenths.
    let first = if value > 0.0 { value.log10().floor() as i32 } else { 2 };
    let digits = usize::try_from(2 - first).unwrap_or(0).min(least);
    format!("{value:.digits$} {word}")
}

/// A duration, or [`MISSING`].
pub fn duration_or_missing(nanos: Option<u64>) -> String {
    nanos.map_or_else(|| MISSING.into(), duration)
}

/// Time since the session began: `+82.139 251 204`, in seconds.
pub fn timestamp(nanos: u64) -> String {
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!(
        "+{seconds}.{:03} {:03} {:03}",
        rest / 1_000_000,
        rest / 1000 % 1000,
        rest % 1000
    )
}

/// Time since the session began to the microsecond: `+82.139251`.
pub fn timestamp_short(nanos: u64) -> String {
    format!("+{}.{:06}", nanos / 1_000_000_000, nanos / 1000 % 1_000_000)
}

/// Time of day style: `00:01:23.4`.
pub fn clock(nanos: u64) -> String {
    let tenths = nanos / 100_000_000;
    let seconds = tenths / 10;
    format!(
        "{:02}:{:02}:{:02}.{}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        tenths % 10
    )
}

/// Bytes with a binary prefix, in at most 9 columns: `8.00 MiB`.
pub fn bytes(value: u64) -> String {
    if value < 1000 {
        return format!("{value} B");
    }
    let mut scaled = value as f64;
    for unit in ["KiB", "MiB", "GiB", "TiB"] {
        scaled /= 1024.0;
        if scaled < 999.5 {
            return format!("{} {unit}", three_digits(scaled));
        }
    }
    format!("{} PiB", three_digits(scaled / 1024.0))
}

/// Bytes with a decimal prefix: `4.00 MB`.
pub fn decimal_bytes(value: f64) -> String {
    let speed = bandwidth(value);
    speed.strip_suffix("/s").unwrap_or(&speed).to_owned()
}

/// Bytes per second with a decimal prefix, in at most 9 columns: `24.1 GB/s`.
pub fn bandwidth(value: f64) -> String {
    if value.is_nan() || value < 0.0 {
        return MISSING.into();
    }
    if value < 999.5 {
        return format!("{value:.0} B/s");
    }
    let mut scaled = value;
    for unit in ["kB/s", "MB/s", "GB/s", "TB/s"] {
        scaled /= 1000.0;
        if scaled < 999.5 {
            return format!("{} {unit}", three_digits(scaled));
        }
    }
    format!("{:.0} TB/s", scaled.min(9_999.0))
}

/// A count in at most 7 columns: exact to 999,999, then `1.23M`.
pub fn count(value: u64) -> String {
    if value < 1_000_000 {
        return grouped(value);
    }
    let mut scaled = value as f64 / 1e3;
    for unit in ["M", "G", "T"] {
        scaled /= 1e3;
        if scaled < 999.5 {
            return format!("{}{unit}", three_digits(scaled));
        }
    }
    format!("{}P", three_digits((scaled / 1e3).min(999.0)))
}

/// A whole number with thousands separators: `1,234,567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things: `1 kernel`, `2,048 kernels`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A rate in at most 6 columns: `128k/s`.
pub fn rate(value: f64) -> String {
    let value = if value.is_finite() { value.max(0.0) } else { 0.0 };
    if value < 9.95 && value > 0.0 {
        return format!("{value:.1}/s");
    }
    if value < 999.5 {
        return format!("{value:.0}/s");
    }
    let mut scaled = value;
    for unit in ["k", "M", "G"] {
        scaled /= 1000.0;
        if scaled < 9.95 {
            return format!("{scaled:.1}{unit}/s");
        }
        if scaled < 999.5 {
            return format!("{scaled:.0}{unit}/s");
        }
    }
    "999G/s".into()
}

/// A share (1 is the whole) in percent, in at most 5 columns: `41.2`, `<0.1`, `100`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if !value.is_finite() {
        MISSING.into()
    } else if value > 0.0 && value < 0.05 {
        "<0.1".into()
    } else if value >= 99.95 {
        format!("{:.0}", value.min(99_999.0))
    } else {
        format!("{value:.1}")
    }
}

/// Exit of a process: `exit 0`, `signal 9 SIGKILL`.
pub fn exit(exit: crate::item::Exit) -> String {
    match exit {
        crate::item::Exit::Code(code) => format!("exit {code}"),
        crate::item::Exit::Signal(number) => format!("signal {number} {}", signal_name(number)),
        crate::item::Exit::Unknown => "gone".into(),
    }
}

/// Name of a Linux signal; empty for real-time signals, which have none.
pub fn signal_name(number: i32) -> &'static str {
    match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        16 => "SIGSTKFLT",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        26 => "SIGVTALRM",
        27 => "SIGPROF",
        29 => "SIGIO",
        30 => "SIGPWR",
        31 => "SIGSYS",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_is_kept_for_every_duration() {
        let cases = [
            (1_450_000, Unit::Nanos, "1450000 ns"),
            (1_450_000, Unit::Micros, "1450 µs"),
            (1_450_000, Unit::Millis, "1.45 ms"),
            (570_000, Unit::Millis, "0.570 ms"),
            (723_000, Unit::Seconds, "0.000723 s"),
            (299_000_000_000, Unit::Nanos, "299000000000 ns"),
            (299_000_000_000, Unit::Seconds, "299 s"),
            (1, Unit::Millis, "0.000001 ms"),
            (0, Unit::Millis, "0 ms"),
        ];
        for (nanos, unit, text) in cases {
            assert_eq!(duration_in(nanos, unit), text);
        }
    }

    #[test]
    fn durations_keep_three_digits_and_their_width() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (55_249, "55.2 µs"),
            (541_000, "541 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (1_560_000, "1.56 ms"),
            (9_840_000_000, "9.84 s"),
            (59_994_000_000, "60.0 s"),
            (123_000_000_000, "2m03s"),
            (3_720_000_000_000, "1h02m"),
            (273_600_000_000_000, "3d04h"),
        ];
        for (nanos, text) in cases {
            assert_eq!(duration(nanos), text);
        }
        for power in 0..60 {
            assert!(width(&duration(1 << power)) <= 7, "{}", duration(1 << power));
        }
    }

    #[test]
    fn other_numbers_keep_their_width() {
        assert_eq!(bytes(8 << 20), "8.00 MiB");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bandwidth(24.1e9), "24.1 GB/s");
        assert_eq!(count(999_999), "999,999");
        assert_eq!(count(1_234_567), "1.23M");
        assert_eq!(rate(128_000.0), "128k/s");
        assert_eq!(
            (percent(0.412), percent(0.0001), percent(1.0)),
            ("41.2".into(), "<0.1".into(), "100".into())
        );
        assert_eq!(clock(83_400_000_000), "00:01:23.4");
        assert_eq!(timestamp(82_139_251_204), "+82.139 251 204");
        for power in 0..64 {
            let value = 1u64 << power;
            assert!(bytes(value).len() <= 9 && count(value).len() <= 7, "{value}");
            assert!(bandwidth(value as f64).len() <= 9, "{}", bandwidth(value as f64));
            assert!(rate(value as f64).len() <= 6, "{}", rate(value as f64));
        }
    }
}
