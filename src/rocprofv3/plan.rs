//! What one job does: settings turned into choices, with everything wrong found before the program starts.

use super::output;
use super::settings::{Note, Settings, misuse};
use super::table::{FOR_COUNTERS, REPLAY, RUNTIME, SYSTEM, truth, typed};
use crate::counters::request::{Groups, Mode, Request, definitions, iterations, kernels, names};
use crate::export::Format;
use crate::export::choice::{AgentIndex, Choice, KernelChoice, KernelNames, Kind, Kinds, Layout};
use crate::export::summary::{self, Tables, Unit};
use crate::rank::{Rank, Ranks};
use crate::sampling::Wish;
use anyhow::{Context, Result, anyhow, bail};
use regex::Regex;
use std::ffi::OsString;
use std::path::Path;

/// A job.
pub(super) struct Plan {
    /// Counters to collect.
    pub(super) request: Option<Request>,
    pub(super) choice: Choice,
    pub(super) formats: Vec<Format>,
    /// With keys.
    pub(super) directory: String,
    /// With keys.
    pub(super) file: String,
    pub(super) tables: Tables,
    pub(super) summary_file: String,
    pub(super) least_bytes: u64,
    /// Libraries that are loaded before the collector.
    pub(super) preload: Vec<OsString>,
    /// Nothing is recorded before the program asks for it.
    pub(super) is_paused: bool,
    /// What the program pauses and resumes inside of other regions changes nothing.
    pub(super) counts_pauses: bool,
    /// This process's rank, and whether it is to be profiled.
    pub(super) rank: Rank,
    /// How much is told.
    pub(super) level: Level,
    /// Options without effect, and why.
    pub(super) moot: Vec<Note>,
}

/// How much is told on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// What goes wrong, and the files that were made.
    Error,
    /// Also what an option does not do.
    #[default]
    Warning,
    /// Also what is done: options and variables.
    Info,
}

impl Level {
    fn of(word: &str) -> Result<Self> {
        Ok(match word.to_ascii_lowercase().as_str() {
            "fatal" | "error" => Self::Error,
            "warning" => Self::Warning,
            "info" | "trace" | "env" | "config" => Self::Info,
            _ => {
                let told = format!("--log-level takes fatal, error, warning, info, trace, env or config, not '{word}'");
                return Err(misuse(told));
            }
        })
    }
}

/// Options by the kinds that they want.
const KINDS: [(&str, &str, Kind); 14] = [
    ("hip_runtime_trace", "hip_trace", Kind::HipRuntime),
    ("hip_compiler_trace", "hip_trace", Kind::HipCompiler),
    ("hsa_core_trace", "hsa_trace", Kind::HsaCore),
    ("hsa_amd_trace", "hsa_trace", Kind::HsaAmd),
    ("hsa_image_trace", "hsa_trace", Kind::HsaImage),
    ("hsa_finalizer_trace", "hsa_trace", Kind::HsaFinalizer),
    ("marker_trace", "", Kind::Marker),
    ("kernel_trace", "", Kind::Kernel),
    ("memory_copy_trace", "", Kind::MemoryCopy),
    ("memory_allocation_trace", "", Kind::MemoryAllocation),
    ("scratch_memory_trace", "", Kind::ScratchMemory),
    ("rccl_trace", "", Kind::Rccl),
    ("rocdecode_trace", "", Kind::RocDecode),
    ("rocjpeg_trace", "", Kind::RocJpeg),
];

/// Options that sum domains up.
const SUMS: [&str; 6] = [
    "stats",
    "summary",
    "summary_per_domain",
    "summary_groups",
    "summary_output_file",
    "summary_units",
];

