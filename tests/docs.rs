//! The commands of the documents do what the documents say: every block marked `sh run` is executed, in a directory with a
//! HIP program `app`, on the real run-time over the emulated GPU. A line that begins with `!` has to fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(
    dead_code,
    reason = "the rig of the tests on real run-times, of which the documents need little"
)]
#[path = "rig/rig.rs"]
mod rig;

use rig::{Rig, rig};
use std::path::{Path, PathBuf};

/// The blocks to execute of a document, and the lines that they begin at.
fn blocks(text: &str) -> Vec<(usize, Vec<&str>)> {
    let mut found: Vec<(usize, Vec<&str>)> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```sh run";
            if inside {
                found.push((number + 1, Vec::new()));
            }
        } else if let Some((_, lines)) = found.last_mut().filter(|_| inside) {
            lines.push(line);
        }
    }
    found
}

/// `! command` as a line that fails when the command does not: the shell itself passes over it.
fn strict(line: &str) -> String {
    line.strip_prefix("! ")
        .map_or_else(|| line.to_owned(), |command| format!("if {command}; then exit 90; fi"))
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(root.join("docs")).unwrap();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    all.sort();
    all.push(root.join("README.md"));
    all
}

#[test]
fn every_recipe_of_the_documents_works() {
    let Some(rig) = rig() else { return };
    if std::env::var_os("ROCTOP_TEST_RELEASE").is_some_and(|release| release != "5.2.3") {
        println!("skipped: the documents are tried on the installed release");
        return;
    }
    let mut tried = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        let name = document.file_stem().unwrap().to_string_lossy().into_owned();
        for (line, commands) in blocks(&text) {
            let script: Vec<String> = commands.into_iter().map(strict).collect();
            let script = script.join("\n");
            let place = Rig::place(&format!("docs-{name}-{line}"));
            let output = rig.script(&place, "matrix_transpose", &script).output().unwrap();
            assert!(
                output.status.success(),
                "{name}.md, line {line}: {}\n{script}\n{}{}",
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            tried += 1;
        }
    }
    println!("{tried} blocks of the documents tried");
    assert!(tried > 0);
}

/// The target of every link between `](` and `)` that names a file of the repository.
#[test]
fn every_link_between_the_documents_leads_somewhere() {
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let target = link.0.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = document.parent().unwrap().join(target);
            assert!(path.exists(), "{}: no {target}", document.display());
        }
    }
}
