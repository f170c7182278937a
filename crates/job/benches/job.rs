//! What the network of a job takes: time until all nodes are known, the root's CPU time and memory, losses noticed, answers.
//!
//! `cargo bench -p roctop-job --bench job -- [NODES]` prints a table; 100 nodes by default. Nodes are in processes of 25, each
//! with its own connection and thread; two are alone in a process, which is killed or stopped. The root is in this process.
//! Reports are 10 KB, once a second. Limits are those of the project for 1000 nodes on sixteen cores.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

use bytes::{BufMut, Bytes, BytesMut};
use roctop_job::{Address, Authority, Config, Daemon, Event, Listen, Name, Reason, Role, Subscription, Transport};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nodes of a process.
const TOGETHER: usize = 25;
/// Length of a report, bytes.
const REPORT: usize = 10 << 10;
/// Length of a long answer, bytes.
const ANSWER: usize = 20 << 20;
/// In this time all nodes connect.
const STORM: Duration = Duration::from_secs(1);
const STEADY: Duration = Duration::from_secs(10);
const LIMIT: Duration = Duration::from_mins(1);

fn realtime() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A process of nodes `first..first + count`: they connect at `go` (CLOCK_REALTIME, ns) and report until the input ends.
fn nodes(arguments: &[String]) {
    let [jobs, address, first, count, all, go] = arguments else {
        panic!("{arguments:?}")
    };
    let [first, count, all]: [u64; 3] = [first, count, all].map(|text| text.parse().unwrap());
    let go: u64 = go.parse().unwrap();
    let authority = Authority::open(Path::new(jobs), &name("bench")).unwrap();
    let keys: Vec<_> = (first..first + count)
        .map(|n| authority.issue(Role::Node, &name(&format!("n{n:04}"))).unwrap())
        .collect();
    let mut running = Vec::new();
    for (n, key) in (first..).zip(&keys) {
        let at = go + STORM.as_nanos() as u64 * n / all;
        std::thread::sleep(Duration::from_nanos(at.saturating_sub(realtime())));
        let config = Config {
            info: Some(Bytes::new()),
            report_to: Some(Address::Fixed(address.clone())),
            ..Config::default()
        };
        let (daemon, mut questions) = Daemon::start(key, config).unwrap();
        std::thread::spawn(move || {
            while !questions.is_closed() {
                if let Some(question) = questions.next_within(LIMIT)
                    && question.reply.send(Bytes::from(vec![1; ANSWER]))
                {
                    question.reply.complete();
                }
            }
        });
        running.push(daemon);
    }
    std::thread::spawn(move || {
        for sequence in 0u64.. {
            let began = Instant::now();
            for daemon in &running {
                let mut report = BytesMut::zeroed(0);
                report.put_u64(sequence);
                report.put_u64(realtime());
                report.resize(REPORT, 7);
                daemon.publish(report.freeze()).unwrap();
                std::thread::sleep(Duration::from_secs(1) / (count as u32 + 1));
            }
            std::thread::sleep(Duration::from_secs(1).saturating_sub(began.elapsed()));
        }
    });
    // The end of the input is the end of the benchmark.
    let _ = std::io::stdin().read(&mut [0]);
}

struct Process(Child);

