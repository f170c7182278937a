//! Properties of the emulated machine: the environment, read once.
//!
//! The crate's documentation lists names and defaults. A variable that does not parse is ignored and the default holds,
//! because a preloaded library has nowhere to report it.

use std::str::FromStr;
use std::sync::OnceLock;

use crate::clock::{Counter, System};
use crate::fault::Faults;
use crate::target::Target;

/// The emulated machine and the durations of its work.
pub(crate) struct Model {
    /// Number of GPUs.
    pub(crate) gpus: u32,
    /// Type of GPU.
    pub(crate) target: &'static Target,
    /// Whether the host may access all of the GPU's memory.
    pub(crate) large_bar: bool,
    /// Bytes of memory of each GPU.
    pub(crate) vram: u64,
    /// Clock that the driver uses as the system clock.
    pub(crate) clock: System,
    /// The GPUs' counters.
    pub(crate) counter: Counter,
    /// Copy engines of each GPU.
    pub(crate) copy_engines: u32,
    /// Whether the GPUs have links to each other.
    pub(crate) links: bool,
    /// NUMA node of each GPU; none: the machine's own nodes are seen, and the GPUs are at none.
    pub(crate) numa: Vec<u32>,
    /// Whether the driver reports load, clocks, power and temperatures.
    pub(crate) sensors: bool,
    /// Maximum number of events per process.
    pub(crate) events: u32,
    /// Faults of the machine.
    pub(crate) faults: Faults,
    /// Variations of the packet processors.
    pub(crate) habits: Habits,
    /// Path of the truth log, with `%p` not yet replaced.
    pub(crate) log: Option<String>,
    /// Path of the log of driver calls, for debugging the emulation.
    pub(crate) trace: Option<String>,
    /// The library with host twins of kernels.
    pub(crate) kernels: Option<String>,
    /// Minor version of the driver interface.
    pub(crate) kfd_minor: u32,
    kernel_ns: u64,
    per_workgroup_ns: u64,
    by_name: Vec<(String, u64)>,
    jitter_percent: f64,
    seed: u64,
    copy_gbps: f64,
    copy_latency_ns: u64,
}

fn text(name: &str) -> Option<String> {
    std::env::var(format!("EMULATED_GPU_{name}"))
        .ok()
        .filter(|value| !value.is_empty())
}

fn number<T: FromStr>(name: &str, default: T) -> T {
    text(name)
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(default)
}

/// The model of this process.
pub(crate) fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(Model::from_environment)
}

/// Variation of a packet processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    /// A packet's header stays unchanged when the packet is taken.
    Headers,
    /// The read index moves when a packet completes, not when it begins.
    Late,
    /// Packets are taken up to the doorbell's index, whatever the write index is.
    Doorbell,
    /// One kernel at a time per queue.
    Serial,
    /// Never sleeps.
    Eager,
    /// Sleeps for 5 ms.
    Slow,
    /// `_exit` ends the process, even if another library overrides it.
    Exit,
    /// A kernel's begin is when its packet was seen, whatever it waits for.
    Parsed,
}

/// Requested variations, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits(u8);

impl Habits {
    fn named(list: &str) -> Self {
        let bit = |name: &str| match name.trim() {
            // An unchanged header does not show the next lap: the doorbell must.
            "headers" => 1 << Habit::Headers as u8 | 1 << Habit::Doorbell as u8,
            "late" => 1 << Habit::Late as u8,
            "doorbell" => 1 << Habit::Doorbell as u8,
            "serial" => 1 << Habit::Serial as u8,
            "eager" => 1 << Habit::Eager as u8,
            "slow" => 1 << Habit::Slow as u8,
            "exit" => 1 << Habit::Exit as u8,
            "parsed" => 1 << Habit::Parsed as u8,
            _ => 0,
        };
        Self(list.split(',').fold(0, |all, name| all | bit(name)))
    }

    /// Whether this variation is requested.
    pub(crate) fn has(self, habit: Habit) -> bool {
        self.0 & 1 << habit as u8 != 0
    }
}

