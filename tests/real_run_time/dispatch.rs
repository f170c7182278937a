//! Dispatches: that timing them changes nothing for the program, and where else their times may come from.

use crate::rig::{Recorded, Rig, TOLERANCE, Truth, read_truth, rig};

/// The mean number of kernels that ran at once, from the first begin to the last end.
fn running(truth: &[Truth]) -> f64 {
    let rows = || {
        truth
            .iter()
            .filter(|row| row.kind == "dispatch" && !row.name.is_empty())
    };
    let busy: u64 = rows().map(|row| row.end - row.begin).sum();
    let begin = rows().map(|row| row.begin).min().unwrap();
    let end = rows().map(|row| row.end).max().unwrap();
    busy as f64 / (end - begin) as f64
}

/// The mean number of kernels running, alone and recorded; the best of three, since other programs want the processors.
fn overlap(name: &str, words: &[&str], kernel_ns: &str) -> Option<(f64, f64)> {
    let rig = rig()?;
    let mean = |name: &str, is_recorded: bool| {
        let place = Rig::place(name);
        let recording = place.join("rec");
        let options = ["record", "-o", recording.to_str().unwrap()];
        let mut command = rig.command(&place, if is_recorded { &options } else { &[] }, words);
        let output = command.env("EMULATED_GPU_KERNEL_NS", kernel_ns).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        if is_recorded {
            let recorded = Recorded::load(&place, output);
            recorded.check_lost();
            recorded.check_dispatches();
        }
        running(&read_truth(&place))
    };
    let best = |name: &str, is_recorded| {
        let means = (0..3).map(|_| mean(name, is_recorded));
        means.fold(0.0, f64::max)
    };
    let (alone, recorded) = (best(&format!("plain-{name}"), false), best(name, true));
    println!("{name}: {alone:.2} kernels run at once, {recorded:.2} recorded");
    Some((alone, recorded))
}

#[test]
fn independent_kernels_of_one_queue_still_overlap() {
    if let Some((alone, recorded)) = overlap("independent", &["raw_hsa", "overlap"], "3000000") {
        assert!(alone > 8.0, "the program does not show what it is for");
        // With a barrier behind each kernel it would be one.
        assert!(recorded > 0.5 * alone);
    }
}

#[test]
fn streams_still_overlap() {
    if let Some((alone, recorded)) = overlap("overlap", &["many_streams", "4", "16", "1600"], "300000") {
        assert!(alone > 2.0, "the program does not show what it is for");
        assert!(recorded > 0.85 * alone);
    }
}

/// Records with HIP's own records as the source; they know neither queue nor geometry.
fn by_hip(words: &[&str]) -> Option<(Recorded, Vec<Truth>)> {
    let recorded = rig()?.record_with("by-hip", &["--dispatch-source", "hip"], words);
    assert!(recorded.output.status.success(), "{:?}", recorded.output);
    recorded.check_lost();
    recorded.check_calls();
    let is_own = |row: &&Truth| row.kind == "dispatch" && !row.name.is_empty() && !row.name.starts_with("__amd_");
    let mut truth: Vec<Truth> = recorded.truth.iter().filter(is_own).cloned().collect();
    truth.sort_by_key(|row| row.begin);
    Some((recorded, truth))
}

#[test]
fn hips_own_records_can_be_the_source() {
    let Some((recorded, truth)) = by_hip(&["many_streams", "4", "8", "2000"]) else {
        return;
    };
    if rig().is_some_and(Rig::is_oldest) {
        assert!(recorded.run.dispatches.is_empty(), "5.2.3 has no tracer callback");
        return;
    }
    recorded.check_correlation();
    assert_eq!(recorded.run.dispatches.len(), truth.len());
    let mut left: Vec<_> = recorded.run.dispatches.iter().collect();
    for row in &truth {
        let same = left.iter().position(|dispatch| {
            let near = |a: u64, b: u64| a.abs_diff(b) <= TOLERANCE;
            recorded.kernel(dispatch) == row.name
                && near(dispatch.span.begin, row.begin)
                && near(dispatch.span.end, row.end)
        });
        left.swap_remove(same.unwrap_or_else(|| panic!("no record for {row:?}")));
    }
    println!("by-hip: {} dispatches, all as logged", truth.len());
}
