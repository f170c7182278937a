//! Types of GPU that can be emulated, as numbers of the topology.
//!
//! One row each; `sysfs` and `drm` publish them. Properties that no run-time reads are absent.

/// Properties that distinguish GPUs in the driver's files.
pub(crate) struct Target {
    /// Name for `--offload-arch`.
    pub(crate) name: &'static str,
    /// The driver's name of the chip.
    pub(crate) chip: &'static str,
    /// Major times 10000, minor times 100, stepping.
    pub(crate) gfx_version: u32,
    /// PCI device id.
    pub(crate) device_id: u32,
    /// Total number of SIMD units.
    pub(crate) simd_count: u32,
    /// SIMD units per compute unit.
    pub(crate) simd_per_cu: u32,
    /// Compute units per shader array.
    pub(crate) cu_per_array: u32,
    /// Total number of shader arrays.
    pub(crate) arrays: u32,
    /// Shader arrays per engine.
    pub(crate) arrays_per_engine: u32,
    /// Waves per SIMD unit.
    pub(crate) waves_per_simd: u32,
    /// Work-items per wave.
    pub(crate) wave: u32,
    /// Capability word of the topology. Bit 29, firmware that supports debugging, is required by later run-times to end
    /// properly: without it they leave the driver open and cannot be started again.
    pub(crate) capability: u32,
    /// Number of partitions that work as one GPU.
    pub(crate) xccs: u32,
    /// Size of the second-level cache, KiB.
    pub(crate) l2_kib: u32,
    /// libdrm's family number.
    pub(crate) family: u32,
}

static TARGETS: [Target; 7] = [
    Target {
        name: "gfx906",
        chip: "vega20",
        gfx_version: 90_006,
        device_id: 0x66a1,
        simd_count: 240,
        simd_per_cu: 4,
        cu_per_array: 16,
        arrays: 4,
        arrays_per_engine: 1,
        waves_per_simd: 10,
        wave: 64,
        capability: 0x2c06_2280,
        xccs: 1,
        l2_kib: 4096,
        family: 141,
    },
    Target {
        name: "gfx90a",
        chip: "aldebaran",
        gfx_version: 90_010,
        device_id: 0x740f,
        simd_count: 416,
        simd_per_cu: 4,
        cu_per_array: 14,
        arrays: 8,
        arrays_per_engine: 1,
        waves_per_simd: 8,
        wave: 64,
        capability: 0x2c06_2280,
        xccs: 1,
        l2_kib: 8192,
        family: 141,
    },
    Target {
        name: "gfx1030",
        chip: "sienna_cichlid",
        gfx_version: 100_300,
        device_id: 0x73bf,
        simd_count: 144,
        simd_per_cu: 2,
        cu_per_array: 10,
        arrays: 8,
        arrays_per_engine: 2,
        waves_per_simd: 16,
        wave: 32,
        capability: 0x2806_2280,
        xccs: 1,
        l2_kib: 4096,
        family: 143,
    },
    Target {
        name: "gfx942",
        chip: "ip discovery",
        gfx_version: 90_402,
        device_id: 0x74a1,
        simd_count: 1216,
        simd_per_cu: 4,
        cu_per_array: 10,
        arrays: 32,
        arrays_per_engine: 1,
        waves_per_simd: 8,
        wave: 64,
        capability: 0x2c06_2280,
        xccs: 8,
        l2_kib: 4096,
        family: 141,
    },
    Target {
        name: "gfx950",
        chip: "ip discovery",
        gfx_version: 90_500,
        device_id: 0x75a0,
        simd_count: 1024,
        simd_per_cu: 4,
        cu_per_array: 8,
        arrays: 32,
        arrays_per_engine: 1,
        waves_per_simd: 8,
        wave: 64,
        capability: 0x2c06_2280,
        xccs: 8,
        l2_kib: 4096,
        family: 141,
    },
    Target {
        name: "gfx1100",
        chip: "ip discovery",
        gfx_version: 110_000,
        device_id: 0x744c,
        simd_count: 192,
        simd_per_cu: 2,
        cu_per_array: 8,
        arrays: 12,
        arrays_per_engine: 2,
        waves_per_simd: 16,
        wave: 32,
        capability: 0x2806_2280,
        xccs: 1,
        l2_kib: 6144,
        family: 145,
    },
    Target {
        name: "gfx1201",
        chip: "ip discovery",
        gfx_version: 120_001,
        device_id: 0x7550,
        simd_count: 128,
        simd_per_cu: 2,
        cu_per_array: 8,
        arrays: 8,
        arrays_per_engine: 2,
        waves_per_simd: 16,
        wave: 32,
        capability: 0x2806_2280,
        xccs: 1,
        l2_kib: 8192,
        family: 152,
    },
];

impl Target {
    /// The target with this name, or the first one.
    pub(crate) fn named(name: &str) -> &'static Self {
        TARGETS.iter().find(|target| target.name == name).unwrap_or(&TARGETS[0])
    }
}
