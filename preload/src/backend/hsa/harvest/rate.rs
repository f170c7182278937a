//! The rate of an agent's counter: as the driver declares it, unless the run-time's conversions show another one for a
//! long time.
//!
//! Durations are counted in the agent's ticks, because a conversion moves when the run-time recalibrates. A declaration
//! may be wrong, though: an emulator declared 100 MHz and counted at 1 GHz. So conversions of the current time are
//! compared over at least [`MIN_TICKS`]. Where they contradict the declaration grossly, two more points soon after the
//! first decide, so that the first kernels have the right durations.

use super::super::Hsa;
use super::super::agent::Agent;
use crate::clock;
use crate::process;
use roctop_ring::record::status;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::Mutex;

/// Minimum distance of two points that show a rate, ticks.
const MIN_TICKS: u64 = 1 << 24;
/// Deviation from the declared rate that shows a wrong declaration: more than 1/DEVIATION_PART.
const DEVIATION_PART: u64 = 100;
/// Deviation that shows it at once, ns since the run-time began: no read of two clocks takes as long.
const CERTAIN: u64 = 50_000_000;
/// Ratio of two rates from which the declaration is grossly wrong.
const GROSS: u64 = 2;
/// Minimum time between the first point and one that confirms its rate, ns: reads of two clocks take far less.
const MIN_CONFIRMATION: u64 = 500_000;
/// Number of points that confirm it: an error of one point changes with the distance.
const CONFIRMATIONS: u8 = 2;
/// Number of agents that are distinguished.
const AGENTS: usize = 64;

/// What conversions have shown of an agent.
#[derive(Clone, Copy, Debug)]
struct Rate {
    /// The last point: ticks and ns.
    point: [u64; 2],
    /// The rate up to it, Hz; 0: no point was seen.
    seen: u64,
    /// Number of points nearby that confirmed it.
    confirmations: u8,
    /// The rate in place of the declared one, Hz.
    measured: Option<u64>,
}

const UNSEEN: Rate = Rate {
    point: [0; 2],
    seen: 0,
    confirmations: 0,
    measured: None,
};

/// The rates of all agents. Under the harvester's lock.
static RATES: Mutex<[Rate; AGENTS]> = Mutex::new([UNSEEN; AGENTS]);
/// Their measured rates, Hz; 0: the declared one holds.
static MEASURED: [AtomicU64; AGENTS] = [const { AtomicU64::new(0) }; AGENTS];
/// 1 once a wrong declaration was reported.
static REPORTED: AtomicU64 = AtomicU64::new(0);

/// Ticks of an agent's counter per second; `None` if nothing is known.
pub(super) fn of(agent: &Agent) -> Option<u64> {
    let measured = MEASURED
        .get(agent.index as usize)
        .map(|slot| slot.load(Ordering::Relaxed));
    measured.filter(|hertz| *hertz > 0).or(agent.frequency)
}

/// Follows two points of an agent's clock, ticks and ns: the current time, and a later one by the run-time's calibration.
/// Whether a point a little later decides if the declaration is wrong.
pub(super) fn see(hsa: &Hsa, agent: &Agent, points: [[u64; 2]; 2]) -> bool {
    let at = agent.index as usize;
    let (Some(declared), Some(slot), Ok(mut rates)) = (agent.frequency, MEASURED.get(at), RATES.try_lock()) else {
        return false;
    };
    let Some(rate) = rates.get_mut(at) else { return false };
    rate.follow(declared, points, clock::boottime().saturating_sub(hsa.began));
    slot.store(rate.measured.unwrap_or(0), Ordering::Relaxed);
    if let Some(measured) = rate.measured
        && REPORTED.swap(1, Ordering::Relaxed) == 0
    {
        say(declared, measured);
    }
    rate.is_in_doubt(declared)
}

