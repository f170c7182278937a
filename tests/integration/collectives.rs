//! Collectives: recorded, numbered and matched as the ranks logged them.

mod faults;

use crate::kit::demo::roctop;
use crate::kit::ranks::{Fact, Job, by_collective, matched};
use crate::kit::trace::Trace;
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
    let truth = by_collective(&job.truth());
    let found = matched(&[&job.place.join("rec")]);
    assert_eq!(found.values.problems, []);
    assert_eq!((found.values.unmatched, found.values.waiting.len()), (0, 0));
    assert_eq!(found.done.len(), truth.len());
    let mut named = BTreeMap::new();
    for (collective, times) in &found.done {
        // A communicator of the log is the one whose collective began inside of this rank's call.
        let part = &collective.parts[times.latest];
        let is_inside = |fact: &Fact| {
            fact.rank == part.rank
                && part.call.start <= fact.begin + MACHINE_ERROR
                && part
                    .returned
                    .is_some_and(|returned| fact.end <= returned + MACHINE_ERROR)
        };
        let fits = |(_, sequence, pair): &(String, u32, Option<(u32, u32)>)| {
            *sequence == collective.key.sequence && *pair == collective.key.pair
        };
        let known = named.get(&collective.key.communicator).cloned();
        let all = truth
            .iter()
            .filter(|(key, facts)| fits(key) && facts.len() == collective.parts.len());
        let mut all = all.filter(|(_, facts)| facts.iter().any(is_inside));
        let key = known.map_or_else(
            || all.next().map(|(key, _)| key.clone()).unwrap(),
            |name| (name, collective.key.sequence, collective.key.pair),
        );
        named.insert(collective.key.communicator, key.0.clone());
        let facts = &truth[&key];
        let first = facts.iter().map(|fact| fact.begin).min().unwrap();
        let last = facts.iter().map(|fact| fact.begin).max().unwrap();
        let mut late = 0;
        for part in &collective.parts {
            let name = match part.call.operation {
                Operation::Receive => "Recv",
                other => other.name(),
            };
            let own = facts
                .iter()
                .find(|fact| fact.rank == part.rank && fact.operation == name);
            let own = own.unwrap_or_else(|| panic!("{name} of rank {} in {facts:?}", part.rank));
            assert_eq!(own.count, part.call.count);
            // The stand-in reads its clock inside of the call.
            let returned = part.returned.unwrap();
            assert!(part.call.start <= own.begin + MACHINE_ERROR, "{part:?} {own:?}");
            assert!(own.end <= returned + MACHINE_ERROR, "{part:?} {own:?}");
            late = late.max(own.begin.saturating_sub(part.call.start));
        }
        let error = times.skew().abs_diff(last - first);
        assert!(error <= late + MACHINE_ERROR, "{error} {times:?} {facts:?}");
    }
    let row = found.values.operations.iter().find(|row| {
        row.operation == Operation::AllReduce && found.values.communicators[row.communicator as usize].size == 4
    });
    let row = row.unwrap();
    assert_eq!(row.latest().map(|latest| latest.0), Some(3), "{row:?}");
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
fn late() -> &'static Path {
    static OUT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    OUT.get_or_init(|| {
        let script = "*: repeat 6\n*: range step\n2: sleep 20\n*: reduce 0 1024\n*: pop\n*: done\n";
        let job = Job::new("exported", 4, script);
        assert!(job.record().status.success());
        let out = job.place.join("out");
        let (recording, folder) = (job.place.join("rec"), out.to_str().unwrap());
        let words = ["export", recording.to_str().unwrap(), "-d", folder];
        let output = roctop(&[&words[..], &["--format", "pftrace,parquet,kineto"]].concat());
        assert!(output.status.success(), "{output:?}");
        out
    })
}

#[test]
fn traces_have_a_track_for_each_communicator() {
    let mut ranks = BTreeSet::new();
    for path in files(late(), ".pftrace") {
        let trace = Trace::read(&std::fs::read(&path).unwrap());
        let own = |(id, (name, _)): (&u64, &(String, Option<u64>))| {
            let rank = name.strip_prefix("COMMUNICATOR 0 RANK ")?;
            Some((*id, rank.parse::<u64>().unwrap()))
        };
        let tracks: Vec<(u64, u64)> = trace.tracks.iter().filter_map(own).collect();
        let [(track, rank)] = tracks[..] else { continue };
        ranks.insert(rank);
        let slices: Vec<_> = trace.slices.iter().filter(|slice| slice.track == track).collect();
        let named = |name: &str| slices.iter().filter(|slice| slice.name == name).collect::<Vec<_>>();
        let (transfers, waits) = (named("AllReduce"), named("wait for AllReduce"));
        assert_eq!(transfers.len(), 7, "one before the steps");
        assert!(slices.iter().all(|slice| slice.category == "collective"));
        let late = waits
            .iter()
            .filter(|slice| slice.arguments.get("last_rank") == Some(&2));
        let long = late.filter(|slice| slice.end - slice.begin >= 10_000_000).count();
        // On a busy machine another rank may come last now and then.
        assert!(if rank == 2 { long == 0 } else { long >= 4 }, "rank {rank}: {waits:?}");
    }
    assert_eq!(ranks.len(), 4);
}

#[test]
fn steps_are_a_table_with_their_collectives() {
    let mut waited: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for path in files(&late().join("parquet/kind=step"), ".parquet") {
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let cell = |wanted: &str| {
                let mut cells = row.get_column_iter();
                cells.find(|(name, _)| *name == wanted).unwrap().1.to_string()
            };
            let number_of = |name: &str| cell(name).parse::<u64>().unwrap();
            let waited = waited.entry(number_of("rank")).or_default();
            let number = waited.len() as u64 + 1;
            assert_eq!((cell("name"), number_of("step")), ("\"step\"".into(), number));
            assert_eq!(number_of("collectives"), 1);
            assert!(number_of("end_ns") > number_of("start_ns"));
            waited.push(number_of("collective_wait_ns"));
        }
    }
    assert_eq!(waited.len(), 4);
    for (rank, waited) in waited {
        assert_eq!(waited.len(), 6);
        // Six times 20 ms; on a busy machine another rank may come last now and then.
        let is_long = waited.iter().sum::<u64>() >= 70_000_000;
        assert_eq!(is_long, rank != 2, "rank {rank}: {waited:?}");
    }
}

#[test]
fn kineto_traces_name_the_groups_of_a_rank() {
    let mut found = 0;
    for path in files(late(), "kineto.pt.trace.json") {
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
            // On one clock, both were in this call within the same second.
            assert!(late < 1_000_000_000, "{part:?} {own:?}");
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
