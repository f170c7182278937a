//! Parquet files of a job of 1000 ranks: one export and several into a folder are the same table. Readers open it as a folder.

use crate::kit::demo::roctop;
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use crate::kit::python::{python, run_python};
use crate::kit::records::parquet_files;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::record::{Row, RowAccessor};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

const RANKS: u32 = 1000;
const HOSTS: [&str; 8] = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"];
/// Ranks of one of several exports.
const AT_ONCE: usize = 250;

/// The recording of each rank.
fn recordings(place: &Path, ranks: u32) -> Vec<PathBuf> {
    let recording = |rank: u32| {
        let path = place.join(format!("run/rank-{rank:04}"));
        let made = Made {
            records: 120,
            threads: 1,
            pid: 10_000 + rank * 10,
            rank: rank as i32,
            host: HOSTS[rank as usize % HOSTS.len()],
            slowness: 1 + u64::from(rank % 5),
            marks: true,
            ..Made::default()
        };
        make(&path, &made);
        path
    };
    (0..ranks).map(recording).collect()
}

fn try_export(recordings: &[PathBuf], out: &Path, more: &[&str]) -> Output {
    let paths: Vec<&str> = recordings.iter().map(|path| path.to_str().unwrap()).collect();
    let options = ["--format", "parquet", "-d", out.to_str().unwrap()];
    roctop(&[&["export"], &paths[..], &options, more].concat())
}

fn export(recordings: &[PathBuf], out: &Path) {
    let output = try_export(recordings, out, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Folders of one job: of one export, and of several.
fn folders() -> &'static [PathBuf; 2] {
    static FOLDERS: OnceLock<[PathBuf; 2]> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let place = place("ranks");
        let recordings = recordings(&place, RANKS);
        let [whole, parts] = ["whole", "parts"].map(|name| place.join(name));
        export(&recordings, &whole);
        for some in recordings.chunks(AT_ONCE) {
            export(some, &parts);
        }
        [whole, parts]
    })
}

/// Kind and host of a file.
fn parts(path: &Path) -> (String, String) {
    let of = |key: &str| {
        let mut parts = path.components().filter_map(|part| part.as_os_str().to_str());
        parts.find_map(|part| part.strip_prefix(key)).unwrap().to_owned()
    };
    (of("kind="), of("host="))
}

/// Least and greatest value of a column of numbers in a row group.
fn range(group: &RowGroupMetaData, column: usize) -> (i64, i64) {
    match group.column(column).statistics() {
        Some(Statistics::Int64(known)) => (*known.min_opt().unwrap(), *known.max_opt().unwrap()),
        Some(Statistics::Int32(known)) => {
            let [least, greatest] = [known.min_opt(), known.max_opt()].map(|value| i64::from(*value.unwrap()));
            (least, greatest)
        }
        other => panic!("{other:?}"),
    }
}

/// Cells of a row as text, without the rank.
fn cells(row: &Row) -> Vec<String> {
    let own = row.get_column_iter().filter(|(name, _)| *name != "rank");
    own.map(|(name, value)| format!("{name}={value}")).collect()
}

/// Rows by kind, host and rank, and the files and row groups of each kind.
#[derive(Default)]
struct Tables {
    rows: BTreeMap<(String, String, i32), Vec<Vec<String>>>,
    files: BTreeMap<String, usize>,
    groups: BTreeMap<String, usize>,
}

fn read(out: &Path) -> Tables {
    let mut tables = Tables::default();
    for path in parquet_files(&out.join("parquet")) {
        let (kind, host) = parts(&path);
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let metadata = reader.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let place = |name: &str| (0..schema.num_columns()).find(|at| schema.column(*at).name() == name);
        let [rank, end] = ["rank", "end_ns"].map(|name| place(name).unwrap());
        let mut last = (-1, -1);
        for group in metadata.row_groups() {
            let sorting = group.sorting_columns().unwrap();
            let order: Vec<i32> = sorting.iter().map(|column| column.column_idx).collect();
            assert_eq!(order, [rank, end].map(|at| at as i32));
            let (first_end, last_end) = range(group, end);
            let (least, greatest) = range(group, rank);
            assert_eq!(least, greatest, "a row group has one rank");
            assert!((least, first_end) > last, "row groups are sorted");
            last = (least, last_end);
        }
        *tables.files.entry(kind.clone()).or_default() += 1;
        *tables.groups.entry(kind.clone()).or_default() += metadata.num_row_groups();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let key = (kind.clone(), host.clone(), row.get_int(rank).unwrap());
            tables.rows.entry(key).or_default().push(cells(&row));
        }
    }
    tables
}

