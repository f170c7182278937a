//! Which stream a call of HIP works on: the work that it caused tells it, or an argument.

use super::View;
use crate::arguments::{self, Argument};
use crate::numbers::Numbers;
use crate::records::Row;
use crate::sort::{Entry, Sorter};
use roctop_trace::item::{ApiCall, StreamId};
use serde::{Deserialize, Serialize};
use std::io;

/// A stream by the correlation id of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Caused {
    id: u64,
    stream: u32,
}

impl Entry for Caused {
    type Key = (u64, u32);

    fn key(&self) -> Self::Key {
        (self.id, self.stream)
    }
}

/// Bytes of these that are held while they are sorted.
const SORT_BUFFER_BYTES: usize = 16 << 20;

impl View<'_> {
    /// The stream that a call of HIP works on: that of the work it caused, or the one that its arguments name; 0 for none.
    pub(crate) fn stream_of_call(&self, row: &Row<ApiCall>, arguments: &[Argument]) -> u32 {
        let caused = Some(self.streams.get(row.id)).filter(|number| *number != 0);
        let named = || self.facts.stream(arguments::stream(arguments)?);
        caused.or_else(named).unwrap_or(0)
    }

    /// Numbers of streams by the ids of calls; correlation ids are dense.
    pub(super) fn streams_of_work(&self) -> io::Result<Numbers> {
        let mut caused = Sorter::new(self.place, SORT_BUFFER_BYTES);
        // The call of HSA that work belongs to lies in one of HIP.
        let mut put = |ids: [u64; 2], stream: Option<StreamId>| {
            let stream = self.stream(stream);
            let ids = ids.into_iter().filter(|id| *id != 0 && stream != 0);
            ids.map(|id| Caused { id, stream }).try_for_each(|one| caused.put(one))
        };
        for row in self.rows.dispatches.iter() {
            let row = row?;
            put([row.id, row.ancestor], row.record.stream)?;
        }
        for row in self.rows.copies.iter() {
            let row = row?;
            put([row.id, row.ancestor], row.record.stream)?;
        }
        let caused = caused.finish()?;
        Numbers::new(self.place, caused.iter().map(|one| one.map(|one| (one.id, one.stream))))
    }
}
