//! Faults of ranks while the program runs: the missing rank is named within two seconds, and no other. Without a fault
//! none is named.

use crate::kit::ranks::{Job, by_collective};
use roctop::decode::Decoder;
use roctop::item::ProcessId;
use roctop::model::analysis::{Rule, Thresholds, alert::Alert};
use roctop::model::collectives::Waiting;
use roctop::model::{Fresh, Options, Store};
use roctop::session::{self, Live};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum time from a fault to its alert.
const LIMIT: u64 = 2_000_000_000;
/// Ranks of a job.
const RANKS: u32 = 3;
/// Jobs at the same time.
const ABREAST: usize = 4;

/// A fault: what the rank does, how many collectives it has joined before, and the communicator's number.
#[derive(Clone, Copy, Debug)]
struct Fault {
    rank: u32,
    verb: &'static str,
    before: u32,
    is_split: bool,
}

impl Fault {
    fn of(number: u64) -> Self {
        let verb = ["hang", "kill 9", "exit 3", "kill 15"][(number % 4) as usize];
        Self {
            rank: (number / 4 % u64::from(RANKS)) as u32,
            verb,
            before: (number * 7 % 40) as u32 + 1,
            is_split: number % 2 == 1,
        }
    }

    /// All do some collectives, then one rank fails, and the others wait for it.
    fn script(self) -> String {
        let Self {
            rank,
            verb,
            before,
            is_split,
        } = self;
        let communicator = u32::from(is_split);
        format!(
            "*: split 0 7 1\n*: split 0 7 2\n*: sleep 100\n*: repeat {before}\n*: reduce {communicator} 64\n*: done\n\
             {rank}: range instead\n{rank}: {verb}\n*: reduce {communicator} 64\n"
        )
    }
}

