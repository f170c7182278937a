//! Counters as rocprofv3's command line and input files ask for them.

use super::format::SEED_COUNTED;
use crate::kit::counted::Rig;
use crate::kit::table::Table;

#[test]
fn input_files_name_passes() {
    let Some(rig) = Rig::new("input") else { return };
    for (name, text) in [
        ("in.txt", "# two\npmc: SQ_WAVES\npmc: GRBM_COUNT TCC_HIT[1]\n"),
        (
            "in.yaml",
            "jobs:\n  - pmc: [SQ_WAVES]\n  - pmc: [GRBM_COUNT, 'TCC_HIT[1]']\n",
        ),
        (
            "in.json",
            "{\"metrics\":[{\"pmc\":[\"SQ_WAVES\"]},{\"pmc\":[\"GRBM_COUNT\",\"TCC_HIT[1]\"]}]}",
        ),
    ] {
        std::fs::write(rig.0.join(name), text).unwrap();
        let recording = format!("rec-{name}");
        rig.works(&["record", "-o", &recording, "-i", name, "./counted", "load", "scale"]);
        rig.works(&["export", &format!("{recording}/pass_2"), "-o", name]);
        let rows = rig.table(&format!("{name}_counter_collection.csv"));
        assert_eq!(rows.column("Counter_Name"), ["GRBM_COUNT", "TCC_HIT[1]"], "{name}");
        assert_eq!(rows.column("Counter_Value"), ["5000.000000", "2.000000"], "{name}");
    }
}

/// As upstream's test has it: no system has so many GPUs.
#[test]
fn what_is_asked_of_a_gpu_that_is_not_there_is_left_out_of_rocprofv3s_counters() {
    let Some(rig) = Rig::new("absent") else { return };
    let words =
        "rocprofv3 -d out -o n --pmc SQ_WAVES GRBM_COUNT:device=16384 TCC_HIT:device=65536 -- ./counted load scale";
    let output = rig.roctop(&words.split(' ').collect::<Vec<_>>());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    for word in ["GRBM_COUNT:device=16384", "TCC_HIT:device=65536"] {
        assert!(told.contains(&format!("{word} is left out: there is no GPU")), "{told}");
    }
    assert_eq!(
        rig.table("out/n_counter_collection.csv").column("Counter_Name"),
        ["SQ_WAVES"]
    );
    // Nothing is left to count: the program runs all the same.
    let words = "rocprofv3 -d none -o n --kernel-trace --pmc SQ_WAVES:device=7 -- ./counted load scale";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    assert!(!rig.0.join("none/n_counter_collection.csv").exists());
    std::fs::write(
        rig.0.join("in.txt"),
        "pmc: SQ_WAVES GRBM_COUNT:device=9\npmc: SQ_WAVES:device=8\n",
    )
    .unwrap();
    rig.works(&["record", "-o", "rec", "-i", "in.txt", "./counted", "load", "scale"]);
    std::fs::write(rig.0.join("in.txt"), "pmc: SQ_WAVES:device=8\n").unwrap();
    let told = rig.fails(&["--no-ui", "-i", "in.txt", "./counted"]);
    assert!(told.ends_with("roctop: counters: none is left\n"), "{told}");
}

/// As upstream's test has it: exit code of the program, and the others are counted.
#[test]
fn what_no_gpu_counts_is_left_out_of_rocprofv3s_counters_alone() {
    let Some(rig) = Rig::new("unknown") else { return };
    let words = "rocprofv3 -d out -o n --pmc NOT_A_COUNTER SQ_WAVES TCC_HIT[4000] -- ./counted load scale";
    let output = rig.roctop(&words.split(' ').collect::<Vec<_>>());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let line = "counters: left out, because no GPU here has them: NOT_A_COUNTER, TCC_HIT[4000]\n";
    assert!(told.contains(line), "{told}");
    let counted = rig.table("out/n_counter_collection.csv");
    assert_eq!(counted.column("Counter_Name"), ["SQ_WAVES"]);
    // No counter is left, and the program runs all the same.
    let script = "./counted load scale; exit 7";
    let words = [
        "rocprofv3",
        "-d",
        "none",
        "-o",
        "n",
        "--pmc",
        "NOT_A_COUNTER",
        "--",
        "sh",
        "-c",
        script,
    ];
    let output = rig.roctop(&words);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(!rig.0.join("none/n_counter_collection.csv").exists());
    // Elsewhere a name may be misspelt.
    let told = rig.fails(&[
        "record",
        "-o",
        "rec",
        "--pmc",
        "SQ_WAVES,NOT_A_COUNTER",
        "./counted",
        "load",
    ]);
    assert!(told.contains("NOT_A_COUNTER") && !rig.0.join("rec").exists(), "{told}");
}

