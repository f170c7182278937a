//! The collector in real programs: plain C, the library preloaded, what it wrote read back.
//!
//! Needs a C compiler and a tmpfs; without them each test says so and passes.

#![expect(clippy::unwrap_used, reason = "a test fails where something is missing")]

use roctop_ring::layout::{Region, clock, counter, entry};
use roctop_ring::reader::{Account, Ended, OpenWork, Reader, Sink, Thread};
use roctop_ring::record::{Body, Domain, Marker, Slot, decode};
use roctop_ring::session;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder on tmpfs that goes with the test: session, programs, links.
struct Place {
    dir: PathBuf,
}

impl Place {
    /// None when this machine lacks what the tests need.
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = PathBuf::from(format!("/dev/shm/roctop-test-{}-{number}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&dir);
        let compiler = Command::new("cc").arg("--version").output();
        if made.is_err() || compiler.is_err() {
            eprintln!("skipped: needs /dev/shm and a C compiler");
            let _ = std::fs::remove_dir(&dir);
            return None;
        }
        std::fs::create_dir(dir.join("session")).unwrap();
        Some(Self { dir })
    }

    fn session(&self) -> PathBuf {
        self.dir.join("session")
    }

    /// Compiles `tests/c/NAME.c`.
    fn compile(&self, name: &str, result: &str, arguments: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/c")
            .join(format!("{name}.c"));
        let result = self.dir.join(result);
        let status = Command::new("cc")
            .args(["-O1", "-o"])
            .arg(&result)
            .arg(source)
            .args(arguments)
            .status()
            .unwrap();
        assert!(status.success(), "{name} does not compile");
        result
    }

    /// The program with the collector preloaded.
    fn traced(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", library())
            .env("ROCTOP_SESSION", self.session())
            .env("ROCTOP_RING_SLOTS", "16384");
        command
    }

    /// All ring files of the session, in the order of their names.
    fn rings(&self) -> Vec<Ring> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(self.session())
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "ring"));
        paths.sort();
        paths.iter().map(|path| Ring::read(path)).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The collector as cargo built it for these tests.
fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let deps = own.parent().unwrap();
    let found = [
        deps.join("libroctop_preload.so"),
        deps.parent().unwrap().join("libroctop_preload.so"),
    ];
    found
        .into_iter()
        .find(|path| path.exists())
        .expect("the collector's library beside the test")
}

/// What a ring file held.
#[derive(Default)]
struct Ring {
    pid: u32,
    ppid: u32,
    ordinal: u32,
    strings: HashMap<u32, String>,
    facts: Vec<Body>,
    records: Vec<(u32, u8, Body)>,
    calibrations: usize,
    lost: u64,
    accounts: Vec<(Thread, Account)>,
    open: OpenWork,
    counters: Vec<u64>,
    /// Runs that a signal handler's record fell into.
    reentrant: u64,
}

impl Ring {
    fn read(path: &Path) -> Self {
        let mut reader = Reader::open(File::open(path).unwrap()).unwrap();
        let header = reader.header().clone();
        let mut ring = Self {
            pid: header.pid,
            ppid: header.ppid,
            ordinal: header.ordinal,
            ..Self::default()
        };
        reader.poll(Ended::Yes, &mut ring).unwrap();
        ring.accounts = reader.accounts();
        ring.open = reader.open_work().unwrap();
        ring.counters = reader.counters().unwrap().to_vec();
        ring.reentrant = ring.counter(counter::REENTRANT);
        let bytes = std::fs::read(path).unwrap();
        let extent = header.region(Region::Directory);
        let directory = &bytes[extent.offset as usize..(extent.offset + extent.length) as usize];
        for words in directory.chunks_exact(entry::WORDS * 8) {
            let raw = words[entry::REENTRANT * 8..].first_chunk().unwrap();
            ring.reentrant += u64::from_le_bytes(*raw);
        }
        ring
    }

    fn text(&self, marker: &Marker) -> String {
        match marker.text_id {
            0 => String::from_utf8_lossy(&marker.text).into_owned(),
            id => self.strings[&id].clone(),
        }
    }

    fn marks(&self) -> Vec<String> {
        self.records
            .iter()
            .filter_map(|(_, _, body)| {
                if let Body::Mark(m) = body {
                    Some(self.text(m))
                } else {
                    None
                }
            })
            .collect()
    }

