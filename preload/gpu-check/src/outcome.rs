//! Result of a check, as one line of JSON.

use std::fmt::Write;
use std::time::Duration;

/// Status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// As expected.
    Ok,
    /// A remark, or no observation.
    Note,
    /// Contradicts a requirement of roctop.
    Bad,
    /// The check could not run here.
    Skipped,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Bad => "bad",
            Self::Skipped => "skipped",
        }
    }
}

/// Result of a check: a sentence, and the measured numbers.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Status,
    pub(crate) text: String,
    numbers: Vec<(String, f64)>,
    facts: Vec<(String, String)>,
}

impl Outcome {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            numbers: Vec::new(),
            facts: Vec::new(),
        }
    }

    pub(crate) fn number(mut self, name: impl Into<String>, value: f64) -> Self {
        self.numbers.push((name.into(), value));
        self
    }

    pub(crate) fn fact(mut self, name: &str, value: impl Into<String>) -> Self {
        self.facts.push((name.to_owned(), value.into()));
        self
    }

    /// An outcome that a busy machine may have caused: undecided.
    pub(crate) fn busy(text: &str, waited: Duration) -> Self {
        let text = format!(
            "undecided: {text}, but this process waited {:.0} ms for a CPU: the machine was busy",
            waited.as_secs_f64() * 1e3
        );
        Self::new(Status::Note, text).number("machine_was_busy", 1.0)
    }

    /// The JSON line: `{"check":…,"status":…,"text":…,"numbers":{…},"facts":{…}}`.
    pub(crate) fn line(&self, check: &str) -> String {
        let mut out = format!(
            "{{\"check\":{},\"status\":\"{}\",\"text\":{}",
            quoted(check),
            self.status.word(),
            quoted(&self.text)
        );
        let numbers: Vec<String> = self
            .numbers
            .iter()
            .map(|(name, value)| format!("{}:{}", quoted(name), if value.is_finite() { *value } else { 0.0 }))
            .collect();
        let facts: Vec<String> = self
            .facts
            .iter()
            .map(|(name, value)| format!("{}:{}", quoted(name), quoted(value)))
            .collect();
        let _ = write!(
            out,
            ",\"numbers\":{{{}}},\"facts\":{{{}}}}}",
            numbers.join(","),
            facts.join(",")
        );
        out
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_json() {
        let outcome = Outcome::new(Status::Bad, "a \"quoted\"\nline")
            .number("half", 0.5)
            .number("never", f64::NAN)
            .fact("gfx", "gfx906");
        assert_eq!(
            outcome.line("D2"),
            r#"{"check":"D2","status":"bad","text":"a \"quoted\"\u000aline","numbers":{"half":0.5,"never":0},"facts":{"gfx":"gfx906"}}"#
        );
    }
}
