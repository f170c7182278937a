//! What a job counts and samples, and for which kernels.

use crate::counters::request::{Groups, Mode, Request, definitions, iterations, kernels, names};
use crate::pc_sampling::SamplingRequest;
use crate::rocprofv3::settings::{Settings, usage_error};
use crate::rocprofv3::table::{REPLAY, truth};
use anyhow::{Context, Result, bail};
use std::path::Path;

/// The counters of a job, and for which kernels.
///
/// Errors: what is asked for is not available, or is no counter, kernel or range.
pub(super) fn request(settings: &Settings) -> Result<Option<Request>> {
    check_replay(settings)?;
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

/// The counters of a job; none when it names none.
///
/// Errors: a word is no counter's name, or counters come both ways.
pub(in crate::rocprofv3) fn counters(settings: &Settings) -> Result<Option<Groups>> {
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
    Ok(Some(Request::sampling(SamplingRequest::new(method, unit, interval)?)))
}

/// The definitions of counters that come with a job.
///
/// Errors: the file cannot be used.
pub(in crate::rocprofv3) fn definitions_of(settings: &Settings) -> Result<Option<String>> {
    let path = settings.value("extra_counters").map(Path::new);
    path.map(definitions).transpose()
}

/// Counters that do not fit at once are counted in runs of the program, not in repetitions of a kernel.
fn check_replay(settings: &Settings) -> Result<()> {
    match settings.value("replay_mode") {
        None | Some("application") => Ok(()),
        Some("kernel") => Err(usage_error(format!("--replay-mode kernel is not available: {REPLAY}"))),
        Some(word) => Err(usage_error(format!("--replay-mode takes application, not '{word}'"))),
    }
}
