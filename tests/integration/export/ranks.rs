//! Parquet files of a job of 1000 ranks: those that ranks share, and those of one rank each, are the same table.

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
/// Number of ranks that do not share files yet.
const MOST_SEPARATE: usize = 63;

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

fn try_export(recordings: &[PathBuf], out: &Path) -> Output {
    let paths: Vec<&str> = recordings.iter().map(|path| path.to_str().unwrap()).collect();
    let options = ["--format", "parquet", "-d", out.to_str().unwrap()];
    roctop(&[&["export"], &paths[..], &options].concat())
}

fn export(recordings: &[PathBuf], out: &Path) {
    let output = try_export(recordings, out);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Folders of both layouts of one job: shared files, and files of one rank.
fn layouts() -> &'static [PathBuf; 2] {
    static LAYOUTS: OnceLock<[PathBuf; 2]> = OnceLock::new();
    LAYOUTS.get_or_init(|| {
        let place = place("ranks");
        let recordings = recordings(&place, RANKS);
        let [shared, separate] = ["shared", "separate"].map(|name| place.join(name));
        export(&recordings, &shared);
        for some in recordings.chunks(MOST_SEPARATE) {
            export(some, &separate);
        }
        [shared, separate]
    })
}

/// Kind, host and, if it has a folder, rank of a file.
fn parts(path: &Path) -> (String, String, Option<i64>) {
    let of = |key: &str| {
        let parts = path.components().filter_map(|part| part.as_os_str().to_str());
        parts
            .filter_map(|part| part.strip_prefix(key))
            .next_back()
            .map(str::to_owned)
    };
    let rank = of("rank=").map(|rank| rank.parse().unwrap());
    (of("kind=").unwrap(), of("host=").unwrap(), rank)
}

/// Least and greatest value of a column of numbers in a row group.
fn range(group: &RowGroupMetaData, column: usize) -> (i64, i64) {
    match group.column(column).statistics() {
        Some(Statistics::Int64(known)) => (*known.min_opt().unwrap(), *known.max_opt().unwrap()),
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
    rows: BTreeMap<(String, String, i64), Vec<Vec<String>>>,
    files: BTreeMap<String, usize>,
    groups: BTreeMap<String, usize>,
}

fn read(out: &Path) -> Tables {
    let mut tables = Tables::default();
    for path in parquet_files(&out.join("parquet")) {
        let (kind, host, rank) = parts(&path);
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let metadata = reader.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let place = |name: &str| (0..schema.num_columns()).find(|at| schema.column(*at).name() == name);
        let end = place("end_ns").unwrap();
        let own_rank = place("rank");
        assert_eq!(own_rank.is_some(), rank.is_none(), "{}", path.display());
        let mut last = (-1, -1);
        for group in metadata.row_groups() {
            let sorting = group.sorting_columns().unwrap();
            let order: Vec<i32> = sorting.iter().map(|column| column.column_idx).collect();
            let expected = own_rank.into_iter().chain([end]);
            assert_eq!(order, expected.map(|at| at as i32).collect::<Vec<_>>());
            let (first_end, last_end) = range(group, end);
            if let Some(at) = own_rank {
                let (least, greatest) = range(group, at);
                assert_eq!(least, greatest, "a row group has one rank");
                assert!((least, first_end) > last, "row groups are sorted");
                last = (least, last_end);
            }
        }
        *tables.files.entry(kind.clone()).or_default() += 1;
        *tables.groups.entry(kind.clone()).or_default() += metadata.num_row_groups();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let rank = rank.unwrap_or_else(|| row.get_long(own_rank.unwrap()).unwrap());
            let key = (kind.clone(), host.clone(), rank);
            tables.rows.entry(key).or_default().push(cells(&row));
        }
    }
    tables
}

#[test]
fn from_64_ranks_on_the_ranks_of_a_host_share_files() {
    let [shared, separate] = layouts().each_ref().map(|out| read(out));
    assert_eq!(
        shared.rows.len(),
        RANKS as usize * 4,
        "calls, kernels, copies and ranges of each rank"
    );
    for (key, rows) in &shared.rows {
        assert_eq!(Some(rows), separate.rows.get(key), "{key:?}");
    }
    assert_eq!(shared.rows.len(), separate.rows.len());
    assert!(
        shared.files.values().all(|files| *files == HOSTS.len()),
        "{:?}",
        shared.files
    );
    assert!(separate.files.values().all(|files| *files == RANKS as usize));
    assert_eq!(shared.groups, separate.groups);
    let left = std::fs::read_dir(layouts()[0].join("parquet/kind=hip_api/host=n0")).unwrap();
    assert_eq!(left.count(), 1, "no temporary file");
}

#[test]
fn a_folder_has_one_layout() {
    let place = place("one-layout");
    let (recordings, out) = (recordings(&place, 64), place.join("out"));
    export(&recordings[..MOST_SEPARATE], &out);
    export(&recordings, &out);
    let tables = read(&out);
    assert_eq!(tables.rows.len(), 64 * 4);
    assert!(
        parquet_files(&out.join("parquet"))
            .iter()
            .all(|path| parts(path).2.is_none())
    );
    // The shared files have a rank that this export has not.
    let output = try_export(&recordings[..MOST_SEPARATE], &out);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("choose another folder"), "{errors}");
    assert_eq!(read(&out).rows, tables.rows);
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

/// Runs a script that prints results, on both layouts.
fn on_both(python: &str, script: &str) -> [String; 2] {
    layouts()
        .each_ref()
        .map(|out| run_python(python, script, &[out.to_str().unwrap()]))
}

#[test]
fn documented_queries_of_duckdb_give_the_same_on_both_layouts() {
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
    let [shared, separate] = on_both(&python, &script);
    assert_eq!(shared, separate);
    assert!(shared.contains("('rank', 'BIGINT')"), "{shared}");
    assert!(shared.contains(&format!(", {RANKS}, 0, {})]", RANKS - 1)), "{shared}");
}

#[test]
fn documented_queries_of_polars_give_the_same_on_both_layouts() {
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
    let [shared, separate] = on_both(&python, &script);
    assert_eq!(shared, separate);
    assert!(shared.contains("('rank', 'Int64')"), "{shared}");
    assert!(shared.lines().count() >= 4, "{shared}");
}
