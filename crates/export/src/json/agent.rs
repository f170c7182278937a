//! Agents in `results.json`, from the driver's topology.

use super::writer::{list, text};
use crate::agent_info::facts;
use crate::view::View;
use roctop_trace::topology::Node;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Bit fields of the capability word, from the lowest: name and width.
const CAPABILITY: [(&str, u32); 23] = [
    ("HotPluggable", 1),
    ("HSAMMUPresent", 1),
    ("SharedWithGraphics", 1),
    ("QueueSizePowerOfTwo", 1),
    ("QueueSize32bit", 1),
    ("QueueIdleEvent", 1),
    ("VALimit", 1),
    ("WatchPointsSupported", 1),
    ("WatchPointsTotalBits", 4),
    ("DoorbellType", 2),
    ("AQLQueueDoubleMap", 1),
    ("DebugTrapSupported", 1),
    ("WaveLaunchTrapOverrideSupported", 1),
    ("WaveLaunchModeSupported", 1),
    ("PreciseMemoryOperationsSupported", 1),
    ("DEPRECATED_SRAM_EDCSupport", 1),
    ("Mem_EDCSupport", 1),
    ("RASEventNotify", 1),
    ("ASICRevision", 4),
    ("SRAM_EDCSupport", 1),
    ("SVMAPISupported", 1),
    ("CoherentHostAccess", 1),
    ("DebugSupportedFirmware", 1),
];

/// Flags of a link, from the lowest bit.
const LINK: [(&str, u32); 5] = [
    ("Override", 1),
    ("NonCoherent", 1),
    ("NoAtomics32bit", 1),
    ("NoAtomics64bit", 1),
    ("NoPeerToPeerDMA", 1),
];

const CACHE: [(&str, u32); 4] = [("Data", 1), ("Instruction", 1), ("CPU", 1), ("HSACU", 1)];
const BANK: [(&str, u32); 2] = [("HotPluggable", 1), ("NonVolatile", 1)];

/// Handle of an agent; unique and greater than 0.
pub(crate) const fn handle(node: u32) -> u64 {
    node as u64 + 1
}

/// Numbers of a cache.
const CACHE_NUMBERS: [&str; 7] = [
    "processor_id_low",
    "size",
    "level",
    "cache_line_size",
    "cache_lines_per_tag",
    "association",
    "latency",
];

/// Numbers of a link.
const LINK_NUMBERS: [&str; 11] = [
    "type",
    "version_major",
    "version_minor",
    "node_from",
    "node_to",
    "weight",
    "min_latency",
    "max_latency",
    "min_bandwidth",
    "max_bandwidth",
    "recommended_transfer_size",
];

/// Writes an agent.
pub(crate) fn write(view: &View<'_>, logical: usize, node: &Node, out: &mut dyn Write) -> io::Result<()> {
    let (handle, kind) = (handle(node.id), if node.is_gpu() { 2 } else { 1 });
    write!(out, "{{\"size\":312,\"id\":{{\"handle\":{handle}}},\"type\":{kind}")?;
    for (name, value) in facts(node) {
        fact(view, node, name, value, out)?;
    }
    names(view, logical, node, out)?;
    write!(
        out,
        ",\"runtime_visibility\":{{\"hsa\":1,\"hip\":1,\"rccl\":1,\"rocdecode\":1}}"
    )?;
    uuid(node, out)?;
    write!(out, ",\"mem_banks\":")?;
    let after = ["width", "mem_clk_max", "size_in_bytes"];
    parts(out, &node.banks, &["heap_type"], ("flags", &BANK), &after)?;
    write!(out, ",\"caches\":")?;
    parts(out, &node.caches, &CACHE_NUMBERS, ("type", &CACHE), &[])?;
    write!(out, ",\"io_links\":")?;
    parts(out, &node.links, &LINK_NUMBERS, ("flags", &LINK), &[])?;
    let gpu_index = if node.is_gpu() {
        view.type_index(node.id).0 as i64
    } else {
        -1
    };
    write!(out, ",\"gpu_index\":{gpu_index}}}")
}

