//! The recording that a run is written from: beside its files, and removed with the run.

use super::naming;
use super::plan::Plan;
use crate::export;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// A recording that is removed when it is no longer needed.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Where a run is recorded: among its files, as far as is known before it where those are.
    ///
    /// Errors: that place cannot be written to.
    pub(super) fn of(plan: &Plan) -> Result<Self> {
        let directory = naming::plain_part(&plan.directory);
        export::prepare_directory(directory)?;
        let rank = plan.rank.number.map_or(String::new(), |rank| format!("-{rank}"));
        Ok(Self(
            directory.join(format!(".roctop-{}{rank}.rec", export::own_word())),
        ))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves the recording where it is, since its files could not be written, and says so.
    pub(super) fn kept(self, error: anyhow::Error) -> anyhow::Error {
        let path = std::mem::ManuallyDrop::new(self).0.clone();
        let path = path.display();
        error.context(format!(
            "the records stay in {path}, 'roctop export {path}' writes the files"
        ))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
