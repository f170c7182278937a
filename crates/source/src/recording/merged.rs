//! Several recordings as one: process numbers are offset, and clocks of different machines are aligned.
//!
//! Recordings of one boot share CLOCK_BOOTTIME, except for the offsets of their time namespaces, which are exact. Others
//! are shifted by the difference of (CLOCK_REALTIME - CLOCK_BOOTTIME). The alignment error is that of the samples plus the
//! offset between the machines' wall clocks, which no recording contains.

use super::block::Head;
use super::file::Content;
use super::history::{self, History};
use super::reader::{Recording, Repeats, Replay, Samples, as_it_is};
use super::scan::Scan;
use crate::error::Result;
use roctop_ring::layout::clock;
use roctop_ring::reader::Thread;
use roctop_ring::record::Slot;
use roctop_trace::clock::Clock;
use roctop_trace::decode::{Decoder, Plain};
use roctop_trace::item::{Item, LossReason, Nanos, ProcessId, Span, session_origin};
use roctop_trace::raw::{Raw, RawSink};
use std::collections::BTreeMap;

/// One or more recordings, read as one.
pub struct Merged<'a> {
    parts: Vec<Part<'a>>,
    /// Boots on which processes ran: first process of each, and its machine number.
    machines: Vec<Machine>,
    /// Processes that several recordings have: each one's first number.
    shared: BTreeMap<ProcessId, ProcessId>,
}

/// Machine of the processes from `first` on.
struct Machine {
    first: ProcessId,
    number: u32,
    /// Boot id, empty if unknown.
    boot: String,
}

/// A recording with its clock shift.
struct Part<'a> {
    recording: &'a Recording,
    /// Number of processes before it.
    first: u32,
    /// Added to its times, ns.
    shift: i64,
    /// Spread and width of the samples of its wall clock, ns; `None` if it is not shifted.
    error: Option<u64>,
}

impl<'a> Merged<'a> {
    /// Merges recordings; times are in the clock of the first.
    pub fn new(recordings: Vec<&'a Recording>) -> Result<Self> {
        let mut parts: Vec<Part<'a>> = Vec::new();
        let mut machines: Vec<Machine> = Vec::new();
        let (mut first, mut reference) = (0, None);
        let mut images: BTreeMap<Image, Vec<ProcessId>> = BTreeMap::new();
        let several = recordings.len() > 1;
        for recording in recordings {
            for (process, boot) in recording.machines() {
                let is_same = |known: &&Machine| known.boot == *boot && !boot.is_empty();
                let number = machines.iter().find(is_same).map(|known| known.number);
                machines.push(Machine {
                    first: ProcessId(process.0.saturating_add(first)),
                    number: number.unwrap_or(machines.len() as u32),
                    boot: boot.clone(),
                });
            }
            let mut part = Part {
                recording,
                first,
                shift: 0,
                error: None,
            };
            if several {
                let mut processes = Processes::default();
                recording.deliver_facts(&mut processes)?;
                for (process, image) in &processes.0 {
                    let process = ProcessId(process.saturating_add(first));
                    images.entry(image.unwrap_or_default()).or_default().push(process);
                }
                first += processes.0.last_key_value().map_or(0, |(last, _)| last + 1);
                let offset = Offset::of(recording)?;
                let (base, known) = reference.get_or_insert((recording, offset));
                let is_same = base.boot() == recording.boot() && !base.boot().is_empty();
                if is_same {
                    part.shift = base.clock_offset().wrapping_sub(recording.clock_offset());
                }
                if let (false, Some(own), Some(known)) = (is_same || parts.is_empty(), offset, *known) {
                    part.shift = own.nanos.wrapping_sub(known.nanos);
                    part.error = Some(own.error + known.error);
                }
            }
            parts.push(part);
        }
        let mut shared = BTreeMap::new();
        for (_, processes) in images
            .iter()
            .filter(|(image, same)| image.created > 0 && same.len() > 1)
        {
            shared.extend(processes.iter().map(|process| (*process, processes[0])));
        }
        Ok(Self {
            parts,
            machines,
            shared,
        })
    }

