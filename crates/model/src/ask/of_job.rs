//! Answers of the ranks of a job, put together: sums over ranks where a row is a sum, else the rows of each rank with its number.
//! It is done on each node for its ranks, and again for all nodes: the order does not matter.

use super::answer::{Answer, Cell, Column, Order, Row, Unit};
use super::question::{Question, Top, Verb};
use crate::report::mpi;
use roctop_trace::item::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Rows of a sum that a rank and a node give at most: a kernel that is rare on one rank may be frequent on all.
pub const SUMMED_ROWS: usize = 500;

/// Column of the rank, in answers whose rows are a rank's.
const RANK: &str = "Rank";
/// Columns of sums: how many ranks have the row, the rank with the most, and how much that is.
const RANKS: &str = "Ranks";
const MOST_RANK: &str = "Most_Rank";
const MOST_VALUE: &str = "Most";
/// Of the field by which a user asks for the rows of each rank.
const BY_RANK: &str = "rank";
/// Fields that put kernels together by something that is a rank's own.
const OWN_GROUPS: [&str; 5] = ["stream", "dev", "gpu", "pid", "process"];

/// The answer of some ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// How many ranks answered.
    pub ranks: u32,
    /// Their answer.
    pub answer: Answer,
}

/// How the answers of ranks to a question are put together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What each rank is asked.
    pub question: String,
    /// Rows that each rank gives at most.
    pub rows: usize,
    /// Rows are made of what all ranks say together.
    #[serde(default)]
    is_placement: bool,
    /// Rows are added up; else each rank's are listed.
    is_sum: bool,
    /// The rows of a rank stay together.
    is_by_rank: bool,
    /// Rows of the whole answer.
    limit: usize,
}

impl Plan {
    /// Of a question.
    pub fn new(question: &Question) -> Self {
        let by = question.by.as_ref();
        let is_by_rank = by.is_some_and(|by| by.value == BY_RANK);
        let is_own_group = by.is_some_and(|by| OWN_GROUPS.contains(&by.value.as_str()));
        let is_sum = match question.verb {
            Verb::Top(Top::Kernels) => !is_own_group,
            Verb::Top(Top::Calls | Top::Mpi | Top::Copies | Top::Markers | Top::Ranges | Top::Sites) | Verb::Errors => {
                true
            }
            _ => false,
        };
        let is_sum = is_sum && !is_by_rank;
        Self {
            question: if is_by_rank {
                without_by(question)
            } else {
                question.source.clone()
            },
            rows: if is_sum {
                question.limit.max(SUMMED_ROWS)
            } else {
                question.limit
            },
            is_placement: matches!(question.verb, Verb::Placement(_)),
            is_sum,
            is_by_rank,
            limit: question.limit,
        }
    }

    /// The answer of a rank, as one of several.
    pub fn part(&self, rank: u32, mut answer: Answer) -> Part {
        let origin = answer.window.origin;
        let since = |at: Nanos| at.saturating_sub(origin);
        for span in [Some(&mut answer.window.span), answer.window.asked.as_mut()]
            .into_iter()
            .flatten()
        {
            (span.begin, span.end) = (since(span.begin), since(span.end));
        }
        answer.window.origin = 0;
        answer.is_of_job = true;
        for (at, column) in answer.columns.iter().enumerate() {
            for row in &mut answer.rows {
                match row.cells.get_mut(at) {
                    Some(Cell::Number(value)) if !value.is_finite() => row.cells[at] = Cell::None,
                    Some(Cell::Number(value)) if column.unit == Unit::Moment => *value -= origin as f64,
                    _ => {}
                }
            }
        }
        for note in &mut answer.notes {
            *note = format!("rank {rank}: {note}");
        }
        let number = Cell::Number(rank.into());
        if self.is_placement {
            for place in &mut answer.places {
                place.rank = Some(rank);
            }
        } else if self.is_sum {
            let order = answer.order.as_ref();
            let most = answer
                .columns
                .iter()
                .position(|column| Some(&column.name) == order.map(|order| &order.column));
            let most = most.filter(|at| adds(&answer.columns[*at]));
            answer.columns.push(column(RANKS, Unit::Count, 1));
            answer.columns.push(column(MOST_RANK, Unit::Number, 2));
            let unit = most.map_or(Unit::Number, |at| answer.columns[at].unit);
            answer.columns.push(column(MOST_VALUE, unit, 2));
            for row in &mut answer.rows {
                let value = most.and_then(|at| row.cells.get(at).cloned()).unwrap_or(Cell::None);
                let of = if value == Cell::None {
                    Cell::None
                } else {
                    number.clone()
                };
                row.cells.extend([Cell::Number(1.0), of, value]);
            }
        } else {
            // That of another column would be a second one of this name.
            let known = answer.columns.iter().position(|column| column.name == RANK);
            let at = known.unwrap_or_else(|| {
                answer.columns.insert(0, column(RANK, Unit::Number, 0));
                for row in &mut answer.rows {
                    row.cells.insert(0, Cell::None);
                }
                0
            });
            for row in &mut answer.rows {
                row.cells[at] = number.clone();
            }
        }
        Part { ranks: 1, answer }
    }

