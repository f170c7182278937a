//! Python frames of call paths: their names and lines, and their places among the C frames.

use roctop_ring::sites::{Code, CodeText, MAX_PYTHON_FRAMES, PythonFrame, PythonStack, entered};
use roctop_trace::site::{Frame, Line, Module, SiteFact};
use roctop_unwind::line_of_python;
use std::collections::{HashMap, HashSet};

/// Number of the first module that is a Python file; those of other files are below.
const FIRST_NUMBER: u32 = 1 << 31;
/// Maximum number of code objects and of files that are known of a process.
const MAX_CODES: usize = 1 << 16;
/// Maximum number of stacks that wait for their copy.
const MAX_WAITING: usize = 256;

/// What is known of the Python code of a process.
#[derive(Default)]
pub(super) struct Python {
    codes: HashMap<u64, KnownCode>,
    /// Numbers of files.
    files: HashMap<String, u32>,
    /// Frames that were passed on already.
    named: HashSet<Frame>,
    /// Frames whose copied stack has not come yet, by site, thread and time.
    waiting: HashMap<(u16, u32, u64), PythonStack>,
}

struct KnownCode {
    minor: u8,
    first_line: u32,
    file: String,
    name: String,
    lines: Vec<u8>,
}

impl Python {
    pub(super) fn code(&mut self, code: Code) {
        if self.codes.len() < MAX_CODES {
            let known = KnownCode {
                minor: code.minor,
                first_line: code.first_line,
                file: text(&code.file),
                name: text(&code.name),
                lines: code.lines,
            };
            self.codes.insert(code.id, known);
        }
    }

    pub(super) fn frames(&mut self, stack: PythonStack) {
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.clear();
        }
        self.waiting.insert((stack.site, stack.tid, stack.time), stack);
    }

    /// The Python frames of a copied stack.
    pub(super) fn of_stack(&mut self, site: u16, tid: u32, time: u64) -> Option<PythonStack> {
        self.waiting.remove(&(site, tid, time))
    }

    /// Whether a frame is one that the interpreter puts around the `__init__` of an object that it makes: 3.12 and later have code
    /// of this name in a file of this name for it, and leave it out of tracebacks.
    pub(super) fn is_of_creation(&self, of: &PythonFrame) -> bool {
        let code = self.codes.get(&of.code);
        code.is_some_and(|code| code.name == "__init__" && code.file == "__init__")
    }

    /// A frame, and what is to be passed on before it is used.
    pub(super) fn frame(&mut self, of: &PythonFrame, facts: &mut Vec<SiteFact>) -> Frame {
        let unknown = KnownCode {
            minor: 0,
            first_line: 0,
            file: String::new(),
            name: String::new(),
            lines: Vec::new(),
        };
        let code = self.codes.get(&of.code).unwrap_or(&unknown);
        let line = line_of_python(code.minor, code.first_line, &code.lines, of.instruction).unwrap_or(0);
        let next = FIRST_NUMBER + self.files.len() as u32;
        let module = self.files.get(&code.file).copied().unwrap_or_else(|| {
            if self.files.len() < MAX_CODES {
                self.files.insert(code.file.clone(), next);
            }
            facts.push(SiteFact::Module(Module {
                number: next,
                path: code.file.clone(),
                is_python: true,
                ..Module::default()
            }));
            next
        });
        // The same in each process that runs the file.
        let frame = Frame {
            module,
            offset: u64::from(hash(&code.name, code.first_line)) << 32 | u64::from(line),
        };
        if self.named.insert(frame) {
            let function = if code.name.is_empty() {
                "(not known)"
            } else {
                &code.name
            };
            facts.push(SiteFact::Names {
                frame,
                lines: vec![Line {
                    function: function.into(),
                    file: code.file.clone(),
                    line,
                    distance: 0,
                }],
            });
        }
        frame
    }
}

/// Distinguishes the functions of a file (FNV-1a).
fn hash(name: &str, first_line: u32) -> u32 {
    let add = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let bytes = name.bytes().chain(first_line.to_le_bytes());
    bytes.fold(0x811c_9dc5, add)
}

fn text(of: &CodeText) -> String {
    let character = |number| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
    match of.width {
        1 => of.bytes.iter().map(|byte| char::from(*byte)).collect(),
        2 => {
            let units = of.bytes.as_chunks().0.iter();
            units.map(|unit| character(u16::from_le_bytes(*unit).into())).collect()
        }
        _ => {
            let units = of.bytes.as_chunks().0.iter();
            units.map(|unit| character(u32::from_le_bytes(*unit))).collect()
        }
    }
}

