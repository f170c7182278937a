//! Scenarios: a TOML file that says what a program does in each of its steps, and the items that come of it.
//!
//! Deterministic: the same file gives the same items. Used by tests, screenshots and the screen's own development; a
//! scenario is no measurement and is never shown as one.
#![forbid(unsafe_code)]

pub mod job;
mod maker;
mod program;

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

use self::maker::Maker;
use self::program::Work;
use roctop_model::{Options, Store};
use roctop_trace::item::{Item, Nanos};

/// When every scenario begins.
pub const BEGIN: Nanos = 1_000_000_000_000;

/// A scenario as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Command line.
    pub title: String,
    /// Seed of the jitter.
    #[serde(default)]
    pub seed: u64,
    /// How many steps.
    pub steps: u32,
    /// Length of a step.
    pub step: Time,
    /// Relative jitter of durations, per cent.
    #[serde(default)]
    pub jitter: u32,
    /// GPUs.
    #[serde(default, rename = "gpu")]
    gpus: Vec<Gpu>,
    #[serde(default, rename = "kernel")]
    kernels: Vec<KernelText>,
    #[serde(default, rename = "process")]
    processes: Vec<ProcessText>,
    #[serde(default, rename = "thread")]
    threads: Vec<ThreadText>,
    #[serde(default)]
    work: Vec<WorkText>,
    #[serde(default, rename = "range")]
    ranges: Vec<RangeText>,
    #[serde(default, rename = "call")]
    calls: Vec<CallText>,
    /// Printed at the end of each step; `{step}` and `{loss}` are filled in.
    #[serde(default)]
    print: Vec<String>,
    #[serde(default)]
    said: Vec<String>,
    /// Records lost at the end of each step.
    #[serde(default)]
    lost: u64,
    /// How it ends: absent, it does not.
    end: Option<EndText>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gpu {
    name: String,
    product: String,
    units: u32,
    memory: u64,
    /// Shader clock, MHz, and the most that the memory carries, GB/s; absent, no gauges.
    clock: Option<f64>,
    bandwidth: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KernelText {
    key: String,
    name: String,
    #[serde(default)]
    mangled: String,
    #[serde(default)]
    internal: bool,
    #[serde(default)]
    lds: u32,
    #[serde(default)]
    vgpr: u32,
    grid: [u32; 3],
    workgroup: [u16; 3],
    /// Hardware counters: what each counts over a dispatch, about.
    #[serde(default)]
    counters: BTreeMap<String, f64>,
    /// Call paths from which it is launched in turn, functions from the innermost outward: `forward() model.cpp:120`.
    #[serde(default)]
    paths: Vec<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessText {
    pid: u32,
    command: String,
    rank: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadText {
    name: String,
    tid: u32,
    #[serde(default)]
    process: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkText {
    gpu: u32,
    stream: u32,
    thread: String,
    /// Hardware queue; absent, a separate one.
    queue: Option<u32>,
    #[serde(default)]
    at: Time,
    #[serde(rename = "do")]
    steps: Vec<Work>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeText {
    thread: String,
    text: String,
    at: Time,
    dur: Time,
    #[serde(default)]
    level: u16,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallText {
    thread: String,
    name: String,
    at: Time,
    dur: Time,
    #[serde(default)]
    status: i32,
    /// Only in every n-th step.
    #[serde(default = "one")]
    every: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndText {
    code: Option<i32>,
    signal: Option<i32>,
    /// Into the last step.
    #[serde(default)]
    at: Time,
}

fn one() -> u32 {
    1
}

/// A length of time, written as `"541us"`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Time(pub u64);

impl TryFrom<String> for Time {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        program::time(&text).map(Self)
    }
}

impl Scenario {
    /// Reads a scenario.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// All items with the time when each is known, in order.
    pub fn items(&self) -> Vec<(Nanos, Item)> {
        let mut maker = Maker::new(self);
        for step in 0..self.steps {
            maker.step(step);
        }
        maker.finish()
    }

    /// A store of all that happens within `elapsed` ns.
    pub fn store(&self, options: Options, elapsed: u64) -> Store {
        let mut store = Store::new(options);
        let until = BEGIN + elapsed;
        let mut ticked = BEGIN;
        for (at, item) in self.items().iter().filter(|timed| timed.0 <= until) {
            while ticked + 250_000_000 <= *at {
                ticked += 250_000_000;
                store.apply(&Item::Now(ticked));
            }
            store.apply(item);
        }
        if self.end.is_none() {
            store.apply(&Item::Now(until));
        }
        store
    }

    /// Names of the counters of all kernels.
    fn counters(&self) -> Vec<&str> {
        let names = self.kernels.iter().flat_map(|kernel| kernel.counters.keys());
        let names: BTreeSet<&str> = names.map(String::as_str).collect();
        names.into_iter().collect()
    }

    /// Whether it goes on for ever, so far as it knows.
    pub fn ends_never(&self) -> bool {
        self.end.is_none()
    }

    /// How long it goes on.
    pub fn length(&self) -> u64 {
        u64::from(self.steps) * self.step.0
    }
}
