//! Kernels that a call launches, by its arguments: releases before 5.3.1 put no name into a dispatch's record.

use super::kernel_name::{of_address, of_handle};
use super::{graph, name};
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

/// Offset of a call's arguments in `hip_api_data_t`.
const ARGUMENTS: usize = 16;
/// Offset of a launch's stream, after host function, grid, block, arguments, the first argument and shared memory.
const STREAM: usize = 56;
/// The same in `hipLaunchParams`, which has no first argument.
const STREAM_OF_LIST: usize = 48;
/// Bytes of `hipLaunchParams`; the number of launches follows the list's address and its first element.
const PARAMETERS: usize = 56;
const COUNT: usize = 8 + PARAMETERS;
/// Offset of the graph, after the address of an instance and the instance.
const GRAPH: usize = 16;
/// Maximum number of launches in a list, more than a machine has devices.
const MAX_DEVICES: usize = 64;

/// Meaning of a launch's first argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    /// A host function's address, followed by the stream.
    Address,
    /// Only a host function's address.
    AddressAlone,
    Handle,
    /// A list of launches, one per device.
    List,
    /// An instance of a graph.
    Graph,
    /// Where the instance's address is stored; launches nothing.
    Instance,
}

/// Calls that launch kernels in the releases before 5.3.1, and calls that define what a graph launches.
const LAUNCHES: [(&CStr, First); 12] = [
    (c"hipLaunchKernel", First::Address),
    (c"hipExtLaunchKernel", First::Address),
    (c"hipLaunchCooperativeKernel", First::Address),
    (c"hipLaunchByPtr", First::AddressAlone),
    (c"hipModuleLaunchKernel", First::Handle),
    (c"hipHccModuleLaunchKernel", First::Handle),
    (c"hipExtModuleLaunchKernel", First::Handle),
    (c"hipLaunchCooperativeKernelMultiDevice", First::List),
    (c"hipExtLaunchMultiKernelMultiDevice", First::List),
    (c"hipGraphLaunch", First::Graph),
    (c"hipGraphInstantiate", First::Instance),
    (c"hipGraphInstantiateWithFlags", First::Instance),
];

/// Their numbers in the loaded release.
fn launches() -> &'static [(u32, First)] {
    static KNOWN: OnceLock<Vec<(u32, First)>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let number = |(name, first): &(&CStr, First)| Some((name::call(name)?, *first));
        LAUNCHES.iter().filter_map(number).collect()
    })
}

fn first(op: u32) -> Option<First> {
    launches()
        .iter()
        .find(|(known, _)| *known == op)
        .map(|(_, first)| *first)
}

/// The numbers of these calls.
pub(super) fn operations() -> impl Iterator<Item = u32> {
    launches().iter().map(|(op, _)| *op)
}

/// Whether the call is one of these.
pub(super) fn is_launch(op: u32) -> bool {
    first(op).is_some()
}

/// Names of a call's kernels, in start order.
#[derive(Default)]
pub(super) struct Names {
    /// The only name, or the next of several.
    next: Option<*const c_char>,
    /// The other names, the last one first.
    others: Vec<*const c_char>,
}

impl Names {
    fn one(name: Option<*const c_char>) -> Self {
        Self {
            next: name,
            others: Vec::new(),
        }
    }

    /// The next kernel's name.
    pub(super) fn next(&mut self) -> Option<*const c_char> {
        let name = self.next;
        if let Some(other) = self.others.pop() {
            self.next = Some(other);
        }
        name
    }
}

/// The kernels that a call is about to launch.
///
/// # Safety
/// `data` is the run-time's structure of a call of `op` with its arguments.
pub(super) unsafe fn kernels(op: u32, data: *const c_void) -> Names {
    let arguments = data.wrapping_byte_add(ARGUMENTS);
    // SAFETY: the arguments have the layout of the call's row.
    unsafe {
        let address = arguments.cast::<*mut c_void>().read();
        match first(op) {
            Some(First::Address) => Names::one(of_launch(arguments, STREAM)),
            Some(First::AddressAlone) => Names::one(of_address(address, std::ptr::null_mut())),
            Some(First::Handle) => Names::one(of_handle(address)),
            Some(First::Graph) => Names::one(graph::name(address)),
            Some(First::List) if !address.is_null() => {
                let count = arguments.wrapping_byte_add(COUNT).cast::<i32>().read();
                let count = usize::try_from(count).unwrap_or(0).min(MAX_DEVICES);
                let mut others: Vec<_> = (0..count)
                    .filter_map(|number| of_launch(address.wrapping_byte_add(number * PARAMETERS), STREAM_OF_LIST))
                    .collect();
                others.reverse();
                let next = others.pop();
                Names { next, others }
            }
            _ => Names::default(),
        }
    }
}

/// Called at the call's return: a graph may have an instance now.
///
/// # Safety
/// As [`kernels`].
pub(super) unsafe fn returned(op: u32, data: *const c_void) {
    let arguments = data.wrapping_byte_add(ARGUMENTS);
    if first(op) == Some(First::Instance) {
        // SAFETY: by the contract; the call has stored the instance's address.
        unsafe {
            let instance = arguments.cast::<*const *mut c_void>().read();
            let graph = arguments.wrapping_byte_add(GRAPH).cast::<*mut c_void>().read();
            if let Some(instance) = instance.as_ref() {
                graph::instantiated(*instance, graph);
            }
        }
    }
}

/// The name from a host function's address and its stream.
///
/// # Safety
/// `launch` points to them.
unsafe fn of_launch(launch: *const c_void, stream: usize) -> Option<*const c_char> {
    // SAFETY: by the contract.
    unsafe {
        let stream = launch.wrapping_byte_add(stream).cast::<*mut c_void>().read();
        of_address(launch.cast::<*const c_void>().read(), stream)
    }
}
