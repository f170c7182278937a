//! What a trace has, added up in limited memory.

use crate::ids::Ids;
use roctop_trace::kernel_name::demangle;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of kernels that are kept in their order.
const MAX_ORDERED: usize = 2 << 20;
/// Maximum bytes of different names; kernels with further ones are counted under one.
const MAX_NAME_BYTES: usize = 32 << 20;
/// Number of stretches that the time of a trace is divided into, at most.
const MAX_STRETCHES: usize = 4096;
/// Launches without a kernel from which on a stretch of time is a gap.
const MIN_LAUNCHES: u64 = 10;
/// Number of gaps that are listed.
const MAX_GAPS: usize = 8;

/// HIP functions that launch one kernel each.
const LAUNCHES: [&str; 9] = [
    "hipLaunchKernel",
    "hipLaunchKernelExC",
    "hipExtLaunchKernel",
    "hipModuleLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipHccModuleLaunchKernel",
    "hipLaunchCooperativeKernel",
    "hipModuleLaunchCooperativeKernel",
    "hipLaunchByPtr",
];
/// Functions that begin and end a capture: launches of a thread between them become nodes of a graph, and run no kernel.
const BEGINS_CAPTURE: [&str; 2] = ["hipStreamBeginCapture", "hipStreamBeginCaptureToGraph"];
const ENDS_CAPTURE: &str = "hipStreamEndCapture";
/// Maximum number of threads that are numbered.
const MAX_THREADS: usize = 1 << 18;
/// Maximum number of their calls that are kept.
const MAX_CAPTURES: usize = 1 << 18;
/// HIP's launch of a graph.
const GRAPH_LAUNCH: &str = "hipGraphLaunch";

/// A time, and the number of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ordered {
    /// Begin, ns.
    pub(crate) begin: i64,
    pub(crate) name: u32,
}

/// Launches and kernels by time: as many stretches as fit; two become one when there are too many.
#[derive(Clone, Debug)]
struct Activity {
    /// Length of a stretch, ns.
    length: i64,
    /// Launches in each, and whether a kernel ran.
    stretches: BTreeMap<i64, (u64, bool)>,
}

impl Activity {
    /// Makes one stretch of two.
    fn coarsen(&mut self) {
        self.length = self.length.saturating_mul(2);
        let mut merged: BTreeMap<i64, (u64, bool)> = BTreeMap::new();
        for (at, (launches, ran)) in std::mem::take(&mut self.stretches) {
            let stretch = merged.entry(at.div_euclid(2)).or_default();
            stretch.0 += launches;
            stretch.1 |= ran;
        }
        self.stretches = merged;
    }

    fn halve(&mut self) {
        while self.stretches.len() > MAX_STRETCHES {
            self.coarsen();
        }
    }

    fn launch(&mut self, at: i64) {
        self.stretches.entry(at.div_euclid(self.length)).or_default().0 += 1;
        self.halve();
    }

    fn ran(&mut self, begin: i64, end: i64) {
        let edges = |length: i64| [begin, end.max(begin)].map(|at| at.div_euclid(length));
        let [mut first, mut last] = edges(self.length);
        // A kernel is marked as a whole, however long it is.
        while last.abs_diff(first) >= MAX_STRETCHES as u64 {
            self.coarsen();
            [first, last] = edges(self.length);
        }
        for at in first..=last {
            self.stretches.entry(at).or_default().1 = true;
        }
        self.halve();
    }
}

/// A time without kernels while launches went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Begin and end since the first launch, ns.
    pub span: [i64; 2],
    /// Launches in it.
    pub launches: u64,
}

/// A thread of a process.
type Thread = (u64, u64);

/// Times of captures, sorted by their begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captures {
    /// Of each thread.
    threads: HashMap<Thread, Vec<[i64; 2]>>,
    /// Of all threads of a process; none overlap.
    processes: HashMap<u64, Vec<[i64; 2]>>,
}

/// Whether a time is within the last span that begins before it.
fn is_within(spans: Option<&Vec<[i64; 2]>>, time: i64) -> bool {
    spans.is_some_and(|spans| {
        let before = spans.partition_point(|span| span[0] <= time);
        before.checked_sub(1).is_some_and(|at| time < spans[at][1])
    })
}

