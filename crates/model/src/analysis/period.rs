//! Finds the period of a kernel sequence: the number of kernels between two begins of the same step.
//!
//! Each run of [`CONTEXT`] kernels is a word. Most words of a neural network occur once per layer, those at the ends of
//! its layers once per step. The distance between equal words distinguishes the two for any step length, and an extra
//! kernel disturbs only the words that contain it.

use crate::FastMap;
use roctop_trace::item::Nanos;

/// Kernels in a word.
const CONTEXT: usize = 8;
/// Minimum occurrences of a word with a period.
const MIN_COUNT: u32 = 3;
/// Minimum share of a word's distances that are alike.
const MIN_REGULAR: f64 = 0.75;
/// Minimum share of words that occur once per period, relative to its kernels. A longer loop with a smaller share
/// contains many steps, such as an epoch.
const MIN_OWN: f64 = 0.005;
/// Minimum coverage of a candidate period, relative to the best one.
const MIN_COVER: f64 = 0.5;
/// Number of kernels that are searched first; more if they have no period.
const FIRST_WINDOW: usize = 1 << 16;

/// One kernel of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    pub(crate) what: u32,
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
}

/// A repeating sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// Kernels per repetition.
    pub length: usize,
    /// Word at its begin.
    pub(crate) anchor: u64,
    /// Share of the distances that equal this length exactly.
    pub same: f64,
}

/// Whether a distance is within an eighth of a period: branches differ in a few kernels.
pub(crate) const fn is_like(distance: usize, length: usize) -> bool {
    distance.abs_diff(length) <= length / 8
}

/// The word that begins at each kernel; the last kernels begin none.
pub(crate) fn words(kernels: &[Kernel]) -> Vec<u64> {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    let value = |kernel: &Kernel| (u64::from(kernel.what) + 1).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let leaves = BASE.wrapping_pow(CONTEXT as u32 - 1);
    let Some((first, _)) = kernels.split_at_checked(CONTEXT) else {
        return Vec::new();
    };
    let begin = |hash: u64, kernel| hash.wrapping_mul(BASE).wrapping_add(value(kernel));
    let mut hash = first.iter().fold(0, begin);
    let mut out = vec![hash];
    out.extend(kernels.iter().zip(&kernels[CONTEXT..]).map(|(gone, next)| {
        hash = begin(hash.wrapping_sub(value(gone).wrapping_mul(leaves)), next);
        hash
    }));
    out
}

/// Statistics of a word.
#[derive(Clone, Copy, Debug)]
struct Word {
    hash: u64,
    last: u32,
    count: u32,
    /// Most common distance by majority vote, and the remaining votes.
    distance: u32,
    votes: u32,
    /// Number of distances that are alike, and number that are equal.
    regular: u32,
    exact: u32,
    /// Idle time before its occurrences, ns.
    idle: u64,
}

/// Period of the latest kernels, if they have one.
pub(crate) fn find(kernels: &[Kernel]) -> Option<Period> {
    let mut window = FIRST_WINDOW.min(kernels.len());
    loop {
        let found = find_in(&kernels[kernels.len() - window..]);
        if found.is_some() || window == kernels.len() {
            return found;
        }
        window = window.saturating_mul(4).min(kernels.len());
    }
}

fn find_in(kernels: &[Kernel]) -> Option<Period> {
    let (mut table, places) = count(kernels);
    measure(&mut table, &places, kernels);
    let mut regular: Vec<&Word> = table.iter().filter(|word| is_regular(word)).collect();
    regular.sort_unstable_by_key(|word| (word.distance, word.hash));
    // Words with similar distances belong to one period.
    let alike = regular.chunk_by(|one, next| next.distance - one.distance <= one.distance / 50);
    let cover = |words: &[&Word]| {
        let covered = words
            .iter()
            .map(|word| u64::from(word.regular) * u64::from(word.distance));
        covered.max().unwrap_or(0) as f64 / kernels.len() as f64
    };
    let has_own = |words: &&[&Word]| words.len() as f64 >= f64::from(words[0].distance) * MIN_OWN;
    let candidates: Vec<(&[&Word], f64)> = alike.filter(has_own).map(|words| (words, cover(words))).collect();
    let best = candidates.iter().map(|known| known.1).fold(0.0, f64::max);
    let longest = candidates.iter().rev().find(|known| known.1 >= best * MIN_COVER)?;
    let anchor = anchor(longest.0);
    Some(Period {
        length: anchor.distance as usize,
        anchor: anchor.hash,
        same: f64::from(anchor.exact) / f64::from((anchor.count - 1).max(1)),
    })
}

/// All words with their distances, and the word at each position.
fn count(kernels: &[Kernel]) -> (Vec<Word>, Vec<u32>) {
    let mut known: FastMap<u64, u32> = FastMap::default();
    let mut table: Vec<Word> = Vec::new();
    let mut places = Vec::with_capacity(kernels.len());
    for (at, hash) in (0u32..).zip(words(kernels)) {
        let id = *known.entry(hash).or_insert(table.len() as u32);
        places.push(id);
        let Some(word) = table.get_mut(id as usize) else {
            table.push(Word {
                hash,
                last: at,
                count: 1,
                distance: 0,
                votes: 0,
                regular: 0,
                exact: 0,
                idle: 0,
            });
            continue;
        };
        let distance = at - word.last;
        (word.last, word.count) = (at, word.count + 1);
        if word.votes == 0 {
            (word.distance, word.votes) = (distance, 1);
        } else if distance == word.distance {
            word.votes += 1;
        } else {
            word.votes -= 1;
        }
    }
    (table, places)
}

