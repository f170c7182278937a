//! Tracks of numbers: counters of dispatches, and what the driver told of the GPUs.

use super::super::counters::Counted;
use super::super::gauges as told;
use super::super::view::View;
use super::proto::Trace;
use super::uuid;
use std::collections::BTreeMap;
use std::io;

/// A track for each agent and counter: the value while the dispatch ran, 0 in between.
pub(super) fn values(view: &View<'_>, process: u64, trace: &mut Trace<'_>) -> io::Result<()> {
    let counted = Counted::of(view);
    let mut tracks: BTreeMap<(usize, &str), Vec<(u64, f64)>> = BTreeMap::new();
    for row in view.rows.dispatches.iter() {
        let row = row?;
        let d = &row.record;
        let agent = view.logical(view.node(Some(d.agent)));
        for (info, value) in counted.of_dispatch(d.dispatch_id) {
            let points = tracks.entry((agent, &info.name)).or_default();
            points.extend([(d.span.begin, *value), (d.span.end, 0.0)]);
        }
    }
    for ((agent, counter), mut points) in tracks {
        let name = format!("{} PMC {counter}", view.track_label(agent));
        let track = uuid(view.process.pid, &name);
        trace.numbers(track, process, &name)?;
        points.sort_by_key(|point| point.0);
        for (at, value) in points {
            trace.value(track, at, value)?;
        }
    }
    Ok(())
}

/// A track for each GPU and gauge, for each gauge of a process on it, and for each counter of a whole GPU.
pub(super) fn gauges(view: &View<'_>, process: u64, trace: &mut Trace<'_>) -> io::Result<()> {
    for ((node, pid, metric), points) in told::series(view) {
        let name = told::track_name(view, node, pid, metric);
        let track = uuid(view.process.pid, &name);
        trace.numbers(track, process, &name)?;
        for (at, value) in points {
            trace.value(track, at, value)?;
        }
    }
    for (info, points) in told::counted(view) {
        let name = told::counter_track(view, info);
        let track = uuid(view.process.pid, &name);
        trace.numbers(track, process, &name)?;
        for (at, rate) in points {
            trace.value(track, at, rate)?;
        }
    }
    Ok(())
}
