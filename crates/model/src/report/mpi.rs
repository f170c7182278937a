//! Time in MPI: by rank, by function, and by what the functions do.

use crate::Snapshot;
use crate::snapshot::ApiRow;
use roctop_ring::record::mpi::COLLECTIVES;
use roctop_trace::item::ProcessId;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::io::{self, Write};

/// Column of answers: bytes of a call.
pub const AVERAGE_BYTES: &str = "Average_Bytes";
/// Column of answers: the greatest time of a rank over the mean of all.
pub const MAX_OVER_MEAN: &str = "Max_over_Mean";

/// Time in MPI of a process, the sum of its threads.
pub struct MpiShare {
    /// `rank 3`, or the process.
    pub label: String,
    /// Time, ns.
    pub nanos: u64,
    /// Of the run's time, 0 to 1; more with several threads in MPI at once.
    pub share: f64,
}

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It sends, receives or probes.
    PointToPoint,
    /// All ranks of a communicator call it.
    Collective,
    /// It waits for requests, or tests them: of messages and of collectives.
    Completion,
    /// All else.
    Other,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::PointToPoint, Self::Collective, Self::Completion, Self::Other];

    /// Of the function of this name.
    pub fn of(function: &str) -> Self {
        let Some(name) = function.strip_prefix("MPI_") else {
            return Self::Other;
        };
        let lower = name.to_ascii_lowercase();
        let blocking = lower.strip_prefix('i').unwrap_or(&lower);
        let is_collective = |known: &str| {
            let known = known["MPI_".len()..].to_ascii_lowercase();
            known == lower || known == blocking
        };
        let is_message = ["send", "recv", "probe"].iter().any(|end| lower.ends_with(end));
        if COLLECTIVES.iter().any(|known| is_collective(known)) || blocking.starts_with("neighbor_") {
            Self::Collective
        } else if lower.starts_with("wait") || lower.starts_with("test") {
            Self::Completion
        } else if is_message || ["sendrecv_replace", "start", "startall"].contains(&&*lower) {
            Self::PointToPoint
        } else {
            Self::Other
        }
    }

    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::PointToPoint => "point-to-point",
            Self::Collective => "collective",
            Self::Completion => "completion",
            Self::Other => "other",
        }
    }
}

/// A function, and how its time is distributed over the ranks.
pub struct Function<'a> {
    /// Its sums.
    pub row: &'a ApiRow,
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub kind: Kind,
    /// The greatest time of a process over the mean of all that called MPI, and that process; `None` of one process.
    pub imbalance: Option<(f64, ProcessId)>,
}

impl Function<'_> {
    /// Bytes of a call, of those whose bytes are known.
    pub const fn mean_bytes(&self) -> Option<u64> {
        self.row.bytes.checked_div(self.row.sized)
    }
}

/// Time in MPI of a process, the sum of its threads, ns.
pub fn time_of(snapshot: &Snapshot, process: ProcessId) -> u64 {
    let own = |id| {
        snapshot
            .names
            .thread(id)
            .is_some_and(|thread| thread.process == process)
    };
    let threads = snapshot.values.threads.iter().filter(|thread| own(thread.id));
    threads.map(|thread| thread.numbers.mpi).sum()
}

/// `rank 3`, or the process.
fn label(snapshot: &Snapshot, process: ProcessId) -> String {
    match snapshot.names.process(process) {
        Some(known) => known
            .rank
            .map_or_else(|| format!("process {}", known.pid), |rank| format!("rank {rank}")),
        None => "?".into(),
    }
}

/// Time in MPI by process, most first.
pub fn shares(snapshot: &Snapshot) -> Vec<MpiShare> {
    let all = snapshot.values.processes.iter().map(|row| row.process.id);
    let known = all.map(|process| (process, time_of(snapshot, process)));
    let mut shares: Vec<MpiShare> = known
        .filter(|(_, nanos)| *nanos > 0)
        .map(|(process, nanos)| MpiShare {
            label: label(snapshot, process),
            nanos,
            share: nanos as f64 / snapshot.elapsed().max(1) as f64,
        })
        .collect();
    shares.sort_by_key(|share| Reverse(share.nanos));
    shares
}

/// All functions that were called, most time first.
pub fn functions(snapshot: &Snapshot) -> Vec<Function<'_>> {
    let rows = snapshot.values.api.iter();
    let rows = rows.filter(|row| row.stat.calls > 0 && snapshot.names.is_mpi(row.id));
    let mut processes: Vec<ProcessId> = rows.clone().flat_map(|row| &row.by_process).map(|of| of.0).collect();
    processes.sort_unstable_by_key(|process| process.0);
    processes.dedup();
    let mut found: Vec<Function<'_>> = rows
        .map(|row| {
            let known = snapshot.names.operation(row.id);
            let name = known.map_or("?", |known| &*known.operation.name);
            let most = row.by_process.iter().max_by_key(|of| (of.1, Reverse(of.0.0)));
            let total: u64 = row.by_process.iter().map(|of| of.1).sum();
            let mean = total as f64 / processes.len().max(1) as f64;
            Function {
                row,
                name,
                kind: Kind::of(name),
                imbalance: most
                    .filter(|_| processes.len() > 1 && total > 0)
                    .map(|(process, nanos)| (*nanos as f64 / mean, *process)),
            }
        })
        .collect();
    found.sort_by_key(|function| (Reverse(function.row.stat.total), function.name));
    found
}

