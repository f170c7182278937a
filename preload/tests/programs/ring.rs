//! What a ring file held, read back in whole.

use roctop_ring::layout::{Region, clock, counter, entry};
use roctop_ring::reader::{Account, Ended, OpenWork, Reader, Sink, Thread};
use roctop_ring::record::{Body, Domain, Head, Marker, Slot, decode};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

/// What a ring file held.
#[derive(Default)]
pub(crate) struct Ring {
    pub(crate) pid: u32,
    pub(crate) ppid: u32,
    pub(crate) ordinal: u32,
    pub(crate) strings: HashMap<u32, String>,
    pub(crate) facts: Vec<Body>,
    pub(crate) records: Vec<(u32, u8, Body)>,
    pub(crate) calibrations: usize,
    pub(crate) lost: u64,
    pub(crate) accounts: Vec<(Thread, Account)>,
    pub(crate) open: OpenWork,
    pub(crate) counters: Vec<u64>,
    /// Runs that a signal handler's record fell into.
    pub(crate) reentrant: u64,
    /// Flags of all records.
    pub(crate) flags: Vec<u8>,
}

impl Ring {
    pub(crate) fn read(path: &Path) -> Self {
        let mut reader = Reader::open(File::open(path).unwrap()).unwrap();
        let header = reader.header().clone();
        let mut ring = Self {
            pid: header.pid,
            ppid: header.ppid,
            ordinal: header.ordinal,
            ..Self::default()
        };
        reader.poll(Ended::Yes, &mut ring).unwrap();
        ring.accounts = reader.accounts();
        ring.open = reader.open_work().unwrap();
        ring.counters = reader.counters().unwrap().to_vec();
        ring.reentrant = ring.counter(counter::REENTRANT);
        let bytes = std::fs::read(path).unwrap();
        let extent = header.region(Region::Directory);
        let directory = &bytes[extent.offset as usize..(extent.offset + extent.length) as usize];
        for words in directory.chunks_exact(entry::WORDS * 8) {
            let raw = words[entry::REENTRANT * 8..].first_chunk().unwrap();
            ring.reentrant += u64::from_le_bytes(*raw);
        }
        ring
    }

    pub(crate) fn text(&self, marker: &Marker) -> String {
        match marker.text_id {
            0 => String::from_utf8_lossy(&marker.text).into_owned(),
            id => self.strings[&id].clone(),
        }
    }

    pub(crate) fn marks(&self) -> Vec<String> {
        self.records
            .iter()
            .filter_map(|(_, _, body)| {
                if let Body::Mark(m) = body {
                    Some(self.text(m))
                } else {
                    None
                }
            })
            .collect()
    }

    pub(crate) fn ranges(&self) -> Vec<(u32, Marker)> {
        self.records
            .iter()
            .filter_map(|(tid, _, body)| {
                if let Body::Range(m) = body {
                    Some((*tid, m.clone()))
                } else {
                    None
                }
            })
            .collect()
    }

    /// Names of operations by domain and number.
    pub(crate) fn operations(&self) -> HashMap<(u32, u32), String> {
        let mut names = HashMap::new();
        for fact in &self.facts {
            if let Body::OperationName(name) = fact {
                names.insert((name.domain, name.op), self.strings[&name.name].clone());
            }
        }
        names
    }

    /// Calls by name with their return codes.
    pub(crate) fn calls(&self) -> Vec<(String, Option<i32>)> {
        let names = self.operations();
        self.records
            .iter()
            .filter_map(|(_, domain, body)| {
                let Body::ApiCall(call) = body else { return None };
                assert!(call.start <= call.end && call.correlation != 0);
                let name = names[&(u32::from(*domain), u32::from(call.op))].clone();
                Some((name, call.knows_status().then_some(call.status)))
            })
            .collect()
    }

    /// What the collector said under a code.
    pub(crate) fn said(&self, code: u32) -> Vec<&str> {
        let text = |id: &u32| self.strings.get(id).map_or("", String::as_str);
        let said = self.facts.iter().filter_map(|fact| match fact {
            Body::Status(found) if found.code == code => Some(text(&found.text)),
            _ => None,
        });
        said.collect()
    }

    pub(crate) fn counter(&self, at: usize) -> u64 {
        self.counters.get(at).copied().unwrap_or(0)
    }
}

impl Sink for Ring {
    fn string(&mut self, id: u32, text: &[u8]) {
        self.strings.insert(id, String::from_utf8_lossy(text).into_owned());
    }
    fn fact(&mut self, slots: &[Slot]) {
        self.facts.push(decode(slots));
    }
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {
        self.calibrations += 1;
    }
    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        let Domain(domain) = Head(slots[0][0]).domain();
        self.records.push((thread.tid, domain, decode(slots)));
        self.flags.push(Head(slots[0][0]).flags());
    }
    fn lost(&mut self, _: Thread, records: u64) {
        self.lost += records;
    }
}
