use super::check_on;
use crate::kit::rig::{Recorded, Rig, is_newest, rig};
use roctop_ring::record::flag;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn what_goes_to_the_background_is_recorded_to_its_end() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("background");
    let recording = place.join("rec");
    let mut command = rig.command(
        &place,
        &["record", "-o", recording.to_str().unwrap()],
        &["fork_exec", "--background"],
    );
    let output = Rig::ended(&mut command);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("go on in the background: 1;"), "{errors}");
    let name = errors
        .split("roctop attach ")
        .nth(1)
        .and_then(|rest| rest.split('\'').next());
    // The second roctop takes the session away when it is done; it may be already.
    let session = roctop::session::find(name.unwrap());
    let started = Instant::now();
    while session.as_ref().is_ok_and(|session| session.exists()) {
        assert!(started.elapsed() < Duration::from_mins(1), "the session is never over");
        std::thread::sleep(Duration::from_millis(50));
    }
    let recorded = Recorded::load(&place, output);
    recorded.check_dispatches();
    let run = &recorded.run;
    let ticks = run.dispatches.iter().filter(|d| recorded.kernel(d).contains("tick"));
    assert_eq!(ticks.count(), 50);
    recorded.check_copies();
    recorded.check_correlation();
    recorded.check_lost();
}

#[test]
fn a_run_is_over_when_its_last_child_is() {
    let Some(rig) = rig() else { return };
    let recorded = rig.record("children", &["fork_exec"]);
    assert_eq!(recorded.output.status.code(), Some(0));
    let mut summary = Command::new(env!("CARGO_BIN_EXE_roctop"));
    let output = summary.arg("summary").arg(recorded.place.join("rec")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.lines().next().unwrap().contains("(exit 0)"), "{said}");
}

