//! The program runs as without roctop: exit codes, signals, input and output, environment; and what goes wrong says so.

mod limits;
mod loader;
mod missed;
mod recorded;
pub(crate) mod signals;

use crate::kit::directory::place;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn roctop() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    command.stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> Output {
    roctop().args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A path as the command line takes it.
fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn exit_codes_and_signals_are_the_programs_own() {
    for code in [0, 1, 3, 42, 255] {
        let output = run(&["--no-ui", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(output.status.code(), Some(code));
    }
    for signal in [1, 2, 6, 9, 11, 13, 15, 34, 37, 64] {
        let output = run(&["--no-ui", "sh", "-c", &format!("kill -{signal} $$")]);
        assert_eq!(output.status.signal(), Some(signal));
    }
}

#[test]
fn standard_input_and_output_are_the_programs_own() {
    let place = place("pipe");
    let mut command = roctop();
    command.args(["record", "-o", word(&place.join("rec")), "--", "cat"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through and through\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        ("through and through\n".into(), String::new())
    );
}

#[test]
fn a_signal_to_roctop_goes_to_the_program() {
    let script = "trap 'echo got it; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = roctop()
        .args(["--no-ui", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let told = Command::new("sh")
        .args(["-c", &format!("kill {}", child.id())])
        .status()
        .unwrap();
    assert!(told.success());
    line.clear();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!((line.as_str(), child.wait().unwrap().code()), ("got it\n", Some(7)));
}

#[test]
fn who_sent_the_signal_that_ended_the_program_is_told() {
    let ended = |script: &str| {
        let output = run(&["--no-ui", "--", "sh", "-c", script]);
        text(&output.stderr)
    };
    let foreign = ended("kill -TERM $$");
    assert!(foreign.contains("SIGTERM was not sent by roctop"), "{foreign}");
    let through = ended("kill -TERM $PPID; sleep 20");
    assert!(through.contains("SIGTERM came from process"), "{through}");
    assert!(through.contains("(sh); roctop passed it on"), "{through}");
    let own = ended("kill -SEGV $$");
    assert!(!own.contains("sent"), "{own}");
}

#[test]
fn the_version_says_what_the_binary_carries() {
    let said = text(&run(&["--version"]).stdout);
    let first = format!("roctop {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(said.lines().next(), Some(&*first));
    assert!(
        said.contains("collector: carried") && said.contains("counters: rocprofiler-sdk"),
        "{said}"
    );
    assert_eq!(text(&run(&["-V"]).stdout), format!("{first}\n"));
}

fn executable(path: &Path, content: &[u8]) -> PathBuf {
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path.to_owned()
}

#[test]
fn a_script_that_does_not_say_what_runs_it_is_run_as_a_shell_would() {
    let script = executable(&place("nameless").join("script"), b"echo \"$0 got $1\"; exit 5\n");
    let output = run(&["--no-ui", word(&script), "a word"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), format!("{} got a word\n", script.display()));
}

#[test]
fn a_home_that_is_closed_and_a_tmpdir_that_is_not_there_are_no_reason_to_refuse() {
    let place = place("closed-home");
    let home = place.join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    // To root no directory is closed, unless it has no capabilities and another owner's is meant.
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_roctop")]);
    if !rustix::process::getuid().is_root() {
        command = roctop();
    }
    command.args(["--no-ui", "sh", "-c", "exit 6"]).stdin(Stdio::null());
    command.env("HOME", &home).env("TMPDIR", place.join("nowhere"));
    for unset in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "ROCTOP_CONFIG"] {
        command.env_remove(unset);
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", text(&output.stderr));
}

#[test]
fn the_doctor_tells_on_one_screen_what_works() {
    let place = place("doctor");
    let mut command = roctop();
    let output = command
        .args(["doctor", "/bin/sh"])
        .env("XDG_CACHE_HOME", place.join("cache"))
        .output()
        .unwrap();
    let shown = text(&output.stdout);
    for subject in [
        "collector",
        "session",
        "clock",
        "terminal",
        "program",
        "HIP calls",
        "kernels",
        "markers",
        "counters",
        "trial",
        "clock error",
    ] {
        assert!(
            shown.lines().any(|line| line[6..].starts_with(subject)),
            "{subject}: {shown}"
        );
    }
    assert!(shown.contains("0 lost") && shown.lines().count() <= 24, "{shown}");
    assert_eq!(output.status.code(), Some(0), "{shown}");
}

#[test]
fn programs_that_cannot_be_started_are_told_as_env_tells_them() {
    let missing = run(&["--no-ui", "no-such-program-anywhere"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(text(&missing.stderr).contains("no-such-program-anywhere"));
    let empty = run(&["--no-ui", ""]);
    assert_eq!(empty.status.code(), Some(127));
    assert!(text(&empty.stderr).contains("name is empty"));
    let plain = run(&["--no-ui", "/etc/passwd"]);
    assert_eq!(plain.status.code(), Some(126));
    let garbage = executable(&place("garbage").join("garbage"), b"\0\x01\x02\x03");
    let refused = run(&["--no-ui", word(&garbage)]);
    assert_eq!(refused.status.code(), Some(126));
    assert!(
        text(&refused.stderr).contains("garbage could not be started"),
        "{}",
        text(&refused.stderr)
    );
    let flag = run(&["--nonsense", "ls"]);
    assert_eq!(flag.status.code(), Some(2));
    assert!(text(&flag.stderr).contains("--nonsense"));
}

#[test]
fn the_binary_alone_carries_everything() {
    let place = place("alone");
    let alone = place.join("roctop");
    // By another process: a child that another test starts meanwhile would keep the file open for writing.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_roctop"))
        .arg(&alone)
        .status();
    assert!(copied.unwrap().success());
    let mut command = Command::new(&alone);
    command
        .args(["demo", "--no-ui", "--seconds", "1"])
        .current_dir(&place)
        .env("XDG_CACHE_HOME", place.join("cache"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("lost 0") && said.contains("fmha_fwd"), "{said}");
}

#[test]
fn what_cannot_be_written_or_read_is_told_before_the_program_starts() {
    let place = place("errors");
    std::fs::write(place.join("file"), "in the way").unwrap();
    let marker = place.join("started");
    let touch = format!("touch {}", marker.display());
    for directory in [place.clone(), place.join("file"), place.join("file/below")] {
        let output = run(&["record", "-o", word(&directory), "--", "sh", "-c", &touch]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text(&output.stderr).contains(word(&directory)),
            "{}",
            text(&output.stderr)
        );
        assert!(!marker.exists(), "the program was not started");
    }
    let output = run(&["summary", word(&place)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("not a recording"));
}

#[test]
fn what_is_typed_wrong_is_told_before_the_program_starts_and_ends_with_2() {
    let place = place("typed-wrong");
    let marker = place.join("started");
    let touch = format!("touch {}", marker.display());
    for (options, said) in [
        (["--no-ui", "--filter", "dur>"], "--filter: "),
        (["--no-ui", "--app-io", "pty"], "--app-io pty: "),
        (["--no-ui", "--app-io", "pipe"], "--app-io pipe: "),
    ] {
        let output = roctop()
            .args(options)
            .args(["--", "sh", "-c", &touch])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        let told = text(&output.stderr);
        assert!(told.contains(said) && told.lines().count() == 1, "{told}");
        assert!(!marker.exists(), "the program was not started");
    }
    for words in [&["--no-ui", "--view", "kernels"][..], &["run"][..]] {
        let output = run(words);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
        assert!(text(&output.stderr).contains("no program was named"), "{words:?}");
    }
    // Options of the screen are for the session that is chosen.
    for words in [&["--view", "devices"][..], &["--theme", "light", "--fps", "2"][..]] {
        let output = run(words);
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(0), String::new()),
            "{words:?}"
        );
        assert!(!output.stdout.is_empty(), "GPUs and sessions are listed");
    }
    let output = run(&["--view", "devises"]);
    assert!(text(&output.stderr).contains("devices"), "{}", text(&output.stderr));
    let output = run(&["--theme", "light", "demo"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(
        text(&output.stderr).contains("roctop demo …"),
        "{}",
        text(&output.stderr)
    );
    for (words, said) in [
        (["summary", "--filter", "(", "nowhere"], "(column "),
        (["export", "--filter", "calls>x", "nowhere"], "(column "),
        (["summary", "--fail-if", "nonsense", "nowhere"], "compares nothing"),
    ] {
        let output = run(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
}

#[test]
fn a_program_without_the_collector_is_as_it_was() {
    let script = "echo \"[$LD_PRELOAD][$HSA_TOOLS_LIB]\"; tr '\\0' '\\n' < /proc/self/environ | grep -c ^ROCTOP_";
    let output = run(&["--no-ui", "--no-collect", "sh", "-c", script]);
    let told = text(&output.stdout);
    assert!(told.starts_with("[][]\n"), "{told}");
    assert!(
        text(&output.stderr).contains("--no-collect"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn hsa_is_told_to_load_the_users_tools_beside_the_collector() {
    let script = "echo \"[$HSA_TOOLS_ROCPROFILER_V1_TOOLS]\"";
    for (tools, user, told) in [
        ("", None, "[]\n"),
        ("tool.so", None, "[1]\n"),
        ("tool.so", Some("no"), "[no]\n"),
    ] {
        let mut command = roctop();
        command
            .args(["--no-ui", "sh", "-c", script])
            .env("HSA_TOOLS_LIB", tools);
        command.envs(user.map(|user| ("HSA_TOOLS_ROCPROFILER_V1_TOOLS", user)));
        let output = command.output().unwrap();
        assert_eq!(text(&output.stdout), told, "{}", text(&output.stderr));
    }
}

#[test]
fn output_goes_where_it_is_wanted() {
    let place = place("app-io");
    let file = place.join("out.txt");
    std::fs::write(&file, "what was there before").unwrap();
    let script = "echo out; echo err >&2; exit 4";
    let output = run(&["--no-ui", "--no-collect", "--app-io", word(&file), "sh", "-c", script]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(4), String::new()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "out\nerr\n");
    let below = file.join("below");
    let output = run(&["--no-ui", "--app-io", word(&below), "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(word(&below)), "{}", text(&output.stderr));
}

#[test]
fn nothing_is_left_behind() {
    let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap());
    let child = roctop()
        .args(["demo", "--no-ui", "--seconds", "0.5"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    let session = PathBuf::from(format!("/dev/shm/roctop-{uid}/{}", child.id()));
    child.wait().unwrap();
    assert!(!session.exists());
}
