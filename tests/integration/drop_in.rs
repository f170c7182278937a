//! The drop-in libroctracer64 and libroctx64 on a real run-time over the emulated GPU: a program that traces itself with
//! them is told everything, alone and while roctop records it, and roctop records everything too.
//!
//! `ROCTOP_TEST_RELEASE` chooses the release, as in real_run_time.rs.

mod habits;
mod order;

use crate::kit::rig::{Recorded, Rig, TOLERANCE, Truth, read_truth, rig, source};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const ITERATIONS: usize = 5;
/// A kernel of module_kernels.hsaco, of a pointer and a number.
const MODULE_KERNEL: &str = "module_add";

/// The newest archive of a drop-in library that cargo built for these tests.
fn archive(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let found = std::fs::read_dir(own.parent().unwrap()).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let is_one = path.extension().is_some_and(|end| end == "a")
            && path.file_name()?.to_str()?.starts_with(&format!("{name}-"));
        is_one.then(|| (path.metadata().unwrap().modified().unwrap(), path))
    });
    found.max().map(|(_, path)| path).expect("the archive beside the test")
}

/// The HIP programs that use the libraries, compiled and linked to them; none, with the reason printed, without a rig.
fn program(name: &str) -> Option<(&'static Rig, PathBuf)> {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    let rig = rig()?;
    let programs = PROGRAMS.get_or_init(|| {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/roctracer");
        let room = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("drop-in");
        let archives = room.join("archives");
        let _ = std::fs::remove_dir_all(&archives);
        std::fs::create_dir_all(&archives).unwrap();
        for name in ["libroctop_roctracer", "libroctop_roctx"] {
            symlink(archive(name), archives.join(format!("{name}.a"))).unwrap();
        }
        let run = |command: &mut Command| {
            let output = command.output().unwrap();
            assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
        };
        run(Command::new(package.join("link")).arg(&archives).arg(room.join("lib")));
        let source = source();
        let out = room.join(format!("hip-{source}"));
        let build = package.join("tests/hip/build");
        run(Command::new(build).arg(&source).arg(room.join("lib")).arg(&out));
        out
    });
    Some((rig, programs.join(name)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the program printed, by the first word of its lines.
fn told(output: &Output) -> BTreeMap<String, Vec<Vec<String>>> {
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    let mut told: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for line in printed.lines() {
        let mut words = line.split(' ').map(str::to_owned);
        let kind = words.next().unwrap();
        told.entry(kind).or_default().push(words.collect());
    }
    assert!(told.contains_key("done"), "{printed}");
    told
}

fn number(word: &str) -> u64 {
    word.parse().unwrap()
}

/// The program was told of each of its calls before, after and by a record, of each kernel and each copy with the
/// times that the emulated GPU logged, of memory, code objects and marks.
fn check(told: &BTreeMap<String, Vec<Vec<String>>>, truth: &[Truth]) {
    let of = |kind: &str| told.get(kind).map_or(&[][..], Vec::as_slice);
    let mut calls = BTreeMap::new();
    for call in of("call").iter().chain(of("hsa")) {
        assert!(call[1] == call[2] && call[2] == call[3], "{call:?}");
        calls.insert(call[0].as_str(), number(&call[1]) as usize);
    }
    for (name, count) in [
        ("hipMalloc", 2),
        ("hipFree", 2),
        ("hipMemcpy", 2 * ITERATIONS),
        ("hipLaunchKernel", ITERATIONS),
        ("hipDeviceSynchronize", ITERATIONS),
        ("__hipPushCallConfiguration", ITERATIONS),
        ("__hipPopCallConfiguration", ITERATIONS),
    ] {
        assert_eq!(calls.get(name), Some(&count), "{name}");
    }
    assert!(calls["hsa_queue_create"] > 0 && calls["hsa_amd_memory_pool_allocate"] > 0);

    let spans = |rows: &[Vec<String>], at: usize| -> Vec<(u64, u64)> {
        let mut spans: Vec<_> = rows
            .iter()
            .map(|row| (number(&row[at]), number(&row[at + 1])))
            .collect();
        spans.sort_unstable();
        spans
    };
    let logged = |is_one: &dyn Fn(&Truth) -> bool| -> Vec<(u64, u64)> {
        let mut spans: Vec<_> = truth
            .iter()
            .filter(|row| is_one(row))
            .map(|row| (row.begin, row.end))
            .collect();
        spans.sort_unstable();
        spans
    };
    let near = |ours: &[(u64, u64)], logged: &[(u64, u64)]| {
        let is_near =
            |(a, b): (&(u64, u64), &(u64, u64))| a.0.abs_diff(b.0) <= TOLERANCE && a.1.abs_diff(b.1) <= TOLERANCE;
        assert!(
            ours.len() == logged.len() && ours.iter().zip(logged).all(is_near),
            "{ours:?}\n{logged:?}"
        );
    };
    let kernels = of("kernel");
    near(
        &spans(kernels, 1),
        &logged(&|row| row.kind == "dispatch" && !row.name.is_empty()),
    );
    assert!(kernels.iter().all(|kernel| kernel[0] == "_Z9transposePfPKfi"));
    assert!(
        kernels.iter().all(|kernel| kernel[3] != "0"),
        "every kernel has its launch"
    );
    let copies = of("copy");
    near(&spans(copies, 0), &logged(&|row| row.kind == "sdma_copy"));
    // HIP's own records of copies begin at the barrier before the copy, as the shipped library has them.
    assert_eq!(
        of("work").iter().filter(|work| work[0].starts_with("Copy")).count(),
        copies.len()
    );

    let events: BTreeMap<&str, u64> = of("event")
        .iter()
        .map(|event| (event[0].as_str(), number(&event[1])))
        .collect();
    for event in ["ALLOCATE", "FREE", "DEVICE", "CODEOBJ"] {
        assert!(events.get(event).is_some_and(|count| *count > 0), "{event}: {events:?}");
    }
    let marks: Vec<String> = of("mark").iter().map(|mark| mark.join(" ")).collect();
    assert_eq!(marks, ["0 before the launch", "1 launch", "2 -"].repeat(ITERATIONS));
    let external: Vec<u64> = of("external").iter().map(|id| number(&id[0])).collect();
    assert_eq!(external, (0..ITERATIONS as u64).map(|i| 1000 + i).collect::<Vec<_>>());
}

#[test]
fn a_program_that_traces_itself_is_told_everything() {
    let Some((rig, program)) = program("traced_transpose") else {
        return;
    };
    let place = Rig::place("drop-in-alone");
    let words = [program.to_str().unwrap(), &ITERATIONS.to_string()];
    let output = Rig::ended(&mut rig.command(&place, &[], &words));
    check(&told(&output), &read_truth(&place));
}

#[test]
fn the_manuals_sample_compiles_and_runs() {
    let Some((rig, program)) = program("manual_sample") else {
        return;
    };
    let output = rig.plain("drop-in-manual", &[program.to_str().unwrap()]);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    assert!(printed.contains("<hipLaunchKernel id("), "{printed}");
    assert!(printed.ends_with("entered 5 left 5 recorded 10\n"), "{printed}");
}

#[test]
fn the_manuals_sample_compiles_and_runs_in_c() {
    let Some((rig, program)) = program("manual_sample_c") else {
        return;
    };
    let module = rig.app("module_kernels.hsaco");
    let words = [program.to_str().unwrap(), module.to_str().unwrap(), MODULE_KERNEL];
    let output = rig.plain("drop-in-manual-c", &words);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    assert!(
        printed.contains("<hipModuleLaunchKernel id(") && printed.contains("\tKernelExecution\t"),
        "{printed}"
    );
    assert!(printed.ends_with("entered 5 left 5 recorded 10\n"), "{printed}");
}

#[test]
fn a_million_calls_lose_nothing() {
    let Some((rig, program)) = program("million") else {
        return;
    };
    let output = rig.plain("drop-in-million", &[program.to_str().unwrap()]);
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    print!("{}", text(&output.stdout));
}

#[test]
fn the_program_and_roctop_both_see_every_record() {
    let Some((rig, program)) = program("traced_transpose") else {
        return;
    };
    let words = [program.to_str().unwrap(), &ITERATIONS.to_string()];
    let recorded = rig.record("drop-in-together", &words);
    let told = told(&recorded.output);
    check(&told, &recorded.truth);
    recorded.check_lost();
    recorded.check_nesting();
    assert_eq!(recorded.check_dispatches(), ITERATIONS);
    recorded.check_copies();
    recorded.check_correlation();
    check_same(&recorded, &told["call"]);
    assert_eq!(
        recorded.run.markers.len(),
        2 * ITERATIONS,
        "a mark and a range each time"
    );
}

#[test]
fn both_see_every_record_where_the_run_times_hand_over_their_tables() {
    let Some((rig, program)) = program("traced_transpose") else {
        return;
    };
    let registering = match rig.registering() {
        Ok(registering) => registering,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let words = [program.to_str().unwrap(), &ITERATIONS.to_string()];
    let recorded = registering.record("drop-in-tables", &words);
    check(&told(&recorded.output), &recorded.truth);
    recorded.check_lost();
    assert_eq!(recorded.check_dispatches(), ITERATIONS);
    recorded.check_copies();
    // HSA's are left alone, so that HSA looks for its tools and finds both.
    assert!(
        !recorded.said.iter().any(|said| said.starts_with("hsa ")),
        "{:?}",
        recorded.said
    );
}

/// roctop recorded every call that the program's own callbacks were told of, as often.
fn check_same(recorded: &Recorded, calls: &[Vec<String>]) {
    let mut ours: BTreeMap<&str, u64> = BTreeMap::new();
    for call in recorded.run.calls.iter().filter(|call| call.parent == 0) {
        *ours
            .entry(&recorded.run.operations[call.operation.0 as usize].name)
            .or_default() += 1;
    }
    for call in calls {
        assert_eq!(ours.get(call[0].as_str()), Some(&number(&call[1])), "{}", call[0]);
    }
}
