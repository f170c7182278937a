//! `roctop ci`: each exit code, the formats, baselines, and a bisection.

mod real;

use crate::export::libraries::program_of_mpi;
use crate::kit::demo::roctop;
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use crate::kit::rig::{Rig, rig};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Recordings of as many runs, that take longer by a factor.
fn runs(place: &Path, name: &str, count: usize, made: &Made) -> Vec<String> {
    let path = |number: usize| place.join(format!("{name}-{number}"));
    (0..count)
        .map(|number| {
            make(&path(number), made);
            path(number).display().to_string()
        })
        .collect()
}

/// Exit code, standard output and standard error.
fn ended(words: &[&str]) -> (Option<i32>, String, String) {
    let output = roctop(words);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// `roctop ci compare` of these sides.
fn compared(options: &[&str], before: &[String], after: &[String]) -> (Option<i32>, String, String) {
    let mut words = vec!["ci", "compare"];
    words.extend(options);
    words.extend(before.iter().map(String::as_str));
    words.push("--");
    words.extend(after.iter().map(String::as_str));
    ended(&words)
}

fn usual() -> Made {
    Made {
        records: 2000,
        ..Made::default()
    }
}

fn slow() -> Made {
    Made { slowness: 2, ..usual() }
}

#[test]
fn slower_recordings_end_with_3_and_equal_ones_with_0() {
    let place = place("ci-compare");
    let (before, after) = (runs(&place, "a", 5, &usual()), runs(&place, "b", 5, &slow()));
    let (code, text, _) = compared(&[], &before, &before);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.starts_with("nothing is slower: 5 runs before, 5 runs after\n"),
        "{text}"
    );
    let (code, text, _) = compared(&[], &before, &after);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("slower by 100.0 % (±0.0 %) between runs"), "{text}");
    for kind in ["kernel", "copy", "wall"] {
        let mut rows = text.lines().filter(|line| line.trim_start().starts_with("slower "));
        assert!(rows.any(|line| line.contains(&format!(" {kind} "))), "{kind}\n{text}");
    }
    let (_, json, _) = compared(&["--format", "json"], &before, &after);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["is_worse"], true);
    let (_, md, _) = compared(&["--format", "md"], &before, &after);
    assert!(md.contains("| slower | kernel | `"), "{md}");
    let (_, junit, _) = compared(&["--format", "junit"], &before, &after);
    assert!(junit.contains("<failure message=\"slower by 100.0 %"), "{junit}");
}

#[test]
fn conditions_alone_decide_where_there_are_some() {
    let place = place("ci-conditions");
    let (before, after) = (runs(&place, "a", 5, &usual()), runs(&place, "b", 5, &slow()));
    for (condition, code) in [
        ("avg(gemm) > +3%", 3),
        ("avg(gemm) > +120%", 0),
        ("avg(gemm) > 1us", 3),
        ("avg(gemm) > 1s", 0),
        ("wall > +3%", 3),
        ("calls(gemm) > +0%", 0),
        ("avg(gemm) < -3%", 0),
        ("lost > 0", 0),
        ("p50(gemm) > +3%", 3),
        ("p50(gemm) > 1us", 3),
        ("p95(gemm) > +3%", 3),
        ("p95(gemm) > 1us", 3),
        ("p99(gemm) > +3%", 3),
        ("p99(gemm) > 1us", 3),
        ("min(gemm) > +3%", 3),
        ("min(gemm) > 1us", 3),
        ("max(gemm) > +3%", 3),
        ("max(gemm) > 1us", 3),
        ("total(gemm) > +3%", 3),
        ("total(gemm) > 1us", 3),
        ("calls(gemm) > 10", 3),
        ("bytes(H2D) > 1000", 3),
        ("errors(hipLaunchKernel) >= 0", 3),
        ("errors(hipLaunchKernel) > 0", 0),
        ("step > +3%", 3),
        ("step > +120%", 0),
        ("step > 1us", 3),
        ("step > 1s", 0),
        ("wall > 1us", 3),
    ] {
        let (found, text, _) = compared(&["--fail-if", condition], &before, &after);
        assert_eq!(found, Some(code), "{condition}\n{text}");
        assert_eq!(text.contains(&format!("failed: {condition}")), code == 3, "{text}");
    }
    let more = Made {
        records: 4000,
        ..usual()
    };
    let more = runs(&place, "more", 5, &more);
    for condition in ["calls(gemm) > +3%", "bytes(H2D) > +3%", "calls(hipMemcpyAsync) > +3%"] {
        let (found, text, _) = compared(&["--fail-if", condition], &before, &more);
        assert_eq!(found, Some(3), "{condition}\n{text}");
    }
    // Made recordings have no code object.
    let (code, text, _) = compared(&["--fail-if", "spills(gemm) > 0"], &before, &after);
    assert_eq!(code, Some(125), "{text}");
    assert!(text.contains("was not read"), "{text}");
}

