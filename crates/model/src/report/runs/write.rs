//! Reports on runs: text, Markdown, JSON and JUnit XML.

use crate::analysis::change::{MIN_CHANGE, Scope, Verdict};
use crate::report::runs::{Compared, Comparison, Kind, MAX_FALSE_ALARMS, Mode, Side, Summary};
use roctop_trace::units;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Layouts of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns.
    Table,
    /// Markdown, for a pull request.
    Md,
    /// JSON.
    Json,
    /// JUnit XML: a test case a row.
    Junit,
}

/// What a report is on.
struct Report<'a> {
    before: &'a Side,
    after: &'a Side,
    /// The rows, or why there are none.
    compared: Result<&'a Comparison, &'a [String]>,
    /// Lines of the conditions that hold; `None` without conditions.
    failed: Option<&'a [String]>,
}

/// Writes a report on a comparison, or on why there is none. `failed` has the lines of the conditions that hold, if conditions
/// and not the rule decide.
pub fn write(
    format: Format,
    sides: [&Side; 2],
    compared: Result<&Comparison, &[String]>,
    failed: Option<&[String]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let report = Report {
        before: sides[0],
        after: sides[1],
        compared,
        failed,
    };
    match format {
        Format::Table => report.table(out),
        Format::Md => report.markdown(out),
        Format::Json => writeln!(out, "{:#}", report.json()),
        Format::Junit => report.junit(out),
    }
}

/// Writes the medians of one side: there is nothing to compare them with.
pub fn write_runs(side: &Side, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", units::counted(side.runs.len() as u64, "run", "runs"))?;
    if let Some(placement) = side.placement() {
        writeln!(out, "placement: {}", line(&placement))?;
    }
    writeln!(out, "\n{:>11} {:>21} {:<10} NAME", "MEDIAN", "95 %", "KIND")?;
    for (kind, name) in side.names().into_iter().filter(|row| row.0 != Kind::Api) {
        let Some(values) = side.values(kind, name) else {
            continue;
        };
        let summary = Summary::of(&values);
        let range = summary
            .interval
            .map(|[low, high]| format!("{} – {}", time(low), time(high)));
        let (median, range) = (time(summary.median), range.unwrap_or_default());
        writeln!(
            out,
            "{median:>11} {range:>21} {:<10} {}{}",
            kind.word(),
            line(name),
            two_modes(summary.modes)
        )?;
    }
    Ok(())
}

fn time(nanos: f64) -> String {
    units::duration(nanos.round() as u64)
}

/// A name on one line.
fn line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// ` (two modes: 26.1 ms in 3 runs, 33.1 ms in 4)`.
fn two_modes(modes: Option<[Mode; 2]>) -> String {
    modes.map_or_else(String::new, |[low, high]| {
        let (a, b) = (time(low.median), time(high.median));
        format!(" (two modes: {a} in {} runs, {b} in {})", low.runs, high.runs)
    })
}

impl Compared {
    fn side(side: Option<&Summary>) -> String {
        side.map_or_else(|| units::MISSING.into(), |side| time(side.median))
    }

    /// `+5.0 % ±1.2 %`.
    fn percent(&self) -> String {
        let Some(share) = self.change.share else {
            return units::MISSING.into();
        };
        let noise = self.change.noise.map(|noise| format!(" ±{:.1} %", noise * 100.0));
        format!("{:+.1} %{}", share * 100.0, noise.unwrap_or_default())
    }

    /// The verdict in a word.
    fn word(&self) -> &'static str {
        match self.change.verdict {
            Verdict::Unclear => "not in all",
            verdict => verdict.word(),
        }
    }

    /// Lines below the row.
    fn remarks(&self) -> Vec<String> {
        let modes = [("before", &self.before), ("after", &self.after)].map(|(word, side)| {
            let modes = side.as_ref()?.modes?;
            Some(format!("{word}{}", two_modes(Some(modes))))
        });
        self.sentence().into_iter().chain(modes.into_iter().flatten()).collect()
    }
}

