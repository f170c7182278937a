//! Documents, comments and test names use plain English: phrases that CONTRIBUTING.md excludes do not return.
//!
//! The lists of documents and rooms grow as these are rewritten; an entry never leaves them.

use crate::root;
use regex::Regex;
use std::path::{Path, PathBuf};

/// Documents and single files in the style of CONTRIBUTING.md; docs/ is complete.
const FILES: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs",
    "tests/integration/docs.rs",
];

/// Directories whose sources, headers and scripts are in that style.
const ROOMS: [&str; 32] = [
    "xtask",
    "preload/src",
    "preload/core",
    "preload/code-object",
    "preload/ring",
    "preload/gate",
    "preload/gpu-check",
    "preload/hip-functions",
    "preload/hsa-sys",
    "preload/hip-sys",
    "preload/roctx",
    "preload/roctracer",
    "preload/tests",
    "tests/integration/kit",
    "tests/integration/docs",
    "tests/apps",
    "tests/emulated-gpu",
    "fuzz",
    "benches",
    "src",
    "crates/trace",
    "crates/source",
    "crates/model",
    "crates/export",
    "crates/foreign",
    "crates/tui",
    "crates/bundle",
    "crates/job",
    "crates/scenario",
    "crates/signals",
    "crates/unwind",
    "examples",
];

/// Extensions of text files; scripts have none.
const EXTENSIONS: [&str; 10] = ["md", "rs", "toml", "c", "h", "cpp", "hpp", "hip", "map", "py"];

/// Excluded phrases, each with what to write instead. old.txt has a sentence for each.
const EXCLUDED: [(&str, &str); 21] = [
    (r"\b[t]old\b", "reported, printed, shown"),
    (r"\b[t]ells?\b", "reports, shows"),
    (r"\b[a]new\b", "again"),
    (r"\b[w]hoever\b", "name the actor"),
    (r"\b[s]o many\b", "n records"),
    (r"\b[o]f (its|their|his|our) own\b", "separate, own"),
    (
        r"\b[l]ies\b|\b[l]ie (in|at|below|beside|on|close|behind|before)\b",
        "is in",
    ),
    (r"\b[b]esides\b", "also, in addition"),
    (r"\b[l]iars?\b", "corrupt, hostile"),
    (r"\b[h]ow far it is\b", "progress"),
    (r"\b[m]ade[- ]up\b", "synthetic"),
    (r"\b[a]s (it|they) came\b", "unchanged"),
    (r"\b[i]n vain\b|\b[f]or want of\b", "failed, for lack of"),
    (r"\b[t]o be had\b", "available"),
    (r"\b[t]he other way round\b", "say both directions"),
    (r"\b[o]ne behind the other\b", "consecutive"),
    (r"\b(is|are) [b]elieved\b", "is used, is trusted"),
    (r"\b[w]hat came of\b", "the result"),
    (r"\b(gives?|gave) [w]ay\b", "yields, is evicted"),
    (r"\b[w]hose \w+ (it|they) (is|are|was|were)\b", "name the owner"),
    (r"\b[t]hat (is|are) there\b", "present, available"),
];

/// Constants whose names say no noun.
const BARE_CONSTANT: &str =
    r"\b(const|static) (MOST|HELD|CALM|FAR|NEAR|RARE|SAME|FEW|STILL|EACH|LONGEST|PATIENCE|TWICE)\b";

/// Types of the viewer and its crates that have the field's names now, among them LoopControl, PreviousRun, Detached,
/// EffectRunner, UsageError, Ingest, Throttle, HitMap, SamplingRequest, CounterJoin, SeenDispatch, RowFilter and SpanFilter.
const RETIRED_TYPE: &str = r"\b(struct|enum|type) (Flow|Left|Away|Desk|Misuse|Pump|PumpSender|Emptying|Digesting|Guard|Pace|Hits|Wish|WishError|Joining|Growing|Judged|[T]old|Within|Said|Held|Way)\b";

/// A test's name is a short statement about an area.
const MAX_TEST_NAME: usize = 60;

/// Text files at or below `path`, without build output and the fuzzers' corpora.
fn texts(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            let entry = entry.unwrap().path();
            let name = entry.file_name().unwrap().to_string_lossy();
            if !matches!(&*name, "target" | "corpus" | "artifacts") {
                texts(&entry, found);
            }
        }
    } else if path
        .extension()
        .is_none_or(|extension| EXTENSIONS.iter().any(|known| extension == *known))
        && std::fs::read_to_string(path).is_ok()
    {
        found.push(path.to_owned());
    }
}

