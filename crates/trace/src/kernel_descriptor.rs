//! Decodes the register use of a kernel from its 64-byte descriptor.
//!
//! Source: AMDGPU code object ABI (LLVM AMDGPUUsage, kernel descriptor), and the rounding rule of rocprofv3 1.0.0.

use crate::item::Registers;

/// Words of a kernel descriptor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Descriptor {
    /// COMPUTE_PGM_RSRC1.
    pub rsrc1: u32,
    /// COMPUTE_PGM_RSRC3.
    pub rsrc3: u32,
    /// Kernel code properties.
    pub properties: u16,
}

/// Register use on `target`, an agent name such as `gfx90a`.
pub fn decode(descriptor: Descriptor, target: &str) -> Registers {
    let granules = descriptor.rsrc1 & 0x3f;
    let accumulates = ["gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"]
        .iter()
        .any(|name| target.starts_with(name));
    let wave32 = descriptor.properties & (1 << 10) != 0;
    let (vgpr, agpr) = if accumulates {
        let offset = ((descriptor.rsrc3 & 0x3f) + 1) * 4;
        (offset, ((granules + 1) * 8).saturating_sub(offset))
    } else if target.starts_with("gfx908") {
        ((granules + 1) * 4, (granules + 1) * 4)
    } else {
        ((granules + 1) * if wave32 { 8 } else { 4 }, 0)
    };
    let generation: u32 = target
        .strip_prefix("gfx")
        .map(|digits| digits.get(..digits.len().saturating_sub(2)).unwrap_or(""))
        .and_then(|major| major.parse().ok())
        .unwrap_or(9);
    let sgpr = if generation >= 10 {
        128
    } else {
        (((descriptor.rsrc1 >> 6) & 0xf) / 2 + 1) * 16
    };
    Registers { vgpr, agpr, sgpr }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_follow_the_target() {
        let descriptor = Descriptor {
            rsrc1: 2 | 2 << 6,
            rsrc3: 3,
            properties: 0,
        };
        assert_eq!(
            decode(descriptor, "gfx906"),
            Registers {
                vgpr: 12,
                agpr: 0,
                sgpr: 32
            }
        );
        assert_eq!(
            decode(descriptor, "gfx90a"),
            Registers {
                vgpr: 16,
                agpr: 8,
                sgpr: 32
            }
        );
        assert_eq!(
            decode(descriptor, "gfx908"),
            Registers {
                vgpr: 12,
                agpr: 12,
                sgpr: 32
            }
        );
        let wave32 = Descriptor {
            properties: 1 << 10,
            ..descriptor
        };
        assert_eq!(
            decode(wave32, "gfx1030"),
            Registers {
                vgpr: 24,
                agpr: 0,
                sgpr: 128
            }
        );
    }
}
