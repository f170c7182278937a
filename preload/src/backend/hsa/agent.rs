//! Agents: discovered once, emitted as facts, looked up by handle.

#![expect(unsafe_code, reason = "callbacks and attributes of the run-time")]

use super::Hsa;
use crate::process::Process;
use hsa_sys::abi::{Agent as Handle, Pool, SUCCESS, Status, info};
use roctop_ring::record::{Agent as Fact, Domain, status};
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

/// Kind of a GPU.
pub(crate) const GPU: u32 = 1;
/// Kind of a CPU.
pub(crate) const CPU: u32 = 0;
/// Index of an unknown agent.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// An agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    pub(crate) handle: Handle,
    pub(crate) index: u32,
    pub(crate) kind: u32,
    node: u32,
    /// Whether its copies are made by kernels of the run-time, because it has no copy engines.
    has_no_engines: bool,
    /// Whether flight-file pages are mapped over its memory only after a test. It is an APU of a generation whose
    /// driver reset the GPU when pages of its queues were replaced (ROCm issues 6386, 5724: gfx1103, gfx1151).
    pub(crate) needs_a_test: bool,
    /// Ticks of its counter per second; `None` if the run-time does not report it.
    pub(crate) frequency: Option<u64>,
}

/// Whether a build of HSA is older than ROCm 6.4.2, as far as its text shows: `1.15.60402-…` is AMD's 6.4.2, `1.15.0-…` a
/// distribution's 6.4 (in quotation marks), and 1.18 came with 7.0. The attribute for HSA's version says less: Debian's 7.2.4 answers 1.1.
fn is_before_6_4_2(build: &str) -> bool {
    let mut numbers = build.trim_matches('"').split(['.', '-']).map(str::parse::<u32>);
    match [numbers.next(), numbers.next(), numbers.next()] {
        [Some(Ok(1)), Some(Ok(minor)), Some(Ok(patch))] => {
            minor < 15 || minor == 15 && (60_000..60_402).contains(&patch)
        }
        _ => false,
    }
}

/// Known problem with GPU times for this name and build of HSA.
fn doubt(name: &[u8], build: &str) -> Option<&'static str> {
    match name {
        b"gfx942" if is_before_6_4_2(build) => Some(
            "gfx942 before ROCm 6.4.2: its firmware's time stamps may be wrong, and durations of kernels with them (ROCm issue 4079)",
        ),
        b"gfx1151" => {
            Some("gfx1151: its clock is up to 0.2 ms off the host's, and kernels may begin before their launch")
        }
        _ => None,
    }
}

/// Whether this is an APU of gfx11 or gfx12, by its name or by the run-time's property.
fn needs_a_test(name: &[u8], is_apu: bool) -> bool {
    const APUS: [&[u8]; 2] = [b"gfx1103", b"gfx115"];
    let is_new = [b"gfx11", b"gfx12"].iter().any(|family| name.starts_with(*family));
    is_new && (is_apu || APUS.iter().any(|apu| name.starts_with(apu)))
}

/// All agents, in the run-time's order.
pub(crate) struct Agents {
    found: OnceLock<Vec<Agent>>,
    /// Global memory pools with the indexes of their agents.
    pools: OnceLock<Vec<(Pool, u32)>>,
}

impl Agents {
    pub(crate) fn new() -> Self {
        Self {
            found: OnceLock::new(),
            pools: OnceLock::new(),
        }
    }

    /// Index of the agent that a global memory pool belongs to, or [`UNKNOWN`].
    pub(crate) fn of_pool(&self, hsa: &Hsa, pool: Pool) -> u32 {
        let Some(agents) = self.found.get() else { return UNKNOWN };
        let known = self.pools.get_or_init(|| {
            let of = |agent: &Agent| {
                let index = agent.index;
                pools(hsa, agent.handle)
                    .into_iter()
                    .map(move |pool| (pool.handle, index))
            };
            agents.iter().flat_map(of).collect()
        });
        let found = known.iter().find(|(handle, _)| *handle == pool);
        found.map_or(UNKNOWN, |(_, index)| *index)
    }

    /// The agents; empty before discovery.
    pub(crate) fn all(&self) -> &[Agent] {
        self.found.get().map_or(&[], Vec::as_slice)
    }

    /// An agent by its handle.
    pub(crate) fn by_handle(&self, handle: Handle) -> Option<&Agent> {
        self.all().iter().find(|agent| agent.handle == handle)
    }

