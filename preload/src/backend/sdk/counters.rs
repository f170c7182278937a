//! Describes the available counters as facts, and packs the requested ones into passes.

use super::abi::{self, Agent, CounterInfo, DimensionInfo, SUCCESS, Sdk, Status, status_text};
use super::request::{Mode, Request, Wanted};
use super::{bytes_of, say_missing};
use crate::backend::hsa;
use crate::guard::wall;
use crate::process::Process;
use roctop_ring::record::{self, Domain, counter_flag, status};
use roctop_ring::session::ENV_DEFINITIONS;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::c_void;
use std::sync::Mutex;

/// Dimension that numbers instances, and the requested position.
pub(super) type Instance = (u64, usize);

/// A requested counter of an agent.
pub(super) struct Chosen {
    /// The SDK's id.
    pub(super) handle: u64,
    /// Number in records of values.
    pub(super) number: u32,
    /// Requested instance, with the dimension that numbers instances.
    pub(super) instance: Option<Instance>,
    /// Pass or group, from 1.
    pub(super) pass: u16,
    /// Dimensions by which instances are recorded, with their sizes; empty for sums only.
    pub(super) dimensions: Vec<(u64, usize)>,
}

/// An agent with its requested counters.
pub(super) struct OnAgent {
    /// The SDK's id.
    pub(super) id: u64,
    /// Index of the collector.
    pub(super) index: u32,
    pub(super) chosen: Vec<Chosen>,
    /// Configurations by pass: of the requested one, or of all groups.
    pub(super) configs: Vec<(u16, u64)>,
    /// Number of dispatches, for the rotation of groups.
    pub(super) turns: AtomicU64,
}

impl OnAgent {
    /// Pass and configuration of the next dispatch.
    pub(super) fn turn(&self, rotation: u64) -> Option<(u16, u64)> {
        if rotation == 0 {
            return self.configs.first().copied();
        }
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) / rotation;
        let at = turn.checked_rem(self.configs.len() as u64)?;
        self.configs.get(at as usize).copied()
    }
}

struct Counter {
    info: CounterInfo,
    dimensions: Vec<(String, usize, u64)>,
}

/// Passes the request's counter definitions to the SDK, which reads them at the first question about counters.
pub(super) fn define(sdk: &Sdk) {
    let Some(text) = std::env::var(ENV_DEFINITIONS).ok().filter(|text| !text.is_empty()) else {
        return;
    };
    let Some(load) = sdk.load_definitions else {
        return say_missing("this rocprofiler-sdk takes no definitions of counters; 1.0 and later do");
    };
    // SAFETY: as many bytes as are said, which the SDK copies.
    let answer = unsafe { load(text.as_ptr().cast(), text.len(), abi::APPEND) };
    if answer != SUCCESS {
        say_missing(&format!(
            "rocprofiler-sdk refused the definitions of counters: {}",
            status_text(sdk, answer)
        ));
    }
}

/// Emits agents and counters, and creates the configurations of the requested pass.
pub(super) fn find(sdk: &Sdk, request: &Request, process: &Process) -> Vec<OnAgent> {
    let mut agents: Vec<Agent> = Vec::new();
    if let Some(query) = sdk.agents {
        // The SDK refuses a size larger than its own structure, never a smaller one.
        let size = abi::AGENT_BYTES as usize;
        // SAFETY: `collect_agents` has the type asked for and gets the address of `agents`, which lives meanwhile.
        let answer = unsafe { query(1, collect_agents, size, (&raw mut agents).cast()) };
        if answer != SUCCESS {
            say_missing(&format!(
                "rocprofiler-sdk reports no agents: {}",
                status_text(sdk, answer)
            ));
        }
    }
    let mut number = 0u32;
    let mut found = Vec::new();
    let mut missing = Missing::default();
    for agent in &agents {
        let index = index_of(process, agent);
        if agent.kind != abi::AGENT_GPU {
            continue;
        }
        let counters = counters_of(sdk, agent.id);
        let mut on_agent = OnAgent {
            id: agent.id,
            index,
            chosen: Vec::new(),
            configs: Vec::new(),
            turns: AtomicU64::new(0),
        };
        let list = request.mode == Mode::List && request.wanted.is_empty();
        for counter in counters.iter().filter(|_| list) {
            emit(request, process, counter, None, (number, index, 0));
            number += 1;
        }
        let choice = Choice {
            sdk,
            request,
            agent,
            device: found.len() as u32,
        };
        let passes = choice.make(&counters, &mut on_agent, &mut missing);
        for (chosen, (counter, wanted)) in on_agent.chosen.iter_mut().zip(passes) {
            chosen.number = number;
            emit(request, process, counter, Some(wanted), (number, index, chosen.pass));
            number += 1;
        }
        found.push(on_agent);
    }
    if found.is_empty() {
        say_missing("rocprofiler-sdk sees no GPU");
    }
    missing.report(request, process, found.len());
    found
}

