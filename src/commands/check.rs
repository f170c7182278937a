//! `roctop check`: is a trace that another tool wrote complete?

use super::recordings::{EXCEEDED, merged, open_on};
use crate::cli::usage_error::UsageError;
use crate::cli::{self, CheckFormat};
use crate::item::{Item, KernelId};
use anyhow::Result;
use roctop_foreign::{Reference, Trace};
use std::collections::HashMap;
use std::io::{self, BufWriter, ErrorKind, Write};
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
    put(io::stdout().lock(), |out| match options.format {
        CheckFormat::Table => report.write(out),
        CheckFormat::Json => writeln!(out, "{:#}", report.json()),
    })?;
    Ok(if report.is_complete() { 0 } else { EXCEEDED })
}

/// Writes a report. The verdict is the exit code: a reader that closes the output changes nothing of it.
pub(super) fn put(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// The kernels of a recording.
fn reference(path: &std::path::Path, reading: cli::Reading) -> Result<Reference> {
    let recordings = open_on(reading, std::slice::from_ref(&path.to_owned()))
        .map_err(|error| UsageError(format!("--against {}: {error:#}", path.display())))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that refuses all.
    struct Refusing(ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_output_alone_is_no_failure() {
        let text = |out: &mut dyn Write| out.write_all(b"incomplete\n");
        put(Refusing(ErrorKind::BrokenPipe), text).unwrap();
        let full = put(Refusing(ErrorKind::StorageFull), text);
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
        let mut written = Vec::new();
        put(&mut written, text).unwrap();
        assert_eq!(written, b"incomplete\n");
    }
}
