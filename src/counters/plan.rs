//! `--pmc` and `roctop counters`: what is asked for, planned and listed.

use crate::cli;
use crate::counters::list::{Listed, list};
use crate::counters::request::{self, Groups, Mode, Request, iterations, kernels, names, no_empty};
use crate::counters::show::{self, Which};
use crate::export;
use crate::live::run::say;
use crate::model::Snapshot;
use crate::pc_sampling::SamplingRequest;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::io::Write;

/// The requests of a run, one for each pass; none when no counters are asked for. `passes` are those of its input file.
///
/// Errors: a counter that is not known, no library that counts.
pub fn requests(options: &cli::Counting, mut passes: Vec<Groups>) -> Result<Vec<Request>> {
    let mode = if options.pmc_device {
        Mode::Device
    } else {
        Mode::Dispatch
    };
    let definitions = options
        .extra_counters
        .as_deref()
        .map(request::definitions)
        .transpose()?;
    let typed = names(&options.pmc)?;
    if let Some(text) = &options.pc_sampling {
        if !typed.is_empty() || !passes.is_empty() {
            bail!("--pc-sampling excludes counters: the SDK does one of them at a time");
        }
        let request = Request::sampling(SamplingRequest::parse(text)?);
        check(&request)?;
        return Ok(vec![request]);
    }
    if !typed.is_empty() {
        if !passes.is_empty() {
            bail!("--pmc and --input exclude each other");
        }
        let mut request = Request::new(Mode::List, typed);
        request.definitions.clone_from(&definitions);
        passes = planned(&request)?.into_iter().map(Groups::from).collect();
    }
    let make = |counters: Groups| -> Result<Request> {
        if mode == Mode::Device && counters.groups.len() > 1 {
            bail!("--pmc-device: groups of counters take turns at dispatches, and whole GPUs have none");
        }
        let mut request = Request::new(mode, counters);
        request.kernels = kernels(&options.kernel_names)?;
        request.iterations = iterations(&options.kernel_iteration_range)?;
        no_empty(&request.iterations)?;
        request.interval = (1e6 / options.pmc_rate) as u64;
        request.definitions.clone_from(&definitions);
        if options.input.is_some() {
            keep_present(&mut request)?;
            check(&request)?;
        }
        Ok(request)
    };
    let mut requests = passes.into_iter().map(make).collect::<Result<Vec<_>>>()?;
    let is_asked = !requests.is_empty();
    requests.retain(|request| !request.is_empty());
    if is_asked && requests.is_empty() {
        bail!("counters: none is left");
    }
    Ok(requests)
}

/// Packs counters into passes, shown when there are several.
fn planned(request: &Request) -> Result<Vec<Vec<String>>> {
    let listed = list(request)?;
    refuse(&listed)?;
    let passes = listed.plan(&request.counters.groups.concat());
    if passes.len() > 1 {
        let mut text = Vec::new();
        show::plan(&passes, &mut text)?;
        for line in String::from_utf8_lossy(&text).lines() {
            say(line);
        }
    }
    Ok(passes)
}

/// Leaves out what is asked of GPUs that this machine has not, as rocprofv3 does, and says so: one input file serves
/// machines of several kinds.
pub fn keep_present(request: &mut Request) -> Result<()> {
    let device = |word: &str| {
        word.split_once(":device=")
            .and_then(|(_, number)| number.parse::<usize>().ok())
    };
    let mut own = Request::new(Mode::List, Vec::new());
    own.definitions.clone_from(&request.definitions);
    let words = request.counters.groups.iter().flatten();
    let bare = words.filter(|word| device(word).is_some());
    let bare = bare.filter_map(|word| word.split(':').next()).map(str::to_owned);
    own.counters = bare.collect::<Vec<String>>().into();
    if own.is_empty() {
        return Ok(());
    }
    let gpus = list(&own)?.gpus;
    // Where there is none at all, that is the message.
    let Some(last) = gpus.checked_sub(1) else { return Ok(()) };
    for group in &mut request.counters.groups {
        group.retain(|word| {
            let beyond = device(word).filter(|number| *number > last);
            if let Some(number) = beyond {
                say(&format!(
                    "counters: {word} is left out: there is no GPU {number}, the last is {last}"
                ));
            }
            beyond.is_none()
        });
    }
    request.counters.groups.retain(|group| !group.is_empty());
    Ok(())
}

/// Leaves out counters that no GPU here has, as rocprofv3 does, and says so: a list of counters is written for one kind of GPU and used
/// on others.
///
/// Errors: nothing counts here; why.
pub fn keep_known(request: &mut Request) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let mut unknown = Vec::new();
    for group in request.counters.groups.iter_mut().filter(|group| !group.is_empty()) {
        let mut own = Request::new(Mode::List, group.clone());
        own.definitions.clone_from(&request.definitions);
        let listed = list(&own)?;
        let present = listed.plan(group).concat();
        if present.is_empty() && known().is_err() {
            return refuse(&listed);
        }
        unknown.extend(group.extract_if(.., |word| !present.contains(word)));
    }
    request.counters.groups.retain(|group| !group.is_empty());
    if !unknown.is_empty() {
        say(&format!(
            "counters: left out, because no GPU here has them: {}",
            unknown.join(", ")
        ));
    }
    Ok(())
}

