//! Real runs of one program, again and again: two ranks of a training program on the emulated GPU, whose kernels vary by a tenth
//! up and down. Everything else varies as the machine makes it. `.ci/long` runs these; they take minutes.

use crate::kit::rig::{Rig, read_truth, rig};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The program: what each rank runs, and what is planted in it.
const BENCH: &str = r#"#!/bin/sh
seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
TOGETHER=$(mktemp) WORLD_SIZE=2 EMULATED_GPU_JITTER=10
export TOGETHER WORLD_SIZE EMULATED_GPU_JITTER EMULATED_GPU_COPY_GBPS=${copy:-2}
names() { echo "gemm=$1,softmax=$2,norm=$3"; }
pids=
for rank in 0 1; do
    names=$(names ${gemm:-200000} 100000 50000)
    [ $rank = 0 ] || [ -z "$slow" ] || names=$(names 220000 110000 55000)
    RANK=$rank EMULATED_GPU_SEED=$((seed + rank)) EMULATED_GPU_BY_NAME=$names "$APP" 40 ${work:-1000} &
    pids="$pids $!"
done
for pid in $pids; do wait $pid || exit 1; done
rm "$TOGETHER"
"#;

/// The program as a script, with these variables.
fn bench(rig: &Rig, place: &Path, name: &str, planted: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = place.join(name);
    let text = BENCH.replacen(
        '\n',
        &format!("\nAPP={}\n{planted}\n", rig.app("training").display()),
        1,
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn number(variable: &str, usual: usize) -> usize {
    let given = std::env::var(variable).ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// `roctop ci run` with these options; its exit code and standard output.
fn ran(rig: &Rig, place: &Path, options: &[&str], program: &Path) -> (Option<i32>, String) {
    let options = [&["ci", "run"], options].concat();
    let mut command = rig.command(place, &options, &[program.to_str().unwrap()]);
    let output = Rig::ended(command.env_remove("EMULATED_GPU_LOG"));
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 3)),
        "{}",
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
    );
    (code, String::from_utf8(output.stdout).unwrap())
}

/// A comparison in turns: the rows that are slower or faster.
fn changed(rig: &Rig, place: &Path, before: &Path, after: &Path) -> Vec<String> {
    let options = ["--format", "json", "--before", before.to_str().unwrap()];
    let (_, text) = ran(rig, place, &options, after);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let is_changed = |row: &&serde_json::Value| matches!(row["verdict"].as_str(), Some("slower" | "faster"));
    let named = rows.iter().filter(is_changed).map(|row| {
        let word = |key: &str| row[key].as_str().unwrap().to_owned();
        format!("{} {} {}", word("verdict"), word("kind"), word("name"))
    });
    named.collect()
}

/// The first steps are cut off as warm-up; the time of ranks is that of the whole run, as the truth log has it.
#[test]
fn ranks_have_the_time_of_their_kernels() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("ci-ranks");
    let program = bench(rig, &place, "bench", "");
    let options = ["ci", "run", "-n", "1", "--save", "one.roctopci"];
    let output = Rig::ended(&mut rig.command(&place, &options, &[program.to_str().unwrap()]));
    assert!(output.status.success(), "{output:?}");
    let saved: serde_json::Value = serde_json::from_slice(&std::fs::read(place.join("one.roctopci")).unwrap()).unwrap();
    let rank = |rank: u32| {
        saved["runs"][0]["rows"]["rank"][format!("rank {rank}")]["total"]
            .as_u64()
            .unwrap()
    };
    let mut found = [rank(0), rank(1)];
    let mut logged: BTreeMap<u32, u64> = BTreeMap::new();
    for row in read_truth(&place).iter().filter(|row| row.kind == "dispatch") {
        *logged.entry(row.pid).or_default() += row.end - row.begin;
    }
    let mut logged: Vec<u64> = logged.into_values().collect();
    found.sort_unstable();
    logged.sort_unstable();
    assert_eq!(logged.len(), 2);
    // Each begin and end is exact to a tick of the GPU's counter, and the kernels of a rank do not overlap.
    for (found, logged) in found.iter().zip(logged) {
        assert!(found.abs_diff(logged) * 200 < logged, "{found} {logged}");
    }
}

/// The runs that comparisons are drawn from, in the crate of the rule: `ROCTOP_CI_SAVED` names the file.
#[test]
#[ignore = "minutes of runs: .ci/long"]
fn of_one_program_are_saved() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("ci-saved");
    let saved = std::env::var("ROCTOP_CI_SAVED").unwrap_or_else(|_| "all.roctopci".to_owned());
    let count = number("ROCTOP_CI_RUNS", 60).to_string();
    let program = bench(rig, &place, "bench", "");
    let (code, text) = ran(rig, &place, &["-n", &count, "--save", &saved], &program);
    assert_eq!(code, Some(0), "{text}");
    for kind in ["wall", "step", "kernel", "copy", "range", "idle", "rank"] {
        assert!(text.contains(&format!(" {kind} ")), "{kind}\n{text}");
    }
    println!("{count} runs recorded");
}

#[test]
#[ignore = "minutes of runs: .ci/long"]
fn made_afresh_differ_once_in_twenty_comparisons_at_most() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("ci-afresh");
    let program = bench(rig, &place, "bench", "");
    let all = number("ROCTOP_CI_FRESH", 20);
    let mut alarms = 0;
    for _ in 0..all {
        let rows = changed(rig, &place, &program, &program);
        alarms += usize::from(!rows.is_empty());
        println!("{rows:?}");
    }
    println!("{alarms} alarms in {all} comparisons made afresh");
    assert!(alarms <= 1, "{alarms}");
}

/// A change of a tenth that was really run: in the time of a kernel, of copies, of work on the host, and of a rank's kernels.
#[test]
#[ignore = "minutes of runs: .ci/long"]
fn with_a_planted_change_are_slower() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("ci-planted");
    let program = bench(rig, &place, "bench", "");
    let all = number("ROCTOP_CI_PLANTED", 5);
    let mut found = Vec::new();
    for (kind, row, planted) in [
        ("kernel", "slower kernel gemm", "gemm=220000"),
        ("copy", "slower copy H2D", "copy=1.8"),
        ("range", "slower range prepare", "work=1100"),
        ("rank", "slower rank rank 1", "slow=1"),
    ] {
        let slower = bench(rig, &place, kind, planted);
        let is_named = |_: &usize| {
            let rows = changed(rig, &place, &program, &slower);
            println!("{kind}: {rows:?}");
            rows.iter().any(|named| named.starts_with(row))
        };
        found.push((kind, (0..all).filter(is_named).count()));
    }
    println!("+10 %, 7 runs a side, of {all}: found {found:?}");
    // Times of kernels are the emulated GPU's. Copies and ranges take longer on a machine with other work.
    assert!(
        found
            .iter()
            .all(|(kind, count)| !matches!(*kind, "kernel" | "rank") || *count == all)
    );
}