/// A frame of a path that has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merged {
    /// The C frame with this index.
    C(usize),
    /// The Python frame with this index.
    Python(usize),
}

/// A C frame, as far as its place is concerned.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CFrame {
    /// Address of its call.
    pub(super) address: u64,
    /// Lower end on the stack.
    pub(super) sp: u64,
    /// Its code is the interpreter's own.
    pub(super) is_interpreter: bool,
    /// Its code is of a file.
    pub(super) has_file: bool,
}

/// Puts Python frames in the places of the C frames that evaluate them, and leaves out the other C frames of the
/// interpreter, and code without a file that an evaluator calls: the interpreter's just-in-time compiler makes it. True if the
/// place of a Python frame is not known although the path is complete.
pub(super) fn merge(c: &[CFrame], python: &PythonStack, is_complete: bool) -> (Vec<Merged>, bool) {
    let [first, end] = python.evaluator;
    let is_evaluator = |frame: &CFrame| (first..end).contains(&frame.address);
    let on_stack = |mark: u64, pair: &[CFrame]| matches!(pair, [one, caller] if (one.sp..caller.sp).contains(&mark));
    let groups: Vec<&[PythonFrame]> = python
        .frames
        .split_inclusive(|frame| frame.entry != entered::NO)
        .collect();
    let is_somewhere = |group: &&&[PythonFrame]| group.last().is_some_and(|frame| frame.entry == entered::SOMEWHERE);
    let (somewhere, evaluators) = (
        groups.iter().filter(is_somewhere).count(),
        c.iter().filter(|frame| is_evaluator(frame)).count(),
    );
    // The innermost ones evaluate frames of another interpreter of the same thread.
    let mut others = if is_complete && somewhere > 0 {
        evaluators.saturating_sub(somewhere)
    } else {
        0
    };
    let (mut merged, mut from, mut is_unsure) = (Vec::new(), 0, false);
    let (mut number, mut waiting) = (0, Vec::new());
    let keep = |merged: &mut Vec<Merged>, range: std::ops::Range<usize>| {
        let kept = range.filter(|at| !c[*at].is_interpreter);
        merged.extend(kept.map(Merged::C));
    };
    let before_compiled = |from: usize, to: usize| {
        let compiled = c[from..to].iter().rev().take_while(|frame| !frame.has_file);
        to - compiled.count()
    };
    for group in groups {
        let entry = group.last().map_or(entered::NO, |frame| frame.entry);
        let place = match entry {
            // Where the list is full, the frame that an evaluator entered by is beyond its end.
            entered::NO if python.frames.len() == MAX_PYTHON_FRAMES => (from..c.len()).find(|at| is_evaluator(&c[*at])),
            entered::NO => None,
            entered::SOMEWHERE => (from..c.len()).find(|at| {
                let is_it = is_evaluator(&c[*at]);
                let is_others = is_it && others > 0;
                others -= usize::from(is_others);
                is_it && !is_others
            }),
            mark => (from..c.len()).find(|at| on_stack(mark, c.get(*at..at + 2).unwrap_or_default())),
        };
        if let Some(place) = place {
            keep(&mut merged, from..before_compiled(from, place));
            from = place + 1;
            merged.append(&mut waiting);
        }
        let frames = (number..number + group.len()).map(Merged::Python);
        number += group.len();
        if place.is_some() {
            merged.extend(frames);
        } else {
            is_unsure |= is_complete;
            waiting.extend(frames);
        }
    }
    // A path may end in compiled code, which has no unwind tables.
    let end = if waiting.is_empty() {
        c.len()
    } else {
        before_compiled(from, c.len())
    };
    keep(&mut merged, from..end);
    merged.append(&mut waiting);
    (merged, is_unsure)
}

#[cfg(test)]
mod tests {
    use super::Merged::{C, Python as P};
    use super::*;

    fn c(frames: &[(u64, u64, bool)]) -> Vec<CFrame> {
        let made = frames.iter().map(|(address, sp, is_interpreter)| CFrame {
            address: *address,
            sp: *sp,
            is_interpreter: *is_interpreter,
            has_file: true,
        });
        made.collect()
    }

