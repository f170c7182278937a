//! Recordings made by a liar, with checksums that are right: no panic, no memory by their word.
//!
//! The changes are those of the fuzzer (`fuzz/`), whose kept inputs are replayed here, and random ones:
//! `ROCTOP_HOSTILE=100000` does more of them.

#[path = "../../fuzz/input.rs"]
mod input;

use input::{Honest, files, look};
use std::collections::BTreeMap;
use std::path::PathBuf;

struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("roctop-hostile-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Self(dir)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Where files are written: on tmpfs, which need not be waited for.
fn out() -> PathBuf {
    let shm = PathBuf::from("/dev/shm");
    let place = if shm.is_dir() { shm } else { std::env::temp_dir() };
    place.join(format!(
        "roctop-hostile-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ))
}

#[test]
fn the_kept_inputs_of_the_fuzzer_are_survived() {
    let place = TestDir::new("kept");
    let honest = Honest::make(&place.0);
    let all = files(&place.0, &out());
    assert!(all >= 48, "{all} files of a recording with everything in it");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/recording");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        honest.write(&place.0, &std::fs::read(entry.unwrap().path()).unwrap());
        look(&place.0);
        files(&place.0, &out());
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn random_changes_are_survived() {
    let place = TestDir::new("random");
    let honest = Honest::make(&place.0);
    let rounds: u64 = std::env::var("ROCTOP_HOSTILE")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1000);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut faults = BTreeMap::<String, Vec<u8>>::new();
    for round in 0..rounds {
        let mut changes = Vec::new();
        for _ in 0..=round % 12 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            changes.extend_from_slice(&random.to_le_bytes());
        }
        honest.write(&place.0, &changes);
        // Files take longer than looking.
        let all = || {
            look(&place.0);
            if round % 8 == 0 {
                files(&place.0, &out());
            }
        };
        if let Err(fault) = std::panic::catch_unwind(all) {
            let text = fault.downcast_ref::<String>().cloned();
            let text = text.or_else(|| fault.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            faults.entry(text.unwrap_or_default()).or_insert(changes);
        }
    }
    assert!(faults.is_empty(), "{faults:?}");
}
