//! Which records of a recording belong to a stretch of time: those that ended in it. The calls and ranges of this work that did not end
//! in it are taken along.

use super::beginning::{Key, end_of, is_call, is_work, key, submission};
use super::block::{Head, Kind};
use super::history::touches;
use super::index::Entry;
use super::payload;
use super::reader::Recording;
use crate::error::Result;
use roctop_ring::reader::Thread;
use roctop_ring::record::{Head as RecordHead, Marker, Slot};
use roctop_trace::clock::Clock;
use roctop_trace::item::{Nanos, ProcessId, Span};
use roctop_trace::raw::{Raw, RawSink, each};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A record, by its process, its ring and its number there.
type Place = (ProcessId, u32, u32);

/// A stretch of time of a recording.
pub(super) struct Stretch {
    span: Span,
    clocks: BTreeMap<ProcessId, Clock>,
    /// Since when records that are taken along ended.
    since: Nanos,
    along: HashSet<Place>,
}

/// Where a record is in relation to a stretch.
enum Position {
    Before,
    Inside,
    After,
    /// It has no time.
    Unknown,
}

impl Stretch {
    /// Finds what is taken along: it reads the blocks of work in the stretch, and the blocks of calls at its ends.
    pub(super) fn find(recording: &Recording, span: Span, clocks: BTreeMap<ProcessId, Clock>) -> Result<Self> {
        let mut stretch = Self {
            span,
            clocks,
            since: span.begin,
            along: HashSet::new(),
        };
        let mut causes = Causes {
            stretch: &stretch,
            wanted: HashSet::new(),
            since: span.begin,
            open: HashMap::new(),
            along: HashSet::new(),
            launches: HashMap::new(),
            step: Step::Open,
        };
        let at = |time| Span { begin: time, end: time };
        let is_of_calls = |entry: &Entry| entry.times.ticks.0 <= entry.times.ticks.1;
        let is_of_work = |entry: &Entry| entry.times.hsa.0 <= entry.times.hsa.1;
        let within = |entry: &Entry, span| stretch.touches(entry, span);
        if span.end != Nanos::MAX {
            recording.deliver_records(&|entry| is_of_calls(entry) && within(entry, at(span.end)), &mut causes)?;
        }
        causes.step = Step::Work;
        recording.deliver_records(&|entry| is_of_work(entry) && within(entry, span), &mut causes)?;
        causes.step = Step::Before;
        let since = causes.since;
        let before = Span {
            begin: since,
            end: span.begin,
        };
        if !causes.wanted.is_empty() {
            recording.deliver_records(&|entry| is_of_calls(entry) && within(entry, before), &mut causes)?;
        }
        let along = causes.along;
        (stretch.since, stretch.along) = (since, along);
        Ok(stretch)
    }

    fn touches(&self, entry: &Entry, span: Span) -> bool {
        let clock = self.clocks.get(&ProcessId(entry.owner.process & 0xffff));
        touches(entry, clock, span)
    }

    /// Whether a block may have records of the stretch, or some that are taken along.
    pub(super) fn wants(&self, entry: &Entry) -> bool {
        let whole = Span {
            begin: self.since,
            end: self.span.end,
        };
        entry.kind != Kind::RECORDS || self.touches(entry, whole)
    }

    /// Leaves of a block of records what belongs to the stretch or is taken along.
    pub(super) fn reduce(&self, head: Head, payload: Vec<u8>) -> Vec<u8> {
        let (process, thread) = payload::owner(head);
        let words = payload::words(&payload);
        let slots = payload::slots(&words);
        let has = |record: &&[Slot]| match self.position(process, record) {
            Position::Inside | Position::Unknown => true,
            Position::Before | Position::After => self.along.contains(&place(process, thread, record)),
        };
        if each(slots).all(|record| has(&record)) {
            return payload;
        }
        let mut left = Vec::new();
        each(slots)
            .filter(has)
            .for_each(|record| payload::put_slots(&mut left, record));
        left
    }

