//! Records: one set of fields for each kind.

use super::row::{ApiSubject, KernelSubject, MarkerSubject, RouteSubject};
use super::{
    copy_device, domain, engine_name, gpu, kernel_names, kernel_value, occupancy, process, route_names, shape, site,
    stream, thread,
};
use crate::apply::is_error;
use crate::kernel_counters;
use crate::names::Names;
use crate::occupancy::Occupancy;
use crate::query::{Counted, Field, Subject, Value};
use crate::sites::Sites;
use crate::snapshot::Snapshot;
use crate::table::{Route, Shape, pattern};
use roctop_ring::record::{direction, memory, scratch};
use roctop_trace::item::{Allocation, ApiCall, Copy, Dispatch, Marker, Nanos, ProcessId, Scratch, Span, ThreadId};
use roctop_trace::site::SiteNumber;

/// Directions of copies as rocprofv3 names them, by its number.
pub const DIRECTIONS: [&str; 5] = [
    "MEMORY_COPY_NONE",
    "MEMORY_COPY_HOST_TO_HOST",
    "MEMORY_COPY_HOST_TO_DEVICE",
    "MEMORY_COPY_DEVICE_TO_HOST",
    "MEMORY_COPY_DEVICE_TO_DEVICE",
];

/// Index of a direction in [`DIRECTIONS`].
pub const fn direction_number(direction: u16) -> usize {
    match direction {
        direction::H2H => 1,
        direction::H2D => 2,
        direction::D2H => 3,
        direction::D2D | direction::FILL => 4,
        _ => 0,
    }
}

/// A kind of record.
#[derive(Clone, std::marker::Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the kind of its name")]
pub enum Kind {
    Kernel,
    Copy,
    Call,
    Marker,
    Allocation,
    Scratch,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Kernel,
        Self::Copy,
        Self::Call,
        Self::Marker,
        Self::Allocation,
        Self::Scratch,
    ];

    /// Whether records of this kind have a field. Fields of the whole row belong to the kinds that have rows.
    pub const fn has(self, field: Field) -> bool {
        use Field as F;
        let is_of_memory = matches!(self, Self::Allocation | Self::Scratch);
        match field {
            F::Name | F::Dur | F::Pid | F::Rank | F::Tid | F::Thread => true,
            F::Mangled
            | F::Queue
            | F::Lds
            | F::Vgpr
            | F::Sgpr
            | F::Scratch
            | F::Spills
            | F::Occ
            | F::Limit
            | F::Fill
            | F::Grid
            | F::Wg => {
                matches!(self, Self::Kernel)
            }
            F::Stream | F::Qdly => matches!(self, Self::Kernel | Self::Copy),
            F::Dir | F::Engine | F::Bw => matches!(self, Self::Copy),
            F::Dev => is_of_memory || matches!(self, Self::Kernel | Self::Copy),
            F::Bytes => is_of_memory || matches!(self, Self::Copy),
            F::Err => matches!(self, Self::Call),
            F::Domain => is_of_memory || matches!(self, Self::Call | Self::Marker),
            F::Site | F::File => !matches!(self, Self::Marker),
            F::Share => matches!(self, Self::Kernel | Self::Call),
            F::Calls | F::Total | F::Avg | F::Min | F::Max | F::P50 | F::P95 | F::P99 => !is_of_memory,
        }
    }

    /// Whether a record of this kind has a field by itself: neither its row nor call sites are known.
    pub const fn has_alone(self, field: Field) -> bool {
        self.has(field) && !field.is_of_row() && !matches!(field, Field::Site | Field::File)
    }

    /// What several records of this kind are called.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernels",
            Self::Copy => "copies",
            Self::Call => "calls",
            Self::Marker => "markers",
            Self::Allocation => "allocations",
            Self::Scratch => "scratch memory",
        }
    }
}

