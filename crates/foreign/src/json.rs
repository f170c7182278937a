//! JSON: Chrome traces as PyTorch's profiler (Kineto) writes them, and rocprofv3's. Both are read event by event.

use crate::{Error, Format, tally::Tally};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::marker::PhantomData;

/// Maximum bytes of a string.
const MAX_STRING: u64 = 16 << 20;
/// Maximum number of kernels and functions that a file names.
const MAX_SYMBOLS: usize = 1 << 18;
/// Maximum bytes of a text that is kept; no longer names are demangled.
const MAX_TEXT: usize = 64 << 10;
/// Maximum bytes of a function's name.
const MAX_FUNCTION: usize = 128;

/// What is known while a file is read.
#[derive(Default)]
struct Found {
    tally: Tally,
    format: Option<Format>,
    /// The process whose records are read, from 1 on (rocprofv3).
    process: u64,
    /// Numbers of names, by rocprofv3's number of the kernel in this process.
    kernels: HashMap<u64, u32>,
    /// Functions by the numbers of kind and operation.
    functions: HashMap<(u64, u64), String>,
}

/// Reads a document; whether it ends early.
pub(crate) fn read(input: impl Read, tally: Tally) -> Result<(Tally, Format, bool), Error> {
    let mut found = Found {
        tally,
        ..Found::default()
    };
    let input = BufReader::with_capacity(1 << 20, LimitedStrings::new(input));
    let mut document = serde_json::Deserializer::from_reader(input);
    let done = Top(&mut found).deserialize(&mut document).and_then(|()| document.end());
    let is_cut = match done {
        Ok(()) => false,
        Err(error) if is_early_end(&error) => true,
        Err(error) => return Err(Error::Json(error)),
    };
    match found.format {
        Some(format) => Ok((found.tally, format, is_cut)),
        None => Err(Error::Unknown),
    }
}

/// Whether a document, or what it is compressed in, ends early.
fn is_early_end(error: &serde_json::Error) -> bool {
    error.is_eof() || error.io_error_kind() == Some(io::ErrorKind::UnexpectedEof)
}

/// Input whose JSON strings have a limit: one string is held in memory.
struct LimitedStrings<R> {
    input: R,
    is_inside: bool,
    is_escaped: bool,
    length: u64,
}

impl<R> LimitedStrings<R> {
    const fn new(input: R) -> Self {
        Self {
            input,
            is_inside: false,
            is_escaped: false,
            length: 0,
        }
    }
}

impl<R: Read> Read for LimitedStrings<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(room)?;
        for byte in &room[..count] {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_inside => self.is_escaped = true,
                b'"' => (self.is_inside, self.length) = (!self.is_inside, 0),
                _ => {}
            }
            self.length += u64::from(self.is_inside);
            if self.length > MAX_STRING {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a string of more than 16 MiB",
                ));
            }
        }
        Ok(count)
    }
}

/// A value of any type, of which text and numbers are kept.
#[derive(Debug, Default)]
enum Loose {
    #[default]
    Nothing,
    Text(String),
    Whole(u64),
    Number(f64),
}

impl Loose {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Whole(number) => Some(*number as f64),
            Self::Text(text) => text.parse().ok(),
            Self::Nothing => None,
        }
    }

    fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Loose;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a value")
            }
            fn visit_bool<E>(self, _: bool) -> Result<Loose, E> {
                Ok(Loose::Nothing)
            }
            fn visit_unit<E>(self) -> Result<Loose, E> {
                Ok(Loose::Nothing)
            }
            fn visit_u64<E>(self, number: u64) -> Result<Loose, E> {
                Ok(Loose::Whole(number))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Loose, E> {
                Ok(Loose::Number(number as f64))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Loose, E> {
                Ok(Loose::Number(number))
            }
            fn visit_str<E>(self, text: &str) -> Result<Loose, E> {
                Ok(match text.len() {
                    ..=MAX_TEXT => Loose::Text(text.to_owned()),
                    _ => Loose::Nothing,
                })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Loose, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Loose::Nothing)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Loose::Nothing)
            }
        }
        input.deserialize_any(Any)
    }
}