    fn position(&self, process: ProcessId, record: &[Slot]) -> Position {
        match self.clocks.get(&process).and_then(|clock| end_of(clock, record)) {
            None => Position::Unknown,
            Some(end) if end <= self.span.begin => Position::Before,
            Some(end) if end <= self.span.end => Position::Inside,
            Some(_) => Position::After,
        }
    }

    /// Whether a time in ticks is after the begin of the stretch.
    fn is_after_begin(&self, process: ProcessId, ticks: u64) -> bool {
        let clock = self.clocks.get(&process);
        clock.is_none_or(|clock| clock.ticks(ticks) > self.span.begin)
    }
}

fn place(process: ProcessId, thread: Thread, record: &[Slot]) -> Place {
    let number = record.first().map_or(0, |first| RecordHead(first[0]).ordinal());
    (process, thread.index, number)
}

/// What is read, in this order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Calls and ranges that were open at the end.
    Open,
    /// Work of the stretch.
    Work,
    /// Calls and ranges that ended before.
    Before,
}

/// Finds the causes of the work of a stretch.
struct Causes<'a> {
    stretch: &'a Stretch,
    /// Calls that may have ended before.
    wanted: HashSet<Key>,
    /// First submission of work of the stretch, if that is before its begin.
    since: Nanos,
    /// Calls that were open at the end, and what encloses them.
    open: HashMap<Key, (Place, Option<Key>)>,
    along: HashSet<Place>,
    /// Begins of calls that are taken along, by thread, ticks.
    launches: HashMap<(ProcessId, u32), Vec<u64>>,
    step: Step,
}

impl Causes<'_> {
    fn open(&mut self, process: ProcessId, thread: Thread, record: &[Slot], first: &Slot) {
        let is_open = matches!(self.stretch.position(process, record), Position::After);
        let begins_later = self
            .stretch
            .clocks
            .get(&process)
            .is_none_or(|clock| clock.ticks(first[1]) > self.stretch.span.end);
        if !is_open || begins_later {
            return;
        }
        let place = place(process, thread, record);
        if first[0] as u8 == Marker::RANGE {
            self.along.insert(place);
        } else if is_call(first)
            && let Some(key) = key(process, first)
        {
            let parent = (first[4] != 0).then_some(Key::Call(process, first[4]));
            self.open.insert(key, (place, parent));
        }
    }

    fn work(&mut self, process: ProcessId, record: &[Slot], first: &Slot) {
        if !matches!(self.stretch.position(process, record), Position::Inside) {
            return;
        }
        let Some(cause) = key(process, first) else { return };
        let mut next = Some(cause);
        while let Some((place, parent)) = next.and_then(|key| self.open.remove(&key)) {
            self.along.insert(place);
            next = parent;
        }
        if let Some(submitted) = submission(record)
            && !self.stretch.is_after_begin(process, submitted)
        {
            if let Some(clock) = self.stretch.clocks.get(&process) {
                self.since = self.since.min(clock.ticks(submitted));
            }
            self.wanted.insert(cause);
        }
    }

    fn before(&mut self, process: ProcessId, thread: Thread, record: &[Slot], first: &Slot) {
        if !matches!(self.stretch.position(process, record), Position::Before) {
            return;
        }
        let launches = self.launches.entry((process, thread.index)).or_default();
        let is_wanted = if first[0] as u8 == Marker::RANGE {
            launches.iter().any(|at| (first[1]..=first[2]).contains(at))
        } else {
            is_call(first) && key(process, first).is_some_and(|key| self.wanted.contains(&key))
        };
        if !is_wanted {
            return;
        }
        self.along.insert(place(process, thread, record));
        if is_call(first) {
            launches.push(first[1]);
            if first[4] != 0 {
                self.wanted.insert(Key::Call(process, first[4]));
            }
        }
    }
}