/// Unavailable counters, by index in the request.
#[derive(Default)]
struct Missing {
    reasons: Vec<(usize, String)>,
    /// Counters that at least one agent has.
    had: Vec<usize>,
}

impl Missing {
    /// Reports counters: an error if no agent has it, a note if some lack it.
    fn report(&self, request: &Request, process: &Process, gpus: usize) {
        for (at, reason) in &self.reasons {
            if self.had.contains(at) {
                process.say(status::NOTE, 0, &format!("counters: {reason}"));
            } else {
                say_missing(reason);
            }
        }
        for one in &request.wanted {
            if let Some(device) = one.device.filter(|device| gpus > 0 && *device as usize >= gpus) {
                let last = gpus - 1;
                say_missing(&format!("{}: there is no GPU {device}, the last is {last}", one.text));
            }
        }
    }
}

unsafe extern "C" fn collect_agents(
    _version: u32,
    agents: *const *const u8,
    count: usize,
    data: *mut c_void,
) -> Status {
    wall((), || {
        // SAFETY: `data` is the address of the list that `find` passed.
        let list = unsafe { &mut *data.cast::<Vec<Agent>>() };
        for at in 0..count.min(1024) {
            // SAFETY: the SDK passes the addresses of `count` agents, each of which says its size.
            let agent = unsafe { Agent::read(agents.add(at).read()) };
            match agent {
                Some(agent) => list.push(agent),
                None => super::count_unknown("agents", 0),
            }
        }
    });
    SUCCESS
}

unsafe extern "C" fn collect_counters(_agent: u64, ids: *const u64, count: usize, data: *mut c_void) -> Status {
    wall((), || {
        // SAFETY: `data` is the address of the list that `counters_of` passed, `ids` that of `count` numbers.
        unsafe { &mut *data.cast::<Vec<u64>>() }
            .extend((0..count.min(1 << 16)).map(|at| unsafe { ids.add(at).read() }));
    });
    SUCCESS
}

unsafe extern "C" fn collect_dimensions(
    _id: u64,
    infos: *const DimensionInfo,
    count: usize,
    data: *mut c_void,
) -> Status {
    wall((), || {
        // SAFETY: `data` is the address of the list that `counters_of` passed.
        let list = unsafe { &mut *data.cast::<Vec<(String, usize, u64)>>() };
        for at in 0..count.min(16) {
            // SAFETY: the SDK passes `count` structures.
            let info = unsafe { infos.add(at).read() };
            // SAFETY: the SDK's names are terminated.
            let name = String::from_utf8_lossy(unsafe { bytes_of(info.name) }).into_owned();
            list.push((name, info.instances, info.id));
        }
    });
    SUCCESS
}

fn counters_of(sdk: &Sdk, agent: u64) -> Vec<Counter> {
    let mut ids: Vec<u64> = Vec::new();
    let (Some(iterate), Some(query)) = (sdk.agent_counters, sdk.counter_info) else {
        return Vec::new();
    };
    // SAFETY: `collect_counters` has the type asked for and gets the address of `ids`, which lives meanwhile.
    unsafe { iterate(agent, collect_counters, (&raw mut ids).cast()) };
    let counters = ids.into_iter().filter_map(|id| {
        let mut info = CounterInfo {
            id,
            name: std::ptr::null(),
            description: std::ptr::null(),
            block: std::ptr::null(),
            expression: std::ptr::null(),
            flags: 0,
        };
        // SAFETY: version 1 of the question is answered with this structure.
        if unsafe { query(id, 1, (&raw mut info).cast()) } != SUCCESS {
            return None;
        }
        let mut dimensions: Vec<(String, usize, u64)> = Vec::new();
        if let Some(iterate) = sdk.dimensions {
            // SAFETY: as above, with the address of `dimensions`.
            unsafe { iterate(id, collect_dimensions, (&raw mut dimensions).cast()) };
        }
        Some(Counter { info, dimensions })
    });
    counters.collect()
}

