//! What `roctop export` writes, read back in each format.

mod all;
mod csv;
mod json;
mod kineto;
pub(crate) mod libraries;
mod memory;
mod perfetto;
mod pprof;
mod ranges;
mod ranks;
mod seed;
