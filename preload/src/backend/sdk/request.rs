//! Counter request: `key=value` pairs separated by `;` in one environment variable.

/// Mode of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Counters are listed, and packed into passes.
    List,
    /// Counters are collected per dispatch.
    Dispatch,
    /// Counters of whole agents are read periodically.
    Device,
    /// No counters: program counters are sampled.
    Sample,
}

/// A requested counter, or one instance of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// As requested: `TCC_HIT[1]`.
    pub(super) text: String,
    /// The counter's name.
    pub(super) name: String,
    /// Instance, if only one is requested.
    pub(super) instance: Option<usize>,
    /// GPU from 0, if only one is requested.
    pub(super) device: Option<u32>,
    /// Group from 1; 0 if counters are packed into passes.
    pub(super) group: u16,
}

/// Parameters of PC sampling, in the SDK's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampling {
    pub(super) method: i32,
    pub(super) unit: i32,
    /// Interval in that unit; µs for time.
    pub(super) interval: u64,
}

/// A parsed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) mode: Mode,
    pub(super) wanted: Vec<Wanted>,
    /// Pass that is counted, from 1.
    pub(super) pass: u16,
    /// Kernel names; empty for all.
    pub(super) kernels: Vec<String>,
    /// Ranges of a kernel's dispatches, from 1; empty for all.
    pub(super) iterations: Vec<(u64, u64)>,
    /// Time between two samples of an agent, µs.
    pub(super) interval: u64,
    /// Parameters of PC sampling.
    pub(super) sampling: Option<Sampling>,
    /// Dispatches of a GPU before the next group of counters; 0 without groups.
    pub(super) rotation: u64,
    /// Whether values of instances are recorded, not only sums.
    pub(super) has_instances: bool,
}

impl Request {
    /// Parses the variable; `None` if it has no valid mode.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut request = Self {
            mode: Mode::List,
            wanted: Vec::new(),
            pass: 1,
            kernels: Vec::new(),
            iterations: Vec::new(),
            interval: 100_000,
            sampling: None,
            rotation: 0,
            has_instances: false,
        };
        let mut mode = None;
        for pair in text.split(';') {
            let (key, value) = pair.split_once('=')?;
            match key {
                "mode" => {
                    mode = match value {
                        "list" => Some(Mode::List),
                        "dispatch" => Some(Mode::Dispatch),
                        "device" => Some(Mode::Device),
                        "sample" => Some(Mode::Sample),
                        _ => None,
                    }
                }
                "pmc" => request.wanted = groups(value),
                "rotation" => request.rotation = value.parse().unwrap_or(0),
                "instances" => request.has_instances = value == "1",
                "pass" => request.pass = value.parse().unwrap_or(1),
                "kernels" => request.kernels = value.split(',').map(str::to_owned).collect(),
                "iterations" => request.iterations = value.split(',').filter_map(range).collect(),
                "sampling" => request.sampling = sampling(value),
                "interval" => request.interval = value.parse().unwrap_or(100_000).max(1000),
                _ => {}
            }
        }
        request.mode = mode?;
        if request.rotation == 0 {
            request.wanted.iter_mut().for_each(|one| one.group = 0);
        }
        Some(request)
    }

    /// Whether every dispatch is counted.
    pub(super) fn takes_all(&self) -> bool {
        self.mode != Mode::Sample && self.kernels.is_empty() && self.iterations.is_empty()
    }

    /// Whether this dispatch is counted. `number` counts its kernel's dispatches, from 1.
    pub(super) fn takes(&self, kernel: &[u8], number: u64) -> bool {
        let named = self.kernels.is_empty() || self.kernels.iter().any(|name| is_named(kernel, name.as_bytes()));
        let within = |range: &(u64, u64)| (range.0..=range.1).contains(&number);
        named && (self.iterations.is_empty() || self.iterations.iter().any(within))
    }
}

