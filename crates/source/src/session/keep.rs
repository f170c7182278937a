//! How one roctop asks another to write what it holds: a number in the control file, and answers in a file of the session.

use super::SessionDir;
use crate::error::{Error, Result};
use roctop_ring::session::control;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// File name of the answers.
const ANSWERS: &str = "keep.json";
/// Maximum number of answers that stay.
const MAX_ANSWERS: usize = 32;

/// What happened to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The recording is being written.
    Begun(PathBuf),
    /// The recording is complete.
    Written(PathBuf),
    /// There is no recording, and why.
    Refused(String),
}

/// Answers of a roctop that keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers(Vec<(u64, Outcome)>);

impl Answers {
    /// Adds an answer, or replaces the one to the same request.
    pub fn put(&mut self, request: u64, outcome: Outcome) {
        self.0.retain(|known| known.0 != request);
        self.0.push((request, outcome));
        let excess = self.0.len().saturating_sub(MAX_ANSWERS);
        self.0.drain(..excess);
    }

    /// The answer to a request.
    pub fn get(&self, request: u64) -> Option<&Outcome> {
        self.0.iter().find(|known| known.0 == request).map(|known| &known.1)
    }

    /// Replaces the answers of a session.
    pub fn write(&self, session: &Path) -> Result<()> {
        let path = session.join(ANSWERS);
        let text = serde_json::to_vec(self)?;
        let temporary = session.join(".keep.json");
        let written = std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, &path));
        written.map_err(Error::io("cannot write", &path))
    }

    /// The answers of a session; `None` if its roctop keeps nothing.
    pub fn read(session: &Path) -> Result<Option<Self>> {
        let path = session.join(ANSWERS);
        match std::fs::read(&path) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text).map_err(Error::damaged(&path))?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("cannot read", &path)(error)),
        }
    }
}

impl SessionDir {
    /// Asks the session's roctop to write what it holds. Another request at the same moment may replace this one.
    pub fn request_keep(&self, request: u64) -> io::Result<()> {
        self.set(control::KEEP, request)
    }

    /// The last request; 0 before the first.
    pub fn keep_request(&self) -> u64 {
        self.word(control::KEEP).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_by_others_and_do_not_grow() {
        let session = SessionDir::create().unwrap();
        assert_eq!(Answers::read(session.path()).unwrap(), None);
        let mut answers = Answers::default();
        for request in 1..100 {
            answers.put(request, Outcome::Begun("x".into()));
        }
        answers.put(99, Outcome::Written("y".into()));
        answers.write(session.path()).unwrap();
        let read = Answers::read(session.path()).unwrap().unwrap();
        assert_eq!(read.get(99), Some(&Outcome::Written("y".into())));
        assert_eq!((read.get(1), read.0.len()), (None, MAX_ANSWERS));
        assert_eq!(session.keep_request(), 0);
        session.request_keep(7).unwrap();
        assert_eq!(SessionDir::open(session.path()).unwrap().keep_request(), 7);
    }
}
