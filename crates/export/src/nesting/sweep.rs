//! Sweeps over the records of a process by begin, with a stack of open calls and ranges per thread.

use super::Wanted;
use super::recent::Recent;
use crate::collect::Event;
use crate::options::Kind;
use crate::range_stacks::{Enclosing, RangeStacks};
use crate::records::{RecordIds, Region};
use crate::run::Run;
use roctop_model::FastMap;
use roctop_ring::record::{Domain, flag};
use roctop_trace::item::{ApiCall, Nanos, Span, TextId, ThreadId};
use roctop_trace::site::SiteNumber;

/// Maximum depth of open calls and ranges per thread.
const MAX_DEPTH: usize = 1 << 16;

/// What may be nested.
#[derive(Clone, Copy)]
enum Node {
    /// Encloses what follows on its thread.
    Call { is_hip: bool, site: SiteNumber },
    /// A push/pop range: encloses what follows, and names it.
    Region(TextId),
    /// Names what follows.
    Mark(TextId),
    /// A start/stop range: encloses nothing.
    Range,
}

/// An open call or range.
struct Open {
    correlation: u64,
    begin: Nanos,
    end: Nanos,
    /// What work that it causes inherits.
    cause: RecordIds,
    /// Whether it is a HIP call, or inside one.
    is_hip: bool,
    /// What names kernels inside: for a push/pop range itself, or a later mark; number 0 if nothing does.
    region: Region,
    /// For a push/pop range: itself; for a call: the range around it.
    range: Enclosing,
}

/// Open calls and ranges, and the next number.
pub(super) struct Sweep {
    wanted: Wanted,
    /// Next id.
    pub(super) next: u64,
    /// By thread, whose ids are dense.
    open: Vec<Vec<Open>>,
    /// Mark that names the following kernels of a thread outside all ranges.
    marked: FastMap<ThreadId, Region>,
    /// Numbers of the first markers with these texts, if kernels are named by them.
    pub(super) texts: FastMap<TextId, u64>,
    /// Stacks of push/pop ranges.
    pub(super) stacks: RangeStacks,
    /// Recent calls.
    pub(super) recent: Recent,
    /// Kind of each operation.
    kinds: Vec<Option<Kind>>,
    /// Whether the last work refers to a call that is not recent.
    pub(super) is_late: bool,
}

impl Sweep {
    pub(super) fn new(run: &Run, wanted: Wanted) -> Self {
        Self {
            wanted,
            next: 1,
            open: Vec::new(),
            marked: FastMap::default(),
            texts: FastMap::default(),
            stacks: RangeStacks::default(),
            recent: Recent::default(),
            kinds: run
                .operations
                .iter()
                .map(|operation| Kind::of(Domain(operation.domain)))
                .collect(),
            is_late: false,
        }
    }

    /// Prefetches the call that the record belongs to.
    #[inline]
    pub(super) fn fetch(&self, event: &Event) {
        self.recent.fetch(match event {
            Event::Call(call) => call.correlation,
            Event::Marker(marker) => marker.correlation,
            Event::Dispatch(dispatch) => dispatch.correlation,
            Event::Copy(copy) => copy.correlation,
            Event::Allocation(allocation) => allocation.correlation,
            Event::Scratch(scratch) => scratch.correlation,
        });
    }

    /// Processes the next record; writes its numbers to `own`, the default before, if it is selected.
    pub(super) fn take(&mut self, event: &Event, own: &mut RecordIds) {
        self.is_late = false;
        let at = event.start();
        match event {
            Event::Call(call) => {
                let kind = self.kinds.get(call.operation.0 as usize).copied().flatten();
                let is_hip = matches!(kind, Some(Kind::HipRuntime | Kind::HipCompiler));
                let wanted = kind.is_some_and(|kind| self.wanted.kinds.has(kind));
                // Calls that HIP itself makes are left out, as in rocprofv3; those of RCCL are not.
                let wanted = wanted && !(is_hip && call.parent != 0 && self.is_in_hip(call));
                let node = Node::Call {
                    is_hip,
                    site: call.site,
                };
                self.node(call.thread, call.span, call.correlation, wanted, node, own);
            }
            Event::Marker(marker) => {
                let is_wanted = self.wanted.kinds.has(Kind::Marker);
                let wanted = is_wanted || self.wanted.rename && marker.range_id == 0;
                let node = match (marker.range_id, marker.span.end > marker.span.begin) {
                    (0, true) => Node::Region(marker.text),
                    (0, false) => Node::Mark(marker.text),
                    _ => Node::Range,
                };
                self.node(marker.thread, marker.span, marker.correlation, wanted, node, own);
                own.is_selected &= is_wanted;
            }
            // Untimed work has no row; it counts as lost.
            Event::Dispatch(d) if d.flags & flag::UNTIMED == 0 && self.wanted.kinds.has(Kind::Kernel) => {
                self.work(d.thread, at, d.correlation, own);
            }
            Event::Copy(c) if c.flags & flag::UNTIMED == 0 && self.wanted.kinds.has(Kind::MemoryCopy) => {
                self.work(c.thread, at, c.correlation, own);
            }
            Event::Allocation(a) if self.wanted.kinds.has(Kind::MemoryAllocation) => {
                self.work(Some(a.thread), at, a.correlation, own);
            }
            // Scratch memory without a queue belongs to the run-time's shutdown, after rocprofv3 has finished.
            Event::Scratch(s) if s.queue.is_some() && self.wanted.kinds.has(Kind::ScratchMemory) => {
                self.work(Some(s.thread), at, s.correlation, own);
            }
            Event::Dispatch(_) | Event::Copy(_) | Event::Allocation(_) | Event::Scratch(_) => {}
        }
    }

