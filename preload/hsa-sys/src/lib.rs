//! HSA types and function tables, loaded at run time, with asserted layouts.
//!
//! Nothing here is linked: a tool receives the run-time's tables in `OnLoad` ([`table`]). Handles are one-word
//! structures in C and plain numbers here, which is the same for the calling convention. [`abi`] has the structures in
//! memory, [`function`] the tables' functions by name.

pub mod abi;
pub mod function;
pub mod table;
