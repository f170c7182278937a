//! Facts that only exports contain: code objects, kernel symbols, handles of queues and streams.

use crate::error::Result;
use roctop_ring::layout::clock;
use roctop_ring::record::{self, Body, CodeObject, KernelSymbol};
use roctop_source::recording::Merged;
use roctop_trace::item::ProcessId;
use roctop_trace::raw::{Raw, RawSink};
use std::collections::{BTreeMap, HashMap};

/// Facts by process.
#[derive(Debug, Default)]
pub struct Facts {
    processes: BTreeMap<ProcessId, ProcessFacts>,
    none: ProcessFacts,
}

/// Facts of one process.
#[derive(Debug, Default)]
pub struct ProcessFacts {
    strings: HashMap<u32, String>,
    /// Code objects, by number.
    pub code_objects: BTreeMap<u64, CodeObject>,
    /// Handles of queues, by number.
    pub queues: BTreeMap<u32, u64>,
    /// Numbers of streams, by handle: several if a handle was reused or is per-thread.
    streams: HashMap<u64, Vec<u32>>,
    /// Topology nodes of agents, by index.
    pub nodes: BTreeMap<u32, u32>,
    /// First calibration, CLOCK_BOOTTIME ns: shortly after the start of the process.
    pub since: Option<u64>,
    /// CLOCK_REALTIME minus CLOCK_BOOTTIME at the first calibration that has both, ns.
    wall: Option<i64>,
    symbols: HashMap<String, Vec<KernelSymbol>>,
}

impl Facts {
    /// Reads the facts of recordings.
    pub fn read(recordings: &Merged<'_>) -> Result<Self> {
        let mut facts = Self::default();
        recordings.deliver_facts(&mut facts)?;
        Ok(facts)
    }

    /// Facts of a process; empty if there are none.
    pub fn of(&self, process: ProcessId) -> &ProcessFacts {
        self.processes.get(&process).unwrap_or(&self.none)
    }
}

impl ProcessFacts {
    /// String with this id.
    pub fn text(&self, id: u32) -> &str {
        self.strings.get(&id).map_or("", String::as_str)
    }

    /// Greatest number of a code object, known or referred to.
    pub fn last_code_object(&self) -> u64 {
        let named = self.symbols.values().flatten().map(|symbol| symbol.code_object);
        named.chain(self.code_objects.keys().copied()).max().unwrap_or(0)
    }

    /// Number of the stream with this handle; `None` if it is unknown or ambiguous.
    pub fn stream(&self, handle: u64) -> Option<u32> {
        match self.streams.get(&handle)?.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// CLOCK_REALTIME at a CLOCK_BOOTTIME, ns; the latter itself if their difference is unknown.
    pub(crate) fn wall_time(&self, at: u64) -> u64 {
        at.saturating_add_signed(self.wall.unwrap_or(0))
    }

    /// Symbol of a kernel.
    pub fn symbol(&self, mangled: &str, group_size: u32) -> Option<&KernelSymbol> {
        let symbols = self.symbols.get(mangled)?;
        let same = symbols.iter().find(|symbol| symbol.group_size == group_size);
        same.or(symbols.first())
    }
}

impl RawSink for Facts {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        let known = self.processes.entry(process).or_default();
        match raw {
            Raw::Calibration(words) => {
                let at = words[clock::BOOTTIME];
                known.since = Some(known.since.map_or(at, |since| since.min(at)));
                let wall = Some(words[clock::REALTIME]).filter(|wall| *wall > 0);
                known.wall = known.wall.or(wall.map(|wall| wall.wrapping_sub(at).cast_signed()));
            }
            Raw::Text(id, text) => {
                known.strings.insert(*id, String::from_utf8_lossy(text).into_owned());
            }
            Raw::Fact(slots) => match record::decode(slots) {
                Body::CodeObject(fact) if fact.state != 2 => {
                    known.code_objects.insert(fact.id, fact);
                }
                Body::KernelSymbol(fact) => {
                    let name = known.text(fact.name).to_owned();
                    known.symbols.entry(name).or_default().push(fact);
                }
                Body::Queue(fact) => {
                    known.queues.entry(fact.id).or_insert(fact.handle);
                }
                Body::Stream(fact) => {
                    let numbers = known.streams.entry(fact.handle).or_default();
                    if !numbers.contains(&fact.id) {
                        numbers.push(fact.id);
                    }
                }
                Body::Agent(fact) => {
                    known.nodes.insert(fact.index, fact.node);
                }
                _ => {}
            },
            _ => {}
        }
    }
}
