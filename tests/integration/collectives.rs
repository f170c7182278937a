//! Collectives: recorded, numbered and matched as the ranks logged them.

mod faults;

use crate::kit::demo::roctop;
use crate::kit::ranks::{Fact, Job, by_collective, matched};
use crate::kit::trace::{Slice, Trace};
use parquet::file::reader::{FileReader, SerializedFileReader};
use roctop::item::CollectiveOperation as Operation;
use roctop::model::collectives::{MACHINE_ERROR, Problem};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Everything that RCCL is used for: splits, groups, messages, reused handles, failing calls.
const SCRIPT: &str = "\
*: repeat 20
*: reduce 0 1024
3: sleep 10
*: done
*: reduce 0 256 99 ?
*: split 0 even 1
*: repeat 10
*: gather 1 512
*: broadcast 1 64
1: sleep 2
*: done
*: exchange 0 128
*: group
0: send 0 1 16
1: recv 0 0 16
2: send 0 3 32
3: recv 0 2 32
*: end
*: group
*: reduce 0 10
*: gather 0 20
*: end
*: destroy 1
*: new 2
*: scatter 2 128
*: split 0 -1 3
*: split 0 0 4
*: reduce 4 1
2: sleep 1
*: reduce 4 2
*: destroy 4
*: destroy 2
*: destroy 0
";

#[test]
fn all_collectives_are_matched_with_the_ranks_own_times() {
    let job = Job::new("collectives", 4, SCRIPT);
    let output = job.record();
    assert!(output.status.success(), "{output:?}");
    let truth = job.truth();
    let found = matched(&[&job.place.join("rec")]);
    assert_eq!(found.values.problems, []);
    assert_eq!((found.values.unmatched, found.values.waiting.len()), (0, 0));
    let of_log = by_collective(&truth);
    assert_eq!(found.done.len(), of_log.len());
    // The log's names of communicators, and who came last to the first row's collectives.
    let mut names: BTreeMap<u32, &str> = BTreeMap::new();
    let row = found.values.operations.iter().find(|row| {
        row.operation == Operation::AllReduce && found.values.communicators[row.communicator as usize].size == 4
    });
    let row = row.unwrap();
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for (collective, times, facts) in found.with_log(&truth) {
        let key = collective.key;
        let name = &*facts[0].communicator;
        assert_eq!(*names.entry(key.communicator).or_insert(name), name);
        assert_eq!(of_log[&facts[0].key()].len(), facts.len());
        let mut late = 0;
        for (part, own) in collective.parts.iter().zip(&facts) {
            assert_eq!(own.key(), (name.to_owned(), key.sequence, key.pair));
            let operation = match part.call.operation {
                Operation::Receive => "Recv",
                other => other.name(),
            };
            assert_eq!(
                (&*own.operation, own.rank, own.count),
                (operation, part.rank, part.call.count)
            );
            // The stand-in reads its clock inside of the call.
            let returned = part.returned.unwrap();
            assert!(part.call.start <= own.begin + MACHINE_ERROR, "{part:?} {own:?}");
            assert!(own.end <= returned + MACHINE_ERROR, "{part:?} {own:?}");
            late = late.max(own.begin.saturating_sub(part.call.start));
        }
        let begins = facts.iter().map(|fact| fact.begin);
        let (first, latest) = (begins.clone().min().unwrap(), begins.max().unwrap());
        let error = times.skew().abs_diff(latest - first);
        assert!(error <= late + MACHINE_ERROR, "{error} {times:?} {facts:?}");
        // Who called last began last by the log, or within the time that others had been in their calls.
        let own = facts[times.latest].begin;
        assert!(own + late + MACHINE_ERROR >= latest, "{times:?} {facts:?}");
        let is_of_row = (key.communicator, collective.parts[0].call.operation) == (row.communicator, row.operation);
        if is_of_row && times.is_significant() {
            *last.entry(collective.parts[times.latest].rank).or_default() += 1;
        }
    }
    let distinct: BTreeSet<&str> = names.values().copied().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
    // On a machine without other work that is rank 3, which sleeps before each of them.
    assert_eq!(row.last, last);
    let (rank, count) = row.latest().unwrap();
    assert!(last.values().all(|other| *other <= last[&rank]) && count == last[&rank]);
    assert!(row.bus_bandwidth().is_some());
}

