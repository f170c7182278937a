//! Kernel names are those of `__cxa_demangle`, to the last character.

use roctop::kernel_name::demangle;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's libraries with kernels, and the release whose suite has them.
const LIBRARIES: [&str; 4] = ["librocrand1", "librocfft0", "libggml0-backend-hip", "librocblas4"];
const RELEASE: &str = "6.4.3";

#[test]
fn names_of_real_kernels_are_exact() {
    let lines: Vec<&str> = include_str!("kernel_names/names.txt").lines().collect();
    assert!(lines.len() > 300);
    for pair in lines.chunks(2) {
        assert_eq!(demangle(pair[0]), pair[1], "{}", pair[0]);
    }
}

#[test]
fn names_that_are_not_cxx_stay() {
    let long = format!("_Z{}{}v", 1100, "a".repeat(1100));
    let plain = [
        "f",
        "i",
        "foo.kd",
        "saxpy_",
        "_ZN",
        "_Z3fooi.kd$",
        "__amd_rocclr_copyBuffer",
        "Cijk_Ailk_Bljk",
        &long,
    ];
    for name in plain {
        assert_eq!(demangle(name), name);
    }
    assert_eq!(demangle("_Z3fooi.kd"), "foo(int) [clone .kd]");
}

#[test]
fn hostile_names_take_little_time_and_stack() {
    for part in [
        "P", "N", "Z", "I", "X", "F", "DT", "LZ", "M", "A_", "U1aI", "Dp", "sp", "cvT_", "ZN1aC1E",
    ] {
        let name = format!("_Z1f{}", part.repeat(1000 / part.len()));
        assert_eq!(demangle(&name), name);
    }
    // Each name of a pack is the whole pack before: nothing is written, in very many steps.
    let mut doubled = "_Z1fIJEEv".to_owned();
    for _ in 0..60 {
        doubled.push_str("1AIDpT_DpT_E");
    }
    assert!(demangle(&doubled).len() < 1 << 16);
}

/// All strings that look like C++ symbols, in a file of any kind: code objects lie uncompressed in libraries.
fn symbols(path: &Path, found: &mut BTreeSet<String>) {
    let mut reader = BufReader::with_capacity(1 << 20, std::fs::File::open(path).unwrap());
    let mut part = Vec::new();
    // A string in a table has no end within a page; what is longer than a symbol can be is skipped.
    while reader.by_ref().take(1 << 20).read_until(0, &mut part).unwrap() > 0 {
        if part.pop() == Some(0)
            && part.starts_with(b"_Z")
            && part.iter().all(u8::is_ascii_graphic)
            && let Ok(symbol) = str::from_utf8(&part)
        {
            found.insert(symbol.to_owned());
        }
        part.clear();
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

/// The names by the C++ library in a prefix, which is newer than this machine's.
fn truth(prefix: &Path, symbols: &BTreeSet<String>) -> Vec<String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (helper, input) = (folder.join("kernel-names-truth"), folder.join("kernel-names-symbols"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/kernel_names/truth.cc");
    let made = Command::new("g++")
        .args(["-O2", "-o"])
        .arg(&helper)
        .arg(source)
        .status()
        .unwrap();
    assert!(made.success());
    let lines: Vec<&str> = symbols.iter().map(String::as_str).collect();
    std::fs::write(&input, lines.join("\n") + "\n").unwrap();
    let output = Command::new(prefix.join("usr/lib64/ld-linux-x86-64.so.2"))
        .arg("--library-path")
        .arg(prefix.join("usr/lib/x86_64-linux-gnu"))
        .arg(&helper)
        .stdin(std::fs::File::open(&input).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
#[ignore = "downloads half a gigabyte of libraries; .ci/matrix runs it"]
fn names_of_all_symbols_of_libraries_are_exact() {
    for library in LIBRARIES {
        let fetched = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/runtimes/fetch"))
            .args(["--and", library, RELEASE])
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        if fetched.status.code() == Some(77) {
            println!("skipped: no apt on this machine");
            return;
        }
        assert!(fetched.status.success(), "{library}");
        let prefix = String::from_utf8(fetched.stdout).unwrap();
        let prefix = Path::new(prefix.lines().last().unwrap());
        let (mut paths, mut found) = (Vec::new(), BTreeSet::new());
        files(&prefix.join("usr/lib"), &mut paths);
        for path in &paths {
            symbols(path, &mut found);
        }
        let names = truth(prefix, &found);
        assert_eq!(names.len(), found.len(), "{library}");
        let differ: Vec<(&String, &String)> = found
            .iter()
            .zip(&names)
            .filter(|(symbol, name)| demangle(symbol) != **name)
            .collect();
        println!("{library}: {} symbols compared, {} differ", found.len(), differ.len());
        // Names of C++ modules are not read.
        let differ: Vec<_> = differ
            .iter()
            .filter(|(symbol, _)| !symbol.starts_with("_ZGI"))
            .collect();
        assert!(
            differ.is_empty(),
            "{library}: {} differ, {:?}",
            differ.len(),
            &differ[..differ.len().min(3)]
        );
        assert!(found.len() > 100, "{library}: {} symbols", found.len());
    }
}
