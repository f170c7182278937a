//! Kernels of graphs, in the releases before 5.3.1: the call that launches a graph does not contain its kernels.
//!
//! When a graph is instantiated, its nodes are queried for their kernels. The run-time's start order is unknown, so a
//! graph whose kernels have different names has no name.

use super::function::function;
use super::kernel_name;
use crate::loader;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

type GetNodes = unsafe extern "C" fn(graph: *mut c_void, nodes: *mut *mut c_void, count: *mut usize) -> c_int;
type GetType = unsafe extern "C" fn(node: *mut c_void, kind: *mut u32) -> c_int;
type GetParameters = unsafe extern "C" fn(node: *mut c_void, parameters: *mut [u64; 8]) -> c_int;

/// `hipGraphNodeTypeKernel` and `hipGraphNodeTypeGraph` of these releases; later ones number from 0.
const KERNEL: u32 = 1;
const GRAPH: u32 = 5;
/// Word of `hipKernelNodeParams` that holds the host function's address; the structure has 56 bytes.
const FUNCTION: usize = 3;

struct Functions {
    nodes: GetNodes,
    kind: GetType,
    parameters: GetParameters,
}

/// Kernel names of instantiated graphs, by the address of the instance; names are permanent.
static NAMES: LazyLock<Mutex<HashMap<usize, usize>>> = LazyLock::new(Mutex::default);

fn names() -> MutexGuard<'static, HashMap<usize, usize>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is calling HIP for this library. Such calls are not the program's.
pub(super) fn is_asking() -> bool {
    IS_ASKING.get()
}

fn functions() -> Option<&'static Functions> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    let load = || {
        let (library, _) = loader::loaded("libamdhip64.so").into_iter().next()?;
        Some(Functions {
            nodes: function!(library, c"hipGraphGetNodes")?,
            kind: function!(library, c"hipGraphNodeGetType")?,
            parameters: function!(library, c"hipGraphKernelNodeGetParams")?,
        })
    };
    FUNCTIONS.get_or_init(load).as_ref()
}

/// A graph was instantiated.
pub(super) fn instantiated(instance: *mut c_void, graph: *mut c_void) {
    IS_ASKING.set(true);
    let name = only_name(graph);
    IS_ASKING.set(false);
    match name {
        Some(name) => names().insert(instance as usize, name as usize),
        None => names().remove(&(instance as usize)),
    };
}

/// The name of all kernels of the instance, if they share one.
pub(super) fn name(instance: *mut c_void) -> Option<*const c_char> {
    names().get(&(instance as usize)).map(|name| *name as *const c_char)
}

fn only_name(graph: *mut c_void) -> Option<*const c_char> {
    let functions = functions()?;
    let mut count = 0;
    // SAFETY: the program's graph; the number is writable.
    if graph.is_null() || unsafe { (functions.nodes)(graph, null_mut(), &raw mut count) } != 0 {
        return None;
    }
    let mut nodes = vec![null_mut(); count];
    // SAFETY: the array has that many elements.
    if unsafe { (functions.nodes)(graph, nodes.as_mut_ptr(), &raw mut count) } != 0 {
        return None;
    }
    let mut only = None;
    for node in nodes {
        let mut kind = u32::MAX;
        // SAFETY: a node of the graph; the type is writable.
        if unsafe { (functions.kind)(node, &raw mut kind) } != 0 || kind == GRAPH {
            return None;
        }
        if kind == KERNEL {
            let mut parameters = [0; 8];
            // SAFETY: a kernel node; the buffer is larger than the parameters.
            if unsafe { (functions.parameters)(node, &raw mut parameters) } != 0 {
                return None;
            }
            let name = kernel_name::of_function(parameters[FUNCTION] as *const c_void)?;
            if only.is_some_and(|only| only != name) {
                return None;
            }
            only = Some(name);
        }
    }
    only
}
