//! Options of an export: domains, layout, names of kernels and agents, selection of rows.

use regex::Regex;
use roctop_model::query::Filter;
use roctop_ring::record::Domain;
use roctop_trace::item::Nanos;
use roctop_trace::kernel_name::Aliases;
use roctop_trace::units;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// CSV tables, one file each.
    Csv,
    /// One JSON document of the schema `rocprofiler-sdk-tool`.
    Json,
    /// A Perfetto trace.
    Pftrace,
    /// An SQLite database of the rocpd schema.
    Rocpd,
    /// Parquet tables, in folders by kind and host.
    Parquet,
    /// The Chrome trace of PyTorch's profiler.
    Kineto,
    /// A profile of GPU time by stack of ranges, for pprof.
    Pprof,
    /// GPU time by stack of ranges, a line each.
    Collapsed,
}

impl Format {
    /// Whether its files say where in the program work was launched.
    pub const fn has_call_paths(self) -> bool {
        matches!(self, Self::Pftrace | Self::Parquet | Self::Pprof | Self::Collapsed)
    }
}

/// Release whose columns and names the files have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// rocprofiler-sdk 1.0.0 and later.
    #[default]
    New,
    /// rocprofv3 of ROCm 6.2 and 6.3.
    Seed,
}

/// How kernels are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelNames {
    /// Demangled, with arguments.
    #[default]
    Demangled,
    /// Symbol name, including `.kd`.
    Mangled,
    /// The bare function.
    Truncated,
}

/// How agents are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentIndex {
    /// `Agent 1`, by index among the visible nodes.
    #[default]
    Relative,
    /// `Agent 1`, by the driver's node number.
    Absolute,
    /// `GPU 0`, by index among the agents of its type.
    TypeRelative,
}

/// A kind of record that can be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the domain of its name")]
pub enum Kind {
    HipRuntime,
    HipCompiler,
    HsaCore,
    HsaAmd,
    HsaImage,
    HsaFinalizer,
    Marker,
    Kernel,
    MemoryCopy,
    MemoryAllocation,
    ScratchMemory,
    Rccl,
    RocDecode,
    RocJpeg,
    Mpi,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::HipRuntime,
        Self::HipCompiler,
        Self::HsaCore,
        Self::HsaAmd,
        Self::HsaImage,
        Self::HsaFinalizer,
        Self::Marker,
        Self::Kernel,
        Self::MemoryCopy,
        Self::MemoryAllocation,
        Self::ScratchMemory,
        Self::Rccl,
        Self::RocDecode,
        Self::RocJpeg,
        Self::Mpi,
    ];

    /// Kind of the calls of a domain.
    pub const fn of(domain: Domain) -> Option<Self> {
        Some(match domain {
            Domain::HIP => Self::HipRuntime,
            Domain::HIP_COMPILER => Self::HipCompiler,
            Domain::HSA_CORE => Self::HsaCore,
            Domain::HSA_AMD => Self::HsaAmd,
            Domain::HSA_IMAGE => Self::HsaImage,
            Domain::HSA_FINALIZER => Self::HsaFinalizer,
            Domain::MARKER => Self::Marker,
            Domain::RCCL => Self::Rccl,
            Domain::ROCDECODE => Self::RocDecode,
            Domain::ROCJPEG => Self::RocJpeg,
            Domain::MPI => Self::Mpi,
            _ => return None,
        })
    }
}

/// A library above HIP or beside it whose calls have separate files.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// Kind of its calls.
    pub kind: Kind,
    /// Name of its lists, files and slices.
    pub list: &'static str,
    /// Name of its domain in the files.
    pub domain: &'static str,
    /// File name of its statistics, without extension.
    pub stats: &'static str,
    /// Number of its kind among the buffer records.
    pub number: usize,
}

/// All these libraries.
pub const LIBRARIES: [Library; 4] = [
    Library {
        kind: Kind::Rccl,
        list: "rccl_api",
        domain: "RCCL_API",
        stats: "rccl_api_stats",
        number: 14,
    },
    Library {
        kind: Kind::RocDecode,
        list: "rocdecode_api",
        domain: "ROCDECODE_API",
        stats: "rocdecode_api_stats",
        number: 18,
    },
    Library {
        kind: Kind::RocJpeg,
        list: "rocjpeg_api",
        domain: "ROCJPEG_API",
        stats: "rocjpeg_api_stats",
        number: 19,
    },
    // Upstream has none.
    Library {
        kind: Kind::Mpi,
        list: "mpi_api",
        domain: "MPI_API",
        stats: "mpi_api_stats",
        number: 34,
    },
];

/// The library of a kind of calls, and its index.
pub fn library(kind: Kind) -> Option<(usize, &'static Library)> {
    LIBRARIES.iter().enumerate().find(|(_, library)| library.kind == kind)
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// The full set.
    pub const ALL: Self = Self((1 << Kind::ALL.len()) - 1);

    /// Whether a kind is in the set.
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u16) != 0
    }

    /// Adds or removes a kind.
    pub const fn set(&mut self, kind: Kind, wanted: bool) {
        if wanted {
            self.0 |= 1 << kind as u16;
        } else {
            self.0 &= !(1 << kind as u16);
        }
    }
}

impl Default for Kinds {
    fn default() -> Self {
        Self::ALL
    }
}

