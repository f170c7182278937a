//! Hostile recordings, read as the viewer reads them: `ROCTOP_PRELOAD_SO=/dev/null cargo +nightly fuzz run recording`.
#![no_main]
#![expect(clippy::unwrap_used, reason = "the honest recording is made by the real writer")]

#[path = "../input.rs"]
mod input;

use input::{Honest, look};
use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::OnceLock;

static PLACE: OnceLock<(PathBuf, Honest)> = OnceLock::new();

fuzz_target!(|changes: &[u8]| {
    let (path, honest) = PLACE.get_or_init(|| {
        let path = PathBuf::from(format!("/dev/shm/roctop-fuzz-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let honest = Honest::make(&path);
        (path, honest)
    });
    honest.write(path, changes);
    look(path);
});
