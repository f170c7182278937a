//! Recordings that are cut off, damaged, or none.

use super::{counts, load, segment, told};
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
use crate::kit::terminal::Terminal;
use roctop::item::{LossReason, ProcessId};
use std::path::Path;
use std::process::Command;

#[test]
fn a_recording_that_is_cut_off_anywhere_opens_as_far_as_it_is_whole() {
    let path = place("cut-off").join("rec");
    let made = make(
        &path,
        &Made {
            records: 40_000,
            ..Made::default()
        },
    );
    let bytes = std::fs::read(segment(&path)).unwrap();
    let mut last = 0;
    for part in 0..=40 {
        let length = bytes.len() * part / 40;
        std::fs::write(segment(&path), &bytes[..length]).unwrap();
        let (run, replay) = load(&path);
        let found = counts(&run).records();
        assert!(
            found >= last && found <= made.records(),
            "{length} bytes: {found} records"
        );
        last = found;
        assert_eq!(replay.finished, part == 40, "{length} bytes");
        let is_unknown = run.lost.contains_key(&(ProcessId(0), LossReason::Uncounted));
        assert_eq!(is_unknown, part != 40, "{length} bytes");
    }
    assert_eq!(last, made.records());
}

#[test]
fn segments_that_are_missing_are_named() {
    let path = place("segments").join("rec");
    let made = make(
        &path,
        &Made {
            records: 400_000,
            most: Some(24 << 20),
            ..Made::default()
        },
    );
    let name = |number: u32| format!("segment-{number:06}.roctop");
    let mut last = 1;
    while path.join(name(last + 1)).exists() {
        last += 1;
    }
    assert!(last >= 4 && load(&path).1.absent.is_none(), "{last} segments");
    let words = |command: &str, more: &[&str]| {
        let words = [&[command, path.to_str().unwrap()], more].concat();
        let (code, out, errors) = told(&words);
        assert_eq!(code, Some(0), "{errors}");
        (out, errors)
    };
    let out = path.with_file_name("out");
    for (gone, expected) in [
        (vec![2], format!("the file {} is missing", name(2))),
        (vec![1], format!("the file {} is missing", name(1))),
        (vec![1, 3], format!("2 segments are missing, {} is the first", name(1))),
    ] {
        let away = |number: &u32| path.with_file_name(format!("away-{number}"));
        for number in &gone {
            std::fs::rename(path.join(name(*number)), away(number)).unwrap();
        }
        let (run, replay) = load(&path);
        assert!(counts(&run).records() < made.records() && replay.finished, "{expected}");
        assert!(run.lost.contains_key(&(ProcessId(0), LossReason::Uncounted)));
        let (table, errors) = words("summary", &[]);
        assert!(
            errors.contains(&expected) && table.contains("lost unknown"),
            "{errors}\n{table}"
        );
        let (_, errors) = words("export", &["-d", out.to_str().unwrap()]);
        assert!(errors.contains(&expected), "{errors}");
        // A copy has lost them, too.
        let copy = path.with_file_name("copy");
        words("cut", &["--range", "..", "-o", copy.to_str().unwrap()]);
        let (_, table, _) = told(&["summary", copy.to_str().unwrap()]);
        assert!(table.contains("lost unknown"), "{table}");
        std::fs::remove_dir_all(copy).unwrap();
        for number in &gone {
            std::fs::rename(away(number), path.join(name(*number))).unwrap();
        }
    }
}

#[test]
fn a_flipped_bit_costs_the_block_it_is_in_and_the_index_counts_its_records() {
    let path = place("flipped").join("rec");
    let made = make(
        &path,
        &Made {
            records: 40_000,
            ..Made::default()
        },
    );
    let files = [segment(&path), path.join("facts.roctop")];
    let mut losses = 0;
    for file in &files {
        let bytes = std::fs::read(file).unwrap();
        for part in 0..60 {
            let at = bytes.len() * part / 60 + part % 7;
            let mut wrong = bytes.clone();
            wrong[at] ^= 1 << (part % 8);
            std::fs::write(file, &wrong).unwrap();
            let (run, replay) = load(&path);
            assert_eq!(replay.damaged, 1, "byte {at}");
            assert!(replay.damaged_bytes > 0);
            let found = counts(&run).records();
            assert!(found <= made.records());
            let lost = |reason| run.lost.get(&(ProcessId(0), reason));
            if replay.missing > 0 {
                losses += 1;
                assert_eq!(found + replay.missing, made.records(), "byte {at}");
                assert_eq!(lost(LossReason::Damaged), Some(&replay.missing));
            }
            // The index's own block may be the one that is hit: then nothing says what is missing. Facts have no index.
            if lost(LossReason::Uncounted).is_none() {
                assert_eq!(found + replay.missing, made.records(), "byte {at}");
            }
        }
        std::fs::write(file, &bytes).unwrap();
    }
    assert!(losses > 20, "{losses}");
    let (code, _, errors) = {
        let mut wrong = std::fs::read(segment(&path)).unwrap();
        wrong[5000] ^= 1;
        std::fs::write(segment(&path), &wrong).unwrap();
        told(&["summary", path.to_str().unwrap()])
    };
    assert_eq!(code, Some(0));
    assert!(
        errors.contains("1 damaged range (") && errors.lines().count() == 1,
        "{errors}"
    );
}

