//! Filter fields of records.

use super::records::{Mark, Row};
use super::scope::Scope;
use roctop_model::query::{Field, Subject, Value};
use roctop_ring::record::{Domain, direction, engine, memory, scratch};
use roctop_trace::item::{Allocation, ApiCall, Copy, Dispatch, ProcessId, Scratch, Span, ThreadId};
use roctop_trace::site::SiteNumber;

/// A call.
pub(super) struct CallSubject<'a>(pub(super) &'a Scope<'a>, pub(super) &'a Row<ApiCall>);
/// A mark or range.
pub(super) struct MarkerSubject<'a>(pub(super) &'a Scope<'a>, pub(super) &'a Row<Mark>);
/// A dispatch.
pub(super) struct DispatchSubject<'a>(pub(super) &'a Scope<'a>, pub(super) &'a Row<Dispatch>);
/// A copy.
pub(super) struct CopySubject<'a>(pub(super) &'a Scope<'a>, pub(super) &'a Row<Copy>);

/// An allocation or free, with the site of its call.
pub(super) struct AllocationSubject<'a>(
    pub(super) &'a Scope<'a>,
    pub(super) &'a Row<Allocation>,
    pub(super) SiteNumber,
);
/// Scratch memory of a queue, with the site of the call for which it is.
pub(super) struct ScratchSubject<'a>(
    pub(super) &'a Scope<'a>,
    pub(super) &'a Row<Scratch>,
    pub(super) SiteNumber,
);

/// Fields of every record.
fn common<'a>(scope: &Scope<'a>, span: Span, thread: Option<ThreadId>, field: Field) -> Value<'a> {
    match field {
        Field::Dur | Field::Total | Field::Avg | Field::Min | Field::Max => Value::whole(span.duration()),
        Field::Calls => Value::whole(1),
        Field::Pid => Value::whole(scope.process.pid.into()),
        Field::Rank => Value::maybe(scope.process.rank.map(u64::from)),
        Field::Tid => Value::maybe(thread.map(|_| scope.tid(thread).into())),
        Field::Thread => thread
            .and_then(|id| scope.run.threads.get(id.0 as usize))
            .map_or(Value::None, |thread| Value::Text(&thread.name)),
        _ => Value::None,
    }
}

/// Functions or files on the way to a call.
fn on_the_way<'a>(scope: &Scope<'a>, process: ProcessId, number: SiteNumber, field: Field) -> Value<'a> {
    let sites = &scope.run.sites;
    match (sites.path_of(process, number), field) {
        (Some(path), Field::Site) => Value::Text(sites.functions_text(path)),
        (Some(path), Field::File) => Value::Text(sites.files_text(path)),
        _ => Value::None,
    }
}

impl Subject for CallSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(self.0.function(&self.1.record))
    }

    fn value(&self, field: Field) -> Value<'_> {
        let call = &self.1.record;
        match field {
            Field::Domain => {
                let known = self.0.run.operations.get(call.operation.0 as usize);
                let name = known.and_then(|operation| Domain(operation.domain).name());
                name.map_or(Value::None, Value::Text)
            }
            Field::Err => Value::whole(call.status.is_some_and(|status| status != 0).into()),
            Field::Site | Field::File => on_the_way(self.0, call.process, call.site, field),
            _ => common(self.0, call.span, Some(call.thread), field),
        }
    }
}

impl Subject for MarkerSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(&self.0.message(&self.1.record))
    }

    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Domain => Value::Text("marker"),
            _ => common(self.0, self.1.record.span, Some(self.1.record.thread), field),
        }
    }
}

impl Subject for DispatchSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let kernel = self.0.run.kernels.get(self.1.record.kernel.0 as usize);
        let called = self.0.called(self.1.record.kernel);
        kernel.is_some_and(|kernel| test(&kernel.name) || test(&kernel.mangled)) || called.is_some_and(test)
    }

    fn value(&self, field: Field) -> Value<'_> {
        let (scope, d) = (self.0, &self.1.record);
        let kernel = scope.run.kernels.get(d.kernel.0 as usize);
        let registers = kernel.and_then(|kernel| kernel.registers);
        let items = |sizes: [u32; 3]| sizes.iter().map(|size| u64::from(*size)).product();
        match field {
            Field::Mangled => kernel.map_or(Value::None, |kernel| Value::Text(&kernel.mangled)),
            Field::Dev => Value::whole(scope.type_index(scope.node(Some(d.agent))).0 as u64),
            Field::Stream => Value::maybe(d.stream.map(|_| scope.stream(d.stream).into())),
            Field::Queue => Value::whole(scope.queue(d.queue).into()),
            Field::Lds => Value::whole(d.group_size.into()),
            Field::Scratch => Value::whole(d.private_size.into()),
            Field::Vgpr => Value::maybe(registers.map(|registers| registers.vgpr.into())),
            Field::Sgpr => Value::maybe(registers.map(|registers| registers.sgpr.into())),
            Field::Grid => Value::whole(items(d.grid)),
            Field::Wg => Value::whole(items(d.workgroup.map(u32::from))),
            Field::Site | Field::File => on_the_way(scope, d.process, d.site, field),
            Field::Qdly => Value::maybe((d.submit != 0).then(|| d.span.begin.saturating_sub(d.submit))),
            _ => common(scope, d.span, d.thread, field),
        }
    }
}

impl Subject for CopySubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(self.0.direction(&self.1.record))
    }

    fn value(&self, field: Field) -> Value<'_> {
        let (scope, c) = (self.0, &self.1.record);
        match field {
            Field::Dir => Value::Text(direction::name(c.direction)),
            Field::Engine => engine::name(c.engine).map_or(Value::None, Value::Text),
            Field::Bytes => Value::whole(c.bytes),
            Field::Bw if c.span.duration() > 0 => Value::Number(c.bytes as f64 * 1e9 / c.span.duration() as f64),
            Field::Stream => Value::maybe(c.stream.map(|_| scope.stream(c.stream).into())),
            Field::Site | Field::File => on_the_way(scope, c.process, c.site, field),
            Field::Qdly => Value::maybe((c.submit != 0).then(|| c.span.begin.saturating_sub(c.submit))),
            _ => common(scope, c.span, c.thread, field),
        }
    }
}

impl Subject for AllocationSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(memory::name(self.1.record.operation))
    }

    fn value(&self, field: Field) -> Value<'_> {
        let (scope, a) = (self.0, &self.1.record);
        match field {
            Field::Domain => Value::Text("memory"),
            Field::Bytes => Value::whole(a.bytes),
            Field::Dev => Value::maybe(a.agent.map(|_| scope.type_index(scope.node(a.agent)).0 as u64)),
            Field::Site | Field::File => on_the_way(scope, a.process, self.2, field),
            _ => common(scope, a.span, Some(a.thread), field),
        }
    }
}

impl Subject for ScratchSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(scratch::name(self.1.record.operation))
    }

    fn value(&self, field: Field) -> Value<'_> {
        let (scope, s) = (self.0, &self.1.record);
        match field {
            Field::Domain => Value::Text("scratch"),
            Field::Bytes => Value::whole(s.bytes),
            Field::Dev => Value::maybe(s.agent.map(|_| scope.type_index(scope.node(s.agent)).0 as u64)),
            Field::Site | Field::File => on_the_way(scope, s.process, self.2, field),
            _ => common(scope, s.span, Some(s.thread), field),
        }
    }
}