#[test]
fn wrong_command_lines_end_with_2() {
    for (words, word) in [
        (&["ci"][..], "Usage"),
        (&["ci", "run"], "required"),
        (&["ci", "compare", "a"], "required"),
        (&["ci", "run", "--fail-if", "avg(gemm) >", "--", "true"], "--fail-if"),
        (&["ci", "run", "--fail-if", "avg(gemm) > +3%", "--", "true"], "baseline"),
        (
            &["ci", "run", "--fail-if", "skew(x) > 1ms", "--", "true"],
            "roctop summary",
        ),
        (&["ci", "run", "--format", "json", "--", "true"], "baseline"),
        (&["ci", "run", "-n", "0", "--", "true"], "'0'"),
        (&["ci", "run", "--before", "a 'b", "--", "true"], "no command"),
        (
            &["ci", "run", "--before", "a", "--baseline", "b", "--", "true"],
            "cannot be used with",
        ),
        (&["summary", "nowhere", "--fail-if", "avg(gemm) > +3%"], "baseline"),
    ] {
        let (code, _, said) = ended(words);
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(said.contains(word), "{words:?}: {said}");
    }
}

#[test]
fn without_a_verdict_it_ends_with_125() {
    let place = place("ci-none");
    let before = runs(&place, "a", 5, &usual());
    let (code, text, _) = compared(&[], &before, &before[..4]);
    assert_eq!(code, Some(125));
    assert!(text.contains("5 and 4 runs: a verdict needs 5 a side"), "{text}");
    let lost = Made { lost: 7, ..usual() };
    let (code, text, _) = compared(&[], &before, &runs(&place, "lost", 5, &lost));
    assert_eq!(code, Some(125));
    assert!(text.contains("records were lost: 7"), "{text}");
    let (code, text, _) = compared(&["--format", "junit"], &before, &before[..4]);
    assert_eq!(code, Some(125));
    assert!(text.contains("<error message"), "{text}");
    let hostile = place.join("hostile.roctopci");
    for bytes in [
        &b"\0\xff"[..],
        b"{\"roctopci\":9}",
        b"{\"roctopci\":1,\"environment\":{},\"runs\":[7]}",
    ] {
        std::fs::write(&hostile, bytes).unwrap();
        let (code, _, said) = compared(&[], &[hostile.display().to_string()], &before);
        assert_eq!(code, Some(125));
        assert!(said.contains("baseline"), "{said}");
    }
    for (program, word) in [
        (&["false"][..], "run 1: the program failed with exit code 1"),
        (
            &["sh", "-c", "kill -9 $$"],
            "run 1: the program did not end by itself: ",
        ),
        (&["true"], "run 1: nothing was recorded"),
    ] {
        let words = [&["ci", "run", "--"][..], program].concat();
        let (code, text, said) = ended(&words);
        assert_eq!(code, Some(125), "{words:?}");
        assert!(text.contains(word), "{words:?}: {text}{said}");
    }
    let (code, _, said) = ended(&["ci", "run", "--", "./no-such-program"]);
    assert_eq!(code, Some(125), "{said}");
    assert_eq!(ended(&["ci", "compare", "nowhere", "--", "nowhere"]).0, Some(125));
    let (code, text, _) = ended(&["ci", "run", "--for", "0s", "true"]);
    assert_eq!(code, Some(125), "{text}");
    assert!(text.contains("over before the first run"), "{text}");
}

