//! Addresses of copies, from the arguments of the calls that requested them.

use crate::arguments;
use crate::error::Result;
use crate::numbers::Numbers;
use crate::records::Row;
use crate::sort::{Entry, Sorted, Sorter};
use crate::view::View;
use crate::workspace::Workspace;
use roctop_trace::item::{ApiCall, Copy};
use serde::{Deserialize, Serialize};
use std::io;

/// Memory for calls while they are sorted, bytes.
const SORT_BUFFER_BYTES: usize = 16 << 20;

/// A call that copies.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Call {
    id: u64,
    to: u64,
    from: u64,
    bytes: u64,
}

impl Entry for Call {
    type Key = u64;

    fn key(&self) -> u64 {
        self.id
    }
}

impl Call {
    /// `None` for other calls, and for those without recorded arguments.
    fn of(view: &View<'_>, row: &Row<ApiCall>) -> Option<Self> {
        if !view.function(&row.record).starts_with("hipMemcpy") {
            return None;
        }
        let arguments = arguments::of(view, &row.record);
        let value = |name: &str| arguments.iter().find(|one| one.name == name).map(|one| &*one.value);
        let address = |name| u64::from_str_radix(value(name)?.strip_prefix("0x")?, 16).ok();
        Some(Self {
            id: row.id,
            to: address("dst")?,
            from: address("src")?,
            bytes: value("sizeBytes")?.parse().ok()?,
        })
    }
}

/// Large numbers by correlation id.
#[derive(Default)]
struct Wide([Numbers; 2]);

impl Wide {
    fn new(place: &Workspace, calls: &Sorted<Call>, number: impl Fn(&Call) -> u64) -> io::Result<Self> {
        let half = |shift: u32| {
            let halves = calls
                .iter()
                .map(|call| call.map(|call| (call.id, (number(&call) >> shift) as u32)));
            Numbers::new(place, halves)
        };
        Ok(Self([half(0)?, half(32)?]))
    }

    fn get(&self, id: u64) -> u64 {
        let [low, high] = self.0.each_ref().map(|half| u64::from(half.get(id)));
        high << 32 | low
    }
}

/// Addresses by the call's correlation id.
#[derive(Default)]
pub(super) struct Addresses {
    to: Wide,
    from: Wide,
    bytes: Wide,
}

impl Addresses {
    pub(super) fn new(view: &View<'_>) -> Result<Self> {
        if view.rows.copies.is_empty() {
            return Ok(Self::default());
        }
        let mut calls = Sorter::new(view.place, SORT_BUFFER_BYTES);
        for row in view.rows.hip.iter() {
            Call::of(view, &row?).map_or(Ok(()), |call| calls.put(call))?;
        }
        let calls = calls.finish()?;
        Ok(Self {
            to: Wide::new(view.place, &calls, |call| call.to)?,
            from: Wide::new(view.place, &calls, |call| call.from)?,
            bytes: Wide::new(view.place, &calls, |call| call.bytes)?,
        })
    }

    /// Destination and source of a copy; none if it is a part of what its call copies.
    pub(super) fn of(&self, row: &Row<Copy>) -> Option<[u64; 2]> {
        let ids = [row.id, row.ancestor].into_iter();
        let mut known = ids.filter(|id| row.record.bytes > 0 && self.bytes.get(*id) == row.record.bytes);
        known.next().map(|id| [self.to.get(id), self.from.get(id)])
    }

    /// Errors: a number could not be read.
    pub(super) fn check(&self) -> io::Result<()> {
        let all = [&self.to, &self.from, &self.bytes].into_iter().flat_map(|wide| &wide.0);
        all.into_iter().try_for_each(Numbers::check)
    }
}
