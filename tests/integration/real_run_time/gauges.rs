//! Gauges beside a real program: sampled while it runs, recorded, exported.

use crate::kit::rig::rig;
use roctop::sysfs::Metric;

#[test]
fn gauges_are_sampled_while_the_program_runs() {
    let Some(rig) = rig() else { return };
    let recorded = rig.record_with("gauges", &["--gauge-rate", "50"], &["memcpy_storm", "4", "2"]);
    assert!(recorded.output.status.success());
    let samples = &recorded.run.gauges;
    let of_gpu: Vec<_> = samples.iter().filter(|sample| sample.pid.is_none()).collect();
    assert!(of_gpu.len() >= 3, "{} samples of the GPU", of_gpu.len());
    assert!(of_gpu.windows(2).all(|pair| pair[0].at < pair[1].at));
    for sample in &of_gpu {
        assert_eq!((sample.node, sample.get(Metric::BUSY)), (1, Ok(42.0)));
        assert_eq!(sample.get(Metric::SHADER_CLOCK), Ok(1700.0));
    }
    // What the program holds, as the compute driver tells it.
    let pid = recorded.run.processes[0].pid;
    let of_program = samples.iter().filter(|sample| sample.pid == Some(pid));
    let held: Vec<f64> = of_program
        .filter_map(|sample| sample.get(Metric::PROCESS_VRAM).ok())
        .collect();
    assert!(held.iter().any(|bytes| *bytes > 0.0), "{held:?}");
    let words = ["export", "rec", "--format", "csv,json,pftrace", "-o", "all"];
    let exported = std::process::Command::new(env!("CARGO_BIN_EXE_roctop"))
        .args(words)
        .current_dir(&recorded.place)
        .output()
        .unwrap();
    assert!(exported.status.success());
    let table = std::fs::read_to_string(recorded.place.join("all_gauges.csv")).unwrap();
    let rows = table
        .lines()
        .filter(|row| row.ends_with("\"Agent 1\",0,\"busy\",42,\"%\""))
        .count();
    assert_eq!(rows, of_gpu.len());
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(recorded.place.join("all_results.json")).unwrap()).unwrap();
    let series = json["rocprofiler-sdk-tool"][0]["gauges"].as_array().unwrap();
    let busy = series.iter().find(|one| one["name"] == "busy").unwrap();
    assert_eq!(busy["samples"].as_array().unwrap().len(), of_gpu.len());
    let trace = std::fs::read(recorded.place.join("all_results.pftrace")).unwrap();
    let name = b"GPU [1] busy (%)";
    assert!(trace.windows(name.len()).any(|window| window == name));
}
