//! Metrics derived from counters of the same kernel, each with formula and source.
//!
//! Inputs are means over a kernel's dispatches, summed over all instances. A metric without all its counters has no
//! value and names the missing ones.

/// Hardware parameters of the formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Machine {
    /// Number of compute units.
    pub units: f64,
    /// SIMDs per compute unit.
    pub simds: f64,
    /// Maximum number of waves per SIMD.
    pub waves: f64,
    /// Lanes per wave.
    pub lanes: f64,
    /// Peak memory bandwidth, bytes/s, if known.
    pub peak_bandwidth: Option<f64>,
    /// Mean duration of the kernel, s.
    pub seconds: f64,
}

/// Computes a metric from mean counter values; NaN if one is missing.
type Formula = fn(&dyn Fn(&str) -> f64, &Machine) -> f64;

impl Machine {
    /// Parameters of a GPU by its instruction set: SIMDs per compute unit and waves per SIMD, as in the driver's
    /// topology.
    pub fn of(name: &str, units: u32, lanes: u32) -> Self {
        let (simds, waves) = match name {
            "gfx90a" | "gfx940" | "gfx941" | "gfx942" | "gfx950" => (4.0, 8.0),
            name if name.starts_with("gfx9") => (4.0, 10.0),
            name if name.starts_with("gfx101") => (2.0, 20.0),
            _ => (2.0, 16.0),
        };
        Self {
            units: f64::from(units),
            simds,
            waves,
            lanes: f64::from(lanes),
            ..Self::default()
        }
    }
}

/// A derived metric.
pub struct Metric {
    /// Name, also as a column.
    pub key: &'static str,
    /// Description.
    pub title: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Formula, in names of counters.
    pub formula: &'static str,
    /// Required counters.
    pub counters: &'static [&'static str],
    /// Source of the formula.
    pub source: &'static str,
    compute: Formula,
}

/// All derived metrics.
pub const METRICS: &[Metric] = &[
    Metric {
        key: "OCCUPANCY",
        title: "achieved occupancy: waves in flight as a share of the maximum",
        unit: "%",
        formula: "100 * SQ_LEVEL_WAVES / (GRBM_GUI_ACTIVE * CUs * SIMDs of a CU * waves of a SIMD)",
        counters: &["SQ_LEVEL_WAVES", "GRBM_GUI_ACTIVE"],
        source: "SQ_LEVEL_WAVES adds up the waves in flight at each clock (ROCm Compute Profiler, wavefront occupancy)",
        compute: |value, machine| {
            100.0 * value("SQ_LEVEL_WAVES") / (value("GRBM_GUI_ACTIVE") * machine.units * machine.simds * machine.waves)
        },
    },
    Metric {
        key: "VALU_UTIL",
        title: "VALU utilisation: active lanes as a share of issued lanes",
        unit: "%",
        formula: "100 * SQ_THREAD_CYCLES_VALU / (SQ_ACTIVE_INST_VALU * lanes of a wave)",
        counters: &["SQ_THREAD_CYCLES_VALU", "SQ_ACTIVE_INST_VALU"],
        source: "VALUUtilization of rocprofiler-sdk's counter definitions",
        compute: |value, machine| {
            100.0 * value("SQ_THREAD_CYCLES_VALU") / (value("SQ_ACTIVE_INST_VALU") * machine.lanes)
        },
    },
    Metric {
        key: "L2_HIT",
        title: "L2 hit rate",
        unit: "%",
        formula: "100 * TCC_HIT / (TCC_HIT + TCC_MISS)",
        counters: &["TCC_HIT", "TCC_MISS"],
        source: "L2CacheHit of rocprofiler-sdk's counter definitions",
        compute: |value, _| 100.0 * value("TCC_HIT") / (value("TCC_HIT") + value("TCC_MISS")),
    },
    Metric {
        key: "HBM_RATE",
        title: "memory bandwidth",
        unit: "B/s",
        formula: "(32 * TCC_EA_RDREQ_32B + 64 * (TCC_EA_RDREQ - TCC_EA_RDREQ_32B) + 64 * TCC_EA_WRREQ_64B \
+ 32 * (TCC_EA_WRREQ - TCC_EA_WRREQ_64B)) / duration",
        counters: &["TCC_EA_RDREQ", "TCC_EA_RDREQ_32B", "TCC_EA_WRREQ", "TCC_EA_WRREQ_64B"],
        source: "FETCH_SIZE and WRITE_SIZE of rocprofiler-sdk's counter definitions",
        compute: |value, machine| bytes(value) / machine.seconds,
    },
    Metric {
        key: "HBM_SHARE",
        title: "memory bandwidth as a share of the peak",
        unit: "%",
        formula: "100 * HBM_RATE / peak (gpu_metrics' mem_max_bandwidth, else 2 * clock * width of the topology's memory bank)",
        counters: &["TCC_EA_RDREQ", "TCC_EA_RDREQ_32B", "TCC_EA_WRREQ", "TCC_EA_WRREQ_64B"],
        source: "as HBM_RATE; two transfers per clock",
        compute: |value, machine| 100.0 * bytes(value) / machine.seconds / machine.peak_bandwidth.unwrap_or(f64::NAN),
    },
    Metric {
        key: "FLOPS_PER_BYTE",
        title: "arithmetic intensity",
        unit: "FLOP/B",
        formula: "lanes of a wave * (ADD_F* + MUL_F* + TRANS_F* + 2 * FMA_F*, of 16, 32 and 64 bits) / bytes of HBM_RATE",
        counters: &[
            "SQ_INSTS_VALU_ADD_F32",
            "SQ_INSTS_VALU_MUL_F32",
            "SQ_INSTS_VALU_FMA_F32",
            "TCC_EA_RDREQ",
            "TCC_EA_RDREQ_32B",
            "TCC_EA_WRREQ",
            "TCC_EA_WRREQ_64B",
        ],
        source: "ROCm Compute Profiler, roofline; without matrix instructions",
        compute: |value, machine| flops(value, machine) / bytes(value),
    },
    Metric {
        key: "FLOP_RATE",
        title: "floating-point operations per second",
        unit: "FLOP/s",
        formula: "numerator of FLOPS_PER_BYTE / duration",
        counters: &[
            "SQ_INSTS_VALU_ADD_F32",
            "SQ_INSTS_VALU_MUL_F32",
            "SQ_INSTS_VALU_FMA_F32",
        ],
        source: "ROCm Compute Profiler, roofline; without matrix instructions",
        compute: |value, machine| flops(value, machine) / machine.seconds,
    },
    Metric {
        key: "LDS_CONFLICT",
        title: "LDS bank conflicts: lost clocks as a share of all",
        unit: "%",
        formula: "100 * SQ_LDS_BANK_CONFLICT / (GRBM_GUI_ACTIVE * CUs)",
        counters: &["SQ_LDS_BANK_CONFLICT", "GRBM_GUI_ACTIVE"],
        source: "LDSBankConflict of rocprofiler-sdk's counter definitions",
        compute: |value, machine| 100.0 * value("SQ_LDS_BANK_CONFLICT") / (value("GRBM_GUI_ACTIVE") * machine.units),
    },
];

