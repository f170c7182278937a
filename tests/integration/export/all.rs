//! All formats of one run hold the same records; other programs read them as they are.

use crate::kit::demo::{recording, roctop};
use crate::kit::directory::place;
use crate::kit::made;
use crate::kit::made::{Counts, Made, make};
use crate::kit::python::{python, run_python};
use crate::kit::records::{of_csv, of_json, of_parquet, of_pftrace, of_rocpd, parquet_files};
use crate::kit::table::Table;
use crate::kit::trace::Trace;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn export_all(name: &str, recording: &Path) -> PathBuf {
    let out = place(name);
    let words = [
        "export",
        recording.to_str().unwrap(),
        "-d",
        out.to_str().unwrap(),
        "-o",
        "t",
    ];
    let formats = ["--format", "csv,json,pftrace,rocpd,parquet,kineto", "--stats"];
    let output = roctop(&[&words[..], &formats[..]].concat());
    assert!(output.status.success(), "{output:?}");
    out
}

#[test]
fn all_formats_hold_the_same_records() {
    let out = export_all("all", recording());
    let csv = of_csv(&out);
    assert!(csv.len() == 4 && csv.values().all(|rows| !rows.is_empty()));
    assert!(of_json(&out) == csv, "JSON");
    assert!(of_rocpd(&out) == csv, "rocpd");
    assert!(of_parquet(&out) == csv, "Parquet");
    assert!(of_pftrace(&out) == csv, "pftrace");
    let left = std::fs::read_dir(&out).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().contains(".tmp")
    });
    assert_eq!(left.count(), 0);
}

/// Contents of all files below a folder, by path.
pub(super) fn contents(folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents(&path, into);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            into.insert(path, bytes);
        }
    }
}

/// Checks that there are the same files with the same bytes.
pub(super) fn check_same(what: &str, expected: &BTreeMap<PathBuf, Vec<u8>>, found: &BTreeMap<PathBuf, Vec<u8>>) {
    assert!(
        !found.is_empty() && found.keys().eq(expected.keys()),
        "{what}: {:?}",
        found.keys()
    );
    for (path, bytes) in found {
        assert!(*bytes == expected[path], "{what}: {}", path.display());
    }
}

#[test]
fn files_are_the_same_on_any_number_of_threads() {
    // Several runs of each sort; and texts and values beside the records, and a trace in several files.
    let many = Made {
        records: 150_000,
        threads: 3,
        ..Made::default()
    };
    let mixed = Made {
        records: 60_000,
        marks: true,
        counters: 1,
        ..Made::default()
    };
    check_threads("threads-many", &many, "csv,json,pftrace,rocpd,parquet", "1G");
    let all = "csv,json,pftrace,rocpd,parquet,kineto,pprof,collapsed";
    check_threads("threads-mixed", &mixed, all, "2M");
}

