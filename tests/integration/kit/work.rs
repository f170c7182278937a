//! Programs that work until their test has seen what it wants, however long that takes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The end of programs: a file that they look for. They end with the test in any case.
pub(crate) struct Work(PathBuf);

impl Work {
    /// Work that goes on; the file is made in `place`.
    pub(crate) fn begin(place: &Path) -> Self {
        Self(place.join("work-is-done"))
    }

    /// As a demo's worker takes it from `ROCTOP_DEMO_WORKER`, and `serve` as its duration.
    pub(crate) fn until(&self) -> String {
        format!("until:{}", self.0.display())
    }

    /// Ends the programs.
    pub(crate) fn done(&self) {
        std::fs::write(&self.0, "").unwrap();
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // The folder may be on a file system that is gone.
        let _ = std::fs::write(&self.0, "");
    }
}

/// Bytes of a recording's segments.
fn recorded_bytes(recording: &Path) -> u64 {
    let entries = std::fs::read_dir(recording).into_iter().flatten().flatten();
    let segments = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("segment-"));
    segments
        .map(|entry| entry.metadata().map_or(0, |facts| facts.len()))
        .sum()
}

/// Waits until a recording has more bytes than these.
pub(crate) fn wait_for_bytes(recording: &Path, bytes: u64) {
    let began = Instant::now();
    while recorded_bytes(recording) <= bytes {
        assert!(began.elapsed() < Duration::from_mins(1), "nothing is recorded");
        std::thread::sleep(Duration::from_millis(20));
    }
}
