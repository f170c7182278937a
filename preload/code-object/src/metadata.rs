//! The metadata note: MessagePack.

use crate::{Kernel, Object};

/// Maximum number of kernels of a code object.
const MAX_KERNELS: usize = 1 << 17;

/// A value; elements of arrays and maps follow it.
enum Value<'a> {
    Number(u64),
    Bool(bool),
    Text(&'a [u8]),
    /// Number of elements.
    Array(u64),
    /// Number of pairs.
    Map(u64),
    /// Any other.
    Other,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A big-endian number.
    fn number(&mut self, bytes: usize) -> Option<u64> {
        let taken = self.take(bytes)?;
        Some(taken.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn text(&mut self, length: u64) -> Option<Value<'a>> {
        self.take(usize::try_from(length).ok()?).map(Value::Text)
    }

    fn value(&mut self) -> Option<Value<'a>> {
        let tag = *self.take(1)?.first()?;
        Some(match tag {
            0..=0x7f => Value::Number(tag.into()),
            0x80..=0x8f => Value::Map(u64::from(tag & 0xf)),
            0x90..=0x9f => Value::Array(u64::from(tag & 0xf)),
            0xa0..=0xbf => self.text(u64::from(tag & 0x1f))?,
            0xc2 | 0xc3 => Value::Bool(tag == 0xc3),
            // Binary data and texts, with a length of 1, 2 or 4 bytes.
            0xc4..=0xc6 => {
                let length = self.number(1 << (tag - 0xc4))?;
                self.text(length)?
            }
            0xd9..=0xdb => {
                let length = self.number(1 << (tag - 0xd9))?;
                self.text(length)?
            }
            0xcc..=0xcf => Value::Number(self.number(1 << (tag - 0xcc))?),
            // A number with a sign: a negative one is nothing that is looked for.
            0xd0..=0xd3 => {
                let bytes = 1 << (tag - 0xd0);
                let value = self.number(bytes)?;
                if value >> (8 * bytes - 1) == 0 {
                    Value::Number(value)
                } else {
                    Value::Other
                }
            }
            0xca => self.number(4).map(|_| Value::Other)?,
            0xcb => self.number(8).map(|_| Value::Other)?,
            0xdc => Value::Array(self.number(2)?),
            0xdd => Value::Array(self.number(4)?),
            0xde => Value::Map(self.number(2)?),
            0xdf => Value::Map(self.number(4)?),
            0xc0 | 0xe0..=0xff => Value::Other,
            // Extensions, which metadata does not have.
            _ => return None,
        })
    }

    /// Skips what follows a value.
    fn skip(&mut self, value: &Value<'_>) -> Option<()> {
        let elements = |value: &Value<'_>| match value {
            Value::Array(count) => *count,
            Value::Map(count) => count.saturating_mul(2),
            _ => 0,
        };
        // Without recursion: nested values add to what is left.
        let mut left = elements(value);
        while left > 0 {
            let next = self.value()?;
            left = (left - 1).saturating_add(elements(&next));
        }
        Some(())
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        match self.value()? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Decodes the note; `None` if it is damaged.
pub(crate) fn parse(note: &[u8]) -> Option<Object> {
    let mut reader = Reader(note);
    let mut object = Object::default();
    let Value::Map(pairs) = reader.value()? else {
        return None;
    };
    for _ in 0..pairs {
        let key = reader.key()?;
        let value = reader.value()?;
        match (key, value) {
            (b"amdhsa.target", Value::Text(text)) => object.target = String::from_utf8_lossy(text).into_owned(),
            (b"amdhsa.kernels", Value::Array(count)) => {
                for _ in 0..count {
                    if object.kernels.len() >= MAX_KERNELS {
                        return None;
                    }
                    object.kernels.push(kernel(&mut reader)?);
                }
            }
            (_, value) => reader.skip(&value)?,
        }
    }
    Some(object)
}

fn kernel(reader: &mut Reader<'_>) -> Option<Kernel> {
    let mut kernel = Kernel::default();
    let Value::Map(pairs) = reader.value()? else {
        return None;
    };
    for _ in 0..pairs {
        let key = reader.key()?;
        let value = reader.value()?;
        let number = match value {
            Value::Number(number) => u32::try_from(number).ok(),
            _ => None,
        };
        // A flag is a number, or true or false.
        let flag = match value {
            Value::Bool(flag) => Some(flag),
            _ => number.map(|number| number != 0),
        };
        match key {
            b".name" | b".symbol" => {
                if let Value::Text(text) = value {
                    let text = String::from_utf8_lossy(text);
                    let text = text.strip_suffix(".kd").unwrap_or(&text);
                    // The symbol is what the program loads.
                    if key == b".symbol" || kernel.name.is_empty() {
                        text.clone_into(&mut kernel.name);
                    }
                }
            }
            b".vgpr_count" => kernel.vgpr = number,
            b".agpr_count" => kernel.agpr = number,
            b".sgpr_count" => kernel.sgpr = number,
            b".vgpr_spill_count" => kernel.vgpr_spills = number,
            b".sgpr_spill_count" => kernel.sgpr_spills = number,
            b".private_segment_fixed_size" => kernel.scratch = number,
            b".group_segment_fixed_size" => kernel.lds = number,
            b".max_flat_workgroup_size" => kernel.max_workgroup = number,
            b".wavefront_size" => kernel.wave_size = number,
            b".uniform_work_group_size" => kernel.is_uniform = flag,
            b".workgroup_processor_mode" => kernel.is_wgp = flag,
            b".uses_dynamic_stack" => kernel.has_dynamic_stack = flag.unwrap_or(false),
            _ => {}
        }
        reader.skip(&value)?;
    }
    Some(kernel)
}
