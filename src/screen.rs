//! The live screen and the replay: wires the program's terminal, the pump and the screen together.

mod appearance;
mod attached;
mod desk;
mod live;
mod replay;
mod watched;

pub use self::attached::attach;
pub use self::live::live;
pub use self::replay::replay;

use crate::ui::Flow;
use rustix::process::Signal;

/// Sends the signal of that number, if there is one.
fn named(number: i32, send: impl FnOnce(Signal) -> Flow) -> Flow {
    match Signal::from_named_raw(number) {
        Some(signal) => send(signal),
        None => Flow::Say(format!("there is no signal {number}")),
    }
}
