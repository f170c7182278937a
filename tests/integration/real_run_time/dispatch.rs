//! Dispatches and copies beside plain ones: graphs, peers, a large BAR; that timing them changes nothing for the program;
//! where else their times may come from.

use super::check_on;
use crate::kit::rig::{Recorded, Rig, TOLERANCE, Truth, read_truth, release, rig};
use crate::kit::trace::Trace;
use roctop::item::{AgentKind, Dispatch, Scratch, Span};
use roctop::units;
use roctop_ring::record::{engine, flag, scratch};
use std::collections::BTreeMap;

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

/// The mean number of kernels running, alone and recorded; the best of some runs each, until recorded ones have `share` of
/// it, since other programs want the processors. A program that is held up is so in every run.
fn overlap(name: &str, words: &[&str], kernel_ns: &str, share: f64) -> Option<(f64, f64)> {
    let rig = rig()?;
    let mean = |name: &str, is_recorded: bool| {
        let place = Rig::place(name);
        let recording = place.join("rec");
        let options = ["record", "-o", recording.to_str().unwrap()];
        let mut command = rig.command(&place, if is_recorded { &options } else { &[] }, words);
        let output = Rig::ended(command.env("EMULATED_GPU_KERNEL_NS", kernel_ns));
        assert!(output.status.success(), "{output:?}");
        if is_recorded {
            let recorded = Recorded::load(&place, output);
            recorded.check_lost();
            recorded.check_dispatches();
        }
        running(&read_truth(&place))
    };
    let (mut alone, mut recorded) = (0.0_f64, 0.0_f64);
    for _ in 0..6 {
        alone = alone.max(mean(&format!("plain-{name}"), false));
        recorded = recorded.max(mean(name, true));
        if recorded > share * alone {
            break;
        }
    }
    println!("{name}: {alone:.2} kernels run at once, {recorded:.2} recorded");
    Some((alone, recorded))
}

/// Packets of a run in their queues: kernels, those of them with the barrier bit, and packets of other kinds between kernels.
fn packets(truth: &[Truth]) -> [u64; 3] {
    let mut queues: BTreeMap<u64, Vec<&Truth>> = BTreeMap::new();
    for row in truth
        .iter()
        .filter(|row| row.kind == "dispatch" && !row.name.is_empty())
    {
        queues.entry(row.queue).or_default().push(row);
    }
    let mut sums = [0; 3];
    for rows in queues.values() {
        let indices = || rows.iter().map(|row| row.index);
        let kernels = rows.len() as u64;
        sums[0] += kernels;
        sums[1] += rows.iter().filter(|row| row.has_barrier).count() as u64;
        sums[2] += indices().max().unwrap() + 1 - indices().min().unwrap() - kernels;
    }
    sums
}

/// What would keep kernels from overlapping is in their packets: a barrier bit, or a packet in between.
#[test]
fn kernels_that_may_overlap_have_the_packets_that_they_have_without_roctop() {
    let Some(rig) = rig() else { return };
    for (name, words) in [
        ("independent", &["raw_hsa", "overlap"] as &[&str]),
        ("overlap", &["many_streams", "4", "16", "1600"]),
    ] {
        let place = Rig::place(&format!("packets-{name}"));
        assert!(Rig::ended(&mut rig.command(&place, &[], words)).status.success());
        let alone = packets(&read_truth(&place));
        let recorded = rig.record(&format!("packets-{name}-recorded"), words);
        recorded.check_dispatches();
        let traced = packets(&recorded.truth);
        println!("{name}: kernels, with the barrier bit, other packets: {alone:?} alone, {traced:?} recorded");
        assert_eq!(traced[..2], alone[..2]);
        if name == "independent" {
            assert_eq!(traced, [alone[0], 0, 0], "nothing between independent kernels");
        }
    }
}

#[test]
#[ignore = "time: .ci/matrix"]
fn timed_independent_kernels_of_one_queue_still_overlap() {
    // With a barrier behind each kernel it would be one.
    const SHARE: f64 = 0.5;
    if let Some((alone, recorded)) = overlap("independent", &["raw_hsa", "overlap"], "3000000", SHARE) {
        assert!(alone > 8.0, "the program does not show what it is for");
        assert!(recorded > SHARE * alone);
    }
}

