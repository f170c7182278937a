//! Statistics for `--stats`: by name in each domain, and over the domains.

use super::csv::writer::{header, quoted};
use super::files::Files;
use super::operation;
use super::options::{Kind, library};
use super::records::{Mark, Row};
use super::sort::{Entry, Sorted};
use super::view::View;
use crate::error::Result;
use roctop_trace::decode::OVERFLOW_TEXT;
use roctop_trace::item::{ApiCall, Span};
use std::collections::HashMap;
use std::io::{self, Write};

/// Number of names with separate rows per domain; further ones share one.
const MAX_NAMES: usize = 1 << 18;

/// Count, sums and extremes of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// Number of durations.
    pub count: u64,
    /// Sum of the durations, ns.
    pub sum: u64,
    /// Sum of squares, exact: rounding would lose a small deviation of long durations.
    pub squares: u128,
    /// Minimum, ns.
    pub min: u64,
    /// Maximum, ns.
    pub max: u64,
}

impl Total {
    /// Adds a duration.
    pub fn add(&mut self, duration: u64) {
        self.min = if self.count == 0 {
            duration
        } else {
            self.min.min(duration)
        };
        self.max = self.max.max(duration);
        self.count += 1;
        self.sum = self.sum.saturating_add(duration);
        self.squares = self.squares.saturating_add(u128::from(duration).pow(2));
    }

    /// Adds the durations of another total.
    pub fn join(&mut self, other: &Self) {
        if other.count > 0 {
            self.min = if self.count == 0 {
                other.min
            } else {
                self.min.min(other.min)
            };
            self.max = self.max.max(other.max);
            self.count += other.count;
            self.sum = self.sum.saturating_add(other.sum);
            self.squares = self.squares.saturating_add(other.squares);
        }
    }

    /// Mean duration, ns.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Sample variance; 0 for fewer than two durations.
    pub fn variance(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let (n, sum) = (u128::from(self.count), u128::from(self.sum));
        // No clock's times exceed these integers.
        let spread = n.saturating_mul(self.squares).saturating_sub(sum * sum);
        spread as f64 / (self.count as f64 * (self.count - 1) as f64)
    }

    /// Sample standard deviation, ns; 0 for fewer than two durations.
    pub fn deviation(&self) -> f64 {
        self.variance().sqrt()
    }
}

/// Receives a name and a span.
type Adding<'a> = dyn FnMut(&str, Span) + 'a;

/// Totals by name.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    /// Name of the domain, as `HIP_API`.
    pub name: &'static str,
    /// File name, without extension.
    pub file: &'static str,
    /// Totals by name, sorted by sum.
    pub rows: Vec<(String, Total)>,
}