/// Counts regular distances of each word, and the idle time before it.
fn measure(table: &mut [Word], places: &[u32], kernels: &[Kernel]) {
    for word in table.iter_mut() {
        word.last = u32::MAX;
    }
    let mut busy_until = kernels.first().map_or(0, |first| first.begin);
    for ((at, &id), kernel) in (0u32..).zip(places).zip(kernels) {
        let word = &mut table[id as usize];
        if word.last != u32::MAX {
            let distance = at - word.last;
            word.regular += u32::from(is_like(distance as usize, word.distance as usize));
            word.exact += u32::from(distance == word.distance);
        }
        word.last = at;
        word.idle = word.idle.saturating_add(kernel.begin.saturating_sub(busy_until));
        busy_until = busy_until.max(kernel.end);
    }
}

fn is_regular(word: &Word) -> bool {
    let pairs = word.count.saturating_sub(1);
    word.count >= MIN_COUNT && word.distance > 1 && f64::from(word.regular) >= f64::from(pairs) * MIN_REGULAR
}

/// The word that begins a step: the one before which the GPU idles, if one stands out. Otherwise the choice depends on
/// the words alone, so that steps do not move when kernels arrive.
fn anchor<'a>(words: &[&'a Word]) -> &'a Word {
    let most = words.iter().map(|word| word.regular).max().unwrap_or(0);
    let often = || words.iter().copied().filter(|word| word.regular >= most - most / 10);
    let mean = |word: &Word| word.idle / u64::from(word.count.max(1));
    let mut by_idle: Vec<&Word> = often().collect();
    by_idle.sort_unstable_by_key(|word| std::cmp::Reverse(mean(word)));
    let stands_out = match by_idle[..] {
        [] => false,
        [_] => true,
        [first, second, ..] => mean(first) > 2 * mean(second),
    };
    if stands_out {
        return by_idle[0];
    }
    often().min_by_key(|word| word.hash).unwrap_or(words[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels(whats: &[u32]) -> Vec<Kernel> {
        let kernel = |(at, &what): (u64, &u32)| Kernel {
            what,
            begin: at * 10,
            end: at * 10 + 8,
        };
        (0..).zip(whats).map(kernel).collect()
    }

    fn length(whats: &[u32]) -> Option<usize> {
        find(&kernels(whats)).map(|period| period.length)
    }

    /// A step of a neural network whose even and odd layers differ, as in models with alternating tensors.
    fn token(layers: usize) -> Vec<u32> {
        let mut out = vec![100, 101];
        for layer in 0..layers {
            out.extend((0..14).map(|at| if at == 5 { 50 + (layer % 2) as u32 } else { at }));
        }
        out.extend([102, 103]);
        out
    }

    #[test]
    fn the_shortest_period_is_found_if_there_is_one() {
        let sequence: Vec<u32> = (0..300).map(|i| [1, 2, 2, 3, 1, 4][i % 6]).collect();
        assert_eq!(length(&sequence), Some(6));
        let mut disturbed = sequence;
        disturbed[100] = 9;
        assert_eq!(length(&disturbed), Some(6));
        assert_eq!(length(&[7; 300]), None);
        let mut seed = 5u64;
        let random: Vec<u32> = (0..300)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 60) as u32
            })
            .collect();
        assert_eq!(length(&random), None);
        assert_eq!((length(&[]), length(&[1; 5])), (None, None));
    }

    #[test]
    fn a_step_of_a_deep_model_is_all_its_layers() {
        for layers in [4, 12, 28, 32, 80, 126] {
            let step = token(layers);
            let run: Vec<u32> = step.iter().copied().cycle().take(step.len() * 9 + 57).collect();
            assert_eq!(length(&run), Some(step.len()), "{layers} layers");
        }
        assert_eq!(token(32).len(), 452);
    }

    #[test]
    fn steps_longer_than_any_window_are_found() {
        let mut seed = 9u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 58) as u32
        };
        let long: Vec<u32> = (0..30_000).map(|_| random()).collect();
        let run: Vec<u32> = long.iter().copied().cycle().take(130_000).collect();
        assert_eq!(length(&run), Some(30_000));
        // 100 tokens, then a few kernels more, over and over.
        let mut epoch: Vec<u32> = token(32).into_iter().cycle().take(452 * 100).collect();
        epoch.extend([200, 201, 202]);
        let run: Vec<u32> = epoch.iter().copied().cycle().take(epoch.len() * 5).collect();
        assert_eq!(length(&run), Some(452));
    }

    #[test]
    fn odd_kernels_between_steps_do_not_hide_them() {
        let mut run = Vec::new();
        for step in 0..40 {
            run.extend(token(26));
            // Bookkeeping that comes once in a while.
            if [0, 1, 4, 9, 16, 25, 36].contains(&step) {
                run.insert(run.len() - 40, 300);
            }
        }
        let found = find(&kernels(&run)).expect("a period");
        assert!(found.length == 368 && found.same < 1.0, "{found:?}");
    }

    #[test]
    fn a_step_begins_where_the_gpu_waited() {
        let step = token(8);
        let mut all = Vec::new();
        let mut at = 0;
        for number in 0..60 * step.len() {
            let place = number % step.len();
            at += if place == 0 { 5_000 } else { 20 };
            all.push(Kernel {
                what: step[place],
                begin: at,
                end: at + 100,
            });
            at += 100;
        }
        let found = find(&all).expect("a period");
        let begins: Vec<usize> = words(&all)
            .iter()
            .enumerate()
            .filter(|(_, word)| **word == found.anchor)
            .map(|(at, _)| at)
            .collect();
        assert!(
            begins.iter().all(|at| at % step.len() == 0) && begins.len() >= 59,
            "{begins:?}"
        );
    }
}
