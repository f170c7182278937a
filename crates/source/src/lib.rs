//! Sources of records, and where they are stored: live sessions, recordings, the files of the GPU driver.
#![forbid(unsafe_code)]

mod error;
mod in_order;
pub mod memory;
pub mod progress;
pub mod recording;
pub mod session;
pub mod sysfs;

pub use self::error::{Error, Result};
pub use self::in_order::{Pending, Promise, in_order, promise};
