//! Perfetto's traces, as rocprofv3 and rocprof-sys write them: slices of kernels and calls, joined by flows.

use crate::Error;
use crate::tally::Tally;
use std::collections::HashMap;
use std::io::{self, BufRead, Read};

/// Maximum bytes of a packet.
const MAX_PACKET: u64 = 16 << 20;
/// Maximum bytes of interned names of all sequences.
const MAX_INTERNED_BYTES: usize = 32 << 20;
/// Tag of a packet in a trace.
const PACKET: u64 = 1 << 3 | 2;
/// Type of an event that begins a slice.
const BEGIN: u64 = 1;
/// Flag of a packet from which on names have new numbers.
const IS_CLEARED: u64 = 1;

/// Categories that hold kernels and other work of a GPU. rocprof-sys groups this work by stream unless it is asked to group it by
/// queue; omnitrace, its predecessor, has one category. Source: `perfetto_processor.cpp` and `roctracer.cpp` of rocprofiler-systems.
const MIXED: [&str; 2] = ["rocm_hip_stream", "device_hip"];
/// Names of work in these categories that is no kernel. Source: the operations of rocprofiler-sdk and the commands of HIP.
const NO_KERNELS: [&str; 3] = ["FillBuffer", "Marker", "Barrier"];
/// Beginnings of such names.
const NO_KERNELS_FROM: [&str; 8] = [
    "MEMORY_COPY_",
    "SCRATCH_MEMORY_",
    "HOST_TO_",
    "DEVICE_TO_",
    "CopyHostTo",
    "CopyDeviceTo",
    "hipMemcpy",
    "hipMemset",
];

/// Whether a slice is a kernel.
fn is_kernel(category: &str, name: &str) -> bool {
    let is_other = || NO_KERNELS.contains(&name) || NO_KERNELS_FROM.iter().any(|from| name.starts_with(from));
    category.contains("kernel_dispatch") || MIXED.contains(&category) && !is_other()
}

/// Value of a field.
enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

impl Value<'_> {
    const fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => 0,
        }
    }
}

/// A varint at the beginning of some bytes, and what follows; `None` if it is none.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

/// The fields of a message, as far as it is one.
fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u64, Value<'_>)> {
    std::iter::from_fn(move || {
        let (tag, rest) = varint(bytes)?;
        let (value, rest) = match tag & 7 {
            0 => varint(rest).map(|(number, rest)| (Value::Number(number), rest))?,
            1 => {
                let (word, rest) = rest.split_first_chunk()?;
                (Value::Number(u64::from_le_bytes(*word)), rest)
            }
            5 => {
                let (word, rest) = rest.split_first_chunk()?;
                (Value::Number(u32::from_le_bytes(*word).into()), rest)
            }
            2 => {
                let (length, rest) = varint(rest)?;
                let (own, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                (Value::Bytes(own), rest)
            }
            _ => return None,
        };
        bytes = rest;
        Some((tag >> 3, value))
    })
}

/// Texts of a sequence, by their numbers.
#[derive(Default)]
struct Interned {
    names: HashMap<u64, String>,
    categories: HashMap<u64, String>,
    bytes: usize,
}

/// What is known of the sequences.
#[derive(Default)]
struct Known {
    sequences: HashMap<u64, Interned>,
    bytes: usize,
}

impl Known {
    /// The names of a sequence are numbered again.
    fn clear(&mut self, sequence: u64) {
        if let Some(known) = self.sequences.remove(&sequence) {
            self.bytes -= known.bytes;
        }
    }

    fn intern(&mut self, sequence: u64, message: &[u8]) {
        for (field, value) in fields(message).filter(|field| matches!(field.0, 1 | 2)) {
            let Value::Bytes(entry) = value else { continue };
            let (mut id, mut text) = (0, String::new());
            for (field, value) in fields(entry) {
                match (field, value) {
                    (1, Value::Number(number)) => id = number,
                    (2, Value::Bytes(bytes)) => text = String::from_utf8_lossy(bytes).into_owned(),
                    _ => {}
                }
            }
            let bytes = text.len() + 100;
            if self.bytes + bytes <= MAX_INTERNED_BYTES {
                let known = self.sequences.entry(sequence).or_default();
                (self.bytes, known.bytes) = (self.bytes + bytes, known.bytes + bytes);
                let table = if field == 1 {
                    &mut known.categories
                } else {
                    &mut known.names
                };
                table.insert(id, text);
            }
        }
    }

    fn packet(&mut self, packet: &[u8], tally: &mut Tally) {
        let (mut time, mut sequence, mut flags, mut event, mut interned) = (0, 0, 0, None, None);
        for (field, value) in fields(packet) {
            match (field, value) {
                (8, value) => time = value.number(),
                (10, value) => sequence = value.number(),
                (13, value) => flags = value.number(),
                (11, Value::Bytes(bytes)) => event = Some(bytes),
                (12, Value::Bytes(bytes)) => interned = Some(bytes),
                _ => {}
            }
        }
        if flags & IS_CLEARED != 0 {
            self.clear(sequence);
        }
        if let Some(interned) = interned {
            self.intern(sequence, interned);
        }
        if let Some(event) = event {
            self.event(sequence, time, event, tally);
        }
    }