    /// Dense index of an agent, or [`UNKNOWN`].
    pub(crate) fn index(&self, handle: Handle) -> u32 {
        self.by_handle(handle).map_or(UNKNOWN, |agent| agent.index)
    }

    /// Index of the GPU at a topology node of the driver.
    pub(crate) fn index_of_node(&self, node: u32) -> Option<u32> {
        let found = self.all().iter().find(|agent| agent.kind == GPU && agent.node == node);
        found.map(|agent| agent.index)
    }

    /// Whether one of these indexes is a GPU without copy engines.
    pub(crate) fn has_no_engines(&self, indices: [u32; 2]) -> bool {
        let mut all = self.all().iter();
        all.any(|agent| agent.has_no_engines && indices.contains(&agent.index))
    }

    /// Dense index of the GPU at a topology node, or [`UNKNOWN`].
    pub(crate) fn by_node(&self, node: u32) -> u32 {
        let found = self.all().iter().find(|agent| agent.node == node && agent.kind == GPU);
        found.map_or(UNKNOWN, |agent| agent.index)
    }

    /// Queries the run-time, once it answers. Slow path.
    pub(crate) fn discover(&self, hsa: &Hsa, process: &Process) {
        if self.found.get().is_some() {
            return;
        }
        let mut handles: Vec<Handle> = Vec::new();
        // SAFETY: `collect` has the type asked for and gets the address of `handles`, which lives during the call.
        let known = unsafe { (hsa.core.iterate_agents)(collect, (&raw mut handles).cast()) };
        if known != SUCCESS || handles.is_empty() {
            return;
        }
        let agents = handles.iter().enumerate().map(|(index, handle)| {
            let kind = number::<u32>(hsa, *handle, info::DEVICE).unwrap_or(2).min(2);
            let node = number::<u32>(hsa, *handle, info::DRIVER_NODE).unwrap_or(0);
            let agent = Agent {
                handle: *handle,
                index: crate::backend::sdk::index_in_order(index as u32, node, kind),
                kind,
                node,
                has_no_engines: kind == GPU && number::<u32>(hsa, *handle, info::COPY_ENGINES) == Some(0),
                needs_a_test: kind == GPU && {
                    let properties = number::<u64>(hsa, *handle, info::MEMORY_PROPERTIES).unwrap_or(0);
                    let is_apu = properties & info::MEMORY_IS_APU != 0;
                    needs_a_test(&text(hsa, *handle, info::AGENT_NAME), is_apu)
                },
                frequency: (kind == GPU)
                    .then(|| number::<u64>(hsa, *handle, info::COUNTER_FREQUENCY))
                    .flatten()
                    .filter(|hertz| *hertz > 0),
            };
            emit(hsa, process, &agent);
            agent
        });
        let agents: Vec<Agent> = agents.collect();
        doubt_any(hsa, process, &agents);
        let _ = self.found.set(agents);
    }
}

unsafe extern "C" fn collect(handle: Handle, data: *mut c_void) -> Status {
    // SAFETY: `data` is the address of the list that `discover` passed.
    unsafe { &mut *data.cast::<Vec<Handle>>() }.push(handle);
    SUCCESS
}

/// A numeric attribute of an agent.
fn number<T: Default>(hsa: &Hsa, agent: Handle, attribute: i32) -> Option<T> {
    let mut value = T::default();
    // SAFETY: callers name the attribute's own type.
    let known = unsafe { (hsa.core.agent_get_info)(agent, attribute, (&raw mut value).cast()) };
    (known == SUCCESS).then_some(value)
}

