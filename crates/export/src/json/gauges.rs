//! Driver readings and device-wide counters: a key in addition to upstream's schema.

use super::writer::text;
use crate::gauges::Series;
use crate::view::View;
use std::io::{self, Write};

/// Writes `"gauges":[…]`: times and values for each GPU and metric.
pub(super) fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "[")?;
    let mut is_first = true;
    view.gauges.each(view, &mut |series, at, value| {
        let Some(series) = series else {
            return write!(out, ",[{at},{value}]");
        };
        let before = if std::mem::take(&mut is_first) { "" } else { "]}," };
        let Series {
            node, pid, name, unit, ..
        } = series;
        let name = text(&name);
        write!(
            out,
            "{before}\n{{\"node_id\":{node},\"pid\":{pid},\"name\":{name},\"unit\":\"{unit}\",\"samples\":[[{at},{value}]"
        )
    })?;
    write!(out, "{}]", if is_first { "" } else { "]}" })
}
