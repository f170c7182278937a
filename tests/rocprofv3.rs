//! The command line and the files of rocprofv3, from roctop.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "rocprofv3/choices.rs"]
mod choices;
#[path = "export/table.rs"]
#[expect(dead_code, reason = "only texts of columns are looked at")]
mod table;

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const OWN: &str = env!("CARGO_BIN_EXE_roctop");

fn place(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("rocprofv3-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

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

/// All files below a directory, by their paths from there.
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
    let ids: BTreeSet<usize> = after_name.collect();
    assert_eq!(ids, (1..=rows.len()).collect());
}

#[test]
fn files_are_named_and_placed_as_asked() {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let one = place("usual");
    assert!(run(&one, &["--marker-trace", "-d", "out"]).status.success());
    let found = files(&one);
    assert_eq!(found.len(), 2, "{found:?}");
    for name in &found {
        let name = name.strip_prefix(&format!("out/{host}/")).unwrap();
        let (pid, _) = name.split_once('_').unwrap();
        assert!(pid.parse::<u32>().is_ok(), "{name}");
    }
    let other = place("keys");
    let output = run(
        &other,
        &["--marker-trace", "-d", "%tag%/r%rank%", "-o", "a/%h-%env{KEY}%"],
    );
    assert!(output.status.success());
    let stem = format!("roctop/r0/a/{host}-");
    assert_eq!(
        files(&other),
        names(&[
            &format!("{stem}_agent_info.csv"),
            &format!("{stem}_marker_api_trace.csv")
        ])
    );
}

#[test]
fn files_are_named_after_the_program_and_not_after_its_launcher() {
    let place = place("launcher");
    let script = ["sh", "-c", "ROCTOP_DEMO_WORKER=1 exec \"$0\" \"$1\"", OWN, "__demo"];
    let mut command = command(
        &place,
        &["--marker-trace", "-f", "json", "-d", "out/%tag%", "-o", "%args%"],
        &script,
    );
    let output = command.env_remove("ROCTOP_DEMO_WORKER").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(files(&place), names(&["out/roctop/demo_results.json"]));
    assert_eq!(
        std::fs::read_dir(place.join("out")).unwrap().count(),
        1,
        "no directory of the launcher's"
    );
    let json = std::fs::read_to_string(place.join("out/roctop/demo_results.json")).unwrap();
    assert!(json.contains(&format!("\"command\":[\"{OWN}\",\"__demo\"]")));
}

#[test]
fn records_stay_when_their_files_cannot_be_written() {
    let place = place("kept");
    std::fs::write(place.join("taken"), "").unwrap();
    let output = run(&place, &["--kernel-trace", "-o", "taken/n"]);
    let told = told(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let (_, after) = told.split_once("'roctop export ").expect(&told);
    let recording = after.split_once('\'').unwrap().0;
    let mut again = Command::new(OWN);
    again
        .args(["export", recording, "-o", "n", "-d", "again"])
        .current_dir(&place);
    assert!(again.output().unwrap().status.success(), "{told}");
    assert!(files(&place).contains("again/n_kernel_trace.csv"));
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
        run(&["--mpi-world-rank-variable", "NONE", "--profile-mpi-ranks", "9"]),
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
        ("pmc.txt", "# first\npmc:\n", "line 2"),
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
fn summaries_go_where_they_are_wanted() {
    let place = place("summary");
    let output = run(
        &place,
        &[
            "-r",
            "-S",
            "-D",
            "--summary-groups",
            "KERNEL.*|MEMORY.*",
            "-u",
            "msec",
            "-o",
            "n",
        ],
    );
    let text = told(&output);
    for title in [
        "    ROCPROFV3 HIP_API SUMMARY:",
        "    ROCPROFV3 KERNEL_DISPATCH + MEMORY_COPY + MEMORY_ALLOCATION SUMMARY:",
        "    ROCPROFV3 SUMMARY:",
        "DURATION (msec)",
    ] {
        assert!(text.contains(title), "{title}");
    }
    let output = run(&place, &["-r", "-S", "--summary-output-file", "sums", "-o", "n"]);
    assert!(!told(&output).contains("ROCPROFV3"));
    let text = std::fs::read_to_string(place.join("n_sums.txt")).unwrap();
    assert!(text.starts_with("\nROCPROFV3 SUMMARY:\n\n|"));
    let widths: BTreeSet<usize> = text
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.chars().count())
        .collect();
    assert_eq!(widths.len(), 1);
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

/// Calls ROC-TX as a program that is linked to it does.
const REGIONS: &str = "
#include <stdint.h>
void roctxMarkA(const char*) __attribute__((weak));
int roctxGetThreadId(uint64_t*) __attribute__((weak));
int roctxProfilerResume(uint64_t) __attribute__((weak));
int roctxProfilerPause(uint64_t) __attribute__((weak));
int main(void) {
  uint64_t thread;
  if (!roctxMarkA || !roctxProfilerResume || !roctxProfilerPause || !roctxGetThreadId) return 3;
  roctxMarkA(\"before\");
  roctxGetThreadId(&thread);
  roctxProfilerResume(thread);
  roctxMarkA(\"inside\");
  roctxProfilerPause(thread);
  roctxMarkA(\"after\");
  return 0;
}";

/// Domain, function and id of each marker row.
fn markers(place: &Path, options: &[&str]) -> Vec<(String, String, u64)> {
    let output = command(place, options, &["./regions"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(place.join("n_marker_api_trace.csv")).unwrap();
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').map(|cell| cell.trim_matches('"')).collect();
        (cells[0].to_owned(), cells[1].to_owned(), cells[4].parse().unwrap())
    });
    rows.collect()
}

/// Builds such a program as `regions`; false where there is no C compiler.
fn build_regions(place: &Path, source: &str) -> bool {
    std::fs::write(place.join("regions.c"), source).unwrap();
    let built = Command::new("cc")
        .args(["-O1", "-o", "regions", "regions.c"])
        .current_dir(place)
        .status();
    let is_built = built.is_ok_and(|status| status.success());
    if !is_built {
        println!("skipped: needs a C compiler");
    }
    is_built
}

fn functions(rows: &[(String, String, u64)]) -> Vec<String> {
    rows.iter().map(|row| row.1.clone()).collect()
}

#[test]
fn regions_inside_of_others_count_when_asked_to() {
    const NESTED: &str = "
#include <stdint.h>
void roctxMarkA(const char*) __attribute__((weak));
int roctxProfilerResume(uint64_t) __attribute__((weak));
int roctxProfilerPause(uint64_t) __attribute__((weak));
int main(void) {
  roctxProfilerPause(0);
  roctxMarkA(\"before\");
  roctxProfilerResume(0);
  roctxMarkA(\"outer\");
  roctxProfilerResume(0);
  roctxMarkA(\"inner\");
  roctxProfilerPause(0);
  roctxMarkA(\"outer again\");
  roctxProfilerPause(0);
  roctxMarkA(\"after\");
  return 0;
}";
    let place = place("nested");
    if !build_regions(&place, NESTED) {
        return;
    }
    let marks = |options: &[&str]| -> Vec<String> {
        let rows = markers(&place, &[&["--marker-trace", "-o", "n"], options].concat());
        let names = functions(&rows).into_iter();
        names.filter(|name| !name.starts_with("roctx")).collect()
    };
    assert_eq!(marks(&["--selected-regions"]), ["outer", "inner"]);
    let counted = marks(&["--selected-regions", "--selected-regions-ref-count"]);
    assert_eq!(counted, ["outer", "inner", "outer again"]);
    // What runs from the beginning is in a region already.
    let counted = marks(&["--selected-regions-ref-count"]);
    assert_eq!(counted, ["outer", "inner", "outer again"]);
}

#[test]
fn selected_regions_are_all_that_is_recorded() {
    let place = place("regions");
    if !build_regions(&place, REGIONS) {
        return;
    }
    let selected = markers(&place, &["--marker-trace", "--selected-regions", "-o", "n"]);
    assert_eq!(
        functions(&selected),
        ["roctxProfilerResume", "inside", "roctxProfilerPause"]
    );
    // Without it everything is, up to the pause; calls that are neither marks nor ranges have rows and numbers too.
    let all = markers(&place, &["--marker-trace", "-o", "n"]);
    let names = [
        "before",
        "roctxGetThreadId",
        "roctxProfilerResume",
        "inside",
        "roctxProfilerPause",
    ];
    assert_eq!(functions(&all), names);
    assert_eq!(all.iter().map(|row| row.2).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let domains: Vec<&str> = all.iter().map(|row| row.0.as_str()).collect();
    let (core, control) = ("MARKER_CORE_RANGE_API", "MARKER_CONTROL_API");
    assert_eq!(domains, [core, core, control, core, control]);
}

#[test]
fn the_configuration_and_the_periods_are_written_when_asked_for() {
    let place = place("config");
    let options = ["--kernel-trace", "-o", "n", "--output-config", "-S", "-P", "0:60:1"];
    let output = command(&place, &options, &[OWN, "__demo"])
        .env("ROCPROF_COLLECTION_PERIOD_TESTING", "true")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(place.join("n_config.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let config = &document["rocprofiler-sdk-tool"][0]["metadata"]["config"];
    assert_eq!(
        (&config["kernel_trace"], &config["summary"]),
        (&true.into(), &true.into())
    );
    assert_eq!(
        (&config["csv_output"], &config["raw_output_file"]),
        (&true.into(), &"n".into())
    );
    // Also what was not set, by the names of upstream's tool.
    for name in ["kernel_trace", "demangle", "enable_signal_handlers"] {
        assert_eq!(config[name], true, "{name}");
    }
    for name in [
        "hsa_core_api_trace",
        "hip_runtime_api_trace",
        "marker_api_trace",
        "memory_copy_trace",
        "counter_collection",
        "truncate",
        "selected_regions",
        "advanced_thread_trace",
    ] {
        assert_eq!(config[name], false, "{name}");
    }
    let periods = std::fs::read_to_string(place.join("n_collection_periods.log")).unwrap();
    let lines: Vec<Vec<&str>> = periods.lines().map(|line| line.split(':').collect()).collect();
    let labels: Vec<&str> = lines.iter().map(|line| line[0]).collect();
    assert_eq!(labels, ["delay", "start", "duration", "stop", "--"]);
    let number = |text: &str| text.parse::<u64>().unwrap();
    assert_eq!(number(lines[2][2]) - number(lines[2][1]), 60_000_000_000);
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

/// Gives names by ROC-TX.
const NAMES: &str = "
int roctxNameOsThread(const char*) __attribute__((weak));
int roctxNameHipDevice(const char*, int) __attribute__((weak));
int roctxNameHsaAgent(const char*, const void*) __attribute__((weak));
int roctxNameHipStream(const char*, const void*) __attribute__((weak));
int main(void) {
  if (!roctxNameOsThread || !roctxNameHipDevice || !roctxNameHsaAgent || !roctxNameHipStream) return 3;
  roctxNameOsThread(\"reader\");
  roctxNameHipDevice(\"first\", 0);
  roctxNameHsaAgent(\"none\", 0);
  roctxNameHipStream(\"usual\", 0);
  return 0;
}";

#[test]
fn calls_that_give_names_have_rows_of_their_own_domain() {
    let place = place("names");
    std::fs::write(place.join("names.c"), NAMES).unwrap();
    let built = Command::new("cc")
        .args(["-O1", "-o", "regions", "names.c"])
        .current_dir(&place)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: needs a C compiler");
        return;
    }
    let rows = markers(&place, &["--marker-trace", "-f", "csv", "json", "-o", "n"]);
    let named = |function: &str, id| ("MARKER_NAME_API".to_owned(), function.to_owned(), id);
    assert_eq!(
        rows,
        [
            named("roctxNameOsThread", 1),
            named("roctxNameHipDevice", 2),
            named("roctxNameHsaAgent", 3),
            named("roctxNameHipStream", 4)
        ]
    );
    let text = std::fs::read_to_string(place.join("n_results.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let records = document["rocprofiler-sdk-tool"][0]["buffer_records"]["marker_api"].as_array();
    let numbers = records
        .unwrap()
        .iter()
        .map(|record| (&record["kind"], &record["operation"]));
    let numbers: Vec<_> = numbers
        .map(|(kind, operation)| (kind.as_u64().unwrap(), operation.as_u64().unwrap()))
        .collect();
    assert_eq!(numbers, [(9, 0), (9, 2), (9, 1), (9, 3)]);
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
