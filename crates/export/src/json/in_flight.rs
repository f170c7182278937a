//! Dispatches in flight when their process ended: a key in addition to upstream's schema, present only if there are
//! some.

use super::agent::handle;
use crate::view::View;
use std::io::{self, Write};

/// Writes the list under `kernels_in_flight`.
pub(super) fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
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