#[test]
fn the_ranks_of_a_host_share_files() {
    let [whole, parts] = folders().each_ref().map(|out| read(out));
    assert_eq!(
        whole.rows.len(),
        RANKS as usize * 4,
        "calls, kernels, copies and ranges of each rank"
    );
    for (key, rows) in &whole.rows {
        assert_eq!(Some(rows), parts.rows.get(key), "{key:?}");
    }
    assert_eq!(whole.rows.len(), parts.rows.len());
    assert!(
        whole.files.values().all(|files| *files == HOSTS.len()),
        "{:?}",
        whole.files
    );
    let exports = (RANKS as usize).div_ceil(AT_ONCE);
    assert!(parts.files.values().all(|files| *files == HOSTS.len() * exports));
    assert_eq!(whole.groups, parts.groups);
    let left = std::fs::read_dir(folders()[0].join("parquet/kind=hip_api/host=n0")).unwrap();
    assert_eq!(left.count(), 1, "no temporary file");
}

#[test]
fn a_folder_has_a_process_once() {
    let place = place("once");
    let (recordings, out) = (recordings(&place, 24), place.join("out"));
    export(&recordings[..16], &out);
    // It has the names and all processes of the one before.
    export(&recordings, &out);
    let tables = read(&out);
    assert_eq!(tables.rows.len(), 24 * 4);
    let refused = |recordings: &[PathBuf], more: &[&str], why: &str| {
        let output = try_export(recordings, &out, more);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(
            errors.contains(why) && errors.contains("choose another folder"),
            "{errors}"
        );
        assert_eq!(read(&out).rows, tables.rows);
    };
    refused(&recordings[..16], &[], "it also has processes");
    refused(&recordings, &["-o", "other"], "has the same records");
    // What roctop 0.1 wrote.
    std::fs::create_dir(out.join("parquet/kind=hip_api/host=n3/rank=7")).unwrap();
    refused(&recordings, &[], "rank=7 has the same records");
}

/// With and without MPI, and both together, with each reader that is there.
#[test]
fn readers_open_a_folder_with_ranks_and_without() {
    let Some(python) = python("pyarrow.dataset") else {
        return;
    };
    let place = place("folders");
    let run = |name: &str, rank: i32, pid: u32| {
        let path = place.join(name);
        let made = Made {
            pid,
            rank,
            ..Made::default()
        };
        make(&path, &made);
        path
    };
    let (alone, ranked) = (run("alone", -1, 4000), run("ranked", 3, 5000));
    for (out, of) in [("n", &[&alone][..]), ("r", &[&ranked]), ("both", &[&alone, &ranked])] {
        for recording in of {
            export(std::slice::from_ref(recording), &place.join(out));
        }
    }
    let script = r"
import importlib.util, sys
def of_pyarrow(folder):
    import pyarrow.dataset as ds
    return ds.dataset(folder, partitioning='hive').to_table()
def of_pandas(folder):
    import pandas, pyarrow
    return pyarrow.Table.from_pandas(pandas.read_parquet(folder))
def of_dask(folder):
    import dask.dataframe, pyarrow
    return pyarrow.Table.from_pandas(dask.dataframe.read_parquet(folder).compute())
def of_polars(folder):
    import polars
    return polars.scan_parquet(folder, hive_partitioning=True).collect().to_arrow()
def of_duckdb(folder):
    import duckdb
    table = duckdb.sql(f'''SELECT * FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = true)''').arrow()
    return table if hasattr(table, 'num_rows') else table.read_all()
def of_pyspark(folder):
    import pyarrow, pyspark.sql
    rows = pyspark.sql.SparkSession.builder.getOrCreate().read.parquet(folder).select('rank', 'host').collect()
    return pyarrow.Table.from_pylist([row.asDict() for row in rows])
for reader in ('pyarrow', 'pandas', 'dask', 'polars', 'duckdb', 'pyspark'):
    if importlib.util.find_spec(reader) is None:
        continue
    counts = {}
    for folder in ('n', 'r', 'both'):
        for kind in ('kernel_dispatch', 'hip_api'):
            table = globals()['of_' + reader](f'{sys.argv[1]}/{folder}/parquet/kind={kind}')
            ranks = set(table.column('rank').to_pylist())
            # An integer column with nulls is one of floating-point numbers in pandas.
            known = {rank for rank in ranks if rank is not None and rank == rank}
            assert known == (set() if folder == 'n' else {3}), (reader, folder, known)
            assert None not in set(table.column('host').to_pylist()), reader
            counts[folder, kind] = table.num_rows
    for kind in ('kernel_dispatch', 'hip_api'):
        assert counts['both', kind] == counts['n', kind] + counts['r', kind] > 0, (reader, counts)
    print(reader, 'ok')
";
    let told = run_python(&python, script, &[place.to_str().unwrap()]);
    assert!(told.contains("pyarrow ok"), "{told}");
}

