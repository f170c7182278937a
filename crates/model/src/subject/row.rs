//! Rows: what all records of a row have in common, what differs among them, and the numbers of the whole.

use super::{
    copy_device, domain, engine_name, gpu, kernel_names, kernel_value, occupancy, process, route_names, shape, site,
    stream,
};
use crate::kernel_counters;
use crate::names::Names;
use crate::query::{Counted, Field, Subject, Value};
use crate::sites::SiteRow;
use crate::snapshot::{ApiRow, KernelRow, ProcessRow, Snapshot};
use crate::stats::Stat;
use crate::table::{CopyStat, MarkerStat, Placement};
use roctop_ring::record::direction;
use roctop_trace::item::KernelId;

/// The numbers of a row.
fn stat(stat: &Stat, field: Field, whole: u64) -> Value<'static> {
    match field {
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

/// A kernel's row: what differs from launch to launch it leaves open.
pub struct KernelSubject<'a>(pub &'a Snapshot, pub &'a KernelRow);

impl KernelSubject<'_> {
    pub(super) fn of_row(&self, field: Field) -> Value<'static> {
        stat(&self.1.numbers.stat, field, self.0.values.totals.kernel_time)
    }

    /// Whether all GPUs that it ran on have the same resources.
    fn is_on_equal_gpus(&self) -> bool {
        let mut places = self.1.numbers.cells.iter().map(|cell| self.0.values.placement(cell));
        let resources = |place: Option<Placement>| {
            let agent = self.0.names.agent(place?.agent)?;
            Some((&agent.name, agent.compute_units))
        };
        let first = places.next().and_then(resources);
        first.is_some() && places.all(|place| resources(place) == first)
    }
}

impl Subject for KernelSubject<'_> {
    fn counter(&self, name: &str) -> Counted {
        kernel_counters::value(self.0, self.1, name).map_or(Counted::Not, Counted::Value)
    }

    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        kernel_names(&self.0.names, self.1.id, test)
    }

    fn value(&self, field: Field) -> Value<'_> {
        let numbers = &self.1.numbers;
        match field {
            Field::Grid | Field::Wg | Field::Lds | Field::Scratch if numbers.shapes <= 1 => {
                shape(&numbers.shape, field)
            }
            Field::Occ | Field::Limit | Field::Fill if numbers.shapes <= 1 && self.is_on_equal_gpus() => {
                occupancy(self.1.occupancy(self.0), field)
            }
            // A launch has none of these.
            Field::Bytes | Field::Bw | Field::Err => Value::None,
            _ if field.is_of_each() => Value::Varies,
            Field::Mangled | Field::Vgpr | Field::Sgpr | Field::Spills => kernel_value(&self.0.names, self.1.id, field),
            _ => self.of_row(field),
        }
    }
}

/// A kernel itself: what all launches of it have in common.
pub struct KernelFacts<'a>(pub &'a Names, pub KernelId);

impl Subject for KernelFacts<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        kernel_names(self.0, self.1, test)
    }
    fn value(&self, field: Field) -> Value<'_> {
        kernel_value(self.0, self.1, field)
    }
}

/// A place where kernels ran.
pub struct PlaceSubject<'a>(pub &'a Names, pub Placement);

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
            Field::Queue => Value::maybe(names.queue(place.queue).map(|queue| queue.number.into())),
            Field::Stream => stream(names, place.stream),
            _ => process(names, place.process, field),
        }
    }
}

/// A route's row: what differs from copy to copy it leaves open.
pub struct RouteSubject<'a>(pub &'a Names, pub &'a CopyStat);

impl RouteSubject<'_> {
    pub(super) fn of_row(&self, field: Field) -> Value<'static> {
        stat(&self.1.stat, field, 0)
    }
}

impl Subject for RouteSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        route_names(self.0, &self.1.route, test)
    }
    fn value(&self, field: Field) -> Value<'_> {
        let route = &self.1.route;
        match field {
            Field::Dir => Value::Text(direction::name(route.direction)),
            Field::Engine => Value::Text(engine_name(route.engine)),
            Field::Dev => copy_device(self.0, route),
            // Copy kernels alone have a queue.
            Field::Queue if self.1.cells.is_empty() => Value::None,
            // A copy has none of these.
            Field::Err
            | Field::Grid
            | Field::Wg
            | Field::Lds
            | Field::Scratch
            | Field::Occ
            | Field::Limit
            | Field::Fill => Value::None,
            _ if field.is_of_each() => Value::Varies,
            _ => self.of_row(field),
        }
    }
}

/// Records of one site, and those whose site is not known.
pub struct OfSite<'a> {
    /// What is known.
    pub snap: &'a Snapshot,
    /// The site, if it is known.
    pub site: Option<&'a SiteRow>,
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
            .map_or(Value::None, |row| site(&self.snap.sites, row.process, row.site, field))
    }
}

/// An operation's row.
pub struct ApiSubject<'a>(pub &'a Snapshot, pub &'a ApiRow);

impl ApiSubject<'_> {
    pub(super) fn of_row(&self, field: Field) -> Value<'static> {
        stat(&self.1.stat, field, self.0.wall())
    }
}

impl Subject for ApiSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let known = self.0.names.operation(self.1.id);
        known.is_some_and(|name| test(&name.operation.name))
    }
    fn value(&self, field: Field) -> Value<'_> {
        match field {
            Field::Err if self.1.errors == 0 => Value::whole(0),
            Field::Err if self.1.errors == self.1.stat.calls => Value::whole(1),
            Field::Dur
            | Field::Err
            | Field::Tid
            | Field::Thread
            | Field::Pid
            | Field::Rank
            | Field::Site
            | Field::File => Value::Varies,
            Field::Domain => domain(&self.0.names, self.1.id).map_or(Value::None, Value::Text),
            _ => self.of_row(field),
        }
    }
}

/// A marker's row: marks and ranges whose texts differ in digits alone.
pub struct MarkerSubject<'a>(pub &'a Names, pub &'a MarkerStat);

impl MarkerSubject<'_> {
    pub(super) fn of_row(&self, field: Field) -> Value<'static> {
        stat(&self.1.stat, field, 0)
    }
}

impl Subject for MarkerSubject<'_> {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(&self.1.pattern) || test(self.0.text(self.1.text))
    }
    fn value(&self, field: Field) -> Value<'_> {
        let (names, row) = (self.0, self.1);
        match field {
            Field::Dur if row.stat.timed > 0 && row.stat.max > 0 => {
                Value::Between(row.stat.min as f64, row.stat.max as f64)
            }
            Field::Domain => Value::Text("marker"),
            Field::Tid | Field::Thread => super::thread(names, Some(row.thread), field),
            Field::Pid | Field::Rank => names
                .thread(row.thread)
                .map_or(Value::None, |thread| process(names, thread.process, field)),
            _ => self.of_row(field),
        }
    }
}

/// A process.
pub struct ProcessSubject<'a>(pub &'a ProcessRow);

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
            Field::Pid => Value::whole(self.0.process.pid.into()),
            Field::Rank => Value::maybe(self.0.process.rank.map(u64::from)),
            _ => Value::None,
        }
    }
}
