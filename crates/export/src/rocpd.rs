//! `results.db`: an SQLite database of one process, in the rocpd schema.
//!
//! Ids of queues, streams and kernels are the numbers in the other formats. Ids of processes, threads and agents are
//! those of the kernel and the driver. `stack_id` is the correlation id.

mod addresses;
mod calls;
mod facts;
mod schema;
mod work;

use super::graphs::Graphs;
use super::head::Head;
use super::view::View;
use crate::error::Result;
use roctop_trace::item::CounterId;
use rusqlite::{Connection, Statement, params};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// Number of strings whose row ids are cached.
const MAX_CACHED_STRINGS: usize = 1 << 16;

/// SQLite's integers are signed.
const fn signed(number: u64) -> i64 {
    number as i64
}

/// Writes the database of one process at `path`, which must not exist.
pub(super) fn write(view: &View<'_>, head: &Head<'_>, path: &Path) -> Result<()> {
    let database = Connection::open(path)?;
    // The file is renamed when it is complete, so no rollback is needed.
    database.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; BEGIN;",
    )?;
    let guid = guid(view);
    let suffix = format!("_{}", guid.replace('-', "_"));
    for (name, columns) in schema::TABLES {
        database.execute_batch(&schema::table(name, columns, &suffix, &guid))?;
    }
    let mut writer = Writer {
        view,
        database: &database,
        suffix,
        inserts: HashMap::new(),
        strings: HashMap::new(),
        string: 0,
        threads: HashSet::new(),
        tracks: HashMap::new(),
        counters: BTreeMap::new(),
        graphs: Graphs::new(view)?,
        event: 0,
    };
    writer.facts(head, &guid)?;
    writer.counters()?;
    writer.regions()?;
    writer.markers()?;
    writer.dispatches()?;
    writer.copies()?;
    writer.memory()?;
    writer.graph_launches()?;
    for (name, body) in schema::VIEWS {
        database.execute_batch(&format!("CREATE VIEW \"{name}\" AS SELECT {body};"))?;
    }
    database.execute_batch("COMMIT;")?;
    drop(writer);
    database.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// Id of the run in UUID form, from host, process and start.
fn guid(view: &View<'_>) -> String {
    let mut hash = [0xcbf2_9ce4_8422_2325u64, 0x9e37_79b9_7f4a_7c15];
    let text = format!("{} {} {}", view.process.host, view.process.pid, view.times().0);
    for byte in text.bytes() {
        for half in &mut hash {
            *half = (*half ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3).rotate_left(7);
        }
    }
    let [a, b] = hash;
    format!(
        "{:08x}-{:04x}-8{:03x}-8{:03x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        b >> 48 & 0xfff,
        b & 0xffff_ffff_ffff
    )
}

/// Writer of rows; caches the ids that other rows refer to.
struct Writer<'a> {
    view: &'a View<'a>,
    database: &'a Connection,
    /// Suffix of the table names.
    suffix: String,
    /// Statements that insert a row, by table. To look them up by their texts costs as much as a row.
    inserts: HashMap<&'static str, Statement<'a>>,
    strings: HashMap<String, i64>,
    /// Number of strings so far; not all are cached.
    string: i64,
    threads: HashSet<u32>,
    /// Track ids, by thread and name id.
    tracks: HashMap<(u32, i64), i64>,
    /// Row ids of counters.
    counters: BTreeMap<CounterId, i64>,
    graphs: Graphs,
    /// Id of the last event.
    event: i64,
}

impl<'a> Writer<'a> {
    /// The statement that inserts a row into a table; its columns are the same each time.
    fn insert(&mut self, table: &'static str, columns: &str) -> Result<&mut Statement<'a>> {
        match self.inserts.entry(table) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(statement(self.database, &self.suffix, table, columns)?)),
        }
    }
}

/// Prepares a statement that inserts a row with these columns.
fn statement<'a>(database: &'a Connection, suffix: &str, table: &str, columns: &str) -> Result<Statement<'a>> {
    let names: Vec<String> = columns.split(' ').map(|name| format!("\"{name}\"")).collect();
    let places = vec!["?"; names.len()].join(",");
    let sql = format!(
        "INSERT INTO \"rocpd_{table}{suffix}\" ({}) VALUES ({places})",
        names.join(",")
    );
    Ok(database.prepare(&sql)?)
}

impl Writer<'_> {
    /// Id of a string; a new one gets a row.
    fn string(&mut self, text: &str) -> Result<i64> {
        if let Some(known) = self.strings.get(text) {
            return Ok(*known);
        }
        if self.strings.len() >= MAX_CACHED_STRINGS {
            self.strings.clear();
        }
        self.string += 1;
        let id = self.string;
        self.insert("string", "id string")?.execute(params![id, text])?;
        self.strings.insert(text.to_owned(), id);
        Ok(id)
    }

    /// Id of a thread; a new one gets a row.
    fn thread(&mut self, tid: u32) -> Result<i64> {
        if !self.threads.insert(tid) {
            return Ok(tid.into());
        }
        let id = i64::from(tid);
        let (view, process) = (self.view, self.view.process);
        let known = view.run.threads.iter();
        let mut own = known.filter(|thread| thread.process == process.id && thread.tid == tid);
        let name = own.next().map_or("", |thread| &*thread.name);
        self.insert("info_thread", "id nid ppid pid tid name")?
            .execute(params![id, 1, process.parent, process.pid, tid, name])?;
        Ok(id)
    }

    /// Adds an event: its id, that of its ancestor, and the external one of the program.
    fn event(&mut self, category: &str, [id, parent, external]: [u64; 3], data: &str) -> Result<i64> {
        let category = self.string(category)?;
        self.event += 1;
        let event = self.event;
        self.insert(
            "event",
            "id category_id stack_id parent_stack_id correlation_id extdata",
        )?
        .execute(params![
            event,
            category,
            signed(id),
            signed(parent),
            signed(external),
            data
        ])?;
        Ok(event)
    }
}
