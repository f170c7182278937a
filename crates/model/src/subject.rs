//! What records and rows answer to a filter, for every surface: the screen and its answers, exports, and triggers.

mod record;
mod row;
mod slice;

pub use self::record::{Context, DIRECTIONS, Kind, Record, RecordSubject, direction_number};
pub use self::row::{
    ApiSubject, KernelFacts, KernelSubject, MarkerSubject, OfSite, PlaceSubject, ProcessSubject, RouteSubject,
};
pub use self::slice::{SliceSubject, thread_of};

use crate::Names;
use crate::occupancy::Occupancy;
use crate::query::{Field, Value};
use crate::sites::Sites;
use roctop_ring::record::{Domain, direction, engine};
use roctop_trace::item::{AgentId, AgentKind, KernelId, OperationId, ProcessId, StreamId, ThreadId};
use roctop_trace::site::SiteNumber;

use crate::table::{Route, Shape};

fn number<T: Into<f64>>(value: Option<T>) -> Value<'static> {
    value.map_or(Value::None, |value| Value::Number(value.into()))
}

/// Number of a GPU; a host has none.
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

fn thread(names: &Names, id: Option<ThreadId>, field: Field) -> Value<'_> {
    let thread = id.and_then(|id| names.thread(id));
    match field {
        Field::Tid => number(thread.map(|thread| thread.tid)),
        Field::Thread => thread.map_or(Value::None, |thread| Value::Text(&thread.name)),
        _ => Value::None,
    }
}

fn stream(names: &Names, id: Option<StreamId>) -> Value<'static> {
    number(id.and_then(|id| names.stream(id)).map(|stream| stream.number))
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
pub fn site(sites: &Sites, process: ProcessId, number: SiteNumber, field: Field) -> Value<'_> {
    match (sites.path_of(process, number), field) {
        (Some(path), Field::Site) => Value::Text(sites.functions_text(path)),
        (Some(path), Field::File) => Value::Text(sites.files_text(path)),
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
        Field::Spills => number(name.kernel.code.and_then(|code| code.spills())),
        _ => Value::None,
    }
}

fn occupancy(found: Option<Occupancy>, field: Field) -> Value<'static> {
    let percent = |share: f64| Value::Number(share * 100.0);
    match (found, field) {
        (Some(found), Field::Occ) => percent(found.share()),
        (Some(found), Field::Limit) => Value::Text(found.limiter.word()),
        (Some(found), Field::Fill) => found.fill().map_or(Value::None, |fill| percent(fill.0)),
        _ => Value::None,
    }
}

/// The GPU of a copy: that at its destination, else that at its source.
fn copy_device(names: &Names, route: &Route) -> Value<'static> {
    let ends = [route.destination, route.source].into_iter().flatten();
    let mut known = ends.map(|agent| gpu(names, agent));
    known.find(|value| *value != Value::None).unwrap_or(Value::None)
}

fn engine_name(engine: u16) -> &'static str {
    engine::name(engine).unwrap_or("unknown")
}

/// Whether a route's name passes: `H2D host→GPU0 sdma`, or `MEMORY_COPY_HOST_TO_DEVICE` as in files.
fn route_names(names: &Names, route: &Route, test: &dyn Fn(&str) -> bool) -> bool {
    let label = format!(
        "{} {} {}",
        direction::name(route.direction),
        names.route_label(route.source, route.destination),
        engine_name(route.engine)
    );
    let whole = DIRECTIONS[direction_number(route.direction)];
    test(&label) || test(whole) || whole.strip_prefix("MEMORY_COPY_").is_some_and(test)
}

