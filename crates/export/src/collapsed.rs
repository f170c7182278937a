//! `gpu.collapsed.txt`: GPU time by stack of ranges, a line per stack: names from outside to inside with semicolons
//! between them, then ns. Tools for flame graphs read it.

use crate::gpu_time;
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

/// A name without the separators of the format: semicolon and line feed.
fn frame(name: &str) -> String {
    name.replace(';', ",").replace(['\n', '\r'], " ")
}