impl Captures {
    /// From the calls: thread, time, and whether it begins a capture.
    fn of(mut calls: Vec<(Thread, i64, bool)>) -> Self {
        calls.sort_unstable();
        let mut all = Self::default();
        let mut end: Option<(Thread, i64)> = None;
        // From the last on: each begin has the end that follows it in its thread.
        for &(thread, time, is_begin) in calls.iter().rev() {
            if is_begin {
                let end = end.filter(|end| end.0 == thread).map_or(i64::MAX, |end| end.1);
                all.threads.entry(thread).or_default().push([time, end]);
                all.processes.entry(thread.0).or_default().push([time, end]);
            } else {
                end = Some((thread, time));
            }
        }
        all.threads.values_mut().for_each(|spans| spans.reverse());
        for spans in all.processes.values_mut() {
            spans.sort_unstable();
            spans.dedup_by(|next, last| {
                let is_joined = next[0] <= last[1];
                if is_joined {
                    last[1] = last[1].max(next[1]);
                }
                is_joined
            });
        }
        all
    }
}

/// What a trace has.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// Calls that begin or end a capture: thread, time, and whether it begins.
    capture_calls: Vec<(Thread, i64, bool)>,
    /// Captures that an earlier pass has found.
    captures: Captures,
    /// Launches in captures.
    pub(crate) captured: u64,
    /// Launches while another thread of the process captures: they may belong to its capture.
    unsure: Ids,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    name_bytes: usize,
    counts: Vec<u64>,
    /// Kernels by begin, up to a limit.
    pub(crate) ordered: Vec<Ordered>,
    /// Number of kernels.
    pub(crate) kernels: u64,
    launches: Ids,
    graph_launches: Ids,
    with_kernel: Ids,
    /// The processes of kernels are not known.
    is_of_unknown: bool,
    /// Ids of all calls of HIP by thread, and those of kernels: where calls of HSA are recorded too, a kernel has the id of one
    /// within the call of HIP.
    calls: Ids,
    of_threads: Ids,
    /// Threads by their numbers in these sets.
    threads: HashMap<Thread, u64>,
    /// Kernels may have arrows from calls of HSA instead.
    has_arrows_of_hsa: bool,
    /// Calls that copy.
    copies: Ids,
    flow_starts: Ids,
    flow_ends: Ids,
    dispatches: Ids,
    /// Launch calls.
    pub(crate) launch_calls: u64,
    /// Launches of graphs.
    pub(crate) graph_calls: u64,
    activity: Activity,
    first: Option<i64>,
    /// Kernels whose end is before their begin.
    pub(crate) reversed: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            capture_calls: Vec::new(),
            captures: Captures::default(),
            captured: 0,
            unsure: Ids::default(),
            names: Vec::new(),
            numbers: HashMap::new(),
            name_bytes: 0,
            counts: Vec::new(),
            ordered: Vec::new(),
            kernels: 0,
            launches: Ids::default(),
            graph_launches: Ids::default(),
            with_kernel: Ids::default(),
            is_of_unknown: false,
            calls: Ids::default(),
            of_threads: Ids::default(),
            threads: HashMap::new(),
            has_arrows_of_hsa: false,
            copies: Ids::default(),
            flow_starts: Ids::default(),
            flow_ends: Ids::default(),
            dispatches: Ids::default(),
            launch_calls: 0,
            graph_calls: 0,
            activity: Activity {
                length: 1_000_000,
                stretches: BTreeMap::new(),
            },
            first: None,
            reversed: 0,
        }
    }
}

/// The demangled name of a kernel, without the suffix of kernel descriptors.
pub(crate) fn plain(name: &str) -> String {
    let name = name
        .strip_suffix(" [clone .kd]")
        .or(name.strip_suffix(".kd"))
        .unwrap_or(name);
    if name.starts_with("_Z") {
        demangle(name)
    } else {
        name.to_owned()
    }
}

impl Tally {
    /// The number of a kernel's name.
    pub(crate) fn name(&mut self, name: &str) -> u32 {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        let plain = plain(name);
        let shown = if self.name_bytes + plain.len() + name.len() > MAX_NAME_BYTES {
            "(other names)".to_owned()
        } else {
            plain
        };
        let known = self.numbers.get(&shown).copied();
        let number = known.unwrap_or_else(|| {
            self.names.push(shown.clone());
            self.counts.push(0);
            self.names.len() as u32 - 1
        });
        if self.name_bytes + shown.len() + name.len() <= MAX_NAME_BYTES || known.is_none() {
            self.name_bytes += 2 * shown.len() + name.len() + 100;
            self.numbers.insert(shown, number);
            if self.name_bytes <= MAX_NAME_BYTES {
                self.numbers.insert(name.to_owned(), number);
            }
        }
        number
    }

