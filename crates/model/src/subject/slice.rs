//! Slices of lanes: each is the record that it was made of.

use super::{Context, Record, process};
use crate::collectives::CollectiveSlice;
use crate::query::{Counted, Field, Subject, Value};
use crate::snapshot::Snapshot;
use crate::table::Route;
use crate::{LaneKey, Slice};
use roctop_trace::item::{
    ApiCall, Copy, Dispatch, KernelId, Marker, OperationId, ProcessId, QueueId, StreamId, TextId, ThreadId,
};

/// A slice of a lane.
pub struct SliceSubject<'a> {
    /// What is known.
    pub snap: &'a Snapshot,
    /// Its lane.
    pub key: LaneKey,
    /// The slice.
    pub slice: &'a Slice,
}

impl SliceSubject<'_> {
    /// Passes on the record that the slice was made of; `None` if it was made of none.
    fn with_record<T>(&self, act: impl FnOnce(Record<'_>) -> T) -> Option<T> {
        let (snap, slice) = (self.snap, self.slice);
        let (process, span, site) = (ProcessId(slice.process), slice.span, slice.site);
        let thread = (slice.thread != u32::MAX).then_some(ThreadId(slice.thread));
        Some(match self.key {
            LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _) => {
                let shapes = &snap.values.shapes;
                let shape = shapes.get(slice.shape as usize).copied().unwrap_or_default();
                act(Record::Kernel(&Dispatch {
                    process,
                    kernel: KernelId(slice.what),
                    agent,
                    queue: QueueId(slice.queue),
                    stream: match self.key {
                        LaneKey::Stream(_, stream) => Some(stream),
                        _ => None,
                    },
                    thread,
                    span,
                    submit: slice.submit,
                    grid: shape.grid,
                    workgroup: shape.workgroup,
                    group_size: shape.group_size,
                    private_size: shape.private_size,
                    site,
                    ..Dispatch::default()
                }))
            }
            LaneKey::Copies(direction) => {
                let known = snap.values.copies.get(slice.what as usize);
                let route = known.map_or_else(
                    || Route {
                        direction,
                        ..Route::default()
                    },
                    |row| row.route,
                );
                act(Record::Copy(&Copy {
                    process,
                    source: route.source,
                    destination: route.destination,
                    stream: (slice.queue != u32::MAX).then_some(StreamId(slice.queue)),
                    thread,
                    span,
                    submit: slice.submit,
                    bytes: slice.value,
                    direction,
                    engine: route.engine,
                    site,
                    ..Copy::default()
                }))
            }
            LaneKey::Api(lane, _) => act(Record::Call(&ApiCall {
                process,
                thread: thread.unwrap_or(lane),
                operation: OperationId(slice.what),
                span,
                status: Some(slice.value as u32 as i32),
                site,
                ..ApiCall::default()
            })),
            LaneKey::Markers(lane, _) | LaneKey::Ranges(lane) => {
                let text = TextId(slice.what);
                let marker = Marker {
                    process,
                    thread: thread.unwrap_or(lane),
                    text,
                    span,
                    ..Marker::default()
                };
                act(Record::Marker(&marker, snap.names.text(text)))
            }
            LaneKey::Agent(_) | LaneKey::Collectives(_) => return None,
        })
    }
}

impl Subject for SliceSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let named = self.with_record(|record| record.any_name(&self.snap.names, test));
        named.unwrap_or_else(|| match self.key {
            LaneKey::Collectives(_) => test(CollectiveSlice::kind(self.slice.what).0.name()),
            _ => true,
        })
    }

    fn value(&self, field: Field) -> Value<'_> {
        let context = Context::of(self.snap);
        let known = self.with_record(|record| record.value(&context, field));
        known.unwrap_or_else(|| match field {
            Field::Dur => Value::whole(self.slice.span.duration()),
            _ => process(&self.snap.names, ProcessId(self.slice.process), field),
        })
    }

    fn counter(&self, name: &str) -> Counted {
        let context = Context::of(self.snap);
        let known = self.with_record(|record| record.counter(&context, name));
        known.unwrap_or(Counted::Never)
    }
}

/// Thread of a lane, if it has one.
pub const fn thread_of(key: LaneKey) -> Option<ThreadId> {
    match key {
        LaneKey::Api(thread, _) | LaneKey::Markers(thread, _) | LaneKey::Ranges(thread) => Some(thread),
        _ => None,
    }
}
