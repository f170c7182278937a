//! What HIP 7.15 and HSA 1.21 (ROCm 10) do otherwise: graphs reserved at once, batches of copies, other ways to a queue.

use crate::check_on;
use crate::rig::{release, rig};

/// HIP 10 reserves the packets of a graph at once: a launch that needs more than its queue holds waits inside.
#[test]
fn a_graph_larger_than_its_queue_is_recorded_as_it_happened() {
    let Some(rig) = rig() else { return };
    let small = rig.on(&[("ROC_AQL_QUEUE_SIZE", "1024")]);
    for words in [
        ["large_graph", "1024", "3", "0"],
        ["large_graph", "1025", "3", "0"],
        ["large_graph", "5000", "3", "1"],
        ["large_graph", "2047", "5", "700"],
    ] {
        let recorded = check_on(&small, &format!("large-graph-{}", words[1]), &words);
        assert!(recorded.output.status.success(), "{:?}", recorded.output);
    }
}

#[test]
fn what_only_the_newest_hip_has_is_recorded_as_it_happened() {
    if release().is_none_or(|release| !release.starts_with("10")) {
        println!("n/a: HIP has it from 7.15 (ROCm 10) on");
        return;
    }
    let Some(rig) = rig() else { return };
    for part in ["batch", "contexts", "kernels", "managed"] {
        let recorded = check_on(rig, &format!("newest-{part}"), &["newest", part]);
        assert!(recorded.output.status.success(), "{:?}", recorded.output);
    }
}
