//! Faults of hostile hardware and drivers; each is off unless its variable requests it.
//!
//! The crate's documentation lists the variables. Sources are drivers, run-times and user reports; no fault was
//! observed on real hardware in exactly this form. Not modelled: corrupted memory, page faults.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Jump;
use crate::memory::Memory;
use crate::model::{model, parse_names};
use crate::{clock, guest};

/// The faults of a machine.
#[derive(Default)]
pub(crate) struct Faults {
    /// Completion signals that never change.
    pub(crate) lost: Rule,
    /// Completion signals that change late.
    pub(crate) late: Rule,
    /// When the host sees a completion signal in host memory that the GPU may cache.
    pub(crate) cacheable: Cacheable,
    /// Delay between a signal's value and its times, ns.
    pub(crate) times_late_ns: u64,
    /// Offset of all times in signals, ns.
    pub(crate) times_shift_ns: i64,
    /// Time for which the compute queues of a process wait for another process's work, from its opening of the driver.
    pub(crate) busy: Duration,
    /// Effect of unmapping pages of a user-pointer object on the queues.
    pub(crate) eviction: Eviction,
    /// Whether host memory of the run-time's pools is mapped shared.
    pub(crate) has_shared_pools: bool,
    /// Jumps of the driver's clocks.
    pub(crate) jump: Option<Jump>,
    /// Frequency that the driver declares for the GPU's counter, kHz, if it is not the counter's.
    pub(crate) declared_khz: Option<u32>,
    /// Kernels whose signals get wrong times: kind and interval.
    wrong_kernels: Vec<(String, u64)>,
    /// As `wrong_kernels`, for packets without a kernel.
    wrong_barriers: Vec<(String, u64)>,
}

impl Faults {
    /// Faults by the variables that `text` returns.
    pub(crate) fn of(text: impl Fn(&str) -> Option<String>) -> Self {
        let rule = |name| text(name).map(|list| Rule::named(&list)).unwrap_or_default();
        let names = |name| text(name).map(|list| parse_names(&list)).unwrap_or_default();
        let number = |name| {
            text(name)
                .and_then(|value| value.trim().parse::<i64>().ok())
                .unwrap_or(0)
        };
        let positive = |name| u64::try_from(number(name)).unwrap_or(0);
        Self {
            lost: rule("LOST_SIGNALS"),
            late: rule("LATE_SIGNALS"),
            cacheable: Cacheable::named(&text("CACHEABLE").unwrap_or_default()),
            times_late_ns: positive("TIMES_LATE_NS"),
            times_shift_ns: number("TIMES_SHIFT_NS"),
            busy: Duration::from_millis(positive("BUSY_MS")),
            eviction: Eviction::named(&text("EVICTION").unwrap_or_default()),
            has_shared_pools: text("POOLS").is_some_and(|kind| kind == "shared"),
            jump: text("CLOCK_JUMP").and_then(|text| Jump::named(&text)),
            declared_khz: text("DECLARED_COUNTER").and_then(|hertz| Some((hertz.parse::<u64>().ok()? / 1000) as u32)),
            wrong_kernels: names("WRONG_TIMES"),
            wrong_barriers: names("WRONG_BARRIER_TIMES"),
        }
    }

    /// Kind of wrong times for the kernel of a packet, if any.
    pub(crate) fn wrong_kernel(&self, index: u64) -> Option<Wrong> {
        nth(&self.wrong_kernels, index)
    }

    /// Kind of wrong times for a packet without a kernel, if any.
    pub(crate) fn wrong_barrier(&self, index: u64) -> Option<Wrong> {
        nth(&self.wrong_barriers, index)
    }

    /// Whether some times are those of a signal's previous completion.
    pub(crate) fn has_stale_times(&self) -> bool {
        let mut all = self.wrong_kernels.iter().chain(&self.wrong_barriers);
        all.any(|(name, _)| Wrong::named(name) == Some(Wrong::Stale))
    }

