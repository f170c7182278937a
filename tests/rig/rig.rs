//! The rig: real HIP programs on the real run-time over the emulated GPU, recorded by roctop, compared with the emulated
//! GPU's own log of what it did.
//!
//! `ROCTOP_TEST_RELEASE` chooses another release than the installed 5.2.3, as `tests/runtimes/fetch` unpacked it.
//!
//! What is compared is joined by queue and order, and by order of begin for copies, never by time alone.

use roctop::export::run::Run;
use roctop::item::{Copy, Dispatch, Item, ProcessId};
use roctop::recording::Recording;
use roctop_ring::record::{engine, flag};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// A recorded time may differ from the log's by this much, ns.
pub(crate) const TOLERANCE: u64 = 1000;

/// What the tests run with.
#[derive(Clone)]
pub(crate) struct Rig {
    emulated_gpu: PathBuf,
    apps: PathBuf,
    /// A library that is preloaded before everybody else.
    front: Option<PathBuf>,
    /// What stands in for registration, for runs in which the run-times hand their tables over.
    bridge: Option<PathBuf>,
    /// Another release than the installed one.
    release: Option<String>,
    /// More variables of the emulated GPU.
    machine: Vec<(&'static str, &'static str)>,
}

/// The rig, made once for all tests of a file; none, with the reason printed, where ROCm 5.2.3 is not installed.
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

/// Another release than the installed 5.2.3, when one was chosen.
pub(crate) fn release() -> Option<String> {
    std::env::var("ROCTOP_TEST_RELEASE")
        .ok()
        .filter(|release| release != "5.2.3")
}

/// The release whose compiler makes the programs.
pub(crate) fn source() -> String {
    // Programs of 5.2.3 run on 5.7.1 as they are.
    release()
        .filter(|release| release != "5.7.1")
        .unwrap_or_else(|| "5.2.3".to_owned())
}

/// A library of the rig's own, compiled.
fn library(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/rig/{name}.c"));
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
            .ok_or("the test lies nowhere")?
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
            }),
            Some(77) => Err(format!("no hipcc of ROCm {source} (see tests/runtimes)")),
            _ => Err(format!(
                "tests/apps/build failed: {}",
                String::from_utf8_lossy(&built.stderr)
            )),
        }
    }

    /// The same rig with run-times that hand their tables to the real rocprofiler-register; an error says why there is
    /// none on this release.
    pub(crate) fn registering(&self) -> Result<Self, String> {
        if release().is_none_or(|release| release != "7.2.4") {
            return Err("Debian has rocprofiler-register beside 7.2.4 only".into());
        }
        Ok(Self {
            bridge: Some(library("bridge")),
            ..self.clone()
        })
    }

    /// The same rig behind a library that shadows much of what emulations shadow.
    pub(crate) fn behind_a_nosy_one(&self) -> Self {
        Self {
            front: Some(library("nosy")),
            ..self.clone()
        }
    }

    /// The same rig on another machine, by variables of the emulated GPU.
    pub(crate) fn on(&self, machine: &[(&'static str, &'static str)]) -> Self {
        Self {
            machine: machine.to_vec(),
            ..self.clone()
        }
    }

    /// Is this the installed 5.2.3?
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

    /// The same rig on another prefix of the same release.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Self {
        Self {
            bridge: None,
            release: Some(prefix.to_owned()),
            ..self.clone()
        }
    }

    /// A new empty directory for one test.
    pub(crate) fn place(name: &str) -> PathBuf {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("run-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// The command that runs `words` (an app's name and arguments) over the emulated GPU, under roctop's `options` when
    /// there are any.
    pub(crate) fn command(&self, place: &Path, options: &[&str], words: &[&str]) -> Command {
        let mut line: Vec<PathBuf> = Vec::new();
        if !options.is_empty() {
            line.push(env!("CARGO_BIN_EXE_roctop").into());
            line.extend(options.iter().map(PathBuf::from));
            line.push("--".into());
        }
        line.push(self.apps.join(words[0]));
        line.extend(words[1..].iter().map(PathBuf::from));
        let mut preload = self.front.clone().map_or_else(OsString::new, PathBuf::into_os_string);
        if self.front.is_some() {
            preload.push(":");
        }
        preload.push(&self.emulated_gpu);
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
        command.envs(self.machine.iter().copied());
        command.current_dir(place).stdin(Stdio::null());
        command.env("EMULATED_GPU_LOG", place.join("truth.%p.csv"));
        command
            .env("APP_CALL_COUNTS", place.join("counts"))
            .env("APP_MARKER_COUNTS", place.join("markers"))
            .env("APP_MEMORY", place.join("memory"));
        command
    }

    /// A shell script in `place`, with roctop in PATH and the app `name` as ./app, on the installed release.
    pub(crate) fn script(&self, place: &Path, name: &str, text: &str) -> Command {
        std::os::unix::fs::symlink(self.apps.join(name), place.join("app")).unwrap();
        let beside = Path::new(env!("CARGO_BIN_EXE_roctop")).parent().unwrap();
        let path = format!("{}:{}", beside.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command.args(["-euc", text]).current_dir(place).stdin(Stdio::null());
        command.env("PATH", path).env("LD_PRELOAD", &self.emulated_gpu);
        command
    }

    /// Runs an app plainly: the same environment, no roctop.
    pub(crate) fn plain(&self, name: &str, words: &[&str]) -> Output {
        let place = Self::place(&format!("plain-{name}"));
        self.command(&place, &[], words).output().unwrap()
    }

    /// Records an app and loads everything that there is to compare.
    pub(crate) fn record(&self, name: &str, words: &[&str]) -> Recorded {
        self.record_with(name, &[], words)
    }

    /// The same with more options.
    pub(crate) fn record_with(&self, name: &str, more: &[&str], words: &[&str]) -> Recorded {
        let place = Self::place(name);
        let recording = place.join("rec");
        let mut options = vec!["record", "-o", recording.to_str().unwrap()];
        options.extend(more);
        let output = self.command(&place, &options, words).output().unwrap();
        Recorded::load(&place, output)
    }
}

/// A row of the emulated GPU's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) kind: String,
    pub(crate) pid: u32,
    pub(crate) queue: u64,
    pub(crate) index: u64,
    pub(crate) kernel_object: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) workgroup: [u16; 3],
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) bytes: u64,
    pub(crate) name: String,
    pub(crate) group: u32,
    pub(crate) private: u32,
    pub(crate) gpu: u32,
}

