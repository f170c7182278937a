//! Programs that use ROCm without the collector: their environment was cleared on the way, or the loader ignored it.
//!
//! A thread looks at the descendants of this roctop. A descendant that has a run-time of ROCm mapped, but not the collector,
//! is missed. Looks are frequent at first, rare later, and rarest once a process has a ring.

use super::background::uses_rocm;
use roctop_ring::session::{ENV_SESSION, RING};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The pause after the first look; each later pause is longer by half.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause while no process has a ring, and after that.
const MAX_PAUSE: Duration = Duration::from_millis(500);
const RECORDED: Duration = Duration::from_secs(4);
/// A pause is at least this many times the duration of the look before it.
const RARELY: u32 = 100;
/// A run-time may load the collector itself when it initializes (HSA_TOOLS_LIB). A live screen waits this long.
const SETTLED: Duration = Duration::from_secs(1);
/// Descendants that one look visits at most.
const MAX_DESCENDANTS: usize = 1024;
const PROC: &str = "/proc";
/// The collector's file name, as the viewer puts it into LD_PRELOAD.
const COLLECTOR: &str = "libroctop_preload.so";

/// Why a process has no collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// ROCTOP_SESSION is not in its environment.
    Cleared,
    /// ROCTOP_SESSION is there, the collector is not in LD_PRELOAD.
    Replaced,
    /// Both are there: the loader ignored them.
    Ignored,
    /// Another user's process, whose memory and environment cannot be read.
    Hidden,
}

#[derive(Clone, Debug)]
struct Process {
    name: String,
    why: Why,
    since: Instant,
}

/// What the looks found so far.
#[derive(Debug)]
struct Missed {
    session: PathBuf,
    root: u32,
    /// By process id: those without a collector when they were seen last.
    found: BTreeMap<u32, Process>,
    /// Every descendant ever seen, with its start: an orphan is no longer in the tree.
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

    /// Looks at all descendants once.
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
            match judge(pid) {
                Some(Judged::Missed(why, name)) => {
                    let seen = self.found.entry(pid).or_insert_with(|| Process {
                        name: String::new(),
                        why,
                        since: now,
                    });
                    (seen.name, seen.why) = (name, why);
                }
                Some(Judged::Collected) => _ = self.found.remove(&pid),
                // It does not use ROCm, or it is gone: what was seen of it before stays.
                None => {}
            }
        }
        self.found.retain(|pid, _| !recorded.contains(pid));
        self.has_ring |= !recorded.is_empty();
    }

    /// Process ids that have a ring in the session.
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

    /// What to report; `settled` is how long ago a process must have been seen first.
    fn report(&self, settled: Duration) -> Option<String> {
        let counts =
            |process: &Process| process.since.elapsed() >= settled && (process.why != Why::Hidden || !self.has_ring);
        let mut all: Vec<_> = self.found.iter().filter(|(_, process)| counts(process)).collect();
        // A process that is known to use ROCm comes before one that might.
        all.sort_by_key(|(pid, process)| (process.why == Why::Hidden, **pid));
        let (pid, first) = all.first()?;
        let alike = all.iter().filter(|(_, process)| process.why == first.why).count();
        Some(sentence(**pid, first, alike - 1))
    }
}

/// The report on one process, and on how many more of its kind there are.
fn sentence(pid: u32, process: &Process, more: usize) -> String {
    let mut who = format!("process {pid} ({})", process.name);
    if more > 0 {
        who = format!("{who} and {more} more");
    }
    let keep = "keep LD_PRELOAD, HSA_TOOLS_LIB and ROCTOP_SESSION";
    match process.why {
        Why::Cleared => format!(
            "{who} used ROCm, but the collector was not loaded: its environment was cleared (env -i, sudo, a launcher); {keep}, \
             or start roctop behind what clears them"
        ),
        Why::Replaced => format!(
            "{who} used ROCm, but the collector was not loaded: LD_PRELOAD was replaced on the way; add to its value instead, \
             or start roctop behind what replaces it"
        ),
        Why::Ignored => format!(
            "{who} used ROCm, but the collector was not loaded: the loader ignored LD_PRELOAD (a setuid program, file \
             capabilities, or another C library); run a copy of the program without these"
        ),
        Why::Hidden => format!(
            "{who} runs as another user, so the collector cannot be loaded into it, and whether it uses ROCm is unknown; start \
             roctop as that user ('sudo roctop …')"
        ),
    }
}

