//! What the user wants counted, as the collector reads it.

use crate::pc_sampling::SamplingRequest;
use crate::settings::yaml;
use anyhow::{Context, Result, bail};
use roctop_ring::session::{ENV_COUNTERS, ENV_DEFINITIONS};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

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

/// Counters that are collected in one run, in groups that take turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The groups; most often one.
    pub groups: Vec<Vec<String>>,
    /// Dispatches of a GPU before the next group takes its turn.
    pub rotation: u64,
}

impl From<Vec<String>> for Groups {
    fn from(counters: Vec<String>) -> Self {
        Self {
            groups: vec![counters],
            rotation: 1,
        }
    }
}

/// A request for one run of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is done.
    pub mode: Mode,
    /// Counters, as `SQ_WAVES`, `TCC_HIT[1]` or `SQ_WAVES:device=0`.
    pub counters: Groups,
    /// Values of instances are recorded, for the files that hold them.
    pub has_instances: bool,
    /// More definitions of counters, a YAML text.
    pub definitions: Option<String>,
    /// The pass that is counted, from 1, when they do not fit at once.
    pub pass: usize,
    /// Functions by name; empty: all kernels.
    pub kernels: Vec<String>,
    /// Which of a kernel's dispatches, from 1; empty: all.
    pub iterations: Vec<(u64, u64)>,
    /// Between two samples of an agent, µs.
    pub interval: u64,
    /// How program counters are sampled.
    pub sampling: Option<SamplingRequest>,
}

impl Request {
    /// A request for these counters over all dispatches.
    pub fn new(mode: Mode, counters: impl Into<Groups>) -> Self {
        Self {
            mode,
            counters: counters.into(),
            has_instances: false,
            definitions: None,
            pass: 1,
            kernels: Vec::new(),
            iterations: Vec::new(),
            interval: 100_000,
            sampling: None,
        }
    }

    /// A request to sample program counters.
    pub fn sampling(wish: SamplingRequest) -> Self {
        Self {
            sampling: Some(wish),
            ..Self::new(Mode::Sample, Vec::new())
        }
    }

    /// No counter is asked for.
    pub fn is_empty(&self) -> bool {
        self.counters.groups.iter().all(Vec::is_empty)
    }

    /// The counters in words, groups between bars.
    pub fn text(&self) -> String {
        let groups = self.counters.groups.iter().map(|group| group.join(" "));
        groups.collect::<Vec<_>>().join(" | ")
    }

    /// The variables of the program's environment.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
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
        let groups: Vec<String> = self.counters.groups.iter().map(|group| group.join(" ")).collect();
        let mut pairs = vec![format!("mode={mode};pass={};interval={}", self.pass, self.interval)];
        if !self.is_empty() {
            pairs.push(format!("pmc={}", groups.join("|")));
        }
        if groups.len() > 1 {
            pairs.push(format!("rotation={}", self.counters.rotation));
        }
        if self.has_instances {
            pairs.push("instances=1".to_owned());
        }
        for (key, words) in [("kernels", &self.kernels), ("iterations", &ranges)] {
            if !words.is_empty() {
                pairs.push(format!("{key}={}", words.join(",")));
            }
        }
        pairs.extend(self.sampling.as_ref().map(|wish| format!("sampling={wish}")));
        let mut variables = vec![(ENV_COUNTERS.into(), pairs.join(";").into())];
        let definitions = self.definitions.as_ref();
        variables.extend(definitions.map(|text| (ENV_DEFINITIONS.into(), text.into())));
        variables
    }
}

/// The most bytes of a definition file: it travels in the environment, where a text has 128 KiB.
const MAX_DEFINITION_BYTES: u64 = 120 << 10;

/// Reads a file of counter definitions.
///
/// Errors: it cannot be read, is too long, or no YAML with definitions of counters.
pub fn definitions(path: &Path) -> Result<String> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot read the counter definitions {shown}"))?;
    let mut text = String::new();
    file.take(MAX_DEFINITION_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read the counter definitions {shown}"))?;
    if text.len() as u64 > MAX_DEFINITION_BYTES {
        bail!("the counter definitions {shown} are longer than {MAX_DEFINITION_BYTES} bytes");
    }
    check(&text).with_context(|| format!("the counter definitions {shown}"))?;
    Ok(text)
}

