//! Joins hardware counter values with their dispatches.

use super::options::KernelChoice;
use super::records::Row;
use super::sample_streams::{Instances, Value, Walk};
use super::scope::Scope;
use super::sort::{Entry, Iter, Sorted, Sorter};
use super::workspace::Workspace;
use roctop_trace::item::{CounterId, CounterInfo, CounterInstances, Dispatch, KernelId, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::iter::Peekable;

/// Memory for each kind while it is sorted, bytes.
const SORT_BUFFER_BYTES: usize = 16 << 20;
/// Maximum numbers of values and of instance runs per dispatch.
const MAX_VALUES: usize = 1 << 16;
const MAX_PARTS: usize = 1 << 18;

/// A dispatch by its number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Numbered {
    pub(super) dispatch: u64,
    pub(super) end: Nanos,
    /// Correlation id.
    pub(super) id: u64,
    pub(super) kernel: KernelId,
}

impl Entry for Numbered {
    type Key = (u64, Nanos);

    fn key(&self) -> Self::Key {
        (self.dispatch, self.end)
    }
}

/// All dispatches of a process, sorted by number.
pub(super) fn numbered(dispatches: &Sorted<Row<Dispatch>>, place: &Workspace) -> io::Result<Sorted<Numbered>> {
    let mut sorter = Sorter::new(place, SORT_BUFFER_BYTES);
    for row in dispatches.iter() {
        let Row { record, id, .. } = row?;
        sorter.put(Numbered {
            dispatch: record.dispatch_id,
            end: record.span.end,
            id,
            kernel: record.kernel,
        })?;
    }
    sorter.finish()
}

/// Finds dispatches by ascending number.
pub(super) struct DispatchFinder<'a>(Peekable<Iter<'a, Numbered>>);

impl<'a> DispatchFinder<'a> {
    pub(super) fn new(dispatches: &'a Sorted<Numbered>) -> Self {
        Self(dispatches.iter().peekable())
    }

    /// The dispatch with this number.
    pub(super) fn find(&mut self, dispatch: u64) -> io::Result<Option<Numbered>> {
        loop {
            match self.0.peek() {
                Some(Ok(next)) if next.dispatch == dispatch => return Ok(Some(next.clone())),
                Some(Ok(next)) if next.dispatch > dispatch => return Ok(None),
                None => return Ok(None),
                Some(_) => {
                    self.0.next().transpose()?;
                }
            }
        }
    }
}

/// A value, in row order.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RowValue {
    end: Nanos,
    dispatch: u64,
    /// Index of its counter.
    counter: u32,
    value: f64,
}

impl Entry for RowValue {
    type Key = (Nanos, u64, u32);

    fn key(&self) -> Self::Key {
        (self.end, self.dispatch, self.counter)
    }
}

/// Values of instances, in row order.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Part {
    end: Nanos,
    counter: u32,
    values: CounterInstances,
}

impl Entry for Part {
    type Key = (Nanos, u64, u32, u16);

    fn key(&self) -> Self::Key {
        (self.end, self.values.dispatch, self.counter, self.values.first)
    }
}

/// Counter values of a process.
#[derive(Default)]
pub(super) struct Counted<'a> {
    amounts: Sorted<RowValue>,
    parts: Sorted<Part>,
    /// All counters of the process, sorted by name and agent.
    all: Vec<&'a CounterInfo>,
    /// Counters with values.
    pub(super) counters: Vec<&'a CounterInfo>,
}

/// A dispatch with its values.
pub(super) struct CountedRow {
    pub(super) row: Row<Dispatch>,
    /// Values by index of the counter.
    values: Vec<(u32, f64)>,
    parts: Vec<Part>,
}

impl<'a> Counted<'a> {
    /// Values of dispatches that have rows and whose kernels are selected: the name matches the include pattern and not
    /// the exclude pattern.
    pub(super) fn new(scope: &Scope<'a>, walk: &mut Walk<'_>, dispatches: &Sorted<Numbered>) -> io::Result<Self> {
        let own = scope.process.id;
        let known = scope.run.counters.iter().filter(|info| info.process == own);
        // The last description of a counter counts.
        let known: BTreeMap<CounterId, &CounterInfo> = known.map(|info| (info.id, info)).collect();
        let mut all: Vec<&CounterInfo> = known.into_values().collect();
        all.sort_by(|a, b| (&a.name, a.agent, a.id).cmp(&(&b.name, b.agent, b.id)));
        let places: BTreeMap<CounterId, u32> = all.iter().map(|info| info.id).zip(0..).collect();
        let wanted: Vec<bool> = (0..scope.run.kernels.len() as u32)
            .map(|kernel| is_wanted(scope, KernelId(kernel)))
            .collect();
        let is_wanted = |kernel: KernelId| match wanted.get(kernel.0 as usize) {
            Some(wanted) => *wanted,
            None => is_wanted(scope, kernel),
        };
        let (mut amounts, mut parts) = (
            Sorter::new(scope.place, SORT_BUFFER_BYTES),
            Sorter::new(scope.place, SORT_BUFFER_BYTES),
        );
        let mut seen = BTreeSet::new();
        let mut finding = DispatchFinder::new(dispatches);
        for value in walk.values.of(own) {
            let Value(value) = value?;
            let dispatch = value.dispatch.unwrap_or(0);
            let found = finding.find(dispatch)?.filter(|found| is_wanted(found.kernel));
            if let (Some(found), Some(counter)) = (found, places.get(&value.counter)) {
                seen.insert(*counter);
                amounts.put(RowValue {
                    end: found.end,
                    dispatch,
                    counter: *counter,
                    value: value.value,
                })?;
            }
        }
        let mut finding = DispatchFinder::new(dispatches);
        for values in walk.instances.of(own) {
            let Instances(values) = values?;
            let found = finding.find(values.dispatch)?.filter(|found| is_wanted(found.kernel));
            if let (Some(found), Some(counter)) = (found, places.get(&values.counter)) {
                parts.put(Part {
                    end: found.end,
                    counter: *counter,
                    values,
                })?;
            }
        }
        let counters = seen.iter().filter_map(|place| all.get(*place as usize).copied());
        Ok(Self {
            amounts: amounts.finish()?,
            parts: parts.finish()?,
            counters: counters.collect(),
            all,
        })
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.amounts.is_empty()
    }

