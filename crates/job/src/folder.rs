//! The folder of a job in the user's state folder: `roctop/jobs/<job>/`, mode 0700, files 0600. It has the keys and the
//! root's address. Anything in it that is not the user's alone is refused.

use crate::{Error, Name, Result};
use rustix::fs::{Mode, OFlags};
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// File with the root's address, `HOST:PORT`.
const ROOT: &str = "root";
/// Files are short; a longer one is none of ours. Bytes.
const MAX_FILE: u64 = 64 << 10;

/// Folder of all jobs' folders: `roctop/jobs` below `XDG_STATE_HOME`, else below `~/.local/state`.
///
/// Errors: neither variable has an absolute path.
pub fn jobs(variable: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf> {
    let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = path("XDG_STATE_HOME").or_else(|| Some(path("HOME")?.join(".local/state")));
    Ok(state.ok_or(Error::NoStateFolder)?.join("roctop/jobs"))
}

fn own() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Checks that a folder is the user's, and that nobody else may write to it or, if `is_secret`, read it.
fn check(path: &Path, is_secret: bool) -> Result<()> {
    let facts = std::fs::symlink_metadata(path).map_err(Error::file("read", path))?;
    let not = |why| {
        Err(Error::NotPrivate {
            path: path.to_owned(),
            why,
        })
    };
    if !facts.is_dir() {
        return not("is no folder");
    }
    if facts.uid() != own() {
        return not("belongs to another user");
    }
    match facts.mode() & 0o077 {
        0 => Ok(()),
        _ if is_secret => not("is open to other users (its mode must be 0700)"),
        mode if mode & 0o022 != 0 => not("can be changed by other users"),
        _ => Ok(()),
    }
}

/// Creates a folder with mode 0700 unless it is present, and checks it.
fn ensure(path: &Path, is_secret: bool) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(Error::file("create", path)(error)),
        _ => check(path, is_secret),
    }
}

/// Reads a file that is the user's alone.
pub(crate) fn read_private(path: &Path) -> Result<Vec<u8>> {
    let read = || Error::file("read", path);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| read()(error.into()))?);
    let facts = file.metadata().map_err(read())?;
    let not = |why| {
        Err(Error::NotPrivate {
            path: path.to_owned(),
            why,
        })
    };
    if !facts.is_file() || facts.len() > MAX_FILE {
        return not("is no short file");
    }
    if facts.uid() != own() {
        return not("belongs to another user");
    }
    if facts.mode() & 0o077 != 0 {
        return not("is open to other users (its mode must be 0600)");
    }
    let mut bytes = Vec::new();
    (&mut file).take(MAX_FILE).read_to_end(&mut bytes).map_err(read())?;
    Ok(bytes)
}

/// Creates a file with mode 0600 that was not there.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.map_err(Error::file("create", path))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(Error::file("write", path))
}

/// A name that no other file has.
fn unused(near: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let host = Name::of_text(&rustix::system::uname().nodename().to_string_lossy());
    format!(".{near}-{host}-{}-{next}", std::process::id())
}

/// The folder of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
    job: Name,
}

impl Folder {
    /// The folder of `job` below `jobs`; it need not be there.
    pub fn of(jobs: &Path, job: &Name) -> Self {
        Self {
            path: jobs.join(&**job),
            job: job.clone(),
        }
    }

    /// The job.
    pub fn job(&self) -> &Name {
        &self.job
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is there; if so, it is checked.
    pub(crate) fn is_present(&self) -> Result<bool> {
        if self.path.symlink_metadata().is_err() {
            return Ok(false);
        }
        self.check_parents()?;
        check(&self.path, true)?;
        Ok(true)
    }

    fn check_parents(&self) -> Result<()> {
        let jobs = self.path.parent().unwrap_or(Path::new("/"));
        check(jobs.parent().unwrap_or(Path::new("/")), false)?;
        check(jobs, true)
    }

    /// Creates it with files in it, all at once. False if it was there.
    pub(crate) fn create(&self, files: &[(&str, &[u8])]) -> Result<bool> {
        let jobs = self.path.parent().unwrap_or(Path::new("/"));
        let roctop = jobs.parent().unwrap_or(Path::new("/"));
        if let Some(state) = roctop.parent() {
            std::fs::create_dir_all(state).map_err(Error::file("create", state))?;
        }
        ensure(roctop, false)?;
        ensure(jobs, true)?;
        let draft = jobs.join(unused("new"));
        ensure(&draft, true)?;
        let written = files
            .iter()
            .try_for_each(|(name, bytes)| write_private(&draft.join(name), bytes));
        let renamed = written.and_then(|()| match std::fs::rename(&draft, &self.path) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => Ok(false),
            Err(error) => Err(Error::file("create", &self.path)(error)),
        });
        if !matches!(renamed, Ok(true)) {
            // What remains is a folder of mode 0700 that nobody looks at.
            let _ = std::fs::remove_dir_all(&draft);
        }
        renamed
    }

    /// Removes it with all in it: keys are no longer accepted by who starts from then on.
    pub fn remove(&self) -> Result<()> {
        match std::fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::file("remove", &self.path)(error)),
            _ => Ok(()),
        }
    }

    /// Removes it if `is_over` says so of it. Another process may do the same and make a new one at any moment; that one stays.
    pub(crate) fn retire(&self, is_over: impl FnOnce(&Path) -> bool) -> Result<()> {
        let jobs = self.path.parent().unwrap_or(Path::new("/"));
        let aside = jobs.join(unused("old"));
        match std::fs::rename(&self.path, &aside) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            moved => moved.map_err(Error::file("remove", &self.path))?,
        }
        if is_over(&aside) {
            return std::fs::remove_dir_all(&aside).map_err(Error::file("remove", &aside));
        }
        // It was new. If there is a newer one, that counts.
        if std::fs::rename(&aside, &self.path).is_err() {
            let _ = std::fs::remove_dir_all(&aside);
        }
        Ok(())
    }

    /// Writes the root's address, `HOST:PORT`; nodes read it at each dial.
    pub fn set_root(&self, address: &str) -> Result<()> {
        check(&self.path, true)?;
        let draft = self.path.join(unused(ROOT));
        write_private(&draft, address.as_bytes())?;
        let path = self.path.join(ROOT);
        std::fs::rename(&draft, &path).map_err(Error::file("write", &path))
    }

    /// The root's address, if a root has been there.
    pub fn root(&self) -> Result<Option<String>> {
        let path = self.path.join(ROOT);
        match read_private(&path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned())),
            Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The folders of the user's jobs below `jobs`, by name. Others' files and drafts are left out.
pub fn list(jobs: &Path) -> Result<Vec<Folder>> {
    let entries = match std::fs::read_dir(jobs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file("read", jobs)(error)),
    };
    check(jobs, true)?;
    let names = entries.filter_map(|entry| Name::new(entry.ok()?.file_name().to_str()?).ok());
    let mut folders: Vec<Folder> = names
        .map(|job| Folder::of(jobs, &job))
        .filter(|folder| matches!(folder.is_present(), Ok(true)))
        .collect();
    folders.sort_by(|a, b| a.job.cmp(&b.job));
    Ok(folders)
}