/// Consecutive periods after the origin; no periods select all time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Periods {
    /// (begin, end) of each, in order.
    pub listed: Vec<(Nanos, Nanos)>,
    /// An endless last period: begin of its first wait, duration of a wait, duration of a period.
    pub endless: Option<(Nanos, Nanos, Nanos)>,
}

impl Periods {
    /// Whether all time is selected.
    pub const fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.endless.is_none()
    }

    /// Whether a time is in one of the periods.
    pub fn has(&self, at: Nanos) -> bool {
        let next = self.listed.partition_point(|period| period.0 <= at);
        let listed = next.checked_sub(1).and_then(|last| self.listed.get(last));
        let in_round = |(from, delay, duration): (Nanos, Nanos, Nanos)| {
            let after = at.checked_sub(from)?.checked_rem(delay.saturating_add(duration))?;
            Some(after >= delay)
        };
        listed.is_some_and(|period| at < period.1) || self.endless.and_then(in_round) == Some(true)
    }

    /// All periods, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Nanos, Nanos)> {
        let rounds = self.endless.into_iter().flat_map(|(from, delay, duration)| {
            let begins = std::iter::successors(Some(from), move |at| at.checked_add(delay)?.checked_add(duration));
            begins.map(move |at| {
                let begin = at.saturating_add(delay);
                (begin, begin.saturating_add(duration))
            })
        });
        self.listed.iter().copied().chain(rounds)
    }
}

/// Kernels by displayed name; all kernels without patterns.
#[derive(Clone, Debug, Default)]
pub struct KernelChoice {
    /// Pattern that must match.
    pub include: Option<Regex>,
    /// Pattern that must not match.
    pub exclude: Option<Regex>,
}

/// All options.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch as typed")]
pub struct Choice {
    /// Whether dispatches are exported only with their counters, without separate rows and slices.
    pub counters_only: bool,
    /// Whether a table with a column per counter is written too.
    pub wide_counters: bool,
    /// Selected kinds of records.
    pub kinds: Kinds,
    /// Columns and names.
    pub layout: Layout,
    /// Whether documents say what the code of kernels allows; rocprofv3's do not.
    pub has_code: bool,
    /// Names of kernels.
    pub kernel_names: KernelNames,
    /// User-defined kernel names; mangled names are unchanged.
    pub aliases: Aliases,
    /// Whether a kernel is named by the innermost push/pop range around its launch.
    pub rename: bool,
    /// Kernels whose counters are selected.
    pub counted: KernelChoice,
    /// Names of agents.
    pub agents: AgentIndex,
    /// Whether tables of statistics are written.
    pub stats: bool,
    /// Bytes of a trace's file from which on the rest goes to another one, if not the usual number.
    pub pftrace_bytes: Option<u64>,
    /// Whether a trace has tracks by queue instead of stream.
    pub by_queue: bool,
    /// Filter for records.
    pub filter: Filter,
    /// Collection periods, relative to the process's first calibration; records that begin in one are selected.
    pub periods: Periods,
    /// Whether a file with these periods is written.
    pub log_periods: bool,
    /// Options in the form of the configuration in `results.json`.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// Whether a file with the configuration is written.
    pub output_config: bool,
    /// Time range relative to the origin; records that overlap it are selected.
    pub range: Option<(Nanos, Nanos)>,
}

/// Error of an invalid time range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no range of time; expected A..B as in 1.5s..2s, 200ms.. or ..3s")]
pub struct RangeError(String);

/// Parses `A..B`: times after the origin, each with a unit; either may be omitted.
pub fn parse_range(text: &str) -> Result<(Nanos, Nanos), RangeError> {
    let wrong = || RangeError(text.to_owned());
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let time = |part: &str, usual: Nanos| {
        if part.trim().is_empty() {
            return Some(usual);
        }
        units::time(part)
    };
    let from = time(from, 0).ok_or_else(wrong)?;
    let to = time(to, Nanos::MAX).ok_or_else(wrong)?;
    if from > to { Err(wrong()) } else { Ok((from, to)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_units_and_open_ends() {
        assert_eq!(parse_range("1.5s..2s"), Ok((1_500_000_000, 2_000_000_000)));
        assert_eq!(parse_range("200ms.."), Ok((200_000_000, Nanos::MAX)));
        assert_eq!(parse_range("..3"), Ok((0, 3_000_000_000)));
        for wrong in ["", "3", "2s..1s", "-1s..", "1parsec..", "a..b", "1..2..3"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn periods_may_go_on_for_ever() {
        let periods = Periods {
            listed: vec![(10, 20), (25, 30)],
            endless: Some((30, 5, 2)),
        };
        let all: Vec<Nanos> = (0..60).filter(|at| periods.has(*at)).collect();
        let listed = periods.iter().take_while(|period| period.0 < 60);
        assert_eq!(all, listed.flat_map(|(from, to)| from..to).collect::<Vec<Nanos>>());
        assert!(periods.has(30 + 7 * 1_000_000_000 + 5) && !periods.has(30 + 7 * 1_000_000_000));
        assert!(Periods::default().is_empty() && !periods.is_empty());
    }

    #[test]
    fn kinds_are_put_in_and_taken_out() {
        let mut kinds = Kinds::NONE;
        kinds.set(Kind::MemoryCopy, true);
        assert!(kinds.has(Kind::MemoryCopy) && !kinds.has(Kind::Kernel));
        kinds.set(Kind::MemoryCopy, false);
        assert_eq!(kinds, Kinds::NONE);
        assert!(Kind::ALL.iter().all(|kind| Kinds::ALL.has(*kind)));
    }
}