impl RawSink for Causes<'_> {
    fn take(&mut self, _: ProcessId, _: &Raw<'_>) {}

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        for record in each(slots) {
            let Some(first) = record.first() else { continue };
            match self.step {
                Step::Open => self.open(process, thread, record, first),
                Step::Work if is_work(first) => self.work(process, record, first),
                Step::Before => self.before(process, thread, record, first),
                Step::Work => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Recorder;
    use super::*;
    use roctop_ring::layout::{Header, clock};
    use roctop_ring::record::{ApiCall, Dispatch};

    const SECOND: Nanos = 1_000_000_000;
    const PROCESS: ProcessId = ProcessId(0);

    /// What a record is, and its begin after the beginning of the recording.
    #[derive(Default)]
    struct Found(Vec<(u8, u64)>);

    impl RawSink for Found {
        fn take(&mut self, _: ProcessId, raw: &Raw<'_>) {
            if let Raw::Record(_, slots) = raw {
                self.0.push((slots[0][0] as u8, slots[0][1] - SECOND));
            }
        }
    }

    fn slot(kind: u8, number: u64, words: [u64; 5]) -> Slot {
        let [a, b, c, d, e] = words;
        let head = RecordHead::new(kind, 0, 1, 0).with_ordinal(number);
        [head.0, SECOND + a, SECOND + b, c, d, e, 0, 0]
    }

    #[test]
    fn work_brings_its_calls_and_ranges() {
        let path = std::env::temp_dir().join(format!("roctop-stretch-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let mut recorder = Recorder::create(&path, &[], &[]).unwrap();
        recorder.take(PROCESS, &Raw::Header(&Header::default()));
        for at in [1000, 100 * SECOND] {
            // A tick is a nanosecond.
            let mut words = [0; clock::WORDS];
            for word in [clock::TICKS, clock::BOOTTIME, clock::HSA] {
                words[word] = at;
            }
            recorder.take(PROCESS, &Raw::Calibration(&words));
        }
        let call = |number, begin, end, id| slot(ApiCall::KIND, number, [begin, end, id, 0, 0]);
        let range = |number, begin, end| slot(Marker::RANGE, number, [begin, end, 0, 0, 0]);
        let caller = [
            // Its kernel ended before.
            call(1, 500, 510, 1),
            // Its kernel ends in the stretch.
            call(2, 900, 910, 2),
            range(3, 890, 920),
            range(4, 700, 800),
            call(5, 1100, 1200, 3),
            // Its kernel ends in the stretch, and it returns later.
            call(6, 1900, 2100, 4),
            // It caused nothing.
            call(7, 2050, 2200, 5),
            range(8, 600, 2300),
        ];
        recorder.records(PROCESS, Thread { index: 1, tid: 11 }, &caller);
        let kernel =
            |number, begin, end, submit, id| slot(Dispatch::KIND, number, [begin, end, SECOND + submit, id, 0]);
        let kernels = [
            kernel(1, 550, 600, 505, 1),
            kernel(2, 950, 1001, 905, 2),
            kernel(3, 1250, 1300, 1150, 3),
            kernel(4, 1910, 1950, 1905, 4),
            kernel(5, 1990, 2001, 1905, 3),
        ];
        recorder.records(PROCESS, Thread { index: 0, tid: 10 }, &kernels);
        recorder.finish().unwrap();
        let recording = Recording::open(&path).unwrap();
        let span = Span {
            begin: SECOND + 1000,
            end: SECOND + 2000,
        };
        let mut found = Found::default();
        recording.deliver_span(Some(span), &mut |_| (), &mut found).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        found.0.sort_unstable();
        let mut expected = vec![
            (ApiCall::KIND, 900),
            (ApiCall::KIND, 1100),
            (ApiCall::KIND, 1900),
            (Marker::RANGE, 890),
            (Marker::RANGE, 600),
            (Dispatch::KIND, 950),
            (Dispatch::KIND, 1250),
            (Dispatch::KIND, 1910),
        ];
        expected.sort_unstable();
        assert_eq!(found.0, expected);
    }
}