/// A list whose elements are taken one by one.
struct Each<T, F>(F, PhantomData<T>);

fn each<T, F: FnMut(T)>(take: F) -> Each<T, F> {
    Each(take, PhantomData)
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();
    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element()? {
            (self.0)(element);
        }
        Ok(())
    }
}

/// An object whose members are read by their names.
trait Members<'de>: Sized {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error>;
}

struct Object<M>(M);

impl<'de, M: Members<'de>> DeserializeSeed<'de> for Object<M> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de, M: Members<'de>> Visitor<'de> for Object<M> {
    type Value = ();
    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.0.member(&name, &mut map)?;
        }
        Ok(())
    }
}

fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(|_| ())
}

/// The document: an object, or the events alone.
struct Top<'f>(&'f mut Found);

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();
    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a trace")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        Object(self).visit_map(map)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        each(|event: Event| self.0.event(&event)).visit_seq(seq)
    }
}

impl<'de> Members<'de> for Top<'_> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "traceEvents" => {
                self.0.format = Some(Format::Kineto);
                map.next_value_seed(each(|event: Event| self.0.event(&event)))
            }
            "rocprofiler-sdk-tool" => {
                self.0.format = Some(Format::Rocprofv3Json);
                map.next_value_seed(Tools(self.0))
            }
            _ => skip(map),
        }
    }
}

/// An event of a Chrome trace.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    ph: Loose,
    cat: Loose,
    name: Loose,
    ts: Loose,
    dur: Loose,
    id: Loose,
    pid: Loose,
    tid: Loose,
    args: Arguments,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    correlation: Loose,
}

impl Found {
    fn event(&mut self, event: &Event) {
        if !event.ph.text().is_empty() {
            self.format = Some(Format::Kineto);
        }
        // µs, with ns as decimals.
        let nanos = |micros: f64| (micros * 1e3).round() as i64;
        let begin = event.ts.number().map_or(0, nanos);
        let process = event.pid.whole().unwrap_or_default();
        match (event.ph.text(), event.cat.text()) {
            ("X", "kernel" | "Kernel") => {
                let name = self.tally.name(event.name.text());
                let end = begin.saturating_add(event.dur.number().map_or(0, nanos));
                // Its `pid` is the number of a GPU.
                self.tally
                    .kernel(name, [begin, end], None, event.args.correlation.whole());
            }
            ("X", "cuda_runtime" | "hip_runtime" | "Runtime" | "cuda_driver") => {
                let thread = (process, event.tid.whole().unwrap_or_default());
                self.tally
                    .call(event.name.text(), thread, begin, event.args.correlation.whole());
            }
            (phase @ ("s" | "f"), "ac2g") => match event.id.whole() {
                Some(id) if phase == "s" => self.tally.arrow_start(process, id),
                Some(id) => self.tally.arrow_end(id),
                None => {}
            },
            _ => {}
        }
    }

    fn dispatch(&mut self, record: &Record) {
        let number = record.dispatch_info.kernel_id.whole().unwrap_or_default();
        let name = match self.kernels.get(&number) {
            Some(name) => *name,
            None => self.tally.name(&format!("kernel {number}")),
        };
        let correlation = record.correlation_id.internal.whole();
        self.tally.kernel(name, record.times(), Some(self.process), correlation);
        if let Some(thread) = record.thread_id.whole().filter(|thread| *thread != 0) {
            self.tally.launched_by((self.process, thread), correlation);
        }
        let dispatch = record.dispatch_info.dispatch_id.whole().unwrap_or_default();
        self.tally.dispatch(self.process, dispatch);
    }

