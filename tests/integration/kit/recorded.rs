//! A recorded run, compared with the emulated GPU's log and with the program's own counts.

use super::rig::TOLERANCE;
use super::truth::{Truth, engine_copies, read_truth};
use roctop::export::run::Run;
use roctop::item::{Copy, Dispatch, Item, ProcessId};
use roctop::recording::Recording;
use roctop_ring::record::{engine, flag};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// A recorded run and its truth.
pub(crate) struct Recorded {
    pub(crate) place: PathBuf,
    pub(crate) output: Output,
    pub(crate) run: Run,
    /// The collector's messages.
    pub(crate) said: Vec<String>,
    /// Copies in flight at the end of each process.
    pub(crate) under_way: BTreeMap<ProcessId, u64>,
    /// Dispatches in flight at the end of each process.
    pub(crate) in_flight: BTreeMap<ProcessId, usize>,
    pub(crate) truth: Vec<Truth>,
}

/// When a dispatch began, or nearly so where that is not known.
fn began(dispatch: &Dispatch) -> u64 {
    match dispatch.span.begin {
        0 => dispatch.submit,
        begin => begin,
    }
}

impl Recorded {
    pub(crate) fn load(place: &Path, output: Output) -> Self {
        let (mut run, mut said) = (Run::default(), Vec::new());
        let (mut under_way, mut in_flight) = (BTreeMap::new(), BTreeMap::new());
        let recording = Recording::open(&place.join("rec"));
        let recording = recording.unwrap_or_else(|error| panic!("{error:#}\n{output:?}"));
        recording
            .items(&mut |items| {
                for item in items {
                    if let Item::Status { text, .. } = &item {
                        said.push(text.to_string());
                    }
                    if let Item::Open(open) = &item {
                        under_way.insert(open.process, open.copies);
                        in_flight.insert(open.process, open.dispatches.len());
                    }
                    run.add(item);
                }
            })
            .unwrap();
        Self {
            place: place.to_owned(),
            output,
            run,
            said,
            under_way,
            in_flight,
            truth: read_truth(place),
        }
    }

