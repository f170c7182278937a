//! Names and places of files, and what happens when they cannot be written.

use super::{OWN, command, files, names, place, run, told};
use std::collections::BTreeSet;
use std::process::Command;

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
    assert!(!told(&output).contains("ROCPROFV3 SUMMARY"));
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
