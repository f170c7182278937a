//! A recording of the built-in workload, made once for all tests, and its exports.

use super::directory::place;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// roctop without a terminal.
pub(crate) fn roctop(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
    // The tests do not use the settings of the user.
    command.args(words).env("ROCTOP_CONFIG", "/dev/null");
    command.stdin(Stdio::null()).output().unwrap()
}

/// Where the recording is.
pub(crate) fn recording() -> &'static Path {
    static RECORDING: OnceLock<PathBuf> = OnceLock::new();
    RECORDING.get_or_init(|| {
        let path = place("recording").join("rec");
        let own = env!("CARGO_BIN_EXE_roctop");
        let mut command = Command::new(own);
        command.args(["record", "-o", path.to_str().unwrap(), "--", own, "__demo"]);
        let output = command
            .env("ROCTOP_DEMO_WORKER", "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        path
    })
}

/// Exports the recording with more options; the files by their names without the process id or stem.
pub(crate) fn export(name: &str, options: &[&str]) -> BTreeMap<String, PathBuf> {
    let place = place(name);
    let mut words = vec![
        "export",
        recording().to_str().unwrap(),
        "-d",
        place.to_str().unwrap(),
        "-o",
        "t",
    ];
    words.extend(options);
    let output = roctop(&words);
    assert!(output.status.success(), "{output:?}");
    let files = String::from_utf8(output.stdout).unwrap();
    let files = files.lines().map(PathBuf::from);
    files
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            (name.strip_prefix("t_").unwrap().to_owned(), path)
        })
        .collect()
}

/// The program that a roctop has started. Beside it there may be the process by which roctop knows who gets a signal.
pub(crate) fn program_of(roctop: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{roctop}/task/{roctop}/children")).ok()?;
    let mut children = children.split_whitespace().map(|pid| pid.parse::<u32>().ok());
    children.find_map(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", pid?)).ok()?;
        pid.filter(|_| name.trim_end() != "signal-witness")
    })
}
