//! Programs that nobody here wrote, on the real run-time: same output and exit code as alone, records equal to the log.

use super::{check_on, check_output};
use crate::kit::rig::{Rig, release, rig};
use std::path::Path;
use std::process::Command;

/// What a script of `tests/runtimes` made, by its last line; none, with the reason told, where it cannot.
fn fetched(script: &str, arguments: &[&str]) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/runtimes")
        .join(script);
    let output = Command::new(path).args(arguments).output().unwrap();
    if output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        return said.lines().last().map(str::to_owned);
    }
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(77), "{why}");
    println!("n/a: {}", why.lines().last().unwrap_or(script));
    None
}

#[test]
fn a_data_loader_of_many_processes_on_hip_python_is_recorded_as_it_happened() {
    let Some(rig) = rig() else { return };
    if release().is_some() {
        println!("n/a: unpacked prefixes have no Python; hip-python runs on the installed 5.2.3");
        return;
    }
    // .ci/matrix fetches it.
    let Some(python) = fetched("fetch-hip-python", &["--cached"]) else {
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps/loader.py");
    let module = rig.app("module_kernels.hsaco");
    let words = [&*python, script.to_str().unwrap(), module.to_str().unwrap(), "3", "20"];
    let recorded = check_on(rig, "hip-python", &words);
    let said = String::from_utf8_lossy(&recorded.output.stdout).into_owned();
    assert!(
        said.contains("workers [0, 0, 0]") && said.contains("children [0, 0]"),
        "{said}"
    );
    // The parent and the two spawned children used HIP; forked workers made no file.
    assert_eq!(recorded.run.processes.len(), 3, "{:?}", recorded.run.processes);
}

/// As `check_on`, for a program that does not count its calls.
fn check_uncounted(rig: &Rig, name: &str, words: &[&str]) -> usize {
    let plain = rig.plain(name, words);
    let recorded = rig.record(name, words);
    check_output(&recorded, &plain);
    recorded.check_lost();
    recorded.check_nesting();
    let dispatches = recorded.check_dispatches();
    let copies = recorded.check_copies();
    recorded.check_correlation();
    println!("{name}: {dispatches} dispatches, {copies} copies, all as logged");
    dispatches
}

#[test]
fn tests_of_rocrand_are_recorded_as_they_happened() {
    const PACKAGE: &str = "librocrand1-tests";
    let Some(rig) = rig() else { return };
    let release = release().unwrap_or_else(|| "5.2.3".to_owned());
    if release != "5.7.1" {
        println!("n/a: rocRAND's tests are taken from 5.7.1's suite (trixie)");
        return;
    }
    if fetched("fetch", &["--and", PACKAGE, &release]).is_none() {
        return;
    }
    let rig = rig.with_prefix(&format!("{release}+{PACKAGE}"));
    let mut dispatches = 0;
    // Those that draw numbers by kernels fail here, with roctop and without: kernels are not executed.
    for name in [
        "test_rocrand_basic",
        "test_rocrand_generate_uniform",
        "test_rocrand_kernel_xorwow",
    ] {
        let program = format!("/usr/libexec/rocm/{PACKAGE}/{name}");
        dispatches += check_uncounted(&rig, name, &[&program, "--gtest_print_time=0"]);
    }
    assert!(dispatches > 100, "{dispatches}");
}

#[test]
fn opencl_threads_are_recorded_as_they_happened() {
    const PACKAGE: &str = "rocm-opencl-icd";
    /// What programs load; the driver's package does not bring it.
    const LOADER: &str = "ocl-icd-libopencl1";
    let Some(rig) = rig() else { return };
    let release = release().unwrap_or_else(|| "5.2.3".to_owned());
    if release != "6.4.3" {
        println!("n/a: ROCm's OpenCL is taken from 6.4.3's suite (sid)");
        return;
    }
    if fetched("fetch", &["--and", PACKAGE, "--and", LOADER, &release]).is_none() {
        return;
    }
    let rig = rig.with_prefix(&format!("{release}+{PACKAGE}"));
    for what in ["w", "k", "wk"] {
        let name = format!("opencl-{what}");
        // Three threads of 200 rounds each: their copies and kernels overlap.
        let words = ["opencl_threads", "3", "200", what];
        let plain = rig.plain(&name, &words);
        let recorded = rig.record(&name, &words);
        assert_eq!(plain.status.code(), Some(0), "{plain:?}");
        check_output(&recorded, &plain);
        recorded.check_lost();
        let (dispatches, copies) = (recorded.check_dispatches(), recorded.check_copies());
        println!("{name}: {dispatches} dispatches, {copies} copies, all as logged");
        assert!(!what.contains('k') || dispatches >= 600, "{dispatches}");
        assert!(!what.contains('w') || copies >= 603, "{copies}");
    }
}
