//! Where the work of a graph comes from: the call that was captured, or that added the node.
//!
//! HIP does not say which node a dispatch belongs to. A dispatch in a launch of a graph is matched by its kernel: if all
//! nodes with this kernel have one site, it is that one. If they have several, and edges put these nodes into one order,
//! HIP submits them in that order, and the dispatches of the kernel are counted. Otherwise the site stays the one of the
//! launch. A launch with another number of dispatches than the graph has nodes ends this for the executable graph.
//!
//! A copy or fill may take any number of kernels and copies by engines, so these are not counted. If all copies of the graph
//! have one site, it is that one. If edges put all nodes into one order, a copy is of a node between the last kernel and the
//! next one; if these have one site, it is that one.
//!
//! Nodes are known by their handles. When a graph is instantiated, HIP lists its nodes and edges, so that a kernel node
//! whose origin was not seen is noticed. All of it happens in calls that build graphs; a launch of a graph takes a lock
//! that it can fail to get, and a dispatch takes none.

#![expect(unsafe_code, reason = "asks HIP about graphs")]

use crate::backend::hsa::symbol;
use crate::guard::Errno;
use crate::{control, real, thread};
use hip_sys::function::Function;
use roctop_ring::session::wanted;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// Maximum number of nodes that are known.
const MAX_NODES: usize = 1 << 18;
/// Maximum number of nodes and edges of a graph that is analysed, and of steps of an analysis.
const MAX_LIST: usize = 1 << 17;
const MAX_STEPS: usize = 1 << 24;
/// Maximum depth of graphs in graphs.
const MAX_DEPTH: usize = 8;
/// Maximum number of graphs that are being launched at the same time.
const LAUNCHES: usize = 64;
/// Attempts to get the lock for a launch, and to see the last reader go.
const TRIES: usize = 3;
const SPINS: usize = 1000;
/// A launch that begins or ends.
const CHANGING: u64 = u64::MAX;

/// `hipSuccess`, and `hipStreamCaptureStatusActive`.
const SUCCESS: c_int = 0;
const ACTIVE: c_int = 1;
/// `hipStreamPerThread`; smaller handles are the null stream, which cannot be captured.
const PER_THREAD: u64 = 2;

type Handle = *mut c_void;
type CaptureInfo =
    unsafe extern "C" fn(Handle, *mut c_int, *mut u64, *mut Handle, *mut *const Handle, *mut usize) -> c_int;
type NameByAddress = unsafe extern "C" fn(*const c_void, Handle) -> *const c_char;
type NameByHandle = unsafe extern "C" fn(Handle) -> *const c_char;
type GetNodes = unsafe extern "C" fn(Handle, *mut Handle, *mut usize) -> c_int;
type GetEdges = unsafe extern "C" fn(Handle, *mut Handle, *mut Handle, *mut usize) -> c_int;
type GetType = unsafe extern "C" fn(Handle, *mut u32) -> c_int;
type GetChild = unsafe extern "C" fn(Handle, *mut Handle) -> c_int;

/// HIP's functions that are needed here.
struct Hip {
    capture_info: CaptureInfo,
    by_address: NameByAddress,
    by_handle: NameByHandle,
    nodes: GetNodes,
    edges: GetEdges,
    kind: GetType,
    child: GetChild,
}

/// What a node does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Launches a kernel with this hash of its name.
    Kernel(u64),
    Fill,
    Copy,
    /// Copies, fills, or nothing of both.
    Unknown,
}

/// A node with work for a GPU.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Node {
    does: Does,
    /// 0: unknown.
    site: u16,
}

/// Nodes by handle.
static NODES: Mutex<BTreeMap<u64, Node>> = Mutex::new(BTreeMap::new());
/// Executable graphs by handle.
static EXECUTABLES: RwLock<BTreeMap<u64, Arc<Executable>>> = RwLock::new(BTreeMap::new());
/// Number of a kernel node's type plus one, and that of a graph's: releases before 5.3 count from 1.
static KERNEL_TYPE: AtomicU64 = AtomicU64::new(0);
static GRAPH_TYPE: AtomicU64 = AtomicU64::new(0);

fn hip() -> Option<&'static Hip> {
    static HIP: OnceLock<Option<Hip>> = OnceLock::new();
    let find = || {
        let (library, _) = real::loaded("libamdhip64.so")?;
        macro_rules! function {
            ($kind:ty, $name:literal) => {{
                let found = library.symbol($name)?;
                // SAFETY: the library's function of this name has this signature in all releases.
                unsafe { std::mem::transmute::<*mut c_void, $kind>(found) }
            }};
        }
        Some(Hip {
            capture_info: function!(CaptureInfo, c"hipStreamGetCaptureInfo_v2"),
            by_address: function!(NameByAddress, c"hipKernelNameRefByPtr"),
            by_handle: function!(NameByHandle, c"hipKernelNameRef"),
            nodes: function!(GetNodes, c"hipGraphGetNodes"),
            edges: function!(GetEdges, c"hipGraphGetEdges"),
            kind: function!(GetType, c"hipGraphNodeGetType"),
            child: function!(GetChild, c"hipGraphChildGraphNodeGetGraph"),
        })
    };
    HIP.get_or_init(find).as_ref()
}

impl Hip {
    /// Hash of the name of the kernel behind a host function.
    fn of_host_function(&self, address: u64) -> Option<u64> {
        // SAFETY: HIP looks the address up, whatever it is.
        hashed(unsafe { (self.by_address)(address as *const c_void, null_mut()) })
    }

    /// The same of a `hipFunction_t`.
    fn of_handle(&self, handle: u64) -> Option<u64> {
        // SAFETY: HIP has just launched this function.
        hashed(unsafe { (self.by_handle)(handle as Handle) })
    }

