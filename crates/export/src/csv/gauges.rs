//! `gauges.csv`: driver readings of the GPUs, and device-wide counters.

use super::writer::Lines;
use crate::gauges::PER_SECOND;
use crate::sample_streams::Point;
use crate::sort::{Entry, Sorter};
use crate::view::View;
use roctop_trace::item::Nanos;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Memory for sorting, bytes.
const SORT_BUFFER_BYTES: usize = 16 << 20;
const COLUMNS: &str = "Timestamp,Agent_Id,Process_Id,Gauge,Value,Unit";

/// A reading, sorted by time.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Moment(Point);

impl Entry for Moment {
    type Key = (Nanos, u32, u32, u16);

    fn key(&self) -> Self::Key {
        let point = &self.0;
        (point.at, point.node, point.pid, point.metric().0)
    }
}

/// Writes a row per number, device-wide counters last. Process_Id is 0 for a whole GPU.
pub(super) fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut moments = Sorter::new(view.place, SORT_BUFFER_BYTES);
    for point in view.gauges.points.iter() {
        moments.put(Moment(point?))?;
    }
    let mut lines = Lines::new(out, COLUMNS)?;
    for moment in moments.finish()?.iter() {
        let Moment(point) = moment?;
        lines.number(point.at).text(&view.node_label(point.node));
        lines.number(point.pid).text(point.metric().key());
        let unit = point.metric().unit().sign();
        lines.raw(&point.value.to_string()).text(unit).end()?;
    }
    for rate in view.gauges.rates.iter() {
        let rate = rate?;
        let Some(info) = view.gauges.counters.get(&rate.counter) else {
            continue;
        };
        let node = view.node(Some(info.agent));
        lines.number(rate.at).text(&view.node_label(node)).number(0u32);
        lines.text(&info.name).raw(&rate.value.to_string());
        lines.text(PER_SECOND).end()?;
    }
    Ok(())
}