/// roctop on the emulated GPU; its exit code and both outputs.
fn on_the_rig(rig: &Rig, place: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    command.args(words).env("ROCTOP_CONFIG", "/dev/null").current_dir(place);
    command.env("LD_PRELOAD", rig.emulated_gpu()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// A program that launches each kernel as often as said.
fn bench(place: &Path, app: &Path, often: u32) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = place.join("bench");
    std::fs::write(&path, format!("#!/bin/sh\nexec {} {often}\n", app.display())).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_program_is_compared_with_its_baseline() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("ci-run");
    bench(&place, &rig.app("matrix_transpose"), 1);
    let (code, text) = on_the_rig(
        rig,
        &place,
        &["ci", "run", "-n", "5", "--save", "main.roctopci", "./bench"],
    );
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("transpose_naive") && text.contains("run 5 of 5"),
        "{text}"
    );
    let against = |condition: &str, options: &[&str]| {
        let mut words = vec![
            "ci",
            "run",
            "-n",
            "5",
            "--baseline",
            "main.roctopci",
            "--fail-if",
            condition,
        ];
        words.extend(options);
        words.extend(["--", "./bench"]);
        on_the_rig(rig, &place, &words)
    };
    let (code, text) = against("calls(transpose) > +0%", &[]);
    assert_eq!(code, Some(0), "{text}");
    bench(&place, &rig.app("matrix_transpose"), 2);
    let (code, text) = against("calls(transpose) > +0%", &["-o", "kept"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("transpose_naive") && text.contains("+100.0 %"), "{text}");
    assert!(place.join("kept/run-5/roctop.json").exists(), "the recordings are kept");
    let (code, text) = on_the_rig(
        rig,
        &place,
        &["ci", "run", "--for", "0s", "--baseline", "main.roctopci", "./bench"],
    );
    assert_eq!(code, Some(125), "{text}");
    assert!(text.contains("over before the first run"), "{text}");
}

#[test]
fn conditions_on_code_and_on_mpi_hold() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("ci-code");
    // A process with MPI and one with a GPU.
    program_of_mpi(&place);
    let script = format!("RANK=0 WORLD_SIZE=1 ./app && exec {}", rig.app("spills").display());
    let ran = |options: &[&str]| {
        let words = [&["ci", "run", "-n", "5"], options, &["--", "sh", "-c", &script]];
        on_the_rig(rig, &place, &words.concat())
    };
    let (code, text) = ran(&["--save", "main.roctopci", "-o", "kept"]);
    assert_eq!(code, Some(0), "{text}");
    let before = [format!("{}/main.roctopci", place.display())];
    for (condition, code) in [
        ("spills(spilling) > 0", 3),
        ("spills(fitting) > 0", 0),
        ("occ(fitting) < 101%", 3),
        ("occ(fitting) > +0%", 0),
        ("calls(MPI_Send) > 4", 3),
        ("avg(MPI_Allreduce) > 0ns", 3),
    ] {
        let (found, text, said) = compared(&["--fail-if", condition], &before, &before);
        assert_eq!(found, Some(code), "{condition}\n{text}{said}");
    }
    // The rows are those of the summary.
    let (_, json, _) = compared(&["--format", "json"], &before, &before);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let summaries: Vec<serde_json::Value> = (1..=5)
        .map(|run| {
            let path = place.join(format!("kept/run-{run}"));
            serde_json::from_str(&ended(&["summary", path.to_str().unwrap(), "--format", "json"]).1).unwrap()
        })
        .collect();
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[2]
    };
    let row = |name: &str| {
        let mut rows = json["rows"].as_array().unwrap().iter();
        let found = rows.find(|row| row["kind"] == "mpi" && row["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {json:#}"))["before"]["median"]
            .as_f64()
            .unwrap()
    };
    let mean = |run: &serde_json::Value| {
        let mut rows = run["api"].as_array().unwrap().iter();
        let found = rows.find(|row| row["name"] == "MPI_Send").unwrap();
        found["total_ns"].as_f64().unwrap() / found["calls"].as_f64().unwrap()
    };
    let is_near = |a: f64, b: f64| (a - b).abs() < 1e-6 * b;
    assert!(is_near(row("MPI_Send"), median(summaries.iter().map(mean).collect())));
    let time = |run: &serde_json::Value| run["mpi"][0]["time_ns"].as_f64().unwrap();
    assert!(is_near(
        row("rank 0, all"),
        median(summaries.iter().map(time).collect())
    ));
}