    /// The node that was captured last on a stream.
    fn captured(&self, stream: u64) -> Option<u64> {
        let (mut status, mut id, mut graph, mut count) = (0, 0, null_mut(), 0);
        let mut nodes = std::ptr::null();
        // SAFETY: the stream of a call that succeeded; all places are writable.
        let code = unsafe {
            (self.capture_info)(
                stream as Handle,
                &raw mut status,
                &raw mut id,
                &raw mut graph,
                &raw mut nodes,
                &raw mut count,
            )
        };
        if code != SUCCESS || status != ACTIVE || count != 1 || nodes.is_null() {
            return None;
        }
        // SAFETY: HIP said that there is one.
        Some(unsafe { *nodes } as u64)
    }

    /// Nodes of a graph, in HIP's order.
    fn nodes(&self, graph: u64) -> Option<Vec<u64>> {
        let mut count = 0;
        // SAFETY: the program's graph; the number is writable.
        let code = unsafe { (self.nodes)(graph as Handle, null_mut(), &raw mut count) };
        if code != SUCCESS || count > MAX_LIST {
            return None;
        }
        let mut nodes = vec![null_mut(); count];
        // SAFETY: as above, with room for that many.
        if count > 0 && unsafe { (self.nodes)(graph as Handle, nodes.as_mut_ptr(), &raw mut count) } != SUCCESS {
            return None;
        }
        nodes.truncate(count);
        Some(nodes.into_iter().map(|node| node as u64).collect())
    }

    /// Edges of a graph.
    fn edges(&self, graph: u64) -> Option<Vec<(u64, u64)>> {
        let mut count = 0;
        // SAFETY: the program's graph; the number is writable.
        let code = unsafe { (self.edges)(graph as Handle, null_mut(), null_mut(), &raw mut count) };
        if code != SUCCESS || count > MAX_LIST {
            return None;
        }
        let (mut from, mut to) = (vec![null_mut(); count], vec![null_mut(); count]);
        if count > 0 {
            // SAFETY: as above, with room for that many.
            let code = unsafe { (self.edges)(graph as Handle, from.as_mut_ptr(), to.as_mut_ptr(), &raw mut count) };
            if code != SUCCESS {
                return None;
            }
        }
        let edges = from.into_iter().zip(to).take(count);
        Some(edges.map(|(from, to)| (from as u64, to as u64)).collect())
    }

    /// Number of a node's type plus one.
    fn kind(&self, node: u64) -> Option<u64> {
        let mut kind = 0;
        // SAFETY: a node of the program's graph; the type is writable.
        let code = unsafe { (self.kind)(node as Handle, &raw mut kind) };
        (code == SUCCESS).then_some(u64::from(kind) + 1)
    }

    /// The graph inside a node, which is one of this kind.
    fn child(&self, node: u64) -> Option<u64> {
        let mut graph = null_mut();
        // SAFETY: a node with a graph; the handle is writable.
        let code = unsafe { (self.child)(node as Handle, &raw mut graph) };
        (code == SUCCESS && !graph.is_null()).then_some(graph as u64)
    }
}

fn hashed(name: *const c_char) -> Option<u64> {
    if name.is_null() {
        return None;
    }
    // SAFETY: HIP's names are terminated, and stay while their code object does.
    Some(symbol::name_hash(unsafe { CStr::from_ptr(name) }.to_bytes()))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call of the program, and what it was called with.
pub(super) struct GraphCall<'a> {
    pub(super) function: &'a Function,
    pub(super) registers: [u64; 6],
    pub(super) site: u16,
}

impl GraphCall<'_> {
    /// What an argument points to, in the word `at`.
    fn behind(&self, argument: usize, at: usize) -> Option<u64> {
        let address = *self.registers.get(argument)? as *const u64;
        // SAFETY: the call succeeded, so the argument points to what its type says, and that has this word.
        (!address.is_null()).then(|| unsafe { *address.wrapping_add(at) })
    }
}

/// The stream of a call, if it can be captured.
fn stream_of(call: &GraphCall<'_>, stream: u64) -> Option<u64> {
    match stream {
        0 if call.function.is_per_thread => Some(PER_THREAD),
        0 | 1 => None,
        other => Some(other),
    }
}

/// A copy or fill returned while a stream was captured. One that is empty adds no node, and the last one is of another call.
#[cold]
#[inline(never)]
pub(super) fn moved(call: &GraphCall<'_>, stream: u64) {
    let (Some(stream), Some(does)) = (stream_of(call, stream), moves(call.function.name)) else {
        return;
    };
    asking(|hip| {
        if let Some(node) = hip.captured(stream) {
            know_move(hip, node, does, call.site);
        }
    });
}

/// What a function does if it copies or fills.
fn moves(name: &str) -> Option<Does> {
    if name.contains("Memset") {
        Some(Does::Fill)
    } else {
        name.contains("Memcpy").then_some(Does::Copy)
    }
}

/// A launch returned while a stream was captured.
#[cold]
#[inline(never)]
pub(super) fn launched(call: &GraphCall<'_>, stream: u64) {
    let Some(stream) = stream_of(call, stream) else { return };
    let [first, second, ..] = call.registers;
    let name = call.function.name;
    // A configuration comes before the function.
    let function = if name.ends_with("KernelExC") || name.ends_with("KernelEx") {
        second
    } else {
        first
    };
    let is_handle = name.contains("Module") || name.starts_with("hipDrv");
    asking(|hip| {
        let Some(node) = hip.captured(stream) else { return };
        let kernel = if is_handle {
            hip.of_handle(function)
        } else {
            hip.of_host_function(function)
        };
        know(hip, node, kernel, call.site);
    });
}

