//! `collectives.csv`: this rank's part in each complete collective.
//!
//! Upstream has no such file; it exists only if RCCL's calls could be matched.

use super::writer::Lines;
use crate::view::View;
use roctop_trace::item::Datatype;
use std::io::{self, Write};

const COLUMNS: &str = "Operation,Communicator,Sequence,Communicator_Rank,Ranks,Peer,Elements,Datatype,Bytes,\
Process_Id,Thread_Id,Call_Timestamp,Start_Timestamp,End_Timestamp,Wait,Skew,Clock_Error,Transfer,Last_Rank,\
Algorithm_Bandwidth,Bus_Bandwidth";

/// A number that is stored plus one, 0 for none.
fn maybe(number: u32) -> String {
    number
        .checked_sub(1)
        .map_or_else(String::new, |number| number.to_string())
}

/// Writes a row per collective, in order of the calls; bandwidths in bytes per second.
pub(super) fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = Lines::new(out, COLUMNS)?;
    for row in view.parts.iter() {
        let row = row?;
        lines.text(row.operation.name());
        lines.number(row.communicator).number(row.sequence);
        lines.number(row.rank).number(row.ranks);
        lines.raw(&maybe(row.peer)).number(row.count);
        lines
            .text(Datatype(row.datatype).name().unwrap_or("?"))
            .number(row.bytes);
        lines.number(view.process.pid).number(view.tid(Some(row.thread)));
        lines.number(row.call).number(row.arrival).number(row.end);
        lines.number(row.wait).number(row.skew);
        let error = if row.error == u64::MAX {
            String::new()
        } else {
            row.error.to_string()
        };
        lines.raw(&error).number(row.transfer).raw(&maybe(row.last));
        lines.raw(&format!("{:.0}", row.algorithm_bandwidth));
        lines.raw(&format!("{:.0}", row.bus_bandwidth)).end()?;
    }
    Ok(())
}
