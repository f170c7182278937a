//! Keys and the mouse, decoded from the bytes of a terminal.
//!
//! The terminal is read by ourselves, not by a library: keys come from the controlling terminal while the standard input
//! belongs to the program that is watched.

use std::collections::VecDeque;
use std::fmt;

/// A key, with its modifiers folded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A character as typed.
    Char(char),
    /// Control and a letter.
    Ctrl(char),
    /// Enter.
    Enter,
    /// Escape alone.
    Esc,
    /// Tab.
    Tab,
    /// Shift and tab.
    BackTab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// A function key.
    F(u8),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char(' ') => f.write_str("space"),
            Self::Char(c) => write!(f, "{c}"),
            Self::Ctrl(c) => write!(f, "ctrl-{c}"),
            Self::Enter => f.write_str("enter"),
            Self::Esc => f.write_str("esc"),
            Self::Tab => f.write_str("tab"),
            Self::BackTab => f.write_str("shift-tab"),
            Self::Backspace => f.write_str("backspace"),
            Self::Delete => f.write_str("del"),
            Self::Up => f.write_str("↑"),
            Self::Down => f.write_str("↓"),
            Self::Left => f.write_str("←"),
            Self::Right => f.write_str("→"),
            Self::Home => f.write_str("home"),
            Self::End => f.write_str("end"),
            Self::PageUp => f.write_str("pgup"),
            Self::PageDown => f.write_str("pgdn"),
            Self::F(number) => write!(f, "F{number}"),
        }
    }
}

/// Keys with names, as the settings spell them.
const WORDS: [(&str, Key); 15] = [
    ("space", Key::Char(' ')),
    ("enter", Key::Enter),
    ("esc", Key::Esc),
    ("tab", Key::Tab),
    ("shift-tab", Key::BackTab),
    ("backspace", Key::Backspace),
    ("del", Key::Delete),
    ("up", Key::Up),
    ("down", Key::Down),
    ("left", Key::Left),
    ("right", Key::Right),
    ("home", Key::Home),
    ("end", Key::End),
    ("pgup", Key::PageUp),
    ("pgdn", Key::PageDown),
];

impl Key {
    /// As it is spelled in files.
    pub fn word(self) -> String {
        let known = WORDS.iter().find(|known| known.1 == self);
        known.map_or_else(|| self.to_string(), |known| known.0.into())
    }

    /// The key that is spelled so: a character, `ctrl-x`, `F5`, or a word.
    pub fn named(word: &str) -> Option<Self> {
        let mut characters = word.chars();
        if let (Some(only), None) = (characters.next(), characters.next()) {
            return Some(Self::Char(only));
        }
        if let Some(rest) = word.strip_prefix("ctrl-") {
            let mut rest = rest.chars();
            return match (rest.next(), rest.next()) {
                (Some(letter @ 'a'..='z'), None) => Some(Self::Ctrl(letter)),
                _ => None,
            };
        }
        if let Some(number) = word.strip_prefix('F').and_then(|number| number.parse().ok()) {
            return (1..=12).contains(&number).then_some(Self::F(number));
        }
        WORDS.iter().find(|known| known.0 == word).map(|known| known.1)
    }
}

/// What the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseKind {
    /// The left button went down.
    Press,
    /// The left button was let go.
    Release,
    /// The wheel turned up.
    WheelUp,
    /// The wheel turned down.
    WheelDown,
}

/// The mouse at a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    /// What it did.
    pub kind: MouseKind,
    /// Column from 0.
    pub x: u16,
    /// Row from 0.
    pub y: u16,
}

/// Something that the terminal sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Raw bytes, while they are for the program.
    Bytes(Vec<u8>),
    /// The terminal says how bright its background is.
    Background {
        /// Nearer to white than to black.
        light: bool,
    },
    /// A key.
    Key(Key),
    /// The mouse.
    Mouse(Mouse),
    /// A pasted text, from a terminal that marks pastes.
    Paste(String),
}

impl Input {
    /// Whether it is a key or a click.
    const fn is_press(&self) -> bool {
        match self {
            Self::Key(_) => true,
            Self::Mouse(mouse) => matches!(mouse.kind, MouseKind::Press),
            Self::Bytes(_) | Self::Background { .. } | Self::Paste(_) => false,
        }
    }
}

/// Turns bytes into keys; a sequence may come in pieces.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    inputs: VecDeque<Input>,
    together: usize,
    /// A paste that has begun and not ended.
    paste: Option<Vec<u8>>,
    /// The terminal was asked something; until it has answered, `ESC ]` begins an answer and is no key with Alt.
    asked: bool,
}

