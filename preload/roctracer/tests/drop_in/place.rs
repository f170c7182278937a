//! The test directory: libraries under test, and programs compiled for them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Directory of the package.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Output directory of this test run, emptied at its start.
pub(crate) fn room() -> &'static Path {
    static ROOM: OnceLock<PathBuf> = OnceLock::new();
    ROOM.get_or_init(|| {
        let room = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("drop-in-rules");
        let _ = std::fs::remove_dir_all(&room);
        std::fs::create_dir_all(&room).unwrap();
        room
    })
}

/// Directory with the libraries, linked once for all tests; `None`, with the reason printed, without a compiler.
pub(crate) fn libraries() -> Option<&'static Path> {
    static LIBRARIES: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = LIBRARIES.get_or_init(|| {
        if Command::new("cc").arg("--version").output().is_err() {
            eprintln!("skipped: needs a C compiler");
            return None;
        }
        let archives = room().join("archives");
        std::fs::create_dir_all(&archives).unwrap();
        for name in ["libroctop_roctracer", "libroctop_roctx"] {
            std::os::unix::fs::symlink(archive(name), archives.join(format!("{name}.a"))).unwrap();
        }
        let out = room().join("lib");
        let linked = Command::new(package().join("link"))
            .arg(&archives)
            .arg(&out)
            .output()
            .unwrap();
        assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
        Some(out)
    });
    made.as_deref()
}

/// The newest archive of this name built by cargo.
fn archive(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let deps = own.parent().unwrap();
    let found = std::fs::read_dir(deps).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let file = path.file_name()?.to_str()?.to_owned();
        let is_one = path.extension().is_some_and(|end| end == "a") && file.starts_with(&format!("{name}-"));
        is_one.then(|| (path.metadata().unwrap().modified().unwrap(), path))
    });
    found.max().map(|(_, path)| path).expect("the archive beside the test")
}

/// Compiler flags for the headers.
pub(crate) fn includes() -> Vec<String> {
    ["include", "../roctx/include"]
        .map(|folder| format!("-I{}", package().join(folder).display()))
        .to_vec()
}

/// Runs a compiler; the error is its output.
pub(crate) fn compile(compiler: &str, words: &[String]) -> Result<(), String> {
    let done = Command::new(compiler)
        .args(words)
        .output()
        .map_err(|error| format!("{compiler}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!(
        "{compiler} {}\n{}",
        words.join(" "),
        String::from_utf8_lossy(&done.stderr)
    ))
}

/// Compiles `tests/c/SOURCE` against the libraries.
pub(crate) fn program(source: &str, result: &str, more: &[String]) -> PathBuf {
    let result = room().join(result);
    let libraries = libraries().unwrap().display().to_string();
    let mut words: Vec<String> = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"]
        .map(String::from)
        .to_vec();
    words.push(result.display().to_string());
    words.push(package().join("tests/c").join(source).display().to_string());
    words.extend(includes());
    words.extend(more.iter().cloned());
    words.extend([
        format!("-L{libraries}"),
        format!("-Wl,-rpath,{libraries}"),
        format!("-Wl,-rpath,{}", room().display()),
        "-lroctracer64".into(),
        "-lroctx64".into(),
    ]);
    compile("cc", &words).unwrap();
    result
}

/// The HIP run-time without a GPU, as a file to link to.
pub(crate) fn fake_hip() -> String {
    static FAKE: OnceLock<String> = OnceLock::new();
    FAKE.get_or_init(|| fake_hip_of(6)).clone()
}

/// The same under the name of another release.
pub(crate) fn fake_hip_of(major: u32) -> String {
    let name = format!("libamdhip64.so.{major}");
    let more = ["-shared".into(), "-fPIC".into(), format!("-Wl,-soname,{name}")];
    program("fake_hip.c", &name, &more).display().to_string()
}

/// A program's output, both streams.
pub(crate) fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
