//! Cost of copying, decoding and storing a record on one core, beside the least possible work.

use std::time::Duration;

use roctop::clocks::of_thread;
use roctop::decode::Decoder;
use roctop::item::{ProcessId, Span};
use roctop::model::table::Tables;
use roctop::model::{Lane, LaneKey, Names, Options, Store};
use roctop::raw::{Batch, Raw, RawSink, split};
use roctop::session::{Live, SessionDir};
use roctop_ring::layout::clock;
use roctop_ring::reader::{Ended, Reader, Sink, Thread, each};
use roctop_ring::record::Slot;

use crate::program::{self, BEGIN, Load, Writer};

/// Records per batch, as in the viewer's own thread.
const BATCH_RECORDS: usize = 256;

/// Decodes and stores in batches, as the viewer's own thread does.
pub(crate) struct Digest {
    decoder: Decoder,
    pub(crate) store: Store,
}

impl Digest {
    pub(crate) fn new(decoder: Decoder, store: Store) -> Self {
        Self { decoder, store }
    }

    pub(crate) fn hand_over(&mut self) {
        self.store.take(&self.decoder.decoded());
        self.decoder.clear();
    }
}

impl RawSink for Digest {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        self.decoder.take(process, raw);
        if self.decoder.pending() >= BATCH_RECORDS {
            self.hand_over();
        }
    }

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        let mut rest = slots;
        while !rest.is_empty() {
            let (batch, later) = split(rest, BATCH_RECORDS);
            self.decoder.records(process, thread, batch);
            if self.decoder.pending() >= BATCH_RECORDS {
                self.hand_over();
            }
            rest = later;
        }
    }
}

/// Decodes and discards.
struct Decode(Decoder);

impl RawSink for Decode {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        self.0.take(process, raw);
        self.0.clear();
    }

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        self.0.records(process, thread, slots);
        self.0.clear();
    }
}

/// Exactly the work that the target names, done by the viewer's own parts: decoding, histograms by kernel and
/// operation, the timeline's sums. The store adds what the screen needs beyond: slices, unions, work by range, open
/// work.
struct Named {
    decoder: Decoder,
    tables: Tables,
    shapes: Vec<u32>,
    names: Names,
    /// By thread of calls, then by queue.
    lanes: [Vec<Lane>; 2],
}

impl Named {
    fn new() -> Self {
        Self {
            decoder: Decoder::by_kind(),
            tables: Tables::default(),
            shapes: Vec::new(),
            names: Names::default(),
            lanes: Default::default(),
        }
    }

    fn add(lanes: &mut Vec<Lane>, at: u32, span: Span, what: u32) {
        while lanes.len() <= at as usize {
            lanes.push(Lane::new(LaneKey::Copies(lanes.len() as u16)));
        }
        lanes[at as usize].add_time(span, what, true);
    }

    fn hand_over(&mut self) {
        let decoded = self.decoder.decoded();
        for run in decoded.calls.chunk_by(|one, next| one.thread == next.thread) {
            self.tables.calls(run[0].thread, run, &self.names);
            for call in run {
                Self::add(&mut self.lanes[0], call.thread.0, call.span, call.operation.0);
            }
        }
        self.tables.dispatches(decoded.dispatches, &mut self.shapes);
        for one in decoded.dispatches {
            Self::add(&mut self.lanes[1], one.queue.0, one.span, one.kernel.0);
        }
        self.decoder.clear();
    }
}

impl RawSink for Named {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        self.decoder.take(process, raw);
        self.hand_over();
    }

    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        let mut rest = slots;
        while !rest.is_empty() {
            let (batch, later) = split(rest, BATCH_RECORDS);
            self.decoder.records(process, thread, batch);
            self.hand_over();
            rest = later;
        }
    }
}

/// The floor: the same slots copied by the same rule, and of each record begin, end and one count.
pub(crate) struct Least {
    counts: Vec<u32>,
    total: u64,
}

impl Default for Least {
    fn default() -> Self {
        Self {
            counts: vec![0; 8192],
            total: 0,
        }
    }
}

