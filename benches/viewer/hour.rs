//! An hour of a program, replayed faster than real time: the viewer's resident memory by the quarter.

use anyhow::Result;
use roctop::decode::Decoder;
use roctop::model::{Fresh, Options, Store};
use roctop::raw::Batch;
use roctop::session::{Live, SessionDir};

use crate::program::{self, BEGIN, Load, Writer};
use crate::reader::Digest;
use crate::terminal::memory;

const HOUR: u64 = 3_600_000_000_000;
/// Records per poll.
const RECORDS_PER_POLL: u64 = 64_000;

/// Replays `records` records, evenly over an hour of the program's time, through the viewer's own reader, decoder and
/// store. It takes a snapshot after each poll, as the screen does, and holds the previous one in the meantime.
pub(crate) fn table(records: u64, memory_mib: Option<u64>) -> Result<()> {
    let load = Load {
        name: "hour",
        rings: 64,
        slots: 1 << 13,
        kernels: 10_000,
        dispatches: 5,
        streams: 8,
        sites: 0,
    };
    let step = HOUR / records;
    let session = SessionDir::create()?;
    let file = program::make(session.path(), &load, BEGIN, 1)?;
    let mut writer = Writer::new(&file, &load);
    let mut live = Live::new(session.path());
    let options = memory_mib.map_or_else(Options::default, |mib| Options {
        slices: Options::slices_in(mib << 20),
        ..Options::default()
    });
    let bound = memory_mib.unwrap_or(256);
    let mut digest = Digest::new(Decoder::by_kind(), Store::new(options));
    let mut batch = Batch::default();
    let (mut seen, mut lost) = (0, 0);
    println!(
        "\n{records} records, one each {step} ns of an hour; 64 rings, 10 000 kernels; bar: {bound} MiB resident.\n"
    );
    println!("| of the hour | records | own memory, MiB | lost |");
    println!("| --- | --- | --- | --- |");
    let looks = records / RECORDS_PER_POLL;
    let mut held = None;
    for look in 0..looks {
        let now = (look + 1) * RECORDS_PER_POLL * step;
        writer.write(RECORDS_PER_POLL, now, step);
        batch.clear();
        let progress = live.poll(BEGIN + now, &mut batch)?;
        batch.deliver(&mut digest);
        digest.hand_over();
        (seen, lost) = (seen + progress.records, lost + progress.lost);
        held = Some(
            digest
                .store
                .snapshot(if look % 5 == 0 { Fresh::All } else { Fresh::Head }),
        );
        if (look + 1) % (looks / 8).max(1) == 0 {
            let own = memory(std::process::id())?.0;
            println!(
                "| {:.0} % | {seen} | {} | {lost} |",
                (look + 1) as f64 * 100.0 / looks as f64,
                own >> 20
            );
        }
    }
    drop(held);
    assert_eq!(seen + lost, writer.written, "seen and lost are all that was written");
    drop(writer);
    session.remove()?;
    Ok(())
}
