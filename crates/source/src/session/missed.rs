//! Programs that use ROCm without being recorded: their environment was cleared, the dynamic loader ignored it, or their
//! mount namespace hides the session.
//!
//! A thread inspects the descendants of this roctop. A descendant that has a ROCm run-time mapped is missed if it has no
//! ring and either lacks the collector or cannot see the session's directory. Inspections are frequent at first, then
//! rare, and rarest once a process has a ring.

use super::background::uses_rocm;
use roctop_ring::session::{ENV_SESSION, RING};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause after the first inspection. Each later pause is half again as long.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// Maximum pause before, and after, a process has a ring.
const MAX_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE_RECORDED: Duration = Duration::from_secs(4);
/// Minimum pause as a multiple of the duration of the previous inspection.
const MIN_PAUSE_FACTOR: u32 = 100;
/// Time for which a live screen waits before it reports: a run-time may load the collector when it initializes
/// (HSA_TOOLS_LIB).
const SETTLE_TIME: Duration = Duration::from_secs(1);
/// Maximum number of descendants per inspection.
const MAX_DESCENDANTS: usize = 1024;
const PROC: &str = "/proc";
/// The collector's file name, as the viewer puts it into LD_PRELOAD.
const COLLECTOR: &str = "libroctop_preload.so";

/// Why a process has no ring.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    /// The environment lacks ROCTOP_SESSION.
    Cleared,
    /// ROCTOP_SESSION is present, but LD_PRELOAD lacks the collector.
    Replaced,
    /// Both are present: the dynamic loader ignored them.
    Ignored,
    /// The collector is loaded, but the session's directory does not exist in the process's mount namespace.
    OutOfSight(PathBuf),
    /// The process runs as another user, so its memory map and environment are unreadable.
    Hidden,
}

#[derive(Clone, Debug)]
struct Process {
    name: String,
    cause: Cause,
    since: Instant,
}

/// Results of the inspections so far.
#[derive(Debug)]
struct Missed {
    session: PathBuf,
    root: u32,
    /// Processes that were missed at their last inspection, by pid.
    found: BTreeMap<u32, Process>,
    /// Start times of all descendants ever seen, by pid: an orphan leaves the process tree.
    known: BTreeMap<u32, u64>,
    has_ring: bool,
}

impl Missed {
    fn new(session: &Path, root: u32) -> Self {
        Self {
            session: session.to_owned(),
            root,
            found: BTreeMap::new(),
            known: BTreeMap::new(),
            has_ring: false,
        }
    }

    /// Inspects all descendants once.
    fn look(&mut self) {
        let now = Instant::now();
        self.known.retain(|pid, start| start_of(*pid) == Some(*start));
        let mut all = descendants(self.root);
        let mut orphans: Vec<u32> = self.known.keys().copied().collect();
        orphans.retain(|pid| !all.contains(pid));
        all.extend(orphans.iter().flat_map(|pid| descendants(*pid)));
        all.extend(orphans);
        let recorded = self.recorded();
        for pid in all {
            if let Some(start) = start_of(pid) {
                self.known.insert(pid, start);
            }
            if recorded.contains(&pid) {
                continue;
            }
            match classify(pid, &self.session) {
                Some(Classification::Missed(cause, name)) => {
                    let seen = self.found.entry(pid).or_insert_with(|| Process {
                        name: String::new(),
                        cause: cause.clone(),
                        since: now,
                    });
                    (seen.name, seen.cause) = (name, cause);
                }
                Some(Classification::Collected) => _ = self.found.remove(&pid),
                // It does not use ROCm, or it is gone: keep earlier results.
                None => {}
            }
        }
        self.found.retain(|pid, _| !recorded.contains(pid));
        self.has_ring |= !recorded.is_empty();
    }

    /// Pids that have a ring in the session.
    fn recorded(&self) -> BTreeSet<u32> {
        let entries = fs::read_dir(&self.session).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let rings = names.filter(|name| Path::new(name).extension().is_some_and(|ending| ending == RING));
        rings
            .filter_map(|name| {
                let digits = name.split(|c: char| !c.is_ascii_digit()).next()?;
                digits.parse().ok()
            })
            .collect()
    }

    /// Report on processes first seen at least `settled` ago.
    fn report(&self, settled: Duration) -> Option<String> {
        let counts = |process: &Process| {
            process.since.elapsed() >= settled && (process.cause != Cause::Hidden || !self.has_ring)
        };
        let mut all: Vec<_> = self.found.iter().filter(|(_, process)| counts(process)).collect();
        // Processes that certainly use ROCm come before those that might.
        all.sort_by_key(|(pid, process)| (process.cause == Cause::Hidden, **pid));
        let (pid, first) = all.first()?;
        let alike = all.iter().filter(|(_, process)| process.cause == first.cause).count();
        Some(sentence(**pid, first, alike - 1))
    }
}