#[test]
fn mismatches_and_garbage_are_named() {
    let script = "\
*: reduce 0 100
2: reduce 0 101
0,1,3: reduce 0 100
1: gather 0 100
0,2,3: reduce 0 100
3: reduce 0 100 8
0,1,2: reduce 0 100
0: garbage 5
0: reduce 5 10 7 ?
*: reduce 0 1
";
    let job = Job::new("mismatches", 4, script);
    assert!(job.record().status.success());
    let found = matched(&[&job.place.join("rec")]);
    let problems = &found.values.problems;
    let has = |test: &dyn Fn(&Problem) -> bool| problems.iter().any(test);
    assert!(
        has(&|one| matches!(
            one,
            Problem::Count {
                rank: 2,
                count: 101,
                others: 100,
                ..
            }
        )),
        "{problems:?}"
    );
    assert!(
        has(&|one| matches!(
            one,
            Problem::Operation {
                rank: 1,
                called: Operation::AllGather,
                others: Operation::AllReduce,
                ..
            }
        )),
        "{problems:?}"
    );
    assert!(has(&|one| matches!(one, Problem::Type { rank: 3, .. })), "{problems:?}");
    assert!(has(&|one| matches!(one, Problem::Unknown { .. })), "{problems:?}");
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(found.values.waiting.is_empty());
}

/// A communicator that a group creates is stored at the group's end.
#[test]
fn communicators_of_groups_are_known() {
    let script = "*: group\n*: new 5\n*: new 6\n*: end\n*: reduce 5 10\n*: reduce 6 20\n*: reduce 5 30\n";
    let job = Job::new("grouped", 2, script);
    assert!(job.record().status.success());
    let found = matched(&[&job.place.join("rec")]);
    assert_eq!((found.values.problems, found.values.unmatched), (vec![], 0));
    assert_eq!((found.done.len(), found.values.communicators.len()), (4, 3));
}

/// The variable of a failed group may hold anything when the thread's next group ends.
#[test]
fn failed_group_creates_no_communicator() {
    let job = Job::new(
        "failed-group",
        2,
        "*: failing 0\n*: failing 0\n*: group\n*: new 5\n*: end\n*: reduce 5 10\n",
    );
    let output = job.record();
    let complaints = String::from_utf8_lossy(&output.stderr).contains("rank ");
    assert!(output.status.success() && !complaints, "{output:?}");
    let found = matched(&[&job.place.join("rec")]);
    assert_eq!((found.values.problems, found.values.unmatched), (vec![], 0));
    assert_eq!((found.done.len(), found.values.communicators.len()), (4, 2));
}

/// More threads than there are places for creations in groups.
#[test]
fn threads_that_end_inside_of_groups_leave_no_creation() {
    let job = Job::new(
        "left-group",
        2,
        "*: leave 80\n*: group\n*: new 5\n*: end\n*: reduce 5 10\n*: reduce 5 20\n",
    );
    assert!(job.record().status.success());
    let found = matched(&[&job.place.join("rec")]);
    assert_eq!((found.values.problems, found.values.unmatched), (vec![], 0));
    assert_eq!((found.done.len(), found.values.communicators.len()), (3, 2));
}

/// Files below a folder whose names end so.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path, ending)),
            path if path.to_string_lossy().ends_with(ending) => found.push(path),
            _ => {}
        }
    }
    found
}

/// A job in which one rank is late to each step.
struct Late {
    out: PathBuf,
    /// Of each rank, in the order of the collectives.
    facts: [Vec<Fact>; 4],
}

/// How long the late rank sleeps before each step, ns.
const SLEEP: u64 = 20_000_000;

impl Late {
    /// Earliest and latest time of a rank's call by the log: the rank has left its previous collective, and has slept if it is the
    /// late one; the stand-in is not in this one yet.
    fn call(&self, rank: usize, sequence: usize) -> (u64, u64) {
        let facts = &self.facts[rank];
        let Some(before) = sequence.checked_sub(2) else {
            return (0, facts[0].begin);
        };
        let slept = if rank == 2 { SLEEP } else { 0 };
        (facts[before].end + slept, facts[sequence - 1].begin)
    }

    /// Least and most time that a rank waited for the last one.
    fn wait(&self, rank: usize, sequence: usize) -> (u64, u64) {
        let all = (0..4).map(|other| self.call(other, sequence));
        let (least, most) = all.fold((0, 0), |last, call| (last.0.max(call.0), last.1.max(call.1)));
        let (earliest, latest) = self.call(rank, sequence);
        (least.saturating_sub(latest), most - earliest)
    }

