//! Recordings that are cut off, damaged, or none.

use super::{counts, load, segment, told};
use crate::kit::directory::place;
use crate::kit::made::{Made, make};
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
    }
    assert_eq!(last, made.records());
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
            // The index's own block may be the one that is hit.
            if replay.missing > 0 {
                losses += 1;
                assert_eq!(found + replay.missing, made.records(), "byte {at}");
                assert!(run.lost[&(ProcessId(0), LossReason::Damaged)] == replay.missing);
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
