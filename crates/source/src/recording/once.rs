//! Processes that several recordings have, as cuts of one recording do: what more than one of them has is passed on once.
//!
//! A record is known by its number in its ring. Numbers start again after 2^32, so the time has to fit, too.

use super::index::Times;
use super::merged::Merged;
use roctop_ring::layout::clock;
use roctop_ring::reader::Thread;
use roctop_ring::record::{Head, Slot};
use roctop_trace::item::{Exit, LossReason, Nanos, ProcessId};
use roctop_trace::raw::{Raw, RawSink};
use roctop_trace::site::SiteFact;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Sink that passes on what no earlier recording had.
pub(super) struct Once<'a> {
    whole: &'a Merged<'a>,
    sink: &'a mut dyn RawSink,
    rings: BTreeMap<(ProcessId, u32), Ring>,
    headers: BTreeSet<ProcessId>,
    texts: HashSet<(ProcessId, u32)>,
    facts: BTreeMap<ProcessId, Count>,
    lost: BTreeMap<(ProcessId, u32, u32, LossReason), Count>,
    samples: HashSet<(ProcessId, u64)>,
    counters: BTreeMap<ProcessId, Vec<u64>>,
    checked: HashMap<(ProcessId, u16), usize>,
    /// Which recording had a reading of this time, machine or process, and GPU or thread.
    readings: HashMap<(Nanos, u32, u64), usize>,
    /// Exits, which are passed on when the last recording is read.
    ended: BTreeMap<ProcessId, (Exit, Nanos)>,
    /// Output follows the time at which it was read.
    has_output: bool,
    /// Records with the number, but not the time, of a known one: whether they are known, too, is not certain.
    pub(super) uncertain: u64,
}

/// Number of something that recordings have in one order: of a later recording, what exceeds it is new.
#[derive(Default)]
struct Count {
    part: usize,
    own: u64,
    known: u64,
}

impl Count {
    /// How many of these are new.
    fn add(&mut self, part: usize, number: u64) -> u64 {
        if self.part != part {
            (self.part, self.own) = (part, 0);
        }
        self.own = self.own.saturating_add(number);
        let new = self.own.saturating_sub(self.known).min(number);
        self.known = self.known.max(self.own);
        new
    }
}

/// Consecutive records of a ring.
#[derive(Clone, Copy)]
struct Run {
    last: u32,
    times: Times,
}

impl Run {
    fn covers(&self, times: Times) -> bool {
        let within = |own: (u64, u64), of: (u64, u64)| of.0 > of.1 || own.0 <= of.0 && of.1 <= own.1;
        within(self.times.ticks, times.ticks) && within(self.times.hsa, times.hsa)
    }
}

/// Which records of a ring are known, by the number of the first of each run.
#[derive(Default)]
struct Ring {
    part: usize,
    /// Of earlier recordings, and of this one.
    known: BTreeMap<u32, Run>,
    own: BTreeMap<u32, Run>,
    /// Number of the first record of the current run.
    current: Option<u32>,
}

/// Whether a record is new.
enum Found {
    New,
    Known,
    Uncertain,
}

impl Ring {
    fn take(&mut self, part: usize, slots: &[Slot]) -> Found {
        if self.part != part {
            self.part = part;
            self.current = None;
            self.known.append(&mut self.own);
        }
        let number = Head(slots.first().map_or(0, |slot| slot[0])).ordinal();
        let times = Times::of(slots).0;
        let before = self.known.range(..=number).next_back().map(|(_, run)| run);
        let is_numbered = before.is_some_and(|run| number <= run.last);
        if is_numbered && before.is_some_and(|run| run.covers(times)) {
            return Found::Known;
        }
        let run = self.current.and_then(|first| self.own.get_mut(&first));
        match run {
            Some(run) if run.last.checked_add(1) == Some(number) => {
                run.last = number;
                run.times = run.times.and(times);
            }
            _ => {
                self.current = Some(number);
                self.own.insert(number, Run { last: number, times });
            }
        }
        if is_numbered { Found::Uncertain } else { Found::New }
    }
}

impl<'a> Once<'a> {
    pub(super) fn new(whole: &'a Merged<'a>, sink: &'a mut dyn RawSink) -> Self {
        Self {
            whole,
            sink,
            rings: BTreeMap::new(),
            headers: BTreeSet::new(),
            texts: HashSet::new(),
            facts: BTreeMap::new(),
            lost: BTreeMap::new(),
            samples: HashSet::new(),
            counters: BTreeMap::new(),
            checked: HashMap::new(),
            readings: HashMap::new(),
            ended: BTreeMap::new(),
            has_output: true,
            uncertain: 0,
        }
    }

