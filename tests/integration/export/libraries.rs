//! Calls of libraries above HIP in the files: RCCL's by its functions, the decoders' by the tables that they hand over.
//! The libraries are stand-ins, which compute nothing.

use crate::kit::directory::place;
use crate::kit::records::parquet_rows;
use crate::kit::table::Table;
use parquet::record::{Field, Row};
use rusqlite::Connection;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

/// Hands over tables as rocDecode and rocJPEG do, and calls what came back; two calls lie within a microsecond.
const DECODER: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
static int create(void *a, void *b) { return a == (void *)1 && b == (void *)2 ? 0 : 1; }
int main(void) {
  typedef int (*Call)(void *, void *);
  struct { size_t size; void *functions[2]; } decode = {sizeof decode, {(void *)create, (void *)create}}, jpeg = decode;
  void *tables[] = {&decode}, *others[] = {&jpeg};
  int (*set)(const char *, uint64_t, uint64_t, void **, uint64_t) = dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
  if (!set || set("rocdecode", 600, 0, tables, 1) || set("rocjpeg", 600, 0, others, 1)) return 3;
  int failed = ((Call)decode.functions[0])((void *)1, (void *)2) + ((Call)decode.functions[1])((void *)1, (void *)2);
  return failed + ((Call)jpeg.functions[0])((void *)1, (void *)2);
}
"#;

/// Compiles a source to a file beside it.
fn compile(source: &Path, result: &Path, more: &[&str]) {
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o"]).arg(result).arg(source).args(more);
    assert!(
        compiler.status().unwrap().success(),
        "{} does not compile",
        source.display()
    );
}

fn has_compiler() -> bool {
    let there = Command::new("cc").arg("--version").output().is_ok();
    if !there {
        println!("SKIPPED: there is no cc");
    }
    there
}