fn bytes(value: &dyn Fn(&str) -> f64) -> f64 {
    let (reads, small) = (value("TCC_EA_RDREQ"), value("TCC_EA_RDREQ_32B"));
    let (writes, large) = (value("TCC_EA_WRREQ"), value("TCC_EA_WRREQ_64B"));
    32.0 * small + 64.0 * (reads - small) + 64.0 * large + 32.0 * (writes - large)
}

/// Counters of widths that were not collected count as 0.
fn flops(value: &dyn Fn(&str) -> f64, machine: &Machine) -> f64 {
    let sum: f64 = ["F16", "F32", "F64"]
        .iter()
        .map(|width| {
            let of = |kind: &str| {
                let found = value(&format!("SQ_INSTS_VALU_{kind}_{width}"));
                if found.is_nan() { 0.0 } else { found }
            };
            of("ADD") + of("MUL") + of("TRANS") + 2.0 * of("FMA")
        })
        .sum();
    sum * machine.lanes
}

impl Metric {
    /// The metric with this name.
    pub fn named(key: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.key == key)
    }

    /// The value, or the missing counters. `value` returns a counter's mean.
    pub fn value(&self, value: &dyn Fn(&str) -> Option<f64>, machine: &Machine) -> Result<f64, Vec<&'static str>> {
        let missing: Vec<&str> = self
            .counters
            .iter()
            .copied()
            .filter(|name| value(name).is_none())
            .collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        let found = (self.compute)(&|name| value(name).unwrap_or(f64::NAN), machine);
        if found.is_finite() { Ok(found) } else { Err(Vec::new()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(key: &str, counters: &[(&str, f64)]) -> Result<f64, Vec<&'static str>> {
        let machine = Machine {
            units: 60.0,
            simds: 4.0,
            waves: 10.0,
            lanes: 64.0,
            peak_bandwidth: Some(1e9),
            seconds: 1e-3,
        };
        let value = |name: &str| counters.iter().find(|one| one.0 == name).map(|one| one.1);
        Metric::named(key).expect("a metric").value(&value, &machine)
    }

    #[test]
    fn metrics_follow_their_formulas() {
        assert_eq!(compute("L2_HIT", &[("TCC_HIT", 75.0), ("TCC_MISS", 25.0)]), Ok(75.0));
        let occupancy = [("SQ_LEVEL_WAVES", 120_000.0), ("GRBM_GUI_ACTIVE", 100.0)];
        assert_eq!(compute("OCCUPANCY", &occupancy), Ok(50.0));
        let valu = [("SQ_THREAD_CYCLES_VALU", 3200.0), ("SQ_ACTIVE_INST_VALU", 100.0)];
        assert_eq!(compute("VALU_UTIL", &valu), Ok(50.0));
        let memory = [
            ("TCC_EA_RDREQ", 1000.0),
            ("TCC_EA_RDREQ_32B", 0.0),
            ("TCC_EA_WRREQ", 500.0),
            ("TCC_EA_WRREQ_64B", 500.0),
        ];
        assert_eq!(compute("HBM_RATE", &memory), Ok(96_000_000.0));
        assert_eq!(compute("HBM_SHARE", &memory), Ok(9.6));
        let mut all = memory.to_vec();
        all.extend([
            ("SQ_INSTS_VALU_ADD_F32", 100.0),
            ("SQ_INSTS_VALU_MUL_F32", 0.0),
            ("SQ_INSTS_VALU_FMA_F32", 25.0),
        ]);
        assert_eq!(compute("FLOPS_PER_BYTE", &all), Ok(0.1));
        let lds = [("SQ_LDS_BANK_CONFLICT", 600.0), ("GRBM_GUI_ACTIVE", 100.0)];
        assert_eq!(compute("LDS_CONFLICT", &lds), Ok(10.0));
    }

    #[test]
    fn missing_counters_are_named_and_zero_is_no_divisor() {
        assert_eq!(compute("L2_HIT", &[("TCC_HIT", 1.0)]), Err(vec!["TCC_MISS"]));
        assert_eq!(compute("L2_HIT", &[("TCC_HIT", 0.0), ("TCC_MISS", 0.0)]), Err(vec![]));
        assert!(
            METRICS
                .iter()
                .all(|metric| !metric.formula.is_empty() && !metric.source.is_empty())
        );
    }
}
