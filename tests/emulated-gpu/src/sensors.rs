//! Constant readings of a GPU's load, memory, clocks, power and temperatures.
//!
//! `gpu_metrics` has the revision of the kernel's driver for each chip: 1.0 for vega20 (gfx906), 1.3 for aldebaran
//! (gfx90a) and sienna_cichlid (gfx1030).

use crate::model::Model;
use crate::sysfs::{Entry, file};

/// Share of time in which it is busy, percent.
const BUSY: u16 = 42;
const POWER_WATTS: u16 = 212;
const SHADER_MHZ: u16 = 1700;
const MEMORY_MHZ: u16 = 1000;
const JUNCTION: u16 = 61;
const FAN: u16 = 1450;

/// Files below a GPU's PCI directory.
pub(crate) fn entries(model: &Model, device: &str, list: &mut Vec<Entry>) {
    let mut text = |name: &str, content: String| list.push(file(format!("{device}/{name}"), content + "\n"));
    text("gpu_busy_percent", BUSY.to_string());
    text("mem_busy_percent", "12".into());
    text("mem_info_vram_total", model.vram.to_string());
    text("mem_info_vram_used", (model.vram / 4).to_string());
    text("mem_info_vis_vram_total", model.vram.to_string());
    text("mem_info_vis_vram_used", (model.vram / 4).to_string());
    text("mem_info_gtt_total", (8u64 << 30).to_string());
    text("mem_info_gtt_used", (16u64 << 20).to_string());
    text("pp_dpm_sclk", format!("0: 500Mhz\n1: {SHADER_MHZ}Mhz *"));
    text("pp_dpm_mclk", format!("0: 350Mhz\n1: {MEMORY_MHZ}Mhz *"));
    text("current_link_speed", "16.0 GT/s PCIe".into());
    text("current_link_width", "16".into());
    text("pcie_replay_count", "0".into());
    let sensors = [
        ("name", "amdgpu".to_owned()),
        ("power1_average", format!("{POWER_WATTS}000000")),
        ("power1_cap", "300000000".into()),
        ("temp1_input", "56000".into()),
        ("temp2_input", format!("{JUNCTION}000")),
        ("temp3_input", "58000".into()),
        ("fan1_input", FAN.to_string()),
        ("in0_input", "900".into()),
    ];
    for (name, content) in sensors {
        text(&format!("hwmon/hwmon0/{name}"), content);
    }
    list.push(Entry::Bytes(format!("{device}/gpu_metrics"), table(model.target.name)));
}

/// Fields are at the offsets of the kernel's header; all others are marked as not available.
fn table(target: &str) -> Vec<u8> {
    let (size, revision, busy, power, shader, memory, junction, fan) = match target {
        "gfx906" => (80u16, 0u8, 28, 34, 54, 58, 18, 72),
        _ => (120, 3, 16, 22, 54, 58, 6, 72),
    };
    let mut bytes = vec![0xff; size.into()];
    let mut put = |at: usize, value: u16| bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    put(0, size);
    put(2, u16::from_le_bytes([1, revision]));
    for (at, value) in [
        (busy, BUSY),
        (power, POWER_WATTS),
        (shader, SHADER_MHZ),
        (memory, MEMORY_MHZ),
        (junction, JUNCTION),
        (fan, FAN),
    ] {
        put(at, value);
    }
    if revision == 3 {
        // No throttling.
        (112..120).for_each(|at| bytes[at] = 0);
    }
    bytes
}