    /// The recording's summary as JSON.
    pub(crate) fn summary(&self) -> serde_json::Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
        let answer = command
            .args(["summary", "--format", "json"])
            .arg(self.place.join("rec"))
            .output()
            .unwrap();
        serde_json::from_slice(&answer.stdout).unwrap_or_else(|_| panic!("{answer:?}"))
    }

    pub(crate) fn kernel(&self, dispatch: &Dispatch) -> &str {
        &self.run.kernels[dispatch.kernel.0 as usize].mangled
    }

    /// The dispatches of each queue, as logged and as recorded, in order; queues are matched by the first dispatch that
    /// has a time. Without one they are matched by the order of their kernels: on a busy machine the kernel of another queue
    /// may begin sooner after the first submission.
    pub(crate) fn queues(&self) -> Vec<(Vec<&Truth>, Vec<&Dispatch>)> {
        let mut truth: BTreeMap<(u32, u64), Vec<&Truth>> = BTreeMap::new();
        // Nameless kernels are the run-time's own uploads of code, on a separate queue.
        for row in self
            .truth
            .iter()
            .filter(|row| row.kind == "dispatch" && !row.name.is_empty())
        {
            truth.entry((row.pid, row.queue)).or_default().push(row);
        }
        let mut recorded: BTreeMap<(u32, u32), Vec<&Dispatch>> = BTreeMap::new();
        for dispatch in self
            .run
            .dispatches
            .iter()
            .filter(|d| !self.kernel(d).starts_with("(unnamed"))
        {
            let pid = self.run.processes[dispatch.process.0 as usize].pid;
            recorded.entry((pid, dispatch.queue.0)).or_default().push(dispatch);
        }
        for queue in recorded.values_mut() {
            queue.sort_by_key(|dispatch| dispatch.dispatch_id);
        }
        for queue in truth.values_mut() {
            queue.sort_by_key(|row| row.index);
        }
        let mut queues = Vec::new();
        for ((pid, _), dispatches) in recorded {
            let same = |((other, _), rows): &(&(u32, u64), &Vec<&Truth>)| {
                let names = |at: usize| rows.get(at).map(|row| row.name.as_str());
                *other == pid && names(0) == dispatches.first().map(|dispatch| self.kernel(dispatch))
            };
            let timed = dispatches.iter().position(|dispatch| dispatch.span.begin != 0);
            let at = timed.unwrap_or(0);
            let distance = |rows: &[&Truth]| {
                rows.get(at)
                    .map_or(u64::MAX, |row| row.begin.abs_diff(began(dispatches[at])))
            };
            let differing = |rows: &[&Truth]| {
                let pairs = rows.iter().zip(&dispatches);
                let other = pairs.filter(|(row, dispatch)| row.name != self.kernel(dispatch));
                if timed.is_some() { 0 } else { other.count() }
            };
            let nearest = truth
                .iter()
                .filter(same)
                .min_by_key(|(_, rows)| (differing(rows), distance(rows)))
                .map(|(key, _)| *key);
            let key = nearest.unwrap_or_else(|| panic!("no queue of the log began as {:?}", dispatches[0]));
            queues.push((truth.remove(&key).unwrap(), dispatches));
        }
        queues.extend(truth.into_values().map(|rows| (rows, Vec::new())));
        queues
    }

    /// Checks that every logged dispatch of the program is recorded once, with its name, queue, geometry and times.
    pub(crate) fn check_dispatches(&self) -> usize {
        let mut logged = 0;
        for (rows, dispatches) in self.queues() {
            assert_eq!(dispatches.len(), rows.len(), "number of dispatches");
            for (row, dispatch) in rows.iter().zip(&dispatches) {
                self.check_dispatch(row, dispatch);
            }
            logged += rows.len();
        }
        logged
    }

    /// The same where queues of the program share one of the hardware: of all queues together, in order of begin.
    pub(crate) fn check_dispatches_by_begin(&self) -> usize {
        let is_named = |row: &&Truth| row.kind == "dispatch" && !row.name.is_empty();
        let mut rows: Vec<&Truth> = self.truth.iter().filter(is_named).collect();
        let mut dispatches: Vec<&Dispatch> = self.run.dispatches.iter().collect();
        rows.sort_by_key(|row| row.begin);
        dispatches.sort_by_key(|dispatch| dispatch.span.begin);
        assert_eq!(dispatches.len(), rows.len(), "number of dispatches");
        for (row, dispatch) in rows.iter().zip(dispatches) {
            self.check_dispatch(row, dispatch);
        }
        rows.len()
    }

    /// The same for a program with one queue that ended within HSA: unread kernels with the program's own signal stay
    /// in flight for ever, and later ones were found complete.
    pub(crate) fn check_dispatches_of_one_queue_after_a_crash(&self) -> usize {
        self.check_queues_after_a_crash(|rows, dispatches| {
            for dispatch in dispatches {
                // The collector's own packets lie between: the order counts.
                let row = rows.get(dispatch.dispatch_id as usize - 1);
                self.check_dispatch(row.expect("it was logged"), dispatch);
            }
        })
    }

    /// Checks that each queue has no more dispatches than were logged, and that missing ones are in flight; returns the
    /// number logged.
    pub(crate) fn check_queues_after_a_crash(&self, check: impl Fn(&[&Truth], &[&Dispatch])) -> usize {
        let (mut logged, mut missing) = (0, 0);
        for (rows, dispatches) in self.queues() {
            assert!(dispatches.len() <= rows.len(), "more dispatches than were logged");
            check(&rows, &dispatches);
            missing += rows.len() - dispatches.len();
            logged += rows.len();
        }
        let in_flight: usize = self.in_flight.values().sum();
        assert!(
            missing <= in_flight,
            "{missing} dispatches missing, {in_flight} in flight"
        );
        logged
    }

    pub(crate) fn check_dispatch(&self, row: &Truth, dispatch: &Dispatch) {
        self.check_dispatch_within(row, dispatch, TOLERANCE);
    }

    /// The same with a tolerance in ns.
    pub(crate) fn check_dispatch_within(&self, row: &Truth, dispatch: &Dispatch, tolerance: u64) {
        let context = format!("{row:?}\n{dispatch:?}");
        assert_eq!(self.kernel(dispatch), row.name, "{context}");
        assert_eq!(
            (dispatch.grid, dispatch.workgroup),
            (row.grid, row.workgroup),
            "{context}"
        );
        assert_eq!(
            (dispatch.group_size, dispatch.private_size),
            (row.group, row.private),
            "{context}"
        );
        assert!(dispatch.span.begin.abs_diff(row.begin) <= tolerance, "begin: {context}");
        assert!(dispatch.span.end.abs_diff(row.end) <= tolerance, "end: {context}");
    }

    /// Checks that every dispatch logged as complete is recorded with its times, except those of the last moment before
    /// the end: the emulated GPU writes its log before it signals the host. Returns the number of exceptions, and of
    /// all logged dispatches.
    pub(crate) fn missing_at_the_end(&self, moment: Duration) -> (usize, usize) {
        let queues = self.queues();
        let last = queues
            .iter()
            .filter_map(|(rows, _)| rows.last())
            .map(|row| row.end)
            .max()
            .unwrap_or(0);
        let (mut missing, mut all) = (0, 0);
        for (rows, dispatches) in &queues {
            for (row, dispatch) in rows.iter().zip(dispatches) {
                self.check_dispatch(row, dispatch);
            }
            for row in rows.iter().skip(dispatches.len()) {
                assert!(
                    row.end + moment.as_nanos() as u64 > last,
                    "completed long before the end, yet missing: {row:?}"
                );
                missing += 1;
            }
            all += rows.len();
        }
        (missing, all)
    }

    /// Checks that every logged copy of a DMA engine is recorded once, with its bytes and its own times.
    pub(crate) fn check_copies(&self) -> usize {
        let missing = self.copies_not_recorded();
        assert_eq!(missing, 0, "copies of the log that are not recorded");
        engine_copies(&self.truth).len()
    }

    /// Each recorded copy is one or more of the log's that have one signal, their bytes together, within its time; a call of a batch
    /// makes several. Returns the log's that no copy with a time has.
    pub(crate) fn check_batches(&self) -> Vec<Truth> {
        let mut left: Vec<Truth> = self.truth.clone();
        left.retain(|row| row.kind == "sdma_copy");
        let timed = |copy: &&Copy| copy.engine == engine::SDMA && copy.flags & flag::UNTIMED == 0;
        for copy in self.run.copies.iter().filter(timed) {
            let is_within = |row: &Truth| {
                row.begin + TOLERANCE >= copy.span.begin && row.end <= copy.span.end.saturating_add(TOLERANCE)
            };
            let within = || left.iter().filter(|row| is_within(row));
            let signal = within().map(|row| row.signal).find(|signal| {
                let same = within().filter(|row| row.signal == *signal);
                same.map(|row| row.bytes).sum::<u64>() == copy.bytes
            });
            let signal = signal.unwrap_or_else(|| panic!("{copy:?} is not in the log: {left:?}"));
            left.retain(|row| row.signal != signal || !is_within(row));
        }
        left
    }

    /// The same after a crash: at most as many copies are missing as roctop reports in flight.
    pub(crate) fn check_copies_after_a_crash(&self) {
        let under_way: u64 = self.under_way.values().sum();
        let missing = self.copies_not_recorded();
        assert!(missing as u64 <= under_way, "{missing} missing, {under_way} under way");
    }

    /// Checks that every recorded copy is in the log, with its bytes and times. Returns the number of logged copies
    /// that are not recorded.
    fn copies_not_recorded(&self) -> usize {
        let mut truth = engine_copies(&self.truth);
        let mut recorded: Vec<&Copy> = self
            .run
            .copies
            .iter()
            .filter(|copy| copy.engine == engine::SDMA)
            .collect();
        truth.sort_by_key(|row| (row.begin, row.end, row.bytes));
        recorded.sort_by_key(|copy| (copy.span.begin, copy.span.end, copy.bytes));
        let mut open: Vec<&Copy> = Vec::new();
        let mut next = recorded.into_iter().peekable();
        let mut missing = 0;
        for row in &truth {
            // Copies that began within the tolerance of each other may be in another order.
            while next.peek().is_some_and(|copy| copy.span.begin <= row.begin + TOLERANCE) {
                open.extend(next.next());
            }
            let near = |a: u64, b: u64| a.abs_diff(b) <= TOLERANCE;
            let same = open.iter().enumerate().filter(|(_, copy)| {
                copy.bytes == row.bytes && near(copy.span.begin, row.begin) && near(copy.span.end, row.end)
            });
            // The nearest one: many copies of zero length may be within the tolerance.
            match same.min_by_key(|(_, copy)| copy.span.begin.abs_diff(row.begin)) {
                Some((found, _)) => _ = open.swap_remove(found),
                None => missing += 1,
            }
        }
        open.extend(next);
        assert!(
            open.is_empty(),
            "recorded, but not as in the log ({missing} of which are missing): {open:?}"
        );
        missing
    }

    /// Checks that the calls counted by the program are recorded, with the same number by name.
    pub(crate) fn check_calls(&self) -> usize {
        let counts = std::fs::read_to_string(self.place.join("counts")).unwrap();
        let mut recorded: BTreeMap<&str, u64> = BTreeMap::new();
        for call in self.run.calls.iter().filter(|call| call.parent == 0) {
            *recorded
                .entry(&self.run.operations[call.operation.0 as usize].name)
                .or_default() += 1;
        }
        let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
        for line in counts.lines() {
            let (name, count) = line.split_once(' ').unwrap();
            *counted.entry(name).or_default() += count.parse::<u64>().unwrap();
        }
        // The program does not count the compiler's calls before and after main.
        recorded.retain(|name, _| name.starts_with("hip") || counted.contains_key(name));
        assert_eq!(recorded, counted);
        counted.values().sum::<u64>() as usize
    }

    /// Checks that calls of a thread are nested or disjoint.
    pub(crate) fn check_nesting(&self) {
        let mut threads: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        for call in &self.run.calls {
            assert!(call.span.begin <= call.span.end, "{call:?}");
            threads
                .entry(call.thread.0)
                .or_default()
                .push((call.span.begin, call.span.end));
        }
        for spans in threads.values_mut() {
            spans.sort_by_key(|&(begin, end)| (begin, std::cmp::Reverse(end)));
            let mut open: Vec<u64> = Vec::new();
            for &(begin, end) in spans.iter() {
                while open.last().is_some_and(|&outer| outer <= begin) {
                    open.pop();
                }
                assert!(
                    open.last().is_none_or(|&outer| end <= outer),
                    "calls of one thread cross"
                );
                open.push(end);
            }
        }
    }

    /// Checks that every dispatch of the program's own kernels leads to a call on its thread, made before the dispatch
    /// began.
    pub(crate) fn check_correlation(&self) {
        let calls: BTreeMap<(u32, u64), _> = self
            .run
            .calls
            .iter()
            .map(|call| ((call.process.0, call.correlation), call))
            .collect();
        for dispatch in &self.run.dispatches {
            let kernel = &self.run.kernels[dispatch.kernel.0 as usize];
            if kernel.internal {
                continue;
            }
            let call = calls.get(&(dispatch.process.0, dispatch.correlation));
            let call = call.unwrap_or_else(|| panic!("no call for {dispatch:?} ({})", kernel.name));
            let name = &self.run.operations[call.operation.0 as usize].name;
            assert!(name.contains("Launch"), "{name} launched {}", kernel.name);
            assert_eq!(Some(call.thread), dispatch.thread, "{name}");
            let is_untimed = dispatch.flags & flag::UNTIMED != 0;
            assert!(
                is_untimed || call.span.begin <= dispatch.span.begin + TOLERANCE,
                "{call:?} {dispatch:?}"
            );
        }
    }

    /// Checks that nothing was lost.
    pub(crate) fn check_lost(&self) {
        let lost: Vec<_> = self.run.lost.iter().filter(|(_, records)| **records > 0).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}
