//! The collector that this binary carries, and the private place where it is put before a launch.
//!
//! The directory's name holds the content's hash, so that releases live side by side and a program that runs for days
//! keeps the file it was started with.

use anyhow::{Context, Result, bail};
use rustix::fs::StatVfsMountFlags;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

static LIBRARY: &[u8] = include_bytes!(env!("ROCTOP_COLLECTOR"));

/// File name of the collector.
pub const NAME: &str = "libroctop_preload.so";
/// Names under which programs open ROC-TX by themselves.
const ROCTX_NAMES: [&str; 6] = [
    "libroctx64.so",
    "libroctx64.so.4",
    "libroctx64.so.4.1",
    "librocprofiler-sdk-roctx.so",
    "librocprofiler-sdk-roctx.so.0",
    "librocprofiler-sdk-roctx.so.1",
];

/// Where the collector was put.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The library.
    pub library: PathBuf,
    /// A directory in which the library is found under ROC-TX's names.
    pub roctx: PathBuf,
}

/// Puts the collector where a program can load it, unless it is there already.
pub fn install() -> Result<Installed> {
    if LIBRARY.is_empty() {
        bail!("this build of roctop carries no collector (it was built with ROCTOP_PRELOAD_SO set to an empty file)");
    }
    let mut tried = Vec::new();
    for base in bases() {
        match install_under(&base) {
            Ok(installed) => return Ok(installed),
            Err(error) => tried.push(format!("{}: {error:#}", base.display())),
        }
    }
    bail!(
        "no place for the collector: {}; set XDG_CACHE_HOME to a directory of yours that allows execution",
        tried.join("; ")
    )
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
    bases.push(std::env::temp_dir().join(format!("roctop-{uid}-cache")));
    bases.retain(|base| base.is_absolute());
    bases
}

fn install_under(base: &Path) -> Result<Installed> {
    make_private(base)?;
    let ours = base.join("roctop");
    make_private(&ours)?;
    let uid = rustix::process::getuid().as_raw();
    let facts = std::fs::symlink_metadata(&ours)?;
    if !facts.is_dir() || facts.uid() != uid || facts.mode() & 0o022 != 0 {
        bail!("{} is not a directory that only you can write to", ours.display());
    }
    if rustix::fs::statvfs(&ours)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        bail!("mounted without execution");
    }
    let directory = ours.join(format!("collector-{:016x}", hash(LIBRARY)));
    make_private(&directory)?;
    let library = directory.join(NAME);
    if std::fs::read(&library).is_ok_and(|bytes| bytes == LIBRARY) {
        return Ok(Installed {
            roctx: link_roctx(&directory)?,
            library,
        });
    }
    let beside = directory.join(format!(".{NAME}.{}", std::process::id()));
    let _ = std::fs::remove_file(&beside);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o700)
        .open(&beside)?;
    let written = file
        .write_all(LIBRARY)
        .and_then(|()| std::fs::rename(&beside, &library));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written.with_context(|| format!("cannot write {}", library.display()))?;
    Ok(Installed {
        roctx: link_roctx(&directory)?,
        library,
    })
}

fn link_roctx(directory: &Path) -> Result<PathBuf> {
    let links = directory.join("roctx");
    make_private(&links)?;
    for name in ROCTX_NAMES {
        match std::os::unix::fs::symlink(Path::new("..").join(NAME), links.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
    }
    Ok(links)
}

fn make_private(path: &Path) -> Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("cannot make {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