#[test]
#[ignore = "time: .ci/matrix"]
fn timed_streams_still_overlap() {
    const SHARE: f64 = 0.85;
    if let Some((alone, recorded)) = overlap("overlap", &["many_streams", "4", "16", "1600"], "300000", SHARE) {
        assert!(alone > 2.0, "the program does not show what it is for");
        assert!(recorded > SHARE * alone);
    }
}

/// Records with HIP's own records as the source; they know neither queue nor geometry.
fn by_hip(words: &[&str]) -> Option<(Recorded, Vec<Truth>)> {
    let name = format!("by-hip-{}", words[0]);
    let recorded = rig()?.record_with(&name, &["--dispatch-source", "hip"], words);
    assert!(recorded.output.status.success(), "{:?}", recorded.output);
    recorded.check_lost();
    recorded.check_calls();
    let is_own = |row: &&Truth| row.kind == "dispatch" && !row.name.is_empty() && !row.name.starts_with("__amd_");
    let mut truth: Vec<Truth> = recorded.truth.iter().filter(is_own).cloned().collect();
    truth.sort_by_key(|row| row.begin);
    Some((recorded, truth))
}

/// HIP's own times are what the run-time makes of ticks, by pairs of clock readings that it holds for certain to 4 us (ROCr,
/// `GpuAgent::TranslateTime`): a busy machine showed 1.006 us in a young process. The collector takes them as they are.
const HIPS_TOLERANCE: u64 = 4_000;

/// HIP 6.4.3 crashes when its records are asked for inside a small copy to memory that is not pinned.
#[test]
fn hips_own_records_are_not_asked_for_in_copies() {
    if let Some((recorded, truth)) = by_hip(&["memcpy_storm", "2", "1", "4"]) {
        assert!(truth.is_empty() && recorded.run.dispatches.is_empty());
        assert!(!recorded.run.copies.is_empty());
    }
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
    // Of one name in order of begin: what HIP converts stays in order.
    let mut rows: Vec<&Truth> = truth.iter().collect();
    rows.sort_by_key(|row| (row.name.clone(), row.begin));
    let mut dispatches: Vec<_> = recorded.run.dispatches.iter().collect();
    dispatches.sort_by_key(|dispatch| (recorded.kernel(dispatch), dispatch.span.begin));
    for (row, dispatch) in rows.into_iter().zip(dispatches) {
        assert_eq!(recorded.kernel(dispatch), row.name);
        let took = dispatch.span.duration().abs_diff(row.end - row.begin);
        let shifted = dispatch.span.begin.abs_diff(row.begin);
        assert!(
            took <= TOLERANCE && shifted <= HIPS_TOLERANCE,
            "{dispatch:?} is not {row:?}"
        );
    }
    println!("by-hip: {} dispatches, all as logged", truth.len());
}

/// HIP 7 crashes in both programs as long as a tool is registered.
#[test]
fn hips_own_records_end_at_the_first_graph_of_hip_7() {
    if release().is_none_or(|release| !release.starts_with("7.")) {
        return;
    }
    for words in [&["graphs"][..], &["features"]] {
        let Some((recorded, _)) = by_hip(words) else { return };
        let mut said = recorded.said.iter();
        assert!(
            said.any(|text| text.starts_with("kernels are not recorded from the first launch of a graph on")),
            "{:?}",
            recorded.said
        );
        assert!(!recorded.run.calls.is_empty());
    }
}

#[test]
fn graphs_events_and_all_kinds_of_memory_are_recorded_as_they_happened() {
    let Some(rig) = rig() else { return };
    let recorded = check_on(rig, "features", &["features", "2"]);
    let launches: Vec<u64> = recorded
        .run
        .calls
        .iter()
        .filter(|call| &*recorded.run.operations[call.operation.0 as usize].name == "hipGraphLaunch")
        .map(|call| call.correlation)
        .collect();
    assert_eq!(launches.len(), 10);
    for launch in launches {
        let of_launch = recorded.run.dispatches.iter().filter(|d| d.correlation == launch);
        let own = of_launch.filter(|dispatch| recorded.kernel(dispatch).contains("touch"));
        assert_eq!(own.count(), 1, "the graph's one kernel has its launch as parent");
    }
}