#[test]
fn two_programs_run_in_turns() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("ci-turns");
    let app = rig.app("matrix_transpose");
    // Each run writes which of both it was.
    let old = format!("sh -c 'echo old >> turns; exec {} 1'", app.display());
    let new = format!("echo new >> turns; exec {} 2", app.display());
    let turns = |options: &[&str]| {
        let _ = std::fs::remove_file(place.join("turns"));
        let words = [
            &[
                "ci",
                "run",
                "-n",
                "5",
                "--before",
                &old,
                "--fail-if",
                "calls(transpose) > +0%",
            ][..],
            options,
            &["--", "sh", "-c", &new],
        ];
        let (code, text) = on_the_rig(rig, &place, &words.concat());
        (
            code,
            text,
            std::fs::read_to_string(place.join("turns")).unwrap_or_default(),
        )
    };
    let (code, text, order) = turns(&["-o", "kept"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("5 runs before, 5 runs after"), "{text}");
    assert!(text.contains("transpose_naive") && text.contains("+100.0 %"), "{text}");
    assert_eq!(
        order.split_whitespace().collect::<Vec<_>>(),
        ["old", "new", "new", "old", "old", "new", "new", "old", "old", "new"]
    );
    assert!(place.join("kept/before-5/roctop.json").exists() && place.join("kept/run-5/roctop.json").exists());
    let (code, text, order) = turns(&["--for", "0s"]);
    assert_eq!((code, order.as_str()), (Some(125), ""), "{text}");
    let words = ["ci", "run", "--before", "false", "--", "sh", "-c", &new];
    let (code, text) = on_the_rig(rig, &place, &words);
    assert_eq!(code, Some(125), "{text}");
    assert!(text.contains("before 1: the program failed with exit code 1"), "{text}");
}

#[test]
fn a_bisection_finds_the_first_slower_commit() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("ci-bisect");
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=me", "-c", "user.email=me@example.com"])
            .args(words);
        command
            .current_dir(&place)
            .env("LD_PRELOAD", rig.emulated_gpu())
            .stdin(Stdio::null());
        command.env("ROCTOP_CONFIG", "/dev/null");
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    assert!(git(&["init", "-q"]).0);
    // The third commit does not run, the fourth launches more.
    for (number, often) in [1, 1, 0, 2, 2].into_iter().enumerate() {
        if often == 0 {
            std::fs::write(place.join("bench"), "#!/bin/sh\nexit 1\n").unwrap();
        } else {
            bench(&place, &rig.app("matrix_transpose"), often);
        }
        std::fs::write(place.join("number"), number.to_string()).unwrap();
        assert!(git(&["add", "bench", "number"]).0);
        assert!(git(&["commit", "-q", "-m", &format!("commit {number}")]).0);
        if number == 0 {
            let (code, text) = on_the_rig(
                rig,
                &place,
                &["ci", "run", "-n", "5", "--save", "good.roctopci", "./bench"],
            );
            assert_eq!(code, Some(0), "{text}");
        }
    }
    assert!(git(&["bisect", "start", "HEAD", "HEAD~4"]).0);
    let options = "-n 5 --baseline good.roctopci --fail-if 'calls(transpose) > +0%'";
    let script = format!(
        "sh -n bench || exit 125; {} ci run {options} -- ./bench",
        env!("CARGO_BIN_EXE_roctop")
    );
    let (_, text) = git(&["bisect", "run", "sh", "-c", &script]);
    // The commit that does not run is skipped: it or the next is the first.
    assert!(text.contains("first bad commit could be any of"), "{text}");
    let (_, log) = git(&["bisect", "log"]);
    assert!(log.contains("skip: ") && log.contains("bad: "), "{log}");
}

#[test]
fn a_run_that_is_asked_to_end_gives_no_verdict() {
    let place = place("ci-asked");
    let script = "trap 'exit 0' TERM; touch started; while :; do sleep 0.05; done";
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    command.args(["ci", "run", "-n", "5", "--save", "saved", "--", "sh", "-c", script]);
    command.env("ROCTOP_CONFIG", "/dev/null").current_dir(&place);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let began = Instant::now();
    while !place.join("started").exists() {
        assert!(began.elapsed() < Duration::from_mins(1));
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("run 1: a signal asked it to end"), "{said}");
    assert!(!place.join("saved").exists());
}
