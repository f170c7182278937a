//! What roctop itself takes of the machine, and how much less often it draws when that is too much. Pure.

use std::time::Duration;

use super::Own;

/// Frames are never drawn less often than this many times less.
const MAX_DIVISOR: u32 = 8;
/// Measurements above the limit that slow the screen down one step, or below half of it that speed it up.
const MEASUREMENTS_PER_STEP: u32 = 2;

/// Watches roctop's own share of a core.
#[derive(Clone, Debug)]
pub struct Throttle {
    /// Per cent of a core.
    limit: f64,
    slowed: u32,
    above: u32,
    below: u32,
    last: Option<(Duration, Duration)>,
}

impl Throttle {
    /// The share in per cent above which the screen slows down.
    pub fn new(limit: f64) -> Self {
        Self {
            limit,
            slowed: 1,
            above: 0,
            below: 0,
            last: None,
        }
    }

    /// Takes a measurement: processor time of the whole process, and the time on the clock. Nothing is known from the first.
    pub fn measure(&mut self, processor: Duration, clock: Duration) -> Option<Own> {
        let (old, then) = self.last.replace((processor, clock))?;
        let passed = clock.saturating_sub(then).as_secs_f64();
        if passed <= 0.0 {
            return None;
        }
        let share = processor.saturating_sub(old).as_secs_f64() / passed * 100.0;
        (self.above, self.below) = if share > self.limit {
            (self.above + 1, 0)
        } else if share * 2.0 < self.limit {
            (0, self.below + 1)
        } else {
            (0, 0)
        };
        if self.above >= MEASUREMENTS_PER_STEP {
            (self.above, self.slowed) = (0, (self.slowed * 2).min(MAX_DIVISOR));
        } else if self.below >= MEASUREMENTS_PER_STEP {
            (self.below, self.slowed) = (0, (self.slowed / 2).max(1));
        }
        Some(Own {
            share,
            slowed: self.slowed,
            wire: 0.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_slows_the_screen_and_little_speeds_it_up() {
        let mut throttle = Throttle::new(50.0);
        let mut second = |share: f64| {
            let (processor, clock) = throttle.last.unwrap_or_default();
            let own = throttle.measure(
                processor + Duration::from_secs_f64(share / 100.0),
                clock + Duration::from_secs(1),
            );
            own.map_or(0, |own| own.slowed)
        };
        assert_eq!(
            [80.0, 80.0, 80.0].map(&mut second),
            [0, 1, 2],
            "one measurement alone says nothing"
        );
        assert_eq!([80.0; 6].map(&mut second), [2, 4, 4, 8, 8, 8]);
        // Between half and whole it stays.
        assert_eq!([40.0; 3].map(&mut second), [8, 8, 8]);
        assert_eq!([10.0; 7].map(&mut second), [8, 4, 4, 2, 2, 1, 1]);
    }
}