impl Sink for Least {
    fn string(&mut self, _: u32, _: &[u8]) {}
    fn fact(&mut self, _: &[Slot]) {}
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {}
    fn record(&mut self, _: Thread, slots: &[Slot]) {
        let nanos = slots[0][2].saturating_sub(slots[0][1]);
        self.total += nanos;
        let wider = (nanos | 0xff).ilog2() - 7;
        self.counts[(wider as usize * 128) + (nanos >> wider) as usize] += 1;
    }
    fn records(&mut self, thread: Thread, slots: &[Slot]) {
        each(slots).for_each(|slots| self.record(thread, slots));
    }
    fn lost(&mut self, _: Thread, _: u64) {}
}

/// Nanoseconds per record, by round.
#[derive(Default)]
struct Rounds(Vec<f64>);

impl Rounds {
    fn add(&mut self, time: Duration, records: u64) {
        self.0.push(time.as_nanos() as f64 / records.max(1) as f64);
    }

    /// The value below which this share of the rounds is.
    fn at(&mut self, share: f64) -> f64 {
        self.0.sort_by(f64::total_cmp);
        let place = (self.0.len() as f64 * share) as usize;
        self.0.get(place).copied().unwrap_or(f64::NAN)
    }
}

/// Reads the rings repeatedly on one core: each round is what a program writes in 16 ms at a million records per
/// second.
pub(crate) fn run(load: &Load, rounds: u64) -> anyhow::Result<()> {
    const RECORDS_PER_ROUND: u64 = 16_000;
    let session = SessionDir::create()?;
    let file = program::make(session.path(), load, BEGIN, 1)?;
    let ring = session
        .path()
        .join(roctop_ring::session::ring_name(std::process::id(), 1, 0));
    let mut writer = Writer::new(&file, load);
    let mut live = Live::new(session.path());
    let mut bare = Reader::open(std::fs::File::open(ring)?)?;
    let mut least = Least::default();
    let mut digest = Digest::new(Decoder::by_kind(), Store::new(Options::default()));
    let mut decode = Decode(Decoder::by_kind());
    let mut named = Named::new();
    let mut batch = Batch::default();
    let [mut floor, mut copied, mut decoded, mut stored] = <[Rounds; 4]>::default();
    let [mut all, mut bar] = <[Rounds; 2]>::default();
    let (mut seen, mut lost) = (0, 0);
    for round in 0..=rounds {
        let now = (round + 1) * RECORDS_PER_ROUND * 1000;
        writer.write(RECORDS_PER_ROUND, now, 1000);
        let began = of_thread();
        let least_seen = bare.poll(Ended::No, &mut least)?.records;
        let after_floor = of_thread();
        batch.clear();
        let started = of_thread();
        let progress = live.poll(BEGIN + now, &mut batch)?;
        let after_copy = of_thread();
        batch.deliver(&mut decode);
        let after_decode = of_thread();
        batch.deliver(&mut named);
        let after_named = of_thread();
        batch.deliver(&mut digest);
        digest.hand_over();
        let after_all = of_thread();
        seen += progress.records;
        lost += progress.lost;
        assert_eq!(least_seen, progress.records, "both readers see the same");
        // The first round is mostly names.
        if round > 0 {
            let only_decode = after_decode.saturating_sub(after_copy);
            let digested = after_all.saturating_sub(after_named);
            let copy = after_copy.saturating_sub(started);
            floor.add(after_floor.saturating_sub(began), progress.records);
            copied.add(copy, progress.records);
            decoded.add(only_decode, progress.records);
            stored.add(digested.saturating_sub(only_decode), progress.records);
            all.add(copy + digested, progress.records);
            bar.add(copy + after_named.saturating_sub(after_decode), progress.records);
        }
    }
    assert_eq!(seen + lost, writer.written, "seen and lost are all that was written");
    let known = digest.store.snapshot(roctop::model::Fresh::All).values.totals.records();
    assert_eq!(known + u64::from(load.rings), seen, "the store knows every record");
    assert!(least.total > 0);
    drop(writer);
    session.remove()?;
    let least = floor.at(0.1);
    println!(
        "| {} | {:.0} / {least:.0} | {:.0} | {:.0} | {:.0} | {:.0} / {:.0} | {:.1} | {:.1} M | {:.0} / {:.0} | {:.1} | {:.1} M | {lost} |",
        load.name,
        floor.at(0.5),
        copied.at(0.5),
        decoded.at(0.5),
        stored.at(0.5),
        bar.at(0.5),
        bar.at(0.1),
        bar.at(0.1) / least,
        1e3 / bar.at(0.1),
        all.at(0.5),
        all.at(0.1),
        all.at(0.1) / least,
        1e3 / all.at(0.1),
    );
    Ok(())
}

