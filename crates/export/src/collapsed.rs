//! `gpu.collapsed.txt`: GPU time by stack of ranges, a line per stack: names from outside to inside with semicolons
//! between them, then ns. `sites.collapsed.txt`: the same by call path. Tools for flame graphs read them.

use crate::gpu_time;
use crate::site_time;
use crate::view::View;
use std::io::{self, Write};

/// Writes the stacks of one process.
pub(super) fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    gpu_time::each(view, &mut |sum| {
        let ranges = view.rows.stacks.texts(sum.stack, view.texts);
        let mut names: Vec<String> = ranges.map(|text| frame(&text)).collect();
        names.reverse();
        names.push(frame(&sum.leaf.name(view)));
        writeln!(out, "{} {}", names.join(";"), sum.nanos)
    })
}

/// Writes the call paths of one process.
pub(super) fn write_sites(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let sites = &view.run.sites;
    for ((path, leaf), sum) in site_time::sums(view)? {
        let mut names = match path {
            Some(path) => sites
                .functions(path)
                .map(|(at, line)| frame(&sites.function(at, line)))
                .collect(),
            None => vec![site_time::UNKNOWN.to_owned()],
        };
        names.reverse();
        names.push(frame(&leaf.name(view)));
        writeln!(out, "{} {}", names.join(";"), sum.nanos)?;
    }
    Ok(())
}

/// A name without the separators of the format: semicolon and line feed.
fn frame(name: &str) -> String {
    name.replace(';', ",").replace(['\n', '\r'], " ")
}