/// Report on one process, and the number of others like it.
fn sentence(pid: u32, process: &Process, more: usize) -> String {
    let mut who = format!("process {pid} ({})", process.name);
    if more > 0 {
        who = format!("{who} and {more} more");
    }
    let keep = "keep LD_PRELOAD, HSA_TOOLS_LIB and ROCTOP_SESSION";
    match &process.cause {
        Cause::Cleared => format!(
            "{who} used ROCm, but the collector was not loaded: its environment was cleared (env -i, sudo, a launcher); {keep}, \
             or start roctop behind what clears them"
        ),
        Cause::Replaced => format!(
            "{who} used ROCm, but the collector was not loaded: LD_PRELOAD was replaced on the way; add to its value instead, \
             or start roctop behind what replaces it"
        ),
        Cause::Ignored => format!(
            "{who} used ROCm, but the collector was not loaded: the loader ignored LD_PRELOAD (a setuid program, file \
             capabilities, or another C library); run a copy of the program without these"
        ),
        Cause::OutOfSight(session) => format!(
            "{who} used ROCm, but {} does not exist in its mount namespace (a container); bind /dev/shm into it \
             ('--ipc host'), or start roctop inside it",
            session.display()
        ),
        Cause::Hidden => format!(
            "{who} runs as another user, so the collector cannot be loaded into it, and whether it uses ROCm is unknown; start \
             roctop as that user ('sudo roctop …')"
        ),
    }
}

enum Classification {
    /// The collector is mapped.
    Collected,
    /// A ROCm run-time is mapped, and the process cannot be recorded.
    Missed(Cause, String),
}

/// Classifies a process by its memory map, and by whether it can see the session; `None` if it does not use ROCm or is
/// gone.
fn classify(pid: u32, session: &Path) -> Option<Classification> {
    let place = Path::new(PROC).join(pid.to_string());
    let maps = match fs::read(place.join("maps")) {
        Ok(maps) => String::from_utf8_lossy(&maps).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let is_other = fs::metadata(&place).ok()?.uid() != rustix::process::getuid().as_raw();
            return is_other.then(|| Classification::Missed(Cause::Hidden, name_of(&place)));
        }
        Err(_) => return None,
    };
    let missed = |cause| Classification::Missed(cause, name_of(&place));
    if maps.contains(COLLECTOR) {
        if uses_rocm(&maps) && is_hidden(session, &place) {
            return Some(missed(Cause::OutOfSight(session.to_owned())));
        }
        return Some(Classification::Collected);
    }
    // The map of a process that ends or becomes another program meanwhile is cut off: its stack is behind all libraries.
    let is_whole = maps.contains("[stack]");
    (is_whole && uses_rocm(&maps)).then(|| missed(cause_of(&place)))
}

fn cause_of(place: &Path) -> Cause {
    match variable(place, ENV_SESSION) {
        None => Cause::Cleared,
        Some(_) if !variable(place, "LD_PRELOAD").is_some_and(|value| value.contains(COLLECTOR)) => Cause::Replaced,
        Some(_) => Cause::Ignored,
    }
}

/// Whether a process was started in this session and the directory does not exist in its root and mount namespace.
fn is_hidden(session: &Path, place: &Path) -> bool {
    let is_ours = variable(place, ENV_SESSION).is_some_and(|path| Path::new(&path) == session);
    let (root, inside) = (place.join("root"), session.strip_prefix("/").unwrap_or(session));
    let is_missing = |path: &Path| fs::metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    is_ours && session.exists() && root.metadata().is_ok() && is_missing(&root.join(inside))
}

