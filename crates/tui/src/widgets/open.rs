//! Work that is open: what has begun and has not ended.

use std::collections::HashMap;

use roctop_model::{LaneKey, Snapshot};
use roctop_trace::item::{Nanos, QueueId, StreamId};

/// Work of one lane that has not ended.
pub(crate) struct OpenWork {
    pub(crate) key: LaneKey,
    pub(crate) begin: Nanos,
    pub(crate) text: String,
    /// How much more of this lane is open, and younger.
    pub(crate) more: usize,
}

/// The oldest work of each lane that is open, or was when its process ended.
pub(crate) fn open_work(snap: &Snapshot) -> Vec<OpenWork> {
    let names = &snap.names;
    let places = snap.values.places.iter();
    let streams: HashMap<QueueId, StreamId> = places.filter_map(|place| Some((place.queue, place.stream?))).collect();
    let mut out: Vec<OpenWork> = Vec::new();
    let mut add =
        |key: LaneKey, begin: Nanos, text: &dyn Fn() -> String| match out.iter_mut().find(|open| open.key == key) {
            Some(open) if open.begin <= begin => open.more += 1,
            Some(open) => (open.begin, open.text, open.more) = (begin, text(), open.more + 1),
            None => out.push(OpenWork {
                key,
                begin,
                text: text(),
                more: 0,
            }),
        };
    for open in &snap.open {
        for call in &open.calls {
            let name = names.operation(call.operation);
            add(
                LaneKey::Api(call.thread, u8::from(call.parent != 0)),
                call.span.begin,
                &|| name.map_or_else(|| "?".into(), |name| name.operation.name.to_string()),
            );
        }
        for dispatch in &open.dispatches {
            // The stream is known once a dispatch of the same queue has ended.
            let key = match dispatch.stream.or_else(|| streams.get(&dispatch.queue).copied()) {
                Some(stream) => LaneKey::Stream(dispatch.agent, stream),
                None => LaneKey::Queue(dispatch.agent, dispatch.queue),
            };
            let name = names.kernel(dispatch.kernel);
            add(key, dispatch.submit, &|| {
                name.map_or_else(|| "?".into(), |name| name.short.to_string())
            });
        }
        for range in &open.ranges {
            let key = match range.range_id {
                0 => LaneKey::Markers(range.thread, range.level),
                _ => LaneKey::Ranges(range.thread),
            };
            add(key, range.span.begin, &|| names.text(range.text).into());
        }
    }
    // What ran before it in the same lane is not covered.
    for open in &mut out {
        open.begin = open.begin.max(snap.lane(open.key).map_or(0, |lane| lane.last));
    }
    out
}
