//! Lines on standard error: text for a person, JSON for a service's log.

use clap::ValueEnum;
use rustix::termios::tcgetwinsize;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use time::OffsetDateTime;

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// `roctop: ` and a sentence.
    #[default]
    Text,
    /// An object each, with time, level, event and text.
    Json,
}

/// Every part of the process writes to the same standard error.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Whether the cursor may be within a line that the program wrote.
static IS_WITHIN_LINE: AtomicBool = AtomicBool::new(false);

/// The program has written to the terminal: the next line begins a fresh one.
pub fn follows_output() {
    IS_WITHIN_LINE.store(true, Ordering::Relaxed);
}

/// On a terminal, moves to a fresh line if the cursor may be within one.
pub fn begin_line() {
    let stderr = std::io::stderr();
    if IS_WITHIN_LINE.swap(false, Ordering::Relaxed)
        && stderr.is_terminal()
        && let Ok(size) = tcgetwinsize(&stderr)
    {
        // Nobody reads it when standard error is closed.
        let _ = write!(&stderr, "{}", to_fresh_line(size.ws_col));
    }
}

/// As many blanks as a line has columns end in the next line, or at the end of a line that was empty.
fn to_fresh_line(columns: u16) -> String {
    format!("{:1$}\r", "", usize::from(columns))
}

/// Sets the format for the whole process.
pub fn set(format: Format) {
    IS_JSON.store(format == Format::Json, Ordering::Relaxed);
}

/// Writes a sentence.
pub fn line(text: &str) {
    event("message", text, json!({}));
}

/// Writes what happened, with numbers that only JSON shows.
pub fn event(name: &str, text: &str, fields: Value) {
    let line = if IS_JSON.load(Ordering::Relaxed) {
        json_line(&utc(SystemTime::now()), name, text, fields)
    } else {
        format!("roctop: {text}")
    };
    begin_line();
    // Nobody reads it when standard error is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn json_line(time: &str, name: &str, text: &str, fields: Value) -> String {
    let mut object = json!({ "time": time, "program": "roctop", "event": name, "text": text });
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object.to_string()
}

/// A time as `2026-01-31T23:59:59Z`.
pub fn utc(time: SystemTime) -> String {
    let time = OffsetDateTime::from(time);
    let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
    let (hour, minute, second) = time.to_hms();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_utc() {
        let at = |seconds| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(1_709_210_096), "2024-02-29T12:34:56Z");
    }

    #[test]
    fn a_json_line_is_one_object_with_its_fields() {
        let text = "a \"quoted\"\nline";
        let line = json_line("2026-01-31T23:59:59Z", "recording", text, json!({ "records": 3 }));
        assert!(!line.contains('\n'), "{line}");
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&read["text"], &read["records"], &read["event"]),
            (&json!(text), &json!(3), &json!("recording"))
        );
    }
}