#[test]
fn graphs_of_every_shape_and_streams_of_every_kind_are_recorded_as_they_happened() {
    let Some(rig) = rig() else { return };
    check_on(rig, "graphs", &["graphs"]);
    check_on(rig, "kinds", &["streams"]);
    check_on(&rig.on(&[("EMULATED_GPU_COUNT", "2")]), "kinds-peers", &["streams"]);
}

#[test]
fn copies_between_two_gpus_are_recorded_as_they_happened() {
    let Some(rig) = rig() else { return };
    let recorded = check_on(&rig.on(&[("EMULATED_GPU_COUNT", "2")]), "peers", &["features"]);
    let agent = |id: Option<roctop::item::AgentId>| id.map(|id| &recorded.run.agents[id.0 as usize]);
    let gpus: std::collections::BTreeSet<u32> = recorded
        .run
        .dispatches
        .iter()
        .map(|dispatch| recorded.run.agents[dispatch.agent.0 as usize].number)
        .collect();
    assert_eq!(gpus.into_iter().collect::<Vec<_>>(), [0, 1], "dispatches of both GPUs");
    for copy in recorded.run.copies.iter().filter(|copy| copy.engine == engine::SDMA) {
        let (from, to) = (agent(copy.source), agent(copy.destination));
        let is_gpu = |agent: Option<&roctop::item::Agent>| agent.is_some_and(|agent| agent.kind == AgentKind::Gpu);
        assert!(is_gpu(from) || is_gpu(to), "{copy:?}");
    }
    let at = |number: u32| {
        let has = |id| agent(id).is_some_and(|agent| agent.kind == AgentKind::Gpu && agent.number == number);
        recorded
            .run
            .copies
            .iter()
            .filter(|copy| has(copy.source) || has(copy.destination))
            .count()
    };
    println!("peers: {} copies of GPU 0, {} of GPU 1", at(0), at(1));
}

#[test]
fn copies_that_the_cpu_makes_are_not_invented() {
    let Some(rig) = rig() else { return };
    let plain = check_on(rig, "small-bar", &["memcpy_storm", "1", "1"]);
    let large = check_on(
        &rig.on(&[("EMULATED_GPU_LARGE_BAR", "1")]),
        "large-bar",
        &["memcpy_storm", "1", "1"],
    );
    let calls = |recorded: &Recorded| recorded.run.calls.len();
    let work = |recorded: &Recorded| recorded.run.copies.len() + recorded.run.dispatches.len();
    println!(
        "large-bar: {} pieces of work for the GPU, {} without",
        work(&large),
        work(&plain)
    );
    assert_eq!(calls(&large), calls(&plain), "the program does the same");
    assert!(work(&large) <= work(&plain));
    // Later releases make these copies by kernels, with a large BAR too.
    if rig.is_oldest() {
        assert!(work(&large) < work(&plain), "the CPU makes some of the copies");
    }
}

#[test]
fn scratch_memory_is_told_where_the_run_time_tells_it() {
    let Some(rig) = rig() else { return };
    let recorded = check_on(rig, "scratch", &["api_tour"]);
    let logged: Vec<&Truth> = recorded.truth.iter().filter(|row| row.kind == "scratch").collect();
    assert!(!logged.is_empty(), "a kernel needs scratch");
    let of = |operation: u16| {
        recorded
            .run
            .scratches
            .iter()
            .filter(move |row| row.operation == operation)
    };
    let given: Vec<_> = of(scratch::ALLOC).collect();
    println!(
        "scratch: given {}, taken back {}, logged {}",
        given.len(),
        of(scratch::FREE).count(),
        logged.len()
    );
    if rig.is_oldest() {
        assert!(recorded.run.scratches.is_empty(), "5.2.3 has no table of tool events");
        return;
    }
    assert_eq!(given.len(), logged.len());
    for row in &logged {
        // The run-time tells the end behind its answer, which the GPU has seen by then.
        let inside = |given: &&&Scratch| {
            let Span { begin, end } = given.span;
            row.begin <= begin + TOLERANCE && begin <= row.end && begin < end
        };
        let given = given
            .iter()
            .find(inside)
            .unwrap_or_else(|| panic!("{row:?}: {given:?}"));
        assert!(
            given.bytes > 0 && given.queue.is_some() && given.agent.is_some(),
            "{given:?}"
        );
        let queue = recorded.run.queues[given.queue.unwrap().0 as usize];
        let of_queue = recorded.run.dispatches.iter().filter(|d| d.queue == queue.id);
        assert!(of_queue.filter(|d| d.private_size == row.private).count() >= 1);
    }
    // Each time that it is given or freed is a point of the counter; freed is none.
    let files = recorded.place.join("files");
    let mut export = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"));
    export.arg("export").arg(recorded.place.join("rec"));
    export.args(["--format", "pftrace", "-o", "run", "-d"]).arg(&files);
    assert!(export.output().unwrap().status.success());
    let trace = Trace::read(&std::fs::read(files.join("run_results.pftrace")).unwrap());
    let tracks = trace
        .tracks
        .iter()
        .filter(|(_, (name, _))| name.starts_with("SCRATCH MEMORY"));
    let points: Vec<u64> = tracks.flat_map(|(id, _)| trace.counters[id].iter().copied()).collect();
    println!("scratch: {points:?} KiB");
    let freed = points.iter().filter(|kib| **kib == 0).count();
    assert_eq!(freed, of(scratch::FREE).count());
    assert_eq!(points.len() - freed, given.len());
}

