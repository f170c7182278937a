//! `gpu_metrics`: the driver's binary table, in all revisions of the kernel's header (`kgd_pp_interface.h`): 1.0 to 1.9
//! for GPUs, 2.0 to 2.4 and 3.0 for APUs.
//!
//! Each revision is a list of fields in the header's order; offsets follow from C's alignment rules. 1.9 describes its
//! own fields (`attributes`).

use super::attributes;
use super::partition;
use super::{Absent, Metric, Sample};
use roctop_trace::gauge::throttle;

/// `{u16 structure_size; u8 format_revision; u8 content_revision}`.
const HEADER_BYTES: usize = 4;

const V1_0: &str = "system_clock_counter:8 temperature_edge:2 temperature_hotspot:2 temperature_mem:2 \
    temperature_vrgfx:2 temperature_vrsoc:2 temperature_vrmem:2 average_gfx_activity:2 average_umc_activity:2 \
    average_mm_activity:2 average_socket_power:2 energy_accumulator:4 average_gfxclk:2 average_socclk:2 \
    average_uclk:2 average_vclk0:2 average_dclk0:2 average_vclk1:2 average_dclk1:2 current_gfxclk:2 current_socclk:2 \
    current_uclk:2 current_vclk0:2 current_dclk0:2 current_vclk1:2 current_dclk1:2 throttle_status:4 \
    current_fan_speed:2 pcie_link_width:1 pcie_link_speed:1";
const V1_1: &str = "temperature_edge:2 temperature_hotspot:2 temperature_mem:2 temperature_vrgfx:2 \
    temperature_vrsoc:2 temperature_vrmem:2 average_gfx_activity:2 average_umc_activity:2 average_mm_activity:2 \
    average_socket_power:2 energy_accumulator:8 system_clock_counter:8 average_gfxclk:2 average_socclk:2 \
    average_uclk:2 average_vclk0:2 average_dclk0:2 average_vclk1:2 average_dclk1:2 current_gfxclk:2 current_socclk:2 \
    current_uclk:2 current_vclk0:2 current_dclk0:2 current_vclk1:2 current_dclk1:2 throttle_status:4 \
    current_fan_speed:2 pcie_link_width:2 pcie_link_speed:2 padding:2 gfx_activity_acc:4 mem_activity_acc:4 \
    temperature_hbm:2*4";
const V1_2_MORE: &str = "firmware_timestamp:8";
const V1_3_MORE: &str = "voltage_soc:2 voltage_gfx:2 voltage_mem:2 padding1:2 indep_throttle_status:8";
const V1_4: &str = "temperature_hotspot:2 temperature_mem:2 temperature_vrsoc:2 curr_socket_power:2 \
    average_gfx_activity:2 average_umc_activity:2 vcn_activity:2*4 energy_accumulator:8 system_clock_counter:8";
const V1_5: &str = "temperature_hotspot:2 temperature_mem:2 temperature_vrsoc:2 curr_socket_power:2 \
    average_gfx_activity:2 average_umc_activity:2 vcn_activity:2*4 jpeg_activity:2*32 energy_accumulator:8 \
    system_clock_counter:8";
const V1_4_LINKS: &str = "throttle_status:4 gfxclk_lock_status:4";
const V1_6: &str = "temperature_hotspot:2 temperature_mem:2 temperature_vrsoc:2 curr_socket_power:2 \
    average_gfx_activity:2 average_umc_activity:2 energy_accumulator:8 system_clock_counter:8";
const V1_7: &str = "temperature_hotspot:2 temperature_mem:2 temperature_vrsoc:2 curr_socket_power:2 \
    average_gfx_activity:2 average_umc_activity:2 mem_max_bandwidth:8 energy_accumulator:8 system_clock_counter:8";
const RESIDENCIES: &str = "accumulation_counter:4 prochot_residency_acc:4 ppt_residency_acc:4 \
    socket_thm_residency_acc:4 vr_thm_residency_acc:4 hbm_thm_residency_acc:4 gfxclk_lock_status:4";
const LINKS: &str = "pcie_link_width:2 pcie_link_speed:2 xgmi_link_width:2 xgmi_link_speed:2 gfx_activity_acc:4 \
    mem_activity_acc:4 pcie_bandwidth_acc:8 pcie_bandwidth_inst:8 pcie_l0_to_recov_count_acc:8 \
    pcie_replay_count_acc:8 pcie_replay_rover_count_acc:8";
