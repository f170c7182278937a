//! Reports as bytes: a version, then the values in postcard's form. Foreign bytes decode to an error at worst.

use super::placed::{MAX_FINDINGS, MAX_LINES, MAX_SENTENCE, NodePlacement};
use super::sums::{MAX_ALERTS, MAX_ARRIVALS, MAX_COMMUNICATORS, MAX_KERNELS, MAX_NAME, MAX_TEXT, RankSums};
use crate::analysis::placement::Place;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum length of a node's report, bytes.
pub const MAX_REPORT: usize = 10 * 1024;
/// Maximum number of ranks of a node.
pub const MAX_RANKS: usize = 16;
/// Version of the form; another one is refused.
const VERSION: u8 = 3;
/// Times later than this (36 years after boot) come from foreign bytes.
const LATEST: u64 = 1 << 60;
/// Maximum length of a window, ns: one hour.
const MAX_WINDOW: u64 = 3_600_000_000_000;
/// Maximum number of names in a report.
const MAX_NAMES: usize = 1024;
/// Maximum length of a host's name, bytes.
const MAX_HOST: usize = 256;

/// Why bytes are no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// They are too many.
    #[error("the report has {0} bytes, more than {MAX_REPORT}")]
    Length(usize),
    /// Another version of roctop made them.
    #[error("the report has version {0}, this roctop reads {VERSION}: use the same roctop on all nodes")]
    Version(u8),
    /// They are damaged.
    #[error("the report is damaged")]
    Damaged(#[source] postcard::Error),
    /// A value is beyond its limit.
    #[error("the report has {0} beyond its limit")]
    Limit(&'static str),
}

/// What a node reports, about once a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Number of the report, from 1 in each run of the daemon.
    pub sequence: u64,
    /// Name of the host.
    pub host: String,
    /// When it was made, CLOCK_BOOTTIME ns of the node.
    pub at: u64,
    /// How far the node's CLOCK_REALTIME was ahead of its CLOCK_BOOTTIME then, ns. Networks compare CLOCK_REALTIME.
    pub realtime_ahead: i64,
    /// Sums of the ranks.
    pub ranks: Vec<RankSums>,
    /// Where its ranks run.
    pub placement: NodePlacement,
    /// Names of kernels by id; they take turns in the reports.
    pub names: Vec<(u64, String)>,
    /// What did not fit.
    pub left_out: LeftOut,
}

/// What did not fit in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Ranks.
    pub ranks: u32,
    /// Arrivals at collectives.
    pub arrivals: u32,
    /// Kernels, texts and findings on placement.
    pub others: u32,
}

/// What a rank hands to the daemon of its node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    /// Its sums.
    pub sums: RankSums,
    /// Names of its kernels by id.
    pub names: Vec<(u64, String)>,
    /// Where it runs, every few seconds.
    pub place: Option<Box<Place>>,
}

pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    // Only a failing writer is an error, and memory is none.
    postcard::to_extend(value, vec![VERSION]).unwrap_or_default()
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    if bytes.len() > MAX_REPORT {
        return Err(Error::Length(bytes.len()));
    }
    match bytes.split_first() {
        Some((&VERSION, rest)) => postcard::from_bytes(rest).map_err(Error::Damaged),
        Some((version, _)) => Err(Error::Version(*version)),
        None => Err(Error::Damaged(postcard::Error::DeserializeUnexpectedEnd)),
    }
}

/// A rank's report as bytes: without its place if they were too many.
pub fn encode_rank(report: &RankReport) -> Vec<u8> {
    let bytes = encode(report);
    if bytes.len() <= MAX_REPORT || report.place.is_none() {
        return bytes;
    }
    encode(&RankReport {
        place: None,
        ..report.clone()
    })
}

/// Reads a rank's report.
pub fn decode_rank(bytes: &[u8]) -> Result<RankReport, Error> {
    let report: RankReport = decode(bytes)?;
    check_rank(&report.sums)?;
    check_names(&report.names)?;
    Ok(report)
}

/// Reads a node's report.
pub fn decode_node(bytes: &[u8]) -> Result<NodeReport, Error> {
    let report: NodeReport = decode(bytes)?;
    within("the host", report.host.len(), MAX_HOST)?;
    within("ranks", report.ranks.len(), MAX_RANKS)?;
    report.ranks.iter().try_for_each(check_rank)?;
    check_names(&report.names)?;
    check_placement(&report.placement)?;
    (report.at < LATEST).then_some(report).ok_or(Error::Limit("a time"))
}

fn within(what: &'static str, count: usize, most: usize) -> Result<(), Error> {
    (count <= most).then_some(()).ok_or(Error::Limit(what))
}

fn check_names(names: &[(u64, String)]) -> Result<(), Error> {
    within("names", names.len(), MAX_NAMES)?;
    names
        .iter()
        .try_for_each(|name| within("a name", name.1.len(), MAX_NAME))
}

fn check_placement(placement: &NodePlacement) -> Result<(), Error> {
    within("findings", placement.findings.len(), MAX_FINDINGS)?;
    within("lines", placement.lines.iter().map(String::len).sum(), MAX_LINES)?;
    let mut texts = placement.findings.iter().map(|finding| &finding.text);
    texts.try_for_each(|text| within("a text", text.len(), MAX_SENTENCE))
}

fn check_rank(sums: &RankSums) -> Result<(), Error> {
    let arrivals = sums.communicators.iter().map(|part| part.arrivals.len()).sum();
    within("kernels", sums.kernels.len(), MAX_KERNELS)?;
    within("communicators", sums.communicators.len(), MAX_COMMUNICATORS)?;
    within("arrivals", arrivals, MAX_ARRIVALS)?;
    within("alerts", sums.alerts.len(), MAX_ALERTS)?;
    within("losses", sums.lost.len(), 16)?;
    within("a text", sums.doing.len().max(sums.before.len()), MAX_TEXT)?;
    let texts = sums.alerts.iter().map(|alert| &alert.text);
    let throttle = sums.gauges.iter().map(|readings| &readings.throttle);
    texts
        .chain(throttle)
        .try_for_each(|text| within("a text", text.len(), MAX_TEXT))?;
    let far = |arrival: &super::ArrivalSums| arrival.at.unsigned_abs() > MAX_WINDOW || arrival.took > MAX_WINDOW;
    let is_far = sums.begin >= LATEST
        || sums.length > MAX_WINDOW
        || sums
            .communicators
            .iter()
            .any(|part| part.arrivals.iter().any(far) || part.pending.is_some_and(|pending| pending.since >= LATEST));
    if is_far {
        return Err(Error::Limit("a time"));
    }
    Ok(())
}