    /// GPU counter at a raw time, as the GPU writes it next to finished work.
    pub(crate) fn stamp(&self, raw: u64) -> u64 {
        clock::ticks(raw.saturating_add_signed(self.times_shift_ns))
    }

    /// Outcome of a completion signal.
    pub(crate) fn fate(&self, memory: &Memory, signal: u64) -> Fate {
        if self.lost.strikes(memory, signal) {
            Fate::Lost
        } else if self.late.strikes(memory, signal) {
            Fate::Late
        } else {
            Fate::Seen
        }
    }
}

fn nth(list: &[(String, u64)], index: u64) -> Option<Wrong> {
    let here = list.iter().find(|(_, every)| *every != 0 && index % every == every - 1);
    here.and_then(|(name, _)| Wrong::named(name))
}

/// Outcome of a completion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// The host sees it at once.
    Seen,
    /// The host sees it 5 ms later.
    Late,
    /// The host never sees it.
    Lost,
}

/// Completion signals that a fault affects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Whose {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// Those that ROCr did not create.
    Foreign,
    /// Those in file pages mapped over a user-pointer object.
    File,
}

/// Selection of completion signals: `foreign`, `file` or `all`, then `every=N` and `after=N`, separated by commas.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    whose: Whose,
    every: u64,
    after: u64,
    /// Number of completed signals of this kind.
    seen: AtomicU64,
}

impl Rule {
    fn named(list: &str) -> Self {
        let mut rule = Self {
            every: 1,
            ..Self::default()
        };
        for word in list.split(',').map(str::trim) {
            match word.split_once('=') {
                Some(("every", number)) => rule.every = number.parse().unwrap_or(1).max(1),
                Some(("after", number)) => rule.after = number.parse().unwrap_or(0),
                _ => {
                    rule.whose = match word {
                        "all" => Whose::All,
                        "foreign" => Whose::Foreign,
                        "file" => Whose::File,
                        _ => rule.whose,
                    }
                }
            }
        }
        rule
    }

    fn strikes(&self, memory: &Memory, signal: u64) -> bool {
        let is_meant = match self.whose {
            Whose::None => false,
            Whose::All => true,
            Whose::Foreign => !is_of_rocr(signal),
            Whose::File => memory.is_file(signal),
        };
        if !is_meant {
            return false;
        }
        // Relaxed: a statistic.
        let before = self.seen.fetch_add(1, Ordering::Relaxed);
        before >= self.after && (before - self.after) % self.every == self.every - 1
    }
}

/// Whether ROCr created a signal. It keeps its signals in objects of 128 bytes with a common mark (`SharedSignal::id`;
/// seen in 5.2.3 and 7.2.4).
fn is_of_rocr(signal: u64) -> bool {
    const OBJECT_BYTES: u64 = 128;
    const MARK: u64 = 80;
    const MAGIC: u64 = 0x71fc_ca6a_3d5d_5276;
    signal.is_multiple_of(OBJECT_BYTES) && guest::read::<u64>(signal + MARK) == MAGIC
}

/// When the host sees a completion signal in host memory that the GPU may cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cacheable {
    /// At once.
    #[default]
    Seen,
    /// 5 ms after the completion.
    Late,
    /// Never.
    Never,
}

impl Cacheable {
    fn named(name: &str) -> Self {
        match name {
            "late" => Self::Late,
            "never" => Self::Never,
            _ => Self::Seen,
        }
    }
}

/// Effect of unmapping pages of a user-pointer object on the queues. All but `Free` write it to the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// Nothing.
    #[default]
    Free,
    /// All queues of the process stop for 1 ms.
    Stop,
    /// As `Stop`; if a queue is busy, all of them stop forever.
    Hang,
    /// As `Stop`; if a queue is busy, the GPU is reset: all queues stop forever, and the driver sets the process's
    /// event.
    Reset,
}