const NAKS: &str = "pcie_nak_sent_count_acc:4 pcie_nak_rcvd_count_acc:4";
const XGMI: &str = "xgmi_read_data_acc:8*8 xgmi_write_data_acc:8*8";
const XGMI_STATUS: &str = "xgmi_link_status:2*8 padding:2";
const CLOCKS: &str = "firmware_timestamp:8 current_gfxclk:2*8 current_socclk:2*4 current_vclk0:2*4 \
    current_dclk0:2*4 current_uclk:2";
/// Statistics of eight partitions, as 64-bit words (168, 232 and 440 bytes each).
const PARTITIONS: [&str; 3] = ["xcp_stats:8*168", "xcp_stats:8*232", "xcp_stats:8*440"];
const RECOVERY: &str = "pcie_lc_perf_other_end_recovery:4";
const V2_0: &str = "system_clock_counter:8 temperature_gfx:2 temperature_soc:2 temperature_core:2*8 \
    temperature_l3:2*2 average_gfx_activity:2 average_mm_activity:2";
const V2_1: &str = "temperature_gfx:2 temperature_soc:2 temperature_core:2*8 temperature_l3:2*2 \
    average_gfx_activity:2 average_mm_activity:2 system_clock_counter:8";
const V2_REST: &str = "average_socket_power:2 average_cpu_power:2 average_soc_power:2 average_gfx_power:2 \
    average_core_power:2*8 average_gfxclk:2 average_socclk:2 average_uclk:2 average_fclk:2 average_vclk:2 \
    average_dclk:2 current_gfxclk:2 current_socclk:2 current_uclk:2 current_fclk:2 current_vclk:2 current_dclk:2 \
    current_coreclk:2*8 current_l3clk:2*2 throttle_status:4 fan_pwm:2";
const V2_2_MORE: &str = "padding:2*3 indep_throttle_status:8";
const V2_3_MORE: &str =
    "average_temperature_gfx:2 average_temperature_soc:2 average_temperature_core:2*8 average_temperature_l3:2*2";
const V2_4_MORE: &str = "average_cpu_voltage:2 average_soc_voltage:2 average_gfx_voltage:2 average_cpu_current:2 \
    average_soc_current:2 average_gfx_current:2";
const V3_0: &str = "temperature_gfx:2 temperature_soc:2 temperature_core:2*16 temperature_skin:2 \
    average_gfx_activity:2 average_vcn_activity:2 average_ipu_activity:2*8 average_core_c0_activity:2*16 \
    average_dram_reads:2 average_dram_writes:2 average_ipu_reads:2 average_ipu_writes:2 system_clock_counter:8 \
    average_socket_power:4 average_ipu_power:2 average_apu_power:4 average_gfx_power:4 average_dgpu_power:4 \
    average_all_core_power:4 average_core_power:2*16 average_sys_power:2 stapm_power_limit:2 \
    current_stapm_power_limit:2 average_gfxclk:2 average_socclk:2 average_vpeclk:2 average_ipuclk:2 average_fclk:2 \
    average_vclk:2 average_uclk:2 average_mpipu:2 current_coreclk:2*16 current_core_maxfreq:2 current_gfx_maxfreq:2 \
    throttle_residency_prochot:4 throttle_residency_spl:4 throttle_residency_fppt:4 throttle_residency_sppt:4 \
    throttle_residency_thm_core:4 throttle_residency_thm_gfx:4 throttle_residency_thm_soc:4 time_filter_alphavalue:4";

/// All revisions with fixed fields.
pub const REVISIONS: [(u8, u8); 15] = [
    (1, 0),
    (1, 1),
    (1, 2),
    (1, 3),
    (1, 4),
    (1, 5),
    (1, 6),
    (1, 7),
    (1, 8),
    (2, 0),
    (2, 1),
    (2, 2),
    (2, 3),
    (2, 4),
    (3, 0),
];