impl Plan {
    /// Understands a job's settings; `pass` is the directory of one job among several.
    pub(super) fn new(settings: &Settings, pass: Option<&str>) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let set = |name: &str| settings.value(name).map(str::to_owned);
        let directory = set("output_directory").or_else(|| variable("ROCPROF_OUTPUT_PATH"));
        let mut directory = directory.unwrap_or_else(|| ".".to_owned());
        if let Some(pass) = pass {
            directory = format!("{directory}/{pass}");
        }
        let file = set("output_file").or_else(|| variable("ROCPROF_OUTPUT_FILE_NAME"));
        let (formats, unwritten) = output::formats(settings, variable("ROCPROF_OUTPUT_FORMAT"))?;
        output::check_perfetto(settings)?;
        check_replay(settings)?;
        let groups = settings
            .values("summary_groups")
            .iter()
            .map(|text| summary::group(text).map_err(|error| no_pattern("summary_groups", text, &error)));
        let tables = Tables {
            whole: settings.on("summary"),
            by_domain: settings.on("summary_per_domain"),
            groups: groups.collect::<Result<_>>()?,
            unit: match settings.value("summary_units") {
                None => Unit::default(),
                Some(word) => Unit::of(word)
                    .ok_or_else(|| misuse(format!("--summary-units takes sec, msec, usec or nsec, not '{word}'")))?,
            },
            indent: 4,
        };
        let least = settings.value("minimum_output_data").unwrap_or("0");
        let least: u64 = least
            .parse()
            .map_err(|_| misuse(format!("--minimum-output-data takes a number of KB, not '{least}'")))?;
        let counted = check_kernels(settings)?;
        let request = request(settings)?;
        let mut choice = choice(settings)?;
        choice.counted = counted;
        if request.is_some() && !choice.kinds.has(Kind::Kernel) {
            choice.kinds.set(Kind::Kernel, true);
            choice.counters_only = true;
        }
        // Without counters nothing chooses kernels, as upstream.
        let choosers = [
            "kernel_names",
            "kernel_include_regex",
            "kernel_exclude_regex",
            "kernel_iteration_range",
        ];
        let is_idle = request.is_none();
        let idle = choosers
            .into_iter()
            .filter(|name| is_idle && !settings.values(name).is_empty())
            .map(|name| (typed(name), FOR_COUNTERS));
        choice.config = output::config(settings);
        let counts = request.as_ref().is_some_and(|request| !request.is_empty());
        choice.config.insert("counter_collection".to_owned(), counts.into());
        choice
            .config
            .insert("raw_output_path".to_owned(), directory.as_str().into());
        let file = file.unwrap_or_else(|| "%hostname%/%pid%".to_owned());
        choice.config.insert("raw_output_file".to_owned(), file.as_str().into());
        let plan = Self {
            request,
            choice,
            formats,
            directory,
            file,
            tables,
            summary_file: set("summary_output_file").unwrap_or_else(|| "stderr".to_owned()),
            least_bytes: least.saturating_mul(1024),
            preload: preload(settings, variable("ROCPROF_PRELOAD"))?,
            is_paused: settings.on("selected_regions"),
            counts_pauses: settings.on("selected_regions_ref_count"),
            rank: ranks(settings)?.of(&variable),
            level: match set("log_level").or_else(|| variable("ROCPROF_LOG_LEVEL")) {
                Some(word) => Level::of(&word)?,
                None => Level::default(),
            },
            moot: settings.moot().chain(idle).chain(unwritten).collect(),
        };
        let is_set = |name: &&str| settings.value(name).is_some_and(|value| value != "false");
        let sums = SUMS.into_iter().find(is_set);
        if let Some(name) = sums.filter(|_| plan.is_idle()) {
            bail!(
                "Fatal error: No tracing options were enabled for {} option: it needs a domain to sum up, as --kernel-trace \
or --sys-trace",
                typed(name)
            );
        }
        Ok(plan)
    }

    /// True when no domain is wanted.
    pub(super) fn is_idle(&self) -> bool {
        self.choice.kinds == Kinds::NONE
    }

    pub(super) fn wants_hsa(&self) -> bool {
        let hsa = [Kind::HsaCore, Kind::HsaAmd, Kind::HsaImage, Kind::HsaFinalizer];
        hsa.iter().any(|kind| self.choice.kinds.has(*kind))
    }

    pub(super) const fn wants_summary(&self) -> bool {
        self.tables.whole || self.tables.by_domain || !self.tables.groups.is_empty()
    }
}

/// Libraries by their paths, or by names that the loader knows.
fn preload(settings: &Settings, usual: Option<String>) -> Result<Vec<OsString>> {
    let typed = settings.values("preload");
    let usual: Vec<String> = usual.into_iter().filter(|_| typed.is_empty()).collect();
    let words = typed.iter().chain(&usual).flat_map(|text| text.split([':', ' ']));
    let words = words.filter(|word| !word.is_empty());
    words
        .map(|word| {
            if word.contains('/') && !Path::new(word).exists() {
                bail!("--preload: there is no library {word}");
            }
            Ok(word.into())
        })
        .collect()
}

