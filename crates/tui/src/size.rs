//! How much room a terminal has for views.

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Less than 40×10: what is needed, in a line or two.
    Tiny,
    /// Less than the next: a list.
    Small,
    /// From 80×24, or 160×16.
    Medium,
    /// From 120×36, or 96×50.
    Large,
}

/// Columns and rows from which there are views.
const MIN: (u16, u16) = (40, 10);

/// What a terminal lacks: first what it is called for, then the size, in as many lines as it has.
pub(crate) fn too_small(width: u16, height: u16, called: &str) -> Vec<String> {
    let (columns, rows) = MIN;
    let needed = format!("needs {columns}x{rows}");
    let sizes = format!("{needed}, is {width}x{height}");
    let fits = |text: &&String| text.chars().count() <= usize::from(width);
    let whole = format!("{called}: {sizes}");
    let size = [&sizes, &needed].into_iter().find(fits).unwrap_or(&needed).clone();
    match height {
        _ if fits(&&whole) => vec![whole],
        0 | 1 => vec![size],
        _ => vec![called.to_owned(), size],
    }
}

impl Size {
    /// The class of a terminal.
    pub const fn of(width: u16, height: u16) -> Self {
        match (width, height) {
            _ if width < MIN.0 || height < MIN.1 => Self::Tiny,
            (120.., 36..) | (96.., 50..) => Self::Large,
            (80.., 24..) | (160.., 16..) => Self::Medium,
            _ => Self::Small,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_terminal_says_what_is_needed() {
        for (size, lines) in [
            ((39, 9), ["roctop: LIVE: needs 40x10, is 39x9"].as_slice()),
            ((30, 9), &["roctop: LIVE", "needs 40x10, is 30x9"]),
            ((30, 1), &["needs 40x10, is 30x1"]),
            ((12, 4), &["roctop: LIVE", "needs 40x10"]),
        ] {
            assert_eq!(Size::of(size.0, size.1), Size::Tiny);
            assert_eq!(too_small(size.0, size.1, "roctop: LIVE"), lines, "{size:?}");
        }
        assert_eq!(Size::of(MIN.0, MIN.1), Size::Small);
    }
}
