//! Compares the rows of functions with the headers and libraries of a release.
//!
//! The rows are a union over releases, so a function that a release lacks is listed and is no fault. A function that no
//! row has, one at another place of its dispatch table, and one of another signature are faults: the collector or the
//! exports need a look.

use crate::elf;
use crate::header::{Header, kind};
use hip_functions::{ROWS, signature};
use hip_sys::entry;
use hsa_sys::function::{self, Function};
use hsa_sys::table::AmdLayout;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::path::Path;

/// Functions without a row on purpose, beside hipRTC: tools and the compiler call them, or no dispatch table has them.
const LEFT_OUT: [&str; 17] = [
    "__hipGetPCH",
    "__hipReportDevices",
    "__hipTriggerReportDevices",
    "hipApiName",
    "hipEnableActivityCallback",
    "hipGetCmdName",
    "hipGetStreamDeviceId",
    "hipInitActivityCallback",
    "hipKernelNameRef",
    "hipKernelNameRefByPtr",
    "hipRegisterActivityCallback",
    "hipRegisterApiCallback",
    "hipRegisterTracerCallback",
    "hipRemoveActivityCallback",
    "hipRemoveApiCallback",
    "hip_init",
    "hsa_amd_image_get_info_max_dim",
];

/// A dispatch table's structure in headers, and the names of its entries by the rows.
const TABLES: [(&str, &[&str]); 3] = [
    ("HipDispatchTable", &entry::HIP),
    ("HipCompilerDispatchTable", &entry::COMPILER),
    ("rcclApiFuncTable", &entry::RCCL),
];

/// HSA's tables that never change.
const HSA_TABLES: [(&str, &[Function]); 3] = [
    ("CoreApiTable", &function::CORE),
    ("ImageExtTable", &function::IMAGE),
    ("FinalizerExtTable", &function::FINALIZER),
];

/// The differences between the rows and one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Functions that were compared.
    pub compared: usize,
    /// Functions without a row, with the signature if the file has it.
    pub new: Vec<(String, String)>,
    /// Functions with a row that the file lacks.
    pub gone: Vec<String>,
    /// Entries of dispatch tables that have another function: table, entry, function by the rows, function in the file.
    pub moved: Vec<(String, usize, String, String)>,
    /// Functions of another signature: name, signature by the row, signature in the file.
    pub changed: Vec<(String, String, String)>,
}

impl Difference {
    /// Do the rows have all that the file has?
    pub const fn is_covered(&self) -> bool {
        self.new.is_empty() && self.moved.is_empty() && self.changed.is_empty()
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            compared,
            new,
            gone,
            moved,
            changed,
        } = self;
        writeln!(
            f,
            "{compared} functions: {} new, {} moved, {} changed, {} gone",
            new.len(),
            moved.len(),
            changed.len(),
            gone.len()
        )?;
        for (name, signature) in new {
            writeln!(f, "  new      {name} {signature}")?;
        }
        for (table, entry, row, file) in moved {
            writeln!(f, "  moved    {table}[{entry}]: {file}, in the rows {row}")?;
        }
        for (name, row, file) in changed {
            writeln!(f, "  changed  {name}\n    row    {row}\n    file   {file}")?;
        }
        for name in gone {
            writeln!(f, "  gone     {name}")?;
        }
        Ok(())
    }
}

/// The differences between the rows and a header or library.
///
/// Errors: the file cannot be read, or has none of these functions.
pub fn of(path: &Path) -> Result<Difference, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let difference = if elf::is_elf(&bytes) {
        of_library(&elf::exported(&bytes).ok_or("the library has no dynamic symbols")?)
    } else {
        of_header(&String::from_utf8_lossy(&bytes))
    };
    if difference.compared == 0 {
        return Err("no function of HIP, RCCL or HSA was found".to_owned());
    }
    Ok(difference)
}

