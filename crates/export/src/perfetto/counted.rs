//! Counter tracks: counters of dispatches, and driver readings of the GPUs.

use super::super::sort::{Entry, Sorter};
use super::super::view::View;
use super::proto::Trace;
use super::{SORT_BUFFER_BYTES, uuid};
use serde::{Deserialize, Serialize};
use std::io;

/// A counter's new value.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Point {
    agent: usize,
    /// Index of the counter among the names.
    name: usize,
    at: u64,
    /// Order among points at one time.
    order: u64,
    value: f64,
}

impl Entry for Point {
    type Key = (usize, usize, u64, u64);

    fn key(&self) -> Self::Key {
        (self.agent, self.name, self.at, self.order)
    }
}

/// Writes a track per agent and counter: the value while the dispatch ran, else 0.
pub(super) fn values(view: &View<'_>, process: u64, trace: &mut Trace<'_>) -> io::Result<()> {
    if view.counted.is_empty() {
        return Ok(());
    }
    let names = view.counted.names();
    let mut points = Sorter::new(view.place, SORT_BUFFER_BYTES);
    for (number, row) in (0..).zip(view.counted.rows(&view.rows.dispatches)) {
        let row = row?;
        let d = &row.row.record;
        let agent = view.logical(view.node(Some(d.agent)));
        for (info, value) in view.counted.values(&row) {
            // The names are sorted.
            let Ok(name) = names.binary_search(&&*info.name) else {
                continue;
            };
            for (at, order, value) in [(d.span.begin, 2 * number, value), (d.span.end, 2 * number + 1, 0.0)] {
                points.put(Point {
                    agent,
                    name,
                    at,
                    order,
                    value,
                })?;
            }
        }
    }
    let mut track = None;
    for point in points.finish()?.iter() {
        let Point {
            agent, name, at, value, ..
        } = point?;
        let own = match track {
            Some((of, own)) if of == (agent, name) => own,
            _ => {
                let words = format!("{} PMC {}", view.track_label(agent), names.get(name).unwrap_or(&""));
                let own = uuid(view.process.pid, &words);
                trace.describe(|packets| packets.numbers(own, process, &words))?;
                track = Some(((agent, name), own));
                own
            }
        };
        trace.count(|packets| packets.value(own, at, value))?;
    }
    Ok(())
}

/// Writes a track per gauge of a GPU, per gauge of a process on it, and per device-wide counter.
pub(super) fn gauges(view: &View<'_>, process: u64, trace: &mut Trace<'_>) -> io::Result<()> {
    let mut own = 0;
    view.gauges.each(view, &mut |series, at, value| {
        if let Some(series) = series {
            own = uuid(view.process.pid, &series.track);
            trace.describe(|packets| packets.numbers(own, process, &series.track))?;
        }
        trace.count(|packets| packets.value(own, at, value))
    })
}
