//! `gpu.pb.gz`: a profile for pprof (`proto/profile.proto` of google/pprof): GPU time and launches by stack of ranges.
//! `sites.pb.gz`: the same by call path.
//! Functions are ranges, kernels and directions of copies.

use crate::gpu_time::{self, Leaf};
use crate::protobuf::Message;
use crate::range_stacks::range_text;
use crate::site_time;
use crate::view::View;
use flate2::Compression;
use flate2::write::GzEncoder;
use roctop_model::FastMap;
use roctop_trace::item::TextId;
use roctop_trace::site;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

/// Fields of a profile.
mod profile {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING: u32 = 6;
    pub(super) const TIME_NANOS: u32 = 9;
    pub(super) const DURATION_NANOS: u32 = 10;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// What a frame of a stack is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Frame {
    Range(Option<TextId>),
    Leaf(Leaf),
    /// A call, with functions that were inlined.
    Call(site::Frame),
    /// A call path that is not known.
    Unknown,
}

/// Writer of a profile. Repeated fields may alternate, so that names are written when they first occur.
struct Profile<W> {
    out: W,
    message: Message,
    strings: u64,
    locations: FastMap<Frame, u64>,
    /// By name, mangled name and file.
    functions: HashMap<[String; 3], u64>,
}

impl<W: Write> Profile<W> {
    fn put(&mut self, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.message.clear();
        fill(&mut self.message);
        self.out.write_all(self.message.as_bytes())
    }

    /// Writes a string; returns its number.
    fn string(&mut self, text: &str) -> io::Result<u64> {
        self.put(|message| {
            message.text(profile::STRING, text);
        })?;
        self.strings += 1;
        Ok(self.strings - 1)
    }

    /// Number of the location of a range or of GPU work.
    fn location(&mut self, view: &View<'_>, frame: Frame) -> io::Result<u64> {
        if let Some(known) = self.locations.get(&frame) {
            return Ok(*known);
        }
        let name: Cow<'_, str> = match frame {
            Frame::Range(text) => range_text(text, view.texts),
            Frame::Leaf(leaf) => leaf.name(view).into(),
            Frame::Call(_) | Frame::Unknown => site_time::UNKNOWN.into(),
        };
        let mangled = match frame {
            Frame::Leaf(leaf) => leaf.mangled(view),
            _ => "",
        };
        let function = self.function(&name, mangled, "")?;
        self.place(frame, &[(function, 0)])
    }

    /// Number of the location of a call. Its functions are the innermost inlined one first, as the format wants them.
    fn call(&mut self, view: &View<'_>, frame: site::Frame) -> io::Result<u64> {
        if let Some(known) = self.locations.get(&Frame::Call(frame)) {
            return Ok(*known);
        }
        let sites = &view.run.sites;
        let mut lines = Vec::new();
        for line in sites.lines_or_unnamed(frame) {
            let function = self.function(&sites.function(frame, line), "", &line.file)?;
            lines.push((function, u64::from(line.line)));
        }
        self.place(Frame::Call(frame), &lines)
    }

    /// Number of a function. If the mangled name is that of the function, pprof removes its arguments, and kernels of one template
    /// become one.
    fn function(&mut self, name: &str, mangled: &str, file: &str) -> io::Result<u64> {
        let mangled = if mangled == name { "" } else { mangled };
        let key = [name, mangled, file].map(str::to_owned);
        if let Some(known) = self.functions.get(&key) {
            return Ok(*known);
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert(key, id);
        let mut number = |text: &str| if text.is_empty() { Ok(0) } else { self.string(text) };
        let (name, mangled, file) = (number(name)?, number(mangled)?, number(file)?);
        self.put(|message| {
            message.message(profile::FUNCTION, |function| {
                function
                    .number(1, id)
                    .number(2, name)
                    .number(3, mangled)
                    .number(4, file);
            });
        })?;
        Ok(id)
    }

    /// Number of a new location with these functions and lines.
    fn place(&mut self, frame: Frame, lines: &[(u64, u64)]) -> io::Result<u64> {
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(frame, id);
        self.put(|message| {
            message.message(profile::LOCATION, |location| {
                location.number(1, id);
                for (function, number) in lines {
                    location.message(4, |line| {
                        line.number(1, *function).number(2, *number);
                    });
                }
            });
        })?;
        Ok(id)
    }
}

/// A profile with the types of its values and what it is of.
fn begin<'o>(view: &View<'_>, out: &'o mut dyn Write) -> io::Result<Profile<GzEncoder<&'o mut dyn Write>>> {
    let mut profile = Profile {
        out: GzEncoder::new(out, Compression::default()),
        message: Message::default(),
        strings: 0,
        locations: FastMap::default(),
        functions: HashMap::new(),
    };
    profile.string("")?;
    let [launches, count, gpu, nanoseconds] = ["launches", "count", "gpu", "nanoseconds"];
    for (kind, unit) in [(launches, count), (gpu, nanoseconds)] {
        let (kind, unit) = (profile.string(kind)?, profile.string(unit)?);
        profile.put(|message| {
            message.message(profile::SAMPLE_TYPE, |value| {
                value.number(1, kind).number(2, unit);
            });
            message.number(profile::DEFAULT_SAMPLE_TYPE, kind);
        })?;
    }
    let (first, last) = view.times();
    profile.put(|message| {
        message.number(profile::TIME_NANOS, view.facts.wall_time(first));
        message.number(profile::DURATION_NANOS, last.saturating_sub(first));
    })?;
    let rank = view.process.rank.map(|rank| format!("rank {rank}"));
    let origin = format!(
        "{}, process {} on {}",
        view.process.exe, view.process.pid, view.process.host
    );
    let comments = rank
        .into_iter()
        .chain([origin])
        .chain(view.incomplete().map(str::to_owned));
    for comment in comments {
        let comment = profile.string(&comment)?;
        profile.put(|message| {
            message.number(profile::COMMENT, comment);
        })?;
    }
    Ok(profile)
}

/// Writes the profile of one process by ranges.
pub(super) fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut profile = begin(view, out)?;
    gpu_time::each(view, &mut |sum| {
        let mut stack = vec![profile.location(view, Frame::Leaf(sum.leaf))?];
        for text in view.rows.stacks.ids(sum.stack) {
            stack.push(profile.location(view, Frame::Range(text))?);
        }
        profile.put(|message| {
            message.message(profile::SAMPLE, |sample| {
                sample.numbers(1, stack).numbers(2, [sum.count, sum.nanos]);
            });
        })
    })?;
    profile.out.finish()?.flush()
}

/// Writes the profile of one process by call paths.
pub(super) fn write_sites(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut profile = begin(view, out)?;
    for ((path, leaf), sum) in site_time::sums(view)? {
        let mut stack = vec![profile.location(view, Frame::Leaf(leaf))?];
        match path.and_then(|path| view.run.sites.path(path)) {
            Some(path) => {
                for frame in &*path.frames {
                    stack.push(profile.call(view, *frame)?);
                }
            }
            None => stack.push(profile.location(view, Frame::Unknown)?),
        }
        profile.put(|message| {
            message.message(profile::SAMPLE, |sample| {
                sample.numbers(1, stack).numbers(2, [sum.count, sum.nanos]);
            });
        })?;
    }
    profile.out.finish()?.flush()
}
