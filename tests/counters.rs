//! Hardware counters end to end: asked for on the command line, counted by the collector through the stand-in for
//! rocprofiler-sdk, recorded, and written to every file format with their exact values.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "counters/list.rs"]
mod list;
#[path = "counters/rocprofv3.rs"]
mod rocprofv3;
#[path = "counters/sampling.rs"]
mod sampling;
#[path = "export/schema.rs"]
mod schema;
#[path = "export/table.rs"]
mod table;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use roctop::model::{Fresh, Mode, Options, Store};
use roctop::recording::Recording;
use roctop::ui::key::Key;
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::{Msg, Ui, update, view};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use table::Table;

/// A directory with the stand-in and a program that uses it.
struct Rig(PathBuf);

impl Rig {
    fn new(name: &str) -> Option<Self> {
        let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("counters-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place).unwrap();
        let compiled = ["stand_in_sdk", "counted"].iter().all(|program| {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("preload/tests/c/{program}.c"));
            let mut command = Command::new("cc");
            if *program == "stand_in_sdk" {
                command.args(["-shared", "-fPIC"]);
            }
            command.arg("-o").arg(place.join(program)).arg(source).arg("-ldl");
            command.status().is_ok_and(|status| status.success())
        });
        if !compiled {
            eprintln!("skipped: needs a C compiler");
            return None;
        }
        Some(Self(place))
    }

    fn roctop(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
        command
            .args(words)
            .env("ROCTOP_SDK", self.0.join("stand_in_sdk"))
            .current_dir(&self.0)
            .stdin(Stdio::null());
        command
    }

