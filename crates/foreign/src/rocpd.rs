//! rocpd databases, by the views that all of their releases have.

use crate::Error;
use crate::tally::Tally;
use rusqlite::{Connection, OpenFlags, Row};
use std::path::Path;

/// Maximum memory of `SQLite`'s pages, KiB.
const CACHE_KIB: i64 = 16 << 10;
/// Maximum memory of `SQLite` altogether, bytes: a value may have a gigabyte.
const HEAP: i64 = 64 << 20;

/// A process: its number, and its node's, which may have equal ones.
fn process(row: &Row<'_>, node: usize, pid: usize) -> rusqlite::Result<u64> {
    let (node, pid): (Option<i64>, Option<i64>) = (row.get(node)?, row.get(pid)?);
    Ok(((node.unwrap_or_default() as u64) << 32) ^ pid.unwrap_or_default() as u64)
}

/// Reads a database; nothing of it is changed.
pub(crate) fn read(path: &Path, mut tally: Tally) -> Result<Tally, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    database.pragma_update(None, "cache_size", -CACHE_KIB)?;
    database.pragma_update(None, "trusted_schema", false)?;
    database.query_row(&format!("PRAGMA hard_heap_limit = {HEAP}"), [], |_| Ok(()))?;
    // No longer names are demangled.
    let mut kernels = database
        .prepare("SELECT substr(name, 1, 65536), start, \"end\", stack_id, dispatch_id, nid, pid, tid FROM kernels")?;
    let mut rows = kernels.query([])?;
    // A row takes a byte or more: a view that makes up more has no end.
    let mut left = std::fs::metadata(path)?.len();
    let mut count = || {
        left = left.checked_sub(1).ok_or(Error::Unknown)?;
        Ok::<_, Error>(())
    };
    while let Some(row) = rows.next()? {
        count()?;
        let text: String = row.get(0)?;
        let name = tally.name(&text);
        let (begin, end): (i64, i64) = (row.get(1)?, row.get(2)?);
        let (correlation, dispatch): (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
        let process = process(row, 5, 6)?;
        tally.kernel(name, [begin, end], Some(process), correlation.map(|id| id as u64));
        if let Some(thread) = row.get::<_, Option<i64>>(7)? {
            tally.launched_by((process, thread as u64), correlation.map(|id| id as u64));
        }
        tally.dispatch(process, dispatch.unwrap_or_default() as u64);
    }
    let mut calls = database
        .prepare("SELECT substr(name, 1, 128), start, stack_id, tid, nid, pid FROM regions WHERE name LIKE 'hip%'")?;
    let mut rows = calls.query([])?;
    while let Some(row) = rows.next()? {
        count()?;
        let (function, begin, correlation): (String, i64, Option<i64>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let thread: Option<i64> = row.get(3)?;
        let thread = (process(row, 4, 5)?, thread.unwrap_or_default() as u64);
        let correlation = correlation.map(|id| id as u64);
        tally.called(thread, correlation);
        tally.call(&function, thread, begin, correlation);
    }
    Ok(tally)
}