/// Which ranks are profiled, and which variables tell the rank.
fn ranks(settings: &Settings) -> Result<Ranks> {
    let set = |name: &str| settings.value(name).map(str::to_owned);
    let wanted = Ranks::stretches(&settings.values("profile_mpi_ranks").join(","));
    Ok(Ranks {
        rank: set("mpi_world_rank_variable"),
        size: set("mpi_world_size_variable"),
        wanted: wanted.map_err(|part| anyhow!("--profile-mpi-ranks takes ranks as 0-3,8, not '{part}'"))?,
    })
}

/// Counters that do not fit at once are counted in runs of the program, not in repetitions of a kernel.
fn check_replay(settings: &Settings) -> Result<()> {
    match settings.value("replay_mode") {
        None | Some("application") => Ok(()),
        Some("kernel") => Err(misuse(format!("--replay-mode kernel cannot be had: {REPLAY}"))),
        Some(word) => Err(misuse(format!("--replay-mode takes application, not '{word}'"))),
    }
}

fn pattern(name: &str, text: &str) -> Result<Regex> {
    Regex::new(text).map_err(|error| no_pattern(name, text, &error))
}

fn no_pattern(name: &str, text: &str, error: &regex::Error) -> anyhow::Error {
    // Its last line is the reason; those before it draw the place.
    let error = error.to_string();
    let reason = error.lines().last().unwrap_or("").trim_start_matches("error: ");
    let name = typed(name);
    if reason.contains("not supported") {
        return anyhow!(
            "{name}: '{text}' has what roctop's regular expressions cannot do, other than rocprofv3's: {reason}; kernels \
that are not wanted can be named by --kernel-exclude-regex"
        );
    }
    anyhow!("{name}: '{text}' is no regular expression: {reason}")
}

fn choice(settings: &Settings) -> Result<Choice> {
    let mut kinds = Kinds::NONE;
    let is_kokkos = settings.on("kokkos_trace");
    for (name, group, kind) in KINDS {
        // As upstream: an aggregate sets domains and groups that were not set, then a group its domains.
        let runtime = RUNTIME.contains(&name) && settings.on("runtime_trace");
        let system = (SYSTEM.contains(&name) || RUNTIME.contains(&name)) && settings.on("sys_trace");
        let grouped = settings.switch(group).unwrap_or(system);
        let implied = runtime || grouped || (is_kokkos && kind == Kind::Marker);
        kinds.set(kind, settings.switch(name).unwrap_or(implied));
    }
    Ok(Choice {
        kinds,
        layout: match settings.value("layout") {
            None | Some("new") => Layout::New,
            Some("seed") => Layout::Seed,
            Some(word) => return Err(misuse(format!("--layout takes new or seed, not '{word}'"))),
        },
        // Upstream cuts a name whether or not it is to stay mangled.
        kernel_names: match (settings.on("mangled_kernels"), settings.on("truncate_kernels")) {
            (_, true) => KernelNames::Truncated,
            (true, false) => KernelNames::Mangled,
            (false, false) => KernelNames::Demangled,
        },
        rename: settings.switch("kernel_rename").unwrap_or(is_kokkos),
        agents: match settings.value("agent_index") {
            None | Some("relative") => AgentIndex::Relative,
            Some("absolute") => AgentIndex::Absolute,
            Some("type-relative") => AgentIndex::TypeRelative,
            Some(word) => {
                let told = format!("--agent-index takes absolute, relative or type-relative, not '{word}'");
                return Err(misuse(told));
            }
        },
        stats: settings.on("stats"),
        by_queue: settings.on("group_by_queue"),
        periods: super::period::read(settings)?,
        // Upstream's tests of periods ask for it.
        log_periods: std::env::var("ROCPROF_COLLECTION_PERIOD_TESTING").is_ok_and(|word| truth(&word) == Some(true)),
        output_config: settings.on("output_config"),
        ..Choice::default()
    })
}

