//! Signals as they arrive. A handler writes each one into a pipe, so that a loop can wait for them beside other things.
//!
//! The Linux kernel queues real-time signals; so does the pipe, thousands of them.

#![expect(unsafe_code, reason = "signal handlers")]

use crate::MAX;
use crate::started;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// Bytes of a signal in the pipe.
const BYTES: usize = 24;
/// Bytes that the pipe holds, if the system allows it.
const PIPE_BYTES: i32 = 1 << 20;

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caught {
    /// Its number.
    pub signal: i32,
    /// How it was sent, `si_code` of sigaction(2): above zero by the Linux kernel.
    pub code: i32,
    /// The process that sent it; 0: unknown, or the Linux kernel.
    pub sender: i32,
    /// What its sender gave it, where that is how it was sent.
    pub value: u64,
}

impl Caught {
    /// Whether a process sent it, and not the Linux kernel.
    pub fn is_from_a_process(&self) -> bool {
        self.code <= 0
    }

    /// Sends the same to another process.
    pub fn pass_on(&self, pid: i32) -> io::Result<()> {
        let sent = if self.code == libc::SI_QUEUE {
            let value = libc::sigval {
                sival_ptr: std::ptr::without_provenance_mut(self.value as usize),
            };
            // SAFETY: sends a signal; this process does not use the value as a pointer.
            unsafe { libc::sigqueue(pid, self.signal, value) }
        } else {
            // SAFETY: sends a signal.
            unsafe { libc::kill(pid, self.signal) }
        };
        if sent == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// As bytes.
    pub fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.signal.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.code.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sender.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.value.to_ne_bytes());
        bytes
    }

    /// From bytes; the rest of an incomplete one is left.
    pub fn take_all(bytes: &mut Vec<u8>) -> Vec<Self> {
        let whole = bytes.len() / BYTES * BYTES;
        let taken: Vec<u8> = bytes.drain(..whole).collect();
        let number = |bytes: &[u8]| i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let of = |bytes: &[u8]| Self {
            signal: number(&bytes[..4]),
            code: number(&bytes[4..8]),
            sender: number(&bytes[8..12]),
            value: bytes[16..]
                .iter()
                .rev()
                .fold(0, |value, byte| value << 8 | u64::from(*byte)),
        };
        taken.chunks_exact(BYTES).map(of).collect()
    }
}

/// The pipe that handlers write into, made once: a handler may still run when nobody wants its signal any more.
static PIPE: OnceLock<(io::PipeReader, io::PipeWriter)> = OnceLock::new();
/// The descriptor that the handler writes to.
static INTO: AtomicI32 = AtomicI32::new(-1);
/// The earlier action of each signal.
static BEFORE: OnceLock<Vec<Option<libc::sigaction>>> = OnceLock::new();

/// The signals that this process catches. Dropping it restores the earlier actions.
#[derive(Debug)]
pub struct Signals {
    caught: Vec<i32>,
}

impl Signals {
    /// Catches the signals among `wanted` that can be caught. There is one at a time in a process.
    ///
    /// Errors: there is no pipe.
    pub fn catch(wanted: impl Fn(i32) -> bool) -> io::Result<Self> {
        BEFORE.get_or_init(|| (0..=MAX).map(started::action).collect());
        if PIPE.get().is_none() {
            let (reader, writer) = io::pipe()?;
            for end in [reader.as_raw_fd(), writer.as_raw_fd()] {
                // SAFETY: sets a flag of an open descriptor.
                if unsafe { libc::fcntl(end, libc::F_SETFL, libc::O_NONBLOCK) } == -1 {
                    return Err(io::Error::last_os_error());
                }
            }
            // SAFETY: a request about an open pipe; the usual size does too.
            unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
            INTO.store(writer.as_raw_fd(), Ordering::Relaxed);
            let _ = PIPE.set((reader, writer));
        }
        let signals: Vec<i32> = (1..=MAX).filter(|signal| wanted(*signal)).collect();
        let caught = signals.into_iter().filter(|signal| handle(*signal)).collect();
        let mut signals = Self { caught };
        signals.unblock();
        // Drops signals that an earlier instance caught.
        signals.read();
        Ok(signals)
    }

    /// The system delivers them to this thread if all others block them.
    fn unblock(&self) {
        let mut set = started::empty_set();
        for signal in &self.caught {
            // SAFETY: the set is valid.
            unsafe { libc::sigaddset(&raw mut set, *signal) };
        }
        // SAFETY: the set is valid.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
    }

