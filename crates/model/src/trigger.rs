//! Triggers: conditions on records while they arrive, and when their recordings begin and end.
//!
//! `step > 1.3*p50(step)` is a condition: `roctop record --keep` writes what it holds when one becomes true. The language is
//! the filter's with the measures of `--fail-if`. There is no clock here: time comes with the items.

mod condition;
mod idle;
mod repetitions;
mod schedule;
mod watch;
mod window;

pub use condition::Condition;
pub use schedule::{Answer, Counts, Limits, Schedule};
pub use watch::{Fired, Watch};
