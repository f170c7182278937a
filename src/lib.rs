//! roctop: the viewer. Reads what collectors write, aggregates, shows, exports.
#![forbid(unsafe_code)]

pub mod item;
pub mod clock;
pub mod decode;
pub mod kernel_name;
pub mod raw;
pub mod registers;
pub mod recording;
pub mod session;
pub mod export;
pub mod topology;
pub mod embedded;
pub mod launch;
