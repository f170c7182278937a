//! Slices and their tracks.

use super::SORT_BUFFER_BYTES;
use crate::collectives::PartRow;
use crate::options::Kind;
use crate::records::{Mark, Row};
use crate::sort::{Entry, Sorted, Sorter};
use crate::view::View;
use crate::workspace::Workspace;
use roctop_trace::item::{ApiCall, Copy, Dispatch, Span};
use roctop_trace::topology::Node;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::io;

/// A record with its category.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Slice {
    Hip(Row<ApiCall>),
    Hsa(Row<ApiCall>),
    /// With the index of its library.
    Library(usize, Row<ApiCall>),
    Marker(Row<Mark>),
    /// With the values of its counters, by index.
    Dispatch(Row<Dispatch>, Vec<(u32, f64)>),
    Copy(Row<Copy>),
    /// A part of a collective, and whether it is the wait for the last rank.
    Part(Box<PartRow>, bool),
}

impl Slice {
    pub(super) fn span(&self) -> Span {
        match self {
            Self::Hip(row) | Self::Hsa(row) | Self::Library(_, row) => row.record.span,
            Self::Marker(row) => row.record.marker.span,
            Self::Dispatch(row, _) => row.record.span,
            Self::Copy(row) => row.record.span,
            Self::Part(row, is_wait) => {
                let last = row.arrival.saturating_add(row.wait).min(row.end);
                let is_apart = row.last != 0;
                Span {
                    begin: if *is_wait || !is_apart { row.arrival } else { last },
                    end: if *is_wait { last } else { row.end },
                }
            }
        }
    }

    pub(super) const fn id(&self) -> u64 {
        match self {
            Self::Hip(row) | Self::Hsa(row) | Self::Library(_, row) => row.id,
            Self::Marker(row) => row.id,
            Self::Dispatch(row, _) => row.id,
            Self::Copy(row) => row.id,
            Self::Part(..) => 0,
        }
    }
}

/// A slice on its track.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Placed(pub(super) Track, pub(super) Slice);

impl Entry for Placed {
    type Key = (Track, u64, Reverse<u64>, u64);

    fn key(&self) -> Self::Key {
        let span = self.1.span();
        (self.0, span.begin, Reverse(span.end), self.1.id())
    }

    fn heap(&self) -> usize {
        match &self.1 {
            Slice::Dispatch(_, values) => values.capacity() * size_of::<(u32, f64)>(),
            Slice::Part(..) => size_of::<PartRow>(),
            _ => 0,
        }
    }
}

/// A range that may overlap others, sorted by begin.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Started(Row<Mark>);

impl Entry for Started {
    type Key = u64;

    fn key(&self) -> u64 {
        self.0.record.span.begin
    }
}

/// Track of a slice.
#[derive(Clone, std::marker::Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Track {
    Thread(u32),
    /// Start/stop ranges may overlap: each uses the first free track.
    Ranges(usize),
    Stream(u32),
    Queue(usize, u32),
    Copies(usize, u32),
    /// Collectives of a communicator, by its number and this process's rank in it.
    Communicator(u32, u32),
}

/// Slices, sorted by track and begin, and their tracks.
struct Placing<'a> {
    place: &'a Workspace,
    tracks: BTreeSet<Track>,
    slices: Sorter<Placed>,
}

impl Placing<'_> {
    fn put(&mut self, track: Track, slice: Slice) -> io::Result<()> {
        self.tracks.insert(track);
        self.slices.put(Placed(track, slice))
    }

    /// Places rows, each by itself, on all threads.
    fn all<T: Clone>(&mut self, rows: &Sorted<Row<T>>, placed: impl Fn(Row<T>) -> Placed + Sync) -> io::Result<()>
    where
        Row<T>: Entry,
    {
        let place = |rows: io::Result<Vec<Row<T>>>| {
            let placed: Vec<Placed> = rows?.into_iter().map(&placed).collect();
            let mut tracks: Vec<Track> = placed.iter().map(|placed| placed.0).collect();
            tracks.sort_unstable();
            tracks.dedup();
            io::Result::Ok((tracks, placed))
        };
        self.place.in_order(rows.chunks(), place, |(tracks, mut placed)| {
            self.tracks.extend(tracks);
            self.slices.append(placed.len(), move |all| all.append(&mut placed))
        })
    }
}

