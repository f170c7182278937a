//! Metadata of the run in documents.

use super::options::Format;
use super::stats::Domain;
use super::view::View;
use roctop_trace::item::Process;
use std::path::Path;

/// Metadata of a run.
pub(super) struct Head<'a> {
    /// Path prefix of the files.
    pub(super) stem: &'a Path,
    /// The recorded command line.
    pub(super) command: &'a [String],
    /// Formats that are written.
    pub(super) formats: &'a [Format],
    /// Statistics.
    pub(super) domains: &'a [Domain],
}

impl Head<'_> {
    /// Command line of a process.
    pub(super) fn command_of(&self, view: &View<'_>) -> Vec<String> {
        view.process.words(self.command)
    }
}

/// The machine, as far as known: for a recording from elsewhere, only its host name.
#[derive(Default)]
pub(super) struct System {
    pub(super) machine: String,
    pub(super) name: String,
    pub(super) release: String,
    pub(super) version: String,
    pub(super) hardware: String,
    pub(super) domain: String,
}

impl System {
    pub(super) fn of(process: &Process) -> Self {
        let here = rustix::system::uname();
        let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        if word(here.nodename()) != *process.host {
            return Self {
                name: "Linux".to_owned(),
                ..Self::default()
            };
        }
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        Self {
            machine: machine.trim().to_owned(),
            name: word(here.sysname()),
            release: word(here.release()),
            version: word(here.version()),
            hardware: word(here.machine()),
            domain: std::fs::read_to_string("/proc/sys/kernel/domainname")
                .unwrap_or_default()
                .trim()
                .to_owned(),
        }
    }
}
