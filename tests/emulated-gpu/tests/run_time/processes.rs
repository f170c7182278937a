//! Forks, execs and ends of processes.

use std::fs;
use std::time::Duration;

use crate::rig::{INSTALLED, Release, compile, releases, scratch, succeed};
use crate::truth;

#[test]
fn each_process_of_a_family_has_its_own_log() {
    for release in releases() {
        let Some(program) = release.program("fork_exec") else {
            continue;
        };
        let place = scratch(&format!("family-{}", release.0));
        let mut command = release.command_with_children(&program);
        command.env("EMULATED_GPU_LOG", place.join("log.%p"));
        succeed(command, &place);
        let logs = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
        let logs = logs.filter(|path| path.to_string_lossy().contains("log."));
        let mut launches: Vec<usize> = logs
            .map(|path| truth::kernels(&truth::read(&path)).values().sum())
            .filter(|count| *count > 0)
            .collect();
        launches.sort_unstable();
        // Forked before HIP 10, exec'd 20, the parent 40. The process that left by _exit did not wait for its 30, and
        // may have made any number of them.
        for known in [10, 20, 40] {
            let place = launches.iter().position(|count| *count == known);
            launches.remove(place.unwrap_or_else(|| panic!("{}: no process with {known}", release.0)));
        }
        assert!(
            launches.len() <= 1 && launches.iter().all(|count| *count <= 30),
            "{}: {launches:?}",
            release.0
        );
    }
}

#[test]
fn a_killed_process_leaves_a_whole_log() {
    let Some(program) = INSTALLED.program("many_streams") else {
        return;
    };
    for round in 0..10 {
        let place = scratch(&format!("killed-{round}"));
        let log = place.join("log");
        let mut command = INSTALLED.command(&program);
        command.args(["4", "16", "10000000"]).env("EMULATED_GPU_LOG", &log);
        command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        while fs::metadata(&log).map_or(0, |metadata| metadata.len()) < 100_000 {
            assert!(child.try_wait().unwrap().is_none(), "ended by itself");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(7 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!truth::read(&log).is_empty());
    }
}

#[test]
fn two_programs_at_a_time_do_not_see_each_other() {
    let Some(program) = INSTALLED.program("memcpy_storm") else {
        return;
    };
    std::thread::scope(|scope| {
        for name in ["beside-1", "beside-2", "beside-3"] {
            let program = &program;
            scope.spawn(move || {
                let mut command = INSTALLED.command(program);
                command.args(["2", "1"]);
                succeed(command, &scratch(name));
            });
        }
    });
}

#[test]
fn hsa_can_be_started_again_when_it_has_ended() {
    let Some(program) = compile("restart.c", &scratch("restart"), &["-lhsa-runtime64"]) else {
        return;
    };
    // Only where the run-time compares event ages. Earlier ones can sleep forever when they destroy a queue: the thread
    // that answers sets the event while nobody waits, and consumes that set itself as it goes to sleep again. These are
    // the driver's rules (the first to enter takes a set); seen in logs of driver calls on 5.2.3.
    let by_age = |release: &Release| !matches!(release.0, "5.2.3" | "5.7.1");
    for release in releases().into_iter().filter(by_age) {
        let place = scratch(&format!("restart-{}", release.0));
        assert_eq!(
            succeed(release.command(&program), &place),
            "started 3 times\n",
            "{}",
            release.0
        );
    }
}
