//! GPU time of kernels and copies, summed by the call path of the call that launched them.

use crate::gpu_time::Leaf;
use crate::view::View;
use roctop_model::sites::PathId;
use roctop_ring::record::direction;
use roctop_trace::item::Span;
use roctop_trace::site::SiteNumber;
use std::collections::BTreeMap;
use std::io;

/// Function of launches whose call path is not known.
pub(crate) const UNKNOWN: &str = "(call path not known)";

/// Work of one name from one call path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    /// Its durations, ns.
    pub(crate) nanos: u64,
    /// Number of launches.
    pub(crate) count: u64,
}

/// Whether no call path is known.
pub(crate) fn is_empty(view: &View<'_>) -> bool {
    view.run.sites.paths().is_empty()
}

/// The sums, by call path and name. There are at most as many as sites times kernels that were launched there.
pub(crate) fn sums(view: &View<'_>) -> io::Result<BTreeMap<(Option<PathId>, Leaf), Sum>> {
    let mut sums: BTreeMap<_, Sum> = BTreeMap::new();
    let process = view.process.id;
    let mut put = |site: SiteNumber, leaf, span: Span| {
        let sum = sums.entry((view.run.sites.path_of(process, site), leaf)).or_default();
        sum.nanos = sum.nanos.saturating_add(span.duration());
        sum.count += 1;
    };
    for row in view.rows.dispatches.iter() {
        let row = row?;
        put(row.record.site, Leaf::Kernel(row.record.kernel), row.record.span);
    }
    for row in view.rows.copies.iter() {
        let row = row?;
        // A fill is called a copy inside the device, as in the other formats.
        let direction = match row.record.direction {
            direction::FILL => direction::D2D,
            known => known,
        };
        put(row.record.site, Leaf::Copy(direction), row.record.span);
    }
    Ok(sums)
}