/// The session of the job that records to `recording`.
fn session_of(recording: &Path) -> PathBuf {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let all = session::sessions().into_iter().map(|found| found.path);
        let mut own = all.filter(|path| session::recording_of(path).is_some_and(|noted| noted == recording));
        if let Some(path) = own.next() {
            return path;
        }
        assert!(Instant::now() < until, "no session");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A job that is recorded and watched while it runs.
struct Watched {
    child: Child,
    live: Live,
    decoder: Decoder,
    store: Store,
}

impl Watched {
    fn start(job: &Job) -> Self {
        let recording = job.place.join("rec");
        let mut command = job.command(&["record", "-o", recording.to_str().unwrap()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self {
            child: command.spawn().unwrap(),
            live: Live::late(&session_of(&recording)),
            decoder: Decoder::by_kind(),
            store: Store::new(Options::default()),
        }
    }

    /// Reads what has come: its time, the alerts of collectives, and the collectives that ranks wait for.
    fn look(&mut self) -> (u64, Vec<Alert>, Vec<Waiting>) {
        let now = roctop::clocks::boottime();
        self.live.poll(now, &mut self.decoder).unwrap();
        self.store.take(&self.decoder.decoded());
        self.decoder.clear();
        self.store.apply(&roctop::item::Item::Now(now));
        let snapshot = self.store.snapshot(Fresh::All);
        let alerts = snapshot.analysis().alerts.iter();
        let own = alerts.filter(|alert| matches!(alert.rule, Rule::Absent | Rule::Mismatch));
        (now, own.cloned().collect(), snapshot.values.collectives.waiting.clone())
    }
}

/// What the viewer says first, and ns after the fault.
fn first_alert(fault: Fault, number: u64) -> (Alert, Waiting, u64) {
    let job = Job::new(&format!("fault-{number}"), RANKS, &fault.script());
    let mut watched = Watched::start(&job);
    let until = Instant::now() + Duration::from_mins(1);
    let found = loop {
        assert!(Instant::now() < until, "{fault:?}: no alert");
        let (now, alerts, waiting) = watched.look();
        if let Some(alert) = alerts.first() {
            break (alert.clone(), waiting, now);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    // The fault's time, in the log of the rank.
    let logged = std::fs::read_to_string(job.place.join("truth.fault")).unwrap_or_default();
    let (alert, waiting, now) = found;
    let since = logged.trim().parse().unwrap_or(waiting[0].since);
    for pid in watched.live.pids_alive() {
        if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    watched.child.wait().unwrap();
    let communicator = u32::from(fault.is_split);
    let is_it = |one: &Waiting| one.key.communicator == communicator;
    let waiting = waiting
        .into_iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{fault:?}: {alert:?}"));
    (alert, waiting, now.saturating_sub(since))
}

fn check(number: u64) -> u64 {
    let fault = Fault::of(number);
    let (alert, waiting, after) = first_alert(fault, number);
    assert_eq!(alert.rule, Rule::Absent, "{fault:?}: {alert:?}");
    // The stand-in's first collective is the program's own.
    let sequence = fault.before + u32::from(!fault.is_split) + 1;
    let communicator = u32::from(fault.is_split);
    let expected = format!(
        "rank {} has not come to AllReduce #{sequence} of comm {communicator}",
        fault.rank
    );
    let texts = [alert.text.as_str()];
    assert!(texts.contains(&&*expected), "{fault:?}: {alert:?}, expected {expected}");
    assert_eq!(waiting.key.sequence, sequence);
    let missing: Vec<_> = waiting.missing.iter().map(|missing| missing.0).collect();
    assert_eq!(missing, [fault.rank]);
    assert!(matches!(waiting.missing[0].1, Some(ProcessId(_))));
    assert!(after <= LIMIT, "{fault:?}: named after {} ms", after / 1_000_000);
    after
}

/// `ROCTOP_FAULTS` says how many; `.ci/long` has a hundred.
#[test]
fn a_missing_rank_is_named_within_two_seconds() {
    let faults = std::env::var("ROCTOP_FAULTS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20);
    let (next, times) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..ABREAST {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= faults {
                        break;
                    }
                    let after = check(number);
                    times.lock().unwrap().push(after);
                }
            });
        }
    });
    let mut times = times.into_inner().unwrap();
    times.sort_unstable();
    println!(
        "{} faults, each named after at most {} ms, half after {} ms",
        times.len(),
        times.last().unwrap() / 1_000_000,
        times[times.len() / 2] / 1_000_000
    );
}

/// Every rank comes late now and then, in turn, by less than what makes an alert.
const HEALTHY_CYCLE: &str = "\
*: reduce 0 1024
0: sleep 60
1: sleep 150
*: gather 1 256
2: sleep 300
*: reduce 1 64
*: exchange 0 32
1: range loads
1: sleep 400
1: pop
*: broadcast 0 16
";
/// Duration of a cycle without other work on the machine, ms.
const CYCLE_MS: u64 = 850;

/// `ROCTOP_HEALTHY_SECONDS` says how long; `.ci/long` has an hour.
#[test]
fn no_rank_of_a_healthy_job_is_named() {
    let seconds: u64 = std::env::var("ROCTOP_HEALTHY_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(15);
    let cycles = (seconds * 1000).div_ceil(CYCLE_MS);
    let script = format!("*: split 0 7 1\n*: repeat {cycles}\n{HEALTHY_CYCLE}*: done\n*: destroy 1\n*: destroy 0\n");
    let job = Job::new("healthy", RANKS, &script);
    let mut watched = Watched::start(&job);
    // Key, missing ranks and the text of each alarm.
    let (mut alarms, mut looks) = (Vec::new(), 0_u64);
    while watched.child.try_wait().unwrap().is_none() {
        let (_, alerts, waiting) = watched.look();
        looks += 1;
        for alert in alerts {
            assert_eq!(alert.rule, Rule::Absent, "{alert:?}");
            let named = waiting.iter().find(|one| alert.about == one.key.communicator);
            alarms.extend(named.map(|one| (one.key, one.missing.clone(), alert.text)));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    alarms.dedup();
    let truth = by_collective(&job.truth());
    // A rank that a busy machine keeps from its call is rightly named.
    let limit = Thresholds::default().absent;
    let false_alarms = alarms.iter().filter(|(key, missing, _)| {
        let of_key = truth
            .iter()
            .filter(|((_, sequence, pair), _)| (*sequence, *pair) == (key.sequence, key.pair));
        !of_key.map(|(_, facts)| facts).any(|facts| {
            let first = facts.iter().map(|fact| fact.begin).min().unwrap_or(0);
            let came = |rank: u32| {
                facts
                    .iter()
                    .find(|fact| fact.rank == rank)
                    .map_or(u64::MAX, |fact| fact.begin)
            };
            missing
                .iter()
                .all(|missing| came(missing.0).saturating_sub(first) > limit)
        })
    });
    assert_eq!(false_alarms.collect::<Vec<_>>(), Vec::<&(_, _, String)>::new());
    let collectives = truth.len();
    assert!(
        collectives as u64 >= 5 * cycles && looks > seconds,
        "{collectives} collectives, {looks} looks"
    );
    println!(
        "healthy: {seconds} s, {collectives} collectives, {looks} looks, {} late ranks, no false alarm",
        alarms.len()
    );
}
