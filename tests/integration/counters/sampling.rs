//! Samples of program counters: asked for, listed, chosen, and refused with a reason.

use crate::kit::counted::Rig;
use crate::kit::schema;
use serde_json::Value;

#[test]
fn ways_of_sampling_are_listed() {
    let Some(rig) = Rig::new("sampling-list") else { return };
    let with = |words: &[&str]| {
        let mut command = rig.command(words);
        command.env("STAND_IN_SAMPLING", "1").output().unwrap()
    };
    let listed = String::from_utf8(with(&["counters"]).stdout).unwrap();
    let expected = "GPU     :\t0\nName    :\tgfx906\nconfigs :\n   Method              :\thost_trap\n   Unit                :\ttime\n   \
        Min_Interval        :\t1\n   Max_Interval        :\t1000000\n   Flags               :\tnone\n\n   Method              :\tstochastic\n";
    assert!(listed.starts_with(expected), "{listed}");
    let json: Value = serde_json::from_slice(&with(&["counters", "--format", "json"]).stdout).unwrap();
    assert_eq!(json["agents"][0]["pc_sampling"][1]["flags"], "interval pow2");
}

#[test]
fn a_filter_chooses_samples_by_their_dispatches() {
    let Some(rig) = Rig::new("sampling-filter") else { return };
    let words = "record -o rec --pc-sampling host_trap,time,100 ./counted load scale plain";
    let mut command = rig.command(&words.split(' ').collect::<Vec<_>>());
    assert!(command.env("STAND_IN_SAMPLING", "1").status().unwrap().success());
    rig.works(&[
        "export", "rec", "-o", "few", "--format", "csv,json", "--filter", "plain",
    ]);
    let rows = rig.table("few_pc_sampling_host_trap.csv");
    assert_eq!(rig.table("few_kernel_trace.csv").numbers("Dispatch_Id"), [2]);
    assert_eq!(rows.numbers("Dispatch_Id"), [2, 2]);
    let json: Value = serde_json::from_slice(&std::fs::read(rig.0.join("few_results.json")).unwrap()).unwrap();
    let few = &json["rocprofiler-sdk-tool"][0]["buffer_records"]["pc_sample_host_trap"];
    assert_eq!(few.as_array().unwrap().len(), 2);
}

