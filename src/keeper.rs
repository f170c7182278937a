//! Holds the program's terminal beside the viewer, so that the program outlives it: when the last one that has the near end
//! of a terminal closes it, everyone behind it is hung up.
//!
//! A process of its own (`roctop __keep SESSION`), started with every live screen. It does nothing while the viewer lives;
//! after that it reads what the program writes, since a terminal that nobody reads stops whoever writes to it.

use anyhow::{Context, Result};
use roctop_ring::session::CONTROL;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{PipeWriter, Read, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// First argument that makes roctop the keeper.
pub const KEEP: &str = "__keep";

/// The viewer ended in order, and nobody is to be kept.
const OVER: u8 = b'o';
/// The viewer went, and the program was told to go on.
const DETACHED: u8 = b'd';

/// A keeper as the viewer sees it.
pub struct Keeper {
    child: Child,
    word: PipeWriter,
}

impl Keeper {
    /// Starts one that holds `master` and knows the session.
    pub fn start(master: &File, session: &Path) -> Result<Self> {
        let own = std::env::current_exe().context("cannot find roctop's own file")?;
        let (read, word) = std::io::pipe()?;
        let child = Command::new(own)
            .arg(KEEP)
            .arg(session)
            .stdin(Stdio::from(master.try_clone()?))
            .stdout(Stdio::from(std::os::fd::OwnedFd::from(read)))
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the process that keeps the program's terminal")?;
        Ok(Self { child, word })
    }

    /// It is not needed: the program has ended, or goes with the viewer.
    pub fn dismiss(mut self) {
        // One that is gone needs no word.
        let _ = self.word.write_all(&[OVER]);
        let _ = self.child.wait();
    }

    /// It is to go on without a viewer.
    pub fn leave(mut self) {
        let _ = self.word.write_all(&[DETACHED]);
    }
}

/// The words after the keeper's first argument, from the process's own.
pub fn arguments() -> Option<Vec<OsString>> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == OsStr::from_bytes(KEEP.as_bytes())).then(|| words.collect())
}

/// The keeper's life; the exit code.
pub fn run(arguments: &[OsString]) -> u8 {
    // The terminal that the viewer is in may be closed, and what is typed there is not for the keeper.
    let _ = rustix::process::setsid();
    let word = first_word();
    if word == Some(OVER) {
        return 0;
    }
    let session = arguments.first().map(Path::new);
    // The session is in use while this lock is held, also before the program makes its first ring.
    let lock = session.and_then(|session| File::open(session.join(CONTROL)).ok());
    let _ = lock.as_ref().map(File::lock_shared);
    drain();
    drop(lock);
    if word == Some(DETACHED)
        && let Some(session) = session
    {
        remove(session);
    }
    0
}

/// What the viewer says at its end; none when it was killed.
fn first_word() -> Option<u8> {
    let mut pipe = File::from(stdout().as_fd().try_clone_to_owned().ok()?);
    let mut word = [0u8];
    pipe.read_exact(&mut word).ok().map(|()| word[0])
}

/// Reads until nobody has the far end any more.
fn drain() {
    let Ok(master) = stdin().as_fd().try_clone_to_owned() else {
        return;
    };
    let mut master = File::from(master);
    let mut buffer = vec![0u8; 64 << 10];
    while matches!(master.read(&mut buffer), Ok(1..)) {}
}

/// Takes a session away that nobody is in any more. A program that ends closes its terminal before it lets its rings go.
fn remove(session: &Path) {
    for _ in 0..50 {
        if !session.join(CONTROL).exists() {
            return;
        }
        if !crate::session::is_in_use(session) {
            let _ = fs::remove_dir_all(session);
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