/// Where the names that records refer to by number are.
#[derive(Clone, std::marker::Copy)]
pub struct Context<'a> {
    /// Names of kernels, agents, threads and the like.
    pub names: &'a Names,
    /// Call sites, if they are known.
    pub sites: Option<&'a Sites>,
    /// Rows that the records belong to; without them, no record has a field of its row.
    pub rows: Option<&'a Snapshot>,
}

impl<'a> Context<'a> {
    /// Names alone.
    pub const fn of_names(names: &'a Names) -> Self {
        Self {
            names,
            sites: None,
            rows: None,
        }
    }

    /// That of a snapshot.
    pub fn of(snap: &'a Snapshot) -> Self {
        Self {
            names: &snap.names,
            sites: Some(&snap.sites),
            rows: Some(snap),
        }
    }
}

/// A record.
#[derive(Clone, std::marker::Copy)]
pub enum Record<'a> {
    /// A launch of a kernel.
    Kernel(&'a Dispatch),
    /// A copy.
    Copy(&'a Copy),
    /// A call.
    Call(&'a ApiCall),
    /// A mark or range, and its text.
    Marker(&'a Marker, &'a str),
    /// An allocation or free, and the site of its call.
    Allocation(&'a Allocation, SiteNumber),
    /// Scratch memory of a queue, and the site of the call for which it is.
    Scratch(&'a Scratch, SiteNumber),
}

/// A record as a filter sees it.
#[derive(Clone, std::marker::Copy)]
pub struct RecordSubject<'a> {
    /// Where its names are.
    pub context: Context<'a>,
    /// The record.
    pub record: Record<'a>,
}

impl Subject for RecordSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        self.record.any_name(self.context.names, test)
    }

    fn value(&self, field: Field) -> Value<'_> {
        self.record.value(&self.context, field)
    }

    fn counter(&self, name: &str) -> Counted {
        self.record.counter(&self.context, name)
    }
}

fn submitted(submit: Nanos, span: Span) -> Value<'static> {
    Value::maybe((submit != 0).then(|| span.begin.saturating_sub(submit)))
}