    fn api(&mut self, record: &Record) {
        let thread = (self.process, record.thread_id.whole().unwrap_or_default());
        self.tally.called(thread, record.correlation_id.internal.whole());
        let key = record.kind.whole().zip(record.operation.whole());
        if let Some(function) = key.and_then(|key| self.functions.get(&key)) {
            self.tally.call(
                function,
                thread,
                record.times()[0],
                record.correlation_id.internal.whole(),
            );
        }
    }
}

/// A record of rocprofv3.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Record {
    kind: Loose,
    operation: Loose,
    correlation_id: Correlation,
    start_timestamp: Loose,
    end_timestamp: Loose,
    thread_id: Loose,
    dispatch_info: DispatchInfo,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Correlation {
    internal: Loose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DispatchInfo {
    kernel_id: Loose,
    dispatch_id: Loose,
}

impl Record {
    fn times(&self) -> [i64; 2] {
        [&self.start_timestamp, &self.end_timestamp].map(|time| time.whole().unwrap_or_default() as i64)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Symbol {
    kernel_id: Loose,
    kernel_name: Loose,
    formatted_kernel_name: Loose,
    demangled_kernel_name: Loose,
}

impl Symbol {
    /// The name with arguments, if the file has it.
    fn name(&self) -> &str {
        let names = [
            &self.demangled_kernel_name,
            &self.kernel_name,
            &self.formatted_kernel_name,
        ];
        names
            .into_iter()
            .map(Loose::text)
            .find(|name| !name.is_empty())
            .unwrap_or("?")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KindStrings {
    operations: Operations,
}

/// Names of functions, up to a limit.
#[derive(Debug, Default)]
struct Operations(Vec<String>);

impl<'de> Deserialize<'de> for Operations {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let mut names = Vec::new();
        each(|name: Loose| {
            if names.len() < MAX_SYMBOLS / 16 {
                let name = Some(name.text()).filter(|name| name.len() <= MAX_FUNCTION);
                names.push(name.unwrap_or_default().to_owned());
            }
        })
        .deserialize(input)?;
        Ok(Self(names))
    }
}

/// The processes of a rocprofv3 document.
struct Tools<'f>(&'f mut Found);

impl<'de> DeserializeSeed<'de> for Tools<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Tools<'_> {
    type Value = ();
    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of processes")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        loop {
            // Its ids and its numbers of kernels are its own.
            self.0.process += 1;
            self.0.kernels.clear();
            if seq.next_element_seed(Object(Tool(self.0)))?.is_none() {
                return Ok(());
            }
        }
    }
}

struct Tool<'f>(&'f mut Found);

impl<'de> Members<'de> for Tool<'_> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "kernel_symbols" => map.next_value_seed(each(|symbol: Symbol| {
                let number = symbol.kernel_id.whole().unwrap_or_default();
                if self.0.kernels.len() < MAX_SYMBOLS {
                    let name = self.0.tally.name(symbol.name());
                    self.0.kernels.insert(number, name);
                }
            })),
            "strings" => map.next_value_seed(Object(Strings(self.0))),
            "buffer_records" => map.next_value_seed(Object(Records(self.0))),
            _ => skip(map),
        }
    }
}

struct Strings<'f>(&'f mut Found);

impl<'de> Members<'de> for Strings<'_> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        if name != "buffer_records" {
            return skip(map);
        }
        let mut kind = 0;
        map.next_value_seed(each(|strings: KindStrings| {
            for (operation, name) in (0..).zip(strings.operations.0) {
                if name.starts_with("hip") && self.0.functions.len() < MAX_SYMBOLS {
                    self.0.functions.insert((kind, operation), name);
                }
            }
            kind += 1;
        }))
    }
}

struct Records<'f>(&'f mut Found);

impl<'de> Members<'de> for Records<'_> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "kernel_dispatch" => map.next_value_seed(each(|record: Record| self.0.dispatch(&record))),
            "hip_api" => map.next_value_seed(each(|record: Record| self.0.api(&record))),
            _ => skip(map),
        }
    }
}