/// On 7.2.4 the run-time overwrites its heap when more than 256 packets wait across the end of an intercepted queue's ring.
#[test]
fn queues_that_a_program_keeps_full_for_rounds_are_recorded_as_they_happened() {
    let Some(rig) = rig() else { return };
    let slow = rig.on(&[("EMULATED_GPU_KERNEL_NS", "10000")]);
    check_on(&slow, "full", &["many_streams", "16", "16", "160000"]);
}

/// Minutes long: `.ci/matrix` runs it.
#[test]
#[ignore = "a million launches take minutes: .ci/matrix"]
fn a_million_launches_of_sixty_four_threads_are_recorded_as_they_happened() {
    let Some(rig) = rig() else { return };
    check_on(rig, "million", &["many_streams", "64", "512", "1000000"]);
}

#[test]
fn kernels_that_hips_own_threads_submit_are_recorded_and_linked_where_hip_says_to_what() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("deferred");
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let mut command = rig.command(&place, &options, &["many_streams", "4", "8", "3000"]);
    let output = Rig::ended(command.env("AMD_DIRECT_DISPATCH", "0"));
    let recorded = Recorded::load(&place, output);
    assert!(recorded.output.status.success(), "{:?}", recorded.output);
    recorded.check_lost();
    recorded.check_calls();
    let dispatches = recorded.check_dispatches();
    assert!(recorded.said.iter().any(|text| text.contains("AMD_DIRECT_DISPATCH=0")));
    if release().as_deref() == Some("5.7.1") {
        recorded.check_correlation();
        println!("deferred: {dispatches} dispatches as logged, linked to their launches");
    } else {
        println!("deferred: {dispatches} dispatches as logged; n/a: this release does not say which launch made them");
    }
}

/// Which packets' kernels leave wrong times, as the emulated GPU takes it; the first that fits counts.
const WRONG: [(&str, u64); 5] = [
    ("swapped", 7),
    ("endless", 11),
    ("ahead", 13),
    ("first", 17),
    ("unwritten", 19),
];

