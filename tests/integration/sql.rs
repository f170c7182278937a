//! Derived numbers against SQL: each file of docs/sql defines a list of `roctop ask` as a query over the rocpd export of the same
//! recording. The query is what is right.

mod ranges;

use crate::kit::demo::{self, roctop};
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use crate::kit::rig::rig;
use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file of docs/sql, the question that it answers, and the columns that name a row.
struct List {
    file: &'static str,
    question: &'static str,
    key: &'static [&'static str],
}

const LISTS: [List; 4] = [
    List {
        file: "totals",
        question: "status",
        key: &[],
    },
    List {
        file: "kernels",
        question: "top kernels limit 10000",
        key: &["Kernel_Name"],
    },
    List {
        file: "calls",
        question: "top calls limit 10000",
        key: &["Function"],
    },
    List {
        file: "copies",
        question: "top copies limit 10000",
        key: &["Direction", "Route"],
    },
];

/// Values of a row by its columns, and rows by their key.
type Rows<V> = BTreeMap<Vec<String>, BTreeMap<String, V>>;

impl List {
    fn key_of<V>(&self, row: &BTreeMap<String, V>, text: impl Fn(&V) -> String) -> Vec<String> {
        self.key.iter().map(|column| text(&row[*column])).collect()
    }

    fn of_sql(&self, database: &Connection) -> Rows<Cell> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/sql/{}.sql", self.file));
        let query = std::fs::read_to_string(path).unwrap();
        let mut statement = database.prepare(&query).unwrap();
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let rows = statement.query_map([], |row| {
            let cells = columns.iter().enumerate();
            cells
                .map(|(at, column)| Ok((column.clone(), row.get::<_, Cell>(at)?)))
                .collect::<rusqlite::Result<BTreeMap<_, _>>>()
        });
        let rows = rows.unwrap().map(Result::unwrap);
        rows.map(|row| {
            let key = self.key_of(&row, |cell| match cell {
                Cell::Text(text) => text.clone(),
                other => panic!("{}: a key of {other:?}", self.file),
            });
            (key, row)
        })
        .collect()
    }

    fn of_roctop(&self, recording: &Path) -> Rows<Value> {
        let output = roctop(&["ask", recording.to_str().unwrap(), self.question, "--format", "json"]);
        assert!(output.status.success(), "{output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["basis"], "records", "{answer:#}");
        let rows = answer["rows"].as_array().unwrap().iter();
        rows.map(|row| {
            let values = row["values"].as_object().unwrap();
            let values: BTreeMap<String, Value> = values
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            let key = self.key_of(&values, |value| value.as_str().unwrap().to_owned());
            (key, values)
        })
        // Kernels of the run-time that copy are among the kernels.
        .filter(|(_, values)| {
            !values
                .get("Direction")
                .is_some_and(|way| way.as_str().unwrap().starts_with('~'))
        })
        .collect()
    }

    /// Compares all rows; how many numbers there were.
    fn compare(&self, name: &str, recording: &Path, database: &Connection) -> usize {
        let (right, shown) = (self.of_sql(database), self.of_roctop(recording));
        let keys: (Vec<_>, Vec<_>) = (shown.keys().collect(), right.keys().collect());
        assert_eq!(keys.0, keys.1, "{name}: {}", self.file);
        let mut count = 0;
        for (key, columns) in &right {
            for (column, cell) in columns
                .iter()
                .filter(|(column, _)| !self.key.contains(&column.as_str()))
            {
                let (column, cell) = match (column.as_str(), cell) {
                    // Not every SQLite has a square root.
                    ("Variance", Cell::Real(variance)) => ("StdDev_ns", &Cell::Real(variance.max(0.0).sqrt())),
                    ("Variance", none) => ("StdDev_ns", none),
                    (column, cell) => (column, cell),
                };
                let value = &shown[key][column];
                assert!(
                    is_same(column, cell, value),
                    "{name}: {}: {key:?}: {column} is {value}, and {cell:?} by SQL",
                    self.file
                );
                count += 1;
            }
        }
        count
    }
}

/// Whether roctop shows what SQL has: whole numbers to the unit, averages to the nanosecond, percentiles to their bin.
fn is_same(column: &str, right: &Cell, shown: &Value) -> bool {
    match *right {
        Cell::Null => shown.is_null(),
        // Of few calls roctop shows no percentiles.
        Cell::Integer(_) if column.starts_with('P') && shown.is_null() => true,
        Cell::Integer(right) if column.starts_with('P') => {
            let bin = right..=right + right / 64 + 1;
            shown.as_i64().is_some_and(|shown| bin.contains(&shown))
        }
        Cell::Integer(right) => shown.as_i64() == Some(right),
        Cell::Real(right) => {
            let step = if column.ends_with("_ns") {
                1.0
            } else {
                1e-9 * right.abs()
            };
            shown.as_f64().is_some_and(|shown| (shown - right).abs() <= step)
        }
        _ => panic!("{column}: {right:?}"),
    }
}

/// The recording's rocpd file, read back.
fn database(name: &str, recording: &Path) -> Connection {
    let out = place(&format!("sql-{name}"));
    let words = [
        "export",
        recording.to_str().unwrap(),
        "--format",
        "rocpd",
        "-d",
        out.to_str().unwrap(),
        "-o",
        "t",
    ];
    let output = roctop(&words);
    assert!(output.status.success(), "{output:?}");
    Connection::open(out.join("t_results.db")).unwrap()
}

fn compare(name: &str, recording: &Path) -> usize {
    let database = database(name, recording);
    LISTS.iter().map(|list| list.compare(name, recording, &database)).sum()
}

#[test]
fn the_lists_of_the_demo_are_those_of_sql() {
    let count = compare("demo", demo::recording());
    assert!(count > 100, "{count}");
}

#[test]
fn the_lists_of_many_records_are_those_of_sql() {
    let path: PathBuf = place("sql-made").join("rec");
    let made = Made {
        records: 300_000,
        threads: 3,
        marks: true,
        long_every: 97,
        long_copy_every: 41,
        ..Made::default()
    };
    make(&path, &made);
    let count = compare("made", &path);
    assert!(count > 50, "{count}");
}

#[test]
fn the_lists_of_programs_are_those_of_sql() {
    let Some(rig) = rig() else { return };
    for (name, words) in [
        ("sql-streams", &["streams"][..]),
        ("sql-storm", &["memcpy_storm"]),
        ("sql-features", &["features"]),
        ("sql-graphs", &["graphs"]),
        ("sql-transpose", &["matrix_transpose"]),
    ] {
        let recorded = rig.record(name, words);
        let count = compare(name, &recorded.place.join("rec"));
        assert!(count > 40, "{name}: {count}");
    }
}
