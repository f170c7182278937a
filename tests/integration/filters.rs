//! A filter selects the same records on every surface: in `summary`, in answers, in exported files, and by SQL on all records.

use crate::kit::demo::{export, recording, roctop};
use crate::kit::table::Table;
use roctop::model::ask::{Cell, Question};
use roctop::model::{Fresh, Mode, Options, Snapshot, Store};
use roctop::recording::Recording;
use roctop::ui::ask::{Source, answer};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Kinds of records: the name, the exported file, the total of `summary`, the question and its column, and the view of SQL.
const KINDS: [(&str, &str, &str, &str, &str, &str); 5] = [
    (
        "kernels",
        "kernel_trace.csv",
        "dispatches",
        "kernels",
        "Calls",
        "kernels",
    ),
    (
        "copies",
        "memory_copy_trace.csv",
        "copies",
        "copies",
        "Count",
        "memory_copies",
    ),
    (
        "calls",
        "hip_api_trace.csv",
        "api_calls",
        "calls",
        "Calls",
        "(SELECT * FROM regions WHERE category LIKE 'HIP_%')",
    ),
    (
        "markers",
        "marker_api_trace.csv",
        "markers",
        "markers",
        "Count",
        "(SELECT *, json_extract(extdata, '$.message') AS text FROM regions_and_samples \
         WHERE category = 'MARKER_CORE_RANGE_API')",
    ),
    (
        "allocations",
        "memory_allocation_trace.csv",
        "",
        "",
        "",
        "memory_allocations",
    ),
];

const ALL: &str = "1";
const NONE: &str = "0";
/// Not in the columns of SQL: the surfaces are compared with each other alone.
const OTHER: &str = "";

