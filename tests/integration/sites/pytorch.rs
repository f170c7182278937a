//! A model in PyTorch: each launch has the operator and the module that the program noted, and torch.profiler in the same
//! process finds what it finds without roctop.
//!
//! Run with the first of `ROCTOP_TORCH_PYTHON`, /usr/bin/python3 and python3 that can import torch (Debian's package
//! python3-torch). Without one the test is skipped, unless `ROCTOP_REQUIRE_TORCH` is set.

use super::python::{compare, noted_lines};
use crate::kit::rig::{Rig, rig};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An interpreter that can import PyTorch, and both versions.
fn python() -> Option<(PathBuf, String)> {
    let named = std::env::var("ROCTOP_TORCH_PYTHON").ok();
    let about =
        "import sys, torch; print(sys.executable, 'PyTorch', torch.__version__, 'CPython', sys.version.split()[0])";
    let found = named
        .as_deref()
        .into_iter()
        .chain(["/usr/bin/python3", "python3"])
        .find_map(|name| {
            let output = Command::new(name).args(["-c", about]).output().ok()?;
            let text = String::from_utf8(output.stdout).ok()?;
            let (path, versions) = text.trim().split_once(' ')?;
            output.status.success().then(|| (path.into(), versions.to_owned()))
        });
    if found.is_none() {
        let reason = "no Python with PyTorch (apt-get install python3-torch)";
        assert!(std::env::var_os("ROCTOP_REQUIRE_TORCH").is_none(), "{reason}");
        println!("skipped: {reason}");
    }
    found
}

/// Runs the model, under roctop if there are options.
fn run(rig: &Rig, place: &Path, python: &Path, options: &[&str], how: &str) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps/torch_model.py");
    let library = rig.app("liblaunch.so");
    let words = [python, Path::new("-Wignore"), &script, &library].map(|word| word.to_str().unwrap());
    let mut command = rig.command(place, options, &[&words[..], &["3", how]].concat());
    Rig::ended(command.env("APP_SITES", place.join("noted")))
}

/// What each thread noted, in an order that does not depend on thread ids.
fn by_thread(noted: &BTreeMap<u32, Vec<String>>) -> Vec<&Vec<String>> {
    let mut threads: Vec<_> = noted.values().collect();
    threads.sort_unstable();
    threads
}

#[test]
fn operators_and_modules_are_those_of_pytorch_and_its_profiler_is_not_disturbed() {
    let Some(rig) = rig().filter(|rig| rig.is_oldest()) else {
        return;
    };
    let Some((python, versions)) = python() else { return };
    for how in ["plain", "profile", "stacks"] {
        let place = Rig::place(&format!("sites-pytorch-{how}"));
        let alone = run(rig, &place, &python, &[], how);
        assert!(alone.status.success(), "{how}: {alone:?}");
        let without = noted_lines(&place.join("noted"));
        let recording = place.join("rec");
        let output = run(
            rig,
            &place,
            &python,
            &["record", "-o", recording.to_str().unwrap()],
            how,
        );
        assert!(output.status.success(), "{how}: {output:?}");
        // What the model computes, and the number of calls of each operator that torch.profiler counted.
        let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text(&output), text(&alone), "{how}");
        assert_eq!(
            text(&alone).contains("AddmmBackward0"),
            how != "plain",
            "{}",
            text(&alone)
        );
        let noted = noted_lines(&place.join("noted"));
        // Thread ids differ, and with them the order of threads.
        assert_eq!(by_thread(&noted), by_thread(&without), "{how}");
        let about = format!("{how}, {versions}");
        let found = compare(&recording, &noted, &about, |read, path| {
            let [operator, module] = [read.sites.operator(path), read.sites.torch_module(path)];
            let or_none = |text: &str| {
                if text.is_empty() {
                    "-".to_owned()
                } else {
                    text.to_owned()
                }
            };
            format!("{} {}", or_none(operator), or_none(module))
        });
        assert!(
            found.calls > 1_500 && found.paths > 80,
            "{about}: {} calls, {} paths",
            found.calls,
            found.paths
        );
    }
}
