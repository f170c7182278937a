//! What the viewer carries for other processes: the collector and the drop-in libraries, built by `build.rs`.
//!
//! Only the binary depends on this package, so that cargo builds the collector beside the viewer's other packages.
#![forbid(unsafe_code)]

pub mod drop_in;
pub mod embedded;

mod built {
    // A static with the bytes of each row of `build.rs`; FILES and LINKS: paths below the prefix of the drop-in tree with
    // their contents, or with their targets.
    include!(concat!(env!("OUT_DIR"), "/built.rs"));
}
