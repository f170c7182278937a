//! Every option of rocprofv3, a row each: those of the seed's manual and those of rocprofiler-sdk 1.0.0 and later. Each is
//! taken, or refused with a sentence that says why; none is passed over in silence.

use std::process::{Command, Stdio};

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Taken,
    /// Refused, and this is in the sentence.
    Refused(&'static str),
}
use Fate::{Refused, Taken};

const UNRECORDED: &str = "does not record";
const THREAD_TRACE: &str = "thread traces";
const STREAMED: &str = "streaming monitor";

/// Long name, letter or aliases, a value, what becomes of it.
const OPTIONS: &[(&str, &[&str], &str, Fate)] = &[
    // Both.
    ("--help", &["-h"], "", Taken),
    ("--hip-trace", &[], "", Taken),
    ("--hip-runtime-trace", &[], "", Taken),
    ("--hip-compiler-trace", &[], "", Taken),
    ("--hsa-trace", &[], "", Taken),
    ("--hsa-core-trace", &[], "", Taken),
    ("--hsa-amd-trace", &[], "", Taken),
    ("--hsa-image-trace", &[], "", Taken),
    ("--hsa-finalizer-trace", &[], "", Taken),
    ("--scratch-memory-trace", &[], "", Taken),
    ("--kernel-trace", &[], "", Taken),
    ("--marker-trace", &[], "", Taken),
    ("--memory-copy-trace", &[], "", Taken),
    ("--sys-trace", &["-s"], "", Taken),
    ("--stats", &[], "", Taken),
    ("--output-directory", &["-d"], "out", Taken),
    ("--output-file", &["-o"], "name", Taken),
    ("--mangled-kernels", &["-M"], "", Taken),
    ("--truncate-kernels", &["-T"], "", Taken),
    ("--output-format", &["-f"], "CSV json PFtrace", Taken),
    // The seed's alone.
    ("--kernel-names", &[], "gemm", Taken),
    ("--preload", &[], "/lib/libm.so.6", Taken),
    ("--preload", &[], "", Taken),
    // Since then.
    ("--version", &["-v"], "", Taken),
    ("--log-level", &[], "info", Taken),
    ("--runtime-trace", &["-r"], "", Taken),
    ("--memory-allocation-trace", &[], "", Taken),
    ("--kokkos-trace", &[], "", Taken),
    ("--rccl-trace", &[], "", Taken),
    ("--rocdecode-trace", &[], "", Taken),
    ("--rocjpeg-trace", &[], "", Taken),
    ("--kfd-trace", &[], "", Refused(UNRECORDED)),
    ("--kfd-page-migration-trace", &[], "", Refused(UNRECORDED)),
    ("--kfd-page-mapping-trace", &[], "", Refused(UNRECORDED)),
    ("--kfd-queue-trace", &[], "", Refused(UNRECORDED)),
    ("--kfd-dropped-events-trace", &[], "", Refused(UNRECORDED)),
    ("--hipfile-trace", &[], "", Refused(UNRECORDED)),
    ("--ompt-trace", &[], "", Refused(UNRECORDED)),
    ("--ompt-trace", &[], "parallel task target", Refused(UNRECORDED)),
    ("--ompt-trace", &[], "false", Taken),
    ("--hip-event-trace", &[], "", Refused(UNRECORDED)),
    ("--hip-graph-trace", &[], "", Refused(UNRECORDED)),
    ("--rocshmem-trace", &[], "", Refused(UNRECORDED)),
    ("--replay-mode", &[], "application", Taken),
    (
        "--kernel-replay-beta-enabled",
        &[],
        "",
        Refused("as often as the program"),
    ),
    ("--spm", &[], "SQ_WAVES,SQ_BUSY_CYCLES", Refused(STREAMED)),
    ("--spm-beta-enabled", &[], "", Refused(STREAMED)),
    ("--spm-sample-interval", &[], "1000", Refused(STREAMED)),
    ("--spm-sample-interval-unit", &[], "sclk_cycles", Refused(STREAMED)),
    ("--pc-sampling-beta-enabled", &[], "", Taken),
    ("--pc-sampling-unit", &[], "time", Taken),
    ("--pc-sampling-method", &[], "host_trap", Taken),
    ("--pc-sampling-interval", &[], "1", Taken),
    ("--summary", &["-S"], "", Taken),
    ("--summary-per-domain", &["-D"], "", Taken),
    ("--summary-groups", &[], "KERNEL.*", Taken),
    ("--summary-output-file", &[], "stdout", Taken),
    ("--summary-units", &["-u"], "msec", Taken),
    ("--kernel-rename", &[], "", Taken),
    ("--kernel-include-regex", &[], "gemm", Taken),
    ("--kernel-exclude-regex", &[], "gemm", Taken),
    ("--kernel-iteration-range", &[], "[1-3,7]", Taken),
    ("--collection-period", &["-P"], "1:2:3", Taken),
    ("--collection-period-unit", &[], "msec", Taken),
    ("--selected-regions", &[], "", Taken),
    ("--selected-regions-ref-count", &[], "", Taken),
    ("--output-config", &[], "", Taken),
    ("--echo", &[], "", Taken),
    ("--readlink", &[], "", Taken),
    ("--realpath", &[], "", Taken),
    ("--suppress-marker-preload", &[], "", Taken),
    ("--benchmark-mode", &[], "execution-profile", Refused("benches")),
    ("--profile-mpi-ranks", &[], "0", Taken),
    ("--mpi-world-rank-variable", &[], "RANK", Taken),
    ("--mpi-world-size-variable", &[], "SIZE", Taken),
    ("--perfetto-backend", &[], "inprocess", Taken),
    ("--perfetto-buffer-size", &[], "1024", Taken),
    ("--perfetto-buffer-fill-policy", &[], "discard", Taken),
    ("--perfetto-shmem-size-hint", &[], "64", Taken),
    ("--group-by-queue", &[], "", Taken),
    ("--agent-index", &["-A"], "absolute", Taken),
    ("--rocm-root", &[], "/opt/rocm", Taken),
    ("--sdk-soversion", &[], "1", Taken),
    ("--sdk-version", &[], "1.0.0", Taken),
    ("--disable-signal-handlers", &[], "", Taken),
    ("--minimum-output-data", &[], "1", Taken),
    ("--process-sync", &[], "", Taken),
    ("--attach", &["-p", "--pid"], "1", Taken),
    ("--attach-duration-msec", &[], "5", Taken),
    ("--attach-children", &[], "false", Taken),
    ("--attach-sync-output", &[], "", Taken),
    ("--att", &["--advanced-thread-trace"], "", Refused(THREAD_TRACE)),
    ("--att-library-path", &[], "x", Refused(THREAD_TRACE)),
    ("--att-target-cu", &[], "1", Refused(THREAD_TRACE)),
    ("--att-simd-select", &[], "1", Refused(THREAD_TRACE)),
    ("--att-buffer-size", &[], "1", Refused(THREAD_TRACE)),
    ("--att-shader-engine-mask", &[], "1", Refused(THREAD_TRACE)),
    ("--att-gpu-index", &[], "1", Refused(THREAD_TRACE)),
    ("--att-perfcounters", &[], "SQ_WAVES", Refused(THREAD_TRACE)),
    ("--att-perfcounter-ctrl", &[], "1", Refused(THREAD_TRACE)),
    ("--att-activity", &[], "1", Refused(THREAD_TRACE)),
    ("--att-serialize-all", &[], "", Refused(THREAD_TRACE)),
    ("--att-perfcounter-target-only", &[], "", Refused(THREAD_TRACE)),
    ("--att-consecutive-kernels", &[], "4", Refused(THREAD_TRACE)),
    ("--att-no-intercept", &[], "", Refused(THREAD_TRACE)),
    ("--att-no-detail", &[], "", Refused(THREAD_TRACE)),
    ("--att-resource-mode", &[], "hsa", Refused(THREAD_TRACE)),
];