    /// Whether a process is in several recordings.
    pub(super) fn shares_processes(&self) -> bool {
        !self.shared.is_empty()
    }

    /// The first number of a process that is in several recordings.
    pub(super) fn shared(&self, process: ProcessId) -> Option<ProcessId> {
        self.shared.get(&process).copied()
    }

    /// Number of the recording that has this process.
    pub(super) fn part_of(&self, process: ProcessId) -> usize {
        self.parts.partition_point(|part| part.first <= process.0)
    }

    /// Number of the machine of this process.
    pub(super) fn machine_of(&self, process: ProcessId) -> u32 {
        let after = self.machines.partition_point(|machine| machine.first <= process);
        let machine = after.checked_sub(1).and_then(|last| self.machines.get(last));
        machine.map_or(0, |machine| machine.number)
    }

    /// Boots on which processes ran, for a copy of the whole; empty if there is only one.
    pub fn machines(&self) -> Vec<(ProcessId, String)> {
        let all = self
            .machines
            .iter()
            .map(|machine| (machine.first, machine.boot.clone()));
        all.filter(|_| self.machines.len() > 1).collect()
    }

    /// Describes the clock alignment: a sentence for each recording that was shifted.
    pub fn alignment(&self) -> Vec<String> {
        let moved = self.parts.iter().filter_map(|part| Some((part, part.error?)));
        let sentences = moved.map(|(part, error)| {
            format!(
                "{}: clock of {} moved by {} ns by CLOCK_REALTIME, give or take {error} ns and what the machines' wall clocks \
differ",
                part.recording.path().display(),
                if part.recording.host().is_empty() { "another boot" } else { part.recording.host() },
                part.shift
            )
        });
        sentences.collect()
    }

    /// Reads stretches of them again.
    pub fn history(&self) -> History {
        History::of(self.paths())
    }

    /// Looks through them again.
    pub fn scan(&self) -> Scan {
        Scan::of(self.paths(), self.threads())
    }

