//! Completes a recording whose writer died, from the remaining rings.
//!
//! Every record has a number in its thread's ring, so none is added twice and none is missed.

use super::{Recorder, Recording};
use crate::error::{Error, Result};
use crate::session::{Live, StackFile};
use roctop_ring::layout::{Header, clock};
use roctop_ring::reader::Thread;
use roctop_ring::record::{Head, Slot};
use roctop_trace::clocks::boottime;
use roctop_trace::item::{Exit, LossReason, ProcessId};
use roctop_trace::raw::{Raw, RawSink};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;

/// Result of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records that the recording already had.
    pub known: u64,
    /// Records that were added.
    pub added: u64,
    /// Records that are now missing, by reason.
    pub lost: BTreeMap<LossReason, u64>,
}

impl fmt::Display for Recovered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { known, added, lost } = self;
        write!(out, "{known} records were there, {added} came from the rings; ")?;
        // Untimed work is present, so it is not a loss here.
        let lost = lost
            .iter()
            .filter(|(reason, records)| **reason != LossReason::Untimed && **records > 0);
        let reasons: Vec<String> = lost
            .map(|(reason, records)| format!("{records} {}", reason.phrase()))
            .collect();
        if reasons.is_empty() {
            write!(out, "nothing is missing")
        } else {
            write!(out, "missing: {}", reasons.join("; "))
        }
    }
}

/// Identifies a process image: pid, start time, creation time of its file. `exec` changes only the last.
type Identity = (u32, u64, u64);

fn identity(header: &Header) -> Identity {
    (header.pid, header.start_ticks, header.created)
}

/// Account of one ring, to which one thread after another writes.
#[derive(Clone, Copy, Default)]
struct Account {
    /// Number and thread of the last record.
    last: Option<(u32, Thread)>,
    /// Records written up to the last one. Record numbers wrap around; this count does not.
    written: u64,
    /// Number of these in the recording.
    seen: u64,
    /// Number of these that the recording counts as lost.
    lost: u64,
}

impl Account {
    /// Accounts for a record; false if it, or a later one, is already in the recording.
    fn take(&mut self, thread: Thread, number: u32) -> bool {
        let step = self
            .last
            .map_or(number.wrapping_add(1), |(last, _)| number.wrapping_sub(last));
        // Numbers wrap around.
        if self.last.is_some() && step.cast_signed() <= 0 {
            return false;
        }
        self.last = Some((number, thread));
        self.written += u64::from(step);
        self.seen += 1;
        true
    }

    /// Number of records neither in the recording nor counted as lost.
    fn missing(&self) -> u64 {
        self.written.saturating_sub(self.seen.saturating_add(self.lost))
    }
}

/// Contents of a recording before the recovery.
#[derive(Default)]
struct Known {
    processes: BTreeMap<ProcessId, Identity>,
    /// One more than the greatest process number.
    next_process: u32,
    rings: BTreeMap<(Identity, u32), Account>,
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
        self.next_process = self.next_process.max(process.0 + 1);
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
                self.rings
                    .entry((own, thread.index))
                    .or_default()
                    .take(*thread, number_of(slots));
            }
            Raw::Lost(thread, _, records) => {
                let ring = self.rings.entry((own, thread.index)).or_default();
                ring.lost = ring.lost.saturating_add(*records);
            }
            Raw::Ended(..) => {
                self.ended.insert(own);
            }
            _ => {}
        }
    }
}

fn number_of(slots: &[Slot]) -> u32 {
    Head(slots.first().map_or(0, |slot| slot[0])).ordinal()
}

/// Adds to the recording at `path` what the rings of the session at `session` contain beyond it. It continues while
/// `goes_on` returns true, that is, while programs still write, and then finishes the recording. `unwind` passes on the call
/// paths of stack files.
///
/// Errors: the recording cannot be read or written, or there is no session.
pub fn recover(
    session: &Path,
    path: &Path,
    goes_on: &mut dyn FnMut() -> bool,
    unwind: fn(Vec<StackFile>, &mut dyn RawSink),
) -> Result<Recovered> {
    let recording = Recording::open(path)?;
    recording.cut_torn_ends()?;
    let mut known = Known::default();
    if recording.deliver(&mut known)?.damaged > 0 {
        // Records of a damaged range are counted as damaged.
        known.rings.values_mut().for_each(|ring| ring.lost += ring.missing());
    }
    let recorder = Recorder::begin(path, recording.next_number())?;
    let mut rest = RecoverySink {
        numbers: known.processes.iter().map(|(process, own)| (*own, *process)).collect(),
        names: BTreeMap::new(),
        left: known.facts.clone(),
        known,
        recorder,
        added: 0,
    };
    let mut live = Live::new(session);
    let failed = |error| Error::io("cannot read the session", session)(error);
    loop {
        // This is asked first, so that everything written before the answer is in the rings now.
        let is_over = !goes_on();
        let progress = live.poll(boottime(), &mut rest).map_err(failed)?;
        if is_over && !progress.more {
            break;
        }
    }
    for pid in live.pids() {
        live.exited(pid, Exit::Unknown, boottime(), &mut rest).map_err(failed)?;
    }
    unwind(live.take_stack_files(), &mut rest);
    rest.recorder.finish()?;
    Ok(Recovered {
        known: rest.known.records,
        added: rest.added,
        lost: Recording::open(path)?.losses()?,
    })
}

/// Sink that passes on what the recording lacks.
struct RecoverySink {
    known: Known,
    /// Process numbers in the recording.
    numbers: HashMap<Identity, ProcessId>,
    /// Processes by their number in the session.
    names: BTreeMap<ProcessId, Identity>,
    /// Number of first facts that the recording already has, to be skipped.
    left: HashMap<Identity, u64>,
    recorder: Recorder,
    added: u64,
}

impl RawSink for RecoverySink {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        if let Raw::Header(header) = raw {
            let own = identity(header);
            self.names.insert(process, own);
            let next = ProcessId(self.known.next_process);
            if let Entry::Vacant(place) = self.numbers.entry(own) {
                place.insert(next);
                self.known.next_process += 1;
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
                let ring = self.known.rings.entry((own, thread.index)).or_default();
                let is_new = ring.take(*thread, number_of(slots));
                self.added += u64::from(is_new);
                is_new
            }
            // Record numbers show it.
            Raw::Lost(..) => false,
            // The counters of a process report its losses.
            Raw::Counters(_) => {
                self.count_lost(own, process);
                true
            }
            Raw::Ended(..) => self.known.ended.insert(own),
            _ => true,
        };
        if is_new {
            self.recorder.take(process, raw);
        }
    }
}

impl RecoverySink {
    /// Counts unread records of a process as lost: they were overwritten, or were on their way to the recording when
    /// its writer died.
    fn count_lost(&mut self, own: Identity, process: ProcessId) {
        for ((_, index), ring) in self.known.rings.range_mut((own, 0)..=(own, u32::MAX)) {
            let missing = ring.missing();
            if missing > 0 {
                let tid = ring.last.map_or(0, |(_, thread)| thread.tid);
                let thread = Thread { index: *index, tid };
                self.recorder
                    .take(process, &Raw::Lost(thread, LossReason::Overwritten, missing));
                ring.lost += missing;
            }
        }
    }
}