#[test]
fn input_files_may_ask_for_no_counters() {
    let Some(rig) = Rig::new("uncounted") else { return };
    for (name, text) in [
        (
            "in.json",
            r#"{"jobs":[{"pmc":[],"marker_trace":true,"output_format":["csv"]}]}"#,
        ),
        (
            "in.yaml",
            "jobs:\n  - pmc: []\n    kernel_names: []\n    marker_trace: true\n",
        ),
        ("in.txt", "# times alone\npmc:\n"),
    ] {
        let words = [
            "rocprofv3",
            "-i",
            name,
            "-d",
            "out",
            "-o",
            "n",
            "--",
            "sh",
            "-c",
            "echo > ran",
        ];
        std::fs::write(rig.0.join(name), text).unwrap();
        rig.works(&words);
        std::fs::remove_file(rig.0.join("ran")).unwrap();
    }
    rig.works(&["rocprofv3", "--pmc", "--marker-trace", "--", "./counted", "load"]);
}

#[test]
fn a_range_that_begins_with_0_has_the_dispatches_that_there_are() {
    let Some(rig) = Rig::new("from-0") else { return };
    for (ranges, count) in [("[0,[1-1]]", 1), ("[0-2]", 2), ("0", 0), ("[2-1]", 0)] {
        let words = format!(
            "rocprofv3 -d out -o n --pmc SQ_WAVES --kernel-iteration-range {ranges} -- ./counted load scale scale scale"
        );
        rig.works(&words.split(' ').collect::<Vec<_>>());
        let path = rig.0.join("out/n_counter_collection.csv");
        let rows = if path.exists() {
            Table::read(&path).rows.len()
        } else {
            0
        };
        assert_eq!(rows, count, "{ranges}");
        let _ = std::fs::remove_dir_all(rig.0.join("out"));
    }
    let words = "record -o rec --pmc SQ_WAVES --kernel-iteration-range 0-2 ./counted load scale";
    let told = rig.fails(&words.split(' ').collect::<Vec<_>>());
    assert!(told.contains("0-2 is no range"), "{told}");
}

#[test]
fn statistics_of_counters_alone_are_no_files() {
    let Some(rig) = Rig::new("stats") else { return };
    let words = "rocprofv3 -d out -o n --pmc SQ_WAVES --stats -- ./counted load scale";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    assert!(rig.0.join("out/n_counter_collection.csv").exists());
    assert!(!rig.0.join("out/n_domain_stats.csv").exists());
}

#[test]
fn rocprofv3s_command_line_counts_too() {
    let Some(rig) = Rig::new("rocprofv3") else { return };
    let words = "rocprofv3 -d out -o tour --pmc SQ_WAVES GRBM_COUNT --kernel-iteration-range [2] -- ./counted load scale scale plain";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    let rows = rig.table("out/tour_counter_collection.csv");
    // Of each kernel the second dispatch.
    assert_eq!(rows.column("Counter_Value"), ["5000.000000", "1024.000000"]);
    assert!(
        !rig.0.join("out/tour_kernel_trace.csv").exists(),
        "kernels were not asked for"
    );
    std::fs::write(rig.0.join("in.txt"), "pmc: SQ_WAVES\npmc: GRBM_COUNT\n").unwrap();
    let words = "rocprofv3 -d many -o tour -i in.txt -- ./counted load plain";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    assert_eq!(
        rig.table("many/pmc_1/tour_counter_collection.csv")
            .column("Counter_Value"),
        ["2.000000"]
    );
    assert_eq!(
        rig.table("many/pmc_2/tour_counter_collection.csv")
            .column("Counter_Value"),
        ["5000.000000"]
    );
    // Each --pmc is a pass; a file of rocprof's first version has lines that are passed over.
    let words = "rocprofv3 -d passes -o tour --pmc SQ_WAVES --pmc GRBM_COUNT -- ./counted load plain";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    for (pass, value) in [("pass_1", "2.000000"), ("pass_2", "5000.000000")] {
        let rows = rig.table(&format!("passes/{pass}/tour_counter_collection.csv"));
        assert_eq!(rows.column("Counter_Value"), [value], "{pass}");
    }
    let old = "pmc: SQ_WAVES\nrange: 0:1\ngpu: 0\nkernel: plain\n";
    std::fs::write(rig.0.join("old.text"), old).unwrap();
    let words = "rocprofv3 -d old -o tour -i old.text -- ./counted load plain";
    let output = rig.roctop(&words.split(' ').collect::<Vec<_>>());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && told.contains("line 2 ('range: 0:1'), 3 ('gpu: 0')"),
        "{told}"
    );
    assert!(rig.0.join("old/pmc_1/tour_counter_collection.csv").exists());
    // As upstream: one job of groups has no directory of its own; an input file may ask for the list.
    let groups = "jobs:\n  - pmc_groups: [[SQ_WAVES], [GRBM_COUNT]]\n";
    std::fs::write(rig.0.join("groups.yaml"), groups).unwrap();
    let words = "rocprofv3 -d one -o tour -i groups.yaml -- ./counted load plain";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    assert!(rig.0.join("one/tour_counter_collection.csv").exists());
    std::fs::write(rig.0.join("list.yaml"), "jobs:\n  - list_avail: true\n").unwrap();
    rig.works(&["rocprofv3", "-i", "list.yaml", "-d", "list-%rank%", "-o", "n"]);
    assert!(rig.0.join("list-0/n_basic_metrics.csv").exists());
    std::fs::write(rig.0.join("none.txt"), "pmc: NO_SUCH\n").unwrap();
    let told = rig.fails(&["record", "-o", "x", "-i", "none.txt", "./counted", "load"]);
    assert!(told.contains("NO_SUCH") && !rig.0.join("x").exists(), "{told}");
}

