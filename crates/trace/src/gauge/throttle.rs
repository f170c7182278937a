//! Names of throttle reasons: the kernel's chip-independent bits (`indep_throttle_status`, amdgpu_smu.h).

/// Bit and short name.
const REASONS: [(u32, &str); 34] = [
    (0, "PPT0"),
    (1, "PPT1"),
    (2, "PPT2"),
    (3, "PPT3"),
    (4, "SPL"),
    (5, "FPPT"),
    (6, "SPPT"),
    (7, "SPPT-APU"),
    (16, "TDC-GFX"),
    (17, "TDC-SOC"),
    (18, "TDC-MEM"),
    (19, "TDC-VDD"),
    (20, "TDC-CVIP"),
    (21, "EDC-CPU"),
    (22, "EDC-GFX"),
    (23, "APCC"),
    (32, "TEMP-GPU"),
    (33, "TEMP-CORE"),
    (34, "TEMP-MEM"),
    (35, "TEMP-EDGE"),
    (36, "TEMP-HOTSPOT"),
    (37, "TEMP-SOC"),
    (38, "TEMP-VR-GFX"),
    (39, "TEMP-VR-SOC"),
    (40, "TEMP-VR-MEM0"),
    (41, "TEMP-VR-MEM1"),
    (42, "TEMP-LIQUID0"),
    (43, "TEMP-LIQUID1"),
    (44, "VRHOT0"),
    (45, "VRHOT1"),
    (46, "PROCHOT-CPU"),
    (47, "PROCHOT-GFX"),
    (56, "PPM"),
    (57, "FIT"),
];

/// Package power limit.
pub const POWER: u64 = 1;
/// Temperature of the chip's hot spot.
pub const HOTSPOT: u64 = 1 << 36;
/// Temperature of the memory.
pub const MEMORY: u64 = 1 << 34;
/// Temperature of the voltage regulators.
pub const REGULATOR: u64 = 1 << 38;
/// Request of the board (PROCHOT).
pub const PROCHOT: u64 = 1 << 47;
/// Temperature of a CPU core on the same chip.
pub const CORE: u64 = 1 << 33;
/// Temperature of the SoC.
pub const SOC: u64 = 1 << 37;
/// Sustained power limit.
pub const SPL: u64 = 1 << 4;
/// Fast package power limit.
pub const FPPT: u64 = 1 << 5;
/// Slow package power limit.
pub const SPPT: u64 = 1 << 6;

/// Names of the bits, joined by spaces; `none` for 0. A bit without a name appears by its number.
pub fn names(bits: u64) -> String {
    let mut names = Vec::new();
    for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
        let known = REASONS.iter().find(|reason| reason.0 == bit);
        names.push(known.map_or_else(|| format!("bit{bit}"), |reason| reason.1.to_owned()));
    }
    if names.is_empty() {
        "none".into()
    } else {
        names.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_has_a_name_of_its_own() {
        assert_eq!(names(0), "none");
        assert_eq!(names(POWER | HOTSPOT | 1 << 63), "PPT0 TEMP-HOTSPOT bit63");
        assert_eq!(names(u64::MAX).split(' ').count(), 64);
    }
}
