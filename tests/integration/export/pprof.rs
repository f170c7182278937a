//! `gpu.pb.gz` and `gpu.collapsed.txt`: GPU time by stack of ranges, as the CSV files have it.

use super::ranges::{Ranges, rows};
use crate::kit::demo::{export, roctop};
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use crate::kit::protobuf::{Field, all, fields, number, packed, text};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// GPU time in ns and launches, by stack from outside to inside.
type Sums = BTreeMap<Vec<String>, (u64, u64)>;

/// The sums of the CSV files.
fn expected(out: &Path) -> Sums {
    let ranges = Ranges::read(out, "t");
    let kernels = rows(&out.join("t_kernel_trace.csv"), "Kernel_Name");
    let copies = rows(&out.join("t_memory_copy_trace.csv"), "Direction");
    let mut sums = Sums::new();
    for row in kernels.into_iter().chain(copies) {
        let mut stack: Vec<String> = ranges
            .around_work(row.id)
            .iter()
            .map(|range| range.name.clone())
            .collect();
        stack.push(row.name);
        let sum = sums.entry(stack).or_default();
        *sum = (sum.0 + row.end - row.begin, sum.1 + 1);
    }
    sums
}

/// The profile and the sums of the CSV files.
fn exported(name: &str) -> (BTreeMap<String, PathBuf>, Sums) {
    let files = export(name, &["--format", "pprof,collapsed,csv"]);
    let sums = expected(files["kernel_trace.csv"].parent().unwrap());
    assert!(sums.keys().any(|stack| stack.len() > 2), "the workload nests ranges");
    (files, sums)
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The string table of a profile.
fn strings(profile: &[(u64, Field)]) -> Vec<String> {
    let texts = all(profile, 6).into_iter();
    texts.map(|text| String::from_utf8(text).unwrap()).collect()
}

#[test]
fn a_profile_has_the_time_and_the_launches_of_every_stack() {
    let (files, expected) = exported("pprof");
    let bytes = unpacked(&files["gpu.pb.gz"]);
    let profile = fields(&bytes);
    let strings = strings(&profile);
    assert_eq!(strings[0], "");
    let named = |index: Option<u64>| strings[index.unwrap() as usize].as_str();
    let types: Vec<(&str, &str)> = all(&profile, 1)
        .iter()
        .map(|kind| fields(kind))
        .map(|kind| (named(number(&kind, 1)), named(number(&kind, 2))))
        .collect();
    assert_eq!(types, [("launches", "count"), ("gpu", "nanoseconds")]);
    let functions: BTreeMap<u64, String> = all(&profile, 5)
        .iter()
        .map(|function| fields(function))
        .map(|function| (number(&function, 1).unwrap(), named(number(&function, 2)).to_owned()))
        .collect();
    // go tool pprof cuts arguments off a name that equals its mangled one.
    let mut mangled = 0;
    for function in all(&profile, 5) {
        let function = fields(&function);
        let [name, system] = [2, 3].map(|field| named(number(&function, field)));
        assert_ne!(name, system);
        assert_eq!(system.starts_with("_Z"), name.contains('('), "{name}: {system}");
        mangled += usize::from(!system.is_empty());
    }
    assert!(mangled > 1, "the workload has C++ kernels");
    let locations: BTreeMap<u64, String> = all(&profile, 4)
        .iter()
        .map(|location| fields(location))
        .map(|location| {
            let line = fields(&all(&location, 4)[0]);
            (
                number(&location, 1).unwrap(),
                functions[&number(&line, 1).unwrap()].clone(),
            )
        })
        .collect();
    let mut found = Sums::new();
    for sample in all(&profile, 2) {
        let sample = fields(&sample);
        let mut stack: Vec<String> = packed(&sample, 1).iter().map(|id| locations[id].clone()).collect();
        stack.reverse();
        let [launches, nanos] = packed(&sample, 2)[..] else {
            panic!()
        };
        let sum = found.entry(stack).or_default();
        *sum = (sum.0 + nanos, sum.1 + launches);
    }
    assert_eq!(found, expected);
    assert!(number(&profile, 9).unwrap() > 1 << 60, "CLOCK_REALTIME in ns");
    assert!(number(&profile, 10).unwrap() > 0);
    assert!(text(&profile, 6).is_some());
}

#[test]
fn collapsed_stacks_have_the_time_of_every_stack() {
    let (files, expected) = exported("collapsed");
    let text = std::fs::read_to_string(&files["gpu.collapsed.txt"]).unwrap();
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        let (stack, nanos) = line.rsplit_once(' ').unwrap();
        *found.entry(stack.to_owned()).or_default() += nanos.parse::<u64>().unwrap();
    }
    let joined = expected.into_iter().map(|(stack, (nanos, _))| (stack.join(";"), nanos));
    assert_eq!(found, joined.collect());
}

#[test]
fn losses_are_in_the_profile_or_on_stderr() {
    let place = place("profile-lost");
    let recording = place.join("rec");
    let made = Made {
        lost: 41,
        ..Made::default()
    };
    make(&recording, &made);
    let export = |format: &str| {
        let words = ["export", recording.to_str().unwrap(), "--format", format, "-o", "t"];
        let output = roctop(&[&words[..], &["-d", place.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let lost = "records lost: 41 (overwritten";
    assert!(!export("pprof").contains(lost));
    let strings = strings(&fields(&unpacked(&place.join("t_gpu.pb.gz"))));
    assert!(strings.iter().any(|text| text.contains(lost)), "{strings:?}");
    let said = export("collapsed");
    assert!(said.contains("process 4242: records lost: 41 (overwritten"), "{said}");
}
