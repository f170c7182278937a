//! Counted values in every file format.

use crate::kit::counted::Rig;
use crate::kit::schema;
use serde_json::Value;
use std::path::Path;

const COUNTED: &str = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp";
pub(crate) const SEED_COUNTED: &str = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value";

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