    fn ranges(&self) -> Vec<(u32, Marker)> {
        self.records
            .iter()
            .filter_map(|(tid, _, body)| {
                if let Body::Range(m) = body {
                    Some((*tid, m.clone()))
                } else {
                    None
                }
            })
            .collect()
    }

    /// Calls by name with their return codes.
    fn calls(&self) -> Vec<(String, Option<i32>)> {
        let mut names = HashMap::new();
        for fact in &self.facts {
            if let Body::OperationName(name) = fact {
                names.insert((name.domain, name.op), self.strings[&name.name].clone());
            }
        }
        self.records
            .iter()
            .filter_map(|(_, domain, body)| {
                let Body::ApiCall(call) = body else { return None };
                assert!(call.start <= call.end && call.correlation != 0);
                let name = names[&(u32::from(*domain), u32::from(call.op))].clone();
                Some((name, (call.has_status != 0).then_some(call.status)))
            })
            .collect()
    }

    fn counter(&self, at: usize) -> u64 {
        self.counters.get(at).copied().unwrap_or(0)
    }
}

impl Sink for Ring {
    fn string(&mut self, id: u32, text: &[u8]) {
        self.strings.insert(id, String::from_utf8_lossy(text).into_owned());
    }
    fn fact(&mut self, slots: &[Slot]) {
        self.facts.push(decode(slots));
    }
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {
        self.calibrations += 1;
    }
    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        let Domain(domain) = roctop_ring::record::Head(slots[0][0]).domain();
        self.records.push((thread.tid, domain, decode(slots)));
    }
    fn lost(&mut self, _: Thread, records: u64) {
        self.lost += records;
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn without_a_session_nothing_happens() {
    let Some(place) = Place::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let mut command = place.traced(&program);
    let result = command
        .env_remove("ROCTOP_SESSION")
        .args(["default", "mark", "levels", "threads"])
        .output()
        .unwrap();
    assert!(result.status.success());
    assert!(place.rings().is_empty());
}

#[test]
fn a_program_that_uses_no_gpu_leaves_no_file() {
    let Some(place) = Place::new() else { return };
    let result = place
        .traced(Path::new("/bin/sh"))
        .args(["-c", "echo $((1 + 1)); cat /dev/null"])
        .output()
        .unwrap();
    assert_eq!(out(&result), "2\n");
    assert!(place.rings().is_empty());
}

#[test]
fn marks_and_ranges_are_recorded_with_their_levels() {
    let Some(place) = Place::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let result = place
        .traced(&program)
        .args(["default", "mark", "levels", "start", "long", "deep"])
        .output()
        .unwrap();
    assert_eq!(out(&result), "0 1 1 0 -1\n");
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.marks(), ["a mark".to_owned(), "x".repeat(999)]);
    let ranges = ring.ranges();
    let found: Vec<_> = ranges
        .iter()
        .map(|(_, m)| (ring.text(m), m.level, m.range_id))
        .collect();
    assert_eq!(found[0], ("inner".into(), 1, 0));
    assert_eq!(found[1], ("outer".into(), 0, 0));
    assert_eq!(found[2], ("started".into(), 0, 1));
    // Deeper than the stack keeps: counted, never guessed.
    assert_eq!(found.len() - 3, 24);
    assert_eq!(ring.counter(counter::RANGES_LOST), 16);
    assert!(ranges.iter().all(|(_, m)| m.start <= m.end && m.correlation != 0));
    assert_eq!(ring.open.ranges.len(), 1);
    assert_eq!(ring.open.ranges[0].text, b"left open");
    assert_eq!((ring.counter(counter::STATE), ring.lost), (3, 0));
    assert!(ring.calibrations >= 2);
}

#[test]
fn a_library_opened_by_name_is_this_one_when_a_link_says_so() {
    let Some(place) = Place::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let links = place.dir.join("links");
    std::fs::create_dir(&links).unwrap();
    for name in ["libroctx64.so.4", "librocprofiler-sdk-roctx.so.1"] {
        symlink(library(), links.join(name)).unwrap();
        let mut command = place.traced(&program);
        let result = command
            .env("LD_LIBRARY_PATH", &links)
            .args([name, "levels"])
            .output()
            .unwrap();
        assert_eq!(out(&result), "0 1 1 0 -1\n");
    }
    let rings = place.rings();
    assert_eq!(rings.len(), 2);
    assert!(rings.iter().all(|ring| ring.ranges().len() == 2));
}

