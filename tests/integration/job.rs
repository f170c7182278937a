//! A job from outside: ranks that report to it, the screen that shows all of them, what remains of it.

mod network;
mod nodes;

use crate::kit::directory::place;
use crate::kit::metrics::listening;
use crate::kit::terminal::Terminal;
use crate::kit::work::Work;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const OWN: &str = env!("CARGO_BIN_EXE_roctop");

/// A job of the built-in workload on this machine, its keys in a folder of the test's.
struct Job {
    place: PathBuf,
    name: String,
    /// Of its ranks.
    work: Work,
}

impl Job {
    fn new(test: &str) -> Self {
        let place = place(&format!("job-{test}"));
        Self {
            work: Work::begin(&place),
            place,
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

    /// Starts a rank of `size`, which works until the job's work is done.
    fn start(&self, rank: u32, size: u32) -> Child {
        self.start_on(size, rank, size)
    }

    /// The same for a rank of a node with `local` of all ranks.
    fn start_on(&self, local: u32, rank: u32, size: u32) -> Child {
        let mut command = Command::new(OWN);
        let recording = self.place.join(format!("rank{rank}"));
        command.args(["record", "--job"]);
        if local < size {
            command.args(["--job-host", "127.0.0.1"]);
        }
        command.args(["-o", recording.to_str().unwrap(), "--", OWN, "__demo"]);
        for (name, value) in [
            ("RANK", rank),
            ("SIZE", size),
            ("LOCAL_RANK", rank),
            ("LOCAL_SIZE", local),
        ] {
            command.env(format!("OMPI_COMM_WORLD_{name}"), value.to_string());
        }
        command
            .env("PMIX_NAMESPACE", &self.name)
            .env("ROCTOP_DEMO_WORKER", self.work.until())
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

    /// Whether the root has written where it listens.
    fn has_root(&self) -> bool {
        self.keys().join("root").exists()
    }

    /// Ends its work and waits for its processes, which print nothing.
    fn end(&self, children: impl IntoIterator<Item = Child>) {
        self.work.done();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        }
    }

    /// The same for ranks of a job with several nodes, whose root listens at this machine's own address.
    fn end_all(&self, ranks: Vec<Child>) {
        self.work.done();
        for rank in ranks {
            let output = rank.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let is_hint = |line: &str| line.contains("--job-host HOST");
            assert!(output.status.success() && text.lines().all(is_hint), "{output:?}");
        }
    }

    fn screen(&self) -> Terminal {
        let state = self.state();
        let variables = [("XDG_STATE_HOME", state.to_str().unwrap())];
        Terminal::start(&self.place, 120, 36, &["job", &self.name], &variables)
    }

    /// Asks `job:NAME` and what is behind it.
    fn ask(&self, behind: &str, question: &str) -> Output {
        let place = format!("job:{}{behind}", self.name);
        let mut command = Command::new(OWN);
        command.args(["ask", &place, question, "--format", "json"]);
        command
            .env("XDG_STATE_HOME", self.state())
            .env("ROCTOP_CONFIG", "/dev/null");
        command.output().unwrap()
    }

    /// The answer, with its rows.
    fn answer(&self, behind: &str, question: &str) -> (Value, Vec<Value>) {
        let output = self.ask(behind, question);
        assert!(output.status.success(), "{question}: {output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = answer["rows"].as_array().unwrap().iter();
        let values = rows.map(|row| row["values"].clone()).collect();
        (answer, values)
    }
}

/// Whether this number of ranks run: `3 ranks live`, or `1 of 3 ranks live   2 silent` if a busy machine delays their
/// reports.
fn has_ranks(text: &str, ranks: usize) -> bool {
    let number = |line: &str, before: &str| {
        let words = line.split(before).next()?.split_whitespace();
        words.last()?.parse::<usize>().ok()
    };
    let at_work = |line: &str| {
        let silent = if line.contains(" silent") {
            number(line, " silent")?
        } else {
            0
        };
        let live = if line.contains(" of ") {
            number(line, " of ")?
        } else {
            number(line, " rank")?
        };
        Some(live + silent)
    };
    let mut lines = text.lines().filter(|line| line.contains(" ranks live"));
    lines.any(|line| at_work(line) == Some(ranks))
}

#[track_caller]
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Mode bits of a file.
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    path.metadata().unwrap().mode() & 0o777
}

#[test]
fn all_ranks_of_a_job_are_on_one_screen_and_nothing_remains() {
    let job = Job::new("screen");
    let ranks: Vec<Child> = (0..3).map(|rank| job.start(rank, 3)).collect();
    wait_for("the job's keys", || job.list().contains(&job.name));
    assert_eq!((mode(&job.keys()), mode(&job.node())), (0o700, 0o700));
    wait_for("the root's address", || job.has_root());
    let mut screen = job.screen();
    let shown = screen.wait("three ranks", |text| has_ranks(text, 3));
    assert!(shown.contains("1 node"), "{shown}");
    // Another one at the same time.
    let mut second = job.screen();
    second.wait("three ranks again", |text| has_ranks(text, 3));
    assert!(second.leave().success());
    job.end(ranks);
    screen.wait("the end of all ranks", |text| text.contains("3 ended"));
    assert!(screen.leave().success());
    assert!(
        !job.keys().exists() && !job.node().exists(),
        "keys or the node's folder remain"
    );
    for rank in 0..3 {
        assert!(job.place.join(format!("rank{rank}")).exists());
    }
}

#[test]
fn a_question_to_a_job_is_answered_by_its_ranks() {
    let job = Job::new("asked");
    let ranks: Vec<Child> = (0..3).map(|rank| job.start(rank, 3)).collect();
    wait_for("the root's address", || job.has_root());
    // The first answers may come from fewer ranks, as may some of their rows.
    wait_for("an answer of three ranks", || {
        let output = job.ask("", "top kernels limit 2");
        output.status.success() && String::from_utf8_lossy(&output.stdout).matches("\"Ranks\": 3").count() == 2
    });
    let (answer, rows) = job.answer("", "top kernels limit 2");
    assert_eq!(
        (answer["source"]["kind"].as_str(), rows.len()),
        (Some("job"), 2),
        "{answer:#}"
    );
    assert!(rows[0]["Most_Rank"].as_u64().unwrap() < 3 && rows[0]["StdDev_ns"].is_null());
    assert!(rows[0]["Most"].as_f64() < rows[0]["Total_ns"].as_f64(), "{rows:?}");
    let (_, rows) = job.answer("", "slowest limit 9");
    let of = |row: &Value| row["Rank"].as_u64().unwrap();
    let durations: Vec<u64> = rows.iter().map(|row| row["Duration_ns"].as_u64().unwrap()).collect();
    assert!(rows.len() == 9 && durations.is_sorted_by(|a, b| a >= b), "{rows:?}");
    let (_, rows) = job.answer("", "top kernels by rank limit 1");
    assert_eq!((rows.len(), of(&rows[0])), (1, 0));
    let (_, rows) = job.answer("", "status");
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), [0, 1, 2]);
    let (answer, rows) = job.answer("/2", "top calls limit 3");
    assert!(
        rows.iter().all(|row| row["Ranks"] == 1 && row["Most_Rank"] == 2),
        "{answer:#}"
    );
    let error = |behind: &str, question: &str| {
        let output = job.ask(behind, question);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = error("", "top kernels by nothing");
    assert!(code == Some(2) && text.contains("column 16"), "{text}");
    let (code, text) = error("/7", "status");
    assert!(code == Some(1) && text.contains("there is no rank 7"), "{text}");
    let (code, text) = error("/x", "status");
    assert!(code == Some(2) && text.contains("is no rank"), "{text}");
    assert!(asked_by_a_model(&job).contains("\"Ranks\":3"));
    job.end(ranks);
    let (code, text) = error("", "status");
    assert!(code == Some(1) && text.contains("no job of yours runs here"), "{text}");
}

/// What `roctop mcp` says of the kernels of a job, which it lists.
fn asked_by_a_model(job: &Job) -> String {
    let mut command = Command::new(OWN);
    command
        .arg("mcp")
        .env("XDG_STATE_HOME", job.state())
        .env("ROCTOP_CONFIG", "/dev/null");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let source = format!("job:{}", job.name);
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let call = |tool: &str, arguments: Value| json!({ "name": tool, "arguments": arguments });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call("list", json!({})) }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": call("top", json!({ "source": source, "of": "kernels", "limit": 2 })) }),
    ];
    let mut input = child.stdin.take().unwrap();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    for _ in 0..3 {
        std::io::BufRead::read_line(&mut output, &mut text).unwrap();
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(text.contains(&format!("{{\"source\":\"{source}\"}}")), "{text}");
    text
}

