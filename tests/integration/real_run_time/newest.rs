//! What HIP 7.15 and HSA 1.21 (ROCm 10) do otherwise: graphs reserved at once, batches of copies, other ways to a queue.

use super::{check_on, check_output};
use crate::kit::rig::{is_newest, rig};

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

/// Says so where HIP is older.
fn is_there() -> bool {
    if !is_newest() {
        println!("n/a: HIP has it from 7.15 (ROCm 10) on");
    }
    is_newest()
}

#[test]
fn what_only_the_newest_hip_has_is_recorded_as_it_happened() {
    let Some(rig) = rig().filter(|_| is_there()) else {
        return;
    };
    for part in ["contexts", "kernels", "managed"] {
        let recorded = check_on(rig, &format!("newest-{part}"), &["newest", part]);
        assert!(recorded.output.status.success(), "{:?}", recorded.output);
    }
}

#[test]
fn copies_of_hips_batches_are_recorded_with_all_their_bytes() {
    let Some(rig) = rig().filter(|_| is_there()) else {
        return;
    };
    let plain = rig.plain("newest-batch", &["newest", "batch"]);
    let recorded = rig.record("newest-batch", &["newest", "batch"]);
    check_output(&recorded, &plain);
    assert!(recorded.output.status.success(), "{:?}", recorded.output);
    recorded.check_lost();
    recorded.check_calls();
    recorded.check_dispatches();
    recorded.check_correlation();
    let left = recorded.check_batches();
    println!("newest-batch: {} copies", recorded.run.copies.len());
    assert!(left.is_empty(), "{left:?}");
}
