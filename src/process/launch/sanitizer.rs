//! Programs that are linked to a sanitizer, whose library refuses to work from any place but the first.

use crate::process::elf::{self, Kind};
use crate::process::library;
use std::path::{Path, PathBuf};

/// The sanitizer's library that has to come first of all preloaded ones, if the program needs one.
pub fn sanitizer(path: &Path) -> Option<PathBuf> {
    let Kind::Native(elf) = elf::kind(&std::fs::File::open(path).ok()?) else {
        return None;
    };
    let is_it = |name: &&String| {
        ["libasan.so", "libtsan.so", "libhwasan.so"]
            .iter()
            .any(|part| name.starts_with(part))
    };
    let name = elf.needed.iter().find(is_it)?;
    library::find_exact(name, &library::named_by(&elf, path))
}
