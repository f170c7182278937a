//! Tables of entities: host, process, agents, queues, streams, code objects, kernels and counters.

use super::{Writer, schema, signed};
use crate::config;
use crate::error::Result;
use crate::head::{Head, System};
use crate::json;
use crate::json::object::symbol_names;
use crate::view;
use roctop_ring::record::counter_flag;
use rusqlite::params;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

impl Writer<'_> {
    pub(super) fn facts(&mut self, head: &Head<'_>, guid: &str) -> Result<()> {
        let view = self.view;
        let suffix = self.suffix.clone();
        let metadata = self.insert("metadata", "tag value")?;
        for (tag, value) in [("schema_version", schema::VERSION), ("uuid", &suffix), ("guid", guid)] {
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
        let mut entries = config::entries(view, head);
        let incomplete: Vec<&str> = view.incomplete().collect();
        if !incomplete.is_empty() {
            entries.push(("incomplete", incomplete.into()));
        }
        config::object(&entries, &mut config)?;
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
                String::from_utf8(config).map_err(io::Error::other)?
            ])?;
        self.agents()?;
        self.queues_and_streams()?;
        self.kernels()
    }

    fn agents(&mut self) -> Result<()> {
        let view = self.view;
        let insert = self.insert(
            "info_agent",
            "id nid pid type absolute_index logical_index type_index uuid name model_name vendor_name product_name \
user_name extdata",
        )?;
        for (logical, node) in view.nodes.iter().enumerate() {
            let (index, gpu) = view.type_index(node.id);
            // Readers use the whole agent from here, as in the JSON file.
            let mut whole = Vec::new();
            json::agent::write(view, logical, node, &mut whole)?;
            let product = if gpu {
                view.product(node.id)
            } else {
                node.cpu_model.clone()
            };
            insert.execute(params![
                node.id,
                1,
                view.process.pid,
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
                String::from_utf8(whole).map_err(io::Error::other)?
            ])?;
        }
        Ok(())
    }

    /// As upstream: row 0 is the default, for work without a queue or stream, and names count from 0.
    fn queues_and_streams(&mut self) -> Result<()> {
        let view = self.view;
        let own = view.process.id;
        let usual = |kind: &str, number: u32| match number.checked_sub(1) {
            None => format!("Default {kind}"),
            Some(before) => format!("{kind} {before}"),
        };
        let queues = view.run.queues.iter().filter(|queue| queue.process == own);
        let numbers: BTreeSet<u32> = queues.map(|queue| queue.number).chain([0]).collect();
        let insert = self.insert("info_queue", "id nid pid name")?;
        for number in numbers {
            insert.execute(params![number, 1, view.process.pid, usual("Queue", number)])?;
        }
        let streams = view.run.streams.iter().filter(|stream| stream.process == own);
        let mut names: BTreeMap<u32, &str> = streams.map(|stream| (stream.number, &*stream.name)).collect();
        names.entry(0).or_default();
        let insert = self.insert("info_stream", "id nid pid name")?;
        for (number, name) in names {
            let usual = usual("Stream", number);
            let name = if name.is_empty() { &*usual } else { name };
            insert.execute(params![number, 1, view.process.pid, name])?;
        }
        Ok(())
    }

    fn kernels(&mut self) -> Result<()> {
        let view = self.view;
        let facts = view.facts;
        let insert = self.insert(
            "info_code_object",
            "id nid pid agent_id uri load_base load_size load_delta storage_type extdata",
        )?;
        for (id, object) in &facts.code_objects {
            let node = facts.nodes.get(&object.agent).copied().unwrap_or_default();
            insert.execute(params![
                signed(*id),
                1,
                view.process.pid,
                node,
                facts.text(object.uri),
                signed(object.base),
                signed(object.size),
                signed(object.base),
                "MEMORY",
                "{\"size\":88,\"storage_type\":2}"
            ])?;
        }
        let insert = self.insert(
            "info_kernel_symbol",
            "id nid pid code_object_id kernel_name display_name kernel_object kernarg_segment_size \
kernarg_segment_alignment group_segment_size private_segment_size sgpr_count arch_vgpr_count accum_vgpr_count extdata",
        )?;
        for kernel in &view.run.kernels {
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
                "formatted_kernel_name": view.symbol_name(kernel),
                "demangled_kernel_name": demangled,
                "truncated_kernel_name": truncated,
                "kernel_address": { "handle": known.kernel_object },
            });
            insert.execute(params![
                id,
                1,
                view.process.pid,
                signed(known.code_object),
                view::with_kd(&kernel.mangled),
                view.symbol_name(kernel),
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

    /// Writes the counters that have values.
    pub(super) fn counters(&mut self) -> Result<()> {
        let view = self.view;
        let columns = "id nid pid agent_id target_arch name symbol description component value_type block expression \
is_constant is_derived";
        for (id, info) in (1..).zip(&view.counted.counters) {
            let flag = |bit: u16| info.flags & bit != 0;
            self.insert("info_pmc", columns)?.execute(params![
                id,
                1,
                view.process.pid,
                view.node(Some(info.agent)),
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
}