    fn works(&self, words: &[&str]) -> String {
        let output = self.roctop(words);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {told}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn fails(&self, words: &[&str]) -> String {
        let output = self.roctop(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn table(&self, name: &str) -> Table {
        Table::read(&self.0.join(name))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const COUNTED: &str = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp";
const SEED_COUNTED: &str = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value";

/// Values in rocpd's own view of them.
fn check_database(path: &Path) {
    let database = rusqlite::Connection::open(path).unwrap();
    let mut found = database
        .prepare("SELECT dispatch_id, counter_name, value, block FROM counters_collection ORDER BY dispatch_id, counter_name")
        .unwrap();
    let found = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    let found: Vec<(i64, String, f64, String)> = found.unwrap().map(Result::unwrap).collect();
    let told: Vec<(i64, &str, f64)> = found.iter().map(|row| (row.0, &*row.1, row.2)).collect();
    assert_eq!(
        told,
        [
            (1, "GRBM_COUNT", 5000.0),
            (1, "SQ_WAVES", 1024.0),
            (2, "GRBM_COUNT", 5000.0),
            (2, "SQ_WAVES", 2.0),
            (3, "GRBM_COUNT", 5000.0),
            (3, "SQ_WAVES", 1024.0)
        ]
    );
    assert_eq!(found[1].3, "SQ");
}

#[test]
fn every_format_holds_the_exact_values() {
    let Some(rig) = Rig::new("formats") else { return };
    rig.works(&[
        "record",
        "-o",
        "rec",
        "--pmc",
        "SQ_WAVES,GRBM_COUNT",
        "./counted",
        "load",
        "scale",
        "plain",
        "scale",
    ]);
    rig.works(&[
        "export",
        "rec",
        "--format",
        "csv,json,pftrace,rocpd",
        "-o",
        "new",
        "--wide-counters",
    ]);
    let rows = rig.table("new_counter_collection.csv");
    assert_eq!(rows.header.join(","), COUNTED);
    let names = rows.column("Counter_Name");
    assert_eq!(
        names,
        [
            "GRBM_COUNT",
            "SQ_WAVES",
            "GRBM_COUNT",
            "SQ_WAVES",
            "GRBM_COUNT",
            "SQ_WAVES"
        ]
    );
    let values = rows.column("Counter_Value");
    assert_eq!(
        values,
        [
            "5000.000000",
            "1024.000000",
            "5000.000000",
            "2.000000",
            "5000.000000",
            "1024.000000"
        ]
    );
    assert_eq!(rows.column("Kernel_Name")[0], "scale(float*, int)");
    assert_eq!(rows.column("Agent_Id")[0], "Agent 1");
    for (column, value) in [
        ("Grid_Size", "65536"),
        ("Workgroup_Size", "256"),
        ("VGPR_Count", "8"),
        ("SGPR_Count", "16"),
    ] {
        assert_eq!(rows.column(column)[0], value, "{column}");
    }
    let wide = rig.table("new_counter_collection_wide.csv");
    assert_eq!(wide.header[wide.header.len() - 2..], ["GRBM_COUNT", "SQ_WAVES"]);
    assert_eq!(wide.column("SQ_WAVES"), ["1024.000000", "2.000000", "1024.000000"]);
    assert_eq!(wide.numbers("Dispatch_Id"), [1, 2, 3]);
    let json: Value = serde_json::from_slice(&std::fs::read(rig.0.join("new_results.json")).unwrap()).unwrap();
    assert_eq!(schema::faults(schema::NEW, &json), Vec::<String>::new());
    let tool = &json["rocprofiler-sdk-tool"][0];
    let counters = tool["counters"].as_array().unwrap();
    let waves = counters.iter().find(|one| one["name"] == "SQ_WAVES").unwrap();
    assert_eq!((&waves["block"], &waves["is_derived"]), (&"SQ".into(), &0.into()));
    assert_eq!(waves["dimensions"][1]["name"], "DIMENSION_SHADER_ENGINE");
    let records = tool["callback_records"]["counter_collection"].as_array().unwrap();
    assert_eq!(records.len(), 3);
    let sum_of = |record: &Value| -> f64 {
        let own = record["records"].as_array().unwrap().iter();
        let own = own.filter(|one| one["counter_id"] == waves["id"]);
        own.map(|one| one["value"].as_f64().unwrap()).sum()
    };
    assert_eq!(
        records.iter().map(|record| sum_of(record) as u64).collect::<Vec<_>>(),
        [1024, 2, 1024]
    );
    assert_eq!(records[1]["dispatch_data"]["dispatch_info"]["grid_size"]["x"], 100);
    let trace = std::fs::read(rig.0.join("new_results.pftrace")).unwrap();
    let holds = |text: &str| trace.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("Agent [1] PMC SQ_WAVES") && holds("Agent [1] PMC GRBM_COUNT"));
    // The name of an annotation of a slice: an interned text of its own.
    assert!(holds("\u{12}\u{8}SQ_WAVES"), "kernels tell their counters");
    check_database(&rig.0.join("new_results.db"));
    rig.works(&[
        "export", "rec", "-o", "seed", "--layout", "seed", "--format", "csv,json",
    ]);
    let json: Value = serde_json::from_slice(&std::fs::read(rig.0.join("seed_results.json")).unwrap()).unwrap();
    assert_eq!(schema::faults(schema::SEED, &json), Vec::<String>::new());
    // What was filtered away leaves no file behind.
    rig.works(&["export", "rec", "-o", "few", "--filter", "plain"]);
    assert_eq!(rig.table("few_counter_collection.csv").rows.len(), 2);
    rig.works(&["export", "rec", "-o", "late", "--range", "1h..2h"]);
    assert!(!rig.0.join("late_counter_collection.csv").exists());
    let seed = rig.table("seed_counter_collection.csv");
    assert_eq!(seed.header.join(","), SEED_COUNTED);
    assert_eq!(seed.column("Agent_Id")[0], "1");
    assert_eq!(seed.column("Counter_Value")[..2], ["5000", "1024"]);
}

#[test]
fn what_does_not_fit_at_once_takes_several_runs() {
    let Some(rig) = Rig::new("passes") else { return };
    let output = rig.roctop(&[
        "record",
        "-o",
        "rec",
        "--pmc",
        "SQ_WAVES GRBM_COUNT TCC_HIT L2CacheHit",
        "./counted",
        "load",
        "scale",
    ]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("pass 1 of 2: SQ_WAVES GRBM_COUNT"), "{told}");
    assert!(told.contains("pass 2 of 2: TCC_HIT L2CacheHit"), "{told}");
    for (pass, counters) in [(1, ["GRBM_COUNT", "SQ_WAVES"]), (2, ["L2CacheHit", "TCC_HIT"])] {
        rig.works(&["export", &format!("rec/pass_{pass}"), "-o", &format!("p{pass}")]);
        let rows = rig.table(&format!("p{pass}_counter_collection.csv"));
        assert_eq!(rows.column("Counter_Name"), counters);
    }
    // The passes are put together by kernel.
    let merged: Value = serde_json::from_str(&rig.works(&["counters", "--format", "json", "--of", "rec"])).unwrap();
    assert_eq!(merged.as_array().unwrap().len(), 1);
    assert_eq!(merged[0]["kernel"], "scale(float*, int)");
    for (counter, value) in [
        ("SQ_WAVES", 1024.0),
        ("GRBM_COUNT", 5000.0),
        ("TCC_HIT", 136.0),
        ("L2CacheHit", 75.0),
    ] {
        let found = &merged[0]["counters"][counter];
        assert_eq!(
            (found["values"].as_u64(), found["average"].as_f64()),
            (Some(1), Some(value)),
            "{counter}"
        );
    }
    let table = rig.works(&["counters", "--format", "csv", "--of", "rec"]);
    assert!(
        table.contains("\"scale(float*, int)\",\"SQ_WAVES\",1,1024,1024,1024\n"),
        "{table}"
    );
}

#[test]
fn counters_are_columns_on_screen_that_sort_and_filter() {
    let Some(rig) = Rig::new("screen") else { return };
    rig.works(&[
        "record",
        "-o",
        "rec",
        "--pmc",
        "SQ_WAVES",
        "./counted",
        "load",
        "scale",
        "plain",
        "scale",
    ]);
    let mut store = Store::new(Options {
        mode: Mode::Replay,
        ..Options::default()
    });
    let recording = Recording::open(&rig.0.join("rec")).unwrap();
    recording.items(&mut |items| store.apply_all(&items)).unwrap();
    let snap = store.snapshot(Fresh::All);
    let mut ui = Ui::new(snap.mode);
    update(&mut ui, &snap, Msg::Resize(160, 40));
    let theme = Theme::named("dark", Depth::C256).unwrap();
    let mut shown = |keys: &str| -> String {
        for key in keys.chars() {
            let key = if key == '\n' { Key::Enter } else { Key::Char(key) };
            update(&mut ui, &snap, Msg::Key(key));
        }
        let mut buffer = Buffer::empty(Rect::new(0, 0, 160, 40));
        view(&ui, &snap, &theme, &mut buffer);
        let lines = buffer.content().chunks(160);
        lines
            .map(|line| line.iter().map(Cell::symbol).collect::<String>() + "\n")
            .collect()
    };
    let kernels = shown("3");
    assert!(kernels.contains("▲ SERIALIZED"), "{kernels}");
    assert!(kernels.contains("SQ_WAVES"), "{kernels}");
    let row = |text: &str, name: &str| text.lines().find(|line| line.contains(name)).map(str::to_owned);
    assert!(row(&kernels, "  a scale").unwrap().contains(" 1024 "), "{kernels}");
    assert!(row(&kernels, "  b plain").unwrap().contains(" 2 "), "{kernels}");
    let filtered = shown("/SQ_WAVES>1e3\n");
    assert!(
        row(&filtered, "  a scale").is_some() && row(&filtered, "  b plain").is_none(),
        "{filtered}"
    );
    let counters = shown("6");
    assert!(counters.contains("SQ_WAVES") && counters.contains("1024"), "{counters}");
}

#[test]
fn json_holds_a_value_for_each_instance() {
    let Some(rig) = Rig::new("instances") else { return };
    let words = "rocprofv3 --output-format json -d out -o n --pmc SQ_WAVES GRBM_COUNT -- ./counted load scale plain";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    let json: Value = serde_json::from_slice(&std::fs::read(rig.0.join("out/n_results.json")).unwrap()).unwrap();
    let tool = &json["rocprofiler-sdk-tool"][0];
    let counters = tool["counters"].as_array().unwrap();
    let waves = counters.iter().find(|one| one["name"] == "SQ_WAVES").unwrap();
    let records = tool["callback_records"]["counter_collection"].as_array().unwrap();
    // A value for each shader engine: 100 work-items are two waves, which the first two have.
    let parts = |record: &Value| -> Vec<f64> {
        let own = record["records"].as_array().unwrap().iter();
        let own = own.filter(|one| one["counter_id"] == waves["id"]);
        own.map(|one| one["value"].as_f64().unwrap()).collect()
    };
    assert_eq!(parts(&records[0]), [256.0; 4]);
    assert_eq!(parts(&records[1]), [1.0, 1.0, 0.0, 0.0]);
    // The instances are numbered as rocprofiler-sdk numbers them.
    let instances = waves["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 4);
    assert_eq!(instances[1]["instance_id"], 101u64 << 48 | 1 << 12);
    assert_eq!(
        instances[1]["dimensions"],
        serde_json::json!([
            {"dimension_name": "DIMENSION_INSTANCE", "index": 0},
            {"dimension_name": "DIMENSION_SHADER_ENGINE", "index": 1}
        ])
    );
}

#[test]
fn groups_of_counters_take_turns() {
    let Some(rig) = Rig::new("groups") else { return };
    std::fs::write(
        rig.0.join("in.yaml"),
        "jobs:\n  - pmc_groups: [[SQ_WAVES, GRBM_COUNT], [TCC_HIT]]\n    pmc_group_interval: 2\n",
    )
    .unwrap();
    let words = "rocprofv3 -i in.yaml -d out -o n -- ./counted load scale scale plain scale scale";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    let rows = rig.table("out/n_counter_collection.csv");
    let found: Vec<(u64, &str)> = rows
        .numbers("Dispatch_Id")
        .into_iter()
        .zip(rows.column("Counter_Name"))
        .collect();
    let both = |dispatch| [(dispatch, "GRBM_COUNT"), (dispatch, "SQ_WAVES")];
    let hit = |dispatch| (dispatch, "TCC_HIT");
    let expected = [&both(1)[..], &both(2), &[hit(3), hit(4)], &both(5)].concat();
    assert_eq!(found, expected);
    let waves: Vec<&str> = rows.column("Counter_Value");
    assert_eq!((waves[1], waves[4]), ("1024.000000", "136.000000"));
    // The same by roctop's own command.
    rig.works(&[
        "record",
        "-o",
        "rec",
        "-i",
        "in.yaml",
        "./counted",
        "load",
        "scale",
        "scale",
        "plain",
    ]);
    rig.works(&["export", "rec", "-o", "own"]);
    assert_eq!(
        rig.table("own_counter_collection.csv").column("Counter_Name"),
        ["GRBM_COUNT", "SQ_WAVES", "GRBM_COUNT", "SQ_WAVES", "TCC_HIT"]
    );
    std::fs::write(rig.0.join("both.yaml"), "jobs:\n  - pmc_groups: [[A]]\n    pmc: [B]\n").unwrap();
    let told = rig.fails(&["rocprofv3", "-i", "both.yaml", "--", "./counted"]);
    assert!(told.contains("--pmc and --pmc-groups exclude each other"), "{told}");
    std::fs::write(
        rig.0.join("many.yaml"),
        "jobs:\n  - pmc_groups: [[SQ_WAVES, GRBM_COUNT, TCC_HIT]]\n",
    )
    .unwrap();
    let told = rig.fails(&["rocprofv3", "-i", "many.yaml", "--", "./counted"]);
    assert!(told.contains("they do not fit into one run"), "{told}");
}

#[test]
fn counters_of_whole_gpus_are_in_every_file() {
    let Some(rig) = Rig::new("whole") else { return };
    let words = "record -o rec --pmc SQ_WAVES --pmc-device --pmc-rate 50 ./counted mark wait";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    rig.works(&["export", "rec", "--format", "csv,json,pftrace", "-o", "n"]);
    let rows = rig.table("n_gauges.csv");
    let (times, values) = (rows.numbers("Timestamp"), rows.column("Value"));
    let units = rows.column("Unit");
    let own: Vec<(u64, f64)> = (0..times.len())
        .filter(|row| rows.column("Gauge")[*row] == "SQ_WAVES")
        .map(|row| {
            assert_eq!(units[row], "/s");
            (times[row], values[row].parse().unwrap())
        })
        .collect();
    assert!(own.len() > 3, "{own:?}");
    // The stand-in's GPU runs 256 waves between two readings.
    for pair in own.windows(2) {
        let waves = pair[1].1 * (pair[1].0 - pair[0].0) as f64 / 1e9;
        assert!((waves - 256.0).abs() < 0.001, "{waves}");
    }
    let json: Value = serde_json::from_slice(&std::fs::read(rig.0.join("n_results.json")).unwrap()).unwrap();
    let gauges = json["rocprofiler-sdk-tool"][0]["gauges"].as_array().unwrap();
    let series = gauges.iter().find(|one| one["name"] == "SQ_WAVES").unwrap();
    assert_eq!(series["samples"].as_array().unwrap().len(), own.len());
    let trace = std::fs::read(rig.0.join("n_results.pftrace")).unwrap();
    let name = b"GPU [1] SQ_WAVES (/s)";
    assert!(trace.windows(name.len()).any(|window| window == name));
}

#[test]
fn a_counter_can_be_asked_for_on_one_gpu() {
    let Some(rig) = Rig::new("device") else { return };
    let words = "rocprofv3 -d out -o n --pmc SQ_WAVES:device=0 GRBM_COUNT -- ./counted load scale";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    let rows = rig.table("out/n_counter_collection.csv");
    assert_eq!(rows.column("Counter_Name"), ["GRBM_COUNT", "SQ_WAVES"]);
    let plan = rig.works(&["counters", "TCC_HIT:device=0", "GRBM_COUNT", "SQ_WAVES:device=0"]);
    assert!(
        plan.ends_with("pass 1 of 2: TCC_HIT:device=0 GRBM_COUNT\npass 2 of 2: SQ_WAVES:device=0\n"),
        "{plan}"
    );
    let told = rig.fails(&["--no-ui", "--pmc", "SQ_WAVES:device=1", "./counted"]);
    assert!(told.contains("SQ_WAVES: there is no GPU 1, the last is 0"), "{told}");
    assert!(
        rig.fails(&["--no-ui", "--pmc", "SQ_WAVES:device=x", "./counted"])
            .contains("after ':device=' comes the number of a GPU")
    );
}

#[test]
fn every_failure_says_what_why_and_what_to_do() {
    let Some(rig) = Rig::new("failures") else { return };
    let run = |counter: &str| rig.fails(&["--no-ui", "--pmc", counter, "./counted"]);
    assert!(run("NONSENSE").contains("NONSENSE is not known on GPU of node 1 (gfx906); 'roctop counters' lists"));
    assert!(run("TCC_HIT[16]").contains("there is no instance 16"));
    assert!(run("a;b").contains("'a;b' is no counter's name"));
    let with = |name: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
        command
            .args(["--no-ui", "--pmc", "SQ_WAVES", "./counted"])
            .env("ROCTOP_SDK", rig.0.join("stand_in_sdk"))
            .env(name, value)
            .current_dir(&rig.0)
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty(), "the program was not started");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(with("ROCTOP_SDK", "/nonexistent").contains("rocprofiler-sdk was not found (/nonexistent); install"));
    assert!(
        with("STAND_IN_VERSION", "300").contains("is rocprofiler-sdk 0.3; this release of roctop knows 0.4 to 1.x")
    );
    assert!(with("STAND_IN_DENY", "1").contains("Permission denied: this user may not count; it takes CAP_PERFMON"));
}
