//! Steps, work under ranges and held memory: queries of docs/sql with a parameter, over ranges at random.

use super::database;
use crate::kit::demo::roctop;
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use rusqlite::{Connection, Row, named_params};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A recording with ranges at random, and its database.
fn made(name: &str, made: &Made) -> (String, Connection) {
    let recording = place(name).join("run");
    make(&recording, made);
    let database = database(&format!("{name}-out"), &recording);
    (recording.to_str().unwrap().to_owned(), database)
}

/// The text of a query.
fn query(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sql");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Rows of an answer.
fn asked(recording: &str, question: &str) -> Vec<Value> {
    let output = roctop(&["ask", recording, question, "--format", "json"]);
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["basis"], "records", "{question}");
    let rows = answer["rows"].as_array().unwrap().iter();
    let rows: Vec<Value> = rows.map(|row| row["values"].clone()).collect();
    assert_eq!(answer["count"], rows.len(), "{question}: all rows");
    rows
}

fn number(row: &Row<'_>, at: usize) -> u64 {
    row.get::<_, i64>(at).unwrap() as u64
}

const SEEDS: [u64; 4] = [1, 2, 3, 4];

fn random(seed: u64) -> Made {
    Made {
        records: 12_000,
        threads: 1 + (seed % 3) as u32,
        ranges: seed,
        ..Made::default()
    }
}

#[test]
fn steps_equal_the_query_over_rocpd() {
    for seed in SEEDS {
        let (recording, database) = made(&format!("sql-random-steps-{seed}"), &random(seed));
        let mut statement = database.prepare(&query("steps.sql")).unwrap();
        let rows = statement.query_map(named_params! { ":steps": "step *" }, |row| {
            let numbers = [0, 1, 3, 4].map(|at| number(row, at));
            Ok((row.get::<_, String>(2)?, numbers))
        });
        let mut expected: Vec<(String, [u64; 4])> = rows.unwrap().map(Result::unwrap).collect();
        let found = asked(&recording, "steps limit 10000");
        let mut found: Vec<(String, [u64; 4])> = found
            .iter()
            .map(|row| {
                let names = ["Absolute", "Step", "Duration_ns", "Busy_ns"];
                assert_eq!(row["Is_estimate"], 0);
                let numbers = names.map(|name| row[name].as_u64().unwrap());
                (row["Name"].as_str().unwrap().to_owned(), numbers)
            })
            .collect();
        found.sort_by_key(|row| row.1[0]);
        expected.sort_by_key(|row| row.1[0]);
        assert!(expected.len() > 100, "{} steps", expected.len());
        let partly = |row: &&(String, [u64; 4])| row.1[3] > 0 && row.1[3] < row.1[2];
        assert!(expected.iter().filter(partly).count() > 100);
        assert_eq!(found, expected, "seed {seed}");
    }
}

#[test]
fn work_under_ranges_equals_the_query_over_rocpd() {
    for seed in SEEDS {
        let (recording, database) = made(&format!("sql-random-ranges-{seed}"), &random(seed));
        let mut statement = database.prepare(&query("ranges.sql")).unwrap();
        let found = asked(&recording, "top ranges limit 10000");
        assert!(found.len() >= 3, "{found:?}");
        let mut copies = 0;
        for row in found {
            let name = row["Marker"].as_str().unwrap();
            let text = name.replace('#', "[0-9]*");
            let expected = statement.query_row(named_params! { ":ranges": text }, |row| {
                Ok([0, 1, 2, 3, 4].map(|at| number(row, at)))
            });
            let names = ["Count", "Total_ns", "Kernels", "Copies", "GPU_ns"];
            let numbers = names.map(|name| row[name].as_u64().unwrap_or(0));
            assert_eq!(row["Is_least"], 0, "{name}");
            assert_eq!(numbers, expected.unwrap(), "seed {seed}: {name}");
            assert!(numbers[2] > 0, "{name} has work");
            copies += numbers[3];
        }
        assert!(copies > 0);
    }
}

#[test]
fn a_number_of_several_steps_is_refused_with_their_times() {
    let (recording, _) = made("sql-random-names", &random(1));
    let output = roctop(&["ask", &recording, "steps step 3"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("steps are step 3: #4 at 0.0") && error.contains("#44 at "),
        "{error}"
    );
    let row = &asked(&recording, "steps step #44")[0];
    assert_eq!(
        (&row["Absolute"], &row["Step"], &row["Name"]),
        (&44.into(), &3.into(), &"step 3".into())
    );
}

#[test]
fn memory_that_is_held_equals_the_query_over_rocpd() {
    for seed in SEEDS {
        let (recording, database) = made(&format!("sql-random-memory-{seed}"), &random(seed));
        let mut statement = database.prepare(&query("memory.sql")).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, number(row, 1), number(row, 2))));
        let mut expected: Vec<(String, u64, u64)> = rows.unwrap().map(Result::unwrap).collect();
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for row in asked(&recording, "memory limit 10000") {
            let sum = sums.entry(row["Function"].as_str().unwrap().to_owned()).or_default();
            *sum = (sum.0 + 1, sum.1 + row["Bytes"].as_u64().unwrap());
        }
        let found: Vec<(String, u64, u64)> = sums.into_iter().map(|(name, sum)| (name, sum.0, sum.1)).collect();
        expected.sort();
        assert!(expected.iter().map(|row| row.1).sum::<u64>() > 300, "{expected:?}");
        assert_eq!(found, expected, "seed {seed}");
    }
}
