//! Filters on recordings of which memory does not hold every launch: what passes is counted in the recording.

use super::{segment, told};
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use roctop::item::{ApiCall, Copy, Dispatch, Item};
use roctop::live::tally::{Counted, count};
use roctop::model::table::Route;
use roctop::model::{Fresh, Mode, Options, Snapshot, Store};
use roctop::query::Filter;
use roctop::recording::{Merged, Recording, Scan};
use roctop::ui::tally::{Plan, is_wanted};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

/// Durations of what passes, by kernel and by operation.
type Durations = [BTreeMap<String, Vec<u64>>; 2];

/// A recording, what is known at its end, and each of its launches and calls.
struct Whole {
    recording: Recording,
    snapshot: Arc<Snapshot>,
    launches: Vec<(String, Dispatch)>,
    calls: Vec<(String, ApiCall)>,
    copies: Vec<Copy>,
}

impl Whole {
    fn read(path: &Path) -> Self {
        let recording = Recording::open(path).unwrap().on_threads(NonZeroUsize::new(3).unwrap());
        let mut store = Store::new(Options {
            mode: Mode::Replay,
            ..Options::default()
        });
        let (mut launches, mut calls, mut copies) = (Vec::new(), Vec::new(), Vec::new());
        recording
            .items(&mut |items| {
                store.apply_all(&items);
                for item in items {
                    match item {
                        Item::Dispatch(dispatch) => launches.push(dispatch),
                        Item::Api(call) => calls.push(call),
                        Item::Copy(copy) => copies.push(copy),
                        _ => {}
                    }
                }
            })
            .unwrap();
        let snapshot = store.snapshot(Fresh::All);
        let names = &snapshot.names;
        let kernel = |one: Dispatch| (names.kernel(one.kernel).unwrap().kernel.name.to_string(), one);
        let function = |one: ApiCall| (names.operation(one.operation).unwrap().operation.name.to_string(), one);
        Self {
            launches: launches.into_iter().map(kernel).collect(),
            calls: calls.into_iter().map(function).collect(),
            copies,
            recording,
            snapshot,
        }
    }

    /// What passes a test, each looked at by itself.
    fn truth(&self, launch: fn(&str, &Dispatch) -> bool, call: fn(&str, &ApiCall) -> bool) -> Durations {
        let mut found = Durations::default();
        for (name, one) in self.launches.iter().filter(|(name, one)| launch(name, one)) {
            found[0].entry(name.clone()).or_default().push(one.span.duration());
        }
        for (name, one) in self.calls.iter().filter(|(name, one)| call(name, one)) {
            found[1].entry(name.clone()).or_default().push(one.span.duration());
        }
        found.each_mut().map(|rows| {
            for nanos in rows.values_mut() {
                nanos.sort_unstable();
            }
            std::mem::take(rows)
        })
    }

    fn counted(&self, scan: &mut Scan, filter: &str) -> Counted {
        let filter = Filter::parse(filter).unwrap();
        assert!(is_wanted(&self.snapshot, &filter));
        let plan = Plan::new(self.snapshot.clone(), &filter);
        let merged = Merged::new(vec![&self.recording]).unwrap();
        let (_, decoder) = merged.by_kind(None, &mut |_| (), &mut |_| ()).unwrap();
        count(scan, &decoder, &plan, &|| false, &|_, _| ()).unwrap().unwrap()
    }

    /// Compares what was counted with the truth: number, sum, extremes, median.
    fn compare(&self, counted: &Counted, truth: &Durations, filter: &str) {
        let names = &self.snapshot.names;
        let kernels = self.snapshot.values.kernels.iter().map(|row| {
            let name = names.kernel(row.id).unwrap().kernel.name.to_string();
            (name, counted.tally.of_kernel(row.id.0, |_| true))
        });
        let operations = self.snapshot.values.api.iter().map(|row| {
            let name = names.operation(row.id).unwrap().operation.name.to_string();
            (name, counted.tally.of_operation(row.id.0))
        });
        let rows: [Vec<_>; 2] = [kernels.collect(), operations.collect()];
        for (rows, truth) in rows.iter().zip(truth) {
            let some = rows.iter().filter(|row| row.1.is_some()).count();
            assert_eq!(some, truth.len(), "{filter}: {truth:?}");
            for (name, stat) in rows {
                let (Some(stat), Some(nanos)) = (stat, truth.get(name)) else {
                    continue;
                };
                let sum: u64 = nanos.iter().sum();
                let found = (stat.calls, stat.total, stat.min, stat.max);
                assert_eq!(
                    found,
                    (nanos.len() as u64, sum, nanos[0], nanos[nanos.len() - 1]),
                    "{filter}: {name}"
                );
                if let Some(median) = stat.quantiles.p50 {
                    let truth = nanos[(nanos.len() - 1) / 2];
                    assert!(
                        median.abs_diff(truth) <= truth / 64,
                        "{filter}: {name}: {median} {truth}"
                    );
                }
            }
        }
    }
}