    fn paths(&self) -> Vec<history::Part> {
        let part = |part: &Part<'_>| history::Part {
            path: part.recording.path().to_owned(),
            first: part.first,
        };
        self.parts.iter().map(part).collect()
    }

    /// Size of all files, bytes.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.recording.bytes()).sum()
    }

    /// Begin of the first record and end of the last one, according to the indexes.
    pub fn span(&self) -> Result<Option<Span>> {
        let mut whole: Option<Span> = None;
        for part in &self.parts {
            if let Some(span) = part.recording.span()? {
                let begin = span.begin.saturating_add_signed(part.shift);
                let end = span.end.saturating_add_signed(part.shift);
                let known = whole.get_or_insert(Span { begin, end });
                known.begin = known.begin.min(begin);
                known.end = known.end.max(end);
            }
        }
        Ok(whole)
    }

    /// Origin of displayed times and of ranges: the start of the first process, or the first record if that is earlier.
    pub fn beginning(&self) -> Result<Option<Nanos>> {
        let mut beginning = None;
        let mut decoder = self.dated(Decoder::default(), None)?;
        self.deliver_facts(&mut decoder)?;
        for item in decoder.take_items() {
            if let Item::Process(process) = item {
                beginning = session_origin(beginning, process.since);
            }
        }
        let first = self.span()?.map(|span| span.begin);
        Ok(first.map_or(beginning, |first| session_origin(beginning, first)))
    }

    /// Gives a decoder all clock samples in advance, and the stretch of time of which it gets records.
    pub(super) fn dated(&self, mut decoder: Decoder, span: Option<Span>) -> Result<Decoder> {
        let mut samples = Samples::default();
        self.deliver_facts(&mut samples)?;
        for (process, samples) in &samples.0 {
            decoder.preload_clock(*process, samples);
        }
        for machine in &self.machines {
            decoder.preload_machine(machine.first, machine.number);
        }
        for part in &self.parts {
            decoder.preload_stretch(ProcessId(part.first), common(part.stretch(), span));
        }
        Ok(decoder)
    }

    /// The stretch of time that a copy of `span` is of, if that is not the whole run.
    pub(super) fn stretch(&self, span: Option<Span>) -> Option<Span> {
        let mut parts = self.parts.iter().map(Part::stretch);
        let first = parts.next().flatten();
        let whole = parts.fold(first, |whole, part| {
            let (whole, part) = (whole?, part?);
            Some(Span {
                begin: whole.begin.min(part.begin),
                end: whole.end.max(part.end),
            })
        });
        common(whole, span)
    }

    /// Delivers the facts that name and date records.
    pub fn deliver_facts(&self, sink: &mut dyn RawSink) -> Result<()> {
        for part in &self.parts {
            part.recording.deliver_facts(&mut part.moved(sink))?;
        }
        Ok(())
    }

    /// Number of threads that read records.
    pub fn threads(&self) -> usize {
        let threads = self.parts.iter().map(|part| part.recording.threads());
        threads.max().unwrap_or(1)
    }

    /// Whether all names are in files of facts, which are read before the records.
    pub(super) fn has_facts_apart(&self) -> bool {
        self.parts.iter().all(|part| part.recording.has_facts_apart())
    }

    /// Delivers everything that belongs to `span`, and what is taken along with it; `read` receives the number of bytes that are done, in steps.
    pub fn deliver(&self, span: Option<Span>, read: &mut dyn FnMut(u64), sink: &mut dyn RawSink) -> Result<Replay> {
        self.deliver_prepared(span, read, &|_, head, payload| as_it_is(head, payload), sink)
    }

    /// As [`Merged::deliver`]; `prepare` receives the number of processes of the recordings before it and works on each block
    /// on the thread that reads it.
    pub(super) fn deliver_prepared(
        &self,
        span: Option<Span>,
        read: &mut dyn FnMut(u64),
        prepare: &(dyn Fn(u32, Head, Vec<u8>) -> Content + Sync),
        sink: &mut dyn RawSink,
    ) -> Result<Replay> {
        let mut replay = Replay {
            finished: true,
            repeats: self.shares_processes().then_some(Repeats::Shared),
            ..Replay::default()
        };
        for part in &self.parts {
            let back = |time: Nanos| time.saturating_add_signed(part.shift.saturating_neg());
            let own = span.map(|span| Span {
                begin: back(span.begin),
                end: back(span.end),
            });
            let prepare = |head, payload| prepare(part.first, head, payload);
            let mut moved = part.moved(sink);
            replay.join(part.recording.deliver_prepared(own, read, &prepare, &mut moved)?);
        }
        Ok(replay)
    }
}

/// The time that two stretches have in common; no stretch is all time.
const fn common(one: Option<Span>, other: Option<Span>) -> Option<Span> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Span {
            begin: if one.begin > other.begin {
                one.begin
            } else {
                other.begin
            },
            end: if one.end < other.end { one.end } else { other.end },
        }),
        (None, only) | (only, None) => only,
    }
}

impl Part<'_> {
    /// The stretch of time that it is of, if that is not the whole run.
    fn stretch(&self) -> Option<Span> {
        let moved = |time: Nanos| time.saturating_add_signed(self.shift);
        let own = self.recording.stretch()?;
        Some(Span {
            begin: moved(own.begin),
            end: moved(own.end),
        })
    }

    fn moved<'b>(&self, sink: &'b mut dyn RawSink) -> ShiftedSink<'b> {
        ShiftedSink {
            first: self.first,
            shift: self.shift,
            sink,
        }
    }
}

/// CLOCK_REALTIME minus CLOCK_BOOTTIME of a recording, ns.
#[derive(Clone, Copy)]
struct Offset {
    nanos: i64,
    error: u64,
}