/// Runs `body` with HIP's functions, if sites are wanted; its calls are the collector's.
fn asking(body: impl FnOnce(&Hip)) {
    if !control::is_asked(wanted::SITES) {
        return;
    }
    let _errno = Errno::keep();
    if let Some(hip) = hip() {
        thread::aside(|| body(hip));
    }
}

/// A kernel node was made. Without a name it is not known, which is noticed when its graph is instantiated.
fn know(hip: &Hip, node: u64, kernel: Option<u64>, site: u16) {
    let Some(kind) = hip.kind(node) else { return };
    let mut nodes = lock(&NODES);
    match kernel {
        Some(kernel) if site != 0 && nodes.len() < MAX_NODES => {
            KERNEL_TYPE.store(kind, Ordering::Relaxed);
            let does = Does::Kernel(kernel);
            nodes.insert(node, Node { does, site });
        }
        _ => drop(nodes.remove(&node)),
    }
}

/// A node that copies or fills was made. If it is known already, it may be that of an earlier call, or of an earlier graph.
fn know_move(hip: &Hip, node: u64, does: Does, site: u16) {
    if is_kind(hip.kind(node), &KERNEL_TYPE) {
        return;
    }
    let mut nodes = lock(&NODES);
    let new = match nodes.get(&node) {
        None => Node { does, site },
        Some(_) => Node {
            does: Does::Unknown,
            site: 0,
        },
    };
    if nodes.len() < MAX_NODES {
        nodes.insert(node, new);
    }
}

/// Word of `func` in `hipKernelNodeParams`, and of these in `hipGraphNodeParams`, whose first word is the type.
const FUNCTION: usize = 3;
const PARAMETERS: usize = 2;
/// These types, in releases with `hipGraphAddNode`.
const NEW_KERNEL: u32 = 0;
const NEW_COPY: u32 = 1;
const NEW_FILL: u32 = 2;
const NEW_GRAPH: u32 = 4;
/// Nodes without work for a GPU, by what their type is above that of kernels: host functions, empty nodes, events.
const IDLE_TYPES: [u64; 4] = [3, 5, 6, 7];

/// A call that changes graphs begins.
#[cold]
pub(super) fn changes(call: &GraphCall<'_>) {
    let [first, ..] = call.registers;
    match call.function.name {
        "hipGraphDestroy" => asking(|hip| forget(hip, &mut lock(&NODES), first, 0)),
        "hipGraphDestroyNode" => drop(lock(&NODES).remove(&first)),
        _ => {}
    }
}

/// A call that changes graphs has returned without an error.
#[cold]
pub(super) fn changed(call: &GraphCall<'_>) {
    let [first, second, _, _, fifth, _] = call.registers;
    match call.function.name {
        "hipGraphAddKernelNode" => added(call, call.behind(4, FUNCTION)),
        "hipGraphAddMemcpyNode"
        | "hipGraphAddMemcpyNode1D"
        | "hipGraphAddMemcpyNodeFromSymbol"
        | "hipGraphAddMemcpyNodeToSymbol"
        | "hipGraphAddMemsetNode"
        | "hipDrvGraphAddMemcpyNode"
        | "hipDrvGraphAddMemsetNode" => added_move(call, moves(call.function.name).unwrap_or(Does::Unknown)),
        "hipGraphAddChildGraphNode" => contained(call, fifth),
        "hipGraphAddNode" => match call.behind(4, 0).map(|word| word as u32) {
            Some(NEW_KERNEL) => added(call, call.behind(4, PARAMETERS + FUNCTION)),
            Some(NEW_COPY) => added_move(call, Does::Copy),
            Some(NEW_FILL) => added_move(call, Does::Fill),
            Some(NEW_GRAPH) => contained(call, call.behind(4, PARAMETERS).unwrap_or(0)),
            _ => {}
        },
        "hipGraphClone" => asking(|hip| {
            if let Some(clone) = call.behind(0, 0) {
                copied(hip, &mut lock(&NODES), second, clone, 0);
            }
        }),
        "hipGraphKernelNodeSetParams" => asking(|hip| {
            let kernel = call
                .behind(1, FUNCTION)
                .and_then(|function| hip.of_host_function(function));
            let mut nodes = lock(&NODES);
            match (kernel, nodes.get_mut(&first)) {
                (Some(kernel), Some(node)) => node.does = Does::Kernel(kernel),
                _ => drop(nodes.remove(&first)),
            }
        }),
        "hipGraphNodeSetParams" => drop(lock(&NODES).remove(&first)),
        "hipGraphInstantiate" | "hipGraphInstantiateWithFlags" | "hipGraphInstantiateWithParams" => {
            if let Some(executable) = call.behind(0, 0) {
                asking(|hip| instantiated(hip, executable, second));
            }
        }
        "hipGraphExecUpdate" => asking(|hip| instantiated(hip, first, second)),
        "hipGraphExecKernelNodeSetParams" => asking(|hip| {
            let kernel = call
                .behind(2, FUNCTION)
                .and_then(|function| hip.of_host_function(function));
            let known = lock(&NODES).get(&second).map(|node| node.does);
            if kernel.is_none() || kernel.map(Does::Kernel) != known {
                doubt(first);
            }
        }),
        "hipGraphExecDestroy" => {
            let mut all = EXECUTABLES.write().unwrap_or_else(PoisonError::into_inner);
            let gone = all.remove(&first);
            drop(all);
            drop(gone);
        }
        "hipGraphDestroy" | "hipGraphDestroyNode" => {}
        // Other changes of an executable graph.
        _ => doubt(first),
    }
}

