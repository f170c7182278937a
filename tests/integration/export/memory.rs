//! Exports within a limit of memory that the Linux kernel enforces.

use super::all::{check_same, contents};
use crate::kit::cgroup::Limit;
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use std::collections::BTreeMap;
use std::process::Command;

const LIMIT_BYTES: u64 = 256 << 20;
const FORMATS: [&str; 8] = [
    "csv",
    "json",
    "pftrace",
    "rocpd",
    "parquet",
    "kineto",
    "pprof",
    "collapsed",
];

#[test]
fn files_are_the_same_under_a_limit_of_memory() {
    let Some(limit) = Limit::new("export", LIMIT_BYTES) else {
        return;
    };
    // The limit ends a program that needs more.
    let greedy = limit
        .command("sh")
        .args(["-c", "head -c 400M /dev/zero | tail -c 390M | wc -c"])
        .output();
    let told = String::from_utf8(greedy.unwrap().stdout).unwrap();
    assert_ne!(told.trim(), (390u64 << 20).to_string(), "the limit has no effect");
    // Its records take several times as much, in each of three sorts.
    let made = Made {
        records: 1_200_000,
        threads: 3,
        ..Made::default()
    };
    let place = place("memory");
    let (recording, out) = (place.join("rec"), place.join("out"));
    make(&recording, &made);
    for format in FORMATS {
        let files = |mut command: Command, threads| {
            let output = command
                .args([
                    "export",
                    recording.to_str().unwrap(),
                    "--format",
                    format,
                    "--threads",
                    threads,
                    "--stats",
                ])
                .args(["-d", out.to_str().unwrap(), "-o", "t"])
                .env("ROCTOP_CONFIG", "/dev/null")
                .output()
                .unwrap();
            assert!(output.status.success(), "{format}: {output:?}");
            let mut found = BTreeMap::new();
            contents(&out, &mut found);
            std::fs::remove_dir_all(&out).unwrap();
            found
        };
        let roctop = env!("CARGO_BIN_EXE_roctop");
        let expected = files(Command::new(roctop), "1");
        let found = files(limit.command(roctop), "2");
        check_same(format, &expected, &found);
    }
}
