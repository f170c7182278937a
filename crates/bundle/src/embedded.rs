//! The collector that this binary carries, and the private place where it is put before a launch.
//!
//! The directory's name holds the content's hash, so that releases live side by side and a program that runs for days
//! keeps the file it was started with.

use crate::built::{COLLECTOR, GPU_CHECK};
use crate::drop_in::{self, put, write};
use anyhow::{Context, Result, bail};
use rustix::fs::StatVfsMountFlags;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// File name of the collector.
pub const NAME: &str = "libroctop_preload.so";
/// File name of the program that runs one hardware check.
const CHECK: &str = "gpu-check";
/// The libraries of ROC-TX by the drop-in tree's path, with the other names under which programs ask for them.
const ROCTX: [(&str, [&str; 2]); 2] = [
    ("libroctx64.so.4", ["libroctx64.so", "libroctx64.so.4.1"]),
    (
        "librocprofiler-sdk-roctx.so.1",
        ["librocprofiler-sdk-roctx.so", "librocprofiler-sdk-roctx.so.0"],
    ),
];

/// Where the collector was put.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The library.
    pub library: PathBuf,
    /// A directory with ROC-TX libraries, for programs on machines that have none.
    pub roctx: PathBuf,
}

/// Puts the collector where a program can load it, unless it is there already.
pub fn install() -> Result<Installed> {
    if COLLECTOR.is_empty() {
        bail!("this build of roctop carries no collector (it was built with ROCTOP_PRELOAD_SO set to an empty file)");
    }
    at_first_place(|base| {
        if let Some(odd) = odd_character(base) {
            bail!("the loader's variables cannot hold {odd} in a path");
        }
        let (directory, library) = put_beside(base, NAME, COLLECTOR)?;
        Ok(Installed {
            roctx: put_roctx(&directory)?,
            library,
        })
    })
}

/// Puts the program that runs one hardware check where it can be started, unless it is there already.
pub fn install_check() -> Result<PathBuf> {
    if GPU_CHECK.is_empty() {
        bail!(
            "this build of roctop carries no hardware checks (it was built with ROCTOP_PRELOAD_SO and without ROCTOP_GPU_CHECK)"
        );
    }
    at_first_place(|base| Ok(put_beside(base, CHECK, GPU_CHECK)?.1))
}

/// roctop's own directory in the user's cache.
pub fn cache() -> Option<PathBuf> {
    bases().iter().find_map(|base| private(base).ok())
}

/// Does something at the first place where it can be done.
fn at_first_place<T>(put: impl Fn(&Path) -> Result<T>) -> Result<T> {
    let mut tried = Vec::new();
    for base in bases() {
        match put(&base) {
            Ok(done) => return Ok(done),
            Err(error) => tried.push(format!("{}: {error:#}", base.display())),
        }
    }
    bail!(
        "no place for what roctop carries: {}; set XDG_CACHE_HOME to a directory of yours that allows execution",
        tried.join("; ")
    )
}

/// What a path has that separates paths, or means something else, in `LD_PRELOAD`, `LD_LIBRARY_PATH` or `HSA_TOOLS_LIB`; in words.
pub fn odd_character(path: &Path) -> Option<&'static str> {
    const ODD: [(u8, &str); 8] = [
        (b' ', "a blank"),
        (b':', "a colon"),
        (b';', "a semicolon"),
        (b'$', "a dollar sign"),
        (b'"', "a quotation mark"),
        (b'\\', "a backslash"),
        (b'\t', "a tab"),
        (b'\n', "a line break"),
    ];
    let bytes = path.as_os_str().as_bytes();
    ODD.iter().find(|(odd, _)| bytes.contains(odd)).map(|(_, words)| *words)
}

fn bases() -> Vec<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let home = |rest: &str| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(rest));
    let mut bases: Vec<PathBuf> = Vec::new();
    bases.extend(
        std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| home(".cache")),
    );
    bases.extend(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
    // TMPDIR may name what is not there.
    let temporary = [std::env::temp_dir(), "/tmp".into()];
    bases.extend(temporary.map(|place| place.join(format!("roctop-{uid}-cache"))));
    bases.dedup();
    bases.retain(|base| base.is_absolute());
    bases
}

