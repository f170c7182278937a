//! PC sampling: configurations that agents offer, samples, and the names of both.

use crate::id::{AgentId, Nanos, ProcessId};
use roctop_ring::record::sampling;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A PC sampling configuration that an agent offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Process whose collector reported it.
    pub process: ProcessId,
    /// Agent.
    pub agent: AgentId,
    /// One of [`roctop_ring::record::sampling`].
    pub method: u16,
    /// Unit of the interval: 1 instructions, 2 cycles, 3 time.
    pub unit: u16,
    /// Minimum interval.
    pub minimum: u64,
    /// Maximum interval.
    pub maximum: u64,
    /// Whether the interval must be a power of two.
    pub is_power_of_two: bool,
}

impl Configuration {
    /// Name of the method in rocprofv3's options.
    pub const fn method(&self) -> &'static str {
        match self.method {
            sampling::STOCHASTIC => "stochastic",
            sampling::HOST_TRAP => "host_trap",
            _ => "unknown",
        }
    }

    /// Name of the unit in rocprofv3's options.
    pub const fn unit(&self) -> &'static str {
        match self.unit {
            1 => "instructions",
            2 => "cycles",
            3 => "time",
            _ => "unknown",
        }
    }

    /// Text of rocprofv3's list for the interval.
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

/// A PC sample: where a wave was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Process.
    pub process: ProcessId,
    /// Time of the sample.
    pub at: Nanos,
    /// Active lanes, one bit each.
    pub exec_mask: u64,
    /// Dispatch number in the process.
    pub dispatch: u64,
    /// Code object id of rocprofiler-sdk; 0 if none.
    pub code_object: u64,
    /// Offset of the instruction in the code object; its address if there is none.
    pub offset: u64,
    /// Waves on the compute unit; 0 for a host-trap sample.
    pub wave_count: u32,
    /// Whether the wave issued the instruction.
    pub is_issued: bool,
    /// Instruction type, as an index of rocprofiler-sdk's enumeration.
    pub instruction: u16,
    /// Stall reason, as an index of rocprofiler-sdk's enumeration.
    pub reason: u16,
    /// One of [`roctop_ring::record::sampling`].
    pub method: u16,
    /// Work-group index in the grid.
    pub workgroup: [u32; 3],
    /// Wave index in its work-group.
    pub wave: u16,
    /// Arbiter state: the bits of `rocprofiler_pc_sampling_snapshot_v0_t`.
    pub snapshot: u32,
    /// Hardware location: the bits of `rocprofiler_pc_sampling_hw_id_v0_t`.
    pub hardware: u64,
}

/// `rocprofiler_pc_sampling_instruction_type_t`, without prefix.
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
/// `rocprofiler_pc_sampling_instruction_not_issued_reason_t`, without prefix.
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
    /// Instruction type, as rocprofiler-sdk spells it.
    pub fn instruction(&self) -> String {
        named(
            "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_",
            &INSTRUCTIONS,
            self.instruction,
        )
    }

    /// Stall reason, as rocprofiler-sdk spells it.
    pub fn reason(&self) -> String {
        named(
            "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_",
            &REASONS,
            self.reason,
        )
    }

    /// Whether the hardware took the sample; only then are wave count, type and reason valid.
    pub const fn is_stochastic(&self) -> bool {
        self.method == sampling::STOCHASTIC
    }

    /// Location as text. Instructions are not disassembled.
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

/// Short name of an instruction type.
pub fn instruction_word(number: u16) -> &'static str {
    INSTRUCTIONS.get(usize::from(number)).copied().unwrap_or("unknown")
}

/// Short name of a stall reason.
pub fn reason_word(number: u16) -> &'static str {
    REASONS.get(usize::from(number)).copied().unwrap_or("unknown")
}

fn named(prefix: &str, names: &[&str], number: u16) -> String {
    names
        .get(usize::from(number))
        .map_or_else(|| format!("(unknown {number})"), |name| format!("{prefix}{name}"))
}

/// A request for PC sampling: method, unit and interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingRequest {
    method: String,
    unit: String,
    interval: u64,
}

/// Error of a PC sampling request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SamplingRequestError {
    /// Unknown method.
    #[error("PC sampling: the method is stochastic or host_trap, not '{0}'")]
    Method(String),
    /// Unknown unit.
    #[error("PC sampling: the unit is instructions, cycles or time, not '{0}'")]
    Unit(String),
    /// The interval is not a positive number.
    #[error("PC sampling: the interval is a number above 0")]
    Interval,
    /// The text does not have three parts.
    #[error("PC sampling takes METHOD,UNIT,INTERVAL as host_trap,time,100, not '{0}'")]
    Shape(String),
}

impl SamplingRequest {
    /// Validates the three parts of a request.
    ///
    /// Errors: a part is unknown.
    pub fn new(method: &str, unit: &str, interval: &str) -> Result<Self, SamplingRequestError> {
        if !["stochastic", "host_trap"].contains(&method) {
            return Err(SamplingRequestError::Method(method.to_owned()));
        }
        if !["instructions", "cycles", "time"].contains(&unit) {
            return Err(SamplingRequestError::Unit(unit.to_owned()));
        }
        let interval = interval.parse().ok().filter(|interval| *interval > 0);
        Ok(Self {
            method: method.to_owned(),
            unit: unit.to_owned(),
            interval: interval.ok_or(SamplingRequestError::Interval)?,
        })
    }

    /// Parses a request such as `host_trap,time,100`.
    ///
    /// Errors: the text does not have this form.
    pub fn parse(text: &str) -> Result<Self, SamplingRequestError> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let [method, unit, interval] = words[..] else {
            return Err(SamplingRequestError::Shape(text.to_owned()));
        };
        Self::new(method, unit, interval)
    }

    /// Whether an agent offers this method, unit and interval.
    pub fn is_offered(&self, offer: &Configuration) -> bool {
        (offer.method(), offer.unit()) == (&*self.method, &*self.unit)
            && (offer.minimum..=offer.maximum).contains(&self.interval)
            && (!offer.is_power_of_two || self.interval.is_power_of_two())
    }
}

impl fmt::Display for SamplingRequest {
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
        let fits = |text: &str| SamplingRequest::parse(text).is_ok_and(|wish| wish.is_offered(&offer));
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
            assert!(SamplingRequest::parse(wrong).is_err(), "{wrong}");
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