    /// The answers of several, as one; `None` of none. `is_whole` cuts it to the rows that the question asks for.
    pub fn join(&self, parts: Vec<Part>, is_whole: bool) -> Option<Part> {
        let ranks = parts.iter().map(|part| part.ranks).sum();
        let mut first = parts.first()?.answer.clone();
        if self.is_placement {
            first.places = parts.into_iter().flat_map(|part| part.answer.places).collect();
            first.place(if is_whole { self.limit } else { self.rows });
            return Some(Part { ranks, answer: first });
        }
        let mut columns: Vec<Column> = Vec::new();
        for part in &parts {
            let new = |column: &&Column| !columns.iter().any(|known| known.name == column.name);
            let new: Vec<Column> = part.answer.columns.iter().filter(new).cloned().collect();
            columns.extend(new);
        }
        let count: usize = parts.iter().map(|part| part.answer.count).sum();
        let is_cut = parts.iter().any(|part| part.answer.count > part.answer.rows.len());
        let others = parts.iter().skip(1).map(|part| &part.answer);
        for other in others {
            let span = &mut first.window.span;
            span.begin = span.begin.min(other.window.span.begin);
            span.end = span.end.max(other.window.span.end);
            first.window.asked = first.window.asked.or(other.window.asked);
            first.is_running |= other.is_running;
            first.basis = first.basis.weaker(other.basis);
            first.clock_error = first.clock_error.zip(other.clock_error).map(|(a, b)| a.max(b));
            first.lost.extend(other.lost.iter().copied());
            first.notes.extend(other.notes.iter().cloned());
        }
        let mut rows: Vec<(u32, Row)> = Vec::new();
        for part in parts {
            let places: Vec<Option<usize>> = columns
                .iter()
                .map(|column| part.answer.columns.iter().position(|known| known.name == column.name))
                .collect();
            rows.extend(part.answer.rows.into_iter().map(|row| {
                let cell = |at: &Option<usize>| at.and_then(|at| row.cells.get(at).cloned()).unwrap_or(Cell::None);
                let cells = places.iter().map(cell).collect();
                (part.ranks, Row { id: row.id, cells })
            }));
        }
        let mut rows = if self.is_sum {
            sums(&columns, rows, ranks)
        } else {
            rows.into_iter().map(|(_, row)| row).collect()
        };
        self.sort(&columns, first.order.as_ref(), &mut rows);
        first.count = if self.is_sum { rows.len() } else { count };
        rows.truncate(if is_whole { self.limit } else { self.rows });
        if is_cut && self.is_sum && is_whole {
            first
                .notes
                .push(format!("of the {} greatest rows of each rank", self.rows));
        }
        first.notes.dedup();
        (first.columns, first.rows) = (columns, rows);
        Some(Part { ranks, answer: first })
    }

    fn sort(&self, columns: &[Column], order: Option<&Order>, rows: &mut [Row]) {
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        let number = |row: &Row, at: Option<usize>| match at.and_then(|at| row.cells.get(at)) {
            Some(Cell::Number(value)) => *value,
            _ => f64::NEG_INFINITY,
        };
        let rank = place(RANK);
        let by = order
            .filter(|_| !self.is_by_rank)
            .and_then(|order| Some((place(&order.column)?, order.is_ascending)));
        match by {
            Some((at, is_ascending)) => rows.sort_by(|a, b| {
                let order = match (&a.cells[at], &b.cells[at]) {
                    (Cell::Text(a), Cell::Text(b)) => b.cmp(a),
                    _ => number(a, Some(at)).total_cmp(&number(b, Some(at))),
                };
                let order = if is_ascending { order } else { order.reverse() };
                order.then(number(a, rank).total_cmp(&number(b, rank)))
            }),
            None => rows.sort_by(|a, b| number(a, rank).total_cmp(&number(b, rank))),
        }
    }
}

