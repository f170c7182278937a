//! Leaves out of a recording what ended before it began: rings, and the blocks of a flight recorder, reach back differently far, so
//! what they held before shows calls without their kernels.
//!
//! A record belongs to the recording if it ended after the begin. The call that launched its work, the calls and ranges around
//! that call, and what the call requested belong to it too, though they may have ended earlier.

use super::index::Times;
use super::reader::Clocks;
use roctop_ring::arguments::Arguments;
use roctop_ring::reader::Thread;
use roctop_ring::record::{
    ApiCall, Communication, Copy, CounterInstances, CounterValue, Dispatch, Marker, PcSample, Slot, Transfer,
};
use roctop_trace::clock::Clock;
use roctop_trace::item::{Nanos, ProcessId};
use roctop_trace::raw::{Raw, RawSink as _, each};
use std::collections::{HashMap, HashSet};

/// Polls until all rings were read from their oldest record on.
const POLLS: u32 = 2;
/// Records that are read later ended after the begin.
const SETTLED: Nanos = 1_000_000_000;
/// Work that was submitted before the begin brings its call if it ends within this time.
pub(super) const MAX_WAIT: Nanos = 60_000_000_000;
/// Maximum number of early records that are kept for later ones.
const MAX_EARLY: usize = 1 << 20;

/// A record, by its thread.
pub(super) type Record = (Thread, Vec<Slot>);

/// What an early record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A call, by its correlation id.
    Call(ProcessId, u64),
    /// A dispatch, by its number.
    Dispatch(ProcessId, u64),
}

/// A range: begin and end in ticks, and its record.
type Range = ([u64; 2], Record);

/// The begin of a recording of a program that runs.
pub(super) struct Beginning {
    at: Nanos,
    clocks: Clocks,
    polls: u32,
    is_settled: bool,
    /// Early records by what they belong to.
    early: HashMap<Key, Vec<Record>>,
    count: usize,
    /// Ranges that ended before, by thread, with their begin and end in ticks.
    ranges: HashMap<(ProcessId, u32), Vec<Range>>,
    /// What records of the recording belong to, while the rings' past is being read.
    wanted: HashSet<Key>,
}

/// Where a record is in relation to the begin.
#[derive(PartialEq, Eq)]
enum Place {
    Before,
    After,
    /// It has no time.
    Unknown,
}

impl Beginning {
    /// At this time, CLOCK_BOOTTIME.
    pub(super) fn new(at: Nanos) -> Self {
        Self {
            at,
            clocks: Clocks::default(),
            polls: 0,
            is_settled: false,
            early: HashMap::new(),
            count: 0,
            ranges: HashMap::new(),
            wanted: HashSet::new(),
        }
    }

    /// Takes everything else from a source; records that it brings are in `out`. True once no record is left out any more.
    pub(super) fn take(&mut self, process: ProcessId, raw: &Raw<'_>, out: &mut Vec<(ProcessId, Record)>) -> bool {
        match raw {
            Raw::Calibration(_) => self.clocks.take(process, raw),
            Raw::Now(now) if *now > self.at => {
                self.polls += 1;
                if self.polls == POLLS {
                    for key in std::mem::take(&mut self.wanted) {
                        self.bring(key, out);
                    }
                }
                let since = now.saturating_sub(self.at);
                self.is_settled = self.polls >= POLLS && since > SETTLED;
                return self.is_settled && (self.early.is_empty() || since > MAX_WAIT);
            }
            _ => {}
        }
        false
    }

    /// Passes on the records of a thread that belong to the recording, and those that they bring.
    pub(super) fn records(
        &mut self,
        process: ProcessId,
        thread: Thread,
        slots: &[Slot],
        out: &mut Vec<(ProcessId, Record)>,
    ) {
        for record in each(slots) {
            let Some(first) = record.first() else { continue };
            let is_past = self.polls < POLLS;
            if !self.is_settled {
                let place = self.place(process, record);
                let is_early = place == Place::Before || place == Place::Unknown && is_past && is_detail(first);
                if is_early {
                    self.keep(process, (thread, record.to_vec()));
                    continue;
                }
            }
            for key in [key(process, first), dispatch(process, first)].into_iter().flatten() {
                if is_past {
                    self.wanted.insert(key);
                } else {
                    self.bring(key, out);
                }
            }
            match out.last_mut() {
                Some((of, (last, slots))) if *of == process && *last == thread => slots.extend_from_slice(record),
                _ => out.push((process, (thread, record.to_vec()))),
            }
        }
    }

