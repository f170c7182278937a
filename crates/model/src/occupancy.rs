//! How many waves of a launch a GPU's resources allow, what limits them, and how a grid fills the GPU. Arithmetic of what
//! the code object and the packet say: nothing here is measured. An architecture that the table lacks has no answer.
//!
//! Sources of the numbers:
//!
//! - waves of a SIMD, VGPRs and their granules, barriers, SIMDs of a compute unit: LLVM 22, AMDGPUBaseInfo.cpp (`IsaInfo`)
//!   and the features of each target in AMDGPU.td; a test compares with clang's remarks.
//! - SGPRs: the GCN3 and Vega ISA documents: 800 a SIMD, in blocks of 16. From gfx10 on each wave has its own 128.
//! - LDS: AMDGPU.td (`FeatureAddressableLocalMemorySize*`) and `getLdsDwGranularity`; blocks of 1 KiB from gfx10.3 on: Mesa's
//!   `lds_alloc_granularity`. A work-group processor has the LDS of two compute units.

use crate::names::Names;
use crate::table::Shape;
use roctop_trace::item::{Agent, AgentId, Code, KernelId};
use roctop_trace::units;

/// Resources of a compute unit.
#[derive(Clone, Copy, Debug)]
struct Unit {
    simds: u32,
    /// Waves of a SIMD.
    waves: u32,
    /// VGPRs of a SIMD for each lane of a wave of 64, and the block in which they are taken. Waves of 32 have twice both.
    vgprs: u32,
    granule: u32,
    /// AGPRs are in the same file.
    is_unified: bool,
    /// SGPRs of a SIMD; 0 no limit.
    sgprs: u32,
    /// Bytes of LDS, and the block.
    lds: u32,
    lds_block: u32,
    /// Work-groups of several waves.
    barriers: u32,
    has_wave32: bool,
}

const SGPR_BLOCK: u32 = 16;

const VEGA: Unit = Unit {
    simds: 4,
    waves: 10,
    vgprs: 256,
    granule: 4,
    is_unified: false,
    sgprs: 800,
    lds: 64 << 10,
    lds_block: 512,
    barriers: 16,
    has_wave32: false,
};
const CDNA2: Unit = Unit {
    waves: 8,
    vgprs: 512,
    granule: 8,
    is_unified: true,
    ..VEGA
};
const RDNA1: Unit = Unit {
    simds: 2,
    waves: 20,
    vgprs: 512,
    sgprs: 0,
    has_wave32: true,
    ..VEGA
};
const RDNA2: Unit = Unit {
    waves: 16,
    granule: 8,
    lds_block: 1024,
    ..RDNA1
};
const RDNA3: Unit = Unit {
    vgprs: 768,
    granule: 12,
    ..RDNA2
};

impl Unit {
    fn of(agent: &str) -> Option<Self> {
        Some(match agent.split(':').next()? {
            "gfx900" | "gfx902" | "gfx904" | "gfx906" | "gfx908" | "gfx909" | "gfx90c" => VEGA,
            "gfx90a" | "gfx940" | "gfx941" | "gfx942" => CDNA2,
            "gfx950" => Self {
                lds: 160 << 10,
                lds_block: 1280,
                ..CDNA2
            },
            "gfx1010" | "gfx1011" | "gfx1012" | "gfx1013" => RDNA1,
            "gfx1030" | "gfx1031" | "gfx1032" | "gfx1033" | "gfx1034" | "gfx1035" | "gfx1036" | "gfx1102"
            | "gfx1103" | "gfx1150" | "gfx1152" | "gfx1153" => RDNA2,
            "gfx1100" | "gfx1101" | "gfx1151" | "gfx1200" | "gfx1201" => RDNA3,
            _ => return None,
        })
    }

    /// Of a work-group processor: two compute units.
    fn doubled(self) -> Self {
        Self {
            simds: self.simds * 2,
            lds: self.lds * 2,
            barriers: self.barriers * 2,
            ..self
        }
    }
}

/// What allows no more waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// All wave slots are taken.
    Waves,
    /// Another work-group does not fit in the wave slots.
    Workgroup,
    /// Work-groups at a barrier.
    Barriers,
    /// Vector registers.
    Vgpr,
    /// Scalar registers.
    Sgpr,
    /// LDS.
    Lds,
}

