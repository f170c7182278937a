//! Hardware counters end to end: asked for on the command line, counted by the collector through the stand-in for
//! rocprofiler-sdk, recorded, and written to every file format with their exact values.

mod format;
mod list;
mod rocprofv3;
mod sampling;
mod screen;

use crate::kit::counted::Rig;
use serde_json::Value;
use std::process::{Command, Stdio};

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
