//! PC sampling: what agents offer, where waves were, and the names of both.

use crate::id::{AgentId, Nanos, ProcessId};
use roctop_ring::record::sampling;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A way of sampling that an agent offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Whose collector told it.
    pub process: ProcessId,
    /// Of which agent.
    pub agent: AgentId,
    /// One of [`roctop_ring::record::sampling`].
    pub method: u16,
    /// 1 instructions, 2 cycles, 3 time.
    pub unit: u16,
    /// The shortest interval.
    pub minimum: u64,
    /// The longest interval.
    pub maximum: u64,
    /// The interval is a power of two.
    pub is_power_of_two: bool,
}

impl Configuration {
    /// The method's name, as rocprofv3 takes it.
    pub const fn method(&self) -> &'static str {
        match self.method {
            sampling::STOCHASTIC => "stochastic",
            sampling::HOST_TRAP => "host_trap",
            _ => "unknown",
        }
    }

    /// The unit's name, as rocprofv3 takes it.
    pub const fn unit(&self) -> &'static str {
        match self.unit {
            1 => "instructions",
            2 => "cycles",
            3 => "time",
            _ => "unknown",
        }
    }

    /// What upstream's list says of the interval.
    pub const fn flags(&self) -> &'static str {
        if self.is_power_of_two { "interval pow2" } else { "none" }
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (method, unit) = (self.method(), self.unit());
        write!(out, "{method},{unit} from {} to {}", self.minimum, self.maximum)?;
        if self.is_power_of_two {
            write!(out, " (powers of two)")?;
        }
        Ok(())
    }
}

/// Where a wave was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Whose.
    pub process: ProcessId,
    /// When.
    pub at: Nanos,
    /// Active lanes.
    pub exec_mask: u64,
    /// Of which dispatch of the process.
    pub dispatch: u64,
    /// The library's id of the code object; 0 none.
    pub code_object: u64,
    /// Offset of the instruction in it; its address where there is none.
    pub offset: u64,
    /// Waves on the compute unit; 0 for a host trap.
    pub wave_count: u32,
    /// The wave issued the instruction.
    pub is_issued: bool,
    /// Type of the instruction.
    pub instruction: u16,
    /// Why nothing was issued.
    pub reason: u16,
    /// One of [`roctop_ring::record::sampling`].
    pub method: u16,
    /// Work-group in the grid.
    pub workgroup: [u32; 3],
    /// Wave in its work-group.
    pub wave: u16,
    /// What the arbiter did, the bits of `rocprofiler_pc_sampling_snapshot_v0_t`.
    pub snapshot: u32,
    /// Where the wave ran, the bits of `rocprofiler_pc_sampling_hw_id_v0_t`.
    pub hardware: u64,
}

/// Types of instructions, `rocprofiler_pc_sampling_instruction_type_t` without its prefix.
const INSTRUCTIONS: [&str; 17] = [
    "NONE",
    "VALU",
    "MATRIX",
    "SCALAR",
    "TEX",
    "LDS",
    "LDS_DIRECT",
    "FLAT",
    "EXPORT",
    "MESSAGE",
    "BARRIER",
    "BRANCH_NOT_TAKEN",
    "BRANCH_TAKEN",
    "JUMP",
    "OTHER",
    "NO_INST",
    "DUAL_VALU",
];
/// Reasons, `rocprofiler_pc_sampling_instruction_not_issued_reason_t` without its prefix.
const REASONS: [&str; 10] = [
    "NONE",
    "NO_INSTRUCTION_AVAILABLE",
    "ALU_DEPENDENCY",
    "WAITCNT",
    "INTERNAL_INSTRUCTION",
    "BARRIER_WAIT",
    "ARBITER_NOT_WIN",
    "ARBITER_WIN_EX_STALL",
    "OTHER_WAIT",
    "SLEEP_WAIT",
];

impl Sample {
    /// The instruction's type, as rocprofiler-sdk spells it.
    pub fn instruction(&self) -> String {
        named(
            "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_",
            &INSTRUCTIONS,
            self.instruction,
        )
    }

    /// Why nothing was issued, as rocprofiler-sdk spells it.
    pub fn reason(&self) -> String {
        named(
            "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_",
            &REASONS,
            self.reason,
        )
    }

