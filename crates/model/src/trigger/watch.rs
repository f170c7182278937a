//! Checks conditions on what is decoded.

use super::condition::{Condition, Each, Ending, Limit, Test};
use super::idle::IdleTimes;
use super::repetitions::Repetitions;
use super::window::Window;
use crate::apply::is_error;
use crate::query::Filter;
use crate::report::threshold::{Measure, Order};
use crate::subject::{Context, KernelFacts, Record};
use crate::table::{is_untimed, pattern};
use crate::{FastMap, Names};
use roctop_ring::record::direction;
use roctop_trace::decode::Decoded;
use roctop_trace::gauge::metric::Sample;
use roctop_trace::gauge::{Count, Counter};
use roctop_trace::item::{
    AgentId, AgentKind, ApiCall, Copy, Exit, Item, LossReason, Marker, Nanos, Open, ProcessId, Span, TextId,
};
use roctop_trace::units;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Maximum number of triggers of one poll that are described; others are counted.
const MAX_FIRED: usize = 16;
/// Maximum number of kernels, copy routes and functions of a condition that have statistics; later ones share one.
const MAX_ROWS: usize = 128;
/// Maximum number of range patterns that may be steps.
const MAX_PATTERNS: usize = 64;
/// How often a range has to be closed to be a step.
const MIN_OCCURRENCES: u64 = 3;
/// Length of the window of a limit that is relative to a statistic.
const BASELINE: Nanos = 600_000_000_000;
/// Time between two looks at statistics.
const LOOK_INTERVAL: Nanos = 100_000_000;
/// Maximum length of a text of the program in a reason, characters.
const MAX_TEXT: usize = 120;

/// A condition that became true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// Number of the condition.
    pub condition: usize,
    /// When it became true, CLOCK_BOOTTIME.
    pub at: Nanos,
    /// What was seen, as a sentence.
    pub reason: String,
}

/// Conditions and what they need to know of the past.
#[derive(Debug)]
pub struct Watch {
    states: Vec<State>,
    names: Names,
    counters: BTreeMap<u32, Arc<Counter>>,
    now: Nanos,
    looked: Nanos,
    fired: Vec<Fired>,
    more: u64,
}

/// A condition with its memory.
#[derive(Debug)]
struct State {
    condition: Condition,
    window: Nanos,
    memory: Memory,
    /// Whether a kernel, by id, and a function, by id, passes the filter: unknown, no, yes.
    kernels: Vec<Option<bool>>,
    operations: Vec<Option<bool>>,
}

#[derive(Debug)]
enum Memory {
    None,
    Rows(FastMap<Key, Row>),
    Steps(Steps),
    Lost(Losses),
    Idle(IdleTimes),
    /// Work that was reported as hanging, by process.
    Hanging(BTreeMap<ProcessId, u64>),
    /// Gauges and counters above their limits.
    Above(BTreeSet<(u32, u32)>),
}

/// What statistics are kept of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Kernel(u32),
    Operation(u32),
    Copy(u16),
    /// All that came after the first [`MAX_ROWS`].
    Other,
}

#[derive(Debug)]
struct Row {
    window: Window,
    /// Of a limit that is relative to a statistic.
    baseline: Option<Window>,
    is_true: bool,
}

/// Ranges by nesting level and pattern; without such ranges, repetitions of kernels.
#[derive(Debug)]
struct Steps {
    repetitions: Repetitions,
    /// Of repetitions.
    baseline: Window,
    patterns: Vec<Pattern>,
    /// Pattern of each text.
    of_text: FastMap<u32, Option<usize>>,
}

#[derive(Debug)]
struct Pattern {
    text: String,
    level: u16,
    count: u64,
    total: u64,
    baseline: Window,
}

#[derive(Debug, Default)]
struct Losses {
    known: BTreeMap<(ProcessId, LossReason), u64>,
    recent: VecDeque<(Nanos, u64)>,
    is_true: bool,
}

impl Steps {
    fn new() -> Self {
        Self {
            repetitions: Repetitions::default(),
            baseline: Window::new(BASELINE, true),
            patterns: Vec::new(),
            of_text: FastMap::default(),
        }
    }

    /// Index of a range's pattern; a level comes with the first range of a pattern.
    fn pattern(&mut self, text: TextId, names: &Names, level: u16) -> Option<usize> {
        if let Some(known) = self.of_text.get(&text.0) {
            return *known;
        }
        let written = pattern(names.text(text));
        let known = self.patterns.iter().position(|one| one.text == written);
        let at = known.or_else(|| {
            (self.patterns.len() < MAX_PATTERNS).then(|| {
                self.patterns.push(Pattern {
                    text: written,
                    level,
                    count: 0,
                    total: 0,
                    baseline: Window::new(BASELINE, true),
                });
                self.patterns.len() - 1
            })
        });
        self.of_text.insert(text.0, at);
        at
    }

    /// The pattern that the screen takes for steps: outermost first, then by total time.
    fn chosen(&self) -> Option<usize> {
        let often = self
            .patterns
            .iter()
            .enumerate()
            .filter(|(_, one)| one.count >= MIN_OCCURRENCES);
        often
            .min_by_key(|(_, one)| (one.level, std::cmp::Reverse(one.total)))
            .map(|(at, _)| at)
    }
}

/// A text of the traced program, safe to print.
fn shown(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .take(MAX_TEXT)
        .collect();
    clean
}

/// A number with at most three decimal places.
fn decimal(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Triggers of this poll.
struct Found<'a> {
    fired: &'a mut Vec<Fired>,
    more: &'a mut u64,
    condition: usize,
}

impl Found<'_> {
    /// The text is made only if it is kept.
    fn add(&mut self, at: Nanos, reason: impl FnOnce() -> String) {
        if self.fired.len() < MAX_FIRED {
            let reason = reason();
            self.fired.push(Fired {
                condition: self.condition,
                at,
                reason,
            });
        } else {
            *self.more += 1;
        }
    }
}