/// The names of all counters of this machine, each once.
///
/// Errors: nothing counts here; why.
pub fn known() -> Result<Vec<String>> {
    let listed = list(&Request::new(Mode::List, Vec::new()))?;
    let all = listed.agents.iter().flat_map(|one| &one.counters);
    let names: BTreeSet<String> = all.map(|counter| counter.name.to_string()).collect();
    if names.is_empty() {
        bail!("no counters: {}", listed.problems.join("; "));
    }
    Ok(names.into_iter().collect())
}

/// A request of these counters, separated by blanks or commas, for one run. Says nothing on the way.
///
/// Errors: one of them is not available, or they do not fit.
pub fn fitting(text: &str) -> Result<Request> {
    let asked = names(&[text.to_owned()])?;
    let listed = list(&Request::new(Mode::List, asked.clone()))?;
    if !listed.problems.is_empty() {
        bail!("counters: {}", listed.problems.join("; "));
    }
    let passes = listed.plan(&asked);
    if passes.len() > 1 {
        let lines: Vec<String> = passes.iter().map(|counters| counters.join(" ")).collect();
        bail!("they do not fit into one run: {}", lines.join(" | "));
    }
    Ok(Request::new(Mode::Dispatch, Groups::from(asked)))
}

/// Finds out before a program starts whether a request can be had, in one run.
///
/// Errors: it cannot; which counter, why, and what to do.
pub fn check(request: &Request) -> Result<()> {
    for group in &request.counters.groups {
        let mut own = Request::new(Mode::List, group.clone());
        own.definitions.clone_from(&request.definitions);
        let listed = list(&own)?;
        refuse(&listed)?;
        if let Some(wish) = &request.sampling {
            return offered(&listed, wish);
        }
        let passes = listed.plan(group);
        if passes.len() > 1 {
            let lines: Vec<String> = passes.iter().map(|counters| counters.join(" ")).collect();
            bail!(
                "counters: they do not fit into one run; name them as 'pmc:' lines of an input file: {}",
                lines.join(" | ")
            );
        }
    }
    Ok(())
}

/// Errors: no GPU samples so; what they offer, or why they offer nothing.
fn offered(listed: &Listed, wish: &SamplingRequest) -> Result<()> {
    let offers: Vec<_> = listed.agents.iter().flat_map(|one| &one.sampling).collect();
    if offers.iter().any(|offer| wish.is_offered(offer)) {
        return Ok(());
    }
    if offers.is_empty() {
        bail!("PC sampling is not available: {}", listed.no_sampling.join("; "));
    }
    let texts: Vec<String> = offers.iter().map(ToString::to_string).collect();
    bail!("PC sampling by {wish} is not offered; these are: {}", texts.join("; "))
}

fn refuse(listed: &Listed) -> Result<()> {
    let Some((last, others)) = listed.problems.split_last() else {
        return Ok(());
    };
    for problem in others {
        say(&format!("counters: {problem}"));
    }
    bail!("counters: {last}; without --pmc the program runs, and gauges are there")
}

/// `roctop counters --of`: what was counted in recordings.
pub fn counted(snapshot: &Snapshot, format: cli::CountersFormat) -> Result<u8> {
    if !super::report::write(snapshot, format, &mut std::io::stdout().lock())? {
        say("no counters were collected there; 'roctop record --pmc …' does");
        return Ok(1);
    }
    Ok(0)
}

/// `roctop counters`: what can be counted.
pub fn counters(options: &cli::Counters) -> Result<u8> {
    let mut out = std::io::stdout().lock();
    if options.metrics {
        show::metrics(&mut out)?;
        return Ok(0);
    }
    let asked = names(&options.names)?;
    let mut request = Request::new(Mode::List, asked.clone());
    request.definitions = options
        .extra_counters
        .as_deref()
        .map(request::definitions)
        .transpose()?;
    let listed = list(&request)?;
    if let Some(directory) = &options.directory {
        return files(&listed, directory, options.output.as_deref().unwrap_or("roctop")).map(|()| code(&listed));
    }
    match options.format {
        cli::CountersFormat::Json => writeln!(out, "{:#}", show::json(&listed, &asked))?,
        cli::CountersFormat::Csv => {
            show::csv(&listed, Which::Basic, &mut out)?;
            writeln!(out)?;
            show::csv(&listed, Which::Derived, &mut out)?;
        }
        cli::CountersFormat::Table => show::table(&listed, &mut out)?,
        cli::CountersFormat::Info => show::info(&listed, &mut out)?,
    }
    if !options.names.is_empty() && options.format != cli::CountersFormat::Json {
        show::plan(&listed.plan(&asked), &mut out)?;
    }
    for problem in &listed.problems {
        say(&format!("counters: {problem}"));
    }
    Ok(code(&listed))
}

fn code(listed: &Listed) -> u8 {
    u8::from(!listed.problems.is_empty())
}

/// The two files that rocprofv3 of ROCm 6.2 makes of a list.
pub fn files(listed: &Listed, directory: &std::path::Path, name: &str) -> Result<()> {
    export::prepare_directory(directory)?;
    for (ending, which) in [
        ("basic_metrics.csv", Which::Basic),
        ("derived_metrics.csv", Which::Derived),
    ] {
        let path = directory.join(format!("{name}_{ending}"));
        export::write_atomic(&path, |out| show::csv(listed, which, out))
            .with_context(|| format!("cannot write {}", path.display()))?;
        writeln!(std::io::stdout(), "{}", path.display())?;
    }
    for problem in &listed.problems {
        say(&format!("counters: {problem}"));
    }
    Ok(())
}
