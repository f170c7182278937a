//! A preloadable replacement for the AMD GPU driver and packet processors, for tests.
//!
//! It replaces the amdgpu and KFD kernel driver (`/dev/kfd`, its topology files, the render nodes) and what the GPU
//! does with packets, so that the **real, unmodified** ROCm run-time works on a machine without a GPU:
//!
//! ```text
//! LD_PRELOAD=libemulated_gpu.so rocminfo
//! LD_PRELOAD=libemulated_gpu.so EMULATED_GPU_LOG=truth.%p.csv ./any_hip_program
//! ```
//!
//! Copies, fills, fences, polls, atomics and timestamps are real; signals and events wake real waiters. **Kernels are
//! not executed**: a dispatch takes its modelled time and changes no memory. Exceptions are the run-times' own copy and
//! fill kernels, which are executed natively, and kernels with a twin on the host. Not modelled: page faults (a wrong
//! GPU address faults the process), inter-process memory, and images. Performance counters are executed as the packets
//! request; waves and clocks are exact, all other events are synthetic.
//!
//! # Environment
//!
//! | variable | default | meaning |
//! | --- | --- | --- |
//! | `EMULATED_GPU_COUNT` | 1 | number of GPUs |
//! | `EMULATED_GPU_TARGET` | gfx906 | kind of GPU: gfx906, gfx90a, gfx942, gfx950, gfx1030, gfx1100, gfx1201 |
//! | `EMULATED_GPU_LARGE_BAR` | 0 | 1: the host may access all GPU memory, so HIP makes small copies with the CPU |
//! | `EMULATED_GPU_VRAM_MIB` | 16384 | memory of each GPU; allocations beyond it fail |
//! | `EMULATED_GPU_LOG` | none | path of the truth log, `%p` stands for the process id |
//! | `EMULATED_GPU_KERNEL_NS` | 5000 | duration of a kernel |
//! | `EMULATED_GPU_PER_WORKGROUP_NS` | 0 | added for each work-group |
//! | `EMULATED_GPU_BY_NAME` | none | `pattern=ns,…` in place of the constant: part of the mangled name, or a whole one with `*` |
//! | `EMULATED_GPU_JITTER` | 0 | percent by which a kernel's duration varies, up and down |
//! | `EMULATED_GPU_SEED` | 1 | seed of the jitter; a dispatch's place in its queue does the rest |
//! | `EMULATED_GPU_COPY_GBPS` | 12 | bandwidth of copies and fills, in 10^9 bytes a second |
//! | `EMULATED_GPU_COPY_LATENCY_NS` | 2000 | added to each copy and fill |
//! | `EMULATED_GPU_KERNELS` | none | library with host twins of kernels (`twin`): those have an effect on memory |
//! | `EMULATED_GPU_KFD_MINOR` | 15 | the driver interface's minor version; 14 hides virtual memory management |
//! | `EMULATED_GPU_CLOCK` | none | what the driver takes for the system clock: monotonic, `monotonic_raw`, realtime, or nanoseconds by which it is ahead of `CLOCK_BOOTTIME` |
//! | `EMULATED_GPU_COUNTER` | 100000000 | frequency of the GPU's counter in Hz; `@N` behind it: it shows N when a process first asks |
//! | `EMULATED_GPU_COPY_ENGINES` | 2 | copy engines of each GPU; 0: the run-times copy with their kernels |
//! | `EMULATED_GPU_LINKS` | 0 | 1: the GPUs have links to each other, by which they access each other's memory |
//! | `EMULATED_GPU_NUMA` | none | NUMA node of each GPU, a list: the machine then has as many nodes, and its CPUs are divided among them |
//! | `EMULATED_GPU_SENSORS` | 1 | 0: the driver has no files about load, clocks, power and temperatures |
//! | `EMULATED_GPU_EVENTS` | 4095 | events that a process may have; the run-times poll signals without one |
//! | `EMULATED_GPU_HABITS` | none | how packet processors of other makes work, a list: `headers` stay in taken packets, the read index moves `late` (at the completion), the `doorbell` says how far packets are taken, kernels of a queue are `serial` or begin when their packet is `parsed`, ahead of barriers, processors are `eager` (never nap) or `slow` (nap 5 ms), and `_exit` is an `exit` for everybody who shadows it |
//! | `EMULATED_GPU_TRACE` | none | path where each driver call is noted, to debug the emulation itself |
//!
//! # Faults
//!
//! Faults of hostile hardware and drivers (`fault`), each off by default.
//!
//! | variable | what goes wrong |
//! | --- | --- |
//! | `EMULATED_GPU_CACHEABLE` | the host sees completion signals in host memory without the driver's UNCACHED flag 5 ms late (`late`) or never (`never`) |
//! | `EMULATED_GPU_LOST_SIGNALS` | completion signals of compute queues never change: `foreign` (those that ROCr did not make), `file` (those in a file's pages that were put over memory of a pool) or `all`; `,every=N` strikes each n-th of them, `,after=N` spares the first |
//! | `EMULATED_GPU_LATE_SIGNALS` | the same signals change 5 ms late |
//! | `EMULATED_GPU_WRONG_TIMES` | `what=n,…`: the times that each n-th packet's kernel leaves in its signal: `swapped`, `endless` (end all ones), `ahead` (end in ten years), `first` (begin at tick 1), `unwritten` (no begin), `zero` (both), `stale` (both are those of the signal's last completion), `later` and `sooner` (both by 20 ms) |
//! | `EMULATED_GPU_WRONG_BARRIER_TIMES` | the same for packets that run no kernel |
//! | `EMULATED_GPU_TIMES_SHIFT_NS` | all times in signals are off by this many nanoseconds, copies' too |
//! | `EMULATED_GPU_TIMES_LATE_NS` | delay between a signal's value and its times |
//! | `EMULATED_GPU_CLOCK_JUMP` | `NS@MS`: each MS milliseconds the driver's system clock jumps by NS nanoseconds, forth and back, so conversions of ticks do |
//! | `EMULATED_GPU_DECLARED_COUNTER` | frequency in Hz that the driver declares for the GPU's counter, whatever `EMULATED_GPU_COUNTER` is; pairs of its clocks stay right |
//! | `EMULATED_GPU_BUSY_MS` | another process's kernels keep the compute queues waiting for this long after the process opened the driver |
//! | `EMULATED_GPU_EVICTION` | what happens when pages of user memory (pools in host memory are that) are unmapped or replaced: all queues of the process `stop` for 1 ms; with `hang` they never come back if one was busy; with `reset` the driver also sets the process's event of hardware exceptions |
//! | `EMULATED_GPU_POOLS` | `shared`: host memory of pools is mapped shared, as some releases do |
//!
//! Nothing is ever written to the program's output. The generated topology files are below the temporary directory, in
//! `emulated-gpu-UID/HASH`, one directory for each kind of machine.
//!
//! # The truth log
//!
//! One CSV row for each dispatch and copy, written before its completion signal, so that it survives any end of the
//! process: `kind` (dispatch, `sdma_copy`, `sdma_fill`), `queue` (the driver's number, in order of creation), `pid`,
//! `kernel_object`, `grid_*`, `wg_*`, `signal`, `index` (of the packet in its queue; of the copy in its queue),
//! `begin_ns` and `end_ns` (`CLOCK_BOOTTIME`), `begin_ticks` and `end_ticks` (GPU counter, by `CLOCK_MONOTONIC_RAW`),
//! `bytes`, `src`, `dst` (also of copy and fill kernels), `name` (mangled; empty for ROCr's own), `gpu`, `group_bytes`,
//! `private_bytes` (as in the packet), `barrier` (1 if the packet waits for all before it), `ring` (address of the
//! queue's ring: the value of `hsa_queue_t.base_address`).
//!
//! A row of kind `cacheable` names a completion `signal` of a compute queue in host memory without the UNCACHED flag:
//! its allocation begins at `src`, has `bytes`, and the driver's flags in `name`. Rows of kind `lost` and `late` name a
//! signal affected by a fault; one of kind `overdue` names a late one that changed at `end_ns` instead of `begin_ns`,
//! because the emulation itself got no CPU. A row of kind `eviction` describes `bytes` from `src` on that were unmapped
//! or replaced, in the user memory at `dst`. Its `name` is `busy` if a queue of the process had work then, else `idle`; it lasts as
//! long as the queues stood still.

mod aql;
mod blit;
mod clock;
mod counters;
mod dmabuf;
mod drm;
mod engine;
mod event;
mod fault;
mod guest;
mod holding;
mod interpose;
mod interpose_stat;
mod kfd;
mod memory;
mod model;
mod outbox;
mod path;
mod pm4;
mod process;
mod scratch;
mod sdma;
mod sensors;
mod symbol;
mod sys;
mod sysfs;
mod target;
mod topology;
mod trace;
mod truth_log;
mod twin;