#[test]
fn an_unknown_loss_is_reported_as_unknown_and_not_as_a_number() {
    let place = place("unknown-loss");
    let path = place.join("rec");
    make(
        &path,
        &Made {
            records: 40_000,
            ..Made::default()
        },
    );
    let rec = path.to_str().unwrap();
    let output = |words: &[&str]| {
        let (code, out, errors) = told(words);
        assert_eq!(code, Some(0), "{errors}");
        (out, errors)
    };
    let (whole, _) = output(&["summary", rec]);
    assert!(whole.contains("lost 0"), "{whole}");
    assert_eq!(told(&["summary", rec, "--fail-if", "lost > 0"]).0, Some(0));
    let bytes = std::fs::read(segment(&path)).unwrap();
    std::fs::write(segment(&path), &bytes[..bytes.len() / 2]).unwrap();
    let check = |rec: &str| {
        let (summary, _) = output(&["summary", rec]);
        assert!(summary.contains("lost unknown"), "{summary}");
        assert!(
            summary.contains("recording: lost unknown (a part of the recording is missing"),
            "{summary}"
        );
        let (_, _, errors) = told(&["summary", rec, "--fail-if", "lost > 0"]);
        assert!(errors.contains("lost is unknown"), "{errors}");
        assert_eq!(told(&["summary", rec, "--fail-if", "lost > 0"]).0, Some(3));
        let json = |words: &[&str]| serde_json::from_str::<serde_json::Value>(&output(words).0).unwrap();
        let summary = json(&["summary", rec, "--format", "json"]);
        assert_eq!(summary["totals"]["lost_is_at_least"], true);
        let answer = json(&["ask", rec, "status", "--format", "json"]);
        assert_eq!(answer["lost"]["at_least"], true, "{answer}");
        assert_eq!(answer["lost"]["by_reason"][0]["at_least"], true, "{answer}");
        let (table, _) = output(&["ask", rec, "top calls"]);
        assert!(table.contains(", lost unknown"), "{table}");
        let out = place.join("out");
        let _ = std::fs::remove_dir_all(&out);
        output(&["export", rec, "--format", "csv", "-d", out.to_str().unwrap(), "-o", "x"]);
        let incomplete = std::fs::read_to_string(out.join("x_incomplete.csv")).unwrap();
        assert!(incomplete.contains("records lost: unknown"), "{incomplete}");
    };
    check(rec);
    assert!(output(&["summary", rec]).1.contains("the recording has no end"));
    // A copy does not make it known.
    let copy = place.join("copy");
    output(&["merge", rec, "-o", copy.to_str().unwrap()]);
    check(copy.to_str().unwrap());
    assert!(
        !output(&["summary", copy.to_str().unwrap()])
            .1
            .contains("the recording has no end")
    );
}

#[test]
fn a_screen_shows_what_is_wrong_with_a_recording() {
    let place = place("wrong-on-screen");
    let path = place.join("rec");
    make(&path, &Made::default());
    let open = |columns: u16, rows: u16| {
        let words = ["open", path.to_str().unwrap()];
        Terminal::start(&place, columns, rows, &words, &[])
    };
    let whole = open(120, 36).shows("REPLAY");
    assert!(whole.contains("lost 0") && !whole.contains("NO END"), "{whole}");
    let bytes = std::fs::read(segment(&path)).unwrap();
    std::fs::write(segment(&path), &bytes[..bytes.len() / 2]).unwrap();
    for (columns, rows) in [(80, 24), (120, 36)] {
        let mut terminal = open(columns, rows);
        terminal.shows("NO END");
        // Numbers are drawn twice a second.
        terminal.shows("lost unknown");
        terminal.keys("A");
        terminal.shows("the recording has no end");
        terminal.keys("9");
        terminal.shows("lost unknown: a part of the recording");
    }
    std::fs::remove_file(path.join("facts.roctop")).unwrap();
    let mut terminal = open(120, 36);
    terminal.shows("NO NAMES");
    terminal.keys("A");
    terminal.shows("the file of facts is missing");
}

