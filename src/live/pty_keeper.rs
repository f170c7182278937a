//! Holds the program's terminal beside the viewer, so that the program outlives it: when the last one that has the near end
//! of a terminal closes it, everyone behind it is hung up.
//!
//! A separate process (`roctop __keep SESSION`), started with every live screen. It does nothing while the viewer lives;
//! after that it reads what the program writes, since a terminal that nobody reads blocks its writers, and keeps
//! it in a file, which `roctop attach` shows. Such files go when they are old.

mod clearing;

use crate::live::ingest::IngestSender;
use anyhow::{Context, Result};
use roctop_ring::session::CONTROL;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{PipeWriter, Read, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// First argument that makes roctop the keeper.
pub const KEEP: &str = "__keep";

/// The viewer ended in order, and nobody is to be kept.
const OVER: u8 = b'o';
/// The viewer went, and the program goes on.
const DETACHED: u8 = b'd';

/// Bytes of output in a file; a second file holds the bytes before.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// Where the output of a session's program is kept while no viewer holds its terminal; none when there is no place.
pub fn kept(session: &Path) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = variable("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state")))?;
    Some(state.join("roctop").join(session.file_name()?).with_extension("out"))
}

/// Shows what a program printed, and prints, that the roctop which started it has left. Ends with this process.
pub fn follow(session: &Path, sender: IngestSender) {
    let Some(path) = kept(session) else { return };
    std::thread::spawn(move || {
        let mut file = None;
        let mut buffer = vec![0u8; 64 << 10];
        loop {
            let count = file
                .as_mut()
                .map_or(0, |(file, _)| File::read(file, &mut buffer).unwrap_or(0));
            if count > 0 {
                sender.output(buffer[..count].to_vec());
                continue;
            }
            // While there is none, the one that started the program has most likely not left.
            let pause = if file.is_some() { 100 } else { 300 };
            std::thread::sleep(Duration::from_millis(pause));
            // Another file of that name has what follows.
            if let Ok(facts) = fs::metadata(&path)
                && file.as_ref().is_none_or(|(_, known)| *known != facts.ino())
            {
                file = File::open(&path).ok().map(|file| (file, facts.ino()));
            }
        }
    });
}

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
    let into = session.and_then(kept);
    if let (Some(into), Some(sessions)) = (&into, session.and_then(Path::parent)) {
        clearing::clear(into, sessions);
    }
    drain(into.as_deref());
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

/// Reads until nobody has the far end any more, into a file as long as that goes.
fn drain(into: Option<&Path>) {
    let Ok(master) = stdin().as_fd().try_clone_to_owned() else {
        return;
    };
    let mut master = File::from(master);
    let mut buffer = vec![0u8; 64 << 10];
    let mut file = None;
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        if let Some(path) = into {
            // A full disk must not stop the program either.
            let _ = keep(path, &mut file, &buffer[..count]);
        }
    }
}

/// Appends to the file; a long one becomes the older half.
fn keep(path: &Path, file: &mut Option<(File, u64)>, bytes: &[u8]) -> std::io::Result<()> {
    if file.as_ref().is_some_and(|(_, length)| *length > MAX_FILE_BYTES) {
        fs::rename(path, path.with_extension("out.1"))?;
        *file = None;
    }
    let (file, length) = if let Some(open) = file {
        open
    } else {
        let directory = path.parent().unwrap_or(path);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let made = File::options().append(true).create(true).mode(0o600).open(path)?;
        let length = made.metadata()?.len();
        file.insert((made, length))
    };
    *length += bytes.len() as u64;
    file.write_all(bytes)
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
