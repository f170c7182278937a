//! What the things on screen answer to a filter.

use roctop_ring::record::{Domain, direction, engine};

use roctop_model::collectives::CollectiveSlice;
use roctop_model::query::{Counted, Field, Subject, Value};
use roctop_model::sites::SiteRow;
use roctop_model::snapshot::{ApiRow, KernelRow, ProcessRow};
use roctop_model::stats::Stat;
use roctop_model::table::{CopyStat, MarkerStat, Placement, Route, Shape};
use roctop_model::{LaneKey, Names, Slice, Snapshot};
use roctop_trace::item::{
    AgentId, AgentKind, ApiCall, Copy, Dispatch, KernelId, OperationId, ProcessId, QueueId, StreamId, TextId, ThreadId,
};
use roctop_trace::site::SiteNumber;

fn number<T: Into<f64>>(value: Option<T>) -> Value<'static> {
    value.map_or(Value::None, |value| Value::Number(value.into()))
}

/// Number of a GPU; a host is none.
fn gpu(names: &Names, agent: AgentId) -> Value<'static> {
    number(
        names
            .agent(agent)
            .filter(|agent| agent.kind == AgentKind::Gpu)
            .map(|agent| agent.number),
    )
}

fn process(names: &Names, id: ProcessId, field: Field) -> Value<'static> {
    let process = names.process(id);
    match field {
        Field::Pid => number(process.map(|process| process.pid)),
        Field::Rank => number(process.and_then(|process| process.rank)),
        _ => Value::None,
    }
}

/// The numbers of a row.
fn stat(stat: &Stat, field: Field, whole: u64) -> Value<'static> {
    match field {
        Field::Dur if stat.timed > 0 && stat.max > 0 => Value::Between(stat.min as f64, stat.max as f64),
        Field::Calls => Value::whole(stat.calls),
        Field::Total => Value::whole(stat.total),
        Field::Share if whole > 0 => Value::Number(stat.total as f64 / whole as f64),
        Field::Avg => Value::maybe(stat.average()),
        Field::Min if stat.timed > 0 => Value::whole(stat.min),
        Field::Max if stat.timed > 0 => Value::whole(stat.max),
        Field::P50 => Value::maybe(stat.quantiles.p50),
        Field::P95 => Value::maybe(stat.quantiles.p95),
        Field::P99 => Value::maybe(stat.quantiles.p99),
        _ => Value::None,
    }
}

fn shape(shape: &Shape, field: Field) -> Value<'static> {
    match field {
        Field::Grid => Value::Number(shape.grid.iter().map(|&n| f64::from(n)).product()),
        Field::Wg => Value::Number(shape.workgroup.iter().map(|&n| f64::from(n)).product()),
        Field::Lds => Value::Number(f64::from(shape.group_size)),
        Field::Scratch => Value::Number(f64::from(shape.private_size)),
        _ => Value::None,
    }
}

/// Functions or files on the way to a call.
pub(crate) fn site(snap: &Snapshot, process: ProcessId, number: SiteNumber, field: Field) -> Value<'_> {
    let Some(path) = snap.sites.path_of(process, number) else {
        return Value::None;
    };
    match field {
        Field::Site => Value::Text(snap.sites.functions_text(path)),
        Field::File => Value::Text(snap.sites.files_text(path)),
        _ => Value::None,
    }
}

fn kernel_names(names: &Names, id: KernelId, test: &dyn Fn(&str) -> bool) -> bool {
    let Some(name) = names.kernel(id) else { return false };
    test(&name.short) || test(&name.kernel.name) || test(&name.kernel.mangled)
}

fn kernel_value(names: &Names, id: KernelId, field: Field) -> Value<'_> {
    let Some(name) = names.kernel(id) else {
        return Value::None;
    };
    match field {
        Field::Mangled => Value::Text(&name.kernel.mangled),
        Field::Vgpr => number(name.kernel.registers.map(|registers| registers.vgpr + registers.agpr)),
        Field::Sgpr => number(name.kernel.registers.map(|registers| registers.sgpr)),
        _ => Value::None,
    }
}

/// A kernel's row: what differs from launch to launch it leaves open.
pub(crate) struct KernelSubject<'a> {
    pub(crate) names: &'a Names,
    pub(crate) row: &'a KernelRow,
    pub(crate) whole: u64,
    /// What was counted of it, by name.
    pub(crate) counted: &'a dyn Fn(&str) -> Option<f64>,
}