    /// A kernel with these times, ns, and the id of its launch. `process` is `None` if the trace does not say it.
    pub(crate) fn kernel(&mut self, name: u32, [begin, end]: [i64; 2], process: Option<u64>, id: Option<u64>) {
        self.kernels += 1;
        self.reversed += u64::from(end < begin);
        if let Some(count) = self.counts.get_mut(name as usize) {
            *count += 1;
        }
        if self.ordered.len() < MAX_ORDERED {
            self.ordered.push(Ordered { begin, name });
        }
        match (process, id.filter(|id| *id != 0)) {
            (Some(process), Some(id)) => {
                self.with_kernel.add(process, id);
            }
            (None, Some(id)) => {
                self.is_of_unknown = true;
                self.with_kernel.add_again(id);
            }
            (_, None) => {}
        }
        self.activity.ran(begin, end);
        self.first = Some(self.first.map_or(begin, |first| first.min(begin)));
    }

    /// The number of a thread, if there is room for it.
    fn thread(&mut self, thread: Thread) -> Option<u64> {
        let next = self.threads.len() as u64;
        match self.threads.get(&thread) {
            Some(known) => Some(*known),
            None if self.threads.len() < MAX_THREADS => Some(*self.threads.entry(thread).or_insert(next)),
            None => None,
        }
    }

    /// The thread that launched a kernel, and the id of its call.
    pub(crate) fn launched_by(&mut self, thread: Thread, id: Option<u64>) {
        if let Some((number, id)) = self.thread(thread).zip(id) {
            self.of_threads.add(number, id);
        }
    }

    /// The id of any call of HIP.
    pub(crate) fn called(&mut self, thread: Thread, id: Option<u64>) {
        if let Some((number, id)) = self.thread(thread).zip(id) {
            self.calls.add(number, id);
        }
    }

    /// Calls of HSA have arrows to work.
    pub(crate) const fn has_arrows_of_hsa(&mut self) {
        self.has_arrows_of_hsa = true;
    }

    /// The ids of calls with a kernel.
    fn with_kernel(&self) -> Ids {
        let mut all = self.with_kernel.clone();
        let threads: HashMap<u64, u64> = self
            .threads
            .iter()
            .map(|(thread, number)| (*number, thread.0))
            .collect();
        for (number, id) in self.of_threads.all() {
            // Calls within a call have greater ids than that, and smaller ones than the next of the thread.
            let outer = self.calls.last_up_to(number, id).filter(|outer| *outer != id);
            match outer.zip(threads.get(&number)) {
                Some((outer, _)) if self.is_of_unknown => all.add_again(outer),
                Some((outer, process)) => {
                    all.add(*process, outer);
                }
                None => {}
            }
        }
        all
    }

    /// The number of a dispatch of a process, from 1 on.
    pub(crate) fn dispatch(&mut self, process: u64, id: u64) {
        if id > 0 {
            self.dispatches.add(process, id);
        }
    }

    /// For a pass over a trace whose captures are known.
    pub(crate) fn with_captures(captures: Captures) -> Self {
        Self {
            captures,
            ..Self::default()
        }
    }

    /// The captures, if another pass can explain launches without a kernel by them.
    pub(crate) fn captures(&self) -> Option<Captures> {
        let is_of_use = self.launches_without_kernel().is_none_or(|missing| missing.0 > 0);
        if self.capture_calls.is_empty() || !is_of_use {
            return None;
        }
        Some(Captures::of(self.capture_calls.clone()))
    }

    /// A call of a function.
    pub(crate) fn call(&mut self, function: &str, thread: Thread, begin: i64, correlation: Option<u64>) {
        let function = function.strip_suffix("_spt").unwrap_or(function);
        let is_begin = BEGINS_CAPTURE.contains(&function);
        if (is_begin || function == ENDS_CAPTURE) && self.capture_calls.len() < MAX_CAPTURES {
            self.capture_calls.push((thread, begin, is_begin));
        }
        let is_launch = LAUNCHES.contains(&function);
        if is_launch && is_within(self.captures.threads.get(&thread), begin) {
            self.captured += 1;
            return;
        }
        let is_unsure = is_launch && is_within(self.captures.processes.get(&thread.0), begin);
        let ids = if is_unsure {
            self.launch_calls += 1;
            &mut self.unsure
        } else if is_launch {
            self.launch_calls += 1;
            &mut self.launches
        } else if function == GRAPH_LAUNCH {
            self.graph_calls += 1;
            &mut self.graph_launches
        } else {
            if let Some(id) = correlation.filter(|_| function.contains("Memcpy")) {
                self.copies.add(thread.0, id);
            }
            return;
        };
        if let Some(id) = correlation.filter(|id| *id != 0) {
            ids.add(thread.0, id);
        }
        if is_unsure {
            return;
        }
        self.activity.launch(begin);
        self.first = Some(self.first.map_or(begin, |first| first.min(begin)));
    }