/// A sequence longer than this is no key.
const MAX_SEQUENCE: usize = 64;

/// Marks before and after a paste.
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// Maximum size of a paste, bytes; the rest is cut off.
const MAX_PASTE: usize = 64 << 10;

impl Decoder {
    /// Takes the bytes of one read.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        while let Some(input) = self.decode(false) {
            self.inputs.push_back(input);
        }
        let pressed = self.inputs.iter().filter(|input| input.is_press()).count();
        self.together = pressed + usize::from(self.is_waiting());
    }

    /// How many keys and clicks were read at once with the next input.
    pub const fn together(&self) -> usize {
        self.together
    }

    /// The terminal was asked something.
    pub fn expect_answer(&mut self) {
        self.asked = true;
    }

    /// All bytes that were not yet decoded.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Whether a sequence has begun that is not whole.
    pub fn is_waiting(&self) -> bool {
        self.paste.is_none() && !self.bytes.is_empty()
    }

    /// Whether a paste has begun that has not ended.
    pub const fn is_pasting(&self) -> bool {
        self.paste.is_some()
    }

    /// Ends a paste whose end mark is lost.
    pub fn end_paste(&mut self) {
        self.feed(PASTE_END);
    }

    /// The next input. `last` says that nothing will follow soon, so that an escape alone is the escape key.
    pub fn next(&mut self, last: bool) -> Option<Input> {
        let next = self.inputs.pop_front();
        if next.is_some() || !last {
            return next;
        }
        self.together = 1;
        self.decode(true)
    }

    /// The rest of a paste; `None` while its end mark is missing.
    fn pasted(&mut self, mut paste: Vec<u8>) -> Option<Input> {
        let end = self.bytes.windows(PASTE_END.len()).position(|bytes| bytes == PASTE_END);
        // The end mark may be split between two reads.
        let known = end.unwrap_or_else(|| self.bytes.len().saturating_sub(PASTE_END.len() - 1));
        let room = MAX_PASTE.saturating_sub(paste.len());
        paste.extend(self.bytes.drain(..known).take(room));
        if end.is_none() {
            self.paste = Some(paste);
            return None;
        }
        self.bytes.drain(..PASTE_END.len());
        Some(Input::Paste(String::from_utf8_lossy(&paste).into_owned()))
    }

    fn decode(&mut self, last: bool) -> Option<Input> {
        while !self.bytes.is_empty() {
            if let Some(paste) = self.paste.take() {
                return self.pasted(paste);
            }
            if self.bytes.starts_with(PASTE_BEGIN) {
                self.bytes.drain(..PASTE_BEGIN.len());
                self.paste = Some(Vec::new());
                continue;
            }
            if self.asked && self.bytes.starts_with(b"\x1b]") {
                let Some((used, input)) = answer(&self.bytes) else {
                    if self.bytes.len() <= MAX_SEQUENCE {
                        return None;
                    }
                    // No answer is so long.
                    self.asked = false;
                    continue;
                };
                self.asked = false;
                self.bytes.drain(..used);
                if input.is_some() {
                    return input;
                }
                continue;
            }
            let (used, input) = match decode(&self.bytes) {
                Some(found) => found,
                None if last && self.bytes[0] == 0x1b => (1, Some(Input::Key(Key::Esc))),
                None if last || self.bytes.len() > MAX_SEQUENCE => (self.bytes.len(), None),
                None => return None,
            };
            self.bytes.drain(..used);
            if input.is_some() {
                return input;
            }
        }
        None
    }
}

