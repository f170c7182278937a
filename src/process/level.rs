//! The level of timing at which a program's collector starts: what was asked for, checked against the other options.

use crate::cli::usage_error::UsageError;
use roctop_ring::level::Level;
use roctop_ring::session::{ENV_LEVEL, ENV_NO_FLIGHT, source};
use std::ffi::OsString;

/// A level by its number, as the command line has it.
pub fn parse(text: &str) -> Result<Level, String> {
    Level::parse(text).ok_or_else(|| "expected a level from 0 to 6".into())
}

/// The level to start at; none: the collector chooses. `option` is the command line's, which wins over the environment's;
/// `dispatch_source` is one of [`source`].
///
/// Errors: no level, or options that contradict each other.
pub fn start(
    option: Option<Level>,
    dispatch_source: u64,
    is_counting: bool,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<Level>, UsageError> {
    let is_set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let variable = is_set(ENV_LEVEL).map(|value| {
        let text = value.to_string_lossy().into_owned();
        parse(&text).map_err(|error| UsageError(format!("{ENV_LEVEL}={text}: {error}")))
    });
    let (level, name) = match (option, variable) {
        (Some(level), _) => (level, "--level"),
        (None, Some(level)) => (level?, ENV_LEVEL),
        (None, None) => return Ok(None),
    };
    let against = |what: &str, why: &str| {
        let text = format!("{what} and {name} {level} contradict each other: at level {level} {why}");
        Err(UsageError(text))
    };
    if level == Level::Files && is_set(ENV_NO_FLIGHT).is_some() {
        return against(ENV_NO_FLIGHT, "there are flight files");
    }
    if level > Level::Program && dispatch_source == source::HSA {
        return against("--dispatch-source hsa", "no queue of HSA's is intercepted");
    }
    if level > Level::Plain && dispatch_source == source::HIP {
        return against("--dispatch-source hip", level.meaning());
    }
    if level > Level::Plain && is_counting {
        return against("hardware counters", level.meaning());
    }
    Ok(Some(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(option: &str, dispatch_source: u64, is_counting: bool, set: &[(&str, &str)]) -> Result<u8, String> {
        let environment = |name: &str| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let option = Level::parse(option);
        match start(option, dispatch_source, is_counting, &environment) {
            Ok(level) => Ok(level.map_or(u8::MAX, Level::number)),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_option_wins_over_the_variable() {
        let auto = source::AUTO;
        assert_eq!(asked("", auto, false, &[]), Ok(u8::MAX));
        assert_eq!(asked("", auto, false, &[(ENV_LEVEL, "")]), Ok(u8::MAX));
        assert_eq!(asked("", auto, false, &[(ENV_LEVEL, "2")]), Ok(2));
        assert_eq!(asked("5", auto, false, &[(ENV_LEVEL, "2")]), Ok(5));
        assert_eq!(asked("1", auto, false, &[(ENV_NO_FLIGHT, "1")]), Ok(1));
        assert_eq!(asked("0", auto, false, &[(ENV_NO_FLIGHT, "")]), Ok(0));
        assert_eq!(asked("4", source::HIP, true, &[]), Ok(4));
        assert_eq!(asked("3", source::HSA, false, &[]), Ok(3));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let auto = source::AUTO;
        for wrong in [
            asked("", auto, false, &[(ENV_LEVEL, "7")]),
            asked("", auto, false, &[(ENV_LEVEL, "high")]),
            asked("0", auto, false, &[(ENV_NO_FLIGHT, "1")]),
            asked("", auto, false, &[(ENV_LEVEL, "0"), (ENV_NO_FLIGHT, "1")]),
            asked("4", source::HSA, false, &[]),
            asked("5", source::HIP, false, &[]),
            asked("6", auto, true, &[]),
        ] {
            assert!(wrong.is_err(), "{wrong:?}");
        }
    }
}
