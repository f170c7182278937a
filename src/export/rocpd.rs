//! `results.db`: rocpd, an SQLite database of one process.
//!
//! Ids of queues, streams and kernels are the numbers that the other formats have, those of the process, its threads and
//! agents the system's own; `stack_id` is the correlation id.

mod schema;

use super::arguments::{self, Argument};
use super::config;
use super::counted::CountedRow;
use super::json::object::symbol_names;
use super::json::record::external;
use super::json::strings::Tables;
use super::json::{self, Head, System};
use super::nesting::{Mark, Row};
use super::sort::Sorted;
use super::view::{self, View};
use crate::item::{CounterId, Span};
use anyhow::Result;
use roctop_ring::record::{counter_flag, memory, scratch};
use rusqlite::{CachedStatement, Connection, params};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// Texts whose rows are remembered.
const MOST_STRINGS: usize = 1 << 16;

/// SQLite's whole numbers have a sign.
const fn signed(number: u64) -> i64 {
    number as i64
}

/// Writes the database of one process at `path`, where nothing is.
pub(super) fn write(view: &View<'_>, head: &Head<'_>, path: &Path) -> Result<()> {
    let database = Connection::open(path)?;
    // The file has its name only when it is whole: nothing needs to be undone.
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
        strings: HashMap::new(),
        string: 0,
        threads: HashSet::new(),
        tracks: HashMap::new(),
        counters: BTreeMap::new(),
        event: 0,
    };
    writer.facts(head, &guid)?;
    writer.counters()?;
    writer.regions()?;
    writer.markers()?;
    writer.dispatches()?;
    writer.copies()?;
    writer.memory()?;
    for (name, body) in schema::VIEWS {
        database.execute_batch(&format!("CREATE VIEW \"{name}\" AS SELECT {body};"))?;
    }
    database.execute_batch("COMMIT;")?;
    drop(writer);
    database.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// An id of the run: of its host, process and beginning, in the shape of a UUID.
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

struct Writer<'a> {
    view: &'a View<'a>,
    database: &'a Connection,
    suffix: String,
    strings: HashMap<String, i64>,
    /// How many there were: those of long ago are not kept.
    string: i64,
    threads: HashSet<u32>,
    tracks: HashMap<(u32, i64), i64>,
    /// Ids of the counters' rows.
    counters: BTreeMap<CounterId, i64>,
    event: i64,
}

