//! Correlation ids as rocprofv3 gives them: dense from 1 by start time over the wanted API calls and markers of a
//! process, with the enclosing one as ancestor; work belongs to the innermost wanted one that enqueued it.

use super::choice::{Kind, Kinds};
use super::run::Run;
use crate::item::{ApiCall, Copy, Dispatch, Marker, Nanos, ProcessId, Span, TextId, ThreadId};
use roctop_ring::record::{Domain, flag};
use std::cmp::Reverse;
use std::collections::HashMap;

/// A record with its place among the others.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a, T> {
    /// The record.
    pub record: &'a T,
    /// Its correlation id, dense; of the call that caused it, for work.
    pub id: u64,
    /// Id of the enclosing call or range, 0 for none.
    pub ancestor: u64,
    /// Innermost push/pop range around it.
    pub region: Option<Region>,
}

/// A push/pop range around something.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Its text.
    pub text: TextId,
    /// Its correlation id.
    pub id: u64,
}

/// All rows of a process, by end.
#[derive(Debug, Default)]
pub struct Rows<'a> {
    /// Calls of HIP.
    pub hip: Vec<Row<'a, ApiCall>>,
    /// Calls of HSA.
    pub hsa: Vec<Row<'a, ApiCall>>,
    /// Marks and ranges.
    pub markers: Vec<Row<'a, Marker>>,
    /// Dispatches.
    pub dispatches: Vec<Row<'a, Dispatch>>,
    /// Copies.
    pub copies: Vec<Row<'a, Copy>>,
}

/// A call or marker.
#[derive(Clone, Copy)]
enum Source<'a> {
    Call(&'a ApiCall, Option<Kind>),
    Marker(&'a Marker),
}

struct Node<'a> {
    source: Source<'a>,
    wanted: bool,
    /// Nearest wanted node, itself included.
    owner: Option<usize>,
    /// Nearest wanted node around it.
    above: Option<usize>,
    /// Innermost push/pop range around it, wanted or not.
    region: Option<usize>,
    id: u64,
}

impl Node<'_> {
    fn span(&self) -> Span {
        match self.source {
            Source::Call(call, _) => call.span,
            Source::Marker(marker) => marker.span,
        }
    }

    fn thread(&self) -> ThreadId {
        match self.source {
            Source::Call(call, _) => call.thread,
            Source::Marker(marker) => marker.thread,
        }
    }

    fn correlation(&self) -> u64 {
        match self.source {
            Source::Call(call, _) => call.correlation,
            Source::Marker(marker) => marker.correlation,
        }
    }

    /// A push/pop range: what follows on its thread lies inside.
    fn is_region(&self) -> bool {
        matches!(self.source, Source::Marker(marker) if marker.range_id == 0 && marker.span.end > marker.span.begin)
    }
}

/// Numbers the wanted records of a process. `orphans` says whether work that no wanted call caused gets ids of its own
/// (as rocprofiler-sdk 1.0.0 does) or 0.
pub fn rows(run: &Run, process: ProcessId, kinds: Kinds, orphans: bool) -> Rows<'_> {
    let mut nodes = nodes(run, process, kinds);
    nest(&mut nodes);
    let by_sparse: HashMap<u64, usize> = nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.correlation() != 0)
        .map(|(index, node)| (node.correlation(), index))
        .collect();
    let kernels = kinds.has(Kind::Kernel);
    let copies = kinds.has(Kind::MemoryCopy);
    // What has no time has no row; it is counted as lost.
    let timed = |flags: u8| flags & flag::UNTIMED == 0;
    let dispatches = run.dispatches.iter();
    let dispatches = dispatches.filter(|d| kernels && d.process == process && timed(d.flags));
    let copies = run
        .copies
        .iter()
        .filter(|c| copies && c.process == process && timed(c.flags));
    let mut work: Vec<Work<'_>> = dispatches.map(Work::dispatch).chain(copies.map(Work::copy)).collect();
    for work in &mut work {
        work.cause = by_sparse.get(&work.correlation).copied();
    }
    number(&mut nodes, &mut work, orphans);
    collect(&nodes, work)
}

fn nodes(run: &Run, process: ProcessId, kinds: Kinds) -> Vec<Node<'_>> {
    let node = |source, wanted| Node {
        source,
        wanted,
        owner: None,
        above: None,
        region: None,
        id: 0,
    };
    let calls = run.calls.iter().filter(|call| call.process == process).map(|call| {
        let known = run.operations.get(call.operation.0 as usize);
        let kind = known.and_then(|operation| Kind::of(Domain(operation.domain)));
        // Calls that HIP makes of itself are left out, as rocprofv3 leaves them out.
        let inner = call.parent != 0 && matches!(kind, Some(Kind::HipRuntime | Kind::HipCompiler));
        let wanted = !inner && kind.is_some_and(|kind| kinds.has(kind));
        node(Source::Call(call, kind), wanted)
    });
    let markers = run.markers.iter().filter(|marker| marker.process == process);
    calls
        .chain(markers.map(|marker| node(Source::Marker(marker), kinds.has(Kind::Marker))))
        .collect()
}

