//! Where records come from and where they are kept: live sessions, recordings, the files of the GPU's driver.
#![forbid(unsafe_code)]

mod error;
pub mod progress;
pub mod recording;
pub mod session;
pub mod sysfs;

pub use self::error::{Error, Result};