/// A kernel node was added.
fn added(call: &GraphCall<'_>, function: Option<u64>) {
    let Some(node) = call.behind(0, 0) else { return };
    asking(|hip| {
        let kernel = function.and_then(|function| hip.of_host_function(function));
        know(hip, node, kernel, call.site);
    });
}

/// A node that copies or fills was added: its handle is new.
fn added_move(call: &GraphCall<'_>, does: Does) {
    let Some(node) = call.behind(0, 0) else { return };
    let site = call.site;
    asking(|_| {
        let mut nodes = lock(&NODES);
        if nodes.len() < MAX_NODES {
            nodes.insert(node, Node { does, site });
        }
    });
}

/// A node with a copy of a graph was added.
fn contained(call: &GraphCall<'_>, graph: u64) {
    let Some(node) = call.behind(0, 0) else { return };
    asking(|hip| {
        if let Some(kind) = hip.kind(node) {
            GRAPH_TYPE.store(kind, Ordering::Relaxed);
        }
        if let Some(copy) = hip.child(node) {
            copied(hip, &mut lock(&NODES), graph, copy, 0);
        }
    });
}

fn is_kind(kind: Option<u64>, of: &AtomicU64) -> bool {
    kind.is_some_and(|kind| kind == of.load(Ordering::Relaxed))
}

/// Whether a node of this kind has no work for a GPU.
fn is_idle(kind: Option<u64>) -> bool {
    let of_kernels = KERNEL_TYPE.load(Ordering::Relaxed);
    kind.is_some_and(|kind| of_kernels != 0 && IDLE_TYPES.contains(&kind.wrapping_sub(of_kernels)))
}

/// HIP copied a graph, node by node.
fn copied(hip: &Hip, known: &mut BTreeMap<u64, Node>, graph: u64, copy: u64, depth: usize) {
    let (Some(from), Some(to)) = (hip.nodes(graph), hip.nodes(copy)) else {
        return;
    };
    let kinds = |nodes: &[u64]| nodes.iter().map(|node| hip.kind(*node)).collect::<Vec<_>>();
    let kinds_of_copy = kinds(&to);
    let is_alike = kinds(&from) == kinds_of_copy;
    for ((from, to), kind) in from.into_iter().zip(to).zip(kinds_of_copy) {
        known.remove(&to);
        if is_alike
            && known.len() < MAX_NODES
            && let Some(node) = known.get(&from).copied()
        {
            known.insert(to, node);
        }
        if depth < MAX_DEPTH
            && is_kind(kind, &GRAPH_TYPE)
            && let (Some(from), Some(to)) = (hip.child(from), hip.child(to))
        {
            copied(hip, known, from, to, depth + 1);
        }
    }
}

/// A graph is about to be destroyed.
fn forget(hip: &Hip, known: &mut BTreeMap<u64, Node>, graph: u64, depth: usize) {
    for node in hip.nodes(graph).unwrap_or_default() {
        let has_work = known.remove(&node).is_some();
        if !has_work
            && depth < MAX_DEPTH
            && is_kind(hip.kind(node), &GRAPH_TYPE)
            && let Some(child) = hip.child(node)
        {
            forget(hip, known, child, depth + 1);
        }
    }
}

/// Sites of the nodes with one kernel, one for each node.
#[derive(Clone, Default)]
struct Sites {
    /// In the order of the nodes, if that is known.
    sites: Vec<u16>,
    is_ordered: bool,
}

impl Sites {
    fn is_one_site(&self) -> bool {
        self.sites.windows(2).all(|pair| pair.first() == pair.last())
    }
}

/// Work of a node, or of several together.
#[derive(Clone, Default)]
struct Work {
    /// Kernels by the hash of their name.
    kernels: BTreeMap<u64, Sites>,
    /// All nodes with work, in their order if that is known.
    nodes: Vec<Node>,
    is_ordered: bool,
}

impl Work {
    fn of(node: Node) -> Self {
        let mut kernels = BTreeMap::new();
        if let Does::Kernel(kernel) = node.does {
            let sites = Sites {
                sites: vec![node.site],
                is_ordered: true,
            };
            kernels.insert(kernel, sites);
        }
        Self {
            kernels,
            nodes: vec![node],
            is_ordered: true,
        }
    }
}

/// The site of all nodes that do this; 0 if there are several, or nodes of which this is not known.
fn site_of_all<'n>(nodes: impl Iterator<Item = &'n Node>, does: Does) -> u16 {
    let mut found = None;
    for node in nodes {
        if node.does == Does::Unknown || node.does == does && found.is_some_and(|site| site != node.site) {
            return 0;
        }
        if node.does == does {
            found = Some(node.site);
        }
    }
    found.unwrap_or(0)
}

/// A graph was instantiated, or an executable graph got the parameters of another one.
fn instantiated(hip: &Hip, executable: u64, graph: u64) {
    let work = analysed(hip, &lock(&NODES), graph, 0).filter(|work| !work.nodes.is_empty());
    let new = work.map(|work| Arc::new(Executable::new(work)));
    let mut all = EXECUTABLES.write().unwrap_or_else(PoisonError::into_inner);
    let old = match new {
        Some(new) => all.insert(executable, new),
        None => all.remove(&executable),
    };
    drop(all);
    drop(old);
}

/// The work of a graph; none if one of its kernels was not seen when its node was made.
fn analysed(hip: &Hip, known: &BTreeMap<u64, Node>, graph: u64, depth: usize) -> Option<Work> {
    let nodes = hip.nodes(graph)?;
    let mut works: Vec<Work> = Vec::with_capacity(nodes.len());
    for node in &nodes {
        let kind = hip.kind(*node);
        works.push(match known.get(node) {
            Some(node) => Work::of(*node),
            None if is_kind(kind, &KERNEL_TYPE) || depth == MAX_DEPTH => return None,
            None if is_kind(kind, &GRAPH_TYPE) => analysed(hip, known, hip.child(*node)?, depth + 1)?,
            None if is_idle(kind) => Work::default(),
            None => Work::of(Node {
                does: Does::Unknown,
                site: 0,
            }),
        });
    }
    let edges = hip.edges(graph)?;
    Some(together(&nodes, &edges, &works))
}