/// roctop's own directory below a base: one that nobody else can write to.
fn private(base: &Path) -> Result<PathBuf> {
    make_private(base)?;
    let ours = base.join("roctop");
    make_private(&ours)?;
    let uid = rustix::process::getuid().as_raw();
    let facts = std::fs::symlink_metadata(&ours)?;
    if !facts.is_dir() || facts.uid() != uid || facts.mode() & 0o022 != 0 {
        bail!("{} is not a directory that only you can write to", ours.display());
    }
    Ok(ours)
}

/// Puts a file into the directory of this binary's content below a base. The directory and the file.
fn put_beside(base: &Path, name: &str, content: &[u8]) -> Result<(PathBuf, PathBuf)> {
    let ours = private(base)?;
    if rustix::fs::statvfs(&ours)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        bail!("mounted without execution");
    }
    let directory = ours.join(format!("collector-{:016x}", hash()));
    make_private(&directory)?;
    keep(&directory, name, content)?;
    let file = directory.join(name);
    Ok((directory, file))
}

/// Puts a library there, unless it is there already.
fn keep(directory: &Path, name: &str, content: &[u8]) -> Result<()> {
    if std::fs::read(directory.join(name)).is_ok_and(|bytes| bytes == content) {
        return Ok(());
    }
    put(directory, name, |beside| write(beside, content, 0o700)).map(drop)
}

/// Programs linked with ROC-TX ask for its versions of functions, so it is the drop-in library that is put there: a
/// collector of that name, which has no versions, would make the loader warn the user. The program's calls go to the
/// collector all the same, because it is preloaded. A build without drop-in libraries takes the collector.
fn put_roctx(directory: &Path) -> Result<PathBuf> {
    let folder = directory.join("roctx");
    make_private(&folder)?;
    for (name, others) in ROCTX {
        let target = match drop_in::file(&format!("lib/{name}")) {
            Some(content) => {
                keep(&folder, name, content)?;
                PathBuf::from(name)
            }
            None => Path::new("..").join(NAME),
        };
        for link in others
            .into_iter()
            .chain([name])
            .filter(|link| *link != target.as_os_str())
        {
            if std::fs::read_link(folder.join(link)).is_ok_and(|known| known == target) {
                continue;
            }
            put(&folder, link, |beside| std::os::unix::fs::symlink(&target, beside))?;
        }
    }
    Ok(folder)
}

fn make_private(path: &Path) -> Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("cannot make {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The version, what this binary carries, and what it can record with that.
pub fn version() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    let carried = |is_there: bool| if is_there { "carried" } else { "not in this build" };
    TEXT.get_or_init(|| {
        format!(
            "{}
collector: {}; ROCm 5.2 to 7.x on x86-64 with glibc
  HIP calls: wrapped functions, dispatch tables of rocprofiler-register, the run-time's tracer callback
  kernels and copies: intercepted HSA queues and copy signals; HIP's own records
  HSA calls: the run-time's tables; ROC-TX and RCCL: wrapped functions
  counters: rocprofiler-sdk 0.4 to 1.x, loaded when counters are asked for and it is there
drop-in libroctracer64 and libroctx64: {}
hardware checks (doctor --gpu): {}
exports: csv, json, pftrace, rocpd, parquet, kineto, pprof, collapsed",
            env!("CARGO_PKG_VERSION"),
            carried(!COLLECTOR.is_empty()),
            carried(drop_in::file("lib/libroctracer64.so.4").is_some()),
            carried(!GPU_CHECK.is_empty()),
        )
    })
}

/// A number of all that is put there.
fn hash() -> u64 {
    let files = ROCTX
        .iter()
        .filter_map(|(name, _)| drop_in::file(&format!("lib/{name}")));
    let bytes = [COLLECTOR, GPU_CHECK].into_iter().chain(files).flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