/// Does a text define counters?
///
/// Errors: it is no YAML, or has no definitions of counters.
pub fn check(text: &str) -> Result<()> {
    let documents = yaml::documents(text)?;
    let counters = documents
        .first()
        .and_then(|one| one["rocprofiler-sdk"]["counters"].as_vec());
    if text.contains('\0') || counters.is_none_or(Vec::is_empty) {
        bail!("it defines no counters: it takes a list 'counters' below 'rocprofiler-sdk'");
    }
    Ok(())
}

/// Counters as typed: separated by commas or blanks.
///
/// Errors: a word is no counter's name.
pub fn names(words: &[String]) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for word in words.iter().flat_map(|words| words.split([',', ' '])) {
        let (part, device) = word.split_once(":device=").unwrap_or((word, "0"));
        let bare = part.strip_suffix(']').and_then(|part| part.split_once('['));
        let (name, index) = bare.unwrap_or((part, "0"));
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if word.is_empty() || names.iter().any(|known| known == word) {
            continue;
        }
        if device.parse::<u32>().is_err() {
            bail!("'{word}': after ':device=' comes the number of a GPU, from 0");
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

/// Ranges as typed: `[1-3,7]`, `1-3 7`, `[[1-3], 7]`; brackets are as good as blanks, as upstream. One that begins with 0 or ends before
/// it begins has no dispatch, see [`no_empty`].
///
/// Errors: a word is no range.
pub fn iterations(words: &[String]) -> Result<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    for text in words {
        for word in text.split(['[', ']', ',', ' ']).filter(|word| !word.is_empty()) {
            let (from, to) = word.split_once('-').unwrap_or((word, word));
            match (from.parse(), to.parse()) {
                (Ok(from), Ok(to)) => ranges.push((from, to)),
                _ => bail!("'{word}' is no range of a kernel's dispatches, as 1-3 or 7"),
            }
        }
    }
    Ok(ranges)
}

/// Errors: one of these ranges has no dispatch, or begins before the first.
pub fn no_empty(ranges: &[(u64, u64)]) -> Result<()> {
    match ranges.iter().find(|(from, to)| *from == 0 || from > to) {
        Some((from, to)) => bail!("{from}-{to} is no range of a kernel's dispatches, which count from 1"),
        None => Ok(()),
    }
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
        assert_eq!(
            names(&words("A[1]:device=1,B:device=0")).unwrap(),
            ["A[1]:device=1", "B:device=0"]
        );
        for wrong in ["a;b", "TCC_HIT[x]", "TCC[1", "pmc=A", "A:device=", "A:device=x", "A|B"] {
            assert!(names(&words(wrong)).is_err(), "{wrong}");
        }
        assert!(kernels(&words("scale,a*")).is_err());
    }

    #[test]
    fn a_request_becomes_a_variable() {
        let mut request = Request::new(Mode::Dispatch, vec!["A".into(), "B[2]".into()]);
        request.kernels = kernels(&words("scale,plain")).unwrap();
        request.iterations = iterations(&words("[1-3,7]")).unwrap();
        let text = |request: &Request| request.variables().remove(0).1;
        assert_eq!(
            text(&request),
            "mode=dispatch;pass=1;interval=100000;pmc=A B[2];kernels=scale,plain;iterations=1-3,7-7"
        );
        let mut grouped = Request::new(Mode::Dispatch, vec!["A".into()]);
        grouped.counters.groups.push(vec!["B".into(), "C".into()]);
        (grouped.counters.rotation, grouped.has_instances) = (4, true);
        grouped.definitions = Some("text".into());
        assert_eq!(
            text(&grouped),
            "mode=dispatch;pass=1;interval=100000;pmc=A|B C;rotation=4;instances=1"
        );
        assert_eq!(grouped.variables()[1], (ENV_DEFINITIONS.into(), "text".into()));
        for (text, ranges) in [
            ("[1, 3, 5, [8-12]]", &[(1, 1), (3, 3), (5, 5), (8, 12)][..]),
            ("[11-14], [4-5]", &[(11, 14), (4, 5)]),
            ("[[3-6], 1, 13]", &[(3, 6), (1, 1), (13, 13)]),
        ] {
            assert_eq!(iterations(&words(text)).unwrap(), ranges);
        }
        for text in ["3-1", "0", "0-2"] {
            let ranges = iterations(&words(text)).unwrap();
            assert!(no_empty(&ranges).is_err(), "{text}");
        }
        assert!(no_empty(&[(1, 1), (3, 7)]).is_ok());
        assert!(iterations(&words("-1")).is_err() && iterations(&words("1-x")).is_err());
    }
}