#[test]
fn every_thread_has_its_ring_and_ended_threads_give_theirs_back() {
    let Some(place) = Place::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    assert!(
        place
            .traced(&program)
            .env("ROCTOP_RING_SLOTS", "131072")
            .args(["default", "threads"])
            .status()
            .unwrap()
            .success()
    );
    let rings = place.rings();
    assert!(rings.len() <= 2, "36 threads, 12 at a time, need 19 rings at most");
    assert!(rings.iter().all(|ring| ring.pid == rings[0].pid && ring.lost == 0));
    let mut by_thread = BTreeMap::new();
    for (tid, _) in rings.iter().flat_map(Ring::ranges) {
        *by_thread.entry(tid).or_insert(0) += 1;
    }
    assert_eq!(by_thread.len(), 36);
    assert!(by_thread.values().all(|count| *count == 1000));
    for (_, account) in rings.iter().flat_map(|ring| &ring.accounts) {
        assert_eq!(account.seen + account.lost, account.written);
    }
    let correlations: BTreeSet<u64> = rings
        .iter()
        .flat_map(Ring::ranges)
        .map(|(_, m)| m.correlation)
        .collect();
    assert_eq!(correlations.len(), 36_000);
}

#[test]
fn a_forked_child_and_an_exec_have_files_of_their_own() {
    let Some(place) = Place::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    assert!(
        place
            .traced(&program)
            .args(["default", "mark", "fork", "mark", "exec"])
            .status()
            .unwrap()
            .success()
    );
    let rings = place.rings();
    assert_eq!(rings.len(), 3);
    assert!(rings.iter().all(|ring| ring.ordinal == 0));
    let child = rings
        .iter()
        .find(|ring| rings.iter().any(|other| ring.ppid == other.pid))
        .expect("a child");
    assert_eq!(child.marks(), ["in the child"]);
    assert_eq!(child.open.ranges.len(), 1);
    let mut others: Vec<usize> = rings
        .iter()
        .filter(|ring| ring.pid != child.pid)
        .map(|ring| ring.marks().len())
        .collect();
    others.sort_unstable();
    assert_eq!(others, [1, 2], "before exec and after it");
}

#[test]
fn a_signal_handler_in_the_middle_of_a_record_costs_at_most_counted_records() {
    let Some(place) = Place::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let mut command = place.traced(&program);
    let result = command
        .env("ROCTOP_RING_SLOTS", "131072")
        .args(["default", "signals"])
        .output()
        .unwrap();
    let handled: u64 = out(&result).trim().parse().unwrap();
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.lost, 0);
    let (marks, ranges) = (ring.marks().len() as u64, ring.ranges().len() as u64);
    let written: u64 = ring.accounts.iter().map(|(_, account)| account.written).sum();
    assert_eq!(written, marks + ranges + 1);
    assert!(
        marks <= handled && handled - marks <= ring.reentrant,
        "{handled} {marks} {}",
        ring.reentrant
    );
    assert!(ranges <= 20_000 && 20_000 - ranges <= ring.reentrant);
    assert!(
        ring.ranges()
            .iter()
            .all(|(_, m)| ring.text(m) == "interrupted" && m.start <= m.end)
    );
}

#[test]
fn a_pause_by_the_program_leaves_the_ranges_around_it_whole() {
    let Some(place) = Place::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    assert!(
        place
            .traced(&program)
            .args(["default", "pause", "mark"])
            .status()
            .unwrap()
            .success()
    );
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.marks(), ["a mark"]);
    let ranges: Vec<_> = ring.ranges().iter().map(|(_, m)| ring.text(m)).collect();
    assert_eq!(ranges, ["around"]);
    let switches = ring
        .records
        .iter()
        .filter(|(_, _, body)| matches!(body, Body::Switch(s) if s.by == 2));
    assert_eq!(switches.count(), 2);
}

