//! Operations of copies and memory by the numbers and names that rocprofiler-sdk gives them.

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

/// Operations of memory, by rocprofiler-sdk's number.
pub const ALLOCATIONS: [&str; 5] = [
    "MEMORY_ALLOCATION_NONE",
    "MEMORY_ALLOCATION_ALLOCATE",
    "MEMORY_ALLOCATION_VMEM_ALLOCATE",
    "MEMORY_ALLOCATION_FREE",
    "MEMORY_ALLOCATION_VMEM_FREE",
];

/// Operations of scratch memory, by rocprofiler-sdk's number.
pub const SCRATCHES: [&str; 4] = [
    "SCRATCH_MEMORY_NONE",
    "SCRATCH_MEMORY_ALLOC",
    "SCRATCH_MEMORY_FREE",
    "SCRATCH_MEMORY_ASYNC_RECLAIM",
];

/// Whether an operation gives memory back: rocprofv3 tells neither its agent nor its size.
pub const fn is_free(operation: u16) -> bool {
    matches!(operation, memory::FREE | memory::VMEM_FREE)
}

/// A name by its number; the first for an unknown one.
pub fn name<'a>(names: &[&'a str], number: u16) -> &'a str {
    names.get(usize::from(number)).unwrap_or(&names[0])
}

/// Place of a copy's direction in [`DIRECTIONS`].
pub const fn direction_number(copy: &Copy) -> usize {
    match copy.direction {
        direction::H2H => 1,
        direction::H2D => 2,
        direction::D2H => 3,
        direction::D2D | direction::FILL => 4,
        _ => 0,
    }
}
