//! Dispatches that were in flight when their process ended: launched, and not completed.
//!
//! Upstream's formats have no place for them. They are in a CSV file and under a key of `results.json`, which are there only
//! when there are some.

use super::csv::Lines;
use super::json::agent::handle;
use super::view::View;
use std::io::{self, Write};

const COLUMNS: &str = "Kind,Agent_Id,Queue_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Submit_Timestamp";

/// `kernel_in_flight.csv`. The correlation id is that of the call that launched the kernel.
pub(super) fn csv(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
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

/// The list under `kernels_in_flight`.
pub(super) fn json(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "[")?;
    for (number, row) in view.rows.in_flight.iter().enumerate() {
        let row = row?;
        let d = &row.record;
        let (agent, queue) = (handle(view.node(Some(d.agent))), view.queue(d.queue));
        write!(
            out,
            "{}{{\"correlation_id\":{{\"internal\":{}}},\"submit_timestamp\":{},\"agent_id\":{{\"handle\":{agent}}},\
\"queue_id\":{{\"handle\":{queue}}},\"kernel_id\":{},\"dispatch_id\":{}}}",
            if number == 0 { "\n" } else { ",\n" },
            row.id,
            d.submit,
            d.kernel.0 + 1,
            d.dispatch_id
        )?;
    }
    write!(out, "]")
}
