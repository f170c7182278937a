//! The stand-in for rocprofiler-sdk, a program that is counted, and roctop between them.

use super::directory::place;
use super::table::Table;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory with the stand-in and a program that uses it.
pub(crate) struct Rig(pub(crate) PathBuf);

impl Rig {
    pub(crate) fn new(name: &str) -> Option<Self> {
        let place = place(name);
        let compiled = ["stand_in_sdk", "counted"].iter().all(|program| {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("preload/tests/c/{program}.c"));
            let mut command = Command::new("cc");
            if *program == "stand_in_sdk" {
                command.args(["-shared", "-fPIC"]);
            }
            command.arg("-o").arg(place.join(program)).arg(source).arg("-ldl");
            command.status().is_ok_and(|status| status.success())
        });
        if !compiled {
            eprintln!("skipped: needs a C compiler");
            return None;
        }
        Some(Self(place))
    }

    pub(crate) fn roctop(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
        command
            .args(words)
            .env("ROCTOP_SDK", self.0.join("stand_in_sdk"))
            .current_dir(&self.0)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn works(&self, words: &[&str]) -> String {
        let output = self.roctop(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn fails(&self, words: &[&str]) -> String {
        let output = self.roctop(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub(crate) fn table(&self, name: &str) -> Table {
        Table::read(&self.0.join(name))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
