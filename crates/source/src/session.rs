//! A session: a directory on tmpfs with the control file and the ring files ([`Live`] reads these).

mod background;
mod clearing;
pub mod keep;
mod live;
mod missed;
mod orphans;
mod unrecorded;
pub use background::going_on;
pub use live::{Live, StackFile};
pub use missed::{Watch, start_of};
pub use unrecorded::refused;

use crate::error::{Error, Result};
use roctop_ring::reader::Reader;
use roctop_ring::session::{CONTROL, CONTROL_BYTES, RING, base, control, private_dir, wanted};
use roctop_trace::item::{Exit, Nanos};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Directory and control file of a session.
#[derive(Debug)]
pub struct SessionDir {
    path: PathBuf,
    control: File,
    /// Whether no program was started in it; then it is removed on drop.
    is_unused: bool,
}

impl Drop for SessionDir {
    fn drop(&mut self) {
        if self.is_unused {
            // A later start removes what remains.
            let _ = self.remove();
        }
    }
}

impl SessionDir {
    /// Creates a session for this user; its name contains this process's pid.
    pub fn create() -> Result<Self> {
        let uid = rustix::process::getuid().as_raw();
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let mut tried = Vec::new();
        for base in base(uid, runtime.as_deref()) {
            match Self::create_under(&base, uid) {
                Ok(made) => return Ok(made),
                Err(error) => tried.push(format!("{}: {error}", base.display())),
            }
        }
        Err(Error::NoSessionDirectory(tried.join("; ")))
    }

