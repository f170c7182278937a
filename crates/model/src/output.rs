//! Program output as plain lines: without escape sequences, with carriage returns applied, bounded.

use std::collections::VecDeque;
use std::sync::Arc;

const LINES: usize = 10_000;
const LINE_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    Sequence,
    Text2,
    Text2Escape,
    Charset,
}

/// The last lines of the program's output.
#[derive(Debug, Default)]
pub struct Output {
    lines: VecDeque<Arc<str>>,
    line: Vec<u8>,
    state: State,
    returned: bool,
    /// Number of complete lines so far.
    pub total: u64,
    shared: Option<Arc<[Arc<str>]>>,
}

impl Output {
    /// Adds bytes of the program's output.
    pub fn write(&mut self, bytes: &[u8]) {
        self.shared = None;
        for &byte in bytes {
            self.byte(byte);
        }
    }

    #[expect(clippy::match_same_arms, reason = "a table, in the order in which it is read")]
    fn byte(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::Text, 0x1b) => State::Escape,
            (State::Text, _) => return self.text(byte),
            (State::Escape, b'[') => State::Sequence,
            (State::Escape, b']' | b'P' | b'_' | b'^' | b'X') => State::Text2,
            (State::Escape, b'(' | b')' | b'#' | b'%') => State::Charset,
            (State::Sequence, 0x20..=0x3f) => State::Sequence,
            (State::Text2 | State::Text2Escape, 0x07) | (State::Text2Escape, b'\\') => State::Text,
            (State::Text2 | State::Text2Escape, 0x1b) => State::Text2Escape,
            (State::Text2 | State::Text2Escape, _) => State::Text2,
            (State::Escape | State::Sequence | State::Charset, _) => State::Text,
        };
    }

    fn text(&mut self, byte: u8) {
        match byte {
            b'\n' => self.finish(),
            b'\r' => self.returned = true,
            0x08 => {
                self.line.pop();
            }
            b'\t' => self.push(b"    "),
            0..=0x1f | 0x7f => {}
            _ => self.push(&[byte]),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        // A carriage return restarts the line: a progress bar keeps one line.
        if std::mem::take(&mut self.returned) {
            self.line.clear();
        }
        if self.line.len() < LINE_BYTES {
            self.line.extend_from_slice(bytes);
        }
    }

    fn finish(&mut self) {
        self.returned = false;
        let line = plain(&self.line);
        self.line.clear();
        self.total += 1;
        self.lines.push_back(line);
        if self.lines.len() > LINES {
            self.lines.pop_front();
        }
    }

    /// All kept lines, the incomplete one last.
    pub fn lines(&mut self) -> Arc<[Arc<str>]> {
        let Self {
            lines, line, shared, ..
        } = self;
        shared
            .get_or_insert_with(|| {
                let open = (!line.is_empty()).then(|| plain(line));
                lines.iter().cloned().chain(open).collect()
            })
            .clone()
    }
}

/// Text without control characters, also C1 and bidirectional ones, which would disturb the screen.
fn plain(bytes: &[u8]) -> Arc<str> {
    let text = String::from_utf8_lossy(bytes);
    text.chars().filter(|&c| is_plain(c)).collect::<String>().into()
}

/// Whether a character is safe to draw.
pub fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut output = Output::default();
        output.write(bytes);
        output.lines().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn escapes_are_taken_out_and_returns_obeyed() {
        assert_eq!(lines(b"\x1b[1;31mred\x1b[0m\r\nnext"), ["red", "next"]);
        assert_eq!(lines(b" 10%\r 20%\r 30%\r\n"), [" 30%"]);
        assert_eq!(lines(b"a\x1b]0;title\x07b\x1b]8;;x\x1b\\c\n\x1b(Bd"), ["abc", "d"]);
        assert_eq!(lines("gr\u{fc}n\u{9b}31m\u{202e}x\n".as_bytes()), ["gr\u{fc}n31mx"]);
        assert_eq!(lines(b"\xff\n"), ["\u{fffd}"]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut output = Output::default();
        for _ in 0..30_000 {
            output.write(b"line\n");
        }
        output.write("x".repeat(100_000).as_bytes());
        assert_eq!(output.lines().len(), LINES + 1);
        assert_eq!(output.lines()[LINES].len(), LINE_BYTES);
        assert_eq!(output.total, 30_000);
    }
}