    /// Keeps an early record that a later one may bring.
    fn keep(&mut self, process: ProcessId, record: Record) {
        let Some(first) = record.1.first() else { return };
        if self.count >= MAX_EARLY || is_work(first) {
            return;
        }
        self.count += 1;
        if first[0] as u8 == Marker::RANGE {
            let ranges = self.ranges.entry((process, record.0.index)).or_default();
            ranges.push(([first[1], first[2]], record));
        } else if let Some(key) = key(process, first) {
            self.early.entry(key).or_default().push(record);
        }
    }

    /// Passes on the early records that belong to a key, with the calls and ranges around them.
    fn bring(&mut self, key: Key, out: &mut Vec<(ProcessId, Record)>) {
        let (Key::Call(process, _) | Key::Dispatch(process, _)) = key;
        for record in self.early.remove(&key).unwrap_or_default() {
            let (thread, first) = (record.0, record.1.first().copied().unwrap_or_default());
            out.push((process, record));
            if !is_call(&first) {
                continue;
            }
            if let Some(ranges) = self.ranges.get_mut(&(process, thread.index)) {
                let around = ranges.extract_if(.., |([begin, end], _)| (*begin..=*end).contains(&first[1]));
                out.extend(around.map(|(_, record)| (process, record)));
            }
            let parent = first[4];
            if parent != 0 {
                self.bring(Key::Call(process, parent), out);
            }
        }
    }

    fn place(&self, process: ProcessId, record: &[Slot]) -> Place {
        match self.clocks.0.get(&process).and_then(|clock| end_of(clock, record)) {
            None => Place::Unknown,
            Some(end) if end <= self.at => Place::Before,
            Some(_) => Place::After,
        }
    }
}

/// When a record ended; of work without times, when it was submitted.
pub(super) fn end_of(clock: &Clock, record: &[Slot]) -> Option<Nanos> {
    let first = record.first()?;
    let Times { ticks, hsa } = Times::of(record).0;
    let is_sample = first[0] as u8 == PcSample::KIND;
    let end = match () {
        () if is_sample => clock.hsa(first[1]),
        () if ticks.0 <= ticks.1 => clock.ticks(ticks.1),
        () if hsa.0 <= hsa.1 => clock.hsa(hsa.1),
        () if is_work(first) => clock.ticks(first[3]),
        () => 0,
    };
    Some(end).filter(|end| *end > 0)
}

/// When the work of a record was submitted, ticks.
pub(super) fn submission(record: &[Slot]) -> Option<u64> {
    let first = record.first().filter(|first| is_work(first))?;
    Some(first[3]).filter(|at| *at > 0)
}

pub(super) fn is_call(first: &Slot) -> bool {
    [ApiCall::KIND, Arguments::KIND].contains(&(first[0] as u8))
}

pub(super) fn is_work(first: &Slot) -> bool {
    [Dispatch::KIND, Copy::KIND].contains(&(first[0] as u8))
}

/// Whether it belongs to a call or dispatch and has no separate time.
fn is_detail(first: &Slot) -> bool {
    let kinds = [
        Transfer::KIND,
        Communication::KIND,
        CounterValue::KIND,
        CounterInstances::KIND,
    ];
    kinds.contains(&(first[0] as u8))
}

/// What a record belongs to. See `roctop_ring::record` for the words.
pub(super) fn key(process: ProcessId, first: &Slot) -> Option<Key> {
    let call = |id: u64| (id != 0).then_some(Key::Call(process, id));
    match first[0] as u8 {
        ApiCall::KIND | Arguments::KIND => call(first[3]),
        Dispatch::KIND | Copy::KIND => call(first[4]),
        Transfer::KIND => call(first[1]),
        Communication::KIND => call(first[2]),
        CounterValue::KIND | CounterInstances::KIND if first[1] != 0 => Some(Key::Dispatch(process, first[1])),
        _ => None,
    }
}

