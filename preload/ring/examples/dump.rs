//! Prints the content of ring files, one line per record: `dump FILE.ring…`.
//!
//! Facts first, then records by thread, then open work, counters, and accounts.

use roctop_ring::reader::{Ended, Reader, Sink, Thread};
use roctop_ring::record::{Head, Slot, decode, kind_name};
use std::collections::HashMap;
use std::fs::File;

#[derive(Default)]
struct Printer {
    strings: HashMap<u32, String>,
}

impl Sink for Printer {
    fn string(&mut self, id: u32, text: &[u8]) {
        let text = String::from_utf8_lossy(text).into_owned();
        println!("string {id} {text:?}");
        self.strings.insert(id, text);
    }

    fn fact(&mut self, slots: &[Slot]) {
        println!("fact {:?}", decode(slots));
    }

    fn calibration(&mut self, sample: &[u64; 8]) {
        println!("calibration {sample:?}");
    }

    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        let head = Head(slots[0][0]);
        let name = kind_name(head.kind()).unwrap_or("?");
        println!(
            "{} {name} flags {:#x} domain {} {:?}",
            thread.tid,
            head.flags(),
            head.domain().0,
            decode(slots)
        );
    }

    fn lost(&mut self, thread: Thread, records: u64) {
        println!("{} lost {records}", thread.tid);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let mut reader = Reader::open(File::open(&path)?).map_err(|error| format!("{path}: {error}"))?;
        let h = reader.header().clone();
        println!(
            "{path}: pid {} ppid {} ordinal {} clock {} exe {} command {:?}",
            h.pid, h.ppid, h.ordinal, h.clock_kind, h.exe, h.command
        );
        reader.poll(Ended::Yes, &mut Printer::default())?;
        println!("open {:?}", reader.open_work()?);
        let counters = reader.counters()?;
        let used: Vec<_> = counters.iter().enumerate().filter(|(_, value)| **value != 0).collect();
        println!("counters {used:?}");
        for total in reader.totals()? {
            println!("total {total:?}");
        }
        for (thread, account) in reader.accounts() {
            println!("account {thread:?} {account:?}");
        }
    }
    Ok(())
}