#[test]
fn kernels_to_count_are_chosen_by_patterns() {
    let Some(rig) = Rig::new("patterns") else { return };
    for (options, kernels) in [
        ("--kernel-include-regex sc.*", &["scale(float*, int)"; 2][..]),
        ("--kernel-exclude-regex ^sc", &["plain()"]),
        (
            "--kernel-include-regex a --kernel-exclude-regex plain",
            &["scale(float*, int)"; 2],
        ),
        (
            "--kernel-include-regex scale --kernel-iteration-range [2]",
            &["scale(float*, int)"],
        ),
        (
            "--kernel-include-regex scale --kernel-exclude-regex= --kernel-iteration-range [[2]]",
            &["scale(float*, int)"],
        ),
    ] {
        let words = format!("rocprofv3 -d out -o n --pmc SQ_WAVES {options} -- ./counted load scale plain scale");
        rig.works(&words.split(' ').collect::<Vec<_>>());
        let rows = rig.table("out/n_counter_collection.csv");
        let names: Vec<&str> = rows.column("Kernel_Name");
        assert_eq!(
            names.iter().map(|name| name.split('(').next()).collect::<Vec<_>>(),
            kernels.iter().map(|name| name.split('(').next()).collect::<Vec<_>>(),
            "{options}"
        );
        std::fs::remove_dir_all(rig.0.join("out")).unwrap();
    }
    let told = rig.fails(&[
        "rocprofv3",
        "--pmc",
        "SQ_WAVES",
        "--kernel-exclude-regex",
        "[",
        "--",
        "./counted",
    ]);
    assert!(told.contains("--kernel-exclude-regex: '['"), "{told}");
}

/// Tables 9 and 10 of the seed's manual: one folder a line of counters, a row a dispatch and counter, chosen kernels only.
#[test]
fn the_seeds_tables_of_counters() {
    let Some(rig) = Rig::new("seed") else { return };
    std::fs::write(rig.0.join("input.txt"), "pmc: SQ_WAVES\npmc: TCC_HIT[1] L2CacheHit\n").unwrap();
    std::fs::write(
        rig.0.join("input.yaml"),
        "metrics:\n  - pmc: [SQ_WAVES]\n  - pmc: ['TCC_HIT[1]', L2CacheHit]\n",
    )
    .unwrap();
    for (file, place) in [("input.txt", "text"), ("input.yaml", "yaml")] {
        let words = format!("rocprofv3 -i {file} -d {place} -o n --layout seed -- ./counted load scale plain");
        rig.works(&words.split(' ').collect::<Vec<_>>());
        let first = rig.table(&format!("{place}/pmc_1/n_counter_collection.csv"));
        assert_eq!(first.header.join(","), SEED_COUNTED);
        assert_eq!(first.column("Counter_Name"), ["SQ_WAVES", "SQ_WAVES"]);
        assert_eq!(first.numbers("Dispatch_Id"), [1, 2]);
        for (name, least) in [
            ("Agent_Id", 1),
            ("Queue_Id", 1),
            ("Grid_Size", 1),
            ("Workgroup_Size", 1),
        ] {
            assert!(first.numbers(name).iter().all(|number| *number >= least), "{name}");
        }
        assert_eq!(first.numbers("Process_Id")[0], first.numbers("Process_Id")[1]);
        let second = rig.table(&format!("{place}/pmc_2/n_counter_collection.csv"));
        // A derived counter has its own name, an indexed one its index.
        assert_eq!(second.column("Counter_Name")[..2], ["L2CacheHit", "TCC_HIT[1]"]);
    }
    let words =
        "rocprofv3 -i input.txt -d chosen -o n --layout seed --kernel-names plain -- ./counted load scale plain";
    rig.works(&words.split(' ').collect::<Vec<_>>());
    let chosen = rig.table("chosen/pmc_1/n_counter_collection.csv");
    assert_eq!(chosen.header.join(","), SEED_COUNTED);
    assert_eq!(chosen.numbers("Dispatch_Id").len(), 1);
    assert!(chosen.column("Kernel_Name")[0].starts_with("plain"));
}