/// Only the viewer's own path, for a profiler: `records` records at a million per second of the program's time.
pub(crate) fn digest(records: u64) -> anyhow::Result<()> {
    const RECORDS_PER_ROUND: u64 = 16_000;
    let load = Load {
        name: "digest",
        rings: 64,
        slots: 1 << 13,
        kernels: 10_000,
        dispatches: 5,
        streams: 8,
        sites: 0,
    };
    let session = SessionDir::create()?;
    let file = program::make(session.path(), &load, BEGIN, 1)?;
    let mut writer = Writer::new(&file, &load);
    let mut live = Live::new(session.path());
    let mut digest = Digest::new(Decoder::by_kind(), Store::new(Options::default()));
    let mut batch = Batch::default();
    let [mut copied, mut stored] = <[Rounds; 2]>::default();
    for round in 1..=records / RECORDS_PER_ROUND {
        let now = round * RECORDS_PER_ROUND * 1000;
        writer.write(RECORDS_PER_ROUND, now, 1000);
        batch.clear();
        let began = of_thread();
        let progress = live.poll(BEGIN + now, &mut batch)?;
        let polled = of_thread();
        batch.deliver(&mut digest);
        digest.hand_over();
        copied.add(polled.saturating_sub(began), progress.records);
        stored.add(of_thread().saturating_sub(polled), progress.records);
    }
    drop(writer);
    session.remove()?;
    println!(
        "copied {:.0} / {:.0} ns a record, decoded and stored {:.0} / {:.0} (half / best tenth)",
        copied.at(0.5),
        copied.at(0.1),
        stored.at(0.5),
        stored.at(0.1)
    );
    Ok(())
}

/// Prints the table.
pub(crate) fn table(wanted: &dyn Fn(&str) -> bool) -> anyhow::Result<()> {
    let loads = [
        ("calls", 1, 0, 1, 0),
        ("dispatches, 300 kernels, each in 8 streams", 300, 10, 8, 0),
        ("dispatches, 10 000 kernels, each in 1 stream", 10_000, 10, 1, 0),
        ("dispatches, 300 kernels, each in 64 streams", 300, 10, 64, 0),
        ("dispatches, 10 000 kernels, each in 64 streams", 10_000, 10, 64, 0),
        ("dispatches with sites, 300 kernels, each in 8 streams", 300, 10, 8, 300),
        (
            "dispatches with sites, 10 000 kernels, each in 64 streams",
            10_000,
            10,
            64,
            2_000,
        ),
        ("calls with sites", 1, 0, 1, 300),
        ("half and half, 300 kernels, each in 8 streams", 300, 5, 8, 0),
        ("half and half, 10 000 kernels, each in 8 streams", 10_000, 5, 8, 0),
    ];
    println!(
        "Nanoseconds a record (of the processor), median / best tenth of the rounds. The bar of 30 M names decoding, histograms\n\
         and the timeline; all is what the screen's store does.\n"
    );
    println!(
        "| records | floor | copy | decode | store | of the bar | / floor | records/s | all | / floor | records/s | lost |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, kernels, dispatches, streams, sites) in loads {
        let load = Load {
            name,
            rings: 64,
            slots: 1 << 13,
            kernels,
            dispatches,
            streams,
            sites,
        };
        if wanted(name) {
            run(&load, 200)?;
        }
    }
    Ok(())
}
