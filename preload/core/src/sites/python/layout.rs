//! Offsets in CPython's structures. Pure.
//!
//! From 3.13 on the interpreter publishes the offsets (`_Py_DebugOffsets`, at the start of `_PyRuntime`). Those of
//! earlier releases are fixed and listed here.

/// Oldest and newest minor version of CPython 3 that are known.
pub(super) const OLDEST: u8 = 9;
pub(super) const NEWEST: u8 = 15;
/// The first version that publishes its offsets.
pub(super) const PUBLISHED: u8 = 13;

/// Offsets in bytes from the start of each structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Minor version.
    pub(super) minor: u8,
    /// `_PyRuntime`: not 0 while the interpreter ends.
    pub(super) finalizing: u32,
    pub(super) state: State,
    pub(super) frame: Frame,
    pub(super) code: Code,
    pub(super) text: Text,
    pub(super) entries: Entries,
}

/// `PyThreadState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// What `pthread_self` returns in its thread.
    pub(super) thread: u32,
    /// Pointer to the current frame, or to the `_PyCFrame` that has it at the second offset.
    pub(super) current: u32,
    pub(super) through: Option<u32>,
    /// Pointer to the memory in which frames are, followed by one to the end of the innermost frame there; from 3.11 on.
    pub(super) stack: Option<u32>,
}

/// `PyFrameObject`, from 3.11 on `_PyInterpreterFrame`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) code: u32,
    pub(super) previous: u32,
    /// Index of the instruction (32 bits) or, from 3.11 on, a pointer to it.
    pub(super) instruction: u32,
    /// Bits of the word there that count.
    pub(super) instruction_mask: u64,
    /// Bytes of an index; 0 for a pointer.
    pub(super) unit: u64,
}

/// `PyCodeObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) kind: u32,
    pub(super) file: u32,
    pub(super) name: u32,
    pub(super) first_line: u32,
    pub(super) lines: u32,
    /// Its instructions.
    pub(super) instructions: u32,
}

/// `PyASCIIObject` and `PyBytesObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) length: u32,
    pub(super) state: u32,
    /// Bytes before the characters of an ASCII text; others have a longer head.
    pub(super) ascii: u32,
    pub(super) compact: u32,
    pub(super) bytes_length: u32,
    pub(super) bytes: u32,
}

/// How frames are known that an evaluator entered: each has a C frame of `_PyEval_EvalFrameDefault`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entries {
    /// Each frame is one.
    All,
    /// Each frame is one. The thread state points to a list of structures in the C frames, linked at this offset.
    AllListed { first: u32, next: u32 },
    /// Those with this byte set; listed as above.
    Marked { mark: u32, first: u32, next: u32 },
    /// Those whose caller is a frame in the C frame, which this byte says.
    Shim { owner: u32 },
}

/// Owner of a frame that is no Python frame: on the stack of the interpreter.
pub(super) const FIRST_SHIM_OWNER: u8 = 3;

impl Layout {
    /// The layout of a version before 3.13.
    pub(super) const fn of(minor: u8) -> Option<Self> {
        Some(match minor {
            9 => Self {
                minor,
                ..Self::with_frame_objects(104, 1, Entries::All)
            },
            10 => Self {
                minor,
                ..Self::with_frame_objects(96, 2, Entries::AllListed { first: 48, next: 8 })
            },
            11 => Self {
                minor,
                finalizing: 24,
                state: State {
                    thread: 152,
                    current: 56,
                    through: Some(8),
                    stack: Some(296),
                },
                frame: Frame {
                    code: 32,
                    previous: 48,
                    instruction: 56,
                    instruction_mask: u64::MAX,
                    unit: 0,
                },
                code: Code {
                    kind: 8,
                    file: 112,
                    name: 128,
                    first_line: 72,
                    lines: 136,
                    instructions: 184,
                },
                text: Text::LONG,
                entries: Entries::Marked {
                    mark: 68,
                    first: 56,
                    next: 16,
                },
            },
            12 => Self {
                minor,
                finalizing: 24,
                state: State {
                    thread: 136,
                    current: 56,
                    through: Some(0),
                    stack: Some(232),
                },
                frame: Frame {
                    code: 0,
                    previous: 8,
                    instruction: 56,
                    instruction_mask: u64::MAX,
                    unit: 0,
                },
                code: Code {
                    kind: 8,
                    file: 112,
                    name: 128,
                    first_line: 68,
                    lines: 136,
                    instructions: 192,
                },
                text: Text {
                    ascii: 40,
                    compact: 56,
                    ..Text::LONG
                },
                entries: Entries::Shim { owner: 70 },
            },
            _ => return None,
        })
    }

    const fn with_frame_objects(instruction: u32, unit: u64, entries: Entries) -> Self {
        Self {
            minor: 0,
            finalizing: 16,
            state: State {
                thread: 176,
                current: 24,
                through: None,
                stack: None,
            },
            frame: Frame {
                code: 32,
                previous: 24,
                instruction,
                instruction_mask: 0xffff_ffff,
                unit,
            },
            code: Code {
                kind: 8,
                file: 104,
                name: 112,
                first_line: 40,
                lines: 120,
                instructions: 0,
            },
            text: Text::LONG,
            entries,
        }
    }

