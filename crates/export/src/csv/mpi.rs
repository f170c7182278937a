//! `mpi_api_trace.csv`: calls of MPI. Upstream has no such file.

use super::writer::table;
use crate::mpi::{Details, details};
use crate::records::Row;
use crate::sort::Sorted;
use crate::view::View;
use roctop_trace::item::ApiCall;
use std::io::{self, Write};

const COLUMNS: &str = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp,Rank,\
Communicator,Peer,Tag,Bytes,Wait_ns";

/// Writes a row per call; what is unknown is empty.
pub(super) fn write(view: &View<'_>, rows: &Sorted<Row<ApiCall>>, out: &mut dyn Write) -> io::Result<()> {
    table(
        out,
        COLUMNS,
        rows,
        || (),
        |row, (), lines| {
            let call = &row.record;
            lines.text(view.domain(call)).text(view.function(call));
            lines.number(view.process.pid).number(view.tid(Some(call.thread)));
            lines.number(row.id).number(call.span.begin).number(call.span.end);
            let Details {
                rank,
                communicator,
                peer,
                tag,
                bytes,
                wait,
            } = details(view, call);
            let [rank, peer, tag, bytes, wait] =
                [rank, peer, tag, bytes, wait].map(|cell| cell.map_or_else(String::new, |cell| cell.to_string()));
            lines.raw(&rank).raw(&communicator).raw(&peer).raw(&tag).raw(&bytes);
            lines.raw(&wait);
        },
    )
}
