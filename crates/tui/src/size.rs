//! How much room a terminal has for views.

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Less than 40×10: a line.
    Tiny,
    /// Less than 80×24.
    Small,
    /// From 80×24.
    Medium,
    /// From 120×36.
    Large,
}

impl Size {
    /// The class of a terminal.
    pub const fn of(width: u16, height: u16) -> Self {
        if width < 40 || height < 10 {
            Self::Tiny
        } else if width < 80 || height < 24 {
            Self::Small
        } else if width < 120 || height < 36 {
            Self::Medium
        } else {
            Self::Large
        }
    }
}
