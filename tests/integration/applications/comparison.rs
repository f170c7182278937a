//! A recording compared with the emulated GPU's log, counted rather than asserted: the figures of a table.

use crate::kit::rig::{Recorded, TOLERANCE, Truth, engine_copies};
use roctop::item::Dispatch;
use roctop_ring::record::{engine, flag};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::process::{Command, Stdio};

/// Work of one kind: in the log, and in the recording.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) logged: usize,
    pub(crate) recorded: usize,
    /// In the log alone.
    pub(crate) missing: usize,
    /// In the recording alone.
    pub(crate) extra: usize,
    /// Recorded without times.
    pub(crate) untimed: usize,
}

impl Counts {
    pub(crate) fn is_equal(self) -> bool {
        self.missing == 0 && self.extra == 0
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            logged,
            recorded,
            missing,
            extra,
            untimed,
        } = self;
        write!(f, "{logged}/{recorded}/{missing}/{extra}")?;
        if *untimed > 0 {
            write!(f, " ({untimed} without times)")?;
        }
        Ok(())
    }
}

/// All that a table says of a recording.
#[derive(Default, Debug)]
pub(crate) struct Comparison {
    pub(crate) kernels: Counts,
    /// The run-time's own kernels: copies and fills.
    pub(crate) blits: Counts,
    pub(crate) copies: Counts,
    /// Largest distance of a begin or end from the log's, ns.
    pub(crate) worst: u64,
    /// Names that kernels have in the recording and that c++filt does not give them, with c++filt's.
    pub(crate) misnamed: Vec<(String, String)>,
    /// How many kernels ran.
    pub(crate) names: usize,
}

/// What a piece of work is, its times aside.
type Key = (u32, String, [u32; 3], [u16; 3], u32, u32);

/// Begin and end.
type Times = (u64, u64);

/// Pairs each of the log with a recorded one, both in order; what has no partner is missing, or extra.
fn pair(logged: &mut [Times], recorded: &mut [Times], untimed: usize, counts: &mut Counts, worst: &mut u64) {
    logged.sort_unstable();
    recorded.sort_unstable();
    counts.logged += logged.len();
    counts.recorded += recorded.len() + untimed;
    counts.untimed += untimed;
    let (mut matched, mut next) = (0, recorded.iter().peekable());
    for &(begin, end) in logged.iter() {
        while next.next_if(|one| one.0 + TOLERANCE < begin).is_some() {}
        let is_near = |one: &&Times| one.0.abs_diff(begin) <= TOLERANCE && one.1.abs_diff(end) <= TOLERANCE;
        if let Some(one) = next.next_if(is_near) {
            *worst = (*worst).max(one.0.abs_diff(begin)).max(one.1.abs_diff(end));
            matched += 1;
        }
    }
    // One without times may be any that has no partner.
    let (alone, recorded_alone) = (logged.len() - matched, recorded.len() - matched);
    let taken = untimed.min(alone);
    counts.missing += alone - taken;
    counts.extra += recorded_alone + untimed - taken;
}

fn is_internal(name: &str) -> bool {
    name.starts_with("__amd_rocclr_")
}

impl Comparison {
    pub(crate) fn of(recorded: &Recorded) -> Self {
        let mut it = Self::default();
        it.compare_dispatches(recorded);
        it.compare_copies(recorded);
        it.compare_names(recorded);
        it
    }

    pub(crate) fn is_right(&self) -> bool {
        [self.kernels, self.blits, self.copies]
            .into_iter()
            .all(Counts::is_equal)
            && self.misnamed.is_empty()
    }