#[test]
fn the_control_file_says_what_is_written() {
    let Some(place) = Place::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let mut words = vec![0u8; session::CONTROL_BYTES];
    words[session::control::WANTED * 8] = session::wanted::MARKER as u8;
    std::fs::write(place.session().join(session::CONTROL), &words).unwrap();
    assert!(
        place
            .traced(&program)
            .args(["default", "mark", "levels"])
            .status()
            .unwrap()
            .success()
    );
    words[session::control::RECORDING * 8] = 1;
    std::fs::write(place.session().join(session::CONTROL), &words).unwrap();
    assert!(
        place
            .traced(&program)
            .args(["default", "mark", "levels"])
            .status()
            .unwrap()
            .success()
    );
    let rings = place.rings();
    let mut found: Vec<_> = rings
        .iter()
        .map(|ring| (ring.marks().len(), ring.ranges().len()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [(0, 0), (1, 2)]);
}

#[test]
fn what_was_open_at_an_abort_is_there() {
    let Some(place) = Place::new() else { return };
    let program = place.compile("marks", "marks", &["-pthread", "-ldl"]);
    let result = place
        .traced(&program)
        .args(["default", "mark", "abort"])
        .output()
        .unwrap();
    assert!(
        result.status.code().is_none(),
        "ended by a signal, as without the collector"
    );
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    assert_eq!(ring.marks(), ["a mark"]);
    assert_eq!(ring.open.ranges.len(), 1);
    assert_eq!(ring.counter(counter::STATE), 1);
}

#[test]
fn calls_of_every_shape_pass_whole_and_are_recorded_once() {
    let Some(place) = Place::new() else { return };
    place.compile(
        "fake_hip",
        "libamdhip64.so.5",
        &["-shared", "-fPIC", "-Wl,-soname,libamdhip64.so.5"],
    );
    let folder = place.dir.to_string_lossy().into_owned();
    let link = [
        &format!("-L{folder}") as &str,
        "-l:libamdhip64.so.5",
        &format!("-Wl,-rpath,{folder}"),
    ];
    let program = place.compile("calls", "calls", &link);
    let plain = Command::new(&program).output().unwrap();
    let traced = place.traced(&program).output().unwrap();
    assert_eq!(out(&plain), out(&traced));
    assert_eq!(out(&traced).lines().next(), Some("0 7 errno 77"));
    let [ring] = &place.rings()[..] else { panic!("one ring") };
    let calls = ring.calls();
    let calls: Vec<_> = calls.iter().map(|(name, status)| (name.as_str(), *status)).collect();
    assert_eq!(
        calls,
        [
            ("hipGetDevice", Some(0)),
            ("hipMemcpy", Some(0)),
            ("hipMemset3D", Some(0)),
            ("hipTexRefSetMipmapLevelClamp", Some(0)),
            ("hipIpcOpenMemHandle", Some(0)),
            ("hipLaunchKernel", Some(0)),
            ("hipExtModuleLaunchKernel", Some(0)),
            ("hipCreateChannelDesc", None),
            ("hipGetErrorString", None),
            ("hipMalloc", Some(2)),
            ("hipStreamCreate", Some(0)),
            ("hipStreamDestroy", Some(0)),
        ]
    );
    let streams: Vec<_> = ring
        .facts
        .iter()
        .filter_map(|f| {
            if let Body::Stream(s) = f {
                Some((s.handle, s.state))
            } else {
                None
            }
        })
        .collect();
    assert!(streams.contains(&(0x1230, 1)) && streams.contains(&(0x1230, 2)));
}

#[test]
fn without_a_run_time_there_is_no_device() {
    let Some(place) = Place::new() else { return };
    let program = place.compile("absent", "absent", &["-ldl"]);
    let plain = Command::new(&program).output().unwrap();
    let traced = place.traced(&program).output().unwrap();
    assert_eq!(out(&plain), out(&traced));
}

#[test]
fn exactly_the_intended_symbols_are_exported() {
    let Ok(listing) = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library())
        .output()
    else {
        eprintln!("skipped: needs nm");
        return;
    };
    let listing = out(&listing);
    let found: BTreeSet<&str> = listing
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    let mut wanted: BTreeSet<&str> = hip_sys::function::FUNCTIONS
        .iter()
        .map(|function| function.symbol.trim_end_matches('\0'))
        .collect();
    wanted.extend(include_str!("exports.txt").lines());
    let differing: Vec<_> = wanted.symmetric_difference(&found).collect();
    assert!(differing.is_empty(), "{differing:?}");
}