#[test]
fn what_is_missing_of_a_recording_is_told_in_a_line() {
    let place = place("missing");
    let path = place.join("rec");
    make(
        &path,
        &Made {
            records: 1000,
            ..Made::default()
        },
    );
    let out = place.join("out");
    let export = |place: &Path| {
        let words = ["export", "--format", "csv", "-d", out.to_str().unwrap()];
        told(&[&words[..], &[place.to_str().unwrap()]].concat())
    };
    let one_line = |(code, _, errors): (Option<i32>, String, String), expected: Option<i32>, word: &str| {
        assert_eq!(code, expected, "{errors}");
        assert!(errors.contains(word) && errors.lines().count() == 1, "{word}: {errors}");
    };
    one_line(export(&place.join("none")), Some(1), "there is no recording");
    std::fs::create_dir(place.join("empty")).unwrap();
    one_line(export(&place.join("empty")), Some(1), "no roctop.json in it");
    one_line(export(&path.join("roctop.json")), Some(1), "is a file");
    let topology = path.join("topology.json");
    let whole = std::fs::read(&topology).unwrap();
    std::fs::write(&topology, &whole[..whole.len() / 2]).unwrap();
    one_line(export(&path), Some(0), "topology.json is damaged");
    std::fs::write(&topology, whole).unwrap();
    let facts = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let facts = facts.filter(|file| file.file_name().unwrap().to_string_lossy().starts_with("facts"));
    for file in facts.collect::<Vec<_>>() {
        std::fs::remove_file(file).unwrap();
    }
    let summary = told(&["summary", path.to_str().unwrap()]);
    one_line(summary, Some(0), "the file of facts is missing");
}

#[test]
fn copies_of_a_damaged_recording_count_what_it_lost() {
    let place = place("damaged-copies");
    let path = place.join("rec");
    make(
        &path,
        &Made {
            records: 40_000,
            ..Made::default()
        },
    );
    let mut wrong = std::fs::read(segment(&path)).unwrap();
    wrong[5000] ^= 1;
    std::fs::write(segment(&path), &wrong).unwrap();
    let lost = |name: &str| {
        let (run, _) = load(&place.join(name));
        run.lost.get(&(ProcessId(0), LossReason::Damaged)).copied().unwrap_or(0)
    };
    let copy = |words: &[&str], from: &str, to: &str| {
        let (from, to) = (place.join(from), place.join(to));
        let names = [from.to_str().unwrap(), "-o", to.to_str().unwrap()];
        let (code, _, errors) = told(&[words, &names].concat());
        assert_eq!(code, Some(0), "{errors}");
    };
    copy(&["merge"], "rec", "merged");
    copy(&["cut", "--range", "0s..1h"], "rec", "part");
    copy(&["merge"], "merged", "again");
    assert!(lost("rec") > 100);
    for name in ["merged", "part", "again"] {
        assert_eq!(lost(name), lost("rec"), "{name}");
    }
}

#[test]
fn garbage_is_no_recording_and_never_a_fault() {
    let path = place("garbage").join("rec");
    make(
        &path,
        &Made {
            records: 1000,
            ..Made::default()
        },
    );
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(300_000)
    .collect();
    std::fs::write(segment(&path), &noise).unwrap();
    let (run, replay) = load(&path);
    assert_eq!((counts(&run).records(), replay.damaged), (0, 1));
    std::fs::write(path.join("roctop.json"), b"{\"format\": 99}").unwrap();
    let (code, _, errors) = told(&["summary", path.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(
        errors.contains("layout 99") && errors.contains("layouts 1 to 2"),
        "{errors}"
    );
    std::fs::write(path.join("roctop.json"), "{\"format\"").unwrap();
    let (code, _, errors) = told(&["export", path.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("roctop.json is damaged"), "{errors}");
    let (code, _, errors) = told(&["open", "/nowhere"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("there is no recording /nowhere"), "{errors}");
}

#[test]
fn a_pipe_among_the_segments_is_told_and_not_waited_for() {
    let path = place("pipe").join("rec");
    make(&path, &Made::default());
    let pipe = path.join("segment-000002.roctop");
    let status = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(status.success());
    let (code, _, told) = told(&["summary", path.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(told.contains("segment-000002.roctop is not a file"), "{told}");
}
