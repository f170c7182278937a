//! Lines of JSON on standard input and output. What is no message is answered with an error of JSON-RPC.

use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::future::{Future, ready};
use std::io::{self, BufRead, Read, Write};
use tokio::sync::mpsc;

/// Maximum length of a message, bytes.
const MAX_LINE: usize = 256 << 10;
/// Lines that are read before they are taken.
const READ_AHEAD: usize = 16;

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// Its bytes.
    Whole(Vec<u8>),
    /// It is longer than a message may be, and is dropped.
    TooLong,
}

/// The next line; `None` at the end.
fn next_line(input: &mut dyn BufRead) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    if (&mut *input).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.ends_with(b"\n") || bytes.len() <= MAX_LINE {
        return Ok(Some(Line::Whole(bytes)));
    }
    loop {
        let (length, is_end) = match input.fill_buf()? {
            [] => return Ok(Some(Line::TooLong)),
            bytes => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            },
        };
        input.consume(length);
        if is_end {
            return Ok(Some(Line::TooLong));
        }
    }
}

/// What a line is.
#[derive(Debug)]
enum Content {
    /// A message.
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// No message; the answer to that.
    Refused(Box<ServerJsonRpcMessage>),
    /// Nothing that needs an answer: an empty line, or a notification of another form.
    Nothing,
}

fn content(line: Line) -> Content {
    let refused = |error, id| Content::Refused(Box::new(ServerJsonRpcMessage::error(error, id)));
    let bytes = match line {
        Line::Whole(bytes) => bytes,
        Line::TooLong => {
            let text = format!("a message has at most {MAX_LINE} bytes");
            return refused(ErrorData::invalid_request(text, None), None);
        }
    };
    if bytes.trim_ascii().is_empty() {
        return Content::Nothing;
    }
    let value: Value = match serde_json::from_slice(&bytes) {
        Ok(value) => value,
        Err(error) => return refused(ErrorData::parse_error(format!("no JSON: {error}"), None), None),
    };
    let id = value.get("id").cloned();
    let is_notification = id.is_none() && value.get("method").is_some_and(Value::is_string);
    match serde_json::from_value(value) {
        Ok(message) => Content::Message(Box::new(message)),
        Err(_) if is_notification => Content::Nothing,
        Err(_) => {
            let id = id.and_then(|id| serde_json::from_value::<RequestId>(id).ok());
            refused(ErrorData::invalid_request("no request of this protocol", None), id)
        }
    }
}

/// Standard input, which a thread reads, and standard output.
pub(super) struct Lines {
    input: mpsc::Receiver<Line>,
    /// A request has come: before the first, the protocol has no place for anything else.
    has_begun: bool,
    /// Nobody reads what is written.
    is_closed: bool,
}

impl Lines {
    /// Starts to read.
    ///
    /// Errors: the thread cannot be started.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, input) = mpsc::channel(READ_AHEAD);
        std::thread::Builder::new().name("mcp input".into()).spawn(move || {
            let mut input = io::stdin().lock();
            while let Ok(Some(line)) = next_line(&mut input) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self {
            input,
            has_begun: false,
            is_closed: false,
        })
    }

    /// Writes a message. While the client does not read, nothing else is done: its requests wait in its pipe.
    fn write(&mut self, message: &ServerJsonRpcMessage) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut out = io::stdout().lock();
        let written = out.write_all(&line).and_then(|()| out.flush());
        self.is_closed |= written.is_err();
        written
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        ready(self.write(&message))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        while !self.is_closed {
            match content(self.input.recv().await?) {
                Content::Nothing => {}
                Content::Message(message) => {
                    self.has_begun |= matches!(*message, RxJsonRpcMessage::<RoleServer>::Request(_));
                    if self.has_begun {
                        return Some(*message);
                    }
                }
                // If it cannot be written, the client has gone; the loop then ends.
                Content::Refused(refusal) => drop(self.write(&refusal)),
            }
        }
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.is_closed = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_dropped_and_the_next_is_read() {
        let long = vec![b'x'; MAX_LINE];
        for (input, expected) in [
            (b"".to_vec(), vec![]),
            (b"a\n\nb".to_vec(), vec![Some(2), Some(1), Some(1)]),
            ([&long[1..], b"\nb\n"].concat(), vec![Some(MAX_LINE), Some(2)]),
            ([&long[..], b"\nb\n"].concat(), vec![Some(MAX_LINE + 1), Some(2)]),
            ([&long[..], b"x\nb\n"].concat(), vec![None, Some(2)]),
            ([&long[..], &long, b"xyz"].concat(), vec![None]),
        ] {
            let mut input = &input[..];
            let mut found = Vec::new();
            while let Some(line) = next_line(&mut input).unwrap() {
                found.push(match line {
                    Line::Whole(bytes) => Some(bytes.len()),
                    Line::TooLong => None,
                });
            }
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_is_no_message_is_answered() {
        let answer = |line: &str| -> Option<Value> {
            match content(Line::Whole(line.as_bytes().to_vec())) {
                Content::Refused(refused) => Some(serde_json::to_value(refused).unwrap()),
                Content::Nothing => None,
                Content::Message(_) => panic!("{line}"),
            }
        };
        for (line, code, id) in [
            ("garbage", -32700, Value::Null),
            ("{\"jsonrpc\":\"2.0\"", -32700, Value::Null),
            ("[]", -32600, Value::Null),
            ("{\"foo\":\"bar\"}", -32600, Value::Null),
            ("{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}", -32600, 7.into()),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
                -32600,
                Value::Null,
            ),
        ] {
            let answer = answer(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&code.into(), &id), "{line}");
        }
        assert!(answer(&"[".repeat(100_000)).is_some());
        // A notification is never answered.
        assert!(answer("{\"jsonrpc\":\"1.0\",\"method\":\"notifications/initialized\"}").is_none());
        assert!(matches!(content(Line::Whole(b" \r\n".to_vec())), Content::Nothing));
        assert!(matches!(content(Line::TooLong), Content::Refused(_)));
        let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n";
        assert!(matches!(content(Line::Whole(ping.to_vec())), Content::Message(_)));
    }
}
