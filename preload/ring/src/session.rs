//! The session: a tmpfs directory that viewer and collectors share, and its control file.
//!
//! `<base>/<session>/` holds the ring files of each traced process and a `control` file of words that viewers write and
//! collectors map read-only. The last writer wins.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Environment variable: the session directory of a traced process.
pub const ENV_SESSION: &str = "ROCTOP_SESSION";
/// Environment variable: slots of an application thread's ring.
pub const ENV_RING: &str = "ROCTOP_RING_SLOTS";
/// Environment variable: private, seconds that the demo's worker runs; 0 for no end.
pub const ENV_DEMO: &str = "ROCTOP_DEMO_WORKER";
/// Environment variable: if not empty, the program begins paused, as after `roctxProfilerPause`.
pub const ENV_PAUSED: &str = "ROCTOP_PAUSED";
/// Environment variable: if not empty, pauses are counted. Recording is on while `roctxProfilerResume` calls outnumber
/// `roctxProfilerPause` calls.
pub const ENV_COUNT_PAUSES: &str = "ROCTOP_COUNT_PAUSES";
/// Environment variable: if not empty, work in flight stays in plain memory instead of a file beside the ring.
pub const ENV_NO_FLIGHT: &str = "ROCTOP_NO_FLIGHT_FILES";
/// Environment variable: `off` if calls of MPI are not recorded.
pub const ENV_MPI: &str = "ROCTOP_MPI";
/// Environment variable: number of the level of timing at which a process starts, see [`crate::level::Level`].
pub const ENV_LEVEL: &str = "ROCTOP_LEVEL";
/// Environment variable: private, a level, a space, and why [`ENV_LEVEL`] has it, where the user did not choose it.
pub const ENV_LEVEL_REASON: &str = "ROCTOP_LEVEL_REASON";
/// Environment variable: requested hardware counters, pairs of `key=value` separated by `;`.
pub const ENV_COUNTERS: &str = "ROCTOP_COUNTERS";
/// Environment variable: additional counter definitions for rocprofiler-sdk, as YAML text.
pub const ENV_DEFINITIONS: &str = "ROCTOP_COUNTER_DEFINITIONS";
/// Environment variable: the path of the rocprofiler-sdk library; without it the collector searches.
pub const ENV_SDK: &str = "ROCTOP_SDK";
/// Name of the control file.
pub const CONTROL: &str = "control";
/// File name extension of ring files.
pub const RING: &str = "ring";
/// Size of the control file.
pub const CONTROL_BYTES: usize = 4096;

/// Words of the control file.
pub mod control {
    /// 1 recording, 0 paused.
    pub const RECORDING: usize = 0;
    /// Bits of [`super::wanted`].
    pub const WANTED: usize = 1;
    /// One of [`super::source`]; read when a back-end starts.
    pub const DISPATCH_SOURCE: usize = 2;
    /// 1: hardware counters are paused.
    pub const COUNTERS_REST: usize = 3;
    /// Process id of the launched program, once it has ended; only viewers use it.
    pub const ENDED: usize = 4;
    /// How it ended: its exit code, or [`SIGNALED`] and the signal number.
    pub const EXIT: usize = 5;
    /// When the program was launched, CLOCK_BOOTTIME ns; only viewers use it.
    pub const BEGAN: usize = 6;
    /// From when times on screen count, CLOCK_BOOTTIME ns, once there is a record; only viewers use it.
    pub const ORIGIN: usize = 7;
    /// Number of a request to write what the session's roctop holds; only viewers use it.
    pub const KEEP: usize = 8;
    /// Set in [`EXIT`] if a signal ended the program.
    pub const SIGNALED: u64 = 1 << 32;
}

/// Source of dispatch records.
pub mod source {
    /// Interception of HSA's queues; HIP's records if HSA's tables are not available.
    pub const AUTO: u64 = 0;
    /// HIP's own records.
    pub const HIP: u64 = 1;
    /// Only interception of HSA's queues.
    pub const HSA: u64 = 2;
}

