//! Time in MPI by function and by rank against SQL over the rocpd files of all ranks.

use super::Ranks;
use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A connection that sees the files of all processes as one.
fn database(ranks: &Ranks) -> Connection {
    ranks.roctop(&["export", "rec", "--format", "rocpd", "-d", "rocpd"]);
    let files = std::fs::read_dir(ranks.place.join("rocpd")).unwrap();
    let files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    let database = Connection::open_in_memory().unwrap();
    let mut parts = Vec::new();
    for (at, path) in files.iter().enumerate() {
        let text = format!("ATTACH '{}' AS file{at}", path.display());
        database.execute(&text, []).unwrap();
        parts.push(at);
    }
    for view in ["regions", "region_args"] {
        let selects: Vec<String> = parts
            .iter()
            .map(|at| format!("SELECT * FROM file{at}.{view}"))
            .collect();
        let text = format!("CREATE TEMP VIEW {view} AS {}", selects.join(" UNION ALL "));
        database.execute(&text, []).unwrap();
    }
    database
}

fn json(ranks: &Ranks, words: &[&str]) -> Value {
    serde_json::from_str(&ranks.roctop(&[words, &["--format", "json"]].concat())).unwrap()
}

fn is_same(right: &Cell, shown: &Value) -> bool {
    match right {
        Cell::Null => shown.is_null(),
        Cell::Integer(right) => shown.as_i64() == Some(*right),
        Cell::Real(right) => shown
            .as_f64()
            .is_some_and(|shown| (shown - right).abs() < 1e-9 * right.abs()),
        Cell::Text(right) => shown.as_str() == Some(right),
        Cell::Blob(_) => false,
    }
}

/// Checks the answer, the summary and its table.
pub(super) fn check(ranks: &Ranks) {
    let database = database(ranks);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sql/mpi.sql");
    let mut statement = database.prepare(&std::fs::read_to_string(path).unwrap()).unwrap();
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let rows = statement.query_map([], |row| {
        (0..columns.len())
            .map(|at| row.get(at))
            .collect::<Result<Vec<Cell>, _>>()
    });
    let answer = json(ranks, &["ask", "rec", "top mpi"]);
    let mut shown: BTreeMap<&str, &Value> = BTreeMap::new();
    for row in answer["rows"].as_array().unwrap() {
        shown.insert(row["values"]["Function"].as_str().unwrap(), &row["values"]);
    }
    let mut kinds = BTreeMap::new();
    for row in rows.unwrap().map(Result::unwrap) {
        let Cell::Text(name) = &row[0] else { panic!("{row:?}") };
        let values = shown
            .remove(name.as_str())
            .unwrap_or_else(|| panic!("no {name} in {answer:#}"));
        for (column, cell) in columns.iter().zip(&row) {
            assert!(
                is_same(cell, &values[column]),
                "{name}: {column} is {}, and {cell:?} by SQL",
                values[column]
            );
        }
        *kinds.entry(values["Kind"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert!(shown.is_empty(), "{shown:?}");
    assert!(kinds.len() >= 2, "{kinds:?}");
    let summary = json(ranks, &["summary", "rec"]);
    let mut statement = database
        .prepare("SELECT sum(\"end\" - start) FROM regions WHERE category = 'MPI_API' GROUP BY pid ORDER BY 1 DESC")
        .unwrap();
    let times = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    let times: Vec<u64> = times.map(|time| time.unwrap() as u64).collect();
    let found = summary["mpi"].as_array().unwrap().iter();
    let found: Vec<u64> = found.map(|row| row["time_ns"].as_u64().unwrap()).collect();
    assert_eq!((&found, found.len()), (&times, super::RANKS));
    let table = ranks.roctop(&["summary", "rec"]);
    let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
    let imbalance = format!("  greatest over mean: {:.2} (rank ", times[0] as f64 / mean);
    assert!(table.contains(&imbalance), "{imbalance}: {table}");
}
