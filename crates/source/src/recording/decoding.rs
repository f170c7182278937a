//! Decodes recordings. Threads that read blocks decode their calls and dispatches with forks of a decoder; the decoder
//! itself takes all blocks in their order, and decodes those in which something is new.

use super::block::{Head, Kind};
use super::file::Content;
use super::merged::{Merged, damage};
use super::payload;
use super::reader::{Replay, as_it_is};
use crate::error::Result;
use roctop_ring::reader::Thread;
use roctop_ring::record::Slot;
use roctop_trace::decode::{Decoded, Decoder, Output, Plain};
use roctop_trace::item::{Item, ProcessId, Span};
use roctop_trace::raw::{Raw, RawSink};
use std::cell::Cell;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Items after which output is passed on.
const MAX_PENDING: usize = 1 << 12;
/// Bytes of the recording after which progress is passed on.
const BATCH_BYTES: u64 = 1 << 20;
/// Maximum number of outputs between two threads.
const MAX_AHEAD: usize = 8;
/// Maximum number of blocks that the decoder itself decodes before it is forked again.
const MAX_PATIENCE: u32 = 64;

/// Takes output, and the bytes of the recording that were read since the output before.
type Emit<'a> = dyn FnMut(&mut Output, u64) + 'a;

impl Merged<'_> {
    /// Decodes everything that belongs to `span`, with its calls and ranges, and passes each batch of items to `take`.
    pub fn items(
        &self,
        span: Option<Span>,
        read: &mut dyn FnMut(u64),
        take: &mut dyn FnMut(Vec<Item>),
    ) -> Result<Replay> {
        let all = &mut |output: &mut Output| take(std::mem::take(&mut output.items));
        Ok(self.decode(Decoder::default(), span, read, all)?.0)
    }

    /// Decodes everything that belongs to `span`, with its calls and ranges, by a decoder that others may fork meanwhile, each batch to `take`.
    pub fn feed(
        &self,
        decoder: &Mutex<Decoder>,
        span: Option<Span>,
        read: &mut dyn FnMut(u64),
        take: &mut dyn FnMut(&Decoded<'_>),
    ) -> Result<Replay> {
        let dated = self.dated(Decoder::by_kind(), span)?;
        *lock(decoder) = dated;
        self.decode_all(decoder, span, read, &mut |output| take(&output.decoded()))
    }

    /// Decodes everything that belongs to `span`, with its calls and ranges; calls and dispatches are apart from the other items. `take` may keep the
    /// output. Returns the decoder too, which knows all that is named.
    pub fn by_kind(
        &self,
        span: Option<Span>,
        read: &mut dyn FnMut(u64),
        take: &mut dyn FnMut(&mut Output),
    ) -> Result<(Replay, Decoder)> {
        self.decode(Decoder::by_kind(), span, read, take)
    }

    /// As [`Merged::by_kind`], with an id for every text of a marker or of arguments, without a limit.
    pub fn by_kind_with_unlimited_texts(
        &self,
        span: Option<Span>,
        read: &mut dyn FnMut(u64),
        take: &mut dyn FnMut(&mut Output),
    ) -> Result<Replay> {
        Ok(self
            .decode(Decoder::by_kind().with_unlimited_texts(), span, read, take)?
            .0)
    }

    fn decode(
        &self,
        decoder: Decoder,
        span: Option<Span>,
        read: &mut dyn FnMut(u64),
        take: &mut dyn FnMut(&mut Output),
    ) -> Result<(Replay, Decoder)> {
        let decoder = Mutex::new(self.dated(decoder, span)?);
        let replay = self.decode_all(&decoder, span, read, take)?;
        Ok((replay, decoder.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    fn decode_all(
        &self,
        decoder: &Mutex<Decoder>,
        span: Option<Span>,
        read: &mut dyn FnMut(u64),
        take: &mut dyn FnMut(&mut Output),
    ) -> Result<Replay> {
        let replay = if self.threads() > 1 {
            self.decode_ahead(decoder, span, read, take)?
        } else {
            self.decode_in_order(decoder, span, None, &mut |output, bytes| {
                read(bytes);
                take(output);
            })?
        };
        let items = damage(&replay);
        if !items.is_empty() {
            take(&mut Output {
                items,
                ..Output::default()
            });
        }
        Ok(replay)
    }

    /// Reads and decodes on other threads, ahead of the caller, who takes the output.
    fn decode_ahead(
        &self,
        decoder: &Mutex<Decoder>,
        span: Option<Span>,
        read: &mut dyn FnMut(u64),
        take: &mut dyn FnMut(&mut Output),
    ) -> Result<Replay> {
        let (decoded, outputs) = sync_channel::<(Output, u64)>(MAX_AHEAD);
        let (empty, spares) = channel::<Output>();
        // Among names that come between the records, or in order of appearance among all items, no block can be decoded on
        // its own.
        let is_apart = self.has_facts_apart() && lock(decoder).is_by_kind();
        let forks = is_apart.then(Forks::default);
        thread::scope(|scope| {
            let decoding = scope.spawn(move || {
                self.decode_in_order(decoder, span, forks.as_ref(), &mut |output, bytes| {
                    let next = spares.try_recv().unwrap_or_default();
                    // The caller is gone only if it panicked.
                    let _ = decoded.send((std::mem::replace(output, next), bytes));
                })
            });
            for (mut output, bytes) in outputs {
                read(bytes);
                take(&mut output);
                let _ = empty.send(output);
            }
            decoding
                .join()
                .unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
        })
    }

    fn decode_in_order(
        &self,
        decoder: &Mutex<Decoder>,
        span: Option<Span>,
        forks: Option<&Forks>,
        emit: &mut Emit<'_>,
    ) -> Result<Replay> {
        let bytes = Cell::new(0);
        let mut order = InOrder {
            decoder,
            forks,
            output: Output::default(),
            emit,
            bytes: &bytes,
            missed: 0,
            patience: 1,
            known: 0,
        };
        let prepare = |first: u32, head: Head, payload: Vec<u8>| {
            let plain = forks
                .filter(|_| head.kind == Kind::RECORDS)
                .and_then(|forks| forks.decode(first, head, &payload));
            plain.map_or_else(|| as_it_is(head, payload), Content::Plain)
        };
        let replay = self.deliver_prepared(span, &mut |done| bytes.set(bytes.get() + done), &prepare, &mut order)?;
        order.pass_on();
        Ok(replay)
    }
}

fn lock(decoder: &Mutex<Decoder>) -> MutexGuard<'_, Decoder> {
    decoder.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes blocks in their order.
struct InOrder<'a> {
    decoder: &'a Mutex<Decoder>,
    forks: Option<&'a Forks>,
    output: Output,
    emit: &'a mut Emit<'a>,
    /// Bytes of the recording that were read since the last output.
    bytes: &'a Cell<u64>,
    /// Blocks that no fork could decode, since the last look whether a newer fork would.
    missed: u32,
    /// Number of them until the next look.
    patience: u32,
    /// What the forks know.
    known: u64,
}

impl InOrder<'_> {
    fn pass_on(&mut self) {
        lock(self.decoder).move_output(&mut self.output);
        (self.emit)(&mut self.output, self.bytes.take());
    }

    fn pass_on_all(&mut self) {
        if lock(self.decoder).pending() > 0 {
            self.pass_on();
        }
    }

    fn pass_on_if_full(&mut self) {
        if self.bytes.get() >= BATCH_BYTES || lock(self.decoder).pending() >= MAX_PENDING {
            self.pass_on();
        }
    }

    fn miss(&mut self) {
        self.missed += 1;
        let Some(forks) = self.forks.filter(|_| self.missed >= self.patience) else {
            return;
        };
        self.missed = 0;
        let decoder = lock(self.decoder);
        let known = decoder.known();
        if known != self.known {
            forks.renew(&decoder);
            self.known = known;
            self.patience = (2 * self.patience).min(MAX_PATIENCE);
        }
    }
}

impl RawSink for InOrder<'_> {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        lock(self.decoder).take(process, raw);
        self.pass_on_if_full();
    }

    /// The output is cut as by `plain`, so that its order does not depend on which blocks a fork has decoded.
    fn records(&mut self, process: ProcessId, thread: Thread, slots: &[Slot]) {
        self.pass_on_all();
        lock(self.decoder).records(process, thread, slots);
        self.miss();
        self.pass_on_all();
    }

    fn plain(&mut self, process: ProcessId, thread: Thread, mut plain: Plain) {
        self.pass_on_all();
        let mut decoder = lock(self.decoder);
        decoder.take_plain(process, thread, &plain);
        decoder.move_output(&mut self.output);
        drop(decoder);
        self.output.items.append(&mut plain.events);
        self.output.calls = plain.calls;
        self.output.dispatches = plain.dispatches;
        (self.emit)(&mut self.output, self.bytes.take());
    }
}

