//! How this process was started, and a program that is started in the same way.
//!
//! Rust's start-up ignores SIGPIPE and opens /dev/null in place of closed standard streams. It is read before that.

#![expect(
    unsafe_code,
    reason = "dispositions, masks and descriptors, before main and between fork and exec"
)]

use crate::MAX;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Signals that were ignored, a bit each: that of signal 1 is the lowest.
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// Signals that were blocked, likewise.
static BLOCKED: AtomicU64 = AtomicU64::new(0);
/// Standard streams that were closed: bit 0 for standard input.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// The C library calls this before Rust's start-up.
#[used]
#[unsafe(link_section = ".init_array")]
static READ: extern "C" fn() = read;

extern "C" fn read() {
    let ignored = (1..=MAX).filter(|signal| action(*signal).is_some_and(|action| action.sa_sigaction == libc::SIG_IGN));
    IGNORED.store(bits(ignored), Ordering::Relaxed);
    let mut set = empty_set();
    // SAFETY: reads the mask into a valid set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, null(), &raw mut set) };
    // SAFETY: the set was filled above.
    let blocked = (1..=MAX).filter(|signal| unsafe { libc::sigismember(&raw const set, *signal) } == 1);
    BLOCKED.store(bits(blocked), Ordering::Relaxed);
    // SAFETY: asks for a flag of a descriptor, which need not be open.
    let closed = (0..3u8).filter(|stream| unsafe { libc::fcntl(i32::from(*stream), libc::F_GETFD) } == -1);
    CLOSED.store(closed.fold(0, |all, stream| all | 1 << stream), Ordering::Relaxed);
    // While it is ignored, the Linux kernel keeps no exit code of a child.
    default_action(libc::SIGCHLD);
}

fn bits(signals: impl Iterator<Item = i32>) -> u64 {
    signals.fold(0, |all, signal| all | 1 << (signal - 1))
}

fn has(bits: &AtomicU64, signal: i32) -> bool {
    (1..=MAX).contains(&signal) && bits.load(Ordering::Relaxed) >> (signal - 1) & 1 == 1
}

/// Whether a signal was ignored when this process was started, as under nohup.
pub fn is_ignored(signal: i32) -> bool {
    has(&IGNORED, signal)
}

/// Whether a standard stream was closed when this process was started: 0, 1 or 2.
pub fn was_closed(stream: u8) -> bool {
    stream < 3 && CLOSED.load(Ordering::Relaxed) >> stream & 1 == 1
}

/// The current action of a signal; `None` for those that the C library reserves.
pub(crate) fn action(signal: i32) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::zeroed();
    // SAFETY: the call fills the structure, all of which may be zero too.
    (unsafe { libc::sigaction(signal, null(), action.as_mut_ptr()) } == 0).then(|| unsafe { action.assume_init() })
}

pub(crate) fn default_action(signal: i32) {
    // SAFETY: no handler is set.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

pub(crate) fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: the call fills the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Lets a command start its program as this process was started: with the same ignored and blocked signals, and with those of
/// the standard `streams` closed that were closed. `streams` must not name one that the command redirects.
pub fn restore(command: &mut Command, streams: impl IntoIterator<Item = u8>) {
    let closed: Vec<u8> = streams.into_iter().filter(|stream| was_closed(*stream)).collect();
    let prepare = move || {
        for signal in 1..=MAX {
            let action = if is_ignored(signal) {
                libc::SIG_IGN
            } else {
                libc::SIG_DFL
            };
            // SAFETY: no handler is set; signals that cannot be set are an error without effect.
            unsafe { libc::signal(signal, action) };
        }
        for stream in &closed {
            // SAFETY: Rust's start-up opened it, and nothing uses it.
            unsafe { libc::close(i32::from(*stream)) };
        }
        let mut set = empty_set();
        for signal in (1..=MAX).filter(|signal| has(&BLOCKED, *signal)) {
            // SAFETY: the set is valid.
            unsafe { libc::sigaddset(&raw mut set, signal) };
        }
        // Last: signals that arrived meanwhile meet the program's own disposition.
        // SAFETY: the set is valid.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, null_mut()) };
        Ok(())
    };
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// Starts a command. No handler of this process runs in the child: signals to the child stay pending until it executes its
/// program.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let (mut all, mut before) = (empty_set(), empty_set());
    // SAFETY: all sets are valid.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let child = command.spawn();
    // SAFETY: the set was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut()) };
    child
}
