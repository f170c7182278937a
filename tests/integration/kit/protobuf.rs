//! Protobuf messages read back by a separate decoder.

/// A field of a message.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// Takes the next number.
pub(crate) fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number of more than ten bytes")
}

/// All fields of a message.
pub(crate) fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (word, rest) = bytes.split_first_chunk::<8>().unwrap();
                bytes = rest;
                Field::Number(u64::from_le_bytes(*word))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(inner.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

/// A number, if the field is there.
pub(crate) fn number(fields: &[(u64, Field)], wanted: u64) -> Option<u64> {
    fields.iter().find_map(|(field, value)| match value {
        Field::Number(number) if *field == wanted => Some(*number),
        _ => None,
    })
}

/// A number with a point, cut.
pub(crate) fn double(fields: &[(u64, Field)], wanted: u64) -> Option<u64> {
    number(fields, wanted).map(|bits| f64::from_bits(bits) as u64)
}

/// Bytes of all fields of a number.
pub(crate) fn all(fields: &[(u64, Field)], wanted: u64) -> Vec<Vec<u8>> {
    let found = fields.iter().filter_map(|(field, value)| match value {
        Field::Bytes(bytes) if *field == wanted => Some(bytes.clone()),
        _ => None,
    });
    found.collect()
}

/// A text, if the field is there.
pub(crate) fn text(fields: &[(u64, Field)], wanted: u64) -> Option<String> {
    all(fields, wanted).pop().map(|bytes| String::from_utf8(bytes).unwrap())
}

/// Numbers of a packed field.
pub(crate) fn packed(fields: &[(u64, Field)], wanted: u64) -> Vec<u64> {
    let bytes = all(fields, wanted).concat();
    let mut rest = &bytes[..];
    let mut numbers = Vec::new();
    while !rest.is_empty() {
        numbers.push(varint(&mut rest));
    }
    numbers
}
