//! Jobs of several ranks over the stand-in for RCCL, which follow a script and log what happened: the truth.

use super::directory::place;
use super::patience;
use roctop::item::{Item, ProcessId};
use roctop::model::collectives::{Collective, CollectiveValues, Collectives, Times};
use roctop::recording::{Merged, Recording};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, OnceLock};

/// The stand-in and the program, compiled once.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = place("ranks-program");
        let source = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/integration/kit/{name}.c"));
        let compile = |arguments: &[&str], name: &str, result: &str| {
            let mut compiler = Command::new("cc");
            compiler.args(["-O1", "-Wall", "-o"]).arg(folder.join(result));
            let built = compiler.arg(source(name)).args(arguments).status();
            assert!(built.is_ok_and(|status| status.success()), "{name}.c does not compile");
        };
        let soname = "-Wl,-soname,librccl.so.1";
        compile(&["-shared", "-fPIC", soname], "rccl", "librccl.so.1");
        let (search, path) = (
            format!("-L{}", folder.display()),
            format!("-Wl,-rpath,{}", folder.display()),
        );
        compile(&[&search, "-l:librccl.so.1", "-pthread", &path], "ranks", "ranks");
        folder
    })
}

/// A job.
pub(crate) struct Job {
    pub(crate) place: PathBuf,
    size: u32,
}

/// What a rank did, as the stand-in logged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) pid: u32,
    pub(crate) communicator: String,
    pub(crate) sequence: u32,
    pub(crate) operation: String,
    pub(crate) count: u64,
    pub(crate) rank: u32,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) peer: Option<u32>,
}

impl Job {
    /// A job of `size` ranks that follow `script`.
    pub(crate) fn new(name: &str, size: u32, script: &str) -> Self {
        let place = place(name);
        std::fs::write(place.join("script"), script).unwrap();
        Self { place, size }
    }

    /// The command that runs it, under roctop's `options` if there are any.
    pub(crate) fn command(&self, options: &[&str]) -> Command {
        let program = built().join("ranks");
        let mut command = if options.is_empty() {
            Command::new(program)
        } else {
            let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
            command.args(options).arg("--").arg(program);
            command
        };
        command
            .arg(self.size.to_string())
            .arg(self.place.join("script"))
            .env("RANKS_DIR", &self.place)
            .env("RANKS_TRUTH", self.place.join("truth"))
            .current_dir(&self.place)
            .stdin(Stdio::null());
        command
    }

    /// Records it to `rec`.
    pub(crate) fn record(&self) -> Output {
        let recording = self.place.join("rec");
        patience::output(&mut self.command(&["record", "-o", recording.to_str().unwrap()]))
    }

    /// What the ranks logged: each rank's operations in the order of its calls.
    pub(crate) fn truth(&self) -> Vec<Fact> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.place).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let pid = name.strip_prefix("truth.").and_then(|pid| pid.parse().ok());
            let Some(pid) = pid else { continue };
            for line in std::fs::read_to_string(entry.path()).unwrap().lines() {
                let words: Vec<&str> = line.split(' ').collect();
                let number = |at: usize| words[at].parse::<u64>().unwrap();
                found.push(Fact {
                    pid,
                    communicator: words[0].to_owned(),
                    sequence: number(1) as u32,
                    operation: words[2].to_owned(),
                    count: number(3),
                    rank: number(4) as u32,
                    begin: number(5),
                    end: number(6),
                    peer: words[7].parse().ok(),
                });
            }
        }
        found
    }
}

/// The collectives of recordings.
pub(crate) struct Matched {
    pub(crate) done: Vec<(Arc<Collective>, Times)>,
    pub(crate) values: CollectiveValues,
    pids: BTreeMap<ProcessId, u32>,
}

impl Matched {
    /// The complete collectives, each with what its ranks logged, in the order of its parts. They are joined by the order of
    /// each rank's calls and by no time.
    pub(crate) fn with_log<'a>(&'a self, truth: &'a [Fact]) -> Vec<(&'a Collective, &'a Times, Vec<&'a Fact>)> {
        /// Start of a call, and the collective and the place that it has.
        type Call = (u64, (usize, usize));
        let mut calls: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
        for (number, (collective, _)) in self.done.iter().enumerate() {
            for (place, part) in collective.parts.iter().enumerate() {
                let of_rank = calls.entry(self.pids[&part.call.process]).or_default();
                of_rank.push((part.call.start, (number, place)));
            }
        }
        let mut facts: BTreeMap<(usize, usize), &Fact> = BTreeMap::new();
        for (pid, mut calls) in calls {
            calls.sort_unstable();
            let logged: Vec<&Fact> = truth.iter().filter(|fact| fact.pid == pid).collect();
            assert_eq!(calls.len(), logged.len(), "collectives of process {pid}");
            facts.extend(calls.into_iter().map(|(_, part)| part).zip(logged));
        }
        let with_log = |(number, (collective, times)): (usize, &'a (Arc<Collective>, Times))| {
            let of_parts = (0..collective.parts.len()).map(|place| facts[&(number, place)]);
            (&**collective, times, of_parts.collect())
        };
        self.done.iter().enumerate().map(with_log).collect()
    }
}

/// Matches the collectives of recordings that are read together.
pub(crate) fn matched(recordings: &[&Path]) -> Matched {
    let opened: Vec<_> = recordings.iter().map(|path| Recording::open(path).unwrap()).collect();
    let merged = Merged::new(opened.iter().collect()).unwrap();
    let (mut collectives, mut last, mut pids) = (Collectives::keeping_all(), 0, BTreeMap::new());
    let mut take = |all: Vec<Item>| {
        for item in all {
            if let Some(span) = item.span() {
                last = last.max(span.end);
            }
            match &item {
                Item::Process(process) => {
                    pids.insert(process.id, process.pid);
                    collectives.machine(process.id, process.machine);
                }
                Item::Communicator(found) => collectives.communicator(found),
                Item::Communication(call) => collectives.communication(call),
                Item::Api(call) => collectives.returned(call),
                Item::Dispatch(dispatch) => collectives.dispatch(dispatch),
                _ => {}
            }
        }
    };
    merged.items(None, &mut |_| {}, &mut take).unwrap();
    collectives.finish();
    Matched {
        done: collectives.take_done(),
        values: collectives.values(last),
        pids,
    }
}

/// A collective of the log: communicator, sequence number, and sender and receiver of a message.
type LogKey = (String, u32, Option<(u32, u32)>);

impl Fact {
    /// Which collective it is.
    pub(crate) fn key(&self) -> LogKey {
        let pair = match (self.operation.as_str(), self.peer) {
            ("Send", Some(peer)) => Some((self.rank, peer)),
            ("Recv", Some(peer)) => Some((peer, self.rank)),
            _ => None,
        };
        (self.communicator.clone(), self.sequence, pair)
    }
}

/// The truth by collective: what all ranks logged.
pub(crate) fn by_collective(truth: &[Fact]) -> BTreeMap<LogKey, Vec<Fact>> {
    let mut found: BTreeMap<_, Vec<Fact>> = BTreeMap::new();
    for fact in truth {
        found.entry(fact.key()).or_default().push(fact.clone());
    }
    found
}