const STEPS: u64 = 200_000;
const LONG: u64 = 50_000;

fn made(name: &str) -> std::path::PathBuf {
    let path = place(name).join("rec");
    make(
        &path,
        &Made {
            records: 2 * STEPS,
            long_every: LONG,
            ..Made::default()
        },
    );
    path
}

#[test]
fn what_passes_is_counted_in_the_recording() {
    let path = made("tally");
    let whole = Whole::read(&path);
    let merged = Merged::new(vec![&whole.recording]).unwrap();
    let mut scan = merged.scan();
    let none = |_: &str, _: &ApiCall| false;
    // Rows of which all launches or none pass are not counted: their sums are known.
    for (filter, truth, part) in [
        (
            "dur>100us",
            whole.truth(|_, one| one.span.duration() > 100_000, none),
            0.2,
        ),
        (
            "softmax dur>=2500ns",
            whole.truth(
                |name, one| name.contains("softmax") && one.span.duration() >= 2_500,
                none,
            ),
            1.0,
        ),
        (
            "dur>100us | qdly<1us",
            whole.truth(
                |_, one| one.span.duration() > 100_000 || one.span.begin - one.submit < 1_000,
                none,
            ),
            1.0,
        ),
        (
            "stream=0 !(dur<100us)",
            whole.truth(|_, one| one.span.duration() >= 100_000, none),
            0.2,
        ),
        ("dur=1s..2s", whole.truth(|_, _| false, none), 0.0),
        ("tid=4243", by_thread(&whole), 1.0),
        // Rows of kernels know their processes, those of operations do not.
        ("pid=4242", whole.truth(|_, _| false, |_, _| true), 1.0),
    ] {
        let counted = whole.counted(&mut scan, filter);
        whole.compare(&counted, &truth, filter);
        let read = counted.read as f64 / counted.blocks as f64;
        assert!(
            read <= part && counted.blocks > 50,
            "{filter}: {} of {}",
            counted.read,
            counted.blocks
        );
    }
    // The same without an index, as after a kill.
    let bytes = std::fs::read(segment(&path)).unwrap();
    std::fs::write(segment(&path), &bytes[..bytes.len() - 100]).unwrap();
    let mut scan = merged.scan();
    let truth = whole.truth(|_, one| one.span.duration() > 100_000, none);
    let counted = whole.counted(&mut scan, "dur>100us");
    whole.compare(&counted, &truth, "without an index");
    assert!(
        counted.read * 5 <= counted.blocks,
        "{} of {}",
        counted.read,
        counted.blocks
    );
}

/// Whether a copy passes.
type CopyTest = fn(&Copy) -> bool;