/// A recorded run and its truth.
pub(crate) struct Recorded {
    pub(crate) place: PathBuf,
    pub(crate) output: Output,
    pub(crate) run: Run,
    /// What the collector said of itself.
    pub(crate) said: Vec<String>,
    /// Copies that were under way when each process ended.
    pub(crate) under_way: BTreeMap<ProcessId, u64>,
    /// Dispatches that had not completed then.
    pub(crate) in_flight: BTreeMap<ProcessId, usize>,
    pub(crate) truth: Vec<Truth>,
}

impl Recorded {
    pub(crate) fn load(place: &Path, output: Output) -> Self {
        let (mut run, mut said) = (Run::default(), Vec::new());
        let (mut under_way, mut in_flight) = (BTreeMap::new(), BTreeMap::new());
        let recording = Recording::open(&place.join("rec")).unwrap();
        recording
            .items(&mut |items| {
                for item in items {
                    if let Item::Status { text, .. } = &item {
                        said.push(text.to_string());
                    }
                    if let Item::Open(open) = &item {
                        under_way.insert(open.process, open.copies);
                        in_flight.insert(open.process, open.dispatches.len());
                    }
                    run.add(item);
                }
            })
            .unwrap();
        Self {
            place: place.to_owned(),
            output,
            run,
            said,
            under_way,
            in_flight,
            truth: read_truth(place),
        }
    }

    pub(crate) fn kernel(&self, dispatch: &Dispatch) -> &str {
        &self.run.kernels[dispatch.kernel.0 as usize].mangled
    }

