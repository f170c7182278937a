//! What a traced call costs through the shipped collector, beside its floor and a peer in the same process.
//!
//! `cargo build -p roctop-preload --lib --profile collector && cargo bench -p roctop-preload --bench call`. Programs in C
//! call a stand-in for HIP with the collector preloaded; `ROCTOP_PRELOAD_SO` names another one. Rounds of all cases are
//! interleaved, and times are the thread's own processor time: on a shared machine the ratios count, not the
//! nanoseconds. LTTng-UST is measured where it is installed and this user may run its session daemon. Then it shows what a
//! site adds to a call, from C and from Python. Nothing is asserted.
#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use roctop_ring::session::{control, source, wanted};
use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ROUNDS: &str = "60";
const SITE_ROUNDS: &str = "200";

/// Cases of `sites.c` and `sites.py`, and what they are.
const C_CASES: [(&str, &str); 6] = [
    ("main", "site of a call from main, added"),
    ("deep8", "  8 calls deep"),
    ("deep16", "  16 calls deep"),
    ("deep30", "  30 calls deep"),
    ("lines40", "  40 lines that share one wrapper"),
    ("other", "  a function without sites"),
];
const PYTHON_CASES: [(&str, &str); 5] = [
    ("python2", "site of a call from Python, added: 2 Python frames"),
    ("python4", "  4 Python frames"),
    ("python8", "  8 Python frames"),
    ("python12", "  12 Python frames"),
    ("python30", "  30 Python frames"),
];

fn main() {
    // `cargo test --benches` only asks whether this runs.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let Some(collector) = collector() else {
        println!("skipped: build the collector first (cargo build -p roctop-preload --lib --profile collector)");
        return;
    };
    let place = BenchDir::new();
    let (Some(gate), Some(tracer)) = (place.program("7", &[]), place.program("6", &["-DTRACER"])) else {
        println!("skipped: needs a C compiler");
        return;
    };
    let peer = Peer::start(&place);
    let traced = |program: &Path| {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", &collector)
            .env("ROCTOP_SESSION", place.session())
            .env("ROCTOP_RING_SLOTS", "32768")
            .env("BENCH_CONTROL", place.session().join("control"));
        command
    };
    let mut through_gate = traced(&gate);
    if let Ok(peer) = &peer {
        through_gate.env("BENCH_PEER", &peer.library);
    }
    let calls = run(through_gate.args([ROUNDS, "gate"]));
    let off = run(Command::new(&gate).env("LD_PRELOAD", &collector).args([ROUNDS, "off"]));
    // The callback is registered where nothing else serves, as for HIP's own records.
    place.control(source::HIP);
    let callback = run(traced(&tracer).args([ROUNDS, "tracer"]));
    let empty = run(Command::new(&tracer).args([ROUNDS, "empty"]));
    print(&calls, &off, &callback, &empty);
    place.control(source::AUTO);
    if let Some([program, library]) = place.sites() {
        print_sites(&run(traced(&program).arg(SITE_ROUNDS)), &C_CASES);
        let mut python = traced(Path::new("python3"));
        python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/c/sites.py"));
        python.arg(library).arg(SITE_ROUNDS);
        match python.output() {
            Ok(output) if output.status.success() => print_sites(&times(&output.stdout), &PYTHON_CASES),
            _ => println!("sites of Python: skipped, needs python3 with ctypes"),
        }
    }
    match peer {
        Ok(_) if calls.has("pair") => {}
        Ok(_) => println!("LTTng-UST: skipped, its session did not enable the events"),
        Err(why) => println!("LTTng-UST: skipped, {why}"),
    }
}

