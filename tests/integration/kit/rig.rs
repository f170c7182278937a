//! The rig: real HIP programs on the real run-time over the emulated GPU, recorded by roctop, compared with the
//! emulated GPU's own log.
//!
//! `ROCTOP_TEST_RELEASE` selects a release that `tests/runtimes/fetch` unpacked, instead of the installed 5.2.3.
//!
//! Dispatches are joined by queue and order, copies by order of begin, never by time alone.

pub(crate) use super::patience;
pub(crate) use super::recorded::Recorded;
pub(crate) use super::truth::{Truth, engine_copies, read_truth};

use super::directory;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// A recorded time may differ from the log's by this much, ns.
pub(crate) const TOLERANCE: u64 = 1000;

/// The environment of the tests.
#[derive(Clone)]
pub(crate) struct Rig {
    emulated_gpu: PathBuf,
    apps: PathBuf,
    /// A library that is preloaded before all others.
    front: Option<PathBuf>,
    /// The stand-in for registration, for runs in which the run-times hand their tables over.
    bridge: Option<PathBuf>,
    /// A release other than the installed one.
    release: Option<String>,
    /// Additional variables of the emulated GPU.
    machine: Vec<(String, String)>,
    /// The target that the programs are compiled for, if it is not gfx906.
    target: Option<String>,
}

/// The rig, created once for all tests; `None`, with the reason printed, if ROCm 5.2.3 is not installed.
pub(crate) fn rig() -> Option<&'static Rig> {
    static RIG: OnceLock<Option<Rig>> = OnceLock::new();
    RIG.get_or_init(|| match Rig::new() {
        Ok(rig) => Some(rig),
        Err(reason) => {
            assert!(std::env::var_os("ROCTOP_REQUIRE_ROCM").is_none(), "{reason}");
            println!("skipped: {reason}");
            None
        }
    })
    .as_ref()
}

/// The selected release, if it is not the installed 5.2.3.
pub(crate) fn release() -> Option<String> {
    std::env::var("ROCTOP_TEST_RELEASE")
        .ok()
        .filter(|release| release != "5.2.3")
}

/// Is this ROCm 10? No suite has it: a prefix of this name is made by hand, see docs/verification.md.
pub(crate) fn is_newest() -> bool {
    release().is_some_and(|release| release.starts_with("10"))
}

/// The release whose compiler builds the programs.
pub(crate) fn source() -> String {
    // Programs of 5.2.3 run unchanged on 5.7.1.
    release()
        .filter(|release| release != "5.7.1")
        .unwrap_or_else(|| "5.2.3".to_owned())
}

/// A compiled library of the rig.
pub(crate) fn library(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/integration/kit/{name}.c"));
    let result = Rig::place(name).join(format!("{name}.so"));
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-shared", "-fPIC", "-pthread", "-o"])
        .arg(&result);
    let built = compiler.arg(source).arg("-ldl").status();
    assert!(built.is_ok_and(|status| status.success()), "{name}.c does not compile");
    result
}