#[test]
fn times_that_cannot_be_are_flagged_and_disturb_no_others() {
    let Some(rig) = rig() else { return };
    let machine = rig.on(&[(
        "EMULATED_GPU_WRONG_TIMES",
        "swapped=7,endless=11,ahead=13,first=17,unwritten=19",
    )]);
    let recorded = machine.record("wrong", &["many_streams", "2", "4", "2000"]);
    assert!(recorded.output.status.success(), "{:?}", recorded.output);
    let mut counts = BTreeMap::new();
    for (rows, dispatches) in recorded.queues() {
        assert_eq!(rows.len(), dispatches.len());
        for (row, dispatch) in rows.iter().zip(&dispatches) {
            let wrong = WRONG.iter().find(|(_, every)| row.index % every == every - 1);
            let name = wrong.map_or("right", |wrong| wrong.0);
            *counts.entry(name).or_insert(0) += 1;
            let near = |time: u64, truth: u64| time.abs_diff(truth) <= TOLERANCE;
            let is_exact = near(dispatch.span.begin, row.begin) && near(dispatch.span.end, row.end);
            let is_none = dispatch.span == Span::default();
            let flags = dispatch.flags & (flag::SUSPECT_TIME | flag::UNTIMED);
            let is_well = match name {
                "right" => is_exact && flags == 0,
                "swapped" => is_exact && flags == flag::SUSPECT_TIME,
                "unwritten" => is_none && flags == flag::UNTIMED,
                _ => is_none && flags == flag::SUSPECT_TIME | flag::UNTIMED,
            };
            assert!(is_well, "{name}: {dispatch:?}\n{row:?}");
        }
    }
    println!("wrong: {counts:?}");
    assert!(
        counts.len() == 6 && counts.values().all(|count| *count > 20),
        "{counts:?}"
    );
    let told = |text: &&String| text.contains("in the future");
    assert_eq!(recorded.said.iter().filter(told).count(), 1);
    // What the screen shows of it: a program of seconds, whose kernels took what they took.
    let summary = recorded.summary();
    let odd = counts
        .iter()
        .filter(|(name, _)| !["right", "unwritten"].contains(*name));
    assert_eq!(
        summary["totals"]["suspect_times"],
        odd.map(|(_, count)| count).sum::<u64>()
    );
    for kernel in summary["kernels"].as_array().unwrap() {
        let (min, max) = (kernel["min_ns"].as_u64().unwrap(), kernel["max_ns"].as_u64().unwrap());
        assert!(4900 <= min && max <= 5100, "{kernel}");
    }
    // The recording lasts as long as the program did.
    let whole = roctop::recording::Recording::open(&recorded.place.join("rec"))
        .unwrap()
        .span()
        .unwrap()
        .unwrap();
    assert!(whole.duration() < 60_000_000_000, "{whole:?}");
}

#[test]
fn a_gpu_whose_clock_is_late_or_early_is_told() {
    let Some(rig) = rig() else { return };
    for wrong in ["later=1", "sooner=1", "sooner=500", ""] {
        let machine = rig.on(&[("EMULATED_GPU_WRONG_TIMES", wrong)]);
        let recorded = machine.record("clocks", &["launch_loop", "2000"]);
        assert!(recorded.output.status.success(), "{:?}", recorded.output);
        let summary = recorded.summary();
        let notes = summary["processes"][0]["notes"].as_array().unwrap();
        let notes: Vec<_> = notes.iter().map(|note| note.as_str().unwrap()).collect();
        let told: Vec<_> = notes.iter().filter(|text| text.contains("clock disagree")).collect();
        println!("{wrong}: {told:?}");
        assert_eq!(told.len(), usize::from(!wrong.is_empty()), "{told:?}");
        let is_early = |one: &&Dispatch| one.span.begin + 50_000 < one.submit;
        let early = units::grouped(recorded.run.dispatches.iter().filter(is_early).count() as u64);
        let said = match wrong {
            "later=1" => "after they were seen complete: GPU and host clock disagree".to_owned(),
            _ => format!("{early} kernels begin before their launch, up to "),
        };
        assert!(told.iter().all(|text| text.contains(&said)), "{said}: {told:?}");
        assert_eq!(early != "0", wrong.starts_with("sooner"), "{early}");
    }
}

#[test]
fn launch_by_structure_has_its_stream_and_a_time() {
    let Some(rig) = rig() else { return };
    let plain = rig.plain("configured", &["configured", "10"]);
    if super::text(&plain.stdout).contains("no such launches") {
        println!("configured: n/a: HIP before 7.0 has no launches by structure");
        return;
    }
    let recorded = check_on(rig, "configured", &["configured", "10"]);
    let mut streams = BTreeMap::<&str, std::collections::BTreeSet<_>>::new();
    for dispatch in &recorded.run.dispatches {
        let kernel = recorded.kernel(dispatch);
        let is_cooperative = kernel.contains("together");
        assert_eq!(
            dispatch.flags & flag::UNTIMED,
            0,
            "{kernel} (cooperative: {is_cooperative})"
        );
        streams.entry(kernel).or_default().insert(dispatch.stream);
    }
    let of = |part: &str| {
        let found = streams.iter().find(|(kernel, _)| kernel.contains(part));
        let streams = found.unwrap_or_else(|| panic!("no {part}")).1;
        assert_eq!(streams.len(), 1, "{part}: {streams:?}");
        streams.first().copied().unwrap()
    };
    let [one, two, null] = ["2onILi1E", "2onILi2E", "2onILi3E"].map(of);
    assert!(one != two && one != null && two != null, "{one:?} {two:?} {null:?}");
}