    /// The layout that 3.13 and later publish in the first words of `_PyRuntime`.
    pub(super) fn published(minor: u8, words: &[u64; WORDS]) -> Result<Self, &'static str> {
        let at = match minor {
            13 => &IN_3_13,
            14 => &IN_3_14,
            15 => &IN_3_15,
            _ => return Err("its offsets are not known"),
        };
        let [cookie, version, free_threaded, ..] = *words;
        if cookie != u64::from_le_bytes(*b"xdebugpy") || version >> 16 != 0x0300 | u64::from(minor) {
            return Err("it publishes no offsets");
        }
        if free_threaded != 0 {
            return Err("it runs without the global lock");
        }
        let word = |at: usize| {
            let offset = words.get(at).copied().unwrap_or(u64::MAX);
            u32::try_from(offset).ok().filter(|offset| *offset < MAX_OFFSET)
        };
        let read = || {
            Some(Self {
                minor,
                finalizing: word(4)?,
                state: State {
                    thread: word(at.thread)?,
                    current: word(at.state + 4)?,
                    through: None,
                    stack: Some(word(at.thread + 2)?),
                },
                frame: Frame {
                    code: word(at.frame + 2)?,
                    previous: word(at.frame + 1)?,
                    instruction: word(at.frame + 3)?,
                    instruction_mask: u64::MAX,
                    unit: 0,
                },
                code: Code {
                    kind: word(at.object + 1)?,
                    file: word(at.code + 1)?,
                    name: word(at.code + 3)?,
                    first_line: word(at.code + 5)?,
                    lines: word(at.code + 4)?,
                    instructions: word(at.code + 9)?,
                },
                text: Text {
                    length: word(at.unicode + 2)?,
                    state: word(at.unicode + 1)?,
                    ascii: word(at.unicode + 3)?,
                    compact: word(at.unicode + 3)?.checked_add(16)?,
                    bytes_length: word(at.bytes + 1)?,
                    bytes: word(at.bytes + 2)?,
                },
                entries: Entries::Shim {
                    owner: word(at.frame + 5)?,
                },
            })
        };
        read().ok_or("its offsets are out of range")
    }
}

/// Offsets beyond this are no offsets.
const MAX_OFFSET: u32 = 1 << 20;

impl Text {
    /// Up to 3.11.
    const LONG: Self = Self {
        length: 16,
        state: 32,
        ascii: 48,
        compact: 72,
        bytes_length: 16,
        bytes: 32,
    };
}

/// Words of `_Py_DebugOffsets` that are read.
pub(super) const WORDS: usize = 96;

/// Where groups of published offsets begin, in words.
struct Groups {
    state: usize,
    /// The thread's id, in the group of its state.
    thread: usize,
    frame: usize,
    code: usize,
    object: usize,
    bytes: usize,
    unicode: usize,
}

const IN_3_13: Groups = Groups {
    state: 19,
    thread: 24,
    frame: 28,
    code: 34,
    object: 44,
    bytes: 64,
    unicode: 67,
};
const IN_3_14: Groups = Groups {
    state: 22,
    thread: 27,
    frame: 31,
    code: 39,
    object: 50,
    bytes: 74,
    unicode: 77,
};

const IN_3_15: Groups = Groups {
    state: 22,
    thread: 30,
    frame: 39,
    code: 47,
    object: 58,
    bytes: 86,
    unicode: 89,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_version_has_a_layout() {
        for minor in OLDEST..PUBLISHED {
            assert_eq!(Layout::of(minor).map(|layout| layout.minor), Some(minor));
        }
        for minor in [0, 8, PUBLISHED, NEWEST, NEWEST + 1] {
            assert_eq!(Layout::of(minor), None);
        }
    }

    #[test]
    fn published_offsets_are_checked() {
        let mut words = [8; WORDS];
        words[0] = u64::from_le_bytes(*b"xdebugpy");
        words[1] = 0x030d_00f0;
        words[2] = 0;
        let read = |words: &_| Layout::published(13, words);
        assert!(read(&words).is_ok_and(|layout| layout.frame.code == 8 && layout.text.compact == 24));
        for other in PUBLISHED + 1..=NEWEST + 1 {
            assert!(Layout::published(other, &words).is_err());
            words[1] = 0x0300_00f0 | u64::from(other) << 16;
            assert_eq!(Layout::published(other, &words).is_ok(), other <= NEWEST);
        }
        words[1] = 0x030d_00f0;
        for (at, value) in [(0, 1), (1, 0x030e_00f0), (2, 1), (19 + 4, 1 << 20), (30, u64::MAX)] {
            let mut wrong = words;
            if let Some(word) = wrong.get_mut(at) {
                *word = value;
            }
            assert!(read(&wrong).is_err(), "{at}");
        }
    }
}