/// The run-time starts again, or this is a child process.
pub(super) fn forget_all() {
    if let Ok(mut rates) = RATES.try_lock() {
        *rates = [UNSEEN; AGENTS];
    }
    for slot in &MEASURED {
        slot.store(0, Ordering::Relaxed);
    }
    REPORTED.store(0, Ordering::Relaxed);
}

fn say(declared: u64, measured: u64) {
    let Some(process) = process::get() else { return };
    let megahertz = |hertz: u64| hertz as f64 / 1e6;
    let text = format!(
        "the driver declares {:.2} MHz for the GPU's counter, and HSA converts its ticks at {:.2} MHz: times of the GPU \
         follow HSA",
        megahertz(declared),
        megahertz(measured)
    );
    process.say(status::NOTE, measured, &text);
}

impl Rate {
    /// Follows two points; `age` is the run-time's, ns.
    fn follow(&mut self, declared: u64, [here, there]: [[u64; 2]; 2], age: u64) {
        if self.seen == 0 {
            let Some(seen) = rate(here, there) else { return };
            *self = Self {
                point: here,
                seen,
                confirmations: 0,
                measured: is_certain(declared, seen, age).then_some(seen),
            };
            return;
        }
        if here[0].wrapping_sub(self.point[0]).cast_signed() < MIN_TICKS.cast_signed() {
            if self.is_in_doubt(declared) {
                self.confirm(here);
            }
            return;
        }
        let Some(seen) = rate(self.point, here) else { return };
        // One rate that deviates may be a jump of a clock, or a suspended machine.
        if !deviates(declared, seen) {
            self.measured = None;
        } else if !deviates(self.seen, seen) {
            self.measured = Some(seen);
        }
        (self.point, self.seen, self.confirmations) = (here, seen, CONFIRMATIONS);
    }

    /// Whether the only rate seen contradicts the declaration grossly, and nothing has decided yet.
    fn is_in_doubt(&self, declared: u64) -> bool {
        let is_gross = self.seen > declared.saturating_mul(GROSS) || self.seen < declared / GROSS;
        self.measured.is_none() && self.seen > 0 && self.confirmations < CONFIRMATIONS && is_gross
    }

    /// Compares the first rate with the one up to a point nearby.
    fn confirm(&mut self, here: [u64; 2]) {
        if here[1].saturating_sub(self.point[1]) < MIN_CONFIRMATION * (u64::from(self.confirmations) + 1) {
            return;
        }
        if rate(self.point, here).is_some_and(|nearby| nearby.abs_diff(self.seen) < self.seen / 8) {
            self.confirmations += 1;
        }
        if self.confirmations == CONFIRMATIONS {
            self.measured = Some(self.seen);
        }
    }
}

/// Ticks per second between two points, Hz.
fn rate([from, first]: [u64; 2], [to, last]: [u64; 2]) -> Option<u64> {
    let (ticks, span) = (u128::from(to.wrapping_sub(from)), u128::from(last.checked_sub(first)?));
    let rate = (ticks * 1_000_000_000).checked_div(span)?;
    u64::try_from(rate).ok().filter(|rate| *rate > 0)
}

fn deviates(declared: u64, seen: u64) -> bool {
    declared.abs_diff(seen) > declared / DEVIATION_PART
}

/// Whether two rates differ so much that no error of the run-time's calibration explains it, `age` ns after its first one.
fn is_certain(declared: u64, seen: u64, age: u64) -> bool {
    let by_declaration = u128::from(age) * u128::from(seen) / u128::from(declared);
    deviates(declared, seen) && by_declaration.abs_diff(u128::from(age)) > u128::from(CERTAIN)
}

#[cfg(test)]
mod tests {
    use super::{MIN_TICKS, Rate, UNSEEN};

    const DECLARED: u64 = 100_000_000;
    const STEP: u64 = MIN_TICKS;

