//! The tables of the demo: GPUs, calls and kernels of a training loop.

/// GPUs of the model.
pub(super) const GPUS: usize = 2;
/// Queues of a GPU: compute, copies, collective.
pub(super) const STREAMS: usize = 3;

/// Operations by number, named by facts as a run-time's are.
pub(super) const OPERATIONS: [&str; 12] = [
    "hipLaunchKernel",
    "hipMemcpyAsync",
    "hipStreamSynchronize",
    "hipEventRecord",
    "hipStreamWaitEvent",
    "hipSetDevice",
    "hipMemcpy",
    "hipGetLastError",
    "hipEventQuery",
    "hipMalloc",
    "hipFree",
    "hipGraphLaunch",
];
pub(super) const LAUNCH: u16 = 0;
pub(super) const MEMCPY_ASYNC: u16 = 1;
pub(super) const SYNCHRONIZE: u16 = 2;
pub(super) const EVENT_RECORD: u16 = 3;
pub(super) const WAIT_EVENT: u16 = 4;
pub(super) const SET_DEVICE: u16 = 5;
pub(super) const MEMCPY: u16 = 6;
pub(super) const MALLOC: u16 = 9;
pub(super) const FREE: u16 = 10;
pub(super) const GRAPH_LAUNCH: u16 = 11;

/// A kernel of the model.
pub(super) struct Kernel {
    /// Mangled.
    pub(super) name: &'static str,
    /// Mean duration, ns.
    pub(super) mean: u64,
    /// Work-items.
    pub(super) grid: [u32; 3],
    /// Work-items of a work-group.
    pub(super) workgroup: [u16; 3],
    /// Bytes of LDS.
    pub(super) group_size: u32,
}

pub(super) const KERNELS: [Kernel; 9] = [
    Kernel {
        name: "_Z13embedding_fwdIDF16_EvPT_PKS0_PKii",
        mean: 84_000,
        grid: [65536, 1, 1],
        workgroup: [256, 1, 1],
        group_size: 0,
    },
    Kernel {
        name: "_Z14layer_norm_fwdIDF16_Li4096EEvPT_PKS0_S3_S3_f",
        mean: 55_000,
        grid: [262_144, 1, 1],
        workgroup: [256, 1, 1],
        group_size: 4096,
    },
    Kernel {
        name: "Cijk_Alik_Bljk_HHS_BH_MT256x128x64_MI32x32x8x1_SE_1LDSB0",
        mean: 541_000,
        grid: [131_072, 4, 1],
        workgroup: [256, 1, 1],
        group_size: 65536,
    },
    Kernel {
        name: "_Z13fmha_fwd_bf16ILi128ELb1EEvPvPKvS2_S2_if",
        mean: 562_000,
        grid: [49152, 16, 1],
        workgroup: [256, 1, 1],
        group_size: 32768,
    },
    Kernel {
        name: "_Z18elementwise_kernelILi4E8gelu_fwdEvPfPKfi",
        mean: 55_200,
        grid: [1_048_576, 1, 1],
        workgroup: [256, 1, 1],
        group_size: 0,
    },
    Kernel {
        name: "_Z13softmax_xentrIfEvPT_PKS0_PKii",
        mean: 121_000,
        grid: [32768, 1, 1],
        workgroup: [1024, 1, 1],
        group_size: 8192,
    },
    Kernel {
        name: "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI16x16x16x1_SE_1LDSB1",
        mean: 702_000,
        grid: [131_072, 8, 1],
        workgroup: [256, 1, 1],
        group_size: 49152,
    },
    Kernel {
        name: "_Z10adamw_stepIfEvPT_S1_S1_PKS0_fffffi",
        mean: 243_000,
        grid: [2_097_152, 1, 1],
        workgroup: [512, 1, 1],
        group_size: 0,
    },
    Kernel {
        name: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
        mean: 1_410_000,
        grid: [16384, 1, 1],
        workgroup: [512, 1, 1],
        group_size: 24576,
    },
];
pub(super) const EMBEDDING: usize = 0;
pub(super) const NORM: usize = 1;
pub(super) const GEMM: usize = 2;
pub(super) const ATTENTION: usize = 3;
pub(super) const GELU: usize = 4;
pub(super) const LOSS: usize = 5;
pub(super) const GEMM_BACKWARD: usize = 6;
pub(super) const ADAM: usize = 7;
pub(super) const ALL_REDUCE: usize = 8;
pub(super) const LAYERS: usize = 6;

/// The address of a kernel's descriptor.
pub(super) fn object(kernel: usize) -> u64 {
    0x7f00_0000_0000 + kernel as u64 * 64
}

/// The kernel behind it.
pub(super) fn kernel_of(object: u64) -> usize {
    ((object - 0x7f00_0000_0000) / 64) as usize
}