    /// Checks a wait, which is 0 if the ranks came within the clocks' error.
    fn check(&self, rank: usize, sequence: usize, wait: u64) {
        let (least, most) = self.wait(rank, sequence);
        assert!(
            wait + 2 * MACHINE_ERROR >= least && wait <= most + 2 * MACHINE_ERROR,
            "rank {rank} waited {wait} ns for #{sequence}, not {least} to {most}"
        );
    }
}

fn late() -> &'static Late {
    static LATE: std::sync::OnceLock<Late> = std::sync::OnceLock::new();
    LATE.get_or_init(|| {
        let sleep = SLEEP / 1_000_000;
        let script = format!("*: repeat 6\n*: range step\n2: sleep {sleep}\n*: reduce 0 1024\n*: pop\n*: done\n");
        let job = Job::new("exported", 4, &script);
        assert!(job.record().status.success());
        let out = job.place.join("out");
        let (recording, folder) = (job.place.join("rec"), out.to_str().unwrap());
        let words = ["export", recording.to_str().unwrap(), "-d", folder];
        let output = roctop(&[&words[..], &["--format", "pftrace,parquet,kineto"]].concat());
        assert!(output.status.success(), "{output:?}");
        let mut facts: [Vec<Fact>; 4] = Default::default();
        job.truth()
            .into_iter()
            .for_each(|fact| facts[fact.rank as usize].push(fact));
        Late { out, facts }
    })
}

#[test]
fn traces_have_a_track_for_each_communicator() {
    let mut ranks = BTreeSet::new();
    for path in files(&late().out, ".pftrace") {
        let trace = Trace::read(&std::fs::read(&path).unwrap());
        let own = |(id, (name, _)): (&u64, &(String, Option<u64>))| {
            let rank = name.strip_prefix("COMMUNICATOR 0 RANK ")?;
            Some((*id, rank.parse::<usize>().unwrap()))
        };
        let tracks: Vec<(u64, usize)> = trace.tracks.iter().filter_map(own).collect();
        let [(track, rank)] = tracks[..] else { continue };
        ranks.insert(rank);
        let slices: Vec<_> = trace.slices.iter().filter(|slice| slice.track == track).collect();
        let named = |name: &str| slices.iter().filter(|slice| slice.name == name).collect::<Vec<_>>();
        let (transfers, waits) = (named("AllReduce"), named("wait for AllReduce"));
        assert_eq!(transfers.len(), 7, "one before the steps");
        assert!(slices.iter().all(|slice| slice.category == "collective"));
        for sequence in 1..=7 {
            let is_it = |slice: &&&&Slice| slice.arguments["sequence"] == sequence as u64;
            let found: Vec<_> = waits.iter().filter(is_it).collect();
            assert!(found.len() <= 1, "{found:?}");
            let wait = found.first().map_or(0, |slice| slice.end - slice.begin);
            late().check(rank, sequence, wait);
            // The last one is a rank that may have called last.
            if let Some(last) = found.first().and_then(|slice| slice.arguments.get("last_rank")) {
                let latest = late().call(*last as usize, sequence).1;
                let others = (0..4).map(|other| late().call(other, sequence).0);
                assert!(others.max().unwrap() <= latest + MACHINE_ERROR, "{found:?}");
            }
        }
    }
    assert_eq!(ranks.len(), 4);
}

#[test]
fn steps_are_a_table_with_their_collectives() {
    let mut steps: BTreeMap<usize, usize> = BTreeMap::new();
    for path in files(&late().out.join("parquet/kind=step"), ".parquet") {
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let cell = |wanted: &str| {
                let mut cells = row.get_column_iter();
                cells.find(|(name, _)| *name == wanted).unwrap().1.to_string()
            };
            let number_of = |name: &str| cell(name).parse::<u64>().unwrap();
            let rank = number_of("rank") as usize;
            let number = steps.entry(rank).or_default();
            *number += 1;
            assert_eq!((cell("name"), number_of("step")), ("\"step\"".into(), *number as u64));
            assert_eq!(number_of("collectives"), 1);
            assert!(number_of("end_ns") > number_of("start_ns"));
            // One collective comes before the steps.
            late().check(rank, *number + 1, number_of("collective_wait_ns"));
        }
    }
    assert_eq!(steps, (0..4).map(|rank| (rank, 6)).collect());
}

