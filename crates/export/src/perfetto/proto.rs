//! Encodes the required messages of Perfetto's trace format.
//!
//! Source: `protos/perfetto/trace` (trace_packet, track_event, track_descriptor, interned_data, debug_annotation).

use crate::protobuf::Message;
use roctop_model::FastMap;
use std::borrow::Cow;
use std::io::{self, Write};

/// Value of an annotation.
pub(super) enum Value<'a> {
    Number(u64),
    Real(f64),
    Text(Cow<'a, str>),
}

/// Content of a slice or an instant.
pub(super) struct Event<'a> {
    pub(super) category: &'static str,
    pub(super) name: &'a str,
    /// Flow id: connects slices with the same id.
    pub(super) flow: u64,
    pub(super) annotations: &'a [(&'a str, Value<'a>)],
}

/// Types of track events.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// Maximum number of interned names.
const MAX_INTERNED_NAMES: usize = 1 << 16;
/// Size of a slice, bytes, about, and the limits of how many are encoded together.
const SLICE_BYTES: u64 = 512;
const MIN_SLICES: u64 = 16;
const MAX_SLICES: u64 = 1 << 13;
/// Id of the only packet sequence.
const SEQUENCE: u64 = 1;

/// Writer of a trace's files.
///
/// A trace beyond the limit is divided into files. Each is written by a pass over all events, which leaves out those of the
/// other files; tracks are described in every file.
pub(super) struct Trace<'w> {
    out: &'w mut dyn Write,
    /// The file that is written, and the one to which the next event belongs.
    wanted: usize,
    current: usize,
    /// Bytes of the current file, and how many it may have.
    bytes: u64,
    limit: u64,
    packets: Packets,
}

impl<'w> Trace<'w> {
    pub(super) fn new(out: &'w mut dyn Write, wanted: usize, limit: u64) -> Self {
        Self {
            out,
            wanted,
            current: 0,
            bytes: 0,
            limit,
            packets: Packets::default(),
        }
    }

    /// Number of slices that are encoded together: few enough that a file becomes not much larger than it may be.
    pub(super) fn slices_per_part(&self) -> usize {
        (self.limit / (8 * SLICE_BYTES)).clamp(MIN_SLICES, MAX_SLICES) as usize
    }

    /// Whether another file should begin.
    pub(super) const fn is_full(&self) -> bool {
        self.bytes >= self.limit
    }

    /// Begins another file. No slice may be open.
    pub(super) const fn divide(&mut self) {
        self.bytes = 0;
        self.current += 1;
    }

    /// Number of files so far.
    pub(super) const fn files(&self) -> usize {
        self.current + 1
    }

    /// Writes packets that describe a track, into every file.
    pub(super) fn describe(&mut self, fill: impl FnOnce(&mut Packets)) -> io::Result<()> {
        fill(&mut self.packets);
        let bytes = self.packets.take();
        self.bytes += bytes.len() as u64;
        self.out.write_all(&bytes)
    }

    /// Writes an event of a counter track; begins another file first if this one is full.
    pub(super) fn count(&mut self, fill: impl FnOnce(&mut Packets)) -> io::Result<()> {
        if self.is_full() {
            self.divide();
        }
        fill(&mut self.packets);
        let bytes = self.packets.take();
        self.events(&bytes)?;
        self.packets.bytes = Message::reuse(bytes);
        Ok(())
    }

    /// Writes encoded events into the current file.
    pub(super) fn events(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if self.current == self.wanted {
            self.out.write_all(bytes)?;
        }
        Ok(())
    }
}

/// Encoder of packets. A name is written once and then referred to by number. The first packet declares that nothing before
/// it is referred to, so that any thread can encode a part of the trace.
#[derive(Default)]
pub(super) struct Packets {
    bytes: Message,
    has_begun: bool,
    /// Interned data by field: categories, event names, annotation names.
    interned: [FastMap<String, u64>; 3],
    /// Numbers of the annotation names of the event before: the next event mostly has the same.
    last: Vec<(String, u64)>,
}

