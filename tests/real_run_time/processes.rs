use crate::rig::{Recorded, Rig, rig};
use std::process::Command;
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
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("go on in the background: 1;"), "{errors}");
    let name = errors
        .split("roctop attach ")
        .nth(1)
        .and_then(|rest| rest.split('\'').next());
    let session = roctop::session::find(name.unwrap()).unwrap();

    // The second roctop takes the session away when it is done.
    let started = Instant::now();
    while session.exists() {
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
