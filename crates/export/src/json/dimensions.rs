//! Dimensions of counters: shader engines, arrays, units.

use super::writer::{list, text};
use crate::view::View;
use roctop_trace::item::CounterInfo;
use std::io::{self, Write};

/// Dimensions, by rocprofiler-sdk's number.
const DIMENSIONS: [(&str, u32); 7] = [
    ("DIMENSION_XCC", 1),
    ("DIMENSION_AID", 2),
    ("DIMENSION_SHADER_ENGINE", 3),
    ("DIMENSION_AGENT", 4),
    ("DIMENSION_SHADER_ARRAY", 5),
    ("DIMENSION_WGP", 6),
    ("DIMENSION_INSTANCE", 7),
];

/// Name, number and size of each dimension of a counter.
pub(super) fn of(info: &CounterInfo) -> Vec<(&str, u32, u64)> {
    let one = |word| -> Option<(&str, u32, u64)> {
        let word: &str = word;
        let (name, range) = word.strip_suffix(']')?.split_once('[')?;
        let last: u64 = range.split_once(':')?.1.parse().ok()?;
        let known = DIMENSIONS.iter().find(|known| known.0 == name);
        Some((name, known.map_or(0, |known| known.1), last.saturating_add(1)))
    };
    info.dimensions.split_whitespace().filter_map(one).collect()
}

/// Writes a list of dimensions.
pub(super) fn write(dimensions: &[(&str, u32, u64)], out: &mut dyn Write) -> io::Result<()> {
    list(out, dimensions, |out, (name, id, size)| {
        write!(out, "{{\"id\":{id},\"instance_size\":{size},\"name\":{}}}", text(name))
    })
}

/// Writes all dimensions of counters with values, each once with its maximum size.
pub(super) fn all(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut all: Vec<(&str, u32, u64)> = Vec::new();
    for one in view.counted.counters.iter().flat_map(|info| of(info)) {
        match all.iter_mut().find(|known| known.0 == one.0) {
            Some(known) => known.2 = known.2.max(one.2),
            None => all.push(one),
        }
    }
    all.sort_by_key(|one| one.1);
    write(&all, out)
}