fn parts(revision: (u8, u8)) -> Option<Vec<&'static str>> {
    Some(match revision {
        (1, 0) => vec![V1_0],
        (1, 1) => vec![V1_1],
        (1, 2) => vec![V1_1, V1_2_MORE],
        (1, 3) => vec![V1_1, V1_2_MORE, V1_3_MORE],
        (1, 4) => vec![V1_4, V1_4_LINKS, LINKS, XGMI, CLOCKS, "padding:2"],
        (1, 5) => vec![V1_5, V1_4_LINKS, LINKS, NAKS, XGMI, CLOCKS, "padding:2"],
        (1, 6) => vec![
            V1_6,
            RESIDENCIES,
            LINKS,
            NAKS,
            XGMI,
            CLOCKS,
            "num_partition:2",
            PARTITIONS[0],
            RECOVERY,
        ],
        (1, 7 | 8) => {
            let partitions = PARTITIONS[usize::from(revision.1) - 6];
            vec![
                V1_7,
                RESIDENCIES,
                LINKS,
                NAKS,
                XGMI,
                XGMI_STATUS,
                CLOCKS,
                "num_partition:2",
                partitions,
                RECOVERY,
            ]
        }
        (2, 0) => vec![V2_0, V2_REST, "padding:2"],
        (2, 1) => vec![V2_1, V2_REST, "padding:2*3"],
        (2, 2) => vec![V2_1, V2_REST, V2_2_MORE],
        (2, 3) => vec![V2_1, V2_REST, V2_2_MORE, V2_3_MORE],
        (2, 4) => vec![V2_1, V2_REST, V2_2_MORE, V2_3_MORE, V2_4_MORE],
        (3, 0) => vec![V3_0],
        _ => return None,
    })
}

/// A field of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in the header, without `_frequency`.
    pub name: &'static str,
    /// Offset, bytes.
    pub offset: usize,
    /// Size of one element, bytes.
    pub width: usize,
    /// Number of elements.
    pub count: usize,
}

/// Fields and size in bytes of a revision; `None` if the revision is unknown.
pub fn layout(revision: (u8, u8)) -> Option<(Vec<Field>, usize)> {
    let mut fields = Vec::new();
    let (mut at, mut widest) = (HEADER_BYTES, 2);
    for word in parts(revision)?.iter().flat_map(|part| part.split_whitespace()) {
        let (name, shape) = word.split_once(':')?;
        let (width, count) = shape.split_once('*').unwrap_or((shape, "1"));
        let (width, count): (usize, usize) = (width.parse().ok()?, count.parse().ok()?);
        // Partition statistics are laid out as 64-bit words.
        at = at.next_multiple_of(width);
        fields.push(Field {
            name,
            offset: at,
            width,
            count,
        });
        at += width * count;
        widest = widest.max(width);
    }
    Some((fields, at.next_multiple_of(widest)))
}

/// A parsed table.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    /// Format and content revision.
    pub revision: (u8, u8),
    fields: Vec<Field>,
    bytes: &'a [u8],
}

