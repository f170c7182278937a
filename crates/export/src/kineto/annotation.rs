//! Ranges on the GPU: from the first to the last work that was launched directly inside a push/pop range, by stream.

use super::event::{Events, Track};
use super::work::{track_of_copy, track_of_kernel};
use crate::range_stacks::{Enclosing, StackId};
use crate::sort::{Entry, Sorted, Sorter};
use crate::view::View;
use roctop_trace::item::Span;
use serde::{Deserialize, Serialize};
use std::io;

/// Memory for annotated work while it is sorted, bytes.
const SORT_BUFFER_BYTES: usize = 32 << 20;

/// Work inside a range.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Annotated {
    device: u64,
    stream: u64,
    range: u64,
    stack: StackId,
    begin: u64,
    end: u64,
}

impl Annotated {
    const fn new(track: Track, range: Enclosing, span: Span) -> Self {
        Self {
            device: track.pid,
            stream: track.tid,
            range: range.id,
            stack: range.stack,
            begin: span.begin,
            end: span.end,
        }
    }

    fn is_of(&self, other: &Self) -> bool {
        (self.device, self.stream, self.range) == (other.device, other.stream, other.range)
    }
}

impl Entry for Annotated {
    type Key = (u64, u64, u64, u64);

    fn key(&self) -> Self::Key {
        (self.device, self.stream, self.range, self.begin)
    }
}

/// Writes the ranges of each stream.
pub(super) fn write(view: &View<'_>, events: &mut Events<'_>) -> io::Result<()> {
    let mut open: Option<Annotated> = None;
    for work in annotated(view)?.iter() {
        let work = work?;
        match &mut open {
            Some(range) if range.is_of(&work) => range.end = range.end.max(work.end),
            _ => {
                if let Some(range) = open.replace(work) {
                    emit(view, &range, events)?;
                }
            }
        }
    }
    open.map_or(Ok(()), |range| emit(view, &range, events))
}

fn annotated(view: &View<'_>) -> io::Result<Sorted<Annotated>> {
    let mut work = Sorter::new(view.place, SORT_BUFFER_BYTES);
    for row in view.rows.dispatches.iter() {
        let row = row?;
        if row.range.id != 0 {
            let track = track_of_kernel(view, &row.record);
            work.put(Annotated::new(track, row.range, row.record.span))?;
        }
    }
    for row in view.rows.copies.iter() {
        let row = row?;
        if row.range.id != 0 {
            let track = track_of_copy(view, &row.record);
            work.put(Annotated::new(track, row.range, row.record.span))?;
        }
    }
    work.finish()
}

/// Writes a range. As Kineto does, it begins 1 ns earlier than its work and ends 1 ns later, so that it encloses it.
fn emit(view: &View<'_>, range: &Annotated, events: &mut Events<'_>) -> io::Result<()> {
    let track = Track {
        pid: range.device,
        tid: range.stream,
    };
    let span = Span {
        begin: range.begin.saturating_sub(1),
        end: range.end.saturating_add(1),
    };
    let name = view
        .rows
        .stacks
        .texts(range.stack, view.texts)
        .next()
        .unwrap_or_default();
    let mut event = events.complete("gpu_user_annotation", &name, track, span)?;
    event.external(range.range)?;
    event.end()
}
