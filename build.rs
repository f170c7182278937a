//! Builds the collector and lets the viewer embed it, so that there is one file to carry.
//!
//! A second cargo builds package `roctop-preload` in a target directory of its own (in the outer one it would wait for
//! the lock for ever), from the same lock file. `ROCTOP_PRELOAD_SO` names a finished library instead: clippy, doc and
//! tests use it to build the collector once; an empty file (`/dev/null`) embeds none.

use std::path::{Path, PathBuf};
use std::process::Command;

const OVERRIDE: &str = "ROCTOP_PRELOAD_SO";

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-env-changed={OVERRIDE}");
    println!("cargo::rerun-if-changed=build.rs");
    let library = match std::env::var_os(OVERRIDE) {
        Some(path) => {
            let path = PathBuf::from(path);
            println!("cargo::rerun-if-changed={}", path.display());
            path
        }
        None => build(&root),
    };
    println!("cargo::rustc-env=ROCTOP_COLLECTOR={}", library.display());
}

fn build(root: &Path) -> PathBuf {
    for watched in ["preload", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    let target = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("collector");
    let triple = std::env::var("TARGET").expect("cargo sets TARGET");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo.args([
        "build",
        "--package",
        "roctop-preload",
        "--lib",
        "--profile",
        "collector",
        "--locked",
    ]);
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
    assert!(done.success(), "the collector (package roctop-preload) did not build");
    target.join(triple).join("collector").join("libroctop_preload.so")
}