impl Process {
    fn start(jobs: &Path, address: &str, first: usize, count: usize, all: usize, go: u64) -> Self {
        let numbers = [first, count, all].map(|number| number.to_string());
        let child = Command::new(std::env::current_exe().unwrap())
            .arg("nodes")
            .arg(jobs)
            .arg(address)
            .args(numbers)
            .arg(go.to_string())
            .stdin(Stdio::piped())
            .spawn();
        Self(child.unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// CPU time of this process in seconds, and its memory in MB: now and at most.
fn own_cost() -> (f64, u64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let megabytes = |key: &str| {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1000
    };
    (ticks as f64 / 100.0, megabytes("VmRSS"), megabytes("VmHWM"))
}

/// What the reports say.
#[derive(Default)]
struct Reports {
    latencies: Vec<u64>,
    next: BTreeMap<Name, u64>,
    lost: u64,
}

impl Reports {
    fn take(&mut self, event: &Event) {
        let Event::Report { node, report } = event else { return };
        let number = |at: usize| u64::from_be_bytes(report[at..at + 8].try_into().unwrap());
        self.latencies.push(realtime().saturating_sub(number(8)));
        let next = self.next.entry(node.clone()).or_insert(number(0));
        self.lost += number(0).saturating_sub(*next);
        *next = number(0) + 1;
    }

    fn drain(&mut self, events: &mut Subscription, time: Duration) {
        let began = Instant::now();
        while let Some(event) = events.next_within(time.saturating_sub(began.elapsed())) {
            self.take(&event);
        }
    }

    /// Latencies of the 50th and 99th percentile and the longest, ms; how many.
    fn words(&mut self) -> String {
        self.latencies.sort_unstable();
        let count = self.latencies.len();
        let at = |share: f64| self.latencies[((count - 1) as f64 * share) as usize] as f64 / 1e6;
        let words = format!("{:.2} / {:.2} / {:.2} ms of {count}", at(0.5), at(0.99), at(1.0));
        self.latencies.clear();
        words
    }
}

/// Time until an event comes.
fn until(events: &mut Subscription, mut is_it: impl FnMut(&Event) -> bool) -> Duration {
    let began = Instant::now();
    loop {
        let event = events.next_within(LIMIT.saturating_sub(began.elapsed()));
        if is_it(&event.expect("the event does not come")) {
            return began.elapsed();
        }
    }
}

fn row(what: &str, limit: &str, found: &str) {
    println!("| {what} | {limit} | {found} |");
}

fn start_root(authority: &Authority, address: &str) -> Daemon {
    let key = authority.issue(Role::Root, &name("root")).unwrap();
    let config = Config {
        listen: Some(Listen::At(address.to_owned())),
        ..Config::default()
    };
    Daemon::start(&key, config).unwrap().0
}

fn wait_for(root: &Daemon, count: usize) {
    let began = Instant::now();
    while root.alive().len() < count {
        assert!(began.elapsed() < LIMIT, "{} of {count} nodes", root.alive().len());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Connections that say nothing, and others that fail at TLS again and again, until it ends.
fn intruders(address: &str, is_over: &Arc<AtomicBool>) -> Vec<TcpStream> {
    for _ in 0..8 {
        let (address, is_over) = (address.to_owned(), is_over.clone());
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                if let Ok(mut stream) = TcpStream::connect(&address) {
                    use std::io::Write;
                    let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
                    let _ = stream.read(&mut [0; 64]);
                }
            }
        });
    }
    (0..500).map(|_| TcpStream::connect(address).unwrap()).collect()
}

fn measure(all: usize, jobs: &Path) {
    let limit = roctop_job::raise_descriptor_limit();
    let cores = std::thread::available_parallelism().unwrap();
    println!("{all} nodes, {cores} CPUs, {limit} file descriptors\n");
    println!("| what | limit | found |\n| --- | --- | --- |");
    let authority = Authority::open_or_create(jobs, &name("bench"), Duration::from_hours(1)).unwrap();
    let root = start_root(&authority, "127.0.0.1:0");
    let address = root.address().unwrap().to_string();
    let go = realtime() + 1_500_000_000 + all as u64 * 2_000_000;
    let mut first = 0;
    let mut processes = Vec::new();
    for count in [1, 1].into_iter().chain(std::iter::repeat(TOGETHER)) {
        let count = count.min(all - first);
        if count == 0 {
            break;
        }
        processes.push(Process::start(jobs, &address, first, count, all, go));
        first += count;
    }
    std::thread::sleep(Duration::from_nanos(go.saturating_sub(realtime())));
    let (before, ..) = own_cost();
    wait_for(&root, all);
    let known = realtime().saturating_sub(go) / 1_000_000;
    let (cpu, _, peak) = own_cost();
    row(
        "all known after the begin of a storm of 1 s",
        "5 s",
        &format!("{known} ms"),
    );
    row(
        "root: CPU time, peak memory",
        "300 MB",
        &format!("{:.2} s, {peak} MB", cpu - before),
    );

    let mut events = root.subscribe();
    let mut reports = Reports::default();
    steady(&root, &mut events, &mut reports);
    answers(&root, &name(&format!("n{:04}", all - 1)), &mut events, &mut reports);
    losses(&mut events, &processes);
    drop(events);
    drop(root);
    std::thread::sleep(Duration::from_secs(2));
    let began = Instant::now();
    let root = start_root(&authority, &address);
    wait_for(&root, all - 1);
    row(
        "all back after the root's restart",
        "5 s",
        &format!("{} ms", began.elapsed().as_millis()),
    );

    join_among_intruders(&authority, &root, all);
}

/// The root's cost, and how late reports are.
fn steady(root: &Daemon, events: &mut Subscription, reports: &mut Reports) {
    reports.drain(events, Duration::from_secs(1));
    reports.latencies.clear();
    let ((before, ..), began) = (own_cost(), Instant::now());
    reports.drain(events, STEADY);
    let (cpu, memory, _) = own_cost();
    let share = 100.0 * (cpu - before) / began.elapsed().as_secs_f64();
    row(
        "steady root: CPU, memory",
        "100 %, 300 MB",
        &format!("{share:.1} %, {memory} MB"),
    );
    row("latency of reports, p50 / p99 / longest", "2 s", &reports.words());
    row("reports lost", "0", &format!("{}", reports.lost + events.missed()));
    let clocks: Vec<u64> = root
        .alive()
        .iter()
        .filter_map(|node| Some(node.clock?.offset_ns.unsigned_abs()))
        .collect();
    let worst = clocks.iter().max().unwrap() / 1000;
    row(
        "clocks compared, worst error",
        "",
        &format!("{}, {worst} us", clocks.len()),
    );
}

/// Long answers beside live reports.
fn answers(root: &Daemon, asked: &Name, events: &mut Subscription, reports: &mut Reports) {
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| reports.drain(events, Duration::from_secs(2)));
        for _ in 0..5 {
            let began = Instant::now();
            let answer = root.query(asked, Bytes::from_static(b"events"));
            assert_eq!(answer.collect(ANSWER, LIMIT).unwrap().len(), ANSWER);
            times.push(began.elapsed().as_millis());
        }
    });
    row("answers of 20 MB", "1 s", &format!("{times:?} ms"));
    row("latency of reports meanwhile", "2 s", &reports.words());
}

