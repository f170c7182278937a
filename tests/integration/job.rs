//! A job from outside: ranks that report to it, the screen that shows all of them, what remains of it.

use crate::kit::directory::place;
use crate::kit::terminal::Terminal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const OWN: &str = env!("CARGO_BIN_EXE_roctop");

/// A job of the built-in workload on this machine, its keys in a folder of the test's.
struct Job {
    place: PathBuf,
    name: String,
}

impl Job {
    fn new(test: &str) -> Self {
        Self {
            place: place(&format!("job-{test}")),
            name: format!("{test}-{}", std::process::id()),
        }
    }

    fn state(&self) -> PathBuf {
        self.place.join("state")
    }

    fn keys(&self) -> PathBuf {
        self.state().join("roctop/jobs").join(&self.name)
    }

    /// Where the processes of the node meet.
    fn node(&self) -> PathBuf {
        let user = rustix::process::getuid().as_raw();
        PathBuf::from(format!("/dev/shm/roctop-{user}/job-{}", self.name))
    }

    /// Starts a rank of `size`, which works for a few seconds.
    fn start(&self, rank: u32, size: u32, seconds: &str) -> Child {
        let mut command = Command::new(OWN);
        let recording = self.place.join(format!("rank{rank}"));
        command.args([
            "record",
            "--job",
            "-o",
            recording.to_str().unwrap(),
            "--",
            OWN,
            "__demo",
        ]);
        for (name, value) in [
            ("RANK", rank),
            ("SIZE", size),
            ("LOCAL_RANK", rank),
            ("LOCAL_SIZE", size),
        ] {
            command.env(format!("OMPI_COMM_WORLD_{name}"), value.to_string());
        }
        command
            .env("PMIX_NAMESPACE", &self.name)
            .env("ROCTOP_DEMO_WORKER", seconds)
            .env("ROCTOP_CONFIG", "/dev/null")
            .env("XDG_STATE_HOME", self.state())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn list(&self) -> String {
        let mut command = Command::new(OWN);
        command.arg("job").env("XDG_STATE_HOME", self.state());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn screen(&self) -> Terminal {
        let state = self.state();
        let variables = [("XDG_STATE_HOME", state.to_str().unwrap())];
        Terminal::start(&self.place, 120, 36, &["job", &self.name], &variables)
    }
}

/// Whether a line begins so.
fn has_line(text: &str, begin: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with(begin))
}

#[track_caller]
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn end(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    output
}

/// Mode bits of a file.
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    path.metadata().unwrap().mode() & 0o777
}

#[test]
fn all_ranks_of_a_job_are_on_one_screen_and_nothing_remains() {
    let job = Job::new("screen");
    let ranks: Vec<Child> = (0..3).map(|rank| job.start(rank, 3, "12")).collect();
    wait_for("the job's keys", || job.list().contains(&job.name));
    assert_eq!((mode(&job.keys()), mode(&job.node())), (0o700, 0o700));
    wait_for("the root's address", || job.list().contains("127.0.0.1:"));
    let mut screen = job.screen();
    let shown = screen.wait("three ranks", |text| has_line(text, "3 ranks live"));
    assert!(shown.contains("1 node"), "{shown}");
    // Another one at the same time.
    let mut second = job.screen();
    second.wait("three ranks again", |text| has_line(text, "3 ranks live"));
    second.keys("q");
    assert!(second.end().success());
    for rank in ranks {
        end(rank);
    }
    screen.wait("the end of all ranks", |text| text.contains("3 ended"));
    screen.keys("q");
    assert!(screen.end().success());
    assert!(
        !job.keys().exists() && !job.node().exists(),
        "keys or the node's folder remain"
    );
    for rank in 0..3 {
        assert!(job.place.join(format!("rank{rank}")).exists());
    }
}

#[test]
fn a_killed_daemon_is_replaced_and_the_job_goes_on() {
    let job = Job::new("killed");
    let mut first = job.start(0, 2, "6");
    wait_for("the job's keys", || job.list().contains("127.0.0.1:"));
    let second = job.start(1, 2, "25");
    let mut screen = job.screen();
    screen.wait("two ranks", |text| has_line(text, "2 ranks live"));
    first.kill().unwrap();
    first.wait().unwrap();
    // The other rank's roctop is the root now, at another port.
    screen.wait("one rank", |text| has_line(text, "1 of 2 ranks live"));
    end(second);
    screen.keys("q");
    assert!(screen.end().success());
}

#[test]
fn a_job_without_a_name_is_a_usage_error() {
    let place = place("job-nameless");
    let mut command = Command::new(OWN);
    command
        .args(["record", "--job", "-o", "rec", "--", "true"])
        .current_dir(&place);
    for name in [
        "SLURM_JOB_ID",
        "PMIX_NAMESPACE",
        "FLUX_JOB_ID",
        "PBS_JOBID",
        "TORCHELASTIC_RUN_ID",
    ] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--job=NAME"), "{text}");
    assert!(!place.join("rec").exists());
}

#[test]
fn a_job_that_there_is_not_is_an_error_with_what_to_do() {
    let job = Job::new("absent");
    let mut command = Command::new(OWN);
    command.args(["job", "4711"]).env("XDG_STATE_HOME", job.state());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("roctop record --job"), "{text}");
    assert!(job.list().contains("no job of yours runs here"));
}