impl Limiter {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waves => "waves",
            Self::Workgroup => "wg",
            Self::Barriers => "barriers",
            Self::Vgpr => "VGPR",
            Self::Sgpr => "SGPR",
            Self::Lds => "LDS",
        }
    }
}

/// What a launch configuration can have on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Compute units, or work-group processors where a work-group has both units of one. 0 unknown.
    pub units: u32,
    /// A unit is a work-group processor.
    pub is_wgp: bool,
    /// SIMDs of a unit, and wave slots of a SIMD.
    pub simds: u32,
    /// Wave slots of a SIMD.
    pub slots: u32,
    /// Waves of a work-group.
    pub waves: u32,
    /// Work-groups of a unit that resources allow.
    pub groups: u32,
    /// What allows no more.
    pub limiter: Limiter,
    /// Greatest amount of the limiter's resource that allows more, and the work-groups of a unit then.
    pub next: Option<(u32, u32)>,
    /// Work-groups of the grid.
    pub grid: u64,
}

impl Occupancy {
    /// Of a launch configuration of a kernel on an agent; `None` if the code or the architecture is not known.
    pub fn of(agent: &Agent, code: &Code, shape: &Shape) -> Option<Self> {
        let unit = Unit::of(&agent.name)?;
        let lanes = code
            .wave_size
            .filter(|lanes| *lanes == 64 || *lanes == 32 && unit.has_wave32)?;
        let is_wgp = unit.has_wave32 && code.is_wgp?;
        let unit = if is_wgp { unit.doubled() } else { unit };
        let items: u64 = shape.workgroup.iter().map(|size| u64::from(*size)).product();
        let waves = u32::try_from(items).ok().filter(|items| *items > 0)?.div_ceil(lanes);
        let wide = if lanes == 32 { 2 } else { 1 };
        let (all, granule) = (unit.vgprs * wide, unit.granule * wide);
        let vgprs = if unit.is_unified {
            code.vgpr?
        } else {
            code.vgpr?.max(code.agpr.unwrap_or(0))
        };
        let sgprs = code.sgpr?;
        // Work-groups that a number of waves of each SIMD is enough for.
        let fit = |per_simd: u32| unit.simds * per_simd.min(unit.waves) / waves;
        let by_vgpr = |vgprs: u32| fit(all / vgprs.max(1).checked_next_multiple_of(granule).unwrap_or(u32::MAX));
        let by_sgpr =
            |sgprs: u32| fit(unit.sgprs / sgprs.max(1).checked_next_multiple_of(SGPR_BLOCK).unwrap_or(u32::MAX));
        let slots = fit(unit.waves);
        let is_full = slots * waves == unit.simds * unit.waves;
        let lds = shape.group_size.checked_next_multiple_of(unit.lds_block)?;
        let limits = [
            (if is_full { Limiter::Waves } else { Limiter::Workgroup }, slots),
            (Limiter::Barriers, if waves > 1 { unit.barriers } else { u32::MAX }),
            (Limiter::Vgpr, by_vgpr(vgprs)),
            (Limiter::Sgpr, if unit.sgprs == 0 { u32::MAX } else { by_sgpr(sgprs) }),
            (Limiter::Lds, unit.lds.checked_div(lds).unwrap_or(u32::MAX)),
        ];
        let (limiter, groups) = limits.into_iter().min_by_key(|limit| limit.1)?;
        let others = limits
            .iter()
            .filter(|limit| limit.0 != limiter)
            .map(|limit| limit.1)
            .min()?;
        let next = match limiter {
            _ if others <= groups => None,
            // The most registers with which a SIMD has the waves of one more work-group.
            Limiter::Vgpr => Some(all / ((groups + 1) * waves).div_ceil(unit.simds) / granule * granule)
                .filter(|vgprs| *vgprs > 0)
                .map(|vgprs| (vgprs, by_vgpr(vgprs).min(others))),
            Limiter::Lds => Some((unit.lds / (groups + 1) / unit.lds_block * unit.lds_block, groups + 1)),
            _ => None,
        };
        let grid = shape
            .grid
            .iter()
            .zip(shape.workgroup)
            .map(|(all, size)| all.div_ceil(size.max(1).into()));
        (groups > 0).then(|| Self {
            units: agent.compute_units / if is_wgp { 2 } else { 1 },
            is_wgp,
            simds: unit.simds,
            slots: unit.waves,
            waves,
            groups,
            limiter,
            next,
            grid: grid.map(u64::from).fold(1, u64::saturating_mul),
        })
    }