/// How a job samples program counters.
fn sampling(settings: &Settings) -> Result<Option<Request>> {
    let values = ["method", "unit", "interval"].map(|name| settings.value(&format!("pc_sampling_{name}")));
    let [Some(method), Some(unit), Some(interval)] = values else {
        if values.iter().any(Option::is_some) {
            bail!("PC sampling takes --pc-sampling-method, --pc-sampling-unit and --pc-sampling-interval together");
        }
        return Ok(None);
    };
    let usual = std::env::var("ROCPROFILER_PC_SAMPLING_BETA_ENABLED");
    let usual = usual.ok().and_then(|word| truth(&word)) == Some(true);
    if !settings.switch("pc_sampling_beta_enabled").unwrap_or(usual) {
        bail!("PC sampling is a beta of rocprofiler-sdk: it takes --pc-sampling-beta-enabled");
    }
    Ok(Some(Request::sampling(Wish::new(method, unit, interval)?)))
}

/// The counters of a job; none when it names none.
///
/// Errors: a word is no counter's name, or counters come both ways.
pub(super) fn counters(settings: &Settings) -> Result<Option<Groups>> {
    let one = names(settings.values("pmc"))?;
    let groups = settings.values("pmc_groups").iter();
    let groups = groups
        .map(|group| names(std::slice::from_ref(group)))
        .collect::<Result<Vec<_>>>()?;
    let rotation = match settings.value("pmc_group_interval") {
        None => 1,
        Some(text) => text
            .parse()
            .ok()
            .filter(|rotation| *rotation > 0)
            .with_context(|| format!("--pmc-group-interval takes a number of dispatches from 1, not '{text}'"))?,
    };
    if let Some(number) = groups.iter().position(Vec::is_empty) {
        bail!("--pmc-groups: group {} names no counter", number + 1);
    }
    match (one.is_empty(), groups.is_empty()) {
        (false, false) => bail!("--pmc and --pmc-groups exclude each other"),
        (false, true) => Ok(Some(one.into())),
        (true, false) => Ok(Some(Groups { groups, rotation })),
        (true, true) => Ok(None),
    }
}

/// The counters of a job, and for which kernels.
fn request(settings: &Settings) -> Result<Option<Request>> {
    let Some(counters) = counters(settings)? else {
        return sampling(settings);
    };
    let mut request = Request::new(Mode::Dispatch, counters);
    request.kernels = kernels(settings.values("kernel_names"))?;
    request.iterations = iterations(settings.values("kernel_iteration_range"))?;
    request.has_instances = true;
    request.definitions = definitions_of(settings)?;
    Ok(Some(request))
}

/// The definitions of counters that come with a job.
///
/// Errors: the file cannot be used.
pub(super) fn definitions_of(settings: &Settings) -> Result<Option<String>> {
    let path = settings.value("extra_counters").map(Path::new);
    path.map(definitions).transpose()
}

