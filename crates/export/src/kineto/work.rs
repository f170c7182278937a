//! Kernels and copies on the streams of their GPUs.

use super::event::{Events, Track};
use crate::records::Row;
use crate::view::View;
use roctop_model::subject::direction_number;
use roctop_ring::record::direction;
use roctop_trace::item::{AgentId, Copy, Dispatch, StreamId};
use std::collections::BTreeSet;
use std::io;

/// Number of a GPU; 0 for the host.
fn device(view: &View<'_>, agent: Option<AgentId>) -> u64 {
    view.type_index(view.node(agent)).0 as u64
}

/// Number of a stream, from 1: readers take 0 for the host.
fn stream(view: &View<'_>, stream: Option<StreamId>) -> u64 {
    u64::from(view.stream(stream)) + 1
}

/// Track of a dispatch.
pub(super) fn track_of_kernel(view: &View<'_>, dispatch: &Dispatch) -> Track {
    Track {
        pid: device(view, Some(dispatch.agent)),
        tid: stream(view, dispatch.stream),
    }
}

/// Track of a copy: the GPU that it goes to, else the one that it comes from.
pub(super) fn track_of_copy(view: &View<'_>, copy: &Copy) -> Track {
    let is_gpu = |agent: &AgentId| view.type_index(view.node(Some(*agent))).1;
    let agent = copy.destination.filter(is_gpu).or(copy.source.filter(is_gpu));
    Track {
        pid: device(view, agent),
        tid: stream(view, copy.stream),
    }
}

/// GPUs and their streams.
pub(super) fn streams(view: &View<'_>) -> io::Result<BTreeSet<(u64, u64)>> {
    let mut found = BTreeSet::new();
    let mut put = |track: Track| found.insert((track.pid, track.tid));
    for row in view.rows.dispatches.iter() {
        put(track_of_kernel(view, &row?.record));
    }
    for row in view.rows.copies.iter() {
        put(track_of_copy(view, &row?.record));
    }
    Ok(found)
}

pub(super) fn kernels(view: &View<'_>, events: &mut Events<'_>) -> io::Result<()> {
    for row in view.rows.dispatches.iter() {
        kernel(view, &row?, events)?;
    }
    Ok(())
}

fn kernel(view: &View<'_>, row: &Row<Dispatch>, events: &mut Events<'_>) -> io::Result<()> {
    let d = &row.record;
    let track = track_of_kernel(view, d);
    let mut event = events.complete("kernel", &view.kernel_name(row), track, d.span)?;
    event.external(row.range.id)?;
    event.number("device", track.pid)?;
    event.number("stream", track.tid)?;
    event.number("correlation", row.id)?;
    event.text("kind", "Dispatch Kernel")?;
    let blocks = |axis: usize| u64::from(d.grid[axis]).div_ceil(u64::from(d.workgroup[axis].max(1)));
    event.sizes("grid", [blocks(0), blocks(1), blocks(2)])?;
    event.sizes("block", d.workgroup.map(u64::from))?;
    event.number("hsa_queue", view.queue(d.queue).into())?;
    event.end()?;
    events.arrow('f', row.id, track, d.span.begin)
}

/// Words of a direction: both in short, source, destination.
const DIRECTIONS: [(&str, &str, &str); 5] = [
    ("<unknown>", "?", "?"),
    ("HtoH", "Host", "Host"),
    ("HtoD", "Host", "Device"),
    ("DtoH", "Device", "Host"),
    ("DtoD", "Device", "Device"),
];

pub(super) fn copies(view: &View<'_>, events: &mut Events<'_>) -> io::Result<()> {
    for row in view.rows.copies.iter() {
        copy(view, &row?, events)?;
    }
    Ok(())
}

fn copy(view: &View<'_>, row: &Row<Copy>, events: &mut Events<'_>) -> io::Result<()> {
    let c = &row.record;
    let track = track_of_copy(view, c);
    let (kind, from, to) = DIRECTIONS[direction_number(c.direction)];
    let (category, name, kind) = if c.direction == direction::FILL {
        ("gpu_memset", "Memset (Device)".to_owned(), "Device")
    } else {
        ("gpu_memcpy", format!("Memcpy {kind} ({from} -> {to})"), kind)
    };
    let mut event = events.complete(category, &name, track, c.span)?;
    event.external(row.range.id)?;
    event.number("device", track.pid)?;
    event.number("stream", track.tid)?;
    event.number("correlation", row.id)?;
    event.text("kind", kind)?;
    event.number("bytes", c.bytes)?;
    if c.span.duration() > 0 {
        event.real("memory bandwidth (GB/s)", c.bytes as f64 / c.span.duration() as f64)?;
    }
    event.end()?;
    events.arrow('f', row.id, track, c.span.begin)
}
