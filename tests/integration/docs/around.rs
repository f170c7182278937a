//! The environment of the documents' commands: a HIP program, and stand-ins for what the test machines lack.

use crate::kit::counted;
use crate::kit::rig::Rig;
use roctop::session;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The part of Slurm behind `srun -n 2`: runs the command twice at once, each with its rank.
const SRUN: &str = "#!/bin/sh
set -e
SLURM_JOB_ID=1 SLURM_NTASKS=2 SLURM_PROCID=0 \"$@\" &
first=$!
SLURM_JOB_ID=1 SLURM_NTASKS=2 SLURM_PROCID=1 \"$@\"
wait $first
";

/// A program whose kernels the stand-in for rocprofiler-sdk counts, followed by a HIP program.
const COUNTED: &str = "#!/bin/sh
./counted load scale && exec ./service
";

/// Maximum wait for anything that a test has started: a watchdog, not a measure.
const WAIT_LIMIT: Duration = Duration::from_mins(1);

/// A directory for the commands, and their environment variables.
pub(crate) struct Around {
    pub(crate) place: PathBuf,
    variables: Vec<(&'static str, String)>,
    /// Removes the stand-in for rocprofiler-sdk at the end.
    counted: Option<counted::Rig>,
}

impl Around {
    /// Everything that a block's commands name: `app` and `service` always, the rest if named. `None`, with the reason
    /// printed, if something is not available here.
    pub(crate) fn new(rig: &Rig, name: &str, text: &str) -> Option<Self> {
        let place = Rig::place(name);
        let tools = place.join("bin");
        std::fs::create_dir(&tools).unwrap();
        for app in ["app", "service"] {
            symlink(rig.app("matrix_transpose"), place.join(app)).unwrap();
        }
        script(&tools.join("srun"), SRUN);
        let beside = Path::new(env!("CARGO_BIN_EXE_roctop")).parent().unwrap();
        let others = std::env::var("PATH").unwrap_or_default();
        let home = place.join("home");
        std::fs::create_dir(&home).unwrap();
        let mut around = Self {
            variables: vec![
                ("PATH", format!("{}:{}:{others}", tools.display(), beside.display())),
                ("LD_PRELOAD", rig.emulated_gpu().display().to_string()),
                ("HOME", home.display().to_string()),
            ],
            place,
            counted: None,
        };
        if text.contains("drop-in") && !roctop::embedded::version().contains("libroctx64: carried") {
            println!("skipped: this build carries no drop-in libraries");
            return None;
        }
        if text.contains(" python ") {
            around.bring_python(rig)?;
        }
        if text.contains("--pmc") || text.contains("roctop counters") {
            around.bring_counters()?;
        }
        if text.contains("SESSION") {
            let lost = around.lose_a_session();
            around.variables.push(("SESSION", lost));
        }
        Some(around)
    }

    /// Environment variables of the commands.
    pub(crate) fn variables(&self) -> Vec<(&str, &str)> {
        self.variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect()
    }

    /// A block as a shell script.
    pub(crate) fn command(&self, text: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-euc", text]).envs(self.variables());
        command.current_dir(&self.place).stdin(Stdio::null());
        command
    }

    /// hip-python under the name `python`, and a program for it that trains nothing: forked and spawned workers,
    /// copies, kernels.
    fn bring_python(&self, rig: &Rig) -> Option<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = Command::new(root.join("tests/runtimes/fetch-hip-python"))
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            assert_eq!(output.status.code(), Some(77), "{stderr}");
            println!("skipped: {}", stderr.lines().last().unwrap_or_default());
            return None;
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let python = said.lines().last().unwrap();
        script(
            &self.place.join("bin/python"),
            &format!("#!/bin/sh\nexec {python} \"$@\"\n"),
        );
        let apps = root.join("tests/apps");
        let train = format!(
            "import sys\nsys.path.insert(0, '{}')\nimport loader\nif __name__ == '__main__':\n    sys.argv[1:] = ['{}', '2', '5']\n    loader.main()\n",
            apps.display(),
            rig.app("module_kernels.hsaco").display()
        );
        std::fs::write(self.place.join("train.py"), train).unwrap();
        Some(())
    }

    /// The stand-in for rocprofiler-sdk, and an `app` whose kernels it counts.
    fn bring_counters(&mut self) -> Option<()> {
        let made = counted::Rig::new("docs")?;
        symlink(made.0.join("counted"), self.place.join("counted")).unwrap();
        std::fs::remove_file(self.place.join("app")).unwrap();
        script(&self.place.join("app"), COUNTED);
        self.variables
            .push(("ROCTOP_SDK", made.0.join("stand_in_sdk").display().to_string()));
        self.counted = Some(made);
        Some(())
    }

    /// The recording `crashed`, whose roctop and program were killed; returns the name of the remaining session.
    fn lose_a_session(&self) -> String {
        let own = env!("CARGO_BIN_EXE_roctop");
        let mut command = Command::new(own);
        command.args(["record", "-o", "crashed", "--", own, "__demo"]);
        command.envs(self.variables()).env("ROCTOP_DEMO_WORKER", "0");
        command.current_dir(&self.place).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut recorder = command.spawn().unwrap();
        let name = recorder.id().to_string();
        let began = Instant::now();
        let mut programs = Vec::new();
        while programs.is_empty() {
            assert!(began.elapsed() < WAIT_LIMIT, "nothing is recorded");
            std::thread::sleep(Duration::from_millis(50));
            programs = session::find(&name).map_or_else(|_| Vec::new(), |session| session::alive(&session));
        }
        let session = session::find(&name).unwrap();
        let killed = programs.iter().fold(name.clone(), |all, pid| format!("{all} {pid}"));
        let status = Command::new("sh").args(["-c", &format!("kill -9 {killed}")]).status();
        assert!(status.unwrap().success(), "{killed}");
        recorder.wait().unwrap();
        while session::is_in_use(&session) {
            assert!(began.elapsed() < WAIT_LIMIT, "{name} is still in use");
            std::thread::sleep(Duration::from_millis(10));
        }
        name
    }
}

/// Writes an executable file with this text.
fn script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
