//! `roctop drop-in`: what it installs is whole, can be used from where it lies, and replaces what was there before.

use crate::kit::directory::place;
use std::path::Path;
use std::process::{Command, Output};

/// Runs it; none, with the reason printed, when this build carries no libraries.
fn install(arguments: &[&str], prefix: &Path) -> Option<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    let output = command.arg("drop-in").args(arguments).arg(prefix).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("carries no drop-in libraries") {
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        println!("skipped: {said}");
        return None;
    }
    Some(output)
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{command:?}: {}{}", said[0], said[1]);
    said[0].clone()
}

#[test]
fn what_is_installed_can_be_compiled_against_moved_and_run() {
    let place = place("whole");
    let first = place.join("first");
    let Some(output) = install(&[], &first) else { return };
    assert!(output.status.success());
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.lines().all(|path| Path::new(path).exists()), "{listed}");
    assert!(listed.contains("lib/libroctracer64.so.4\n") && listed.contains("include/roctracer/roctracer.h\n"));
    // Over what is there; then it is moved.
    assert!(install(&[], &first).unwrap().status.success());
    let prefix = place.join("moved");
    std::fs::rename(&first, &prefix).unwrap();

    if Command::new("cc").arg("--version").output().is_err() {
        return println!("not compiled: needs a C compiler");
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/roctracer/tests/c/installed.c");
    let program = prefix.join("program");
    let mut compiler = Command::new("cc");
    compiler.arg(source).arg("-o").arg(&program);
    for folder in ["include", "include/roctracer"] {
        compiler.arg("-I").arg(prefix.join(folder));
    }
    run(compiler
        .arg("-L")
        .arg(prefix.join("lib"))
        .args(["-lroctracer64", "-lroctx64"]));
    let mut program = Command::new(program);
    assert_eq!(run(program.env("LD_LIBRARY_PATH", prefix.join("lib"))), "4.1\n");
}

#[test]
fn the_headers_come_alone_when_they_are_wanted_alone() {
    let prefix = place("headers");
    if install(&["--headers"], &prefix).is_none() {
        return;
    }
    assert!(prefix.join("include/roctracer/ext/prof_protocol.h").exists());
    assert!(prefix.join("roctracer/include/roctx.h").exists());
    assert!(!prefix.join("lib").exists());
}

#[test]
fn where_nothing_can_be_written_one_line_says_so() {
    let place = place("refused");
    std::fs::write(place.join("file"), "").unwrap();
    let Some(output) = install(&[], &place.join("file")) else {
        return;
    };
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("cannot make") && said.contains("file"), "{said}");
}
