//! Compares two sets of kernels: which became slower or faster, beyond noise. The screen and `roctop diff` share this rule.

use crate::Snapshot;
use crate::analysis::change::{Change, MIN_CHANGE, MIN_SAMPLES, SIGNIFICANT_ERRORS, Sample, Scope, compare};
use crate::seconds::KernelSamples;
use crate::stats::Stat;
use roctop_trace::item::{Code, KernelId};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::Arc;

/// Durations by name of the kernel, and one of the kernels of that name: those that differ only in registers or LDS are merged.
pub type Samples = BTreeMap<Arc<str>, (KernelId, Sample)>;

/// A kernel on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// Its name.
    pub name: Arc<str>,
    /// The kernel before and after; `None` on a side that has no launch of it.
    pub kernel: [Option<KernelId>; 2],
    /// Durations before.
    pub before: Sample,
    /// Durations after.
    pub after: Sample,
    /// Change of the mean.
    pub change: Change,
}

impl Changed {
    /// Difference of the total time, ns.
    pub fn gain(&self) -> f64 {
        self.after.total() - self.before.total()
    }

    /// What the change of the mean costs over the launches after, ns.
    pub fn cost(&self) -> Option<f64> {
        let is_known = self.before.count > 0 && self.after.count > 0;
        is_known.then_some((self.after.mean - self.before.mean) * self.after.count as f64)
    }
}

/// Kernels of both sides with their changes, sorted by the difference of their total time.
pub fn changes(before: &Samples, after: &Samples) -> Vec<Changed> {
    let mut names: Vec<&Arc<str>> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let rows = names.into_iter().map(|name| {
        let (old, new) = (before.get(name), after.get(name));
        let sample = |side: Option<&(KernelId, Sample)>| side.map_or_else(Sample::default, |side| side.1);
        Changed {
            name: name.clone(),
            kernel: [old, new].map(|side| side.map(|side| side.0)),
            before: sample(old),
            after: sample(new),
            change: compare(sample(old), sample(new)),
        }
    });
    let mut rows: Vec<Changed> = rows.collect();
    rows.sort_by(|a, b| b.gain().abs().total_cmp(&a.gain().abs()));
    rows
}

/// A number of a kernel's code.
type Number = fn(&Code) -> Option<u32>;

/// The code of a kernel if it is known, and no other kernel that ran has this name.
pub(super) fn code_of(snapshot: &Snapshot, id: KernelId) -> Option<Code> {
    let known = snapshot.names.kernel(id)?;
    let mut same = snapshot.values.kernels.iter().filter(|other| {
        let ran = other.id != id && other.numbers.stat.calls > 0;
        ran && snapshot
            .names
            .kernel(other.id)
            .is_some_and(|name| name.kernel.name == known.kernel.name)
    });
    known.kernel.code.filter(|_| same.next().is_none())
}

/// The same of all kernels that ran.
pub(super) fn codes(snapshot: &Snapshot) -> HashMap<KernelId, Code> {
    let mut by_name: HashMap<&str, Option<(KernelId, Option<Code>)>> = HashMap::new();
    for row in snapshot.values.kernels.iter().filter(|row| row.numbers.stat.calls > 0) {
        if let Some(known) = snapshot.names.kernel(row.id) {
            by_name
                .entry(&known.kernel.name)
                .and_modify(|one| *one = None)
                .or_insert(Some((row.id, known.kernel.code)));
        }
    }
    let only = by_name.into_values().flatten();
    only.filter_map(|(id, code)| Some((id, code?))).collect()
}

/// What the code of a kernel says about a time that changed: see [`code_difference`]. `None` if the code is not known, or
/// several kernels have this name.
pub fn code_change(before: &Snapshot, after: &Snapshot, row: &Changed) -> Option<String> {
    let [old, new] = row.kernel;
    code_difference(&code_of(before, old?)?, &code_of(after, new?)?)
}