/// The program kills itself where /dev/shm is a tmpfs of 64 MiB of its own, `taken` of them by others; none where that may
/// not be mounted.
fn killed_in_a_container(name: &str, taken: &str) -> Option<Recorded> {
    let rig = rig()?;
    // Not without root, nor where the root directory is no mount of its own.
    if !Command::new("unshare")
        .args(["--mount", "true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        println!("n/a: no mounts of one's own are to be had here");
        return None;
    }
    let place = Rig::place(name);
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let inner = rig.command(&place, &options, &["crash_mid", "kill"]);
    // What the rig preloads is for the program alone.
    let script = format!(
        "mount -t tmpfs -o size=64m tmpfs /dev/shm && head -c {taken} /dev/zero > /dev/shm/other || exit 79\n\
         LD_PRELOAD=\"$OURS\" exec \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    for (key, value) in inner.get_envs() {
        let key = if key == "LD_PRELOAD" { "OURS".as_ref() } else { key };
        command.env(key, value.unwrap_or_default());
    }
    let output = Rig::ended(command.current_dir(&place).stdin(Stdio::null()));
    if output.status.code() == Some(79) {
        println!("n/a: a tmpfs cannot be mounted here");
        return None;
    }
    Some(Recorded::load(&place, output))
}

#[test]
fn in_a_containers_shared_memory_kernels_survive_a_kill_or_a_note_says_that_they_may_not() {
    const NOTE: &str = "kernels that complete just before a kill -9 may be lost: no room";
    for (taken, is_kept) in [("0", true), ("60M", false)] {
        let Some(recorded) = killed_in_a_container(&format!("container-{taken}"), taken) else {
            return;
        };
        assert_eq!(recorded.output.status.signal(), Some(9), "{:?}", recorded.output);
        let is_told = recorded.said.iter().any(|text| text.contains(NOTE));
        let (missing, all) = recorded.missing_at_the_end(Duration::from_millis(2));
        println!("{taken} taken: {all} dispatches logged, {missing} missing at the end, told {is_told}");
        assert!(all > 1000 && (missing == 0 || is_told), "{missing} are missing");
        // One queue has room in the one, none in the other.
        assert!(is_kept || is_told, "{:?}", recorded.said);
    }
}

#[test]
fn a_tmpfs_that_fills_while_a_queue_is_used_costs_no_kernel() {
    let Some(rig) = rig() else { return };
    let rig = rig.with_a_tmpfs_that_fills();
    // Before the first queue has a file, and in the middle of its slots.
    for requests in ["0", "4"] {
        let place = Rig::place(&format!("filling-{requests}"));
        let recording = place.join("rec");
        let options = ["record", "-o", recording.to_str().unwrap()];
        let mut command = rig.command(&place, &options, &["many_streams", "1", "2", "20000"]);
        let recorded = Recorded::load(&place, Rig::ended(command.env("FULL_AFTER", requests)));
        assert!(recorded.output.status.success(), "{:?}", recorded.output);
        recorded.check_lost();
        assert!(recorded.check_dispatches() >= 20_000);
        let is_told = recorded
            .said
            .iter()
            .any(|text| text.starts_with("level 1, ") && text.contains("tmpfs"));
        assert!(is_told, "{:?}", recorded.said);
    }
}

#[test]
fn what_is_in_flight_stays_in_plain_memory_when_that_is_asked_for() {
    let Some(rig) = rig() else { return };
    let place = Rig::place("no-flight");
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    for (value, is_off) in [("1", true), ("", false)] {
        let _ = std::fs::remove_dir_all(&recording);
        let mut command = rig.command(&place, &options, &["matrix_transpose", "2"]);
        let recorded = Recorded::load(&place, Rig::ended(command.env("ROCTOP_NO_FLIGHT_FILES", value)));
        recorded.check_lost();
        let told = recorded
            .said
            .iter()
            .any(|text| text.starts_with("level 1, ") && text.contains("ROCTOP_NO_FLIGHT_FILES"));
        assert_eq!(told, is_off, "{:?}", recorded.said);
        assert!(recorded.run.dispatches.len() >= 4);
    }
}

/// What programs do beside HIP, with a number where one is needed.
const HABITS: [&[&str]; 14] = [
    &["small_stacks", "16"],
    &["alarm_clock", "1000"],
    &["few_files", "64"],
    &["no_files"],
    &["no_streams"],
    &["spawns"],
    &["elsewhere"],
    &["locked"],
    &["secret"],
    &["contexts"],
    &["forks_in_threads"],
    &["address_space", "512"],
    &["small_files"],
    &["no_environment"],
];

#[test]
fn what_programs_do_beside_hip_is_not_in_their_way_and_they_are_recorded_as_they_happened() {
    let Some(rig) = rig() else { return };
    for habit in HABITS {
        // 16 KiB are less than the thread-local memory of HIP 7.15, untraced too.
        let habit = match habit {
            ["small_stacks", _] if is_newest() => &["small_stacks", "64"],
            _ => habit,
        };
        check_on(rig, &format!("habit-{}", habit[0]), &[&["habits"], habit].concat());
    }
}

#[test]
fn calls_of_threads_that_may_make_no_file_are_counted_once_each_and_their_work_is_recorded() {
    let Some(rig) = rig() else { return };
    let recorded = rig.record("no-opening", &["habits", "no_opening"]);
    assert!(recorded.output.status.success(), "{:?}", recorded.output);
    recorded.check_dispatches();
    recorded.check_copies();
    let said = String::from_utf8_lossy(&recorded.output.stdout).into_owned();
    let made = said
        .split("calls: ")
        .nth(1)
        .and_then(|rest| rest.trim().parse::<u64>().ok());
    let missing = made.unwrap() - recorded.run.calls.len() as u64;
    let lost: u64 = recorded.run.lost.values().sum();
    println!("no-opening: {missing} calls are missing, {lost} records counted as lost");
    // Beside its calls each thread loses some records of memory and streams; twice as many would be calls counted twice.
    assert!(
        missing > 1000 && missing <= lost && lost < missing + missing / 4,
        "{missing} {lost}"
    );
    let why = "the program may open no file any more";
    assert!(
        recorded.said.iter().any(|line| line.contains(why)),
        "{:?}",
        recorded.said
    );
}

#[test]
fn kernels_of_a_program_that_is_replaced_in_its_first_moments_have_their_times() {
    let Some(rig) = rig() else { return };
    for round in 0..4 {
        let recorded = rig.record(&format!("replaced-{round}"), &["habits", "replaced"]);
        assert!(recorded.output.status.success(), "{:?}", recorded.output);
        recorded.check_lost();
        let dispatches = &recorded.run.dispatches;
        let untimed = dispatches.iter().filter(|d| d.flags & flag::UNTIMED != 0).count();
        let suspect = dispatches.iter().filter(|d| d.flags & flag::SUSPECT_TIME != 0).count();
        println!(
            "replaced: {} dispatches, {untimed} of them without times, {suspect} with suspect ones",
            dispatches.len()
        );
        assert!(dispatches.len() >= 400 && untimed == 0);
    }
}
