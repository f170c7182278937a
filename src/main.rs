//! roctop.
fn main() {}