/// Code blocks of a language in the recipes.
fn documented(language: &str) -> Vec<String> {
    let text = include_str!("../../../docs/recipes.md");
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    blocks
        .map(|block| block.split_once("```").unwrap().0.to_owned())
        .collect()
}

/// Runs a script that prints results, on both folders.
fn on_both(python: &str, script: &str) -> [String; 2] {
    folders()
        .each_ref()
        .map(|out| run_python(python, script, &[out.to_str().unwrap()]))
}

#[test]
fn documented_queries_of_duckdb_give_the_same_on_both_folders() {
    let Some(python) = python("duckdb") else { return };
    let queries = documented("sql").concat();
    let queries: Vec<&str> = queries
        .split(';')
        .map(str::trim)
        .filter(|query| !query.is_empty())
        .collect();
    assert!(queries.len() >= 3);
    let queries = serde_json::to_string(&queries).unwrap();
    let script = format!(
        r"
import duckdb, json, sys
for query in json.loads({queries:?}):
    query = query.replace('out/', sys.argv[1] + '/')
    print(sorted(repr(row) for row in duckdb.sql(query).fetchall()))
for kind in ('hip_api', 'kernel_dispatch', 'memory_copy', 'marker_api'):
    table = f'''read_parquet('{{sys.argv[1]}}/parquet/kind={{kind}}/**/*.parquet', hive_partitioning = true)'''
    columns = duckdb.sql(f'DESCRIBE SELECT * FROM {{table}}').fetchall()
    print(kind, sorted((name, type) for name, type, *_ in columns))
    print(duckdb.sql(f'SELECT count(*), count(DISTINCT rank), min(rank), max(rank) FROM {{table}}').fetchall())
"
    );
    let [whole, parts] = on_both(&python, &script);
    assert_eq!(whole, parts);
    assert!(whole.contains("('rank', 'INTEGER')"), "{whole}");
    assert!(whole.contains(&format!(", {RANKS}, 0, {})]", RANKS - 1)), "{whole}");
}

#[test]
fn documented_queries_of_polars_give_the_same_on_both_folders() {
    let Some(python) = python("polars") else { return };
    let blocks: Vec<String> = documented("python")
        .into_iter()
        .filter(|block| block.contains("polars"))
        .collect();
    assert!(!blocks.is_empty());
    let blocks = serde_json::to_string(&blocks).unwrap();
    let script = format!(
        r"
import json, sys
import polars
for block in json.loads({blocks:?}):
    known = {{}}
    exec(block.replace('out/', sys.argv[1] + '/'), known)
    for name, value in sorted(known.items()):
        if isinstance(value, polars.DataFrame):
            columns = sorted(value.columns)
            print(name, [(column, str(value.schema[column])) for column in columns])
            print(value.select(columns).rows())
"
    );
    let [whole, parts] = on_both(&python, &script);
    assert_eq!(whole, parts);
    assert!(whole.contains("('rank', 'Int32')"), "{whole}");
    assert!(whole.lines().count() >= 4, "{whole}");
}