    /// Of a kernel's launch configuration on an agent, by their names.
    pub fn known(names: &Names, kernel: KernelId, agent: AgentId, shape: &Shape) -> Option<Self> {
        let code = names.kernel(kernel)?.kernel.code?;
        Self::of(names.agent(agent)?, &code, shape)
    }

    /// Share of the wave slots that resources allow.
    pub fn share(&self) -> f64 {
        let (allowed, slots) = self.waves_of_unit();
        f64::from(allowed) / f64::from(slots)
    }

    /// Work-groups that are on the GPU at a time; 0 unknown.
    pub fn at_once(&self) -> u64 {
        u64::from(self.units) * u64::from(self.groups)
    }

    /// Waves of a unit that resources allow, and its wave slots.
    pub const fn waves_of_unit(&self) -> (u32, u32) {
        (self.groups * self.waves, self.simds * self.slots)
    }

    /// Rounds in which the grid is done; `None` if the compute units or the grid are not known.
    pub fn rounds(&self) -> Option<u64> {
        (self.grid > 0 && self.units > 0).then(|| self.grid.div_ceil(self.at_once()))
    }

    /// Share of the places of all rounds that have a work-group, and of the last round.
    pub fn fill(&self) -> Option<(f64, f64)> {
        let (rounds, at_once) = (self.rounds()?, self.at_once());
        let last = self.grid - (rounds - 1) * at_once;
        Some((
            self.grid as f64 / (rounds as f64 * at_once as f64),
            last as f64 / at_once as f64,
        ))
    }

    /// Waves of a SIMD with `groups` work-groups on a unit.
    fn waves_text(&self, groups: u32) -> String {
        let waves = groups * self.waves;
        if waves.is_multiple_of(self.simds) {
            return (waves / self.simds).to_string();
        }
        format!("{:.1}", f64::from(waves) / f64::from(self.simds))
    }

    /// `LDS 32 KiB × 256 allow 2 of 8 waves per SIMD; ≤ 21 KiB gives 3`.
    pub fn limit_text(&self, code: &Code, shape: &Shape) -> String {
        let items: u32 = shape.workgroup.iter().map(|size| u32::from(*size)).product();
        let bytes = |bytes: u32| units::bytes(bytes.into());
        let registers = |count: Option<u32>| count.map_or_else(|| units::MISSING.into(), |count| count.to_string());
        let cause = match self.limiter {
            Limiter::Waves => "wave slots".into(),
            Limiter::Workgroup => format!("work-group {items}"),
            Limiter::Barriers => format!("barriers × {items}"),
            Limiter::Vgpr => format!("VGPR {} × {items}", registers(code.vgpr)),
            Limiter::Sgpr => format!("SGPR {} × {items}", registers(code.sgpr)),
            Limiter::Lds => format!("LDS {} × {items}", bytes(shape.group_size)),
        };
        let next = self.next.map_or_else(String::new, |(amount, groups)| {
            let amount = if self.limiter == Limiter::Lds {
                bytes(amount)
            } else {
                amount.to_string()
            };
            format!("; ≤ {amount} gives {}", self.waves_text(groups))
        });
        format!(
            "{cause} allow {} of {} waves per SIMD{next}",
            self.waves_text(self.groups),
            self.slots
        )
    }

    /// `304 CUs, 1 work-group each, 320 work-groups: 2 rounds, 53 % filled, the last 5 %`.
    pub fn fill_text(&self) -> Option<String> {
        let (rounds, (fill, last)) = (self.rounds()?, self.fill()?);
        let unit = if self.is_wgp { "WGPs" } else { "CUs" };
        Some(format!(
            "{} {unit}, {} each, {}: {}, {:.0} % filled, the last {:.0} %",
            self.units,
            units::counted(self.groups.into(), "work-group", "work-groups"),
            units::counted(self.grid, "work-group", "work-groups"),
            units::counted(rounds, "round", "rounds"),
            fill * 100.0,
            last * 100.0,
        ))
    }
}

#[cfg(test)]
mod tests;
