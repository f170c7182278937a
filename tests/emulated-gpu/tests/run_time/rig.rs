//! Runs the programs of `tests/apps`, with a watchdog.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Far longer than any test takes: a program still running then hangs.
const WATCHDOG: Duration = Duration::from_secs(250);

/// A release of the run-time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Release(pub(crate) &'static str);

/// The installed release.
pub(crate) const INSTALLED: Release = Release("5.2.3");

/// The installed release and the fetched ones.
pub(crate) fn releases() -> Vec<Release> {
    let others = ["5.7.1", "6.4.3", "7.2.4"].map(Release);
    let fetched = others.into_iter().filter(|release| {
        let is_there = release.prefix().join("versions").exists();
        if !is_there {
            println!("skipped on {}: not fetched", release.0);
        }
        is_there
    });
    [INSTALLED].into_iter().chain(fetched).collect()
}

fn tests_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The library under test, built by cargo next to this program.
pub(crate) fn library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let places = program
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join("libemulated_gpu.so"));
    places
        .filter(|place| place.exists())
        .max_by_key(|place| modified(place))
        .expect("the library is built by cargo test")
}

fn modified(path: &Path) -> std::time::SystemTime {
    fs::metadata(path).and_then(|metadata| metadata.modified()).unwrap()
}

/// An empty directory for one run's files.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run_time").join(name);
    fs::remove_dir_all(&place).ok();
    fs::create_dir_all(&place).unwrap();
    place
}

impl Release {
    fn prefix(self) -> PathBuf {
        let cache = || {
            let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            base.unwrap_or_else(|| Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".cache"))
        };
        let root = std::env::var_os("ROCTOP_RUNTIMES").map(PathBuf::from);
        root.unwrap_or_else(|| cache().join("roctop-runtimes")).join(self.0)
    }

    /// Release whose compiler makes this release's programs: 5.7.1 runs those of 5.2.3.
    fn compiler(self) -> Self {
        if self.0 == "5.7.1" { INSTALLED } else { self }
    }

    /// The compiled program; `None` with a printed reason if there is no compiler.
    pub(crate) fn program(self, name: &str) -> Option<PathBuf> {
        const NO_COMPILER: i32 = 77;
        let compiler = self.compiler().0;
        // Where the integration tests have theirs.
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("apps-{compiler}"));
        let mut build = Command::new(tests_directory().join("apps/build"));
        let built = build.arg(compiler).arg(&place).arg(name).output().unwrap();
        if built.status.code() == Some(NO_COMPILER) {
            println!("skipped on {}: no hipcc", self.0);
            return None;
        }
        let said = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "tests/apps/build {compiler} {name}: {said}");
        Some(place.join(name))
    }

    /// The program compiled for another kind of GPU.
    pub(crate) fn program_for(self, target: &str, name: &str) -> Option<PathBuf> {
        self.program(&format!("{name}@{target}"))
    }

    /// A command that runs a program with the preload.
    pub(crate) fn command(self, program: &Path) -> Command {
        self.start(program, &[])
    }

    /// A command for a program that execs others, which keep the preload.
    pub(crate) fn command_with_children(self, program: &Path) -> Command {
        let chroot: &[&str] = if self == INSTALLED { &[] } else { &["--chroot"] };
        self.start(program, chroot)
    }

    fn start(self, program: &Path, flags: &[&str]) -> Command {
        let mut command = if self == INSTALLED {
            let mut command = Command::new(program);
            command.env("LD_PRELOAD", library());
            command
        } else {
            let mut command = Command::new(tests_directory().join("runtimes/run"));
            command
                .args(flags)
                .args([self.0, "--preload"])
                .arg(library())
                .arg(program);
            command
        };
        command.env_remove("LD_LIBRARY_PATH");
        command
    }
}

/// A program or library of `tests/c`, built by the system's compiler for all releases; `None`, with a printed reason,
/// without a compiler or HSA's headers.
pub(crate) fn compile(source: &str, place: &Path, flags: &[&str]) -> Option<PathBuf> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
    let result = place.join(source).with_extension("");
    let mut compiler = Command::new("cc");
    compiler.args(["-w", "-O1", "-o"]).arg(&result).arg(from).args(flags);
    if compiler.status().is_ok_and(|status| status.success()) {
        return Some(result);
    }
    println!("skipped: no C compiler, or no headers of HSA");
    None
}

/// Runs to the end, or ends it if it hangs. Output goes to files, so no pipe can fill up.
pub(crate) fn run(mut command: Command, scratch: &Path) -> Output {
    let [stdout, stderr] = ["stdout", "stderr"].map(|name| scratch.join(name));
    command.stdin(Stdio::null());
    command
        .stdout(fs::File::create(&stdout).unwrap())
        .stderr(fs::File::create(&stderr).unwrap());
    let mut child = command.spawn().unwrap();
    let status = wait(&mut child, &command);
    Output {
        status,
        stdout: fs::read(stdout).unwrap(),
        stderr: fs::read(stderr).unwrap(),
    }
}

fn wait(child: &mut Child, command: &Command) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > WATCHDOG {
            child.kill().ok();
            panic!("hangs: {command:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs, asserts success, and returns the output.
pub(crate) fn succeed(command: Command, scratch: &Path) -> String {
    let shown = format!("{command:?}");
    let output = run(command, scratch);
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(
        output.status.success(),
        "{shown}: {}\n{stdout}\n{stderr}",
        output.status
    );
    stdout
}