impl Eviction {
    fn named(name: &str) -> Self {
        match name {
            "stop" => Self::Stop,
            "hang" => Self::Hang,
            "reset" => Self::Reset,
            _ => Self::Free,
        }
    }
}

/// How a packet's times are wrong in its signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Begin and end are swapped.
    Swapped,
    /// The end has all bits set.
    Endless,
    /// The end is ten years ahead.
    Ahead,
    /// The begin is the counter's first tick.
    First,
    /// The begin was not written.
    Unwritten,
    /// Both are zero.
    Zero,
    /// Both are those of the signal's previous completion.
    Stale,
    /// Both are 20 ms late.
    Later,
    /// Both are 20 ms early.
    Sooner,
}

impl Wrong {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "swapped" => Self::Swapped,
            "endless" => Self::Endless,
            "ahead" => Self::Ahead,
            "first" => Self::First,
            "unwritten" => Self::Unwritten,
            "zero" => Self::Zero,
            "stale" => Self::Stale,
            "later" => Self::Later,
            "sooner" => Self::Sooner,
            _ => return None,
        })
    }

    /// Resulting begin and end in ticks; `last` are those of the signal's previous completion.
    pub(crate) fn of(self, [begin, end]: [u64; 2], last: Option<[u64; 2]>) -> [u64; 2] {
        let counter = model().counter;
        let shift = counter.ticks_in(20_000_000);
        let ten_years = counter.ticks_in(10 * 365 * 86400 * 1_000_000_000);
        match self {
            Self::Swapped => [end, begin],
            Self::Endless => [begin, u64::MAX],
            Self::Ahead => [begin, end + ten_years],
            Self::First => [1, end],
            Self::Unwritten => [0, end],
            Self::Zero => [0, 0],
            Self::Stale => last.unwrap_or([begin, end]),
            Self::Later => [begin + shift, end + shift],
            Self::Sooner => [begin.saturating_sub(shift), end.saturating_sub(shift)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    fn faults(variables: &'static [(&str, &str)]) -> Faults {
        Faults::of(|name| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn every_so_many_packets_have_wrong_times() {
        let faults = faults(&[
            ("WRONG_TIMES", "swapped=3,endless=4"),
            ("WRONG_BARRIER_TIMES", "zero=2"),
        ]);
        let wrong: Vec<_> = (0..6).map(|index| faults.wrong_kernel(index)).collect();
        let (swapped, endless) = (Some(Wrong::Swapped), Some(Wrong::Endless));
        assert_eq!(wrong, [None, None, swapped, endless, None, swapped]);
        assert_eq!(
            (faults.wrong_barrier(0), faults.wrong_barrier(1)),
            (None, Some(Wrong::Zero))
        );
        assert_eq!(Wrong::Swapped.of([1, 2], None), [2, 1]);
        assert_eq!(Wrong::Ahead.of([1, 2], None)[0], 1);
        assert_eq!(Wrong::Stale.of([3, 4], Some([1, 2])), [1, 2]);
    }

    #[test]
    fn a_rule_affects_each_nth_signal_of_its_kind() {
        let memory = &process::open().memory;
        let faults = faults(&[("LOST_SIGNALS", "all,after=2,every=3")]);
        let lost: Vec<_> = (0..9).map(|_| faults.fate(memory, 64) == Fate::Lost).collect();
        assert_eq!(lost, [false, false, false, false, true, false, false, true, false]);
        assert_eq!(Faults::default().fate(memory, 64), Fate::Seen);
    }

    #[test]
    fn a_signal_of_rocr_carries_its_mark() {
        #[repr(align(128))]
        struct Object([u64; 16]);
        let mut object = Box::new(Object([0; 16]));
        let handle = std::ptr::from_ref(&*object) as u64;
        assert!(!is_of_rocr(handle));
        object.0[10] = 0x71fc_ca6a_3d5d_5276;
        assert!(is_of_rocr(handle) && !is_of_rocr(handle + 64));
    }
}
