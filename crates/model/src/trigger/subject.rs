//! Records as filters see them.

use crate::Names;
use crate::query::{Field, Subject, Value};
use roctop_ring::record::{Domain, direction, engine};
use roctop_trace::item::{ApiCall, Copy, Dispatch, Marker, ProcessId, Span, ThreadId};

pub(super) struct DispatchSubject<'a>(pub(super) &'a Names, pub(super) &'a Dispatch);
pub(super) struct CallSubject<'a>(pub(super) &'a Names, pub(super) &'a ApiCall);
pub(super) struct CopySubject<'a>(pub(super) &'a Names, pub(super) &'a Copy);
pub(super) struct MarkerSubject<'a>(pub(super) &'a Names, pub(super) &'a Marker);

/// Fields of every record.
fn common(names: &Names, process: ProcessId, span: Span, thread: Option<ThreadId>, field: Field) -> Value<'_> {
    let thread = || names.thread(thread?);
    match field {
        Field::Dur => Value::whole(span.duration()),
        Field::Pid => Value::maybe(names.process(process).map(|process| process.pid.into())),
        Field::Rank => Value::maybe(names.process(process).and_then(|process| process.rank).map(u64::from)),
        Field::Tid => Value::maybe(thread().map(|thread| thread.tid.into())),
        Field::Thread => thread().map_or(Value::None, |thread| Value::Text(&thread.name)),
        _ => Value::None,
    }
}

impl Subject for DispatchSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let known = self.0.kernel(self.1.kernel);
        known.is_some_and(|known| test(&known.kernel.name) || test(&known.kernel.mangled))
    }

    fn value(&self, field: Field) -> Value<'_> {
        let (names, d) = (self.0, self.1);
        let items = |sizes: [u32; 3]| sizes.iter().map(|size| u64::from(*size)).product();
        let kernel = || names.kernel(d.kernel).map(|known| &known.kernel);
        match field {
            Field::Mangled => kernel().map_or(Value::None, |kernel| Value::Text(&kernel.mangled)),
            Field::Dev => Value::maybe(names.agent(d.agent).map(|agent| agent.number.into())),
            Field::Stream => Value::maybe(
                d.stream
                    .and_then(|id| names.stream(id))
                    .map(|stream| stream.number.into()),
            ),
            Field::Queue => Value::maybe(names.queue(d.queue).map(|queue| queue.number.into())),
            Field::Lds => Value::whole(d.group_size.into()),
            Field::Scratch => Value::whole(d.private_size.into()),
            Field::Vgpr => Value::maybe(kernel().and_then(|kernel| kernel.registers).map(|all| all.vgpr.into())),
            Field::Sgpr => Value::maybe(kernel().and_then(|kernel| kernel.registers).map(|all| all.sgpr.into())),
            Field::Grid => Value::whole(items(d.grid)),
            Field::Wg => Value::whole(items(d.workgroup.map(u32::from))),
            Field::Qdly => Value::maybe((d.submit != 0).then(|| d.span.begin.saturating_sub(d.submit))),
            _ => common(names, d.process, d.span, d.thread, field),
        }
    }
}

impl Subject for CallSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let known = self.0.operation(self.1.operation);
        known.is_some_and(|known| test(&known.operation.name))
    }

    fn value(&self, field: Field) -> Value<'_> {
        let (names, call) = (self.0, self.1);
        match field {
            Field::Domain => {
                let known = names.operation(call.operation);
                let name = known.and_then(|known| Domain(known.operation.domain).name());
                name.map_or(Value::None, Value::Text)
            }
            Field::Err => Value::whole(call.status.is_some_and(|status| status != 0).into()),
            _ => common(names, call.process, call.span, Some(call.thread), field),
        }
    }
}

impl Subject for CopySubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(direction::name(self.1.direction))
    }

    fn value(&self, field: Field) -> Value<'_> {
        let (names, c) = (self.0, self.1);
        match field {
            Field::Dir => Value::Text(direction::name(c.direction)),
            Field::Engine => engine::name(c.engine).map_or(Value::None, Value::Text),
            Field::Bytes => Value::whole(c.bytes),
            Field::Bw if c.span.duration() > 0 => Value::Number(c.bytes as f64 * 1e9 / c.span.duration() as f64),
            Field::Stream => Value::maybe(
                c.stream
                    .and_then(|id| names.stream(id))
                    .map(|stream| stream.number.into()),
            ),
            Field::Qdly => Value::maybe((c.submit != 0).then(|| c.span.begin.saturating_sub(c.submit))),
            _ => common(names, c.process, c.span, c.thread, field),
        }
    }
}

impl Subject for MarkerSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(self.0.text(self.1.text))
    }

    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Domain => Value::Text("marker"),
            _ => common(self.0, self.1.process, self.1.span, Some(self.1.thread), field),
        }
    }
}
