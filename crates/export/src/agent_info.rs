//! `agent_info.csv`: one row per node of the driver's topology. Columns: rocprofiler-sdk 1.0.0.

use super::csv::writer::{header, quoted};
use roctop_trace::topology::Node;
use std::io::{self, Write};

const HEADER: &str = "Node_Id,Logical_Node_Id,Agent_Type,Cpu_Cores_Count,Simd_Count,Cpu_Core_Id_Base,Simd_Id_Base,\
Max_Waves_Per_Simd,Lds_Size_In_Kb,Gds_Size_In_Kb,Num_Gws,Wave_Front_Size,Num_Xcc,Cu_Count,Array_Count,Num_Shader_Banks,\
Simd_Arrays_Per_Engine,Cu_Per_Simd_Array,Simd_Per_Cu,Max_Slots_Scratch_Cu,Gfx_Target_Version,Vendor_Id,Device_Id,\
Location_Id,Domain,Drm_Render_Minor,Num_Sdma_Engines,Num_Sdma_Xgmi_Engines,Num_Sdma_Queues_Per_Engine,Num_Cp_Queues,\
Max_Engine_Clk_Ccompute,Max_Engine_Clk_Fcompute,Sdma_Fw_Version,Fw_Version,Capability,Cu_Per_Engine,Max_Waves_Per_Cu,\
Family_Id,Workgroup_Max_Size,Grid_Max_Size,Local_Mem_Size,Hive_Id,Gpu_Id,Workgroup_Max_Dim_X,Workgroup_Max_Dim_Y,\
Workgroup_Max_Dim_Z,Grid_Max_Dim_X,Grid_Max_Dim_Y,Grid_Max_Dim_Z,Name,Vendor_Name,Product_Name,Model_Name";

/// Firmware words have the version in their low ten bits.
const FIRMWARE: u64 = 0x3ff;

/// Writes the table; `products` returns a GPU's product name by node number.
pub fn write(nodes: &[Node], products: &dyn Fn(u32) -> String, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", header(HEADER))?;
    for (logical, node) in nodes.iter().enumerate() {
        write_row(node, logical, products, out)?;
    }
    Ok(())
}

fn write_row(node: &Node, logical: usize, products: &dyn Fn(u32) -> String, out: &mut dyn Write) -> io::Result<()> {
    let gpu = node.is_gpu();
    let kind = if gpu { "GPU" } else { "CPU" };
    write!(out, "{},{logical},\"{kind}\"", node.id)?;
    for (_, number) in facts(node) {
        write!(out, ",{number}")?;
    }
    let (vendor, product) = if gpu {
        ("AMD", products(node.id))
    } else {
        ("CPU", node.cpu_model.clone())
    };
    writeln!(
        out,
        ",{},\"{vendor}\",{},{}",
        quoted(&node.name()),
        quoted(&product),
        quoted(&node.model)
    )
}

/// Numeric properties of an agent by lower-case name, in rocprofv3's order.
pub(super) fn facts(node: &Node) -> [(&'static str, u64); 46] {
    let gpu = node.is_gpu();
    let p = |name: &str| node.property(name);
    let per = |a: u64, b: u64| a.checked_div(b).unwrap_or(0);
    let cu_count = if gpu {
        per(p("simd_count"), p("simd_per_cu"))
    } else {
        p("cpu_cores_count")
    };
    let banks = per(p("array_count"), p("simd_arrays_per_engine"));
    let only_gpu = |value: u64| if gpu { value } else { 0 };
    [
        ("cpu_cores_count", p("cpu_cores_count")),
        ("simd_count", p("simd_count")),
        ("cpu_core_id_base", p("cpu_core_id_base")),
        ("simd_id_base", p("simd_id_base")),
        ("max_waves_per_simd", p("max_waves_per_simd")),
        ("lds_size_in_kb", p("lds_size_in_kb")),
        ("gds_size_in_kb", p("gds_size_in_kb")),
        ("num_gws", p("num_gws")),
        ("wave_front_size", p("wave_front_size")),
        ("num_xcc", p("num_xcc").max(1)),
        ("cu_count", cu_count),
        ("array_count", p("array_count")),
        ("num_shader_banks", banks),
        ("simd_arrays_per_engine", p("simd_arrays_per_engine")),
        ("cu_per_simd_array", p("cu_per_simd_array")),
        ("simd_per_cu", p("simd_per_cu")),
        ("max_slots_scratch_cu", p("max_slots_scratch_cu")),
        ("gfx_target_version", p("gfx_target_version")),
        ("vendor_id", p("vendor_id")),
        ("device_id", p("device_id")),
        ("location_id", p("location_id")),
        ("domain", p("domain")),
        ("drm_render_minor", p("drm_render_minor")),
        ("num_sdma_engines", p("num_sdma_engines")),
        ("num_sdma_xgmi_engines", p("num_sdma_xgmi_engines")),
        ("num_sdma_queues_per_engine", p("num_sdma_queues_per_engine")),
        ("num_cp_queues", p("num_cp_queues")),
        ("max_engine_clk_ccompute", p("max_engine_clk_ccompute")),
        ("max_engine_clk_fcompute", p("max_engine_clk_fcompute")),
        ("sdma_fw_version", p("sdma_fw_version") & FIRMWARE),
        ("fw_version", p("fw_version") & FIRMWARE),
        ("capability", p("capability")),
        ("cu_per_engine", only_gpu(per(cu_count, banks))),
        (
            "max_waves_per_cu",
            p("simd_per_cu").saturating_mul(p("max_waves_per_simd")),
        ),
        (
            "family_id",
            if gpu {
                gpu_family(p("gfx_target_version"))
            } else {
                node.cpu_family
            },
        ),
        ("workgroup_max_size", only_gpu(1024)),
        ("grid_max_size", only_gpu(u64::from(u32::MAX))),
        ("local_mem_size", p("local_mem_size")),
        ("hive_id", p("hive_id")),
        ("gpu_id", node.gpu_id),
        ("workgroup_max_dim_x", only_gpu(1024)),
        ("workgroup_max_dim_y", only_gpu(1024)),
        ("workgroup_max_dim_z", only_gpu(1024)),
        ("grid_max_dim_x", only_gpu(i32::MAX as u64)),
        ("grid_max_dim_y", only_gpu(65535)),
        ("grid_max_dim_z", only_gpu(65535)),
    ]
}

/// Family number of a GPU in the kernel driver (`amdgpu_drm.h`, AMDGPU_FAMILY_*), by instruction set.
fn gpu_family(target: u64) -> u64 {
    match (target / 10000, target / 100 % 100, target % 100) {
        // Raven, Picasso, Renoir.
        (9, 0, 2 | 9 | 12) => 142,
        (9, ..) => 141,
        (10, 3, 3) => 144,
        (10, 3, 5) => 146,
        (10, 3, 6) => 149,
        (10, 3, 7) => 151,
        (10, ..) => 143,
        (11, 0, 3) => 148,
        (11, 0, _) => 145,
        (11, ..) => 150,
        (12, ..) => 152,
        _ => 0,
    }
}
