//! Files that other tools read. Each format is a pure function to bytes; this room opens the files, beside their final
//! names, and renames them when they are whole.

pub mod agent_info;
pub mod csv;
pub mod run;

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file atomically: beside its name, then renamed. Nothing is left when `fill` fails.
pub fn write_atomic(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = (|| {
        let mut file = BufWriter::with_capacity(1 << 18, File::create(&beside)?);
        fill(&mut file)?;
        file.into_inner()
            .map_err(std::io::IntoInnerError::into_error)?
            .sync_data()
    })()
    .and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Makes the output directory, and finds out now rather than later whether it can be written to.
pub fn prepare_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("cannot make the directory {}", path.display()))?;
    let probe = path.join(format!(".roctop-{}.tmp", std::process::id()));
    File::create(&probe).with_context(|| format!("cannot write to the directory {}", path.display()))?;
    std::fs::remove_file(&probe).with_context(|| format!("cannot write to the directory {}", path.display()))
}
