//! One row per function of HIP, its compiler API and RCCL. The collector's hooks and tables, the viewer's text of
//! arguments and the types in exports all come from these rows.
//!
//! Data only: no function of the run-time is called or linked. [`functions`] passes the rows to a macro, [`ROWS`] has
//! them as values, [`signature`] reads a C signature, also at compile time.
#![forbid(unsafe_code)]

mod rows;
pub mod signature;

pub use rows::ROWS;

/// API of a function, by its number in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Domain {
    /// Run-time API.
    Hip = 1,
    /// Compiler API.
    Compiler = 2,
    /// RCCL.
    Rccl = 8,
    /// rocDecode.
    Rocdecode = 9,
    /// rocJPEG.
    Rocjpeg = 10,
}

/// What a row says of a function, as far as it is data.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// API.
    pub domain: Domain,
    /// Exported symbol.
    pub symbol: &'static str,
    /// Displayed name.
    pub name: &'static str,
    /// Position in the API's dispatch table; `None` if the table has no such entry.
    pub entry: Option<usize>,
    /// C signature; see [`signature`].
    pub signature: &'static str,
    /// Names of the arguments as the viewer shows them, in order; `_` for one that is not shown. Empty if the viewer shows
    /// no argument of this function.
    pub shown: &'static str,
}

/// The first row of the function of this name.
pub fn find(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}