    /// The dispatches of each queue, as logged and as recorded, in order; queues belong together that began at one time.
    pub(crate) fn queues(&self) -> Vec<(Vec<&Truth>, Vec<&Dispatch>)> {
        let mut truth: BTreeMap<(u32, u64), Vec<&Truth>> = BTreeMap::new();
        // Nameless kernels are the run-time's own uploads of code, on a queue of its own.
        for row in self
            .truth
            .iter()
            .filter(|row| row.kind == "dispatch" && !row.name.is_empty())
        {
            truth.entry((row.pid, row.queue)).or_default().push(row);
        }
        let mut recorded: BTreeMap<(u32, u32), Vec<&Dispatch>> = BTreeMap::new();
        for dispatch in self
            .run
            .dispatches
            .iter()
            .filter(|d| !self.kernel(d).starts_with("(unnamed"))
        {
            let pid = self.run.processes[dispatch.process.0 as usize].pid;
            recorded.entry((pid, dispatch.queue.0)).or_default().push(dispatch);
        }
        for queue in recorded.values_mut() {
            queue.sort_by_key(|dispatch| dispatch.dispatch_id);
        }
        for queue in truth.values_mut() {
            queue.sort_by_key(|row| row.index);
        }
        let mut queues = Vec::new();
        for ((pid, _), dispatches) in recorded {
            let same = |((other, _), rows): &(&(u32, u64), &Vec<&Truth>)| {
                let names = |at: usize| rows.get(at).map(|row| row.name.as_str());
                *other == pid && names(0) == dispatches.first().map(|dispatch| self.kernel(dispatch))
            };
            let nearest = truth
                .iter()
                .filter(same)
                .min_by_key(|(_, rows)| rows[0].begin.abs_diff(dispatches[0].span.begin))
                .map(|(key, _)| *key);
            let key = nearest.unwrap_or_else(|| panic!("no queue of the log began as {:?}", dispatches[0]));
            queues.push((truth.remove(&key).unwrap(), dispatches));
        }
        queues.extend(truth.into_values().map(|rows| (rows, Vec::new())));
        queues
    }

    /// Every dispatch of the log that the program caused is recorded once, with its name, queue, geometry and times.
    pub(crate) fn check_dispatches(&self) -> usize {
        let mut logged = 0;
        for (rows, dispatches) in self.queues() {
            assert_eq!(dispatches.len(), rows.len(), "number of dispatches");
            for (row, dispatch) in rows.iter().zip(&dispatches) {
                self.check_dispatch(row, dispatch);
            }
            logged += rows.len();
        }
        logged
    }

    /// The same where the program was ended in the middle of the work: the emulated GPU writes its log before it completes
    /// signals, so the last rows of a queue may be of dispatches that never completed; those are told as in flight.
    pub(crate) fn check_dispatches_after_a_crash(&self) -> usize {
        self.check_queues_after_a_crash(|rows, dispatches| {
            for (row, dispatch) in rows.iter().zip(dispatches) {
                self.check_dispatch(row, dispatch);
            }
        })
    }

    /// The same for a program with one queue that ended within HSA: kernels that had the program's own signal and were not
    /// looked at yet are in flight for ever, and later ones were found complete.
    pub(crate) fn check_dispatches_of_one_queue_after_a_crash(&self) -> usize {
        self.check_queues_after_a_crash(|rows, dispatches| {
            for dispatch in dispatches {
                let row = rows.iter().find(|row| row.index + 1 == dispatch.dispatch_id);
                self.check_dispatch(row.expect("it was logged"), dispatch);
            }
        })
    }

    /// Of each queue no more than was logged, and what is missing in flight; how many were logged.
    pub(crate) fn check_queues_after_a_crash(&self, check: impl Fn(&[&Truth], &[&Dispatch])) -> usize {
        let (mut logged, mut missing) = (0, 0);
        for (rows, dispatches) in self.queues() {
            assert!(dispatches.len() <= rows.len(), "more dispatches than were logged");
            check(&rows, &dispatches);
            missing += rows.len() - dispatches.len();
            logged += rows.len();
        }
        let in_flight: usize = self.in_flight.values().sum();
        assert!(
            missing <= in_flight,
            "{missing} dispatches missing, {in_flight} in flight"
        );
        logged
    }

    fn check_dispatch(&self, row: &Truth, dispatch: &Dispatch) {
        self.check_dispatch_within(row, dispatch, TOLERANCE);
    }

