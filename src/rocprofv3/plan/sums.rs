//! What a job sums up.

use super::wanted::no_pattern;
use crate::export::summary::{self, Tables, Unit};
use crate::rocprofv3::settings::{Settings, usage_error};
use crate::rocprofv3::table::typed;
use anyhow::{Result, anyhow};

/// Options that sum domains up.
const SUMS: [&str; 6] = [
    "stats",
    "summary",
    "summary_per_domain",
    "summary_groups",
    "summary_output_file",
    "summary_units",
];

/// The tables that are wanted.
///
/// Errors: a group is no regular expression, a unit none.
pub(super) fn tables(settings: &Settings) -> Result<Tables> {
    let groups = settings.values("summary_groups").iter();
    let groups = groups.map(|text| summary::group(text).map_err(|error| no_pattern("summary_groups", text, &error)));
    Ok(Tables {
        whole: settings.on("summary"),
        by_domain: settings.on("summary_per_domain"),
        groups: groups.collect::<Result<_>>()?,
        unit: match settings.value("summary_units") {
            None => Unit::default(),
            Some(word) => Unit::of(word)
                .ok_or_else(|| usage_error(format!("--summary-units takes sec, msec, usec or nsec, not '{word}'")))?,
        },
        indent: 4,
    })
}

/// What to say when nothing is recorded that an option could sum up.
pub(super) fn unwanted_sum(settings: &Settings) -> Option<anyhow::Error> {
    let is_set = |name: &&str| settings.value(name).is_some_and(|value| value != "false");
    let name = SUMS.into_iter().find(is_set)?;
    Some(anyhow!(
        "Fatal error: No tracing options were enabled for {} option: it needs a domain to sum up, as --kernel-trace \
or --sys-trace",
        typed(name)
    ))
}
