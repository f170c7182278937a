//! Decodes ring records into typed items: identities, names, times of one clock.
//!
//! ```text
//! raw::Raw ─► decode::Decoder ─► item::Item
//! ```
#![forbid(unsafe_code)]

pub mod arguments;
pub mod binding;
pub mod clock;
pub mod clocks;
pub mod decode;
pub mod early;
pub mod gauge;
pub mod id;
pub mod item;
pub mod kernel_descriptor;
pub mod kernel_name;
pub mod pc_sampling;
pub mod raw;
pub mod site;
pub mod spelling;
pub mod thread_reading;
pub mod topology;
pub mod units;
