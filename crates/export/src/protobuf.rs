//! Encodes protobuf messages field by field.

/// A protobuf message under construction.
#[derive(Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// The encoded fields.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Removes all fields.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
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

    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.0)
    }
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
}
