//! The options of rocprofv3: those of the seed's manual and those of rocprofiler-sdk 1.0.0 and later.

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// A truth value, which may be left out.
    Flag,
    /// One value.
    One,
    /// One value or more.
    Many,
    /// Values, or none.
    Any,
}

/// What becomes of it here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Here {
    /// It does what it does upstream.
    Works,
    /// It is taken and changes nothing, for this reason.
    Moot(&'static str),
    /// It does what it can; this is what is missing.
    Partly(&'static str),
    /// It is not available, for this reason.
    Refused(&'static str),
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// Long name, as an input file spells it.
    pub(super) name: &'static str,
    /// Letter, or a blank.
    pub(super) letter: char,
    /// What it takes.
    pub(super) takes: Takes,
    /// What becomes of it.
    pub(super) here: Here,
}

const fn row(name: &'static str, letter: char, takes: Takes, here: Here) -> Row {
    Row {
        name,
        letter,
        takes,
        here,
    }
}

use Here::{Moot, Partly, Refused, Works};
use Takes::{Any, Flag, Many, One};

const KOKKOS: &str = "taken as '--marker-trace --kernel-rename': roctop brings no connector to Kokkos, regions are \
recorded if KOKKOS_TOOLS_LIBS names Kokkos' roctx connector";
const EVENTS: &str = "roctop does not record the barriers of HIP's events; '--hip-trace' has the calls that make them";
const GRAPHS: &str = "roctop does not record graphs alone; '--hip-trace --kernel-trace' has their launches, in json and rocpd \
with the number of kernels of each";
pub(super) const REPLAY: &str =
    "roctop runs each kernel as often as the program does; each '--pmc' more runs the program once more";
const STREAMED: &str = "roctop does not sample counters while a kernel runs, which needs the GPU's streaming monitor; \
'--pmc' counts by kernel";
const DRIVER: &str = "roctop does not record the driver's own events, of pages and queues; '--memory-allocation-trace' has what \
the program allocates, '--memory-copy-trace' what it copies";
const OPENMP: &str = "roctop does not record OpenMP's own events; kernels and copies of its target regions are recorded \
by '--kernel-trace --memory-copy-trace'";
const THREAD_TRACE: &str = "roctop does not do thread traces, which need the GPU's SQTT and a decoder of its packets; \
'--pmc' counts by kernel";
const NO_BUFFER: &str = "traces are written to files, with no buffer that could be too small";
pub(super) const FOR_COUNTERS: &str =
    "it chooses kernels for counters, and none are asked for; 'roctop export --filter' chooses rows";
const AS_TYPED: &str = "the program is started by the name that was typed";
const NO_SDK: &str = "the rocprofiler SDK is looked for beside the run-time; ROCTOP_SDK names another";

/// All options.
pub(super) const TABLE: &[Row] = &[
    row("help", 'h', Flag, Works),
    row("version", 'v', Flag, Works),
    // Input and output.
    row("input", 'i', One, Works),
    row("output_file", 'o', One, Works),
    row("output_directory", 'd', One, Works),
    row("output_format", 'f', Many, Works),
    row("layout", ' ', One, Works),
    row("output_config", ' ', Flag, Works),
    row("log_level", ' ', One, Works),
    row("extra_counters", 'E', One, Works),
    // Groups of domains.
    row("runtime_trace", 'r', Flag, Works),
    row("sys_trace", 's', Flag, Works),
    // Domains.
    row("hip_trace", ' ', Flag, Works),
    row("hip_runtime_trace", ' ', Flag, Works),
    row("hip_compiler_trace", ' ', Flag, Works),
    row("hsa_trace", ' ', Flag, Works),
    row("hsa_core_trace", ' ', Flag, Works),
    row("hsa_amd_trace", ' ', Flag, Works),
    row("hsa_image_trace", ' ', Flag, Works),
    row("hsa_finalizer_trace", ' ', Flag, Works),
    row("marker_trace", ' ', Flag, Works),
    row("kernel_trace", ' ', Flag, Works),
    row("memory_copy_trace", ' ', Flag, Works),
    row("memory_allocation_trace", ' ', Flag, Works),
    row("scratch_memory_trace", ' ', Flag, Works),
    row("rccl_trace", ' ', Flag, Works),
    row("kokkos_trace", ' ', Flag, Partly(KOKKOS)),
    row("rocdecode_trace", ' ', Flag, Works),
    row("rocjpeg_trace", ' ', Flag, Works),
    row("kfd_trace", ' ', Flag, Refused(DRIVER)),
    row("kfd_page_migration_trace", ' ', Flag, Refused(DRIVER)),
    row("kfd_page_mapping_trace", ' ', Flag, Refused(DRIVER)),
    row("kfd_queue_trace", ' ', Flag, Refused(DRIVER)),
    row("kfd_dropped_events_trace", ' ', Flag, Refused(DRIVER)),
    row(
        "hipfile_trace",
        ' ',
        Flag,
        Refused("roctop does not record calls of hipFile; '--hip-trace' has the calls of HIP that it makes"),
    ),
    row("ompt_trace", ' ', Any, Refused(OPENMP)),
    row("hip_event_trace", ' ', Flag, Refused(EVENTS)),
    row("hip_graph_trace", ' ', Flag, Refused(GRAPHS)),
    row(
        "rocshmem_trace",
        ' ',
        Flag,
        Refused("roctop does not record calls of rocSHMEM; '--kernel-trace' has the kernels that call it"),
    ),
    // Counters and samples.
    row("pmc", ' ', Any, Works),
    row("pmc_groups", ' ', Many, Works),
    row("pmc_group_interval", ' ', One, Works),
    row("replay_mode", ' ', One, Works),
    row("kernel_replay_beta_enabled", ' ', Flag, Refused(REPLAY)),
    row("spm", ' ', Many, Refused(STREAMED)),
    row("spm_beta_enabled", ' ', Flag, Refused(STREAMED)),
    row("spm_sample_interval", ' ', One, Refused(STREAMED)),
    row("spm_sample_interval_unit", ' ', One, Refused(STREAMED)),
    row("list_metrics", ' ', Flag, Works),
    row("list_avail", 'L', Flag, Works),
    row("pc_sampling_beta_enabled", ' ', Flag, Works),
    row("pc_sampling_unit", ' ', One, Works),
    row("pc_sampling_method", ' ', One, Works),
    row("pc_sampling_interval", ' ', One, Works),
    // Afterwards.
    row("stats", ' ', Flag, Works),
    row("summary", 'S', Flag, Works),
    row("summary_per_domain", 'D', Flag, Works),
    row("summary_groups", ' ', Many, Works),
    row("summary_output_file", ' ', One, Works),
    row("summary_units", 'u', One, Works),
    // Names.
    row("mangled_kernels", 'M', Flag, Works),
    row("truncate_kernels", 'T', Flag, Works),
    row("kernel_rename", ' ', Flag, Works),
    row("agent_index", 'A', One, Works),
    row("group_by_queue", ' ', Flag, Works),
    // Which records.
    row("kernel_names", ' ', Many, Works),
    row("kernel_include_regex", ' ', One, Works),
    row("kernel_exclude_regex", ' ', One, Works),
    row("kernel_iteration_range", ' ', Many, Works),
    row("collection_period", 'P', Many, Works),
    row("collection_period_unit", ' ', One, Works),
    row("selected_regions", ' ', Flag, Works),
    row("selected_regions_ref_count", ' ', Flag, Works),
    row("profile_mpi_ranks", ' ', Many, Works),
    row("mpi_world_rank_variable", ' ', One, Works),
    row("mpi_world_size_variable", ' ', One, Works),
    row("minimum_output_data", ' ', One, Works),
    // Perfetto.
    row("perfetto_backend", ' ', One, Works),
    row("perfetto_buffer_size", ' ', One, Moot(NO_BUFFER)),
    row("perfetto_buffer_fill_policy", ' ', One, Moot(NO_BUFFER)),
    row("perfetto_shmem_size_hint", ' ', One, Moot(NO_BUFFER)),
    // The rest.
    row("preload", ' ', Any, Works),
    row("rocm_root", ' ', One, Moot(NO_SDK)),
    row("sdk_soversion", ' ', One, Moot(NO_SDK)),
    row("sdk_version", ' ', One, Moot(NO_SDK)),
    row(
        "disable_signal_handlers",
        ' ',
        Flag,
        Moot("roctop installs no signal handlers in the program"),
    ),
    // What upstream's own tests use.
    row("echo", ' ', Flag, Works),
    row("readlink", ' ', Flag, Moot(AS_TYPED)),
    row("realpath", ' ', Flag, Moot(AS_TYPED)),
    row(
        "suppress_marker_preload",
        ' ',
        Flag,
        Moot("ROC-TX needs no separate library"),
    ),
    row(
        "benchmark_mode",
        ' ',
        One,
        Refused(
            "roctop's own cost is measured by its benches (benches/cost.rs); without this option files are written as usual",
        ),
    ),
    row(
        "process_sync",
        ' ',
        Flag,
        Moot("the files are written when all processes have ended"),
    ),
    row("attach", 'p', One, Works),
    row("pid", ' ', One, Works),
    row("attach_duration_msec", ' ', One, Works),
    row(
        "attach_children",
        ' ',
        Flag,
        Moot("a session is recorded whole, with all its processes"),
    ),
    row(
        "attach_sync_output",
        ' ',
        Flag,
        Moot("the files are written when roctop ends"),
    ),
    // Thread traces.
    row("att", ' ', Flag, Refused(THREAD_TRACE)),
    row("advanced_thread_trace", ' ', Flag, Refused(THREAD_TRACE)),
    row("att_library_path", ' ', One, Refused(THREAD_TRACE)),
    row("att_target_cu", ' ', One, Refused(THREAD_TRACE)),
    row("att_simd_select", ' ', One, Refused(THREAD_TRACE)),
    row("att_buffer_size", ' ', One, Refused(THREAD_TRACE)),
    row("att_shader_engine_mask", ' ', One, Refused(THREAD_TRACE)),
    row("att_gpu_index", ' ', Many, Refused(THREAD_TRACE)),
    row("att_perfcounters", ' ', Many, Refused(THREAD_TRACE)),
    row("att_perfcounter_ctrl", ' ', One, Refused(THREAD_TRACE)),
    row("att_activity", ' ', One, Refused(THREAD_TRACE)),
    row("att_serialize_all", ' ', Flag, Refused(THREAD_TRACE)),
    row("att_perfcounter_target_only", ' ', Flag, Refused(THREAD_TRACE)),
    row("att_consecutive_kernels", ' ', One, Refused(THREAD_TRACE)),
    row("att_no_intercept", ' ', Flag, Refused(THREAD_TRACE)),
    row("att_no_detail", ' ', Flag, Refused(THREAD_TRACE)),
    row("att_resource_mode", ' ', One, Refused(THREAD_TRACE)),
];

/// Members of `--runtime-trace`.
pub(super) const RUNTIME: &[&str] = &[
    "hip_runtime_trace",
    "marker_trace",
    "kernel_trace",
    "memory_copy_trace",
    "memory_allocation_trace",
    "scratch_memory_trace",
    "rccl_trace",
    "rocdecode_trace",
    "rocjpeg_trace",
];
/// What else `--sys-trace` holds.
pub(super) const SYSTEM: &[&str] = &[
    "hip_compiler_trace",
    "hsa_core_trace",
    "hsa_amd_trace",
    "hsa_image_trace",
    "hsa_finalizer_trace",
];

/// The option of a name, with dashes or underscores.
pub(super) fn find(name: &str) -> Option<&'static Row> {
    let name = name.replace('-', "_");
    TABLE.iter().find(|row| row.name == name)
}

/// As it is typed.
pub(super) fn typed(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

/// A truth value as it is typed.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "y" | "yes" | "t" | "true" | "on" | "1" => Some(true),
        "n" | "no" | "f" | "false" | "off" | "0" => Some(false),
        _ => None,
    }
}
