//! What one job does: settings turned into choices, with everything wrong found before the program starts.

mod counted;
mod sums;
mod wanted;

pub(super) use self::counted::{counters, definitions_of};

use self::sums::{tables, unwanted_sum};
use super::output;
use super::settings::{Note, Settings, usage_error};
use super::table::{FOR_COUNTERS, typed};
use crate::counters::request::Request;
use crate::export::Format;
use crate::export::options::{Choice, Kind, Kinds};
use crate::export::summary::Tables;
use crate::process::rank::{Rank, Ranks};
use anyhow::{Result, anyhow, bail};
use std::ffi::OsString;
use std::path::Path;

/// A job.
pub(super) struct Plan {
    /// Counters to collect.
    pub(super) request: Option<Request>,
    pub(super) choice: Choice,
    pub(super) formats: Vec<Format>,
    /// Nothing asked for a format, and this process says so.
    pub(super) has_usual_format: bool,
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
    /// How much is printed.
    pub(super) level: Level,
    /// Options without effect, and why.
    pub(super) moot: Vec<Note>,
}

/// How much is printed on standard error.
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
                let message =
                    format!("--log-level takes fatal, error, warning, info, trace, env or config, not '{word}'");
                return Err(usage_error(message));
            }
        })
    }
}

/// Why `--stats` does nothing.
const NO_STATS: &str = "no file of the formats asked for has statistics; csv and json have";

/// Options that choose kernels for counters; without counters nothing chooses kernels, as upstream.
const CHOOSERS: [&str; 4] = [
    "kernel_names",
    "kernel_include_regex",
    "kernel_exclude_regex",
    "kernel_iteration_range",
];

