//! HSA types and function tables, run-time loaded, ABI asserted.
//!
//! Nothing here is linked: a tool gets the run-time's tables in `OnLoad` ([`table`]). Handles are structures of one
//! 64-bit word in C and plain numbers here, which is the same to the calling convention. [`abi`] has the structures in
//! memory, [`function`] the tables' functions by name.

pub mod abi;
pub mod function;
pub mod table;
