//! The terminal: raw mode, the alternate screen, keys in, one write per frame out. Always put back as it was.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, Once, PoisonError};

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{self, OptionalActions, Termios};

use super::key::{Decoder, Input};
use super::theme::Theme;

const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?1006h\x1b[2J";
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?1006l\x1b[?1000l\x1b[0m\x1b[?25h\x1b[?1049l";
/// How long the rest of an escape sequence may take, ms.
const SEQUENCE: u64 = 30;

/// What must be put back, also by the panic hook.
struct Before {
    tty: File,
    modes: Termios,
}

static BEFORE: Mutex<Option<Arc<Before>>> = Mutex::new(None);

impl Before {
    fn put_back(&self) {
        let _ = (&self.tty).write_all(LEAVE);
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
}

/// The terminal while we have it.
pub struct Screen {
    tty: File,
    theme: Theme,
    options: Options,
    before: Arc<Before>,
    shown: Buffer,
    next: Buffer,
    is_fresh: bool,
    decoder: Decoder,
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
            options,
            before,
            shown: Buffer::empty(Rect::ZERO),
            next: Buffer::empty(Rect::ZERO),
            is_fresh: true,
            decoder: Decoder::default(),
            written: 0,
        };
        screen.enter()?;
        Ok(screen)
    }

    /// The theme in use.
    pub fn theme(&self) -> &Theme {
        &self.theme
    }

    /// Takes the terminal again after [`Screen::leave`].
    pub fn enter(&mut self) -> io::Result<()> {
        let mut raw = self.before.modes.clone();
        raw.make_raw();
        termios::tcsetattr(&self.tty, OptionalActions::Now, &raw)?;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.before.clone());
        self.tty.write_all(ENTER)?;
        if self.options.no_mouse {
            self.tty.write_all(b"\x1b[?1006l\x1b[?1000l")?;
        }
        self.redraw();
        Ok(())
    }

    /// Gives the terminal back for a while.
    pub fn leave(&mut self) {
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.before.put_back();
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
        self.is_fresh = true;
    }

    /// Draws a frame: what changed goes out in one write; nothing goes out when nothing changed.
    pub fn draw(&mut self, size: (u16, u16), paint: impl FnOnce(&Theme, &mut Buffer)) -> io::Result<()> {
        let area = Rect::new(0, 0, size.0, size.1);
        if self.shown.area != area {
            self.shown = Buffer::empty(area);
            self.is_fresh = true;
        }
        self.next.resize(area);
        self.next.reset();
        paint(&self.theme, &mut self.next);
        let mut bytes = Vec::new();
        if self.is_fresh {
            bytes.extend_from_slice(b"\x1b[0m\x1b[2J");
            self.shown.reset();
        }
        encode(&self.shown, &self.next, self.options.ascii, &mut bytes);
        self.is_fresh = false;
        std::mem::swap(&mut self.shown, &mut self.next);
        if bytes.is_empty() {
            return Ok(());
        }
        // Terminals that know it show a large frame at once.
        if bytes.len() > 64 {
            bytes = [b"\x1b[?2026h".as_slice(), &bytes, b"\x1b[?2026l"].concat();
        }
        self.written += bytes.len() as u64;
        self.tty.write_all(&bytes)
    }

    /// The next input, waited for at most so many milliseconds. An error means that the terminal is gone.
    pub fn input(&mut self, timeout: u64) -> io::Result<Option<Input>> {
        if let Some(input) = self.decoder.next(false) {
            return Ok(Some(input));
        }
        let wait = if self.decoder.is_waiting() { SEQUENCE } else { timeout };
        if !self.readable(wait)? {
            return Ok(self.decoder.next(true));
        }
        let mut bytes = [0u8; 1024];
        match rustix::io::read(&self.tty, &mut bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.decoder.feed(&bytes[..count]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(input) = self.decoder.next(false) {
            return Ok(Some(input));
        }
        // An escape: alone, or the begin of a sequence whose rest comes at once.
        if self.decoder.is_waiting() && !self.readable(SEQUENCE)? {
            return Ok(self.decoder.next(true));
        }
        Ok(None)
    }

    fn readable(&self, milliseconds: u64) -> io::Result<bool> {
        let mut fds = [PollFd::from_borrowed_fd(self.tty.as_fd(), PollFlags::IN)];
        let seconds = i64::try_from(milliseconds / 1000).unwrap_or(0);
        let nanos = (milliseconds % 1000 * 1_000_000) as _;
        let timeout = rustix::event::Timespec {
            tv_sec: seconds,
            tv_nsec: nanos,
        };
        match poll(&mut fds, Some(&timeout)) {
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

/// The bytes that turn what is shown into what is next.
fn encode(shown: &Buffer, next: &Buffer, ascii: bool, out: &mut Vec<u8>) {
    let mut pen = Cell::EMPTY;
    let mut at = None;
    let mut painted = false;
    for (x, y, cell) in shown.diff(next) {
        if at != Some((x, y)) {
            let _ = match at {
                Some((old, row)) if row == y && x > old && x - old < 4 && old + 1 < next.area.width => {
                    write!(out, "\x1b[{}C", x - old)
                }
                _ => write!(out, "\x1b[{};{}H", y + 1, x + 1),
            };
        }
        style(&mut pen, cell, out);
        painted = true;
        let symbol = cell.symbol();
        if ascii {
            out.extend(symbol.chars().map(|c| plain(c) as u8));
        } else {
            out.extend_from_slice(symbol.as_bytes());
        }
        at = Some((x + crate::format::width(symbol).max(1) as u16, y));
    }
    if painted && (pen.fg, pen.bg, pen.modifier) != (Color::Reset, Color::Reset, Modifier::empty()) {
        out.extend_from_slice(b"\x1b[m");
    }
}

/// Changes the pen to a cell's style.
fn style(pen: &mut Cell, cell: &Cell, out: &mut Vec<u8>) {
    // What is blank has no colour of letters.
    let shows = Modifier::UNDERLINED | Modifier::REVERSED;
    let is_blank = cell.symbol() == " " && !pen.modifier.union(cell.modifier).intersects(shows);
    if pen.bg == cell.bg && (is_blank || (pen.modifier == cell.modifier && pen.fg == cell.fg)) {
        return;
    }
    let mut codes = String::new();
    let add = |codes: &mut String, code: &str| {
        if !codes.is_empty() {
            codes.push(';');
        }
        codes.push_str(code);
    };
    let (mut fg, mut bg, mut modifier) = (pen.fg, pen.bg, pen.modifier);
    if (cell.fg, cell.bg) == (Color::Reset, Color::Reset) && cell.modifier.is_empty() {
        add(&mut codes, "");
        (fg, bg, modifier) = (Color::Reset, Color::Reset, Modifier::empty());
    }
    let taken = modifier.difference(cell.modifier);
    let weights = Modifier::BOLD | Modifier::DIM;
    if taken.intersects(weights) {
        add(&mut codes, "22");
        modifier.remove(weights);
    }
    for (flag, code) in [(Modifier::UNDERLINED, "24"), (Modifier::REVERSED, "27")] {
        if taken.contains(flag) {
            add(&mut codes, code);
        }
    }
    let given = cell.modifier.difference(modifier);
    for (flag, code) in [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
    ] {
        if given.contains(flag) {
            add(&mut codes, code);
        }
    }
    if fg != cell.fg {
        add(&mut codes, &color(cell.fg, 30));
    }
    if bg != cell.bg {
        add(&mut codes, &color(cell.bg, 40));
    }
    let _ = write!(out, "\x1b[{codes}m");
    (pen.fg, pen.bg, pen.modifier) = (cell.fg, cell.bg, cell.modifier);
}

fn color(color: Color, base: u8) -> String {
    match color {
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", base + 8),
        Color::Indexed(n @ 0..=7) => (base + n).to_string(),
        Color::Indexed(n @ 8..=15) => (base + 52 + n).to_string(),
        Color::Indexed(n) => format!("{};5;{n}", base + 8),
        _ => (base + 9).to_string(),
    }
}

/// The nearest ASCII character.
#[expect(clippy::match_same_arms, reason = "a table, in the order in which it is read")]
fn plain(c: char) -> char {
    match c {
        ' '..='~' => c,
        '─' | '–' | '—' => '-',
        '│' | '┤' | '├' | '╷' | '▏' | '▌' | '▎' | '▍' => '|',
        '┌' | '┐' | '└' | '┘' | '╫' => '+',
        '·' => '.',
        '▁' | '▂' => '_',
        '▃' | '▄' => '=',
        '▅' | '▆' | '▇' | '█' | '▊' | '▉' | '▋' => '#',
        '▒' | '░' => ':',
        '●' => '*',
        '❚' => '|',
        '■' => '#',
        '↺' => '<',
        '▲' | '↑' => '^',
        '▼' | '▾' | '↓' => 'v',
        '▸' | '→' => '>',
        '←' => '<',
        '⇄' | '↔' => '=',
        '≤' => '<',
        '×' => 'x',
        'µ' => 'u',
        '±' => '~',
        '…' => '~',
        '⁹' => '9',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    fn bytes(shown: &Buffer, next: &Buffer, ascii: bool) -> String {
        let mut out = Vec::new();
        encode(shown, next, ascii, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_what_changed_is_sent() {
        let area = Rect::new(0, 0, 20, 2);
        let shown = Buffer::empty(area);
        let mut next = Buffer::empty(area);
        assert_eq!(bytes(&shown, &next, false), "");
        next.set_string(3, 1, "ab", Style::default());
        next.set_string(
            6,
            1,
            "c",
            Style::default().fg(Color::Indexed(9)).add_modifier(Modifier::BOLD),
        );
        assert_eq!(bytes(&shown, &next, false), "\x1b[2;4Hab\x1b[1C\x1b[1;91mc\x1b[m");
        next.set_string(0, 0, "µ→", Style::default().bg(Color::Rgb(1, 2, 3)));
        assert!(bytes(&shown, &next, true).starts_with("\x1b[1;1H\x1b[48;2;1;2;3mu>"));
    }
}
