//! `gpu_metrics` 1.9 has attributes instead of fixed fields. Each is a 64-bit word with unit, type, number and count,
//! followed by that many values without padding (`kgd_pp_interface.h`, `AMDGPU_METRICS_ENC_ATTR`).

use super::Absent;
use super::gpu_metrics::Field;

/// Names of attributes by number, as the fields of older revisions.
const NAMES: [&str; 48] = [
    "temperature_hotspot",
    "temperature_mem",
    "temperature_vrsoc",
    "curr_socket_power",
    "average_gfx_activity",
    "average_umc_activity",
    "mem_max_bandwidth",
    "energy_accumulator",
    "system_clock_counter",
    "accumulation_counter",
    "prochot_residency_acc",
    "ppt_residency_acc",
    "socket_thm_residency_acc",
    "vr_thm_residency_acc",
    "hbm_thm_residency_acc",
    "gfxclk_lock_status",
    "pcie_link_width",
    "pcie_link_speed",
    "xgmi_link_width",
    "xgmi_link_speed",
    "gfx_activity_acc",
    "mem_activity_acc",
    "pcie_bandwidth_acc",
    "pcie_bandwidth_inst",
    "pcie_l0_to_recov_count_acc",
    "pcie_replay_count_acc",
    "pcie_replay_rover_count_acc",
    "pcie_nak_sent_count_acc",
    "pcie_nak_rcvd_count_acc",
    "xgmi_read_data_acc",
    "xgmi_write_data_acc",
    "xgmi_link_status",
    "firmware_timestamp",
    "current_gfxclk",
    "current_socclk",
    "current_vclk0",
    "current_dclk0",
    "current_uclk",
    "num_partition",
    "pcie_lc_perf_other_end_recovery",
    "gfx_busy_inst",
    "jpeg_busy",
    "vcn_busy",
    "gfx_busy_acc",
    "gfx_below_host_limit_ppt_acc",
    "gfx_below_host_limit_thm_acc",
    "gfx_low_utilization_acc",
    "gfx_below_host_limit_total_acc",
];
/// Offset of the first attribute, bytes: after the header and the number of attributes.
const FIRST_OFFSET: usize = 8;

/// Attributes of a table; unknown numbers are skipped.
///
/// Errors: an attribute has an unknown type, or exceeds the table.
pub(super) fn fields(table: &[u8]) -> Result<Vec<Field>, Absent> {
    let count = table.get(4..FIRST_OFFSET).and_then(|raw| raw.first_chunk().copied());
    let count = u32::from_le_bytes(count.ok_or(Absent::Unreadable)?);
    let mut fields = Vec::new();
    let mut at = FIRST_OFFSET;
    for _ in 0..count {
        let raw = table.get(at..).and_then(|rest| rest.first_chunk().copied());
        let word = u64::from_le_bytes(raw.ok_or(Absent::Unreadable)?);
        let width = match word >> 20 & 0xf {
            0 | 1 => 1,
            2 | 3 => 2,
            4 | 5 => 4,
            6 | 7 => 8,
            _ => return Err(Absent::UnknownLayout),
        };
        let (number, count) = ((word >> 10 & 0x3ff) as usize, (word & 0x3ff) as usize);
        let offset = at + 8;
        at = offset + width * count;
        if at > table.len() {
            return Err(Absent::Unreadable);
        }
        if let Some(name) = NAMES.get(number) {
            fields.push(Field {
                name,
                offset,
                width,
                count,
            });
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::super::gpu_metrics::Table;
    use super::*;

    fn table(attributes: &[(u64, u64, &[u64])]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 1, 9];
        bytes.extend((attributes.len() as u32).to_le_bytes());
        for (kind, number, values) in attributes {
            bytes.extend((kind << 20 | number << 10 | values.len() as u64).to_le_bytes());
            for value in *values {
                bytes.extend(&value.to_le_bytes()[..1 << (kind / 2)]);
            }
        }
        let size = (bytes.len() as u16).to_le_bytes();
        bytes[..2].copy_from_slice(&size);
        bytes
    }

    #[test]
    fn attributes_are_read_by_their_numbers() {
        let clocks = [2098, 2115, 0xffff];
        let bytes = table(&[
            (2, 0, &[42]),
            (3, 3, &[194]),
            (2, 33, &clocks),
            (6, 1000, &[1]),
            (6, 7, &[5]),
        ]);
        let read = Table::read(&bytes).unwrap();
        assert_eq!(read.all("temperature_hotspot"), Ok(vec![42]));
        assert_eq!(read.all("curr_socket_power"), Ok(vec![194]));
        assert_eq!(read.all("current_gfxclk"), Ok(vec![2098, 2115]));
        assert_eq!(read.all("energy_accumulator"), Ok(vec![5]));
        assert_eq!(read.all("current_uclk"), Err(Absent::NoField));
    }

    #[test]
    fn a_table_that_is_not_what_it_says_is_refused() {
        let good = table(&[(2, 0, &[42]), (6, 29, &[1, 2, 3])]);
        for length in 0..good.len() {
            let mut cut = good[..length].to_vec();
            assert!(Table::read(&cut).is_err(), "{length}");
            if length >= 4 {
                cut[..2].copy_from_slice(&(length as u16).to_le_bytes());
                assert!(Table::read(&cut).is_err(), "{length}");
            }
        }
        let mut many = good.clone();
        many[4..8].fill(0xff);
        assert!(Table::read(&many).is_err());
        let mut strange = good;
        strange[10] |= 0xf0;
        assert!(matches!(Table::read(&strange), Err(Absent::UnknownLayout)));
    }
}
