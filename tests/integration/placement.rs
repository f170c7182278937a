//! Where the ranks of a job run, and what is said of it: real processes on real CPUs, which the emulated machine divides among
//! NUMA nodes.

use crate::kit::directory::place;
use crate::kit::rig::{Rig, rig};
use roctop_trace::binding::CpuSet;
use rusqlite::Connection;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// No machine is too busy to show what is waited for.
const PATIENCE: Duration = Duration::from_mins(2);

/// Bandwidth of copies that the emulated GPUs model for ranks near their GPU, and for ranks far from it, MB/s. A busy machine still copies
/// faster than this.
const NEAR: f64 = 800.0;
const FAR: f64 = 50.0;

/// A rank as a test starts it.
#[derive(Clone, Default)]
struct Rank {
    /// The words that bind its program: `taskset -c 0`.
    bound: Vec<String>,
    /// The GPU that it is given; none: it sees all.
    gpu: Option<u32>,
    /// Bandwidth of its copies, MB/s, if it makes any.
    copies: Option<f64>,
}

impl Rank {
    fn on(cpus: &str, gpu: u32) -> Self {
        Self {
            gpu: Some(gpu),
            ..Self::of(&["taskset", "-c", cpus])
        }
    }

    fn of(bound: &[&str]) -> Self {
        Self {
            bound: bound.iter().map(|word| (*word).to_owned()).collect(),
            ..Self::default()
        }
    }
}

/// Ranks on this machine, whose two emulated GPUs are at NUMA nodes 0 and 1.
struct Job {
    rig: Rig,
    place: PathBuf,
    ranks: Vec<Child>,
    /// Whether its process is none of a job.
    is_alone: bool,
}

/// A test that fails leaves no ranks behind.
impl Drop for Job {
    fn drop(&mut self) {
        for rank in &mut self.ranks {
            let _ = rank.kill();
        }
    }
}

impl Job {
    fn start(rig: &Rig, name: &str, ranks: &[Rank]) -> Self {
        let rig = rig.on(&[("EMULATED_GPU_COUNT", "2"), ("EMULATED_GPU_NUMA", "0,1")]);
        let place = place(&format!("placement-{name}"));
        let mut job = Self {
            ranks: Vec::new(),
            rig,
            place,
            is_alone: false,
        };
        for at in 0..ranks.len() {
            let until = format!("until:{}", job.stop().display());
            let rank = job.command(at, ranks, &[&until, "1"]).spawn().unwrap();
            job.ranks.push(rank);
        }
        job
    }

