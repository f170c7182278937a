//! Finds the stream of a HIP call: from the work that it caused, or from an argument.

use super::View;
use crate::arguments::{self, Argument};
use crate::numbers::Numbers;
use crate::records::Row;
use crate::sort::{Entry, Sorted, Sorter};
use roctop_trace::item::{ApiCall, StreamId};
use serde::{Deserialize, Serialize};
use std::io;

/// Stream of a call, by correlation id.
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

/// Memory for these while they are sorted, bytes.
const SORT_BUFFER_BYTES: usize = 16 << 20;

impl View<'_> {
    /// Finds the streams of calls, for [`View::stream_of_call`].
    pub(crate) fn find_streams(&self) -> io::Result<()> {
        if self.streams.get().is_none() {
            let _ = self.streams.set(self.streams_of_work()?);
        }
        Ok(())
    }

    /// Stream of a HIP call: that of its work if these were found, or the one in its arguments; 0 if none.
    pub(crate) fn stream_of_call(&self, row: &Row<ApiCall>, arguments: &[Argument]) -> u32 {
        let caused = self.streams.get().map(|streams| streams.get(row.id));
        let caused = caused.filter(|number| *number != 0);
        let named = || self.facts.stream(arguments::stream(arguments)?);
        caused.or_else(named).unwrap_or(0)
    }

    /// Stream numbers by correlation id; ids are dense.
    fn streams_of_work(&self) -> io::Result<Numbers> {
        let mut caused = Sorter::new(self.place, SORT_BUFFER_BYTES);
        self.add_caused(&mut caused, &self.rows.dispatches, |dispatch| dispatch.stream)?;
        self.add_caused(&mut caused, &self.rows.copies, |copy| copy.stream)?;
        let caused = caused.finish()?;
        Numbers::new(self.place, caused.iter().map(|one| one.map(|one| (one.id, one.stream))))
    }
    /// Adds the streams of work, found on all threads.
    fn add_caused<T: Clone>(
        &self,
        caused: &mut Sorter<Caused>,
        rows: &Sorted<Row<T>>,
        stream: impl Fn(&T) -> Option<StreamId> + Sync,
    ) -> io::Result<()>
    where
        Row<T>: Entry,
    {
        // Work belongs to an HSA call inside a HIP call.
        let of_row = |row: Row<T>| {
            let stream = self.stream(stream(&row.record));
            let ids = [row.id, row.ancestor].into_iter();
            ids.filter(move |id| *id != 0 && stream != 0)
                .map(move |id| Caused { id, stream })
        };
        let of_rows = |rows: io::Result<Vec<Row<T>>>| io::Result::Ok(rows?.into_iter().flat_map(of_row).collect());
        self.place.in_order(rows.chunks(), of_rows, |mut found: Vec<Caused>| {
            caused.append(found.len(), move |all| all.append(&mut found))
        })
    }
}