/// Filters, and what they select of each kind as a condition of SQL.
const CASES: &[(&str, [&str; 5])] = &[
    // Names.
    ("h2d", [NONE, "name LIKE '%HOST_TO_DEVICE'", NONE, NONE, NONE]),
    ("name~H2D", [NONE, "name LIKE '%HOST_TO_DEVICE'", NONE, NONE, NONE]),
    ("sdma", [NONE, ALL, NONE, NONE, NONE]),
    (
        "GPU1",
        [
            NONE,
            "src_agent_type_index + dst_agent_type_index = 1 AND NOT (src_agent_type = 'CPU' AND dst_agent_type_index = 0)",
            NONE,
            NONE,
            NONE,
        ],
    ),
    (
        "MEMORY_COPY_DEVICE_TO_HOST",
        [NONE, "name LIKE '%DEVICE_TO_HOST'", NONE, NONE, NONE],
    ),
    ("memory_copy", [NONE, ALL, NONE, NONE, NONE]),
    ("Cijk", ["name LIKE 'Cijk%'", NONE, NONE, NONE, NONE]),
    ("!Cijk", ["name NOT LIKE 'Cijk%'", ALL, ALL, ALL, ALL]),
    (
        "/fmha|gelu/",
        ["name LIKE '%fmha%' OR name LIKE '%gelu%'", NONE, NONE, NONE, NONE],
    ),
    ("~^hip", [NONE, NONE, "name LIKE 'hip%'", NONE, NONE]),
    (
        "name=hipMalloc,hipFree",
        [NONE, NONE, "name IN ('hipMalloc', 'hipFree')", NONE, NONE],
    ),
    ("forward", [NONE, NONE, NONE, "text = 'forward'", NONE]),
    ("~^step", [NONE, NONE, NONE, "text LIKE 'step%'", NONE]),
    ("\"step 3\"", [NONE, NONE, NONE, "text LIKE 'step 3%'", NONE]),
    ("mangled~Z14layer", ["name LIKE '%layer_norm_fwd%'", ALL, ALL, ALL, ALL]),
    // Places and owners.
    (
        "dev=0",
        [
            "agent_type_index = 0",
            "CASE dst_agent_type WHEN 'GPU' THEN dst_agent_type_index ELSE src_agent_type_index END = 0",
            ALL,
            ALL,
            "agent_type_index = 0",
        ],
    ),
    ("dev=7", [NONE, NONE, ALL, ALL, NONE]),
    ("dev!=7 h2d", [NONE, "name LIKE '%HOST_TO_DEVICE'", NONE, NONE, NONE]),
    (
        "stream=1,3",
        ["stream_id IN (1, 3)", "stream_id IN (1, 3)", ALL, ALL, ALL],
    ),
    ("queue!=1", ["queue_id != 1", ALL, ALL, ALL, ALL]),
    (
        "thread~trainer",
        [OF_TRAINER, OF_TRAINER, OF_TRAINER, OF_TRAINER, OF_TRAINER],
    ),
    ("tid={loader}", [OF_LOADER, OF_LOADER, OF_LOADER, OF_LOADER, OF_LOADER]),
    ("pid={pid}", [ALL, ALL, ALL, ALL, ALL]),
    ("pid=1", [NONE, NONE, NONE, NONE, NONE]),
    ("rank=0", [ALL, ALL, ALL, ALL, ALL]),
    ("site~nothing", [ALL, ALL, ALL, ALL, ALL]),
    // Of each record.
    (
        "dur>100us",
        [
            "duration > 100000",
            "duration > 100000",
            "duration > 100000",
            "duration > 100000",
            "duration > 100000",
        ],
    ),
    ("dur=1ms..2ms", [MIDDLE, MIDDLE, MIDDLE, MIDDLE, MIDDLE]),
    (
        "!(dur>60us)",
        [
            "duration <= 60000",
            "duration <= 60000",
            "duration <= 60000",
            "duration <= 60000",
            "duration <= 60000",
        ],
    ),
    ("qdly>200us", [OTHER, OTHER, ALL, ALL, ALL]),
    ("bytes>4MB", [ALL, "size > 4000000", ALL, ALL, OTHER]),
    (
        "bytes<=4MiB dir=d2d",
        [
            ALL,
            "size <= 4194304 AND name LIKE '%DEVICE_TO_DEVICE'",
            ALL,
            ALL,
            OTHER,
        ],
    ),
    ("bw>30GB/s", [ALL, "size > 30 * duration", ALL, ALL, ALL]),
    ("dir=h2d", [ALL, "name LIKE '%HOST_TO_DEVICE'", ALL, ALL, ALL]),
    ("dir!=d2d,d2h", [ALL, "name LIKE '%HOST_TO_DEVICE'", ALL, ALL, ALL]),
    ("engine=sdma", [ALL, ALL, ALL, ALL, ALL]),
    ("engine=blit", [ALL, NONE, ALL, ALL, ALL]),
    ("domain=hip", [ALL, ALL, ALL, NONE, NONE]),
    ("domain=marker", [ALL, ALL, NONE, ALL, NONE]),
    ("err>0", [ALL, ALL, NONE, ALL, ALL]),
    ("err=0", [ALL, ALL, ALL, ALL, ALL]),
    ("vgpr>100", ["vgpr_count + accum_vgpr_count > 100", ALL, ALL, ALL, ALL]),
    ("lds>0", [OTHER, ALL, ALL, ALL, ALL]),
    ("grid>100k", ["grid_x * grid_y * grid_z > 100000", ALL, ALL, ALL, ALL]),
    (
        "wg=256",
        ["workgroup_x * workgroup_y * workgroup_z = 256", ALL, ALL, ALL, ALL],
    ),
    // Of the whole row.
    (
        "calls>30",
        [
            "name IN (SELECT name FROM kernels GROUP BY name HAVING count(*) > 30)",
            "(SELECT count(*) FROM memory_copies M WHERE (M.name, M.src_agent_abs_index, M.dst_agent_abs_index) \
         = (own.name, own.src_agent_abs_index, own.dst_agent_abs_index)) > 30",
            "name IN (SELECT name FROM regions WHERE category LIKE 'HIP_%' GROUP BY name HAVING count(*) > 30)",
            OTHER,
            ALL,
        ],
    ),
    (
        "total>100ms",
        [
            "name IN (SELECT name FROM kernels GROUP BY name HAVING sum(duration) > 100000000)",
            OTHER,
            "name IN (SELECT name FROM regions WHERE category LIKE 'HIP_%' GROUP BY name HAVING sum(duration) > 100000000)",
            OTHER,
            ALL,
        ],
    ),
    (
        "total>20%",
        [
            "name IN (SELECT name FROM kernels GROUP BY name HAVING sum(duration) > 0.2 * (SELECT sum(duration) FROM kernels))",
            ALL,
            OTHER,
            ALL,
            ALL,
        ],
    ),
    (
        "max>1500us",
        [
            "name IN (SELECT name FROM kernels GROUP BY name HAVING max(duration) > 1500000)",
            OTHER,
            "name IN (SELECT name FROM regions WHERE category LIKE 'HIP_%' GROUP BY name HAVING max(duration) > 1500000)",
            OTHER,
            ALL,
        ],
    ),
    (
        "min>100us dur<600us",
        [
            "duration < 600000 AND name IN (SELECT name FROM kernels GROUP BY name HAVING min(duration) > 100000)",
            OTHER,
            "duration < 600000 AND name IN \
         (SELECT name FROM regions WHERE category LIKE 'HIP_%' GROUP BY name HAVING min(duration) > 100000)",
            OTHER,
            "duration < 600000",
        ],
    ),
    ("SQ_WAVES>1", [NONE, ALL, ALL, ALL, ALL]),
    // Together.
    (
        "(softmax | Cijk) dur>560us",
        [
            "(name LIKE '%softmax%' OR name LIKE 'Cijk%') AND duration > 560000",
            NONE,
            NONE,
            NONE,
            NONE,
        ],
    ),
    (
        "Cijk | dir=d2h",
        ["name LIKE 'Cijk%'", "name LIKE '%DEVICE_TO_HOST'", NONE, NONE, NONE],
    ),
    (
        "h2d | hipMalloc | /step/",
        [
            "name LIKE '%step%'",
            "name LIKE '%HOST_TO_DEVICE'",
            "name LIKE '%hipMalloc%'",
            "text LIKE '%step%'",
            NONE,
        ],
    ),
];