/// Forks of the decoder for the threads that read.
#[derive(Default)]
struct Forks(Mutex<State>);

#[derive(Default)]
struct State {
    /// The newest fork, which threads fork in turn.
    newest: Option<Arc<Decoder>>,
    /// Forks of it that no thread uses now.
    idle: Vec<Decoder>,
    version: u32,
}

impl Forks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renew(&self, decoder: &Decoder) {
        let newest = Arc::new(decoder.fork_plain());
        let mut state = self.state();
        state.newest = Some(newest);
        state.idle.clear();
        state.version += 1;
    }

    /// Decodes a block of records of a recording whose processes count from `first`; `None` if the decoder has to.
    fn decode(&self, first: u32, head: Head, payload: &[u8]) -> Option<Plain> {
        let (version, idle, newest) = {
            let mut state = self.state();
            (state.version, state.idle.pop(), state.newest.clone()?)
        };
        let mut fork = idle.unwrap_or_else(|| newest.fork_plain());
        let (process, thread) = payload::owner(head);
        let words = payload::words(payload);
        let process = ProcessId(process.0.saturating_add(first));
        let plain = fork.plain(process, thread, payload::slots(&words));
        if !fork.is_spoilt() {
            let mut state = self.state();
            if state.version == version {
                state.idle.push(fork);
            }
        }
        plain
    }
}