impl Model {
    fn from_environment() -> Self {
        Self {
            gpus: number("COUNT", 1).clamp(0, 64),
            target: Target::named(&text("TARGET").unwrap_or_default()),
            large_bar: number("LARGE_BAR", 0) != 0,
            clock: System::named(&text("CLOCK").unwrap_or_default()),
            counter: Counter::named(&text("COUNTER").unwrap_or_default()),
            copy_engines: number("COPY_ENGINES", 2).min(8),
            links: number("LINKS", 0) != 0,
            numa: text("NUMA")
                .map(|list| list.split(',').filter_map(|node| node.parse().ok()).collect())
                .unwrap_or_default(),
            sensors: number("SENSORS", 1) != 0,
            events: number("EVENTS", 4095).clamp(1, 4095),
            faults: Faults::of(text),
            habits: Habits::named(&text("HABITS").unwrap_or_default()),
            vram: number("VRAM_MIB", 16 * 1024_u64).max(64) << 20,
            log: text("LOG"),
            trace: text("TRACE"),
            kernels: text("KERNELS"),
            kfd_minor: number("KFD_MINOR", 15),
            kernel_ns: number("KERNEL_NS", 5000),
            per_workgroup_ns: number("PER_WORKGROUP_NS", 0),
            by_name: text("BY_NAME").map(|list| parse_names(&list)).unwrap_or_default(),
            jitter_percent: number("JITTER", 0.0),
            seed: number("SEED", 1),
            copy_gbps: number("COPY_GBPS", 12.0_f64).max(0.001),
            copy_latency_ns: number("COPY_LATENCY_NS", 2000),
        }
    }

    /// Duration of a kernel: by its name, else constant plus its work-groups; `sequence` seeds the jitter.
    pub(crate) fn kernel_duration(&self, name: &str, workgroups: u64, sequence: u64) -> u64 {
        let named = self
            .by_name
            .iter()
            .find(|(pattern, _)| matches(pattern, name))
            .map(|entry| entry.1);
        let base = named.unwrap_or(self.kernel_ns) + self.per_workgroup_ns * workgroups;
        self.jittered(base, sequence)
    }

    /// Duration of a copy or fill of this many bytes.
    pub(crate) fn copy_duration(&self, bytes: u64) -> u64 {
        self.copy_latency_ns + (bytes as f64 / self.copy_gbps) as u64
    }

    fn jittered(&self, base: u64, sequence: u64) -> u64 {
        if self.jitter_percent <= 0.0 {
            return base;
        }
        let unit = scramble(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ sequence) as f64 / u64::MAX as f64;
        (base as f64 * (1.0 + self.jitter_percent / 100.0 * (2.0 * unit - 1.0))).max(0.0) as u64
    }
}

/// The finaliser of splitmix64.
fn scramble(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Parses `name=number,…`; skips other entries.
pub(crate) fn parse_names(list: &str) -> Vec<(String, u64)> {
    let entry = |item: &str| {
        let (pattern, duration) = item.rsplit_once('=')?;
        Some((pattern.trim().to_owned(), duration.trim().parse().ok()?))
    };
    list.split(',').filter_map(entry).collect()
}

/// A pattern without `*` matches anywhere in the name; with `*` it matches the whole name.
fn matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains('*') {
        return name.contains(pattern);
    }
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let last = parts.next_back().unwrap_or_default();
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_anywhere_unless_it_has_stars() {
        assert!(matches("scale", "_Z5scalePf"));
        assert!(matches("*scale*", "_Z5scalePf"));
        assert!(matches("_Z5*Pf", "_Z5scalePf"));
        assert!(!matches("scale*", "_Z5scalePf"));
        assert!(!matches("*a*b", "b a"));
    }

    #[test]
    fn names_and_durations_are_parsed_and_the_rest_is_left_out() {
        let names = parse_names("gemm=100, copy*=7,broken,x=y");
        assert_eq!(names, [("gemm".to_owned(), 100), ("copy*".to_owned(), 7)]);
    }

    #[test]
    fn jitter_stays_in_its_range_and_repeats_with_its_seed() {
        let mut model = Model::from_environment();
        model.jitter_percent = 10.0;
        for sequence in 0..1000 {
            let duration = model.jittered(1000, sequence);
            assert!((900..=1100).contains(&duration));
            assert_eq!(duration, model.jittered(1000, sequence));
        }
    }
}
