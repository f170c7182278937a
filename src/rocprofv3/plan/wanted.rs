//! Which records a job wants, and how they are written.

use crate::counters::request::iterations;
use crate::export::options::{AgentIndex, Choice, KernelChoice, KernelNames, Kind, Kinds, Layout};
use crate::rocprofv3::period;
use crate::rocprofv3::settings::{Settings, usage_error};
use crate::rocprofv3::table::{RUNTIME, SYSTEM, truth, typed};
use anyhow::{Context, Result, anyhow};
use regex::Regex;

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

/// What a job wants.
///
/// Errors: an option has no such value.
pub(super) fn choice(settings: &Settings) -> Result<Choice> {
    Ok(Choice {
        kinds: domains(settings),
        counted: check_kernels(settings)?,
        layout: layout(settings)?,
        // Upstream cuts a name whether or not it is to stay mangled.
        kernel_names: match (settings.on("mangled_kernels"), settings.on("truncate_kernels")) {
            (_, true) => KernelNames::Truncated,
            (true, false) => KernelNames::Mangled,
            (false, false) => KernelNames::Demangled,
        },
        rename: settings.switch("kernel_rename").unwrap_or(settings.on("kokkos_trace")),
        agents: agents(settings)?,
        stats: settings.on("stats"),
        by_queue: settings.on("group_by_queue"),
        periods: period::read(settings)?,
        // Upstream's tests of periods ask for it.
        log_periods: std::env::var("ROCPROF_COLLECTION_PERIOD_TESTING").is_ok_and(|word| truth(&word) == Some(true)),
        output_config: settings.on("output_config"),
        ..Choice::default()
    })
}

/// The domains that are switched on, alone or with others.
fn domains(settings: &Settings) -> Kinds {
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
    kinds
}

fn layout(settings: &Settings) -> Result<Layout> {
    match settings.value("layout") {
        None | Some("new") => Ok(Layout::New),
        Some("seed") => Ok(Layout::Seed),
        Some(word) => Err(usage_error(format!("--layout takes new or seed, not '{word}'"))),
    }
}

fn agents(settings: &Settings) -> Result<AgentIndex> {
    match settings.value("agent_index") {
        None | Some("relative") => Ok(AgentIndex::Relative),
        Some("absolute") => Ok(AgentIndex::Absolute),
        Some("type-relative") => Ok(AgentIndex::TypeRelative),
        Some(word) => {
            let message = format!("--agent-index takes absolute, relative or type-relative, not '{word}'");
            Err(usage_error(message))
        }
    }
}

/// Kernels are chosen for counters alone, as upstream does it; what is wrong is reported all the same.
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

fn pattern(name: &str, text: &str) -> Result<Regex> {
    Regex::new(text).map_err(|error| no_pattern(name, text, &error))
}

/// What to say of a text that is no regular expression.
pub(super) fn no_pattern(name: &str, text: &str, error: &regex::Error) -> anyhow::Error {
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

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{
        HipCompiler, HipRuntime, HsaAmd, HsaCore, HsaFinalizer, HsaImage, Kernel, Marker, MemoryAllocation, MemoryCopy,
        Rccl, RocDecode, RocJpeg, ScratchMemory,
    };

    fn chosen(line: &str) -> Choice {
        let words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
        choice(&Settings::parse(&words).unwrap().0).unwrap()
    }

    #[test]
    fn options_want_their_domains() {
        let wanted = |line: &str| {
            let kinds = chosen(line).kinds;
            Kind::ALL
                .into_iter()
                .filter(|kind| kinds.has(*kind))
                .collect::<Vec<Kind>>()
        };
        // rocprofv3 has no calls of MPI.
        let upstream: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Mpi).collect();
        assert_eq!(wanted("--sys-trace"), upstream);
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
        let names = |line: &str| chosen(line).kernel_names;
        assert_eq!(names("-s -M"), KernelNames::Mangled);
        assert_eq!(names("-s -M -T"), KernelNames::Truncated);
        let is_renamed = |line: &str| chosen(line).rename;
        assert!(is_renamed("--kokkos-trace") && !is_renamed("--kokkos-trace --kernel-rename=no"));
    }
}