/// Goes from the job's screen to a rank's own views, which show this kernel, and back.
fn visits_a_rank(screen: &mut Terminal, ranks: usize, kernel: &str) {
    screen.wait("all ranks", |text| has_ranks(text, ranks));
    // The first row of the list of ranks. A node of a busy machine may not answer in time: roctop says so, and the key asks again.
    let shown = screen.keys_until("\r", "a rank's own screen", |text| text.contains("esc back"));
    assert!(shown.contains("rank 0 of job"), "{shown}");
    screen.keys("3");
    screen.wait("its kernels", |text| text.contains("KERNEL") && text.contains(kernel));
    // The first esc may close something.
    screen.keys_until("\u{1b}", "the job again", |text| has_ranks(text, ranks));
}

#[test]
fn enter_shows_a_ranks_own_events_and_esc_goes_back() {
    let job = Job::new("entered");
    let ranks: Vec<Child> = (0..2).map(|rank| job.start(rank, 2)).collect();
    wait_for("the root's address", || job.has_root());
    let mut screen = job.screen();
    visits_a_rank(&mut screen, 2, "Cijk");
    assert!(screen.leave().success());
    job.end(ranks);
}

/// Whether this user may mount a private /dev/shm, so that two programs see each other as on two machines.
fn may_unshare() -> bool {
    let mut command = Command::new("unshare");
    command.args(["-rm", "mount", "-t", "tmpfs", "none", "/dev/shm"]);
    let is_allowed = command.output().is_ok_and(|output| output.status.success());
    if !is_allowed {
        println!("skipped: no mount namespaces for this user (unshare -rm)");
    }
    is_allowed
}

