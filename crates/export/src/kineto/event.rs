//! Events of a Chrome trace, one line each. Times are in µs since the origin, with three decimals: whole nanoseconds.

use crate::json::writer::text;
use roctop_trace::item::{Nanos, Span};
use std::io::{self, Write};

/// Where an event is drawn: a thread of the process, or a stream of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    /// Process id, or number of the GPU.
    pub(super) pid: u64,
    /// Thread id, or number of the stream.
    pub(super) tid: u64,
}

impl Track {
    pub(super) fn host(pid: u32, tid: u32) -> Self {
        Self {
            pid: pid.into(),
            tid: tid.into(),
        }
    }
}

/// Writer of events.
pub(super) struct Events<'w> {
    out: &'w mut dyn Write,
    origin: Nanos,
    count: u64,
}

/// µs with three decimals.
fn micros(nanos: Nanos) -> String {
    format!("{}.{:03}", nanos / 1000, nanos % 1000)
}

impl<'w> Events<'w> {
    pub(super) fn new(out: &'w mut dyn Write, origin: Nanos) -> Self {
        Self { out, origin, count: 0 }
    }

    fn separate(&mut self) -> io::Result<()> {
        self.count += 1;
        if self.count > 1 {
            self.out.write_all(b",\n")
        } else {
            Ok(())
        }
    }

    fn at(&self, time: Nanos) -> String {
        micros(time.saturating_sub(self.origin))
    }

    fn metadata(&mut self, track: Track, kind: &str, key: &str, value: &str) -> io::Result<()> {
        self.separate()?;
        let Track { pid, tid } = track;
        write!(
            self.out,
            "{{\"name\": \"{kind}\", \"ph\": \"M\", \"ts\": 0.000, \"pid\": {pid}, \"tid\": {tid}, \"args\": \
{{\"{key}\": {value}}}}}"
        )
    }

    /// Names a process or a GPU.
    pub(super) fn process(&mut self, pid: u64, name: &str, label: &str, order: u64) -> io::Result<()> {
        let track = Track { pid, tid: 0 };
        self.metadata(track, "process_name", "name", &text(name))?;
        self.metadata(track, "process_labels", "labels", &text(label))?;
        self.metadata(track, "process_sort_index", "sort_index", &order.to_string())
    }

    /// Names a thread or a stream.
    pub(super) fn thread(&mut self, track: Track, name: &str, order: u64) -> io::Result<()> {
        self.metadata(track, "thread_name", "name", &text(name))?;
        self.metadata(track, "thread_sort_index", "sort_index", &order.to_string())
    }

    /// Begins an event with a duration.
    pub(super) fn complete(
        &mut self,
        category: &str,
        name: &str,
        Track { pid, tid }: Track,
        span: Span,
    ) -> io::Result<Arguments<'_>> {
        self.separate()?;
        let (begin, duration) = (self.at(span.begin), micros(span.duration()));
        write!(
            self.out,
            "{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": {}, \"pid\": {pid}, \"tid\": {tid}, \"ts\": {begin}, \
\"dur\": {duration}, \"args\": {{",
            text(name)
        )?;
        Ok(Arguments {
            out: &mut *self.out,
            count: 0,
        })
    }

    /// Writes an event without a duration.
    pub(super) fn instant(&mut self, name: &str, Track { pid, tid }: Track, time: Nanos) -> io::Result<()> {
        self.separate()?;
        write!(
            self.out,
            "{{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": {}, \"pid\": {pid}, \"tid\": {tid}, \
\"ts\": {}, \"args\": {{}}}}",
            text(name),
            self.at(time)
        )
    }

    /// Writes an event that may overlap others of its thread.
    pub(super) fn asynchronous(
        &mut self,
        name: &str,
        id: u64,
        Track { pid, tid }: Track,
        span: Span,
    ) -> io::Result<()> {
        for (phase, time) in [('b', span.begin), ('e', span.end)] {
            self.separate()?;
            write!(
                self.out,
                "{{\"ph\": \"{phase}\", \"cat\": \"user_annotation\", \"id\": {id}, \"name\": {}, \"pid\": {pid}, \"tid\": \
{tid}, \"ts\": {}, \"args\": {{}}}}",
                text(name),
                self.at(time)
            )?;
        }
        Ok(())
    }

    /// Writes an end of the arrow from a call to its work: `s` at the call, `f` at the work.
    pub(super) fn arrow(&mut self, phase: char, id: u64, Track { pid, tid }: Track, time: Nanos) -> io::Result<()> {
        self.separate()?;
        let binding = if phase == 'f' { ", \"bp\": \"e\"" } else { "" };
        write!(
            self.out,
            "{{\"ph\": \"{phase}\", \"id\": {id}, \"pid\": {pid}, \"tid\": {tid}, \"ts\": {}, \"cat\": \"ac2g\", \"name\": \
\"ac2g\"{binding}}}",
            self.at(time)
        )
    }

    /// Writes the end of the recording.
    pub(super) fn end(&mut self, time: Nanos) -> io::Result<()> {
        self.separate()?;
        write!(
            self.out,
            "{{\"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\", \"pid\": \"\", \"tid\": \"\", \"ts\": {}}}",
            self.at(time)
        )
    }
}

/// Arguments of an event.
pub(super) struct Arguments<'w> {
    out: &'w mut dyn Write,
    count: u32,
}

impl Arguments<'_> {
    fn key(&mut self, key: &str) -> io::Result<()> {
        let separator = if self.count == 0 { "" } else { ", " };
        self.count += 1;
        write!(self.out, "{separator}\"{key}\": ")
    }

    /// Id of the range around it; nothing if there is none.
    pub(super) fn external(&mut self, id: u64) -> io::Result<()> {
        if id == 0 {
            Ok(())
        } else {
            self.number("External id", id)
        }
    }

    pub(super) fn number(&mut self, key: &str, value: u64) -> io::Result<()> {
        self.key(key)?;
        write!(self.out, "{value}")
    }

    /// A number, if it is known.
    pub(super) fn raw(&mut self, key: &str, value: Option<u64>) -> io::Result<()> {
        value.map_or(Ok(()), |value| self.number(key, value))
    }

    pub(super) fn real(&mut self, key: &str, value: f64) -> io::Result<()> {
        self.key(key)?;
        write!(self.out, "{value:?}")
    }

    pub(super) fn text(&mut self, key: &str, value: &str) -> io::Result<()> {
        self.key(key)?;
        write!(self.out, "{}", text(value))
    }

    pub(super) fn sizes(&mut self, key: &str, [x, y, z]: [u64; 3]) -> io::Result<()> {
        self.key(key)?;
        write!(self.out, "[{x}, {y}, {z}]")
    }

    pub(super) fn end(self) -> io::Result<()> {
        write!(self.out, "}}}}")
    }
}