    fn python(entries: &[u64]) -> PythonStack {
        let frame = |entry: &u64| PythonFrame {
            entry: *entry,
            ..PythonFrame::default()
        };
        PythonStack {
            evaluator: [100, 200],
            frames: entries.iter().map(frame).collect(),
            ..PythonStack::default()
        }
    }

    /// A launch by a module of C, from a function that `main` of the interpreter called through an evaluator each.
    fn path() -> Vec<CFrame> {
        c(&[
            (10, 1000, false),
            (90, 1010, true),
            (150, 1020, true),
            (91, 1030, true),
            (20, 1040, false),
            (110, 1050, true),
            (92, 1060, true),
            (30, 1070, false),
        ])
    }

    #[test]
    fn frames_stand_where_their_evaluator_is() {
        let expected = vec![C(0), P(0), P(1), C(4), P(2), C(7)];
        assert_eq!(merge(&path(), &python(&[0, 1025, 1059]), true), (expected, false));
        let expected = vec![C(0), P(0), C(4), P(1), C(7)];
        assert_eq!(merge(&path(), &python(&[1, 1]), true), (expected, false));
    }

    #[test]
    fn code_that_the_interpreter_compiled_is_left_out() {
        let mut path = path();
        let mut insert = |at: usize, address, sp| {
            let compiled = CFrame {
                address,
                sp,
                ..CFrame::default()
            };
            path.insert(at, compiled);
        };
        // Two frames of it, and code without a file that a function of a program calls.
        insert(2, 7001, 1014);
        insert(2, 7000, 1012);
        insert(0, 7002, 990);
        let expected = vec![C(0), C(1), P(0), P(1), C(7), P(2), C(10)];
        assert_eq!(merge(&path, &python(&[0, 1025, 1059]), true), (expected, false));
        // By frame pointers, the evaluator is passed over.
        path.remove(5);
        let expected = vec![C(0), C(1), P(0), P(1), C(6), P(2), C(9)];
        assert_eq!(merge(&path, &python(&[0, 1025, 1059]), true), (expected, false));
        // The path ends there.
        let expected = vec![C(0), C(1), P(0), P(1), P(2)];
        assert_eq!(merge(&path[..5], &python(&[0, 1025, 1059]), false), (expected, false));
    }

    #[test]
    fn frames_of_a_path_that_is_cut_come_behind_it() {
        let cut = &path()[..3];
        let expected = vec![C(0), P(0), P(1), P(2)];
        assert_eq!(merge(cut, &python(&[0, 1025, 1059]), false), (expected, false));
        let expected = vec![C(0), P(0), P(1)];
        assert_eq!(merge(cut, &python(&[1, 1]), false), (expected, false));
    }

    #[test]
    fn frames_of_a_full_list_stand_at_the_next_evaluator() {
        let frames = [0; MAX_PYTHON_FRAMES];
        let mut expected = vec![C(0)];
        expected.extend((0..MAX_PYTHON_FRAMES).map(P));
        expected.extend([C(4), C(7)]);
        assert_eq!(merge(&path(), &python(&frames), true), (expected, false));
    }

    #[test]
    fn frames_around_the_creation_of_objects_are_recognised() {
        let mut known = Python::default();
        for (id, file, name) in [
            (1, "__init__", "__init__"),
            (2, "model.py", "__init__"),
            (3, "__init__", "main"),
        ] {
            let text = |of: &str| CodeText {
                width: 1,
                bytes: of.as_bytes().to_vec(),
            };
            known.code(Code {
                id,
                file: text(file),
                name: text(name),
                ..Code::default()
            });
        }
        let frame = |code| PythonFrame {
            code,
            ..PythonFrame::default()
        };
        assert_eq!(
            [1, 2, 3, 4].map(|code| known.is_of_creation(&frame(code))),
            [true, false, false, false]
        );
    }

    #[test]
    fn evaluators_of_another_interpreter_stay() {
        let (merged, is_unsure) = merge(&path(), &python(&[1]), true);
        assert_eq!((merged, is_unsure), (vec![C(0), C(4), P(0), C(7)], false));
    }

    #[test]
    fn a_frame_without_a_place_makes_a_path_unsure() {
        let (merged, is_unsure) = merge(&path(), &python(&[5000]), true);
        assert_eq!((merged, is_unsure), (vec![C(0), C(4), C(7), P(0)], true));
        let (merged, is_unsure) = merge(&[], &python(&[0, 0, 7]), true);
        assert_eq!((merged, is_unsure), (vec![P(0), P(1), P(2)], true));
    }
}
