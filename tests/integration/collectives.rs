//! Collectives: recorded, numbered and matched as the ranks logged them.

mod faults;

use crate::kit::ranks::{Fact, Job, by_collective, matched};
use roctop::item::CollectiveOperation as Operation;
use roctop::model::collectives::Problem;

/// Everything that RCCL is used for: splits, groups, messages, reused handles, failing calls.
const SCRIPT: &str = "\
*: repeat 20
*: reduce 0 1024
3: sleep 3
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
    let (mut named, mut errors) = (std::collections::BTreeMap::new(), Vec::new());
    for (collective, times) in &found.done {
        // A communicator of the log is the one in which this rank began its first collective at the nearest time.
        let part = &collective.parts[times.latest];
        let distance = |facts: &Vec<Fact>| {
            let own = facts.iter().filter(|fact| fact.rank == part.rank);
            own.map(|fact| fact.begin.abs_diff(part.call.start)).min()
        };
        let fits = |(_, sequence, pair): &(String, u32, Option<(u32, u32)>)| {
            *sequence == collective.key.sequence && *pair == collective.key.pair
        };
        let known = named.get(&collective.key.communicator).cloned();
        let all = truth
            .iter()
            .filter(|(key, facts)| fits(key) && facts.len() == collective.parts.len());
        let all = all.filter_map(|(key, facts)| Some((distance(facts)?, key)));
        let key = known.map_or_else(
            || all.min().map(|(_, key)| key.clone()).unwrap(),
            |name| (name, collective.key.sequence, collective.key.pair),
        );
        named.insert(collective.key.communicator, key.0.clone());
        let facts = &truth[&key];
        let first = facts.iter().map(|fact| fact.begin).min().unwrap();
        let last = facts.iter().map(|fact| fact.begin).max().unwrap();
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
            errors.push(own.begin.abs_diff(part.call.start));
        }
        errors.push(times.skew().abs_diff(last - first));
    }
    // The stand-in reads its clock after the collector: a busy machine may come between the two, not often.
    errors.sort_unstable();
    let most = errors[errors.len() * 8 / 10];
    assert!(most < 20_000, "{most} {errors:?}");
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

#[test]
fn recordings_of_ranks_are_matched() {
    let script = "*: repeat 5\n*: reduce 0 100\n*: done\n";
    let job = Job::new("apart", 2, script);
    // Two recordings of one job, a rank each.
    let run = |rank: &str| {
        let recording = job.place.join(format!("rec{rank}"));
        let mut command = job.command(&["record", "-o", recording.to_str().unwrap()]);
        command.env("RANKS_ONLY", rank).env("RANKS_JOB", "job");
        command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
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
