//! Sites of a real program: calls by different paths never share one, and their number stays bounded.
//!
//! The program notes the path of each call. No roctop runs, so the rings are read afterwards.

use crate::kit::rig::{Rig, rig};
use roctop_ring::layout::clock;
use roctop_ring::reader::{Ended, Reader, Sink, Thread};
use roctop_ring::record::{ApiCall, Body, Copy, Dispatch, Domain, Head, Slot, decode};
use roctop_ring::session::{CONTROL, CONTROL_BYTES, control, wanted};
use roctop_ring::sites::{Counter, Entry, Lost, Mapping, SITES, Stack};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What the rings of a session hold.
#[derive(Default)]
struct Records {
    strings: HashMap<u32, Vec<u8>>,
    names: HashMap<u16, Vec<u8>>,
    calls: Vec<(u32, ApiCall)>,
    dispatches: Vec<(u16, Dispatch)>,
    copies: Vec<Copy>,
    lost: u64,
}

impl Sink for Records {
    fn string(&mut self, id: u32, text: &[u8]) {
        self.strings.insert(id, text.to_vec());
    }
    fn fact(&mut self, slots: &[Slot]) {
        if let Body::OperationName(name) = decode(slots)
            && name.domain == u32::from(Domain::HIP.0)
        {
            let text = self.strings.get(&name.name).cloned().unwrap_or_default();
            self.names.insert(name.op as u16, text);
        }
    }
    fn calibration(&mut self, _: &[u64; clock::WORDS]) {}
    fn record(&mut self, thread: Thread, slots: &[Slot]) {
        let head = Head(slots[0][0]);
        match decode(slots) {
            Body::ApiCall(call) if head.domain() == Domain::HIP => self.calls.push((thread.tid, call)),
            Body::Dispatch(dispatch) => self.dispatches.push((dispatch.site(head.flags()), dispatch)),
            Body::Copy(copy) => self.copies.push(copy),
            _ => {}
        }
    }
    fn lost(&mut self, _: Thread, records: u64) {
        self.lost += records;
    }
}

impl Records {
    fn read(session: &Path) -> Self {
        let mut records = Self::default();
        for path in files(session, "ring") {
            let mut reader = Reader::open(std::fs::File::open(path).unwrap()).unwrap();
            while reader.poll(Ended::Yes, &mut records).unwrap().more {}
        }
        assert_eq!(records.lost, 0, "the rings are too short for this test");
        records
    }

    /// The calls of each thread that have a site, in order.
    fn launches(&self) -> BTreeMap<u32, Vec<ApiCall>> {
        const WITH_SITE: [&[u8]; 4] = [b"hipLaunch", b"hipMemcpy", b"hipMemset", b"hipMalloc"];
        let mut found: BTreeMap<u32, Vec<ApiCall>> = BTreeMap::new();
        for (tid, call) in &self.calls {
            let name = self.names.get(&call.op).map_or(&[] as &[u8], Vec::as_slice);
            if WITH_SITE.iter().any(|begin| name.starts_with(begin)) {
                found.entry(*tid).or_default().push(*call);
            } else {
                assert_eq!(call.site(), 0, "{}", String::from_utf8_lossy(name));
            }
        }
        for calls in found.values_mut() {
            calls.sort_by_key(|call| call.start);
        }
        found
    }
}

fn files(session: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(session).unwrap().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|one| one == ending))
        .collect()
}

/// A session's directory on tmpfs, which goes with this value.
struct Session(PathBuf);