/// What nodes launch together.
fn together(nodes: &[u64], edges: &[(u64, u64)], works: &[Work]) -> Work {
    let order = Order::of(nodes, edges);
    let kernels: BTreeSet<u64> = works.iter().flat_map(|work| work.kernels.keys().copied()).collect();
    let mut steps = 0;
    let mut of_kernel = |kernel: u64| {
        let of_node = |at: usize| works.get(at).and_then(|work| work.kernels.get(&kernel));
        let with: Vec<&Sites> = (0..nodes.len()).filter_map(of_node).collect();
        if let [only] = with[..] {
            return only.clone();
        }
        let mut all = Sites {
            sites: with.iter().flat_map(|sites| sites.sites.iter().copied()).collect(),
            is_ordered: false,
        };
        steps += nodes.len() + edges.len();
        if all.is_one_site() || steps > MAX_STEPS || with.iter().any(|sites| !sites.is_ordered) {
            return all;
        }
        let weight = |at: usize| of_node(at).map_or(0, |sites| sites.sites.len());
        let in_order = order.as_ref().and_then(|order| order.line(all.sites.len(), &weight));
        if let Some(line) = in_order {
            let sites = line.into_iter().filter_map(of_node);
            all = Sites {
                sites: sites.flat_map(|sites| sites.sites.iter().copied()).collect(),
                is_ordered: true,
            };
        }
        all
    };
    let kernels = kernels.into_iter().map(|kernel| (kernel, of_kernel(kernel))).collect();
    let count = works.iter().map(|work| work.nodes.len()).sum();
    let weight = |at: usize| works.get(at).map_or(0, |work| work.nodes.len());
    let are_ordered = works.iter().all(|work| work.is_ordered || work.nodes.is_empty());
    let line = order
        .as_ref()
        .filter(|_| are_ordered)
        .and_then(|order| order.line(count, &weight));
    let is_ordered = line.is_some();
    let places = line.unwrap_or_else(|| (0..works.len()).collect());
    let of_places = places.into_iter().filter_map(|at| works.get(at));
    Work {
        kernels,
        nodes: of_places.flat_map(|work| work.nodes.iter().copied()).collect(),
        is_ordered,
    }
}

/// The nodes of a graph in an order in which each is behind those that it depends on.
struct Order {
    /// Positions of nodes.
    sorted: Vec<usize>,
    /// Positions of the nodes behind each node.
    next: Vec<Vec<usize>>,
}

impl Order {
    /// None if the edges are not those of a graph that can be executed.
    fn of(nodes: &[u64], edges: &[(u64, u64)]) -> Option<Self> {
        let place: BTreeMap<u64, usize> = nodes.iter().copied().zip(0..).collect();
        let mut next = vec![Vec::new(); nodes.len()];
        let mut before = vec![0usize; nodes.len()];
        for (from, to) in edges {
            let (from, to) = (*place.get(from)?, *place.get(to)?);
            next.get_mut(from)?.push(to);
            *before.get_mut(to)? += 1;
        }
        let mut sorted: Vec<usize> = (0..nodes.len()).filter(|at| before.get(*at) == Some(&0)).collect();
        let mut done = 0;
        while let Some(at) = sorted.get(done).copied() {
            done += 1;
            for to in next.get(at)? {
                let left = before.get_mut(*to)?;
                *left -= 1;
                if *left == 0 {
                    sorted.push(*to);
                }
            }
        }
        (done == nodes.len()).then_some(Self { sorted, next })
    }

    /// The nodes with a weight, if a path leads through all of them; `total` is the sum of the weights.
    fn line(&self, total: usize, weight: &dyn Fn(usize) -> usize) -> Option<Vec<usize>> {
        // The heaviest path to each node, with it.
        let mut heaviest = vec![0usize; self.sorted.len()];
        let mut line = Vec::new();
        let mut most = 0;
        for at in &self.sorted {
            let own = weight(*at);
            let here = heaviest.get_mut(*at)?;
            *here += own;
            let here = *here;
            if own > 0 {
                line.push((here, *at));
                most = most.max(here);
            }
            for to in self.next.get(*at)? {
                let there = heaviest.get_mut(*to)?;
                *there = here.max(*there);
            }
        }
        line.sort_unstable();
        (most == total).then(|| line.into_iter().map(|found| found.1).collect())
    }
}

/// From now on the kernels of this executable graph have the site of its launch.
fn doubt(executable: u64) {
    let all = EXECUTABLES.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(executable) = all.get(&executable) {
        executable.is_doubted.store(1, Ordering::Relaxed);
    }
}

/// A kernel of an executable graph.
struct Kernel {
    /// Hash of its name.
    name: u64,
    nodes: Sites,
    /// Number of its dispatches in the launch in progress.
    seen: AtomicU64,
}

/// Sites of fills and copies.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Moves {
    fill: u16,
    copy: u16,
}

impl Moves {
    fn of<'n>(nodes: impl Iterator<Item = &'n Node> + Clone) -> Self {
        Self {
            fill: site_of_all(nodes.clone(), Does::Fill),
            copy: site_of_all(nodes, Does::Copy),
        }
    }

    const fn of_kind(self, is_fill: bool) -> u16 {
        if is_fill { self.fill } else { self.copy }
    }
}

/// Fills and copies between two kernels, and the kernel behind them.
struct Stretch {
    moves: Moves,
    kernel: u64,
}

