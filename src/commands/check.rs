//! `roctop check`: is a trace that another tool wrote complete?

use super::recordings::{EXCEEDED, merged, open_on};
use crate::cli::usage_error::UsageError;
use crate::cli::{self, CheckFormat};
use crate::item::{Item, KernelId};
use anyhow::Result;
use roctop_foreign::{Reference, Trace};
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

/// `roctop check`.
pub fn check(options: &cli::Check) -> Result<u8> {
    let trace = Trace::read(&options.trace).map_err(|error| {
        let error = anyhow::Error::from(error);
        UsageError(format!("{}: {error:#}", options.trace.display()))
    })?;
    let reference = options.against.as_ref().map(|path| reference(path, options.reading));
    let reference = reference.transpose()?;
    let report = trace.report(reference.as_ref());
    let mut out = std::io::stdout().lock();
    match options.format {
        CheckFormat::Table => report.write(&mut out)?,
        CheckFormat::Json => writeln!(out, "{:#}", report.json())?,
    }
    Ok(if report.is_complete() { 0 } else { EXCEEDED })
}

/// The kernels of a recording.
fn reference(path: &std::path::Path, reading: cli::Reading) -> Result<Reference> {
    let recordings = open_on(reading, std::slice::from_ref(&path.to_owned()))?;
    let whole = merged(&recordings)?;
    let mut reference = Reference::default();
    let mut names: HashMap<KernelId, Arc<str>> = HashMap::new();
    whole.items(None, &mut |_| (), &mut |items| {
        for item in items {
            match item {
                Item::Kernel(kernel) => {
                    names.insert(kernel.id, kernel.name);
                }
                Item::Dispatch(dispatch) => {
                    let name = names.get(&dispatch.kernel).map_or("?", |name| name);
                    reference.kernel(name, dispatch.span.begin);
                }
                _ => {}
            }
        }
    })?;
    Ok(reference)
}
