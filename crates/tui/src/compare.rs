//! What the view of changes compares: two windows of the run, or the numbers at a baseline with those since.

use super::direction::Direction;
use super::{Tab, Ui};
use roctop_model::Snapshot;
use roctop_model::analysis::Steps;
use roctop_model::analysis::steps::Name;
use roctop_trace::item::{Nanos, Span};
use roctop_trace::units;

const SECOND: u64 = 1_000_000_000;
/// Length of a window until it is changed, ns.
const USUAL_LENGTH: u64 = 10 * SECOND;
/// How long before now the usual first window is, ns.
const USUAL_BACK: u64 = 60 * SECOND;
/// Shortest and longest window, ns.
const LENGTHS: std::ops::RangeInclusive<u64> = 1_000_000..=300 * SECOND;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The numbers at the baseline with those since, or another run with this one.
    Baseline,
    /// A window `back` ns ago with the last `length` ns.
    Ago {
        /// Length of both windows, ns.
        length: u64,
        /// From the end of the first window to now, ns.
        back: u64,
    },
    /// The time before a mark with the time after it.
    Mark {
        /// Which of the marks, from 0.
        number: usize,
        /// Length of both windows, ns.
        length: u64,
    },
    /// Two steps, by their places among all since the start.
    Steps {
        /// The first.
        before: u64,
        /// The second.
        after: u64,
    },
    /// Two windows.
    Windows {
        /// The first.
        before: Span,
        /// The second.
        after: Span,
    },
}

/// What the user chose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compare {
    /// None: the baseline, or if there is none the last seconds with those of a minute ago.
    pub chosen: Option<Comparison>,
    /// Keys change the first window, not the second.
    pub moves_before: bool,
}

/// The last seconds with those of a minute ago, or of a short run its two last parts.
fn usual(snap: &Snapshot) -> Comparison {
    let length = USUAL_LENGTH.min(snap.elapsed() / 2);
    // A window of a short run begins at a whole second before its end, so that both are equally long.
    let earlier = snap.elapsed().saturating_sub(length);
    let earlier = if length < 2 * SECOND {
        earlier
    } else {
        earlier / SECOND * SECOND
    };
    Comparison::Ago {
        length,
        back: USUAL_BACK.min(earlier),
    }
}

fn steps<'a>(ui: &Ui, snap: &'a Snapshot) -> Option<&'a Steps> {
    snap.steps(ui.prefs.stepped).filter(|steps| steps.steps.len() >= 2)
}

/// What is compared now.
pub(crate) fn comparison(ui: &Ui, snap: &Snapshot) -> Comparison {
    let usual = || match ui.baseline {
        Some(_) => Comparison::Baseline,
        None => usual(snap),
    };
    ui.compare
        .chosen
        .filter(|chosen| is_possible(ui, snap, *chosen))
        .unwrap_or_else(usual)
}

pub(crate) fn is_possible(ui: &Ui, snap: &Snapshot, comparison: Comparison) -> bool {
    match comparison {
        Comparison::Baseline => ui.baseline.is_some(),
        Comparison::Mark { number, .. } => number < ui.marks.len(),
        Comparison::Steps { before, after } => {
            steps(ui, snap).is_some_and(|steps| steps.at(before).and(steps.at(after)).is_some())
        }
        Comparison::Ago { .. } | Comparison::Windows { .. } => true,
    }
}

/// Before and after; none if that is the baseline.
pub(crate) fn windows(ui: &Ui, snap: &Snapshot) -> Option<[Span; 2]> {
    let until = |end: Nanos, length| Span {
        begin: end.saturating_sub(length).max(snap.origin.min(end)),
        end,
    };
    match comparison(ui, snap) {
        Comparison::Baseline => None,
        Comparison::Ago { length, back } => {
            // A window that moved with every frame would be counted ten times a second.
            let now = if snap.is_running() && length >= 2 * SECOND {
                snap.now / SECOND * SECOND
            } else {
                snap.now
            };
            Some([until(now.saturating_sub(back), length), until(now, length)])
        }
        Comparison::Mark { number, length } => {
            let at = *ui.marks.get(number)?;
            let end = at.saturating_add(length).min(snap.now.max(at));
            Some([until(at, length), Span { begin: at, end }])
        }
        Comparison::Steps { before, after } => {
            let steps = steps(ui, snap)?;
            Some([steps.at(before)?.span, steps.at(after)?.span])
        }
        Comparison::Windows { before, after } => Some([before, after]),
    }
}