impl State {
    fn new(condition: Condition, keep: Nanos) -> Self {
        let window = condition.window.unwrap_or(keep);
        let memory = match &condition.test {
            Test::Error(_) | Test::Exit(_) | Test::Marker(_) => Memory::None,
            Test::Each(Each::Step(_), ..) => Memory::Steps(Steps::new()),
            Test::Each(..) | Test::Statistic(..) => Memory::Rows(FastMap::default()),
            Test::Lost(..) => Memory::Lost(Losses::default()),
            Test::Idle(_, limit) => Memory::Idle(IdleTimes::new(*limit)),
            Test::Hang(..) => Memory::Hanging(BTreeMap::new()),
            Test::Gauge(..) | Test::Counter(..) => Memory::Above(BTreeSet::new()),
        };
        Self {
            condition,
            window,
            memory,
            kernels: Vec::new(),
            operations: Vec::new(),
        }
    }

    /// Whether an item passes, known by its id if the filter asks for names alone.
    fn passes(cache: &mut Vec<Option<bool>>, filter: &Filter, id: u32, test: impl FnOnce() -> bool) -> bool {
        if !filter.names_only() || id > 1 << 20 {
            return test();
        }
        let at = id as usize;
        if cache.len() <= at {
            cache.resize(at + 1, None);
        }
        *cache[at].get_or_insert_with(test)
    }
}

/// Takes a value for a row: compares it by itself, or keeps it for its statistic.
fn value(
    rows: &mut FastMap<Key, Row>,
    key: Key,
    (test, window): (&Test, Nanos),
    now: Nanos,
    (nanos, extra): (Option<u64>, u64),
) -> Option<(f64, Option<f64>)> {
    let key = if rows.len() < MAX_ROWS || rows.contains_key(&key) {
        key
    } else {
        Key::Other
    };
    let relative = match test {
        Test::Each(_, _, limit) | Test::Statistic(_, _, _, limit) => matches!(limit, Limit::Times(..)),
        _ => false,
    };
    let is_each = matches!(test, Test::Each(..));
    // A value alone that has a fixed limit leaves nothing behind.
    if is_each && !relative {
        return nanos.map(|nanos| (nanos as f64, None));
    }
    let row = rows.entry(key).or_insert_with(|| Row {
        window: Window::new(window, !is_each),
        baseline: relative.then(|| Window::new(BASELINE.max(window), true)),
        is_true: false,
    });
    let answer = match (test, nanos, &row.baseline) {
        (Test::Each(_, _, Limit::Times(factor, measure)), Some(nanos), Some(baseline)) => {
            let limit = statistic(*measure, baseline, true).map(|limit| limit * factor);
            limit.map(|limit| (nanos as f64, Some(limit)))
        }
        _ => None,
    };
    if !is_each {
        row.window.add(now, nanos, extra);
    }
    if let Some(baseline) = &mut row.baseline {
        baseline.add(now, nanos, extra);
    }
    answer
}

/// A duration with the limit that is relative to a baseline, if it is.
fn relative(nanos: u64, limit: Limit, baseline: &Window) -> Option<(f64, Option<f64>)> {
    match limit {
        Limit::Fixed(_) => Some((nanos as f64, None)),
        Limit::Times(factor, measure) => {
            let base = statistic(measure, baseline, true)?;
            Some((nanos as f64, Some(base * factor)))
        }
    }
}

/// A statistic of a window; `None` if it has too few values. A baseline needs as many as a median.
fn statistic(measure: Measure, window: &Window, is_baseline: bool) -> Option<f64> {
    if matches!(measure, Measure::Bytes | Measure::Errors) {
        return Some(window.extra() as f64);
    }
    let stat = window.stat();
    if is_baseline && stat.quantiles.p50.is_none() {
        return None;
    }
    measure.of(&stat).map(|value| value as f64)
}

impl Watch {
    /// Checks conditions. `keep` is the length of windows that the conditions do not name.
    pub fn new(conditions: Vec<Condition>, keep: Nanos) -> Self {
        Self {
            states: conditions.into_iter().map(|one| State::new(one, keep)).collect(),
            names: Names::default(),
            counters: BTreeMap::new(),
            now: 0,
            looked: 0,
            fired: Vec::new(),
            more: 0,
        }
    }

    /// The conditions, as typed.
    pub fn condition(&self, number: usize) -> Option<&Condition> {
        self.states.get(number).map(|state| &state.condition)
    }

    /// Whether any condition needs decoded records; otherwise facts, readings and ends are enough.
    pub fn needs_records(&self) -> bool {
        self.states.iter().any(|state| state.condition.needs_records())
    }

    /// What became true since the last call, and how many more did.
    pub fn take_fired(&mut self) -> (Vec<Fired>, u64) {
        (std::mem::take(&mut self.fired), std::mem::take(&mut self.more))
    }

    /// Takes decoder output.
    pub fn take(&mut self, decoded: &Decoded<'_>) {
        for item in decoded.items {
            self.apply(item);
        }
        for at in 0..self.states.len() {
            self.calls(at, decoded.calls);
            self.dispatches(at, decoded);
        }
    }

    fn calls(&mut self, number: usize, calls: &[ApiCall]) {
        let now = self.now;
        let Some((state, names, mut found)) = self.parts(number) else {
            return;
        };
        let State {
            condition,
            window,
            memory,
            operations,
            ..
        } = state;
        let test = &condition.test;
        let (Test::Error(filter) | Test::Each(Each::Work(filter), ..) | Test::Statistic(_, filter, ..)) = test else {
            return;
        };
        for call in calls {
            let is_error = || is_error(call, names);
            if matches!(test, Test::Error(_)) && !is_error() {
                continue;
            }
            let passes = || selects(filter, names, Record::Call(call));
            if !State::passes(operations, filter, call.operation.0, passes) {
                continue;
            }
            let name = || {
                names
                    .operation(call.operation)
                    .map_or("?", |known| &known.operation.name)
            };
            match (test, &mut *memory) {
                (Test::Error(_), _) => found.add(call.span.end, || {
                    let error = names.error_label(call.operation, call.status.unwrap_or(0));
                    format!("{} returned {error}", shown(name()))
                }),
                (Test::Statistic(Measure::Bytes, ..), _) => {}
                (_, Memory::Rows(rows)) => {
                    let given = (Some(call.span.duration()), u64::from(is_error()));
                    let answer = value(rows, Key::Operation(call.operation.0), (test, *window), now, given);
                    found.compare(test, answer, call.span.end, || shown(name()));
                }
                _ => {}
            }
        }
    }