    fn command(&self, at: usize, ranks: &[Rank], requests: &[&str]) -> Command {
        let rank = &ranks[at];
        let recording = self.recording(at);
        let mut options = vec!["record", "-o", recording.to_str().unwrap()];
        options.extend((!self.is_alone).then_some("--job"));
        let what = if rank.copies.is_some() { "copies" } else { "calm" };
        let words = [&["serve", what], requests].concat();
        let command = self.rig.command(&self.place, &options, &words);
        // Between roctop's options and the program.
        let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let program = words.iter().position(|word| word == "--").unwrap() + 1;
        let mut bound = Command::new(command.get_program());
        bound.args(&words[..program]).args(&rank.bound).args(&words[program..]);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => bound.env(name, value),
                None => bound.env_remove(name),
            };
        }
        let size = ranks.len();
        for (name, value) in [("RANK", at), ("SIZE", size), ("LOCAL_RANK", at), ("LOCAL_SIZE", size)] {
            bound.envs((!self.is_alone).then(|| (format!("OMPI_COMM_WORLD_{name}"), value.to_string())));
        }
        let copies = rank
            .copies
            .map(|rate| ("EMULATED_GPU_COPY_GBPS", (rate / 1e3).to_string()));
        bound
            .env("PMIX_NAMESPACE", self.name())
            .envs(rank.gpu.map(|gpu| ("ROCR_VISIBLE_DEVICES", gpu.to_string())))
            .envs(copies)
            .env("XDG_STATE_HOME", self.place.join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        bound
    }

    fn name(&self) -> String {
        let name = self.place.file_name().unwrap().to_string_lossy().into_owned();
        format!("{name}-{}", std::process::id())
    }

    fn stop(&self) -> PathBuf {
        self.place.join("stop")
    }

    fn recording(&self, rank: usize) -> PathBuf {
        self.place.join(format!("rank{rank}"))
    }

    fn roctop(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
        command.args(words).env("XDG_STATE_HOME", self.place.join("state"));
        command.env("ROCTOP_CONFIG", "/dev/null").output().unwrap()
    }

    /// What the job's ranks answer, once all ran kernels and were read, and those that copy have copied.
    fn answer(&self) -> Value {
        let job = format!("job:{}", self.name());
        let began = Instant::now();
        loop {
            let output = self.roctop(&["ask", &job, "placement", "--format", "json"]);
            let answer: Option<Value> = serde_json::from_slice(&output.stdout).ok();
            let is_known = |row: &Value| row["values"]["GPUs"].is_string() && row["values"]["CPUs"].is_string();
            match answer {
                Some(answer)
                    if answer["rows"]
                        .as_array()
                        .is_some_and(|rows| rows.len() == self.ranks.len() && rows.iter().all(is_known)) =>
                {
                    return answer;
                }
                other => assert!(began.elapsed() < PATIENCE, "{other:?} {output:?}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// What `doctor --job` writes, once it contains a text; whether all is well.
    fn doctor(&self, wanted: &str) -> (String, bool) {
        let began = Instant::now();
        loop {
            let output = self.roctop(&["doctor", "--job", &self.name()]);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if text.contains(wanted) {
                return (text, output.status.success());
            }
            assert!(began.elapsed() < PATIENCE, "{output:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn end(&mut self) {
        std::fs::write(self.stop(), "").unwrap();
        for rank in std::mem::take(&mut self.ranks) {
            let output = rank.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    }
}

/// The lists of CPUs that a line has for the ranks of a node.
fn lists(text: &str) -> Vec<String> {
    let line = text
        .split_once("      try: ")
        .and_then(|(_, line)| line.lines().next())
        .unwrap_or_else(|| panic!("{text}"));
    let (_, lists) = line
        .rsplit_once("for the node's ranks: ")
        .unwrap_or_else(|| panic!("{text}"));
    lists.split(' ').map(str::to_owned).collect()
}

/// A CPU of each half of the machine's that this process may use.
fn two_halves() -> Option<[String; 2]> {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let last: u32 = online.trim().rsplit([',', '-']).next()?.parse().ok()?;
    let middle = last.div_ceil(2);
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let may = CpuSet::parse(list)?;
    let of = |mut range: std::ops::Range<u32>| range.find(|cpu| may.contains(*cpu));
    let found = of(0..middle).zip(of(middle..last + 1));
    if found.is_none() {
        println!("skipped: this process may use no two halves of the machine's CPUs");
    }
    found.map(|(first, second)| [first.to_string(), second.to_string()])
}

fn values<'a>(answer: &'a Value, name: &str) -> Vec<&'a Value> {
    let rows = answer["rows"].as_array().unwrap().iter();
    rows.map(|row| &row["values"][name]).collect()
}

fn of_recording(job: &Job, path: &Path) -> Value {
    let output = job.roctop(&["ask", path.to_str().unwrap(), "placement", "--format", "json"]);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn ranks_far_from_their_gpus_are_well_where_the_line_puts_them() {
    let Some(rig) = rig() else { return };
    let Some([first, second]) = two_halves() else { return };
    // Each near the other's GPU.
    let mut job = Job::start(rig, "far", &[Rank::on(&second, 0), Rank::on(&first, 1)]);
    let answer = job.answer();
    assert_eq!(
        values(&answer, "Verdict"),
        ["far from its GPU", "far from its GPU"],
        "{answer:#}"
    );
    let (text, is_well) = job.doctor("BAD   rank 0 launches at NUMA node 1, and its GPU 0 is at node 0\n");
    assert!(!is_well, "{text}");
    // The memory map of each is read for this question, and for no other.
    assert!(
        [0, 1]
            .iter()
            .all(|rank| text.contains(&format!("numa_maps of rank {rank} "))),
        "{text}"
    );
    assert!(!answer.to_string().contains("numa_maps"), "{answer:#}");
    let cpus = lists(&text);
    job.end();

    // On the CPUs that this line has for them.
    let mut job = Job::start(rig, "near", &[Rank::on(&cpus[0], 0), Rank::on(&cpus[1], 1)]);
    let answer = job.answer();
    assert_eq!(values(&answer, "Rank"), [0, 1]);
    assert_eq!(values(&answer, "CPUs"), [&cpus[0], &cpus[1]]);
    assert_eq!(values(&answer, "Threads_NUMA"), ["0", "1"]);
    assert_eq!(
        (values(&answer, "GPUs"), values(&answer, "GPUs_NUMA")),
        (vec![&"0".into(), &"1".into()], vec![&"0".into(), &"1".into()])
    );
    assert_eq!(
        values(&answer, "Visible_Devices"),
        ["ROCR_VISIBLE_DEVICES=0", "ROCR_VISIBLE_DEVICES=1"]
    );
    assert!(
        values(&answer, "Verdict").iter().all(|verdict| verdict.is_null()),
        "{answer:#}"
    );
    let (_, is_well) = job.doctor("ok    nothing");
    assert!(is_well);
    let recording = job.recording(1);
    job.end();
    // A recording says the same of its rank.
    let recorded = of_recording(&job, &recording);
    for question in ["placement where rank=1", "placement by pid"] {
        let output = job.roctop(&["ask", recording.to_str().unwrap(), question]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    assert_eq!(
        (values(&recorded, "Rank"), values(&recorded, "Threads_NUMA")),
        (vec![&1.into()], vec![&"1".into()])
    );
}

/// What placement measures of a recording's process, by SQL: bounds of the launch delay, and the rates of copies.
fn by_sql(job: &Job, recording: &Path) -> [i64; 4] {
    let words = [
        "export",
        recording.to_str().unwrap(),
        "--format",
        "rocpd",
        "-d",
        job.place.to_str().unwrap(),
        "-o",
        recording.file_name().unwrap().to_str().unwrap(),
    ];
    let output = job.roctop(&words);
    assert!(output.status.success(), "{output:?}");
    let name = format!("{}_results.db", words[7]);
    let database = Connection::open(job.place.join(name)).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sql/placement.sql");
    let sql = std::fs::read_to_string(path).unwrap();
    let columns = ["Least_ns", "Most_ns", "To_GPU_p50_Bps", "From_GPU_p50_Bps"];
    let row = database.query_row(&sql, [], |row| {
        columns
            .map(|name| row.get(name))
            .into_iter()
            .collect::<Result<Vec<i64>, _>>()
    });
    row.unwrap().try_into().unwrap()
}

#[test]
fn a_verdict_names_what_it_costs_as_sql_measures_it() {
    let Some(rig) = rig() else { return };
    let Some([first, _]) = two_halves() else { return };
    let rank = |gpu, copies| Rank {
        copies: Some(copies),
        ..Rank::on(&first, gpu)
    };
    let mut job = Job::start(rig, "cost", &[rank(0, NEAR), rank(1, FAR)]);
    let (text, is_well) = job.doctor(" copies from the GPU p50 ");
    let verdict = text.lines().find(|line| line.starts_with("BAD   rank 1 launches"));
    let verdict = verdict.unwrap_or_else(|| panic!("{text}")).to_owned();
    assert!(!is_well && verdict.ends_with(" of ranks near their GPU"), "{text}");
    for way in ["to", "from"] {
        let (_, rates) = verdict.split_once(&format!("copies {way} the GPU p50 ≈ ")).unwrap();
        let words: Vec<&str> = rates.split([' ', ',']).collect();
        let [own, unit, "against", "≈", usual, "MB/s", ..] = words[..] else {
            panic!("{verdict}")
        };
        let [own, usual]: [f64; 2] = [own, usual].map(|rate| rate.parse().unwrap());
        assert!(
            unit == "MB/s" && own <= FAR && own < usual && usual <= NEAR,
            "{verdict}"
        );
    }
    job.end();
    for rank in 0..2 {
        let recording = job.recording(rank);
        let answer = of_recording(&job, &recording);
        let number = |name: &str| {
            values(&answer, name)[0]
                .as_i64()
                .unwrap_or_else(|| panic!("{answer:#}"))
        };
        let [least, most, to, from] = by_sql(&job, &recording);
        assert_eq!((number("To_GPU_p50_Bps"), number("From_GPU_p50_Bps")), (to, from));
        let delay = number("Launch_Delay_p50_ns");
        assert!((least..=most).contains(&delay), "{least} {delay} {most}");
    }
}

#[test]
fn ranks_that_share_a_gpu_and_a_core_are_found() {
    let Some(rig) = rig() else { return };
    let Some(cpus) = two_halves() else { return };
    let ranks = [(); 2].map(|()| Rank::of(&["taskset", "-c", &cpus[0]]));
    let mut job = Job::start(rig, "shared", &ranks);
    let answer = job.answer();
    let verdicts = values(&answer, "Verdict");
    // Whether the machine tells its cores decides the second.
    for verdict in verdicts {
        let verdict = verdict.as_str().unwrap();
        assert!(verdict.starts_with("shares its GPU"), "{answer:#}");
    }
    let (text, _) = job.doctor("BAD   ranks 0-1 share GPU 0, and 1 GPU has no kernels");
    assert!(text.contains(": kernels of ranks 0-1 on GPU 0\n"), "{text}");
    job.end();
}

/// A control group of this test's with a set of CPUs, of either version; none if this user may not make one.
struct Group(PathBuf);

impl Group {
    fn new(cpus: &str) -> Option<Self> {
        let name = format!("roctop-placement-{}", std::process::id());
        let made = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpuset"]
            .into_iter()
            .find_map(|root| {
                let root = Path::new(root);
                let is_one = root.join("cgroup.procs").exists();
                let group = Self(root.join(&name));
                (is_one && std::fs::create_dir(&group.0).is_ok()).then_some(())?;
                let mems = std::fs::read_to_string(root.join("cpuset.mems.effective"));
                let mems = mems
                    .or_else(|_| std::fs::read_to_string(root.join("cpuset.effective_mems")))
                    .ok()?;
                let is_set = std::fs::write(group.0.join("cpuset.mems"), mems.trim()).is_ok()
                    && std::fs::write(group.0.join("cpuset.cpus"), cpus).is_ok();
                is_set.then_some(group)
            });
        if made.is_none() {
            println!("skipped: this user may make no control group with a set of CPUs");
        }
        made
    }

    /// The words that start a program inside.
    fn words(&self) -> Vec<String> {
        let inside = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
        ["sh", "-c", &inside, "sh"].map(str::to_owned).into()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Ranks in a control group with one CPU cannot have another one; outside of it they can.
#[test]
fn a_set_of_cpus_bounds_what_is_said_of_real_ranks() {
    let Some(rig) = rig() else { return };
    let Some([first, _]) = two_halves() else { return };
    let Some(group) = Group::new(&first) else { return };
    let inside = |gpu| Rank {
        bound: group.words(),
        gpu: Some(gpu),
        copies: None,
    };
    let mut job = Job::start(rig, "inside", &[inside(0), inside(1)]);
    let answer = job.answer();
    assert_eq!(values(&answer, "CPUs"), [&first; 2]);
    assert_eq!(values(&answer, "CPUs_Available"), [&first; 2]);
    // Far it is, and no line mends it inside.
    assert_eq!(values(&answer, "Verdict"), [&Value::Null, &"far from its GPU".into()]);
    let (text, _) = job.doctor("BAD   rank 1 launches at NUMA node 0, and its GPU 1 is at node 1");
    assert!(!text.contains("try:"), "{text}");
    job.end();
    // The same CPU, and the other one is the job's.
    let mut job = Job::start(rig, "outside", &[Rank::on(&first, 0), Rank::on(&first, 1)]);
    let answer = job.answer();
    let crowded = "crowded on its cores";
    assert_eq!(
        values(&answer, "Verdict"),
        [crowded, &format!("far from its GPU, {crowded}")],
        "{answer:#}"
    );
    job.end();
}

/// A process that is no rank, recorded to its end: its verdict, and the line that mends it.
fn alone(rig: &Rig, bound: &[&str], gpu: u32) -> (Value, Option<Vec<String>>) {
    let job = Job {
        rig: rig.on(&[("EMULATED_GPU_COUNT", "2"), ("EMULATED_GPU_NUMA", "0,1")]),
        place: place("placement-alone"),
        ranks: Vec::new(),
        is_alone: true,
    };
    let rank = Rank {
        gpu: Some(gpu),
        ..Rank::of(bound)
    };
    let output = job.command(0, &[rank], &["60", "1"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let answer = of_recording(&job, &job.recording(0));
    let note = answer["notes"][0].as_str().unwrap();
    let line = note.split_once("; try: ").map(|(_, line)| line);
    (
        values(&answer, "Verdict")[0].clone(),
        line.map(|line| line.split(' ').map(str::to_owned).collect()),
    )
}

/// The line for a process is one that can be run, and then it is well.
#[test]
fn a_process_is_well_behind_the_line_that_it_is_given() {
    let Some(rig) = rig() else { return };
    let Some([first, second]) = two_halves() else { return };
    for (cpu, gpu, tool) in [(&second, 0, "numactl"), (&first, 1, "taskset")] {
        let (verdict, line) = alone(rig, &["taskset", "-c", cpu], gpu);
        let line = line.unwrap();
        // Memory of the second node is none of this machine's, so only its CPUs are named.
        assert_eq!((verdict, &*line[0]), ("far from its GPU".into(), tool), "{line:?}");
        if Command::new(tool).arg("--version").output().is_err() {
            println!("skipped: {tool} is not installed");
            continue;
        }
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        assert_eq!(alone(rig, &line, gpu), (Value::Null, None), "{line:?}");
    }
}

/// numactl binds a process and its memory; roctop sees both.
#[test]
fn what_numactl_binds_is_seen() {
    let Some(rig) = rig() else { return };
    let Some([first, _]) = two_halves() else { return };
    let numactl = ["numactl", "--physcpubind", &first, "--membind", "0"];
    if !Command::new("numactl")
        .arg("--show")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        println!("skipped: numactl is not installed");
        return;
    }
    let rank = Rank {
        gpu: Some(0),
        copies: Some(NEAR),
        ..Rank::of(&numactl)
    };
    let mut job = Job::start(rig, "numactl", &[rank]);
    assert_eq!(values(&job.answer(), "CPUs"), [&first]);
    let question = format!("job:{}", job.name());
    let output = job.roctop(&["ask", &question, "placement buffers", "--format", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let policy = values(&answer, "Memory_Policy")[0].as_str().unwrap();
    assert!(policy.split(' ').any(|word| word == "bind:0"), "{answer:#}");
    assert!(
        values(&answer, "Buffers_By_NUMA")[0]
            .as_str()
            .unwrap()
            .starts_with("0: "),
        "{answer:#}"
    );
    job.end();
}

#[test]
fn a_job_that_is_not_there_is_an_error() {
    let place = place("placement-none");
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    command
        .args(["doctor", "--job", "nobody"])
        .env("XDG_STATE_HOME", place.join("state"));
    let output = command.output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("nobody"), "{output:?}");
}