/// All tracks, and the slices sorted by track and begin.
pub(super) fn tracks(view: &View<'_>) -> io::Result<(BTreeSet<Track>, Sorted<Placed>)> {
    let mut placing = Placing {
        place: view.place,
        tracks: BTreeSet::new(),
        slices: Sorter::new(view.place, SORT_BUFFER_BYTES),
    };
    let thread = |thread| Track::Thread(view.tid(Some(thread)));
    let rows = &view.rows;
    placing.all(&rows.hip, |row| Placed(thread(row.record.thread), Slice::Hip(row)))?;
    placing.all(&rows.hsa, |row| Placed(thread(row.record.thread), Slice::Hsa(row)))?;
    for (at, calls) in rows.libraries.iter().enumerate() {
        let placed = |row: Row<ApiCall>| Placed(thread(row.record.thread), Slice::Library(at, row));
        placing.all(calls, placed)?;
    }
    let mut started = Sorter::new(view.place, SORT_BUFFER_BYTES);
    for row in rows.markers.iter() {
        let row = row?;
        if row.record.range_id == 0 {
            placing.put(thread(row.record.thread), Slice::Marker(row))?;
        } else {
            started.put(Started(row))?;
        }
    }
    let mut free: Vec<u64> = Vec::new();
    for row in started.finish()?.iter() {
        let row = row?.0;
        let span = row.record.span;
        let lane = free.iter().position(|end| *end <= span.begin).unwrap_or(free.len());
        free.resize(free.len().max(lane + 1), 0);
        free[lane] = span.end;
        placing.put(Track::Ranges(lane), Slice::Marker(row))?;
    }
    let by_stream = !view.choice.by_queue && view.run.streams.iter().any(|stream| stream.process == view.process.id);
    let dispatched = |row: Row<Dispatch>, values| {
        let d = &row.record;
        let track = if by_stream {
            Track::Stream(view.stream(d.stream))
        } else {
            Track::Queue(view.logical(view.node(Some(d.agent))), view.queue(d.queue))
        };
        Placed(track, Slice::Dispatch(row, values))
    };
    if view.counted.is_empty() && !view.choice.counters_only {
        placing.all(&rows.dispatches, |row| dispatched(row, Vec::new()))?;
    } else {
        let counted = view.counted.rows(&rows.dispatches);
        for row in counted.filter(|_| !view.choice.counters_only) {
            let (row, values) = row?.into_values();
            let Placed(track, slice) = dispatched(row, values);
            placing.put(track, slice)?;
        }
    }
    placing.all(&rows.copies, |row| {
        let c = &row.record;
        let track = if by_stream {
            Track::Stream(view.stream(c.stream))
        } else {
            Track::Copies(view.logical(view.node(c.destination)), view.tid(c.thread))
        };
        Placed(track, Slice::Copy(row))
    })?;
    let has_parts = view.choice.kinds.has(Kind::Rccl);
    for row in view.parts.iter().filter(|_| has_parts) {
        let row = Box::new(row?);
        let whole = Span {
            begin: row.call.min(row.arrival),
            end: row.end,
        };
        if !view.is_wanted(whole) {
            continue;
        }
        let track = Track::Communicator(row.communicator, row.rank);
        // Within the clocks' error nobody is known to have waited.
        if row.last != 0 && row.wait > 0 {
            placing.put(track, Slice::Part(row.clone(), true))?;
        }
        placing.put(track, Slice::Part(row, false))?;
    }
    Ok((placing.tracks, placing.slices.finish()?))
}

/// Numbers of the threads: the main thread has 0, the others count from 1 by thread id.
pub(super) fn threads(tracks: &BTreeSet<Track>, main: u32) -> HashMap<u32, usize> {
    let mut tids: Vec<u32> = tracks
        .iter()
        .filter_map(|track| match track {
            Track::Thread(tid) | Track::Copies(_, tid) if *tid != main => Some(*tid),
            _ => None,
        })
        .collect();
    tids.sort_unstable();
    tids.dedup();
    let others = tids.into_iter().zip(1..);
    others.chain([(main, 0)]).collect()
}

pub(super) fn name(view: &View<'_>, track: Track, threads: &HashMap<u32, usize>) -> String {
    let number = |tid: u32| threads.get(&tid).copied().unwrap_or(0);
    match track {
        Track::Thread(tid) => format!("THREAD {} ({tid})", number(tid)),
        Track::Ranges(lane) => format!("RANGES {}", lane + 1),
        Track::Communicator(number, rank) => format!("COMMUNICATOR {number} RANK {rank}"),
        Track::Stream(stream) => format!("STREAM [\" {stream} \"] "),
        Track::Queue(agent, queue) => format!("COMPUTE {} QUEUE [{queue}] GPU", view.track_label(agent)),
        Track::Copies(agent, tid) => {
            let kind = if view.nodes.get(agent).is_some_and(Node::is_gpu) {
                "GPU"
            } else {
                "CPU"
            };
            format!("COPY to AGENT [{agent}] THREAD [{}] ({kind})", number(tid))
        }
    }
}
