//! Paths and tests that the documents for developers name exist.

use crate::root;
use regex::Regex;
use std::path::PathBuf;

/// Folders that ARCHITECTURE.md writes paths from: the root, and those that a section names for its own.
const BASES: [&str; 8] = [
    "",
    "preload/src",
    "preload/src/backend",
    "preload/src/backend/hsa",
    "preload/roctracer/src",
    "crates/model/src",
    "crates/export/src",
    "crates/tui/src",
];

/// Headers of ROCm.
const FOREIGN: [&str; 2] = ["hip_runtime_api.h", "hsa_api_trace.h"];

/// Words in back-ticks that look like paths of this repository: a file with a known ending, or a folder below a known one.
fn paths(text: &str) -> Vec<&str> {
    let code = Regex::new(r"`([^`\n]+)`").unwrap();
    let file = Regex::new(r"^[\w./-]+\.(rs|toml|c|h|md|txt|rows)$").unwrap();
    let folder =
        Regex::new(r"^(src|crates|preload|tests|xtask|fuzz|benches|docs|themes|screenshots|packaging|\.ci)/[\w./-]*$")
            .unwrap();
    code.captures_iter(text)
        .flat_map(|found| found.get(1).unwrap().as_str().split_whitespace())
        .filter(|word| file.is_match(word) || folder.is_match(word))
        .collect()
}

/// True if the path, or the module of this name, is below one of the bases.
fn exists(path: &str) -> bool {
    let candidates = BASES.iter().map(|base| root().join(base).join(path));
    candidates
        .flat_map(|path| [path.with_extension("rs"), path])
        .any(|path| path.exists())
}

#[test]
fn paths_in_documents_exist() {
    let mut missing = Vec::new();
    for name in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        let named = paths(&text);
        assert!(named.len() > 5, "{name}: {named:?}");
        let lost = named
            .into_iter()
            .filter(|path| !exists(path) && !FOREIGN.contains(path));
        missing.extend(lost.map(|path| format!("{name}: {path}")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The test targets that commands in a text name, each with the packages of its command.
fn targets(text: &str) -> Vec<(Vec<String>, String)> {
    let command = Regex::new(r"cargo (?:\+nightly )?(?:miri )?test[^`\n]*").unwrap();
    let package = Regex::new(r"(?:-p|--package) ([\w-]+)").unwrap();
    let target = Regex::new(r"--test ([\w-]+)").unwrap();
    let mut found = Vec::new();
    // A command may go on in the next line.
    let text = text.replace("\\\n", " ");
    for command in command.find_iter(&text).map(|found| found.as_str()) {
        let mut packages: Vec<String> = package
            .captures_iter(command)
            .map(|found| found.get(1).unwrap().as_str().to_owned())
            .collect();
        // A script's variable holds the viewer's packages.
        if packages.is_empty() || command.contains("${viewer") {
            packages.push("roctop".to_owned());
        }
        let named = target
            .captures_iter(command)
            .map(|found| found.get(1).unwrap().as_str().to_owned());
        found.extend(named.map(|target| (packages.clone(), target)));
    }
    found
}

/// The folder of a package of this workspace.
fn folder(package: &str) -> PathBuf {
    match package {
        "roctop" => root().to_owned(),
        "roctop-preload" => root().join("preload"),
        "emulated-gpu" => root().join("tests/emulated-gpu"),
        "xtask" => root().join("xtask"),
        other => {
            let name = other.strip_prefix("roctop-").unwrap_or(other);
            let found = ["crates", "preload"].map(|room| root().join(room).join(name));
            let found = found.into_iter().find(|path| path.exists());
            found.unwrap_or_else(|| panic!("no package {package}"))
        }
    }
}

/// True if one of the packages has the test target.
fn has_target(packages: &[String], target: &str) -> bool {
    packages.iter().any(|package| {
        let tests = folder(package).join("tests");
        let manifest = std::fs::read_to_string(folder(package).join("Cargo.toml")).unwrap();
        tests.join(format!("{target}.rs")).exists()
            || tests.join(target).join("main.rs").exists()
            || manifest.contains(&format!("[[test]]\nname = \"{target}\""))
    })
}

/// Files with commands for tests: documents, scripts and the comments of tests.
fn files_with_commands() -> Vec<PathBuf> {
    crate::words::files(&[
        "CONTRIBUTING.md",
        "docs",
        ".ci",
        "packaging",
        "tests",
        "preload",
        "benches",
    ])
}

#[test]
fn test_targets_in_commands_exist() {
    let mut count = 0;
    let mut missing = Vec::new();
    for file in files_with_commands() {
        for (packages, target) in targets(&std::fs::read_to_string(&file).unwrap()) {
            count += 1;
            if !has_target(&packages, &target) {
                missing.push(format!("{}: no test {target} in {packages:?}", file.display()));
            }
        }
    }
    assert!(count > 10, "{count} commands");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_missing_path_or_target_is_found() {
    assert_eq!(
        paths("the `src/live` room, `a b`, `cargo x`, `signal.rs`"),
        ["src/live", "signal.rs"]
    );
    assert!(exists("hsa/packet.rs") && exists("src/live") && !exists("src/pump") && !exists("pump.rs"));
    let found = targets("run `cargo test -p roctop-ring --test loom` and\ncargo test --locked --test real_run_time x");
    let expected = [("roctop-ring", "loom"), ("roctop", "real_run_time")];
    assert_eq!(
        found,
        expected.map(|(package, target)| (vec![package.to_owned()], target.to_owned()))
    );
    let found: Vec<bool> = found
        .iter()
        .map(|(packages, target)| has_target(packages, target))
        .collect();
    assert_eq!(found, [true, false]);
}
