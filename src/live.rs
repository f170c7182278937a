//! The live screen and the replay: wires the terminal of the program, the ingest and the screen together.

mod appearance;
mod attached;
mod bindings;
mod effects;
pub mod ingest;
mod job;
mod launched;
pub mod past;
pub mod pty_keeper;
mod replay;
pub mod run;
mod schedule;
mod sites;
mod source_lines;
pub mod start;
pub mod tally;
mod thread_times;
mod watched;

pub use self::attached::attach;
pub(crate) use self::job::watch_job;
pub use self::launched::live;
pub(crate) use self::replay::faults;
pub use self::replay::replay;
pub use self::sites::unwind_stacks;

use crate::ui::LoopControl;
use rustix::process::Signal;

/// Sends the signal of that number, if there is one.
fn named(number: i32, send: impl FnOnce(Signal) -> LoopControl) -> LoopControl {
    match Signal::from_named_raw(number) {
        Some(signal) => send(signal),
        None => LoopControl::Say(format!("there is no signal {number}")),
    }
}