#[test]
fn events_of_a_rank_elsewhere_are_fetched() {
    if !may_unshare() {
        return;
    }
    let job = Job::new("fetched");
    let ranks: Vec<Child> = (0..2).map(|rank| job.start_on(1, rank, 2)).collect();
    wait_for("the root's address", || job.has_root());
    // A screen that sees no session of this machine.
    let shell = format!("mount -t tmpfs none /dev/shm && exec {OWN} job {}", job.name);
    let (state, own) = (job.state(), job.place.join("tmp"));
    std::fs::create_dir(&own).unwrap();
    let variables = [
        ("XDG_STATE_HOME", state.to_str().unwrap()),
        ("TMPDIR", own.to_str().unwrap()),
    ];
    let arguments = ["-rm", "sh", "-c", &shell];
    let mut screen = Terminal::start_program(&job.place, 120, 36, "unshare", &arguments, &variables);
    visits_a_rank(&mut screen, 2, "Cijk");
    assert!(screen.leave().success());
    assert_eq!(
        std::fs::read_dir(&own).unwrap().count(),
        0,
        "a copy of the events remains"
    );
    job.end_all(ranks);
}

#[test]
fn a_job_of_one_node_has_no_network() {
    let job = Job::new("local");
    let ranks: Vec<Child> = (0..2).map(|rank| job.start(rank, 2)).collect();
    wait_for("the root's address", || job.has_root());
    let mut screen = job.screen();
    screen.wait("two ranks", |text| has_ranks(text, 2));
    assert_eq!(ranks.iter().map(|rank| listening(rank.id()).len()).sum::<usize>(), 0);
    assert!(job.list().contains("its only node"), "{}", job.list());
    let mut command = Command::new(OWN);
    command
        .args(["job", &job.name, "--write-key", "key"])
        .current_dir(&job.place);
    let output = command.env("XDG_STATE_HOME", job.state()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("--job-host"), "{text}");
    assert!(screen.leave().success());
    job.end(ranks);
}

#[test]
fn a_key_in_a_file_is_enough_to_watch_a_job() {
    let job = Job::new("key");
    let ranks: Vec<Child> = (0..2).map(|rank| job.start_on(1, rank, 2)).collect();
    wait_for("the root's address", || job.has_root());
    assert_eq!(ranks.iter().map(|rank| listening(rank.id()).len()).sum::<usize>(), 1);
    let mut command = Command::new(OWN);
    command
        .args(["job", &job.name, "--write-key", "key"])
        .current_dir(&job.place);
    let output = command.env("XDG_STATE_HOME", job.state()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(mode(&job.place.join("key")), 0o600);
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().next().unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    assert!(
        words.len() == 6 && words[..3] == ["roctop", "job", "--connect"],
        "{line}"
    );
    // Where no folder of the job is.
    let variables = [("XDG_STATE_HOME", "/nonexistent"), ("HOME", "/nonexistent")];
    let mut screen = Terminal::start(&job.place, 120, 36, &words[1..], &variables);
    screen.wait("two ranks", |text| has_ranks(text, 2));
    assert!(screen.leave().success());
    job.end_all(ranks);
}

#[test]
fn a_killed_daemon_is_replaced_and_the_job_goes_on() {
    let job = Job::new("killed");
    let mut first = job.start(0, 2);
    wait_for("the job's keys", || job.has_root());
    let second = job.start(1, 2);
    let mut screen = job.screen();
    screen.wait("two ranks", |text| has_ranks(text, 2));
    first.kill().unwrap();
    first.wait().unwrap();
    // The other rank's roctop is the root now, at another port.
    screen.wait("one rank", |text| {
        ["1 of 2 ranks live", "0 of 2 ranks live"]
            .iter()
            .any(|line| text.contains(line))
    });
    job.end([second]);
    assert!(screen.leave().success());
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