    fn event(&self, sequence: u64, time: u64, event: &[u8], tally: &mut Tally) {
        let (mut kind, mut track, mut flow) = (0, 0, None);
        let (mut name, mut category) = (String::new(), String::new());
        let none = Interned::default();
        let known = self.sequences.get(&sequence).unwrap_or(&none);
        let interned = |table: &HashMap<u64, String>, id: u64| table.get(&id).cloned().unwrap_or_default();
        for (field, value) in fields(event) {
            match (field, value) {
                (9, value) => kind = value.number(),
                (11, value) => track = value.number(),
                (10, value) => name = interned(&known.names, value.number()),
                (3, Value::Number(id)) => category = interned(&known.categories, id),
                // Packed.
                (3, Value::Bytes(ids)) => {
                    category = varint(ids).map_or_else(String::new, |(id, _)| interned(&known.categories, id));
                }
                (22, Value::Bytes(bytes)) => category = String::from_utf8_lossy(bytes).into_owned(),
                (23, Value::Bytes(bytes)) => name = String::from_utf8_lossy(bytes).into_owned(),
                (36 | 42 | 47 | 48, Value::Number(id)) => flow = Some(id),
                (47 | 48, Value::Bytes(ids)) => {
                    flow = ids.first_chunk().map(|id| u64::from_le_bytes(*id));
                }
                _ => {}
            }
        }
        if kind != BEGIN {
            return;
        }
        if is_kernel(&category, &name) {
            let name = tally.name(&name);
            // The ids of flows are those of the whole trace.
            tally.kernel(name, [time as i64; 2], Some(0), flow);
        } else if category.contains("hip") && !MIXED.contains(&category.as_str()) {
            tally.call(&name, (0, track), time as i64, flow);
        } else if category.contains("hsa") && flow.is_some() {
            tally.has_arrows_of_hsa();
        }
    }
}

/// A varint of the input; `None` at its end.
fn read_varint(input: &mut impl Read) -> io::Result<Option<u64>> {
    let (mut value, mut byte) = (0u64, [0]);
    for at in 0..10 {
        if input.read(&mut byte)? == 0 {
            return if at == 0 {
                Ok(None)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
        value |= u64::from(byte[0] & 0x7f).checked_shl(7 * at).unwrap_or(0);
        if byte[0] & 0x80 == 0 {
            return Ok(Some(value));
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Reads a trace; whether it ends early.
pub(crate) fn read(mut input: impl BufRead, tally: &mut Tally) -> Result<bool, Error> {
    let mut known = Known::default();
    let mut packet = Vec::new();
    let mut next = || -> Result<bool, Error> {
        let Some(tag) = read_varint(&mut input)? else {
            return Ok(false);
        };
        let length = read_varint(&mut input)?.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?;
        if tag != PACKET || length > MAX_PACKET {
            return Err(Error::Unknown);
        }
        packet.clear();
        if (&mut input).take(length).read_to_end(&mut packet)? as u64 != length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        known.packet(&packet, tally);
        Ok(true)
    };
    loop {
        match next() {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(out: &mut Vec<u8>, field: u8, value: &[u8]) {
        // Fields above 15 have two bytes of tag.
        match field {
            0..16 => out.push(field << 3 | 2),
            _ => out.extend([field << 3 & 0x7f | 0x82, field >> 4]),
        }
        out.push(value.len() as u8);
        out.extend(value);
    }

    /// A packet with the begin of a slice.
    fn slice(category: &str, name: &str, flow: u64) -> Vec<u8> {
        let mut event = vec![9 << 3, 1];
        put(&mut event, 22, category.as_bytes());
        put(&mut event, 23, name.as_bytes());
        put(&mut event, 47, &flow.to_le_bytes());
        let mut packet = vec![8 << 3, 7];
        put(&mut packet, 11, &event);
        let mut out = vec![PACKET as u8, packet.len() as u8];
        out.extend(packet);
        out
    }

    #[test]
    fn kernels_of_rocprof_sys_are_found_by_queue_and_by_stream() {
        for (of_call, of_gpu, copy) in [
            ("rocm_hip_api", "rocm_kernel_dispatch", "MEMORY_COPY_HOST_TO_DEVICE"),
            ("rocm_hip_api", "rocm_hip_stream", "MEMORY_COPY_HOST_TO_DEVICE"),
            ("rocm_hip", "device_hip", "CopyHostToDevice"),
        ] {
            let of_copy = of_gpu.replace("kernel_dispatch", "memory_copy");
            let trace = [
                slice(of_call, "hipLaunchKernel", 1),
                slice(of_gpu, "MarkerKernel", 1),
                slice(of_call, "hipLaunchKernel", 2),
                slice(of_call, "hipMemcpyAsync", 3),
                slice(&of_copy, copy, 3),
            ];
            let mut tally = Tally::default();
            assert!(!read(&trace.concat()[..], &mut tally).unwrap());
            assert_eq!(
                tally.by_name().into_iter().collect::<Vec<_>>(),
                [("MarkerKernel", 1)],
                "{of_gpu}"
            );
            assert_eq!(tally.launch_calls, 2);
            assert_eq!(tally.launches_without_kernel().unwrap().0, 1, "{of_gpu}");
        }
    }
}
