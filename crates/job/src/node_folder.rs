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
use std::time::Duration;

/// The lock of the node's daemon.
const LOCK: &str = "daemon.lock";
/// The socket at which ranks hand their sums over.
const SOCKET: &str = "daemon.sock";
/// The socket at which the root of a job of one node is watched.
const WATCH_SOCKET: &str = "watch.sock";
/// Of the names of the folders.
const PREFIX: &str = "job-";
/// Age after which a folder that nobody takes part in is removed.
const UNUSED_FOR: Duration = Duration::from_secs(10);
/// Locked, shared, by all that take part.
const MEMBERS: &str = "members";
/// Present if the job's first rank is, or was, on this node.
const FIRST: &str = "first";
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
        return format!("{PREFIX}{job}");
    }
    let mut hasher = DefaultHasher::new();
    job.hash(&mut hasher);
    // Another version of roctop may hash in another way: its processes are not of one job with these.
    format!("{PREFIX}{}-{:016x}", &job[..MAX_NAME - 17], hasher.finish())
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
        remove_unused(base, &path);
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

    /// Path of the socket at which a root without a network is watched.
    pub(crate) fn watch_socket(&self) -> PathBuf {
        self.path.join(WATCH_SOCKET)
    }

    /// Notes that the job's first rank is on this node.
    pub(crate) fn mark_first(&self) -> Result<()> {
        let path = self.path.join(FIRST);
        let made = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        made.map(drop).map_err(Error::file("create", &path))
    }

    /// Whether it is, or was.
    pub(crate) fn is_first(&self) -> bool {
        self.path.join(FIRST).exists()
    }

    /// Takes part; the processes of a node that do so know which of them is the last.
    ///
    /// Errors: the file of those who take part cannot be used.
    pub fn join(&self) -> Result<Membership> {
        let found = self.locked(MEMBERS, |file| {
            if file.try_lock().is_ok() {
                // Alone: what an earlier job of this name left when it was killed says nothing.
                let _ = std::fs::remove_file(self.path.join(FIRST));
            }
            file.lock_shared().map(|()| true)
        })?;
        let path = self.path.join(MEMBERS);
        let busy = || Error::file("lock", &path)(io::ErrorKind::ResourceBusy.into());
        found.map(Membership).ok_or_else(busy)
    }

    /// Makes this process the node's daemon, unless another one is: then `None`. It does not wait.
    ///
    /// Errors: the lock file cannot be used.
    pub fn try_lead(&self) -> Result<Option<Lead>> {
        let try_lock = |file: &File| match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        };
        let lock = self.locked(LOCK, try_lock)?;
        let folder = self.clone();
        Ok(lock.map(|lock| Lead { folder, _lock: lock }))
    }

    /// A locked file of the folder; both are made if they are not there. `None` if `lock` says no.
    fn locked(&self, name: &str, lock: impl Fn(&File) -> io::Result<bool>) -> Result<Option<File>> {
        let path = self.path.join(name);
        for _ in 0..ATTEMPTS {
            let locked = open(&path).and_then(|file| Ok(lock(&file)?.then_some(file)));
            match locked {
                Ok(Some(file)) if is_at(&file, &path) => return Ok(Some(file)),
                // The last process has removed it.
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

/// Removes the folders of other jobs that nobody takes part in any more, since all processes were killed.
fn remove_unused(base: &Path, own: &Path) {
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for path in names.map(|entry| entry.path()).filter(|path| path != own) {
        let modified = path.symlink_metadata().and_then(|facts| facts.modified());
        let age = modified.map(|modified| modified.elapsed().unwrap_or_default());
        // One that begins has not joined yet.
        if !age.is_ok_and(|age| age > UNUSED_FOR) {
            continue;
        }
        let members = path.join(MEMBERS);
        match open(&members) {
            Ok(file) if file.try_lock().is_ok() => drop(std::fs::remove_dir_all(&path)),
            _ => {}
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(flags.bits() as i32).open(path)
}

/// This process takes part, until this is dropped or the process ends.
#[derive(Debug)]
pub struct Membership(File);

impl Membership {
    /// Ends it. True if no other process takes part.
    pub fn is_last(self) -> bool {
        self.0.try_lock().is_ok()
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
        let _ = std::fs::remove_file(self.folder.watch_socket());
        let _ = std::fs::remove_file(self.folder.path.join(FIRST));
        let _ = std::fs::remove_file(self.folder.path.join(MEMBERS));
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
    fn the_last_of_a_node_knows_that_it_is() {
        let base = Base::new("last");
        let folder = NodeFolder::open(&base.0, &Name::new("77").unwrap()).unwrap();
        let [a, b, c] = [(), (), ()].map(|()| folder.join().unwrap());
        folder.mark_first().unwrap();
        assert!(!b.is_last());
        // One that was killed says nothing.
        drop(a);
        let d = folder.join().unwrap();
        assert!(folder.is_first());
        drop(c);
        assert!(d.is_last());
        let _later = folder.join().unwrap();
        assert!(!folder.is_first(), "that was another job");
    }

    #[test]
    fn what_killed_jobs_left_is_removed() {
        let base = Base::new("unused");
        let open = |job: &str| NodeFolder::open(&base.0, &Name::new(job).unwrap()).unwrap();
        let [left, new, alive] = ["left", "new", "alive"].map(open);
        let _membership = alive.join().unwrap();
        let _lead = alive.try_lead().unwrap().unwrap();
        for folder in [&left, &new] {
            drop(folder.join().unwrap());
            folder.mark_first().unwrap();
        }
        let session = base.0.join("session");
        std::fs::create_dir(&session).unwrap();
        let long_ago = std::time::SystemTime::now() - 2 * UNUSED_FOR;
        for path in [left.path(), alive.path(), &session] {
            File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        let own = open("own");
        let is_there = [left.path(), new.path(), alive.path(), own.path(), &session].map(Path::exists);
        assert_eq!(is_there, [false, true, true, true, true]);
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
