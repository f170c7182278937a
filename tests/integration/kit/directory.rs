//! Directories of tests.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// A new empty directory. It remains after the test, so that a failure can be examined, until the next test process starts.
pub(crate) fn place(name: &str) -> PathBuf {
    static REMOVED: Once = Once::new();
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("runs");
    REMOVED.call_once(|| remove_ended(&all));
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = all
        .join(std::process::id().to_string())
        .join(format!("{name}-{number}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Removes the directories of test processes that have ended.
fn remove_ended(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        if !Path::new("/proc").join(entry.file_name()).exists() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