#[test]
fn program_counters_are_sampled_both_ways() {
    let Some(rig) = Rig::new("sampling") else { return };
    let with = |words: &[&str]| {
        let mut command = rig.command(words);
        command.env("STAND_IN_SAMPLING", "1").output().unwrap()
    };
    let six = "Sample_Timestamp,Exec_Mask,Dispatch_Id,Instruction,Instruction_Comment,Correlation_Id";
    let ran = with(&[
        "record",
        "-o",
        "rec",
        "--pc-sampling",
        "host_trap,time,100",
        "./counted",
        "load",
        "scale",
        "plain",
    ]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    rig.works(&["export", "rec", "-o", "new"]);
    let rows = rig.table("new_pc_sampling_host_trap.csv");
    assert_eq!(rows.header.join(","), six);
    assert_eq!(rows.numbers("Dispatch_Id"), [1, 1, 2, 2]);
    assert_eq!(rows.numbers("Exec_Mask"), [0xffff; 4]);
    assert_eq!(rows.column("Instruction_Comment")[0], "code object 1 + 0x1240");
    assert_eq!(
        rows.column("Instruction_Comment")[1],
        "Unrecognized code object id, physical virtual address of PC:4672"
    );
    rig.works(&["export", "rec", "--format", "json", "-o", "new"]);
    let json: Value = serde_json::from_slice(&std::fs::read(rig.0.join("new_results.json")).unwrap()).unwrap();
    assert_eq!(schema::faults(schema::NEW, &json), Vec::<String>::new());
    let tool = &json["rocprofiler-sdk-tool"][0];
    let trapped = tool["buffer_records"]["pc_sample_host_trap"].as_array().unwrap();
    assert_eq!(trapped.len(), 4);
    let (record, place) = (&trapped[0]["record"], &trapped[0]["record"]["hw_id"]);
    assert_eq!(
        (
            &place["chiplet"],
            &place["wave_id"],
            &place["shader_engine_id"],
            &place["simd_id"]
        ),
        (&2.into(), &5.into(), &3.into(), &0.into())
    );
    assert_eq!(
        (&record["wrkgrp_id"]["x"], &record["wave_in_grp"]),
        (&7.into(), &3.into())
    );
    assert_eq!(
        (&record["exec_mask"], &record["pc"]["code_object_offset"]),
        (&0xffff.into(), &0x1240.into())
    );
    let told = trapped.iter().map(|one| one["inst_index"].as_i64().unwrap());
    assert_eq!(told.collect::<Vec<_>>(), [0, -1, 0, -1]);
    assert_eq!(
        tool["strings"]["pc_sample_comments"],
        serde_json::json!(["code object 1 + 0x1240"])
    );
    // The dispatches that samples name are there too.
    assert_eq!(rig.table("new_kernel_trace.csv").numbers("Dispatch_Id"), [1, 2]);
    let words = "rocprofv3 -f csv json -d out -o tour --pc-sampling-beta-enabled --pc-sampling-method stochastic --pc-sampling-unit cycles \
        --pc-sampling-interval 1024 -- ./counted load scale";
    let ran = with(&words.split_whitespace().collect::<Vec<_>>());
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let rows = rig.table("out/tour_pc_sampling_stochastic.csv");
    assert_eq!(
        rows.header.join(","),
        format!("{six},Wave_Issued_Instruction,Instruction_Type,Stall_Reason,Wave_Count")
    );
    assert_eq!(rows.numbers("Wave_Issued_Instruction"), [0, 1]);
    assert_eq!(
        rows.column("Instruction_Type"),
        [
            "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_NO_INST",
            "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU"
        ]
    );
    assert_eq!(
        rows.column("Stall_Reason")[0],
        "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT"
    );
    assert_eq!(rows.numbers("Wave_Count"), [3, 3]);
    let json: Value = serde_json::from_slice(&std::fs::read(rig.0.join("out/tour_results.json")).unwrap()).unwrap();
    let records = &json["rocprofiler-sdk-tool"][0]["buffer_records"]["pc_sample_stochastic"];
    let snapshot = &records[0]["record"]["snapshot"];
    for (field, value) in [
        ("dual_issue_valu", 1),
        ("arb_state_issue_valu", 1),
        ("arb_state_issue_matrix", 0),
        ("arb_state_stall_valu", 0),
    ] {
        assert_eq!(snapshot[field], value, "{field}");
    }
    assert_eq!(
        records[1]["record"]["inst_type"],
        "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU"
    );
}

#[test]
fn sampling_that_cannot_be_had_is_refused_with_the_reason() {
    let Some(rig) = Rig::new("no-sampling") else { return };
    let refused = |how: &str, variables: &[(&str, &str)]| {
        let output = rig
            .command(&[
                "record",
                "-o",
                "rec",
                "--pc-sampling",
                how,
                "./counted",
                "load",
                "scale",
            ])
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{how}");
        assert!(output.stdout.is_empty(), "the program was not started");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused("host_trap,time,100", &[]).contains("this GPU has no PC sampling (MI200 and later have)"));
    let offered = ("STAND_IN_SAMPLING", "1");
    let off = ("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "0");
    assert!(refused("host_trap,time,100", &[offered, off]).contains("it is a beta of rocprofiler-sdk"));
    let told = refused("stochastic,cycles,1000", &[offered]);
    assert!(
        told.contains("PC sampling by stochastic,cycles,1000 is not offered; these are: host_trap,time from 1 to 1000000; stochastic,cycles from 256"),
        "{told}"
    );
    assert!(refused("trap,time,1", &[offered]).contains("the method is stochastic or host_trap, not 'trap'"));
    assert!(refused("host_trap,time,100", &[("ROCTOP_SDK", "/nonexistent")]).contains("was not found (/nonexistent)"));
    let words =
        "rocprofv3 --pc-sampling-method host_trap --pc-sampling-unit time --pc-sampling-interval 1 -- ./counted";
    assert!(
        rig.fails(&words.split(' ').collect::<Vec<_>>())
            .contains("it takes --pc-sampling-beta-enabled")
    );
}