impl Plan {
    /// Understands a job's settings; `pass` is the directory of one job among several.
    pub(super) fn new(settings: &Settings, pass: Option<&str>) -> Result<Self> {
        let set = |name: &str| settings.value(name).map(str::to_owned);
        let (directory, file) = place(settings, pass);
        let formats = output::formats(settings, variable)?;
        output::check_perfetto(settings)?;
        let request = counted::request(settings)?;
        let mut choice = wanted::choice(settings)?;
        if request.is_some() && !choice.kinds.has(Kind::Kernel) {
            choice.kinds.set(Kind::Kernel, true);
            choice.counters_only = true;
        }
        choice.config = output::config(settings);
        let counts = request.as_ref().is_some_and(|request| !request.is_empty());
        for (key, value) in [
            ("counter_collection", counts.into()),
            ("raw_output_path", directory.as_str().into()),
            ("raw_output_file", file.as_str().into()),
        ] {
            choice.config.insert(key.to_owned(), value);
        }
        let is_uncounted = request.is_none();
        let idle = CHOOSERS
            .into_iter()
            .filter(|name| is_uncounted && !settings.values(name).is_empty())
            .map(|name| (typed(name), FOR_COUNTERS));
        if settings.on("selected_regions") && !settings.values("collection_period").is_empty() {
            bail!("--selected-regions and --collection-period exclude each other");
        }
        let (rank, is_first) = rank(&ranks(settings)?)?;
        let has_stats = formats
            .written
            .iter()
            .any(|format| matches!(format, Format::Csv | Format::Json));
        let unused = (settings.on("stats") && !has_stats).then(|| (typed("stats"), NO_STATS));
        let plan = Self {
            request,
            choice,
            has_usual_format: formats.are_usual && is_first,
            formats: formats.written,
            directory,
            file,
            tables: tables(settings)?,
            summary_file: set("summary_output_file").unwrap_or_else(|| "stderr".to_owned()),
            least_bytes: least_bytes(settings)?,
            preload: preload(settings, variable("ROCPROF_PRELOAD"))?,
            is_paused: settings.on("selected_regions"),
            counts_pauses: settings.on("selected_regions_ref_count"),
            rank,
            level: match set("log_level").or_else(|| variable("ROCPROF_LOG_LEVEL")) {
                Some(word) => Level::of(&word)?,
                None => Level::default(),
            },
            moot: settings
                .moot()
                .chain(idle)
                .chain(formats.missing)
                .chain(unused)
                .collect(),
        };
        match unwanted_sum(settings) {
            Some(error) if plan.is_idle() => Err(error),
            _ => Ok(plan),
        }
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

/// A variable of upstream's that says something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Directory and name of the files, with keys.
fn place(settings: &Settings, pass: Option<&str>) -> (String, String) {
    let set = |option: &str, usual: &str| settings.value(option).map(str::to_owned).or_else(|| variable(usual));
    let directory = set("output_directory", "ROCPROF_OUTPUT_PATH").unwrap_or_else(|| ".".to_owned());
    let directory = match pass {
        Some(pass) => format!("{directory}/{pass}"),
        None => directory,
    };
    let file = set("output_file", "ROCPROF_OUTPUT_FILE_NAME");
    (directory, file.unwrap_or_else(|| "%hostname%/%pid%".to_owned()))
}

/// Output of fewer bytes is not written.
fn least_bytes(settings: &Settings) -> Result<u64> {
    let typed = settings.value("minimum_output_data").unwrap_or("0");
    let kilobytes: u64 = typed
        .parse()
        .map_err(|_| usage_error(format!("--minimum-output-data takes a number of KB, not '{typed}'")))?;
    Ok(kilobytes.saturating_mul(1024))
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

/// Which ranks are profiled, and which variables hold the rank.
fn ranks(settings: &Settings) -> Result<Ranks> {
    let set = |name: &str| settings.value(name).map(str::to_owned);
    let wanted = Ranks::stretches(&settings.values("profile_mpi_ranks").join(","));
    Ok(Ranks {
        rank: set("mpi_world_rank_variable"),
        size: set("mpi_world_size_variable"),
        wanted: wanted.map_err(|part| anyhow!("--profile-mpi-ranks takes ranks as 0-3,8, not '{part}'"))?,
    })
}

/// This process's rank, and whether it is the first one that is profiled.
///
/// Errors: a rank is wanted that the job does not have.
fn rank(ranks: &Ranks) -> Result<(Rank, bool)> {
    let rank = ranks.of(&variable);
    let last = ranks.wanted.iter().map(|wanted| wanted.1).max();
    if let (Some(last), Some(size)) = (last, rank.size)
        && last >= size
    {
        bail!("--profile-mpi-ranks: rank {last} is out of range, the job has {size}, from 0");
    }
    let first = ranks.wanted.iter().map(|wanted| wanted.0).min().unwrap_or(0);
    Ok((rank, rank.number.is_none_or(|number| number == first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan> {
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        Plan::new(&Settings::parse(&words)?.0, None)
    }

    #[test]
    fn otf2_is_left_out_of_other_formats() {
        let plan = plan("-s -f pftrace json OTF2 csv").unwrap();
        assert_eq!(plan.formats, [Format::Pftrace, Format::Json, Format::Csv]);
        assert_eq!(plan.moot[0].0, "--output-format otf2");
    }

    #[test]
    fn what_chooses_kernels_is_moot_without_counters() {
        let moot = plan("--kokkos-trace --kernel-include-regex scale").unwrap().moot;
        assert!(
            moot.iter()
                .any(|note| note.0 == "--kokkos-trace" && note.1.contains("KOKKOS_TOOLS_LIBS"))
        );
        assert!(moot.iter().any(|note| note.0 == "--kernel-include-regex"));
        assert!(plan("--pmc A --kernel-include-regex scale").unwrap().moot.is_empty());
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
            ("-s --selected-regions -P 1:1:1", "--collection-period"),
        ] {
            let shown = format!("{:#}", plan(line).map(|_| ()).unwrap_err());
            assert!(shown.contains(word) && shown.lines().count() == 1, "{line}: {shown}");
        }
        for ranges in ["[1-3,7] 9", "[0,[1-1]]", "[2-1]", "0"] {
            assert!(
                plan(&format!("-s --kernel-iteration-range {ranges}")).is_ok(),
                "{ranges}"
            );
        }
    }

    #[test]
    fn statistics_are_moot_without_a_file_that_has_them() {
        let is_moot = |line: &str| plan(line).unwrap().moot.iter().any(|note| note.0 == "--stats");
        assert!(is_moot("-s --stats -f pftrace rocpd"));
        assert!(!is_moot("-s --stats") && !is_moot("-s --stats -f rocpd json") && !is_moot("-s -f rocpd"));
    }

    #[test]
    fn the_usual_format_is_csv() {
        let has_usual = |line: &str| plan(line).unwrap().has_usual_format;
        assert!(has_usual("-s") && !has_usual("-s -f csv") && !has_usual("-s -f rocpd"));
        assert_eq!(plan("-s").unwrap().formats, [Format::Csv]);
    }
}
