//! Files that grow beside their final names and are renamed when they are whole.

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
    /// Says whether everything that a file asked for could be read.
    pub(crate) check: &'a dyn Fn() -> std::io::Result<()>,
}

/// Reports how many bytes were written.
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
    /// A file's path, named by the process and `ending`.
    pub(crate) fn path(&self, ending: &str) -> PathBuf {
        let mut path = self.stem.clone().into_os_string();
        path.push("_");
        path.push(ending);
        path.into()
    }

    /// Writes a file by a library that makes it itself.
    pub(crate) fn write_at(&mut self, path: PathBuf, fill: &dyn Fn(&Path) -> Result<()>) -> Result<()> {
        self.progress.begin(&format!("writing {}", path.display()), 0);
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(Error::at("cannot write", &path))?;
        }
        let beside = beside(&path);
        // One that a killed roctop left would be filled up.
        let _ = std::fs::remove_file(&beside);
        let written = fill(&beside).and_then(|()| {
            (self.check)()?;
            File::open(&beside)?.sync_data()?;
            Ok(std::fs::rename(&beside, &path)?)
        });
        if written.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        written.map_err(Error::at::<Error>("cannot write", &path))?;
        self.made.push(path);
        Ok(())
    }

    /// Writes a file, named by the process and `ending`.
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

/// The name under which a file grows.
fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    beside.into()
}

/// Writes a file atomically: beside its name, then renamed. Nothing is left when `fill` fails.
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

/// What no other process has in its names of files, on any host that shares the directory.
pub fn own_word() -> String {
    let system = rustix::system::uname();
    format!("{}-{}", system.nodename().to_string_lossy(), std::process::id())
}

/// Makes the output directory, and finds out now rather than later whether it can be written to.
pub fn prepare_directory(path: &Path) -> Result<()> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    std::fs::create_dir_all(path).map_err(Error::at("cannot make the directory", path))?;
    let probe = path.join(format!(".roctop-{}.tmp", own_word()));
    File::create(&probe).map_err(Error::at("cannot write to the directory", path))?;
    std::fs::remove_file(&probe).map_err(Error::at("cannot write to the directory", path))
}