/// A dispatch also brings the values of its counters.
fn dispatch(process: ProcessId, first: &Slot) -> Option<Key> {
    (first[0] as u8 == Dispatch::KIND).then_some(Key::Dispatch(process, first[6]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::layout::clock;

    const BEGIN: u64 = 1_000_000_000;
    const PROCESS: ProcessId = ProcessId(0);
    const LAUNCHER: Thread = Thread { index: 1, tid: 11 };
    const COMPLETIONS: Thread = Thread { index: 0, tid: 10 };

    fn slot(kind: u8, words: [u64; 6]) -> Slot {
        let [a, b, c, d, e, f] = words;
        [u64::from(kind), a, b, c, d, e, f, 0]
    }

    fn call(number: u64, parent: u64, begin: u64, end: u64) -> Slot {
        slot(ApiCall::KIND, [begin, end, number, parent, 0, 0])
    }

    fn kernel(call: u64, number: u64, begin: u64, end: u64) -> Slot {
        slot(Dispatch::KIND, [begin, end, begin - 1, call, 0, number])
    }

    /// A tick is a nanosecond.
    fn beginning() -> Beginning {
        let mut beginning = Beginning::new(BEGIN);
        for at in [1_000, 4_000_000_000] {
            let mut words = [0; clock::WORDS];
            words[clock::TICKS] = at;
            words[clock::BOOTTIME] = at;
            words[clock::HSA] = at;
            beginning.take(PROCESS, &Raw::Calibration(&words), &mut Vec::new());
        }
        beginning
    }

    /// First words and first payload words of the records that pass, in polls of records by thread.
    fn passed(polls: &[&[(Thread, &[Slot])]]) -> Vec<(u8, u64)> {
        let (mut beginning, mut out) = (beginning(), Vec::new());
        for (number, poll) in (0..).zip(polls) {
            for (thread, slots) in *poll {
                beginning.records(PROCESS, *thread, slots, &mut out);
            }
            beginning.take(PROCESS, &Raw::Now(BEGIN + 1 + number), &mut out);
        }
        let slots = out.iter().flat_map(|(_, (_, slots))| slots);
        let mut found: Vec<_> = slots.map(|slot| (slot[0] as u8, slot[1])).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn calls_of_later_work_stay() {
        let before = BEGIN - 900;
        let calls = [
            slot(Transfer::KIND, [1, 0, 0, 0, 0, 0]),
            call(1, 0, before, before + 1),
            call(2, 3, before + 10, before + 11),
            call(3, 0, before + 9, before + 12),
            // Around both, on the same thread; the second one is over.
            slot(Marker::RANGE, [before + 5, before + 100, 0, 0, 0, 0]),
            slot(Marker::RANGE, [before + 2, before + 4, 0, 0, 0, 0]),
            slot(Marker::MARK, [before + 10, before + 10, 0, 0, 0, 0]),
            call(4, 0, before + 50, BEGIN),
            call(5, 0, before + 60, BEGIN + 1),
        ];
        let kernels = [kernel(1, 1, before + 2, BEGIN - 1), kernel(2, 2, BEGIN - 1, BEGIN + 5)];
        let expected = [
            (ApiCall::KIND, before + 9),
            (ApiCall::KIND, before + 10),
            (ApiCall::KIND, before + 60),
            (Dispatch::KIND, BEGIN - 1),
            (Marker::RANGE, before + 5),
        ];
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        // Whichever ring is read first, and also if the kernel ends later.
        let (launcher, completions) = ((LAUNCHER, &calls[..]), (COMPLETIONS, &kernels[..]));
        for polls in [
            &[&[launcher, completions][..], &[], &[]][..],
            &[&[completions, launcher][..], &[], &[]],
            &[&[launcher][..], &[], &[], &[completions]],
        ] {
            assert_eq!(passed(polls), expected);
        }
    }

    #[test]
    fn requests_and_counters_of_later_ends_stay() {
        let records = [
            slot(Transfer::KIND, [7, 0, 0, 0, 0, 0]),
            slot(CounterValue::KIND, [5, 0, 0, 0, 0, 0]),
            slot(CounterValue::KIND, [6, 0, 0, 0, 0, 0]),
        ];
        let later = [call(7, 0, BEGIN - 5, BEGIN + 5), kernel(0, 6, BEGIN - 9, BEGIN + 1)];
        let found = passed(&[&[(LAUNCHER, &records)], &[], &[(LAUNCHER, &later)]]);
        let mut expected = vec![
            (Transfer::KIND, 7),
            (CounterValue::KIND, 6),
            (ApiCall::KIND, BEGIN - 5),
            (Dispatch::KIND, BEGIN - 9),
        ];
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn after_a_while_all_passes() {
        let mut beginning = beginning();
        let early = [call(1, 0, BEGIN - 9, BEGIN - 8)];
        beginning.records(PROCESS, LAUNCHER, &early, &mut Vec::new());
        let mut is_over = |now| beginning.take(PROCESS, &Raw::Now(now), &mut Vec::new());
        assert!(![BEGIN + 1, BEGIN + 1, BEGIN + MAX_WAIT].into_iter().any(&mut is_over));
        assert!(is_over(BEGIN + MAX_WAIT + 1));
        // No early record can be brought.
        let mut beginning = Beginning::new(BEGIN);
        let mut is_over = |now| beginning.take(PROCESS, &Raw::Now(now), &mut Vec::new());
        assert!(![BEGIN + 1, BEGIN + 1, BEGIN + SETTLED].into_iter().any(&mut is_over));
        assert!(is_over(BEGIN + SETTLED + 1));
    }
}
