//! How much room a terminal has for views.

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Less than 40×10: a line.
    Tiny,
    /// Less than the next: a list.
    Small,
    /// From 80×24, or 160×16.
    Medium,
    /// From 120×36, or 96×50.
    Large,
}

impl Size {
    /// The class of a terminal.
    pub const fn of(width: u16, height: u16) -> Self {
        match (width, height) {
            (..40, _) | (_, ..10) => Self::Tiny,
            (120.., 36..) | (96.., 50..) => Self::Large,
            (80.., 24..) | (160.., 16..) => Self::Medium,
            _ => Self::Small,
        }
    }
}