/// Runs a program with these options; its files begin with `t`.
fn run(place: &Path, options: &[&str], program: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    command
        .arg("rocprofv3")
        .args(options)
        .args(["-o", "t", "--"])
        .arg(program);
    let output = command.current_dir(place).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn document(place: &Path) -> Value {
    let text = std::fs::read_to_string(place.join("t_results.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["rocprofiler-sdk-tool"][0].clone()
}

/// The domain and name of a record, by the tables.
fn name<'a>(document: &'a Value, record: &Value) -> (&'a str, &'a str) {
    let kind = &document["strings"]["buffer_records"][record["kind"].as_u64().unwrap() as usize];
    let operation = &kind["operations"][record["operation"].as_u64().unwrap() as usize];
    (kind["kind"].as_str().unwrap(), operation.as_str().unwrap())
}

#[test]
fn calls_of_rccl_have_a_file_and_hold_hips_calls() {
    if !has_compiler() {
        return;
    }
    let place = place("rccl");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/tests/c");
    for (source, library) in [("fake_hip.c", "libamdhip64.so.5"), ("fake_rccl.c", "librccl.so.1")] {
        let name = format!("-Wl,-soname,{library}");
        compile(
            &sources.join(source),
            &place.join(library),
            &["-shared", "-fPIC", &name],
        );
    }
    let (search, path) = (
        format!("-L{}", place.display()),
        format!("-Wl,-rpath,{}", place.display()),
    );
    let libraries = [
        "-Wl,--no-as-needed",
        "-l:librccl.so.1",
        "-l:libamdhip64.so.5",
        &path,
        "-ldl",
    ];
    compile(
        &sources.join("rccl.c"),
        &place.join("app"),
        &[&[&*search][..], &libraries].concat(),
    );
    let formats = ["-f", "csv", "json", "pftrace", "rocpd"];
    let options = ["--rccl-trace", "--hip-runtime-trace", "--stats"];
    run(&place, &[&options[..], &formats].concat(), &place.join("app"));
    let calls = Table::read(&place.join("t_rccl_api_trace.csv"));
    assert_eq!(
        calls.header.join(","),
        "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp"
    );
    assert!(calls.column("Domain").iter().all(|domain| *domain == "RCCL_API"));
    let expected = [
        "ncclGetUniqueId",
        "ncclCommInitRank",
        "ncclAllReduce",
        "ncclAllReduce",
        "ncclSend",
        "ncclGetErrorString",
        "ncclCommDestroy",
    ];
    assert_eq!(calls.column("Function"), expected);
    let document = document(&place);
    let records = document["buffer_records"]["rccl_api"].as_array().unwrap();
    let named: Vec<(&str, &str)> = records.iter().map(|record| name(&document, record)).collect();
    assert_eq!(named, expected.map(|function| ("RCCL_API", function)));
    assert_eq!(
        records[2]["args"][2],
        serde_json::json!({ "type": "m", "name": "count", "value": "1048576" })
    );
    assert_eq!(records[3]["retval"]["ncclResult_t_retval"], "4");
    // What a collective asks of HIP is a call of its own, inside of it.
    let inner = document["buffer_records"]["hip_api"].as_array().unwrap();
    let above: Vec<&Value> = inner.iter().map(|call| &call["correlation_id"]["ancestor"]).collect();
    let reduces: Vec<&Value> = records[2..4]
        .iter()
        .map(|call| &call["correlation_id"]["internal"])
        .collect();
    assert_eq!(above, reduces);
    let stats = Table::read(&place.join("t_rccl_api_stats.csv"));
    assert_eq!(stats.rows.len(), 6, "ncclAllReduce once");
    let domains = Table::read(&place.join("t_domain_stats.csv"));
    let mut names = domains.column("Name");
    names.sort_unstable();
    assert_eq!(names, ["HIP_API", "RCCL_API"]);
    let database = Connection::open(place.join("t_results.db")).unwrap();
    let count: u32 = database
        .query_row("SELECT count(*) FROM regions WHERE category = 'RCCL_API'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(count, 7);
    let argument = "SELECT count(*) FROM events_args WHERE category = 'RCCL_API' AND arg_position = 2 \
                    AND arg_type = 'unsigned long' AND arg_name = 'count' AND arg_value = '1048576'";
    let count: u32 = database.query_row(argument, [], |row| row.get(0)).unwrap();
    assert!(count > 0, "arguments have rows");
    let trace = std::fs::read(place.join("t_results.pftrace")).unwrap();
    assert!(trace.windows(8).any(|bytes| bytes == b"rccl_api"));
}

#[test]
fn calls_of_the_decoders_have_files() {
    if !has_compiler() {
        return;
    }
    let place = place("decode");
    std::fs::write(place.join("app.c"), DECODER).unwrap();
    compile(&place.join("app.c"), &place.join("app"), &["-ldl"]);
    run(&place, &["-s", "-f", "csv", "json"], &place.join("app"));
    let document = document(&place);
    for (library, domain, count) in [("rocdecode", "ROCDECODE_API", 2), ("rocjpeg", "ROCJPEG_API", 1)] {
        let calls = Table::read(&place.join(format!("t_{library}_api_trace.csv")));
        assert_eq!(calls.column("Domain"), vec![domain; count]);
        let records = document["buffer_records"][format!("{library}_api")].as_array().unwrap();
        let named: Vec<&str> = records.iter().map(|record| name(&document, record).1).collect();
        assert_eq!(calls.column("Function"), named);
        assert!(
            named
                .iter()
                .all(|name| name.to_ascii_lowercase().starts_with(&library[..6])),
            "{named:?}"
        );
    }
    assert!(!place.join("t_rccl_api_trace.csv").exists());
}

/// A program of MPI with its library, a stand-in.
pub(crate) fn program_of_mpi(place: &Path) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/tests/c");
    let library = place.join("libmpi.so.40");
    let shared = ["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40"];
    compile(&sources.join("stand_in_mpi.c"), &library, &shared);
    let path = format!("-Wl,-rpath,{}", place.display());
    let linked = [library.to_str().unwrap(), &path, "-ldl"];
    compile(&sources.join("mpi_user.c"), &place.join("app"), &linked);
}

/// Runs roctop; its output.
fn roctop(place: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    command.args(words).env("ROCTOP_CONFIG", "/dev/null").current_dir(place);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Parquet has the rows of the CSV file, as numbers that may be null, and each column once.
fn parquet_has_the_same_once(place: &Path, mut of_csv: Vec<String>) {
    let rows = parquet_rows(place, "mpi_api");
    for row in &rows {
        let names: Vec<&String> = row.get_column_iter().map(|column| column.0).collect();
        let unique: BTreeSet<&String> = names.iter().copied().collect();
        assert_eq!(names.len(), unique.len(), "{names:?}");
    }
    let cell = |row: &Row, name: &str| match row.get_column_iter().find(|column| column.0 == name).unwrap().1 {
        Field::Long(number) => number.to_string(),
        Field::Str(text) => text.clone(),
        Field::Null => String::new(),
        other => panic!("{name} is {other:?}"),
    };
    let row = |row: &Row| {
        ["function", "communicator", "peer", "tag", "bytes"]
            .map(|name| cell(row, name))
            .join("|")
    };
    let mut of_parquet: Vec<String> = rows.iter().map(row).collect();
    of_parquet.sort();
    of_csv.sort();
    assert_eq!(of_parquet, of_csv);
}

/// An answer has the sums of the file's rows.
fn an_answer_has_the_sums(place: &Path, calls: &Table) {
    let [functions, sizes] = ["Function", "Bytes"].map(|name| calls.column(name));
    let answer = roctop(place, &["ask", "rec", "top mpi", "--format", "json"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let mut sums: BTreeMap<&str, (u64, u64, u64, u64)> = BTreeMap::new();
    let times = ["Start_Timestamp", "End_Timestamp"].map(|name| calls.column(name));
    for at in 0..functions.len() {
        let [begin, end] = times.each_ref().map(|column| column[at].parse::<u64>().unwrap());
        let sum = sums.entry(functions[at]).or_default();
        (sum.0, sum.1) = (sum.0 + 1, sum.1 + end - begin);
        if let Ok(bytes) = sizes[at].parse::<u64>() {
            (sum.2, sum.3) = (sum.2 + bytes, sum.3 + 1);
        }
    }
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), sums.len());
    for row in rows {
        let values = &row["values"];
        let (count, time, bytes, sized) = sums[values["Function"].as_str().unwrap()];
        assert_eq!(
            (values["Calls"].as_u64(), values["Total_ns"].as_u64()),
            (Some(count), Some(time))
        );
        assert_eq!(values["Bytes"].as_u64(), (sized > 0).then_some(bytes), "{row}");
        assert_eq!(values["Calls_with_Bytes"].as_u64(), Some(sized));
    }
    let notes = answer["notes"].as_array().unwrap();
    assert!(
        notes
            .iter()
            .any(|note| note.as_str().unwrap().ends_with("of the time in MPI")),
        "{notes:?}"
    );
}

#[test]
fn calls_of_mpi_are_in_files_and_in_the_summary() {
    if !has_compiler() {
        return;
    }
    let place = place("mpi");
    program_of_mpi(&place);
    roctop(&place, &["record", "-o", "rec", "--", "./app"]);
    let formats = "csv,json,parquet,pftrace,rocpd,kineto";
    roctop(&place, &["export", "rec", "--format", formats, "-d", ".", "-o", "t"]);
    let calls = Table::read(&place.join("t_mpi_api_trace.csv"));
    assert_eq!(
        calls.header.join(","),
        "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp,Rank,Communicator,Peer,Tag,Bytes,Wait_ns"
    );
    let found = calls.column("Function").len();
    assert_eq!(found, 19);
    let columns = ["Function", "Communicator", "Peer", "Tag", "Bytes"].map(|name| calls.column(name));
    let row = |at: usize| columns.each_ref().map(|column| column[at]).join("|");
    let rows: Vec<String> = (0..found).map(row).collect();
    for expected in [
        "MPI_Init||||",
        "MPI_Send|world|5|42|24",
        "MPI_Send||||",
        "MPI_Send|world||0|0",
        "MPI_Gather|world|1||8",
        "MPI_Allreduce|world|||8",
        "MPI_Barrier|4|||",
    ] {
        assert!(rows.iter().any(|row| row == expected), "{expected}: {rows:#?}");
    }
    parquet_has_the_same_once(&place, rows);
    let document = document(&place);
    let listed = document["buffer_records"]["mpi_api"].as_array().unwrap();
    assert_eq!(listed.len(), 19);
    assert!(listed.iter().all(|call| name(&document, call).0 == "MPI_API"));
    // Files of the older layout have none, as scripts put all of them together.
    roctop(
        &place,
        &[
            "export", "rec", "--layout", "seed", "--format", "csv,json", "-d", "seed",
        ],
    );
    let seed: Vec<_> = std::fs::read_dir(place.join("seed")).unwrap().collect();
    let has_mpi = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().contains("mpi");
    assert!(!seed.into_iter().any(|entry| has_mpi(&entry.unwrap())));
    let summary: Value = serde_json::from_str(&roctop(&place, &["summary", "rec", "--format", "json"])).unwrap();
    let rows = summary["api"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(
        (&row("MPI_Send")["calls"], &row("MPI_Send")["bytes"]),
        (&5.into(), &24.into())
    );
    assert!(row("MPI_Init")["bytes"].is_null());
    assert!(summary["mpi"][0]["time_ns"].as_u64().unwrap() > 0);
    an_answer_has_the_sums(&place, &calls);
    let table = roctop(&place, &["summary", "rec"]);
    assert!(
        table.contains(" MAX/MEAN  MPI\n") && table.contains("% of the time in MPI"),
        "{table}"
    );
    // It may miss something else on this machine.
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_roctop"));
    let output = doctor
        .args(["doctor", "./app"])
        .env("ROCTOP_CONFIG", "/dev/null")
        .current_dir(&place)
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(text.contains("MPI calls") && text.contains("Open MPI"), "{text}");
}

#[test]
fn mpi_is_left_alone_where_it_is_not_wanted() {
    if !has_compiler() {
        return;
    }
    let place = place("mpi-off");
    program_of_mpi(&place);
    roctop(&place, &["record", "-o", "rec", "--mpi", "off", "--", "./app"]);
    let summary: Value = serde_json::from_str(&roctop(&place, &["summary", "rec", "--format", "json"])).unwrap();
    assert_eq!(summary["api"], Value::Array(Vec::new()));
    run(&place, &["--sys-trace", "-f", "csv"], &place.join("app"));
    assert!(!place.join("t_mpi_api_trace.csv").exists());
}