    /// The same with times that may be so many ns off.
    pub(crate) fn check_dispatch_within(&self, row: &Truth, dispatch: &Dispatch, tolerance: u64) {
        let context = format!("{row:?}\n{dispatch:?}");
        assert_eq!(self.kernel(dispatch), row.name, "{context}");
        assert_eq!(
            (dispatch.grid, dispatch.workgroup),
            (row.grid, row.workgroup),
            "{context}"
        );
        assert_eq!(
            (dispatch.group_size, dispatch.private_size),
            (row.group, row.private),
            "{context}"
        );
        assert!(dispatch.span.begin.abs_diff(row.begin) <= tolerance, "begin: {context}");
        assert!(dispatch.span.end.abs_diff(row.end) <= tolerance, "end: {context}");
    }

    /// Every dispatch that the log says was complete is recorded with its times, but for those of the last moment before
    /// the end: the emulated GPU writes its log before it tells the host. Returns how many those are, and all of the log.
    pub(crate) fn missing_at_the_end(&self, moment: Duration) -> (usize, usize) {
        let queues = self.queues();
        let last = queues
            .iter()
            .filter_map(|(rows, _)| rows.last())
            .map(|row| row.end)
            .max()
            .unwrap_or(0);
        let (mut missing, mut all) = (0, 0);
        for (rows, dispatches) in &queues {
            for (row, dispatch) in rows.iter().zip(dispatches) {
                self.check_dispatch(row, dispatch);
            }
            for row in rows.iter().skip(dispatches.len()) {
                assert!(
                    row.end + moment.as_nanos() as u64 > last,
                    "completed long before the end, yet missing: {row:?}"
                );
                missing += 1;
            }
            all += rows.len();
        }
        (missing, all)
    }

    /// Every copy of the log that a DMA engine made is recorded once, with its bytes and its own times.
    pub(crate) fn check_copies(&self) -> usize {
        let missing = self.copies_not_recorded();
        assert_eq!(missing, 0, "copies of the log that are not recorded");
        self.truth.iter().filter(|row| row.kind == "sdma_copy").count()
    }

    /// The same after a crash: as many copies are missing as roctop says were under way, or fewer.
    pub(crate) fn check_copies_after_a_crash(&self) {
        let under_way: u64 = self.under_way.values().sum();
        let missing = self.copies_not_recorded();
        assert!(missing as u64 <= under_way, "{missing} missing, {under_way} under way");
    }

    /// Every recorded copy is one of the log, with its bytes and times. Returns how many of the log have none.
    fn copies_not_recorded(&self) -> usize {
        let mut truth: Vec<&Truth> = self.truth.iter().filter(|row| row.kind == "sdma_copy").collect();
        let mut recorded: Vec<&Copy> = self
            .run
            .copies
            .iter()
            .filter(|copy| copy.engine == engine::SDMA)
            .collect();
        truth.sort_by_key(|row| (row.begin, row.end, row.bytes));
        recorded.sort_by_key(|copy| (copy.span.begin, copy.span.end, copy.bytes));
        let mut open: Vec<&Copy> = Vec::new();
        let mut next = recorded.into_iter().peekable();
        let mut missing = 0;
        for row in &truth {
            // Copies that began within the tolerance of each other may come in another order.
            while next.peek().is_some_and(|copy| copy.span.begin <= row.begin + TOLERANCE) {
                open.extend(next.next());
            }
            let near = |a: u64, b: u64| a.abs_diff(b) <= TOLERANCE;
            let same = open.iter().enumerate().filter(|(_, copy)| {
                copy.bytes == row.bytes && near(copy.span.begin, row.begin) && near(copy.span.end, row.end)
            });
            // The nearest one: of copies that take no time there may be many within the tolerance.
            match same.min_by_key(|(_, copy)| copy.span.begin.abs_diff(row.begin)) {
                Some((found, _)) => _ = open.swap_remove(found),
                None => missing += 1,
            }
        }
        open.extend(next);
        assert!(
            open.is_empty(),
            "recorded, but not as in the log ({missing} of which are missing): {open:?}"
        );
        missing
    }

