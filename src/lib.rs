//! roctop.