impl<'a> Table<'a> {
    /// Parses the bytes of the file.
    ///
    /// Errors: the file is shorter than its header or its stated size, or its revision is unknown.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Absent> {
        let Some(&[low, high, format, content]) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(Absent::Unreadable);
        };
        let size = usize::from(u16::from_le_bytes([low, high]));
        let revision = (format, content);
        let (fields, known) = if revision == (1, 9) {
            let table = bytes.get(..size).ok_or(Absent::Unreadable)?;
            (attributes::fields(table)?, size)
        } else {
            layout(revision).ok_or(Absent::UnknownLayout)?
        };
        // A stated size that differs from the revision's marks an unknown layout.
        if size != known || bytes.len() < size {
            return Err(Absent::Unreadable);
        }
        Ok(Self {
            revision,
            fields,
            bytes: bytes.get(..size).ok_or(Absent::Unreadable)?,
        })
    }

    /// Elements of a field, without those that are all ones (not available).
    pub fn all(&self, name: &str) -> Result<Vec<u64>, Absent> {
        let field = self.fields.iter().find(|field| field.name == name);
        let field = field.ok_or(Absent::NoField)?;
        let raw = self.bytes.get(field.offset..field.offset + field.width * field.count);
        let raw = raw.ok_or(Absent::Unreadable)?;
        let missing = u64::MAX >> (64 - 8 * field.width);
        let values = raw.chunks(field.width).map(|chunk| {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        let values: Vec<u64> = values.filter(|value| *value != missing).collect();
        if values.is_empty() {
            Err(Absent::NotReported)
        } else {
            Ok(values)
        }
    }

    /// Bytes of a field, and its number of elements.
    pub(super) fn raw(&self, name: &str) -> Option<(&'a [u8], usize)> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        let raw = self.bytes.get(field.offset..field.offset + field.width * field.count)?;
        Some((raw, field.count))
    }

    fn largest(&self, names: &[&str]) -> Result<u64, Absent> {
        let mut why = Absent::NoField;
        for name in names {
            match self.all(name) {
                Ok(values) => return Ok(values.into_iter().max().unwrap_or(0)),
                Err(absent) => why = why.max(absent),
            }
        }
        Err(why)
    }

    /// Sum of a field's elements.
    pub fn sum(&self, name: &str) -> Result<u64, Absent> {
        Ok(self.all(name)?.into_iter().fold(0, u64::saturating_add))
    }

    /// Adds the readings of this table to `sample`.
    pub fn put_into(&self, sample: &mut Sample) {
        let is_apu = self.revision.0 >= 2;
        let mut put = |metric, names: &[&str], scale: f64| {
            sample.put(metric, self.largest(names).map(|value| value as f64 * scale));
        };
        put(Metric::SHADER_CLOCK, &["current_gfxclk", "average_gfxclk"], 1.0);
        put(Metric::MEMORY_CLOCK, &["current_uclk", "average_uclk"], 1.0);
        put(Metric::FABRIC_CLOCK, &["current_fclk", "average_fclk"], 1.0);
        put(Metric::SOC_CLOCK, &["current_socclk", "average_socclk"], 1.0);
        // GPUs report watts, APUs milliwatts.
        let watt = if is_apu { 1e-3 } else { 1.0 };
        put(Metric::POWER, &["curr_socket_power", "average_socket_power"], watt);
        put(Metric::FAN, &["current_fan_speed"], 1.0);
        put(Metric::VOLTAGE, &["voltage_gfx", "average_gfx_voltage"], 1.0);
        put(Metric::THROTTLE, &["indep_throttle_status"], 1.0);
        put(Metric::THROTTLE_RAW, &["throttle_status"], 1.0);
        put(Metric::PCIE_WIDTH, &["pcie_link_width"], 1.0);
        put(Metric::PCIE_SPEED, &["pcie_link_speed"], 0.1);
        put(Metric::PCIE_RATE, &["pcie_bandwidth_inst"], 1e9);
        put(Metric::PCIE_REPLAYS, &["pcie_replay_count_acc"], 1.0);
        put(Metric::XGMI_WIDTH, &["xgmi_link_width"], 1.0);
        put(Metric::XGMI_SPEED, &["xgmi_link_speed"], 1.0);
        put(Metric::MEMORY_PEAK, &["mem_max_bandwidth"], 1e9);
        put(Metric::MEMORY_READ, &["average_dram_reads"], 1e6);
        put(Metric::MEMORY_WRITE, &["average_dram_writes"], 1e6);
        // The unit, 15.259 µJ (2^-16 J), is documented from 1.4 on only.
        if self.revision.0 == 1 && self.revision.1 >= 4 {
            put(Metric::ENERGY, &["energy_accumulator"], 1.0 / 65536.0);
        }
        self.put_load(sample);
        self.put_temperatures(sample);
        partition::put_into(self, sample);
    }

    fn put_load(&self, sample: &mut Sample) {
        // 2.4 reports hundredths of a percent. For 2.0 to 2.3 the unit is undocumented; no load exceeds 100 %.
        let hundredths = |value: u64| match self.revision {
            (2, 4) => value as f64 / 100.0,
            (2, _) if value > 100 => value as f64 / 100.0,
            _ => value as f64,
        };
        let media = ["average_mm_activity", "average_vcn_activity", "vcn_activity"];
        for (metric, names) in [
            (Metric::BUSY, &["average_gfx_activity"][..]),
            (Metric::MEMORY_BUSY, &["average_umc_activity"]),
            (Metric::MEDIA_BUSY, &media),
        ] {
            sample.put(metric, self.largest(names).map(hundredths));
        }
    }

    fn put_temperatures(&self, sample: &mut Sample) {
        // APUs report hundredths of a degree where the header leaves the unit open; no chip reaches 1000 °C.
        let celsius = |value: u64| match self.revision.0 {
            2.. if value >= 1000 => value as f64 / 100.0,
            _ => value as f64,
        };
        for (metric, names) in [
            (Metric::EDGE, &["temperature_edge", "temperature_gfx"][..]),
            (Metric::JUNCTION, &["temperature_hotspot"]),
            (Metric::MEMORY_TEMPERATURE, &["temperature_mem", "temperature_hbm"]),
        ] {
            sample.put(metric, self.largest(names).map(celsius));
        }
    }

    /// Cumulative counts, of which only the growth is meaningful.
    pub fn running(&self) -> Running {
        let reasons: [(&str, u64); 12] = [
            ("prochot_residency_acc", throttle::PROCHOT),
            ("ppt_residency_acc", throttle::POWER),
            ("socket_thm_residency_acc", throttle::HOTSPOT),
            ("vr_thm_residency_acc", throttle::REGULATOR),
            ("hbm_thm_residency_acc", throttle::MEMORY),
            ("throttle_residency_prochot", throttle::PROCHOT),
            ("throttle_residency_spl", throttle::SPL),
            ("throttle_residency_fppt", throttle::FPPT),
            ("throttle_residency_sppt", throttle::SPPT),
            ("throttle_residency_thm_core", throttle::CORE),
            ("throttle_residency_thm_gfx", throttle::HOTSPOT),
            ("throttle_residency_thm_soc", throttle::SOC),
        ];
        let residencies = reasons
            .iter()
            .filter_map(|(name, bit)| Some((*bit, self.sum(name).ok()?)));
        Running {
            xgmi_read: self.sum("xgmi_read_data_acc").ok(),
            xgmi_write: self.sum("xgmi_write_data_acc").ok(),
            residencies: residencies.collect(),
        }
    }
}

/// Cumulative counts since the GPU started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// KiB read over xGMI, all links.
    pub xgmi_read: Option<u64>,
    /// KiB written over xGMI, all links.
    pub xgmi_write: Option<u64>,
    /// Throttle bit and its accumulated duration.
    pub residencies: Vec<(u64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(revision: (u8, u8), name: &str) -> usize {
        let (fields, _) = layout(revision).unwrap();
        fields.iter().find(|field| field.name == name).unwrap().offset
    }

    #[test]
    fn sizes_are_those_of_the_kernels_header() {
        let sizes: Vec<usize> = REVISIONS.iter().map(|revision| layout(*revision).unwrap().1).collect();
        let published = [
            80, 96, 104, 120, 288, 360, 1664, 2208, 3872, 120, 120, 128, 152, 168, 264,
        ];
        assert_eq!(sizes, published);
    }

    #[test]
    fn offsets_are_those_that_were_measured() {
        for revision in [(1, 1), (1, 2), (1, 3)] {
            for (name, at) in [
                ("temperature_edge", 4),
                ("average_gfx_activity", 16),
                ("average_socket_power", 22),
                ("energy_accumulator", 24),
                ("current_gfxclk", 54),
                ("current_uclk", 58),
                ("throttle_status", 68),
                ("pcie_link_width", 74),
                ("mem_activity_acc", 84),
            ] {
                assert_eq!(offset(revision, name), at, "{revision:?} {name}");
            }
        }
        assert_eq!(offset((1, 3), "indep_throttle_status"), 112);
        for (revision, clock, memory, activity) in [
            ((1, 4), 240, 280, 56),
            ((1, 5), 312, 352, 120),
            ((1, 6), 264, 304, 68),
            ((1, 7), 296, 336, 76),
            ((1, 8), 296, 336, 76),
        ] {
            assert_eq!(offset(revision, "current_gfxclk"), clock);
            assert_eq!(offset(revision, "current_uclk"), memory);
            assert_eq!(offset(revision, "gfx_activity_acc"), activity);
            assert_eq!(offset(revision, "curr_socket_power"), 10);
        }
        assert_eq!(offset((1, 4), "pcie_bandwidth_acc"), 64);
        assert_eq!((offset((1, 6), "xcp_stats"), offset((1, 7), "xcp_stats")), (312, 344));
    }
}
