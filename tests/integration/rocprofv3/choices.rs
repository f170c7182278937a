//! What options choose and how much of it goes on when something is not available: names, agents, summaries, formats, passes.

use super::{OWN, command, files, names, place, run, told};
use crate::kit::table::Table;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn agents_are_called_as_asked_in_every_file() {
    let place = place("agents");
    for (index, called) in [
        ("relative", "Agent 1"),
        ("absolute", "Agent 1"),
        ("type-relative", "GPU 0"),
    ] {
        let options = ["-r", "-o", "n", "-f", "csv", "pftrace", "-A", index];
        assert!(run(&place, &options).status.success());
        for (file, name) in [
            ("n_kernel_trace.csv", "Agent_Id"),
            ("n_memory_copy_trace.csv", "Source_Agent_Id"),
            ("n_memory_copy_trace.csv", "Destination_Agent_Id"),
        ] {
            let table = Table::read(&place.join(file));
            let cells: BTreeSet<String> = table.column(name).into_iter().map(Into::into).collect();
            assert!(cells.contains(called), "{index}: {file} {name}: {cells:?}");
            let word = called.split(' ').next().unwrap();
            let is_other = |cell: &String| !cell.starts_with(word) && !cell.starts_with("CPU") && !cell.is_empty();
            assert!(!cells.iter().any(is_other), "{index}: {file} {name}: {cells:?}");
        }
    }
    let wrong = run(&place, &["-r", "-A", "best"]);
    assert!(wrong.status.code() == Some(2) && told(&wrong).contains("'best'"));
}

