//! Libraries where the loader would find them, and what they can do by the names inside of them.

use crate::process::elf::Elf;
use std::path::{Path, PathBuf};

/// A library that was looked at.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    pub(crate) path: PathBuf,
    bytes: Vec<u8>,
}

impl Library {
    /// Reads a library, following links.
    pub(crate) fn open(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let bytes = std::fs::read(&path).unwrap_or_default();
        Self { path, bytes }
    }

    /// Is this name in its bytes?
    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.bytes.windows(name.len()).any(|window| window == name.as_bytes())
    }

    /// The numbers behind `.so.` in its file name.
    pub(crate) fn version(&self) -> Vec<u32> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let numbers = name.split_once(".so.").map(|(_, numbers)| numbers.to_owned());
        numbers
            .unwrap_or_default()
            .split('.')
            .map_while(|number| number.parse().ok())
            .collect()
    }
}

/// Directories in which the loader looks, in its order: the user's, the program's own, the system's.
fn directories(own: &[PathBuf]) -> Vec<PathBuf> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend_from_slice(own);
    places.extend(std::env::var_os("ROCM_PATH").map(|path| PathBuf::from(path).join("lib")));
    places.extend(configured());
    for place in [
        "/opt/rocm/lib",
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/usr/local/lib",
        "/lib",
        "/usr/lib",
    ] {
        places.push(place.into());
    }
    places
}

/// What `/etc/ld.so.conf.d` names.
fn configured() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/etc/ld.so.conf.d") else {
        return Vec::new();
    };
    let files = entries.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    let lines = files.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| line.starts_with('/')).map(PathBuf::from).collect()
}

/// A library by its whole name.
pub(crate) fn find_exact(name: &str, own: &[PathBuf]) -> Option<PathBuf> {
    let candidates = directories(own).into_iter().map(|directory| directory.join(name));
    candidates.into_iter().find(|path| path.exists())
}

/// The first library whose name begins so; the one with the longest name in its directory.
pub(crate) fn find(prefix: &str) -> Option<Library> {
    directories(&[]).iter().find_map(|directory| find_in(directory, prefix))
}

/// The library of a directory whose name begins so; the one with the longest name.
pub(crate) fn find_in(directory: &Path, prefix: &str) -> Option<Library> {
    let entries = std::fs::read_dir(directory).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_it = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.starts_with(prefix))
    };
    let longest = paths.filter(is_it).max_by_key(|path| path.as_os_str().len())?;
    Some(Library::open(&longest))
}

/// Directories that a program itself names.
pub(crate) fn named_by(elf: &Elf, path: &Path) -> Vec<PathBuf> {
    let origin = path
        .parent()
        .map(|parent| parent.display().to_string())
        .unwrap_or_default();
    let own = elf.paths.iter();
    own.map(|one| PathBuf::from(one.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin)))
        .collect()
}