    /// Whether a call is inside a HIP call.
    fn is_in_hip(&self, call: &ApiCall) -> bool {
        let open = self.open.get(call.thread.0 as usize);
        let around = open.and_then(|stack| stack.iter().rev().find(|open| open.end >= call.span.end));
        around.is_some_and(|open| open.is_hip)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn node(
        &mut self,
        thread: ThreadId,
        span: Span,
        correlation: u64,
        is_wanted: bool,
        node: Node,
        own: &mut RecordIds,
    ) {
        let id = if is_wanted { self.number() } else { 0 };
        let number = thread.0 as usize;
        if self.open.len() <= number {
            self.open.resize_with(number + 1, Vec::new);
        }
        let stack = &mut self.open[number];
        while stack.pop_if(|top| top.end < span.end).is_some() {}
        let around = stack.last();
        let (above, region) = around.map_or_else(
            || (0, self.marked.get(&thread).copied().unwrap_or_default()),
            |top| (top.cause.id, top.region),
        );
        let range = around.map_or_else(Enclosing::default, |top| top.range);
        let above_that = around.map_or(0, |top| top.cause.ancestor);
        let is_hip = matches!(node, Node::Call { is_hip: true, .. }) || around.is_some_and(|top| top.is_hip);
        let cause = RecordIds {
            id: if is_wanted { id } else { above },
            ancestor: if is_wanted { above } else { above_that },
            region: region.id,
            region_text: region.text,
            range: range.id,
            stack: range.stack,
            site: match node {
                Node::Call { site, .. } if site.is_known() => site,
                _ => around.map_or(SiteNumber::UNKNOWN, |top| top.cause.site),
            },
            is_selected: true,
        };
        let is_renamed = self.wanted.rename;
        let mut named = |text| {
            is_renamed.then(|| Region {
                text,
                id: *self.texts.entry(text).or_insert(id),
            })
        };
        let hold = |stack: &mut Vec<Open>, region, range| {
            // No program nests this deeply.
            if stack.len() >= MAX_DEPTH {
                return;
            }
            stack.push(Open {
                correlation,
                begin: span.begin,
                end: span.end,
                cause,
                is_hip,
                region,
                range,
            });
        };
        match node {
            Node::Call { .. } => hold(stack, region, range),
            Node::Region(text) => {
                let own = Enclosing {
                    id,
                    stack: self.stacks.inside(range.stack, text),
                };
                hold(stack, named(text).unwrap_or_default(), own);
            }
            Node::Mark(text) => {
                if let Some(named) = named(text) {
                    // It names what follows until the enclosing range ends.
                    match stack.last_mut() {
                        Some(top) => top.region = named,
                        None => drop(self.marked.insert(thread, named)),
                    }
                }
            }
            Node::Range => {}
        }
        if correlation != 0 {
            self.recent.put(correlation, cause);
        }
        if is_wanted {
            *own = cause;
        }
    }

    fn work(&mut self, thread: Option<ThreadId>, at: Nanos, correlation: u64, own: &mut RecordIds) {
        let stack = thread.and_then(|thread| self.open.get(thread.0 as usize));
        let none = RecordIds::default();
        let cause = if correlation == 0 {
            &none
        } else if let Some(inside) = stack.and_then(|stack| inside(stack, at, correlation)) {
            inside
        } else if let Some(known) = self.recent.get(correlation) {
            known
        } else {
            self.is_late = true;
            return;
        };
        let is_orphan = cause.id == 0 && self.wanted.orphans;
        *own = RecordIds {
            id: if is_orphan { self.next } else { cause.id },
            is_selected: true,
            ..*cause
        };
        self.next += u64::from(is_orphan);
    }
}

/// Cause of work submitted in a call that is still open: the innermost open call at that time, such as the HSA call that rings
/// the doorbell. The collector reports the HIP call.
fn inside(stack: &[Open], at: Nanos, correlation: u64) -> Option<&RecordIds> {
    let own = stack.iter().rposition(|open| open.correlation == correlation)?;
    let mut inner = stack.get(own..)?.iter().rev();
    let around = inner.find(|open| open.begin <= at && at <= open.end);
    around.map(|open| &open.cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Kinds;
    use roctop_trace::item::{Allocation, Dispatch, Marker, ProcessId};

    const THREAD: ThreadId = ThreadId(3);

    fn span(begin: Nanos, end: Nanos) -> Span {
        Span { begin, end }
    }

    fn marker(text: u32, begin: Nanos, end: Nanos) -> Event {
        Event::Marker(Marker {
            thread: THREAD,
            text: TextId(text),
            span: span(begin, end),
            ..Marker::default()
        })
    }

    /// Numbers of a record, if it is selected.
    fn taken(sweep: &mut Sweep, event: &Event) -> Option<RecordIds> {
        let mut own = RecordIds::default();
        sweep.take(event, &mut own);
        own.is_selected.then_some(own)
    }

    /// A launch at a time; returns the text that names its kernel.
    fn launched(sweep: &mut Sweep, at: Nanos) -> Option<(u32, u64)> {
        taken(
            sweep,
            &Event::Call(ApiCall {
                thread: THREAD,
                span: span(at, at + 1),
                correlation: at,
                ..ApiCall::default()
            }),
        );
        let launch = Dispatch {
            correlation: at,
            ..Dispatch::default()
        };
        let place = taken(sweep, &Event::Dispatch(launch));
        place.unwrap().region().map(|region| (region.text.0, region.id))
    }

    #[test]
    fn work_belongs_to_the_innermost_call_that_submitted_it() {
        let run = Run::default();
        let wanted = Wanted {
            process: ProcessId(0),
            kinds: Kinds::ALL,
            orphans: true,
            rename: false,
        };
        let mut sweep = Sweep::new(&run, wanted);
        let mut call = |correlation, begin, end| {
            let mut own = RecordIds::default();
            let node = Node::Call {
                is_hip: false,
                site: SiteNumber::UNKNOWN,
            };
            sweep.node(THREAD, span(begin, end), correlation, true, node, &mut own);
            own.id
        };
        let (launch, doorbell) = (call(5, 10, 90), call(6, 21, 29));
        let mut owner = |thread, submit| {
            let dispatch = Dispatch {
                thread,
                submit,
                correlation: 5,
                ..Dispatch::default()
            };
            let place = taken(&mut sweep, &Event::Dispatch(dispatch));
            place.map(|place| (place.id, place.ancestor))
        };
        assert_eq!(owner(Some(THREAD), 25), Some((doorbell, launch)));
        assert_eq!(owner(Some(THREAD), 40), Some((launch, 0)), "rung by no recorded call");
        assert_eq!(owner(Some(THREAD), 95), Some((launch, 0)), "rung later");
        assert_eq!(
            owner(Some(ThreadId(9)), 25),
            Some((launch, 0)),
            "rung by another thread"
        );
        assert_eq!(owner(None, 25), Some((launch, 0)));
    }

    #[test]
    fn work_has_the_site_of_the_call_around_it() {
        let run = Run::default();
        let wanted = Wanted {
            process: ProcessId(0),
            kinds: Kinds::ALL,
            orphans: true,
            rename: false,
        };
        let mut sweep = Sweep::new(&run, wanted);
        let call = |correlation, begin, end, site| {
            Event::Call(ApiCall {
                thread: THREAD,
                span: span(begin, end),
                correlation,
                site: SiteNumber(site),
                ..ApiCall::default()
            })
        };
        let allocation = |correlation, at| {
            Event::Allocation(Allocation {
                thread: THREAD,
                span: span(at, at + 1),
                correlation,
                ..Allocation::default()
            })
        };
        let mut site = |event: &Event| taken(&mut sweep, event).map(|place| place.site.0);
        // HIP's call, and HSA's in it.
        site(&call(5, 10, 90, 7));
        site(&call(6, 20, 30, 0));
        assert_eq!(site(&allocation(5, 15)), Some(7));
        assert_eq!(site(&allocation(6, 25)), Some(7));
        site(&call(8, 100, 110, 0));
        assert_eq!(site(&allocation(8, 105)), Some(0));
        assert_eq!(site(&allocation(0, 200)), Some(0));
    }

    #[test]
    fn kernels_are_called_by_the_mark_or_range_before_them() {
        let run = Run::default();
        let mut kinds = Kinds::NONE;
        kinds.set(Kind::Kernel, true);
        let wanted = Wanted {
            process: ProcessId(0),
            kinds,
            orphans: true,
            rename: true,
        };
        let mut sweep = Sweep::new(&run, wanted);
        assert_eq!(launched(&mut sweep, 1), None);
        assert!(
            taken(&mut sweep, &marker(7, 10, 10)).is_none(),
            "markers are not wanted"
        );
        let mark = sweep.texts[&TextId(7)];
        assert!(mark > 0);
        assert_eq!(launched(&mut sweep, 11), Some((7, mark)));
        taken(&mut sweep, &marker(8, 20, 40));
        let range = sweep.texts[&TextId(8)];
        assert_eq!(launched(&mut sweep, 21), Some((8, range)));
        taken(&mut sweep, &marker(9, 25, 25));
        assert_eq!(launched(&mut sweep, 26).unwrap().0, 9);
        // The range removed the mark inside it; the same text has the same number again.
        assert_eq!(launched(&mut sweep, 50), Some((7, mark)));
        taken(&mut sweep, &marker(8, 60, 70));
        assert_eq!(launched(&mut sweep, 61), Some((8, range)));
    }
}
