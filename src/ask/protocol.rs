//! What goes over the socket: a line of JSON each way. Pure.

use crate::model::Snapshot;
use crate::model::ask::{self, Answer, Buffers, MAX_LIMIT, Question, Verb};
use crate::query;
use crate::sysfs::binding;
use crate::ui::ask::{Source, answer};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// Name of the socket in a session's directory.
pub const SOCKET: &str = "ask.sock";
/// Maximum length of a request, bytes.
pub const MAX_REQUEST: usize = 16 << 10;
/// Maximum length of a response, bytes.
pub const MAX_RESPONSE: usize = 64 << 20;
/// Records of a stretch of time that are counted again at most: they take some 20 ms.
const MAX_COUNTED: usize = 1 << 18;

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Aligned columns.
    #[default]
    Table,
    /// JSON by docs/ask.schema.json, in one line.
    Json,
    /// CSV in base units.
    Csv,
    /// The answer as it is, for another roctop that puts the answers of several ranks together.
    Whole,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The question.
    pub question: String,
    /// How the answer is written.
    #[serde(default)]
    pub form: Form,
    /// Answer again every second, until the program ends.
    #[serde(default)]
    pub follow: bool,
    /// Rows at most, in place of what the question says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Response {
    /// The answer as text, and whether there will be no other.
    Answer {
        /// The text.
        text: String,
        /// The program has ended.
        last: bool,
    },
    /// The question is none.
    Wrong {
        /// Column of the error, in characters from 0.
        column: usize,
        /// The error, and what was expected.
        message: String,
    },
    /// There is no answer.
    Failed {
        /// Why.
        message: String,
    },
}

impl From<query::Error> for Response {
    fn from(error: query::Error) -> Self {
        Self::Wrong {
            column: error.column,
            message: error.message,
        }
    }
}

impl Response {
    /// As a line.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// A request of a line.
///
/// Errors: it is none, in words.
pub fn request(line: &[u8]) -> Result<Request, String> {
    if line.len() > MAX_REQUEST {
        return Err(format!("a request has at most {MAX_REQUEST} bytes"));
    }
    serde_json::from_slice(line).map_err(|error| format!("no request: {error}"))
}

/// An answer as text.
pub fn written(answer: &Answer, form: Form) -> String {
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = match form {
        Form::Table => ask::table(answer, &mut out),
        Form::Csv => ask::csv(answer, &mut out),
        Form::Json => return ask::json(answer).to_string(),
        Form::Whole => return serde_json::to_string(answer).unwrap_or_default(),
    };
    String::from_utf8_lossy(&out).into_owned()
}

/// The response to a request about a snapshot.
pub fn response(request: &Request, snap: &Arc<Snapshot>, presets: &[(String, String)]) -> Response {
    let answered = Question::parse(&request.question, presets).and_then(|mut question| {
        question.limit = request.rows.map_or(question.limit, |rows| rows.clamp(1, MAX_LIMIT));
        let mut source = Source {
            snap,
            most: MAX_COUNTED,
            reread: None,
        };
        let mut answer = answer(&question, &mut source)?;
        if let Verb::Placement(buffers @ (Buffers::Small | Buffers::All)) = question.verb {
            read_maps(&mut answer, buffers);
            answer.place(question.limit);
        }
        Ok(answer)
    });
    match answered {
        Ok(answer) => Response::Answer {
            text: written(&answer, request.form),
            last: !answer.is_running,
        },
        Err(error) => error.into(),
    }
}

/// Reads where the memory of processes is that run here.
fn read_maps(answer: &mut Answer, buffers: Buffers) {
    for place in answer.places.iter_mut().filter(|place| !place.has_ended) {
        let addresses = std::mem::take(&mut place.buffers);
        let map = binding::memory(Path::new("/"), place.pid, &addresses, buffers == Buffers::All);
        place.memory_map = Some(map);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fresh, Options, Store};

    #[test]
    fn a_line_is_a_request_or_an_error() {
        let asked = request(br#"{"question":"status","form":"json"}"#).unwrap();
        assert_eq!((asked.form, asked.follow), (Form::Json, false));
        let long = format!("{{\"question\":\"{}\"}}", "x".repeat(MAX_REQUEST));
        for wrong in [
            "",
            "status",
            "{}",
            "{\"question\":3}",
            "{\"question\":\"status\",\"x\":1}",
            "[[[[",
            &long,
        ] {
            assert!(request(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_response_says_what_is_wrong_and_where() {
        let snap = Store::new(Options::default()).snapshot(Fresh::All);
        let asked = |question: &str| Request {
            question: question.into(),
            form: Form::Csv,
            follow: false,
            rows: None,
        };
        assert!(matches!(
            response(&asked("top kernels"), &snap, &[]),
            Response::Answer { .. }
        ));
        let wrong = response(&asked("top kernel"), &snap, &[]);
        assert!(
            matches!(&wrong, Response::Wrong { column: 4, message } if message.contains("kernels")),
            "{wrong:?}"
        );
        let line = wrong.line();
        assert_eq!(serde_json::from_slice::<Response>(&line).unwrap(), wrong);
        assert!(line.ends_with(b"\n") && !line[..line.len() - 1].contains(&b'\n'));
    }
}