/// The agent on which counters are looked up.
struct Choice<'a> {
    sdk: &'a Sdk,
    request: &'a Request,
    agent: &'a Agent,
    /// Number among the GPUs.
    device: u32,
}

impl<'a> Choice<'a> {
    /// Packs the request into passes, each filled before the next, or takes the groups unchanged; returns each counter
    /// with its request.
    fn make(
        &self,
        counters: &'a [Counter],
        on_agent: &mut OnAgent,
        missing: &mut Missing,
    ) -> Vec<(&'a Counter, &'a Wanted)> {
        let mut known = Vec::new();
        let (mut pass, mut filled): (u16, Vec<u64>) = (1, Vec::new());
        let request = self.request;
        let own = |one: &(usize, &Wanted)| one.1.device.is_none_or(|device| device == self.device);
        for (at, wanted) in request.wanted.iter().enumerate().filter(own) {
            let is_grouped = wanted.group > 0;
            if is_grouped && wanted.group != pass {
                (pass, filled) = (wanted.group, Vec::new());
            }
            let (counter, instance) = match self.find(counters, wanted) {
                Ok(found) => found,
                Err(reason) => {
                    missing.reasons.push((at, reason));
                    continue;
                }
            };
            let id = counter.info.id;
            if !filled.contains(&id) {
                filled.push(id);
                let (mut answer, mut config) = configure(self.sdk, self.agent.id, &filled);
                if answer != SUCCESS && filled.len() > 1 && !is_grouped {
                    filled = vec![id];
                    pass += 1;
                    (answer, config) = configure(self.sdk, self.agent.id, &filled);
                }
                if answer != SUCCESS {
                    let text = status_text(self.sdk, answer);
                    say_missing(&format!("{} on {}: {text}", wanted.text, self.place()));
                    filled.retain(|one| *one != id);
                    continue;
                }
                if is_grouped || pass == request.pass {
                    on_agent.configs.retain(|one| one.0 != pass);
                    on_agent.configs.push((pass, config));
                }
            }
            missing.had.push(at);
            on_agent.chosen.push(Chosen {
                handle: id,
                number: 0,
                instance,
                pass,
                dimensions: if request.has_instances && instance.is_none() {
                    counter.parts()
                } else {
                    Vec::new()
                },
            });
            known.push((counter, wanted));
        }
        known
    }

    /// The counter, and the requested instance with the dimension that numbers it.
    ///
    /// Errors: this agent has none.
    fn find(&self, counters: &'a [Counter], wanted: &Wanted) -> Result<(&'a Counter, Option<Instance>), String> {
        // SAFETY: the SDK's names are terminated.
        let name_of = |counter: &Counter| unsafe { bytes_of(counter.info.name) };
        let found = counters.iter().find(|one| name_of(one) == wanted.name.as_bytes());
        let Some(counter) = found else {
            return Err(format!(
                "{} is not known on {}; 'roctop counters' lists those that are",
                wanted.text,
                self.place()
            ));
        };
        let dimension = counter.dimensions.iter().find(|one| one.0 == "DIMENSION_INSTANCE");
        match (wanted.instance, dimension) {
            (None, _) => Ok((counter, None)),
            (Some(at), Some((_, instances, id))) if at < *instances => Ok((counter, Some((*id, at)))),
            (Some(at), dimension) => Err(format!(
                "{}: there is no instance {at} on {}, it has {}",
                wanted.text,
                self.place(),
                dimension.map_or(0, |one| one.1)
            )),
        }
    }

    fn place(&self) -> String {
        // SAFETY: the SDK's names are terminated.
        let name = String::from_utf8_lossy(unsafe { bytes_of(self.agent.name) });
        format!("GPU of node {} ({name})", self.agent.node)
    }
}