    fn dispatches(&mut self, number: usize, decoded: &Decoded<'_>) {
        let now = self.now;
        let Some((state, names, mut found)) = self.parts(number) else {
            return;
        };
        let State {
            condition,
            window,
            memory,
            kernels,
            ..
        } = state;
        match (&condition.test, memory) {
            (Test::Idle(wanted, _), Memory::Idle(idle)) => {
                for dispatch in decoded.dispatches {
                    let gpu = gpu(names, dispatch.agent).filter(|gpu| wanted.is_none_or(|wanted| wanted == *gpu));
                    if let Some(gpu) = gpu {
                        idle.worked(gpu, dispatch.span);
                    }
                }
            }
            (Test::Each(Each::Step(None), ..), Memory::Steps(steps)) if steps.chosen().is_none() => {
                let own = decoded.dispatches.iter();
                own.filter(|dispatch| !names.is_internal(dispatch.kernel))
                    .for_each(|dispatch| steps.repetitions.add(dispatch));
            }
            (Test::Statistic(Measure::Bytes | Measure::Errors, ..), _) => {}
            (test @ (Test::Each(Each::Work(filter), ..) | Test::Statistic(_, filter, ..)), Memory::Rows(rows)) => {
                for dispatch in decoded.dispatches {
                    let passes = || selects(filter, names, Record::Kernel(dispatch));
                    if !State::passes(kernels, filter, dispatch.kernel.0, passes) {
                        continue;
                    }
                    let nanos = (!is_untimed(dispatch.flags, dispatch.span.end)).then(|| dispatch.span.duration());
                    let answer = value(rows, Key::Kernel(dispatch.kernel.0), (test, *window), now, (nanos, 0));
                    found.compare(test, answer, dispatch.span.end, || {
                        let name = names.kernel(dispatch.kernel).map_or("?", |known| &known.short);
                        format!("{} on {}", shown(name), names.agent_label(dispatch.agent))
                    });
                }
            }
            _ => {}
        }
    }

    /// Drops what is known of a process that has ended.
    pub fn forget(&mut self, process: ProcessId) {
        let pid = self.names.process(process).map(|known| known.pid);
        for state in &mut self.states {
            match (&state.condition.test, &mut state.memory) {
                (_, Memory::Lost(losses)) => losses.known.retain(|(of, _), _| *of != process),
                (Test::Gauge(..), Memory::Above(above)) => above.retain(|(_, of)| *of == 0 || Some(*of) != pid),
                _ => {}
            }
        }
        self.names.forget(process);
    }

    /// Applies an item.
    pub fn apply(&mut self, item: &Item) {
        match item {
            Item::Process(process) => self.names.put_process(process.clone()),
            Item::Agent(agent) => self.names.put_agent(agent.clone()),
            Item::Kernel(kernel) => self.names.put_kernel(kernel.clone(), None),
            Item::Queue(queue) => self.names.put_queue(*queue),
            Item::Stream(stream) => self.names.put_stream(stream.clone()),
            Item::Thread(thread) => self.names.put_thread(thread.clone()),
            Item::Operation(operation) => self.names.put_operation(operation.clone()),
            Item::Text(id, text) => self.names.put_text(*id, text.clone()),
            Item::Device(device) => self.names.put_gpu(device.node, device.number),
            Item::Counter(counter) => _ = self.counters.insert(counter.id, counter.clone()),
            Item::Copy(copy) => self.each_state(|watch, at| watch.copy(at, copy)),
            Item::Mark(marker) => self.each_state(|watch, at| watch.marker(at, marker, true)),
            Item::Range(marker) => self.each_state(|watch, at| watch.marker(at, marker, false)),
            Item::Open(open) => self.each_state(|watch, at| watch.open(at, open)),
            Item::Lost {
                process,
                reason,
                records,
            } => self.each_state(|watch, at| watch.lost(at, (*process, *reason), *records)),
            Item::Gauges(sample) => self.each_state(|watch, at| watch.gauges(at, sample)),
            Item::Count(count) => self.each_state(|watch, at| watch.count(at, count)),
            Item::Ended { process, exit, at } => {
                self.each_state(|watch, number| watch.ended(number, *process, *exit, *at));
            }
            Item::Now(now) => self.tick(*now),
            Item::Api(_)
            | Item::CallAlong(_)
            | Item::RangeAlong(_)
            | Item::Dispatch(_)
            | Item::Transfer(_)
            | Item::EventCall(_)
            | Item::ThreadTime(_)
            | Item::Binding(..)
            | Item::Site(..)
            | Item::Communicator(_)
            | Item::Communication(_)
            | Item::Message(_)
            | Item::Allocation(_)
            | Item::Scratch(_)
            | Item::Status { .. }
            | Item::Level { .. }
            | Item::ClockCost { .. }
            | Item::Switched { .. }
            | Item::CounterInfo(_)
            | Item::CounterValue(_)
            | Item::CounterInstances(_)
            | Item::Sampling(_)
            | Item::PcSample(_)
            | Item::Output(_) => {}
        }
    }

    fn each_state(&mut self, mut act: impl FnMut(&mut Self, usize)) {
        (0..self.states.len()).for_each(|at| act(self, at));
    }

    /// A condition with its memory, the names, and the place for triggers.
    fn parts(&mut self, number: usize) -> Option<(&mut State, &Names, Found<'_>)> {
        let Self {
            states,
            names,
            fired,
            more,
            ..
        } = self;
        let found = Found {
            fired,
            more,
            condition: number,
        };
        Some((states.get_mut(number)?, names, found))
    }