impl Report<'_> {
    /// The outcome in one line.
    fn outcome(&self) -> String {
        match (self.compared, self.failed) {
            (Err(_), _) => "no verdict".into(),
            (Ok(_), Some([])) => "no condition of --fail-if holds".into(),
            (Ok(_), Some(failed)) => units::counted(failed.len() as u64, "condition holds", "conditions hold"),
            (Ok(found), None) => match found.slower().count() as u64 {
                0 => "nothing is slower".into(),
                slower => units::counted(slower, "row is slower", "rows are slower"),
            },
        }
    }

    /// Lines about both sides.
    fn head(&self) -> Vec<String> {
        let runs = |side: &Side| units::counted(side.runs.len() as u64, "run", "runs");
        let mut lines = vec![format!(
            "{}: {} before, {} after",
            self.outcome(),
            runs(self.before),
            runs(self.after)
        )];
        let gpus = self.after.gpus().unwrap_or_default();
        if !gpus.is_empty() {
            lines.push(format!("GPU: {}", gpus.join("; ")));
        }
        if let Some((old, new)) = self.before.clock().zip(self.after.clock()) {
            lines.push(format!("clock: {old:.0} MHz before, {new:.0} MHz after"));
        }
        if let Some((old, new)) = self.before.power().zip(self.after.power()) {
            lines.push(format!("power: {old:.0} W before, {new:.0} W after"));
        }
        lines.extend(self.placement());
        let differences = self.before.environment.differences(&self.after.environment);
        lines.extend(
            differences
                .iter()
                .map(|(name, old, new)| format!("{name} differs: {old} before, {new} after")),
        );
        let cut = |side: &Side| side.runs.iter().map(|run| run.warm_up).max().unwrap_or(0);
        match (cut(self.before), cut(self.after)) {
            (0, 0) => {}
            (before, after) => lines.push(format!(
                "warm-up cut off: up to {before} and {after} steps at the beginning of a run"
            )),
        }
        if let Err(reasons) = self.compared {
            lines.extend(reasons.iter().cloned());
        }
        lines.extend(self.failed.unwrap_or_default().iter().cloned());
        lines
    }

    /// Whether no run after ran where one before did.
    fn is_elsewhere(&self) -> bool {
        let (before, after) = (self.before.placements(), self.after.placements());
        !before.is_empty() && !after.is_empty() && !after.keys().any(|words| before.contains_key(words))
    }

    /// Where the processes ran: on both sides, if that differs.
    fn placement(&self) -> Option<String> {
        let after = self.after.placement()?;
        Some(match self.before.placement() {
            Some(before) if self.is_elsewhere() => format!("placement differs: {before} before, {after} after"),
            Some(_) => format!("placement: {after}"),
            None => format!("placement: {after} after, not known before"),
        })
    }

    /// Lines below a row: below one that is slower also that the processes ran elsewhere.
    fn remarks(&self, row: &Compared) -> Vec<String> {
        let mut remarks = row.remarks();
        if row.change.verdict == Verdict::Worse && self.is_elsewhere() {
            remarks.push("the placement differs, which may be why".into());
        }
        remarks
    }

    fn rows(&self) -> &[Compared] {
        self.compared.map_or(&[], |found| &found.rows)
    }

    /// The rule, and where it is about.
    fn rule() -> String {
        format!(
            "{}: a row is slower or faster if its medians differ by more than {} %, and a program with itself differs by as much in \
             any row in at most {} % of comparisons",
            Scope::BetweenRuns.words(),
            MIN_CHANGE * 100.0,
            MAX_FALSE_ALARMS * 100.0
        )
    }

    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        for text in self.head() {
            writeln!(out, "{}", line(&text))?;
        }
        if self.rows().is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n{:>10} {:>11} {:>11} {:>18} {:<10} NAME",
            "VERDICT", "BEFORE", "AFTER", "CHANGE", "KIND"
        )?;
        for row in self.rows() {
            writeln!(
                out,
                "{:>10} {:>11} {:>11} {:>18} {:<10} {}",
                row.word(),
                Compared::side(row.before.as_ref()),
                Compared::side(row.after.as_ref()),
                row.percent(),
                row.kind.word(),
                line(&row.name)
            )?;
            for remark in self.remarks(row) {
                writeln!(out, "{:>10} {remark}", "")?;
            }
        }
        writeln!(out, "\n{}", Self::rule())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let cell = |text: &str| line(text).replace('|', "\\|").replace('`', "'");
        // Outside of backticks, it may be taken for HTML.
        let text = |text: &str| cell(text).replace('<', "&lt;");
        let mut head = self.head().into_iter();
        writeln!(out, "**{}**\n", text(&head.next().unwrap_or_default()))?;
        for row in head {
            writeln!(out, "- {}", text(&row))?;
        }
        if self.rows().is_empty() {
            return Ok(());
        }
        writeln!(out, "\n| verdict | kind | name | before | after | change | |")?;
        writeln!(out, "| --- | --- | --- | ---: | ---: | ---: | --- |")?;
        for row in self.rows() {
            writeln!(
                out,
                "| {} | {} | `{}` | {} | {} | {} | {} |",
                row.word(),
                row.kind.word(),
                cell(&row.name),
                Compared::side(row.before.as_ref()),
                Compared::side(row.after.as_ref()),
                row.percent(),
                text(&self.remarks(row).join("; "))
            )?;
        }
        writeln!(out, "\n{}", Self::rule())
    }

    /// Times in ns; the schema is stable.
    fn json(&self) -> Value {
        let rows = self.rows().iter().map(|row| {
            json!({
                "kind": row.kind.word(), "name": row.name, "verdict": row.word(),
                "before": row.before, "after": row.after,
                "change": row.change.share, "interval": row.interval, "probability": row.probability,
                "code": row.code, "sentence": row.sentence(),
            })
        });
        let rows: Vec<Value> = rows.collect();
        let side = |side: &Side| {
            json!({
                "runs": side.runs.len(), "gpus": side.gpus(), "clock_mhz": side.clock(), "power_w": side.power(),
                "placement": side.placement(), "environment": side.environment,
            })
        };
        let is_worse = match (self.compared, self.failed) {
            (Err(_), _) => None,
            (Ok(_), Some(failed)) => Some(!failed.is_empty()),
            (Ok(found), None) => Some(found.slower().next().is_some()),
        };
        json!({
            "schema": 1, "outcome": self.outcome(), "is_worse": is_worse, "scope": Scope::BetweenRuns.words(),
            "reasons": self.compared.err().unwrap_or_default(), "failed": self.failed.unwrap_or_default(),
            "before": side(self.before), "after": side(self.after), "rows": rows,
        })
    }

    fn junit(&self, out: &mut dyn Write) -> io::Result<()> {
        let (rows, reasons) = (self.rows(), self.compared.err().unwrap_or_default());
        let conditions = self.failed.unwrap_or_default();
        // With conditions, the rule alone fails nothing.
        let fails = |row: &&Compared| self.failed.is_none() && row.change.verdict == Verdict::Worse;
        let is_skipped = |row: &&Compared| row.probability.is_none();
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(
            out,
            "<testsuite name=\"roctop ci\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
            rows.len() + conditions.len() + reasons.len(),
            rows.iter().filter(fails).count() + conditions.len(),
            reasons.len(),
            rows.iter().filter(is_skipped).count()
        )?;
        let case = |kind: &str, name: &str| format!("  <testcase classname=\"{kind}\" name=\"{}\">", xml(name));
        for reason in reasons {
            writeln!(
                out,
                "{}<error message=\"{}\"/></testcase>",
                case("verdict", "verdict"),
                xml(reason)
            )?;
        }
        for condition in conditions {
            writeln!(
                out,
                "{}<failure message=\"{}\"/></testcase>",
                case("fail-if", condition),
                xml(condition)
            )?;
        }
        for row in rows {
            let begin = case(row.kind.word(), &row.name);
            if fails(&row) {
                let message = self.remarks(row).join("; ");
                writeln!(out, "{begin}<failure message=\"{}\"/></testcase>", xml(&message))?;
            } else if is_skipped(&row) {
                writeln!(out, "{begin}<skipped message=\"{}\"/></testcase>", row.word())?;
            } else {
                let change = format!("{}: {}", row.word(), row.percent());
                writeln!(out, "{begin}<system-out>{}</system-out></testcase>", xml(&change))?;
            }
        }
        writeln!(out, "</testsuite>")
    }
}

/// Text of an attribute or element. XML has no control characters, however they are written.
fn xml(text: &str) -> String {
    let is_allowed = |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if is_allowed(c) => out.push(c),
            _ => out.push(' '),
        }
    }
    out
}
