//! What the viewer needs to read, decode and store records: `cargo bench --bench viewer`. Prints bars and what was measured.
//!
//! A ring file is written by the collector's own writer; only the program is made up. Times are of the processor.

mod program;

use std::time::Duration;

use program::{BEGIN, Load, Writer};
use roctop::decode::Decoder;
use roctop::item::ProcessId;
use roctop::model::{Options, Store};
use roctop::raw::{Batch, Raw, RawSink};
use roctop::session::{Live, SessionDir};

/// Time that this thread ran.
fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Decodes and stores in portions, as the viewer's own thread does, and keeps the time of both.
struct Digest {
    decoder: Decoder,
    store: Store,
    since: Duration,
    decoded: Duration,
    stored: Duration,
}

impl Digest {
    fn hand_over(&mut self) {
        let before = processor();
        self.store.apply_all(self.decoder.items());
        self.decoder.clear();
        let after = processor();
        self.decoded += before.saturating_sub(self.since);
        self.stored += after.saturating_sub(before);
        self.since = after;
    }
}

impl RawSink for Digest {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        self.decoder.take(process, raw);
        if self.decoder.items().len() >= 1024 {
            self.hand_over();
        }
    }
}

/// Reads what 64 rings hold, again and again, on one core: in each turn what a program writes in 16 ms at a million
/// records a second.
fn digest(load: &Load, rounds: u64) -> anyhow::Result<()> {
    const EACH: u64 = 16_000;
    let session = SessionDir::create()?;
    let file = program::make(session.path(), load, BEGIN)?;
    let mut writer = Writer::new(&file, load);
    let mut live = Live::new(session.path());
    let mut digest = Digest {
        decoder: Decoder::default(),
        store: Store::new(Options::default()),
        since: Duration::ZERO,
        decoded: Duration::ZERO,
        stored: Duration::ZERO,
    };
    let mut copied = Duration::ZERO;
    let (mut records, mut lost) = (0, 0);
    for round in 0..=rounds {
        let now = (round + 1) * EACH * 1000;
        writer.write(EACH, now, 1000);
        let mut batch = Batch::default();
        let began = processor();
        let progress = live.poll(BEGIN + now, &mut batch)?;
        digest.since = processor();
        copied += digest.since.saturating_sub(began);
        batch.deliver(&mut digest);
        digest.hand_over();
        // The first round is all names.
        if round == 0 {
            (copied, digest.decoded, digest.stored) = <(Duration, Duration, Duration)>::default();
        } else {
            records += progress.records;
            lost += progress.lost;
        }
    }
    drop(writer);
    session.remove()?;
    let nanos = |time: Duration| time.as_nanos() as f64 / records as f64;
    println!(
        "| {} | {:.1} | {:.1} | {:.1} | {:.1} M | ≥ 30 M | {lost} |",
        load.name,
        nanos(copied),
        nanos(digest.decoded),
        nanos(digest.stored),
        1e3 / nanos(copied + digest.decoded + digest.stored)
    );
    Ok(())
}

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` only asks whether this runs.
    if std::env::args().any(|word| word == "--test") {
        return Ok(());
    }
    let loads = [
        ("dispatches, 300 kernels", 300, 10),
        ("dispatches, 10 000 kernels", 10_000, 10),
        ("calls", 1, 0),
        ("half and half, 300 kernels", 300, 5),
    ];
    println!("| records | copy, ns | decode, ns | store, ns | records a second | bar | lost |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (name, kernels, dispatches) in loads {
        let load = Load {
            name,
            rings: 64,
            slots: 1 << 13,
            kernels,
            dispatches,
        };
        digest(&load, 200)?;
    }
    Ok(())
}
