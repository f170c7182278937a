//! `cargo xtask TASK`: tasks of those who work on roctop.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use xtask::hip_diff;

const USAGE: &str = "\
usage: cargo xtask hip-diff PATH...

Compares the rows of HIP, RCCL and HSA functions with a release: PATH is a header (hip_runtime_api.h, hip_api_trace.hpp,
rccl's api_trace.h, hsa_api_trace.h) or a library (libamdhip64.so, librccl.so, libhsa-runtime64.so). Prints functions that
are new, gone, or at another place or of another signature. Exit code 1: something is new or differs.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["hip-diff", paths @ ..] = words.as_slice() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if paths.is_empty() || paths.iter().any(|path| path.starts_with('-')) {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let mut is_same = true;
    for path in paths {
        match hip_diff::of(Path::new(path)) {
            Ok(difference) => {
                print!("{path}: {difference}");
                is_same &= difference.is_covered();
            }
            Err(reason) => {
                eprintln!("{path}: {reason}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::from(u8::from(!is_same))
}