/// A question without its clause `by`.
fn without_by(question: &Question) -> String {
    let Some(by) = &question.by else {
        return question.source.clone();
    };
    let chars: Vec<char> = question.source.chars().collect();
    let before: String = chars[..by.column.min(chars.len())].iter().collect();
    let after: String = chars.iter().skip(by.column + by.value.chars().count()).collect();
    let before = before.trim_end().strip_suffix("by").unwrap_or(&before);
    format!("{}{after}", before.trim_end())
}

fn column(name: &str, unit: Unit, rank: u8) -> Column {
    Column {
        name: name.into(),
        unit,
        rank,
        is_wide: false,
    }
}

/// How the values of several ranks become one.
enum Rule {
    Sum,
    Least,
    Greatest,
    /// Mean over the launches or calls.
    PerCall,
    /// Mean over the ranks, also over those without this row.
    PerRank,
    /// A text, or what has no meaning for several ranks: none if they differ.
    Same,
}

/// Columns whose values add up.
const ADDED: [&str; 7] = [
    "Calls",
    "Calls_ns",
    "Total_ns",
    "GPU_ns",
    "Time_last_second_ns",
    "Bytes_last_second",
    "Now_Bps",
];

/// The column of call sites.
const SITE: &str = "Site";
/// Mean over launches; its rows count calls, too.
const AVERAGE_OF_LAUNCHES: &str = "Kernel_Average_ns";

/// Whether the values of a column add up.
fn adds(column: &Column) -> bool {
    ADDED.contains(&&*column.name) || column.unit == Unit::Count || column.name == "Bytes"
}

fn rule(column: &Column) -> Rule {
    match &*column.name {
        _ if adds(column) => Rule::Sum,
        "Min_ns" => Rule::Least,
        "Max_ns" | "Peak_Bps" | "Is_estimate" | "Is_Slow" => Rule::Greatest,
        "Average_ns" | "Average_GPU_ns" | AVERAGE_OF_LAUNCHES => Rule::PerCall,
        _ if column.unit == Unit::Share => Rule::PerRank,
        _ => Rule::Same,
    }
}

