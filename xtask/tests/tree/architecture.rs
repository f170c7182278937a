//! The tree is the architecture: ARCHITECTURE.md's table names what is there, and modules keep the field's names.

use crate::root;
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

/// The same of the collector.
const RETIRED_IN_COLLECTOR: [(&str, &str); 5] = [
    ("lap", "ring_wrap"),
    ("room", "backpressure or budget"),
    ("line", "clock_interpolation"),
    ("place", "affinity or copy_slots"),
    ("end", "shutdown_hook"),
];

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

fn visit(folder: &Path, retired: &[(&str, &str)], found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if let Some((_, instead)) = retired.iter().find(|(retired, _)| *retired == name) {
            found.push(format!(
                "{}: use {instead}",
                path.strip_prefix(root()).unwrap().display()
            ));
        }
        if path.is_dir() {
            visit(&path, retired, found);
        }
    }
}

#[test]
fn retired_module_names_stay_away() {
    let mut found = Vec::new();
    for folder in ["crates", "src"] {
        visit(&root().join(folder), &RETIRED, &mut found);
    }
    for folder in ["preload/core/src", "preload/src"] {
        visit(&root().join(folder), &RETIRED_IN_COLLECTOR, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The packages of this workspace, each with those of them that it may depend on. What stands above knows nothing of what
/// stands below: the collector's core no back-end, the model no file, exports no terminal, the screen no database.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("preload/ring", &[]),
    ("preload/gate", &[]),
    ("preload/hsa-sys", &[]),
    ("preload/hip-functions", &[]),
    ("preload/hip-sys", &["hip-functions"]),
    ("preload/code-object", &[]),
    ("preload/core", &["roctop-ring"]),
    (
        "preload",
        &[
            "roctop-code-object",
            "roctop-collector",
            "roctop-ring",
            "gate",
            "hsa-sys",
            "hip-sys",
        ],
    ),
    ("preload/gpu-check", &["hsa-sys"]),
    ("preload/roctx", &[]),
    ("preload/roctracer", &["gate", "hsa-sys", "hip-sys"]),
    ("crates/trace", &["roctop-ring", "hip-functions"]),
    ("crates/source", &["roctop-ring", "roctop-trace"]),
    ("crates/model", &["roctop-ring", "roctop-trace"]),
    (
        "crates/export",
        &[
            "hip-functions",
            "roctop-ring",
            "roctop-trace",
            "roctop-source",
            "roctop-model",
        ],
    ),
    ("crates/foreign", &["roctop-trace"]),
    ("crates/tui", &["roctop-ring", "roctop-trace", "roctop-model"]),
    ("crates/scenario", &["roctop-ring", "roctop-trace", "roctop-model"]),
    ("crates/job", &["roctop-ring"]),
    ("crates/unwind", &["roctop-trace"]),
    ("crates/bundle", &[]),
    ("crates/signals", &[]),
    ("tests/emulated-gpu", &[]),
    ("xtask", &["hip-functions", "hip-sys", "hsa-sys"]),
];

/// Names of crates that packages of the collector may use in addition to those of this workspace.
const COLLECTOR_USES: [&str; 3] = ["libc", "memmap2", "bytemuck"];

/// The names under `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let table: toml::Table = manifest.parse().unwrap();
    let found = table.get("dependencies").and_then(toml::Value::as_table);
    found.into_iter().flat_map(toml::Table::keys).cloned().collect()
}

/// The folders of the workspace's packages but the binary's.
fn packages(workspace: &toml::Table) -> BTreeSet<String> {
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let members = members.iter().map(|member| member.as_str().unwrap());
    let expand = |member: &str| match member.strip_suffix("/*") {
        Some(folder) => entries(folder),
        None => BTreeSet::from([member.to_owned()]),
    };
    members.filter(|member| *member != ".").flat_map(expand).collect()
}

#[test]
fn packages_depend_downward_only() {
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let workspace: toml::Table = workspace.parse().unwrap();
    let shared = workspace["workspace"]["dependencies"].as_table().unwrap();
    let is_ours = |name: &str| shared.get(name).is_some_and(|value| value.get("path").is_some());
    let placed = MAY_DEPEND_ON.iter().map(|(folder, _)| (*folder).to_owned());
    assert_eq!(placed.collect::<BTreeSet<_>>(), packages(&workspace));
    for (folder, allowed) in MAY_DEPEND_ON {
        let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        for name in dependencies(&manifest) {
            let is_allowed = if is_ours(&name) {
                allowed.contains(&name.as_str())
            } else {
                !folder.starts_with("preload") || COLLECTOR_USES.contains(&name.as_str())
            };
            assert!(is_allowed, "{folder} must not depend on {name}");
        }
    }
}

#[test]
fn libraries_have_typed_errors() {
    for library in ["trace", "source", "model", "export", "tui", "job", "unwind"] {
        let manifest = root().join("crates").join(library).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        assert!(!text.contains("anyhow"), "{}", manifest.display());
    }
}