/// What is compared, in words.
pub(crate) fn words(ui: &Ui, snap: &Snapshot) -> String {
    match comparison(ui, snap) {
        Comparison::Baseline => "baseline".into(),
        Comparison::Ago { length, back } => {
            format!("last {} with {} ago", units::duration(length), units::duration(back))
        }
        Comparison::Mark { number, length } => {
            format!("{} before and after mark {}", units::duration(length), number + 1)
        }
        Comparison::Steps { before, after } => {
            let steps = steps(ui, snap);
            let name = |absolute| {
                let step = steps.and_then(|steps| Some(steps.name(steps.at(absolute)?)));
                step.unwrap_or(Name::Absolute(absolute))
            };
            format!("step {} with step {}", name(before), name(after))
        }
        Comparison::Windows { .. } => "two windows".into(),
    }
}

/// Compares something else: the baseline, now with a minute ago, before with after a mark, the last two steps.
pub(super) fn turn(ui: &mut Ui, snap: &Snapshot) {
    let now = comparison(ui, snap);
    let mut last = steps(ui, snap).into_iter().flat_map(|steps| steps.steps.iter().rev());
    let mut last = || last.next().map_or(0, |step| step.absolute);
    let (after, before) = (last(), last());
    let all = [
        Comparison::Baseline,
        usual(snap),
        Comparison::Mark {
            number: ui.marks.len().saturating_sub(1),
            length: USUAL_LENGTH,
        },
        Comparison::Steps { before, after },
    ];
    let kind = std::mem::discriminant(&now);
    let at = all.iter().position(|known| std::mem::discriminant(known) == kind);
    let from = at.map_or(0, |at| at + 1);
    let mut next = (from..from + all.len()).map(|at| all[at % all.len()]);
    ui.compare.chosen = next.find(|known| is_possible(ui, snap, *known));
}

/// Keys change the other window.
pub(super) fn turn_side(ui: &mut Ui, snap: &Snapshot) {
    if comparison(ui, snap) == Comparison::Baseline {
        return ui.say(snap, "a baseline has no window; o compares windows");
    }
    ui.compare.moves_before ^= true;
}

/// The window that keys change.
fn changed(ui: &Ui, windows: [Span; 2]) -> Span {
    if ui.compare.moves_before {
        windows[0]
    } else {
        windows[1]
    }
}

/// Chooses the windows as they are, one of them changed.
fn choose(ui: &mut Ui, snap: &Snapshot, windows: [Span; 2], window: Span) {
    let length = window.duration();
    let end = window
        .end
        .clamp(snap.origin.saturating_add(length).min(snap.now), snap.now);
    let window = Span {
        begin: end.saturating_sub(length),
        end,
    };
    let [before, after] = windows;
    ui.compare.chosen = Some(if ui.compare.moves_before {
        Comparison::Windows { before: window, after }
    } else {
        Comparison::Windows { before, after: window }
    });
}

/// Moves a window by a quarter of its length, or goes to the next mark or step.
pub(super) fn shift(ui: &mut Ui, snap: &Snapshot, way: Direction) {
    let step = |at: usize, count: usize| match way {
        Direction::On => (at + 1).min(count.saturating_sub(1)),
        Direction::Back => at.saturating_sub(1),
    };
    match comparison(ui, snap) {
        Comparison::Baseline => ui.say(snap, "a baseline has no window; o compares windows"),
        Comparison::Mark { number, length } => {
            let number = step(number, ui.marks.len());
            ui.compare.chosen = Some(Comparison::Mark { number, length });
        }
        Comparison::Steps { mut before, mut after } => {
            let known = steps(ui, snap).map_or(&[][..], |steps| &steps.steps);
            let side = if ui.compare.moves_before {
                &mut before
            } else {
                &mut after
            };
            let place = known.iter().position(|step| step.absolute == *side);
            if let Some(next) = place.and_then(|place| known.get(step(place, known.len()))) {
                *side = next.absolute;
            }
            ui.compare.chosen = Some(Comparison::Steps { before, after });
        }
        Comparison::Ago { .. } | Comparison::Windows { .. } => {
            let Some(both) = windows(ui, snap) else { return };
            let window = changed(ui, both);
            let by = (window.duration() / 4).max(1);
            let end = match way {
                Direction::On => window.end.saturating_add(by),
                Direction::Back => window.end.saturating_sub(by),
            };
            let begin = end.saturating_sub(window.duration());
            choose(ui, snap, both, Span { begin, end });
        }
    }
}