/// A variable of the environment that a process was started with.
fn variable(place: &Path, name: &str) -> Option<String> {
    let environment = fs::read(place.join("environ")).ok()?;
    let environment = String::from_utf8_lossy(&environment);
    let mut all = environment.split('\0').filter_map(|variable| variable.split_once('='));
    all.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

fn name_of(place: &Path) -> String {
    let name = fs::read_to_string(place.join("comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// Start time of a process in kernel ticks; `None` if it is gone.
pub fn start_of(pid: u32) -> Option<u64> {
    field(&fs::read_to_string(format!("{PROC}/{pid}/stat")).ok()?, 22)
}

/// Field of /proc/PID/stat by its number in proc(5), from 4 on.
fn field<T: std::str::FromStr>(stat: &str, number: usize) -> Option<T> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(number - 3)?.parse().ok()
}

/// All descendants of a process, without itself.
fn descendants(root: u32) -> Vec<u32> {
    let has_lists = Path::new(&format!("{PROC}/self/task/{}/children", std::process::id())).exists();
    let parents = if has_lists { Vec::new() } else { parents() };
    let mut all = vec![root];
    for at in 0..MAX_DESCENDANTS {
        let Some(&pid) = all.get(at) else { break };
        let children = if has_lists {
            children(pid)
        } else {
            let of_it = parents.iter().filter(|(_, parent)| *parent == pid);
            of_it.map(|(child, _)| *child).collect()
        };
        all.extend(children);
    }
    all.remove(0);
    all
}

fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("{PROC}/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Every process with its parent, for kernels without lists of children.
fn parents() -> Vec<(u32, u32)> {
    let entries = fs::read_dir(PROC).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, field(&fs::read_to_string(format!("{PROC}/{pid}/stat")).ok()?, 4)?)))
        .collect()
}

/// Watcher for missed programs; runs until it is stopped.
pub struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Missed>,
}

impl Watch {
    /// Watches the descendants of this process. `on_change` receives each new report, and `None` when a report is
    /// withdrawn. It looks no more once `is_over` says so.
    pub fn start(
        session: &Path,
        is_over: fn() -> bool,
        on_change: impl Fn(Option<String>) + Send + 'static,
    ) -> std::io::Result<Self> {
        let mut missed = Missed::new(session, std::process::id());
        let (stop, stopped) = channel();
        let look = move || {
            let mut pause = FIRST_PAUSE;
            let mut reported = None;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) && !is_over() {
                let began = Instant::now();
                missed.look();
                let report = missed.report(SETTLE_TIME);
                if report != reported {
                    on_change(report.clone());
                    reported = report;
                }
                let longest = if missed.has_ring { MAX_PAUSE_RECORDED } else { MAX_PAUSE };
                pause = (pause * 3 / 2).min(longest).max(began.elapsed() * MIN_PAUSE_FACTOR);
            }
            on_change(missed.report(Duration::ZERO));
            missed
        };
        let thread = std::thread::Builder::new().name("descendants".into()).spawn(look)?;
        Ok(Self { stop, thread })
    }

    /// Stops the watcher and returns its final report. Call it while the session's directory exists.
    pub fn stop(self) -> Option<String> {
        drop(self.stop);
        let missed = self.thread.join().ok()?;
        missed.report(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn every_cause_is_named_with_a_remedy() {
        let mut missed = Missed::new(Path::new("/nowhere"), 1);
        let mut add = |pid, cause| {
            let process = Process {
                name: "app".into(),
                cause,
                since: Instant::now(),
            };
            missed.found.insert(pid, process);
            missed.report(Duration::ZERO).unwrap_or_default()
        };
        assert!(add(9, Cause::Hidden).starts_with("process 9 (app) runs as another user"));
        let cleared = add(12, Cause::Cleared);
        assert!(
            cleared.starts_with("process 12 (app) used ROCm, but the collector was not loaded"),
            "{cleared}"
        );
        assert!(add(13, Cause::Cleared).starts_with("process 12 (app) and 1 more used ROCm"));
        assert!(add(11, Cause::Replaced).contains("LD_PRELOAD was replaced"));
        assert!(add(10, Cause::Ignored).contains("setuid"));
        let hidden = add(8, Cause::OutOfSight("/dev/shm/roctop-0/7".into()));
        assert!(
            hidden.starts_with("process 8 (app) used ROCm, but /dev/shm/roctop-0/7 does not exist in"),
            "{hidden}"
        );
        assert_eq!(
            missed.report(SETTLE_TIME),
            None,
            "a young process may still load the collector"
        );
        missed.found.retain(|_, process| process.cause == Cause::Hidden);
        missed.has_ring = true;
        assert_eq!(missed.report(Duration::ZERO), None, "others were recorded");
    }

    #[test]
    fn a_child_of_a_child_is_found_either_way() {
        let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let began = Instant::now();
        let sleeping = loop {
            let of_child = children(child.id());
            if let [one] = of_child[..] {
                break one;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{of_child:?}");
        };
        assert!(descendants(std::process::id()).contains(&sleeping));
        assert!(parents().contains(&(sleeping, child.id())));
        assert!(start_of(sleeping) >= start_of(child.id()));
        for pid in [sleeping, child.id()] {
            let _ = rustix::process::kill_process(
                rustix::process::Pid::from_raw(pid as i32).unwrap(),
                rustix::process::Signal::KILL,
            );
        }
        child.wait().unwrap();
    }
}
