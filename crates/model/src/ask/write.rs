//! Answers as a table, as CSV and as JSON.

use super::answer::{Answer, Cell, Column, SCHEMA, Unit};
use crate::Mode;
use roctop_trace::item::{Lost, Nanos, Span};
use roctop_trace::units;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Columns of a terminal that a table takes, without its widest column.
const TABLE_WIDTH: usize = 110;
/// Maximum columns of a text in a table. A marker's may have 16 KiB; JSON and CSV have it whole.
const MAX_TEXT_WIDTH: usize = 160;
/// Columns of a table with this rank or more are for files alone.
const FILES_ONLY: u8 = 9;

/// A text of the traced program for a terminal or a reader that acts on texts: without line breaks, control and formatting
/// characters, which stand as `\u{…}`.
pub fn printable(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
            // Tags and variation selectors: whole texts can hide in them.
            || matches!(c, '\u{e0000}'..='\u{e0fff}')
    };
    if !text.contains(is_hidden) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    })
}

fn seconds(nanos: u64) -> String {
    format!("{:.3} s", nanos as f64 / 1e9)
}

fn since(span: Span, origin: Nanos) -> String {
    let at = |time: Nanos| seconds(time.saturating_sub(origin));
    format!("{} to {}", at(span.begin), at(span.end))
}

fn text(cell: &Cell, column: &Column, answer: &Answer) -> String {
    let value = match cell {
        Cell::None => return units::MISSING.into(),
        Cell::Text(text) => return units::elide(&printable(text), MAX_TEXT_WIDTH),
        Cell::Number(value) => *value,
    };
    let whole = value.max(0.0) as u64;
    match column.unit {
        Unit::Count => units::grouped(whole),
        Unit::Nanos => units::duration(whole),
        Unit::Moment => units::timestamp_short(whole.saturating_sub(answer.window.origin)),
        Unit::Share => format!("{} %", units::percent(value)),
        Unit::Bytes => units::bytes(whole),
        Unit::BytesPerSecond => units::bandwidth(value),
        Unit::PerSecond => units::rate(value),
        Unit::Text | Unit::Number if value.fract() == 0.0 => cell.raw(),
        Unit::Text | Unit::Number => format!("{value:.2}"),
    }
}

/// Heading of a column whose values have their units: its name in files without the unit. If another column may have the same
/// name, it says that it is a time.
pub fn heading(name: &str) -> String {
    match name.strip_suffix("_ns") {
        Some(base @ ("GPU" | "Kernel" | "Calls" | "Average")) => format!("{base}_time"),
        Some(base) => base.to_owned(),
        None => name.strip_suffix("_Bps").unwrap_or(name).to_owned(),
    }
    .to_uppercase()
}

/// The columns that a table has: those of the lowest ranks that fit and have a value; the wide ones last.
fn shown(answer: &Answer) -> Vec<usize> {
    let columns = &answer.columns;
    let has_value = |at: usize| {
        answer
            .rows
            .iter()
            .any(|row| row.cells.get(at).is_some_and(|cell| *cell != Cell::None))
    };
    let width = |at: usize| {
        let cells = answer
            .rows
            .iter()
            .map(|row| units::width(&text(&row.cells[at], &columns[at], answer)));
        cells.max().unwrap_or(0).max(heading(&columns[at].name).len()) + 2
    };
    let mut order: Vec<usize> = (0..columns.len()).filter(|&at| columns[at].rank < FILES_ONLY).collect();
    order.retain(|&at| has_value(at));
    order.sort_by_key(|&at| (columns[at].rank, at));
    let mut left = TABLE_WIDTH;
    order.retain(|&at| {
        let takes = if columns[at].is_wide { 0 } else { width(at) };
        let fits = takes <= left;
        left -= if fits { takes } else { 0 };
        fits
    });
    order.sort_by_key(|&at| (columns[at].is_wide, at));
    order
}

/// Writes what limits the answer, then a table with units, then notes.
pub fn table(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    let window = &answer.window;
    let error = match answer.clock_error {
        Some(0) => String::new(),
        Some(error) => format!(", clocks within {}", units::duration(error)),
        None => ", clocks within an unknown time".into(),
    };
    writeln!(
        out,
        "{}: {}, of {}{error}, lost {}",
        units::elide(&printable(&answer.title), MAX_TEXT_WIDTH),
        since(window.span, window.origin),
        answer.basis.word(),
        answer.lost_records().text(|records| records.to_string())
    )?;
    if let Some(asked) = window.asked {
        writeln!(out, "asked for {}", since(asked, window.origin))?;
    }
    if answer.rows.is_empty() {
        writeln!(out, "no rows")?;
    } else {
        rows(answer, out)?;
    }
    if answer.count > answer.rows.len() {
        writeln!(out, "… {} more; limit sets how many", answer.count - answer.rows.len())?;
    }
    for note in &answer.notes {
        writeln!(out, "{}", printable(note))?;
    }
    Ok(())
}

