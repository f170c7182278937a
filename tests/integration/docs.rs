//! The commands of the documents do what the documents say. A block marked `sh run` is executed as a script, the commands of
//! one marked `sh screen` are typed at a terminal, where screens that come up are left again; both in a directory with a HIP
//! program `app`, on the real run-time over the emulated GPU. A line that begins with `!` has to fail. Commands of other
//! blocks are executed by a script of the repository, which `ELSEWHERE` names.

mod around;
mod person;

use crate::kit::rig::rig;
use around::Around;
use std::path::{Path, PathBuf};

/// Commands by their beginnings, the files that execute them, and the words by which they do.
const ELSEWHERE: [(&str, &str, &str); 7] = [
    (
        "cargo run --release -- demo",
        "packaging/test-fresh",
        "cargo run --release -- demo",
    ),
    ("tests/run ", "packaging/test-fresh", "tests/run"),
    ("roctop doctor --gpu ", "tests/integration/doctor_gpu.rs", "\"--gpu\""),
    (
        "git bisect run ",
        "tests/integration/ci.rs",
        "\"bisect\", \"run\", \"sh\", \"-c\"",
    ),
    ("docker run ", "packaging/test-sites", ":/usr/bin/roctop:ro"),
    ("apptainer exec ", "packaging/test-sites", "apptainer exec"),
    // The benchmarks are run by hand; tests/run compiles them.
    ("cargo bench ", "tests/run", "--benches"),
];

/// How a block is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Execution {
    Script,
    Terminal,
    Elsewhere,
}

/// The blocks of a document that hold commands: the lines that they begin at, how they are executed, and the commands.
fn blocks(text: &str) -> Vec<(usize, Execution, Vec<&str>)> {
    let mut found: Vec<(usize, Execution, Vec<&str>)> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(mark) = line.strip_prefix("```") {
            let way = match mark {
                "sh run" => Some(Execution::Script),
                "sh screen" => Some(Execution::Terminal),
                _ => mark.starts_with("sh").then_some(Execution::Elsewhere),
            };
            inside = !inside && way.is_some();
            if let Some(way) = way.filter(|_| inside) {
                found.push((number + 1, way, Vec::new()));
            }
        } else if let Some((.., lines)) = found.last_mut().filter(|_| inside) {
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

/// A test for each document with commands; several for one with many.
macro_rules! documents {
    ($($test:ident: $name:literal, $part:literal of $parts:literal;)*) => {
        $(#[test]
        fn $test() {
            works($name, $part, $parts);
        })*

        /// Document, part, and number of parts of each test.
        const TRIED: &[(&str, usize, usize)] = &[$(($name, $part, $parts)),*];
    };
}

documents! {
    readme_works: "README", 0 of 1;
    always_on_works: "docs/always-on", 0 of 1;
    check_works: "docs/check", 0 of 1;
    ci_works: "docs/ci", 0 of 2;
    ci_works_2: "docs/ci", 1 of 2;
    filter_works: "docs/filter", 0 of 1;
    first_five_minutes_work: "docs/first-five-minutes", 0 of 1;
    from_rocprofv3_works: "docs/from-rocprofv3", 0 of 1;
    from_roctracer_works: "docs/from-roctracer", 0 of 1;
    install_works: "docs/install", 0 of 1;
    job_works: "docs/job", 0 of 1;
    recipes_work: "docs/recipes", 0 of 4;
    recipes_work_2: "docs/recipes", 1 of 4;
    recipes_work_3: "docs/recipes", 2 of 4;
    recipes_work_4: "docs/recipes", 3 of 4;
    sites_work: "docs/sites", 0 of 1;
}

/// `docs/filter`.
fn name(document: &Path) -> String {
    let below = document.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
    below.with_extension("").to_string_lossy().into_owned()
}

/// Executes each block of a document, or one of as many as there are parts.
fn works(wanted: &str, part: usize, parts: usize) {
    let Some(rig) = rig() else { return };
    if std::env::var_os("ROCTOP_TEST_RELEASE").is_some_and(|release| release != "5.2.3") {
        println!("skipped: the documents are tried on the installed release");
        return;
    }
    let document = documents().into_iter().find(|document| name(document) == wanted);
    let text = std::fs::read_to_string(document.unwrap()).unwrap();
    let all = blocks(&text)
        .into_iter()
        .filter(|block| block.1 != Execution::Elsewhere);
    for (line, way, commands) in all.skip(part).step_by(parts) {
        let Some(around) = Around::new(
            rig,
            &format!("{}-{line}", wanted.replace('/', "-")),
            &commands.join("\n"),
        ) else {
            continue;
        };
        let what = format!("{wanted}.md, line {line}");
        if way == Execution::Script {
            works_as_a_script(&around, &what, &commands);
        } else {
            assert!(person::types(&around, &what, &commands) > 0, "{what}: no screen");
        }
    }
}

#[test]
fn every_document_with_commands_has_its_test() {
    let has_commands = |document: &PathBuf| {
        let text = std::fs::read_to_string(document).unwrap();
        blocks(&text).iter().any(|block| block.1 != Execution::Elsewhere)
    };
    let mut tests = 0;
    for document in documents().iter().filter(|document| has_commands(document)) {
        let name = name(document);
        let own: Vec<_> = TRIED.iter().filter(|tried| tried.0 == name).collect();
        assert!(!own.is_empty(), "no test of {name}");
        assert!(
            own.iter()
                .enumerate()
                .all(|(at, tried)| (tried.1, tried.2) == (at, own.len()))
        );
        tests += own.len();
    }
    assert_eq!(tests, TRIED.len(), "a test of a document without commands");
}

fn works_as_a_script(around: &Around, what: &str, commands: &[&str]) {
    let script: Vec<String> = commands.iter().map(|line| strict(line)).collect();
    let script = script.join("\n");
    let output = around.command(&script).output().unwrap();
    assert!(
        output.status.success(),
        "{what}: {}\n{script}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_command_that_is_not_tried_here_is_tried_by_a_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        let blocks = blocks(&text)
            .into_iter()
            .filter(|(_, way, _)| *way == Execution::Elsewhere);
        for command in blocks.flat_map(|(.., commands)| commands) {
            let known = ELSEWHERE.iter().find(|(beginning, ..)| command.starts_with(beginning));
            let (_, file, words) = known.unwrap_or_else(|| panic!("{}: {command}", document.display()));
            let script = std::fs::read_to_string(root.join(file)).unwrap();
            assert!(script.contains(words), "{file} does not execute {command}");
        }
    }
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
