//! Dispatches in the flight files of an ended process: those completed on the GPU without a record, and those that
//! never completed.

use super::open_ring;
use roctop_ring::flight::{self, FLIGHT, Left};
use roctop_ring::reader::{InFlight, OpenWork, QueueWork, Thread};
use std::path::Path;

/// Stands for the thread that would have recorded them.
pub(super) const THREAD: Thread = Thread {
    index: u32::MAX,
    tid: 0,
};

/// Completed and incomplete dispatches, for the process whose files in `session` begin with `stem`, in order of
/// submission. Unreadable files are skipped.
pub(super) fn read(session: &Path, stem: &str) -> (Vec<Left>, Vec<Left>) {
    let Ok(entries) = std::fs::read_dir(session) else {
        return (Vec::new(), Vec::new());
    };
    let mut all = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let is_his = !stem.is_empty()
            && path.extension().is_some_and(|ending| ending == FLIGHT)
            && path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(stem));
        if let Some(left) = is_his.then(|| flight::read(&open_ring(&path).ok()?).ok()).flatten() {
            all.extend(left);
        }
    }
    all.sort_by_key(|left| left.record.dispatch_id);
    all.into_iter().partition(|left| left.is_complete)
}

/// Adds incomplete dispatches to the open work of a ring, which lists only the newest of each queue.
pub(super) fn add(work: &mut OpenWork, unfinished: &[Left]) {
    for Left { record, .. } in unfinished {
        let known = work.queues.iter().position(|queue| queue.id == record.queue);
        let at = known.unwrap_or_else(|| {
            work.queues.push(QueueWork {
                id: record.queue,
                ..QueueWork::default()
            });
            work.queues.len() - 1
        });
        work.queues[at].in_flight.push(InFlight {
            submit: record.submit,
            kernel_object: record.kernel_object,
            correlation: record.correlation,
            dispatch_id: record.dispatch_id,
        });
    }
    for queue in &mut work.queues {
        queue.in_flight.sort_by_key(|dispatch| dispatch.dispatch_id);
        queue.in_flight.dedup_by_key(|dispatch| dispatch.dispatch_id);
    }
}