/// Checks that the files of a recording have the same bytes on one, two and seven threads, sorted in memory or in files.
fn check_threads(name: &str, made: &Made, formats: &str, split: &str) {
    let place = place(name);
    let (path, out) = (place.join("rec"), place.join("out"));
    make(&path, made);
    let mut expected = None;
    for (threads, memory) in [("1", "1K"), ("2", "1G"), ("7", "1K"), ("7", "16M")] {
        let words = ["export", path.to_str().unwrap(), "-d", out.to_str().unwrap(), "-o", "t"];
        let options = ["--format", formats, "--stats", "--wide-counters", "--split", split];
        let workspace = ["--threads", threads, "--memory", memory];
        let output = roctop(&[&words[..], &options[..], &workspace[..]].concat());
        assert!(output.status.success(), "{output:?}");
        let mut found = BTreeMap::new();
        contents(&out, &mut found);
        let expected = expected.get_or_insert_with(|| found.clone());
        assert!(found.len() > 10, "{:?}", found.keys());
        check_same(&format!("{threads} threads, {memory}"), expected, &found);
        std::fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn tables_and_copies_are_the_same_on_any_number_of_threads() {
    let place = place("threads-tables");
    let (path, copy) = (place.join("rec"), place.join("copy"));
    let made = Made {
        records: 300_000,
        threads: 3,
        ..Made::default()
    };
    make(&path, &made);
    let (path, copy) = (path.to_str().unwrap(), copy.to_str().unwrap());
    let commands: [&[&str]; 5] = [
        &["summary", path],
        &["summary", path, "--filter", "dur>1us", "--format", "csv"],
        &["diff", path, path],
        &["merge", path, "-o", copy],
        &["cut", path, "--range", "0s..1s", "-o", copy],
    ];
    for words in commands {
        let mut expected = None;
        for threads in ["1", "2", "7"] {
            let output = roctop(&[words, &["--threads", threads]].concat());
            assert!(output.status.success(), "{output:?}");
            let mut found = BTreeMap::from([(PathBuf::new(), output.stdout)]);
            if words.contains(&copy) {
                let copied = roctop(&["summary", copy]);
                found = BTreeMap::from([(PathBuf::new(), copied.stdout)]);
                std::fs::remove_dir_all(copy).unwrap();
            }
            assert!(found.values().all(|text| text.len() > 100), "{found:?}");
            let expected = expected.get_or_insert_with(|| found.clone());
            check_same(&format!("{words:?} on {threads}"), expected, &found);
        }
    }
}

#[test]
fn the_number_of_threads_is_checked() {
    for command in ["export", "summary"] {
        for threads in ["0", "1025", "many", ""] {
            let output = roctop(&[command, recording().to_str().unwrap(), "--threads", threads]);
            let told = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{told}");
            assert!(told.contains("--threads"), "{told}");
        }
    }
}

#[test]
fn what_does_not_fit_in_memory_is_the_same_as_what_does() {
    // 1.2 million records need several runs of every sort, some of which stay in memory.
    let place = place("spill");
    let path = place.join("rec");
    let made = make(
        &path,
        &Made {
            records: 1_200_000,
            threads: 3,
            ..Made::default()
        },
    );
    let out = place.join("out");
    let words = ["export", path.to_str().unwrap(), "-d", out.to_str().unwrap(), "-o", "t"];
    let output = roctop(&[&words[..], &["--memory", "100M"]].concat());
    assert!(output.status.success(), "{output:?}");
    let kernels = Table::read(&out.join("t_kernel_trace.csv"));
    let calls = Table::read(&out.join("t_hip_api_trace.csv"));
    assert_eq!(
        (kernels.rows.len() as u64, calls.rows.len() as u64),
        (made.dispatches, made.calls)
    );
    assert!(kernels.numbers("End_Timestamp").is_sorted() && calls.numbers("End_Timestamp").is_sorted());
    // Each dispatch belongs to the call in which it was submitted.
    let begins: BTreeMap<u64, u64> = calls
        .numbers("Correlation_Id")
        .into_iter()
        .zip(calls.numbers("Start_Timestamp"))
        .collect();
    assert_eq!(begins.len(), calls.rows.len(), "ids are unique");
    let numbers = kernels
        .numbers("Dispatch_Id")
        .into_iter()
        .zip(kernels.numbers("Correlation_Id"));
    for (dispatch, id) in numbers {
        let step = (dispatch - 1) / 9 * 10 + (dispatch - 1) % 9;
        assert_eq!(begins[&id], made::BEGIN + step * 2500);
    }
}

/// Recorded by `made`, and written as `format`.
fn written(name: &str, made: &Made, format: &str) -> (Counts, PathBuf) {
    let place = place(name);
    let (path, out) = (place.join("rec"), place.join("out"));
    let counts = make(&path, made);
    let (path, directory) = (path.to_str().unwrap(), out.to_str().unwrap());
    let output = roctop(&["export", path, "-d", directory, "-o", "t", "--format", format]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(!told.contains("text"), "{told}");
    (counts, out)
}

#[test]
fn every_format_says_what_is_not_recorded() {
    const REASON: &str = "7 kernels or more are not recorded: their queue is unknown";
    let place = place("incomplete");
    let path = place.join("rec");
    make(
        &path,
        &Made {
            records: 10,
            incomplete: Some(REASON),
            ..Made::default()
        },
    );
    let out = export_all("incomplete-out", &path);
    let csv = Table::read(&out.join("t_incomplete.csv"));
    assert_eq!(csv.column("Incomplete"), [REASON]);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("t_results.json")).unwrap()).unwrap();
    assert_eq!(json["rocprofiler-sdk-tool"][0]["incomplete"][0], REASON);
    let kineto: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("t_kineto.pt.trace.json")).unwrap()).unwrap();
    assert_eq!(kineto["WARNING"][0], REASON);
    let trace = Trace::read(&std::fs::read(out.join("t_results.pftrace")).unwrap());
    let expected = (trace.process, "INCOMPLETE".to_owned(), vec![REASON.to_owned()]);
    assert_eq!(trace.instants, [expected]);
    let database = rusqlite::Connection::open(out.join("t_results.db")).unwrap();
    let query = "SELECT json_extract(extdata, '$.incomplete[0]') FROM rocpd_info_process";
    let found: String = database.query_row(query, [], |row| row.get(0)).unwrap();
    assert_eq!(found, REASON);
    let files = parquet_files(&out.join("parquet/kind=incomplete"));
    let [file] = &files[..] else { panic!("{files:?}") };
    let reader = SerializedFileReader::new(std::fs::File::open(file).unwrap()).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].get_string(1).unwrap(), REASON);
}

