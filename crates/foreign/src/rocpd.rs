//! rocpd databases, by the views that all of their releases have.

use crate::Error;
use crate::tally::Tally;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Maximum memory of `SQLite`'s pages, KiB.
const CACHE_KIB: i64 = 16 << 10;

/// Reads a database; nothing of it is changed.
pub(crate) fn read(path: &Path, mut tally: Tally) -> Result<Tally, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    database.pragma_update(None, "cache_size", -CACHE_KIB)?;
    database.pragma_update(None, "trusted_schema", false)?;
    let mut kernels = database.prepare("SELECT name, start, \"end\", stack_id, dispatch_id FROM kernels")?;
    let mut rows = kernels.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        let name = tally.name(&text);
        let (begin, end): (i64, i64) = (row.get(1)?, row.get(2)?);
        let (correlation, dispatch): (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
        tally.kernel(name, begin, end, correlation.map(|id| id as u64));
        tally.dispatch(dispatch.unwrap_or_default() as u64);
    }
    let mut calls = database.prepare("SELECT name, start, stack_id, tid FROM regions WHERE name LIKE 'hip%'")?;
    let mut rows = calls.query([])?;
    while let Some(row) = rows.next()? {
        let (function, begin, correlation): (String, i64, Option<i64>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let thread: Option<i64> = row.get(3)?;
        tally.call(
            &function,
            thread.unwrap_or_default() as u64,
            begin,
            correlation.map(|id| id as u64),
        );
    }
    Ok(tally)
}