/// Time by what the functions do, ns.
pub fn kinds(functions: &[Function<'_>]) -> [(Kind, u64); 4] {
    Kind::ALL.map(|kind| {
        let of = functions.iter().filter(|function| function.kind == kind);
        (kind, of.map(|function| function.row.stat.total).sum())
    })
}

/// `point-to-point 71.3 %, collective 28.7 %`: shares of the time in MPI.
pub fn kinds_text(functions: &[Function<'_>]) -> String {
    let kinds = kinds(functions);
    let all: u64 = kinds.iter().map(|kind| kind.1).sum();
    let share = |nanos: u64| 100.0 * nanos as f64 / all.max(1) as f64;
    let parts = kinds.iter().filter(|kind| kind.1 > 0);
    let parts: Vec<String> = parts
        .map(|(kind, nanos)| format!("{} {:.1} %", kind.word(), share(*nanos)))
        .collect();
    parts.join(", ")
}

/// `rank 3: 1.82`: the greatest time in MPI over the mean of all ranks; `None` of one.
pub fn imbalance_text(shares: &[MpiShare]) -> Option<String> {
    let most = shares.first().filter(|_| shares.len() > 1)?;
    let mean = shares.iter().map(|share| share.nanos as f64).sum::<f64>() / shares.len() as f64;
    Some(format!(
        "greatest over mean: {:.2} ({})",
        most.nanos as f64 / mean,
        most.label
    ))
}

/// Writes time in MPI by function and by rank.
pub(super) fn write(snapshot: &Snapshot, most: usize, out: &mut dyn Write) -> io::Result<()> {
    let functions = functions(snapshot);
    if functions.is_empty() {
        return Ok(());
    }
    let all: u64 = functions.iter().map(|function| function.row.stat.total).sum();
    writeln!(
        out,
        "\n{:>9} {:>12} {:>6} {:>11} {:>11} {:>14} {:>11} {:>8}  MPI",
        "CALLS", "TOTAL ms", "% MPI", "AVG us", "MAX us", "BYTES", "AVG BYTES", "MAX/MEAN"
    )?;
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    for function in functions.iter().take(most) {
        let row = function.row;
        writeln!(
            out,
            "{:>9} {:>12.3} {:>6.1} {:>11} {:>11} {:>14} {:>11} {:>8}  {}",
            row.stat.calls,
            row.stat.total as f64 / 1e6,
            100.0 * row.stat.total as f64 / all.max(1) as f64,
            super::summary::micros(row.stat.average()),
            super::summary::micros(Some(row.stat.max)),
            or_none((row.sized > 0).then(|| row.bytes.to_string())),
            or_none(function.mean_bytes().map(|bytes| bytes.to_string())),
            or_none(function.imbalance.map(|(ratio, _)| format!("{ratio:.2}"))),
            function.name,
        )?;
    }
    if functions.len() > most {
        writeln!(out, "  … {} more", functions.len() - most)?;
    }
    writeln!(out, "  {}", kinds_text(&functions))?;
    let shares = shares(snapshot);
    if let Some(text) = imbalance_text(&shares) {
        writeln!(out, "  {text}")?;
    }
    for MpiShare { label, nanos, share } in shares.iter().take(most) {
        let (share, millis) = (100.0 * share, *nanos as f64 / 1e6);
        writeln!(out, "  {label}: {share:.1} % of the time in MPI, {millis:.3} ms")?;
    }
    if shares.len() > most {
        writeln!(out, "  … {} more", shares.len() - most)?;
    }
    Ok(())
}

/// The same for programs: by rank, and by function.
pub(super) fn json(snapshot: &Snapshot) -> [Value; 2] {
    let ranks = shares(snapshot)
        .into_iter()
        .map(|row| json!({"name": row.label, "time_ns": row.nanos, "share": row.share}));
    let functions = functions(snapshot);
    let functions = functions.iter().map(|function| {
        json!({
            "name": function.name, "kind": function.kind.word(), "calls": function.row.stat.calls,
            "total_ns": function.row.stat.total, "bytes": (function.row.sized > 0).then_some(function.row.bytes),
            "mean_bytes": function.mean_bytes(), "max_over_mean": function.imbalance.map(|of| of.0),
            "max_of": function.imbalance.map(|of| label(snapshot, of.1)),
        })
    });
    [ranks.collect(), functions.collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_kinds() {
        let of = |names: &[&str]| -> Vec<Kind> { names.iter().map(|name| Kind::of(&format!("MPI_{name}"))).collect() };
        let messages = [
            "Send",
            "Bsend",
            "Issend",
            "Irsend",
            "Recv",
            "Irecv",
            "Sendrecv",
            "Sendrecv_replace",
            "Probe",
            "Improbe",
            "Mrecv",
            "Imrecv",
            "Start",
            "Startall",
        ];
        assert_eq!(of(&messages), [Kind::PointToPoint; 14]);
        let collectives = [
            "Barrier",
            "Ibarrier",
            "Bcast",
            "Iallreduce",
            "Reduce_scatter_block",
            "Ireduce_scatter",
            "Scan",
            "Iexscan",
            "Neighbor_allgather",
            "Ineighbor_alltoallw",
        ];
        assert_eq!(of(&collectives), [Kind::Collective; 10]);
        assert_eq!(of(&["Wait", "Waitall", "Test", "Testsome"]), [Kind::Completion; 4]);
        let others = [
            "Init",
            "Finalize",
            "Win_start",
            "Win_wait",
            "File_iread",
            "Comm_dup",
            "Intercomm_create",
        ];
        assert_eq!(of(&others), [Kind::Other; 7]);
        assert_eq!(Kind::of("hipMemcpy"), Kind::Other);
    }
}
