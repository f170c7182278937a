//! Lines of source files beside the frames of call paths: those that a frame on the screen names, and what was read of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use roctop_model::{Mode, Snapshot};
use roctop_trace::item::ProcessId;
use roctop_trace::site::{Frame, Line};

/// Maximum number of lines that are remembered.
const MAX_LINES: usize = 2048;
/// Maximum number of lines that are wanted at once: a screen has fewer.
const MAX_WANTED: usize = 256;

/// A line of a source file, as a process had it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourcePlace {
    /// Path of the file as the process saw it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Path of the binary with the code; empty for Python.
    pub binary: String,
    /// Process id if the process is running; 0 otherwise.
    pub pid: u32,
    /// Inode of its PID namespace; 0 unknown.
    pub pid_namespace: u64,
    /// Host name of the process.
    pub host: Arc<str>,
    /// When the process began, CLOCK_REALTIME ns; 0 unknown.
    pub began: u64,
}

impl SourcePlace {
    fn without_pid(&self) -> Self {
        Self { pid: 0, ..self.clone() }
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// Its text, safe to draw, without the white space around it.
    pub text: Arc<str>,
    /// Whether the program may have been built from, or have read, another text.
    pub is_doubtful: bool,
}

/// The lines of a screen.
#[derive(Clone, Debug, Default)]
pub struct SourceText {
    /// By place without process id: what was read stays when the process ends. None: it is being read, or cannot be read.
    known: HashMap<SourcePlace, Option<SourceLine>>,
    wanted: RefCell<Vec<SourcePlace>>,
}

impl SourceText {
    /// The line of a frame, if it is known; it is read otherwise.
    pub(crate) fn line(
        &self,
        snap: &Snapshot,
        process: ProcessId,
        (frame, line): (Frame, &Line),
    ) -> Option<&SourceLine> {
        let place = place(snap, process, frame, line)?;
        if let Some(found) = self.known.get(&place.without_pid()) {
            return found.as_ref();
        }
        let mut wanted = self.wanted.borrow_mut();
        if wanted.len() < MAX_WANTED && !wanted.contains(&place) {
            wanted.push(place);
        }
        None
    }

    /// Removes and returns the lines that are to be read.
    pub fn take_wanted(&mut self) -> Vec<SourcePlace> {
        let wanted = std::mem::take(self.wanted.get_mut());
        if self.known.len() + wanted.len() > MAX_LINES {
            self.known.clear();
        }
        self.known
            .extend(wanted.iter().map(|place| (place.without_pid(), None)));
        wanted
    }

    /// Adds what was read.
    pub(crate) fn add(&mut self, lines: Vec<(SourcePlace, SourceLine)>) {
        for (place, line) in lines {
            if let Some(known) = self.known.get_mut(&place.without_pid()) {
                *known = Some(line);
            }
        }
    }
}

/// Where the line of a frame is; none without a line.
fn place(snap: &Snapshot, process: ProcessId, frame: Frame, line: &Line) -> Option<SourcePlace> {
    if line.file.is_empty() || line.line == 0 {
        return None;
    }
    let row = snap.values.processes.iter().find(|row| row.process.id == process)?;
    let module = snap.sites.module(frame);
    let binary = module.filter(|module| !module.is_python);
    let is_running = snap.mode == Mode::Live && row.exit.is_none();
    Some(SourcePlace {
        file: line.file.clone(),
        line: line.line,
        binary: binary.map_or_else(String::new, |module| module.path.clone()),
        pid: if is_running { row.process.pid } else { 0 },
        pid_namespace: row.process.pid_namespace,
        host: row.process.host.clone(),
        began: row.process.created,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(line: u32) -> SourcePlace {
        SourcePlace {
            file: "/src/a.cpp".into(),
            line,
            binary: String::new(),
            pid: 0,
            pid_namespace: 0,
            host: "".into(),
            began: 0,
        }
    }

    #[test]
    fn a_line_is_wanted_once_and_memory_is_bounded() {
        let mut source = SourceText::default();
        for round in 0..2 * MAX_LINES as u32 {
            source.wanted.get_mut().push(numbered(round));
            assert_eq!(source.take_wanted(), [numbered(round)]);
            assert!(source.take_wanted().is_empty());
            assert!(source.known.len() <= MAX_LINES);
        }
        let line = SourceLine {
            text: "launch();".into(),
            is_doubtful: false,
        };
        // The answer to a question that was forgotten meanwhile takes no memory.
        source.add(vec![(numbered(u32::MAX), line)]);
        assert!(!source.known.contains_key(&numbered(u32::MAX)));
    }
}
