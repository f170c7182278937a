//! Builds the collector and the drop-in libraries and lets the viewer embed them, so that there is one file to carry.
//!
//! A second cargo builds their packages in a target directory of its own (in the outer one it would wait for the lock for
//! ever), from the same lock file. `ROCTOP_PRELOAD_SO` names a finished collector instead: clippy, doc and tests use it
//! to build the collector once; an empty file (`/dev/null`) embeds none. `ROCTOP_DROP_IN` names a folder that
//! preload/roctracer/install filled; with a finished collector and without this, no drop-in library is embedded.

use std::path::{Path, PathBuf};
use std::process::Command;

const OVERRIDE: &str = "ROCTOP_PRELOAD_SO";
const DROP_IN_OVERRIDE: &str = "ROCTOP_DROP_IN";

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-env-changed={OVERRIDE}");
    println!("cargo::rerun-if-env-changed={DROP_IN_OVERRIDE}");
    println!("cargo::rerun-if-changed=build.rs");
    let finished = std::env::var_os(OVERRIDE).map(PathBuf::from);
    let tree = match (std::env::var_os(DROP_IN_OVERRIDE).map(PathBuf::from), &finished) {
        (Some(tree), _) => {
            watch(&tree);
            Some(tree)
        }
        (None, Some(_)) => None,
        (None, None) => Some(drop_in(&root, &build(&root, &["roctop-roctracer", "roctop-roctx"]))),
    };
    embed(tree.as_deref());
    let library = match finished {
        Some(path) => {
            println!("cargo::rerun-if-changed={}", path.display());
            path
        }
        None => build(&root, &["roctop-preload"]).join("libroctop_preload.so"),
    };
    println!("cargo::rustc-env=ROCTOP_COLLECTOR={}", library.display());
}

fn out() -> PathBuf {
    PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"))
}

/// Links the drop-in libraries from their archives and lays them out with their headers.
fn drop_in(root: &Path, archives: &Path) -> PathBuf {
    let tree = out().join("drop-in");
    let _ = std::fs::remove_dir_all(&tree);
    let linked = out().join("linked");
    let triple = std::env::var("TARGET").expect("cargo sets TARGET").replace('-', "_");
    let compiler = [format!("CC_{triple}"), "TARGET_CC".into(), "CC".into()];
    let compiler = compiler
        .iter()
        .find_map(std::env::var_os)
        .unwrap_or_else(|| "cc".into());
    let scripts = root.join("preload/roctracer");
    let run = |command: &mut Command| {
        let done = command.status();
        assert!(done.is_ok_and(|done| done.success()), "{command:?} failed");
    };
    run(Command::new(scripts.join("link"))
        .arg(archives)
        .arg(&linked)
        .env("CC", compiler));
    run(Command::new(scripts.join("install"))
        .arg(&linked)
        .arg(&tree)
        .env_remove("DESTDIR"));
    tree
}

/// A tree that others make is looked at by every build: cargo goes through all folders below. One that this script has made
/// must not be named, since cargo compares with the script's beginning, and everything would be built anew each time.
fn watch(tree: &Path) {
    println!("cargo::rerun-if-changed={}", tree.display());
}

/// Writes the lists of files and links that the viewer embeds.
fn embed(tree: Option<&Path>) {
    // Paths go into Rust source, quoted and escaped.
    let quoted = |path: &Path| format!("{:?}", path.to_str().expect("a path in UTF-8"));
    let (mut files, mut links) = (Vec::new(), Vec::new());
    let mut folders: Vec<PathBuf> = tree.map(Path::to_owned).into_iter().collect();
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.expect("an entry of a folder that is being read").path())
            .collect();
        entries.sort();
        for path in entries {
            let name = path
                .strip_prefix(tree.expect("a folder of the tree"))
                .expect("below the tree");
            if let Ok(target) = std::fs::read_link(&path) {
                links.push(format!("    ({}, {}),\n", quoted(name), quoted(&target)));
            } else if path.is_dir() {
                folders.push(path);
            } else {
                files.push(format!("    ({}, include_bytes!({})),\n", quoted(name), quoted(&path)));
            }
        }
    }
    let (files, links) = (files.concat(), links.concat());
    let text =
        format!("static FILES: &[(&str, &[u8])] = &[\n{files}];\nstatic LINKS: &[(&str, &str)] = &[\n{links}];\n");
    std::fs::write(out().join("drop_in.rs"), text).expect("OUT_DIR can be written");
}

/// Builds packages of preload/; returns the folder with the libraries.
fn build(root: &Path, packages: &[&str]) -> PathBuf {
    for watched in ["preload", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    let target = out().join("collector");
    let triple = std::env::var("TARGET").expect("cargo sets TARGET");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo.args(["build", "--lib", "--profile", "collector", "--locked"]);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    cargo.arg("--target").arg(&triple).arg("--target-dir").arg(&target);
    // What the outer cargo set for this script must not steer the inner one.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let ours =
            name.starts_with("CARGO_FEATURE_") || name.starts_with("CARGO_CFG_") || name.starts_with("CARGO_PKG_");
        if ours
            || [
                "CARGO_ENCODED_RUSTFLAGS",
                "RUSTFLAGS",
                "CARGO_TARGET_DIR",
                "RUSTC_WORKSPACE_WRAPPER",
            ]
            .contains(&&*name)
        {
            cargo.env_remove(&*name);
        }
    }
    let done = cargo
        .status()
        .unwrap_or_else(|error| panic!("cannot start cargo for the collector: {error}"));
    assert!(done.success(), "{} did not build", packages.join(", "));
    target.join(triple).join("collector")
}