/// The stretches of nodes in order.
fn stretches(nodes: &[Node]) -> Vec<Stretch> {
    let is_kernel = |node: &Node| matches!(node.does, Does::Kernel(_));
    let parts = nodes.split_inclusive(is_kernel).map(|part| Stretch {
        moves: Moves::of(part.iter()),
        kernel: match part.last().map(|node| node.does) {
            Some(Does::Kernel(name)) => name,
            _ => 0,
        },
    });
    parts.collect()
}

/// An executable graph.
struct Executable {
    /// By name.
    kernels: Vec<Kernel>,
    /// Fills and copies, if all of a kind have one site.
    moves: Moves,
    /// Empty if the nodes are in no order.
    stretches: Vec<Stretch>,
    /// Number of kernels in the launch in progress, which is the stretch it has come to; [`LOST`] if that is not known.
    stretch: AtomicU64,
    /// Kernel objects, and the positions of their kernels plus one; [`OTHER`], [`FILL`] or [`COPY`] for none of the graph's.
    objects: Box<[[AtomicU64; 2]]>,
    /// 1: what was found out does not hold.
    is_doubted: AtomicU64,
}

/// A kernel object that no node has, and those of the run-time that fill and copy.
const OTHER: u64 = u64::MAX;
const FILL: u64 = u64::MAX - 1;
const COPY: u64 = u64::MAX - 2;
/// No stretch, however many kernels follow.
const LOST: u64 = u64::MAX / 2;

/// What a dispatch is.
enum Found<'e> {
    Kernel(&'e Kernel),
    Move { is_fill: bool },
    Other,
    Unknown,
}

impl Executable {
    fn new(work: Work) -> Self {
        let moves = Moves::of(work.nodes.iter());
        let stretches = if work.is_ordered {
            stretches(&work.nodes)
        } else {
            Vec::new()
        };
        let kernels = work.kernels.into_iter().map(|(name, nodes)| Kernel {
            name,
            nodes,
            seen: AtomicU64::new(0),
        });
        let kernels: Vec<Kernel> = kernels.collect();
        // Several GPUs have a kernel object each.
        let places = (kernels.len() * 4).next_power_of_two().max(64);
        let empty = || [AtomicU64::new(0), AtomicU64::new(0)];
        Self {
            kernels,
            moves,
            stretches,
            stretch: AtomicU64::new(0),
            objects: (0..places).map(|_| empty()).collect(),
            is_doubted: AtomicU64::new(0),
        }
    }

    /// What a dispatch of a kernel object is.
    fn found(&self, object: u64) -> Found<'_> {
        let mask = self.objects.len() - 1;
        // Objects are 64 bytes long.
        let mut at = (object >> 6) as usize & mask;
        for _ in 0..self.objects.len() {
            let Some([key, value]) = self.objects.get(at) else {
                break;
            };
            match key.load(Ordering::Acquire) {
                0 => return self.find(object, key, value),
                known if known == object => return self.with_place(value.load(Ordering::Acquire)),
                _ => at = (at + 1) & mask,
            }
        }
        Found::Unknown
    }

    fn with_place(&self, place: u64) -> Found<'_> {
        match place {
            OTHER => Found::Other,
            FILL => Found::Move { is_fill: true },
            COPY => Found::Move { is_fill: false },
            // Another thread is about to write it, for 0.
            place => (place as usize)
                .checked_sub(1)
                .and_then(|at| self.kernels.get(at))
                .map_or(Found::Unknown, Found::Kernel),
        }
    }

    #[cold]
    fn find(&self, object: u64, key: &AtomicU64, value: &AtomicU64) -> Found<'_> {
        let Some(name) = symbol::name_of(object) else {
            return Found::Unknown;
        };
        let at = self.kernels.binary_search_by_key(&name, |kernel| kernel.name);
        let place = match at {
            Ok(at) => at as u64 + 1,
            Err(_) if name == symbol::FILLS => FILL,
            Err(_) if name == symbol::COPIES => COPY,
            Err(_) => OTHER,
        };
        if key
            .compare_exchange(0, object, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            value.store(place, Ordering::Release);
        }
        self.with_place(place)
    }

    /// The site of the node that the next dispatch of a kernel object comes from.
    fn next(&self, object: u64) -> Option<u16> {
        match self.found(object) {
            Found::Kernel(kernel) => {
                self.pass(kernel.name);
                let number = kernel.seen.fetch_add(1, Ordering::Relaxed);
                if kernel.nodes.is_one_site() {
                    return kernel.nodes.sites.first().copied();
                }
                let sites = kernel.nodes.is_ordered.then_some(&kernel.nodes.sites)?;
                sites.get(number as usize).copied()
            }
            Found::Move { is_fill } => self.next_move(is_fill),
            Found::Other => None,
            Found::Unknown => {
                self.stretch.store(LOST, Ordering::Relaxed);
                None
            }
        }
    }

    /// A kernel ends a stretch.
    fn pass(&self, kernel: u64) {
        let at = self.stretch.fetch_add(1, Ordering::Relaxed) as usize;
        if self.stretches.get(at).is_none_or(|stretch| stretch.kernel != kernel) {
            self.stretch.store(LOST, Ordering::Relaxed);
        }
    }

    /// The site of the next fill or copy.
    fn next_move(&self, is_fill: bool) -> Option<u16> {
        let here = self.stretches.get(self.stretch.load(Ordering::Relaxed) as usize);
        let of_stretch = here.map_or(0, |stretch| stretch.moves.of_kind(is_fill));
        let sites = [self.moves.of_kind(is_fill), of_stretch];
        sites.into_iter().find(|site| *site != 0)
    }

    /// Compares the number of dispatches with that of nodes.
    fn check(&self) {
        let seen = |kernel: &Kernel| kernel.seen.load(Ordering::Relaxed);
        // While dispatches are not recorded, none is seen.
        let is_seen = self.kernels.iter().any(|kernel| seen(kernel) > 0);
        if is_seen
            && self
                .kernels
                .iter()
                .any(|kernel| seen(kernel) != kernel.nodes.sites.len() as u64)
        {
            self.is_doubted.store(1, Ordering::Relaxed);
        }
    }
}

