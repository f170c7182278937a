//! What a trace lacks, as text and JSON.

use crate::tally::{Ordered, Tally};
use crate::{Format, Trace};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Distance from the clock offset up to which kernels of both sides are the same ones, ns.
const MAX_JITTER: i64 = 1_000_000;
/// Number of names that a report lists.
const MAX_NAMES: usize = 20;
/// Prefix of the run-time's own kernels, which most tools show as copies.
const INTERNAL: &str = "__amd_rocclr_";

/// Something that is missing or wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its stable name.
    pub what: &'static str,
    /// How many.
    pub count: u64,
    /// The finding in a sentence.
    pub text: String,
}

/// Kernels of a name on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NameRow {
    name: String,
    trace: u64,
    recording: u64,
}

/// What a trace has and lacks.
#[derive(Clone, Debug)]
pub struct Report {
    format: Format,
    kernels: u64,
    names: usize,
    launches: u64,
    graphs: u64,
    findings: Vec<Finding>,
    notes: Vec<String>,
    /// Names whose counts differ from the recording's.
    differing: Vec<NameRow>,
    /// Time of the trace minus that of the recording, ns.
    offset: Option<i64>,
}

fn is_own(name: &str) -> bool {
    !name.starts_with(INTERNAL)
}

fn millis(nanos: i64) -> String {
    format!("{:.3} ms", nanos as f64 / 1e6)
}

impl Report {
    pub(crate) fn new(trace: &Trace, reference: Option<&Tally>) -> Self {
        let tally = &trace.tally;
        let mut report = Self {
            format: trace.format,
            kernels: tally.kernels,
            names: tally.by_name().len(),
            launches: tally.launch_calls,
            graphs: tally.graph_calls,
            findings: Vec::new(),
            notes: Vec::new(),
            differing: Vec::new(),
            offset: None,
        };
        report.alone(trace);
        if let Some(reference) = reference {
            report.against(tally, reference);
        }
        report
    }

    /// Whether nothing is missing, as far as that can be seen.
    pub fn is_complete(&self) -> bool {
        self.findings.is_empty()
    }

