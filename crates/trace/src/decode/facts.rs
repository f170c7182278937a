//! Decodes facts: agents and kernels here, others in their modules.

use super::Decoder;
use crate::item::{Agent, AgentId, AgentKind, Code, Item, KernelId, ProcessId, Registers};
use crate::kernel_descriptor::{self, Descriptor};
use roctop_ring::level::Step;
use roctop_ring::record::{self, Body, Slot, code, status};
use std::sync::Arc;

/// A kernel symbol as its process loaded it.
#[derive(Clone, Debug)]
pub(super) struct Symbol {
    pub(super) since: u64,
    pub(super) kernel: KernelId,
}

/// APUs: GPUs on the CPU's chip, whose counter is synchronized less exactly with the host's clock.
const APUS: [&str; 10] = [
    "gfx902", "gfx90c", "gfx1033", "gfx1035", "gfx1036", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
];

impl Decoder {
    pub(super) fn fact(&mut self, process: ProcessId, slots: &[Slot]) {
        self.state(process);
        match record::decode(slots) {
            Body::Agent(fact) => self.agent(process, &fact),
            Body::KernelSymbol(fact) => self.symbol(process, &fact),
            Body::KernelCode(fact) => self.code(process, &fact),
            Body::Queue(fact) => self.queue(process, &fact),
            Body::Stream(fact) => self.stream(process, &fact),
            Body::OperationName(fact) => {
                let state = self.state(process);
                if let Some(name) = state.strings.get(&fact.name).cloned() {
                    state.operation_names.insert((fact.domain as u8, fact.op as u16), name);
                }
            }
            Body::Communicator(fact) => self.communicator(process, &fact),
            Body::Counter(fact) => self.counter(process, &fact),
            Body::SamplingConfiguration(fact) => self.sampling(process, &fact),
            Body::Status(fact) => {
                let text = self.state(process).strings.get(&fact.text).cloned().unwrap_or_default();
                match fact.code {
                    status::THREAD_NAME => self.thread_named(process, fact.value as u32, &text),
                    status::AGENT_NAME => self.agent_named(process, fact.value as usize, &text),
                    status::CLOCK => self.items.push(Item::ClockCost {
                        process,
                        picoseconds: fact.value,
                    }),
                    code => {
                        if let Some(step) = Step::of(fact.value).filter(|_| code == status::LEVEL) {
                            let text = text.clone();
                            self.items.push(Item::Level { process, step, text });
                        }
                        self.items.push(Item::Status { process, code, text });
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn agent(&mut self, process: ProcessId, fact: &record::Agent) {
        let state = &mut self.processes[process.0 as usize];
        let text = |id: u32| state.strings.get(&id).cloned().unwrap_or_default();
        let kind = match fact.kind {
            0 => AgentKind::Cpu,
            1 => AgentKind::Gpu,
            _ => AgentKind::Other,
        };
        let (name, product) = (text(fact.name), text(fact.product));
        let index = fact.index as usize;
        if index >= 1024 || state.agents.get(index).is_some_and(Option::is_some) {
            return;
        }
        let number = state.agents.iter().flatten().filter(|known| known.kind == kind).count() as u32;
        let id = AgentId(self.names.next_agent());
        if state.agents.len() <= index {
            state.agents.resize(index + 1, None);
        }
        if kind == AgentKind::Gpu && APUS.contains(&&*name) {
            state.skewed.push(id);
        }
        let agent = Agent {
            id,
            process,
            kind,
            number,
            node: fact.node,
            name,
            product,
            compute_units: fact.compute_units,
            wave_size: fact.wave_size,
            memory: fact.memory,
        };
        state.agents[index] = Some(agent.clone());
        state.nodes.insert(fact.index, fact.node);
        self.items.push(Item::Agent(agent));
    }

    /// Prepends the program's name of an agent to the product name.
    fn agent_named(&mut self, process: ProcessId, index: usize, name: &str) {
        let state = &mut self.processes[process.0 as usize];
        if let Some(Some(agent)) = state.agents.get(index).filter(|_| !name.is_empty()) {
            let product = match &*agent.product {
                "" => name.into(),
                product => format!("{name} ({product})").into(),
            };
            self.items.push(Item::Agent(Agent {
                product,
                ..agent.clone()
            }));
        }
    }

    pub(super) fn agent_id(&mut self, process: ProcessId, index: u32) -> AgentId {
        if let Some(Some(known)) = self.processes[process.0 as usize].agents.get(index as usize) {
            return known.id;
        }
        let unknown = record::Agent {
            index,
            kind: 2,
            ..record::Agent::default()
        };
        self.agent(process, &unknown);
        self.processes[process.0 as usize]
            .agents
            .get(index as usize)
            .cloned()
            .flatten()
            .map_or(AgentId(0), |agent| agent.id)
    }

    pub(super) fn symbol(&mut self, process: ProcessId, fact: &record::KernelSymbol) {
        let state = &mut self.processes[process.0 as usize];
        let mangled = state
            .strings
            .get(&fact.name)
            .cloned()
            .unwrap_or_else(|| format!("(unnamed kernel {:#x})", fact.kernel_object).into());
        let target = state
            .agents
            .get(fact.agent as usize)
            .cloned()
            .flatten()
            .map(|agent| agent.name)
            .unwrap_or_default();
        let descriptor = Descriptor {
            rsrc1: fact.rsrc1,
            rsrc3: fact.rsrc3,
            properties: fact.properties,
        };
        let registers = match fact.has_descriptor {
            1 => Some(kernel_descriptor::decode(descriptor, &target)),
            // Register counts that rocprofiler-sdk reported directly.
            2 => Some(Registers {
                vgpr: fact.rsrc1,
                agpr: fact.rsrc3,
                sgpr: fact.rsrc2,
            }),
            _ => None,
        };
        state.symbol_count += 1;
        let number = state.symbol_count;
        let kernel = self.kernel(&mangled, number, fact.group_size, registers);
        let state = &mut self.processes[process.0 as usize];
        self.recent.kernels.forget(fact.kernel_object);
        if fact.code_object != 0 {
            state.code_kernels.insert((fact.code_object, fact.name), kernel);
        }
        state.symbols.entry(fact.kernel_object).or_default().push(Symbol {
            since: fact.time,
            kernel,
        });
    }

    fn code(&mut self, process: ProcessId, fact: &record::KernelCode) {
        let state = &self.processes[process.0 as usize];
        let Some(kernel) = state.code_kernels.get(&(fact.code_object, fact.name)) else {
            return;
        };
        let number = |value: u32| (value != u32::MAX).then_some(value);
        let flag = |known: u32, yes: u32| (fact.flags & known != 0).then_some(fact.flags & yes != 0);
        let code = Code {
            vgpr: number(fact.vgpr),
            agpr: number(fact.agpr),
            sgpr: number(fact.sgpr),
            vgpr_spills: number(fact.vgpr_spills),
            sgpr_spills: number(fact.sgpr_spills),
            scratch: number(fact.private_size).filter(|_| fact.flags & code::DYNAMIC_STACK == 0),
            lds: number(fact.group_size),
            max_workgroup: number(fact.max_workgroup),
            wave_size: number(fact.wave_size),
            is_uniform: flag(code::KNOWS_UNIFORM, code::UNIFORM),
            is_wgp: flag(code::KNOWS_WGP, code::WGP),
            bytes: (fact.code_bytes > 0).then_some(fact.code_bytes),
            hash: (fact.hash > 0).then_some(fact.hash),
        };
        let changed = self.names.code(*kernel, &code);
        self.items.extend(changed.map(Item::Kernel));
    }

    pub(super) fn kernel(
        &mut self,
        mangled: &Arc<str>,
        symbol: u32,
        group: u32,
        registers: Option<Registers>,
    ) -> KernelId {
        let (kernel, new) = self.names.kernel(mangled, symbol, group, registers);
        if let Some(new) = new {
            self.items.push(Item::Kernel(new));
        }
        kernel
    }
}