    /// Passes on what the last recording had to come before.
    pub(super) fn finish(&mut self) {
        for (process, (exit, at)) in std::mem::take(&mut self.ended) {
            self.sink.take(process, &Raw::Ended(exit, at));
        }
    }

    /// Whether no earlier recording had this reading.
    fn is_new(&mut self, part: usize, at: Nanos, of: u32, number: u64) -> bool {
        *self.readings.entry((at, of, number)).or_insert(part) == part
    }

    fn gauges(&mut self, part: usize, process: ProcessId, raw: &Raw<'_>) {
        match raw {
            Raw::Now(at) => {
                self.has_output = self.is_new(part, *at, u32::MAX, 0);
                if self.has_output {
                    self.sink.take(process, raw);
                }
            }
            Raw::Output(_) if !self.has_output => {}
            Raw::Gauges(samples) => {
                let machine = self.whole.machine_of(process);
                let mut samples = samples.to_vec();
                samples.retain(|sample| {
                    let number = u64::from(sample.node) << 32 | u64::from(sample.pid.unwrap_or(0));
                    self.is_new(part, sample.at, machine, number)
                });
                self.sink.take(process, &Raw::Gauges(&samples));
            }
            _ => self.sink.take(process, raw),
        }
    }
}

impl RawSink for Once<'_> {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        if !self.whole.shares_processes() {
            return self.sink.take(process, raw);
        }
        let part = self.whole.part_of(process);
        if matches!(raw, Raw::Now(_) | Raw::Output(_) | Raw::Gauges(_)) {
            return self.gauges(part, process, raw);
        }
        let Some(process) = self.whole.shared(process) else {
            return self.sink.take(process, raw);
        };
        let is_new = match raw {
            Raw::Header(_) => self.headers.insert(process),
            Raw::Text(id, _) => self.texts.insert((process, *id)),
            Raw::Fact(_) => self.facts.entry(process).or_default().add(part, 1) > 0,
            Raw::Calibration(words) => self.samples.insert((process, words[clock::TICKS])),
            Raw::Record(thread, slots) => {
                let ring = self.rings.entry((process, thread.index)).or_default();
                match ring.take(part, slots) {
                    Found::Known => false,
                    Found::New => true,
                    Found::Uncertain => {
                        self.uncertain += 1;
                        true
                    }
                }
            }
            Raw::Lost(Thread { index, tid }, reason, records) => {
                let count = self.lost.entry((process, *index, *tid, *reason)).or_default();
                let new = count.add(part, *records);
                let thread = Thread {
                    index: *index,
                    tid: *tid,
                };
                if new > 0 {
                    self.sink.take(process, &Raw::Lost(thread, *reason, new));
                }
                false
            }
            // They only grow.
            Raw::Counters(words) => match self.counters.entry(process) {
                Entry::Vacant(place) => {
                    place.insert(words.to_vec());
                    true
                }
                Entry::Occupied(mut known) => {
                    let is_more = words.iter().zip(known.get()).any(|(word, known)| word > known);
                    if is_more {
                        known.insert(words.to_vec());
                    }
                    is_more
                }
            },
            Raw::Ended(exit, at) => {
                self.ended.entry(process).or_insert((*exit, *at));
                false
            }
            Raw::ThreadTimes(readings) => {
                let mut readings = readings.to_vec();
                readings.retain(|reading| self.is_new(part, reading.at, process.0, u64::from(reading.tid) | 1 << 63));
                self.sink.take(process, &Raw::ThreadTimes(&readings));
                false
            }
            // All but the checks may come twice.
            Raw::Sites(facts) => {
                let mut facts = facts.to_vec();
                facts.retain(|fact| match fact {
                    SiteFact::Checked { site, .. } => *self.checked.entry((process, site.0)).or_insert(part) == part,
                    _ => true,
                });
                self.sink.take(process, &Raw::Sites(&facts));
                false
            }
            // The same reading may come twice.
            Raw::Binding(_) | Raw::Open(_) | Raw::Now(_) | Raw::Output(_) | Raw::Gauges(_) => true,
        };
        if is_new {
            self.sink.take(process, raw);
        }
    }
}