    fn copy(&mut self, number: usize, copy: &Copy) {
        let now = self.now;
        let Some((state, names, mut found)) = self.parts(number) else {
            return;
        };
        let window = state.window;
        match (&state.condition.test, &mut state.memory) {
            (Test::Idle(wanted, _), Memory::Idle(idle)) => {
                let ends = [copy.source, copy.destination].into_iter().flatten();
                for gpu in ends.filter_map(|agent| gpu(names, agent)) {
                    if wanted.is_none_or(|wanted| wanted == gpu) {
                        idle.worked(gpu, copy.span);
                    }
                }
            }
            (Test::Statistic(Measure::Errors, ..), _) => {}
            (test @ (Test::Each(Each::Work(filter), ..) | Test::Statistic(_, filter, ..)), Memory::Rows(rows)) => {
                if !selects(filter, names, Record::Copy(copy)) {
                    return;
                }
                let nanos = (!is_untimed(copy.flags, copy.span.end)).then(|| copy.span.duration());
                let given = (nanos, copy.bytes);
                let answer = value(rows, Key::Copy(copy.direction), (test, window), now, given);
                found.compare(test, answer, copy.span.end, || {
                    let route = names.route_label(copy.source, copy.destination);
                    format!("copy {} {route}", direction::name(copy.direction))
                });
            }
            _ => {}
        }
    }

