//! `roctop ask` from outside: recordings against the emulated GPU's log, running sessions over the socket.

use crate::kit::demo::{self, roctop};
use crate::kit::directory::place;
use crate::kit::records::{parquet_number, parquet_rows, parquet_text};
use crate::kit::rig::{Recorded, Rig, rig};
use crate::kit::running::Running;
use crate::kit::work::{Work, wait_for_bytes};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Asks a running roctop until an answer passes a test.
fn ask_until(running: &Running, question: &str, passes: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let output = roctop(&["ask", &running.session(), question, "--format", "json"]);
        if output.status.success() {
            let answer = json(&output);
            if passes(&answer) {
                return answer;
            }
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{question}: {output:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The answer of a recording.
fn asked(recording: &Path, question: &str) -> Value {
    json(&roctop(&[
        "ask",
        recording.to_str().unwrap(),
        question,
        "--format",
        "json",
    ]))
}

fn rows(answer: &Value) -> &Vec<Value> {
    answer["rows"].as_array().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Kernels by mangled name as the emulated GPU logged them: how many, and their time.
fn logged(recorded: &Recorded) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let dispatches = recorded
        .truth
        .iter()
        .filter(|row| row.kind == "dispatch" && !row.name.is_empty());
    for row in dispatches {
        let sum = sums.entry(roctop::kernel_name::demangle(&row.name)).or_default();
        *sum = (sum.0 + 1, sum.1 + (row.end - row.begin));
    }
    sums
}

#[test]
fn kernels_and_copies_are_those_of_the_log() {
    let Some(rig) = rig() else { return };
    for (name, words) in [
        ("ask-transpose", &["matrix_transpose"][..]),
        ("ask-streams", &["streams"][..]),
    ] {
        let recorded = rig.record(name, words);
        let recording = recorded.place.join("rec");
        let truth = logged(&recorded);
        let answer = asked(&recording, "top kernels limit 10000");
        assert!(!truth.is_empty() && rows(&answer).len() >= truth.len());
        for (kernel, (count, nanos)) in &truth {
            let row = rows(&answer)
                .iter()
                .find(|row| row["values"]["Kernel_Name"] == kernel.as_str());
            let values = &row.unwrap_or_else(|| panic!("{name}: no {kernel} in {answer:#}"))["values"];
            assert_eq!(values["Calls"], *count, "{name}: {kernel}");
            let total = values["Total_ns"].as_u64().unwrap();
            // Each time may differ by the clocks' step.
            assert!(
                total.abs_diff(*nanos) <= 1000 * count,
                "{name}: {kernel}: {total} {nanos}"
            );
        }
        // The longest launch of the log is the slowest of the answer.
        let longest = recorded
            .truth
            .iter()
            .filter(|row| row.kind == "dispatch" && !row.name.is_empty());
        let longest = longest.map(|row| row.end - row.begin).max().unwrap();
        let slowest = asked(&recording, "slowest limit 1");
        let nanos = rows(&slowest)[0]["values"]["Duration_ns"].as_u64().unwrap();
        assert!(nanos.abs_diff(longest) <= 1000, "{name}: {nanos} {longest}");
        assert!(rows(&slowest)[0]["id"].as_str().unwrap().starts_with("launch:"));
        // Two halves of the run have all its launches, each once.
        let total = |question: &str| -> u64 {
            let answer = asked(&recording, question);
            rows(&answer)
                .iter()
                .map(|row| row["values"]["Calls"].as_u64().unwrap())
                .sum()
        };
        let whole = &answer["window"];
        let length = whole["end_ns"].as_u64().unwrap() - whole["origin_ns"].as_u64().unwrap();
        let middle = length / 2;
        let halves = total(&format!("top kernels in ..{middle}ns limit 10000"))
            + total(&format!("top kernels in {middle}ns.. limit 10000"));
        assert_eq!(halves, total("top kernels limit 10000"), "{name}");
    }
}

/// Of every kernel that ran, also of the run-time's own, which it compiles into memory.
#[test]
fn what_code_objects_say_of_kernels_is_answered() {
    let Some(rig) = rig() else { return };
    let recorded = rig.record("ask-code", &["matrix_transpose"]);
    let recording = recorded.place.join("rec");
    let answer = asked(&recording, "top kernels limit 10000");
    assert!(!rows(&answer).is_empty());
    for row in rows(&answer) {
        let values = &row["values"];
        assert_eq!(values["Spills"], 0, "{values:#}");
        let share = |name: &str| values[name].as_f64().unwrap();
        assert!(
            share("Occupancy_Share") > 0.0 && share("Occupancy_Share") <= 1.0,
            "{values:#}"
        );
        assert!(share("Fill_Share") > 0.0 && share("Fill_Share") <= 1.0, "{values:#}");
        assert!(values["Limit"].is_string(), "{values:#}");
    }
    let out = recorded.place.join("exported");
    let exported = roctop(&[
        "export",
        recording.to_str().unwrap(),
        "--format",
        "parquet,json",
        "-d",
        out.to_str().unwrap(),
    ]);
    assert!(exported.status.success(), "{exported:?}");
    files_have_what_code_objects_say(&out, rows(&answer));
    let count = |question: &str| rows(&asked(&recording, question)).len();
    assert_eq!(count("top kernels where spills>0"), 0);
    assert_eq!(count("top kernels where occ<=100% transpose"), 2);
    let check = |threshold: &str| {
        let output = roctop(&["summary", recording.to_str().unwrap(), "--fail-if", threshold]);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert_eq!(check("spills(transpose) > 0").0, Some(0));
    let (code, text) = check("occ(transpose) > 0%");
    assert!(code != Some(0) && text.contains("transpose_tiled"), "{code:?} {text}");
    assert!(check("spills(nothing) > 0").1.contains("no kernel"));
}

/// Compares the dispatches of exports with the answer's kernels.
fn files_have_what_code_objects_say(out: &Path, kernels: &[Value]) {
    let mut files = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path());
    let document = files.find(|path| path.extension().is_some_and(|ending| ending == "json"));
    let document: Value = serde_json::from_slice(&fs::read(document.unwrap()).unwrap()).unwrap();
    let document = &document["rocprofiler-sdk-tool"][0];
    let symbols = document["kernel_symbols"].as_array().unwrap();
    let dispatches = document["buffer_records"]["kernel_dispatch"].as_array().unwrap();
    let table = parquet_rows(out, "kernel_dispatch");
    assert_eq!(table.len(), dispatches.len());
    for row in &table {
        let number = |name: &str| parquet_number(row, name);
        let name = parquet_text(row, "kernel");
        let values = kernels
            .iter()
            .map(|row| &row["values"])
            .find(|values| values["Kernel_Name"] == name);
        let values = values.unwrap_or_else(|| panic!("{name}: {kernels:#?}"));
        assert_eq!(number("vgpr_spills") + number("sgpr_spills"), values["Spills"]);
        let share = number("waves_allowed") as f64 / number("wave_slots") as f64;
        assert!(
            (share - values["Occupancy_Share"].as_f64().unwrap()).abs() < 1e-6,
            "{values:#}"
        );
        let fill = number("work_groups") as f64 / (number("rounds") * number("work_groups_at_once")) as f64;
        assert!(
            (fill - values["Fill_Share"].as_f64().unwrap()).abs() < 1e-6,
            "{values:#}"
        );
        assert_eq!(parquet_text(row, "limiter"), values["Limit"].as_str().unwrap());
        let id = number("dispatch_id");
        let same = dispatches
            .iter()
            .find(|one| one["dispatch_info"]["dispatch_id"] == id)
            .unwrap();
        for field in [
            "waves_allowed",
            "wave_slots",
            "work_groups",
            "work_groups_at_once",
            "rounds",
        ] {
            assert_eq!(same["occupancy"][field], number(field), "{same:#}");
        }
        let symbol = &symbols[same["dispatch_info"]["kernel_id"].as_u64().unwrap() as usize];
        assert_eq!(symbol["vgpr_spill_count"], number("vgpr_spills"), "{symbol:#}");
    }
}

#[test]
fn a_summary_and_an_answer_have_the_same_numbers() {
    let recording = demo::recording();
    let summary = json(&roctop(&["summary", recording.to_str().unwrap(), "--format", "json"]));
    let answer = asked(recording, "top kernels limit 10000");
    let of_summary: BTreeMap<&str, (u64, u64)> = summary["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let number = |name: &str| row[name].as_u64().unwrap();
            (row["name"].as_str().unwrap(), (number("calls"), number("total_ns")))
        })
        .collect();
    let of_answer: BTreeMap<&str, (u64, u64)> = rows(&answer)
        .iter()
        .map(|row| {
            let number = |name: &str| row["values"][name].as_u64().unwrap();
            (
                row["values"]["Kernel_Name"].as_str().unwrap(),
                (number("Calls"), number("Total_ns")),
            )
        })
        .collect();
    assert!(of_summary.len() > 1);
    assert_eq!(of_answer, of_summary);
    let status = asked(recording, "status");
    assert_eq!(
        rows(&status)[0]["values"]["Dispatches"],
        summary["totals"]["dispatches"]
    );
    assert_eq!(rows(&status)[0]["values"]["Calls"], summary["totals"]["api_calls"]);
}

#[test]
fn exit_codes_say_whether_it_was_a_question() {
    let recording = demo::recording().to_str().unwrap();
    let empty = roctop(&["ask", recording, "top kernels where no_such_kernel"]);
    assert_eq!(empty.status.code(), Some(0), "{empty:?}");
    assert!(String::from_utf8_lossy(&empty.stdout).contains("no rows"));
    for (question, part) in [
        ("top kernel", "did you mean kernels? (column 5 of 'top kernel')"),
        ("top kernels where dru>3", "did you mean dur?"),
        ("top kernels by colour", "(column 16 of"),
        ("steps step 1000000", "known"),
    ] {
        let wrong = roctop(&["ask", recording, question]);
        assert_eq!(wrong.status.code(), Some(2), "{question}: {wrong:?}");
        assert!(
            text(&wrong).starts_with("roctop: ") && text(&wrong).contains(part),
            "{question}: {}",
            text(&wrong)
        );
    }
    let gone = roctop(&["ask", "no-such-place", "status"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(text(&gone).contains("no recording and no session"), "{}", text(&gone));
}

#[test]
fn a_running_session_answers() {
    let running = Running::start(&["demo", "--no-ui"]);
    let dispatches = |answer: &Value| {
        rows(answer)
            .first()
            .and_then(|row| row["values"]["Dispatches"].as_u64())
            .unwrap_or(0)
    };
    ask_until(&running, "status", |answer| dispatches(answer) > 1000);
    let kernels = ask_until(&running, "top kernels in last 1s", |answer| rows(answer).len() > 2);
    assert_eq!(
        (&kernels["source"]["kind"], &kernels["source"]["running"]),
        (&"session".into(), &true.into())
    );
    let window = &kernels["window"];
    assert!(window["end_ns"].as_u64().unwrap() - window["begin_ns"].as_u64().unwrap() <= 2_000_000_000);
    for question in ["top kernels last 10s", "gaps", "slowest calls", "hang", "compare"] {
        let output = roctop(&["ask", &running.session(), question]);
        assert!(output.status.success(), "{question}: {output:?}");
    }
    let wrong = roctop(&["ask", &running.session(), "top kernels by colour"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    // A line for each second.
    let mut follower = Command::new(env!("CARGO_BIN_EXE_roctop"))
        .args(["ask", &running.session(), "status", "--follow", "--format", "json"])
        .env("ROCTOP_CONFIG", "/dev/null")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: Vec<String> = BufReader::new(follower.stdout.take().unwrap())
        .lines()
        .take(3)
        .map(Result::unwrap)
        .collect();
    let counts: Vec<u64> = lines
        .iter()
        .map(|line| dispatches(&serde_json::from_str(line).unwrap()))
        .collect();
    let _ = follower.kill();
    let _ = follower.wait();
    assert!(counts.len() == 3 && counts[0] < counts[2], "{counts:?}");
}

/// The time of the fastest answer; it takes the start of a process, too.
#[test]
#[ignore = "time: .ci/matrix"]
fn timed_answers_come_within_two_seconds() {
    let running = Running::start(&["demo", "--no-ui"]);
    ask_until(&running, "top kernels", |answer| rows(answer).len() > 2);
    let took = ["top kernels last 10s", "gaps", "slowest calls", "hang", "compare"].map(|question| {
        let began = Instant::now();
        roctop(&["ask", &running.session(), question]);
        began.elapsed()
    });
    assert!(took.into_iter().min() < Some(Duration::from_secs(2)), "{took:?}");
}

#[test]
fn a_recorded_session_answers_from_the_first_question_on() {
    let directory = place("ask-record");
    let (recording, work) = (directory.join("rec"), Work::begin(&directory));
    let own = env!("CARGO_BIN_EXE_roctop");
    let mut command = Command::new(own);
    command.args(["record", "-o", recording.to_str().unwrap(), "--", own, "__demo"]);
    command
        .env("ROCTOP_DEMO_WORKER", work.until())
        .env("ROCTOP_CONFIG", "/dev/null")
        .stdin(Stdio::null());
    let running = Running::of(&mut command);
    let uid = rustix::process::getuid().as_raw();
    let session = Path::new("/dev/shm")
        .join(format!("roctop-{uid}"))
        .join(running.session());
    let has_ring = || {
        let files = fs::read_dir(&session).into_iter().flatten().flatten();
        files
            .into_iter()
            .any(|file| file.path().extension().is_some_and(|ending| ending == "ring"))
    };
    let began = Instant::now();
    while !has_ring() {
        assert!(
            began.elapsed() < Duration::from_mins(1),
            "no ring in {}",
            session.display()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // Something is recorded before the first question.
    wait_for_bytes(&recording, 100_000);
    let answer = ask_until(&running, "top kernels", |answer| rows(answer).len() > 2);
    let window = &answer["window"];
    assert!(
        window["begin_ns"].as_u64().unwrap() > window["origin_ns"].as_u64().unwrap(),
        "{answer:#}"
    );
    // The recording has what came before, and is not disturbed.
    let socket = session.join("ask.sock");
    assert!(socket.exists(), "{}", socket.display());
    drop(running);
    assert!(!socket.exists(), "{}", socket.display());
    let whole = asked(&recording, "status");
    let all = rows(&whole)[0]["values"]["Dispatches"].as_u64().unwrap();
    let counted: u64 = rows(&answer)
        .iter()
        .map(|row| row["values"]["Calls"].as_u64().unwrap())
        .sum();
    assert!(all > counted && counted > 0, "{all} {counted}");
}

/// Call paths of an answer: their ids and texts, without the signs that depend on what was recorded until then.
fn sites_of(answer: &Value) -> BTreeMap<String, String> {
    let site = |row: &Value| {
        let text = row["values"]["Site"].as_str().unwrap();
        let text = text.split(" ← ").next().unwrap().trim_start_matches("≈ ");
        (row["id"].as_str().unwrap().to_owned(), text.to_owned())
    };
    rows(answer).iter().map(site).collect()
}

#[test]
fn sites_of_a_recorded_session_are_those_of_its_recording() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("ask-sites");
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let mut command = rig.command(&place, &options, &["sites", "1000000"]);
    let running = Running::of(command.env("ROCTOP_CONFIG", "/dev/null"));
    // The program copies the stack of each site once, long before the first question.
    wait_for_bytes(&recording, 1 << 20);
    // Without a name a site is a file and an offset in it.
    let is_named =
        |site: &String| !site.contains("sites+0x") && !site.contains(".so+0x") && !site.contains("not known");
    let answer = ask_until(&running, "top sites limit 10000", |answer| {
        let sites = sites_of(answer);
        sites.len() > 20 && sites.values().filter(|site| is_named(site)).count() > sites.len() / 2
    });
    drop(running);
    let (of_session, of_recording) = (sites_of(&answer), sites_of(&asked(&recording, "top sites limit 10000")));
    // The stack of the newest sites may not be read yet.
    for (id, site) in of_session.iter().filter(|row| !row.1.contains("not known")) {
        assert_eq!(of_recording.get(id), Some(site), "{id}");
    }
}

#[test]
fn a_program_that_was_killed_says_what_hung() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("ask-crash");
    let recording = place.join("rec");
    let output = Rig::ended(&mut rig.command(
        &place,
        &["record", "-o", recording.to_str().unwrap()],
        &["crash_mid", "kill"],
    ));
    assert!(!output.status.success(), "{output:?}");
    let answer = asked(&recording, "hang");
    let open = asked(&recording, "status");
    assert!(!rows(&open)[0]["values"]["State"].as_str().unwrap().is_empty());
    let kinds: Vec<&str> = rows(&answer)
        .iter()
        .filter_map(|row| row["values"]["Kind"].as_str())
        .collect();
    assert!(
        kinds
            .iter()
            .all(|kind| ["oldest", "kernel", "call", "range"].contains(kind)),
        "{answer:#}"
    );
}
