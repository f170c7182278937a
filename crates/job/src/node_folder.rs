//! The folder in which the roctop processes of one job on one node meet, and the election of the node's daemon among them.
//!
//! It is `job-<job>` beside the sessions, mode 0700. The process that holds the lock of its lock file is the daemon. The system
//! releases the lock when the process ends, in whichever way, and one of the others takes it at its next attempt.

use crate::{Error, Name, Result};
use roctop_ring::session;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The lock of the node's daemon.
const LOCK: &str = "daemon.lock";
/// The socket at which ranks hand their sums over.
const SOCKET: &str = "daemon.sock";
/// Longer names of jobs are cut: a socket's path has at most 107 bytes.
const MAX_NAME: usize = 32;
/// Attempts to lock a file that others remove meanwhile.
const ATTEMPTS: usize = 8;

/// The folder of one job on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFolder {
    path: PathBuf,
}

fn folder_name(job: &Name) -> String {
    if job.len() <= MAX_NAME {
        return format!("job-{job}");
    }
    let mut hasher = DefaultHasher::new();
    job.hash(&mut hasher);
    // Another version of roctop may hash in another way: its processes are not of one job with these.
    format!("job-{}-{:016x}", &job[..MAX_NAME - 17], hasher.finish())
}

impl NodeFolder {
    /// The folder of `job` below `base`, a parent of the user's sessions. It is made if there is none.
    ///
    /// Errors: `base` or the folder is not the user's alone, or cannot be made.
    pub fn open(base: &Path, job: &Name) -> Result<Self> {
        let own = rustix::process::getuid().as_raw();
        let path = base.join(folder_name(job));
        for folder in [base, &path] {
            session::private_dir(folder, own).map_err(Error::file("use", folder))?;
        }
        Ok(Self { path })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the daemon's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    /// Makes this process the node's daemon, unless another one is: then `None`. It does not wait.
    ///
    /// Errors: the lock file cannot be used.
    pub fn try_lead(&self) -> Result<Option<Lead>> {
        let path = self.path.join(LOCK);
        for _ in 0..ATTEMPTS {
            match try_lock(&path) {
                Ok(Some(lock)) if is_at(&lock, &path) => {
                    let folder = self.clone();
                    return Ok(Some(Lead { folder, _lock: lock }));
                }
                // The former daemon has removed it.
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let own = rustix::process::getuid().as_raw();
                    session::private_dir(&self.path, own).map_err(Error::file("use", &self.path))?;
                }
                Err(error) => return Err(Error::file("lock", &path)(error)),
            }
        }
        Ok(None)
    }
}

/// Opens a file and locks it; `None` if another process has it.
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether a file is still the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(there)) = (file.metadata(), path.symlink_metadata()) else {
        return false;
    };
    (own.dev(), own.ino()) == (there.dev(), there.ino())
}

/// This process is the node's daemon, until this is dropped or the process ends.
#[derive(Debug)]
pub struct Lead {
    folder: NodeFolder,
    _lock: File,
}

impl Lead {
    /// The folder.
    pub fn folder(&self) -> &NodeFolder {
        &self.folder
    }

    /// Removes the folder at the job's end. A process that comes later makes it again.
    pub fn remove(self) {
        // The lock file is the last: who locks it then sees that it is at no path.
        let _ = std::fs::remove_file(self.folder.socket());
        let _ = std::fs::remove_file(self.folder.path.join(LOCK));
        let _ = std::fs::remove_dir(&self.folder.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Base(PathBuf);

    impl Base {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("roctop-lead-{test}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Base {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn one_process_leads_and_another_follows_it() {
        let base = Base::new("follow");
        let job = Name::new("77").unwrap();
        let folder = NodeFolder::open(&base.0, &job).unwrap();
        assert_eq!(NodeFolder::open(&base.0, &job).unwrap(), folder);
        let first = folder.try_lead().unwrap().unwrap();
        assert!(folder.try_lead().unwrap().is_none());
        drop(first);
        let second = folder.try_lead().unwrap().unwrap();
        second.remove();
        assert!(!folder.path().exists());
        assert!(folder.try_lead().unwrap().is_some(), "it is made again");
    }

    #[test]
    fn of_many_that_try_at_once_one_leads() {
        let base = Base::new("many");
        let folder = NodeFolder::open(&base.0, &Name::new("77").unwrap()).unwrap();
        for round in 0..50 {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    let folder = folder.clone();
                    std::thread::spawn(move || folder.try_lead().unwrap())
                })
                .collect();
            let mut leads: Vec<Lead> = threads
                .into_iter()
                .filter_map(|thread| thread.join().unwrap())
                .collect();
            assert_eq!(leads.len(), 1);
            if round % 2 == 0 {
                leads.remove(0).remove();
            }
        }
    }

    #[test]
    fn a_folder_that_others_can_read_is_refused() {
        let base = Base::new("open");
        let job = Name::new("77").unwrap();
        let folder = NodeFolder::open(&base.0, &job).unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let error = NodeFolder::open(&base.0, &job).unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{error}");
    }

    #[test]
    fn names_of_jobs_fit_into_the_path_of_a_socket() {
        let base = Path::new("/run/user/1000000000/roctop");
        let long = [1, 2].map(|last| Name::new(&format!("{}{last}", "x".repeat(crate::MAX_NAME - 1))).unwrap());
        let paths = long.map(|job| base.join(folder_name(&job)).join(SOCKET));
        assert!(paths[0] != paths[1] && paths[0].as_os_str().len() < 107, "{paths:?}");
    }
}
