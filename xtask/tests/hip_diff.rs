//! `cargo xtask hip-diff` on a small header and on the releases of this machine: the installed one and those that
//! `tests/runtimes/fetch` unpacked. Without any, the second test says so and passes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use hip_functions::signature::{self, ArgumentLocation};
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::hip_diff;

fn xtask(path: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let output = command.arg("hip-diff").arg(path).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn new_moved_and_changed_functions_are_faults() {
    let path = file(
        "new_release.hpp",
        "typedef hipError_t (*t_hipArray3DCreate)(hipArray_t* array, const HIP_ARRAY3D_DESCRIPTOR* description);\n\
         typedef hipError_t (*t_hipMalloc)(void** ptr, unsigned int size);\n\
         typedef hipError_t (*t_hipFromTheFuture)(hipStream_t stream, int speed);\n\
         struct HipDispatchTable {\n  size_t size;\n  t_hipApiName hipApiName_fn;\n  t_hipMalloc hipMalloc_fn;\n\
         t_hipFromTheFuture hipFromTheFuture_fn;\n};\n",
    );
    let found = hip_diff::of(&path).unwrap();
    let new = ("hipFromTheFuture", "hipError_t(hipStream_t stream, int speed)");
    assert_eq!(found.new, [(new.0.to_owned(), new.1.to_owned())]);
    assert_eq!(found.changed.len(), 1, "{found}");
    assert_eq!(found.changed[0].0, "hipMalloc");
    let moved: Vec<_> = found
        .moved
        .iter()
        .map(|(_, entry, row, file)| (*entry, &**row, &**file))
        .collect();
    let wanted = [
        (1, "hipArray3DCreate", "hipMalloc"),
        (2, "hipArray3DGetDescriptor", "hipFromTheFuture"),
    ];
    assert_eq!(moved, wanted);
    assert!(found.gone.contains(&"hipFree".to_owned()));
    let (code, text) = xtask(&path);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("new      hipFromTheFuture hipError_t(hipStream_t stream, int speed)"),
        "{text}"
    );
}

#[test]
fn known_functions_are_no_fault() {
    let path = file(
        "old_release.h",
        "hipError_t hipMalloc(void** p, size_t n);\nhipError_t hipFree(void* p);\n",
    );
    let (code, text) = xtask(&path);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("2 functions: 0 new, 0 moved, 0 changed"), "{text}");
    assert_eq!(xtask(&file("nothing.h", "int main(void);\n")).0, Some(2));
}

/// Where releases are: `/`, and what was unpacked.
fn roots() -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let unpacked = std::env::var_os("ROCTOP_RUNTIMES").map(PathBuf::from);
    let unpacked = unpacked.or_else(|| Some(cache?.join("roctop-runtimes")));
    let releases = unpacked.and_then(|path| std::fs::read_dir(path).ok());
    let releases = releases.into_iter().flatten().flatten().map(|entry| entry.path());
    std::iter::once(PathBuf::from("/")).chain(releases).collect()
}

/// Release 6.4's hip_runtime_api.h declares this function with the parameters of another one.
const MISDECLARED: &str = "hipDeviceGetTexture1DLinearMaxWidth";

/// Where the arguments of a signature are, what of the stack they take, and where the stream is.
fn places(signature: &str) -> (Vec<ArgumentLocation>, u8, Option<ArgumentLocation>) {
    let mut parameters = signature::parameters(signature);
    let all: Vec<_> = parameters.by_ref().collect();
    let stream = all.iter().find(|one| one.kind == "hipStream_t").map(|one| one.place);
    let places = all.into_iter().map(|one| one.place).collect();
    (places, parameters.stack_words(), stream)
}

#[test]
fn no_release_has_a_function_without_a_row() {
    let mut compared = 0;
    for root in roots() {
        let headers = [
            "hip/hip_runtime_api.h",
            "hip/amd_detail/hip_api_trace.hpp",
            "hsa/hsa_api_trace.h",
        ];
        let libraries = ["libamdhip64.so", "librccl.so", "libhsa-runtime64.so"];
        let headers = headers.iter().map(|name| root.join("usr/include").join(name));
        let libraries = libraries
            .iter()
            .map(|name| root.join("usr/lib/x86_64-linux-gnu").join(name));
        for path in headers.chain(libraries).filter(|path| path.exists()) {
            let found = hip_diff::of(&path).unwrap();
            assert_eq!(
                (found.new.len(), found.moved.len()),
                (0, 0),
                "{}: {found}",
                path.display()
            );
            // Types were renamed over the years; arguments are where they were.
            for (name, row, file) in found.changed.iter().filter(|(name, ..)| name != MISDECLARED) {
                assert_eq!(places(row), places(file), "{}: {name}", path.display());
            }
            compared += 1;
        }
    }
    if compared == 0 {
        println!("skipped: needs headers or libraries of ROCm");
    }
}