fn rows(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    let shown = shown(answer);
    let has_ids = answer.rows.iter().any(|row| row.id.is_some());
    let mut lines: Vec<Vec<String>> = vec![shown.iter().map(|&at| heading(&answer.columns[at].name)).collect()];
    lines.extend(answer.rows.iter().map(|row| {
        let cell = |&at: &usize| text(&row.cells[at], &answer.columns[at], answer);
        shown.iter().map(cell).collect()
    }));
    if has_ids {
        let ids = answer
            .rows
            .iter()
            .map(|row| row.id.as_ref().map_or_else(String::new, ToString::to_string));
        for (line, id) in lines.iter_mut().zip(std::iter::once("ID".to_owned()).chain(ids)) {
            line.insert(0, id);
        }
    }
    let is_left = |at: usize| match at.checked_sub(usize::from(has_ids)) {
        None => true,
        Some(at) => answer.columns[shown[at]].unit == Unit::Text || answer.columns[shown[at]].is_wide,
    };
    let count = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..count)
        .map(|at| lines.iter().map(|line| units::width(&line[at])).max().unwrap_or(0))
        .collect();
    for line in &lines {
        let mut whole = String::new();
        for (at, cell) in line.iter().enumerate() {
            let room = " ".repeat(widths[at] - units::width(cell));
            let gap = if at == 0 { "" } else { "  " };
            if is_left(at) {
                whole.extend([gap, cell, &room]);
            } else {
                whole.extend([gap, &room, cell]);
            }
        }
        writeln!(out, "{}", whole.trim_end())?;
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Writes the rows as comma-separated values in base units; the last column has the ids.
pub fn csv(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    let names = answer.columns.iter().map(|column| quoted(&column.name));
    writeln!(out, "{}", names.chain(["Id".into()]).collect::<Vec<_>>().join(","))?;
    for row in &answer.rows {
        let cells = row.cells.iter().map(|cell| quoted(&cell.raw()));
        let id = row.id.as_ref().map_or_else(String::new, ToString::to_string);
        writeln!(out, "{}", cells.chain([id]).collect::<Vec<_>>().join(","))?;
    }
    Ok(())
}

fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Value::from(value as i64);
    }
    // Neither infinite nor undefined numbers are JSON.
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn span(span: Span) -> Value {
    json!({ "begin_ns": span.begin, "end_ns": span.end })
}

/// The answer as JSON, see docs/ask.schema.json.
pub fn json(answer: &Answer) -> Value {
    let cell = |cell: &Cell| match cell {
        Cell::None => Value::Null,
        Cell::Number(value) => number(*value),
        Cell::Text(text) => Value::String(text.clone()),
    };
    let rows = answer.rows.iter().map(|row| {
        let values = answer.columns.iter().zip(&row.cells);
        let values: Map<String, Value> = values
            .map(|(column, value)| (column.name.clone(), cell(value)))
            .collect();
        json!({ "id": row.id.as_ref().map(ToString::to_string), "values": values })
    });
    let columns = answer
        .columns
        .iter()
        .map(|column| json!({ "name": column.name, "unit": column.unit.word() }));
    let total = answer.lost_records();
    let lost = answer.lost.iter().map(|loss| {
        let lost = Lost::of([(loss.reason, loss.records)]);
        json!({
            "pid": loss.pid, "reason": loss.reason.phrase(), "records": lost.records, "at_least": lost.is_least,
        })
    });
    json!({
        "schema": SCHEMA,
        "question": answer.question,
        "source": {
            "kind": match answer.mode {
                _ if answer.is_of_job => "job",
                Mode::Live => "session",
                Mode::Replay => "recording",
            },
            "title": answer.title,
            "running": answer.is_running,
        },
        "window": {
            "begin_ns": answer.window.span.begin,
            "end_ns": answer.window.span.end,
            "origin_ns": answer.window.origin,
            "asked": answer.window.asked.map(span),
        },
        "basis": answer.basis.word(),
        "clock_error_ns": answer.clock_error,
        "lost": { "records": total.records, "at_least": total.is_least, "by_reason": lost.collect::<Vec<_>>() },
        "columns": columns.collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
        "count": answer.count,
        "notes": answer.notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::answer::Row;
    use crate::{Fresh, Options, Store};

    #[test]
    fn headings_have_no_unit_that_the_values_do_not_have() {
        let names = [
            "GPU_ns",
            "Total_ns",
            "Average_Bps",
            "Bytes",
            "Calls",
            "Calls_ns",
            "Average_ns",
        ];
        let expected = [
            "GPU_TIME",
            "TOTAL",
            "AVERAGE",
            "BYTES",
            "CALLS",
            "CALLS_TIME",
            "AVERAGE_TIME",
        ];
        assert_eq!(names.map(heading), expected);
    }

    #[test]
    fn long_texts_are_cut_in_tables_alone() {
        let long = format!("begin{}end", "x".repeat(16 << 10));
        let snap = Store::new(Options::default()).snapshot(Fresh::All);
        let mut answer = Answer::about(&snap, "top ranges");
        answer.columns = vec![Column {
            name: "Name".into(),
            unit: Unit::Text,
            rank: 0,
            is_wide: true,
        }];
        answer.rows = vec![Row {
            id: None,
            cells: vec![Cell::Text(long.clone())],
        }];
        let (mut shown, mut file) = (Vec::new(), Vec::new());
        table(&answer, &mut shown).unwrap();
        csv(&answer, &mut file).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        let row = shown.lines().find(|line| line.contains("begin")).unwrap();
        assert!(
            units::width(row) == MAX_TEXT_WIDTH && row.contains('…') && row.ends_with("end"),
            "{row}"
        );
        assert!(String::from_utf8(file).unwrap().contains(&long));
        assert_eq!(json(&answer)["rows"][0]["values"]["Name"], long);
    }

    #[test]
    fn hidden_characters_are_shown() {
        assert_eq!(printable("gemm<4> µ é"), "gemm<4> µ é");
        assert_eq!(printable("a\u{1b}[2Jb\n\u{202e}c"), "a\\u{1b}[2Jb\\u{a}\\u{202e}c");
        assert_eq!(printable("\u{e0041}\u{200b}"), "\\u{e0041}\\u{200b}");
        assert_eq!(printable("x\u{e0100}\u{fe0f}"), "x\\u{e0100}\\u{fe0f}");
    }
}