impl Subject for KernelSubject<'_> {
    fn counter(&self, name: &str) -> Counted {
        (self.counted)(name).map_or(Counted::Not, Counted::Value)
    }

    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        kernel_names(self.names, self.row.id, test)
    }
    fn value(&self, field: Field) -> Value<'_> {
        let numbers = &self.row.numbers;
        match field {
            Field::Grid | Field::Wg | Field::Lds | Field::Scratch if numbers.shapes <= 1 => {
                shape(&numbers.shape, field)
            }
            // A launch has none of these.
            Field::Bytes | Field::Bw | Field::Tid | Field::Thread => Value::None,
            _ if field.is_of_each() => Value::Varies,
            Field::Mangled | Field::Vgpr | Field::Sgpr => kernel_value(self.names, self.row.id, field),
            _ => stat(&numbers.stat, field, self.whole),
        }
    }
}

/// A place where kernels ran.
pub(crate) struct PlaceSubject<'a>(pub(crate) &'a Names, pub(crate) Placement);

impl Subject for PlaceSubject<'_> {
    fn any_name(&self, _: &dyn Fn(&str) -> bool) -> bool {
        false
    }
    fn is_named(&self) -> bool {
        false
    }
    fn value(&self, field: Field) -> Value<'_> {
        let (names, place) = (self.0, self.1);
        match field {
            Field::Dev => gpu(names, place.agent),
            Field::Queue => number(names.queue(place.queue).map(|queue| queue.number)),
            Field::Stream => stream(names, place.stream),
            _ => process(names, place.process, field),
        }
    }
}

fn stream(names: &Names, id: Option<StreamId>) -> Value<'static> {
    number(id.and_then(|id| names.stream(id)).map(|stream| stream.number))
}

fn copy_device(names: &Names, source: Option<AgentId>, destination: Option<AgentId>) -> Value<'static> {
    let known = [destination, source]
        .into_iter()
        .flatten()
        .map(|agent| gpu(names, agent));
    known
        .into_iter()
        .find(|value| *value != Value::None)
        .unwrap_or(Value::None)
}

fn engine_name(engine: u16) -> &'static str {
    engine::name(engine).unwrap_or("unknown")
}

/// `H2D host→GPU0 sdma`.
fn route_name(names: &Names, route: &Route) -> String {
    format!(
        "{} {} {}",
        direction::name(route.direction),
        names.route_label(route.source, route.destination),
        engine_name(route.engine)
    )
}

/// A route's row: what differs from copy to copy it leaves open.
pub(crate) struct RouteSubject<'a>(pub(crate) &'a Names, pub(crate) &'a CopyStat);

impl Subject for RouteSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(&route_name(self.0, &self.1.route))
    }
    fn value(&self, field: Field) -> Value<'_> {
        let route = &self.1.route;
        match field {
            Field::Dir => Value::Text(direction::name(route.direction)),
            Field::Engine => Value::Text(engine_name(route.engine)),
            Field::Dev => copy_device(self.0, route.source, route.destination),
            // Copy kernels alone have a queue.
            Field::Queue if self.1.cells.is_empty() => Value::None,
            // A copy has none of these.
            Field::Qdly | Field::Grid | Field::Wg | Field::Lds | Field::Scratch | Field::Tid | Field::Thread => {
                Value::None
            }
            _ if field.is_of_each() => Value::Varies,
            _ => stat(&self.1.stat, field, 0),
        }
    }
}

/// Copies of one site, and those whose site is not known.
pub(crate) struct OfSite<'a> {
    pub(crate) snap: &'a Snapshot,
    pub(crate) site: Option<&'a SiteRow>,
}

impl Subject for OfSite<'_> {
    fn any_name(&self, _: &dyn Fn(&str) -> bool) -> bool {
        false
    }
    fn is_named(&self) -> bool {
        false
    }
    fn value(&self, field: Field) -> Value<'_> {
        self.site
            .map_or(Value::None, |row| site(self.snap, row.process, row.site, field))
    }
}

/// A copy of a recording.
pub(crate) struct TransferSubject<'a> {
    pub(crate) snap: &'a Snapshot,
    pub(crate) copy: &'a Copy,
}

