//! Where the kernels of a graph come from: the launch that was captured, or the call that added the node.
//!
//! HIP does not say which node a dispatch belongs to. A dispatch in a launch of a graph is matched by its kernel: if all
//! nodes with this kernel have one site, it is that one. If they have several, and edges put these nodes into one order,
//! HIP submits them in that order, and the dispatches of the kernel are counted. Otherwise the site stays the one of the
//! launch. A launch with another number of dispatches than the graph has nodes ends this for the executable graph.
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

/// Maximum number of kernel nodes that are known.
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

/// A kernel node.
#[derive(Clone, Copy)]
struct KernelNode {
    /// Hash of the kernel's name.
    kernel: u64,
    site: u16,
}

/// Kernel nodes by handle.
static NODES: Mutex<BTreeMap<u64, KernelNode>> = Mutex::new(BTreeMap::new());
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

/// A launch returned while a stream was captured.
#[cold]
#[inline(never)]
pub(super) fn launched(call: &GraphCall<'_>, stream: u64) {
    let stream = match stream {
        0 if call.function.is_per_thread => PER_THREAD,
        0 | 1 => return,
        other => other,
    };
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
            nodes.insert(node, KernelNode { kernel, site });
        }
        _ => drop(nodes.remove(&node)),
    }
}

/// Word of `func` in `hipKernelNodeParams`, and of these in `hipGraphNodeParams`, whose first word is the type.
const FUNCTION: usize = 3;
const PARAMETERS: usize = 2;
/// These types, in releases with `hipGraphAddNode`.
const NEW_KERNEL: u32 = 0;
const NEW_GRAPH: u32 = 4;

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
        "hipGraphAddChildGraphNode" => contained(call, fifth),
        "hipGraphAddNode" => match call.behind(4, 0).map(|word| word as u32) {
            Some(NEW_KERNEL) => added(call, call.behind(4, PARAMETERS + FUNCTION)),
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
                (Some(kernel), Some(node)) => node.kernel = kernel,
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
            let known = lock(&NODES).get(&second).map(|node| node.kernel);
            if kernel.is_none() || kernel != known {
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

/// HIP copied a graph, node by node.
fn copied(hip: &Hip, known: &mut BTreeMap<u64, KernelNode>, graph: u64, copy: u64, depth: usize) {
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
fn forget(hip: &Hip, known: &mut BTreeMap<u64, KernelNode>, graph: u64, depth: usize) {
    for node in hip.nodes(graph).unwrap_or_default() {
        let is_kernel = known.remove(&node).is_some();
        if !is_kernel
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

/// What a node launches: kernels by the hash of their name.
type Work = BTreeMap<u64, Sites>;

/// A graph was instantiated, or an executable graph got the parameters of another one.
fn instantiated(hip: &Hip, executable: u64, graph: u64) {
    let work = analysed(hip, &lock(&NODES), graph, 0).filter(|work| !work.is_empty());
    let new = work.map(|work| Arc::new(Executable::new(work)));
    let mut all = EXECUTABLES.write().unwrap_or_else(PoisonError::into_inner);
    let old = match new {
        Some(new) => all.insert(executable, new),
        None => all.remove(&executable),
    };
    drop(all);
    drop(old);
}

/// The kernels of a graph; none if one of its nodes was not seen when it was made.
fn analysed(hip: &Hip, known: &BTreeMap<u64, KernelNode>, graph: u64, depth: usize) -> Option<Work> {
    let nodes = hip.nodes(graph)?;
    let mut works: Vec<Work> = Vec::with_capacity(nodes.len());
    for node in &nodes {
        let kind = hip.kind(*node);
        works.push(match known.get(node) {
            Some(node) => {
                let site = Sites {
                    sites: vec![node.site],
                    is_ordered: true,
                };
                Work::from([(node.kernel, site)])
            }
            None if is_kind(kind, &KERNEL_TYPE) || depth == MAX_DEPTH => return None,
            None if is_kind(kind, &GRAPH_TYPE) => analysed(hip, known, hip.child(*node)?, depth + 1)?,
            None => Work::new(),
        });
    }
    let edges = hip.edges(graph)?;
    Some(together(&nodes, &edges, &works))
}

/// What nodes launch together.
fn together(nodes: &[u64], edges: &[(u64, u64)], works: &[Work]) -> Work {
    let order = Order::of(nodes, edges);
    let kernels: BTreeSet<u64> = works.iter().flat_map(|work| work.keys().copied()).collect();
    let mut steps = 0;
    let mut of_kernel = |kernel: u64| {
        let of_node = |at: usize| works.get(at).and_then(|work| work.get(&kernel));
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
    kernels.into_iter().map(|kernel| (kernel, of_kernel(kernel))).collect()
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

/// An executable graph.
struct Executable {
    /// By name.
    kernels: Vec<Kernel>,
    /// Kernel objects, and the positions of their kernels plus one; [`OTHER`] for none of the graph's.
    objects: Box<[[AtomicU64; 2]]>,
    /// 1: what was found out does not hold.
    is_doubted: AtomicU64,
}

/// A kernel object that no node has: of a fill or a copy.
const OTHER: u64 = u64::MAX;

impl Executable {
    fn new(work: Work) -> Self {
        let kernels = work.into_iter().map(|(name, nodes)| Kernel {
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
            objects: (0..places).map(|_| empty()).collect(),
            is_doubted: AtomicU64::new(0),
        }
    }

    /// The kernel that a kernel object belongs to.
    fn kernel(&self, object: u64) -> Option<&Kernel> {
        let mask = self.objects.len() - 1;
        // Objects are 64 bytes long.
        let mut at = (object >> 6) as usize & mask;
        for _ in 0..self.objects.len() {
            let [key, value] = self.objects.get(at)?;
            match key.load(Ordering::Acquire) {
                0 => return self.find(object, key, value),
                known if known == object => match value.load(Ordering::Acquire) {
                    0 | OTHER => return None,
                    place => return self.kernels.get(place as usize - 1),
                },
                _ => at = (at + 1) & mask,
            }
        }
        None
    }

    #[cold]
    fn find(&self, object: u64, key: &AtomicU64, value: &AtomicU64) -> Option<&Kernel> {
        let name = symbol::name_of(object)?;
        let place = self.kernels.binary_search_by_key(&name, |kernel| kernel.name).ok();
        if key
            .compare_exchange(0, object, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            value.store(place.map_or(OTHER, |place| place as u64 + 1), Ordering::Release);
        }
        self.kernels.get(place?)
    }

    /// The site of the node that the next dispatch of a kernel comes from.
    fn next(&self, object: u64) -> Option<u16> {
        let kernel = self.kernel(object)?;
        let number = kernel.seen.fetch_add(1, Ordering::Relaxed);
        if kernel.nodes.is_one_site() {
            return kernel.nodes.sites.first().copied();
        }
        let sites = kernel.nodes.is_ordered.then_some(&kernel.nodes.sites)?;
        sites.get(number as usize).copied()
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
    site_of_node(correlation, kernel_object).unwrap_or(site)
}

#[cold]
#[inline(never)]
fn site_of_node(correlation: u64, kernel_object: u64) -> Option<u16> {
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
        found = unsafe { address.as_ref() }.and_then(|executable| executable.next(kernel_object));
    }
    launch.readers.fetch_sub(1, Ordering::SeqCst);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kernel: u64, site: u16) -> Work {
        let sites = Sites {
            sites: vec![site],
            is_ordered: true,
        };
        Work::from([(kernel, sites)])
    }

    /// Sites of kernel 1, if their order is known.
    fn ordered(nodes: &[u64], edges: &[(u64, u64)], works: &[Work]) -> Option<Vec<u16>> {
        let work = together(nodes, edges, works);
        let sites = work.get(&1).cloned().unwrap_or_default();
        sites.is_ordered.then_some(sites.sites)
    }

    #[test]
    fn nodes_on_one_path_have_an_order() {
        let works = [node(1, 30), node(2, 7), node(1, 10), Work::new(), node(1, 20)];
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
        assert!(same.get(&1).is_some_and(Sites::is_one_site));
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
}
