//! Kernels that begin before their launch: the clocks of GPU and host disagree.

use crate::item::{Dispatch, Nanos};
use crate::units;

/// Difference that is no error of calibrated clocks, ns.
const TOLERANCE: u64 = 50_000;

/// Kernels of a process that begin before their launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Early {
    kernels: u64,
    longest: Nanos,
}

impl Early {
    /// Looks at a dispatch.
    #[inline]
    pub fn add(&mut self, dispatch: &Dispatch) {
        let by = dispatch.submit.saturating_sub(dispatch.span.begin);
        if by > TOLERANCE && dispatch.span.begin != 0 {
            self.kernels += 1;
            self.longest = self.longest.max(by);
        }
    }

    /// Adds what was counted elsewhere.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            kernels: self.kernels + other.kernels,
            longest: self.longest.max(other.longest),
        }
    }

    /// A note if there are such kernels.
    pub fn note(self) -> Option<String> {
        (self.kernels > 0).then(|| {
            format!(
                "{}, up to {}: GPU and host clock disagree",
                units::counted(
                    self.kernels,
                    "kernel begins before its launch",
                    "kernels begin before their launch"
                ),
                units::duration(self.longest)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Span;

    #[test]
    fn kernels_before_their_launch_are_counted() {
        let mut early = Early::default();
        for (begin, submit) in [(100_000, 90_000), (100_000, 150_000), (0, 900_000), (100_000, 0)] {
            early.add(&dispatch(begin, submit));
        }
        assert_eq!(early.note(), None);
        early.add(&dispatch(100_000, 150_001));
        early.add(&dispatch(100_000, 350_000));
        let other = Early::default().and(early);
        assert_eq!(
            other.note().as_deref(),
            Some("2 kernels begin before their launch, up to 250 µs: GPU and host clock disagree")
        );
    }

    fn dispatch(begin: Nanos, submit: Nanos) -> Dispatch {
        Dispatch {
            span: Span { begin, end: begin },
            submit,
            ..Dispatch::default()
        }
    }
}
