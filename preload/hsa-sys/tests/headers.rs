//! Compares the functions and layouts here with the headers of the releases on this machine: the installed one and
//! those that `tests/runtimes/fetch` unpacked. Needs a C++ compiler; without headers or compiler it says so and passes.

#![expect(clippy::unwrap_used, reason = "a test fails where something is missing")]

use hsa_sys::function::{self, Function};
use hsa_sys::table::AmdLayout;
use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directories with headers.
fn headers() -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let unpacked = std::env::var_os("ROCTOP_RUNTIMES").map(PathBuf::from);
    let unpacked = unpacked.or_else(|| Some(cache?.join("roctop-runtimes")));
    let releases = unpacked.and_then(|path| std::fs::read_dir(path).ok());
    let mut found = vec![PathBuf::from("/usr/include/hsa")];
    found.extend(
        releases
            .into_iter()
            .flatten()
            .flatten()
            .map(|release| release.path().join("usr/include/hsa")),
    );
    found.retain(|path| path.join("hsa_api_trace.h").exists());
    found
}

/// Counts words of stack arguments by the rules of the System V calling convention.
const COUNT: &str = r"
template <class R, class... A> constexpr int words(R (*)(A...)) {
  int registers = 0, words = 0;
  const unsigned long sizes[] = {sizeof(A)..., 0};
  for (unsigned long size : sizes) {
    int need = (size + 7) / 8;
    if (size <= 16 && registers + need <= 6) registers += need; else words += need;
  }
  return words;
}
template <class R, class... A> constexpr bool is_status(R (*)(A...)) { return std::is_same<R, hsa_status_t>::value; }
template <class R, class... A> constexpr bool has_float(R (*)(A...)) {
  const bool floats[] = {std::is_floating_point<A>::value..., false};
  for (bool one : floats) if (one) return true;
  return false;
}
";

/// Assertions on the function in entry `entry` of a table, for tables that have this entry.
fn assertion(text: &mut String, table: &str, entry: usize, function: &Function) {
    let (name, words) = (function.name, function.stack_words);
    let (status, end) = (function.has_status, 24 + 8 * entry);
    writeln!(
        text,
        "static_assert(offsetof({table}, {name}_fn) == {end} - 8, \"{name}\");\n\
         static_assert(is_status((decltype(&{name}))0) == {status}, \"{name}\");\n\
         static_assert(words((decltype(&{name}))0) == {words}, \"{name}\");\n\
         static_assert(!has_float((decltype(&{name}))0), \"{name}\");"
    )
    .unwrap();
}

/// Size of a table in bytes, in these headers.
fn size(folder: &Path, table: &str) -> usize {
    let text = "#include <hsa/hsa.h>\n#include <hsa/hsa_api_trace.h>\n#include <cstdio>\n";
    let source = folder.join("size.cc");
    std::fs::write(
        &source,
        format!("{text}int main() {{ printf(\"%zu\", sizeof({table})); }}\n"),
    )
    .unwrap();
    compile(folder, &source, &["-o", folder.join("size").to_str().unwrap()]);
    let output = Command::new(folder.join("size")).output().unwrap();
    String::from_utf8(output.stdout).unwrap().parse().unwrap()
}

fn compile(folder: &Path, source: &Path, arguments: &[&str]) {
    let mut command = Command::new("c++");
    let command = command
        .args(["-std=c++17", "-w", "-DAMD_INTERNAL_BUILD", "-I"])
        .arg(folder);
    let result = command.arg(source).args(arguments).output().unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
}

fn agrees(headers: &Path) {
    let name = headers.to_string_lossy().replace('/', "-");
    let folder = std::env::temp_dir().join(format!("roctop-headers-{}{name}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    symlink(headers, folder.join("hsa")).unwrap();
    let mut text = String::from(
        "#include <hsa/hsa.h>\n#include <hsa/hsa_api_trace.h>\n#include <cstddef>\n#include <type_traits>\n",
    );
    text.push_str(COUNT);
    let layout = AmdLayout::of_size(size(&folder, "AmdExtTable"));
    for (table, functions) in [
        ("CoreApiTable", &function::CORE[..]),
        ("AmdExtTable", &function::AMD[..]),
        ("ImageExtTable", &function::IMAGE[..]),
        ("FinalizerExtTable", &function::FINALIZER[..]),
    ] {
        let entries = (size(&folder, table) - 16) / 8;
        for entry in 0..entries {
            let function = if table == "AmdExtTable" {
                function::amd(layout, entry)
            } else {
                functions.get(entry)
            };
            let function =
                function.unwrap_or_else(|| panic!("{table} has an unknown entry {entry}: {}", headers.display()));
            assertion(&mut text, table, entry, function);
        }
    }
    let source = folder.join("test.cc");
    std::fs::write(&source, text).unwrap();
    compile(&folder, &source, &["-fsyntax-only"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn table_matches_the_headers() {
    let found = headers();
    if found.is_empty() || Command::new("c++").arg("--version").output().is_err() {
        eprintln!("skipped: needs HSA's headers and a C++ compiler");
        return;
    }
    for headers in found {
        agrees(&headers);
    }
}