/// Name of an operation's domain.
pub fn domain(names: &Names, id: OperationId) -> Option<&'static str> {
    names
        .operation(id)
        .and_then(|name| Domain(name.operation.domain).name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Subject;
    use crate::{Fresh, LaneKey, Mode, Options, Slice, Store};
    use roctop_ring::record::memory;
    use roctop_trace::item::{
        Agent, Allocation, ApiCall, Code, Copy, Dispatch, Item, Kernel, Marker, Operation, Process, Queue, Registers,
        Scratch, Span, Stream, TextId, Thread,
    };
    use std::sync::Arc;

    const CALL: Span = Span { begin: 100, end: 200 };

    fn facts() -> Vec<Item> {
        vec![
            Item::Process(Process {
                pid: 77,
                rank: Some(3),
                ..Process::default()
            }),
            Item::Agent(Agent {
                kind: AgentKind::Gpu,
                name: "gfx90a".into(),
                compute_units: 104,
                ..Agent::default()
            }),
            Item::Thread(Thread {
                tid: 78,
                name: "trainer".into(),
                ..Thread::default()
            }),
            Item::Queue(Queue::default()),
            Item::Stream(Stream::default()),
            Item::Kernel(Kernel {
                name: "gemm(float*)".into(),
                mangled: "_Z4gemmPf".into(),
                registers: Some(Registers {
                    vgpr: 64,
                    agpr: 128,
                    sgpr: 16,
                }),
                code: Some(Code {
                    vgpr: Some(192),
                    sgpr: Some(16),
                    vgpr_spills: Some(5),
                    sgpr_spills: Some(1),
                    wave_size: Some(64),
                    ..Code::default()
                }),
                ..Kernel::default()
            }),
            Item::Operation(Operation {
                domain: Domain::HIP.0,
                name: "hipMemcpyAsync".into(),
                ..Operation::default()
            }),
            Item::Text(TextId(0), "step 3".into()),
        ]
    }

    fn dispatch() -> Dispatch {
        Dispatch {
            stream: Some(StreamId(0)),
            thread: Some(ThreadId(0)),
            span: CALL,
            submit: 50,
            grid: [64, 2, 1],
            workgroup: [64, 1, 1],
            group_size: 512,
            ..Dispatch::default()
        }
    }

    fn copy() -> Copy {
        Copy {
            destination: Some(AgentId(0)),
            stream: Some(StreamId(0)),
            thread: Some(ThreadId(0)),
            span: CALL,
            submit: 60,
            bytes: 4096,
            direction: direction::H2D,
            engine: engine::SDMA,
            ..Copy::default()
        }
    }

    fn call() -> ApiCall {
        ApiCall {
            span: CALL,
            status: Some(2),
            ..ApiCall::default()
        }
    }

    fn marker() -> Marker {
        Marker {
            span: CALL,
            ..Marker::default()
        }
    }

    fn snapshot() -> Arc<crate::Snapshot> {
        let mut store = Store::new(Options {
            mode: Mode::Replay,
            ..Options::default()
        });
        store.apply_all(&facts());
        // Percentiles need many.
        for _ in 0..200 {
            store.apply_all(&[
                Item::Dispatch(dispatch()),
                Item::Copy(copy()),
                Item::Api(call()),
                Item::Range(marker()),
            ]);
        }
        store.snapshot(Fresh::All)
    }

    /// Fields that the facts of this test do not fill: no call has a site.
    const fn is_of_site(field: Field) -> bool {
        matches!(field, Field::Site | Field::File | Field::Name)
    }

    #[test]
    fn each_kind_has_a_value_of_each_of_its_fields() {
        let snap = snapshot();
        let (dispatch, copy, call, marker) = (dispatch(), copy(), call(), marker());
        let allocation = Allocation {
            agent: Some(AgentId(0)),
            span: CALL,
            bytes: 8,
            operation: memory::ALLOCATE,
            ..Allocation::default()
        };
        let scratch = Scratch {
            agent: Some(AgentId(0)),
            ..Scratch::default()
        };
        let records = [
            Record::Kernel(&dispatch),
            Record::Copy(&copy),
            Record::Call(&call),
            Record::Marker(&marker, "step 7"),
            Record::Allocation(&allocation, SiteNumber::UNKNOWN),
            Record::Scratch(&scratch, SiteNumber::UNKNOWN),
        ];
        let context = Context::of(&snap);
        let alone = Context::of_names(&snap.names);
        let fields = || Field::ALL.iter().map(|field| field.0).chain([Field::Share]);
        for (record, kind) in records.iter().zip(Kind::ALL) {
            assert_eq!(record.kind(), kind);
            for field in fields().filter(|field| !is_of_site(*field)) {
                let value = record.value(&context, field);
                assert_eq!(value != Value::None, kind.has(field), "{kind:?} {field:?}: {value:?}");
                let value = record.value(&alone, field);
                assert_eq!(
                    value != Value::None,
                    kind.has_alone(field),
                    "{kind:?} {field:?}: {value:?}"
                );
            }
        }
        let value = |at: usize, field| records[at].value(&context, field);
        assert_eq!(value(0, Field::Vgpr), Value::Number(192.0), "with AGPRs");
        assert_eq!(value(0, Field::Spills), Value::Number(6.0));
        assert_eq!(value(0, Field::Occ), Value::Number(25.0), "2 of 8 waves");
        assert_eq!(value(0, Field::Limit), Value::Text("VGPR"));
        assert_eq!(value(0, Field::Calls), Value::Number(200.0));
        assert_eq!(
            value(3, Field::Calls),
            Value::Number(200.0),
            "of its row, whose texts differ in digits"
        );
        assert_eq!(value(1, Field::Qdly), Value::Number(40.0));
        assert_eq!(value(2, Field::Err), Value::Number(1.0));
    }

    #[test]
    fn a_slice_is_the_record_that_it_was_made_of() {
        let snap = snapshot();
        let (dispatch, copy, call, marker) = (dispatch(), copy(), call(), marker());
        let records = [
            Record::Kernel(&dispatch),
            Record::Copy(&copy),
            Record::Call(&call),
            Record::Marker(&marker, "step 3"),
        ];
        let context = Context::of(&snap);
        let mut seen = [0; 4];
        for lane in snap.lanes.iter() {
            let at = match lane.key {
                LaneKey::Stream(..) | LaneKey::Queue(..) => 0,
                LaneKey::Copies(_) => 1,
                LaneKey::Api(..) => 2,
                LaneKey::Markers(..) | LaneKey::Ranges(_) => 3,
                LaneKey::Agent(_) | LaneKey::Collectives(_) => continue,
            };
            let slice: &Slice = lane.recent(1).next().unwrap();
            let subject = SliceSubject {
                snap: &snap,
                key: lane.key,
                slice,
            };
            for (field, ..) in Field::ALL {
                assert_eq!(
                    subject.value(*field),
                    records[at].value(&context, *field),
                    "{field:?} of {:?}",
                    lane.key
                );
            }
            let name = ["gemm", "MEMORY_COPY_HOST_TO_DEVICE", "hipMemcpyAsync", "step 3"][at];
            for filter in [name, "h2d"] {
                let filter = crate::query::Filter::parse(&format!("{filter:?}")).unwrap();
                assert_eq!(filter.accepts(&subject), filter.accepts(&records[at].with(context)));
            }
            seen[at] += 1;
        }
        assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
    }
}
