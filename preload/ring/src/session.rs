//! The session: a directory on tmpfs that viewer and collectors share, and its control file.
//!
//! `<base>/<session>/` holds one ring file per traced process and a `control` file of words that viewers write and
//! collectors map read-only. Last writer wins.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Environment: the session directory, handed to the traced process.
pub const ENV_SESSION: &str = "ROCTOP_SESSION";
/// Environment: slots of an application thread's ring.
pub const ENV_RING: &str = "ROCTOP_RING_SLOTS";
/// Environment: private, starts the demo back-end.
pub const ENV_DEMO: &str = "ROCTOP_DEMO_WORKER";
/// Environment: not empty, the program begins paused, as if it had called `roctxProfilerPause` first.
pub const ENV_PAUSED: &str = "ROCTOP_PAUSED";
/// Environment: not empty, pauses are counted: recording goes on while there were more calls of `roctxProfilerResume` than
/// of `roctxProfilerPause`.
pub const ENV_COUNT_PAUSES: &str = "ROCTOP_COUNT_PAUSES";
/// Environment: not empty, what queues have in flight stays in plain memory instead of a file beside the ring.
pub const ENV_NO_FLIGHT: &str = "ROCTOP_NO_FLIGHT_FILES";
/// Environment: number of the level of timing at which a process starts, see [`crate::level::Level`].
pub const ENV_LEVEL: &str = "ROCTOP_LEVEL";
/// Environment: what hardware counters are asked for, pairs of `key=value` separated by `;`.
pub const ENV_COUNTERS: &str = "ROCTOP_COUNTERS";
/// Environment: more definitions of counters for rocprofiler-sdk, a YAML text.
pub const ENV_DEFINITIONS: &str = "ROCTOP_COUNTER_DEFINITIONS";
/// Environment: the path of the rocprofiler-sdk library, when it is not to be looked for.
pub const ENV_SDK: &str = "ROCTOP_SDK";
/// Name of the control file.
pub const CONTROL: &str = "control";
/// Ending of ring files.
pub const RING: &str = "ring";
/// Bytes of the control file.
pub const CONTROL_BYTES: usize = 4096;

/// Words of the control file.
pub mod control {
    /// 1 recording, 0 paused.
    pub const RECORDING: usize = 0;
    /// Bits of [`super::wanted`].
    pub const WANTED: usize = 1;
    /// One of [`super::source`]; read when a back-end starts.
    pub const DISPATCH_SOURCE: usize = 2;
    /// 1: hardware counters rest.
    pub const COUNTERS_REST: usize = 3;
    /// Process id of the program that was started, once it has ended; for viewers alone.
    pub const ENDED: usize = 4;
    /// How it ended: its exit code, or [`SIGNALED`] and the signal.
    pub const EXIT: usize = 5;
    /// Set in [`EXIT`] for a program that a signal ended.
    pub const SIGNALED: u64 = 1 << 32;
}

/// Where dispatches come from.
pub mod source {
    /// Interception of HSA's queues; HIP's records when HSA's tables do not come.
    pub const AUTO: u64 = 0;
    /// HIP's own records.
    pub const HIP: u64 = 1;
    /// Interception of HSA's queues alone.
    pub const HSA: u64 = 2;
}

/// What is wanted of the collectors, bits of a control word.
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
    /// Calls of libraries above HIP: RCCL, the decoders.
    pub const LIBRARY_API: u64 = 1 << 16;
    /// The arguments of HIP's calls; those of RCCL's are always recorded.
    pub const ARGUMENTS: u64 = 1 << 17;
    /// What is recorded when nothing else is asked: HSA calls are many, cheap and of interest to few; arguments cost.
    pub const USUAL: u64 = !(HSA_API | ARGUMENTS);
}

/// Variables by which launchers tell a process its rank, and the number of ranks. The first that is set counts.
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

/// The directory under which this user's sessions lie: `/dev/shm/roctop-<uid>`, else under `XDG_RUNTIME_DIR`.
pub fn base(uid: u32, runtime_dir: Option<&Path>) -> Vec<PathBuf> {
    let mut bases = vec![PathBuf::from(format!("/dev/shm/roctop-{uid}"))];
    bases.extend(runtime_dir.map(|dir| dir.join("roctop")));
    bases
}

/// Makes `dir` for this user alone, or checks that it is so.
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

/// Ending of the empty files that processes leave which could make no ring.
pub const REFUSED: &str = "refused";

/// The name of what a process leaves that could make no ring, for want of room above all; `errno` says why. Everything is
/// in the name, because an empty file can be made on a tmpfs that is full.
pub fn refused_name(pid: u32, start_ticks: u64, errno: i32) -> String {
    format!("{pid}-{start_ticks}.{errno}.{REFUSED}")
}

/// Process id and errno of such a name.
pub fn refused(name: &str) -> Option<(u32, i32)> {
    let (process, errno) = name.strip_suffix(REFUSED)?.strip_suffix('.')?.rsplit_once('.')?;
    let (pid, _) = process.split_once('-')?;
    Some((pid.parse().ok()?, errno.parse().ok()?))
}

/// The name of a process's ring file.
pub fn ring_name(pid: u32, start_ticks: u64, ordinal: u32) -> String {
    if ordinal == 0 {
        format!("{pid}-{start_ticks}.{RING}")
    } else {
        format!("{pid}-{start_ticks}.{ordinal}.{RING}")
    }
}