/// The first process is killed, the second is stopped and goes on.
fn losses(events: &mut Subscription, processes: &[Process]) {
    let gone = |event: &Event, expected: Reason| matches!(event, Event::Gone { reason, .. } if *reason == expected);
    processes[0].signal(Signal::KILL);
    let time = until(events, |event| gone(event, Reason::Closed));
    row(
        "killed node noticed",
        "1 s",
        &format!("{:.1} ms", time.as_secs_f64() * 1e3),
    );
    processes[1].signal(Signal::STOP);
    let time = until(events, |event| gone(event, Reason::Silent));
    row("stopped node noticed", "5 s", &format!("{:.2} s", time.as_secs_f64()));
    processes[1].signal(Signal::CONT);
    let time = until(events, |event| matches!(event, Event::Known { .. }));
    row("back after it goes on", "", &format!("{:.2} s", time.as_secs_f64()));
}

/// An honest node among others.
fn join_among_intruders(authority: &Authority, root: &Daemon, all: usize) {
    let address = root.address().unwrap().to_string();
    let is_over = Arc::new(AtomicBool::new(false));
    let silent = intruders(&address, &is_over);
    std::thread::sleep(Duration::from_millis(500));
    let key = authority.issue(Role::Node, &name("honest")).unwrap();
    let began = Instant::now();
    let config = Config {
        info: Some(Bytes::new()),
        report_to: Some(Address::Fixed(address)),
        ..Config::default()
    };
    let (honest, _questions) = Daemon::start(&key, config).unwrap();
    wait_for(root, all);
    row(
        "an honest node joins beside 500 silent and 8 failing connections",
        "",
        &format!("{} ms", began.elapsed().as_millis()),
    );
    is_over.store(true, Ordering::Relaxed);
    drop((silent, honest));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|text| text != "--bench").collect();
    if arguments.first().is_some_and(|first| first == "nodes") {
        return nodes(&arguments[1..]);
    }
    let all = arguments.first().map_or(100, |text| text.parse().unwrap());
    let folder: PathBuf = std::env::temp_dir().join(format!("roctop-bench-{}", std::process::id()));
    let jobs = folder.join("roctop/jobs");
    measure(all, &jobs);
    let _ = std::fs::remove_dir_all(folder);
}