impl Rig {
    fn new() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let beside = std::env::current_exe().map_err(|error| error.to_string())?;
        let target = beside
            .parent()
            .and_then(Path::parent)
            .ok_or("the test has no directory")?
            .to_owned();
        let built = [
            std::env::var_os("EMULATED_GPU_SO").map(PathBuf::from),
            Some(target.join("libemulated_gpu.so")),
            target.parent().map(|parent| parent.join("release/libemulated_gpu.so")),
        ];
        let emulated_gpu = built.into_iter().flatten().find(|path| path.exists());
        let emulated_gpu =
            emulated_gpu.ok_or("the emulated GPU is not built (cargo build -p emulated-gpu --release)")?;
        let release = release();
        let source = source();
        let apps = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("apps-{source}"));
        let mut build = Command::new(root.join("tests/apps/build"));
        let built = build
            .arg(&source)
            .arg(&apps)
            .output()
            .map_err(|error| error.to_string())?;
        match built.status.code() {
            Some(0) => Ok(Self {
                emulated_gpu,
                apps,
                front: None,
                bridge: None,
                release,
                machine: Vec::new(),
                target: None,
            }),
            Some(77) => Err(format!("no hipcc of ROCm {source} (see tests/runtimes)")),
            _ => Err(format!(
                "tests/apps/build failed: {}",
                String::from_utf8_lossy(&built.stderr)
            )),
        }
    }

    /// The same rig with run-times that hand their tables to the real rocprofiler-register; an error says why this
    /// release has none.
    pub(crate) fn registering(&self) -> Result<Self, String> {
        if is_newest() {
            return Ok(self.clone());
        }
        if release().is_none_or(|release| release != "7.2.4") {
            return Err("Debian has rocprofiler-register beside 7.2.4 only".into());
        }
        Ok(Self {
            bridge: Some(library("bridge")),
            ..self.clone()
        })
    }

    /// The same rig with a preloaded library that shadows many of the functions that emulations shadow.
    pub(crate) fn behind_a_nosy_one(&self) -> Self {
        Self {
            front: Some(library("nosy")),
            ..self.clone()
        }
    }

    /// The same rig with a run-time that refuses to make queues for interception.
    pub(crate) fn refusing_proxies(&self) -> Self {
        self.behind(&library("refused"))
    }

    /// The same rig with a tmpfs that is full after `FULL_AFTER` requests for pages of flight files.
    pub(crate) fn with_a_tmpfs_that_fills(&self) -> Self {
        self.behind(&library("full"))
    }

    /// The same rig with this library preloaded first.
    pub(crate) fn behind(&self, library: &Path) -> Self {
        Self {
            front: Some(library.to_owned()),
            ..self.clone()
        }
    }

    /// The same rig on another machine, as variables of the emulated GPU.
    pub(crate) fn on(&self, machine: &[(&'static str, &'static str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            machine: machine.iter().map(owned).collect(),
            ..self.clone()
        }
    }

    /// The same rig on an emulation of another make, with these programs compiled for its GPU; `None` if no variable names
    /// one. docs/verification.md describes the variables.
    pub(crate) fn on_another_make(&self, programs: &[&str]) -> Option<Self> {
        let libraries = std::env::var_os("ROCTOP_TEST_INTERPOSER")?;
        let target = std::env::var("ROCTOP_TEST_GPU_MODEL").unwrap_or_else(|_| "gfx906".to_owned());
        let variables = std::env::var("ROCTOP_TEST_INTERPOSER_ENV").unwrap_or_default();
        let variables = variables.split_whitespace().filter_map(|word| word.split_once('='));
        let mut build = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps/build"));
        build.arg(source()).arg(&self.apps);
        build.args(programs.iter().map(|program| format!("{program}@{target}")));
        let built = build.output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(Self {
            emulated_gpu: libraries.into(),
            machine: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            target: Some(target),
            ..self.clone()
        })
    }

    /// Whether this is the installed 5.2.3.
    pub(crate) fn is_oldest(&self) -> bool {
        self.release.is_none()
    }

    /// The library of the emulated GPU.
    pub(crate) fn emulated_gpu(&self) -> &Path {
        &self.emulated_gpu
    }

    /// A file beside the programs.
    pub(crate) fn app(&self, name: &str) -> PathBuf {
        self.apps.join(name)
    }

    /// The same rig with another prefix of the same release.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Self {
        Self {
            bridge: None,
            release: Some(prefix.to_owned()),
            ..self.clone()
        }
    }

    /// A new empty directory for one test.
    pub(crate) fn place(name: &str) -> PathBuf {
        directory::place(name)
    }

    /// The command that runs `words` (an app's name and arguments) over the emulated GPU, under roctop's `options` if
    /// there are any.
    pub(crate) fn command(&self, place: &Path, options: &[&str], words: &[&str]) -> Command {
        let mut line: Vec<PathBuf> = Vec::new();
        if !options.is_empty() {
            line.push(env!("CARGO_BIN_EXE_roctop").into());
            line.extend(options.iter().map(PathBuf::from));
            line.push("--".into());
        }
        line.push(match &self.target {
            Some(target) => self.app(&format!("{}@{target}", words[0])),
            None => self.app(words[0]),
        });
        line.extend(words[1..].iter().map(PathBuf::from));
        let mut preload = self.front.clone().map_or_else(OsString::new, PathBuf::into_os_string);
        if self.front.is_some() {
            preload.push(":");
        }
        preload.push(&self.emulated_gpu);
        // HIP 5.2 would compile its copy kernels in each process, for twice the CPU time of all else in a short program.
        let cache = self.app("libcomgr_cache.so");
        let is_cached = self.is_oldest() && cache.exists();
        if is_cached {
            preload.push(":");
            preload.push(&cache);
        }
        if let Some(bridge) = &self.bridge {
            preload.push(":");
            preload.push(bridge);
        }
        let mut command = if let Some(release) = &self.release {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let mut command = Command::new(root.join("tests/runtimes/run"));
            command
                .args(["--chroot", release, "--preload"])
                .arg(&preload)
                .args(&line);
            command
        } else {
            let mut command = Command::new(&line[0]);
            command.args(&line[1..]).env("LD_PRELOAD", &preload);
            command
        };
        command.envs(self.bridge.as_ref().map(|bridge| ("HSA_TOOLS_LIB", bridge)));
        command.envs(is_cached.then(|| ("COMGR_CACHE", self.app("comgr_cache"))));
        command.envs(self.machine.iter().map(|(name, value)| (name, value)));
        command.current_dir(place).stdin(Stdio::null());
        command.env("EMULATED_GPU_LOG", place.join("truth.%p.csv"));
        command
            .env("APP_CALL_COUNTS", place.join("counts"))
            .env("APP_MARKER_COUNTS", place.join("markers"))
            .env("APP_MEMORY", place.join("memory"));
        command
    }

    /// Runs a command to its end.
    pub(crate) fn ended(command: &mut Command) -> Output {
        patience::output(command)
    }

    /// Runs an app without roctop in the same environment.
    pub(crate) fn plain(&self, name: &str, words: &[&str]) -> Output {
        let place = Self::place(&format!("plain-{name}"));
        Self::ended(&mut self.command(&place, &[], words))
    }

    /// Records an app and loads everything to compare.
    pub(crate) fn record(&self, name: &str, words: &[&str]) -> Recorded {
        self.record_with(name, &[], words)
    }

    /// The same with more options.
    pub(crate) fn record_with(&self, name: &str, more: &[&str], words: &[&str]) -> Recorded {
        let place = Self::place(name);
        let recording = place.join("rec");
        let mut options = vec!["record", "-o", recording.to_str().unwrap()];
        options.extend(more);
        let output = Self::ended(&mut self.command(&place, &options, words));
        Recorded::load(&place, output)
    }
}
