//! Which way one goes: along time, through what was typed, from jump to jump.

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To what was before.
    Back,
    /// To what comes after.
    On,
}

impl Way {
    /// The other one.
    #[must_use]
    pub const fn turned(self) -> Self {
        match self {
            Self::Back => Self::On,
            Self::On => Self::Back,
        }
    }
}