/// Bytes used and what they mean (none for what is no input); none when more bytes are needed.
fn decode(bytes: &[u8]) -> Option<(usize, Option<Input>)> {
    let key = |used, key| Some((used, Some(Input::Key(key))));
    match bytes[0] {
        0x1b => escape(bytes),
        b'\r' | b'\n' => key(1, Key::Enter),
        b'\t' => key(1, Key::Tab),
        0x7f | 0x08 => key(1, Key::Backspace),
        0 => key(1, Key::Ctrl(' ')),
        byte @ 1..=26 => key(1, Key::Ctrl((byte - 1 + b'a') as char)),
        byte @ 28..=31 => key(1, Key::Ctrl((byte - 28 + b'\\') as char)),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Option<(usize, Option<Input>)> {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return Some((1, None)),
    };
    let whole = bytes.get(..length)?;
    match std::str::from_utf8(whole) {
        Ok(text) => Some((length, text.chars().next().map(|c| Input::Key(Key::Char(c))))),
        Err(_) => Some((1, None)),
    }
}

fn escape(bytes: &[u8]) -> Option<(usize, Option<Input>)> {
    match *bytes.get(1)? {
        b'[' => sequence(bytes),
        b'O' => {
            let key = letter(*bytes.get(2)?);
            Some((3, key.map(Input::Key)))
        }
        // Escape and a key in one packet, as a fast hand or a slow line sends them. No key is bound with Alt.
        _ => Some((1, Some(Input::Key(Key::Esc)))),
    }
}

fn sequence(bytes: &[u8]) -> Option<(usize, Option<Input>)> {
    let end = bytes.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte))? + 2;
    let used = end + 1;
    let body = std::str::from_utf8(&bytes[2..end]).unwrap_or("");
    if let Some(body) = body.strip_prefix('<') {
        return Some((used, mouse(body, bytes[end]).map(Input::Mouse)));
    }
    let key = match bytes[end] {
        b'Z' => Some(Key::BackTab),
        b'~' => match body.split(';').next().unwrap_or("") {
            "1" | "7" => Some(Key::Home),
            "3" => Some(Key::Delete),
            "4" | "8" => Some(Key::End),
            "5" => Some(Key::PageUp),
            "6" => Some(Key::PageDown),
            "24" => Some(Key::F(12)),
            _ => None,
        },
        last => letter(last),
    };
    Some((used, key.map(Input::Key)))
}

/// What a terminal answers to OSC 11: `ESC ] 11 ; rgb:RRRR/GGGG/BBBB`, then BEL or `ESC \`. None when it is not whole.
fn answer(bytes: &[u8]) -> Option<(usize, Option<Input>)> {
    let end = bytes.iter().skip(2).position(|byte| matches!(byte, 0x07 | 0x1b))? + 2;
    let used = match (bytes[end], bytes.get(end + 1)) {
        (0x07, _) => end + 1,
        (_, Some(_)) => end + 2,
        (_, None) => return None,
    };
    let body = std::str::from_utf8(&bytes[2..end]).unwrap_or("");
    Some((used, light(body).map(|light| Input::Background { light })))
}

/// Whether `11;rgb:…` is a light colour.
fn light(body: &str) -> Option<bool> {
    let colour = body.strip_prefix("11;rgb")?.trim_start_matches('a').strip_prefix(':')?;
    let part = |text: &str| {
        let digits = (1..=4).contains(&text.len()).then_some(text)?;
        let most = f64::from((1u32 << (4 * digits.len())) - 1);
        Some(f64::from(u32::from_str_radix(digits, 16).ok()?) / most)
    };
    let mut parts = colour.split('/').map(part);
    let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
    Some(0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5)
}

fn letter(byte: u8) -> Option<Key> {
    Some(match byte {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'P'..=b'S' => Key::F(byte - b'P' + 1),
        b'M' => Key::Enter,
        _ => return None,
    })
}