impl Packets {
    /// Removes and returns what was encoded.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.bytes.take()
    }

    /// Encodes a packet; one without a time describes a track.
    fn packet(&mut self, time: Option<u64>, fill: impl FnOnce(&mut Message)) {
        // The first packet resets interned data; all packets declare that they need it.
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        self.bytes.message(1, |packet| {
            if let Some(time) = time {
                packet.number(8, time);
            }
            packet.number(10, SEQUENCE).number(13, if is_first { 3 } else { 2 });
            fill(packet);
        });
    }

    /// Number of the annotation name in this place of an event.
    fn intern_key(&mut self, place: usize, key: &str, new: &mut Message) -> Option<u64> {
        if let Some((known, id)) = self.last.get(place)
            && known == key
        {
            return Some(*id);
        }
        let id = self.intern(2, key, new)?;
        self.last.truncate(place);
        if self.last.len() == place {
            self.last.push((key.to_owned(), id));
        }
        Some(id)
    }

    /// Number of a name; `None` if there are too many, so that it is written in full.
    fn intern(&mut self, table: usize, name: &str, new: &mut Message) -> Option<u64> {
        if let Some(known) = self.interned[table].get(name) {
            return Some(*known);
        }
        if self.interned[table].len() >= MAX_INTERNED_NAMES {
            return None;
        }
        let id = self.interned[table].len() as u64 + 1;
        self.interned[table].insert(name.to_owned(), id);
        new.message(table as u32 + 1, |entry| {
            entry.number(1, id).text(2, name);
        });
        Some(id)
    }

    /// Describes the process, the parent of all tracks.
    pub(super) fn process(&mut self, uuid: u64, pid: u32, name: &str) {
        self.packet(None, |packet| {
            packet.message(60, |track| {
                track.number(1, uuid).message(3, |process| {
                    process.number(1, pid.into()).text(6, name);
                });
            });
        });
    }

    /// Describes the main thread's track.
    pub(super) fn thread(&mut self, uuid: u64, parent: u64, pid: u32, name: &str) {
        self.packet(None, |packet| {
            packet.message(60, |track| {
                track.number(1, uuid).number(5, parent).message(4, |thread| {
                    thread.number(1, pid.into()).number(2, pid.into()).text(5, name);
                });
            });
        });
    }

    /// Describes a named track.
    pub(super) fn track(&mut self, uuid: u64, parent: u64, name: &str) {
        self.packet(None, |packet| {
            packet.message(60, |track| {
                track.number(1, uuid).number(5, parent).text(2, name);
            });
        });
    }

    /// Describes a counter track of sizes in KiB.
    pub(super) fn sizes(&mut self, uuid: u64, parent: u64, name: &str) {
        self.packet(None, |packet| {
            packet.message(60, |track| {
                track
                    .number(1, uuid)
                    .number(5, parent)
                    .text(2, name)
                    .message(8, |counter| {
                        counter.number(3, 3).number(4, 1024);
                    });
            });
        });
    }

    /// Describes a counter track of numbers.
    pub(super) fn numbers(&mut self, uuid: u64, parent: u64, name: &str) {
        self.packet(None, |packet| {
            packet.message(60, |track| {
                track
                    .number(1, uuid)
                    .number(5, parent)
                    .text(2, name)
                    .message(8, |counter| {
                        counter.number(4, 1);
                    });
            });
        });
    }

    /// Sets the value of a number track.
    pub(super) fn value(&mut self, track: u64, time: u64, value: f64) {
        self.packet(Some(time), |packet| {
            packet.message(11, |body| {
                body.number(9, COUNTER).number(11, track).fixed(44, value.to_bits());
            });
        });
    }

    /// Begins a slice.
    pub(super) fn begin(&mut self, track: u64, time: u64, event: &Event<'_>) {
        self.event(BEGIN, track, time, event);
    }

    /// Writes an event without a duration.
    pub(super) fn instant(&mut self, track: u64, time: u64, event: &Event<'_>) {
        self.event(INSTANT, track, time, event);
    }

    fn event(&mut self, kind: u64, track: u64, time: u64, event: &Event<'_>) {
        let mut new = Message::default();
        let category = self.intern(0, event.category, &mut new);
        let name = self.intern(1, event.name, &mut new);
        let keys = event.annotations.iter().enumerate();
        let names: Vec<Option<u64>> = keys
            .map(|(place, (key, _))| self.intern_key(place, key, &mut new))
            .collect();
        self.packet(Some(time), |packet| {
            packet.message(11, |body| {
                body.number(9, kind).number(11, track);
                match category {
                    Some(category) => body.number(3, category),
                    None => body.text(22, event.category),
                };
                match name {
                    Some(name) => body.number(10, name),
                    None => body.text(23, event.name),
                };
                if event.flow != 0 {
                    body.fixed(47, event.flow);
                }
                for (number, (key, value)) in names.iter().zip(event.annotations) {
                    body.message(4, |annotation| {
                        match number {
                            Some(number) => annotation.number(1, *number),
                            None => annotation.text(10, key),
                        };
                        match value {
                            Value::Number(number) => annotation.number(3, *number),
                            Value::Real(number) => annotation.fixed(5, number.to_bits()),
                            Value::Text(text) => annotation.text(6, text),
                        };
                    });
                }
            });
            if !new.as_bytes().is_empty() {
                packet.bytes(12, new.as_bytes());
            }
        });
    }

    /// Ends the innermost slice of a track.
    pub(super) fn end(&mut self, track: u64, time: u64) {
        self.packet(Some(time), |packet| {
            packet.message(11, |body| {
                body.number(9, END).number(11, track);
            });
        });
    }

    /// Sets the value of a counter track.
    pub(super) fn counter(&mut self, track: u64, time: u64, value: u64) {
        self.packet(Some(time), |packet| {
            packet.message(11, |body| {
                body.number(9, COUNTER).number(11, track).number(30, value);
            });
        });
    }
}