    /// Whether the hardware took it, which then tells what the wave did.
    pub const fn is_stochastic(&self) -> bool {
        self.method == sampling::STOCHASTIC
    }

    /// The place in words: instructions are not disassembled.
    pub fn place(&self) -> String {
        if self.code_object == 0 {
            format!(
                "Unrecognized code object id, physical virtual address of PC:{}",
                self.offset
            )
        } else {
            format!("code object {} + {:#x}", self.code_object, self.offset)
        }
    }
}

/// A type of instructions in a word.
pub fn instruction_word(number: u16) -> &'static str {
    INSTRUCTIONS.get(usize::from(number)).copied().unwrap_or("unknown")
}

/// A reason in a word.
pub fn reason_word(number: u16) -> &'static str {
    REASONS.get(usize::from(number)).copied().unwrap_or("unknown")
}

fn named(prefix: &str, names: &[&str], number: u16) -> String {
    names
        .get(usize::from(number))
        .map_or_else(|| format!("(unknown {number})"), |name| format!("{prefix}{name}"))
}

/// How program counters are to be sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    method: String,
    unit: String,
    interval: u64,
}

/// Why PC sampling cannot be asked for like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WishError {
    /// The word is no method.
    #[error("PC sampling: the method is stochastic or host_trap, not '{0}'")]
    Method(String),
    /// The word is no unit.
    #[error("PC sampling: the unit is instructions, cycles or time, not '{0}'")]
    Unit(String),
    /// The interval is no number, or 0.
    #[error("PC sampling: the interval is a number above 0")]
    Interval,
    /// These are not three words.
    #[error("PC sampling takes METHOD,UNIT,INTERVAL as host_trap,time,100, not '{0}'")]
    Shape(String),
}

impl Wish {
    /// Checks the words.
    ///
    /// Errors: one of them is not known.
    pub fn new(method: &str, unit: &str, interval: &str) -> Result<Self, WishError> {
        if !["stochastic", "host_trap"].contains(&method) {
            return Err(WishError::Method(method.to_owned()));
        }
        if !["instructions", "cycles", "time"].contains(&unit) {
            return Err(WishError::Unit(unit.to_owned()));
        }
        let interval = interval.parse().ok().filter(|interval| *interval > 0);
        Ok(Self {
            method: method.to_owned(),
            unit: unit.to_owned(),
            interval: interval.ok_or(WishError::Interval)?,
        })
    }

    /// Reads `host_trap,time,100`.
    ///
    /// Errors: the text is no such list.
    pub fn parse(text: &str) -> Result<Self, WishError> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let [method, unit, interval] = words[..] else {
            return Err(WishError::Shape(text.to_owned()));
        };
        Self::new(method, unit, interval)
    }

    /// Does an agent offer this?
    pub fn is_offered(&self, offer: &Configuration) -> bool {
        (offer.method(), offer.unit()) == (&*self.method, &*self.unit)
            && (offer.minimum..=offer.maximum).contains(&self.interval)
            && (!offer.is_power_of_two || self.interval.is_power_of_two())
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{},{},{}", self.method, self.unit, self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_checked_against_what_is_offered() {
        let offer = Configuration {
            method: sampling::STOCHASTIC,
            unit: 2,
            minimum: 256,
            maximum: 1 << 20,
            is_power_of_two: true,
            ..Configuration::default()
        };
        let fits = |text: &str| Wish::parse(text).is_ok_and(|wish| wish.is_offered(&offer));
        assert!(fits("stochastic,cycles,1024"));
        for wrong in [
            "stochastic,cycles,1000",
            "stochastic,cycles,128",
            "host_trap,cycles,1024",
            "stochastic,time,1024",
        ] {
            assert!(!fits(wrong), "{wrong}");
        }
        for wrong in [
            "",
            "host_trap",
            "trap,time,1",
            "host_trap,hours,1",
            "host_trap,time,0",
            "host_trap,time,x",
        ] {
            assert!(Wish::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            offer.to_string(),
            "stochastic,cycles from 256 to 1048576 (powers of two)"
        );
    }

    #[test]
    fn numbers_that_are_not_known_have_a_name_too() {
        let sample = Sample {
            instruction: 1,
            reason: 99,
            ..Sample::default()
        };
        assert_eq!(sample.instruction(), "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU");
        assert_eq!(sample.reason(), "(unknown 99)");
    }
}