#[test]
fn every_marker_has_its_own_text_however_many_there_are() {
    // More than the screen keeps apart.
    let made = Made {
        records: 810_000,
        marks: true,
        ..Made::default()
    };
    let (counts, out) = written("texts", &made, "csv");
    let markers = std::fs::read_to_string(out.join("t_marker_api_trace.csv")).unwrap();
    let lines = markers.lines().skip(1).filter_map(|line| {
        let (_, rest) = line.split_once(",\"iteration ")?;
        rest.split_once('"')?.0.parse().ok()
    });
    let mut steps: Vec<u64> = lines.collect();
    steps.sort_unstable();
    assert!(steps.len() > 1 << 18, "{}", steps.len());
    assert!(steps.iter().copied().eq(0..steps.len() as u64));
    assert_eq!(markers.lines().count() as u64 - 1, counts.markers);
}

#[test]
fn names_beyond_those_with_numbers_are_in_a_trace_as_they_are() {
    let made = Made {
        records: 200_000,
        marks: true,
        ..Made::default()
    };
    let (_, out) = written("names", &made, "pftrace");
    let trace = Trace::read(&std::fs::read(out.join("t_results.pftrace")).unwrap());
    let named: BTreeSet<&str> = trace.slices.iter().map(|slice| slice.name.as_str()).collect();
    assert!((0..1 << 16).all(|step| named.contains(&*format!("iteration {step}"))));
}

