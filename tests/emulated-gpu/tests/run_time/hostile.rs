//! Faults of hardware and drivers, as seen by a program that uses only HSA.

use std::collections::BTreeMap;
use std::fs;

use crate::rig::{INSTALLED, Release, compile, releases, run, scratch};

/// Output of `hostile.c` with these variables, by the first word of each line, and its log's rows.
struct Met {
    lines: BTreeMap<String, String>,
    log: Vec<String>,
}

impl Met {
    fn on(release: Release, variables: &[(&str, &str)]) -> Option<Self> {
        let name = variables.iter().map(|(name, value)| format!("{name}-{value}"));
        let place = scratch(&format!("hostile-{}-{}", release.0, name.collect::<String>()));
        let program = compile("hostile.c", &place, &["-lhsa-runtime64"])?;
        let mut command = release.command(&program);
        command.env("EMULATED_GPU_LOG", place.join("log.csv"));
        command.envs(
            variables
                .iter()
                .map(|(name, value)| (format!("EMULATED_GPU_{name}"), value)),
        );
        let output = run(command, &place);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        let lines = pairs.map(|(name, rest)| (name.to_owned(), rest.to_owned())).collect();
        let log = fs::read_to_string(place.join("log.csv")).unwrap();
        println!(
            "{} {variables:?}: {text}{}",
            release.0,
            String::from_utf8_lossy(&output.stderr)
        );
        Some(Self {
            lines,
            log: log.lines().map(str::to_owned).collect(),
        })
    }

    /// Milliseconds until a signal changed; `None` if it did not.
    fn ms(&self, name: &str) -> Option<f64> {
        let number: f64 = self.lines.get(name)?.parse().unwrap();
        (number >= 0.0).then_some(number)
    }

    fn rows(&self, kind: &str, name: &str) -> usize {
        let is_meant = |row: &&String| row.starts_with(&format!("{kind},")) && row.contains(name);
        self.log.iter().filter(is_meant).count()
    }
}

#[test]
fn without_faults_all_signals_arrive_and_evictions_are_logged() {
    for release in releases() {
        let Some(met) = Met::on(release, &[]) else { return };
        for name in ["rocr", "pool", "cached", "file", "busy"] {
            assert!(met.ms(name).is_some(), "{}: {name}", release.0);
        }
        assert!(met.lines["mapping"].starts_with("rw-p"), "{}", met.lines["mapping"]);
        assert_eq!(met.rows("lost", "") + met.rows("late", ""), 0);
        // Plain fine-grained memory lacks the driver's flag.
        assert_eq!(met.rows("cacheable", ""), 1);
        assert_eq!((met.rows("eviction", ",idle,"), met.rows("eviction", ",busy,")), (1, 1));
    }
}

#[test]
fn signals_of_one_kind_are_lost_and_those_of_rocr_are_not() {
    for release in releases() {
        let Some(met) = Met::on(release, &[("LOST_SIGNALS", "foreign")]) else {
            return;
        };
        assert!(met.ms("rocr").is_some(), "{}", release.0);
        assert_eq!((met.ms("pool"), met.ms("file")), (None, None), "{}", release.0);
        assert_eq!(met.rows("lost", ""), 4);
        let met = Met::on(release, &[("LOST_SIGNALS", "file")]).unwrap();
        assert!(met.ms("rocr").is_some() && met.ms("pool").is_some());
        assert_eq!((met.ms("file"), met.rows("lost", "")), (None, 1));
    }
}

#[test]
fn late_signals_arrive_after_five_milliseconds() {
    for release in releases() {
        let Some(met) = Met::on(release, &[("LATE_SIGNALS", "foreign")]) else {
            return;
        };
        assert!(met.ms("pool").unwrap() >= 4.9 && met.ms("file").unwrap() >= 4.9);
    }
}

#[test]
fn a_shared_pool_is_mapped_shared_and_works() {
    for release in releases() {
        let Some(met) = Met::on(release, &[("POOLS", "shared")]) else {
            return;
        };
        let mapping = &met.lines["mapping"];
        assert!(
            mapping.starts_with("rw-s") && mapping.ends_with("/dev/zero (deleted)"),
            "{mapping}"
        );
        assert!(
            ["rocr", "pool", "file", "busy"]
                .iter()
                .all(|name| met.ms(name).is_some())
        );
    }
}

#[test]
fn a_busy_gpu_holds_packets_back() {
    for release in releases() {
        // From the time when the driver was opened, so a start that takes long must be over before.
        let Some(met) = Met::on(release, &[("BUSY_MS", "3000")]) else {
            return;
        };
        assert!(met.ms("rocr").unwrap() > 100.0, "{}", release.0);
        assert!(met.ms("pool").is_some());
    }
}

#[test]
fn a_failed_eviction_of_a_busy_queue_stops_it_for_ever() {
    for release in releases() {
        let Some(met) = Met::on(release, &[("EVICTION", "hang")]) else {
            return;
        };
        assert!(met.ms("file").is_some() && met.ms("busy").is_none(), "{}", release.0);
        assert!(met.lines.contains_key("busy"));
        // Newer run-times receive the reset, and abort.
        let met = Met::on(release, &[("EVICTION", "reset")]).unwrap();
        assert!(met.ms("file").is_some() && met.ms("busy").is_none(), "{}", release.0);
        assert_eq!(met.lines.contains_key("busy"), release == INSTALLED, "{}", release.0);
        let met = Met::on(release, &[("EVICTION", "stop")]).unwrap();
        assert!(met.ms("busy").is_some());
    }
}

#[test]
fn memory_that_the_gpu_caches_is_seen_late_or_never() {
    for release in releases() {
        let Some(met) = Met::on(release, &[("CACHEABLE", "late")]) else {
            return;
        };
        assert!(met.ms("cached").unwrap() >= 4.9, "{}", release.0);
        let met = Met::on(release, &[("CACHEABLE", "never")]).unwrap();
        assert_eq!(met.ms("cached"), None, "{}", release.0);
        for name in ["rocr", "pool", "file", "busy"] {
            assert!(met.ms(name).is_some(), "{}: {name}", release.0);
        }
    }
}