/// The API that a function belongs to, by its name; `None` if it needs no row.
fn api(name: &str) -> Option<&'static str> {
    // Names of HSA 1.0 for functions of the core table; events and PC sampling are for tools.
    let is_old = ["hsa_queue_", "hsa_signal_"]
        .iter()
        .any(|begin| name.starts_with(begin))
        && ["_acquire", "_release", "_acq_rel"]
            .iter()
            .any(|end| name.ends_with(end));
    if is_old
        || name.starts_with("hsa_amd_tool_")
        || name.starts_with("hsa_ven_amd_pcs_")
        || name.starts_with("hiprtc")
        || LEFT_OUT.contains(&name)
    {
        return None;
    }
    let is_of = |begins: &[&str]| begins.iter().any(|begin| name.starts_with(begin));
    if is_of(&["hip", "__hip"]) {
        Some("HIP")
    } else if is_of(&["nccl", "msccl"]) {
        Some("RCCL")
    } else if is_of(&["hsa_"]) {
        Some("HSA")
    } else {
        None
    }
}

/// All functions that have a row.
fn known() -> BTreeSet<&'static str> {
    let hsa = HSA_TABLES.iter().flat_map(|(_, functions)| *functions);
    let hsa = hsa.chain(&function::AMD).chain(&function::AMD_NEWER);
    let rows = ROWS.iter().flat_map(|row| [row.symbol, row.name]);
    let entries = TABLES.iter().flat_map(|(_, names)| names.iter().copied());
    rows.chain(entries).chain(hsa.map(|function| function.name)).collect()
}

/// Compares names alone.
fn of_names(names: &BTreeSet<&str>, signatures: &BTreeMap<String, String>) -> Difference {
    let known = known();
    let found: BTreeSet<&str> = names.iter().copied().filter(|name| api(name).is_some()).collect();
    let apis: BTreeSet<_> = found.iter().filter_map(|name| api(name)).collect();
    let signature = |name: &str| signatures.get(name).cloned().unwrap_or_default();
    let is_expected = |name: &&str| api(name).is_some_and(|api| apis.contains(api));
    Difference {
        compared: found.len(),
        new: found
            .difference(&known)
            .map(|name| ((*name).to_owned(), signature(name)))
            .collect(),
        gone: known
            .difference(&found)
            .copied()
            .filter(is_expected)
            .map(str::to_owned)
            .collect(),
        ..Difference::default()
    }
}

fn of_library(exported: &[String]) -> Difference {
    of_names(&exported.iter().map(String::as_str).collect(), &BTreeMap::new())
}

fn of_header(text: &str) -> Difference {
    let header = Header::read(text);
    let entries = header.tables.values().flatten();
    let names = entries.chain(header.signatures.keys()).map(String::as_str).collect();
    let mut difference = of_names(&names, &header.signatures);
    for (table, names) in &header.tables {
        let row = |entry: usize| row_of_entry(&header, table, names.len(), entry);
        for (entry, name) in names.iter().enumerate() {
            if let Some(row) = row(entry).filter(|row| row != name) {
                let moved = (table.clone(), entry, row.to_owned(), name.clone());
                difference.moved.push(moved);
            }
        }
    }
    for (name, file) in &header.signatures {
        let row = hip_functions::find(name).map(|row| row.signature);
        if let Some(row) = row.filter(|row| types(row) != types(file)) {
            let changed = (name.clone(), row.to_owned(), file.clone());
            difference.changed.push(changed);
        }
    }
    difference
}

/// The function that the rows have at a table's entry; `None` if no row says.
fn row_of_entry(header: &Header, table: &str, entries: usize, entry: usize) -> Option<&'static str> {
    if table == "AmdExtTable" {
        let step = header.numbers.get("HSA_AMD_EXT_API_TABLE_STEP_VERSION").copied();
        let layout = AmdLayout {
            size: 16 + 8 * entries,
            step: step.unwrap_or(0),
        };
        return function::amd(layout, entry).map(|function| function.name);
    }
    let hsa = HSA_TABLES.iter().find(|(name, _)| *name == table);
    if let Some((_, functions)) = hsa {
        return functions.get(entry).map(|function| function.name);
    }
    let (_, names) = TABLES.iter().find(|(name, _)| *name == table)?;
    names.get(entry).copied()
}

/// What matters of a signature: the types, whatever the parameters are called.
fn types(signature: &str) -> Vec<String> {
    let parameters = signature::parameters(signature).map(|one| {
        // What stands for the name of a parameter without one belongs to its type.
        if one.name.ends_with('*') {
            kind(&format!("{} {}", one.kind, one.name))
        } else {
            kind(one.kind)
        }
    });
    std::iter::once(kind(signature::returned(signature)))
        .chain(parameters)
        .collect()
}
