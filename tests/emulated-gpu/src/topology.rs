//! The KFD topology: one node for the host, one for each GPU, and the links between them.
//!
//! Every file has `name value` lines in decimal; the run-times ignore unknown names. Links between GPUs exist only with
//! `EMULATED_GPU_LINKS`: without them, peer copies go through the host.

use std::fmt::Write as _;

use crate::model::Model;
use crate::sysfs::{Entry, FIRST_RENDER, file};

const TOPOLOGY: &str = "/sys/devices/virtual/kfd/kfd/topology";
const CLASS: &str = "/sys/class/kfd/kfd/topology";

/// The driver's id of a GPU; never zero, 16 bits because doorbell offsets contain it.
pub(crate) fn gpu_id(gpu: u32) -> u32 {
    0x4d21 + gpu * 0x101
}

/// Index of the GPU with this id.
pub(crate) fn gpu_of(id: u32) -> Option<u32> {
    let distance = id.checked_sub(gpu_id(0))?;
    distance.is_multiple_of(0x101).then_some(distance / 0x101)
}

/// Serial number of a GPU.
pub(crate) fn unique_id(gpu: u32) -> u64 {
    0x0210_6d5c_e1a0_0001 + u64::from(gpu)
}

fn lines(pairs: &[(&str, u64)]) -> String {
    pairs.iter().fold(String::new(), |mut text, (name, value)| {
        _ = writeln!(text, "{name} {value}");
        text
    })
}

/// All files, below both names of the topology.
pub(crate) fn entries(model: &Model) -> Vec<Entry> {
    let mut files = vec![
        ("generation_id".to_owned(), "2\n".to_owned()),
        (
            "system_properties".to_owned(),
            lines(&[("platform_oem", 0), ("platform_id", 0), ("platform_rev", 0)]),
        ),
    ];
    host_node(model, &mut files);
    // The driver creates these directories for each node, even if empty: ROCm SMI asserts that they exist.
    for node in 0..=model.gpus {
        for links in ["io_links", "p2p_links"] {
            files.push((format!("nodes/{node}/{links}/.keep"), String::new()));
        }
    }
    for gpu in 0..model.gpus {
        gpu_node(model, gpu, &mut files);
    }
    let both = files.into_iter().flat_map(|(path, content)| {
        [
            file(format!("{TOPOLOGY}/{path}"), content.clone()),
            file(format!("{CLASS}/{path}"), content),
        ]
    });
    both.collect()
}

fn host_node(model: &Model, files: &mut Vec<(String, String)>) {
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let links = if model.large_bar { u64::from(model.gpus) } else { 0 };
    let properties = [
        ("cpu_cores_count", cores),
        ("simd_count", 0),
        ("mem_banks_count", 1),
        ("caches_count", 0),
        ("io_links_count", links),
        ("p2p_links_count", 0),
        ("cpu_core_id_base", 0),
        ("simd_id_base", 0),
        ("max_waves_per_simd", 0),
        ("lds_size_in_kb", 0),
        ("gds_size_in_kb", 0),
        ("num_gws", 0),
        ("wave_front_size", 0),
        ("array_count", 0),
        ("vendor_id", 0),
        ("device_id", 0),
        ("location_id", 0),
        ("domain", 0),
        ("drm_render_minor", 0),
        ("hive_id", 0),
        ("max_engine_clk_ccompute", 2500),
    ];
    files.push(("nodes/0/gpu_id".into(), "0\n".into()));
    files.push(("nodes/0/name".into(), "\n".into()));
    files.push(("nodes/0/properties".into(), lines(&properties)));
    files.push((
        "nodes/0/mem_banks/0/properties".into(),
        bank(0, host_memory(), 64, 2400),
    ));
    for gpu in 0..links {
        files.push((format!("nodes/0/io_links/{gpu}/properties"), io_link(0, gpu + 1)));
    }
}

