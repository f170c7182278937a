//! What goes over the wire. Decoding checks lengths; the names in a message are checked here, the rest by its receiver.

use crate::{Error, Name, Result};
use bytes::Bytes;

/// Version of these messages. A hello with another one is refused.
pub(crate) const VERSION: u32 = 1;
/// Maximum length of a report, bytes. A node sends one a second, of at most 10 KB.
pub const MAX_REPORT: usize = 64 << 10;
/// Maximum length of what a node says of itself when it connects, bytes.
pub const MAX_INFO: usize = 4 << 10;
/// Maximum length of a question, bytes.
pub const MAX_QUESTION: usize = 64 << 10;
/// Maximum length of a part of an answer, bytes. Longer parts are split.
pub const PART: usize = 256 << 10;
/// Maximum length of an answer, bytes.
pub const MAX_ANSWER: u64 = 1 << 30;
/// Maximum length of a message with a report or a question.
pub(crate) const MAX_MESSAGE: usize = 80 << 10;
/// Maximum length of a message with a part.
pub(crate) const MAX_CHUNK: usize = PART + 1024;
/// Maximum length of a text of an error, bytes.
const MAX_TEXT: usize = 400;

/// From a node or relay to what it reports to.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Up {
    #[prost(oneof = "up::Kind", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(crate) kind: Option<up::Kind>,
}

pub(crate) mod up {
    use bytes::Bytes;

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(crate) enum Kind {
        #[prost(message, tag = "1")]
        Hello(Hello),
        #[prost(message, tag = "2")]
        Report(Report),
        #[prost(message, tag = "3")]
        Gone(Gone),
        #[prost(message, tag = "4")]
        Pong(Pong),
        #[prost(message, tag = "5")]
        Clock(Clock),
        #[prost(message, tag = "6")]
        Refused(Refused),
        /// The sender ends; nothing follows. A connection that ends without it was lost.
        #[prost(bool, tag = "7")]
        Goodbye(bool),
    }

    /// A node is there.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Hello {
        #[prost(uint32, tag = "1")]
        pub(crate) version: u32,
        #[prost(string, tag = "2")]
        pub(crate) node: String,
        /// Grows with each connection of the node.
        #[prost(uint64, tag = "3")]
        pub(crate) generation: u64,
        #[prost(bytes = "bytes", tag = "4")]
        pub(crate) info: Bytes,
    }

    /// The sums of a second.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Report {
        #[prost(string, tag = "1")]
        pub(crate) node: String,
        #[prost(bytes = "bytes", tag = "2")]
        pub(crate) payload: Bytes,
    }

    /// A node is there no more.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Gone {
        #[prost(string, tag = "1")]
        pub(crate) node: String,
        #[prost(uint32, tag = "2")]
        pub(crate) reason: u32,
    }

    /// The answer to a ping. Times are CLOCK_REALTIME in ns.
    #[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
    pub(crate) struct Pong {
        /// Of the ping, at its sender.
        #[prost(fixed64, tag = "1")]
        pub(crate) sent: u64,
        /// When it was received, at its receiver.
        #[prost(fixed64, tag = "2")]
        pub(crate) received: u64,
    }

    /// How a node's clock differs from that of the sender.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Clock {
        #[prost(string, tag = "1")]
        pub(crate) node: String,
        #[prost(sint64, tag = "2")]
        pub(crate) offset_ns: i64,
        #[prost(uint64, tag = "3")]
        pub(crate) error_ns: u64,
    }

    /// Connections that a relay has refused.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Refused {
        #[prost(string, tag = "1")]
        pub(crate) from: String,
        #[prost(uint32, tag = "2")]
        pub(crate) reason: u32,
        #[prost(uint64, tag = "3")]
        pub(crate) count: u64,
    }
}

/// The other direction.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Down {
    #[prost(oneof = "down::Kind", tags = "1, 2")]
    pub(crate) kind: Option<down::Kind>,
}

pub(crate) mod down {
    use bytes::Bytes;

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(crate) enum Kind {
        #[prost(message, tag = "1")]
        Question(Question),
        /// CLOCK_REALTIME in ns at the sender.
        #[prost(fixed64, tag = "2")]
        Ping(u64),
    }

    /// A question to a node.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Question {
        /// The answer names it.
        #[prost(uint64, tag = "1")]
        pub(crate) id: u64,
        #[prost(string, tag = "2")]
        pub(crate) node: String,
        #[prost(bytes = "bytes", tag = "3")]
        pub(crate) payload: Bytes,
    }
}

/// A part of an answer.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Chunk {
    /// The question's; of the first part alone.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(oneof = "chunk::Kind", tags = "2, 3, 4")]
    pub(crate) kind: Option<chunk::Kind>,
}

pub(crate) mod chunk {
    use bytes::Bytes;

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(crate) enum Kind {
        #[prost(bytes = "bytes", tag = "2")]
        Data(Bytes),
        /// There is no answer, in words.
        #[prost(string, tag = "3")]
        Failed(String),
        /// The answer is complete.
        #[prost(bool, tag = "4")]
        Complete(bool),
    }
}

/// What an answer's receiver says: nothing.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct Empty {}

impl From<up::Kind> for Up {
    fn from(kind: up::Kind) -> Self {
        Self { kind: Some(kind) }
    }
}

impl From<down::Kind> for Down {
    fn from(kind: down::Kind) -> Self {
        Self { kind: Some(kind) }
    }
}

/// A name of a message.
pub(crate) fn name(text: &str) -> Result<Name> {
    Name::new(text)
}

/// A text of another process, without control characters and not long.
pub(crate) fn text(text: &str) -> String {
    let end = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = end.take_while(|end| *end <= MAX_TEXT).last().unwrap_or(0);
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text[..end].chars().map(shown).collect()
}

/// Checks a length. Errors: it is above the limit.
pub(crate) fn bounded(what: &'static str, bytes: &Bytes, limit: usize) -> Result<()> {
    if bytes.len() <= limit {
        return Ok(());
    }
    Err(Error::TooLong {
        what,
        length: bytes.len(),
        limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_are_short_and_without_controls() {
        assert_eq!(text("a\x1b[2Jb\n"), "a [2Jb ");
        assert_eq!(text(&"ä".repeat(MAX_TEXT)).len(), MAX_TEXT);
    }
}