    /// Dispatches in row order, each with its values.
    pub(super) fn rows<'v>(
        &'v self,
        dispatches: &'v Sorted<Row<Dispatch>>,
    ) -> impl Iterator<Item = io::Result<CountedRow>> + 'v {
        self.joined(dispatches, None)
    }

    /// As `rows`, with the values of instances.
    pub(super) fn rows_with_parts<'v>(
        &'v self,
        dispatches: &'v Sorted<Row<Dispatch>>,
    ) -> impl Iterator<Item = io::Result<CountedRow>> + 'v {
        self.joined(dispatches, Some(&self.parts))
    }

    fn joined<'v>(
        &'v self,
        dispatches: &'v Sorted<Row<Dispatch>>,
        parts: Option<&'v Sorted<Part>>,
    ) -> impl Iterator<Item = io::Result<CountedRow>> + 'v {
        let mut amounts = self.amounts.iter().peekable();
        let mut parts = parts.map(|parts| parts.iter().peekable());
        dispatches.iter().map(move |row| {
            let row = row?;
            let key = row.key();
            let own = taken(&mut amounts, key, MAX_VALUES, |one| (one.end, one.dispatch))?;
            let parts = match &mut parts {
                Some(parts) => taken(parts, key, MAX_PARTS, |one| (one.end, one.values.dispatch))?,
                None => Vec::new(),
            };
            Ok(CountedRow {
                row,
                values: own.into_iter().map(|one| (one.counter, one.value)).collect(),
                parts,
            })
        })
    }

    /// A counter by its index.
    pub(super) fn counter(&self, place: u32) -> Option<&'a CounterInfo> {
        self.all.get(place as usize).copied()
    }

    /// Values of a dispatch, sorted by counter name.
    pub(super) fn values(&self, row: &CountedRow) -> impl Iterator<Item = (&'a CounterInfo, f64)> {
        let values = row.values.iter();
        values.filter_map(|(place, value)| Some((self.counter(*place)?, *value)))
    }

    /// Values of a dispatch, by instance where known.
    pub(super) fn instances(&self, row: &CountedRow) -> impl Iterator<Item = (&'a CounterInfo, f64)> {
        row.values.iter().flat_map(move |(place, sum)| {
            let from = row.parts.partition_point(|part| part.counter < *place);
            let own = row.parts.get(from..).unwrap_or_default().iter();
            let own = own.take_while(move |part| part.counter == *place);
            let mut own = own.flat_map(|part| part.values.each()).peekable();
            let sum = own.peek().is_none().then_some(*sum);
            let values = own.map(|part| part.1).chain(sum);
            values.filter_map(move |value| Some((self.counter(*place)?, value)))
        })
    }

    /// Names of all counters, each once.
    pub(super) fn names(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = self.counters.iter().map(|info| &*info.name).collect();
        names.dedup();
        names
    }
}

impl CountedRow {
    /// Values by index of the counter.
    pub(super) fn into_values(self) -> (Row<Dispatch>, Vec<(u32, f64)>) {
        (self.row, self.values)
    }

    pub(super) const fn is_counted(&self) -> bool {
        !self.values.is_empty()
    }
}

/// Takes the entries with this key; earlier ones belong to no row.
fn taken<T: Entry>(
    entries: &mut Peekable<Iter<'_, T>>,
    key: (Nanos, u64),
    most: usize,
    of: fn(&T) -> (Nanos, u64),
) -> io::Result<Vec<T>> {
    let mut own = Vec::new();
    while let Some(entry) = entries.next_if(|entry| entry.as_ref().map_or(true, |entry| of(entry) <= key)) {
        let entry = entry?;
        if of(&entry) == key && own.len() < most {
            own.push(entry);
        }
    }
    Ok(own)
}

/// Whether a kernel's values are selected, independent of renaming.
fn is_wanted(scope: &Scope<'_>, kernel: KernelId) -> bool {
    let KernelChoice { include, exclude } = &scope.choice.counted;
    let name = scope.called(kernel).unwrap_or("");
    include.as_ref().is_none_or(|pattern| pattern.is_match(name))
        && !exclude.as_ref().is_some_and(|pattern| pattern.is_match(name))
}