/// `code changed: VGPR 483 → 512, scratch 0 → 472 B`, `bytes differ`, or `same code`.
pub(super) fn code_difference(old: &Code, new: &Code) -> Option<String> {
    let fields: [(&str, &str, Number); 8] = [
        ("VGPR", "", |code| code.vgpr),
        ("AGPR", "", |code| code.agpr),
        ("SGPR", "", |code| code.sgpr),
        ("VGPR spills", "", |code| code.vgpr_spills),
        ("SGPR spills", "", |code| code.sgpr_spills),
        ("scratch", " B", |code| code.scratch),
        ("LDS", " B", |code| code.lds),
        ("wave", "", |code| code.wave_size),
    ];
    let differing = fields.iter().filter_map(|(name, unit, of)| {
        let (old, new) = (of(old)?, of(new)?);
        (old != new).then(|| format!("{name} {old} → {new}{unit}"))
    });
    let differing: Vec<String> = differing.collect();
    if !differing.is_empty() {
        return Some(format!("code changed: {}", differing.join(", ")));
    }
    let is_same = old.hash? == new.hash? && old.bytes == new.bytes;
    Some(if is_same { SAME_CODE } else { "bytes differ" }.into())
}

/// What [`code_difference`] says of equal code.
pub(super) const SAME_CODE: &str = "same code";

/// Merges kernels of one name.
fn by_name(snapshot: &Snapshot, kernels: impl Iterator<Item = (KernelId, Sample)>) -> Samples {
    let mut samples = Samples::new();
    for (id, sample) in kernels.filter(|(_, sample)| sample.count > 0) {
        if let Some(known) = snapshot.names.kernel(id) {
            let all = samples
                .entry(known.kernel.name.clone())
                .or_insert((id, Sample::default()));
            all.1 = all.1.joined(sample);
        }
    }
    samples
}

/// All launches of a snapshot.
pub fn whole(snapshot: &Snapshot) -> Samples {
    let rows = snapshot.values.kernels.iter();
    by_name(snapshot, rows.map(|row| (row.id, Sample::of(&row.numbers.stat))))
}

/// The launches that came after an earlier snapshot of the same run.
pub fn since(earlier: &Snapshot, now: &Snapshot) -> Samples {
    let old = &earlier.values.kernels;
    let none = Stat::default();
    let rows = now.values.kernels.iter().map(|row| {
        // Rows are in the order of their ids.
        let before = old.binary_search_by_key(&row.id.0, |row| row.id.0);
        let before = before.map_or(&none, |at| &old[at].numbers.stat);
        (row.id, Sample::of(&row.numbers.stat.since(before)))
    });
    by_name(now, rows)
}

/// The launches of a window.
pub fn within(snapshot: &Snapshot, window: &KernelSamples) -> Samples {
    by_name(snapshot, window.kernels.iter().map(|(id, sample)| (*id, *sample)))
}

