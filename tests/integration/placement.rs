//! Where the ranks of a job run, and what is said of it: real processes on real CPUs, which the emulated machine divides among
//! NUMA nodes.

use crate::kit::directory::place;
use crate::kit::rig::{Rig, rig};
use roctop_trace::binding::CpuSet;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// No machine is too busy to show what is waited for.
const PATIENCE: Duration = Duration::from_mins(2);

/// Two ranks, each on a list of CPUs, with a GPU each.
struct Job {
    rig: Rig,
    place: PathBuf,
    ranks: Vec<Child>,
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
    /// Starts them on these CPUs, and these GPUs if they are to choose; the GPUs are at NUMA nodes 0 and 1.
    fn start(rig: &Rig, name: &str, cpus: &[String; 2], gpus: Option<[u32; 2]>) -> Self {
        let rig = rig.on(&[("EMULATED_GPU_COUNT", "2"), ("EMULATED_GPU_NUMA", "0,1")]);
        let place = place(&format!("placement-{name}"));
        let mut job = Self {
            ranks: Vec::new(),
            rig,
            place,
        };
        for rank in 0..2 {
            let at = rank as usize;
            let until = format!("until:{}", job.stop().display());
            let recording = job.recording(rank);
            let options = ["record", "--job", "-o", recording.to_str().unwrap()];
            let mut command = job.rig.command(&job.place, &options, &["serve", "calm", &until, "1"]);
            // Between roctop's options and the program.
            let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
            let program = words.iter().position(|word| word == "--").unwrap() + 1;
            let mut bound = Command::new(command.get_program());
            bound.args(&words[..program]).args(["taskset", "-c", &cpus[at]]);
            bound.args(&words[program..]);
            for (name, value) in command.get_envs() {
                match value {
                    Some(value) => bound.env(name, value),
                    None => bound.env_remove(name),
                };
            }
            for (name, value) in [("RANK", rank), ("SIZE", 2), ("LOCAL_RANK", rank), ("LOCAL_SIZE", 2)] {
                bound.env(format!("OMPI_COMM_WORLD_{name}"), value.to_string());
            }
            bound
                .env("PMIX_NAMESPACE", job.name())
                .envs(gpus.map(|gpus| ("ROCR_VISIBLE_DEVICES", gpus[at].to_string())))
                .env("XDG_STATE_HOME", job.place.join("state"))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command = bound;
            job.ranks.push(command.spawn().unwrap());
        }
        job
    }

    fn name(&self) -> String {
        let name = self.place.file_name().unwrap().to_string_lossy().into_owned();
        format!("{name}-{}", std::process::id())
    }

    fn stop(&self) -> PathBuf {
        self.place.join("stop")
    }

    fn recording(&self, rank: u32) -> PathBuf {
        self.place.join(format!("rank{rank}"))
    }

    fn roctop(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
        command.args(words).env("XDG_STATE_HOME", self.place.join("state"));
        command.env("ROCTOP_CONFIG", "/dev/null").output().unwrap()
    }

    /// What the job's ranks answer, once both ran kernels and were read often enough.
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
                        .is_some_and(|rows| rows.len() == 2 && rows.iter().all(is_known)) =>
                {
                    return answer;
                }
                other => assert!(began.elapsed() < PATIENCE, "{other:?} {output:?}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn end(mut self) {
        std::fs::write(self.stop(), "").unwrap();
        for rank in std::mem::take(&mut self.ranks) {
            let output = rank.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    }
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
    let job = Job::start(rig, "far", &[second, first], Some([0, 1]));
    let answer = job.answer();
    assert_eq!(
        values(&answer, "Verdict"),
        ["far from its GPU", "far from its GPU"],
        "{answer:#}"
    );
    let doctor = job.roctop(&["doctor", "--job", &job.name()]);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), Some(1), "{text}");
    // The memory map of each is read for this question, and for no other.
    assert!(
        [0, 1]
            .iter()
            .all(|rank| text.contains(&format!("numa_maps of rank {rank} "))),
        "{text}"
    );
    assert!(!answer.to_string().contains("numa_maps"), "{answer:#}");
    assert!(
        text.contains("BAD   rank 0 launches at NUMA node 1, and its GPU 0 is at node 0"),
        "{text}"
    );
    let line = text
        .split_once("      try: ")
        .and_then(|(_, line)| line.lines().next())
        .unwrap();
    let (_, lists) = line
        .rsplit_once("for the node's ranks: ")
        .unwrap_or_else(|| panic!("{text}"));
    let lists: Vec<String> = lists.split(' ').map(str::to_owned).collect();
    let cpus: [String; 2] = lists.try_into().unwrap_or_else(|lists| panic!("{lists:?}"));
    job.end();

    // On the CPUs that this line has for them.
    let job = Job::start(rig, "near", &cpus, Some([0, 1]));
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
    let doctor = job.roctop(&["doctor", "--job"]);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.status.success() && text.contains("ok    nothing"), "{text}");
    let recording = job.recording(1);
    let path = job.place.clone();
    job.end();
    // A recording says the same of its rank.
    let job = Job {
        ranks: Vec::new(),
        rig: rig.clone(),
        place: path,
    };
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

#[test]
fn ranks_that_share_a_gpu_and_a_core_are_found() {
    let Some(rig) = rig() else { return };
    let Some(cpus) = two_halves() else { return };
    let job = Job::start(rig, "shared", &[cpus[0].clone(), cpus[0].clone()], None);
    let answer = job.answer();
    let verdicts = values(&answer, "Verdict");
    // Whether the machine tells its cores decides the second.
    for verdict in verdicts {
        let verdict = verdict.as_str().unwrap();
        assert!(verdict.starts_with("shares its GPU"), "{answer:#}");
    }
    let doctor = job.roctop(&["doctor", "--job"]);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        text.contains("BAD   ranks 0-1 share GPU 0, and 1 GPU has no kernels"),
        "{text}"
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
