//! The tree is the architecture: ARCHITECTURE.md's table names what is there, and modules keep the field's names.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::path::Path;

/// Names that modules had, each with what to use instead.
const RETIRED: [(&str, &str); 26] = [
    ("pump", "ingest"),
    ("keeper", "pty_keeper"),
    ("fate", "exit_cause"),
    ("death", "reraise"),
    ("now", "clocks"),
    ("wake", "waker"),
    ("misuse", "usage_error"),
    ("desk", "effects"),
    ("registers", "kernel_descriptor"),
    ("others", "lane_eviction"),
    ("since", "delta"),
    ("shape", "launch_config"),
    ("fast", "fx_hash"),
    ("values", "rows"),
    ("under", "range_attribution"),
    ("count", "apply, histogram_delta or counters"),
    ("counting", "counters or since_mark"),
    ("measured", "sample_streams"),
    ("part", "widgets"),
    ("way", "direction"),
    ("scrub", "timeline_nav"),
    ("guard", "throttle"),
    ("left", "orphans"),
    ("utils", "the name of what it does"),
    ("place", "path, placement or affinity"),
    ("list_id", "tab"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The entries of a folder, `.rs` left off, without the crate's two roots.
fn entries(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["lib.rs", "main.rs"].contains(&name.as_str()))
        .map(|name| format!("{folder}/{}", name.trim_end_matches(".rs")))
        .collect()
}

/// The first column of the table of rooms, by words in backticks.
fn rooms() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, rooms) = text.split_once("\n## Rooms\n").unwrap();
    let (rooms, _) = rooms.split_once("\n## ").unwrap();
    let cells = rooms
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned))
        .collect()
}

#[test]
fn table_of_rooms_is_the_tree() {
    let named = rooms();
    for folder in ["crates", "src"] {
        let named: BTreeSet<String> = named
            .iter()
            .filter(|room| room.starts_with(&format!("{folder}/")))
            .cloned()
            .collect();
        assert_eq!(named, entries(folder), "ARCHITECTURE.md (left) and the tree (right)");
    }
    for room in named {
        let path = root().join(&room);
        assert!(
            path.exists() || path.with_extension("rs").exists(),
            "{room} is not there"
        );
    }
}

fn visit(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if let Some((_, instead)) = RETIRED.iter().find(|(retired, _)| *retired == name) {
            found.push(format!(
                "{}: use {instead}",
                path.strip_prefix(root()).unwrap().display()
            ));
        }
        if path.is_dir() {
            visit(&path, found);
        }
    }
}

#[test]
fn retired_module_names_stay_away() {
    let mut found = Vec::new();
    for folder in ["crates", "src"] {
        visit(&root().join(folder), &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn libraries_have_typed_errors() {
    for library in ["trace", "source", "model", "export", "tui"] {
        let manifest = root().join("crates").join(library).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        assert!(!text.contains("anyhow"), "{}", manifest.display());
    }
}