/// A launch of a graph in progress.
struct Launch {
    /// Its correlation id; 0: there is none.
    correlation: AtomicU64,
    executable: AtomicU64,
    /// Number of threads that read `executable`.
    readers: AtomicU64,
}

static IN_PROGRESS: [Launch; LAUNCHES] = [const {
    Launch {
        correlation: AtomicU64::new(0),
        executable: AtomicU64::new(0),
        readers: AtomicU64::new(0),
    }
}; LAUNCHES];
/// Number of launches in progress.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The launch of an executable graph begins.
pub(super) fn launch_begins(handle: u64, correlation: u64) {
    let executable = (0..TRIES).find_map(|_| EXECUTABLES.try_read().ok()?.get(&handle).cloned());
    let Some(executable) = executable.filter(|known| known.is_doubted.load(Ordering::Relaxed) == 0) else {
        return;
    };
    for launch in &IN_PROGRESS {
        let place = &launch.correlation;
        if place.load(Ordering::Relaxed) == 0
            && place
                .compare_exchange(0, CHANGING, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        {
            for kernel in &executable.kernels {
                kernel.seen.store(0, Ordering::Relaxed);
            }
            executable.stretch.store(0, Ordering::Relaxed);
            launch
                .executable
                .store(Arc::into_raw(executable) as u64, Ordering::Relaxed);
            COUNT.fetch_add(1, Ordering::Relaxed);
            place.store(correlation, Ordering::SeqCst);
            return;
        }
    }
}

/// It has returned.
pub(super) fn launch_ends(correlation: u64, is_done: bool) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let is_it = |launch: &&Launch| launch.correlation.load(Ordering::Relaxed) == correlation;
    let Some(launch) = IN_PROGRESS.iter().find(is_it) else {
        return;
    };
    launch.correlation.store(CHANGING, Ordering::SeqCst);
    let is_read = || launch.readers.load(Ordering::SeqCst) > 0;
    let mut spins = 0;
    while is_read() && spins < SPINS {
        std::hint::spin_loop();
        spins += 1;
    }
    let address = launch.executable.swap(0, Ordering::Relaxed) as *const Executable;
    // A thread that was interrupted while it reads keeps the memory.
    if !is_read() && !address.is_null() {
        // SAFETY: from `Arc::into_raw` in `launch_begins`, taken once; readers that come now see another correlation id.
        let executable = unsafe { Arc::from_raw(address) };
        if is_done {
            executable.check();
        }
    }
    COUNT.fetch_sub(1, Ordering::Relaxed);
    launch.correlation.store(0, Ordering::Release);
}

/// The site of a dispatch: that of its node if it is one of a graph's, and known, else that of its call.
#[inline(always)]
pub(crate) fn site_of(correlation: u64, kernel_object: u64, site: u16) -> u16 {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return site;
    }
    site_of_node(correlation, |executable| executable.next(kernel_object)).unwrap_or(site)
}

/// The same for a copy that the run-time requests by a function of HSA.
#[inline]
pub(crate) fn site_of_copy(correlation: u64, site: u16) -> u16 {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return site;
    }
    site_of_node(correlation, |executable| executable.next_move(false)).unwrap_or(site)
}

