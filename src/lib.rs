//! roctop: the viewer. Reads what collectors write, aggregates, shows, exports.
#![forbid(unsafe_code)]

pub mod item;
