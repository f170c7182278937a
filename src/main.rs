//! roctop: parse, run, exit code.
#![forbid(unsafe_code)]

fn main() {}