fn mouse(body: &str, last: u8) -> Option<Mouse> {
    let mut numbers = body.split(';').map(str::parse::<u16>);
    let (button, x, y) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    let kind = match (button & !0x1c, last) {
        (0, b'M') => MouseKind::Press,
        (0, b'm') => MouseKind::Release,
        (64, b'M') => MouseKind::WheelUp,
        (65, b'M') => MouseKind::WheelDown,
        _ => return None,
    };
    Some(Mouse {
        kind,
        x: x.checked_sub(1)?,
        y: y.checked_sub(1)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Input> {
        let mut decoder = Decoder::default();
        decoder.feed(bytes);
        std::iter::from_fn(|| decoder.next(true)).collect()
    }

    #[test]
    fn bytes_become_keys() {
        let keys = |bytes: &[u8]| {
            all(bytes)
                .into_iter()
                .map(|i| format!("{i:?}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(keys(b"a\x1b[Aq"), "Key(Char('a')) Key(Up) Key(Char('q'))");
        assert_eq!(keys("é\u{1b}[5~".as_bytes()), "Key(Char('é')) Key(PageUp)");
        assert_eq!(keys(b"\x1bOA\x1b"), "Key(Up) Key(Esc)");
        assert_eq!(keys(b"\x1bj"), "Key(Esc) Key(Char('j'))");
        assert_eq!(keys("\x1bé".as_bytes()), "Key(Esc) Key(Char('é'))");
        assert_eq!(keys(b"\x1b\x1bj"), "Key(Esc) Key(Esc) Key(Char('j'))");
        assert_eq!(
            keys(b"\x03\x1a\r\x7f\t\x1b[Z"),
            "Key(Ctrl('c')) Key(Ctrl('z')) Key(Enter) Key(Backspace) Key(Tab) Key(BackTab)"
        );
        assert_eq!(keys(b"\x1b[<0;5;3M"), "Mouse(Mouse { kind: Press, x: 4, y: 2 })");
        assert_eq!(
            keys(b"\x1b[<0;5;3m\x1b[1;5C"),
            "Mouse(Mouse { kind: Release, x: 4, y: 2 }) Key(Right)"
        );
        assert_eq!(keys(b"\xff\xfe\x1b[?62;c"), "");
    }

    #[test]
    fn the_terminals_background_is_told_from_keys() {
        let asked = |pieces: &[&[u8]]| {
            let mut decoder = Decoder::default();
            decoder.expect_answer();
            let mut found = Vec::new();
            for piece in pieces {
                decoder.feed(piece);
                found.extend(std::iter::from_fn(|| decoder.next(true)));
            }
            found
        };
        let (light, dark) = (Input::Background { light: true }, Input::Background { light: false });
        let j = Input::Key(Key::Char('j'));
        assert_eq!(asked(&[b"\x1b]11;rgb:ffff/ffff/dddd\x07j"]), [light.clone(), j.clone()]);
        assert_eq!(
            asked(&[b"j\x1b]11;rgb:1c/1c/", b"1c\x1b", b"\\j"]),
            [j.clone(), dark, j.clone()]
        );
        assert_eq!(asked(&[b"\x1b]11;rgb:f/f\x07", b"j"]), std::slice::from_ref(&j));
        // Nobody asked: these are two keys.
        assert_eq!(all(b"\x1b]"), [Input::Key(Key::Esc), Input::Key(Key::Char(']'))]);
        // Whatever comes in place of an answer, keys come through at last.
        assert_eq!(asked(&[b"\x1b]", &[b'x'; 80], b"j"]).last(), Some(&j));
    }

    #[test]
    fn a_sequence_may_come_in_pieces() {
        let mut decoder = Decoder::default();
        for &byte in b"\x1b[6" {
            decoder.feed(&[byte]);
            assert_eq!(decoder.next(false), None);
        }
        decoder.feed(b"~");
        assert_eq!(decoder.next(false), Some(Input::Key(Key::PageDown)));
        assert!(!decoder.is_waiting());
    }

    #[test]
    fn a_paste_is_one_text_however_it_comes() {
        let bytes = "j\x1b[200~next é\x1b[A\r\x03\x1b[200~\x1b[201~k".as_bytes();
        let text = "next é\x1b[A\r\x03\x1b[200~";
        let j = |c| Input::Key(Key::Char(c));
        for size in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for piece in bytes.chunks(size) {
                decoder.feed(piece);
                found.extend(std::iter::from_fn(|| decoder.next(false)));
            }
            assert_eq!(found, [j('j'), Input::Paste(text.into()), j('k')], "{size}");
            assert!(!decoder.is_pasting() && !decoder.is_waiting());
        }
        // A paste without an end mark ends here; one that is too long is cut.
        let mut decoder = Decoder::default();
        decoder.feed(b"\x1b[200~lost\x1b[20");
        assert_eq!((decoder.next(true), decoder.is_pasting()), (None, true));
        decoder.end_paste();
        assert_eq!(decoder.next(false), Some(Input::Paste("lost\x1b[20".into())));
        decoder.feed(PASTE_BEGIN);
        for _ in 0..100 {
            decoder.feed(&[b'x'; 1000]);
        }
        decoder.end_paste();
        assert!(matches!(decoder.next(false), Some(Input::Paste(text)) if text.len() == MAX_PASTE));
        assert_eq!(decoder.next(true), None);
    }

    #[test]
    fn keys_that_come_at_once_are_counted() {
        let mut decoder = Decoder::default();
        let mut together = |bytes: &[u8]| {
            decoder.feed(bytes);
            let count = decoder.together();
            while decoder.next(true).is_some() {}
            count
        };
        assert_eq!(together(b"e"), 1);
        assert_eq!(together(b"\x1b[A"), 1);
        assert_eq!(together("é".as_bytes()), 1);
        assert_eq!(together(b"e\r"), 2);
        assert_eq!(together(b"\x1be"), 2);
        assert_eq!(together(b"e\x1b"), 2);
        assert_eq!(together(b"\x1b[<0;5;3M\x1b[<0;5;3m"), 1);
        assert_eq!(together(b"\x1b[200~exit\x1b[201~"), 0);
        assert_eq!(together(b"\x1b"), 1);
    }

    #[test]
    fn any_bytes_end() {
        let mut seed = 3u64;
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..20)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    if seed >> 62 == 0 { 0x1b } else { (seed >> 40) as u8 }
                })
                .collect();
            let _ = all(&bytes);
        }
    }
}
