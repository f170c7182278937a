//! What sources deliver and recordings keep: the collector's records as they are, by process.
//!
//! A live session and a recording speak this one language; a [`crate::decode::Decoder`] turns it into items, a
//! [`crate::recording::Recorder`] writes it down.

use crate::item::{Exit, Nanos, ProcessId};
use roctop_ring::layout::{Header, clock};
use roctop_ring::reader::{OpenWork, Thread};
use roctop_ring::record::Slot;

/// One thing that a source delivers about a process.
#[derive(Debug)]
pub enum Raw<'a> {
    /// The process appeared; first of all about it.
    Header(&'a Header),
    /// A text got an id.
    Text(u32, &'a [u8]),
    /// A fact's slots.
    Fact(&'a [Slot]),
    /// A calibration sample.
    Calibration(&'a [u64; clock::WORDS]),
    /// A record's slots.
    Record(Thread, &'a [Slot]),
    /// Records of a thread that were overwritten.
    Lost(Thread, u64),
    /// The process-wide counters as they stand, see `roctop_ring::layout::counter`.
    Counters(&'a [u64]),
    /// What is open now.
    Open(&'a OpenWork),
    /// The process ended.
    Ended(Exit, Nanos),
    /// Bytes that the program wrote to its terminal.
    Output(&'a [u8]),
    /// It is this late, CLOCK_BOOTTIME.
    Now(Nanos),
}

/// Receives what a source delivers.
pub trait RawSink {
    /// Takes one thing. `process` is dense in order of appearance; 0 also for what belongs to none.
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>);
}

/// Two sinks that both get everything.
pub struct Tee<'a>(pub &'a mut dyn RawSink, pub &'a mut dyn RawSink);

impl RawSink for Tee<'_> {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        self.0.take(process, raw);
        self.1.take(process, raw);
    }
}