impl Offset {
    /// Median over all samples; `None` without samples.
    fn of(recording: &Recording) -> Result<Option<Self>> {
        let clocks = recording.clocks()?;
        let samples = clocks
            .values()
            .flat_map(Clock::samples)
            .filter(|sample| sample.realtime > 0);
        let mut offsets: Vec<i64> = samples
            .map(|sample| sample.realtime.wrapping_sub(sample.boottime) as i64)
            .collect();
        offsets.sort_unstable();
        let Some(middle) = offsets.get(offsets.len() / 2) else {
            return Ok(None);
        };
        let apart = offsets.last().unwrap_or(middle).abs_diff(offsets[0]);
        let width = clocks.values().map(Clock::error).max().unwrap_or(0);
        Ok(Some(Self {
            nanos: *middle,
            error: apart + width,
        }))
    }
}

/// Identifies the image of a process: `exec` changes only the time of its creation, which earlier releases did not note.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Image {
    created: u64,
    pid: u32,
    start_ticks: u64,
    boot: u64,
}

/// Processes of a recording.
#[derive(Default)]
struct Processes(BTreeMap<u32, Option<Image>>);

impl RawSink for Processes {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        let image = self.0.entry(process.0).or_default();
        if let Raw::Header(header) = raw {
            *image = Some(Image {
                created: header.created,
                pid: header.pid,
                start_ticks: header.start_ticks,
                boot: header.boot_id,
            });
        }
    }
}

/// Sink that offsets process numbers and shifts times.
pub(super) struct ShiftedSink<'a> {
    first: u32,
    shift: i64,
    sink: &'a mut dyn RawSink,
}

impl<'a> ShiftedSink<'a> {
    /// Offsets process numbers only: records have raw times.
    pub(super) const fn renumbered(first: u32, sink: &'a mut dyn RawSink) -> Self {
        Self { first, shift: 0, sink }
    }
}

impl RawSink for ShiftedSink<'_> {
    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        self.sink
            .records(ProcessId(process.0.saturating_add(self.first)), thread, slots);
    }

    fn plain(&mut self, process: ProcessId, thread: Thread, plain: Plain) {
        self.sink
            .plain(ProcessId(process.0.saturating_add(self.first)), thread, plain);
    }

    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        let process = ProcessId(process.0 + self.first);
        if self.shift == 0 {
            return self.sink.take(process, raw);
        }
        let moved = |time: &Nanos| time.saturating_add_signed(self.shift);
        match raw {
            Raw::Calibration(words) => {
                let mut words = **words;
                words[clock::BOOTTIME] = moved(&words[clock::BOOTTIME]);
                self.sink.take(process, &Raw::Calibration(&words));
            }
            Raw::Ended(exit, at) => self.sink.take(process, &Raw::Ended(*exit, moved(at))),
            Raw::Now(at) => self.sink.take(process, &Raw::Now(moved(at))),
            Raw::Gauges(samples) => {
                let mut samples = samples.to_vec();
                for sample in &mut samples {
                    sample.at = moved(&sample.at);
                }
                self.sink.take(process, &Raw::Gauges(&samples));
            }
            Raw::ThreadTimes(readings) => {
                let mut readings = readings.to_vec();
                for reading in &mut readings {
                    reading.at = moved(&reading.at);
                }
                self.sink.take(process, &Raw::ThreadTimes(&readings));
            }
            Raw::Binding(binding) => {
                let mut binding = (*binding).clone();
                binding.at = moved(&binding.at);
                self.sink.take(process, &Raw::Binding(&binding));
            }
            other => self.sink.take(process, other),
        }
    }
}

/// What damage has cost.
pub(super) fn damage(replay: &Replay) -> Vec<Item> {
    let lost = replay.lost_by_damage();
    let counted = (lost.records > 0).then_some((LossReason::Damaged, lost.records));
    let uncounted = lost.is_least.then_some((LossReason::Uncounted, 0));
    let item = |(reason, records)| Item::Lost {
        process: ProcessId(0),
        reason,
        records,
    };
    counted.into_iter().chain(uncounted).map(item).collect()
}