    fn create_under(base: &Path, uid: u32) -> io::Result<Self> {
        private_dir(base, uid)?;
        remove_stale(base);
        let own = std::process::id();
        for attempt in 0..100u32 {
            let name = if attempt == 0 {
                format!("{own}")
            } else {
                format!("{own}.{attempt}")
            };
            let path = base.join(name);
            if path.exists() {
                continue;
            }
            private_dir(&path, uid)?;
            let control = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path.join(CONTROL))?;
            control.set_len(CONTROL_BYTES as u64)?;
            // The lock is held while this roctop lives; it is how other processes see that.
            control.lock_shared()?;
            let made = Self {
                path,
                control,
                is_unused: true,
            };
            made.set(control::RECORDING, 1)?;
            made.set(control::WANTED, wanted::USUAL)?;
            return Ok(made);
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Opens an existing session.
    pub fn open(path: &Path) -> Result<Self> {
        let control = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
            .open(path.join(CONTROL))
            .map_err(|source| Error::NotASession {
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            path: path.to_owned(),
            control,
            is_unused: false,
        })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a control word; the last writer wins.
    pub fn set(&self, word: usize, value: u64) -> io::Result<()> {
        self.control.write_all_at(&value.to_le_bytes(), word as u64 * 8)
    }

    /// Marks that a program starts in it.
    pub const fn started(&mut self) {
        self.is_unused = false;
    }

    /// Stores when the program was launched, for other viewers.
    pub fn note_began(&self, at: Nanos) -> io::Result<()> {
        self.set(control::BEGAN, at)
    }

    /// When the program was launched.
    pub fn began(&self) -> Option<Nanos> {
        self.word(control::BEGAN).filter(|at| *at > 0)
    }

    /// Stores from when this viewer counts times, so that other viewers show the same.
    pub fn note_origin(&self, at: Nanos) -> io::Result<()> {
        self.set(control::ORIGIN, at)
    }

    /// From when the session's own viewer counts times; `None` before the first record, or if it has no viewer.
    pub fn origin(&self) -> Option<Nanos> {
        self.word(control::ORIGIN).filter(|at| *at > 0)
    }

    fn word(&self, number: usize) -> Option<u64> {
        let mut bytes = [0u8; 8];
        self.control.read_exact_at(&mut bytes, number as u64 * 8).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Stores the exit of the program, for other viewers.
    pub fn note_end(&self, pid: u32, exit: Exit) -> io::Result<()> {
        let word = match exit {
            Exit::Code(code) => u64::from(code as u32),
            Exit::Signal(signal) => control::SIGNALED | u64::from(signal as u32),
            Exit::Unknown => return Ok(()),
        };
        self.set(control::EXIT, word)?;
        self.set(control::ENDED, pid.into())
    }

    /// Pid and exit of the program, if it has ended. The directory may have been removed since it was opened.
    pub fn end(&self) -> Option<(u32, Exit)> {
        let pid = u32::try_from(self.word(control::ENDED)?).ok().filter(|pid| *pid > 0)?;
        let exit = self.word(control::EXIT)?;
        let number = exit as u32 as i32;
        let is_signal = exit & control::SIGNALED != 0;
        Some((
            pid,
            if is_signal {
                Exit::Signal(number)
            } else {
                Exit::Code(number)
            },
        ))
    }

    /// Stores the path of the recording, so that it can be completed if this roctop is killed.
    pub fn note_recording(&self, recording: &Path) -> io::Result<()> {
        let whole = std::path::absolute(recording)?;
        std::fs::write(self.path.join(RECORDING), whole.as_os_str().as_bytes())
    }

    /// Starts another roctop process that continues the recording until the last program in the session has ended, and
    /// then removes the session. It holds the session's lock from its first moment.
    pub fn follow(&self) -> io::Result<()> {
        let lock = self.control.try_clone()?;
        Command::new(std::env::current_exe()?)
            .args([OsStr::new("recover"), OsStr::new("--follow")])
            .arg(&self.path)
            .stdin(Stdio::from(lock))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The other process ignores Ctrl-C.
            .process_group(0)
            .spawn()
            .map(drop)
    }

    /// Removes the session with all its rings.
    pub fn remove(&self) -> io::Result<()> {
        std::fs::remove_dir_all(&self.path)
    }
}

/// A session of this user, as found on disk.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its directory.
    pub path: PathBuf,
    /// Pid and command line of its processes, oldest first.
    pub processes: Vec<(u32, String)>,
}

impl Found {
    /// Its name: that of its directory.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// Sessions that a killed roctop left behind are kept for later analysis: at most this many, for this long.
const MAX_LEFT_SESSIONS: usize = 4;
const MAX_LEFT_AGE: Duration = Duration::from_hours(24);

/// Age after which a session without a ring is removed. A roctop that is starting has not locked its session yet.
const UNUSED_FOR: Duration = Duration::from_secs(10);

/// File name of the stored path of the recording.
const RECORDING: &str = "recording";

/// Finds a session by name or path, over or not.
///
/// Errors: there is none.
pub fn find(which: &str) -> Result<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let bases = base(uid, runtime.as_deref());
    let here = PathBuf::new();
    let at_path = which.contains('/').then_some(&here);
    let mut paths = at_path.into_iter().chain(&bases).map(|base| base.join(which));
    paths
        .find(|path| path.join(CONTROL).exists())
        .ok_or_else(|| Error::NoSession {
            which: which.to_owned(),
            base: bases[0].clone(),
        })
}

/// Path of a session's recording, if it is recorded.
pub fn recording_of(session: &Path) -> Option<PathBuf> {
    let bytes = std::fs::read(session.join(RECORDING)).ok()?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

/// Whether the session's roctop or a program in it is alive.
pub fn is_in_use(session: &Path) -> bool {
    !is_over(session)
}

/// Whether neither the session's roctop nor a program in it is alive.
fn is_over(session: &Path) -> bool {
    let is_free = |path: &Path| open_ring(path).is_ok_and(|file| file.try_lock().is_ok());
    let Ok(entries) = std::fs::read_dir(session) else {
        return false;
    };
    // A socket that a killed roctop left is no file that can be locked.
    let is_socket = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_socket());
    let files = entries.filter_map(io::Result::ok).filter(|entry| !is_socket(entry));
    files.map(|entry| entry.path()).all(|path| is_free(&path))
}

fn remove_stale(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    let sessions = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut over: Vec<(std::time::SystemTime, PathBuf)> = sessions
        .filter(|path| path.join(CONTROL).exists() && is_over(path))
        .filter_map(|path| Some((std::fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    over.sort();
    let excess = over.len().saturating_sub(MAX_LEFT_SESSIONS);
    for (number, (modified, path)) in over.iter().enumerate() {
        let age = modified.elapsed().unwrap_or_default();
        if number < excess || age > MAX_LEFT_AGE || (age > UNUSED_FOR && !has_rings(path)) {
            // Another roctop may have removed it at the same time.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

fn has_rings(session: &Path) -> bool {
    let entries = std::fs::read_dir(session).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.any(|path| path.extension().is_some_and(|ending| ending == RING))
}

/// All sessions of this user that are not over.
pub fn sessions() -> Vec<Found> {
    let uid = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let mut found = Vec::new();
    for base in base(uid, runtime.as_deref()) {
        let Ok(entries) = std::fs::read_dir(&base) else {
            continue;
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        for path in paths.filter(|path| path.join(CONTROL).exists() && !is_over(path)) {
            let processes = processes_of(&path);
            found.push(Found { path, processes });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Pids of the live programs in a session.
pub fn alive(session: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(session) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let rings = paths.filter(|path| path.extension().is_some_and(|ending| ending == RING));
    let files = rings.filter_map(|path| open_ring(&path).ok());
    // A ring's file lock is held by its process; others hold it for a moment at most.
    let held = files.filter(|file| file.try_lock().is_err());
    let mut pids: Vec<u32> = held
        .filter_map(|file| Some(Reader::open(file).ok()?.header().pid))
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

fn processes_of(session: &Path) -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir(session) else {
        return Vec::new();
    };
    let rings = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == RING));
    let readers = rings.filter_map(|path| Reader::open(open_ring(&path).ok()?).ok());
    let mut firsts: Vec<Reader<File>> = readers.filter(|reader| reader.header().ordinal == 0).collect();
    // A directory lists files in any order, and a process id says nothing about the age of its process.
    firsts.sort_by_key(|reader| reader.header().created);
    firsts
        .iter()
        .map(|reader| (reader.header().pid, reader.header().command.clone()))
        .collect()
}

fn open_ring(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::from(io::ErrorKind::InvalidInput))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::layout::{Header, Spec};
    use roctop_ring::map::RingFile;
    use roctop_ring::session::ring_name;

    #[test]
    fn sessions_without_rings_do_not_stay() {
        let base = std::env::temp_dir().join(format!("roctop-stale-{}", std::process::id()));
        let made = |name: &str, files: &[&str], age: u64| {
            let path = base.join(name);
            std::fs::create_dir_all(&path).unwrap();
            for file in files {
                std::fs::write(path.join(file), "").unwrap();
            }
            let then = std::time::SystemTime::now() - Duration::from_secs(age);
            File::open(&path).unwrap().set_modified(then).unwrap();
            path
        };
        let dead = made("1", &[CONTROL], 60);
        let starting = made("2", &[CONTROL], 0);
        let recoverable = made("3", &[CONTROL, "7-1.ring"], 60);
        let running = made("4", &[CONTROL], 60);
        let lock = File::open(running.join(CONTROL)).unwrap();
        lock.lock_shared().unwrap();
        remove_stale(&base);
        assert!(!dead.exists(), "nothing can be recovered from it");
        assert!(starting.exists() && recoverable.exists() && running.exists());
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_socket_that_a_killed_roctop_left_keeps_no_session() {
        let path = std::env::temp_dir().join(format!("roctop-over-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join(CONTROL), "").unwrap();
        let socket = path.join("ask.sock");
        // Its file stays when nobody listens any more.
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        assert!(socket.exists() && is_over(&path) && !is_in_use(&path));
        let lock = File::open(path.join(CONTROL)).unwrap();
        lock.lock_shared().unwrap();
        assert!(!is_over(&path) && is_in_use(&path));
        drop(lock);
        std::fs::remove_dir_all(&path).unwrap();
        assert!(!is_over(&path), "what cannot be read is not over");
    }

    #[test]
    fn processes_of_a_session_are_listed_by_age() {
        let session = SessionDir::create().unwrap();
        let spec = Spec {
            ordinal: 0,
            rings: vec![64],
            facts: 16,
            strings: 16,
            string_bytes: 256,
        };
        // The process ids of the machine start again behind the first.
        let pids = [4_194_303, 302, 301, 4000];
        let files: Vec<RingFile> = (1u64..)
            .zip(pids)
            .map(|(created, pid)| {
                let header = Header {
                    pid,
                    created,
                    ..Header::default()
                };
                RingFile::create(session.path(), &ring_name(pid, 1, 0), &spec, header).unwrap()
            })
            .collect();
        let found: Vec<u32> = processes_of(session.path()).into_iter().map(|known| known.0).collect();
        assert_eq!(found, pids);
        drop(files);
        session.remove().unwrap();
    }

    #[test]
    fn an_end_is_read_after_the_session_went() {
        let mut session = SessionDir::create().unwrap();
        let other = SessionDir::open(session.path()).unwrap();
        assert_eq!(other.end(), None);
        session.started();
        session.note_end(12, Exit::Signal(9)).unwrap();
        session.remove().unwrap();
        assert_eq!(other.end(), Some((12, Exit::Signal(9))));
        let unused = SessionDir::create().unwrap().path().to_owned();
        assert!(!unused.exists(), "no program was started in it");
    }
}
