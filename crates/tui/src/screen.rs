//! The terminal: raw mode, the alternate screen, keys in, one write per frame out. Always put back as it was.

mod encode;
pub mod frames;
mod sequence;
mod shift;

use crate::waker;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, Once, PoisonError};

use ratatui::buffer::Buffer;
use roctop_trace::clocks::boottime;
use roctop_trace::item::Nanos;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{self, OptionalActions, Termios};

pub use self::encode::{ansi_rows, attributes};
use self::frames::Frames;
use super::key::{Decoder, Input};
use super::theme::Theme;

/// How long the rest of an escape sequence may take, ms: it comes in the same packet, and after Escape the user waits for this
/// (tmux 3.5 waits as long).
const SEQUENCE: u64 = 10;

/// Maximum number of bytes of a read.
const MAX_READ: usize = 64 << 10;
/// How long the rest of a paste may take, ns; its end may be lost on the way, and keys are to be keys again.
const PASTE: Nanos = 1_000_000_000;

/// What must be put back, also by the panic hook.
struct Before {
    tty: File,
    modes: Termios,
}

static BEFORE: Mutex<Option<Arc<Before>>> = Mutex::new(None);

impl Before {
    fn put_back(&self) {
        let _ = (&self.tty).write_all(&sequence::leave());
        let _ = termios::tcsetattr(&self.tty, OptionalActions::Now, &self.modes);
    }
}

/// How the screen is drawn.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only ASCII is sent.
    pub ascii: bool,
    /// Characters that the terminal is asked to name the mouse by; false leaves the mouse to the terminal.
    pub no_mouse: bool,
    /// The terminal is asked how bright its background is.
    pub asks_background: bool,
}

/// The terminal while we have it.
pub struct Screen {
    tty: File,
    theme: Theme,
    options: Options,
    before: Arc<Before>,
    frames: Frames,
    decoder: Decoder,
    is_raw: bool,
    /// When the terminal was read last.
    read: Nanos,
    /// Bytes written so far.
    pub written: u64,
}

impl Screen {
    /// Takes the terminal. `tty` is the controlling terminal, open for reading and writing.
    pub fn open(tty: File, theme: Theme, options: Options) -> io::Result<Self> {
        let before = Arc::new(Before {
            tty: tty.try_clone()?,
            modes: termios::tcgetattr(&tty)?,
        });
        restore_after_panic();
        let mut screen = Self {
            tty,
            theme,
            frames: Frames::new(options.ascii),
            options,
            before,
            decoder: Decoder::default(),
            is_raw: false,
            read: 0,
            written: 0,
        };
        screen.enter()?;
        if screen.options.asks_background {
            screen.decoder.expect_answer();
            screen.tty.write_all(sequence::BACKGROUND)?;
        }
        Ok(screen)
    }

    /// The theme in use.
    pub fn theme(&self) -> &Theme {
        &self.theme
    }

    /// Goes on in another theme.
    pub fn set_theme(&mut self, theme: Theme) {
        self.theme = theme;
        self.redraw();
    }

    /// From now on only ASCII is sent, or not.
    pub fn set_ascii(&mut self, ascii: bool) {
        self.options.ascii = ascii;
        self.frames = Frames::new(ascii);
    }