impl Subject for TransferSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(&route_name(&self.snap.names, &Route::of(self.copy)))
    }
    fn value(&self, field: Field) -> Value<'_> {
        let (names, copy) = (&self.snap.names, self.copy);
        match field {
            Field::Dur => Value::whole(copy.span.duration()),
            Field::Pid | Field::Rank => process(names, copy.process, field),
            Field::Site | Field::File => site(self.snap, copy.process, copy.site, field),
            Field::Stream => stream(names, copy.stream),
            Field::Bytes => Value::whole(copy.bytes),
            Field::Bw if copy.span.duration() > 0 => {
                Value::Number(copy.bytes as f64 * 1e9 / copy.span.duration() as f64)
            }
            // The route says the rest.
            _ => Value::None,
        }
    }
}

/// An operation.
pub(crate) struct ApiSubject<'a>(pub(crate) &'a Names, pub(crate) &'a ApiRow, pub(crate) u64);

impl Subject for ApiSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        self.0
            .operation(self.1.id)
            .is_some_and(|name| test(&name.operation.name))
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Dur | Field::Tid | Field::Thread | Field::Pid | Field::Rank | Field::Site | Field::File => {
                Value::Varies
            }
            Field::Err => Value::whole(self.1.errors),
            Field::Domain => domain(self.0, self.1.id).map_or(Value::None, Value::Text),
            _ => stat(&self.1.stat, field, self.2),
        }
    }
}

/// Name of an operation's domain.
pub(crate) fn domain(names: &Names, id: OperationId) -> Option<&'static str> {
    names
        .operation(id)
        .and_then(|name| Domain(name.operation.domain).name())
}

/// A marker.
pub(crate) struct MarkerSubject<'a>(pub(crate) &'a Names, pub(crate) &'a MarkerStat);

impl Subject for MarkerSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(&self.1.pattern) || test(self.0.text(self.1.text))
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Tid => number(self.0.thread(self.1.thread).map(|thread| thread.tid)),
            Field::Thread => self
                .0
                .thread(self.1.thread)
                .map_or(Value::None, |thread| Value::Text(&thread.name)),
            _ => stat(&self.1.stat, field, 0),
        }
    }
}

/// A process.
pub(crate) struct ProcessSubject<'a>(pub(crate) &'a ProcessRow);

impl Subject for ProcessSubject<'_> {
    fn any_name(&self, _: &dyn Fn(&str) -> bool) -> bool {
        false
    }
    /// Words hide no process.
    fn is_named(&self) -> bool {
        false
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Pid => Value::Number(f64::from(self.0.process.pid)),
            Field::Rank => number(self.0.process.rank),
            _ => Value::None,
        }
    }
}

/// A slice of a lane.
pub(crate) struct SliceSubject<'a> {
    pub(crate) snap: &'a Snapshot,
    pub(crate) key: LaneKey,
    pub(crate) slice: &'a Slice,
}

impl Subject for SliceSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let names = &self.snap.names;
        match self.key {
            LaneKey::Agent(_) => true,
            LaneKey::Stream(..) | LaneKey::Queue(..) => kernel_names(names, KernelId(self.slice.what), test),
            LaneKey::Copies(way) => {
                let route = self.snap.values.copies.get(self.slice.what as usize);
                route.map_or_else(
                    || test(direction::name(way)),
                    |row| test(&route_name(names, &row.route)),
                )
            }
            LaneKey::Collectives(_) => test(CollectiveSlice::kind(self.slice.what).0.name()),
            LaneKey::Api(..) => names
                .operation(OperationId(self.slice.what))
                .is_some_and(|name| test(&name.operation.name)),
            LaneKey::Markers(..) | LaneKey::Ranges(_) => test(names.text(TextId(self.slice.what))),
        }
    }
    fn value(&self, field: Field) -> Value<'_> {
        let (names, slice) = (&self.snap.names, self.slice);
        match field {
            Field::Dur => return Value::whole(slice.span.duration()),
            Field::Pid | Field::Rank => return process(names, ProcessId(slice.process), field),
            Field::Site | Field::File => return site(self.snap, ProcessId(slice.process), slice.site, field),
            _ => {}
        }
        match self.key {
            LaneKey::Stream(agent, _) | LaneKey::Queue(agent, _) => self.kernel(agent, field),
            LaneKey::Copies(way) => {
                let route = self
                    .snap
                    .values
                    .copies
                    .get(slice.what as usize)
                    .map(|copies| copies.route);
                match field {
                    Field::Dir => Value::Text(direction::name(way)),
                    Field::Engine => route.map_or(Value::None, |route| Value::Text(engine_name(route.engine))),
                    Field::Bytes => Value::whole(slice.value),
                    Field::Bw if slice.span.duration() > 0 => {
                        Value::Number(slice.value as f64 * 1e9 / slice.span.duration() as f64)
                    }
                    Field::Stream => stream(names, (slice.queue != u32::MAX).then_some(StreamId(slice.queue))),
                    Field::Dev => route.map_or(Value::None, |r| copy_device(names, r.source, r.destination)),
                    _ => Value::None,
                }
            }
            LaneKey::Api(thread, _) | LaneKey::Markers(thread, _) | LaneKey::Ranges(thread) => match field {
                Field::Tid => number(names.thread(thread).map(|thread| thread.tid)),
                Field::Thread => names
                    .thread(thread)
                    .map_or(Value::None, |thread| Value::Text(&thread.name)),
                Field::Err if matches!(self.key, LaneKey::Api(..)) => Value::Number(f64::from(slice.shape)),
                Field::Domain if matches!(self.key, LaneKey::Api(..)) => {
                    domain(names, OperationId(slice.what)).map_or(Value::None, Value::Text)
                }
                _ => Value::None,
            },
            LaneKey::Agent(_) | LaneKey::Collectives(_) => Value::None,
        }
    }
}

