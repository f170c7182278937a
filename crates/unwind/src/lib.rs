//! Call paths from copied stacks, and their names.
//!
//! [`Process`] has the mappings of one process; it turns a [`Stack`] into a [`CallPath`] of files and addresses. [`Files`] has
//! the unwind tables of all processes' files. [`Names`] turns an address of a file into functions, files and lines, also after
//! the process has ended.
//!
//! All input is untrusted: stacks, mappings, ELF files and their DWARF. Bad input makes frames or names missing. Every loop
//! over it is bounded by the size of what was read, or by a limit next to it. Files are read, not mapped: a file that is
//! truncated while it is in use is an error and no SIGBUS.
#![forbid(unsafe_code)]

mod cfi;
mod demangle;
mod dwarf;
mod elf;
mod files;
mod names;
mod process;
mod python;
mod symbols;
#[cfg(test)]
mod tests;

pub use self::files::{Files, Module, ModuleId, State};
pub use self::names::{Named, Names, NoName};
pub use self::process::{CallPath, End, FoundBy, Frame, Mapping, Process, Stack};
pub use self::python::line_of_python;