const OF_TRAINER: &str = "tid IN (SELECT tid FROM threads WHERE name = 'trainer')";
const OF_LOADER: &str = "tid IN (SELECT tid FROM threads WHERE name = 'loader')";
const MIDDLE: &str = "duration BETWEEN 1000000 AND 2000000";

/// What each surface counts, by kind.
type Counts = BTreeMap<&'static str, u64>;

fn of_summary(filter: &str) -> Counts {
    let path = recording().to_str().unwrap();
    let output = roctop(&["summary", path, "--filter", filter, "--format", "json"]);
    assert!(output.status.success(), "{filter}: {output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let known = KINDS.iter().filter(|kind| !kind.2.is_empty());
    known
        .map(|kind| (kind.0, json["totals"][kind.2].as_u64().unwrap()))
        .collect()
}

fn of_files(filter: &str, number: usize) -> Counts {
    let files: BTreeMap<String, PathBuf> =
        export(&format!("filters-{number}"), &["--format", "csv", "--filter", filter]);
    let rows = |file: &str| files.get(file).map_or(0, |path| Table::read(path).rows.len() as u64);
    KINDS.iter().map(|kind| (kind.0, rows(kind.1))).collect()
}

fn of_answers(filter: &str, snap: &Arc<Snapshot>) -> Counts {
    let known = KINDS.iter().filter(|kind| !kind.3.is_empty());
    let count = |list: &str, column: &str| {
        let question = Question::parse(&format!("top {list} where {filter} limit 1000"), &[]).unwrap();
        let mut source = Source {
            snap,
            most: 1 << 21,
            reread: None,
        };
        let answer = answer(&question, &mut source).unwrap();
        // Rows that belong to what the filter names are not what it names.
        if answer.notes.iter().any(|note| note.contains("the rows are related")) {
            return 0;
        }
        let at = answer.columns.iter().position(|known| known.name == column).unwrap();
        let cells = answer.rows.iter().map(|row| match row.cells[at] {
            Cell::Number(number) => number as u64,
            _ => 0,
        });
        cells.sum()
    };
    known.map(|kind| (kind.0, count(kind.3, kind.4))).collect()
}

/// What a condition selects of all records.
fn of_sql(database: &Connection, view: &str, condition: &str) -> u64 {
    let sql = format!("SELECT count(*) FROM {view} AS own WHERE {condition}");
    let count = database.query_row(&sql, [], |row| row.get::<_, i64>(0));
    count.unwrap_or_else(|error| panic!("{sql}: {error}")) as u64
}

#[test]
fn a_filter_selects_the_same_on_every_surface() {
    let files = export("filters", &["--format", "rocpd"]);
    let database = Connection::open(&files["results.db"]).unwrap();
    let number = |sql: &str| {
        database
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
            .to_string()
    };
    let loader = number("SELECT tid FROM threads WHERE name = 'loader'");
    let pid = number("SELECT pid FROM processes");
    let mut store = Store::new(Options {
        mode: Mode::Replay,
        ..Options::default()
    });
    let all = Recording::open(recording()).unwrap();
    all.items(&mut |items| store.apply_all(&items)).unwrap();
    let snap = store.snapshot(Fresh::All);
    let (mut compared, mut wrong) = (0, Vec::new());
    for (at, (filter, conditions)) in CASES.iter().enumerate() {
        let filter = filter.replace("{loader}", &loader).replace("{pid}", &pid);
        let surfaces = [
            ("summary", of_summary(&filter)),
            ("export", of_files(&filter, at)),
            ("ask", of_answers(&filter, &snap)),
        ];
        for (kind, condition) in KINDS.iter().zip(conditions) {
            let expected = if *condition == OTHER {
                surfaces[1].1[kind.0]
            } else {
                of_sql(&database, kind.5, condition)
            };
            for (surface, counts) in &surfaces {
                let Some(&found) = counts.get(kind.0) else { continue };
                // A list of markers shows whole rows.
                let is_same = if (*surface, kind.0) == ("ask", "markers") {
                    (found == 0) == (expected == 0) && found >= expected
                } else {
                    found == expected
                };
                compared += 1;
                if !is_same {
                    wrong.push(format!("{filter}: {surface} has {found} {}, not {expected}", kind.0));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared >= 600, "{compared}");
}