impl SliceSubject<'_> {
    fn kernel(&self, agent: AgentId, field: Field) -> Value<'_> {
        let (names, slice) = (&self.snap.names, self.slice);
        match field {
            Field::Dev => gpu(names, agent),
            Field::Queue => number(names.queue(QueueId(slice.queue)).map(|queue| queue.number)),
            Field::Stream => match self.key {
                LaneKey::Stream(_, id) => stream(names, Some(id)),
                _ => Value::None,
            },
            Field::Qdly if slice.submit > 0 => Value::whole(slice.span.begin.saturating_sub(slice.submit)),
            Field::Grid | Field::Wg | Field::Lds | Field::Scratch => self
                .snap
                .values
                .shapes
                .get(slice.shape as usize)
                .map_or(Value::None, |known| shape(known, field)),
            _ => kernel_value(names, KernelId(slice.what), field),
        }
    }
}

/// A launch of a recording.
pub(crate) struct LaunchSubject<'a> {
    pub(crate) snap: &'a Snapshot,
    pub(crate) dispatch: &'a Dispatch,
}

impl Subject for LaunchSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        kernel_names(&self.snap.names, self.dispatch.kernel, test)
    }
    fn value(&self, field: Field) -> Value<'_> {
        let (names, one) = (&self.snap.names, self.dispatch);
        match field {
            Field::Dur => Value::whole(one.span.duration()),
            Field::Pid | Field::Rank => process(names, one.process, field),
            Field::Site | Field::File => site(self.snap, one.process, one.site, field),
            Field::Dev => gpu(names, one.agent),
            Field::Queue => number(names.queue(one.queue).map(|queue| queue.number)),
            Field::Stream => stream(names, one.stream),
            Field::Qdly if one.submit > 0 => Value::whole(one.span.begin.saturating_sub(one.submit)),
            Field::Grid | Field::Wg | Field::Lds | Field::Scratch => shape(&Shape::of(one), field),
            _ => kernel_value(names, one.kernel, field),
        }
    }
}

/// A call of a recording.
pub(crate) struct CallSubject<'a> {
    pub(crate) snap: &'a Snapshot,
    pub(crate) call: &'a ApiCall,
}

impl Subject for CallSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let known = self.snap.names.operation(self.call.operation);
        known.is_some_and(|name| test(&name.operation.name))
    }
    fn value(&self, field: Field) -> Value<'_> {
        let (names, call) = (&self.snap.names, self.call);
        match field {
            Field::Dur => Value::whole(call.span.duration()),
            Field::Pid | Field::Rank => process(names, call.process, field),
            Field::Site | Field::File => site(self.snap, call.process, call.site, field),
            Field::Tid => number(names.thread(call.thread).map(|thread| thread.tid)),
            Field::Thread => names
                .thread(call.thread)
                .map_or(Value::None, |thread| Value::Text(&thread.name)),
            Field::Domain => domain(names, call.operation).map_or(Value::None, Value::Text),
            _ => Value::None,
        }
    }
}

/// Whether a thread belongs to a lane.
pub(crate) const fn thread_of(key: LaneKey) -> Option<ThreadId> {
    match key {
        LaneKey::Api(thread, _) | LaneKey::Markers(thread, _) | LaneKey::Ranges(thread) => Some(thread),
        _ => None,
    }
}
