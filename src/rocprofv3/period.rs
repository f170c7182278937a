//! `--collection-period DELAY:DURATION:REPEAT`.

use super::settings::{Settings, usage_error};
use crate::export::options::Periods;
use anyhow::{Context, Result, bail};

/// The most stretches of time that are understood.
const MAX_PERIODS: u64 = 1 << 16;

/// The stretches of time after the beginning in which records are wanted.
pub(super) fn read(settings: &Settings) -> Result<Periods> {
    let unit = match settings.value("collection_period_unit").unwrap_or("sec") {
        "hour" => 3600e9,
        "min" => 60e9,
        "sec" => 1e9,
        "msec" => 1e6,
        "usec" => 1e3,
        "nsec" => 1.0,
        word => {
            let message = format!("--collection-period-unit takes hour, min, sec, msec, usec or nsec, not '{word}'");
            return Err(usage_error(message));
        }
    };
    let mut periods = Periods::default();
    let mut at = 0;
    for text in settings.values("collection_period") {
        for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
            let (delay, duration, repeat) = triple(word)
                .with_context(|| format!("--collection-period takes DELAY:DURATION:REPEAT, not '{word}'"))?;
            let nanos = |number: f64| (number * unit).round() as u64;
            if repeat > MAX_PERIODS {
                bail!("--collection-period: at most {MAX_PERIODS} repetitions, not {repeat}");
            }
            if periods.endless.is_some() {
                bail!("--collection-period: after one that is repeated for ever (0) none comes, as '{word}'");
            }
            // Upstream takes 0 for one that goes on for ever.
            if repeat == 0 {
                periods.endless = Some((at, nanos(delay), nanos(duration).max(1)));
            }
            for _ in 0..repeat {
                let from = u64::saturating_add(at, nanos(delay));
                at = from.saturating_add(nanos(duration));
                periods.listed.push((from, at));
            }
        }
    }
    Ok(periods)
}

fn triple(word: &str) -> Option<(f64, f64, u64)> {
    let mut parts = word.split(':');
    let number = |part: &str| {
        part.parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number >= 0.0)
    };
    let (delay, duration) = (number(parts.next()?)?, number(parts.next()?)?);
    let repeat = parts.next()?.parse().ok()?;
    (parts.next().is_none() && duration > 0.0).then_some((delay, duration, repeat))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periods(line: &str) -> Result<Vec<(u64, u64)>> {
        let words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
        let periods = read(&Settings::parse(&words)?.0)?;
        assert_eq!(periods.endless, None);
        Ok(periods.listed)
    }

    #[test]
    fn periods_follow_each_other() {
        assert_eq!(periods("--kernel-trace").unwrap(), []);
        assert_eq!(
            periods("-P 1:2:2 0.5:1:1 --collection-period-unit msec").unwrap(),
            [(1_000_000, 3_000_000), (4_000_000, 6_000_000), (6_500_000, 7_500_000)]
        );
        assert_eq!(
            periods("--collection-period 5:1:1").unwrap(),
            [(5_000_000_000, 6_000_000_000)]
        );
        let words = ["-P", "1:2:0", "--"].map(Into::into);
        let endless = read(&Settings::parse(&words).unwrap().0).unwrap();
        assert_eq!(endless.endless, Some((0, 1_000_000_000, 2_000_000_000)));
        for wrong in [
            "1:2",
            "1:2:0 1:2:1",
            "-1:2:1",
            "1:0:1",
            "a:b:c",
            "1:2:3:4",
            "1:2:-1",
            "1:2:999999999",
        ] {
            let shown = format!("{:#}", periods(&format!("-P {wrong}")).unwrap_err());
            assert!(shown.contains("--collection-period"), "{shown}");
        }
        let shown = format!("{:#}", periods("-P 1:1:1 --collection-period-unit day").unwrap_err());
        assert!(shown.contains("day"), "{shown}");
    }
}