/// Counters separated by spaces, groups separated by bars.
fn groups(text: &str) -> Vec<Wanted> {
    let group = |(group, text): (u16, &str)| -> Vec<Wanted> {
        let words = text.split_whitespace().map(wanted);
        words.map(|one| Wanted { group, ..one }).collect()
    };
    (1..).zip(text.split('|')).flat_map(group).collect()
}

fn wanted(text: &str) -> Wanted {
    let (text, device) = match text.split_once(":device=") {
        Some((text, device)) => (text, device.parse().ok()),
        None => (text, None),
    };
    let parts = text.strip_suffix(']').and_then(|text| text.split_once('['));
    let indexed = parts.and_then(|(name, index)| Some((name, index.parse().ok()?)));
    Wanted {
        text: text.to_owned(),
        name: indexed.map_or(text, |indexed| indexed.0).to_owned(),
        instance: indexed.map(|indexed| indexed.1),
        device,
        group: 0,
    }
}

fn sampling(text: &str) -> Option<Sampling> {
    let mut words = text.split(',');
    let method = match words.next()? {
        "stochastic" => 1,
        "host_trap" => 2,
        _ => return None,
    };
    let unit = match words.next()? {
        "instructions" => 1,
        "cycles" => 2,
        "time" => 3,
        _ => return None,
    };
    let interval = words.next()?.parse().ok()?;
    Some(Sampling { method, unit, interval })
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    Some((from.trim().parse().ok()?, to.trim().parse().ok()?))
}

/// Whether a kernel's symbol has this function name. A mangled symbol contains the name after its length
/// (`_Z5scalePf`); a C symbol is the name.
fn is_named(symbol: &[u8], name: &[u8]) -> bool {
    let symbol = symbol.strip_suffix(b".kd").unwrap_or(symbol);
    if symbol == name {
        return true;
    }
    let mut part = name.len().to_string().into_bytes();
    part.extend_from_slice(name);
    symbol.starts_with(b"_Z")
        && symbol.windows(part.len()).enumerate().any(|(at, window)| {
            // A preceding digit would make it another length.
            let before = at.checked_sub(1).and_then(|before| symbol.get(before));
            window == part && !before.is_some_and(u8::is_ascii_digit)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_is_written() {
        let request = Request::parse("mode=dispatch;pmc=SQ_WAVES TCC_HIT[1];pass=2;iterations=1-3,7").unwrap();
        assert_eq!((request.mode, request.pass), (Mode::Dispatch, 2));
        assert_eq!(request.iterations, [(1, 3), (7, 7)]);
        let second = request.wanted.get(1).unwrap();
        assert_eq!((second.name.as_str(), second.instance), ("TCC_HIT", Some(1)));
        let grouped = Request::parse("mode=dispatch;pmc=A B:device=1|C[2]:device=0;rotation=4;instances=1").unwrap();
        let parsed: Vec<_> = grouped
            .wanted
            .iter()
            .map(|one| (one.text.as_str(), one.device, one.group))
            .collect();
        assert_eq!(parsed, [("A", None, 1), ("B", Some(1), 1), ("C[2]", Some(0), 2)]);
        assert!(grouped.rotation == 4 && grouped.has_instances);
        assert!(Request::parse("").is_none());
        assert!(Request::parse("mode=nonsense").is_none());
    }

    #[test]
    fn kernels_are_taken_by_name_and_number() {
        let request = Request::parse("mode=dispatch;pmc=A;kernels=scale,plain;iterations=2-3").unwrap();
        assert!(request.takes(b"_Z5scalePfi.kd", 2));
        assert!(!request.takes(b"_Z5scalePfi", 1));
        assert!(!request.takes(b"_Z15scalePfi", 2));
        assert!(request.takes(b"plain", 3));
        assert!(request.takes(b"_ZN2ns5scaleIfEEvPT_", 2));
        assert!(!request.takes(b"other", 2));
    }
}
