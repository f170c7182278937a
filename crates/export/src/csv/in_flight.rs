//! Dispatches in flight when their process ended: launched, and not completed.
//!
//! Upstream's files cannot contain them, so they are in an additional file, which exists only if there are some.

use super::writer::Lines;
use crate::view::View;
use std::io::{self, Write};

const COLUMNS: &str = "Kind,Agent_Id,Queue_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Submit_Timestamp";

/// Writes `kernel_in_flight.csv`. The correlation id is that of the launching call.
pub(super) fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = Lines::new(out, COLUMNS)?;
    for row in view.rows.in_flight.iter() {
        let row = row?;
        let d = &row.record;
        lines.text("KERNEL_DISPATCH").text(&view.agent(Some(d.agent)));
        lines.number(view.queue(d.queue)).number(d.dispatch_id);
        lines.number(d.kernel.0 + 1).text(&view.kernel_name(&row));
        lines.number(row.id).number(d.submit).end()?;
    }
    Ok(())
}
