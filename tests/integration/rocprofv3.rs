//! The command line and the files of rocprofv3, from roctop.

mod choices;
mod file;
mod options;
mod real;
mod region;
mod shape;

use crate::kit::directory::place;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const OWN: &str = env!("CARGO_BIN_EXE_roctop");

fn command(place: &Path, options: &[&str], app: &[&str]) -> Command {
    let mut command = Command::new(OWN);
    command.arg("rocprofv3").args(options).arg("--").args(app);
    command.current_dir(place).stdin(Stdio::null());
    if app.contains(&"__demo") {
        command.env("ROCTOP_DEMO_WORKER", "1");
    }
    for name in ["ROCPROF_OUTPUT_PATH", "ROCPROF_OUTPUT_FILE_NAME"] {
        command.env_remove(name);
    }
    command
}

/// Runs the built-in workload with these options.
fn run(place: &Path, options: &[&str]) -> Output {
    command(place, options, &[OWN, "__demo"]).output().unwrap()
}

/// All files below a directory, by their paths from there, without those of kernels that the demo had in flight at its
/// end: these are beside the files of kernels alone.
fn files(place: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = vec![place.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                found.insert(path.strip_prefix(place).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let is_in_flight = |name: &String| name.ends_with("kernel_in_flight.csv");
    for name in found.extract_if(.., is_in_flight).collect::<Vec<_>>() {
        let kernels = name.replace("in_flight", "trace");
        assert!(found.contains(&kernels), "{name} without {kernels}");
    }
    found
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_wanted_domains_have_files_and_no_others() {
    for (options, expected) in [
        (&["--kernel-trace"][..], &["n_agent_info.csv", "n_kernel_trace.csv"][..]),
        (
            &["--marker-trace", "--memory-copy-trace"],
            &["n_agent_info.csv", "n_marker_api_trace.csv", "n_memory_copy_trace.csv"],
        ),
        (&["--hip-trace", "-f", "JSON"], &["n_results.json"]),
        (
            &["-r", "--hip-runtime-trace=no", "--output-format", "csv", "pftrace"],
            &[
                "n_agent_info.csv",
                "n_kernel_trace.csv",
                "n_marker_api_trace.csv",
                "n_memory_allocation_trace.csv",
                "n_memory_copy_trace.csv",
                "n_results.pftrace",
            ],
        ),
        (
            &["--kernel-trace", "--stats", "--layout=seed"],
            &["n_agent_info.csv", "n_kernel_stats.csv", "n_kernel_trace.csv"],
        ),
    ] {
        let place = place("domains");
        let output = run(&place, &[options, &["-o", "n"]].concat());
        assert!(output.status.success(), "{output:?}");
        assert_eq!(files(&place), names(expected), "{options:?}");
        for name in expected {
            assert!(
                told(&output).contains(&format!("Opened result file: ./{name}")),
                "{}",
                told(&output)
            );
        }
    }
}

#[test]
fn work_that_no_traced_call_caused_has_ids_of_its_own() {
    let place = place("orphans");
    assert!(run(&place, &["--kernel-trace", "-o", "n"]).status.success());
    let text = std::fs::read_to_string(place.join("n_kernel_trace.csv")).unwrap();
    let rows: Vec<&str> = text.lines().skip(1).collect();
    let after_name = rows
        .iter()
        .map(|row| row.rsplit(',').nth(13).unwrap().parse::<usize>().unwrap());
    let mut ids: Vec<usize> = after_name.collect();
    // Kernels that were in flight at the end have ids, too.
    if let Ok(text) = std::fs::read_to_string(place.join("n_kernel_in_flight.csv")) {
        let of = |row: &str| row.rsplit(',').nth(1).unwrap().parse::<usize>().unwrap();
        ids.extend(text.lines().skip(1).map(of));
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=ids.len()).collect::<Vec<_>>());
}

#[test]
fn only_the_wanted_ranks_are_profiled() {
    let place = place("ranks");
    let run = |options: &[&str]| {
        let script = [
            "sh",
            "-c",
            "echo ran >> ran; ROCTOP_DEMO_WORKER=1 exec \"$0\" \"$1\"",
            OWN,
            "__demo",
        ];
        let options = [&["--marker-trace", "-o", "r%rank%of%size%", "-f", "json"], options].concat();
        let mut command = command(&place, &options, &script);
        command
            .env("OMPI_COMM_WORLD_RANK", "3")
            .env("OMPI_COMM_WORLD_SIZE", "8");
        // Of the program alone, not of the shell before it.
        command.env_remove("ROCTOP_DEMO_WORKER");
        let output = command.env("MY_RANK", "2").env("MY_SIZE", "4").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let found = files(&place);
        for name in &found {
            std::fs::remove_file(place.join(name)).unwrap();
        }
        found
    };
    let profiled = |name: &str| names(&["ran", &format!("{name}_results.json")]);
    let named = [
        "--mpi-world-rank-variable",
        "MY_RANK",
        "--mpi-world-size-variable=MY_SIZE",
    ];
    assert_eq!(run(&[]), profiled("r3of8"));
    assert_eq!(run(&["--profile-mpi-ranks", "0-2,5"]), names(&["ran"]));
    assert_eq!(run(&["--profile-mpi-ranks", "0-2,3"]), profiled("r3of8"));
    assert_eq!(
        run(&[&named[..], &["--profile-mpi-ranks", "2"]].concat()),
        profiled("r2of4")
    );
    assert_eq!(
        run(&[&named[..], &["--profile-mpi-ranks", "3"]].concat()),
        names(&["ran"])
    );
    assert_eq!(
        run(&["--mpi-world-rank-variable", "NONE", "--profile-mpi-ranks", "7"]),
        profiled("r0of8"),
        "one without a rank is profiled"
    );
}

#[test]
fn an_input_file_holds_several_jobs() {
    let place = place("input");
    let jobs = "jobs:\n  - kernel_trace: true\n    output_file: k\n  - hip_trace: true\n    output_file: h\n    output_format: [json]\n";
    std::fs::write(place.join("jobs.yaml"), jobs).unwrap();
    let output = run(&place, &["-i", "jobs.yaml", "-d", "out"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        files(&place),
        names(&[
            "jobs.yaml",
            "out/pass_1/k_agent_info.csv",
            "out/pass_1/k_kernel_trace.csv",
            "out/pass_2/h_results.json"
        ])
    );
    let clash = run(&place, &["-i", "jobs.yaml", "--kernel-trace=no"]);
    assert!(
        !clash.status.success() && told(&clash).contains("--kernel-trace"),
        "{clash:?}"
    );
    for (name, text, word) in [
        ("bad.yaml", "jobs: [", "bad.yaml"),
        ("bad.json", "{", "bad.json"),
        ("refused.json", r#"{"jobs":[{"kfd_trace":true}]}"#, "--kfd-trace"),
        ("jobs.xml", "", ".yaml"),
    ] {
        std::fs::write(place.join(name), text).unwrap();
        let output = run(&place, &["-i", name]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            told(&output).contains(word) && told(&output).lines().count() == 1,
            "{}",
            told(&output)
        );
    }
    assert!(told(&run(&place, &["-i", "no-such.json"])).contains("no-such.json"));
}

#[test]
fn the_programs_end_is_passed_on() {
    let place = place("exit");
    let shell = |options: &[&str], script: &str| command(&place, options, &["sh", "-c", script]).output().unwrap();
    assert_eq!(shell(&["--sys-trace"], "exit 7").status.code(), Some(7));
    assert_eq!(shell(&["--sys-trace"], "kill -9 $$").status.signal(), Some(9));
    let idle = shell(&["-o", "n"], "echo out; exit 5");
    assert_eq!((idle.status.code(), &idle.stdout[..]), (Some(5), &b"out\n"[..]));
    assert!(told(&idle).contains("No tracing options were enabled"));
    let output = command(&place, &["--sys-trace"], &["no-such-program-anywhere"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127));
    let none = command(&place, &["--sys-trace"], &[]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(told(&none).contains("No application provided"));
    assert!(files(&place).is_empty(), "{:?}", files(&place));
}

#[test]
fn what_cannot_be_done_is_told_before_the_program_starts() {
    let place = place("refused");
    // As upstream: 2 for what the command line has wrong by itself, 1 for what cannot be done.
    for (options, code, word) in [
        (&["--pmc", "SQ_WAVES"][..], 1, "rocprofiler-sdk was not found"),
        (&["-L"], 1, "counters"),
        (&["--list-metrics"], 1, "counters"),
        (&["--kfd-trace"], 2, "--kfd-trace"),
        (&["--kernel-trace", "-f", "xml"], 2, "'xml'"),
        (&["--kernel-trace", "-u", "hours"], 2, "'hours'"),
        (
            &["--stats"],
            1,
            "Fatal error: No tracing options were enabled for --stats",
        ),
        (&["--kernel-tracee"], 2, "--kernel-tracee"),
        (&["--kernel-trace", "-d", "/proc/nowhere"], 1, "/proc/nowhere"),
        (
            &["--kernel-trace", "--kernel-include-regex", "["],
            1,
            "regular expression",
        ),
    ] {
        let output = command(&place, options, &["touch", "started"]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{options:?}");
        let told = told(&output);
        assert!(told.contains(word), "{told}");
        assert!(files(&place).is_empty(), "{options:?} started the program");
    }
}

#[test]
fn options_that_change_nothing_say_why() {
    let place = place("moot");
    let options = [
        "--kernel-trace",
        "-o",
        "n",
        "--kernel-include-regex",
        "norm",
        "--rocm-root",
        "/opt/rocm",
    ];
    let output = run(&place, &options);
    assert!(output.status.success());
    for word in [
        "--kernel-include-regex: it chooses kernels for counters",
        "--rocm-root: ",
    ] {
        assert!(told(&output).contains(word), "{}", told(&output));
    }
    // As upstream, the trace holds all kernels.
    let text = std::fs::read_to_string(place.join("n_kernel_trace.csv")).unwrap();
    assert!(text.lines().skip(1).any(|row| !row.contains("norm")));
}

#[test]
fn the_name_rocprofv3_is_enough() {
    let place = place("name");
    let link = place.join("rocprofv3");
    std::os::unix::fs::symlink(OWN, &link).unwrap();
    let mut command = Command::new(&link);
    command.args(["--marker-trace", "-o", "n", "--", OWN, "__demo"]);
    let output = command
        .current_dir(&place)
        .env("ROCTOP_DEMO_WORKER", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        files(&place),
        names(&["n_agent_info.csv", "n_marker_api_trace.csv", "rocprofv3"])
    );
    let help = Command::new(&link).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("-d, --output-directory") && help.contains("(not here: "));
    let version = Command::new(&link).arg("-v").output().unwrap();
    assert_eq!(String::from_utf8(version.stdout).unwrap().lines().count(), 9);
}

#[test]
fn more_is_told_when_more_is_asked_for() {
    let place = place("level");
    let said = |level: &str| {
        let options = [
            "--kernel-trace",
            "-o",
            "n",
            "--rocm-root",
            "/opt/rocm",
            "--log-level",
            level,
        ];
        told(&run(&place, &options))
    };
    assert!(!said("error").contains("--rocm-root:") && said("warning").contains("--rocm-root:"));
    assert!(said("info").contains("config: kernel_trace = true"));
    let wrong = run(&place, &["--kernel-trace", "--log-level", "loud"]);
    assert!(
        wrong.status.code() == Some(2) && told(&wrong).contains("'loud'"),
        "{wrong:?}"
    );
    let echoed = command(&place, &["--echo"], &["touch", "started"]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&echoed.stdout),
        "command: ['touch', 'started']\n"
    );
    assert!(!place.join("started").exists());
}

#[test]
fn a_trace_calls_agents_as_they_are_asked_for() {
    let place = place("agents");
    let options = ["--kernel-trace", "--memory-copy-trace", "-f", "pftrace", "-o", "n"];
    let output = run(&place, &[&options[..], &["--agent-index", "type-relative"]].concat());
    assert!(output.status.success(), "{output:?}");
    let trace = std::fs::read(place.join("n_results.pftrace")).unwrap();
    let holds = |text: &str| trace.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(holds("COPY BYTES to GPU [0] (GPU)") && holds("GPU-0"));
    assert!(!holds("Agent [") && !holds("Agent-"));
}
