//! Numbers that look like noise.

/// Numbers that look like noise and are the same in every run.
pub(super) struct Noise(pub(super) u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// `mean` give or take a few per cent, and now and then much more.
    pub(super) fn around(&mut self, mean: u64) -> u64 {
        let spread = mean / 16 + 1;
        let value = mean - spread / 2 + self.next() % spread;
        if self.next().is_multiple_of(400) {
            value * 3
        } else {
            value
        }
    }
}
