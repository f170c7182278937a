//! Python programs that read what exports write. Without Python or a package, a test that needs it is skipped.

use std::process::Command;

/// A Python that has a module: that of `ROCTOP_PYTHON`, or `python3`; `None` after a message if it has none.
pub(crate) fn python(module: &str) -> Option<String> {
    let python = std::env::var("ROCTOP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    let there = found.is_ok_and(|output| output.status.success());
    if !there {
        println!("skipped: {python} has no {module} ('pip install {module}', or name another with ROCTOP_PYTHON)");
    }
    there.then_some(python)
}

/// Runs a script; returns what it prints.
pub(crate) fn run_python(python: &str, script: &str, arguments: &[&str]) -> String {
    let output = Command::new(python)
        .args(["-c", script])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
