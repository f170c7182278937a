//! Regions and samples: calls with arguments, ranges and marks.

use super::{Writer, signed};
use crate::arguments::{self, Argument};
use crate::error::{Error, Result};
use crate::json::strings::Tables;
use crate::records::{Mark, Row};
use crate::sort::{Iter, PART_ENTRIES};
use roctop_trace::item::{ApiCall, Span};
use rusqlite::params;
use std::io;

impl Writer<'_> {
    pub(super) fn regions(&mut self) -> Result<()> {
        let view = self.view;
        let explained = |part: Iter<'_, Row<ApiCall>>| {
            let rows = part.map(|row| row.map(|row| (arguments::of(view, &row.record), row)));
            rows.collect::<io::Result<Vec<_>>>().map_err(Error::from)
        };
        for calls in [&view.rows.hip, &view.rows.hsa].into_iter().chain(&view.rows.libraries) {
            calls.each_part(PART_ENTRIES, explained, |rows| {
                for (arguments, row) in rows {
                    let call = &row.record;
                    let event = self.event(view.domain(call), [row.id, row.ancestor, 0], "{}")?;
                    self.arguments(event, &arguments)?;
                    self.region(view.function(call), view.tid(Some(call.thread)), call.span, event)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Writes ranges as regions, and marks as samples on a track of their thread.
    pub(super) fn markers(&mut self) -> Result<()> {
        let view = self.view;
        let tables = Tables::new(view);
        for row in view.rows.markers.iter() {
            let row: Row<Mark> = row?;
            let marker = &row.record;
            let data = serde_json::json!({ "message": view.message(marker) }).to_string();
            let event = self.event(view.marker_domain(marker), [row.id, row.ancestor, 0], &data)?;
            let name = tables.marker_name(marker);
            let tid = view.tid(Some(marker.thread));
            if marker.span.end > marker.span.begin {
                self.region(name, tid, marker.span, event)?;
                continue;
            }
            let (name, thread) = (self.string(name)?, self.thread(tid)?);
            let next = self.tracks.len() as i64 + 1;
            let track = *self.tracks.entry((tid, name)).or_insert(next);
            if track == next {
                self.insert("track", "id nid pid tid name_id")?.execute(params![
                    track,
                    1,
                    view.process.pid,
                    thread,
                    name
                ])?;
            }
            self.insert("sample", "track_id timestamp event_id")?.execute(params![
                track,
                signed(marker.span.begin),
                event
            ])?;
        }
        Ok(())
    }

    fn region(&mut self, name: &str, tid: u32, span: Span, event: i64) -> Result<()> {
        let (name, thread) = (self.string(name)?, self.thread(tid)?);
        let process = self.view.process.pid;
        self.insert("region", "nid pid tid start end name_id event_id")?
            .execute(params![
                1,
                process,
                thread,
                signed(span.begin),
                signed(span.end),
                name,
                event
            ])?;
        Ok(())
    }

    /// Writes the arguments of an event's call.
    fn arguments(&mut self, event: i64, arguments: &[Argument]) -> Result<()> {
        let insert = self.insert("arg", "event_id position type name value extdata")?;
        for (position, argument) in arguments.iter().enumerate() {
            insert.execute(params![
                event,
                position as i64,
                arguments::demangled(argument.kind),
                argument.name,
                argument.value,
                argument.given.as_ref().map_or_else(
                    || "{}".to_owned(),
                    |given| serde_json::json!({ "given": given }).to_string()
                )
            ])?;
        }
        Ok(())
    }
}
