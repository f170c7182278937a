//! Names of copy and memory operations, by rocprofiler-sdk's numbers.

use roctop_ring::record::{direction, memory};
use roctop_trace::item::Copy;

/// Directions of copies, by rocprofiler-sdk's operation number.
pub const DIRECTIONS: [&str; 5] = [
    "MEMORY_COPY_NONE",
    "MEMORY_COPY_HOST_TO_HOST",
    "MEMORY_COPY_HOST_TO_DEVICE",
    "MEMORY_COPY_DEVICE_TO_HOST",
    "MEMORY_COPY_DEVICE_TO_DEVICE",
];

/// Memory operations, by rocprofiler-sdk's number.
pub const ALLOCATIONS: [&str; 5] = [
    "MEMORY_ALLOCATION_NONE",
    "MEMORY_ALLOCATION_ALLOCATE",
    "MEMORY_ALLOCATION_VMEM_ALLOCATE",
    "MEMORY_ALLOCATION_FREE",
    "MEMORY_ALLOCATION_VMEM_FREE",
];

/// Scratch memory operations, by rocprofiler-sdk's number.
pub const SCRATCHES: [&str; 4] = [
    "SCRATCH_MEMORY_NONE",
    "SCRATCH_MEMORY_ALLOC",
    "SCRATCH_MEMORY_FREE",
    "SCRATCH_MEMORY_ASYNC_RECLAIM",
];

/// Whether an operation frees memory: rocprofv3 writes neither its agent nor its size.
pub const fn is_free(operation: u16) -> bool {
    matches!(operation, memory::FREE | memory::VMEM_FREE)
}

/// Name of a number; the first name for an unknown number.
pub fn name<'a>(names: &[&'a str], number: u16) -> &'a str {
    names.get(usize::from(number)).unwrap_or(&names[0])
}

/// Index of a copy's direction in [`DIRECTIONS`].
pub const fn direction_number(copy: &Copy) -> usize {
    match copy.direction {
        direction::H2H => 1,
        direction::H2D => 2,
        direction::D2H => 3,
        direction::D2D | direction::FILL => 4,
        _ => 0,
    }
}
