//! Files that are written under temporary names and renamed when complete.

use crate::error::{Error, Result};
use roctop_source::progress::Progress;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The files of one process.
pub(crate) struct Files<'a> {
    pub(crate) stem: PathBuf,
    pub(crate) made: &'a mut Vec<PathBuf>,
    pub(crate) progress: &'a Progress,
    /// Returns an error if data of the file could not be read.
    pub(crate) check: &'a dyn Fn() -> std::io::Result<()>,
}

/// Counts and reports written bytes.
struct Counted<'a> {
    out: &'a mut dyn Write,
    progress: &'a Progress,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        if self.bytes >= 1 << 20 {
            self.progress.add(std::mem::take(&mut self.bytes));
        }
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl Files<'_> {
    /// Path of a file: stem of the process, then `ending`.
    pub(crate) fn path(&self, ending: &str) -> PathBuf {
        let mut path = self.stem.clone().into_os_string();
        path.push("_");
        path.push(ending);
        path.into()
    }

    /// Writes a file with a library that creates it itself.
    pub(crate) fn write_at(&mut self, path: PathBuf, fill: &dyn Fn(&Path) -> Result<()>) -> Result<()> {
        let begun = self.begin(path)?;
        fill(&begun.beside()).map_err(begun.failed())?;
        self.complete(&begun)
    }

    /// Begins a file that a library creates; it has a temporary name.
    pub(crate) fn begin(&self, path: PathBuf) -> Result<Begun> {
        self.progress.begin(&format!("writing {}", path.display()), 0);
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(Error::at("cannot write", &path))?;
        }
        // A file left by a killed roctop would be appended to.
        let _ = std::fs::remove_file(beside(&path));
        Ok(Begun { path })
    }

    /// Gives a complete file its name.
    pub(crate) fn complete(&mut self, begun: &Begun) -> Result<()> {
        let completed = (self.check)().and_then(|()| complete(&begun.path));
        completed.map_err(Error::at("cannot write", &begun.path))?;
        self.made.push(begun.path.clone());
        Ok(())
    }

    /// Writes a file: stem of the process, then `ending`.
    pub(crate) fn write(&mut self, ending: &str, fill: &dyn Fn(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
        let path = self.path(ending);
        self.progress.begin(&format!("writing {}", path.display()), 0);
        write_atomic(&path, |out| {
            fill(&mut Counted {
                out,
                progress: self.progress,
                bytes: 0,
            })?;
            (self.check)()
        })?;
        self.made.push(path);
        Ok(())
    }
}

/// A file under its temporary name; removed unless it is completed.
pub(crate) struct Begun {
    path: PathBuf,
}

impl Begun {
    /// Its temporary name.
    pub(crate) fn beside(&self) -> PathBuf {
        beside(&self.path)
    }

    /// The error when it cannot be written.
    pub(crate) fn failed(&self) -> impl FnOnce(Error) -> Error {
        Error::at("cannot write", &self.path)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.beside());
    }
}

/// Gives a complete file its name.
pub(crate) fn complete(path: &Path) -> std::io::Result<()> {
    let beside = beside(path);
    File::open(&beside)?.sync_data()?;
    std::fs::rename(beside, path)
}

/// Temporary name of a file.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    beside.into()
}

/// Writes a file under a temporary name and renames it. Removes it if `fill` fails.
pub fn write_atomic(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let beside = beside(path);
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
    written.map_err(Error::at("cannot write", path))
}

/// A text for file names that is unique among processes on all hosts that share the directory.
pub fn own_word() -> String {
    let system = rustix::system::uname();
    format!("{}-{}", system.nodename().to_string_lossy(), std::process::id())
}

/// Creates the output directory, and checks early that it is writable.
pub fn prepare_directory(path: &Path) -> Result<()> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    std::fs::create_dir_all(path).map_err(Error::at("cannot create the directory", path))?;
    let probe = path.join(format!(".roctop-{}.tmp", own_word()));
    File::create(&probe).map_err(Error::at("cannot write to the directory", path))?;
    std::fs::remove_file(&probe).map_err(Error::at("cannot write to the directory", path))
}
