//! The program's questions about a communicator are recorded; those of roctop, after a split, are not.

use crate::kit::ranks::Job;
use roctop::item::Item;
use roctop::recording::Recording;
use std::collections::BTreeMap;

#[test]
fn only_the_programs_own_questions_are_recorded() {
    let job = Job::new("questions", 2, "*: ask 0\n*: split 0 0 1\n*: ask 1\n*: ask 1\n");
    let output = job.record();
    assert!(output.status.success(), "{output:?}");
    let (mut names, mut calls) = (BTreeMap::new(), BTreeMap::new());
    let mut take = |items: Vec<Item>| {
        for item in items {
            match item {
                Item::Operation(operation) => drop(names.insert(operation.id, operation.name)),
                Item::Api(call) => *calls.entry(call.operation).or_insert(0) += 1,
                _ => {}
            }
        }
    };
    Recording::open(&job.place.join("rec"))
        .unwrap()
        .items(&mut take)
        .unwrap();
    let count = |wanted: &str| {
        let found = names.iter().filter(|(_, name)| ***name == *wanted);
        found.filter_map(|(id, _)| calls.get(id)).sum::<i32>()
    };
    // Three by each of two ranks.
    assert_eq!(["ncclCommCount", "ncclCommUserRank"].map(count), [6, 6]);
}