impl Session {
    fn new(wanted: u64) -> Self {
        let path = PathBuf::from(format!("/dev/shm/roctop-test-sites-{}-{wanted:x}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        let mut bytes = vec![0u8; CONTROL_BYTES];
        bytes[control::RECORDING * 8] = 1;
        bytes[control::WANTED * 8..][..8].copy_from_slice(&wanted.to_le_bytes());
        std::fs::write(path.join(CONTROL), bytes).unwrap();
        Self(path)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The collector that roctop carries, where roctop unpacks it.
fn collector() -> PathBuf {
    let output = Command::new(env!("CARGO_BIN_EXE_roctop"))
        .args(["record", "-o"])
        .arg(Rig::place("sites-collector").join("rec"))
        .args(["--", "sh", "-c", "echo $LD_PRELOAD"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text.trim().split([':', ' ']).map(PathBuf::from).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains("preload")
    });
    found.unwrap_or_else(|| panic!("no collector in {text:?}"))
}

/// What a stack file has had until its process ended: a ring, which a viewer reads meanwhile.
#[derive(Default)]
struct Stacks {
    entries: Vec<Entry>,
    lost: Lost,
    sites: u64,
}

impl Stacks {
    /// Reads the first stack file of a session until `is_over`.
    fn follow(session: &Path, is_over: &AtomicBool) -> Self {
        let mut stacks = Self::default();
        let mut reader = None;
        loop {
            let is_last = is_over.load(Ordering::Acquire);
            if reader.is_none() {
                let path = files(session, SITES).into_iter().next();
                reader = path.map(|path| roctop_ring::sites::Reader::open(&path).unwrap());
            }
            if let Some(reader) = &mut reader {
                stacks.entries.extend(reader.by_ref());
                stacks.lost = reader.lost();
                stacks.sites = reader.counters().get(Counter::Sites);
            }
            if is_last {
                return stacks;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Runs the program; its session, the path of each call by thread, and its stacks.
fn run(wanted: u64, words: &[&str]) -> Option<(Session, BTreeMap<u32, Vec<u64>>, Stacks)> {
    let session = Session::new(wanted);
    let collector = collector();
    let place = Rig::place("sites");
    let mut command = rig()?.behind(&collector).command(&place, &[], words);
    command
        .env("ROCTOP_SESSION", &session.0)
        .env("ROCTOP_RING_SLOTS", "262144")
        .env("HSA_TOOLS_LIB", &collector)
        .env("APP_SITES", place.join("paths"));
    let is_over = AtomicBool::new(false);
    let (output, stacks) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| Stacks::follow(&session.0, &is_over));
        let output = Rig::ended(&mut command);
        is_over.store(true, Ordering::Release);
        (output, reading.join().unwrap())
    });
    assert!(output.status.success(), "{output:?}");
    let mut paths: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for line in std::fs::read_to_string(place.join("paths")).unwrap().lines() {
        let (thread, path) = line.split_once(' ').unwrap();
        paths
            .entry(thread.parse().unwrap())
            .or_default()
            .push(path.parse().unwrap());
    }
    Some((session, paths, stacks))
}

#[test]
fn calls_by_different_paths_never_share_a_site() {
    let Some((session, paths, stacks)) = run(wanted::USUAL | wanted::SITES, &["sites", "40", "3"]) else {
        return;
    };
    let records = Records::read(&session.0);
    let launches = records.launches();
    let (mut all, mut unknown) = (0u64, 0u64);
    let mut paths_of_site: HashMap<u16, HashMap<u64, u64>> = HashMap::new();
    let mut sites_of_path: HashMap<u64, BTreeSet<u16>> = HashMap::new();
    for (thread, paths) in &paths {
        let calls = &launches[thread];
        assert_eq!(calls.len(), paths.len(), "thread {thread}");
        for (call, path) in calls.iter().zip(paths) {
            all += 1;
            if call.site() == 0 {
                unknown += 1;
                continue;
            }
            *paths_of_site.entry(call.site()).or_default().entry(*path).or_default() += 1;
            sites_of_path.entry(*path).or_default().insert(call.site());
        }
    }
    let others = |paths: &HashMap<u64, u64>| paths.values().sum::<u64>() - paths.values().max().unwrap_or(&0);
    let wrong: u64 = paths_of_site.values().map(others).sum();
    let most = sites_of_path.values().map(BTreeSet::len).max().unwrap();
    println!(
        "sites: {all} calls by {} paths, {wrong} with a site of another path, {unknown} without; {} sites, at most {most} of a path",
        sites_of_path.len(),
        paths_of_site.len()
    );
    assert!(all > 15_000 && sites_of_path.len() > 150);
    assert!(
        (wrong + unknown) * 1000 <= all,
        "{wrong} wrong and {unknown} unknown of {all}"
    );
    // The first thread and the others come by different ways; remains of earlier calls give some paths several sites.
    assert!(paths_of_site.len() <= 4 * sites_of_path.len(), "bounded");
    check_work(&records);
    check_stacks(&stacks, &paths_of_site);
    check_unread(&session.0);
}

/// The work of a call has its site.
fn check_work(records: &Records) {
    let sites: HashMap<u64, u16> = records
        .calls
        .iter()
        .map(|(_, call)| (call.correlation, call.site()))
        .collect();
    let (mut kernels, mut copies) = (0, 0);
    for (site, dispatch) in &records.dispatches {
        if let Some(expected) = sites.get(&dispatch.correlation) {
            assert_eq!(site, expected, "{dispatch:?}");
            kernels += 1;
        }
    }
    for copy in &records.copies {
        if let Some(expected) = sites.get(&copy.correlation) {
            assert_eq!(copy.site, *expected, "{copy:?}");
            copies += 1;
        }
    }
    // Later run-times let the CPU copy so few bytes.
    let is_by_gpu = rig().is_some_and(Rig::is_oldest);
    assert!(
        kernels > 5_000 && (copies > 1_000 || !is_by_gpu),
        "{kernels} kernels, {copies} copies"
    );
}

/// Each site left its stack, which begins in a mapping that is known by then.
fn check_stacks(stacks: &Stacks, sites: &HashMap<u16, HashMap<u64, u64>>) {
    let (mut mappings, mut seen, mut checks) = (Vec::new(), BTreeSet::new(), 0);
    let mut with_canary = 0;
    for entry in &stacks.entries {
        match entry {
            Entry::Mapping(mapping) => mappings.push(mapping),
            Entry::Stack(stack) => {
                assert!(begins_in(stack, &mappings), "{:x?} is in no mapping", stack.call);
                checks += u32::from(stack.call.is_check);
                with_canary += u32::from(has_canary(&stack.bytes));
                if !stack.call.is_check {
                    assert!(seen.insert(stack.call.site), "one stack for a new site");
                }
            }
            other => panic!("no program in Python: {other:?}"),
        }
    }
    assert_eq!(stacks.lost, Lost::default());
    assert!(sites.keys().all(|site| seen.contains(site)));
    assert!(stacks.sites >= sites.len() as u64);
    assert!(checks > 0, "no stack was copied for comparison");
    assert!(with_canary > 50, "stacks hold what is on them: {with_canary}");
}

/// If nobody has read the file, the mappings of the stacks in it are in it, too. They may stand behind their stacks.
fn check_unread(session: &Path) {
    let [path] = &files(session, SITES)[..] else {
        panic!("not one stack file")
    };
    let entries: Vec<Entry> = roctop_ring::sites::Reader::open(path).unwrap().collect();
    let mappings = entries.iter().filter_map(|entry| match entry {
        Entry::Mapping(mapping) => Some(mapping),
        _ => None,
    });
    let mappings: Vec<&Mapping> = mappings.collect();
    for entry in &entries {
        if let Entry::Stack(stack) = entry {
            assert!(begins_in(stack, &mappings), "{:x?} is in no mapping", stack.call);
        }
    }
}

fn begins_in(stack: &Stack, mappings: &[&Mapping]) -> bool {
    let ip = stack.call.ip;
    mappings
        .iter()
        .any(|mapping| (mapping.start..mapping.end).contains(&ip))
}

/// Whether bytes contain the text that the program has on its stack alone.
pub(crate) fn has_canary(bytes: &[u8]) -> bool {
    let canary: Vec<u8> = (0..32u32).map(|at| b'A' + ((at * 7 + 3) % 26) as u8).collect();
    bytes.windows(canary.len()).any(|window| window == canary)
}

#[test]
fn no_site_is_looked_up_when_none_is_wanted() {
    let Some((session, paths, _)) = run(wanted::USUAL, &["sites", "3", "1"]) else {
        return;
    };
    let records = Records::read(&session.0);
    assert!(!paths.is_empty() && records.calls.iter().all(|(_, call)| call.site() == 0));
    assert!(records.dispatches.iter().all(|(site, _)| *site == 0));
    assert_eq!(files(&session.0, SITES), Vec::<PathBuf>::new());
}
