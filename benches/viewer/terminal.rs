//! roctop in a pseudo-terminal: latency from key to screen, and CPU time of the process.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::line::{self, Arriving};

const SIZE: (u16, u16) = (120, 36);
/// Time after which an unchanged screen counts as stuck.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(20);
/// Time that roctop gets to end its program and itself.
const PATIENCE_AT_END: Duration = Duration::from_secs(3);

pub(crate) struct Terminal {
    master: File,
    parser: vt100::Parser,
    child: Child,
    /// What arrives over a slow line, if there is one between.
    arriving: Option<Arriving>,
    /// Bytes that were shown.
    seen: u64,
}

impl Terminal {
    /// Starts a viewer, this roctop or another.
    pub(crate) fn start(viewer: &str, arguments: &[&str]) -> Result<Self> {
        Self::open(viewer, arguments, SIZE, Path::new("/nonexistent"))
    }

    /// Starts this roctop at the far end of a slow line, with the settings in a directory.
    pub(crate) fn over_line(arguments: &[&str], size: (u16, u16), settings: &Path, is_tcp: bool) -> Result<Self> {
        let mut terminal = Self::open(env!("CARGO_BIN_EXE_roctop"), arguments, size, settings)?;
        terminal.arriving = Some(line::relay(terminal.master.try_clone()?, is_tcp)?);
        Ok(terminal)
    }

    fn open(viewer: &str, arguments: &[&str], (columns, rows): (u16, u16), settings: &Path) -> Result<Self> {
        let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&master, size)?;
        let name = rustix::pty::ptsname(&master, Vec::new())?;
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave: OwnedFd = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty())?;
        let roctop = env!("CARGO_BIN_EXE_roctop");
        // roctop's own trampoline creates the session with this terminal.
        let child = Command::new(roctop)
            .args(["__launch", "terminal", viewer, "0", viewer])
            .args(arguments)
            .env("TERM", "xterm-256color")
            .env("XDG_CONFIG_HOME", settings)
            .env_remove("COLORTERM")
            .env_remove("NO_COLOR")
            .stdin(Stdio::from(slave.try_clone()?))
            .stdout(Stdio::from(slave.try_clone()?))
            .stderr(Stdio::from(slave))
            .spawn()?;
        let cells = |count| NonZeroU16::new(count).context("a size of the terminal");
        Ok(Self {
            master: File::from(master),
            parser: vt100::Parser::new(cells(rows)?, cells(columns)?, 0),
            child,
            arriving: None,
            seen: 0,
        })
    }

    /// Bytes that were shown so far.
    pub(crate) const fn seen(&self) -> u64 {
        self.seen
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// Reads roctop's output for `time`.
    pub(crate) fn watch(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.take(until.saturating_duration_since(Instant::now()))?;
        }
        Ok(())
    }

    /// Reads the next output, if it arrives within `time`.
    fn take(&mut self, time: Duration) -> Result<()> {
        if let Some(arriving) = &self.arriving {
            match arriving.recv_timeout(time) {
                Ok((due, bytes)) => {
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    self.show(&bytes);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("roctop has ended\n{}", self.text()),
            }
            return Ok(());
        }
        let wait = Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let mut ready = [PollFd::new(&self.master, PollFlags::IN)];
        if poll(&mut ready, Some(&wait))? == 0 {
            return Ok(());
        }
        let mut buffer = vec![0; 1 << 16];
        let read = self.master.read(&mut buffer);
        let count = read.with_context(|| format!("roctop has ended\n{}", self.text()))?;
        self.show(&buffer[..count]);
        Ok(())
    }

    fn show(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        self.parser.process(bytes);
    }

    /// Waits until the screen satisfies `wanted`; returns how long that took.
    pub(crate) fn wait(&mut self, what: &str, wanted: &dyn Fn(&str) -> bool) -> Result<Duration> {
        self.wait_for(SCREEN_TIMEOUT, what, wanted)
    }

    /// As `wait`, for at most `patience`.
    pub(crate) fn wait_for(
        &mut self,
        patience: Duration,
        what: &str,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Duration> {
        let began = Instant::now();
        while !wanted(&self.text()) {
            if began.elapsed() > patience {
                bail!("never seen: {what}\n{}", self.text());
            }
            self.take(Duration::from_secs(1))?;
        }
        Ok(began.elapsed())
    }

    /// Types keys and waits until the screen satisfies `wanted`: the latency from key to screen.
    pub(crate) fn key(&mut self, keys: &str, what: &str, wanted: &dyn Fn(&str) -> bool) -> Result<Duration> {
        let began = Instant::now();
        if self.arriving.is_some() {
            std::thread::sleep(line::DELAY);
        }
        self.master.write_all(keys.as_bytes())?;
        self.wait(what, wanted)?;
        Ok(began.elapsed())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A viewer that is killed leaves its program running, and a demo would disturb the next measurement.
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < PATIENCE_AT_END {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of a process, user and system.
pub(crate) fn process_time(pid: u32) -> Result<Duration> {
    // The scheduler's own sum: `stat` counts in hundredths of a second.
    let mut sum = 0u64;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text
            .split(' ')
            .next()
            .and_then(|word| word.parse::<u64>().ok())
            .context("schedstat")?;
    }
    Ok(Duration::from_nanos(sum))
}

/// Memory of a process in bytes: private, and resident.
pub(crate) fn memory(pid: u32) -> Result<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let of = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib << 10)
    };
    of("RssAnon:").zip(of("VmRSS:")).context("status")
}