/// Requested kinds of records, as bits of a control word.
pub mod wanted {
    /// HIP API calls.
    pub const HIP_API: u64 = 1;
    /// HSA API calls.
    pub const HSA_API: u64 = 2;
    /// Dispatches.
    pub const DISPATCH: u64 = 4;
    /// Copies.
    pub const COPY: u64 = 8;
    /// ROC-TX.
    pub const MARKER: u64 = 16;
    /// Allocations and frees.
    pub const MEMORY: u64 = 32;
    /// Scratch memory of queues.
    pub const SCRATCH: u64 = 64;
    /// Calls of libraries above HIP or beside it: RCCL, rocDecode, rocJPEG, MPI.
    pub const LIBRARY_API: u64 = 1 << 16;
    /// Arguments of HIP calls; RCCL's are always recorded.
    pub const ARGUMENTS: u64 = 1 << 17;
    /// Sites of launches, copies and allocations, and the stacks of new ones.
    pub const SITES: u64 = 1 << 18;
    /// The default: without HSA calls, which are many, cheap and rarely needed, and without arguments and sites, which
    /// cost time.
    pub const USUAL: u64 = !(HSA_API | ARGUMENTS | SITES);
}

/// Variables in which launchers pass a process its rank and the number of ranks. [`rank_variables`] says which count.
pub const RANKS: [(&str, &str); 12] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    ("MPI_RANKID", "MPI_NRANKS"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("MPI_RANK", "MPI_SIZE"),
    ("RANK", "WORLD_SIZE"),
];

/// torchrun's variables. What it starts may inherit those of a scheduler's task, which are the same for all of these ranks.
const TORCHRUN: [&str; 4] = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"];

/// The variables of rank and number of ranks that count: torchrun's inside of what torchrun starts, else the first of
/// [`RANKS`] whose rank is a number.
pub fn rank_variables(variable: &dyn Fn(&str) -> Option<String>) -> Option<(&'static str, &'static str)> {
    let is_number = |name: &str| variable(name).is_some_and(|text| text.trim().parse::<u32>().is_ok());
    if TORCHRUN.into_iter().all(is_number) && variable("TORCHELASTIC_RUN_ID").is_some() {
        return Some(("RANK", "WORLD_SIZE"));
    }
    RANKS.into_iter().find(|(rank, _)| is_number(rank))
}

/// Candidate parents of this user's sessions, in order: `/dev/shm/roctop-<uid>`, then `roctop` below `XDG_RUNTIME_DIR`.
pub fn base(uid: u32, runtime_dir: Option<&Path>) -> Vec<PathBuf> {
    let mut bases = vec![PathBuf::from(format!("/dev/shm/roctop-{uid}"))];
    bases.extend(runtime_dir.map(|dir| dir.join("roctop")));
    bases
}

/// Creates `dir` with mode 0700, or checks that it is a directory of that mode that belongs to `uid`. Otherwise an
/// error of kind `PermissionDenied`, or that of the system call.
pub fn private_dir(dir: &Path, uid: u32) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let facts = std::fs::symlink_metadata(dir)?;
    if !facts.is_dir() || facts.uid() != uid || facts.mode() & 0o077 != 0 {
        let text = format!(
            "{} exists and is not a directory of mode 0700 that belongs to you",
            dir.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(())
}

/// Extension of the empty files left by processes that could not create a ring.
pub const REFUSED: &str = "refused";

/// Name of the file left by a process that could not create a ring, usually for lack of space; `errno` is the reason.
/// The name holds everything, because a full tmpfs still accepts empty files.
pub fn refused_name(pid: u32, start_ticks: u64, errno: i32) -> String {
    format!("{pid}-{start_ticks}.{errno}.{REFUSED}")
}

/// Process id and errno of such a name.
pub fn refused(name: &str) -> Option<(u32, i32)> {
    let (process, errno) = name.strip_suffix(REFUSED)?.strip_suffix('.')?.rsplit_once('.')?;
    let (pid, _) = process.split_once('-')?;
    Some((pid.parse().ok()?, errno.parse().ok()?))
}

/// File name of a process's ring file; `ordinal` counts its chained files from 0.
pub fn ring_name(pid: u32, start_ticks: u64, ordinal: u32) -> String {
    if ordinal == 0 {
        format!("{pid}-{start_ticks}.{RING}")
    } else {
        format!("{pid}-{start_ticks}.{ordinal}.{RING}")
    }
}