impl<'a> Record<'a> {
    /// As a filter sees it.
    pub const fn with(self, context: Context<'a>) -> RecordSubject<'a> {
        RecordSubject { context, record: self }
    }

    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Kernel(_) => Kind::Kernel,
            Self::Copy(_) => Kind::Copy,
            Self::Call(_) => Kind::Call,
            Self::Marker(..) => Kind::Marker,
            Self::Allocation(..) => Kind::Allocation,
            Self::Scratch(..) => Kind::Scratch,
        }
    }

    /// Its process, thread, duration, and where in the program it is.
    const fn common(&self) -> (ProcessId, Option<ThreadId>, Span, SiteNumber) {
        match *self {
            Self::Kernel(one) => (one.process, one.thread, one.span, one.site),
            Self::Copy(one) => (one.process, one.thread, one.span, one.site),
            Self::Call(one) => (one.process, Some(one.thread), one.span, one.site),
            Self::Marker(one, _) => (one.process, Some(one.thread), one.span, SiteNumber::UNKNOWN),
            Self::Allocation(one, site) => (one.process, Some(one.thread), one.span, site),
            Self::Scratch(one, site) => (one.process, Some(one.thread), one.span, site),
        }
    }

    /// Whether any of its names passes a test.
    pub fn any_name(&self, names: &Names, test: &dyn Fn(&str) -> bool) -> bool {
        match *self {
            Self::Kernel(one) => kernel_names(names, one.kernel, test),
            Self::Copy(one) => route_names(names, &Route::of(one), test),
            Self::Call(one) => {
                let known = names.operation(one.operation);
                known.is_some_and(|name| test(&name.operation.name))
            }
            Self::Marker(_, text) => test(text),
            Self::Allocation(one, _) => test(memory::name(one.operation)),
            Self::Scratch(one, _) => test(scratch::name(one.operation)),
        }
    }

    /// Its value of a field.
    pub fn value<'n>(&self, context: &Context<'n>, field: Field) -> Value<'n> {
        if !self.kind().has(field) {
            return Value::None;
        }
        if field.is_of_row() {
            return self.of_row(context, field);
        }
        let names = context.names;
        let (of, by, span, number) = self.common();
        match field {
            Field::Dur => return Value::whole(span.duration()),
            Field::Pid | Field::Rank => return process(names, of, field),
            Field::Tid | Field::Thread => return thread(names, by, field),
            Field::Site | Field::File => {
                return context
                    .sites
                    .map_or(Value::None, |sites| site(sites, of, number, field));
            }
            _ => {}
        }
        match *self {
            Self::Kernel(one) => match field {
                Field::Dev => gpu(names, one.agent),
                Field::Queue => Value::maybe(names.queue(one.queue).map(|queue| queue.number.into())),
                Field::Stream => stream(names, one.stream),
                Field::Qdly => submitted(one.submit, one.span),
                Field::Grid | Field::Wg | Field::Lds | Field::Scratch => shape(&Shape::of(one), field),
                Field::Occ | Field::Limit | Field::Fill => {
                    let found = Occupancy::known(names, one.kernel, one.agent, &Shape::of(one));
                    occupancy(found, field)
                }
                _ => kernel_value(names, one.kernel, field),
            },
            Self::Copy(one) => match field {
                Field::Dir => Value::Text(direction::name(one.direction)),
                Field::Engine => Value::Text(engine_name(one.engine)),
                Field::Dev => copy_device(names, &Route::of(one)),
                Field::Stream => stream(names, one.stream),
                Field::Qdly => submitted(one.submit, one.span),
                Field::Bytes => Value::whole(one.bytes),
                Field::Bw if span.duration() > 0 => Value::Number(one.bytes as f64 * 1e9 / span.duration() as f64),
                _ => Value::None,
            },
            Self::Call(one) => match field {
                Field::Err => Value::whole(is_error(one, names).into()),
                Field::Domain => domain(names, one.operation).map_or(Value::None, Value::Text),
                _ => Value::None,
            },
            Self::Marker(..) => Value::Text("marker"),
            Self::Allocation(&Allocation { agent, bytes, .. }, _) | Self::Scratch(&Scratch { agent, bytes, .. }, _) => {
                match field {
                    Field::Domain if matches!(self, Self::Scratch(..)) => Value::Text("scratch"),
                    Field::Domain => Value::Text("memory"),
                    Field::Bytes => Value::whole(bytes),
                    _ => agent.map_or(Value::None, |agent| gpu(names, agent)),
                }
            }
        }
    }

    /// The row's value of a field, if the rows are known.
    fn of_row<'n>(&self, context: &Context<'n>, field: Field) -> Value<'n> {
        let Some(snap) = context.rows else { return Value::None };
        let values = &snap.values;
        let found = match *self {
            Self::Kernel(one) => values
                .kernel(one.kernel)
                .map(|row| KernelSubject(snap, row).of_row(field)),
            Self::Copy(one) => {
                let route = Route::of(one);
                let mut rows = values.copies.iter();
                let row = rows.find(|row| row.route == route);
                row.map(|row| RouteSubject(&snap.names, row).of_row(field))
            }
            Self::Call(one) => values
                .operation(one.operation)
                .map(|row| ApiSubject(snap, row).of_row(field)),
            Self::Marker(_, text) => {
                let pattern = pattern(text);
                let mut rows = values.markers.iter();
                let row = rows.find(|row| *row.pattern == *pattern);
                row.map(|row| MarkerSubject(&snap.names, row).of_row(field))
            }
            Self::Allocation(..) | Self::Scratch(..) => None,
        };
        found.unwrap_or(Value::None)
    }

    /// Its kernel's mean of a hardware counter.
    pub fn counter(&self, context: &Context<'_>, name: &str) -> Counted {
        let (Self::Kernel(one), Some(snap)) = (self, context.rows) else {
            return Counted::Never;
        };
        let row = snap.values.kernel(one.kernel);
        let value = row.and_then(|row| kernel_counters::value(snap, row, name));
        value.map_or(Counted::Not, Counted::Value)
    }
}