/// Makes windows twice as long, or half as long.
pub(super) fn resize(ui: &mut Ui, snap: &Snapshot, is_longer: bool) {
    let other = |length: u64| {
        let length = if is_longer {
            length.saturating_mul(2)
        } else {
            length / 2
        };
        length.clamp(*LENGTHS.start(), *LENGTHS.end())
    };
    match comparison(ui, snap) {
        Comparison::Baseline => ui.say(snap, "a baseline has no window; o compares windows"),
        Comparison::Steps { .. } => ui.say(snap, "a step has the length that it has"),
        Comparison::Ago { length, back } => {
            let length = other(length).min(snap.elapsed().max(1));
            ui.compare.chosen = Some(Comparison::Ago {
                length,
                back: back.max(length).min(snap.elapsed()),
            });
        }
        Comparison::Mark { number, length } => {
            let length = other(length);
            ui.compare.chosen = Some(Comparison::Mark { number, length });
        }
        Comparison::Windows { .. } => {
            let Some(both) = windows(ui, snap) else { return };
            let window = changed(ui, both);
            let begin = window.end.saturating_sub(other(window.duration()));
            choose(ui, snap, both, Span { begin, ..window });
        }
    }
}

/// Two steps by their names.
///
/// Errors: there is no such step, or several.
pub(crate) fn named(ui: &Ui, snap: &Snapshot, [before, after]: [Name; 2]) -> Result<Comparison, String> {
    let steps = steps(ui, snap).ok_or("fewer than two steps are known")?;
    Ok(Comparison::Steps {
        before: steps.named(before, snap.origin)?.absolute,
        after: steps.named(after, snap.origin)?.absolute,
    })
}

/// What the command expects.
pub(super) const EXPECTED: &str = "compare 10s..20s 70s..80s, ago 60s, mark 1, step 3 9, step #3 #9 or baseline";

/// Compares what a line says: windows since the begin, or one of the others.
pub(super) fn command(ui: &mut Ui, snap: &Snapshot, line: &str) -> Result<(), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let length = |word: Option<&&str>| word.map_or(Some(USUAL_LENGTH), |word| units::time(word));
    let number = |word: &str| word.trim_start_matches('#').parse::<usize>().ok()?.checked_sub(1);
    let window = |word: &str| {
        let (from, to) = word.split_once("..")?;
        let at = |word: &str| units::time(word.trim_start_matches('+'));
        let (from, to) = (at(from)?, at(to)?);
        (from < to).then(|| Span {
            begin: snap.origin.saturating_add(from),
            end: snap.origin.saturating_add(to),
        })
    };
    let chosen = match words[..] {
        [] => None,
        ["baseline"] => Some(Comparison::Baseline),
        ["ago", back] | ["ago", back, _] => {
            let both = units::time(back).zip(length(words.get(2)));
            let (back, length) = both.ok_or("compare ago TIME [LENGTH], as 60s 10s")?;
            Some(Comparison::Ago { length, back })
        }
        ["mark", mark] | ["mark", mark, _] => {
            let both = number(mark).zip(length(words.get(2)));
            let (number, length) = both.ok_or("compare mark NUMBER [LENGTH], as 1 10s")?;
            Some(Comparison::Mark { number, length })
        }
        ["step", before, after] => {
            let both = Name::parse(before).zip(Name::parse(after));
            let (before, after) = both.ok_or("compare step NUMBER NUMBER, as 3 9 or #3 #9")?;
            let both = named(ui, snap, [before, after]);
            Some(both.map_err(|why| format!("{why}; I lists them"))?)
        }
        [before, after] => {
            let both = window(before).zip(window(after));
            let (before, after) = both.ok_or(EXPECTED)?;
            Some(Comparison::Windows { before, after })
        }
        _ => return Err(EXPECTED.into()),
    };
    if let Some(chosen) = chosen.filter(|chosen| !is_possible(ui, snap, *chosen)) {
        return Err(match chosen {
            Comparison::Baseline => "no baseline; b takes one".into(),
            Comparison::Mark { .. } => format!(
                "there are {}; m puts one",
                units::counted(ui.marks.len() as u64, "mark", "marks")
            ),
            _ => EXPECTED.into(),
        });
    }
    if chosen.is_some() {
        ui.compare.chosen = chosen;
    }
    ui.show(Tab::Diff);
    Ok(())
}