    /// Takes the terminal again after [`Screen::leave`].
    pub fn enter(&mut self) -> io::Result<()> {
        let mut raw = self.before.modes.clone();
        raw.make_raw();
        termios::tcsetattr(&self.tty, OptionalActions::Now, &raw)?;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.before.clone());
        self.tty.write_all(&sequence::enter())?;
        self.ask_for_input()?;
        self.redraw();
        Ok(())
    }

    /// Gives the terminal back for a while.
    pub fn leave(&mut self) {
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.before.put_back();
    }

    /// From now on input is bytes and not keys, and clicks are the terminal's own; or keys, clicks and pastes again.
    pub fn set_raw(&mut self, raw: bool) -> io::Result<()> {
        if self.is_raw != raw {
            self.is_raw = raw;
            self.ask_for_input()?;
        }
        Ok(())
    }

    fn ask_for_input(&mut self) -> io::Result<()> {
        let is_wanted = !self.options.no_mouse && !self.is_raw;
        // While keys go to the program, a paste has no marks: the program may not know them.
        let paste = if self.is_raw {
            sequence::NO_PASTE
        } else {
            sequence::PASTE
        };
        let mouse = if is_wanted { sequence::MOUSE } else { sequence::NO_MOUSE };
        self.tty.write_all(&[mouse, paste].concat())
    }

    /// Hands a text to the clipboard of the terminal (OSC 52), which may be far away.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        let bytes = format!("\x1b]52;c;{}\x07", base64(text.as_bytes()));
        self.written += bytes.len() as u64;
        self.tty.write_all(bytes.as_bytes())
    }

    /// Columns and rows.
    pub fn size(&self) -> (u16, u16) {
        match termios::tcgetwinsize(&self.tty) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.min(1000), size.ws_row.min(500)),
            _ => (80, 24),
        }
    }

    /// The next frame is sent whole.
    pub fn redraw(&mut self) {
        self.frames.redraw();
    }

    /// Whether the terminal takes bytes at once: it does not while it, or the line to it, is behind.
    pub fn has_room(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.tty.as_fd(), PollFlags::OUT)];
        let now = rustix::event::Timespec::default();
        // What is wrong with a terminal shows itself when it is written to.
        !matches!(poll(&mut fds, Some(&now)), Ok(0))
    }

    /// Draws a frame: what changed goes out in one write; nothing goes out when nothing changed.
    pub fn draw(&mut self, size: (u16, u16), paint: impl FnOnce(&Theme, &mut Buffer)) -> io::Result<()> {
        let theme = &self.theme;
        let bytes = self.frames.next(size, |buffer| paint(theme, buffer));
        if bytes.is_empty() {
            return Ok(());
        }
        self.written += bytes.len() as u64;
        self.tty.write_all(&bytes)
    }

    /// Waits at most `timeout` ms for the next input. An error means that the terminal is gone.
    pub fn input(&mut self, timeout: u64) -> io::Result<Option<Input>> {
        if self.is_raw {
            return self.bytes(timeout);
        }
        if let Some(input) = self.decoder.next(false) {
            return Ok(Some(input));
        }
        let (wait, waker) = if self.decoder.is_waiting() {
            (SEQUENCE, None)
        } else {
            (timeout, waker::event())
        };
        if !self.readable(wait, waker)? {
            if self.decoder.is_pasting() && boottime().saturating_sub(self.read) > PASTE {
                self.decoder.end_paste();
            }
            return Ok(self.decoder.next(true));
        }
        let bytes = self.read()?;
        self.decoder.feed(&bytes);
        if let Some(input) = self.decoder.next(false) {
            return Ok(Some(input));
        }
        // An escape: alone, or the begin of a sequence whose rest comes at once.
        if self.decoder.is_waiting() && !self.readable(SEQUENCE, None)? {
            return Ok(self.decoder.next(true));
        }
        Ok(None)
    }

    /// When the last input was read, and how many keys and clicks came with it.
    pub const fn last_read(&self) -> (Nanos, usize) {
        (self.read, self.decoder.together())
    }

    /// All available bytes: a buffer that was filled leaves a rest, which came with it.
    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.read = boottime();
        let mut all = Vec::new();
        let mut bytes = [0u8; 1024];
        loop {
            let count = match rustix::io::read(&self.tty, &mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => 0,
                Err(error) => return Err(error.into()),
            };
            all.extend_from_slice(&bytes[..count]);
            if count < bytes.len() || all.len() > MAX_READ || !self.readable(0, None)? {
                return Ok(all);
            }
        }
    }

    /// The next bytes as they come.
    fn bytes(&mut self, timeout: u64) -> io::Result<Option<Input>> {
        let mut bytes = self.decoder.rest();
        if bytes.is_empty() && self.readable(timeout, waker::event())? {
            bytes = self.read()?;
        }
        Ok((!bytes.is_empty()).then_some(Input::Bytes(bytes)))
    }

    /// Waits at most `milliseconds` ms for input or the waker; true if there is input.
    fn readable(&self, milliseconds: u64, waker: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        // Without a waker the terminal is asked for twice.
        let tty = self.tty.as_fd();
        let mut fds = [tty, waker.unwrap_or(tty)].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let seconds = i64::try_from(milliseconds / 1000).unwrap_or(0);
        let nanos = (milliseconds % 1000 * 1_000_000) as _;
        let timeout = rustix::event::Timespec {
            tv_sec: seconds,
            tv_nsec: nanos,
        };
        let answer = poll(&mut fds, Some(&timeout));
        if waker.is_some() && fds[1].revents().contains(PollFlags::IN) {
            waker::seen();
        }
        match answer {
            Ok(_) if fds[0].revents().contains(PollFlags::IN) => Ok(true),
            Ok(_)
                if fds[0]
                    .revents()
                    .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) =>
            {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let held = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(before) = held {
            before.put_back();
        }
    }
}

/// Puts the terminal back as it was, when a screen is open: for a way out that runs no destructors.
pub fn put_back() {
    let held = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = held {
        before.put_back();
    }
}

/// A panic's message is printed after the terminal was put back, so that it can be read.
fn restore_after_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            put_back();
            before(info);
        }));
    });
}

/// Base 64 with padding, RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit <= chunk.len() {
                out.push(char::from(DIGITS[(word >> (18 - 6 * digit) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clipboard_gets_base_64() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, coded) in cases {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }
}
