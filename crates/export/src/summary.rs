//! Summary tables for `--summary`.

use super::stats::{Domain, Total, scientific};
use regex::Regex;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

/// Unit of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    #[default]
    Nsec,
    /// Microseconds.
    Usec,
    /// Milliseconds.
    Msec,
    /// Seconds.
    Sec,
}

impl Unit {
    /// The unit with this name.
    pub fn of(word: &str) -> Option<Self> {
        Some(match word {
            "nsec" => Self::Nsec,
            "usec" => Self::Usec,
            "msec" => Self::Msec,
            "sec" => Self::Sec,
            _ => return None,
        })
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Nsec => "nsec",
            Self::Usec => "usec",
            Self::Msec => "msec",
            Self::Sec => "sec",
        }
    }

    const fn nanoseconds(self) -> f64 {
        match self {
            Self::Nsec => 1.0,
            Self::Usec => 1e3,
            Self::Msec => 1e6,
            Self::Sec => 1e9,
        }
    }

    /// Formats a duration: whole nanoseconds, or the shortest decimal in another unit.
    fn duration(self, nanoseconds: u64) -> String {
        if self == Self::Nsec {
            nanoseconds.to_string()
        } else {
            (nanoseconds as f64 / self.nanoseconds()).to_string()
        }
    }
}

/// Which tables are printed.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// A table over all domains.
    pub whole: bool,
    /// A table per domain.
    pub by_domain: bool,
    /// A table per [`group`], over the domains whose name matches.
    pub groups: Vec<Regex>,
    /// Unit of the durations.
    pub unit: Unit,
    /// Spaces before each line.
    pub indent: usize,
}

/// Regular expression of a group of domains; it must match the whole name.
///
/// Errors: invalid regular expression.
pub fn group(text: &str) -> Result<Regex, regex::Error> {
    // Compiled alone first, so that errors show the user's text.
    Regex::new(text)?;
    Regex::new(&format!("^(?:{text})$"))
}

/// Writes the tables.
pub fn write(domains: &[Domain], tables: &Tables, out: &mut dyn Write) -> io::Result<()> {
    if tables.by_domain {
        for domain in domains {
            table(&format!("{} SUMMARY", domain.name), &[domain], tables, out)?;
        }
    }
    for group in &tables.groups {
        let members: Vec<&Domain> = domains.iter().filter(|domain| group.is_match(domain.name)).collect();
        if !members.is_empty() {
            let names: Vec<&str> = members.iter().map(|domain| domain.name).collect();
            table(&format!("{} SUMMARY", names.join(" + ")), &members, tables, out)?;
        }
    }
    if tables.whole && !domains.is_empty() {
        table("SUMMARY", &domains.iter().collect::<Vec<_>>(), tables, out)?;
    }
    Ok(())
}

/// Rows of several domains: equal names are merged into the first domain, as upstream.
fn joined<'a>(domains: &[&'a Domain]) -> Vec<(&'a str, &'a str, Total)> {
    let mut rows: Vec<(&str, &str, Total)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for domain in domains {
        for (name, total) in &domain.rows {
            if let Some(place) = places.get(name.as_str()) {
                rows[*place].2.join(total);
            } else {
                places.insert(name, rows.len());
                rows.push((domain.name, name, *total));
            }
        }
    }
    rows
}

fn table(title: &str, domains: &[&Domain], tables: &Tables, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = joined(domains);
    rows.sort_by_key(|row| Reverse(row.2.sum));
    let longest = rows.iter().map(|row| row.1.chars().count()).max().unwrap_or(0).max(40);
    let domain = rows.iter().map(|row| row.0.len()).max().unwrap_or(0).max(12);
    let unit = tables.unit.word();
    let cells = [
        ("NAME".to_owned(), longest),
        ("DOMAIN".to_owned(), domain),
        ("CALLS".to_owned(), 15),
        (format!("DURATION ({unit})"), 15),
        (format!("AVERAGE ({unit})"), 15),
        ("PERCENT (INC)".to_owned(), 13),
        (format!("MIN ({unit})"), 15),
        (format!("MAX ({unit})"), 15),
        ("STDDEV".to_owned(), 15),
    ];
    let indent = " ".repeat(tables.indent);
    let header: Vec<String> = cells.iter().map(|(cell, width)| format!(" {cell:^width$} ")).collect();
    let divider: Vec<String> = cells.iter().map(|(_, width)| "-".repeat(width + 2)).collect();
    writeln!(out, "\n{indent}ROCPROFV3 {title}:\n")?;
    writeln!(out, "{indent}|{}|", header.join("|"))?;
    writeln!(out, "{indent}|{}|", divider.join("|"))?;
    let whole = rows.iter().fold(0u64, |whole, row| whole.saturating_add(row.2.sum));
    for (name, key, total) in rows {
        let one = tables.unit.nanoseconds();
        let share = total.sum as f64 * 100.0 / whole.max(1) as f64;
        let (sum, min, max) = (
            tables.unit.duration(total.sum),
            tables.unit.duration(total.min),
            tables.unit.duration(total.max),
        );
        let (mean, deviation) = (
            scientific(total.mean() / one, 3),
            scientific(total.deviation() / one, 3),
        );
        writeln!(
            out,
            "{indent}| {key:longest$} | {name:domain$} | {:>15} | {sum:>15} | {mean:>15} | {share:>13.6} | {min:>15} | \
{max:>15} | {deviation:>15} |",
            total.count
        )?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_shape_of_rocprofv3() {
        let mut total = Total::default();
        total.add(1_088_602);
        total.add(12_927_653);
        let domain = Domain {
            name: "HIP_API",
            file: "hip_api_stats",
            rows: vec![("hipStreamCreate".to_owned(), total)],
        };
        let tables = Tables {
            by_domain: true,
            indent: 4,
            ..Tables::default()
        };
        let mut out = Vec::new();
        write(&[domain], &tables, &mut out).unwrap();
        let expected = "
    ROCPROFV3 HIP_API SUMMARY:

    |                   NAME                   |    DOMAIN    |      CALLS      | DURATION (nsec) | AVERAGE (nsec)  | PERCENT (INC) |   MIN (nsec)    |   MAX (nsec)    |     STDDEV      |
    |------------------------------------------|--------------|-----------------|-----------------|-----------------|---------------|-----------------|-----------------|-----------------|
    | hipStreamCreate                          | HIP_API      |               2 |        14016255 |       7.008e+06 |    100.000000 |         1088602 |        12927653 |       8.371e+06 |

";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn one_name_in_two_domains_is_one_row() {
        let mut total = Total::default();
        total.add(10);
        let domain = |name| Domain {
            name,
            file: "",
            rows: vec![("step".to_owned(), total)],
        };
        let (markers, kernels) = (domain("MARKER_API"), domain("KERNEL_DISPATCH"));
        let rows = joined(&[&markers, &kernels]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].0, rows[0].2.count, rows[0].2.sum), ("MARKER_API", 2, 20));
    }

    #[test]
    fn a_group_matches_whole_names_by_any_alternative() {
        let group = group("HIP|HIP_API").unwrap();
        assert!(group.is_match("HIP_API") && !group.is_match("HIP_API_EXT"));
        assert!(super::group("(").is_err());
    }

    #[test]
    fn other_units_are_shortest_decimals() {
        assert_eq!(Unit::Msec.duration(1_500_000), "1.5");
        assert_eq!(Unit::of("sec").unwrap().duration(2_000_000_000), "2");
        assert_eq!(Unit::of("hour"), None);
    }
}
