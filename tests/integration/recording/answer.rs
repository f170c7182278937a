//! What is asked of recordings: cuts, several as one, comparisons, thresholds.

use super::{counts, load, segment, told};
use crate::kit::directory::place;
use crate::kit::made;
use crate::kit::made::{Made, make};
use crate::kit::records::{parquet_number, parquet_rows};
use crate::kit::table::Table;
use roctop::export::run::Run;
use roctop::item::{ApiCall, ProcessId, Span};
use roctop::model::{Fresh, Options, Store};
use roctop::recording::{Merged, Recording};
use std::collections::HashSet;
use std::path::Path;

#[test]
fn a_cut_holds_what_ended_in_its_time_and_its_launches() {
    let place = place("cut");
    let (whole, part) = (place.join("whole"), place.join("part"));
    make(
        &whole,
        &Made {
            records: 40_000,
            ..Made::default()
        },
    );
    let words = [
        "cut",
        whole.to_str().unwrap(),
        "--range",
        "10ms..20ms",
        "-o",
        part.to_str().unwrap(),
    ];
    let (code, _, errors) = told(&words);
    assert_eq!(code, Some(0), "{errors}");
    let first = Recording::open(&whole).unwrap().span().unwrap().unwrap().begin;
    let (from, to) = (first + 10_000_000, first + 20_000_000);
    let ((all, _), (some, replay)) = (load(&whole), load(&part));
    assert!(replay.finished);
    let has_ended = |span: Span| span.end > from && span.end <= to;
    let expected = all.dispatches.iter().filter(|one| has_ended(one.span)).count();
    assert_eq!(some.dispatches.len(), expected);
    // Each kernel has its launch. Those that did not end in this time are not counted.
    let of = |run: &Run| run.calls.iter().map(|call| call.correlation).collect::<HashSet<_>>();
    let (known, taken) = (of(&all), of(&some));
    let launches = some.dispatches.iter().map(|one| one.correlation);
    let launches = launches.chain(some.copies.iter().map(|one| one.correlation));
    let launches: HashSet<u64> = launches.filter(|id| known.contains(id)).collect();
    assert!(launches.is_subset(&taken) && !launches.is_empty());
    let (ended, along): (Vec<&ApiCall>, Vec<&ApiCall>) = some.calls.iter().partition(|call| has_ended(call.span));
    assert_eq!(
        ended.len(),
        all.calls.iter().filter(|call| has_ended(call.span)).count()
    );
    assert!(!along.is_empty() && along.iter().all(|call| launches.contains(&call.correlation)));
    let recording = Recording::open(&part).unwrap();
    let mut store = Store::new(Options::default());
    let merged = Merged::new(vec![&recording]).unwrap();
    let read = merged.by_kind(None, &mut |_| (), &mut |output| store.take(&output.decoded()));
    read.unwrap();
    let totals = store.snapshot(Fresh::All).values.totals;
    assert_eq!(
        (totals.calls, totals.dispatches),
        (ended.len() as u64, some.dispatches.len() as u64)
    );
    assert!(!some.calls.is_empty() && some.calls.len() < all.calls.len());
    // The same rows as an export of that time has.
    for (recording, name, range) in [(&whole, "a", "10ms..20ms"), (&part, "b", "..")] {
        let words = [
            "export",
            recording.to_str().unwrap(),
            "-d",
            place.to_str().unwrap(),
            "-o",
            name,
            "--range",
            range,
        ];
        let (code, _, errors) = told(&words);
        assert_eq!(code, Some(0), "{errors}");
    }
    let rows = |name: &str| Table::read(&place.join(format!("{name}_kernel_trace.csv")));
    let times = |table: &Table| (table.numbers("Start_Timestamp"), table.numbers("End_Timestamp"));
    assert_eq!(times(&rows("a")), times(&rows("b")));
    let (from, to) = (part.to_str().unwrap(), place.to_str().unwrap());
    let (code, _, errors) = told(&["export", from, "-d", to, "--format", "parquet"]);
    assert_eq!(code, Some(0), "{errors}");
    let marks = parquet_rows(&place, "hip_api").into_iter();
    let marks: Vec<u64> = marks.map(|row| parquet_number(&row, "taken_along")).collect();
    let of = |mark: u64| marks.iter().filter(|known| **known == mark).count();
    assert_eq!((of(0), of(1)), (ended.len(), along.len()));
}