pub(super) fn files(of: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in of {
        let before = found.len();
        texts(&root().join(name), &mut found);
        assert!(found.len() > before, "no text at {name}");
    }
    found
}

/// Lines that quote bad English on purpose, or belong to a part that is not rewritten yet.
fn is_exempt(file: &Path, line: &str) -> bool {
    // The examples of CONTRIBUTING, and the rows of ARCHITECTURE for modules that have not moved to crates/.
    file.ends_with("CONTRIBUTING.md") && line.starts_with("| ") || line.starts_with("| `src/")
}

fn phrases() -> Vec<(Regex, &'static str)> {
    let compile = |(pattern, instead): (&str, _)| (Regex::new(&format!("(?i){pattern}")).unwrap(), instead);
    EXCLUDED.into_iter().map(compile).collect()
}

/// Every excluded phrase of `line`, with what to write instead.
fn excluded<'l>(phrases: &'l [(Regex, &'static str)], line: &'l str) -> impl Iterator<Item = (&'l str, &'static str)> {
    phrases
        .iter()
        .filter_map(move |(pattern, instead)| Some((pattern.find(line)?.as_str(), *instead)))
}

/// The names of the tests in a Rust source.
fn test_names(text: &str) -> Vec<&str> {
    let test = Regex::new(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn (\w+)").unwrap();
    test.captures_iter(text)
        .map(|found| found.get(1).unwrap().as_str())
        .collect()
}

#[test]
fn rewritten_files_stay_plain() {
    let phrases = phrases();
    let mut hits = Vec::new();
    for file in files(&[&FILES[..], &ROOMS[..]].concat()) {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(root()).unwrap().display();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !is_exempt(&file, line)) {
            let found = excluded(&phrases, line);
            hits.extend(found.map(|(phrase, instead)| format!("{name}:{}: \"{phrase}\": write {instead}", number + 1)));
        }
    }
    assert!(hits.is_empty(), "{}", hits.join("\n"));
}

#[test]
fn constants_have_nouns_and_test_names_are_short() {
    let constant = Regex::new(BARE_CONSTANT).unwrap();
    let mut hits = Vec::new();
    for file in files(&[&ROOMS[..], &["preload"]].concat()) {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(root()).unwrap().display();
        hits.extend(
            constant
                .find_iter(&text)
                .map(|found| format!("{name}: {}", found.as_str())),
        );
        if !ROOMS.iter().any(|room| file.starts_with(root().join(room))) {
            continue;
        }
        let long = test_names(&text).into_iter().filter(|test| test.len() > MAX_TEST_NAME);
        hits.extend(long.map(|test| format!("{name}: {test} has {} characters", test.len())));
    }
    assert!(hits.is_empty(), "{}", hits.join("\n"));
}

#[test]
fn retired_types_do_not_return() {
    let retired = Regex::new(RETIRED_TYPE).unwrap();
    assert!(retired.is_match("pub enum Flow {"));
    for file in files(&["src", "crates"]) {
        let text = std::fs::read_to_string(&file).unwrap();
        let found = retired.find(&text).map(|found| found.as_str());
        assert_eq!(found, None, "{}", file.display());
    }
}

#[test]
fn old_sentences_are_found() {
    let phrases = phrases();
    let text = std::fs::read_to_string(root().join("xtask/tests/tree/old.txt")).unwrap();
    for line in text.lines() {
        assert!(excluded(&phrases, line).next().is_some(), "passes: {line}");
    }
    for (pattern, _) in &phrases {
        assert!(pattern.is_match(&text), "no sentence for {pattern}");
    }
    assert!(
        Regex::new(BARE_CONSTANT)
            .unwrap()
            .is_match(&format!("const {}: usize = 1;", "MOST"))
    );
    assert_eq!(
        test_names("#[test]\n#[expect(unused)]\nfn name_of_a_test() {}"),
        ["name_of_a_test"]
    );
}

#[test]
fn readme_fits_two_screens() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let lines = text.lines().count();
    assert!(lines <= 110, "README.md has {lines} lines; 110 is the limit");
}