    /// A rate after points with these distances in ns, each [`STEP`] ticks after the one before; the first is as the run-time's
    /// calibration says, some time after its start.
    fn after(spans: &[u64], age: u64) -> Rate {
        let mut rate = UNSEEN;
        let mut point = [1_000, 5_000];
        for (at, span) in spans.iter().enumerate() {
            let next = [point[0] + STEP, point[1] + span];
            if at == 0 {
                rate.follow(DECLARED, [point, next], age);
            } else {
                rate.follow(DECLARED, [next, [0; 2]], age);
                point = next;
            }
        }
        rate
    }

    const TRUE: u64 = STEP * 10;
    const TENTH: u64 = STEP;
    const MS: u64 = 1_000_000;

    #[test]
    fn a_declaration_that_conversions_contradict_is_wrong() {
        // At once, if the run-time has compared the clocks for long.
        assert_eq!(after(&[TENTH], 100 * MS).measured, Some(1_000_000_000));
        assert_eq!(after(&[TRUE * 10], 100 * MS).measured, Some(10_000_000));
        assert_eq!(after(&[TENTH], MS).measured, None);
        assert_eq!(after(&[TENTH, TENTH], MS).measured, Some(1_000_000_000));
        // By a tenth.
        assert_eq!(after(&[TRUE * 10 / 11], 100 * MS).measured, None);
        let measured = after(&[TRUE * 10 / 11, TRUE * 10 / 11], 100 * MS).measured;
        assert!(
            measured.is_some_and(|hertz| hertz.abs_diff(110_000_000) < 100),
            "{measured:?}"
        );
    }

    #[test]
    fn a_declaration_that_conversions_confirm_is_right() {
        assert_eq!(after(&[TRUE, TRUE, TRUE + TRUE / 200], 100 * MS).measured, None);
        // The first calibration was wrong.
        assert_eq!(after(&[TENTH, TRUE], MS).measured, None);
        assert_eq!(after(&[TENTH, TRUE], 100 * MS).measured, None);
        // The system clock jumped, or the machine was suspended.
        assert_eq!(after(&[TRUE, TRUE + 4 * MS, TRUE - 4 * MS, TRUE], MS).measured, None);
        assert_eq!(after(&[TRUE, 50 * TRUE, TRUE], MS).measured, None);
    }

    /// A rate after a first point by a calibration, and points this many ticks and ns after it.
    fn nearby(calibrated: u64, points: &[[u64; 2]]) -> Rate {
        let mut rate = after(&[calibrated], MS);
        for [ticks, span] in points {
            rate.follow(DECLARED, [[1_000 + ticks, 5_000 + span], [0; 2]], MS);
        }
        rate
    }

    #[test]
    fn points_nearby_confirm_a_gross_contradiction() {
        // 1 GHz.
        assert_eq!(nearby(TENTH, &[[MS, MS]]).measured, None);
        assert_eq!(
            nearby(TENTH, &[[MS, MS], [2 * MS, 2 * MS]]).measured,
            Some(1_000_000_000)
        );
        // The first calibration was wrong: the counter has 100 MHz.
        assert_eq!(
            nearby(TENTH, &[[MS / 10, MS], [MS / 5, 2 * MS], [MS, 10 * MS]]).measured,
            None
        );
        // So was the first point, by 4 ms.
        assert_eq!(
            nearby(TENTH, &[[MS, 6 * MS], [2 * MS, 16 * MS], [3 * MS, 26 * MS]]).measured,
            None
        );
        // Too near.
        assert_eq!(
            nearby(TENTH, &[[MS / 4, MS / 4], [MS / 3, MS / 3], [MS / 2, MS / 2]]).measured,
            None
        );
        // Not gross.
        assert_eq!(
            nearby(TRUE * 10 / 15, &[[MS * 3 / 20, MS], [MS * 3 / 10, 2 * MS]]).measured,
            None
        );
    }

    #[test]
    fn points_nearby_show_nothing() {
        let mut rate = after(&[TRUE], MS);
        for _ in 0..3 {
            rate.follow(DECLARED, [[1_000 + STEP - 1, 6_000], [0; 2]], MS);
        }
        assert_eq!(rate.measured, None);
    }
}
