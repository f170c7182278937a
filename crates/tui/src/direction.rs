//! Direction of a move: along time, through what was typed, from jump to jump.

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To what was before.
    Back,
    /// To what comes after.
    On,
}

impl Direction {
    /// The other one.
    #[must_use]
    pub const fn turned(self) -> Self {
        match self {
            Self::Back => Self::On,
            Self::On => Self::Back,
        }
    }
}
