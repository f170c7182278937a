//! Names of copy and memory operations, by rocprofiler-sdk's numbers.

use roctop_ring::record::memory;

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
