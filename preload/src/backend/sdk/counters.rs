//! Which counters there are, told as facts, and which of those asked for fit together.

use super::abi::{self, Agent, CounterInfo, DimensionInfo, SUCCESS, Sdk, Status, status_text};
use super::request::{Mode, Request, Wanted};
use super::{bytes_of, say_missing};
use crate::backend::hsa;
use crate::guard::wall;
use crate::process::Process;
use roctop_ring::record::{self, Domain, counter_flag};
use std::ffi::c_void;

/// A counter of an agent that is asked for.
pub(super) struct Chosen {
    /// The SDK's id.
    pub(super) handle: u64,
    /// Number that values name.
    pub(super) number: u32,
    /// Of which instance, with the dimension that numbers instances.
    pub(super) instance: Option<(u64, usize)>,
    /// Pass, from 1.
    pub(super) pass: u16,
}

/// An agent and what is asked for on it.
pub(super) struct OnAgent {
    /// The SDK's id.
    pub(super) id: u64,
    /// Index of the collector's own.
    pub(super) index: u32,
    pub(super) chosen: Vec<Chosen>,
    /// The configuration of the pass that is asked for.
    pub(super) config: u64,
}

struct Counter {
    info: CounterInfo,
    dimensions: Vec<(String, usize, u64)>,
}

/// Tells agents and counters, and makes the configurations of the pass that is asked for.
pub(super) fn find(sdk: &Sdk, request: &Request, process: &Process) -> Vec<OnAgent> {
    let mut agents: Vec<Agent> = Vec::new();
    if let Some(query) = sdk.agents {
        // A size that the release's own structure exceeds is refused; a shorter one never is.
        let size = abi::AGENT_BYTES as usize;
        // SAFETY: `collect_agents` has the type asked for and gets the address of `agents`, which lives meanwhile.
        let answer = unsafe { query(1, collect_agents, size, (&raw mut agents).cast()) };
        if answer != SUCCESS {
            say_missing(&format!(
                "rocprofiler-sdk tells no agents: {}",
                status_text(sdk, answer)
            ));
        }
    }
    let mut number = 0u32;
    let mut found = Vec::new();
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
            config: 0,
        };
        let list = request.mode == Mode::List && request.wanted.is_empty();
        for counter in counters.iter().filter(|_| list) {
            tell(request, process, counter, None, (number, index, 0));
            number += 1;
        }
        let passes = choose(sdk, request, agent, &counters, &mut on_agent);
        for (chosen, (counter, wanted)) in on_agent.chosen.iter_mut().zip(passes) {
            chosen.number = number;
            tell(request, process, counter, Some(wanted), (number, index, chosen.pass));
            number += 1;
        }
        found.push(on_agent);
    }
    if found.is_empty() {
        say_missing("rocprofiler-sdk sees no GPU");
    }
    found
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

/// Packs what is asked for into passes, each filled before the next is begun; gives each counter with its request.
fn choose<'a>(
    sdk: &Sdk,
    request: &'a Request,
    agent: &Agent,
    counters: &'a [Counter],
    on_agent: &mut OnAgent,
) -> Vec<(&'a Counter, &'a Wanted)> {
    // SAFETY: the SDK's names are terminated.
    let name_of = |counter: &Counter| unsafe { bytes_of(counter.info.name) };
    // SAFETY: as above.
    let place = String::from_utf8_lossy(unsafe { bytes_of(agent.name) }).into_owned();
    let place = format!("GPU of node {} ({place})", agent.node);
    let mut known = Vec::new();
    let (mut pass, mut filled): (u16, Vec<u64>) = (1, Vec::new());
    for wanted in &request.wanted {
        let Some(counter) = counters
            .iter()
            .find(|counter| name_of(counter) == wanted.name.as_bytes())
        else {
            say_missing(&format!(
                "{} is not known on {place}; 'roctop counters' lists those that are",
                wanted.text
            ));
            continue;
        };
        let dimension = counter.dimensions.iter().find(|one| one.0 == "DIMENSION_INSTANCE");
        let instance = match (wanted.instance, dimension) {
            (None, _) => None,
            (Some(at), Some((_, instances, id))) if at < *instances => Some((*id, at)),
            (Some(at), dimension) => {
                let most = dimension.map_or(0, |one| one.1);
                say_missing(&format!(
                    "{}: there is no instance {at} on {place}, it has {most}",
                    wanted.text
                ));
                continue;
            }
        };
        let id = counter.info.id;
        if !filled.contains(&id) {
            filled.push(id);
            let (mut answer, mut config) = configure(sdk, agent.id, &filled);
            if answer != SUCCESS && filled.len() > 1 {
                filled = vec![id];
                pass += 1;
                (answer, config) = configure(sdk, agent.id, &filled);
            }
            if answer != SUCCESS {
                say_missing(&format!("{} on {place}: {}", wanted.text, status_text(sdk, answer)));
                filled.clear();
                continue;
            }
            if pass == request.pass {
                on_agent.config = config;
            }
        }
        on_agent.chosen.push(Chosen {
            handle: id,
            number: 0,
            instance,
            pass,
        });
        known.push((counter, wanted));
    }
    known
}

fn configure(sdk: &Sdk, agent: u64, ids: &[u64]) -> (Status, u64) {
    let Some(create) = sdk.create_config else {
        return (abi::NOT_IMPLEMENTED, 0);
    };
    let mut config = 0u64;
    // SAFETY: as many ids as are said, and room for the answer.
    let answer = unsafe { create(agent, ids.as_ptr(), ids.len(), &raw mut config) };
    (answer, config)
}

/// The agent's index among the collector's: HSA's own when that is there, else it is told now.
fn index_of(process: &Process, agent: &Agent) -> u32 {
    if let Some(hsa) = hsa::hsa() {
        return hsa.agents.index_of_node(agent.node).unwrap_or(agent.logical);
    }
    let fact = record::Agent {
        handle: agent.id,
        index: agent.logical,
        node: agent.node,
        kind: match agent.kind {
            abi::AGENT_GPU => 1,
            abi::AGENT_CPU => 0,
            _ => 2,
        },
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

fn tell(
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
