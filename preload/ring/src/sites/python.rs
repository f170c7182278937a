//! Entries of Python frames and code.

#[cfg(feature = "reader")]
use super::CONTENT;
#[cfg(feature = "reader")]
use super::reader::{Code, CodeText, PythonStack};
use super::{Call, SitesWriter, bit, kind};

/// Maximum number of frames of an entry.
pub const MAX_PYTHON_FRAMES: usize = 128;
/// Maximum bytes of the texts and the table of lines of an entry, together.
pub const CODE_BYTES: usize = 12 << 10;

/// Marks of frames that an evaluator entered.
pub mod entered {
    /// The frame was entered from another Python frame of the same evaluator.
    pub const NO: u64 = 0;
    /// An evaluator entered it; where it is on the stack is not known.
    pub const SOMEWHERE: u64 = 1;
}

/// A Python frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonFrame {
    /// Number of its code.
    pub code: u64,
    /// Position of the instruction in the code, bytes.
    pub instruction: u64,
    /// An address in the C frame that evaluates this frame, if this is the first frame that it evaluates; else one of
    /// [`entered`].
    pub entry: u64,
}

const FRAME: usize = 24;

impl PythonFrame {
    fn bytes(self) -> [u8; FRAME] {
        let mut bytes = [0; FRAME];
        let words = [self.code, self.instruction, self.entry];
        for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        bytes
    }
}

/// A text of Python code: characters of 1, 2 or 4 bytes each, of which 1 is Latin-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// Bytes of a character.
    pub width: u8,
    /// Number of bytes.
    pub bytes: usize,
}

impl Text {
    const fn word(self) -> u64 {
        (self.width as u64) << 32 | self.bytes as u64
    }
}

/// Python code, as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeWords<'a> {
    /// Its number.
    pub id: u64,
    /// Minor version of the CPython that runs it.
    pub minor: u8,
    /// Line of its definition.
    pub first_line: u32,
    /// Name of its file: the first bytes.
    pub file: Text,
    /// Its name: the bytes behind those of the file.
    pub name: Text,
    /// Both, and the table of lines behind them.
    pub bytes: &'a [u8],
}

impl SitesWriter<'_> {
    /// Appends Python code. Its table of lines may be cut.
    pub fn code(&self, code: &CodeWords<'_>) {
        let bytes = code.bytes.get(..CODE_BYTES).unwrap_or(code.bytes);
        let words = [
            code.id,
            u64::from(code.first_line) | u64::from(code.minor) << 32,
            code.file.word(),
            code.name.word(),
            0,
            bytes.len() as u64,
        ];
        self.append(kind::CODE, words, bytes);
    }

    /// Appends the Python frames of a call, of which the first [`MAX_PYTHON_FRAMES`] are kept.
    pub fn python(&self, call: &Call, evaluator: [u64; 2], frames: &[PythonFrame], is_cut: bool) {
        let mut bytes = [0u8; FRAME * MAX_PYTHON_FRAMES];
        let mut count = 0;
        for (to, frame) in bytes.as_chunks_mut().0.iter_mut().zip(frames) {
            *to = frame.bytes();
            count += 1;
        }
        let cut = if is_cut || count < frames.len() { bit::CUT } else { 0 };
        let bytes = bytes.get(..FRAME * count).unwrap_or_default();
        let words = [
            u64::from(call.site) | cut | u64::from(call.tid) << 32,
            call.time,
            evaluator[0],
            evaluator[1],
            0,
            bytes.len() as u64,
        ];
        self.append(kind::PYTHON, words, bytes);
    }
}

/// The code with these words; `None` if they contradict each other.
#[cfg(feature = "reader")]
pub(super) fn code(words: &[u64; CONTENT], bytes: &[u8]) -> Option<Code> {
    let [id, first, file, name, ..] = *words;
    if bytes.len() > CODE_BYTES {
        return None;
    }
    let text = |word: u64, bytes| {
        let (text, rest) = <[u8]>::split_at_checked(bytes, word as u32 as usize)?;
        let width = (word >> 32) as u8;
        let text = CodeText {
            width,
            bytes: text.to_vec(),
        };
        matches!(width, 1 | 2 | 4).then_some((text, rest))
    };
    let (file, rest) = text(file, bytes)?;
    let (name, lines) = text(name, rest)?;
    Some(Code {
        id,
        minor: (first >> 32) as u8,
        first_line: first as u32,
        file,
        name,
        lines: lines.to_vec(),
    })
}

/// The frames with these words.
#[cfg(feature = "reader")]
pub(super) fn frames(words: &[u64; CONTENT], bytes: &[u8]) -> Option<PythonStack> {
    let [first, time, begin, end, ..] = *words;
    let (frames, rest) = bytes.as_chunks::<FRAME>();
    if !rest.is_empty() || frames.len() > MAX_PYTHON_FRAMES {
        return None;
    }
    let frames = frames.iter().map(|raw| {
        let [code, instruction, entry] = super::reader::words_of(raw);
        PythonFrame {
            code,
            instruction,
            entry,
        }
    });
    Some(PythonStack {
        site: first as u16,
        tid: (first >> 32) as u32,
        time,
        cut: first & bit::CUT != 0,
        evaluator: [begin, end],
        frames: frames.collect(),
    })
}
