//! Properties of the GPUs, as Kineto takes them from HIP.

use crate::json::writer::text;
use crate::view::View;
use roctop_trace::topology::Node;
use std::io::{self, Write};

/// Writes an object per GPU. What the driver does not publish is left out.
pub(super) fn properties(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (id, node) in view.nodes.iter().filter(|node| node.is_gpu()).enumerate() {
        let separator = if id == 0 { "" } else { ",\n" };
        let product = view.product(node.id);
        let name = if product.is_empty() { node.name() } else { product };
        write!(out, "{separator}{{\"id\": {id}, \"name\": {}", text(&name))?;
        let version = node.property("gfx_target_version");
        for (key, value) in [
            ("totalGlobalMem", node.memory),
            ("computeMajor", version / 10_000),
            ("computeMinor", version / 100 % 100),
            ("warpSize", node.property("wave_front_size")),
            ("maxThreadsPerMultiprocessor", threads(node)),
            ("sharedMemPerBlock", node.property("lds_size_in_kb") * 1024),
            ("numSms", units(node)),
        ] {
            if value > 0 {
                write!(out, ", \"{key}\": {value}")?;
            }
        }
        write!(out, "}}")?;
    }
    writeln!(out)
}

/// Number of compute units.
fn units(node: &Node) -> u64 {
    node.property("simd_count") / node.property("simd_per_cu").max(1)
}

/// Number of threads that a compute unit holds.
fn threads(node: &Node) -> u64 {
    let waves = node.property("max_waves_per_simd") * node.property("simd_per_cu");
    waves * node.property("wave_front_size")
}