#[cold]
#[inline(never)]
fn site_of_node(correlation: u64, next: impl FnOnce(&Executable) -> Option<u16>) -> Option<u16> {
    let is_it = |launch: &&Launch| launch.correlation.load(Ordering::Relaxed) == correlation;
    let launch = IN_PROGRESS
        .iter()
        .find(is_it)
        .filter(|_| correlation != 0 && correlation != CHANGING)?;
    launch.readers.fetch_add(1, Ordering::SeqCst);
    let mut found = None;
    if launch.correlation.load(Ordering::SeqCst) == correlation {
        let address = launch.executable.load(Ordering::Relaxed) as *const Executable;
        // SAFETY: `launch_ends` drops it after the correlation id has changed and the readers have gone.
        found = unsafe { address.as_ref() }.and_then(next);
    }
    launch.readers.fetch_sub(1, Ordering::SeqCst);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kernel: u64, site: u16) -> Work {
        let does = Does::Kernel(kernel);
        Work::of(Node { does, site })
    }

    fn fill(site: u16) -> Work {
        let does = Does::Fill;
        Work::of(Node { does, site })
    }

    fn copy(site: u16) -> Work {
        let does = Does::Copy;
        Work::of(Node { does, site })
    }

    /// Sites of kernel 1, if their order is known.
    fn ordered(nodes: &[u64], edges: &[(u64, u64)], works: &[Work]) -> Option<Vec<u16>> {
        let work = together(nodes, edges, works);
        let sites = work.kernels.get(&1).cloned().unwrap_or_default();
        sites.is_ordered.then_some(sites.sites)
    }

    #[test]
    fn nodes_on_one_path_have_an_order() {
        let works = [node(1, 30), node(2, 7), node(1, 10), Work::default(), node(1, 20)];
        let nodes = [50, 40, 30, 20, 10];
        // The last of the list is the first to run; an empty node is between.
        let chain = [(10, 20), (20, 30), (30, 40), (40, 50)];
        assert_eq!(ordered(&nodes, &chain, &works), Some(vec![20, 10, 30]));
        // Another path beside it, on which the kernel is not.
        let beside = [(10, 30), (30, 50), (10, 40), (40, 50)];
        assert_eq!(ordered(&nodes, &beside, &works), Some(vec![20, 10, 30]));
    }

    #[test]
    fn nodes_beside_each_other_have_none() {
        let works = [node(1, 1), node(1, 2), node(1, 3)];
        assert_eq!(ordered(&[1, 2, 3], &[(1, 2), (1, 3)], &works), None);
        assert_eq!(ordered(&[1, 2, 3], &[], &works), None);
        // Edges to nodes that are not there, and in a circle.
        assert_eq!(ordered(&[1, 2, 3], &[(1, 2), (2, 9)], &works), None);
        assert_eq!(ordered(&[1, 2, 3], &[(1, 2), (2, 3), (3, 1)], &works), None);
        // With one site no order is needed.
        let same = together(&[1, 2], &[], &[node(1, 5), node(1, 5)]);
        assert!(same.kernels.get(&1).is_some_and(Sites::is_one_site));
    }

    #[test]
    fn graphs_in_graphs_are_in_the_order_of_their_nodes() {
        let inside = together(&[1, 2], &[(1, 2)], &[node(1, 11), node(1, 12)]);
        let works = [node(1, 1), inside.clone(), node(1, 3)];
        assert_eq!(ordered(&[1, 2, 3], &[(1, 2), (2, 3)], &works), Some(vec![1, 11, 12, 3]));
        let unordered = together(&[1, 2], &[], &[node(1, 11), node(1, 12)]);
        assert_eq!(ordered(&[1, 2], &[(1, 2)], &[node(1, 1), unordered]), None);
        assert_eq!(ordered(&[1, 2], &[], &[node(1, 1), inside]), None);
    }

    #[test]
    fn another_number_of_dispatches_than_nodes_is_noticed() {
        let executable = Executable::new(together(&[1, 2], &[(1, 2)], &[node(1, 4), node(1, 5)]));
        let see = |times: usize| {
            for kernel in &executable.kernels {
                kernel.seen.store(times as u64, Ordering::Relaxed);
            }
            executable.check();
            executable.is_doubted.load(Ordering::Relaxed)
        };
        assert_eq!((see(0), see(2), see(1)), (0, 0, 1));
    }

    /// The sites of what follows each number of kernels: fills, copies.
    fn moves(work: Work, kernels: &[u64]) -> Vec<(u16, u16)> {
        let executable = Executable::new(work);
        let here = || [true, false].map(|is_fill| executable.next_move(is_fill).unwrap_or(0));
        let mut found = vec![here()];
        for kernel in kernels {
            executable.pass(*kernel);
            found.push(here());
        }
        found.into_iter().map(|[fill, copy]| (fill, copy)).collect()
    }

    #[test]
    fn fills_and_copies_are_between_their_kernels() {
        let works = [
            copy(1),
            fill(2),
            node(1, 9),
            copy(3),
            copy(3),
            node(2, 9),
            fill(4),
            fill(5),
            copy(6),
        ];
        let nodes: Vec<u64> = (1..=9).collect();
        let chain: Vec<(u64, u64)> = (1..9).map(|at| (at, at + 1)).collect();
        let whole = || together(&nodes, &chain, &works);
        assert_eq!(moves(whole(), &[1, 2]), [(2, 1), (0, 3), (0, 6)]);
        // Another kernel than the next one: nothing is known any more.
        assert_eq!(moves(whole(), &[2, 2]), [(2, 1), (0, 0), (0, 0)]);
        // More kernels than nodes.
        assert_eq!(moves(whole(), &[1, 2, 1]), [(2, 1), (0, 3), (0, 6), (0, 0)]);
        // Without an order only what all have in common is known.
        let beside = together(&[1, 2, 3], &[(1, 2)], &[fill(7), node(1, 9), fill(7)]);
        assert_eq!(moves(beside, &[1]), [(7, 0), (7, 0)]);
        let beside = together(&[1, 2, 3], &[(1, 2)], &[fill(7), node(1, 9), fill(8)]);
        assert_eq!(moves(beside, &[1]), [(0, 0), (0, 0)]);
    }

    #[test]
    fn a_node_that_was_not_seen_may_fill_or_copy() {
        let unknown = Work::of(Node {
            does: Does::Unknown,
            site: 0,
        });
        let works = [fill(1), copy(2), node(1, 9), unknown, fill(1)];
        let nodes = [1, 2, 3, 4, 5];
        let chain = [(1, 2), (2, 3), (3, 4), (4, 5)];
        assert_eq!(moves(together(&nodes, &chain, &works), &[1]), [(1, 2), (0, 0)]);
        assert_eq!(moves(together(&nodes, &[], &works), &[1]), [(0, 0), (0, 0)]);
    }

    #[test]
    fn graphs_in_graphs_have_their_fills_in_order() {
        let inside = together(&[1, 2, 3], &[(1, 2), (2, 3)], &[fill(1), node(1, 9), fill(2)]);
        let works = [node(2, 9), inside, node(2, 9), fill(3)];
        let chain = [(1, 2), (2, 3), (3, 4)];
        let found = moves(together(&[1, 2, 3, 4], &chain, &works), &[2, 1, 2]);
        assert_eq!(found, [(0, 0), (1, 0), (2, 0), (3, 0)]);
        let unordered = together(&[1, 2], &[], &[fill(1), node(1, 9)]);
        let works = [node(2, 9), unordered, fill(3)];
        let found = moves(together(&[1, 2, 3], &[(1, 2), (2, 3)], &works), &[2, 1]);
        assert_eq!(found, [(0, 0); 3]);
    }
}
