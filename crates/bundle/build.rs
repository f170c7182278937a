//! Builds the programs and libraries that the viewer embeds, so that there is one file to carry.
//!
//! A second cargo builds their packages in a separate target directory (in the outer one it would wait for the lock for
//! ever), from the same lock file. The variable of a row in [`BUILT`] names a finished file instead: clippy, doc and tests
//! use it to build the collector once; an empty file (`/dev/null`) embeds none. `ROCTOP_DROP_IN` names a folder that
//! preload/roctracer/install filled. With a finished collector, nothing is built: what no other variable names is left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that one package builds.
struct Built {
    /// The name of the static with its bytes.
    name: &'static str,
    /// The variable that names a finished file.
    variable: &'static str,
    package: &'static str,
    /// Cargo's words for the target in the package.
    target: &'static [&'static str],
    file: &'static str,
}

const BUILT: &[Built] = &[
    Built {
        name: "COLLECTOR",
        variable: "ROCTOP_PRELOAD_SO",
        package: "roctop-preload",
        target: &["--lib"],
        file: "libroctop_preload.so",
    },
    Built {
        name: "GPU_CHECK",
        variable: "ROCTOP_GPU_CHECK",
        package: "roctop-gpu-check",
        target: &["--bin", "gpu-check"],
        file: "gpu-check",
    },
];

const COLLECTOR_VARIABLE: &str = BUILT[0].variable;
const DROP_IN_VARIABLE: &str = "ROCTOP_DROP_IN";
/// What the drop-in libraries are linked and installed from, beside their archives.
const DROP_IN_PARTS: &[&str] = &[
    "preload/roctracer/link",
    "preload/roctracer/install",
    "preload/roctracer/exports.map",
    "preload/roctracer/include",
    "preload/roctx/exports.map",
    "preload/roctx/exports-sdk.map",
    "preload/roctx/include",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let root = package
        .ancestors()
        .nth(2)
        .expect("crates/bundle is below the workspace");
    let is_finished = variable(COLLECTOR_VARIABLE).is_some();
    let mut text: String = BUILT.iter().map(|row| static_of(row, root, is_finished)).collect();
    let tree = match variable(DROP_IN_VARIABLE) {
        // A tree that others make is looked at by every build: cargo goes through all folders below. One that this script
        // makes must not be named, since cargo compares with the script's beginning and would always find it newer.
        Some(tree) => {
            watch(&tree);
            Some(tree)
        }
        None if is_finished => None,
        None => Some(drop_in(root)),
    };
    text.push_str(&statics_of_tree(tree.as_deref()));
    std::fs::write(out().join("built.rs"), text).expect("OUT_DIR can be written");
}

fn variable(name: &str) -> Option<PathBuf> {
    println!("cargo::rerun-if-env-changed={name}");
    std::env::var_os(name).map(PathBuf::from)
}

fn out() -> PathBuf {
    PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"))
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

/// A path in Rust source, quoted and escaped.
fn quoted(path: &Path) -> String {
    format!("{:?}", path.to_str().expect("a path in UTF-8"))
}

/// The source of the static of one row.
fn static_of(row: &Built, root: &Path, is_finished: bool) -> String {
    let bytes = match variable(row.variable) {
        Some(file) => {
            watch(&file);
            format!("include_bytes!({})", quoted(&file))
        }
        None if is_finished => "&[]".into(),
        None => {
            let folder = build(root, &[row.package], row.target);
            watch_sources(root, &[folder.join(row.file)]);
            format!("include_bytes!({})", quoted(&folder.join(row.file)))
        }
    };
    format!("pub(crate) static {}: &[u8] = {bytes};\n", row.name)
}

/// Builds the drop-in libraries' archives, links them and lays them out with their headers.
fn drop_in(root: &Path) -> PathBuf {
    let archives = build(root, &["roctop-roctracer", "roctop-roctx"], &["--lib"]);
    watch_sources(
        root,
        &["libroctop_roctracer.a", "libroctop_roctx.a"].map(|name| archives.join(name)),
    );
    for part in DROP_IN_PARTS {
        watch(&root.join(part));
    }
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
        .arg(&archives)
        .arg(&linked)
        .env("CC", compiler));
    run(Command::new(scripts.join("install"))
        .arg(&linked)
        .arg(&tree)
        .env_remove("DESTDIR"));
    tree
}

/// The source of the lists of files and links of the drop-in tree.
fn statics_of_tree(tree: Option<&Path>) -> String {
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
    format!(
        "pub(crate) static FILES: &[(&str, &[u8])] = &[\n{}];\npub(crate) static LINKS: &[(&str, &str)] = &[\n{}];\n",
        files.concat(),
        links.concat()
    )
}

/// Builds targets of packages in preload/; returns the folder with the files.
fn build(root: &Path, packages: &[&str], targets: &[&str]) -> PathBuf {
    let target = out().join("collector");
    let triple = std::env::var("TARGET").expect("cargo sets TARGET");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
        .args(["build", "--profile", "collector", "--locked"])
        .args(targets);
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
        .unwrap_or_else(|error| panic!("cannot start cargo for {}: {error}", packages.join(", ")));
    assert!(done.success(), "{} did not build", packages.join(", "));
    target.join(triple).join("collector")
}

/// Watches the sources that files were built from, as the compiler listed them, and the manifests of their packages. Tests
/// and benches of the same packages are not among them.
fn watch_sources(root: &Path, files: &[PathBuf]) {
    let mut watched: BTreeSet<PathBuf> = ["Cargo.toml", "Cargo.lock"].map(|name| root.join(name)).into();
    for file in files {
        let list = file.with_extension("d");
        let text = std::fs::read_to_string(&list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
        let (_, sources) = text.split_once(": ").expect("a rule of make");
        // A blank of a name is escaped.
        for source in sources.trim_end().replace("\\ ", "\0").split(' ') {
            let source = PathBuf::from(source.replace('\0', " "));
            let manifest = source
                .ancestors()
                .map(|folder| folder.join("Cargo.toml"))
                .find(|manifest| manifest.exists());
            watched.extend(manifest);
            watched.insert(source);
        }
    }
    for path in watched {
        watch(&path);
    }
}
