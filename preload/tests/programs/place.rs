//! Where a test runs: a folder on tmpfs with session, programs and links, and the library under test.

use crate::ring::Ring;
use roctop_ring::session::{CONTROL, CONTROL_BYTES, control};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder on tmpfs that goes with the test: session, programs, links.
pub(crate) struct TestDir {
    pub(crate) dir: PathBuf,
}

impl TestDir {
    /// None when this machine lacks what the tests need.
    pub(crate) fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = PathBuf::from(format!("/dev/shm/roctop-test-{}-{number}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&dir);
        let compiler = Command::new("cc").arg("--version").output();
        if made.is_err() || compiler.is_err() {
            eprintln!("skipped: needs /dev/shm and a C compiler");
            let _ = std::fs::remove_dir(&dir);
            return None;
        }
        std::fs::create_dir(dir.join("session")).unwrap();
        Some(Self { dir })
    }

    pub(crate) fn session(&self) -> PathBuf {
        self.dir.join("session")
    }

    /// Writes the session's control file: recording, and these kinds of records.
    pub(crate) fn want(&self, wanted: u64) {
        let mut bytes = vec![0u8; CONTROL_BYTES];
        bytes[control::RECORDING * 8] = 1;
        bytes[control::WANTED * 8..][..8].copy_from_slice(&wanted.to_le_bytes());
        std::fs::write(self.session().join(CONTROL), bytes).unwrap();
    }

    /// Compiles `tests/c/NAME.c`.
    pub(crate) fn compile(&self, name: &str, result: &str, arguments: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/c")
            .join(format!("{name}.c"));
        let result = self.dir.join(result);
        let status = Command::new("cc")
            .args(["-O1", "-o"])
            .arg(&result)
            .arg(source)
            .args(arguments)
            .status()
            .unwrap();
        assert!(status.success(), "{name} does not compile");
        result
    }

    /// Compiles the stand-in for HIP; what a program that uses it is linked with.
    pub(crate) fn fake_hip(&self) -> [String; 3] {
        let library = "libamdhip64.so.5";
        self.compile(
            "fake_hip",
            library,
            &["-shared", "-fPIC", &format!("-Wl,-soname,{library}")],
        );
        let folder = self.dir.display();
        [
            format!("-L{folder}"),
            format!("-l:{library}"),
            format!("-Wl,-rpath,{folder}"),
        ]
    }

    /// The program with the collector preloaded.
    pub(crate) fn traced(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", library())
            .env("ROCTOP_SESSION", self.session())
            .env("ROCTOP_RING_SLOTS", "16384");
        command
    }

    /// All ring files of the session, in the order of their names.
    pub(crate) fn rings(&self) -> Vec<Ring> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(self.session())
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "ring"));
        paths.sort();
        paths.iter().map(|path| Ring::read(path)).collect()
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The collector with debug assertions, built from the sources beside these tests.
///
/// Cargo builds a library that is only a `cdylib` for no test, and a package that is also an `rlib` has no link-time
/// optimisation. So `tests/run` builds the library beside the tests. Where it is missing or older than its sources,
/// the tests build it: once in each test process, in their own target folder.
pub(crate) fn library() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| made().unwrap_or_else(build)).clone()
}

/// The folder of the tests' profile in the target folder.
fn profile_folder() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(2).unwrap().to_owned()
}

/// The library in the target folder, if it is newer than all sources that cargo lists beside it.
fn made() -> Option<PathBuf> {
    let library = profile_folder().join("libroctop_preload.so");
    let modified = |path: &Path| path.metadata().and_then(|facts| facts.modified()).ok();
    let made = modified(&library)?;
    let listed = std::fs::read_to_string(library.with_extension("d")).ok()?;
    let (_, sources) = listed.trim_end().split_once(": ")?;
    // A space in a path is escaped there; such a path is not found, and the library is built.
    let is_newer = |source: &str| modified(Path::new(source)).is_some_and(|source| source <= made);
    sources.split(' ').all(is_newer).then_some(library)
}

fn build() -> PathBuf {
    let profile_folder = profile_folder();
    let profile = match profile_folder.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--locked",
            "--offline",
            "--lib",
            "--package",
            "roctop-preload",
        ])
        .args(["--profile", profile, "--target-dir"])
        .arg(profile_folder.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    profile_folder.join("libroctop_preload.so")
}

/// The collector as it is shipped, where it was built; else as cargo built it for these tests.
pub(crate) fn shipped() -> PathBuf {
    let named = std::env::var_os("ROCTOP_PRELOAD_SO").map(PathBuf::from);
    named
        .filter(|path| path.metadata().is_ok_and(|facts| facts.len() > 0))
        .unwrap_or_else(library)
}

/// What a program printed.
pub(crate) fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
