//! Counter tracks of bytes from the records: copied, allocated, scratch memory.

use super::proto::Trace;
use super::{SORT_BUFFER_BYTES, uuid};
use crate::operation::is_free;
use crate::sort::{Entry, Sorted, Sorter};
use crate::view::View;
use roctop_ring::record::scratch;
use roctop_trace::item::AgentId;
use roctop_trace::topology::Node;
use serde::{Deserialize, Serialize};
use std::io;

/// Quantity of a counter.
#[derive(Clone, std::marker::Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Quantity {
    Copies,
    Allocations,
    Scratch,
}

impl Quantity {
    fn name(self, view: &View<'_>, agent: usize) -> String {
        let is_gpu = view.nodes.get(agent).is_some_and(Node::is_gpu);
        let kind = if is_gpu { "GPU" } else { "CPU" };
        let label = view.track_label(agent);
        match self {
            Self::Copies => format!("COPY BYTES to {label} ({kind})"),
            Self::Allocations => format!("ALLOCATE BYTES on {label} ({kind})"),
            Self::Scratch => format!("SCRATCH MEMORY on {label} ({kind})"),
        }
    }
}

/// A change of the bytes on an agent; for scratch memory, the new number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Change {
    of: Quantity,
    agent: usize,
    time: u64,
    bytes: i64,
}

impl Entry for Change {
    type Key = (Quantity, usize, u64, i64);

    fn key(&self) -> Self::Key {
        (self.of, self.agent, self.time, self.bytes)
    }
}

/// The changes of a process, sorted by counter and time.
pub(super) fn changes(view: &View<'_>) -> io::Result<Sorted<Change>> {
    let mut changes = Sorter::new(view.place, SORT_BUFFER_BYTES);
    let mut put = |of: Quantity, agent: Option<AgentId>, time: u64, bytes: i64| {
        let agent = view.logical(view.node(agent));
        changes.put(Change { of, agent, time, bytes })
    };
    for row in view.rows.copies.iter() {
        let copy = row?.record;
        let (span, bytes) = (copy.span, copy.bytes as i64);
        put(Quantity::Copies, copy.destination, span.begin, bytes)?;
        put(Quantity::Copies, copy.destination, span.end, bytes.saturating_neg())?;
    }
    for row in view.rows.allocations.iter() {
        let a = row?.record;
        let bytes = a.bytes as i64;
        let change = if is_free(a.operation) {
            bytes.saturating_neg()
        } else {
            bytes
        };
        put(Quantity::Allocations, a.agent, a.span.end, change)?;
    }
    for row in view.rows.scratches.iter() {
        let s = row?.record;
        // A record of a free has no size.
        match s.operation {
            scratch::ALLOC => put(Quantity::Scratch, s.agent, s.span.end, s.bytes as i64)?,
            scratch::FREE => put(Quantity::Scratch, s.agent, s.span.end, 0)?,
            _ => {}
        }
    }
    changes.finish()
}

/// Writes bytes in flight to each agent, bytes allocated on each, and scratch memory on each, in KiB.
pub(super) fn write(view: &View<'_>, process: u64, changes: &Sorted<Change>, trace: &mut Trace<'_>) -> io::Result<()> {
    let mut changes = changes.iter().peekable();
    let mut track = None;
    let mut bytes = 0i64;
    while let Some(change) = changes.next() {
        let change = change?;
        let own = match track {
            Some((of, agent, own)) if (of, agent) == (change.of, change.agent) => own,
            _ => {
                let name = change.of.name(view, change.agent);
                let own = uuid(view.process.pid, &name);
                trace.describe(|packets| packets.sizes(own, process, &name))?;
                track = Some((change.of, change.agent, own));
                bytes = 0;
                own
            }
        };
        bytes = if change.of == Quantity::Scratch {
            change.bytes
        } else {
            bytes.saturating_add(change.bytes)
        };
        // Quantity several changes at one time the last counts.
        let next = changes.peek().and_then(|next| next.as_ref().ok());
        if next.is_none_or(|next| (next.of, next.agent, next.time) != (change.of, change.agent, change.time)) {
            trace.count(|packets| packets.counter(own, change.time, bytes.max(0) as u64 / 1024))?;
        }
    }
    Ok(())
}
