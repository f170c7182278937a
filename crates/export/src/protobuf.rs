//! Encodes protobuf messages field by field.

/// A protobuf message under construction.
#[derive(Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// The encoded fields.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Removes and returns the encoded fields.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    /// Removes all fields.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// An empty message, in the memory of another one.
    pub(crate) fn reuse(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self(buffer)
    }

    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.raw(u64::from(field) << 3);
        self.raw(value);
        self
    }

    pub(crate) fn fixed(&mut self, field: u32, value: u64) -> &mut Self {
        self.raw(u64::from(field) << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        self.raw(u64::from(field) << 3 | 2);
        self.raw(value.len() as u64);
        self.0.extend(value);
        self
    }

    pub(crate) fn text(&mut self, field: u32, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }

    /// A repeated field of numbers, packed.
    pub(crate) fn numbers(&mut self, field: u32, values: impl IntoIterator<Item = u64>) -> &mut Self {
        let mut inner = Self::default();
        values.into_iter().for_each(|value| inner.raw(value));
        self.bytes(field, &inner.0)
    }

    /// A message, encoded in place; `fill` appends its fields.
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.raw(u64::from(field) << 3 | 2);
        let at = self.0.len();
        self.0.push(0);
        fill(self);
        let length = self.0.len() - at - 1;
        if let Some(short) = self.0.get_mut(at).filter(|_| length < 0x80) {
            *short = length as u8;
            return self;
        }
        // The fields move: their length takes more than the byte that was left for it.
        let (size, bytes) = varint(length as u64);
        self.0.resize(at + bytes + length, 0);
        self.0.copy_within(at + 1..=at + length, at + bytes);
        self.0[at..at + bytes].copy_from_slice(&size[..bytes]);
        self
    }
}

/// Maximum size of a number, bytes.
const MAX_VARINT: usize = 10;

/// An encoded number, and its size in bytes.
fn varint(mut value: u64) -> ([u8; MAX_VARINT], usize) {
    let (mut bytes, mut at) = ([0; MAX_VARINT], 0);
    while value >= 0x80 {
        bytes[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    bytes[at] = value as u8;
    (bytes, at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_protobuf_says() {
        let mut message = Message::default();
        message
            .number(1, 150)
            .text(2, "testing")
            .fixed(47, 1)
            .numbers(3, [1, 300]);
        let expected = [
            &[0x08, 0x96, 0x01, 0x12, 0x07][..],
            b"testing",
            &[0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0],
            &[0x1a, 0x03, 1, 0xac, 0x02],
        ];
        assert_eq!(message.as_bytes(), expected.concat());
    }

    #[test]
    fn a_message_in_a_message_has_its_length_before_it() {
        for length in [0, 1, 125, 126, 127, 128, 300, 20_000] {
            let text = "x".repeat(length);
            let (mut inner, mut apart, mut nested) = (Message::default(), Message::default(), Message::default());
            inner.text(1, &text).number(2, 7);
            apart.number(9, 1).bytes(4, inner.as_bytes()).number(9, 2);
            nested.number(9, 1);
            nested.message(4, |inner| {
                inner.text(1, &text).number(2, 7);
            });
            nested.number(9, 2);
            assert_eq!(nested.as_bytes(), apart.as_bytes(), "{length}");
        }
    }
}