    /// The start of an arrow from a call of a process to its work.
    pub(crate) fn arrow_start(&mut self, process: u64, id: u64) {
        self.flow_starts.add(process, id);
    }

    /// The end of an arrow, whose process the trace does not say.
    pub(crate) fn arrow_end(&mut self, id: u64) {
        self.flow_ends.add_again(id);
    }

    /// Kernels by name.
    pub(crate) fn by_name(&self) -> BTreeMap<&str, u64> {
        let rows = self.names.iter().zip(&self.counts).filter(|row| *row.1 > 0);
        rows.map(|(name, count)| (name.as_str(), *count)).collect()
    }

    pub(crate) fn name_of(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("?", String::as_str)
    }

    /// Whether all kernels are kept in their order.
    pub(crate) fn is_ordered(&self) -> bool {
        self.ordered.len() as u64 == self.kernels
    }

    /// Launch calls whose kernel is missing, and the first correlation id; `None` if the trace does not say which kernel
    /// belongs to which call.
    pub(crate) fn launches_without_kernel(&self) -> Option<(u64, Option<u64>)> {
        self.without_kernel(&self.launches)
    }

    /// The same of graphs.
    pub(crate) fn graphs_without_kernel(&self) -> Option<(u64, Option<u64>)> {
        self.without_kernel(&self.graph_launches)
    }

    /// The same of launches that another thread may have captured.
    pub(crate) fn unsure_without_kernel(&self) -> u64 {
        self.without_kernel(&self.unsure).map_or(0, |missing| missing.0)
    }

    fn without_kernel(&self, calls: &Ids) -> Option<(u64, Option<u64>)> {
        let is_known = self.with_kernel.count() > 0 || self.kernels == 0;
        if !is_known || self.with_kernel.is_full || calls.is_full || self.calls.is_full || self.of_threads.is_full {
            return None;
        }
        let with_kernel = self.with_kernel();
        let own = if self.is_of_unknown {
            calls.of_unknown()
        } else {
            calls.clone()
        };
        let found = own.without(&with_kernel);
        // The arrows of all of them begin elsewhere.
        let is_elsewhere = self.has_arrows_of_hsa && self.kernels > 0 && found.0 == own.count();
        (!own.is_full && !with_kernel.is_full && !is_elsewhere).then_some(found)
    }

    /// Arrows that begin at a launch or a copy, and do not end. Those of other calls, as waits, need no end.
    pub(crate) fn open_arrows(&self) -> u64 {
        if self.flow_ends.is_full || self.flow_ends.count() == 0 {
            return 0;
        }
        let mut open = 0;
        for calls in [&self.launches, &self.graph_launches, &self.copies] {
            let mut starts = Ids::default();
            for (process, id) in calls.all().filter(|(process, id)| self.flow_starts.has(*process, *id)) {
                starts.add(process, id);
            }
            open += starts.of_unknown().without(&self.flow_ends).0;
        }
        open
    }

    /// Numbers of dispatches that are missing below the last one of their process.
    pub(crate) fn missing_dispatches(&self) -> u64 {
        if self.dispatches.is_full {
            return 0;
        }
        self.dispatches.missing()
    }

    /// Times without kernels while launches went on, the longest first.
    pub(crate) fn gaps(&self) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        let mut open: Option<Gap> = None;
        let origin = self.first.unwrap_or(0);
        let length = self.activity.length;
        for (at, (launches, ran)) in &self.activity.stretches {
            let edge = |at: i64| at.saturating_mul(length).saturating_sub(origin);
            let (begin, end) = (edge(*at), edge(at.saturating_add(1)));
            match &mut open {
                _ if *ran => gaps.extend(open.take()),
                Some(gap) => (gap.span[1], gap.launches) = (end, gap.launches + launches),
                None => {
                    open = Some(Gap {
                        span: [begin.max(0), end],
                        launches: *launches,
                    });
                }
            }
        }
        gaps.extend(open);
        gaps.retain(|gap| gap.launches >= MIN_LAUNCHES);
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.span[1].saturating_sub(gap.span[0])));
        gaps.truncate(MAX_GAPS);
        gaps
    }
}