impl Counter {
    /// Dimensions that distinguish its instances; empty for a single instance, or for more than the maximum.
    fn parts(&self) -> Vec<(u64, usize)> {
        let instances = self
            .dimensions
            .iter()
            .try_fold(1usize, |all, one| all.checked_mul(one.1));
        match instances {
            Some(2..=MAX_INSTANCES) => self.dimensions.iter().map(|one| (one.2, one.1)).collect(),
            _ => Vec::new(),
        }
    }
}

/// Maximum number of instances that are recorded individually.
const MAX_INSTANCES: usize = 1 << 16;

fn configure(sdk: &Sdk, agent: u64, ids: &[u64]) -> (Status, u64) {
    let Some(create) = sdk.create_config else {
        return (abi::NOT_IMPLEMENTED, 0);
    };
    let mut config = 0u64;
    // SAFETY: as many ids as are said, and room for the answer.
    let answer = unsafe { create(agent, ids.as_ptr(), ids.len(), &raw mut config) };
    (answer, config)
}

/// Agents emitted before HSA started: node, kind, index.
static EMITTED: Mutex<Vec<(u32, u32, u32)>> = Mutex::new(Vec::new());

/// Index of an agent in HSA's order. The SDK lists all agents of the machine, HSA those visible to the user, in the
/// user's order (`ROCR_VISIBLE_DEVICES`). An agent that was emitted already keeps its index.
pub(super) fn index_in_order(order: u32, node: u32, kind: u32) -> u32 {
    let Ok(emitted) = EMITTED.lock() else { return order };
    let known = emitted.iter().find(|one| (one.0, one.1) == (node, kind));
    known.map_or_else(|| order + emitted.len() as u32, |known| known.2)
}

/// Index of the agent in the collector: HSA's own once HSA started, else it is emitted now.
fn index_of(process: &Process, agent: &Agent) -> u32 {
    if let Some(hsa) = hsa::hsa().filter(|hsa| !hsa.agents.all().is_empty()) {
        return hsa.agents.index_of_node(agent.node).unwrap_or(agent.logical);
    }
    let kind = match agent.kind {
        abi::AGENT_GPU => 1,
        abi::AGENT_CPU => 0,
        _ => 2,
    };
    if let Ok(mut emitted) = EMITTED.lock() {
        emitted.push((agent.node, kind, agent.logical));
    }
    let fact = record::Agent {
        handle: agent.id,
        index: agent.logical,
        node: agent.node,
        kind,
        // SAFETY: the SDK's names are terminated.
        name: process.intern(unsafe { bytes_of(agent.name) }),
        // SAFETY: as above.
        product: process.intern(unsafe { bytes_of(agent.product) }),
        compute_units: agent.units,
        wave_size: agent.wave_size,
        ..record::Agent::default()
    };
    process.fact(record::Agent::head(0, Domain::NONE), &fact.payload());
    agent.logical
}

fn emit(
    request: &Request,
    process: &Process,
    counter: &Counter,
    wanted: Option<&Wanted>,
    (id, agent, pass): (u32, u32, u16),
) {
    // SAFETY: the SDK's texts are terminated or null.
    let text = |text| process.intern(unsafe { bytes_of(text) });
    let dimensions: Vec<String> = counter
        .dimensions
        .iter()
        .map(|(name, instances, _)| format!("{name}[0:{}]", instances.saturating_sub(1)))
        .collect();
    let mut flags = 0;
    for (bit, flag) in [(1, counter_flag::CONSTANT), (2, counter_flag::DERIVED)] {
        if counter.info.flags & bit != 0 {
            flags |= flag;
        }
    }
    if request.mode == Mode::Device {
        flags |= counter_flag::DEVICE;
    }
    let fact = record::Counter {
        handle: counter.info.id,
        instances: counter.dimensions.iter().map(|one| one.1 as u64).product(),
        id,
        agent,
        name: match wanted {
            Some(wanted) => process.intern(wanted.text.as_bytes()),
            None => text(counter.info.name),
        },
        description: text(counter.info.description),
        block: text(counter.info.block),
        expression: text(counter.info.expression),
        dimensions: process.intern(dimensions.join(" ").as_bytes()),
        flags,
        pass,
    };
    process.fact(record::Counter::head(0, Domain::NONE), &fact.payload());
}