#[test]
fn what_was_measured_belongs_to_its_dispatches() {
    let made = Made {
        records: 60_000,
        counters: 3,
        ..Made::default()
    };
    let (counts, out) = written("measured", &made, "csv,json,parquet");
    let kernels = Table::read(&out.join("t_kernel_trace.csv"));
    let numbers = kernels.numbers("Dispatch_Id").into_iter();
    let ids: BTreeMap<u64, u64> = numbers.zip(kernels.numbers("Correlation_Id")).collect();
    let counted = Table::read(&out.join("t_counter_collection.csv"));
    assert_eq!(counted.rows.len() as u64, counts.values);
    assert_eq!(counts.values, 3 * counts.dispatches);
    let (values, names) = (counted.column("Counter_Value"), counted.column("Counter_Name"));
    let dispatches = counted.numbers("Dispatch_Id").into_iter();
    for (place, (dispatch, id)) in dispatches.zip(counted.numbers("Correlation_Id")).enumerate() {
        let counter = place as u64 % 3;
        assert_eq!(names[place], format!("COUNTER_{counter:02}"));
        assert_eq!(values[place], format!("{}.000000", dispatch * 10 + counter));
        assert_eq!(id, ids[&dispatch]);
    }
    let columns = parquet_files(&out.join("parquet/kind=counter_collection"));
    let columns = SerializedFileReader::new(std::fs::File::open(&columns[0]).unwrap()).unwrap();
    let mut count = 0;
    for (place, row) in columns.get_row_iter(None).unwrap().enumerate() {
        let row = row.unwrap();
        let told = format!("{:.6}", row.get_double(1).unwrap());
        assert_eq!(
            (row.get_string(0).unwrap().as_str(), told.as_str()),
            (names[place], values[place])
        );
        count += 1;
    }
    assert_eq!(count, values.len());
    let samples = Table::read(&out.join("t_pc_sampling_host_trap.csv"));
    let sampled = samples.numbers("Dispatch_Id").into_iter();
    let sampled: BTreeMap<u64, u64> = sampled.zip(samples.numbers("Correlation_Id")).collect();
    assert_eq!(sampled, ids);
    assert!(samples.numbers("Sample_Timestamp").is_sorted());
    let gauges = Table::read(&out.join("t_gauges.csv"));
    assert_eq!(gauges.rows.len() as u64, counts.dispatches);
    let json = std::fs::read(out.join("t_results.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let json = &json["rocprofiler-sdk-tool"][0];
    let places = json["strings"]["pc_sample_comments"].as_array().unwrap();
    assert_eq!(places.len(), 512);
    for sample in json["buffer_records"]["pc_sample_host_trap"].as_array().unwrap() {
        let (offset, place) = (&sample["record"]["pc"]["code_object_offset"], &sample["inst_index"]);
        let told = places[place.as_u64().unwrap() as usize].as_str().unwrap();
        assert_eq!(told, format!("code object 1 + {:#x}", offset.as_u64().unwrap()));
    }
    let series = json["gauges"].as_array().unwrap();
    assert_eq!(
        (series.len(), series[0]["samples"].as_array().unwrap().len() as u64),
        (1, counts.dispatches)
    );
}

#[test]
fn duckdb_reads_ranks_and_hosts_as_one_table() {
    let Some(python) = python("duckdb") else { return };
    let place = place("duckdb");
    for rank in 0..3 {
        let path = place.join(format!("run/rank-{rank}"));
        let made = Made {
            rank,
            pid: 4000 + rank as u32,
            host: ["node7", "node8", "node7"][rank as usize],
            ..Made::default()
        };
        make(&path, &made);
    }
    let run = place.join("run");
    let out = place.join("out");
    let words = [
        "export",
        run.to_str().unwrap(),
        "--format",
        "parquet,csv",
        "-d",
        out.to_str().unwrap(),
    ];
    let output = roctop(&words);
    assert!(output.status.success(), "{output:?}");
    // The queries of docs/recipes.md.
    let script = r"
import duckdb, sys
out = sys.argv[1]
kernels = f'''read_parquet('{out}/parquet/kind=kernel_dispatch/**/*.parquet', hive_partitioning = true)'''
for host, rank, count in duckdb.sql(f'''SELECT host, rank, count(*) FROM {kernels} GROUP BY ALL ORDER BY rank''').fetchall():
    print(host, rank, count)
total = duckdb.sql(f'SELECT count(*), sum(end_ns - start_ns) FROM {kernels}').fetchall()[0]
csv = duckdb.sql(f'''SELECT count(*), sum(End_Timestamp - Start_Timestamp) FROM '{out}/*_kernel_trace.csv' ''').fetchall()[0]
assert total == csv, (total, csv)
worst = duckdb.sql(f'''SELECT kernel, quantile_cont(end_ns - start_ns, 0.99) AS p99 FROM {kernels} GROUP BY kernel ORDER BY p99 DESC''').fetchall()
assert any('gemm' in name for name, _ in worst)
";
    let told = run_python(&python, script, &[out.to_str().unwrap()]);
    let rows: Vec<&str> = told.lines().collect();
    assert_eq!(rows.len(), 3, "{told}");
    assert!(
        rows[0].starts_with("node7 0 ") && rows[1].starts_with("node8 1 "),
        "{told}"
    );
}

#[test]
fn perfettos_own_message_types_read_a_trace() {
    let Some(python) = python("perfetto.protos.perfetto.trace.perfetto_trace_pb2") else {
        return;
    };
    let out = export_all("perfetto", recording());
    let script = r"
import sys, collections
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
trace = pb.Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
BEGIN, COUNTER = pb.TrackEvent.TYPE_SLICE_BEGIN, pb.TrackEvent.TYPE_COUNTER
categories, counters, flows, names, arguments = {}, 0, 0, set(), set()
interned = {'c': {}, 'n': {}, 'a': {}}
tracks = {}
for packet in trace.packet:
    data = packet.interned_data
    for table, entries in (('c', data.event_categories), ('n', data.event_names), ('a', data.debug_annotation_names)):
        for entry in entries:
            interned[table][entry.iid] = entry.name
    if packet.HasField('track_descriptor'):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor
    if packet.HasField('track_event'):
        event = packet.track_event
        if event.type == BEGIN:
            category = interned['c'][event.category_iids[0]]
            categories[category] = categories.get(category, 0) + 1
            flows += len(event.flow_ids) > 0
            if category == 'kernel_dispatch':
                names.add(interned['n'][event.name_iid])
                arguments.update(interned['a'][a.name_iid] for a in event.debug_annotations)
        counters += event.type == COUNTER
assert counters and flows and tracks
assert any('<' in name or '(' in name for name in names), names
for wanted in ('grid_size', 'workgroup_size', 'VGPR_Count', 'SGPR_Count', 'LDS_Block_Size', 'corr_id', 'agent'):
    assert wanted in arguments, (wanted, arguments)
for category, count in sorted(categories.items()):
    print(category, count)
";
    let told = run_python(&python, script, &[out.join("t_results.pftrace").to_str().unwrap()]);
    let counts: BTreeMap<&str, usize> = told
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(category, count)| (category, count.parse().unwrap()))
        .collect();
    let expected: BTreeMap<&str, usize> = of_json(&out).iter().map(|(kind, rows)| (*kind, rows.len())).collect();
    assert_eq!(counts, expected);
}

#[test]
fn a_database_says_of_agents_what_the_document_says_and_sums_up_as_upstream_does() {
    let out = export_all("agents", recording());
    let database = rusqlite::Connection::open(out.join("t_results.db")).unwrap();
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("t_results.json")).unwrap()).unwrap();
    let agents = texts("SELECT extdata FROM rocpd_info_agent ORDER BY id");
    let agents: Vec<serde_json::Value> = agents.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(
        &serde_json::Value::from(agents),
        &json["rocprofiler-sdk-tool"][0]["agents"]
    );
    // The columns of upstream's summary views, and µs.
    let columns = |view: &str| {
        let statement = database.prepare(&format!("SELECT * FROM {view}")).unwrap();
        statement.column_names().collect::<Vec<_>>().join(" ")
    };
    let summed = "name total_calls total_duration average percentage";
    assert_eq!(
        (columns("top"), columns("top_kernels")),
        (summed.to_owned(), summed.to_owned())
    );
    assert_eq!(columns("busy"), "agent_id type GpuTime WallTime Busy");
    let number = |sql: &str| -> f64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
    let kernels = number("SELECT SUM(\"end\" - start) * 1.0 FROM rocpd_kernel_dispatch");
    let copies = number("SELECT SUM(\"end\" - start) * 1.0 FROM rocpd_memory_copy");
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b, "{a} {b}");
    near(number("SELECT SUM(total_duration) FROM top_kernels") * 1000.0, kernels);
    near(number("SELECT SUM(percentage) FROM top"), 100.0);
    near(number("SELECT SUM(GpuTime) * 1.0 FROM busy"), kernels + copies);
}

