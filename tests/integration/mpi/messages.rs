//! Messages between ranks. Each carries its number, so the ranks know which receive took which message.

use super::{Ranks, calls_of, each};
use crate::kit::trace::Trace;
use roctop::model::collectives::MACHINE_ERROR;
use std::collections::BTreeMap;

/// A call that a rank wrote of: it began between the first two times and ended between the last two.
#[derive(Clone, Debug)]
struct Fact {
    rank: usize,
    pid: u32,
    function: String,
    is_known: bool,
    begin: [u64; 2],
    end: [u64; 2],
}

/// Sender's and receiver's call of each message.
fn truth(ranks: &Ranks) -> Vec<[Fact; 2]> {
    let mut found: BTreeMap<u32, Vec<Fact>> = BTreeMap::new();
    for rank in 0..super::RANKS {
        let text = std::fs::read_to_string(ranks.place.join(format!("truth.{rank}"))).unwrap();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let time = |at: usize| words[at].parse().unwrap();
            found.entry(words[2].parse().unwrap()).or_default().push(Fact {
                rank,
                pid: words[0].parse().unwrap(),
                function: words[1].to_owned(),
                is_known: words[3] == "1",
                begin: [time(4), time(5)],
                end: [time(6), time(7)],
            });
        }
    }
    // Nobody receives what is sent to nobody.
    found.retain(|_, calls| calls.len() == 2);
    let pairs = found.into_values().map(|mut calls| {
        calls.sort_by_key(|call| call.function.ends_with("ecv"));
        <[Fact; 2]>::try_from(calls).unwrap()
    });
    pairs.collect()
}

/// Bounds of the wait of a call for the other one: none if it had returned when that came.
fn wait(own: &Fact, other: &Fact) -> [u64; 2] {
    let error = 2 * MACHINE_ERROR;
    if other.begin[0] > own.end[1] + error {
        return [0, 0];
    }
    let most = other.begin[1].min(own.end[1]).saturating_sub(own.begin[0]);
    let has_come = other.begin[1] + error < own.end[0];
    let least = other.begin[0].saturating_sub(own.begin[1]);
    [if has_come { least } else { 0 }, most]
}

/// Checks `Wait_ns` of all messages in files against what the ranks wrote; the longest wait of a receive.
fn check(ranks: &Ranks, folder: &str) -> u64 {
    let calls = calls_of(ranks, folder);
    let mut longest = 0;
    for pair in truth(ranks) {
        for (own, other) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
            let error = MACHINE_ERROR;
            let range = (own.pid, own.begin[0].saturating_sub(error))..=(own.pid, own.begin[1] + error);
            let found: Vec<_> = calls.range(range).filter(|(_, call)| call.0 == own.function).collect();
            let [(_, (_, _, shown))] = found[..] else {
                panic!("{own:?}: {found:?}")
            };
            if own.function.starts_with("MPI_I") || !own.is_known {
                assert_eq!(shown, "", "{pair:?}");
                continue;
            }
            let [least, most] = wait(own, other);
            let shown: u64 = shown
                .parse()
                .unwrap_or_else(|_| panic!("not matched: {own:?} of {pair:?}"));
            assert!(
                shown + 2 * error >= least && shown <= most + 2 * error,
                "rank {} waited {shown} ns, not {least} to {most}: {pair:?}",
                own.rank
            );
            if own.function == "MPI_Recv" {
                longest = longest.max(least);
            }
        }
    }
    longest
}

/// Checks that a flow joins both calls of each message that is known, and nothing else.
fn check_flows(ranks: &Ranks, folder: &str) {
    let mut flows: BTreeMap<u64, Vec<(u32, u64)>> = BTreeMap::new();
    for entry in std::fs::read_dir(ranks.place.join(folder)).unwrap() {
        let trace = Trace::read(&std::fs::read(entry.unwrap().path()).unwrap());
        for slice in trace.slices.iter().filter(|slice| slice.category == "mpi_api") {
            let call = (trace.pid as u32, slice.arguments["begin_ns"]);
            flows.entry(slice.flow.unwrap()).or_default().push(call);
        }
    }
    let is = |fact: &Fact, (pid, begin): (u32, u64)| {
        let range = fact.begin[0].saturating_sub(MACHINE_ERROR)..=fact.begin[1] + MACHINE_ERROR;
        pid == fact.pid && range.contains(&begin)
    };
    let truth = truth(ranks);
    let known: Vec<_> = truth.iter().filter(|pair| pair[0].is_known).collect();
    for pair in &known {
        let found = flows.values().filter(|calls| match calls[..] {
            [one, other] => (is(&pair[0], one) && is(&pair[1], other)) || (is(&pair[1], one) && is(&pair[0], other)),
            _ => false,
        });
        assert_eq!(found.count(), 1, "{pair:?}");
    }
    let joined = flows.values().filter(|calls| calls.len() > 1).count();
    assert_eq!(joined, known.len());
}

#[test]
fn messages_wait_as_long_as_their_ranks_say() {
    each("messages", "mpi_messages.c", |ranks| {
        ranks.record(super::RANKS, &[]);
        ranks.roctop(&["export", "rec", "--format", "csv", "-d", "out"]);
        let longest = check(ranks, "out");
        ranks.roctop(&["export", "rec", "--format", "pftrace", "-d", "traces"]);
        check_flows(ranks, "traces");
        assert!(longest > 0);
        let limit = |nanos: u64| format!("wait(MPI_Recv) > {nanos}ns");
        let exceeded = limit(longest.saturating_sub(2 * MACHINE_ERROR + 1));
        let text = ranks.roctop_ends(&["summary", "rec", "--fail-if", &exceeded], 3);
        assert!(text.contains("in MPI_Recv of comm "), "{text}");
        ranks.roctop(&["summary", "rec", "--fail-if", &limit(u64::MAX / 2)]);
        // It returns at once.
        ranks.roctop_ends(&["summary", "rec", "--fail-if", "wait(MPI_Irecv) > 5ms"], 1);
        super::shares::check(ranks);
    });
}