/// One row for those of all ranks with the same texts. Ranks may differ in the site with most launches of a kernel, and in the
/// kernel with most time of a site: these texts distinguish no rows.
fn sums(columns: &[Column], rows: Vec<(u32, Row)>, ranks: u32) -> Vec<Row> {
    let is_of_sites = columns.first().is_some_and(|column| column.name == SITE);
    let is_key = |at: usize| columns[at].unit == Unit::Text && (columns[at].name == SITE) == is_of_sites;
    let key = |row: &Row| -> Vec<String> {
        let cells = row.cells.iter().enumerate().filter(|(at, _)| is_key(*at));
        cells.map(|(_, cell)| cell.raw()).collect()
    };
    let mut groups: Vec<Vec<(u32, Row)>> = Vec::new();
    let mut places: HashMap<Vec<String>, usize> = HashMap::new();
    for (of, row) in rows {
        let place = *places.entry(key(&row)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push((of, row));
    }
    groups.into_iter().map(|group| sum(columns, &group, ranks)).collect()
}

fn sum(columns: &[Column], group: &[(u32, Row)], ranks: u32) -> Row {
    let place = |name: &str| columns.iter().position(|column| column.name == name);
    let number = |row: &Row, at: usize| match row.cells.get(at) {
        Some(Cell::Number(value)) => Some(*value),
        _ => None,
    };
    let calls = place("Calls").or_else(|| place("Count"));
    let most = place(MOST_VALUE);
    let leader = group.iter().max_by(|(_, a), (_, b)| {
        let most = |row| most.and_then(|at| number(row, at)).unwrap_or(f64::NEG_INFINITY);
        most(a).total_cmp(&most(b))
    });
    let cell = |at: usize| {
        let column = &columns[at];
        if column.name == MOST_VALUE || column.name == MOST_RANK {
            return leader.map_or(Cell::None, |(_, row)| row.cells[at].clone());
        }
        let known = || group.iter().filter_map(|(of, row)| Some((of, row, number(row, at)?)));
        let total = |name: &str| {
            let at = place(name)?;
            group.iter().filter_map(|(_, row)| number(row, at)).reduce(|a, b| a + b)
        };
        if column.name == mpi::AVERAGE_BYTES {
            let mean = total("Bytes").zip(total("Calls_with_Bytes"));
            let mean = mean.filter(|(_, calls)| *calls > 0.0);
            return mean.map_or(Cell::None, |(bytes, calls)| Cell::Number((bytes / calls).floor()));
        }
        if column.name == mpi::MAX_OVER_MEAN {
            let is_of_time = most
                .zip(place("Total_ns"))
                .is_some_and(|(most, total)| columns[most].unit == columns[total].unit);
            let most = leader
                .and_then(|(_, row)| number(row, most?))
                .filter(|_| is_of_time && ranks > 1);
            let mean = total("Total_ns")
                .map(|total| total / f64::from(ranks))
                .filter(|mean| *mean > 0.0);
            return most
                .zip(mean)
                .map_or(Cell::None, |(most, mean)| Cell::Number(most / mean));
        }
        if let [(of, row)] = group
            && (*of == ranks || column.unit != Unit::Share)
        {
            return row.cells[at].clone();
        }
        let value = match rule(column) {
            Rule::Sum => known().map(|(.., value)| value).reduce(|a, b| a + b),
            Rule::Least => known().map(|(.., value)| value).reduce(f64::min),
            Rule::Greatest => known().map(|(.., value)| value).reduce(f64::max),
            Rule::PerRank => {
                let sum = known()
                    .map(|(of, _, value)| value * f64::from(*of))
                    .reduce(|a, b| a + b);
                sum.map(|sum| sum / f64::from(ranks.max(1)))
            }
            Rule::PerCall => {
                let weight = match &*column.name {
                    AVERAGE_OF_LAUNCHES => place("Launches"),
                    _ => calls,
                };
                let weighed = known().filter_map(|(_, row, value)| Some((value, number(row, weight?)?)));
                let (sum, count) = weighed.fold((0.0, 0.0), |(sum, count), (value, calls)| {
                    (sum + value * calls, count + calls)
                });
                (count > 0.0).then(|| sum / count)
            }
            Rule::Same => {
                let first = &group[0].1.cells[at];
                let is_same = group.iter().all(|(_, row)| row.cells[at] == *first);
                return if is_same { first.clone() } else { Cell::None };
            }
        };
        value.map_or(Cell::None, Cell::Number)
    };
    Row {
        id: group[0].1.id.clone(),
        cells: (0..columns.len()).map(cell).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fresh, Options, Store};

    fn asked(source: &str) -> Plan {
        Plan::new(&Question::parse(source, &[]).unwrap())
    }

    /// An answer with these columns and rows.
    fn answer(columns: &[(&str, Unit)], rows: &[Vec<Cell>], order: Option<&str>) -> Answer {
        let snap = Store::new(Options::default()).snapshot(Fresh::All);
        let mut answer = Answer::about(&snap, "a question");
        answer.columns = columns.iter().map(|(name, unit)| column(name, *unit, 0)).collect();
        let rows = rows.iter().map(|cells| Row {
            id: None,
            cells: cells.clone(),
        });
        answer.rows = rows.collect();
        answer.count = answer.rows.len();
        answer.order = order.map(|name| Order {
            column: name.into(),
            is_ascending: false,
        });
        answer
    }

    fn number(value: f64) -> Cell {
        Cell::Number(value)
    }

    fn kernel(name: &str, calls: f64, total: f64, share: f64) -> Vec<Cell> {
        let average = total / calls;
        let cells = [calls, total, share, average, average / 2.0, average * 2.0, average].map(number);
        [vec![Cell::Text(name.into())], cells.to_vec()].concat()
    }

    fn kernels(rows: &[Vec<Cell>]) -> Answer {
        let columns = [
            ("Kernel_Name", Unit::Text),
            ("Calls", Unit::Count),
            ("Total_ns", Unit::Nanos),
            ("Share", Unit::Share),
            ("Average_ns", Unit::Nanos),
            ("Min_ns", Unit::Nanos),
            ("Max_ns", Unit::Nanos),
            ("P99_ns", Unit::Nanos),
        ];
        answer(&columns, rows, Some("Total_ns"))
    }

    fn ranks() -> Vec<Answer> {
        vec![
            kernels(&[kernel("gemm", 10.0, 1000.0, 0.8), kernel("copy", 5.0, 250.0, 0.2)]),
            kernels(&[kernel("gemm", 30.0, 6000.0, 1.0)]),
            kernels(&[kernel("rare", 1.0, 9000.0, 0.6), kernel("gemm", 10.0, 5000.0, 0.4)]),
        ]
    }

    fn cells(part: &Part, row: usize, name: &str) -> Cell {
        let at = part.answer.columns.iter().position(|column| column.name == name);
        part.answer.rows[row].cells[at.unwrap_or_else(|| panic!("no column {name}"))].clone()
    }

    #[test]
    fn time_in_mpi_has_its_greatest_over_the_mean_of_all_ranks() {
        let columns = [
            ("Function", Unit::Text),
            ("Calls", Unit::Count),
            ("Total_ns", Unit::Nanos),
            ("Bytes", Unit::Bytes),
            ("Calls_with_Bytes", Unit::Count),
            (mpi::AVERAGE_BYTES, Unit::Bytes),
            (mpi::MAX_OVER_MEAN, Unit::Number),
        ];
        let of = |values: &[[f64; 4]]| {
            let row = |values: &[f64; 4]| [vec![Cell::Text("MPI_Recv".into())], values.map(number).to_vec()].concat();
            let rows = values.iter().map(|values| [row(values), vec![Cell::None; 2]].concat());
            answer(&columns, &rows.collect::<Vec<_>>(), Some("Total_ns"))
        };
        let plan = asked("top mpi");
        // The last one calls another function.
        let ranks = [of(&[[2.0, 100.0, 16.0, 2.0]]), of(&[[5.0, 300.0, 300.0, 1.0]]), of(&[])];
        let parts: Vec<Part> = (0..).zip(ranks).map(|(rank, answer)| plan.part(rank, answer)).collect();
        let [a, b, c] = <[Part; 3]>::try_from(parts.clone()).unwrap();
        let node = plan.join(vec![b, c], false).unwrap();
        for whole in [plan.join(parts, true), plan.join(vec![a, node], true)] {
            let whole = whole.unwrap();
            let shown = [mpi::AVERAGE_BYTES, mpi::MAX_OVER_MEAN].map(|name| cells(&whole, 0, name));
            assert_eq!(shown, [number(105.0), number(2.25)]);
        }
    }

    #[test]
    fn kernels_of_all_ranks_add_up() {
        let plan = asked("top kernels limit 2");
        assert_eq!(
            (plan.rows, plan.question.as_str()),
            (SUMMED_ROWS, "top kernels limit 2")
        );
        let parts: Vec<Part> = ranks()
            .into_iter()
            .zip(0..)
            .map(|(answer, rank)| plan.part(rank, answer))
            .collect();
        let whole = plan.join(parts.clone(), true).unwrap();
        assert_eq!((whole.ranks, whole.answer.count, whole.answer.rows.len()), (3, 3, 2));
        assert_eq!(cells(&whole, 0, "Kernel_Name"), Cell::Text("gemm".into()));
        // In thousandths.
        let gemm = |name: &str| match cells(&whole, 0, name) {
            Cell::Number(value) => (value * 1000.0).round() as u64,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(
            ["Calls", "Total_ns", "Average_ns", "Min_ns", "Max_ns"].map(gemm),
            [50_000, 12_000_000, 240_000, 50_000, 1_000_000]
        );
        // Its mean share: 80 %, 100 % and 40 %.
        assert_eq!(gemm("Share"), 733);
        assert_eq!([RANKS, MOST_RANK, MOST_VALUE].map(gemm), [3000, 1000, 6_000_000]);
        assert_eq!(cells(&whole, 0, "P99_ns"), Cell::None, "percentiles do not add up");
        // One rank has it, and its time is the whole time; its share is a third of that of its rank.
        let rare = |name: &str| cells(&whole, 1, name);
        assert_eq!((rare("P99_ns"), rare(MOST_RANK)), (number(9000.0), number(2.0)));
        assert!(matches!(rare("Share"), Cell::Number(share) if (share - 0.2).abs() < 1e-9));

        // Node by node it is the same.
        let [a, b, c] = <[Part; 3]>::try_from(parts).unwrap();
        let node = plan.join(vec![b, c], false).unwrap();
        let text = serde_json::to_string(&node).unwrap();
        let node: Part = serde_json::from_str(&text).unwrap();
        let other = plan.join(vec![node, plan.join(vec![a], false).unwrap()], true).unwrap();
        assert_eq!(other.ranks, 3);
        for name in [
            "Kernel_Name",
            "Calls",
            "Total_ns",
            "Min_ns",
            RANKS,
            MOST_RANK,
            MOST_VALUE,
        ] {
            assert_eq!(cells(&other, 0, name), cells(&whole, 0, name), "{name}");
        }
        for name in ["Share", "Average_ns"] {
            let (Cell::Number(a), Cell::Number(b)) = (cells(&other, 0, name), cells(&whole, 0, name)) else {
                panic!("{name}");
            };
            assert!((a - b).abs() < 1e-9, "{name}: {a} {b}");
        }
    }

    #[test]
    fn sites_of_all_ranks_add_up_whatever_kernel_is_the_first() {
        let columns = [
            ("Site", Unit::Text),
            ("GPU_ns", Unit::Nanos),
            ("Launches", Unit::Count),
            ("Kernel_Average_ns", Unit::Nanos),
            ("Calls", Unit::Count),
            ("Kernel_Name", Unit::Text),
        ];
        let of = |time: f64, launches: f64, kernel: &str| {
            let numbers = [time, launches, time / launches, launches].map(number);
            let row: Vec<Cell> = std::iter::once(Cell::Text("step train.cpp:12".into()))
                .chain(numbers)
                .chain([Cell::Text(kernel.into())])
                .collect();
            answer(&columns, &[row], Some("GPU_ns"))
        };
        let plan = asked("top sites");
        let parts = vec![
            plan.part(0, of(100.0, 10.0, "gemm +1")),
            plan.part(1, of(800.0, 20.0, "copy +1")),
        ];
        let whole = plan.join(parts, true).unwrap();
        assert_eq!(whole.answer.rows.len(), 1);
        let of = |name: &str| cells(&whole, 0, name);
        assert_eq!(
            ["GPU_ns", "Launches", "Calls", "Kernel_Average_ns", MOST_RANK].map(of),
            [900.0, 30.0, 30.0, 30.0, 1.0].map(number)
        );
        assert_eq!(of("Kernel_Name"), Cell::None, "ranks differ in it");
    }

    #[test]
    fn rows_of_ranks_have_their_number_and_one_order() {
        let columns = [("Begin_ns", Unit::Moment), ("Duration_ns", Unit::Nanos)];
        let of = |rows: &[(f64, f64)], origin| {
            let rows: Vec<Vec<Cell>> = rows.iter().map(|(a, b)| vec![number(*a), number(*b)]).collect();
            let mut answer = answer(&columns, &rows, Some("Duration_ns"));
            answer.window.origin = origin;
            answer.count = 10;
            answer.notes = vec!["a note".into()];
            answer
        };
        let plan = asked("slowest limit 3");
        let parts = vec![
            plan.part(0, of(&[(1010.0, 9.0), (1020.0, 5.0)], 1000)),
            plan.part(7, of(&[(520.0, 8.0), (530.0, 7.0)], 500)),
        ];
        let whole = plan.join(parts, true).unwrap();
        let rows: Vec<[Cell; 3]> = (0..3)
            .map(|row| ["Rank", "Begin_ns", "Duration_ns"].map(|name| cells(&whole, row, name)))
            .collect();
        let row = |cells: [f64; 3]| cells.map(number);
        // Times count from the begin of each rank's session.
        assert_eq!(
            rows,
            [row([0.0, 10.0, 9.0]), row([7.0, 20.0, 8.0]), row([7.0, 30.0, 7.0])]
        );
        assert_eq!((whole.answer.count, whole.answer.rows.len()), (20, 3));
        assert_eq!(whole.answer.notes, ["rank 0: a note", "rank 7: a note"]);
        assert!(whole.answer.is_of_job && plan.join(Vec::new(), true).is_none());
    }

    #[test]
    fn by_rank_lists_the_rows_of_each() {
        let plan = asked("top kernels where gemm by rank last 3s limit 9");
        assert_eq!(
            (plan.question.as_str(), plan.rows),
            ("top kernels where gemm last 3s limit 9", 9)
        );
        let parts = ranks()
            .into_iter()
            .zip([5, 3, 4])
            .map(|(answer, rank)| plan.part(rank, answer));
        let whole = plan.join(parts.collect(), true).unwrap();
        let found: Vec<Cell> = (0..5).map(|row| cells(&whole, row, RANK)).collect();
        assert_eq!(found, [3.0, 4.0, 4.0, 5.0, 5.0].map(number));
        assert_eq!(asked("slowest by rank").question, "slowest");
        // GPU 0 of one rank is not that of another.
        assert!(!asked("top kernels by dev").is_sum && asked("top kernels by p99").is_sum);
        assert!(asked("errors").is_sum && !asked("hang").is_sum);
    }
}