fn gpu_node(model: &Model, gpu: u32, files: &mut Vec<(String, String)>) {
    let target = model.target;
    let node = format!("nodes/{}", gpu + 1);
    let properties: [(&str, u64); 38] = [
        ("cpu_cores_count", 0),
        ("simd_count", target.simd_count.into()),
        ("mem_banks_count", 1),
        ("caches_count", 2),
        ("io_links_count", 1 + u64::from(peers(model))),
        ("p2p_links_count", 0),
        ("cpu_core_id_base", 0),
        ("simd_id_base", 0x8000_1000 + u64::from(gpu) * 0x1000),
        ("max_waves_per_simd", target.waves_per_simd.into()),
        ("lds_size_in_kb", 64),
        ("gds_size_in_kb", 0),
        ("num_gws", 64),
        ("wave_front_size", target.wave.into()),
        ("array_count", target.arrays.into()),
        ("simd_arrays_per_engine", target.arrays_per_engine.into()),
        ("cu_per_simd_array", target.cu_per_array.into()),
        ("simd_per_cu", target.simd_per_cu.into()),
        ("max_slots_scratch_cu", 32),
        ("gfx_target_version", target.gfx_version.into()),
        ("vendor_id", 0x1002),
        ("device_id", target.device_id.into()),
        ("location_id", u64::from(gpu + 3) << 8),
        ("domain", 0),
        ("drm_render_minor", (FIRST_RENDER + gpu).into()),
        ("hive_id", u64::from(model.links)),
        ("num_sdma_engines", model.copy_engines.into()),
        ("num_sdma_xgmi_engines", 0),
        ("num_sdma_queues_per_engine", 8),
        ("num_cp_queues", 24),
        ("max_engine_clk_fcompute", 1700),
        ("local_mem_size", 0),
        ("fw_version", 472),
        ("capability", target.capability.into()),
        ("debug_prop", 1495),
        ("sdma_fw_version", 145),
        ("unique_id", unique_id(gpu)),
        ("num_xcc", target.xccs.into()),
        ("max_engine_clk_ccompute", 2500),
    ];
    let heap = if model.large_bar { 1 } else { 2 };
    files.push((format!("{node}/gpu_id"), format!("{}\n", gpu_id(gpu))));
    files.push((format!("{node}/name"), format!("{}\n", target.chip)));
    files.push((format!("{node}/properties"), lines(&properties)));
    files.push((
        format!("{node}/mem_banks/0/properties"),
        bank(heap, model.vram, 4096, 1000),
    ));
    files.push((format!("{node}/caches/0/properties"), cache(1, 16)));
    files.push((format!("{node}/caches/1/properties"), cache(2, target.l2_kib.into())));
    files.push((format!("{node}/io_links/0/properties"), io_link(u64::from(gpu) + 1, 0)));
    let others = (0..model.gpus).filter(|other| *other != gpu);
    for (number, other) in (1..=peers(model)).zip(others) {
        let link = link(XGMI, u64::from(gpu) + 1, u64::from(other) + 1, 15);
        files.push((format!("{node}/io_links/{number}/properties"), link));
    }
}

/// Number of other GPUs to which a GPU has links.
fn peers(model: &Model) -> u32 {
    if model.links { model.gpus.saturating_sub(1) } else { 0 }
}

fn bank(heap: u64, size: u64, width: u64, clock: u64) -> String {
    lines(&[
        ("heap_type", heap),
        ("size_in_bytes", size),
        ("flags", 0),
        ("width", width),
        ("mem_clk_max", clock),
    ])
}

/// A cache for data (1) and compute (8): the run-times use no other kind.
fn cache(level: u64, kib: u64) -> String {
    let mut text = lines(&[
        ("processor_id_low", 0x8000_1000),
        ("level", level),
        ("size", kib),
        ("cache_line_size", 64),
        ("cache_lines_per_tag", 1),
        ("association", 16),
        ("latency", 1),
        ("type", 9),
    ]);
    text.push_str("sibling_map 1,0,0,0\n");
    text
}

/// The driver's numbers of link types.
const PCIE: u64 = 2;
const XGMI: u64 = 11;

fn io_link(from: u64, to: u64) -> String {
    link(PCIE, from, to, 20)
}

fn link(kind: u64, from: u64, to: u64, weight: u64) -> String {
    lines(&[
        ("type", kind),
        ("version_major", 0),
        ("version_minor", 0),
        ("node_from", from),
        ("node_to", to),
        ("weight", weight),
        ("min_latency", 0),
        ("max_latency", 0),
        ("min_bandwidth", 312),
        ("max_bandwidth", 31_504),
        ("recommended_transfer_size", 0),
        ("recommended_sdma_engine_id_mask", 0),
        ("flags", 1),
    ])
}

fn host_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> = total.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok());
    kib.unwrap_or(8 << 20) << 10
}
