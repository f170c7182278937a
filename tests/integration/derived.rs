//! Numbers that roctop derives from records are those of the SQL in `docs/sql`, over the rocpd export of the same recording.

use crate::kit::demo::roctop;
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use roctop::model::analysis::Usage;
use roctop::model::{Fresh, Mode, Options, Store};
use roctop::recording::Recording;
use rusqlite::{Connection, named_params};
use serde_json::Value;
use std::path::Path;

/// The rows of a query of the documents; `end` is the end of the run, ns.
fn queried(database: &Connection, name: &str, end: u64) -> Vec<Vec<i64>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sql").join(name);
    let sql = std::fs::read_to_string(path).unwrap();
    let mut statement = database.prepare(&sql).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map(named_params! { ":end": end as i64 }, |row| {
        (0..columns).map(|at| row.get(at)).collect()
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn asked(recording: &Path, question: &str) -> Value {
    let output = roctop(&["ask", recording.to_str().unwrap(), question, "--format", "json"]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(row: &Value, name: &str) -> i64 {
    row["values"][name]
        .as_i64()
        .unwrap_or_else(|| panic!("no {name} in {row}"))
}

/// Use of the GPUs of a recording, of which a store keeps a part of the slices.
fn usage(recording: &Path, slices: usize) -> Vec<Usage> {
    let mut store = Store::new(Options {
        mode: Mode::Replay,
        slices,
        keep: 1_000_000_000,
        ..Options::default()
    });
    let recording = Recording::open(recording).unwrap();
    recording
        .items(&mut |items| items.iter().for_each(|item| store.apply(item)))
        .unwrap();
    store.snapshot(Fresh::All).analysis().whole.clone()
}

#[test]
fn gaps_and_idle_time_of_a_long_recording_are_those_of_sql() {
    let place = place("derived");
    let (recording, out) = (place.join("rec"), place.join("out"));
    let counts = make(
        &recording,
        &Made {
            records: 180_000,
            slowness: 20,
            pause_every: 97,
            ..Made::default()
        },
    );
    assert!(counts.dispatches > 70_000, "more than an analysis looks at: {counts:?}");
    let exported = roctop(&[
        "export",
        recording.to_str().unwrap(),
        "--format",
        "rocpd",
        "-d",
        out.to_str().unwrap(),
        "-o",
        "t",
    ]);
    assert!(exported.status.success(), "{exported:?}");
    let database = Connection::open(out.join("t_results.db")).unwrap();
    let answer = asked(&recording, "gaps limit 100");
    let end = answer["window"]["end_ns"].as_u64().unwrap();
    let truth: Vec<[i64; 2]> = queried(&database, "gaps.sql", end)
        .iter()
        .map(|row| [row[2], row[3]])
        .collect();
    assert_eq!(truth.len(), 100);
    let rows = answer["rows"].as_array().unwrap();
    let found: Vec<[i64; 2]> = rows
        .iter()
        .map(|row| [number(row, "Begin_ns"), number(row, "Duration_ns")])
        .collect();
    assert_eq!(found, truth);
    assert_eq!(answer["basis"], "records");
    let idle = queried(&database, "idle.sql", end);
    let status = asked(&recording, "status");
    assert_eq!(number(&status["rows"][0], "Idle_ns"), idle[0][3]);
    // Of these slices, the first are gone long before the last come.
    for slices in [1_000_000, 20_000] {
        let usage = &usage(&recording, slices)[0];
        let causes = usage.verdict.parts.iter().map(|part| part.nanos).sum::<u64>();
        assert_eq!(usage.stretch.begin as i64, idle[0][2]);
        assert_eq!((usage.idle as i64, causes as i64), (idle[0][3], idle[0][4]));
        let causes = usage.gaps.iter().map(|gap| gap.verdict.nanos == gap.span.duration());
        assert!(usage.gaps.len() >= 100 && causes.into_iter().all(|is_whole| is_whole));
    }
}