    /// What is missing.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn find(&mut self, what: &'static str, count: u64, text: String) {
        if count > 0 {
            self.findings.push(Finding { what, count, text });
        }
    }

    fn alone(&mut self, trace: &Trace) {
        let tally = &trace.tally;
        let text = "the file ends early: what follows is of its beginning".to_owned();
        self.find("truncated", u64::from(trace.is_cut), text);
        let first = |id: Option<u64>| id.map_or_else(String::new, |id| format!(", the first with correlation id {id}"));
        if tally.kernels == 0 && tally.launch_calls + tally.graph_calls == 0 {
            self.notes
                .push("the file has neither a kernel nor a launch: no work of a GPU was recorded".into());
        }
        if tally.captured > 0 {
            let text = format!(
                "{} launches were captured for graphs: they have no kernel",
                tally.captured
            );
            self.notes.push(text);
        }
        let unsure = tally.unsure_without_kernel();
        if unsure > 0 {
            self.notes.push(format!(
                "{unsure} launches without a kernel are not judged: another thread captured a graph at that time"
            ));
        }
        let mut is_sure = false;
        match tally.launches_without_kernel() {
            Some((count, id)) => {
                is_sure = count == 0 && tally.launch_calls > 0;
                let text = format!("{count} of {} launches have no kernel{}", tally.launch_calls, first(id));
                self.find("launches_without_kernel", count, text);
            }
            None if tally.launch_calls > 0 => self
                .notes
                .push("the file does not say which kernel belongs to which launch".into()),
            None => {}
        }
        if let Some((count, id)) = tally.graphs_without_kernel() {
            let text = format!(
                "{count} of {} launches of graphs have no kernel{}",
                tally.graph_calls,
                first(id)
            );
            self.find("graphs_without_kernel", count, text);
        }
        if tally.launch_calls + tally.graph_calls == 0 && tally.kernels > 0 {
            self.notes
                .push("the file has no launches: kernels are not compared with them".into());
        }
        let open = tally.open_arrows();
        self.find("open_arrows", open, format!("{open} arrows from a call have no end"));
        let missing = tally.missing_dispatches();
        let text = format!("{missing} numbers of dispatches are missing: these kernels were filtered or lost");
        self.find("missing_dispatches", missing, text);
        self.find(
            "reversed",
            tally.reversed,
            format!("{} kernels end before they begin", tally.reversed),
        );
        // Where each launch has its kernel, a GPU that is late is no gap of the file. Of Perfetto's kernels, only the begin is
        // read.
        let has_gaps = !is_sure && trace.format != Format::Perfetto;
        for gap in tally.gaps().into_iter().filter(|_| has_gaps) {
            let [begin, end] = gap.span.map(millis);
            let text = format!(
                "no kernel from {begin} to {end}, while {} launches went on",
                gap.launches
            );
            self.find("gap", gap.launches, text);
        }
    }

    fn against(&mut self, tally: &Tally, reference: &Tally) {
        let (own, other) = (tally.by_name(), reference.by_name());
        let mut rows: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
        for (side, names) in [&own, &other].into_iter().enumerate() {
            for (name, count) in names.iter().filter(|row| is_own(row.0)) {
                rows.entry(name).or_default()[side] = *count;
            }
        }
        let sum = |side: usize| rows.values().map(|row| row[side]).sum::<u64>();
        let missing: u64 = rows.values().map(|row| row[1].saturating_sub(row[0])).sum();
        let added: u64 = rows.values().map(|row| row[0].saturating_sub(row[1])).sum();
        let (all, here) = (sum(1), sum(0));
        self.find(
            "missing_kernels",
            missing,
            format!("{missing} of the recording's {all} kernels are missing"),
        );
        self.find(
            "added_kernels",
            added,
            format!("{added} of {here} kernels are not in the recording"),
        );
        let differing = rows.iter().filter(|row| row.1[0] != row.1[1]);
        let row = |(name, counts): (&&str, &[u64; 2])| NameRow {
            name: (*name).to_owned(),
            trace: counts[0],
            recording: counts[1],
        };
        self.differing = differing.map(row).collect();
        self.differing
            .sort_by_key(|row| std::cmp::Reverse(row.recording.abs_diff(row.trace)));
        if !self.differing.is_empty() {
            return;
        }
        if !tally.is_ordered() || !reference.is_ordered() {
            self.notes.push("more kernels than are compared in their order".into());
            return;
        }
        self.order(tally, reference);
    }

    /// Order and times, if both have the same kernels.
    fn order(&mut self, tally: &Tally, reference: &Tally) {
        let sorted = |tally: &Tally| {
            let mut all: Vec<Ordered> = tally.ordered.clone();
            all.retain(|kernel| is_own(tally.name_of(kernel.name)));
            // Names have other numbers on the other side.
            let name = |kernel: &Ordered| tally.name_of(kernel.name);
            all.sort_unstable_by(|a, b| a.begin.cmp(&b.begin).then_with(|| name(a).cmp(name(b))));
            all
        };
        let (own, other) = (sorted(tally), sorted(reference));
        let pairs = || own.iter().zip(&other);
        let is_moved = |(a, b): &(&Ordered, &Ordered)| tally.name_of(a.name) != reference.name_of(b.name);
        let moved = pairs().filter(is_moved).count() as u64;
        self.find(
            "order",
            moved,
            format!("{moved} kernels are in another order than in the recording"),
        );
        let mut offsets: Vec<i64> = pairs().map(|(a, b)| a.begin.saturating_sub(b.begin)).collect();
        offsets.sort_unstable();
        let Some(&median) = offsets.get(offsets.len() / 2) else {
            return;
        };
        let apart = offsets
            .iter()
            .filter(|offset| offset.abs_diff(median) > MAX_JITTER as u64)
            .count();
        if apart * 10 > offsets.len() {
            self.notes.push("times differ: the recording is of another run".into());
            return;
        }
        self.offset = Some(median);
        let text = format!(
            "{apart} kernels are shifted by more than {} against the others",
            millis(MAX_JITTER)
        );
        self.find("shifted", apart as u64, text);
    }

    /// Writes the report as text.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let word = if self.is_complete() { "complete" } else { "incomplete" };
        let line = |text: &str| {
            text.chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect::<String>()
        };
        writeln!(
            out,
            "{word}: {}, {} kernels of {} names, {} launches, {} launches of graphs",
            self.format.name(),
            self.kernels,
            self.names,
            self.launches,
            self.graphs
        )?;
        for finding in &self.findings {
            writeln!(out, "  {}", finding.text)?;
        }
        if let Some(offset) = self.offset {
            writeln!(
                out,
                "  the trace's clock is {} ahead of the recording's",
                millis(offset)
            )?;
        }
        for note in &self.notes {
            writeln!(out, "  {note}")?;
        }
        if !self.differing.is_empty() {
            writeln!(out, "\n{:>10} {:>10}  KERNEL", "TRACE", "RECORDING")?;
        }
        for row in self.differing.iter().take(MAX_NAMES) {
            writeln!(out, "{:>10} {:>10}  {}", row.trace, row.recording, line(&row.name))?;
        }
        match self.differing.len().saturating_sub(MAX_NAMES) {
            0 => Ok(()),
            more => writeln!(out, "           … {more} more"),
        }
    }

    /// The report as JSON; the schema is stable.
    pub fn json(&self) -> Value {
        let findings = self.findings.iter();
        let findings = findings.map(|one| json!({ "what": one.what, "count": one.count, "text": one.text }));
        let rows = self.differing.iter();
        let rows = rows.map(|row| json!({ "name": row.name, "trace": row.trace, "recording": row.recording }));
        json!({
            "schema": 1, "is_complete": self.is_complete(), "format": self.format.name(), "kernels": self.kernels,
            "names": self.names, "launches": self.launches, "graph_launches": self.graphs,
            "findings": findings.collect::<Vec<_>>(), "notes": self.notes, "clock_offset_ns": self.offset,
            "differing": rows.collect::<Vec<_>>(),
        })
    }
}
