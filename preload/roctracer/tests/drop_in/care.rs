//! Duties of a library in a foreign program: it loses nothing, leaks nothing, and can be closed.

use crate::place::{fake_hip, libraries, program, text};
use std::process::Command;

#[test]
fn a_million_calls_lose_nothing() {
    if libraries().is_none() {
        return;
    }
    let output = Command::new(program("million.c", "million", &[fake_hip()]))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    print!("{}", text(&output));
}

#[test]
fn library_opens_and_closes_repeatedly() {
    let Some(libraries) = libraries() else { return };
    let unload = program("unload.c", "unload", &["-Wl,--no-as-needed".into(), "-ldl".into()]);
    let output = Command::new(unload).env("LD_LIBRARY_PATH", libraries).output().unwrap();
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), "ok\n"));
}

#[test]
fn valgrind_finds_no_error() {
    let Some(libraries) = libraries() else { return };
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("skipped: needs valgrind");
        return;
    }
    let rules = program("rules.c", "rules-few", &["-DCALLS_EACH=200".into(), fake_hip()]);
    let unload = program("unload.c", "unload-checked", &["-ldl".into()]);
    for (program, word) in [
        (&rules, "own_allocators"),
        (&rules, "small_buffers"),
        (&rules, "closing"),
        (&rules, "misused_pools"),
        (&rules, "records_of_work"),
        (&rules, "threads"),
        (&unload, ""),
    ] {
        let mut valgrind = Command::new("valgrind");
        valgrind.args([
            "-q",
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
        ]);
        valgrind
            .arg("--show-leak-kinds=definite")
            .arg(program)
            .env("LD_LIBRARY_PATH", libraries);
        let output = valgrind.args((!word.is_empty()).then_some(word)).output().unwrap();
        assert_eq!(
            (output.status.code(), text(&output).as_str()),
            (Some(0), "ok\n"),
            "{word}"
        );
    }
}