/// Writes the table, sorted by change of total time.
pub fn write(before: &Snapshot, after: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let (old, new) = (whole(before), whole(after));
    let rows = changes(&old, &new);
    let total = |all: &Samples| all.values().map(|one| one.1.total()).sum::<f64>();
    let (was, is) = (total(&old) / 1e6, total(&new) / 1e6);
    writeln!(
        out,
        "GPU time of kernels: {was:.3} ms before, {is:.3} ms after ({:+.3} ms)",
        is - was
    )?;
    writeln!(
        out,
        "\n{:>8} {:>9} {:>9} {:>11} {:>11} {:>8} {:>13}  KERNEL",
        "VERDICT", "CALLS A", "CALLS B", "AVG A us", "AVG B us", "CHANGE", "TOTAL ms"
    )?;
    for row in &rows {
        let (a, b, change) = (row.before, row.after, row.change);
        let share = change
            .share
            .map_or_else(|| "-".to_owned(), |share| format!("{:+.1} %", share * 100.0));
        writeln!(
            out,
            "{:>8} {:>9} {:>9} {:>11.3} {:>11.3} {share:>8} {:>+13.3}  {}",
            change.verdict.word(),
            a.count,
            b.count,
            a.mean / 1e3,
            b.mean / 1e3,
            row.gain() / 1e6,
            row.name
        )?;
        if let Some(sentence) = change.sentence(Scope::WithinRuns) {
            let code = code_change(before, after, row).map(|code| format!("; {code}"));
            writeln!(out, "{:>8} {sentence}{}", "", code.unwrap_or_default())?;
        }
    }
    writeln!(
        out,
        "\nwithin these runs; 'roctop ci' compares between runs. noise: the means differ by less than {SIGNIFICANT_ERRORS} standard errors or {} %; too few: fewer than {MIN_SAMPLES} launches",
        MIN_CHANGE * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which one kernel with this code took so long.
    fn run(code: Option<Code>, nanos: u64) -> Arc<Snapshot> {
        use crate::{Fresh, Mode, Options, Store};
        use roctop_trace::item::{Dispatch, Item, Kernel, Span};
        let mut store = Store::new(Options {
            mode: Mode::Replay,
            ..Options::default()
        });
        store.apply(&Item::Kernel(Kernel {
            name: "gemm".into(),
            code,
            ..Kernel::default()
        }));
        for number in 0..100 {
            let begin = 1_000_000 * (number + 1);
            store.apply(&Item::Dispatch(Dispatch {
                span: Span {
                    begin,
                    end: begin + nanos + number % 3,
                },
                ..Dispatch::default()
            }));
        }
        store.snapshot(Fresh::All)
    }

    #[test]
    fn a_change_of_the_code_is_named_beside_the_time() {
        let code = Code {
            vgpr: Some(483),
            vgpr_spills: Some(0),
            scratch: Some(0),
            bytes: Some(4096),
            hash: Some(1),
            ..Code::default()
        };
        let spilled = Code {
            vgpr: Some(512),
            vgpr_spills: Some(87),
            scratch: Some(472),
            hash: Some(2),
            ..code
        };
        let other = Code { hash: Some(3), ..code };
        let written = |before: Option<Code>, after: Option<Code>, nanos: u64| {
            let mut out = Vec::new();
            write(&run(before, 5990), &run(after, nanos), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = written(Some(code), Some(spilled), 13780);
        assert!(
            text.contains("code changed: VGPR 483 → 512, VGPR spills 0 → 87, scratch 0 → 472 B\n"),
            "{text}"
        );
        assert!(written(Some(code), Some(other), 13780).contains("bytes differ\n"));
        assert!(written(Some(code), Some(code), 13780).contains("same code\n"));
        for text in [
            written(Some(code), None, 13780),
            written(None, Some(code), 13780),
            written(Some(code), Some(spilled), 5990),
        ] {
            assert!(!text.contains("code"), "{text}");
        }
    }

    #[test]
    fn codes_are_those_of_each_kernel() {
        let code = Code {
            vgpr: Some(64),
            ..Code::default()
        };
        for code in [Some(code), None] {
            let run = run(code, 1000);
            let id = run.values.kernels[0].id;
            assert_eq!(codes(&run).get(&id).copied(), code);
            assert_eq!(code_of(&run, id), code);
        }
    }

    #[test]
    fn kernels_of_both_sides_and_of_one_have_a_verdict() {
        let side = |kernels: &[(&str, u64, f64)]| -> Samples {
            let samples = kernels.iter().zip(0..).map(|(&(name, count, mean), id)| {
                let deviation = Some(5.0);
                let sample = Sample { count, mean, deviation };
                (name.into(), (KernelId(id), sample))
            });
            samples.collect()
        };
        let before = side(&[
            ("gone", 5, 1.0),
            ("same", 1000, 100.0),
            ("slow", 1000, 100.0),
            ("few", 1, 100.0),
        ]);
        let after = side(&[
            ("same", 1000, 101.0),
            ("slow", 1000, 110.0),
            ("few", 1, 900.0),
            ("new", 5, 1.0),
        ]);
        let found = changes(&before, &after);
        let words: Vec<(&str, &str)> = found
            .iter()
            .map(|row| (&*row.name, row.change.verdict.word()))
            .collect();
        let expected = [
            ("slow", "slower"),
            ("same", "noise"),
            ("few", "too few"),
            ("gone", "gone"),
            ("new", "new"),
        ];
        assert_eq!(words, expected);
        assert_eq!((found[0].gain(), found[0].cost()), (10_000.0, Some(10_000.0)));
        assert_eq!((found[3].kernel, found[3].cost()), ([Some(KernelId(0)), None], None));
    }
}
