//! Sonames, version nodes and symbols of the libraries equal those of the shipped ones.

use crate::place::{libraries, package, text};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn read(tool: &str, words: &[&str], library: &Path) -> Option<String> {
    let output = Command::new(tool).args(words).arg(library).output().ok()?;
    assert!(output.status.success(), "{tool}: {}", text(&output));
    Some(text(&output))
}

/// `name@@NODE` of every symbol that the library defines, without the nodes themselves.
fn defined(library: &Path) -> Option<BTreeSet<String>> {
    let table = read(
        "nm",
        &["--dynamic", "--defined-only", "--with-symbol-versions"],
        library,
    )?;
    let symbols = table.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        (words.next()? != "A").then(|| words.next().map(str::to_owned))?
    });
    Some(symbols.collect())
}

fn check(library: &str, soname: &str, expected: &str) {
    let Some(folder) = libraries() else { return };
    let library = folder.join(library);
    let Some(found) = defined(&library) else {
        eprintln!("skipped: needs nm");
        return;
    };
    let listed = std::fs::read_to_string(package().join("tests").join(expected)).unwrap();
    let expected: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    assert_eq!(found, expected);
    let dynamic = read("readelf", &["--dynamic", "--wide"], &library).unwrap();
    assert!(dynamic.contains(&format!("soname: [{soname}]")), "{dynamic}");
    // It runs wherever the shipped one runs: it needs only the C library and the compiler's.
    for needed in dynamic.lines().filter(|line| line.contains("(NEEDED)")) {
        let is_known = [
            "libc.so.6",
            "libgcc_s.so.1",
            "ld-linux-x86-64.so.2",
            "libpthread.so.0",
            "libdl.so.2",
        ]
        .iter()
        .any(|name| needed.contains(name));
        assert!(is_known, "{needed}");
    }
}

#[test]
fn roctracer_symbols_equal_the_shipped_library() {
    check("libroctracer64.so", "libroctracer64.so.4", "symbols-roctracer.txt");
}

#[test]
fn roctx_symbols_equal_the_shipped_library() {
    check("libroctx64.so", "libroctx64.so.4", "symbols-roctx.txt");
}

#[test]
fn the_newer_roctx_has_its_symbols() {
    check(
        "librocprofiler-sdk-roctx.so",
        "librocprofiler-sdk-roctx.so.1",
        "symbols-sdk-roctx.txt",
    );
}