fn print(calls: &Times, off: &Times, callback: &Times, empty: &Times) {
    println!(
        "{:<58} {:>9} {:>9} {:>24}  bar",
        "ns each", "least", "median", "ratio, least / median"
    );
    let row = |name: &str, time: [f64; 2], over: [f64; 2], what: &str, bar: &str| {
        let ratio = format!("{:.2} / {:.2} {what}", time[0] / over[0], time[1] / over[1]);
        println!("{name:<58} {:>9.2} {:>9.2} {ratio:>24}  {bar}", time[0], time[1]);
    };
    let floor = calls.of("floor");
    row("two reads of the time stamp counter", floor, floor, "floor", "");
    row("the call untraced", calls.of("plain"), floor, "floor", "");
    row("traced call, wrapped function", calls.of("call"), floor, "floor", "1.3");
    let floor = callback.of("floor");
    row(
        "traced call, the run-time's callback",
        callback.of("asked"),
        floor,
        "floor",
        "1.3",
    );
    row(
        "  the same with an empty callback (the run-time's share)",
        empty.of("asked"),
        empty.of("floor"),
        "floor",
        "",
    );
    row(
        "traced call, wrapped function, HIP's own records asked for",
        callback.of("call"),
        floor,
        "floor",
        "",
    );
    if calls.has("pair") {
        row(
            "LTTng-UST, enter and leave",
            calls.of("pair"),
            calls.of("call"),
            "ours",
            "5",
        );
    }
    let added = |name: &str, times: &Times, case: &str, bar: &str| {
        let (with, without) = (times.of(case), times.of("plain"));
        println!(
            "{name:<58} {:>+9.2} {:>+9.2} {:>24}  {bar}",
            with[0] - without[0],
            with[1] - without[1],
            ""
        );
    };
    added("switched off by the viewer, added", calls, "paused", "1 ns");
    added("loaded without a session, added", off, "call", "1 ns");
    let (apart, added) = (calls.of("apart"), calls.of("added"));
    let lower = calls.percentile("added", 25);
    let share = format!("{:.2} / {:.2} %", 100.0 * lower / apart[1], 100.0 * added[1] / apart[1]);
    println!(
        "{:<58} {lower:>9.2} {:>9.2} {share:>24}  0.5 %",
        format!(
            "a call every {:.1} µs, added (lower quarter, median)",
            apart[1] / 1000.0
        ),
        added[1]
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for (name, one, all) in [
        ("traced calls", "call_alone", "call_all"),
        ("two reads", "floor_alone", "floor_all"),
    ] {
        let (one, all) = (calls.of(one), calls.of(all));
        let bar = if name == "traced calls" { "0.9" } else { "" };
        row(&format!("{name} on {cores} threads, slowest one"), all, all, "", "");
        let ratio = format!("{:.2} / {:.2} of linear", one[0] / all[0], one[1] / all[1]);
        println!(
            "{:<58} {:>9} {:>9} {ratio:>24}  {bar}",
            format!("  against {name} on one"),
            "",
            ""
        );
    }
}

/// What sites add, at the 10th percentile and the median.
fn print_sites(times: &Times, cases: &[(&str, &str)]) {
    for (case, name) in cases {
        let (on, off) = (format!("{case}_on"), format!("{case}_off"));
        if !times.has(&on) {
            continue;
        }
        let added = [10, 50].map(|percent| times.percentile(&on, percent) - times.percentile(&off, percent));
        let bar = match *case {
            "other" => "0 ns",
            _ if case.starts_with("python") => "40 ns",
            _ => "15 ns",
        };
        println!(
            "{name:<58} {:>+9.2} {:>+9.2} {:>24}  {bar}",
            added[0], added[1], "10th percentile, median"
        );
    }
}

/// Nanoseconds by case, sorted.
struct Times(BTreeMap<String, Vec<f64>>);

impl Times {
    fn has(&self, case: &str) -> bool {
        self.0.contains_key(case)
    }
    /// Least and median.
    fn of(&self, case: &str) -> [f64; 2] {
        let times = &self.0[case];
        [times[0], times[times.len() / 2]]
    }
    fn percentile(&self, case: &str, percent: usize) -> f64 {
        let times = &self.0[case];
        times[times.len() * percent / 100]
    }
}

fn run(command: &mut Command) -> Times {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", output.status);
    times(&output.stdout)
}

/// The times that a program printed.
fn times(printed: &[u8]) -> Times {
    let mut times = BTreeMap::<String, Vec<f64>>::new();
    for line in String::from_utf8_lossy(printed).lines() {
        let (case, time) = line.split_once(' ').unwrap();
        times.entry(case.to_owned()).or_default().push(time.parse().unwrap());
    }
    for times in times.values_mut() {
        times.sort_by(f64::total_cmp);
    }
    Times(times)
}

fn first_error(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().find(|line| line.contains("error")).unwrap_or(&text);
    line.trim().to_owned()
}

/// The collector as it is shipped.
fn collector() -> Option<PathBuf> {
    let named = std::env::var_os("ROCTOP_PRELOAD_SO").map(PathBuf::from);
    let built = || {
        let own = std::env::current_exe().ok()?;
        Some(own.ancestors().nth(3)?.join("collector/libroctop_preload.so"))
    };
    named
        .filter(|path| path.metadata().is_ok_and(|facts| facts.len() > 0))
        .or_else(built)
        .filter(|path| path.exists())
}

/// A folder on tmpfs that goes with the run: session and programs.
struct BenchDir(PathBuf);

impl BenchDir {
    fn new() -> Self {
        let dir = PathBuf::from(format!("/dev/shm/roctop-bench-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&dir).unwrap();
        let place = Self(dir);
        std::fs::create_dir(place.session()).unwrap();
        place.control(source::AUTO);
        place
    }

    /// Calls of HIP are wanted, and dispatches from there.
    fn control(&self, source: u64) {
        let mut control = vec![0u8; 4096];
        for (word, value) in [
            (control::RECORDING, 1),
            (control::WANTED, wanted::HIP_API),
            (control::DISPATCH_SOURCE, source),
        ] {
            control[word * 8..][..8].copy_from_slice(&value.to_le_bytes());
        }
        std::fs::write(self.session().join("control"), control).unwrap();
    }

    fn session(&self) -> PathBuf {
        self.0.join("session")
    }

    fn compile(&self, source: &str, result: &str, arguments: &[&str]) -> Result<PathBuf, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/c");
        let result = self.0.join(result);
        let output = Command::new("cc")
            .arg("-O2")
            .arg("-o")
            .arg(&result)
            .arg("-I")
            .arg(&folder)
            .arg(folder.join(source))
            .args(arguments)
            .output();
        match output {
            Ok(output) if output.status.success() => Ok(result),
            Ok(output) => Err(first_error(&output.stderr)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The program and the library that time calls with sites. Needs the stand-in for release 7.
    fn sites(&self) -> Option<[PathBuf; 2]> {
        let folder = self.0.display();
        let (search, path) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
        let links = [search.as_str(), "-l:libamdhip64.so.7", path.as_str()];
        let program = self.compile("sites.c", "sites", &links).ok()?;
        let as_library = [&["-shared", "-fPIC"], &links[..]].concat();
        Some([program, self.compile("sites.c", "libsites.so", &as_library).ok()?])
    }

    /// The program with its stand-in for a release of HIP.
    fn program(&self, release: &str, define: &[&str]) -> Option<PathBuf> {
        let library = format!("libamdhip64.so.{release}");
        let soname = format!("-Wl,-soname,{library}");
        self.compile(
            "stub_hip.c",
            &library,
            &[&["-shared", "-fPIC", &soname], define].concat(),
        )
        .ok()?;
        let (folder, library) = (self.0.display(), format!("-l:{library}"));
        let (search, path) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
        self.compile(
            "calls.c",
            &format!("calls-{release}"),
            &[&search, &library, &path, "-lpthread", "-ldl"],
        )
        .ok()
    }
}

impl Drop for BenchDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// LTTng with a session in flight-recorder mode, where both sides only write to memory.
struct Peer {
    library: PathBuf,
    session: String,
    /// The daemon, when it is ours.
    daemon: Option<u32>,
}

impl Peer {
    fn start(place: &BenchDir) -> Result<Self, String> {
        let library = place.compile("peer.c", "peer.so", &["-shared", "-fPIC", "-llttng-ust", "-ldl"]);
        let library = library.map_err(|why| format!("it does not compile (liblttng-ust-dev): {why}"))?;
        let mut daemon = None;
        if lttng(&["list"]).is_err() {
            let file = place.0.join("daemon");
            let started = Command::new("lttng-sessiond")
                .args(["--daemonize", "--no-kernel", "--pidfile"])
                .arg(&file)
                .output();
            if !started.is_ok_and(|output| output.status.success()) {
                return Err("its session daemon does not start (lttng-tools)".into());
            }
            daemon = std::fs::read_to_string(file)
                .ok()
                .and_then(|text| text.trim().parse().ok());
        }
        let session = format!("roctop-bench-{}", std::process::id());
        let made = Self {
            library,
            session,
            daemon,
        };
        let output = format!("--output={}", place.0.join("lttng").display());
        lttng(&["create", "--snapshot", &output, &made.session])?;
        lttng(&[
            "enable-event",
            "--session",
            &made.session,
            "--userspace",
            "roctop_peer:*",
        ])?;
        lttng(&["start", &made.session])?;
        Ok(made)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = lttng(&["destroy", &self.session]);
        if let Some(pid) = self.daemon {
            let _ = Command::new("sh").args(["-c", &format!("kill {pid}")]).status();
        }
    }
}

fn lttng(words: &[&str]) -> Result<(), String> {
    match Command::new("lttng").args(words).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("lttng: {error}")),
    }
}
