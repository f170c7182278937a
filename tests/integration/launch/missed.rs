//! Programs that use ROCm and are not recorded are reported, and so is the reason.

use super::{place, run, text, word};
use std::path::Path;
use std::process::Output;

/// roctop's output for a program that sleeps for `seconds`: the busier the machine is, the more rarely roctop
/// looks for programs without records.
fn said(run: impl Fn(&str) -> Output, part: &str) -> (Output, String) {
    let said = |seconds| {
        let output = run(seconds);
        let said = text(&output.stderr);
        (output, said)
    };
    let mut all = ["1", "5", "20"].into_iter().map(said);
    let found = all.find(|(_, said)| said.contains(part));
    found.unwrap_or_else(|| panic!("never said: {part}"))
}

/// A library with the name of HIP's, for programs that do nothing with it.
fn named_as_hip(place: &Path) -> String {
    let libc = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = libc
        .split_whitespace()
        .find(|word| word.ends_with("/libm.so.6") || word.ends_with("/libc.so.6"));
    let copy = place.join("libamdhip64.so.6");
    std::fs::copy(libc.unwrap().replace("libc.so.6", "libm.so.6"), &copy).unwrap();
    word(&copy).to_owned()
}

#[test]
fn a_cleared_environment_is_reported() {
    let place = place("cleared");
    let preload = format!("LD_PRELOAD={}", named_as_hip(&place));
    let recording = place.join("rec");
    let cleared = ["env", "-i", &*preload, "sleep"];
    let record = |seconds: &str| {
        let _ = std::fs::remove_dir_all(&recording);
        run(&[&["record", "-o", word(&recording), "--"][..], &cleared[..], &[seconds]].concat())
    };
    let part = "(sleep) used ROCm, but the collector was not loaded: its environment was cleared";
    let (output, _) = said(record, part);
    assert_eq!(output.status.code(), Some(0), "the program's own");
    let sum_up = |seconds: &str| run(&[&["--no-ui"][..], &cleared[..], &[seconds]].concat());
    let (_, said) = said(sum_up, "nothing was recorded: process");
    assert!(!said.contains("neither a ROCm run-time"), "{said}");
}

#[test]
fn a_replaced_preload_is_reported() {
    let place = place("replaced");
    let script = format!("LD_PRELOAD={} sleep", named_as_hip(&place));
    let replaced = |seconds: &str| run(&["--no-ui", "sh", "-c", &format!("{script} {seconds}")]);
    let (_, said) = said(replaced, "(sleep) used ROCm");
    assert!(said.contains("LD_PRELOAD was replaced"), "{said}");
    // A program with the collector is not missed, and neither is one without ROCm.
    let script = format!("LD_PRELOAD=$LD_PRELOAD:{} sleep 1", named_as_hip(&place));
    for script in [&*script, "env -i sleep 1"] {
        let said = text(&run(&["--no-ui", "sh", "-c", script]).stderr);
        assert!(!said.contains("the collector was not loaded:"), "{said}");
    }
}

#[test]
fn a_session_that_a_mount_hides_is_reported() {
    let place = place("hidden");
    let unshare = ["unshare", "--user", "--map-root-user", "--mount"];
    let mount = "mount -t tmpfs none /dev/shm";
    let tried = std::process::Command::new(unshare[0])
        .args(&unshare[1..])
        .args(["sh", "-c", mount])
        .output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        println!("skipped: no mount namespaces for this user");
        return;
    }
    let preload = named_as_hip(&place);
    for (mount, is_hidden) in [("true", false), (mount, true)] {
        let recording = place.join(format!("rec-{is_hidden}"));
        for options in [&["record", "-o", word(&recording), "--"] as &[_], &["--no-ui"]] {
            let hidden = |seconds: &str| {
                let _ = std::fs::remove_dir_all(&recording);
                let script = format!("{mount} && LD_PRELOAD=$LD_PRELOAD:{preload} exec sleep {seconds}");
                run(&[options, &unshare, &["sh", "-c", &script]].concat())
            };
            let part = "(sleep) used ROCm, but /dev/shm/";
            let (output, said) = said(hidden, if is_hidden { part } else { "" });
            assert_eq!(output.status.code(), Some(0), "the program's own: {said}");
            assert_eq!(said.contains(part), is_hidden, "{said}");
            assert_eq!(
                said.contains("does not exist in its mount namespace"),
                is_hidden,
                "{said}"
            );
        }
    }
}

#[test]
fn a_program_without_records_has_its_duration() {
    let recording = place("duration").join("rec");
    run(&["record", "-o", word(&recording), "--", "sleep", "0.5"]);
    let said = text(&run(&["summary", word(&recording)]).stdout);
    let first = said.lines().next().unwrap_or_default();
    let seconds = first.rsplit(' ').nth(1).and_then(|word| word.parse::<f64>().ok());
    assert!(seconds.is_some_and(|seconds| (0.49..30.0).contains(&seconds)), "{said}");
}

#[test]
fn doctor_takes_the_programs_arguments() {
    for words in [
        &["doctor", "env", "-i", "true"][..],
        &["doctor", "--", "env", "-i", "true"],
    ] {
        let output = run(words);
        let said = text(&output.stdout);
        assert!(said.contains("env can be recorded"), "{said}");
        assert!(said.contains("'env -i' clears the environment"), "{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
    }
}