    /// The calls that the program counted itself are recorded, as many of each name.
    pub(crate) fn check_calls(&self) -> usize {
        let counts = std::fs::read_to_string(self.place.join("counts")).unwrap();
        let mut recorded: BTreeMap<&str, u64> = BTreeMap::new();
        for call in self.run.calls.iter().filter(|call| call.parent == 0) {
            *recorded
                .entry(&self.run.operations[call.operation.0 as usize].name)
                .or_default() += 1;
        }
        let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
        for line in counts.lines() {
            let (name, count) = line.split_once(' ').unwrap();
            *counted.entry(name).or_default() += count.parse::<u64>().unwrap();
        }
        // What the compiler puts before and after main is not counted by the program.
        recorded.retain(|name, _| name.starts_with("hip") || counted.contains_key(name));
        assert_eq!(recorded, counted);
        counted.values().sum::<u64>() as usize
    }

    /// Calls of a thread lie inside each other or apart.
    pub(crate) fn check_nesting(&self) {
        let mut threads: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        for call in &self.run.calls {
            assert!(call.span.begin <= call.span.end, "{call:?}");
            threads
                .entry(call.thread.0)
                .or_default()
                .push((call.span.begin, call.span.end));
        }
        for spans in threads.values_mut() {
            spans.sort_by_key(|&(begin, end)| (begin, std::cmp::Reverse(end)));
            let mut open: Vec<u64> = Vec::new();
            for &(begin, end) in spans.iter() {
                while open.last().is_some_and(|&outer| outer <= begin) {
                    open.pop();
                }
                assert!(
                    open.last().is_none_or(|&outer| end <= outer),
                    "calls of one thread cross"
                );
                open.push(end);
            }
        }
    }

    /// Every dispatch of the program's own kernels leads to a call, made before the dispatch began, on its thread.
    pub(crate) fn check_correlation(&self) {
        let calls: BTreeMap<(u32, u64), _> = self
            .run
            .calls
            .iter()
            .map(|call| ((call.process.0, call.correlation), call))
            .collect();
        for dispatch in &self.run.dispatches {
            let kernel = &self.run.kernels[dispatch.kernel.0 as usize];
            if kernel.internal {
                continue;
            }
            let call = calls.get(&(dispatch.process.0, dispatch.correlation));
            let call = call.unwrap_or_else(|| panic!("no call for {dispatch:?} ({})", kernel.name));
            let name = &self.run.operations[call.operation.0 as usize].name;
            assert!(name.contains("Launch"), "{name} launched {}", kernel.name);
            assert_eq!(Some(call.thread), dispatch.thread, "{name}");
            let is_untimed = dispatch.flags & flag::UNTIMED != 0;
            assert!(
                is_untimed || call.span.begin <= dispatch.span.begin + TOLERANCE,
                "{call:?} {dispatch:?}"
            );
        }
    }

    /// Nothing was lost.
    pub(crate) fn check_lost(&self) {
        let lost: Vec<_> = self.run.lost.iter().filter(|(_, records)| **records > 0).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}

pub(crate) fn read_truth(place: &Path) -> Vec<Truth> {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("truth.") {
            rows.extend(read_log(&std::fs::read_to_string(path).unwrap()));
        }
    }
    rows
}

fn read_log(text: &str) -> Vec<Truth> {
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    // The last line may have been cut by a kill.
    let whole = lines
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|cells| cells.len() == columns.len());
    whole
        .map(|cells| {
            let cell = |name: &str| {
                columns
                    .iter()
                    .position(|column| *column == name)
                    .map_or("", |at| cells[at])
            };
            let number = |name: &str| cell(name).parse::<u64>().unwrap_or(0);
            Truth {
                kind: cell("kind").to_owned(),
                pid: number("pid") as u32,
                queue: number("queue"),
                index: number("index"),
                kernel_object: u64::from_str_radix(cell("kernel_object").trim_start_matches("0x"), 16).unwrap_or(0),
                grid: ["grid_x", "grid_y", "grid_z"].map(|name| number(name) as u32),
                workgroup: ["wg_x", "wg_y", "wg_z"].map(|name| number(name) as u16),
                begin: number("begin_ns"),
                end: number("end_ns"),
                bytes: number("bytes"),
                name: cell("name").to_owned(),
                group: number("group_bytes") as u32,
                private: number("private_bytes") as u32,
                gpu: number("gpu") as u32,
            }
        })
        .collect()
}