    fn compare_dispatches(&mut self, recorded: &Recorded) {
        let mut work: BTreeMap<Key, (Vec<Times>, Vec<Times>, usize)> = BTreeMap::new();
        // Nameless kernels are the run-time's own uploads of code, on a separate queue.
        let named = |row: &&Truth| row.kind == "dispatch" && !row.name.is_empty();
        for row in recorded.truth.iter().filter(named) {
            let key = (
                row.pid,
                row.name.clone(),
                row.grid,
                row.workgroup,
                row.group,
                row.private,
            );
            work.entry(key).or_default().0.push((row.begin, row.end));
        }
        let named = |one: &&Dispatch| !recorded.kernel(one).starts_with("(unnamed");
        for one in recorded.run.dispatches.iter().filter(named) {
            let pid = recorded.run.processes[one.process.0 as usize].pid;
            let name = recorded.kernel(one).to_owned();
            let key = (pid, name, one.grid, one.workgroup, one.group_size, one.private_size);
            let found = work.entry(key).or_default();
            if one.flags & flag::UNTIMED == 0 {
                found.1.push((one.span.begin, one.span.end));
            } else {
                found.2 += 1;
            }
        }
        for ((_, name, ..), (mut logged, mut found, untimed)) in work {
            let counts = if is_internal(&name) {
                &mut self.blits
            } else {
                &mut self.kernels
            };
            pair(&mut logged, &mut found, untimed, counts, &mut self.worst);
        }
    }

    fn compare_copies(&mut self, recorded: &Recorded) {
        let mut work: BTreeMap<u64, (Vec<Times>, Vec<Times>, usize)> = BTreeMap::new();
        for row in engine_copies(&recorded.truth) {
            work.entry(row.bytes).or_default().0.push((row.begin, row.end));
        }
        for copy in recorded.run.copies.iter().filter(|copy| copy.engine == engine::SDMA) {
            let found = work.entry(copy.bytes).or_default();
            if copy.flags & flag::UNTIMED == 0 {
                found.1.push((copy.span.begin, copy.span.end));
            } else {
                found.2 += 1;
            }
        }
        for (mut logged, mut found, untimed) in work.into_values() {
            pair(&mut logged, &mut found, untimed, &mut self.copies, &mut self.worst);
        }
    }

    fn compare_names(&mut self, recorded: &Recorded) {
        let names: BTreeMap<&str, &str> = recorded
            .run
            .dispatches
            .iter()
            .map(|one| &recorded.run.kernels[one.kernel.0 as usize])
            .map(|kernel| (&*kernel.mangled, &*kernel.name))
            .collect();
        self.names = names.len();
        let wanted = filtered(&names.keys().copied().collect::<Vec<_>>());
        for ((_, name), wanted) in names.into_iter().zip(wanted) {
            if name != wanted {
                self.misnamed.push((name.to_owned(), wanted));
            }
        }
    }
}

/// What c++filt makes of names.
fn filtered(names: &[&str]) -> Vec<String> {
    let mut filter = Command::new("c++filt")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("c++filt (binutils) is there");
    let mut input = filter.stdin.take().unwrap();
    let text = names.join("\n");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = filter.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_is_missing_and_extra_is_counted() {
    let count = |logged: &[u64], recorded: &[u64], untimed| {
        let times = |begins: &[u64]| begins.iter().map(|&begin| (begin, begin + 5)).collect::<Vec<_>>();
        let (mut counts, mut worst) = (Counts::default(), 0);
        pair(
            &mut times(logged),
            &mut times(recorded),
            untimed,
            &mut counts,
            &mut worst,
        );
        (counts.missing, counts.extra, worst)
    };
    assert_eq!(count(&[10_000, 20_000], &[10_003, 20_000], 0), (0, 0, 3));
    assert_eq!(count(&[10_000, 20_000], &[20_000], 0), (1, 0, 0));
    assert_eq!(count(&[10_000], &[10_000, 20_000], 0), (0, 1, 0));
    assert_eq!(count(&[10_000, 20_000], &[10_000, 30_000], 0), (1, 1, 0));
    assert_eq!(count(&[10_000, 20_000], &[10_000], 1), (0, 0, 0));
    assert_eq!(count(&[10_000, 20_000], &[10_000], 2), (0, 1, 0));
}