impl Domain {
    fn new(
        name: &'static str,
        file: &'static str,
        records: impl FnOnce(&mut Adding<'_>) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut totals: HashMap<String, Total> = HashMap::new();
        records(&mut |name, span| {
            if let Some(total) = totals.get_mut(name) {
                return total.add(span.duration());
            }
            let name = if totals.len() < MAX_NAMES { name } else { OVERFLOW_TEXT };
            totals.entry(name.to_owned()).or_default().add(span.duration());
        })?;
        let mut rows: Vec<(String, Total)> = totals.into_iter().collect();
        // Equal sums stay sorted by name.
        rows.sort_by(|a, b| b.1.sum.cmp(&a.1.sum).then_with(|| a.0.cmp(&b.0)));
        Ok(Self { name, file, rows })
    }

    /// Total over all names.
    pub fn total(&self) -> Total {
        let mut total = Total::default();
        self.rows.iter().for_each(|row| total.join(&row.1));
        total
    }
}

/// Leaves out calls and ranges that were taken along.
fn counted<'a>(view: &'a View<'_>, add: &'a mut Adding<'_>) -> impl FnMut(&str, Span) + 'a {
    move |name, span| {
        if !view.is_along(span) {
            add(name, span);
        }
    }
}

/// Sums rows by the name that `name` returns.
fn by_name<T: Clone, N: AsRef<str>>(
    rows: &Sorted<Row<T>>,
    add: &mut Adding<'_>,
    name: impl Fn(&Row<T>) -> (N, Span),
) -> io::Result<()>
where
    Row<T>: Entry,
{
    rows.iter().try_for_each(|row| {
        let (name, span) = name(&row?);
        add(name.as_ref(), span);
        Ok(())
    })
}

/// Totals of all non-empty domains, in rocprofv3's order.
pub fn domains(view: &View<'_>) -> io::Result<Vec<Domain>> {
    let (rows, is_seed) = (&view.rows, view.is_seed());
    let file = |new, old| if is_seed { old } else { new };
    let calls = |name, file, rows: &Sorted<Row<ApiCall>>| {
        let called = |row: &Row<ApiCall>| (view.function(&row.record), row.record.span);
        Domain::new(name, file, |add| by_name(rows, &mut counted(view, add), called))
    };
    let of_library = |kind, rows| {
        let known = library(kind).map(|(_, library)| (library.domain, library.stats));
        let (name, file) = known.unwrap_or_default();
        calls(name, file, rows)
    };
    let [rccl, decode, jpeg, mpi] = &rows.libraries;
    let mut all = vec![
        calls("HSA_API", file("hsa_api_stats", "hsa_stats"), &rows.hsa)?,
        calls("HIP_API", file("hip_api_stats", "hip_stats"), &rows.hip)?,
        Domain::new("MARKER_API", file("marker_api_stats", "marker_stats"), |add| {
            let named = |row: &Row<Mark>| (view.message(&row.record), row.record.span);
            by_name(&rows.markers, &mut counted(view, add), named)
        })?,
        Domain::new("KERNEL_DISPATCH", "kernel_stats", |add| {
            // Without a kernel trace there is nothing to sum, as upstream.
            if view.choice.counters_only {
                return Ok(());
            }
            by_name(&rows.dispatches, add, |row| (view.kernel_name(row), row.record.span))
        })?,
        Domain::new("MEMORY_COPY", "memory_copy_stats", |add| {
            by_name(&rows.copies, add, |row| (view.direction(&row.record), row.record.span))
        })?,
        Domain::new("SCRATCH_MEMORY", "scratch_memory_stats", |add| {
            by_name(&rows.scratches, add, |row| {
                let name = operation::name(&operation::SCRATCHES, row.record.operation);
                (name, row.record.span)
            })
        })?,
        of_library(Kind::Rccl, rccl)?,
        Domain::new("MEMORY_ALLOCATION", "memory_allocation_stats", |add| {
            by_name(&rows.allocations, add, |row| {
                let name = operation::name(&operation::ALLOCATIONS, row.record.operation);
                (name, row.record.span)
            })
        })?,
        of_library(Kind::RocDecode, decode)?,
        of_library(Kind::RocJpeg, jpeg)?,
        of_library(Kind::Mpi, mpi)?,
    ];
    all.retain(|domain| !domain.rows.is_empty());
    Ok(all)
}

/// Writes the tables of a process. ROCm 6.2 has none for markers and none over the domains.
pub(super) fn export(view: &View<'_>, domains: &[Domain], files: &mut Files<'_>) -> Result<()> {
    for domain in domains {
        if view.is_seed() && matches!(domain.name, "MARKER_API" | "MEMORY_ALLOCATION") {
            continue;
        }
        let name = format!("{}.csv", domain.file);
        files.write(&name, &|out| table(&domain.rows, out))?;
    }
    if !view.is_seed() && !domains.is_empty() {
        let mut rows: Vec<(String, Total)> = domains
            .iter()
            .map(|domain| (domain.name.to_owned(), domain.total()))
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.1.sum));
        files.write("domain_stats.csv", &|out| table(&rows, out))?;
    }
    Ok(())
}

fn table(rows: &[(String, Total)], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{}",
        header("Name,Calls,TotalDurationNs,AverageNs,Percentage,MinNs,MaxNs,StdDev")
    )?;
    let whole = rows.iter().fold(0u64, |whole, row| whole.saturating_add(row.1.sum));
    for (name, total) in rows {
        let share = total.sum as f64 * 100.0 / whole.max(1) as f64;
        write!(out, "{},{},{},", quoted(name), total.count, total.sum)?;
        write!(out, "{},{},", number(total.mean()), percentage(share))?;
        writeln!(out, "{},{},{}", total.min, total.max, number(total.deviation()))?;
    }
    Ok(())
}

/// Six decimals; scientific notation for small numbers.
pub fn number(value: f64) -> String {
    if value > 0.01 {
        format!("{value:.6}")
    } else {
        scientific(value, 8)
    }
}

/// A percentage: the greater, the fewer decimals.
pub fn percentage(value: f64) -> String {
    if value >= 1.0 {
        format!("{value:.2}")
    } else if value > 0.01 {
        format!("{value:.4}")
    } else {
        scientific(value, 3)
    }
}

/// Scientific notation as C prints it: `2.920e-03`.
pub fn scientific(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$e}");
    let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_formats_of_rocprofv3() {
        assert_eq!(number(7_008_127.5), "7008127.500000");
        assert_eq!(number(0.0), "0.00000000e+00");
        assert_eq!(number(0.01), "1.00000000e-02");
        assert_eq!(percentage(45.336), "45.34");
        assert_eq!(percentage(12.001), "12.00");
        assert_eq!(percentage(0.213_02), "0.2130");
        assert_eq!(percentage(0.00292), "2.920e-03");
        assert_eq!(percentage(0.0), "0.000e+00");
        assert_eq!(scientific(1.457e6, 3), "1.457e+06");
        assert_eq!(scientific(3e120, 1), "3.0e+120");
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let mut total = Total::default();
        total.add(12_927_653);
        assert_eq!((total.deviation(), total.min, total.max), (0.0, 12_927_653, 12_927_653));
        total.add(1_088_602);
        assert_eq!(number(total.mean()), "7008127.500000");
        assert_eq!(number(total.deviation()), "8371473.244913");
        let mut same = Total::default();
        (0..20).for_each(|_| same.add(1_000_000_007));
        assert_eq!(number(same.deviation()), "0.00000000e+00");
        let mut joined = Total::default();
        joined.join(&Total::default());
        joined.join(&total);
        assert_eq!(joined, total);
    }
}