/// Options that the tests of counters, of arguments and of input files look at.
const ELSEWHERE: &[&str] = &[
    "--input",
    "--pmc",
    "--pmc-groups",
    "--pmc-group-interval",
    "--list-metrics",
    "--list-avail",
    "--extra-counters",
    "--layout",
];

fn told(words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    let output = command.arg("rocprofv3").args(words).stdin(Stdio::null()).output();
    output.map_or((None, String::new(), String::new()), |output| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    })
}

#[test]
fn every_option_and_alias_is_taken_or_refused_with_a_reason() {
    for (name, aliases, value, fate) in OPTIONS {
        for name in std::iter::once(name).chain(*aliases) {
            // Asked for help, nothing is run: what is left is what was understood.
            let mut words = vec![*name];
            words.extend(value.split_whitespace());
            words.push("--help");
            let (code, _, errors) = told(&words);
            match fate {
                Taken => assert_eq!(code, Some(0), "{name}: {errors}"),
                Refused(why) => {
                    assert_eq!(code, Some(2), "{name} was passed over");
                    assert!(errors.contains(why) && errors.lines().count() == 1, "{name}: {errors}");
                }
            }
        }
    }
}

#[test]
fn switches_take_truth_values_and_nothing_else() {
    for word in ["1", "0", "yes", "No", "TRUE", "off", "t", "f"] {
        let option = format!("--kernel-trace={word}");
        assert_eq!(told(&[&option, "--help"]).0, Some(0), "{option}");
    }
    let (code, _, errors) = told(&["--kernel-trace=maybe", "--help"]);
    assert!(code == Some(2) && errors.contains("maybe"), "{errors}");
    // What is refused can be switched off.
    assert_eq!(told(&["--kfd-trace=no", "--help"]).0, Some(0));
}

#[test]
fn the_help_names_every_option() {
    let (_, help, _) = told(&["--help"]);
    for (name, aliases, ..) in OPTIONS {
        for name in std::iter::once(name).chain(*aliases) {
            let word = if name.starts_with("--") {
                (*name).to_owned()
            } else {
                format!("{name}, ")
            };
            assert!(help.contains(&word), "{name}");
        }
    }
    // And there is none that this file does not know.
    for line in help.lines().filter(|line| line.starts_with("  ")) {
        let Some(name) = line.split_whitespace().find(|word| word.starts_with("--")) else {
            continue;
        };
        let is_known = OPTIONS.iter().any(|row| row.0 == name || row.1.contains(&name));
        assert!(is_known || ELSEWHERE.contains(&name), "{name} has no row here");
    }
}

#[test]
fn an_attachment_that_cannot_be_made_says_what_is_in_the_way() {
    let own = std::process::id().to_string();
    for (pid, word) in [
        ("4000000000", "no such process"),
        (own.as_str(), "has not loaded a ROCm run-time"),
    ] {
        let (code, _, errors) = told(&["--kernel-trace", "--attach", pid]);
        assert_eq!(code, Some(1));
        assert!(errors.contains(word) && errors.lines().count() == 1, "{errors}");
    }
}