/// Finds what lies inside what, thread by thread.
fn nest(nodes: &mut [Node<'_>]) {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_unstable_by_key(|index| {
        let node = &nodes[*index];
        let span = node.span();
        (node.thread(), span.begin, Reverse(span.end), node.correlation())
    });
    let mut stack: Vec<usize> = Vec::new();
    for index in order {
        let (thread, end) = (nodes[index].thread(), nodes[index].span().end);
        let outside = |top: &usize| nodes[*top].thread() != thread || nodes[*top].span().end < end;
        while stack.last().is_some_and(outside) {
            stack.pop();
        }
        let around = stack.last().copied();
        let above = around.and_then(|top| nodes[top].owner);
        let region = around.and_then(|top| {
            if nodes[top].is_region() {
                Some(top)
            } else {
                nodes[top].region
            }
        });
        let node = &mut nodes[index];
        node.above = above;
        node.region = region;
        node.owner = if node.wanted { Some(index) } else { above };
        let holds_others = matches!(node.source, Source::Call(..)) || node.is_region();
        if holds_others {
            stack.push(index);
        }
    }
}

/// A dispatch or copy.
struct Work<'a> {
    record: Result<&'a Dispatch, &'a Copy>,
    correlation: u64,
    start: Nanos,
    cause: Option<usize>,
    id: u64,
}

impl<'a> Work<'a> {
    const fn dispatch(record: &'a Dispatch) -> Self {
        let start = if record.submit == 0 {
            record.span.begin
        } else {
            record.submit
        };
        Self {
            record: Ok(record),
            correlation: record.correlation,
            start,
            cause: None,
            id: 0,
        }
    }

    const fn copy(record: &'a Copy) -> Self {
        let start = if record.submit == 0 {
            record.span.begin
        } else {
            record.submit
        };
        Self {
            record: Err(record),
            correlation: record.correlation,
            start,
            cause: None,
            id: 0,
        }
    }
}

fn number(nodes: &mut [Node<'_>], work: &mut [Work<'_>], orphans: bool) {
    enum Of {
        Node(usize),
        Work(usize),
    }
    let mut starts: Vec<(Nanos, u64, Of)> = nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.wanted)
        .map(|(index, node)| (node.span().begin, node.correlation(), Of::Node(index)))
        .collect();
    let owner = |nodes: &[Node<'_>], work: &Work<'_>| work.cause.and_then(|cause| nodes[cause].owner);
    if orphans {
        let without = work.iter().enumerate().filter(|(_, work)| owner(nodes, work).is_none());
        starts.extend(without.map(|(index, work)| {
            let order = work.record.map_or(0, |dispatch| dispatch.dispatch_id);
            (work.start, order, Of::Work(index))
        }));
    }
    starts.sort_by_key(|start| (start.0, start.1));
    for (id, (_, _, of)) in (1..).zip(starts) {
        match of {
            Of::Node(index) => nodes[index].id = id,
            Of::Work(index) => work[index].id = id,
        }
    }
    for work in work {
        if let Some(owner) = owner(nodes, work) {
            work.id = nodes[owner].id;
        }
    }
}

fn collect<'a>(nodes: &[Node<'a>], work: Vec<Work<'a>>) -> Rows<'a> {
    let id = |node: Option<usize>| node.map_or(0, |index| nodes[index].id);
    let region_of = |node: usize| {
        nodes[node].region.and_then(|region| match nodes[region].source {
            Source::Marker(marker) => Some(Region {
                text: marker.text,
                id: nodes[region].id,
            }),
            Source::Call(..) => None,
        })
    };
    let mut rows = Rows::default();
    for (index, node) in nodes.iter().enumerate().filter(|(_, node)| node.wanted) {
        let (ancestor, region) = (id(node.above), region_of(index));
        match node.source {
            Source::Marker(record) => rows.markers.push(row(record, node.id, ancestor, region)),
            Source::Call(record, Some(Kind::HipRuntime | Kind::HipCompiler)) => {
                rows.hip.push(row(record, node.id, ancestor, region));
            }
            Source::Call(record, _) => rows.hsa.push(row(record, node.id, ancestor, region)),
        }
    }
    for work in work {
        let owner = work.cause.and_then(|cause| nodes[cause].owner);
        let ancestor = id(owner.and_then(|owner| nodes[owner].above));
        let region = work.cause.and_then(region_of);
        match work.record {
            Ok(record) => rows.dispatches.push(row(record, work.id, ancestor, region)),
            Err(record) => rows.copies.push(row(record, work.id, ancestor, region)),
        }
    }
    rows.hip
        .sort_by_key(|row| (row.record.span.end, Reverse(row.record.span.begin)));
    rows.hsa
        .sort_by_key(|row| (row.record.span.end, Reverse(row.record.span.begin)));
    rows.markers
        .sort_by_key(|row| (row.record.span.end, Reverse(row.record.span.begin)));
    rows.dispatches
        .sort_by_key(|row| (row.record.span.end, row.record.dispatch_id));
    rows.copies
        .sort_by_key(|row| (row.record.span.end, row.record.span.begin));
    rows
}

const fn row<T>(record: &T, id: u64, ancestor: u64, region: Option<Region>) -> Row<'_, T> {
    Row {
        record,
        id,
        ancestor,
        region,
    }
}