fn text(hsa: &Hsa, agent: Handle, attribute: i32) -> Vec<u8> {
    // The longest text has 64 bytes; the rest keeps it terminated.
    let mut raw = [0u8; 128];
    // SAFETY: the attribute is a text of at most 64 bytes.
    unsafe { (hsa.core.agent_get_info)(agent, attribute, raw.as_mut_ptr().cast()) };
    raw.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

fn emit(hsa: &Hsa, process: &Process, agent: &Agent) {
    let number = |attribute| number::<u32>(hsa, agent.handle, attribute).unwrap_or(0);
    let fact = Fact {
        handle: agent.handle,
        memory: pools(hsa, agent.handle).iter().map(|pool| pool.size).max().unwrap_or(0),
        index: agent.index,
        node: agent.node,
        kind: agent.kind,
        name: process.intern(&text(hsa, agent.handle, info::AGENT_NAME)),
        product: process.intern(&text(hsa, agent.handle, info::PRODUCT_NAME)),
        compute_units: number(info::COMPUTE_UNITS),
        wave_size: number(info::WAVE_SIZE),
        bdf: number(info::BDF),
        pci_domain: number(info::PCI_DOMAIN),
    };
    process.fact(Fact::head(0, Domain::NONE), &fact.payload());
}

/// Text of the run-time's build; empty if unknown.
fn build(hsa: &Hsa) -> String {
    let mut build: *const c_char = std::ptr::null();
    // SAFETY: the attribute is a pointer to a static text.
    let known = unsafe { (hsa.core.system_get_info)(info::BUILD_VERSION, (&raw mut build).cast()) };
    if known != SUCCESS || build.is_null() {
        return String::new();
    }
    // SAFETY: not null, and a terminated text of the run-time's.
    unsafe { CStr::from_ptr(build) }.to_string_lossy().into_owned()
}

/// Reports the problem of the first GPU that has one.
fn doubt_any(hsa: &Hsa, process: &Process, agents: &[Agent]) {
    let build = build(hsa);
    let mut gpus = agents.iter().filter(|agent| agent.kind == GPU);
    let found = gpus.find_map(|agent| {
        let text = doubt(&text(hsa, agent.handle, info::AGENT_NAME), &build)?;
        Some((agent.index, text))
    });
    if let Some((index, text)) = found {
        process.say(status::NOTE, u64::from(index), text);
    }
}

/// A global memory pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GlobalPool {
    pub(crate) handle: Pool,
    pub(crate) flags: u32,
    size: u64,
}

struct Pools<'a> {
    hsa: &'a Hsa,
    found: Vec<GlobalPool>,
}

/// An agent's global memory pools.
pub(crate) fn pools(hsa: &Hsa, agent: Handle) -> Vec<GlobalPool> {
    let mut pools = Pools { hsa, found: Vec::new() };
    // SAFETY: `pool` has the type asked for and gets the address of `pools`, which lives during the call.
    unsafe { (hsa.amd.iterate_pools)(agent, pool, (&raw mut pools).cast()) };
    pools.found
}

unsafe extern "C" fn pool(handle: Pool, data: *mut c_void) -> Status {
    // SAFETY: `data` is the address that `pools` passed.
    let pools = unsafe { &mut *data.cast::<Pools<'_>>() };
    let get = pools.hsa.amd.pool_get_info;
    let (mut segment, mut flags, mut size) = (u32::MAX, 0u32, 0u64);
    // SAFETY: the attribute is a 32-bit number.
    unsafe { get(handle, info::POOL_SEGMENT, (&raw mut segment).cast()) };
    if segment == 0 {
        // SAFETY: the attribute is a 32-bit number.
        unsafe { get(handle, info::POOL_FLAGS, (&raw mut flags).cast()) };
        // SAFETY: the attribute is a 64-bit number.
        unsafe { get(handle, info::POOL_SIZE, (&raw mut size).cast()) };
        pools.found.push(GlobalPool { handle, flags, size });
    }
    SUCCESS
}

#[cfg(test)]
mod tests {
    use super::{doubt, needs_a_test};

    #[test]
    fn times_of_two_gpus_are_in_doubt() {
        let is_known = |gfx, build| doubt(gfx, build).is_some();
        for build in [
            "1.14.60304-76~22.04",
            "1.15.60401-83~24.04",
            "\"1.13.0-local-build-unknown\"",
        ] {
            assert!(
                doubt(b"gfx942", build).is_some_and(|text| text.contains("6.4.2")),
                "{build}"
            );
        }
        for build in [
            "\"1.18.0-local-build-unknown\"",
            "1.15.60402-120~22.04",
            "1.15.0-local",
            "1.1",
            "",
            "unknown",
        ] {
            assert!(!is_known(b"gfx942", build), "{build}");
        }
        assert!(is_known(b"gfx1151", "") && !is_known(b"gfx90a", "1.5.0-x") && !is_known(b"gfx1150", ""));
    }

    #[test]
    fn apus_of_gfx11_and_gfx12_need_a_test() {
        assert!(needs_a_test(b"gfx1103", false) && needs_a_test(b"gfx1151", false) && needs_a_test(b"gfx1200", true));
        assert!(!needs_a_test(b"gfx1100", false) && !needs_a_test(b"gfx942", true) && !needs_a_test(b"gfx1201", false));
    }
}
