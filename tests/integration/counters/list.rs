//! Which counters there are, of the library and of definition files.

use crate::kit::counted::Rig;
use serde_json::Value;

#[test]
fn counters_are_listed_in_every_layout() {
    let Some(rig) = Rig::new("list") else { return };
    let info = rig.works(&["counters"]);
    let first = "GPU:0\nName:gfx906\nCounter_Name        :\tSQ_WAVES\nDescription         :\tWaves sent";
    assert!(info.starts_with(first), "{info}");
    assert!(info.contains(
        "Block               :\tSQ\nDimensions          :\tDIMENSION_INSTANCE[0:0] DIMENSION_SHADER_ENGINE[0:3]\n\n\n"
    ));
    assert_eq!(rig.works(&["rocprofv3", "-L"]), info);
    // Ways of sampling come first, and last before a program, as upstream.
    for (words, order) in [
        (&["rocprofv3", "-L"][..], ["GPU     :\t0", "GPU:0"]),
        (&["rocprofv3", "-L", "--", "true"], ["GPU:0", "GPU     :\t0"]),
    ] {
        let output = rig.command(words).env("STAND_IN_SAMPLING", "1").output().unwrap();
        let listed = String::from_utf8(output.stdout).unwrap();
        let places = order.map(|word| listed.find(word).unwrap());
        assert!(places[0] < places[1] && output.status.success(), "{words:?}: {listed}");
    }
    rig.works(&["rocprofv3", "-L", "-d", "lists", "-o", "gpu"]);
    assert_eq!(
        rig.table("lists/gpu_basic_metrics.csv").column("Name"),
        ["SQ_WAVES", "GRBM_COUNT", "TCC_HIT"]
    );
    assert_eq!(
        rig.table("lists/gpu_derived_metrics.csv").column("Name"),
        ["L2CacheHit"]
    );
    let json: Value = serde_json::from_str(&rig.works(&["counters", "--format", "json"])).unwrap();
    assert_eq!(json["agents"][0]["counters"].as_array().unwrap().len(), 4);
    assert!(rig.works(&["counters", "--format", "table"]).contains("L2CacheHit"));
    let plan = rig.works(&["counters", "SQ_WAVES", "GRBM_COUNT", "TCC_HIT"]);
    assert!(
        plan.ends_with("pass 1 of 2: SQ_WAVES GRBM_COUNT\npass 2 of 2: TCC_HIT\n"),
        "{plan}"
    );
    assert!(
        rig.works(&["counters", "--metrics"])
            .contains("L2CacheHit of rocprofiler-sdk")
    );
}

#[test]
fn counters_of_a_definition_file_are_listed_and_counted() {
    let Some(rig) = Rig::new("definitions") else { return };
    let text =
        "rocprofiler-sdk:\n  counters-schema-version: 1\n  counters:\n    - name: OWN_SUM\n      description: own\n";
    std::fs::write(rig.0.join("own.yaml"), text).unwrap();
    assert!(
        rig.works(&["rocprofv3", "-L", "-E", "own.yaml"])
            .contains("Counter_Name        :\tOWN_SUM\n")
    );
    let words = "rocprofv3 -E own.yaml -d out -o n --pmc OWN_SUM -- ./counted load scale";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    let rows = rig.table("out/n_counter_collection.csv");
    assert_eq!(
        (rows.column("Counter_Name"), rows.column("Counter_Value")),
        (vec!["OWN_SUM"], vec!["75.000000"])
    );
    let own = [
        "--extra-counters",
        "own.yaml",
        "--pmc",
        "OWN_SUM",
        "./counted",
        "load",
        "scale",
    ];
    rig.works(&[&["record", "-o", "rec"], &own[..]].concat());
    std::fs::write(rig.0.join("none.yaml"), "counters: []\n").unwrap();
    for (file, reason) in [
        ("none.yaml", "none.yaml: it defines no counters"),
        ("absent.yaml", "cannot read the counter definitions absent.yaml"),
    ] {
        let told = rig.fails(&[
            "record",
            "-o",
            "x",
            "--extra-counters",
            file,
            "--pmc",
            "OWN_SUM",
            "./counted",
        ]);
        assert!(told.contains(reason), "{told}");
    }
}