#[test]
fn ranks_of_several_machines_are_brought_to_one_clock() {
    let place = place("ranks");
    let offset = 77_000_000_000_000;
    let (a, b) = (place.join("run/rank-0"), place.join("run/rank-1"));
    std::fs::create_dir_all(place.join("run")).unwrap();
    let first = make(
        &a,
        &Made {
            rank: 0,
            ..Made::default()
        },
    );
    let other = Made {
        rank: 1,
        pid: 5000,
        host: "node8",
        boot_offset: offset,
        ..Made::default()
    };
    let second = make(&b, &other);
    // Both were made on this machine: make the second one say that it was another boot.
    let manifest = b.join("roctop.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let mut facts: serde_json::Value = serde_json::from_str(&text).unwrap();
    facts["boot"] = "another".into();
    facts["host"] = "node8".into();
    std::fs::write(&manifest, facts.to_string()).unwrap();
    let merged = place.join("merged");
    let words = [
        "merge",
        place.join("run").to_str().unwrap(),
        "-o",
        merged.to_str().unwrap(),
    ]
    .map(str::to_owned);
    let (code, _, errors) = told(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        errors.contains("clock of node8 moved by -77000000000000 ns") && errors.contains("give or take"),
        "{errors}"
    );
    let (run, replay) = load(&merged);
    assert!(replay.finished);
    assert_eq!(counts(&run).records(), first.records() + second.records());
    let ranks: Vec<_> = run
        .processes
        .iter()
        .map(|process| (process.pid, process.rank))
        .collect();
    assert_eq!(ranks, [(4242, Some(0)), (5000, Some(1))]);
    let begin = |process| {
        let calls = run.calls.iter().filter(|call| call.process == ProcessId(process));
        calls.map(|call| call.span.begin).min().unwrap()
    };
    assert!(begin(0).abs_diff(begin(1)) < 100, "both began at one time");
    let ends = run
        .dispatches
        .iter()
        .filter(|d| d.process == ProcessId(1))
        .map(|d| d.span.end);
    assert!(ends.max().unwrap() < made::BEGIN + 10_000_000_000);
    // A copy says where its records were made, not where it was copied.
    let part = place.join("part");
    let words = [
        "cut",
        b.to_str().unwrap(),
        "--range",
        "0ms..5ms",
        "-o",
        part.to_str().unwrap(),
    ];
    assert_eq!(told(&words).0, Some(0));
    let copy = Recording::open(&part).unwrap();
    assert_eq!((copy.host(), copy.boot()), ("node8", "another"));
    // An export of both is the same as one of the merged recording.
    let files = |paths: &[&Path], name: &str| {
        let out = place.join(name);
        let mut words = vec!["export"];
        words.extend(paths.iter().map(|path| path.to_str().unwrap()));
        words.extend(["-d", out.to_str().unwrap()]);
        assert_eq!(told(&words).0, Some(0));
        std::fs::read_to_string(out.join("5000_kernel_trace.csv")).unwrap()
    };
    assert_eq!(files(&[&a, &b], "out-both"), files(&[&merged], "out-merged"));
    let recordings = [Recording::open(&a).unwrap(), Recording::open(&b).unwrap()];
    assert_eq!(Merged::new(recordings.iter().collect()).unwrap().alignment().len(), 1);
}

#[test]
fn a_cut_without_records_does_not_say_that_its_program_was_not_recorded() {
    let place = place("cut-empty");
    let (whole, part) = (place.join("whole"), place.join("part"));
    // The first kernel ends after 2.0 ms, and the next call begins after 2.5 ms.
    let made = Made {
        records: 1000,
        slowness: 1000,
        ..Made::default()
    };
    make(&whole, &made);
    let (whole, part) = (whole.to_str().unwrap(), part.to_str().unwrap());
    let (code, _, errors) = told(&["cut", whole, "--range", "2.1ms..2.4ms", "-o", part]);
    assert_eq!(code, Some(0), "{errors}");
    let (code, text, errors) = told(&["summary", part]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("\n0 dispatches"), "{text}");
    assert!(
        text.contains("no records: nothing happened in this time") && !text.contains("tmpfs"),
        "{text}"
    );
}

#[test]
fn shares_are_of_all_kernels_with_and_without_a_filter() {
    let place = place("shares");
    let path = place.join("rec");
    make(&path, &Made::default());
    let path = path.to_str().unwrap();
    let share = |words: &[&str]| {
        let (code, text, errors) = told(words);
        assert_eq!(code, Some(0), "{errors}");
        let head = text.lines().find(|line| line.contains("% TIME"));
        assert!(head.is_some(), "{text}");
        let row = text.lines().find(|line| line.contains("softmax(")).unwrap();
        row.split_whitespace().nth(2).unwrap().to_owned()
    };
    let all = share(&["summary", path]);
    assert_eq!(share(&["summary", path, "--filter", "softmax"]), all);
    let (code, text, errors) = told(&["ask", path, "top kernels where softmax", "--format", "csv"]);
    assert_eq!(code, Some(0), "{errors}");
    let table: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.rsplit_once("\",").map_or(line, |row| row.1))
        .map(|line| line.split(',').collect())
        .collect();
    let at = table[0].iter().position(|name| *name == "Share").unwrap();
    let name_and_id = 1;
    let asked: f64 = table[1][at - name_and_id].parse().unwrap();
    assert_eq!(format!("{:.1}", asked * 100.0), all);
    assert!(asked > 0.1 && asked < 0.5, "{asked}");
}