enum Judged {
    /// The collector is mapped.
    Collected,
    /// A run-time of ROCm is mapped alone.
    Missed(Why, String),
}

/// What a process has mapped says about it; none when it does not use ROCm or is gone.
fn judge(pid: u32) -> Option<Judged> {
    let place = Path::new(PROC).join(pid.to_string());
    let maps = match fs::read(place.join("maps")) {
        Ok(maps) => String::from_utf8_lossy(&maps).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let is_other = fs::metadata(&place).ok()?.uid() != rustix::process::getuid().as_raw();
            return is_other.then(|| Judged::Missed(Why::Hidden, name_of(&place)));
        }
        Err(_) => return None,
    };
    if maps.contains(COLLECTOR) {
        return Some(Judged::Collected);
    }
    uses_rocm(&maps).then(|| Judged::Missed(why(&place), name_of(&place)))
}

fn why(place: &Path) -> Why {
    let environment = fs::read(place.join("environ")).unwrap_or_default();
    let environment = String::from_utf8_lossy(&environment);
    let value = |name: &str| {
        let mut all = environment.split('\0').filter_map(|variable| variable.split_once('='));
        all.find(|(known, _)| *known == name).map(|(_, value)| value)
    };
    match value(ENV_SESSION) {
        None => Why::Cleared,
        Some(_) if !value("LD_PRELOAD").is_some_and(|value| value.contains(COLLECTOR)) => Why::Replaced,
        Some(_) => Why::Ignored,
    }
}

fn name_of(place: &Path) -> String {
    let name = fs::read_to_string(place.join("comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// When a process started, in ticks of the kernel; none of one that is gone.
pub fn start_of(pid: u32) -> Option<u64> {
    field(&fs::read_to_string(format!("{PROC}/{pid}/stat")).ok()?, 22)
}

/// A field of /proc/PID/stat by its number in proc(5), from the fourth on.
fn field<T: std::str::FromStr>(stat: &str, number: usize) -> Option<T> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(number - 3)?.parse().ok()
}

/// All processes below one, without itself.
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

/// Every process with its parent, for kernels that keep no lists of children.
fn parents() -> Vec<(u32, u32)> {
    let entries = fs::read_dir(PROC).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, field(&fs::read_to_string(format!("{PROC}/{pid}/stat")).ok()?, 4)?)))
        .collect()
}

/// Looks for missed programs until it is stopped.
pub struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Missed>,
}

impl Watch {
    /// Starts to look at the descendants of this process; `on_change` gets each report, and `None` when one is withdrawn.
    pub fn start(session: &Path, on_change: impl Fn(Option<String>) + Send + 'static) -> std::io::Result<Self> {
        let mut missed = Missed::new(session, std::process::id());
        let (stop, stopped) = channel();
        let look = move || {
            let mut pause = FIRST_PAUSE;
            let mut reported = None;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let began = Instant::now();
                missed.look();
                let report = missed.report(SETTLED);
                if report != reported {
                    on_change(report.clone());
                    reported = report;
                }
                let longest = if missed.has_ring { RECORDED } else { MAX_PAUSE };
                pause = (pause * 3 / 2).min(longest).max(began.elapsed() * RARELY);
            }
            on_change(missed.report(Duration::ZERO));
            missed
        };
        let thread = std::thread::Builder::new().name("descendants".into()).spawn(look)?;
        Ok(Self { stop, thread })
    }

    /// Ends the looks; the report on what was missed. To be called while the session is still there.
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
        let mut add = |pid, why| {
            let process = Process {
                name: "app".into(),
                why,
                since: Instant::now(),
            };
            missed.found.insert(pid, process);
            missed.report(Duration::ZERO).unwrap_or_default()
        };
        assert!(add(9, Why::Hidden).starts_with("process 9 (app) runs as another user"));
        let cleared = add(12, Why::Cleared);
        assert!(
            cleared.starts_with("process 12 (app) used ROCm, but the collector was not loaded"),
            "{cleared}"
        );
        assert!(add(13, Why::Cleared).starts_with("process 12 (app) and 1 more used ROCm"));
        assert!(add(11, Why::Replaced).contains("LD_PRELOAD was replaced"));
        assert!(add(10, Why::Ignored).contains("setuid"));
        assert_eq!(
            missed.report(SETTLED),
            None,
            "a young process may still load the collector"
        );
        missed.found.retain(|_, process| process.why == Why::Hidden);
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
