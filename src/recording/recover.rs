//! Completes a recording whose writer died, from the rings that are left.
//!
//! Every record has its number in its thread's ring, so that nothing is taken twice and nothing is left out.

use super::{Recorder, Recording};
use crate::item::{Exit, ProcessId};
use crate::now::boottime;
use crate::raw::{Raw, RawSink};
use crate::session::Live;
use anyhow::{Context, Result};
use roctop_ring::layout::{Header, clock};
use roctop_ring::record::Head;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// What a recovery found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records that the recording had.
    pub known: u64,
    /// Records that were added.
    pub added: u64,
}

/// Which image of which process it is: id, start time, and when its file was made, since `exec` keeps the other two.
type Identity = (u32, u64, u64);

fn identity(header: &Header) -> Identity {
    (header.pid, header.start_ticks, header.created)
}

/// What a recording holds already.
#[derive(Default)]
struct Known {
    processes: BTreeMap<ProcessId, Identity>,
    /// The last number in each ring: one thread after the other writes to it.
    last: HashMap<(Identity, u32), u32>,
    texts: HashSet<(Identity, u32)>,
    facts: HashMap<Identity, u64>,
    samples: HashSet<(Identity, u64)>,
    ended: HashSet<Identity>,
    records: u64,
}

impl Known {
    fn identity(&self, process: ProcessId) -> Identity {
        self.processes.get(&process).copied().unwrap_or_default()
    }
}

impl RawSink for Known {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        let own = self.identity(process);
        match raw {
            Raw::Header(header) => {
                self.processes.insert(process, identity(header));
            }
            Raw::Text(id, _) => {
                self.texts.insert((own, *id));
            }
            Raw::Fact(_) => *self.facts.entry(own).or_default() += 1,
            Raw::Calibration(words) => {
                self.samples.insert((own, words[clock::TICKS]));
            }
            Raw::Record(thread, slots) => {
                self.records += 1;
                let number = Head(slots.first().map_or(0, |slot| slot[0])).ordinal();
                self.last.insert((own, thread.index), number);
            }
            Raw::Ended(..) => {
                self.ended.insert(own);
            }
            _ => {}
        }
    }
}

/// Adds to the recording at `path` what the rings of the session at `session` hold beyond it, and finishes it, when
/// `goes_on` says that nobody writes to them any more.
///
/// Errors: the recording cannot be read or written, or the session is not there.
pub fn recover(session: &Path, path: &Path, goes_on: &mut dyn FnMut() -> bool) -> Result<Recovered> {
    let recording = Recording::open(path)?;
    recording.cut_torn_ends()?;
    let mut known = Known::default();
    recording.deliver(&mut known)?;
    let recorder = Recorder::begin(path, recording.next_number())?;
    let mut rest = Rest {
        numbers: known.processes.iter().map(|(process, own)| (*own, *process)).collect(),
        names: BTreeMap::new(),
        left: known.facts.clone(),
        known,
        recorder,
        added: 0,
    };
    let mut live = Live::new(session);
    let failed = || format!("cannot read the session {}", session.display());
    loop {
        // Asked first: what came before the answer is in the rings now.
        let is_over = !goes_on();
        let progress = live.poll(boottime(), &mut rest).with_context(failed)?;
        if is_over && !progress.more {
            break;
        }
    }
    for pid in live.pids() {
        live.exited(pid, Exit::Unknown, boottime(), &mut rest)
            .with_context(failed)?;
    }
    let Rest {
        recorder, added, known, ..
    } = rest;
    recorder.finish()?;
    Ok(Recovered {
        known: known.records,
        added,
    })
}

/// Passes on what is not known.
struct Rest {
    known: Known,
    /// Numbers of processes in the recording.
    numbers: HashMap<Identity, ProcessId>,
    /// Processes as the session numbers them.
    names: BTreeMap<ProcessId, Identity>,
    /// Facts that are to come again.
    left: HashMap<Identity, u64>,
    recorder: Recorder,
    added: u64,
}

impl RawSink for Rest {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        if let Raw::Header(header) = raw {
            let own = identity(header);
            self.names.insert(process, own);
            let next = ProcessId(self.numbers.values().map(|number| number.0 + 1).max().unwrap_or(0));
            if let Entry::Vacant(place) = self.numbers.entry(own) {
                place.insert(next);
                self.recorder.take(next, raw);
            }
            return;
        }
        let own = self.names.get(&process).copied().unwrap_or_default();
        let process = self.numbers.get(&own).copied().unwrap_or(process);
        let is_new = match raw {
            Raw::Text(id, _) => self.known.texts.insert((own, *id)),
            Raw::Fact(_) => {
                let left = self.left.entry(own).or_default();
                let is_known = *left > 0;
                *left = left.saturating_sub(1);
                !is_known
            }
            Raw::Calibration(words) => self.known.samples.insert((own, words[clock::TICKS])),
            Raw::Record(thread, slots) => {
                let number = Head(slots.first().map_or(0, |slot| slot[0])).ordinal();
                let key = (own, thread.index);
                let is_new = match self.known.last.get(&key) {
                    // Numbers wrap around.
                    Some(last) => (number.wrapping_sub(*last) as i32) > 0,
                    None => true,
                };
                if is_new {
                    self.lost_before(own, process, *thread, number);
                    self.known.last.insert(key, number);
                    self.added += 1;
                }
                is_new
            }
            // Counted anew from the numbers.
            Raw::Lost(..) => false,
            Raw::Ended(..) => self.known.ended.insert(own),
            _ => true,
        };
        if is_new {
            self.recorder.take(process, raw);
        }
    }
}

impl Rest {
    /// Records between the last known one and this one were overwritten.
    fn lost_before(&mut self, own: Identity, process: ProcessId, thread: roctop_ring::reader::Thread, number: u32) {
        let last = self.known.last.get(&(own, thread.index));
        let missing = last.map_or(number, |last| number.wrapping_sub(*last).wrapping_sub(1));
        if missing > 0 {
            self.recorder.take(process, &Raw::Lost(thread, u64::from(missing)));
        }
    }
}