#[test]
fn kineto_traces_name_the_groups_of_a_rank() {
    let mut found = 0;
    for path in files(&late().out, "kineto.pt.trace.json") {
        let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let info = &trace["distributedInfo"];
        if info.is_null() {
            continue;
        }
        assert_eq!((&info["world_size"], &info["pg_count"]), (&4.into(), &1.into()));
        let group = &info["pg_config"][0];
        assert_eq!((&group["pg_name"], &group["pg_size"]), (&"0".into(), &4.into()));
        assert_eq!(group["ranks"], serde_json::json!([0, 1, 2, 3]));
        found += 1;
    }
    assert_eq!(found, 4);
}

/// Containers may have other offsets of CLOCK_BOOTTIME: here rank 1 is 100 000 s ahead.
#[test]
fn ranks_of_other_time_namespaces_are_matched() {
    const AHEAD: u64 = 100_000;
    let mut unshare = vec!["unshare", "--time", "--boottime", "100000"];
    if !rustix::process::geteuid().is_root() {
        unshare.extend(["--user", "--map-root-user"]);
    }
    let tried = Command::new(unshare[0]).args(&unshare[1..]).arg("true").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        println!("skipped: no time namespaces here");
        return;
    }
    let job = Job::new("namespaces", 2, "*: repeat 5\n1: sleep 5\n*: reduce 0 100\n*: done\n");
    let run = |rank: &str, before: &[&str]| {
        let recording = job.place.join(format!("rec{rank}"));
        let plain = job.command(&["record", "-o", recording.to_str().unwrap()]);
        let mut words = before
            .iter()
            .map(AsRef::as_ref)
            .chain(std::iter::once(plain.get_program()));
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(plain.get_args()).current_dir(&job.place);
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("RANKS_ONLY", rank).env("RANKS_JOB", "job");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let mut both = [run("0", &[]), run("1", &unshare)];
    assert!(both.iter_mut().all(|child| child.wait().unwrap().success()));
    let mut facts = job.truth();
    for fact in facts.iter_mut().filter(|fact| fact.rank == 1) {
        fact.begin -= AHEAD * 1_000_000_000;
    }
    let truth = by_collective(&facts);
    let recordings = ["rec0", "rec1"].map(|name| job.place.join(name));
    let found = matched(&[&recordings[0], &recordings[1]]);
    assert_eq!((found.done.len(), found.values.problems.len()), (6, 0));
    for (collective, times) in &found.done {
        let facts = truth
            .iter()
            .find(|(key, _)| key.1 == collective.key.sequence)
            .unwrap()
            .1;
        let mut late = 0;
        for part in &collective.parts {
            let own = facts.iter().find(|fact| fact.rank == part.rank).unwrap();
            late = late.max(own.begin.abs_diff(part.call.start));
            // On one clock, both were in this call within less time than the clocks are apart.
            assert!(late < AHEAD * 500_000_000, "{part:?} {own:?}");
        }
        let skew = facts[0].begin.abs_diff(facts[1].begin);
        assert!(
            times.skew().abs_diff(skew) <= late + MACHINE_ERROR,
            "{times:?} {facts:?}"
        );
    }
}

#[test]
fn recordings_of_ranks_are_matched() {
    let script = "*: repeat 5\n*: reduce 0 100\n*: done\n";
    let job = Job::new("apart", 2, script);
    // Two recordings of one job, a rank each.
    let run = |rank: &str| {
        let recording = job.place.join(format!("rec{rank}"));
        let mut command = job.command(&["record", "-o", recording.to_str().unwrap()]);
        command.env("RANKS_ONLY", rank).env("RANKS_JOB", "job");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let mut both = [run("0"), run("1")];
    assert!(both.iter_mut().all(|child| child.wait().unwrap().success()));
    let [zero, one] = ["rec0", "rec1"].map(|name| job.place.join(name));
    let found = matched(&[&zero, &one]);
    assert_eq!(
        (found.done.len(), found.values.problems.len(), found.values.unmatched),
        (6, 0, 0)
    );
    // One rank alone.
    let found = matched(&[&zero]);
    assert_eq!(found.done.len(), 0);
    assert!(
        found
            .values
            .waiting
            .iter()
            .all(|it| it.missing.iter().all(|missing| missing.1.is_none()))
    );
    // One twice.
    let found = matched(&[&zero, &one, &zero]);
    assert_eq!(found.done.len(), 6);
    assert!(matches!(found.values.problems[..], [Problem::Twice { rank: 0, .. }]));
    // Another run.
    let other = Job::new("apart-other", 2, script);
    assert!(other.record().status.success());
    let found = matched(&[&zero, &other.place.join("rec")]);
    assert_eq!((found.done.len(), found.values.communicators.len()), (6, 2));
}
