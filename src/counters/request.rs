//! What the user wants counted, as the collector reads it.

use crate::sampling::Wish;
use anyhow::{Result, bail};
use roctop_ring::session::ENV_COUNTERS;
use std::ffi::OsString;

/// What is done with counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They are listed, and packed into passes.
    List,
    /// They are counted over each dispatch; kernels run one after the other.
    Dispatch,
    /// They are read from whole agents; kernels run as they are.
    Device,
    /// None: program counters are sampled.
    Sample,
}

/// A request for one run of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is done.
    pub mode: Mode,
    /// Counters, as `SQ_WAVES` or `TCC_HIT[1]`.
    pub counters: Vec<String>,
    /// The pass that is counted, from 1, when they do not fit at once.
    pub pass: usize,
    /// Functions by name; empty: all kernels.
    pub kernels: Vec<String>,
    /// Which of a kernel's dispatches, from 1; empty: all.
    pub iterations: Vec<(u64, u64)>,
    /// Between two samples of an agent, µs.
    pub interval: u64,
    /// How program counters are sampled.
    pub sampling: Option<Wish>,
}

impl Request {
    /// A request for these counters over all dispatches.
    pub fn new(mode: Mode, counters: Vec<String>) -> Self {
        Self {
            mode,
            counters,
            pass: 1,
            kernels: Vec::new(),
            iterations: Vec::new(),
            interval: 100_000,
            sampling: None,
        }
    }

    /// A request to sample program counters.
    pub fn sampling(wish: Wish) -> Self {
        Self {
            sampling: Some(wish),
            ..Self::new(Mode::Sample, Vec::new())
        }
    }

    /// The variable of the program's environment.
    pub fn variable(&self) -> (OsString, OsString) {
        let mode = match self.mode {
            Mode::List => "list",
            Mode::Dispatch => "dispatch",
            Mode::Device => "device",
            Mode::Sample => "sample",
        };
        let ranges: Vec<String> = self
            .iterations
            .iter()
            .map(|(from, to)| format!("{from}-{to}"))
            .collect();
        let mut pairs = vec![format!("mode={mode};pass={};interval={}", self.pass, self.interval)];
        for (key, words, between) in [
            ("pmc", &self.counters, " "),
            ("kernels", &self.kernels, ","),
            ("iterations", &ranges, ","),
        ] {
            if !words.is_empty() {
                pairs.push(format!("{key}={}", words.join(between)));
            }
        }
        pairs.extend(self.sampling.as_ref().map(|wish| format!("sampling={wish}")));
        let text = pairs.join(";");
        (ENV_COUNTERS.into(), text.into())
    }
}

/// Counters as typed: separated by commas or blanks.
///
/// Errors: a word is no counter's name.
pub fn names(words: &[String]) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for word in words.iter().flat_map(|words| words.split([',', ' '])) {
        let bare = word.strip_suffix(']').and_then(|word| word.split_once('['));
        let (name, index) = bare.unwrap_or((word, "0"));
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if word.is_empty() || names.iter().any(|known| known == word) {
            continue;
        }
        if !is_name || index.parse::<u16>().is_err() {
            bail!("'{word}' is no counter's name; 'roctop counters' lists them");
        }
        names.push(word.to_owned());
    }
    Ok(names)
}

/// Function names as typed: separated by commas.
///
/// Errors: a word is no name; patterns are not taken.
pub fn kernels(words: &[String]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for word in words
        .iter()
        .flat_map(|words| words.split(','))
        .filter(|word| !word.is_empty())
    {
        if !word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            bail!("'{word}' is no function's name: kernels to count are named without arguments, as scale");
        }
        names.push(word.to_owned());
    }
    Ok(names)
}

/// Ranges as typed: `[1-3,7]`, `1-3 7`.
///
/// Errors: a word is no range.
pub fn iterations(words: &[String]) -> Result<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    for text in words {
        let bare = text.trim().trim_start_matches('[').trim_end_matches(']');
        for word in bare.split([',', ' ']).filter(|word| !word.is_empty()) {
            let (from, to) = word.split_once('-').unwrap_or((word, word));
            match (from.parse(), to.parse()) {
                (Ok(from), Ok(to)) if from > 0 && from <= to => ranges.push((from, to)),
                _ => bail!("'{word}' is no range of a kernel's dispatches, as 1-3 or 7"),
            }
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    #[test]
    fn names_are_taken_once_and_checked() {
        assert_eq!(
            names(&words("SQ_WAVES, TCC_HIT[1] SQ_WAVES")).unwrap(),
            ["SQ_WAVES", "TCC_HIT[1]"]
        );
        for wrong in ["a;b", "TCC_HIT[x]", "TCC[1", "pmc=A"] {
            assert!(names(&words(wrong)).is_err(), "{wrong}");
        }
        assert!(kernels(&words("scale,a*")).is_err());
    }

    #[test]
    fn a_request_becomes_a_variable() {
        let mut request = Request::new(Mode::Dispatch, vec!["A".into(), "B[2]".into()]);
        request.kernels = kernels(&words("scale,plain")).unwrap();
        request.iterations = iterations(&words("[1-3,7]")).unwrap();
        let (_, text) = request.variable();
        assert_eq!(
            text,
            "mode=dispatch;pass=1;interval=100000;pmc=A B[2];kernels=scale,plain;iterations=1-3,7-7"
        );
        assert!(iterations(&words("3-1")).is_err());
        assert!(iterations(&words("0")).is_err());
    }
}
