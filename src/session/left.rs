//! What a process left in flight when it was killed: dispatches that the GPU had completed and nobody recorded any more.

use super::open_ring;
use roctop_ring::flight::{self, FLIGHT, Left};
use roctop_ring::reader::Thread;
use std::path::Path;

/// Stands for the thread that would have recorded them.
pub(super) const THREAD: Thread = Thread {
    index: u32::MAX,
    tid: 0,
};

/// The completed ones of the process whose files in `session` begin with `stem`, in order of their submission. Files that
/// cannot be read are passed over: they say nothing.
pub(super) fn completed(session: &Path, stem: &str) -> Vec<Left> {
    let Ok(entries) = std::fs::read_dir(session) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let is_his = !stem.is_empty()
            && path.extension().is_some_and(|ending| ending == FLIGHT)
            && path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(stem));
        if let Some(left) = is_his.then(|| flight::read(&open_ring(&path).ok()?).ok()).flatten() {
            all.extend(left.into_iter().filter(|left| left.is_complete));
        }
    }
    all.sort_by_key(|left| left.record.dispatch_id);
    all
}