#[test]
fn pythons_sqlite_reads_rocpd_and_its_own_version_is_told() {
    let Some(python) = python("sqlite3") else { return };
    let out = export_all("sqlite", recording());
    let script = r"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
facts = dict(db.execute('SELECT tag, value FROM rocpd_metadata'))
assert facts['schema_version'] == '3' and facts['uuid'].startswith('_'), facts
views = [row[0] for row in db.execute('''SELECT name FROM sqlite_master WHERE type = 'view' ''')]
for view in views:
    db.execute(f'SELECT * FROM {view} LIMIT 3').fetchall()
tables = [row[0] for row in db.execute('''SELECT name FROM sqlite_master WHERE type = 'table' ''')]
assert all(table.endswith(facts['uuid']) for table in tables), tables
print(len(views))
assert db.execute('PRAGMA integrity_check').fetchone() == ('ok',)
";
    let views: usize = run_python(&python, script, &[out.join("t_results.db").to_str().unwrap()])
        .trim()
        .parse()
        .unwrap();
    assert!(views >= 20 + 20, "{views} views: one a table, and those over them");
}

#[test]
fn a_database_calls_processes_threads_and_agents_by_the_systems_numbers() {
    let out = export_all("ids", recording());
    let database = rusqlite::Connection::open(out.join("t_results.db")).unwrap();
    let count = |sql: &str| -> i64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
    for table in ["region", "kernel_dispatch", "memory_copy", "memory_allocate", "track"] {
        let sql = format!(
            "SELECT COUNT(*) FROM rocpd_{table} R LEFT JOIN rocpd_info_process P ON P.pid = R.pid \
             LEFT JOIN rocpd_info_thread T ON T.tid = R.tid WHERE P.id IS NULL OR T.id IS NULL"
        );
        assert_eq!(count(&sql), 0, "{table}");
    }
    assert_eq!(
        count("SELECT COUNT(*) FROM rocpd_info_agent WHERE id <> absolute_index"),
        0
    );
    assert_eq!(
        count("SELECT COUNT(*) FROM rocpd_info_process WHERE id <> pid OR extdata = '{}'"),
        0
    );
    assert_eq!(
        count("SELECT COUNT(*) FROM kernels WHERE parent_stack_id <> stack_id"),
        0
    );
    let kernels = count("SELECT COUNT(*) FROM kernels");
    assert!(kernels > 0 && kernels == count("SELECT COUNT(*) FROM rocpd_kernel_dispatch"));
    let statement = database.prepare("SELECT * FROM kernels").unwrap();
    let columns: Vec<&str> = statement.column_names().collect();
    assert_eq!(
        columns[columns.len() - 4..],
        ["static_scratch_size", "stack_id", "parent_stack_id", "corr_id"]
    );
}
