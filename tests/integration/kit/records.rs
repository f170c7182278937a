//! The records of an export, as each format has them.

use super::table::Table;
use super::trace::Trace;
use parquet::file::reader::SerializedFileReader;
use parquet::record::{Row, RowAccessor};
use rusqlite::Connection;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A record as every format has it: name, correlation id, begin, end.
pub(crate) type Record = (String, u64, u64, u64);

/// Records by kind, sorted.
pub(crate) type Records = BTreeMap<&'static str, Vec<Record>>;

/// Kinds with their files; a kind of which there is nothing has none.
const KINDS: [(&str, &str, &str); 5] = [
    ("kernel_dispatch", "kernel_trace.csv", "Kernel_Name"),
    ("hip_api", "hip_api_trace.csv", "Function"),
    ("hsa_api", "hsa_api_trace.csv", "Function"),
    ("memory_copy", "memory_copy_trace.csv", "Direction"),
    ("marker_api", "marker_api_trace.csv", "Function"),
];

pub(crate) fn of_csv(out: &Path) -> Records {
    let path = |file: &str| out.join(format!("t_{file}"));
    let there = KINDS.iter().filter(|(_, file, _)| path(file).exists());
    let records = there.map(|(kind, file, column)| {
        let table = Table::read(&path(file));
        let numbers = |name: &str| table.numbers(name).into_iter();
        let times = numbers("Start_Timestamp").zip(numbers("End_Timestamp"));
        let rows = table
            .column(column)
            .into_iter()
            .zip(numbers("Correlation_Id").zip(times));
        let mut rows: Vec<Record> = rows
            .map(|(name, (id, (begin, end)))| (name.to_owned(), id, begin, end))
            .collect();
        rows.sort();
        (*kind, rows)
    });
    records.collect()
}

pub(crate) fn of_json(out: &Path) -> Records {
    let text = std::fs::read_to_string(out.join("t_results.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let process = &document["rocprofiler-sdk-tool"][0];
    let messages: BTreeMap<u64, &str> = process["strings"]["marker_api"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["key"].as_u64().unwrap(), entry["value"].as_str().unwrap()))
        .collect();
    let records = KINDS.iter().map(|(kind, ..)| {
        let rows = process["buffer_records"][kind].as_array().unwrap().iter();
        let mut rows: Vec<Record> = rows
            .map(|row| {
                let id = row["correlation_id"]["internal"].as_u64().unwrap();
                let number = |key: &str| row[key].as_u64().unwrap();
                let name = match *kind {
                    "kernel_dispatch" => {
                        let symbol = row["dispatch_info"]["kernel_id"].as_u64().unwrap() as usize;
                        process["kernel_symbols"][symbol]["formatted_kernel_name"]
                            .as_str()
                            .unwrap()
                    }
                    "marker_api" => messages[&id],
                    _ => {
                        let kinds = &process["strings"]["buffer_records"][number("kind") as usize];
                        kinds["operations"][number("operation") as usize].as_str().unwrap()
                    }
                };
                (name.to_owned(), id, number("start_timestamp"), number("end_timestamp"))
            })
            .collect();
        rows.sort();
        (*kind, rows)
    });
    some(records)
}

pub(crate) fn of_rocpd(out: &Path) -> Records {
    let database = Connection::open(out.join("t_results.db")).unwrap();
    let calls = "regions WHERE category LIKE 'HIP_%'";
    let markers = "regions_and_samples WHERE category = 'MARKER_CORE_RANGE_API'";
    let views = [
        ("kernel_dispatch", "name", "kernels WHERE category = 'KERNEL_DISPATCH'"),
        ("hip_api", "name", calls),
        ("hsa_api", "name", "regions WHERE category LIKE 'HSA_%'"),
        ("memory_copy", "name", "memory_copies WHERE category = 'MEMORY_COPY'"),
        ("marker_api", "json_extract(extdata, '$.message')", markers),
    ];
    let records = views.iter().map(|(kind, name, view)| {
        let sql = format!("SELECT {name}, stack_id, start, \"end\" FROM {view}");
        let mut statement = database.prepare(&sql).unwrap();
        let number = |row: &rusqlite::Row<'_>, at: usize| Ok::<u64, rusqlite::Error>(row.get::<_, i64>(at)? as u64);
        let rows = statement.query_map([], |row| {
            Ok((row.get(0)?, number(row, 1)?, number(row, 2)?, number(row, 3)?))
        });
        let mut rows: Vec<Record> = rows.unwrap().map(Result::unwrap).collect();
        rows.sort();
        (*kind, rows)
    });
    some(records)
}

pub(crate) fn of_pftrace(out: &Path) -> Records {
    let trace = Trace::read(&std::fs::read(out.join("t_results.pftrace")).unwrap());
    let records = KINDS.iter().map(|(kind, ..)| {
        let own = trace.slices.iter().filter(|slice| slice.category == *kind);
        let mut rows: Vec<Record> = own
            .map(|slice| {
                let of = |key: &str| slice.arguments[key];
                (slice.name.clone(), of("corr_id"), of("begin_ns"), of("end_ns"))
            })
            .collect();
        rows.sort();
        (*kind, rows)
    });
    some(records)
}

/// Those of which there are any.
fn some(records: impl Iterator<Item = (&'static str, Vec<Record>)>) -> Records {
    records.filter(|(_, rows)| !rows.is_empty()).collect()
}

pub(crate) fn parquet_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(parquet_files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Rows of a kind in the Parquet files below `out`.
pub(crate) fn parquet_rows(out: &Path, kind: &str) -> Vec<Row> {
    let files = parquet_files(&out.join("parquet").join(format!("kind={kind}")));
    let readers = files
        .iter()
        .map(|path| SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap());
    readers
        .flat_map(|reader| reader.into_iter().map(Result::unwrap).collect::<Vec<_>>())
        .collect()
}

fn cell(row: &Row, name: &str) -> usize {
    row.get_column_iter().position(|(column, _)| column == name).unwrap()
}

/// The number of a row's column.
pub(crate) fn parquet_number(row: &Row, name: &str) -> u64 {
    row.get_long(cell(row, name)).unwrap() as u64
}

/// The text of a row's column.
pub(crate) fn parquet_text<'a>(row: &'a Row, name: &str) -> &'a str {
    row.get_string(cell(row, name)).unwrap()
}

pub(crate) fn of_parquet(out: &Path) -> Records {
    let records = KINDS.iter().map(|(kind, ..)| {
        let rows = parquet_rows(out, kind);
        let rows = rows.iter().map(|row| {
            let name = match *kind {
                "kernel_dispatch" => "kernel",
                "memory_copy" => "direction",
                _ => "function",
            };
            let number = |name| parquet_number(row, name);
            let name = parquet_text(row, name).to_owned();
            (name, number("correlation_id"), number("start_ns"), number("end_ns"))
        });
        let mut rows: Vec<Record> = rows.collect();
        rows.sort();
        (*kind, rows)
    });
    some(records)
}
