//! The drop-in ROCTracer and ROC-TX libraries that this binary carries, with headers and what CMake and pkg-config look for.
//!
//! The tree is the one that preload/roctracer/install makes; nothing in it knows where it is.

use crate::built::{FILES, LINKS};
use anyhow::{Context, Result, bail};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What to put where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Libraries, headers, and files for CMake and pkg-config.
    Everything,
    /// The headers alone.
    Headers,
}

impl What {
    fn has(self, path: &str) -> bool {
        self == Self::Everything || !path.starts_with("lib/")
    }
}

/// Puts the tree, or its headers, below a prefix; returns what was written. Each file is there whole or as it was before.
pub fn install(prefix: &Path, what: What) -> Result<Vec<PathBuf>> {
    if FILES.is_empty() {
        bail!(
            "this build of roctop carries no drop-in libraries (it was built with ROCTOP_PRELOAD_SO and without ROCTOP_DROP_IN)"
        );
    }
    let mut written = Vec::new();
    for (name, content) in FILES.iter().filter(|(name, _)| what.has(name)) {
        let mode = if name.contains(".so") { 0o755 } else { 0o644 };
        written.push(put(prefix, name, |beside| write(beside, content, mode))?);
    }
    // Last: a linker that finds a library's name finds the library.
    for (name, target) in LINKS.iter().filter(|(name, _)| what.has(name)) {
        written.push(put(prefix, name, |beside| std::os::unix::fs::symlink(target, beside))?);
    }
    Ok(written)
}

/// A file of the tree by its path; none when this build carries no libraries.
pub fn file(path: &str) -> Option<&'static [u8]> {
    FILES
        .iter()
        .find(|(name, _)| *name == path)
        .map(|(_, content)| *content)
}

pub(crate) fn write(path: &Path, content: &[u8], mode: u32) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    options.open(path)?.write_all(content)
}

/// Makes a file beside its name, and gives it its name when it is whole.
pub(crate) fn put(prefix: &Path, name: &str, make: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<PathBuf> {
    let path = prefix.join(name);
    let folder = path.parent().unwrap_or(prefix);
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{file}.{}", std::process::id()));
    let _ = std::fs::remove_file(&beside);
    let done = make(&beside).and_then(|()| std::fs::rename(&beside, &path));
    if done.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    done.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
