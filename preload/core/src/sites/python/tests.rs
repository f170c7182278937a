//! Frames and texts of a synthetic interpreter.

#![expect(clippy::indexing_slicing, reason = "a test that panics has failed")]

use super::*;

/// An interpreter of 3.12 with its structures in `words`; [`STATE`] is the index of the thread's state.
struct Made {
    words: Vec<u64>,
    interpreter: Interpreter,
}

extern "C" fn no_state() -> u64 {
    0
}

const TYPE: u64 = 0x5000;
/// Where things are in the words.
const STATE: usize = 0;
const CFRAME: usize = 20;
const FRAMES: usize = 32;
const FRAME: usize = 16;
const CODE: usize = 160;
const FINALIZING: usize = 191;

impl Made {
    /// Frames by their instruction, innermost first; `None` for one of the interpreter itself.
    fn new(instructions: &[Option<u64>]) -> Self {
        let Some(layout) = Layout::of(12) else {
            unreachable!("a known version")
        };
        let mut words = vec![0; 192];
        let base = words.as_ptr() as u64;
        let address = |at: usize| base + 8 * at as u64;
        // SAFETY: cannot fail, touches no memory.
        words[STATE + 136 / 8] = unsafe { libc::pthread_self() };
        words[STATE + 56 / 8] = address(CFRAME);
        words[CFRAME] = address(FRAMES);
        words[CODE + 1] = TYPE;
        for (number, instruction) in instructions.iter().enumerate() {
            let at = FRAMES + FRAME * number;
            words[at] = address(CODE);
            let is_last = number + 1 == instructions.len();
            words[at + 1] = if is_last { 0 } else { address(at + FRAME) };
            words[at + 7] = address(CODE) + 192 + instruction.unwrap_or(0);
            words[at + 8] = (u64::from(instruction.is_none()) * 3) << 48;
        }
        let interpreter = Interpreter {
            layout,
            state: no_state,
            finalizing: address(FINALIZING),
            code_type: TYPE,
            evaluator: [1, 2],
        };
        Self { words, interpreter }
    }

    fn address(&self, at: usize) -> u64 {
        self.words.as_ptr() as u64 + 8 * at as u64
    }

    fn walk(&self) -> Result<Vec<PythonFrame>, Problem> {
        let mut frames = [PythonFrame::default(); MAX_PYTHON_FRAMES];
        let walked = self.interpreter.walk(self.address(STATE), &mut frames)?;
        Ok(frames[..walked.count].to_vec())
    }

    fn frames(&self) -> Frames {
        // SAFETY: the words are those of a state.
        unsafe { self.interpreter.frames(self.address(STATE)) }
    }
}

#[test]
fn frames_are_read_with_their_entries() {
    // The last one is that of the thread's state.
    let made = Made::new(&[Some(8), Some(4), None, Some(6), None, None]);
    let code = made.address(CODE);
    let shim = |number: usize| made.address(FRAMES + FRAME * number);
    let frame = |instruction, entry| PythonFrame {
        code,
        instruction,
        entry,
    };
    let expected = vec![frame(8, 0), frame(4, shim(2)), frame(6, shim(4))];
    assert_eq!(made.walk(), Ok(expected));
    assert!(made.interpreter.is_own(made.address(STATE)));
    assert!(!made.interpreter.is_own(made.address(CFRAME)) && !made.interpreter.is_own(8));
}

#[test]
fn paths_are_told_apart_by_each_frame() {
    let paths = [
        vec![Some(8), Some(4), None],
        vec![Some(6), Some(4), None],
        vec![Some(8), Some(6), None],
        vec![Some(8), Some(4), Some(4), None],
        vec![Some(8)],
    ];
    let mut made: Vec<Made> = paths.iter().map(|path| Made::new(path)).collect();
    // Where the words are makes no difference here.
    for one in &mut made {
        let state = one.frames();
        assert_eq!(state, one.frames());
        assert_eq!(state.outer == 0, one.walk().is_ok_and(|frames| frames.len() == 1));
    }
    let mut one = Made::new(&[Some(8), Some(4), Some(2)]);
    let before = one.frames();
    one.words[FRAMES + 2 * FRAME + 7] += 2;
    let after = one.frames();
    assert!(after.inner == before.inner && after.outer != before.outer);
    one.words[FRAMES + 7] += 2;
    assert_ne!(one.frames().inner, after.inner);
    one.words[CFRAME] = 0;
    assert_eq!(one.frames(), Frames::default());
}

#[test]
fn what_is_no_frame_is_a_problem() {
    let mut made = Made::new(&[Some(8), Some(4)]);
    made.words[CODE + 1] = TYPE + 8;
    assert!(made.walk().is_err());
    let mut made = Made::new(&[Some(8), Some(4)]);
    made.words[FRAMES + 1] = 16;
    assert!(made.walk().is_err());
    // Frames in a circle are counted up to the limit.
    let mut made = Made::new(&[Some(8), Some(4)]);
    made.words[FRAMES + FRAME + 1] = made.address(FRAMES);
    assert!(made.walk().is_ok_and(|frames| frames.len() == MAX_PYTHON_FRAMES));
}

#[test]
fn nothing_is_read_while_an_interpreter_ends() {
    extern "C" fn some_state() -> u64 {
        99
    }
    let mut made = Made::new(&[Some(8)]);
    made.interpreter.state = some_state;
    assert_eq!(made.interpreter.state(), 99);
    made.words[FINALIZING] = 1;
    assert_eq!(made.interpreter.state(), 0);
}

#[test]
fn texts_are_copied_in_the_width_that_they_have() {
    let made = Made::new(&[]);
    let copied = |words: &[u64]| {
        let mut into = [0; 16];
        let (text, used) = made.interpreter.copy_text(words.as_ptr() as u64, &mut into);
        (text.width, into[..used].to_vec())
    };
    let bytes = |text: &[u8; 8]| u64::from_le_bytes(*text);
    // Length, hash, state; ASCII begins behind five words, others behind seven.
    assert_eq!(
        copied(&[0, 0, 5, 0, 0b110_0100, bytes(b"model\0\0\0")]),
        (1, b"model".to_vec())
    );
    let wide = [0, 0, 2, 0, 0b10_1000, 0, 0, bytes(b"\x31\x04\x35\x04\0\0\0\0")];
    assert_eq!(copied(&wide), (2, b"\x31\x04\x35\x04".to_vec()));
    let long = [0, 0, u64::MAX, 0, 0b110_0100, bytes(b"abcdefgh"), bytes(b"ijklmnop")];
    assert_eq!(copied(&long), (1, b"abcdefghijklmnop".to_vec()));
    assert_eq!(copied(&[0, 0, 5, 0, 0b100_0100, 0]), (1, Vec::new()), "not compact");
    assert_eq!(made.interpreter.copy_text(16, &mut [0; 4]).1, 0);
}