#[test]
fn a_cut_outside_of_the_run_is_an_error_and_writes_nothing() {
    let place = place("cut-outside");
    let (whole, part) = (place.join("whole"), place.join("part"));
    make(&whole, &Made::default());
    let cut = |part: &Path| {
        let (whole, part) = (whole.to_str().unwrap(), part.to_str().unwrap());
        told(&["cut", whole, "--range", "5000s..", "-o", part])
    };
    let (code, _, errors) = cut(&part);
    assert_eq!(code, Some(1), "{errors}");
    let expected = "nothing was recorded in this --range: the records are from 0.000 s to 0.012 s";
    assert!(errors.contains(expected), "{errors}");
    assert!(!part.exists());
    // The same without an index, as after a kill.
    let bytes = std::fs::read(segment(&whole)).unwrap();
    std::fs::write(segment(&whole), &bytes[..bytes.len() - 100]).unwrap();
    let (code, _, errors) = cut(&part);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains(expected) && !part.exists(), "{errors}");
}

#[test]
fn gauges_of_two_machines_stay_apart_also_where_their_gpus_have_the_same_place() {
    let place = place("gauges");
    let (a, b) = (place.join("a"), place.join("b"));
    for (path, rank, pid, records) in [(&a, 0, 4242, 1000), (&b, 1, 5000, 3000)] {
        let made = Made {
            rank,
            pid,
            records,
            counters: 1,
            ..Made::default()
        };
        make(path, &made);
    }
    let devices = |paths: &[&Path]| {
        let recordings: Vec<_> = paths.iter().map(|path| Recording::open(path).unwrap()).collect();
        let mut store = Store::new(Options::default());
        Merged::new(recordings.iter().collect())
            .unwrap()
            .items(None, &mut |_| (), &mut |items| store.apply_all(&items))
            .unwrap();
        let snap = store.snapshot(Fresh::All);
        snap.values.gauges.devices.len()
    };
    let exported = |paths: &[&Path], name: &str, file: &str| {
        let out = place.join(name);
        let mut words = vec!["export"];
        words.extend(paths.iter().map(|path| path.to_str().unwrap()));
        words.extend(["-d", out.to_str().unwrap()]);
        assert_eq!(told(&words).0, Some(0));
        std::fs::read_to_string(out.join(file)).unwrap_or_default()
    };
    assert_eq!(devices(&[&a, &b]), 1, "recordings of one boot are of one machine");
    let together = exported(&[&a, &b], "one-boot", "4242_gauges.csv");
    let manifest = b.join("roctop.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let mut facts: serde_json::Value = serde_json::from_str(&text).unwrap();
    facts["boot"] = "another".into();
    std::fs::write(&manifest, facts.to_string()).unwrap();
    let merged = place.join("merged");
    let words = [
        "merge",
        a.to_str().unwrap(),
        b.to_str().unwrap(),
        "-o",
        merged.to_str().unwrap(),
    ];
    assert_eq!(told(&words).0, Some(0));
    let (again, twice) = (format!("{}/.", a.display()), place.join("twice"));
    let words = [&words[..3], &[&again, "-o", twice.to_str().unwrap()]].concat();
    let (code, _, errors) = told(&words);
    assert_eq!((code, twice.exists()), (Some(1), false), "{errors}");
    assert!(errors.contains("is named twice"), "{errors}");
    assert_eq!((devices(&[&a, &b]), devices(&[&merged])), (2, 2));
    for (one, file) in [(&a, "4242_gauges.csv"), (&b, "5000_gauges.csv")] {
        let alone = exported(&[one], "alone", file);
        assert!(alone.lines().count() > 1, "{alone}");
        assert_eq!(exported(&[&a, &b], "both", file), alone);
        assert_eq!(exported(&[&merged], "merged-out", file), alone);
        assert!(together.lines().count() > alone.lines().count());
    }
}

#[test]
fn a_comparison_tells_change_from_noise() {
    let place = place("diff");
    let (a, b, c) = (place.join("a"), place.join("b"), place.join("c"));
    make(&a, &Made::default());
    make(
        &b,
        &Made {
            slowness: 2,
            ..Made::default()
        },
    );
    make(
        &c,
        &Made {
            records: 9000,
            ..Made::default()
        },
    );
    let verdicts = |after: &Path| {
        let (code, out, errors) = told(&["diff", a.to_str().unwrap(), after.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{errors}");
        let rows = out.lines().skip_while(|line| !line.contains("VERDICT")).skip(1);
        let words = rows.filter_map(|row| row.split_whitespace().next().map(str::to_owned));
        words.take(4).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&b), ["slower"; 4]);
    assert_eq!(verdicts(&c), ["noise"; 4]);
}

#[test]
fn thresholds_end_with_code_3() {
    let path = place("threshold").join("rec");
    make(&path, &Made::default());
    let path = path.to_str().unwrap();
    let run = |expressions: &[&str]| {
        let mut words = vec!["summary", path, "--format", "json"];
        words.extend(expressions.iter().flat_map(|text| ["--fail-if", *text]));
        told(&words)
    };
    assert_eq!(
        run(&["p99(gemm) > 2ms", "lost > 0", "errors(hipMemcpy) > 0"]).0,
        Some(0)
    );
    let (code, out, errors) = run(&["p99(GEMM) > 2us"]);
    assert_eq!(code, Some(3));
    assert!(
        errors.contains("failed: p99(GEMM) > 2us: ") && errors.lines().count() == 1,
        "{errors}"
    );
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["schema"], 1);
    // What cannot be read was typed wrong; what compares nothing that was recorded fails.
    for (wrong, word, ends) in [("p99(nothing) > 1s", "'nothing'", 1), ("p99(gemm) > x", "'x'", 2)] {
        let (code, _, errors) = run(&[wrong]);
        assert_eq!(code, Some(ends));
        assert!(errors.contains(word) && errors.lines().count() == 1, "{errors}");
    }
}
