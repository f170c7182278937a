//! What `roctop export` writes, read back in each format.

mod all;
mod csv;
mod json;
mod libraries;
mod perfetto;
mod seed;