    /// Those that have arrived since the last time.
    pub fn read(&mut self) -> Vec<Caught> {
        let Some(mut reader) = PIPE.get().map(|(reader, _)| reader) else {
            return Vec::new();
        };
        let mut bytes = Vec::new();
        let mut part = [0; 256 * BYTES];
        while let Ok(count @ 1..) = reader.read(&mut part) {
            bytes.extend_from_slice(&part[..count]);
        }
        Caught::take_all(&mut bytes)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // There is no `Signals` without the pipe.
        PIPE.get().map_or_else(|| unreachable!(), |(reader, _)| reader.as_fd())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for signal in &self.caught {
            let before = BEFORE.get().and_then(|before| before[*signal as usize].as_ref());
            if let Some(before) = before {
                // SAFETY: the action was in force earlier.
                unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
            }
        }
    }
}

/// Replaces the default action of a signal by nothing. True if that was possible.
pub fn ignore_default_action(signal: i32) -> bool {
    handle(signal)
}

/// Installs the handler.
fn handle(signal: i32) -> bool {
    let Some(mut action) = started::action(signal) else {
        return false;
    };
    action.sa_sigaction = note as extern "C" fn(_, _, _) as usize;
    action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO | libc::SA_ONSTACK;
    // One at a time and in their order: handlers that interrupt each other overflow the small alternate stack.
    // SAFETY: fills a set.
    unsafe { libc::sigfillset(&raw mut action.sa_mask) };
    // SAFETY: the handler is one for three arguments, as the flag says.
    unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) == 0 }
}

/// Signals that the Linux kernel sends a thread for a fault of the thread itself.
const FAULTS: [i32; 6] = [
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
];

/// The handler: only what signal-safety(7) allows.
extern "C" fn note(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the system gives the handler a valid structure.
    let info = unsafe { &*info };
    if info.si_code > 0 && FAULTS.contains(&signal) {
        // A fault of this process: it repeats, and then meets the earlier action.
        let before = BEFORE.get().and_then(|before| before[signal as usize].as_ref());
        match before {
            // SAFETY: the action was in force earlier.
            Some(before) => unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) },
            None => 0,
        };
        return;
    }
    let mut caught = Caught {
        signal,
        code: info.si_code,
        sender: 0,
        value: 0,
    };
    if matches!(info.si_code, libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL) {
        // SAFETY: signals that are sent so have it.
        caught.sender = unsafe { info.si_pid() };
    }
    if info.si_code == libc::SI_QUEUE {
        // SAFETY: likewise.
        caught.value = unsafe { info.si_value() }.sival_ptr as u64;
    }
    let bytes = caught.to_bytes();
    // SAFETY: errno is this thread's; the interrupted code finds it as it was.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(INTO.load(Ordering::Relaxed), bytes.as_ptr().cast(), BYTES);
        *errno = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_signals_are_counted_and_have_senders() {
        let own = std::process::id() as i32;
        let signal = libc::SIGRTMIN() + 3;
        let mut signals = Signals::catch(|wanted| wanted == signal).unwrap();
        let sent = Caught {
            signal,
            code: libc::SI_QUEUE,
            sender: own,
            value: 0x1234_5678_9abc_def0,
        };
        for _ in 0..2000 {
            sent.pass_on(own).unwrap();
        }
        let mut seen = Vec::new();
        while seen.len() < 2000 {
            seen.extend(signals.read());
            std::thread::yield_now();
        }
        assert!(seen.iter().all(|seen| *seen == sent), "{:?}", seen[0]);
        drop(signals);
        let action = started::action(signal).unwrap();
        assert_eq!(action.sa_sigaction, libc::SIG_DFL);
        // There is one `Signals` in a process, so this is no separate test.
        signals_that_come_at_once_are_caught_in_their_order();
    }

    /// Handlers that interrupt each other overflow the alternate stack, and the process dies.
    fn signals_that_come_at_once_are_caught_in_their_order() {
        let sent: Vec<i32> = (libc::SIGRTMIN() + 4..=libc::SIGRTMAX()).collect();
        let mut signals = Signals::catch(|wanted| sent.contains(&wanted)).unwrap();
        let mut set = started::empty_set();
        for signal in &sent {
            // SAFETY: the set is valid.
            unsafe { libc::sigaddset(&raw mut set, *signal) };
        }
        // SAFETY: the set is valid, and this thread exists.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            for signal in &sent {
                libc::pthread_kill(libc::pthread_self(), *signal);
            }
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        }
        let seen: Vec<i32> = signals.read().iter().map(|caught| caught.signal).collect();
        assert_eq!(seen, sent);
    }

    #[test]
    fn signals_keep_their_bytes() {
        let one = Caught {
            signal: 64,
            code: -1,
            sender: 4_194_304,
            value: u64::MAX - 1,
        };
        let mut bytes = [one.to_bytes(), one.to_bytes()].concat();
        bytes.push(7);
        assert_eq!(Caught::take_all(&mut bytes), [one, one]);
        assert_eq!(bytes, [7]);
    }
}
