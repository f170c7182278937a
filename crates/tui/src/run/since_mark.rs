//! From when on the numbers on screen count.

use std::sync::Arc;

use roctop_model::{Snapshot, Values};

/// From when on numbers count.
#[derive(Default)]
pub(super) struct SinceMark {
    earlier: Option<Arc<Values>>,
    /// The values that were last looked at, and what of them came since.
    last: Option<(Arc<Values>, Arc<Values>)>,
}

impl SinceMark {
    /// Counts from a snapshot on; none: from the beginning.
    pub(super) fn reset(&mut self, snapshot: Option<Arc<Snapshot>>) {
        self.earlier = snapshot.map(|snapshot| snapshot.values.clone());
        self.last = None;
    }

    /// The snapshot as the user wants it counted. Values change less often than snapshots are made.
    pub(super) fn counted(&mut self, snapshot: Arc<Snapshot>) -> Arc<Snapshot> {
        let Some(earlier) = &self.earlier else { return snapshot };
        let known = self.last.as_ref().filter(|last| Arc::ptr_eq(&last.0, &snapshot.values));
        let values = match known {
            Some(last) => last.1.clone(),
            None => Arc::new(snapshot.since(earlier)),
        };
        self.last = Some((snapshot.values.clone(), values.clone()));
        Arc::new(Snapshot {
            values,
            ..(*snapshot).clone()
        })
    }
}
