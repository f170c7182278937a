//! Reads stack files while call paths are found and named: to parse a large file takes seconds, and a stack file holds less
//! than a second of new sites.

use super::{Found, StackFiles};
use crate::ask::server::Asked;
use crate::item::ProcessId;
use crate::session::StackFile;
use roctop_ring::sites::{Counter, Entry, Reader};
use roctop_trace::site::MissingSites;
use std::mem::take;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// Between two readings of the stack files, while there are new sites.
const BUSY_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum bytes that wait to be unwound. Later ones stay in their stack file, and may be overwritten there.
const MAX_WAITING: usize = 64 << 20;

/// What was read.
pub(super) enum Message {
    /// Somebody asked a question: names are wanted.
    Asked,
    /// A process has a stack file. Number, process, process id.
    New(u32, ProcessId, u32),
    /// An entry of the file with this number.
    Entry(u32, Entry),
    /// What is missing in it.
    Missing(u32, MissingSites),
    /// Its process has ended, and all was read.
    Over(u32),
}

struct Source {
    number: u32,
    process: ProcessId,
    reader: Reader,
    missing: MissingSites,
    /// Rounds since its end was noticed.
    rounds_ended: u32,
}

/// The stack files of a session.
#[derive(Default)]
pub(super) struct Reading {
    sources: Vec<Source>,
    count: u32,
}

impl Reading {
    pub(super) fn add(&mut self, file: StackFile, send: &mut dyn FnMut(Message) -> bool) {
        self.count += 1;
        send(Message::New(self.count, file.process, file.pid));
        self.sources.push(Source {
            number: self.count,
            process: file.process,
            reader: file.reader,
            missing: MissingSites::default(),
            rounds_ended: 0,
        });
    }

    /// Reads what is new, until `send` returns false. `alive` are the processes that have not ended, ascending. True if
    /// something was new.
    pub(super) fn read(&mut self, alive: &[ProcessId], send: &mut dyn FnMut(Message) -> bool) -> bool {
        let mut is_new = false;
        for source in &mut self.sources {
            let is_over = alive.binary_search(&source.process).is_err();
            if is_over {
                source.reader.give_up_unfinished();
            }
            let mut has_room = true;
            while has_room && let Some(entry) = source.reader.next() {
                is_new = true;
                has_room = send(Message::Entry(source.number, entry));
            }
            source.rounds_ended += u32::from(is_over && has_room);
            let missing = missing(&source.reader);
            if missing != source.missing {
                source.missing = missing;
                send(Message::Missing(source.number, missing));
            }
            // One more round than needed, because the last entry may be written while the end is noticed.
            if source.rounds_ended >= 2 {
                send(Message::Over(source.number));
            }
        }
        self.sources.retain(|source| source.rounds_ended < 2);
        is_new
    }
}

fn missing(reader: &Reader) -> MissingSites {
    let counters = reader.counters();
    MissingSites {
        unreadable: counters.get(Counter::Unreadable),
        no_room: counters.get(Counter::NoRoom),
        no_number: counters.get(Counter::TableFull),
        reentrant: counters.get(Counter::Reentrant),
        overwritten: reader.lost().entries,
    }
}

/// Bytes that an entry takes in memory, about.
pub(super) const fn size(entry: &Entry) -> usize {
    match entry {
        Entry::Mapping(_) => 256,
        Entry::Stack(stack) => stack.bytes.len() + 128,
        Entry::Code(code) => code.lines.len() + code.file.bytes.len() + code.name.bytes.len() + 128,
        Entry::Python(python) => 24 * python.frames.len() + 128,
    }
}

/// Reads at each drain of the rings until the sender of `drains` is dropped, and then what is left. `waiting` are the bytes that were sent; who
/// receives subtracts what was unwound. The first question is passed on.
pub(super) fn run(
    files: &StackFiles,
    drains: &Receiver<()>,
    mut asked: Option<Asked>,
    sending: &Sender<Message>,
    waiting: &AtomicUsize,
) {
    let mut reading = Reading::default();
    let mut is_new = false;
    loop {
        let is_last = if is_new {
            drains.recv_timeout(BUSY_INTERVAL) == Err(RecvTimeoutError::Disconnected)
        } else {
            drains.recv().is_err()
        };
        let Found { files: new, alive } = {
            let mut found = files.lock().unwrap_or_else(PoisonError::into_inner);
            Found {
                files: take(&mut found.files),
                alive: if is_last { Vec::new() } else { found.alive.clone() },
            }
        };
        let mut send = |message| {
            let bytes = if let Message::Entry(_, entry) = &message {
                size(entry)
            } else {
                0
            };
            let before = waiting.fetch_add(bytes, Ordering::Relaxed);
            // At the end all is read: nothing is overwritten any more, and no stack file has more than this.
            sending.send(message).is_ok() && (is_last || before + bytes < MAX_WAITING)
        };
        if asked.take_if(|asked| asked.load(Ordering::Relaxed)).is_some() {
            send(Message::Asked);
        }
        for file in new {
            reading.add(file, &mut send);
        }
        is_new = reading.read(&alive, &mut send);
        if is_last {
            return;
        }
    }
}