impl<'a> Writer<'a> {
    /// A statement that inserts a row, by the table's columns.
    fn insert(&self, table: &str, columns: &str) -> Result<CachedStatement<'a>> {
        let names: Vec<String> = columns.split(' ').map(|name| format!("\"{name}\"")).collect();
        let places = vec!["?"; names.len()].join(",");
        let sql = format!(
            "INSERT INTO \"rocpd_{table}{}\" ({}) VALUES ({places})",
            self.suffix,
            names.join(",")
        );
        Ok(self.database.prepare_cached(&sql)?)
    }

    fn string(&mut self, text: &str) -> Result<i64> {
        if let Some(known) = self.strings.get(text) {
            return Ok(*known);
        }
        if self.strings.len() >= MOST_STRINGS {
            self.strings.clear();
        }
        self.string += 1;
        let id = self.string;
        self.insert("string", "id string")?.execute(params![id, text])?;
        self.strings.insert(text.to_owned(), id);
        Ok(id)
    }

    fn thread(&mut self, tid: u32) -> Result<i64> {
        if !self.threads.insert(tid) {
            return Ok(tid.into());
        }
        let id = i64::from(tid);
        let process = self.view.process;
        let known = self.view.run.threads.iter();
        let mut own = known.filter(|thread| thread.process == process.id && thread.tid == tid);
        let name = own.next().map_or("", |thread| &*thread.name);
        self.insert("info_thread", "id nid ppid pid tid name")?
            .execute(params![id, 1, process.parent, process.pid, tid, name])?;
        Ok(id)
    }

    /// An event: its id, that of what is around it, and the one that the program gave.
    fn event(&mut self, category: &str, [id, parent, external]: [u64; 3], data: &str) -> Result<i64> {
        let category = self.string(category)?;
        self.event += 1;
        self.insert(
            "event",
            "id category_id stack_id parent_stack_id correlation_id extdata",
        )?
        .execute(params![
            self.event,
            category,
            signed(id),
            signed(parent),
            signed(external),
            data
        ])?;
        Ok(self.event)
    }

    fn facts(&mut self, head: &Head<'_>, guid: &str) -> Result<()> {
        let view = self.view;
        let mut metadata = self.insert("metadata", "tag value")?;
        for (tag, value) in [
            ("schema_version", schema::VERSION),
            ("uuid", &self.suffix),
            ("guid", guid),
        ] {
            metadata.execute(params![tag, value])?;
        }
        let (system, process) = (System::of(view.process), view.process);
        self.insert(
            "info_node",
            "id hash machine_id system_name hostname release version hardware_name domain_name",
        )?
        .execute(params![
            1,
            0,
            system.machine,
            system.name,
            &*process.host,
            system.release,
            system.version,
            system.hardware,
            system.domain
        ])?;
        let (first, last) = view.times();
        let command = head.command_of(view).join(" ");
        let mut config = Vec::new();
        config::object(&config::entries(view, head), &mut config)?;
        self.insert("info_process", "id nid ppid pid init fini start end command extdata")?
            .execute(params![
                process.pid,
                1,
                process.parent,
                process.pid,
                signed(first),
                signed(last),
                signed(first),
                signed(last),
                command,
                String::from_utf8(config)?
            ])?;
        self.agents()?;
        self.queues_and_streams()?;
        self.kernels()
    }

    fn agents(&self) -> Result<()> {
        let mut insert = self.insert(
            "info_agent",
            "id nid pid type absolute_index logical_index type_index uuid name model_name vendor_name product_name \
user_name extdata",
        )?;
        for (logical, node) in self.view.nodes.iter().enumerate() {
            let (index, gpu) = self.view.type_index(node.id);
            // Its readers take the whole agent from here, as it is in the JSON file.
            let mut whole = Vec::new();
            json::agent::write(self.view, logical, node, &mut whole)?;
            let product = if gpu {
                self.view.product(node.id)
            } else {
                node.cpu_model.clone()
            };
            insert.execute(params![
                node.id,
                1,
                self.view.process.pid,
                if gpu { "GPU" } else { "CPU" },
                node.id,
                logical as i64,
                index as i64,
                signed(node.property("unique_id")),
                node.name(),
                node.model,
                if gpu { "AMD" } else { "CPU" },
                product,
                product,
                String::from_utf8(whole)?
            ])?;
        }
        Ok(())
    }

    /// The counters that have values.
    fn counters(&mut self) -> Result<()> {
        let mut insert = self.insert(
            "info_pmc",
            "id nid pid agent_id target_arch name symbol description component value_type block expression is_constant \
is_derived",
        )?;
        for (id, info) in (1..).zip(&self.view.counted.counters) {
            let flag = |bit: u16| info.flags & bit != 0;
            insert.execute(params![
                id,
                1,
                self.view.process.pid,
                self.view.node(Some(info.agent)),
                "GPU",
                &*info.name,
                &*info.name,
                &*info.description,
                "rocm",
                "ABS",
                &*info.block,
                &*info.expression,
                flag(counter_flag::CONSTANT),
                flag(counter_flag::DERIVED)
            ])?;
            self.counters.insert(info.id, id);
        }
        Ok(())
    }

    /// The values of a dispatch: of each instance where they are known, else their sum.
    fn values(&self, row: &CountedRow, event: i64) -> Result<()> {
        if row.is_counted() {
            let mut insert = self.insert("pmc_event", "event_id pmc_id value")?;
            for (info, value) in self.view.counted.instances(row) {
                insert.execute(params![event, self.counters.get(&info.id), value])?;
            }
        }
        Ok(())
    }

    fn queues_and_streams(&self) -> Result<()> {
        let own = self.view.process.id;
        let mut insert = self.insert("info_queue", "id nid pid name")?;
        for queue in self.view.run.queues.iter().filter(|queue| queue.process == own) {
            insert.execute(params![
                queue.number,
                1,
                self.view.process.pid,
                format!("Queue {}", queue.number)
            ])?;
        }
        let mut insert = self.insert("info_stream", "id nid pid name")?;
        let streams = self.view.run.streams.iter().filter(|stream| stream.process == own);
        let mut has_default = false;
        for stream in streams {
            let usual = format!("Stream {}", stream.number);
            let name = if stream.name.is_empty() { &*usual } else { &*stream.name };
            has_default |= stream.number == 0;
            insert.execute(params![stream.number, 1, self.view.process.pid, name])?;
        }
        if !has_default {
            insert.execute(params![0, 1, self.view.process.pid, "Stream 0"])?;
        }
        Ok(())
    }

    fn kernels(&self) -> Result<()> {
        let facts = self.view.facts;
        let mut insert = self.insert(
            "info_code_object",
            "id nid pid agent_id uri load_base load_size load_delta storage_type extdata",
        )?;
        for (id, object) in &facts.code_objects {
            let node = facts.nodes.get(&object.agent).copied().unwrap_or_default();
            insert.execute(params![
                signed(*id),
                1,
                self.view.process.pid,
                node,
                facts.text(object.uri),
                signed(object.base),
                signed(object.size),
                signed(object.base),
                "MEMORY",
                "{\"size\":88,\"storage_type\":2}"
            ])?;
        }
        let mut insert = self.insert(
            "info_kernel_symbol",
            "id nid pid code_object_id kernel_name display_name kernel_object kernarg_segment_size \
kernarg_segment_alignment group_segment_size private_segment_size sgpr_count arch_vgpr_count accum_vgpr_count extdata",
        )?;
        for kernel in &self.view.run.kernels {
            let known = facts
                .symbol(&kernel.mangled, kernel.group_size)
                .copied()
                .unwrap_or_default();
            let registers = kernel.registers.unwrap_or_default();
            let id = i64::from(kernel.id.0) + 1;
            let (demangled, truncated) = symbol_names(kernel);
            let data = serde_json::json!({
                "size": 88,
                "kernel_id": id,
                "formatted_kernel_name": self.view.symbol_name(kernel),
                "demangled_kernel_name": demangled,
                "truncated_kernel_name": truncated,
                "kernel_address": { "handle": known.kernel_object },
            });
            insert.execute(params![
                id,
                1,
                self.view.process.pid,
                signed(known.code_object),
                view::with_kd(&kernel.mangled),
                self.view.symbol_name(kernel),
                signed(known.kernel_object),
                known.kernarg_size,
                16,
                kernel.group_size,
                known.private_size,
                registers.sgpr,
                registers.vgpr,
                registers.agpr,
                data.to_string()
            ])?;
        }
        Ok(())
    }

    fn region(&mut self, name: &str, tid: u32, span: Span, event: i64) -> Result<()> {
        let (name, thread) = (self.string(name)?, self.thread(tid)?);
        self.insert("region", "nid pid tid start end name_id event_id")?
            .execute(params![
                1,
                self.view.process.pid,
                thread,
                signed(span.begin),
                signed(span.end),
                name,
                event
            ])?;
        Ok(())
    }

    /// The arguments of the call that an event is of.
    fn arguments(&self, event: i64, arguments: &[Argument]) -> Result<()> {
        let mut insert = self.insert("arg", "event_id position type name value extdata")?;
        for (position, argument) in arguments.iter().enumerate() {
            insert.execute(params![
                event,
                position as i64,
                arguments::demangled(argument.kind),
                argument.name,
                argument.value,
                argument.given.as_ref().map_or_else(
                    || "{}".to_owned(),
                    |given| serde_json::json!({ "given": given }).to_string()
                )
            ])?;
        }
        Ok(())
    }

    fn regions(&mut self) -> Result<()> {
        let view = self.view;
        let libraries = view.rows.libraries.iter().flat_map(Sorted::iter);
        for row in view.rows.hip.iter().chain(view.rows.hsa.iter()).chain(libraries) {
            let row = row?;
            let call = &row.record;
            let event = self.event(view.domain(call), [row.id, row.ancestor, 0], "{}")?;
            self.arguments(event, &arguments::of(view, call))?;
            self.region(view.function(call), view.tid(Some(call.thread)), call.span, event)?;
        }
        Ok(())
    }

    /// Ranges are regions, marks are samples on a track of their thread.
    fn markers(&mut self) -> Result<()> {
        let view = self.view;
        let tables = Tables::new(view);
        for row in view.rows.markers.iter() {
            let row: Row<Mark> = row?;
            let marker = &row.record;
            let data = serde_json::json!({ "message": view.message(marker) }).to_string();
            let event = self.event(view.marker_domain(marker), [row.id, row.ancestor, 0], &data)?;
            let name = tables.marker_name(marker);
            let tid = view.tid(Some(marker.thread));
            if marker.span.end > marker.span.begin {
                self.region(name, tid, marker.span, event)?;
                continue;
            }
            let (name, thread) = (self.string(name)?, self.thread(tid)?);
            let next = self.tracks.len() as i64 + 1;
            let track = *self.tracks.entry((tid, name)).or_insert(next);
            if track == next {
                self.insert("track", "id nid pid tid name_id")?.execute(params![
                    track,
                    1,
                    view.process.pid,
                    thread,
                    name
                ])?;
            }
            self.insert("sample", "track_id timestamp event_id")?.execute(params![
                track,
                signed(marker.span.begin),
                event
            ])?;
        }
        Ok(())
    }

    fn dispatches(&mut self) -> Result<()> {
        let view = self.view;
        for found in view.counted.rows(&view.rows.dispatches, true) {
            let found = found?;
            let row = &found.row;
            let d = &row.record;
            let event = self.event("KERNEL_DISPATCH", [row.id, row.id, external(view, row)], "{}")?;
            let region = self.string(&view.region_name(row.region))?;
            let thread = self.thread(view.tid(d.thread))?;
            self.insert(
                "kernel_dispatch",
                "nid pid tid agent_id kernel_id dispatch_id queue_id stream_id start end private_segment_size \
group_segment_size workgroup_size_x workgroup_size_y workgroup_size_z grid_size_x grid_size_y grid_size_z \
region_name_id event_id",
            )?
            .execute(params![
                1,
                view.process.pid,
                thread,
                view.node(Some(d.agent)),
                d.kernel.0 + 1,
                signed(d.dispatch_id),
                view.queue(d.queue),
                view.stream(d.stream),
                signed(d.span.begin),
                signed(d.span.end),
                d.private_size,
                d.group_size,
                d.workgroup[0],
                d.workgroup[1],
                d.workgroup[2],
                d.grid[0],
                d.grid[1],
                d.grid[2],
                region,
                event
            ])?;
            self.values(&found, event)?;
        }
        Ok(())
    }

    fn copies(&mut self) -> Result<()> {
        let view = self.view;
        for row in view.rows.copies.iter() {
            let row = row?;
            let c = &row.record;
            let event = self.event("MEMORY_COPY", [row.id, row.id, external(view, &row)], "{}")?;
            let name = self.string(view::DIRECTIONS[view::direction_number(c)])?;
            let region = self.string("")?;
            let thread = self.thread(view.tid(c.thread))?;
            self.insert(
                "memory_copy",
                "nid pid tid start end name_id dst_agent_id src_agent_id size stream_id region_name_id event_id",
            )?
            .execute(params![
                1,
                view.process.pid,
                thread,
                signed(c.span.begin),
                signed(c.span.end),
                name,
                view.node(c.destination),
                view.node(c.source),
                signed(c.bytes),
                view.stream(c.stream),
                region,
                event
            ])?;
        }
        Ok(())
    }

    fn memory(&mut self) -> Result<()> {
        let view = self.view;
        let columns = "nid pid tid agent_id type level start end address size queue_id event_id extdata";
        for row in view.rows.allocations.iter() {
            let row = row?;
            let a = &row.record;
            let event = self.event("MEMORY_ALLOCATION", [row.id, row.ancestor, 0], "{}")?;
            let free = view::is_free(a.operation);
            let level = match a.operation {
                memory::VMEM_ALLOCATE | memory::VMEM_FREE => "VIRTUAL",
                _ => "REAL",
            };
            let thread = self.thread(view.tid(Some(a.thread)))?;
            self.insert("memory_allocate", columns)?.execute(params![
                1,
                view.process.pid,
                thread,
                (!free).then(|| view.node(a.agent)),
                if free { "FREE" } else { "ALLOC" },
                level,
                signed(a.span.begin),
                signed(a.span.end),
                signed(a.address),
                if free { 0 } else { signed(a.bytes) },
                None::<u32>,
                event,
                "{}"
            ])?;
        }
        for row in view.rows.scratches.iter() {
            let row = row?;
            let s = &row.record;
            let event = self.event("SCRATCH_MEMORY", [row.id, row.ancestor, 0], "{}")?;
            let kind = match s.operation {
                scratch::ALLOC => "ALLOC",
                scratch::ASYNC_RECLAIM => "RECLAIM",
                _ => "FREE",
            };
            let thread = self.thread(view.tid(Some(s.thread)))?;
            self.insert("memory_allocate", columns)?.execute(params![
                1,
                view.process.pid,
                thread,
                view.node(s.agent),
                kind,
                "SCRATCH",
                signed(s.span.begin),
                signed(s.span.end),
                0,
                signed(s.bytes),
                s.queue.map(|queue| view.queue(queue)),
                event,
                format!("{{\"flags\":{}}}", s.flags)
            ])?;
        }
        Ok(())
    }
}