#[test]
fn a_summary_file_is_named_by_keys_and_may_have_a_directory() {
    let place = place("summary-keys");
    let options = [
        "-r",
        "-S",
        "-o",
        "n",
        "-f",
        "json",
        "--summary-output-file",
        "sub/%tag%_%rank%",
    ];
    let output = run(&place, &options);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(files(&place), names(&["n_results.json", "n_sub/roctop_0.txt"]));
    let text = std::fs::read_to_string(place.join("n_sub/roctop_0.txt")).unwrap();
    assert!(text.contains("ROCPROFV3 SUMMARY:"));
    // The streams' names are as good in capitals.
    let output = run(&place, &["-r", "-S", "-o", "n", "--summary-output-file", "STDERR"]);
    assert!(told(&output).contains("ROCPROFV3 SUMMARY:"));
    let output = run(&place, &["-r", "-S", "-o", "n", "--summary-output-file=StdOut"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("ROCPROFV3 SUMMARY:"));
    assert!(!files(&place).iter().any(|name| name.to_lowercase().contains("std")));
}

#[test]
fn what_is_too_little_for_files_is_too_little_for_a_summary() {
    let place = place("least");
    let options = ["-r", "-S", "-o", "n", "--minimum-output-data"];
    let output = run(&place, &[&options[..], &["1000000"]].concat());
    assert!(output.status.success());
    assert!(files(&place).is_empty(), "{:?}", files(&place));
    assert!(told(&output).contains("less than --minimum-output-data"));
    assert!(!told(&output).contains("ROCPROFV3 SUMMARY:"));
    let output = run(&place, &[&options[..], &["1"]].concat());
    assert!(files(&place).contains("n_kernel_trace.csv"));
    assert!(told(&output).contains("ROCPROFV3 SUMMARY:"));
}

#[test]
fn queues_are_tracks_when_asked_for() {
    let place = place("queues");
    let tracks = |options: &[&str]| {
        let options = [&["-r", "-f", "pftrace", "-o", "n"], options].concat();
        assert!(run(&place, &options).status.success());
        let trace = std::fs::read(place.join("n_results.pftrace")).unwrap();
        ["STREAM [", "] QUEUE ["].map(|word| trace.windows(word.len()).any(|part| part == word.as_bytes()))
    };
    assert_eq!(tracks(&["--group-by-queue"]), [false, true]);
    assert_eq!(tracks(&["--group-by-queue=no"]), [true, false]);
}

#[test]
fn names_may_have_keys_of_the_job_the_place_and_the_time() {
    let place = place("more-keys");
    let name = "%job%-%j-%q{WHO}-%pgid%-%psid%-%launch_time%";
    let mut command = command(
        &place,
        &["--marker-trace", "-f", "json", "-d", "%cwd%/out", "-o", name],
        &[OWN, "__demo"],
    );
    command
        .env("SLURM_JOB_ID", "77")
        .env("WHO", "/some one")
        .env("ROCPROF_TIME_FORMAT", "%Y");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // Read as text: both are 0 where the leader is in another pid namespace.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let (group, session) = (fields[2], fields[3]);
    let found = files(&place);
    let stem = format!("out/77-77-some_one-{group}-{session}-");
    let rest = found.iter().next().unwrap().strip_prefix(&stem);
    let year = rest.and_then(|rest| rest.strip_suffix("_results.json"));
    let is_year = year.is_some_and(|year| year.len() == 4 && year.parse::<u32>().is_ok_and(|year| year > 2024));
    assert!(is_year && found.len() == 1, "{found:?}");
}

#[test]
fn a_leader_in_another_pid_namespace_is_called_0() {
    let place = place("leader");
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", OWN])
        .args(["rocprofv3", "-f", "json", "-o", "%pgid%-%psid%", "--marker-trace"])
        .args(["--", OWN, "__demo"])
        .env("ROCTOP_DEMO_WORKER", "1")
        .current_dir(&place)
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    if told(&output).contains("unshare") {
        eprintln!("not run: no pid namespace may be made here: {}", told(&output));
        return;
    }
    assert!(output.status.success(), "{output:?}");
    assert_eq!(files(&place), names(&["0-0_results.json"]));
}

#[test]
fn a_format_that_is_not_written_is_left_out_of_others_and_refused_alone() {
    let place = place("otf2");
    let output = run(&place, &["--kernel-trace", "-o", "n", "-f", "json", "otf2", "csv"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(told(&output).matches("otf2").count(), 1, "{}", told(&output));
    assert!(told(&output).contains("--output-format otf2: roctop does not write it"));
    assert_eq!(
        files(&place),
        names(&["n_agent_info.csv", "n_kernel_trace.csv", "n_results.json"])
    );
    let alone = command(&place, &["--kernel-trace", "-f", "OTF2"], &["touch", "started"])
        .output()
        .unwrap();
    assert!(alone.status.code() == Some(2) && told(&alone).contains("otf2 is not available"));
    assert!(!place.join("started").exists());
}

#[test]
fn the_usual_format_is_said_once_a_job() {
    let place = place("usual");
    let lines = |options: &[&str], variables: &[(&str, &str)]| {
        let options = [&["--marker-trace", "-d", "out", "-o", "n"], options].concat();
        let mut command = command(&place, &options, &[OWN, "__demo"]);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let found = files(&place.join("out"));
        std::fs::remove_dir_all(place.join("out")).unwrap();
        let is_said = |line: &&str| line.contains("'-f rocpd' or ROCTOP_ROCPROFV3_FORMAT=rocpd");
        let count = told(&output).lines().filter(is_said).count();
        let has = |ending: &str| {
            found
                .iter()
                .any(|name| Path::new(name).extension().is_some_and(|own| own == ending))
        };
        (count, has("csv"), has("db"))
    };
    assert_eq!(lines(&[], &[]), (1, true, false));
    assert_eq!(lines(&["--log-level", "error"], &[]), (0, true, false));
    assert_eq!(lines(&["-f", "csv"], &[]), (0, true, false));
    assert_eq!(lines(&[], &[("ROCPROF_OUTPUT_FORMAT", "csv")]), (0, true, false));
    assert_eq!(lines(&[], &[("ROCTOP_ROCPROFV3_FORMAT", "rocpd")]), (0, false, true));
    let both = [("ROCTOP_ROCPROFV3_FORMAT", "rocpd"), ("ROCPROF_OUTPUT_FORMAT", "csv")];
    assert_eq!(lines(&[], &both), (0, true, false));
    for (rank, count) in [("0", 1), ("1", 0)] {
        let ranks = [("SLURM_PROCID", rank), ("SLURM_NTASKS", "2")];
        assert_eq!(lines(&[], &ranks), (count, true, false), "rank {rank}");
    }
    std::fs::write(
        place.join("in.yaml"),
        "jobs:\n - marker_trace: true\n - marker_trace: true\n",
    )
    .unwrap();
    assert_eq!(lines(&["-i", "in.yaml"], &[]), (1, true, false));
}

#[test]
fn ranks_that_a_job_does_not_have_are_no_ranks_to_profile() {
    let place = place("far-rank");
    let run = |ranks: &str| {
        let mut command = command(
            &place,
            &["--kernel-trace", "--profile-mpi-ranks", ranks],
            &["touch", "ran"],
        );
        command
            .env("SLURM_PROCID", "0")
            .env("SLURM_NTASKS", "4")
            .output()
            .unwrap()
    };
    let output = run("0,7");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(told(&output).contains("rank 7 is out of range"), "{}", told(&output));
    assert!(!place.join("ran").exists());
    assert!(run("1-3").status.success() && place.join("ran").exists());
}

#[test]
fn passes_end_with_the_first_that_the_program_fails_in() {
    let place = place("failing");
    let jobs = "jobs:\n - kernel_trace: true\n - kernel_trace: true\n - kernel_trace: true\n";
    std::fs::write(place.join("jobs.yaml"), jobs).unwrap();
    let run = |end: &str| {
        let script = format!("echo >> ran; test $(wc -l < ran) -lt 2 || {end}");
        let output = command(&place, &["-i", "jobs.yaml", "-d", "out"], &["sh", "-c", &script]).output();
        let output = output.unwrap();
        let times = std::fs::read_to_string(place.join("ran")).unwrap().lines().count();
        std::fs::remove_file(place.join("ran")).unwrap();
        assert_eq!(times, 2, "{}", told(&output));
        output
    };
    let output = run("exit 7");
    assert_eq!(output.status.code(), Some(7));
    assert!(
        told(&output).contains("exit code 7 in pass 2 of 3"),
        "{}",
        told(&output)
    );
    let output = run("kill -9 $$");
    assert_eq!(output.status.signal(), Some(9));
    assert!(told(&output).contains("signal 9 in pass 2 of 3"), "{}", told(&output));
}

#[test]
fn what_an_input_file_has_besides_options_is_passed_over_and_named() {
    let place = place("besides");
    let jobs = r#"{"jobs":[{"kernel_trace":true,"comment":"mine","output_format":["json"]}]}"#;
    std::fs::write(place.join("jobs.json"), jobs).unwrap();
    let output = run(&place, &["-i", "jobs.json", "-o", "n"]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        told(&output).contains("job 1: passed over 'comment'"),
        "{}",
        told(&output)
    );
    assert!(files(&place).contains("n_results.json"));
}

#[test]
fn no_words_at_all_are_answered_by_the_help() {
    let output = Command::new(OWN)
        .arg("rocprofv3")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success());
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(help.starts_with("Usage: roctop rocprofv3 ") && help.contains("rocpd"));
    // Options without an application are another matter.
    let output = Command::new(OWN)
        .args(["rocprofv3", "--"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("No application provided"));
}
