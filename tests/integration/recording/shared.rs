//! Several recordings of one process, as cuts of one recording are: together they count each record once.

use super::{counts, load, told};
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use crate::kit::rig::rig;
use roctop::export::run::Run;
use roctop::item::Span;
use roctop::recording::{Merged, Recording};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Cuts of a recording at these times, ns after its beginning.
fn cuts(whole: &Path, spans: &[(&str, &str)]) -> Vec<PathBuf> {
    let place = whole.parent().unwrap();
    let cut = |(number, (from, to)): (usize, &(&str, &str))| {
        let part = place.join(format!("part-{number}"));
        let range = format!("{from}..{to}");
        let words = ["cut", text(whole), "--range", &range, "-o", text(&part)];
        let (code, _, errors) = told(&words);
        assert_eq!(code, Some(0), "{errors}");
        part
    };
    spans.iter().enumerate().map(cut).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn merge(parts: &[PathBuf], into: &Path) -> String {
    let mut words = vec!["merge", "-o", text(into)];
    words.extend(parts.iter().map(|part| text(part)));
    let (code, _, errors) = told(&words);
    assert_eq!(code, Some(0), "{errors}");
    errors
}

/// All exported files of a recording.
fn files(recording: &Path, name: &str) -> BTreeMap<String, String> {
    let out = recording.parent().unwrap().join(name);
    let words = ["export", text(recording), "--format", "csv,json", "-d", text(&out)];
    let (code, _, errors) = told(&words);
    assert_eq!(code, Some(0), "{errors}");
    let entries = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            // The files also say where they were written.
            let content = std::fs::read_to_string(&path).unwrap().replace(text(&out), "");
            (file, content)
        })
        .collect()
}

fn assert_same_files(whole: &Path, merged: &Path) {
    let (of_whole, of_merged) = (files(whole, "out-whole"), files(merged, "out-merged"));
    assert!(of_whole.len() > 3);
    assert!(of_whole.keys().eq(of_merged.keys()), "{:?}", of_merged.keys());
    for (file, content) in &of_whole {
        assert!(of_merged[file] == *content, "{file} differs");
    }
}

#[test]
fn adjacent_cuts_merge_to_the_whole() {
    let whole = place("shared-adjacent").join("whole");
    let made = Made {
        records: 40_000,
        created: 7,
        counters: 1,
        marks: true,
        ..Made::default()
    };
    let all = make(&whole, &made);
    // Adjacent, in any order, and with much in common.
    for (name, spans) in [
        ("adjacent", vec![("", "3ms"), ("3ms", "9ms"), ("9ms", "")]),
        ("turned", vec![("3ms", ""), ("", "3ms")]),
        ("overlapping", vec![("", "8ms"), ("4ms", "12ms"), ("2ms", "")]),
    ] {
        let parts = cuts(&whole, &spans);
        let several: u64 = parts.iter().map(|part| counts(&load(part).0).records()).sum();
        let merged = whole.with_file_name(name);
        merge(&parts, &merged);
        let (run, replay) = load(&merged);
        assert!(several > counts(&run).records(), "no record is in two cuts");
        assert_eq!(counts(&run).records() + all.values, all.records(), "{name}");
        assert_eq!((run.processes.len(), replay.finished, replay.repeats), (1, true, None));
        assert_same_files(&whole, &merged);
        for part in parts {
            std::fs::remove_dir_all(part).unwrap();
        }
    }
}

#[test]
fn losses_of_cuts_count_once() {
    let whole = place("shared-lost").join("whole");
    let made = Made {
        created: 7,
        lost: 41,
        ..Made::default()
    };
    make(&whole, &made);
    let parts = cuts(&whole, &[("", "3ms"), ("3ms", "")]);
    let merged = whole.with_file_name("merged");
    merge(&parts, &merged);
    let lost = |recording: &Path| Recording::open(recording).unwrap().losses().unwrap();
    assert_eq!(lost(&whole).values().sum::<u64>(), 41);
    assert_eq!(lost(&merged), lost(&whole));
}

#[test]
fn several_recordings_of_a_process_say_that_they_repeat() {
    let whole = place("shared-said").join("whole");
    let made = Made {
        created: 7,
        ..Made::default()
    };
    make(&whole, &made);
    let parts = cuts(&whole, &[("", "3ms"), ("3ms", "")]);
    let both = [text(&parts[0]), text(&parts[1])];
    let (code, _, errors) = told(&["summary", both[0], both[1]]);
    assert!(
        code == Some(0) && errors.contains("counts twice ('roctop merge'"),
        "{errors}"
    );
    let (_, _, errors) = told(&["summary", both[0]]);
    assert!(!errors.contains("twice"), "{errors}");
}

#[test]
fn record_numbers_that_start_again_are_kept_apart() {
    let place = place("shared-wrapped");
    let part = |name: &str, begin: u64| {
        let path = place.join(name);
        let made = Made {
            created: 7,
            records: 1000,
            later: begin,
            ..Made::default()
        };
        (make(&path, &made).records(), path)
    };
    // The same numbers of the same rings, ten minutes later.
    let ((first, a), (second, b)) = (part("a", 0), part("b", 600_000_000_000));
    let merged = place.join("merged");
    let errors = merge(&[a, b], &merged);
    assert_eq!(counts(&load(&merged).0).records(), first + second);
    assert!(
        errors.contains(&format!("so {second} records may be in the copy twice")),
        "{errors}"
    );
}

#[test]
fn cuts_of_a_real_program_merge_to_the_whole() {
    let Some(rig) = rig() else { return };
    let recorded = rig.record("shared-real", &["streams"]);
    let whole = recorded.place.join("rec");
    let begin = {
        let opened = [Recording::open(&whole).unwrap()];
        let all = Merged::new(opened.iter().collect()).unwrap();
        all.beginning().unwrap().unwrap()
    };
    let longest = |spans: &mut dyn Iterator<Item = Span>| {
        let span = spans.max_by_key(|span| span.duration()).unwrap();
        u64::midpoint(span.begin, span.end)
    };
    let kernels = |run: &Run| run.dispatches.iter().map(|dispatch| dispatch.span).collect::<Vec<_>>();
    let calls = |run: &Run| run.calls.iter().map(|call| call.span).collect::<Vec<_>>();
    // Inside a kernel and inside a call.
    let mut inside = [kernels(&recorded.run), calls(&recorded.run)].map(|spans| longest(&mut spans.into_iter()));
    inside.sort_unstable();
    let at = inside.map(|time| format!("{}ns", time - begin));
    let parts = cuts(&whole, &[("", &at[0]), (&at[0], &at[1]), (&at[1], "")]);
    // What crosses a cut belongs to the part in which it ended; a call may be in the other with the kernel that it launched.
    for (pair, time) in parts.windows(2).zip(inside) {
        let crosses = |span: &Span| span.begin < time && span.end > time;
        let (before, after) = (load(&pair[0]).0, load(&pair[1]).0);
        let mut spans = kernels(&after).into_iter().chain(calls(&after));
        assert!(spans.any(|span| crosses(&span)), "nothing crosses");
        assert!(!kernels(&before).iter().any(crosses));
    }
    let merged = recorded.place.join("merged");
    merge(&parts, &merged);
    assert_same_files(&whole, &merged);
}