    fn marker(&mut self, number: usize, marker: &Marker, is_mark: bool) {
        let now = self.now;
        let Some((state, names, mut found)) = self.parts(number) else {
            return;
        };
        let text = || shown(names.text(marker.text));
        let passes = |filter: &Filter| selects(filter, names, Record::Marker(marker, names.text(marker.text)));
        let window = state.window;
        let nanos = marker.span.duration();
        match (&state.condition.test, &mut state.memory) {
            (Test::Marker(filter), _) if passes(filter) => {
                found.add(marker.span.end, || format!("marker \"{}\"", text()));
            }
            (test @ Test::Each(Each::Range(filter), ..), Memory::Rows(rows)) if !is_mark && passes(filter) => {
                let answer = value(rows, Key::Other, (test, window), now, (Some(nanos), 0));
                found.compare(test, answer, marker.span.end, || format!("range \"{}\"", text()));
            }
            (test @ Test::Each(Each::Step(filter), _, limit), Memory::Steps(steps)) if !is_mark => {
                if let Some(filter) = filter
                    && !passes(filter)
                {
                    return;
                }
                let Some(at) = steps.pattern(marker.text, names, marker.level) else {
                    return;
                };
                let is_step = filter.is_some() || steps.chosen() == Some(at);
                let Some(known) = steps.patterns.get_mut(at) else {
                    return;
                };
                let answer = relative(nanos, *limit, &known.baseline);
                known.count += 1;
                known.total = known.total.saturating_add(nanos);
                known.baseline.add(now, Some(nanos), 0);
                if is_step {
                    found.compare(test, answer, marker.span.end, || format!("step \"{}\"", text()));
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, number: usize, open: &Open) {
        let now = self.now;
        let Some((state, names, mut found)) = self.parts(number) else {
            return;
        };
        match (&state.condition.test, &mut state.memory) {
            (Test::Idle(..), Memory::Idle(idle)) => {
                let mut dispatches: BTreeMap<u32, usize> = BTreeMap::new();
                for gpu in open.dispatches.iter().filter_map(|dispatch| gpu(names, dispatch.agent)) {
                    *dispatches.entry(gpu).or_default() += 1;
                }
                idle.in_flight(open.process, &dispatches, open.copies, now);
            }
            (Test::Hang(filter, limit), Memory::Hanging(reported)) => {
                let is_old = |begin: Nanos| begin > 0 && now.saturating_sub(begin) > *limit;
                let dispatches = open.dispatches.iter().filter(|one| is_old(one.submit));
                let dispatches = dispatches.filter(|one| selects(filter, names, Record::Kernel(one)));
                let dispatches = dispatches.map(|one| (one.submit, one.dispatch_id << 1));
                let calls = open.calls.iter().filter(|one| is_old(one.span.begin));
                let calls = calls.filter(|one| selects(filter, names, Record::Call(one)));
                let calls = calls.map(|one| (one.span.begin, one.correlation << 1 | 1));
                let Some((begin, id)) = dispatches.chain(calls).min() else {
                    reported.remove(&open.process);
                    return;
                };
                if reported.insert(open.process, id) != Some(id) {
                    found.add(now, || {
                        let what = describe_open(names, open, id);
                        format!(
                            "{what} has been open for {}",
                            units::duration(now.saturating_sub(begin))
                        )
                    });
                }
            }
            _ => {}
        }
    }

    fn lost(&mut self, number: usize, (process, reason): (ProcessId, LossReason), records: u64) {
        let now = self.now;
        let Some((state, _, mut found)) = self.parts(number) else {
            return;
        };
        let window = state.window;
        let (Test::Lost(order, limit), Memory::Lost(losses)) = (&state.condition.test, &mut state.memory) else {
            return;
        };
        let known = losses.known.insert((process, reason), records).unwrap_or(0);
        if records > known {
            losses.recent.push_back((now, records - known));
        }
        losses.look(now, window, (*order, *limit), &mut found);
    }

    fn gauges(&mut self, number: usize, sample: &Sample) {
        let Some((state, _, mut found)) = self.parts(number) else {
            return;
        };
        let (Test::Gauge(metric, gpu, order, limit), Memory::Above(above)) = (&state.condition.test, &mut state.memory)
        else {
            return;
        };
        let is_wanted = gpu.is_none_or(|gpu| gpu == sample.number);
        let Some(value) = sample.get(*metric).ok().filter(|_| is_wanted) else {
            return;
        };
        let key = (sample.number, sample.pid.unwrap_or(0));
        if !order.holds(value, *limit) {
            above.remove(&key);
        } else if above.insert(key) {
            found.add(sample.at, || {
                let (title, sign) = (metric.title(), metric.unit().sign());
                format!("{title} of GPU{} is {}{sign}", sample.number, decimal(value))
            });
        }
    }

    fn count(&mut self, number: usize, count: &Count) {
        let Some(counter) = self.counters.get(&count.counter).cloned() else {
            return;
        };
        let Some((state, names, mut found)) = self.parts(number) else {
            return;
        };
        let (Test::Counter(name, filter, order, limit), Memory::Above(above)) =
            (&state.condition.test, &mut state.memory)
        else {
            return;
        };
        if *counter.name != **name {
            return;
        }
        let kernel = count.kernel.and_then(|id| names.kernel(id));
        let is_wanted = |id| filter.selects(&KernelFacts(names, id));
        if !filter.is_empty() && !count.kernel.is_some_and(is_wanted) {
            return;
        }
        let key = (count.counter, count.kernel.map_or(u32::MAX, |kernel| kernel.0));
        if !order.holds(count.value, *limit) {
            above.remove(&key);
        } else if above.insert(key) && above.len() <= MAX_ROWS * MAX_ROWS {
            found.add(count.at, || match kernel {
                Some(known) => format!(
                    "{} of {} is {}",
                    counter.name,
                    shown(&known.short),
                    decimal(count.value)
                ),
                None => format!("{} is {}", counter.name, decimal(count.value)),
            });
        }
    }

    fn ended(&mut self, number: usize, process: ProcessId, exit: Exit, at: Nanos) {
        let Some((state, names, mut found)) = self.parts(number) else {
            return;
        };
        match (&state.condition.test, &mut state.memory) {
            (Test::Idle(..), Memory::Idle(idle)) => idle.ended(process),
            (_, Memory::Hanging(reported)) => _ = reported.remove(&process),
            (Test::Exit(ending), _) => {
                let is_wanted = match (ending, exit) {
                    (Ending::Any, _) | (Ending::Error | Ending::Signal(None), Exit::Signal(_)) => true,
                    (Ending::Error, Exit::Code(code)) => code != 0,
                    (Ending::Signal(Some(wanted)), Exit::Signal(signal)) => *wanted == signal,
                    (Ending::Code(wanted), Exit::Code(code)) => *wanted == code,
                    _ => false,
                };
                if is_wanted {
                    let pid = names.process(process).map_or(0, |process| process.pid);
                    found.add(at, || format!("process {pid} ended: {}", units::exit(exit)));
                }
            }
            _ => {}
        }
    }

    /// Looks at what changes with time.
    fn tick(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        let is_look = now >= self.looked.saturating_add(LOOK_INTERVAL);
        if is_look {
            self.looked = now;
        }
        for number in 0..self.states.len() {
            let Some((state, names, mut found)) = self.parts(number) else {
                return;
            };
            let window = state.window;
            match (&state.condition.test, &mut state.memory) {
                (Test::Idle(..), Memory::Idle(idle)) => {
                    let mut times: Vec<(u32, Span)> = Vec::new();
                    idle.poll(now, &mut times);
                    for (gpu, span) in times {
                        found.add(span.end, || {
                            let time = units::duration(span.duration());
                            format!("GPU{gpu} ran neither kernel nor copy for {time}")
                        });
                    }
                }
                (test @ Test::Each(Each::Step(None), _, limit), Memory::Steps(steps)) if steps.chosen().is_none() => {
                    for step in steps.repetitions.steps(now) {
                        let nanos = step.duration();
                        let answer = relative(nanos, *limit, &steps.baseline);
                        steps.baseline.add(now, Some(nanos), 0);
                        found.compare(test, answer, step.end, || "a step of kernels".to_owned());
                    }
                }
                (Test::Lost(order, limit), Memory::Lost(losses)) if is_look => {
                    losses.look(now, window, (*order, *limit), &mut found);
                }
                (Test::Statistic(measure, _, order, limit), Memory::Rows(rows)) if is_look => {
                    for (key, row) in rows.iter_mut() {
                        row.look(now, *key, (*measure, *order, *limit), names, &mut found);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether a record is what a filter asks for: a term that does not apply to it is not true.
fn selects(filter: &Filter, names: &Names, record: Record<'_>) -> bool {
    filter.selects(&record.with(Context::of_names(names)))
}

/// Number of the GPU behind an agent.
fn gpu(names: &Names, agent: AgentId) -> Option<u32> {
    let agent = names.agent(agent)?;
    (agent.kind == AgentKind::Gpu).then_some(agent.number)
}

/// The dispatch or call with this id, see [`Watch::open`].
fn describe_open(names: &Names, open: &Open, id: u64) -> String {
    if id & 1 == 0 {
        let found = open.dispatches.iter().find(|one| one.dispatch_id << 1 == id);
        let kernel = found.and_then(|one| names.kernel(one.kernel));
        let agent = found.map_or_else(String::new, |one| names.agent_label(one.agent));
        format!("{} on {agent}", shown(kernel.map_or("a kernel", |known| &known.short)))
    } else {
        let found = open.calls.iter().find(|one| one.correlation << 1 | 1 == id);
        let name = found.and_then(|one| names.operation(one.operation));
        shown(name.map_or("a call", |known| &known.operation.name))
    }
}

impl Losses {
    fn look(&mut self, now: Nanos, window: Nanos, (order, limit): (Order, f64), found: &mut Found<'_>) {
        while self
            .recent
            .front()
            .is_some_and(|(at, _)| at.saturating_add(window) <= now)
        {
            self.recent.pop_front();
        }
        let lost: u64 = self.recent.iter().map(|(_, records)| records).sum();
        let is_true = order.holds(lost as f64, limit);
        if is_true && !std::mem::replace(&mut self.is_true, is_true) {
            found.add(now, || format!("{} lost", units::counted(lost, "record", "records")));
        }
        self.is_true = is_true;
    }
}

impl Row {
    fn look(
        &mut self,
        now: Nanos,
        key: Key,
        (measure, order, limit): (Measure, Order, Limit),
        names: &Names,
        found: &mut Found<'_>,
    ) {
        self.window.expire(now);
        if !std::mem::take(&mut self.window.is_changed) {
            return;
        }
        let limit = match limit {
            Limit::Fixed(limit) => Some(limit),
            Limit::Times(factor, base) => {
                let baseline = self.baseline.as_ref().and_then(|window| statistic(base, window, true));
                baseline.map(|baseline| baseline * factor)
            }
        };
        let value = statistic(measure, &self.window, false);
        let holds = value.zip(limit).filter(|(value, limit)| order.holds(*value, *limit));
        let was_true = std::mem::replace(&mut self.is_true, holds.is_some());
        if let Some((value, limit)) = holds.filter(|_| !was_true) {
            found.add(now, || {
                let name = match key {
                    Key::Kernel(id) => {
                        let known = names.kernel(roctop_trace::item::KernelId(id));
                        known.map_or("?", |known| &*known.short).to_owned()
                    }
                    Key::Operation(id) => {
                        let known = names.operation(roctop_trace::item::OperationId(id));
                        known.map_or("?", |known| &*known.operation.name).to_owned()
                    }
                    Key::Copy(way) => format!("copies {}", direction::name(way)),
                    Key::Other => "others".to_owned(),
                };
                let written = |value: f64| {
                    if measure.is_time() {
                        units::duration(value as u64)
                    } else {
                        decimal(value)
                    }
                };
                format!("{}: {}, limit {}", shown(&name), written(value), written(limit))
            });
        }
    }
}

impl Found<'_> {
    /// Compares one duration with a fixed limit, or with the one that comes with it.
    fn compare(&mut self, test: &Test, answer: Option<(f64, Option<f64>)>, at: Nanos, name: impl FnOnce() -> String) {
        let (Test::Each(_, order, limit), Some((value, relative))) = (test, answer) else {
            return;
        };
        let limit = match (limit, relative) {
            (Limit::Fixed(limit), _) => *limit,
            (Limit::Times(..), Some(limit)) => limit,
            (Limit::Times(..), None) => return,
        };
        if order.holds(value, limit) {
            self.add(at, || {
                let (took, limit) = (units::duration(value as u64), units::duration(limit as u64));
                format!("{} took {took}, limit {limit}", name())
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_trace::gauge::metric::Metric;
    use roctop_trace::item::{Agent, Dispatch, Kernel, KernelId, Operation, Process, Thread, ThreadId};

    const MS: u64 = 1_000_000;

    fn watch(conditions: &[&str]) -> Watch {
        let parsed = conditions.iter().map(|text| Condition::parse(text).unwrap()).collect();
        let mut watch = Watch::new(parsed, 10_000 * MS);
        let facts = [
            Item::Process(Process {
                pid: 77,
                ..Process::default()
            }),
            Item::Agent(Agent {
                id: AgentId(1),
                ..Agent::default()
            }),
            Item::Kernel(Kernel {
                name: "gemm".into(),
                mangled: "gemm".into(),
                ..Kernel::default()
            }),
            Item::Operation(Operation {
                domain: roctop_ring::record::Domain::HIP.0,
                name: "hipMalloc".into(),
                ..Operation::default()
            }),
        ];
        for item in &facts {
            watch.apply(item);
        }
        watch
    }

    fn dispatch(begin: u64, nanos: u64) -> Dispatch {
        Dispatch {
            agent: AgentId(1),
            span: Span {
                begin: begin * MS,
                end: begin * MS + nanos,
            },
            dispatch_id: begin,
            ..Dispatch::default()
        }
    }

    /// Takes dispatches, then a poll at the end of the last one.
    fn run(watch: &mut Watch, dispatches: &[Dispatch]) -> Vec<String> {
        watch.take(&Decoded {
            items: &[],
            calls: &[],
            dispatches,
        });
        let at = dispatches.iter().map(|dispatch| dispatch.span.end).max().unwrap_or(0);
        poll(watch, at + 100 * MS)
    }

    fn poll(watch: &mut Watch, at: u64) -> Vec<String> {
        watch.apply(&Item::Now(at));
        watch.take_fired().0.into_iter().map(|one| one.reason).collect()
    }

    #[test]
    fn a_statistic_triggers_when_it_crosses_its_limit() {
        let mut watch = watch(&["p99(gemm) > 2ms", "max(conv) > 1ns"]);
        let calm: Vec<Dispatch> = (0..200).map(|at| dispatch(1000 + at, MS)).collect();
        assert_eq!(run(&mut watch, &calm), [] as [&str; 0]);
        let slow: Vec<Dispatch> = (0..10).map(|at| dispatch(1300 + at * 5, 4 * MS)).collect();
        let fired = run(&mut watch, &slow);
        assert_eq!(fired.len(), 1, "{fired:?}");
        assert!(
            fired[0].starts_with("gemm: 4.0") && fired[0].ends_with("limit 2.00 ms"),
            "{fired:?}"
        );
        assert_eq!(
            run(&mut watch, &[dispatch(1500, 5 * MS)]),
            [] as [&str; 0],
            "it is still above"
        );
        // The slow ones leave the window, and it may trigger again.
        for second in 2..20 {
            assert_eq!(poll(&mut watch, second * 1000 * MS), [] as [&str; 0]);
        }
        assert_eq!(run(&mut watch, &[dispatch(20_000, 3 * MS)]).len(), 1);
    }

    #[test]
    fn a_term_that_a_record_does_not_have_selects_none() {
        let conditions = [
            "dur(dir=h2d) > 1us",
            "dur(dev=7) > 1us",
            "dur(!(bytes>1M)) > 1us",
            "dur(bytes>1M) > 1us",
            "dur(vgpr>128) > 1us",
            "dur(vgpr<100) > 1us",
        ];
        let mut watch = watch(&conditions);
        let registers = roctop_trace::item::Registers {
            vgpr: 64,
            agpr: 128,
            sgpr: 16,
        };
        watch.apply(&Item::Kernel(Kernel {
            name: "gemm".into(),
            registers: Some(registers),
            ..Kernel::default()
        }));
        let call = ApiCall {
            span: Span { begin: MS, end: 2 * MS },
            ..ApiCall::default()
        };
        let copy = Copy {
            direction: direction::H2D,
            span: call.span,
            bytes: 1000,
            ..Copy::default()
        };
        watch.take(&Decoded {
            items: &[Item::Copy(copy)],
            calls: &[call],
            dispatches: &[dispatch(1, MS)],
        });
        let mut fired: Vec<(&str, String)> = watch
            .take_fired()
            .0
            .into_iter()
            .map(|one| (conditions[one.condition], one.reason))
            .collect();
        for one in &mut fired {
            one.1.truncate(8);
        }
        let expected = [
            ("dur(dir=h2d) > 1us", "copy H2D"),
            ("dur(!(bytes>1M)) > 1us", "copy H2D"),
            ("dur(vgpr>128) > 1us", "gemm on "),
        ];
        assert_eq!(
            fired,
            expected.map(|(condition, reason)| (condition, reason.to_owned()))
        );
    }

    #[test]
    fn a_limit_may_be_relative_to_what_was_usual() {
        let mut watch = watch(&["dur(gemm) > 3*p50(gemm)"]);
        let calm: Vec<Dispatch> = (0..19).map(|at| dispatch(1000 + at, MS)).collect();
        assert_eq!(run(&mut watch, &calm), [] as [&str; 0]);
        assert_eq!(
            run(&mut watch, &[dispatch(1100, 9 * MS)]),
            [] as [&str; 0],
            "a median needs 20"
        );
        let fired = run(&mut watch, &[dispatch(1200, 9 * MS), dispatch(1300, MS)]);
        assert_eq!(fired.len(), 1);
        assert!(fired[0].contains("took 9.00 ms, limit 3.0"), "{fired:?}");
    }

    fn range(number: u64, level: u16, text: u32, nanos: u64) -> Item {
        Item::Range(Marker {
            text: TextId(text),
            level,
            span: Span {
                begin: number * 1000 * MS,
                end: number * 1000 * MS + nanos,
            },
            ..Marker::default()
        })
    }

    #[test]
    fn steps_are_the_outermost_ranges_that_repeat() {
        let mut watch = watch(&["step > 1.3*p50(step)", "step(forward) > 50ms"]);
        let texts = ["step 1", "step 2", "forward", "run"];
        for (id, text) in (0..).zip(texts) {
            watch.apply(&Item::Text(TextId(id), text.into()));
        }
        // One range around all, which never repeats.
        watch.apply(&range(0, 0, 3, 10));
        for number in 1..40 {
            watch.apply(&range(number, 2, 2, 10 * MS));
            watch.apply(&range(number, 1, (number % 2) as u32, 100 * MS));
        }
        assert_eq!(poll(&mut watch, 50_000 * MS), [] as [&str; 0]);
        watch.apply(&range(50, 2, 2, 60 * MS));
        watch.apply(&range(50, 1, 0, 125 * MS));
        assert_eq!(poll(&mut watch, 51_000 * MS).len(), 1, "the inner range alone");
        watch.apply(&range(52, 1, 1, 140 * MS));
        let fired = poll(&mut watch, 53_000 * MS);
        assert_eq!(fired.len(), 1);
        assert!(fired[0].starts_with("step \"step 2\" took 140 ms"), "{fired:?}");
    }

    #[test]
    fn requests_of_the_usual_length_trigger_nothing() {
        let mut watch = watch(&[
            "step > 3*p50(step)",
            "range(request) > 150ms",
            "marker ~ \"NaN\"",
            "error(hip*)",
            "idle(gpu0) > 500ms",
            "hang(gemm) > 1s",
            "p99(gemm) > 2ms",
            "dur(gemm) > 100*p50(gemm)",
            "calls(hipMalloc) > 30 in last 1s",
            "lost > 0",
            "exit(signal)",
        ]);
        let request = |number: u64, nanos: u64| {
            let text = TextId(number as u32);
            let begin = number * 10 * MS;
            let span = Span {
                begin,
                end: begin + nanos,
            };
            let range = Marker {
                text,
                span,
                ..Marker::default()
            };
            (Item::Text(text, format!("request {number}").into()), Item::Range(range))
        };
        let serve = |watch: &mut Watch, number: u64, nanos: u64| {
            let (text, range) = request(number, nanos);
            watch.apply(&text);
            watch.apply(&range);
            watch.take(&Decoded {
                items: &[],
                calls: &[],
                dispatches: &[dispatch(number * 10, 1000)],
            });
            poll(watch, number * 10 * MS + nanos)
        };
        for number in 1..300 {
            assert_eq!(serve(&mut watch, number, 9 * MS), [] as [&str; 0], "{number}");
        }
        assert_eq!(serve(&mut watch, 300, 25 * MS), [] as [&str; 0]);
        let fired = serve(&mut watch, 303, 200 * MS);
        assert!(
            matches!(&fired[..], [step, range] if step.starts_with("step \"request 303\" took 200 ms")
                && range.starts_with("range \"request 303\" took 200 ms")),
            "{fired:?}"
        );
    }

    #[test]
    fn failed_calls_and_marks_trigger_each_time() {
        let mut watch = watch(&["error(hip*)", "errors(hipMalloc) > 1", "marker ~ \"NaN\""]);
        let call = |status| ApiCall {
            status: Some(status),
            ..ApiCall::default()
        };
        let calls = [call(0), call(2), call(600)];
        watch.take(&Decoded {
            items: &[],
            calls: &calls,
            dispatches: &[],
        });
        // 600 is hipErrorNotReady, which is no error.
        assert_eq!(poll(&mut watch, 1000 * MS), ["hipMalloc returned hipErrorOutOfMemory"]);
        watch.take(&Decoded {
            items: &[],
            calls: &calls,
            dispatches: &[],
        });
        let fired = poll(&mut watch, 2000 * MS);
        assert_eq!(
            fired,
            ["hipMalloc returned hipErrorOutOfMemory", "hipMalloc: 2, limit 1"]
        );
        watch.apply(&Item::Text(TextId(0), "loss is \u{1b}[31mNaN".into()));
        watch.apply(&Item::Mark(Marker::default()));
        assert_eq!(poll(&mut watch, 3000 * MS), ["marker \"loss is \u{fffd}[31mNaN\""]);
    }

    #[test]
    fn work_that_stays_open_hangs_once() {
        let mut watch = watch(&["hang > 5s", "hang(conv) > 1ms"]);
        let open = |submit: &[u64]| {
            let one = |(id, submit): (u64, &u64)| Dispatch {
                submit: *submit * MS,
                dispatch_id: id,
                span: Span::default(),
                ..dispatch(0, 0)
            };
            Item::Open(Open {
                dispatches: (1..).zip(submit).map(one).collect(),
                ..Open::default()
            })
        };
        let mut reasons = Vec::new();
        for second in 1..10 {
            watch.apply(&open(&[1000, 1500]));
            reasons.extend(poll(&mut watch, second * 1000 * MS));
        }
        assert_eq!(reasons, ["gemm on GPU0 has been open for 6.00 s"], "{reasons:?}");
        watch.apply(&open(&[]));
        watch.apply(&open(&[2000]));
        assert_eq!(poll(&mut watch, 11_000 * MS).len(), 1);
    }

    #[test]
    fn losses_count_within_the_window() {
        let mut watch = watch(&["lost > 100 in last 10s"]);
        let lost = |records| Item::Lost {
            process: ProcessId(0),
            reason: LossReason::Overwritten,
            records,
        };
        let at = |watch: &mut Watch, second: u64, records| {
            watch.apply(&Item::Now(second * 1000 * MS));
            watch.apply(&lost(records));
            poll(watch, second * 1000 * MS)
        };
        assert_eq!(at(&mut watch, 1, 60), [] as [&str; 0]);
        assert_eq!(at(&mut watch, 20, 120), [] as [&str; 0], "sixty in each window");
        assert_eq!(at(&mut watch, 25, 170), ["110 records lost"]);
        assert_eq!(at(&mut watch, 26, 180), [] as [&str; 0]);
        assert_eq!(at(&mut watch, 50, 180), [] as [&str; 0]);
        assert_eq!(at(&mut watch, 51, 300), ["120 records lost"]);
    }

    #[test]
    fn gauges_and_counters_trigger_on_their_way_up() {
        let mut watch = watch(&["temperature_edge(gpu1) > 90", "SQ_WAVES(gemm) > 1M"]);
        let mut gauge = |number, value| {
            let mut sample = Sample {
                number,
                ..Sample::default()
            };
            sample.put(Metric::EDGE, Ok(value));
            watch.apply(&Item::Gauges(sample));
            watch.take_fired().0.len()
        };
        let found =
            [(0, 99.0), (1, 89.0), (1, 91.0), (1, 95.0), (1, 80.0), (1, 92.0)].map(|(gpu, value)| gauge(gpu, value));
        assert_eq!(found, [0, 0, 1, 0, 0, 1]);
        watch.apply(&Item::Counter(Arc::new(Counter {
            id: 4,
            name: "SQ_WAVES".into(),
            ..Counter::default()
        })));
        let mut count = |kernel, value| {
            watch.apply(&Item::Count(Count {
                counter: 4,
                value,
                kernel,
                ..Count::default()
            }));
            watch.take_fired().0.len()
        };
        let gemm = Some(KernelId(0));
        assert_eq!(
            [count(None, 2e6), count(gemm, 1e5), count(gemm, 2e6), count(gemm, 2e6)],
            [0, 0, 1, 0]
        );
    }

    #[test]
    fn ends_are_by_code_and_by_signal() {
        let names = ["exit", "exit(error)", "exit(signal)", "exit(SEGV)", "exit(3)"];
        let fired = |exit| {
            let mut watch = watch(&names);
            watch.apply(&Item::Ended {
                process: ProcessId(0),
                exit,
                at: 9,
            });
            let fired = watch.take_fired().0;
            fired.into_iter().map(|one| names[one.condition]).collect::<Vec<_>>()
        };
        assert_eq!(fired(Exit::Code(0)), ["exit"]);
        assert_eq!(fired(Exit::Code(3)), ["exit", "exit(error)", "exit(3)"]);
        assert_eq!(fired(Exit::Signal(9)), ["exit", "exit(error)", "exit(signal)"]);
        assert_eq!(
            fired(Exit::Signal(11)),
            ["exit", "exit(error)", "exit(signal)", "exit(SEGV)"]
        );
        assert_eq!(fired(Exit::Unknown), ["exit"]);
    }

    #[test]
    fn ended_processes_leave_no_names() {
        let mut watch = watch(&["lost > 100 in last 10s"]);
        for id in 1..1000u32 {
            let process = ProcessId(id);
            watch.apply(&Item::Process(Process {
                id: process,
                command: format!("./worker {id}").into(),
                ..Process::default()
            }));
            watch.apply(&Item::Thread(Thread {
                id: ThreadId(id),
                process,
                name: format!("worker {id}").into(),
                ..Thread::default()
            }));
            watch.apply(&Item::Lost {
                process,
                reason: LossReason::Overwritten,
                records: 1,
            });
            if id > 10 {
                watch.forget(ProcessId(id - 10));
            }
        }
        let commands = watch.names.processes().iter().filter(|one| !one.command.is_empty());
        assert_eq!(commands.count(), 10);
        let threads = (0..1000).filter_map(|id| watch.names.thread(ThreadId(id)));
        assert_eq!(threads.filter(|thread| !thread.name.is_empty()).count(), 10);
        let Memory::Lost(losses) = &watch.states[0].memory else {
            panic!("no losses")
        };
        assert_eq!(losses.known.len(), 10);
        assert!(
            watch
                .names
                .thread(ThreadId(995))
                .is_some_and(|thread| &*thread.name == "worker 995")
        );
    }

    #[test]
    fn a_flood_of_triggers_is_counted() {
        let mut watch = watch(&["dur(gemm) > 1ns"]);
        let all: Vec<Dispatch> = (0..1000).map(|at| dispatch(1000 + at, MS)).collect();
        watch.take(&Decoded {
            items: &[],
            calls: &[],
            dispatches: &all,
        });
        let (fired, more) = watch.take_fired();
        assert_eq!((fired.len(), more), (MAX_FIRED, 1000 - MAX_FIRED as u64));
        assert_eq!(watch.take_fired(), (Vec::new(), 0));
        assert!(watch.needs_records());
    }
}
