//! Settings from the environment: read once, kept across forks.

#![expect(unsafe_code, reason = "getauxval")]

use roctop_ring::level::Level;
use roctop_ring::session::{
    ENV_COUNT_PAUSES, ENV_LEVEL, ENV_LEVEL_REASON, ENV_MPI, ENV_NO_FLIGHT, ENV_PAUSED, ENV_RING, ENV_SESSION,
};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Slots of an application thread's ring by default.
pub const RING_SLOTS: u64 = 16 * 1024;

/// The collector's settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The session's directory.
    pub session: PathBuf,
    /// Slots of an application thread's ring. The rings of completions and of the first thread have four times as many.
    pub ring_slots: u64,
    /// Nothing is recorded until the program requests it.
    pub is_paused: bool,
    /// Nested pauses and resumes are counted: an inner pair changes nothing.
    pub counts_pauses: bool,
    /// The requested level of timing.
    pub level: Option<Level>,
    /// Why it is requested; `None` if the user chose it.
    pub level_reason: Option<String>,
    /// Whether calls of MPI are recorded.
    pub has_mpi: bool,
}

static CONFIG: OnceLock<Option<Config>> = OnceLock::new();

/// The settings; `None` if this process is not traced.
pub fn config() -> Option<&'static Config> {
    CONFIG.get_or_init(read).as_ref()
}

fn read() -> Option<Config> {
    // SAFETY: reads a number that the kernel gave at start.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    let session = PathBuf::from(std::env::var_os(ENV_SESSION).filter(|value| !value.is_empty())?);
    let level = level(std::env::var(ENV_LEVEL).ok().as_deref(), is_set(ENV_NO_FLIGHT));
    Some(Config {
        session,
        ring_slots: ring_slots(std::env::var(ENV_RING).ok().as_deref()),
        is_paused: is_set(ENV_PAUSED),
        counts_pauses: is_set(ENV_COUNT_PAUSES),
        level,
        level_reason: level_reason(level, std::env::var(ENV_LEVEL_REASON).ok().as_deref()),
        has_mpi: std::env::var_os(ENV_MPI).is_none_or(|value| value != "off"),
    })
}

/// The level that the variables request. The viewer rejects invalid values; here they count as no request.
fn level(number: Option<&str>, has_no_files: bool) -> Option<Level> {
    let asked = number.and_then(Level::parse);
    if has_no_files {
        return asked.max(Some(Level::Memory));
    }
    asked
}

/// Why a level is requested. The reason of another level, in the environment of a program that set its own, does not count.
fn level_reason(level: Option<Level>, text: Option<&str>) -> Option<String> {
    let (number, reason) = text?.split_once(' ')?;
    (level.is_some() && Level::parse(number) == level).then(|| reason.to_owned())
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// A power of two between 64 and 2^24, at most the requested number.
fn ring_slots(asked: Option<&str>) -> u64 {
    let slots = asked
        .and_then(|text| text.trim().parse::<u64>().ok())
        .unwrap_or(RING_SLOTS)
        .clamp(64, 1 << 24);
    1 << slots.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_flight_files_means_level_1_or_a_greater_one() {
        assert_eq!(level(None, false), None);
        assert_eq!(level(None, true), Some(Level::Memory));
        assert_eq!(level(Some("4"), true), Some(Level::Plain));
        assert_eq!(level(Some("0"), false), Some(Level::Files));
        assert_eq!(level(Some("7"), false), None);
    }

    #[test]
    fn a_ring_size_is_a_power_of_two_in_bounds() {
        assert_eq!(ring_slots(None), RING_SLOTS);
        assert_eq!(ring_slots(Some("1000")), 512);
        assert_eq!(ring_slots(Some("1")), 64);
        assert_eq!(ring_slots(Some("nonsense")), RING_SLOTS);
        assert_eq!(ring_slots(Some("99999999999")), 1 << 24);
    }

    #[test]
    fn a_reason_belongs_to_its_level() {
        let plain = Some(Level::Plain);
        assert_eq!(
            level_reason(plain, Some("4 found before")).as_deref(),
            Some("found before")
        );
        for (level, text) in [
            (plain, "6 found before"),
            (plain, ""),
            (None, "4 found before"),
            (None, "x y"),
        ] {
            assert_eq!(level_reason(level, Some(text)), None, "{text}");
        }
        assert_eq!(level_reason(plain, None), None);
    }
}
