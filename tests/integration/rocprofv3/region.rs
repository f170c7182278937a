//! Marked regions, and calls that give names.

use super::{command, place};
use std::path::Path;
use std::process::Command;

/// Calls ROC-TX as a program that is linked to it does.
const REGIONS: &str = "
#include <stdint.h>
void roctxMarkA(const char*) __attribute__((weak));
int roctxGetThreadId(uint64_t*) __attribute__((weak));
int roctxProfilerResume(uint64_t) __attribute__((weak));
int roctxProfilerPause(uint64_t) __attribute__((weak));
int main(void) {
  uint64_t thread;
  if (!roctxMarkA || !roctxProfilerResume || !roctxProfilerPause || !roctxGetThreadId) return 3;
  roctxMarkA(\"before\");
  roctxGetThreadId(&thread);
  roctxProfilerResume(thread);
  roctxMarkA(\"inside\");
  roctxProfilerPause(thread);
  roctxMarkA(\"after\");
  return 0;
}";

/// Domain, function and id of each marker row.
fn markers(place: &Path, options: &[&str]) -> Vec<(String, String, u64)> {
    let output = command(place, options, &["./regions"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(place.join("n_marker_api_trace.csv")).unwrap();
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').map(|cell| cell.trim_matches('"')).collect();
        (cells[0].to_owned(), cells[1].to_owned(), cells[4].parse().unwrap())
    });
    rows.collect()
}

/// Builds such a program as `regions`; false where there is no C compiler.
fn build_regions(place: &Path, source: &str) -> bool {
    std::fs::write(place.join("regions.c"), source).unwrap();
    let built = Command::new("cc")
        .args(["-O1", "-o", "regions", "regions.c"])
        .current_dir(place)
        .status();
    let is_built = built.is_ok_and(|status| status.success());
    if !is_built {
        println!("skipped: needs a C compiler");
    }
    is_built
}

fn functions(rows: &[(String, String, u64)]) -> Vec<String> {
    rows.iter().map(|row| row.1.clone()).collect()
}

#[test]
fn regions_inside_of_others_count_when_asked_to() {
    const NESTED: &str = "
#include <stdint.h>
void roctxMarkA(const char*) __attribute__((weak));
int roctxProfilerResume(uint64_t) __attribute__((weak));
int roctxProfilerPause(uint64_t) __attribute__((weak));
int main(void) {
  roctxProfilerPause(0);
  roctxMarkA(\"before\");
  roctxProfilerResume(0);
  roctxMarkA(\"outer\");
  roctxProfilerResume(0);
  roctxMarkA(\"inner\");
  roctxProfilerPause(0);
  roctxMarkA(\"outer again\");
  roctxProfilerPause(0);
  roctxMarkA(\"after\");
  return 0;
}";
    let place = place("nested");
    if !build_regions(&place, NESTED) {
        return;
    }
    let marks = |options: &[&str]| -> Vec<String> {
        let rows = markers(&place, &[&["--marker-trace", "-o", "n"], options].concat());
        let names = functions(&rows).into_iter();
        names.filter(|name| !name.starts_with("roctx")).collect()
    };
    assert_eq!(marks(&["--selected-regions"]), ["outer", "inner"]);
    let counted = marks(&["--selected-regions", "--selected-regions-ref-count"]);
    assert_eq!(counted, ["outer", "inner", "outer again"]);
    // What runs from the beginning is in a region already.
    let counted = marks(&["--selected-regions-ref-count"]);
    assert_eq!(counted, ["outer", "inner", "outer again"]);
}

#[test]
fn selected_regions_are_all_that_is_recorded() {
    let place = place("regions");
    if !build_regions(&place, REGIONS) {
        return;
    }
    let selected = markers(&place, &["--marker-trace", "--selected-regions", "-o", "n"]);
    assert_eq!(
        functions(&selected),
        ["roctxProfilerResume", "inside", "roctxProfilerPause"]
    );
    // Without it everything is, up to the pause; calls that are neither marks nor ranges have rows and numbers too.
    let all = markers(&place, &["--marker-trace", "-o", "n"]);
    let names = [
        "before",
        "roctxGetThreadId",
        "roctxProfilerResume",
        "inside",
        "roctxProfilerPause",
    ];
    assert_eq!(functions(&all), names);
    assert_eq!(all.iter().map(|row| row.2).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let domains: Vec<&str> = all.iter().map(|row| row.0.as_str()).collect();
    let (core, control) = ("MARKER_CORE_RANGE_API", "MARKER_CONTROL_API");
    assert_eq!(domains, [core, core, control, core, control]);
}

/// Gives names by ROC-TX.
const NAMES: &str = "
int roctxNameOsThread(const char*) __attribute__((weak));
int roctxNameHipDevice(const char*, int) __attribute__((weak));
int roctxNameHsaAgent(const char*, const void*) __attribute__((weak));
int roctxNameHipStream(const char*, const void*) __attribute__((weak));
int main(void) {
  if (!roctxNameOsThread || !roctxNameHipDevice || !roctxNameHsaAgent || !roctxNameHipStream) return 3;
  roctxNameOsThread(\"reader\");
  roctxNameHipDevice(\"first\", 0);
  roctxNameHsaAgent(\"none\", 0);
  roctxNameHipStream(\"usual\", 0);
  return 0;
}";

#[test]
fn calls_that_give_names_have_rows_of_their_own_domain() {
    let place = place("names");
    std::fs::write(place.join("names.c"), NAMES).unwrap();
    let built = Command::new("cc")
        .args(["-O1", "-o", "regions", "names.c"])
        .current_dir(&place)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: needs a C compiler");
        return;
    }
    let rows = markers(&place, &["--marker-trace", "-f", "csv", "json", "-o", "n"]);
    let named = |function: &str, id| ("MARKER_NAME_API".to_owned(), function.to_owned(), id);
    assert_eq!(
        rows,
        [
            named("roctxNameOsThread", 1),
            named("roctxNameHipDevice", 2),
            named("roctxNameHsaAgent", 3),
            named("roctxNameHipStream", 4)
        ]
    );
    let text = std::fs::read_to_string(place.join("n_results.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let records = document["rocprofiler-sdk-tool"][0]["buffer_records"]["marker_api"].as_array();
    let numbers = records
        .unwrap()
        .iter()
        .map(|record| (&record["kind"], &record["operation"]));
    let numbers: Vec<_> = numbers
        .map(|(kind, operation)| (kind.as_u64().unwrap(), operation.as_u64().unwrap()))
        .collect();
    assert_eq!(numbers, [(9, 0), (9, 2), (9, 1), (9, 3)]);
}