/// Writes a property of an agent. Three have parts; sizes by axis form one object, whose parts are consecutive.
fn fact(view: &View<'_>, node: &Node, name: &str, value: u64, out: &mut dyn Write) -> io::Result<()> {
    match name {
        "sdma_fw_version" => write!(out, ",\"sdma_fw_version\":{{\"uCodeSDMA\":{value},\"uCodeRes\":0}}"),
        "fw_version" => write!(
            out,
            ",\"fw_version\":{{\"uCode\":{value},\"Major\":0,\"Minor\":0,\"Stepping\":0}}"
        ),
        "capability" if view.is_seed() => {
            // ROCm 6.2 also has the remaining bits.
            let fields = bits(value, &CAPABILITY);
            let fields = fields.trim_end_matches('}');
            write!(out, ",\"capability\":{fields},\"Reserved\":{}}}", value >> 30)
        }
        "capability" => write!(out, ",\"capability\":{}", bits(value, &CAPABILITY)),
        "simd_count" => {
            let count = |name| node.property(name);
            write!(
                out,
                ",\"simd_count\":{value},\"mem_banks_count\":{},\"caches_count\":{},\"io_links_count\":{}",
                count("mem_banks_count"),
                count("caches_count"),
                count("io_links_count")
            )
        }
        "workgroup_max_dim_x" => write!(out, ",\"workgroup_max_dim\":{{\"x\":{value}"),
        "grid_max_dim_x" => write!(out, ",\"grid_max_dim\":{{\"x\":{value}"),
        "workgroup_max_dim_y" | "grid_max_dim_y" => write!(out, ",\"y\":{value}"),
        "workgroup_max_dim_z" | "grid_max_dim_z" => write!(out, ",\"z\":{value}}}"),
        _ => write!(out, ",\"{name}\":{value}"),
    }
}

/// Writes an agent's names, with some numbers between them.
fn names(view: &View<'_>, logical: usize, node: &Node, out: &mut dyn Write) -> io::Result<()> {
    let (vendor, product) = if node.is_gpu() {
        ("AMD", view.product(node.id))
    } else {
        ("CPU", node.cpu_model.clone())
    };
    let (name, product, model) = (text(&node.name()), text(&product), text(&node.model));
    let (id, (index, _)) = (node.id, view.type_index(node.id));
    write!(
        out,
        ",\"name\":{name},\"vendor_name\":\"{vendor}\",\"product_name\":{product},\"model_name\":{model},\
\"node_id\":{id},\"logical_node_id\":{logical},\"logical_node_type_id\":{index}"
    )
}

/// Writes 16 bytes, of which the driver provides the first eight.
fn uuid(node: &Node, out: &mut dyn Write) -> io::Result<()> {
    write!(out, ",\"uuid\":{{\"bytes\":{{")?;
    let unique = node.property("unique_id").to_le_bytes();
    for (number, byte) in unique.iter().chain(&[0; 8]).enumerate() {
        let comma = if number == 0 { "" } else { "," };
        write!(out, "{comma}\"value{number}\":{byte}")?;
    }
    write!(out, "}}}}")
}

/// An object with bit fields of a word.
fn bits(word: u64, names: &[(&str, u32)]) -> String {
    let mut at = 0;
    let fields = names.iter().map(|(name, width)| {
        let value = word >> at & ((1 << width) - 1);
        at += width;
        format!("\"{name}\":{value}")
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Writes a list of objects: numbers, one word of bit fields, more numbers.
fn parts(
    out: &mut dyn Write,
    parts: &[BTreeMap<String, u64>],
    before: &[&str],
    word: (&str, &[(&str, u32)]),
    after: &[&str],
) -> io::Result<()> {
    list(out, parts, |out, part| {
        let value = |name: &str| part.get(name).copied().unwrap_or(0);
        let number = |name: &&str| format!("\"{name}\":{}", value(name));
        let mut fields: Vec<String> = before.iter().map(number).collect();
        fields.push(format!("\"{}\":{}", word.0, bits(value(word.0), word.1)));
        fields.extend(after.iter().map(number));
        write!(out, "{{{}}}", fields.join(","))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_word_is_taken_apart() {
        let fields = bits(201_728_640, &CAPABILITY);
        for part in [
            "\"WatchPointsTotalBits\":2",
            "\"DoorbellType\":2",
            "\"SVMAPISupported\":1",
            "\"VALimit\":0",
        ] {
            assert!(fields.contains(part), "{fields}");
        }
        assert_eq!(CAPABILITY.iter().map(|field| field.1).sum::<u32>(), 30);
    }
}
