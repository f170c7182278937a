//! The last answers of look-ups that every record makes: found by one comparison, without hashing.

/// Answers by key, one at each place. `K` must tell two questions apart.
pub(super) struct Recent<K, V> {
    places: Vec<(K, V)>,
    /// A key that nothing asks for.
    never: (K, V),
}

impl<K: Copy + PartialEq, V: Copy> Recent<K, V> {
    /// With 2^`bits` places; nothing may ask for the key `never`.
    pub(super) fn new(bits: u32, never: K, value: V) -> Self {
        Self {
            places: vec![(never, value); 1 << bits],
            never: (never, value),
        }
    }

    /// Where the answer for a key of this number is kept. Numbers are mostly dense or addresses of one spacing.
    fn place(&self, number: u64) -> usize {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - self.places.len().trailing_zeros())) as usize
    }

    pub(super) fn get(&self, number: u64, key: K) -> Option<V> {
        match self.places[self.place(number)] {
            (known, value) if known == key => Some(value),
            _ => None,
        }
    }

    pub(super) fn keep(&mut self, number: u64, key: K, value: V) -> V {
        let place = self.place(number);
        self.places[place] = (key, value);
        value
    }

    /// The answer for a key of this number may be another from now on.
    pub(super) fn forget(&mut self, number: u64) {
        let place = self.place(number);
        self.places[place] = self.never;
    }
}