/// Kernels are chosen for counters alone, as upstream does it; what is wrong is told all the same.
fn check_kernels(settings: &Settings) -> Result<KernelChoice> {
    // An empty pattern chooses nothing, as upstream.
    let text = |name: &str| settings.value(name).filter(|text| !text.is_empty());
    let chosen = |name: &str| text(name).map(|text| pattern(name, text)).transpose();
    let choice = KernelChoice {
        include: chosen("kernel_include_regex")?,
        exclude: chosen("kernel_exclude_regex")?,
    };
    iterations(settings.values("kernel_iteration_range")).context("--kernel-iteration-range")?;
    Ok(choice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{
        HipCompiler, HipRuntime, HsaAmd, HsaCore, HsaFinalizer, HsaImage, Kernel, Marker, MemoryAllocation, MemoryCopy,
        Rccl, RocDecode, RocJpeg, ScratchMemory,
    };

    fn plan(line: &str) -> Result<Plan> {
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        Plan::new(&Settings::parse(&words)?.0, None)
    }

    #[test]
    fn options_want_their_domains() {
        let wanted = |line: &str| {
            let kinds = plan(line).unwrap().choice.kinds;
            Kind::ALL
                .into_iter()
                .filter(|kind| kinds.has(*kind))
                .collect::<Vec<Kind>>()
        };
        assert_eq!(wanted("--sys-trace"), Kind::ALL);
        assert_eq!(
            wanted("-r"),
            [
                HipRuntime,
                Marker,
                Kernel,
                MemoryCopy,
                MemoryAllocation,
                ScratchMemory,
                Rccl,
                RocDecode,
                RocJpeg
            ]
        );
        assert_eq!(wanted("--hip-trace"), [HipRuntime, HipCompiler]);
        assert_eq!(wanted("--hip-trace --hip-compiler-trace=0"), [HipRuntime]);
        assert_eq!(wanted("--hsa-trace"), [HsaCore, HsaAmd, HsaImage, HsaFinalizer]);
        assert_eq!(
            wanted("-s --hsa-trace=no"),
            [
                HipRuntime,
                HipCompiler,
                Marker,
                Kernel,
                MemoryCopy,
                MemoryAllocation,
                ScratchMemory,
                Rccl,
                RocDecode,
                RocJpeg
            ]
        );
        assert_eq!(wanted("--kernel-trace --hsa-amd-trace"), [HsaAmd, Kernel]);
        assert_eq!(wanted("--rccl-trace"), [Rccl]);
        // A group that is off takes nothing from the other aggregate, as upstream.
        assert_eq!(wanted("-r --hip-trace=no"), wanted("-r"));
        assert_eq!(wanted("-s -r --hip-trace=no --hsa-trace=no"), wanted("-r"));
        assert!(!wanted("-r --hip-runtime-trace=no").contains(&HipRuntime));
        assert_eq!(wanted("--kokkos-trace --kernel-trace"), [Marker, Kernel]);
        assert_eq!(wanted("--kokkos-trace --marker-trace=no"), []);
        assert_eq!(wanted("-M"), []);
    }

    #[test]
    fn names_of_kernels_are_as_upstream_when_options_meet() {
        let names = |line: &str| plan(line).unwrap().choice.kernel_names;
        assert_eq!(names("-s -M"), KernelNames::Mangled);
        assert_eq!(names("-s -M -T"), KernelNames::Truncated);
        let is_renamed = |line: &str| plan(line).unwrap().choice.rename;
        assert!(is_renamed("--kokkos-trace") && !is_renamed("--kokkos-trace --kernel-rename=no"));
        let moot = plan("--kokkos-trace").unwrap().moot;
        assert!(moot[0].0 == "--kokkos-trace" && moot[0].1.contains("KOKKOS_TOOLS_LIBS"));
    }

    #[test]
    fn otf2_is_left_out_of_other_formats() {
        let plan = plan("-s -f pftrace json OTF2 csv").unwrap();
        assert_eq!(plan.formats, [Format::Pftrace, Format::Json, Format::Csv]);
        assert_eq!(plan.moot[0].0, "--output-format otf2");
    }

    #[test]
    fn what_cannot_be_understood_is_told() {
        for (line, word) in [
            ("-f otf2", "otf2"),
            ("-s --replay-mode kernel", "'--pmc'"),
            ("-s --replay-mode all", "'all'"),
            ("-s --kernel-include-regex (?!scale)", "look-ahead"),
            ("-f xml", "xml"),
            ("-s --kernel-include-regex [", "--kernel-include-regex"),
            ("-s --kernel-iteration-range 3-1", "3-1"),
            ("-s --kernel-iteration-range x", "'x'"),
            ("-s --minimum-output-data -1", "-1"),
            ("-s --preload /nowhere/lib.so", "/nowhere/lib.so"),
            ("-s -u hours", "hours"),
            ("-s --agent-index best", "best"),
            ("--stats", "--kernel-trace"),
            ("-S", "No tracing options were enabled for --summary option"),
            ("-u sec", "for --summary-units option"),
            ("-s --perfetto-backend system", "inprocess"),
            ("-s --profile-mpi-ranks 0-3,x", "'x'"),
            ("-s --perfetto-buffer-size big", "'big'"),
            ("-s --perfetto-shmem-size-hint=-1", "'-1'"),
            ("-s --perfetto-buffer-fill-policy any", "discard or ring_buffer"),
            ("-s --sdk-soversion one", "'one'"),
            ("-s --summary-groups (", "unclosed group"),
        ] {
            let told = format!("{:#}", plan(line).map(|_| ()).unwrap_err());
            assert!(told.contains(word) && told.lines().count() == 1, "{line}: {told}");
        }
        assert!(plan("-s --kernel-iteration-range [1-3,7] 9").is_ok());
    }
}
