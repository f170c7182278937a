//! The headers compile strictly as C and C++, with the layouts of the shipped ones.

use crate::place::{compile, includes, libraries, package};

/// Compiles a source only for its messages.
fn accept(compiler: &str, source: &str, standard: &str, more: &[&str]) {
    let mut words: Vec<String> = [standard, "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        .map(String::from)
        .to_vec();
    words.extend(includes());
    words.extend(more.iter().copied().map(String::from));
    words.push(package().join("tests/c").join(source).display().to_string());
    compile(compiler, &words).unwrap();
}

/// The available compilers of a language, several major versions if installed.
fn compilers(names: &[&'static str]) -> Vec<&'static str> {
    let is_here = |name: &&str| std::process::Command::new(name).arg("--version").output().is_ok();
    names.iter().copied().filter(is_here).collect()
}

const C: [&str; 7] = ["cc", "gcc-11", "gcc-12", "gcc-13", "gcc-14", "clang", "clang-15"];
const CXX: [&str; 7] = ["c++", "g++-11", "g++-12", "g++-13", "g++-14", "clang++", "clang++-15"];

#[test]
fn the_headers_compile_for_c() {
    if libraries().is_none() {
        return;
    }
    for compiler in compilers(&C) {
        for standard in ["-std=gnu99", "-std=c11", "-std=gnu17"] {
            accept(compiler, "layout.c", standard, &[]);
        }
    }
}

#[test]
fn the_headers_compile_for_cpp() {
    if libraries().is_none() {
        return;
    }
    for compiler in compilers(&CXX) {
        for standard in ["-std=c++11", "-std=c++17", "-std=c++20"] {
            accept(compiler, "layout.c", standard, &["-x", "c++"]);
        }
    }
}

#[test]
fn headers_compile_with_hsa_and_hip() {
    if libraries().is_none() || !std::path::Path::new("/usr/include/hip/hip_runtime_api.h").exists() {
        eprintln!("skipped: needs the headers of HIP and HSA");
        return;
    }
    let platform = "-D__HIP_PLATFORM_AMD__";
    let more = [platform];
    for compiler in compilers(&C) {
        accept(compiler, "run_times.c", "-std=gnu11", &more);
    }
    for compiler in compilers(&CXX) {
        accept(compiler, "run_times.c", "-std=c++17", &[platform, "-x", "c++"]);
    }
}