#[test]
fn copies_that_pass_are_counted_in_the_recording() {
    let path = place("tally-copies").join("rec");
    let made = Made {
        records: 2 * STEPS,
        long_copy_every: LONG,
        ..Made::default()
    };
    make(&path, &made);
    let whole = Whole::read(&path);
    let merged = Merged::new(vec![&whole.recording]).unwrap();
    let mut scan = merged.scan();
    let cases: [(&str, CopyTest, f64); 6] = [
        ("dur>100us", |copy| copy.span.duration() > 100_000, 0.2),
        ("h2d dur>100us", |copy| copy.span.duration() > 100_000, 0.2),
        ("dur<2200ns", |copy| copy.span.duration() < 2_200, 1.0),
        ("bw<1GB/s dir=h2d", |copy| copy.bytes < copy.span.duration(), 1.0),
        ("stream=0", |_| true, 1.0),
        ("d2h dur>100us", |_| false, 0.0),
    ];
    for (filter, passes, part) in cases {
        let counted = whole.counted(&mut scan, filter);
        let passing: Vec<&Copy> = whole.copies.iter().filter(|copy| passes(copy)).collect();
        let nanos: u64 = passing.iter().map(|copy| copy.span.duration()).sum();
        let bytes: u64 = passing.iter().map(|copy| copy.bytes).sum();
        let found = counted.tally.of_routes(&[0], Route::default()).unwrap_or_default();
        let sums = (found.stat.calls, found.stat.total, found.sizes.total, found.union.total);
        // One copy runs at a time.
        assert_eq!(sums, (passing.len() as u64, nanos, bytes, nanos), "{filter}");
        let read = counted.read as f64 / counted.blocks as f64;
        assert!(read <= part, "{filter}: {} of {}", counted.read, counted.blocks);
    }
    let path = path.to_str().unwrap();
    let long = whole
        .copies
        .iter()
        .filter(|copy| copy.span.duration() > 100_000)
        .count() as u64;
    assert!(long > 2, "{long}");
    let (code, text, errors) = told(&["summary", path, "--filter", "dur>100us", "--format", "json"]);
    assert_eq!(code, Some(0), "{errors}");
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(summary["totals"]["copies"], long, "{text}");
    assert_eq!(summary["copies"][0]["count"], long, "{text}");
    assert_eq!(summary["copies"][0]["is_estimate"], false, "{text}");
    let question = "top copies where dur>100us by count";
    let (code, text, errors) = told(&["ask", path, question, "--format", "csv"]);
    assert_eq!(code, Some(0), "{errors}");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let at = |name: &str| rows[0].iter().position(|column| *column == name).unwrap();
    assert_eq!(rows[1][at("Count")], long.to_string(), "{text}");
    assert_eq!(rows[1][at("Is_estimate")], "0", "{text}");
}

/// Launches and calls of the second thread.
fn by_thread(whole: &Whole) -> Durations {
    let mut found = Durations::default();
    let names = &whole.snapshot.names;
    let is_of = |thread| names.thread(thread).unwrap().tid == 4243;
    for (name, one) in whole.calls.iter().filter(|(_, one)| is_of(one.thread)) {
        found[1].entry(name.clone()).or_default().push(one.span.duration());
    }
    for (name, one) in whole.launches.iter().filter(|(_, one)| one.thread.is_some_and(is_of)) {
        found[0].entry(name.clone()).or_default().push(one.span.duration());
    }
    for nanos in found.iter_mut().flat_map(BTreeMap::values_mut) {
        nanos.sort_unstable();
    }
    found
}

#[test]
fn answers_of_large_recordings_are_no_estimates() {
    let recording = made("tally-ask");
    let path = recording.to_str().unwrap();
    let (code, text, errors) = told(&["ask", path, "top kernels where grid>64 dur>100us", "--format", "csv"]);
    assert_eq!(code, Some(0), "{errors}");
    let mut lines = text.lines();
    // Names may contain commas.
    let columns: Vec<&str> = lines.next().unwrap().split(',').skip(1).collect();
    let rows: Vec<Vec<&str>> = lines
        .map(|line| line.rsplit_once("\",").unwrap().1.split(',').collect())
        .collect();
    let sum = |name: &str| {
        let at = columns.iter().position(|column| *column == name).unwrap();
        rows.iter().map(|row| row[at].parse::<u64>().unwrap()).sum::<u64>()
    };
    assert_eq!((sum("Calls"), sum("Is_estimate")), (STEPS / LONG, 0), "{text}");
    let (code, text, errors) = told(&["summary", path, "--filter", "grid>64 dur>100us", "--format", "json"]);
    assert_eq!(code, Some(0), "{errors}");
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    let calls = summary["kernels"].as_array().unwrap().iter();
    assert_eq!(
        calls.map(|row| row["calls"].as_u64().unwrap()).sum::<u64>(),
        STEPS / LONG,
        "{text}"
    );
}
