//! Documents use plain English: words and turns that CONTRIBUTING.md excludes do not come back.
//!
//! The list of files grows as they are rewritten; a file never leaves it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use regex::Regex;
use std::path::Path;

/// Files that are written in the style of CONTRIBUTING.md.
const REWRITTEN: [&str; 14] = [
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs/README.md",
    "docs/first-five-minutes.md",
    "docs/from-rocprofv3.md",
    "docs/hardware.md",
    "docs/install.md",
    "docs/overhead.md",
    "docs/recipes.md",
    "docs/security.md",
    "docs/troubleshooting.md",
    "docs/verification.md",
    "tests/words.rs",
];

/// Excluded turns, each with what to write instead.
const EXCLUDED: [(&str, &str); 9] = [
    (r"\b(is|are|was|were|be) to[l]d\b", "reported, printed, shown"),
    (r"\bane[w]\b", "again"),
    (r"\bwho[e]ver\b", "name the actor"),
    (r"\bso m[a]ny (of|records|calls|slots|bytes|ns)\b", "n records"),
    (r"\bof (its|their) ow[n]\b", "separate, own"),
    (r"\b(lies|lie) (in|at|below|beside|on)\b", "is in"),
    (r"\bhow far it i[s]\b", "progress"),
    (r"\bof a lia[r]\b", "corrupt, hostile"),
    (r"\btells? (the|what|how|that|who)\b", "reports, shows"),
];

fn excluded_turns(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (pattern, instead) in EXCLUDED {
        let pattern = Regex::new(&format!("(?i){pattern}")).unwrap();
        for (number, line) in text.lines().enumerate() {
            if let Some(hit) = pattern.find(line) {
                found.push(format!("{}: \"{}\": write {instead}", number + 1, hit.as_str()));
            }
        }
    }
    found
}

#[test]
fn rewritten_files_stay_plain() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for name in REWRITTEN {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        found.extend(excluded_turns(&text).iter().map(|hit| format!("{name}:{hit}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn excluded_turns_are_found() {
    assert_eq!(
        excluded_turns("The error is to\u{6c}d.\nAgain.\nIt is done ane\u{77}.").len(),
        2
    );
}

#[test]
fn readme_fits_two_screens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("README.md")).unwrap();
    let lines = text.lines().count();
    assert!(lines <= 110, "README.md has {lines} lines; 110 is the limit");
}
