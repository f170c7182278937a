//! Code objects and kernel symbols in `results.json`: arrays whose indexes are the ids; the first element is a filler.

use super::agent::handle;
use super::writer::{list, text};
use crate::view::{View, with_kd};
use roctop_ring::record::CodeObject;
use roctop_trace::item::Kernel;
use roctop_trace::kernel_name::truncate;
use std::io::{self, Write};

/// Code objects of the process.
pub(super) fn code_objects(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let known = &view.facts.code_objects;
    let last = view.facts.last_code_object().min(1 << 20);
    // ROCm 6.2 names the agent twice, and contains the position of every object.
    let seed = view.is_seed();
    let agents = |agent: u64| {
        let one = format!("\"agent_id\":{{\"handle\":{agent}}}");
        let both = format!(",\"rocp_agent\":{{\"handle\":{agent}}},\"hsa_agent\":{{\"handle\":{agent}}}");
        one + if seed { &both } else { "" }
    };
    let nowhere = if seed {
        ",\"memory_base\":0,\"memory_size\":0"
    } else {
        ""
    };
    list(out, 0..=last, |out, id| {
        let Some(object) = known.get(&id) else {
            return write!(
                out,
                "{{\"size\":0,\"code_object_id\":{id},{},\"uri\":\"\",\"load_base\":0,\
\"load_size\":0,\"load_delta\":0,\"storage_type\":0{nowhere}}}",
                agents(0)
            );
        };
        let uri = view.facts.text(object.uri);
        let agent = view.facts.nodes.get(&object.agent).copied().map_or(0, handle);
        let CodeObject { base, size, .. } = object;
        let part = |name: &str| number_in(uri, name).unwrap_or(0);
        write!(
            out,
            "{{\"size\":88,\"code_object_id\":{id},{},\"uri\":{},\"load_base\":{base},\
\"load_size\":{size},\"load_delta\":{base},\"storage_type\":2,\"memory_base\":{},\"memory_size\":{}}}",
            agents(agent),
            text(uri),
            part("offset="),
            part("size=")
        )
    })
}

/// A number in a URI's fragment, decimal or hexadecimal: `#offset=0x5611&size=45960`.
fn number_in(uri: &str, name: &str) -> Option<u64> {
    let (_, fragment) = uri.split_once(['#', '?'])?;
    let value = fragment.split('&').find_map(|part| part.strip_prefix(name))?;
    match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

/// Writes kernel symbols; the index is the id in dispatches.
pub(super) fn kernel_symbols(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let filler = std::iter::once(None);
    let all = filler.chain(view.run.kernels.iter().map(Some));
    list(out, all.enumerate(), |out, (id, kernel)| {
        let Some(kernel) = kernel else {
            return write!(
                out,
                "{{\"size\":0,\"kernel_id\":0,\"code_object_id\":0,\"kernel_name\":\"\",\"kernel_object\":0,\
\"kernarg_segment_size\":0,\"kernarg_segment_alignment\":0,\"group_segment_size\":0,\"private_segment_size\":0,\
\"sgpr_count\":0,\"arch_vgpr_count\":0,\"accum_vgpr_count\":0,\"kernel_code_entry_byte_offset\":0,\
\"kernel_address\":{{\"handle\":0}},\"formatted_kernel_name\":\"0\",\"demangled_kernel_name\":\"0\",\
\"truncated_kernel_name\":\"0\"}}"
            );
        };
        symbol(view, id, kernel, out)
    })
}

fn symbol(view: &View<'_>, id: usize, kernel: &Kernel, out: &mut dyn Write) -> io::Result<()> {
    let known = view
        .facts
        .symbol(&kernel.mangled, kernel.group_size)
        .copied()
        .unwrap_or_default();
    let registers = kernel.registers.unwrap_or_default();
    write!(
        out,
        "{{\"size\":88,\"kernel_id\":{id},\"code_object_id\":{},\"kernel_name\":{},\"kernel_object\":{},\
\"kernarg_segment_size\":{},\"kernarg_segment_alignment\":16,\"group_segment_size\":{},\"private_segment_size\":{}",
        known.code_object,
        text(&with_kd(&kernel.mangled)),
        known.kernel_object,
        known.kernarg_size,
        kernel.group_size,
        known.private_size
    )?;
    write!(
        out,
        ",\"sgpr_count\":{},\"arch_vgpr_count\":{},\"accum_vgpr_count\":{}",
        registers.sgpr, registers.vgpr, registers.agpr
    )?;
    if let Some(code) = kernel.code.filter(|_| view.choice.has_code) {
        // Upstream has no such fields.
        for (name, count) in [
            ("vgpr_spill_count", code.vgpr_spills),
            ("sgpr_spill_count", code.sgpr_spills),
        ] {
            if let Some(count) = count {
                write!(out, ",\"{name}\":{count}")?;
            }
        }
    }
    // The entry offset is not recorded, so the address is that of the descriptor.
    write!(
        out,
        ",\"kernel_code_entry_byte_offset\":0,\"kernel_address\":{{\"handle\":{}}}",
        known.kernel_object
    )?;
    let (demangled, truncated) = symbol_names(kernel);
    write!(
        out,
        ",\"formatted_kernel_name\":{},\"demangled_kernel_name\":{},\"truncated_kernel_name\":{}}}",
        text(&view.symbol_name(kernel)),
        text(&demangled),
        text(&truncated)
    )
}

/// Demangled and truncated symbol name: a C function keeps its suffix, a C++ function has it as a clone suffix.
pub(crate) fn symbol_names(kernel: &Kernel) -> (String, String) {
    if kernel.mangled.starts_with("_Z") {
        return (format!("{} [clone .kd]", kernel.name), truncate(&kernel.name));
    }
    let whole = with_kd(&kernel.mangled);
    (whole.clone(), whole)
}

/// Writes host functions: only the filler, because none are known.
pub(super) fn host_functions(out: &mut dyn Write) -> io::Result<()> {
    let axes = "{\"x\":0,\"y\":0,\"z\":0}";
    write!(
        out,
        "[\n{{\"size\":0,\"host_function_id\":0,\"kernel_id\":0,\"code_object_id\":0,\"host_function\":{{\"handle\":0}},\
\"modules\":{{\"handle\":0}},\"device_function\":\"\",\"thread_limit\":0,\"thread_ids\":{axes},\"block_ids\":{axes},\
\"block_dims\":{axes},\"grid_dims\":{axes},\"workgroup_size\":0,\"formatted_host_function_name\":\"\",\
\"demangled_host_function_name\":\"\",\"truncated_host_function_name\":\"\"}}]"
    )
}

#[cfg(test)]
mod tests {
    use super::number_in;

    #[test]
    fn numbers_are_found_in_a_uri() {
        let uri = "memory://747#offset=0x5611f85906b0&size=45960";
        assert_eq!(number_in(uri, "offset="), Some(0x5611_f859_06b0));
        assert_eq!(number_in(uri, "size="), Some(45960));
        assert_eq!(number_in("file://./tour", "size="), None);
    }
}
